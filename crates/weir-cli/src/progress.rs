//! Progress of a run on stderr: a view on a terminal, lines with `--verbose`, otherwise nothing.
//!
//! The view belongs to the coordinator, and asks nothing of the ends: it shows what `/proc` has of them, read once a
//! second, and the cases that are finished.

mod activity;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use weir_bench::case::CaseSpec;
use weir_bench::plan::{Action, Plan};
use weir_results::{Case, Reliability, Test, format_rate, format_size};

use crate::args::ProgressForm;
use crate::output;
use activity::{Activity, Rates};

/// Shows the progress of a run.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Measured time up to the end of each step, in milliseconds.
    ends_ms: Vec<u64>,
    case_started_ms: Cell<u64>,
    has_lines: bool,
    view: RefCell<View>,
}

/// What is shown below the bar.
struct View {
    activity: Activity,
    /// Measured time of the case at the next reading.
    next: Duration,
    rates: Option<Rates>,
    /// The last finished cases.
    finished: VecDeque<String>,
}

/// Finished cases that the view shows.
const SHOWN: usize = 4;
/// Reading and drawing compete with the measurement.
const READ_EVERY: Duration = Duration::from_secs(1);

impl Progress {
    /// Creates a view of the whole plan; `verbose` also reports each case.
    pub(crate) fn new(plan: &Plan, form: ProgressForm, verbose: bool) -> Self {
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
        let target = match form {
            // Hidden if stderr is not a terminal.
            ProgressForm::View => ProgressDrawTarget::stderr_with_hz(2),
            ProgressForm::Plain | ProgressForm::None => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(total_ms), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {percent:>3}%  {msg}  [{eta} left]{prefix}")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        let (rates, finished) = (None, VecDeque::new());
        let view = View { activity: Activity::new(), next: Duration::ZERO, rates, finished };
        let has_lines = verbose || form == ProgressForm::Plain;
        Self { bar, ends_ms, case_started_ms: Cell::new(0), has_lines, view: RefCell::new(view) }
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
        let mut view = self.view.borrow_mut();
        view.activity.start();
        view.next = Duration::ZERO;
    }

    /// Reports the measured time of the current case.
    pub(crate) fn measuring(&self, elapsed: Duration) {
        self.bar.set_position(self.case_started_ms.get() + millis(elapsed));
        let mut view = self.view.borrow_mut();
        if self.bar.is_hidden() || elapsed < view.next {
            return;
        }
        view.next = elapsed + READ_EVERY;
        if let Some(rates) = view.activity.read() {
            view.rates = Some(rates);
            self.bar.set_prefix(view.text());
        }
    }

    /// Reports the result of case `number`, from 1.
    pub(crate) fn case_finished(&self, number: usize, case: &Case) {
        let point = &case.point;
        let what = self.name(number, &point.engine, point.test, point.reliability, point.size_bytes);
        let line = format!("{what}: {}", figures(case));
        self.say(&line);
        let mut view = self.view.borrow_mut();
        view.finished.push_back(line);
        if view.finished.len() > SHOWN {
            view.finished.pop_front();
        }
        self.bar.set_prefix(view.text());
    }

    /// Runs `what` while the view is hidden.
    pub(crate) fn suspend<T>(&self, what: impl FnOnce() -> T) -> T {
        self.bar.suspend(what)
    }

    /// Removes the view.
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
        if self.has_lines {
            self.bar.suspend(|| output::talk(line));
        }
    }
}

impl View {
    /// The lines below the bar, each after a line break.
    fn text(&self) -> String {
        let mut lines = Vec::new();
        if let Some(rates) = &self.rates {
            let mut processors: Vec<String> =
                rates.ends.iter().map(|(role, percent)| format!("{role} {percent:.0} %")).collect();
            processors.extend(rates.host_percent.map(|percent| format!("whole host {percent:.0} %")));
            lines.push(format!("processors: {}", processors.join(", ")));
            lines.extend(rates.udp_per_s.map(|[sent, received, dropped]| {
                let [sent, received, dropped] = [sent, received, dropped].map(format_rate);
                format!("UDP: {sent}/s sent, {received}/s received, {dropped}/s dropped by full sockets")
            }));
        }
        lines.extend(self.finished.iter().cloned());
        // A case's reason may be longer than the terminal is wide, and have line breaks.
        let short = |line: &String| {
            let plain: String = line.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
            format!("\n  {}", plain.chars().take(LINE_MAX).collect::<String>())
        };
        lines.iter().map(short).collect()
    }
}

/// The most characters of a line of the view.
const LINE_MAX: usize = 110;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_has_a_line_for_processors_udp_and_each_finished_case() {
        let rates = Rates {
            ends: vec![("publisher".into(), 38.2), ("subscriber".into(), 31.0)],
            host_percent: Some(45.0),
            udp_per_s: Some([31_200.0, 31_100.0, 0.0]),
        };
        let finished = VecDeque::from(["[1/2] weir: failed: a\nb\u{1b}[2J".to_owned(), "x".repeat(300)]);
        let view = View { activity: Activity::new(), next: Duration::ZERO, rates: Some(rates), finished };
        let text = view.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "  processors: publisher 38 %, subscriber 31 %, whole host 45 %");
        assert_eq!(lines[2], "  UDP: 31.2 k/s sent, 31.1 k/s received, 0/s dropped by full sockets");
        assert_eq!(lines[3], "  [1/2] weir: failed: a b [2J");
        assert_eq!((lines.len(), lines[4].len()), (5, LINE_MAX + 2));
    }
}
