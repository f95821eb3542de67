//! Events of discovery for the application: participants, matches and incompatible endpoints.

use alloc::string::String;
use alloc::sync::Arc;
use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;

use weir_wire::{EntityId, Guid, GuidPrefix, VendorId};

use crate::content_filter::ContentFilterProperty;
use crate::multicast::GroupRoute;
use crate::outbox::Destinations;
use crate::qos::{LivelinessKind, PolicySet, Qos};

/// A change of remote participants or endpoints. The local endpoint is given by its [`EntityId`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscoveryEvent {
    /// A local writer has a new reader.
    ReaderMatched {
        /// The local writer.
        writer: EntityId,
        /// The reader, which may be in this participant.
        reader: RemoteEndpoint,
    },
    /// A matched reader has other policies or addresses than before and still matches.
    ReaderChanged {
        /// The local writer.
        writer: EntityId,
        /// The reader as it is now.
        reader: RemoteEndpoint,
    },
    /// A matched reader is gone or no longer matches.
    ReaderUnmatched {
        /// The local writer.
        writer: EntityId,
        /// The reader.
        reader: Guid,
    },
    /// A local reader has a new writer.
    WriterMatched {
        /// The local reader.
        reader: EntityId,
        /// The writer, which may be in this participant.
        writer: RemoteEndpoint,
    },
    /// A matched writer has other policies or addresses than before and still matches.
    WriterChanged {
        /// The local reader.
        reader: EntityId,
        /// The writer as it is now.
        writer: RemoteEndpoint,
    },
    /// A matched writer is gone or no longer matches.
    WriterUnmatched {
        /// The local reader.
        reader: EntityId,
        /// The writer.
        writer: Guid,
    },
    /// A reader of the same topic requests more than a local writer offers.
    OfferedIncompatibleQos {
        /// The local writer.
        writer: EntityId,
        /// The reader.
        reader: Guid,
        /// All incompatible policies.
        policies: PolicySet,
    },
    /// A writer of the same topic offers less than a local reader requests.
    RequestedIncompatibleQos {
        /// The local reader.
        reader: EntityId,
        /// The writer.
        writer: Guid,
        /// All incompatible policies.
        policies: PolicySet,
    },
    /// An endpoint of the same topic that a local one could match has another type (INCONSISTENT_TOPIC).
    InconsistentTopic {
        /// The local endpoint.
        local: EntityId,
        /// The other endpoint.
        other: Guid,
        /// The name of the other endpoint's type.
        type_name: Arc<String>,
        /// How the types differ.
        difference: TypeDifference,
    },
    /// A participant, possibly this one, asserts that all its writers of a kind are alive.
    LivelinessAsserted {
        /// The participant.
        prefix: GuidPrefix,
        /// The kind; never `ManualByTopic`.
        kind: LivelinessKind,
    },
    /// The application has not asserted a local writer within its lease (LIVELINESS_LOST).
    LivelinessLost {
        /// The local writer.
        writer: EntityId,
    },
    /// Datagrams of another length than before reach a host in one packet.
    PathSizeChanged {
        /// The host.
        host: Ipv4Addr,
        /// The longest, in bytes without IP and UDP headers.
        size: u16,
    },
    /// Another participant of the domain was discovered:
    /// [`participant_data`](crate::participant::ParticipantCore::participant_data) has its name.
    ParticipantDiscovered {
        /// The participant.
        prefix: GuidPrefix,
        /// Its vendor.
        vendor: VendorId,
    },
    /// A participant said goodbye, was silent for longer than its lease, or had to make room. Its
    /// endpoints were reported as unmatched before.
    ParticipantLost {
        /// The participant.
        prefix: GuidPrefix,
    },
}

/// How the types of two endpoints of a topic differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TypeDifference {
    /// The types have different names.
    Name,
    /// One of the types has a key and the other has none.
    Key,
}

/// The data of a matched endpoint for a local one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteEndpoint {
    /// The endpoint.
    pub guid: Guid,
    /// Its vendor.
    pub vendor: VendorId,
    /// Its offered or requested policies.
    pub qos: Arc<Qos>,
    /// The address to send to: the best of its addresses.
    pub destinations: Destinations,
    /// The multicast group that it has also joined, if it can be reached through it.
    pub group: Option<GroupRoute>,
    /// Its granted socket buffer in bytes, if announced.
    pub receive_buffer: Option<u32>,
    /// Whether it is a reader that expects the policies of its writers with each sample.
    pub expects_inline_qos: bool,
    /// The content filter of a reader, which its writers may apply.
    pub content_filter: Option<Arc<ContentFilterProperty>>,
    /// Whether it delimits keys of appendable types in XCDR2, see
    /// [`ParticipantData::delimits_keys`](crate::spdp::ParticipantData::delimits_keys).
    pub delimits_keys: bool,
    /// How long its participant took to answer when it was discovered, which is a round trip at least. Zero for this
    /// participant.
    pub answer_time: Duration,
}

impl RemoteEndpoint {
    /// Returns the address to send to.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddrV4> {
        self.destinations.first().copied()
    }
}
