//! Options of nodes, for tests of settings.

use std::net::Ipv4Addr;
use std::time::Duration;

use weir_peer_api::{LinkOptions, NodeOptions, Setting};

pub(crate) fn options(settings: &[Setting], link: Option<LinkOptions>) -> NodeOptions {
    let settings = settings.iter().map(|it| (it.name.to_owned(), it.value.to_owned())).collect();
    NodeOptions {
        payload_bytes: 1000,
        link,
        settings,
        ..NodeOptions::new("lo".to_owned(), Ipv4Addr::LOCALHOST)
    }
}

#[cfg(any(feature = "cyclonedds", feature = "fastdds"))]
pub(crate) fn link(rate_bps: u64, round_trip_ms: u64) -> Option<LinkOptions> {
    Some(LinkOptions { rate_bps, round_trip: Duration::from_millis(round_trip_ms) })
}
