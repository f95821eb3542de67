//! Automatic coalescing: when samples that were written in quick succession are handed out together.
//!
//! A send call takes about as long for one datagram as for 64. So a sample that follows others quickly waits for the
//! next ones, about as long as a send takes: for the samples that would have been written during a send. A fast writer
//! fills a whole send in that time; a slower one sends fewer at a time, and no later.
//!
//! An application that writes as fast as it can gains from long bursts. One that follows a schedule only catches up with
//! what became due during a send: there is time between its writes then, and holding them back longer would only delay
//! them.

use core::time::Duration;

use weir_wire::SequenceNumber;

use super::burst::{DELAY_NS, nanos};
use super::settings::BatchPolicy;
use super::state::WriterCore;
use crate::config;
use crate::time::Time;

impl WriterCore {
    /// Ends the batch that is being filled: the next sample begins another one.
    pub fn seal(&mut self) {
        self.open = None;
    }

    /// Whether committed samples should be handed out now. `false` only while a burst is coalesced or a batch is filled;
    /// then [`WriterCore::next_timeout`] says until when at most.
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

    /// Whether a batch has waited for more samples as long as it may.
    #[inline]
    fn is_batch_overdue(&self, now: Time, policy: &BatchPolicy) -> bool {
        self.open.is_some_and(|open| now.since(open.since) >= policy.max_delay)
    }

    /// Whether a burst is so long that more would not fit one send.
    #[inline]
    fn is_burst_complete(&self) -> bool {
        let open = self.open.map_or(0, |open| open.len);
        let (datagrams, bytes) = (self.burst.datagrams - usize::from(open > 0), self.burst.bytes - open);
        datagrams >= config::SEGMENTS_MAX - 1
            || bytes + bytes.checked_div(datagrams).unwrap_or(0) > config::SEGMENTED_MAX_BYTES
    }

    /// The first sample that is not to be sent yet, because its batch may still grow.
    #[inline]
    pub(super) fn sendable_end(&self, now: Time) -> SequenceNumber {
        match (&self.open, &self.config.batch) {
            (Some(open), Some(policy)) if now.since(open.since) < policy.max_delay => open.first,
            _ => self.history.next(),
        }
    }

    /// When samples that are held back are sent although no write followed. Not earlier: a timer that interrupts the
    /// writer costs more than it gains. So the longer writes have followed each other without a pause, the later the
    /// timer. A batch that is being filled has a time of its own.
    pub(super) fn burst_timeout(&self) -> Option<Time> {
        let since = self.burst.queued_since?;
        let end = self.open.map_or(self.history.next(), |open| open.first);
        let run_ns = self.burst.run_since.map_or(0, |start| since.nanos_since(start));
        let delay_ns = DELAY_NS.max(run_ns / config::COALESCING_RUN_SHARE);
        // An application that fills batches has said how long samples may wait.
        let allowed = self.config.coalescing.map_or(Duration::ZERO, |coalescing| coalescing.delay_max);
        let allowed = self.config.batch.map_or(allowed, |policy| allowed.min(policy.max_delay));
        (self.unsent < end).then(|| since.plus_nanos(delay_ns.min(nanos(allowed))))
    }

    /// Whether the times of writes and sends matter: [`WriterCore::note_sent`] and [`WriterCore::note_send_time`] are to
    /// be called.
    #[inline]
    pub fn judges_pace(&self) -> bool {
        self.config.coalescing.is_some()
    }

    /// Takes note of the end of a send call for this writer, from which the gap to the next write is measured.
    #[inline]
    pub fn note_sent(&mut self, now: Time) {
        // A thread that sends without writing may report late.
        self.burst.last_activity = self.burst.last_activity.max(Some(now));
    }

    /// Takes note of how long a send call took: samples written within such a time may as well leave together.
    #[inline]
    pub fn note_send_time(&mut self, took: Duration) {
        self.burst.note_send_time(took);
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

    /// How many writes follow each other quickly with one that is made now; not counted without coalescing.
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
