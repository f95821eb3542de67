//! Results to table, CSV, JSON and SVG.
//!
//! Every function here is pure: the same run gives the same bytes, wherever it is called. Nothing is
//! measured, read from or written to the host; colours and terminals are the caller's business.
//!
//! - `group`: which cases belong into one table or plot, with plain UDP as the floor of each
//! - `table`: tables for terminals, valid as Markdown too
//! - `compact`: tables with one row per engine and one column per size
//! - `notes`: the host in a few lines, and the doubts about a run
//! - `compare`: what the comparison of two engines comes to
//! - `compared`: the columns that say so
//! - `breakdown`: the stages of latencies, as a table; `stage_bars`: the same as an SVG plot
//! - `cost`: what the ends of a case cost
//! - `loss`: where lost samples went
//! - `goals`: what the engine is to reach, and whether it does
//! - `csv`: one table of all cases
//! - `telemetry`: what the hosts did meanwhile, as one table or as hpcbench's log
//! - `json`: the one document of a run
//! - `udp`: tables of UDP tests
//! - `plot`: SVG plots by sample size; `chart`: an SVG plot of whatever lines

mod breakdown;
mod chart;
mod compact;
mod compare;
mod compared;
mod cost;
mod csv;
mod goals;
mod group;
mod json;
mod loss;
mod notes;
mod plot;
mod stage_bars;
mod table;
mod telemetry;
mod udp;

pub use crate::csv::csv;
pub use chart::{LineChart, line_chart};
pub use compact::compact_tables;
pub use compare::ReportOptions;
pub use goals::{AtRest, GoalRow, GoalVerdict, goals, goals_table};
pub use json::json;
pub use notes::{environment, warnings};
pub use plot::{Plot, plots};
pub use table::tables;
pub use telemetry::{telemetry_csv, telemetry_log};
pub use udp::udp_line;
