//! A case: one measured point of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    AgeSeries, CaseSeries, ClockRelation, Coalescing, Discovery, LatencyBreakdown, LatencyHistogram,
    LatencySummary, LinkFigures, LossAttribution, LossBreakdown, NotMeasured, PathFigures, ProcessFigures,
    Reliability, ScheduleLag, SocketBuffers, Telemetry, Test, ThroughputSummary, UdpFigures, WaitStrategy,
    Warning, WorkloadFigures,
};

/// One measured point: one engine, one test, one size, one repeat.
///
/// In the file, the fields of its four parts are one object.
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
    /// Warnings, and the observations behind them.
    #[serde(flatten)]
    pub evidence: Evidence,
}

/// What a case measures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
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
    /// Size of a sample in bytes.
    pub size_bytes: u64,
}

/// The conditions of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Whether the engine is of another kind than the others, so that it is shown separately and
    /// compared with nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
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
    /// Scheduled samples per second; `None`: at full speed, or ping-pong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_samples_per_s: Option<f64>,
    /// That rate as percent of the engine's own measured maximum, if it was specified so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_percent: Option<f64>,
    /// Samples that writers and readers keep (KEEP_LAST); `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_last: Option<u32>,
    /// What shared the link: `tcp`, or the size of the samples of another stream of the engine; `None`: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// The name of the workload; `None` for other tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_name: Option<String>,
    /// The digest of its nodes and topics, 16 hexadecimal digits: workloads of the same name with different
    /// contents are different points. `None` for other tests, and in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_digest: Option<String>,
    /// The value of the workload's parameter N, which is the end of its name, too; `None`: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_n: Option<u32>,
    /// Whether samples are coalesced without a batching policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coalescing: Option<Coalescing>,
    /// Further effective settings, name to value, to reproduce the case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

/// The figures of a case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Latency; `None` for other tests and without figures.
    pub latency_us: Option<LatencySummary>,
    /// The distribution of that latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<LatencyHistogram>,
    /// What the case did second by second, as the (first) end that measures saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<CaseSeries>,
    /// The ages of samples over time, as the (first) subscriber saw them: of a schedule, or over an emulated link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ages: Option<AgeSeries>,
    /// The stages of that latency, if enabled; recording them is part of the latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<LatencyBreakdown>,
    /// Throughput; `None` for other tests and without figures.
    pub throughput: Option<ThroughputSummary>,
    /// Duration of the measurement in seconds, without warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// How far the publisher was behind its schedule; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_lag_us: Option<ScheduleLag>,
    /// The relation of the subscriber's clock to the publisher's, if they are on hosts with clocks of their own and the
    /// latency is one way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<ClockRelation>,
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
    /// What an emulated link did; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkFigures>,
    /// Payload of what shared the link that arrived, Mbit/s; `None`: nothing shared it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside_mbps: Option<f64>,
    /// The (first) publisher's paths to other hosts; empty on one host, and for engines that do not report them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathFigures>,
    /// Figures that only UDP tests have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpFigures>,
    /// Figures of a workload; `None` for other tests and without figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadFigures>,
}

/// Warnings about a case, and the observations behind them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Warnings about this case.
    pub warnings: Vec<Warning>,
    /// The reason why there are no figures, if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<NotMeasured>,
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
}

impl Case {
    /// Creates a case without figures: not keyed, not batched, blocking, first repeat.
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

    /// Returns the case with a change.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Returns the figure that decides: the median latency in microseconds, the received samples per second, or the
    /// processor time of a workload in percent of one processor.
    #[must_use]
    pub fn headline(&self) -> Option<f64> {
        match self.point.test {
            Test::Latency => Some(self.figures.latency_us.filter(|latency| latency.count > 0)?.p50),
            Test::Throughput => Some(self.figures.throughput?.samples_per_s),
            // Who delivers less has less to do.
            Test::Workload => Some(self.figures.workload.as_ref().filter(|it| it.is_complete())?.cpu_percent),
        }
    }

    /// Returns whether both are measurements of the same point, i.e. differ at most in the repeat.
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
            keep_last: None,
            beside: None,
            workload_name: None,
            workload_digest: None,
            workload_n: None,
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
            && self.keep_last == other.keep_last
            && self.beside == other.beside
            && self.workload_name == other.workload_name
            && self.workload_digest == other.workload_digest
            && self.coalescing == other.coalescing
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

    #[test]
    fn workloads_of_one_name_with_different_contents_are_different_points() {
        let of = |digest: Option<&str>| {
            Case::new("weir", Test::Workload, Reliability::None, 0).with(|it| {
                it.conditions.workload_name = Some("mine".to_owned());
                it.conditions.workload_digest = digest.map(str::to_owned);
            })
        };
        assert!(of(Some("12ab")).same_point(&of(Some("12ab")).with(|it| it.conditions.repeat = 2)));
        assert!(!of(Some("12ab")).same_point(&of(Some("12ac"))));
        // Those of earlier versions have none.
        let mut earlier = serde_json::to_value(of(Some("12ab"))).unwrap();
        earlier.as_object_mut().unwrap().remove("workload_digest");
        let earlier: Case = serde_json::from_value(earlier).unwrap();
        assert_eq!(earlier.conditions.workload_digest, None);
        assert!(!earlier.same_point(&of(Some("12ab"))) && earlier.same_point(&of(None)));
    }
}
