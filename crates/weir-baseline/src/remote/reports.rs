//! The reports of the ends, as sent over the control connection.

use serde::{Deserialize, Serialize};
use weir_results::{
    DropCounters, Environment, LatencySummary, ProcessFigures, ScheduleLag, SequenceCounts, SocketBuffers,
    Telemetry,
};

/// A server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostReport {
    /// Its host.
    pub environment: Environment,
    /// The name of its clock.
    pub clock: String,
}

/// The report of the senders of one end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SendReport {
    /// Datagrams of each flow, warm-up included: they have the numbers `0..sent`.
    pub sent: Vec<u64>,
    /// Datagrams of the measured part, of all flows.
    pub offered: u64,
    /// The length of the measured part, nanoseconds.
    pub offered_in_ns: u64,
    /// Datagrams per second of the measured part: the sum over the flows.
    pub offered_per_s: f64,
    /// System calls that sent them, warm-up included.
    pub system_calls: u64,
    /// Datagrams that the system refused, warm-up included.
    pub refused: u64,
    /// Sends that the kernel would not segment, warm-up included.
    pub gso_fallbacks: u64,
    /// Percent of the time that the threads were on a processor, mean over the flows; `None` with a
    /// schedule.
    #[serde(default)]
    pub busy_percent: Option<f64>,
    /// Drops of this end's host meanwhile.
    pub drops: DropCounters,
    /// How far behind the schedule datagrams were sent; `None` without one.
    pub lag: Option<ScheduleLag>,
    /// Resources of the process.
    pub process: ProcessFigures,
    /// Its sockets' buffers.
    pub buffers: SocketBuffers,
}

/// The report of the receivers of one end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReceiveReport {
    /// Counts of the measured part.
    pub counts: SequenceCounts,
    /// From the last arrival of the warm-up to the last counted one, nanoseconds; 0 without any.
    pub received_in_ns: u64,
    /// Datagrams of any kind that arrived.
    pub arrivals: u64,
    /// System calls that received them.
    pub system_calls: u64,
    /// Datagrams of a wrong size.
    pub corrupt: u64,
    /// Datagrams from other senders.
    #[serde(alias = "strangers")]
    pub foreign_datagrams: u64,
    /// Datagrams dropped at the sockets, warm-up included, as the kernel counts.
    pub kernel_drops: Option<u64>,
    /// What this end's host dropped meanwhile.
    pub drops: DropCounters,
    /// Datagrams lost before the measured part.
    pub lost_in_warmup: u64,
    /// One-way delays; `None` without a schedule.
    pub one_way: Option<LatencySummary>,
    /// Their 99.9th percentile, microseconds.
    pub one_way_p99_9_us: Option<f64>,
    /// Jitter of RFC 3550, microseconds; `None` without a schedule.
    pub jitter_us: Option<f64>,
    /// The largest reordering extent, in sequence numbers.
    pub reorder_extent_max: u64,
    /// The sum of the extents.
    pub reorder_extent_sum: u64,
    /// The longest run of missing numbers.
    pub longest_gap: u64,
    /// What the process used.
    pub process: ProcessFigures,
    /// Its sockets' buffers.
    pub buffers: SocketBuffers,
}

/// The report of the measuring end of round trips.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PingReport {
    /// Round trips.
    pub summary: LatencySummary,
    /// Datagrams sent, warm-up included.
    pub sent: u64,
    /// How long the measured part took, nanoseconds.
    pub measured_in_ns: u64,
    /// What this end's host dropped meanwhile.
    pub drops: DropCounters,
    /// What the process used.
    pub process: ProcessFigures,
    /// Its socket's buffers.
    pub buffers: SocketBuffers,
}

/// The server's report at the end of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerReport {
    /// The receivers' results; `None` without a stream to the server.
    pub received: Option<ReceiveReport>,
    /// Resources of the process.
    pub process: ProcessFigures,
    /// Drops of the server's host meanwhile.
    pub drops: DropCounters,
    /// Samples of the server's host.
    pub telemetry: Option<Telemetry>,
}
