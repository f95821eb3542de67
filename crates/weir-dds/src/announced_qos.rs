//! The policies of writers and readers of other participants.

use std::time::Duration;

use weir_rtps::qos::{
    DestinationOrder, Durability, DurabilityService, History, Liveliness, Ownership, Presentation, Qos,
    Reliability, TypeConsistency,
};

/// Defines the structure and its conversions: each field has the name that it has in the engine.
macro_rules! announced_qos {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)*) => {
        /// The policies that a writer or reader of another participant has announced (DDS 1.4, 2.2.5).
        ///
        /// What it has not announced has its default.
        ///
        /// ```no_run
        /// # use weir_dds::{DataWriter, DdsType};
        /// # fn f<T: DdsType>(writer: &DataWriter<T>) {
        /// for reader in writer.matched_subscriptions() {
        ///     if let Some(data) = writer.matched_subscription_data(reader) {
        ///         println!("{reader}: {:?}, {:?}", data.qos.reliability, data.qos.partition);
        ///     }
        /// }
        /// # }
        /// ```
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct AnnouncedQos {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl From<Qos> for AnnouncedQos {
            fn from(qos: Qos) -> Self {
                let Qos { $($field,)* .. } = qos;
                Self { $($field,)* }
            }
        }

        impl From<AnnouncedQos> for Qos {
            fn from(qos: AnnouncedQos) -> Self {
                let AnnouncedQos { $($field,)* } = qos;
                Self { $($field,)* ..Self::for_writer() }
            }
        }
    };
}

announced_qos! {
    /// Whether lost samples are repaired.
    reliability: Reliability,
    /// Maximum time that a reliable `write` blocks for room.
    max_blocking_time: Duration,
    /// Which samples late-joining readers receive.
    durability: Durability,
    /// What late readers receive if the durability is TRANSIENT or PERSISTENT; only of writers.
    durability_service: DurabilityService,
    /// Which samples of an instance are kept.
    history: History,
    /// Maximum time between two samples of an instance.
    deadline: Duration,
    /// The acceptable additional delay.
    latency_budget: Duration,
    /// The importance of a writer's samples.
    transport_priority: i32,
    /// How the writer's liveliness is asserted.
    liveliness: Liveliness,
    /// Least time between two samples of an instance that a reader is delivered; only of readers.
    time_based_filter: Duration,
    /// Whether several writers may update an instance at a time.
    ownership: Ownership,
    /// Under exclusive ownership, the strongest live writer owns the instance.
    ownership_strength: i32,
    /// The timestamp by which samples of several writers are ordered.
    destination_order: DestinationOrder,
    /// Coherent and ordered access over several instances or topics.
    presentation: Presentation,
    /// Names, or patterns as in `fnmatch(3)`; empty: the partition with the empty name.
    partition: Vec<String>,
    /// How long a sample stays valid after it was written.
    lifespan: Duration,
    /// Ids of the data representations (XTypes 1.3, 7.6.3.1.1: 0 is XCDR1, 2 is XCDR2), preferred first.
    representation: Vec<i16>,
    /// Which types of writers a reader accepts.
    type_consistency: TypeConsistency,
    /// USER_DATA of the writer or reader.
    user_data: Vec<u8>,
    /// TOPIC_DATA of its topic.
    topic_data: Vec<u8>,
    /// GROUP_DATA of its publisher or subscriber.
    group_data: Vec<u8>,
}
