//! The seconds of a subscriber, counted from its first sample.

use std::time::Duration;

use weir_measure::nanos;

use super::event::Interval;
use super::receiver::Tally;

/// How long an interval is.
const LENGTH: Duration = Duration::from_secs(1);

/// The current interval.
#[derive(Debug)]
pub(super) struct Intervals {
    next_ns: u64,
    has_begun: bool,
    /// The samples and the time that the previous interval ended with.
    last: Option<(u64, u64)>,
}

impl Intervals {
    /// The subscriber waits from `now_ns` on.
    pub(super) fn start(now_ns: u64) -> Self {
        Self { next_ns: now_ns + nanos(LENGTH), has_begun: false, last: None }
    }

    /// Begins with the first sample, so that the first interval is a whole one. True the first time.
    pub(super) fn begin(&mut self, first_ns: Option<u64>) -> bool {
        let Some(first_ns) = first_ns.filter(|_| !self.has_begun) else { return false };
        (self.has_begun, self.next_ns) = (true, first_ns + nanos(LENGTH));
        true
    }

    /// How long until the interval ends.
    pub(super) fn left(&self, now_ns: u64) -> Duration {
        Duration::from_nanos(self.next_ns.saturating_sub(now_ns))
    }

    /// Whether the interval has ended.
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    /// Ends the interval now, and begins another; `None` before the first sample.
    pub(super) fn next(&mut self, tally: &Tally, now_ns: u64) -> Option<Interval> {
        let is_late = now_ns.saturating_sub(self.next_ns) > nanos(LENGTH) / 2;
        // Another whole one after a stall: short ones have odd rates.
        self.next_ns = if is_late { now_ns } else { self.next_ns } + nanos(LENGTH);
        let first_ns = tally.first_ns?;
        let (samples, since_ns) = self.last.replace((tally.samples, now_ns)).unwrap_or((0, first_ns));
        Some(Interval {
            data_len: tally.data_len,
            samples: tally.samples,
            new_samples: tally.samples - samples,
            length: Duration::from_nanos(now_ns.saturating_sub(since_ns)),
            lost: tally.counts().lost,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// After `samples`, of which the first one arrived at `first_ns`.
    fn tally(samples: u64, first_ns: u64) -> Tally {
        let mut tally = Tally::default();
        (tally.samples, tally.first_ns) = (samples, Some(first_ns));
        tally
    }

    /// Ends the interval that ends then: new samples, and nanoseconds.
    fn ended(intervals: &mut Intervals, samples: u64, now_ns: u64) -> (u64, u64) {
        assert!(intervals.is_due(now_ns) && !intervals.is_due(now_ns - 1));
        let interval = intervals.next(&tally(samples, 5 * SECOND / 2), now_ns).unwrap();
        (interval.new_samples, nanos(interval.length))
    }

    #[test]
    fn the_first_interval_is_a_whole_one() {
        let mut intervals = Intervals::start(0);
        assert!(!intervals.begin(None));
        assert!(intervals.is_due(SECOND));
        assert_eq!(intervals.next(&Tally::default(), SECOND), None);
        // The first sample arrives within the third second.
        let first_ns = Some(5 * SECOND / 2);
        assert!(intervals.begin(first_ns) && !intervals.begin(first_ns));
        assert_eq!(intervals.left(3 * SECOND), Duration::from_millis(500));
        assert_eq!(ended(&mut intervals, 10, 7 * SECOND / 2), (10, SECOND));
        assert_eq!(ended(&mut intervals, 13, 9 * SECOND / 2), (3, SECOND));
    }

    #[test]
    fn a_long_interval_is_followed_by_a_whole_one() {
        let mut intervals = Intervals::start(0);
        intervals.begin(Some(5 * SECOND / 2));
        let late_ns = 10 * SECOND - 1;
        let long = intervals.next(&tally(7, 5 * SECOND / 2), late_ns).unwrap();
        assert_eq!(nanos(long.length), late_ns - 5 * SECOND / 2);
        assert_eq!(ended(&mut intervals, 9, late_ns + SECOND), (2, SECOND));
        // A slight delay does not add up.
        let next_ns = late_ns + 2 * SECOND;
        let slight = intervals.next(&tally(9, 5 * SECOND / 2), next_ns + 1000).unwrap();
        assert_eq!(nanos(slight.length), SECOND + 1000);
        assert_eq!(ended(&mut intervals, 9, next_ns + SECOND), (0, SECOND - 1000));
    }
}
