//! A run and its cases: the record that everything else is computed from.

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

/// Everything one command measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Version of the format: [`SCHEMA_VERSION`].
    pub schema: u32,
    /// The machine and program.
    pub environment: Environment,
    /// The machine and program at the other end, where that is another process that was there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Environment>,
    /// What was measured, in the order it was.
    pub cases: Vec<Case>,
}

impl Run {
    /// A run without cases yet.
    #[must_use]
    pub const fn new(environment: Environment) -> Self {
        Self { schema: SCHEMA_VERSION, environment, peer: None, cases: Vec::new() }
    }
}

/// One measured point: one engine, one test, one size, one repeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Who carried the samples: `udp` (the floor), `weir`, or another engine's name in lower case.
    pub engine: String,
    /// What was measured.
    pub test: Test,
    /// Delivery guarantee.
    pub reliability: Reliability,
    /// Whether the type has a key.
    pub keyed: bool,
    /// Instances written in turn; 0 when not keyed.
    pub instances: u64,
    /// Most bytes that the engine's batching policy puts into one message; 0 = no batching.
    pub batch_bytes: u64,
    /// Publishers, each with a process and a topic end of its own. With several ends of a kind the
    /// rates of [`ThroughputSummary`] are the mean of one subscriber (of all publishers together), its
    /// counts sums over all subscribers, and what is offered the sum over all publishers.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub publishers: u32,
    /// Subscribers; each receives everything of every publisher.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub subscribers: u32,
    /// Whether samples travel by multicast.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multicast: bool,
    /// Whether samples are filled where they are sent from, and read where they were put together,
    /// without copies in user space.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loans: bool,
    /// Whether the engine is another kind of thing than those that it was measured beside, so that it is
    /// shown apart and compared with nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
    /// Size of a sample, bytes.
    pub size_bytes: u64,
    /// How the receiving threads wait.
    pub wait: WaitStrategy,
    /// Whether the processors were kept out of idle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept_awake: bool,
    /// What lay between the ends, e.g. `veth,mtu=1500,loss=10%,gso=off`; `None` = the host's own interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Which repeat of the same point this is, from 1.
    pub repeat: u32,
    /// Latency; `None` for other tests and when nothing was measured.
    pub latency_us: Option<LatencySummary>,
    /// The stages of that latency, where they were asked for; what looks at them is part of the latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<LatencyBreakdown>,
    /// Throughput; `None` for other tests and when nothing was measured.
    pub throughput: Option<ThroughputSummary>,
    /// Doubts about this case.
    pub warnings: Vec<Warning>,
    /// Why there are no figures; `None` when there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<NotMeasured>,
    /// How long measuring took, seconds, warm-up not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// Samples per second that the publisher was told to write; `None` = as fast as it can, or
    /// ping-pong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_samples_per_s: Option<f64>,
    /// That rate as percent of the engine's own measured maximum, where it was asked for so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_percent: Option<f64>,
    /// How far behind its schedule the publisher was; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_lag_us: Option<ScheduleLag>,
    /// Whether samples wait for each other without a batching policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coalescing: Option<Coalescing>,
    /// What the publisher's process used; with several the sum, and the largest peak of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publisher: Option<ProcessFigures>,
    /// What the subscriber's process used; with several the sum, and the largest peak of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber: Option<ProcessFigures>,
    /// How long the ends took to find each other; `None` for engines that are told where their peer is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<Discovery>,
    /// Socket buffers asked for and granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_buffers: Option<SocketBuffers>,
    /// Where lost samples of the measured part went, as far as the two sockets tell; `loss_attribution` knows
    /// more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<LossBreakdown>,
    /// Where the lost samples of the whole case went, those of its warm-up included, by the counters of
    /// both hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_attribution: Option<LossAttribution>,
    /// What the (first) publisher's host did meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publisher_telemetry: Option<Telemetry>,
    /// What the (first) subscriber's host did meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber_telemetry: Option<Telemetry>,
    /// What only a UDP test has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpFigures>,
    /// Further effective settings, name to value, for whoever wants to repeat the case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

impl Case {
    /// A case without figures: not keyed, not batched, blocking, first repeat.
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

    /// Whether both are measurements of the same point, i.e. differ in the repeat at most.
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

    /// Of a share of the maximum, which differs from run to run, the share is what was asked for.
    fn same_load(&self, other: &Self) -> bool {
        self.load_percent == other.load_percent
            && (self.load_percent.is_some() || self.rate_samples_per_s == other.rate_samples_per_s)
    }
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_one(count: &u32) -> bool {
    *count == 1
}

/// What a case measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// The time of one sample.
    Latency,
    /// The rate of many.
    Throughput,
}

/// Delivery guarantee of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reliability {
    /// The engine knows no such thing: plain UDP.
    None,
    /// DDS BEST_EFFORT.
    BestEffort,
    /// DDS RELIABLE.
    Reliable,
}

/// Whether samples that follow each other quickly leave together, without a batching policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coalescing {
    /// One send per sample.
    Off,
    /// Samples written faster than they can be sent leave together, each in its own datagram.
    Auto,
}

/// How the receiving threads wait for data. In text: `block`, `spin`, or `spin:50us` for spinning that
/// long before blocking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum WaitStrategy {
    /// Sleep in the kernel at once.
    #[default]
    Block,
    /// Spin for so many microseconds, then sleep.
    SpinThenBlock {
        /// Microseconds of spinning.
        spin_us: u32,
    },
    /// Never sleep.
    Spin,
}

impl WaitStrategy {
    /// How long to spin of a wait that takes no longer than `timeout`.
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

/// Why a case has no figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum NotMeasured {
    /// The engine can't do this.
    NotSupported {
        /// What it can't do.
        reason: String,
    },
    /// It should have worked but did not.
    Failed {
        /// What went wrong.
        reason: String,
    },
}

impl NotMeasured {
    /// What the engine can't do or what went wrong.
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

/// A name that is none of the known ones.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{found}` is not {expected}")]
pub struct ParseNameError {
    /// What was found.
    found: String,
    /// What was expected.
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
