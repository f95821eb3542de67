//! The options of `weir compare`.

use std::path::PathBuf;

use super::history::{RedactArgs, ResultsFolder};
use super::values::parse_share;

/// Compare two runs, case by case: better, worse, the same, or inconclusive
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Compares the medians of latency (p50, p99) and received rates of the cases that both sides have.
A verdict needs several repeats (--repeat of `weir bench`); where it is inconclusive, about how
many is printed. Verdicts allow for the number of figures compared.

Two runs at different times differ by what the machine did meanwhile. Where that matters, measure
both sides interleaved, each time with one repeat, and compare the runs with --paired.

Runs may have names of the history, see `weir history --help`. OLD may be a published table, whose
figures have no repeats: published:TABLE, see `weir published list`.

Cases are the same if all of their conditions are, and that includes the link or the hosts between
the ends. --across-paths compares runs with one path each, such as one on two hosts and one on a
virtual link.

How small a difference comparisons can find depends on the machine. --with-itself draws pairs of
neighbouring repeats from a run with many of them, and compares these as --paired does: as they
are, where every difference is a false alarm, and with one side slowed down.

Examples:
  weir compare weir-results/OLD weir-results/NEW
  weir compare published:pro-latency-1g-unkeyed-reliable @latest
  weir compare many --with-itself --slow-down 3%
  weir compare OLD NEW --tolerance 2% >> \"$GITHUB_STEP_SUMMARY\"
  weir compare old1,old2,old3,old4,old5,old6 new1,new2,new3,new4,new5,new6 --paired

Exit codes: 0 success, 1 something is worse by more than the tolerance or a case failed, 2 usage, 3 environment")]
pub(crate) struct CompareArgs {
    /// The run to compare with: its folder or results file, or several, separated by commas
    #[arg(value_name = "OLD", value_parser = parse_runs)]
    pub(crate) old: Runs,

    /// The run that is judged: its folder or results file, or several, separated by commas
    #[arg(value_name = "NEW", value_parser = parse_runs, required_unless_present = "with_itself")]
    pub(crate) new: Option<Runs>,

    /// Compare OLD with itself 100 times, to see what comparisons find on this machine
    #[arg(long, conflicts_with_all = ["new", "paired", "format"])]
    pub(crate) with_itself: bool,

    /// Slow one side down by this share for --with-itself
    #[arg(long, value_name = "SHARE", default_value = "3%", value_parser = parse_share, requires = "with_itself")]
    pub(crate) slow_down: f64,

    /// Accept differences up to this, as 2% or 0.02
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = parse_share)]
    pub(crate) tolerance: f64,

    /// Compare each repeat with that of the same number: the sides were measured interleaved
    #[arg(long)]
    pub(crate) paired: bool,

    /// Compare cases whatever is between their ends: hosts, links or processes of one host
    #[arg(long, conflicts_with = "with_itself")]
    pub(crate) across_paths: bool,

    /// Print the comparison as table, which is valid Markdown, or json
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "FORMAT",
        default_value_t = ComparisonFormat::Table
    )]
    pub(crate) format: ComparisonFormat,

    #[command(flatten, next_help_heading = "Names")]
    pub(crate) redact: RedactArgs,

    #[command(flatten, next_help_heading = "Names")]
    pub(crate) results: ResultsFolder,
}

/// The runs of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Runs(pub(crate) Vec<PathBuf>);

/// How a comparison is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ComparisonFormat {
    /// Valid Markdown, too.
    #[value(alias = "markdown")]
    Table,
    Json,
}

fn parse_runs(text: &str) -> Result<Runs, String> {
    let runs: Vec<PathBuf> = text.split(',').map(PathBuf::from).collect();
    let is_complete = runs.iter().all(|run| !run.as_os_str().is_empty());
    if is_complete {
        Ok(Runs(runs))
    } else {
        Err("a run, or several, separated by commas without spaces".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_runs_are_separated_by_commas() {
        assert_eq!(parse_runs("a,b/c"), Ok(Runs(vec!["a".into(), "b/c".into()])));
        assert!(parse_runs("a,,b").is_err() && parse_runs("").is_err());
    }
}
