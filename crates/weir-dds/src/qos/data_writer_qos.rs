//! QoS of writers.

use std::time::Duration;

use weir_rtps::qos::Qos;

use super::common::{common_setters, endpoint_setters, writing_setters};
use super::{
    BatchPolicy, Coalescing, DataRepresentation, DestinationOrder, Durability, DurabilityService, History,
    Liveliness, LivelinessKind, Ownership, PublishMode, Reliability, ResourceLimits, TopicQos,
};

/// QoS of a writer. Default: reliable, volatile, KEEP_LAST with depth 1.
///
/// ```
/// use std::time::Duration;
/// use weir_dds::{DataRepresentation, DataWriterQos};
///
/// let qos = DataWriterQos::default()
///     .keep_all()
///     .transient_local()
///     .max_blocking_time(Duration::from_millis(500))
///     .data_representation(DataRepresentation::Xcdr2);
/// # let _ = qos;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataWriterQos {
    /// Which samples late-joining readers receive.
    pub durability: Durability,
    /// What late readers receive of it if the durability is `Transient` or `Persistent`.
    pub durability_service: DurabilityService,
    /// Longest time between two samples of an instance.
    pub deadline: Duration,
    /// The acceptable additional delay.
    pub latency_budget: Duration,
    /// How the writer is asserted, and how long it may be silent.
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
    /// Under exclusive ownership, the strongest writer owns an instance.
    pub ownership_strength: i32,
    /// Names or patterns of partitions; empty: the partition with the empty name.
    pub partition: Vec<String>,
    /// Bytes for applications that discover the writer.
    pub user_data: Vec<u8>,
    /// How samples are encoded.
    pub representation: DataRepresentation,
    /// Whether unregistering an instance also disposes it; `true` by default.
    ///
    /// WRITER_DATA_LIFECYCLE, DDS 1.4, 2.2.3.21.
    pub autodispose_unregistered_instances: bool,
    /// Whether writes in quick succession leave together.
    pub coalescing: Coalescing,
    /// Whether samples are collected in one message; off by default.
    pub batch: Option<BatchPolicy>,
    /// Which thread sends; the writing thread by default.
    pub publish_mode: PublishMode,
    /// How long a reliable reader that acknowledges nothing may hold up a KEEP_ALL writer; by default as long as it is
    /// matched.
    ///
    /// DDS 1.4 has no such policy. See [`DataWriterQos::reader_inactivity`](DataWriterQos::reader_inactivity()).
    pub reader_inactivity: Option<Duration>,
    /// Whether samples are sent to the multicast groups of readers; `true` by default.
    pub multicast: bool,
}

impl Default for DataWriterQos {
    fn default() -> Self {
        let defaults = Qos::for_writer();
        Self {
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
            ownership_strength: defaults.ownership_strength,
            partition: defaults.partition,
            user_data: defaults.user_data,
            representation: DataRepresentation::Xcdr1,
            autodispose_unregistered_instances: true,
            coalescing: Coalescing::default(),
            batch: None,
            publish_mode: PublishMode::default(),
            reader_inactivity: None,
            multicast: true,
        }
    }
}

common_setters!(DataWriterQos);
endpoint_setters!(DataWriterQos);
writing_setters!(DataWriterQos);

impl DataWriterQos {
    /// Sets the representation; XCDR1 by default.
    ///
    /// ```
    /// use weir_dds::{DataRepresentation, DataWriterQos};
    ///
    /// let qos = DataWriterQos::default().data_representation(DataRepresentation::Xcdr2);
    /// # let _ = qos;
    /// ```
    #[must_use]
    pub fn data_representation(mut self, representation: DataRepresentation) -> Self {
        self.representation = representation;
        self
    }

    /// Sets the strength of the writer; 0 by default.
    ///
    /// OWNERSHIP_STRENGTH, DDS 1.4, 2.2.3.10. Under exclusive ownership, the strongest writer owns an instance. Of
    /// equal ones, the one with the lower GUID does.
    ///
    /// ```
    /// use weir_dds::{DataWriterQos, Ownership};
    ///
    /// let backup = DataWriterQos::default().ownership(Ownership::Exclusive).ownership_strength(1);
    /// # let _ = backup;
    /// ```
    #[must_use]
    pub fn ownership_strength(mut self, strength: i32) -> Self {
        self.ownership_strength = strength;
        self
    }

    /// Sets how long a reliable reader that acknowledges nothing may hold up a KEEP_ALL writer.
    ///
    /// By default, as in DDS, the writer waits for a reader for as long as its participant is alive, and after that
    /// until its lease ends. One stuck reader therefore holds up the writer and all its other readers.
    ///
    /// With this policy, the writer stops waiting for a reader that has acknowledged nothing new for `time` while
    /// samples wait for it. It serves the reader as a best-effort reader from then on. When the reader acknowledges
    /// something new, it is reliable again, and continues with the first sample that the writer still has.
    /// [`DataWriter::reader_inactivity_status`](crate::DataWriter::reader_inactivity_status) counts such readers.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weir_dds::DataWriterQos;
    ///
    /// let qos = DataWriterQos::default().keep_all().reader_inactivity(Duration::from_secs(2));
    /// # let _ = qos;
    /// ```
    #[must_use]
    pub fn reader_inactivity(mut self, time: Duration) -> Self {
        self.reader_inactivity = Some(time);
        self
    }

    /// Sets whether unregistering an instance also disposes it.
    ///
    /// WRITER_DATA_LIFECYCLE, DDS 1.4, 2.2.3.21. A writer that ends unregisters the instances that it has registered,
    /// and those that it has written, as far as it remembers them: up to 1024 with keys of up to 1 KiB; none of a
    /// participant with a limits table; none with KEEP_ALL, unless there is a deadline or a limit on instances or their
    /// samples.
    ///
    /// ```
    /// use weir_dds::DataWriterQos;
    ///
    /// // Another writer may go on with an instance that this one unregisters.
    /// let qos = DataWriterQos::default().autodispose_unregistered_instances(false);
    /// # let _ = qos;
    /// ```
    #[must_use]
    pub fn autodispose_unregistered_instances(mut self, autodispose: bool) -> Self {
        self.autodispose_unregistered_instances = autodispose;
        self
    }

    /// Sets whether samples are sent to the multicast groups of readers.
    ///
    /// ```
    /// use weir_dds::DataWriterQos;
    ///
    /// // Readers in a multicast group are sent to by unicast.
    /// let qos = DataWriterQos::default().multicast(false);
    /// # let _ = qos;
    /// ```
    #[must_use]
    pub fn multicast(mut self, multicast: bool) -> Self {
        self.multicast = multicast;
        self
    }

    /// Sets whether writes in quick succession leave together.
    ///
    /// ```
    /// use weir_dds::{Coalescing, DataWriterQos};
    ///
    /// assert_eq!(DataWriterQos::default().coalescing(Coalescing::Off).coalescing, Coalescing::Off);
    /// ```
    #[must_use]
    pub fn coalescing(mut self, coalescing: Coalescing) -> Self {
        self.coalescing = coalescing;
        self
    }

    /// Sets which thread sends (PUBLISH_MODE).
    ///
    /// ```
    /// use weir_dds::{DataWriterQos, PublishMode};
    ///
    /// let qos = DataWriterQos::default().publish_mode(PublishMode::Asynchronous);
    /// # let _ = qos;
    /// ```
    #[must_use]
    pub fn publish_mode(mut self, mode: PublishMode) -> Self {
        self.publish_mode = mode;
        self
    }

    /// Collects samples in one message.
    ///
    /// They are standard DATA submessages with the timestamp of the first.
    ///
    /// The message is sent when it is full, when its delay has passed, on [`DataWriter::flush`],
    /// and before the application blocks in a wait call. A sample written with a timestamp is sent
    /// in its own message.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weir_dds::{BatchPolicy, DataWriterQos};
    ///
    /// let policy =
    ///     BatchPolicy::new(1_400, 100, Duration::from_millis(1));
    /// let qos = DataWriterQos::default().batch(policy);
    /// # let _ = qos;
    /// ```
    ///
    /// [`DataWriter::flush`]: crate::DataWriter::flush
    #[must_use]
    pub fn batch(mut self, policy: BatchPolicy) -> Self {
        self.batch = Some(policy);
        self
    }

    /// Takes over the policies that topics have, too (DDS 1.4, 2.2.2.4.1.17, `copy_from_topic_qos`).
    ///
    /// ```
    /// use weir_dds::{DataWriterQos, Durability, TopicQos};
    ///
    /// let topic = TopicQos::default().transient_local();
    /// let qos = DataWriterQos::default().copy_from_topic_qos(&topic).keep_last(10);
    /// assert_eq!(qos.durability, Durability::TransientLocal);
    /// ```
    #[must_use]
    pub fn copy_from_topic_qos(self, topic: &TopicQos) -> Self {
        Self {
            durability: topic.durability,
            durability_service: topic.durability_service,
            deadline: topic.deadline,
            latency_budget: topic.latency_budget,
            liveliness: topic.liveliness,
            reliability: topic.reliability,
            max_blocking_time: topic.max_blocking_time,
            destination_order: topic.destination_order,
            history: topic.history,
            resource_limits: topic.resource_limits,
            transport_priority: topic.transport_priority,
            lifespan: topic.lifespan,
            ownership: topic.ownership,
            representation: topic.representation.first().copied().unwrap_or(self.representation),
            ..self
        }
    }

    /// Returns the policies as they are announced.
    pub(crate) fn announced(&self) -> Qos {
        Qos {
            reliability: self.reliability,
            max_blocking_time: self.max_blocking_time,
            durability: self.durability,
            durability_service: self.durability_service,
            history: self.history,
            deadline: self.deadline,
            latency_budget: self.latency_budget,
            transport_priority: self.transport_priority,
            liveliness: self.liveliness,
            ownership: self.ownership,
            ownership_strength: self.ownership_strength,
            destination_order: self.destination_order,
            partition: self.partition.clone(),
            lifespan: self.lifespan,
            representation: vec![self.representation.id()],
            resource_limits: self.resource_limits,
            user_data: self.user_data.clone(),
            ..Qos::for_writer()
        }
    }
}
