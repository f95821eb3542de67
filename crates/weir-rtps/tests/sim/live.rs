//! A live participant, an honest peer and an attacker, on a simulated network with virtual time.

pub(crate) mod forge;
pub(crate) mod node;

use core::net::SocketAddrV4;
use core::time::Duration;
use std::collections::BTreeMap;

use weir_netsim::{Link, Network};
use weir_rtps::limits::{EndpointLimits, Limits};
use weir_rtps::qos::{Durability, History, Qos, Reliability};
use weir_rtps::time::Time;
use weir_rtps::writer::{Change, ChangeKind};
use weir_wire::{EntityId, Guid, GuidPrefix, Message, ParameterId};

use forge::{ATTACKER, BYSTANDER, Forged};
use node::{GROUP, META_PORT, Node, USER_PORT};

use crate::profile;

/// The participant under attack.
pub(crate) const VICTIM: usize = 0;
/// The honest peer that exchanges samples with it.
pub(crate) const PEER: usize = 1;
/// A participant of the attacker that the victim considers ordinary.
pub(crate) const INSIDER: GuidPrefix = GuidPrefix([0x66; 12]);

/// The victim's readers: reliable; keyed with KEEP_LAST; best effort.
pub(crate) const IN: EntityId = EntityId::user_reader(1, false);
pub(crate) const KEYED: EntityId = EntityId::user_reader(2, true);
pub(crate) const LOOSE: EntityId = EntityId::user_reader(3, false);
/// The victim's writers: reliable KEEP_ALL; keyed TRANSIENT_LOCAL.
pub(crate) const OUT: EntityId = EntityId::user_writer(4, false);
pub(crate) const KEPT: EntityId = EntityId::user_writer(5, true);

/// The other ends, of the peer and of the insider.
pub(crate) const TO_IN: EntityId = EntityId::user_writer(1, false);
pub(crate) const TO_KEYED: EntityId = EntityId::user_writer(2, true);
pub(crate) const TO_LOOSE: EntityId = EntityId::user_writer(3, false);
pub(crate) const FROM_OUT: EntityId = EntityId::user_reader(4, false);
pub(crate) const FROM_KEPT: EntityId = EntityId::user_reader(5, true);

/// Bytes of samples that each reader of the victim may keep.
pub(crate) const READER_BYTES: usize = 1 << 20;

/// All participants, and the network between them.
pub(crate) struct Live {
    pub(crate) network: Network,
    pub(crate) now: Time,
    pub(crate) nodes: [Node; 2],
    /// What reached the attacker and the bystander, by address: datagrams and bytes.
    pub(crate) reached: BTreeMap<SocketAddrV4, (u64, u64)>,
    /// Datagrams and bytes that the victim has sent.
    pub(crate) sent: (u64, u64),
    /// Sample numbers taken, by reader node and writer.
    taken: BTreeMap<(usize, Guid), Vec<u64>>,
    /// How many samples were written on each honest topic.
    written: u64,
    sedp_numbers: [i64; 2],
}

impl Live {
    /// Creates the victim and its peer, which have discovered each other and exchanged samples.
    pub(crate) fn new() -> Self {
        Self::with_limits(profile::IS_SMALL.then_some(LIMITS))
    }

    /// The same, with a limits table of the victim.
    pub(crate) fn with_limits(limits: Option<Limits>) -> Self {
        let mut network = Network::builder(1).link(Link::new().delay(Duration::from_micros(50))).build();
        let now = Time(1_000_000_000);
        let mut nodes = [1, 2].map(|number| {
            Node::new(number, now, |config| {
                config.lease_duration = LEASE;
                if let Some(limits) = limits.filter(|_| number == 1) {
                    *config = config.clone().with_limits(limits);
                }
            })
        });
        nodes[VICTIM].limits = limits.map(|limits| limits.endpoint);
        for host in nodes.each_ref().map(|node| node.host).into_iter().chain([ATTACKER]) {
            for port in [META_PORT, USER_PORT] {
                network.bind_with_buffer(SocketAddrV4::new(host, port), 1 << 30);
            }
            network.bind(SocketAddrV4::new(host, GROUP.port()));
            network.join(GROUP, SocketAddrV4::new(host, GROUP.port()));
        }
        network.bind_with_buffer(BYSTANDER, 1 << 30);
        let mut live = Self {
            network,
            now,
            nodes,
            reached: BTreeMap::new(),
            sent: (0, 0),
            taken: BTreeMap::new(),
            written: 0,
            sedp_numbers: [0; 2],
        };
        live.add_endpoints();
        live.run_for(Duration::from_secs(2));
        live.exchange();
        live
    }

    fn add_endpoints(&mut self) {
        let now = self.now;
        let [victim, peer] = &mut self.nodes;
        let bound = |config: &mut weir_rtps::reader::ReaderConfig| config.max_bytes = READER_BYTES;
        for (entity, other, topic, qos) in [
            (IN, TO_IN, "in", reliable()),
            (KEYED, TO_KEYED, "keyed", Qos { history: History::KeepLast(1), ..reliable() }),
            (LOOSE, TO_LOOSE, "loose", Qos { reliability: Reliability::BestEffort, ..reliable() }),
        ] {
            victim.add_reader(now, entity, topic, qos.clone(), bound);
            peer.add_writer(now, other, topic, qos);
        }
        let kept =
            Qos { durability: Durability::TransientLocal, history: History::KeepLast(1), ..reliable() };
        for (entity, other, topic, qos) in
            [(OUT, FROM_OUT, "out", reliable()), (KEPT, FROM_KEPT, "kept", kept)]
        {
            victim.add_writer(now, entity, topic, qos.clone());
            peer.add_reader(now, other, topic, qos, |_| {});
        }
    }

    /// The victim's address with a port.
    pub(crate) fn victim_at(&self, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(self.nodes[VICTIM].host, port)
    }

    /// Sends a message of the attacker to one of the victim's ports.
    pub(crate) fn attack(&mut self, port: u16, message: &Forged) {
        self.attack_raw(port, &message.0);
    }

    /// Sends bytes of the attacker to one of the victim's ports.
    pub(crate) fn attack_raw(&mut self, port: u16, bytes: &[u8]) {
        self.attack_from(SocketAddrV4::new(ATTACKER, port), port, bytes);
    }

    /// The same, with any source address.
    pub(crate) fn attack_from(&mut self, from: SocketAddrV4, port: u16, bytes: &[u8]) {
        let to = self.victim_at(port);
        let now = Duration::from_nanos(self.now.0);
        self.network.send(now, from, to, bytes).expect("it fits a datagram");
    }

    /// Sends the same bytes of the attacker to both ports.
    pub(crate) fn attack_both(&mut self, bytes: &[u8]) {
        self.attack_raw(META_PORT, bytes);
        self.attack_raw(USER_PORT, bytes);
    }

    /// Makes the victim accept the insider; traffic for it goes to `answers`.
    pub(crate) fn join_insider_at(&mut self, answers: SocketAddrV4) {
        let to = self.nodes[VICTIM].prefix;
        let payload = forge::participant(INSIDER, answers);
        self.attack(META_PORT, &Forged::by(INSIDER).to(to).data(EntityId::SPDP_WRITER, 1, &payload));
        self.run_for(Duration::from_millis(1));
    }

    /// Announces an endpoint of the insider.
    pub(crate) fn announce(&mut self, entity: EntityId, payload: &[u8]) {
        let to = self.nodes[VICTIM].prefix;
        let (index, writer) = if entity.is_writer() {
            (0, EntityId::SEDP_PUBLICATIONS_WRITER)
        } else {
            (1, EntityId::SEDP_SUBSCRIPTIONS_WRITER)
        };
        self.sedp_numbers[index] += 1;
        let number = self.sedp_numbers[index];
        self.attack(META_PORT, &Forged::by(INSIDER).to(to).data(writer, number, payload));
    }

    /// Announces that an endpoint of the insider is gone.
    pub(crate) fn withdraw(&mut self, entity: EntityId) {
        let to = self.nodes[VICTIM].prefix;
        let guid = Guid::new(INSIDER, entity);
        let inline_qos = forge::disposal(guid);
        let payload = forge::parameters(|list| list.guid(ParameterId::ENDPOINT_GUID, guid));
        self.sedp_numbers[1] += 1;
        let (number, writer) = (self.sedp_numbers[1], EntityId::SEDP_SUBSCRIPTIONS_WRITER);
        let message = Forged::by(INSIDER).to(to).any_data(writer, number, &inline_qos, &payload, true);
        self.attack(META_PORT, &message);
    }

    /// Makes the insider match all endpoints of the victim.
    pub(crate) fn join_insider(&mut self) {
        self.join_insider_with_answers_to(SocketAddrV4::new(ATTACKER, META_PORT));
    }

    /// The same, with traffic for it going to `answers`.
    pub(crate) fn join_insider_with_answers_to(&mut self, answers: SocketAddrV4) {
        self.join_insider_at(answers);
        // An acknowledgement shows that it receives what it is sent. One who has received the numbers can forge that.
        let ids = (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER);
        let to = self.nodes[VICTIM].prefix;
        let first = self.nodes[VICTIM].core.config().first_announcement.0;
        self.attack(META_PORT, &Forged::by(INSIDER).to(to).acknack(ids, first + 1, &[], 1));
        for (entity, topic) in
            [(TO_IN, "in"), (TO_KEYED, "keyed"), (TO_LOOSE, "loose"), (FROM_OUT, "out"), (FROM_KEPT, "kept")]
        {
            let payload = forge::endpoint(Guid::new(INSIDER, entity), topic, |_| {});
            self.announce(entity, &payload);
        }
        self.run_for(Duration::from_millis(5));
        assert_eq!(self.nodes[VICTIM].reader(IN).matched().count(), 2, "the insider is matched");
        assert_eq!(self.nodes[VICTIM].writer(OUT).matched(), 2, "the insider is matched");
    }

    /// Sends the insider's regular goodbye.
    pub(crate) fn leave(&mut self) {
        let inline_qos = forge::disposal(Guid::new(INSIDER, EntityId::PARTICIPANT));
        let message = Forged::by(INSIDER).any_data(EntityId::SPDP_WRITER, 2, &inline_qos, &[], false);
        self.attack(META_PORT, &message);
        self.sedp_numbers = [0; 2];
        self.run_for(Duration::from_millis(1));
    }

    /// Runs for some time.
    pub(crate) fn run_for(&mut self, period: Duration) {
        let end = self.now + period;
        self.transmit();
        let mut steps = 0_u32;
        while let Some(at) = self.next_at().filter(|at| *at <= end) {
            steps = if at > self.now { 0 } else { steps + 1 };
            assert!(steps < 10_000, "time stands still at {:?}", self.now);
            self.now = self.now.max(at);
            self.step();
        }
        self.now = end;
    }

    /// The peer and the victim write to each other, and everything arrives in order and once. The
    /// last sample is fragmented.
    pub(crate) fn exchange(&mut self) {
        let before = self.written;
        for number in before + 1..=before + 20 {
            let len = if number == before + 20 { 150_000 } else { 32 };
            for (node, entity) in
                [(PEER, TO_IN), (PEER, TO_KEYED), (PEER, TO_LOOSE), (VICTIM, OUT), (VICTIM, KEPT)]
            {
                self.write(node, entity, &forge::sample(number as u32 % 7, number, len));
            }
            self.run_for(Duration::from_micros(200));
        }
        self.written = before + 20;
        self.run_for(Duration::from_secs(3));
        let expected: Vec<u64> = (before + 1..=self.written).collect();
        for (node, entity, writer) in [
            (VICTIM, "in", TO_IN),
            (VICTIM, "keyed", TO_KEYED),
            (VICTIM, "loose", TO_LOOSE),
            (PEER, "out", OUT),
            (PEER, "kept", KEPT),
        ] {
            assert_eq!(self.taken_from(node, writer), expected, "what {node} got on {entity}");
        }
    }

    /// Returns the number for one more sample of the peer and the victim, on any topic.
    pub(crate) fn next_written(&mut self) -> u64 {
        self.written += 1;
        self.written
    }

    /// Returns the numbers that a node has taken from a writer of the other one since the last call.
    pub(crate) fn taken_from(&mut self, node: usize, writer: EntityId) -> Vec<u64> {
        let guid = Guid::new(self.nodes[1 - node].prefix, writer);
        self.taken.remove(&(node, guid)).unwrap_or_default()
    }

    /// Forgets what was taken until now.
    pub(crate) fn forget_taken(&mut self) {
        self.taken.clear();
    }

    /// The peer and the victim write one sample on each topic. Only those of KEEP_ALL writers have to arrive.
    pub(crate) fn exchange_one(&mut self) {
        self.written += 1;
        for (node, entity) in
            [(PEER, TO_IN), (PEER, TO_KEYED), (PEER, TO_LOOSE), (VICTIM, OUT), (VICTIM, KEPT)]
        {
            self.write(node, entity, &forge::sample(self.written as u32 % 7, self.written, 32));
        }
        self.run_for(Duration::from_secs(5));
        for (node, writer) in [(VICTIM, TO_IN), (PEER, OUT)] {
            let guid = Guid::new(self.nodes[1 - node].prefix, writer);
            assert_eq!(self.taken[&(node, guid)], [self.written], "what {node} got from {guid}");
        }
        self.taken.clear();
    }

    /// The victim writes samples that it keeps for late joiners, each an instance, and the peer takes them.
    pub(crate) fn write_history(&mut self, samples: u32, len: usize) {
        for key in 1_000..1_000 + samples {
            self.write(VICTIM, KEPT, &forge::sample(key, 0, len));
            self.run_for(Duration::from_micros(10));
        }
        self.run_for(Duration::from_secs(1));
        let guid = Guid::new(self.nodes[VICTIM].prefix, KEPT);
        let taken = self.taken.remove(&(PEER, guid)).unwrap_or_default();
        assert_eq!(taken.len(), samples as usize, "the peer gets them");
    }

    /// Writes a sample that must find room.
    pub(crate) fn write(&mut self, node: usize, entity: EntityId, payload: &[u8]) {
        let key = entity.is_keyed().then(|| node::key_of(payload, false)).flatten();
        let now = self.now;
        let change = Change { kind: ChangeKind::Alive, key, payload };
        let timestamp = Some(weir_wire::Timestamp { seconds: 1, fraction: 0 });
        self.nodes[node].writer(entity).write_change(now, timestamp, change).expect("there is room");
        self.transmit();
    }

    /// Checks the limits on the victim's size.
    pub(crate) fn check_bounds(&mut self) {
        let victim = &self.nodes[VICTIM];
        let limits = &victim.core.config().limits;
        assert!(victim.core.remote_participants() <= limits.participants);
        assert!(victim.core.remote_endpoints() <= limits.endpoints);
        assert!(victim.core.memory() <= CORE_MEMORY_MAX, "discovery takes {}", victim.core.memory());
        for (entity, reader) in &victim.readers {
            let memory = reader.memory();
            assert!(
                memory <= READER_MEMORY_MAX.max(profile::reserved(|| reader.allocated())),
                "reader {entity} takes {memory} bytes"
            );
        }
        for (entity, writer) in &victim.writers {
            let memory = writer.memory();
            assert!(
                memory <= WRITER_MEMORY_MAX.max(profile::reserved(|| writer.allocated())),
                "writer {entity} takes {memory} bytes"
            );
        }
    }

    fn next_at(&self) -> Option<Time> {
        let arrival = self.network.next_arrival().map(|at| Time(at.as_nanos() as u64));
        arrival.into_iter().chain(self.nodes.iter().filter_map(Node::next_timeout)).min()
    }

    fn step(&mut self) {
        while let Some(delivery) = self.network.deliver(Duration::from_nanos(self.now.0)) {
            let (host, port) = (*delivery.receiver.ip(), delivery.receiver.port());
            match self.nodes.iter_mut().find(|node| node.host == host) {
                Some(node) => node.receive(self.now, delivery.from, port, &delivery.bytes),
                None if !delivery.to.ip().is_multicast() => {
                    let (datagrams, bytes) = self.reached.entry(delivery.receiver).or_default();
                    (*datagrams, *bytes) = (*datagrams + 1, *bytes + delivery.bytes.len() as u64);
                }
                None => {}
            }
        }
        let now = self.now;
        self.nodes.iter_mut().for_each(|node| node.handle_timeout(now));
        self.take();
        self.transmit();
    }

    fn take(&mut self) {
        for (index, node) in self.nodes.iter_mut().enumerate() {
            for reader in node.readers.values_mut() {
                let honest = GuidPrefix([2 - index as u8; 12]);
                while reader.take_next(|sample| {
                    if sample.writer.prefix == honest && sample.kind == ChangeKind::Alive {
                        let number = sample.payload.get(8..16).and_then(|bytes| bytes.try_into().ok());
                        let number = u64::from_le_bytes(number.expect("an honest sample is whole"));
                        self.taken.entry((index, sample.writer)).or_default().push(number);
                    }
                }) {}
            }
        }
    }

    fn transmit(&mut self) {
        let (network, now) = (&mut self.network, Duration::from_nanos(self.now.0));
        for (index, node) in self.nodes.iter_mut().enumerate() {
            let (host, sent) = (node.host, &mut self.sent);
            node.transmit(self.now, |port, to, bytes| {
                let message = Message::parse(bytes).expect("what is sent is a message");
                assert!(message.submessages().all(|it| it.is_ok()), "what is sent can be read: {message}");
                network.send(now, SocketAddrV4::new(host, port), to, bytes).expect("it fits a datagram");
                if index == VICTIM {
                    *sent = (sent.0 + 1, sent.1 + bytes.len() as u64);
                }
            });
        }
    }
}

fn reliable() -> Qos {
    Qos { reliability: Reliability::Reliable, history: History::KeepAll, ..Qos::for_reader() }
}

/// Long enough not to expire by accident.
const LEASE: Duration = Duration::from_secs(60);
/// Samples to be taken, samples held back, and partly used or spare chunks.
const READER_MEMORY_MAX: usize = 2 * READER_BYTES + (10 << 20);
const WRITER_MEMORY_MAX: usize = 16 << 20;
/// Proxies and pending samples of the builtin endpoints.
const CORE_MEMORY_MAX: usize = 128 << 20;

/// The limits table of the victim in the small profile.
const LIMITS: Limits = Limits {
    endpoint: EndpointLimits { samples: 64, sample_bytes: 151_000, ..EndpointLimits::SMALL },
    ..Limits::SMALL
};
