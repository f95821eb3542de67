//! Cases over time: a figure of each run with its interval, as a table and as an SVG plot.

use std::fmt::Write as _;

use plotters::element::{Circle, PathElement};
use plotters::prelude::{ChartBuilder, IntoFont, LineSeries, RGBColor, ShapeStyle, WHITE};
use weir_results::Interval;

use crate::compact::three_digits;
use crate::plot::{Area, Drawn, FAINT_INK, FONT, GRID, INK, svg};
use crate::table::{dash, drawn};

/// A case over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// The case, e.g. `weir latency 32 B, reliable, block`.
    pub title: String,
    /// What the figures are, with their unit, e.g. `median latency (us)`.
    pub figure: &'static str,
    /// The runs, in order of time.
    pub runs: Vec<TimelineRun>,
}

/// The case in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineRun {
    /// The name of the run, e.g. `@3f2a91c0`.
    pub id: String,
    /// Its start, as in RFC 3339.
    pub date: String,
    /// The median over its repeats.
    pub median: f64,
    /// The 95 % interval of that; `None` with too few repeats.
    pub interval: Option<Interval>,
    /// Number of repeats with figures.
    pub repeats: usize,
    /// Samples lost.
    pub lost: u64,
    /// Divided by the median of the run before.
    pub ratio: Option<f64>,
    /// The 95 % interval of that ratio; `None` with too few repeats.
    pub ratio_interval: Option<Interval>,
}

/// Returns a table for each case, with a drawing of the intervals. They are valid Markdown, too.
#[must_use]
pub fn timeline_tables(timelines: &[Timeline]) -> String {
    let tables = timelines.iter().map(|timeline| {
        let (low, high) = span(timeline);
        let rows = timeline.runs.iter().map(|run| cells(run, low, high).to_vec());
        let table = drawn(HEADINGS.map(str::to_owned).to_vec(), rows, |column| (2..7).contains(&column));
        let range = format!("from {} to {}", three_digits(low), three_digits(high));
        format!("{}: {}; drawn {range}\n\n{table}\n", timeline.title, timeline.figure)
    });
    tables.collect::<Vec<_>>().join("\n")
}

const HEADINGS: [&str; 8] =
    ["Run", "Start (UTC)", "Repeats", "Median", "95 % interval", "To the one before", "Lost", "Drawn"];

fn cells(run: &TimelineRun, low: f64, high: f64) -> [String; 8] {
    let ends = |it: Interval| format!("{} to {}", three_digits(it.low), three_digits(it.high));
    let change = run.ratio.map_or_else(String::new, |ratio| {
        let mut text = format!("{ratio:.3}");
        match run.ratio_interval {
            Some(it) if it.contains(1.0) => {}
            Some(it) => _ = write!(text, " ({:.3} to {:.3})", it.low, it.high),
            None => text.push_str(" ?"),
        }
        text
    });
    [
        run.id.clone(),
        minute(&run.date),
        run.repeats.to_string(),
        three_digits(run.median),
        run.interval.map_or_else(dash, ends),
        change,
        run.lost.to_string(),
        drawing(run, low, high),
    ]
}

/// The interval as a line and the median as a point, on a scale that all runs of a case share.
fn drawing(run: &TimelineRun, low: f64, high: f64) -> String {
    let width = (high - low).max(f64::MIN_POSITIVE);
    let at = |value: f64| (((value - low) / width).clamp(0.0, 1.0) * (DRAWN - 1) as f64).round() as usize;
    let mut cells = [' '; DRAWN];
    if let Some(interval) = run.interval {
        cells[at(interval.low)..=at(interval.high)].fill('-');
    }
    cells[at(run.median)] = 'o';
    let text: String = cells.iter().collect();
    format!("[{text}]")
}

/// Characters of [`drawing`].
const DRAWN: usize = 24;

/// `2026-11-24 10:00`.
fn minute(date: &str) -> String {
    date.get(..16).unwrap_or(date).replace('T', " ")
}

/// The least and the greatest that a case shows.
fn span(timeline: &Timeline) -> (f64, f64) {
    let ends = timeline.runs.iter().flat_map(|run| {
        let interval = run.interval.unwrap_or(Interval { low: run.median, high: run.median });
        [interval.low.min(run.median), interval.high.max(run.median)]
    });
    let (low, high) =
        ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

/// Draws the cases below each other as one SVG document: a point for each run, and a whisker for its interval.
///
/// # Panics
/// Never: drawing into a string does not fail.
#[must_use]
pub fn timeline_plot(timelines: &[Timeline]) -> String {
    let height = HEIGHT * timelines.len().max(1) as u32;
    svg(WIDTH, height, |area| {
        let areas = area.split_evenly((timelines.len().max(1), 1));
        areas.iter().zip(timelines).try_for_each(|(area, timeline)| draw(area, timeline))
    })
}

fn draw(area: &Area<'_>, timeline: &Timeline) -> Drawn {
    let (low, high) = span(timeline);
    let margin = ((high - low) * 0.1).max(high.abs() * 0.02).max(1e-9);
    let count = timeline.runs.len();
    let mut chart = ChartBuilder::on(area)
        .caption(&timeline.title, (FONT, 15).into_font().color(&INK))
        .margin(10)
        .margin_right(24)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(-0.5..count.max(1) as f64 - 0.5, (low - margin).max(0.0)..high + margin)?;
    let date = |x: &f64| {
        let run = (x.fract().abs() < 1e-6 && *x > -0.25).then(|| timeline.runs.get(*x as usize)).flatten();
        run.map_or_else(String::new, |run| minute(&run.date))
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(count.clamp(1, 7))
        .y_labels(5)
        .x_desc("Start of the run (UTC)")
        .y_desc(timeline.figure)
        .axis_desc_style((FONT, 13).into_font().color(&INK))
        .label_style((FONT, 12).into_font().color(&INK))
        .axis_style(FAINT_INK)
        .bold_line_style(GRID)
        .light_line_style(WHITE)
        .x_label_formatter(&date)
        .y_label_formatter(&|y| three_digits(*y))
        .draw()?;
    let line = ShapeStyle { color: GRID.into(), filled: false, stroke_width: 2 };
    let points = || timeline.runs.iter().enumerate().map(|(at, run)| (at as f64, run));
    chart.draw_series(LineSeries::new(points().map(|(at, run)| (at, run.median)), line))?;
    let ink = ShapeStyle { color: COLOUR.into(), filled: true, stroke_width: 2 };
    let whisker = |(at, run): (f64, &TimelineRun)| {
        run.interval.map(|it| PathElement::new(vec![(at, it.low), (at, it.high)], ink))
    };
    chart.draw_series(points().filter_map(whisker))?;
    chart.draw_series(points().map(|(at, run)| Circle::new((at, run.median), 4, ink)))?;
    Ok(())
}

const WIDTH: u32 = 860;
const HEIGHT: u32 = 260;
const COLOUR: RGBColor = RGBColor(0, 95, 204);

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(medians: &[f64]) -> Timeline {
        let run = |(number, median): (usize, &f64)| TimelineRun {
            id: format!("@0000000{number}"),
            date: format!("2026-11-2{number}T10:00:07Z"),
            median: *median,
            interval: (number > 0).then_some(Interval { low: median * 0.9, high: median * 1.1 }),
            repeats: 8,
            lost: number as u64,
            ratio: number.checked_sub(1).map(|before| median / medians[before]),
            ratio_interval: number.checked_sub(1).map(|_| Interval { low: 1.1, high: 1.4 }),
        };
        let runs = medians.iter().enumerate().map(run).collect();
        Timeline { title: "weir <latency> 32 B".into(), figure: "median latency (us)", runs }
    }

    #[test]
    fn tables_show_intervals_and_what_changed() {
        let text = timeline_tables(&[timeline(&[10.0, 12.5])]);
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("@0000000")).collect();
        assert!(
            text.starts_with("weir <latency> 32 B: median latency (us); drawn from 10 to 13.8"),
            "{text}"
        );
        assert!(rows[0].contains("| 2026-11-20 10:00 |") && rows[0].contains(" - |"), "{text}");
        assert!(rows[1].contains("11.2 to 13.8") && rows[1].contains("1.250 (1.100 to 1.400)"), "{text}");
        assert!(rows[0].contains("[o ") && rows[1].contains("-o-"), "{text}");
    }

    #[test]
    fn plots_have_a_chart_for_each_case_and_a_point_for_each_run() {
        let svg = timeline_plot(&[timeline(&[10.0, 12.5, 11.0]), timeline(&[7.0])]);
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
        assert_eq!(svg.matches("<circle").count(), 4);
        assert_eq!(svg.matches("weir &lt;latency&gt; 32 B").count(), 2);
        assert!(svg.contains("2026-11-21 10:00"), "{svg}");
        assert!(timeline_plot(&[]).starts_with("<svg "));
        assert!(timeline_plot(&[timeline(&[])]).starts_with("<svg "));
    }
}
