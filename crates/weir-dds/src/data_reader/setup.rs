//! From the QoS of a reader to its configuration.

use weir_cdr::DdsType;
use weir_rtps::config;
use weir_rtps::qos::{Durability, History};
use weir_rtps::reader::{KeyOf, KeyOfHash, KeyPayloadOf, ReaderConfig};
use weir_wire::Guid;

use crate::error::{DdsError, Result};
use crate::key::{instance_of_key_hash, instance_of_payload, key_payload_of};
use crate::qos::{DataReaderQos, DataRepresentation, Side};

pub(super) fn check_qos(qos: &DataReaderQos) -> Result<()> {
    crate::qos::check_policies(&qos.policies, Side::Reader)?;
    if qos.policies.durability > Durability::TransientLocal {
        let text = "DURABILITY: TRANSIENT and PERSISTENT need a durability service, which does not exist: request TRANSIENT_LOCAL";
        return Err(DdsError::InconsistentPolicy(text.to_owned()));
    }
    qos.policies.representation.iter().try_for_each(|id| DataRepresentation::from_id(*id).map(drop))
}

pub(super) fn core_config<T: DdsType>(guid: Guid, qos: &DataReaderQos, hash_seed: u64) -> ReaderConfig {
    let policies = &qos.policies;
    ReaderConfig {
        history: policies.history,
        wants_history: policies.durability != Durability::Volatile,
        max_samples: policies.resource_limits.max_samples,
        max_instances: policies.resource_limits.max_instances,
        max_samples_per_instance: policies.resource_limits.max_samples_per_instance,
        max_bytes: policies.resource_limits.max_bytes.unwrap_or(match policies.history {
            History::KeepAll => config::READER_CACHE_MAX_BYTES,
            History::KeepLast(_) => config::READER_CACHE_KEEP_LAST_MAX_BYTES,
        }),
        deadline: policies.deadline,
        ownership: policies.ownership,
        destination_order: policies.destination_order,
        minimum_separation: policies.time_based_filter,
        presentation: policies.presentation,
        hash_seed,
        key_of: T::HAS_KEY.then_some(instance_of_payload::<T> as KeyOf),
        key_of_hash: T::HAS_KEY.then_some(instance_of_key_hash::<T> as KeyOfHash),
        key_payload_of: T::HAS_KEY.then_some(key_payload_of::<T> as KeyPayloadOf),
        ..ReaderConfig::new(guid, policies.reliability)
    }
}
