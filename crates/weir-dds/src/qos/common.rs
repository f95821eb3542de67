//! Setters that the QoS of several kinds of entities have.

/// Implements the setters of writers, readers and topics.
macro_rules! common_setters {
    ($qos:ty) => {
        impl $qos {
            /// Enables retransmission of lost samples.
            ///
            /// ```
            /// use weir_dds::{DataReaderQos, Reliability};
            ///
            /// assert_eq!(DataReaderQos::default().reliable().reliability, Reliability::Reliable);
            /// ```
            #[must_use]
            pub fn reliable(mut self) -> Self {
                self.reliability = Reliability::Reliable;
                self
            }

            /// Disables retransmission: lost samples stay lost.
            ///
            /// ```
            /// use weir_dds::{DataWriterQos, Reliability};
            ///
            /// assert_eq!(DataWriterQos::default().best_effort().reliability, Reliability::BestEffort);
            /// ```
            #[must_use]
            pub fn best_effort(mut self) -> Self {
                self.reliability = Reliability::BestEffort;
                self
            }

            /// Keeps every sample until it is delivered (writers) or taken (readers).
            ///
            /// ```
            /// use weir_dds::{DataReaderQos, History};
            ///
            /// assert_eq!(DataReaderQos::default().keep_all().history, History::KeepAll);
            /// ```
            #[must_use]
            pub fn keep_all(mut self) -> Self {
                self.history = History::KeepAll;
                self
            }

            /// Keeps the last `depth` samples of each instance.
            ///
            /// A reliable writer without a key also keeps large samples that have been sent and are not acknowledged,
            /// up to 32 MiB. On links that lose packets, they would otherwise be replaced before they have arrived
            /// whole.
            ///
            /// ```
            /// use weir_dds::{DataReaderQos, History};
            ///
            /// assert_eq!(DataReaderQos::default().keep_last(10).history, History::KeepLast(10));
            /// ```
            #[must_use]
            pub fn keep_last(mut self, depth: u32) -> Self {
                self.history = History::KeepLast(depth);
                self
            }

            /// Limits the samples, instances and bytes that are kept.
            ///
            /// ```
            /// use weir_dds::{DataReaderQos, ResourceLimits};
            ///
            /// let limits = ResourceLimits::default().max_samples(1000);
            /// let qos = DataReaderQos::default().keep_all().resource_limits(limits);
            /// # let _ = qos;
            /// ```
            #[must_use]
            pub fn resource_limits(mut self, limits: ResourceLimits) -> Self {
                self.resource_limits = limits;
                self
            }

            /// Lets late-joining readers receive the samples that the writer still keeps.
            ///
            /// ```
            /// use weir_dds::{DataWriterQos, Durability};
            ///
            /// assert_eq!(DataWriterQos::default().transient_local().durability, Durability::TransientLocal);
            /// ```
            #[must_use]
            pub fn transient_local(mut self) -> Self {
                self.durability = Durability::TransientLocal;
                self
            }

            /// Sets which samples late-joining readers receive; none by default.
            ///
            /// DURABILITY, DDS 1.4, 2.2.3.4. Weir has no durability service: with `Transient` and `Persistent`, writers
            /// serve late readers from their own history as far as DURABILITY_SERVICE permits. Nothing is kept beyond
            /// the life of the writer: see [`DataWriter::durability_status`](crate::DataWriter::durability_status).
            ///
            /// ```
            /// use weir_dds::{DataWriterQos, Durability};
            ///
            /// let qos = DataWriterQos::default().durability(Durability::Transient);
            /// # let _ = qos;
            /// ```
            #[must_use]
            pub fn durability(mut self, kind: Durability) -> Self {
                self.durability = kind;
                self
            }

            /// Sets the kind and the lease of liveliness.
            ///
            /// A writer is considered not alive after a lease without an assertion. A reader names
            /// the minimum that it requires.
            ///
            /// ```
            /// use std::time::Duration;
            /// use weir_dds::{DataWriterQos, LivelinessKind};
            ///
            /// let qos = DataWriterQos::default().liveliness(LivelinessKind::ManualByTopic, Duration::from_secs(1));
            /// # let _ = qos;
            /// ```
            #[must_use]
            pub fn liveliness(mut self, kind: LivelinessKind, lease: Duration) -> Self {
                self.liveliness = Liveliness { kind, lease };
                self
            }

            /// Sets the longest time between two samples of an instance; infinite by default.
            ///
            /// DEADLINE, DDS 1.4, 2.2.3.7. A writer commits to write each instance at least once per period, from its
            /// first sample on until it is disposed or unregistered; a reader expects that. Each missed period counts
            /// in the status OFFERED_DEADLINE_MISSED or REQUESTED_DEADLINE_MISSED. A reader that requests a shorter
            /// period than is offered does not match.
            ///
            /// ```
            /// use std::time::Duration;
            /// use weir_dds::DataReaderQos;
            ///
            /// let qos = DataReaderQos::default().deadline(Duration::from_millis(100));
            /// # let _ = qos;
            /// ```
            #[must_use]
            pub fn deadline(mut self, period: Duration) -> Self {
                self.deadline = period;
                self
            }

            /// Sets the additional delay that samples may have; none by default.
            ///
            /// LATENCY_BUDGET, DDS 1.4, 2.2.3.8, a hint. Where a path to another host limits what is sent, other
            /// writers of the same priority may go first for this time, 100 ms at most. A reader that requests a
            /// shorter budget does not match.
            ///
            /// ```
            /// use std::time::Duration;
            /// use weir_dds::DataWriterQos;
            ///
            /// let qos = DataWriterQos::default().latency_budget(Duration::from_millis(2));
            /// # let _ = qos;
            /// ```
            #[must_use]
            pub fn latency_budget(mut self, budget: Duration) -> Self {
                self.latency_budget = budget;
                self
            }

            /// Sets whether several writers may update an instance at a time; `Shared` by default.
            ///
            /// OWNERSHIP, DDS 1.4, 2.2.3.9. Both sides must have the same kind. Exclusive: a reader is delivered only
            /// the samples of the strongest writer of each instance, until that writer unregisters the instance,
            /// leaves, is not alive any more, or misses the reader's deadline for the instance.
            ///
            /// ```
            /// use weir_dds::{DataReaderQos, Ownership};
            ///
            /// let qos = DataReaderQos::default().ownership(Ownership::Exclusive);
            /// # let _ = qos;
            /// ```
            #[must_use]
            pub fn ownership(mut self, kind: Ownership) -> Self {
                self.ownership = kind;
                self
            }

            /// Sets by which timestamp samples of several writers are ordered; that of reception by default.
            ///
            /// DESTINATION_ORDER, DDS 1.4, 2.2.3.17. By source timestamp, a reader leaves out samples that are older
            /// than the last one of their instance, so that all readers end with the same value. The clocks of the
            /// writers then decide: they should be synchronized.
            ///
            /// ```
            /// use weir_dds::{DataReaderQos, DestinationOrder};
            ///
            /// let qos = DataReaderQos::default().destination_order(DestinationOrder::BySourceTimestamp);
            /// # let _ = qos;
            /// ```
            #[must_use]
            pub fn destination_order(mut self, kind: DestinationOrder) -> Self {
                self.destination_order = kind;
                self
            }
        }
    };
}

/// Implements the setters of writers and readers.
macro_rules! endpoint_setters {
    ($qos:ty) => {
        impl $qos {
            /// Sets the partitions; names are patterns as in `fnmatch(3)`.
            ///
            /// ```
            /// use weir_dds::DataReaderQos;
            ///
            /// assert_eq!(DataReaderQos::default().partition(["arm/*"]).partition, ["arm/*"]);
            /// ```
            #[must_use]
            pub fn partition(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
                self.partition = names.into_iter().map(Into::into).collect();
                self
            }

            /// Attaches bytes that applications find with the endpoint when they discover it; none by default.
            ///
            /// USER_DATA, DDS 1.4, 2.2.3.1.
            ///
            /// ```
            /// use weir_dds::DataWriterQos;
            ///
            /// assert_eq!(DataWriterQos::default().user_data(*b"camera 2").user_data, b"camera 2");
            /// ```
            #[must_use]
            pub fn user_data(mut self, bytes: impl Into<Vec<u8>>) -> Self {
                self.user_data = bytes.into();
                self
            }
        }
    };
}

/// Implements the setters of writers and topics.
macro_rules! writing_setters {
    ($qos:ty) => {
        impl $qos {
            /// Sets what late readers of a writer with durability `Transient` or `Persistent` receive; by default the
            /// last sample of each instance that has not ended.
            ///
            /// DURABILITY_SERVICE, DDS 1.4, 2.2.3.5. See [`DurabilityService`].
            ///
            /// ```
            /// use weir_dds::{DataWriterQos, Durability, DurabilityService, History};
            ///
            /// let mut service = DurabilityService::default();
            /// service.history = History::KeepLast(10);
            /// let qos = DataWriterQos::default().durability(Durability::Transient).durability_service(service);
            /// # let _ = qos;
            /// ```
            #[must_use]
            pub fn durability_service(mut self, service: DurabilityService) -> Self {
                self.durability_service = service;
                self
            }

            /// Sets how long samples are valid after they were written; without end by default.
            ///
            /// LIFESPAN, DDS 1.4, 2.2.3.16. Expired samples are not sent any more, neither as repairs nor to late
            /// readers, and make room in the history. Readers remove a sample that was not taken within this time after
            /// its arrival. No clocks are compared: a sample that waited at the writer may last up to twice as long in
            /// all.
            ///
            /// ```
            /// use std::time::Duration;
            /// use weir_dds::DataWriterQos;
            ///
            /// let qos = DataWriterQos::default().transient_local().keep_last(10).lifespan(Duration::from_secs(5));
            /// # let _ = qos;
            /// ```
            #[must_use]
            pub fn lifespan(mut self, lifespan: Duration) -> Self {
                self.lifespan = lifespan;
                self
            }

            /// Sets the maximum time that a write may block (RELIABILITY).
            ///
            /// ```
            /// use std::time::Duration;
            /// use weir_dds::DataWriterQos;
            ///
            /// let qos = DataWriterQos::default().keep_all().max_blocking_time(Duration::from_secs(1));
            /// # let _ = qos;
            /// ```
            #[must_use]
            pub fn max_blocking_time(mut self, time: Duration) -> Self {
                self.max_blocking_time = time;
                self
            }

            /// Sets how urgent the samples are, compared to those of other writers of the participant; 0 by default.
            ///
            /// TRANSPORT_PRIORITY, DDS 1.4, 2.2.3.15. Where a path to another host limits what is sent, writers of
            /// higher priority go first. Those of lower priority are left at least an eighth of what these send. At
            /// equal priority, writers get equal shares, and those that send less than their share go first. So a small
            /// topic needs no priority to pass large ones.
            ///
            /// Networks can distinguish the packets by their code point (DSCP), to which
            /// [`ParticipantSettings::dscp`](crate::ParticipantSettings::dscp) maps the priority.
            ///
            /// ```
            /// use weir_dds::DataWriterQos;
            ///
            /// let point_clouds = DataWriterQos::default().keep_last(10).transport_priority(-1);
            /// # let _ = point_clouds;
            /// ```
            #[must_use]
            pub fn transport_priority(mut self, priority: i32) -> Self {
                self.transport_priority = priority;
                self
            }
        }
    };
}

pub(super) use {common_setters, endpoint_setters, writing_setters};
