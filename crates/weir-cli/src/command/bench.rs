//! `weir bench`: measures engines on this host.

mod idle;

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use weir_bench::case::{Ends, Method, Place};
use weir_bench::control::Role;
use weir_bench::coordinator::{self, RunOptions, RunOutcome};
use weir_bench::engine;
use weir_bench::hosts::Hosts;
use weir_bench::path::{PathSpec, VirtualLink};
use weir_bench::plan::{self, Plan, PlanOptions};
use weir_bench::tuning::EngineSettings;
use weir_report::ReportOptions;
use weir_results::{Case, Environment, ResultsError, ResultsWriter, Run, Test, WakeUp};

use super::host::{self, HostsCache};
use super::{report, setup};
use crate::args::{BenchArgs, Cpus, Format, Order, Profile, ProgressForm};
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::{output, progress, signals, workloads};

pub(crate) fn run(args: &BenchArgs) -> Result<Exit, Failure> {
    if args.qos.show_settings {
        return output::data(&read_settings(args)?.show()).map(|()| Exit::Success);
    }
    if let Some(name) = &args.workload.show_workload {
        return output::data(workloads::show(name)?).map(|()| Exit::Success);
    }
    let bench = Bench::new(args)?;
    let interrupted = signals::watch()?;
    let mut cache = HostsCache::default();
    let hosts = cache.connect(args, &interrupted)?;
    let folder = Folder::New(args.output.output.as_deref());
    let measured = bench.measure(&folder, hosts, &interrupted, true)?;
    measured.written.map_err(Failure::environment)?;
    Ok(measured.exit)
}

/// A measurement by the options of `weir bench`.
#[derive(Debug)]
pub(super) struct Bench<'a> {
    args: &'a BenchArgs,
    /// One for each link, or one without.
    plans: Vec<Plan>,
    /// What idle states do to this host, or to one of several; empty if not measured or not slowed.
    wake_ups: Vec<WakeUp>,
}

/// Where the results are written.
#[derive(Debug)]
pub(super) enum Folder<'a> {
    /// A new folder; `None`: named by the time.
    New(Option<&'a Path>),
    /// The folder of an interrupted run, which is continued.
    Continued(&'a Path),
}

/// How a measurement ended.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) exit: Exit,
    /// Whether all results were written.
    pub(super) written: Result<(), ResultsError>,
}

impl<'a> Bench<'a> {
    /// Plans the measurement, without anything being run or written.
    pub(super) fn new(args: &'a BenchArgs) -> Result<Self, Failure> {
        host::check(args)?;
        Self::after_check(args, Vec::new())
    }

    /// The same after a check of the idle states of the hosts, which may add cases.
    fn checked(self, hosts: Option<&Hosts>) -> Result<Self, Failure> {
        let records = hosts.map(|hosts| hosts.records(ends(self.args)));
        Self::after_check(self.args, idle::wake_ups(self.args, records.as_deref()))
    }

    /// What a new run would measure, and whether that is the most of it: other hosts are not checked yet.
    pub(super) fn outlined(&self) -> Result<(Vec<Plan>, bool), Failure> {
        let has_hosts = self.args.host.hosts.hosts.is_some();
        let wake_ups = if has_hosts { idle::slow() } else { idle::wake_ups(self.args, None) };
        let most = Self::after_check(self.args, wake_ups)?.plans;
        let count = |plans: &[Plan]| plans.iter().map(|plan| plan.steps.len()).sum::<usize>();
        let is_most = has_hosts && count(&most) > count(&self.plans);
        Ok((most, is_most))
    }

    /// The same measurement as a run that has begun: on another check of the idle states, it could have other cases.
    pub(super) fn continuing(self, earlier: &Run) -> Result<Self, Failure> {
        Self::after_check(self.args, idle::wake_ups_of(self.args, earlier))
    }

    fn after_check(args: &'a BenchArgs, wake_ups: Vec<WakeUp>) -> Result<Self, Failure> {
        let plans = make_plans(args, &read_settings(args)?, &wake_ups)?;
        Ok(Self { args, plans, wake_ups })
    }

    /// The options.
    pub(super) fn args(&self) -> &'a BenchArgs {
        self.args
    }

    /// The plans, one for each link.
    pub(super) fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// The finished cases of each plan, and how many of its steps are left.
    pub(super) fn parts<'c>(&self, mut earlier: &'c [Case]) -> Result<Vec<(&'c [Case], usize)>, Failure> {
        let mut parts = Vec::new();
        for plan in &self.plans {
            let left = coordinator::remaining(plan, earlier);
            let left = left.map_err(|at| is_of_another_plan(&earlier[at]))?;
            let (of_plan, rest) = earlier.split_at(left.finished);
            parts.push((of_plan, left.steps));
            earlier = rest;
        }
        match earlier.first() {
            Some(case) => Err(is_of_another_plan(case)),
            None => Ok(parts),
        }
    }

    /// The environment of a measurement on this host.
    fn environment(&self) -> Environment {
        let host = &self.args.host;
        let environment = setup::environment(&host.interface, host.link.first());
        Environment { wake_ups: self.wake_ups.clone(), ..environment }
    }

    /// Chooses the processors of the ends on these hosts.
    fn pin(&mut self, hosts: &Hosts) -> Result<(), Failure> {
        let has_several = self.args.workload.publishers > 1 || self.args.workload.subscribers > 1;
        let requested = match self.args.host.cpus {
            Some(Cpus::None) => return Ok(()),
            Some(Cpus::Pair(cpus)) => Some(cpus),
            None if has_several => return Ok(()),
            None => None,
        };
        let cpus = hosts.cpus(requested).map_err(|text| Failure::usage(anyhow::anyhow!(text)))?;
        for step in self.plans.iter_mut().flat_map(|plan| &mut plan.steps) {
            step.case.place.cpus = cpus;
        }
        Ok(())
    }

    /// Measures what the folder does not hold yet, and prints all of it. The environment is printed if `is_first`.
    pub(super) fn measure(
        self,
        folder: &Folder<'_>,
        hosts: Option<&Hosts>,
        interrupted: &AtomicBool,
        is_first: bool,
    ) -> Result<Measured, Failure> {
        let earlier = match folder {
            Folder::New(_) => None,
            Folder::Continued(path) => Some((*path, Run::load(path).map_err(Failure::environment)?)),
        };
        let bench = match &earlier {
            Some((_, run)) => self.continuing(run)?,
            None => self.checked(hosts)?,
        };
        bench.measure_after(earlier, folder, hosts, interrupted, is_first)
    }

    /// Measures what these earlier results do not hold.
    fn measure_after(
        mut self,
        earlier: Option<(&Path, Run)>,
        folder: &Folder<'_>,
        hosts: Option<&Hosts>,
        interrupted: &AtomicBool,
        is_first: bool,
    ) -> Result<Measured, Failure> {
        let args = self.args;
        let head = hosts.map(|hosts| host::Head::new(hosts, ends(args)));
        let (environment, peer, records) = match &head {
            Some(head) => (head.environment.clone(), head.peer.as_ref(), &head.hosts[..]),
            None => (self.environment(), None, &[][..]),
        };
        let run = Run { peer: peer.cloned(), hosts: records.to_vec(), ..Run::new(environment.clone()) };
        let earlier = match earlier {
            None => Vec::new(),
            Some((path, earlier)) => {
                setup::check_same_hosts(path, &earlier, &run)?;
                earlier.cases
            }
        };
        let parts = self.parts(&earlier)?;
        // Before the results file: a host without virtual links leaves no empty run.
        let mut path = setup::lay(args.host.link.first().filter(|_| parts[0].1 > 0))?;
        let mut writer = match folder {
            Folder::New(path) => setup::create_writer_for_hosts(*path, &environment, peer, records)?,
            Folder::Continued(path) => ResultsWriter::resume(path).map_err(Failure::environment)?.0,
        };
        let agent = setup::agent()?;
        idle::check_spinners(&self.plans, hosts)?;
        if args.output.format == Format::Table {
            if is_first {
                output::talk_block(&weir_report::environment(&environment));
                output::talk_block(&idle::notice(args, &self.plans));
            }
            output::talk_block(&path.as_ref().map_or_else(String::new, described));
        }
        if let Some(hosts) = hosts {
            host::tell(hosts, ends(args));
            self.pin(hosts)?;
        }
        let mut finished = Finished::new(run, &self.plans[0], args);
        // A closed stdout does not end the run: the results file has everything.
        let (mut printed, mut written, mut outcome) = (Ok(()), Ok(()), RunOutcome::default());
        for (number, (plan, (earlier, left))) in self.plans.iter().zip(parts).enumerate() {
            if number > 0 {
                // The one before is removed first: both have the same names.
                drop(path.take());
                path = setup::lay(args.host.link.get(number).filter(|_| left > 0))?;
            }
            let interface = path.as_ref().map(|path| setup::interface(path.spec()));
            let interface = interface.or_else(|| environment.interface.clone());
            let options = RunOptions {
                agent: &agent,
                environment: &Environment { interface, ..environment.clone() },
                path: path.as_ref(),
                hosts,
                interrupted,
                earlier,
            };
            earlier.iter().for_each(|case| finished.push(case));
            let progress = Progress::new(plan, progress_form(args), args.output.verbose);
            let of_link;
            (of_link, written) =
                setup::run_plan(plan, &options, &mut writer, &progress, &mut |number, case| {
                    finished.push(case);
                    if printed.is_ok() {
                        printed = progress.suspend(|| finished.print_test(number));
                    }
                });
            outcome = outcome.and(of_link);
            if written.is_err() || outcome.interrupted {
                break;
            }
        }
        let printed = printed.and_then(|()| finished.print_rest());
        output::talk(&format!("results: {}", writer.path().display()));
        printed?;
        Ok(Measured { exit: exit(outcome, &finished.run.cases), written })
    }
}

/// The processes that the options ask for.
fn ends(args: &BenchArgs) -> Ends {
    Ends { publishers: args.workload.publishers, subscribers: args.workload.subscribers, entity_id: 0 }
}

fn is_of_another_plan(case: &Case) -> Failure {
    let (point, conditions) = (&case.point, &case.conditions);
    let what = match &conditions.workload_name {
        Some(name) => {
            format!("{name} {}", conditions.workload_digest.as_deref().unwrap_or("without a digest"))
        }
        None => format!("{} B", point.size_bytes),
    };
    Failure::usage(anyhow::anyhow!(
        "the folder has results of another plan (first different case: {} {} {what}, repeat {}; its settings may \
         differ, too): choose another folder",
        point.engine,
        point.test,
        conditions.repeat
    ))
}

/// The finished cases, some of them printed.
struct Finished {
    run: Run,
    format: Format,
    options: ReportOptions,
    /// The number of the last case of each test.
    last_of_test: Vec<usize>,
    has_printed: bool,
    /// Cases not yet printed.
    pending: Vec<Case>,
}

impl Finished {
    fn new(run: Run, plan: &Plan, args: &BenchArgs) -> Self {
        let options =
            ReportOptions { relative_to: relative_to(args).to_owned(), costs: args.output.resources };
        let last = |test: Test| plan.steps.iter().rposition(|step| step.case.test == test).map(|at| at + 1);
        let last_of_test =
            [Test::Latency, Test::Throughput, Test::Workload].into_iter().filter_map(last).collect();
        Self {
            run,
            format: args.output.format,
            options,
            last_of_test,
            has_printed: false,
            pending: Vec::new(),
        }
    }

    fn push(&mut self, case: &Case) {
        self.run.cases.push(case.clone());
        self.pending.push(case.clone());
    }

    /// Prints the tables of a test after its last case.
    fn print_test(&mut self, number: usize) -> Result<(), Failure> {
        if self.format != Format::Table || !self.last_of_test.contains(&number) {
            return Ok(());
        }
        let Some(test) = self.pending.last().map(|case| case.point.test) else { return Ok(()) };
        let cases = self.pending.extract_if(.., |case| case.point.test == test).collect();
        self.print_tables(cases)
    }

    /// Prints the remaining tables and the warnings.
    fn print_rest(&mut self) -> Result<(), Failure> {
        if self.format != Format::Table {
            return report::print(&self.run, self.format, &self.options);
        }
        let pending = std::mem::take(&mut self.pending);
        self.print_tables(pending)?;
        output::talk_block(&weir_report::warnings(&self.run));
        Ok(())
    }

    fn print_tables(&mut self, cases: Vec<Case>) -> Result<(), Failure> {
        if cases.is_empty() {
            return Ok(());
        }
        let run = Run { cases, ..Run::new(self.run.environment.clone()) };
        let between = if std::mem::replace(&mut self.has_printed, true) { "\n" } else { "" };
        output::page(&format!("{between}{}", weir_report::tables(&run, &self.options)))
    }
}

/// How a run with these cases ended. Reports why if no engine supports any of them.
pub(super) fn exit(outcome: RunOutcome, cases: &[Case]) -> Exit {
    match outcome {
        RunOutcome { interrupted: true, .. } => Exit::Interrupted,
        RunOutcome { data_lost: true, .. } => Exit::DataLost,
        RunOutcome { trouble: true, .. } => Exit::Environment,
        RunOutcome { measured: true, .. } => Exit::Success,
        RunOutcome { measured: false, .. } => {
            let reason = cases.iter().find_map(|case| case.evidence.not_measured.as_ref());
            let reason = reason.map_or_else(|| "there are no cases".to_owned(), ToString::to_string);
            output::talk(&format!("weir: nothing was measured: {reason}"));
            Exit::Environment
        }
    }
}

fn read_settings(args: &BenchArgs) -> Result<EngineSettings, Failure> {
    let Some(path) = &args.qos.settings else { return Ok(EngineSettings::default()) };
    let name = || format!("--settings {}", path.display());
    let text = std::fs::read_to_string(path).with_context(name).map_err(Failure::usage)?;
    let settings = EngineSettings::parse(&text).with_context(name).map_err(Failure::usage)?;
    let is_without_effect =
        args.qos.profile == Profile::Small && settings.has(engine::WEIR) && !settings.has(engine::WEIR_SMALL);
    if is_without_effect {
        return Err(Failure::usage(anyhow::anyhow!(
            "{} has settings of [weir], and --profile small measures weir-small in its place: name the section \
             [weir-small], or leave --profile out",
            name()
        )));
    }
    Ok(settings)
}

/// The requested engines. Reports which ones `all` leaves out.
pub(super) fn chosen_engines(args: &BenchArgs) -> Vec<String> {
    let mut engines =
        if args.workload.engines == ["all"] { all_engines() } else { args.workload.engines.clone() };
    if args.qos.profile == Profile::Small {
        let has_small = engines.iter().any(|name| name == engine::WEIR_SMALL);
        engines.retain(|name| !(has_small && name == engine::WEIR));
    }
    engines.iter().map(|name| in_profile(name, args.qos.profile).to_owned()).collect()
}

fn all_engines() -> Vec<String> {
    let missing: Vec<&str> = engine::missing().map(|peer| peer.name).collect();
    if !missing.is_empty() && !HAS_TOLD.swap(true, Ordering::Relaxed) {
        output::talk(&format!(
            "weir: not in this build, so left out: {} (cargo xtask peers builds them in)",
            missing.join(", ")
        ));
    }
    let shown = engine::registry().iter().filter(|engine| engine.about().is_some());
    shown.map(|engine| engine.name().to_owned()).collect()
}

/// The engine that results are compared with.
fn relative_to(args: &BenchArgs) -> &str {
    in_profile(&args.method.relative_to, args.qos.profile)
}

/// The engine of this name in a profile.
fn in_profile(name: &str, profile: Profile) -> &str {
    match (name, profile) {
        (engine::WEIR, Profile::Small) => engine::WEIR_SMALL,
        _ => name,
    }
}

/// Whether the engines that `all` leaves out were reported, which one run of several studies does once.
static HAS_TOLD: AtomicBool = AtomicBool::new(false);

/// A plan for each link, or one without.
fn make_plans(
    args: &BenchArgs,
    settings: &EngineSettings,
    wake_ups: &[WakeUp],
) -> Result<Vec<Plan>, Failure> {
    let links = &args.host.link;
    if links.is_empty() {
        return Ok(vec![make_plan(args, settings.clone(), wake_ups, None)?]);
    }
    links.iter().map(|link| make_plan(args, settings.clone(), wake_ups, Some(link))).collect()
}

fn make_plan(
    args: &BenchArgs,
    settings: EngineSettings,
    wake_ups: &[WakeUp],
    link: Option<&PathSpec>,
) -> Result<Plan, Failure> {
    let engines = chosen_engines(args);
    // Keeps a run of all engines within minutes.
    let usual = Duration::from_secs(match (&args.workload.workload, engines.len()) {
        // Slow topics need it.
        (Some(_), _) => 10,
        (None, ..=4) => 2,
        (None, _) => 1,
    });
    // The default may be missing: then there is no comparison.
    let name = relative_to(args);
    if name != ReportOptions::default().relative_to && !engines.iter().any(|engine| engine == name) {
        return Err(Failure::usage(anyhow::anyhow!(
            "--relative-to names `{name}`, which --engines leaves out"
        )));
    }
    // Several ends pinned to one CPU would measure that CPU.
    let has_several = args.workload.publishers > 1 || args.workload.subscribers > 1;
    let has_hosts = args.host.hosts.hosts.is_some();
    let cpus = match args.host.cpus.or(has_several.then_some(Cpus::None)) {
        // Those of other hosts are known when they are connected.
        Some(Cpus::Pair(cpus)) if has_hosts => Some(cpus),
        None if has_hosts => None,
        choice => setup::cpus(choice)?,
    };
    // After `all` is resolved, which is one word.
    let by_order = args.method.order.map(|order| order == Order::Interleaved);
    let interleave = by_order.or(args.method.interleave).unwrap_or(engines.len() > 1);
    let awake = idle::awake(args, &engines, wake_ups);
    let options = PlanOptions {
        engines,
        awake,
        tests: args.workload.tests.clone(),
        sizes: args.workload.sizes.clone(),
        reliabilities: args.qos.reliability.clone(),
        instances: args.workload.instances,
        batches: args.workload.batch.clone(),
        ends: ends(args),
        multicast: args.qos.multicast,
        loans: args.qos.loans,
        wait: args.method.wait,
        rates: args.workload.rate.clone(),
        beside: args.workload.beside.clone(),
        method: Method {
            count_system_calls: args.output.resources,
            telemetry_period: Some(args.host.telemetry_period).filter(|period| !period.is_zero()),
            path: link.map(ToString::to_string).or(args.host.hosts.hosts.as_ref().map(host::path)),
            lab_link: args.host.hosts.hosts.as_ref().and_then(host::lab_link),
            late: args.method.subscriber_delay,
            breakdown: args.method.breakdown,
            ..Method::default()
        },
        place: Place {
            domain: args.host.domain,
            run_id: std::process::id(),
            interface: args.host.interface.clone(),
            address: if has_hosts { Ipv4Addr::LOCALHOST } else { address(args)? },
            port: None,
            socket_buffer_bytes: args.host.socket_buffer,
            cpus,
        },
        duration: args.method.duration.unwrap_or(usual),
        warmup: args.method.warmup,
        repeats: args.method.repeat,
        interleave,
        shuffle: (args.method.order == Some(Order::Shuffled)).then_some(args.method.seed),
        until_width: args.method.until_width,
        verify: args.method.verify,
        outside: if args.method.outside_checks { setup::outside_tools() } else { Vec::new() },
        settings,
        workloads: match &args.workload.workload {
            Some(name) => workloads::load_scaled(name, &args.workload.scale)?,
            None => Vec::new(),
        },
    };
    plan::plan(&options).map_err(Failure::usage)
}

/// How progress is shown on this standard error.
fn progress_form(args: &BenchArgs) -> ProgressForm {
    if args.output.verbose {
        return ProgressForm::Plain;
    }
    progress::form(args.output.progress, args.output.format == Format::Table)
}

fn address(args: &BenchArgs) -> Result<Ipv4Addr, Failure> {
    weir_bench::host::interface_address(&args.host.interface).map_err(Failure::usage)
}

/// The virtual link and its namespaces.
fn described(path: &VirtualLink) -> String {
    let file = |role| path.place(role).namespace.display().to_string();
    let (publisher, subscriber) = (file(Role::Publisher), file(Role::Subscriber));
    format!("link: {}, from {publisher} to {subscriber} (nsenter --net=FILE enters one)", path.spec())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command};

    /// Engines and repeats of the points that are planned, in their order.
    fn planned(arguments: &str) -> Vec<(String, u32)> {
        let words =
            "weir bench --tests throughput --sizes 32,1024 --reliability reliable --batch 0 --repeat 2";
        let words = words.split(' ').chain(arguments.split(' '));
        let Command::Bench(args) = Args::parse_from(words).command else { unreachable!("it is `bench`") };
        let plan = make_plan(&args, EngineSettings::default(), &[], None).unwrap();
        plan.steps.into_iter().map(|step| (step.case.engine, step.case.repeat)).collect()
    }

    #[test]
    fn several_engines_are_interleaved_by_default() {
        let take_turns = |arguments| {
            let planned = planned(arguments);
            // Point by point, the first engine of a repeat is the last of the one before.
            let of_repeat = |repeat| planned.iter().position(|(_, of)| *of == repeat).unwrap();
            planned[of_repeat(2)].0 == planned[of_repeat(2) - 1].0
        };
        assert!(take_turns("--engines udp,weir"));
        assert!(take_turns("--engines all"));
        assert!(!take_turns("--engines udp,weir --interleave=false"));
        assert!(!take_turns("--engines all --interleave=false"));
    }

    #[test]
    fn the_small_profile_replaces_our_engine() {
        let engines = |arguments: &str| {
            let words = ["weir", "bench"].into_iter().chain(arguments.split(' '));
            let Command::Bench(args) = Args::parse_from(words).command else { unreachable!("it is `bench`") };
            (chosen_engines(&args).join(","), relative_to(&args).to_owned())
        };
        let of = |engines: &str, relative_to: &str| (engines.to_owned(), relative_to.to_owned());
        assert_eq!(engines("--profile small"), of("udp,udp-gso,weir-small", "udp"));
        let compared = "--engines udp,weir,weir-small --relative-to weir";
        assert_eq!(engines(compared), of("udp,weir,weir-small", "weir"));
        assert_eq!(engines(&format!("{compared} --profile small")), of("udp,weir-small", "weir-small"));
        assert_eq!(engines("--engines weir,weir"), of("weir,weir", "udp"));
    }
}
