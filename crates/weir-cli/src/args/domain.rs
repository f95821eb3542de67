//! The options of `weir domain`.

use std::path::PathBuf;
use std::time::Duration;

use weir_results::parse_duration;

use crate::exit::exit_codes_without_loss;

use super::compare::ComparisonFormat;

/// Measure discovery in a domain of many participants on this host
#[derive(Debug, clap::Args)]
#[command(after_help = concat!("\
Starts participants in several processes. Each has as many writers as readers, one of each on every topic, so that \
every endpoint matches one of every participant. Reports the time until all are matched, traffic, memory, processor \
time at rest, and the time until a participant that restarts is matched again. Traffic is that of the network \
namespace: `unshare --net` keeps other programs out of it.

Memory per participant and remote endpoint needs several processes and a large domain, such as 100 participants with \
10 endpoints in 4 processes. In smaller domains it is below the noise and is not reported.

Examples:
  weir domain                                           # 20 participants with 10 endpoints each
  weir domain --participants 200 --endpoints 50 --processes 4
  weir domain --participants 200 --rest 0s --format json > 200.json
  weir domain --from 50.json 100.json 200.json          # a row for each

", exit_codes_without_loss!()))]
pub(crate) struct DomainArgs {
    /// Start this many participants
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(crate) participants: u32,

    /// Give each participant this many endpoints, half of them writers
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=4096))]
    pub(crate) endpoints: u32,

    /// Spread the participants over this many processes
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) processes: u32,

    /// Use this DDS domain
    #[arg(long, value_name = "ID", default_value_t = 90, value_parser = clap::value_parser!(u32).range(0..=232))]
    pub(crate) domain: u32,

    /// Use this interface
    #[arg(long, value_name = "NAME", default_value = "lo")]
    pub(crate) interface: String,

    /// Observe the domain at rest for this time, 8 s after the last match
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub(crate) rest: Duration,

    /// Give up when participants are not matched after this time
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse_duration)]
    pub(crate) timeout: Duration,

    /// Print a Markdown table of earlier measurements, which are outputs of --format json
    #[arg(
        long,
        value_name = "FILE",
        num_args = 1..,
        help_heading = "Output",
        conflicts_with_all = MEASURING
    )]
    pub(crate) from: Vec<PathBuf>,

    /// Print the figures in this format
    #[arg(long, value_enum, default_value_t = ComparisonFormat::Table, help_heading = "Output")]
    pub(crate) format: ComparisonFormat,
}

/// The options of a measurement.
const MEASURING: [&str; 8] =
    ["participants", "endpoints", "processes", "domain", "interface", "rest", "timeout", "format"];

/// Some participants of a domain; started by `weir domain`.
#[derive(Debug, clap::Args)]
pub(crate) struct DomainPartArgs {
    pub(crate) plan: String,
}
