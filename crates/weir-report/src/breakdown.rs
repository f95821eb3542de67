//! The stages of latencies: a separate table, if they were measured.

use weir_results::{Case, LatencyBreakdown, Stage, StageTimes};

use crate::group::{Group, Point};
use crate::table::drawn;

/// A point's stages over its repeats: medians of percentiles, and means of means, so that the means
/// add up.
pub(crate) struct Stages {
    /// The whole path.
    pub(crate) one_way: StageTimes,
    /// In the order of [`Stage::ALL`].
    pub(crate) stages: [StageTimes; Stage::ALL.len()],
}

impl Stages {
    /// Computes the stages of a point; `None` if no repeat has them.
    pub(crate) fn of(point: &Point<'_>) -> Option<Self> {
        let times = |of: &dyn Fn(&LatencyBreakdown) -> Option<StageTimes>| {
            let of = |case: &Case| case.figures.breakdown.as_ref().and_then(of);
            let mean = point.repeats.iter().filter_map(|case| of(case)).map(|times| times.mean);
            Some(StageTimes {
                p50: point.spread(|case| Some(of(case)?.p50))?.median,
                p99: point.spread(|case| Some(of(case)?.p99))?.median,
                mean: mean.clone().sum::<f64>() / mean.count() as f64,
            })
        };
        let mut stages = [StageTimes::default(); Stage::ALL.len()];
        for (slot, stage) in stages.iter_mut().zip(Stage::ALL) {
            let found = |breakdown: &LatencyBreakdown| {
                breakdown.stages.iter().find(|figures| figures.stage == stage).map(|figures| figures.times)
            };
            *slot = times(&found)?;
        }
        Some(Self { one_way: times(&|breakdown| Some(breakdown.one_way))?, stages })
    }

    /// Returns a stage's median in percent of that of the whole path.
    fn share_percent(&self, times: &StageTimes) -> f64 {
        if self.one_way.p50 > 0.0 { times.p50 / self.one_way.p50 * 100.0 } else { 0.0 }
    }
}

/// Returns the stages of a group's points; empty if none were measured.
pub(crate) fn breakdown_table(group: &Group<'_>) -> String {
    let points: Vec<(&Point<'_>, Stages)> =
        group.points.iter().filter_map(|point| Some((point, Stages::of(point)?))).collect();
    if points.is_empty() {
        return String::new();
    }
    let headings = ["Engine", "Size (B)", "Stage", "50%", "99%", "Mean", "% of 50%", "Share of the median"];
    let rows = points.iter().flat_map(|(point, stages)| {
        let row = |name: &str, times: &StageTimes, has_bar: bool| {
            let share = stages.share_percent(times);
            let [p50, p99, mean] = [times.p50, times.p99, times.mean].map(|us| format!("{us:.3}"));
            let bar = if has_bar { bar(share) } else { String::new() };
            let (engine, size) = (point.engine.clone(), point.size_bytes.to_string());
            [engine, size, name.to_owned(), p50, p99, mean, format!("{share:.1}"), bar]
        };
        let parts = Stage::ALL.into_iter().zip(&stages.stages);
        let mut rows: Vec<_> = parts.map(|(stage, times)| row(stage.name(), times, true)).collect();
        rows.push(row("one way", &stages.one_way, false));
        rows
    });
    let table = drawn(headings, rows, |column| ![0, 2, 7].contains(&column));
    format!("\nStages of the above (microseconds)\n\n{table}\n\n{}\n", notes(group))
}

/// A bar with one character per two percent, at least one if the share is not zero.
fn bar(percent: f64) -> String {
    let signs = (percent / 2.0).round().max(if percent > 0.0 { 1.0 } else { 0.0 });
    "#".repeat(signs as usize)
}

pub(crate) fn notes(group: &Group<'_>) -> String {
    let breakdowns = || {
        let cases = group.points.iter().flat_map(|point| &point.repeats);
        cases.filter_map(|case| case.figures.breakdown.as_ref())
    };
    let error_us = breakdowns().map(|breakdown| breakdown.clock_error_us).fold(0.0, f64::max);
    let turn_us = breakdowns().map(|breakdown| breakdown.turn_us).fold(0.0, f64::max);
    let left_out: u64 = breakdowns().map(|breakdown| breakdown.left_out).sum();
    let ways: u64 = left_out + breakdowns().map(|breakdown| breakdown.samples).sum::<u64>();
    format!(
        "pings and echoes, one way each. The means of the stages add up to that of the whole; percentiles do not, since \
         different samples are slow in different stages\n\
         send call: until the datagram reaches the receiving side's stack; kernel: until it is in the socket; wake-up: \
         until the receiving thread has it; deliver: includes acknowledgements sent before\n\
         the kernel's timestamps, between send call and kernel, are accurate to {error_us:.3} us; {left_out} of {ways} \
         paths were left out because their times were not in order; between taking a ping and writing its echo the \
         harness takes up to {turn_us:.3} us, half of which is in each latency above, but in no stage"
    )
}

#[cfg(test)]
mod tests {
    use weir_results::{Environment, Reliability, Run, Test, Trip};

    use super::*;
    use crate::group::groups;

    /// Two repeats of a case whose first stage takes this long, in nanoseconds, and the others 100.
    pub(crate) fn run(first_ns: [u64; 2]) -> Run {
        let case = |ns: &u64| {
            let at = |index: u64| if index == 0 { 0 } else { ns + (index - 1) * 100 };
            let trip = Trip([0, 1, 2, 3, 4, 5, 6].map(at));
            Case::new("weir", Test::Latency, Reliability::Reliable, 32)
                .with(|it| it.figures.breakdown = LatencyBreakdown::new(&[trip], 20, 50.0))
        };
        Run { cases: first_ns.iter().map(case).collect(), ..Run::new(Environment::default()) }
    }

    #[test]
    fn every_stage_has_a_row_and_the_whole_way_the_last_one() {
        let run = run([500, 500]);
        let table = breakdown_table(&groups(&run)[0]);
        let rows: Vec<Vec<&str>> = table
            .lines()
            .filter(|line| line.contains("| weir"))
            .map(|line| line.split('|').map(str::trim).collect())
            .collect();
        assert_eq!(rows.len(), 7, "{table}");
        assert_eq!(
            rows[0][1..9],
            ["weir", "32", "encode", "0.500", "0.500", "0.500", "50.0", &"#".repeat(25)]
        );
        assert_eq!(rows[5][3..9], ["deliver", "0.100", "0.100", "0.100", "10.0", "#####"]);
        assert_eq!(rows[6][3..9], ["one way", "1.000", "1.000", "1.000", "100.0", ""]);
        assert!(
            table.contains("accurate to 0.020 us; 0 of 2 paths") && table.contains("0.050 us"),
            "{table}"
        );
    }

    #[test]
    fn means_over_repeats_add_up_too() {
        let run = run([300, 900]);
        let stages = Stages::of(&groups(&run)[0].points[0]).unwrap();
        let sum: f64 = stages.stages.iter().map(|times| times.mean).sum();
        assert!((sum - stages.one_way.mean).abs() < 1e-9 && (sum - 1.1).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn without_stages_there_is_no_table() {
        let case = Case::new("weir", Test::Latency, Reliability::Reliable, 32);
        let run = Run { cases: vec![case], ..Run::new(Environment::default()) };
        assert_eq!(breakdown_table(&groups(&run)[0]), "");
    }

    #[test]
    fn small_shares_show_and_none_does_not() {
        assert_eq!([0.0, 0.3, 50.0, 100.0].map(|percent| bar(percent).len()), [0, 1, 25, 50]);
    }
}
