//! The state of one remote participant and its endpoints.

use core::net::{Ipv4Addr, SocketAddrV4};
use std::collections::BTreeMap;

use weir_wire::{EntityId, VendorId};

use crate::discovery_event::RemoteEndpoint;
use crate::outbox::Destinations;
use crate::sedp::EndpointKind;
use crate::spdp::ParticipantData;
use crate::time::Time;

/// A remote participant.
#[derive(Debug)]
pub(super) struct RemoteParticipant {
    pub(super) data: ParticipantData,
    /// The source of its announcement, by which its addresses are ranked.
    pub(super) from: Ipv4Addr,
    /// The destination of discovery traffic.
    pub(super) metatraffic: Destinations,
    pub(super) discovered_at: Time,
    pub(super) last_heard: Time,
    pub(super) lease: core::time::Duration,
    /// Whether it has sent to us directly: then its address is not forged by a host that cannot
    /// receive from us.
    pub(super) has_answered: bool,
    /// Whether it was sent our announcement, and matched with our builtin endpoints.
    pub(super) is_introduced: bool,
    pub(super) endpoints: BTreeMap<EntityId, RemoteEntry>,
}

/// A remote endpoint.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RemoteEntry {
    pub(super) topic: String,
    pub(super) type_name: String,
    /// Its own addresses, if any.
    pub(super) unicast: Vec<SocketAddrV4>,
    pub(super) multicast: Vec<SocketAddrV4>,
    pub(super) endpoint: RemoteEndpoint,
}

impl RemoteParticipant {
    /// Returns when it counts as lost if nothing more is received.
    pub(super) fn expires_at(&self) -> Time {
        let lease = if self.has_answered { self.lease } else { self.lease.min(UNANSWERED_LEASE_MAX) };
        self.last_heard + lease
    }

    /// Returns whether its announcements name the host, or came from there.
    pub(super) fn is_at(&self, host: Ipv4Addr) -> bool {
        let named =
            self.data.metatraffic_unicast.addresses.iter().chain(&self.data.default_unicast.addresses);
        self.from == host || named.into_iter().any(|address| *address.ip() == host)
    }

    pub(super) fn vendor(&self) -> VendorId {
        self.data.vendor
    }
}

/// Returns the kind of endpoint of an entity id; `None` if it is not an application's writer or
/// reader.
pub(super) fn kind_of(entity: EntityId) -> Option<EndpointKind> {
    match (entity.is_builtin(), entity.is_writer(), entity.is_reader()) {
        (false, true, _) => Some(EndpointKind::Writer),
        (false, _, true) => Some(EndpointKind::Reader),
        _ => None,
    }
}

/// Maximum time for which a silent participant is kept that has not sent to us directly, whatever
/// its lease: longer than the 30 s between announcements that the specification proposes (DDSI-RTPS
/// 2.5 §9.6.1.4).
const UNANSWERED_LEASE_MAX: core::time::Duration = core::time::Duration::from_secs(35);
