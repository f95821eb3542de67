//! Quality-of-service policies of one endpoint, as seen by RTPS peers.
//!
//! This module has only values. [`qos_match`](crate::qos_match) decides which offered and requested
//! values match, `qos_parameters` has their wire format, and the writer and reader cores implement
//! their effects. An infinite period is [`INFINITE`], so periods can be compared directly.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use weir_wire::EntityId;

/// The infinite period (`DURATION_INFINITE`).
pub const INFINITE: Duration = Duration::MAX;

/// The policies of one writer or reader (DDS 1.4, 2.2.3); SEDP carries those that peers must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qos {
    /// Whether lost samples are repaired.
    pub reliability: Reliability,
    /// Maximum time that a reliable `write` blocks for room.
    pub max_blocking_time: Duration,
    /// Which samples late-joining readers receive.
    pub durability: Durability,
    /// What late readers receive of it if the durability is `Transient` or `Persistent`; only of writers.
    pub durability_service: DurabilityService,
    /// Which samples of an instance are kept.
    pub history: History,
    /// Maximum time between two samples of an instance.
    pub deadline: Duration,
    /// A hint: the acceptable additional delay. Other writers of the same priority may go first on a path meanwhile.
    pub latency_budget: Duration,
    /// Writers with a higher one go first on a path that several writers of a participant share.
    pub transport_priority: i32,
    /// How the writer's liveliness is asserted.
    pub liveliness: Liveliness,
    /// Least time between two samples of an instance that a reader is delivered; only of readers (TIME_BASED_FILTER).
    pub time_based_filter: Duration,
    /// Whether several writers may update an instance at a time.
    pub ownership: Ownership,
    /// Under exclusive ownership, the strongest live writer owns the instance.
    pub ownership_strength: i32,
    /// The timestamp by which samples of several writers are ordered.
    pub destination_order: DestinationOrder,
    /// Coherent and ordered access over several instances or topics.
    pub presentation: Presentation,
    /// The publisher of a writer, if its access scope is GROUP: its writers share coherent sets, and an order.
    pub group: Option<EntityId>,
    /// Names, or patterns as in `fnmatch(3)`; empty: the partition with the empty name.
    pub partition: Vec<String>,
    /// How long a sample stays valid after it was written.
    pub lifespan: Duration,
    /// Ids of the data representations ([`XCDR1`], [`XCDR2`]), preferred first; empty: [`XCDR1`]. A
    /// writer offers only its first.
    pub representation: Vec<i16>,
    /// Limits on what is kept; local, never announced.
    pub resource_limits: ResourceLimits,
    /// Which types of writers a reader accepts.
    pub type_consistency: TypeConsistency,
    /// Opaque bytes for remote applications.
    pub user_data: Vec<u8>,
    /// Those of the topic.
    pub topic_data: Vec<u8>,
    /// Those of the publisher or subscriber.
    pub group_data: Vec<u8>,
}

impl Qos {
    /// Returns the defaults of a DataWriter: reliable, otherwise as
    /// [`for_reader`](Self::for_reader) (DDS 1.4, 2.2.3).
    #[must_use]
    pub fn for_writer() -> Self {
        Self { reliability: Reliability::Reliable, ..Self::for_reader() }
    }

    /// Returns the defaults of a DataReader: best effort, volatile, KEEP_LAST with depth 1 (DDS 1.4,
    /// 2.2.3).
    #[must_use]
    pub fn for_reader() -> Self {
        Self {
            reliability: Reliability::BestEffort,
            max_blocking_time: Duration::from_millis(100),
            durability: Durability::Volatile,
            durability_service: DurabilityService::DEFAULT,
            history: History::KeepLast(1),
            deadline: INFINITE,
            latency_budget: Duration::ZERO,
            transport_priority: 0,
            liveliness: Liveliness::ENDLESS,
            time_based_filter: Duration::ZERO,
            ownership: Ownership::Shared,
            ownership_strength: 0,
            destination_order: DestinationOrder::ByReceptionTimestamp,
            presentation: Presentation::DEFAULT,
            group: None,
            partition: Vec::new(),
            lifespan: INFINITE,
            representation: Vec::new(),
            resource_limits: ResourceLimits::UNLIMITED,
            type_consistency: TypeConsistency::DEFAULT,
            user_data: Vec::new(),
            topic_data: Vec::new(),
            group_data: Vec::new(),
        }
    }
}

impl Qos {
    /// Becomes a copy, in the same memory as far as it suffices.
    pub(crate) fn become_copy_of(&mut self, other: &Self) {
        use core::mem::take;
        let mut partition = take(&mut self.partition);
        let mut representation = take(&mut self.representation);
        let (mut user_data, mut topic_data) = (take(&mut self.user_data), take(&mut self.topic_data));
        let mut group_data = take(&mut self.group_data);
        partition.clone_from(&other.partition);
        representation.clone_from(&other.representation);
        user_data.clone_from(&other.user_data);
        topic_data.clone_from(&other.topic_data);
        group_data.clone_from(&other.group_data);
        *self = Self { partition, representation, user_data, topic_data, group_data, ..*other };
    }
}

/// RELIABILITY: whether lost samples are repaired. Ordered by strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reliability {
    /// Lost samples stay lost.
    BestEffort,
    /// Lost samples are sent again.
    Reliable,
}

/// DURABILITY: which samples late-joining readers receive. Ordered by strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// None from before the match.
    Volatile,
    /// Those that the writer still keeps.
    TransientLocal,
    /// Those that a service keeps in memory; without one, treated as
    /// [`TransientLocal`](Self::TransientLocal).
    Transient,
    /// Those that a service keeps on disk; without one, treated as
    /// [`TransientLocal`](Self::TransientLocal).
    Persistent,
}

/// DURABILITY_SERVICE: what late readers receive of a writer with durability `Transient` or `Persistent` (DDS 1.4,
/// 2.2.3.5).
///
/// The writer itself serves them, from its history: these limits apply in addition to its own. Samples that matched
/// readers have not acknowledged yet are served, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DurabilityService {
    /// How long an instance that was disposed or unregistered is served.
    pub service_cleanup_delay: Duration,
    /// Which samples of an instance are served.
    pub history: History,
    /// Samples over all instances; `None` is unlimited.
    pub max_samples: Option<u32>,
    /// Instances; those written last are served.
    pub max_instances: Option<u32>,
    /// Samples of one instance.
    pub max_samples_per_instance: Option<u32>,
}

impl DurabilityService {
    /// The last sample of each instance that has not ended.
    pub const DEFAULT: Self = Self {
        service_cleanup_delay: Duration::ZERO,
        history: History::KeepLast(1),
        max_samples: None,
        max_instances: None,
        max_samples_per_instance: None,
    };
}

impl Default for DurabilityService {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// READER_DATA_LIFECYCLE: when a reader removes samples of instances that have ended, although they were not taken (DDS
/// 1.4, 2.2.3.22). [`INFINITE`], the default: never.
///
/// The end of an instance that is reported by a sample without data is removed, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReaderDataLifecycle {
    /// After this time without a writer of the instance.
    pub autopurge_nowriter_samples_delay: Duration,
    /// After this time since the instance was disposed.
    pub autopurge_disposed_samples_delay: Duration,
}

impl Default for ReaderDataLifecycle {
    fn default() -> Self {
        Self { autopurge_nowriter_samples_delay: INFINITE, autopurge_disposed_samples_delay: INFINITE }
    }
}

/// TYPE_CONSISTENCY_ENFORCEMENT: which types of writers a reader accepts (DDS-XTypes 1.3, 7.6.3.7).
///
/// Types are compared by name and by whether they have a key, as no descriptions of types are exchanged. So a reader
/// with `force_type_validation` matches no writer; the other flags are announced, and decide nothing here.
///
/// ```
/// # use weir_rtps::qos::{TypeConsistency, TypeConsistencyKind};
/// let strict = TypeConsistency::default().kind(TypeConsistencyKind::DisallowTypeCoercion);
/// assert!(strict.ignore_string_bounds);
/// ```
#[expect(clippy::struct_excessive_bools, reason = "the policy of the specification has these flags")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TypeConsistency {
    /// Whether the types may differ.
    pub kind: TypeConsistencyKind,
    /// Bounds of sequences may differ.
    pub ignore_sequence_bounds: bool,
    /// Bounds of strings may differ.
    pub ignore_string_bounds: bool,
    /// Names of members may differ.
    pub ignore_member_names: bool,
    /// A writer's type may not have fewer members.
    pub prevent_type_widening: bool,
    /// Descriptions of both types are required.
    pub force_type_validation: bool,
}

impl TypeConsistency {
    /// The defaults: types that are assignable are accepted, whatever their bounds.
    pub const DEFAULT: Self = Self {
        kind: TypeConsistencyKind::AllowTypeCoercion,
        ignore_sequence_bounds: true,
        ignore_string_bounds: true,
        ignore_member_names: false,
        prevent_type_widening: false,
        force_type_validation: false,
    };
}

impl TypeConsistency {
    /// Sets whether the types may differ.
    #[must_use]
    pub const fn kind(mut self, kind: TypeConsistencyKind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets whether bounds of sequences may differ.
    #[must_use]
    pub const fn ignore_sequence_bounds(mut self, ignore: bool) -> Self {
        self.ignore_sequence_bounds = ignore;
        self
    }

    /// Sets whether bounds of strings may differ.
    #[must_use]
    pub const fn ignore_string_bounds(mut self, ignore: bool) -> Self {
        self.ignore_string_bounds = ignore;
        self
    }

    /// Sets whether names of members may differ.
    #[must_use]
    pub const fn ignore_member_names(mut self, ignore: bool) -> Self {
        self.ignore_member_names = ignore;
        self
    }

    /// Sets whether a writer's type must have all members of the reader's.
    #[must_use]
    pub const fn prevent_type_widening(mut self, prevent: bool) -> Self {
        self.prevent_type_widening = prevent;
        self
    }

    /// Sets whether descriptions of both types are required.
    #[must_use]
    pub const fn force_type_validation(mut self, force: bool) -> Self {
        self.force_type_validation = force;
        self
    }
}

impl Default for TypeConsistency {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Whether the types of a writer and a reader may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeConsistencyKind {
    /// They must be the same.
    DisallowTypeCoercion = 0,
    /// The writer's must be assignable to the reader's.
    AllowTypeCoercion = 1,
}

/// HISTORY: which samples of an instance are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum History {
    /// The last ones, up to this depth (at least 1).
    KeepLast(u32),
    /// All of them, until every matched reliable reader has them.
    KeepAll,
}

/// LIVELINESS: how a writer is asserted, and how long it may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Liveliness {
    /// Who asserts it: the middleware or the application.
    pub kind: LivelinessKind,
    /// Maximum silence.
    pub lease: Duration,
}

impl Liveliness {
    /// A writer is never silent for too long.
    pub(crate) const ENDLESS: Self = Self { kind: LivelinessKind::Automatic, lease: INFINITE };
}

/// Who asserts a writer's liveliness. Ordered by strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LivelinessKind {
    /// The middleware, while the participant lives.
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

/// DESTINATION_ORDER: the timestamp by which samples of several writers are ordered. Ordered by
/// strength.
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
    /// The scope of the two flags.
    pub scope: PresentationScope,
    /// Sets of changes become visible as a whole.
    pub coherent_access: bool,
    /// Changes become visible in the order in which they were made.
    pub ordered_access: bool,
}

impl Presentation {
    /// The default: neither coherent nor ordered.
    pub const DEFAULT: Self =
        Self { scope: PresentationScope::Instance, coherent_access: false, ordered_access: false };
}

impl Default for Presentation {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The scope of [`Presentation`]. Ordered by strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PresentationScope {
    /// Each instance on its own.
    Instance,
    /// All instances of a writer.
    Topic,
    /// All writers of a publisher.
    Group,
}

/// RESOURCE_LIMITS: limits on what is kept (DDS 1.4, 2.2.3.19); `None` is unlimited.
///
/// At a limit of `max_samples`, `max_samples_per_instance` or `max_bytes`:
///
/// - Writer: KEEP_LAST replaces samples. Otherwise a write blocks for acknowledgements for up to
///   `max_blocking_time`. It fails at once if none would make room.
/// - Reader: the sample is rejected; a reliable writer sends it again when there is room.
///
/// At the limit of `max_instances`:
///
/// - Writer: a write to another instance fails at once, until an instance is unregistered.
/// - Reader: the sample is rejected, until an instance has no writers any more and its samples are
///   taken.
///
/// Limits that contradict each other or the depth of the history are refused when the endpoint is
/// created.
///
/// ```
/// # use weir_rtps::qos::ResourceLimits;
/// let limits = ResourceLimits::default().max_samples(1_000).max_instances(10);
/// assert_eq!((limits.max_samples, limits.max_bytes), (Some(1_000), None));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct ResourceLimits {
    /// Samples over all instances.
    pub max_samples: Option<u32>,
    /// Instances. Without a limit, an endpoint has at most
    /// [`INSTANCES_MAX`](crate::config::INSTANCES_MAX).
    pub max_instances: Option<u32>,
    /// Samples of one instance; a topic without a key is one instance.
    pub max_samples_per_instance: Option<u32>,
    /// Bytes of samples over all instances, with their metadata: a limit that does not depend on
    /// the size of samples.
    ///
    /// Not part of DDS, and never announced. The default of a writer is unlimited, that of a reader
    /// is [`READER_CACHE_MAX_BYTES`](crate::config::READER_CACHE_MAX_BYTES) or, with KEEP_LAST,
    /// [`READER_CACHE_KEEP_LAST_MAX_BYTES`](crate::config::READER_CACHE_KEEP_LAST_MAX_BYTES). An
    /// empty reader accepts a single sample of any size.
    pub max_bytes: Option<usize>,
}

impl ResourceLimits {
    /// No limits: the default.
    pub const UNLIMITED: Self =
        Self { max_samples: None, max_instances: None, max_samples_per_instance: None, max_bytes: None };

    /// Limits the samples over all instances.
    #[must_use]
    pub const fn max_samples(mut self, samples: u32) -> Self {
        self.max_samples = Some(samples);
        self
    }

    /// Limits the instances.
    #[must_use]
    pub const fn max_instances(mut self, instances: u32) -> Self {
        self.max_instances = Some(instances);
        self
    }

    /// Limits the samples of one instance.
    #[must_use]
    pub const fn max_samples_per_instance(mut self, samples: u32) -> Self {
        self.max_samples_per_instance = Some(samples);
        self
    }

    /// Limits the bytes of samples over all instances.
    #[must_use]
    pub const fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = Some(bytes);
        self
    }
}

/// DATA_REPRESENTATION id of XCDR version 1, the default (XTypes 1.3, 7.6.3.1.1).
pub const XCDR1: i16 = 0;

/// DATA_REPRESENTATION id of XCDR version 2 (XTypes 1.3, 7.6.3.1.1).
pub const XCDR2: i16 = 2;

/// The id of a policy in DDS, as in incompatible-QoS statuses (DDS 1.4, 2.3.3, `QosPolicyId_t`; XTypes 1.3, 7.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum PolicyId {
    /// USER_DATA.
    UserData = 1,
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
    /// OWNERSHIP_STRENGTH.
    OwnershipStrength = 7,
    /// LIVELINESS.
    Liveliness = 8,
    /// TIME_BASED_FILTER.
    TimeBasedFilter = 9,
    /// PARTITION.
    Partition = 10,
    /// RELIABILITY.
    Reliability = 11,
    /// DESTINATION_ORDER.
    DestinationOrder = 12,
    /// HISTORY.
    History = 13,
    /// RESOURCE_LIMITS.
    ResourceLimits = 14,
    /// ENTITY_FACTORY.
    EntityFactory = 15,
    /// WRITER_DATA_LIFECYCLE.
    WriterDataLifecycle = 16,
    /// READER_DATA_LIFECYCLE.
    ReaderDataLifecycle = 17,
    /// TOPIC_DATA.
    TopicData = 18,
    /// GROUP_DATA.
    GroupData = 19,
    /// TRANSPORT_PRIORITY.
    TransportPriority = 20,
    /// LIFESPAN.
    Lifespan = 21,
    /// DURABILITY_SERVICE.
    DurabilityService = 22,
    /// DATA_REPRESENTATION.
    DataRepresentation = 23,
    /// TYPE_CONSISTENCY_ENFORCEMENT.
    TypeConsistencyEnforcement = 24,
}

/// A set of policies, such as those because of which a writer and a reader do not match.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct PolicySet(u32);

impl PolicySet {
    /// No policy.
    pub const EMPTY: Self = Self(0);

    /// Returns a bit for each policy, at the place of its id: none is at place 0 or above 24.
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the set with these bits.
    pub(crate) const fn of_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns the set with one more policy.
    #[must_use]
    pub const fn with(self, policy: PolicyId) -> Self {
        Self(self.0 | 1 << policy as u32)
    }

    /// Returns whether a policy is in the set.
    #[must_use]
    pub const fn contains(self, policy: PolicyId) -> bool {
        self.0 & 1 << policy as u32 != 0
    }

    /// Returns whether no policy is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the policies: first those with requested and offered values, in the order in which they are compared.
    pub fn iter(self) -> impl Iterator<Item = PolicyId> {
        PolicyId::ALL.into_iter().filter(move |policy| self.contains(*policy))
    }

    /// Returns the first policy.
    #[must_use]
    pub fn first(self) -> Option<PolicyId> {
        self.iter().next()
    }
}

impl core::fmt::Debug for PolicySet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl FromIterator<PolicyId> for PolicySet {
    fn from_iter<I: IntoIterator<Item = PolicyId>>(policies: I) -> Self {
        policies.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl PolicyId {
    /// All policies: first those with requested and offered values, in the order in which they are compared.
    const ALL: [Self; 24] = [
        Self::Reliability,
        Self::Durability,
        Self::Deadline,
        Self::LatencyBudget,
        Self::Ownership,
        Self::Liveliness,
        Self::DestinationOrder,
        Self::Presentation,
        Self::DataRepresentation,
        Self::TypeConsistencyEnforcement,
        Self::UserData,
        Self::OwnershipStrength,
        Self::TimeBasedFilter,
        Self::Partition,
        Self::History,
        Self::ResourceLimits,
        Self::EntityFactory,
        Self::WriterDataLifecycle,
        Self::ReaderDataLifecycle,
        Self::TopicData,
        Self::GroupData,
        Self::TransportPriority,
        Self::Lifespan,
        Self::DurabilityService,
    ];

    /// Returns the name, as in the specification.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UserData => "USER_DATA",
            Self::Durability => "DURABILITY",
            Self::Presentation => "PRESENTATION",
            Self::Deadline => "DEADLINE",
            Self::LatencyBudget => "LATENCY_BUDGET",
            Self::Ownership => "OWNERSHIP",
            Self::OwnershipStrength => "OWNERSHIP_STRENGTH",
            Self::Liveliness => "LIVELINESS",
            Self::TimeBasedFilter => "TIME_BASED_FILTER",
            Self::Partition => "PARTITION",
            Self::Reliability => "RELIABILITY",
            Self::DestinationOrder => "DESTINATION_ORDER",
            Self::History => "HISTORY",
            Self::ResourceLimits => "RESOURCE_LIMITS",
            Self::EntityFactory => "ENTITY_FACTORY",
            Self::WriterDataLifecycle => "WRITER_DATA_LIFECYCLE",
            Self::ReaderDataLifecycle => "READER_DATA_LIFECYCLE",
            Self::TopicData => "TOPIC_DATA",
            Self::GroupData => "GROUP_DATA",
            Self::TransportPriority => "TRANSPORT_PRIORITY",
            Self::Lifespan => "LIFESPAN",
            Self::DurabilityService => "DURABILITY_SERVICE",
            Self::DataRepresentation => "DATA_REPRESENTATION",
            Self::TypeConsistencyEnforcement => "TYPE_CONSISTENCY_ENFORCEMENT",
        }
    }
}

impl core::fmt::Display for PolicyId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}
