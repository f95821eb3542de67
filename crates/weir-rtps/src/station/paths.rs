//! The paths of a station to other hosts.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use crate::discovery_event::RemoteEndpoint;
use crate::limits::Limits;
use crate::participant::ParticipantConfig;
use crate::path::{self, Path};

/// The paths in use, and the addresses to which there are none.
#[derive(Debug)]
pub(super) struct Paths {
    known: path::Paths,
    /// The addresses of this host.
    own: Vec<Ipv4Addr>,
}

impl Paths {
    /// Has no paths yet. As many as the limits table allows are reserved.
    pub(super) fn new(config: &ParticipantConfig) -> Self {
        let unicast = config.default_unicast.iter().map(|address| *address.ip());
        let own = config.interfaces.iter().map(|interface| interface.address).chain(unicast).collect();
        let (room, writers) = config.table.map_or((0, 0), |table| (Self::most(&table), table.writers));
        Self { known: path::Paths::with_room(room, writers), own }
    }

    /// Returns how many hosts there are at most: that of each participant, a second one of each that has moved, and
    /// one that is not forgotten yet.
    fn most(limits: &Limits) -> usize {
        limits.participants.saturating_mul(2).saturating_add(1)
    }

    /// Returns the path to a reader; `None` if it is on this host, where nothing needs to be paced.
    pub(super) fn to(&mut self, reader: &RemoteEndpoint) -> Option<Path> {
        let host = path::host_of(&reader.destinations).filter(|host| !self.is_own(*host))?;
        let path = self.known.to_host(host, Path::new);
        path.note_answer_time(reader.answer_time);
        Some(path)
    }

    /// Returns whether an address is of this host.
    pub(super) fn is_own(&self, host: Ipv4Addr) -> bool {
        host.is_loopback() || self.own.contains(&host)
    }
}
