//! The rate of a link: constant, or changing in steps at given times.

use core::time::Duration;

/// Bits per second over time. The steps are known in advance, so the time at which a packet leaves
/// is known when it is queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rate {
    /// Start and rate of each step, in order of time. The first one starts at zero.
    steps: Vec<(Duration, u64)>,
}

impl Rate {
    pub(crate) fn constant(bps: u64) -> Self {
        Self { steps: vec![(Duration::ZERO, bps)] }
    }

    /// Changes the rate from `at` on, until the next step.
    pub(crate) fn change(&mut self, at: Duration, bps: u64) {
        let index = self.steps.partition_point(|(start, _)| *start < at);
        if self.steps.get(index).is_some_and(|(start, _)| *start == at) {
            self.steps.remove(index);
        }
        self.steps.insert(index, (at, bps));
    }

    /// Returns when the last of so many bytes has left, if the first one starts at `start`.
    pub(crate) fn done_at(&self, start: Duration, bytes: usize) -> Duration {
        let mut needed = bytes as u128 * 8 * NANOS_PER_SECOND;
        let mut at = start;
        for (bps, end) in self.steps_from(start) {
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
        for (bps, step_end) in self.steps_from(start) {
            let until = step_end.map_or(end, |step_end| step_end.min(end));
            bits += until.saturating_sub(at).as_nanos() * u128::from(bps);
            at = until;
            if at >= end {
                break;
            }
        }
        saturated(bits.div_ceil(8 * NANOS_PER_SECOND))
    }

    /// The rates from the step at `time` on, each with its end.
    fn steps_from(&self, time: Duration) -> impl Iterator<Item = (u64, Option<Duration>)> {
        let first = self.steps.partition_point(|(start, _)| *start <= time).saturating_sub(1);
        let ends = self.steps.iter().skip(first + 1).map(|(start, _)| Some(*start)).chain([None]);
        self.steps.iter().skip(first).map(|(_, bps)| *bps).zip(ends)
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

    #[test]
    fn steps_may_come_in_any_order_and_replace_each_other() {
        let mut one = Rate::constant(1);
        one.change(2 * MS, 3);
        one.change(MS, 2);
        one.change(MS, 5);
        assert_eq!(one.steps, [(Duration::ZERO, 1), (MS, 5), (2 * MS, 3)]);
    }
}
