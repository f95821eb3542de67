//! Policies as parameters of an endpoint's announcement (RTPS 2.5, 9.6.3.2, table 9.14).
//!
//! Reliability and durability are always written, as engines disagree about their defaults; other
//! policies only if they differ from their defaults. All are read; absent ones keep their defaults.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use weir_wire::{EntityId, Parameter, ParameterId, ParameterListWriter};

use crate::discovery_data::{DiscoveryDataError, DiscoveryLimits, Result, duration, period, wire_duration};
use crate::qos::{
    DestinationOrder, Durability, DurabilityService, History, Liveliness, LivelinessKind, Ownership,
    Presentation, PresentationScope, Qos, Reliability, ResourceLimits, TypeConsistency, TypeConsistencyKind,
    XCDR1,
};
use crate::sedp::EndpointKind;

/// Appends the policies that a peer must know.
pub(crate) fn encode(kind: EndpointKind, qos: &Qos, list: &mut ParameterListWriter<'_>) {
    let default = match kind {
        EndpointKind::Writer => Qos::for_writer(),
        EndpointKind::Reader => Qos::for_reader(),
    };
    let reliability = match qos.reliability {
        Reliability::BestEffort => 1,
        Reliability::Reliable => 2,
    };
    list.kind_and_duration(ParameterId::RELIABILITY, reliability, wire_duration(qos.max_blocking_time));
    list.u32(ParameterId::DURABILITY, qos.durability as u32);
    if qos.history != default.history {
        let (kind, depth) = match qos.history {
            History::KeepLast(depth) => (0, i32::try_from(depth).unwrap_or(i32::MAX)),
            // The depth has no meaning here; 1 is valid everywhere.
            History::KeepAll => (1, 1),
        };
        list.i32s(ParameterId::HISTORY, &[kind, depth]);
    }
    encode_periods(kind, qos, &default, list);
    if qos.liveliness != default.liveliness {
        let Liveliness { kind, lease } = qos.liveliness;
        list.kind_and_duration(ParameterId::LIVELINESS, kind as u32, wire_duration(lease));
    }
    if qos.ownership != default.ownership {
        list.u32(ParameterId::OWNERSHIP, qos.ownership as u32);
    }
    if kind == EndpointKind::Writer && qos.ownership_strength != default.ownership_strength {
        list.i32(ParameterId::OWNERSHIP_STRENGTH, qos.ownership_strength);
    }
    if kind == EndpointKind::Writer && qos.transport_priority != default.transport_priority {
        list.i32(ParameterId::TRANSPORT_PRIORITY, qos.transport_priority);
    }
    if qos.destination_order != default.destination_order {
        list.u32(ParameterId::DESTINATION_ORDER, qos.destination_order as u32);
    }
    if qos.presentation != default.presentation {
        let Presentation { scope, coherent_access, ordered_access } = qos.presentation;
        let [a, b, c, d] = (scope as u32).to_le_bytes();
        let value = [a, b, c, d, u8::from(coherent_access), u8::from(ordered_access), 0, 0];
        list.raw(ParameterId::PRESENTATION, &value);
    }
    if let Some(group) = qos.group {
        list.bytes4(ParameterId::GROUP_ENTITYID, group.0);
    }
    if !qos.partition.is_empty() {
        list.strings(ParameterId::PARTITION, qos.partition.iter().map(String::as_str));
    }
    encode_representation(kind, qos, list);
    if kind == EndpointKind::Writer && qos.durability_service != default.durability_service {
        list.raw(ParameterId::DURABILITY_SERVICE, &durability_service_bytes(&qos.durability_service));
    }
    if kind == EndpointKind::Reader && qos.type_consistency != default.type_consistency {
        list.raw(ParameterId::TYPE_CONSISTENCY_ENFORCEMENT, &type_consistency_bytes(&qos.type_consistency));
    }
    for (id, bytes) in [
        (ParameterId::USER_DATA, &qos.user_data),
        (ParameterId::TOPIC_DATA, &qos.topic_data),
        (ParameterId::GROUP_DATA, &qos.group_data),
    ] {
        if !bytes.is_empty() {
            list.byte_sequence(id, bytes);
        }
    }
}

/// Reads the parameter into `qos` if it is a known policy; `false` if not.
///
/// # Errors
/// The value is invalid or longer than `limits` allow.
pub(crate) fn decode(parameter: &Parameter<'_>, limits: &DiscoveryLimits, qos: &mut Qos) -> Result<bool> {
    match parameter.id {
        ParameterId::RELIABILITY => {
            qos.reliability = match parameter.u32()? {
                1 => Reliability::BestEffort,
                2 => Reliability::Reliable,
                _ => return Err(bad(parameter)),
            };
            // Some engines omit the period for readers, where it has no meaning.
            if let Ok((_, wait)) = parameter.kind_and_duration() {
                qos.max_blocking_time = period(wait).ok_or(bad(parameter))?;
            }
        }
        ParameterId::DURABILITY => {
            let kinds = [
                Durability::Volatile,
                Durability::TransientLocal,
                Durability::Transient,
                Durability::Persistent,
            ];
            qos.durability = one_of(parameter, kinds)?;
        }
        // What a peer keeps for itself does not decide a match: values that make no sense are left out.
        ParameterId::HISTORY => qos.history = history(parameter).unwrap_or(qos.history),
        ParameterId::DEADLINE => qos.deadline = duration(parameter)?,
        ParameterId::LATENCY_BUDGET => qos.latency_budget = duration(parameter)?,
        ParameterId::TIME_BASED_FILTER => qos.time_based_filter = duration(parameter)?,
        ParameterId::LIFESPAN => qos.lifespan = duration(parameter)?,
        ParameterId::LIVELINESS => {
            let kinds = [
                LivelinessKind::Automatic,
                LivelinessKind::ManualByParticipant,
                LivelinessKind::ManualByTopic,
            ];
            let (_, lease) = parameter.kind_and_duration()?;
            let lease = period(lease).ok_or(bad(parameter))?;
            qos.liveliness = Liveliness { kind: one_of(parameter, kinds)?, lease };
        }
        ParameterId::OWNERSHIP => {
            qos.ownership = one_of(parameter, [Ownership::Shared, Ownership::Exclusive])?
        }
        ParameterId::OWNERSHIP_STRENGTH => qos.ownership_strength = parameter.i32()?,
        ParameterId::TRANSPORT_PRIORITY => qos.transport_priority = parameter.i32()?,
        ParameterId::DESTINATION_ORDER => {
            let kinds = [DestinationOrder::ByReceptionTimestamp, DestinationOrder::BySourceTimestamp];
            qos.destination_order = one_of(parameter, kinds)?;
        }
        ParameterId::PRESENTATION => {
            let scopes = [PresentationScope::Instance, PresentationScope::Topic, PresentationScope::Group];
            let [.., coherent, ordered] = parameter.bytes::<6>()?;
            qos.presentation = Presentation {
                scope: one_of(parameter, scopes)?,
                coherent_access: coherent != 0,
                ordered_access: ordered != 0,
            };
        }
        ParameterId::GROUP_ENTITYID => qos.group = parameter.bytes::<4>().ok().map(EntityId),
        ParameterId::GROUP_GUID => qos.group = parameter.guid().ok().map(|guid| guid.entity),
        ParameterId::PARTITION => qos.partition = partition(parameter, limits)?,
        ParameterId::DATA_REPRESENTATION => {
            qos.representation.clear();
            qos.representation.extend(parameter.i16s()?.take(limits.representations));
        }
        ParameterId::RESOURCE_LIMITS => {
            qos.resource_limits = resource_limits(parameter).unwrap_or(qos.resource_limits);
        }
        _ => return Ok(decode_lenient(parameter, limits, qos)),
    }
    Ok(true)
}

/// Reads a policy that does not decide a match by itself: a value that makes no sense is left out.
fn decode_lenient(parameter: &Parameter<'_>, limits: &DiscoveryLimits, qos: &mut Qos) -> bool {
    match parameter.id {
        ParameterId::DURABILITY_SERVICE => {
            qos.durability_service = durability_service(parameter).unwrap_or(qos.durability_service);
        }
        ParameterId::TYPE_CONSISTENCY_ENFORCEMENT => {
            qos.type_consistency = type_consistency(parameter).unwrap_or(qos.type_consistency);
        }
        ParameterId::USER_DATA => opaque(parameter, limits, &mut qos.user_data),
        ParameterId::TOPIC_DATA => opaque(parameter, limits, &mut qos.topic_data),
        ParameterId::GROUP_DATA => opaque(parameter, limits, &mut qos.group_data),
        _ => return false,
    }
    true
}

fn encode_periods(kind: EndpointKind, qos: &Qos, default: &Qos, list: &mut ParameterListWriter<'_>) {
    if qos.deadline != default.deadline {
        list.duration(ParameterId::DEADLINE, wire_duration(qos.deadline));
    }
    if qos.latency_budget != default.latency_budget {
        list.duration(ParameterId::LATENCY_BUDGET, wire_duration(qos.latency_budget));
    }
    if kind == EndpointKind::Reader && qos.time_based_filter != default.time_based_filter {
        list.duration(ParameterId::TIME_BASED_FILTER, wire_duration(qos.time_based_filter));
    }
    if kind == EndpointKind::Writer && qos.lifespan != default.lifespan {
        list.duration(ParameterId::LIFESPAN, wire_duration(qos.lifespan));
    }
}

/// A writer names the one representation that it writes, a reader all that it reads.
fn encode_representation(kind: EndpointKind, qos: &Qos, list: &mut ParameterListWriter<'_>) {
    let named = match kind {
        EndpointKind::Writer => qos.representation.get(..1).unwrap_or_default(),
        EndpointKind::Reader => &qos.representation,
    };
    if !(named.is_empty() || named == [XCDR1]) {
        list.i16s(ParameterId::DATA_REPRESENTATION, named);
    }
}

fn history(parameter: &Parameter<'_>) -> Option<History> {
    let [kind, depth] = parameter.u32s().ok()?;
    history_of(kind, depth)
}

fn history_of(kind: u32, depth: u32) -> Option<History> {
    match (kind, i32::try_from(depth)) {
        (0, Ok(1..)) => Some(History::KeepLast(depth)),
        (1, _) => Some(History::KeepAll),
        _ => None,
    }
}

/// Bytes for applications; those that are too long are left out.
pub(crate) fn opaque(parameter: &Parameter<'_>, limits: &DiscoveryLimits, out: &mut Vec<u8>) {
    let bytes = parameter.byte_sequence().unwrap_or_default();
    out.clear();
    out.extend_from_slice(if bytes.len() <= limits.user_data_bytes { bytes } else { &[] });
}

/// Cleanup delay, kind and depth of the history, three limits of which -1 is none (RTPS 2.5, 9.3.2).
fn durability_service_bytes(service: &DurabilityService) -> [u8; 28] {
    let delay = wire_duration(service.service_cleanup_delay);
    let (kind, depth) = match service.history {
        History::KeepLast(depth) => (0, depth),
        History::KeepAll => (1, 1),
    };
    let limit = |limit: Option<u32>| limit.map_or(u32::MAX, |limit| limit.min(i32::MAX as u32));
    let words = [
        delay.seconds.cast_unsigned(),
        delay.fraction,
        kind,
        depth.min(i32::MAX as u32),
        limit(service.max_samples),
        limit(service.max_instances),
        limit(service.max_samples_per_instance),
    ];
    let mut bytes = [0; 28];
    bytes.chunks_exact_mut(4).zip(words).for_each(|(out, word)| out.copy_from_slice(&word.to_le_bytes()));
    bytes
}

fn durability_service(parameter: &Parameter<'_>) -> Option<DurabilityService> {
    let [seconds, fraction, kind, depth, limits @ ..] = parameter.u32s::<7>().ok()?;
    let delay = weir_wire::Duration { seconds: seconds.cast_signed(), fraction };
    let [max_samples, max_instances, max_samples_per_instance] =
        limits.map(|limit| u32::try_from(limit.cast_signed()).ok());
    Some(DurabilityService {
        service_cleanup_delay: period(delay)?,
        history: history_of(kind, depth)?,
        max_samples,
        max_instances,
        max_samples_per_instance,
    })
}

/// Kind as u16, and five flags (XTypes 1.3, 7.6.3.7, `TypeConsistencyEnforcementQosPolicy`).
fn type_consistency_bytes(policy: &TypeConsistency) -> [u8; 8] {
    let flags = [
        policy.ignore_sequence_bounds,
        policy.ignore_string_bounds,
        policy.ignore_member_names,
        policy.prevent_type_widening,
        policy.force_type_validation,
    ];
    let [a, b, c, d, e] = flags.map(u8::from);
    [policy.kind as u8, 0, a, b, c, d, e, 0]
}

fn type_consistency(parameter: &Parameter<'_>) -> Option<TypeConsistency> {
    let [low, high, flags @ ..] = parameter.bytes::<7>().ok()?;
    // In either byte order, one of the two is zero.
    let kind = match low | high {
        0 => TypeConsistencyKind::DisallowTypeCoercion,
        1 => TypeConsistencyKind::AllowTypeCoercion,
        _ => return None,
    };
    let [ignore_sequence_bounds, ignore_string_bounds, ignore_member_names, widening, validation] =
        flags.map(|flag| flag != 0);
    Some(TypeConsistency {
        kind,
        ignore_sequence_bounds,
        ignore_string_bounds,
        ignore_member_names,
        prevent_type_widening: widening,
        force_type_validation: validation,
    })
}

fn resource_limits(parameter: &Parameter<'_>) -> Result<ResourceLimits> {
    // A negative number is unlimited.
    let limits = parameter.u32s::<3>()?.map(|limit| u32::try_from(limit.cast_signed()).ok());
    let [max_samples, max_instances, max_samples_per_instance] = limits;
    Ok(ResourceLimits { max_samples, max_instances, max_samples_per_instance, max_bytes: None })
}

fn partition(parameter: &Parameter<'_>, limits: &DiscoveryLimits) -> Result<Vec<String>> {
    let too_long = DiscoveryDataError::TooLong(parameter.id);
    if parameter.u32()? as usize > limits.partitions {
        return Err(too_long);
    }
    let names = parameter.strings(limits.partitions)?;
    if names.iter().map(|name| name.len()).sum::<usize>() > limits.partition_bytes {
        return Err(too_long);
    }
    Ok(names.into_iter().map(Cow::into_owned).collect())
}

/// Returns the kind whose number is at the start of the value.
fn one_of<T: Copy, const N: usize>(parameter: &Parameter<'_>, kinds: [T; N]) -> Result<T> {
    kinds.get(parameter.u32()? as usize).copied().ok_or(bad(parameter))
}

fn bad(parameter: &Parameter<'_>) -> DiscoveryDataError {
    DiscoveryDataError::BadValue(parameter.id)
}
