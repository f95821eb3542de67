//! When the samples of a writer are due.

use std::time::Duration;

use weir_measure::nanos;

use super::TopicGroup;

/// The schedule of one writer. All of its times follow from the start of the workload and the writer's number, so that
/// readers know when a sample was due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Timetable {
    first_ns: f64,
    interval_ns: f64,
    burst: u64,
    /// The first sample of the measured part.
    measured_from: u64,
    /// Samples until the end.
    count: u64,
}

impl Timetable {
    /// The schedule of writer `number`. Writers of the same rate are spread evenly over the interval, as timers of
    /// programs are that start at any time.
    pub(crate) fn new(
        topics: &TopicGroup,
        number: usize,
        start_ns: u64,
        warmup: Duration,
        duration: Duration,
    ) -> Self {
        let interval_ns = 1e9 / topics.rate_hz;
        let phase_ns = (number as f64 * GOLDEN_RATIO).fract() * interval_ns;
        let burst = u64::from(topics.burst);
        // Bursts before a time.
        let before = |ns: u64| ((ns as f64 - phase_ns) / interval_ns).ceil().max(0.0) as u64;
        Self {
            first_ns: start_ns as f64 + phase_ns,
            interval_ns,
            burst,
            measured_from: before(nanos(warmup)) * burst,
            count: before(nanos(warmup + duration)) * burst,
        }
    }

    /// When a sample is due.
    #[inline]
    pub(crate) fn due_ns(&self, sample: u64) -> u64 {
        (self.first_ns + (sample / self.burst) as f64 * self.interval_ns) as u64
    }

    /// The first sample of the measured part.
    pub(crate) fn measured_from(&self) -> u64 {
        self.measured_from
    }

    /// Samples until the end: their numbers are `0..count`.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

/// Multiples of it are spread evenly over an interval, however many there are.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Workload, examples};

    fn timetable(rate: f64, burst: u32, number: usize) -> Timetable {
        let text =
            examples::topic(&format!("size = 64\nrate = {rate}\nburst = {burst}\nfrom = 'a'\nto = 'b'"));
        let workload = Workload::parse("x", &text).unwrap();
        let (warmup, duration) = (Duration::from_millis(500), Duration::from_secs(2));
        Timetable::new(&workload.topics[0], number, 1_000_000_000, warmup, duration)
    }

    #[test]
    fn samples_of_a_burst_are_due_at_once_and_bursts_by_the_rate() {
        let it = timetable(10.0, 3, 0);
        let due = |sample| it.due_ns(sample) / 1_000_000;
        assert_eq!([0, 2, 3, 5, 6].map(due), [1_000, 1_000, 1_100, 1_100, 1_200]);
        assert_eq!((it.measured_from(), it.count()), (15, 75));
    }

    #[test]
    fn writers_are_spread_over_the_interval() {
        let mut phases: Vec<u64> =
            (0..10).map(|number| timetable(1.0, 1, number).due_ns(0) / 1_000_000).collect();
        phases.sort_unstable();
        assert!(phases.windows(2).all(|pair| (30..=250).contains(&(pair[1] - pair[0]))), "{phases:?}");
        assert!(phases.iter().all(|phase| (1_000..2_000).contains(phase)));
        // Whatever the phase, the measured part has as many samples as its length, or one less or more.
        for number in 0..10 {
            let it = timetable(1.0, 1, number);
            assert!((1..=3).contains(&(it.count() - it.measured_from())), "{it:?}");
            assert!(
                it.due_ns(it.count() - 1) < 3_500_000_000 && it.due_ns(it.measured_from()) >= 1_500_000_000
            );
        }
    }
}
