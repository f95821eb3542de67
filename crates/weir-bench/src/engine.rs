//! The engines that this build knows.
//!
//! An engine is one file in `engine/` that implements [`Engine`], and one entry of [`registry`]. Other
//! engines are [`Peer`]s, which a program passes to [`register`] when it starts.

mod mock;
mod pair;
mod peer;
mod udp;
mod weir;

use std::sync::OnceLock;

use weir_peer_api::{KNOWN, Known};

use crate::endpoint::Engine;

use mock::Mock;

pub use self::weir::settings::{QOS_FILE, QOS_PROFILE};
pub use self::weir::small::Means;
pub use weir_peer_api::Peer;

/// Adds other engines to the [`registry`], for the rest of the process.
///
/// Every process of a case looks engines up by name, so that a program with peers calls this first in
/// each of them, and before it parses arguments: their help lists the engines.
///
/// # Panics
/// When called twice, or after the first look into the registry.
pub fn register(peers: &'static [Peer]) {
    assert!(REGISTRY.set(all(peers)).is_ok(), "peers are registered once, before engines are looked up");
}

/// All engines that this build has, in the order in which tables show them: the baselines first, then
/// the engines measured against them; hidden ones last.
#[must_use]
pub fn registry() -> &'static [&'static dyn Engine] {
    REGISTRY.get_or_init(|| all(&[]))
}

static REGISTRY: OnceLock<Vec<&'static dyn Engine>> = OnceLock::new();

type Engines = &'static [&'static dyn Engine];

fn all(peers: &'static [Peer]) -> Vec<&'static dyn Engine> {
    let ours: [&'static dyn Engine; 6] = [
        &udp::Udp::Plain,
        &udp::Udp::Gso,
        &udp::Udp::Fresh,
        &weir::Weir::Plain,
        &weir::Weir::Small,
        &weir::Weir::Links,
    ];
    let mocks: [&'static dyn Engine; 7] =
        [&Mock::Sound, &Mock::Lossy, &Mock::Corrupt, &Mock::Hang, &Mock::Crash, &Mock::Stall, &Mock::Clock];
    let peers = peers.iter().map(|peer| peer as &'static dyn Engine);
    ours.into_iter().chain(peers).chain(mocks).collect()
}

/// Other engines that this build lacks.
pub fn missing() -> impl Iterator<Item = &'static Known> {
    KNOWN.iter().filter(|known| find(known.name).is_none())
}

/// Weir as users get it.
pub const WEIR: &str = "weir";

/// Weir's small profile.
pub const WEIR_SMALL: &str = "weir-small";

/// The engine of this name, or the pair `PUBLISHER:SUBSCRIBER` of engines that speak RTPS.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Engine> {
    let engine = registry().iter().copied().find(|engine| engine.name() == name);
    engine.or_else(|| pair::find(name, registry()))
}

/// The engines that a name consists of: one, or the two of a pair.
pub(crate) fn parts(name: &str) -> Vec<&str> {
    pair::parts(name).map_or_else(|| vec![name], |(publisher, subscriber)| vec![publisher, subscriber])
}
