//! From options to the list of cases, in the order in which they run.
//!
//! For each repeat, test and size the engines follow each other directly, the baseline first: what
//! is compared is measured within seconds, so that slow drift of the machine does not decide the
//! ratio. Interleaved, the repeats of a point follow each other as well, every other one with the
//! engines in reverse order.

mod awake;
mod checks;
mod shared;
mod workload;

use std::time::Duration;

use thiserror::Error;
use weir_results::{Reliability, Test, WaitStrategy};

use crate::beside::Beside;
use crate::case::{CaseSpec, Ends, Method, Place};
use crate::endpoint::{Engine, ReliabilitySupport};
use crate::engine;
use crate::outside::OutsideTool;
use crate::payload::HEADER_BYTES;
use crate::rate::Rate;
use crate::tuning::EngineSettings;
use crate::workload::Workload;

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
    /// Batch sizes, bytes, each measured where at least two samples fit; 0: no batching. `None`:
    /// [`DEFAULT_BATCHES`].
    pub batches: Option<Vec<u64>>,
    /// The ends of each throughput case.
    pub ends: Ends,
    /// Whether samples travel by multicast.
    pub multicast: bool,
    /// Whether engines that have loans are measured with them, too.
    pub loans: bool,
    /// How receivers wait.
    pub wait: WaitStrategy,
    /// Rates of the open loop, which replaces the ping-pong; empty: a ping-pong.
    pub rates: Vec<Rate>,
    /// What shares the link, each in a case of its own; empty: nothing.
    pub beside: Vec<Beside>,
    /// Whether the processors are kept out of idle states in latency cases: one value, or both, each in a case of its
    /// own.
    pub awake: Vec<bool>,
    /// How everything is measured, beyond the usual.
    pub method: Method,
    /// Where the ends run.
    pub place: Place,
    /// How long each case is measured.
    pub duration: Duration,
    /// How long each case runs before.
    pub warmup: Duration,
    /// How often everything is measured.
    pub repeats: u32,
    /// Whether the repeats of a point follow each other with the engines interleaved, instead of
    /// repeating the whole list.
    pub interleave: bool,
    /// The seed of a random order within each repeat of a test; `None`: as listed.
    pub shuffle: Option<u64>,
    /// Ends the repeats of a size once all of its intervals are narrower than this; see [`Plan::until_width`].
    pub until_width: Option<f64>,
    /// Whether content is checked.
    pub verify: bool,
    /// Independent programs to run in between.
    pub outside: Vec<OutsideTool>,
    /// What the user chose for the settings of engines.
    pub settings: EngineSettings,
    /// Measured instead of tests and sizes; empty: these.
    pub workloads: Vec<Workload>,
}

impl Default for PlanOptions {
    /// Both tests on the loopback interface, blocking, once; engines, sizes and times are missing.
    fn default() -> Self {
        Self {
            engines: Vec::new(),
            tests: vec![Test::Latency, Test::Throughput],
            sizes: Vec::new(),
            reliabilities: vec![Reliability::BestEffort, Reliability::Reliable],
            instances: 0,
            batches: None,
            ends: Ends::PAIR,
            multicast: false,
            loans: false,
            wait: WaitStrategy::Block,
            rates: Vec::new(),
            beside: Vec::new(),
            awake: vec![false],
            method: Method::default(),
            place: Place::loopback(),
            duration: Duration::ZERO,
            warmup: Duration::ZERO,
            repeats: 1,
            interleave: false,
            shuffle: None,
            until_width: None,
            verify: false,
            outside: Vec::new(),
            settings: EngineSettings::default(),
            workloads: Vec::new(),
        }
    }
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
    /// The repeats of a test and size end once the 95 % intervals of the headline figures of all its cases are
    /// narrower than this share of their medians; `None`: all repeats are measured.
    pub until_width: Option<f64>,
}

/// One case, and what to do with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The case.
    pub case: CaseSpec,
    /// How it is measured.
    pub action: Action,
}

/// How a case is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// An engine of this program measures.
    Measure,
    /// An independent program measures.
    RunOutside(OutsideTool),
    /// The engine lacks this.
    NotSupported(String),
}

/// Why a plan makes no sense. All texts name the option.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// No such engine.
    #[error("`{name}` is not an engine of this program; --engines takes {known}")]
    UnknownEngine {
        /// The requested one.
        name: String,
        /// The available ones.
        known: String,
    },
    /// An engine that this build has not got.
    #[error("{name} is not built in: {advice}")]
    NotBuilt {
        /// The requested one.
        name: String,
        /// How to get it.
        advice: String,
    },
    /// A pair with an engine that no other one understands.
    #[error(
        "{name}: {alien} does not speak RTPS, so that it is measured with itself only; pairs are of DDS engines, \
         such as weir:cyclonedds"
    )]
    NoPair {
        /// The requested one.
        name: String,
        /// The engine that does not speak RTPS.
        alien: &'static str,
    },
    /// Smaller than the fields before the payload.
    #[error(
        "a sample of {0} bytes is impossible: the smallest has {HEADER_BYTES} bytes ({1} counts the whole sample)"
    )]
    TooSmall(u64, &'static str),
    /// More than any chosen engine carries.
    #[error(
        "a sample of {size} bytes is impossible: the most that {engine} carries is {max} bytes (--sizes)"
    )]
    TooLarge {
        /// The requested one.
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
    #[error("a batch of {0} bytes (--batch) holds less than two samples of the smallest size ({1})")]
    BatchTooSmall(u64, &'static str),
    /// A batch beyond the limit.
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
        return Err(PlanError::TooSmall(case.size_bytes as u64, "--size"));
    }
    for (option, count) in [("--publishers", case.ends.publishers), ("--subscribers", case.ends.subscribers)]
    {
        match count {
            0 => return Err(PlanError::Zero(option)),
            1..=ENDS_MAX => {}
            _ => return Err(PlanError::TooMany(option)),
        }
    }
    if case.batch_bytes > 0 && (case.batch_bytes as usize) < batch_bytes_min(case.size_bytes) {
        return Err(PlanError::BatchTooSmall(case.batch_bytes.into(), "--size"));
    }
    match action(engine, case) {
        Action::NotSupported(lacking) => Err(PlanError::Lacking(lacking)),
        Action::Measure | Action::RunOutside(_) => Ok(engine),
    }
}

/// Makes the plan.
pub fn plan(options: &PlanOptions) -> Result<Plan, PlanError> {
    let engines = find_engines(&options.engines)?;
    let plan = match options.workloads.as_slice() {
        [] => tests_plan(options, &engines)?,
        workloads => workload::plan(options, workloads, &engines)?,
    };
    // Cases that an engine lacks stay in the plan, and in the results with the reason, if others are measured.
    match plan.steps.first().map(|step| &step.action) {
        Some(Action::NotSupported(reason)) if plan.measured().next().is_none() => {
            Err(PlanError::Lacking(format!("nothing of this can be measured: {reason}")))
        }
        _ => Ok(plan),
    }
}

fn tests_plan(options: &PlanOptions, engines: &[&'static dyn Engine]) -> Result<Plan, PlanError> {
    checks::options(options)?;
    let sizes = checks::sizes(&options.sizes, engines)?;
    let batches = checks::batches(options, &sizes)?;
    let mut steps = Vec::new();
    for (test, size_bytes, repeat) in rounds(options, &sizes) {
        let base = base_case(options, test, size_bytes, repeat);
        let from = steps.len();
        let batches = if options.tests.contains(&test) { &batches[..] } else { &[0] };
        push_size(options, engines, batches, &base, &mut steps);
        if test == Test::Latency && !options.rates.is_empty() {
            let once = steps.split_off(from);
            steps.extend(once.into_iter().flat_map(|step| at_rates(&step, &options.rates)));
        }
        if !options.beside.is_empty() {
            let alone = steps.split_off(from);
            steps.extend(alone.into_iter().flat_map(|step| shared::each(&step, &options.beside)));
        }
        let once = steps.split_off(from);
        steps.extend(once.into_iter().flat_map(|step| awake::each(step, &options.awake)));
        if options.interleave && repeat % 2 == 0 {
            // A B, B A, A B...: an effect of the first on the second affects both engines.
            steps[from..].reverse();
        }
    }
    if let Some(seed) = options.shuffle {
        shuffle(&mut steps, seed);
    }
    for step in &mut steps {
        if let Some(engine) = engine::find(&step.case.engine) {
            step.case.settings = options.settings.effective(engine);
        }
    }
    Ok(Plan { steps, until_width: options.until_width })
}

impl Plan {
    /// About how long it takes, without the seconds in which processes start and queues drain.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.measured().map(|step| step.case.warmup + step.case.duration).sum()
    }

    /// Returns the steps without those that an engine does not support.
    pub fn measured(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| !matches!(step.action, Action::NotSupported(_)))
    }
}

/// A step of the open loop, for each rate; an unsupported one once.
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

/// Shuffles the cases of each repeat of a test. Tests keep their order: a rate in percent needs the maximum first.
fn shuffle(steps: &mut [Step], seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let is_same =
        |one: &Step, other: &Step| one.case.repeat == other.case.repeat && one.case.test == other.case.test;
    steps.chunk_by_mut(is_same).for_each(|round| random.shuffle(round));
}

/// The order of tests, sizes and repeats, without the engines.
fn rounds(options: &PlanOptions, sizes: &[usize]) -> Vec<(Test, usize, u32)> {
    let points: Vec<(Test, usize)> =
        tests(options).into_iter().flat_map(|test| sizes.iter().map(move |&size| (test, size))).collect();
    let points = points.iter().copied();
    if options.interleave {
        return points.flat_map(|(test, size)| (1..=options.repeats).map(move |n| (test, size, n))).collect();
    }
    (1..=options.repeats).flat_map(|n| points.clone().map(move |(test, size)| (test, size, n))).collect()
}

/// Adds everything at one size: baselines, their independent checks, then the engines by
/// reliability.
fn push_size(
    options: &PlanOptions,
    engines: &[&'static dyn Engine],
    batches: &[u32],
    base: &CaseSpec,
    steps: &mut Vec<Step>,
) {
    let is_baseline = |engine: &&&dyn Engine| engine.capabilities().reliability == ReliabilitySupport::None;
    for engine in engines.iter().filter(is_baseline) {
        // The baseline has neither reliability, instances, batches nor multicast: it is measured
        // once for all groups.
        let case =
            CaseSpec { engine: engine.name().to_owned(), instances: 0, multicast: false, ..base.clone() };
        steps.push(Step { action: action(*engine, &case), case });
    }
    for tool in options.outside.iter().filter(|tool| tool.test() == base.test) {
        let case = CaseSpec {
            engine: tool.name().to_owned(),
            instances: 0,
            ends: Ends::PAIR,
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
            for engine in engines.iter().filter(|engine| !is_baseline(engine)) {
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
        Test::Throughput | Test::Workload => can.throughput,
    };
    let lacking = if !has_test {
        format!("{} has no {} test", case.engine, case.test)
    } else if !can.reliability.supports(case.reliability) {
        format!("{} knows no {} delivery", case.engine, case.reliability)
    } else if case.is_keyed() && !can.keyed {
        format!("{} knows no instances", case.engine)
    } else if case.batch_bytes > 0 && !can.batching {
        format!("{} has no batching", case.engine)
    } else if case.ends.publishers.max(case.ends.subscribers) > 1 && !can.many {
        format!("{} joins one publisher with one subscriber", case.engine)
    } else if case.multicast && !can.multicast {
        format!("{} has no multicast", case.engine)
    } else if case.wait != WaitStrategy::Block && !can.spinning {
        format!("{} receives on threads of its own, which block: --wait cannot make them spin", case.engine)
    } else if case.loans && !can.loans {
        format!("{} has no loans", case.engine)
    } else if case.method.keep_last.is_some() && !can.keep_last {
        format!("{} cannot be made to keep a number of samples", case.engine)
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
    CaseSpec {
        size_bytes,
        instances: options.instances,
        multicast: options.multicast,
        // A ping-pong has one end of each kind.
        ends: if test == Test::Throughput { options.ends } else { Ends::PAIR },
        wait: options.wait,
        repeat,
        duration: options.duration,
        warmup: options.warmup,
        verify: options.verify,
        place: options.place.clone(),
        method: Method {
            rate: options.rates.first().copied().filter(|_| test == Test::Latency),
            ..options.method.clone()
        },
        ..CaseSpec::new("", test)
    }
}

/// Returns engines in the order of the registry: the baseline first; pairs last, in the order given.
fn find_engines(names: &[String]) -> Result<Vec<&'static dyn Engine>, PlanError> {
    checks::list("--engines", names)?;
    if let Some(name) = names.iter().find(|name| engine::find(name).is_none()) {
        return Err(no_engine(name));
    }
    let is_chosen = |engine: &&'static dyn Engine| names.iter().any(|name| name == engine.name());
    let is_pair = |name: &&String| engine::parts(name).len() > 1;
    let pairs = names.iter().filter(is_pair).filter_map(|name| engine::find(name));
    Ok(engine::registry().iter().copied().filter(is_chosen).chain(pairs).collect())
}

/// Why there is no engine of this name.
fn no_engine(name: &str) -> PlanError {
    let parts = engine::parts(name);
    let unknown = parts.iter().find(|part| engine::find(part).is_none());
    if let Some(known) = unknown.and_then(|part| weir_peer_api::known::find(part)) {
        return PlanError::NotBuilt { name: known.name.to_owned(), advice: known.advice() };
    }
    let alien = parts.iter().filter_map(|part| engine::find(part)).find(|engine| !engine.speaks_rtps());
    if let Some(alien) = alien.filter(|_| unknown.is_none()) {
        return PlanError::NoPair { name: name.to_owned(), alien: alien.name() };
    }
    let shown = engine::registry().iter().filter(|engine| engine.about().is_some());
    let known: Vec<&str> = shown.map(|engine| engine.name()).collect();
    PlanError::UnknownEngine { name: name.to_owned(), known: known.join(", ") }
}

/// The smallest message that holds two samples: each has the header of its submessage and an encapsulation
/// before it, and the message a header and a time stamp.
fn batch_bytes_min(size_bytes: usize) -> usize {
    32 + 2 * (28 + size_bytes)
}

#[cfg(test)]
mod tests;
