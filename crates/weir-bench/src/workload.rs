//! Workloads: many nodes and topics at fixed rates, as applications have them.
//!
//! A workload is a TOML file. Its nodes are spread over a few processes, the same for each engine. Every node is a
//! participant with the writers and readers of its topics. Each node that writes has a thread that follows the
//! schedules of its writers. Readers get samples on the engine's threads, and record their ages from the time at which
//! each was due, so that a stall shows in every sample that it delayed.
//!
//! A reader is never in the same process as a writer of its topic: some engines pass samples on within a process, and
//! would skip the network.
//!
//! - `parse`: the file; `scale`: its parameter N; `layout`: which node has which endpoints, and in which process
//! - `timetable`: when the samples of a writer are due
//! - `deliveries`: what readers received; `process`: one process; `measure`: all of them; `enter`: the result

mod deliveries;
mod enter;
#[cfg(test)]
mod examples;
mod layout;
mod measure;
mod parse;
pub(crate) mod process;
mod scale;
mod timetable;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use weir_results::Reliability;

pub use layout::{Layout, PlacedNode, PlacedReader, PlacedWriter};
pub use parse::WorkloadError;

pub(crate) use enter::enter;
#[cfg(test)]
pub(crate) use examples::PAIR;
pub(crate) use measure::{PEERS_WAIT, measure};
pub use process::ProcessOutcome;

/// Nodes and topics with their rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Its name, in results and tables.
    pub name: String,
    /// The digest of its contents, 16 hexadecimal digits: distinguishes files of the same name.
    pub digest: String,
    /// The value of its parameter N; `None`: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u32>,
    /// Processes that the nodes are spread over.
    pub processes: u32,
    /// The nodes.
    pub nodes: Vec<NodeGroup>,
    /// The topics.
    pub topics: Vec<TopicGroup>,
}

/// Nodes of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeGroup {
    /// Its name.
    pub name: String,
    /// Number of nodes.
    pub count: u32,
    /// The processes that they are spread over, from 0; empty: all.
    pub processes: Vec<u32>,
}

/// Topics of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopicGroup {
    /// Its name.
    pub name: String,
    /// Number of topics.
    pub count: u32,
    /// Serialized size of a sample, with the 28 bytes before the payload.
    pub size_bytes: usize,
    /// How often each writer is due, per second.
    pub rate_hz: f64,
    /// Samples that it writes then.
    pub burst: u32,
    /// Instances of each writer; 0: not keyed.
    pub instances: u32,
    /// Whether samples may be lost.
    pub reliability: Reliability,
    /// Samples that writers and readers keep (KEEP_LAST); `None`: all.
    pub keep_last: Option<u32>,
    /// Kinds of nodes with the writers.
    pub from: Vec<usize>,
    /// Writers of each topic.
    pub writers: u32,
    /// Kinds of nodes with the readers.
    pub to: Vec<usize>,
    /// Readers of each topic.
    pub readers: u32,
}

impl Workload {
    /// The most processes.
    pub const PROCESSES_MAX: u32 = 64;
    /// The most nodes: each has sockets and threads.
    pub const NODES_MAX: u32 = 1_000;
    /// The most topics, and the most writers.
    pub const WRITERS_MAX: u64 = 20_000;
    /// The most readers.
    pub const READERS_MAX: u64 = 100_000;
    /// The most instances of all topics.
    pub const INSTANCES_MAX: u64 = 1_000_000;
    /// The most pairs of a writer and a reader of one topic.
    pub const PAIRS_MAX: u64 = 1_000_000;
    /// The most samples that all readers together should receive: a bit of memory each.
    pub const DELIVERIES_MAX: f64 = 2e9;

    /// Reads a workload. `name` is that of the file, or of a ready-made workload.
    ///
    /// # Errors
    /// With file, line and cause.
    pub fn parse(name: &str, text: &str) -> Result<Self, WorkloadError> {
        parse::workload(name, text)
    }

    /// Reads a workload with a parameter, which is `"N"`, `"x*N"` or `"x/N"` in the place of a number. The name gets
    /// its value, as in `readers-8`.
    ///
    /// # Errors
    /// With file, line and cause.
    pub fn parse_scaled(name: &str, text: &str, n: u32) -> Result<Self, WorkloadError> {
        let read = Self::parse(name, &scale::scaled(text, n))?;
        Ok(Self { name: format!("{}-{n}", read.name), n: Some(n), ..read })
    }

    /// Returns whether a text has the parameter N.
    #[must_use]
    pub fn has_parameter(text: &str) -> bool {
        scale::scaled(text, 1) != text
    }

    /// Samples that all readers together should receive in so many seconds.
    #[must_use]
    pub fn deliveries(&self, seconds: f64) -> f64 {
        let of = |topic: &TopicGroup| {
            let endpoints = f64::from(topic.count) * f64::from(topic.writers) * f64::from(topic.readers);
            endpoints * topic.rate_hz * f64::from(topic.burst)
        };
        self.topics.iter().map(of).sum::<f64>() * seconds
    }

    /// Returns the same with the digest of its contents. Formatting, comments and the name are no part of it.
    fn with_digest(self) -> Self {
        let contents = serde_json::to_vec(&(self.processes, &self.nodes, &self.topics)).unwrap_or_default();
        let hash = Sha256::digest(contents);
        let digest = hash.iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect();
        Self { digest, ..self }
    }

    /// The largest sample, bytes.
    #[must_use]
    pub fn size_bytes_max(&self) -> usize {
        self.topics.iter().map(|topic| topic.size_bytes).max().unwrap_or(0)
    }
}

/// Bytes of the hash that are kept as digest.
const DIGEST_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_changes_the_contents_and_is_in_the_name() {
        let text = PAIR.replacen("size = 64", "instances = \"N\"\n    size = 64", 1);
        assert!(Workload::has_parameter(&text) && !Workload::has_parameter(PAIR));
        let of = |n| Workload::parse_scaled("dir/keys.toml", &text, n).unwrap();
        let (one, many) = (of(1), of(100));
        assert_eq!((many.name.as_str(), many.n, many.topics[0].instances), ("keys-100", Some(100), 100));
        assert_ne!(one.digest, many.digest);
        let error = Workload::parse("keys.toml", &text).unwrap_err().to_string();
        assert!(error.contains("invalid type: string \"N\""), "{error}");
    }

    #[test]
    fn the_digest_is_that_of_the_contents() {
        let digest = |name: &str, text: &str| Workload::parse(name, text).unwrap().digest;
        let one = digest("one.toml", PAIR);
        assert!(one.len() == 16 && one.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
        assert_eq!(digest("two.toml", &format!("# A comment\n{PAIR}")), one);
        for (before, after) in [("size = 64", "size = 65"), ("rate = 10", "rate = 11"), ("'kept'", "'other'")]
        {
            assert!(PAIR.contains(before));
            assert_ne!(digest("one.toml", &PAIR.replacen(before, after, 1)), one, "{after}");
        }
    }
}
