//! QoS of writers and readers (DDS 1.4, 2.2.3).
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

use std::time::Duration;

use weir_cdr::Encoding;
use weir_rtps::config;
use weir_rtps::qos::{XCDR1, XCDR2};
pub use weir_rtps::writer::BatchPolicy;

pub use weir_rtps::qos::{
    DestinationOrder, Durability, History, INFINITE, Liveliness, LivelinessKind, Ownership, PolicyId,
    PolicySet, Presentation, PresentationScope, Qos, Reliability, ResourceLimits,
};

use crate::error::{DdsError, Result};
use crate::multicast::MulticastGroup;

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

/// QoS of a writer. Default: reliable, volatile, KEEP_LAST with depth 1.
///
/// ```
/// use std::time::Duration;
/// use weir_dds::{DataRepresentation, DataWriterQos};
///
/// let qos = DataWriterQos::default()
///     .keep_all()
///     .transient_local()
///     .max_blocking_time(Duration::from_millis(500))
///     .data_representation(DataRepresentation::Xcdr2);
/// # let _ = qos;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataWriterQos {
    /// The policies that are announced to readers.
    pub policies: Qos,
    /// Whether writes in quick succession leave together.
    pub coalescing: Coalescing,
    /// Whether samples are collected in one message; off by default.
    pub batch: Option<BatchPolicy>,
    /// Which thread sends; the writing thread by default.
    pub publish_mode: PublishMode,
    /// How long a reliable reader that acknowledges nothing may hold up a KEEP_ALL writer; by default as long as it is
    /// matched.
    ///
    /// DDS 1.4 has no such policy. See [`DataWriterQos::reader_inactivity`](DataWriterQos::reader_inactivity()).
    pub reader_inactivity: Option<Duration>,
    /// Whether unregistering an instance also disposes it; `true` by default.
    ///
    /// WRITER_DATA_LIFECYCLE, DDS 1.4, 2.2.3.21.
    pub autodispose_unregistered_instances: bool,
    /// Whether samples are sent to the multicast groups of readers; `true` by default.
    pub multicast: bool,
}

impl Default for DataWriterQos {
    fn default() -> Self {
        Self {
            policies: Qos::for_writer(),
            coalescing: Coalescing::default(),
            batch: None,
            publish_mode: PublishMode::default(),
            reader_inactivity: None,
            autodispose_unregistered_instances: true,
            multicast: true,
        }
    }
}

/// QoS of a reader. Default: best effort, volatile, KEEP_LAST with depth 1.
///
/// ```
/// use weir_dds::{DataReaderQos, ResourceLimits};
///
/// let limits = ResourceLimits { max_samples: Some(1_000), ..ResourceLimits::default() };
/// let qos = DataReaderQos::default().reliable().keep_all().resource_limits(limits);
/// # let _ = qos;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataReaderQos {
    /// The policies that are announced to writers.
    pub policies: Qos,
    /// A multicast group to join in addition to the unicast address.
    ///
    /// `None`: the participant's group
    /// ([`ParticipantSettings::data_multicast`](crate::ParticipantSettings::data_multicast)), if it
    /// has one.
    pub multicast: Option<MulticastGroup>,
}

impl Default for DataReaderQos {
    fn default() -> Self {
        Self { policies: Qos { representation: vec![XCDR1, XCDR2], ..Qos::for_reader() }, multicast: None }
    }
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
pub enum DataRepresentation {
    /// Every engine reads it.
    Xcdr1,
    /// Encodes the length of appendable types.
    ///
    /// So either side may have members that the other lacks.
    Xcdr2,
}

impl DataRepresentation {
    const fn id(self) -> i16 {
        match self {
            Self::Xcdr1 => XCDR1,
            Self::Xcdr2 => XCDR2,
        }
    }

    /// The representation with this id on the wire.
    pub(crate) fn from_id(id: i16) -> Result<Self> {
        match id {
            XCDR1 => Ok(Self::Xcdr1),
            XCDR2 => Ok(Self::Xcdr2),
            _ => Err(DdsError::InconsistentPolicy(format!(
                "DATA_REPRESENTATION: {id} is not supported: use XCDR1 ({XCDR1}) or XCDR2 ({XCDR2})"
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

/// Whose policies they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Writer,
    Reader,
}

/// Refuses policies that contradict each other or belong elsewhere.
pub(crate) fn check_policies(policies: &Qos, side: Side) -> Result<()> {
    check_presentation(policies)?;
    check_side(policies, side)?;
    if policies.deadline < policies.time_based_filter {
        return Err(DdsError::InconsistentPolicy(format!(
            "DEADLINE: a period of {:?} is shorter than the minimum separation of TIME_BASED_FILTER, {:?}: every \
             deadline would be missed",
            policies.deadline, policies.time_based_filter
        )));
    }
    check_limits(policies)
}

/// Refuses PRESENTATION in the QoS of an endpoint: it is a policy of publishers and subscribers (DDS 1.4, 2.2.3.6).
fn check_presentation(policies: &Qos) -> Result<()> {
    if policies.presentation == Presentation::DEFAULT {
        return Ok(());
    }
    Err(DdsError::InconsistentPolicy(
        "PRESENTATION: writers and readers have that of their publisher or subscriber: set it in PublisherQos or \
         SubscriberQos"
            .to_owned(),
    ))
}

/// Refuses values of policies that only the other side has: they would do nothing.
fn check_side(policies: &Qos, side: Side) -> Result<()> {
    let default = Qos::for_reader();
    let (other, misplaced) = match side {
        Side::Writer => {
            ("readers", [(policies.time_based_filter != default.time_based_filter, "TIME_BASED_FILTER"); 2])
        }
        Side::Reader => (
            "writers",
            [
                (policies.lifespan != default.lifespan, "LIFESPAN"),
                (policies.ownership_strength != default.ownership_strength, "OWNERSHIP_STRENGTH"),
            ],
        ),
    };
    match misplaced.iter().find(|(is_set, _)| *is_set) {
        Some((_, policy)) => Err(DdsError::InconsistentPolicy(format!(
            "{policy}: only {other} have this policy: leave it at its default"
        ))),
        None => Ok(()),
    }
}

/// Refuses limits that contradict each other or the history (DDS 1.4, 2.2.3.18, 2.2.3.19).
fn check_limits(policies: &Qos) -> Result<()> {
    let refuse = |text: String| Err(DdsError::InconsistentPolicy(text));
    let limits = &policies.resource_limits;
    let counts = [
        ("max_samples", limits.max_samples),
        ("max_instances", limits.max_instances),
        ("max_samples_per_instance", limits.max_samples_per_instance),
    ];
    if let Some((name, _)) = counts.iter().find(|(_, limit)| *limit == Some(0)) {
        return refuse(format!("RESOURCE_LIMITS: {name} is 0: use at least 1, or None for no bound"));
    }
    if limits.max_bytes == Some(0) {
        return refuse("RESOURCE_LIMITS: max_bytes is 0: use at least 1, or None".to_owned());
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
            /// Enables retransmission of lost samples.
            #[must_use]
            pub fn reliable(mut self) -> Self {
                self.policies.reliability = Reliability::Reliable;
                self
            }

            /// Disables retransmission: lost samples stay lost.
            #[must_use]
            pub fn best_effort(mut self) -> Self {
                self.policies.reliability = Reliability::BestEffort;
                self
            }

            /// Keeps every sample until it is delivered (writers) or taken (readers).
            #[must_use]
            pub fn keep_all(mut self) -> Self {
                self.policies.history = History::KeepAll;
                self
            }

            /// Keeps the last `depth` samples of each instance.
            ///
            /// A reliable writer without a key also keeps large samples that have been sent and are not acknowledged,
            /// up to 32 MiB. On links that lose packets, they would otherwise be replaced before they have arrived
            /// whole.
            #[must_use]
            pub fn keep_last(mut self, depth: u32) -> Self {
                self.policies.history = History::KeepLast(depth);
                self
            }

            /// Limits the samples, instances and bytes that are kept.
            #[must_use]
            pub fn resource_limits(mut self, limits: ResourceLimits) -> Self {
                self.policies.resource_limits = limits;
                self
            }

            /// Lets late-joining readers receive the samples that the writer still keeps.
            #[must_use]
            pub fn transient_local(mut self) -> Self {
                self.policies.durability = Durability::TransientLocal;
                self
            }

            /// Sets the kind and the lease of liveliness.
            ///
            /// A writer is considered not alive after a lease without an assertion. A reader names
            /// the minimum that it requires.
            #[must_use]
            pub fn liveliness(mut self, kind: LivelinessKind, lease: Duration) -> Self {
                self.policies.liveliness = Liveliness { kind, lease };
                self
            }

            /// Sets the longest time between two samples of an instance; infinite by default.
            ///
            /// DEADLINE, DDS 1.4, 2.2.3.7. A writer commits to write each instance at least once per period, from its
            /// first sample on until it is disposed or unregistered; a reader expects that. Each missed period counts
            /// in the status OFFERED_DEADLINE_MISSED or REQUESTED_DEADLINE_MISSED. A reader that requests a shorter
            /// period than is offered does not match.
            #[must_use]
            pub fn deadline(mut self, period: Duration) -> Self {
                self.policies.deadline = period;
                self
            }

            /// Sets whether several writers may update an instance at a time; `Shared` by default.
            ///
            /// OWNERSHIP, DDS 1.4, 2.2.3.9. Both sides must have the same kind. Exclusive: a reader is delivered only
            /// the samples of the strongest writer of each instance, until that writer unregisters the instance,
            /// leaves, is not alive any more, or misses the reader's deadline for the instance.
            #[must_use]
            pub fn ownership(mut self, kind: Ownership) -> Self {
                self.policies.ownership = kind;
                self
            }

            /// Sets by which timestamp samples of several writers are ordered; that of reception by default.
            ///
            /// DESTINATION_ORDER, DDS 1.4, 2.2.3.17. By source timestamp, a reader leaves out samples that are older
            /// than the last one of their instance, so that all readers end with the same value. The clocks of the
            /// writers then decide: they should be synchronized.
            #[must_use]
            pub fn destination_order(mut self, kind: DestinationOrder) -> Self {
                self.policies.destination_order = kind;
                self
            }

            /// Sets the partitions; names are patterns as in `fnmatch(3)`.
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
    /// Joins a multicast group in addition to the unicast address.
    ///
    /// A writer with several readers in the group sends each sample once. Repairs use unicast.
    #[must_use]
    pub fn multicast(mut self, group: MulticastGroup) -> Self {
        self.multicast = Some(group);
        self
    }

    /// Sets the least time between two values of an instance; zero by default.
    ///
    /// TIME_BASED_FILTER, DDS 1.4, 2.2.3.12. Values that arrive sooner after the last one that was delivered are left
    /// out, and are not delivered later. Ends of instances always are.
    #[must_use]
    pub fn time_based_filter(mut self, minimum_separation: Duration) -> Self {
        self.policies.time_based_filter = minimum_separation;
        self
    }

    /// Sets the accepted representations, preferred first; all by default.
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
    /// Sets the representation; XCDR1 by default.
    #[must_use]
    pub fn data_representation(mut self, representation: DataRepresentation) -> Self {
        self.policies.representation = vec![representation.id()];
        self
    }

    /// Sets how long samples are valid after they were written; without end by default.
    ///
    /// LIFESPAN, DDS 1.4, 2.2.3.16. Expired samples are not sent any more, neither as repairs nor to late readers, and
    /// make room in the history. Readers remove a sample that was not taken within this time after its arrival. No
    /// clocks are compared: a sample that waited at the writer may last up to twice as long in all.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weir_dds::DataWriterQos;
    ///
    /// let qos = DataWriterQos::default().transient_local().keep_last(10).lifespan(Duration::from_secs(5));
    /// # let _ = qos;
    /// ```
    #[must_use]
    pub fn lifespan(mut self, lifespan: Duration) -> Self {
        self.policies.lifespan = lifespan;
        self
    }

    /// Sets the strength of the writer; 0 by default.
    ///
    /// OWNERSHIP_STRENGTH, DDS 1.4, 2.2.3.10. Under exclusive ownership, the strongest writer owns an instance. Of
    /// equal ones, the one with the lower GUID does.
    #[must_use]
    pub fn ownership_strength(mut self, strength: i32) -> Self {
        self.policies.ownership_strength = strength;
        self
    }

    /// Sets the maximum time that a write may block (RELIABILITY).
    #[must_use]
    pub fn max_blocking_time(mut self, time: Duration) -> Self {
        self.policies.max_blocking_time = time;
        self
    }

    /// Sets how urgent the samples are, compared to those of other writers of the participant; 0 by default.
    ///
    /// TRANSPORT_PRIORITY, DDS 1.4, 2.2.3.15. Where a path to another host limits what is sent, writers of higher
    /// priority go first. Those of lower priority are left at least an eighth of what these send. At equal priority,
    /// writers get equal shares, and those that send less than their share go first. So a small topic needs no
    /// priority to pass large ones.
    ///
    /// Networks can distinguish the packets by their code point (DSCP), to which
    /// [`ParticipantSettings::dscp`](crate::ParticipantSettings::dscp) maps the priority.
    ///
    /// ```
    /// use weir_dds::DataWriterQos;
    ///
    /// let point_clouds = DataWriterQos::default().keep_last(10).transport_priority(-1);
    /// # let _ = point_clouds;
    /// ```
    #[must_use]
    pub fn transport_priority(mut self, priority: i32) -> Self {
        self.policies.transport_priority = priority;
        self
    }

    /// Sets the additional delay that samples may have; none by default.
    ///
    /// LATENCY_BUDGET, DDS 1.4, 2.2.3.8, a hint. Where a path to another host limits what is sent, other writers of
    /// the same priority may go first for this time, 100 ms at most. A reader that requests a shorter budget does not
    /// match.
    #[must_use]
    pub fn latency_budget(mut self, budget: Duration) -> Self {
        self.policies.latency_budget = budget;
        self
    }

    /// Sets how long a reliable reader that acknowledges nothing may hold up a KEEP_ALL writer.
    ///
    /// By default, as in DDS, the writer waits for a reader for as long as its participant is alive, and after that
    /// until its lease ends. One stuck reader therefore holds up the writer and all its other readers.
    ///
    /// With this policy, the writer stops waiting for a reader that has acknowledged nothing new for `time` while
    /// samples wait for it. It serves the reader as a best-effort reader from then on. When the reader acknowledges
    /// something new, it is reliable again, and continues with the first sample that the writer still has.
    /// [`DataWriter::reader_inactivity_status`](crate::DataWriter::reader_inactivity_status) counts such readers.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weir_dds::DataWriterQos;
    ///
    /// let qos = DataWriterQos::default().keep_all().reader_inactivity(Duration::from_secs(2));
    /// # let _ = qos;
    /// ```
    #[must_use]
    pub fn reader_inactivity(mut self, time: Duration) -> Self {
        self.reader_inactivity = Some(time);
        self
    }

    /// Sets whether unregistering an instance also disposes it.
    ///
    /// WRITER_DATA_LIFECYCLE, DDS 1.4, 2.2.3.21.
    #[must_use]
    pub fn autodispose_unregistered_instances(mut self, autodispose: bool) -> Self {
        self.autodispose_unregistered_instances = autodispose;
        self
    }

    /// Sets whether samples are sent to the multicast groups of readers.
    #[must_use]
    pub fn multicast(mut self, multicast: bool) -> Self {
        self.multicast = multicast;
        self
    }

    /// Sets whether writes in quick succession leave together.
    #[must_use]
    pub fn coalescing(mut self, coalescing: Coalescing) -> Self {
        self.coalescing = coalescing;
        self
    }

    /// Sets which thread sends (PUBLISH_MODE).
    #[must_use]
    pub fn publish_mode(mut self, mode: PublishMode) -> Self {
        self.publish_mode = mode;
        self
    }

    /// Collects samples in one message.
    ///
    /// They are standard DATA submessages with the timestamp of the first.
    ///
    /// The message is sent when it is full, when its delay has passed, on [`DataWriter::flush`],
    /// and before the application blocks in a wait call. A sample written with a timestamp is sent
    /// in its own message.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weir_dds::{BatchPolicy, DataWriterQos};
    ///
    /// let policy =
    ///     BatchPolicy { max_bytes: 1_400, max_samples: 100, max_delay: Duration::from_millis(1) };
    /// let qos = DataWriterQos::default().batch(policy);
    /// # let _ = qos;
    /// ```
    ///
    /// [`DataWriter::flush`]: crate::DataWriter::flush
    #[must_use]
    pub fn batch(mut self, policy: BatchPolicy) -> Self {
        self.batch = Some(policy);
        self
    }
}
