//! RustDDS: a thread of this module takes samples from its asynchronous stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use futures::StreamExt as _;
use futures::executor::block_on;
use rustdds::dds::statusevents::{DataWriterStatus, StatusEvented as _};
use rustdds::no_key::{DataReader, DataWriter};
use rustdds::policy::{History, Reliability, ResourceLimits};
use rustdds::{DomainParticipant, DomainParticipantBuilder, QosPolicies, QosPolicyBuilder, TopicKind};
use serde::{Deserialize, Serialize};
use weir_peer_api::{
    Abilities, Calls, Header, Matches, Node, NodeOptions, OnSample, Peer, PeerError, Setting, Writer, Written,
};

use crate::test_data::test_data;

pub(crate) const PEER: Peer = Peer {
    name: "rustdds",
    about: "RustDDS, a DDS in Rust; UDP on one interface, taken from its asynchronous stream",
    settings: SETTINGS,
    abilities: Abilities { keyed: false, many: false, ..Abilities::DDS },
    calls: Calls { open, participant: None, version },
};

const SETTINGS: &[Setting] = &[
    Setting::new(
        "socket_receive_buffer",
        "",
        "socket_receive_buffer_size, bytes; empty: RustDDS's default (8 MiB)",
    ),
    Setting::new(
        "socket_send_buffer",
        "",
        "socket_send_buffer_size, bytes; empty: RustDDS's default (8 MiB)",
    ),
    Setting::new("max_samples", "", "ResourceLimits.max_samples of both ends; empty: RustDDS's default (64)"),
];

fn version() -> String {
    "0.15.1".to_owned()
}

trait Data {
    fn new(header: &Header, payload: &[u8]) -> Self;
    fn parts(&self) -> (Header, &[u8]);
}

test_data!(
    #[derive(Serialize, Deserialize)]
    TestData
);

fn failed(error: impl std::fmt::Display) -> PeerError {
    PeerError::Engine(error.to_string())
}

fn open(options: &NodeOptions, on_sample: OnSample) -> Result<Box<dyn Node>, PeerError> {
    let domain = u16::try_from(options.domain).map_err(failed)?;
    let mut builder = DomainParticipantBuilder::new(domain).with_only_networks([options.address]);
    if let Some(bytes) = options.setting("socket_receive_buffer")? {
        builder = builder.socket_receive_buffer_size(bytes);
    }
    if let Some(bytes) = options.setting("socket_send_buffer")? {
        builder = builder.socket_send_buffer_size(bytes);
    }
    let participant = builder.build().map_err(failed)?;
    let qos = qos(options)?;
    let topic = |name: &str| {
        participant
            .create_topic(name.to_owned(), "TestData_t".to_owned(), &qos, TopicKind::NoKey)
            .map_err(failed)
    };
    let writer = match &options.write_topic {
        Some(name) => {
            let publisher = participant.create_publisher(&qos).map_err(failed)?;
            let writer = publisher.create_datawriter_no_key_cdr::<TestData>(&topic(name)?, None);
            Some(writer.map_err(failed)?)
        }
        None => None,
    };
    let writer = Arc::new(RustWriter { writer, readers: AtomicU32::new(0) });
    if let Some(name) = &options.read_topic {
        let subscriber = participant.create_subscriber(&qos).map_err(failed)?;
        let reader =
            subscriber.create_datareader_no_key_cdr::<TestData>(&topic(name)?, None).map_err(failed)?;
        let writer = Arc::clone(&writer);
        // It ends with the process: the stream cannot be stopped.
        thread::Builder::new()
            .name("rustdds take".to_owned())
            .spawn(move || take_all(reader, &writer, &on_sample))
            .map_err(failed)?;
    }
    Ok(Box::new(RustNode { writer, participant, read_topic: options.read_topic.clone() }))
}

fn qos(options: &NodeOptions) -> Result<QosPolicies, PeerError> {
    let nanos = i64::try_from(options.max_blocking_time.as_nanos()).unwrap_or(i64::MAX);
    let mut qos = QosPolicyBuilder::new().reliability(if options.is_reliable {
        Reliability::Reliable { max_blocking_time: rustdds::Duration::from_nanos(nanos) }
    } else {
        Reliability::BestEffort
    });
    qos = qos.history(if options.keeps_all { History::KeepAll } else { History::KeepLast { depth: 1 } });
    if let Some(max_samples) = options.setting("max_samples")? {
        let (max_instances, max_samples_per_instance) = (1, max_samples);
        qos = qos.resource_limits(ResourceLimits { max_samples, max_instances, max_samples_per_instance });
    }
    Ok(qos.build())
}

type CdrReader = DataReader<TestData, rustdds::serialization::CDRDeserializerAdapter<TestData>>;

fn take_all(reader: CdrReader, writer: &RustWriter, on_sample: &OnSample) {
    let mut samples = reader.async_sample_stream();
    block_on(async {
        while let Some(sample) = samples.next().await {
            let Ok(sample) = sample else { continue };
            let (header, payload) = sample.value().parts();
            on_sample(writer, &header, payload);
        }
    });
}

struct RustWriter {
    writer: Option<DataWriter<TestData, rustdds::serialization::CDRSerializerAdapter<TestData>>>,
    /// Readers that are matched now.
    readers: AtomicU32,
}

impl RustWriter {
    fn look_for_readers(&self) {
        let Some(writer) = &self.writer else { return };
        while let Some(status) = writer.try_recv_status() {
            if let DataWriterStatus::PublicationMatched { current, .. } = status {
                self.readers.store(u32::try_from(current.count()).unwrap_or(0), Ordering::Relaxed);
            }
        }
    }
}

impl Writer for RustWriter {
    fn write(&self, header: &Header, payload: &[u8]) -> Result<Written, PeerError> {
        let Some(writer) = &self.writer else { return Err(PeerError::Engine("no writer".to_owned())) };
        match writer.write(TestData::new(header, payload), None) {
            Ok(()) => Ok(Written::Taken),
            Err(rustdds::dds::result::WriteError::WouldBlock { .. }) => Ok(Written::TimedOut),
            Err(error) => Err(failed(error)),
        }
    }
}

struct RustNode {
    writer: Arc<RustWriter>,
    participant: DomainParticipant,
    read_topic: Option<String>,
}

impl Node for RustNode {
    fn writer(&self) -> &dyn Writer {
        &*self.writer
    }

    fn matches(&self) -> Matches {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        self.writer.look_for_readers();
        let readers = self.writer.readers.load(Ordering::Relaxed);
        // The stream owns the reader and hides its matches; discovered writers are matched soon after.
        let writers = self.read_topic.as_ref().map_or(0, |topic| {
            let known = self.participant.discovered_writers();
            known.iter().filter(|writer| writer.publication_topic_data.topic_name() == topic).count()
        });
        Matches { readers, writers: count(writers) }
    }

    fn wait_for_acknowledgments(&self, timeout: Duration) -> bool {
        self.writer
            .writer
            .as_ref()
            .is_none_or(|writer| writer.wait_for_acknowledgments(timeout).is_ok_and(|is_done| is_done))
    }
}
