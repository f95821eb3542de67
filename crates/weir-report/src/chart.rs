//! SVG plots of named lines, with axes named by the caller.

use plotters::element::Circle;
use plotters::prelude::{
    ChartBuilder, IntoFont, LineSeries, RGBColor, SeriesLabelPosition, ShapeStyle, WHITE,
};

use crate::compact::three_digits;
use crate::plot::{Area, Drawn, FONT, GRID, INK, svg};

/// What a plot shows.
#[derive(Debug, Clone, PartialEq)]
pub struct LineChart<'a> {
    /// The title.
    pub title: &'a str,
    /// The label of the horizontal axis.
    pub x_label: &'a str,
    /// The label of the vertical axis, which starts at zero.
    pub y_label: &'a str,
    /// Whether the horizontal axis is logarithmic (powers of two): points at or below zero are then
    /// left out.
    pub logarithmic: bool,
    /// Names and points.
    pub lines: Vec<(&'a str, &'a [(f64, f64)])>,
}

/// Draws the plot as a complete SVG document.
///
/// # Panics
/// Never: drawing into a string does not fail.
#[must_use]
pub fn line_chart(chart: &LineChart<'_>) -> String {
    svg(WIDTH, HEIGHT, |area| draw(area, chart))
}

fn draw(area: &Area<'_>, chart: &LineChart<'_>) -> Drawn {
    let lines: Vec<(&str, Vec<(f64, f64)>)> =
        chart.lines.iter().map(|(name, points)| (*name, placed(points, chart.logarithmic))).collect();
    let points = || lines.iter().flat_map(|(_, points)| points);
    let (least, most) = span(points().map(|(x, _)| *x));
    let (_, highest) = span(points().map(|(_, y)| *y));
    let margin = ((most - least) * 0.03).max(0.25);
    let mut plot = ChartBuilder::on(area)
        .caption(chart.title, (FONT, 20).into_font().color(&INK))
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(76)
        .build_cartesian_2d(least - margin..most + margin, 0.0..(highest * 1.08).max(1e-9))?;
    let x_text = |x: &f64| if chart.logarithmic { three_digits(x.exp2()) } else { three_digits(*x) };
    plot.configure_mesh()
        .x_desc(chart.x_label)
        .y_desc(chart.y_label)
        .axis_desc_style((FONT, 14).into_font().color(&INK))
        .label_style((FONT, 13).into_font().color(&INK))
        .bold_line_style(GRID)
        .light_line_style(WHITE)
        .x_label_formatter(&x_text)
        .y_label_formatter(&|y| three_digits(*y))
        .draw()?;
    for ((name, points), colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let stroke = ShapeStyle { color: (*colour).into(), filled: true, stroke_width: 2 };
        let series = LineSeries::new(points.iter().copied(), stroke);
        plot.draw_series(series)?.label(*name).legend(move |at| Circle::new((at.0 + 8, at.1), 4, stroke));
        plot.draw_series(points.iter().map(|point| Circle::new(*point, 3, stroke)))?;
    }
    plot.configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .label_font((FONT, 14).into_font().color(&INK))
        .background_style(WHITE)
        .border_style(GRID)
        .draw()
}

/// Returns the drawable points, at their positions.
fn placed(points: &[(f64, f64)], logarithmic: bool) -> Vec<(f64, f64)> {
    let place = |&(x, y): &(f64, f64)| if logarithmic { (x.log2(), y) } else { (x, y) };
    points.iter().map(place).filter(|(x, y)| x.is_finite() && y.is_finite() && *y >= 0.0).collect()
}

/// Returns the minimum and maximum; 0 and 1 without values.
fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (least, most) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), x| (x.min(least), x.max(most)));
    if least <= most { (least, most) } else { (0.0, 1.0) }
}

const WIDTH: u32 = 800;
const HEIGHT: u32 = 480;
const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 95, 204), RGBColor(217, 119, 6), RGBColor(0, 136, 102), RGBColor(190, 60, 120)];

#[cfg(test)]
mod tests {
    use super::*;

    fn chart<'a>(logarithmic: bool, points: &'a [(f64, f64)]) -> LineChart<'a> {
        LineChart {
            title: "UDP throughput: a <--> b",
            x_label: "Message size (Bytes)",
            y_label: "Throughput (Mbps)",
            logarithmic,
            lines: vec![("Network", points), ("Local", points)],
        }
    }

    #[test]
    fn every_point_and_name_is_drawn_and_texts_are_escaped() {
        let svg = line_chart(&chart(true, &[(1.0, 1.0), (1024.0, 800.0), (1460.0, 956.0)]));
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
        for text in ["&lt;--&gt;", "Network", "Local", "Message size (Bytes)", "Throughput (Mbps)"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        // Two lines of three points, and a dot for each in the legend.
        assert_eq!(svg.matches("<circle").count(), 2 * 3 + 2);
    }

    #[test]
    fn nothing_one_point_and_points_that_have_no_place_do_no_harm() {
        for points in [&[][..], &[(1.0, 5.0)], &[(0.0, 5.0), (f64::NAN, 1.0), (2.0, f64::INFINITY)]] {
            for logarithmic in [false, true] {
                assert!(line_chart(&chart(logarithmic, points)).contains("</svg>"));
            }
        }
    }
}
