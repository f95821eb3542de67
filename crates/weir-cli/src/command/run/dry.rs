//! `weir run --dry-run`: the cases in their order, and the estimated time.

use std::fmt::Write as _;
use std::time::Duration;

use weir_bench::plan::{Action, Plan, Step};

use crate::plans::Study;

/// What a study measures, in the order in which it does.
pub(super) struct Outline {
    lines: Vec<String>,
    time: Duration,
    /// Whether it may end earlier.
    is_most: bool,
}

impl Outline {
    /// Of cases that take this long without what surrounds them.
    pub(super) fn new(lines: Vec<String>, duration: Duration) -> Self {
        let around = OVERHEAD * u32::try_from(lines.len()).unwrap_or(u32::MAX);
        Self { lines, time: duration + around, is_most: false }
    }

    /// Of these plans; `is_most`: there may be fewer.
    pub(super) fn of_plans(plans: &[Plan], is_most: bool) -> Self {
        let lines = plans.iter().flat_map(|plan| &plan.steps).map(line).collect();
        let is_most = is_most || plans.iter().any(|plan| plan.until_width.is_some());
        Self { lines, time: time(plans), is_most }
    }
}

/// The command and the cases of a study, of which some are finished.
pub(super) fn study(study: &Study, outline: &Outline, finished: usize) -> String {
    let most = if outline.is_most { "at most " } else { "" };
    let mut text = format!("{}: {most}{}, {}", study.name, cases(outline.lines.len()), about(outline.time));
    if finished > 0 {
        _ = write!(text, ", {finished} finished");
    }
    let arguments = study.arguments().collect::<Vec<_>>().join(" ");
    _ = writeln!(text, "\n  weir {} {arguments}", study.command());
    for (number, line) in (1..).zip(&outline.lines) {
        _ = writeln!(text, "  {number:>4}  {line}");
    }
    text
}

/// The last line: everything together.
pub(super) fn total(studies: &[Outline]) -> String {
    let most = if studies.iter().any(|outline| outline.is_most) { "at most " } else { "" };
    let count = studies.iter().map(|outline| outline.lines.len()).sum();
    let time = studies.iter().map(|outline| outline.time).sum();
    let noun = if studies.len() == 1 { "study" } else { "studies" };
    format!("{} {noun}, {most}{}, {}", studies.len(), cases(count), about(time))
}

fn line(step: &Step) -> String {
    let case = &step.case;
    let mut text = match &case.workload {
        Some(workload) => format!("{} {} {}", case.engine, case.test, workload.name),
        None => format!("{} {} B {}, {}", case.engine, case.size_bytes, case.test, case.reliability),
    };
    if case.batch_bytes > 0 {
        _ = write!(text, ", batches of {} B", case.batch_bytes);
    }
    if case.loans {
        text.push_str(", loans");
    }
    if let Some(rate) = &case.method.rate {
        _ = write!(text, ", {rate}");
    }
    if let Some(path) = &case.method.path {
        _ = write!(text, ", {path}");
    }
    if let Some(beside) = case.method.beside.name() {
        _ = write!(text, ", beside {beside}");
    }
    if case.method.keep_awake {
        text.push_str(", kept awake");
    }
    _ = write!(text, ", repeat {}", case.repeat);
    if let Action::NotSupported(reason) = &step.action {
        _ = write!(text, " (not measured: {reason})");
    }
    text
}

pub(super) fn cases(count: usize) -> String {
    format!("{count} case{}", if count == 1 { "" } else { "s" })
}

/// Measured time, and what surrounds it.
fn time(plans: &[Plan]) -> Duration {
    let steps = plans.iter().flat_map(|plan| &plan.steps);
    let measured = steps.filter(|step| !matches!(step.action, Action::NotSupported(_))).count();
    let around = OVERHEAD * u32::try_from(measured).unwrap_or(u32::MAX);
    plans.iter().map(Plan::duration).sum::<Duration>() + around
}

fn about(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        ..120.0 => format!("about {seconds:.0} s"),
        ..7200.0 => format!("about {:.0} min", seconds / 60.0),
        _ => format!("about {:.1} h", seconds / 3600.0),
    }
}

/// What a case takes beside its warm-up and measurement: processes that start, find each other and end.
const OVERHEAD: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_digits_or_three() {
        let check = |seconds: u64, expected: &str| {
            assert_eq!(about(Duration::from_secs(seconds)), format!("about {expected}"));
        };
        check(7, "7 s");
        check(119, "119 s");
        check(121, "2 min");
        check(7199, "120 min");
        check(9000, "2.5 h");
    }
}
