//! What the engine is to reach, as a table: each line asks for a ratio or a figure, and says by its 95 % interval whether it
//! is there.
//!
//! - `list`: the lines
//! - `select`: which cases a line speaks of

mod list;
mod select;

use comfy_table::{CellAlignment, Table, presets};
use weir_results::{Better, Case, Comparison, Interval, Run, Spread};

use crate::table::trimmed;
use select::{Figure, Found, Side};

/// What a program takes while it waits for others: seen from outside, not by a case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AtRest {
    /// The program.
    pub name: String,
    /// Resident memory, bytes; or why it is not known.
    pub resident: Option<Result<u64, String>>,
    /// Its size without symbols, bytes; or why it is not known.
    pub stripped: Option<Result<u64, String>>,
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct GoalRow {
    /// What is asked for.
    pub measure: String,
    /// How much of it.
    pub asked: String,
    /// How much there is, with its interval.
    pub measured: String,
    /// Whether that is enough.
    pub verdict: GoalVerdict,
    /// The figures behind it, or why there are none.
    pub figures: String,
}

impl GoalRow {
    /// Whether anything was measured for it, be it without a figure in the end.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        !self.figures.contains(NOT_MEASURED)
    }
}

/// Whether a goal is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoalVerdict {
    /// The whole interval is.
    Reached,
    /// None of the interval is.
    Missed,
    /// The interval has the limit in it, or there are no figures.
    CannotTell,
    /// Nothing was asked for: the figure is shown.
    Shown,
}

/// What a figure must be.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Limit {
    AtMost(f64),
    AtLeast(f64),
    /// Anything: it is only shown.
    Any,
}

/// One line as it is asked for.
struct Goal {
    measure: String,
    limit: Limit,
    figure: Figure,
    /// The best of these is ours.
    ours: Side,
    /// The best of these is what ours is compared with, and its name in what is asked; `None` = the figure itself is asked for.
    base: Option<(&'static str, Side)>,
}

/// Every line of the table, in its order, from the cases of a run and what was seen of programs at rest.
#[must_use]
pub fn goals(run: &Run, at_rest: &[AtRest]) -> Vec<GoalRow> {
    let mut rows: Vec<GoalRow> = list::all().iter().map(|goal| goal.row(run)).collect();
    rows.push(discovery_row(run, "two started together are matched", false, 50.0));
    rows.push(discovery_row(run, "a late one is matched", true, 10.0));
    for program in at_rest {
        let name = &program.name;
        rows.extend(
            program.resident.as_ref().map(|bytes| rest_row(format!("{name}: resident memory"), bytes, 6e6)),
        );
        rows.extend(
            program.stripped.as_ref().map(|bytes| rest_row(format!("{name}: stripped size"), bytes, 2e6)),
        );
    }
    rows
}

/// The lines as a table for terminals, valid as Markdown, and how many ended how.
#[must_use]
pub fn goals_table(rows: &[GoalRow]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(["Measure", "Target", "Measured", "Verdict", "Figures"]);
    for row in rows {
        table.add_row([&row.measure, &row.asked, &row.measured, row.verdict.name(), &row.figures]);
    }
    if let Some(column) = table.column_mut(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    format!(
        "{}\n\n{} met, {} missed, {} inconclusive\n\n{NOTE}\n",
        trimmed(&table.to_string()),
        count(GoalVerdict::Reached),
        count(GoalVerdict::Missed),
        count(GoalVerdict::CannotTell)
    )
}

const NOTE: &str = "\
Ratios are medians of interleaved pairs with their 95 % interval, or their range with fewer than 6 pairs.
(Latency under load or loss is measured some minutes apart from its reference.)
Best peer: the best median of Cyclone DDS and Fast DDS, each in its default configuration and tuned. A reliable
stream that lost samples has no figure.";

impl Goal {
    fn row(&self, run: &Run) -> GoalRow {
        let ours = self.ours.best(run, &self.figure);
        let base = self.base.as_ref().map(|(name, side)| (*name, side.best(run, &self.figure)));
        let asked = self.limit.asked(&self.figure, base.as_ref().map(|(name, _)| *name));
        let (value, figures) = match (&ours, &base) {
            (Err(why), _) | (Ok(_), Some((_, Err(why)))) => (None, why.clone()),
            (Ok(ours), None) => (Value::of_figures(ours), ours.shown(&self.figure)),
            (Ok(ours), Some((_, Ok(base)))) => (
                Value::of_ratio(ours, base, self.figure.better),
                format!("{}; {}", ours.shown(&self.figure), base.shown(&self.figure)),
            ),
        };
        let is_ratio = self.base.is_some();
        GoalRow {
            measure: self.measure.clone(),
            asked,
            measured: value.map_or_else(
                || "-".to_owned(),
                |value| {
                    value.shown(|number| if is_ratio { ratio(number) } else { self.figure.shown(number) })
                },
            ),
            verdict: value.map_or(GoalVerdict::CannotTell, |value| self.limit.verdict(value)),
            figures,
        }
    }
}

/// A figure and where it lies.
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

    /// Of the repeats that both have.
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
    /// The word in the table.
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

/// Discovery must be in time always: the slowest decides, and ends that never met are in no time at all.
fn discovery_row(run: &Run, measure: &str, is_late: bool, limit_ms: f64) -> GoalRow {
    let cases = || run.cases.iter().filter(|case| case.engine == select::OURS);
    let is_of_series =
        |case: &&Case| case.settings.get(select::SERIES).is_some_and(|name| name == "discovery");
    let unknown = cases().filter(is_of_series).filter(|case| case.discovery.is_none()).count();
    let found = cases().filter_map(|case| case.discovery).filter(|it| (it.late_ms > 0.0) == is_late);
    // Who is late is looked for since it came; who starts together since the first did.
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

/// Why a line has no figures when no case says so itself.
const NOT_MEASURED: &str = "not measured";

#[cfg(test)]
mod tests;
