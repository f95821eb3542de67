//! Checks the QoS of a writer and derives the core's configuration.

use weir_cdr::{DdsType, Encoding};
use weir_rtps::config::LATENCY_BUDGET_MAX;
use weir_rtps::qos::Reliability;
use weir_rtps::writer::{Coalescing as CoreCoalescing, WriterConfig};
use weir_wire::Guid;

use crate::error::{DdsError, Result};
use crate::qos::{BatchPolicy, Coalescing, DataWriterQos, PublishMode, check_policies};

/// Lower bound of a batch's `max_bytes`: the headers and some room for samples.
const BATCH_BYTES_MIN: usize = 128;

/// Checks the QoS, and returns the encoding it stands for.
pub(crate) fn check_qos(qos: &DataWriterQos) -> Result<Encoding> {
    if let Some(batch) = qos.batch
        && (batch.max_bytes < BATCH_BYTES_MIN || batch.max_samples == 0)
    {
        let text = format!("BATCH: max_bytes must be at least {BATCH_BYTES_MIN}, and max_samples at least 1");
        return Err(DdsError::InconsistentPolicy(text));
    }
    check_policies(&qos.announced())?;
    Ok(qos.representation.encoding())
}

pub(super) fn core_config<T: DdsType>(guid: Guid, qos: &DataWriterQos, hash_seed: u64) -> WriterConfig {
    let is_reliable = qos.reliability == Reliability::Reliable;
    WriterConfig {
        history: qos.history,
        durability: qos.durability,
        durability_service: qos.durability_service,
        // The history of a best-effort writer stays empty, so only the limit on instances applies.
        max_samples: qos.resource_limits.max_samples.filter(|_| is_reliable),
        max_samples_per_instance: qos.resource_limits.max_samples_per_instance.filter(|_| is_reliable),
        max_instances: qos.resource_limits.max_instances,
        max_bytes: qos.resource_limits.max_bytes.filter(|_| is_reliable),
        hash_seed,
        coalescing: match qos.coalescing {
            Coalescing::Off => None,
            Coalescing::Automatic { delay_max } => {
                Some(CoreCoalescing { delay_max, ..CoreCoalescing::default() })
            }
        },
        batch: batch_of(qos),
        reader_inactivity: qos.reader_inactivity,
        transport_priority: qos.transport_priority,
        latency_budget: qos.latency_budget,
        lifespan: qos.lifespan,
        deadline: qos.deadline,
        description: T::DESCRIPTION,
        is_asynchronous: qos.publish_mode == PublishMode::Asynchronous,
        ..WriterConfig::new(guid, qos.reliability)
    }
}

/// Returns how samples are collected: as the application chose, or for a part of the latency budget.
pub(super) fn batch_of(qos: &DataWriterQos) -> Option<BatchPolicy> {
    let max_delay = qos.latency_budget.min(LATENCY_BUDGET_MAX) / BUDGET_SHARE;
    let by_budget = BatchPolicy::new(BUDGET_BATCH_BYTES, BUDGET_BATCH_SAMPLES, max_delay);
    qos.batch.or((!max_delay.is_zero()).then_some(by_budget))
}

/// Samples wait for others for this part of the latency budget. The rest is for the network and the reader.
const BUDGET_SHARE: u32 = 2;
/// Largest message of samples that wait for others, in bytes. The paths to the readers limit it further.
const BUDGET_BATCH_BYTES: usize = 8192;
/// Most samples in such a message.
const BUDGET_BATCH_SAMPLES: u32 = 4096;

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use weir_rtps::qos::{Durability, DurabilityService, History};
    use weir_wire::{EntityId, GuidPrefix};

    use super::*;
    use crate::ResourceLimits;

    #[derive(Default, DdsType)]
    #[dds(extensibility = "final")]
    struct Value {
        value: u32,
    }

    #[test]
    fn the_core_of_a_writer_has_the_policies_that_it_enforces() {
        let period = Duration::from_millis;
        let service = DurabilityService { max_samples: Some(9), ..DurabilityService::default() };
        let limits = ResourceLimits::default().max_samples(8).max_instances(7).max_samples_per_instance(6);
        let qos = DataWriterQos::default()
            .keep_last(5)
            .durability(Durability::Transient)
            .durability_service(service)
            .resource_limits(limits.max_bytes(10_000))
            .transport_priority(4)
            .latency_budget(period(3))
            .lifespan(period(2))
            .deadline(period(1));
        let guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, false));
        let core = core_config::<Value>(guid, &qos, 0);
        assert_eq!((core.reliability, core.history), (Reliability::Reliable, History::KeepLast(5)));
        assert_eq!((core.durability, core.durability_service), (Durability::Transient, service));
        assert_eq!((core.max_samples, core.max_instances), (Some(8), Some(7)));
        assert_eq!((core.max_samples_per_instance, core.max_bytes), (Some(6), Some(10_000)));
        assert_eq!((core.transport_priority, core.latency_budget), (4, period(3)));
        assert_eq!((core.lifespan, core.deadline), (period(2), period(1)));
        assert_eq!(core.batch.map(|batch| batch.max_delay), Some(period(3) / BUDGET_SHARE));
        // Nothing waits in the history of a best-effort writer.
        let core = core_config::<Value>(guid, &qos.best_effort(), 0);
        assert_eq!((core.max_samples, core.max_samples_per_instance, core.max_bytes), (None, None, None));
        assert_eq!(core.max_instances, Some(7));
    }
}
