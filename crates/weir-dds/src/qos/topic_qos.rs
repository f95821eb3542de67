//! QoS of topics.

use std::time::Duration;

use weir_rtps::qos::{PolicyId, Qos};

use super::common::{common_setters, writing_setters};
use super::{
    DataRepresentation, DataWriterQos, DestinationOrder, Durability, DurabilityService, History, Liveliness,
    LivelinessKind, Ownership, Reliability, ResourceLimits, USER_DATA_MAX, check_policies,
};
use crate::error::{DdsError, Result};

/// QoS of a topic: what its writers and readers can take over, and TOPIC_DATA.
///
/// Endpoints have QoS of their own: a topic's policies have effect where
/// [`DataWriterQos::copy_from_topic_qos`](crate::DataWriterQos::copy_from_topic_qos) or
/// [`DataReaderQos::copy_from_topic_qos`](crate::DataReaderQos::copy_from_topic_qos) takes them over. TOPIC_DATA is
/// announced with each endpoint.
///
/// ```
/// use weir_dds::{DataWriterQos, TopicQos};
///
/// let topic_qos = TopicQos::default().reliable().transient_local().topic_data(*b"calibration 7");
/// let writer_qos = DataWriterQos::default().copy_from_topic_qos(&topic_qos);
/// # let _ = writer_qos;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicQos {
    /// Bytes for applications that discover the topic's endpoints (TOPIC_DATA, DDS 1.4, 2.2.3.2).
    pub topic_data: Vec<u8>,
    /// Which samples late-joining readers receive.
    pub durability: Durability,
    /// What late readers receive of it if the durability is `Transient` or `Persistent`.
    pub durability_service: DurabilityService,
    /// Longest time between two samples of an instance.
    pub deadline: Duration,
    /// The acceptable additional delay.
    pub latency_budget: Duration,
    /// How writers are asserted, and how long they may be silent.
    pub liveliness: Liveliness,
    /// Whether lost samples are sent again.
    pub reliability: Reliability,
    /// Longest time that a write may block (RELIABILITY).
    pub max_blocking_time: Duration,
    /// The timestamp by which samples of several writers are ordered.
    pub destination_order: DestinationOrder,
    /// Which samples of an instance are kept.
    pub history: History,
    /// Limits on what is kept.
    pub resource_limits: ResourceLimits,
    /// How urgent the samples are.
    pub transport_priority: i32,
    /// How long a sample is valid after it was written.
    pub lifespan: Duration,
    /// Whether several writers may update an instance at a time.
    pub ownership: Ownership,
    /// The encodings; a writer takes over the first. Empty: the endpoints' own.
    pub representation: Vec<DataRepresentation>,
}

impl Default for TopicQos {
    /// The defaults of DDS 1.4, 2.2.3: best effort, volatile, KEEP_LAST with depth 1.
    fn default() -> Self {
        let defaults = Qos::for_reader();
        Self {
            topic_data: Vec::new(),
            durability: defaults.durability,
            durability_service: defaults.durability_service,
            deadline: defaults.deadline,
            latency_budget: defaults.latency_budget,
            liveliness: defaults.liveliness,
            reliability: defaults.reliability,
            max_blocking_time: defaults.max_blocking_time,
            destination_order: defaults.destination_order,
            history: defaults.history,
            resource_limits: defaults.resource_limits,
            transport_priority: defaults.transport_priority,
            lifespan: defaults.lifespan,
            ownership: defaults.ownership,
            representation: Vec::new(),
        }
    }
}

common_setters!(TopicQos);
writing_setters!(TopicQos);

impl TopicQos {
    /// Refuses policies that contradict each other.
    pub(crate) fn check(&self) -> Result<()> {
        let len = self.topic_data.len();
        if len > USER_DATA_MAX {
            let text = format!("TOPIC_DATA: {len} bytes are too many: use at most {USER_DATA_MAX}");
            return Err(DdsError::InconsistentPolicy(text));
        }
        check_policies(&DataWriterQos::default().copy_from_topic_qos(self).announced())
    }

    /// Refuses other values of policies that cannot be changed: all but TOPIC_DATA, DEADLINE, LATENCY_BUDGET,
    /// TRANSPORT_PRIORITY and LIFESPAN.
    pub(crate) fn check_change(&self, now: &Self) -> Result<()> {
        let endpoint = |qos| DataWriterQos::default().copy_from_topic_qos(qos);
        endpoint(self).check_change(&endpoint(now))?;
        // Of its representations, a writer takes over the first only.
        if self.representation == now.representation {
            return Ok(());
        }
        Err(DdsError::ImmutablePolicy { policies: PolicyId::DataRepresentation.name().to_owned() })
    }

    /// Sets the bytes for applications that discover the topic's endpoints; none by default.
    ///
    /// ```
    /// use weir_dds::TopicQos;
    ///
    /// assert_eq!(TopicQos::default().topic_data(*b"version 2").topic_data, b"version 2");
    /// ```
    #[must_use]
    pub fn topic_data(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.topic_data = bytes.into();
        self
    }

    /// Sets the encodings; a writer takes over the first.
    ///
    /// ```
    /// use weir_dds::{DataRepresentation, TopicQos};
    ///
    /// let qos = TopicQos::default().data_representation([DataRepresentation::Xcdr2]);
    /// # let _ = qos;
    /// ```
    #[must_use]
    pub fn data_representation(
        mut self,
        representations: impl IntoIterator<Item = DataRepresentation>,
    ) -> Self {
        self.representation = representations.into_iter().collect();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_of_the_representations_of_a_topic_can_be_changed() {
        use DataRepresentation::{Xcdr1, Xcdr2};
        let qos = |representations: &[_]| TopicQos::default().data_representation(representations.to_vec());
        let both = qos(&[Xcdr1, Xcdr2]);
        assert!(both.check_change(&both).is_ok());
        for other in [qos(&[Xcdr1]), qos(&[Xcdr2, Xcdr1]), qos(&[])] {
            let Err(DdsError::ImmutablePolicy { policies }) = both.check_change(&other) else {
                panic!("{other:?}")
            };
            assert_eq!(policies, PolicyId::DataRepresentation.name());
        }
    }
}
