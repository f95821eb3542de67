//! Checks the QoS of a writer and derives the core's configuration.

use weir_cdr::{DdsType, Encoding};
use weir_rtps::qos::{Durability, Reliability};
use weir_rtps::writer::{Coalescing as CoreCoalescing, WriterConfig};
use weir_wire::Guid;

use crate::error::{DdsError, Result};
use crate::qos::{Coalescing, DataRepresentation, DataWriterQos, PublishMode, Side};

/// Lower bound of a batch's `max_bytes`: the headers and some room for samples.
const BATCH_BYTES_MIN: usize = 128;

/// Checks the QoS, and returns the encoding it stands for.
pub(super) fn check_qos(qos: &DataWriterQos) -> Result<Encoding> {
    let policies = &qos.policies;
    if let Some(batch) = qos.batch
        && (batch.max_bytes < BATCH_BYTES_MIN || batch.max_samples == 0)
    {
        let text = format!("BATCH: max_bytes must be at least {BATCH_BYTES_MIN}, and max_samples at least 1");
        return Err(DdsError::InconsistentPolicy(text));
    }
    crate::qos::check_policies(policies, Side::Writer)?;
    if policies.durability > Durability::TransientLocal {
        let text = "DURABILITY: there is no service for TRANSIENT and PERSISTENT; TRANSIENT_LOCAL keeps samples \
                    as long as their writer lives";
        return Err(DdsError::InconsistentPolicy(text.to_owned()));
    }
    match policies.representation[..] {
        [] => Ok(Encoding::Xcdr1),
        [id] => Ok(DataRepresentation::from_id(id)?.encoding()),
        _ => Err(DdsError::InconsistentPolicy(
            "DATA_REPRESENTATION: a writer has one representation".to_owned(),
        )),
    }
}

pub(super) fn core_config<T: DdsType>(guid: Guid, qos: &DataWriterQos, hash_seed: u64) -> WriterConfig {
    let policies = &qos.policies;
    let is_reliable = policies.reliability == Reliability::Reliable;
    WriterConfig {
        history: policies.history,
        durability: policies.durability,
        // The history of a best-effort writer stays empty, so only the limit on instances applies.
        max_samples: policies.resource_limits.max_samples.filter(|_| is_reliable),
        max_samples_per_instance: policies.resource_limits.max_samples_per_instance.filter(|_| is_reliable),
        max_instances: policies.resource_limits.max_instances,
        max_bytes: policies.resource_limits.max_bytes.filter(|_| is_reliable),
        hash_seed,
        coalescing: match qos.coalescing {
            Coalescing::Off => None,
            Coalescing::Automatic { delay_max } => {
                Some(CoreCoalescing { delay_max, ..CoreCoalescing::default() })
            }
        },
        batch: qos.batch,
        reader_inactivity: qos.reader_inactivity,
        transport_priority: policies.transport_priority,
        latency_budget: policies.latency_budget,
        lifespan: policies.lifespan,
        deadline: policies.deadline,
        description: T::DESCRIPTION,
        is_asynchronous: qos.publish_mode == PublishMode::Asynchronous,
        ..WriterConfig::new(guid, policies.reliability)
    }
}
