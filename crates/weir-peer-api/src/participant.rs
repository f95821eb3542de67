//! A participant with any number of writers and readers, for workloads of many topics.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::header::Header;
use crate::node::{NodeOptions, PeerError, Written};

/// Options of a writer or a reader.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    /// The topic.
    pub topic: String,
    /// Reliable, or else best effort.
    pub is_reliable: bool,
    /// Whether the type has a key.
    pub is_keyed: bool,
    /// Instances of all writers of the topic; 0 when not keyed.
    pub instances: u32,
    /// Samples to keep (KEEP_LAST); `None`: all.
    pub keep_last: Option<u32>,
    /// Payload of every sample, bytes.
    pub payload_bytes: usize,
    /// How long a write may wait.
    pub max_blocking_time: Duration,
}

/// Receives every sample of a reader, on the thread that received it.
pub type OnArrival = Box<dyn Fn(&Header) + Send + Sync>;

/// A participant of an engine.
pub trait Participant: Send {
    /// Creates a writer.
    ///
    /// # Errors
    /// The engine's error.
    fn create_writer(&mut self, options: &EndpointOptions) -> Result<Box<dyn EndpointWriter>, PeerError>;

    /// Creates a reader whose samples go to `on_sample` on the engine's thread.
    ///
    /// # Errors
    /// The engine's error.
    fn create_reader(
        &mut self,
        options: &EndpointOptions,
        on_sample: OnArrival,
    ) -> Result<Box<dyn EndpointReader>, PeerError>;
}

/// A writer of a participant.
pub trait EndpointWriter: Send {
    /// Writes one sample.
    ///
    /// # Errors
    /// The engine's error.
    fn write(&self, header: &Header, payload: &[u8]) -> Result<Written, PeerError>;

    /// Counts the readers that are matched now.
    fn matched(&self) -> u32;
}

/// A reader of a participant.
pub trait EndpointReader: Send {
    /// Counts the writers that are matched now.
    fn matched(&self) -> u32;
}

/// Opens a participant. Of the options, those of its topics do not apply.
pub type OpenParticipant = fn(&NodeOptions) -> Result<Box<dyn Participant>, PeerError>;

impl NodeOptions {
    /// Options of a participant without topics.
    #[must_use]
    pub fn of_participant(domain: u32, interface: String, address: Ipv4Addr) -> Self {
        Self { domain, ..Self::new(interface, address) }
    }
}
