//! The state of what is held back: the open batch, and writes in quick succession.

use core::time::Duration;

use weir_wire::SequenceNumber;

use super::settings::BatchPolicy;
use crate::config;
use crate::time::Time;
use crate::window::charge;

/// The message that is being filled.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenBatch {
    /// The first sample.
    pub(super) first: SequenceNumber,
    /// Length so far, in bytes.
    pub(super) len: usize,
    /// Samples so far.
    pub(super) samples: u32,
    /// When the first sample was written.
    pub(super) since: Time,
}

impl OpenBatch {
    /// Returns whether the policy allows one more sample of `extra` bytes.
    #[inline]
    pub(super) fn takes(&self, policy: &BatchPolicy, extra: usize) -> bool {
        self.len + extra <= policy.max_bytes && self.samples < policy.max_samples
    }

    /// Returns the charge of `extra` more bytes.
    #[inline]
    pub(super) fn charge_of(&self, extra: usize) -> u64 {
        charge(self.len + extra) - charge(self.len)
    }
}

/// Detects writes in quick succession.
#[derive(Debug, Default)]
pub(super) struct Burst {
    pub(super) last_activity: Option<Time>,
    pub(super) quick_writes: u32,
    /// Writes since `last_activity` that did not read the clock.
    pub(super) untimed: u32,
    pub(super) queued_since: Option<Time>,
    /// When the current series of writes without a pause began.
    pub(super) run_since: Option<Time>,
    /// Smoothed duration of a send call in nanoseconds; `None` before the first.
    send_ns: Option<u64>,
    /// Shortest time between two writes of a burst in nanoseconds, which is the duration of a
    /// write. Slowly forgotten; 0 before the first.
    write_ns: u64,
    /// Two writes of this burst were further apart than a write takes.
    pub(super) has_spare_time: bool,
    /// Datagrams not handed out yet, and their bytes.
    pub(super) datagrams: usize,
    pub(super) bytes: usize,
}

impl Burst {
    /// Records a write.
    #[inline]
    pub(super) fn note(&mut self, now: Time, quick_writes: u32) {
        if quick_writes == 0
            && self.last_activity.is_none_or(|last| now.since(last) > config::COALESCING_PAUSE)
        {
            self.run_since = Some(now);
        }
        (self.quick_writes, self.untimed, self.last_activity) = (quick_writes, 0, Some(now));
    }

    /// Records a write to the open batch that did not read the clock.
    #[inline]
    pub(super) fn add_untimed(&mut self, bytes: usize) {
        self.bytes += bytes;
        // Saturates because nothing resets it without coalescing.
        self.untimed = self.untimed.saturating_add(1);
    }

    /// Returns the time in nanoseconds after which the next write sends what is held back.
    #[inline]
    pub(super) fn hold_ns(&self) -> u64 {
        let sends =
            if self.has_spare_time { config::COALESCING_SENDS_AT_LEISURE } else { config::COALESCING_SENDS };
        self.send_ns.map_or(DELAY_NS, |send_ns| send_ns * u64::from(sends))
    }

    /// Updates the smoothed duration of a send call.
    #[inline]
    pub(super) fn note_send_time(&mut self, took: Duration) {
        let took_ns = nanos(took.min(config::COALESCING_SEND_MAX));
        self.send_ns = Some(self.send_ns.map_or(took_ns, |mean| (mean * 7 + took_ns) / 8));
    }

    /// Derives from the time between two writes of a burst how long a write takes, and whether the
    /// application has time to spare.
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

/// Converts to nanoseconds. Saturates at over 500 years.
#[inline]
pub(super) const fn nanos(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(time.subsec_nanos() as u64)
}
