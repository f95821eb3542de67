//! Wakes the publishing thread of an asynchronous writer, and counts the threads that wait for it.
//!
//! A writing thread locks the core, leaves the sample in the history, and continues. Notifying the
//! publishing thread takes a system call only if it sleeps. While it sends, one atomic operation
//! notifies it, or none if a notification is pending.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use weir_rtps::time::Time;
use weir_udp::Waker;

use crate::clock;
use crate::wait_strategy::{WaitStrategy, YIELD_EVERY};

/// The thread is running, and no notification arrived since its last check.
const AT_WORK: u8 = 0;
/// A notification is pending.
const NOTIFIED: u8 = 1;
/// The thread sleeps, or is about to.
const ASLEEP: u8 = 2;

/// Checks by a spinning thread between two clock reads.
const CHECKS_BETWEEN_CLOCK_READS: u32 = 64;

/// The state shared by a writer's publishing thread and the threads that write.
#[derive(Default)]
pub(crate) struct Publishing {
    state: AtomicU8,
    is_stopping: AtomicBool,
    /// Set when the thread starts, or when the application is to poll.
    sender: OnceLock<Sending>,
    /// Where the application polls: the end of a pause within a large sample; 0: there is none.
    paused_until: AtomicU64,
    /// Threads that wait for room to write.
    waiting_for_room: AtomicU32,
    /// Threads that wait until their samples were sent.
    waiting_for_end: AtomicU32,
}

/// What sends.
enum Sending {
    Thread(Thread),
    /// The application does when it polls.
    Poll(Arc<Waker>),
}

/// Counts a waiting thread until dropped.
pub(crate) struct Waiting<'a>(&'a AtomicU32);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Publishing {
    /// Makes the thread check the writer's core. The caller must have unlocked the core, so that
    /// the thread sees its changes.
    #[inline]
    pub(crate) fn notify(&self) {
        // If a notification is pending, the thread checks the core after it has reset the state, so
        // none is needed.
        if self.state.load(Ordering::SeqCst) != NOTIFIED
            && self.state.swap(NOTIFIED, Ordering::SeqCst) == ASLEEP
        {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        match self.sender.get() {
            Some(Sending::Thread(thread)) => thread.unpark(),
            Some(Sending::Poll(waker)) => waker.wake(),
            None => {}
        }
    }

    /// Has the application send when it polls.
    pub(super) fn begin_polled(&self, waker: Arc<Waker>) {
        let _ = self.sender.set(Sending::Poll(waker));
        self.state.store(ASLEEP, Ordering::SeqCst);
    }

    /// Returns whether the application is to send now, and begins a round.
    pub(super) fn begin_polled_round(&self, now: Time) -> bool {
        let paused_until = self.paused_until.load(Ordering::SeqCst);
        let is_over = paused_until != 0 && paused_until <= now.0;
        self.state.swap(AT_WORK, Ordering::SeqCst) == NOTIFIED || is_over
    }

    /// Ends a round, in which the pause until then has begun. Returns when the next one is due.
    pub(super) fn end_polled_round(&self, has_sent: bool, paused_until: Option<Time>) -> Option<Time> {
        if has_sent {
            self.paused_until.store(paused_until.map_or(0, |until| until.0), Ordering::SeqCst);
        }
        // What was notified in the meantime is due at once.
        let is_asleep =
            self.state.compare_exchange(AT_WORK, ASLEEP, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        let paused_until = self.paused_until.load(Ordering::SeqCst);
        if is_asleep { (paused_until != 0).then_some(Time(paused_until)) } else { Some(Time::ZERO) }
    }

    /// Counts this thread as waiting for room. The publishing thread then announces room.
    pub(crate) fn wait_for_room(&self) -> Waiting<'_> {
        self.waiting_for_room.fetch_add(1, Ordering::SeqCst);
        Waiting(&self.waiting_for_room)
    }

    /// Counts this thread as waiting until everything was sent. The publishing thread then
    /// announces that.
    pub(crate) fn wait_for_end(&self) -> Waiting<'_> {
        self.waiting_for_end.fetch_add(1, Ordering::SeqCst);
        Waiting(&self.waiting_for_end)
    }

    /// Returns whether a thread waits for room, and whether one waits until everything was sent.
    pub(super) fn waiting(&self) -> (bool, bool) {
        let is_any = |count: &AtomicU32| count.load(Ordering::SeqCst) > 0;
        (is_any(&self.waiting_for_room), is_any(&self.waiting_for_end))
    }

    /// Ends the thread after the send call in progress.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.notify();
    }

    /// Marks the current thread as the publishing thread.
    pub(super) fn begin(&self) {
        let _ = self.sender.set(Sending::Thread(std::thread::current()));
    }

    /// Begins a round, before any check. Notifications from here on are handled in the next round.
    /// Returns `false` if the thread is to end.
    pub(super) fn begin_round(&self) -> bool {
        self.state.store(AT_WORK, Ordering::SeqCst);
        !self.is_stopping.load(Ordering::SeqCst)
    }

    /// Waits for a notification, or until `until`.
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

    /// Spins as long as the strategy allows. Returns whether the wait is over.
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
