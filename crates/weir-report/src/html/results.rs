//! The tables of a group: what decides, and all other figures.

use maud::{Markup, html};
use weir_results::{Case, LatencyKind, Percentile, Test};

use crate::group::Group;
use crate::html::headline::Headline;
use crate::html::number::range;
use crate::html::palette::name_of;
use crate::html::summary::is_comparable;
use crate::html::table::{Row, RowMark, Table};
use crate::table::{
    Column, LAG, LOAD, THROUGHPUT, TIMES, footnotes, is_not_supported, marked_text, reasons, text,
    unsupported_note,
};

/// The table of a group with what decides.
pub(crate) fn main_table(group: &Group<'_>, headlines: &[Headline<'_>], base: &str) -> Table {
    let mut columns = columns(group);
    // Older results and open loops may have no distributions.
    columns
        .retain(|column| column.0 != P99_9 || group.points.iter().any(|point| point.spread(p99_9).is_some()));
    let has_intervals = headlines.iter().any(|it| it.interval.is_some());
    let has_ratios = headlines.iter().any(|it| it.comparison.is_some() && is_comparable(it));
    let has_verdicts = headlines
        .iter()
        .any(|it| it.comparison.is_some_and(|found| found.interval.is_some()) && is_comparable(it));
    let (figure, decimals) = match group.key.test {
        Test::Latency => ("50%", 2),
        Test::Throughput | Test::Workload => ("Samples/s", 0),
    };
    let mut headings = vec!["Engine".to_owned(), "Size (B)".to_owned()];
    headings.extend(columns.iter().map(|column| column.0.to_owned()));
    headings.extend(has_intervals.then(|| format!("{figure}, 95 % interval")));
    headings.extend(has_ratios.then(|| format!("x {base}")));
    headings.extend(has_verdicts.then(|| "Verdict".to_owned()));
    let mut table = Table::new(caption(group), 1, headings);
    // Unsupported cases are listed once below, not as rows.
    for it in headlines.iter().filter(|it| !is_not_supported(it.point)) {
        let mut cells = vec![name_of(it.point), it.point.size_bytes.to_string()];
        if let (RowMark::Failed, Some(why)) = (it.row_mark(), reason(it)) {
            cells.push(why);
            table.rows.push(Row { cells, mark: RowMark::Failed });
            continue;
        }
        cells.extend(columns.iter().map(|column| marked_text(it.point, *column)));
        let dash = || "-".to_owned();
        if has_intervals {
            cells.push(it.interval.map_or_else(dash, |interval| range(interval, decimals)));
        }
        let ratio = it.comparison.filter(|_| is_comparable(it)).map(|found| {
            let interval =
                found.interval.map_or_else(String::new, |interval| format!("\n{}", range(interval, 2)));
            format!("{:.2}{interval}", found.ratio)
        });
        if has_ratios {
            cells.push(ratio.unwrap_or_else(dash));
        }
        if has_verdicts {
            let found = it.comparison.filter(|_| it.point.engine != base && is_comparable(it));
            cells.push(found.map_or_else(dash, |found| found.verdict.to_string()));
        }
        table.push_marked(cells, it.row_mark());
    }
    add_published(&mut table, group, &columns);
    table
}

/// What the mark at percentiles of the main table means, if it is there.
pub(crate) fn main_note(group: &Group<'_>) -> Option<String> {
    unsupported_note(&group.points, &columns(group))
}

/// Adds the published figures of the sizes that were measured, each below the rows of its size.
fn add_published(table: &mut Table, group: &Group<'_>, columns: &[Column]) {
    for it in &group.published {
        let size = it.point.size_bytes.to_string();
        let Some(at) = table.rows.iter().rposition(|row| row.cells.get(1) == Some(&size)) else { continue };
        let doubt = if it.is_doubtful { " ?" } else { "" };
        let mut cells = vec![format!("{}{doubt}", it.point.engine), size];
        // Lost round trips were not published.
        let is_known = |name: &str| group.key.test == Test::Throughput || name != "Lost";
        let cell = |column: &Column| {
            if is_known(column.0) { text(&it.point.repeats, *column) } else { "-".to_owned() }
        };
        cells.extend(columns.iter().map(cell));
        cells.resize(table.headings.len(), "-".to_owned());
        table.rows.insert(at + 1, Row { cells, mark: RowMark::Published });
    }
}

/// Why a point has no figures.
fn reason(it: &Headline<'_>) -> Option<String> {
    it.point.repeats.iter().find_map(|case| case.evidence.not_measured.as_ref()).map(ToString::to_string)
}

/// Why points have no figures, as far as their rows do not say it.
pub(crate) fn not_measured(headlines: &[Headline<'_>]) -> Vec<String> {
    let has_failed_row = |it: &&Headline<'_>| it.row_mark() == RowMark::Failed && !is_not_supported(it.point);
    reasons(headlines.iter().filter(|it| !has_failed_row(it)).map(|it| it.point))
}

fn caption(group: &Group<'_>) -> String {
    let what = match (group.key.test, group.key.kind) {
        (Test::Latency, LatencyKind::HalfRtt) => "One-way latency (half of the round trip), microseconds",
        (Test::Latency, LatencyKind::Rtt) => "Round trips, microseconds",
        (Test::Latency, LatencyKind::OneWay) => "One-way latency from the intended send time, microseconds",
        (Test::Throughput | Test::Workload, _) => "Throughput",
    };
    let repeats = group.points.iter().map(|point| point.repeats.len()).max().unwrap_or(1);
    if repeats > 1 {
        format!("{what}; medians of {repeats} repeats, their range below")
    } else {
        format!("{what}; one run each")
    }
}

fn columns(group: &Group<'_>) -> Vec<Column> {
    match (group.key.test, group.key.kind) {
        (Test::Latency, LatencyKind::OneWay) => [SCHEDULED, LATENCY].concat(),
        (Test::Latency, _) => LATENCY.to_vec(),
        (Test::Throughput | Test::Workload, _) => RATE.to_vec(),
    }
}

const SCHEDULED: &[Column] = &[("Sent/s", 0, |case| Some(case.figures.throughput?.offered_samples_per_s))];

const LATENCY: &[Column] = &[
    (Percentile::P50.label(), 2, |case| Some(crate::compare::times(case)?.p50)),
    (Percentile::P99.label(), 2, |case| Some(crate::compare::times(case)?.p99)),
    (P99_9, 2, p99_9),
    ("Max", 2, |case| Some(crate::compare::times(case)?.max)),
    ("Lost", 0, |case| Some(case.figures.latency_us?.lost as f64)),
];

const P99_9: &str = "99.9%";

const RATE: &[Column] = &[
    ("Samples/s", 0, |case| Some(case.figures.throughput?.samples_per_s)),
    ("Mbit/s", 1, |case| Some(case.figures.throughput?.mbps)),
    ("Lost", 0, |case| Some(case.figures.throughput?.lost as f64)),
    ("Lost %", 2, |case| Some(case.figures.throughput?.lost_percent)),
];

/// Returns the percentile from the stored distribution, if that has enough latencies.
fn p99_9(case: &Case) -> Option<f64> {
    let distribution = case.figures.histogram.as_ref()?.decode().ok()?;
    (distribution.count() >= 1000).then(|| distribution.quantile_us(0.999))
}

/// All other figures of a group's points, in tables that start closed.
pub(crate) fn all_figures(group: &Group<'_>) -> Markup {
    let columns = match (group.key.test, group.key.kind) {
        (Test::Latency, LatencyKind::OneWay) => [LOAD, TIMES, LAG].concat(),
        (Test::Latency, _) => TIMES.to_vec(),
        (Test::Throughput | Test::Workload, _) => THROUGHPUT.to_vec(),
    };
    let mut all = Table::new(
        "All figures; median over the repeats, smallest..largest below",
        1,
        headings(&columns, false),
    );
    for point in &group.points {
        let mut cells = vec![name_of(point), point.size_bytes.to_string()];
        cells.extend(columns.iter().map(|column| marked_text(point, *column)));
        all.push(cells);
    }
    let tables = [Some(all), resources(group), link(group), paths(group)];
    html! {
        details.plain {
            summary { "All figures" }
            @for table in tables.iter().flatten() { (table.render()) }
            @for note in footnotes(group) { p.faint { (note) } }
        }
    }
}

fn headings(columns: &[Column], has_direction: bool) -> Vec<String> {
    let names = ["Engine", "Size (B)"].into_iter().chain(has_direction.then_some("To"));
    names.chain(columns.iter().map(|column| column.0)).map(str::to_owned).collect()
}

fn resources(group: &Group<'_>) -> Option<Table> {
    let (headings, rows) = crate::cost::costs(group)?;
    let mut table = Table::new(crate::cost::NOTE, 1, headings);
    rows.into_iter().for_each(|cells| table.push(cells));
    Some(table)
}

fn link(group: &Group<'_>) -> Option<Table> {
    let shown = crate::link::columns(group.points.iter().flat_map(|point| point.repeats.iter().copied()));
    let mut table = Table::new(crate::link::NOTE, 1, headings(shown[0], true));
    let has_link = |case: &Case| case.figures.link.is_some();
    for point in group.points.iter().filter(|point| point.repeats.iter().any(|case| has_link(case))) {
        for (to, columns) in ["subscribers", "publishers"].into_iter().zip(shown) {
            let mut cells = vec![name_of(point), point.size_bytes.to_string(), to.to_owned()];
            cells.extend(columns.iter().map(|column| text(&point.repeats, *column)));
            table.push(cells);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

fn paths(group: &Group<'_>) -> Option<Table> {
    let shown = crate::path::columns(group);
    let mut table = Table::new(crate::path::NOTE, 1, headings(shown, false));
    let has_path = |case: &Case| !case.figures.paths.is_empty();
    for point in group.points.iter().filter(|point| point.repeats.iter().any(|case| has_path(case))) {
        let mut cells = vec![name_of(point), point.size_bytes.to_string()];
        cells.extend(shown.iter().map(|column| text(&point.repeats, *column)));
        table.push(cells);
    }
    (!table.rows.is_empty()).then_some(table)
}
