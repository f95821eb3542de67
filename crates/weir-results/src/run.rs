//! A run, and the names in its cases.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::names::{ParseNameError, names};
use crate::{Case, Environment, HostRecord};

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
    /// The hosts of the ends, if they were placed on hosts. `environment` is that of the (first) publisher's host then,
    /// and `peer` that of the (first) subscriber's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostRecord>,
    /// The cases, in the order of measuring.
    pub cases: Vec<Case>,
}

impl Run {
    /// Creates a run without cases.
    #[must_use]
    pub const fn new(environment: Environment) -> Self {
        Self { schema: SCHEMA_VERSION, environment, peer: None, hosts: Vec::new(), cases: Vec::new() }
    }
}

/// What a case measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// The time of a sample.
    Latency,
    /// The rate of samples.
    Throughput,
    /// Processor time and ages of samples of many topics at fixed rates.
    Workload,
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

names!(
    Test { Latency = "latency", Throughput = "throughput", Workload = "workload" },
    expected "a test: latency or throughput"
);

names!(
    Reliability { None = "none", BestEffort = "best-effort", Reliable = "reliable" },
    expected "a reliability: none, best-effort or reliable"
);

names!(Coalescing { Off = "off", Auto = "auto" });

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
        for test in [Test::Latency, Test::Throughput, Test::Workload] {
            assert_eq!(test.name().parse(), Ok(test));
            assert_eq!(serde_json::to_value(test).unwrap(), test.name());
        }
        let error = "nap".parse::<WaitStrategy>().unwrap_err().to_string();
        assert!(error.starts_with("`nap` is not a wait strategy: block, spin"), "{error}");
    }
}
