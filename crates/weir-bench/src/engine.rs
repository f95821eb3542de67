//! The engines of this build.
//!
//! An engine is one file in `engine/` that implements [`Engine`], and one entry of [`registry`].
//! Engines of others are in weir-peers.
//! Names that are not there are unknown engines, refused before a run begins.

mod mock;
mod peer;
mod udp;
mod weir;

use std::sync::LazyLock;

use weir_peers::{PEERS, Peer};

use crate::endpoint::Engine;

use mock::Mock;

/// All engines that this build has, in the order in which tables show them: the floors first, then
/// the engines measured against them; hidden ones last.
#[must_use]
pub fn registry() -> &'static [&'static dyn Engine] {
    static REGISTRY: LazyLock<Vec<&'static dyn Engine>> = LazyLock::new(|| {
        let ours: [&'static dyn Engine; 3] = [&udp::Udp::Plain, &udp::Udp::Gso, &weir::Weir];
        let mocks: [&'static dyn Engine; 7] = [
            &Mock::Sound,
            &Mock::Lossy,
            &Mock::Corrupt,
            &Mock::Hang,
            &Mock::Crash,
            &Mock::Stall,
            &Mock::Clock,
        ];
        let peers = PEERS.iter().filter(|peer| peer.is_built()).map(|peer| peer as &'static dyn Engine);
        ours.into_iter().chain(peers).chain(mocks).collect()
    });
    &REGISTRY
}

/// Engines that the project knows and this build has not got.
pub fn missing() -> impl Iterator<Item = &'static Peer> {
    PEERS.iter().filter(|peer| !peer.is_built())
}

/// The engine of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Engine> {
    registry().iter().copied().find(|engine| engine.name() == name)
}
