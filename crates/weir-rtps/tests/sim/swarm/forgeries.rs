//! An attacker's packets in a swarm.

use core::time::Duration;
use std::net::SocketAddrV4;

use weir_netsim::Rng;
use weir_wire::{EntityId, Guid, GuidPrefix, Locator, ParameterId};

use super::participants::{PORTS, READER, Swarm, WRITER, since_start};
use crate::live::forge::{self, ATTACKER, BYSTANDER, Forged};
use crate::live::node::{META_PORT, USER_PORT};

/// A kind of attack.
#[derive(Clone, Copy, Debug)]
pub(super) enum Forgery {
    /// Random bytes behind a valid header.
    Noise,
    /// Endpoint traffic of an unknown participant.
    Interference,
    /// An announcement and a goodbye in the name of another participant, from the attacker's address.
    Impersonation { is_answering: bool },
    /// A participant with the address of another host, whose writers announce samples that will be
    /// requested there.
    Reflection,
    /// A participant that changes its mind often in one datagram.
    Flapping,
}

impl Forgery {
    pub(super) fn random(rng: &mut Rng) -> Self {
        match rng.below(6) {
            0 => Self::Noise,
            1 => Self::Interference,
            choice @ (2 | 3) => Self::Impersonation { is_answering: choice == 3 },
            4 => Self::Reflection,
            _ => Self::Flapping,
        }
    }
}

impl Swarm {
    /// Sends forged packets to one member, mostly in the name of another one.
    pub(super) fn forge(&mut self, one: usize, other: usize, forgery: Forgery, rng: &mut Rng) {
        match forgery {
            Forgery::Noise => self.make_noise(one, other, rng),
            Forgery::Interference => self.interfere(one, rng),
            Forgery::Impersonation { is_answering } => self.impersonate(one, other, is_answering, rng),
            Forgery::Reflection => self.reflect(one),
            Forgery::Flapping => self.flap(one),
        }
    }

    fn attack(&mut self, victim: usize, port: u16, bytes: &[u8]) {
        let (from, to) =
            (SocketAddrV4::new(ATTACKER, port), SocketAddrV4::new(self.members[victim].node.host, port));
        self.network.send(since_start(self.now), from, to, bytes).expect("it fits a datagram");
    }

    /// A new participant of the attacker.
    fn insider(&mut self) -> GuidPrefix {
        self.forgeries += 1;
        let mut prefix = [0x66; 12];
        prefix[8..].copy_from_slice(&self.forgeries.to_be_bytes());
        GuidPrefix(prefix)
    }

    fn make_noise(&mut self, one: usize, other: usize, rng: &mut Rng) {
        let prefix = self.members[other].node.prefix;
        for _ in 0..50 {
            let mut message = Forged::by(prefix);
            for _ in 0..rng.below(4) {
                let len = rng.below(60) as u16;
                let body: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
                // Ids that no submessage has: with real ones, this could be the other one's word.
                message = message.raw(0x60 + rng.below(0x20) as u8, 0, len, &body);
            }
            message.0.extend((0..rng.below(40)).map(|_| rng.next_u64() as u8 | 0x80));
            PORTS.iter().for_each(|port| self.attack(one, *port, &message.0));
        }
    }

    fn interfere(&mut self, one: usize, rng: &mut Rng) {
        let prefix = self.insider();
        for count in 1..=20 {
            let near = rng.below(200) as i64 + 1;
            let message = Forged::by(prefix)
                .data(WRITER, near, &forge::sample(0, near as u64, 32))
                .heartbeat(WRITER, near, near + 100, count)
                .gap(WRITER, 1, near, &[])
                .acknack((READER, WRITER), near, &[near, near + 9], count);
            self.attack(one, USER_PORT, &message.0);
            self.attack(one, META_PORT, &message.0);
        }
    }

    /// On a network that loses nothing, this cuts no participant off.
    fn impersonate(&mut self, one: usize, other: usize, is_answering: bool, rng: &mut Rng) {
        // Members that lost each other before find each other again.
        self.run_for(self.lease * 2 + Duration::from_secs(5));
        let (us, them) = (self.members[one].node.prefix, self.members[other].node.prefix);
        let before = self.members[one].node.unmatched.get(&them).copied();
        let payload = forge::participant_with(them, SocketAddrV4::new(ATTACKER, META_PORT), |list| {
            list.duration(
                ParameterId::PARTICIPANT_LEASE_DURATION,
                weir_wire::Duration::from_nanos(100_000_000),
            );
        });
        let goodbye = forge::disposal(Guid::new(them, EntityId::PARTICIPANT));
        for number in 0..=rng.below(3) as i64 {
            let claim = Forged::by(them).data(EntityId::SPDP_WRITER, 1_000 + number, &payload);
            self.attack(one, META_PORT, &claim.0);
            if is_answering {
                let ids = (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER);
                let answer = Forged::by(them).to(us).acknack(ids, 1, &[], 1 << 20);
                self.run_for(Duration::from_millis(300));
                self.attack(one, META_PORT, &answer.0);
            }
            let leave =
                Forged::by(them).any_data(EntityId::SPDP_WRITER, 2_000 + number, &goodbye, &[], false);
            self.attack(one, META_PORT, &leave.0);
            self.run_for(Duration::from_millis(1 + rng.below(2_000)));
        }
        self.run_for(Duration::from_secs(3));
        if self.losses == 0.0 {
            let unmatched = self.members[one].node.unmatched.get(&them).copied();
            assert_eq!(unmatched, before, "{other} was cut off from {one}: {self}");
        }
    }

    fn reflect(&mut self, one: usize) {
        let (prefix, to) = (self.insider(), self.members[one].node.prefix);
        let payload = forge::participant_with(prefix, BYSTANDER, |list| {
            list.duration(ParameterId::PARTICIPANT_LEASE_DURATION, lease());
        });
        self.attack(one, META_PORT, &Forged::by(prefix).to(to).data(EntityId::SPDP_WRITER, 1, &payload).0);
        self.run_for(Duration::from_millis(100));
        // One who knows the domain can guess what the first announcement acknowledges.
        for (reader, writer) in [
            (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER),
            (EntityId::SEDP_SUBSCRIPTIONS_READER, EntityId::SEDP_SUBSCRIPTIONS_WRITER),
        ] {
            self.attack(one, META_PORT, &Forged::by(prefix).to(to).acknack((reader, writer), 2, &[], 1).0);
        }
        for key in 1..=REFLECTING {
            let writer = EntityId::user_writer(1_000 + key, false);
            let data = endpoint(Guid::new(prefix, writer));
            let number = i64::from(key);
            let announcement =
                Forged::by(prefix).to(to).data(EntityId::SEDP_PUBLICATIONS_WRITER, number, &data);
            self.attack(one, META_PORT, &announcement.0);
        }
        self.run_for(Duration::from_millis(100));
        for key in 1..=REFLECTING {
            let writer = EntityId::user_writer(1_000 + key, false);
            self.attack(one, USER_PORT, &Forged::by(prefix).to(to).heartbeat(writer, 1, 10, 1).0);
        }
    }

    fn flap(&mut self, one: usize) {
        let (prefix, to) = (self.insider(), self.members[one].node.prefix);
        let here = SocketAddrV4::new(ATTACKER, META_PORT);
        let announcement = |user: SocketAddrV4| {
            forge::parameters(|list| {
                list.guid(ParameterId::PARTICIPANT_GUID, Guid::new(prefix, EntityId::PARTICIPANT));
                list.u32(ParameterId::BUILTIN_ENDPOINT_SET, weir_rtps::spdp::builtin_endpoints::WEIR);
                list.locator(ParameterId::METATRAFFIC_UNICAST_LOCATOR, Locator::udp_v4(here));
                list.locator(ParameterId::DEFAULT_UNICAST_LOCATOR, Locator::udp_v4(user));
                list.duration(ParameterId::PARTICIPANT_LEASE_DURATION, lease());
            })
        };
        let mut message = Forged::by(prefix).to(to).data(EntityId::SPDP_WRITER, 1, &announcement(here));
        let mut number = 0;
        for key in 1..=FLAPPING {
            for entity in [EntityId::user_writer(key, false), EntityId::user_reader(key, false)] {
                let (exchange, guid) = (exchange_of(entity), Guid::new(prefix, entity));
                message = message.data(exchange, i64::from(key), &endpoint(guid));
            }
            number = i64::from(key);
        }
        self.attack(one, META_PORT, &message.0);
        self.run_for(Duration::from_secs(1));
        let mut message = Forged::by(prefix).to(to);
        for turn in 0..200 {
            number += 1;
            for entity in [EntityId::user_writer(1, false), EntityId::user_reader(1, false)] {
                let guid = Guid::new(prefix, entity);
                message = if turn % 2 == 0 {
                    let mut key = Vec::new();
                    weir_rtps::sedp::encode_key(guid, &mut key);
                    message.any_data(exchange_of(entity), number, &forge::disposal(guid), &key, true)
                } else {
                    message.data(exchange_of(entity), number, &endpoint(guid))
                };
            }
        }
        self.attack(one, META_PORT, &message.0);
        let mut message = Forged::by(prefix).to(to);
        for turn in 0..100 {
            let user = SocketAddrV4::new(ATTACKER, USER_PORT + turn % 2);
            message = message.data(EntityId::SPDP_WRITER, 2 + i64::from(turn), &announcement(user));
        }
        self.attack(one, META_PORT, &message.0);
    }
}

/// The lease of the attacker's participants: they are forgotten before the end.
fn lease() -> weir_wire::Duration {
    weir_wire::Duration::from_nanos(20_000_000_000)
}

/// The writer that announces an endpoint.
fn exchange_of(entity: EntityId) -> EntityId {
    if entity.is_writer() { EntityId::SEDP_PUBLICATIONS_WRITER } else { EntityId::SEDP_SUBSCRIPTIONS_WRITER }
}

/// The announcement of an endpoint of the topic that matches whatever it may. A reader is best
/// effort: a reliable one that acknowledges nothing would hold up the writers until its lease ends.
fn endpoint(guid: Guid) -> Vec<u8> {
    forge::parameters(|list| {
        list.guid(ParameterId::ENDPOINT_GUID, guid);
        list.string(ParameterId::TOPIC_NAME, "topic");
        list.string(ParameterId::TYPE_NAME, "Type");
        let is_writer = guid.entity.is_writer();
        list.raw(ParameterId::RELIABILITY, &[1 + u8::from(is_writer), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        list.raw(ParameterId::DURABILITY, &[u8::from(is_writer), 0, 0, 0]);
    })
}

/// Writers of a participant that names the address of another host.
const REFLECTING: u32 = 30;
/// Writers, and readers, of one that changes its mind.
const FLAPPING: u32 = 8;
