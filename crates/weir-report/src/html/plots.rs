//! The plots of a group: by size, in relation to the baseline, by load, by percentile, and where time and samples go.

use weir_results::{Case, LatencyKind, LossAttribution, Stage, Test};

use crate::breakdown::Stages;
use crate::cost::{per_million, subscriber};
use crate::group::{Group, Load, Point};
use crate::html::chart::{Axis, Chart, Line, Size};
use crate::html::figure::{Figure, Key};
use crate::html::headline::{Headline, lost};
use crate::html::number::{or_dash, range, short};
use crate::html::palette::{Palette, name_of};
use crate::html::rows::{Dot, RowOf, Rows};
use crate::html::summary::is_comparable;
use crate::html::table::{RowMark, Table};
use crate::plot::{
    Figure as Drawn, HEAVY_LOSS_PERCENT, Hue, Mark, RATES, TIMES, mark, p50, p99, published_labels,
    size_label, size_ticks,
};
use crate::published::PublishedPoint;

/// Latency or throughput by size; dots in rows if there is one size only. Open loops vary by load instead.
pub(crate) fn by_size(group: &Group<'_>, palette: &Palette<'_>, link_mbps: Option<f64>) -> Option<Figure> {
    if is_open_loop(group) {
        return None;
    }
    let (title, figures, unit): (_, &[Drawn], _) = match group.key.test {
        Test::Latency => ("Latency by sample size", TIMES, "microseconds"),
        Test::Throughput | Test::Workload => ("Throughput by sample size", RATES, "Mbit/s"),
    };
    let link_mbps = link_mbps.filter(|_| group.key.test == Test::Throughput);
    if sizes(group).len() == 1 {
        return single_size(group, palette, link_mbps);
    }
    let lines: Vec<Line> = crate::plot::lines(group, figures)
        .into_iter()
        .map(|line| Line {
            name: format!("{} {}", line.engine, line.figure).trim_end().to_owned(),
            // The colours of engines are those of the whole run.
            hue: if let Hue::Published(_) = line.hue { line.hue } else { palette.hue(&line.engine) },
            is_dashed: line.dashed,
            has_dots: true,
            marks: line.marks,
        })
        .collect();
    if lines.is_empty() {
        return None;
    }
    let ticks = size_ticks(lines.iter().flat_map(|line| &line.marks).map(|mark| mark.at.0).collect(), 7.5);
    let chart = Chart {
        label: format!("{title}, {}, in {unit}.", group.key.conditions()),
        heading: None,
        x: Axis::logarithmic("sample size, bytes")
            .with_ticks(ticks.into_iter().map(|at| (at, size_label(at))).collect()),
        y: Axis::logarithmic(unit),
        reference: link_mbps,
        size: Size::Normal,
        lines,
    };
    let mut legend = palette.keys(group, chart.lines.iter());
    legend.extend(published_keys(group));
    if group.key.test == Test::Latency {
        legend.extend([Key::Line("median", false), Key::Line("99 %", true)]);
    }
    legend.extend(link_mbps.map(|_| LINK));
    legend.extend(mark_keys(
        chart.lines.iter().flat_map(|line| &line.marks).map(|m| (m.whisker.is_some(), m.has_heavy_loss)),
    ));
    Some(Figure {
        name: "by-size",
        title: format!("{title}."),
        note: "Both axes are logarithmic.".to_owned(),
        legend,
        plots: vec![chart.draw()],
        data: figures_table(group, title, figures, unit),
    })
}

const LINK: Key = Key::Reference("speed of the link, headers included");

fn single_size(group: &Group<'_>, palette: &Palette<'_>, link_mbps: Option<f64>) -> Option<Figure> {
    let (title, figures, axis): (_, &[Drawn], _) = match group.key.test {
        Test::Latency => ("Latency", TIMES, "microseconds"),
        Test::Throughput | Test::Workload => ("Throughput", RATES, "Mbit/s"),
    };
    let row = |point: &Point<'_>| {
        let dots = figures
            .iter()
            .filter_map(|(_, is_hollow, figure)| dot(point, figure, *is_hollow))
            .collect::<Vec<_>>();
        row(point, palette, group, dots)
    };
    let mut rows: Vec<RowOf> = group.points.iter().filter_map(row).collect();
    if rows.is_empty() {
        return None;
    }
    rows.extend(published_rows(group, figures));
    let mut legend = Vec::new();
    if group.key.test == Test::Latency {
        legend.extend([Key::Dot("median", false), Key::Dot("99 %", true)]);
    }
    legend.extend(link_mbps.map(|_| LINK));
    legend.extend(dot_keys(&rows));
    let x = if group.key.test == Test::Latency { Axis::logarithmic(axis) } else { Axis::linear(axis) };
    let label = format!("{title}, {}, in {axis}.", group.key.conditions());
    Some(Figure {
        name: "by-size",
        title: format!("{title}, samples of {} bytes.", sizes(group)[0]),
        note: if x_is_log(&x) { "The axis is logarithmic.".to_owned() } else { String::new() },
        legend,
        plots: vec![Rows { label, x, reference: link_mbps, rows }.draw()],
        data: figures_table(group, title, figures, axis),
    })
}

/// Each engine's figure as a multiple of the baseline's, with the interval.
pub(crate) fn ratios(
    group: &Group<'_>,
    headlines: &[Headline<'_>],
    palette: &Palette<'_>,
    base: &str,
) -> Option<Figure> {
    let others = || headlines.iter().filter(|it| it.point.engine != base && is_comparable(it));
    let compared: Vec<_> = others().filter_map(|it| Some((it, it.comparison?))).collect();
    if compared.is_empty() {
        return None;
    }
    let what = match group.key.test {
        Test::Latency => "Median latency",
        Test::Throughput | Test::Workload => "Samples per second",
    };
    let mut data = Table::new(
        format!("{what} as a multiple of {base}"),
        1,
        ["Engine", "Size (B)", "Ratio", "95 % interval", "Pairs", "Verdict"].map(str::to_owned).to_vec(),
    );
    let mut rows = Vec::new();
    for (it, found) in compared {
        let at = Dot {
            at: found.ratio,
            whisker: found.interval.map(|interval| (interval.low, interval.high)),
            is_hollow: false,
            is_lossy: it.lost_percent >= HEAVY_LOSS_PERCENT,
        };
        rows.extend(row(it.point, palette, group, vec![at]));
        data.push(vec![
            name_of(it.point),
            it.point.size_bytes.to_string(),
            format!("{:.3}", found.ratio),
            found.interval.map_or_else(|| "-".to_owned(), |interval| range(interval, 3)),
            found.pairs.to_string(),
            found.verdict.to_string(),
        ]);
    }
    let better = if group.key.test == Test::Latency { "Less" } else { "More" };
    let label = format!("{what} as a multiple of {base}, {}.", group.key.conditions());
    Some(Figure {
        name: "ratios",
        title: format!("{what} as a multiple of {base}."),
        note: format!("{better} is better. The axis is logarithmic; the dashed line is {base}."),
        legend: dot_keys(&rows),
        plots: vec![Rows { label, x: Axis::logarithmic("ratio"), reference: Some(1.0), rows }.draw()],
        data,
    })
}

/// Latency against load.
pub(crate) fn by_load(group: &Group<'_>, palette: &Palette<'_>) -> Option<Figure> {
    if !is_open_loop(group) {
        return None;
    }
    let is_percent = group.points.iter().any(|point| matches!(point.load, Some(Load::Percent(_))));
    let load = |point: &Point<'_>| match point.load {
        Some(Load::Percent(bits)) if is_percent => Some(f64::from_bits(bits)),
        Some(Load::Rate(bits)) if !is_percent => Some(f64::from_bits(bits)),
        _ => None,
    };
    let x_label = if is_percent { "load, percent of the engine's maximum" } else { "load, samples/s" };
    let line = |engine: &str, size: u64, (name, is_dashed, figure): Drawn| {
        let points = group.points.iter().filter(|point| point.engine == engine && point.size_bytes == size);
        let at = |point: &Point<'_>| {
            let found = mark(point, figure)?;
            Some(Mark { at: (load(point)?, found.at.1), ..found })
        };
        let mut marks: Vec<Mark> = points.filter_map(at).collect();
        marks.sort_by(|a, b| a.at.0.total_cmp(&b.at.0));
        let name = format!("{engine} {name}");
        Line { name, hue: palette.hue(engine), is_dashed, has_dots: true, marks }
    };
    let chart = |size: u64| {
        let engines = group.engines();
        let of = |engine: &str| {
            [line(engine, size, ("median", false, p50)), line(engine, size, ("99 %", true, p99))]
        };
        let lines: Vec<Line> =
            engines.into_iter().flat_map(of).filter(|line| !line.marks.is_empty()).collect();
        (!lines.is_empty()).then(|| Chart {
            label: format!("Latency against load, samples of {size} bytes."),
            heading: Some(format!("{size} B")),
            x: Axis::linear(x_label),
            y: Axis::logarithmic("microseconds"),
            reference: None,
            size: Size::Normal,
            lines,
        })
    };
    let charts: Vec<Chart> = sizes(group).into_iter().filter_map(chart).collect();
    if charts.is_empty() {
        return None;
    }
    let marks = charts.iter().flat_map(|chart| &chart.lines).flat_map(|line| &line.marks);
    let mut legend = palette.keys(group, charts.iter().flat_map(|chart| &chart.lines));
    legend.extend([Key::Line("median", false), Key::Line("99 %", true)]);
    legend.extend(mark_keys(marks.map(|mark| (mark.whisker.is_some(), mark.has_heavy_loss))));
    Some(Figure {
        name: "load",
        title: "Latency against load.".to_owned(),
        note: "From the intended send time, so that a sample that waits for a late sender counts.".to_owned(),
        legend,
        plots: charts.iter().map(Chart::draw).collect(),
        data: figures_table(group, "Latency by load", TIMES, "microseconds"),
    })
}

/// The stages of latency, as bars.
pub(crate) fn stages(group: &Group<'_>, palette: &Palette<'_>) -> Option<Figure> {
    let found: Vec<(&Point<'_>, Stages)> =
        group.points.iter().filter_map(|point| Some((point, Stages::of(point)?))).collect();
    if found.is_empty() {
        return None;
    }
    let mut headings = vec!["Engine".to_owned(), "Size (B)".to_owned()];
    headings.extend(Stage::ALL.iter().map(|stage| stage.name().to_owned()));
    headings.extend(["One way, mean".to_owned(), "One way, median".to_owned()]);
    let notes = crate::breakdown::notes(group).replace('\n', ". ");
    let mut data =
        Table::new(format!("Stages of one-way latency, means in microseconds; {notes}"), 1, headings);
    let mut rows = Vec::new();
    for (point, stages) in &found {
        let mut cells = vec![name_of(point), point.size_bytes.to_string()];
        let means = stages.stages.iter().map(|times| times.mean);
        cells.extend(
            means.clone().chain([stages.one_way.mean, stages.one_way.p50]).map(|us| format!("{us:.3}")),
        );
        data.push(cells);
        rows.push(RowOf {
            name: row_name(point, group),
            hue: palette.hue(&point.engine),
            dots: Vec::new(),
            parts: means.collect(),
            text: short(stages.one_way.mean),
        });
    }
    let label = "Stages of one-way latency.".to_owned();
    Some(Figure {
        name: "stages",
        title: "Stages of one-way latency.".to_owned(),
        note: "Means, which add up to the mean of the path. The kernel's time stamps divide it.".to_owned(),
        legend: Stage::ALL
            .iter()
            .enumerate()
            .map(|(number, stage)| Key::Part(stage.name(), number))
            .collect(),
        plots: vec![Rows { label, x: Axis::linear("microseconds"), reference: None, rows }.draw()],
        data,
    })
}

/// Where samples were lost, as far as the counters of both hosts say.
pub(crate) fn losses(group: &Group<'_>, palette: &Palette<'_>) -> Option<Figure> {
    let attributed = |case: &&Case| case.evidence.loss_attribution.clone().filter(|loss| loss.lost > 0);
    let mut headings = vec!["Engine".to_owned(), "Size (B)".to_owned(), "Lost".to_owned()];
    headings.extend(CAUSES.iter().map(|(name, _)| (*name).to_owned()));
    let mut data = Table::new("Lost samples by place, warm-up included, sum over the repeats", 1, headings);
    let mut rows = Vec::new();
    for point in &group.points {
        let found: Vec<LossAttribution> =
            point.repeats.iter().copied().filter_map(|case| attributed(&case)).collect();
        let total: u64 = found.iter().map(|loss| loss.lost).sum();
        if total == 0 {
            continue;
        }
        let counts = CAUSES.map(|(_, of)| found.iter().map(of).sum::<u64>());
        let mut cells = vec![name_of(point), point.size_bytes.to_string(), total.to_string()];
        cells.extend(counts.iter().map(u64::to_string));
        data.push(cells);
        rows.push(RowOf {
            name: row_name(point, group),
            hue: palette.hue(&point.engine),
            dots: Vec::new(),
            parts: counts.iter().map(|count| *count as f64 * 100.0 / total as f64).collect(),
            text: format!("{} lost", short(total as f64)),
        });
    }
    let label = "Lost samples by place, percent.".to_owned();
    (!rows.is_empty()).then(|| Figure {
        name: "losses",
        title: "Lost samples by place.".to_owned(),
        note: "In percent of the engine's own losses, warm-up included; the number behind a bar is how many were lost."
            .to_owned(),
        legend: CAUSES.iter().enumerate().map(|(number, (name, _))| Key::Part(name, number)).collect(),
        plots: vec![Rows { label, x: Axis::linear("percent of the lost samples"), reference: None, rows }.draw()],
        data,
    })
}

/// A place of lost samples and its count.
type Cause = (&'static str, fn(&LossAttribution) -> u64);

const CAUSES: [Cause; 8] = [
    ("left out by the writer", |loss| loss.sender_left_out),
    ("sender's socket", |loss| loss.sender_refused),
    ("sender's queue", |loss| loss.sender_queue),
    ("path", |loss| loss.path),
    ("receiver's socket", |loss| loss.receiver_socket),
    ("receiving host", |loss| loss.receiver_host),
    ("reader's cache", |loss| loss.receiver_rejected),
    ("unplaced", |loss| loss.unplaced),
];

/// Processor time per million samples, of both ends.
pub(crate) fn processor(group: &Group<'_>, palette: &Palette<'_>) -> Option<Figure> {
    let publisher = |case: &Case| {
        let end = case.figures.publisher?;
        per_million(&end, end.cpu_user_s + end.cpu_system_s)
    };
    let subscriber = |case: &Case| {
        let end = subscriber(case)?;
        per_million(&end, end.cpu_user_s + end.cpu_system_s)
    };
    let mut data = Table::new(
        "Processor seconds per million samples, user and system, warm-up included; medians",
        1,
        ["Engine", "Size (B)", "Publisher", "Subscriber"].map(str::to_owned).to_vec(),
    );
    let mut rows = Vec::new();
    for point in &group.points {
        let dots: Vec<Dot> =
            [dot(point, publisher, false), dot(point, subscriber, true)].into_iter().flatten().collect();
        if let Some(row) = row(point, palette, group, dots) {
            let median =
                |of: &dyn Fn(&Case) -> Option<f64>| or_dash(point.spread(of).map(|spread| spread.median), 3);
            data.push(vec![
                name_of(point),
                point.size_bytes.to_string(),
                median(&publisher),
                median(&subscriber),
            ]);
            rows.push(row);
        }
    }
    let label = "Processor seconds per million samples.".to_owned();
    (!rows.is_empty()).then(|| {
        let mut legend = vec![Key::Dot("publisher", false), Key::Dot("subscriber", true)];
        legend.extend(dot_keys(&rows));
        Figure {
            name: "processor",
            title: "Processor time per million samples.".to_owned(),
            note: "In seconds, user and system, warm-up included. The axis is logarithmic.".to_owned(),
            legend,
            plots: vec![
                Rows { label, x: Axis::logarithmic("processor seconds"), reference: None, rows }.draw(),
            ],
            data,
        }
    })
}

fn dot(point: &Point<'_>, figure: impl Fn(&Case) -> Option<f64>, is_hollow: bool) -> Option<Dot> {
    let found = mark(point, figure)?;
    Some(Dot { at: found.at.1, whisker: found.whisker, is_hollow, is_lossy: found.has_heavy_loss })
}

fn row(point: &Point<'_>, palette: &Palette<'_>, group: &Group<'_>, dots: Vec<Dot>) -> Option<RowOf> {
    let (name, hue) = (row_name(point, group), palette.hue(&point.engine));
    (!dots.is_empty()).then(|| RowOf { name, hue, dots, parts: Vec::new(), text: String::new() })
}

/// The name of a row: the engine, and what differs within the group.
fn row_name(point: &Point<'_>, group: &Group<'_>) -> String {
    if sizes(group).len() == 1 {
        name_of(point)
    } else {
        format!("{}, {} B", name_of(point), point.size_bytes)
    }
}

/// The rows of published figures of the only size.
fn published_rows(group: &Group<'_>, figures: &[Drawn]) -> Vec<RowOf> {
    let labels = published_labels(group);
    let of_size = group.published.iter().filter(|it| sizes(group).contains(&it.point.size_bytes));
    let row = |it: &PublishedPoint<'_>| {
        let number = labels.iter().position(|label| *label == it.point.engine).unwrap_or(0);
        let dots: Vec<Dot> =
            figures.iter().filter_map(|(_, is_hollow, of)| dot(&it.point, of, *is_hollow)).collect();
        let (name, hue) = (it.point.engine.clone(), Hue::Published(number));
        (!dots.is_empty()).then(|| RowOf { name, hue, dots, parts: Vec::new(), text: String::new() })
    };
    of_size.filter_map(row).collect()
}

/// The entries of a legend for published tables.
fn published_keys(group: &Group<'_>) -> Vec<Key> {
    let labels = published_labels(group).into_iter().enumerate();
    labels.map(|(number, label)| Key::Engine(label.to_owned(), Hue::Published(number))).collect()
}

fn x_is_log(axis: &Axis) -> bool {
    axis.is_logarithmic
}

fn is_open_loop(group: &Group<'_>) -> bool {
    group.key.test == Test::Latency && group.key.kind == LatencyKind::OneWay
}

fn sizes(group: &Group<'_>) -> Vec<u64> {
    let mut sizes: Vec<u64> = group.points.iter().map(|point| point.size_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// What whiskers and crosses mean, if there are any.
pub(crate) fn mark_keys(marks: impl Iterator<Item = (bool, bool)>) -> Vec<Key> {
    let (whiskers, crosses) =
        marks.fold((false, false), |(w, c), (whisker, cross)| (w || whisker, c || cross));
    let mut keys = Vec::new();
    keys.extend(whiskers.then_some(Key::Whisker("95 % interval, or range of fewer than 6 repeats")));
    keys.extend(crosses.then(|| Key::Cross(format!("{HEAVY_LOSS_PERCENT} % lost or more"))));
    keys
}

fn dot_keys(rows: &[RowOf]) -> Vec<Key> {
    mark_keys(rows.iter().flat_map(|row| &row.dots).map(|dot| (dot.whisker.is_some(), dot.is_lossy)))
}

/// Returns the medians of some figures, and their intervals or ranges.
fn figures_table(group: &Group<'_>, title: &str, figures: &[Drawn], unit: &str) -> Table {
    let mut headings = vec!["Engine".to_owned(), "Size (B)".to_owned()];
    for (name, ..) in figures {
        let name = if name.is_empty() { "Median" } else { name };
        headings.extend([name.to_owned(), "Interval or range".to_owned()]);
    }
    headings.push("Lost".to_owned());
    let mut table = Table::new(format!("{title}, {unit}, medians of the repeats"), 1, headings);
    let published = group.published.iter().map(|it| &it.point);
    for point in group.points.iter().chain(published.clone()) {
        let mut cells = vec![name_of(point), point.size_bytes.to_string()];
        for (_, _, figure) in figures {
            let found = mark(point, figure);
            cells.push(or_dash(found.map(|mark| mark.at.1), 2));
            let range = found.and_then(|mark| mark.whisker).map(|(low, high)| format!("{low:.2}..{high:.2}"));
            cells.push(range.unwrap_or_else(|| "-".to_owned()));
        }
        let is_published = published.clone().any(|it| std::ptr::eq(it, point));
        // Lost round trips were not published.
        let is_known = !is_published || group.key.test == Test::Throughput;
        cells.push(if is_known { lost(point).to_string() } else { "-".to_owned() });
        table.push_marked(cells, if is_published { RowMark::Published } else { RowMark::Plain });
    }
    table
}
