//! The thread of metatraffic and timers: discovery, HEARTBEATs that are due, bursts that have waited long
//! enough, requests that were not answered.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use weir_rtps::outbox::Outbox;
use weir_rtps::time::Time;
use weir_udp::{RecvBatch, UdpSocket, Wait, Waker};

use super::Driver;
use super::endpoints::{ReaderEndpoint, WriterEndpoint};
use super::listeners::Call;
use super::transport::Sender;
use crate::clock;

/// How often the difference between wall clock and monotonic clock is measured.
const ADJUST_CLOCK_EVERY: Duration = Duration::from_secs(1);
/// `Timers::deadline` while the thread is at work and will look at all timers anyway.
const AT_WORK: u64 = 0;
/// How long the timers' thread waits for a writer that is sending, before it sees to the others.
const BUSY_WRITER: Duration = Duration::from_micros(500);

/// When the thread wakes up next.
pub(crate) struct Timers {
    waker: Waker,
    deadline: AtomicU64,
    /// Somebody has a timer that the thread may not have seen on its round.
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

    /// Makes sure that the thread wakes up at `at` or before. Costs a system call only when it would sleep
    /// longer.
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
}

/// The thread.
pub(crate) fn run(driver: &Driver) {
    // Bounded delays of a few hundred microseconds need timers that fire when they should.
    let _ = weir_udp::affinity::set_timer_slack_ns(1_000);
    let mut batch = RecvBatch::new(8);
    let mut work = Work { outbox: Outbox::new(), sender: Sender::default() };
    let mut adjusted_at = clock::now();
    let sockets: Vec<&UdpSocket> =
        std::iter::once(&driver.meta.unicast).chain(&driver.meta.multicast).collect();
    while !driver.is_stopping() {
        driver.timers.deadline.store(AT_WORK, Ordering::SeqCst);
        driver.timers.is_round_due.store(false, Ordering::SeqCst);
        let now = clock::now();
        if now.since(adjusted_at) >= ADJUST_CLOCK_EVERY {
            driver.wall_clock.adjust();
            adjusted_at = now;
        }
        let next = driver.timer_round(now, &mut work);
        driver.timers.deadline.store(next.0.max(1), Ordering::SeqCst);
        if driver.timers.is_round_due.swap(false, Ordering::SeqCst) {
            continue;
        }
        let timeout = if next == Time::MAX { ADJUST_CLOCK_EVERY } else { next.since(clock::now()) };
        let Ok(ready) = weir_udp::poll(&sockets, Some(&driver.timers.waker), Some(timeout)) else { continue };
        if ready.is_woken() {
            driver.timers.waker.drain();
        }
        for index in ready.readable() {
            receive_metatraffic(driver, sockets[index], &mut batch);
        }
    }
}

struct Work {
    outbox: Outbox,
    sender: Sender,
}

fn receive_metatraffic(driver: &Driver, socket: &UdpSocket, batch: &mut RecvBatch) {
    let limit = batch.capacity();
    let Ok(count) = socket.recv_batch(batch, limit, Wait::DontWait) else { return };
    if count == 0 {
        return;
    }
    driver.with_discovery(|core, now| {
        for message in batch.messages() {
            for datagram in message.datagrams() {
                core.handle_datagram(now, message.from, datagram);
            }
        }
    });
}

impl Driver {
    /// Does everything that is due and says when something is due next.
    fn timer_round(&self, now: Time, work: &mut Work) -> Time {
        let discovery = self.discovery_timeout(now);
        let table = self.routes.table();
        let assertions = self.assertions_timeout(now, &table);
        let writers = table.writers.values().filter_map(|writer| self.writer_timeout(writer, now)).min();
        let readers =
            table.readers.values().filter_map(|reader| self.reader_timeout(reader, now, work)).min();
        [discovery, assertions, writers, readers].into_iter().flatten().min().unwrap_or(Time::MAX)
    }

    fn writer_timeout(&self, writer: &WriterEndpoint, now: Time) -> Option<Time> {
        // A lone sample is sent under this lock, and a send call may wait for the kernel. Other writers do not wait for it, too.
        let Some(core) = writer.core.try_lock_for(BUSY_WRITER) else { return Some(now + BUSY_WRITER) };
        let next = core.next_timeout()?;
        drop(core);
        if next > now {
            return Some(next);
        }
        if writer.publishing.is_some() {
            let next = {
                let mut core = writer.core.lock();
                core.handle_timeout(now);
                core.next_timeout()
            };
            writer.tell_publisher();
            // What is due is the thread's, which arms the timer for what comes after.
            return next.filter(|at| *at > now);
        }
        // Samples leave in order: behind a send that is under way.
        let mut sending = writer.sending.lock();
        let sending = &mut *sending;
        let next = {
            let mut core = writer.core.lock();
            core.handle_timeout(now);
            core.poll_transmit(now, &mut sending.outbox);
            core.next_timeout()
        };
        if !sending.outbox.is_empty() {
            sending.sender.send(&self.channel.socket, &mut sending.outbox);
            sending.sent_at = Some(clock::now());
        }
        next
    }

    fn reader_timeout(&self, reader: &Arc<ReaderEndpoint>, now: Time, work: &mut Work) -> Option<Time> {
        let (next, is_writer_lost) = {
            let mut core = reader.core.lock();
            let before = core.not_alive_writers();
            if core.next_timeout()? <= now {
                core.handle_timeout(now);
                core.poll_transmit(now, &mut work.outbox);
            }
            (core.next_timeout(), core.not_alive_writers() > before)
        };
        if is_writer_lost {
            // Its instances are news for whoever waits for data.
            self.channel.announce_change();
            self.call([Call::News(Arc::clone(reader))]);
        }
        if !work.outbox.is_empty() {
            work.sender.send(&self.channel.socket, &mut work.outbox);
        }
        next
    }
}
