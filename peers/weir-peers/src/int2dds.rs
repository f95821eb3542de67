//! int2dds: the reader's listener takes samples, on the engine's receiving thread.
//!
//! Environment variables choose its interface; its own functions set them. Loopback cannot be chosen alone:
//! everything is sent there, but the sockets listen on the other interfaces, too.

use std::sync::Arc;
use std::time::Duration;

use int2dds::common::env;
use int2dds::common::instance_handle::InstanceHandle;
use int2dds::core::error::DdsError;
use int2dds::domain::domain_participant::DomainParticipant;
use int2dds::domain::domain_participant_factory::DomainParticipantFactory;
use int2dds::domain::qos::PARTICIPANT_QOS_DEFAULT;
use int2dds::infrastructure::qos_policy::HistoryQosPolicyKind::{KeepAll, KeepLast};
use int2dds::infrastructure::qos_policy::ReliabilityQosPolicyKind::{BestEffort, Reliable};
use int2dds::infrastructure::qos_policy::{HistoryQosPolicy, ReliabilityQosPolicy, ResourceLimitsQosPolicy};
use int2dds::infrastructure::status::StatusMask;
use int2dds::publication::data_writer::DataWriter;
use int2dds::publication::qos::{DataWriterQos, PUBLISHER_QOS_DEFAULT};
use int2dds::subscription::data_reader::DataReader;
use int2dds::subscription::data_reader_listener::DataReaderListener;
use int2dds::subscription::qos::{DataReaderQos, SUBSCRIBER_QOS_DEFAULT};
use int2dds::subscription::sample_info::{InstanceStateKind, SampleStateKind, ViewStateKind};
use int2dds::topic::DdsType;
use int2dds::topic::qos::TOPIC_QOS_DEFAULT;
use weir_peer_api::{
    Abilities, Calls, Header, Matches, Node, NodeOptions, OnSample, Peer, PeerError, Writer, Written,
    settings,
};

use crate::test_data::test_data;

pub(crate) const DEFAULT: Peer = Peer {
    name: "int2dds",
    about: "int2dds, a DDS in Rust, default configuration; UDP, taken in a listener",
    settings: &settings(SETTINGS, ["", "true", ""]),
    ..BASE
};

pub(crate) const TUNED: Peer = Peer {
    name: "int2dds-tuned",
    about: "int2dds with a limit to unacknowledged samples and large socket buffers",
    settings: &settings(SETTINGS, ["1000", "false", "4194304"]),
    ..BASE
};

const BASE: Peer = Peer {
    name: "",
    about: "",
    settings: &[],
    abilities: Abilities::DDS,
    calls: Calls { open, participant: None, version },
};

const SETTINGS: [(&str, &str); 3] = [
    ("max_samples", "ResourceLimitsQosPolicy.max_samples of the writer of a stream; empty: unlimited"),
    ("history_strict", "HistoryQosPolicy.strict: whether a KEEP_ALL writer keeps acknowledged samples"),
    ("socket_buffer", "INT2DDS_UDP_SOCKET_BUFFER, bytes; empty: int2dds's default (1 MiB to receive)"),
];

fn version() -> String {
    "1.0.0".to_owned()
}

fn open(options: &NodeOptions, on_sample: OnSample) -> Result<Box<dyn Node>, PeerError> {
    if options.is_keyed {
        open_of::<KeyedTestData>(options, "TestDataKeyed_t", on_sample)
    } else {
        open_of::<TestData>(options, "TestData_t", on_sample)
    }
}

/// Common interface of both types.
trait Data: DdsType + Clone + Send + Sync + 'static {
    fn new(header: &Header, payload: &[u8]) -> Self;
    fn parts(&self) -> (Header, &[u8]);
}

test_data!(
    #[derive(DdsType)]
    #[dds_type(extensibility = "Final")]
    TestData
);
test_data!(#[derive(DdsType)] #[dds_type(extensibility = "Final")] KeyedTestData, #[dds(key)]);

fn failed(error: DdsError) -> PeerError {
    PeerError::Engine(error.to_string())
}

fn open_of<T: Data>(
    options: &NodeOptions,
    type_name: &str,
    on_sample: OnSample,
) -> Result<Box<dyn Node>, PeerError> {
    choose_interface(options)?;
    let domain = i32::try_from(options.domain).unwrap_or_default();
    let participant = DomainParticipantFactory::get_instance()
        .create_participant(domain, PARTICIPANT_QOS_DEFAULT, None, StatusMask::default())
        .map_err(failed)?;
    let topic = |name: &str| {
        participant
            .create_topic::<T>(name, type_name, TOPIC_QOS_DEFAULT, None, StatusMask::default())
            .map_err(failed)
    };
    let writer = match &options.write_topic {
        Some(name) => {
            let publisher = participant
                .create_publisher(PUBLISHER_QOS_DEFAULT, None, StatusMask::default())
                .map_err(failed)?;
            let qos = DataWriterQos {
                reliability: reliability(options),
                history: history(options)?,
                resource_limits: resource_limits(options)?,
                ..DataWriterQos::default()
            };
            let writer = publisher.create_datawriter::<T>(&topic(name)?, qos, None, StatusMask::default());
            Some(writer.map_err(failed)?)
        }
        None => None,
    };
    let writer = Arc::new(IntWriter { writer });
    let reader = match &options.read_topic {
        Some(name) => {
            let subscriber = participant
                .create_subscriber(SUBSCRIBER_QOS_DEFAULT, None, StatusMask::default())
                .map_err(failed)?;
            let qos = DataReaderQos {
                reliability: reliability(options),
                history: history(options)?,
                ..DataReaderQos::default()
            };
            let listener = Arc::new(Listener { writer: Arc::clone(&writer), on_sample });
            let reader =
                subscriber.create_datareader::<T>(&topic(name)?, qos, Some(listener), StatusMask::default());
            Some(reader.map_err(failed)?)
        }
        None => None,
    };
    Ok(Box::new(IntNode { writer, reader, participant: Some(participant) }))
}

/// Called before the first participant, which reads the variables.
fn choose_interface(options: &NodeOptions) -> Result<(), PeerError> {
    if options.address.is_loopback() {
        env::set_use_loopback_interface(true);
        env::set_force_loopback_multicast(true);
    } else {
        env::set_network_ip(&options.address.to_string());
    }
    if let Some(bytes) = options.setting("socket_buffer")? {
        env::set_udp_socket_buffer_size(bytes);
    }
    Ok(())
}

fn duration(time: Duration) -> int2dds::core::time::Duration {
    int2dds::core::time::Duration::from_nanos(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}

fn reliability(options: &NodeOptions) -> ReliabilityQosPolicy {
    ReliabilityQosPolicy {
        kind: if options.is_reliable { Reliable } else { BestEffort },
        max_blocking_time: duration(options.max_blocking_time),
    }
}

fn history(options: &NodeOptions) -> Result<HistoryQosPolicy, PeerError> {
    Ok(HistoryQosPolicy {
        kind: if options.keeps_all { KeepAll } else { KeepLast(1) },
        strict: options.setting("history_strict")?.unwrap_or(true),
    })
}

/// Limit of unacknowledged samples of the writer.
fn resource_limits(options: &NodeOptions) -> Result<ResourceLimitsQosPolicy, PeerError> {
    let unlimited = ResourceLimitsQosPolicy::default();
    Ok(match options.setting("max_samples")?.filter(|_| options.keeps_all) {
        Some(max_samples) => {
            ResourceLimitsQosPolicy { max_samples, max_samples_per_instance: max_samples, ..unlimited }
        }
        None => unlimited,
    })
}

struct Listener<T> {
    writer: Arc<IntWriter<T>>,
    on_sample: OnSample,
}

const TAKE_MAX: i32 = 64;

impl<T: Data> DataReaderListener for Listener<T> {
    type Foo = T;

    fn on_data_available(&self, reader: &DataReader<T>) {
        const SAMPLES: [SampleStateKind; 1] = [SampleStateKind::ANY_SAMPLE_STATE];
        const VIEWS: [ViewStateKind; 1] = [ViewStateKind::ANY_VIEW_STATE];
        const INSTANCES: [InstanceStateKind; 1] = [InstanceStateKind::ANY_INSTANCE_STATE];
        while let Ok(samples) = reader.take_loaned(TAKE_MAX, &SAMPLES, &VIEWS, &INSTANCES) {
            for data in samples.iter().filter_map(|sample| sample.data().ok()) {
                let (header, payload) = data.parts();
                (self.on_sample)(&*self.writer, &header, payload);
            }
        }
    }
}

struct IntWriter<T> {
    writer: Option<DataWriter<T>>,
}

impl<T: Data> Writer for IntWriter<T> {
    fn write(&self, header: &Header, payload: &[u8]) -> Result<Written, PeerError> {
        let Some(writer) = &self.writer else { return Err(PeerError::Engine("no writer".to_owned())) };
        match writer.write(&T::new(header, payload), InstanceHandle::NIL) {
            Ok(()) => Ok(Written::Taken),
            Err(DdsError::Timeout) => Ok(Written::TimedOut),
            Err(error) => Err(failed(error)),
        }
    }
}

struct IntNode<T> {
    writer: Arc<IntWriter<T>>,
    reader: Option<DataReader<T>>,
    /// `None` once dropped.
    participant: Option<DomainParticipant>,
}

impl<T: Data> Node for IntNode<T> {
    fn writer(&self) -> &dyn Writer {
        &*self.writer
    }

    fn matches(&self) -> Matches {
        let count = |handles: Result<Vec<InstanceHandle>, DdsError>| {
            handles.ok().and_then(|handles| u32::try_from(handles.len()).ok()).unwrap_or(0)
        };
        Matches {
            readers: self.writer.writer.as_ref().map_or(0, |it| count(it.get_matched_subscriptions())),
            writers: self.reader.as_ref().map_or(0, |it| count(it.get_matched_publications())),
        }
    }

    fn wait_for_acknowledgments(&self, timeout: Duration) -> bool {
        let wait = |writer: &DataWriter<T>| writer.wait_for_acknowledgments(duration(timeout)).is_ok();
        self.writer.writer.as_ref().is_none_or(wait)
    }
}

impl<T> Drop for IntNode<T> {
    fn drop(&mut self) {
        if let Some(participant) = self.participant.take() {
            // Entities that cannot be deleted end with the process.
            let _ = participant.delete_contained_entities();
            let _ = DomainParticipantFactory::get_instance().delete_participant(participant);
        }
    }
}
