//! Participants with a writer and a reader each on a simulated network: the driver's work in
//! virtual time.

use core::net::SocketAddrV4;
use core::time::Duration;

use weir_netsim::{Builder, Network};
use weir_rtps::qos::Qos;
use weir_rtps::time::Time;
use weir_rtps::writer::{Change, WriteRefused};
use weir_wire::{EntityId, Timestamp};

#[path = "../../crates/weir-rtps/tests/sim/live/node.rs"]
mod node;

use node::{GROUP, META_PORT, Node, USER_PORT};

/// Some participants on a network, each on its own host with a writer and a reader of the same
/// topic. They are numbered from 0.
pub struct World {
    /// The network, for its counters and its recording.
    pub network: Network,
    now: Time,
    nodes: Vec<Node>,
}

impl World {
    /// Creates participants on a network, with writers and readers of these policies, starting now.
    #[must_use]
    pub fn new(network: Builder, nodes: u8, writer: &Qos, reader: &Qos) -> Self {
        let (mut network, now) = (network.build(), Time::ZERO);
        let node = |number| {
            let mut node =
                Node::new(number, now, |config| config.entity_name = Some(format!("node {number}")));
            for port in [META_PORT, USER_PORT, GROUP.port()] {
                network.bind(SocketAddrV4::new(node.host, port));
            }
            network.join(GROUP, SocketAddrV4::new(node.host, GROUP.port()));
            node.add_writer(now, WRITER, "Square", writer.clone());
            node.add_reader(now, READER, "Square", reader.clone(), |_| {});
            node
        };
        let nodes = (1..=nodes).map(node).collect();
        Self { network, now, nodes }
    }

    /// Returns the number of readers that the writer of a participant is matched with.
    #[must_use]
    pub fn matched(&mut self, index: usize) -> usize {
        self.nodes[index].writer(WRITER).matched()
    }

    /// Writes a sample.
    ///
    /// # Errors
    ///
    /// As [`weir_rtps::writer::WriterCore::write_change`].
    pub fn write(&mut self, index: usize, change: Change<'_>) -> Result<(), WriteRefused> {
        let timestamp = Timestamp::from_unix_nanos(EPOCH_NS + self.now.0);
        self.nodes[index].writer(WRITER).write_change(self.now, Some(timestamp), change)?;
        self.transmit();
        Ok(())
    }

    /// Runs until `goal` is met; false if it is not met within `limit`.
    pub fn run_until(&mut self, limit: Duration, mut goal: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + limit;
        self.transmit();
        while !goal(self) {
            let Some(next) = self.next_time().filter(|next| *next <= end) else {
                self.now = end;
                return goal(self);
            };
            self.now = next.max(self.now);
            self.step();
        }
        true
    }

    /// Runs for some time.
    pub fn run_for(&mut self, period: Duration) {
        self.run_until(period, |_| false);
    }

    /// Closes a participant, with its goodbye.
    pub fn close(&mut self, index: usize) {
        self.nodes[index].core.close(self.now);
        self.transmit();
    }

    fn next_time(&self) -> Option<Time> {
        let arrival = self.network.next_arrival().map(|at| Time::ZERO + at);
        arrival.into_iter().chain(self.nodes.iter().filter_map(Node::next_timeout)).min()
    }

    fn step(&mut self) {
        while let Some(delivery) = self.network.deliver(Duration::from_nanos(self.now.0)) {
            let (host, port) = (*delivery.receiver.ip(), delivery.receiver.port());
            let node = self.nodes.iter_mut().find(|node| node.host == host).expect("only nodes are bound");
            node.receive(self.now, delivery.from, port, &delivery.bytes);
            assert_eq!(node.receiver.counters().malformed, 0, "only we send");
        }
        for node in &mut self.nodes {
            node.handle_timeout(self.now);
            while node.reader(READER).take_next(|_| {}) {}
        }
        self.transmit();
    }

    fn transmit(&mut self) {
        let (network, now) = (&mut self.network, Duration::from_nanos(self.now.0));
        for node in &mut self.nodes {
            let host = node.host;
            node.transmit(self.now, |port, to, bytes| {
                // Datagrams that are too large are lost, as on a real network.
                let _ = network.send(now, SocketAddrV4::new(host, port), to, bytes);
            });
        }
    }
}

/// 2026-01-01: timestamps have to be plausible.
const EPOCH_NS: u64 = 1_767_225_600_000_000_000;

const WRITER: EntityId = EntityId::user_writer(1, false);
const READER: EntityId = EntityId::user_reader(2, false);
