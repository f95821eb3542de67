//! When the timer thread wakes up next.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use weir_rtps::time::Time;
use weir_udp::{Timer, Waker};

/// [`Timers::deadline`] while the thread does not sleep. Before and after it does, it reads `set`.
const AT_WORK: u64 = 0;

/// When the timer thread wakes up next.
///
/// An acknowledgement cancels most timers of a writer before they are due. Waking up for them would cost more than all
/// other work for a sparse sample. So cancelling the earliest timer moves the deadline to the next one.
pub(crate) struct Timers {
    pub(super) waker: Arc<Waker>,
    /// Expires at the deadline. Set without waking the thread that waits for it.
    pub(super) timer: Timer,
    /// What it is set to.
    set_to: Mutex<u64>,
    /// When a sleep of the application ends, whatever the deadline is; or an earlier sleep. Changed with `set_to`
    /// locked.
    bound: AtomicU64,
    deadline: AtomicU64,
    /// No timer but that of the deadline is earlier than this. A lower bound: it stays when it becomes the deadline,
    /// because the timers behind it are not known.
    others: AtomicU64,
    /// The earliest timer that was set while the thread did not sleep.
    set: AtomicU64,
}

impl Timers {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            waker: Arc::new(Waker::new()?),
            timer: Timer::new()?,
            set_to: Mutex::new(u64::MAX),
            bound: AtomicU64::new(u64::MAX),
            deadline: AtomicU64::new(AT_WORK),
            others: AtomicU64::new(u64::MAX),
            set: AtomicU64::new(u64::MAX),
        })
    }

    /// Makes sure that the thread wakes up no later than `at`. Costs a system call only if it would
    /// sleep longer.
    #[inline]
    pub(crate) fn arm(&self, at: Time) {
        // A timer at or after `others` is covered: when `others` becomes the deadline, a round finds it.
        let deadline = self.deadline.load(Ordering::SeqCst);
        if deadline == AT_WORK || at.0 < deadline || at.0 < self.others.load(Ordering::SeqCst) {
            self.arm_early(at.0.max(1), deadline);
        }
    }

    #[inline(never)]
    fn arm_early(&self, at: u64, mut deadline: u64) {
        loop {
            // What is recorded first cannot be missed by a thread that changes the deadline in the meantime.
            let record = if deadline == AT_WORK { &self.set } else { &self.others };
            record.fetch_min(at.max(deadline), Ordering::SeqCst);
            let is_early = at < deadline;
            let found = match is_early {
                true => self.deadline.compare_exchange(deadline, at, Ordering::SeqCst, Ordering::SeqCst),
                false => Ok(self.deadline.load(Ordering::SeqCst)),
            };
            let now = found.unwrap_or_else(|changed| changed);
            if now == deadline {
                if is_early {
                    self.shorten_sleep();
                    // The former deadline was recorded above, but a sleep that has ended since then has dropped it.
                    self.arm(Time(deadline));
                }
                return;
            }
            deadline = now;
        }
    }

    /// [`Timers::arm`] for the earliest timer of several endpoints. None of them can cancel it: the timers of the
    /// others are not known.
    #[inline]
    pub(crate) fn arm_for_several(&self, at: Time) {
        self.arm(at);
        // As if another timer was set to the same time.
        self.arm(at);
    }

    /// Cancels a timer that was set to `at`. If it was the earliest, the thread sleeps on until the next.
    ///
    /// The endpoint must be locked, so that this does not cancel a new timer that it sets to the same time.
    pub(crate) fn cancel(&self, at: Time) {
        let remove =
            || self.deadline.compare_exchange(at.0.max(1), u64::MAX, Ordering::SeqCst, Ordering::SeqCst);
        if remove().is_ok() {
            self.arm(Time(self.others.load(Ordering::SeqCst)));
        }
    }

    /// Has the thread wake up at the deadline.
    fn shorten_sleep(&self) {
        let mut deadline = self.deadline.load(Ordering::SeqCst);
        while deadline != AT_WORK {
            self.set_timer(&mut self.set_to.lock(), deadline);
            // Another thread may have set the timer to an earlier deadline in the meantime.
            let set = core::mem::replace(&mut deadline, self.deadline.load(Ordering::SeqCst));
            if set == deadline {
                return;
            }
        }
    }

    fn set_timer(&self, set_to: &mut u64, deadline: u64) {
        let at = deadline.min(self.bound.load(Ordering::Relaxed));
        // Most datagrams change no deadline: the thread sleeps on until the same one.
        if core::mem::replace(set_to, at) != at {
            self.timer.set(Some(at));
        }
    }

    /// Has the timer expire no later than `until`, besides: a sleep of the application ends then. It may expire
    /// earlier, when an earlier sleep would have ended, so that it need not be set for each sleep.
    pub(super) fn bound_sleep(&self, now: Time, until: Time) {
        let has_to_change = || {
            let bound = self.bound.load(Ordering::Relaxed);
            until.0 < bound || bound <= now.0
        };
        if has_to_change() {
            let mut set_to = self.set_to.lock();
            if !has_to_change() {
                return;
            }
            self.bound.store(until.0, Ordering::Relaxed);
            // A thread at work sets the timer when it is done.
            self.set_timer(&mut set_to, self.sleeps_until().unwrap_or(Time::MAX).0);
        }
    }

    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// Called by the thread before it sleeps until `next`; `others`: the earliest of the other timers. Returns when it
    /// should wake up, because timers were set in the meantime.
    pub(super) fn begin_sleep(&self, [next, others]: [Time; 2]) -> Time {
        self.others.fetch_min(others.0, Ordering::SeqCst);
        self.deadline.store(next.0.max(1), Ordering::SeqCst);
        let set = self.take_set();
        self.others.fetch_min(set.0, Ordering::SeqCst);
        self.shorten_sleep();
        self.arm(set);
        next.min(set)
    }

    /// Returns until when the thread sleeps. `None`: it works.
    #[inline]
    pub(super) fn sleeps_until(&self) -> Option<Time> {
        let deadline = self.deadline.load(Ordering::SeqCst);
        (deadline != AT_WORK).then_some(Time(deadline))
    }

    /// Called by the thread when it has slept. Returns when the next timer is due, and the earliest of the others.
    pub(super) fn end_sleep(&self) -> [Time; 2] {
        let deadline = Time(self.deadline.swap(AT_WORK, Ordering::SeqCst));
        let others = Time(self.others.swap(u64::MAX, Ordering::SeqCst)).min(self.take_set());
        [deadline.min(others), others]
    }

    fn take_set(&self) -> Time {
        Time(self.set.swap(u64::MAX, Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Times that are not reached while a test runs.
    const LATER: [Time; 3] = [Time(u64::MAX / 4), Time(u64::MAX / 4 + 1), Time(u64::MAX / 4 + 2)];
    const PAST: Time = Time(50);

    /// Whether the thread's sleep would end now.
    fn is_over(timers: &Timers) -> bool {
        let ready = weir_udp::poll(&[&timers.timer], Some(&timers.waker), Some(Duration::ZERO)).unwrap();
        if ready.is_woken() {
            timers.waker.drain();
        }
        !ready.is_empty()
    }

    #[test]
    fn a_thread_that_was_woken_for_something_else_sleeps_on_until_its_timer() {
        let timers = Timers::new().unwrap();
        assert_eq!(timers.begin_sleep([LATER[0], Time::MAX]), LATER[0]);
        timers.arm(LATER[1]);
        assert!(!is_over(&timers));
        assert_eq!(timers.end_sleep()[0], LATER[0]);
    }

    #[test]
    fn an_earlier_timer_ends_the_sleep() {
        let timers = Timers::new().unwrap();
        timers.begin_sleep([LATER[0], Time::MAX]);
        timers.arm(PAST);
        timers.arm(PAST.plus_nanos(10));
        assert!(is_over(&timers));
        assert_eq!(timers.end_sleep()[0], PAST);
    }

    #[test]
    fn a_thread_is_not_woken_at_once_for_an_earlier_timer() {
        let timers = Timers::new().unwrap();
        timers.begin_sleep([LATER[1], Time::MAX]);
        timers.arm(LATER[0]);
        assert!(!is_over(&timers));
        assert_eq!(timers.sleeps_until(), Some(LATER[0]));
    }

    #[test]
    fn a_sleep_ends_at_its_bound_and_the_next_at_its_own() {
        let timers = Timers::new().unwrap();
        let is_over = || is_over(&timers);
        timers.begin_sleep([LATER[1], Time::MAX]);
        timers.bound_sleep(Time(1), PAST);
        assert!(is_over());
        // Neither of these ends it later.
        timers.arm(LATER[0]);
        timers.bound_sleep(Time(1), LATER[0]);
        assert!(is_over());
        timers.bound_sleep(PAST, LATER[2]);
        assert!(!is_over());
        assert_eq!(timers.sleeps_until(), Some(LATER[0]));
        timers.arm(PAST);
        assert!(is_over());
        timers.end_sleep();
        timers.begin_sleep([LATER[0], Time::MAX]);
        assert!(!is_over());
    }

    #[test]
    fn a_timer_that_is_set_while_the_thread_works_counts_when_it_sleeps_next() {
        let timers = Timers::new().unwrap();
        timers.begin_sleep([LATER[0], Time::MAX]);
        timers.end_sleep();
        assert_eq!(timers.sleeps_until(), None);
        timers.arm(PAST);
        timers.arm(LATER[2]);
        assert!(!timers.waker.is_woken(), "the thread does not sleep");
        assert_eq!(timers.begin_sleep([LATER[0], Time::MAX]), PAST);
        assert_eq!((timers.end_sleep()[0], is_over(&timers)), (PAST, true));
    }

    #[test]
    fn a_thread_whose_earliest_timer_is_cancelled_sleeps_until_the_next() {
        let timers = Timers::new().unwrap();
        // One that was planned, one that was there before, and one that was set in the meantime.
        for (planned, before, set, next) in [
            (PAST, LATER[0], LATER[1], LATER[0]),
            (PAST, LATER[1], LATER[0], LATER[0]),
            (LATER[0], LATER[1], PAST, LATER[0]),
            (LATER[1], Time::MAX, PAST, LATER[1]),
        ] {
            timers.begin_sleep([planned, before]);
            timers.arm(set);
            assert!(is_over(&timers));
            timers.cancel(LATER[0]);
            assert!(is_over(&timers), "a timer that is not the earliest");
            timers.cancel(PAST);
            assert!(!is_over(&timers));
            assert_eq!(timers.end_sleep()[0], next);
        }
    }

    #[test]
    fn a_timer_that_two_have_set_stays_when_one_cancels_it() {
        let timers = Timers::new().unwrap();
        timers.begin_sleep([LATER[0], Time::MAX]);
        timers.arm(PAST);
        timers.arm(PAST);
        timers.cancel(PAST);
        assert!(is_over(&timers));
        assert_eq!(timers.end_sleep()[0], PAST);
        timers.cancel(PAST);
        assert_eq!(timers.begin_sleep([LATER[0], LATER[1]]), LATER[0]);
    }

    #[test]
    fn a_timer_for_several_cannot_be_cancelled_by_one() {
        let timers = Timers::new().unwrap();
        timers.begin_sleep([LATER[0], Time::MAX]);
        timers.arm_for_several(PAST);
        timers.cancel(PAST);
        assert!(is_over(&timers));
        assert_eq!(timers.end_sleep()[0], PAST);
    }

    #[test]
    fn what_is_behind_the_earliest_of_the_others_is_not_lost() {
        let timers = Timers::new().unwrap();
        timers.begin_sleep([LATER[2], Time::MAX]);
        for at in [PAST, LATER[0], LATER[1]] {
            timers.arm(at);
        }
        for at in [PAST, LATER[0]] {
            timers.cancel(at);
        }
        let next = timers.end_sleep();
        assert!(next[0] <= LATER[1]);
        timers.arm(LATER[1]);
        timers.arm(PAST);
        timers.begin_sleep(next);
        timers.cancel(PAST);
        assert!(timers.end_sleep()[0] <= LATER[1]);
    }

    #[test]
    fn no_timer_is_lost_while_others_are_set_and_cancelled() {
        let timers = Timers::new().unwrap();
        let own = |of: u64, round: u64| Time(u64::MAX / 4 + round * 8 + of);
        timers.begin_sleep([own(0, 1 << 40), Time::MAX]);
        std::thread::scope(|scope| {
            for of in 1..=3 {
                let timers = &timers;
                scope.spawn(move || {
                    for round in (2_000..20_000).rev() {
                        timers.arm(own(of, round));
                        timers.cancel(own(of, round));
                    }
                    timers.arm(own(of, 1_000));
                });
            }
            for _ in 0..20_000 {
                let [next, others] = timers.end_sleep();
                timers.begin_sleep([next.min(own(0, 1 << 40)), others]);
            }
        });
        assert_eq!(timers.end_sleep()[0], own(1, 1_000));
    }
}
