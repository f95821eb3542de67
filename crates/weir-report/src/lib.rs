//! Formats results as tables, CSV, JSON, SVG, PNG and HTML.
//!
//! Every function is pure: the same run gives the same bytes. Nothing is measured, read from or
//! written to the host; colours and terminals are up to the caller.
//!
//! - `group`: groups the cases of a table or plot, with plain UDP as the baseline of each
//! - `table`: tables for terminals, valid as Markdown, too
//! - `compact`: tables with one row per engine and one column per size
//! - `notes`: the host in a few lines, and the warnings of a run
//! - `baseline`: engines that seem to be faster than raw UDP
//! - `compare`: comparison of two engines
//! - `run_comparison`: comparison of two runs; `self_comparison`: of a run with itself
//! - `compared`: the columns of the comparison
//! - `breakdown`: the stages of latencies, as a table; `stage_bars`: the same as an SVG plot
//! - `cost`: the costs of both ends of a case
//! - `link`: traffic of emulated links
//! - `path`: what engines measured of their paths
//! - `loss`: attribution of lost samples
//! - `metrics`: the latest figures as OpenMetrics
//! - `requirements`: limits of figures, each with a verdict
//! - `goals`: performance targets, each with a verdict
//! - `distribution`: plots of latency by percentile
//! - `csv`: one table of all cases
//! - `export`: flat tables of cases, of their seconds or of their histograms
//! - `fit`: texts for a terminal of some width
//! - `telemetry`: the hosts' activity, as one table or as hpcbench's log
//! - `json`: the JSON document of a run
//! - `scaling`: cost against the parameter of a workload
//! - `timeline`: cases over time
//! - `udp`: tables of UDP tests
//! - `png`: plots as PNG
//! - `published`: published figures beside those of a run
//! - `plot`: SVG plots by sample size; `chart`: SVG plots of arbitrary lines; `chart_grid`: several small
//!   ones
//! - `html`: the report as one HTML page, with plots of its own

mod baseline;
mod breakdown;
mod chart;
mod chart_grid;
mod compact;
mod compare;
mod compared;
mod cost;
mod csv;
mod distribution;
mod export;
mod fit;
mod goals;
mod group;
mod html;
mod json;
mod link;
mod loss;
mod metrics;
mod notes;
mod path;
mod plot;
mod png;
mod published;
mod requirements;
mod run_comparison;
mod scaling;
mod self_comparison;
mod stage_bars;
mod table;
mod telemetry;
mod timeline;
mod udp;
mod workload;

pub use crate::csv::{csv, csv_text};
pub use chart::{LineChart, line_chart};
pub use chart_grid::{ChartGrid, GridRow, chart_grid};
pub use compact::compact_tables;
pub use compare::ReportOptions;
pub use export::{ExportColumn, ExportKind, ExportTable, ExportType, ExportValues, ExportWriter};
pub use fit::fitted;
pub use goals::{AtRest, GoalRow, GoalVerdict, LargeDomain, goals, goals_table};
pub use html::{ListedRun, NamedRun, html_report, index_page, page_plots, served_page};
pub use json::json;
pub use metrics::{Metric, open_metrics};
pub use notes::{case_warnings, environment, warnings};
pub use plot::{Plot, plots, plots_beside};
pub use png::{PngError, png};
pub use published::{Published, PublishedRow};
pub use requirements::{
    Limit, RatioOf, Reference, Requirement, RequirementRow, RequirementVerdict, Selector, requirements_table,
};
pub use run_comparison::{Change, ComparedFigure, RunComparison, RunComparisonOptions};
pub use scaling::scaling_plots;
pub use self_comparison::{SelfComparison, SelfComparisonRow};
pub use table::{markdown_table, tables, text_table};
pub use telemetry::{telemetry_csv, telemetry_log};
pub use timeline::{Timeline, TimelineRun, timeline_plot, timeline_tables};
pub use udp::udp_line;
