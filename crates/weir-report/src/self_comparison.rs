//! How far comparisons can be trusted on a machine: a run compared with itself, as it is and slowed down.
//!
//! Repeats that follow each other are pairs. Each comparison draws some of the pairs of the run, without replacement,
//! and decides by chance which side each of the two is on. Both sides are the same program, so a difference is a false
//! alarm. With the new side slowed down, a comparison without a difference has missed it.

use weir_results::{Case, Evidence, Figures, LatencySummary, Run, ThroughputSummary};

use crate::run_comparison::{Change, RunComparison, RunComparisonOptions};
use crate::table::drawn;

/// What comparisons of a run with itself found, by the number of pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct SelfComparison {
    /// The share by which the new side was slowed down, e.g. 0.03.
    pub slow_down: f64,
    /// One for each number of pairs.
    pub rows: Vec<SelfComparisonRow>,
}

/// What comparisons with a number of pairs found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelfComparisonRow {
    /// Repeats of each side.
    pub pairs: usize,
    /// Figures of each comparison.
    pub figures: usize,
    /// Of [`SelfComparison::COMPARISONS`], how many found something worse on equal sides.
    pub false_alarms: u32,
    /// How many found something worse when the new side was slowed down.
    pub found: u32,
}

impl SelfComparison {
    /// Comparisons of each kind, for each number of pairs.
    pub const COMPARISONS: u32 = 100;
    /// The fewest pairs that a run needs.
    pub const PAIRS_MIN: usize = 10;

    /// Compares a run with itself. The same run, slow-down and tolerance give the same result. `None`: it has fewer
    /// than twice [`Self::PAIRS_MIN`] repeats.
    #[must_use]
    pub fn new(run: &Run, slow_down: f64, tolerance: f64) -> Option<Self> {
        let run = Run { cases: run.cases.iter().map(without_evidence).collect(), ..run.clone() };
        let repeats = run.cases.iter().map(|case| case.conditions.repeat).max().unwrap_or(0) as usize;
        let options = RunComparisonOptions { tolerance, is_paired: true };
        let counts =
            (0..COUNTS).map(|power| Self::PAIRS_MIN << power).take_while(|pairs| 2 * pairs <= repeats);
        let rows: Vec<SelfComparisonRow> =
            counts.map(|pairs| row(&run, repeats / 2, pairs, slow_down, options)).collect();
        (!rows.is_empty()).then_some(Self { slow_down, rows })
    }

    /// Returns the result as a table, which is valid Markdown, too.
    #[must_use]
    pub fn text(&self) -> String {
        let headings = [
            "Pairs".to_owned(),
            "Figures".to_owned(),
            "False alarms".to_owned(),
            format!("{} % slower: found", self.slow_down * 100.0),
        ];
        let row = |row: &SelfComparisonRow| {
            [row.pairs as u64, row.figures as u64, row.false_alarms.into(), row.found.into()]
                .map(|number| number.to_string())
                .to_vec()
        };
        let table = drawn(headings.to_vec(), self.rows.iter().map(row), |_| true);
        let least = self.rows.iter().find(|row| row.found * 20 >= Self::COMPARISONS * 19);
        let advice = least.map_or_else(
            || {
                "No number of pairs of this run finds it in 95 of 100 comparisons: measure more repeats."
                    .to_owned()
            },
            |row| format!("{} pairs find it in 95 of 100 comparisons or more.", row.pairs),
        );
        format!("{table}\n\nOf {} comparisons each. {advice}\n", Self::COMPARISONS)
    }
}

/// Numbers of pairs: each is twice the one before.
const COUNTS: u32 = 4;

fn row(
    run: &Run,
    of_pairs: usize,
    pairs: usize,
    slow_down: f64,
    options: RunComparisonOptions,
) -> SelfComparisonRow {
    let mut random = fastrand::Rng::with_seed(pairs as u64);
    let mut row = SelfComparisonRow { pairs, figures: 0, false_alarms: 0, found: 0 };
    for _ in 0..SelfComparison::COMPARISONS {
        let [old, new] = sides(run, of_pairs, pairs, &mut random);
        let same = RunComparison::new(std::slice::from_ref(&old), std::slice::from_ref(&new), options);
        let slower = Run { cases: new.cases.iter().map(|case| slowed(case, slow_down)).collect(), ..new };
        let slowed = RunComparison::new(&[old], &[slower], options);
        row.figures = row.figures.max(same.figures.len());
        row.false_alarms += u32::from(same.count(Change::Worse) > 0);
        row.found += u32::from(slowed.count(Change::Worse) > 0);
    }
    row
}

/// Draws pairs of repeats, and the side of each of the two. Both have the number of the pair then.
fn sides(run: &Run, of_pairs: usize, pairs: usize, random: &mut fastrand::Rng) -> [Run; 2] {
    let mut drawn: Vec<usize> = (0..of_pairs).collect();
    random.shuffle(&mut drawn);
    let mut sides = [Vec::new(), Vec::new()];
    for (number, pair) in (1..).zip(&drawn[..pairs]) {
        let is_swapped = random.bool();
        for (end, side) in sides.iter_mut().enumerate() {
            let repeat = 2 * pair + 1 + usize::from((end == 1) != is_swapped);
            let of_repeat = run.cases.iter().filter(|case| case.conditions.repeat as usize == repeat);
            side.extend(of_repeat.map(|case| case.clone().with(|it| it.conditions.repeat = number)));
        }
    }
    sides.map(|cases| Run { cases, ..Run::new(run.environment.clone()) })
}

/// A case with the figures that are compared.
fn without_evidence(case: &Case) -> Case {
    let Figures { latency_us, throughput, .. } = case.figures;
    Case {
        figures: Figures { latency_us, throughput, ..Figures::default() },
        evidence: Evidence::default(),
        ..case.clone()
    }
}

fn slowed(case: &Case, share: f64) -> Case {
    let factor = 1.0 + share;
    case.clone().with(|case| {
        case.figures.latency_us = case.figures.latency_us.map(|it| LatencySummary {
            p50: it.p50 * factor,
            p99: it.p99 * factor,
            p99_of_intervals: it.p99_of_intervals.map(|p99| p99 * factor),
            ..it
        });
        case.figures.throughput = case
            .figures
            .throughput
            .map(|it| ThroughputSummary { samples_per_s: it.samples_per_s / factor, ..it });
    })
}

#[cfg(test)]
mod tests {
    use weir_results::{Environment, Reliability, Test};

    use super::*;

    /// Cases with the figures of a real series, drawn from it with replacement: its spread, but no order.
    fn program(seed: u64, repeats: u32) -> Run {
        let mut random = fastrand::Rng::with_seed(seed);
        let rows: Vec<Vec<f64>> = MEASURED
            .lines()
            .skip(1)
            .map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect())
            .collect();
        let mut cases = Vec::new();
        for repeat in 1..=repeats {
            for (size, column) in [(32, 0), (1024, 3)] {
                let row = &rows[random.usize(..rows.len())];
                let case = |test| {
                    Case::new("weir", test, Reliability::Reliable, size)
                        .with(|it| it.conditions.repeat = repeat)
                };
                cases.push(case(Test::Latency).with(|it| {
                    it.figures.latency_us = Some(LatencySummary {
                        count: 10_000,
                        p50: row[column],
                        p99: row[column + 1],
                        ..LatencySummary::default()
                    });
                }));
                let samples_per_s = random.choice(&rows).unwrap()[column + 2];
                cases.push(case(Test::Throughput).with(|it| {
                    it.figures.throughput =
                        Some(ThroughputSummary { samples_per_s, ..ThroughputSummary::default() });
                }));
            }
        }
        Run { cases, ..Run::new(Environment::default()) }
    }

    /// p50, p99 and samples/s at 32 B, then at 1024 B, one line for each repeat; see `docs/performance/log.md`.
    const MEASURED: &str = include_str!("../tests/data/repeats.csv");

    #[test]
    fn comparisons_with_the_measured_spread_raise_few_false_alarms_and_find_three_percent() {
        let found = SelfComparison::new(&program(1, 160), 0.03, 0.0).unwrap();
        assert_eq!(found.rows.iter().map(|row| row.pairs).collect::<Vec<_>>(), [10, 20, 40, 80]);
        for row in &found.rows {
            assert!(row.figures == 6 && row.false_alarms < 5, "{found:?}");
        }
        assert!(found.rows.is_sorted_by_key(|row| row.found), "{found:?}");
        assert!(found.rows[3].found >= 95, "{found:?}");
    }

    #[test]
    fn runs_that_are_not_paired_raise_few_false_alarms_too() {
        let options = RunComparisonOptions { tolerance: 0.0, is_paired: false };
        let is_alarm = |seed: &u64| {
            let (old, new) = (program(2 * seed + 1000, 10), program(2 * seed + 1001, 10));
            RunComparison::new(&[old], &[new], options).count(Change::Worse) > 0
        };
        let alarms = (0..100).filter(is_alarm).count();
        assert!(alarms < 5, "{alarms} of 100");
    }

    #[test]
    fn the_same_run_gives_the_same_result_and_too_few_repeats_give_none() {
        let run = program(2, 20);
        let one = SelfComparison::new(&run, 0.5, 0.0).unwrap();
        assert_eq!(Some(&one), SelfComparison::new(&run, 0.5, 0.0).as_ref());
        assert!(one.text().contains("50 % slower: found"), "{}", one.text());
        assert_eq!(SelfComparison::new(&program(2, 19), 0.5, 0.0), None);
    }

    #[test]
    fn sides_are_repeats_that_follow_each_other() {
        let run = program(3, 40);
        let [old, new] = sides(&run, 20, 20, &mut fastrand::Rng::with_seed(1));
        let figures = |run: &Run| -> Vec<u64> {
            run.cases.iter().filter_map(|case| Some(case.figures.latency_us?.p50.to_bits())).collect()
        };
        let mut all = [figures(&old), figures(&new)].concat();
        let mut expected = figures(&run);
        all.sort_unstable();
        expected.sort_unstable();
        assert_eq!(all, expected);
        let numbers = |run: &Run| run.cases.iter().map(|case| case.conditions.repeat).collect::<Vec<_>>();
        assert_eq!(numbers(&old), numbers(&new));
    }
}
