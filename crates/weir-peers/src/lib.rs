//! Other messaging engines behind one small interface, so that they can be measured beside Weir.
//!
//! A [`Peer`] is an engine with one set of settings; [`PEERS`] lists all that the project knows, built
//! in or not. [`Peer::open`] makes a [`Node`]: a participant with a writer, with a reader whose samples
//! go to a function on the engine's own receiving thread, or with both. That is all that a ping-pong
//! and a stream need, and it is the fastest way that each of these engines offers.
//!
//! - [`catalogue`]: which engines there are, and how to get those that are missing
//! - [`node`]: what a node is opened with, and what it can do
//! - [`settings`]: what can be tuned, with its defaults
//! - `foreign`: engines behind a C interface, with all unsafe code of this crate; `cyclonedds`,
//!   `fastdds`: what is particular about each
//! - `aeron`, `dust_dds`, `int2dds`, `rustdds`, `zenoh`, `zeromq`: engines that have an interface for Rust
//!
//! Every engine is a Cargo feature of its own, off by default. All of them use UDP only (where they
//! can), the one interface that they are told, and wait by blocking; but for Aeron, which polls.

#[cfg(feature = "aeron")]
mod aeron;
pub mod catalogue;
#[cfg(feature = "cyclonedds")]
mod cyclonedds;
#[cfg(feature = "dust_dds")]
mod dust_dds;
#[cfg(feature = "fastdds")]
mod fastdds;
#[cfg(any(feature = "cyclonedds", feature = "fastdds"))]
mod foreign;
#[cfg(feature = "int2dds")]
mod int2dds;
#[cfg(any(feature = "aeron", feature = "zenoh", feature = "zeromq"))]
mod message;
pub mod node;
#[cfg(feature = "rustdds")]
mod rustdds;
pub mod settings;
#[cfg(any(feature = "dust_dds", feature = "int2dds"))]
mod test_data;
#[cfg(feature = "zenoh")]
mod zenoh;
#[cfg(feature = "zeromq")]
mod zeromq;

pub use catalogue::{PEERS, Peer};
pub use node::{Header, Matches, Node, NodeOptions, OnSample, PeerError, Writer, Written};
pub use settings::{Setting, Settings};
