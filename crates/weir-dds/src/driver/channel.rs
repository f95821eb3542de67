//! The socket for user data, and which thread receives from it.
//!
//! One thread at a time receives: the holder of the *role*. The background thread holds it while no
//! other thread needs it. A thread that blocks in any wait call (for data, for room in a window,
//! for acknowledgements) takes the role and receives itself. This has three advantages:
//!
//! - No other thread has to be woken on the path of a sample.
//! - A listener that writes and waits cannot deadlock with its own thread.
//! - On one processor, a waiting process does not starve its own receiver.
//!
//! The background thread takes over again when no application thread has received for a
//! millisecond, or some more after a pause.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::{Condvar, Mutex, MutexGuard};
use weir_rtps::outbox::Outbox;
use weir_rtps::receiver::batch::Batch;
use weir_rtps::receiver::{self, Arrival};
use weir_rtps::time::Time;
use weir_udp::{Outgoing, RecvBatch, Stamp, UdpSocket, Wait, Waker};

use super::endpoints::{ReaderEndpoint, WriterEndpoint};
use super::groups::{GROUPS_MAX, Groups, Sockets};
use super::parking::Parking;
use super::receive_counters::{DriverCounters, PublishedCounters, ReceiveCounters};
use super::received_blocks::ReceivedBlocks;
use super::routes::Table;
use super::sender::Sender;
use crate::clock;

/// Number of 64 KiB buffers for one receive call. Only the parts that were filled use memory.
const RECEIVE_BUFFERS: usize = 32;
/// The batch limit doubles if a batch is full, less than this after the previous one, and no call
/// between them found nothing.
const BUSY_GAP: Duration = Duration::from_micros(3);
/// A receive call that sleeps for less than this costs more than polling for as long: the sender pays for the wake-up.
const SHORT_SLEEP: Duration = Duration::from_micros(10);
/// From so many short sleeps on, a thread polls before it sleeps. One may be a datagram that was there already, the
/// second of two that arrived together.
const SHORT_SLEEPS_MIN: u8 = 2;
/// The same where the application polls: each sleep and wake-up takes longer.
const SHORT_SLEEPS_MIN_POLLED: u8 = 1;
/// More are not counted, so that a thread stops polling soon after a stream has ended.
const SHORT_SLEEPS_MAX: u8 = 4;
/// Receive calls before a sleep: about 5 us.
const POLLS_BEFORE_SLEEP: u32 = 16;
/// How long the background thread leaves the role to application threads after they last received.
const TAKE_OVER_AFTER: Duration = Duration::from_millis(1);
/// Receive calls on multicast sockets before the unicast socket is tried first.
const GROUP_TURNS: u32 = 8;
/// How long the background thread sleeps at a time while a waiting application thread receives
/// nothing.
const IDLE_CHECK: Duration = Duration::from_millis(5);
/// When a waiting application thread has received nothing for so long, the background thread no longer looks whether
/// it still waits: that thread wakes it, which costs it some microseconds for each sample of a slow stream.
const LOOK_UNTIL: Duration = Duration::from_millis(20);
/// How often a closing thread wakes the thread that receives.
const CLOSE_TICK: Duration = Duration::from_millis(5);
/// How soon a thread that waits for the role kicks again, if the socket had no room for a kick.
const KICK_AGAIN: Duration = Duration::from_millis(5);
/// Longest sleep in a receive call. Bounds the cost of a lost kick.
pub(super) const RECEIVE_TIMEOUT: Duration = Duration::from_millis(500);
/// The same for the background thread, which would be woken for nothing otherwise. Who waits for it repeats the kick,
/// or ends all receive calls.
pub(super) const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(5);

/// The socket for user data, and the state that decides which thread receives from it.
pub(crate) struct Channel {
    pub(crate) socket: Arc<UdpSocket>,
    /// The sockets of the multicast groups.
    pub(crate) groups: Groups,
    /// Locked by the thread that receives.
    role: Mutex<Role>,
    /// Incremented, under the lock, after every batch and whenever the role becomes free, if
    /// threads sleep on it.
    progress: Mutex<u64>,
    progressed: Condvar,
    /// Threads that sleep on `progressed`.
    sleepers: AtomicU32,
    /// Application threads that wait, with or without the role.
    waiting: AtomicU32,
    /// When an application thread last received.
    application_at: AtomicU64,
    /// The background thread is in a receive call, or about to make one.
    is_background_receiving: AtomicBool,
    /// The background thread sleeps here while application threads receive.
    parking: Parking,
    pub(super) counters: PublishedCounters,
    /// The address at which this socket receives what it sends to itself.
    own_address: std::net::SocketAddrV4,
    /// The index of the message that is handled, of a batch of several.
    message: AtomicUsize,
    /// The kernel stamps what arrives at the socket.
    is_stamping: AtomicBool,
    /// Wakes the thread that polls, if the application does.
    waker: Option<Arc<Waker>>,
}

/// The predicted source and reader of the next datagram.
pub(super) type Prediction = receiver::prediction::Prediction<Arc<ReaderEndpoint>>;
/// What a batch contained for one reader.
pub(crate) type ReaderNews = receiver::batch::ReaderNews<Arc<ReaderEndpoint>>;

/// The state of the receiving thread. A thread receives while it holds the lock on this.
pub(super) struct Role {
    pub(super) received: RecvBatch,
    pub(super) blocks: ReceivedBlocks,
    /// Most messages in the next receive call.
    pub(super) limit: usize,
    /// The groups' sockets, as of `groups_version`.
    pub(super) groups: Sockets,
    pub(super) groups_version: u64,
    /// Receive calls since the unicast socket was last tried first.
    pub(super) group_turns: u32,
    /// Longest sleep of a blocking receive call.
    pub(super) patience: Duration,
    pub(super) received_at: Time,
    /// A receive call since then found nothing: this thread is faster than the senders.
    pub(super) is_caught_up: bool,
    /// Short sleeps in blocking receive calls, minus longer ones since.
    short_sleeps: u8,
    /// From so many on, the thread polls before it sleeps.
    short_sleeps_min: u8,
    /// When this thread last yielded the only processor.
    pub(super) yielded_at: Time,
    pub(super) table: Arc<Table>,
    pub(super) table_version: u64,
    pub(super) batch: Batch<Arc<ReaderEndpoint>, Arc<WriterEndpoint>>,
    /// Made from `table`; dropped when the table changes.
    pub(super) prediction: Option<Box<Prediction>>,
    pub(super) counters: DriverCounters,
    pub(super) outbox: Outbox,
    pub(super) sender: Sender,
}

/// What a receive call returned.
#[derive(Clone, Copy)]
pub(super) struct Arrived {
    /// Messages in the batch.
    pub(super) count: usize,
    /// Whether they came by multicast.
    pub(super) is_multicast: bool,
}

/// The role, held. Whatever it was taken for, threads that sleep until it is free are woken when it is dropped.
pub(super) struct RoleGuard<'a> {
    /// Dropped first: a thread that is woken finds the role free.
    role: MutexGuard<'a, Role>,
    _announcing: Announcing<'a>,
}

/// Announces progress when dropped.
struct Announcing<'a>(&'a Channel);

impl Drop for Announcing<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.announce_progress();
    }
}

impl Deref for RoleGuard<'_> {
    type Target = Role;

    #[inline]
    fn deref(&self) -> &Role {
        &self.role
    }
}

impl DerefMut for RoleGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Role {
        &mut self.role
    }
}

/// Counts a thread that waits and receives until dropped, even by a panic of what it waits for.
pub(super) struct Waiting<'a>(&'a Channel);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.0.waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.parking.leave();
        }
        // Another waiting thread may have slept while this one held the role.
        self.0.announce_progress();
    }
}

/// Counts a thread that sleeps until another one has received something.
struct Sleeping<'a>(&'a AtomicU32);

impl Drop for Sleeping<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Channel {
    pub(crate) fn new(socket: Arc<UdpSocket>, groups: Groups) -> Self {
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
            short_sleeps: 0,
            short_sleeps_min: SHORT_SLEEPS_MIN,
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
            parking: Parking::default(),
            counters: PublishedCounters::default(),
            own_address,
            message: AtomicUsize::new(0),
            is_stamping: AtomicBool::new(false),
            waker: None,
        }
    }

    /// Where the application polls: what wakes the thread that does.
    pub(super) fn polled(self, waker: Arc<Waker>) -> Self {
        self.role.lock().short_sleeps_min = SHORT_SLEEPS_MIN_POLLED;
        Self { waker: Some(waker), ..self }
    }

    /// Wakes a thread that sleeps in a receive call, by sending an empty datagram to this socket.
    pub(crate) fn kick(&self) {
        if !self.kick_now() {
            let _ = self.socket.send_one(&Outgoing::datagram(Some(self.own_address), &[]));
        }
    }

    /// As [`Channel::kick`], but does not wait for room in the socket, which user data may have filled: the caller may
    /// hold the lock of discovery. Returns whether the datagram was sent. Otherwise the call ends by its timeout.
    fn kick_now(&self) -> bool {
        if let Some(waker) = &self.waker {
            waker.wake();
            return true;
        }
        self.parking.kick();
        self.socket.send_now(&[], self.own_address).is_ok()
    }

    /// Ends the receive calls of all threads, for ever. A kick may not arrive, such as where the loopback interface is
    /// down, or the participant's address was removed.
    pub(super) fn end_receiving(&self) {
        self.socket.end_receiving();
        self.kick_now();
    }

    /// Takes the role, unless another thread has it.
    #[inline]
    pub(super) fn try_role(&self) -> Option<RoleGuard<'_>> {
        self.role.try_lock().map(|role| self.guard(role))
    }

    /// Takes the role, unless another thread keeps it for so long.
    pub(super) fn try_role_for(&self, time: Duration) -> Option<RoleGuard<'_>> {
        self.role.try_lock_for(time).map(|role| self.guard(role))
    }

    #[inline]
    fn guard<'a>(&'a self, role: MutexGuard<'a, Role>) -> RoleGuard<'a> {
        RoleGuard { role, _announcing: Announcing(self) }
    }

    /// Waits for the role.
    #[cfg(test)]
    pub(super) fn wait_for_role(&self) -> RoleGuard<'_> {
        self.guard(self.role.lock())
    }

    /// Returns whether a thread has the role.
    #[cfg(test)]
    pub(super) fn is_role_taken(&self) -> bool {
        self.role.is_locked()
    }

    /// Takes the role for ever, so that no thread receives again or waits for what could arrive.
    pub(super) fn close(&self) {
        loop {
            self.end_receiving();
            if let Some(role) = self.role.try_lock_for(CLOSE_TICK) {
                MutexGuard::leak(role);
                return self.announce_progress();
            }
        }
    }

    /// Wakes the threads that sleep in [`Channel::sleep_until_progress`].
    pub(crate) fn announce_progress(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.wake_sleepers();
        }
    }

    /// Not inlined: every release of the role ends here.
    #[cold]
    #[inline(never)]
    fn wake_sleepers(&self) {
        *self.progress.lock() += 1;
        self.progressed.notify_all();
    }

    /// Makes waiting threads check their conditions again, after a change that no datagram
    /// announces.
    pub(crate) fn announce_change(&self) {
        self.announce_progress();
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.kick_now();
        }
    }

    /// As [`Channel::announce_change`], but waits for room in the socket: for callers that hold no lock, after which
    /// nothing else may wake a thread that sleeps in a receive call.
    pub(super) fn announce_change_for_sure(&self) {
        self.announce_progress();
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.kick();
        }
    }

    /// Records that an application thread received.
    ///
    /// A listener that writes may receive on the background thread. That does not count: the
    /// background thread would leave the role to itself.
    #[inline]
    pub(super) fn note_application(&self, now: Time) {
        if !IS_BACKGROUND.get() {
            self.application_at.store(now.0, Ordering::Relaxed);
        }
    }

    /// Bounds the sleep of the next receive call.
    pub(super) fn set_patience(&self, role: &mut Role, patience: Duration) {
        role.patience = patience;
        let _ = self.socket.set_recv_timeout(Some(patience));
    }

    /// Receives one batch, from whichever socket has data.
    #[inline]
    pub(super) fn receive(&self, role: &mut Role, wait: Wait) -> Arrived {
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

    /// Tries the group sockets first: a HEARTBEAT to one reader arrives by unicast and must not
    /// overtake the samples it announces. After [`GROUP_TURNS`] calls, unicast is tried first once.
    fn receive_from_any(&self, role: &mut Role, wait: Wait) -> Arrived {
        let mut has_slept = wait != Wait::Block;
        loop {
            let is_unicasts_turn = role.group_turns >= GROUP_TURNS;
            for is_unicast in [is_unicasts_turn, !is_unicasts_turn] {
                let unicast = is_unicast.then_some(&*self.socket);
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
            self.wait_for_any(role, role.patience);
            has_slept = true;
        }
    }

    /// Receives one batch, and sleeps until it arrives or the role's patience ends. Polls before that if the last
    /// sleeps were short. Returns the current time, too, if it was read.
    ///
    /// With the sender on the same processor, polling delays it and costs 2 to 3 % of the throughput. The processors
    /// of this process do not show that: each end may be pinned to one of its own.
    pub(super) fn receive_or_sleep(&self, role: &mut Role) -> (Arrived, Option<Time>) {
        self.receive_or(role, |role| self.receive(role, Wait::Block))
    }

    /// As [`Channel::receive_or_sleep`], until `left` has passed, however short that is.
    pub(super) fn receive_or_sleep_within(&self, role: &mut Role, left: Duration) -> (Arrived, Option<Time>) {
        self.receive_or(role, |role| self.receive_within(role, left))
    }

    #[inline(always)]
    fn receive_or(
        &self,
        role: &mut Role,
        sleep: impl FnOnce(&mut Role) -> Arrived,
    ) -> (Arrived, Option<Time>) {
        if let Some(arrived) = self.receive_before_sleep(role) {
            return (arrived, None);
        }
        let before = clock::now();
        let arrived = sleep(role);
        let now = clock::now();
        role.note_sleep(now.since(before), arrived.count > 0);
        (arrived, Some(now))
    }

    /// Polls a few times if the last sleeps were short. Returns what has arrived.
    #[inline]
    pub(super) fn receive_before_sleep(&self, role: &mut Role) -> Option<Arrived> {
        if !role.polls_before_sleep() {
            return None;
        }
        for _ in 0..POLLS_BEFORE_SLEEP {
            let arrived = self.receive(role, Wait::DontWait);
            if arrived.count > 0 {
                return Some(arrived);
            }
            role.is_caught_up = true;
            std::hint::spin_loop();
        }
        None
    }

    /// Receives one batch. Waits for it no longer than `left`, which may be shorter than a tick of the kernel: the
    /// timeouts of sockets are not.
    pub(super) fn receive_within(&self, role: &mut Role, left: Duration) -> Arrived {
        let arrived = self.receive(role, Wait::DontWait);
        if arrived.count > 0 {
            return arrived;
        }
        self.wait_for_any(role, left);
        self.receive(role, Wait::DontWait)
    }

    /// Waits until a socket has data.
    fn wait_for_any(&self, role: &Role, left: Duration) {
        let mut sockets = [&*self.socket; GROUPS_MAX + 1];
        for (slot, socket) in sockets[1..].iter_mut().zip(role.groups.iter()) {
            *slot = socket;
        }
        let _ = weir_udp::poll(&sockets[..=role.groups.len()], None, Some(left));
    }

    /// Records which message of the batch is handled.
    #[inline]
    pub(super) fn note_message(&self, index: usize) {
        self.message.store(index, Ordering::Relaxed);
    }

    /// Returns what is known about the arrival of the message that is handled. From the first time on, the kernel
    /// stamps what arrives.
    pub(super) fn arrival(&self, received: &RecvBatch) -> Arrival {
        if !self.is_stamping.swap(true, Ordering::Relaxed) {
            let _ = self.socket.report_arrivals();
        }
        let Stamp { at_ns, drops } = received.stamp(self.message.load(Ordering::Relaxed));
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let waited = if at_ns == 0 { 0 } else { unix.saturating_sub(at_ns) };
        Arrival { at: clock::now().before(waited), drops }
    }

    /// Returns the counters of received datagrams.
    pub(crate) fn counters(&self) -> ReceiveCounters {
        self.counters.load()
    }

    /// Returns how many application threads wait.
    pub(crate) fn waiting_threads(&self) -> u32 {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Counts this thread as a waiting application thread.
    pub(super) fn begin_waiting(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Waiting(self)
    }

    /// Sleeps while another thread holds the role, until `until` at most. The background thread is
    /// kicked, so that it gives up the role.
    pub(super) fn sleep_until_progress(&self, until: Time, is_done: &mut impl FnMut() -> bool) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let _sleeping = Sleeping(&self.sleepers);
        let is_kick_lost = self.is_background_receiving.load(Ordering::SeqCst) && !self.kick_now();
        let before = *self.progress.lock();
        // From here on, whatever arrives wakes this thread.
        if !is_done() && self.role.is_locked() {
            let longest = if is_kick_lost { KICK_AGAIN } else { RECEIVE_TIMEOUT };
            let until = until.min(clock::now() + longest);
            let mut progress = self.progress.lock();
            while *progress == before {
                let left = until.since(clock::now());
                if left.is_zero() || self.progressed.wait_for(&mut progress, left).timed_out() {
                    break;
                }
            }
        }
    }

    /// Returns whether application threads receive, so that the background thread need not.
    fn is_application_receiving(&self, now: Time) -> bool {
        let last = Time(self.application_at.load(Ordering::Relaxed));
        self.waiting.load(Ordering::SeqCst) > 0 || (last != Time::ZERO && now.since(last) < TAKE_OVER_AFTER)
    }

    /// Puts the background thread to sleep if application threads receive; returns whether they do.
    pub(super) fn park_background(&self, now: Time) -> bool {
        if !self.is_application_receiving(now) {
            return false;
        }
        let quiet = now.since(Time(self.application_at.load(Ordering::Relaxed)));
        if quiet > LOOK_UNTIL {
            let is_waiting = || self.waiting.load(Ordering::SeqCst) > 0;
            if self.parking.sleep_until_leave(BACKGROUND_TIMEOUT, is_waiting) {
                return true;
            }
        }
        // Most threads wait again soon. One that does so with a short timeout wakes this thread no more often.
        self.parking.sleep(if quiet > IDLE_CHECK { IDLE_CHECK } else { TAKE_OVER_AFTER });
        true
    }

    /// Calls `receive` on the background thread, unless an application thread waits.
    pub(super) fn receive_in_background(&self, receive: impl FnOnce()) {
        self.is_background_receiving.store(true, Ordering::SeqCst);
        // Either a thread that began to wait earlier is seen here, or it sees the store above.
        if self.waiting.load(Ordering::SeqCst) == 0 {
            receive();
        }
        self.is_background_receiving.store(false, Ordering::SeqCst);
    }
}

impl Role {
    /// Records how long the thread slept until something arrived, or nothing. Returns whether that was a short sleep.
    pub(super) fn note_sleep(&mut self, time: Duration, has_arrived: bool) -> bool {
        let is_short = has_arrived && time < SHORT_SLEEP;
        self.short_sleeps = match is_short {
            true => (self.short_sleeps + 1).min(SHORT_SLEEPS_MAX),
            false => self.short_sleeps.saturating_sub(1),
        };
        is_short
    }

    /// Returns whether the last sleeps were so short that the thread polls before the next.
    #[inline]
    pub(super) fn polls_before_sleep(&self) -> bool {
        self.short_sleeps >= self.short_sleeps_min
    }

    /// Adapts the batch limit to the load.
    ///
    /// One message per call has the lowest latency while messages arrive one by one. The limit
    /// grows when they arrive faster than they are processed.
    #[inline]
    pub(super) fn adapt_limit(&mut self, count: usize, now: Time) {
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

/// Marks this thread as a background thread.
pub(super) fn mark_background() {
    IS_BACKGROUND.set(true);
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use weir_udp::SocketOptions;

    use super::*;

    fn channel() -> Channel {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let socket = UdpSocket::bind(&SocketOptions::new(address)).unwrap();
        Channel::new(Arc::new(socket), Groups::new(Vec::new(), 1 << 20))
    }

    #[test]
    fn a_thread_that_polls_sleeps_when_nothing_arrives_and_stops_polling() {
        let channel = channel();
        let mut role = channel.role.lock();
        channel.set_patience(&mut role, Duration::from_millis(1));
        role.short_sleeps = SHORT_SLEEPS_MIN;
        for expected in [SHORT_SLEEPS_MIN - 1, SHORT_SLEEPS_MIN - 2, 0] {
            assert_eq!(channel.receive_or_sleep(&mut role).0.count, 0);
            assert_eq!(role.short_sleeps, expected);
        }
        for short_sleeps in [0, SHORT_SLEEPS_MIN] {
            role.short_sleeps = short_sleeps;
            channel.kick();
            assert_eq!(channel.receive_or_sleep(&mut role).0.count, 1);
        }
    }

    #[test]
    fn what_arrives_is_stamped_from_the_first_question_on() {
        let channel = channel();
        let mut role = channel.role.lock();
        assert!(channel.kick_now());
        assert_eq!(channel.receive(&mut role, Wait::Block).count, 1);
        assert_eq!(role.received.stamp(0), Stamp::default());
        let before = clock::now();
        let arrival = channel.arrival(&role.received);
        assert!(before <= arrival.at && arrival.at <= clock::now() && arrival.drops == 0);
        channel.kick();
        assert_eq!(channel.receive(&mut role, Wait::Block).count, 1);
        let stamp = role.received.stamp(0);
        assert!(stamp.at_ns != 0 && stamp.drops == 0);
        // A batch whose buffer was exchanged.
        assert_eq!(role.received.stamp(1), stamp);
        let first = channel.arrival(&role.received).at;
        assert!(before <= first && first <= clock::now());
        for _ in 0..2 {
            channel.kick();
        }
        role.limit = 2;
        assert_eq!(channel.receive(&mut role, Wait::Block).count, 2);
        channel.note_message(1);
        let [first, second] = [0, 1].map(|index| role.received.stamp(index).at_ns);
        assert!(first != 0 && second != 0);
        assert!(channel.arrival(&role.received).at <= clock::now());
    }

    #[test]
    fn whoever_releases_the_role_wakes_those_that_sleep_until_it_is_free() {
        let channel = channel();
        // As a thread that sleeps.
        channel.sleepers.fetch_add(1, Ordering::SeqCst);
        for count in 1..4 {
            let role = channel.try_role().or_else(|| channel.try_role_for(RECEIVE_TIMEOUT)).unwrap();
            assert!(channel.is_role_taken() && *channel.progress.lock() == count - 1);
            drop(role);
            assert!(!channel.is_role_taken() && *channel.progress.lock() == count);
        }
    }

    #[test]
    fn a_thread_that_no_kick_reaches_gives_up_the_role() {
        let mut channel = channel();
        // Nothing can be sent there.
        channel.own_address = SocketAddrV4::new(Ipv4Addr::new(240, 0, 0, 1), 9);
        assert!(!channel.kick_now());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut role = channel.role.lock();
                channel.set_patience(&mut role, Duration::from_secs(3600));
                channel.receive(&mut role, Wait::Block);
            });
            while !channel.role.is_locked() {
                std::hint::spin_loop();
            }
            channel.close();
        });
    }

    #[test]
    fn a_listener_that_receives_on_the_background_thread_does_not_pass_for_the_application() {
        let channel = channel();
        let now = Time(1_000_000_000);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                IS_BACKGROUND.set(true);
                channel.note_application(now);
            });
        });
        assert!(!channel.is_application_receiving(now));
        channel.note_application(now);
        assert!(channel.is_application_receiving(now));
    }
}
