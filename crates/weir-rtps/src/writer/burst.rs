//! What is held back: the batch that is being filled, and writes in quick succession.

use core::time::Duration;

use weir_wire::SequenceNumber;

use super::settings::BatchPolicy;
use crate::config;
use crate::time::Time;
use crate::window::charge;

/// The message that is being filled.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenBatch {
    /// Its first sample.
    pub(super) first: SequenceNumber,
    /// Its length so far, in bytes.
    pub(super) len: usize,
    /// Its samples so far.
    pub(super) samples: u32,
    /// When its first sample was written.
    pub(super) since: Time,
}

impl OpenBatch {
    /// Whether `extra` more bytes, one more sample, are still within the policy.
    #[inline]
    pub(super) fn takes(&self, policy: &BatchPolicy, extra: usize) -> bool {
        self.len + extra <= policy.max_bytes && self.samples < policy.max_samples
    }

    /// What `extra` more bytes are charged against the window.
    #[inline]
    pub(super) fn charge_of(&self, extra: usize) -> u64 {
        charge(self.len + extra) - charge(self.len)
    }
}

/// Whether writes follow each other quickly.
#[derive(Debug, Default)]
pub(super) struct Burst {
    pub(super) last_activity: Option<Time>,
    pub(super) quick_writes: u32,
    /// Writes since `last_activity` without a clock read.
    pub(super) untimed: u32,
    pub(super) queued_since: Option<Time>,
    /// Since when writes have followed each other without a pause.
    pub(super) run_since: Option<Time>,
    /// How long a send call takes, nanoseconds, smoothed; `None` before the first.
    send_ns: Option<u64>,
    /// The shortest time between two writes of a burst, nanoseconds: what a write takes. Forgotten slowly; 0 before the
    /// first.
    write_ns: u64,
    /// Time passed between two writes of this burst that they did not need.
    pub(super) has_spare_time: bool,
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

    /// Takes note of a write into the open batch whose time is not known.
    #[inline]
    pub(super) fn add_untimed(&mut self, bytes: usize) {
        self.bytes += bytes;
        // Without coalescing, nothing resets it to 0.
        self.untimed = self.untimed.saturating_add(1);
    }

    /// After this time, in nanoseconds, the next write sends what is held back.
    #[inline]
    pub(super) fn hold_ns(&self) -> u64 {
        let sends =
            if self.has_spare_time { config::COALESCING_SENDS_AT_LEISURE } else { config::COALESCING_SENDS };
        self.send_ns.map_or(DELAY_NS, |send_ns| send_ns * u64::from(sends))
    }

    /// Learns how long a send call takes.
    #[inline]
    pub(super) fn note_send_time(&mut self, took: Duration) {
        let took_ns = nanos(took.min(config::COALESCING_SEND_MAX));
        self.send_ns = Some(self.send_ns.map_or(took_ns, |mean| (mean * 7 + took_ns) / 8));
    }

    /// Learns from the time between two writes of a burst what a write takes, and whether the application has caught up.
    #[inline]
    pub(super) fn note_gap(&mut self, gap_ns: u64) {
        if self.write_ns == 0 {
            self.write_ns = gap_ns;
        }
        self.has_spare_time |= gap_ns > config::COALESCING_LEISURE * self.write_ns;
        let forgotten = self.write_ns + self.write_ns / config::COALESCING_WRITES_REMEMBERED + 1;
        self.write_ns = gap_ns.min(forgotten);
    }
}

/// [`config::COALESCING_DELAY`] in nanoseconds.
pub(super) const DELAY_NS: u64 = config::COALESCING_DELAY.as_nanos() as u64;

/// A time in nanoseconds; more than 500 years count as 500.
#[inline]
pub(super) const fn nanos(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(time.subsec_nanos() as u64)
}
