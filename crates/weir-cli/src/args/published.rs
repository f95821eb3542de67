//! The options of `weir published`.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Subcommand;
use weir_results::WaitStrategy;

use super::values::{Cpus, Format, Profile, parse_cpus, parse_wait};
use crate::exit::exit_codes;
use crate::published::{LinkChoice, mininet, mininet_report};

/// List and show the reference tables published by RTI and hpcbench, and measure the same here
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Examples:
  weir published list
  weir published show pro-throughput-10g-unkeyed-reliable-batch
  weir published run pro-latency-1g-unkeyed-best-effort --exec 5
  sudo weir published run osrf-mininet --exec 5 --runs 1

",
    exit_codes!()
))]
pub(crate) struct PublishedArgs {
    #[command(subcommand)]
    pub(crate) command: PublishedCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PublishedCommand {
    /// List the names of all published tables
    #[command(after_help = "\
Examples:
  weir published list
  weir published list | grep latency

Exit codes: 0 success, 2 usage, 3 environment")]
    List,
    Show(PublishedShowArgs),
    Run(Box<PublishedRunArgs>),
    /// Print the tables in a folder of `weir published run` as one Markdown page
    #[command(after_help = "\
Examples:
  weir published run all --exec 1 --output results
  weir published page results > tables.md
  weir published page docs/performance/results/osrf-mininet.jsonl

Exit codes: 0 success, 2 usage (no tables in the folder), 3 environment")]
    Page {
        /// The folder with the tables, or the results of osrf-mininet
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// Print published tables
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir published show hpcbench-udp-roundtrip
  weir published show pro-latency-1g --format csv      # four tables

Exit codes: 0 success, 2 usage, 3 environment")]
pub(crate) struct PublishedShowArgs {
    /// A table, or the common prefix of several
    #[arg(value_name = "TABLE", required = true)]
    pub(crate) tables: Vec<String>,

    /// Print the tables as table, csv or json
    #[arg(long, value_enum, hide_possible_values = true, value_name = "FORMAT", default_value_t = Format::Table)]
    pub(crate) format: Format,
}

/// Measure published tables with both ends on this host, beside the published figures
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Each row is a run of `perftest` with the options of the published scripts. The link `veth` has the rate of the \
     table and an MTU of 9000 bytes; `weir bench --help` explains the options of a link.

osrf-mininet is Open Robotics' experiment of 2020 on lossy links: samples of 1 kB and 512 kB at 30 Hz over 15 links, \
     30 cells, 10 runs of each. It is measured as by `weir bench`, over emulated links (root).

Examples:
  weir published run pro-latency-1g-unkeyed-best-effort --exec 5
  sudo weir published run pro-latency-1g --link veth   # four tables, link of 1 Gbit/s and MTU 9000
  sudo weir published run osrf-mininet --exec 5 --runs 1   # 4 minutes; also with --delays 0,20,80
  sudo weir published run micro-latency --link veth --profile small   # the eight tables of Connext Micro
  sudo weir published run micro-throughput --link veth,mtu=1500,rate=1G --output results/micro

",
    exit_codes!()
))]
pub(crate) struct PublishedRunArgs {
    /// A table, the common prefix of several, `all`, or osrf-mininet
    #[arg(value_name = "TABLE", required = true)]
    pub(crate) tables: Vec<String>,

    /// Measure each row for N seconds [default: as published, 15 to 60]
    #[arg(
        long,
        alias = "duration",
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..=86_400),
        help_heading = "Method"
    )]
    pub(crate) exec: Option<u64>,

    /// Measure only these sample sizes in bytes
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Method")]
    pub(crate) sizes: Vec<u64>,

    /// Make receivers block, spin, or spin:USEC and then block
    #[arg(long, value_name = "HOW", value_parser = parse_wait, default_value = "block", help_heading = "Method")]
    pub(crate) wait: WaitStrategy,

    /// Run Weir as users get it (full), or without threads and with little memory (small)
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "PROFILE",
        default_value_t = Profile::Full,
        help_heading = "Method"
    )]
    pub(crate) profile: Profile,

    /// Use an interface, or a virtual link (root): veth, veth,OPTION..., or another link of `weir bench`
    #[arg(long, alias = "path", value_name = "LINK", default_value = "lo", help_heading = "Host")]
    pub(crate) link: LinkChoice,

    /// Pin the ends to CPUs, or none [default: two different ones]
    #[arg(long, value_name = "PUB,SUB", value_parser = parse_cpus, help_heading = "Host")]
    pub(crate) cpus: Option<Cpus>,

    /// Use this DDS domain, 0 to 232
    #[arg(
        long,
        value_name = "ID",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(0..=232),
        help_heading = "Host"
    )]
    pub(crate) domain: u32,

    /// Print the tables as table, csv or json
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "FORMAT",
        default_value_t = Format::Table,
        help_heading = "Output"
    )]
    pub(crate) format: Format,

    /// Write TABLE.txt, TABLE.csv and TABLE.json to this folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten, next_help_heading = "osrf-mininet")]
    pub(crate) mininet: MininetArgs,
}

/// The cells of osrf-mininet.
#[derive(Debug, clap::Args)]
pub(crate) struct MininetArgs {
    /// Measure each cell N times [default: as published, 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: Option<u32>,

    /// Measure at these bandwidths in Mbit/s
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = one_of(&mininet::BANDWIDTHS),
        default_value = "54,300,1000"
    )]
    pub(crate) bandwidths: Vec<u64>,

    /// Lose these shares of packets, in percent
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = one_of(&mininet::LOSSES),
        default_value = "0,10,20,30,40"
    )]
    pub(crate) losses: Vec<u32>,

    /// Delay each direction by these times in ms: 0, 20, 80
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = one_of(&mininet_report::DELAYS),
        default_value = "0"
    )]
    pub(crate) delays: Vec<u64>,
}

/// Reads one of these numbers.
fn one_of<T: Copy + PartialEq + Display + FromStr + Send + Sync + 'static>(
    numbers: &'static [T],
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|number| numbers.contains(number));
        number.ok_or_else(|| {
            let known: Vec<String> = numbers.iter().map(T::to_string).collect();
            format!("expected one of {}", known.join(", "))
        })
    }
}

/// One end of a row; started by `weir published run`.
#[derive(Debug, clap::Args)]
pub(crate) struct PublishedEndArgs {
    /// The options of `perftest`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) options: Vec<String>,
}
