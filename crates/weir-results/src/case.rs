//! A case: one measured point of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Coalescing, Discovery, LatencyBreakdown, LatencySummary, LossAttribution, LossBreakdown, NotMeasured,
    ProcessFigures, Reliability, ScheduleLag, SocketBuffers, Telemetry, Test, ThroughputSummary, UdpFigures,
    WaitStrategy, Warning,
};

/// One measured point: one engine, one test, one size, one repeat. In the file, the fields of its four parts are one object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// What was measured.
    #[serde(flatten)]
    pub point: Point,
    /// Under which conditions.
    #[serde(flatten)]
    pub conditions: Conditions,
    /// The result.
    #[serde(flatten)]
    pub figures: Figures,
    /// How far to trust it, and why.
    #[serde(flatten)]
    pub evidence: Evidence,
}

/// What a case measures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// The engine, in lower case: `udp` (the baseline), `weir`, or another name.
    pub engine: String,
    /// The test.
    pub test: Test,
    /// Delivery guarantee.
    pub reliability: Reliability,
    /// Whether the type has a key.
    pub keyed: bool,
    /// Instances, written in turn; 0 when not keyed.
    pub instances: u64,
    /// Most bytes that the engine's batching policy puts into one message; 0: no batching.
    pub batch_bytes: u64,
    /// Publishers, each with a process and a topic end of its own. With several ends of a kind the rates of
    /// [`ThroughputSummary`] are the mean of one subscriber (of all publishers together), its counts sums over all
    /// subscribers, and what is offered the sum over all publishers.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub publishers: u32,
    /// Subscribers; each receives everything of every publisher.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub subscribers: u32,
    /// Whether samples are sent by multicast.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multicast: bool,
    /// Whether samples are loaned: written and read in place, without copies in user space.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loans: bool,
    /// Size of a sample, bytes.
    pub size_bytes: u64,
}

/// The conditions of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Whether the engine is of another kind than those beside it: it is shown apart and compared with nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
    /// How the receiving threads wait.
    pub wait: WaitStrategy,
    /// Whether the processors were kept out of idle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept_awake: bool,
    /// The network path between the ends, e.g. `veth,mtu=1500,loss=10%,gso=off`; `None`: the host's own interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The repeat of the point, from 1.
    pub repeat: u32,
    /// The publisher's target rate, samples per second; `None`: as fast as possible, or ping-pong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_samples_per_s: Option<f64>,
    /// That rate as percent of the engine's own measured maximum, where it was given so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_percent: Option<f64>,
    /// Whether samples are coalesced without a batching policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coalescing: Option<Coalescing>,
    /// Further effective settings, name to value, to repeat the case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

/// The figures of a case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Latency; `None` for other tests and when nothing was measured.
    pub latency_us: Option<LatencySummary>,
    /// The stages of that latency, when enabled; recording them is part of the latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<LatencyBreakdown>,
    /// Throughput; `None` for other tests and when nothing was measured.
    pub throughput: Option<ThroughputSummary>,
    /// How long measuring took, seconds, warm-up not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// How far behind its schedule the publisher was; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_lag_us: Option<ScheduleLag>,
    /// What the publisher's process used; with several the sum, and the largest peak of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publisher: Option<ProcessFigures>,
    /// What the subscriber's process used; with several the sum, and the largest peak of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber: Option<ProcessFigures>,
    /// How long the ends took to find each other; `None` for engines without discovery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<Discovery>,
    /// What only a UDP test has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpFigures>,
}

/// What supports the figures of a case, or casts doubt on them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Doubts about this case.
    pub warnings: Vec<Warning>,
    /// Why there are no figures; `None` when there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<NotMeasured>,
    /// Socket buffers requested and granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_buffers: Option<SocketBuffers>,
    /// Where samples of the measured part were lost, as far as the two sockets show; `loss_attribution` knows more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<LossBreakdown>,
    /// Where samples of the whole case, warm-up included, were lost, by the counters of both hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_attribution: Option<LossAttribution>,
    /// What the (first) publisher's host did meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publisher_telemetry: Option<Telemetry>,
    /// What the (first) subscriber's host did meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber_telemetry: Option<Telemetry>,
}

impl Case {
    /// A case without figures: not keyed, not batched, blocking, first repeat.
    #[must_use]
    pub fn new(engine: impl Into<String>, test: Test, reliability: Reliability, size_bytes: u64) -> Self {
        Self {
            point: Point {
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
                size_bytes,
            },
            conditions: Conditions::default(),
            figures: Figures::default(),
            evidence: Evidence::default(),
        }
    }

    /// The same with a change.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Whether both are measurements of the same point, i.e. differ in the repeat at most.
    #[must_use]
    pub fn same_point(&self, other: &Self) -> bool {
        self.point == other.point
            && self.conditions.same(&other.conditions)
            && match (&self.figures.udp, &other.figures.udp) {
                (Some(udp), Some(other)) => udp.same_conditions(other),
                (udp, other) => udp.is_none() && other.is_none(),
            }
    }
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            apart: false,
            wait: WaitStrategy::Block,
            kept_awake: false,
            path: None,
            repeat: 1,
            rate_samples_per_s: None,
            load_percent: None,
            coalescing: None,
            settings: BTreeMap::new(),
        }
    }
}

impl Conditions {
    fn same(&self, other: &Self) -> bool {
        self.wait == other.wait
            && self.path == other.path
            && self.kept_awake == other.kept_awake
            && self.same_load(other)
            && self.coalescing == other.coalescing
    }

    /// A share of the maximum, which differs from run to run, is compared as a share.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_repeat_may_differ_within_a_point() {
        let case = Case::new("weir", Test::Latency, Reliability::Reliable, 32);
        assert!(case.same_point(&case.clone().with(|it| it.conditions.repeat = 2)));
        assert!(!case.same_point(&case.clone().with(|it| it.point.size_bytes = 64)));
        assert!(!case.same_point(&case.clone().with(|it| it.point.batch_bytes = 8192)));
        assert!(!case.same_point(&case.clone().with(|it| it.conditions.wait = WaitStrategy::Spin)));
    }
}
