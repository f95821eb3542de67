//! Automatic coalescing: decides when samples written in quick succession are handed out together.
//!
//! A send call takes about as long for one datagram as for 64. A sample that quickly follows others
//! is therefore held back for about the duration of a send, together with the samples that would be
//! written during that send. A fast writer fills a whole send in that time. A slower one sends
//! fewer samples at a time, and no later.
//!
//! Long bursts benefit an application that writes as fast as it can. One that follows a schedule
//! has time between writes and only catches up with what became due during a send. Holding its
//! samples back longer would only delay them.

use core::time::Duration;

use weir_wire::SequenceNumber;

use super::burst::{DELAY_NS, nanos};
use super::settings::BatchPolicy;
use super::state::WriterCore;
use crate::config;
use crate::time::Time;

impl WriterCore {
    /// Ends the open batch: the next sample begins another one.
    pub fn seal(&mut self) {
        self.open = None;
    }

    /// Returns whether committed samples should be handed out now.
    ///
    /// `false` only while a burst or a batch is held back. Then [`WriterCore::next_timeout`]
    /// returns until when at most.
    ///
    /// Always inlined: a function call per sample is measurable.
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

    /// Returns whether the open batch has waited for its maximum delay.
    #[inline]
    fn is_batch_overdue(&self, now: Time, policy: &BatchPolicy) -> bool {
        self.open.is_some_and(|open| now.since(open.since) >= policy.max_delay)
    }

    /// Returns whether a burst is so long that more samples would not fit one send.
    #[inline]
    fn is_burst_complete(&self) -> bool {
        let open = self.open.map_or(0, |open| open.len);
        let (datagrams, bytes) = (self.burst.datagrams - usize::from(open > 0), self.burst.bytes - open);
        datagrams >= config::SEGMENTS_MAX - 1
            || bytes + bytes.checked_div(datagrams).unwrap_or(0) > config::SEGMENTED_MAX_BYTES
    }

    /// Returns the first sample that must not be sent yet because its batch may still grow.
    #[inline]
    pub(super) fn sendable_end(&self, now: Time) -> SequenceNumber {
        match (&self.open, &self.config.batch) {
            (Some(open), Some(policy)) if now.since(open.since) < policy.max_delay => open.first,
            _ => self.history.next(),
        }
    }

    /// Returns when held-back samples are sent if no write follows.
    ///
    /// A timer that interrupts the writer costs more than it gains. So the delay grows with the
    /// time for which writes have followed each other without a pause. The open batch has its own
    /// timer.
    pub(super) fn burst_timeout(&self) -> Option<Time> {
        let since = self.burst.queued_since?;
        let end = self.open.map_or(self.history.next(), |open| open.first);
        let run_ns = self.burst.run_since.map_or(0, |start| since.nanos_since(start));
        let delay_ns = DELAY_NS.max(run_ns / config::COALESCING_RUN_SHARE);
        // The batch policy states how long samples may wait.
        let allowed = self.config.coalescing.map_or(Duration::ZERO, |coalescing| coalescing.delay_max);
        let allowed = self.config.batch.map_or(allowed, |policy| allowed.min(policy.max_delay));
        (self.unsent < end).then(|| since.plus_nanos(delay_ns.min(nanos(allowed))))
    }

    /// Returns whether the caller has to report times by [`WriterCore::note_sent`] and
    /// [`WriterCore::note_send_time`].
    #[inline]
    pub fn judges_pace(&self) -> bool {
        self.config.coalescing.is_some()
    }

    /// Records the end of a send call. The gap to the next write is measured from there.
    #[inline]
    pub fn note_sent(&mut self, now: Time) {
        // A thread that sends without writing may report late.
        self.burst.last_activity = self.burst.last_activity.max(Some(now));
    }

    /// Records the duration of a send call.
    #[inline]
    pub fn note_send_time(&mut self, took: Duration) {
        self.burst.note_send_time(took);
    }

    /// Decides whether the sample just committed belongs to a burst.
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

    /// Returns the length of the series of quick writes that a write at `now` would continue; 0
    /// without coalescing.
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
