//! RTI Perftest's procedure: a publisher and a subscriber that find each other by three topics.
//!
//! - `Throughput` carries the samples, `Latency` the echoes, `Announcement` the state of
//!   subscribers.
//! - The publisher waits until its subscribers are matched and have announced themselves. It sends
//!   initialization pings (memory is allocated and instances become known), then its samples, then
//!   the final marker until every subscriber has announced that it is done.
//! - A subscriber serves the first publishers that it receives from, one run of each, and ends.
//!
//! A sample's purpose is in its header, never in its size. Initialization pings describe the run to
//! subscribers. Nothing is printed here: a callback gets [`Event`]s.

mod announcement;
mod drive;
mod echoes;
mod message;
mod node;
mod pacing;
mod probe;
mod publisher;
mod raw;
mod reading;
mod receiver;
mod settings;
mod subscriber;
mod threads;
mod waiting;

pub use echoes::{Echo, Published};
pub use message::Description;
pub use pacing::{Pace, Rate};
pub use publisher::publish;
pub use raw::{RAW_BYTES_MAX, RawPeer};
pub use receiver::{Interval, Received};
pub use settings::{Groups, NodeSettings, PublisherSettings, Receive, SubscriberSettings};
pub use subscriber::subscribe;
pub use threads::{PerThread, ThreadSettings};
pub use weir_dds::Peer;

/// What happens during a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// What the run does, or waits for.
    Stage(String),
    /// A warning for the user.
    Warning(String),
    /// The subscriber received a description of the run.
    Described(Description),
    /// An echo of the measured part arrived.
    Echo(Echo),
    /// A second of the subscriber.
    Interval(Interval),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Completed.
    Complete,
    /// The other end left before the end.
    PeerGone,
    /// It was stopped from outside.
    Interrupted,
}
