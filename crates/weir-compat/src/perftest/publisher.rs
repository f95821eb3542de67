//! The publisher: waits for its subscribers, warms them up, writes, pings, and ends when they know.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use parking_lot::Mutex;
use weir_dds::{DataReader, DataReaderListener, DataWriter, DdsError, Sample};
use weir_measure::clock;
use weir_telemetry::LossWatch;

use super::announcement::{Roll, RollListener};
use super::drive::{Carrier, Run};
use super::echoes::Published;
use super::event::{Echo, End, Event};
use super::instances::CONTROL_KEY;
use super::message::{self, DESCRIPTION_BYTES, Farewell, Kind};
use super::node::{Batch, LATENCY, Node, THROUGHPUT, failed};
use super::probe::Role;
use super::raw;
use super::reading::Reading;
use super::settings::PublisherSettings;
use super::waiting::Waiting;
use weir_bench::endpoint::EndpointError;
use weir_bench::payload::{HEADER_BYTES, SampleHeader, key_of, wire_sequence};
use weir_bench::test_data::{KeyedTestData, Owned, TestData};

/// How long to wait for subscribers between two checks.
const TICK: Duration = Duration::from_millis(200);

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
    let (sender, echoes) = mpsc::channel();
    let run = Run::new(settings, interrupted, on_event, echoes);
    if settings.node.keyed {
        run.publish(&mut Publisher::<KeyedTestData>::open(settings, interrupted, sender)?)
    } else {
        run.publish(&mut Publisher::<TestData>::open(settings, interrupted, sender)?)
    }
}

/// Echoes that arrive while the publisher writes.
struct EchoListener<T> {
    pid: u32,
    sample: Mutex<Sample<T>>,
    echoes: mpsc::Sender<Echo>,
    warmed_up: Arc<AtomicU64>,
}

impl<T: Owned> DataReaderListener<T> for EchoListener<T> {
    fn on_data_available(&self, reader: &DataReader<T>) {
        let mut sample = self.sample.lock();
        while reader.take_next_sample(&mut sample) {
            let Some(header) = sample.data().map(T::header) else { continue };
            if is_warm_up(&header, self.pid) {
                self.warmed_up.fetch_add(1, Ordering::Relaxed);
            }
            if matches!(Kind::of(&header), Kind::Ping(_)) {
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

/// The engine's writer and readers.
struct Publisher<'a, T> {
    settings: &'a PublisherSettings,
    interrupted: &'a AtomicBool,
    roll: Arc<Roll>,
    announcements: DataReader<T>,
    writer: DataWriter<T>,
    /// Only the publisher that sends pings has one.
    echo_reader: Option<DataReader<T>>,
    sample: T,
    echo: Sample<T>,
    /// Samples that may be written before acknowledgements are waited for, and how many were; see
    /// [`PublisherSettings::acknowledged_every`].
    acknowledged_every: u64,
    unacknowledged: u64,
    /// Drops of this host since the first sample.
    watch: LossWatch,
    /// Receives the echoes with `-useReadThread`.
    _reading: Option<Reading>,
    /// Echoes of initialization pings.
    warmed_up: Arc<AtomicU64>,
    node: Node,
}

impl<'a, T: Owned> Publisher<'a, T> {
    /// The key of samples for all subscribers, also those that receive only some instances.
    fn control_key(&self) -> [u8; 4] {
        if self.settings.node.keyed { CONTROL_KEY } else { [0; 4] }
    }

    fn open(
        settings: &'a PublisherSettings,
        interrupted: &'a AtomicBool,
        echoes: mpsc::Sender<Echo>,
    ) -> Result<Self, EndpointError> {
        let node = Node::open(&settings.node)?;
        let roll = Arc::new(Roll::default());
        let batch = Batch { bytes: settings.batch_bytes, data_len: settings.data_len };
        let writer = node.writer(THROUGHPUT, batch)?;
        let warmed_up = Arc::new(AtomicU64::new(0));
        let listener = (!settings.latency_test).then(|| EchoListener {
            pid: settings.pid,
            sample: Mutex::new(Sample::default()),
            echoes,
            warmed_up: Arc::clone(&warmed_up),
        });
        let echo_end = (settings.pid == 0).then(|| node.reader(LATENCY, listener)).transpose()?;
        let (echo_reader, reading) =
            echo_end.map_or((None, None), |(reader, reading)| (Some(reader), reading));
        let announcements = node.announcement_reader(RollListener(Arc::clone(&roll)))?;
        node.place_threads()?;
        Ok(Self {
            settings,
            interrupted,
            roll,
            announcements,
            writer,
            echo_reader,
            sample: T::default(),
            echo: Sample::default(),
            acknowledged_every: settings.acknowledged_every().unwrap_or(u64::MAX),
            unacknowledged: 0,
            watch: LossWatch::start(None),
            _reading: reading,
            warmed_up,
            node,
        })
    }

    /// Waits until `are_there`, which takes its time, and reports why that may be; false when interrupted.
    fn wait_until(&self, run: &mut Run<'_>, waiting: &mut Waiting, are_there: impl Fn() -> bool) -> bool {
        while !are_there() {
            waiting.look(self.roll.waiting_for(self.settings.pid), run.on_event);
            if run.is_stopped() {
                return false;
            }
        }
        true
    }

    /// Waits until the subscribers have echoed the initialization pings, or stop echoing: a backlog
    /// would delay the first sample.
    fn settle(&mut self, run: &Run<'_>, pings: u64) {
        let all = pings.saturating_mul(self.settings.num_subscribers.into());
        let (mut heard, mut quiet_since_ns) = (0, clock::now_ns());
        while clock::now_ns() - quiet_since_ns < SETTLE.as_nanos() as u64 && !run.is_stopped() {
            self.node.rest(SETTLE_TICK);
            if heard >= all && all > 0 {
                return;
            }
            self.take_echoes();
            let warmed_up = self.warmed_up.load(Ordering::Relaxed);
            if warmed_up > heard {
                (heard, quiet_since_ns) = (warmed_up, clock::now_ns());
            }
        }
    }

    /// Takes the echoes that no listener takes. A subscriber whose echoes have no room takes no more pings either.
    fn take_echoes(&mut self) {
        if let Some(reader) = self.echo_reader.as_ref().filter(|_| self.settings.latency_test) {
            while reader.take_next_sample(&mut self.echo) {
                let echo = self.echo.data();
                let is_ours = echo.is_some_and(|echo| is_warm_up(&echo.header(), self.settings.pid));
                self.warmed_up.fetch_add(u64::from(is_ours), Ordering::Relaxed);
            }
        }
    }

    /// Repeats a call of the engine that timed out; `Some` when the run is over.
    #[inline]
    fn insist(&mut self, call: impl Fn(&Self) -> Result<(), DdsError>) -> Result<Option<End>, EndpointError> {
        loop {
            match call(self) {
                Ok(()) => return Ok(None),
                Err(DdsError::Timeout { .. }) => {
                    self.take_echoes();
                    if let Some(end) = self.trouble() {
                        return Ok(Some(end));
                    }
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Waits until every sample is acknowledged; `Some` when the run is over.
    fn wait_until_acknowledged(&mut self) -> Result<Option<End>, EndpointError> {
        self.insist(|publisher| publisher.writer.wait_for_acknowledgments(Duration::from_millis(500)))
    }
}

/// Nothing has to be flushed: the engine's batching policy bounds how long a sample waits.
impl<T: Owned> Carrier for Publisher<'_, T> {
    fn wait_for_subscribers(&mut self, run: &mut Run<'_>) -> Result<End, EndpointError> {
        let wanted = self.settings.num_subscribers;
        let mut waiting = Waiting::start(&self.node, Role::Publisher, wanted)?;
        run.stage(format!("Waiting to discover {wanted} subscribers ..."));
        let are_matched = || self.writer.wait_for_subscriptions(wanted.into(), TICK).is_ok();
        if !self.wait_until(run, &mut waiting, are_matched) {
            return Ok(End::Interrupted);
        }
        run.stage("Waiting for subscribers announcement ...");
        let have_announced = || {
            let is_begun = self.roll.begin(self.settings.pid, wanted);
            if !is_begun {
                self.node.rest(Duration::from_millis(2));
            }
            is_begun
        };
        // The echo topic is matched as well.
        let is_matched = |reader: &DataReader<T>| reader.wait_for_publications(wanted.into(), TICK).is_ok();
        let can_echo = || self.echo_reader.as_ref().is_none_or(is_matched);
        let are_ready = self.wait_until(run, &mut waiting, have_announced)
            && self.wait_until(run, &mut waiting, can_echo);
        Ok(if are_ready { End::Complete } else { End::Interrupted })
    }

    /// The first ones, if more wait than are wanted.
    fn subscribers(&self) -> Vec<u32> {
        let mut served = self.roll.served();
        served.truncate(self.settings.num_subscribers as usize);
        served
    }

    fn initialize(&mut self, run: &mut Run<'_>) -> Result<End, EndpointError> {
        let settings = self.settings;
        let pings = settings.initialization_pings();
        run.stage(format!("Sending {pings} initialization pings ..."));
        settings.description().write(self.sample.payload_mut());
        for number in 0..pings {
            let is_last = number + 1 == pings;
            let key = if is_last { self.control_key() } else { self.key(number) };
            let header = message::header(Kind::Initialize, settings.pid, number, key);
            if let Some(end) = self.write(&header)? {
                return Ok(end);
            }
            self.take_echoes();
            if !settings.node.reliable && number % 50 == 49 {
                // These are not measured: avoid flooding a subscriber that allocates memory.
                self.node.rest(Duration::from_millis(1));
            }
        }
        self.writer.flush();
        if settings.node.reliable
            && let Some(end) = self.wait_until_acknowledged()?
        {
            return Ok(end);
        }
        self.settle(run, pings);
        let payload = self.sample.payload_mut();
        payload.clear();
        payload.resize(settings.data_len - HEADER_BYTES, 0);
        self.watch = LossWatch::start(None);
        Ok(End::Complete)
    }

    fn finish(&mut self, run: &mut Run<'_>, sent: u64, end: End) -> Result<End, EndpointError> {
        let settings = self.settings;
        if settings.node.reliable
            && end == End::Complete
            && let Some(end) = self.wait_until_acknowledged()?
        {
            return Ok(end);
        }
        // For subscribers that received no initialization ping, and because a run that ends early is the last one.
        let payload = self.sample.payload_mut();
        settings.last_description(end).write(payload);
        payload.truncate(DESCRIPTION_BYTES);
        let readers = u64::from(settings.num_subscribers.max(1));
        Farewell {
            refused: self.writer.send_counters().refused,
            left_out: self.writer.protocol_counters().samples_left_out / readers,
            drops: self.watch.counters(),
        }
        .append_to(payload);
        let last = message::header(Kind::Final, settings.pid, sent, self.control_key());
        for _ in 0..FINAL_TRIES {
            if self.write(&last)?.is_some() {
                break;
            }
            self.writer.flush();
            let until_ns = clock::now_ns() + FINAL_PATIENCE.as_nanos() as u64;
            loop {
                // Also after the time-out: more markers would disturb the next run's subscriber.
                if self.roll.finished(settings.pid) >= settings.num_subscribers {
                    run.stage("Finishing test...");
                    return Ok(end);
                }
                if clock::now_ns() >= until_ns {
                    break;
                }
                // The last echoes are received promptly.
                let moment = Duration::from_millis(1);
                match self.echo_reader.as_ref().filter(|_| !settings.latency_test) {
                    Some(reader) => _ = reader.wait_for_data(moment),
                    None => self.node.rest(moment),
                }
            }
            if self.trouble() == Some(End::PeerGone) {
                break;
            }
        }
        Ok(if end == End::Complete { End::PeerGone } else { end })
    }

    fn key(&self, sequence: u64) -> [u8; 4] {
        let node = &self.settings.node;
        match self.settings.write_instance.filter(|_| node.keyed) {
            Some(instance) => instance.to_le_bytes(),
            None => key_of(sequence, if node.keyed { node.instances } else { 0 }),
        }
    }

    fn payload_mut(&mut self) -> &mut [u8] {
        self.sample.payload_mut()
    }

    #[inline]
    fn write(&mut self, header: &SampleHeader) -> Result<Option<End>, EndpointError> {
        self.sample.set_header(header);
        if self.unacknowledged >= self.acknowledged_every {
            self.unacknowledged = 0;
            if let Some(end) = self.wait_until_acknowledged()? {
                return Ok(Some(end));
            }
        }
        self.unacknowledged += 1;
        self.insist(|publisher| publisher.writer.write(&publisher.sample))
    }

    /// Echoes of earlier pings arrive too late: those pings are lost already.
    #[inline]
    fn wait_for_echo(&mut self, _: usize, sequence: u64, _: u64) -> Result<Option<u64>, EndpointError> {
        let Some(reader) = &self.echo_reader else {
            return Err(EndpointError::Engine("only publisher 0 can run a latency test".to_owned()));
        };
        while reader.wait_for_data(ECHO_PATIENCE).is_ok() {
            while reader.take_next_sample(&mut self.echo) {
                let Some(header) = self.echo.data().map(T::header) else { continue };
                let is_ours =
                    header.seq_num == wire_sequence(sequence) && matches!(Kind::of(&header), Kind::Ping(_));
                if is_ours {
                    return Ok(Some(clock::now_ns()));
                }
            }
        }
        Ok(None)
    }

    fn may_lose(&self) -> bool {
        !self.settings.node.reliable
    }

    fn attend(&self) {
        self.node.attend();
    }

    fn trouble(&mut self) -> Option<End> {
        self.node.attend();
        if self.interrupted.load(Ordering::Relaxed) {
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
