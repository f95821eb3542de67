//! The options of `weir goals`.

use std::path::PathBuf;

use weir_bench::goals::SERIES;

use super::bench::{Cpus, parse_cpus};

/// Measure what this engine is to reach, beside the floor and the other engines that are built in, and say of each goal
/// whether it is reached.
///
/// The whole takes about a quarter of an hour. Rows across a cable need root; those that compare with others need
/// them built in (cargo xtask peers); the examples at rest are looked for beside this program (cargo build --release
/// -p weir-dds --examples).
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sudo weir goals
  sudo weir goals --quick --only latency,spin
  weir goals --from results/goals                 the table again, of one run or several")]
pub(crate) struct GoalsArgs {
    /// Shorter cases and half as many repeats: for a direction, in a few minutes
    #[arg(long)]
    pub(crate) quick: bool,

    /// Only these series, separated by commas: latency, spin, load, rates, streams, best-effort, large, keyed, discovery,
    /// best-effort-veth, loss, lossless
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_series)]
    pub(crate) only: Vec<String>,

    /// How often everything is measured [default: 6; 3 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: Option<u32>,

    /// Measure nothing: take the cases of earlier runs
    #[arg(long, value_name = "DIR", num_args = 1.., conflicts_with_all = ["quick", "only", "repeat", "output"])]
    pub(crate) from: Vec<PathBuf>,

    /// Folder for results.jsonl; made if it is not there [default: weir-results/ and the time]
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// Processors of publishers and subscribers, or none [default: two different ones, if there are two]
    #[arg(long, value_name = "PUB,SUB", value_parser = parse_cpus)]
    pub(crate) cpus: Option<Cpus>,

    /// DDS domain
    #[arg(long, value_name = "ID", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=232))]
    pub(crate) domain: u32,

    /// Say on stderr when a case starts and how it ends
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

fn parse_series(text: &str) -> Result<String, String> {
    match SERIES.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("the series are {}", SERIES.join(", "))),
    }
}
