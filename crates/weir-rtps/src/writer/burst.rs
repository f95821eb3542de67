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
        self.burst.last_activity = Some(now);
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
        let Some(coalescing) = self.config.coalescing else { return };
        let burst = &mut self.burst;
        let gap = coalescing.gap * core::mem::take(&mut burst.untimed).saturating_add(1);
        let is_quick = burst.last_activity.is_some_and(|last| now.since(last) <= gap);
        burst.quick_writes = if is_quick { burst.quick_writes.saturating_add(1) } else { 0 };
        burst.last_activity = Some(now);
        let is_burst = burst.quick_writes > config::COALESCING_AFTER_WRITES;
        if is_burst && burst.queued_since.is_none() && 2 * len <= config::SEGMENTED_MAX_BYTES {
            burst.queued_since = Some(now);
        }
    }
}
