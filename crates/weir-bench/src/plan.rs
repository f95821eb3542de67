//! From what the user asked for to the list of cases, in the order in which they run.
//!
//! For each repeat, test and size the engines follow each other directly, the floor first: what is
//! compared is measured within seconds, so that a machine that drifts within minutes does not
//! decide the ratio.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use thiserror::Error;
use weir_results::{Reliability, Test, WaitStrategy};

use crate::case::{CaseSpec, CpuPair};
use crate::endpoint::{Engine, ReliabilitySupport};
use crate::engine;
use crate::outside::OutsideTool;
use crate::payload::HEADER_BYTES;

/// What to measure.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// Names of engines.
    pub engines: Vec<String>,
    /// Tests.
    pub tests: Vec<Test>,
    /// Sizes, bytes.
    pub sizes: Vec<u64>,
    /// Reliabilities, for engines that know any.
    pub reliabilities: Vec<Reliability>,
    /// Instances; 0 = unkeyed.
    pub instances: u32,
    /// How receivers wait.
    pub wait: WaitStrategy,
    /// Where the ends run.
    pub cpus: Option<CpuPair>,
    /// Sets this run apart from others on the same network at the same time.
    pub run_id: u32,
    /// How long each case is measured.
    pub duration: Duration,
    /// How long each case runs before.
    pub warmup: Duration,
    /// How often everything is measured.
    pub repeats: u32,
    /// Whether content is checked.
    pub verify: bool,
    /// DDS domain.
    pub domain: u32,
    /// Network interface.
    pub interface: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Independent programs to run in between.
    pub outside: Vec<OutsideTool>,
}

/// The cases of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In the order in which they run.
    pub steps: Vec<Step>,
}

/// One case, and what to do with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The case.
    pub case: CaseSpec,
    /// How its figures come about.
    pub action: Action,
}

/// How the figures of a case come about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// An engine of this program measures.
    Measure,
    /// An independent program measures.
    RunOutside(OutsideTool),
    /// Nobody can: the engine lacks what this says.
    NotSupported(String),
}

/// Why a plan makes no sense. All texts name the option.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// No such engine.
    #[error("`{name}` is not an engine of this program; --engines takes {known}")]
    UnknownEngine {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Less than the fields of a sample take.
    #[error(
        "a sample of {0} bytes is impossible: the smallest has {HEADER_BYTES} bytes \
         (--sizes counts the whole sample)"
    )]
    TooSmall(u64),
    /// More than any chosen engine carries.
    #[error(
        "a sample of {size} bytes is impossible: the most that {engine} carries is {max} bytes (--sizes)"
    )]
    TooLarge {
        /// What was asked for.
        size: u64,
        /// The chosen engine that carries most.
        engine: String,
        /// How much that is.
        max: usize,
    },
    /// An empty list.
    #[error("{0} needs at least one value")]
    Empty(&'static str),
    /// The same value twice.
    #[error("{option} names {value} twice")]
    Twice {
        /// The option.
        option: &'static str,
        /// The value.
        value: String,
    },
    /// A time or number of zero.
    #[error("{0} must be more than zero")]
    Zero(&'static str),
}

/// Makes the plan.
///
/// # Errors
/// When something was asked for that no case can do.
pub fn plan(options: &PlanOptions) -> Result<Plan, PlanError> {
    let engines = find_engines(&options.engines)?;
    check_options(options)?;
    let sizes = check_sizes(&options.sizes, &engines)?;
    let mut steps = Vec::new();
    for repeat in 1..=options.repeats {
        for &test in &options.tests {
            for &size_bytes in &sizes {
                let base = base_case(options, test, size_bytes, repeat);
                push_size(options, &engines, &base, &mut steps);
            }
        }
    }
    Ok(Plan { steps })
}

impl Plan {
    /// About how long it takes, without the seconds in which processes start and queues drain.
    #[must_use]
    pub fn duration(&self) -> Duration {
        let measured = self.steps.iter().filter(|step| !matches!(step.action, Action::NotSupported(_)));
        measured.map(|step| step.case.warmup + step.case.duration).sum()
    }
}

/// Everything that is measured at one size: floors, their independent checks, then the engines by
/// reliability.
fn push_size(options: &PlanOptions, engines: &[&'static dyn Engine], base: &CaseSpec, steps: &mut Vec<Step>) {
    let is_floor = |engine: &&&dyn Engine| engine.capabilities().reliability == ReliabilitySupport::None;
    for engine in engines.iter().filter(is_floor) {
        // The floor knows neither reliability nor instances: it is measured once and stands under all groups.
        let case = CaseSpec { engine: engine.name().to_owned(), instances: 0, ..base.clone() };
        steps.push(Step { action: action(*engine, &case), case });
    }
    for tool in options.outside.iter().filter(|tool| tool.test() == base.test) {
        let case = CaseSpec { engine: tool.name().to_owned(), instances: 0, ..base.clone() };
        let action = match tool.size_bytes_max() {
            max if case.size_bytes > max => Action::NotSupported(format!("samples of more than {max} bytes")),
            _ => Action::RunOutside(*tool),
        };
        steps.push(Step { case, action });
    }
    for &reliability in &options.reliabilities {
        for engine in engines.iter().filter(|engine| !is_floor(engine)) {
            let case = CaseSpec { engine: engine.name().to_owned(), reliability, ..base.clone() };
            steps.push(Step { action: action(*engine, &case), case });
        }
    }
}

fn action(engine: &dyn Engine, case: &CaseSpec) -> Action {
    let can = engine.capabilities();
    let has_test = match case.test {
        Test::Latency => can.latency,
        Test::Throughput => can.throughput,
    };
    let lacking = if !has_test {
        format!("{} has no {} test", case.engine, case.test)
    } else if !can.reliability.supports(case.reliability) {
        format!("{} knows no {} delivery", case.engine, case.reliability)
    } else if case.is_keyed() && !can.keyed {
        format!("{} knows no instances", case.engine)
    } else if case.size_bytes > can.size_bytes_max {
        format!("{} carries at most {} bytes", case.engine, can.size_bytes_max)
    } else {
        return Action::Measure;
    };
    Action::NotSupported(lacking)
}

fn base_case(options: &PlanOptions, test: Test, size_bytes: usize, repeat: u32) -> CaseSpec {
    CaseSpec {
        engine: String::new(),
        test,
        reliability: Reliability::BestEffort,
        size_bytes,
        instances: options.instances,
        batch_bytes: 0,
        wait: options.wait,
        repeat,
        duration: options.duration,
        warmup: options.warmup,
        verify: options.verify,
        domain: options.domain,
        run_id: options.run_id,
        interface: options.interface.clone(),
        address: options.address,
        socket_buffer_bytes: CaseSpec::SOCKET_BUFFER_BYTES,
        cpus: options.cpus,
    }
}

/// In the order of the registry, whatever order they were asked for in: the floor comes first.
fn find_engines(names: &[String]) -> Result<Vec<&'static dyn Engine>, PlanError> {
    check_list("--engines", names)?;
    let unknown = names.iter().find(|name| engine::find(name).is_none());
    if let Some(name) = unknown {
        let known: Vec<&str> = engine::registry()
            .iter()
            .filter(|engine| engine.about().is_some())
            .map(|engine| engine.name())
            .collect();
        return Err(PlanError::UnknownEngine { name: name.clone(), known: known.join(", ") });
    }
    let is_chosen = |engine: &&'static dyn Engine| names.iter().any(|name| name == engine.name());
    Ok(engine::registry().iter().copied().filter(is_chosen).collect())
}

fn check_options(options: &PlanOptions) -> Result<(), PlanError> {
    check_list("--tests", &options.tests)?;
    check_list("--sizes", &options.sizes)?;
    check_list("--reliability", &options.reliabilities)?;
    if options.duration.is_zero() {
        return Err(PlanError::Zero("--duration"));
    }
    if options.repeats == 0 {
        return Err(PlanError::Zero("--repeat"));
    }
    Ok(())
}

fn check_sizes(sizes: &[u64], engines: &[&'static dyn Engine]) -> Result<Vec<usize>, PlanError> {
    let most = engines.iter().max_by_key(|engine| engine.capabilities().size_bytes_max);
    let (engine, max) =
        most.map_or(("nothing", 0), |engine| (engine.name(), engine.capabilities().size_bytes_max));
    let check = |&size: &u64| match usize::try_from(size) {
        Ok(bytes) if bytes < HEADER_BYTES => Err(PlanError::TooSmall(size)),
        Ok(bytes) if bytes <= max => Ok(bytes),
        _ => Err(PlanError::TooLarge { size, engine: engine.to_owned(), max }),
    };
    sizes.iter().map(check).collect()
}

fn check_list<T: Ord + ToString>(option: &'static str, values: &[T]) -> Result<(), PlanError> {
    if values.is_empty() {
        return Err(PlanError::Empty(option));
    }
    let mut seen = BTreeSet::new();
    match values.iter().find(|value| !seen.insert(*value)) {
        Some(value) => Err(PlanError::Twice { option, value: value.to_string() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(engines: &[&str]) -> PlanOptions {
        PlanOptions {
            engines: engines.iter().map(ToString::to_string).collect(),
            tests: vec![Test::Latency, Test::Throughput],
            sizes: vec![32, 1024],
            reliabilities: vec![Reliability::BestEffort, Reliability::Reliable],
            instances: 0,
            wait: WaitStrategy::Block,
            cpus: None,
            duration: Duration::from_secs(2),
            warmup: Duration::from_millis(300),
            repeats: 1,
            verify: false,
            domain: 0,
            run_id: 0,
            interface: "lo".to_owned(),
            address: Ipv4Addr::LOCALHOST,
            outside: Vec::new(),
        }
    }

    fn lines(options: &PlanOptions) -> Vec<String> {
        let line = |step: &Step| {
            let CaseSpec { engine, test, reliability, size_bytes, repeat, .. } = &step.case;
            let mark = if step.action == Action::Measure { "" } else { " -" };
            format!("{repeat} {test} {size_bytes} {engine} {reliability}{mark}")
        };
        plan(options).unwrap().steps.iter().map(line).collect()
    }

    #[test]
    fn what_is_compared_is_measured_side_by_side_with_the_floor_first() {
        let options = PlanOptions { sizes: vec![32], ..options(&["mock", "udp-gso", "udp"]) };
        let expected = [
            "1 latency 32 udp best-effort",
            "1 latency 32 udp-gso best-effort -",
            "1 latency 32 mock best-effort",
            "1 latency 32 mock reliable",
            "1 throughput 32 udp best-effort",
            "1 throughput 32 udp-gso best-effort",
            "1 throughput 32 mock best-effort",
            "1 throughput 32 mock reliable",
        ];
        assert_eq!(lines(&options), expected);
    }

    #[test]
    fn repeats_go_round_everything() {
        let options = PlanOptions { repeats: 2, tests: vec![Test::Latency], ..options(&["udp"]) };
        let expected = ["1 latency 32", "1 latency 1024", "2 latency 32", "2 latency 1024"];
        assert_eq!(lines(&options), expected.map(|line| format!("{line} udp best-effort")));
    }

    #[test]
    fn an_independent_check_stands_beside_the_floor_of_its_test() {
        let outside = vec![OutsideTool::Sockperf, OutsideTool::Iperf3];
        let options = PlanOptions { sizes: vec![32], outside, ..options(&["udp", "mock"]) };
        let names: Vec<String> =
            plan(&options).unwrap().steps.into_iter().map(|step| step.case.engine).collect();
        assert_eq!(names, ["udp", "sockperf", "mock", "mock", "udp", "iperf3", "mock", "mock"]);
    }

    #[test]
    fn what_one_engine_cannot_do_is_a_case_that_says_so() {
        let options =
            PlanOptions { sizes: vec![100_000], tests: vec![Test::Throughput], ..options(&["udp", "mock"]) };
        let steps = plan(&options).unwrap().steps;
        assert_eq!(steps[0].action, Action::NotSupported("udp carries at most 65507 bytes".to_owned()));
        assert_eq!(steps[1].action, Action::Measure);
    }

    #[test]
    fn the_floor_is_unkeyed_whatever_is_asked_of_the_engines() {
        let options = PlanOptions { sizes: vec![32], instances: 10, ..options(&["udp", "mock"]) };
        let instances: Vec<u32> =
            plan(&options).unwrap().steps.iter().map(|step| step.case.instances).collect();
        assert_eq!(instances, [0, 10, 10, 0, 10, 10]);
    }

    #[test]
    fn impossible_wishes_are_refused_with_the_option_to_change() {
        let check = |change: &dyn Fn(&mut PlanOptions), expected: &str| {
            let mut options = options(&["udp", "mock"]);
            change(&mut options);
            let error = plan(&options).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(
            &|o| o.sizes = vec![32, 27],
            "a sample of 27 bytes is impossible: the smallest has 28 bytes (--sizes",
        );
        check(&|o| o.sizes = vec![(1 << 20) + 1], "the most that mock carries is 1048576 bytes (--sizes)");
        check(&|o| o.sizes = vec![], "--sizes needs at least one value");
        check(&|o| o.sizes = vec![32, 32], "--sizes names 32 twice");
        check(
            &|o| o.engines = vec!["quic".into()],
            "`quic` is not an engine of this program; --engines takes udp",
        );
        check(&|o| o.engines = vec![], "--engines needs at least one value");
        check(&|o| o.tests = vec![], "--tests needs at least one value");
        check(&|o| o.reliabilities = vec![], "--reliability needs at least one value");
        check(&|o| o.duration = Duration::ZERO, "--duration must be more than zero");
        check(&|o| o.repeats = 0, "--repeat must be more than zero");
    }

    #[test]
    fn hidden_engines_are_not_advertised() {
        let error = plan(&options(&["quic"])).unwrap_err().to_string();
        assert!(!error.contains("mock"), "{error}");
    }
}
