//! `weir udp`: raw UDP measured between a client and a server, mostly on two hosts.
//!
//! A client sends a server one [`Point`] after the other, as JSON lines over TCP. For each, both
//! open their sockets, each receiving end starts, the sending ends follow, and the counts of both
//! come back. The loops touch only their socket, their buffers and, about once per call, the clock;
//! the control connection sleeps meanwhile.
//!
//! - `point`: one measurement; `message`: the messages; `header`: the bytes in front of each datagram
//! - `ends`: sockets; `sender`, `receiver`, `round_trip`: the loops; `work`: their threads
//! - `clock_offset`: how the clocks of two hosts relate; `reports`: what the ends found
//! - `client`, `session`: the two sides of the control connection; `record`: the results format

mod client;
mod clock_offset;
mod ends;
mod header;
mod message;
mod point;
mod receiver;
mod record;
mod reports;
mod round_trip;
mod sender;
mod session;
mod work;

pub use client::{Client, ClientSettings, Measured};
pub use clock_offset::{
    Exchange as ClockExchange, Offset as ClockOffset, name as clock_name, relation as clock_relation,
};
pub use message::{Request, Response};
pub use point::{Point, PointTest, UDP_BYTES_MIN};
pub use record::cases;
pub use reports::{PingReport, ReceiveReport, SendReport, ServerReport};
pub use session::WeirUdp;

/// The default port of the control connection.
pub const BASELINE_PORT: u16 = <WeirUdp as weir_measure::Protocol>::PORT;
