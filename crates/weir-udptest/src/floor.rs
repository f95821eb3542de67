//! `weir udp`: what UDP carries, without hpcbench's limits.
//!
//! A client tells a server, by JSON lines over TCP, one [`Point`] after the other: both open their sockets, each end that
//! receives begins, those that send follow, and what both counted comes back. Loops touch nothing but their socket, their
//! buffers and, once per call or so, the clock; the control connection sleeps meanwhile.
//!
//! - `point`: what one measurement is; `message`: the lines; `datagram`: the octets in front of each datagram
//! - `ends`: sockets; `sender`, `receiver`, `round_trip`: the loops; `wait`: waiting for datagrams
//! - `work`: their threads
//! - `clock`: whose time it is; `reports`: what the ends found
//! - `client`, `session`: the two sides of the control connection; `record`: the results format

mod client;
mod clock;
mod datagram;
mod ends;
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
pub use message::{Floor, Request as FloorRequest, Response as FloorResponse};
pub use point::{Point, PointTest, UDP_BYTES_MIN};
pub use record::cases;
pub use reports::{PingReport, ReceiveReport, SendReport};

/// The port of the control connection unless told otherwise.
pub const FLOOR_PORT: u16 = <Floor as weir_measure::Protocol>::PORT;
