//! QoS of writers and readers (DDS 1.4 §2.2.3), with the defaults of the specification.
//!
//! ```
//! use weir_dds::{DataReaderQos, DataWriterQos};
//!
//! let writer = DataWriterQos::default().reliable().keep_all();
//! let reader = DataReaderQos::default().reliable().keep_last(10);
//! # let _ = (writer, reader);
//! ```

use std::time::Duration;

use weir_cdr::Encoding;
use weir_rtps::config;
use weir_rtps::qos::{Presentation, PresentationScope, XCDR1, XCDR2};
pub use weir_rtps::writer::BatchPolicy;

pub use weir_rtps::qos::{
    Durability, History, INFINITE, Liveliness, LivelinessKind, PolicyId, Qos, Reliability, ResourceLimits,
};

use crate::error::{DdsError, Result};
use crate::multicast::MulticastGroup;

/// Whether writes in quick succession leave together, each sample in a datagram of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coalescing {
    /// One send call per sample.
    Off,
    /// Only when the gap between two writes is shorter than a send call do samples wait for each other: the next write
    /// sends them after the time of about three send calls, or of one where the application has time between its
    /// writes. When no write comes they leave after 200 us, or, if that is longer, after a sixteenth of the run of
    /// writes without a pause (of more than 50 us) that they end; after `delay_max` at the latest. A sample that is
    /// written alone leaves at once.
    Automatic {
        /// Longest time that a sample may be held back; by default 1 ms.
        delay_max: Duration,
    },
}

impl Default for Coalescing {
    fn default() -> Self {
        Self::Automatic { delay_max: config::COALESCING_DELAY_MAX }
    }
}

/// Which thread sends what is written (PUBLISH_MODE, as RTI Connext and Fast DDS have it; DDS 1.4 has no such policy).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PublishMode {
    /// The thread that writes. No other thread has to be woken on the way of a sample: this is faster.
    #[default]
    Synchronous,
    /// A thread of the writer's: a write leaves its sample in the history and returns, however large it is and however long
    /// sending takes.
    ///
    /// What was not sent yet counts as kept. A reliable KEEP_ALL writer waits up to `max_blocking_time` while unacknowledged
    /// samples, unsent ones included, fill the window of its readers; a best-effort one while 4 MiB of kernel memory's worth
    /// are unsent. KEEP_LAST replaces samples that were not sent yet, so a burst of more than its depth may leave in part.
    /// The thread waits for samples as the participant's [`WaitStrategy`](crate::WaitStrategy) says.
    /// [`DataWriter::wait_for_asynchronous_publishing`](crate::DataWriter::wait_for_asynchronous_publishing) tells when
    /// everything was sent; a writer that is dropped sends it first, for as long as a write may block and at least a second.
    Asynchronous,
}

/// QoS of a writer: reliable, volatile, keeping the last sample, unless told otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataWriterQos {
    /// The policies that readers are told.
    pub policies: Qos,
    /// Whether writes in quick succession leave together.
    pub coalescing: Coalescing,
    /// Whether samples are collected in one message; off unless told otherwise.
    pub batch: Option<BatchPolicy>,
    /// Which thread sends; the one that writes unless told otherwise.
    pub publish_mode: PublishMode,
    /// Whether an instance that the writer unregisters is disposed as well (WRITER_DATA_LIFECYCLE); it is unless told
    /// otherwise.
    pub autodispose_unregistered_instances: bool,
    /// Whether readers that listen to the same multicast group get samples by it; they do unless told otherwise.
    pub multicast: bool,
}

impl Default for DataWriterQos {
    fn default() -> Self {
        Self {
            policies: Qos::for_writer(),
            coalescing: Coalescing::default(),
            batch: None,
            publish_mode: PublishMode::default(),
            autodispose_unregistered_instances: true,
            multicast: true,
        }
    }
}

/// QoS of a reader: best effort, volatile, keeping the last sample, unless told otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataReaderQos {
    /// The policies that writers are told.
    pub policies: Qos,
    /// A multicast group to listen to, beside the unicast address; `None`: that of the participant, if it has one.
    pub multicast: Option<MulticastGroup>,
}

impl Default for DataReaderQos {
    fn default() -> Self {
        Self { policies: Qos { representation: vec![XCDR1, XCDR2], ..Qos::for_reader() }, multicast: None }
    }
}

/// How samples are encoded (DDS-XTypes 1.3 §7.6.3.1, DATA_REPRESENTATION).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataRepresentation {
    /// What every engine reads.
    Xcdr1,
    /// Says where appendable types end, so that both sides may have members that the other does not have.
    Xcdr2,
}

impl DataRepresentation {
    const fn id(self) -> i16 {
        match self {
            Self::Xcdr1 => XCDR1,
            Self::Xcdr2 => XCDR2,
        }
    }

    /// The representation that peers know by this number.
    pub(crate) fn from_id(id: i16) -> Result<Self> {
        match id {
            XCDR1 => Ok(Self::Xcdr1),
            XCDR2 => Ok(Self::Xcdr2),
            _ => Err(DdsError::InconsistentPolicy(format!(
                "DATA_REPRESENTATION: {id} is not supported, only XCDR1 ({XCDR1}) and XCDR2 ({XCDR2}) are"
            ))),
        }
    }

    pub(crate) const fn encoding(self) -> Encoding {
        match self {
            Self::Xcdr1 => Encoding::Xcdr1,
            Self::Xcdr2 => Encoding::Xcdr2,
        }
    }
}

/// Refuses what is announced and matched and then not enforced, or contradicts itself.
pub(crate) fn check_policies(policies: &Qos) -> Result<()> {
    check_enforced(policies)?;
    check_limits(policies)
}

/// Refuses values of policies that are not enforced: peers would rely on them (DDS 1.4 §2.2.3).
fn check_enforced(policies: &Qos) -> Result<()> {
    let default = Qos::for_reader();
    let refuse = |policy: &str, value: String, default: &str| {
        Err(DdsError::Unsupported(format!(
            "{policy}: {value} is not enforced yet: leave it at its default ({default})"
        )))
    };
    if policies.deadline != default.deadline {
        return refuse("DEADLINE", format!("a period of {:?}", policies.deadline), "infinite");
    }
    if policies.ownership != default.ownership {
        return refuse("OWNERSHIP", "EXCLUSIVE".to_owned(), "SHARED");
    }
    if policies.ownership_strength != default.ownership_strength {
        return refuse("OWNERSHIP_STRENGTH", format!("a strength of {}", policies.ownership_strength), "0");
    }
    if policies.lifespan != default.lifespan {
        return refuse("LIFESPAN", format!("a duration of {:?}", policies.lifespan), "infinite");
    }
    if policies.destination_order != default.destination_order {
        return refuse("DESTINATION_ORDER", "BY_SOURCE_TIMESTAMP".to_owned(), "BY_RECEPTION_TIMESTAMP");
    }
    if policies.presentation != default.presentation {
        let Presentation { scope, coherent_access, ordered_access } = policies.presentation;
        let scope = match scope {
            PresentationScope::Instance => "INSTANCE",
            PresentationScope::Topic => "TOPIC",
            PresentationScope::Group => "GROUP",
        };
        let value = format!(
            "access scope {scope}, coherent_access {coherent_access}, ordered_access {ordered_access}"
        );
        return refuse("PRESENTATION", value, "INSTANCE, false, false");
    }
    Ok(())
}

/// Refuses limits that contradict each other or the history (DDS 1.4 §2.2.3.18, §2.2.3.19).
fn check_limits(policies: &Qos) -> Result<()> {
    let refuse = |text: String| Err(DdsError::InconsistentPolicy(text));
    let limits = &policies.resource_limits;
    let counts = [
        ("max_samples", limits.max_samples),
        ("max_instances", limits.max_instances),
        ("max_samples_per_instance", limits.max_samples_per_instance),
    ];
    if let Some((name, _)) = counts.iter().find(|(_, limit)| *limit == Some(0)) {
        return refuse(format!(
            "RESOURCE_LIMITS: {name} is 0: it should be at least 1, or None for no bound"
        ));
    }
    if limits.max_bytes == Some(0) {
        return refuse("RESOURCE_LIMITS: max_bytes is 0: it should be at least 1, or None".to_owned());
    }
    if let (Some(all), Some(each)) = (limits.max_samples, limits.max_samples_per_instance)
        && all < each
    {
        return refuse(format!(
            "RESOURCE_LIMITS: max_samples ({all}) is less than max_samples_per_instance ({each})"
        ));
    }
    let History::KeepLast(depth) = policies.history else { return Ok(()) };
    if depth == 0 {
        return refuse("HISTORY: KEEP_LAST needs a depth of at least 1".to_owned());
    }
    let least = [("max_samples_per_instance", limits.max_samples_per_instance), counts[0]];
    match least
        .iter()
        .find_map(|(name, limit)| limit.filter(|limit| *limit < depth).map(|limit| (name, limit)))
    {
        Some((name, limit)) => {
            refuse(format!("HISTORY: a depth of {depth} does not fit RESOURCE_LIMITS: {name} is {limit}"))
        }
        None => Ok(()),
    }
}

macro_rules! fluent {
    ($qos:ty) => {
        impl $qos {
            /// Lost samples are sent again.
            #[must_use]
            pub fn reliable(mut self) -> Self {
                self.policies.reliability = Reliability::Reliable;
                self
            }

            /// Lost samples stay lost.
            #[must_use]
            pub fn best_effort(mut self) -> Self {
                self.policies.reliability = Reliability::BestEffort;
                self
            }

            /// Every sample is kept until it is delivered (a writer) or taken (a reader).
            #[must_use]
            pub fn keep_all(mut self) -> Self {
                self.policies.history = History::KeepAll;
                self
            }

            /// The last `depth` samples of each instance are kept.
            #[must_use]
            pub fn keep_last(mut self, depth: u32) -> Self {
                self.policies.history = History::KeepLast(depth);
                self
            }

            /// Bounds of what is kept.
            #[must_use]
            pub fn resource_limits(mut self, limits: ResourceLimits) -> Self {
                self.policies.resource_limits = limits;
                self
            }

            /// Readers that come late get what their writer still keeps of what it wrote before.
            #[must_use]
            pub fn transient_local(mut self) -> Self {
                self.policies.durability = Durability::TransientLocal;
                self
            }

            /// How a writer shows that it is alive, and how long it may be silent before its readers take it for
            /// dead; a reader names the least that it asks for.
            #[must_use]
            pub fn liveliness(mut self, kind: LivelinessKind, lease: Duration) -> Self {
                self.policies.liveliness = Liveliness { kind, lease };
                self
            }

            /// Names the partitions; patterns as in `fnmatch(3)`.
            #[must_use]
            pub fn partition(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
                self.policies.partition = names.into_iter().map(Into::into).collect();
                self
            }
        }
    };
}

fluent!(DataWriterQos);
fluent!(DataReaderQos);

impl DataReaderQos {
    /// Listens to a multicast group, beside the unicast address: a writer with several readers there sends each sample
    /// once. What was lost is repaired by unicast.
    #[must_use]
    pub fn multicast(mut self, group: MulticastGroup) -> Self {
        self.multicast = Some(group);
        self
    }

    /// The representations that are read, best first; all, unless told otherwise.
    #[must_use]
    pub fn data_representation(
        mut self,
        representations: impl IntoIterator<Item = DataRepresentation>,
    ) -> Self {
        self.policies.representation = representations.into_iter().map(DataRepresentation::id).collect();
        self
    }
}

impl DataWriterQos {
    /// The representation that is written; XCDR1, unless told otherwise.
    #[must_use]
    pub fn data_representation(mut self, representation: DataRepresentation) -> Self {
        self.policies.representation = vec![representation.id()];
        self
    }

    /// How long a write may wait for room (RELIABILITY, `max_blocking_time`).
    #[must_use]
    pub fn max_blocking_time(mut self, time: Duration) -> Self {
        self.policies.max_blocking_time = time;
        self
    }

    /// Whether an instance that the writer unregisters is disposed as well (WRITER_DATA_LIFECYCLE).
    #[must_use]
    pub fn autodispose_unregistered_instances(mut self, autodispose: bool) -> Self {
        self.autodispose_unregistered_instances = autodispose;
        self
    }

    /// Whether readers that listen to the same multicast group get samples by it.
    #[must_use]
    pub fn multicast(mut self, multicast: bool) -> Self {
        self.multicast = multicast;
        self
    }

    /// Whether writes in quick succession leave together.
    #[must_use]
    pub fn coalescing(mut self, coalescing: Coalescing) -> Self {
        self.coalescing = coalescing;
        self
    }

    /// Which thread sends what is written (PUBLISH_MODE).
    #[must_use]
    pub fn publish_mode(mut self, mode: PublishMode) -> Self {
        self.publish_mode = mode;
        self
    }

    /// Samples are collected in one message, as standard DATA submessages with the time stamp of the first.
    /// They leave when the message is full, when its time has come, with [`DataWriter::flush`], and before the
    /// application waits for anything. A sample with a time stamp of the caller's has a message of its own.
    ///
    /// [`DataWriter::flush`]: crate::DataWriter::flush
    #[must_use]
    pub fn batch(mut self, policy: BatchPolicy) -> Self {
        self.batch = Some(policy);
        self
    }
}
