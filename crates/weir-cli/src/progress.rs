//! Progress of a run on stderr: a view on a terminal, otherwise lines or nothing.
//!
//! The view belongs to the coordinator. It shows what the ends of the case report twice a second (see
//! [`weir_bench::live`]), what `/proc` has of this host, and the cases that are finished.

mod activity;
mod screen;
mod view;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use weir_bench::case::CaseSpec;
use weir_bench::live::LiveEnd;
use weir_bench::plan::Plan;
use weir_results::{Case, Reliability, Test, format_rate, format_size};

use crate::args::ProgressForm;
use crate::output;
use activity::Activity;
use screen::Screen;
use view::View;

pub(crate) use screen::{restore, resume, suspend};

/// Shows the progress of a run.
pub(crate) struct Progress {
    /// Cases of the plan.
    count: usize,
    has_lines: bool,
    /// `None`: there is no view.
    shown: RefCell<Option<Shown>>,
}

/// The view and the terminal that it is on.
struct Shown {
    screen: Screen,
    view: View,
    activity: Activity,
    /// When the view is drawn next.
    next_draw: Instant,
    /// Measured time of the case when the host is read next.
    next_reading: Duration,
}

/// Reading and drawing compete with the measurement.
const READ_EVERY: Duration = Duration::from_secs(1);
const DRAW_EVERY: Duration = Duration::from_millis(500);

/// How often the ends of a case report to a view.
const LIVE_PERIOD: Duration = Duration::from_millis(500);

/// Returns the form for this standard error: lines where a view cannot be drawn, or nothing beside data in a format
/// for programs.
pub(crate) fn form(wanted: ProgressForm, has_tables: bool) -> ProgressForm {
    match wanted {
        ProgressForm::View if screen::is_usable() => ProgressForm::View,
        ProgressForm::View if has_tables => ProgressForm::Plain,
        ProgressForm::View => ProgressForm::None,
        other => other,
    }
}

impl Progress {
    /// Creates a view of the whole plan; `verbose` also reports each case. Without a terminal, there is no view.
    pub(crate) fn new(plan: &Plan, form: ProgressForm, verbose: bool) -> Self {
        let has_lines = verbose || form == ProgressForm::Plain;
        let is_view = form == ProgressForm::View && !has_lines && screen::is_usable();
        // A terminal that refuses leaves a run without a view.
        let screen = is_view.then(Screen::open).and_then(Result::ok);
        let shown = screen.map(|screen| Shown {
            screen,
            view: View::new(plan),
            activity: Activity::new(),
            next_draw: Instant::now(),
            next_reading: Duration::ZERO,
        });
        Self { count: plan.steps.len(), has_lines, shown: RefCell::new(shown) }
    }

    /// Returns the plan whose ends report to the view, if there is one.
    pub(crate) fn watched(&self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        let live_period = self.shown.borrow().is_some().then_some(LIVE_PERIOD);
        plan.steps.iter_mut().for_each(|step| step.case.method.live_period = live_period);
        plan
    }

    /// Reports the start of case `number`, from 1.
    pub(crate) fn case_started(&self, number: usize, case: &CaseSpec) {
        let size_bytes = case.size_bytes as u64;
        let what = self.name(number, &case.engine, case.test, case.reliability, size_bytes);
        let awake = if case.method.keep_awake { " kept awake" } else { "" };
        self.say(&format!("{what}{awake}: started"));
        self.with_view(|shown| {
            shown.activity.start();
            shown.next_reading = Duration::ZERO;
            shown.view.start(number, what, case);
        });
    }

    /// Reports the measured time of the current case, and what its ends have measured so far.
    pub(crate) fn measuring(&self, elapsed: Duration, live: &[LiveEnd]) {
        let mut shown = self.shown.borrow_mut();
        let Some(it) = shown.as_mut() else { return };
        if elapsed >= it.next_reading {
            it.next_reading = elapsed + READ_EVERY;
            if let Some(rates) = it.activity.read() {
                it.view.set_rates(rates);
            }
        }
        it.view.measure(elapsed, live);
        if Instant::now() >= it.next_draw && !it.draw() {
            *shown = None;
        }
    }

    /// Reports the result of case `number`, from 1.
    pub(crate) fn case_finished(&self, number: usize, case: &Case) {
        let point = &case.point;
        let what = self.name(number, &point.engine, point.test, point.reliability, point.size_bytes);
        let awake = if case.conditions.kept_awake { " kept awake" } else { "" };
        let line = format!("{what}{awake}: {}", figures(case));
        self.say(&line);
        self.with_view(|shown| shown.view.finish(line));
    }

    /// Runs `what`, which prints, while the view is hidden.
    pub(crate) fn suspend<T>(&self, what: impl FnOnce() -> T) -> T {
        match self.shown.borrow_mut().as_mut() {
            Some(shown) => shown.screen.suspend(what),
            None => what(),
        }
    }

    /// Removes the view.
    pub(crate) fn finish(&self) {
        *self.shown.borrow_mut() = None;
    }

    /// Changes the view and draws it.
    fn with_view(&self, change: impl FnOnce(&mut Shown)) {
        let mut shown = self.shown.borrow_mut();
        let Some(it) = shown.as_mut() else { return };
        change(it);
        if !it.draw() {
            *shown = None;
        }
    }

    fn name(
        &self,
        number: usize,
        engine: &str,
        test: Test,
        reliability: Reliability,
        size_bytes: u64,
    ) -> String {
        if test == Test::Workload {
            return format!("[{number}/{}] {engine} {test}", self.count);
        }
        format!("[{number}/{}] {engine} {test} {reliability} {}", self.count, format_size(size_bytes))
    }

    fn say(&self, line: &str) {
        if self.has_lines {
            output::talk(line);
        }
    }
}

impl Shown {
    /// Returns whether the terminal is still there.
    fn draw(&mut self) -> bool {
        self.next_draw = Instant::now() + DRAW_EVERY;
        let view = &self.view;
        self.screen.draw(|frame| view.draw(frame)).is_ok()
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
    if let Some(workload) = &case.figures.workload {
        let age = workload.ages().ok().flatten().map_or(0.0, |ages| ages.p99);
        let lost = workload.sum(|topics| topics.lost);
        return format!("CPU {:.1} %, age p99 {age:.1} us, lost {lost}", workload.cpu_percent);
    }
    case.evidence.not_measured.as_ref().map_or_else(|| "no figures".to_owned(), ToString::to_string)
}
