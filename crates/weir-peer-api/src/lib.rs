//! What another engine implements to be measured beside Weir.
//!
//! A [`Peer`] is an engine with one set of settings. [`Peer::open`] makes a [`Node`]: a participant with a
//! writer, with a reader whose samples go to a function on the engine's receiving thread, or with both.
//! A ping-pong and a stream need no more, and this is the fastest interface that most engines offer.
//!
//! - [`header`]: what every sample carries before its payload
//! - [`known`]: names of all engines that a build can have
//! - [`node`]: what a node is opened with, and what it can do
//! - [`participant`]: a participant with any number of endpoints, for workloads
//! - [`peer`]: an engine, its abilities and its settings
//! - [`mod@settings`]: tuning parameters with their defaults
//!
//! The engines are in `peers/`, a workspace of its own: the main workspace depends on none of them. They
//! depend on this crate and not on the bench, which depends on this crate and not on them.

pub mod header;
pub mod known;
pub mod node;
pub mod participant;
pub mod peer;
pub mod settings;

pub use header::Header;
pub use known::{KNOWN, Known};
pub use node::{LinkOptions, Matches, Node, NodeOptions, OnSample, PeerError, Writer, Written};
pub use participant::{
    EndpointOptions, EndpointReader, EndpointWriter, OnArrival, OpenParticipant, Participant,
};
pub use peer::{Abilities, Calls, Open, Peer};
pub use settings::{Setting, Settings, settings};
