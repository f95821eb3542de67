//! Progress of a run on stderr: a bar on a terminal, lines with `--verbose`, otherwise nothing.

use std::cell::Cell;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use weir_bench::case::CaseSpec;
use weir_bench::plan::{Action, Plan};
use weir_results::{Case, Reliability, Test, format_rate, format_size};

use crate::output;

/// Shows the progress of a run.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Measured time up to the end of each step, in milliseconds.
    ends_ms: Vec<u64>,
    case_started_ms: Cell<u64>,
    verbose: bool,
}

impl Progress {
    /// Creates a bar over the whole plan.
    pub(crate) fn new(plan: &Plan, verbose: bool) -> Self {
        let mut total_ms = 0;
        let ends_ms: Vec<u64> = plan
            .steps
            .iter()
            .map(|step| {
                if !matches!(step.action, Action::NotSupported(_)) {
                    total_ms += millis(step.case.warmup + step.case.duration);
                }
                total_ms
            })
            .collect();
        // Redrawn only twice a second, because drawing competes with the measurement.
        let bar = ProgressBar::with_draw_target(Some(total_ms), ProgressDrawTarget::stderr_with_hz(2));
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {percent:>3}%  {msg}  [{eta} left]") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar, ends_ms, case_started_ms: Cell::new(0), verbose }
    }

    /// Reports the start of case `number`, from 1.
    pub(crate) fn case_started(&self, number: usize, case: &CaseSpec) {
        let start_ms = number.checked_sub(2).and_then(|index| self.ends_ms.get(index)).copied().unwrap_or(0);
        self.case_started_ms.set(start_ms);
        let size_bytes = case.size_bytes as u64;
        let what = self.name(number, &case.engine, case.test, case.reliability, size_bytes);
        self.say(&format!("{what}: started"));
        self.bar.set_position(start_ms);
        self.bar.set_message(what);
    }

    /// Reports the measured time of the current case.
    pub(crate) fn measuring(&self, elapsed: Duration) {
        self.bar.set_position(self.case_started_ms.get() + millis(elapsed));
    }

    /// Reports the result of case `number`, from 1.
    pub(crate) fn case_finished(&self, number: usize, case: &Case) {
        let point = &case.point;
        let what = self.name(number, &point.engine, point.test, point.reliability, point.size_bytes);
        self.say(&format!("{what}: {}", figures(case)));
    }

    /// Runs `what` while the bar is hidden.
    pub(crate) fn suspend<T>(&self, what: impl FnOnce() -> T) -> T {
        self.bar.suspend(what)
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn name(
        &self,
        number: usize,
        engine: &str,
        test: Test,
        reliability: Reliability,
        size_bytes: u64,
    ) -> String {
        format!("[{number}/{}] {engine} {test} {reliability} {}", self.ends_ms.len(), format_size(size_bytes))
    }

    fn say(&self, line: &str) {
        if self.verbose {
            self.bar.suspend(|| output::talk(line));
        }
    }
}

fn figures(case: &Case) -> String {
    if let Some(latency) = &case.figures.latency_us {
        return format!("p50 {:.2} us, p99 {:.2} us, lost {}", latency.p50, latency.p99, latency.lost);
    }
    if let Some(throughput) = &case.figures.throughput {
        let rate = format_rate(throughput.samples_per_s);
        return format!("{rate} samples/s, {:.1} Mbit/s, lost {}", throughput.mbps, throughput.lost);
    }
    case.evidence.not_measured.as_ref().map_or_else(|| "no figures".to_owned(), ToString::to_string)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
