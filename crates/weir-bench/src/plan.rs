//! From what the user asked for to the list of cases, in the order in which they run.
//!
//! For each repeat, test and size the engines follow each other directly, the floor first: what is
//! compared is measured within seconds, so that a machine that drifts within minutes does not
//! decide the ratio. Interleaved, the repeats of a point follow each other as well, every other one with
//! the engines in the opposite order.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use thiserror::Error;
use weir_results::{Reliability, Test, WaitStrategy};

use crate::case::{CaseSpec, CpuPair, Method};
use crate::endpoint::{Engine, ReliabilitySupport};
use crate::engine;
use crate::open_loop::Rate;
use crate::outside::OutsideTool;
use crate::payload::HEADER_BYTES;
use crate::tuning::EngineSettings;

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
    /// Most bytes of samples in a message, each measured where at least two samples fit; 0 = no
    /// batching. `None` = not asked for: [`DEFAULT_BATCHES`].
    pub batches: Option<Vec<u64>>,
    /// Publishers of each throughput case.
    pub publishers: u32,
    /// Subscribers of each throughput case.
    pub subscribers: u32,
    /// Whether samples travel by multicast.
    pub multicast: bool,
    /// Whether engines that have loans are measured with them, too.
    pub loans: bool,
    /// How receivers wait.
    pub wait: WaitStrategy,
    /// Rates of the open loop, which then takes the ping-pong's place; empty = a ping-pong.
    pub rates: Vec<Rate>,
    /// How everything is measured, beyond the usual.
    pub method: Method,
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
    /// Whether the repeats of a point follow each other, with the engines in turns; otherwise repeats go
    /// round everything.
    pub interleave: bool,
    /// Socket buffers to ask for, bytes, in each direction.
    pub socket_buffer_bytes: usize,
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
    /// What the user chose for the settings of engines.
    pub settings: EngineSettings,
}

/// Without and with the batches that are usual elsewhere, bytes.
pub const DEFAULT_BATCHES: [u64; 2] = [0, 8192];

/// Ends of a kind that a case may have: each is a process.
pub const ENDS_MAX: u32 = 64;

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
    /// An engine that this build has not got.
    #[error("{name} is not built in: {advice}")]
    NotBuilt {
        /// What was asked for.
        name: String,
        /// How to get it.
        advice: String,
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
    /// An option that means nothing without a throughput test.
    #[error("{0} is for the throughput test, which --tests leaves out")]
    ThroughputOnly(&'static str),
    /// An option that means nothing without a latency test.
    #[error("{0} is for the latency test, which --tests leaves out")]
    LatencyOnly(&'static str),
    /// More processes than make sense.
    #[error("{0} takes at most {ENDS_MAX}: each is a process")]
    TooMany(&'static str),
    /// A batch that would hold less than two samples.
    #[error("a batch of {0} bytes (--batch) holds less than two samples of the smallest size (--sizes)")]
    BatchTooSmall(u64),
    /// A batch that nobody could hold.
    #[error("a batch of {0} bytes (--batch) is more than 1 GiB")]
    BatchTooLarge(u64),
    /// The engine of a single case cannot do it.
    #[error("{0}")]
    Lacking(String),
    /// A time or number of zero.
    #[error("{0} must be more than zero")]
    Zero(&'static str),
}

/// The engine of a single case, when it can do what the case asks.
///
/// # Errors
/// When no case can be like this, or its engine lacks something.
pub fn check_case(case: &CaseSpec) -> Result<&'static dyn Engine, PlanError> {
    let engines = find_engines(std::slice::from_ref(&case.engine))?;
    let &engine = engines.first().ok_or(PlanError::Empty("--engine"))?;
    if case.size_bytes < HEADER_BYTES {
        return Err(PlanError::TooSmall(case.size_bytes as u64));
    }
    for (option, count) in [("--publishers", case.publishers), ("--subscribers", case.subscribers)] {
        match count {
            0 => return Err(PlanError::Zero(option)),
            1..=ENDS_MAX => {}
            _ => return Err(PlanError::TooMany(option)),
        }
    }
    if case.batch_bytes > 0 && (case.batch_bytes as usize) < batch_bytes_min(case.size_bytes) {
        return Err(PlanError::BatchTooSmall(case.batch_bytes.into()));
    }
    match action(engine, case) {
        Action::NotSupported(lacking) => Err(PlanError::Lacking(lacking)),
        Action::Measure | Action::RunOutside(_) => Ok(engine),
    }
}

/// Makes the plan.
///
/// # Errors
/// When something was asked for that no case can do.
pub fn plan(options: &PlanOptions) -> Result<Plan, PlanError> {
    let engines = find_engines(&options.engines)?;
    check_options(options)?;
    let sizes = check_sizes(&options.sizes, &engines)?;
    let batches = check_batches(options, &sizes)?;
    let mut steps = Vec::new();
    for (test, size_bytes, repeat) in rounds(options, &sizes) {
        let base = base_case(options, test, size_bytes, repeat);
        let from = steps.len();
        let batches = if options.tests.contains(&test) { &batches[..] } else { &[0] };
        push_size(options, &engines, batches, &base, &mut steps);
        if test == Test::Latency && !options.rates.is_empty() {
            let once = steps.split_off(from);
            steps.extend(once.into_iter().flat_map(|step| at_rates(&step, &options.rates)));
        }
        if options.interleave && repeat % 2 == 0 {
            // A B, B A, A B...: whatever the first of a pair does to the second, both suffer it.
            steps[from..].reverse();
        }
    }
    for step in &mut steps {
        if let Some(engine) = engine::find(&step.case.engine) {
            step.case.settings = options.settings.effective(engine);
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

/// A step of the open loop, once for each rate; one that nobody can take once.
fn at_rates(step: &Step, rates: &[Rate]) -> Vec<Step> {
    let at = |rate: &Rate| {
        let mut step = step.clone();
        step.case.method.rate = Some(*rate);
        step
    };
    let count = if step.action == Action::Measure { rates.len() } else { 1 };
    rates.iter().take(count).map(at).collect()
}

/// The tests in their order: what a share of the maximum is a share of has to be known before.
fn tests(options: &PlanOptions) -> Vec<Test> {
    if options.rates.iter().any(|rate| matches!(rate, Rate::OfMaximum(_))) {
        return vec![Test::Throughput, Test::Latency];
    }
    options.tests.clone()
}

/// What is measured when, apart from the engines: test, size and repeat.
fn rounds(options: &PlanOptions, sizes: &[usize]) -> Vec<(Test, usize, u32)> {
    let points: Vec<(Test, usize)> =
        tests(options).into_iter().flat_map(|test| sizes.iter().map(move |&size| (test, size))).collect();
    let points = points.iter().copied();
    if options.interleave {
        return points.flat_map(|(test, size)| (1..=options.repeats).map(move |n| (test, size, n))).collect();
    }
    (1..=options.repeats).flat_map(|n| points.clone().map(move |(test, size)| (test, size, n))).collect()
}

/// Everything that is measured at one size: floors, their independent checks, then the engines by
/// reliability.
fn push_size(
    options: &PlanOptions,
    engines: &[&'static dyn Engine],
    batches: &[u32],
    base: &CaseSpec,
    steps: &mut Vec<Step>,
) {
    let is_floor = |engine: &&&dyn Engine| engine.capabilities().reliability == ReliabilitySupport::None;
    for engine in engines.iter().filter(is_floor) {
        // The floor knows neither reliability, instances, batches nor multicast: it is measured once
        // and stands under all groups.
        let case =
            CaseSpec { engine: engine.name().to_owned(), instances: 0, multicast: false, ..base.clone() };
        steps.push(Step { action: action(*engine, &case), case });
    }
    for tool in options.outside.iter().filter(|tool| tool.test() == base.test) {
        let case = CaseSpec {
            engine: tool.name().to_owned(),
            instances: 0,
            publishers: 1,
            subscribers: 1,
            multicast: false,
            ..base.clone()
        };
        let action = match tool.size_bytes_max() {
            max if case.size_bytes > max => Action::NotSupported(format!("samples of more than {max} bytes")),
            _ => Action::RunOutside(*tool),
        };
        steps.push(Step { case, action });
    }
    let batches = if base.test == Test::Throughput { batches } else { &[0] };
    let fits = |bytes: &&u32| **bytes == 0 || **bytes as usize >= batch_bytes_min(base.size_bytes);
    for &reliability in &options.reliabilities {
        for &batch_bytes in batches.iter().filter(fits) {
            for engine in engines.iter().filter(|engine| !is_floor(engine)) {
                // What cannot gather samples is measured without, and not twice.
                let is_other = batch_bytes > 0 && !engine.capabilities().batching;
                if is_other && batches.contains(&0) {
                    continue;
                }
                let case =
                    CaseSpec { engine: engine.name().to_owned(), reliability, batch_bytes, ..base.clone() };
                steps.push(Step { action: action(*engine, &case), case: case.clone() });
                if options.loans && engine.capabilities().loans {
                    let case = CaseSpec { loans: true, ..case };
                    steps.push(Step { action: action(*engine, &case), case });
                }
            }
        }
    }
}

fn action(engine: &dyn Engine, case: &CaseSpec) -> Action {
    let can = engine.capabilities();
    let has_test = match case.test {
        Test::Latency if case.method.rate.is_some() => can.throughput,
        Test::Latency => can.latency,
        Test::Throughput => can.throughput,
    };
    let lacking = if !has_test {
        format!("{} has no {} test", case.engine, case.test)
    } else if !can.reliability.supports(case.reliability) {
        format!("{} knows no {} delivery", case.engine, case.reliability)
    } else if case.is_keyed() && !can.keyed {
        format!("{} knows no instances", case.engine)
    } else if case.batch_bytes > 0 && !can.batching {
        format!("{} has no batching", case.engine)
    } else if case.publishers.max(case.subscribers) > 1 && !can.many {
        format!("{} joins one publisher with one subscriber", case.engine)
    } else if case.multicast && !can.multicast {
        format!("{} has no multicast", case.engine)
    } else if case.wait != WaitStrategy::Block && !can.spinning {
        format!("{} receives on threads of its own, which block: --wait cannot make them spin", case.engine)
    } else if case.loans && !can.loans {
        format!("{} has no loans", case.engine)
    } else if case.method.breakdown && !can.breakdown {
        format!(
            "{} cannot be looked into: it does not say when samples pass from stage to stage",
            case.engine
        )
    } else if case.size_bytes > can.size_bytes_max {
        format!("{} carries at most {} bytes", case.engine, can.size_bytes_max)
    } else {
        return Action::Measure;
    };
    Action::NotSupported(lacking)
}

fn base_case(options: &PlanOptions, test: Test, size_bytes: usize, repeat: u32) -> CaseSpec {
    // A ping-pong is between two.
    let ends = |count| if test == Test::Throughput { count } else { 1 };
    CaseSpec {
        engine: String::new(),
        test,
        reliability: Reliability::BestEffort,
        size_bytes,
        instances: options.instances,
        batch_bytes: 0,
        publishers: ends(options.publishers),
        subscribers: ends(options.subscribers),
        entity_id: 0,
        multicast: options.multicast,
        loans: false,
        wait: options.wait,
        repeat,
        duration: options.duration,
        warmup: options.warmup,
        verify: options.verify,
        domain: options.domain,
        run_id: options.run_id,
        interface: options.interface.clone(),
        address: options.address,
        port: None,
        socket_buffer_bytes: options.socket_buffer_bytes,
        cpus: options.cpus,
        method: Method {
            rate: options.rates.first().copied().filter(|_| test == Test::Latency),
            ..options.method.clone()
        },
        settings: BTreeMap::new(),
    }
}

/// In the order of the registry, whatever order they were asked for in: the floor comes first.
fn find_engines(names: &[String]) -> Result<Vec<&'static dyn Engine>, PlanError> {
    check_list("--engines", names)?;
    let unknown = names.iter().find(|name| engine::find(name).is_none());
    if let Some(name) = unknown {
        if let Some(known) = weir_peer_api::known::find(name) {
            return Err(PlanError::NotBuilt { name: name.clone(), advice: known.advice() });
        }
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
    check_rates(options)?;
    check_breakdown(options)?;
    for (option, count) in [("--publishers", options.publishers), ("--subscribers", options.subscribers)] {
        match count {
            0 => return Err(PlanError::Zero(option)),
            1 => {}
            2..=ENDS_MAX if has_throughput(options) => {}
            2..=ENDS_MAX => return Err(PlanError::ThroughputOnly(option)),
            _ => return Err(PlanError::TooMany(option)),
        }
    }
    Ok(())
}

fn check_breakdown(options: &PlanOptions) -> Result<(), PlanError> {
    if !options.method.breakdown {
        return Ok(());
    }
    let text = if options.tests.contains(&Test::Throughput) {
        "--breakdown follows one sample at a time on its way, which is the latency test: leave throughput out of --tests"
    } else if !options.rates.is_empty() {
        "--breakdown follows one sample at a time on its way, which --rate does not wait for: leave one of them out"
    } else if options.method.count_system_calls {
        "--resources counts system calls, which makes each of them slower and --breakdown wrong: leave one of them out"
    } else if !options.outside.is_empty() {
        "--outside-checks are programs that --breakdown cannot look into: leave one of them out"
    } else {
        return Ok(());
    };
    Err(PlanError::Lacking(text.to_owned()))
}

fn check_rates(options: &PlanOptions) -> Result<(), PlanError> {
    if options.rates.is_empty() {
        return Ok(());
    }
    check_list("--rate", &options.rates)?;
    if !options.tests.contains(&Test::Latency) {
        return Err(PlanError::LatencyOnly("--rate"));
    }
    if !options.outside.is_empty() {
        return Err(PlanError::Lacking("--outside-checks have no --rate: leave one of them out".to_owned()));
    }
    let is_share = options.rates.iter().any(|rate| matches!(rate, Rate::OfMaximum(_)));
    if is_share && options.batches.as_ref().is_some_and(|batches| !batches.contains(&0)) {
        let text = "a --rate in percent is of the maximum without batches: add 0 to --batch";
        return Err(PlanError::Lacking(text.to_owned()));
    }
    Ok(())
}

/// The smallest message that holds two samples: each has the header of its submessage and an encapsulation
/// before it, and the message a header and a time stamp.
fn batch_bytes_min(size_bytes: usize) -> usize {
    32 + 2 * (28 + size_bytes)
}

fn has_throughput(options: &PlanOptions) -> bool {
    options.tests.contains(&Test::Throughput)
}

/// The batches of throughput cases, 0 for those of latency.
fn check_batches(options: &PlanOptions, sizes: &[usize]) -> Result<Vec<u32>, PlanError> {
    let Some(batches) = &options.batches else {
        return Ok(DEFAULT_BATCHES.iter().filter_map(|&bytes| u32::try_from(bytes).ok()).collect());
    };
    check_list("--batch", batches)?;
    if !has_throughput(options) {
        return Err(PlanError::ThroughputOnly("--batch"));
    }
    let smallest = sizes.iter().copied().min().unwrap_or(HEADER_BYTES);
    let check = |&bytes: &u64| match u32::try_from(bytes) {
        Ok(0) => Ok(0),
        Ok(small) if (small as usize) < batch_bytes_min(smallest) => {
            Err(PlanError::BatchTooSmall(small.into()))
        }
        Ok(fitting) if fitting as usize <= CaseSpec::SIZE_BYTES_MAX => Ok(fitting),
        _ => Err(PlanError::BatchTooLarge(bytes)),
    };
    batches.iter().map(check).collect()
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
    use weir_peer_api::{Abilities, Calls, Peer, PeerError};

    use super::*;

    fn options(engines: &[&str]) -> PlanOptions {
        PlanOptions {
            engines: engines.iter().map(ToString::to_string).collect(),
            tests: vec![Test::Latency, Test::Throughput],
            sizes: vec![32, 1024],
            reliabilities: vec![Reliability::BestEffort, Reliability::Reliable],
            instances: 0,
            batches: Some(vec![0]),
            publishers: 1,
            subscribers: 1,
            multicast: false,
            loans: false,
            wait: WaitStrategy::Block,
            rates: Vec::new(),
            method: Method::default(),
            cpus: None,
            duration: Duration::from_secs(2),
            warmup: Duration::from_millis(300),
            repeats: 1,
            interleave: false,
            socket_buffer_bytes: CaseSpec::SOCKET_BUFFER_BYTES,
            verify: false,
            domain: 0,
            run_id: 0,
            interface: "lo".to_owned(),
            address: Ipv4Addr::LOCALHOST,
            outside: Vec::new(),
            settings: EngineSettings::default(),
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
    fn a_breakdown_is_of_the_latency_test_and_of_engines_that_say_when_samples_are_where() {
        let method = Method { breakdown: true, ..Method::default() };
        let tests = vec![Test::Latency];
        let of_latency =
            PlanOptions { method, tests, sizes: vec![32], batches: None, ..options(&["udp", "mock"]) };
        let expected = [
            "1 latency 32 udp best-effort",
            "1 latency 32 mock best-effort -",
            "1 latency 32 mock reliable -",
        ];
        assert_eq!(lines(&of_latency), expected);
        let refused = |options: PlanOptions| plan(&options).unwrap_err().to_string();
        let of_both = PlanOptions { tests: vec![Test::Latency, Test::Throughput], ..of_latency.clone() };
        assert!(refused(of_both).contains("leave throughput out of --tests"));
        let rates = vec![Rate::PerSecond(1_000)];
        assert!(refused(PlanOptions { rates, ..of_latency.clone() }).contains("--rate"));
        let method = Method { count_system_calls: true, ..of_latency.method.clone() };
        assert!(refused(PlanOptions { method, ..of_latency }).contains("--resources"));
    }

    #[test]
    fn repeats_go_round_everything() {
        let options =
            PlanOptions { repeats: 2, tests: vec![Test::Latency], batches: None, ..options(&["udp"]) };
        let expected = ["1 latency 32", "1 latency 1024", "2 latency 32", "2 latency 1024"];
        assert_eq!(lines(&options), expected.map(|line| format!("{line} udp best-effort")));
    }

    #[test]
    fn interleaved_engines_take_turns_point_by_point() {
        let options = PlanOptions {
            repeats: 3,
            interleave: true,
            tests: vec![Test::Latency],
            batches: None,
            reliabilities: vec![Reliability::Reliable],
            ..options(&["udp", "mock"])
        };
        let of = |engine: &str, repeat: u32, size: u64| match engine {
            "udp" => format!("{repeat} latency {size} udp best-effort"),
            _ => format!("{repeat} latency {size} mock reliable"),
        };
        let expected: Vec<String> = [32, 1024]
            .into_iter()
            .flat_map(|size| {
                [("udp", 1), ("mock", 1), ("mock", 2), ("udp", 2), ("udp", 3), ("mock", 3)]
                    .map(|(engine, repeat)| of(engine, repeat, size))
            })
            .collect();
        assert_eq!(lines(&options), expected);
    }

    #[test]
    fn shares_of_the_maximum_come_after_it_and_rates_take_the_place_of_the_ping_pong() {
        let plan_of = |rates: &[Rate], tests: &[Test]| {
            let options = PlanOptions {
                sizes: vec![32],
                rates: rates.to_vec(),
                tests: tests.to_vec(),
                batches: None,
                reliabilities: vec![Reliability::Reliable],
                ..options(&["udp-gso", "mock"])
            };
            let of = |step: Step| {
                let rate = step.case.method.rate.map_or_else(|| "max".to_owned(), |rate| rate.to_string());
                format!("{} {} {rate}", step.case.engine, step.case.test)
            };
            plan(&options).unwrap().steps.into_iter().map(of).collect::<Vec<_>>()
        };
        let shares = [Rate::OfMaximum(1000), Rate::OfMaximum(9000)];
        assert_eq!(
            plan_of(&shares, &[Test::Latency]),
            [
                "udp-gso throughput max",
                "mock throughput max",
                "udp-gso latency 10%",
                "udp-gso latency 90%",
                "mock latency 10%",
                "mock latency 90%"
            ]
        );
        assert_eq!(
            plan_of(&[Rate::PerSecond(100)], &[Test::Latency]),
            ["udp-gso latency 100/s", "mock latency 100/s"]
        );
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
    fn what_blocks_in_any_case_is_not_measured_as_spinning() {
        let of = |spinning, wait| {
            let case = CaseSpec {
                engine: "peer".to_owned(),
                wait,
                reliability: Reliability::Reliable,
                ..base_case(&options(&["peer"]), Test::Latency, 32, 1)
            };
            let peer = Peer {
                name: "peer",
                about: "",
                settings: &[],
                abilities: Abilities { spinning, ..Abilities::DDS },
                calls: Calls { open: |_, _| Err(PeerError::Engine(String::new())), version: String::new },
            };
            action(&peer, &case) == Action::Measure
        };
        let spin_then_block = WaitStrategy::SpinThenBlock { spin_us: 10 };
        for (spinning, expected) in [(false, [true, false, false]), (true, [true, true, true])] {
            let waits = [WaitStrategy::Block, WaitStrategy::Spin, spin_then_block];
            assert_eq!(waits.map(|wait| of(spinning, wait)), expected, "spinning: {spinning}");
        }
    }

    #[test]
    fn the_floor_is_unkeyed_whatever_is_asked_of_the_engines() {
        let options = PlanOptions { sizes: vec![32], instances: 10, ..options(&["udp", "mock"]) };
        let instances: Vec<u32> =
            plan(&options).unwrap().steps.iter().map(|step| step.case.instances).collect();
        assert_eq!(instances, [0, 10, 10, 0, 10, 10]);
    }

    #[test]
    fn batches_are_measured_where_two_samples_fit_and_by_who_has_them() {
        let of = |names: &[&str], batches: Option<Vec<u64>>| {
            let options = PlanOptions {
                sizes: vec![4052, 4053],
                reliabilities: vec![Reliability::Reliable],
                batches,
                ..options(names)
            };
            let steps = plan(&options).unwrap().steps;
            let line = |step: &Step| {
                let CaseSpec { engine, test, size_bytes, batch_bytes, .. } = &step.case;
                let mark = if step.action == Action::Measure { "" } else { " -" };
                format!("{test} {size_bytes} {engine} {batch_bytes}{mark}")
            };
            steps.iter().map(line).filter(|line| !line.starts_with("latency")).collect::<Vec<_>>()
        };
        assert_eq!(
            of(&["udp", "mock"], None),
            [
                "throughput 4052 udp 0",
                "throughput 4052 mock 0",
                "throughput 4052 mock 8192",
                "throughput 4053 udp 0",
                "throughput 4053 mock 0",
            ]
        );
        let both = plan(&PlanOptions { batches: Some(vec![8192]), ..options(&["mock"]) }).unwrap();
        assert!(
            both.steps.iter().all(|step| (step.case.test == Test::Latency) == (step.case.batch_bytes == 0))
        );
        assert!(both.steps.iter().any(|step| step.case.test == Test::Latency));
    }

    #[test]
    fn several_ends_are_for_throughput_and_for_engines_that_join_them() {
        let options = PlanOptions {
            sizes: vec![32],
            reliabilities: vec![Reliability::Reliable],
            publishers: 2,
            subscribers: 3,
            multicast: true,
            ..options(&["udp", "mock"])
        };
        let steps = plan(&options).unwrap().steps;
        let of = |step: &Step| (step.case.publishers, step.case.subscribers, step.case.multicast);
        assert_eq!(
            steps.iter().map(of).collect::<Vec<_>>(),
            [(1, 1, false), (1, 1, true), (2, 3, false), (2, 3, true)]
        );
        assert_eq!(
            steps[2].action,
            Action::NotSupported("udp joins one publisher with one subscriber".to_owned())
        );
        assert_eq!(steps[3].action, Action::Measure);
    }

    #[test]
    fn loans_are_measured_beside_the_usual_way_where_there_are_any() {
        let options = PlanOptions {
            sizes: vec![32],
            tests: vec![Test::Throughput],
            reliabilities: vec![Reliability::Reliable],
            loans: true,
            ..options(&["udp", "mock"])
        };
        let steps = plan(&options).unwrap().steps;
        let of = |step: &Step| (step.case.engine.clone(), step.case.loans);
        assert_eq!(
            steps.iter().map(of).collect::<Vec<_>>(),
            [("udp".to_owned(), false), ("mock".to_owned(), false), ("mock".to_owned(), true)]
        );
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
        check(&|o| o.sizes = vec![(1 << 30) + 1], "the most that mock carries is 1073741824 bytes (--sizes)");
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
        check(&|o| o.publishers = 0, "--publishers must be more than zero");
        check(&|o| o.subscribers = 65, "--subscribers takes at most 64");
        check(&|o| o.batches = Some(vec![]), "--batch needs at least one value");
        check(&|o| o.batches = Some(vec![8192, 8192]), "--batch names 8192 twice");
        check(&|o| o.batches = Some(vec![151]), "a batch of 151 bytes (--batch) holds less than two samples");
        check(&|o| o.batches = Some(vec![(1 << 30) + 1]), "more than 1 GiB");
        check(
            &|o| (o.rates, o.tests) = (vec![Rate::PerSecond(1)], vec![Test::Throughput]),
            "--rate is for the latency test",
        );
        check(&|o| (o.rates, o.batches) = (vec![Rate::OfMaximum(1)], Some(vec![8192])), "add 0 to --batch");
        let latency_only = |o: &mut PlanOptions| o.tests = vec![Test::Latency];
        check(&latency_only, "--batch is for the throughput test, which --tests leaves out");
        check(
            &|o| {
                latency_only(o);
                (o.batches, o.subscribers) = (None, 2);
            },
            "--subscribers is for the throughput test",
        );
    }

    #[test]
    fn hidden_engines_are_not_advertised() {
        let error = plan(&options(&["quic"])).unwrap_err().to_string();
        assert!(!error.contains("mock"), "{error}");
    }
}
