//! Participants whose addresses change, or whose names are used from other addresses.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;

use weir_rtps::discovery_event::DiscoveryEvent;
use weir_rtps::outbox::Outbox;
use weir_rtps::participant::ParticipantCore;
use weir_rtps::qos::{Qos, Reliability};
use weir_rtps::time::Time;
use weir_rtps::{sedp, spdp};
use weir_wire::{
    AckNack, DataHeader, EntityId, Guid, GuidPrefix, Header, InfoDestination, Locator, ParameterId,
    ParameterListWriter, ProtocolVersion, SequenceNumber, SequenceNumberSet, VendorId, push,
};

use super::hostile::{acknowledgement, announcement, data};
use super::world::{Datagram, GROUP, METATRAFFIC_PORT, USER_PORT, World, config, endpoint, matched, prefix};

const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(10, 0, 9, 9);
const READERS: u32 = 512;

const fn at(host: Ipv4Addr, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(host, port)
}

/// A reliable writer on node 0 that has matched a reader on node 1.
fn pair() -> World {
    let mut world = World::new();
    world.start();
    world.start();
    world.add_writer(0, 1, "Square", Qos::for_writer());
    world.add_reader(1, 1, "Square", Qos { reliability: Reliability::Reliable, ..Qos::for_reader() });
    world.run_for(Duration::from_millis(2500));
    assert!(world.events(0).iter().any(|event| matched(event).is_some()));
    world
}

/// Where the writer of node 0 sends, by its events; `None` if its reader is gone.
fn destinations(world: &mut World, before: &[SocketAddrV4]) -> Option<Vec<SocketAddrV4>> {
    let mut now = Some(before.to_vec());
    for event in world.events(0) {
        match event {
            DiscoveryEvent::ReaderMatched { reader, .. } | DiscoveryEvent::ReaderChanged { reader, .. } => {
                now = Some(reader.destinations.to_vec());
            }
            DiscoveryEvent::ReaderUnmatched { .. } => now = None,
            _ => {}
        }
    }
    now
}

/// An announcement in the name of node 1 from another host.
fn claim(world: &mut World, number: i64) {
    let payload = announcement(prefix(1), at(ELSEWHERE, METATRAFFIC_PORT));
    let bytes = data(prefix(1), EntityId::SPDP_WRITER, number, None, &payload);
    world.send(Datagram { from: at(ELSEWHERE, METATRAFFIC_PORT), to: GROUP, bytes });
}

/// A goodbye in the name of node 1 from another host.
fn goodbye(world: &mut World, number: i64) {
    let guid = Guid::new(prefix(1), EntityId::PARTICIPANT);
    let bytes = disposal(VendorId::WEIR, guid, EntityId::SPDP_WRITER, number, &[]);
    world.send(Datagram { from: at(ELSEWHERE, METATRAFFIC_PORT), to: GROUP, bytes });
}

/// A DATA message that disposes a participant or an endpoint: the one named by `key` or, if that is empty, `guid`.
pub(super) fn disposal(vendor: VendorId, guid: Guid, writer: EntityId, number: i64, key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    push(&mut bytes, &Header { version: ProtocolVersion::V2_5, vendor, prefix: guid.prefix });
    let mut inline_qos = Vec::new();
    let mut list = ParameterListWriter::new(&mut inline_qos);
    if key.is_empty() {
        list.guid(ParameterId::KEY_HASH, guid);
    }
    list.bytes4(ParameterId::STATUS_INFO, [0, 0, 0, 3]);
    list.finish();
    let header = DataHeader {
        reader: EntityId::UNKNOWN,
        writer,
        sequence_number: SequenceNumber(number),
        inline_qos_len: inline_qos.len() as u32,
        payload_len: key.len() as u32,
        is_key: !key.is_empty(),
    };
    push(&mut bytes, &header);
    bytes.extend_from_slice(&inline_qos);
    bytes.extend_from_slice(key);
    bytes
}

/// An answer in the name of node 1 from another host.
fn answer(world: &mut World, count: u32) {
    let mut bytes = Vec::new();
    push(&mut bytes, &Header { version: ProtocolVersion::V2_5, vendor: VendorId::WEIR, prefix: prefix(1) });
    push(&mut bytes, &InfoDestination { prefix: prefix(0) });
    let acknack = AckNack {
        reader: EntityId::SEDP_PUBLICATIONS_READER,
        writer: EntityId::SEDP_PUBLICATIONS_WRITER,
        state: SequenceNumberSet::new(SequenceNumber(2)),
        count,
        is_final: true,
    };
    push(&mut bytes, &acknack);
    let to = world.nodes[0].address;
    world.send(Datagram { from: at(ELSEWHERE, METATRAFFIC_PORT), to, bytes });
}

#[test]
fn a_peer_is_not_cut_off_by_announcements_and_goodbyes_from_another_host() {
    let mut world = pair();
    let home = config(1).default_unicast;
    world.sent.clear();
    claim(&mut world, 1000);
    goodbye(&mut world, 1001);
    world.run_for(Duration::from_secs(5));
    assert_eq!(destinations(&mut world, &home), Some(home));
    assert!(world.nodes[0].core.counters().claims_refused > 0);
    let there = world.sent.iter().filter(|datagram| *datagram.to.ip() == ELSEWHERE);
    let bytes: usize = there.map(|datagram| datagram.bytes.len()).sum();
    assert!(bytes < 1000, "{bytes} bytes went where the claim pointed");
}

#[test]
fn a_forger_who_answers_gets_a_copy_and_cuts_no_peer_off() {
    let mut world = pair();
    let home = config(1).default_unicast;
    claim(&mut world, 1000);
    world.run_for(Duration::from_millis(500));
    answer(&mut world, 1_000_000);
    world.run_for(Duration::from_secs(2));
    let both = [home[0], at(ELSEWHERE, METATRAFFIC_PORT)].to_vec();
    assert_eq!(destinations(&mut world, &home), Some(both.clone()));
    goodbye(&mut world, 1001);
    world.run_for(Duration::from_secs(5));
    assert_eq!(destinations(&mut world, &both), Some(both));
}

#[test]
fn a_goodbye_from_a_new_address_is_believed_when_the_known_one_is_silent() {
    let mut world = pair();
    world.kill(1);
    goodbye(&mut world, 1001);
    let home = config(1).default_unicast;
    world.run_for(Duration::from_millis(900));
    assert_eq!(destinations(&mut world, &home), Some(home.clone()));
    world.run_for(Duration::from_millis(200));
    assert_eq!(destinations(&mut world, &home), None);
}

#[test]
fn a_peer_that_moved_is_followed_within_two_seconds_and_stays_matched() {
    let mut world = pair();
    world.readdress(1, ELSEWHERE);
    world.run_for(Duration::from_secs(2));
    let home = config(1).default_unicast;
    assert_eq!(destinations(&mut world, &home), Some(vec![at(ELSEWHERE, USER_PORT)]));
    let events = world.events(1);
    assert!(
        !events.iter().any(|event| matches!(event, DiscoveryEvent::WriterUnmatched { .. })),
        "{events:?}"
    );
}

/// Each is announced from an address that the other does not know, and the answers to questions about that would go
/// to addresses that are out of date.
#[test]
fn two_peers_that_moved_while_they_were_cut_off_find_each_other() {
    let mut world = pair();
    let hosts = [0, 1].map(|node| *world.nodes[node].address.ip());
    let moved = [Ipv4Addr::new(10, 0, 9, 8), ELSEWHERE];
    for (one, other) in hosts.into_iter().chain(moved).zip([hosts[1], hosts[0], hosts[1], hosts[0]]) {
        world.network.partition().cut(one, other);
    }
    world.network.partition().cut(moved[0], moved[1]);
    world.readdress(0, moved[0]);
    // Their announcements are not at the same time.
    world.run_for(Duration::from_millis(1500));
    world.readdress(1, moved[1]);
    world.run_for(Duration::from_millis(1500));
    world.network.partition().heal();
    world.run_for(Duration::from_secs(10));
    let home = config(1).default_unicast;
    assert_eq!(destinations(&mut world, &home), Some(vec![at(ELSEWHERE, USER_PORT)]));
    let events = world.events(1);
    let changed = |event: &DiscoveryEvent| match event {
        DiscoveryEvent::WriterChanged { writer, .. } => Some(writer.destinations.to_vec()),
        _ => None,
    };
    assert_eq!(events.iter().rev().find_map(changed), Some(vec![at(moved[0], USER_PORT)]), "{events:?}");
}

#[test]
fn a_peer_with_one_more_address_is_followed_at_once() {
    let mut world = pair();
    let mut addresses = world.addresses(1);
    addresses.default_unicast.insert(0, at(Ipv4Addr::new(10, 0, 0, 77), USER_PORT));
    addresses.default_unicast.truncate(1);
    let now = world.now;
    world.nodes[1].core.set_addresses(now, addresses);
    world.run_for(Duration::from_millis(10));
    let home = config(1).default_unicast;
    let there = vec![at(Ipv4Addr::new(10, 0, 0, 77), USER_PORT)];
    assert_eq!(destinations(&mut world, &home), Some(there));
}

/// A participant with a local writer and one remote participant of 512 matching readers.
fn crowd() -> (ParticipantCore, GuidPrefix, SocketAddrV4) {
    let mut local = config(0);
    local.limits.endpoints_per_participant = READERS as usize;
    let mut core = ParticipantCore::new(local, Time::ZERO);
    for key in 1..=8 {
        let entity = EntityId::user_writer(key, false);
        core.add_writer(Time::ZERO, endpoint(entity, "Square", Qos::for_writer())).unwrap();
    }
    let (source, from) = (prefix(1), config(1).metatraffic_unicast[0]);
    core.handle_datagram(
        Time::ZERO,
        from,
        &data(source, EntityId::SPDP_WRITER, 1, None, &announcement(source, from)),
    );
    core.handle_datagram(Time::ZERO, from, &acknowledgement(source, prefix(0)));
    for key in 1..=READERS {
        announce_reader(&mut core, source, from, key);
    }
    (core, source, from)
}

fn announce_reader(core: &mut ParticipantCore, source: GuidPrefix, from: SocketAddrV4, key: u32) {
    let mut payload = vec![0, 3, 0, 0];
    let mut list = ParameterListWriter::new(&mut payload);
    list.guid(ParameterId::ENDPOINT_GUID, Guid::new(source, EntityId::user_reader(key, false)));
    list.string(ParameterId::TOPIC_NAME, "Square");
    list.string(ParameterId::TYPE_NAME, "Type");
    list.finish();
    let bytes = data(source, EntityId::SEDP_SUBSCRIPTIONS_WRITER, i64::from(key), Some(prefix(0)), &payload);
    core.handle_datagram(Time::ZERO, from, &bytes);
}

fn count_events(core: &mut ParticipantCore) -> usize {
    core::iter::from_fn(|| core.poll_event()).count()
}

#[test]
fn one_datagram_of_alternating_addresses_makes_no_more_events_than_there_are_matches() {
    let (mut core, source, from) = crowd();
    assert_eq!(count_events(&mut core), 1 + 8 * READERS as usize);
    let memory = core.memory();
    // All in one datagram.
    let mut bytes = Vec::new();
    push(&mut bytes, &Header { version: ProtocolVersion::V2_5, vendor: VendorId::CYCLONE, prefix: source });
    for number in 0..500 {
        let user = at(Ipv4Addr::new(10, 0, 0, 100 + (number % 2) as u8), USER_PORT);
        let mut payload = vec![0, 3, 0, 0];
        let mut list = ParameterListWriter::new(&mut payload);
        list.guid(ParameterId::PARTICIPANT_GUID, Guid::new(source, EntityId::PARTICIPANT));
        list.u32(ParameterId::BUILTIN_ENDPOINT_SET, spdp::builtin_endpoints::WEIR);
        list.locator(ParameterId::METATRAFFIC_UNICAST_LOCATOR, Locator::udp_v4(from));
        list.locator(ParameterId::DEFAULT_UNICAST_LOCATOR, Locator::udp_v4(user));
        list.finish();
        let header = DataHeader {
            reader: EntityId::UNKNOWN,
            writer: EntityId::SPDP_WRITER,
            sequence_number: SequenceNumber(2 + number),
            inline_qos_len: 0,
            payload_len: payload.len() as u32,
            is_key: false,
        };
        push(&mut bytes, &header);
        bytes.extend_from_slice(&payload);
    }
    assert!(bytes.len() < 65_000, "{}", bytes.len());
    core.handle_datagram(Time::ZERO, from, &bytes);
    assert_eq!(core.counters().malformed_submessages, 0);
    assert!(core.memory() < memory + (1 << 20), "{} bytes more", core.memory() - memory);
    // One change at once, and the last one when its time has come.
    assert_eq!(count_events(&mut core), 8 * READERS as usize);
    assert!(core.counters().changes_held_back >= 250);
    core.handle_timeout(Time(200_000_000));
    assert_eq!(count_events(&mut core), 8 * READERS as usize);
    core.handle_timeout(Time(400_000_000));
    assert_eq!(count_events(&mut core), 0);
}

#[test]
fn an_endpoint_that_comes_and_goes_in_one_datagram_makes_no_events() {
    let (mut core, source, from) = crowd();
    count_events(&mut core);
    let guid = Guid::new(source, EntityId::user_reader(1, false));
    let mut number = i64::from(READERS);
    for _ in 0..400 {
        for is_gone in [true, false] {
            number += 1;
            let mut payload = Vec::new();
            if is_gone {
                sedp::encode_key(guid, &mut payload);
                let writer = EntityId::SEDP_SUBSCRIPTIONS_WRITER;
                let bytes = disposal(VendorId::CYCLONE, guid, writer, number, &payload);
                core.handle_datagram(Time::ZERO, from, &bytes);
            } else {
                payload.extend_from_slice(&[0, 3, 0, 0]);
                let mut list = ParameterListWriter::new(&mut payload);
                list.guid(ParameterId::ENDPOINT_GUID, guid);
                list.string(ParameterId::TOPIC_NAME, "Square");
                list.string(ParameterId::TYPE_NAME, "Type");
                list.finish();
                let writer = EntityId::SEDP_SUBSCRIPTIONS_WRITER;
                core.handle_datagram(Time::ZERO, from, &data(source, writer, number, None, &payload));
            }
        }
    }
    // Its match with each of the eight writers has ended and begun.
    assert_eq!(count_events(&mut core), 16);
}

/// The first ones may be lost.
#[test]
fn announcements_begin_again_as_often_as_at_the_start() {
    let mut core = ParticipantCore::new(config(0), Time::ZERO);
    let announced_until = |core: &mut ParticipantCore, end: Time| {
        let mut times = Vec::new();
        while let Some(at) = core.next_timeout().filter(|at| *at <= end) {
            core.handle_timeout(at);
            let mut out = Outbox::new();
            core.poll_transmit(at, &mut out);
            times.extend((!out.is_empty()).then_some(at));
        }
        times
    };
    announced_until(&mut core, Time::ZERO + Duration::from_secs(60));
    let start = Time::ZERO + Duration::from_secs(61);
    core.restart_announcements(start);
    let times = announced_until(&mut core, start + Duration::from_millis(1000));
    assert_eq!(times, [0, 50, 200, 1000].map(|ms| start + Duration::from_millis(ms)));
}
