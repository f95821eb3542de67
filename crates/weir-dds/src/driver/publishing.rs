//! The thread of a writer that publishes asynchronously: it sends what others write.
//!
//! Whoever writes locks the writer's core, leaves the sample in the history, and goes on. Only when the thread sleeps does
//! that take a system call; while it sends, it is told by one store, or by none when it was told already. It runs no code
//! of the application: it never receives, so it calls no listener, and a listener may write and wait as usual.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, Thread};

use weir_rtps::time::Time;

use super::Driver;
use super::channel::YIELD_EVERY;
use super::endpoints::WriterEndpoint;
use crate::clock;
use crate::error::Result;
use crate::wait_strategy::WaitStrategy;

/// The thread is at work, and nobody had anything for it since it last looked.
const AT_WORK: u8 = 0;
/// There is something to look at.
const TOLD: u8 = 1;
/// It sleeps, or is about to.
const ASLEEP: u8 = 2;

/// Looks of a spinning thread between two reads of the clock.
const LOOKS_BETWEEN_CLOCK_READS: u32 = 64;

/// How a writer's thread is told what there is, and who waits for it.
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
    /// Makes the thread look at the writer's core, which must not be locked by the caller: what was done there before is
    /// seen.
    #[inline]
    pub(crate) fn tell(&self) {
        // Whoever told it before was not heard yet: the thread looks after it has taken the word back.
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

    /// Has the thread tell who waits of room that it makes.
    pub(crate) fn wait_for_room(&self) -> Waiting<'_> {
        self.waiting_for_room.fetch_add(1, Ordering::SeqCst);
        Waiting(&self.waiting_for_room)
    }

    /// Has the thread tell who waits of what it has sent.
    pub(crate) fn wait_for_end(&self) -> Waiting<'_> {
        self.waiting_for_end.fetch_add(1, Ordering::SeqCst);
        Waiting(&self.waiting_for_end)
    }

    /// Ends the thread after the send call that is under way.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.tell();
    }

    /// Waits until somebody tells, or until a time.
    fn wait(&self, driver: &Driver, until: Option<Time>) {
        if self.spin(driver, until) {
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

    /// Spins as long as the strategy says. Whether the wait is over.
    fn spin(&self, driver: &Driver, until: Option<Time>) -> bool {
        if driver.wait == WaitStrategy::Block {
            return false;
        }
        let started = clock::now();
        let spin_until = driver.wait.spin_time().map_or(Time::MAX, |time| started + time);
        let until = until.unwrap_or(Time::MAX);
        let (mut now, mut yielded_at) = (started, started);
        while now < until {
            if now >= spin_until {
                return false;
            }
            for _ in 0..LOOKS_BETWEEN_CLOCK_READS {
                if self.state.load(Ordering::SeqCst) != AT_WORK {
                    return true;
                }
                std::hint::spin_loop();
            }
            if driver.has_one_cpu && now.since(yielded_at) >= YIELD_EVERY {
                yielded_at = now;
                std::thread::yield_now();
            }
            now = clock::now();
        }
        true
    }
}

impl Driver {
    /// Starts the thread of a writer that publishes asynchronously; `None` for others.
    pub(crate) fn start_publishing(
        self: &Arc<Self>,
        writer: &Arc<WriterEndpoint>,
    ) -> Result<Option<JoinHandle<()>>> {
        if writer.publishing.is_none() {
            return Ok(None);
        }
        let (driver, writer) = (Arc::clone(self), Arc::clone(writer));
        Self::thread("weir-publish", move || run(&driver, &writer)).map(Some)
    }

    /// Sends what is due. `Some`: the end of a pause, after which there is more.
    fn publish(&self, writer: &WriterEndpoint, publishing: &Publishing) -> Option<Time> {
        let mut guard = writer.sending.lock();
        let sending = &mut *guard;
        let mut core = writer.core.lock();
        if let Some(took) = sending.send_time.take() {
            core.note_send_time(took);
        }
        let now = clock::now();
        core.poll_published(now, &mut sending.outbox);
        let paused_until = core.paused_until();
        let next = core.next_timeout().filter(|_| paused_until.is_none());
        let (makes_room, is_amid_sample) = (core.makes_room_by_sending(), core.is_amid_sample());
        drop(core);
        if !sending.outbox.is_empty() {
            sending.sender.send(&self.channel.socket, &mut sending.outbox);
            sending.send_time = Some(clock::now().since(now));
        }
        drop(guard);
        if let Some(at) = next {
            self.timers.arm(at);
        }
        let makes_room = makes_room && publishing.waiting_for_room.load(Ordering::SeqCst) > 0;
        if makes_room || (!is_amid_sample && publishing.waiting_for_end.load(Ordering::SeqCst) > 0) {
            self.channel.announce_change();
        }
        paused_until
    }
}

/// The thread.
fn run(driver: &Driver, writer: &WriterEndpoint) {
    let Some(publishing) = &writer.publishing else { return };
    let _ = publishing.thread.set(std::thread::current());
    // The pauses in large samples are shorter than the usual slack is worth.
    let _ = weir_udp::affinity::set_timer_slack_ns(1_000);
    loop {
        // Before any look: what is told from here on is looked at in the next round.
        publishing.state.store(AT_WORK, Ordering::SeqCst);
        if publishing.is_stopping.load(Ordering::SeqCst) {
            return;
        }
        let until = driver.publish(writer, publishing);
        publishing.wait(driver, until);
    }
}
