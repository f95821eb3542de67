//! A participant whose tables are filled by its peers takes no more than its budget, and gives the memory back.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use weir_rtps::budget::{Budget, Counts};
use weir_rtps::limits::Limits;
use weir_rtps::outbox::Outbox;
use weir_rtps::participant::{Interface, LocalEndpoint, ParticipantConfig, ParticipantCore};
use weir_rtps::qos::Qos;
use weir_rtps::qos_match::partitions_match;
use weir_rtps::time::Time;
use weir_wire::{EntityId, Guid, GuidPrefix, ParameterId};

use crate::forge::{self, Forged};
use crate::{allocated, allocations};

const OWN: GuidPrefix = GuidPrefix([1; 12]);
const ADDRESS: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 7410);
/// All are on the same host: what is sent to other hosts is limited until they have answered.
const FROM: SocketAddrV4 = SocketAddrV4::new(*ADDRESS.ip(), 7500);

/// Discovery of a participant, as its driver runs it.
struct World {
    core: ParticipantCore,
    now: Time,
    out: Outbox,
}

impl World {
    fn new(limits: Limits) -> Self {
        let mut config = ParticipantConfig::new(OWN, 0).with_limits(limits);
        config.metatraffic_unicast = vec![ADDRESS];
        config.default_unicast = vec![ADDRESS];
        config.interfaces =
            vec![Interface { address: *ADDRESS.ip(), netmask: Ipv4Addr::new(255, 255, 255, 0) }];
        let now = Time(1_000_000_000);
        Self { core: ParticipantCore::new(config, now), now, out: Outbox::new() }
    }

    fn add_endpoints(&mut self, limits: &Limits) {
        let endpoint = |entity| LocalEndpoint {
            entity,
            topic: "topic".to_owned(),
            type_name: "Type".to_owned(),
            qos: Qos::for_reader(),
            unicast: Vec::new(),
            multicast: None,
        };
        for number in 1..=limits.writers as u32 {
            let writer = endpoint(EntityId::user_writer(number, false));
            self.core.add_writer(self.now, writer).unwrap();
        }
        for number in 1..=limits.readers as u32 {
            let reader = endpoint(EntityId::user_reader(number, false));
            self.core.add_reader(self.now, reader).unwrap();
        }
        self.settle();
    }

    /// Takes all events, and drops what is to be sent.
    fn settle(&mut self) {
        while self.core.poll_event().is_some() {}
        self.out.clear();
        self.core.poll_transmit(self.now, &mut self.out);
    }

    fn receive(&mut self, message: &Forged) {
        self.now = self.now + Duration::from_millis(1);
        self.core.handle_datagram(self.now, FROM, &message.0);
        self.settle();
    }

    fn counts(&self) -> Counts {
        Counts {
            participants: self.core.remote_participants(),
            endpoints: self.core.remote_endpoints(),
            relations: self.core.relations(),
            ..Counts::default()
        }
    }

    /// Every participant that fits, each with every endpoint that fits, and with the longest texts.
    fn fill(&mut self, limits: &Limits, round: u8) {
        let first = self.core.config().first_announcement.0;
        for index in 0..limits.participants as u8 + 2 {
            let prefix = GuidPrefix([0xe0, round, index, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
            let name = "n".repeat(limits.text_bytes);
            let payload = forge::participant_with(prefix, FROM, |list| {
                list.string(ParameterId::ENTITY_NAME, &name);
                list.byte_sequence(ParameterId::USER_DATA, name.as_bytes());
            });
            let ids = (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER);
            let message = Forged::by(prefix).to(OWN).data(EntityId::SPDP_WRITER, 1, &payload);
            self.receive(&message.acknack(ids, first, &[], 1));
            for number in 0..limits.endpoints_per_participant as u32 + 2 {
                let is_writer = number % 2 == 0;
                let (entity, announcer) = if is_writer {
                    (EntityId::user_writer(number, false), EntityId::SEDP_PUBLICATIONS_WRITER)
                } else {
                    (EntityId::user_reader(number, false), EntityId::SEDP_SUBSCRIPTIONS_WRITER)
                };
                let data = "d".repeat(limits.text_bytes - "topicType".len());
                let payload = forge::endpoint(Guid::new(prefix, entity), "topic", |list| {
                    list.byte_sequence(ParameterId::USER_DATA, data.as_bytes());
                });
                let number = i64::from(number / 2 + 1);
                self.receive(&Forged::by(prefix).to(OWN).data(announcer, number, &payload));
            }
        }
    }

    fn expire(&mut self) {
        while self.core.remote_participants() > 0 {
            self.now = self.now.max(self.core.next_timeout().unwrap());
            self.core.handle_timeout(self.now);
            self.settle();
        }
    }
}

/// The memory of the core since `start`.
fn taken_now(world: &World, start: usize) -> usize {
    let out =
        world.out.scratch.capacity() + world.out.items.capacity() * size_of::<weir_rtps::outbox::Item>();
    allocated() - start + size_of::<ParticipantCore>() - out
}

/// The most memory of a participant, without its endpoints: all of it is reserved.
fn bytes_of(limits: &Limits) -> usize {
    let counts = Counts { writers: 0, readers: 0, writer_matches: 0, ..Counts::most(limits) };
    Budget::of(limits, counts).total()
}

pub(crate) fn a_participant_whose_tables_are_full_takes_no_more_than_its_budget() {
    let small = Limits::SMALL;
    let wide = Limits { participants: 30, endpoints_per_participant: 60, text_bytes: 100, ..small };
    let long = Limits { participants: 2, endpoints_per_participant: 4, text_bytes: 2_000, ..small };
    for limits in [small, wide, long] {
        let start = allocated();
        let mut world = World::new(limits);
        let builtin = world.core.builtin_allocated();
        world.add_endpoints(&limits);
        for round in 0..3 {
            world.fill(&limits, round);
            let (counts, most) = (world.counts(), Counts::most(&limits));
            assert_eq!(
                (counts.participants, counts.endpoints),
                (most.participants, most.endpoints),
                "{:?}",
                world.core.counters()
            );
            assert!(counts.relations <= most.relations && counts.relations > 0, "{counts:?}");
            let (taken, account) = (taken_now(&world, start), bytes_of(&limits));
            assert!(taken <= account, "{taken} bytes, {account} accounted: {limits:?}");
            // The figures are of use: they are not much more than is taken.
            assert!(taken >= account / 2, "{taken} bytes, {account} accounted: {limits:?}");
            world.expire();
            assert!(taken_now(&world, start) <= taken, "memory has grown");
        }
        assert_eq!(world.core.builtin_allocated(), builtin);
    }
}

pub(crate) fn partitions_are_compared_without_memory() {
    let names = |name: &str| vec![name.to_owned()];
    let (patterns, name) = (["*ab?[[:digit:]x-z]", "[!a]*\\-9", "[a", "b"].map(names), names("b-ab-9"));
    let before = allocations();
    let matches = patterns.each_ref().map(|pattern| partitions_match(pattern, &name));
    assert_eq!(allocations() - before, 0);
    assert_eq!(matches, [true, true, false, false]);
}
