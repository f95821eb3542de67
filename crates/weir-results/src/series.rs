//! What a case did over time, second by second.

use std::fmt;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::LiveFigures;
use crate::latency::rounded;

/// A case in steps of equal width, from the end of the warm-up on. Lists that a test does not have are empty.
///
/// A step is a second; a case of more than [`SeriesRecorder::STEPS_MAX`] seconds has wider ones. What arrives after the
/// end of the case has no step, and the last step may be shorter than the others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseSeries {
    /// Width of a step, milliseconds.
    pub step_ms: f64,
    /// Samples that arrived in each step. Latency: round trips that completed.
    pub received: Vec<u64>,
    /// Samples missing at the end of each step: lost, or not yet sent again.
    pub missing: Vec<u64>,
    /// Median of the latencies measured in each step, microseconds; `None`: there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p50_us: Vec<Option<f64>>,
    /// Their 99th percentile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p99_us: Vec<Option<f64>>,
    /// Their maximum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub max_us: Vec<Option<f64>>,
    /// Processor time of the (first) publisher's process in each step, percent of one processor; `None`: not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub publisher_cpu_percent: Vec<Option<f64>>,
    /// The same of the (first) subscriber's process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscriber_cpu_percent: Vec<Option<f64>>,
}

/// Collects a [`CaseSeries`]. Recording allocates nothing, and percentiles are computed at the end.
pub struct SeriesRecorder {
    start_ns: u64,
    step_ns: u64,
    /// End of the current step.
    end_ns: u64,
    /// How often [`SeriesRecorder::observe`] reports that live figures are due; `u64::MAX`: never.
    tick_ns: u64,
    /// When it does next.
    tick_end_ns: u64,
    /// The earlier one of both.
    watch_ns: u64,
    /// The current step; the length of the lists when the case is over.
    current: usize,
    received: Vec<u64>,
    missing: Vec<u64>,
    /// Samples received before the current step.
    received_before: u64,
    latencies: Vec<Latencies>,
    /// The step of the latencies recorded now, and its end.
    latency_step: usize,
    latency_end_ns: u64,
}

/// The latencies of a step. Percentiles are within 1 %.
#[derive(Clone)]
struct Latencies {
    histogram: Histogram<u32>,
    max_ns: u64,
}

impl SeriesRecorder {
    /// The most steps of a series.
    pub const STEPS_MAX: u64 = 200;
    /// The shortest step.
    const STEP_MIN_NS: u64 = 1_000_000_000;
    /// Longer latencies count as this long in percentiles: 60 s.
    const LATENCY_MAX_NS: u64 = 60_000_000_000;

    /// Creates a recorder for a case of `duration_ns` that starts to measure at `start_ns`.
    #[must_use]
    pub fn new(start_ns: u64, duration_ns: u64) -> Self {
        let per_step = duration_ns.div_ceil(Self::STEPS_MAX).div_ceil(Self::STEP_MIN_NS).max(1);
        let step_ns = per_step * Self::STEP_MIN_NS;
        let steps = duration_ns.div_ceil(step_ns).max(1) as usize;
        let end_ns = start_ns.saturating_add(step_ns);
        Self {
            start_ns,
            step_ns,
            end_ns,
            tick_ns: u64::MAX,
            tick_end_ns: u64::MAX,
            watch_ns: end_ns,
            current: 0,
            received: vec![0; steps],
            missing: vec![0; steps],
            received_before: 0,
            latencies: Vec::new(),
            latency_step: usize::MAX,
            latency_end_ns: start_ns,
        }
    }

    /// Creates a recorder that also has latencies.
    #[must_use]
    pub fn with_latencies(start_ns: u64, duration_ns: u64) -> Self {
        let recorder = Self::new(start_ns, duration_ns);
        let latencies = vec![Latencies::new(); recorder.received.len()];
        Self { latencies, ..recorder }
    }

    /// Sets when the measured part starts, before anything is recorded.
    pub fn start(&mut self, start_ns: u64) {
        (self.start_ns, self.latency_end_ns) = (start_ns, start_ns);
        self.end_ns = start_ns.saturating_add(self.step_ns);
        self.tick_end_ns = start_ns.saturating_add(self.tick_ns);
        self.watch_ns = self.end_ns.min(self.tick_end_ns);
    }

    /// Makes [`SeriesRecorder::observe`] report every `tick_ns` that live figures are due.
    #[must_use]
    pub fn watched(mut self, tick_ns: u64) -> Self {
        self.tick_ns = tick_ns.max(1);
        self.start(self.start_ns);
        self
    }

    /// Records how many samples have arrived and are missing so far, if a step ends. Returns whether live figures are
    /// due.
    #[inline]
    pub fn observe(&mut self, now_ns: u64, received_and_missing: impl FnOnce() -> (u64, u64)) -> bool {
        now_ns >= self.watch_ns && self.observe_end(now_ns, received_and_missing())
    }

    #[cold]
    fn observe_end(&mut self, now_ns: u64, received_and_missing: (u64, u64)) -> bool {
        self.end_steps(now_ns, received_and_missing);
        let is_due = now_ns >= self.tick_end_ns;
        if is_due {
            self.tick_end_ns = now_ns.saturating_add(self.tick_ns);
        }
        self.watch_ns = self.end_ns.min(self.tick_end_ns);
        is_due
    }

    /// Returns what has been measured until now: these counts, and the latencies of the current step of `latencies`, or
    /// of the one before where it has none yet.
    #[must_use]
    pub fn live(
        &self,
        now_ns: u64,
        (received, missing): (u64, u64),
        latencies: Option<&Self>,
    ) -> LiveFigures {
        let step = latencies.and_then(Self::live_step);
        let us = |of: fn(&Latencies) -> u64| step.map(|step| rounded(of(step) as f64 / 1e3));
        LiveFigures {
            measured_ns: now_ns.saturating_sub(self.start_ns),
            received,
            missing,
            p50_us: us(|step| step.quantile_ns(0.5)),
            p99_us: us(|step| step.quantile_ns(0.99)),
            max_us: us(|step| step.max_ns),
        }
    }

    fn live_step(&self) -> Option<&Latencies> {
        let last = self.latency_step.min(self.latencies.len());
        let steps = self.latencies.get(last.saturating_sub(1)..)?;
        steps.iter().take(2).rfind(|step| !step.histogram.is_empty())
    }

    /// Records a latency, at the time at which it was measured. Those before the start have no step.
    #[inline]
    pub fn record_latency(&mut self, now_ns: u64, latency_ns: u64) {
        if now_ns >= self.latency_end_ns {
            self.find_latency_step(now_ns);
        }
        if let Some(step) = self.latencies.get_mut(self.latency_step) {
            step.histogram.saturating_record(latency_ns);
            step.max_ns = step.max_ns.max(latency_ns);
        }
    }

    #[cold]
    fn find_latency_step(&mut self, now_ns: u64) {
        let step = (now_ns - self.start_ns) / self.step_ns;
        self.latency_step = step as usize;
        self.latency_end_ns = self.start_ns.saturating_add((step + 1).saturating_mul(self.step_ns));
    }

    #[cold]
    fn end_steps(&mut self, now_ns: u64, (received, missing): (u64, u64)) {
        while now_ns >= self.end_ns && self.current < self.received.len() {
            // All of it belongs to the first of several steps without an observation.
            self.received[self.current] = received.saturating_sub(self.received_before);
            self.missing[self.current] = missing;
            self.received_before = received;
            self.current += 1;
            self.end_ns = self.end_ns.saturating_add(self.step_ns);
        }
        if self.current == self.received.len() {
            self.end_ns = u64::MAX;
        }
    }

    /// Returns the series, `received` samples having arrived and `missing` being missing at the end.
    #[must_use]
    pub fn finish(mut self, received: u64, missing: u64) -> CaseSeries {
        if self.current < self.received.len() {
            self.received[self.current] = received.saturating_sub(self.received_before);
            self.missing[self.current..].fill(missing);
        }
        let latency = |of: fn(&Latencies) -> u64| {
            let us = |step: &Latencies| (!step.histogram.is_empty()).then(|| rounded(of(step) as f64 / 1e3));
            self.latencies.iter().map(us).collect()
        };
        CaseSeries {
            step_ms: self.step_ns as f64 / 1e6,
            p50_us: latency(|step| step.quantile_ns(0.5)),
            p99_us: latency(|step| step.quantile_ns(0.99)),
            max_us: latency(|step| step.max_ns),
            received: self.received,
            missing: self.missing,
            ..CaseSeries::default()
        }
    }
}

impl Latencies {
    fn new() -> Self {
        let histogram = Histogram::new_with_bounds(64, SeriesRecorder::LATENCY_MAX_NS, 2)
            .expect("64 ns to 60 s with 2 digits is a valid range");
        let mut latencies = Self { histogram, max_ns: 0 };
        // Its memory is paged in now, not while it measures.
        latencies.histogram.saturating_record(SeriesRecorder::LATENCY_MAX_NS);
        latencies.histogram.reset();
        latencies
    }

    fn quantile_ns(&self, share: f64) -> u64 {
        self.histogram.value_at_quantile(share).min(self.max_ns)
    }
}

impl fmt::Debug for SeriesRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeriesRecorder").field("received", &self.received).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn what_arrives_counts_in_the_second_in_which_it_was_observed() {
        let mut recorder = SeriesRecorder::new(0, 3 * S);
        recorder.start(10 * S);
        recorder.observe(10 * S + 5, || panic!("no step has ended"));
        recorder.observe(11 * S, || (100, 3));
        recorder.observe(12 * S + 1, || (200, 1));
        let series = recorder.finish(250, 0);
        assert_eq!(
            (series.step_ms, series.received, series.missing),
            (1000.0, vec![100, 100, 50], vec![3, 1, 0])
        );
        assert_eq!((series.p50_us, series.publisher_cpu_percent), (vec![], vec![]));
    }

    #[test]
    fn live_figures_are_due_twice_in_a_second_and_change_no_step() {
        let mut recorder = SeriesRecorder::with_latencies(0, 3 * S).watched(S / 2);
        recorder.start(10 * S);
        let at = |half: u64| 10 * S + half * S / 2;
        assert!(!recorder.observe(at(1) - 1, || panic!("nothing is due")));
        recorder.record_latency(at(1) - 1, 7_000);
        assert!(recorder.observe(at(1), || (50, 1)));
        let figures = recorder.live(at(1), (50, 1), Some(&recorder));
        let expected = LiveFigures { measured_ns: S / 2, received: 50, missing: 1, ..figures };
        assert_eq!((figures, figures.max_us), (expected, Some(7.0)));
        assert!((figures.p50_us.unwrap() / 7.0 - 1.0).abs() < 0.01, "{figures:?}");
        assert!(recorder.observe(at(2), || (100, 3)));
        assert!(!recorder.observe(at(2) + 1, || panic!("nothing is due")));
        // A step that has just begun has no latencies yet.
        recorder.find_latency_step(at(2));
        assert_eq!(recorder.live(at(2), (100, 3), Some(&recorder)).max_us, Some(7.0));
        assert!(recorder.observe(at(4), || (200, 1)));
        let series = recorder.finish(250, 0);
        assert_eq!((series.received, series.missing), (vec![100, 100, 50], vec![3, 1, 0]));
        assert_eq!(series.max_us, [Some(7.0), None, None]);
    }

    #[test]
    fn a_case_without_a_measurement_has_no_live_latencies() {
        let recorder = SeriesRecorder::with_latencies(0, S);
        assert_eq!(recorder.live(5, (0, 0), Some(&recorder)).p50_us, None);
        assert_eq!(recorder.live(5, (0, 0), None).p50_us, None);
    }

    #[test]
    fn steps_without_an_observation_received_nothing() {
        let mut recorder = SeriesRecorder::new(0, 4 * S);
        recorder.observe(3 * S + 1, || (30, 2));
        assert_eq!(recorder.finish(40, 2).received, [30, 0, 0, 10]);
    }

    #[test]
    fn what_arrives_after_the_end_has_no_step() {
        let mut recorder = SeriesRecorder::new(0, S);
        recorder.observe(S, || (5, 0));
        recorder.observe(9 * S, || panic!("all steps have ended"));
        assert_eq!(recorder.finish(60, 0).received, [5]);
    }

    #[test]
    fn long_cases_have_wider_steps() {
        let series = SeriesRecorder::new(0, 3_600 * S).finish(0, 0);
        assert_eq!((series.step_ms, series.received.len()), (18_000.0, 200));
        let series = SeriesRecorder::new(0, 201 * S).finish(0, 0);
        assert_eq!((series.step_ms, series.received.len()), (2_000.0, 101));
        assert_eq!(SeriesRecorder::new(0, 0).finish(0, 0).received, [0]);
    }

    #[test]
    fn latencies_have_percentiles_by_second() {
        let mut recorder = SeriesRecorder::with_latencies(S, 3 * S);
        recorder.record_latency(S - 1, 1);
        (1..=1_000).for_each(|n| recorder.record_latency(S + n, n * 1_000));
        recorder.record_latency(3 * S, 5_000);
        recorder.record_latency(4 * S, 1);
        let series = recorder.finish(0, 0);
        let near =
            |found: Option<f64>, us: f64| assert!((found.unwrap() / us - 1.0).abs() < 0.01, "{found:?}");
        near(series.p50_us[0], 500.0);
        near(series.p99_us[0], 990.0);
        assert_eq!(series.max_us, [Some(1_000.0), None, Some(5.0)]);
    }
}
