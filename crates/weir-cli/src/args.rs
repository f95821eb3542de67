//! The command line of `weir`: one file per command.

mod bench;
mod budget;
mod by_hand;
mod compare;
mod doctor;
mod domain;
mod history;
mod hosts;
mod lab;
mod published;
mod report;
mod run;
mod serve;
mod targets;
mod udp;
mod values;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use weir_bench::control::Role;

use crate::exit::exit_codes;

pub(crate) use bench::BenchArgs;
pub(crate) use budget::BudgetArgs;
pub(crate) use by_hand::{HandArgs, HandQos, PubArgs, SubArgs};
pub(crate) use compare::{CompareArgs, ComparisonFormat};
pub(crate) use doctor::DoctorArgs;
pub(crate) use domain::{DomainArgs, DomainPartArgs};
pub(crate) use history::{ExportArgs, HistoryArgs, RedactArgs, RedactCommandArgs, ResultsFolder};
pub(crate) use hosts::HostsArgs;
pub(crate) use lab::{LabArgs, LabCommand, LabExecArgs, LabUpArgs};
pub(crate) use published::{
    PublishedArgs, PublishedCommand, PublishedEndArgs, PublishedRunArgs, PublishedShowArgs,
};
pub(crate) use report::ReportArgs;
pub(crate) use run::RunArgs;
pub(crate) use serve::ServeArgs;
pub(crate) use targets::TargetsArgs;
pub(crate) use udp::{SecretArgs, UdpArgs, UdpCommand, UdpServerArgs};
pub(crate) use values::{
    Cpus, Direction, Format, KeepAwakeChoice, Order, PlotForm, PlotTest, Profile, Program, ProgressForm,
    ScriptPurpose, TelemetryForm, UdpRate,
};

/// Measure what a network and a publish/subscribe middleware carry
#[derive(Debug, Parser)]
#[command(name = "weir", version, max_term_width = 100, after_help = NOTES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const NOTES: &str = concat!(
    "Weir contains its own DDS engine and a raw UDP baseline, so a bare host is enough to measure.

Examples:
  weir doctor                      # what would distort a measurement on this host, and the fixes
  weir bench                       # latency and throughput on this host, two minutes
  weir run smoke                   # a plan of several studies, with requirements
  weir udp --to HOST               # raw UDP to another host, which runs `weir udp server`

",
    exit_codes!()
);

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Bench(Box<BenchArgs>),
    Run(RunArgs),
    Udp(Box<UdpArgs>),
    Pub(PubArgs),
    Sub(SubArgs),
    Domain(DomainArgs),
    Lab(LabArgs),
    Doctor(DoctorArgs),
    Budget(BudgetArgs),
    #[command(alias = "goals")]
    Targets(TargetsArgs),
    Report(ReportArgs),
    Compare(CompareArgs),
    History(HistoryArgs),
    Export(ExportArgs),
    Redact(RedactCommandArgs),
    Serve(ServeArgs),
    #[command(alias = "seeds")]
    Published(PublishedArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    #[command(hide = true)]
    Reference(ReferenceArgs),
    #[command(hide = true)]
    Agent(AgentArgs),
    #[command(hide = true)]
    DomainPart(DomainPartArgs),
    /// Run ends for a coordinator on another host, which starts this
    #[command(hide = true)]
    Host,
    #[command(hide = true)]
    PublishedEnd(PublishedEndArgs),
}

/// Print a shell completion script for one of the four commands
#[derive(Debug, clap::Args)]
#[command(after_help = "\
perftest has scripts for bash, zsh and fish.

Examples:
  weir completions bash > /etc/bash_completion.d/weir
  weir completions bash perftest > /etc/bash_completion.d/perftest
  weir completions zsh udptest > ~/.zfunc/_udptest

Exit codes: 0 success, 2 usage, 3 environment")]
pub(crate) struct CompletionsArgs {
    /// The shell that reads the script
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,

    /// The command to complete
    #[arg(value_enum, default_value_t = Program::Weir)]
    pub(crate) command: Program,
}

/// Write man pages of the four commands and their subcommands
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir man --output man/man1                  # then: man -l man/man1/weir-bench.1
  sudo weir man --output /usr/local/share/man/man1

Exit codes: 0 success, 2 usage, 3 environment")]
pub(crate) struct ManArgs {
    /// Write the pages to this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

/// Writes the reference page of the documentation.
#[derive(Debug, clap::Args)]
pub(crate) struct ReferenceArgs {
    #[arg(long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

/// One end of a case; started by `weir bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    #[arg(long, value_parser = values::parse_role)]
    pub(crate) role: Role,

    #[arg(long)]
    pub(crate) control: SocketAddr,

    #[arg(long, default_value_t = 0)]
    pub(crate) index: u32,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_well_formed() {
        Args::command().debug_assert();
    }
}
