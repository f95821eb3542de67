//! A participant without threads: the application polls.
//!
//! A poll does what the threads of other participants do: receives user data and metatraffic, does what is due, sends
//! for writers that publish asynchronously or are paced, and calls listeners. Calls that wait poll as well. It is
//! meant for one thread at a time. Others may poll or wait, too; then each looks every few milliseconds whether what it
//! waits for has been received by another.
//!
//! Between polls, the timers are in the state of a thread that sleeps: a timer that is set wakes the eventfd if it is
//! earlier than the known one, and so makes the descriptor readable.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use weir_rtps::time::Time;
use weir_udp::{CombinedFd, UdpSocket, Wait};

use super::channel::Waiting;
use super::groups::GROUPS_MAX;
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
/// The descriptors of discovery: prober, unicast, multicast, changes of the network.
const META_MAX: usize = 4;

/// The state of a participant that the application polls.
pub(crate) struct Polling {
    /// Locked only while the engine works, not while it waits or calls listeners.
    rounds: Mutex<Rounds>,
    /// Made when the application asks for it.
    descriptor: OnceLock<Descriptor>,
    /// Threads that poll or wait.
    pollers: AtomicU32,
    /// The last poll has received user data, so there is probably more.
    had_data: AtomicBool,
    /// Batches of user data received since metatraffic was looked for.
    batches: AtomicU32,
}

/// What the application waits with.
struct Descriptor {
    combined: CombinedFd,
    /// The time of its timer.
    timer: Mutex<Time>,
}

impl Polling {
    pub(super) fn new() -> Self {
        Self {
            rounds: Mutex::new(Rounds::new()),
            descriptor: OnceLock::new(),
            pollers: AtomicU32::new(0),
            had_data: AtomicBool::new(false),
            batches: AtomicU32::new(0),
        }
    }

    /// Several threads poll or wait.
    fn is_shared(&self) -> bool {
        self.pollers.load(Ordering::SeqCst) > 1
    }

    fn set_timer(&self, next: Time) {
        let Some(descriptor) = self.descriptor.get() else { return };
        let mut timer = descriptor.timer.lock();
        // An expired timer is set again even to the same time, so that the descriptor is not readable for ever.
        if *timer != next || next <= clock::now() {
            *timer = next;
            descriptor.combined.set_timer((next != Time::MAX).then_some(next.0));
        }
    }
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
        let polling = self.polling()?;
        if polling.descriptor.get().is_none() {
            let combined = CombinedFd::new().and_then(|combined| {
                let (meta, count) = self.meta_descriptors();
                meta[..count].iter().try_for_each(|fd| combined.add(fd))?;
                combined.add(&*self.channel.socket)?;
                combined.add(&*self.outlet.timers.waker)?;
                Ok(combined)
            });
            let combined = combined.map_err(no_descriptor)?;
            let _ = polling.descriptor.set(Descriptor { combined, timer: Mutex::new(Time::MAX) });
            self.watch_groups()?;
            // The first poll sets the timer.
            self.outlet.timers.wake();
        }
        let descriptor = polling.descriptor.get();
        let text = || DdsError::OutOfResources("no descriptor to poll".to_owned());
        descriptor.map(|descriptor| descriptor.combined.as_fd()).ok_or_else(text)
    }

    /// Has the descriptor watch the sockets of multicast groups, too.
    pub(super) fn watch_groups(&self) -> Result<()> {
        let Some(descriptor) = self.polling.as_ref().and_then(|polling| polling.descriptor.get()) else {
            return Ok(());
        };
        let sockets = self.channel.groups.sockets();
        sockets.iter().try_for_each(|socket| descriptor.combined.add(&**socket)).map_err(no_descriptor)
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
            let next = self.work(polling, now);
            let did = next.is_none() | self.make_listener_calls();
            let next = next.unwrap_or(Time::ZERO);
            if did || self.has_ended() {
                return did;
            }
            let is_spinning = now < spin_until.min(deadline);
            let is_data_likely = polling.had_data.load(Ordering::Relaxed);
            let is_meta_due = polling.batches.load(Ordering::Relaxed) >= BATCHES_IN_A_ROW;
            if (is_spinning || is_data_likely)
                && !is_meta_due
                && self.receive_user_data(polling, is_spinning, now)
            {
                return true;
            }
            let looks_elsewhere = !is_spinning || is_meta_due || round % SPINS_IN_A_ROW == 0;
            if looks_elsewhere {
                let most = if polling.is_shared() { deadline.min(now + SHARED_CHECK) } else { deadline };
                let until = if is_spinning { Time::ZERO } else { most.min(next) };
                if self.wait_and_receive(polling, until) {
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

    /// Does what is due. Returns when something is due next; `None`: something was due.
    fn work(&self, polling: &Polling, now: Time) -> Option<Time> {
        let timers = &self.outlet.timers;
        let mut result = None;
        self.run_thread("poll", || {
            let mut rounds = polling.rounds.lock();
            let is_woken = timers.waker.is_woken() && timers.waker.drain();
            rounds.next = rounds.next.min(timers.end_sleep()[0]);
            // A thread that waits looks again at what it waits for: that may be why it was woken.
            let mut did = self.do_what_is_due(now, &mut rounds) | is_woken;
            if did {
                let (has_published, next) = self.publish_polled(now);
                did |= has_published;
                rounds.next = rounds.next.min(next);
            }
            rounds.next = timers.begin_sleep([rounds.next, Time::MAX]);
            polling.set_timer(rounds.next);
            result = (!did).then_some(rounds.next);
        });
        result
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
    fn receive_user_data(&self, polling: &Polling, is_spinning: bool, now: Time) -> bool {
        let Some(role) = self.channel.role.try_lock() else { return false };
        let received = match is_spinning {
            true => self.receive_spinning(role, now, None),
            false => self.receive_batch(role, Wait::DontWait, None),
        };
        let is_any = received.is_some();
        polling.had_data.store(is_any, Ordering::Relaxed);
        polling.batches.fetch_add(u32::from(is_any), Ordering::Relaxed);
        is_any
    }

    /// Waits until something can be received, and receives it. Returns whether there was anything.
    fn wait_and_receive(&self, polling: &Polling, until: Time) -> bool {
        let (meta, user) = self.meta_descriptors();
        let groups = self.channel.groups.sockets();
        let mut watched = [self.channel.socket.as_fd(); META_MAX + 1 + GROUPS_MAX];
        watched[..META_MAX].copy_from_slice(&meta);
        watched[user] = self.channel.socket.as_fd();
        for (slot, socket) in watched[user + 1..].iter_mut().zip(groups.iter()) {
            *slot = socket.as_fd();
        }
        let watched = &watched[..user + 1 + groups.len()];
        polling.batches.store(0, Ordering::Relaxed);
        let timeout = until.since(clock::now()).min(ADJUST_CLOCK_EVERY);
        let Ok(ready) = weir_udp::poll(watched, Some(&self.outlet.timers.waker), Some(timeout)) else {
            return false;
        };
        let mut did = false;
        if ready.readable().any(|index| index < user) {
            did = true;
            self.run_thread("poll", || {
                let (sockets, count) = self.meta_sockets();
                let mut rounds = polling.rounds.lock();
                let readable = ready.readable().filter(|index| *index < user);
                readable.for_each(|index| self.receive_of_discovery(index, &sockets[..count], &mut rounds));
            });
            self.make_listener_calls();
        }
        if ready.readable().any(|index| index >= user) {
            did |= self.receive_user_data(polling, false, Time::ZERO);
        }
        did
    }

    /// The descriptors of discovery, in the order of [`Driver::receive_of_discovery`], and how many there are.
    fn meta_descriptors(&self) -> ([BorrowedFd<'_>; META_MAX], usize) {
        let (sockets, count) = self.meta_sockets();
        let mut all = [self.meta.prober.as_fd(); META_MAX];
        for (slot, socket) in all.iter_mut().zip(sockets).take(count) {
            *slot = socket.as_fd();
        }
        match self.network.watched() {
            Some(watched) => {
                all[count] = watched;
                (all, count + 1)
            }
            None => (all, count),
        }
    }

    /// The sockets of discovery, and how many there are.
    fn meta_sockets(&self) -> ([&UdpSocket; META_MAX - 1], usize) {
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
