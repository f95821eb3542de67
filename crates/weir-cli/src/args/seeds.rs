//! The options of `weir seeds`.

use std::path::PathBuf;

use clap::Subcommand;
use weir_results::WaitStrategy;

use super::Format;
use super::bench::{Cpus, parse_cpus, parse_wait};
use crate::seeds::PathChoice;

/// The published figures of RTI and hpcbench: list them, show them, and measure the same here.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir seeds list
  weir seeds show pro-throughput-10g-unkeyed-reliable-batch
  weir seeds run pro-latency-1g-unkeyed-best-effort --exec 5
  sudo weir seeds run pro-latency-1g --path veth          four tables, across a cable of 1 Gbit/s and MTU 9000
  sudo weir seeds run micro-throughput --path veth,mtu=1500,rate=1G --output results/micro")]
pub(crate) struct SeedsArgs {
    #[command(subcommand)]
    pub(crate) command: SeedsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SeedsCommand {
    /// Name all published tables
    List,
    /// Print published tables
    Show {
        /// A table, or what the names of several begin with
        #[arg(value_name = "TABLE", required = true)]
        tables: Vec<String>,

        /// How to print it
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    Run(SeedsRunArgs),
    /// Print what `run --output` has left in a folder as one page of Markdown
    Page {
        /// The folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// Measure published tables here, both ends on this host, and print ours beside the published rows.
///
/// Every row is a run of `perftest` with the options of the published scripts.
#[derive(Debug, clap::Args)]
pub(crate) struct SeedsRunArgs {
    /// A table, what the names of several begin with, or all
    #[arg(value_name = "TABLE", required = true)]
    pub(crate) tables: Vec<String>,

    /// Seconds of each row [default: as published, 30 or 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) exec: Option<u64>,

    /// Only rows of these sizes in bytes
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) sizes: Vec<u64>,

    /// What lies between the ends: an interface of this host, by its name; veth, a cable made for the run (needs root) with
    /// the table's link speed and MTU 9000; or such a cable as you say, as in `weir bench`
    #[arg(long, value_name = "PATH", default_value = "lo")]
    pub(crate) path: PathChoice,

    /// Processors of publisher and subscriber, or none [default: two different ones, if there are two]
    #[arg(long, value_name = "PUB,SUB", value_parser = parse_cpus)]
    pub(crate) cpus: Option<Cpus>,

    /// How receivers wait: block, spin, or spin:USEC to spin that long and then block
    #[arg(long, value_name = "HOW", value_parser = parse_wait, default_value = "block")]
    pub(crate) wait: WaitStrategy,

    /// DDS domain
    #[arg(long, value_name = "ID", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=232))]
    pub(crate) domain: u32,

    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Folder for TABLE.txt, TABLE.csv and TABLE.json of every table; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// One end of a row; started by `weir seeds run`.
#[derive(Debug, clap::Args)]
pub(crate) struct SeedsEndArgs {
    /// The options of `perftest`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) options: Vec<String>,
}
