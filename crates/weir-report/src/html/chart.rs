//! SVG plots of the HTML report: lines and marks over two axes, linear or logarithmic.
//!
//! They are narrow, so that their texts stay readable on a phone, and take their colours from the page's style sheet,
//! in light and dark.

use std::fmt::Write as _;

use maud::{Markup, html};

use crate::html::number::short;
use crate::plot::{Hue, Mark, decimal_ticks};

/// A plot of lines.
pub(crate) struct Chart {
    /// What the plot shows, for readers without the picture.
    pub(crate) label: String,
    /// Shown above the plot, if it is one of several.
    pub(crate) heading: Option<String>,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// A value of the vertical axis that others are compared with, marked by a line.
    pub(crate) reference: Option<f64>,
    pub(crate) lines: Vec<Line>,
    pub(crate) size: Size,
}

/// An axis.
pub(crate) struct Axis {
    pub(crate) label: &'static str,
    pub(crate) is_logarithmic: bool,
    /// Labelled places; computed if empty.
    pub(crate) ticks: Vec<(f64, String)>,
}

/// A line with its marks.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) hue: Hue,
    pub(crate) is_dashed: bool,
    /// Whether measured points have marks, with whiskers.
    pub(crate) has_dots: bool,
    pub(crate) marks: Vec<Mark>,
}

/// How large a plot is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Normal,
    /// One of many.
    Small,
}

/// A plot that was drawn.
pub(crate) struct Drawing {
    /// Shown above the plot.
    pub(crate) heading: Option<String>,
    /// What the plot shows, for readers without the picture.
    pub(crate) label: String,
    /// Its class in the style sheet.
    pub(crate) class: &'static str,
    /// Width and height.
    pub(crate) extent: (f64, f64),
    /// The elements of the SVG picture.
    pub(crate) content: Markup,
}

impl Drawing {
    /// The plot as a part of a page.
    pub(crate) fn render(&self) -> Markup {
        let (width, height) = self.extent;
        html! {
            div.plot {
                @if let Some(heading) = &self.heading { p.heading { (heading) } }
                svg
                    class=(self.class)
                    viewBox={ "0 0 " (n(width)) " " (n(height)) }
                    role="img"
                    aria-label=(self.label) {
                    (self.content)
                }
            }
        }
    }
}

impl Axis {
    pub(crate) fn linear(label: &'static str) -> Self {
        Self { label, is_logarithmic: false, ticks: Vec::new() }
    }

    pub(crate) fn logarithmic(label: &'static str) -> Self {
        Self { label, is_logarithmic: true, ticks: Vec::new() }
    }

    pub(crate) fn with_ticks(self, ticks: Vec<(f64, String)>) -> Self {
        Self { ticks, ..self }
    }

    pub(crate) fn place(&self, value: f64) -> f64 {
        if self.is_logarithmic { value.log10() } else { value }
    }

    /// Returns whether the axis can show a value.
    pub(crate) fn shows(&self, value: f64) -> bool {
        value.is_finite() && (!self.is_logarithmic || value > 0.0)
    }
}

impl Chart {
    /// Draws the plot.
    pub(crate) fn draw(&self) -> Drawing {
        let frame = Frame::of(self);
        let (width, height) = self.size.extent();
        let (left, right, top, bottom) = (frame.left, frame.right, frame.top, frame.bottom);
        let middle = f64::midpoint(left, right);
        let content = html! {
            path.grid d=(frame.grid()) {}
            g.below {
                @for (at, text) in &frame.x_ticks { (below(*at, bottom + 15.0, f64::from(width), text)) }
            }
            g.beside { @for (at, text) in &frame.y_ticks { text x=(n(left - 5.0)) y=(n(*at + 4.0)) { (text) } } }
            path.axis d={ "M" (n(left)) " " (n(top)) "V" (n(bottom)) "H" (n(right)) } {}
            text.below x=(n(middle)) y=(height - 4) { (self.x.label) }
            text x=(n(2.0)) y="11" { (self.y.label) }
            @if let Some(at) = self.reference {
                path.reference d={ "M" (n(left)) " " (n(frame.at_y(&self.y, at))) "H" (n(right)) } {}
            }
            @for line in &self.lines { (frame.line(self, line)) }
        };
        Drawing {
            heading: self.heading.clone(),
            label: self.label.clone(),
            class: self.size.class(),
            extent: (f64::from(width), f64::from(height)),
            content,
        }
    }

    fn marks(&self) -> impl Iterator<Item = &Mark> {
        let shown = |mark: &&Mark| self.x.shows(mark.at.0) && self.y.shows(mark.at.1);
        self.lines.iter().flat_map(|line| &line.marks).filter(shown)
    }
}

impl Size {
    fn extent(self) -> (u32, u32) {
        match self {
            Self::Normal => (440, 290),
            Self::Small => (300, 170),
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Small => "small",
        }
    }

    fn ticks(self) -> usize {
        match self {
            Self::Normal => 7,
            Self::Small => 4,
        }
    }
}

/// Where the plot is in the picture, and which part of the axes it shows.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: (f64, f64),
    y: (f64, f64),
    x_ticks: Vec<(f64, String)>,
    y_ticks: Vec<(f64, String)>,
}

impl Frame {
    fn of(chart: &Chart) -> Self {
        let (width, height) = chart.size.extent();
        let xs = chart.marks().map(|mark| mark.at.0);
        let whiskers = |mark: &Mark| mark.whisker.map_or([mark.at.1; 2], |(low, high)| [low, high]);
        let ys =
            chart.marks().flat_map(whiskers).chain(chart.reference).filter(|value| chart.y.shows(*value));
        let mut frame = Self {
            left: 46.0,
            right: f64::from(width) - 14.0,
            top: 20.0,
            bottom: f64::from(height) - 34.0,
            x: extent(&chart.x, xs),
            y: extent(&chart.y, ys),
            x_ticks: Vec::new(),
            y_ticks: Vec::new(),
        };
        let most = chart.size.ticks();
        frame.x_ticks = ticks(&chart.x, frame.x, most)
            .into_iter()
            .map(|(at, text)| (frame.at_x(&chart.x, at), text))
            .collect();
        frame.y_ticks = ticks(&chart.y, frame.y, most)
            .into_iter()
            .map(|(at, text)| (frame.at_y(&chart.y, at), text))
            .collect();
        frame
    }

    fn at_x(&self, axis: &Axis, value: f64) -> f64 {
        self.left + (axis.place(value) - self.x.0) / (self.x.1 - self.x.0) * (self.right - self.left)
    }

    fn at_y(&self, axis: &Axis, value: f64) -> f64 {
        self.bottom - (axis.place(value) - self.y.0) / (self.y.1 - self.y.0) * (self.bottom - self.top)
    }

    /// A line at each labelled place.
    fn grid(&self) -> String {
        let mut lines = String::new();
        for (at, _) in &self.x_ticks {
            _ = write!(lines, "M{} {}V{}", n(*at), n(self.top), n(self.bottom));
        }
        for (at, _) in &self.y_ticks {
            _ = write!(lines, "M{} {}H{}", n(self.left), n(*at), n(self.right));
        }
        lines
    }

    fn line(&self, chart: &Chart, line: &Line) -> Markup {
        let shown = |mark: &&Mark| chart.x.shows(mark.at.0) && chart.y.shows(mark.at.1);
        let place = |mark: &Mark| (self.at_x(&chart.x, mark.at.0), self.at_y(&chart.y, mark.at.1));
        // Between two of them, the line breaks.
        let parts = line.marks.split(|mark| mark.at.1.is_nan());
        let parts: Vec<Vec<&Mark>> = parts
            .map(|part| part.iter().filter(shown).collect())
            .filter(|part: &Vec<_>| !part.is_empty())
            .collect();
        let points = |part: &[&Mark]| {
            let places: Vec<(f64, f64)> = part.iter().map(|mark| place(mark)).collect();
            let texts = simplified(&places).into_iter().map(|(x, y)| format!("{},{}", n(x), n(y)));
            texts.collect::<Vec<_>>().join(" ")
        };
        html! {
            g class=(hue_class(line.hue)) {
                title { (line.name) }
                @for part in &parts {
                    polyline class=[line.is_dashed.then_some("dashed")] points=(points(part)) {}
                    @for mark in part {
                        (self.whisker(chart, mark))
                        // A single point has no line, so it needs a mark.
                        @if line.has_dots || part.len() == 1 { (self.dot(chart, line, mark)) }
                    }
                }
            }
        }
    }

    fn whisker(&self, chart: &Chart, mark: &Mark) -> Markup {
        let x = self.at_x(&chart.x, mark.at.0);
        let ends = mark.whisker.filter(|(low, high)| chart.y.shows(*low) && chart.y.shows(*high));
        let ends = ends.map(|(low, high)| (self.at_y(&chart.y, low), self.at_y(&chart.y, high)));
        html! {
            @if let Some((low, high)) = ends { path.whisker d={ "M" (n(x)) " " (n(low)) "V" (n(high)) } {} }
        }
    }

    fn dot(&self, chart: &Chart, line: &Line, mark: &Mark) -> Markup {
        let at = (self.at_x(&chart.x, mark.at.0), self.at_y(&chart.y, mark.at.1));
        dot(at, line.hue, line.is_dashed, mark.has_heavy_loss)
    }
}

/// A label below an axis: centred, unless it would be cut off at the right edge of the picture.
pub(crate) fn below(at: f64, y: f64, width: f64, text: &str) -> Markup {
    let is_cut = at + CHARACTER_WIDTH * text.chars().count() as f64 / 2.0 > width;
    html! {
        @if is_cut { text x=(n(width)) y=(n(y)) text-anchor="end" { (text) } }
        @else { text x=(n(at)) y=(n(y)) { (text) } }
    }
}

/// The most that a character of a label is wide.
const CHARACTER_WIDTH: f64 = 7.0;

/// A mark at a place of the picture: a disc, hollow on dashed lines, a triangle if the colour is used a second time, a
/// square for published figures, or a cross for what lost much.
pub(crate) fn dot((x, y): (f64, f64), hue: Hue, is_hollow: bool, is_lossy: bool) -> Markup {
    html! {
        @if is_lossy {
            path.cross d={ "M" (n(x - 5.0)) " " (n(y - 5.0)) "l10 10m-10 0l10-10" } {}
        } @else if let Hue::Published(_) = hue {
            rect.dot.hollow[is_hollow] x=(n(x - 3.2)) y=(n(y - 3.2)) width="6.4" height="6.4" {}
        } @else if hue.is_second_round() {
            path.dot.hollow[is_hollow] d={ "M" (n(x)) " " (n(y - 4.5)) "l4.5 8h-9z" } {}
        } @else {
            circle.dot.hollow[is_hollow] cx=(n(x)) cy=(n(y)) r="3.5" {}
        }
    }
}

/// The class that gives an element the colour of an engine.
pub(crate) fn hue_class(hue: Hue) -> String {
    match hue {
        Hue::Floor => "floor".to_owned(),
        Hue::Gso => "gso".to_owned(),
        Hue::Published(number) => format!("p{}", number % 3),
        Hue::Weir => "weir".to_owned(),
        Hue::WeirVariant => "weir2".to_owned(),
        Hue::Other(number) => format!("c{}", number % 8),
    }
}

/// A coordinate, to a tenth.
pub(crate) fn n(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Leaves out points of a line whose absence does not show.
fn simplified(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    // The first of the points left out since the last one kept.
    let mut left_out = 0;
    for (number, &(x, y)) in points.iter().enumerate() {
        let Some(&from) = kept.last() else {
            kept.push((x, y));
            left_out = number + 1;
            continue;
        };
        let Some(&to) = points.get(number + 1) else {
            kept.push((x, y));
            break;
        };
        let is_near = |&(x, y): &(f64, f64)| {
            let share = if to.0 > from.0 { (x - from.0) / (to.0 - from.0) } else { 0.0 };
            (from.1 + share * (to.1 - from.1) - y).abs() < NOT_SEEN
        };
        if !points[left_out..=number].iter().all(is_near) {
            kept.push((x, y));
            left_out = number + 1;
        }
    }
    kept
}

/// Fewer round numbers do not show where an axis goes.
const TICKS_MIN: usize = 3;

/// A distance in a picture that is too small to be seen.
const NOT_SEEN: f64 = 0.25;

/// Returns the part of an axis to show, in its own measure. Linear axes start at zero.
pub(crate) fn extent(axis: &Axis, values: impl Iterator<Item = f64>) -> (f64, f64) {
    let none = (f64::INFINITY, f64::NEG_INFINITY);
    let (low, high) = values.map(|value| axis.place(value)).fold(none, |(l, h), v| (v.min(l), v.max(h)));
    if low > high {
        return (0.0, 1.0);
    }
    if axis.is_logarithmic {
        let margin = ((high - low) * 0.04).max(0.06);
        return (low - margin, high + margin);
    }
    (0.0, if high > 0.0 { high * 1.05 } else { 1.0 })
}

/// Returns the labelled places of an axis within what is shown: at most `most`.
pub(crate) fn ticks(axis: &Axis, (low, high): (f64, f64), most: usize) -> Vec<(f64, String)> {
    let found = if !axis.ticks.is_empty() {
        axis.ticks.clone()
    } else if axis.is_logarithmic {
        let (start, end) = (10_f64.powf(low), 10_f64.powf(high));
        let ticks = Some(decimal_ticks(start, end)).filter(|ticks| ticks.len() >= TICKS_MIN);
        let ticks = ticks.unwrap_or_else(|| linear_ticks(start, end, most.min(4)));
        ticks.into_iter().map(|tick| (tick, short(tick))).collect()
    } else {
        linear_ticks(low, high, most).into_iter().map(|tick| (tick, short(tick))).collect()
    };
    let is_shown = |(at, _): &(f64, String)| (low - 1e-9..=high + 1e-9).contains(&axis.place(*at));
    let mut shown: Vec<(f64, String)> = found.into_iter().filter(is_shown).collect();
    let is_power = |(at, _): &(f64, String)| (at.log10() - at.log10().round()).abs() < 1e-9;
    if axis.is_logarithmic
        && axis.ticks.is_empty()
        && shown.len() > most
        && shown.iter().filter(|it| is_power(it)).count() > 2
    {
        shown.retain(is_power);
    }
    let step = shown.len().div_ceil(most).max(1);
    shown.into_iter().step_by(step).collect()
}

/// Returns round numbers at equal distances: about `most` of them, and never many more.
fn linear_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let rough = (high - low) / most as f64;
    if !rough.is_finite() || rough <= 0.0 {
        return Vec::new();
    }
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power).find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    let first = (low / step).ceil();
    (0..=most).map(|tick| (first + tick as f64) * step).take_while(|tick| *tick <= high).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(values: &[(f64, f64)]) -> Chart {
        let mark = |at: &(f64, f64)| Mark { at: *at, whisker: None, has_heavy_loss: at.1 > 90.0 };
        Chart {
            label: "a <label>".to_owned(),
            heading: None,
            x: Axis::logarithmic("x"),
            y: Axis::linear("y"),
            reference: None,
            lines: vec![Line {
                name: "<b>".to_owned(),
                hue: Hue::Other(9),
                is_dashed: false,
                has_dots: true,
                marks: values.iter().map(mark).collect(),
            }],
            size: Size::Normal,
        }
    }

    #[test]
    fn texts_are_escaped_and_what_an_axis_cannot_show_is_left_out() {
        let svg =
            chart(&[(1.0, 1.0), (10.0, 95.0), (0.0, 5.0), (5.0, f64::NAN)]).draw().render().into_string();
        assert!(svg.contains("a &lt;label&gt;") && svg.contains("&lt;b&gt;"), "{svg}");
        assert!(svg.contains("class=\"c1\"") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        // A triangle and a cross.
        assert_eq!(
            (svg.matches("path class=\"dot\"").count(), svg.matches("class=\"cross\"").count()),
            (1, 1)
        );
    }

    #[test]
    fn a_label_at_the_right_edge_is_not_cut_off() {
        let centred = below(400.0, 5.0, 440.0, "99.999%").into_string();
        assert_eq!(centred, "<text x=\"400\" y=\"5\">99.999%</text>");
        let at_edge = below(426.0, 5.0, 440.0, "99.999%").into_string();
        assert_eq!(at_edge, "<text x=\"440\" y=\"5\" text-anchor=\"end\">99.999%</text>");
    }

    #[test]
    fn nothing_and_one_point_do_no_harm() {
        for values in [&[][..], &[(1.0, 0.0)], &[(7.0, 3.0)]] {
            let svg = chart(values).draw().render().into_string();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn points_on_a_straight_line_are_left_out_and_corners_are_not() {
        let line = |ys: &[f64]| (0..).zip(ys).map(|(x, y)| (f64::from(x), *y)).collect::<Vec<_>>();
        assert_eq!(simplified(&line(&[0.0, 1.0, 2.1, 3.0, 4.0])), [(0.0, 0.0), (4.0, 4.0)]);
        assert_eq!(simplified(&line(&[0.0, 0.0, 9.0, 9.0])), line(&[0.0, 0.0, 9.0, 9.0]));
        // Small steps that add up to a bend are seen.
        let bend: Vec<f64> = (0..=40).map(|x| f64::from(x * x) / 100.0).collect();
        assert!((3..20).contains(&simplified(&line(&bend)).len()));
        assert_eq!((simplified(&[]), simplified(&line(&[5.0]))), (vec![], line(&[5.0])));
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(linear_ticks(0.0, 10.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(linear_ticks(0.0, 0.0, 5), Vec::<f64>::new());
        assert_eq!(linear_ticks(3.0, 97.0, 4), [50.0]);
    }
}
