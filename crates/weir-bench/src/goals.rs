//! The measurements behind `weir targets`: a few series of cases, each under its own conditions.
//! weir-report evaluates them.

use std::time::Duration;

use weir_results::{Reliability, Test, WaitStrategy};

use crate::case::{CpuPair, Method, Place};
use crate::engine;
use crate::path::{PathSpec, VethSpec};
use crate::plan::{self, Plan, PlanError, PlanOptions};
use crate::rate::Rate;
use crate::workload::Workload;

/// How to measure all of it.
#[derive(Clone, Debug)]
pub struct GoalsOptions {
    /// Shorter cases and half as many repeats, for a rough result.
    pub is_quick: bool,
    /// Repeats; `None`: as many as intervals need, or half as many if quick.
    pub repeats: Option<u32>,
    /// Where the ends run.
    pub cpus: Option<CpuPair>,
    /// DDS domain.
    pub domain: u32,
    /// Distinguishes this run from others on the same network at the same time.
    pub run_id: u32,
    /// Whether virtual cables between network namespaces are available (root).
    pub has_cables: bool,
    /// The workload of a robot.
    pub robot: Workload,
}

/// Cases under the same conditions, with the engines interleaved.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the setting `series` of its results says.
    pub name: &'static str,
    /// What lies between the ends; `None` = the loopback interface.
    pub path: Option<PathSpec>,
    /// The cases.
    pub plan: Plan,
}

/// The names of all series, in their order.
pub const SERIES: [&str; 13] = [
    "latency",
    "spin",
    "load",
    "rates",
    "streams",
    "best-effort",
    "large",
    "keyed",
    "discovery",
    "robot",
    "best-effort-veth",
    "loss",
    "lossless",
];

/// The engines that the series use. Those that this build lacks are left out of the plans.
pub const WANTED: [&str; 13] = [
    "udp",
    "udp-fresh",
    "weir",
    "cyclonedds",
    "cyclonedds-tuned",
    "fastdds",
    "fastdds-tuned",
    "rustdds-tuned",
    "aeron",
    "aeron-tuned",
    "zenoh-udp",
    "zenoh-tcp",
    "zeromq",
];

/// The plans of all series; those across a cable only where one can be laid.
pub fn series(options: &GoalsOptions) -> Result<Vec<Series>, PlanError> {
    let all = SERIES.iter().map(|&name| {
        let path = path(name);
        Ok(Series { name, plan: plan_of(name, path.as_ref(), options)?, path })
    });
    let all: Vec<Series> = all.collect::<Result<_, PlanError>>()?;
    Ok(all.into_iter().filter(|series| series.path.is_none() || options.has_cables).collect())
}

fn path(name: &str) -> Option<PathSpec> {
    match name {
        "loss" => Some(PathSpec::Veth(VethSpec { loss_e4: 1000, gso: false, ..VethSpec::PLAIN })),
        "best-effort-veth" | "lossless" => Some(PathSpec::Veth(VethSpec { gso: false, ..VethSpec::PLAIN })),
        _ => None,
    }
}

fn plan_of(name: &str, path: Option<&PathSpec>, options: &GoalsOptions) -> Result<Plan, PlanError> {
    let base = base(path, options);
    match name {
        "keyed" => {
            let unkeyed = PlanOptions { sizes: vec![32], ..streams(base, &["weir"]) };
            let keyed = PlanOptions { instances: 100_000, ..unkeyed.clone() };
            Ok(in_turns(plan::plan(&unkeyed)?, plan::plan(&keyed)?))
        }
        "discovery" => {
            let together = PlanOptions {
                sizes: vec![100],
                reliabilities: vec![Reliability::Reliable],
                duration: Duration::from_millis(30),
                warmup: Duration::from_millis(10),
                repeats: base.repeats.max(DISCOVERIES),
                ..latency(base, &["weir"])
            };
            let method = Method { late: LATE, ..together.method.clone() };
            let late = PlanOptions { method, ..together.clone() };
            Ok(in_turns(plan::plan(&together)?, plan::plan(&late)?))
        }
        "robot" => plan::plan(&PlanOptions {
            engines: built(&[&["udp"], &PEERS_AND_OURS[..]].concat()),
            workloads: vec![options.robot.clone()],
            // Slow topics need longer than streams.
            duration: base.duration * 40,
            warmup: base.warmup * 12,
            ..base
        }),
        "loss" => {
            let reliable = vec![Reliability::Reliable];
            let both = PlanOptions { sizes: vec![1024], reliabilities: reliable, ..base };
            let mut plan = plan::plan(&streams(both.clone(), &PEERS_AND_OURS))?;
            plan.steps.extend(plan::plan(&latency(both, &["weir"]))?.steps);
            Ok(plan)
        }
        _ => plan::plan(&simple(name, base)),
    }
}

/// Series of one plan.
fn simple(name: &str, base: PlanOptions) -> PlanOptions {
    let best_effort = vec![Reliability::BestEffort];
    match name {
        "spin" => PlanOptions {
            wait: WaitStrategy::Spin,
            ..latency(base, &["udp", "weir", "aeron", "aeron-tuned"])
        },
        "load" => PlanOptions { sizes: vec![32], rates: percent(&[1, 50]), ..latency(base, &["weir"]) },
        "rates" => PlanOptions {
            sizes: vec![32],
            rates: percent(&[50, 70, 80, 90, 100]),
            reliabilities: best_effort,
            repeats: base.repeats.div_ceil(2),
            ..latency(base, &["weir"])
        },
        "streams" => streams(base, &[&PEERS_AND_OURS[..], &["rustdds-tuned"], &OTHERS].concat()),
        "best-effort" | "best-effort-veth" => PlanOptions {
            sizes: vec![32],
            batches: Some(vec![0]),
            reliabilities: best_effort,
            ..streams(base, &PEERS_AND_OURS)
        },
        "large" => PlanOptions {
            sizes: vec![63_000, 1 << 20, 10 << 20],
            batches: Some(vec![0]),
            loans: true,
            ..streams(base, &[&["udp", "udp-fresh"], &PEERS_AND_OURS[..]].concat())
        },
        "lossless" => PlanOptions {
            sizes: vec![1024],
            reliabilities: vec![Reliability::Reliable],
            ..latency(base, &["weir"])
        },
        _ => latency(base, &[&["udp", "weir", "cyclonedds", "fastdds"], &OTHERS[..]].concat()),
    }
}

const PEERS_AND_OURS: [&str; 5] = ["weir", "cyclonedds", "cyclonedds-tuned", "fastdds", "fastdds-tuned"];

/// Engines that are no DDS.
const OTHERS: [&str; 5] = ["aeron", "aeron-tuned", "zenoh-udp", "zenoh-tcp", "zeromq"];

/// Fewer discoveries say little about the slowest.
const DISCOVERIES: u32 = 10;
/// Long after everything that a participant does when it starts.
const LATE: Duration = Duration::from_millis(1500);

fn latency(base: PlanOptions, engines: &[&str]) -> PlanOptions {
    PlanOptions { tests: vec![Test::Latency], engines: built(engines), ..base }
}

fn streams(base: PlanOptions, engines: &[&str]) -> PlanOptions {
    let reliabilities = vec![Reliability::Reliable];
    // Rates need longer than round trips.
    let (duration, warmup) = (base.duration * 2, base.warmup * 2);
    PlanOptions {
        tests: vec![Test::Throughput],
        engines: built(engines),
        reliabilities,
        duration,
        warmup,
        ..base
    }
}

/// Those of the engines that this build has.
fn built(engines: &[&str]) -> Vec<String> {
    let built = engines.iter().filter(|name| engine::find(name).is_some());
    built.map(|name| (*name).to_owned()).collect()
}

fn percent(shares: &[u32]) -> Vec<Rate> {
    shares.iter().map(|percent| Rate::OfMaximum(percent * 100)).collect()
}

/// The repeats of two plans one after the other, every other one with its cases in the opposite order.
fn in_turns(one: Plan, other: Plan) -> Plan {
    let mut steps = [one.steps, other.steps].concat();
    steps.sort_by_key(|step| step.case.repeat);
    for repeat in steps.chunk_by_mut(|a, b| a.case.repeat == b.case.repeat) {
        if repeat.first().is_some_and(|step| step.case.repeat % 2 == 0) {
            repeat.reverse();
        }
    }
    Plan { steps, until_width: None }
}

fn base(path: Option<&PathSpec>, options: &GoalsOptions) -> PlanOptions {
    let (repeats, duration_ms, warmup_ms) = if options.is_quick { (3, 100, 40) } else { (6, 250, 80) };
    PlanOptions {
        tests: Vec::new(),
        sizes: vec![32, 1024, 8192],
        method: Method { path: path.map(ToString::to_string), ..Method::default() },
        place: Place {
            domain: options.domain,
            run_id: options.run_id,
            cpus: options.cpus,
            ..Place::loopback()
        },
        duration: Duration::from_millis(duration_ms),
        warmup: Duration::from_millis(warmup_ms),
        repeats: options.repeats.unwrap_or(repeats),
        interleave: true,
        ..PlanOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> GoalsOptions {
        GoalsOptions {
            is_quick: false,
            repeats: None,
            cpus: None,
            domain: 0,
            run_id: 0,
            has_cables: true,
            robot: Workload::parse("robot", crate::workload::PAIR).unwrap(),
        }
    }

    fn find(name: &str) -> Series {
        series(&options()).unwrap().into_iter().find(|series| series.name == name).unwrap()
    }

    #[test]
    fn every_series_has_cases_and_cables_are_left_out_where_there_are_none() {
        let all = series(&options()).unwrap();
        assert_eq!(all.len(), SERIES.len());
        assert!(all.iter().all(|series| !series.plan.steps.is_empty()));
        let without = series(&GoalsOptions { has_cables: false, ..options() }).unwrap();
        assert!(without.len() < all.len() && without.iter().all(|series| series.path.is_none()));
    }

    #[test]
    fn keyed_and_unkeyed_streams_take_turns() {
        let plan = find("keyed").plan;
        let keyed: Vec<(u32, bool)> =
            plan.steps.iter().map(|step| (step.case.repeat, step.case.is_keyed())).collect();
        let (no, yes) = (false, true);
        assert_eq!(keyed[..4], [(1, no), (1, no), (1, yes), (1, yes)]);
        assert_eq!(keyed[4..8].iter().map(|it| it.0).collect::<Vec<_>>(), [2; 4]);
        assert_ne!(keyed[4].1, keyed[7].1);
    }

    #[test]
    fn ends_that_come_late_take_turns_with_those_that_do_not() {
        let plan = find("discovery").plan;
        let late = plan.steps.iter().filter(|step| step.case.method.late == LATE).count();
        assert_eq!((late, plan.steps.len()), (10, 20));
    }

    #[test]
    fn large_samples_have_raw_udp_with_and_without_the_cache_beside_them() {
        let engines = |size_bytes| {
            let plan = find("large").plan;
            let of_size =
                plan.steps.iter().filter(|it| it.case.size_bytes == size_bytes && it.case.repeat == 1);
            let measured = of_size.filter(|it| it.action == plan::Action::Measure);
            measured.map(|it| (it.case.engine.clone(), it.case.loans)).collect::<Vec<_>>()
        };
        let of = |name: &str, loans| (name.to_owned(), loans);
        let ours = [of("weir", false), of("weir", true)];
        assert_eq!(engines(63_000), [&[of("udp", false), of("udp-fresh", false)], &ours[..]].concat());
        assert_eq!(engines(1 << 20), ours);
    }

    #[test]
    fn a_robot_runs_long_enough_for_slow_topics() {
        let plan = find("robot").plan;
        assert_eq!(plan.steps.len(), 2 * 6);
        let engines: Vec<&str> = plan.steps[..2].iter().map(|step| step.case.engine.as_str()).collect();
        assert_eq!(engines, ["udp", "weir"]);
        let case = &plan.steps[0].case;
        assert_eq!((case.test, case.workload.as_ref().unwrap().name.as_str()), (Test::Workload, "robot"));
        assert_eq!(case.duration, Duration::from_secs(10));
    }

    #[test]
    fn every_cable_cuts_segmented_sends() {
        for path in series(&options()).unwrap().into_iter().filter_map(|series| series.path) {
            assert!(path.to_string().ends_with("gso=off"), "{path}");
        }
    }

    #[test]
    fn losses_are_single_datagrams() {
        let path = find("loss").path.unwrap();
        assert_eq!(path.to_string(), "veth,mtu=1500,loss=10%,gso=off");
        assert!(find("loss").plan.steps.iter().any(|step| step.case.test == Test::Latency));
    }

    #[test]
    fn quick_is_less_than_half() {
        let time = |options: &GoalsOptions| -> Duration {
            series(options).unwrap().iter().map(|series| series.plan.duration()).sum()
        };
        assert!(time(&GoalsOptions { is_quick: true, ..options() }) < time(&options()) / 2);
    }
}
