//! Other engines: each [`Peer`] is an engine of the harness.
//!
//! They receive on their own threads and pass samples to a listener there. A ponger's listener echoes, and
//! a pinger's listener sends the next ping. A subscriber's listener puts samples into an [`Inbox`], which
//! the harness polls.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use weir_peer_api::{Header, Node, NodeOptions, OnSample, Peer, Setting, Writer, Written};
use weir_results::{Reliability, WaitStrategy};

use crate::case::CaseSpec;
use crate::endpoint::{
    Capabilities, End, EndReport, EndpointError, Engine, Pinger, Ponger, Publisher, ReliabilitySupport,
    Subscriber,
};
use crate::inbox::{Collector, Inbox};
use crate::latency::Pings;
use crate::payload::{self, HEADER_BYTES, SampleHeader};
use crate::ping_pong::PingPong;
use crate::sink::SampleSink;

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
            spinning: can.spinning,
            breakdown: false,
            size_bytes_max: can.size_bytes_max.min(CaseSpec::SIZE_BYTES_MAX),
        }
    }

    fn is_apart(&self) -> bool {
        !self.abilities.is_dds
    }

    fn version(&self) -> Option<String> {
        Some((self.calls.version)())
    }

    fn settings(&self) -> &'static [Setting] {
        self.settings
    }

    fn open_publisher(&self, case: &CaseSpec) -> Result<Box<dyn Publisher>, EndpointError> {
        let node = open(self, case, Some(""), None, Box::new(|_, _, _| {}))?;
        Ok(Box::new(PublisherEnd {
            octets: vec![0; case.size_bytes.saturating_sub(HEADER_BYTES)],
            node,
            case: case.clone(),
        }))
    }

    fn open_subscriber(&self, case: &CaseSpec) -> Result<Box<dyn Subscriber>, EndpointError> {
        let inbox = Arc::new(Inbox::new(case));
        let arrivals = Arc::clone(&inbox);
        let on_sample =
            Box::new(move |_: &dyn Writer, header: &Header, octets: &[u8]| arrivals.push(header, octets));
        let node = open(self, case, None, Some(""), on_sample)?;
        Ok(Box::new(SubscriberEnd { node, case: case.clone(), inbox, collector: Collector::new(case) }))
    }

    fn open_pinger(&self, case: &CaseSpec) -> Result<Box<dyn Pinger>, EndpointError> {
        let ping_pong = Arc::new(PingPong::new(case));
        let echoes = Arc::clone(&ping_pong);
        let on_sample =
            Box::new(move |writer: &dyn Writer, header: &Header, _: &[u8]| echoes.answer(writer, header));
        let node = open(self, case, Some("_ping"), Some("_pong"), on_sample)?;
        Ok(Box::new(PingerEnd { node, engine: self.name, ping_pong }))
    }

    fn open_ponger(&self, case: &CaseSpec) -> Result<Box<dyn Ponger>, EndpointError> {
        let echoed = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&echoed);
        let on_sample = Box::new(move |writer: &dyn Writer, header: &Header, octets: &[u8]| {
            // A ping that cannot be echoed is lost, which the other side counts.
            if writer.write(header, octets) == Ok(Written::Taken) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let node = open(self, case, Some("_pong"), Some("_ping"), on_sample)?;
        Ok(Box::new(PongerEnd { node, echoed }))
    }
}

/// Opens a node that writes or reads the case's topic with these suffixes.
fn open(
    peer: &Peer,
    case: &CaseSpec,
    write: Option<&str>,
    read: Option<&str>,
    on_sample: OnSample,
) -> Result<Box<dyn Node>, EndpointError> {
    Ok(peer.open(&node_options(case, write, read), on_sample)?)
}

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
        octets: case.size_bytes.saturating_sub(HEADER_BYTES),
        is_spinning: case.wait == WaitStrategy::Spin,
        max_blocking_time: WRITE_PATIENCE,
        write_topic: write.map(topic),
        read_topic: read.map(topic),
        settings: case.settings.clone(),
    }
}

/// Joins the other end and waits until this many readers and writers are matched.
fn connect(
    node: &mut dyn Node,
    peer: Option<SocketAddrV4>,
    readers: u32,
    writers: u32,
    timeout: Duration,
) -> Result<(), EndpointError> {
    node.join(peer)?;
    let deadline = Instant::now() + timeout;
    loop {
        let matches = node.matches();
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

struct PublisherEnd {
    node: Box<dyn Node>,
    case: CaseSpec,
    octets: Vec<u8>,
}

impl End for PublisherEnd {
    fn address(&self) -> Option<SocketAddrV4> {
        self.node.address()
    }

    fn connect(&mut self, peer: Option<SocketAddrV4>, timeout: Duration) -> Result<(), EndpointError> {
        connect(self.node.as_mut(), peer, self.case.ends.subscribers, 0, timeout)
    }

    fn report(&self) -> EndReport {
        EndReport::default()
    }
}

impl Publisher for PublisherEnd {
    fn publish(&mut self, first: u64, count: u32) -> Result<u32, EndpointError> {
        for taken in 0..count {
            let header = SampleHeader::data(first + u64::from(taken), self.case.instances)
                .by(self.case.ends.entity_id);
            if self.case.verify {
                payload::fill_octets(header.seq_num, &mut self.octets);
            }
            if self.node.write(&header.to_peer(), &self.octets)? == Written::TimedOut {
                return Ok(taken);
            }
        }
        Ok(count)
    }

    fn flush(&mut self, timeout: Duration) -> Result<bool, EndpointError> {
        self.node.flush();
        Ok(self.case.reliability != Reliability::Reliable || self.node.wait_for_acknowledgments(timeout))
    }

    fn publish_last(&mut self, sent: u64) -> Result<bool, EndpointError> {
        let header = SampleHeader::last(sent).by(self.case.ends.entity_id);
        let written = self.node.write(&header.to_peer(), &self.octets)?;
        Ok(written == Written::Taken)
    }
}

struct SubscriberEnd {
    node: Box<dyn Node>,
    case: CaseSpec,
    inbox: Arc<Inbox>,
    collector: Collector,
}

impl End for SubscriberEnd {
    fn address(&self) -> Option<SocketAddrV4> {
        self.node.address()
    }

    fn connect(&mut self, peer: Option<SocketAddrV4>, timeout: Duration) -> Result<(), EndpointError> {
        connect(self.node.as_mut(), peer, 0, self.case.ends.publishers, timeout)
    }
}

impl Subscriber for SubscriberEnd {
    fn receive(&mut self, sink: &mut SampleSink, timeout: Duration) -> Result<(), EndpointError> {
        let deadline = Instant::now() + timeout;
        loop {
            std::thread::sleep(INBOX_PAUSE);
            if self.collector.collect(&self.inbox, sink) || Instant::now() >= deadline {
                return Ok(());
            }
        }
    }
}

struct PingerEnd {
    node: Box<dyn Node>,
    engine: &'static str,
    ping_pong: Arc<PingPong>,
}

impl End for PingerEnd {
    fn address(&self) -> Option<SocketAddrV4> {
        self.node.address()
    }

    fn connect(&mut self, peer: Option<SocketAddrV4>, timeout: Duration) -> Result<(), EndpointError> {
        connect(self.node.as_mut(), peer, 1, 1, timeout)
    }
}

impl Pinger for PingerEnd {
    fn ping(&mut self, _: u64, _: u64, _: Duration) -> Result<bool, EndpointError> {
        Err(EndpointError::not_supported(self.engine, "single pings"))
    }

    fn run(&mut self, pings: Pings, stop: &AtomicBool) -> Result<Pings, EndpointError> {
        self.ping_pong.run(self.node.as_ref(), pings, stop)
    }
}

struct PongerEnd {
    node: Box<dyn Node>,
    echoed: Arc<AtomicU64>,
}

impl End for PongerEnd {
    fn address(&self) -> Option<SocketAddrV4> {
        self.node.address()
    }

    fn connect(&mut self, peer: Option<SocketAddrV4>, timeout: Duration) -> Result<(), EndpointError> {
        connect(self.node.as_mut(), peer, 1, 1, timeout)
    }
}

impl Ponger for PongerEnd {
    fn echo(&mut self, stop: &AtomicBool) -> Result<u64, EndpointError> {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(self.echoed.load(Ordering::Relaxed))
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
