//! The timer thread: metatraffic, changes of the network, and everything that is due at a time
//! (discovery, HEARTBEATs, bursts held back, unanswered requests).

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::MutexGuard;
use weir_rtps::outbox::Outbox;
use weir_rtps::packing::Packing;
use weir_rtps::participant::Gathering;
use weir_rtps::time::Time;
use weir_udp::{RecvBatch, UdpSocket, Wait};

use super::endpoints::ReaderEndpoint;
use super::listeners::Call;
use super::sender::Sender;
use super::shared::Driver;
use crate::clock;

/// How often the difference between wall clock and monotonic clock is measured, and lost paths are
/// looked for.
pub(super) const ADJUST_CLOCK_EVERY: Duration = Duration::from_secs(1);

/// Batches of metatraffic received before what is due is sent.
const BATCHES_MAX: usize = 32;
/// Datagrams of metatraffic per receive call.
const META_BUFFERS: usize = 8;
/// The unicast socket among those of discovery, which follows the prober, and the first multicast one.
const UNICAST: usize = 1;
const GROUP: usize = 2;

/// Runs until the participant stops.
pub(crate) fn run(driver: &Driver) {
    // Delays of a few hundred microseconds need timers more precise than the default slack.
    let _ = weir_udp::affinity::set_timer_slack_ns(1_000);
    let mut rounds = Rounds::new();
    let sockets: Vec<&UdpSocket> =
        [&driver.meta.prober, &driver.meta.unicast].into_iter().chain(&driver.meta.multicast).collect();
    let timers = &driver.outlet.timers;
    let sets = [sockets.len(), GROUP, UNICAST].map(|count| Watched::new(driver, &sockets, count));
    while driver.is_running() {
        let now = clock::now();
        driver.do_what_is_due(now, &mut rounds);
        let next = timers.begin_sleep([rounds.next, rounds.others]);
        let (watched, pause) = rounds.watched(now, &sets);
        let timeout = pause.or((next == Time::MAX).then_some(ADJUST_CLOCK_EVERY));
        let ready = weir_udp::poll(&watched.descriptors, Some(&timers.waker), timeout);
        [rounds.next, rounds.others] = timers.end_sleep();
        let Ok(ready) = ready else { continue };
        if ready.is_woken() {
            timers.waker.drain();
        }
        let mut readable = ready.readable().filter_map(|at| watched.indices.get(at)).peekable();
        if readable.peek().is_none() && pause.is_some_and(|pause| clock::now() >= now + pause) {
            // What has gathered is there, most likely: the kernel need not be asked before.
            let gathered = watched.sockets..sockets.len();
            gathered.for_each(|index| driver.receive_of_discovery(index, &sockets, &mut rounds));
        }
        for index in readable {
            driver.receive_of_discovery(*index, &sockets, &mut rounds);
        }
    }
}

/// What the thread waits for.
struct Watched<'a> {
    descriptors: Vec<BorrowedFd<'a>>,
    /// So many of the sockets of discovery are among them; the others are left to gather.
    sockets: usize,
    /// What they are for [`Driver::receive_of_discovery`]. The last one, the timer, is not received from.
    indices: Vec<usize>,
}

impl<'a> Watched<'a> {
    /// The first sockets of discovery, changes of the network, and the timer.
    fn new(driver: &'a Driver, sockets: &[&'a UdpSocket], count: usize) -> Self {
        let network = driver.network.watched();
        let count = count.min(sockets.len());
        let indices = (0..count).chain(network.is_some().then_some(sockets.len())).collect();
        let sockets = sockets[..count].iter().copied().map(AsFd::as_fd);
        let timer = [driver.outlet.timers.timer.as_fd()];
        Self { descriptors: sockets.chain(network).chain(timer).collect(), sockets: count, indices }
    }
}

/// What rounds of the timers need, and when the next one is due.
pub(super) struct Rounds {
    pub(super) next: Time,
    /// When the earliest of the other timers is due.
    pub(super) others: Time,
    pub(super) adjusted_at: Time,
    /// When discovery is received again, and when that which is sent to the multicast group. In a large domain, both
    /// [gather](weir_rtps::participant::ParticipantCore::gathering) in between.
    all_at: Time,
    group_at: Time,
    batch: RecvBatch,
    work: Work,
}

impl Rounds {
    /// The first round is due at once.
    pub(super) fn new() -> Self {
        let batch = RecvBatch::new(META_BUFFERS);
        Self {
            next: Time::ZERO,
            others: Time::MAX,
            adjusted_at: clock::now(),
            all_at: Time::ZERO,
            group_at: Time::ZERO,
            batch,
            work: Work::default(),
        }
    }

    /// Adds a timer.
    pub(super) fn note(&mut self, at: Time) {
        self.others = self.others.min(self.next.max(at));
        self.next = self.next.min(at);
    }

    /// Lets discovery traffic gather, unless more is waiting: the socket's buffer is limited.
    fn pause(&mut self, now: Time, gathering: Gathering, is_empty: bool, is_group: bool) {
        let Gathering { all, group } = if is_empty { gathering } else { Gathering::default() };
        self.all_at = now + all;
        if is_group {
            self.group_at = now + group;
        }
    }

    /// What the thread waits for now: a set that includes the sockets that are not left to gather, and for how long.
    fn watched<'a, T>(
        &self,
        now: Time,
        [all, without_group, without_both]: &'a [T; 3],
    ) -> (&'a T, Option<Duration>) {
        match (self.all_at.since(now), self.group_at.since(now)) {
            (Duration::ZERO, Duration::ZERO) => (all, None),
            (Duration::ZERO, group) => (without_group, Some(group)),
            (all, _) => (without_both, Some(all)),
        }
    }
}

/// The messages of readers whose timers expired.
#[derive(Default)]
struct Work {
    outbox: Outbox,
    packing: Packing,
    sender: Sender,
    /// Bytes lost on each path, as of the last look.
    lost: HashMap<Ipv4Addr, u64>,
}

/// Handles what has arrived before anything is sent: it may make that unnecessary, and what many peers have requested
/// leaves together. Returns for how long more may gather, if anything was received, and whether the socket is empty.
fn receive_metatraffic(
    driver: &Driver,
    socket: &UdpSocket,
    is_group: bool,
    batch: &mut RecvBatch,
) -> Option<(Gathering, bool)> {
    let limit = batch.capacity();
    let receive = |batch: &mut RecvBatch| socket.recv_batch(batch, limit, Wait::DontWait).unwrap_or(0);
    let mut count = receive(batch);
    if count == 0 {
        return None;
    }
    let gathering = driver.with_discovery(|core, now| {
        for _ in 0..BATCHES_MAX {
            // A participant that is not enabled knows no other.
            for message in batch.messages().filter(|_| driver.state.is_enabled()) {
                for datagram in message.datagrams() {
                    if is_group {
                        core.handle_group_datagram(now, message.from, datagram);
                    } else {
                        core.handle_datagram(now, message.from, datagram);
                    }
                }
            }
            count = if count < limit { 0 } else { receive(batch) };
            if count == 0 {
                return (core.gathering(now), true);
            }
        }
        (core.gathering(now), false)
    });
    Some(gathering)
}

impl Driver {
    /// Does everything that is due. Returns whether anything was.
    pub(super) fn do_what_is_due(&self, now: Time, rounds: &mut Rounds) -> bool {
        self.look_for_panic();
        let Rounds { next, others, adjusted_at, work, .. } = rounds;
        if now.since(*adjusted_at) >= ADJUST_CLOCK_EVERY {
            self.wall_clock.adjust();
            self.restore_paths();
            self.suspect_path_sizes(&mut work.lost);
            *adjusted_at = now;
        }
        // A round visits all endpoints. Most datagrams set no timer, and need none.
        let is_due = *next <= now;
        if is_due {
            [*next, *others] = self.timer_round(now, work);
        }
        is_due
    }

    /// Receives from a readable descriptor: the prober, the unicast socket, the multicast socket if there is one, and
    /// what reports changes of the network.
    pub(super) fn receive_of_discovery(&self, index: usize, sockets: &[&UdpSocket], rounds: &mut Rounds) {
        match (index, sockets.get(index)) {
            (0, _) => self.take_refusals(),
            (_, Some(socket)) => {
                let is_group = index >= GROUP;
                if let Some((gathering, is_empty)) =
                    receive_metatraffic(self, socket, is_group, &mut rounds.batch)
                {
                    rounds.pause(clock::now(), gathering, is_empty, is_group);
                }
            }
            (_, None) => {
                self.network_changed();
                // A thread does what follows at once. On a participant without threads, this makes the descriptor
                // readable: the application calls no other poll for it.
                self.outlet.timers.arm(clock::now());
            }
        }
    }

    /// Does everything that is due. Returns when the two earliest timers are due next.
    fn timer_round(&self, now: Time, work: &mut Work) -> [Time; 2] {
        let mut earliest = [Time::MAX; 2];
        let mut note = |at: Option<Time>| {
            let [first, second] = earliest;
            let at = at.unwrap_or(Time::MAX);
            earliest = [first.min(at), second.min(first.max(at))];
        };
        note(self.discovery_timeout(now));
        note(self.network_timeout(now));
        let table = self.routes.table();
        note(self.assertions_timeout(now, &table));
        table.writers.values().for_each(|writer| note(self.writer_timeout(writer, now)));
        table.readers.values().for_each(|reader| note(self.reader_timeout(reader, now, work)));
        if !work.outbox.is_empty() {
            work.packing.pack_answers(&mut work.outbox);
            self.outlet.send(&mut work.sender, &mut work.outbox);
        }
        earliest
    }

    /// Has the sizes of datagrams verified on the paths that have lost some since the last call.
    fn suspect_path_sizes(&self, lost: &mut HashMap<Ipv4Addr, u64>) {
        let before = std::mem::take(lost);
        lost.extend(self.paths.reports().into_iter().map(|(host, path)| (host, path.lost_bytes)));
        let has_more = |(host, bytes): &(&Ipv4Addr, &u64)| **bytes > before.get(*host).copied().unwrap_or(0);
        let mut suspected = lost.iter().filter(has_more).peekable();
        if suspected.peek().is_some() {
            self.with_discovery(|core, now| {
                suspected.for_each(|(host, _)| core.suspect_path_size(now, *host));
            });
        }
    }

    fn reader_timeout(&self, reader: &Arc<ReaderEndpoint>, now: Time, work: &mut Work) -> Option<Time> {
        let (next, is_writer_lost, has_deadline_news, has_late_values, has_removed) = {
            let mut core = reader.core.lock();
            let before = core.not_alive_writers();
            let due = core.next_timeout();
            if due.is_some_and(|due| due <= now) {
                core.handle_timeout(now);
                while core.has_left() {
                    // A writer has left with many instances, which end in steps. Threads that wait for the reader are
                    // served between them.
                    MutexGuard::bump(&mut core);
                    core.handle_timeout(now);
                }
                core.poll_transmit(now, &mut work.outbox);
            }
            let is_lost = core.not_alive_writers() > before;
            let has_deadline_news = due.is_some() && core.has_deadline_news();
            let (has_late_values, has_removed) = (core.take_late_values(), core.take_removed());
            (core.next_timeout(), is_lost, has_deadline_news, has_late_values, has_removed)
        };
        if has_removed && reader.watching.is_on() {
            reader.note_removal();
        }
        if is_writer_lost || has_late_values {
            // The instances of a lost writer and late values are news for threads that wait for data.
            self.announce_late(reader);
        } else if has_deadline_news {
            self.listeners.call([Call::News(Arc::clone(reader))]);
        }
        next
    }

    /// Notifies those who wait for a reader of samples that were not in the last batch.
    pub(crate) fn announce_late(&self, reader: &Arc<ReaderEndpoint>) {
        self.channel.announce_change();
        self.listeners.call([Call::News(Arc::clone(reader))]);
    }
}

#[cfg(test)]
mod tests {
    use weir_cdr::DdsType;
    use weir_wire::{Data, EntityId, Payload, SequenceNumber};

    use super::*;
    use crate::{
        Condition, DataReader, DataReaderQos, DataWriter, DataWriterQos, DomainParticipant, EventFd,
        InstanceHandle, ParticipantSettings, ReaderDataLifecycle, ResourceLimits, States, StatusMask,
        WaitSet,
    };

    const LONG: Duration = Duration::from_secs(3600);

    #[derive(DdsType, Default)]
    #[dds(extensibility = "final")]
    struct Reading {
        #[dds(key)]
        sensor: u32,
    }

    /// A writer and a reader in a participant that nothing but the test runs.
    struct World {
        participant: DomainParticipant,
        writer: DataWriter<Reading>,
        reader: DataReader<Reading>,
    }

    impl World {
        fn new(writer: DataWriterQos, reader: DataReaderQos) -> Self {
            let settings = ParticipantSettings { multicast: false, ..ParticipantSettings::default() };
            let participant = DomainParticipant::new(16, settings.interface("lo").without_threads()).unwrap();
            let topic = participant.create_topic(&format!("readings of {}", std::process::id())).unwrap();
            let writer = participant.create_publisher().unwrap().create_datawriter(&topic, writer).unwrap();
            let reader = participant.create_subscriber().unwrap().create_datareader(&topic, reader).unwrap();
            Self { participant, writer, reader }
        }

        fn poll_until_available(&self, count: usize) {
            while self.reader.available() < count {
                self.participant.poll(LONG).unwrap();
            }
        }

        /// Lets the timers of the reader expire that are due within this time.
        fn expire(&self, within: Duration) {
            let at = clock::now() + within;
            self.participant.handle.driver.reader_timeout(self.reader.endpoint(), at, &mut Work::default());
        }

        /// The descriptors of the reader, and of wait sets with conditions that are true while it has samples.
        fn descriptors(&self) -> ([WaitSet; 3], [EventFd; 4]) {
            let status = self.reader.status_condition();
            status.set_enabled_statuses(StatusMask::DATA_AVAILABLE);
            let data = self.reader.read_condition(States::ANY);
            let of_subscriber = self.reader.subscriber().status_condition();
            let conditions: [Condition; 3] = [(&status).into(), (&data).into(), (&of_subscriber).into()];
            let wait_sets = conditions.map(|condition| {
                let wait_set = WaitSet::new();
                wait_set.attach_condition(condition);
                wait_set
            });
            let [status, data, of_subscriber] = wait_sets.each_ref().map(|it| it.event_fd().unwrap());
            (wait_sets, [self.reader.event_fd().unwrap(), status, data, of_subscriber])
        }
    }

    fn are_readable(descriptors: &[EventFd; 4]) -> [bool; 4] {
        descriptors
            .each_ref()
            .map(|fd| weir_udp::poll(&[fd], None, Some(Duration::ZERO)).unwrap().is_readable(0))
    }

    #[test]
    fn samples_that_expire_or_are_purged_end_what_waits_for_them() {
        let (plain, lasting) = (DataWriterQos::default(), DataReaderQos::default().keep_all());
        let lifecycle =
            ReaderDataLifecycle { autopurge_disposed_samples_delay: LONG, ..ReaderDataLifecycle::default() };
        let purged = lasting.clone().reader_data_lifecycle(lifecycle);
        for (writer, reader, is_disposed) in
            [(plain.clone().lifespan(LONG), lasting, false), (plain, purged, true)]
        {
            let world = World::new(writer.reliable(), reader.reliable());
            let (_wait_sets, descriptors) = world.descriptors();
            world.writer.write(&Reading { sensor: 1 }).unwrap();
            if is_disposed {
                world.writer.dispose(&Reading { sensor: 1 }).unwrap();
            }
            world.poll_until_available(1 + usize::from(is_disposed));
            assert_eq!(are_readable(&descriptors), [true; 4]);
            world.expire(2 * LONG);
            assert_eq!((world.reader.available(), are_readable(&descriptors)), (0, [false; 4]));
        }
    }

    /// A value that was held back behind a missing one finds no room when that arrives. No datagram of its writer
    /// follows.
    #[test]
    fn a_value_for_which_an_access_makes_room_is_news() {
        let limits = ResourceLimits::default().max_samples(2);
        let world = World::new(
            DataWriterQos::default().reliable(),
            DataReaderQos::default().reliable().keep_all().resource_limits(limits),
        );
        let (_wait_sets, descriptors) = world.descriptors();
        world.writer.write(&Reading { sensor: 1 }).unwrap();
        world.poll_until_available(1);
        let guid = world.writer.guid();
        for number in [3, 2] {
            let data = Data {
                reader: EntityId::UNKNOWN,
                writer: guid.entity,
                sequence_number: SequenceNumber(number),
                inline_qos: None,
                payload: Payload::Data(&[0, 1, 0, 0, number as u8, 0, 0, 0]),
            };
            world.reader.endpoint().core.lock().handle_data(clock::now(), &guid, &data, None, None);
        }
        let sensors = |reader: &DataReader<Reading>| {
            let all = reader.take(usize::MAX);
            all.iter().map(|sample| sample.data().unwrap().sensor).collect::<Vec<_>>()
        };
        assert_eq!(sensors(&world.reader), [1, 2]);
        assert_eq!((world.reader.available(), are_readable(&descriptors)), (1, [true; 4]));
        assert_eq!(sensors(&world.reader), [3]);
        assert_eq!((world.reader.available(), are_readable(&descriptors)), (0, [false; 4]));
    }

    /// A reader with a sample that has expired, which no thread knows of yet, and what waits for it.
    fn expired() -> (World, ([WaitSet; 3], [EventFd; 4])) {
        let world = World::new(
            DataWriterQos::default().reliable().lifespan(LONG),
            DataReaderQos::default().reliable(),
        );
        let waiting = world.descriptors();
        world.writer.write(&Reading { sensor: 1 }).unwrap();
        world.poll_until_available(1);
        world.reader.endpoint().core.lock().expire(clock::now() + 2 * LONG);
        (world, waiting)
    }

    /// A condition removes samples that have expired when it is evaluated, in a call that notifies no other thread.
    #[test]
    fn samples_that_a_condition_has_removed_are_news_at_the_next_timeout() {
        let (world, (_wait_sets, descriptors)) = expired();
        assert_eq!(are_readable(&descriptors), [true; 4]);
        world.expire(Duration::ZERO);
        assert_eq!(are_readable(&descriptors), [false; 4]);
    }

    #[test]
    fn an_access_that_finds_no_instance_is_one_all_the_same() {
        let (world, (_wait_sets, descriptors)) = expired();
        assert!(world.reader.select().instance(InstanceHandle([7; 16])).take().is_empty());
        assert_eq!(are_readable(&descriptors), [false; 4]);
    }

    #[test]
    fn discovery_traffic_gathers_unless_a_socket_has_more() {
        let ms = Duration::from_millis;
        let (mut rounds, sets, now) =
            (Rounds::new(), ["all", "without group", "without both"], Time(1 << 40));
        let gathering = Gathering { all: ms(20), group: ms(50) };
        rounds.pause(now, gathering, true, true);
        assert_eq!(rounds.watched(now, &sets), (&"without both", Some(ms(20))));
        assert_eq!(rounds.watched(now + ms(20), &sets), (&"without group", Some(ms(30))));
        assert_eq!(rounds.watched(now + ms(50), &sets), (&"all", None));
        // What is sent to the participant itself says nothing about the group.
        rounds.pause(now + ms(20), gathering, true, false);
        assert_eq!(rounds.watched(now + ms(40), &sets), (&"without group", Some(ms(10))));
        rounds.pause(now + ms(40), gathering, false, true);
        assert_eq!(rounds.watched(now + ms(40), &sets), (&"all", None), "its buffer may be full");
    }

    #[test]
    fn a_change_of_the_network_makes_the_descriptor_of_a_polled_participant_readable() {
        let settings = ParticipantSettings { multicast: false, ..ParticipantSettings::default() };
        let settings = settings.interface("lo").without_threads();
        let participant = DomainParticipant::new(17, settings).unwrap();
        let is_readable = || {
            let fd = participant.poll_fd().unwrap();
            weir_udp::poll(&[fd], None, Some(Duration::ZERO)).unwrap().is_readable(0)
        };
        while is_readable() {
            participant.poll(Duration::ZERO).unwrap();
        }
        let driver = &participant.handle.driver;
        let sockets = [&driver.meta.prober, &driver.meta.unicast];
        driver.receive_of_discovery(sockets.len(), &sockets, &mut Rounds::new());
        assert!(is_readable(), "no poll would do what follows");
        participant.poll(Duration::ZERO).unwrap();
    }
}
