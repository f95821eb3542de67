//! The rate of a link: constant, or changing in steps at given times.

use core::time::Duration;

use crate::steps::Steps;

/// Bits per second over time. The steps are known in advance, so the time at which a packet leaves
/// is known when it is queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rate(Steps<u64>);

impl Rate {
    pub(crate) fn constant(bps: u64) -> Self {
        Self(Steps::constant(bps))
    }

    /// Changes the rate from `at` on, until the next step.
    pub(crate) fn change(&mut self, at: Duration, bps: u64) {
        self.0.change(at, bps);
    }

    /// Returns when the last of so many bytes has left, if the first one starts at `start`.
    pub(crate) fn done_at(&self, start: Duration, bytes: usize) -> Duration {
        let mut needed = bytes as u128 * 8 * NANOS_PER_SECOND;
        let mut at = start;
        for (bps, end) in self.0.from(start) {
            let bps = u128::from(bps);
            let available = end.map(|end| (end - at).as_nanos() * bps);
            match (available, end) {
                (Some(available), Some(end)) if available < needed => {
                    needed -= available;
                    at = end;
                }
                _ => return at + Duration::from_nanos(saturated(needed.div_ceil(bps))),
            }
        }
        at
    }

    /// Returns how many bytes leave between two times, rounded up.
    pub(crate) fn bytes_between(&self, start: Duration, end: Duration) -> u64 {
        let mut bits = 0;
        let mut at = start;
        for (bps, step_end) in self.0.from(start) {
            let until = step_end.map_or(end, |step_end| step_end.min(end));
            bits += until.saturating_sub(at).as_nanos() * u128::from(bps);
            at = until;
            if at >= end {
                break;
            }
        }
        saturated(bits.div_ceil(8 * NANOS_PER_SECOND))
    }
}

fn saturated(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

const NANOS_PER_SECOND: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_constant_rate_is_time_for_bytes() {
        let rate = Rate::constant(8_000_000);
        assert_eq!(rate.done_at(5 * MS, 1000), 6 * MS);
        assert_eq!(rate.bytes_between(5 * MS, 6 * MS), 1000);
        assert_eq!(Rate::constant(3).done_at(Duration::ZERO, 1), Duration::from_nanos(2_666_666_667));
    }

    #[test]
    fn a_packet_that_a_step_interrupts_leaves_at_both_rates() {
        let mut rate = Rate::constant(8_000_000);
        rate.change(10 * MS, 800_000);
        rate.change(20 * MS, 8_000_000);
        assert_eq!(rate.done_at(9 * MS, 1500), 15 * MS, "1000 bytes in 1 ms, 500 bytes in 5 ms");
        assert_eq!(rate.done_at(9 * MS, 3000), 21 * MS);
        assert_eq!(rate.bytes_between(9 * MS, 21 * MS), 3000);
        assert_eq!(rate.done_at(30 * MS, 1000), 31 * MS);
    }
}
