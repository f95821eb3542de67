//! Plots of latency by percentile, from the distributions that cases hold.

use std::collections::BTreeSet;

use weir_results::{Distribution, LatencyKind, Test};

use crate::group::{Group, Load, Point};
use crate::plot::{Axis, Chart, Line, Mark, Plot, chart_svg, hues};

/// Returns one plot for each size and load of a latency group whose cases hold their distributions. Repeats are taken
/// together.
pub(crate) fn distributions(group: &Group<'_>) -> Vec<Plot> {
    if group.key.test != Test::Latency {
        return Vec::new();
    }
    let of = |point: &Point<'_>| (point.size_bytes, point.load);
    let all: BTreeSet<(u64, Option<Load>)> = group.points.iter().map(of).collect();
    all.into_iter().filter_map(|(size_bytes, load)| of_size(group, size_bytes, load)).collect()
}

fn of_size(group: &Group<'_>, size_bytes: u64, load: Option<Load>) -> Option<Plot> {
    let line = |(engine, hue): (&str, _)| {
        let is_here = |point: &Point<'_>| (point.size_bytes, point.load) == (size_bytes, load);
        let of_engine = |point: &&Point<'_>| point.engine == engine && is_here(point);
        let marks = marks(&together(&each(group.points.iter().find(of_engine)?))?);
        let engine = engine.to_owned();
        (!marks.is_empty()).then_some(Line { engine, figure: "", hue, dashed: false, marks })
    };
    let lines: Vec<Line> = hues(group.engines()).into_iter().filter_map(line).collect();
    if lines.is_empty() {
        return None;
    }
    let what = match group.key.kind {
        LatencyKind::HalfRtt => "One-way latency (RTT/2)",
        LatencyKind::Rtt => "Round-trip time",
        LatencyKind::OneWay => "Latency from the intended send time",
    };
    let (at, suffix) = match load {
        Some(Load::Percent(bits)) => {
            let percent = f64::from_bits(bits);
            (format!(", at {percent} % of the maximum"), format!("-{percent}percent"))
        }
        Some(Load::Rate(bits)) => {
            let rate = f64::from_bits(bits);
            (format!(", at {rate} samples/s"), format!("-{rate}per-s"))
        }
        None => (String::new(), String::new()),
    };
    let chart = Chart {
        title: format!("{what} in microseconds by percentile, samples of {size_bytes} bytes{at}"),
        conditions: group.key.conditions(),
        axis: Axis::Rarity,
        lines,
    };
    let name = format!("distribution-{}-{size_bytes}{suffix}", group.key.file_stem());
    Some(Plot { name, svg: chart_svg(&chart) })
}

/// Returns the distribution of each repeat that holds one. A damaged one is left out.
pub(crate) fn each(point: &Point<'_>) -> Vec<Distribution> {
    point.repeats.iter().filter_map(|case| case.figures.histogram.as_ref()?.decode().ok()).collect()
}

/// Returns the distribution of all repeats together; `None` without any.
pub(crate) fn together(repeats: &[Distribution]) -> Option<Distribution> {
    let (first, others) = repeats.split_first()?;
    let mut all = first.clone();
    others.iter().for_each(|other| all.merge(other));
    Some(all)
}

/// Returns the points of a line: up to the percentile that one sample in ten exceeds, then ever rarer ones, as far as
/// there are samples. A logarithmic axis cannot show latencies of zero.
pub(crate) fn marks(distribution: &Distribution) -> Vec<Mark> {
    let count = distribution.count() as f64;
    let steps = (0..).map(|step| 10_f64.powf(f64::from(step) / STEPS_PER_DECADE));
    let rarities = steps.take_while(|rarity| *rarity <= count.min(RARITIES[RARITIES.len() - 1]));
    let at = |rarity: f64| (rarity, distribution.quantile_us(1.0 - 1.0 / rarity));
    let shown = rarities.map(at).filter(|(_, us)| *us > 0.0);
    shown.map(|at| Mark { at, whisker: None, has_heavy_loss: false }).collect()
}

/// Returns the label of a rarity: `99 %` for 100.
pub(crate) fn percentile_label(rarity: f64) -> String {
    let percent = 100.0 - 100.0 / rarity;
    let digits = (rarity.log10().round() as usize).saturating_sub(2);
    format!("{percent:.digits$} %")
}

/// The labelled places of the axis: the minimum, the median, and percentiles with one more nine each.
pub(crate) const RARITIES: &[f64] = &[1.0, 2.0, 10.0, 1e2, 1e3, 1e4, 1e5, 1e6];

const STEPS_PER_DECADE: f64 = 24.0;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_results::{Case, Environment, LatencyRecorder, Reliability, Run};

    fn run(engines: &[(&str, u64)]) -> Run {
        let case = |(engine, ns): &(&str, u64)| {
            let mut recorder = LatencyRecorder::new();
            (1..=1000).for_each(|n| recorder.record(n * ns));
            Case::new(*engine, Test::Latency, Reliability::Reliable, 1024).with(|case| {
                case.figures.latency_us = Some(recorder.summary(LatencyKind::HalfRtt));
                case.figures.histogram = recorder.histogram(LatencyKind::HalfRtt);
            })
        };
        let mut run = Run::new(Environment::default());
        run.cases = engines.iter().map(case).collect();
        run
    }

    #[test]
    fn each_size_has_a_plot_with_a_line_for_each_engine() {
        let plots = crate::plots(&run(&[("udp", 20), ("weir", 30)]));
        let plot = plots.iter().find(|plot| plot.name.starts_with("distribution-")).unwrap();
        assert_eq!(plot.name, "distribution-latency-reliable-unkeyed-block-1024");
        assert!(
            ["samples of 1024 bytes", "weir", "udp", "99.9 %"].iter().all(|text| plot.svg.contains(text))
        );
    }

    #[test]
    fn each_load_of_a_sweep_has_a_plot_of_its_own() {
        let loaded = |set: fn(&mut Case, f64)| {
            let mut all = run(&[]);
            for load in [10.0, 90.0] {
                let cases = run(&[("udp", 20), ("weir", 30)]).cases;
                all.cases.extend(cases.into_iter().map(|case| case.with(|it| set(it, load))));
            }
            let plots = crate::plots(&all).into_iter();
            plots.filter(|plot| plot.name.starts_with("distribution-")).collect::<Vec<_>>()
        };
        let names = |plots: &[Plot]| plots.iter().map(|plot| plot.name.clone()).collect::<Vec<_>>();
        let percent = loaded(|case, load| case.conditions.load_percent = Some(load));
        let stem = "distribution-latency-open-loop-reliable-unkeyed-block-1024";
        assert_eq!(names(&percent), [format!("{stem}-10percent"), format!("{stem}-90percent")]);
        assert!(percent[1].svg.contains("at 90 % of the maximum"));
        let rate = loaded(|case, load| case.conditions.rate_samples_per_s = Some(load));
        assert_eq!(names(&rate), [format!("{stem}-10per-s"), format!("{stem}-90per-s")]);
        assert!(rate[0].svg.contains("at 10 samples/s") && rate[0].svg.contains("weir"));
    }

    #[test]
    fn cases_without_distributions_have_none() {
        let mut run = run(&[("udp", 20)]);
        run.cases[0].figures.histogram = None;
        assert!(crate::plots(&run).iter().all(|plot| !plot.name.starts_with("distribution-")));
    }

    #[test]
    fn a_line_ends_where_its_samples_end() {
        let mut recorder = LatencyRecorder::new();
        (1..=1000).for_each(|n| recorder.record(n * 1000));
        let all = marks(&recorder.histogram(LatencyKind::Rtt).unwrap().decode().unwrap());
        let (rarity, us) = all[all.len() - 1].at;
        assert!(rarity <= 1000.0 && rarity > 900.0 && us > 990.0, "{rarity} {us}");
        assert!(all.is_sorted_by(|before, after| before.at.1 <= after.at.1));
    }

    #[test]
    fn percentiles_have_as_many_nines_as_they_need() {
        let labels: Vec<String> = RARITIES.iter().map(|rarity| percentile_label(*rarity)).collect();
        assert_eq!(labels, ["0 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %"]);
    }
}
