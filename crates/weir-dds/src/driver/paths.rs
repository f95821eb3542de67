//! The paths to other hosts, which all writers of the participant share.

use std::net::{Ipv4Addr, SocketAddrV4};

use parking_lot::Mutex;
use weir_rtps::discovery_event::RemoteEndpoint;
use weir_rtps::path::{self, Path, PathReport, host_of};

/// The paths in use, and how new ones begin.
pub(crate) struct Paths {
    known: Mutex<path::Paths>,
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
    pub(crate) fn to_reader(&self, reader: &RemoteEndpoint) -> Option<Path> {
        let host = elsewhere(&reader.destinations)?;
        let new = || {
            let path = self.rate_max.map_or_else(Path::new, Path::with_rate_max);
            if self.uses_ecn { path.with_ecn() } else { path }
        };
        let path = self.known.lock().to_host(host, new);
        path.note_answer_time(reader.answer_time);
        Some(path)
    }

    /// Returns what is known of the paths in use.
    pub(crate) fn reports(&self) -> Vec<(Ipv4Addr, PathReport)> {
        self.known.lock().reports()
    }
}

/// Returns whether a reader or a writer is on another host.
pub(crate) fn is_elsewhere(destinations: &[SocketAddrV4]) -> bool {
    elsewhere(destinations).is_some()
}

fn elsewhere(destinations: &[SocketAddrV4]) -> Option<Ipv4Addr> {
    host_of(destinations).filter(|host| !weir_udp::is_own_address(*host))
}
