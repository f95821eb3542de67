//! The paths to other hosts, which all writers of the participant share.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use weir_rtps::path::{Path, PathReport};

/// The paths in use, by the address of the host.
pub(crate) struct Paths {
    known: Mutex<HashMap<Ipv4Addr, Path, RandomState>>,
    /// Bytes per second that are sent to a host at most.
    rate_max: Option<u64>,
    /// Whether explicit congestion notification may be used.
    uses_ecn: bool,
}

impl Paths {
    /// Creates paths on which at most so many bits per second are sent.
    pub(crate) fn new(rate_max: Option<u64>, uses_ecn: bool) -> Self {
        Self { known: Mutex::default(), rate_max: rate_max.map(|bits| bits / 8), uses_ecn }
    }

    /// Returns the path to a reader; `None` if it is on this host, where nothing needs to be paced.
    ///
    /// Of several addresses, the first stands for all: they are of one host.
    pub(crate) fn to_reader(&self, destinations: &[SocketAddrV4]) -> Option<Path> {
        let host = *destinations.iter().find(|to| !to.ip().is_multicast())?.ip();
        if weir_udp::is_own_address(host) {
            return None;
        }
        let mut known = self.known.lock();
        // What no writer uses any more is forgotten.
        known.retain(|ip, path| *ip == host || path.is_shared());
        let new = || {
            let path = self.rate_max.map_or_else(Path::new, Path::with_rate_max);
            if self.uses_ecn { path.with_ecn() } else { path }
        };
        Some(known.entry(host).or_insert_with(new).clone())
    }

    /// Returns what is known of the paths in use.
    pub(crate) fn reports(&self) -> Vec<(Ipv4Addr, PathReport)> {
        let known = self.known.lock();
        let mut reports: Vec<_> = known.iter().map(|(host, path)| (*host, path.report())).collect();
        reports.sort_unstable_by_key(|(host, _)| *host);
        reports
    }
}
