//! The publisher: waits for its subscribers, warms them up, writes, pings, and ends when they know it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use parking_lot::Mutex;
use weir_dds::{DataReader, DataReaderListener, DataWriter, DdsError};
use weir_measure::{clock, pause};
use weir_results::{LatencyKind, LatencySummary};
use weir_telemetry::LossWatch;

use super::announcement::{Roll, RollListener};
use super::echoes::Echoes;
use super::message::{self, DESCRIPTION_BYTES, Farewell, Kind};
use super::node::{Batch, LATENCY, Node, THROUGHPUT, failed};
use super::pacing::CHECK;
use super::probe::{Probe, Role};
use super::raw;
use super::reading::Reading;
use super::settings::{PublisherSettings, Receive};
use super::waiting::Waiting;
use super::{End, Event};
use weir_bench::endpoint::EndpointError;
use weir_bench::payload::{HEADER_BYTES, SampleHeader, key_of, wire_sequence};
use weir_bench::test_data::{KeyedTestData, Owned, TestData};

/// A ping that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The whole round trip.
    pub rtt_ns: u64,
}

/// What a publisher found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// Samples sent.
    pub sent: u64,
    /// How long that took.
    pub sent_in: Duration,
    /// Half round trips of the pings, but the first one; none were sent by other publishers than number 0.
    pub latency: LatencySummary,
    /// How it ended.
    pub end: End,
}

/// How long a best-effort ping is waited for.
const ECHO_PATIENCE: Duration = Duration::from_millis(200);

/// How often final markers are sent, and how long each is waited for.
const FINAL_TRIES: u32 = 50;
const FINAL_PATIENCE: Duration = Duration::from_millis(100);

/// How long echoes of initialization pings are waited for after the last one; when all are back, no longer.
const SETTLE: Duration = Duration::from_secs(1);
/// How often it is looked for them.
const SETTLE_TICK: Duration = Duration::from_millis(20);

/// Runs once for the subscribers that announce themselves.
///
/// # Errors
/// Of the engine, and for settings that make no sense.
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
        Run::<KeyedTestData>::open(settings, interrupted, on_event)?.run()
    } else {
        Run::<TestData>::open(settings, interrupted, on_event)?.run()
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
                // Nobody listens any more once the run is over.
                let _ = self.echoes.send(Echo { rtt_ns });
            }
        }
    }
}

/// Whether it is the echo of an initialization ping of ours: other publishers' pings are echoed to us as well.
fn is_warm_up(header: &SampleHeader, pid: u32) -> bool {
    Kind::of(header) == Kind::Initialize && header.entity_id == pid.cast_signed()
}

struct Run<'a, T> {
    settings: &'a PublisherSettings,
    interrupted: &'a AtomicBool,
    on_event: &'a mut dyn FnMut(Event),
    roll: Arc<Roll>,
    announcements: DataReader<T>,
    writer: DataWriter<T>,
    /// Only the publisher that sends pings has one.
    echo_reader: Option<DataReader<T>>,
    /// Takes the echoes with `-useReadThread`.
    _reading: Option<Reading>,
    echoes: Echoes,
    /// Echoes of initialization pings.
    warmed_up: Arc<AtomicU64>,
    sample: T,
    /// Where the next sample's content begins.
    content_at: usize,
    /// Samples that may be written before acknowledgements are waited for, and how many were; see
    /// [`PublisherSettings::acknowledged_every`].
    acknowledged_every: u64,
    unacknowledged: u64,
    node: Node,
}

impl<'a, T: Owned> Run<'a, T> {
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
        Ok(Self {
            settings,
            interrupted,
            on_event,
            roll,
            announcements,
            writer,
            echo_reader,
            _reading: reading,
            echoes: Echoes::new(echoes, settings.node.intervals),
            warmed_up,
            sample: T::default(),
            content_at: 0,
            acknowledged_every: settings.acknowledged_every().unwrap_or(u64::MAX),
            unacknowledged: 0,
            node,
        })
    }

    fn run(mut self) -> Result<Published, EndpointError> {
        let settings = self.settings;
        let (mut sent, mut sent_in) = (0, Duration::ZERO);
        let mut end = self.wait_for_subscribers()?;
        if end == End::Complete {
            end = self.initialize()?;
        }
        if end == End::Complete {
            self.stage("Sending data ...".to_owned());
            self.sample.octets_mut().clear();
            self.sample.octets_mut().resize(settings.data_len - HEADER_BYTES, 0);
            let watch = LossWatch::start(None);
            let start_ns = clock::now_ns();
            (sent, end) = if settings.latency_test { self.ping()? } else { self.stream()? };
            sent_in = Duration::from_nanos(clock::now_ns() - start_ns);
            end = self.finish(sent, end, &watch)?;
        }
        self.echoes.note_arrived(self.on_event);
        Ok(Published { sent, sent_in, latency: self.echoes.recorder.summary(LatencyKind::HalfRtt), end })
    }

    fn stage(&mut self, text: String) {
        (self.on_event)(Event::Stage(text));
    }

    fn is_stopped(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn wait_for_subscribers(&mut self) -> Result<End, EndpointError> {
        const TICK: Duration = Duration::from_millis(200);
        let (pid, wanted) = (self.settings.pid, self.settings.num_subscribers);
        let probe = Probe::open(&self.node, &self.settings.node, Role::Publisher)?;
        let mut waiting = Waiting::new(probe, &self.settings.node);
        self.stage(format!("Waiting to discover {wanted} subscribers ..."));
        while self.writer.wait_for_subscriptions(wanted, TICK).is_err() {
            waiting.look(Role::Subscriber, self.roll.waiting_for(pid), wanted, self.on_event);
            if self.is_stopped() {
                return Ok(End::Interrupted);
            }
        }
        self.stage("Waiting for subscribers announcement ...".to_owned());
        let mut looked_ns = clock::now_ns();
        while !self.roll.begin(pid, wanted) {
            if clock::now_ns() - looked_ns >= TICK.as_nanos() as u64 {
                looked_ns = clock::now_ns();
                waiting.look(Role::Subscriber, self.roll.waiting_for(pid), wanted, self.on_event);
            }
            if self.is_stopped() {
                return Ok(End::Interrupted);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        if let Some(reader) = &self.echo_reader {
            // The way back is there as well.
            while reader.wait_for_publications(wanted, TICK).is_err() {
                waiting.look(Role::Subscriber, self.roll.waiting_for(pid), wanted, self.on_event);
                if self.is_stopped() {
                    return Ok(End::Interrupted);
                }
            }
        }
        Ok(End::Complete)
    }

    fn initialize(&mut self) -> Result<End, EndpointError> {
        let settings = self.settings;
        let pings = settings.initialization_pings();
        self.stage(format!("Sending {pings} initialization pings ..."));
        settings.description().write(self.sample.octets_mut());
        for number in 0..pings {
            let key = self.key(number);
            self.sample.set_header(&message::header(Kind::Initialize, settings.pid, number, key));
            if let Some(end) = self.write()? {
                return Ok(end);
            }
            if !settings.node.reliable && number % 50 == 49 {
                // They are no measurement: do not flood a subscriber that makes its first room.
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        self.writer.flush();
        if settings.node.reliable && !self.wait_until_acknowledged()? {
            return Ok(if self.is_stopped() { End::Interrupted } else { End::PeerGone });
        }
        self.settle(pings);
        Ok(End::Complete)
    }

    /// Waits until the subscribers have echoed the initialization pings, or what they will of them: a backlog would delay
    /// the first sample.
    fn settle(&mut self, pings: u64) {
        let all = pings.saturating_mul(self.settings.num_subscribers.into());
        let (mut heard, mut quiet_since_ns) = (0, clock::now_ns());
        while clock::now_ns() - quiet_since_ns < SETTLE.as_nanos() as u64 && !self.is_stopped() {
            std::thread::sleep(SETTLE_TICK);
            if heard >= all && all > 0 {
                return;
            }
            if let Some(reader) = self.echo_reader.as_ref().filter(|_| self.settings.latency_test) {
                while reader.take_next_sample(&mut self.sample).is_some() {
                    let is_ours = is_warm_up(&self.sample.header(), self.settings.pid);
                    self.warmed_up.fetch_add(u64::from(is_ours), Ordering::Relaxed);
                }
            }
            let warmed_up = self.warmed_up.load(Ordering::Relaxed);
            if warmed_up > heard {
                (heard, quiet_since_ns) = (warmed_up, clock::now_ns());
            }
        }
    }

    fn key(&self, sequence: u64) -> [u8; 4] {
        let node = &self.settings.node;
        match self.settings.write_instance.filter(|_| node.keyed) {
            Some(instance) => instance.to_le_bytes(),
            None => key_of(sequence, if node.keyed { node.instances } else { 0 }),
        }
    }

    /// Writes the sample; `Some` when the run is over because nobody makes room.
    #[inline]
    fn write(&mut self) -> Result<Option<End>, EndpointError> {
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

    /// The pause after a sample, if there is one; `Some` when the run is over meanwhile.
    #[inline]
    fn pause(&self) -> Option<End> {
        pause(self.settings.sleep?, || self.trouble())
    }

    /// Why the run has to end, if it has.
    fn trouble(&self) -> Option<End> {
        if self.is_stopped() {
            return Some(End::Interrupted);
        }
        // Not their number: those of the next run may be there already, and who knows that we are done may go. Who is there
        // comes first, and what was received is heard before it is judged: a subscriber goes when it has said so.
        let pid = self.settings.pid;
        let there = self.announcements.matched_publications();
        if !self.roll.misses_one(pid, &there) {
            return None;
        }
        RollListener(Arc::clone(&self.roll)).on_data_available(&self.announcements);
        self.roll.misses_one(pid, &there).then_some(End::PeerGone)
    }

    /// Writes as fast as it goes, or at a rate.
    fn stream(&mut self) -> Result<(u64, End), EndpointError> {
        let settings = self.settings;
        let per_batch = settings.samples_per_batch();
        let stride = settings.latency_count.max(1).saturating_mul(per_batch);
        // How many samples go by between two looks at the clock.
        let look = (65_536 / settings.data_len as u64).clamp(1, 64);
        let start_ns = clock::now_ns();
        let end_ns = settings.end_ns(start_ns);
        let mut next_look_ns = start_ns;
        let schedule = settings.rate.map(|rate| rate.paced(start_ns));
        let (mut pings, mut next_ping) = (0_u64, if settings.pid == 0 { 0 } else { u64::MAX });
        let mut sequence = 0;
        while sequence < settings.num_iter {
            if let Some(schedule) = &schedule {
                schedule.wait(sequence, || self.interrupted.load(Ordering::Relaxed));
            }
            let key = self.key(sequence);
            if sequence == next_ping {
                let subscriber = (pings % u64::from(settings.num_subscribers.max(1))) as u32;
                let header = message::header(Kind::Ping(subscriber), settings.pid, sequence, key);
                self.fill();
                self.sample.set_header(&message::stamped(header, clock::now_ns()));
                pings += 1;
                // Round the places of a batch, so that none is measured only.
                next_ping = pings.saturating_mul(stride).saturating_add(pings % per_batch);
                self.echoes.note_arrived(self.on_event);
            } else {
                self.fill();
                self.sample.set_header(&message::header(Kind::Data, settings.pid, sequence, key));
            }
            if let Some(end) = self.write()? {
                return Ok((sequence, end));
            }
            sequence += 1;
            if let Some(end) = self.pause() {
                return Ok((sequence, end));
            }
            if sequence % look == 0 || schedule.is_some() || settings.sleep.is_some() {
                if self.is_stopped() {
                    return Ok((sequence, End::Interrupted));
                }
                let now_ns = clock::now_ns();
                if now_ns >= end_ns {
                    self.stage("Finishing test due to timer...".to_owned());
                    break;
                }
                if now_ns >= next_look_ns {
                    next_look_ns = now_ns + CHECK.as_nanos() as u64;
                    if let Some(end) = self.trouble() {
                        return Ok((sequence, end));
                    }
                }
            }
        }
        Ok((sequence, End::Complete))
    }

    /// Puts the next piece of the content into the sample.
    #[inline]
    fn fill(&mut self) {
        let Some(content) = self.settings.content.as_deref().filter(|content| !content.is_empty()) else {
            return;
        };
        let mut octets = self.sample.octets_mut().as_mut_slice();
        while !octets.is_empty() {
            let piece = &content[self.content_at..];
            let count = piece.len().min(octets.len());
            octets[..count].copy_from_slice(&piece[..count]);
            octets = &mut octets[count..];
            self.content_at = (self.content_at + count) % content.len();
        }
    }

    /// One ping at a time, each waited for.
    fn ping(&mut self) -> Result<(u64, End), EndpointError> {
        let settings = self.settings;
        let Some(reader) = self.echo_reader.clone() else {
            return Err(EndpointError::Engine("only publisher 0 can run a latency test".to_owned()));
        };
        let start_ns = clock::now_ns();
        let end_ns = settings.end_ns(start_ns);
        let schedule = settings.rate.map(|rate| rate.paced(start_ns));
        let mut echo = T::default();
        for sequence in 0..settings.num_iter {
            if let Some(schedule) = &schedule {
                schedule.wait(sequence, || self.interrupted.load(Ordering::Relaxed));
            }
            let subscriber = (sequence % u64::from(settings.num_subscribers.max(1))) as u32;
            let header = message::header(Kind::Ping(subscriber), settings.pid, sequence, self.key(sequence));
            self.fill();
            let sent_ns = clock::now_ns();
            self.sample.set_header(&message::stamped(header, sent_ns));
            if let Some(end) = self.write()? {
                return Ok((sequence, end));
            }
            let now_ns = loop {
                if wait_for_echo(&reader, &mut echo, sequence) {
                    let now_ns = clock::now_ns();
                    self.echoes.note(Echo { rtt_ns: now_ns - sent_ns }, self.on_event);
                    break now_ns;
                }
                if let Some(end) = self.trouble() {
                    return Ok((sequence + 1, end));
                }
                if !settings.node.reliable {
                    self.echoes.recorder.record_lost();
                    break clock::now_ns();
                }
            };
            if let Some(end) = self.pause() {
                return Ok((sequence + 1, end));
            }
            if self.is_stopped() {
                return Ok((sequence + 1, End::Interrupted));
            }
            if now_ns >= end_ns {
                self.stage("Finishing test due to timer...".to_owned());
                return Ok((sequence + 1, End::Complete));
            }
        }
        Ok((settings.num_iter, End::Complete))
    }

    /// Lets a while go by. The last echoes are on their way: who waits for them receives, and is not late.
    fn receive_for(&self, time: Duration) {
        match self.echo_reader.as_ref().filter(|_| !self.settings.latency_test) {
            Some(reader) => _ = reader.wait_for_data(time),
            None => std::thread::sleep(time),
        }
    }

    /// Waits until every sample is acknowledged; `false` when that will never be.
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

    /// Tells the subscribers that this was all, until they say that they know.
    fn finish(&mut self, sent: u64, end: End, watch: &LossWatch) -> Result<End, EndpointError> {
        if self.settings.node.reliable && end == End::Complete && !self.wait_until_acknowledged()? {
            return Ok(if self.is_stopped() { End::Interrupted } else { End::PeerGone });
        }
        // For those who have heard no initialization ping.
        let octets = self.sample.octets_mut();
        self.settings.description().write(octets);
        octets.truncate(DESCRIPTION_BYTES);
        Farewell { refused: self.writer.send_counters().refused, drops: watch.counters() }.append_to(octets);
        let key = self.key(0);
        self.sample.set_header(&message::header(Kind::Final, self.settings.pid, sent, key));
        for _ in 0..FINAL_TRIES {
            if self.write()?.is_some() {
                break;
            }
            self.writer.flush();
            let until_ns = clock::now_ns() + FINAL_PATIENCE.as_nanos() as u64;
            loop {
                // Also when time has run out: who says it again to the next run's subscriber disturbs that.
                if self.roll.finished(self.settings.pid) >= self.settings.num_subscribers {
                    self.stage("Finishing test...".to_owned());
                    return Ok(end);
                }
                if clock::now_ns() >= until_ns {
                    break;
                }
                self.receive_for(Duration::from_millis(1));
            }
            if self.trouble() == Some(End::PeerGone) {
                break;
            }
        }
        Ok(if end == End::Complete { End::PeerGone } else { end })
    }
}

/// Waits for the echo of ping number `sequence`. Echoes of earlier ones come too late, and are lost already.
#[inline]
fn wait_for_echo<T: Owned>(reader: &DataReader<T>, echo: &mut T, sequence: u64) -> bool {
    while reader.wait_for_data(ECHO_PATIENCE) {
        while let Some(info) = reader.take_next_sample(echo) {
            let header = echo.header();
            let is_ours =
                header.seq_num == wire_sequence(sequence) && matches!(Kind::of(&header), Kind::Ping(_));
            if info.valid_data && is_ours {
                return true;
            }
        }
    }
    false
}
