//! Our own engine, through its public, typed API: what any user's program could do.

/// Opens an end with the type that a case needs; an end of a ping-pong with timestamps or without.
macro_rules! open {
    ($end:ident, $case:expr $(, $is_timed:literal)?) => {
        match ($case.is_keyed(), $case.loans) {
            (false, false) => Box::new($end::<TestData $(, $is_timed)?>::open($case)?),
            (true, false) => Box::new($end::<KeyedTestData $(, $is_timed)?>::open($case)?),
            (false, true) => Box::new($end::<SharedTestData $(, $is_timed)?>::open($case)?),
            (true, true) => Box::new($end::<SharedKeyedTestData $(, $is_timed)?>::open($case)?),
        }
    };
}

mod mismatch;
pub(super) mod settings;
pub(crate) mod small;
mod timestamps;
mod workload;

use std::net::{IpAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use weir_dds::{
    BatchPolicy, DataReader, DataReaderListener, DataWriter, DdsError, DomainParticipant, MulticastGroup,
    ParticipantSettings, PathReport, Peer, Sample, SampleSeq,
};
use weir_peer_api::settings::Setting;
use weir_results::{EngineCounts, PathReading, Reliability, WaitStrategy};

use self::settings::Profile;
use self::small::{Means, Poller};
use crate::breakdown::{Recorder, Stops, Trace};
use crate::case::CaseSpec;
use crate::endpoint::{
    Capabilities, End, EndReport, EndpointError, Engine, Pinger, Ponger, Publisher, Subscriber, WorkloadNode,
};
use crate::engine::{WEIR, WEIR_SMALL};
use crate::path_watch::PathProbe;
use crate::payload::SampleHeader;
use crate::sink::SampleSink;
use crate::test_data::{Data, KeyedTestData, SharedKeyedTestData, SharedTestData, TestData};

/// Weir, with one set of settings.
#[derive(Clone, Copy, Debug)]
pub(super) enum Weir {
    /// As users get it.
    Plain,
    /// Without threads, and with little memory.
    Small,
    /// With a rate that is configured for the link.
    Links,
}

/// The largest message: it is one UDP datagram.
const MESSAGE_BYTES_MAX: usize = weir_baseline::DATAGRAM_BYTES_MAX;

/// How long a sample may wait for its batch to fill; a stream at full speed never waits that long.
const BATCH_DELAY: Duration = Duration::from_millis(10);

/// Bytes of samples that are taken at a time.
const TAKE_BYTES: usize = 256 << 10;

/// How often a ponger checks whether the case is over.
const STOP_CHECK: Duration = Duration::from_millis(20);

/// How long a reliable write blocks before the harness gets control.
const WRITE_PATIENCE: Duration = Duration::from_millis(500);

impl Engine for Weir {
    fn name(&self) -> &'static str {
        match self {
            Self::Plain => WEIR,
            Self::Small => WEIR_SMALL,
            Self::Links => "weir-links",
        }
    }

    fn about(&self) -> Option<&'static str> {
        Some(match self {
            Self::Plain => "Weir's own DDS engine, RTPS over UDP",
            Self::Small => "Weir's small profile: no threads, small buffers and histories (--profile small)",
            Self::Links => "Weir with rate_max at 97 % of the rate of a known link, which best effort needs",
        })
    }

    fn settings(&self) -> &'static [Setting] {
        match self {
            Self::Plain => settings::PLAIN,
            Self::Small => settings::SMALL,
            Self::Links => settings::LINKS,
        }
    }

    fn speaks_rtps(&self) -> bool {
        true
    }

    fn fits_datagrams_to_packets(&self) -> bool {
        true
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    fn open_publisher(&self, case: &CaseSpec) -> Result<Box<dyn Publisher>, EndpointError> {
        Ok(open!(PublisherEnd, case))
    }

    fn open_subscriber(&self, case: &CaseSpec) -> Result<Box<dyn Subscriber>, EndpointError> {
        Ok(open!(SubscriberEnd, case))
    }

    fn open_node(&self, case: &CaseSpec) -> Result<Box<dyn WorkloadNode>, EndpointError> {
        if !Means::of(case)?.has_threads {
            let what = "workloads without threads: set threads = \"yes\" in --settings";
            return Err(EndpointError::not_supported(self.name(), what));
        }
        Ok(Box::new(Node::open(case)?))
    }

    fn open_pinger(&self, case: &CaseSpec) -> Result<Box<dyn Pinger>, EndpointError> {
        Ok(if case.method.breakdown { open!(PingerEnd, case, true) } else { open!(PingerEnd, case, false) })
    }

    fn open_ponger(&self, case: &CaseSpec) -> Result<Box<dyn Ponger>, EndpointError> {
        Ok(if case.method.breakdown { open!(PongerEnd, case, true) } else { open!(PongerEnd, case, false) })
    }
}

/// A participant, and what every end needs of it.
struct Node {
    participant: DomainParticipant,
    profile: Profile,
    case: CaseSpec,
    means: Means,
    poller: Poller,
}

impl Node {
    fn open(case: &CaseSpec) -> Result<Self, EndpointError> {
        let means = Means::of(case)?;
        if case.method.count_system_calls {
            weir_dds::cdr::copy::start_counting();
        }
        let mut settings = ParticipantSettings::default()
            .interface(case.place.interface.clone())
            .receive_buffer(means.socket_buffer)
            .send_buffer(means.send_buffer())
            .wait(wait_strategy(case.wait));
        settings.threads = means.has_threads;
        settings.stage_times = case.method.breakdown;
        settings.rate_max = settings::rate_max(case)?;
        settings.peers = case.method.peers.iter().map(|&address| Peer::new(address.into())).collect();
        let profile = Profile::read(case)?;
        let participant = DomainParticipant::new_with_qos(case.place.domain, settings, profile.participant())
            .map_err(|error| EndpointError::Environment(error.to_string()))?;
        let poller = Poller::new(&means, &participant);
        Ok(Self { participant, profile, case: case.clone(), means, poller })
    }

    fn writer<T: Data>(&self, suffix: &str) -> Result<DataWriter<T>, EndpointError> {
        self.writer_of(&self.case, &(self.case.topic() + suffix))
    }

    /// A writer of this topic with the QoS of this case.
    fn writer_of<T: Data>(&self, case: &CaseSpec, topic: &str) -> Result<DataWriter<T>, EndpointError> {
        let topic = self.participant.create_topic(topic).map_err(failed)?;
        let qos = self.profile.writer(topic.name()).max_blocking_time(WRITE_PATIENCE);
        let qos = match case.method.keep_last {
            Some(depth) => qos.keep_last(depth),
            None => Means::of(case)?.limits.map_or(qos.clone(), |limits| qos.resource_limits(limits)),
        };
        let qos = if case.reliability == Reliability::Reliable { qos.reliable() } else { qos.best_effort() };
        let qos = match usize::try_from(case.batch_bytes) {
            Ok(max_bytes @ 1..) => {
                qos.batch(BatchPolicy::new(max_bytes.min(MESSAGE_BYTES_MAX), u32::MAX, BATCH_DELAY))
            }
            _ => qos,
        };
        let qos = qos.publish_mode(settings::publish_mode(case)?);
        let publisher = self
            .participant
            .create_publisher_with_qos(self.profile.publisher(topic.name()))
            .map_err(failed)?;
        publisher.create_datawriter(&topic, qos).map_err(failed)
    }

    fn reader<T: Data, L: DataReaderListener<T> + 'static>(
        &self,
        suffix: &str,
        listener: Option<L>,
    ) -> Result<DataReader<T>, EndpointError> {
        self.reader_of(&self.case, &(self.case.topic() + suffix), listener)
    }

    /// A reader of this topic with the QoS of this case.
    fn reader_of<T: Data, L: DataReaderListener<T> + 'static>(
        &self,
        case: &CaseSpec,
        topic: &str,
        listener: Option<L>,
    ) -> Result<DataReader<T>, EndpointError> {
        let topic = self.participant.create_topic(topic).map_err(failed)?;
        let qos = self.profile.reader(topic.name());
        let qos = match case.method.keep_last {
            Some(depth) => qos.keep_last(depth),
            None => Means::of(case)?.limits.map_or(qos.clone(), |limits| qos.resource_limits(limits)),
        };
        let qos = if case.reliability == Reliability::Reliable { qos.reliable() } else { qos.best_effort() };
        // With one subscriber it is unicast all the same.
        let qos = if case.multicast { qos.multicast(MulticastGroup::default()) } else { qos };
        let subscriber = self
            .participant
            .create_subscriber_with_qos(self.profile.subscriber(topic.name()))
            .map_err(failed)?;
        match listener {
            Some(listener) => subscriber.create_datareader_with_listener(&topic, qos, listener),
            None => subscriber.create_datareader(&topic, qos),
        }
        .map_err(failed)
    }

    fn report(&self) -> EndReport {
        let granted = (self.participant.granted_receive_buffer(), self.participant.granted_send_buffer());
        EndReport {
            kernel_drops: Some(u64::from(self.participant.receive_drops())),
            buffers: self.means.buffers(granted),
            ..EndReport::default()
        }
    }

    /// Reads the paths of the participant.
    fn path_probe(&self) -> PathProbe {
        let participant = self.participant.clone();
        let reading = |report: PathReport| PathReading {
            round_trip_min: report.round_trip_min,
            round_trip: report.round_trip,
            queue: report.queue_time(),
            rate_bps: report.rate.map(|bytes_per_s| bytes_per_s * 8.0),
            in_flight_bytes: report.in_flight_bytes,
            sent_bytes: report.sent_bytes,
            lost_bytes: report.lost_bytes,
            repaired_bytes: report.repaired_bytes,
            waits: report.waits,
            ecn_datagrams: report.ecn_datagrams,
            marked_datagrams: report.marked_datagrams,
        };
        Box::new(move || {
            let of_ipv4 = |(host, report)| match host {
                IpAddr::V4(host) => Some((host, reading(report))),
                IpAddr::V6(_) => None,
            };
            participant.paths().into_iter().filter_map(of_ipv4).collect()
        })
    }

    fn report_with_writer<T>(&self, writer: &DataWriter<T>) -> EndReport {
        let (sent, protocol) = (writer.send_counters(), writer.protocol_counters());
        EndReport {
            datagrams: Some(sent.datagrams),
            sends: Some(sent.system_calls),
            engine: EngineCounts { left_out: protocol.samples_left_out, refused: sent.refused, rejected: 0 },
            ..self.report()
        }
    }

    fn report_with_reader<T>(&self, reader: &DataReader<T>) -> EndReport {
        let rejected = reader.protocol_counters().samples_rejected;
        EndReport { engine: EngineCounts { rejected, ..EngineCounts::default() }, ..self.report() }
    }
}

fn wait_strategy(wait: WaitStrategy) -> weir_dds::WaitStrategy {
    match wait {
        WaitStrategy::Block => weir_dds::WaitStrategy::Block,
        WaitStrategy::Spin => weir_dds::WaitStrategy::Spin,
        WaitStrategy::SpinThenBlock { spin_us } => {
            weir_dds::WaitStrategy::SpinThenBlock(Duration::from_micros(u64::from(spin_us)))
        }
    }
}

fn failed(error: DdsError) -> EndpointError {
    EndpointError::Engine(error.to_string())
}

fn no_peer(error: DdsError) -> EndpointError {
    EndpointError::NoPeer(error.to_string())
}

/// False when the engine waited for as long as it may.
#[inline]
fn in_time(done: Result<(), DdsError>) -> Result<bool, EndpointError> {
    match done {
        Ok(()) => Ok(true),
        Err(DdsError::Timeout { .. }) => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

struct PublisherEnd<T> {
    node: Node,
    writer: DataWriter<T>,
    sample: T,
}

impl<T: Data> PublisherEnd<T> {
    fn open(case: &CaseSpec) -> Result<Self, EndpointError> {
        let node = Node::open(case)?;
        let writer = node.writer("")?;
        Ok(Self { node, writer, sample: T::default() })
    }
}

impl<T: Data> End for PublisherEnd<T> {
    fn connect(&mut self, _: Option<SocketAddrV4>, timeout: Duration) -> Result<(), EndpointError> {
        self.writer
            .wait_for_subscriptions(self.node.case.ends.subscribers.into(), timeout)
            .map_err(no_peer)?;
        self.node.poller.leave();
        Ok(())
    }

    fn mismatch(&self) -> Option<String> {
        mismatch::of_writer(&self.node.participant, &self.writer)
    }

    fn wait_until(&mut self, until_ns: u64) -> u64 {
        self.node.poller.wait_until(until_ns)
    }

    fn report(&self) -> EndReport {
        self.node.report_with_writer(&self.writer)
    }

    fn path_probe(&self) -> Option<PathProbe> {
        Some(self.node.path_probe())
    }
}

impl<T: Data> Publisher for PublisherEnd<T> {
    fn publish(&mut self, first: u64, count: u32) -> Result<u32, EndpointError> {
        self.node.poller.take_over();
        for taken in 0..count {
            let case = &self.node.case;
            let header = case.header(first + u64::from(taken));
            if !in_time(self.sample.write(&self.writer, case, &header))? {
                return Ok(taken);
            }
        }
        self.node.poller.poll().map_err(failed)?;
        Ok(count)
    }

    fn flush(&mut self, timeout: Duration) -> Result<bool, EndpointError> {
        self.writer.flush();
        let is_acknowledged = in_time(self.writer.wait_for_acknowledgments(timeout));
        self.node.poller.leave();
        is_acknowledged
    }

    fn publish_last(&mut self, sent: u64) -> Result<bool, EndpointError> {
        let header = SampleHeader::last(sent).by(self.node.case.ends.entity_id);
        in_time(self.sample.write(&self.writer, &self.node.case, &header))
    }
}

struct SubscriberEnd<T> {
    node: Node,
    reader: DataReader<T>,
    samples: SampleSeq<T>,
    take_max: usize,
}

impl<T: Data> SubscriberEnd<T> {
    fn open(case: &CaseSpec) -> Result<Self, EndpointError> {
        let node = Node::open(case)?;
        let reader = node.reader("", None::<Echo<T, false>>)?;
        let take_max = (TAKE_BYTES / case.size_bytes.max(1)).clamp(1, 256);
        Ok(Self { node, reader, samples: SampleSeq::new(), take_max })
    }
}

impl<T: Data> End for SubscriberEnd<T> {
    fn connect(&mut self, _: Option<SocketAddrV4>, timeout: Duration) -> Result<(), EndpointError> {
        self.reader.wait_for_publications(self.node.case.ends.publishers.into(), timeout).map_err(no_peer)?;
        self.node.poller.leave();
        Ok(())
    }

    fn mismatch(&self) -> Option<String> {
        mismatch::of_reader(&self.node.participant, &self.reader)
    }

    fn report(&self) -> EndReport {
        self.node.report_with_reader(&self.reader)
    }
}

impl<T: Data> Subscriber for SubscriberEnd<T> {
    fn receive(&mut self, sink: &mut SampleSink, timeout: Duration) -> Result<(), EndpointError> {
        self.node.poller.take_over();
        if self.reader.wait_for_data(timeout).is_err() {
            return Ok(());
        }
        self.reader.take_into(&mut self.samples, self.take_max);
        for sample in &self.samples {
            // A writer that leaves makes no sample.
            if let Some(data) = sample.data() {
                sink.accept(&data.header(), data.payload());
            }
        }
        self.samples.iter_mut().filter_map(Sample::data_mut).for_each(Data::release);
        Ok(())
    }
}

/// What both ends of a ping-pong have.
struct Duplex<T> {
    node: Node,
    writer: DataWriter<T>,
    reader: DataReader<T>,
}

impl<T: Data> Duplex<T> {
    fn connect(&mut self, timeout: Duration) -> Result<(), EndpointError> {
        self.writer.wait_for_subscriptions(1, timeout).map_err(no_peer)?;
        self.reader.wait_for_publications(1, timeout).map_err(no_peer)?;
        self.node.poller.leave();
        Ok(())
    }

    fn mismatch(&self) -> Option<String> {
        let participant = &self.node.participant;
        mismatch::of_writer(participant, &self.writer)
            .or_else(|| mismatch::of_reader(participant, &self.reader))
    }

    fn report(&self) -> EndReport {
        self.node.report_with_writer(&self.writer)
    }
}

/// Sends first and measures; if it is timed, it records when samples pass from stage to stage.
struct PingerEnd<T, const IS_TIMED: bool> {
    duplex: Duplex<T>,
    sample: T,
    echo: Sample<T>,
    recorder: Option<Recorder>,
}

impl<T: Data, const IS_TIMED: bool> PingerEnd<T, IS_TIMED> {
    fn open(case: &CaseSpec) -> Result<Self, EndpointError> {
        let node = Node::open(case)?;
        let (writer, reader) = (node.writer("_ping")?, node.reader("_pong", None::<Echo<T, IS_TIMED>>)?);
        let recorder = IS_TIMED.then(|| Recorder::new(case.warmup));
        let duplex = Duplex { node, writer, reader };
        Ok(Self { duplex, sample: T::default(), echo: Sample::default(), recorder })
    }
}

impl<T: Data, const IS_TIMED: bool> End for PingerEnd<T, IS_TIMED> {
    fn connect(&mut self, _: Option<SocketAddrV4>, timeout: Duration) -> Result<(), EndpointError> {
        self.duplex.connect(timeout)
    }

    fn mismatch(&self) -> Option<String> {
        self.duplex.mismatch()
    }

    fn report(&self) -> EndReport {
        self.duplex.report()
    }

    fn trace(&mut self) -> Option<Trace> {
        self.recorder.as_mut().map(Recorder::finish)
    }

    fn path_probe(&self) -> Option<PathProbe> {
        Some(self.duplex.node.path_probe())
    }

    fn wait_until(&mut self, until_ns: u64) -> u64 {
        self.duplex.node.poller.wait_until(until_ns)
    }
}

impl<T: Data, const IS_TIMED: bool> Pinger for PingerEnd<T, IS_TIMED> {
    fn ping(&mut self, sequence: u64, sent_ns: u64, timeout: Duration) -> Result<bool, EndpointError> {
        let Self { duplex: Duplex { node, writer, reader }, sample, echo, recorder } = self;
        node.poller.take_over();
        let header = SampleHeader::ping(sequence, node.case.instances, sent_ns);
        let written_ns = timestamps::now_ns::<IS_TIMED>();
        sample.write(writer, &node.case, &header).map_err(failed)?;
        let sent = timestamps::sent::<T, IS_TIMED>(writer, written_ns);
        while reader.wait_for_data(timeout).is_ok() {
            while reader.take_next_sample(echo) {
                let taken_ns = timestamps::now_ns::<IS_TIMED>();
                let Some(echo) = echo.data_mut() else { continue };
                echo.release();
                if echo.seq_num() == header.seq_num {
                    if IS_TIMED && let Some(recorder) = recorder {
                        let received = timestamps::received::<T, IS_TIMED>(reader, taken_ns);
                        recorder.record(Stops { seq_num: header.seq_num, sent, received });
                    }
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Echoes, and records as the pinger does.
struct PongerEnd<T, const IS_TIMED: bool> {
    duplex: Duplex<T>,
    work: Arc<Mutex<EchoWork<T>>>,
    /// Without threads, this thread echoes.
    echo: Option<Echo<T, IS_TIMED>>,
}

/// Echoes on the thread that receives.
struct Echo<T, const IS_TIMED: bool> {
    writer: DataWriter<T>,
    work: Arc<Mutex<EchoWork<T>>>,
}

/// What the echoing thread has in hand.
struct EchoWork<T> {
    sample: Sample<T>,
    echoed: u64,
    recorder: Option<Recorder>,
}

impl<T: Data, const IS_TIMED: bool> DataReaderListener<T> for Echo<T, IS_TIMED> {
    fn on_data_available(&self, reader: &DataReader<T>) {
        let mut work = self.work.lock();
        let EchoWork { sample, echoed, recorder } = &mut *work;
        while reader.take_next_sample(sample) {
            let taken_ns = timestamps::now_ns::<IS_TIMED>();
            let received = timestamps::received::<T, IS_TIMED>(reader, taken_ns);
            let written_ns = timestamps::now_ns::<IS_TIMED>();
            let Some(sample) = sample.data_mut() else { continue };
            // A failed echo is a lost ping, which the other side counts.
            if self.writer.write(sample).is_ok() {
                *echoed += 1;
                if IS_TIMED && let Some(recorder) = recorder {
                    let sent = timestamps::sent::<T, IS_TIMED>(&self.writer, written_ns);
                    recorder.record(Stops { seq_num: sample.seq_num(), sent, received });
                }
            }
            sample.release();
        }
    }
}

impl<T: Data, const IS_TIMED: bool> PongerEnd<T, IS_TIMED> {
    fn open(case: &CaseSpec) -> Result<Self, EndpointError> {
        let node = Node::open(case)?;
        let writer = node.writer("_pong")?;
        let recorder = IS_TIMED.then(|| Recorder::new(case.warmup));
        let work = Arc::new(Mutex::new(EchoWork { sample: Sample::default(), echoed: 0, recorder }));
        let echo = Echo::<T, IS_TIMED> { writer: writer.clone(), work: Arc::clone(&work) };
        let (listener, echo) = if node.poller.is_manual() { (None, Some(echo)) } else { (Some(echo), None) };
        let reader = node.reader("_ping", listener)?;
        Ok(Self { duplex: Duplex { node, writer, reader }, work, echo })
    }
}

impl<T: Data, const IS_TIMED: bool> End for PongerEnd<T, IS_TIMED> {
    fn connect(&mut self, _: Option<SocketAddrV4>, timeout: Duration) -> Result<(), EndpointError> {
        self.duplex.connect(timeout)
    }

    fn mismatch(&self) -> Option<String> {
        self.duplex.mismatch()
    }

    fn report(&self) -> EndReport {
        self.duplex.report()
    }

    fn trace(&mut self) -> Option<Trace> {
        self.work.lock().recorder.as_mut().map(Recorder::finish)
    }
}

impl<T: Data, const IS_TIMED: bool> Ponger for PongerEnd<T, IS_TIMED> {
    fn echo(&mut self, stop: &AtomicBool) -> Result<u64, EndpointError> {
        self.duplex.node.poller.take_over();
        while !stop.load(Ordering::Relaxed) {
            match &self.echo {
                None => std::thread::sleep(STOP_CHECK),
                Some(echo) if self.duplex.reader.wait_for_data(STOP_CHECK).is_ok() => {
                    echo.on_data_available(&self.duplex.reader);
                }
                Some(_) => {}
            }
        }
        self.duplex.node.poller.leave();
        Ok(self.work.lock().echoed)
    }
}
