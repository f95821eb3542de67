//! Weir's side of the exchanges.

use core::cell::{Cell, OnceCell};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};

use weir_dds::{
    DataReader, DataReaderListener, DataReaderQos, DataWriter, DataWriterListener, DataWriterQos,
    DeadlineMissedStatus, DomainParticipant, IncompatibleQosStatus, InstanceHandle, InstanceState,
    LivelinessChangedStatus, LivelinessLostStatus, ParticipantSettings, PublicationMatchedStatus,
    Reliability, SubscriptionMatchedStatus, Topic,
};

use crate::peer::Peer;
use crate::types::Numbered;

/// Time limit for everything, for a slow and busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// Much less than a lease: a participant that leaves says goodbye.
const SOON: Duration = Duration::from_secs(5);

/// The lease of participants that are killed, in tests that wait for it: long enough for a busy
/// machine.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

/// A domain and a topic that no other test uses, and a participant on the loopback interface.
pub(crate) struct Run {
    pub(crate) domain: u32,
    pub(crate) topic: String,
    settings: ParticipantSettings,
    participant: OnceCell<DomainParticipant>,
}

impl Run {
    /// Announces nothing yet.
    pub(crate) fn new(name: &str) -> Self {
        // Tests that run at the same time must not discover each other.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let id = std::process::id();
        let domain = 1 + id.wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed)) % 100;
        Self::of(domain, format!("{name}_{id}"))
    }

    /// A given topic.
    pub(crate) fn of(domain: u32, topic: String) -> Self {
        let settings = ParticipantSettings::default().interface("lo");
        Self { domain, topic, settings, participant: OnceCell::new() }
    }

    /// The same topic for another participant.
    pub(crate) fn another(&self) -> Self {
        Self::of(self.domain, self.topic.clone())
    }

    /// The same with [`LEASE`] for the participant.
    pub(crate) fn with_lease(mut self) -> Self {
        self.settings.lease_duration = LEASE;
        self
    }

    pub(crate) fn participant(&self) -> &DomainParticipant {
        let make = || DomainParticipant::new(self.domain, self.settings.clone()).unwrap();
        self.participant.get_or_init(make)
    }

    pub(crate) fn topic<T: Numbered>(&self) -> Topic<T> {
        self.participant().create_topic(&self.topic).unwrap()
    }

    pub(crate) fn writer<T: Numbered>(&self, reliability: Reliability) -> DataWriter<T> {
        // Distinguishes unregistered instances from disposed ones.
        let mut qos = DataWriterQos::default().autodispose_unregistered_instances(false).keep_all();
        qos.max_blocking_time = LIMIT;
        qos.reliability = reliability;
        self.writer_with_qos(qos)
    }

    pub(crate) fn writer_with_qos<T: Numbered>(&self, qos: DataWriterQos) -> DataWriter<T> {
        self.participant().create_publisher().unwrap().create_datawriter(&self.topic(), qos).unwrap()
    }

    pub(crate) fn reader<T: Numbered>(&self, reliability: Reliability) -> DataReader<T> {
        self.reader_with_news(reliability).0
    }

    pub(crate) fn reader_with_qos<T: Numbered>(&self, qos: DataReaderQos) -> DataReader<T> {
        self.participant().create_subscriber().unwrap().create_datareader(&self.topic(), qos).unwrap()
    }

    /// A reader, and the statuses that its listener receives.
    pub(crate) fn reader_with_news<T: Numbered>(&self, reliability: Reliability) -> (DataReader<T>, News) {
        let mut qos = DataReaderQos::default().keep_all();
        qos.reliability = reliability;
        self.reader_with_qos_and_news(qos)
    }

    /// The same with this QoS.
    pub(crate) fn reader_with_qos_and_news<T: Numbered>(&self, qos: DataReaderQos) -> (DataReader<T>, News) {
        let (listener, news) = Listener::new();
        let subscriber = self.participant().create_subscriber().unwrap();
        (subscriber.create_datareader_with_listener(&self.topic(), qos, listener).unwrap(), news)
    }

    /// A writer, and the statuses that its listener receives.
    pub(crate) fn writer_with_news<T: Numbered>(&self, reliability: Reliability) -> (DataWriter<T>, News) {
        let writer = self.writer(reliability);
        let news = Self::watch(&writer);
        (writer, news)
    }

    /// Collects what a writer's listener receives from now on, and would have received before.
    pub(crate) fn watch<T: Numbered>(writer: &DataWriter<T>) -> News {
        let (listener, news) = Listener::new();
        let listener = Arc::new(listener);
        writer.set_listener(Some(Arc::clone(&listener) as Arc<dyn DataWriterListener<T>>));
        // Earlier events.
        DataWriterListener::on_publication_matched(&*listener, writer, writer.publication_matched_status());
        let status = writer.offered_incompatible_qos_status();
        if status.total_count > 0 {
            listener.tell_incompatible(status);
        }
        news
    }

    /// The command that makes a peer create a writer or reader for the topic.
    pub(crate) fn command<T: Numbered>(&self, kind: &str, reliability: Reliability) -> String {
        let reliability = if reliability == Reliability::Reliable { "reliable" } else { "best-effort" };
        format!("{kind} {} {} {reliability}", T::TYPE_NAME, self.topic)
    }
}

/// Matches of a writer or reader: now, and in total.
#[derive(Debug, Clone, Copy)]
struct Matches {
    current_count: u64,
    total_count: u64,
}

/// The events of a listener.
pub(crate) struct News {
    matched: Receiver<Matches>,
    /// The last one read.
    last_matched: Cell<Option<Matches>>,
    incompatible: Receiver<IncompatibleQosStatus>,
    alive: Receiver<LivelinessChangedStatus>,
    lost: Receiver<LivelinessLostStatus>,
    missed: Receiver<DeadlineMissedStatus>,
}

impl News {
    /// Waits for this number of matches, after a peer joined or said goodbye.
    pub(crate) fn await_matches(&self, count: u64) {
        // Only a goodbye has to be quicker than a lease; a peer starts as fast as the machine lets it.
        let known = self.last_matched.get().map_or(0, |status| status.current_count);
        let limit = if known > count { SOON } else { LIMIT };
        self.await_matched(limit, |status| status.current_count == count, &format!("{count} matches"));
    }

    /// Waits for this number of matches, after a peer was killed.
    pub(crate) fn await_matches_of_lease(&self, count: u64) {
        self.await_matched(LIMIT, |status| status.current_count == count, &format!("{count} matches"));
    }

    /// Waits for this total number of matches.
    pub(crate) fn await_arrivals(&self, count: u64) {
        self.await_matched(LIMIT, |status| status.total_count == count, &format!("{count} arrivals"));
    }

    fn await_matched(&self, limit: Duration, is_it: impl Fn(&Matches) -> bool, what: &str) {
        if !self.last_matched.get().is_some_and(|status| is_it(&status)) {
            self.last_matched.set(Some(await_status(&self.matched, limit, is_it, what)));
        }
    }

    /// Waits for an endpoint with incompatible QoS.
    pub(crate) fn await_incompatible(&self) -> IncompatibleQosStatus {
        await_status(&self.incompatible, LIMIT, |_| true, "an incompatible endpoint")
    }

    /// Waits until a deadline was missed.
    pub(crate) fn await_deadline_missed(&self) {
        await_status(&self.missed, LIMIT, |_| true, "a missed deadline");
    }

    /// Waits for these numbers of writers, alive and not alive.
    pub(crate) fn await_liveliness(&self, alive: u64, not_alive: u64) {
        let is_it = |status: &LivelinessChangedStatus| {
            (status.alive_count, status.not_alive_count) == (alive, not_alive)
        };
        await_status(&self.alive, LIMIT, is_it, &format!("{alive} writers alive and {not_alive} not"));
    }

    /// Waits until the writer's lease has expired this many times.
    pub(crate) fn await_liveliness_lost(&self, count: u64) {
        let is_it = |status: &LivelinessLostStatus| status.total_count == count;
        await_status(&self.lost, LIMIT, is_it, &format!("a writer's lease that ran out {count} times"));
    }
}

fn await_status<S: std::fmt::Debug>(
    statuses: &Receiver<S>,
    limit: Duration,
    is_it: impl Fn(&S) -> bool,
    what: &str,
) -> S {
    let mut seen = Vec::new();
    loop {
        match statuses.recv_timeout(limit) {
            Ok(status) if is_it(&status) => return status,
            Ok(status) => seen.push(status),
            Err(_) => panic!("not {what} within {limit:?}, only {seen:?}"),
        }
    }
}

struct Listener {
    matched: Mutex<Sender<Matches>>,
    incompatible: Mutex<Sender<IncompatibleQosStatus>>,
    alive: Mutex<Sender<LivelinessChangedStatus>>,
    lost: Mutex<Sender<LivelinessLostStatus>>,
    missed: Mutex<Sender<DeadlineMissedStatus>>,
}

impl Listener {
    fn new() -> (Self, News) {
        let (matched_sender, matched) = mpsc::channel();
        let (incompatible_sender, incompatible) = mpsc::channel();
        let (alive_sender, alive) = mpsc::channel();
        let (lost_sender, lost) = mpsc::channel();
        let (missed_sender, missed) = mpsc::channel();
        let listener = Self {
            matched: Mutex::new(matched_sender),
            incompatible: Mutex::new(incompatible_sender),
            alive: Mutex::new(alive_sender),
            lost: Mutex::new(lost_sender),
            missed: Mutex::new(missed_sender),
        };
        (listener, News { matched, last_matched: Cell::default(), incompatible, alive, lost, missed })
    }

    // The receiver is gone when the test is over.
    fn tell_matched(&self, current_count: u64, total_count: u64) {
        let _ = self.matched.lock().unwrap().send(Matches { current_count, total_count });
    }

    fn tell_incompatible(&self, status: IncompatibleQosStatus) {
        let _ = self.incompatible.lock().unwrap().send(status);
    }
}

impl<T> DataReaderListener<T> for Listener {
    fn on_subscription_matched(&self, _: &DataReader<T>, status: SubscriptionMatchedStatus) {
        self.tell_matched(status.current_count, status.total_count);
    }

    fn on_requested_incompatible_qos(&self, _: &DataReader<T>, status: IncompatibleQosStatus) {
        self.tell_incompatible(status);
    }

    fn on_liveliness_changed(&self, _: &DataReader<T>, status: LivelinessChangedStatus) {
        let _ = self.alive.lock().unwrap().send(status);
    }

    fn on_requested_deadline_missed(&self, _: &DataReader<T>, status: DeadlineMissedStatus) {
        let _ = self.missed.lock().unwrap().send(status);
    }
}

impl<T> DataWriterListener<T> for Listener {
    fn on_publication_matched(&self, _: &DataWriter<T>, status: PublicationMatchedStatus) {
        self.tell_matched(status.current_count, status.total_count);
    }

    fn on_offered_incompatible_qos(&self, _: &DataWriter<T>, status: IncompatibleQosStatus) {
        self.tell_incompatible(status);
    }

    fn on_liveliness_lost(&self, _: &DataWriter<T>, status: LivelinessLostStatus) {
        let _ = self.lost.lock().unwrap().send(status);
    }

    fn on_offered_deadline_missed(&self, _: &DataWriter<T>, status: DeadlineMissedStatus) {
        let _ = self.missed.lock().unwrap().send(status);
    }
}

/// Checks samples as they are taken: each is unchanged, and those of an instance are in order.
struct Check {
    size: u32,
    instances: u32,
    next: BTreeMap<u32, u32>,
    taken: u32,
}

impl Check {
    fn new(size: u32, instances: u32) -> Self {
        Self { size, instances, next: BTreeMap::new(), taken: 0 }
    }

    /// Waits for samples and takes them; `false` if none arrive. May also take the end of an
    /// instance.
    fn take<T: Numbered>(&mut self, reader: &DataReader<T>, limit: Duration) -> bool {
        if reader.wait_for_data(limit).is_err() {
            return false;
        }
        for sample in reader.take(usize::MAX) {
            if let Some(shape) = sample.data() {
                self.look_at(shape);
            }
        }
        true
    }

    fn look_at<T: Numbered>(&mut self, sample: &T) {
        let number = sample.number();
        assert_eq!(*sample, T::make(number, self.size, self.instances));
        let next = self.next.entry(number % self.instances).or_default();
        assert!(number >= *next, "sample {number} came after the one before {next}");
        *next = number + self.instances;
        self.taken += 1;
    }
}

/// Takes exactly these samples, each once. The order of each instance and the count exclude gaps.
pub(crate) fn take_exactly<T: Numbered>(
    reader: &DataReader<T>,
    first: u32,
    count: u32,
    size: u32,
    instances: u32,
) {
    let mut check = Check::new(size, instances);
    (first..first + instances).for_each(|number| _ = check.next.insert(number % instances, number));
    while check.taken < count {
        let has_come = check.take(reader, LIMIT);
        let (taken, counters) = (check.taken, reader.protocol_counters());
        assert!(has_come, "only {taken} of {count} samples came: {counters:?}");
    }
    let end = first + count;
    let nexts: Vec<_> = check.next.into_values().collect();
    assert!(nexts.iter().all(|next| (end..end + instances).contains(next)), "{nexts:?} follow {end} samples");
}

/// Lets the peer write until this many samples were taken, in order.
pub(crate) fn take_some<T: Numbered>(
    peer: &mut Peer,
    reader: &DataReader<T>,
    count: u32,
    size: u32,
    instances: u32,
) {
    const BURST: u32 = 50;
    let mut check = Check::new(size, instances);
    for first in (0..).step_by(BURST as usize) {
        peer.ask(&format!("write {first} {BURST} {size} {instances}"));
        while check.taken < count && reader.wait_for_data(Duration::from_millis(20)).is_ok() {
            check.take(reader, Duration::ZERO);
        }
        if check.taken >= count {
            return;
        }
        assert!(first < 100 * count, "of {first} samples only {} came", check.taken);
    }
}

/// Writes until the peer has read this many samples, in order.
pub(crate) fn write_until_content<T: Numbered>(
    peer: &mut Peer,
    writer: &DataWriter<T>,
    count: u32,
    size: u32,
    instances: u32,
) {
    peer.tell(&format!("read-some 0 {count} {size} {instances}"));
    for number in 0.. {
        writer.write(&T::make(number, size, instances)).unwrap();
        // Best effort needs pacing.
        if number % 20 == 0 && peer.answer_within(Duration::from_millis(1)).is_some() {
            return;
        }
    }
}

/// Waits until something holds that has no event.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let limit = std::time::Instant::now() + LIMIT;
    while !holds() {
        assert!(std::time::Instant::now() < limit, "not {what} within {LIMIT:?}");
        std::thread::yield_now();
    }
}

/// Takes samples until the instance is in this state.
pub(crate) fn await_state<T: Numbered>(
    reader: &DataReader<T>,
    instance: InstanceHandle,
    state: InstanceState,
) {
    loop {
        assert!(reader.wait_for_data(LIMIT).is_ok(), "{instance:?} is not {state:?}");
        let news = reader.take(usize::MAX);
        if news.iter().any(|it| it.info.instance_handle == instance && it.info.instance_state == state) {
            return;
        }
    }
}
