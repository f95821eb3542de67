//! Selects the cases of a line, and the figure taken from them.

use weir_results::{Better, Case, ProcessFigures, Reliability, Run, Spread, Test, WaitStrategy, format_rate};

use super::NOT_MEASURED;
use crate::compare::times;
use crate::group::is_raw_udp;
use crate::loss::lost;
use crate::workload::age_p99;

/// The engine that the targets are for.
pub(super) const OURS: &str = "weir";

/// One point, or the same point of several series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    /// The series that it was measured in: see [`SERIES`].
    pub(super) series: &'static str,
    pub(super) engine: &'static str,
    pub(super) test: Test,
    pub(super) reliability: Reliability,
    pub(super) size_bytes: u64,
    pub(super) is_batched: bool,
    pub(super) is_keyed: bool,
    pub(super) loans: bool,
    pub(super) wait: WaitStrategy,
    /// Percent of the maximum; `None`: no open loop.
    pub(super) load_percent: Option<f64>,
}

/// The setting of a case with the name of its series.
pub(super) const SERIES: &str = "series";

impl Point {
    pub(super) const fn latency(
        series: &'static str,
        engine: &'static str,
        reliability: Reliability,
        size: u64,
    ) -> Self {
        Self {
            series,
            engine,
            test: Test::Latency,
            reliability,
            size_bytes: size,
            is_batched: false,
            is_keyed: false,
            loans: false,
            wait: WaitStrategy::Block,
            load_percent: None,
        }
    }

    pub(super) const fn stream(
        series: &'static str,
        engine: &'static str,
        reliability: Reliability,
        size: u64,
    ) -> Self {
        Self { test: Test::Throughput, ..Self::latency(series, engine, reliability, size) }
    }

    /// The workload `robot`. Its topics have reliabilities and sizes of their own.
    pub(super) const fn robot(engine: &'static str) -> Self {
        Self { test: Test::Workload, ..Self::latency("robot", engine, Reliability::None, 0) }
    }

    fn matches(&self, case: &Case) -> bool {
        case.point.engine == self.engine
            && case.conditions.settings.get(SERIES).is_some_and(|series| series == self.series)
            && case.point.test == self.test
            // The baseline has no reliability, whatever its case says.
            && (is_raw_udp(self.engine) || case.point.reliability == self.reliability)
            && case.point.size_bytes == self.size_bytes
            && (case.point.batch_bytes > 0) == self.is_batched
            && case.point.keyed == self.is_keyed
            && case.point.loans == self.loans
            && case.conditions.wait == self.wait
            && case.conditions.load_percent == self.load_percent
    }

    fn name(&self) -> String {
        let words = [(self.is_batched, "batches"), (self.loans, "loans"), (self.is_keyed, "keyed")];
        let words = words.iter().filter_map(|(is_so, word)| is_so.then_some(*word));
        words.fold(self.engine.to_owned(), |name, word| format!("{name}, {word}"))
    }

    /// Returns the figure of each repeat, or the reason why some or all are missing.
    fn find(&self, run: &Run, figure: &Figure) -> Result<Found, String> {
        let cases: Vec<&Case> = run.cases.iter().filter(|case| self.matches(case)).collect();
        let name = self.name();
        let Some(first) = cases.first() else { return Err(format!("{name}: {NOT_MEASURED}")) };
        let lost: u64 = cases.iter().map(|case| lost(case)).sum();
        if self.reliability == Reliability::Reliable && lost > 0 {
            return Err(format!("{name}: lost {lost} reliable samples"));
        }
        let by_repeat: Vec<(u32, f64)> =
            cases.iter().filter_map(|case| Some((case.conditions.repeat, (figure.of)(case)?))).collect();
        // A failed repeat of Weir is an error; a failed one of a peer only makes its pairs fewer.
        if by_repeat.is_empty() || (self.engine == OURS && by_repeat.len() < cases.len()) {
            let missing = cases.iter().find(|case| (figure.of)(case).is_none()).unwrap_or(first);
            let why = missing.evidence.not_measured.as_ref().map_or(NO_FIGURE, |why| why.reason());
            let (count, all) = (cases.len() - by_repeat.len(), cases.len());
            return Err(if count == all {
                format!("{name}: {why}")
            } else {
                format!("{name}: {count} of {all} repeats have no figure: {why}")
            });
        }
        Ok(Found { point: *self, name, by_repeat })
    }
}

/// The reason for a measured case without the requested figure.
const NO_FIGURE: &str = "without this figure";

/// Points of which the best counts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Side(pub(super) Vec<Point>);

impl Side {
    /// Returns the point with the best median, or the reason why there is none.
    pub(super) fn best(&self, run: &Run, figure: &Figure) -> Result<Found, String> {
        let found: Vec<Result<Found, String>> = self.0.iter().map(|point| point.find(run, figure)).collect();
        let order = |found: &&Found| match figure.better() {
            Better::More => -found.median(),
            Better::Less => found.median(),
        };
        let best = found.iter().flatten().min_by(|a, b| order(a).total_cmp(&order(b)));
        best.cloned().ok_or_else(|| {
            let why: Vec<String> = found.into_iter().filter_map(Result::err).collect();
            why.join("; ")
        })
    }
}

/// The figures of a point.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    point: Point,
    pub(super) name: String,
    /// By repeat number.
    pub(super) by_repeat: Vec<(u32, f64)>,
}

impl Found {
    fn median(&self) -> f64 {
        Spread::of(self.by_repeat.iter().map(|(_, value)| *value)).map_or(f64::NAN, |spread| spread.median)
    }

    /// Returns whether one of these cases is of the point.
    pub(super) fn is_among(&self, cases: &[&Case]) -> bool {
        cases.iter().any(|case| self.point.matches(case))
    }

    /// Formats its name and median.
    pub(super) fn shown(&self, figure: &Figure) -> String {
        format!("{} {}", self.name, figure.shown(self.median()))
    }
}

/// A figure taken from a case.
#[derive(Debug, Clone, Copy)]
pub(super) struct Figure {
    pub(super) unit: Unit,
    pub(super) of: fn(&Case) -> Option<f64>,
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Microseconds,
    PerSecond,
    Gbps,
    SecondsPerMillion,
    /// Of one processor.
    Percent,
}

/// Median latency.
pub(super) const P50: Figure = Figure { unit: Unit::Microseconds, of: |case| Some(times(case)?.p50) };
/// 99th percentile of latency.
pub(super) const P99: Figure = Figure { unit: Unit::Microseconds, of: |case| Some(times(case)?.p99) };
/// Median of the 99th percentiles of intervals of 10 ms.
pub(super) const P99_OF_INTERVALS: Figure =
    Figure { unit: Unit::Microseconds, of: |case| case.figures.latency_us?.p99_of_intervals };
/// Received samples.
pub(super) const RATE: Figure =
    Figure { unit: Unit::PerSecond, of: |case| Some(case.figures.throughput?.samples_per_s) };
/// Received payload.
pub(super) const GBPS: Figure =
    Figure { unit: Unit::Gbps, of: |case| Some(case.figures.throughput?.mbps / 1e3) };
/// Processor time of both ends.
pub(super) const CPU: Figure = Figure { unit: Unit::SecondsPerMillion, of: cpu_per_million };
/// Processor time of all processes of a workload, unless it was not carried in full.
pub(super) const WORKLOAD_CPU: Figure = Figure { unit: Unit::Percent, of: Case::headline };
/// 99th percentile of the ages of all samples of a workload, with the same condition.
pub(super) const AGE_P99: Figure = Figure { unit: Unit::Microseconds, of: age_p99 };
/// The received rate with less than 0.1 % lost.
pub(super) const RATE_WITHOUT_LOSS: Figure = Figure {
    unit: Unit::PerSecond,
    of: |case| case.figures.throughput.filter(|it| it.lost_percent < 0.1).map(|it| it.samples_per_s),
};

impl Figure {
    /// Returns the better direction: more for rates, less for times.
    pub(super) const fn better(&self) -> Better {
        match self.unit {
            Unit::PerSecond | Unit::Gbps => Better::More,
            Unit::Microseconds | Unit::SecondsPerMillion | Unit::Percent => Better::Less,
        }
    }

    pub(super) fn shown(&self, value: f64) -> String {
        match self.unit {
            Unit::Microseconds => format!("{value:.1} us"),
            Unit::PerSecond => format!("{}/s", format_rate(value)),
            Unit::Gbps => format!("{value:.1} Gbit/s"),
            Unit::SecondsPerMillion => format!("{value:.2} s"),
            Unit::Percent => format!("{value:.0} %"),
        }
    }
}

fn cpu_per_million(case: &Case) -> Option<f64> {
    let of = |end: Option<ProcessFigures>| {
        let end = end?;
        let samples = end.samples.filter(|samples| *samples > 0)?;
        Some((end.cpu_user_s + end.cpu_system_s) / samples as f64 * 1e6)
    };
    Some(of(case.figures.publisher)? + of(case.figures.subscriber)?)
}
