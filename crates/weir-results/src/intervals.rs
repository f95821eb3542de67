//! The 99th percentile of the median interval: a percentile over time.
//!
//! A host that takes the processor away for 10 ms in a second determines the 99th percentile of
//! that second: 1 % of the scheduled samples are due in that time. So the 99th percentile is also
//! computed for each short interval, and the median of these shows its value in most intervals. It
//! includes permanent effects, whatever their cause; it excludes effects in less than half of the
//! intervals.

use std::fmt;

use hdrhistogram::Histogram;

use crate::latency::rounded;

/// Collects latencies interval by interval. Recording allocates nothing.
pub struct IntervalRecorder {
    histogram: Histogram<u32>,
    p99s_ns: Vec<u64>,
}

impl IntervalRecorder {
    /// Fewer samples have no 99th percentile, and are counted with those of the next interval.
    pub const SAMPLES_MIN: u64 = 100;
    /// Minimum number of intervals for a meaningful median.
    const INTERVALS_MIN: usize = 3;
    /// Longer times count as this long: 60 s.
    const MAX_NS: u64 = 60_000_000_000;

    /// Creates an empty recorder with room for `intervals` intervals.
    ///
    /// # Panics
    /// Never: the bounds are constants that the histogram accepts.
    #[must_use]
    pub fn with_capacity(intervals: usize) -> Self {
        let histogram = Histogram::new_with_bounds(64, Self::MAX_NS, 2)
            .expect("64 ns to 60 s with 2 digits is a valid range");
        Self { histogram, p99s_ns: Vec::with_capacity(intervals) }
    }

    /// Records a latency in the current interval.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.histogram.saturating_record(latency_ns);
    }

    /// Ends the interval, if it has enough samples.
    pub fn end_interval(&mut self) {
        if self.histogram.len() >= Self::SAMPLES_MIN {
            self.p99s_ns.push(self.histogram.value_at_quantile(0.99));
            self.histogram.reset();
        }
    }

    /// Returns the median of the 99th percentiles of the completed intervals in microseconds,
    /// within 1 %.
    ///
    /// `None` with fewer than three intervals.
    #[must_use]
    pub fn median_p99_us(&self) -> Option<f64> {
        let mut sorted = self.p99s_ns.clone();
        sorted.sort_unstable();
        let middle = (sorted.len() >= Self::INTERVALS_MIN).then_some(sorted.len() / 2)?;
        Some(rounded(sorted[middle] as f64 / 1e3))
    }
}

impl fmt::Debug for IntervalRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntervalRecorder").field("intervals", &self.p99s_ns.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(intervals: impl IntoIterator<Item = Vec<u64>>) -> Option<f64> {
        let mut recorder = IntervalRecorder::with_capacity(8);
        for interval in intervals {
            interval.into_iter().for_each(|ns| recorder.record(ns));
            recorder.end_interval();
        }
        recorder.median_p99_us()
    }

    /// 200 samples of 10 us, the last `slow` of which take `us` instead.
    fn interval(slow: usize, us: u64) -> Vec<u64> {
        let mut all = vec![10_000; 200];
        all[200 - slow..].fill(us * 1_000);
        all
    }

    #[test]
    fn stalls_of_fewer_than_half_of_the_intervals_are_left_out_and_what_is_always_there_is_not() {
        let near =
            |found: Option<f64>, us: f64| assert!((found.unwrap() / us - 1.0).abs() < 0.01, "{found:?}");
        let stalled = [interval(200, 3_000), interval(100, 1_000)];
        near(recorded([0, 0, 0].map(|slow| interval(slow, 50)).into_iter().chain(stalled.clone())), 10.0);
        near(recorded([4, 4, 4].map(|slow| interval(slow, 50)).into_iter().chain(stalled)), 50.0);
        // One in a hundred is not slower than the 99th percentile.
        near(recorded([1, 1, 1].map(|slow| interval(slow, 50))), 10.0);
    }

    #[test]
    fn what_is_too_little_for_an_interval_is_counted_with_the_next() {
        assert_eq!(recorded(vec![interval(0, 0); 2]), None);
        assert_eq!(recorded(vec![vec![1_000; 50]; 5]), None);
        assert!(recorded(vec![vec![1_000; 50]; 6]).is_some());
    }
}
