//! Whoever waits, receives.
//!
//! The socket for user data is received from by one thread at a time, the holder of the *role*. A background
//! thread has it while nobody else wants it. An application thread that waits (for data, for room in a
//! window, for acknowledgements) takes the role and receives itself: no other thread has to be woken on the
//! way of a sample, a listener that writes and waits cannot wait for itself, and a process on one processor
//! does not starve its own receiver. The background thread takes over again when no application thread has
//! received for a millisecond.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use weir_rtps::outbox::Outbox;
use weir_rtps::receiver::batch::{Batch, News};
use weir_rtps::receiver::{self, Incoming};
use weir_rtps::time::Time;
use weir_udp::{Outgoing, RecvBatch, UdpSocket, Wait};

use super::Driver;
use super::endpoints::{BatchEndpoints, ReaderEndpoint, Table, WriterEndpoint};
use super::groups::{GROUPS_MAX, Groups, Sockets};
use super::receive_counters::{DriverCounters, PublishedCounters, ReceiveCounters};
use super::received_blocks::ReceivedBlocks;
use super::transport::Sender;
use crate::clock;
use crate::listener::ReaderEvent;
use crate::stage_times::Came;
use crate::wait_strategy::WaitStrategy;

/// Buffers of 64 KiB for one receive call. Memory is used only as far as they were filled.
const RECEIVE_BUFFERS: usize = 32;
/// Two receive calls closer together than this, each with a full batch and none in vain between them, make the next batch
/// larger.
const BUSY_GAP: Duration = Duration::from_micros(3);
/// How long the background thread leaves the role to application threads after they last received.
const TAKE_OVER_AFTER: Duration = Duration::from_millis(1);
/// Receive calls by multicast in a row before unicast has its turn.
const GROUP_TURNS: u32 = 8;
/// How often the background thread looks whether it should take over while an application thread waits.
const IDLE_LOOK: Duration = Duration::from_millis(5);
/// Rounds of [`LOOKS_BETWEEN_CLOCK_READS`] that found nothing before a spinning thread checks what it waits for all
/// the same.
const ROUNDS_BETWEEN_CHECKS: u32 = 4;
/// Looks of a spinning thread between two reads of the clock.
const LOOKS_BETWEEN_CLOCK_READS: u32 = 16;
/// How often a thread that spins on the only processor it may use leaves it to others: a turn of theirs that nobody takes
/// costs about as much as three looks.
pub(super) const YIELD_EVERY: Duration = Duration::from_micros(20);
/// Longest sleep in a receive call: bounds what a lost kick can cost.
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(500);

/// The socket for user data, and who receives from it.
pub(crate) struct Channel {
    pub(crate) socket: UdpSocket,
    /// What else is received from.
    pub(crate) groups: Groups,
    role: Mutex<Role>,
    /// Goes up, under the lock, after every batch and whenever the role is free again.
    progress: Mutex<u64>,
    progressed: Condvar,
    /// Threads that sleep on `progressed`.
    sleepers: AtomicU32,
    /// Application threads that wait, with or without the role.
    waiting: AtomicU32,
    /// When an application thread last received.
    application_at: AtomicU64,
    is_background_receiving: AtomicBool,
    parked: Mutex<()>,
    unpark: Condvar,
    counters: PublishedCounters,
    /// Where a datagram has to go to come in at this socket.
    own_address: std::net::SocketAddrV4,
}

/// Where the last samples went.
type Prediction = receiver::prediction::Prediction<Arc<ReaderEndpoint>>;
/// What a batch brought for a reader.
pub(crate) type ReaderNews = receiver::batch::ReaderNews<Arc<ReaderEndpoint>>;

/// What the receiving thread needs; whoever holds it receives.
struct Role {
    received: RecvBatch,
    blocks: ReceivedBlocks,
    limit: usize,
    /// The groups' sockets, as of a version of the list of them.
    groups: Sockets,
    groups_version: u64,
    /// Receive calls since the last look at the socket for unicast.
    group_turns: u32,
    /// Longest sleep of a receive call that blocks.
    patience: Duration,
    received_at: Time,
    /// A look since then found nothing: whoever sends is no faster than we are.
    is_caught_up: bool,
    /// When the only processor was last left to others.
    yielded_at: Time,
    table: Arc<Table>,
    table_version: u64,
    batch: Batch<Arc<ReaderEndpoint>, Arc<WriterEndpoint>>,
    /// Of the table that is here.
    prediction: Option<Box<Prediction>>,
    counters: DriverCounters,
    outbox: Outbox,
    sender: Sender,
}

/// A batch that was taken in.
#[derive(Clone, Copy)]
struct TakenIn {
    /// When it came.
    at: Time,
    /// Samples lie in the reader that the thread waits for: no need to lock it again and ask.
    has_awaited: bool,
}

/// What a receive call brought.
#[derive(Clone, Copy)]
struct Arrived {
    /// Messages in the batch.
    count: usize,
    /// Whether they came by multicast.
    is_multicast: bool,
}

impl Channel {
    pub(crate) fn new(socket: UdpSocket, groups: Groups) -> Self {
        let mut own_address = socket.local_addr();
        if own_address.ip().is_unspecified() {
            own_address.set_ip(std::net::Ipv4Addr::LOCALHOST);
        }
        let role = Role {
            received: RecvBatch::new(RECEIVE_BUFFERS).without_sources(),
            blocks: ReceivedBlocks::default(),
            limit: 1,
            groups: groups.sockets(),
            groups_version: groups.version(),
            group_turns: 0,
            patience: RECEIVE_TIMEOUT,
            received_at: Time::ZERO,
            is_caught_up: false,
            yielded_at: Time::ZERO,
            table: Arc::default(),
            table_version: u64::MAX,
            batch: Batch::default(),
            prediction: None,
            counters: DriverCounters::default(),
            outbox: Outbox::new(),
            sender: Sender::default(),
        };
        Self {
            socket,
            groups,
            role: Mutex::new(role),
            progress: Mutex::new(0),
            progressed: Condvar::new(),
            sleepers: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            application_at: AtomicU64::new(0),
            is_background_receiving: AtomicBool::new(false),
            parked: Mutex::new(()),
            unpark: Condvar::new(),
            counters: PublishedCounters::default(),
            own_address,
        }
    }

    /// Makes whoever sleeps in a receive call of this socket look around: an empty datagram to ourselves.
    pub(crate) fn kick(&self) {
        self.unpark.notify_all();
        let _ = self.socket.send_one(&Outgoing::datagram(Some(self.own_address), &[]));
    }

    /// Tells threads that sleep until something happens that something has.
    pub(crate) fn announce_progress(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            *self.progress.lock() += 1;
            self.progressed.notify_all();
        }
    }

    /// Makes threads that wait look again at what they wait for: something has changed that no datagram tells
    /// of.
    pub(crate) fn announce_change(&self) {
        self.announce_progress();
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.kick();
        }
    }

    /// A thread of the application has received. A listener that writes may receive on the background thread, which must not
    /// leave its place to itself.
    #[inline]
    fn note_application(&self, now: Time) {
        if !IS_BACKGROUND.get() {
            self.application_at.store(now.0, Ordering::Relaxed);
        }
    }

    /// Bounds the sleep of the next receive call.
    fn set_patience(&self, role: &mut Role, patience: Duration) {
        role.patience = patience;
        let _ = self.socket.set_recv_timeout(Some(patience));
    }

    /// One batch, from whichever socket has something.
    #[inline]
    fn receive(&self, role: &mut Role, wait: Wait) -> Arrived {
        role.blocks.take_back(&mut role.received);
        let version = self.groups.version();
        if role.groups_version != version {
            role.groups_version = version;
            role.groups = self.groups.sockets();
        }
        if role.groups.is_empty() {
            let count = self.socket.recv_batch(&mut role.received, role.limit, wait).unwrap_or(0);
            return Arrived { count, is_multicast: false };
        }
        self.receive_from_any(role, wait)
    }

    /// The groups come first: HEARTBEATs for one reader, which come by unicast, must not overtake the samples that
    /// they speak of. Now and then unicast has its turn all the same.
    fn receive_from_any(&self, role: &mut Role, wait: Wait) -> Arrived {
        let mut has_slept = wait != Wait::Block;
        loop {
            let is_unicasts_turn = role.group_turns >= GROUP_TURNS;
            for is_unicast in [is_unicasts_turn, !is_unicasts_turn] {
                let unicast = is_unicast.then_some(&self.socket);
                let groups = role.groups.iter().map(|socket| &**socket).filter(|_| !is_unicast);
                for socket in unicast.into_iter().chain(groups) {
                    let count =
                        socket.recv_batch(&mut role.received, role.limit, Wait::DontWait).unwrap_or(0);
                    if count > 0 {
                        role.group_turns = if is_unicast { 0 } else { role.group_turns + 1 };
                        return Arrived { count, is_multicast: !is_unicast };
                    }
                }
            }
            if has_slept {
                return Arrived { count: 0, is_multicast: false };
            }
            let mut sockets = [&self.socket; GROUPS_MAX + 1];
            for (slot, socket) in sockets[1..].iter_mut().zip(role.groups.iter()) {
                *slot = socket;
            }
            let _ = weir_udp::poll(&sockets[..=role.groups.len()], None, Some(role.patience));
            has_slept = true;
        }
    }

    /// What the receiver counted.
    pub(crate) fn counters(&self) -> ReceiveCounters {
        self.counters.load()
    }
}

impl Driver {
    /// Receives until `is_done` or `deadline`; `true` when it is done. What is received meanwhile goes to all
    /// endpoints of the participant.
    pub(crate) fn receive_until(
        &self,
        deadline: Option<Time>,
        strategy: WaitStrategy,
        is_done: impl FnMut() -> bool,
    ) -> bool {
        self.receive_for(None, deadline, strategy, is_done)
    }

    /// Receives until this reader has something that was not read, or `deadline`; `true` when it has.
    pub(crate) fn receive_until_unread(
        &self,
        reader: &ReaderEndpoint,
        deadline: Time,
        strategy: WaitStrategy,
    ) -> bool {
        self.receive_for(Some(reader), Some(deadline), strategy, || reader.core.lock().has_unread())
    }

    #[inline]
    fn receive_for(
        &self,
        reader: Option<&ReaderEndpoint>,
        deadline: Option<Time>,
        strategy: WaitStrategy,
        mut is_done: impl FnMut() -> bool,
    ) -> bool {
        self.flush_queued();
        if is_done() {
            return true;
        }
        self.channel.waiting.fetch_add(1, Ordering::SeqCst);
        let deadline = deadline.unwrap_or(Time::MAX);
        let is_done = self.receive_while_waiting(reader, deadline, strategy, &mut is_done);
        self.channel.waiting.fetch_sub(1, Ordering::SeqCst);
        // Somebody else who waits may have slept while we had the role.
        self.channel.announce_progress();
        is_done
    }

    fn receive_while_waiting(
        &self,
        reader: Option<&ReaderEndpoint>,
        deadline: Time,
        strategy: WaitStrategy,
        is_done: &mut impl FnMut() -> bool,
    ) -> bool {
        let mut now = clock::now();
        let spin_until = strategy.spin_time().map_or(Time::MAX, |time| now + time);
        for rounds in 1_u32.. {
            let received = match self.channel.role.try_lock() {
                Some(role) if now < spin_until => self.receive_spinning(role, now, reader),
                // Only who has the place is woken for certain by what happens from here on.
                Some(_) if is_done() => return true,
                Some(role) => self.receive_blocking(role, deadline.since(now), reader),
                None => {
                    self.sleep_until_progress(deadline, is_done);
                    Some(TakenIn { at: clock::now(), has_awaited: false })
                }
            };
            now = received.map_or_else(clock::now, |taken_in| taken_in.at);
            self.channel.note_application(now);
            if received.is_some_and(|taken_in| taken_in.has_awaited) {
                return true;
            }
            // Without news of the socket there may be news of discovery, which are not that urgent.
            let is_check_due =
                received.is_some() || now >= spin_until || rounds.is_multiple_of(ROUNDS_BETWEEN_CHECKS);
            if is_check_due && is_done() {
                return true;
            }
            if now >= deadline {
                return is_done();
            }
        }
        is_done()
    }

    /// Looks for messages a few times in quick succession, and takes in what there is. `Some`: there was something,
    /// which is taken to have arrived at `now`, the beginning of these looks.
    #[inline]
    fn receive_spinning(
        &self,
        mut role: MutexGuard<'_, Role>,
        now: Time,
        reader: Option<&ReaderEndpoint>,
    ) -> Option<TakenIn> {
        for _ in 0..LOOKS_BETWEEN_CLOCK_READS {
            let arrived = self.channel.receive(&mut role, Wait::DontWait);
            if arrived.count > 0 {
                return Some(self.take_in(role, now, arrived, reader));
            }
            role.is_caught_up = true;
            std::hint::spin_loop();
        }
        let is_yield_due = self.has_one_cpu && now.since(role.yielded_at) >= YIELD_EVERY;
        if is_yield_due {
            role.yielded_at = now;
        }
        drop(role);
        self.channel.announce_progress();
        if is_yield_due {
            std::thread::yield_now();
        }
        None
    }

    /// Takes in what has arrived already, if nobody else is at it: for writers, whose acknowledgements come
    /// this way, so that the background thread need not be woken for them.
    pub(crate) fn receive_what_is_there(&self) {
        if let Some(role) = self.channel.role.try_lock() {
            self.receive_batch(role, Wait::DontWait, None);
            self.channel.note_application(clock::now());
        }
    }

    fn receive_blocking(
        &self,
        mut role: MutexGuard<'_, Role>,
        left: Duration,
        reader: Option<&ReaderEndpoint>,
    ) -> Option<TakenIn> {
        // Rounded up to whole milliseconds, so that a loop with a steady timeout sets it once.
        let left = Duration::from_millis(left.min(RECEIVE_TIMEOUT).as_millis() as u64 + 1);
        self.channel.set_patience(&mut role, left);
        self.receive_batch(role, Wait::Block, reader)
    }

    /// Sleeps while another thread receives. The background thread is asked for its place.
    fn sleep_until_progress(&self, deadline: Time, is_done: &mut impl FnMut() -> bool) {
        let channel = &self.channel;
        channel.sleepers.fetch_add(1, Ordering::SeqCst);
        if channel.is_background_receiving.load(Ordering::SeqCst) {
            channel.kick();
        }
        let before = *channel.progress.lock();
        // Whatever comes in from here on is announced to us.
        if !is_done() && channel.role.is_locked() {
            let until = deadline.min(clock::now() + RECEIVE_TIMEOUT);
            let mut progress = channel.progress.lock();
            while *progress == before {
                let left = until.since(clock::now());
                if left.is_zero() || channel.progressed.wait_for(&mut progress, left).timed_out() {
                    break;
                }
            }
        }
        channel.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Receives one batch and takes it in; `None` when nothing came.
    fn receive_batch(
        &self,
        mut role: MutexGuard<'_, Role>,
        wait: Wait,
        reader: Option<&ReaderEndpoint>,
    ) -> Option<TakenIn> {
        let arrived = self.channel.receive(&mut role, wait);
        if arrived.count == 0 {
            drop(role);
            self.channel.announce_progress();
            return None;
        }
        let now = clock::now();
        Some(self.take_in(role, now, arrived, reader))
    }

    /// Hands the batch that was just received to the endpoints, sends their answers, gives the role away, and calls
    /// listeners.
    #[inline]
    fn take_in(
        &self,
        mut role: MutexGuard<'_, Role>,
        now: Time,
        arrived: Arrived,
        reader: Option<&ReaderEndpoint>,
    ) -> TakenIn {
        self.hand_out(&mut role, now, arrived);
        TakenIn { at: now, has_awaited: self.finish_batch(role, reader) }
    }

    /// Hands the batch that was just received to the endpoints, and sends their answers.
    #[inline(always)]
    fn hand_out(&self, role_mut: &mut Role, now: Time, arrived: Arrived) {
        let came = Came::now(self.keeps_times, &role_mut.received);
        role_mut.adapt_limit(arrived.count, now);
        if role_mut.table_version != self.routes.version() {
            role_mut.table_version = self.routes.version();
            role_mut.table = self.routes.table();
            role_mut.prediction = None;
        }
        let Role {
            received, blocks, table, table_version, batch, prediction, counters, outbox, sender, ..
        } = role_mut;
        counters.batches += 1;
        let before = batch.counters.datagrams;
        let endpoints = BatchEndpoints { table, came };
        let incoming =
            Incoming { endpoints: &endpoints, prediction: prediction.as_deref(), prefix: self.prefix, now };
        let next = match received.lone_datagram_len() {
            Some(len) => {
                let block = blocks.take_lone(received, len);
                let datagram = block.map_or_else(|| received.first_bytes(len), |block| &block.bytes()[..len]);
                receiver::receive_single(incoming, datagram, block, batch, outbox)
            }
            None => {
                let datagrams = received.messages().flat_map(|message| message.datagrams());
                receiver::receive_many(incoming, datagrams, None, batch, outbox)
            }
        };
        if batch.may_change_prediction()
            && let Some(next) = batch.next_prediction(prediction.as_deref(), *table_version)
        {
            *prediction = Some(Box::new(next));
        }
        if arrived.is_multicast {
            counters.multicast += batch.counters.datagrams - before;
        }
        if !outbox.is_empty() {
            sender.send(&self.channel.socket, outbox);
        }
        if let Some(at) = next {
            self.timers.arm(at);
        }
        self.channel.counters.store(*counters, batch.counters);
    }

    /// [`Driver::receive_what_is_there`] for a thread that holds locks which listeners may need: it calls them itself later,
    /// by [`Driver::tell_listeners`], those of the readers that are added to `later`.
    pub(crate) fn receive_quietly(&self, later: &mut Vec<ReaderNews>) {
        let Some(mut role) = self.channel.role.try_lock() else { return };
        let arrived = self.channel.receive(&mut role, Wait::DontWait);
        let now = clock::now();
        if arrived.count > 0 {
            self.hand_out(&mut role, now, arrived);
            let Role { batch, prediction, .. } = &mut *role;
            if let (Some(news), Some(prediction)) = (batch.take_predicted(), prediction.as_deref())
                && prediction.reader().has_listener()
            {
                later.push(ReaderNews { reader: Arc::clone(prediction.reader()), news });
            }
            let mut readers = batch.take_readers();
            later.extend(readers.extract_if(.., |it| it.reader.has_listener()));
            batch.give_back(readers);
        }
        drop(role);
        self.channel.note_application(now);
        self.channel.announce_progress();
    }

    /// Gives the role away, then calls the listeners of the readers that got something. Returns whether samples lie in
    /// `reader`, as far as is known: listeners may take those of others, too.
    #[inline]
    fn finish_batch(&self, mut role: MutexGuard<'_, Role>, reader: Option<&ReaderEndpoint>) -> bool {
        let Some(news) = role.batch.take_predicted() else { return self.finish_readers(role, reader) };
        let has_listener = role.prediction.as_ref().is_some_and(|it| it.reader().has_listener());
        if !has_listener {
            let is_awaited = |prediction: &Prediction| {
                reader.is_some_and(|reader| core::ptr::eq(&**prediction.reader(), reader))
            };
            let has_awaited = news.has_unread && role.prediction.as_deref().is_some_and(is_awaited);
            drop(role);
            self.channel.announce_progress();
            return has_awaited;
        }
        let prediction = role.prediction.take();
        drop(role);
        self.channel.announce_progress();
        if let Some(prediction) = prediction {
            tell(prediction.reader(), news);
            self.flush_queued();
            self.give_back(prediction);
        }
        false
    }

    /// The same when there was something for readers other than the predicted one.
    #[inline(never)]
    fn finish_readers(&self, mut role: MutexGuard<'_, Role>, reader: Option<&ReaderEndpoint>) -> bool {
        let batch = &mut role.batch;
        if batch.readers().iter().all(|it| !it.reader.has_listener()) {
            let is_awaited =
                |it: &ReaderNews, reader| it.news.has_unread && core::ptr::eq(&*it.reader, reader);
            let has_awaited =
                reader.is_some_and(|reader| batch.readers().iter().any(|it| is_awaited(it, reader)));
            batch.clear_readers();
            drop(role);
            self.channel.announce_progress();
            return has_awaited;
        }
        let readers = batch.take_readers();
        drop(role);
        self.channel.announce_progress();
        self.tell_listeners(&readers);
        self.give_back_list(readers);
        false
    }

    /// Calls the listeners of these readers for what is new, with no lock held.
    pub(crate) fn tell_listeners(&self, readers: &[ReaderNews]) {
        for it in readers.iter().filter(|it| it.reader.has_listener()) {
            tell(&it.reader, it.news);
        }
        self.flush_queued();
    }

    /// Leaves the prediction to the next batch, unless that has made another one.
    fn give_back(&self, prediction: Box<Prediction>) {
        if let Some(mut role) = self.channel.role.try_lock()
            && role.prediction.is_none()
            && role.table_version == prediction.version()
        {
            role.prediction = Some(prediction);
        }
    }

    /// Lends the memory of the list to the next batch.
    fn give_back_list(&self, readers: Vec<ReaderNews>) {
        if let Some(mut role) = self.channel.role.try_lock() {
            role.batch.give_back(readers);
        }
    }
}

/// Calls a reader's listener for what a batch brought.
#[inline]
fn tell(reader: &ReaderEndpoint, news: News) {
    if news.has_status_news {
        notify(reader);
    } else if news.has_unread {
        reader.notify_data();
    }
}

/// Calls a reader's listener for what is new.
pub(super) fn notify(reader: &ReaderEndpoint) {
    let (has_unread, counters, has_liveliness_news) = {
        let core = reader.core.lock();
        (core.has_unread(), core.counters(), core.has_liveliness_news())
    };
    if has_liveliness_news {
        reader.notify(ReaderEvent::LivelinessChanged);
    }
    if reader.lost.lock().total_count != counters.samples_lost {
        reader.notify(ReaderEvent::SampleLost);
    }
    let rejected = counters.samples_rejected + counters.samples_refused;
    if reader.rejected.lock().rejected != rejected {
        reader.notify(ReaderEvent::SampleRejected);
    }
    if has_unread {
        reader.notify_data();
    }
}

impl Role {
    /// One message per call while messages come one by one, which is the quickest for each; more when they
    /// come faster than they are taken in.
    #[inline]
    fn adapt_limit(&mut self, count: usize, now: Time) {
        let is_caught_up = core::mem::take(&mut self.is_caught_up);
        let is_busy = count == self.limit && !is_caught_up && now.since(self.received_at) < BUSY_GAP;
        self.limit =
            if is_busy { (self.limit * 2).min(RECEIVE_BUFFERS) } else { self.limit.div_ceil(2).max(1) };
        self.received_at = now;
    }
}

thread_local! {
    /// Whether this is the background thread of some participant.
    static IS_BACKGROUND: Cell<bool> = const { Cell::new(false) };
}

/// The background thread.
pub(crate) fn run(driver: &Driver) {
    IS_BACKGROUND.set(true);
    let channel = &driver.channel;
    while !driver.is_stopping() {
        let now = clock::now();
        if is_application_at_it(channel, now) {
            park(channel, now);
            continue;
        }
        channel.is_background_receiving.store(true, Ordering::SeqCst);
        // Whoever began to wait before this store sees it, or is seen here.
        if channel.waiting.load(Ordering::SeqCst) == 0 {
            let mut role = channel.role.lock();
            if driver.wait.spin_time().is_none_or(|time| now.since(role.received_at) < time) {
                driver.receive_spinning(role, now, None);
            } else {
                channel.set_patience(&mut role, RECEIVE_TIMEOUT);
                driver.receive_batch(role, Wait::Block, None);
            }
        }
        channel.is_background_receiving.store(false, Ordering::SeqCst);
    }
}

fn is_application_at_it(channel: &Channel, now: Time) -> bool {
    let last = Time(channel.application_at.load(Ordering::Relaxed));
    channel.waiting.load(Ordering::SeqCst) > 0 || (last != Time::ZERO && now.since(last) < TAKE_OVER_AFTER)
}

fn park(channel: &Channel, now: Time) {
    let last = Time(channel.application_at.load(Ordering::Relaxed));
    let is_idle = now.since(last) > IDLE_LOOK;
    let mut parked = channel.parked.lock();
    channel.unpark.wait_for(&mut parked, if is_idle { IDLE_LOOK } else { TAKE_OVER_AFTER });
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use weir_udp::SocketOptions;

    use super::*;

    #[test]
    fn a_listener_that_receives_on_the_background_thread_does_not_pass_for_the_application() {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let socket = UdpSocket::bind(&SocketOptions::new(address)).unwrap();
        let channel = Channel::new(socket, Groups::new(vec![Ipv4Addr::LOCALHOST], 1 << 20));
        let now = Time(1_000_000_000);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                IS_BACKGROUND.set(true);
                channel.note_application(now);
            });
        });
        assert!(!is_application_at_it(&channel, now));
        channel.note_application(now);
        assert!(is_application_at_it(&channel, now));
    }
}
