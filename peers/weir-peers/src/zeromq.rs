//! ZeroMQ, PUSH to PULL over TCP.
//!
//! No discovery: each end binds the socket that it reads and connects the one that it writes.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use weir_peer_api::{
    Abilities, Calls, Header, Matches, Node, NodeOptions, OnSample, Peer, PeerError, Setting, Writer, Written,
};

use crate::worker::Worker;

pub(crate) const PEER: Peer = Peer {
    name: "zeromq",
    about: "ZeroMQ, PUSH to PULL over TCP: no DDS, and not UDP",
    settings: SETTINGS,
    abilities: Abilities { is_dds: false, best_effort: false, many: false, ..Abilities::DDS },
    calls: Calls { open, participant: None, version },
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
    let (mut address, mut worker) = (None, None);
    if options.read_topic.is_some() {
        let pull = socket(zmq::PULL).map_err(failed)?;
        address = Some(bind(&pull, options.address)?);
        pull.set_rcvtimeo(PAUSE_MS).map_err(failed)?;
        let writer = Arc::clone(&writer);
        let receive = move |is_over: &AtomicBool| receive_all(&pull, &writer, is_over, &on_sample);
        worker = Some(Worker::start("zeromq receive", receive)?);
    }
    Ok(Box::new(ZmqNode { _worker: worker, writer, address, has_joined: false, _context: context }))
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
            && let Some((header, payload)) = Header::split(&message)
        {
            on_sample(writer, &header, payload);
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
    fn write(&self, header: &Header, payload: &[u8]) -> Result<Written, PeerError> {
        let Some(push) = &self.push else { return Err(PeerError::Engine("no writer".to_owned())) };
        let mut guard = push.lock().unwrap_or_else(PoisonError::into_inner);
        let Outbox { socket, message } = &mut *guard;
        message.clear();
        message.extend_from_slice(&header.to_bytes(payload.len()));
        message.extend_from_slice(payload);
        match socket.send(message.as_slice(), 0) {
            Ok(()) => Ok(Written::Taken),
            Err(zmq::Error::EAGAIN) => Ok(Written::TimedOut),
            Err(error) => Err(failed(error)),
        }
    }
}

struct ZmqNode {
    /// Dropped first.
    _worker: Option<Worker>,
    writer: Arc<ZmqWriter>,
    address: Option<SocketAddrV4>,
    has_joined: bool,
    /// Dropped after its sockets.
    _context: zmq::Context,
}

impl Node for ZmqNode {
    fn writer(&self) -> &dyn Writer {
        &*self.writer
    }

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
}
