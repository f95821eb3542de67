//! How the publishing thread of an asynchronous writer is woken, and who waits for it.
//!
//! A thread that writes locks the writer's core, leaves the sample in the history, and goes on. Only when the publishing
//! thread sleeps does that take a system call; while it sends, it is notified by one store, or by none when a
//! notification is pending.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::thread::Thread;

use weir_rtps::time::Time;

use crate::clock;
use crate::wait_strategy::{WaitStrategy, YIELD_EVERY};

/// The thread is at work, and there was nothing new for it since its last check.
const AT_WORK: u8 = 0;
/// There is something to check.
const TOLD: u8 = 1;
/// It sleeps, or is about to.
const ASLEEP: u8 = 2;

/// Checks of a spinning thread between two clock reads.
const CHECKS_BETWEEN_CLOCK_READS: u32 = 64;

/// The state that a writer's publishing thread shares with those that write.
#[derive(Default)]
pub(crate) struct Publishing {
    state: AtomicU8,
    is_stopping: AtomicBool,
    /// Known once the thread runs.
    thread: OnceLock<Thread>,
    /// Threads that wait until they may write.
    waiting_for_room: AtomicU32,
    /// Threads that wait until what they wrote was sent.
    waiting_for_end: AtomicU32,
}

/// Counts a thread among those that wait, as long as it lives.
pub(crate) struct Waiting<'a>(&'a AtomicU32);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Publishing {
    /// Makes the thread check the writer's core, which the caller must have unlocked: what was done there is seen.
    #[inline]
    pub(crate) fn tell(&self) {
        // A notification may be pending: the thread checks the core after it has taken that back.
        if self.state.load(Ordering::SeqCst) != TOLD && self.state.swap(TOLD, Ordering::SeqCst) == ASLEEP {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Counts this thread as one that waits for room, which the publishing thread announces.
    pub(crate) fn wait_for_room(&self) -> Waiting<'_> {
        self.waiting_for_room.fetch_add(1, Ordering::SeqCst);
        Waiting(&self.waiting_for_room)
    }

    /// Counts this thread as one that waits until everything was sent, which the publishing thread announces.
    pub(crate) fn wait_for_end(&self) -> Waiting<'_> {
        self.waiting_for_end.fetch_add(1, Ordering::SeqCst);
        Waiting(&self.waiting_for_end)
    }

    /// Whether a thread waits for room, and whether one waits until everything was sent.
    pub(super) fn waiting(&self) -> (bool, bool) {
        let is_any = |count: &AtomicU32| count.load(Ordering::SeqCst) > 0;
        (is_any(&self.waiting_for_room), is_any(&self.waiting_for_end))
    }

    /// Ends the thread after the send call that is under way.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.tell();
    }

    /// The thread runs from now on.
    pub(super) fn begin(&self) {
        let _ = self.thread.set(std::thread::current());
    }

    /// Begins a round of the thread, before any check: what is told from here on is checked in the next round. Whether
    /// there is one.
    pub(super) fn begin_round(&self) -> bool {
        self.state.store(AT_WORK, Ordering::SeqCst);
        !self.is_stopping.load(Ordering::SeqCst)
    }

    /// Waits until a thread tells, or until a time.
    pub(super) fn wait(&self, strategy: WaitStrategy, has_one_cpu: bool, until: Option<Time>) {
        if self.spin(strategy, has_one_cpu, until) {
            return;
        }
        let falls_asleep =
            self.state.compare_exchange(AT_WORK, ASLEEP, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        while falls_asleep && self.state.load(Ordering::SeqCst) == ASLEEP {
            match until.map(|until| until.since(clock::now())) {
                None => std::thread::park(),
                Some(left) if left.is_zero() => return,
                Some(left) => std::thread::park_timeout(left),
            }
        }
    }

    /// Spins as long as the strategy allows. Whether the wait is over.
    fn spin(&self, strategy: WaitStrategy, has_one_cpu: bool, until: Option<Time>) -> bool {
        if strategy == WaitStrategy::Block {
            return false;
        }
        let started = clock::now();
        let spin_until = strategy.spin_time().map_or(Time::MAX, |time| started + time);
        let until = until.unwrap_or(Time::MAX);
        let (mut now, mut yielded_at) = (started, started);
        while now < until {
            if now >= spin_until {
                return false;
            }
            for _ in 0..CHECKS_BETWEEN_CLOCK_READS {
                if self.state.load(Ordering::SeqCst) != AT_WORK {
                    return true;
                }
                std::hint::spin_loop();
            }
            if has_one_cpu && now.since(yielded_at) >= YIELD_EVERY {
                yielded_at = now;
                std::thread::yield_now();
            }
            now = clock::now();
        }
        true
    }
}
