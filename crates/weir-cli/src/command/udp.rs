//! `weir udp`: measures raw UDP.

mod outside;
mod plan;
mod server;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, anyhow};
use weir_baseline::{Client, ClientSettings, cases};
use weir_bench::case::CpuPair;
use weir_bench::control::Role;
use weir_bench::host;
use weir_bench::keep_awake::KeepAwake;
use weir_bench::path::{self, VirtualLink};
use weir_measure::{Family, MeasureError, Secret};
use weir_report::ReportOptions;
use weir_results::{Case, Environment, Interface, NotMeasured, Reliability, ResultsWriter, Run, Warning};

use super::bench::Folder;
use super::{report, setup};
use crate::args::{Cpus, Format, SecretArgs, UdpArgs, UdpCommand};
use crate::exit::{Exit, Failure};
use crate::plans::Subject;
use crate::{output, signals};
use plan::{Plan, Step};
use server::LocalServer;

pub(crate) fn run(args: &UdpArgs) -> Result<Exit, Failure> {
    if let Some(UdpCommand::Server(args)) = &args.command {
        return server::run(args);
    }
    let bench = UdpBench::new(args)?;
    let halt = signals::watch()?;
    bench.measure(&Folder::New(args.output.output.as_deref()), &halt, true)
}

/// A measurement by the options of `weir udp`.
pub(super) struct UdpBench<'a> {
    args: &'a UdpArgs,
    cpus: Option<CpuPair>,
    plan: Plan,
}

impl<'a> UdpBench<'a> {
    /// Plans the measurement, without anything being run or written.
    pub(super) fn new(args: &'a UdpArgs) -> Result<Self, Failure> {
        let cpus = processors(args)?;
        let outside = if args.method.outside_checks { setup::outside_tools() } else { Vec::new() };
        let plan =
            Plan::new(args, has_room(args, cpus), &outside).map_err(|text| Failure::usage(anyhow!(text)))?;
        // The version of IP of another host is known when it is connected.
        let is_ipv6 = match (&args.connection, args.sockets.multicast) {
            (_, Some(group)) => Some(group.is_ipv6()),
            (it, None) if it.ipv4 || it.ipv6 || it.to.is_none() => Some(it.ipv6),
            _ => None,
        };
        let checked = is_ipv6.map_or(Ok(()), |is_ipv6| plan.check(is_ipv6));
        checked.map_err(|text| Failure::usage(anyhow!(text)))?;
        Ok(Self { args, cpus, plan })
    }

    /// What it measures, a line for each step.
    pub(super) fn lines(&self) -> Vec<String> {
        let link = self.args.host.link.as_ref().map_or_else(String::new, |link| format!(", {link}"));
        let line = |step: &Step| format!("{}{link}, repeat {}", step.name(), step.repeat);
        self.plan.steps.iter().map(line).collect()
    }

    /// About how long it takes, without what surrounds the measurements.
    pub(super) fn duration(&self) -> Duration {
        self.plan.steps.iter().map(|step| step.point.warmup + step.point.duration).sum()
    }

    /// What requirements may be about.
    pub(super) fn subjects(&self) -> Vec<Subject<'_>> {
        let subject = |step: &Step| Subject {
            engine: step.engine(),
            test: step.test(),
            size_bytes: step.point.size_bytes as u64,
            reliability: Reliability::None,
            batch_bytes: 0,
        };
        self.plan.steps.iter().map(subject).collect()
    }

    /// How many steps are left after these cases.
    pub(super) fn left(&self, earlier: &[Case]) -> usize {
        self.plan.steps.iter().filter(|step| !step.is_finished(earlier)).count()
    }

    /// Measures what the folder does not hold yet, and prints all of it. The environment is printed if `is_first`.
    pub(super) fn measure(
        &self,
        folder: &Folder<'_>,
        halt: &AtomicBool,
        is_first: bool,
    ) -> Result<Exit, Failure> {
        // A thread of its own, since it enters the namespace of a link and does not leave it.
        std::thread::scope(|scope| {
            let measuring = scope.spawn(|| self.measure_here(folder, halt, is_first));
            measuring.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn measure_here(&self, folder: &Folder<'_>, halt: &AtomicBool, is_first: bool) -> Result<Exit, Failure> {
        let Self { args, cpus, plan } = self;
        let earlier = match folder {
            Folder::New(_) => None,
            Folder::Continued(path) => Some((*path, Run::load(path).map_err(Failure::environment)?)),
        };
        let path = setup::lay(args.host.link.as_ref())?;
        let other_end = OtherEnd::find(args, path.as_ref())?;
        let awake = setup::keep_awake(args.host.keep_awake)?;
        let client = Client::connect(&other_end.settings).map_err(failure)?;
        let is_ipv6 = client.is_ipv6();
        plan.check(is_ipv6).map_err(|text| Failure::usage(anyhow!(text)))?;
        let environment = setup::environment(
            client.interface().as_deref().unwrap_or("lo"),
            path.as_ref().map(VirtualLink::spec),
        );
        let peer = other_end.describe(client.server());
        let now = Run { peer: Some(peer.clone()), ..Run::new(environment.clone()) };
        let earlier = match earlier {
            None => Vec::new(),
            Some((path, run)) => {
                setup::check_same_hosts(path, &run, &now)?;
                run.cases
            }
        };
        let mut writer = match folder {
            Folder::New(folder) => setup::create_writer(*folder, &environment, Some(&peer))?,
            Folder::Continued(path) => ResultsWriter::resume(path).map_err(Failure::environment)?.0,
        };
        if args.output.format == Format::Table && is_first {
            output::talk_block(&weir_report::environment(&environment));
            if args.connection.to.is_some() {
                output::talk_block(&format!("other end\n{}", weir_report::environment(&peer)));
            }
        }
        let mut run = Run { cases: earlier, ..now };
        let mut runner = Runner {
            client,
            is_ipv6,
            cpus: *cpus,
            path: path.as_ref(),
            awake: awake.as_ref().map(KeepAwake::description),
            halt,
            verbose: args.output.verbose,
        };
        let ended = runner.run_plan(plan, &mut writer, &mut run);
        // Results are printed even if the run failed.
        let printed = report::print(&run, args.output.format, &ReportOptions::default());
        output::talk(&format!("results: {}", writer.path().display()));
        drop(runner);
        drop(other_end);
        printed?;
        ended
    }
}

/// Runs the plan.
struct Runner<'a> {
    client: Client,
    is_ipv6: bool,
    /// CPUs of this end (the publisher) and of the server.
    cpus: Option<CpuPair>,
    path: Option<&'a VirtualLink>,
    /// How the CPUs are kept awake, if they are.
    awake: Option<String>,
    halt: &'a AtomicBool,
    verbose: bool,
}

/// How a measurement with these cases ends, now or when it goes on.
pub(super) fn exit(cases: &[Case]) -> Exit {
    cases.iter().fold(Exit::Success, |exit, case| exit.and(exit_of(case)))
}

fn exit_of(case: &Case) -> Exit {
    if matches!(case.evidence.not_measured, Some(NotMeasured::Failed { .. })) {
        return Exit::Environment;
    }
    // The control connection works, but no UDP arrives.
    let arrived = case.figures.subscriber.and_then(|figures| figures.samples).unwrap_or(0);
    let is_dead = case.evidence.warnings.contains(&Warning::NothingReceived) && arrived == 0;
    if is_dead { Exit::Environment } else { Exit::Success }
}

impl Runner<'_> {
    fn run_plan(&mut self, plan: &Plan, writer: &mut ResultsWriter, run: &mut Run) -> Result<Exit, Failure> {
        let mut exit = exit(&run.cases);
        // Steps of an earlier, interrupted run are finished.
        let steps: Vec<&Step> = plan.steps.iter().filter(|step| !step.is_finished(&run.cases)).collect();
        for step in steps {
            let (found, failed) = self.step(step, run);
            for case in found {
                if self.verbose {
                    output::talk(&weir_report::udp_line(&case));
                }
                exit = exit.and(exit_of(&case));
                // Further results would be lost as well.
                writer.append(&case).map_err(Failure::environment)?;
                run.cases.push(case);
            }
            match failed {
                None => {}
                Some(Failure { exit: Exit::Usage, .. }) => exit = exit.and(Exit::Environment),
                Some(failure) => return Err(failure),
            }
        }
        Ok(exit)
    }

    fn enter_conditions(&self, case: &mut Case, step: &Step) {
        case.conditions.repeat = step.repeat;
        case.conditions.load_percent = step.percent;
        case.conditions.path = self.path.map(|path| path.spec().to_string());
        case.conditions.kept_awake = self.awake.is_some();
        let cpus = self.cpus.map(|cpus| format!("{},{}", cpus.publisher, cpus.subscriber));
        let settings = [
            ("cpus", Some(cpus.unwrap_or_else(|| "none".to_owned()))),
            ("duration", Some(format!("{:?}", step.point.duration))),
            ("warmup", Some(format!("{:?}", step.point.warmup))),
            ("keep_awake", self.awake.clone()),
        ];
        let settings = settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        case.conditions.settings.extend(settings);
    }

    /// Runs one measurement. A failure with the exit code for usage concerns only this measurement.
    fn step(&mut self, step: &Step, run: &Run) -> (Vec<Case>, Option<Failure>) {
        if let Some(tool) = step.outside {
            return outside::measure(tool, step, self);
        }
        let mut point = step.point.clone();
        point.server_cpu = self.cpus.map(|cpus| cpus.subscriber);
        let begun = self.path.map_or(Ok(()), |path| path.begin_case(step.repeat));
        if let Err(error) = begun {
            return (Vec::new(), Some(Failure::environment(error)));
        }
        let measured = match step.resolve(&mut point, run) {
            Ok(()) => self.client.measure(&point, self.cpus.map(|cpus| cpus.publisher), self.halt),
            Err(reason) => Err(MeasureError::Refused(reason)),
        };
        if let Err(MeasureError::Interrupted) = measured {
            return (Vec::new(), Some(failure(MeasureError::Interrupted)));
        }
        let link = match self.path.map(VirtualLink::end_case).transpose() {
            Ok(link) => link.and_then(|link| link.figures),
            Err(error) => return (Vec::new(), Some(Failure::environment(error))),
        };
        let figures = measured.as_ref().map_err(ToString::to_string);
        let mut found = cases(&point, self.is_ipv6, figures);
        for case in &mut found {
            self.enter_conditions(case, step);
            case.figures.link.clone_from(&link);
        }
        let failed = measured.err().map(|error| match error {
            MeasureError::Refused(_) | MeasureError::Usage(_) => Failure::usage(error),
            error => failure(error),
        });
        if let Some(failure) = failed.as_ref().filter(|failure| failure.exit == Exit::Usage) {
            output::talk(&format!("weir: {}", failure.error));
        }
        (found, failed)
    }
}

/// The other end, with its process if this program started it.
struct OtherEnd {
    settings: ClientSettings,
    _server: Option<LocalServer>,
    interface: Option<Interface>,
}

impl OtherEnd {
    fn find(args: &UdpArgs, path: Option<&VirtualLink>) -> Result<Self, Failure> {
        let secret = secret(&args.connection.secret)?;
        let family = match (args.connection.ipv4, args.connection.ipv6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Any,
        };
        if let Some(host) = &args.connection.to {
            let settings = ClientSettings { host: host.clone(), port: args.connection.port, family, secret };
            return Ok(Self { settings, _server: None, interface: None });
        }
        let place = path.map(|path| path.place(Role::Subscriber));
        let address = match (&place, args.connection.ipv6) {
            (Some(place), true) => place.address_v6.to_string(),
            (Some(place), false) => place.address.to_string(),
            (None, true) => "::1".to_owned(),
            (None, false) => "127.0.0.1".to_owned(),
        };
        let namespace = place.as_ref().map(|place| place.namespace.clone());
        let server = LocalServer::start(&address, namespace, args.sockets.multicast.is_some())?;
        // The measuring thread inherits the namespace.
        if let Some(path) = path {
            enter(&path.place(Role::Publisher).namespace)?;
        }
        let settings = ClientSettings {
            host: address,
            port: server.port(),
            family,
            secret: Some(server.secret().clone()),
        };
        Ok(Self {
            settings,
            _server: Some(server),
            interface: path.map(|path| setup::interface(path.spec())),
        })
    }

    /// The environment of the other end, with the virtual link if any.
    fn describe(&self, server: &Environment) -> Environment {
        let mut environment = server.clone();
        environment.interface = self.interface.clone().or(environment.interface);
        environment
    }
}

/// The secret of `--secret-file`, if given.
fn secret(args: &SecretArgs) -> Result<Option<Secret>, Failure> {
    let read = args.secret_file.as_deref().map(Secret::read).transpose();
    read.map_err(Failure::usage)
}

/// The CPUs of this end and of the server.
fn processors(args: &UdpArgs) -> Result<Option<CpuPair>, Failure> {
    let has_several = args.workload.flows.iter().any(|flows| *flows > 1);
    match args.host.cpus {
        Some(Cpus::Pair(cpus)) => {
            // The server checks its own CPU.
            host::check_cpus(CpuPair { subscriber: cpus.publisher, ..cpus }).map_err(Failure::usage)?;
            Ok(Some(cpus))
        }
        // Several flows pinned to one CPU would measure that CPU.
        None if args.connection.to.is_some() || has_several => Ok(None),
        choice => setup::cpus(choice),
    }
}

/// Whether each end has a CPU of its own, as far as this host knows.
fn has_room(args: &UdpArgs, cpus: Option<CpuPair>) -> bool {
    match cpus {
        _ if args.connection.to.is_some() => true,
        Some(cpus) => cpus.publisher != cpus.subscriber,
        None => host::default_cpus().is_ok_and(|cpus| cpus.is_some()),
    }
}

fn failure(error: MeasureError) -> Failure {
    let exit = match &error {
        MeasureError::Usage(_) => Exit::Usage,
        MeasureError::Interrupted => Exit::Interrupted,
        _ => Exit::Environment,
    };
    Failure { exit, error: error.into() }
}

/// Moves this thread, and the threads it will start, into a network namespace.
fn enter(namespace: &Path) -> Result<(), Failure> {
    path::enter_namespace(namespace)
        .with_context(|| format!("cannot enter the network namespace {}", namespace.display()))
        .map_err(Failure::environment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_results::{ProcessFigures, Reliability, Test};

    #[test]
    fn nothing_received_is_trouble_only_if_nothing_arrived_at_all() {
        let case = |samples: u64| {
            Case::new("udp", Test::Throughput, Reliability::BestEffort, 64).with(|case| {
                case.evidence.warnings.push(Warning::NothingReceived);
                case.figures.subscriber =
                    Some(ProcessFigures { samples: Some(samples), ..ProcessFigures::default() });
            })
        };
        assert_eq!((exit_of(&case(0)), exit_of(&case(3))), (Exit::Environment, Exit::Success));
    }

    #[test]
    fn a_measurement_that_failed_is_trouble_whenever_it_is_looked_at() {
        let good = Case::new("udp", Test::Throughput, Reliability::None, 64);
        let with = |why| good.clone().with(|case| case.evidence.not_measured = Some(why));
        let failed = with(NotMeasured::Failed { reason: "refused".to_owned() });
        let lacking = with(NotMeasured::NotSupported { reason: "no".to_owned() });
        assert_eq!(exit(&[good.clone(), failed, good.clone()]), Exit::Environment);
        assert_eq!(exit(&[good, lacking]), Exit::Success);
    }
}
