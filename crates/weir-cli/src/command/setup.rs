//! Shared by the commands that measure: CPUs, the virtual link, the results file, and the processes to start.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::Context;
use weir_bench::case::CpuPair;
use weir_bench::coordinator::{self, Event, RunOptions, RunOutcome};
use weir_bench::keep_awake::KeepAwake;
use weir_bench::outside::OutsideTool;
use weir_bench::path::{PathSpec, VirtualLink};
use weir_bench::plan::Plan;
use weir_bench::{AgentCommand, host};
use weir_results::{Case, Environment, HostRecord, Interface, ResultsError, ResultsWriter, Run};

use crate::args::Cpus;
use crate::exit::Failure;
use crate::output;
use crate::progress::Progress;

/// The CPUs of `--cpus`, by default two different ones if available; `None`: not pinned.
pub(super) fn cpus(choice: Option<Cpus>) -> Result<Option<CpuPair>, Failure> {
    match choice {
        Some(Cpus::None) => Ok(None),
        Some(Cpus::Pair(cpus)) => {
            host::check_cpus(cpus).map_err(Failure::usage)?;
            Ok(Some(cpus))
        }
        None => host::default_cpus().map_err(Failure::environment),
    }
}

/// Keeps the CPUs out of idle states while the result lives, if enabled.
pub(super) fn keep_awake(is_enabled: bool) -> Result<Option<KeepAwake>, Failure> {
    is_enabled
        .then(KeepAwake::start)
        .transpose()
        .context("cannot keep the CPUs awake: run with --keep-awake=no")
        .map_err(Failure::environment)
}

/// The interface of a virtual link.
pub(super) fn interface(link: &PathSpec) -> Interface {
    Interface {
        name: VirtualLink::INTERFACE.to_owned(),
        mtu: Some(link.mtu()),
        speed_mbps: link.rate_bps().and_then(|rate| u32::try_from(rate / 1_000_000).ok()),
        driver: Some(link.driver().to_owned()),
        ..Interface::default()
    }
}

/// Makes the virtual link, and reports if it may be slower than requested.
pub(super) fn lay(link: Option<&PathSpec>) -> Result<Option<VirtualLink>, Failure> {
    if let Some(doubt) = link.and_then(PathSpec::doubt) {
        output::talk(&format!("weir: {doubt}"));
    }
    link.cloned().map(VirtualLink::lay).transpose().map_err(Failure::environment)
}

/// The installed outside tools. Reports the missing ones.
pub(super) fn outside_tools() -> Vec<OutsideTool> {
    let (installed, missing): (Vec<_>, Vec<_>) =
        OutsideTool::ALL.into_iter().partition(|tool| tool.is_installed());
    for tool in missing {
        let name = tool.name();
        output::talk(&format!(
            "weir: {name} is not installed, so it is left out (Debian: apt install {name})"
        ));
    }
    installed
}

/// Creates the results file before the measurement, so that an unwritable folder fails early.
pub(super) fn create_writer(
    folder: Option<&Path>,
    environment: &Environment,
    peer: Option<&Environment>,
) -> Result<ResultsWriter, Failure> {
    create_writer_for_hosts(folder, environment, peer, &[])
}

/// The same for a run whose ends are on these hosts.
pub(super) fn create_writer_for_hosts(
    folder: Option<&Path>,
    environment: &Environment,
    peer: Option<&Environment>,
    hosts: &[HostRecord],
) -> Result<ResultsWriter, Failure> {
    let failure = |error: ResultsError| match error {
        ResultsError::AlreadyExists { .. } => Failure::usage(error),
        _ => Failure::environment(error),
    };
    if let Some(folder) = folder {
        return ResultsWriter::create_for_hosts(folder, environment, peer, hosts).map_err(failure);
    }
    loop {
        match ResultsWriter::create_for_hosts(named_by_time(environment), environment, peer, hosts) {
            // Another process took the folder meanwhile; the next one has another name.
            Err(ResultsError::AlreadyExists { .. }) => {}
            created => return created.map_err(failure),
        }
    }
}

/// The default folder: `weir-results/20261121T200000Z`. A second run in the same second gets a number.
pub(super) fn named_by_time(environment: &Environment) -> PathBuf {
    let time = environment.date.replace(['-', ':'], "");
    let folder = |number: u32| {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        PathBuf::from("weir-results").join(format!("{time}{suffix}"))
    };
    (1..).map(folder).find(|folder| !folder.exists()).unwrap_or_else(|| folder(1))
}

/// The environment of this host and of the interface or virtual link that carries the samples.
pub(super) fn environment(name: &str, link: Option<&PathSpec>) -> Environment {
    let mut environment = Environment { command: env::args().collect(), ..host::environment(name) };
    environment.interface = link.map(interface).or(environment.interface);
    environment
}

/// Rejects results in this folder that were measured on another host than this environment's, or by another version.
pub(super) fn check_same_host(path: &Path, before: &Environment, now: &Environment) -> Result<(), Failure> {
    let of = |environment: &Environment| {
        let Environment { weir_version, hostname, kernel, cpu_model, .. } = environment;
        let or_unknown = |name: &Option<String>| name.clone().unwrap_or_else(|| "unknown".to_owned());
        let (host, cpu) = (or_unknown(hostname), or_unknown(cpu_model));
        format!("Weir {weir_version}, host {host}, kernel {kernel}, processor {cpu}")
    };
    let (before, now) = (of(before), of(now));
    if before == now {
        return Ok(());
    }
    Err(Failure::usage(anyhow::anyhow!(
        "{} was measured elsewhere ({before}; now: {now}): choose another folder with --output",
        path.display()
    )))
}

/// The same for all hosts of a run: that of the command, the other end, and those that the ends were placed on.
pub(super) fn check_same_hosts(path: &Path, before: &Run, now: &Run) -> Result<(), Failure> {
    check_same_host(path, &before.environment, &now.environment)?;
    if let (Some(before), Some(now)) = (&before.peer, &now.peer) {
        check_same_host(path, before, now)?;
    }
    let places = |run: &Run| -> String {
        // An address may be another one after a restart. The environment says whether it is the same machine.
        let of = |host: &HostRecord| format!("{} on {}", host.name, host.interface);
        let other = if run.peer.is_some() { "with another end" } else { "without another end" };
        let places = run.hosts.iter().map(of).collect::<Vec<_>>().join("; ");
        if places.is_empty() { other.to_owned() } else { places }
    };
    if before.peer.is_some() != now.peer.is_some() || places(before) != places(now) {
        return Err(Failure::usage(anyhow::anyhow!(
            "{} was measured between other hosts ({}; now: {}): choose another folder with --output",
            path.display(),
            places(before),
            places(now)
        )));
    }
    before
        .hosts
        .iter()
        .zip(&now.hosts)
        .try_for_each(|(before, now)| check_same_host(path, &before.environment, &now.environment))
}

/// Runs a plan. Every finished case passes through `on_case` and is written before the next one starts.
pub(super) fn run_plan(
    plan: &Plan,
    options: &RunOptions<'_>,
    writer: &mut ResultsWriter,
    progress: &Progress,
    on_case: &mut dyn FnMut(usize, &mut Case),
) -> (RunOutcome, Result<(), ResultsError>) {
    let mut written = Ok(());
    let outcome = coordinator::run(&progress.watched(plan), options, &mut |event| match event {
        Event::CaseStarted { number, case } => progress.case_started(number, case),
        Event::Progress { elapsed, live } => progress.measuring(elapsed, live),
        Event::CaseFinished { number, case, .. } => {
            progress.case_finished(number, case);
            let mut case = case.clone();
            on_case(number, &mut case);
            if let Err(error) = writer.append(&case) {
                // Further results would be lost as well.
                options.interrupted.store(true, Ordering::Release);
                written = Err(error);
            }
        }
    });
    progress.finish();
    (outcome, written)
}

/// The file of this program.
pub(super) fn program() -> Result<PathBuf, Failure> {
    env::current_exe()
        .context("cannot find the file of this program, which runs each end")
        .map_err(Failure::environment)
}

/// The command that starts one end of a case.
pub(super) fn agent() -> Result<AgentCommand, Failure> {
    Ok(AgentCommand { program: program()?, arguments: agent_arguments() })
}

/// The arguments with which this program is an end of a case.
pub(super) fn agent_arguments() -> Vec<OsString> {
    vec!["agent".into()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    fn environment(name: &str) -> Environment {
        Environment { hostname: Some(name.to_owned()), ..Environment::default() }
    }

    /// Between `alpha` and a second host of this name, interface and address.
    fn run(name: &str, interface: &str, address: &str) -> Run {
        let record = |name: &str, interface: &str, address: &str| HostRecord {
            name: format!("user@{name}"),
            ends: Vec::new(),
            interface: interface.to_owned(),
            address: address.to_owned(),
            environment: environment(name),
        };
        let hosts = vec![record("alpha", "eth0", "10.0.0.1"), record(name, interface, address)];
        Run { peer: Some(environment(name)), hosts, ..Run::new(environment("alpha")) }
    }

    #[test]
    fn a_run_goes_on_between_the_same_hosts_only() {
        let before = run("beta", "eth0", "10.0.0.2");
        let check = |now: &Run| check_same_hosts(Path::new("results"), &before, now);
        check(&before).unwrap();
        check(&run("beta", "eth0", "10.0.0.3")).unwrap();
        let others = [
            run("gamma", "eth0", "10.0.0.2"),
            run("beta", "ib0", "10.0.0.2"),
            Run { hosts: Vec::new(), peer: None, ..before.clone() },
            Run { peer: Some(environment("gamma")), ..before.clone() },
        ];
        for other in &others {
            assert_eq!(check(other).unwrap_err().exit, Exit::Usage, "{other:?}");
        }
        // Another machine of the same name and address.
        let mut other = before.clone();
        other.hosts[1].environment.cpu_model = Some("another".to_owned());
        assert!(check(&other).unwrap_err().to_string().contains("measured elsewhere"));
        // The other end of `weir udp` is in no list of hosts.
        let udp = |name: &str| Run { hosts: Vec::new(), ..run(name, "eth0", "10.0.0.2") };
        check_same_hosts(Path::new("results"), &udp("beta"), &udp("beta")).unwrap();
        check_same_hosts(Path::new("results"), &udp("beta"), &udp("gamma")).unwrap_err();
    }
}
