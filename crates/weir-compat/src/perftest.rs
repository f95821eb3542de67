//! RTI Perftest's procedure: a publisher and a subscriber that find each other by three topics.
//!
//! - `Throughput` carries the samples, `Latency` the echoes, `Announcement` what a subscriber says of itself.
//! - The publisher waits until its subscribers are matched and have announced themselves, sends
//!   initialization pings (room is made and instances become known), then its samples, and the
//!   final marker until every subscriber has announced that it is done.
//! - A subscriber serves the publishers that it heard first, one run of each, and ends.
//!
//! What a sample is for stands in its header, never in its size; initialization pings describe the
//! run, so a subscriber need not be told. Nothing is printed here: a callback gets [`Event`]s.

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

pub use message::Description;
pub use pacing::{Pace, Rate};
pub use publisher::{Echo, Published, publish};
pub use raw::{RAW_BYTES_MAX, RawPeer};
pub use settings::{Groups, NodeSettings, PublisherSettings, Receive, SubscriberSettings};
pub use subscriber::{Interval, Received, subscribe};
pub use threads::{PerThread, ThreadSettings};
pub use weir_dds::Peer;

/// What happens during a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// What the run does, or waits for, now.
    Stage(String),
    /// Something that the user had better know.
    Warning(String),
    /// The subscriber has heard what the run will be.
    Described(Description),
    /// A ping of the measured part came back.
    Echo(Echo),
    /// A second of the subscriber.
    Interval(Interval),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As it should.
    Complete,
    /// The other end went away before it was done.
    PeerGone,
    /// It was stopped from outside.
    Interrupted,
}
