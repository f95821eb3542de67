//! A live participant with writers and readers, an honest peer, and an attacker that sends
//! plausible messages: real entities, numbers near those in use, fragments, announcements of
//! endpoints that match.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;
use std::collections::VecDeque;

use weir_rtps::qos::{Durability, History, Qos, Reliability};
use weir_rtps::time::Time;
use weir_rtps::writer::{Change, ChangeKind};
use weir_wire::{EntityId, Guid, GuidPrefix, ParameterId};

use crate::input::{Input, with_piece};
use crate::participant::check_datagram;

#[allow(dead_code, reason = "shared with the simulations, which use all of it")]
#[path = "../../crates/weir-rtps/tests/sim/live/forge.rs"]
pub(crate) mod forge;
#[allow(dead_code, reason = "shared with the simulations, which use all of it")]
#[path = "../../crates/weir-rtps/tests/sim/live/node.rs"]
mod node;

use forge::Forged;
use node::{GROUP, META_PORT, Node, USER_PORT};

/// Runs a list of operations: samples both ways, time, loss, and forged messages, submessage by
/// submessage.
///
/// # Panics
///
/// If a sample of the honest peer is delivered out of order, twice, or not at all after the
/// attacker has left; if memory exceeds its limits; if something is sent that cannot be parsed; if
/// a timer is always due or responses never end.
pub fn run(data: &[u8]) {
    let mut world = World::new();
    let mut input = Input(data);
    while let Some(operation) = input.byte()
        && world.apply(operation, &mut input).is_some()
    {
        world.settle();
        world.check_bounds();
    }
    world.finish();
}

/// Returns seeds for the corpus: name and bytes.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let write = [WRITE, 0, 3, WRITE, 1, 9, WRITE, 2, 200, WRITE, 3, 5];
    let heartbeats = [FORGE, 0, 3, HEARTBEAT, 0, 0, 5, 200, HEARTBEAT, 1, 0, 200, 8, GAP, 0, 3, 9, 2];
    let fragments = [FORGE, 0, 2, FRAGMENT, 0, 1, 1, 2, 4, FRAGMENT, 0, 1, 3, 2, 4, TIME, 40];
    let acks = [FORGE, 0, 2, ACKNACK, 0, 1, 5, 7, ACKNACK, 1, 255, 0, 7, ACKNOWLEDGE, TIME, 9];
    let lossy = [&write[..], &[LOSE, 3], &write, &[TIME, 20], &acks, &write].concat();
    let state = [&write[..], &heartbeats, &fragments, &write, &[TIME, 200]].concat();
    let endpoint =
        [&[ANNOUNCE, 0, 1][..], &with_piece(2, &[2, 0, 0, 0])[1..], &[SHOW, 0, 1], &write].concat();
    let announce = |form: u32| {
        // A writer's user data, whose length starts with the form.
        let user_data = [&(0x300 + form).to_le_bytes()[..], &vec![7; 0x300 + form as usize]].concat();
        [&[ANNOUNCE, 0, IN_FRAGMENTS + 0x37], &with_piece(ANNOUNCE, &user_data)[1..], &[TIME, 5]].concat()
    };
    // In order, reversed, incomplete, and in longer fragments.
    let pieces = [0, 8, 4, 2].map(announce);
    let pieces = [&pieces.concat()[..], &write, &[TIME, 200]].concat();
    vec![("lossy", lossy), ("state", state), ("endpoint", endpoint), ("pieces", pieces)]
}

const WRITE: u8 = 0;
const TIME: u8 = 1;
const LOSE: u8 = 2;
const FORGE: u8 = 3;
const ANNOUNCE: u8 = 4;
const SHOW: u8 = 5;
const ACKNOWLEDGE: u8 = 6;
const OPERATIONS: u8 = 7;

const DATA: u8 = 0;
const FRAGMENT: u8 = 1;
const HEARTBEAT: u8 = 2;
const HEARTBEAT_FRAG: u8 = 3;
const GAP: u8 = 4;
const ACKNACK: u8 = 5;
const NACK_FRAG: u8 = 6;
const DISPOSAL: u8 = 7;
/// With the last one, what follows is in another participant's name.
const SUBMESSAGES: u8 = 9;

/// The attacker's participant, and an unknown one.
const INSIDER: GuidPrefix = GuidPrefix([0x66; 12]);
const OUTSIDER: GuidPrefix = GuidPrefix([0xee; 12]);
const ATTACKER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 66);

/// Topics, the endpoints of both sides, and whether the victim is the reader.
const TOPICS: [(&str, EntityId, EntityId, bool); 4] = [
    ("in", EntityId::user_reader(1, false), EntityId::user_writer(1, false), true),
    ("keyed", EntityId::user_reader(2, true), EntityId::user_writer(2, true), true),
    ("out", EntityId::user_reader(4, false), EntityId::user_writer(4, false), false),
    ("kept", EntityId::user_reader(5, true), EntityId::user_writer(5, true), false),
];

/// The longest time in which neither timers nor datagrams are handled.
const STEP_MS: usize = 20;

/// Bytes of samples that each reader of the victim may keep.
const READER_BYTES: usize = 1 << 20;

struct World {
    now: Time,
    /// The victim and its peer.
    nodes: [Node; 2],
    on_the_way: VecDeque<(SocketAddrV4, SocketAddrV4, Vec<u8>)>,
    /// Number of the peers' next datagrams to lose.
    lose: u8,
    /// By topic: the number of samples written, and the last one taken.
    written: [u64; 4],
    taken: [u64; 4],
    sedp_number: i64,
    spdp_number: i64,
}

impl World {
    fn new() -> Self {
        let now = Time(1_000_000_000);
        let mut world = Self {
            now,
            nodes: [1, 2].map(|number| Node::new(number, now, |_| {})),
            on_the_way: VecDeque::new(),
            lose: 0,
            written: [0; 4],
            taken: [0; 4],
            sedp_number: 0,
            spdp_number: 0,
        };
        for (topic, reader, writer, is_in) in TOPICS {
            let mut qos =
                Qos { reliability: Reliability::Reliable, history: History::KeepAll, ..Qos::for_reader() };
            if topic == "kept" {
                qos.durability = Durability::TransientLocal;
            }
            let [victim, peer] = &mut world.nodes;
            let (reading, writing) = if is_in { (victim, peer) } else { (peer, victim) };
            reading.add_reader(now, reader, topic, qos.clone(), |config| config.max_bytes = READER_BYTES);
            writing.add_writer(now, writer, topic, qos);
        }
        world.settle();
        world.pass(20);
        world.show(0, SocketAddrV4::new(ATTACKER, META_PORT));
        for (topic, reader, writer, is_in) in TOPICS {
            let entity = if is_in { writer } else { reader };
            world.announce(Guid::new(INSIDER, entity), topic, None, |_| {});
        }
        // It has received announcements, and knows their numbers.
        let first = world.nodes[0].core.config().first_announcement.0;
        let ids = (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER);
        let answer = Forged::by(INSIDER).to(world.nodes[0].prefix).acknack(ids, first + 1, &[], 1);
        world.attack(META_PORT, answer);
        world.settle();
        assert_eq!(world.nodes[0].reader(TOPICS[0].1).matched().count(), 2, "the attacker is matched");
        world
    }

    fn apply(&mut self, operation: u8, input: &mut Input<'_>) -> Option<()> {
        match operation % OPERATIONS {
            WRITE => self.write(usize::from(input.byte()? % 4), usize::from(input.byte()?) * 30),
            TIME => self.pass_and_settle(u64::from(input.byte()?)),
            LOSE => self.lose = input.byte()? % 8,
            FORGE => self.forge(input)?,
            ANNOUNCE => {
                let (topic, _, _, _) = TOPICS[usize::from(input.byte()? % 4)];
                let choice = input.byte()?;
                let value = input.piece()?;
                let key = u32::from(choice) % 16;
                let entity = match choice % 3 {
                    0 => EntityId::user_reader(key, topic != "in"),
                    1 => EntityId::user_writer(key, topic == "keyed"),
                    _ => EntityId::user_writer(key, false),
                };
                let prefix = match choice / 16 {
                    0 => GuidPrefix([2; 12]),
                    1 => GuidPrefix([1; 12]),
                    _ => INSIDER,
                };
                let form = (choice >= IN_FRAGMENTS).then(|| value.first().copied().unwrap_or(0));
                self.announce(Guid::new(prefix, entity), topic, form, |list| {
                    list.raw(POLICIES[usize::from(choice) % POLICIES.len()], &value[..value.len().min(1000)]);
                });
            }
            SHOW => {
                let (lease, choice) = (input.byte()?, input.byte()?);
                let port = [META_PORT, USER_PORT, 0, 1][usize::from(choice % 4)];
                let host = [ATTACKER, Ipv4Addr::BROADCAST, Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::LOCALHOST];
                self.show(lease, SocketAddrV4::new(host[usize::from(choice / 4 % 4)], port));
            }
            _ => self.acknowledge(),
        }
        Some(())
    }

    /// Writes a sample on one side, if there is room.
    fn write(&mut self, topic: usize, len: usize) {
        let (_, _, writer, is_in) = TOPICS[topic];
        let now = self.now;
        let payload = forge::sample(self.written[topic] as u32 % 5, self.written[topic] + 1, len);
        let key = writer.is_keyed().then(|| node::key_of(&payload, false)).flatten();
        // A large one occasionally.
        let payload = if len == 7650 { [payload, vec![0; 80_000]].concat() } else { payload };
        let change = Change { kind: ChangeKind::Alive, key, payload: &payload };
        let timestamp = Some(weir_wire::Timestamp { seconds: 1, fraction: 0 });
        let core = self.nodes[usize::from(is_in)].writer(writer);
        // A full window refuses, which is not a fault.
        if core.write_change(now, timestamp, change).is_ok() {
            self.written[topic] += 1;
        }
    }

    /// Announces the attacker's participant.
    fn show(&mut self, lease: u8, answers: SocketAddrV4) {
        self.spdp_number += 1;
        let payload = forge::participant_with(INSIDER, answers, |list| {
            let seconds = [100, 0, -1, i32::MAX][usize::from(lease % 4)];
            let lease = weir_wire::Duration { seconds, fraction: u32::from(lease) };
            list.duration(ParameterId::PARTICIPANT_LEASE_DURATION, lease);
        });
        let message = Forged::by(INSIDER).to(self.nodes[0].prefix);
        self.attack(META_PORT, message.data(EntityId::SPDP_WRITER, self.spdp_number, &payload));
    }

    /// Announces an endpoint of the attacker, in fragments if it has a form for them, see
    /// [`pieces`].
    fn announce(
        &mut self,
        guid: Guid,
        topic: &str,
        form: Option<u8>,
        more: impl FnOnce(&mut weir_wire::ParameterListWriter<'_>),
    ) {
        self.sedp_number += 1;
        let number = self.sedp_number;
        let writer = if guid.entity.is_writer() {
            EntityId::SEDP_PUBLICATIONS_WRITER
        } else {
            EntityId::SEDP_SUBSCRIPTIONS_WRITER
        };
        // Both continue the numbering; a GAP covers the others.
        let message = Forged::by(INSIDER).to(self.nodes[0].prefix).gap(writer, 1, number, &[]);
        let payload = forge::endpoint(guid, topic, more);
        let Some(form) = form else {
            return self.attack(META_PORT, message.data(writer, number, &payload));
        };
        self.attack(META_PORT, message);
        for (start, fragment_size, bytes) in pieces(&payload, form) {
            let sizes = (start, fragment_size, payload.len() as u32);
            let message = Forged::by(INSIDER).to(self.nodes[0].prefix);
            let message = message.frag(writer, number, sizes, bytes);
            self.attack(META_PORT, message.heartbeat_frag(writer, number, start, number as u32));
        }
        let heartbeat = Forged::by(INSIDER).to(self.nodes[0].prefix);
        self.attack(META_PORT, heartbeat.heartbeat(writer, 1, number, number as u32));
    }

    /// Acknowledges everything that the attacker's readers were sent.
    fn acknowledge(&mut self) {
        for (_, reader, writer, is_in) in TOPICS {
            if !is_in {
                let next = self.nodes[0].writer(writer).last_sequence_number().next();
                let count = (self.now.0 / 1000) as u32;
                self.attack(USER_PORT, Forged::by(INSIDER).acknack((reader, writer), next.0, &[], count));
            }
        }
    }

    fn forge(&mut self, input: &mut Input<'_>) -> Option<()> {
        let who = input.byte()?;
        let mut message = Forged::by(if who & 7 == 7 { OUTSIDER } else { INSIDER });
        if who & 8 == 0 {
            message = message.to(self.nodes[0].prefix);
        }
        for _ in 0..input.byte()? % 6 {
            message = self.submessage(message, input)?;
        }
        self.attack(if who & 16 == 0 { USER_PORT } else { META_PORT }, message);
        Some(())
    }

    fn submessage(&self, message: Forged, input: &mut Input<'_>) -> Option<Forged> {
        let (kind, entity) = (input.byte()? % SUBMESSAGES, input.byte()?);
        let (writer, pair) = entities(entity);
        let near = self.written.iter().copied().max().unwrap_or(0) as i64;
        let number = number(input.byte()?, near);
        Some(match kind {
            DATA => {
                let len = usize::from(input.byte()?) * 8;
                message.data(writer, number, &forge::sample(len as u32 % 7, 1, len))
            }
            FRAGMENT => {
                let (start, choice) = (u32::from(input.byte()?), input.byte()?);
                let sizes = [64, 1000, 8000, 1 << 20, 60 << 20, 1 << 30, u32::MAX, 0];
                let (sample_size, fragment_size) =
                    (sizes[usize::from(choice % 8)], [8, 1, 1000, 0][usize::from(choice / 8 % 4)]);
                let len = usize::from(fragment_size).min(1000);
                message.frag(writer, number, (start, fragment_size, sample_size), &vec![7; len])
            }
            HEARTBEAT => {
                let last = number.saturating_add(i64::from(input.byte()?) * 100 - 1);
                message.heartbeat(writer, number, last.min(LAST), u32::from(input.byte()?) << 4)
            }
            HEARTBEAT_FRAG => {
                let last = u32::from(input.byte()?);
                message.heartbeat_frag(writer, number, last << (last % 24), last)
            }
            GAP => {
                let end = number.saturating_add(i64::from(input.byte()?) * 50).min(LAST);
                message.gap(writer, number, end, &[end.saturating_add(i64::from(entity))])
            }
            ACKNACK => {
                let (missing, count) = (i64::from(input.byte()?), u32::from(input.byte()?));
                let all: Vec<i64> = (number..number.saturating_add(missing)).collect();
                message.acknack(pair, number, &all, count << (count % 25))
            }
            NACK_FRAG => {
                let (first, count) = (u32::from(input.byte()?), u32::from(input.byte()?));
                message.nack_frag(pair, number, &(first..first + count).collect::<Vec<_>>(), count)
            }
            DISPOSAL => {
                let guid = Guid::new(GuidPrefix([entity % 3; 12]), writer);
                message.any_data(writer, number, &forge::disposal(guid), &[], false)
            }
            _ => message.relayed(GuidPrefix([[0x66, 0xee, 1][usize::from(entity % 3)]; 12])),
        })
    }

    fn attack(&mut self, port: u16, message: Forged) {
        let from = SocketAddrV4::new(ATTACKER, port);
        let now = self.now;
        self.nodes[0].receive(now, from, port, &message.0);
    }

    /// Lets time pass in steps. In a single one, what waits for a timer would seem to take all of it, and both ends
    /// would adapt to a round trip that the network does not have.
    fn pass_and_settle(&mut self, milliseconds: u64) {
        for passed in (0..milliseconds).step_by(STEP_MS) {
            self.pass((milliseconds - passed).min(STEP_MS as u64));
            self.settle();
        }
    }

    fn pass(&mut self, milliseconds: u64) {
        self.now = self.now + Duration::from_millis(milliseconds);
    }

    /// Lets both run due timers and receive each other's datagrams.
    fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 3_000, "the exchange does not end");
            let now = self.now;
            let mut is_due = false;
            for node in &mut self.nodes {
                is_due |= node.next_timeout().is_some_and(|at| at <= now);
                node.handle_timeout(now);
            }
            self.transmit();
            if self.on_the_way.is_empty() && !is_due {
                break;
            }
            while let Some((from, to, bytes)) = self.on_the_way.pop_front() {
                self.deliver(from, to, &bytes);
            }
            self.take();
        }
    }

    fn transmit(&mut self) {
        for node in &mut self.nodes {
            let host = node.host;
            node.transmit(self.now, |port, to, bytes| {
                check_datagram(bytes);
                assert!(to.port() != 0 && (to == GROUP || !to.ip().is_multicast()), "sent to {to}");
                self.on_the_way.push_back((SocketAddrV4::new(host, port), to, bytes.to_vec()));
            });
        }
        assert!(self.on_the_way.len() < 10_000, "one input does not make a flood");
    }

    fn deliver(&mut self, from: SocketAddrV4, to: SocketAddrV4, bytes: &[u8]) {
        if self.lose > 0 {
            self.lose -= 1;
            return;
        }
        let now = self.now;
        for node in &mut self.nodes {
            if to == GROUP || *to.ip() == node.host {
                node.receive(now, from, if to == GROUP { META_PORT } else { to.port() }, bytes);
            }
        }
    }

    /// Takes everything, and checks that the peer's samples arrive in order and once.
    fn take(&mut self) {
        for (topic, (name, reader, _, is_in)) in TOPICS.into_iter().enumerate() {
            let honest = GuidPrefix([if is_in { 2 } else { 1 }; 12]);
            let last = &mut self.taken[topic];
            let reader = self.nodes[usize::from(!is_in)].reader(reader);
            while reader.take_next(|sample| {
                if sample.writer.prefix == honest && sample.kind == ChangeKind::Alive {
                    let number = sample.payload.get(8..16).and_then(|bytes| bytes.try_into().ok());
                    let number = u64::from_le_bytes(number.expect("an honest sample is whole"));
                    assert_eq!(number, *last + 1, "the next sample of {name}");
                    *last = number;
                }
            }) {}
        }
    }

    fn check_bounds(&self) {
        let victim = &self.nodes[0];
        let limits = &victim.core.config().limits;
        assert!(victim.core.remote_participants() <= limits.participants);
        assert!(victim.core.remote_endpoints() <= limits.endpoints);
        assert!(victim.core.memory() <= 64 << 20, "discovery takes {} bytes", victim.core.memory());
        for (entity, reader) in &victim.readers {
            let memory = reader.memory();
            assert!(memory <= 80 << 20, "reader {entity} takes {memory} bytes");
        }
        for (entity, writer) in &victim.writers {
            let memory = writer.memory();
            assert!(memory <= 24 << 20, "writer {entity} takes {memory} bytes");
        }
    }

    /// Removes the attacker, and checks that everything written arrives.
    fn finish(&mut self) {
        let guid = Guid::new(INSIDER, EntityId::PARTICIPANT);
        let message = Forged::by(INSIDER);
        self.attack(
            META_PORT,
            message.any_data(EntityId::SPDP_WRITER, 1, &forge::disposal(guid), &[], false),
        );
        self.lose = 0;
        self.pass_and_settle(4_000);
        for (topic, (name, ..)) in TOPICS.into_iter().enumerate() {
            assert_eq!(self.taken[topic], self.written[topic], "samples of {name}");
        }
        assert_eq!(self.nodes[0].core.remote_participants(), 1, "the attacker has gone");
        self.check_bounds();
    }
}

/// Choices from this on announce an endpoint in fragments.
const IN_FRAGMENTS: u8 = 192;

/// Returns the fragments of an announcement, with number and size. `form` determines their length
/// and order, and whether the second one is left out.
fn pieces(payload: &[u8], form: u8) -> Vec<(u32, u16, &[u8])> {
    let size = [8_u16, 40, 200, 1000][usize::from(form % 4)];
    let all = (1..).zip(payload.chunks(usize::from(size))).map(|(start, bytes)| (start, size, bytes));
    let is_incomplete = form & 4 != 0;
    let mut pieces: Vec<_> = all.filter(|(start, ..)| !is_incomplete || *start != 2).collect();
    if form & 8 != 0 {
        pieces.reverse();
    }
    pieces
}

/// A writer of the attacker, and the two ends of what it reads.
fn entities(choice: u8) -> (EntityId, (EntityId, EntityId)) {
    let (_, _, writer, _) = TOPICS[usize::from(choice % 2)];
    let (_, reader, ours, _) = TOPICS[2 + usize::from(choice % 2)];
    if choice / 64 < 3 {
        return (writer, (reader, ours));
    }
    let (reader, writer) = [
        (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER),
        (EntityId::SEDP_SUBSCRIPTIONS_READER, EntityId::SEDP_SUBSCRIPTIONS_WRITER),
        (EntityId::PARTICIPANT_MESSAGE_READER, EntityId::PARTICIPANT_MESSAGE_WRITER),
        (EntityId::SPDP_READER, EntityId::SPDP_WRITER),
    ][usize::from(choice % 4)];
    (writer, (reader, writer))
}

/// A number that can be a sample's: a small one, one near those in use, or a very large one.
fn number(choice: u8, near: i64) -> i64 {
    match choice {
        0..=99 => i64::from(choice) + 1,
        100..=199 => (near + i64::from(choice) - 150).max(1),
        200..=239 => 1 << (choice - 178),
        _ => LAST - i64::from(255 - choice),
    }
}

const LAST: i64 = i64::MAX - 1024;

/// Parameters that an announcement may carry.
const POLICIES: [ParameterId; 16] = [
    ParameterId::RELIABILITY,
    ParameterId::DURABILITY,
    ParameterId::HISTORY,
    ParameterId::DEADLINE,
    ParameterId::LIVELINESS,
    ParameterId::OWNERSHIP,
    ParameterId::PARTITION,
    ParameterId::USER_DATA,
    ParameterId::UNICAST_LOCATOR,
    ParameterId::DATA_REPRESENTATION,
    ParameterId::TOPIC_NAME,
    ParameterId::TYPE_NAME,
    ParameterId::PRESENTATION,
    ParameterId::WEIR_RECEIVE_BUFFER,
    ParameterId::LATENCY_BUDGET,
    ParameterId::RESOURCE_LIMITS,
];
