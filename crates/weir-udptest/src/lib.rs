//! UDP tests between two hosts, in two forms: hpcbench's, which the rest of this page is about, and
//! those of `weir udp` (`floor`), which do without their limits.
//!
//! A control connection over TCP carries what is to be done and what came of it; the data goes from
//! UDP socket to UDP socket. Options, defaults, columns and file names are hpcbench's;
//! `docs/reference/udptest.md` lists where this differs.
//!
//! - `settings`: what a test is, and what makes no sense; `units`: numbers with `k` and `M`
//! - `client`: the side that asks, one file for each kind of test; `server`: the side that answers
//! - `control`: the lines of the control connection; `datagram`: what the data looks like
//! - `address`, `secret`: who the two sides are
//! - `flow`: one direction of a stream; `trial`: what both ends counted, and the figures from it
//! - `report`, `system_log`, `plot`: the files; pure functions of what was measured
//!
//! Deliberately not here: printing, arguments, signals (the commands do that), RTPS.

mod address;
mod client;
mod control;
mod datagram;
mod error;
mod floor;
mod flow;
mod plot;
mod report;
mod secret;
mod server;
mod settings;
mod system_log;
mod trial;
mod units;

pub use address::Family;
pub use client::{Console, run};
pub use control::{ControlError, LINE_BYTES_MAX, Request, Response};
pub use error::UdptestError;
pub use floor::{
    Client, ClientSettings, FLOOR_PORT, FloorRequest, FloorResponse, Measured, PingReport, Point, PointTest,
    ReceiveReport, SendReport, UDP_BYTES_MIN, cases,
};
pub use plot::PlotData;
pub use secret::Secret;
pub use server::{Server, ServerKind, ServerSettings};
pub use settings::{DATAGRAM_BYTES_MAX, Mode, ServiceType, Settings};
pub use units::{parse_bytes, parse_rate};
