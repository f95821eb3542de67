//! Weir's DDS engine: publish and subscribe over RTPS/UDP.
//!
//! The API follows the names of OMG DDS 1.4, the wire protocol is DDSI-RTPS 2.5. Interoperability
//! is tested with Cyclone DDS and Fast DDS. Linux only.
//!
//! ```
//! use std::time::Duration;
//! use weir_dds::{DataReaderQos, DataWriterQos, DdsType, DomainParticipant, ParticipantSettings};
//!
//! #[derive(DdsType, Default, Debug, PartialEq)]
//! #[dds(extensibility = "final")]
//! struct Temperature {
//!     #[dds(key)]
//!     sensor: u32,
//!     celsius: f64,
//! }
//!
//! let participant = DomainParticipant::new(87, ParticipantSettings::default().interface("lo"))?;
//! let topic = participant.create_topic::<Temperature>("Temperatures")?;
//! let writer = participant.create_publisher()?.create_datawriter(&topic, DataWriterQos::default().keep_all())?;
//! let reader =
//!     participant.create_subscriber()?.create_datareader(&topic, DataReaderQos::default().reliable().keep_all())?;
//!
//! writer.wait_for_subscriptions(1, Duration::from_secs(10))?;
//! writer.write(&Temperature { sensor: 1, celsius: 21.5 })?;
//!
//! reader.wait_for_data(Duration::from_secs(10))?;
//! assert_eq!(reader.take(1)[0].data(), Some(&Temperature { sensor: 1, celsius: 21.5 }));
//! # Ok::<(), weir_dds::DdsError>(())
//! ```
//!
//! # How it is fast
//!
//! - [`DataWriter::write`] encodes the sample into the writer's history and sends it from there, on
//!   the caller's thread. Retransmissions send the same bytes. Only [`PublishMode::Asynchronous`]
//!   adds a sending thread.
//! - Writes in quick succession leave together by UDP segmentation offload ([`Coalescing`]). A
//!   single write leaves at once.
//! - A thread that blocks in [`DataReader::wait_for_data`] also drains the sockets. How it waits is
//!   a [`WaitStrategy`].
//! - Large samples need no user-space copy when writing ([`DataWriter::loan`]) and one when
//!   reading: from the datagrams to the block where they are reassembled. A member of type
//!   [`Bytes`] refers to that block and keeps it alive until it is dropped.
//! - After warm-up, nothing is allocated per sample ([`DataReader::take_into`],
//!   [`DataReader::take_next_sample`]).

mod addresses;
mod announced_qos;
mod builtin_subscriber;
mod builtin_topics;
mod clock;
mod condition;
mod contained;
mod content_filter;
mod data_reader;
mod data_writer;
mod default_qos;
mod discovered;
mod driver;
mod dscp;
mod enabling;
mod error;
mod group_conditions;
mod group_qos;
mod instance_handle;
mod key;
mod levels;
mod limits;
mod limits_reached;
mod listener;
mod multicast;
mod participant;
mod publisher;
mod qos;
mod qos_provider;
mod query;
mod random;
mod sample;
mod settings;
mod shared_payload;
mod stage_times;
mod static_discovery;
mod status;
mod status_mask;
mod subscriber;
mod topic;
mod upper_listeners;
mod wait_set;
mod wait_strategy;

pub use weir_cdr as cdr;
pub use weir_cdr::{Bytes, DdsType};
pub use weir_rtps::budget;
pub use weir_rtps::limits::{EndpointLimits, Limits};
pub use weir_rtps::reader::ReaderCounters;
pub use weir_rtps::writer::WriterCounters;
pub use weir_wire::{Guid, GuidPrefix, SequenceNumber, VendorId};

pub use announced_qos::AnnouncedQos;
pub use builtin_subscriber::BuiltinSubscriber;
pub use builtin_topics::{
    ParticipantBuiltinTopicData, PublicationBuiltinTopicData, SubscriptionBuiltinTopicData,
    TopicBuiltinTopicData,
};
pub use condition::{Condition, GuardCondition, StatusCondition};
pub use contained::FoundTopic;
pub use content_filter::{ContentFilteredTopic, TopicDescription};
pub use data_reader::asynchronous::SampleStream;
pub use data_reader::conditions::ReadCondition;
pub use data_reader::iteration::SampleIter;
pub use data_reader::selection::Selection;
pub use data_reader::serialized::SerializedSample;
pub use data_reader::{AnyDataReader, DataReader};
pub use data_writer::loan::{Loan, NotWritten};
pub use data_writer::{AnyDataWriter, DataWriter};
pub use driver::receive_counters::ReceiveCounters;
pub use driver::sender::SendCounters;
pub use dscp::DscpMapping;
pub use error::{DdsError, Result};
pub use group_qos::{PublisherQos, SubscriberQos};
pub use instance_handle::InstanceHandle;
pub use limits::{LimitsError, LimitsTable};
pub use limits_reached::LimitReached;
pub use listener::{
    DataReaderListener, DataWriterListener, DomainParticipantListener, PublisherListener, SubscriberListener,
    TopicListener,
};
pub use multicast::MulticastGroup;
pub use participant::DomainParticipant;
pub use publisher::Publisher;
pub use qos::{
    BatchPolicy, Coalescing, DataReaderQos, DataRepresentation, DataWriterQos, DestinationOrder,
    DomainParticipantQos, Durability, DurabilityService, DurabilityStatus, EntityFactory, History, INFINITE,
    Liveliness, LivelinessKind, Ownership, PolicyId, PolicySet, Presentation, PresentationScope, PublishMode,
    ReaderDataLifecycle, Reliability, ResourceLimits, TopicQos, TypeConsistency, TypeConsistencyKind,
};
pub use qos_provider::{QosProfileError, QosProvider};
pub use query::Query;
pub use sample::{InstanceState, Sample, SampleInfo, SampleRanks, SampleSeq, SampleState, States, ViewState};
pub use settings::{
    ParticipantSettings, Peer, SEND_BUFFER_BYTES, SOCKET_BUFFER_BYTES, domain_id_from_environment,
};
pub use stage_times::{ReceiveTimes, SendTimes};
pub use static_discovery::{StaticDiscovery, StaticDiscoveryError};
pub use status::{
    DeadlineMissedStatus, IncompatibleQosStatus, InconsistentEndpoint, InconsistentTopicStatus,
    LivelinessChangedStatus, LivelinessLostStatus, OfferedDeadlineMissedStatus, OfferedIncompatibleQosStatus,
    PublicationMatchedStatus, QosPolicyCount, ReaderInactivityStatus, RequestedDeadlineMissedStatus,
    RequestedIncompatibleQosStatus, SampleLostStatus, SampleRejectedReason, SampleRejectedStatus,
    SubscriptionMatchedStatus,
};
pub use status_mask::{StatusKind, StatusMask};
pub use subscriber::Subscriber;
pub use topic::{AnyTopic, Topic};
pub use upper_listeners::Untyped;
pub use wait_set::{ActiveConditions, EventFd, WaitSet};
pub use wait_strategy::{NotAWaitStrategy, WaitStrategy};
pub use weir_rtps::discovery_event::TypeDifference;
pub use weir_rtps::participant::{DiscoveryCounters, DiscoveryProgress};
pub use weir_rtps::path::{EcnState, PathReport};
pub use weir_rtps::static_peers::StaticDifference;

/// Keeps the listings of the guide compiling and running.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/library.md")]
struct Guide;

/// Keeps the listing of the page about types compiling and running.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/types.md")]
struct Types;

/// Keeps the listing of the page about multicast compiling.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/multicast.md")]
struct Multicast;

/// Keeps the listings of the page about settings for speed compiling and running.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/choosing.md")]
struct Choosing;

/// Keeps the listing of the page about missing data compiling.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/no-data.md")]
struct NoData;
