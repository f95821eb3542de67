//! The columns that compare engines: the interval of the median, the ratio, and the verdict.

use weir_results::{Comparison, Interval, Test};

use crate::baseline::{SURE, seems_faster};
use crate::compare::{ReportOptions, compare};
use crate::group::{FLOOR, Group, Point};
use crate::table::dash;

/// The comparison of a group's points with the chosen engine.
pub(crate) struct Compared<'a> {
    group: &'a Group<'a>,
    relative_to: &'a str,
    has_intervals: bool,
    has_ratios: bool,
    has_verdicts: bool,
}

impl<'a> Compared<'a> {
    pub(crate) fn new(group: &'a Group<'a>, options: &'a ReportOptions) -> Self {
        let relative_to = options.relative_to.as_str();
        let has_ratios = group.points.iter().any(|point| compare(group, point, relative_to).is_some());
        Self {
            group,
            relative_to,
            has_intervals: group.points.iter().any(|point| point.interval().is_some()),
            has_ratios,
            has_verdicts: has_ratios && group.has_repeats(),
        }
    }

    pub(crate) fn headings(&self) -> Vec<String> {
        let mut headings = vec![format!("x {}", self.relative_to)];
        if self.has_intervals {
            headings.insert(0, format!("{} 95%", headline_heading(self.group.key.test)));
        }
        if self.has_verdicts {
            headings.push("Verdict".to_owned());
        }
        headings
    }

    pub(crate) fn cells(&self, point: &Point<'_>) -> Vec<String> {
        let found = compare(self.group, point, self.relative_to);
        let mut cells = vec![found.map_or_else(dash, |found| ratio(&found))];
        if self.has_intervals {
            let decimals = if self.group.key.test == Test::Latency { 2 } else { 0 };
            cells.insert(0, point.interval().map_or_else(dash, |interval| range(interval, decimals)));
        }
        if self.has_verdicts {
            let is_base = point.engine == self.relative_to;
            cells.push(found.filter(|_| !is_base).map_or_else(dash, |found| found.verdict.to_string()));
        }
        cells
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        let (test, other) = (self.group.key.test, self.relative_to);
        let mut notes = Vec::new();
        if self.has_intervals {
            notes.push(format!(
                "{} 95%: contains the true median in 95 of 100 cases (bootstrap over the repeats)",
                headline_heading(test)
            ));
        }
        if self.has_ratios {
            let name = if other == "udp" { "plain UDP".to_owned() } else { other.to_owned() };
            let (what, better) = match test {
                Test::Latency => ("median", "less"),
                Test::Throughput | Test::Workload => ("samples/s", "more"),
            };
            notes
                .push(format!("x {other}: {what} as a multiple of {name}'s, same size ({better} is better)"));
        }
        if other == FLOOR && self.group.points.iter().any(|point| seems_faster(self.group, point)) {
            notes.push(format!(
                "x {other} below {SURE} cannot be: {other} sends the same samples without a protocol; \
                 use --keep-awake=both and --repeat"
            ));
        }
        if self.has_verdicts {
            notes.push(format!(
                "x {other} of several repeats: median of the ratios within a repeat, 95 % interval below; \
                 the verdict needs {} pairs and an interval without 1, for a difference below {:.0} % {} pairs \
                 and an interval narrower than {:.0} %",
                Interval::COUNT_MIN,
                Comparison::CLOSE * 100.0,
                Comparison::CLOSE_PAIRS_MIN,
                Comparison::CLOSE_WIDTH * 100.0,
            ));
        }
        notes
    }
}

fn headline_heading(test: Test) -> &'static str {
    match test {
        Test::Latency => "50%",
        Test::Throughput | Test::Workload => "Samples/s",
    }
}

fn ratio(found: &Comparison) -> String {
    let middle = format!("{:.2}", found.ratio);
    found.interval.map_or_else(|| middle.clone(), |interval| format!("{middle}\n{}", range(interval, 2)))
}

fn range(interval: Interval, decimals: usize) -> String {
    format!("{:.decimals$}..{:.decimals$}", interval.low, interval.high)
}
