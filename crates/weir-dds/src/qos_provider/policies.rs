//! The elements of policies, as OMG DDS-XML 1.0 names them.

use roxmltree::Node;
use weir_rtps::qos::{Presentation, PresentationScope, Qos, XCDR1, XCDR2};

use super::error::QosProfileError;
use super::values::{Place, Value, check_content, similar};
use crate::error::DdsError;
use crate::qos::{
    DataReaderQos, DataRepresentation, DataWriterQos, DestinationOrder, Durability, DurabilityService,
    History, Liveliness, LivelinessKind, Ownership, ReaderDataLifecycle, Reliability, ResourceLimits,
    TopicQos, TypeConsistency, TypeConsistencyKind, check_policies,
};

type Result<T = ()> = std::result::Result<T, QosProfileError>;

/// A kind of entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entity {
    Participant,
    Publisher,
    Subscriber,
    Topic,
    DataWriter,
    DataReader,
}

impl Entity {
    pub(super) const ALL: [Self; 6] = [
        Self::Participant,
        Self::Publisher,
        Self::Subscriber,
        Self::Topic,
        Self::DataWriter,
        Self::DataReader,
    ];

    /// The elements of all kinds.
    pub(super) const ELEMENTS: &[&str] = &[
        "domain_participant_qos",
        "domainparticipant_qos",
        "participant_qos",
        "publisher_qos",
        "subscriber_qos",
        "topic_qos",
        "datawriter_qos",
        "datareader_qos",
    ];

    pub(super) fn of_element(name: &str) -> Option<Self> {
        Some(match name {
            "domain_participant_qos" | "domainparticipant_qos" | "participant_qos" => Self::Participant,
            "publisher_qos" => Self::Publisher,
            "subscriber_qos" => Self::Subscriber,
            "topic_qos" => Self::Topic,
            "datawriter_qos" => Self::DataWriter,
            "datareader_qos" => Self::DataReader,
            _ => return None,
        })
    }

    /// The policies of DDS 1.4 and DDS-XTypes 1.3 that the entity has.
    fn policies(self) -> &'static [&'static str] {
        match self {
            Self::Participant => &["user_data", "entity_factory"],
            Self::Publisher | Self::Subscriber => {
                &["presentation", "partition", "group_data", "entity_factory"]
            }
            Self::Topic => &[
                "topic_data",
                "durability",
                "durability_service",
                "deadline",
                "latency_budget",
                "liveliness",
                "reliability",
                "destination_order",
                "history",
                "resource_limits",
                "transport_priority",
                "lifespan",
                "ownership",
                "representation",
            ],
            Self::DataWriter => &[
                "durability",
                "durability_service",
                "deadline",
                "latency_budget",
                "liveliness",
                "reliability",
                "destination_order",
                "history",
                "resource_limits",
                "transport_priority",
                "lifespan",
                "user_data",
                "ownership",
                "ownership_strength",
                "writer_data_lifecycle",
                "representation",
            ],
            Self::DataReader => &[
                "durability",
                "deadline",
                "latency_budget",
                "liveliness",
                "reliability",
                "destination_order",
                "history",
                "resource_limits",
                "user_data",
                "ownership",
                "time_based_filter",
                "reader_data_lifecycle",
                "representation",
                "type_consistency",
            ],
        }
    }
}

/// The policies of an entity of any kind, while they are read.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) qos: Qos,
    pub(super) autodispose: bool,
    pub(super) lifecycle: ReaderDataLifecycle,
    pub(super) autoenable: bool,
}

impl Draft {
    pub(super) fn new(entity: Entity) -> Self {
        let qos = match entity {
            Entity::DataWriter => DataWriterQos::default().announced(),
            Entity::DataReader => DataReaderQos::default().announced(),
            _ => Qos::for_reader(),
        };
        let lifecycle = ReaderDataLifecycle::default();
        Self { qos, autodispose: true, lifecycle, autoenable: true }
    }

    /// Refuses policies that contradict each other.
    pub(super) fn check(&self, entity: Entity) -> core::result::Result<(), DdsError> {
        match entity {
            Entity::Topic | Entity::DataWriter | Entity::DataReader => check_policies(&self.qos),
            Entity::Participant | Entity::Publisher | Entity::Subscriber => Ok(()),
        }
    }

    fn representations(&self) -> Vec<DataRepresentation> {
        let of = |id: &i16| if *id == XCDR2 { DataRepresentation::Xcdr2 } else { DataRepresentation::Xcdr1 };
        self.qos.representation.iter().map(of).collect()
    }
}

impl From<Draft> for DataWriterQos {
    fn from(draft: Draft) -> Self {
        let representation = draft.representations().first().copied().unwrap_or(DataRepresentation::Xcdr1);
        let topic = TopicQos::from(draft.clone());
        Self::default()
            .copy_from_topic_qos(&topic)
            .data_representation(representation)
            .ownership_strength(draft.qos.ownership_strength)
            .partition(draft.qos.partition)
            .user_data(draft.qos.user_data)
            .autodispose_unregistered_instances(draft.autodispose)
    }
}

impl From<Draft> for DataReaderQos {
    fn from(draft: Draft) -> Self {
        let representations = draft.representations();
        let topic = TopicQos::from(draft.clone());
        Self::default()
            .copy_from_topic_qos(&topic)
            .data_representation(representations)
            .time_based_filter(draft.qos.time_based_filter)
            .reader_data_lifecycle(draft.lifecycle)
            .type_consistency(draft.qos.type_consistency)
            .partition(draft.qos.partition)
            .user_data(draft.qos.user_data)
    }
}

impl From<Draft> for TopicQos {
    fn from(draft: Draft) -> Self {
        let representations = draft.representations();
        let qos = draft.qos;
        let mut topic = Self::default()
            .topic_data(qos.topic_data)
            .durability(qos.durability)
            .durability_service(qos.durability_service)
            .deadline(qos.deadline)
            .latency_budget(qos.latency_budget)
            .liveliness(qos.liveliness.kind, qos.liveliness.lease)
            .max_blocking_time(qos.max_blocking_time)
            .destination_order(qos.destination_order)
            .resource_limits(qos.resource_limits)
            .transport_priority(qos.transport_priority)
            .lifespan(qos.lifespan)
            .ownership(qos.ownership)
            .data_representation(representations);
        (topic.reliability, topic.history) = (qos.reliability, qos.history);
        topic
    }
}

/// What an element sets: only the parts of a policy that it names.
#[derive(Debug, Clone)]
pub(super) enum Setter {
    UserData(Vec<u8>),
    TopicData(Vec<u8>),
    GroupData(Vec<u8>),
    Durability(Durability),
    Service(ServicePart),
    Deadline(core::time::Duration),
    LatencyBudget(core::time::Duration),
    LivelinessKind(LivelinessKind),
    Lease(core::time::Duration),
    Reliability(Reliability),
    MaxBlockingTime(core::time::Duration),
    DestinationOrder(DestinationOrder),
    HistoryKind(bool),
    HistoryDepth(u32),
    MaxSamples(Option<u32>),
    MaxInstances(Option<u32>),
    MaxSamplesPerInstance(Option<u32>),
    TransportPriority(i32),
    Lifespan(core::time::Duration),
    Ownership(Ownership),
    OwnershipStrength(i32),
    Autodispose(bool),
    Separation(core::time::Duration),
    PurgeNoWriter(core::time::Duration),
    PurgeDisposed(core::time::Duration),
    Representation(Vec<i16>),
    TypeConsistency(ConsistencyPart),
    PresentationScope(PresentationScope),
    CoherentAccess(bool),
    OrderedAccess(bool),
    Partition(Vec<String>),
    Autoenable(bool),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum ServicePart {
    CleanupDelay(core::time::Duration),
    HistoryKind(bool),
    HistoryDepth(u32),
    MaxSamples(Option<u32>),
    MaxInstances(Option<u32>),
    MaxSamplesPerInstance(Option<u32>),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum ConsistencyPart {
    Kind(TypeConsistencyKind),
    Flag(fn(&mut TypeConsistency, bool), bool),
}

impl Setter {
    pub(super) fn apply(&self, draft: &mut Draft) {
        let qos = &mut draft.qos;
        let limits: &mut ResourceLimits = &mut qos.resource_limits;
        match self {
            Self::UserData(bytes) => qos.user_data.clone_from(bytes),
            Self::TopicData(bytes) => qos.topic_data.clone_from(bytes),
            Self::GroupData(bytes) => qos.group_data.clone_from(bytes),
            Self::Durability(kind) => qos.durability = *kind,
            Self::Service(part) => apply_service(&mut qos.durability_service, *part),
            Self::Deadline(period) => qos.deadline = *period,
            Self::LatencyBudget(budget) => qos.latency_budget = *budget,
            Self::LivelinessKind(kind) => qos.liveliness = Liveliness { kind: *kind, ..qos.liveliness },
            Self::Lease(lease) => qos.liveliness = Liveliness { lease: *lease, ..qos.liveliness },
            Self::Reliability(kind) => qos.reliability = *kind,
            Self::MaxBlockingTime(time) => qos.max_blocking_time = *time,
            Self::DestinationOrder(kind) => qos.destination_order = *kind,
            Self::HistoryKind(keeps_all) => qos.history = with_kind(qos.history, *keeps_all),
            Self::HistoryDepth(depth) => qos.history = with_depth(qos.history, *depth),
            Self::MaxSamples(limit) => limits.max_samples = *limit,
            Self::MaxInstances(limit) => limits.max_instances = *limit,
            Self::MaxSamplesPerInstance(limit) => limits.max_samples_per_instance = *limit,
            Self::TransportPriority(priority) => qos.transport_priority = *priority,
            Self::Lifespan(lifespan) => qos.lifespan = *lifespan,
            Self::Ownership(kind) => qos.ownership = *kind,
            Self::OwnershipStrength(strength) => qos.ownership_strength = *strength,
            Self::Autodispose(autodispose) => draft.autodispose = *autodispose,
            Self::Separation(separation) => qos.time_based_filter = *separation,
            Self::PurgeNoWriter(delay) => draft.lifecycle.autopurge_nowriter_samples_delay = *delay,
            Self::PurgeDisposed(delay) => draft.lifecycle.autopurge_disposed_samples_delay = *delay,
            Self::Representation(ids) => qos.representation.clone_from(ids),
            Self::TypeConsistency(ConsistencyPart::Kind(kind)) => qos.type_consistency.kind = *kind,
            Self::TypeConsistency(ConsistencyPart::Flag(set, flag)) => set(&mut qos.type_consistency, *flag),
            Self::PresentationScope(scope) => {
                qos.presentation = Presentation { scope: *scope, ..qos.presentation };
            }
            Self::CoherentAccess(coherent) => qos.presentation.coherent_access = *coherent,
            Self::OrderedAccess(ordered) => qos.presentation.ordered_access = *ordered,
            Self::Partition(names) => qos.partition.clone_from(names),
            Self::Autoenable(autoenable) => draft.autoenable = *autoenable,
        }
    }
}

fn apply_service(service: &mut DurabilityService, part: ServicePart) {
    match part {
        ServicePart::CleanupDelay(delay) => service.service_cleanup_delay = delay,
        ServicePart::HistoryKind(keeps_all) => service.history = with_kind(service.history, keeps_all),
        ServicePart::HistoryDepth(depth) => service.history = with_depth(service.history, depth),
        ServicePart::MaxSamples(limit) => service.max_samples = limit,
        ServicePart::MaxInstances(limit) => service.max_instances = limit,
        ServicePart::MaxSamplesPerInstance(limit) => service.max_samples_per_instance = limit,
    }
}

fn with_kind(history: History, keeps_all: bool) -> History {
    match history {
        _ if keeps_all => History::KeepAll,
        History::KeepLast(depth) => History::KeepLast(depth),
        History::KeepAll => History::KeepLast(1),
    }
}

/// The depth has no meaning with KEEP_ALL.
fn with_depth(history: History, depth: u32) -> History {
    if history == History::KeepAll { history } else { History::KeepLast(depth) }
}

/// Reads the element of a policy. Returns nothing for one that is specific to another engine.
pub(super) fn read_policy(
    entity: Entity,
    file: &str,
    node: &Node<'_, '_>,
    warnings: &mut Vec<String>,
) -> Result<Vec<Setter>> {
    let (name, parent) = (node.tag_name().name(), node.parent_element());
    let parent = parent.map_or("", |parent| parent.tag_name().name());
    let place = Place::of(file, node);
    if name == "base_name" {
        let cause = "base_name as an element is not part of OMG DDS-XML: use the attribute base_name";
        return Err(place.error(cause));
    }
    if !entity.policies().contains(&name) {
        if VENDOR_POLICIES.contains(&name) {
            warnings.push(place.text(format!("<{name}> is skipped: it is specific to another engine")));
            return Ok(Vec::new());
        }
        let others = Entity::ALL.into_iter().any(|other| other.policies().contains(&name));
        let hint = if others {
            ": this kind of entity has no such policy".to_owned()
        } else {
            similar(name, entity.policies())
        };
        return Err(place.error(format!("<{parent}> has no element <{name}>{hint}")));
    }
    check_content(file, node, &[], &[])?;
    let mut setters = Vec::new();
    for child in node.children().filter(Node::is_element) {
        let value = Value { file, node: child };
        let part = value.name();
        if VENDOR_PARTS.contains(&(name, part)) {
            let text = format!("<{part}> in <{name}> is skipped: it is specific to another engine");
            warnings.push(Place::of(file, &child).text(text));
            continue;
        }
        let known = parts_of(name);
        if !known.contains(&part) {
            let cause = format!("<{name}> has no element <{part}>{}", similar(part, known));
            return Err(value.error(cause));
        }
        setters.push(read_part(name, &value)?);
    }
    // The depth of a history has effect whether it comes before its kind or after it.
    setters.sort_by_key(|setter| {
        matches!(setter, Setter::HistoryDepth(_) | Setter::Service(ServicePart::HistoryDepth(_)))
    });
    Ok(setters)
}

/// The elements of a policy.
fn parts_of(policy: &str) -> &'static [&'static str] {
    match policy {
        "user_data" | "topic_data" | "group_data" | "transport_priority" | "ownership_strength" => &["value"],
        "durability" | "destination_order" | "ownership" => &["kind"],
        "durability_service" => &[
            "service_cleanup_delay",
            "history_kind",
            "history_depth",
            "max_samples",
            "max_instances",
            "max_samples_per_instance",
        ],
        "deadline" => &["period"],
        "latency_budget" | "lifespan" => &["duration"],
        "liveliness" => &["kind", "lease_duration"],
        "reliability" => &["kind", "max_blocking_time"],
        "history" => &["kind", "depth"],
        "resource_limits" => &["max_samples", "max_instances", "max_samples_per_instance"],
        "writer_data_lifecycle" => &["autodispose_unregistered_instances"],
        "time_based_filter" => &["minimum_separation"],
        "reader_data_lifecycle" => &["autopurge_nowriter_samples_delay", "autopurge_disposed_samples_delay"],
        "representation" => &["value"],
        "type_consistency" => &[
            "kind",
            "ignore_sequence_bounds",
            "ignore_string_bounds",
            "ignore_member_names",
            "prevent_type_widening",
            "force_type_validation",
        ],
        "presentation" => &["access_scope", "coherent_access", "ordered_access"],
        "partition" => &["name"],
        "entity_factory" => &["autoenable_created_entities"],
        _ => &[],
    }
}

fn read_part(policy: &str, value: &Value<'_, '_>) -> Result<Setter> {
    Ok(match (policy, value.name()) {
        ("user_data", _) => Setter::UserData(value.bytes()?),
        ("topic_data", _) => Setter::TopicData(value.bytes()?),
        ("group_data", _) => Setter::GroupData(value.bytes()?),
        ("durability", _) => Setter::Durability(value.kind("_DURABILITY_QOS", &DURABILITIES)?),
        ("durability_service", part) => Setter::Service(service_part(part, value)?),
        ("deadline", _) => Setter::Deadline(value.duration()?),
        ("latency_budget", _) => Setter::LatencyBudget(value.duration()?),
        ("lifespan", _) => Setter::Lifespan(value.duration()?),
        ("liveliness", "kind") => Setter::LivelinessKind(value.kind("_LIVELINESS_QOS", &LIVELINESSES)?),
        ("liveliness", _) => Setter::Lease(value.duration()?),
        ("reliability", "kind") => Setter::Reliability(value.kind("_RELIABILITY_QOS", &RELIABILITIES)?),
        ("reliability", _) => Setter::MaxBlockingTime(value.duration()?),
        ("destination_order", _) => {
            Setter::DestinationOrder(value.kind("_DESTINATIONORDER_QOS", &DESTINATION_ORDERS)?)
        }
        ("history", "kind") => Setter::HistoryKind(value.kind("_HISTORY_QOS", &HISTORIES)?),
        ("history", _) => Setter::HistoryDepth(value.depth()?),
        ("resource_limits", "max_samples") => Setter::MaxSamples(value.limit()?),
        ("resource_limits", "max_instances") => Setter::MaxInstances(value.limit()?),
        ("resource_limits", _) => Setter::MaxSamplesPerInstance(value.limit()?),
        ("transport_priority", _) => Setter::TransportPriority(value.i32()?),
        ("ownership", _) => Setter::Ownership(value.kind("_OWNERSHIP_QOS", &OWNERSHIPS)?),
        ("ownership_strength", _) => Setter::OwnershipStrength(value.i32()?),
        ("writer_data_lifecycle", _) => Setter::Autodispose(value.bool()?),
        ("time_based_filter", _) => Setter::Separation(value.duration()?),
        ("reader_data_lifecycle", "autopurge_nowriter_samples_delay") => {
            Setter::PurgeNoWriter(value.duration()?)
        }
        ("reader_data_lifecycle", _) => Setter::PurgeDisposed(value.duration()?),
        ("representation", _) => Setter::Representation(representations(value)?),
        ("type_consistency", part) => Setter::TypeConsistency(consistency_part(part, value)?),
        ("presentation", "access_scope") => {
            Setter::PresentationScope(value.kind("_PRESENTATION_QOS", &SCOPES)?)
        }
        ("presentation", "coherent_access") => Setter::CoherentAccess(value.bool()?),
        ("presentation", _) => Setter::OrderedAccess(value.bool()?),
        ("partition", _) => Setter::Partition(value.list("element")?),
        _ => Setter::Autoenable(value.bool()?),
    })
}

fn service_part(part: &str, value: &Value<'_, '_>) -> Result<ServicePart> {
    Ok(match part {
        "service_cleanup_delay" => ServicePart::CleanupDelay(value.duration()?),
        "history_kind" => ServicePart::HistoryKind(value.kind("_HISTORY_QOS", &HISTORIES)?),
        "history_depth" => ServicePart::HistoryDepth(value.depth()?),
        "max_samples" => ServicePart::MaxSamples(value.limit()?),
        "max_instances" => ServicePart::MaxInstances(value.limit()?),
        _ => ServicePart::MaxSamplesPerInstance(value.limit()?),
    })
}

fn consistency_part(part: &str, value: &Value<'_, '_>) -> Result<ConsistencyPart> {
    if part == "kind" {
        return Ok(ConsistencyPart::Kind(value.kind("", &CONSISTENCIES)?));
    }
    let set: fn(&mut TypeConsistency, bool) = match part {
        "ignore_sequence_bounds" => |policy, flag| policy.ignore_sequence_bounds = flag,
        "ignore_string_bounds" => |policy, flag| policy.ignore_string_bounds = flag,
        "ignore_member_names" => |policy, flag| policy.ignore_member_names = flag,
        "prevent_type_widening" => |policy, flag| policy.prevent_type_widening = flag,
        _ => |policy, flag| policy.force_type_validation = flag,
    };
    Ok(ConsistencyPart::Flag(set, value.bool()?))
}

fn representations(value: &Value<'_, '_>) -> Result<Vec<i16>> {
    let mut ids = Vec::new();
    for name in value.list("element")? {
        let short = name.strip_prefix("DDS_").unwrap_or(&name);
        ids.push(match short.strip_suffix("_DATA_REPRESENTATION").unwrap_or(short) {
            "XCDR" | "XCDR1" => XCDR1,
            "XCDR2" => XCDR2,
            _ => {
                let cause = format!(
                    "the representation is {name:?}: use XCDR_DATA_REPRESENTATION or XCDR2_DATA_REPRESENTATION"
                );
                return Err(value.error(cause));
            }
        });
    }
    Ok(ids)
}

const DURABILITIES: [(&str, Durability); 4] = [
    ("VOLATILE", Durability::Volatile),
    ("TRANSIENT_LOCAL", Durability::TransientLocal),
    ("TRANSIENT", Durability::Transient),
    ("PERSISTENT", Durability::Persistent),
];
const LIVELINESSES: [(&str, LivelinessKind); 3] = [
    ("AUTOMATIC", LivelinessKind::Automatic),
    ("MANUAL_BY_PARTICIPANT", LivelinessKind::ManualByParticipant),
    ("MANUAL_BY_TOPIC", LivelinessKind::ManualByTopic),
];
const RELIABILITIES: [(&str, Reliability); 2] =
    [("BEST_EFFORT", Reliability::BestEffort), ("RELIABLE", Reliability::Reliable)];
const DESTINATION_ORDERS: [(&str, DestinationOrder); 2] = [
    ("BY_RECEPTION_TIMESTAMP", DestinationOrder::ByReceptionTimestamp),
    ("BY_SOURCE_TIMESTAMP", DestinationOrder::BySourceTimestamp),
];
/// Whether all samples are kept.
const HISTORIES: [(&str, bool); 2] = [("KEEP_LAST", false), ("KEEP_ALL", true)];
const OWNERSHIPS: [(&str, Ownership); 2] =
    [("SHARED", Ownership::Shared), ("EXCLUSIVE", Ownership::Exclusive)];
const SCOPES: [(&str, PresentationScope); 3] = [
    ("INSTANCE", PresentationScope::Instance),
    ("TOPIC", PresentationScope::Topic),
    ("GROUP", PresentationScope::Group),
];
const CONSISTENCIES: [(&str, TypeConsistencyKind); 2] = [
    ("DISALLOW_TYPE_COERCION", TypeConsistencyKind::DisallowTypeCoercion),
    ("ALLOW_TYPE_COERCION", TypeConsistencyKind::AllowTypeCoercion),
];

/// Policies that only other engines have, by the names in their documentation.
const VENDOR_POLICIES: &[&str] = &[
    "asynchronous_publisher",
    "availability",
    "batch",
    "content_filter",
    "data_tags",
    "database",
    "default_unicast",
    "discovery",
    "discovery_config",
    "encapsulation",
    "event",
    "exclusive_area",
    "flow_controller",
    "locator_filter",
    "monitoring",
    "multi_channel",
    "multicast",
    "multicast_mapping",
    "name",
    "participant_name",
    "property",
    "protocol",
    "publication_name",
    "publish_mode",
    "publisher_name",
    "reader_resource_limits",
    "receiver_pool",
    "resource_limits",
    "service",
    "subscriber_name",
    "subscription_name",
    "thread_factory",
    "topic_query_dispatch",
    "transfer_mode",
    "transport_builtin",
    "transport_multicast",
    "transport_priority",
    "transport_selection",
    "transport_unicast",
    "type_support",
    "unicast",
    "user_object",
    "wire_protocol",
    "writer_resource_limits",
];

/// Elements of policies that only other engines have.
const VENDOR_PARTS: &[(&str, &str)] = &[
    ("destination_order", "scope"),
    ("destination_order", "source_timestamp_tolerance"),
    ("durability", "direct_communication"),
    ("durability", "storage_settings"),
    ("durability", "writer_depth"),
    ("history", "refilter"),
    ("liveliness", "assertions_per_lease_duration"),
    ("presentation", "drop_incomplete_coherent_set"),
    ("reader_data_lifecycle", "autopurge_disposed_instances_delay"),
    ("reader_data_lifecycle", "autopurge_nowriter_instances_delay"),
    ("reliability", "acknowledgment_kind"),
    ("reliability", "instance_state_consistency_kind"),
    ("representation", "compression_settings"),
    ("resource_limits", "initial_instances"),
    ("resource_limits", "initial_samples"),
    ("resource_limits", "instance_hash_buckets"),
    ("type_consistency", "ignore_enum_literal_names"),
    ("writer_data_lifecycle", "autopurge_disposed_instances_delay"),
    ("writer_data_lifecycle", "autopurge_disposed_samples_delay"),
    ("writer_data_lifecycle", "autopurge_unregistered_instances_delay"),
];
