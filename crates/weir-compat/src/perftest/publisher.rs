//! The publisher: waits for its subscribers, warms them up, writes, pings, and ends when they know.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use parking_lot::Mutex;
use weir_dds::{DataReader, DataReaderListener, DataWriter, DdsError};
use weir_measure::clock;
use weir_results::LatencyKind;
use weir_telemetry::LossWatch;

use super::announcement::{Roll, RollListener};
use super::drive::{Carrier, Run};
use super::echoes::{Echo, Echoes, Published};
use super::message::{self, DESCRIPTION_BYTES, Farewell, Kind};
use super::node::{Batch, LATENCY, Node, THROUGHPUT, failed};
use super::probe::{Probe, Role};
use super::raw;
use super::reading::Reading;
use super::settings::{PublisherSettings, Receive};
use super::waiting::Waiting;
use super::{End, Event};
use weir_bench::endpoint::EndpointError;
use weir_bench::payload::{HEADER_BYTES, SampleHeader, key_of, wire_sequence};
use weir_bench::test_data::{KeyedTestData, Owned, TestData};

/// How long to wait for the echo of a best-effort ping.
const ECHO_PATIENCE: Duration = Duration::from_millis(200);

/// How often final markers are sent, and how long to wait after each.
const FINAL_TRIES: u32 = 50;
const FINAL_PATIENCE: Duration = Duration::from_millis(100);

/// The longest silence while waiting for echoes of initialization pings.
const SETTLE: Duration = Duration::from_secs(1);
/// How often these are checked.
const SETTLE_TICK: Duration = Duration::from_millis(20);

/// Runs once for the subscribers that announce themselves.
pub fn publish(
    settings: &PublisherSettings,
    interrupted: &AtomicBool,
    on_event: &mut dyn FnMut(Event),
) -> Result<Published, EndpointError> {
    settings.check()?;
    if let Some(peers) = &settings.node.raw {
        return raw::publish(settings, peers, interrupted, on_event);
    }
    if settings.node.keyed {
        Publisher::<KeyedTestData>::open(settings, interrupted, on_event)?.run()
    } else {
        Publisher::<TestData>::open(settings, interrupted, on_event)?.run()
    }
}

/// Echoes that arrive while the publisher writes.
struct EchoListener<T> {
    pid: u32,
    sample: Mutex<T>,
    echoes: mpsc::Sender<Echo>,
    warmed_up: Arc<AtomicU64>,
}

impl<T: Owned> DataReaderListener<T> for EchoListener<T> {
    fn on_data_available(&self, reader: &DataReader<T>) {
        let mut sample = self.sample.lock();
        while let Some(info) = reader.take_next_sample(&mut *sample) {
            let header = sample.header();
            if info.valid_data && is_warm_up(&header, self.pid) {
                self.warmed_up.fetch_add(1, Ordering::Relaxed);
            }
            if info.valid_data && matches!(Kind::of(&header), Kind::Ping(_)) {
                let rtt_ns = clock::now_ns().saturating_sub(message::sent_ns(&header));
                // Fails once the run is over.
                let _ = self.echoes.send(Echo { rtt_ns });
            }
        }
    }
}

/// Whether it is the echo of one of our initialization pings: those of other publishers arrive here
/// as well.
fn is_warm_up(header: &SampleHeader, pid: u32) -> bool {
    Kind::of(header) == Kind::Initialize && header.entity_id == pid.cast_signed()
}

struct Publisher<'a, T> {
    run: Run<'a>,
    carrier: DdsCarrier<'a, T>,
    /// Receives the echoes with `-useReadThread`.
    _reading: Option<Reading>,
    /// Echoes of initialization pings.
    warmed_up: Arc<AtomicU64>,
    node: Node,
}

/// The engine's writer and readers.
struct DdsCarrier<'a, T> {
    settings: &'a PublisherSettings,
    interrupted: &'a AtomicBool,
    roll: Arc<Roll>,
    announcements: DataReader<T>,
    writer: DataWriter<T>,
    /// Only the publisher that sends pings has one.
    echo_reader: Option<DataReader<T>>,
    sample: T,
    echo: T,
    /// Samples that may be written before acknowledgements are waited for, and how many were; see
    /// [`PublisherSettings::acknowledged_every`].
    acknowledged_every: u64,
    unacknowledged: u64,
}

impl<'a, T: Owned> Publisher<'a, T> {
    fn open(
        settings: &'a PublisherSettings,
        interrupted: &'a AtomicBool,
        on_event: &'a mut dyn FnMut(Event),
    ) -> Result<Self, EndpointError> {
        let node = Node::open(&settings.node)?;
        let roll = Arc::new(Roll::default());
        let batch = Batch { bytes: settings.batch_bytes, data_len: settings.data_len };
        let writer = node.writer(THROUGHPUT, batch)?;
        let (sender, echoes) = mpsc::channel();
        let warmed_up = Arc::new(AtomicU64::new(0));
        let listener = (!settings.latency_test).then(|| EchoListener {
            pid: settings.pid,
            sample: Mutex::new(T::default()),
            echoes: sender,
            warmed_up: Arc::clone(&warmed_up),
        });
        let (mut echo_reader, mut reading) = (None, None);
        if settings.pid == 0 {
            let receive = settings.node.receive;
            let (called, read) =
                if receive == Receive::Listener { (listener, None) } else { (None, listener) };
            let reader = node.reader(LATENCY, called)?;
            reading = read.and_then(|listener| Reading::start(receive, &reader, listener));
            echo_reader = Some(reader);
        }
        let announcements = node.announcement_reader(RollListener(Arc::clone(&roll)))?;
        node.place_threads()?;
        let echoes = Echoes::new(echoes, settings.node.intervals);
        let carrier = DdsCarrier {
            settings,
            interrupted,
            roll,
            announcements,
            writer,
            echo_reader,
            sample: T::default(),
            echo: T::default(),
            acknowledged_every: settings.acknowledged_every().unwrap_or(u64::MAX),
            unacknowledged: 0,
        };
        let run = Run::new(settings, interrupted, on_event, echoes);
        Ok(Self { run, carrier, _reading: reading, warmed_up, node })
    }

    fn run(mut self) -> Result<Published, EndpointError> {
        let settings = self.run.settings;
        let (mut sent, mut sent_in) = (0, Duration::ZERO);
        let mut end = self.wait_for_subscribers()?;
        if end == End::Complete {
            end = self.initialize()?;
        }
        if end == End::Complete {
            self.run.stage("Sending data ...");
            let octets = self.carrier.sample.octets_mut();
            octets.clear();
            octets.resize(settings.data_len - HEADER_BYTES, 0);
            let watch = LossWatch::start(None);
            let start_ns = clock::now_ns();
            let (run, carrier) = (&mut self.run, &mut self.carrier);
            (sent, end) = if settings.latency_test { run.ping(carrier)? } else { run.stream(carrier)? };
            sent_in = Duration::from_nanos(clock::now_ns() - start_ns);
            end = self.finish(sent, end, &watch)?;
        }
        self.run.echoes.note_arrived(self.run.on_event);
        let latency = self.run.echoes.recorder.summary(LatencyKind::HalfRtt);
        Ok(Published { sent, sent_in, latency, end })
    }

    fn wait_for_subscribers(&mut self) -> Result<End, EndpointError> {
        const TICK: Duration = Duration::from_millis(200);
        let (pid, wanted) = (self.run.settings.pid, self.run.settings.num_subscribers);
        let probe = Probe::open(&self.node, &self.run.settings.node, Role::Publisher)?;
        let mut waiting = Waiting::new(probe, &self.run.settings.node);
        self.run.stage(format!("Waiting to discover {wanted} subscribers ..."));
        while self.carrier.writer.wait_for_subscriptions(wanted, TICK).is_err() {
            waiting.look(Role::Subscriber, self.carrier.roll.waiting_for(pid), wanted, self.run.on_event);
            if self.run.is_stopped() {
                return Ok(End::Interrupted);
            }
        }
        self.run.stage("Waiting for subscribers announcement ...".to_owned());
        let mut looked_ns = clock::now_ns();
        while !self.carrier.roll.begin(pid, wanted) {
            if clock::now_ns() - looked_ns >= TICK.as_nanos() as u64 {
                looked_ns = clock::now_ns();
                waiting.look(Role::Subscriber, self.carrier.roll.waiting_for(pid), wanted, self.run.on_event);
            }
            if self.run.is_stopped() {
                return Ok(End::Interrupted);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        if let Some(reader) = &self.carrier.echo_reader {
            // The echo topic is matched as well.
            while reader.wait_for_publications(wanted, TICK).is_err() {
                waiting.look(Role::Subscriber, self.carrier.roll.waiting_for(pid), wanted, self.run.on_event);
                if self.run.is_stopped() {
                    return Ok(End::Interrupted);
                }
            }
        }
        Ok(End::Complete)
    }

    fn initialize(&mut self) -> Result<End, EndpointError> {
        let settings = self.run.settings;
        let pings = settings.initialization_pings();
        self.run.stage(format!("Sending {pings} initialization pings ..."));
        settings.description().write(self.carrier.sample.octets_mut());
        for number in 0..pings {
            let key = self.carrier.key(number);
            let header = message::header(Kind::Initialize, settings.pid, number, key);
            if let Some(end) = self.carrier.write(&header)? {
                return Ok(end);
            }
            if !settings.node.reliable && number % 50 == 49 {
                // These are not measured: avoid flooding a subscriber that allocates memory.
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        self.carrier.writer.flush();
        if settings.node.reliable && !self.carrier.wait_until_acknowledged()? {
            return Ok(if self.run.is_stopped() { End::Interrupted } else { End::PeerGone });
        }
        self.settle(pings);
        Ok(End::Complete)
    }

    /// Waits until the subscribers have echoed the initialization pings, or stop echoing: a backlog
    /// would delay the first sample.
    fn settle(&mut self, pings: u64) {
        let all = pings.saturating_mul(self.run.settings.num_subscribers.into());
        let (mut heard, mut quiet_since_ns) = (0, clock::now_ns());
        while clock::now_ns() - quiet_since_ns < SETTLE.as_nanos() as u64 && !self.run.is_stopped() {
            std::thread::sleep(SETTLE_TICK);
            if heard >= all && all > 0 {
                return;
            }
            if let Some(reader) = self.carrier.echo_reader.as_ref().filter(|_| self.run.settings.latency_test)
            {
                while reader.take_next_sample(&mut self.carrier.sample).is_some() {
                    let is_ours = is_warm_up(&self.carrier.sample.header(), self.run.settings.pid);
                    self.warmed_up.fetch_add(u64::from(is_ours), Ordering::Relaxed);
                }
            }
            let warmed_up = self.warmed_up.load(Ordering::Relaxed);
            if warmed_up > heard {
                (heard, quiet_since_ns) = (warmed_up, clock::now_ns());
            }
        }
    }

    /// Waits for `time`, and receives the last echoes promptly.
    fn receive_for(&self, time: Duration) {
        match self.carrier.echo_reader.as_ref().filter(|_| !self.run.settings.latency_test) {
            Some(reader) => _ = reader.wait_for_data(time),
            None => std::thread::sleep(time),
        }
    }

    /// Sends final markers until the subscribers confirm.
    fn finish(&mut self, sent: u64, end: End, watch: &LossWatch) -> Result<End, EndpointError> {
        if self.run.settings.node.reliable
            && end == End::Complete
            && !self.carrier.wait_until_acknowledged()?
        {
            return Ok(if self.run.is_stopped() { End::Interrupted } else { End::PeerGone });
        }
        // For subscribers that received no initialization ping.
        let octets = self.carrier.sample.octets_mut();
        self.run.settings.description().write(octets);
        octets.truncate(DESCRIPTION_BYTES);
        Farewell { refused: self.carrier.writer.send_counters().refused, drops: watch.counters() }
            .append_to(octets);
        let key = self.carrier.key(0);
        let last = message::header(Kind::Final, self.run.settings.pid, sent, key);
        for _ in 0..FINAL_TRIES {
            if self.carrier.write(&last)?.is_some() {
                break;
            }
            self.carrier.writer.flush();
            let until_ns = clock::now_ns() + FINAL_PATIENCE.as_nanos() as u64;
            loop {
                // Also after the time-out: more markers would disturb the next run's subscriber.
                if self.carrier.roll.finished(self.run.settings.pid) >= self.run.settings.num_subscribers {
                    self.run.stage("Finishing test...".to_owned());
                    return Ok(end);
                }
                if clock::now_ns() >= until_ns {
                    break;
                }
                self.receive_for(Duration::from_millis(1));
            }
            if self.carrier.trouble() == Some(End::PeerGone) {
                break;
            }
        }
        Ok(if end == End::Complete { End::PeerGone } else { end })
    }
}

impl<T: Owned> DdsCarrier<'_, T> {
    fn is_stopped(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Waits until every sample is acknowledged; false when that will never be.
    fn wait_until_acknowledged(&mut self) -> Result<bool, EndpointError> {
        loop {
            match self.writer.wait_for_acknowledgments(Duration::from_millis(500)) {
                Ok(()) => return Ok(true),
                Err(DdsError::Timeout { .. }) => {
                    if self.trouble().is_some() {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

impl<T: Owned> Carrier for DdsCarrier<'_, T> {
    fn key(&self, sequence: u64) -> [u8; 4] {
        let node = &self.settings.node;
        match self.settings.write_instance.filter(|_| node.keyed) {
            Some(instance) => instance.to_le_bytes(),
            None => key_of(sequence, if node.keyed { node.instances } else { 0 }),
        }
    }

    fn octets(&mut self) -> &mut [u8] {
        self.sample.octets_mut()
    }

    #[inline]
    fn write(&mut self, header: &SampleHeader) -> Result<Option<End>, EndpointError> {
        self.sample.set_header(header);
        if self.unacknowledged >= self.acknowledged_every {
            self.unacknowledged = 0;
            if !self.wait_until_acknowledged()? {
                return Ok(self.trouble());
            }
        }
        self.unacknowledged += 1;
        loop {
            match self.writer.write(&self.sample) {
                Ok(()) => return Ok(None),
                Err(DdsError::Timeout { .. }) => {
                    if let Some(end) = self.trouble() {
                        return Ok(Some(end));
                    }
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }

    fn flush(&mut self) -> Result<(), EndpointError> {
        // The engine's batching policy bounds how long a sample waits.
        Ok(())
    }

    /// Echoes of earlier pings arrive too late: those pings are lost already.
    #[inline]
    fn wait_for_echo(&mut self, _: u32, sequence: u64, _: u64) -> Result<Option<u64>, EndpointError> {
        let Some(reader) = &self.echo_reader else {
            return Err(EndpointError::Engine("only publisher 0 can run a latency test".to_owned()));
        };
        while reader.wait_for_data(ECHO_PATIENCE) {
            while let Some(info) = reader.take_next_sample(&mut self.echo) {
                let header = self.echo.header();
                let is_ours =
                    header.seq_num == wire_sequence(sequence) && matches!(Kind::of(&header), Kind::Ping(_));
                if info.valid_data && is_ours {
                    return Ok(Some(clock::now_ns()));
                }
            }
        }
        Ok(None)
    }

    fn may_lose(&self) -> bool {
        !self.settings.node.reliable
    }

    fn trouble(&mut self) -> Option<End> {
        if self.is_stopped() {
            return Some(End::Interrupted);
        }
        // The number of subscribers does not matter: those of the next run may be present already,
        // and those that know our end may leave. Presence is read before announcements, since a
        // subscriber leaves after its last announcement.
        let pid = self.settings.pid;
        let there = self.announcements.matched_publications();
        if !self.roll.misses_one(pid, &there) {
            return None;
        }
        RollListener(Arc::clone(&self.roll)).on_data_available(&self.announcements);
        self.roll.misses_one(pid, &there).then_some(End::PeerGone)
    }
}
