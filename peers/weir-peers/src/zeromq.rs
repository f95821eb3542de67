//! ZeroMQ, PUSH to PULL over TCP.
//!
//! No discovery: each end binds the socket that it reads and connects the one that it writes.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use weir_peer_api::{
    Abilities, Calls, Header, Matches, Node, NodeOptions, OnSample, Peer, PeerError, Setting, Writer, Written,
};

use crate::message::{decode, encode};

pub(crate) const PEER: Peer = Peer {
    name: "zeromq",
    about: "ZeroMQ, PUSH to PULL over TCP: no DDS, and not UDP",
    settings: SETTINGS,
    abilities: Abilities { is_dds: false, best_effort: false, many: false, ..Abilities::DDS },
    calls: Calls { open, version },
};

const SETTINGS: &[Setting] = &[
    Setting::new("high_water_mark", "", "ZMQ_SNDHWM and ZMQ_RCVHWM, messages; empty: 1000"),
    Setting::new("socket_buffer", "", "ZMQ_SNDBUF and ZMQ_RCVBUF, bytes; empty: the system's default"),
];

fn version() -> String {
    let (major, minor, patch) = zmq::version();
    format!("{major}.{minor}.{patch}")
}

fn failed(error: zmq::Error) -> PeerError {
    PeerError::Engine(error.to_string())
}

/// How often the receiving thread checks whether it shall end.
const PAUSE_MS: i32 = 200;

fn open(options: &NodeOptions, on_sample: OnSample) -> Result<Box<dyn Node>, PeerError> {
    let context = zmq::Context::new();
    let (high_water_mark, socket_buffer) =
        (options.setting("high_water_mark")?, options.setting("socket_buffer")?);
    let socket = |kind: zmq::SocketType| {
        let socket = context.socket(kind)?;
        socket.set_linger(0)?;
        if let Some(messages) = high_water_mark {
            socket.set_sndhwm(messages)?;
            socket.set_rcvhwm(messages)?;
        }
        if let Some(bytes) = socket_buffer {
            socket.set_sndbuf(bytes)?;
            socket.set_rcvbuf(bytes)?;
        }
        Ok(socket)
    };
    let push = if options.write_topic.is_some() {
        let push = socket(zmq::PUSH).map_err(failed)?;
        let patience_ms = i32::try_from(options.max_blocking_time.as_millis()).unwrap_or(i32::MAX);
        push.set_sndtimeo(patience_ms).map_err(failed)?;
        Some(Mutex::new(Outbox { socket: push, message: Vec::new() }))
    } else {
        None
    };
    let writer = Arc::new(ZmqWriter { push });
    let is_over = Arc::new(AtomicBool::new(false));
    let (mut address, mut thread) = (None, None);
    if options.read_topic.is_some() {
        let pull = socket(zmq::PULL).map_err(failed)?;
        address = Some(bind(&pull, options.address)?);
        pull.set_rcvtimeo(PAUSE_MS).map_err(failed)?;
        let (writer, is_over) = (Arc::clone(&writer), Arc::clone(&is_over));
        let receive = move || receive_all(&pull, &writer, &is_over, &on_sample);
        let spawned = thread::Builder::new().name("zeromq receive".to_owned()).spawn(receive);
        thread = Some(spawned.map_err(|error| PeerError::Engine(error.to_string()))?);
    }
    Ok(Box::new(ZmqNode { writer, address, is_over, thread, has_joined: false, _context: context }))
}

/// Binds to a port that the system chooses.
fn bind(socket: &zmq::Socket, address: Ipv4Addr) -> Result<SocketAddrV4, PeerError> {
    socket.bind(&format!("tcp://{address}:*")).map_err(failed)?;
    let endpoint = socket.get_last_endpoint().map_err(failed)?.unwrap_or_default();
    endpoint
        .trim_start_matches("tcp://")
        .parse()
        .map_err(|_| PeerError::Engine(format!("strange endpoint {endpoint}")))
}

fn receive_all(pull: &zmq::Socket, writer: &ZmqWriter, is_over: &AtomicBool, on_sample: &OnSample) {
    let mut message = zmq::Message::new();
    while !is_over.load(Ordering::Relaxed) {
        if pull.recv(&mut message, 0).is_ok()
            && let Some((header, octets)) = decode(&message)
        {
            on_sample(writer, &header, octets);
        }
    }
}

struct Outbox {
    socket: zmq::Socket,
    message: Vec<u8>,
}

struct ZmqWriter {
    push: Option<Mutex<Outbox>>,
}

impl Writer for ZmqWriter {
    fn write(&self, header: &Header, octets: &[u8]) -> Result<Written, PeerError> {
        let Some(push) = &self.push else { return Err(PeerError::Engine("no writer".to_owned())) };
        let mut guard = push.lock().unwrap_or_else(PoisonError::into_inner);
        let Outbox { socket, message } = &mut *guard;
        encode(header, octets, message);
        match socket.send(message.as_slice(), 0) {
            Ok(()) => Ok(Written::Taken),
            Err(zmq::Error::EAGAIN) => Ok(Written::TimedOut),
            Err(error) => Err(failed(error)),
        }
    }
}

struct ZmqNode {
    writer: Arc<ZmqWriter>,
    address: Option<SocketAddrV4>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    has_joined: bool,
    /// Dropped after its sockets.
    _context: zmq::Context,
}

impl Writer for ZmqNode {
    fn write(&self, header: &Header, octets: &[u8]) -> Result<Written, PeerError> {
        self.writer.write(header, octets)
    }
}

impl Node for ZmqNode {
    fn address(&self) -> Option<SocketAddrV4> {
        self.address
    }

    fn join(&mut self, peer: Option<SocketAddrV4>) -> Result<(), PeerError> {
        if let (Some(push), Some(peer)) = (&self.writer.push, peer) {
            let outbox = push.lock().unwrap_or_else(PoisonError::into_inner);
            outbox.socket.connect(&format!("tcp://{peer}")).map_err(failed)?;
        }
        self.has_joined = true;
        Ok(())
    }

    /// Samples written before the connection is established are queued, not lost.
    fn matches(&self) -> Matches {
        let count = u32::from(self.has_joined);
        Matches { readers: count, writers: count }
    }

    fn flush(&self) {}

    fn wait_for_acknowledgments(&self, _: Duration) -> bool {
        true
    }
}

impl Drop for ZmqNode {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
