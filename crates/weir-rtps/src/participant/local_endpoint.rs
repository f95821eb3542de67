//! An endpoint of our own, and how it stands to others.

use core::net::SocketAddrV4;

use weir_wire::{EntityId, Guid};

use crate::discovery_data::Locators;
use crate::discovery_event::RemoteEndpoint;
use crate::liveliness::Lease;
use crate::qos::{INFINITE, LivelinessKind, PolicyId, Qos};
use crate::sedp::{EndpointData, EndpointKind};
use crate::time::Time;
use crate::writer::WriteRefused;

/// A writer or reader of this participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalEndpoint {
    /// Names it within the participant, and says whether it writes or reads and whether its topic has a key.
    pub entity: EntityId,
    /// The topic's name.
    pub topic: String,
    /// The name of the topic's type.
    pub type_name: String,
    /// What it offers or requests.
    pub qos: Qos,
    /// Where it receives; empty: where the participant's endpoints do by default.
    pub unicast: Vec<SocketAddrV4>,
    /// The multicast group to which it listens, too, if it reads.
    pub multicast: Option<SocketAddrV4>,
}

/// Why an endpoint cannot be announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocalEndpointError {
    /// The entity id is of another kind than the call.
    #[error("entity id {0:?} does not name an application's endpoint of this kind")]
    WrongKind(EntityId),
    /// A name is longer than peers would accept.
    #[error("the {what} is {bytes} bytes long: shorten it to at most {max}")]
    TooLong {
        /// Which text.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The longest that is accepted.
        max: usize,
    },
    /// There is nowhere that samples or acknowledgements for it could be sent.
    #[error("neither the endpoint nor its participant has a unicast address: give one of them an address")]
    NoAddress,
    /// The participant is closed.
    #[error("the participant is closed")]
    Closed,
    /// There are too many endpoints.
    #[error("the endpoint cannot be announced: {0}")]
    NotAnnounced(#[from] WriteRefused),
}

/// What is kept of a local endpoint.
#[derive(Debug)]
pub(super) struct LocalEntry {
    pub(super) topic: String,
    pub(super) type_name: String,
    pub(super) unicast: Vec<SocketAddrV4>,
    pub(super) multicast: Option<SocketAddrV4>,
    pub(super) kind: EndpointKind,
    /// With how many endpoints it communicates.
    pub(super) matches: usize,
    /// Of a writer whose liveliness the application asserts.
    pub(super) lease: Option<Lease>,
    /// The endpoint as others see it; others may be endpoints of this participant.
    pub(super) seen: RemoteEndpoint,
}

impl LocalEntry {
    pub(super) fn kind(&self) -> EndpointKind {
        self.kind
    }

    pub(super) fn guid(&self) -> Guid {
        self.seen.guid
    }

    /// The endpoint as it is announced.
    pub(super) fn data(&self) -> EndpointData {
        let seen = &self.seen;
        EndpointData {
            guid: seen.guid,
            topic: self.topic.clone(),
            type_name: self.type_name.clone(),
            qos: seen.qos.clone(),
            unicast: Locators { addresses: self.unicast.clone(), skipped: 0 },
            multicast: Locators { addresses: self.multicast.into_iter().collect(), skipped: 0 },
            expects_inline_qos: false,
            receive_buffer: seen.receive_buffer.filter(|_| self.kind == EndpointKind::Reader),
        }
    }
}

/// How a local endpoint and another one of its topic stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pair {
    /// They communicate.
    Matched,
    /// They would, but for this policy.
    Incompatible(PolicyId),
}

/// The lease of a local writer that the application must keep up.
pub(super) fn manual_lease(now: Time, kind: EndpointKind, qos: &Qos) -> Option<Lease> {
    let policy = qos.liveliness;
    let is_manual = kind == EndpointKind::Writer && policy.kind != LivelinessKind::Automatic;
    (is_manual && policy.lease < INFINITE).then(|| Lease::new(now, policy))
}
