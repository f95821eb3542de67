//! Automatic coalescing: writes in quick succession, whose samples leave together.
//!
//! A send call takes about as long whether one datagram leaves by it or 64. So a sample that follows others quickly waits
//! for the next ones, for about as long as sending takes: what would have come while a send was under way. A fast
//! writer fills a whole send in that time, a slower one sends fewer at a time and no later.
//!
//! An application that writes as fast as it can gains from long bursts. One that follows a schedule only has to catch up
//! with what became due during a send: then there is time between its writes, and holding them back longer would only make them
//! late.

use core::time::Duration;

use super::WriterCore;
use crate::config;
use crate::time::Time;

/// [`config::COALESCING_DELAY`] in nanoseconds.
const DELAY_NS: u64 = config::COALESCING_DELAY.as_nanos() as u64;

/// More than 500 years are as good as 500.
#[inline]
const fn nanos(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(time.subsec_nanos() as u64)
}

/// Whether writes come in quick succession.
#[derive(Debug, Default)]
pub(super) struct Burst {
    last_activity: Option<Time>,
    pub(super) quick_writes: u32,
    /// Writes since then without a look at the clock.
    pub(super) untimed: u32,
    pub(super) queued_since: Option<Time>,
    /// Since when writes have come without a pause.
    run_since: Option<Time>,
    /// How long a send call takes, nanoseconds, smoothed; `None` before the first.
    send_ns: Option<u64>,
    /// The shortest time between two writes of a burst, nanoseconds: what a write takes. Forgotten slowly; 0 before
    /// the first.
    write_ns: u64,
    /// Time passed between two writes of this burst that they did not need.
    has_spare_time: bool,
    /// Datagrams that were not handed out yet, and their bytes.
    pub(super) datagrams: usize,
    pub(super) bytes: usize,
}

impl Burst {
    /// Takes note of a write.
    #[inline]
    pub(super) fn note(&mut self, now: Time, quick_writes: u32) {
        if quick_writes == 0
            && self.last_activity.is_none_or(|last| now.since(last) > config::COALESCING_PAUSE)
        {
            self.run_since = Some(now);
        }
        (self.quick_writes, self.untimed, self.last_activity) = (quick_writes, 0, Some(now));
    }

    /// After this time, in nanoseconds, the next write sends what is held back.
    #[inline]
    fn hold_ns(&self) -> u64 {
        let sends =
            if self.has_spare_time { config::COALESCING_SENDS_AT_LEISURE } else { config::COALESCING_SENDS };
        self.send_ns.map_or(DELAY_NS, |send_ns| send_ns * u64::from(sends))
    }

    /// Learns from the time between two writes of a burst what a write takes, and whether the application has caught up.
    #[inline]
    fn note_gap(&mut self, gap_ns: u64) {
        if self.write_ns == 0 {
            self.write_ns = gap_ns;
        }
        self.has_spare_time |= gap_ns > config::COALESCING_LEISURE * self.write_ns;
        let forgotten = self.write_ns + self.write_ns / config::COALESCING_WRITES_REMEMBERED + 1;
        self.write_ns = gap_ns.min(forgotten);
    }
}

impl WriterCore {
    /// Whether samples that were committed should be handed out now. `false` only while a burst is being
    /// coalesced or a batch is filled; then [`WriterCore::next_timeout`] says until when at most.
    ///
    /// Always inlined: a call per sample shows.
    #[inline(always)]
    pub fn should_send(&self, now: Time) -> bool {
        if self.unsent == self.sendable_end(now) {
            return false;
        }
        let (Some(since), Some(coalescing)) = (self.burst.queued_since, self.config.coalescing) else {
            return true;
        };
        let hold_ns = match &self.config.batch {
            Some(policy) if self.is_batch_overdue(now, policy) => return true,
            Some(policy) => nanos(policy.max_delay).min(DELAY_NS),
            None => self.burst.hold_ns(),
        };
        now.nanos_since(since) >= hold_ns.min(nanos(coalescing.delay_max)) || self.is_burst_complete()
    }

    /// When what is held back is sent although no write came. Not earlier: a timer that interrupts the writer costs
    /// more than it gains. So the longer writes have come without a pause, the later it looks whether they still do. A
    /// batch that is being filled has a time of its own.
    pub(super) fn burst_timeout(&self) -> Option<Time> {
        let since = self.burst.queued_since?;
        let end = self.open.map_or(self.history.next(), |open| open.first);
        let run_ns = self.burst.run_since.map_or(0, |start| since.nanos_since(start));
        let delay_ns = DELAY_NS.max(run_ns / config::COALESCING_RUN_SHARE);
        // Who fills batches has said how long samples may wait.
        let allowed = self.config.coalescing.map_or(Duration::ZERO, |coalescing| coalescing.delay_max);
        let allowed = self.config.batch.map_or(allowed, |policy| allowed.min(policy.max_delay));
        (self.unsent < end).then(|| since.plus_nanos(delay_ns.min(nanos(allowed))))
    }

    /// Tells when a send call for this writer ended, so that the gap to the next write can be judged.
    #[inline]
    pub fn note_sent(&mut self, now: Time) {
        // Who sends without writing may be late with telling of it.
        self.burst.last_activity = self.burst.last_activity.max(Some(now));
    }

    /// Tells how long a send call took: what comes to be written in such a time may as well leave together.
    #[inline]
    pub fn note_send_time(&mut self, took: Duration) {
        let took_ns = nanos(took.min(config::COALESCING_SEND_MAX));
        self.burst.send_ns = Some(self.burst.send_ns.map_or(took_ns, |mean| (mean * 7 + took_ns) / 8));
    }

    /// Decides whether the sample that was just committed belongs to a burst.
    #[inline]
    pub(super) fn note_write(&mut self, now: Time, len: usize) {
        if self.config.coalescing.is_none() {
            return;
        }
        let quick_writes = self.quick_writes(now);
        let burst = &mut self.burst;
        if let (Some(_), Some(last)) = (burst.queued_since, burst.last_activity) {
            burst.note_gap(now.nanos_since(last));
        }
        burst.note(now, quick_writes);
        let is_burst = quick_writes > config::COALESCING_AFTER_WRITES;
        if is_burst && burst.queued_since.is_none() && 2 * len <= config::SEGMENTED_MAX_BYTES {
            burst.queued_since = Some(now);
            burst.has_spare_time = false;
        }
    }

    /// How many writes follow each other quickly with one that is made now. Without coalescing, nobody counts.
    #[inline]
    pub(super) fn quick_writes(&self, now: Time) -> u32 {
        let (Some(coalescing), Some(last)) = (self.config.coalescing, self.burst.last_activity) else {
            return 0;
        };
        let gap_ns = coalescing.gap.as_nanos() as u64;
        let is_quick =
            now.nanos_since(last) <= gap_ns.saturating_mul(u64::from(self.burst.untimed).saturating_add(1));
        if is_quick { self.burst.quick_writes.saturating_add(1) } else { 0 }
    }
}
