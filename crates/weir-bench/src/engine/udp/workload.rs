//! A node of a workload over raw UDP: one socket, whose thread passes samples on by the number of their writer.

use std::net::{SocketAddr, SocketAddrV4};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use weir_baseline::{receive_one, send};
use weir_results::{Reliability, WaitStrategy};
use weir_udp::{SocketOptions, UdpSocket};

use super::pieces::{Arrivals, Datagrams};
use super::{environment, failed};
use crate::case::CaseSpec;
use crate::endpoint::{EndpointError, OnArrival, TopicReader, TopicSetup, TopicWriter, WorkloadNode};
use crate::payload::{self, ReceivedSample, SampleHeader};

pub(super) struct UdpNode {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the node, its endpoints and its thread share.
struct Shared {
    socket: UdpSocket,
    /// Where all nodes are; empty until that is known.
    nodes: Mutex<Vec<SocketAddr>>,
    readers: RwLock<Vec<NodeReader>>,
    is_over: AtomicBool,
}

struct NodeReader {
    /// The numbers of its writers.
    writers: Range<usize>,
    /// Of samples that come in pieces.
    arrivals: Option<Mutex<Arrivals>>,
    on_sample: OnArrival,
}

impl UdpNode {
    pub(super) fn open(case: &CaseSpec) -> Result<Self, EndpointError> {
        let options = SocketOptions {
            recv_buffer: Some(case.place.socket_buffer_bytes),
            send_buffer: Some(case.place.socket_buffer_bytes),
            ..SocketOptions::new(SocketAddrV4::new(case.place.address, 0))
        };
        let socket = UdpSocket::bind(&options).map_err(|error| environment(&error))?;
        let shared = Arc::new(Shared {
            socket,
            nodes: Mutex::default(),
            readers: RwLock::default(),
            is_over: AtomicBool::new(false),
        });
        Ok(Self { shared, thread: None })
    }
}

impl WorkloadNode for UdpNode {
    fn open_writer(&mut self, topic: &TopicSetup) -> Result<Box<dyn TopicWriter>, EndpointError> {
        let datagrams = Datagrams::new(topic.size_bytes);
        let shared = Arc::clone(&self.shared);
        Ok(Box::new(Writer { shared, datagrams, nodes: topic.readers.clone(), readers: Vec::new() }))
    }

    fn open_reader(
        &mut self,
        topic: &TopicSetup,
        on_sample: OnArrival,
    ) -> Result<Box<dyn TopicReader>, EndpointError> {
        debug_assert!(topic.reliability != Reliability::None);
        let is_in_pieces = topic.size_bytes > weir_baseline::DATAGRAM_BYTES_MAX;
        let arrivals = is_in_pieces.then(|| Mutex::new(Arrivals::new(topic.writers.clone())));
        self.shared.readers.write().push(NodeReader { writers: topic.writers.clone(), arrivals, on_sample });
        if self.thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let thread = thread::Builder::new().name("receive".to_owned()).spawn(move || shared.receive());
            let cannot = |error| EndpointError::Environment(format!("cannot start a thread: {error}"));
            self.thread = Some(thread.map_err(cannot)?);
        }
        Ok(Box::new(Reader { shared: Arc::clone(&self.shared) }))
    }

    fn address(&self) -> Option<SocketAddrV4> {
        Some(self.shared.socket.local_addr())
    }

    fn connect(&mut self, nodes: &[SocketAddrV4]) -> Result<(), EndpointError> {
        *self.shared.nodes.lock() = nodes.iter().copied().map(SocketAddr::V4).collect();
        Ok(())
    }
}

impl Drop for UdpNode {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        // A thread that panicked has nothing more to say.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Shared {
    /// A node that knows the addresses of the others reaches all of them.
    fn matched(&self) -> u32 {
        if self.nodes.lock().is_empty() { 0 } else { u32::MAX }
    }

    fn receive(&self) {
        let mut buffer = vec![0; weir_baseline::DATAGRAM_BYTES_MAX];
        while !self.is_over.load(Ordering::Acquire) {
            let Ok(received) = receive_one(&self.socket, WaitStrategy::Block, RECEIVE_WAIT, &mut buffer)
            else {
                return;
            };
            let received = received.and_then(|length| payload::read(buffer.get(..length)?));
            let Some(received) = received else { continue };
            let Ok(writer) = usize::try_from(received.header.entity_id) else { continue };
            let readers = self.readers.read();
            readers.iter().filter(|it| it.writers.contains(&writer)).for_each(|it| it.take(&received));
        }
    }
}

impl NodeReader {
    /// Passes a sample on that has arrived whole.
    fn take(&self, received: &ReceivedSample<'_>) {
        let ReceivedSample { header, payload } = received;
        if self.arrivals.as_ref().is_none_or(|arrivals| arrivals.lock().take(header, payload)) {
            (self.on_sample)(header);
        }
    }
}

struct Writer {
    shared: Arc<Shared>,
    datagrams: Datagrams,
    /// The nodes with readers.
    nodes: Vec<usize>,
    /// Their addresses, from the first write on.
    readers: Vec<SocketAddr>,
}

impl TopicWriter for Writer {
    fn write(&mut self, header: &SampleHeader) -> Result<bool, EndpointError> {
        if self.readers.is_empty() {
            let nodes = self.shared.nodes.lock();
            self.readers = self.nodes.iter().filter_map(|node| nodes.get(*node).copied()).collect();
        }
        self.datagrams.write_header(header);
        for &reader in &self.readers {
            for datagram in self.datagrams.iter() {
                // What the system refuses is lost.
                send(&self.shared.socket, Some(reader), datagram)
                    .map_err(|error| failed("sending", &error))?;
            }
        }
        Ok(true)
    }

    fn matched(&self) -> u32 {
        self.shared.matched()
    }
}

struct Reader {
    shared: Arc<Shared>,
}

impl TopicReader for Reader {
    fn matched(&self) -> u32 {
        self.shared.matched()
    }
}

/// How often a thread without samples checks whether its node is still there.
const RECEIVE_WAIT: Duration = Duration::from_millis(500);
