//! The options of `weir report`.

use std::path::PathBuf;

use super::history::{RedactArgs, ResultsFolder};
use super::values::{Format, PlotForm, PlotTest, TelemetryForm};

/// Print the results of an earlier run, plot them, or write a report of several
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Runs of a ready-made plan of a published table are shown beside the published figures, which are the vendor's, of \
another machine. --published chooses others; `weir published list` names them.

--telemetry log is the system log of hpcbench. Plots of a breakdown need a run with `weir bench --breakdown`. Ratios \
are to --relative-to; the plots of load are those of runs with --rate; those of time show rate, 99th percentile, \
missing samples and processors over time. Plots of scaling show runs with `weir bench --scale` against N.

Plots: latency, throughput, distribution, ratios, load, histogram, losses, processor, time, \
breakdown, links, scaling, osrf-mininet.

Examples:
  weir report weir-results/20261121T200000Z
  weir report weir-results/* -o report.html
  weir report weir-results/20261121T200000Z --telemetry csv > hosts.csv
  weir report weir-results/20261121T200000Z --plot ratios --plot time --plot-format svg,png
  weir report @latest -o report.html --published pro-latency-1g-unkeyed-reliable

Exit codes: 0 success, 2 usage, 3 environment")]
pub(crate) struct ReportArgs {
    /// The folder or results file of a run or plan, or a name, such as @latest; several for one report
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<PathBuf>,

    /// Print the results as table, csv or json
    #[arg(long, value_enum, hide_possible_values = true, value_name = "FORMAT", default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Compare the other engines with this one
    #[arg(long, value_name = "ENGINE", default_value = "udp")]
    pub(crate) relative_to: String,

    /// Show CPU time, memory, context switches, system calls and copies of both ends
    #[arg(long, alias = "costs")]
    pub(crate) resources: bool,

    /// Print compact Markdown tables: medians only, one row per engine, one column per size
    #[arg(long, conflicts_with_all = ["plot", "format", "resources", "telemetry", "relative_to"])]
    pub(crate) compact: bool,

    /// Print Markdown tables of emulated links: goodput, bytes sent per byte, queue
    #[arg(long, conflicts_with_all = ["plot", "format", "resources", "telemetry", "relative_to", "compact"])]
    pub(crate) links: bool,

    /// Print the host telemetry of each case instead: csv or log
    #[arg(long, value_enum, hide_possible_values = true, value_name = "FORM", conflicts_with_all = ["plot", "format", "resources"])]
    pub(crate) telemetry: Option<TelemetryForm>,

    /// Write plots instead, such as latency, ratios or time; the names are below
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "TEST",
        help_heading = "Plots and published figures"
    )]
    pub(crate) plot: Vec<PlotTest>,

    /// Write the plots as svg or png, or as both
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "svg",
        requires = "plot",
        help_heading = "Plots and published figures"
    )]
    pub(crate) plot_format: Vec<PlotForm>,

    /// Show these published tables beside the figures, or none [default: that of the run's plan]
    #[arg(
        long,
        value_name = "TABLE",
        value_delimiter = ',',
        conflicts_with_all = ["compact", "format", "links", "resources", "telemetry"],
        help_heading = "Plots and published figures"
    )]
    pub(crate) published: Vec<String>,

    /// Write a report to this .html file; with --plot, the plots' folder [default: that of the run]
    #[arg(short, long, value_name = "PATH", conflicts_with_all = ["compact", "format", "links", "resources", "telemetry"])]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten, next_help_heading = "Names")]
    pub(crate) redact: RedactArgs,

    #[command(flatten, next_help_heading = "Names")]
    pub(crate) folder: ResultsFolder,
}
