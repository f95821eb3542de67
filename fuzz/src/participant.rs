//! A live participant between hostile datagrams and a peer whose datagrams arrive late, changed or
//! not at all.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;
use std::collections::VecDeque;

use weir_rtps::outbox::Outbox;
use weir_rtps::participant::{LocalEndpoint, ParticipantConfig, ParticipantCore};
use weir_rtps::qos::{Qos, Reliability};
use weir_rtps::time::Time;
use weir_wire::{EntityId, Guid, GuidPrefix, Message, ParameterId};

use crate::attack::forge::{self, Forged};
use crate::input::{Input, with_piece};

/// Runs a list of operations: raw datagrams, the peer's datagrams (unchanged, changed, or dropped),
/// responses to the peer, time.
///
/// # Panics
///
/// If the participant sends what cannot be parsed, exceeds its limits, or has a timer that is
/// always due.
pub fn run(data: &[u8]) {
    let mut world = World::new();
    let mut input = Input(data);
    while let Some(operation) = input.byte()
        && world.apply(operation, &mut input).is_some()
    {
        world.settle();
    }
}

/// Returns seeds for the corpus: name and bytes.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    // The peer's messages, recorded as raw datagrams; and a complete discovery with one changed
    // datagram.
    let mut world = World::new();
    world.settle();
    world.answer();
    world.settle();
    let recorded = world.from_peer.iter().take(4).flat_map(|datagram| with_piece(RAW, datagram)).collect();
    let mut talk = Vec::new();
    for _ in 0..3 {
        talk.extend([INTACT, INTACT, ANSWER, TIME, 1]);
    }
    talk.extend([CHANGED, 30, 0, 0xff, DROPPED, INTACT, ANSWER, TIME, 255]);
    vec![("recorded", recorded), ("talk", talk), ("fragments", fragments(&world))]
}

/// The peer's announcement of itself, and then a long announcement of an endpoint in fragments.
fn fragments(world: &World) -> Vec<u8> {
    const SIZE: usize = 1344;
    let source = GuidPrefix([2; 12]);
    let user_data = [7; 3000];
    let guid = Guid::new(source, EntityId::user_writer(9, true));
    let payload = forge::endpoint(guid, "t", |list| list.byte_sequence(ParameterId::USER_DATA, &user_data));
    let introduction = world.from_peer.iter().take(1).cloned();
    let pieces = (1..).zip(payload.chunks(SIZE)).map(|(start, bytes)| {
        let sizes = (start, SIZE as u16, payload.len() as u32);
        Forged::by(source).frag(EntityId::SEDP_PUBLICATIONS_WRITER, 1, sizes, bytes).0
    });
    let pieces: Vec<_> = introduction.chain(pieces).collect();
    pieces.iter().flat_map(|datagram| with_piece(RAW, datagram)).collect()
}

const RAW: u8 = 0;
const INTACT: u8 = 1;
const CHANGED: u8 = 2;
const DROPPED: u8 = 3;
const ANSWER: u8 = 4;
const TIME: u8 = 5;
const OPERATIONS: u8 = 6;

struct World {
    now: Time,
    participant: ParticipantCore,
    peer: ParticipantCore,
    to_peer: VecDeque<Vec<u8>>,
    from_peer: VecDeque<Vec<u8>>,
}

impl World {
    fn new() -> Self {
        let now = Time::ZERO;
        let (participant, peer) = (participant(1, now), participant(2, now));
        Self { now, participant, peer, to_peer: VecDeque::new(), from_peer: VecDeque::new() }
    }

    fn apply(&mut self, operation: u8, input: &mut Input<'_>) -> Option<()> {
        match operation % OPERATIONS {
            RAW => self.participant.handle_datagram(self.now, address(3), input.piece()?),
            INTACT => self.deliver(|_| {}),
            CHANGED => {
                let (at, change) = (usize::from(input.word()?), input.byte()?);
                self.deliver(|datagram| {
                    let len = datagram.len();
                    datagram[at % len] ^= change;
                });
            }
            DROPPED => drop(self.from_peer.pop_front()),
            ANSWER => self.answer(),
            _ => self.now = self.now + Duration::from_millis(10 * u64::from(input.byte()?)),
        }
        Some(())
    }

    fn deliver(&mut self, change: impl FnOnce(&mut Vec<u8>)) {
        if let Some(mut datagram) = self.from_peer.pop_front() {
            change(&mut datagram);
            self.participant.handle_datagram(self.now, address(2), &datagram);
        }
    }

    fn answer(&mut self) {
        while let Some(datagram) = self.to_peer.pop_front() {
            self.peer.handle_datagram(self.now, address(1), &datagram);
        }
    }

    /// Lets both run due timers, and checks their output.
    fn settle(&mut self) {
        drive(&mut self.participant, self.now, &mut self.to_peer);
        drive(&mut self.peer, self.now, &mut self.from_peer);
        let limits = &self.participant.config().limits;
        assert!(self.participant.remote_participants() <= limits.participants);
        assert!(self.participant.remote_endpoints() <= limits.endpoints);
    }
}

fn drive(participant: &mut ParticipantCore, now: Time, sent: &mut VecDeque<Vec<u8>>) {
    let mut out = Outbox::new();
    let mut calls = 0;
    participant.poll_transmit(now, &mut out);
    while participant.next_timeout().is_some_and(|at| at <= now) {
        participant.handle_timeout(now);
        participant.poll_transmit(now, &mut out);
        calls += 1;
        assert!(calls < 1000, "a timer that is always due");
    }
    while participant.poll_event().is_some() {}
    assert!(collect(&out, sent) < 1000, "one input does not make a flood");
}

/// Appends what is sent, checked and up to a bound. Returns the number of datagrams.
pub(crate) fn collect(out: &Outbox, sent: &mut VecDeque<Vec<u8>>) -> usize {
    let mut count = 0;
    out.for_each_datagram(|to, datagram| {
        assert!(!to.is_empty(), "everything goes somewhere");
        check_datagram(datagram);
        sent.push_back(datagram.to_vec());
        count += 1;
    });
    sent.truncate(1000);
    count
}

/// Checks that our own parser accepts what is sent.
pub(crate) fn check_datagram(datagram: &[u8]) {
    let message = Message::parse(datagram).expect("a message");
    assert!(message.submessages().all(|submessage| submessage.is_ok()), "{message}");
}

fn participant(number: u8, now: Time) -> ParticipantCore {
    let mut config = ParticipantConfig::new(GuidPrefix([number; 12]), 0);
    config.metatraffic_unicast = vec![address(number)];
    config.default_unicast = vec![address(number)];
    let mut participant = ParticipantCore::new(config, now);
    let endpoint = |entity, qos| {
        let qos = Qos { reliability: Reliability::Reliable, ..qos };
        LocalEndpoint {
            entity,
            topic: "t".into(),
            type_name: "T".into(),
            qos,
            unicast: Vec::new(),
            multicast: None,
        }
    };
    let writer = endpoint(EntityId::user_writer(1, true), Qos::for_writer());
    let reader = endpoint(EntityId::user_reader(2, true), Qos::for_reader());
    participant.add_writer(now, writer).expect("a writer");
    participant.add_reader(now, reader).expect("a reader");
    participant
}

fn address(host: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host), 7410)
}
