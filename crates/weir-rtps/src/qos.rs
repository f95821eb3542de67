//! Quality-of-service policies of one endpoint, as RTPS peers see them.
//!
//! Only values live here. Which offered and requested values fit together is decided in
//! [`qos_match`](crate::qos_match), how they look on the wire in `qos_parameters`,
//! and what they make an endpoint do in the writer and reader cores. An endless period is [`INFINITE`], so
//! periods compare as they read.

use core::time::Duration;

/// The period that never ends (`DURATION_INFINITE`).
pub const INFINITE: Duration = Duration::MAX;

/// The policies of one writer or reader (DDS 1.4 §2.2.3); those that a peer must know travel in SEDP.
///
/// `deadline`, `ownership`, `ownership_strength`, `lifespan`, `destination_order` and `presentation` are announced and
/// matched, but not enforced. weir-dds refuses writers and readers whose values are not the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qos {
    /// Whether lost samples are repaired.
    pub reliability: Reliability,
    /// How long a reliable `write` may wait for room.
    pub max_blocking_time: Duration,
    /// What readers that come later still get.
    pub durability: Durability,
    /// Which samples of an instance are kept.
    pub history: History,
    /// The longest time between two samples of an instance.
    pub deadline: Duration,
    /// A hint: the delay that may be added on the way.
    pub latency_budget: Duration,
    /// How the writer shows that it is alive.
    pub liveliness: Liveliness,
    /// Whether several writers may update an instance at a time.
    pub ownership: Ownership,
    /// Under exclusive ownership, the strongest live writer owns the instance.
    pub ownership_strength: i32,
    /// By which time stamp samples of several writers are ordered.
    pub destination_order: DestinationOrder,
    /// Coherent and ordered access over several instances or topics.
    pub presentation: Presentation,
    /// Names, or patterns as in `fnmatch(3)`; none at all means the partition with the empty name.
    pub partition: Vec<String>,
    /// How long a sample stays valid after it was written.
    pub lifespan: Duration,
    /// Ids of the data representations ([`XCDR1`], [`XCDR2`]), best first; none at all means [`XCDR1`].
    /// A writer offers only its first.
    pub representation: Vec<i16>,
    /// Bounds of what is kept; local, never announced.
    pub resource_limits: ResourceLimits,
    /// Opaque octets for the application at the other end.
    pub user_data: Vec<u8>,
}

impl Qos {
    /// The defaults of a DataWriter: reliable, otherwise as [`for_reader`](Self::for_reader) (DDS 1.4
    /// §2.2.3).
    #[must_use]
    pub fn for_writer() -> Self {
        Self { reliability: Reliability::Reliable, ..Self::for_reader() }
    }

    /// The defaults of a DataReader: best effort, volatile, keep the last one (DDS 1.4 §2.2.3).
    #[must_use]
    pub fn for_reader() -> Self {
        Self {
            reliability: Reliability::BestEffort,
            max_blocking_time: Duration::from_millis(100),
            durability: Durability::Volatile,
            history: History::KeepLast(1),
            deadline: INFINITE,
            latency_budget: Duration::ZERO,
            liveliness: Liveliness { kind: LivelinessKind::Automatic, lease: INFINITE },
            ownership: Ownership::Shared,
            ownership_strength: 0,
            destination_order: DestinationOrder::ByReceptionTimestamp,
            presentation: Presentation {
                scope: PresentationScope::Instance,
                coherent_access: false,
                ordered_access: false,
            },
            partition: Vec::new(),
            lifespan: INFINITE,
            representation: Vec::new(),
            resource_limits: ResourceLimits::UNLIMITED,
            user_data: Vec::new(),
        }
    }
}

/// RELIABILITY: whether lost samples are repaired. Ordered by strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reliability {
    /// What is lost stays lost.
    BestEffort,
    /// What is lost is sent again.
    Reliable,
}

/// DURABILITY: what a reader that comes later still gets. Ordered by strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// Nothing from before the match.
    Volatile,
    /// What the writer still keeps.
    TransientLocal,
    /// What a service keeps in memory; treated as [`TransientLocal`](Self::TransientLocal) by an engine
    /// without one.
    Transient,
    /// What a service keeps on disk; treated as [`TransientLocal`](Self::TransientLocal) by an engine without
    /// one.
    Persistent,
}

/// HISTORY: which samples of an instance are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum History {
    /// The last so many (at least 1).
    KeepLast(u32),
    /// All of them, until every matched reliable reader has them.
    KeepAll,
}

/// LIVELINESS: how a writer shows that it is alive, and how long it may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Liveliness {
    /// Who asserts it.
    pub kind: LivelinessKind,
    /// The longest silence.
    pub lease: Duration,
}

/// Who asserts a writer's liveliness. Ordered by strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LivelinessKind {
    /// The middleware, as long as the participant lives.
    Automatic,
    /// The application, once for all writers of the participant.
    ManualByParticipant,
    /// The application, for each writer.
    ManualByTopic,
}

/// OWNERSHIP: whether several writers may update an instance at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ownership {
    /// Every writer's samples are delivered.
    Shared,
    /// Only those of the strongest live writer.
    Exclusive,
}

/// DESTINATION_ORDER: by which time stamp samples of several writers are ordered. Ordered by strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DestinationOrder {
    /// By the reader's clock, on arrival.
    ByReceptionTimestamp,
    /// By the writers' clocks.
    BySourceTimestamp,
}

/// PRESENTATION: coherent and ordered access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Presentation {
    /// The largest group of samples that the two flags speak of.
    pub scope: PresentationScope,
    /// Sets of changes become visible as a whole.
    pub coherent_access: bool,
    /// Changes become visible in the order in which they were made.
    pub ordered_access: bool,
}

/// The largest group of samples that [`Presentation`] speaks of. Ordered by strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PresentationScope {
    /// Each instance on its own.
    Instance,
    /// All instances of a writer.
    Topic,
    /// All writers of a publisher.
    Group,
}

/// RESOURCE_LIMITS: bounds of what is kept (DDS 1.4 §2.2.3.19); `None` is no bound.
///
/// What happens at a limit:
///
/// | limit | writer | reader |
/// |---|---|---|
/// | `max_samples`, `max_samples_per_instance`, `max_bytes` | KEEP_LAST replaces; otherwise a write waits up to `max_blocking_time` for acknowledgements, and fails at once when none would make room | the sample is rejected; a reliable writer sends it again when there is room |
/// | `max_instances` | a write to one instance more fails at once, until some instance is unregistered | the sample is rejected, until nobody writes some instance any more and its samples are taken |
///
/// Limits that contradict each other or the depth of the history are refused when the endpoint is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ResourceLimits {
    /// Samples over all instances.
    pub max_samples: Option<u32>,
    /// Instances. Without a bound of its own, an endpoint knows at most
    /// [`INSTANCES_MAX`](crate::config::INSTANCES_MAX).
    pub max_instances: Option<u32>,
    /// Samples of one instance; a topic without a key is one instance.
    pub max_samples_per_instance: Option<u32>,
    /// Bytes of samples over all instances, with what is kept about each: a bound that holds whatever the size of
    /// samples is. Not part of DDS, and never announced. Without it a writer has no such bound, and a reader
    /// that of [`READER_CACHE_MAX_BYTES`](crate::config::READER_CACHE_MAX_BYTES) or, when it keeps the last samples,
    /// [`READER_CACHE_KEEP_LAST_MAX_BYTES`](crate::config::READER_CACHE_KEEP_LAST_MAX_BYTES). An empty reader takes a
    /// single sample of any size.
    pub max_bytes: Option<usize>,
}

impl ResourceLimits {
    /// No bounds: the default.
    pub const UNLIMITED: Self =
        Self { max_samples: None, max_instances: None, max_samples_per_instance: None, max_bytes: None };
}

/// DATA_REPRESENTATION id of XCDR version 1, the default (XTypes 1.3 §7.6.3.1.1).
pub const XCDR1: i16 = 0;

/// DATA_REPRESENTATION id of XCDR version 2 (XTypes 1.3 §7.6.3.1.1).
pub const XCDR2: i16 = 2;

/// The number by which DDS names a policy, as incompatible-QoS statuses do (DDS 1.4 §2.3.3, `QosPolicyId_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum PolicyId {
    /// DURABILITY.
    Durability = 2,
    /// PRESENTATION.
    Presentation = 3,
    /// DEADLINE.
    Deadline = 4,
    /// LATENCY_BUDGET.
    LatencyBudget = 5,
    /// OWNERSHIP.
    Ownership = 6,
    /// LIVELINESS.
    Liveliness = 8,
    /// PARTITION.
    Partition = 10,
    /// RELIABILITY.
    Reliability = 11,
    /// DESTINATION_ORDER.
    DestinationOrder = 12,
    /// DATA_REPRESENTATION.
    DataRepresentation = 23,
}
