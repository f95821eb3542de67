//! A participant without threads: the application polls.
//!
//! A poll does what the threads of other participants do: receives user data and metatraffic, does what is due, sends
//! for writers that publish asynchronously or are paced, and calls listeners. Calls that wait poll as well. It is
//! meant for one thread at a time. Others may poll or wait, too; then each looks every few milliseconds whether what it
//! waits for has been received by another.
//!
//! All that it waits for is in one epoll instance, which the application can wait for, too. Between polls, the timers are
//! in the state of a thread that sleeps: setting one sets the timerfd if it is earlier than the known ones.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use weir_rtps::time::Time;
use weir_udp::{CombinedFd, UdpSocket, Wait};

use super::channel::Waiting;
use super::shared::Driver;
use super::timer_thread::{ADJUST_CLOCK_EVERY, Rounds};
use crate::clock;
use crate::error::{DdsError, Result};
use crate::wait_strategy::WaitStrategy;

/// Batches of user data in a row after which metatraffic is looked for.
const BATCHES_IN_A_ROW: u32 = 16;
/// Rounds of a spinning poll after which metatraffic is looked for.
const SPINS_IN_A_ROW: u32 = 16;
/// How often a thread looks at what it waits for while others poll, too.
const SHARED_CHECK: Duration = Duration::from_millis(5);
/// A wait that may take less does not poll before it sleeps, which takes a few microseconds.
const SLEEP_MIN: Duration = Duration::from_micros(20);
/// Numbers of descriptors below this are those of [`Driver::receive_of_discovery`]: prober, unicast, multicast, changes
/// of the network.
const USER_DATA: u8 = 4;
/// The timer and the waker: the next round does what they are for.
const OTHER: u8 = 5;

/// The state of a participant that the application polls.
pub(crate) struct Polling {
    /// Locked only while the engine works, not while it waits or calls listeners.
    rounds: Mutex<Rounds>,
    /// All that the application waits for.
    descriptor: CombinedFd,
    /// When work is due even if no timer is.
    adjust_at: AtomicU64,
    /// Threads that poll or wait.
    pollers: AtomicU32,
    /// The last poll has received user data, so there is probably more.
    had_data: AtomicBool,
    /// Batches of user data received since metatraffic was looked for.
    batches: AtomicU32,
}

impl Polling {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            rounds: Mutex::new(Rounds::new()),
            descriptor: CombinedFd::new().map_err(no_descriptor)?,
            adjust_at: AtomicU64::new(0),
            pollers: AtomicU32::new(0),
            had_data: AtomicBool::new(false),
            batches: AtomicU32::new(0),
        })
    }

    /// Several threads poll or wait.
    fn is_shared(&self) -> bool {
        self.pollers.load(Ordering::SeqCst) > 1
    }
}

/// When user data is received without waiting for it.
enum Try {
    /// By a thread that spins, at this time.
    Spin(Time),
    /// By a thread that sleeps otherwise: several times if the last sleeps were short, else as the next.
    BeforeSleep,
    /// If there is probably some.
    IfLikely,
    /// After a sleep that took this long, or none: there is some.
    Slept(Option<Duration>),
}

/// Counts a thread that polls until dropped.
struct Poller<'a>(&'a Polling, #[expect(dead_code, reason = "dropped with this")] Waiting<'a>);

impl<'a> Poller<'a> {
    fn new(driver: &'a Driver, polling: &'a Polling) -> Self {
        let waiting = driver.channel.begin_waiting();
        if polling.pollers.fetch_add(1, Ordering::SeqCst) > 0 {
            // The other one has to look more often from now on.
            driver.outlet.timers.wake();
        }
        Self(polling, waiting)
    }
}

impl Drop for Poller<'_> {
    fn drop(&mut self) {
        self.0.pollers.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Driver {
    /// Does what there is to do, or waits until there is, until `deadline` at most. Returns whether there was anything.
    pub(crate) fn poll(&self, deadline: Time) -> Result<bool> {
        let polling = self.polling()?;
        // One that does not wait is no pause of the application: what a burst or a batch holds back stays there.
        if deadline > Time::ZERO {
            self.flush_queued();
        }
        self.check()?;
        let _poller = Poller::new(self, polling);
        let did = loop {
            let did = self.poll_until(polling, deadline, self.wait);
            if did || self.has_ended() || clock::now() >= deadline {
                break did;
            }
        };
        self.check()?;
        Ok(did)
    }

    /// Returns the descriptor that is readable while there is something to do.
    pub(crate) fn poll_descriptor(&self) -> Result<BorrowedFd<'_>> {
        Ok(self.polling()?.descriptor.as_fd())
    }

    /// Has the descriptor watch everything but the sockets of multicast groups.
    pub(super) fn watch_sockets(&self) -> Result<()> {
        let Some(polling) = &self.polling else { return Ok(()) };
        let (sockets, count) = self.meta_sockets();
        let meta = sockets.into_iter().take(count).map(AsFd::as_fd).chain(self.network.watched());
        let timers = &self.outlet.timers;
        let user = (self.channel.socket.as_fd(), USER_DATA);
        let others = [(timers.timer.as_fd(), OTHER), (timers.waker.as_fd(), OTHER)];
        let mut all = meta.zip(0..).chain([user]).chain(others);
        all.try_for_each(|(fd, number)| polling.descriptor.add(fd, number)).map_err(no_descriptor)?;
        // The first poll sets the timer.
        timers.wake();
        Ok(())
    }

    /// Has the descriptor watch the sockets of multicast groups, too.
    pub(super) fn watch_groups(&self) -> Result<()> {
        let Some(polling) = &self.polling else { return Ok(()) };
        let sockets = self.channel.groups.sockets();
        sockets
            .iter()
            .try_for_each(|socket| polling.descriptor.add(&**socket, USER_DATA))
            .map_err(no_descriptor)
    }

    /// [`Driver::receive_until`] for a participant that the application polls.
    #[cold]
    pub(super) fn poll_while_waiting(
        &self,
        deadline: Time,
        strategy: WaitStrategy,
        mut is_done: impl FnMut() -> bool,
    ) -> bool {
        let Some(polling) = &self.polling else { return is_done() };
        let _poller = Poller::new(self, polling);
        loop {
            if is_done() {
                return true;
            }
            if self.has_ended() || clock::now() >= deadline {
                return is_done();
            }
            self.poll_until(polling, deadline, strategy);
        }
    }

    fn polling(&self) -> Result<&Polling> {
        let text =
            "the participant has threads of its own: create it with ParticipantSettings::without_threads";
        self.polling.as_ref().ok_or_else(|| DdsError::PreconditionNotMet(text.to_owned()))
    }

    /// Does what there is to do, or waits until there is. Returns whether there was anything: there may be none before
    /// `deadline` if other threads poll, too.
    fn poll_until(&self, polling: &Polling, deadline: Time, strategy: WaitStrategy) -> bool {
        let mut now = clock::now();
        let spin_until = strategy.spin_time().map_or(Time::MAX, |time| now + time);
        for round in 0_u32.. {
            let did = self.is_work_due(polling, now) && self.work(polling, now);
            if self.make_listener_calls() | did || self.has_ended() {
                return did;
            }
            let is_spinning = now < spin_until.min(deadline);
            let is_meta_due = polling.batches.load(Ordering::Relaxed) >= BATCHES_IN_A_ROW;
            let try_first = match is_spinning {
                true => Try::Spin(now),
                false if now + SLEEP_MIN < deadline => Try::BeforeSleep,
                false => Try::IfLikely,
            };
            if !is_meta_due && self.receive_user_data(polling, try_first) {
                return true;
            }
            let looks_elsewhere = !is_spinning || is_meta_due || round % SPINS_IN_A_ROW == 0;
            if looks_elsewhere {
                let most = if polling.is_shared() { deadline.min(now + SHARED_CHECK) } else { deadline };
                if self.wait_and_receive(polling, if is_spinning { Time::ZERO } else { most }) {
                    return true;
                }
            }
            now = clock::now();
            // What woke this thread in the meantime is done by the next poll.
            if now >= deadline || polling.is_shared() {
                return false;
            }
        }
        false
    }

    /// Returns whether a timer is due, or another thread has woken this one.
    #[inline]
    fn is_work_due(&self, polling: &Polling, now: Time) -> bool {
        let timers = &self.outlet.timers;
        let adjust_at = Time(polling.adjust_at.load(Ordering::Relaxed));
        timers.sleeps_until().is_none_or(|next| next.min(adjust_at) <= now) || timers.waker.is_woken()
    }

    /// Does what is due. Returns whether anything was.
    fn work(&self, polling: &Polling, now: Time) -> bool {
        let timers = &self.outlet.timers;
        let mut did = false;
        self.run_thread("poll", || {
            let mut rounds = polling.rounds.lock();
            let is_woken = timers.waker.is_woken() && timers.waker.drain();
            [rounds.next, rounds.others] = timers.end_sleep();
            // A thread that waits looks again at what it waits for: that may be why it was woken.
            did = self.do_what_is_due(now, &mut rounds) | is_woken;
            if did {
                let (has_published, next) = self.publish_polled(now);
                did |= has_published;
                rounds.note(next);
            }
            polling.adjust_at.store((rounds.adjusted_at + ADJUST_CLOCK_EVERY).0, Ordering::Relaxed);
            timers.begin_sleep([rounds.next, rounds.others]);
        });
        did
    }

    /// Sends for writers that publish asynchronously. Returns whether it did, and when that is due next.
    fn publish_polled(&self, now: Time) -> (bool, Time) {
        let (mut did, mut next) = (false, Time::MAX);
        // In any order: each writer sends what it has.
        self.routes.table().writers.values().for_each(|writer| {
            let Some(publishing) = &writer.lane.publishing else { return };
            let is_due = publishing.begin_polled_round(now);
            let paused_until = if is_due { writer.lane.publish(&self.outlet).paused_until } else { None };
            did |= is_due;
            next = next.min(publishing.end_polled_round(is_due, paused_until).unwrap_or(Time::MAX));
        });
        (did, next)
    }

    fn make_listener_calls(&self) -> bool {
        let did = self.listeners.make_queued();
        if did {
            // Samples that listeners wrote may be held back.
            self.flush_queued();
        }
        did
    }

    /// Receives what has arrived for endpoints. Returns whether anything has.
    fn receive_user_data(&self, polling: &Polling, how: Try) -> bool {
        let Some(mut role) = self.channel.role.try_lock() else { return false };
        let is_likely = polling.had_data.load(Ordering::Relaxed);
        let mut has_slept = false;
        let received = match how {
            Try::Spin(now) => self.receive_spinning(role, now, None),
            Try::BeforeSleep if role.polls_before_sleep() => self.receive_before_sleep(role),
            Try::BeforeSleep | Try::IfLikely if !is_likely => return false,
            Try::BeforeSleep | Try::IfLikely => self.receive_batch(role, Wait::DontWait, None),
            Try::Slept(time) => {
                has_slept = time.is_some_and(|time| !role.note_sleep(time, true));
                self.receive_batch(role, Wait::DontWait, None)
            }
        };
        let is_any = received.is_some();
        // What ended a sleep was probably alone.
        polling.had_data.store(is_any && !has_slept, Ordering::Relaxed);
        polling.batches.fetch_add(u32::from(is_any), Ordering::Relaxed);
        is_any
    }

    /// Waits until something can be received, or a timer is due, and receives it. Returns whether there was anything.
    fn wait_and_receive(&self, polling: &Polling, until: Time) -> bool {
        polling.batches.store(0, Ordering::Relaxed);
        let before = if until == Time::ZERO { Time::MAX } else { clock::now() };
        let timeout = until.since(before).min(ADJUST_CLOCK_EVERY);
        let Ok(ready) = polling.descriptor.wait(timeout) else { return false };
        let slept = (!timeout.is_zero()).then(|| clock::now().since(before));
        let is_of_discovery = |number: &usize| *number < usize::from(USER_DATA);
        let mut did = false;
        if ready.readable().any(|number| is_of_discovery(&number)) {
            did = true;
            self.run_thread("poll", || {
                let (sockets, count) = self.meta_sockets();
                let mut rounds = polling.rounds.lock();
                let readable = ready.readable().filter(is_of_discovery);
                readable.for_each(|index| self.receive_of_discovery(index, &sockets[..count], &mut rounds));
            });
            self.make_listener_calls();
        }
        if ready.is_readable(USER_DATA.into()) {
            did |= self.receive_user_data(polling, Try::Slept(slept));
        } else if let (Some(time), Some(mut role)) = (slept, self.channel.role.try_lock()) {
            role.note_sleep(time, false);
        }
        did
    }

    /// The sockets of discovery, and how many there are.
    fn meta_sockets(&self) -> ([&UdpSocket; 3], usize) {
        let (prober, unicast) = (&self.meta.prober, &self.meta.unicast);
        match &self.meta.multicast {
            Some(multicast) => ([prober, unicast, multicast], 3),
            None => ([prober, unicast, unicast], 2),
        }
    }
}

fn no_descriptor(error: std::io::Error) -> DdsError {
    DdsError::network("cannot make a descriptor to poll", error)
}
