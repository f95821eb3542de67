//! Runs a plan, case after case.
//!
//! Every case has fresh processes, one for each end. Starting them takes a few milliseconds, and
//! has three advantages: an engine that crashes or hangs fails one case and not the run; no state
//! of a case (threads, sockets, history, discovery, a warm heap) reaches the next one; and peak
//! memory is that of the case.
//!
//! The messages of a case: `hello` from all, `case` to all, `prepared` from all, `connect` to all,
//! `connected` from all, `start` to each receiving end, `started` from it, `start` to the sending
//! ends, then silence until their `finished`, `finish` to the receiving ends, their `finished`, and
//! `close` to all.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use weir_measure::clock;
use weir_results::{Case, ClockRelation, Environment, Test, Warning};

use crate::beside::Neighbour;
use crate::case::{CaseError, CaseSpec, Method, Place};
use crate::control::{AgentReport, FromAgent, Outcome, Role, SCHEMA, ToAgent, VERSION};
use crate::hosts::{ClockWatch, Hosts};
use crate::live::LiveEnd;
use crate::open_loop;
use crate::outside::OutsideCase;
use crate::path::{PathSpec, VirtualLink};
use crate::plan::{Action, Plan, Step};
use crate::processes::{AgentCommand, EndId};
use crate::record::{self, Fault};
use crate::session::{OnTick, Session};
use crate::settled::Settled;
use crate::throughput::{DRAIN_WAIT, FLUSH_WAIT};
use crate::workload;

/// What a run needs besides its plan.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// How to start an agent.
    pub agent: &'a AgentCommand,
    /// The host, for the doubts that it raises.
    pub environment: &'a Environment,
    /// The virtual link between the ends; `None` = they share this host's network.
    pub path: Option<&'a VirtualLink>,
    /// Where the ends run; `None`: on this host.
    pub hosts: Option<&'a Hosts>,
    /// Set from outside to end the run; checked every 100 ms.
    pub interrupted: &'a AtomicBool,
    /// The finished cases of an interrupted run of the same plan, which are not measured again.
    pub earlier: &'a [Case],
}

/// What happens during a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// A case begins.
    CaseStarted {
        /// Which one, from 1.
        number: usize,
        /// The case.
        case: &'a CaseSpec,
    },
    /// The case is being measured.
    Progress {
        /// For how long.
        elapsed: Duration,
        /// What its ends have measured so far, if the case asks for it.
        live: &'a [LiveEnd],
    },
    /// A case is over, well or not.
    CaseFinished {
        /// Which one, from 1.
        number: usize,
        /// Its figures, or why there are none.
        case: &'a Case,
        /// What makes the run a failed one.
        fault: Option<Fault>,
    },
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOutcome {
    /// Some case lost or damaged samples that it may not.
    pub data_lost: bool,
    /// Some case could not be measured.
    pub trouble: bool,
    /// The run was ended from outside; the current case has no result.
    pub interrupted: bool,
    /// Some case has figures.
    pub measured: bool,
}

impl RunOutcome {
    /// Returns how a run ended that consists of this one and another.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            data_lost: self.data_lost || other.data_lost,
            trouble: self.trouble || other.trouble,
            interrupted: self.interrupted || other.interrupted,
            measured: self.measured || other.measured,
        }
    }

    /// Returns how a run with these cases ended.
    #[must_use]
    pub fn of(cases: &[Case]) -> Self {
        let mut outcome = Self::default();
        cases.iter().for_each(|case| outcome.heed(case, Fault::of(case)));
        outcome
    }

    fn heed(&mut self, case: &Case, fault: Option<Fault>) {
        self.data_lost |= fault == Some(Fault::DataLost);
        self.trouble |= fault == Some(Fault::Trouble);
        self.measured |= case.evidence.not_measured.is_none();
    }
}

/// Runs all cases of `plan`, and reports to `on_event`. A failed case does not end the run; an
/// engine that hangs in several cases in a row is not tried again. Cases whose repeats have settled
/// are left out, and those of an earlier run are not reported again.
pub fn run(plan: &Plan, options: &RunOptions<'_>, on_event: &mut dyn FnMut(Event<'_>)) -> RunOutcome {
    let mut outcome = RunOutcome::default();
    let mut maxima = Vec::new();
    let mut patience = Patience::default();
    let mut settled = Settled::new(plan);
    let mut earlier = options.earlier.iter();
    for (index, step) in plan.steps.iter().enumerate() {
        if settled.is_over(index) {
            continue;
        }
        if let Some(case) = earlier.next() {
            outcome.heed(case, Fault::of(case));
            settled.heed(index, case);
            maxima.extend((step.case.test == Test::Throughput).then(|| case.clone()));
            continue;
        }
        let number = index + 1;
        let mut step = step.clone();
        let resolved = open_loop::resolve(&mut step.case, &maxima);
        if !matches!(step.action, Action::NotSupported(_)) {
            on_event(Event::CaseStarted { number, case: &step.case });
        }
        let mut result = record::blank(&step.case, options.environment);
        if options.hosts.is_some_and(|hosts| !hosts.is_one_machine()) {
            // The processors of two machines may have the same number.
            result.evidence.warnings.retain(|warning| *warning != Warning::CoresShared);
        }
        let start = Instant::now();
        let ran = match (resolved, patience.refusal(&step.case), &step.action) {
            (Err(reason), _, Action::Measure) | (Ok(_), Some(reason), Action::Measure) => {
                Err(CaseError::Failed(reason))
            }
            _ => run_step(&step, options, &mut result, on_event),
        };
        patience.heed(&step.case, &ran, start.elapsed());
        let fault = match ran {
            Ok(fault) => fault,
            Err(CaseError::Interrupted) => {
                outcome.interrupted = true;
                return outcome;
            }
            Err(CaseError::NotSupported(reason)) => {
                record::not_supported(&mut result, reason);
                None
            }
            Err(CaseError::Failed(reason)) => record::failed(&mut result, reason),
        };
        outcome.heed(&result, fault);
        settled.heed(index, &result);
        on_event(Event::CaseFinished { number, case: &result, fault });
        if step.case.test == Test::Throughput {
            maxima.push(result);
        }
    }
    outcome
}

/// Returns how many steps of `plan` are left after the finished cases of an interrupted run, and how many of these
/// cases belong to it. A case of another plan is an error, with its index.
pub fn remaining(plan: &Plan, earlier: &[Case]) -> Result<Remaining, usize> {
    let mut settled = Settled::new(plan);
    let mut finished = 0;
    let mut steps = 0;
    for (index, step) in plan.steps.iter().enumerate() {
        if settled.is_over(index) {
            continue;
        }
        match earlier.get(finished) {
            Some(case) if !is_result(case, &step.case) => return Err(finished),
            Some(case) => {
                settled.heed(index, case);
                finished += 1;
            }
            None => steps += 1,
        }
    }
    Ok(Remaining { steps, finished })
}

/// Whether `result` may be of this case.
fn is_result(result: &Case, case: &CaseSpec) -> bool {
    result.point.engine == case.engine
        && result.point.test == case.test
        && result.point.size_bytes == case.size_bytes as u64
        && result.conditions.repeat == case.repeat
        && result.conditions.kept_awake == case.method.keep_awake
        && result.conditions.path == case.method.path
        && result.conditions.beside == case.method.beside.name()
        && result.conditions.workload_name.as_deref() == case.workload.as_ref().map(|it| it.name.as_str())
        && result.conditions.workload_digest.as_deref() == case.workload.as_ref().map(|it| it.digest.as_str())
        && record::has_settings_of(result, case)
}

/// What an interrupted run has left of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// Steps that are not finished; at most, if repeats may end early.
    pub steps: usize,
    /// Finished cases.
    pub finished: usize,
}

/// Consecutive hangs of each engine: a hang costs over a minute, and a run has many cases.
#[derive(Debug, Default)]
struct Patience {
    /// How many cases in a row ended by a time-out, or were drained until one, by engine.
    hangs: BTreeMap<String, u32>,
}

impl Patience {
    /// So many hangs in a row, and the engine is not tried any more.
    const HANGS_MAX: u32 = 3;

    /// A case that fails so long after its time was over has hung.
    const OVERTIME: Duration = Duration::from_secs(4);

    /// Why a case is not tried.
    fn refusal(&self, case: &CaseSpec) -> Option<String> {
        let hangs = *self.hangs.get(&case.engine)?;
        (hangs >= Self::HANGS_MAX)
            .then(|| format!("not tried: {} hung in the {hangs} cases before", case.engine))
    }

    /// Records how a case ended. A case that the engine does not support does not count.
    fn heed(&mut self, case: &CaseSpec, ran: &Result<Option<Fault>, CaseError>, took: Duration) {
        let overtime = match ran {
            Ok(_) => DRAIN_WAIT + case.allowance(),
            Err(CaseError::Failed(_)) => Self::OVERTIME,
            Err(CaseError::NotSupported(_) | CaseError::Interrupted) => return,
        };
        let hangs = self.hangs.entry(case.engine.clone()).or_default();
        if *hangs < Self::HANGS_MAX {
            let has_hung = took > case.warmup + case.duration + overtime;
            *hangs = if has_hung { *hangs + 1 } else { 0 };
        }
    }
}

fn run_step(
    step: &Step,
    options: &RunOptions<'_>,
    result: &mut Case,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<Option<Fault>, CaseError> {
    if options.interrupted.load(Ordering::Acquire) {
        return Err(CaseError::Interrupted);
    }
    let mut on_tick = |elapsed: Duration, live: &[LiveEnd]| on_event(Event::Progress { elapsed, live });
    match &step.action {
        Action::NotSupported(reason) => Err(CaseError::NotSupported(reason.clone())),
        Action::RunOutside(tool) => {
            let mut on_tick = |elapsed| on_tick(elapsed, &[]);
            tool.run(&OutsideCase::from(&step.case), result, options.interrupted, &mut on_tick).map(|()| None)
        }
        Action::Measure if step.case.workload.is_some() => {
            run_workload(&step.case, options, result, &mut on_tick)
        }
        Action::Measure => {
            let case = &step.case;
            let mut session = Session::start(options.agent, case, options.hosts, options.interrupted)?;
            if let Some(how) = session.awake() {
                record::enter_awake(result, &how);
            }
            let measured = Neighbour::prepare(case, options)
                .and_then(|neighbour| measure(&mut session, case, options, neighbour, &mut on_tick));
            if let Some(path) = options.path {
                let link = path.end_case().map_err(|error| CaseError::Failed(error.to_string()))?;
                record::enter_link(result, link);
            }
            let ((publishers, subscribers, clocks), beside_mbps) = measured?;
            session.close();
            result.figures.beside_mbps = beside_mbps;
            let fault = record::enter(result, case, &publishers, &subscribers);
            if let Some(hosts) = options.hosts {
                record::enter_hosts(result, hosts, case.ends, clocks);
            }
            Ok(fault)
        }
    }
}

fn run_workload(
    case: &CaseSpec,
    options: &RunOptions<'_>,
    result: &mut Case,
    on_tick: OnTick<'_>,
) -> Result<Option<Fault>, CaseError> {
    let Some(workload) = &case.workload else { return Ok(None) };
    if options.hosts.is_some() {
        return Err(CaseError::Failed("a workload cannot be measured on other hosts".to_owned()));
    }
    let mut session = Session::start(options.agent, case, None, options.interrupted)?;
    if let Some(how) = session.awake() {
        record::enter_awake(result, &how);
    }
    let reports = workload::measure(&mut session, case, workload, on_tick)?;
    session.close();
    Ok(workload::enter(result, case, workload, &reports))
}

/// What publishers and subscribers found, and the relation of their clocks if that matters.
type Findings = (Vec<AgentReport>, Vec<AgentReport>, Option<ClockRelation>);

/// Takes all agents through one case, and what shares the link; returns what they found, and what arrived of the other
/// traffic, in Mbit/s.
fn measure(
    session: &mut Session<'_>,
    case: &CaseSpec,
    options: &RunOptions<'_>,
    neighbour: Option<Neighbour<'_>>,
    on_tick: OnTick<'_>,
) -> Result<(Findings, Option<f64>), CaseError> {
    prepare(session, case, options)?;
    if let Some(path) = options.path {
        // Losses do not start earlier: discovery under losses is a different measurement.
        path.begin_case(case.repeat).map_err(|error| CaseError::Failed(error.to_string()))?;
    }
    thread::scope(|scope| {
        let beside = neighbour.map(|neighbour| scope.spawn(|| neighbour.run()));
        let findings = run_ends(session, case, options.hosts, on_tick)?;
        let beside_mbps = beside.map(|beside| match beside.join() {
            Ok(ran) => ran.map_err(in_neighbour),
            Err(_) => Err(CaseError::Failed("--beside: its thread panicked".to_owned())),
        });
        Ok((findings, beside_mbps.transpose()?))
    })
}

/// The error of the other traffic as one of the case.
fn in_neighbour(error: CaseError) -> CaseError {
    match error {
        CaseError::Failed(reason) => CaseError::Failed(format!("--beside: {reason}")),
        other => other,
    }
}

/// Gives all agents the case, and lets them find each other.
pub(crate) fn prepare(
    session: &mut Session<'_>,
    case: &CaseSpec,
    options: &RunOptions<'_>,
) -> Result<(), CaseError> {
    for id in session.ends() {
        let cpu = case.place.cpus.map(|cpus| match id.role {
            Role::Publisher => cpus.publisher,
            Role::Subscriber | Role::Process => cpus.subscriber,
        });
        let case = case.clone().with(|case| case.ends.entity_id = id.index);
        let case = Box::new(placed(case, id, options));
        session.send(id, &ToAgent::Case { schema: SCHEMA, version: VERSION.to_owned(), case, cpu })?;
    }
    join(session, case.allowance())
}

/// Starts agents that have found each other, and returns what they found.
pub(crate) fn run_ends(
    session: &mut Session<'_>,
    case: &CaseSpec,
    hosts: Option<&Hosts>,
    on_tick: OnTick<'_>,
) -> Result<Findings, CaseError> {
    let (publishers, subscribers) = (session.ends_of(Role::Publisher), session.ends_of(Role::Subscriber));
    let patience = case.allowance();
    let clocks = Clocks::of(case, hosts)?;
    let at_ns = clocks.as_ref().map(Clocks::start_ns).transpose()?;
    let start = |id| ToAgent::Start { at_ns: clocks.as_ref().zip(at_ns).map(|(it, at_ns)| it.at(id, at_ns)) };
    for &id in &subscribers {
        session.send(id, &start(id))?;
        expect(session, id, "did not start", START_WAIT, &FromAgent::Started)?;
    }
    for &id in &publishers {
        session.send(id, &start(id))?;
    }
    let run_wait = case.warmup + case.duration + FLUSH_WAIT + patience * 3 + GRACE;
    let mut published = Vec::new();
    for &id in &publishers {
        published.push(expect_report(session, id, run_wait, on_tick)?);
    }
    let sent: Vec<u64> = published.iter().map(sent).collect();
    for &id in &subscribers {
        session.send(id, &ToAgent::Finish { sent: sent.clone() })?;
    }
    let mut received = Vec::new();
    for &id in &subscribers {
        let drain_wait = DRAIN_WAIT + patience * 2 + GRACE;
        received.push(expect_report(session, id, drain_wait, &mut |_, _| {})?);
    }
    let relation = clocks.as_ref().map(Clocks::relation).transpose()?.flatten();
    Ok((published, received, relation))
}

/// The clocks that a schedule follows.
enum Clocks<'a> {
    /// All ends read the same one.
    Shared,
    /// Those of several hosts.
    OfHosts(ClockWatch<'a>),
}

impl<'a> Clocks<'a> {
    /// `None`: the case has no schedule.
    fn of(case: &CaseSpec, hosts: Option<&'a Hosts>) -> Result<Option<Self>, CaseError> {
        if case.method.samples_per_s.is_none() {
            return Ok(None);
        }
        let watch = hosts.map(|hosts| ClockWatch::start(hosts, case.ends)).transpose()?;
        Ok(Some(watch.map_or(Self::Shared, Self::OfHosts)))
    }

    /// When a schedule starts that is announced now, by the clock of the first publisher.
    fn start_ns(&self) -> Result<u64, CaseError> {
        match self {
            Self::Shared => Ok(clock::now_ns() + SCHEDULE_LEAD_NS),
            Self::OfHosts(watch) => {
                let (now_ns, took_ns) = watch.now_ns()?;
                // Until all ends know it, a few messages pass.
                Ok(now_ns + SCHEDULE_LEAD_NS + MESSAGES * took_ns.min(MESSAGE_NS_MAX))
            }
        }
    }

    /// That time by the clock of an end.
    fn at(&self, id: EndId, at_ns: u64) -> u64 {
        match self {
            Self::Shared => at_ns,
            Self::OfHosts(watch) => watch.at(id, at_ns),
        }
    }

    fn relation(&self) -> Result<Option<ClockRelation>, CaseError> {
        match self {
            Self::Shared => Ok(None),
            Self::OfHosts(watch) => watch.finish().map(Some),
        }
    }
}

/// The case as an end at that side of the path, or on that host, has it.
fn placed(case: CaseSpec, id: EndId, options: &RunOptions<'_>) -> CaseSpec {
    if let Some(hosts) = options.hosts {
        return hosts.placed(case, id);
    }
    let Some(path) = options.path else { return case };
    let place = path.place(id.role);
    // Over veth, reading the clock for each sample would take a part of the rate.
    let is_stamped = case.is_stream() && matches!(path.spec(), PathSpec::Tun(_));
    let method = Method { namespace: Some(place.namespace), is_stamped, ..case.method };
    let place = Place { interface: place.interface.to_owned(), address: place.address, ..case.place };
    CaseSpec { place, method, ..case }
}

/// Lets all ends prepare and find each other. Two ends get each other's address.
fn join(session: &mut Session<'_>, patience: Duration) -> Result<(), CaseError> {
    let ends = session.ends();
    let mut addresses = Vec::new();
    for &id in &ends {
        addresses.push(expect_prepared(session, id, PREPARE_WAIT + patience)?);
    }
    if addresses.len() == 2 {
        addresses.reverse();
    } else {
        addresses.fill(None);
    }
    for (&id, peer) in ends.iter().zip(addresses) {
        session.send(id, &ToAgent::Connect { peer, nodes: Vec::new() })?;
    }
    for &id in &ends {
        expect(session, id, "did not find its peer", CONNECT_WAIT + patience, &FromAgent::Connected)?;
    }
    Ok(())
}

/// How long an engine may take to open its sockets and entities.
const PREPARE_WAIT: Duration = Duration::from_secs(20);

/// How long two ends may take to find each other: a little more than their own limit, so that their
/// error is reported.
const CONNECT_WAIT: Duration = Duration::from_secs(25);

/// How long an agent may take to enter its receive loop.
const START_WAIT: Duration = Duration::from_secs(20);

/// The time between announcing a schedule and its start.
const SCHEDULE_LEAD_NS: u64 = 50_000_000;

/// Messages between the announcement of a schedule to the first end and to the last one, at most.
const MESSAGES: u64 = 8;

/// What one of them may take.
const MESSAGE_NS_MAX: u64 = 500_000_000;

/// How much longer than its own limits an agent is waited for.
const GRACE: Duration = Duration::from_secs(20);

fn expect_prepared(
    session: &mut Session<'_>,
    id: EndId,
    timeout: Duration,
) -> Result<Option<SocketAddrV4>, CaseError> {
    match session.wait_for(id, "was not ready", timeout, &mut |_, _| {})? {
        FromAgent::Prepared { address, .. } => Ok(address),
        other => Err(unexpected(session, id, &other)),
    }
}

fn expect(
    session: &mut Session<'_>,
    id: EndId,
    what: &str,
    timeout: Duration,
    expected: &FromAgent,
) -> Result<(), CaseError> {
    let message = session.wait_for(id, what, timeout, &mut |_, _| {})?;
    if message == *expected { Ok(()) } else { Err(unexpected(session, id, &message)) }
}

fn expect_report(
    session: &mut Session<'_>,
    id: EndId,
    timeout: Duration,
    on_tick: OnTick<'_>,
) -> Result<AgentReport, CaseError> {
    match session.wait_for(id, "did not finish", timeout, on_tick)? {
        FromAgent::Finished { report } => Ok(*report),
        other => Err(unexpected(session, id, &other)),
    }
}

fn unexpected(session: &mut Session<'_>, id: EndId, message: &FromAgent) -> CaseError {
    CaseError::Failed(format!("the {} sent a message out of turn: {message:?}", session.name(id)))
}

/// How far the sending end got.
fn sent(report: &AgentReport) -> u64 {
    match &report.outcome {
        Outcome::Publisher(outcome) => outcome.sent,
        Outcome::Pinger(outcome) => outcome.sent,
        Outcome::Subscriber(_) | Outcome::Ponger { .. } | Outcome::Process(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use weir_results::Test;

    use super::*;
    use crate::case::tests::case;
    use crate::workload::Workload;

    /// A plan of one case of a workload with these contents.
    fn plan_of(text: &str) -> Plan {
        let workload = Some(Workload::parse("mine.toml", text).unwrap());
        let case = CaseSpec { workload, size_bytes: 0, ..case("mock", Test::Workload) };
        Plan { steps: vec![Step { case, action: Action::Measure }], until_width: None }
    }

    #[test]
    fn results_of_a_workload_of_the_same_name_with_other_contents_are_of_another_plan() {
        let plan = plan_of(workload::PAIR);
        let result = record::blank(&plan.steps[0].case, &Environment::default());
        let finished = Remaining { steps: 0, finished: 1 };
        assert_eq!(remaining(&plan, std::slice::from_ref(&result)), Ok(finished));
        let changed = plan_of(&workload::PAIR.replacen("rate = 10", "rate = 20", 1));
        assert_eq!(remaining(&changed, std::slice::from_ref(&result)), Err(0));
        let other = record::blank(&changed.steps[0].case, &Environment::default());
        assert_eq!(other.conditions.workload_name, result.conditions.workload_name);
        assert!(!other.same_point(&result));
        // Results of earlier versions have none.
        let earlier = result.with(|it| it.conditions.workload_digest = None);
        assert_eq!(remaining(&plan, &[earlier]), Err(0));
    }

    #[test]
    fn results_with_other_settings_of_the_engine_are_of_another_plan() {
        let with = |rate: &str| {
            let settings = [("rate".to_owned(), rate.to_owned()), ("unset".to_owned(), String::new())].into();
            let case = CaseSpec { settings, ..case("mock", Test::Latency) };
            Plan { steps: vec![Step { case, action: Action::Measure }], until_width: None }
        };
        let plan = with("10");
        let result = record::blank(&plan.steps[0].case, &Environment::default());
        assert!(remaining(&plan, std::slice::from_ref(&result)).is_ok());
        assert_eq!(remaining(&with("20"), std::slice::from_ref(&result)), Err(0));
        assert_eq!(remaining(&with(""), &[result]), Err(0));
    }

    /// Of a case that failed.
    fn failed() -> Result<Option<Fault>, CaseError> {
        Err(CaseError::Failed(String::new()))
    }

    #[test]
    fn an_engine_that_drains_to_the_limit_is_left_alone_whatever_it_cannot_do_in_between() {
        let case = case("mock", Test::Throughput);
        let mut patience = Patience::default();
        let drained = case.warmup + case.duration + DRAIN_WAIT + Duration::from_secs(1);
        patience.heed(&case, &Ok(None), drained);
        patience.heed(&case, &Ok(Some(Fault::DataLost)), drained);
        patience.heed(&case, &Err(CaseError::NotSupported(String::new())), Duration::ZERO);
        assert_eq!(patience.refusal(&case), None);
        patience.heed(&case, &failed(), drained);
        assert!(patience.refusal(&case).is_some());
    }

    #[test]
    fn an_engine_that_hangs_again_and_again_is_left_alone() {
        let case = case("mock", Test::Latency);
        let mut patience = Patience::default();
        let (short, long) = (Duration::from_secs(1), Duration::from_secs(20));
        for (has_failed, took) in [(true, long), (true, long), (false, long), (true, short), (true, long)] {
            patience.heed(&case, &if has_failed { failed() } else { Ok(None) }, took);
        }
        patience.heed(&case, &failed(), long);
        assert_eq!(patience.refusal(&case), None);
        patience.heed(&case, &failed(), long);
        let refusal = "not tried: mock hung in the 3 cases before";
        assert_eq!(patience.refusal(&case).as_deref(), Some(refusal));
        // A case that was not tried says nothing new.
        patience.heed(&case, &failed(), Duration::ZERO);
        assert_eq!(patience.refusal(&case).as_deref(), Some(refusal));
    }
}
