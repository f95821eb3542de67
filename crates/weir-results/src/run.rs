//! A run and its cases: the record that all reports are computed from.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    Discovery, Environment, LatencyBreakdown, LatencySummary, LossAttribution, LossBreakdown, ProcessFigures,
    ScheduleLag, SocketBuffers, Telemetry, ThroughputSummary, UdpFigures, Warning,
};

/// Version of the results format that this crate writes and reads.
pub const SCHEMA_VERSION: u32 = 1;

/// All measurements of one command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Version of the format: [`SCHEMA_VERSION`].
    pub schema: u32,
    /// The machine and program.
    pub environment: Environment,
    /// The machine and program at the other end, if that is an existing process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Environment>,
    /// The cases, in the order of measuring.
    pub cases: Vec<Case>,
}

impl Run {
    /// Creates a run without cases.
    #[must_use]
    pub const fn new(environment: Environment) -> Self {
        Self { schema: SCHEMA_VERSION, environment, peer: None, cases: Vec::new() }
    }
}

/// One measured point: one engine, one test, one size, one repeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The engine: `udp` (the baseline), `weir`, or another engine's name in lower case.
    pub engine: String,
    /// The kind of measurement.
    pub test: Test,
    /// Delivery guarantee.
    pub reliability: Reliability,
    /// Whether the type has a key.
    pub keyed: bool,
    /// Instances written in rotation; 0 if not keyed.
    pub instances: u64,
    /// Maximum size of a batch of the engine's batching policy, in bytes; 0: no batching.
    pub batch_bytes: u64,
    /// Publishers, each with its own process and endpoint.
    ///
    /// With several ends of a kind the rates of [`ThroughputSummary`] are the mean per subscriber
    /// (from all publishers), counts are sums over all subscribers, and offered rates are sums over
    /// all publishers.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub publishers: u32,
    /// Subscribers; each receives all samples of all publishers.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub subscribers: u32,
    /// Whether samples are sent by multicast.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multicast: bool,
    /// Whether samples are written and read without copies in user space (loans).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loans: bool,
    /// Whether the engine is of another kind than the others, so that it is shown separately and
    /// compared with nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
    /// Size of a sample in bytes.
    pub size_bytes: u64,
    /// How the receiving threads wait.
    pub wait: WaitStrategy,
    /// Whether the processors were kept out of idle states.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept_awake: bool,
    /// The network between the ends, e.g. `veth,mtu=1500,loss=10%,gso=off`; `None`: the host's own
    /// interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The number of this repeat of the same point, from 1.
    pub repeat: u32,
    /// Latency; `None` for other tests and without figures.
    pub latency_us: Option<LatencySummary>,
    /// The stages of that latency, if enabled; recording them is part of the latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<LatencyBreakdown>,
    /// Throughput; `None` for other tests and without figures.
    pub throughput: Option<ThroughputSummary>,
    /// Warnings about this case.
    pub warnings: Vec<Warning>,
    /// The reason why there are no figures, if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<NotMeasured>,
    /// Duration of the measurement in seconds, without warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// Scheduled samples per second; `None`: at full speed, or ping-pong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_samples_per_s: Option<f64>,
    /// That rate as percent of the engine's own measured maximum, if it was specified so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_percent: Option<f64>,
    /// How far the publisher was behind its schedule; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_lag_us: Option<ScheduleLag>,
    /// Whether samples are coalesced without a batching policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coalescing: Option<Coalescing>,
    /// Resource use of the publisher's process; with several, the sum and the largest peak of
    /// memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publisher: Option<ProcessFigures>,
    /// Resource use of the subscriber's process; with several, the sum and the largest peak of
    /// memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber: Option<ProcessFigures>,
    /// Discovery time; `None` for engines configured with their peer's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<Discovery>,
    /// Requested and granted socket buffers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_buffers: Option<SocketBuffers>,
    /// Causes of losses in the measured part, by the two sockets; `loss_attribution` is more
    /// complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<LossBreakdown>,
    /// Causes of the losses of the whole case, including warm-up, by the counters of both hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_attribution: Option<LossAttribution>,
    /// Activity of the (first) publisher's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publisher_telemetry: Option<Telemetry>,
    /// Activity of the (first) subscriber's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber_telemetry: Option<Telemetry>,
    /// Figures that only UDP tests have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpFigures>,
    /// Further effective settings, name to value, to reproduce the case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

impl Case {
    /// Creates a case without figures: not keyed, not batched, blocking, first repeat.
    #[must_use]
    pub fn new(engine: impl Into<String>, test: Test, reliability: Reliability, size_bytes: u64) -> Self {
        Self {
            engine: engine.into(),
            test,
            reliability,
            keyed: false,
            instances: 0,
            batch_bytes: 0,
            publishers: 1,
            subscribers: 1,
            multicast: false,
            loans: false,
            apart: false,
            size_bytes,
            wait: WaitStrategy::Block,
            kept_awake: false,
            path: None,
            repeat: 1,
            latency_us: None,
            breakdown: None,
            throughput: None,
            warnings: Vec::new(),
            not_measured: None,
            duration_s: None,
            rate_samples_per_s: None,
            load_percent: None,
            schedule_lag_us: None,
            coalescing: None,
            publisher: None,
            subscriber: None,
            discovery: None,
            socket_buffers: None,
            loss: None,
            loss_attribution: None,
            publisher_telemetry: None,
            subscriber_telemetry: None,
            udp: None,
            settings: BTreeMap::new(),
        }
    }

    /// Returns whether both are measurements of the same point, i.e. differ at most in the repeat.
    #[must_use]
    pub fn same_point(&self, other: &Self) -> bool {
        self.engine == other.engine
            && self.test == other.test
            && self.reliability == other.reliability
            && self.keyed == other.keyed
            && self.instances == other.instances
            && self.batch_bytes == other.batch_bytes
            && self.publishers == other.publishers
            && self.subscribers == other.subscribers
            && self.multicast == other.multicast
            && self.loans == other.loans
            && self.size_bytes == other.size_bytes
            && self.wait == other.wait
            && self.path == other.path
            && self.kept_awake == other.kept_awake
            && self.same_load(other)
            && self.coalescing == other.coalescing
            && match (&self.udp, &other.udp) {
                (Some(udp), Some(other)) => udp.same_conditions(other),
                (udp, other) => udp.is_none() && other.is_none(),
            }
    }

    /// A load in percent counts as the same, although the rate differs from run to run.
    fn same_load(&self, other: &Self) -> bool {
        self.load_percent == other.load_percent
            && (self.load_percent.is_some() || self.rate_samples_per_s == other.rate_samples_per_s)
    }
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "called by serde")]
const fn is_one(count: &u32) -> bool {
    *count == 1
}

/// What a case measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// The time of a sample.
    Latency,
    /// The rate of samples.
    Throughput,
}

/// Delivery guarantee of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reliability {
    /// Not applicable: plain UDP.
    None,
    /// DDS BEST_EFFORT.
    BestEffort,
    /// DDS RELIABLE.
    Reliable,
}

/// Whether samples written in quick succession leave together, without a batching policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coalescing {
    /// One send per sample.
    Off,
    /// Samples written faster than they can be sent leave together, each in its own datagram.
    Auto,
}

/// How the receiving threads wait for data.
///
/// Text form: `block`, `spin`, or `spin:50us` to spin that long before blocking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum WaitStrategy {
    /// Sleeps in the kernel at once.
    #[default]
    Block,
    /// Spins, then sleeps.
    SpinThenBlock {
        /// Time of spinning in microseconds.
        spin_us: u32,
    },
    /// Never sleeps.
    Spin,
}

impl WaitStrategy {
    /// Returns how long to spin in a wait of at most `timeout`.
    #[must_use]
    #[inline]
    pub fn spin(self, timeout: Duration) -> Duration {
        match self {
            Self::Block => Duration::ZERO,
            Self::SpinThenBlock { spin_us } => Duration::from_micros(spin_us.into()),
            Self::Spin => timeout,
        }
    }
}

/// The reason why a case has no figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum NotMeasured {
    /// The engine does not support it.
    NotSupported {
        /// What it does not support.
        reason: String,
    },
    /// An error occurred.
    Failed {
        /// What failed.
        reason: String,
    },
}

impl NotMeasured {
    /// Returns the reason.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::NotSupported { reason } | Self::Failed { reason } => reason,
        }
    }
}

impl fmt::Display for NotMeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSupported { reason } => write!(f, "not supported: {reason}"),
            Self::Failed { reason } => write!(f, "failed: {reason}"),
        }
    }
}

/// An unknown name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{found}` is not {expected}")]
pub struct ParseNameError {
    /// The name found.
    found: String,
    /// The names expected.
    expected: &'static str,
}

impl ParseNameError {
    pub(crate) fn new(found: &str, expected: &'static str) -> Self {
        Self { found: found.to_owned(), expected }
    }
}

impl Test {
    /// The name in the results format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Throughput => "throughput",
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Test {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "latency" => Ok(Self::Latency),
            "throughput" => Ok(Self::Throughput),
            _ => Err(ParseNameError::new(text, "a test: latency or throughput")),
        }
    }
}

impl Reliability {
    /// The name in the results format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::BestEffort => "best-effort",
            Self::Reliable => "reliable",
        }
    }
}

impl fmt::Display for Reliability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Reliability {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Self::None),
            "best-effort" => Ok(Self::BestEffort),
            "reliable" => Ok(Self::Reliable),
            _ => Err(ParseNameError::new(text, "a reliability: none, best-effort or reliable")),
        }
    }
}

impl Coalescing {
    /// The name in the results format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for Coalescing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for WaitStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block => f.pad("block"),
            Self::Spin => f.pad("spin"),
            Self::SpinThenBlock { spin_us } => f.pad(&format!("spin:{spin_us}us")),
        }
    }
}

impl FromStr for WaitStrategy {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let spin_us = |text: &str| text.strip_prefix("spin:")?.strip_suffix("us")?.parse().ok();
        match text {
            "block" => Ok(Self::Block),
            "spin" => Ok(Self::Spin),
            _ => match spin_us(text) {
                Some(spin_us) => Ok(Self::SpinThenBlock { spin_us }),
                None => Err(ParseNameError::new(
                    text,
                    "a wait strategy: block, spin, or spin:Nus to spin N microseconds and then block",
                )),
            },
        }
    }
}

impl From<WaitStrategy> for String {
    fn from(wait: WaitStrategy) -> Self {
        wait.to_string()
    }
}

impl TryFrom<String> for WaitStrategy {
    type Error = ParseNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_as_what_they_name() {
        for wait in [WaitStrategy::Block, WaitStrategy::Spin, WaitStrategy::SpinThenBlock { spin_us: 50 }] {
            assert_eq!(wait.to_string().parse(), Ok(wait));
        }
        for reliability in [Reliability::None, Reliability::BestEffort, Reliability::Reliable] {
            assert_eq!(reliability.name().parse(), Ok(reliability));
            assert_eq!(serde_json::to_value(reliability).unwrap(), reliability.name());
        }
        for test in [Test::Latency, Test::Throughput] {
            assert_eq!(test.name().parse(), Ok(test));
            assert_eq!(serde_json::to_value(test).unwrap(), test.name());
        }
        let error = "nap".parse::<WaitStrategy>().unwrap_err().to_string();
        assert!(error.starts_with("`nap` is not a wait strategy: block, spin"), "{error}");
    }

    #[test]
    fn only_the_repeat_may_differ_within_a_point() {
        let case = Case::new("weir", Test::Latency, Reliability::Reliable, 32);
        assert!(case.same_point(&Case { repeat: 2, ..case.clone() }));
        assert!(!case.same_point(&Case { size_bytes: 64, ..case.clone() }));
        assert!(!case.same_point(&Case { batch_bytes: 8192, ..case.clone() }));
        assert!(!case.same_point(&Case { wait: WaitStrategy::Spin, ..case.clone() }));
    }
}
