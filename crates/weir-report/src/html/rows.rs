//! SVG plots of the HTML report with a row for each name: dots with intervals, or bars of several parts.

use maud::{Markup, html};

use crate::html::chart::{Axis, Drawing, below, dot, extent, hue_class, n, ticks};
use crate::plot::Hue;

/// A plot of rows.
pub(crate) struct Rows {
    /// What the plot shows, for readers without the picture.
    pub(crate) label: String,
    pub(crate) x: Axis,
    /// A value that others are compared with, marked by a line.
    pub(crate) reference: Option<f64>,
    pub(crate) rows: Vec<RowOf>,
}

/// A row.
pub(crate) struct RowOf {
    pub(crate) name: String,
    pub(crate) hue: Hue,
    pub(crate) dots: Vec<Dot>,
    /// The lengths of the bar's parts, in the order of their colours.
    pub(crate) parts: Vec<f64>,
    /// Shown behind a bar.
    pub(crate) text: String,
}

/// A value with its interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dot {
    pub(crate) at: f64,
    pub(crate) whisker: Option<(f64, f64)>,
    pub(crate) is_hollow: bool,
    pub(crate) is_lossy: bool,
}

impl Rows {
    /// Draws the plot.
    pub(crate) fn draw(&self) -> Drawing {
        let height = TOP + ROW * self.rows.len() as f64 + BOTTOM;
        let has_texts = self.rows.iter().any(|row| !row.text.is_empty());
        let right = WIDTH - if has_texts { TEXT } else { 14.0 };
        let scale = self.scale(right);
        let bottom = height - BOTTOM;
        let content = html! {
            path.grid d=(scale.grid(&self.x, bottom)) {}
            g.below {
                @for (at, text) in &scale.ticks { (below(scale.x(&self.x, *at), bottom + 15.0, WIDTH, text)) }
            }
            @if let Some(at) = self.reference {
                path.reference d={ "M" (n(scale.x(&self.x, at))) " " (n(TOP)) "V" (n(bottom)) } {}
            }
            text.below x=(n(f64::midpoint(LEFT, right))) y=(n(height - 4.0)) { (self.x.label) }
            g.beside { @for (row, y) in self.rows.iter().zip(middles()) { (name(row, y)) } }
            @for (row, y) in self.rows.iter().zip(middles()) { (self.row(&scale, row, y)) }
        };
        Drawing {
            heading: None,
            label: self.label.clone(),
            class: "normal rows",
            extent: (WIDTH, height),
            content,
        }
    }

    fn scale(&self, right: f64) -> Scale {
        let dots = self.rows.iter().flat_map(|row| &row.dots);
        let ends = dots.flat_map(|dot| dot.whisker.map_or([dot.at; 2], |(low, high)| [low, high]));
        let bars = self.rows.iter().filter(|row| !row.parts.is_empty()).map(|row| row.parts.iter().sum());
        let values = ends.chain(bars).chain(self.reference).filter(|value| self.x.shows(*value));
        let shown = extent(&self.x, values);
        Scale { right, shown, ticks: ticks(&self.x, shown, 6) }
    }

    fn row(&self, scale: &Scale, row: &RowOf, y: f64) -> Markup {
        let mut from = 0.0;
        let part = |length: &f64| {
            let start = scale.x(&self.x, from);
            from += length;
            (start, scale.x(&self.x, from) - start)
        };
        let parts: Vec<(f64, f64)> = row.parts.iter().map(part).collect();
        let end = parts.last().map_or(LEFT, |(start, width)| start + width);
        html! {
            g class=(hue_class(row.hue)) {
                @for (stage, (start, width)) in parts.iter().enumerate().filter(|(_, (_, width))| *width > 0.0) {
                    rect class={ "s" (stage) } x=(n(*start)) y=(n(y - 6.0)) width=(n(*width)) height="12" {}
                }
                @for it in row.dots.iter().filter(|it| self.x.shows(it.at)) { (self.dot(scale, it, row.hue, y)) }
            }
            @if !row.text.is_empty() { text x=(n(end + 5.0)) y=(n(y + 4.0)) { (row.text) } }
        }
    }

    fn dot(&self, scale: &Scale, it: &Dot, hue: Hue, y: f64) -> Markup {
        let ends = it.whisker.filter(|(low, high)| self.x.shows(*low) && self.x.shows(*high));
        let ends = ends.map(|(low, high)| (scale.x(&self.x, low), scale.x(&self.x, high)));
        html! {
            @if let Some((low, high)) = ends { path.whisker d={ "M" (n(low)) " " (n(y)) "H" (n(high)) } {} }
            (dot((scale.x(&self.x, it.at), y), hue, it.is_hollow, it.is_lossy))
        }
    }
}

/// Where values are in the picture.
struct Scale {
    right: f64,
    shown: (f64, f64),
    ticks: Vec<(f64, String)>,
}

impl Scale {
    fn x(&self, axis: &Axis, value: f64) -> f64 {
        LEFT + (axis.place(value) - self.shown.0) / (self.shown.1 - self.shown.0) * (self.right - LEFT)
    }

    /// A line at each labelled place.
    fn grid(&self, axis: &Axis, bottom: f64) -> String {
        let line = |(at, _): &(f64, String)| format!("M{} {}V{}", n(self.x(axis, *at)), n(TOP), n(bottom));
        self.ticks.iter().map(line).collect()
    }
}

/// The middles of the rows.
fn middles() -> impl Iterator<Item = f64> {
    (0..).map(|number| TOP + ROW * (f64::from(number) + 0.5))
}

fn name(row: &RowOf, y: f64) -> Markup {
    html! {
        text x=(n(LEFT - 6.0)) y=(n(y + 4.0)) {
            @if let Some(short) = cut(&row.name) { title { (row.name) } (short) } @else { (row.name) }
        }
    }
}

/// The start of a name that does not fit beside its row; `None`: it fits.
fn cut(name: &str) -> Option<String> {
    let start = || name.chars().take(NAME_MAX - 1).collect::<String>();
    (name.chars().count() > NAME_MAX).then(|| format!("{}…", start()))
}

const WIDTH: f64 = 440.0;
/// Room for the names.
const LEFT: f64 = 172.0;
/// Room for the texts behind bars.
const TEXT: f64 = 62.0;
const TOP: f64 = 6.0;
const BOTTOM: f64 = 34.0;
const ROW: f64 = 18.0;
const NAME_MAX: usize = 25;

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(is_logarithmic: bool, values: &[f64]) -> Rows {
        let row = |value: &f64| RowOf {
            name: "an engine <with> a name that is too long".to_owned(),
            hue: Hue::Weir,
            dots: vec![Dot {
                at: *value,
                whisker: Some((value / 2.0, value * 2.0)),
                is_hollow: false,
                is_lossy: false,
            }],
            parts: Vec::new(),
            text: String::new(),
        };
        let x = Axis { is_logarithmic, ..Axis::linear("us") };
        Rows { label: "it".to_owned(), x, reference: Some(1.0), rows: values.iter().map(row).collect() }
    }

    #[test]
    fn names_are_escaped_and_cut_and_whole_in_the_title() {
        let svg = rows(true, &[3.0]).draw().render().into_string();
        assert!(svg.contains(">an engine &lt;with&gt; a name that is too long<"), "{svg}");
        assert!(svg.contains("a name …"), "{svg}");
    }

    #[test]
    fn values_that_an_axis_cannot_show_are_left_out() {
        for is_logarithmic in [true, false] {
            let svg = rows(is_logarithmic, &[f64::NAN, 0.0, -1.0, 5.0]).draw().render().into_string();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
