//! One end of a measurement in another engine.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use crate::header::Header;
use crate::settings::Settings;

/// Options of a node.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// DDS domain.
    pub domain: u32,
    /// The network interface that carries the samples, e.g. `lo`.
    pub interface: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Reliable, or else best effort.
    pub is_reliable: bool,
    /// Whether the type has a key.
    pub is_keyed: bool,
    /// Instances that are written; 0 when not keyed.
    pub instances: u32,
    /// KEEP_ALL, or else KEEP_LAST 1.
    pub keeps_all: bool,
    /// Gather samples into messages; flushed by [`Node::flush`].
    pub is_batching: bool,
    /// Payload of every sample, bytes.
    pub payload_bytes: usize,
    /// Busy-wait for samples, where the engine can.
    pub is_spinning: bool,
    /// How long a write may wait.
    pub max_blocking_time: Duration,
    /// The link to the readers, where a virtual link has a rate: for engines that are configured for one.
    pub link: Option<LinkOptions>,
    /// Topic to write.
    pub write_topic: Option<String>,
    /// Topic to read.
    pub read_topic: Option<String>,
    /// Values for the engine's settings.
    pub settings: Settings,
}

/// A link that engines can be configured for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkOptions {
    /// Bits of IP packets per second, to the readers.
    pub rate_bps: u64,
    /// Round trip without queues.
    pub round_trip: Duration,
}

impl NodeOptions {
    /// Reliable, unkeyed, keeping all, without topics, in domain 0.
    pub fn new(interface: String, address: Ipv4Addr) -> Self {
        Self {
            domain: 0,
            interface,
            address,
            is_reliable: true,
            is_keyed: false,
            instances: 0,
            keeps_all: true,
            is_batching: false,
            payload_bytes: 0,
            is_spinning: false,
            max_blocking_time: Duration::ZERO,
            link: None,
            write_topic: None,
            read_topic: None,
            settings: Settings::default(),
        }
    }

    /// The value of a setting; `None` where it is empty and the engine's default applies.
    ///
    /// # Errors
    /// When the value cannot be parsed: results must not name a setting that was not applied.
    pub fn setting<V: FromStr>(&self, name: &str) -> Result<Option<V>, PeerError> {
        let Some(value) = self.settings.get(name).filter(|value| !value.is_empty()) else { return Ok(None) };
        value
            .parse()
            .map(Some)
            .map_err(|_| PeerError::Setting { name: name.to_owned(), value: value.clone() })
    }
}

/// Writes samples.
pub trait Writer: Send + Sync {
    /// Writes one sample.
    ///
    /// # Errors
    /// The engine's error.
    fn write(&self, header: &Header, payload: &[u8]) -> Result<Written, PeerError>;
}

/// Result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The engine took the sample.
    Taken,
    /// It would have waited longer than `max_blocking_time`.
    TimedOut,
}

/// Receives every sample, with the node's own writer, on the thread that received it.
pub type OnSample = Box<dyn Fn(&dyn Writer, &Header, &[u8]) + Send + Sync>;

/// A participant with a writer, a reader, or both.
pub trait Node {
    /// Writes its samples.
    fn writer(&self) -> &dyn Writer;

    /// Address for the other end to connect to, for engines without discovery.
    fn address(&self) -> Option<SocketAddrV4> {
        None
    }

    /// Connects to the other end, for engines without discovery.
    ///
    /// # Errors
    /// The engine's error.
    fn join(&mut self, _peer: Option<SocketAddrV4>) -> Result<(), PeerError> {
        Ok(())
    }

    /// Counts the remote endpoints that are matched now.
    fn matches(&self) -> Matches;

    /// Sends gathered samples, if the engine gathers any.
    fn flush(&self) {}

    /// Waits until every reliable reader has acknowledged everything; false on timeout. Without
    /// acknowledgments there is nothing to wait for.
    fn wait_for_acknowledgments(&self, _timeout: Duration) -> bool {
        true
    }
}

/// Remote endpoints that are matched with those of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// Readers of what it writes.
    pub readers: u32,
    /// Writers of what it reads.
    pub writers: u32,
}

/// Error of a peer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PeerError {
    /// A setting has an invalid value.
    #[error("the setting {name} cannot be {value:?}")]
    Setting {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// Reported by the engine.
    #[error("{0}")]
    Engine(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_or_refused() {
        let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let settings = [setting("bytes", "4096"), setting("unset", ""), setting("units", "4k")];
        let options = NodeOptions {
            settings: Settings::from(settings),
            ..NodeOptions::new("lo".to_owned(), Ipv4Addr::LOCALHOST)
        };
        assert_eq!(options.setting("bytes"), Ok(Some(4096)));
        assert_eq!(options.setting::<u32>("unset"), Ok(None));
        assert_eq!(options.setting::<u32>("absent"), Ok(None));
        let refusal = options.setting::<u32>("units").unwrap_err().to_string();
        assert_eq!(refusal, "the setting units cannot be \"4k\"");
    }
}
