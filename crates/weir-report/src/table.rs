//! Tables for terminals, one per group of comparable cases. They are valid Markdown, too, and
//! readable without colour.

use comfy_table::{Cell, CellAlignment, Row, Table, presets};
use weir_results::{Case, LatencyKind, NotMeasured, Percentile, Run, Spread, Test};

use crate::breakdown::breakdown_table;
use crate::compare::{ReportOptions, times};
use crate::compared::Compared;
use crate::cost::cost_table;
use crate::group::{Group, Point, groups};
use crate::link::{beside_table, link_table};
use crate::loss::loss_lines;
use crate::path::path_table;
use crate::udp::udp_tables;
use crate::workload::workload_groups;

/// Marks a percentile that the count cannot support.
const UNSUPPORTED: char = '~';

/// Formats all cases of a run as tables, one per test and set of conditions.
///
/// Each has a title, and footnotes that explain the figures. Latencies are in microseconds with two
/// decimals. Of several repeats the median is shown, with the smallest and largest below if they
/// differ.
#[must_use]
pub fn tables(run: &Run, options: &ReportOptions) -> String {
    let mut tables: Vec<String> = groups(run).iter().map(|group| group_table(group, options)).collect();
    tables.extend(udp_tables(run));
    tables.extend(workload_groups(run).iter().map(|group| group.text(options)));
    tables.join("\n")
}

fn group_table(group: &Group<'_>, options: &ReportOptions) -> String {
    let (title, columns) = match (group.key.test, group.key.kind) {
        (Test::Latency, LatencyKind::HalfRtt) => ("Latency (one-way = RTT/2, microseconds)", TIMES.to_vec()),
        (Test::Latency, LatencyKind::Rtt) => ("Latency (round trip, microseconds)", TIMES.to_vec()),
        (Test::Latency, LatencyKind::OneWay) => (
            "Latency under load (one-way by one clock, from the intended send time, microseconds)",
            [LOAD, TIMES, LAG].concat(),
        ),
        (Test::Throughput | Test::Workload, _) => ("Throughput", THROUGHPUT.to_vec()),
    };
    let cases = || group.points.iter().flat_map(|point| &point.repeats);
    let has_two_clocks = cases().any(|case| case.figures.clocks.is_some_and(|clocks| !clocks.shared));
    let title =
        if has_two_clocks { title.replace("by one clock", "between two clocks") } else { title.into() };
    let compared = Compared::new(group, options);
    let headings = ["Engine", "Size (B)"].into_iter().chain(columns.iter().map(|(heading, ..)| *heading));
    // Unsupported cases are listed once below, not as rows of dashes.
    let rows = group.points.iter().filter(|point| !is_not_supported(point)).map(|point| {
        let mut cells = vec![point.engine.clone(), point.size_bytes.to_string()];
        cells.extend(columns.iter().map(|column| marked_text(point, *column)));
        cells.extend(compared.cells(point));
        cells
    });
    let headings = headings.map(str::to_owned).chain(compared.headings()).collect::<Vec<_>>();
    let table = drawn(headings, rows, |column| column > 0);
    let mut text = format!("{title}, {}\n\n{table}\n", group.key.conditions());
    let mut notes = footnotes(group);
    notes.extend(compared.notes());
    notes.extend(not_measured(group));
    notes.extend(loss_lines(group));
    if !notes.is_empty() {
        text.push_str(&format!("\n{}\n", notes.join("\n")));
    }
    text.push_str(&beside_table(group));
    text.push_str(&link_table(group));
    text.push_str(&path_table(group));
    text.push_str(&breakdown_table(group));
    if options.costs {
        text.push_str(&cost_table(group));
    }
    text
}

/// Draws a table; `is_right` selects the columns that are aligned to the right.
pub(crate) fn drawn<R: Into<Row>>(
    headings: impl Into<Row>,
    rows: impl IntoIterator<Item = R>,
    is_right: impl Fn(usize) -> bool,
) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN).set_header(headings).add_rows(rows);
    for column in table.column_iter_mut().filter(|column| is_right(column.index)) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

/// Draws a table of Markdown whose columns are numbers, which align right.
#[must_use]
pub fn markdown_table(headings: Vec<&'static str>, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    drawn(headings, rows, |_| true)
}

/// Draws a table; the columns of these numbers, from 0, are aligned to the right.
#[must_use]
pub fn text_table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>, right: &[usize]) -> String {
    let headings: Vec<String> = headings.iter().map(|it| (*it).to_owned()).collect();
    drawn(headings, rows, |column| right.contains(&column))
}

/// A column: heading, decimals, and the figure.
pub(crate) type Column = (&'static str, usize, fn(&Case) -> Option<f64>);

pub(crate) const LOAD: &[Column] = &[
    ("Load %", 1, |case| case.conditions.load_percent),
    ("Asked/s", 0, |case| case.conditions.rate_samples_per_s),
    ("Sent/s", 0, |case| Some(case.figures.throughput?.offered_samples_per_s)),
];

pub(crate) const TIMES: &[Column] = &[
    ("Count", 0, |case| Some(case.figures.latency_us?.count as f64)),
    ("Mean", 2, |case| Some(times(case)?.mean)),
    ("Std", 2, |case| Some(times(case)?.std)),
    ("Min", 2, |case| Some(times(case)?.min)),
    ("Max", 2, |case| Some(times(case)?.max)),
    (Percentile::P50.label(), 2, |case| Some(times(case)?.p50)),
    (Percentile::P90.label(), 2, |case| Some(times(case)?.p90)),
    (Percentile::P99.label(), 2, |case| Some(times(case)?.p99)),
    (Percentile::P99_99.label(), 2, |case| Some(times(case)?.p99_99)),
    (Percentile::P99_9999.label(), 2, |case| Some(times(case)?.p99_9999)),
    ("Lost", 0, |case| Some(case.figures.latency_us?.lost as f64)),
];

pub(crate) const LAG: &[Column] = &[
    ("99% of 10 ms", 2, |case| case.figures.latency_us?.p99_of_intervals),
    ("Lag 99%", 2, |case| Some(case.figures.schedule_lag_us?.p99)),
    ("Lag max", 2, |case| Some(case.figures.schedule_lag_us?.max)),
];

pub(crate) const THROUGHPUT: &[Column] = &[
    ("Total samples", 0, |case| Some(case.figures.throughput?.total_samples as f64)),
    ("Samples/s", 0, |case| Some(case.figures.throughput?.samples_per_s)),
    ("Mbit/s", 1, |case| Some(case.figures.throughput?.mbps)),
    ("Offered/s", 0, |case| Some(case.figures.throughput?.offered_samples_per_s)),
    ("Lost", 0, |case| Some(case.figures.throughput?.lost as f64)),
    ("Lost %", 2, |case| Some(case.figures.throughput?.lost_percent)),
    ("Dup", 0, |case| Some(case.figures.throughput?.duplicates as f64)),
    ("Reord", 0, |case| Some(case.figures.throughput?.reordered as f64)),
    ("Samples/datagram", 2, |case| case.figures.throughput?.samples_per_datagram),
    ("Datagrams/send", 2, |case| case.figures.throughput?.datagrams_per_send),
];

/// Formats the median over the repeats, and the smallest and largest on a second line if they
/// differ.
pub(crate) fn text(repeats: &[&Case], (_, decimals, figure): Column) -> String {
    spread_text(repeats, decimals, figure)
}

/// The same for any figure.
pub(crate) fn spread_text(
    repeats: &[&Case],
    decimals: usize,
    figure: impl Fn(&Case) -> Option<f64>,
) -> String {
    let spread = Spread::of(repeats.iter().filter_map(|case| figure(case)));
    let Some(Spread { median, min, max, .. }) = spread else { return dash() };
    let number = |value: f64| format!("{value:.decimals$}");
    if number(min) == number(max) {
        return number(median);
    }
    format!("{}\n{}..{}", number(median), number(min), number(max))
}

pub(crate) fn marked_text(point: &Point<'_>, column: Column) -> String {
    let text = text(&point.repeats, column);
    let percentile = Percentile::ALL.into_iter().find(|percentile| percentile.label() == column.0);
    match percentile.filter(|percentile| is_unsupported(point, *percentile)) {
        Some(_) => format!("{UNSUPPORTED}{text}"),
        None => text,
    }
}

fn is_unsupported(point: &Point<'_>, percentile: Percentile) -> bool {
    !point.repeats.iter().filter_map(|case| times(case)).all(|latency| latency.supports(percentile))
}

/// Returns the note below a table with these columns, if [`marked_text`] has marked one of its percentiles.
pub(crate) fn unsupported_note(points: &[Point<'_>], columns: &[Column]) -> Option<String> {
    let shown =
        || Percentile::ALL.into_iter().filter(|it| columns.iter().any(|column| column.0 == it.label()));
    points.iter().any(|point| shown().any(|it| is_unsupported(point, it))).then(|| {
        format!("{UNSUPPORTED} fewer samples than this percentile needs (1 / (1 - percentile)): read it as the maximum")
    })
}

pub(crate) fn footnotes(group: &Group<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(unsupported_note(&group.points, TIMES));
    if group.points.iter().any(|point| point.repeats.len() > 1) {
        notes.push("median over the repeats, smallest..largest below".to_owned());
    }
    if group.key.kind == LatencyKind::OneWay && group.key.test == Test::Latency {
        notes.push(
            "load: percent of the same engine's maximum rate; lag: how far the publisher was behind its schedule when it \
             sent, which is part of the latency"
                .to_owned(),
        );
    }
    if group.key.is_many() {
        notes.push(
            "samples/s and Mbit/s: mean per subscriber, from all publishers; offered: sum over the publishers; counts: \
             sums over the subscribers; datagrams: each subscriber's are counted"
                .to_owned(),
        );
    }
    notes
}

/// Returns why points of a group have no figures, with the sizes that a reason applies to.
fn not_measured(group: &Group<'_>) -> Vec<String> {
    reasons(group.points.iter())
}

/// Returns why some points have no figures, with the sizes that a reason applies to.
pub(crate) fn reasons<'a>(points: impl Iterator<Item = &'a Point<'a>>) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for point in points {
        for why in point.repeats.iter().filter_map(|case| case.evidence.not_measured.as_ref()) {
            let reason = format!("{}: {why}", point.engine);
            let size = format!("{} B", point.size_bytes);
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, sizes)) if sizes.contains(&size) => {}
                Some((_, sizes)) => sizes.push(size),
                None => reasons.push((reason, vec![size])),
            }
        }
    }
    reasons.into_iter().map(|(reason, sizes)| format!("{reason} ({})", sizes.join(", "))).collect()
}

pub(crate) fn is_not_supported(point: &Point<'_>) -> bool {
    let is_one = |case: &&Case| matches!(case.evidence.not_measured, Some(NotMeasured::NotSupported { .. }));
    point.repeats.iter().all(is_one)
}

pub(crate) fn number_cell(number: impl ToString) -> Cell {
    Cell::new(number).set_alignment(CellAlignment::Right)
}

pub(crate) fn dash() -> String {
    "-".to_owned()
}
