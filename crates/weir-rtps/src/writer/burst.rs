//! Automatic coalescing: writes in quick succession, whose samples leave together.
//!
//! A send call takes about as long whether one datagram leaves by it or 64. So a sample that follows others quickly waits
//! for the next ones, for about as long as sending takes: what would have come while a send was under way. A fast
//! writer fills a whole send in that time, a slower one sends fewer at a time and no later.

use core::time::Duration;

use super::WriterCore;
use crate::config;
use crate::time::Time;

/// Whether writes come in quick succession.
#[derive(Debug, Default)]
pub(super) struct Burst {
    last_activity: Option<Time>,
    pub(super) quick_writes: u32,
    /// Writes since then without a look at the clock.
    pub(super) untimed: u32,
    pub(super) queued_since: Option<Time>,
    /// How long a send call takes, smoothed; `None` before the first.
    send_time: Option<Duration>,
    /// Datagrams that were not handed out yet, and their bytes.
    pub(super) datagrams: usize,
    pub(super) bytes: usize,
}

impl Burst {
    /// Takes note of a write.
    #[inline]
    pub(super) fn note(&mut self, now: Time, quick_writes: u32) {
        (self.quick_writes, self.untimed, self.last_activity) = (quick_writes, 0, Some(now));
    }

    /// After this time the next write sends what is held back.
    #[inline]
    fn hold(&self, delay_max: Duration) -> Duration {
        self.send_time.map_or(delay_max, |time| delay_max.min(time * config::COALESCING_SENDS))
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
        let hold = match &self.config.batch {
            Some(policy) if self.is_batch_overdue(now, policy) => return true,
            Some(_) => self.hold_max(),
            None => self.burst.hold(coalescing.delay_max),
        };
        now.since(since) >= hold || self.is_burst_complete()
    }

    /// When what is held back is sent although no write came. Not earlier: a timer that interrupts the writer costs
    /// more than it gains. A batch that is being filled has a time of its own.
    pub(super) fn burst_timeout(&self) -> Option<Time> {
        let since = self.burst.queued_since?;
        let end = self.open.map_or(self.history.next(), |open| open.first);
        (self.unsent < end).then(|| since + self.hold_max())
    }

    /// Longest time that a burst is held back. Who fills batches has said how long samples may wait.
    fn hold_max(&self) -> Duration {
        let delay_max = self.config.coalescing.map_or(Duration::ZERO, |coalescing| coalescing.delay_max);
        self.config.batch.map_or(delay_max, |policy| delay_max.min(policy.max_delay))
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
        let took = took.min(config::COALESCING_SEND_MAX);
        self.burst.send_time = Some(self.burst.send_time.map_or(took, |mean| (mean * 7 + took) / 8));
    }

    /// Decides whether the sample that was just committed belongs to a burst.
    #[inline]
    pub(super) fn note_write(&mut self, now: Time, len: usize) {
        if self.config.coalescing.is_none() {
            return;
        }
        let quick_writes = self.quick_writes(now);
        let burst = &mut self.burst;
        burst.note(now, quick_writes);
        let is_burst = quick_writes > config::COALESCING_AFTER_WRITES;
        if is_burst && burst.queued_since.is_none() && 2 * len <= config::SEGMENTED_MAX_BYTES {
            burst.queued_since = Some(now);
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
