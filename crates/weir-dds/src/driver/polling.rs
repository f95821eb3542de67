//! A participant without threads: the application polls.
//!
//! A poll does what the threads of other participants do: receives user data and metatraffic, does what is due, sends
//! for writers that publish asynchronously or are paced, and calls listeners. Calls that wait poll as well. It is
//! meant for one thread at a time. Others may poll or wait, too; then each looks every few milliseconds whether what it
//! waits for has been received by another.
//!
//! It waits for the socket for user data, and for one descriptor of all else, the timer included: that costs least,
//! and the kernel sets no other timer for it. Between polls, the timers are in the state of a thread that sleeps:
//! setting one sets the timerfd if it is earlier than the known ones.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

use parking_lot::Mutex;
use weir_rtps::time::Time;
use weir_udp::{CombinedFd, Ready, UdpSocket, Wait};

use super::channel::{Arrived, Role};
use super::endpoints::ReaderEndpoint;
use super::receive::TakenIn;
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
pub(crate) const SHARED_CHECK: Duration = Duration::from_millis(5);
/// A wait that may take less does not poll before it sleeps, which takes a few microseconds.
const SLEEP_MIN: Duration = Duration::from_micros(20);
/// A sleep of this length shows that no stream arrives, whatever has ended it.
const NO_STREAM: Duration = Duration::from_millis(10);
/// Numbers of descriptors below this are those of [`Driver::receive_of_discovery`]: prober, unicast, multicast, changes
/// of the network.
const USER_DATA: u8 = 4;
/// The timer: the next round does what is due. In the application's descriptor, all but the socket for user data.
const OTHER: u8 = 5;
/// The waker.
const WAKER: u8 = 6;

/// The state of a participant that the application polls.
pub(crate) struct Polling {
    /// Locked only while the engine works, not while it waits or calls listeners.
    rounds: Mutex<Rounds>,
    /// All that is waited for but the socket for user data.
    others: CombinedFd,
    /// Both, for the application. Made when it asks for it.
    descriptor: OnceLock<CombinedFd>,
    /// A thread sleeps without a time-out, or looks for the last time whether it has to.
    sleeps_alone: AtomicBool,
    /// When work is due even if no timer is.
    adjust_at: AtomicU64,
    /// The last poll has received user data, so there is probably more.
    had_data: AtomicBool,
    /// Batches of user data received since metatraffic was looked for.
    batches: AtomicU32,
}

impl Polling {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            rounds: Mutex::new(Rounds::new()),
            others: CombinedFd::new().map_err(no_descriptor)?,
            descriptor: OnceLock::new(),
            sleeps_alone: AtomicBool::new(false),
            adjust_at: AtomicU64::new(0),
            had_data: AtomicBool::new(false),
            batches: AtomicU32::new(0),
        })
    }

    /// Metatraffic is looked for after many batches of user data.
    fn is_meta_due(&self) -> bool {
        self.batches.load(Ordering::Relaxed) >= BATCHES_IN_A_ROW
    }

    /// Records whether user data was received, and whether there is probably more. With the role held.
    fn note_batch(&self, is_any: bool, is_more_likely: bool) {
        self.had_data.store(is_any && is_more_likely, Ordering::Relaxed);
        self.batches.store(self.batches.load(Ordering::Relaxed) + u32::from(is_any), Ordering::Relaxed);
    }
}

/// What a poll has done.
#[derive(Clone, Copy, Default)]
struct Done {
    is_any: bool,
    /// What the thread waits for is there.
    has_awaited: bool,
}

impl Done {
    const ANYTHING: Self = Self { is_any: true, has_awaited: false };
    const AWAITED: Self = Self { is_any: true, has_awaited: true };
}

impl From<TakenIn> for Done {
    fn from(taken_in: TakenIn) -> Self {
        Self { is_any: true, has_awaited: taken_in.has_awaited }
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
        let _waiting = self.channel.begin_waiting();
        let spin_until = self.wait.spin_time().map_or(Time::MAX, |time| clock::now() + time);
        let did = loop {
            let did = self.poll_until(polling, None, spin_until, deadline, &mut || false).is_any;
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
            let both = CombinedFd::new().and_then(|both| {
                both.add(&*self.channel.socket, USER_DATA)?;
                both.add(&polling.others, OTHER)?;
                Ok(both)
            });
            let _ = polling.descriptor.set(both.map_err(no_descriptor)?);
        }
        let text = || DdsError::OutOfResources("no descriptor to poll".to_owned());
        polling.descriptor.get().map(AsFd::as_fd).ok_or_else(text)
    }

    /// Has the descriptor watch everything but the socket for user data and those of multicast groups.
    pub(super) fn watch_sockets(&self) -> Result<()> {
        let Some(polling) = &self.polling else { return Ok(()) };
        let (sockets, count) = self.meta_sockets();
        let meta = sockets.into_iter().take(count).map(AsFd::as_fd).chain(self.network.watched());
        let timers = &self.outlet.timers;
        let own = [(timers.timer.as_fd(), OTHER), (timers.waker.as_fd(), WAKER)];
        let mut all = meta.zip(0..).chain(own);
        all.try_for_each(|(fd, number)| polling.others.add(fd, number)).map_err(no_descriptor)?;
        // The first poll sets the timer.
        timers.wake();
        Ok(())
    }

    /// Has the descriptor watch the sockets of multicast groups, too.
    pub(super) fn watch_groups(&self) -> Result<()> {
        let Some(polling) = &self.polling else { return Ok(()) };
        let sockets = self.channel.groups.sockets();
        sockets.iter().try_for_each(|socket| polling.others.add(&**socket, USER_DATA)).map_err(no_descriptor)
    }

    /// [`Driver::receive_until`] for a participant that the application polls.
    #[inline(never)]
    pub(super) fn poll_while_waiting(
        &self,
        reader: Option<&ReaderEndpoint>,
        deadline: Time,
        strategy: WaitStrategy,
        mut is_done: impl FnMut() -> bool,
    ) -> bool {
        let Some(polling) = &self.polling else { return is_done() };
        let _waiting = self.channel.begin_waiting();
        let spin_until = || strategy.spin_time().map_or(Time::MAX, |time| clock::now() + time);
        let mut spins = spin_until();
        // Without time, it polls once: no other thread does, so nothing would ever happen in a loop of such calls.
        let mut has_polled = false;
        loop {
            if is_done() {
                return true;
            }
            if self.has_ended() || has_polled && clock::now() >= deadline {
                return is_done();
            }
            has_polled = true;
            let done = self.poll_until(polling, reader, spins, deadline, &mut is_done);
            if done.has_awaited {
                return true;
            }
            if done.is_any {
                spins = spin_until();
            }
        }
    }

    /// Several threads poll or wait.
    fn is_polling_shared(&self) -> bool {
        self.channel.waiting_threads() > 1
    }

    fn polling(&self) -> Result<&Polling> {
        let text =
            "the participant has threads of its own: create it with ParticipantSettings::without_threads";
        self.polling.as_ref().ok_or_else(|| DdsError::PreconditionNotMet(text.to_owned()))
    }

    /// Does what there is to do, or waits until there is, or `is_done` returns `true`: what the thread waits for may
    /// come from another one. Returns what it has done: nothing may have been done before `deadline` if other threads
    /// poll, too.
    fn poll_until(
        &self,
        polling: &Polling,
        reader: Option<&ReaderEndpoint>,
        spin_until: Time,
        deadline: Time,
        is_done: &mut impl FnMut() -> bool,
    ) -> Done {
        let mut now = clock::now();
        for round in 0_u32.. {
            // Queued listener calls have woken this thread, too.
            if self.is_work_due(polling, now) && (self.work(polling, now) | self.make_listener_calls()) {
                return Done::ANYTHING;
            }
            if self.has_ended() {
                return Done::default();
            }
            let is_spinning = now < spin_until.min(deadline);
            if is_spinning && !polling.is_meta_due() && self.receive_polled_spinning(polling, now) {
                return Done::ANYTHING;
            }
            if !is_spinning || polling.is_meta_due() || round % SPINS_IN_A_ROW == 0 {
                let until = if is_spinning { Time::ZERO } else { deadline };
                let done = self.receive_or_wait(polling, reader, now, until, is_done);
                if done.is_any {
                    return done;
                }
                if is_done() {
                    return Done::AWAITED;
                }
            }
            now = clock::now();
            // What woke this thread in the meantime is done by the next poll.
            if now >= deadline || !is_spinning && self.is_polling_shared() {
                break;
            }
        }
        Done::default()
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
            // A thread that sleeps alone needs it to wake up.
            let is_for_sleeper = polling.sleeps_alone.load(Ordering::SeqCst);
            let is_woken = !is_for_sleeper && timers.waker.is_woken() && timers.waker.drain();
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
            fence(Ordering::SeqCst);
            if did && polling.sleeps_alone.load(Ordering::SeqCst) {
                // What that thread waits for may have happened. It looks before it sleeps otherwise.
                timers.wake();
            }
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

    /// Receives what has arrived for endpoints, or arrives soon. Returns whether anything has.
    fn receive_polled_spinning(&self, polling: &Polling, now: Time) -> bool {
        let Some(role) = self.channel.try_role() else { return false };
        let is_any = self.receive_spinning(role, now, None).is_some();
        polling.note_batch(is_any, is_any);
        is_any
    }

    /// Receives user data if there probably is some. Otherwise waits until something can be received or a timer is due,
    /// until `until` at most, and receives it.
    ///
    /// As other participants do, it holds the role meanwhile, and polls a few times before it sleeps if the last sleeps
    /// were short.
    fn receive_or_wait(
        &self,
        polling: &Polling,
        reader: Option<&ReaderEndpoint>,
        now: Time,
        until: Time,
        is_done: &mut impl FnMut() -> bool,
    ) -> Done {
        let Some(mut role) = self.channel.try_role() else {
            // The thread that has it receives all there is.
            let until = until.min(now + SHARED_CHECK);
            if until > now {
                self.channel.sleep_until_progress(until, is_done);
            }
            return Done::default();
        };
        if let Some(arrived) = self.receive_first(polling, &mut role, now, until) {
            polling.note_batch(true, true);
            return self.take_in(role, clock::now(), arrived, reader).into();
        }
        polling.batches.store(0, Ordering::Relaxed);
        let before = clock::now();
        let waits = until > before;
        let slept = match waits {
            true => self.sleep_until(polling, before, until, is_done),
            false => (!is_done()).then(|| self.sleep(polling, Some(Duration::ZERO))),
        };
        let Some((is_user_ready, others)) = slept else { return Done::AWAITED };
        let after = clock::now();
        let has_user_data = is_user_ready || others.is_readable(USER_DATA.into());
        let mut is_likely = has_user_data;
        let slept = after.since(before);
        // A timer or metatraffic may end a sleep that would have been short.
        let says_something = waits && (has_user_data || slept >= NO_STREAM);
        if says_something {
            // What ended a longer sleep was probably alone.
            is_likely = role.note_sleep(slept, has_user_data);
        }
        let mut done = Done::default();
        let (mut role, mut now) = (Some(role), after);
        if !others.is_empty() {
            drop(role.take());
            done.is_any = self.receive_others(polling, others);
            // Listeners may have been called.
            (role, now) = (self.channel.try_role(), clock::now());
        }
        if let Some(mut role) = role {
            if has_user_data {
                let arrived = self.channel.receive(&mut role, Wait::DontWait);
                polling.note_batch(arrived.count > 0, is_likely);
                if arrived.count > 0 {
                    return self.take_in(role, now, arrived, reader).into();
                }
            }
            drop(role);
        }
        done
    }

    /// Receives user data without waiting, if there probably is some.
    fn receive_first(&self, polling: &Polling, role: &mut Role, now: Time, until: Time) -> Option<Arrived> {
        if polling.is_meta_due() {
            None
        } else if role.polls_before_sleep() && now + SLEEP_MIN < until {
            self.channel.receive_before_sleep(role)
        } else if polling.had_data.load(Ordering::Relaxed) {
            let arrived = self.channel.receive(role, Wait::DontWait);
            (arrived.count > 0).then_some(arrived)
        } else {
            None
        }
    }

    /// Receives metatraffic, and has the timer expire later if it was for an earlier sleep. Returns whether there was
    /// any metatraffic.
    #[inline(never)]
    fn receive_others(&self, polling: &Polling, ready: Ready) -> bool {
        let is_any = ready.readable().any(|number| is_of_discovery(&number));
        if is_any {
            self.run_thread("poll", || {
                let (sockets, count) = self.meta_sockets();
                let mut rounds = polling.rounds.lock();
                let readable = ready.readable().filter(is_of_discovery);
                readable.for_each(|index| self.receive_of_discovery(index, &sockets[..count], &mut rounds));
            });
            self.make_listener_calls();
        }
        if ready.is_readable(OTHER.into()) {
            self.outlet.timers.bound_sleep(clock::now(), Time::MAX);
        }
        let waker = &self.outlet.timers.waker;
        // A wake that was drained before it had made the descriptor readable.
        if ready.is_readable(WAKER.into()) && !waker.is_woken() && waker.drain() {
            waker.wake();
        }
        is_any
    }

    /// Sleeps, with the role, unless `is_done` returns `true`. Returns whether user data can be received, and what else
    /// there is.
    fn sleep_until(
        &self,
        polling: &Polling,
        now: Time,
        until: Time,
        is_done: &mut impl FnMut() -> bool,
    ) -> Option<(bool, Ready)> {
        // Without the role, no other thread receives samples. What else another one does is seen here, or that thread
        // sees that this one sleeps, and wakes it, or looks often because others poll.
        polling.sleeps_alone.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let is_shared = self.is_polling_shared();
        let slept = if is_done() {
            None
        } else if is_shared {
            polling.sleeps_alone.store(false, Ordering::SeqCst);
            Some(self.sleep(polling, Some(until.since(now).min(SHARED_CHECK))))
        } else {
            self.outlet.timers.bound_sleep(now, until.min(now + ADJUST_CLOCK_EVERY));
            Some(self.sleep(polling, None))
        };
        polling.sleeps_alone.store(false, Ordering::SeqCst);
        slept
    }

    fn sleep(&self, polling: &Polling, timeout: Option<Duration>) -> (bool, Ready) {
        let watched = [self.channel.socket.as_fd(), polling.others.as_fd()];
        let ready = weir_udp::poll(&watched, None, timeout).unwrap_or_default();
        let others = if ready.is_readable(1) { polling.others.ready() } else { Ok(Ready::default()) };
        (ready.is_readable(0), others.unwrap_or_default())
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

fn is_of_discovery(number: &usize) -> bool {
    *number < usize::from(USER_DATA)
}

fn no_descriptor(error: std::io::Error) -> DdsError {
    DdsError::network("cannot make a descriptor to poll", error)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::{DomainParticipant, ParticipantSettings};

    fn participant() -> DomainParticipant {
        let settings = ParticipantSettings { multicast: false, ..ParticipantSettings::default() };
        DomainParticipant::new(15, settings.interface("lo").without_threads()).unwrap()
    }

    #[test]
    fn a_sleep_that_has_ended_leaves_no_descriptor_readable() {
        const ROUNDS: usize = 1000;
        let participant = participant();
        let is_readable = || {
            let fd = participant.poll_fd().unwrap();
            weir_udp::poll(&[fd], None, Some(Duration::ZERO)).unwrap().is_readable(0)
        };
        while participant.poll(Duration::ZERO).unwrap() {}
        for micros in [1000, 1, 5000, 100] {
            let timeout = Duration::from_micros(micros);
            let before = clock::now();
            let did = participant.poll(timeout).unwrap();
            assert!(did || clock::now() >= before + timeout);
            let mut rounds = 0;
            while is_readable() && rounds < ROUNDS {
                participant.poll(Duration::ZERO).unwrap();
                rounds += 1;
            }
            assert!(rounds < ROUNDS);
        }
    }

    #[test]
    fn a_timer_that_another_thread_sets_ends_a_sleep() {
        let participant = participant();
        let driver = &participant.handle.driver;
        while participant.poll(Duration::ZERO).unwrap() {}
        let is_set = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !driver.channel.is_role_taken() {
                    std::hint::spin_loop();
                }
                driver.outlet.timers.arm(clock::now());
                is_set.store(true, Ordering::SeqCst);
            });
            // A participant of another test may end it as well.
            while !is_set.load(Ordering::SeqCst) {
                assert!(participant.poll(Duration::from_secs(3600)).unwrap());
            }
        });
    }

    #[test]
    fn a_wake_up_is_left_to_a_thread_that_sleeps_alone_and_ends_no_other_wait() {
        let participant = participant();
        let driver = &participant.handle.driver;
        let polling = driver.polling().unwrap();
        while participant.poll(Duration::ZERO).unwrap() {}
        driver.outlet.timers.wake();
        // As it is while another thread sleeps.
        let other = (driver.channel.begin_waiting(), driver.channel.wait_for_role());
        polling.sleeps_alone.store(true, Ordering::SeqCst);
        assert!(!participant.poll(Duration::ZERO).unwrap());
        assert!(driver.outlet.timers.waker.is_woken());
        polling.sleeps_alone.store(false, Ordering::SeqCst);
        drop(other);
        assert!(participant.poll(Duration::ZERO).unwrap());
        assert!(!driver.outlet.timers.waker.is_woken());
    }

    #[test]
    fn a_thread_that_polls_and_does_nothing_wakes_no_other() {
        let participant = participant();
        let driver = &participant.handle.driver;
        while participant.poll(Duration::ZERO).unwrap() {}
        let _other = driver.channel.begin_waiting();
        for sleeps_alone in [false, true] {
            driver.polling().unwrap().sleeps_alone.store(sleeps_alone, Ordering::SeqCst);
            assert!(!participant.poll(Duration::ZERO).unwrap());
            assert!(!driver.outlet.timers.waker.is_woken());
        }
        // What it does may be what the other one waits for.
        driver.outlet.timers.arm(clock::now());
        assert!(participant.poll(Duration::ZERO).unwrap());
        assert!(driver.outlet.timers.waker.is_woken());
    }

    #[test]
    fn a_wake_up_that_was_noticed_before_it_was_written_leaves_no_descriptor_readable() {
        let participant = participant();
        let waker = &participant.handle.driver.outlet.timers.waker;
        while participant.poll(Duration::ZERO).unwrap() {}
        let fd = waker.as_fd().try_clone_to_owned().unwrap();
        std::fs::File::from(fd).write_all(&1_u64.to_ne_bytes()).unwrap();
        let is_readable =
            || weir_udp::poll(&[waker.as_fd()], None, Some(Duration::ZERO)).unwrap().is_readable(0);
        assert!(is_readable() && !waker.is_woken());
        while participant.poll(Duration::ZERO).unwrap() {}
        assert!(!is_readable());
    }

    #[test]
    fn what_another_thread_has_received_ends_a_wait() {
        let participant = participant();
        let driver = &participant.handle.driver;
        while participant.poll(Duration::ZERO).unwrap() {}
        let is_there = AtomicBool::new(false);
        let role = driver.channel.wait_for_role();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let deadline = clock::now() + Duration::from_secs(3600);
                let is_done = || is_there.load(Ordering::SeqCst);
                driver.poll_while_waiting(None, deadline, WaitStrategy::Block, is_done)
            });
            while driver.channel.waiting_threads() == 0 {
                std::hint::spin_loop();
            }
            is_there.store(true, Ordering::SeqCst);
            drop(role);
            assert!(waits.join().unwrap());
        });
    }
}
