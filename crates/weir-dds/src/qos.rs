//! QoS of participants, topics, writers and readers (DDS 1.4, 2.2.3).
//!
//! Each kind of entity has a type with the policies that it has. New policies may be added: create values from
//! `default()`, then set fields or call methods.
//!
//! The defaults are those of the specification.
//!
//! ```
//! use weir_dds::{DataReaderQos, DataWriterQos};
//!
//! let writer = DataWriterQos::default().reliable().keep_all();
//! let reader = DataReaderQos::default().reliable().keep_last(10);
//! # let _ = (writer, reader);
//! ```

mod checks;
mod common;
mod data_reader_qos;
mod data_writer_qos;
mod durability_status;
mod immutable;
mod participant_qos;
mod topic_qos;

use std::time::Duration;

use weir_cdr::Encoding;
use weir_rtps::config;
use weir_rtps::qos::{XCDR1, XCDR2};
pub use weir_rtps::writer::BatchPolicy;

pub use weir_rtps::qos::{
    DestinationOrder, Durability, DurabilityService, History, INFINITE, Liveliness, LivelinessKind,
    Ownership, PolicyId, PolicySet, Presentation, PresentationScope, ReaderDataLifecycle, Reliability,
    ResourceLimits, TypeConsistency, TypeConsistencyKind,
};

pub(crate) use checks::check_policies;
pub use data_reader_qos::DataReaderQos;
pub use data_writer_qos::DataWriterQos;
pub use durability_status::DurabilityStatus;
pub use participant_qos::{DomainParticipantQos, EntityFactory};
pub use topic_qos::TopicQos;

/// Most bytes of user, topic or group data: so many are kept of other endpoints, too.
pub(crate) const USER_DATA_MAX: usize = 1024;

/// Whether writes in quick succession leave together.
///
/// Each sample keeps its own datagram.
///
/// ```
/// use weir_dds::{Coalescing, DataWriterQos};
///
/// let qos = DataWriterQos::default().coalescing(Coalescing::Off);
/// # let _ = qos;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Coalescing {
    /// One send call per sample.
    Off,
    /// Coalesces samples if the gap between two writes is shorter than a send call.
    ///
    /// The next write sends them after the time of about three send calls, or of one if the
    /// application has time between its writes. Without a next write they leave after 200 us, or
    /// after a sixteenth of the current run of writes (one without a pause of more than 50 us) if
    /// that is longer; after `delay_max` at the latest. A single write leaves at once.
    Automatic {
        /// Maximum time that a sample may be held back; 1 ms by default.
        delay_max: Duration,
    },
}

impl Default for Coalescing {
    fn default() -> Self {
        Self::Automatic { delay_max: config::COALESCING_DELAY_MAX }
    }
}

/// Which thread sends samples (PUBLISH_MODE).
///
/// DDS 1.4 has no such policy; RTI Connext and Fast DDS have.
///
/// ```
/// use weir_dds::{DataWriterQos, PublishMode};
///
/// let qos = DataWriterQos::default().keep_all().publish_mode(PublishMode::Asynchronous);
/// # let _ = qos;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PublishMode {
    /// The writing thread sends. This is faster: no other thread has to be woken.
    #[default]
    Synchronous,
    /// A thread of the writer sends.
    ///
    /// A write stores its sample in the history and returns, whatever its size.
    ///
    /// Unsent samples count as kept. A reliable KEEP_ALL writer blocks for up to
    /// `max_blocking_time` while unacknowledged samples, unsent ones included, fill its readers'
    /// window. A best-effort KEEP_ALL writer blocks while unsent samples would take 4 MiB of kernel
    /// memory. KEEP_LAST replaces unsent samples, so a burst longer than its depth may leave in
    /// part. The thread waits for samples as the participant's
    /// [`WaitStrategy`](crate::WaitStrategy) says.
    ///
    /// [`DataWriter::wait_for_asynchronous_publishing`](crate::DataWriter::wait_for_asynchronous_publishing)
    /// waits until all samples are sent. A dropped writer first sends what is left, for at most
    /// `max_blocking_time` or one second, whichever is longer.
    Asynchronous,
}

/// How samples are encoded (DDS-XTypes 1.3, 7.6.3.1, DATA_REPRESENTATION).
///
/// ```
/// use weir_dds::{DataReaderQos, DataRepresentation};
///
/// let qos = DataReaderQos::default().data_representation([DataRepresentation::Xcdr2]);
/// # let _ = qos;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DataRepresentation {
    /// Every engine reads it.
    Xcdr1,
    /// Encodes the length of appendable types.
    ///
    /// So either side may have members that the other lacks.
    Xcdr2,
}

impl DataRepresentation {
    pub(crate) const fn id(self) -> i16 {
        match self {
            Self::Xcdr1 => XCDR1,
            Self::Xcdr2 => XCDR2,
        }
    }

    pub(crate) const fn encoding(self) -> Encoding {
        match self {
            Self::Xcdr1 => Encoding::Xcdr1,
            Self::Xcdr2 => Encoding::Xcdr2,
        }
    }
}
