//! Performance targets, as a table: each line has a target for a ratio or a figure, and a verdict
//! by its 95 % interval.
//!
//! - `list`: the lines
//! - `select`: the cases of a line

mod list;
mod select;

use weir_results::{Better, Case, Comparison, Interval, Run, Spread};

use crate::baseline::beaten_baselines;
use crate::compact::paragraph;
use crate::group::{FLOOR, groups};
use crate::notes::baseline_warnings;
use crate::table::drawn;
use select::{Figure, Found, Side};

/// The resources of an idle program: measured from outside, not by a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtRest {
    /// The program.
    pub name: String,
    /// Resident memory in bytes, or the reason why it is unknown.
    pub resident: Result<u64, String>,
    /// Its size without symbols in bytes, or the reason why it is unknown.
    pub stripped: Result<u64, String>,
}

/// The figures of a large domain that targets are about: measured by `weir domain`, not by a case.
#[derive(Debug, Clone, PartialEq)]
pub struct LargeDomain {
    /// Number of participants.
    pub participants: u32,
    /// Endpoints of each.
    pub endpoints: u32,
    /// Until all were matched, in ms.
    pub matched_ms: f64,
    /// Until a participant that joined was matched, in ms.
    pub joined_ms: f64,
    /// Memory per participant and remote endpoint, in bytes; `None`: not measured.
    pub bytes_per_remote_endpoint: Option<f64>,
    /// Processor time of a participant at rest, in percent of one processor; `None`: not measured.
    pub rest_cpu_percent: Option<f64>,
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct GoalRow {
    /// The quantity.
    pub measure: String,
    /// The target.
    pub asked: String,
    /// The measured value, with its interval.
    pub measured: String,
    /// Whether the target is met.
    pub verdict: GoalVerdict,
    /// The underlying figures, or the reason why there are none.
    pub figures: String,
}

impl GoalRow {
    /// Returns whether any case was measured for it, even without a figure.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        !self.figures.contains(NOT_MEASURED)
    }
}

/// Whether a target is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoalVerdict {
    /// The whole interval meets it.
    Reached,
    /// No part of the interval meets it.
    Missed,
    /// The interval contains the limit, or there are no figures.
    CannotTell,
    /// There is no target: the figure is shown.
    Shown,
}

/// The limit of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Limit {
    AtMost(f64),
    AtLeast(f64),
    /// No limit: the figure is only shown.
    Any,
}

/// The definition of a line.
struct Goal {
    measure: String,
    limit: Limit,
    figure: Figure,
    /// The best of these is used for Weir.
    ours: Side,
    /// The best of these is the base of the ratio, with its name in the target; `None`: the figure
    /// itself has a target.
    base: Option<(&'static str, Side)>,
}

/// Returns every line of the table in order, from the cases of a run, the resources of idle programs, and measurements
/// of large domains.
#[must_use]
pub fn goals(run: &Run, footprint: &[AtRest], domains: &[LargeDomain]) -> Vec<GoalRow> {
    let beaten: Vec<&Case> =
        groups(run).iter().filter_map(beaten_baselines).flat_map(|(_, cases)| cases).collect();
    let mut rows: Vec<GoalRow> = list::all().iter().map(|goal| goal.row(run, &beaten)).collect();
    rows.push(discovery_row(run, "discovery, started together", false, 50.0));
    rows.push(discovery_row(run, "discovery, one end late", true, 10.0));
    rows.extend(domain_rows(domains));
    for program in footprint {
        let name = &program.name;
        rows.push(rest_row(format!("{name}: resident memory"), &program.resident, 6e6));
        rows.push(rest_row(format!("{name}: stripped size"), &program.stripped, 2e6));
    }
    rows
}

/// Formats the lines as a table for terminals, valid as Markdown, with the count of each verdict. Below it are warnings
/// if Weir or another engine seems to be faster than raw UDP in `run`, which the lines are from.
#[must_use]
pub fn goals_table(rows: &[GoalRow], run: &Run) -> String {
    let headings = ["Measure", "Target", "Measured", "Verdict", "Figures"];
    let cells = |row: &GoalRow| {
        let GoalRow { measure, asked, measured, verdict, figures } = row.clone();
        [measure, asked, measured, verdict.name().to_owned(), figures]
    };
    let table = drawn(headings, rows.iter().map(cells), |column| column == 2);
    let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let warnings = baseline_warnings(run);
    let warnings = warnings.lines().map(|line| format!("\n{}\n", paragraph(&line.replacen('w', "W", 1))));
    format!(
        "{table}\n\n{} met, {} missed, {} inconclusive\n\n{NOTE}\n{}",
        count(GoalVerdict::Reached),
        count(GoalVerdict::Missed),
        count(GoalVerdict::CannotTell),
        warnings.collect::<String>()
    )
}

/// Why a ratio to raw UDP that meets its limit decides nothing.
const BEATEN: &str = "unusable: faster than its baseline";

const NOTE: &str = "\
Ratios are medians of interleaved pairs with their 95 % interval, or their range with fewer than 6 pairs.
(Latency under load or loss is measured some minutes apart from its reference.)
Best DDS engine: the best median of Cyclone DDS, Fast DDS (default configuration and tuned) and RustDDS (tuned).
Best engine: the best of these, Aeron, Zenoh and ZeroMQ, as far as they were measured. A reliable stream that lost
samples has no figure, nor has a workload of which an engine carried less than 99 %.
Raw UDP, fresh memory: udp-fresh, which sends from and receives into memory that is in no cache.";

impl Goal {
    /// The line; `beaten` has the cases that seem to be faster than raw UDP.
    fn row(&self, run: &Run, beaten: &[&Case]) -> GoalRow {
        let ours = self.ours.best(run, &self.figure);
        let base = self.base.as_ref().map(|(name, side)| (*name, side.best(run, &self.figure)));
        let asked = self.limit.asked(&self.figure, base.as_ref().map(|(name, _)| *name));
        let (value, figures) = match (&ours, &base) {
            (Err(why), _) | (Ok(_), Some((_, Err(why)))) => (None, why.clone()),
            (Ok(ours), None) => (Value::of_figures(ours), ours.shown(&self.figure)),
            (Ok(ours), Some((_, Ok(base)))) => (
                Value::of_ratio(ours, base, self.figure.better()),
                format!("{}; {}", ours.shown(&self.figure), base.shown(&self.figure)),
            ),
        };
        let is_ratio = self.base.is_some();
        let verdict = value.map_or(GoalVerdict::CannotTell, |value| self.limit.verdict(value));
        let is_unusable = verdict == GoalVerdict::Reached
            && matches!((&ours, &base), (Ok(ours), Some((_, Ok(base)))) if base.name == FLOOR && ours.is_among(beaten));
        let (verdict, figures) = if is_unusable {
            (GoalVerdict::CannotTell, format!("{figures}; {BEATEN}"))
        } else {
            (verdict, figures)
        };
        GoalRow {
            measure: self.measure.clone(),
            asked,
            measured: value.map_or_else(
                || "-".to_owned(),
                |value| {
                    value.shown(|number| if is_ratio { ratio(number) } else { self.figure.shown(number) })
                },
            ),
            verdict,
            figures,
        }
    }
}

/// A figure and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Value {
    middle: f64,
    low: f64,
    high: f64,
}

impl Value {
    fn of_figures(found: &Found) -> Option<Self> {
        let values: Vec<f64> = found.by_repeat.iter().map(|(_, value)| *value).collect();
        let spread = Spread::of(values.iter().copied())?;
        Some(Self::new(spread.median, Interval::of_median(&values), spread.min, spread.max))
    }

    /// The ratio over the repeats that both have.
    fn of_ratio(ours: &Found, base: &Found, better: Better) -> Option<Self> {
        let find = |repeat: u32| base.by_repeat.iter().find(|(number, _)| *number == repeat);
        let pair = |(repeat, value): &(u32, f64)| Some((*value, find(*repeat)?.1));
        let pairs: Vec<(f64, f64)> = ours.by_repeat.iter().filter_map(pair).collect();
        let found = Comparison::of(&pairs, better)?;
        let ratios = pairs.iter().filter(|(_, base)| *base > 0.0).map(|(value, base)| value / base);
        let spread = Spread::of(ratios)?;
        Some(Self::new(found.ratio, found.interval, spread.min, spread.max))
    }

    fn new(middle: f64, interval: Option<Interval>, min: f64, max: f64) -> Self {
        let (low, high) = interval.map_or((min, max), |interval| (interval.low, interval.high));
        Self { middle, low, high }
    }

    fn shown(self, number: impl Fn(f64) -> String) -> String {
        format!("{} [{}, {}]", number(self.middle), number(self.low), number(self.high))
    }
}

impl Limit {
    fn verdict(self, value: Value) -> GoalVerdict {
        let Value { low, high, .. } = value;
        match self {
            Self::AtMost(limit) if high <= limit => GoalVerdict::Reached,
            Self::AtMost(limit) if low > limit => GoalVerdict::Missed,
            Self::AtLeast(limit) if low >= limit => GoalVerdict::Reached,
            Self::AtLeast(limit) if high < limit => GoalVerdict::Missed,
            Self::AtMost(_) | Self::AtLeast(_) => GoalVerdict::CannotTell,
            Self::Any => GoalVerdict::Shown,
        }
    }

    fn asked(self, figure: &Figure, base: Option<&str>) -> String {
        let (word, limit) = match self {
            Self::AtMost(limit) => ("at most", limit),
            Self::AtLeast(limit) => ("at least", limit),
            Self::Any => return base.map_or_else(|| "shown".to_owned(), |base| format!("shown, x {base}")),
        };
        match base {
            Some(base) => format!("{word} {} x {base}", ratio(limit)),
            None => format!("{word} {}", figure.shown(limit)),
        }
    }
}

impl GoalVerdict {
    /// Returns the word in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reached => "met",
            Self::Missed => "missed",
            Self::CannotTell => "inconclusive",
            Self::Shown => "",
        }
    }
}

/// Discovery must always be in time: the slowest decides, and ends that were never matched miss the
/// target.
fn discovery_row(run: &Run, measure: &str, is_late: bool, limit_ms: f64) -> GoalRow {
    let cases = || run.cases.iter().filter(|case| case.point.engine == select::OURS);
    let is_of_series =
        |case: &&Case| case.conditions.settings.get(select::SERIES).is_some_and(|name| name == "discovery");
    let unknown = cases().filter(is_of_series).filter(|case| case.figures.discovery.is_none()).count();
    let found = cases().filter_map(|case| case.figures.discovery).filter(|it| (it.late_ms > 0.0) == is_late);
    // A late end counts from its start, ends started together from the start of the first.
    let times = found.map(|it| if is_late { it.from_last_ms } else { it.from_first_ms });
    let spread = Spread::of(times);
    let figures = match spread {
        None => NOT_MEASURED.to_owned(),
        Some(spread) if unknown == 0 => format!("{} times", spread.count),
        Some(spread) => format!("{} times, {unknown} cases without", spread.count),
    };
    GoalRow {
        measure: measure.to_owned(),
        asked: format!("within {limit_ms} ms"),
        measured: spread
            .map_or_else(|| "-".to_owned(), |it| format!("{:.1} ms, most {:.1}", it.median, it.max)),
        verdict: match spread {
            Some(spread) if spread.max > limit_ms => GoalVerdict::Missed,
            Some(_) if unknown == 0 => GoalVerdict::Reached,
            _ => GoalVerdict::CannotTell,
        },
        figures,
    }
}

/// The lines on a domain of 200 participants with 50 endpoints each. All measurements of it have to be in time.
fn domain_rows(domains: &[LargeDomain]) -> [GoalRow; 4] {
    let domains: Vec<&LargeDomain> =
        domains.iter().filter(|it| (it.participants, it.endpoints) == LARGE).collect();
    let row = |measure: &str, limit: f64, unit: &str, of: fn(&LargeDomain) -> Option<f64>| {
        let found: Vec<f64> = domains.iter().filter_map(|domain| of(domain)).collect();
        let spread = Spread::of(found.iter().copied());
        let number = |value: f64| if value < 1.0 { format!("{value:.3}") } else { format!("{value:.1}") };
        let (participants, endpoints) = LARGE;
        GoalRow {
            measure: format!("{participants} participants with {endpoints} endpoints, {measure}"),
            asked: format!("under {limit} {unit}"),
            measured: spread.map_or_else(
                || "-".to_owned(),
                |it| format!("{} {unit}, most {}", number(it.median), number(it.max)),
            ),
            verdict: match spread {
                None => GoalVerdict::CannotTell,
                Some(spread) if spread.max < limit => GoalVerdict::Reached,
                Some(spread) if spread.min >= limit => GoalVerdict::Missed,
                Some(_) => GoalVerdict::CannotTell,
            },
            figures: match found.len() {
                0 => format!("{NOT_MEASURED}: run weir domain (see --help)"),
                1 => "1 domain".to_owned(),
                count => format!("{count} domains"),
            },
        }
    };
    [
        row("all matched", 15.0, "s", |it| Some(it.matched_ms / 1e3)),
        row("one that joins is matched", 1.0, "s", |it| Some(it.joined_ms / 1e3)),
        row("memory per remote endpoint", 600.0, "bytes", |it| it.bytes_per_remote_endpoint),
        row("processor time at rest, each", 0.03, "%", |it| it.rest_cpu_percent),
    ]
}

/// Participants of a large domain, and endpoints of each.
const LARGE: (u32, u32) = (200, 50);

fn rest_row(measure: String, bytes: &Result<u64, String>, limit: f64) -> GoalRow {
    let megabytes = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    GoalRow {
        measure,
        asked: format!("under {}", megabytes(limit)),
        measured: bytes.as_ref().map_or_else(|_| "-".to_owned(), |bytes| megabytes(*bytes as f64)),
        verdict: match bytes {
            Err(_) => GoalVerdict::CannotTell,
            Ok(bytes) if (*bytes as f64) < limit => GoalVerdict::Reached,
            Ok(_) => GoalVerdict::Missed,
        },
        figures: bytes.as_ref().err().cloned().unwrap_or_default(),
    }
}

fn ratio(value: f64) -> String {
    if value < 10.0 { format!("{value:.2}") } else { format!("{value:.1}") }
}

/// The reason for a line without figures if no case gives one.
const NOT_MEASURED: &str = "not measured";

#[cfg(test)]
mod tests;
