//! Judging figures of several seeds. What random losses meet, and so the figures of one seed, is chance: a change of
//! anything draws again. Bounds are therefore on medians.

use super::seeds;

/// Figures of runs with several seeds.
pub(crate) struct Figures<const N: usize> {
    runs: Vec<[f64; N]>,
}

impl<const N: usize> Figures<N> {
    /// Returns the median of each figure.
    pub(crate) fn medians(&self) -> [f64; N] {
        core::array::from_fn(|at| median(self.runs.iter().map(|run| run[at])))
    }

    /// Returns the least of each figure.
    pub(crate) fn least(&self) -> [f64; N] {
        core::array::from_fn(|at| self.runs.iter().map(|run| run[at]).fold(f64::INFINITY, f64::min))
    }

    /// Returns the figures that a tenth of the runs exceed.
    pub(crate) fn high(&self) -> [f64; N] {
        core::array::from_fn(|at| {
            let mut values: Vec<f64> = self.runs.iter().map(|run| run[at]).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() * 9 / 10]
        })
    }

    /// Returns the highest of each figure.
    pub(crate) fn most(&self) -> [f64; N] {
        core::array::from_fn(|at| self.runs.iter().map(|run| run[at]).fold(f64::NEG_INFINITY, f64::max))
    }
}

/// Runs a simulation with each of `count` seeds, and with eleven in a [long run](is_long_run). `run` returns the
/// figures that a seed shows.
pub(crate) fn figures<const N: usize>(count: u64, run: impl FnMut(u64) -> [f64; N]) -> Figures<N> {
    let count = if is_long_run() { SEEDS_LONG } else { count };
    Figures { runs: seeds(count).into_iter().map(run).collect() }
}

/// The same, of which only the medians matter.
pub(crate) fn medians<const N: usize>(count: u64, run: impl FnMut(u64) -> [f64; N]) -> [f64; N] {
    figures(count, run).medians()
}

/// The median of an odd number of values.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Whether a run may take minutes.
pub(crate) fn is_long_run() -> bool {
    std::env::var_os("WEIR_SIM_SEEDS").is_some()
}

const SEEDS_LONG: u64 = 11;

/// Compares cases with their bounds, and reports all that miss them at the end of a test.
#[derive(Default)]
pub(crate) struct Judge {
    missed: Vec<String>,
}

impl Judge {
    /// Records whether a case is within its bounds.
    #[expect(clippy::print_stderr, reason = "shows the figures of a test with --nocapture")]
    pub(crate) fn check(&mut self, is_met: bool, shown: String) {
        eprintln!("{}{shown}", if is_met { "" } else { "MISSED: " });
        if !is_met {
            self.missed.push(shown);
        }
    }

    /// Fails if a case was not.
    pub(crate) fn end(self) {
        assert!(self.missed.is_empty(), "outside of their bounds:\n{}", self.missed.join("\n"));
    }
}
