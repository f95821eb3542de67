//! From the QoS of a reader to its configuration.

use weir_cdr::DdsType;
use weir_rtps::config;
use weir_rtps::qos::{Durability, History};
use weir_rtps::reader::{KeyOf, KeyOfHash, KeyPayloadOf, ReaderConfig};
use weir_wire::Guid;

use crate::clock;
use crate::error::Result;
use crate::key::{hash_of_key, instance_of_key_hash, instance_of_payload, key_payload_of};
use crate::qos::{DataReaderQos, check_policies};

pub(crate) fn check_qos(qos: &DataReaderQos) -> Result<()> {
    check_policies(&qos.announced())
}

pub(super) fn core_config<T: DdsType>(guid: Guid, qos: &DataReaderQos, hash_seed: u64) -> ReaderConfig {
    ReaderConfig {
        history: qos.history,
        wants_history: qos.durability != Durability::Volatile,
        max_samples: qos.resource_limits.max_samples,
        max_instances: qos.resource_limits.max_instances,
        max_samples_per_instance: qos.resource_limits.max_samples_per_instance,
        max_bytes: qos.resource_limits.max_bytes.unwrap_or(match qos.history {
            History::KeepAll => config::READER_CACHE_MAX_BYTES,
            History::KeepLast(_) => config::READER_CACHE_KEEP_LAST_MAX_BYTES,
        }),
        deadline: qos.deadline,
        ownership: qos.ownership,
        destination_order: qos.destination_order,
        minimum_separation: qos.time_based_filter,
        lifecycle: qos.reader_data_lifecycle,
        hash_seed,
        key_of: T::HAS_KEY.then_some(instance_of_payload::<T> as KeyOf),
        key_of_hash: T::HAS_KEY.then_some(instance_of_key_hash::<T> as KeyOfHash),
        hash_of_key: hash_of_key::<T>(),
        key_payload_of: T::HAS_KEY.then_some(key_payload_of::<T> as KeyPayloadOf),
        clock: Some(clock::now),
        ..ReaderConfig::new(guid, qos.reliability)
    }
}
