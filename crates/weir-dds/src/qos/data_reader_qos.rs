//! QoS of readers.

use std::time::Duration;

use weir_rtps::qos::Qos;

use super::common::{common_setters, endpoint_setters};
use super::{
    DataRepresentation, DestinationOrder, Durability, History, Liveliness, LivelinessKind, Ownership,
    ReaderDataLifecycle, Reliability, ResourceLimits, TopicQos, TypeConsistency,
};
use crate::multicast::MulticastGroup;

/// QoS of a reader. Default: best effort, volatile, KEEP_LAST with depth 1.
///
/// ```
/// use weir_dds::{DataReaderQos, ResourceLimits};
///
/// let limits = ResourceLimits::default().max_samples(1_000);
/// let qos = DataReaderQos::default().reliable().keep_all().resource_limits(limits);
/// # let _ = qos;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataReaderQos {
    /// Which samples from before the match are requested.
    pub durability: Durability,
    /// Longest time between two samples of an instance.
    pub deadline: Duration,
    /// The longest additional delay that writers may offer.
    pub latency_budget: Duration,
    /// The least that writers must offer.
    pub liveliness: Liveliness,
    /// Whether lost samples are requested again.
    pub reliability: Reliability,
    /// The timestamp by which samples of several writers are ordered.
    pub destination_order: DestinationOrder,
    /// Which samples of an instance are kept.
    pub history: History,
    /// Limits on what is kept.
    pub resource_limits: ResourceLimits,
    /// Whether several writers may update an instance at a time.
    pub ownership: Ownership,
    /// Least time between two values of an instance (TIME_BASED_FILTER).
    pub time_based_filter: Duration,
    /// When samples of instances that have ended are removed.
    pub reader_data_lifecycle: ReaderDataLifecycle,
    /// Names or patterns of partitions; empty: the partition with the empty name.
    pub partition: Vec<String>,
    /// Bytes for applications that discover the reader.
    pub user_data: Vec<u8>,
    /// The accepted encodings, preferred first; empty: XCDR1.
    pub representation: Vec<DataRepresentation>,
    /// Which types of writers are accepted.
    pub type_consistency: TypeConsistency,
    /// A multicast group to join in addition to the unicast address.
    ///
    /// `None`: the participant's group
    /// ([`ParticipantSettings::data_multicast`](crate::ParticipantSettings::data_multicast)), if it
    /// has one.
    pub multicast: Option<MulticastGroup>,
}

impl Default for DataReaderQos {
    fn default() -> Self {
        let defaults = Qos::for_reader();
        Self {
            durability: defaults.durability,
            deadline: defaults.deadline,
            latency_budget: defaults.latency_budget,
            liveliness: defaults.liveliness,
            reliability: defaults.reliability,
            destination_order: defaults.destination_order,
            history: defaults.history,
            resource_limits: defaults.resource_limits,
            ownership: defaults.ownership,
            time_based_filter: defaults.time_based_filter,
            reader_data_lifecycle: ReaderDataLifecycle::default(),
            partition: defaults.partition,
            user_data: defaults.user_data,
            representation: vec![DataRepresentation::Xcdr1, DataRepresentation::Xcdr2],
            type_consistency: defaults.type_consistency,
            multicast: None,
        }
    }
}

common_setters!(DataReaderQos);
endpoint_setters!(DataReaderQos);

impl DataReaderQos {
    /// Joins a multicast group in addition to the unicast address.
    ///
    /// A writer with several readers in the group sends each sample once, and again what several of them
    /// have lost. What one has lost is sent to it by unicast.
    ///
    /// ```
    /// use weir_dds::{DataReaderQos, MulticastGroup};
    ///
    /// let qos = DataReaderQos::default().multicast(MulticastGroup::default());
    /// # let _ = qos;
    /// ```
    #[must_use]
    pub fn multicast(mut self, group: MulticastGroup) -> Self {
        self.multicast = Some(group);
        self
    }

    /// Sets the least time between two values of an instance; zero by default.
    ///
    /// TIME_BASED_FILTER, DDS 1.4, 2.2.3.12. Values that arrive sooner after the last one that was delivered are left
    /// out. A reliable reader is delivered the last of them at the end of the separation. Ends of instances always are.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weir_dds::DataReaderQos;
    ///
    /// // At most ten samples a second of each instance.
    /// let qos = DataReaderQos::default().time_based_filter(Duration::from_millis(100));
    /// # let _ = qos;
    /// ```
    #[must_use]
    pub fn time_based_filter(mut self, minimum_separation: Duration) -> Self {
        self.time_based_filter = minimum_separation;
        self
    }

    /// Sets the accepted representations, preferred first; all by default.
    ///
    /// ```
    /// use weir_dds::{DataReaderQos, DataRepresentation};
    ///
    /// let qos = DataReaderQos::default().data_representation([DataRepresentation::Xcdr2]);
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

    /// Sets when samples of instances that have ended are removed, although they were not taken; never by default.
    ///
    /// READER_DATA_LIFECYCLE, DDS 1.4, 2.2.3.22.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weir_dds::{DataReaderQos, ReaderDataLifecycle};
    ///
    /// let mut lifecycle = ReaderDataLifecycle::default();
    /// lifecycle.autopurge_disposed_samples_delay = Duration::from_secs(60);
    /// let qos = DataReaderQos::default().reader_data_lifecycle(lifecycle);
    /// # let _ = qos;
    /// ```
    #[must_use]
    pub fn reader_data_lifecycle(mut self, lifecycle: ReaderDataLifecycle) -> Self {
        self.reader_data_lifecycle = lifecycle;
        self
    }

    /// Sets which types of writers are accepted; by default those of the same name.
    ///
    /// TYPE_CONSISTENCY_ENFORCEMENT, DDS-XTypes 1.3, 7.6.3.7. See [`TypeConsistency`].
    ///
    /// ```
    /// use weir_dds::{DataReaderQos, TypeConsistency, TypeConsistencyKind};
    ///
    /// let strict = TypeConsistency::default().kind(TypeConsistencyKind::DisallowTypeCoercion);
    /// let qos = DataReaderQos::default().type_consistency(strict);
    /// # let _ = qos;
    /// ```
    #[must_use]
    pub fn type_consistency(mut self, consistency: TypeConsistency) -> Self {
        self.type_consistency = consistency;
        self
    }

    /// Takes over the policies that topics have, too (DDS 1.4, 2.2.2.5.2.17, `copy_from_topic_qos`).
    ///
    /// ```
    /// use weir_dds::{DataReaderQos, History, TopicQos};
    ///
    /// let qos = DataReaderQos::default().copy_from_topic_qos(&TopicQos::default().keep_last(10));
    /// assert_eq!(qos.history, History::KeepLast(10));
    /// ```
    #[must_use]
    pub fn copy_from_topic_qos(self, topic: &TopicQos) -> Self {
        let is_set = !topic.representation.is_empty();
        Self {
            durability: topic.durability,
            deadline: topic.deadline,
            latency_budget: topic.latency_budget,
            liveliness: topic.liveliness,
            reliability: topic.reliability,
            destination_order: topic.destination_order,
            history: topic.history,
            resource_limits: topic.resource_limits,
            ownership: topic.ownership,
            representation: if is_set { topic.representation.clone() } else { self.representation },
            ..self
        }
    }

    /// Returns the policies as they are announced.
    pub(crate) fn announced(&self) -> Qos {
        Qos {
            reliability: self.reliability,
            durability: self.durability,
            history: self.history,
            deadline: self.deadline,
            latency_budget: self.latency_budget,
            liveliness: self.liveliness,
            time_based_filter: self.time_based_filter,
            ownership: self.ownership,
            destination_order: self.destination_order,
            partition: self.partition.clone(),
            representation: self.representation.iter().map(|representation| representation.id()).collect(),
            type_consistency: self.type_consistency,
            resource_limits: self.resource_limits,
            user_data: self.user_data.clone(),
            ..Qos::for_reader()
        }
    }
}
