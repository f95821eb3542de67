//! One-way latencies of samples that follow a schedule.

use weir_measure::Schedule;
use weir_results::{
    AgeRecorder, AgeSeries, CaseSeries, IntervalRecorder, LatencyHistogram, LatencyKind, LatencyRecorder,
    LatencySummary, SeriesRecorder,
};

/// The latencies of the samples that arrived, from their intended times on.
#[derive(Debug)]
pub struct Arrivals {
    schedule: Schedule,
    latencies: LatencyRecorder,
    intervals: IntervalRecorder,
    ages: AgeRecorder,
    series: Option<SeriesRecorder>,
    /// The first sample of the next interval.
    interval_end: u64,
}

impl Arrivals {
    /// None yet.
    #[must_use]
    pub fn new(schedule: Schedule) -> Self {
        let measured = schedule.count() - schedule.measured_from();
        let intervals = usize::try_from(measured / per_interval(&schedule)).unwrap_or(0);
        Self {
            schedule,
            latencies: LatencyRecorder::new(),
            intervals: IntervalRecorder::with_capacity(intervals + 1),
            ages: AgeRecorder::new(measured, schedule.interval_ns()),
            series: Some(SeriesRecorder::with_latencies(
                schedule.intended_ns(schedule.measured_from()),
                (measured as f64 * schedule.interval_ns()) as u64,
            )),
            interval_end: schedule.measured_from() + per_interval(&schedule),
        }
    }

    /// The schedule that they follow.
    #[must_use]
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Sample `sequence` arrived at `now_ns`, for the first time.
    #[inline]
    pub fn record(&mut self, sequence: u64, now_ns: u64) {
        if sequence < self.schedule.measured_from() {
            return;
        }
        let latency_ns = now_ns.saturating_sub(self.schedule.intended_ns(sequence));
        self.latencies.record(latency_ns);
        if let Some(series) = &mut self.series {
            series.record_latency(now_ns, latency_ns);
        }
        self.ages.record(sequence - self.schedule.measured_from(), latency_ns);
        if sequence >= self.interval_end {
            self.intervals.end_interval();
            self.interval_end = sequence + per_interval(&self.schedule);
        }
        // One that was sent again belongs to an interval that is over, and is counted in this one.
        self.intervals.record(latency_ns);
    }

    /// Their ages over time, warm-up left out.
    #[must_use]
    pub fn ages(&self) -> AgeSeries {
        self.ages.series()
    }

    /// Their distribution, warm-up left out; `None` if there are none.
    #[must_use]
    pub fn histogram(&self) -> Option<LatencyHistogram> {
        self.latencies.histogram(LatencyKind::OneWay)
    }

    /// Their latencies second by second, until they are taken.
    #[must_use]
    pub fn series(&self) -> Option<&SeriesRecorder> {
        self.series.as_ref()
    }

    /// Their percentiles second by second, without counts, once.
    #[must_use]
    pub fn take_series(&mut self) -> Option<CaseSeries> {
        self.series.take().map(|series| series.finish(0, 0))
    }

    /// All of them, warm-up left out.
    #[must_use]
    pub fn summary(&self, lost: u64) -> LatencySummary {
        let p99_of_intervals = self.intervals.median_p99_us();
        LatencySummary { lost, p99_of_intervals, ..self.latencies.summary(LatencyKind::OneWay) }
    }
}

/// Samples in an interval of which a percentile is taken.
fn per_interval(schedule: &Schedule) -> u64 {
    ((INTERVAL_NS / schedule.interval_ns()) as u64).max(1)
}

/// Percentiles are taken of each so many nanoseconds, too: 10 ms, longer than most stalls of a
/// processor and so short that many of a second have none.
const INTERVAL_NS: f64 = 10e6;
