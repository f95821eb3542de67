//! The interface between the harness and an engine.
//!
//! An [`Engine`] opens the four ends of measurements: [`Publisher`] and [`Subscriber`] for
//! throughput, [`Pinger`] and [`Ponger`] for latency. The harness never asks which engine it has.
//! An engine states what it can do by [`Capabilities`]; other cases are reported as not supported.
//!
//! The interface costs next to nothing per sample, since engines reach ten million a second. A
//! publisher gets a burst of samples per (virtual) call. A subscriber passes every sample to a
//! [`SampleSink`], whose [`SampleSink::accept`] is inlined into the engine's receive loop. The
//! clock is read once per burst and once per batch.
//!
//! Life cycle of an end: `open_*` (sockets and entities exist, nothing sent) -> [`End::address`] is
//! given to the peer -> [`End::connect`] (raw UDP connects; a DDS engine waits for the match) ->
//! the measurement -> [`End::report`] -> dropped.

use std::net::SocketAddrV4;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thiserror::Error;
use weir_measure::{Idle, clock, wait_until};
use weir_peer_api::{PeerError, Setting};
use weir_results::{EngineCounts, Reliability, SocketBuffers};

use crate::breakdown::Trace;
use crate::case::CaseSpec;
use crate::latency::Pings;
use crate::path_watch::PathProbe;
use crate::payload::SampleHeader;
use crate::sink::SampleSink;

/// Something that carries samples from one process to another, and can be measured.
///
/// `open_*` has a default that refuses, for what the engine's capabilities exclude.
pub trait Engine: Send + Sync {
    /// The name on the command line and in results, e.g. `udp`.
    fn name(&self) -> &'static str;

    /// One line for `--help`; `None` hides the engine there.
    fn about(&self) -> Option<&'static str>;

    /// Its capabilities.
    fn capabilities(&self) -> Capabilities;

    /// Whether it is another kind of thing, so that it is shown apart and compared with nothing.
    fn is_apart(&self) -> bool {
        false
    }

    /// Whether it speaks RTPS, so that it can be paired with others that do.
    fn speaks_rtps(&self) -> bool {
        false
    }

    /// Whether it cuts samples so that each piece fits one packet of the path, and leaves none to be cut by IP.
    fn fits_datagrams_to_packets(&self) -> bool {
        false
    }

    /// Which version it is, for engines that are not ours.
    fn version(&self) -> Option<String> {
        None
    }

    /// What can be tuned, with the values that it is measured with unless the user chooses others.
    fn settings(&self) -> &'static [Setting] {
        &[]
    }

    /// Opens the sending end of a throughput case.
    fn open_publisher(&self, case: &CaseSpec) -> Result<Box<dyn Publisher>, EndpointError> {
        Err(EndpointError::not_supported(&case.engine, "throughput"))
    }

    /// Opens the receiving end of a throughput case.
    fn open_subscriber(&self, case: &CaseSpec) -> Result<Box<dyn Subscriber>, EndpointError> {
        Err(EndpointError::not_supported(&case.engine, "throughput"))
    }

    /// Opens the end of a latency case that sends first and measures.
    fn open_pinger(&self, case: &CaseSpec) -> Result<Box<dyn Pinger>, EndpointError> {
        Err(EndpointError::not_supported(&case.engine, "latency"))
    }

    /// Opens the end of a latency case that echoes.
    fn open_ponger(&self, case: &CaseSpec) -> Result<Box<dyn Ponger>, EndpointError> {
        Err(EndpointError::not_supported(&case.engine, "latency"))
    }

    /// Opens a node of a workload, without endpoints.
    fn open_node(&self, case: &CaseSpec) -> Result<Box<dyn WorkloadNode>, EndpointError> {
        Err(EndpointError::not_supported(&case.engine, "workloads"))
    }
}

/// What an engine can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether it has a ping-pong.
    pub latency: bool,
    /// Whether it has a one-way stream.
    pub throughput: bool,
    /// Its reliability.
    pub reliability: ReliabilitySupport,
    /// Whether samples can belong to instances.
    pub keyed: bool,
    /// Whether it has a policy that gathers samples into one message.
    pub batching: bool,
    /// Whether several publishers and subscribers can be matched.
    pub many: bool,
    /// Whether samples can travel by multicast.
    pub multicast: bool,
    /// Whether samples can be loaned: written and read without a copy in user space.
    pub loans: bool,
    /// Whether it can be made to keep a given number of samples.
    pub keep_last: bool,
    /// Whether its receivers can wait without sleeping.
    pub spinning: bool,
    /// Whether its ping-pong can say when samples pass from stage to stage.
    pub breakdown: bool,
    /// The largest sample, bytes as in `--sizes`.
    pub size_bytes_max: usize,
    /// The same in workloads.
    pub workload_bytes_max: usize,
}

impl Capabilities {
    /// Everything, up to the largest case.
    pub const ALL: Self = Self {
        latency: true,
        throughput: true,
        reliability: ReliabilitySupport::Both,
        keyed: true,
        batching: true,
        many: true,
        multicast: true,
        loans: true,
        keep_last: true,
        spinning: true,
        breakdown: true,
        size_bytes_max: CaseSpec::SIZE_BYTES_MAX,
        workload_bytes_max: CaseSpec::SIZE_BYTES_MAX,
    };

    /// What two engines can do together.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            latency: self.latency && other.latency,
            throughput: self.throughput && other.throughput,
            reliability: self.reliability.and(other.reliability),
            keyed: self.keyed && other.keyed,
            batching: self.batching && other.batching,
            many: self.many && other.many,
            multicast: self.multicast && other.multicast,
            loans: self.loans && other.loans,
            keep_last: self.keep_last && other.keep_last,
            spinning: self.spinning && other.spinning,
            breakdown: self.breakdown && other.breakdown,
            size_bytes_max: self.size_bytes_max.min(other.size_bytes_max),
            workload_bytes_max: self.workload_bytes_max.min(other.workload_bytes_max),
        }
    }
}

/// The reliability that an engine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReliabilitySupport {
    /// None: it runs once per size, and is reported as best effort. The baselines.
    None,
    /// Best effort only.
    BestEffort,
    /// Reliable only.
    Reliable,
    /// Best effort and reliable.
    Both,
}

impl ReliabilitySupport {
    /// Whether a case of this reliability can run.
    #[must_use]
    pub fn supports(self, reliability: Reliability) -> bool {
        match self {
            Self::None | Self::BestEffort => reliability == Reliability::BestEffort,
            Self::Reliable => reliability == Reliability::Reliable,
            Self::Both => true,
        }
    }

    /// The reliability that both have.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Both, it) | (it, Self::Both) => it,
            (one, other) if one == other => one,
            _ => Self::None,
        }
    }
}

/// What all four ends have in common.
pub trait End {
    /// Where the peer finds this end, for engines that do not discover each other.
    fn address(&self) -> Option<SocketAddrV4> {
        None
    }

    /// Connects to the peer's address, or waits for the match. When it returns, samples sent in
    /// either direction arrive.
    ///
    /// # Errors
    /// [`EndpointError::NoPeer`] when no peer was found within `timeout`.
    fn connect(&mut self, peer: Option<SocketAddrV4>, timeout: Duration) -> Result<(), EndpointError>;

    /// Why another end that was found is no match; `None` when none was found, or the engine cannot say.
    fn mismatch(&self) -> Option<String> {
        None
    }

    /// What the end has to say about itself so far; called before and after the measured part.
    fn report(&self) -> EndReport {
        EndReport::default()
    }

    /// The timestamps of a ping-pong, if [`Method::breakdown`](crate::case::Method::breakdown)
    /// enables them.
    fn trace(&mut self) -> Option<Trace> {
        None
    }

    /// What reads the engine's paths to other hosts, on another thread; `None` for engines that do not report them.
    fn path_probe(&self) -> Option<PathProbe> {
        None
    }

    /// The clock that this end is measured with: the host's monotonic one, unless the engine makes
    /// its own time (the mock does).
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    /// Waits until that clock shows `until_ns`: asleep, and awake at the end. Returns the time
    /// then. A time in the past costs one clock read.
    fn wait_until(&mut self, until_ns: u64) -> u64 {
        wait_until(until_ns, Idle::SleepThenYield, || false)
    }
}

/// The sending end of a throughput case.
pub trait Publisher: End {
    /// Sends the samples `first..first + count`, in order, and returns how many of them the engine
    /// took. Fewer than `count` means that it would have blocked longer than its
    /// `max_blocking_time`, or that the socket's buffer is full: the harness calls again with the
    /// rest. A sample that the system refused (counted in [`EngineCounts::refused`]) was taken: it is
    /// lost, not repeated.
    fn publish(&mut self, first: u64, count: u32) -> Result<u32, EndpointError>;

    /// Sends samples that wait and, where reliable, waits until everything is acknowledged; false
    /// when `timeout` came first.
    fn flush(&mut self, timeout: Duration) -> Result<bool, EndpointError>;

    /// Sends the final marker, [`SampleHeader::last`](crate::payload::SampleHeader::last), after
    /// `sent` samples, for ends without a coordinator. False when the engine did not take it.
    fn publish_last(&mut self, sent: u64) -> Result<bool, EndpointError>;
}

/// The receiving end of a throughput case.
pub trait Subscriber: End {
    /// Waits up to `timeout` for samples, by the case's wait strategy, and passes them to `sink`.
    /// Returns after one batch, or after some milliseconds of uninterrupted arrivals at the latest,
    /// so that the harness can read the clock.
    fn receive(&mut self, sink: &mut SampleSink, timeout: Duration) -> Result<(), EndpointError>;
}

/// The end of a latency case that sends first and measures.
pub trait Pinger: End {
    /// Sends one ping and waits for its echo; false when `timeout` came first. Echoes of earlier
    /// pings are ignored. `sent_ns` is the sample's timestamp.
    fn ping(&mut self, sequence: u64, sent_ns: u64, timeout: Duration) -> Result<bool, EndpointError>;

    /// Pings until the time is over or `stop` is set. An engine that receives on its own thread
    /// sends the next ping from there, as its users would.
    ///
    /// The clock is read once per ping: the arrival of an echo is the start of the next ping. The
    /// few nanoseconds that the harness takes in between count as the ping's time.
    fn run(&mut self, mut pings: Pings, stop: &AtomicBool) -> Result<Pings, EndpointError> {
        let mut now_ns = self.now_ns();
        loop {
            let sequence = pings.next(now_ns);
            let came_back = self.ping(sequence, now_ns, pings.timeout())?;
            now_ns = self.now_ns();
            let is_over = if came_back { pings.came_back(now_ns) } else { pings.is_lost(now_ns)? };
            if is_over || stop.load(Ordering::Relaxed) {
                return Ok(pings);
            }
        }
    }
}

/// The end of a latency case that echoes.
pub trait Ponger: End {
    /// Echoes every ping, here or on the engine's own threads, until `stop` is set (checked every
    /// 50 ms or so), and returns how many it echoed.
    fn echo(&mut self, stop: &AtomicBool) -> Result<u64, EndpointError>;
}

/// A node of a workload: a participant, or what the engine has instead.
pub trait WorkloadNode: Send {
    /// Opens a writer.
    fn open_writer(&mut self, topic: &TopicSetup) -> Result<Box<dyn TopicWriter>, EndpointError>;

    /// Opens a reader, which passes samples to `on_sample` on the engine's threads.
    fn open_reader(
        &mut self,
        topic: &TopicSetup,
        on_sample: OnArrival,
    ) -> Result<Box<dyn TopicReader>, EndpointError>;

    /// Where other nodes find this one, for engines without discovery.
    fn address(&self) -> Option<SocketAddrV4> {
        None
    }

    /// Gives the node the addresses of all nodes, by their numbers, for engines without discovery.
    fn connect(&mut self, _nodes: &[SocketAddrV4]) -> Result<(), EndpointError> {
        Ok(())
    }
}

/// Called with each sample that a reader receives.
pub type OnArrival = Box<dyn Fn(&SampleHeader) + Send + Sync>;

/// A topic of a workload, as an endpoint is opened with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSetup {
    /// Its name, which differs between runs.
    pub name: String,
    /// Serialized size of a sample, with the 28 bytes before the payload.
    pub size_bytes: usize,
    /// Whether samples may be lost.
    pub reliability: Reliability,
    /// Samples that writers and readers keep (KEEP_LAST); `None`: all.
    pub keep_last: Option<u32>,
    /// Instances of all writers; 0: not keyed.
    pub instances: u32,
    /// Numbers of the writers: samples carry them.
    pub writers: Range<usize>,
    /// Numbers of the nodes with readers.
    pub readers: Vec<usize>,
}

/// A writer of a node.
pub trait TopicWriter: Send {
    /// Writes a sample; false when the engine would have blocked for longer than its `max_blocking_time`.
    fn write(&mut self, header: &SampleHeader) -> Result<bool, EndpointError>;

    /// How many readers are matched.
    fn matched(&self) -> u32;
}

/// A reader of a node.
pub trait TopicReader: Send {
    /// How many writers are matched.
    fn matched(&self) -> u32;
}

/// What an end knows about itself, counted from its opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndReport {
    /// Datagrams with user data that it sent; `None` when the engine can't say.
    pub datagrams: Option<u64>,
    /// System calls that sent them; `None` when the engine can't say.
    pub sends: Option<u64>,
    /// What the engine counted itself about losses.
    pub engine: EngineCounts,
    /// Datagrams dropped at this end's receiving socket; `None` when the engine can't say.
    pub kernel_drops: Option<u64>,
    /// Socket buffers requested and granted.
    pub buffers: SocketBuffers,
}

/// Why an end does not work.
#[derive(Debug, Error)]
pub enum EndpointError {
    /// The engine cannot do what the case asks.
    #[error("{engine} does not support {what}")]
    NotSupported {
        /// The engine.
        engine: String,
        /// The missing capability.
        what: String,
    },
    /// The host refuses: a port in use, no permission, no such interface.
    #[error("{0}")]
    Environment(String),
    /// No peer was found.
    #[error("no peer: {0}")]
    NoPeer(String),
    /// The engine reported an error of its own.
    #[error("{0}")]
    Engine(String),
}

impl From<PeerError> for EndpointError {
    fn from(error: PeerError) -> Self {
        Self::Engine(error.to_string())
    }
}

impl EndpointError {
    /// The engine `engine` has no `what`.
    #[must_use]
    pub fn not_supported(engine: &str, what: &str) -> Self {
        Self::NotSupported { engine: engine.to_owned(), what: what.to_owned() }
    }
}
