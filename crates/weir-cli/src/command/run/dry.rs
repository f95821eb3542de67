//! `weir run --dry-run`: the cases in their order, and the estimated time.

use std::fmt::Write as _;
use std::time::Duration;

use weir_bench::plan::{Action, Plan, Step};

use crate::plans::Study;

/// The command and the cases of a study, of which some are finished.
pub(super) fn study(study: &Study, plans: &[Plan], finished: usize) -> String {
    let steps: Vec<&Step> = plans.iter().flat_map(|plan| &plan.steps).collect();
    let most = if has_width(plans) { "at most " } else { "" };
    let mut text = format!("{}: {most}{}, {}", study.name, cases(steps.len()), about(time(plans)));
    if finished > 0 {
        _ = write!(text, ", {finished} finished");
    }
    _ = writeln!(text, "\n  weir bench {}", study.arguments().collect::<Vec<_>>().join(" "));
    for (number, step) in (1..).zip(&steps) {
        _ = writeln!(text, "  {number:>4}  {}", line(step));
    }
    text
}

/// The last line: everything together.
pub(super) fn total(studies: &[&[Plan]]) -> String {
    let plans = || studies.iter().copied().flatten();
    let most = if studies.iter().any(|plans| has_width(plans)) { "at most " } else { "" };
    let count = plans().map(|plan| plan.steps.len()).sum();
    let time = studies.iter().map(|plans| time(plans)).sum();
    let noun = if studies.len() == 1 { "study" } else { "studies" };
    format!("{} {noun}, {most}{}, {}", studies.len(), cases(count), about(time))
}

fn line(step: &Step) -> String {
    let case = &step.case;
    let mut text = format!("{} {} B {}, {}", case.engine, case.size_bytes, case.test, case.reliability);
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

fn has_width(plans: &[Plan]) -> bool {
    plans.iter().any(|plan| plan.until_width.is_some())
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
