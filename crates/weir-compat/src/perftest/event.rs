//! What happens during a run, and how it ends.

use std::time::Duration;

use super::message::Description;

/// What happens during a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// What the run does, or waits for.
    Stage(String),
    /// A warning for the user.
    Warning(String),
    /// The subscriber received a description of the run.
    Described(Description),
    /// The measured part begins: the publisher sends samples, or the subscriber has received the first one.
    Begun,
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

/// The echo of a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The whole round trip.
    pub rtt_ns: u64,
}

/// One second of the subscriber.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// Size of the samples, header included.
    pub data_len: usize,
    /// Samples so far.
    pub samples: u64,
    /// Samples in this interval.
    pub new_samples: u64,
    /// How long the interval was.
    pub length: Duration,
    /// Samples missing so far.
    pub lost: u64,
}
