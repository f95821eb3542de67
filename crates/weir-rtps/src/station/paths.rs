//! The paths of a station to other hosts.

use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};

use crate::limits::Limits;
use crate::participant::ParticipantConfig;
use crate::path::Path;

/// The paths in use, which all writers share.
#[derive(Debug)]
pub(super) struct Paths {
    known: Vec<(Ipv4Addr, Path)>,
    /// Reserved for other hosts.
    spare: Vec<Path>,
    /// The addresses of this host.
    own: Vec<Ipv4Addr>,
}

impl Paths {
    /// Has no paths yet. As many as the limits table allows are reserved.
    pub(super) fn new(config: &ParticipantConfig) -> Self {
        let unicast = config.default_unicast.iter().map(|address| *address.ip());
        let own = config.interfaces.iter().map(|interface| interface.address).chain(unicast).collect();
        let (room, writers) = config.table.map_or((0, 0), |table| (Self::most(&table), table.writers));
        let mut spare = Vec::with_capacity(room);
        spare.extend((0..room).map(|_| Path::with_room(writers)));
        Self { known: Vec::with_capacity(room), spare, own }
    }

    /// Returns how many hosts there are at most: that of each participant, a second one of each that has moved, and
    /// one that is not forgotten yet.
    fn most(limits: &Limits) -> usize {
        limits.participants.saturating_mul(2).saturating_add(1)
    }

    /// Returns the path to a reader; `None` if it is on this host, where nothing needs to be paced.
    pub(super) fn to(&mut self, destinations: &[SocketAddrV4]) -> Option<Path> {
        let host = *destinations.iter().find(|to| !to.ip().is_multicast())?.ip();
        if self.is_own(host) {
            return None;
        }
        // What no writer uses any more is forgotten.
        let spare = &mut self.spare;
        self.known.retain(|(ip, path)| {
            let is_used = *ip == host || path.is_shared();
            if !is_used && spare.len() < spare.capacity() {
                path.forget();
                spare.push(path.clone());
            }
            is_used
        });
        if let Some((_, path)) = self.known.iter().find(|(ip, _)| *ip == host) {
            return Some(path.clone());
        }
        let path = self.spare.pop().unwrap_or_default();
        self.known.push((host, path.clone()));
        Some(path)
    }

    /// Returns whether an address is of this host.
    pub(super) fn is_own(&self, host: Ipv4Addr) -> bool {
        host.is_loopback() || self.own.contains(&host)
    }
}
