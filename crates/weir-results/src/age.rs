//! The ages of scheduled samples over time.

use serde::{Deserialize, Serialize};

use crate::latency::rounded;

/// The ages of samples on arrival in steps of equal width, by the time at which they were due, from the end of the
/// warm-up on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgeSeries {
    /// Width of a step, milliseconds.
    pub step_ms: f64,
    /// Mean age of the samples of each step, milliseconds; `None`: none arrived.
    pub mean_ms: Vec<Option<f64>>,
    /// The greatest age of each step, milliseconds.
    pub max_ms: Vec<Option<f64>>,
}

/// Collects an [`AgeSeries`]. Recording allocates nothing.
#[derive(Debug, Clone)]
pub struct AgeRecorder {
    samples_per_step: u64,
    step_ms: f64,
    steps: Vec<Step>,
}

/// The ages of a step.
#[derive(Debug, Clone, Copy, Default)]
struct Step {
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl AgeRecorder {
    /// The most steps of a series.
    pub const STEPS_MAX: u64 = 200;

    /// Creates a recorder for so many samples, each due `interval_ns` after the one before.
    #[must_use]
    pub fn new(samples: u64, interval_ns: f64) -> Self {
        let samples_per_step = samples.div_ceil(Self::STEPS_MAX).max(1);
        let steps = vec![Step::default(); samples.div_ceil(samples_per_step) as usize];
        Self { samples_per_step, step_ms: samples_per_step as f64 * interval_ns / 1e6, steps }
    }

    /// Records the age of a sample, numbered from 0.
    #[inline]
    pub fn record(&mut self, number: u64, age_ns: u64) {
        if let Some(step) = self.steps.get_mut((number / self.samples_per_step) as usize) {
            step.count += 1;
            step.sum_ns = step.sum_ns.saturating_add(age_ns);
            step.max_ns = step.max_ns.max(age_ns);
        }
    }

    /// Returns the series.
    #[must_use]
    pub fn series(&self) -> AgeSeries {
        let of = |ns: fn(&Step) -> f64| {
            let age = |step: &Step| (step.count > 0).then(|| rounded(ns(step) / 1e6));
            self.steps.iter().map(age).collect()
        };
        AgeSeries {
            step_ms: rounded(self.step_ms),
            mean_ms: of(|step| step.sum_ns as f64 / step.count as f64),
            max_ms: of(|step| step.max_ns as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_counts_in_the_step_in_which_it_was_due() {
        let mut recorder = AgeRecorder::new(400, 10e6);
        for (number, age_ns) in [(0, 1_000_000), (1, 3_000_000), (5, 9_000_000), (400, 1)] {
            recorder.record(number, age_ns);
        }
        let series = recorder.series();
        assert_eq!((series.step_ms, series.mean_ms.len()), (20.0, 200));
        assert_eq!(series.mean_ms[..3], [Some(2.0), None, Some(9.0)]);
        assert_eq!(series.max_ms[..3], [Some(3.0), None, Some(9.0)]);
    }

    #[test]
    fn few_samples_have_a_step_each() {
        let series = AgeRecorder::new(3, 10e6).series();
        assert_eq!((series.step_ms, series.max_ms), (10.0, vec![None; 3]));
        assert_eq!(AgeRecorder::new(0, 10e6).series().max_ms, []);
    }
}
