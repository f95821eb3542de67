//! The options of `weir targets`.

use std::path::PathBuf;

use super::values::{Cpus, parse_cpus, parse_series};
use crate::exit::exit_codes;

/// Measure the performance targets of the engine, each marked met, missed or inconclusive
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub(crate) struct TargetsArgs {
    /// Measure shorter cases and half as many repeats, for a few minutes
    #[arg(long)]
    pub(crate) quick: bool,

    /// Measure these series; see Series below [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_series)]
    pub(crate) only: Vec<String>,

    /// Repeat every case N times [default: 6; 3 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: Option<u32>,

    /// Evaluate earlier runs, and files of `weir domain --format json`, without measuring
    #[arg(long, value_name = "DIR", num_args = 1.., conflicts_with_all = ["quick", "only", "repeat", "output"])]
    pub(crate) from: Vec<PathBuf>,

    /// Pin the ends to CPUs, or none [default: two different ones]
    #[arg(long, value_name = "PUB,SUB", value_parser = parse_cpus)]
    pub(crate) cpus: Option<Cpus>,

    /// Use this DDS domain, 0 to 232
    #[arg(long, value_name = "ID", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=232))]
    pub(crate) domain: u32,

    /// Write results.jsonl to this folder [default: weir-results/TIME]
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// Report the start and the result of each case on stderr
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

const NOTES: &str = concat!(
    "Takes about 25 minutes. Series across a virtual link need root. Comparisons with other engines need a build \
     that contains them. Memory and size at rest need the examples hello_publisher and hello_subscriber in a folder \
     `examples` beside this program (cargo build --release -p weir-dds --examples). The rows on 200 participants need \
     a run of `weir domain`, as below.

Series:
  latency, spin, load, rates, streams, best-effort, large, keyed, discovery,
  robot, best-effort-veth, loss, lossless

Examples:
  sudo weir targets
  sudo weir targets --quick --only latency,spin
  weir targets --from results/first results/second      # evaluate two earlier runs
  weir domain --participants 200 --endpoints 50 --format json > domain.json
  weir targets --from results/first domain.json         # the same with a large domain

",
    exit_codes!()
);

#[cfg(test)]
mod tests {
    use weir_bench::goals::SERIES;

    use super::*;

    #[test]
    fn the_help_names_every_series() {
        assert!(NOTES.replace(",\n  ", ", ").contains(&format!("\n  {}\n", SERIES.join(", "))));
    }
}
