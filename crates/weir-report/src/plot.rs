//! SVG plots by sample size, one per group of comparable cases.
//!
//! One colour and mark per engine; whiskers span the 95 % interval of the median, or all repeats where
//! there are fewer than that takes; a cross marks points that lost much.

use plotters::coord::Shift;
use plotters::coord::combinators::{BindKeyPoints, IntoLogRange};
use plotters::element::{
    Circle, Cross, DashedPathElement, EmptyElement, PathElement, Rectangle, TriangleMarker,
};
use plotters::prelude::{
    ChartBuilder, DashedLineSeries, DrawingArea, DrawingAreaErrorKind, IntoDrawingArea, IntoFont, LineSeries,
    RGBColor, SVGBackend, ShapeStyle, WHITE,
};
use weir_results::{Case, Interval, LatencyKind, Percentile, Run, Test};

use crate::compact::{lost_percent, three_digits};
use crate::distribution::{RARITIES, distributions, percentile_label};
use crate::group::{FLOOR, GSO, Group, Point, groups};
use crate::published::{Published, put_beside};
use crate::stage_bars::stage_bars;

/// A plot of one group of comparable cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plot {
    /// File name without folder and extension, e.g. `latency-reliable-unkeyed-block`. Unique within
    /// a run.
    pub name: String,
    /// The plot, as a complete SVG document.
    pub svg: String,
}

/// One plot per test and set of conditions that has figures: median and 99th percentile of latency by
/// sample size, or throughput by sample size, both axes logarithmic, one colour per engine. Of
/// several repeats the median is drawn, with whiskers. Where a latency has stages, one plot of them, too. Where cases
/// hold their distributions, one plot of percentiles for each size.
#[must_use]
pub fn plots(run: &Run) -> Vec<Plot> {
    plots_beside(run, &[])
}

/// The same, with published figures in the plots by sample size.
#[must_use]
pub fn plots_beside(run: &Run, published: &[Published]) -> Vec<Plot> {
    let mut groups = groups(run);
    put_beside(&mut groups, published);
    let by_size = groups.iter().filter_map(|group| {
        let svg = draw_group(group)?;
        Some(Plot { name: group.key.file_stem(), svg })
    });
    let stages = groups.iter().filter_map(|group| {
        let name = format!("breakdown-{}", group.key.file_stem());
        Some(Plot { name, svg: stage_bars(group)? })
    });
    by_size.chain(stages).chain(groups.iter().flat_map(distributions)).collect()
}

/// The content of a chart.
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) conditions: String,
    pub(crate) axis: Axis,
    pub(crate) lines: Vec<Line>,
}

/// What the horizontal axis of a chart shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    /// The size of a sample in bytes; measured sizes are marked.
    Size,
    /// The parameter N of a workload; measured values are marked.
    Count,
    /// How rare a latency is: 100 at the 99th percentile, 1000 at that of 99.9 %.
    Rarity,
}

/// One line of a chart.
pub(crate) struct Line {
    pub(crate) engine: String,
    pub(crate) figure: &'static str,
    pub(crate) hue: Hue,
    pub(crate) dashed: bool,
    pub(crate) marks: Vec<Mark>,
}

/// The colour of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hue {
    Floor,
    Gso,
    /// Published figures, numbered.
    Published(usize),
    Weir,
    /// Weir in another mode.
    WeirVariant,
    /// The others, numbered.
    Other(usize),
}

/// One point of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    pub(crate) at: (f64, f64),
    /// The ends of the whisker; `None` for a single run.
    pub(crate) whisker: Option<(f64, f64)>,
    pub(crate) has_heavy_loss: bool,
}

/// What is drawn of each point: its name, whether by dashes, and what.
pub(crate) type Figure = (&'static str, bool, fn(&Case) -> Option<f64>);

fn draw_group(group: &Group<'_>) -> Option<String> {
    if group.key.test == Test::Latency && group.key.kind == LatencyKind::OneWay {
        // By load instead of size: shown in a table.
        return None;
    }
    let (title, figures): (_, &[Figure]) = match (group.key.test, group.key.kind) {
        (Test::Latency, LatencyKind::HalfRtt) => {
            ("One-way latency (RTT/2) in microseconds, by sample size", TIMES)
        }
        (Test::Latency, LatencyKind::Rtt | LatencyKind::OneWay) => {
            ("Round-trip time in microseconds, by sample size", TIMES)
        }
        (Test::Throughput | Test::Workload, _) => ("Throughput in Mbit/s, by sample size", RATES),
    };
    let lines = lines(group, figures);
    if lines.is_empty() {
        return None;
    }
    Some(chart_svg(&Chart {
        title: title.to_owned(),
        conditions: group.key.conditions(),
        axis: Axis::Size,
        lines,
    }))
}

/// Draws a chart as an SVG document.
pub(crate) fn chart_svg(chart: &Chart) -> String {
    svg(WIDTH, HEIGHT, |area| draw(area, chart))
}

/// Draws into an SVG document of this size.
pub(crate) fn svg(width: u32, height: u32, draw: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        let drawn = area.fill(&WHITE).and_then(|()| draw(&area)).and_then(|()| area.present());
        drawn.expect("drawing into a string does not fail");
    }
    svg
}

/// The area of an SVG document.
pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The result of drawing.
pub(crate) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

pub(crate) const TIMES: &[Figure] = &[("median", false, p50), ("99 %", true, p99)];
pub(crate) const RATES: &[Figure] = &[("", false, mbps)];

pub(crate) fn p50(case: &Case) -> Option<f64> {
    case.figures.latency_us.map(|latency| latency.p50)
}

pub(crate) fn p99(case: &Case) -> Option<f64> {
    case.figures.latency_us.filter(|latency| latency.supports(Percentile::P99)).map(|latency| latency.p99)
}

fn mbps(case: &Case) -> Option<f64> {
    case.figures.throughput.map(|throughput| throughput.mbps)
}

/// Returns the lines of all engines; values that a logarithmic axis cannot show are left out.
pub(crate) fn lines(group: &Group<'_>, figures: &[Figure]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (engine, hue) in hues(group.engines()) {
        for (name, dashed, figure) in figures {
            let points = group.points.iter().filter(|point| point.engine == engine && point.size_bytes > 0);
            let marks: Vec<Mark> = points.filter_map(|point| mark(point, *figure)).collect();
            if !marks.is_empty() {
                let engine = engine.to_owned();
                lines.push(Line { engine, figure: name, hue, dashed: *dashed, marks });
            }
        }
    }
    lines.extend(published_lines(group, figures));
    lines
}

/// The lines of published figures, a colour for each table.
fn published_lines(group: &Group<'_>, figures: &[Figure]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (number, label) in published_labels(group).into_iter().enumerate() {
        for (name, dashed, figure) in figures {
            let of_table = group.published.iter().filter(|it| it.point.engine == label);
            let marks: Vec<Mark> = of_table.filter_map(|it| mark(&it.point, *figure)).collect();
            if !marks.is_empty() {
                let (engine, hue) = (label.to_owned(), Hue::Published(number));
                lines.push(Line { engine, figure: name, hue, dashed: *dashed, marks });
            }
        }
    }
    lines
}

/// The names of the published tables beside a group.
pub(crate) fn published_labels<'g>(group: &'g Group<'_>) -> Vec<&'g str> {
    let mut labels: Vec<&str> = Vec::new();
    for it in &group.published {
        if !labels.contains(&it.point.engine.as_str()) {
            labels.push(&it.point.engine);
        }
    }
    labels
}

/// Returns engines with their colours.
pub(crate) fn hues(engines: Vec<&str>) -> Vec<(&str, Hue)> {
    let mut others = 0;
    let hue = |engine: &str| match engine {
        FLOOR => Hue::Floor,
        GSO => Hue::Gso,
        "weir" => Hue::Weir,
        _ if engine.starts_with("weir ") => Hue::WeirVariant,
        _ => {
            others += 1;
            Hue::Other(others - 1)
        }
    };
    let hues: Vec<Hue> = engines.iter().copied().map(hue).collect();
    engines.into_iter().zip(hues).collect()
}

impl Hue {
    fn colour(self) -> RGBColor {
        match self {
            Self::Floor => FLOOR_COLOUR,
            Self::Gso => GSO_COLOUR,
            Self::Published(number) => PUBLISHED_COLOURS[number % PUBLISHED_COLOURS.len()],
            Self::Weir => WEIR_COLOUR,
            Self::WeirVariant => WEIR_VARIANT_COLOUR,
            Self::Other(number) => OTHER_COLOURS[number % OTHER_COLOURS.len()],
        }
    }

    /// Returns whether its colour is used a second time. Its marks are then triangles instead of circles.
    pub(crate) fn is_second_round(self) -> bool {
        matches!(self, Self::Other(number) if number >= OTHER_COLOURS.len())
    }
}

pub(crate) fn mark(point: &Point<'_>, figure: impl Fn(&Case) -> Option<f64>) -> Option<Mark> {
    let spread = point.spread(&figure).filter(|spread| spread.min.is_finite() && spread.min > 0.0)?;
    let figures: Vec<f64> = point.repeats.iter().filter_map(|case| figure(case)).collect();
    let range = Interval::of_median(&figures).map_or((spread.min, spread.max), |it| (it.low, it.high));
    Some(Mark {
        at: (point.size_bytes as f64, spread.median),
        whisker: (spread.count > 1).then_some(range),
        has_heavy_loss: lost_percent(point) >= HEAVY_LOSS_PERCENT,
    })
}

fn draw(area: &Area<'_>, chart: &Chart) -> Drawn {
    let (title, body) = area.split_vertically(TITLE_HEIGHT);
    let (body, legend) = body.split_horizontally(WIDTH as i32 - LEGEND_WIDTH);
    title.draw_text(&chart.title, &(FONT, 20).into_font().color(&INK), (LEFT, 12))?;
    title.draw_text(&chart.conditions, &(FONT, 13).into_font().color(&FAINT_INK), (LEFT, 38))?;

    let marks = || chart.lines.iter().flat_map(|line| &line.marks);
    let xs = || marks().map(|mark| mark.at.0);
    let ys = || marks().flat_map(|mark| mark.whisker.map_or([mark.at.1; 2], |(low, high)| [low, high]));
    let (x_range, y_range) = (padded(xs(), 1.15), padded(ys(), 1.3));
    let (x_ticks, x_label, x_desc): (_, fn(f64) -> String, _) = match chart.axis {
        Axis::Size => (size_ticks(xs().collect(), MOST_X_TICKS), size_label, "sample size, bytes"),
        Axis::Count => (size_ticks(xs().collect(), MOST_X_TICKS), |n| n.round().to_string(), "N"),
        Axis::Rarity => (RARITIES.to_vec(), percentile_label, "percentile"),
    };
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
        .x_desc(x_desc)
        .axis_desc_style((FONT, 14).into_font().color(&INK))
        .label_style((FONT, 13).into_font().color(&INK))
        .axis_style(FAINT_INK)
        .bold_line_style(GRID)
        .light_line_style(WHITE)
        .x_label_formatter(&|value| x_label(*value))
        .y_label_formatter(&|value| three_digits(*value))
        .draw()?;

    for line in &chart.lines {
        let points = line.marks.iter().map(|mark| mark.at);
        if line.dashed {
            plot.draw_series(DashedLineSeries::new(points, DASH.0, DASH.1, line.stroke()))?;
        } else {
            plot.draw_series(LineSeries::new(points, line.stroke()))?;
        }
        if chart.axis == Axis::Rarity {
            continue;
        }
        let whisker = |mark: &Mark| {
            let (low, high) = mark.whisker?;
            Some(PathElement::new(vec![(mark.at.0, low), (mark.at.0, high)], line.thin()))
        };
        plot.draw_series(line.marks.iter().filter_map(whisker))?;
        let (lossy, sound): (Vec<&Mark>, Vec<&Mark>) =
            line.marks.iter().partition(|mark| mark.has_heavy_loss);
        plot.draw_series(lossy.iter().map(|mark| Cross::new(mark.at, CROSS_RADIUS, line.stroke())))?;
        if let Hue::Published(_) = line.hue {
            let square = |mark: &&Mark| EmptyElement::at(mark.at) + Rectangle::new(SQUARE, line.dot());
            plot.draw_series(sound.iter().map(square))?;
        } else if line.hue.is_second_round() {
            let triangle = |mark: &&Mark| TriangleMarker::new(mark.at, DOT_RADIUS + 1, line.dot());
            plot.draw_series(sound.iter().map(triangle))?;
        } else {
            plot.draw_series(sound.iter().map(|mark| Circle::new(mark.at, DOT_RADIUS, line.dot())))?;
        }
    }
    draw_legend(&legend, &chart.lines)
}

/// The engines, then what kinds of lines and marks stand for, as far as they are drawn. Beside the plot, so that
/// they never cover it.
fn draw_legend(area: &Area<'_>, lines: &[Line]) -> Drawn {
    const STROKE: i32 = 28;
    let ink = (FONT, 14).into_font().color(&INK);
    let mut y = 16;
    let mut engines: Vec<&str> = Vec::new();
    for line in lines {
        if engines.contains(&line.engine.as_str()) {
            continue;
        }
        engines.push(&line.engine);
        area.draw(&PathElement::new(vec![(0, y), (STROKE, y)], line.stroke()))?;
        if let Hue::Published(_) = line.hue {
            let [from, to] = SQUARE.map(|(dx, dy)| (STROKE / 2 + dx, y + dy));
            area.draw(&Rectangle::new([from, to], line.dot()))?;
        } else if line.hue.is_second_round() {
            area.draw(&TriangleMarker::new((STROKE / 2, y), DOT_RADIUS + 1, line.dot()))?;
        } else {
            area.draw(&Circle::new((STROKE / 2, y), DOT_RADIUS, line.dot()))?;
        }
        for text in legend_lines(&line.engine) {
            area.draw_text(&text, &ink, (STROKE + 8, y - 7))?;
            y += LEGEND_LINE;
        }
    }
    let plain = ShapeStyle { color: FAINT_INK.into(), filled: false, stroke_width: 2 };
    y += LEGEND_LINE / 2;
    for dashed in [false, true] {
        let Some(line) = lines.iter().find(|line| line.dashed == dashed && !line.figure.is_empty()) else {
            continue;
        };
        let (dash, gap) = if dashed { DASH } else { (STROKE, 1) };
        area.draw(&DashedPathElement::new([(0, y), (STROKE, y)], dash, gap, plain))?;
        area.draw_text(line.figure, &ink, (STROKE + 8, y - 7))?;
        y += LEGEND_LINE;
    }
    let marks = || lines.iter().flat_map(|line| &line.marks);
    if marks().any(|mark| mark.whisker.is_some()) {
        area.draw(&PathElement::new(vec![(STROKE / 2, y - 8), (STROKE / 2, y + 8)], plain))?;
        area.draw_text("range or 95 % interval", &ink, (STROKE + 8, y - 7))?;
        y += LEGEND_LINE;
    }
    if marks().any(|mark| mark.has_heavy_loss) {
        area.draw(&Cross::new((STROKE / 2, y), CROSS_RADIUS, plain))?;
        area.draw_text(&format!("{HEAVY_LOSS_PERCENT} % lost or more"), &ink, (STROKE + 8, y - 7))?;
    }
    Ok(())
}

/// Breaks a name between words, so that it fits the legend.
fn legend_lines(name: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in name.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= LEGEND_CHARACTERS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

impl Line {
    fn stroke(&self) -> ShapeStyle {
        ShapeStyle { color: self.hue.colour().into(), filled: false, stroke_width: 2 }
    }

    fn thin(&self) -> ShapeStyle {
        ShapeStyle { stroke_width: 1, ..self.stroke() }
    }

    /// How a measured size is marked: filled on whole lines, hollow on dashed ones.
    fn dot(&self) -> ShapeStyle {
        ShapeStyle { color: self.hue.colour().into(), filled: !self.dashed, stroke_width: 1 }
    }
}

/// Returns the range of some values, widened by a factor on both sides, so that it is never empty.
fn padded(values: impl Iterator<Item = f64>, factor: f64) -> std::ops::Range<f64> {
    let (min, max) = values.fold((f64::MAX, f64::MIN_POSITIVE), |(min, max), v| (v.min(min), v.max(max)));
    min / factor..max * factor
}

/// Returns the measured sizes as ticks, without those whose labels would overlap the previous one.
pub(crate) fn size_ticks(mut sizes: Vec<f64>, most: f64) -> Vec<f64> {
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let span = sizes.last().zip(sizes.first()).map_or(0.0, |(last, first)| (last / first).ln());
    let mut ticks: Vec<f64> = Vec::new();
    for size in sizes {
        if ticks.last().is_none_or(|tick| (size / tick).ln() >= span / most) {
            ticks.push(size);
        }
    }
    ticks
}

/// Returns round numbers from `start` to `end`: powers of ten over a wide range, more numbers over
/// a narrow one.
pub(crate) fn decimal_ticks(start: f64, end: f64) -> Vec<f64> {
    let digits: &[f64] = match end / start {
        ratio if ratio > 2e4 => &[1.0],
        ratio if ratio > 20.0 => &[1.0, 2.0, 5.0],
        _ => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
    };
    let (first, last) = (start.log10().floor() as i32, end.log10().ceil() as i32);
    (first..=last)
        .flat_map(|exponent| digits.iter().map(move |digit| digit * 10_f64.powi(exponent)))
        .filter(|tick| (start..=end).contains(tick))
        .collect()
}

/// Formats a size in bytes, short: `32`, `1k`, `63000`, `1M`.
pub(crate) fn size_label(size: f64) -> String {
    let bytes = size.round() as u64;
    match bytes {
        b if b >= 1 << 20 && b.is_multiple_of(1 << 20) => format!("{}M", b >> 20),
        b if b >= 1 << 10 && b.is_multiple_of(1 << 10) => format!("{}k", b >> 10),
        b => b.to_string(),
    }
}

pub(crate) const WIDTH: u32 = 960;
const HEIGHT: u32 = 500;
pub(crate) const LEGEND_WIDTH: i32 = 220;
/// What fits behind the marks of a legend.
const LEGEND_CHARACTERS: usize = 26;
pub(crate) const TITLE_HEIGHT: i32 = 64;
/// Width of the labels left of the plot; the title starts where the plot does.
const LEFT: i32 = 68;
/// Length of a dash and of the gap after it.
const DASH: (i32, i32) = (5, 4);
const DOT_RADIUS: i32 = 3;
/// The corners of a square mark.
const SQUARE: [(i32, i32); 2] = [(-3, -3), (3, 3)];
const CROSS_RADIUS: i32 = 5;
const LEGEND_LINE: i32 = 20;
/// From here on a rate or latency says little about what arrived.
pub(crate) const HEAVY_LOSS_PERCENT: f64 = 5.0;
const MOST_X_TICKS: f64 = 14.0;
pub(crate) const FONT: &str = "sans-serif";
pub(crate) const INK: RGBColor = RGBColor(31, 41, 55);
pub(crate) const FAINT_INK: RGBColor = RGBColor(107, 114, 128);
pub(crate) const GRID: RGBColor = RGBColor(225, 228, 232);
const FLOOR_COLOUR: RGBColor = RGBColor(107, 114, 128);
const GSO_COLOUR: RGBColor = RGBColor(31, 41, 55);
const WEIR_COLOUR: RGBColor = RGBColor(0, 95, 204);
const WEIR_VARIANT_COLOUR: RGBColor = RGBColor(84, 166, 255);
const PUBLISHED_COLOURS: [RGBColor; 3] = [RGBColor(122, 75, 0), RGBColor(91, 42, 134), RGBColor(0, 89, 76)];
/// Colours that are distinguishable with colour vision deficiency.
const OTHER_COLOURS: [RGBColor; 8] = [
    RGBColor(217, 119, 6),
    RGBColor(0, 136, 102),
    RGBColor(190, 60, 120),
    RGBColor(120, 80, 200),
    RGBColor(140, 90, 50),
    RGBColor(200, 160, 0),
    RGBColor(0, 150, 170),
    RGBColor(150, 30, 30),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_within_the_range() {
        assert_eq!(decimal_ticks(3.0, 120.0), [5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(decimal_ticks(3.2, 17.0), [4.0, 5.0, 7.0, 10.0, 15.0]);
        assert_eq!(decimal_ticks(0.5, 90_000.0), [1.0, 10.0, 100.0, 1000.0, 10_000.0]);
    }

    #[test]
    fn sizes_too_close_to_the_one_before_have_no_tick() {
        assert_eq!(size_ticks(vec![1024.0, 32.0, 32.0, 1025.0], MOST_X_TICKS), [32.0, 1024.0]);
        assert_eq!(size_ticks(vec![64.0], MOST_X_TICKS), [64.0]);
    }

    #[test]
    fn long_names_are_broken_in_a_legend() {
        assert_eq!(legend_lines("weir (loans)"), ["weir (loans)"]);
        let lines = ["Connext Professional, 1", "Gbit/s (published)"];
        assert_eq!(legend_lines("Connext Professional, 1 Gbit/s (published)"), lines);
    }

    #[test]
    fn labels_are_short() {
        assert_eq!([32.0, 1024.0, 63_000.0, 1_048_576.0].map(size_label), ["32", "1k", "63000", "1M"]);
    }

    #[test]
    fn a_single_value_still_has_a_range() {
        let range = padded([10.0].into_iter(), 2.0);
        assert_eq!((range.start, range.end), (5.0, 20.0));
    }
}
