//! `weir compare published:TABLE RUN`: a run beside a published table.

use anyhow::anyhow;
use serde::Serialize;
use weir_report::{Change, text_table};
use weir_results::{Better, Case, Interval, LatencyKind, Reliability, Run, Spread, Test};

use crate::args::{CompareArgs, ComparisonFormat};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::published::{self, Row, Table};

/// What a name of a published table starts with.
pub(super) const PREFIX: &str = "published:";

/// Compares runs with a table, and prints that.
pub(super) fn compare(name: &str, runs: &[Run], args: &CompareArgs) -> Result<Exit, Failure> {
    let tables = published::find(name);
    let [table] = tables.as_slice() else {
        return Err(Failure::usage(match tables.len() {
            0 => anyhow!("`{name}` is not a published table: `weir published list` names them all"),
            count => anyhow!("`{name}` names {count} tables: choose one of `weir published list`"),
        }));
    };
    if args.paired {
        return Err(Failure::usage(anyhow!("--paired: a published table has no repeats")));
    }
    let compared = compared(table, runs, args.tolerance);
    if compared.is_empty() {
        return Err(Failure::usage(anyhow!(
            "no case of the run is like a row of {name}, which is {}: measure with {}",
            conditions(table),
            options(table)
        )));
    }
    match args.format {
        ComparisonFormat::Table => output::page(&text(table, &compared, args.tolerance))?,
        ComparisonFormat::Json => {
            let document = serde_json::to_string_pretty(&compared).map_err(Failure::environment)?;
            output::data(&format!("{document}\n"))?;
        }
    }
    let is_worse = compared.iter().any(|it| it.verdict == Change::Worse);
    Ok(if is_worse { Exit::Found } else { Exit::Success })
}

/// A figure of a row, and the same measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Compared {
    engine: String,
    /// All conditions of the repeats: also those that the table does not set, such as the link.
    conditions: String,
    size_bytes: u64,
    /// `p50_us`, `p99_us`, `samples_per_s`.
    figure: &'static str,
    published: f64,
    /// Whether the published figures contradict each other.
    is_doubtful: bool,
    median: f64,
    repeats: usize,
    /// Median divided by the published figure.
    ratio: f64,
    /// The 95 % interval of the ratio; the published figure has none of its own.
    interval: Option<[f64; 2]>,
    verdict: Change,
    lost: u64,
}

type Figure = (&'static str, Better, fn(&Case) -> Option<f64>);

fn figures(test: Test) -> &'static [Figure] {
    match test {
        Test::Latency => &[
            ("p50_us", Better::Less, |case| Some(latency(case)?.p50)),
            ("p99_us", Better::Less, |case| Some(latency(case)?.p99)),
        ],
        Test::Throughput | Test::Workload => {
            &[("samples_per_s", Better::More, |case| Some(case.figures.throughput?.samples_per_s))]
        }
    }
}

fn latency(case: &Case) -> Option<weir_results::LatencySummary> {
    // The published latencies are halves of round trips.
    case.figures.latency_us.filter(|it| it.count > 0 && it.kind == LatencyKind::HalfRtt)
}

fn compared(table: &Table, runs: &[Run], tolerance: f64) -> Vec<Compared> {
    let cases: Vec<&Case> =
        runs.iter().flat_map(|run| &run.cases).filter(|case| is_like(table, case)).collect();
    let mut engines: Vec<&str> = Vec::new();
    for case in &cases {
        if !engines.contains(&case.point.engine.as_str()) {
            engines.push(&case.point.engine);
        }
    }
    let mut compared = Vec::new();
    for row in &table.rows {
        for engine in &engines {
            let repeats = cases.iter().copied();
            let batched = published::row_batch_bytes(table, row) > 0;
            let repeats: Vec<&Case> = repeats
                .filter(|it| it.point.engine == *engine && it.point.size_bytes == row.size)
                .filter(|it| table.batch_bytes.is_none() || batched == (it.point.batch_bytes > 0))
                .collect();
            for repeats in by_point(&repeats) {
                let of_figure = |figure| one(table, row, &repeats, figure, tolerance);
                compared.extend(figures(table.test).iter().filter_map(of_figure));
            }
        }
    }
    compared
}

/// Divides cases into the repeats of each point, in the order in which they were measured.
fn by_point<'a>(cases: &[&'a Case]) -> Vec<Vec<&'a Case>> {
    let mut points: Vec<Vec<&Case>> = Vec::new();
    for case in cases {
        match points.iter_mut().find(|repeats| repeats[0].same_point(case)) {
            Some(repeats) => repeats.push(case),
            None => points.push(vec![case]),
        }
    }
    points
}

fn one(table: &Table, row: &Row, repeats: &[&Case], figure: &Figure, tolerance: f64) -> Option<Compared> {
    let (name, better, of) = figure;
    let at = published::columns(table.test).iter().position(|(_, column, _)| column == name)?;
    let published = row.figures.get(at).copied().filter(|it| *it > 0.0)?;
    let values: Vec<f64> = repeats.iter().filter_map(|case| of(case)).filter(|it| *it > 0.0).collect();
    let median = Spread::of(values.iter().copied())?.median;
    let interval = Interval::of_median(&values).map(|it| [it.low / published, it.high / published]);
    let first = repeats.first()?;
    let lost = |case: &&Case| {
        case.figures.latency_us.map_or(0, |it| it.lost) + case.figures.throughput.map_or(0, |it| it.lost)
    };
    Some(Compared {
        engine: first.point.engine.clone(),
        conditions: weir_history::conditions(first),
        size_bytes: row.size,
        figure: name,
        published,
        is_doubtful: row.is_doubtful,
        median,
        repeats: values.len(),
        ratio: median / published,
        interval,
        verdict: verdict(interval, *better, tolerance),
        lost: repeats.iter().map(lost).sum(),
    })
}

fn verdict(interval: Option<[f64; 2]>, better: Better, tolerance: f64) -> Change {
    let Some([low, high]) = interval else { return Change::Inconclusive };
    // Greater is better.
    let (low, high) = if better == Better::Less { (1.0 / high, 1.0 / low) } else { (low, high) };
    if low > 1.0 {
        Change::Better
    } else if high < 1.0 - tolerance {
        Change::Worse
    } else if low >= 1.0 - tolerance {
        Change::Same
    } else {
        Change::Inconclusive
    }
}

/// Whether a case was measured as a table was, apart from the hosts and the link.
fn is_like(table: &Table, case: &Case) -> bool {
    let point = &case.point;
    let reliability = if table.reliable { Reliability::Reliable } else { Reliability::BestEffort };
    point.test == table.test
        && point.reliability == reliability
        && point.keyed == table.keyed
        && (point.publishers, point.subscribers) == (1, 1)
        && !point.multicast
        && case.conditions.rate_samples_per_s.is_none()
}

fn conditions(table: &Table) -> String {
    let keyed = if table.keyed { "keyed" } else { "unkeyed" };
    let reliable = if table.reliable { "reliable" } else { "best-effort" };
    let batch = match table.batch_bytes {
        None => String::new(),
        Some(0) => ", without batches".to_owned(),
        Some(bytes) => format!(", batches of {bytes} bytes"),
    };
    let (test, link) = (table.test, table.link_gbps);
    format!("{test}, {keyed}, {reliable}{batch}, {link} Gbit/s")
}

/// The commands that measure cases like those of a table.
fn options(table: &Table) -> String {
    let sizes: Vec<String> = table.rows.iter().map(|row| row.size.to_string()).collect();
    let reliability = if table.reliable { "reliable" } else { "best-effort" };
    let instances = if table.keyed { " --instances 100000" } else { "" };
    let batch = table.batch_bytes.map_or_else(String::new, |bytes| match bytes {
        0 => " --batch 0".to_owned(),
        bytes => format!(" --batch 0,{bytes}"),
    });
    let (name, test, sizes) = (&table.name, table.test, sizes.join(","));
    format!(
        "`weir run {name}`, or with `weir bench --engines weir --tests {test} --reliability {reliability}{instances}\
         {batch} --sizes {sizes} --repeat 8`"
    )
}

fn text(table: &Table, compared: &[Compared], tolerance: f64) -> String {
    let source = table.source;
    let mut text = format!(
        "{}: {}\nPublished: {}, on {}, {}. The run is of other hosts and links: see `weir report`.\n\n",
        table.name,
        conditions(table),
        source.title,
        source.hosts,
        source.path
    );
    text += &text_table(&HEADINGS, compared.iter().map(|it| cells(it).to_vec()), &[2, 4, 5, 6, 7, 8, 9]);
    let counted = [Change::Worse, Change::Better, Change::Same, Change::Inconclusive].map(|verdict| {
        format!("{} {}", compared.iter().filter(|it| it.verdict == verdict).count(), verdict.name())
    });
    text += &format!("\n\n{}, tolerance {} %.\n", counted.join(", "), tolerance * 100.0);
    if compared.iter().any(|it| it.is_doubtful) {
        text += "* The published figures of this row contradict each other.\n";
    }
    text
}

const HEADINGS: [&str; 11] = [
    "Engine",
    "Conditions",
    "Size (B)",
    "Figure",
    "Published",
    "Run",
    "Repeats",
    "Lost",
    "Run/published",
    "95 % interval",
    "Verdict",
];

fn cells(it: &Compared) -> [String; 11] {
    let figure = |value: f64| if value < 1_000.0 { format!("{value:.2}") } else { format!("{value:.0}") };
    let mark = if it.is_doubtful { " *" } else { "" };
    let interval = it.interval.map_or_else(|| "-".to_owned(), |[low, high]| format!("{low:.3} to {high:.3}"));
    [
        it.engine.clone(),
        it.conditions.clone(),
        it.size_bytes.to_string(),
        it.figure.to_owned(),
        format!("{}{mark}", figure(it.published)),
        figure(it.median),
        it.repeats.to_string(),
        it.lost.to_string(),
        format!("{:.3}", it.ratio),
        interval,
        it.verdict.name().to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use weir_results::{Environment, LatencySummary, ThroughputSummary};

    use super::*;

    fn run(cases: impl IntoIterator<Item = Case>) -> Run {
        Run { cases: cases.into_iter().collect(), ..Run::new(Environment::default()) }
    }

    fn latency(p50: f64, repeat: u32) -> Case {
        Case::new("weir", Test::Latency, Reliability::Reliable, 32).with(|it| {
            let summary = LatencySummary { count: 1_000, p50, p99: p50 * 1.5, ..LatencySummary::default() };
            it.figures.latency_us = Some(summary);
            it.conditions.repeat = repeat;
        })
    }

    fn table(name: &str) -> Table {
        published::find(name).remove(0)
    }

    #[test]
    fn a_row_is_compared_with_the_repeats_of_its_size() {
        let table = table("pro-latency-1g-unkeyed-reliable");
        let row = table.rows.iter().find(|row| row.size == 32).unwrap();
        let published = row.figures[4];
        let repeats = (1..=8).map(|repeat| latency(published * 2.0 + f64::from(repeat) / 100.0, repeat));
        let others = [
            latency(1.0, 1).with(|it| it.point.keyed = true),
            latency(1.0, 1).with(|it| it.point.reliability = Reliability::BestEffort),
            latency(1.0, 1).with(|it| it.conditions.rate_samples_per_s = Some(10.0)),
            latency(1.0, 1).with(|it| it.point.size_bytes = 33),
        ];
        let compared = compared(&table, &[run(repeats.chain(others))], 0.0);
        assert_eq!(compared.iter().map(|it| it.figure).collect::<Vec<_>>(), ["p50_us", "p99_us"]);
        let first = &compared[0];
        assert_eq!((first.published, first.repeats, first.verdict), (published, 8, Change::Worse));
        assert!((first.ratio - 2.0).abs() < 0.01 && first.interval.unwrap()[0] > 1.9, "{first:?}");
        let shown = text(&table, &compared, 0.0);
        assert!(shown.contains("1 Gbit/s") && shown.contains("2 worse"), "{shown}");
    }

    #[test]
    fn repeats_under_different_conditions_are_rows_of_their_own() {
        let table = table("pro-latency-1g-unkeyed-reliable");
        let changes: [fn(&mut Case); 5] = [
            |_| (),
            |it| it.conditions.kept_awake = true,
            |it| it.point.loans = true,
            |it| it.conditions.path = Some("veth,mtu=1500".to_owned()),
            |it| it.conditions.beside = Some("tcp".to_owned()),
        ];
        let of = |(place, change): (usize, fn(&mut Case))| {
            (1..=8).map(move |repeat| latency(10.0 * (place + 1) as f64, repeat).with(change))
        };
        let found = compared(&table, &[run(changes.into_iter().enumerate().flat_map(of))], 0.0);
        let found: Vec<&Compared> = found.iter().filter(|it| it.figure == "p50_us").collect();
        let conditions: BTreeSet<&str> = found.iter().map(|it| it.conditions.as_str()).collect();
        assert!(conditions.len() == 5 && conditions.contains("reliable, loans, block"), "{conditions:?}");
        let medians: Vec<(f64, usize)> = found.iter().map(|it| (it.median, it.repeats)).collect();
        assert_eq!(medians, [10.0, 20.0, 30.0, 40.0, 50.0].map(|median| (median, 8)));
    }

    #[test]
    fn rates_are_better_when_they_are_higher_and_one_repeat_decides_nothing() {
        let table = table("pro-throughput-10g-unkeyed-reliable-no-batch");
        let row = &table.rows[0];
        let case = |repeat: u32| {
            Case::new("weir", Test::Throughput, Reliability::Reliable, row.size).with(|it| {
                let samples_per_s = row.figures[1] * 3.0 + f64::from(repeat);
                it.figures.throughput = Some(ThroughputSummary { samples_per_s, ..Default::default() });
            })
        };
        let verdict = |count| compared(&table, &[run((1..=count).map(case))], 0.0)[0].verdict;
        assert_eq!((verdict(8), verdict(1)), (Change::Better, Change::Inconclusive));
        let batched = run((1..=8).map(|repeat| case(repeat).with(|it| it.point.batch_bytes = 8_192)));
        assert_eq!(compared(&table, &[batched], 0.0), []);
    }

    #[test]
    fn verdicts_allow_for_the_tolerance() {
        let of = |low, high, better| verdict(Some([low, high]), better, 0.05);
        assert_eq!(of(0.8, 0.9, Better::Less), Change::Better);
        assert_eq!(of(1.01, 1.03, Better::Less), Change::Same);
        assert_eq!(of(1.1, 1.2, Better::Less), Change::Worse);
        assert_eq!(of(0.9, 1.2, Better::Less), Change::Inconclusive);
        assert_eq!(of(1.1, 1.2, Better::More), Change::Better);
    }
}
