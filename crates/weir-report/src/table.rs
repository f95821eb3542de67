//! Tables for terminals, one per group of comparable cases. They are valid Markdown, too, and
//! readable without colour.

use comfy_table::{Cell, CellAlignment, Table, presets};
use weir_results::{
    Case, LatencyKind, LatencySummary, NotMeasured, Percentile, Run, Spread, Test, ThroughputSummary,
};

use crate::breakdown::breakdown_table;
use crate::compare::ReportOptions;
use crate::compared::Compared;
use crate::cost::cost_table;
use crate::group::{Group, Point, groups};
use crate::loss::loss_lines;
use crate::udp::udp_tables;

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
    tables.join("\n")
}

fn group_table(group: &Group<'_>, options: &ReportOptions) -> String {
    let (title, columns) = match group.key.test {
        Test::Latency => (latency_title(group.key.kind), latency_columns(group.key.kind)),
        Test::Throughput => ("Throughput".to_owned(), throughput_columns()),
    };
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    let compared = Compared::new(group, options);
    let headings = ["Engine", "Size (B)"].into_iter().chain(columns.iter().map(|column| column.heading));
    table.set_header(headings.map(str::to_owned).chain(compared.headings()));
    // Unsupported cases are listed once below, not as rows of dashes.
    for point in group.points.iter().filter(|point| !is_not_supported(point)) {
        let mut cells = vec![Cell::new(&point.engine), number_cell(point.size_bytes.to_string())];
        cells.extend(columns.iter().map(|column| number_cell(column.text(point))));
        cells.extend(compared.cells(point).into_iter().map(number_cell));
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = format!("{title}, {}\n\n{}\n", group.key.conditions(), trimmed(&table.to_string()));
    let mut notes = footnotes(group);
    notes.extend(compared.notes());
    notes.extend(not_measured(group));
    notes.extend(loss_lines(group));
    if !notes.is_empty() {
        text.push_str(&format!("\n{}\n", notes.join("\n")));
    }
    text.push_str(&breakdown_table(group));
    if options.costs {
        text.push_str(&cost_table(group));
    }
    text
}

fn latency_title(kind: LatencyKind) -> String {
    match kind {
        LatencyKind::HalfRtt => "Latency (one-way = RTT/2, microseconds)".to_owned(),
        LatencyKind::Rtt => "Latency (round trip, microseconds)".to_owned(),
        LatencyKind::OneWay => {
            "Latency under load (one-way by one clock, from the intended send time, microseconds)".to_owned()
        }
    }
}

/// Takes a figure from a case that has it.
type Figure = Box<dyn Fn(&Case) -> Option<f64>>;

/// One figure of a case as a column.
struct Column {
    heading: &'static str,
    decimals: usize,
    percentile: Option<Percentile>,
    figure: Figure,
}

impl Column {
    fn latency(
        heading: &'static str,
        decimals: usize,
        figure: impl Fn(&LatencySummary) -> f64 + 'static,
    ) -> Self {
        // No round trip completed: there are no times, but there are counts.
        let has = move |latency: &LatencySummary| latency.count > 0 || decimals == 0;
        let figure = move |case: &Case| case.figures.latency_us.as_ref().filter(|l| has(l)).map(&figure);
        Self { heading, decimals, percentile: None, figure: Box::new(figure) }
    }

    fn plain(
        heading: &'static str,
        decimals: usize,
        figure: impl Fn(&Case) -> Option<f64> + 'static,
    ) -> Self {
        Self { heading, decimals, percentile: None, figure: Box::new(figure) }
    }

    fn percentile(percentile: Percentile) -> Self {
        let column = Self::latency(percentile.label(), 2, move |latency| latency.percentile(percentile));
        Self { percentile: Some(percentile), ..column }
    }

    fn throughput(
        heading: &'static str,
        decimals: usize,
        figure: impl Fn(&ThroughputSummary) -> Option<f64> + 'static,
    ) -> Self {
        let figure = move |case: &Case| case.figures.throughput.as_ref().and_then(&figure);
        Self { heading, decimals, percentile: None, figure: Box::new(figure) }
    }

    /// Formats the median over the repeats, and the smallest and largest on a second line if they
    /// differ.
    fn text(&self, point: &Point<'_>) -> String {
        let Some(Spread { median, min, max, .. }) = point.spread(&self.figure) else { return dash() };
        let number = |value: f64| format!("{value:.*}", self.decimals);
        let mark = if self.is_unsupported(point) { UNSUPPORTED.to_string() } else { String::new() };
        let middle = format!("{mark}{}", number(median));
        if number(min) == number(max) {
            middle
        } else {
            format!("{middle}\n{}..{}", number(min), number(max))
        }
    }

    fn is_unsupported(&self, point: &Point<'_>) -> bool {
        self.percentile.is_some_and(|percentile| {
            let supports = |latency: &LatencySummary| latency.count == 0 || latency.supports(percentile);
            !point.repeats.iter().filter_map(|case| case.figures.latency_us.as_ref()).all(supports)
        })
    }
}

fn latency_columns(kind: LatencyKind) -> Vec<Column> {
    let mut columns = Vec::new();
    let is_open_loop = kind == LatencyKind::OneWay;
    if is_open_loop {
        columns.extend([
            Column::plain("Load %", 1, |case| case.conditions.load_percent),
            Column::plain("Asked/s", 0, |case| case.conditions.rate_samples_per_s),
            Column::throughput("Sent/s", 0, |t| Some(t.offered_samples_per_s)),
        ]);
    }
    columns.extend([
        Column::latency("Count", 0, |latency| latency.count as f64),
        Column::latency("Mean", 2, |latency| latency.mean),
        Column::latency("Std", 2, |latency| latency.std),
        Column::latency("Min", 2, |latency| latency.min),
        Column::latency("Max", 2, |latency| latency.max),
    ]);
    columns.extend(Percentile::ALL.map(Column::percentile));
    columns.push(Column::latency("Lost", 0, |latency| latency.lost as f64));
    if is_open_loop {
        columns.extend([
            Column::plain("99% of 10 ms", 2, |case| case.figures.latency_us?.p99_of_intervals),
            Column::plain("Lag 99%", 2, |case| Some(case.figures.schedule_lag_us?.p99)),
            Column::plain("Lag max", 2, |case| Some(case.figures.schedule_lag_us?.max)),
        ]);
    }
    columns
}

fn throughput_columns() -> Vec<Column> {
    vec![
        Column::throughput("Total samples", 0, |t| Some(t.total_samples as f64)),
        Column::throughput("Samples/s", 0, |t| Some(t.samples_per_s)),
        Column::throughput("Mbit/s", 1, |t| Some(t.mbps)),
        Column::throughput("Offered/s", 0, |t| Some(t.offered_samples_per_s)),
        Column::throughput("Lost", 0, |t| Some(t.lost as f64)),
        Column::throughput("Lost %", 2, |t| Some(t.lost_percent)),
        Column::throughput("Dup", 0, |t| Some(t.duplicates as f64)),
        Column::throughput("Reord", 0, |t| Some(t.reordered as f64)),
        Column::throughput("Samples/datagram", 2, |t| t.samples_per_datagram),
        Column::throughput("Datagrams/send", 2, |t| t.datagrams_per_send),
    ]
}

fn footnotes(group: &Group<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let percentiles = Percentile::ALL.map(Column::percentile);
    if group.points.iter().any(|point| percentiles.iter().any(|column| column.is_unsupported(point))) {
        notes.push(format!(
            "{UNSUPPORTED} fewer samples than this percentile needs (1 / (1 - percentile)): read it as the maximum"
        ));
    }
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

/// Returns why points have no figures, with the sizes that a reason applies to.
fn not_measured(group: &Group<'_>) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for point in &group.points {
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

fn is_not_supported(point: &Point<'_>) -> bool {
    let is_one = |case: &&Case| matches!(case.evidence.not_measured, Some(NotMeasured::NotSupported { .. }));
    point.repeats.iter().all(is_one)
}

pub(crate) fn number_cell(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

pub(crate) fn dash() -> String {
    "-".to_owned()
}

/// Removes trailing spaces from a table's lines.
pub(crate) fn trimmed(table: &str) -> String {
    table.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
