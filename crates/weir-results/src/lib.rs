//! The record of a run, its statistics and its file format.
//!
//! This crate is the only owner of the results format: what a run measured, on which machine, with
//! which warnings. It computes the statistics in the record, so that all engines are judged by the
//! same arithmetic. It measures nothing, reads no clock and prints nothing.
//!
//! - `run`: a run, and the names in its cases; `names`: names of values
//! - `case`: one measured point
//! - `environment`: the host
//! - `hosts`: the hosts of a run
//! - `idle`: how long idle processors take to wake up
//! - `intervals`: the 99th percentile of the median interval
//! - `latency`: recorder of round trips and its summary with percentiles
//! - `histogram`: the distribution of a case's latencies
//! - `series`: what a case did second by second
//! - `live`: what a case that is being measured has found so far
//! - `age`: the ages of scheduled samples over time
//! - `breakdown`: the stages of a latency
//! - `throughput`: the summary of a throughput case
//! - `sequence`: lost, duplicate and reordered samples from sequence numbers
//! - `figures`: figures of the processes and sockets of a case
//! - `telemetry`: the host's activity during a run
//! - `link`: what an emulated link carried, lost and queued
//! - `path`: what an engine measured of its paths to other hosts
//! - `loss`: attribution of lost samples, by the counters of both hosts
//! - `bootstrap`: intervals of a median and of the ratio of two engines
//! - `summary`: median and spread over repeats
//! - `redact`: runs without what identifies people and machines
//! - `udp`: figures that only UDP tests have
//! - `workload`: figures of many topics at fixed rates
//! - `warning`: the closed list of warnings about a result, each with advice
//! - `file`: JSON lines on disk, one finished case per line
//! - `salvage`: damaged files, read as far as they go
//! - `whole`: files that take their place when they are complete
//! - `units`: parsing and formatting of sizes and durations

mod age;
mod bootstrap;
mod breakdown;
mod case;
mod environment;
mod figures;
mod file;
mod histogram;
mod hosts;
mod idle;
mod intervals;
mod latency;
mod link;
mod live;
mod loss;
mod names;
mod path;
mod redact;
mod run;
mod salvage;
mod sequence;
mod series;
mod summary;
mod telemetry;
mod throughput;
mod udp;
mod units;
mod warning;
mod whole;
mod workload;

pub use age::{AgeRecorder, AgeSeries};
pub use bootstrap::{Better, Comparison, Interval, Verdict};
pub use breakdown::{LatencyBreakdown, Stage, StageFigures, StageTimes, Trip};
pub use case::{Case, Conditions, Evidence, Figures, Point};
pub use environment::{Environment, Interface};
pub use figures::{CopiedBytes, Discovery, LossBreakdown, ProcessFigures, ScheduleLag, SocketBuffers};
pub use file::{RESULTS_FILE_NAME, ResultsError, ResultsWriter, is_being_written};
pub use histogram::{Distribution, HistogramError, LatencyHistogram};
pub use hosts::HostRecord;
pub use idle::WakeUp;
pub use intervals::IntervalRecorder;
pub use latency::{LatencyKind, LatencyRecorder, LatencySummary, Percentile};
pub use link::{LinkDirection, LinkFigures, LinkSeries};
pub use live::{LiveFigures, LiveSlot};
pub use loss::{
    Carried, DropCounters, Drops, EngineCounts, LossAttribution, LossEvidence, SamplesPerBuffer, attribute,
};
pub use names::ParseNameError;
pub use path::{PathFigures, PathReading, PathSeries};
pub use redact::{RedactError, Redactor};
pub use run::{Coalescing, NotMeasured, Reliability, Run, SCHEMA_VERSION, Test, WaitStrategy};
pub use salvage::Salvaged;
pub use sequence::{Arrival, SequenceCounts, SequenceTracker};
pub use series::{CaseSeries, SeriesRecorder};
pub use summary::Spread;
pub use telemetry::Telemetry;
pub use throughput::{ThroughputCounts, ThroughputSummary};
pub use udp::{ClockRelation, Direction, UdpFigures, UdpMode};
pub use units::{UnitError, format_rate, format_size, parse_duration, parse_size};
pub use warning::Warning;
pub use whole::{WholeFile, write_whole};
pub use workload::{AgeSummary, TopicGroupFigures, WorkloadFigures, WorkloadProcess};
