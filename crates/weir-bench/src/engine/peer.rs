//! Other engines: each [`Peer`] is an engine of the harness.
//!
//! They receive on their own threads and pass samples to a listener there. A ponger's listener echoes, and
//! a pinger's listener sends the next ping. A subscriber's listener puts samples into an [`Inbox`], which
//! the harness polls.

mod workload;

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use weir_peer_api::{Header, Matches, Node, NodeOptions, Peer, Setting, Writer, Written};
use weir_results::{Reliability, WaitStrategy};

use crate::case::CaseSpec;
use crate::endpoint::{
    Capabilities, End, EndpointError, Engine, Pinger, Ponger, Publisher, ReliabilitySupport, Subscriber,
    WorkloadNode,
};
use crate::inbox::{Collector, Inbox};
use crate::latency::Pings;
use crate::payload::{self, HEADER_BYTES, SampleHeader};
use crate::ping_pong::PingPong;
use crate::sink::SampleSink;
use workload::PeerNode;

/// Longest that a write may wait; the harness retries until its own timeout.
const WRITE_PATIENCE: Duration = Duration::from_millis(500);

/// How often an end checks whether it is matched, or whether its pings are over.
const MATCH_PAUSE: Duration = Duration::from_millis(1);

/// How often a subscriber empties its inbox: rarely enough not to disturb the engine's threads on the same
/// processor, and often enough that waiting samples do not fill its cache.
const INBOX_PAUSE: Duration = Duration::from_millis(1);

impl Engine for Peer {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> Option<&'static str> {
        Some(self.about)
    }

    fn capabilities(&self) -> Capabilities {
        let can = self.abilities;
        Capabilities {
            latency: true,
            throughput: true,
            reliability: match (can.best_effort, can.reliable) {
                (true, true) => ReliabilitySupport::Both,
                (false, true) => ReliabilitySupport::Reliable,
                _ => ReliabilitySupport::BestEffort,
            },
            keyed: can.keyed,
            batching: can.batching,
            many: can.many,
            multicast: false,
            loans: false,
            keep_last: false,
            spinning: can.spinning,
            breakdown: false,
            size_bytes_max: can.size_bytes_max.min(CaseSpec::SIZE_BYTES_MAX),
            workload_bytes_max: can.size_bytes_max.min(CaseSpec::SIZE_BYTES_MAX),
        }
    }

    fn is_apart(&self) -> bool {
        !self.abilities.is_dds
    }

    fn speaks_rtps(&self) -> bool {
        self.abilities.is_dds
    }

    fn fits_datagrams_to_packets(&self) -> bool {
        self.abilities.fits_packets
    }

    fn version(&self) -> Option<String> {
        Some((self.calls.version)())
    }

    fn settings(&self) -> &'static [Setting] {
        self.settings
    }

    fn open_publisher(&self, case: &CaseSpec) -> Result<Box<dyn Publisher>, EndpointError> {
        let payload = vec![0; case.size_bytes.saturating_sub(HEADER_BYTES)];
        let publishing = Publishing { case: case.clone(), payload };
        let wanted = Matches { readers: case.ends.subscribers, writers: 0 };
        let node = self.open(&node_options(case, Some(""), None), Box::new(|_, _, _| {}))?;
        Ok(Box::new(PeerEnd { node, wanted, role: publishing }))
    }

    fn open_subscriber(&self, case: &CaseSpec) -> Result<Box<dyn Subscriber>, EndpointError> {
        let inbox = Arc::new(Inbox::new(case));
        let arrivals = Arc::clone(&inbox);
        let on_sample =
            Box::new(move |_: &dyn Writer, header: &Header, payload: &[u8]| arrivals.push(header, payload));
        let subscribing = Subscribing { inbox, collector: Collector::new() };
        let wanted = Matches { readers: 0, writers: case.ends.publishers };
        let node = self.open(&node_options(case, None, Some("")), on_sample)?;
        Ok(Box::new(PeerEnd { node, wanted, role: subscribing }))
    }

    fn open_node(&self, case: &CaseSpec) -> Result<Box<dyn WorkloadNode>, EndpointError> {
        let options = NodeOptions {
            settings: case.settings.clone(),
            ..NodeOptions::of_participant(case.place.domain, case.place.interface.clone(), case.place.address)
        };
        let participant = self.open_participant(&options);
        let participant =
            participant.ok_or_else(|| EndpointError::not_supported(self.name, "workloads"))??;
        Ok(Box::new(PeerNode { participant }))
    }

    fn open_pinger(&self, case: &CaseSpec) -> Result<Box<dyn Pinger>, EndpointError> {
        let ping_pong = Arc::new(PingPong::new(case));
        let echoes = Arc::clone(&ping_pong);
        let on_sample =
            Box::new(move |writer: &dyn Writer, header: &Header, _: &[u8]| echoes.answer(writer, header));
        let node = self.open(&node_options(case, Some("_ping"), Some("_pong")), on_sample)?;
        Ok(Box::new(PeerEnd { node, wanted: PAIR, role: Pinging { engine: self.name, ping_pong } }))
    }

    fn open_ponger(&self, case: &CaseSpec) -> Result<Box<dyn Ponger>, EndpointError> {
        let echoed = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&echoed);
        let on_sample = Box::new(move |writer: &dyn Writer, header: &Header, payload: &[u8]| {
            // A ping that cannot be echoed is lost, which the other side counts.
            if writer.write(header, payload) == Ok(Written::Taken) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let node = self.open(&node_options(case, Some("_pong"), Some("_ping")), on_sample)?;
        Ok(Box::new(PeerEnd { node, wanted: PAIR, role: Ponging { echoed } }))
    }
}

/// What the options say of a node that writes or reads the case's topic with these suffixes.
fn node_options(case: &CaseSpec, write: Option<&str>, read: Option<&str>) -> NodeOptions {
    let topic = |suffix: &str| case.topic() + suffix;
    NodeOptions {
        domain: case.place.domain,
        interface: case.place.interface.clone(),
        address: case.place.address,
        is_reliable: case.reliability == Reliability::Reliable,
        is_keyed: case.is_keyed(),
        instances: case.instances,
        // A ping-pong has one sample in flight.
        keeps_all: case.is_stream(),
        is_batching: case.batch_bytes > 0,
        payload_bytes: case.size_bytes.saturating_sub(HEADER_BYTES),
        is_spinning: case.wait == WaitStrategy::Spin,
        max_blocking_time: WRITE_PATIENCE,
        link: case.link(),
        write_topic: write.map(topic),
        read_topic: read.map(topic),
        settings: case.settings.clone(),
    }
}

/// An end with the state of its role.
struct PeerEnd<R> {
    node: Box<dyn Node>,
    /// The endpoints that it waits for.
    wanted: Matches,
    role: R,
}

/// What the ends of a ping-pong wait for.
const PAIR: Matches = Matches { readers: 1, writers: 1 };

impl<R> End for PeerEnd<R> {
    fn address(&self) -> Option<SocketAddrV4> {
        self.node.address()
    }

    fn connect(&mut self, peer: Option<SocketAddrV4>, timeout: Duration) -> Result<(), EndpointError> {
        let Matches { readers, writers } = self.wanted;
        self.node.join(peer)?;
        let deadline = Instant::now() + timeout;
        loop {
            let matches = self.node.matches();
            if matches.readers >= readers && matches.writers >= writers {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(EndpointError::NoPeer(format!(
                    "{} of {readers} readers and {} of {writers} writers are matched after {timeout:?}",
                    matches.readers, matches.writers
                )));
            }
            std::thread::sleep(MATCH_PAUSE);
        }
    }
}

struct Publishing {
    case: CaseSpec,
    payload: Vec<u8>,
}

impl Publisher for PeerEnd<Publishing> {
    fn publish(&mut self, first: u64, count: u32) -> Result<u32, EndpointError> {
        let (writer, Publishing { case, payload }) = (self.node.writer(), &mut self.role);
        for taken in 0..count {
            let header = case.header(first + u64::from(taken));
            if case.verify {
                payload::fill(header.seq_num, payload);
            }
            if writer.write(&header, payload)? == Written::TimedOut {
                return Ok(taken);
            }
        }
        Ok(count)
    }

    fn flush(&mut self, timeout: Duration) -> Result<bool, EndpointError> {
        self.node.flush();
        let is_reliable = self.role.case.reliability == Reliability::Reliable;
        Ok(!is_reliable || self.node.wait_for_acknowledgments(timeout))
    }

    fn publish_last(&mut self, sent: u64) -> Result<bool, EndpointError> {
        let header = SampleHeader::last(sent).by(self.role.case.ends.entity_id);
        Ok(self.node.writer().write(&header, &self.role.payload)? == Written::Taken)
    }
}

struct Subscribing {
    inbox: Arc<Inbox>,
    collector: Collector,
}

impl Subscriber for PeerEnd<Subscribing> {
    fn receive(&mut self, sink: &mut SampleSink, timeout: Duration) -> Result<(), EndpointError> {
        let deadline = Instant::now() + timeout;
        loop {
            std::thread::sleep(INBOX_PAUSE);
            if self.role.collector.collect(&self.role.inbox, sink) || Instant::now() >= deadline {
                return Ok(());
            }
        }
    }
}

struct Pinging {
    engine: &'static str,
    ping_pong: Arc<PingPong>,
}

impl Pinger for PeerEnd<Pinging> {
    fn ping(&mut self, _: u64, _: u64, _: Duration) -> Result<bool, EndpointError> {
        Err(EndpointError::not_supported(self.role.engine, "single pings"))
    }

    fn run(&mut self, pings: Pings, stop: &AtomicBool) -> Result<Pings, EndpointError> {
        self.role.ping_pong.run(self.node.writer(), pings, stop)
    }
}

struct Ponging {
    echoed: Arc<AtomicU64>,
}

impl Ponger for PeerEnd<Ponging> {
    fn echo(&mut self, stop: &AtomicBool) -> Result<u64, EndpointError> {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(self.role.echoed.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::case;
    use weir_results::Test;

    #[test]
    fn every_stream_keeps_all_its_samples_one_by_a_schedule_too() {
        let keeps_all = |case: &CaseSpec| node_options(case, Some(""), None).keeps_all;
        let mut case = case("cyclonedds", Test::Latency);
        assert!(!keeps_all(&case));
        case.method.samples_per_s = Some(1000.0);
        assert!(keeps_all(&case));
        assert!(keeps_all(&CaseSpec { test: Test::Throughput, ..case }));
    }
}
