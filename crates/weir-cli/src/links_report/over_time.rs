//! Rate, queue and age over time: of the first engine, and of the best of the others.

use weir_bench::path::PathSpec;
use weir_report::{ChartGrid, GridRow, Plot, chart_grid};
use weir_results::{Case, LinkDirection};

use super::{Study, why_without_figures};

/// Draws the telling size of a study; `None` without series.
pub(super) fn plot(study: &Study<'_>) -> Option<Plot> {
    let size = telling_size(&study.sizes())?;
    let engines: Vec<&str> =
        study.engines().first().copied().into_iter().chain(best_other(study, size)).collect();
    let cases: Vec<Option<&Case>> =
        engines.iter().map(|engine| study.repeats(engine, size).first().copied()).collect();
    let row = |y_label, of: &dyn Fn(&Case) -> Vec<(f64, f64)>| {
        let lines = cases.iter().map(|case| case.map_or_else(Vec::new, of));
        GridRow { y_label, points: vec![lines.collect()] }
    };
    let rows = vec![
        row("Arriving (Mbit/s)", &|case| traffic(case, arriving_mbps)),
        row("Queue (ms)", &|case| traffic(case, |down| queue_ms(down, &study.spec))),
        row("Age p99 (ms)", &ages),
    ];
    // Files of earlier versions have no ages.
    let has_points = |row: &GridRow| row.points.iter().flatten().any(|line| !line.is_empty());
    let rows: Vec<GridRow> = rows.into_iter().filter(has_points).collect();
    let is_empty = rows.is_empty();
    let grid = ChartGrid {
        title: study.title(),
        names: engines.iter().map(ToString::to_string).collect(),
        columns: vec![format!("{size} B")],
        x_label: "Time (s)",
        rows,
    };
    let name: String = study.title().split([',', ' ', '=', '%', ':', '@']).collect::<Vec<_>>().join("-");
    let name = format!("link-{}", name.replace("--", "-"));
    (!is_empty).then(|| Plot { name, svg: chart_grid(&grid) })
}

/// The size that is drawn: [`SIZE`] if it was measured, or else the one nearest to it.
fn telling_size(sizes: &[u64]) -> Option<u64> {
    sizes.iter().copied().min_by_key(|size| size.abs_diff(SIZE))
}

/// The engine with the highest rate of a size, without the first one, and without those that failed if any did not.
fn best_other<'a>(study: &Study<'a>, size: u64) -> Option<&'a str> {
    let rate = |engine: &&str| {
        let repeats = study.repeats(engine, size);
        let is_whole = why_without_figures(&repeats).is_none();
        let mbps = repeats.first().and_then(|case| Some(case.figures.throughput?.mbps)).unwrap_or(0.0);
        (is_whole, mbps)
    };
    let others = study.engines().into_iter().skip(1);
    others.max_by(|one, other| {
        let (one, other) = (rate(one), rate(other));
        one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
    })
}

fn arriving_mbps(down: &LinkDirection) -> Vec<f64> {
    let mbps_per_byte = 8.0 / 1e3 / down.series.step_ms;
    down.series.delivered_bytes.iter().map(|bytes| *bytes as f64 * mbps_per_byte).collect()
}

/// The time that the queue takes at the link's rate.
fn queue_ms(down: &LinkDirection, link: &PathSpec) -> Vec<f64> {
    let Some(rate_bps) = link.rate_bps() else { return Vec::new() };
    down.series.queue_bytes.iter().map(|bytes| *bytes as f64 * 8e3 / rate_bps as f64).collect()
}

/// Figures of the link to the subscribers over the time in seconds, in at most [`POINTS_MAX`] points, each the mean of
/// several steps.
fn traffic(case: &Case, of: impl Fn(&LinkDirection) -> Vec<f64>) -> Vec<(f64, f64)> {
    let Some(link) = &case.figures.link else { return Vec::new() };
    let down = &link.to_subscribers;
    let values = of(down);
    let steps = values.len().div_ceil(POINTS_MAX).max(1);
    let width_s = down.series.step_ms * steps as f64 / 1e3;
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    (0..).map(|at| (f64::from(at) + 0.5) * width_s).zip(values.chunks(steps).map(mean)).collect()
}

/// The 99th percentile of the samples' ages over the time since the ends met; steps without samples have no point.
fn ages(case: &Case) -> Vec<(f64, f64)> {
    let Some(ages) = case.figures.ages.as_ref().filter(|ages| ages.from_write) else { return Vec::new() };
    let at = |step: usize| (step as f64 + 0.5) * ages.step_ms / 1e3;
    ages.p99_ms.iter().enumerate().filter_map(|(step, age)| Some((at(step), (*age)?))).collect()
}

const POINTS_MAX: usize = 120;

/// Large enough to be fragmented, and small enough that many fit into the time of a case. `xtask` keeps the series of
/// this size only.
const SIZE: u64 = 63_000;

#[cfg(test)]
mod tests {
    use weir_results::{
        AgeSeries, Environment, LinkFigures, LinkSeries, NotMeasured, Reliability, Run, Test,
        ThroughputSummary,
    };

    use super::super::plots;
    use super::*;

    fn case(engine: &str, size: u64, mbps: f64) -> Case {
        Case::new(engine, Test::Throughput, Reliability::Reliable, size).with(|case| {
            case.conditions.path = Some("tun,lte,reverse=on".parse::<PathSpec>().unwrap().to_string());
            case.figures.throughput = Some(ThroughputSummary { mbps, ..ThroughputSummary::default() });
            let series = LinkSeries {
                step_ms: 10.0,
                offered_bytes: vec![2000; 250],
                delivered_bytes: vec![2500; 250],
                queue_bytes: vec![9000; 250],
            };
            let to_subscribers = LinkDirection { series, ..LinkDirection::default() };
            case.figures.link = Some(LinkFigures { to_subscribers, ..LinkFigures::default() });
            let p99_ms = vec![Some(40.0), None, Some(50.0)];
            case.figures.ages =
                Some(AgeSeries { step_ms: 50.0, from_write: true, p99_ms, ..AgeSeries::default() });
        })
    }

    #[test]
    fn the_first_engine_is_drawn_with_the_best_of_the_others() {
        let failed = case("broken", SIZE, 9.0).with(|case| {
            case.evidence.not_measured = Some(NotMeasured::Failed { reason: "it hung".to_owned() });
        });
        let cases = vec![
            case("weir", SIZE, 4.0),
            case("slow", SIZE, 1.0),
            case("good", SIZE, 3.0),
            failed,
            case("slow", 1024, 9.0),
        ];
        let plots = plots(&Run { cases, ..Run::new(Environment::default()) });
        assert_eq!((plots.len(), &*plots[0].name), (1, "link-lte-reverse-on-reliable"));
        let svg = &plots[0].svg;
        for text in ["weir", "good", "63000 B", "Arriving (Mbit/s)", "Queue (ms)", "Age p99 (ms)"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        assert!(!svg.contains("slow") && !svg.contains("broken"), "{svg}");
    }

    #[test]
    fn series_become_points_over_the_time() {
        // 250 steps in 84 means of 3.
        let case = case("weir", SIZE, 4.0);
        let points = traffic(&case, arriving_mbps);
        assert_eq!((points.len(), points[0]), (84, (0.015, 2.0)));
        let link: PathSpec = "tun,rate=1M".parse().unwrap();
        assert_eq!(traffic(&case, |down| queue_ms(down, &link))[83].1, 72.0);
        assert_eq!(ages(&case), [(0.025, 40.0), (0.125, 50.0)]);
    }

    #[test]
    fn the_size_nearest_to_the_usual_one_is_drawn() {
        assert_eq!(telling_size(&[1024, 8192, 63_000, 1 << 20]), Some(63_000));
        assert_eq!(telling_size(&[1024, 8192]), Some(8192));
        assert_eq!(telling_size(&[]), None);
    }
}
