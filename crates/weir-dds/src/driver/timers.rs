//! When the timer thread wakes up next.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_rtps::time::Time;
use weir_udp::{Timer, Waker};

/// [`Timers::deadline`] while the thread does not sleep. Before and after it does, it reads `set`.
const AT_WORK: u64 = 0;

/// When the timer thread wakes up next.
pub(crate) struct Timers {
    pub(super) waker: Arc<Waker>,
    /// Ends the sleep of the timer thread earlier than it had planned. A participant without threads has none: it is
    /// woken instead, whatever the application waits in.
    pub(super) timer: Option<Timer>,
    deadline: AtomicU64,
    /// The earliest timer that was set while the thread did not sleep.
    set: AtomicU64,
}

impl Timers {
    /// Timers for a thread that waits for [`Timers::timer`].
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { timer: Some(Timer::new()?), ..Self::polled()? })
    }

    /// Timers for a participant without threads.
    pub(crate) fn polled() -> io::Result<Self> {
        Ok(Self {
            waker: Arc::new(Waker::new()?),
            timer: None,
            deadline: AtomicU64::new(AT_WORK),
            set: AtomicU64::new(u64::MAX),
        })
    }

    /// Makes sure that the thread wakes up no later than `at`. Costs a system call only if it would
    /// sleep longer.
    #[inline]
    pub(crate) fn arm(&self, at: Time) {
        let mut deadline = self.deadline.load(Ordering::SeqCst);
        while deadline != AT_WORK {
            if at.0 >= deadline {
                return;
            }
            match self.deadline.compare_exchange(deadline, at.0, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return self.shorten_sleep(),
                Err(changed) => deadline = changed,
            }
        }
        self.set.fetch_min(at.0, Ordering::SeqCst);
        // The thread may have gone to sleep between the load and the minimum.
        if at.0 < self.deadline.fetch_min(at.0, Ordering::SeqCst) {
            self.shorten_sleep();
        }
    }

    /// Has the thread wake up at the deadline.
    fn shorten_sleep(&self) {
        let Some(timer) = &self.timer else { return self.wake() };
        let mut deadline = self.deadline.load(Ordering::SeqCst);
        while deadline != AT_WORK {
            timer.set(Some(deadline));
            // Another thread may have set the timer to an earlier deadline in the meantime.
            let set = core::mem::replace(&mut deadline, self.deadline.load(Ordering::SeqCst));
            if set == deadline {
                return;
            }
        }
    }

    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// Called by the thread before it sleeps until `next`. Returns when it should wake up, because timers were set in
    /// the meantime.
    pub(super) fn begin_sleep(&self, next: Time) -> Time {
        self.deadline.store(next.0.max(1), Ordering::SeqCst);
        next.min(self.take_set())
    }

    /// Called by the thread when it has slept. Returns when the next timer is due.
    pub(super) fn end_sleep(&self) -> Time {
        Time(self.deadline.swap(AT_WORK, Ordering::SeqCst)).min(self.take_set())
    }

    fn take_set(&self) -> Time {
        Time(self.set.swap(u64::MAX, Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// When the thread's sleep ends, other than it had planned.
    fn is_set(timers: &Timers) -> bool {
        let none: [&std::os::fd::OwnedFd; 0] = [];
        let is_woken = weir_udp::poll(&none, Some(&timers.waker), Some(Duration::ZERO)).unwrap().is_woken();
        if is_woken {
            timers.waker.drain();
        }
        // All times here are long past.
        is_woken || timers.timer.as_ref().is_some_and(Timer::take_expiry)
    }

    fn both() -> [Timers; 2] {
        [Timers::new().unwrap(), Timers::polled().unwrap()]
    }

    #[test]
    fn a_thread_that_was_woken_for_something_else_sleeps_on_until_its_timer() {
        for timers in both() {
            assert_eq!(timers.begin_sleep(Time(100)), Time(100));
            timers.arm(Time(200));
            assert_eq!((timers.end_sleep(), is_set(&timers)), (Time(100), false));
        }
    }

    #[test]
    fn an_earlier_timer_ends_the_sleep() {
        for timers in both() {
            timers.begin_sleep(Time(100));
            timers.arm(Time(50));
            timers.arm(Time(60));
            assert!(is_set(&timers));
            assert_eq!(timers.end_sleep(), Time(50));
        }
    }

    #[test]
    fn only_a_participant_without_threads_is_woken_at_once() {
        let [threads, polled] = both();
        for timers in [&threads, &polled] {
            timers.begin_sleep(Time(u64::MAX));
            timers.arm(Time(u64::MAX / 2));
        }
        assert!(!is_set(&threads) && is_set(&polled));
    }

    #[test]
    fn a_timer_that_is_set_while_the_thread_works_counts_when_it_sleeps_next() {
        for timers in both() {
            timers.begin_sleep(Time(100));
            timers.end_sleep();
            timers.arm(Time(50));
            timers.arm(Time(70));
            assert!(!is_set(&timers), "the thread does not sleep");
            assert_eq!(timers.begin_sleep(Time(100)), Time(50));
            assert_eq!(timers.end_sleep(), Time(100));
        }
    }
}
