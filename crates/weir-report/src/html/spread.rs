//! How the latencies of a group are distributed: by percentile, and how often each occurred.

use std::collections::BTreeMap;

use weir_results::{Distribution, Interval, Test};

use crate::compact::three_digits;
use crate::distribution::{RARITIES, each, marks, percentile_label, together};
use crate::group::Group;
use crate::html::chart::{Axis, Chart, Line, Size};
use crate::html::figure::Figure;
use crate::html::number::or_dash;
use crate::html::palette::{Palette, name_of, panels};
use crate::html::plots::mark_keys;
use crate::html::table::{RowMark, Table};
use crate::plot::Mark;

/// Latency by percentile, a plot for each size.
pub(crate) fn by_percentile(group: &Group<'_>, palette: &Palette<'_>) -> Option<Figure> {
    if group.key.test != Test::Latency {
        return None;
    }
    let mut headings = vec!["Engine".to_owned(), "Size (B)".to_owned()];
    headings.extend(RARITIES.iter().map(|rarity| percentile_label(*rarity)));
    let mut data = Table::new("Latency by percentile, microseconds, all repeats together", 1, headings);
    let mut charts: Vec<Chart> = Vec::new();
    for (heading, points) in panels(group) {
        let mut lines = Vec::new();
        for point in points {
            let repeats = each(point);
            let Some(distribution) = together(&repeats) else { continue };
            let count = distribution.count() as f64;
            let mut cells = vec![name_of(point), point.size_bytes.to_string()];
            let of = |rarity: &f64| distribution.quantile_us(1.0 - 1.0 / rarity);
            cells.extend(RARITIES.iter().map(|rarity| or_dash((*rarity <= count).then(|| of(rarity)), 2)));
            data.push(cells);
            lines.push(Line {
                name: point.engine.clone(),
                hue: palette.hue(&point.engine),
                is_dashed: false,
                has_dots: false,
                marks: with_whiskers(thinned(marks(&distribution)), &repeats),
            });
        }
        if !lines.is_empty() {
            charts.push(Chart {
                label: format!("Latency by percentile, {heading}."),
                heading: Some(heading),
                x: Axis::logarithmic("percentile").with_ticks(
                    RARITIES.iter().map(|at| (*at, percentile_label(*at).replace(' ', ""))).collect(),
                ),
                y: Axis::logarithmic("microseconds"),
                reference: None,
                size: Size::Small,
                lines,
            });
        }
    }
    let note = "Both axes are logarithmic: each step to the right is ten times as rare. All repeats together; \
                whiskers are of the repeats' own percentiles.";
    figure(group, palette, ("percentiles", "Latency by percentile.", note), charts, data)
}

/// How often each latency occurred, a plot for each size.
pub(crate) fn histograms(group: &Group<'_>, palette: &Palette<'_>) -> Option<Figure> {
    if group.key.test != Test::Latency {
        return None;
    }
    let engines = group.engines();
    let title = "Percent of the samples in each class of latency, all repeats together; - is none";
    let headings = ["From (us)"].into_iter().chain(engines.iter().copied()).map(str::to_owned);
    let mut data = Table::new(title, 1, headings.collect());
    let mut charts: Vec<Chart> = Vec::new();
    for (heading, points) in panels(group) {
        let mut lines = Vec::new();
        let mut rows: BTreeMap<i32, Vec<String>> = BTreeMap::new();
        for point in points {
            let Some(distribution) = together(&each(point)) else { continue };
            let classes = classes(&distribution);
            let percent = |count: u64| count as f64 * 100.0 / distribution.count() as f64;
            let column = engines.iter().position(|engine| *engine == point.engine).unwrap_or(0);
            for (number, count) in classes.iter().filter(|(_, count)| *count > 0) {
                let row = rows.entry(*number).or_insert_with(|| vec!["-".to_owned(); engines.len()]);
                row[column] = three_digits(percent(*count));
            }
            lines.push(Line {
                name: point.engine.clone(),
                hue: palette.hue(&point.engine),
                is_dashed: false,
                has_dots: false,
                marks: outline(&classes, percent),
            });
        }
        data.push_marked(vec![heading.clone()], RowMark::Heading);
        for (number, cells) in rows {
            data.push([vec![three_digits(bound_us(number))], cells].concat());
        }
        if !lines.is_empty() {
            charts.push(Chart {
                label: format!("Distribution of latency, {heading}."),
                heading: Some(heading),
                x: Axis::logarithmic("microseconds"),
                y: Axis::linear("percent"),
                reference: None,
                size: Size::Small,
                lines,
            });
        }
    }
    let note = "Percent of the samples in classes that are equally wide on the logarithmic axis, without the slowest \
                0.5 %. All repeats together.";
    figure(group, palette, ("histogram", "Distribution of latency.", note), charts, data)
}

fn figure(
    group: &Group<'_>,
    palette: &Palette<'_>,
    (name, title, note): (&'static str, &str, &str),
    mut charts: Vec<Chart>,
    data: Table,
) -> Option<Figure> {
    if let [only] = charts.as_mut_slice() {
        only.size = Size::Normal;
    }
    let mut legend = palette.keys(group, charts.iter().flat_map(|chart| &chart.lines));
    let marks = charts.iter().flat_map(|chart| &chart.lines).flat_map(|line| &line.marks);
    legend.extend(mark_keys(marks.map(|mark| (mark.whisker.is_some(), mark.has_heavy_loss))));
    (!charts.is_empty()).then(|| Figure {
        name,
        title: title.to_owned(),
        note: note.to_owned(),
        legend,
        plots: charts.iter().map(Chart::draw).collect(),
        data,
    })
}

/// Adds the interval, or range, of the repeats' own percentiles at the labelled places. Percentiles that a repeat is
/// too short for have none.
fn with_whiskers(mut marks: Vec<Mark>, repeats: &[Distribution]) -> Vec<Mark> {
    let least = repeats.iter().map(Distribution::count).min().unwrap_or(0) as f64;
    // Samples at the minimum, the first label, differ by nothing that matters.
    let labelled =
        |at: f64| at > 2.0 && at <= least && RARITIES.iter().any(|it| (at / it - 1.0).abs() < 1e-6);
    for mark in marks.iter_mut().filter(|mark| repeats.len() > 1 && labelled(mark.at.0)) {
        let values: Vec<f64> =
            repeats.iter().map(|repeat| repeat.quantile_us(1.0 - 1.0 / mark.at.0)).collect();
        let range = values.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(*v), h.max(*v)));
        mark.whisker = Some(Interval::of_median(&values).map_or(range, |it| (it.low, it.high)));
    }
    marks
}

/// Every second point of a line and its last one: enough for a small plot.
fn thinned(marks: Vec<Mark>) -> Vec<Mark> {
    let last = marks.len().saturating_sub(1);
    let kept = marks.into_iter().enumerate().filter(|(number, _)| number % 2 == 0 || *number == last);
    kept.map(|(_, mark)| mark).collect()
}

/// Returns how many latencies each class has, by the number of its lower bound, without gaps. The tail, whose length
/// would leave no width to the others, is left out.
fn classes(distribution: &Distribution) -> Vec<(i32, u64)> {
    let mut found: Vec<(i32, u64)> = Vec::new();
    let most = distribution.quantile_us(SHOWN);
    for (us, count) in distribution.bins().filter(|(us, _)| *us > 0.0 && *us <= most) {
        let number = (us.log10() * BINS_PER_DECADE).floor() as i32;
        while found.last().is_some_and(|(last, _)| *last + 1 < number) {
            found.push((found[found.len() - 1].0 + 1, 0));
        }
        match found.last_mut() {
            Some((last, sum)) if *last == number => *sum += count,
            _ => found.push((number, count)),
        }
    }
    found
}

/// The lower bound of a class in microseconds.
fn bound_us(number: i32) -> f64 {
    10_f64.powf(f64::from(number) / BINS_PER_DECADE)
}

/// Returns a point in the middle of each class, from zero to zero. (Steps would need twice as many.)
fn outline(classes: &[(i32, u64)], percent: impl Fn(u64) -> f64) -> Vec<Mark> {
    let (Some((first, _)), Some((last, _))) = (classes.first(), classes.last()) else { return Vec::new() };
    let ends = [(first - 1, 0), (last + 1, 0)];
    let points = ends[..1].iter().chain(classes).chain(&ends[1..]);
    let mark = |(number, count): &(i32, u64)| Mark {
        at: (10_f64.powf((f64::from(*number) + 0.5) / BINS_PER_DECADE), percent(*count)),
        whisker: None,
        has_heavy_loss: false,
    };
    points.map(mark).collect()
}

/// The share of the samples that a histogram shows.
const SHOWN: f64 = 0.995;

/// So that a class is 15 % wide.
const BINS_PER_DECADE: f64 = 16.0;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_results::{LatencyKind, LatencyRecorder};

    fn distribution(us: impl IntoIterator<Item = u64>) -> Distribution {
        let mut recorder = LatencyRecorder::new();
        us.into_iter().for_each(|us| recorder.record(us * 1000));
        recorder.histogram(LatencyKind::Rtt).unwrap().decode().unwrap()
    }

    #[test]
    fn every_latency_is_in_one_class_and_the_outline_ends_at_zero() {
        let found = classes(&distribution((0..1000).map(|n| if n % 4 == 0 { 100 } else { 10 })));
        assert_eq!(found.iter().map(|it| it.1).sum::<u64>(), 1000);
        let tail = classes(&distribution((1..=1000).map(|n| if n > 995 { 90_000 } else { 10 })));
        assert_eq!(tail.iter().map(|it| it.1).collect::<Vec<_>>(), [995], "without the slowest");
        assert_eq!(found.iter().map(|it| it.1).max(), Some(750));
        assert!(found.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0), "no gaps: {found:?}");
        let outline = outline(&found, |count| count as f64 / 10.0);
        let (first, last) = (outline[0].at, outline[outline.len() - 1].at);
        assert_eq!((first.1, last.1), (0.0, 0.0));
        assert!(first.0 < 10.0 && last.0 > 100.0, "{first:?} {last:?}");
    }

    #[test]
    fn whiskers_are_at_labelled_percentiles_that_every_repeat_supports() {
        let repeats: Vec<Distribution> = (1..=3).map(|n| distribution((1..=150).map(|us| us * n))).collect();
        let marks = thinned(marks(&together(&repeats).unwrap()));
        let found: Vec<Mark> =
            with_whiskers(marks.clone(), &repeats).into_iter().filter(|it| it.whisker.is_some()).collect();
        let at: Vec<f64> = found.iter().map(|mark| mark.at.0.round()).collect();
        assert_eq!(at, [10.0, 100.0], "450 samples in all, 150 in each");
        let (low, high) = found[0].whisker.unwrap();
        assert!((low / 135.0 - 1.0).abs() < 0.01 && (high / 405.0 - 1.0).abs() < 0.01, "{low} {high}");
        assert!(with_whiskers(marks, &repeats[..1]).iter().all(|mark| mark.whisker.is_none()));
    }
}
