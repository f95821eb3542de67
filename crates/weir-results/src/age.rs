//! The ages of samples over time.

use std::fmt;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::latency::rounded;

/// The ages of samples on arrival, in steps of equal width.
///
/// Samples that follow a schedule age from the time at which they were due, and belong to the step of that time; the
/// first step begins at the end of the warm-up. Others age from the call that wrote them, and belong to the step in
/// which they arrived; the first step begins when the ends have met, as that of [`LinkSeries`](crate::LinkSeries) does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgeSeries {
    /// Width of a step, milliseconds.
    pub step_ms: f64,
    /// Whether the steps begin when the ends have met, and samples age from the call that wrote them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_write: bool,
    /// Mean age of the samples of each step, milliseconds; `None`: none arrived.
    pub mean_ms: Vec<Option<f64>>,
    /// Their median, within 1 %. Empty in files of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p50_ms: Vec<Option<f64>>,
    /// Their 99th percentile, within 1 %. Empty in files of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p99_ms: Vec<Option<f64>>,
    /// The greatest age of each step, milliseconds.
    pub max_ms: Vec<Option<f64>>,
}

/// Collects an [`AgeSeries`]. Recording allocates nothing, and percentiles are computed at the end.
#[derive(Debug, Clone)]
pub struct AgeRecorder {
    /// Width of a step: samples, or nanoseconds.
    per_step: u64,
    /// Milliseconds of such a sample or nanosecond.
    unit_ms: f64,
    from_write: bool,
    steps: Vec<Step>,
    /// Steps up to the last one with a sample.
    used: usize,
}

/// The ages of a step.
#[derive(Clone)]
struct Step {
    histogram: Histogram<u32>,
    sum_ns: u64,
    max_ns: u64,
}

impl AgeRecorder {
    /// The most steps of a series.
    pub const STEPS_MAX: u64 = 200;
    /// The shortest step of a series by time of arrival.
    const STEP_MIN_NS: u64 = 50_000_000;
    /// Longer ages count as this long in percentiles: 120 s.
    const AGE_MAX_NS: u64 = 120_000_000_000;

    /// Creates a recorder for so many scheduled samples, each due `interval_ns` after the one before.
    #[must_use]
    pub fn new(samples: u64, interval_ns: f64) -> Self {
        let per_step = samples.div_ceil(Self::STEPS_MAX).max(1);
        let steps = vec![Step::new(); samples.div_ceil(per_step) as usize];
        let used = steps.len();
        Self { per_step, unit_ms: interval_ns / 1e6, from_write: false, steps, used }
    }

    /// Creates a recorder by the time of arrival, however long it takes: steps become wider as needed.
    #[must_use]
    pub fn by_arrival() -> Self {
        let steps = vec![Step::new(); Self::STEPS_MAX as usize];
        Self { per_step: Self::STEP_MIN_NS, unit_ms: 1e-6, from_write: true, steps, used: 0 }
    }

    /// Records the age of a scheduled sample, numbered from 0.
    #[inline]
    pub fn record(&mut self, number: u64, age_ns: u64) {
        if let Some(step) = self.steps.get_mut((number / self.per_step) as usize) {
            step.record(age_ns);
        }
    }

    /// Records the age of a sample that arrived so long after the ends had met.
    #[inline]
    pub fn record_arrival(&mut self, since_ns: u64, age_ns: u64) {
        while since_ns / self.per_step >= self.steps.len() as u64 {
            self.widen();
        }
        let at = (since_ns / self.per_step) as usize;
        self.used = self.used.max(at + 1);
        self.steps[at].record(age_ns);
    }

    /// Joins pairs of steps.
    #[cold]
    fn widen(&mut self) {
        for at in 0..self.steps.len() {
            let (to, rest) = self.steps.split_at_mut(at);
            match to.get_mut(at / 2) {
                Some(to) if at % 2 == 1 => to.join(&mut rest[0]),
                Some(to) => std::mem::swap(to, &mut rest[0]),
                None => {}
            }
        }
        self.per_step *= 2;
        self.used = self.used.div_ceil(2);
    }

    /// Returns the series.
    #[must_use]
    pub fn series(&self) -> AgeSeries {
        let of = |ns: fn(&Step) -> f64| {
            let age = |step: &Step| (!step.histogram.is_empty()).then(|| rounded(ns(step) / 1e6));
            self.steps[..self.used].iter().map(age).collect()
        };
        AgeSeries {
            step_ms: rounded(self.per_step as f64 * self.unit_ms),
            from_write: self.from_write,
            mean_ms: of(|step| step.sum_ns as f64 / step.histogram.len() as f64),
            p50_ms: of(|step| step.quantile_ns(0.5)),
            p99_ms: of(|step| step.quantile_ns(0.99)),
            max_ms: of(|step| step.max_ns as f64),
        }
    }
}

impl Step {
    fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1_000, AgeRecorder::AGE_MAX_NS, 2)
            .expect("1 us to 120 s with 2 digits is a valid range");
        let mut step = Self { histogram, sum_ns: 0, max_ns: 0 };
        // Its memory is paged in now, not while it measures.
        step.histogram.saturating_record(AgeRecorder::AGE_MAX_NS);
        step.histogram.reset();
        step
    }

    #[inline]
    fn record(&mut self, age_ns: u64) {
        self.histogram.saturating_record(age_ns);
        self.sum_ns = self.sum_ns.saturating_add(age_ns);
        self.max_ns = self.max_ns.max(age_ns);
    }

    /// Moves the ages of a later step into this one.
    fn join(&mut self, later: &mut Self) {
        // Both have the same range, the only condition.
        let _ = self.histogram.add(&later.histogram);
        self.sum_ns = self.sum_ns.saturating_add(later.sum_ns);
        self.max_ns = self.max_ns.max(later.max_ns);
        later.histogram.reset();
        (later.sum_ns, later.max_ns) = (0, 0);
    }

    fn quantile_ns(&self, share: f64) -> f64 {
        self.histogram.value_at_quantile(share).min(self.max_ns) as f64
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step").field("count", &self.histogram.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_sample_counts_in_the_step_in_which_it_was_due() {
        let mut recorder = AgeRecorder::new(400, 10e6);
        for (number, age_ns) in [(0, MS), (1, 3 * MS), (5, 9 * MS), (400, 1)] {
            recorder.record(number, age_ns);
        }
        let series = recorder.series();
        assert_eq!((series.step_ms, series.mean_ms.len(), series.from_write), (20.0, 200, false));
        assert_eq!(series.mean_ms[..3], [Some(2.0), None, Some(9.0)]);
        assert_eq!(series.max_ms[..3], [Some(3.0), None, Some(9.0)]);
    }

    #[test]
    fn few_samples_have_a_step_each() {
        let series = AgeRecorder::new(3, 10e6).series();
        assert_eq!((series.step_ms, series.max_ms), (10.0, vec![None; 3]));
        assert_eq!(AgeRecorder::new(0, 10e6).series().max_ms, []);
    }

    #[test]
    fn a_step_has_percentiles() {
        let mut recorder = AgeRecorder::by_arrival();
        (1..=1_000).for_each(|n| recorder.record_arrival(n, n * MS));
        let series = recorder.series();
        let near = |found: &[Option<f64>], ms: f64| {
            assert!((found[0].unwrap() / ms - 1.0).abs() < 0.01, "{found:?}")
        };
        near(&series.p50_ms, 500.0);
        near(&series.p99_ms, 990.0);
        assert_eq!((series.max_ms, series.from_write), (vec![Some(1_000.0)], true));
    }

    #[test]
    fn what_takes_longer_has_wider_steps_and_loses_nothing() {
        let mut recorder = AgeRecorder::by_arrival();
        // One in each of the first 200 steps of 50 ms, and one after a minute.
        (0..200).for_each(|step| recorder.record_arrival(step * 50 * MS, (step + 1) * MS));
        recorder.record_arrival(60_000 * MS, 7 * MS);
        let series = recorder.series();
        assert_eq!((series.step_ms, series.max_ms.len()), (400.0, 151));
        assert_eq!(series.max_ms[..2], [Some(8.0), Some(16.0)]);
        assert_eq!(series.mean_ms[..2], [Some(4.5), Some(12.5)]);
        assert_eq!(
            (series.max_ms[24], series.max_ms[25], series.max_ms[150]),
            (Some(200.0), None, Some(7.0))
        );
    }

    #[test]
    fn files_of_earlier_versions_have_no_percentiles() {
        let text = r#"{"step_ms":20.0,"mean_ms":[1.0,null],"max_ms":[2.0,null]}"#;
        let series: AgeSeries = serde_json::from_str(text).unwrap();
        assert_eq!(
            (series.p99_ms.len(), series.max_ms, series.from_write),
            (0, vec![Some(2.0), None], false)
        );
    }
}
