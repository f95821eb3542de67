//! What discovery tells the application: who came, who went, what fits together and what does not.

use core::net::SocketAddrV4;

use weir_wire::{EntityId, Guid, GuidPrefix, VendorId};

use crate::multicast::GroupRoute;
use crate::outbox::Destinations;
use crate::qos::{LivelinessKind, PolicyId, Qos};

/// One change in what is known of others. The local endpoint is named by its [`EntityId`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscoveryEvent {
    /// A local writer has a new reader.
    ReaderMatched {
        /// The local writer.
        writer: EntityId,
        /// The reader, which may be one of this participant.
        reader: RemoteEndpoint,
    },
    /// A matched reader has other policies or addresses than before and still matches.
    ReaderChanged {
        /// The local writer.
        writer: EntityId,
        /// The reader as it is now.
        reader: RemoteEndpoint,
    },
    /// A matched reader is gone or no longer fits.
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
        /// The writer, which may be one of this participant.
        writer: RemoteEndpoint,
    },
    /// A matched writer has other policies or addresses than before and still matches.
    WriterChanged {
        /// The local reader.
        reader: EntityId,
        /// The writer as it is now.
        writer: RemoteEndpoint,
    },
    /// A matched writer is gone or no longer fits.
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
        /// The first policy that does not fit.
        policy: PolicyId,
    },
    /// A writer of the same topic offers less than a local reader requests.
    RequestedIncompatibleQos {
        /// The local reader.
        reader: EntityId,
        /// The writer.
        writer: Guid,
        /// The first policy that does not fit.
        policy: PolicyId,
    },
    /// A participant, which may be this one, says that all its writers of a kind are alive.
    LivelinessAsserted {
        /// Which.
        prefix: GuidPrefix,
        /// The kind; never `ManualByTopic`.
        kind: LivelinessKind,
    },
    /// The application has not asserted a local writer within its lease (LIVELINESS_LOST).
    LivelinessLost {
        /// The local writer.
        writer: EntityId,
    },
    /// Another participant of the domain was heard of.
    ParticipantDiscovered {
        /// Which.
        prefix: GuidPrefix,
        /// Whose implementation it is.
        vendor: VendorId,
        /// What it calls itself.
        name: Option<String>,
    },
    /// A participant said goodbye, fell silent for longer than its lease, or had to make room. Its endpoints
    /// were reported as unmatched before.
    ParticipantLost {
        /// Which.
        prefix: GuidPrefix,
    },
}

/// What a local endpoint needs to know of a matched one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteEndpoint {
    /// Which endpoint.
    pub guid: Guid,
    /// Whose implementation it is.
    pub vendor: VendorId,
    /// What it offers or requests.
    pub qos: Qos,
    /// Where to send to: the best of its addresses.
    pub destinations: Destinations,
    /// The multicast group to which it listens, too, if it is reached that way.
    pub group: Option<GroupRoute>,
    /// Bytes that its socket buffer was granted, if it says so.
    pub receive_buffer: Option<u32>,
    /// Whether it delimits keys of appendable types in XCDR2, see
    /// [`ParticipantData::delimits_keys`](crate::spdp::ParticipantData::delimits_keys).
    pub delimits_keys: bool,
}

impl RemoteEndpoint {
    /// The address to send to.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddrV4> {
        self.destinations.first().copied()
    }
}
