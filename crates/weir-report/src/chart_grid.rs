//! SVG plots of small charts in rows and columns, with the same names and colours in all of them.

use plotters::element::Circle;
use plotters::prelude::{ChartBuilder, IntoFont, LineSeries, RGBColor, ShapeStyle, WHITE};

use crate::compact::three_digits;
use crate::plot::{Area, Drawn, FAINT_INK, FONT, GRID, INK, svg};

/// What a grid of charts shows.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartGrid {
    /// The title.
    pub title: String,
    /// The names of the lines, for all charts.
    pub names: Vec<String>,
    /// The title of each column.
    pub columns: Vec<String>,
    /// The label of all horizontal axes.
    pub x_label: &'static str,
    /// The rows. The charts of a row have the same vertical axis.
    pub rows: Vec<GridRow>,
}

/// A row of a grid.
#[derive(Debug, Clone, PartialEq)]
pub struct GridRow {
    /// The label of the vertical axis, which starts at zero.
    pub y_label: &'static str,
    /// The points by column and then by name.
    pub points: Vec<Vec<Vec<(f64, f64)>>>,
}

/// Draws the grid as a complete SVG document.
///
/// # Panics
/// Never: drawing into a string does not fail.
#[must_use]
pub fn chart_grid(grid: &ChartGrid) -> String {
    let height = HEAD_HEIGHT + CHART_HEIGHT * grid.rows.len() as u32;
    // A single column is as wide as two.
    svg(CHART_WIDTH * grid.columns.len().max(2) as u32, height, |area| draw(area, grid))
}

fn draw(area: &Area<'_>, grid: &ChartGrid) -> Drawn {
    let (head, body) = area.split_vertically(HEAD_HEIGHT);
    head.draw_text(&grid.title, &(FONT, 18).into_font().color(&INK), (LEFT, 10))?;
    let mut x = LEFT;
    for (name, colour) in grid.names.iter().zip(COLOURS.iter().cycle()) {
        head.draw(&Circle::new((x + 5, 43), 4, ShapeStyle::from(colour).filled()))?;
        head.draw_text(name, &(FONT, 14).into_font().color(&INK), (x + 14, 36))?;
        // Wide enough for all letters.
        x += 30 + 9 * name.len() as i32;
    }
    let cells = body.split_evenly((grid.rows.len(), grid.columns.len()));
    for (row, cells) in grid.rows.iter().zip(cells.chunks(grid.columns.len().max(1))) {
        for (number, (cell, lines)) in cells.iter().zip(&row.points).enumerate() {
            draw_chart(cell, grid, row, number, lines)?;
        }
    }
    Ok(())
}

fn draw_chart(
    area: &Area<'_>,
    grid: &ChartGrid,
    row: &GridRow,
    column: usize,
    lines: &[Vec<(f64, f64)>],
) -> Drawn {
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(1e-9, f64::max);
    // The charts of a column have the same horizontal axis.
    let below = grid.rows.iter().filter_map(|row| row.points.get(column));
    let longest = most(&mut below.flatten().flatten().map(|(x, _)| *x));
    let highest = most(&mut row.points.iter().flatten().flatten().map(|(_, y)| *y));
    let mut chart = ChartBuilder::on(area)
        .caption(&grid.columns[column], (FONT, 14).into_font().color(&FAINT_INK))
        .margin(4)
        .margin_right(12)
        .x_label_area_size(38)
        .y_label_area_size(LEFT)
        .build_cartesian_2d(0.0..longest, 0.0..highest * 1.08)?;
    chart
        .configure_mesh()
        .x_desc(grid.x_label)
        .y_desc(row.y_label)
        .x_labels(6)
        .y_labels(5)
        .axis_desc_style((FONT, 13).into_font().color(&INK))
        .label_style((FONT, 12).into_font().color(&INK))
        .axis_style(FAINT_INK)
        .bold_line_style(GRID)
        .light_line_style(WHITE)
        .x_label_formatter(&|x| three_digits(*x))
        .y_label_formatter(&|y| three_digits(*y))
        .draw()?;
    for (points, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let stroke = ShapeStyle { color: (*colour).into(), filled: false, stroke_width: 1 };
        chart.draw_series(LineSeries::new(points.iter().copied(), stroke))?;
    }
    Ok(())
}

const CHART_WIDTH: u32 = 330;
const CHART_HEIGHT: u32 = 210;
const HEAD_HEIGHT: u32 = 62;
/// Width of the labels left of a chart; the title starts where the first chart does.
const LEFT: i32 = 56;
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 95, 204),
    RGBColor(217, 119, 6),
    RGBColor(0, 136, 102),
    RGBColor(190, 60, 120),
    RGBColor(120, 80, 200),
    RGBColor(107, 114, 128),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(points: Vec<Vec<Vec<(f64, f64)>>>) -> ChartGrid {
        ChartGrid {
            title: "lte <up>".to_owned(),
            names: vec!["weir".to_owned(), "other".to_owned()],
            columns: vec!["1024 B".to_owned(), "8192 B".to_owned()],
            x_label: "Time (s)",
            rows: vec![GridRow { y_label: "Queue (ms)", points }],
        }
    }

    #[test]
    fn every_chart_has_a_line_for_each_name() {
        let line = || vec![(0.0, 1.0), (1.0, 3.0), (2.0, 2.0)];
        let svg = chart_grid(&grid(vec![vec![line(), line()], vec![line(), line()]]));
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
        for text in ["lte &lt;up&gt;", "weir", "other", "1024 B", "8192 B", "Time (s)", "Queue (ms)"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        let colour = |colour: &str| svg.matches(colour).count();
        // Two charts, and a dot above them.
        assert_eq!((colour("#005FCC"), colour("#D97706")), (3, 3), "{svg}");
    }

    #[test]
    fn charts_without_points_do_no_harm() {
        for points in [vec![], vec![vec![]], vec![vec![vec![], vec![(0.0, 0.0)]], vec![]]] {
            assert!(chart_grid(&grid(points)).contains("</svg>"));
        }
    }
}
