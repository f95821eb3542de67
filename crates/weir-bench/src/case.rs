//! One point of a measurement: everything that both of its ends must know.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use weir_measure::clock;
use weir_peer_api::LinkOptions;
use weir_results::{Reliability, Test, WaitStrategy};

use crate::beside::Beside;
use crate::path::PathSpec;
use crate::payload::SampleHeader;
use crate::rate::Rate;
use crate::workload::Workload;

/// One case. It travels to both ends over the control channel; an engine is opened with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseSpec {
    /// Name of the engine in the registry.
    pub engine: String,
    /// The test.
    pub test: Test,
    /// Whether samples may be lost.
    pub reliability: Reliability,
    /// Serialized size of a sample, including the 28 bytes before the payload.
    pub size_bytes: usize,
    /// Number of instances; 0 = unkeyed.
    pub instances: u32,
    /// Samples are gathered into messages of at most this many bytes by the engine's batching
    /// policy; 0 = off.
    pub batch_bytes: u32,
    /// Samples are sent by multicast, instead of to each subscriber.
    pub multicast: bool,
    /// Samples are loaned: written and read in place.
    pub loans: bool,
    /// The processes.
    pub ends: Ends,
    /// How a receiver waits.
    pub wait: WaitStrategy,
    /// Which repetition this is, from 1.
    pub repeat: u32,
    /// How long is measured.
    pub duration: Duration,
    /// How long the case runs before it is measured.
    pub warmup: Duration,
    /// The payload follows from the sequence number and is checked on arrival.
    pub verify: bool,
    /// Where it runs.
    pub place: Place,
    /// How it is measured, beyond the usual.
    pub method: Method,
    /// The nodes and topics of a workload; `None` for other tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
    /// The engine's settings, name to value; empty for engines that have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

/// The ends of a case, each a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ends {
    /// Publishers.
    pub publishers: u32,
    /// Subscribers; each receives everything of every publisher.
    pub subscribers: u32,
    /// Which of the ends of its kind this one is, from 0.
    pub entity_id: u32,
}

impl Ends {
    /// One publisher and one subscriber.
    pub const PAIR: Self = Self { publishers: 1, subscribers: 1, entity_id: 0 };
}

/// Where a case runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// DDS domain.
    pub domain: u32,
    /// Distinguishes this run from others on the same network at the same time.
    pub run_id: u32,
    /// Network interface that carries the samples, e.g. `lo`.
    pub interface: String,
    /// The IPv4 address of that interface.
    pub address: Ipv4Addr,
    /// The UDP port of this end, for engines without discovery; `None`: chosen by the kernel.
    pub port: Option<u16>,
    /// Socket buffers to request, bytes, in each direction.
    pub socket_buffer_bytes: usize,
    /// Processors of publisher and subscriber; `None`: not pinned.
    pub cpus: Option<CpuPair>,
}

impl Place {
    /// The loopback interface.
    #[must_use]
    pub fn loopback() -> Self {
        Self {
            domain: 0,
            run_id: 0,
            interface: "lo".to_owned(),
            address: Ipv4Addr::LOCALHOST,
            port: None,
            socket_buffer_bytes: CaseSpec::SOCKET_BUFFER_BYTES,
            cpus: None,
        }
    }
}

/// How a case is measured, beyond the usual, which is the default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// Both ends count their system calls, which makes each call slower.
    pub count_system_calls: bool,
    /// How often both ends sample their hosts; `None`: never.
    #[serde(default)]
    pub telemetry_period: Option<Duration>,
    /// How often both ends report what they have measured so far; `None`: only at the end.
    #[serde(default)]
    pub live_period: Option<Duration>,
    /// Both ends of a ping-pong record timestamps per stage.
    #[serde(default)]
    pub breakdown: bool,
    /// The processors of all hosts with ends are kept out of idle states.
    pub keep_awake: bool,
    /// The target rate of a schedule; `None`: a ping-pong, or as fast as possible.
    pub rate: Option<Rate>,
    /// The rate of that schedule, once it is known.
    pub samples_per_s: Option<f64>,
    /// Samples that writers and readers keep (KEEP_LAST): older ones may be lost although reliable. `None`: all.
    #[serde(default)]
    pub keep_last: Option<u32>,
    /// How much later than the publishers the subscribers are opened.
    #[serde(default)]
    pub late: Duration,
    /// The network path in words; `None`: the host's own interface.
    pub path: Option<String>,
    /// The link of the lab whose hosts the ends are on, which `path` has among other words; `None`: no lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab_link: Option<String>,
    /// The file of this end's network namespace; `None`: that of the process.
    pub namespace: Option<PathBuf>,
    /// The other hosts, for engines whose discovery by multicast may not reach them.
    #[serde(default)]
    pub peers: Vec<Ipv4Addr>,
    /// What shares the link.
    #[serde(default)]
    pub beside: Beside,
    /// Samples carry the time at which they were written, and their ages are measured.
    #[serde(default)]
    pub is_stamped: bool,
}

/// Where the two processes of a case run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuPair {
    /// Processor of the publisher (the pinger).
    pub publisher: usize,
    /// Processor of the subscriber (the ponger).
    pub subscriber: usize,
}

/// Why a case has no figures.
#[derive(Debug, Error)]
pub enum CaseError {
    /// The user stopped the run.
    #[error("interrupted")]
    Interrupted,
    /// The engine or program cannot do what the case asks.
    #[error("{0}")]
    NotSupported(String),
    /// A process, a peer or the host did not work.
    #[error("{0}")]
    Failed(String),
}

impl CaseSpec {
    /// Default socket buffers: 4 MiB.
    pub const SOCKET_BUFFER_BYTES: usize = 4 << 20;

    /// The largest sample that a case may have: 1 GiB.
    pub const SIZE_BYTES_MAX: usize = 1 << 30;

    /// A best-effort case of 32 bytes on the loopback interface, without any length.
    #[must_use]
    pub fn new(engine: &str, test: Test) -> Self {
        Self {
            engine: engine.to_owned(),
            test,
            reliability: Reliability::BestEffort,
            size_bytes: 32,
            instances: 0,
            batch_bytes: 0,
            multicast: false,
            loans: false,
            ends: Ends::PAIR,
            wait: WaitStrategy::Block,
            repeat: 1,
            duration: Duration::ZERO,
            warmup: Duration::ZERO,
            verify: false,
            place: Place::loopback(),
            method: Method::default(),
            workload: None,
            settings: BTreeMap::new(),
        }
    }

    /// Additional time for a step that handles a few samples of this size on a slow host: next to
    /// nothing for small ones, 86 seconds for 1 GiB.
    #[must_use]
    pub fn allowance(&self) -> Duration {
        // Four samples at 50 MB/s.
        Duration::from_nanos((self.size_bytes as u64).saturating_mul(4 * 20))
    }

    /// Whether samples carry a key.
    #[must_use]
    pub fn is_keyed(&self) -> bool {
        self.instances > 0
    }

    /// Whether samples are sent in one direction, rather than back and forth one at a time.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.test == Test::Throughput || self.method.samples_per_s.is_some()
    }

    /// What precedes the payload of a sample that this end writes now.
    #[must_use]
    #[inline]
    pub fn header(&self, sequence: u64) -> SampleHeader {
        let header = SampleHeader::data(sequence, self.instances).by(self.ends.entity_id);
        if self.method.is_stamped { header.written_at(clock::now_ns()) } else { header }
    }

    /// The virtual link between the ends, of the run or of their lab.
    #[must_use]
    pub fn virtual_link(&self) -> Option<PathSpec> {
        self.method.lab_link.as_ref().or(self.method.path.as_ref())?.parse().ok()
    }

    /// The virtual link, for engines that are configured for one; `None`: without one, or one without a rate.
    #[must_use]
    pub fn link(&self) -> Option<LinkOptions> {
        let spec = self.virtual_link()?;
        Some(LinkOptions { rate_bps: spec.rate_bps()?, round_trip: spec.round_trip() })
    }

    /// The same with a change.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// A topic name (or anything else that must differ between cases) that is the same at both ends.
    #[must_use]
    pub fn topic(&self) -> String {
        format!("weir_bench_{}_{}_{}_{}", self.place.run_id, self.test, self.size_bytes, self.repeat)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A case of 32 bytes: 50 ms of warm-up, 100 ms measured.
    pub(crate) fn case(engine: &str, test: Test) -> CaseSpec {
        let (warmup, duration) = (Duration::from_millis(50), Duration::from_millis(100));
        CaseSpec { warmup, duration, ..CaseSpec::new(engine, test) }
    }

    #[test]
    fn patience_grows_with_size() {
        let of = |size_bytes| CaseSpec { size_bytes, ..case("udp", Test::Latency) }.allowance();
        assert!(of(1024) < Duration::from_millis(1));
        assert!((Duration::from_secs(80)..Duration::from_secs(90)).contains(&of(1 << 30)));
    }

    #[test]
    fn samples_carry_the_time_of_writing_where_ages_are_measured() {
        let case = CaseSpec { instances: 2, ..case("udp", Test::Throughput) };
        assert_eq!(case.header(7), SampleHeader::data(7, 2));
        let stamped = case.clone().with(|case| case.method.is_stamped = true);
        let written_ns = stamped.header(7).written_ns();
        assert!((1..=clock::now_ns()).contains(&written_ns));
    }

    #[test]
    fn engines_can_be_configured_for_a_link_with_a_rate() {
        let link = |path: Option<&str>| {
            case("udp", Test::Throughput).with(|case| case.method.path = path.map(str::to_owned)).link()
        };
        let lte = LinkOptions { rate_bps: 20_000_000, round_trip: Duration::from_millis(60) };
        assert_eq!(link(Some("lte,jitter=0ms")), Some(lte));
        assert_eq!((link(Some("veth")), link(None)), (None, None));
        // Between the hosts of a lab, the path has more words.
        let of_lab = case("udp", Test::Throughput).with(|case| {
            case.method.path =
                Some("lab lte,jitter=0ms, pub=netns:weir-lab-a,sub=netns:weir-lab-b".to_owned());
            case.method.lab_link = Some("lte,jitter=0ms".to_owned());
        });
        assert_eq!(of_lab.link(), Some(lte));
    }

    #[test]
    fn a_case_survives_the_control_channel() {
        let case = case("udp", Test::Latency);
        let text = serde_json::to_string(&case).unwrap();
        assert_eq!(serde_json::from_str::<CaseSpec>(&text).unwrap(), case);
    }
}
