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
mod event;
mod instances;
mod intervals;
mod message;
mod node;
mod pacing;
mod probe;
mod profiles;
mod publisher;
mod raw;
mod reading;
mod receiver;
mod settings;
mod subscriber;
mod threads;
mod waiting;

pub use echoes::Published;
pub use event::{Echo, End, Event, Interval};
pub use instances::InstanceRange;
pub use message::Description;
pub use pacing::{Pace, Rate};
pub use profiles::{DEFAULT_LIBRARY, Profiles};
pub use publisher::publish;
pub use raw::RAW_BYTES_MAX;
pub use receiver::Received;
pub use settings::{
    Durability, Groups, NodeSettings, PublisherSettings, RawPeer, Receive, SubscriberSettings,
};
pub use subscriber::subscribe;
pub use threads::{PerThread, ThreadSettings};
pub use weir_dds::Peer;
