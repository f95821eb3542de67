//! The stages of latencies as stacked bars, one for each size and engine.

use plotters::element::Rectangle;
use plotters::prelude::{ChartBuilder, IntoFont, RGBColor, ShapeStyle, WHITE};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use weir_results::Stage;

use crate::breakdown::Stages;
use crate::compact::three_digits;
use crate::group::Group;
use crate::plot::{Area, Drawn, FAINT_INK, FONT, GRID, INK, LEGEND_WIDTH, TITLE_HEIGHT, WIDTH, svg};

/// Draws the means of the stages, stacked: they add up to the mean of the path. `None` if none were
/// measured.
///
/// # Panics
/// Never: drawing into a string does not fail.
pub(crate) fn stage_bars(group: &Group<'_>) -> Option<String> {
    let bars: Vec<Bar> = group
        .points
        .iter()
        .filter_map(|point| {
            let stages = Stages::of(point)?;
            let name = format!("{}, {} B", point.engine, point.size_bytes);
            Some(Bar { name, total: stages.one_way.mean, means: stages.stages.map(|times| times.mean) })
        })
        .collect();
    if bars.is_empty() {
        return None;
    }
    // The names of the stages are next to the bars, and need room, too.
    let body_height = (BAR_HEIGHT * bars.len() as u32 + AXIS_HEIGHT).max(LEGEND_HEIGHT);
    let height = TITLE_HEIGHT as u32 + body_height;
    Some(svg(WIDTH, height, |area| draw(area, &group.key.conditions(), &bars)))
}

struct Bar {
    name: String,
    total: f64,
    means: [f64; Stage::ALL.len()],
}

fn draw(area: &Area<'_>, conditions: &str, bars: &[Bar]) -> Drawn {
    let (title, body) = area.split_vertically(TITLE_HEIGHT);
    let (body, legend) = body.split_horizontally(WIDTH as i32 - LEGEND_WIDTH);
    let head = "Stages of one-way latency in microseconds, means, by sample size and engine";
    title.draw_text(head, &(FONT, 20).into_font().color(&INK), (LEFT, 12))?;
    title.draw_text(conditions, &(FONT, 13).into_font().color(&FAINT_INK), (LEFT, 38))?;
    let longest = bars.iter().map(|bar| bar.total).fold(f64::MIN_POSITIVE, f64::max);
    let mut plot = ChartBuilder::on(&body)
        .margin_right(24)
        .x_label_area_size(AXIS_HEIGHT)
        .y_label_area_size(LEFT)
        .build_cartesian_2d(0.0..longest * 1.1, 0.0..bars.len() as f64)?;
    plot.configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_desc("microseconds")
        .axis_desc_style((FONT, 14).into_font().color(&INK))
        .label_style((FONT, 13).into_font().color(&INK))
        .axis_style(FAINT_INK)
        .bold_line_style(GRID)
        .light_line_style(WHITE)
        .draw()?;
    // The first one on top.
    for (bar, row) in bars.iter().rev().zip(0_u32..) {
        let row = f64::from(row);
        let mut from = 0.0;
        for (mean, colour) in bar.means.iter().zip(COLOURS) {
            let corners = [(from, row + 0.2), (from + mean, row + 0.8)];
            plot.draw_series([Rectangle::new(corners, ShapeStyle::from(colour).filled())])?;
            from += mean;
        }
        let (x, y) = plot.backend_coord(&(0.0, row + 0.5));
        let style = (FONT, 13).into_font().color(&INK);
        let right = style.pos(Pos::new(HPos::Right, VPos::Center));
        area.draw_text(&bar.name, &right, (x - 8, y))?;
        let (end, _) = plot.backend_coord(&(from, row + 0.5));
        let left = style.pos(Pos::new(HPos::Left, VPos::Center));
        area.draw_text(&three_digits(bar.total), &left, (end + 6, y))?;
    }
    for ((stage, colour), row) in Stage::ALL.into_iter().zip(COLOURS).zip(0..) {
        let y = 8 + row * 22;
        legend.draw(&Rectangle::new([(0, y), (16, y + 14)], ShapeStyle::from(colour).filled()))?;
        legend.draw_text(stage.name(), &(FONT, 14).into_font().color(&INK), (24, y))?;
    }
    Ok(())
}

/// Width of the names left of the bars.
const LEFT: i32 = 150;
const BAR_HEIGHT: u32 = 34;
const AXIS_HEIGHT: u32 = 48;
const LEGEND_HEIGHT: u32 = 22 * Stage::ALL.len() as u32 + 16;
/// The engine's own stages in blues and greens, the kernel's in greys and browns. Neighbours differ
/// in brightness, for readers with colour vision deficiency.
const COLOURS: [RGBColor; Stage::ALL.len()] = [
    RGBColor(0, 95, 204),
    RGBColor(217, 180, 120),
    RGBColor(107, 114, 128),
    RGBColor(235, 140, 60),
    RGBColor(0, 136, 102),
    RGBColor(150, 200, 250),
];

#[cfg(test)]
mod tests {
    use weir_results::{Case, Environment, LatencyBreakdown, Reliability, Run, Test, Trip};

    #[test]
    fn stages_are_drawn_one_on_the_other_in_a_plot_of_their_own() {
        let breakdown = LatencyBreakdown::new(&[Trip([0, 10, 30, 60, 100, 150, 210])], 1, 0.0);
        let case = Case::new("weir", Test::Latency, Reliability::Reliable, 32)
            .with(|it| it.figures.breakdown = breakdown);
        let run = Run { cases: vec![case], ..Run::new(Environment::default()) };
        let plots = crate::plots(&run);
        assert_eq!(plots.len(), 1);
        assert_eq!(plots[0].name, "breakdown-latency-reliable-unkeyed-block");
        for text in ["weir, 32 B", "0.21", "send call", "wake-up"] {
            assert!(plots[0].svg.contains(text), "no {text} in {}", plots[0].svg);
        }
        // Without stages there is nothing to draw.
        let case = Case::new("weir", Test::Latency, Reliability::Reliable, 32);
        assert!(crate::plots(&Run { cases: vec![case], ..run }).is_empty());
    }
}
