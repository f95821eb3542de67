//! Recorder of round trips and its summary.
//!
//! A histogram provides the percentiles (HdrHistogram, 3 significant digits, at most 60 s); mean,
//! standard deviation, minimum and maximum are exact.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::LatencyHistogram;
use crate::names::names;

/// What a latency measures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LatencyKind {
    /// The round trip.
    #[serde(rename = "rtt")]
    Rtt,
    /// Half of the round trip: the usual estimate of one way between two hosts without a common
    /// clock.
    #[default]
    #[serde(rename = "rtt/2")]
    HalfRtt,
    /// One way, measured by one clock that both ends read, from the intended send time.
    #[serde(rename = "one-way")]
    OneWay,
}

names!(LatencyKind { Rtt = "rtt", HalfRtt = "rtt/2", OneWay = "one-way" });

impl LatencyKind {
    /// What part of the recorded time is reported.
    #[must_use]
    pub const fn divisor(self) -> u64 {
        match self {
            Self::Rtt | Self::OneWay => 1,
            Self::HalfRtt => 2,
        }
    }
}

/// The percentiles that a summary carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Percentile {
    /// The median.
    P50,
    /// One in ten is slower.
    P90,
    /// One in a hundred is slower.
    P99,
    /// One in ten thousand is slower.
    P99_99,
    /// One in a million is slower.
    P99_9999,
}

impl Percentile {
    /// All of them, from the median up.
    pub const ALL: [Self; 5] = [Self::P50, Self::P90, Self::P99, Self::P99_99, Self::P99_9999];

    /// The share of samples at or below it, 0 to 1.
    #[must_use]
    pub const fn quantile(self) -> f64 {
        self.properties().0
    }

    /// The minimum number of samples for one of them to be above it: `1 / (1 - quantile)`.
    #[must_use]
    pub const fn count_needed(self) -> u64 {
        self.properties().1
    }

    /// The heading in tables, e.g. `99.99%`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        self.properties().2
    }

    const fn properties(self) -> (f64, u64, &'static str) {
        match self {
            Self::P50 => (0.5, 2, "50%"),
            Self::P90 => (0.9, 10, "90%"),
            Self::P99 => (0.99, 100, "99%"),
            Self::P99_99 => (0.9999, 10_000, "99.99%"),
            Self::P99_9999 => (0.999_999, 1_000_000, "99.9999%"),
        }
    }
}

/// The summary of a latency case. All times in microseconds; field names are the results format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// What the times measure.
    pub kind: LatencyKind,
    /// Round trips that completed.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation of the whole population.
    pub std: f64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.99th percentile.
    pub p99_99: f64,
    /// 99.9999th percentile.
    pub p99_9999: f64,
    /// Round trips that did not complete.
    pub lost: u64,
    /// Median of the 99th percentiles of a schedule's intervals, see
    /// [`IntervalRecorder`](crate::IntervalRecorder); `None` without a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_of_intervals: Option<f64>,
}

impl LatencySummary {
    /// Returns the value of a percentile in microseconds.
    #[must_use]
    pub const fn percentile(&self, percentile: Percentile) -> f64 {
        match percentile {
            Percentile::P50 => self.p50,
            Percentile::P90 => self.p90,
            Percentile::P99 => self.p99,
            Percentile::P99_99 => self.p99_99,
            Percentile::P99_9999 => self.p99_9999,
        }
    }

    /// Returns whether there were enough samples for `percentile` to differ from the maximum.
    #[must_use]
    pub const fn supports(&self, percentile: Percentile) -> bool {
        self.count >= percentile.count_needed()
    }
}

/// Collects round-trip times in nanoseconds. Recording allocates nothing.
#[derive(Debug, Clone)]
pub struct LatencyRecorder {
    histogram: Histogram<u64>,
    count: u64,
    lost: u64,
    sum_ns: u128,
    sum_of_squares_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl LatencyRecorder {
    /// The longest time that percentiles can represent: 60 s. Longer ones count as this long there;
    /// mean and maximum stay exact.
    pub const MAX_NS: u64 = 60_000_000_000;

    /// Creates an empty recorder.
    ///
    /// # Panics
    /// Never: the bounds are constants that the histogram accepts.
    #[must_use]
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, Self::MAX_NS, 3)
            .expect("1 ns to 60 s with 3 digits is a valid range");
        Self { histogram, count: 0, lost: 0, sum_ns: 0, sum_of_squares_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// Records one round trip of `rtt_ns` nanoseconds.
    #[inline]
    pub fn record(&mut self, rtt_ns: u64) {
        self.histogram.saturating_record(rtt_ns);
        self.count += 1;
        self.sum_ns += u128::from(rtt_ns);
        self.sum_of_squares_ns =
            self.sum_of_squares_ns.saturating_add(u128::from(rtt_ns) * u128::from(rtt_ns));
        self.min_ns = self.min_ns.min(rtt_ns);
        self.max_ns = self.max_ns.max(rtt_ns);
    }

    /// Records a round trip that did not complete.
    pub fn record_lost(&mut self) {
        self.lost += 1;
    }

    /// Returns the number of round trips recorded.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the time in nanoseconds that this share (0 to 1) of the recorded times does not
    /// exceed; 0 if empty.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> u64 {
        if self.count == 0 {
            return 0;
        }
        self.histogram.value_at_quantile(share).clamp(self.min_ns, self.max_ns)
    }

    /// Adds the recorded times of `other`.
    ///
    /// # Panics
    /// Never: all recorders have the same bounds.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("all recorders have the same bounds");
        self.count += other.count;
        self.lost += other.lost;
        self.sum_ns += other.sum_ns;
        self.sum_of_squares_ns = self.sum_of_squares_ns.saturating_add(other.sum_of_squares_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Clears everything and keeps the memory: for the end of a warm-up.
    pub fn clear(&mut self) {
        self.histogram.reset();
        self.count = 0;
        self.lost = 0;
        self.sum_ns = 0;
        self.sum_of_squares_ns = 0;
        self.min_ns = u64::MAX;
        self.max_ns = 0;
    }

    /// Returns the distribution; `None` if nothing was recorded.
    #[must_use]
    pub fn histogram(&self, kind: LatencyKind) -> Option<LatencyHistogram> {
        (self.count > 0).then(|| LatencyHistogram::encode(&self.histogram, kind.divisor()))
    }

    /// Returns the summary in microseconds; if nothing was recorded, all times are zero.
    ///
    /// A percentile is never outside the exact minimum and maximum, although the histogram rounds.
    #[must_use]
    pub fn summary(&self, kind: LatencyKind) -> LatencySummary {
        if self.count == 0 {
            return LatencySummary { kind, lost: self.lost, ..LatencySummary::default() };
        }
        let us = |ns: f64| rounded(ns / (1e3 * kind.divisor() as f64));
        let percentile = |percentile: Percentile| {
            let ns = self.histogram.value_at_quantile(percentile.quantile());
            us(ns.clamp(self.min_ns, self.max_ns) as f64)
        };
        let count = self.count as f64;
        let mean_ns = self.sum_ns as f64 / count;
        let variance_ns = (self.sum_of_squares_ns as f64 / count - mean_ns * mean_ns).max(0.0);
        LatencySummary {
            kind,
            count: self.count,
            mean: us(mean_ns),
            std: us(variance_ns.sqrt()),
            min: us(self.min_ns as f64),
            max: us(self.max_ns as f64),
            p50: percentile(Percentile::P50),
            p90: percentile(Percentile::P90),
            p99: percentile(Percentile::P99),
            p99_99: percentile(Percentile::P99_99),
            p99_9999: percentile(Percentile::P99_9999),
            lost: self.lost,
            p99_of_intervals: None,
        }
    }
}

impl Default for LatencyRecorder {
    fn default() -> Self {
        Self::new()
    }
}

/// Rounds to thousandths, the resolution of the measurement.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(values: impl IntoIterator<Item = u64>) -> LatencyRecorder {
        let mut recorder = LatencyRecorder::new();
        values.into_iter().for_each(|ns| recorder.record(ns));
        recorder
    }

    #[test]
    fn exact_figures_of_a_small_population() {
        let summary =
            recorded([2_000, 4_000, 4_000, 4_000, 5_000, 5_000, 7_000, 9_000]).summary(LatencyKind::Rtt);
        assert_eq!((summary.count, summary.lost), (8, 0));
        assert_eq!((summary.mean, summary.std), (5.0, 2.0));
        assert_eq!((summary.min, summary.max), (2.0, 9.0));
    }

    #[test]
    fn half_a_round_trip_halves_every_time() {
        let recorder = recorded((1..=1000).map(|n| n * 1000));
        let (whole, half) = (recorder.summary(LatencyKind::Rtt), recorder.summary(LatencyKind::HalfRtt));
        assert_eq!(half.kind.name(), "rtt/2");
        assert_eq!((half.min, half.max, half.mean), (whole.min / 2.0, whole.max / 2.0, whole.mean / 2.0));
        for percentile in Percentile::ALL {
            assert!((half.percentile(percentile) * 2.0 - whole.percentile(percentile)).abs() < 0.002);
        }
    }

    #[test]
    fn percentiles_are_within_a_thousandth_of_the_truth() {
        let summary = recorded((1..=1_000_000).map(|n| n * 10)).summary(LatencyKind::Rtt);
        for percentile in Percentile::ALL {
            let truth_us = percentile.quantile() * 10_000.0;
            let value = summary.percentile(percentile);
            assert!(
                (value / truth_us - 1.0).abs() < 1e-3,
                "{}: {value} is not {truth_us}",
                percentile.label()
            );
        }
    }

    #[test]
    fn percentiles_stay_between_the_exact_minimum_and_maximum() {
        let summary = recorded([123_456_789]).summary(LatencyKind::Rtt);
        for percentile in Percentile::ALL {
            assert_eq!(summary.percentile(percentile), 123_456.789);
        }
    }

    #[test]
    fn a_time_beyond_the_bound_saturates_percentiles_but_not_the_maximum() {
        let summary = recorded([LatencyRecorder::MAX_NS * 10]).summary(LatencyKind::Rtt);
        assert_eq!(summary.max, 600e6);
        assert!(recorded([u64::MAX, u64::MAX]).summary(LatencyKind::Rtt).std.is_finite());
        let summary = recorded([0, LatencyRecorder::MAX_NS * 10]).summary(LatencyKind::Rtt);
        assert!((summary.p99 / 60e6 - 1.0).abs() < 1e-3, "{}", summary.p99);
    }

    #[test]
    fn merging_equals_recording_everything_in_one() {
        let (low, high) = (recorded(1..=5000), recorded(5000..=90_000));
        let mut merged = low;
        merged.merge(&high);
        merged.record_lost();
        let mut all = recorded((1..=5000).chain(5000..=90_000));
        all.record_lost();
        assert_eq!(merged.summary(LatencyKind::HalfRtt), all.summary(LatencyKind::HalfRtt));
        assert_eq!((merged.count, merged.lost), (90_001, 1));
    }

    #[test]
    fn any_share_can_be_asked_for() {
        let recorder = recorded((1..=100_000).map(|n| n * 100));
        let truth_ns = 9_990_000.0;
        assert!((recorder.quantile_ns(0.999) as f64 / truth_ns - 1.0).abs() < 1e-3);
        assert_eq!(recorder.quantile_ns(1.0), 10_000_000);
        assert_eq!(LatencyRecorder::new().quantile_ns(0.5), 0);
    }

    #[test]
    fn a_cleared_recorder_is_as_new() {
        let mut recorder = recorded([7, 8, 9]);
        recorder.record_lost();
        recorder.clear();
        assert_eq!(recorder.summary(LatencyKind::Rtt), LatencyRecorder::new().summary(LatencyKind::Rtt));
        recorder.record(50_000);
        assert_eq!(recorder.summary(LatencyKind::Rtt).min, 50.0);
    }

    #[test]
    fn nothing_recorded_gives_zeros() {
        let mut recorder = LatencyRecorder::default();
        recorder.record_lost();
        let expected = LatencySummary { kind: LatencyKind::Rtt, lost: 1, ..LatencySummary::default() };
        assert_eq!(recorder.summary(LatencyKind::Rtt), expected);
    }

    #[test]
    fn a_percentile_needs_one_sample_above_it() {
        for percentile in Percentile::ALL {
            let needed = (1.0 / (1.0 - percentile.quantile())).round() as u64;
            assert_eq!(percentile.count_needed(), needed);
        }
        assert!(!recorded(1..=99).summary(LatencyKind::Rtt).supports(Percentile::P99));
        assert!(recorded(1..=100).summary(LatencyKind::Rtt).supports(Percentile::P99));
        assert!(!recorded(1..=100).summary(LatencyKind::Rtt).supports(Percentile::P99_99));
    }
}
