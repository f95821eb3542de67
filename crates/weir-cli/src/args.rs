//! What can be typed.

mod bench;
mod by_hand;
mod doctor;
mod goals;
mod seeds;
mod udp;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use weir_bench::control::Role;

pub(crate) use bench::{BenchArgs, Cpus};
pub(crate) use by_hand::{HandArgs, PubArgs, SubArgs};
pub(crate) use doctor::{DoctorArgs, ScriptPurpose};
pub(crate) use goals::GoalsArgs;
pub(crate) use seeds::{SeedsArgs, SeedsCommand, SeedsEndArgs, SeedsRunArgs};
pub(crate) use udp::{SecretArgs, UdpArgs, UdpCommand, UdpRate, UdpServerArgs, Way};

/// Measures what a network and a publish/subscribe middleware carry.
///
/// Weir brings its own DDS engine, so that measuring works on a bare machine, and the raw UDP floor
/// to compare it with.
#[derive(Debug, Parser)]
#[command(name = "weir", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  weir bench                       measure this machine, about a minute
  weir udp server                  one end of tests of UDP itself...
  weir udp --to HOST               ...and the other one, on another host
  weir sub --interface eth0        one end of a case by hand...
  weir pub --interface eth0        ...and the other one, on another host
  weir doctor                      what would spoil a measurement on this host, and what fixes it
  weir report weir-results/RUN     print the tables of an earlier run again
  weir seeds run TABLE             measure a published table, ours beside theirs

Exit codes: 0 all well, 1 data lost or damaged where none may be, 2 usage,
            3 environment or peer, 130 interrupted";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Bench(Box<BenchArgs>),
    Udp(Box<UdpArgs>),
    Pub(PubArgs),
    Sub(SubArgs),
    Doctor(DoctorArgs),
    Goals(GoalsArgs),
    Report(ReportArgs),
    Seeds(SeedsArgs),
    Completions(CompletionsArgs),
    #[command(hide = true)]
    Agent(AgentArgs),
    #[command(hide = true)]
    SeedsEnd(SeedsEndArgs),
}

/// How results are printed on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables for people
    Table,
    /// One table for spreadsheets
    Csv,
    /// One JSON document
    Json,
}

/// Print the tables of an earlier run again, in any format, or draw its plots.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir report weir-results/20261121T200000Z
  weir report weir-results/20261121T200000Z --relative-to weir
  weir report weir-results/20261121T200000Z --compact
  weir report weir-results/20261121T200000Z --format csv > run.csv
  weir report weir-results/20261121T200000Z --telemetry csv > hosts.csv
  weir report weir-results/20261121T200000Z --plot latency --plot throughput")]
pub(crate) struct ReportArgs {
    /// The folder of the run, or its results file
    #[arg(value_name = "DIR")]
    pub(crate) run: PathBuf,

    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// The engine that the others are compared with
    #[arg(long, value_name = "ENGINE", default_value = "udp")]
    pub(crate) relative_to: String,

    /// Show what both ends of each case cost
    #[arg(long)]
    pub(crate) costs: bool,

    /// Print compact Markdown tables: medians only, one row per engine, one column per size
    #[arg(long, conflicts_with_all = ["plot", "format", "costs", "telemetry", "relative_to"])]
    pub(crate) compact: bool,

    /// Print what the hosts did during each case instead: csv, or log for hpcbench's system log
    #[arg(long, value_enum, value_name = "FORM", conflicts_with_all = ["plot", "format", "costs"])]
    pub(crate) telemetry: Option<TelemetryForm>,

    /// Write SVG plots of this test instead of printing; may be given twice
    #[arg(long, value_enum, value_name = "TEST")]
    pub(crate) plot: Vec<PlotTest>,

    /// Where to write the plots [default: the folder of the run]
    #[arg(long, value_name = "DIR", requires = "plot")]
    pub(crate) output: Option<PathBuf>,
}

/// How telemetry is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TelemetryForm {
    /// One table for spreadsheets
    Csv,
    /// hpcbench's system log
    Log,
}

/// What can be plotted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlotTest {
    /// One-way latency by size
    Latency,
    /// Throughput by size
    Throughput,
    /// The stages of latency by size and engine (of a run with --breakdown)
    Breakdown,
}

/// Print the completion script of a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir completions bash > /etc/bash_completion.d/weir
  weir completions zsh > ~/.zfunc/_weir")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// One end of a case; started by `weir bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    #[arg(long, value_parser = parse_role)]
    pub(crate) role: Role,

    #[arg(long)]
    pub(crate) control: SocketAddr,

    #[arg(long, default_value_t = 0)]
    pub(crate) index: u32,
}

fn parse_role(text: &str) -> Result<Role, String> {
    [Role::Publisher, Role::Subscriber]
        .into_iter()
        .find(|role| role.name() == text)
        .ok_or_else(|| "it is publisher or subscriber".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_well_formed() {
        Args::command().debug_assert();
    }
}
