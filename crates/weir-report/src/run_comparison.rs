//! Comparison of two runs, case by case: what got better or worse, and what the repeats do not decide.
//!
//! The ratio of the medians has a bootstrap interval, and the median ratio of pairs one of order statistics. Verdicts
//! allow for the number of figures compared (Bonferroni correction): of all comparisons of a program with itself, at
//! most one in twenty reports any difference.

use std::fmt::Write as _;

use serde::Serialize;
use weir_results::{Better, Case, Interval, NotMeasured, Percentile, Run, Test, Warning};

use crate::compact::three_digits;
use crate::compare::times;
use crate::group::{Point, conditions_of, groups};
use crate::table::{dash, drawn};
use crate::udp::udp_points;
use crate::workload::{age_p99, workload_points};

/// How runs are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunComparisonOptions {
    /// Differences up to this share are no regression, e.g. 0.02.
    pub tolerance: f64,
    /// The repeats of both sides were measured interleaved: each is compared with that of the same number.
    pub is_paired: bool,
}

/// Two sides, case by case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunComparison {
    /// What is compared, in the order of tables.
    pub figures: Vec<ComparedFigure>,
    /// Cases with figures on the old side that on the new side failed, or lost what they should not lose, in all
    /// repeats or in more of them.
    pub failed: Vec<String>,
    /// Cases with figures that the new side does not have.
    pub missing: Vec<String>,
    /// Cases with figures that the old side lacks.
    pub added: Vec<String>,
}

/// A figure of a case on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedFigure {
    /// The engine.
    pub engine: String,
    /// Size of a sample in bytes; 0 for a workload, which has several.
    pub size_bytes: u64,
    /// The test and its conditions.
    pub conditions: String,
    /// `p50`, `p99` (microseconds) or `samples/s`; of a workload `CPU %` (of one processor) or `age p99`
    /// (microseconds).
    pub figure: &'static str,
    /// Median of the old side.
    pub old: f64,
    /// Median of the new side.
    pub new: f64,
    /// Repeats of the old side, and of the new one. With paired repeats, both are the number of pairs.
    pub repeats: [usize; 2],
    /// New divided by old: of the medians, or the median over the pairs.
    pub ratio: f64,
    /// The 95 % interval of the ratio; `None` with too few repeats.
    pub interval: Option<[f64; 2]>,
    /// The conclusion.
    pub verdict: Change,
    /// About how many repeats would decide, where these do not.
    pub repeats_needed: Option<u64>,
}

/// The result of comparing a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Better, by any amount.
    Better,
    /// Worse by more than the tolerance.
    Worse,
    /// No worse than the tolerance, and no better.
    Same,
    /// The repeats do not decide it.
    Inconclusive,
}

impl Change {
    /// The word in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Inconclusive => "inconclusive",
        }
    }
}

impl RunComparison {
    /// Compares the cases that both sides have. Each side may consist of several runs, whose repeats are taken
    /// together.
    #[must_use]
    pub fn new(old: &[Run], new: &[Run], options: RunComparisonOptions) -> Self {
        let stride = most_repeats(old, new);
        let (old, new) = (together(old, stride), together(new, stride));
        let [olds, news] = [&old, &new].map(Side::all);
        let shared: Vec<(&Side<'_>, &Side<'_>)> =
            olds.iter().filter_map(|old| Some((old, news.iter().find(|new| new.is_same(old))?))).collect();
        let pairs = || shared.iter().flat_map(|(old, new)| old.figures().map(move |it| (*old, *new, it)));
        // What both have is compared; the verdicts of many need more evidence than that of one.
        let count = pairs().filter(|(old, new, it)| old.has(it) && new.has(it)).count();
        let compare = |(old, new, it)| compare(old, new, it, count, options);
        let lacks = |side: &[Side<'_>], other: &[Side<'_>]| -> Vec<String> {
            let is_other = |it: &Side<'_>, one: &Side<'_>| one.is_same(it) && one.is_measured();
            let is_missing = |it: &&Side<'_>| it.is_measured() && !other.iter().any(|one| is_other(it, one));
            side.iter().filter(is_missing).map(Side::name).collect()
        };
        let was_tried = |name: &String| news.iter().any(|new| new.is_supported() && new.name() == *name);
        let (mut failed, missing): (Vec<_>, _) = lacks(&olds, &news).into_iter().partition(was_tried);
        let fails_more = |(old, new): &&(&Side<'_>, &Side<'_>)| {
            old.is_measured() && new.is_measured() && new.share_failed() > old.share_failed()
        };
        failed.extend(shared.iter().filter(fails_more).map(|(_, new)| new.name()));
        Self { figures: pairs().filter_map(compare).collect(), failed, missing, added: lacks(&news, &olds) }
    }

    /// Returns whether the new side is worse in some figure, or has failed in some case.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.count(Change::Worse) > 0 || !self.failed.is_empty()
    }

    /// Returns how many figures have a verdict.
    #[must_use]
    pub fn count(&self, verdict: Change) -> usize {
        self.figures.iter().filter(|figure| figure.verdict == verdict).count()
    }

    /// Returns the comparison as tables, by conditions, and a summary. They are valid Markdown, too.
    #[must_use]
    pub fn text(&self, options: RunComparisonOptions) -> String {
        let mut text = String::new();
        for figures in self.figures.chunk_by(|one, next| one.conditions == next.conditions) {
            let rows = figures.iter().map(|figure| figure.cells().to_vec());
            let is_number = |column| (1..7).contains(&column) && column != 2;
            let table = drawn(HEADINGS.map(str::to_owned).to_vec(), rows, is_number);
            _ = writeln!(text, "{}\n\n{table}\n", figures[0].conditions);
        }
        _ = writeln!(text, "{}", self.summary(options));
        for (cases, what) in [
            (
                &self.failed,
                "failed in the new run, or lost too much, in all repeats or in more than before, which counts as worse",
            ),
            (&self.missing, "only in the old run"),
            (&self.added, "only in the new run"),
        ] {
            if !cases.is_empty() {
                _ = writeln!(text, "\n{what}: {}", cases.join("; "));
            }
        }
        text
    }

    fn summary(&self, options: RunComparisonOptions) -> String {
        let counted = [Change::Worse, Change::Better, Change::Same, Change::Inconclusive]
            .map(|verdict| format!("{} {}", self.count(verdict), verdict.name()));
        let needed = self.figures.iter().filter_map(|figure| figure.repeats_needed).max();
        let needed = needed.map_or_else(String::new, |needed| {
            format!(" About {needed} repeats on each side would decide all of them.")
        });
        let tolerance = options.tolerance * 100.0;
        let failed =
            if self.failed.is_empty() { String::new() } else { format!("{} failed, ", self.failed.len()) };
        format!("{failed}{}, tolerance {tolerance} %.{needed}", counted.join(", "))
    }
}

impl ComparedFigure {
    fn cells(&self) -> [String; 8] {
        let interval = self.interval.map_or_else(dash, |[low, high]| format!("{low:.3} to {high:.3}"));
        let needed = self.repeats_needed.map_or_else(String::new, |needed| format!(" ({needed})"));
        [
            self.engine.clone(),
            if self.size_bytes > 0 { self.size_bytes.to_string() } else { dash() },
            self.figure.to_owned(),
            three_digits(self.old),
            three_digits(self.new),
            format!("{:.3}", self.ratio),
            interval,
            format!("{}{needed}", self.verdict.name()),
        ]
    }
}

const HEADINGS: [&str; 8] =
    ["Engine", "Size (B)", "Figure", "Old", "New", "New/old", "95 % interval", "Verdict (repeats needed)"];

/// The repeats of a case on one side.
struct Side<'a> {
    point: Point<'a>,
    conditions: String,
    figures: &'static [Figure],
}

/// A figure: its name, its better direction, and where it is.
type Figure = (&'static str, Better, fn(&Case) -> Option<f64>);

const LATENCIES: &[Figure] = &[
    ("p50", Better::Less, |case| Some(times(valid(case)?)?.p50)),
    ("p99", Better::Less, |case| Some(times(valid(case)?).filter(|it| it.supports(Percentile::P99))?.p99)),
];
/// Of streams in which something arrived.
const RATES: &[Figure] = &[("samples/s", Better::More, |case| {
    Some(valid(case)?.figures.throughput?.samples_per_s).filter(|rate| *rate > 0.0)
})];
/// Of workloads that lost nothing that they should not lose.
const COSTS: &[Figure] = &[("CPU %", Better::Less, Case::headline), ("age p99", Better::Less, age_p99)];

/// Streams by a schedule: what arrives is what was asked, unless something is lost.
const SCHEDULED: &[Figure] = &[LATENCIES[0], LATENCIES[1], RATES[0]];

/// Returns the case if it carried what it had to: not if it lost reliable samples, damaged some, or received none.
fn valid(case: &Case) -> Option<&Case> {
    let is_invalid = |warning: &Warning| {
        matches!(
            warning,
            Warning::LostSamples { permitted: false, .. }
                | Warning::CorruptSamples { .. }
                | Warning::NothingReceived
        )
    };
    (!case.evidence.warnings.iter().any(is_invalid)).then_some(case)
}

fn figures_of(point: &Point<'_>) -> &'static [Figure] {
    match point.repeats.first().map_or(Test::Latency, |case| case.point.test) {
        Test::Latency => LATENCIES,
        Test::Throughput => RATES,
        Test::Workload => COSTS,
    }
}

impl<'a> Side<'a> {
    /// All cases of a run.
    fn all(run: &'a Run) -> Vec<Self> {
        let of_group = |(conditions, point): (String, Point<'a>)| Self {
            conditions: conditions_of(&conditions, &point),
            figures: figures_of(&point),
            point,
        };
        let points = groups(run).into_iter().flat_map(|group| {
            let conditions = group.key.conditions();
            group.points.into_iter().map(move |point| (conditions.clone(), point))
        });
        let workloads = workload_points(run).into_iter();
        let workloads = workloads.map(|(conditions, point)| Self { conditions, point, figures: COSTS });
        let udp = udp_points(run).into_iter().map(|it| Self {
            conditions: it.title,
            figures: if it.is_scheduled { SCHEDULED } else { figures_of(&it.point) },
            point: it.point,
        });
        points.map(of_group).chain(workloads).chain(udp).collect()
    }

    fn test(&self) -> Test {
        self.point.repeats.first().map_or(Test::Latency, |case| case.point.test)
    }

    fn is_same(&self, other: &Self) -> bool {
        self.conditions == other.conditions
            && self.test() == other.test()
            && self.point.engine == other.point.engine
            && self.point.size_bytes == other.point.size_bytes
            && self.point.load == other.point.load
    }

    fn name(&self) -> String {
        let size = match self.point.size_bytes {
            0 => String::new(),
            bytes => format!(" {bytes} B"),
        };
        format!("{}{size} ({}, {})", self.point.engine, self.test().name(), self.conditions)
    }

    fn figures(&self) -> impl Iterator<Item = &'static Figure> + use<> {
        self.figures.iter()
    }

    fn values(&self, (_, _, figure): &Figure) -> Vec<f64> {
        let values = self.point.repeats.iter().filter_map(|case| figure(case));
        values.filter(|value| value.is_finite() && *value > 0.0).collect()
    }

    fn has(&self, figure: &Figure) -> bool {
        !self.values(figure).is_empty()
    }

    fn is_supported(&self) -> bool {
        let is_refused =
            |case: &&Case| matches!(case.evidence.not_measured, Some(NotMeasured::NotSupported { .. }));
        !self.point.repeats.iter().all(is_refused)
    }

    /// Returns which share of the repeats failed, or lost what they should not lose.
    fn share_failed(&self) -> f64 {
        let has_failed = |case: &Case| {
            let refused = matches!(case.evidence.not_measured, Some(NotMeasured::NotSupported { .. }));
            !refused && self.figures().all(|(_, _, figure)| figure(case).is_none())
        };
        self.point.repeats.iter().filter(|case| has_failed(case)).count() as f64
            / self.point.repeats.len().max(1) as f64
    }

    fn is_measured(&self) -> bool {
        self.figures().any(|figure| self.has(figure))
    }
}

/// The most repeats of a run, with as many runs on both sides: each then has its own range of numbers, so that a run
/// without a case shifts no pairs. `None`: the runs of the sides do not correspond.
fn most_repeats(old: &[Run], new: &[Run]) -> Option<u32> {
    let cases = old.iter().chain(new).flat_map(|run| &run.cases);
    let most = cases.map(|case| case.conditions.repeat).max()?;
    (old.len() == new.len()).then_some(most)
}

/// All cases of several runs as one run. The repeats of each run are numbered on from `stride` times its position, or
/// from the largest number before.
fn together(runs: &[Run], stride: Option<u32>) -> Run {
    let mut all: Option<Run> = None;
    for (position, run) in (0_u32..).zip(runs) {
        let Some(all) = &mut all else {
            all = Some(run.clone());
            continue;
        };
        let last = || all.cases.iter().map(|case| case.conditions.repeat).max().unwrap_or(0);
        let before = stride.map_or_else(last, |stride| stride.saturating_mul(position));
        let renumber = |case: &Case| {
            case.clone().with(|it| it.conditions.repeat = it.conditions.repeat.saturating_add(before))
        };
        let renumbered = run.cases.iter().map(renumber);
        all.cases.extend(renumbered);
    }
    all.unwrap_or_else(|| Run::new(weir_results::Environment::default()))
}

fn compare(
    old: &Side<'_>,
    new: &Side<'_>,
    figure: &Figure,
    count: usize,
    options: RunComparisonOptions,
) -> Option<ComparedFigure> {
    let (olds, news) = (old.values(figure), new.values(figure));
    let (name, better, _) = figure;
    let pairs: Vec<f64> = if options.is_paired { ratios(old, new, figure) } else { Vec::new() };
    let median = |values: &[f64]| Some(weir_results::Spread::of(values.iter().copied())?.median);
    let (old_median, new_median) = (median(&olds)?, median(&news)?);
    let at = |coverage| {
        if options.is_paired {
            Interval::of_median_exact(&pairs, coverage)
        } else {
            Interval::of_ratio_at(&news, &olds, coverage)
        }
    };
    let (ratio, repeats) = if options.is_paired {
        (median(&pairs)?, [pairs.len(); 2])
    } else {
        (new_median / old_median, [olds.len(), news.len()])
    };
    let alpha = (1.0 - COVERAGE) / count.max(1) as f64;
    let strict = at(1.0 - alpha);
    let verdict = strict.map_or(Change::Inconclusive, |it| judge(it, *better, options.tolerance));
    let fewest = repeats[0].min(repeats[1]);
    let repeats_needed = (verdict == Change::Inconclusive)
        .then(|| repeats_needed(strict, ratio, fewest, alpha, options.tolerance));
    Some(ComparedFigure {
        engine: new.point.engine.clone(),
        size_bytes: new.point.size_bytes,
        conditions: format!("{}, {}", new.test().name(), new.conditions),
        figure: name,
        old: old_median,
        new: new_median,
        repeats,
        ratio,
        interval: at(COVERAGE).map(|it| [it.low, it.high]),
        verdict,
        repeats_needed,
    })
}

/// The ratios of the repeats that both sides have.
fn ratios(old: &Side<'_>, new: &Side<'_>, (_, _, figure): &Figure) -> Vec<f64> {
    let pair = |case: &&Case| {
        let same = |other: &&&Case| other.conditions.repeat == case.conditions.repeat;
        Some(figure(case)? / figure(old.point.repeats.iter().find(same)?)?)
    };
    let ratios = new.point.repeats.iter().filter_map(pair);
    ratios.filter(|ratio| ratio.is_finite() && *ratio > 0.0).collect()
}

fn judge(interval: Interval, better: Better, tolerance: f64) -> Change {
    // As a loss: above one is worse.
    let (low, high) = match better {
        Better::Less => (interval.low, interval.high),
        Better::More => (1.0 / interval.high, 1.0 / interval.low),
    };
    if high < 1.0 {
        Change::Better
    } else if low > 1.0 + tolerance {
        Change::Worse
    } else if high <= 1.0 + tolerance {
        Change::Same
    } else {
        Change::Inconclusive
    }
}

/// About how many repeats on each side give an interval that no longer contains both sides of the nearest bound. Its
/// width falls with the square root of the number.
fn repeats_needed(interval: Option<Interval>, ratio: f64, repeats: usize, alpha: f64, tolerance: f64) -> u64 {
    // As many as an interval of the median takes.
    let least = (2.0 / alpha).log2().ceil().max(Interval::COUNT_MIN as f64);
    let Some(interval) = interval else { return least as u64 };
    let loss = ratio.max(1.0 / ratio);
    let distance = (loss - 1.0 - tolerance).abs().max((loss - 1.0).abs().min(MARGIN_MIN)).max(MARGIN_MIN);
    let half_width = (interval.high - interval.low) / 2.0 / ratio;
    let needed = repeats as f64 * (half_width / distance).powi(2);
    needed.ceil().clamp(least.max(repeats as f64 + 1.0), REPEATS_MAX) as u64
}

/// Coverage of the intervals shown, and of all verdicts together.
const COVERAGE: f64 = 0.95;
/// Differences are not followed closer to a bound than this.
const MARGIN_MIN: f64 = 0.005;
/// More repeats are never proposed.
const REPEATS_MAX: f64 = 10_000.0;

#[cfg(test)]
mod tests {
    use weir_results::{Environment, LatencySummary, Reliability, ThroughputSummary};

    use super::*;

    /// A run of `weir udp`: round trips with this median, and a stream at this rate.
    fn udp_run(p50: f64, rate: Option<f64>) -> Run {
        let case = |test, repeat| {
            Case::new("udp", test, Reliability::None, 1472).with(|it| {
                it.conditions.repeat = repeat;
                it.figures.udp = Some(weir_results::UdpFigures::default());
            })
        };
        let of = |repeat: u32| {
            let round_trips = case(Test::Latency, repeat).with(|it| {
                let p50 = p50 + f64::from(repeat) / 100.0;
                it.figures.latency_us = Some(LatencySummary { count: 9, p50, ..LatencySummary::default() });
            });
            let stream = case(Test::Throughput, repeat).with(|it| {
                let throughput =
                    |samples_per_s| ThroughputSummary { samples_per_s, ..ThroughputSummary::default() };
                it.figures.throughput = rate.map(throughput);
            });
            [round_trips, stream]
        };
        Run { cases: (1..=20).flat_map(of).collect(), ..Run::new(Environment::default()) }
    }

    #[test]
    fn udp_tests_are_compared_by_round_trip_and_rate() {
        let compared = |new| RunComparison::new(&[udp_run(10.0, Some(1e6))], &[new], PLAIN);
        let found = compared(udp_run(20.0, Some(2e6)));
        let verdicts: Vec<_> = found.figures.iter().map(|it| (it.figure, it.verdict)).collect();
        assert_eq!(verdicts, [("p50", Change::Worse), ("samples/s", Change::Better)]);
        let conditions = &found.figures[1].conditions;
        assert!(conditions.starts_with("throughput, UDP streams at full speed, IPv"), "{conditions}");
        let failed = compared(udp_run(10.0, None)).failed;
        assert!(failed.len() == 1 && failed[0].contains("UDP streams at full speed"), "{failed:?}");
    }

    #[test]
    fn streams_at_a_share_of_the_maximum_are_the_same_although_their_rates_differ() {
        let side = |asked_mbps: f64| {
            run((1..=20).map(|repeat| {
                rate(repeat, asked_mbps * 1e3).with(|it| {
                    it.point.engine = "udp".to_owned();
                    it.point.reliability = Reliability::None;
                    it.conditions.load_percent = Some(50.0);
                    it.conditions.rate_samples_per_s = Some(asked_mbps * 1e3);
                    let asked_mbps = Some(asked_mbps + f64::from(repeat));
                    it.figures.udp = Some(weir_results::UdpFigures { asked_mbps, ..Default::default() });
                })
            }))
        };
        let found = RunComparison::new(&[side(800.0)], &[side(400.0)], PLAIN);
        let [figure] = &found.figures[..] else { panic!("{found:?}") };
        assert_eq!((figure.engine.as_str(), figure.verdict), ("send, 50 % of the maximum", Change::Worse));
        assert_eq!((figure.repeats, found.missing.len(), found.added.len()), ([20, 20], 0, 0));
    }

    const PLAIN: RunComparisonOptions = RunComparisonOptions { tolerance: 0.0, is_paired: false };

    /// Normally distributed around 1, the same in every run of the test.
    struct Noise(u64);

    impl Noise {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        }

        fn next(&mut self, deviation: f64) -> f64 {
            let (radius, angle) = (self.uniform(), self.uniform() * std::f64::consts::TAU);
            1.0 + deviation * (-2.0 * radius.ln()).sqrt() * angle.cos()
        }
    }

    fn latency(engine: &str, size: u64, repeat: u32, p50: f64) -> Case {
        Case::new(engine, Test::Latency, Reliability::Reliable, size).with(|case| {
            case.conditions.repeat = repeat;
            case.figures.latency_us = Some(LatencySummary { count: 9, p50, ..LatencySummary::default() });
        })
    }

    fn rate(repeat: u32, samples_per_s: f64) -> Case {
        Case::new("weir", Test::Throughput, Reliability::Reliable, 32).with(|case| {
            case.conditions.repeat = repeat;
            case.figures.throughput =
                Some(ThroughputSummary { samples_per_s, ..ThroughputSummary::default() });
        })
    }

    fn run(cases: impl IntoIterator<Item = Case>) -> Run {
        Run { cases: cases.into_iter().collect(), ..Run::new(Environment::default()) }
    }

    /// Four cases with `repeats` repeats each, of a program that takes `pace` times as long as usual.
    fn program(noise: &mut Noise, repeats: u32, pace: f64) -> Run {
        let cases = (1..=repeats).flat_map(|repeat| (0..4).map(move |size| (repeat, size)));
        run(cases.map(|(repeat, size)| latency("weir", 32 << size, repeat, 20.0 * pace * noise.next(0.02))))
    }

    #[test]
    fn a_program_compared_with_itself_a_hundred_times_hardly_ever_differs() {
        let mut noise = Noise(1);
        let mut alarms = 0;
        for _ in 0..100 {
            let (old, new) = (program(&mut noise, 20, 1.0), program(&mut noise, 20, 1.0));
            let found = RunComparison::new(&[old], &[new], PLAIN);
            alarms += u32::from(found.count(Change::Worse) > 0);
        }
        assert!(alarms < 5, "{alarms} false alarms in 100 comparisons");
    }

    #[test]
    fn three_percent_are_found() {
        let mut noise = Noise(2);
        let mut missed = 0;
        for _ in 0..50 {
            let (old, new) = (program(&mut noise, 20, 1.0), program(&mut noise, 20, 1.03));
            missed += u32::from(RunComparison::new(&[old], &[new], PLAIN).count(Change::Worse) == 0);
        }
        assert_eq!(missed, 0, "of 50 comparisons");
    }

    #[test]
    fn pairs_cancel_what_both_sides_had_in_common() {
        let mut noise = Noise(3);
        // The machine alternates between two speeds.
        let speed = |repeat: u32| if repeat.is_multiple_of(3) { 2.0 } else { 1.0 };
        let mut side = |pace: f64| {
            run((1..=20).map(|repeat| latency("weir", 32, repeat, pace * speed(repeat) * noise.next(0.01))))
        };
        let (old, new) = ([side(20.0)], [side(21.0)]);
        let paired = RunComparison::new(&old, &new, RunComparisonOptions { is_paired: true, ..PLAIN });
        assert_eq!(paired.figures[0].verdict, Change::Worse, "{:?}", paired.figures);
        assert!((paired.figures[0].ratio - 1.05).abs() < 0.01);
        let apart = RunComparison::new(&old, &new, PLAIN);
        assert_eq!(apart.figures[0].verdict, Change::Inconclusive, "{:?}", apart.figures);
    }

    #[test]
    fn a_higher_rate_is_better_and_a_lower_one_within_the_tolerance_is_the_same() {
        let side =
            |pace: f64| run((1..=20).map(|repeat| rate(repeat, pace * (1e6 + f64::from(repeat % 5) * 1e3))));
        let verdict = |new: f64, tolerance: f64| {
            let options = RunComparisonOptions { tolerance, ..PLAIN };
            RunComparison::new(&[side(1.0)], &[side(new)], options).figures[0].verdict
        };
        assert_eq!(verdict(1.1, 0.0), Change::Better);
        assert_eq!(verdict(0.9, 0.0), Change::Worse);
        assert_eq!(verdict(0.9, 0.2), Change::Same);
        assert_eq!(verdict(1.0, 0.02), Change::Same);
    }

    #[test]
    fn too_few_repeats_decide_nothing_and_their_number_is_given() {
        let side = |p50: f64| run((1..=3).map(|repeat| latency("weir", 32, repeat, p50)));
        let found = RunComparison::new(&[side(10.0)], &[side(20.0)], PLAIN);
        let figure = &found.figures[0];
        assert_eq!(
            (figure.verdict, figure.interval, figure.repeats_needed),
            (Change::Inconclusive, None, Some(6))
        );
        assert_eq!(figure.ratio, 2.0);
        let text = found.text(PLAIN);
        let row: Vec<&str> =
            text.lines().find(|line| line.contains("p50")).unwrap().split_whitespace().collect();
        assert_eq!(row.join(" "), "| weir | 32 | p50 | 10 | 20 | 2.000 | - | inconclusive (6) |");
        assert!(text.contains("0 worse, 0 better, 0 same, 1 inconclusive, tolerance 0 %."), "{text}");
    }

    #[test]
    fn runs_of_a_side_are_taken_together() {
        let one = |p50: f64| run([latency("weir", 32, 1, p50)]);
        let olds: Vec<Run> = (0..8).map(|_| one(10.0)).collect();
        let news: Vec<Run> = (0..8).map(|_| one(12.0)).collect();
        let found = RunComparison::new(&olds, &news, RunComparisonOptions { is_paired: true, ..PLAIN });
        assert_eq!((found.figures[0].repeats, found.figures[0].verdict), ([8, 8], Change::Worse));
    }

    #[test]
    fn pairs_are_of_the_runs_at_the_same_position_although_one_lacks_a_case() {
        let case = |number: u32, pace: f64| latency("weir", 32, 1, pace * f64::from(number));
        let olds: Vec<Run> = (1..=20).map(|number| run((number != 4).then(|| case(number, 10.0)))).collect();
        let news: Vec<Run> = (1..=20).map(|number| run([case(number, 12.0)])).collect();
        let found = RunComparison::new(&olds, &news, RunComparisonOptions { is_paired: true, ..PLAIN });
        let figure = &found.figures[0];
        assert_eq!((figure.repeats, figure.verdict), ([19, 19], Change::Worse));
        let interval = figure.interval.unwrap();
        assert!(interval.iter().all(|ratio| (ratio - 1.2).abs() < 1e-9), "{interval:?}");
        // Runs with several repeats.
        let two = |pace: f64, repeats: u32| {
            run((1..=repeats).map(|repeat| latency("weir", 32, repeat, pace * f64::from(10 + repeat))))
        };
        let olds = [two(1.0, 2), two(2.0, 3), two(4.0, 3)];
        let news = [two(1.0, 3), two(2.0, 3), two(4.0, 3)];
        let found = RunComparison::new(&olds, &news, RunComparisonOptions { is_paired: true, ..PLAIN });
        assert_eq!((found.figures[0].repeats, found.figures[0].interval), ([8, 8], Some([1.0, 1.0])));
    }

    #[test]
    fn workloads_of_the_same_contents_are_compared_by_what_they_cost() {
        let side = |digest: &str, cpu: f64| {
            run((1..=20).map(|repeat| {
                let case =
                    crate::workload::tests::case("weir", repeat, cpu + f64::from(repeat % 5) * 1e-3, 100);
                case.with(|it| it.conditions.workload_digest = Some(digest.to_owned()))
            }))
        };
        let found = RunComparison::new(&[side("ab", 10.0)], &[side("ab", 5.0)], PLAIN);
        let [cpu, age] = &found.figures[..] else { panic!("{:?}", found.figures) };
        assert_eq!((cpu.figure, cpu.verdict), ("CPU %", Change::Better));
        assert_eq!((age.figure, age.ratio), ("age p99", 1.0));
        assert!(found.text(PLAIN).starts_with("workload, robot, contents ab\n"), "{}", found.text(PLAIN));
        let other = RunComparison::new(&[side("ab", 10.0)], &[side("cd", 10.0)], PLAIN);
        assert_eq!(other.figures, []);
        assert_eq!(other.missing, ["weir (workload, robot, contents ab)"]);
        assert_eq!(other.added, ["weir (workload, robot, contents cd)"]);
        // One without figures, because it lost too much, fails.
        let mut lossy = side("ab", 10.0);
        lossy.cases.iter_mut().for_each(|case| case.figures.workload = None);
        let found = RunComparison::new(&[side("ab", 10.0)], &[lossy], PLAIN);
        assert_eq!(found.failed, ["weir (workload, robot, contents ab)"]);
        assert!(found.is_worse() && found.missing.is_empty());
        let text = found.text(PLAIN);
        assert!(text.contains("failed in the new run, or lost too much"), "{text}");
    }

    #[test]
    fn a_case_that_fails_is_worse_and_one_that_is_not_supported_is_missing() {
        let without_figures = |reason| {
            let case = latency("weir", 32, 1, 1.0).with(|it| {
                it.figures.latency_us = None;
                it.evidence.not_measured = Some(reason);
            });
            RunComparison::new(&[run([latency("weir", 32, 1, 1.0)])], &[run([case])], PLAIN)
        };
        let reason = String::from("why");
        let found = without_figures(NotMeasured::Failed { reason: reason.clone() });
        assert_eq!((found.is_worse(), found.failed.len(), found.missing.len()), (true, 1, 0));
        let found = without_figures(NotMeasured::NotSupported { reason });
        assert_eq!((found.is_worse(), found.failed.len(), found.missing.len()), (false, 0, 1));
    }

    #[test]
    fn a_case_that_fails_more_often_is_worse() {
        let repeats = |failures: u32| {
            run((1..=10).map(|repeat| {
                latency("weir", 32, repeat, 1.0).with(|it| {
                    if repeat <= failures {
                        it.figures.latency_us = None;
                        it.evidence.not_measured = Some(NotMeasured::Failed { reason: String::from("why") });
                    }
                })
            }))
        };
        let failed = |old, new| RunComparison::new(&[repeats(old)], &[repeats(new)], PLAIN).failed.len();
        assert_eq!([failed(0, 9), failed(0, 1), failed(2, 2), failed(3, 2), failed(0, 0)], [1, 1, 0, 0, 0]);
    }

    #[test]
    fn a_case_that_loses_reliable_samples_or_receives_nothing_has_failed() {
        let olds = || run((1..=20).map(|repeat| rate(repeat, 1e6 + f64::from(repeat))));
        let found = |change: fn(&mut Case)| {
            let news = (1..=20).map(|repeat| {
                let case = rate(repeat, 2e6 + f64::from(repeat));
                if repeat <= 4 { case.with(change) } else { case }
            });
            let found = RunComparison::new(&[olds()], &[run(news)], PLAIN);
            (found.failed.len(), found.is_worse())
        };
        let lost = |permitted| Warning::LostSamples { lost: 3, permitted };
        assert_eq!(found(|_| ()), (0, false));
        assert_eq!(
            found(|it| it.evidence.warnings = vec![Warning::CorruptSamples { corrupt: 1 }]),
            (1, true)
        );
        assert_eq!(found(|it| it.evidence.warnings = vec![Warning::NothingReceived]), (1, true));
        let nothing = |it: &mut Case| it.figures.throughput = Some(ThroughputSummary::default());
        assert_eq!(found(nothing), (1, true));
        for (permitted, expected) in [(false, (1, true)), (true, (0, false))] {
            let lossy = olds()
                .cases
                .into_iter()
                .map(|case| case.with(|it| it.evidence.warnings = vec![lost(permitted)]));
            let found = RunComparison::new(&[olds()], &[run(lossy)], PLAIN);
            assert_eq!((found.failed.len(), found.is_worse()), expected, "{found:?}");
        }
        let ping = || latency("weir", 32, 1, 10.0);
        let corrupt = ping().with(|it| it.evidence.warnings = vec![Warning::CorruptSamples { corrupt: 1 }]);
        let found = RunComparison::new(&[run([ping()])], &[run([corrupt])], PLAIN);
        assert_eq!((found.failed.len(), found.is_worse(), found.figures.len()), (1, true, 0));
    }

    #[test]
    fn cases_of_one_side_only_are_named() {
        let old = run([latency("weir", 32, 1, 1.0), latency("udp", 32, 1, 1.0)]);
        let new = run([latency("weir", 32, 1, 1.0), latency("weir", 64, 1, 1.0)]);
        let found = RunComparison::new(&[old], &[new], PLAIN);
        assert_eq!(found.figures.len(), 1);
        assert!(found.missing[0].starts_with("udp 32 B (latency, "), "{:?}", found.missing);
        assert!(found.added[0].starts_with("weir 64 B"), "{:?}", found.added);
        assert!(found.text(PLAIN).contains("only in the old run: udp 32 B"));
    }
}
