//! dust_dds: a thread of this module waits in a WaitSet and takes samples.
//!
//! A listener would gain nothing: dust_dds calls listeners through the same mailboxes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dust_dds::domain::domain_participant::DomainParticipant;
use dust_dds::domain::domain_participant_factory::DomainParticipantFactory;
use dust_dds::infrastructure::error::DdsError;
use dust_dds::infrastructure::listener::NO_LISTENER;
use dust_dds::infrastructure::qos::{DataReaderQos, DataWriterQos, QosKind};
use dust_dds::infrastructure::qos_policy::HistoryQosPolicyKind::{KeepAll, KeepLast};
use dust_dds::infrastructure::qos_policy::ReliabilityQosPolicyKind::{BestEffort, Reliable};
use dust_dds::infrastructure::qos_policy::{HistoryQosPolicy, ReliabilityQosPolicy};
use dust_dds::infrastructure::sample_info::{ANY_INSTANCE_STATE, ANY_SAMPLE_STATE, ANY_VIEW_STATE};
use dust_dds::infrastructure::status::{NO_STATUS, StatusKind};
use dust_dds::infrastructure::time::DurationKind;
use dust_dds::infrastructure::type_support::DdsType;
use dust_dds::publication::data_writer::DataWriter;
use dust_dds::subscription::data_reader::DataReader;
use dust_dds::wait_set::{Condition, WaitSet};
use weir_peer_api::{
    Abilities, Calls, Header, Matches, Node, NodeOptions, OnSample, Peer, PeerError, Setting, Writer, Written,
};

use crate::test_data::test_data;
use crate::worker::Worker;

pub(crate) const PEER: Peer = Peer {
    name: "dust_dds",
    about: "dust_dds, a DDS in Rust; UDP on one interface, taken in a WaitSet",
    settings: SETTINGS,
    abilities: Abilities::DDS,
    calls: Calls { open, participant: None, version },
};

const SETTINGS: &[Setting] = &[
    Setting::new("fragment_size", "64000", "set_fragment_size, bytes"),
    Setting::new(
        "socket_receive_buffer",
        "4194304",
        "set_udp_receive_buffer_size, bytes; empty: the system's",
    ),
];

fn version() -> String {
    "0.16.0".to_owned()
}

fn open(options: &NodeOptions, on_sample: OnSample) -> Result<Box<dyn Node>, PeerError> {
    if options.is_keyed {
        open_of::<KeyedTestData>(options, "TestDataKeyed_t", on_sample)
    } else {
        open_of::<TestData>(options, "TestData_t", on_sample)
    }
}

/// Common interface of both types.
trait Data: dust_dds::xtypes::type_support::TypeSupport + Send + Sync + 'static {
    fn new(header: &Header, payload: &[u8]) -> Self;
    fn parts(&self) -> (Header, &[u8]);
}

test_data!(
    #[derive(DdsType)]
    TestData
);
test_data!(#[derive(DdsType)] KeyedTestData, #[dust_dds(key)]);

fn failed(error: DdsError) -> PeerError {
    PeerError::Engine(format!("{error:?}"))
}

fn open_of<T: Data>(
    options: &NodeOptions,
    type_name: &str,
    on_sample: OnSample,
) -> Result<Box<dyn Node>, PeerError> {
    let factory = DomainParticipantFactory::get_instance();
    {
        let mut transport = factory.get_mut_transport();
        transport.set_interface_name(Some(options.interface.clone()));
        if let Some(bytes) = options.setting("fragment_size")? {
            transport.set_fragment_size(bytes).map_err(failed)?;
        }
        transport.set_udp_receive_buffer_size(options.setting("socket_receive_buffer")?);
    }
    let domain = i32::try_from(options.domain).unwrap_or_default();
    let participant =
        factory.create_participant(domain, QosKind::Default, NO_LISTENER, NO_STATUS).map_err(failed)?;
    let topic = |name: &str| {
        participant
            .create_topic::<T>(name, type_name, QosKind::Default, NO_LISTENER, NO_STATUS)
            .map_err(failed)
    };
    let writer = match &options.write_topic {
        Some(name) => {
            let publisher =
                participant.create_publisher(QosKind::Default, NO_LISTENER, NO_STATUS).map_err(failed)?;
            let qos = DataWriterQos {
                reliability: reliability(options),
                history: history(options),
                ..DataWriterQos::default()
            };
            let writer = publisher.create_datawriter::<T>(
                &topic(name)?,
                QosKind::Specific(qos),
                NO_LISTENER,
                NO_STATUS,
            );
            Some(writer.map_err(failed)?)
        }
        None => None,
    };
    let reader = match &options.read_topic {
        Some(name) => {
            let subscriber =
                participant.create_subscriber(QosKind::Default, NO_LISTENER, NO_STATUS).map_err(failed)?;
            let qos = DataReaderQos {
                reliability: reliability(options),
                history: history(options),
                ..DataReaderQos::default()
            };
            let reader = subscriber.create_datareader::<T>(
                &topic(name)?,
                QosKind::Specific(qos),
                NO_LISTENER,
                NO_STATUS,
            );
            Some(Arc::new(reader.map_err(failed)?))
        }
        None => None,
    };
    let writer = Arc::new(DustWriter { writer });
    let mut worker = None;
    if let Some(reader) = &reader {
        let (reader, writer) = (Arc::clone(reader), Arc::clone(&writer));
        worker = Some(Worker::start("dust_dds take", move |is_over| {
            // An error of the engine ends the thread; the harness reports that nothing arrives any more.
            let _ = take_all(&reader, &writer, is_over, &on_sample);
        })?);
    }
    Ok(Box::new(DustNode { _worker: worker, writer, reader, _participant: participant }))
}

fn reliability(options: &NodeOptions) -> ReliabilityQosPolicy {
    ReliabilityQosPolicy {
        kind: if options.is_reliable { Reliable } else { BestEffort },
        max_blocking_time: DurationKind::Finite(options.max_blocking_time.into()),
    }
}

fn history(options: &NodeOptions) -> HistoryQosPolicy {
    HistoryQosPolicy { kind: if options.keeps_all { KeepAll } else { KeepLast(1) } }
}

/// How often the thread checks whether it shall end.
const PAUSE: Duration = Duration::from_millis(500);

const TAKE_MAX: i32 = 64;

fn take_all<T: Data>(
    reader: &DataReader<T>,
    writer: &DustWriter<T>,
    is_over: &AtomicBool,
    on_sample: &OnSample,
) -> Result<(), DdsError> {
    let condition = reader.get_statuscondition();
    condition.set_enabled_statuses(&[StatusKind::DataAvailable])?;
    let mut wait_set = WaitSet::new();
    wait_set.attach_condition(Condition::StatusCondition(condition))?;
    while !is_over.load(Ordering::Relaxed) {
        if wait_set.wait(PAUSE.into()).is_err() {
            continue;
        }
        while let Ok(samples) = reader.take(TAKE_MAX, ANY_SAMPLE_STATE, ANY_VIEW_STATE, ANY_INSTANCE_STATE) {
            for data in samples.iter().filter_map(|sample| sample.data.as_ref()) {
                let (header, payload) = data.parts();
                on_sample(writer, &header, payload);
            }
        }
    }
    Ok(())
}

struct DustWriter<T> {
    writer: Option<DataWriter<T>>,
}

impl<T: Data> Writer for DustWriter<T> {
    fn write(&self, header: &Header, payload: &[u8]) -> Result<Written, PeerError> {
        let Some(writer) = &self.writer else { return Err(PeerError::Engine("no writer".to_owned())) };
        match writer.write(T::new(header, payload), None) {
            Ok(()) => Ok(Written::Taken),
            Err(DdsError::Timeout) => Ok(Written::TimedOut),
            Err(error) => Err(failed(error)),
        }
    }
}

struct DustNode<T> {
    /// Dropped first.
    _worker: Option<Worker>,
    writer: Arc<DustWriter<T>>,
    reader: Option<Arc<DataReader<T>>>,
    _participant: DomainParticipant,
}

impl<T: Data> Node for DustNode<T> {
    fn writer(&self) -> &dyn Writer {
        &*self.writer
    }

    fn matches(&self) -> Matches {
        let count = |matched: Result<usize, DdsError>| matched.map_or(0, |count| count as u32);
        let (writer, reader) = (&self.writer.writer, &self.reader);
        Matches {
            readers: writer
                .as_ref()
                .map_or(0, |it| count(it.get_matched_subscriptions().map(|all| all.len()))),
            writers: reader
                .as_ref()
                .map_or(0, |it| count(it.get_matched_publications().map(|all| all.len()))),
        }
    }

    fn wait_for_acknowledgments(&self, timeout: Duration) -> bool {
        let wait = |writer: &DataWriter<T>| writer.wait_for_acknowledgments(timeout.into()).is_ok();
        self.writer.writer.as_ref().is_none_or(wait)
    }
}
