//! Many participants that start together, each slower than all the others: what one has to receive grows with their
//! number, and so does the time until it answers. Repeating what is only late makes that worse.

use core::net::SocketAddrV4;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use weir_netsim::{Link, Network};
use weir_rtps::limits::{EndpointLimits, Limits};
use weir_rtps::outbox::Outbox;
use weir_rtps::packing::Packing;
use weir_rtps::qos::{Qos, Reliability};
use weir_rtps::time::Time;
use weir_wire::{EntityId, Message, Submessage};

use crate::live::node::{GROUP, META_PORT, Node, USER_PORT};
use crate::profile;

const PARTICIPANTS: usize = 24;
/// Writers and as many readers of each participant, on as many topics.
const TOPICS: u32 = 10;
/// Time between two starts, and between two endpoints of a participant.
const START_GAP: Duration = Duration::from_millis(2);
const ENDPOINT_GAP: Duration = Duration::from_micros(50);
/// What a participant takes for a datagram, while the others use the processors.
const READ_GAP: Duration = Duration::from_micros(100);
/// The stock buffer of a socket.
const BUFFER_BYTES: usize = 212_992;

struct Crowd {
    network: Network,
    now: Time,
    nodes: Vec<Node>,
    /// What was sent to single participants.
    counts: BTreeMap<&'static str, u64>,
    /// Times that a participant was called because something was due.
    timeouts: u64,
}

impl Crowd {
    fn new() -> Self {
        let network = Network::builder(1).link(Link::new().delay(Duration::from_micros(50))).build();
        Self { network, now: Time(1_000_000_000), nodes: Vec::new(), counts: BTreeMap::new(), timeouts: 0 }
    }

    fn add_participant(&mut self) {
        let number = self.nodes.len() as u8 + 1;
        let mut limits = None;
        let mut node = Node::new(number, self.now, |config| limits = profile::participant(config, LIMITS));
        node.limits = limits;
        for port in [META_PORT, USER_PORT, GROUP.port()] {
            let socket = SocketAddrV4::new(node.host, port);
            self.network.bind_with_buffer(socket, BUFFER_BYTES);
            self.network.set_read_gap(socket, READ_GAP);
        }
        self.network.join(GROUP, SocketAddrV4::new(node.host, GROUP.port()));
        self.nodes.push(node);
    }

    fn add_endpoints(&mut self, topic: u32) {
        let name = format!("topic {topic}");
        let qos = Qos { reliability: Reliability::Reliable, ..Qos::for_reader() };
        let Some(node) = self.nodes.last_mut() else { return };
        node.add_writer(self.now, EntityId::user_writer(2 * topic, false), &name, qos.clone());
        node.add_reader(self.now, EntityId::user_reader(2 * topic + 1, false), &name, qos, |_| {});
    }

    /// Starts all, and runs until they are matched.
    fn start_all() -> Self {
        let mut crowd = Self::new();
        for _ in 0..PARTICIPANTS {
            crowd.add_participant();
            for topic in 0..TOPICS {
                crowd.run_for(ENDPOINT_GAP);
                crowd.add_endpoints(topic);
            }
            crowd.run_for(START_GAP);
        }
        crowd.run_for(Duration::from_secs(5));
        for node in &crowd.nodes {
            assert!(node.writers.values().all(|writer| writer.matched() == PARTICIPANTS));
            assert!(node.readers.values().all(|reader| reader.matched().count() == PARTICIPANTS));
        }
        crowd
    }

    fn run_for(&mut self, period: Duration) {
        let end = self.now + period;
        self.transmit();
        while let Some(at) = self.next_at().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.step();
        }
        self.now = end;
    }

    fn next_at(&self) -> Option<Time> {
        let arrival = self.network.next_arrival().map(|at| Time(at.as_nanos() as u64));
        arrival.into_iter().chain(self.nodes.iter().filter_map(Node::next_timeout)).min()
    }

    fn step(&mut self) {
        let now = self.now;
        while let Some(delivery) = self.network.deliver(Duration::from_nanos(now.0)) {
            let index = usize::from(delivery.receiver.ip().octets()[3]) - 1;
            self.nodes[index].receive(now, delivery.from, delivery.receiver.port(), &delivery.bytes);
        }
        for node in &mut self.nodes {
            if node.next_timeout().is_some_and(|at| at <= now) {
                self.timeouts += 1;
                node.handle_timeout(now);
            }
        }
        self.transmit();
    }

    /// Sends what is due; messages of endpoints together, as a driver does.
    fn transmit(&mut self) {
        let now = Duration::from_nanos(self.now.0);
        for node in &mut self.nodes {
            let host = node.host;
            let (network, counts) = (&mut self.network, &mut self.counts);
            let mut send = |port, to, bytes: &[u8]| {
                count(to, port, bytes, counts);
                network.send(now, SocketAddrV4::new(host, port), to, bytes).expect("it fits a datagram");
            };
            let (mut unpacked, mut packed) = (Outbox::new(), Outbox::new());
            node.transmit(self.now, |port, to, bytes| match port {
                META_PORT => send(port, to, bytes),
                _ => unpacked.message(&Arc::from([to]), |message| message.extend_from_slice(bytes)),
            });
            Packing::default().pack(&mut unpacked, &mut packed);
            packed.for_each_datagram(|to, bytes| send(USER_PORT, to[0], bytes));
        }
    }

    /// How many of a kind were sent, on average from one participant to another.
    fn per_pair(&self, kind: &str) -> f64 {
        let pairs = self.nodes.len() * (self.nodes.len() - 1);
        self.counts.get(kind).map_or(0.0, |count| *count as f64 / pairs as f64)
    }

    /// Checks that no more than this was sent from one participant to another.
    fn check(&self, bounds: &[(&str, f64)]) {
        for (kind, max) in bounds {
            let sent = self.per_pair(kind);
            assert!(sent <= *max, "{sent:.2} {kind} from each to each: {:?}", self.counts);
        }
    }
}

fn count(to: SocketAddrV4, port: u16, bytes: &[u8], counts: &mut BTreeMap<&'static str, u64>) {
    if to == GROUP {
        return;
    }
    let datagrams = if port == META_PORT { "datagrams of discovery" } else { "datagrams of endpoints" };
    *counts.entry(datagrams).or_default() += 1;
    let message = Message::parse(bytes).expect("what is sent is a message");
    for submessage in message.submessages().filter_map(Result::ok) {
        let kind = match submessage {
            Submessage::Data(data) if data.writer == EntityId::SPDP_WRITER => "participants",
            Submessage::Data(_) => "announced endpoints",
            Submessage::Heartbeat(heartbeat) if heartbeat.writer.is_builtin() => "HEARTBEATs of discovery",
            Submessage::AckNack(acknack) if acknack.writer.is_builtin() => "ACKNACKs of discovery",
            Submessage::Heartbeat(_) => "HEARTBEATs",
            Submessage::AckNack(_) => "ACKNACKs",
            _ => continue,
        };
        *counts.entry(kind).or_default() += 1;
    }
}

#[test]
fn participants_that_start_together_repeat_nothing_that_is_only_late() {
    let crowd = Crowd::start_all();
    assert_eq!(crowd.network.counters().buffer_full, 0, "{:?}", crowd.counts);
    let endpoints = f64::from(2 * TOPICS);
    crowd.check(&[
        ("participants", 5.0),
        ("announced endpoints", 1.05 * endpoints),
        ("datagrams of discovery", 14.0),
        ("HEARTBEATs of discovery", 10.0),
        ("ACKNACKs of discovery", 14.0),
        // They are on several hosts: what is sent before the first answer is limited, so matches begin one by one.
        ("datagrams of endpoints", 8.0),
        ("HEARTBEATs", 2.0 * f64::from(TOPICS)),
        ("ACKNACKs", 4.0 * f64::from(TOPICS)),
    ]);
}

#[test]
fn participants_at_rest_send_announcements_to_all_and_look_at_each_other_rarely() {
    let mut crowd = Crowd::start_all();
    crowd.run_for(Duration::from_secs(30));
    (crowd.counts, crowd.timeouts) = (BTreeMap::new(), 0);
    crowd.run_for(Duration::from_secs(60));
    // One announcement in six seconds, by multicast, and to each by unicast: they are on several hosts.
    crowd.check(&[("participants", 10.0), ("datagrams of discovery", 10.0)]);
    crowd.check(&[("HEARTBEATs of discovery", 0.0), ("ACKNACKs of discovery", 0.0)]);
    crowd.check(&[("datagrams of endpoints", 0.0)]);
    let timeouts = crowd.timeouts as f64 / PARTICIPANTS as f64;
    assert!(timeouts <= 20.0, "{timeouts} timeouts per participant in a minute");
}

/// Room for all.
const LIMITS: Limits = Limits {
    participants: PARTICIPANTS,
    endpoints_per_participant: 2 * TOPICS as usize,
    writers: TOPICS as usize,
    readers: TOPICS as usize,
    endpoint: EndpointLimits { matches: PARTICIPANTS, ..EndpointLimits::SMALL },
    ..Limits::SMALL
};
