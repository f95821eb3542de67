//! `--keep-awake`: which cases are measured with idle processors, and which with processors kept awake.

use std::sync::OnceLock;

use weir_bench::engine;
use weir_bench::hosts::Hosts;
use weir_bench::idle_check;
use weir_bench::plan::Plan;
use weir_results::{HostRecord, Run, Test, WaitStrategy, WakeUp};

use super::chosen_engines;
use crate::args::{BenchArgs, KeepAwakeChoice};
use crate::command::setup;
use crate::exit::Failure;

/// Returns what idle states do to the hosts of the measurement, if it has latencies of threads that sleep. This host is
/// checked at most once in this process: the studies of a plan agree on it. Others were checked when they connected.
pub(super) fn wake_ups(args: &BenchArgs, hosts: Option<&[HostRecord]>) -> Vec<WakeUp> {
    static FOUND: OnceLock<Vec<WakeUp>> = OnceLock::new();
    if !sleeps(args) {
        return Vec::new();
    }
    match hosts {
        Some(hosts) => of_hosts(hosts),
        None => FOUND.get_or_init(idle_check::wake_ups).clone(),
    }
}

/// Wake-ups of a host where idle states matter.
pub(super) fn slow() -> Vec<WakeUp> {
    vec![WakeUp { slept_us: 200, idle_ns: 35_000, awake_ns: 4_000 }]
}

/// What [`wake_ups`] returned when this run began.
pub(super) fn wake_ups_of(args: &BenchArgs, earlier: &Run) -> Vec<WakeUp> {
    match earlier.hosts.as_slice() {
        [] => earlier.environment.wake_ups.clone(),
        hosts => wake_ups(args, Some(hosts)),
    }
}

/// The wake-ups of the first host with ends where idle states matter; empty if there is none.
fn of_hosts(hosts: &[HostRecord]) -> Vec<WakeUp> {
    let mut used = hosts.iter().filter(|host| !host.ends.is_empty()).map(|host| &host.environment.wake_ups);
    used.find(|wake_ups| WakeUp::matters(wake_ups)).cloned().unwrap_or_default()
}

/// Whether the measurement has latencies of threads that sleep. Mock engines have none.
fn sleeps(args: &BenchArgs) -> bool {
    // What the options decide needs no check, but the results have it all the same.
    let is_real = |name: &String| engine::find(name).is_some_and(|engine| engine.about().is_some());
    args.workload.workload.is_none()
        && args.method.wait != WaitStrategy::Spin
        && args.workload.tests.contains(&Test::Latency)
        && chosen_engines(args).iter().any(is_real)
}

/// Whether latency cases keep the processors awake: one value, or both.
pub(super) fn awake(args: &BenchArgs, engines: &[String], wake_ups: &[WakeUp]) -> Vec<bool> {
    // The baseline is what idling distorts. In an open loop it is no bound, since lags and losses are compared as well,
    // and a breakdown has the wake-up as a stage.
    let is_compared = engines.len() > 1
        && engines.iter().any(|name| name == "udp")
        && args.workload.rate.is_empty()
        && args.workload.workload.is_none()
        && !args.method.breakdown;
    match args.host.keep_awake {
        KeepAwakeChoice::Yes => vec![true],
        KeepAwakeChoice::No => vec![false],
        KeepAwakeChoice::Both => vec![false, true],
        KeepAwakeChoice::Auto if is_compared && WakeUp::matters(wake_ups) => vec![false, true],
        KeepAwakeChoice::Auto => vec![false],
    }
}

/// Fails now if processors of this host cannot be kept awake, instead of in each case.
pub(super) fn check_spinners(plans: &[Plan], hosts: Option<&Hosts>) -> Result<(), Failure> {
    let is_needed = plans.iter().flat_map(|plan| &plan.steps).any(|step| step.case.method.keep_awake);
    setup::keep_awake(is_needed && hosts.is_none()).map(drop)
}

/// Says that latencies are measured twice without an option that requests it; empty if they are not.
pub(super) fn notice(args: &BenchArgs, plans: &[Plan]) -> String {
    let is_awake = plans.iter().flat_map(|plan| &plan.steps).any(|step| step.case.method.keep_awake);
    if args.host.keep_awake != KeepAwakeChoice::Auto || !is_awake {
        return String::new();
    }
    "idle states slow wake-ups down, which distorts comparisons with raw UDP: each latency case is measured with them \
     and without (--keep-awake=no or =yes measures once)\n"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use weir_results::Environment;

    use super::*;
    use crate::args::{Args, Command};

    const SLOW: [WakeUp; 1] = [WakeUp { slept_us: 200, idle_ns: 35_000, awake_ns: 4_000 }];

    fn args(arguments: &str) -> Box<BenchArgs> {
        let words = ["weir", "bench"].into_iter().chain(arguments.split_whitespace());
        let Command::Bench(args) = Args::parse_from(words).command else { unreachable!("it is `bench`") };
        args
    }

    #[test]
    fn latencies_are_measured_both_ways_where_idling_distorts_the_baseline() {
        let check = |arguments: &str, wake_ups: &[WakeUp], expected: &[bool]| {
            let args = args(arguments);
            assert_eq!(awake(&args, &args.workload.engines, wake_ups), expected, "{arguments}");
        };
        check("", &SLOW, &[false, true]);
        check("", &[], &[false]);
        check("--engines weir", &SLOW, &[false]);
        check("--engines udp", &SLOW, &[false]);
        check("--rate 1000/s", &SLOW, &[false]);
        check("--breakdown", &SLOW, &[false]);
        check("--keep-awake", &[], &[true]);
        check("--keep-awake=true", &[], &[true]);
        check("--keep-awake=no", &SLOW, &[false]);
        check("--keep-awake=both --engines weir", &[], &[false, true]);
    }

    #[test]
    fn the_longest_plan_is_that_of_a_slow_host() {
        assert!(WakeUp::matters(&slow()));
    }

    #[test]
    fn what_never_sleeps_is_not_checked() {
        for arguments in ["--wait spin", "--tests throughput", "--engines mock"] {
            assert_eq!(wake_ups(&args(arguments), None), [], "{arguments}");
            assert_eq!(wake_ups(&args(arguments), Some(&[host("publisher", &SLOW)])), [], "{arguments}");
        }
    }

    fn host(end: &str, wake_ups: &[WakeUp]) -> HostRecord {
        let environment = Environment { wake_ups: wake_ups.to_vec(), ..Environment::default() };
        let ends = Some(end.to_owned()).filter(|end| !end.is_empty()).into_iter().collect();
        HostRecord { ends, environment, ..HostRecord::default() }
    }

    #[test]
    fn one_slow_host_with_an_end_is_enough_and_a_run_that_goes_on_keeps_to_it() {
        let fast = [WakeUp { idle_ns: 4_100, ..SLOW[0] }];
        let check = |hosts: [HostRecord; 2], expected: &[WakeUp]| {
            assert_eq!(wake_ups(&args(""), Some(&hosts)), expected);
            let run = Run { hosts: hosts.to_vec(), ..Run::new(Environment::default()) };
            assert_eq!(wake_ups_of(&args(""), &run), expected);
        };
        check([host("publisher", &fast), host("subscriber", &SLOW)], &SLOW);
        check([host("publisher", &fast), host("subscriber", &fast)], &[]);
        check([host("publisher", &fast), host("", &SLOW)], &[]);
        let local = Environment { wake_ups: SLOW.to_vec(), ..Environment::default() };
        assert_eq!(wake_ups_of(&args(""), &Run::new(local)), SLOW);
    }
}
