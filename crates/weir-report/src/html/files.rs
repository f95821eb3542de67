//! The plots of a page as SVG documents of their own: the same drawings, with title, conditions and legend, in the
//! colours of the light page.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use maud::{Markup, PreEscaped, html};

use crate::compare::ReportOptions;
use crate::group::file_stem;
use crate::html::chart::{Drawing, n};
use crate::html::figure::{Figure, Key};
use crate::html::headline::headlines;
use crate::html::palette::Palette;
use crate::html::{NamedRun, STYLE, Section, grouped, udp_groups};
use crate::plot::Plot;

/// Returns the plots of a run's report as SVG documents. Names start with what they show: `ratios`, `load`,
/// `histogram`, `losses`, `processor`, `time`, and others.
#[must_use]
pub fn page_plots(run: &NamedRun<'_>, options: &ReportOptions) -> Vec<Plot> {
    let section = Section { number: 1, is_only: true, run, options };
    let base = options.relative_to.as_str();
    let groups = grouped(run);
    let palette = Palette::new(&groups);
    let mut plots = Plots::default();
    for group in &groups {
        let (figures, over_time) = section.drawn(group, &headlines(group, base), &palette);
        let conditions = group.key.conditions();
        plots.add(figures.iter().chain(&over_time), &group.key.file_stem(), &conditions);
    }
    for tests in &udp_groups(run.run) {
        let Some(group) = section.group_of(tests) else { continue };
        let palette = Palette::new(std::slice::from_ref(&group));
        let (figures, over_time) = section.drawn(&group, &headlines(&group, base), &palette);
        plots.add(figures.iter().chain(&over_time), &stem(&tests.title), &tests.title);
    }
    plots.all
}

/// Plots with names of their own.
#[derive(Default)]
struct Plots {
    all: Vec<Plot>,
    names: BTreeSet<String>,
}

impl Plots {
    fn add<'f>(&mut self, figures: impl Iterator<Item = &'f Figure>, stem: &str, conditions: &str) {
        for figure in figures {
            let first = format!("{}-{stem}", figure.name);
            let mut name = first.clone();
            for number in 2.. {
                if self.names.insert(name.clone()) {
                    break;
                }
                name = format!("{first}-{number}");
            }
            self.all.push(Plot { name, svg: document(figure, conditions) });
        }
    }
}

/// A title as part of a file name.
fn stem(title: &str) -> String {
    let words = title.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    file_stem(words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-"))
}

fn document(figure: &Figure, conditions: &str) -> String {
    let layout = Layout::of(&figure.plots);
    let width = layout.width();
    let mut y = MARGIN;
    let head = html! {
        (paragraph(&figure.title, "title", 16.0, width, &mut y))
        @for text in [conditions, &figure.note] { (paragraph(text, "note", 12.0, width, &mut y)) }
        (legend(&figure.legend, width, &mut y))
    };
    let (plots, height) = layout.place(&figure.plots, y);
    let svg = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(n(width)) height=(n(height))
            viewBox={ "0 0 " (n(width)) " " (n(height)) } font-family="sans-serif" font-size="12" {
            style { (PreEscaped(STYLE_OF_FILES.as_str())) }
            rect width="100%" height="100%" fill="#fff" {}
            (head)
            @for plot in &plots { (plot) }
        }
    };
    format!("{}\n", svg.into_string())
}

/// How plots are arranged.
struct Layout {
    columns: usize,
    cell: f64,
    scale: f64,
}

impl Layout {
    fn of(plots: &[Drawing]) -> Self {
        let widest = plots.iter().map(|plot| plot.extent.0).fold(1.0, f64::max);
        let columns = if widest > 350.0 { 2 } else { 3 }.min(plots.len()).max(1);
        let scale = if columns == 1 { 1.3 } else { 1.15 };
        Self { columns, cell: widest * scale, scale }
    }

    fn width(&self) -> f64 {
        self.cell * self.columns as f64 + GAP * (self.columns - 1) as f64 + 2.0 * MARGIN
    }

    /// The plots from `y` on, and the height of the document.
    fn place(&self, plots: &[Drawing], mut y: f64) -> (Vec<Markup>, f64) {
        let mut placed = Vec::new();
        for row in plots.chunks(self.columns) {
            let has_headings = row.iter().any(|plot| plot.heading.is_some());
            let top = y + if has_headings { 20.0 } else { 4.0 };
            for (column, plot) in row.iter().enumerate() {
                let x = MARGIN + (self.cell + GAP) * column as f64;
                let (width, height) = plot.extent;
                placed.push(html! {
                    @if let Some(heading) = &plot.heading {
                        text.title x=(n(x)) y=(n(top - 6.0)) font-size="13" { (heading) }
                    }
                    svg x=(n(x)) y=(n(top)) width=(n(width * self.scale)) height=(n(height * self.scale))
                        viewBox={ "0 0 " (n(width)) " " (n(height)) } class=(plot.class) { (plot.content) }
                });
            }
            let highest = row.iter().map(|plot| plot.extent.1).fold(0.0, f64::max);
            y = top + highest * self.scale + 6.0;
        }
        (placed, y + MARGIN)
    }
}

/// A text in as many lines as it needs, from `y` on, which moves below it.
fn paragraph(text: &str, class: &str, size: f64, width: f64, y: &mut f64) -> Markup {
    let most = ((width - 2.0 * MARGIN) / (size * CHARACTER)) as usize;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    html! {
        @for line in &lines {
            text class=(class) x=(n(MARGIN)) y=(n(advanced(y, size * 1.4) - size * 0.4)) font-size=(n(size)) { (line) }
        }
    }
}

/// The entries of a legend, in rows.
fn legend(keys: &[Key], width: f64, y: &mut f64) -> Markup {
    let mut x = MARGIN;
    let mut place = |key: &Key| {
        let length = 24.0 + 6.0 + key.text().chars().count() as f64 * 12.0 * CHARACTER + 16.0;
        if x > MARGIN && x + length > width - MARGIN {
            x = MARGIN;
            *y += LEGEND_ROW;
        }
        let at = (x, *y + 4.0);
        x += length;
        at
    };
    let placed: Vec<(f64, f64)> = keys.iter().map(&mut place).collect();
    if !keys.is_empty() {
        *y += LEGEND_ROW + 4.0;
    }
    html! {
        @for (key, (x, y)) in keys.iter().zip(placed) {
            svg x=(n(x)) y=(n(y)) width="24" height="14" viewBox="0 0 24 14" { (key.drawn()) }
            text x=(n(x + 30.0)) y=(n(y + 11.0)) { (key.text()) }
        }
    }
}

fn advanced(y: &mut f64, by: f64) -> f64 {
    *y += by;
    *y
}

/// The style of plots without variables, which other programs than browsers do not know.
static STYLE_OF_FILES: LazyLock<String> = LazyLock::new(|| {
    let colours = declarations(STYLE.split_once(":root {").map_or("", |(_, rest)| rest));
    let colour =
        |name: &str| colours.iter().find(|(known, _)| *known == name).map_or("#000", |(_, value)| value);
    let plain = |text: &str| {
        let mut parts = text.split("var(");
        let first = parts.next().unwrap_or_default().to_owned();
        parts
            .filter_map(|part| part.split_once(')'))
            .fold(first, |text, (name, rest)| text + colour(name) + rest)
    };
    let mut hues: Vec<(&str, &str)> = Vec::new();
    let mut style = String::from(".title { font-weight: bold; } ");
    style.push_str(&plain("text { fill: var(--ink); } .note { fill: var(--faint); }\n"));
    for rule in include_str!("plot.css").split_inclusive('}') {
        let Some((selectors, body)) = rule.trim().split_once('{') else { continue };
        let body = body.trim_end_matches('}').trim();
        if let [("--c", value)] = declarations(body).as_slice() {
            hues.push((selectors.trim(), *value));
        } else if body.contains("var(--c)") {
            for (class, value) in &hues {
                let of = |selector: &str| format!("{class} > {}", selector.trim().trim_start_matches("g > "));
                let selectors: Vec<String> = selectors.split(',').map(of).collect();
                let body = plain(&body.replace("var(--c)", value));
                style.push_str(&format!("{} {{ {body} }}\n", selectors.join(", ")));
            }
        } else {
            style.push_str(&format!("{selectors}{{ {} }}\n", plain(body)));
        }
    }
    style
});

/// The names and values of a block of declarations.
fn declarations(text: &str) -> Vec<(&str, &str)> {
    let block = text.split('}').next().unwrap_or_default();
    block
        .split(';')
        .filter_map(|it| it.split_once(':'))
        .map(|(name, value)| (name.trim(), value.trim()))
        .collect()
}

const MARGIN: f64 = 14.0;
/// Between two plots.
const GAP: f64 = 16.0;
const LEGEND_ROW: f64 = 19.0;
/// The width of a character as a multiple of its size.
const CHARACTER: f64 = 0.56;

#[cfg(test)]
mod tests {
    use weir_results::{
        Case, CaseSeries, Environment, LatencyKind, LatencyRecorder, LatencySummary, Reliability, Run, Test,
    };

    use super::*;

    fn case(engine: &str, size_bytes: u64) -> Case {
        let mut recorder = LatencyRecorder::new();
        (1..=2000).for_each(|n| recorder.record(20_000 + n * 37 % 9_000));
        Case::new(engine, Test::Latency, Reliability::Reliable, size_bytes).with(|case| {
            case.figures.latency_us = Some(recorder.summary(LatencyKind::HalfRtt));
            case.figures.histogram = recorder.histogram(LatencyKind::HalfRtt);
            let received = (0..9).map(|n| 900 + n * 7).collect();
            case.figures.series = Some(CaseSeries { step_ms: 1000.0, received, ..CaseSeries::default() });
        })
    }

    fn plots(cases: Vec<Case>) -> Vec<Plot> {
        let run = Run { cases, ..Run::new(Environment::default()) };
        page_plots(&NamedRun { name: "run", run: &run, published: &[] }, &ReportOptions::default())
    }

    fn of_two_engines() -> Vec<Plot> {
        plots(
            ["udp", "weir", "<b>"]
                .into_iter()
                .flat_map(|engine| [32, 1024].map(|size| case(engine, size)))
                .collect(),
        )
    }

    #[test]
    fn the_plots_of_a_page_are_documents_with_title_and_legend() {
        let plots = of_two_engines();
        let names: Vec<&str> = plots.iter().map(|plot| plot.name.as_str()).collect();
        for start in ["by-size-", "ratios-", "percentiles-", "histogram-", "time-rate-"] {
            assert!(
                names.contains(&format!("{start}latency-reliable-unkeyed-block").as_str()),
                "{start}: {names:?}"
            );
        }
        let ratios = &plots.iter().find(|plot| plot.name.starts_with("ratios-")).unwrap().svg;
        assert!(ratios.contains("Median latency as a multiple of udp."), "{ratios}");
        assert!(
            ratios.contains("reliable, unkeyed, wait: block") && ratios.contains("&lt;b&gt;"),
            "{ratios}"
        );
        let unknown =
            |svg: &str| ["var(", "--c", "NaN", "<b>", "system-ui"].iter().any(|it| svg.contains(it));
        assert!(plots.iter().all(|plot| !unknown(&plot.svg)));
    }

    #[test]
    fn a_picture_has_the_colours_of_its_engines() {
        let svg = &of_two_engines().into_iter().find(|plot| plot.name.starts_with("time-rate-")).unwrap().svg;
        let picture = resvg::tiny_skia::Pixmap::decode_png(&crate::png(svg).unwrap()).unwrap();
        let has = |red: u8, green: u8, blue: u8| {
            let is_it = |it: &resvg::tiny_skia::PremultipliedColorU8| {
                (it.red(), it.green(), it.blue()) == (red, green, blue)
            };
            picture.pixels().iter().filter(|it| is_it(it)).count() > 100
        };
        assert!(has(0x00, 0x5f, 0xcc), "weir, drawn over the others");
        assert!(!has(0, 0, 0), "no line is filled");
    }

    #[test]
    fn udp_tests_have_plots_of_their_own_names() {
        let case = |direction| {
            Case::new("udp", Test::Latency, Reliability::None, 64).with(|case| {
                case.figures.udp = Some(weir_results::UdpFigures { direction, ..Default::default() });
                case.figures.latency_us =
                    Some(LatencySummary { count: 100, p50: 9.0, p99: 12.0, ..Default::default() });
            })
        };
        let plots = plots(vec![case(weir_results::Direction::Forward)]);
        assert!(plots[0].name.starts_with("by-size-udp-"), "{}", plots[0].name);
    }

    #[test]
    fn equal_names_are_numbered() {
        let mut plots = Plots::default();
        let figure = Figure {
            name: "load",
            title: String::new(),
            note: String::new(),
            legend: Vec::new(),
            plots: Vec::new(),
            data: crate::html::Table::new("", 1, Vec::new()),
        };
        for _ in 0..3 {
            plots.add([&figure].into_iter(), "x", "");
        }
        let names: Vec<&str> = plots.all.iter().map(|plot| plot.name.as_str()).collect();
        assert_eq!(names, ["load-x", "load-x-2", "load-x-3"]);
    }
}
