//! Raw UDP: the baseline that engines are compared with.
//!
//! - `sender`: sends datagrams, one or several per system call, or by segmentation offload
//! - `receiver`: receives them, one or several per call, coalesced or not
//! - `round_trip`: waits for an answer, and echoes
//! - `remote`: `weir udp`, raw UDP measured between a client and a server
//!
//! The loops are the same for the baselines of weir-bench, `weir udp`, `udptest` and `perftest -rawTransport`. They use
//! the engine's sockets (weir-udp), so that the difference to an engine is the cost of its protocol.
//!
//! `weir udp` is here because it measures these loops and nothing else. The server that untrusted
//! clients can reach, its secret and its bounds are weir-measure's, for `weir udp` and `udpserver`
//! alike. This crate adds what a client may ask for: a server sends UDP only to the peer of the
//! control connection, and bounds what a peer can make it wait for or keep.

mod receiver;
mod remote;
mod round_trip;
mod sender;

pub use receiver::{Receiver, receive_one};
pub use remote::{
    BASELINE_PORT, Client, ClientSettings, ClockExchange, ClockOffset, Measured, PingReport, Point,
    PointTest, ReceiveReport, Request, Response, SendReport, ServerReport, UDP_BYTES_MIN, WeirUdp, cases,
    clock_name, clock_relation,
};
pub use round_trip::{await_answer, echo};
pub use sender::{SendCounts, Sender, send};

/// Memory that [`Sender::fresh`] and [`Receiver::fresh`] use in turn: more than the private caches of a processor.
pub const RING_BYTES: usize = 64 << 20;

/// The most bytes that a UDP datagram carries over IPv4: 65535 less the headers of IP and UDP.
pub const DATAGRAM_BYTES_MAX: usize = 65_507;
