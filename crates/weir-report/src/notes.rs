//! The host in a few lines, and the warnings of a run.

use weir_results::{Case, Environment, Run, WakeUp, format_size};

use crate::baseline::beaten_baselines;
use crate::group::{engine_label, groups};

/// Formats what a reader must know about the host to judge the figures, in a few lines of `name:
/// value`.
#[must_use]
pub fn environment(environment: &Environment) -> String {
    let unknown = || "unknown".to_owned();
    let bytes = |size: Option<u64>| size.map_or_else(unknown, |size| format!("{size} B"));
    let mut lines = vec![
        format!("weir {}, {}", environment.weir_version, environment.date),
        format!(
            "host: {}, kernel {}, {}",
            environment.hostname.as_deref().unwrap_or("unnamed"),
            environment.kernel,
            environment
                .virtualised
                .as_ref()
                .map_or_else(|| "no hypervisor seen".to_owned(), |name| format!("virtual machine ({name})")),
        ),
        format!(
            "cpu: {}, {} of {} processors allowed, governor {}, clock source {}",
            environment.cpu_model.as_deref().unwrap_or("unknown"),
            environment.allowed_cpus,
            environment.logical_cpus,
            environment.cpu_governor.as_deref().unwrap_or("unknown"),
            environment.clocksource.as_deref().unwrap_or("unknown"),
        ),
        idle(environment),
        format!(
            "memory: {}; socket buffers at most {} receiving, {} sending",
            format_size(environment.memory_kib.saturating_mul(1024)),
            bytes(environment.rmem_max),
            bytes(environment.wmem_max),
        ),
    ];
    if let Some(interface) = &environment.interface {
        lines.push(format!(
            "interface: {}, MTU {}{}",
            interface.name,
            interface.mtu.map_or_else(unknown, |mtu| mtu.to_string()),
            interface.speed_mbps.map_or_else(String::new, |speed| format!(", {speed} Mbit/s")),
        ));
    }
    lines.retain(|line| !line.is_empty());
    lines.join("\n") + "\n"
}

/// What idle processors do; empty if the host has no driver for it.
fn idle(environment: &Environment) -> String {
    let Some(driver) = &environment.idle_driver else { return String::new() };
    let governor = environment.idle_governor.as_ref().map_or_else(String::new, |it| format!(" by {it}"));
    let states = environment.idle_states.as_ref().map_or_else(String::new, |it| format!(" ({it} us)"));
    let measured = match WakeUp::describe(&environment.wake_ups) {
        text if text.is_empty() => text,
        text => format!("; wake-up {text}"),
    };
    format!("idle states: {driver}{governor}{states}{measured}")
}

/// Formats the warnings of a run, each once with its cases; empty if there are none.
#[must_use]
pub fn warnings(run: &Run) -> String {
    case_warnings(run) + &baseline_warnings(run)
}

/// The same without those about engines faster than raw UDP, for tables that have these below them.
#[must_use]
pub fn case_warnings(run: &Run) -> String {
    listed(each_warning(&run.cases.iter().collect::<Vec<_>>()), run)
}

/// Formats the warnings about engines that seem to be faster than raw UDP, one for each group of comparable cases.
pub(crate) fn baseline_warnings(run: &Run) -> String {
    listed(groups(run).iter().filter_map(beaten_baselines), run)
}

fn listed<'a>(found: impl IntoIterator<Item = (String, Vec<&'a Case>)>, run: &Run) -> String {
    let line = |(warning, cases): (_, Vec<_>)| {
        format!("warning: {warning} ({})\n", concerned(&cases, run.cases.len()))
    };
    found.into_iter().map(line).collect()
}

/// Returns each warning of some cases once, with the cases that have it.
pub(crate) fn each_warning<'a>(cases: &[&'a Case]) -> Vec<(String, Vec<&'a Case>)> {
    let mut found: Vec<(String, Vec<&Case>)> = Vec::new();
    for &case in cases {
        for warning in &case.evidence.warnings {
            let text = warning.to_string();
            match found.iter_mut().find(|(known, _)| *known == text) {
                Some((_, cases)) => cases.push(case),
                None => found.push((text, vec![case])),
            }
        }
    }
    found
}

pub(crate) fn concerned(cases: &[&Case], of: usize) -> String {
    match cases {
        _ if cases.len() == of && of > 1 => format!("all {of} cases"),
        [case] => format!("{} {} {} B", engine_label(case), case.point.test, case.point.size_bytes),
        [first, ..] => format!(
            "{} of {of} cases, first {} {} {} B",
            cases.len(),
            engine_label(first),
            first.point.test,
            first.point.size_bytes
        ),
        [] => String::new(),
    }
}
