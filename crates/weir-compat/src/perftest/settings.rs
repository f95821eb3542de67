//! What both ends, and each of them, must know.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

pub use weir_dds::Durability;
use weir_dds::{InstanceHandle, Peer};
use weir_measure::nanos;

use super::event::End;
use super::instances::InstanceRange;
use super::message::Description;
use super::pacing::Rate;
use super::profiles::Profiles;
use super::threads::ThreadSettings;
use weir_bench::endpoint::EndpointError;
use weir_bench::payload::HEADER_BYTES;

/// The multicast groups of the three topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Of the samples.
    pub throughput: Ipv4Addr,
    /// Of the echoes.
    pub latency: Ipv4Addr,
    /// Of the announcements.
    pub announcement: Ipv4Addr,
}

impl Default for Groups {
    /// 239.255.1.1, 239.255.1.2 and 239.255.1.100, as RTI Perftest has them.
    fn default() -> Self {
        Self {
            throughput: Ipv4Addr::new(239, 255, 1, 1),
            latency: Ipv4Addr::new(239, 255, 1, 2),
            announcement: Ipv4Addr::new(239, 255, 1, 100),
        }
    }
}

/// What takes samples out of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receive {
    /// A listener, on the thread that receives.
    Listener,
    /// A thread of its own.
    Thread {
        /// The longest that it waits for `count` samples once there is one.
        delay: Duration,
        /// How many samples it waits for.
        count: usize,
    },
}

/// How an end meets the network.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// The DDS domain.
    pub domain: u32,
    /// Names or addresses of interfaces; empty: those of the environment, or all.
    pub interfaces: Vec<String>,
    /// Hosts to announce ourselves to.
    pub peers: Vec<Peer>,
    /// The groups to listen to, if any.
    pub multicast: Option<Groups>,
    /// Whether samples that are lost are sent again.
    pub reliable: bool,
    /// Whether the type has a key.
    pub keyed: bool,
    /// Instances of a keyed topic.
    pub instances: u32,
    /// The instances that a subscriber receives; `None`: all.
    pub only: Option<InstanceRange>,
    /// Samples or batches that a writer keeps at most; `None`: as many as the engine lets it.
    pub send_queue: Option<u32>,
    /// Samples that a reader keeps at most; `None`: bounded by their bytes.
    pub receive_queue: Option<u32>,
    /// What takes samples.
    pub receive: Receive,
    /// Whether [`Event`](super::event::Event)s of echoes and of seconds are enabled.
    pub intervals: bool,
    /// Whether late readers get the last samples. Without a persistence service, all but VOLATILE depend on the writer.
    pub durability: Durability,
    /// Whether samples, echoes and announcements are sent by threads of their writers.
    pub asynchronous: bool,
    /// QoS from a file; options go before it.
    pub profiles: Option<Arc<Profiles>>,
    /// Processors and priorities of its threads.
    pub threads: ThreadSettings,
    /// Whether the engine has no threads, and small buffers and histories.
    pub is_small: bool,
    /// Plain UDP in place of DDS, and where a publisher finds its subscribers.
    pub raw: Option<Vec<RawPeer>>,
}

/// A host with subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawPeer {
    /// Its address.
    pub address: Ipv4Addr,
    /// Which subscriber of it; `None`: number 0, and as many behind it as the publisher waits for.
    pub sid: Option<u32>,
}

/// What a publisher does.
#[derive(Clone, Debug)]
pub struct PublisherSettings {
    /// How it meets the network.
    pub node: NodeSettings,
    /// Size of a sample, header included, in bytes.
    pub data_len: usize,
    /// Bytes of a batch; 0: none.
    pub batch_bytes: usize,
    /// Every sample is a ping that is waited for.
    pub latency_test: bool,
    /// One ping per so many samples, or batches; at least 1.
    pub latency_count: u64,
    /// When to end; `None`: never by time.
    pub execution_time: Option<Duration>,
    /// Samples after which to end.
    pub num_iter: u64,
    /// Initialization pings; `None`: one for each place in the queue, and for each instance.
    pub initial_burst: Option<u64>,
    /// How many subscribers to wait for.
    pub num_subscribers: u32,
    /// Which publisher it is; only number 0 sends pings.
    pub pid: u32,
    /// The target rate; `None`: as fast as possible.
    pub rate: Option<Rate>,
    /// A pause after each sample.
    pub sleep: Option<Duration>,
    /// The one instance to write; `None`: round all of them.
    pub write_instance: Option<u32>,
    /// Content of the samples, taken piece by piece; `None`: zeros.
    pub content: Option<Arc<[u8]>>,
    /// Whether the same publisher will run again with another size.
    pub more_follows: bool,
}

/// What a subscriber does.
#[derive(Clone, Debug)]
pub struct SubscriberSettings {
    /// How it meets the network.
    pub node: NodeSettings,
    /// Which subscriber it is.
    pub sid: u32,
    /// How many publishers it serves.
    pub num_publishers: u32,
    /// The writers of publishers that earlier runs of this process served, see
    /// [`Received::served`](super::Received): their repeated final markers do not start a new run.
    pub served_before: Vec<InstanceHandle>,
    /// Whether its publishers have just ended the previous size of a scan: they return soon, or never.
    pub is_next_size: bool,
}

/// Samples of an instance that a publisher keeps for late subscribers, at most, and bytes of all of them.
const KEPT_MAX: u64 = 8192;
const KEPT_BYTES_MAX: u64 = 64 << 20;

impl NodeSettings {
    fn instances_written(&self) -> u64 {
        if self.keyed { u64::from(self.instances.max(1)) } else { 1 }
    }

    /// Samples of each instance that a publisher keeps for late subscribers.
    pub(super) fn kept_per_instance(&self, data_len: usize) -> u32 {
        let room = KEPT_BYTES_MAX / self.instances_written() / data_len.max(1) as u64;
        let kept = self.send_queue.map_or(KEPT_MAX, u64::from).min(room).max(1);
        u32::try_from(kept).unwrap_or(u32::MAX)
    }
}

/// Places in the queue that initialization pings stand for unless a size is given: RTI Perftest's default.
const SEND_QUEUE: u64 = 50;

impl PublisherSettings {
    /// The description for subscribers.
    pub(super) fn description(&self) -> Description {
        let word = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        Description {
            data_len: word(self.data_len),
            batch_bytes: word(self.batch_bytes),
            is_latency_test: self.latency_test,
            more_follows: self.more_follows,
        }
    }

    /// The description in the final marker of a run that ended so: one that ended early is the last of a scan.
    pub(super) fn last_description(&self, end: End) -> Description {
        Description { more_follows: self.more_follows && end == End::Complete, ..self.description() }
    }

    /// Samples that fill a batch; 1 without batches.
    pub(super) fn samples_per_batch(&self) -> u64 {
        (self.batch_bytes / self.data_len.max(1)).max(1) as u64
    }

    /// Samples after which a publisher that keeps samples for late subscribers waits for acknowledgements: it keeps
    /// the last ones, so it must not write over some that a subscriber misses. `None`: it need not wait.
    pub(super) fn acknowledged_every(&self) -> Option<u64> {
        let node = &self.node;
        let instances = if self.write_instance.is_some() { 1 } else { node.instances_written() };
        let kept = u64::from(node.kept_per_instance(self.data_len));
        (node.durability != Durability::Volatile && node.reliable).then(|| (kept * instances / 2).max(1))
    }

    /// When a run that starts at `start_ns` ends by time.
    pub(super) fn end_ns(&self, start_ns: u64) -> u64 {
        self.execution_time.map_or(u64::MAX, |time| start_ns.saturating_add(nanos(time)))
    }

    /// How many initialization pings are sent.
    #[must_use]
    pub fn initialization_pings(&self) -> u64 {
        self.initial_burst.unwrap_or_else(|| {
            let queue = self.node.send_queue.map_or(SEND_QUEUE, u64::from) * self.samples_per_batch();
            queue.max(if self.node.keyed { self.node.instances.into() } else { 0 })
        })
    }

    /// Refuses what makes no sense.
    pub(super) fn check(&self) -> Result<(), EndpointError> {
        if self.data_len < HEADER_BYTES {
            return Err(EndpointError::Engine(format!("samples have at least {HEADER_BYTES} bytes")));
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Settings of a publisher in a test.
    pub(in crate::perftest) fn publisher(data_len: usize) -> PublisherSettings {
        PublisherSettings {
            node: node(),
            data_len,
            batch_bytes: 0,
            latency_test: false,
            latency_count: 10_000,
            execution_time: None,
            num_iter: 1000,
            initial_burst: None,
            num_subscribers: 1,
            pid: 0,
            rate: None,
            sleep: None,
            write_instance: None,
            content: None,
            more_follows: false,
        }
    }

    /// Settings of an end in a test.
    pub(in crate::perftest) fn node() -> NodeSettings {
        NodeSettings {
            domain: 130,
            interfaces: vec!["lo".to_owned()],
            peers: Vec::new(),
            multicast: None,
            reliable: true,
            keyed: false,
            instances: 1,
            only: None,
            send_queue: None,
            receive_queue: None,
            receive: Receive::Listener,
            intervals: false,
            durability: Durability::Volatile,
            asynchronous: false,
            profiles: None,
            threads: ThreadSettings::default(),
            is_small: false,
            raw: None,
        }
    }

    #[test]
    fn what_is_kept_for_late_subscribers_is_bounded_and_never_written_over() {
        let node = NodeSettings { durability: Durability::TransientLocal, ..node() };
        let small = PublisherSettings { node: node.clone(), ..publisher(32) };
        assert_eq!((node.kept_per_instance(32), small.acknowledged_every()), (8192, Some(4096)));
        assert_eq!(publisher(32).acknowledged_every(), None);
        let large = PublisherSettings { node: node.clone(), ..publisher(100 << 20) };
        assert_eq!((node.kept_per_instance(100 << 20), large.acknowledged_every()), (1, Some(1)));
        let keyed = NodeSettings { keyed: true, instances: 100_000, ..node.clone() };
        let keyed = PublisherSettings { node: keyed, ..publisher(64) };
        assert_eq!((keyed.node.kept_per_instance(64), keyed.acknowledged_every()), (10, Some(500_000)));
        let one = PublisherSettings { write_instance: Some(3), ..keyed };
        assert_eq!(one.acknowledged_every(), Some(5));
        let queue = NodeSettings { send_queue: Some(50), ..node };
        assert_eq!(queue.kept_per_instance(32), 50);
    }

    #[test]
    fn only_a_run_that_is_complete_is_followed_by_another_size() {
        let settings = PublisherSettings { more_follows: true, ..publisher(32) };
        for (end, expected) in [(End::Complete, true), (End::PeerGone, false), (End::Interrupted, false)] {
            let last = settings.last_description(end);
            assert_eq!((last.data_len, last.more_follows), (32, expected), "{end:?}");
        }
        assert!(!publisher(32).last_description(End::Complete).more_follows);
    }

    #[test]
    fn initialization_pings_fill_the_queue_and_name_every_instance() {
        let settings = publisher(32);
        assert_eq!(settings.initialization_pings(), 50);
        let batched = PublisherSettings { batch_bytes: 8192, ..settings.clone() };
        assert_eq!(batched.initialization_pings(), 50 * 256);
        let node = NodeSettings { keyed: true, instances: 100_000, ..node() };
        let keyed = PublisherSettings { node, ..settings.clone() };
        assert_eq!(keyed.initialization_pings(), 100_000);
        let told = PublisherSettings { initial_burst: Some(3), ..keyed };
        assert_eq!(told.initialization_pings(), 3);
        assert!(settings.check().is_ok() && publisher(27).check().is_err());
    }
}
