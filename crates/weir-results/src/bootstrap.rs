//! 95 % intervals of a median, and of the ratio of two engines, by the bootstrap.
//!
//! The percentile bootstrap (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter
//! 13): the repeats are resampled with replacement many times, and the middle 95 % of the medians
//! of the resamples are the interval. Two engines are compared by the ratios of their pairs:
//! conditions that affected both in the same minute, such as the VM's speed state, cancel out. The
//! resampling is seeded, so that a report of the same run always has the same figures.
//!
//! Of few values the bootstrap's intervals are too narrow. Verdicts on pairs of runs, which ask for a coverage far
//! above 95 %, therefore use order statistics (the interval of the sign test; Conover, Practical Nonparametric
//! Statistics, 1999, section 3.2), whose coverage holds for any distribution and number of values.

use crate::names::names;
use crate::summary::median;

/// A range that contains the true value in 95 of 100 cases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The better direction of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Less is better: latencies.
    Less,
    /// More is better: rates.
    More,
}

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Significantly better.
    Better,
    /// Significantly worse.
    Worse,
    /// The repeats do not decide it.
    CannotTell,
}

/// The figures of an engine compared with those of another one, measured interleaved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Median of the ratios of the pairs.
    pub ratio: f64,
    /// The interval of the true ratio; `None` with fewer than [`Interval::COUNT_MIN`] pairs.
    pub interval: Option<Interval>,
    /// Number of pairs in which both have a figure.
    pub pairs: usize,
    /// The conclusion.
    pub verdict: Verdict,
}

impl Interval {
    /// Fewer values do not allow 95 %: even their full range misses the true median in 2 of 2^5
    /// cases.
    pub const COUNT_MIN: usize = 6;

    /// Returns the interval of the median of `values`; `None` with fewer than
    /// [`Interval::COUNT_MIN`], or if one is NaN.
    #[must_use]
    pub fn of_median(values: &[f64]) -> Option<Self> {
        Self::of_median_at(values, COVERAGE)
    }

    /// Returns the interval that contains the true median with probability `coverage` (0 to 1); `None` with too few
    /// values for that, or if one is NaN.
    #[must_use]
    pub fn of_median_at(values: &[f64], coverage: f64) -> Option<Self> {
        let mut draw = resampled_median(values, coverage)?;
        Some(Self::of_draws(coverage, |draws| draw(draws)))
    }

    /// Returns the narrowest pair of values, as far from the smallest as from the greatest, that contains the true
    /// median with probability `coverage` (0 to 1) or more, whatever the distribution; `None` with too few values for
    /// that, or if one is NaN.
    #[must_use]
    pub fn of_median_exact(values: &[f64], coverage: f64) -> Option<Self> {
        if values.iter().any(|value| value.is_nan()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        // The true median is below the value at `rank` (from 0) if at most `rank` values are below it.
        let count = sorted.len();
        let (mut beyond, mut rank) = (0.0, None);
        for below in 0..count.div_ceil(2) {
            beyond += binomial_half(count, below);
            if beyond > (1.0 - coverage) / 2.0 {
                break;
            }
            rank = Some(below);
        }
        let rank = rank?;
        Some(Self { low: sorted[rank], high: sorted[count - 1 - rank] })
    }

    /// Returns the interval that contains the ratio of the true medians of two independent series with probability
    /// `coverage` (0 to 1); `None` with too few values in either, or if one is NaN.
    #[must_use]
    pub fn of_ratio_at(values: &[f64], others: &[f64], coverage: f64) -> Option<Self> {
        let mut draw = resampled_median(values, coverage)?;
        let mut draw_other = resampled_median(others, coverage)?;
        Some(Self::of_draws(coverage, |draws| draw(draws) / draw_other(draws)))
    }

    /// Returns the middle `coverage` of what is drawn.
    fn of_draws(coverage: f64, mut draw: impl FnMut(&mut Draws) -> f64) -> Self {
        let mut draws = Draws(SEED);
        // A narrow tail needs more of them.
        let count = ((TAIL_DRAWS / (1.0 - coverage)) as usize).clamp(DRAWS, DRAWS_MAX);
        let mut drawn: Vec<f64> = (0..count).map(|_| draw(&mut draws)).collect();
        drawn.sort_by(f64::total_cmp);
        // The same number beyond either end.
        let beyond = (count as f64 * (1.0 - coverage) / 2.0) as usize;
        Self { low: drawn[beyond], high: drawn[count - 1 - beyond] }
    }

    /// Returns whether the interval contains `value`.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

impl Comparison {
    /// Smaller differences need more evidence: see [`Comparison::CLOSE_PAIRS_MIN`] and
    /// [`Comparison::CLOSE_WIDTH`].
    pub const CLOSE: f64 = 0.2;

    /// Minimum number of pairs for a difference below [`Comparison::CLOSE`].
    pub const CLOSE_PAIRS_MIN: usize = 20;

    /// Maximum width of the interval, relative to the ratio, for a difference below
    /// [`Comparison::CLOSE`].
    pub const CLOSE_WIDTH: f64 = 0.05;

    /// Compares `(figure, other's figure)` of each pair; `None` without pairs. Pairs whose other
    /// figure is not above zero are left out.
    #[must_use]
    pub fn of(pairs: &[(f64, f64)], better: Better) -> Option<Self> {
        let ratios = pairs.iter().filter(|(_, other)| *other > 0.0).map(|(value, other)| value / other);
        let mut ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite()).collect();
        if ratios.is_empty() {
            return None;
        }
        let interval = Interval::of_median(&ratios);
        let ratio = median(&mut ratios);
        let verdict =
            interval.map_or(Verdict::CannotTell, |interval| verdict(ratio, interval, ratios.len(), better));
        Some(Self { ratio, interval, pairs: ratios.len(), verdict })
    }
}

names!(Verdict { Better = "better", Worse = "worse", CannotTell = "inconclusive" });

fn verdict(ratio: f64, interval: Interval, pairs: usize, better: Better) -> Verdict {
    let is_close = ratio.max(1.0 / ratio) < 1.0 + Comparison::CLOSE;
    let is_proven = pairs >= Comparison::CLOSE_PAIRS_MIN
        && (interval.high - interval.low) / ratio < Comparison::CLOSE_WIDTH;
    if interval.contains(1.0) || (is_close && !is_proven) {
        return Verdict::CannotTell;
    }
    match (better, interval.low > 1.0) {
        (Better::More, true) | (Better::Less, false) => Verdict::Better,
        (Better::More, false) | (Better::Less, true) => Verdict::Worse,
    }
}

/// The probability that exactly `heads` of `count` coins show heads.
fn binomial_half(count: usize, heads: usize) -> f64 {
    let choices = (0..heads).map(|it| ((count - it) as f64 / (it + 1) as f64).ln()).sum::<f64>();
    (choices - count as f64 * std::f64::consts::LN_2).exp()
}

/// Returns a function that draws the median of a resample; `None` if there are too few values. The full range of `n`
/// values misses the true median in 2 of 2^n cases.
fn resampled_median(values: &[f64], coverage: f64) -> Option<impl FnMut(&mut Draws) -> f64 + use<'_>> {
    let is_enough =
        values.len() >= Interval::COUNT_MIN && 0.5_f64.powi(values.len() as i32 - 1) <= 1.0 - coverage;
    let mut drawn = vec![0.0; values.len()];
    (is_enough && !values.iter().any(|value| value.is_nan())).then_some(move |draws: &mut Draws| {
        drawn.fill_with(|| values[draws.below(values.len())]);
        median(&mut drawn)
    })
}

/// Number of resamples, at least.
const DRAWS: usize = 2000;
/// Resamples beyond the ends of an interval, and the most resamples.
const TAIL_DRAWS: f64 = 20.0;
const DRAWS_MAX: usize = 50_000;

const COVERAGE: f64 = 0.95;

const SEED: u64 = 0x5765_6972;

/// Random numbers that are the same in every run and on every machine: `SplitMix64`.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` values around `middle`, normally distributed with the standard deviation
    /// `deviation`.
    fn normal(draws: &mut Draws, count: usize, middle: f64, deviation: f64) -> Vec<f64> {
        let mut uniform = || (draws.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let mut one = || {
            let (radius, angle) = (uniform().max(1e-300), uniform() * std::f64::consts::TAU);
            middle + deviation * (-2.0 * radius.ln()).sqrt() * angle.cos()
        };
        (0..count).map(|_| one()).collect()
    }

    /// Returns how many of 200 intervals contain the true median.
    fn covered(count: usize, make: impl Fn(&mut Draws) -> Vec<f64>, truth: f64) -> usize {
        let mut draws = Draws(7);
        let intervals = (0..200).map(|_| Interval::of_median(&make(&mut draws)).unwrap());
        let covered = intervals.filter(|interval| interval.contains(truth)).count();
        assert!(covered > 0, "{count}");
        covered
    }

    #[test]
    fn the_interval_holds_the_true_median_about_as_often_as_it_says() {
        for count in [6, 20] {
            let covered = covered(count, |draws| normal(draws, count, 100.0, 5.0), 100.0);
            assert!((180..=198).contains(&covered), "{covered} of 200 with {count} values");
        }
        // A skewed distribution: exponential, whose median is ln 2 of its mean.
        let exponential = |draws: &mut Draws| {
            let one = |number: u64| -(((number >> 11) as f64 + 1.0) / (1_u64 << 53) as f64).ln();
            (0..10).map(|_| one(draws.next())).collect()
        };
        let covered = covered(10, exponential, std::f64::consts::LN_2);
        assert!((180..=198).contains(&covered), "{covered} of 200");
    }

    #[test]
    fn order_statistics_hold_the_median_as_often_as_they_should() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        let ends = |count: usize, coverage| {
            Interval::of_median_exact(&values[..count], coverage).map(|it| (it.low, it.high))
        };
        // From tables of the sign test.
        assert_eq!(ends(20, 0.95), Some((6.0, 15.0)));
        assert_eq!(ends(10, 0.95), Some((2.0, 9.0)));
        assert_eq!((ends(6, 0.95), ends(5, 0.95)), (Some((1.0, 6.0)), None));
        assert_eq!((ends(8, 1.0 - 0.05 / 6.0), ends(7, 1.0 - 0.05 / 6.0)), (Some((1.0, 8.0)), None));
        assert_eq!(Interval::of_median_exact(&[f64::NAN; 9], 0.9), None);
        let mut draws = Draws(SEED);
        let misses = (0..4000).filter(|_| {
            let values = normal(&mut draws, 10, 1.0, 0.05);
            !Interval::of_median_exact(&values, 0.99).unwrap().contains(1.0)
        });
        assert!(misses.count() <= 40);
    }

    #[test]
    fn the_interval_narrows_with_the_square_root_of_the_count() {
        let width = |count| {
            let mut draws = Draws(3);
            let widths = (0..50).map(|_| {
                let interval = Interval::of_median(&normal(&mut draws, count, 0.0, 1.0)).unwrap();
                interval.high - interval.low
            });
            widths.sum::<f64>() / 50.0
        };
        let (few, many) = (width(16), width(256));
        assert!((3.0..5.0).contains(&(few / many)), "{few} {many}");
    }

    #[test]
    fn the_same_values_give_the_same_interval() {
        let values = normal(&mut Draws(1), 20, 10.0, 1.0);
        assert_eq!(Interval::of_median(&values), Interval::of_median(&values));
    }

    #[test]
    fn too_few_values_have_no_interval_and_equal_ones_a_narrow_one() {
        assert_eq!(Interval::of_median(&[1.0; 5]), None);
        assert_eq!(Interval::of_median(&[1.0; 6]), Some(Interval { low: 1.0, high: 1.0 }));
        assert_eq!(Interval::of_median(&[1.0, 1.0, 1.0, 1.0, 1.0, f64::NAN]), None);
    }

    /// Compares `count` pairs that share a drift of the machine and differ by `factor` and some
    /// noise.
    fn compare(count: usize, factor: f64, noise: f64, better: Better) -> Comparison {
        let mut draws = Draws(11);
        let own = normal(&mut draws, count, 1.0, noise);
        let other = normal(&mut draws, count, 1.0, noise);
        let drift = |index: usize| 100.0 + 10.0 * index as f64;
        let pairs: Vec<(f64, f64)> =
            (0..count).map(|at| (drift(at) * factor * own[at], drift(at) * other[at])).collect();
        Comparison::of(&pairs, better).unwrap()
    }

    #[test]
    fn pairs_cancel_what_both_went_through() {
        // The machine becomes three times as fast meanwhile; the ratio does not change.
        let found = compare(20, 1.5, 0.01, Better::More);
        assert!((1.48..1.52).contains(&found.ratio), "{found:?}");
        assert_eq!(found.verdict, Verdict::Better);
        assert_eq!(compare(20, 1.5, 0.01, Better::Less).verdict, Verdict::Worse);
        assert_eq!(compare(20, 0.5, 0.01, Better::Less).verdict, Verdict::Better);
        assert_eq!(compare(20, 0.5, 0.01, Better::More).verdict, Verdict::Worse);
    }

    #[test]
    fn what_chance_may_have_done_is_not_told() {
        assert_eq!(compare(20, 1.0, 0.05, Better::More).verdict, Verdict::CannotTell);
        // A clear difference, but too few pairs.
        let few = compare(5, 3.0, 0.001, Better::More);
        assert_eq!((few.verdict, few.interval), (Verdict::CannotTell, None));
        assert_eq!(compare(6, 3.0, 0.001, Better::More).verdict, Verdict::Better);
    }

    #[test]
    fn a_small_difference_needs_many_pairs_and_a_narrow_interval() {
        assert_eq!(compare(20, 1.1, 0.01, Better::More).verdict, Verdict::Better);
        assert_eq!(compare(19, 1.1, 0.01, Better::More).verdict, Verdict::CannotTell);
        assert_eq!(compare(40, 1.1, 0.08, Better::More).verdict, Verdict::CannotTell);
    }

    #[test]
    fn pairs_without_a_figure_are_left_out() {
        assert_eq!(Comparison::of(&[], Better::More), None);
        assert_eq!(Comparison::of(&[(1.0, 0.0)], Better::More), None);
        let one = Comparison::of(&[(3.0, 2.0), (1.0, 0.0)], Better::More).unwrap();
        assert_eq!((one.ratio, one.pairs, one.verdict), (1.5, 1, Verdict::CannotTell));
    }
}
