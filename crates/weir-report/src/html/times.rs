//! What cases and hosts did over time: small plots, one for each size, and the data behind them.

use std::collections::BTreeMap;

use weir_results::{AgeSeries, Case, CaseSeries, LinkDirection, Telemetry};

use crate::group::{Group, Point};
use crate::html::chart::{Axis, Chart, Line, Size};
use crate::html::figure::{Figure, Key};
use crate::html::number::short;
use crate::html::palette::{Palette, panels};
use crate::html::table::{RowMark, Table};
use crate::plot::Mark;

/// Returns the plots over time of a group. Of several repeats, the first one is drawn.
pub(crate) fn over_time(group: &Group<'_>, palette: &Palette<'_>, has_peer: bool) -> Vec<Figure> {
    let hosts = if has_peer { HOSTS } else { HOST };
    KINDS.iter().chain([&hosts]).filter_map(|kind| figure(group, palette, kind)).collect()
}

/// A figure over time.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    title: &'static str,
    note: &'static str,
    y_label: &'static str,
    /// Whether a figure with zeros only says nothing.
    needs_values: bool,
    /// What is drawn of each engine: with a name if there are two, the second one by dashes.
    lines: &'static [(&'static str, Values)],
}

/// Seconds and values of a case.
type Values = fn(&Case) -> Vec<(f64, f64)>;

const KINDS: &[Kind] = &[
    Kind {
        name: "time-rate",
        title: "Rate over time.",
        note: "Samples that arrived, or round trips that completed, per second.",
        y_label: "per second",
        needs_values: false,
        lines: &[("", |case| {
            let per_s = |series: &CaseSeries, count: u64| count as f64 * 1e3 / series.step_ms;
            steps(case, |series| series.received.iter().map(|count| Some(per_s(series, *count))).collect())
        })],
    },
    Kind {
        name: "time-p99",
        title: "99th percentile over time.",
        note: "Of the latencies measured in each step, microseconds.",
        y_label: "us",
        needs_values: false,
        lines: &[("", |case| steps(case, |series| series.p99_us.clone()))],
    },
    Kind {
        name: "time-missing",
        title: "Missing samples over time.",
        note: "At the end of each step: lost, or not yet sent again.",
        y_label: "samples",
        needs_values: true,
        lines: &[("", |case| {
            steps(case, |series| series.missing.iter().map(|count| Some(*count as f64)).collect())
        })],
    },
    Kind {
        name: "time-processor",
        title: "Processor time over time.",
        note: "Percent of one processor.",
        y_label: "percent",
        needs_values: true,
        lines: &[
            ("publisher", |case| steps(case, |series| series.publisher_cpu_percent.clone())),
            ("subscriber", |case| steps(case, |series| series.subscriber_cpu_percent.clone())),
        ],
    },
    Kind {
        name: "time-link-rate",
        title: "Rate on the link over time.",
        note: "What arrived at the subscribers' end of the emulated link, Mbit/s.",
        y_label: "Mbit/s",
        needs_values: true,
        lines: &[("", |case| {
            link(case, |down| {
                let mbps = 8.0 / 1e3 / down.series.step_ms;
                down.series.delivered_bytes.iter().map(|bytes| *bytes as f64 * mbps).collect()
            })
        })],
    },
    Kind {
        name: "time-link-queue",
        title: "Queue of the link over time.",
        note: "Towards the subscribers, kB.",
        y_label: "kB",
        needs_values: true,
        lines: &[("", |case| {
            link(case, |down| down.series.queue_bytes.iter().map(|bytes| *bytes as f64 / 1e3).collect())
        })],
    },
    Kind {
        name: "time-age",
        title: "Age over the link over time.",
        note: "Age of samples on arrival, from the call that wrote them, milliseconds; warm-up included.",
        y_label: "ms",
        needs_values: true,
        lines: &[
            ("median", |case| ages(case, |ages| &ages.p50_ms)),
            ("99 %", |case| ages(case, |ages| &ages.p99_ms)),
        ],
    },
];

const HOST: Kind = Kind {
    name: "time-host",
    title: "Processors of the host over time.",
    note: "Percent of all processors that were not idle, warm-up included.",
    y_label: "percent",
    needs_values: true,
    lines: &[("", |case| case.evidence.publisher_telemetry.as_ref().map_or_else(Vec::new, busy))],
};

const HOSTS: Kind = Kind {
    name: "time-hosts",
    title: "Processors of both hosts over time.",
    lines: &[
        ("publisher", |case| case.evidence.publisher_telemetry.as_ref().map_or_else(Vec::new, busy)),
        ("subscriber", |case| case.evidence.subscriber_telemetry.as_ref().map_or_else(Vec::new, busy)),
    ],
    ..HOST
};

fn figure(group: &Group<'_>, palette: &Palette<'_>, kind: &Kind) -> Option<Figure> {
    let mut data = Table::new(format!("{} {}", kind.title, kind.note), 1, vec!["Time (s)".to_owned()]);
    for engine in group.engines() {
        data.headings
            .extend(kind.lines.iter().map(|(name, _)| format!("{engine} {name}").trim_end().to_owned()));
    }
    let (mut charts, mut is_shortened) = (Vec::new(), false);
    // A page with many of them stays small enough to be opened.
    let most = (POINTS_IN_ALL / group.points.len().max(1)).clamp(POINTS_FEW, POINTS_MAX);
    for (heading, points) in panels(group) {
        let drawn: Vec<Drawn> =
            points.into_iter().flat_map(|point| lines(point, palette, kind, most)).collect();
        if drawn.is_empty() {
            continue;
        }
        is_shortened |= drawn.iter().any(|it| it.is_shortened);
        push_rows(&mut data, &heading, &drawn);
        let lines = drawn.into_iter().map(|it| it.line).collect();
        charts.push(Chart {
            label: format!("{} {heading}.", kind.title),
            lines,
            heading: Some(heading),
            x: Axis::linear("seconds"),
            y: Axis::linear(kind.y_label),
            reference: None,
            size: Size::Small,
        });
    }
    if let [only] = charts.as_mut_slice() {
        only.size = Size::Normal;
    }
    let mut legend = palette.keys(group, charts.iter().flat_map(|chart: &Chart| &chart.lines));
    if let [(first, _), (second, _)] = kind.lines {
        legend.extend([Key::Line(first, false), Key::Line(second, true)]);
    }
    (!charts.is_empty()).then(|| Figure {
        name: kind.name,
        title: kind.title.to_owned(),
        note: if is_shortened { format!("{} {SHORTENED}", kind.note) } else { kind.note.to_owned() },
        legend,
        plots: charts.iter().map(Chart::draw).collect(),
        data,
    })
}

/// A line with the values that the table has of it.
struct Drawn {
    line: Line,
    values: Vec<(f64, f64)>,
    is_shortened: bool,
}

/// The lines of a point, of about so many points at most.
fn lines(point: &Point<'_>, palette: &Palette<'_>, kind: &Kind, most: usize) -> Vec<Drawn> {
    let line = |(number, (name, values)): (usize, &(&str, Values))| {
        let values = known(point, kind, *values)?;
        let line = Line {
            name: format!("{} {name}", point.engine).trim_end().to_owned(),
            hue: palette.hue(&point.engine),
            is_dashed: number > 0,
            has_dots: false,
            marks: course(&values, most)
                .map(|at| Mark { at, whisker: None, has_heavy_loss: false })
                .collect(),
        };
        // Steps at the same time share a row.
        let largest =
            |part: &[(f64, f64)]| (part[0].0, part.iter().map(|(_, value)| *value).fold(0.0, f64::max));
        let is_shortened = values.len() > most;
        let values = values.chunks(values.len().div_ceil(most)).map(largest).collect();
        Some(Drawn { line, values, is_shortened })
    };
    kind.lines.iter().enumerate().filter_map(line).collect()
}

/// Returns the values of a point's first repeat that has any.
fn known(point: &Point<'_>, kind: &Kind, values: Values) -> Option<Vec<(f64, f64)>> {
    let values = point.repeats.iter().map(|case| values(case)).find(|values| values.len() >= POINTS_MIN)?;
    let says_nothing = kind.needs_values && values.iter().all(|(_, value)| *value == 0.0);
    (!says_nothing).then_some(values)
}

/// A row for each time at which a line has a value.
fn push_rows(data: &mut Table, heading: &str, lines: &[Drawn]) {
    let mut rows: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let columns = data.headings.len() - 1;
    for Drawn { line, values, .. } in lines {
        let Some(column) = data.headings.iter().skip(1).position(|name| *name == line.name) else { continue };
        for &(at_s, value) in values {
            let row = rows.entry((at_s * 1e3).round() as u64).or_insert_with(|| vec![String::new(); columns]);
            row[column] = short(value);
        }
    }
    data.push_marked(vec![heading.to_owned()], RowMark::Heading);
    for (at_ms, cells) in rows {
        data.push([vec![(at_ms as f64 / 1e3).to_string()], cells].concat());
    }
}

/// The points of a line, with a point that is no number where steps have no value: the line breaks there.
fn course(values: &[(f64, f64)], most: usize) -> impl Iterator<Item = (f64, f64)> {
    // Readings of a host are late now and then: the usual step counts.
    let mut steps: Vec<f64> = values.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    steps.sort_by(f64::total_cmp);
    let step = steps.get(steps.len() / 2).copied().unwrap_or(f64::INFINITY);
    let runs = values.chunk_by(move |before, after| after.0 - before.0 < 1.75 * step);
    let width = if values.len() > most { values.len().div_ceil(most / 2) } else { 1 };
    let breaks = |run: &[(f64, f64)]| run.last().map(|(at, _)| (*at, f64::NAN));
    runs.flat_map(move |run| extremes(run, width).into_iter().chain(breaks(run)))
}

/// The smallest and the largest of so many values each, in their order: means would hide what a plot is to show.
fn extremes(values: &[(f64, f64)], width: usize) -> Vec<(f64, f64)> {
    if width == 1 {
        return values.to_vec();
    }
    let of = |part: &[(f64, f64)]| {
        let by_value = |one: &&(f64, f64), other: &&(f64, f64)| one.1.total_cmp(&other.1);
        let mut ends: Vec<(f64, f64)> =
            part.iter().min_by(by_value).into_iter().chain(part.iter().max_by(by_value)).copied().collect();
        ends.sort_by(|one, other| one.0.total_cmp(&other.0));
        ends.dedup();
        ends
    };
    values.chunks(width).flat_map(of).collect()
}

/// The known values of a case's series, at the middle of their steps.
fn steps(case: &Case, of: impl Fn(&CaseSeries) -> Vec<Option<f64>>) -> Vec<(f64, f64)> {
    let Some(series) = case.figures.series.as_ref().filter(|series| series.step_ms > 0.0) else {
        return Vec::new();
    };
    // The last step of a case may be shorter than the others, which would look like a fall of the rate.
    let whole =
        case.figures.duration_s.map_or(usize::MAX, |s| (s * 1e3 / series.step_ms + 0.05).floor() as usize);
    let at = |number: usize| (number as f64 + 0.5) * series.step_ms / 1e3;
    let values = of(series).into_iter().enumerate().take(whole.max(1));
    values.filter_map(|(number, value)| Some((at(number), value?))).collect()
}

/// The share of a host's processors that was not idle.
fn busy(telemetry: &Telemetry) -> Vec<(f64, f64)> {
    let value = |row| {
        let idle = telemetry.value("cpu.idle_percent", row)?;
        Some((telemetry.at_ms(row)? as f64 / 1e3, (100.0 - idle).max(0.0)))
    };
    let mut values: Vec<(f64, f64)> = (0..telemetry.rows()).filter_map(value).collect();
    // The last period ends with the case. Over a few milliseconds, the kernel's counters show nothing or everything.
    if let [first, second, .., before, last] = values.as_slice()
        && (last.0 - before.0) * 2.0 < second.0 - first.0
    {
        values.pop();
    }
    values
}

fn link(case: &Case, of: fn(&LinkDirection) -> Vec<f64>) -> Vec<(f64, f64)> {
    let Some(link) = &case.figures.link else { return Vec::new() };
    let step_s = link.to_subscribers.series.step_ms / 1e3;
    (0..).map(|step| (f64::from(step) + 0.5) * step_s).zip(of(&link.to_subscribers)).collect()
}

/// Ages of samples that carry the time of writing, at the middle of their steps.
fn ages(case: &Case, of: fn(&AgeSeries) -> &Vec<Option<f64>>) -> Vec<(f64, f64)> {
    let Some(ages) = case.figures.ages.as_ref().filter(|ages| ages.from_write) else { return Vec::new() };
    let at = |step: usize| (step as f64 + 0.5) * ages.step_ms / 1e3;
    of(ages).iter().enumerate().filter_map(|(step, age)| Some((at(step), (*age)?))).collect()
}

/// About the most points of a line. More would not show in a small plot.
const POINTS_MAX: usize = 200;
/// About so many at least, however many lines there are.
const POINTS_FEW: usize = 12;
/// About the most points of a kind of line in a group.
const POINTS_IN_ALL: usize = 600;
/// Said where there were more.
const SHORTENED: &str = "Of long series, the smallest and the largest value of each part are drawn, and the \
    largest is in the table.";
/// Fewer points are no course.
const POINTS_MIN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_results::{Reliability, Test};

    /// What is drawn, but for breaks.
    fn points(values: &[(f64, f64)]) -> Vec<(f64, f64)> {
        course(values, POINTS_MAX).filter(|(_, value)| value.is_finite()).collect()
    }

    #[test]
    fn the_peak_of_a_long_series_is_drawn() {
        let mut values: Vec<(f64, f64)> = (0..10 * POINTS_MAX).map(|n| (n as f64, 2.0)).collect();
        (values[77].1, values[78].1) = (900.0, 0.5);
        let short = points(&values);
        assert!(short.len() <= POINTS_MAX && short.is_sorted_by(|before, after| before.0 < after.0));
        assert!(short.contains(&(77.0, 900.0)) && short.contains(&(78.0, 0.5)), "{short:?}");
        assert_eq!(points(&values[..POINTS_MAX]), values[..POINTS_MAX]);
    }

    #[test]
    fn a_line_breaks_where_steps_have_no_value() {
        let breaks = |values: &[(f64, f64)]| -> Vec<bool> {
            course(values, POINTS_MAX).map(|(_, value)| value.is_nan()).collect()
        };
        let values = [(0.5, 1.0), (1.5, 1.0), (4.5, 1.0), (5.5, 1.0)];
        assert_eq!(breaks(&values), [false, false, true, false, false, true]);
        assert_eq!(points(&values), values);
    }

    #[test]
    fn ages_from_the_time_of_writing_are_drawn_and_scheduled_ones_are_not() {
        let case = |from_write| {
            Case::new("weir", Test::Throughput, Reliability::Reliable, 32).with(|case| {
                let p50_ms = vec![Some(3.0), None, Some(4.0)];
                case.figures.ages =
                    Some(AgeSeries { step_ms: 50.0, from_write, p50_ms, ..AgeSeries::default() });
            })
        };
        let kind = KINDS.last().unwrap();
        assert_eq!((kind.lines[0].1)(&case(true)), [(0.025, 3.0), (0.125, 4.0)]);
        assert_eq!((kind.lines[0].1)(&case(false)), []);
    }

    #[test]
    fn a_period_of_the_host_cut_short_by_the_end_is_left_out() {
        let busy_at = |last_ms: u64| {
            let mut telemetry = Telemetry::new(100);
            for (at_ms, idle) in [(100, 20.0), (200, 20.0), (300, 20.0), (last_ms, 100.0)] {
                telemetry.push(at_ms, [("cpu.idle_percent".to_owned(), idle)]);
            }
            busy(&telemetry)
        };
        assert_eq!(busy_at(304), [(0.1, 80.0), (0.2, 80.0), (0.3, 80.0)]);
        assert_eq!(busy_at(380).last(), Some(&(0.38, 0.0)));
    }

    #[test]
    fn a_step_cut_short_by_the_end_is_left_out() {
        let series = CaseSeries { step_ms: 1000.0, received: vec![10, 20, 5], ..CaseSeries::default() };
        let case = Case::new("weir", Test::Throughput, Reliability::Reliable, 32).with(|case| {
            case.figures.series = Some(series);
            case.figures.duration_s = Some(2.5);
        });
        assert_eq!((KINDS[0].lines[0].1)(&case), [(0.5, 10.0), (1.5, 20.0)]);
    }
}
