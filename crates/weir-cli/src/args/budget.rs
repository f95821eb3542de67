//! The options of `weir budget`.

use std::path::PathBuf;

use super::compare::ComparisonFormat;

/// Print the memory that a participant takes within a limits table, before anything starts
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The table lists what a participant may hold (docs/reference/small.md). Figures of writers and readers are exact: they
reserve that memory when they are created. The others are upper bounds.

Examples:
  weir budget limits.toml
  weir budget limits.toml --system system.toml --name controller
  weir budget limits.toml --format json | jq .total_bytes

Exit codes: 0 success, 2 usage: a mistake in a file, or a limit that is too small for the system")]
pub(crate) struct BudgetArgs {
    /// The limits table
    #[arg(value_name = "LIMITS.toml")]
    pub(crate) limits: PathBuf,

    /// Check that there is room for the participants in this file of static discovery
    #[arg(long, value_name = "FILE")]
    pub(crate) system: Option<PathBuf>,

    /// Check only this participant of the file [default: each of them]
    #[arg(long, value_name = "NAME", requires = "system")]
    pub(crate) name: Option<String>,

    /// Print the figures in this format
    #[arg(long, value_enum, default_value_t = ComparisonFormat::Table)]
    pub(crate) format: ComparisonFormat,
}
