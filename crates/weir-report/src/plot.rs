//! SVG plots by sample size, one per group of comparable cases.

use plotters::chart::SeriesLabelPosition;
use plotters::coord::Shift;
use plotters::coord::combinators::{BindKeyPoints, IntoLogRange};
use plotters::element::{Circle, DashedPathElement};
use plotters::prelude::{
    ChartBuilder, DashedLineSeries, DrawingArea, DrawingAreaErrorKind, IntoDrawingArea, IntoFont, LineSeries,
    RGBColor, SVGBackend, ShapeStyle, WHITE,
};
use weir_results::{Case, LatencyKind, Run, Test};

use crate::group::{FLOOR, Group, groups};

/// A plot of one group of comparable cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plot {
    /// Name for a file, without folder and suffix, e.g. `latency-reliable-unkeyed-block`. Different
    /// for all plots of a run.
    pub name: String,
    /// The picture, a whole SVG document.
    pub svg: String,
}

/// One plot per test and set of conditions that has figures: median and 99th percentile of latency by
/// sample size, or throughput by sample size, both axes logarithmic, one colour per engine. Of
/// several repeats the median is drawn.
#[must_use]
pub fn plots(run: &Run) -> Vec<Plot> {
    groups(run)
        .iter()
        .filter_map(|group| {
            let svg = draw_group(group)?;
            Some(Plot { name: group.key.file_stem(), svg })
        })
        .collect()
}

/// What a chart shows.
struct Chart {
    title: String,
    conditions: String,
    y_name: &'static str,
    lines: Vec<Line>,
    legend: SeriesLabelPosition,
}

/// One line of a chart, by size.
struct Line {
    label: String,
    colour: RGBColor,
    dashed: bool,
    points: Vec<(f64, f64)>,
}

/// What is drawn of each point: its name, how, and what.
type Figure = (&'static str, bool, fn(&Case) -> Option<f64>);

fn draw_group(group: &Group<'_>) -> Option<String> {
    let (title, y_name, figures, legend): (_, _, &[Figure], _) = match group.key.test {
        Test::Latency => (
            match group.key.kind {
                LatencyKind::HalfRtt => "One-way latency (RTT/2) by sample size",
                LatencyKind::Rtt => "Round-trip time by sample size",
            },
            "microseconds",
            &[(" median", false, p50), (" 99 %", true, p99)],
            SeriesLabelPosition::UpperLeft,
        ),
        Test::Throughput => {
            ("Throughput by sample size", "Mbit/s", &[("", false, mbps)], SeriesLabelPosition::LowerRight)
        }
    };
    let lines = lines(group, figures);
    if lines.is_empty() {
        return None;
    }
    let conditions = group.key.conditions();
    let chart = Chart { title: title.to_owned(), conditions, y_name, lines, legend };
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
        draw(&area, &chart).expect("drawing into a string does not fail");
    }
    Some(svg)
}

fn p50(case: &Case) -> Option<f64> {
    case.latency_us.map(|latency| latency.p50)
}

fn p99(case: &Case) -> Option<f64> {
    case.latency_us.map(|latency| latency.p99)
}

fn mbps(case: &Case) -> Option<f64> {
    case.throughput.map(|throughput| throughput.mbps)
}

/// The lines of all engines; values that a logarithmic axis can't show are left out.
fn lines(group: &Group<'_>, figures: &[Figure]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut others = OTHER_COLOURS.iter().cycle();
    for engine in group.engines() {
        let colour = match engine {
            FLOOR => FLOOR_COLOUR,
            "weir" => WEIR_COLOUR,
            _ => *others.next().expect("a cycle of colours does not end"),
        };
        for (name, dashed, figure) in figures {
            let points: Vec<(f64, f64)> = group
                .points
                .iter()
                .filter(|point| point.engine == engine && point.size_bytes > 0)
                .filter_map(|point| Some((point.size_bytes as f64, point.spread(figure)?.median)))
                .filter(|(_, value)| value.is_finite() && *value > 0.0)
                .collect();
            if !points.is_empty() {
                lines.push(Line { label: format!("{engine}{name}"), colour, dashed: *dashed, points });
            }
        }
    }
    lines
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw(area: &Area<'_>, chart: &Chart) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    area.fill(&WHITE)?;
    let (title, body) = area.split_vertically(TITLE_HEIGHT);
    title.draw_text(&chart.title, &(FONT, 20).into_font().color(&INK), (LEFT, 12))?;
    title.draw_text(&chart.conditions, &(FONT, 13).into_font().color(&FAINT_INK), (LEFT, 38))?;

    let xs = || chart.lines.iter().flat_map(|line| line.points.iter().map(|(x, _)| *x));
    let ys = || chart.lines.iter().flat_map(|line| line.points.iter().map(|(_, y)| *y));
    let (x_range, y_range) = (padded(xs(), 1.15), padded(ys(), 1.3));
    let x_ticks = size_ticks(xs().collect());
    let y_ticks = decimal_ticks(y_range.start, y_range.end);
    let mut plot = ChartBuilder::on(&body)
        .margin_right(24)
        .margin_bottom(8)
        .x_label_area_size(48)
        .y_label_area_size(LEFT)
        .build_cartesian_2d(
            x_range.log_scale().with_key_points(x_ticks),
            y_range.log_scale().with_key_points(y_ticks),
        )?;
    plot.configure_mesh()
        .x_desc("sample size, bytes")
        .y_desc(chart.y_name)
        .axis_desc_style((FONT, 14).into_font().color(&INK))
        .label_style((FONT, 13).into_font().color(&INK))
        .axis_style(FAINT_INK)
        .bold_line_style(GRID)
        .light_line_style(WHITE)
        .x_label_formatter(&|size| size_label(*size))
        .y_label_formatter(&|value| number_label(*value))
        .draw()?;

    for line in &chart.lines {
        let style = ShapeStyle { color: line.colour.into(), filled: false, stroke_width: 2 };
        let points = line.points.iter().copied();
        let series = if line.dashed {
            plot.draw_series(DashedLineSeries::new(points, DASH.0, DASH.1, style))?
        } else {
            plot.draw_series(LineSeries::new(points, style))?
        };
        let (colour, dashed) = (line.colour, line.dashed);
        series.label(&line.label).legend(move |at| legend_mark(at, colour, dashed));
        if !line.dashed {
            let dot = |point: &(f64, f64)| Circle::new(*point, 3, line.colour_filled());
            plot.draw_series(line.points.iter().map(dot))?;
        }
    }
    plot.configure_series_labels()
        .position(chart.legend.clone())
        .margin(14)
        .legend_area_size(34)
        .background_style(WHITE)
        .border_style(GRID)
        .label_font((FONT, 14).into_font().color(&INK))
        .draw()?;
    area.present()
}

impl Line {
    fn colour_filled(&self) -> ShapeStyle {
        ShapeStyle { color: self.colour.into(), filled: true, stroke_width: 0 }
    }
}

/// The mark before a label: a short piece of the line as it is drawn. A whole line is one long dash.
fn legend_mark(
    (x, y): (i32, i32),
    colour: RGBColor,
    dashed: bool,
) -> DashedPathElement<std::array::IntoIter<(i32, i32), 2>, i32> {
    const LENGTH: i32 = 26;
    let style = ShapeStyle { color: colour.into(), filled: false, stroke_width: 2 };
    let (dash, gap) = if dashed { DASH } else { (LENGTH, 1) };
    DashedPathElement::new([(x, y), (x + LENGTH, y)], dash, gap, style)
}

/// The range of some values, widened by a factor on both sides, so that it is never empty.
fn padded(values: impl Iterator<Item = f64>, factor: f64) -> std::ops::Range<f64> {
    let (min, max) = values.fold((f64::MAX, f64::MIN_POSITIVE), |(min, max), v| (v.min(min), v.max(max)));
    min / factor..max * factor
}

/// The measured sizes as ticks, without those whose labels would overlap the one before.
fn size_ticks(mut sizes: Vec<f64>) -> Vec<f64> {
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let span = sizes.last().zip(sizes.first()).map_or(0.0, |(last, first)| (last / first).ln());
    let mut ticks: Vec<f64> = Vec::new();
    for size in sizes {
        if ticks.last().is_none_or(|tick| (size / tick).ln() >= span / MOST_X_TICKS) {
            ticks.push(size);
        }
    }
    ticks
}

/// 1, 2 and 5 times the powers of ten from `start` to `end`, or the powers alone over wide ranges.
fn decimal_ticks(start: f64, end: f64) -> Vec<f64> {
    let digits: &[f64] = if end / start > 2e4 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let (first, last) = (start.log10().floor() as i32, end.log10().ceil() as i32);
    (first..=last)
        .flat_map(|exponent| digits.iter().map(move |digit| digit * 10_f64.powi(exponent)))
        .filter(|tick| (start..=end).contains(tick))
        .collect()
}

/// A size in bytes, short: `32`, `1k`, `63000`, `1M`.
fn size_label(size: f64) -> String {
    let bytes = size.round() as u64;
    match bytes {
        b if b >= 1 << 20 && b.is_multiple_of(1 << 20) => format!("{}M", b >> 20),
        b if b >= 1 << 10 && b.is_multiple_of(1 << 10) => format!("{}k", b >> 10),
        b => b.to_string(),
    }
}

/// A number of the vertical axis, without needless decimals.
fn number_label(value: f64) -> String {
    if value >= 1.0 { format!("{value:.0}") } else { format!("{value:.3}").trim_end_matches('0').to_owned() }
}

const WIDTH: u32 = 860;
const HEIGHT: u32 = 500;
const TITLE_HEIGHT: i32 = 64;
/// Width of the labels left of the plot; the title begins where the plot does.
const LEFT: i32 = 72;
/// Length of a dash and of the gap after it.
const DASH: (i32, i32) = (5, 4);
const MOST_X_TICKS: f64 = 14.0;
const FONT: &str = "sans-serif";
const INK: RGBColor = RGBColor(31, 41, 55);
const FAINT_INK: RGBColor = RGBColor(107, 114, 128);
const GRID: RGBColor = RGBColor(225, 228, 232);
const FLOOR_COLOUR: RGBColor = RGBColor(107, 114, 128);
const WEIR_COLOUR: RGBColor = RGBColor(0, 95, 204);
/// Colours that people who see colours differently can tell apart too.
const OTHER_COLOURS: [RGBColor; 5] = [
    RGBColor(217, 119, 6),
    RGBColor(0, 136, 102),
    RGBColor(190, 60, 120),
    RGBColor(120, 80, 200),
    RGBColor(140, 90, 50),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_within_the_range() {
        assert_eq!(decimal_ticks(3.0, 120.0), [5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(decimal_ticks(0.5, 90_000.0), [1.0, 10.0, 100.0, 1000.0, 10_000.0]);
    }

    #[test]
    fn sizes_too_close_to_the_one_before_have_no_tick() {
        assert_eq!(size_ticks(vec![1024.0, 32.0, 32.0, 1025.0]), [32.0, 1024.0]);
        assert_eq!(size_ticks(vec![64.0]), [64.0]);
    }

    #[test]
    fn labels_are_short() {
        assert_eq!([32.0, 1024.0, 63_000.0, 1_048_576.0].map(size_label), ["32", "1k", "63000", "1M"]);
        assert_eq!([0.5, 0.02, 1.0, 500.0].map(number_label), ["0.5", "0.02", "1", "500"]);
    }

    #[test]
    fn a_single_value_still_has_a_range() {
        let range = padded([10.0].into_iter(), 2.0);
        assert_eq!((range.start, range.end), (5.0, 20.0));
    }
}
