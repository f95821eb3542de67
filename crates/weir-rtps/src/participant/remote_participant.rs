//! What is known of one other participant and its endpoints.

use core::net::{Ipv4Addr, SocketAddrV4};
use std::collections::BTreeMap;

use weir_wire::{EntityId, VendorId};

use crate::discovery_event::RemoteEndpoint;
use crate::outbox::Destinations;
use crate::sedp::EndpointKind;
use crate::spdp::ParticipantData;
use crate::time::Time;

/// Another participant.
#[derive(Debug)]
pub(super) struct RemoteParticipant {
    pub(super) data: ParticipantData,
    /// From where it announced itself; says which of its addresses are good.
    pub(super) from: Ipv4Addr,
    /// Where discovery traffic for it goes.
    pub(super) metatraffic: Destinations,
    pub(super) discovered_at: Time,
    pub(super) last_heard: Time,
    pub(super) lease: core::time::Duration,
    /// Whether it has sent something to us in particular: then its address is no forgery by somebody who
    /// cannot hear us.
    pub(super) has_answered: bool,
    /// Whether it was told who we are, and our builtin endpoints speak to it.
    pub(super) is_introduced: bool,
    pub(super) endpoints: BTreeMap<EntityId, RemoteEntry>,
}

/// An endpoint of another participant.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RemoteEntry {
    pub(super) topic: String,
    pub(super) type_name: String,
    /// Its own addresses, if it has some.
    pub(super) unicast: Vec<SocketAddrV4>,
    pub(super) multicast: Vec<SocketAddrV4>,
    pub(super) endpoint: RemoteEndpoint,
}

impl RemoteParticipant {
    /// When it counts as lost if nothing more is heard.
    pub(super) fn expires_at(&self) -> Time {
        let lease = if self.has_answered { self.lease } else { self.lease.min(UNANSWERED_LEASE_MAX) };
        self.last_heard + lease
    }

    /// Whether its announcements name the host, or came from there.
    pub(super) fn is_at(&self, host: Ipv4Addr) -> bool {
        let named =
            self.data.metatraffic_unicast.addresses.iter().chain(&self.data.default_unicast.addresses);
        self.from == host || named.into_iter().any(|address| *address.ip() == host)
    }

    pub(super) fn vendor(&self) -> VendorId {
        self.data.vendor
    }
}

/// Which kind of endpoint an entity id names. `None`: neither a writer nor a reader of an application.
pub(super) fn kind_of(entity: EntityId) -> Option<EndpointKind> {
    match (entity.is_builtin(), entity.is_writer(), entity.is_reader()) {
        (false, true, _) => Some(EndpointKind::Writer),
        (false, _, true) => Some(EndpointKind::Reader),
        _ => None,
    }
}

/// A participant that has not spoken to us in particular is kept for no longer than this when it falls silent, whatever
/// it asks for: longer than the 30 s between announcements that the specification proposes (DDSI-RTPS 2.5 §9.6.1.4).
const UNANSWERED_LEASE_MAX: core::time::Duration = core::time::Duration::from_secs(35);
