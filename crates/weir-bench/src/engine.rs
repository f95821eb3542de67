//! The engines that this build knows.
//!
//! An engine is one file in `engine/` that implements [`Engine`], and one entry of [`registry`].
//! Names that are not there are unknown engines, refused before a run begins.

mod mock;
mod raw;
mod udp;
mod udp_gso;
mod weir;

use crate::endpoint::Engine;

use mock::Mock;

/// All engines, in the order in which tables show them: the floors first, then the engines measured
/// against them; hidden ones last.
#[must_use]
pub fn registry() -> &'static [&'static dyn Engine] {
    &[
        &udp::Udp,
        &udp_gso::UdpGso,
        &weir::Weir,
        &Mock::Sound,
        &Mock::Lossy,
        &Mock::Corrupt,
        &Mock::Hang,
        &Mock::Crash,
    ]
}

/// The engine of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Engine> {
    registry().iter().copied().find(|engine| engine.name() == name)
}
