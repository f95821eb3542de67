//! `weir host`: the ends of a coordinator on another host. And the hosts of a coordinator.

use std::env;
use std::sync::atomic::AtomicBool;

use anyhow::anyhow;
use weir_bench::AgentCommand;
use weir_bench::case::Ends;
use weir_bench::control::Role;
use weir_bench::hosts::{self, ConnectError, Hosts, HostsSpec, Reach};
use weir_bench::path::lab;
use weir_results::{Environment, HostRecord};

use super::setup;
use crate::args::{BenchArgs, HostsArgs};
use crate::exit::{Exit, Failure};
use crate::output;

/// Serves a coordinator, by standard input and output.
pub(crate) fn run() -> Result<Exit, Failure> {
    // The file may be a copy that another run removes or replaces meanwhile.
    let agent = AgentCommand::of_this_program(setup::agent_arguments());
    hosts::serve(&agent).map_err(Failure::environment)?;
    Ok(Exit::Success)
}

/// The hosts of the last measurement, so that the next one does not connect again.
#[derive(Default)]
pub(super) struct HostsCache(Option<Connected>);

struct Connected {
    options: (String, Reach, Option<String>),
    hosts: Hosts,
}

impl HostsCache {
    /// Connects to the hosts that the options name, if there are any.
    pub(super) fn connect(
        &mut self,
        args: &BenchArgs,
        interrupted: &AtomicBool,
    ) -> Result<Option<&Hosts>, Failure> {
        let Some(spec) = &args.host.hosts.hosts else { return Ok(None) };
        let reach = reach(&args.host.hosts)?;
        let interface = Some(&args.host.interface).filter(|name| *name != "lo").cloned();
        let options = (spec.to_string(), reach, interface);
        if self.0.as_ref().is_none_or(|connected| connected.options != options) {
            // Those before end first.
            self.0 = None;
            let (_, reach, interface) = options.clone();
            let hosts = Hosts::connect(spec.clone(), reach, interface.as_deref(), interrupted);
            self.0 = Some(Connected { options, hosts: hosts.map_err(failure)? });
        }
        if let Some(connected) = self.0.as_ref().filter(|_| args.method.breakdown)
            && !connected.hosts.have_one_clock()
        {
            return Err(Failure::usage(anyhow!(
                "--breakdown needs hosts with one clock, such as namespaces and lab hosts of one machine: its stages \
                 are microseconds between clock reads of both ends, and the offset of two clocks is not known as well"
            )));
        }
        Ok(self.0.as_ref().map(|connected| &connected.hosts))
    }
}

/// What the results say of the path between the ends of these hosts.
pub(super) fn path(spec: &HostsSpec) -> String {
    match lab::link_of(spec) {
        Some(link) => format!("lab {link}, {spec}"),
        None => format!("hosts {spec}"),
    }
}

/// The link between the ends, if these hosts are in one lab.
pub(super) fn lab_link(spec: &HostsSpec) -> Option<String> {
    (spec.hosts().len() > 1).then(|| lab::link_of(spec)).flatten()
}

/// What the head of the results says of the hosts.
pub(super) struct Head {
    pub(super) environment: Environment,
    pub(super) peer: Option<Environment>,
    pub(super) hosts: Vec<HostRecord>,
}

impl Head {
    /// Of a run on these hosts. The date is that of this host, whose command it is.
    pub(super) fn new(hosts: &Hosts, ends: Ends) -> Self {
        let here = setup::environment("lo", None);
        let of = |role| Environment { date: here.date.clone(), ..hosts.environment(role).clone() };
        let environment = Environment { command: env::args().collect(), ..of(Role::Publisher) };
        let peer = (!hosts.is_one()).then(|| of(Role::Subscriber));
        Self { environment, peer, hosts: hosts.records(ends) }
    }
}

/// Rejects options that have no meaning with hosts, before anything is connected.
pub(super) fn check(args: &BenchArgs) -> Result<(), Failure> {
    let HostsArgs { hosts, rsh, remote_weir } = &args.host.hosts;
    let Some(spec) = hosts else {
        let without = [(rsh.is_some(), "--rsh"), (remote_weir.is_some(), "--remote-weir")];
        return match without.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, name)) => Err(Failure::usage(anyhow!("{name} needs --hosts"))),
            None => Ok(()),
        };
    };
    spec.check(args.workload.publishers, args.workload.subscribers).map_err(Failure::usage)?;
    let others = [
        (
            !args.host.link.is_empty(),
            "--link, which makes two hosts of its own for the run: leave out one of them, or make hosts with such a \
             link by `weir lab up --link LINK` and name them as lab:NAME",
        ),
        (
            args.method.outside_checks,
            "--outside-checks, whose sockperf and iperf3 run on this host only: start them by hand on both hosts",
        ),
        // `weir run --hosts` gives hosts to studies whose options were parsed without them.
        (args.workload.workload.is_some(), "--workload, whose processes all run on this host"),
    ];
    match others.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, what)) => Err(Failure::usage(anyhow!("--hosts cannot be used with {what}"))),
        None => Ok(()),
    }
}

/// Prints the hosts.
pub(super) fn tell(hosts: &Hosts, ends: Ends) {
    output::talk(hosts.describe(ends).trim_end());
}

fn reach(args: &HostsArgs) -> Result<Reach, Failure> {
    let rsh = args.rsh.clone().unwrap_or_else(|| "ssh".to_owned());
    if rsh.trim().is_empty() {
        return Err(Failure::usage(anyhow!("--rsh is empty: expected a command, such as 'ssh -p 2222'")));
    }
    Ok(Reach { program: setup::program()?, rsh, remote_program: args.remote_weir.clone() })
}

fn failure(error: ConnectError) -> Failure {
    let exit = if matches!(error, ConnectError::Interrupted) { Exit::Interrupted } else { Exit::Environment };
    Failure { exit, error: error.into() }
}
