//! The options of `weir run`.

use std::path::PathBuf;

use super::hosts::{HostsArgs, hosts_help};
use super::values::ProgressForm;
use crate::exit::exit_codes_with_requirements;

/// Measure the studies of a plan, and judge its requirements
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "\
A plan is a TOML file with a section [[study]] for each study. Its keys are the options of `weir bench`, or of \
`weir udp` with command = \"udp\"; those in [defaults] hold for all studies. Limits are in \
[[study.require]], and one that is missed ends the command with 1. \
A run with the --output of an interrupted one goes on where that ended.

Plan:
  [[study]]
  name = \"latency\"
  engines = [\"udp\", \"weir\"]
  tests = \"latency\"
  sizes = [32, \"1k\"]
  repeat = 20
  until_width = \"5%\"       # fewer repeats where these decide
  [[study.require]]
  engine = \"weir\"
  max_p99_us = 50
  max_ratio = 1.2          # of the median latency, or of the received rate
  max_p99_ratio = 2        # of the 99th percentile
  relative_to = \"udp\"

",
    hosts_help!(),
    "
Examples:
  weir run smoke                                # a ready-made plan
  weir run dds-latency --dry-run                # its cases, and how long they take
  weir run plan.toml --output results           # measures, or goes on after an interruption
  sudo weir run pro-latency-1g-unkeyed-reliable # what a published table shows, see --list
  weir run smoke --hosts pub=local,sub=beta     # between this host and another one

",
    exit_codes_with_requirements!()
))]
pub(crate) struct RunArgs {
    /// The plan's file, or the name of a ready-made plan
    #[arg(value_name = "PLAN", required_unless_present_any = ["list", "show"])]
    pub(crate) plan: Option<String>,

    /// Print the cases in their order and the estimated time, and exit
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Set a key of all studies, as duration=10s or sizes=32,1k; link= removes the links
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Keys of the plan")]
    pub(crate) set: Vec<String>,

    /// See whether everything runs: each case once, for 100 ms
    #[arg(long, help_heading = "Keys of the plan")]
    pub(crate) brief: bool,

    /// Write a folder for each study to this one, or go on with it [default: weir-results/TIME]
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) hosts: HostsArgs,

    /// List the ready-made plans, and exit
    #[arg(long, conflicts_with = "plan", help_heading = "Ready-made plans")]
    pub(crate) list: bool,

    /// Print this ready-made plan, and exit
    #[arg(long, value_name = "NAME", conflicts_with_all = ["plan", "list"], help_heading = "Ready-made plans")]
    pub(crate) show: Option<String>,

    /// Report the start and the result of each case on stderr
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// Show progress on a terminal as view, as plain lines, or none
    #[arg(long, value_enum, hide_possible_values = true, value_name = "FORM", default_value_t = ProgressForm::View)]
    pub(crate) progress: ProgressForm,
}
