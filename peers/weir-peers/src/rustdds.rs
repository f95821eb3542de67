//! RustDDS: a thread of this module takes samples from its asynchronous stream.
//!
//! A reader acknowledges samples on arrival and keeps the newest of them, taken or not. So it loses what does not fit
//! its limit before the thread gets there. Socket buffers overflow when a writer's window exceeds them, and repairs
//! are slow.

use std::future::ready;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use futures::StreamExt as _;
use futures::executor::block_on;
use rustdds::dds::statusevents::{DataWriterStatus, StatusEvented as _};
use rustdds::no_key::{DataReader, DataWriter, SimpleDataReader};
use rustdds::policy::{Deadline, History, Reliability, ResourceLimits};
use rustdds::serialization::{CDRDeserializerAdapter, CDRSerializerAdapter};
use rustdds::{DomainParticipant, DomainParticipantBuilder, QosPolicies, QosPolicyBuilder, TopicKind};
use serde::{Deserialize, Serialize};
use weir_peer_api::{
    Abilities, Calls, Header, Matches, Node, NodeOptions, OnSample, Peer, PeerError, Writer, Written,
    settings,
};

use crate::test_data::test_data;

pub(crate) const DEFAULT: Peer = Peer {
    name: "rustdds",
    about: "RustDDS, a DDS in Rust; UDP on one interface, taken from its asynchronous stream",
    settings: &settings(SETTINGS, ["", "", "stream", "", "", "", ""]),
    ..BASE
};

pub(crate) const TUNED: Peer = Peer {
    name: "rustdds-tuned",
    about: "RustDDS with a long history of the reader, taken from the stream of a SimpleDataReader",
    settings: &settings(SETTINGS, ["4194304", "4194304", "simple", "", "1073741824", "1048576", "5"]),
    ..BASE
};

const BASE: Peer = Peer {
    name: "",
    about: "",
    settings: &[],
    abilities: Abilities { keyed: false, many: false, ..Abilities::DDS },
    calls: Calls { open, participant: None, version },
};

const SETTINGS: [(&str, &str); 7] = [
    ("socket_receive_buffer", "socket_receive_buffer_size, bytes; empty: RustDDS's default (8 MiB)"),
    ("socket_send_buffer", "socket_send_buffer_size, bytes; empty: RustDDS's default (8 MiB)"),
    ("reader", "stream: async_sample_stream of a DataReader; simple: as_async_stream of a SimpleDataReader"),
    (
        "max_samples",
        "ResourceLimits.max_samples of both ends; empty: RustDDS's defaults (writer 8192, reader 64)",
    ),
    (
        "reader_bytes",
        "raises max_samples of the reader to what so many bytes of payload hold, to 1000000 samples at most",
    ),
    (
        "writer_bytes",
        "lowers max_samples of the writer to what so many bytes of payload hold, to 8 samples at least",
    ),
    (
        "deadline_ms",
        "Deadline of a reliable writer, which repairs every fifth of it; empty: none, every 10 ms",
    ),
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
    let topic_qos = qos(options, options.setting("max_samples")?).build();
    let topic = |name: &str| {
        participant
            .create_topic(name.to_owned(), "TestData_t".to_owned(), &topic_qos, TopicKind::NoKey)
            .map_err(failed)
    };
    let writer = match &options.write_topic {
        Some(name) => {
            let qos = writer_qos(options)?;
            let publisher = participant.create_publisher(&qos).map_err(failed)?;
            let writer = publisher.create_datawriter_no_key_cdr::<TestData>(&topic(name)?, Some(qos));
            Some(writer.map_err(failed)?)
        }
        None => None,
    };
    let writer = Arc::new(RustWriter { writer, readers: AtomicU32::new(0) });
    if let Some(name) = &options.read_topic {
        let reader_qos = qos(options, reader_max_samples(options)?).build();
        let subscriber = participant.create_subscriber(&reader_qos).map_err(failed)?;
        let (topic, writer) = (topic(name)?, Arc::clone(&writer));
        let take: Box<dyn FnOnce() + Send> = match options.setting("reader")? {
            Some(Taking::Simple) => {
                let reader = subscriber
                    .create_simple_datareader_no_key::<TestData, Cdr>(&topic, Some(reader_qos))
                    .map_err(failed)?;
                Box::new(move || take_all_simply(&reader, &writer, &on_sample))
            }
            _ => {
                let reader = subscriber
                    .create_datareader_no_key_cdr::<TestData>(&topic, Some(reader_qos))
                    .map_err(failed)?;
                Box::new(move || take_all(reader, &writer, &on_sample))
            }
        };
        // It ends with the process: the stream cannot be stopped.
        thread::Builder::new().name("rustdds take".to_owned()).spawn(take).map_err(failed)?;
    }
    Ok(Box::new(RustNode { writer, participant, read_topic: options.read_topic.clone() }))
}

/// How samples are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taking {
    Stream,
    Simple,
}

impl FromStr for Taking {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "stream" => Ok(Self::Stream),
            "simple" => Ok(Self::Simple),
            _ => Err(()),
        }
    }
}

fn writer_qos(options: &NodeOptions) -> Result<QosPolicies, PeerError> {
    let mut qos = qos(options, writer_max_samples(options)?);
    if let Some(ms) = options.setting("deadline_ms")?.filter(|_| options.is_reliable) {
        qos = qos.deadline(Deadline(rustdds::Duration::from_millis(ms)));
    }
    Ok(qos.build())
}

fn qos(options: &NodeOptions, max_samples: Option<i32>) -> QosPolicyBuilder {
    let nanos = i64::try_from(options.max_blocking_time.as_nanos()).unwrap_or(i64::MAX);
    let mut qos = QosPolicyBuilder::new().reliability(if options.is_reliable {
        Reliability::Reliable { max_blocking_time: rustdds::Duration::from_nanos(nanos) }
    } else {
        Reliability::BestEffort
    });
    qos = qos.history(if options.keeps_all { History::KeepAll } else { History::KeepLast { depth: 1 } });
    if let Some(max_samples) = max_samples {
        let (max_instances, max_samples_per_instance) = (1, max_samples);
        qos = qos.resource_limits(ResourceLimits { max_samples, max_instances, max_samples_per_instance });
    }
    qos
}

/// The writer's limit of unacknowledged samples.
fn writer_max_samples(options: &NodeOptions) -> Result<Option<i32>, PeerError> {
    let max_samples = options.setting("max_samples")?;
    let Some(fitting) = fitting(options, "writer_bytes")? else { return Ok(max_samples) };
    Ok(Some(fitting.max(WRITER_SAMPLES_MIN).min(max_samples.unwrap_or(WRITER_SAMPLES))))
}

/// The reader's limit of samples, taken or not: its cache does not know which were taken.
fn reader_max_samples(options: &NodeOptions) -> Result<Option<i32>, PeerError> {
    let max_samples = options.setting("max_samples")?;
    let Some(fitting) = fitting(options, "reader_bytes")? else { return Ok(max_samples) };
    Ok(Some(fitting.min(READER_SAMPLES_MAX).max(max_samples.unwrap_or(READER_SAMPLES))))
}

/// Samples that fit the bytes of a setting.
fn fitting(options: &NodeOptions, name: &str) -> Result<Option<i32>, PeerError> {
    let samples = |bytes: usize| i32::try_from(bytes / options.payload_bytes.max(1)).unwrap_or(i32::MAX);
    Ok(options.setting(name)?.map(samples))
}

/// RustDDS's own limits, and those of `writer_bytes` and `reader_bytes`.
const WRITER_SAMPLES: i32 = 8192;
const WRITER_SAMPLES_MIN: i32 = 8;
const READER_SAMPLES: i32 = 64;
const READER_SAMPLES_MAX: i32 = 1_000_000;

type Cdr = CDRDeserializerAdapter<TestData>;

/// A sample costs time in proportion to the samples that wait.
fn take_all(reader: DataReader<TestData, Cdr>, writer: &RustWriter, on_sample: &OnSample) {
    let mut samples = reader.async_sample_stream();
    block_on(async {
        while let Some(sample) = samples.next().await {
            let Ok(sample) = sample else { continue };
            let (header, payload) = sample.value().parts();
            on_sample(writer, &header, payload);
        }
    });
}

fn take_all_simply(reader: &SimpleDataReader<TestData, Cdr>, writer: &RustWriter, on_sample: &OnSample) {
    let samples = reader.as_async_stream();
    block_on(samples.for_each(|sample| {
        if let Ok(sample) = sample {
            let (header, payload) = sample.sample.parts();
            on_sample(writer, &header, payload);
        }
        ready(())
    }));
}

struct RustWriter {
    writer: Option<DataWriter<TestData, CDRSerializerAdapter<TestData>>>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_options::options;

    #[test]
    fn limits_follow_the_size_of_samples() {
        let of = |peer: &Peer, payload_bytes| {
            let options = NodeOptions { payload_bytes, ..options(peer.settings, None) };
            (writer_max_samples(&options).unwrap(), reader_max_samples(&options).unwrap())
        };
        assert_eq!(of(&TUNED, 4), (Some(8192), Some(1_000_000)));
        assert_eq!(of(&TUNED, 1 << 13), (Some(128), Some(131_072)));
        assert_eq!(of(&TUNED, 1 << 30), (Some(8), Some(64)));
        assert_eq!(of(&DEFAULT, 1 << 13), (None, None));
    }

    #[test]
    fn a_deadline_is_for_reliable_writers_only() {
        let of = |is_reliable| {
            let options = NodeOptions { is_reliable, ..options(TUNED.settings, None) };
            writer_qos(&options).unwrap().deadline()
        };
        assert_eq!(of(true), Some(Deadline(rustdds::Duration::from_millis(5))));
        assert_eq!(of(false), None);
    }
}
