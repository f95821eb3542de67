//! Engines of others: each [`Peer`] is an engine of the harness.
//!
//! They receive on threads of their own, and give samples to a listener there. A ponger echoes from
//! its listener, and a pinger sends the next ping from its; a subscriber's listener puts the samples into
//! an [`Inbox`], which the harness empties now and then, without being woken for it.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use weir_peers::{Header, Node, NodeOptions, OnSample, Peer, PeerError, Setting, Writer, Written};
use weir_results::Reliability;

use crate::case::CaseSpec;
use crate::clock;
use crate::endpoint::{
    Capabilities, End, EndReport, EndpointError, Engine, Pinger, Ponger, Publisher, ReliabilitySupport,
    Subscriber,
};
use crate::latency::Pings;
use crate::payload::{self, HEADER_BYTES, SampleHeader};
use crate::sink::SampleSink;

/// How long a write may wait; the harness comes back as long as its own patience lasts.
const WRITE_PATIENCE: Duration = Duration::from_millis(500);

/// How often an end looks whether its matches are there, or its pings over.
const MATCH_PAUSE: Duration = Duration::from_millis(1);

/// How often a subscriber empties its inbox: so seldom that it does not disturb the engine's threads on
/// the same processor, and often enough for the time that it takes from each batch.
const INBOX_PAUSE: Duration = Duration::from_millis(2);

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
            size_bytes_max: can.size_bytes_max.min(CaseSpec::SIZE_BYTES_MAX),
        }
    }

    fn is_apart(&self) -> bool {
        !self.abilities.is_dds
    }

    fn version(&self) -> Option<String> {
        Self::version(self)
    }

    fn settings(&self) -> &'static [Setting] {
        self.settings
    }

    fn open_publisher(&self, case: &CaseSpec) -> Result<Box<dyn Publisher>, EndpointError> {
        let node = open(self, case, Some(""), None, Box::new(|_, _, _| {}))?;
        Ok(Box::new(PublisherEnd { octets: zeros(case), node, case: case.clone() }))
    }

    fn open_subscriber(&self, case: &CaseSpec) -> Result<Box<dyn Subscriber>, EndpointError> {
        let inbox = Arc::new(Mutex::new(Inbox::default()));
        let (arrivals, keeps_octets) = (Arc::clone(&inbox), case.verify);
        let is_open_loop = case.method.rate.is_some();
        let on_sample = Box::new(move |_: &dyn Writer, header: &Header, octets: &[u8]| {
            let arrived_ns = is_open_loop.then(clock::now_ns);
            arrivals.lock().push(header, octets, arrived_ns, keeps_octets);
        });
        let node = open(self, case, None, Some(""), on_sample)?;
        Ok(Box::new(SubscriberEnd {
            node,
            case: case.clone(),
            inbox,
            emptied: Inbox::default(),
            zeros: zeros(case),
        }))
    }

    fn open_pinger(&self, case: &CaseSpec) -> Result<Box<dyn Pinger>, EndpointError> {
        let shared = Arc::new(Rally {
            state: Mutex::new(None),
            is_over: Condvar::new(),
            case: case.clone(),
            octets: zeros(case),
        });
        let echoes = Arc::clone(&shared);
        let on_sample =
            Box::new(move |writer: &dyn Writer, header: &Header, _: &[u8]| echoes.answer(writer, header));
        let node = open(self, case, Some("_ping"), Some("_pong"), on_sample)?;
        Ok(Box::new(PingerEnd { node, case: case.clone(), shared }))
    }

    fn open_ponger(&self, case: &CaseSpec) -> Result<Box<dyn Ponger>, EndpointError> {
        let echoed = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&echoed);
        let on_sample = Box::new(move |writer: &dyn Writer, header: &Header, octets: &[u8]| {
            // What cannot be echoed is a lost ping, which the other side counts.
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
    let topic = |suffix: &str| case.topic() + suffix;
    let options = NodeOptions {
        domain: case.domain,
        interface: case.interface.clone(),
        address: case.address,
        is_reliable: case.reliability == Reliability::Reliable,
        is_keyed: case.is_keyed(),
        instances: case.instances,
        // A ping-pong has one sample under way.
        keeps_all: case.test == weir_results::Test::Throughput,
        is_batching: case.batch_bytes > 0,
        octets: case.size_bytes.saturating_sub(HEADER_BYTES),
        max_blocking_time: WRITE_PATIENCE,
        write_topic: write.map(topic),
        read_topic: read.map(topic),
        settings: case.settings.clone(),
    };
    peer.open(&options, on_sample).map_err(failed)
}

fn failed(error: PeerError) -> EndpointError {
    match error {
        PeerError::NotBuilt { .. } => EndpointError::Environment(error.to_string()),
        PeerError::Engine(_) => EndpointError::Engine(error.to_string()),
    }
}

fn zeros(case: &CaseSpec) -> Vec<u8> {
    vec![0; case.size_bytes.saturating_sub(HEADER_BYTES)]
}

fn to_peer(header: &SampleHeader) -> Header {
    Header {
        key: header.key,
        entity_id: header.entity_id,
        seq_num: header.seq_num,
        timestamp_sec: header.ts_sec,
        timestamp_usec: header.ts_usec,
        latency_ping: header.latency_ping,
    }
}

fn from_peer(header: &Header) -> SampleHeader {
    SampleHeader {
        key: header.key,
        entity_id: header.entity_id,
        seq_num: header.seq_num,
        ts_sec: header.timestamp_sec,
        ts_usec: header.timestamp_usec,
        latency_ping: header.latency_ping,
    }
}

/// Joins the other end and waits until so many readers and writers are matched.
fn connect(
    node: &mut dyn Node,
    peer: Option<SocketAddrV4>,
    readers: u32,
    writers: u32,
    timeout: Duration,
) -> Result<(), EndpointError> {
    node.join(peer).map_err(failed)?;
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
        connect(self.node.as_mut(), peer, self.case.subscribers, 0, timeout)
    }

    fn report(&self) -> EndReport {
        EndReport::default()
    }
}

impl Publisher for PublisherEnd {
    fn publish(&mut self, first: u64, count: u32) -> Result<u32, EndpointError> {
        for taken in 0..count {
            let header =
                SampleHeader::data(first + u64::from(taken), self.case.instances).by(self.case.entity_id);
            if self.case.verify {
                payload::fill_octets(header.seq_num, &mut self.octets);
            }
            if self.node.write(&to_peer(&header), &self.octets).map_err(failed)? == Written::TimedOut {
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
        let header = SampleHeader::last(sent).by(self.case.entity_id);
        let written = self.node.write(&to_peer(&header), &self.octets).map_err(failed)?;
        Ok(written == Written::Taken)
    }
}

/// Samples that arrived, in order.
#[derive(Default)]
struct Inbox {
    /// Each with the length of its octets, and where latency counts, when it arrived.
    samples: Vec<(Header, usize, Option<u64>)>,
    /// Their octets one after another, when the content is to be checked.
    octets: Vec<u8>,
}

impl Inbox {
    fn push(&mut self, header: &Header, octets: &[u8], arrived_ns: Option<u64>, keeps_octets: bool) {
        self.samples.push((*header, octets.len(), arrived_ns));
        if keeps_octets {
            self.octets.extend_from_slice(octets);
        }
    }

    /// Gives everything to `sink`; octets that were not kept are taken from `zeros`.
    fn empty_into(&mut self, sink: &mut SampleSink, zeros: &[u8]) {
        let mut kept = self.octets.as_slice();
        for (header, length, arrived_ns) in self.samples.drain(..) {
            if let Some(arrived_ns) = arrived_ns {
                sink.set_now_ns(arrived_ns);
            }
            let octets = match kept.split_at_checked(length).filter(|_| !kept.is_empty()) {
                Some((octets, rest)) => {
                    kept = rest;
                    octets
                }
                // A length that no sample has is as wrong as it was.
                None => zeros.get(..length).unwrap_or_default(),
            };
            if octets.len() == length {
                sink.accept(&from_peer(&header), octets);
            } else {
                sink.reject();
            }
        }
        self.octets.clear();
    }
}

struct SubscriberEnd {
    node: Box<dyn Node>,
    case: CaseSpec,
    inbox: Arc<Mutex<Inbox>>,
    /// What takes the inbox's place while the other is emptied.
    emptied: Inbox,
    zeros: Vec<u8>,
}

impl End for SubscriberEnd {
    fn address(&self) -> Option<SocketAddrV4> {
        self.node.address()
    }

    fn connect(&mut self, peer: Option<SocketAddrV4>, timeout: Duration) -> Result<(), EndpointError> {
        connect(self.node.as_mut(), peer, 0, self.case.publishers, timeout)
    }
}

impl Subscriber for SubscriberEnd {
    fn receive(&mut self, sink: &mut SampleSink, timeout: Duration) -> Result<(), EndpointError> {
        let deadline = Instant::now() + timeout;
        loop {
            std::thread::sleep(INBOX_PAUSE);
            std::mem::swap(&mut *self.inbox.lock(), &mut self.emptied);
            if !self.emptied.samples.is_empty() {
                self.emptied.empty_into(sink, &self.zeros);
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Ok(());
            }
        }
    }
}

struct PingerEnd {
    node: Box<dyn Node>,
    case: CaseSpec,
    shared: Arc<Rally>,
}

/// A ping-pong that the engine's receiving thread keeps going.
struct Rally {
    /// `None` outside of a run.
    state: Mutex<Option<RallyState>>,
    is_over: Condvar,
    case: CaseSpec,
    octets: Vec<u8>,
}

struct RallyState {
    pings: Pings,
    /// The ping that is under way.
    seq_num: u32,
    is_over: bool,
    /// What went wrong on the engine's thread.
    error: Option<EndpointError>,
}

impl Rally {
    /// Sends the next ping.
    fn serve(&self, writer: &dyn Writer, state: &mut RallyState) {
        let sent_ns = clock::now_ns();
        let header = SampleHeader::ping(state.pings.next(sent_ns), self.case.instances, sent_ns);
        state.seq_num = header.seq_num;
        if let Err(error) = writer.write(&to_peer(&header), &self.octets) {
            state.error = Some(failed(error));
            state.is_over = true;
        }
    }

    /// Takes an echo on the engine's thread, and sends the next ping from there.
    fn answer(&self, writer: &dyn Writer, header: &Header) {
        let now_ns = clock::now_ns();
        let mut state = self.state.lock();
        let Some(state) = state.as_mut().filter(|state| !state.is_over && state.seq_num == header.seq_num)
        else {
            return;
        };
        state.is_over = state.pings.came_back(now_ns);
        if !state.is_over {
            self.serve(writer, state);
        }
        if state.is_over {
            self.is_over.notify_all();
        }
    }
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
        Err(EndpointError::not_supported(&self.case.engine, "single pings"))
    }

    fn run(&mut self, pings: Pings, stop: &AtomicBool) -> Result<Pings, EndpointError> {
        let timeout = pings.timeout();
        let mut state = RallyState { pings, seq_num: 0, is_over: false, error: None };
        let mut shared = self.shared.state.lock();
        self.shared.serve(self.node.as_ref(), &mut state);
        let (mut watched, mut since) = (state.seq_num, Instant::now());
        *shared = Some(state);
        loop {
            self.shared.is_over.wait_for(&mut shared, WATCH_PAUSE);
            let Some(state) = shared.as_mut() else {
                return Err(EndpointError::Engine("the ping-pong has no state".to_owned()));
            };
            if !state.is_over && state.seq_num == watched && since.elapsed() >= timeout {
                // A best-effort ping that is lost for good: the rally goes on with the next.
                state.is_over = state.pings.is_lost(clock::now_ns())?;
                if !state.is_over {
                    self.shared.serve(self.node.as_ref(), state);
                }
            }
            if state.seq_num != watched {
                (watched, since) = (state.seq_num, Instant::now());
            }
            if (state.is_over || stop.load(Ordering::Relaxed))
                && let Some(state) = shared.take()
            {
                return state.error.map_or(Ok(state.pings), Err);
            }
        }
    }
}

/// How often the harness looks whether a ping was lost.
const WATCH_PAUSE: Duration = Duration::from_millis(50);

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

    /// Sends every sample back to a listener, or loses it.
    struct Echo {
        loses: fn(u32) -> bool,
        sent: Mutex<Vec<Header>>,
    }

    impl Writer for Echo {
        fn write(&self, header: &Header, _: &[u8]) -> Result<Written, PeerError> {
            if !(self.loses)(header.seq_num) {
                self.sent.lock().push(*header);
            }
            Ok(Written::Taken)
        }
    }

    #[test]
    fn an_inbox_gives_what_it_got_with_and_without_content() {
        for verify in [false, true] {
            let case = CaseSpec { verify, ..case("weir", Test::Throughput) };
            let mut sink = SampleSink::new(&case);
            let mut inbox = Inbox::default();
            for sequence in 0..3 {
                let header = SampleHeader::data(sequence, 0);
                let mut octets = zeros(&case);
                payload::fill_octets(header.seq_num, &mut octets);
                inbox.push(&to_peer(&header), &octets, None, verify);
            }
            inbox.push(&to_peer(&SampleHeader::data(3, 0)), &[0; 99], None, verify);
            inbox.empty_into(&mut sink, &zeros(&case));
            assert_eq!((sink.counts().received, sink.corrupt(), sink.arrivals()), (3, 1, 4), "{verify}");
        }
    }

    #[test]
    fn a_rally_goes_on_with_every_echo_and_ignores_others() {
        let case = case("weir", Test::Latency);
        let rally = Rally {
            state: Mutex::new(None),
            is_over: Condvar::new(),
            case: case.clone(),
            octets: zeros(&case),
        };
        let echo = Echo { loses: |seq_num| seq_num == 2, sent: Mutex::new(Vec::new()) };
        let mut state =
            RallyState { pings: Pings::new(&case, clock::now_ns()), seq_num: 0, is_over: false, error: None };
        rally.serve(&echo, &mut state);
        *rally.state.lock() = Some(state);
        for stale in [7, 0, 0, 1] {
            rally.answer(&echo, &to_peer(&SampleHeader::ping(stale, 0, 0)));
        }
        let sent: Vec<u32> = echo.sent.lock().iter().map(|header| header.seq_num).collect();
        assert_eq!(sent, [0, 1]);
        assert_eq!(rally.state.lock().as_ref().map(|state| state.seq_num), Some(2));
    }
}
