//! The paths of a station to other hosts.

use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};

use crate::participant::ParticipantConfig;
use crate::path::Path;

/// The paths in use, which all writers share.
#[derive(Debug)]
pub(super) struct Paths {
    known: Vec<(Ipv4Addr, Path)>,
    /// The addresses of this host.
    own: Vec<Ipv4Addr>,
}

impl Paths {
    /// Has no paths yet. As many as the limits table allows need no more memory.
    pub(super) fn new(config: &ParticipantConfig) -> Self {
        let unicast = config.default_unicast.iter().map(|address| *address.ip());
        let own = config.interfaces.iter().map(|interface| interface.address).chain(unicast).collect();
        let room = config.table.map_or(0, |table| table.participants.saturating_add(1));
        Self { known: Vec::with_capacity(room), own }
    }

    /// Returns the path to a reader; `None` if it is on this host, where nothing needs to be paced.
    pub(super) fn to(&mut self, destinations: &[SocketAddrV4]) -> Option<Path> {
        let host = *destinations.iter().find(|to| !to.ip().is_multicast())?.ip();
        if self.is_own(host) {
            return None;
        }
        // What no writer uses any more is forgotten.
        self.known.retain(|(ip, path)| *ip == host || path.is_shared());
        if let Some((_, path)) = self.known.iter().find(|(ip, _)| *ip == host) {
            return Some(path.clone());
        }
        let path = Path::new();
        self.known.push((host, path.clone()));
        Some(path)
    }

    /// Returns whether an address is of this host.
    pub(super) fn is_own(&self, host: Ipv4Addr) -> bool {
        host.is_loopback() || self.own.contains(&host)
    }
}
