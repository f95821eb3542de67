//! The options of `weir history`, `weir export` and `weir redact`, and those that several commands share.

use std::path::PathBuf;

use weir_results::parse_size;

use super::values::Format;

/// Where names of runs are looked up.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ResultsFolder {
    /// Look up names such as @latest in this folder
    #[arg(long, value_name = "DIR", default_value = "weir-results")]
    pub(crate) results: PathBuf,
}

/// Whether names of hosts and users are replaced.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct RedactArgs {
    /// Replace names of hosts and users, addresses, paths and serial numbers
    #[arg(long)]
    pub(crate) redact: bool,

    /// Replace this word, too, wherever it occurs (implies --redact)
    #[arg(long, value_name = "WORD")]
    pub(crate) also: Vec<String>,
}

/// List the runs of a results folder, or show how cases changed from run to run
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Names of runs, for `weir report`, `weir compare`, `weir export` and `weir redact`:
  @latest              the run that started last; @latest~1: the one before
  @2026-11-24T10:00    the run that started at that time, or day
  @3f2a91c0            the run with that id, or its first digits
  @latest:latency      the latest run called latency, such as a study of a plan

The index .weir-index.sqlite in the folder only saves time: it is built from the results files
when it is missing, and can be deleted.

Examples:
  weir history
  weir history --engines weir --tests latency --sizes 32 --cases
  weir history --cases --engines weir --plot weir.svg
  weir compare @latest~1 @latest

Exit codes: 0 success, 2 usage, 3 environment")]
pub(crate) struct HistoryArgs {
    /// The folder of runs
    #[arg(value_name = "DIR", default_value = "weir-results")]
    pub(crate) folder: PathBuf,

    /// Show these engines only
    #[arg(long, help_heading = "Filters", value_name = "LIST", value_delimiter = ',')]
    pub(crate) engines: Vec<String>,

    /// Show these tests only: latency, throughput
    #[arg(long, help_heading = "Filters", value_name = "LIST", value_delimiter = ',')]
    pub(crate) tests: Vec<weir_results::Test>,

    /// Show these sample sizes only, bytes
    #[arg(long, help_heading = "Filters", value_name = "LIST", value_delimiter = ',', value_parser = parse_size)]
    pub(crate) sizes: Vec<u64>,

    /// Show these hosts only
    #[arg(long, help_heading = "Filters", value_name = "LIST", value_delimiter = ',')]
    pub(crate) hosts: Vec<String>,

    /// Show runs of these names only, such as studies of a plan
    #[arg(long, help_heading = "Filters", value_name = "LIST", value_delimiter = ',')]
    pub(crate) names: Vec<String>,

    /// Show the last N runs only, of each case with --cases
    #[arg(long, help_heading = "Filters", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) last: Option<u32>,

    /// Show each case over time, with the 95 % interval of its median
    #[arg(long)]
    pub(crate) cases: bool,

    /// Draw the cases over time to this .svg file (implies --cases)
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,

    /// Print the list as table, csv or json
    #[arg(long, value_enum, hide_possible_values = true, value_name = "FORMAT", default_value_t = Format::Table)]
    pub(crate) format: Format,
}

/// Write results as flat tables: CSV or Parquet
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Columns and their units: docs/reference/export.md.

Examples:
  weir export weir-results/20261121T200000Z -o cases.parquet
  weir export @latest -o seconds.csv --series
  weir export weir-results/* -o all.parquet --histogram --redact

Exit codes: 0 success, 2 usage, 3 environment")]
pub(crate) struct ExportArgs {
    /// The folder or results file of the run, or its name, such as @latest; several for one table
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<PathBuf>,

    /// Write to this .csv or .parquet file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Write one row per case and second
    #[arg(long)]
    pub(crate) series: bool,

    /// Write one row per case and bucket of its latency histogram
    #[arg(long, conflicts_with = "series")]
    pub(crate) histogram: bool,

    #[command(flatten, next_help_heading = "Names")]
    pub(crate) redact: RedactArgs,

    #[command(flatten, next_help_heading = "Names")]
    pub(crate) results: ResultsFolder,
}

/// Write copies of results without names of hosts and users, addresses, paths and serial numbers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The same name has the same replacement in all runs of the command. Figures, dates, settings and the
models of processors stay. Check the result before you publish it.

Examples:
  weir redact weir-results/20261121T200000Z -o run.jsonl
  weir redact weir-results/* -o published --also falcon

Exit codes: 0 success, 2 usage, 3 environment")]
pub(crate) struct RedactCommandArgs {
    /// The folder or results file of the run, or its name, such as @latest
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<PathBuf>,

    /// Write to this .jsonl file, which must not exist; several runs: to files in this folder
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: PathBuf,

    /// Replace this word, too, wherever it occurs
    #[arg(long, value_name = "WORD")]
    pub(crate) also: Vec<String>,

    #[command(flatten, next_help_heading = "Names")]
    pub(crate) results: ResultsFolder,
}
