//! When the timer thread wakes up next.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use weir_rtps::time::Time;
use weir_udp::Waker;

/// [`Timers::deadline`] while the thread is in a round, at whose end it checks `is_round_due`.
const AT_WORK: u64 = 0;

/// When the timer thread wakes up next.
pub(crate) struct Timers {
    pub(super) waker: Waker,
    deadline: AtomicU64,
    /// Some endpoint set a timer that the current round may have missed.
    is_round_due: AtomicBool,
}

impl Timers {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            waker: Waker::new()?,
            deadline: AtomicU64::new(AT_WORK),
            is_round_due: AtomicBool::new(false),
        })
    }

    /// Makes sure that the thread wakes up no later than `at`. Costs a system call only if it would
    /// sleep longer.
    #[inline]
    pub(crate) fn arm(&self, at: Time) {
        let deadline = self.deadline.load(Ordering::SeqCst);
        if deadline == AT_WORK {
            self.is_round_due.store(true, Ordering::SeqCst);
            // The thread may have gone to sleep between the load and the store.
            if at.0 < self.deadline.load(Ordering::SeqCst) {
                self.wake();
            }
        } else if at.0 < deadline {
            self.deadline.fetch_min(at.0, Ordering::SeqCst);
            self.wake();
        }
    }

    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// Called by the thread when it begins a round.
    pub(super) fn begin_round(&self) {
        self.deadline.store(AT_WORK, Ordering::SeqCst);
        self.is_round_due.store(false, Ordering::SeqCst);
    }

    /// Called by the thread before it sleeps until `next`. Returns `false` if another round is due
    /// first.
    pub(super) fn end_round(&self, next: Time) -> bool {
        self.deadline.store(next.0.max(1), Ordering::SeqCst);
        !self.is_round_due.swap(false, Ordering::SeqCst)
    }
}
