//! The state of one local endpoint, and its relation to others.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::SocketAddrV4;

use weir_wire::{EntityId, Guid};

use super::shared::Name;
use crate::discovery_data::Locators;
use crate::discovery_event::{RemoteEndpoint, TypeDifference};
use crate::liveliness::Lease;
use crate::qos::{INFINITE, LivelinessKind, PolicySet, Qos};
use crate::sedp::{EndpointData, EndpointKind};
use crate::time::Time;
use crate::writer::WriteRefused;

/// A writer or reader of this participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalEndpoint {
    /// Its id within the participant, which includes whether it writes or reads and whether its
    /// topic has a key.
    pub entity: EntityId,
    /// The topic's name.
    pub topic: String,
    /// The name of the topic's type.
    pub type_name: String,
    /// Its offered or requested policies.
    pub qos: Qos,
    /// Its addresses; empty: the participant's default ones.
    pub unicast: Vec<SocketAddrV4>,
    /// The multicast group that a reader also joins.
    pub multicast: Option<SocketAddrV4>,
}

/// The reason why an endpoint cannot be announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocalEndpointError {
    /// The entity id is not of the call's kind.
    #[error("entity id {0:?} is not that of an application endpoint of this kind")]
    WrongKind(EntityId),
    /// A name is longer than peers would accept.
    #[error("the {what} is {bytes} bytes long: shorten it to at most {max}")]
    TooLong {
        /// The text.
        what: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The maximum length in bytes.
        max: usize,
    },
    /// There is no address for samples or acknowledgements.
    #[error("neither the endpoint nor its participant has a unicast address: give one of them an address")]
    NoAddress,
    /// The participant is closed.
    #[error("the participant is closed")]
    Closed,
    /// The limits table has no room for another endpoint of this kind.
    #[error("the participant has {max} {what} already: raise the limit `{what}`, or close one of them")]
    TooMany {
        /// `writers` or `readers`.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// The announcement is too long, or participants have not acknowledged that earlier endpoints are gone.
    #[error("the endpoint cannot be announced: {}", why_not_announced(.0))]
    NotAnnounced(#[from] WriteRefused),
}

/// Returns why an endpoint is not announced, in terms of discovery instead of a writer.
fn why_not_announced(refused: &WriteRefused) -> String {
    match refused {
        WriteRefused::LimitReached | WriteRefused::TooManyInstances => {
            "a participant has not acknowledged yet that earlier endpoints are gone: create it later"
                .to_owned()
        }
        other => other.to_string(),
    }
}

/// The state of a local endpoint.
#[derive(Debug)]
pub(super) struct LocalEntry {
    pub(super) topic: String,
    pub(super) type_name: Name,
    /// Its own addresses, if any.
    pub(super) unicast: Vec<SocketAddrV4>,
    pub(super) multicast: Option<SocketAddrV4>,
    pub(super) kind: EndpointKind,
    /// Number of matched endpoints.
    pub(super) matches: usize,
    /// It has refused a match for want of room, since it last looked for others.
    pub(super) has_refused: bool,
    /// For a writer whose liveliness the application asserts.
    pub(super) lease: Option<Lease>,
    /// The endpoint as seen by others, which may be in this participant.
    pub(super) seen: RemoteEndpoint,
}

impl LocalEntry {
    pub(super) fn kind(&self) -> EndpointKind {
        self.kind
    }

    pub(super) fn guid(&self) -> Guid {
        self.seen.guid
    }

    /// Returns the endpoint's announcement. `default_unicast`: the participant's addresses.
    pub(super) fn data(&self, default_unicast: &[SocketAddrV4]) -> EndpointData {
        let seen = &self.seen;
        // Peers consider an endpoint's own addresses complete.
        let has_only_group = self.multicast.is_some() && self.unicast.is_empty();
        let unicast = if has_only_group { default_unicast } else { &self.unicast };
        EndpointData {
            guid: seen.guid,
            topic: self.topic.clone(),
            type_name: String::clone(&self.type_name),
            qos: Qos::clone(&seen.qos),
            unicast: Locators { addresses: unicast.to_vec(), skipped: 0 },
            multicast: Locators { addresses: self.multicast.into_iter().collect(), skipped: 0 },
            content_filter: seen.content_filter.clone(),
            expects_inline_qos: false,
            receive_buffer: seen.receive_buffer.filter(|_| self.kind == EndpointKind::Reader),
        }
    }
}

/// The relation of a local endpoint and another one of its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pair {
    /// They are matched.
    Matched,
    /// These policies prevent a match.
    Incompatible(PolicySet),
    /// Their types differ.
    Inconsistent(TypeDifference),
}

/// Returns the lease of a local writer that the application must renew.
pub(super) fn manual_lease(now: Time, kind: EndpointKind, qos: &Qos) -> Option<Lease> {
    let policy = qos.liveliness;
    let is_manual = kind == EndpointKind::Writer && policy.kind != LivelinessKind::Automatic;
    (is_manual && policy.lease < INFINITE).then(|| Lease::new(now, policy))
}
