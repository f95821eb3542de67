//! A participant under lies, floods and nonsense counts them, and stays within its limits.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;
use weir_rtps::discovery_event::DiscoveryEvent;
use weir_rtps::outbox::Outbox;
use weir_rtps::participant::{Gathering, ParticipantCore};
use weir_rtps::qos::Qos;
use weir_rtps::time::Time;
use weir_rtps::{sedp, spdp};
use weir_wire::{
    AckNack, DataHeader, EntityId, Guid, GuidPrefix, Header, InfoDestination, Locator, ParameterId,
    ParameterListWriter, ProtocolVersion, SequenceNumber, SequenceNumberSet, VendorId, push,
};

use super::world::{Datagram, GROUP, World, config, endpoint, matched, prefix};

/// An ACKNACK that answers a HEARTBEAT for announcements of endpoints, which begin with number 1.
pub(super) fn acknowledgement(source: GuidPrefix, to: GuidPrefix) -> Vec<u8> {
    let mut datagram = Vec::new();
    push(
        &mut datagram,
        &Header { version: ProtocolVersion::V2_5, vendor: VendorId::CYCLONE, prefix: source },
    );
    push(&mut datagram, &InfoDestination { prefix: to });
    let (reader, writer) = (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER);
    let state = SequenceNumberSet::new(SequenceNumber::FIRST);
    push(&mut datagram, &AckNack { reader, writer, state, count: 1, is_final: true });
    datagram
}

/// A DATA message of a participant that may not exist.
pub(super) fn data(
    source: GuidPrefix,
    writer: EntityId,
    number: i64,
    directed_to: Option<GuidPrefix>,
    payload: &[u8],
) -> Vec<u8> {
    let mut datagram = Vec::new();
    push(
        &mut datagram,
        &Header { version: ProtocolVersion::V2_5, vendor: VendorId::CYCLONE, prefix: source },
    );
    if let Some(prefix) = directed_to {
        push(&mut datagram, &InfoDestination { prefix });
    }
    let header = DataHeader {
        reader: EntityId::UNKNOWN,
        writer,
        sequence_number: SequenceNumber(number),
        inline_qos_len: 0,
        payload_len: payload.len() as u32,
        is_key: false,
    };
    push(&mut datagram, &header);
    datagram.extend_from_slice(payload);
    datagram
}

/// The payload of an announcement with an address for responses.
pub(super) fn announcement(source: GuidPrefix, answer_to: SocketAddrV4) -> Vec<u8> {
    let mut payload = vec![0, 3, 0, 0];
    let mut list = ParameterListWriter::new(&mut payload);
    list.guid(ParameterId::PARTICIPANT_GUID, Guid::new(source, EntityId::PARTICIPANT));
    list.u32(ParameterId::BUILTIN_ENDPOINT_SET, spdp::builtin_endpoints::WEIR);
    list.locator(ParameterId::METATRAFFIC_UNICAST_LOCATOR, Locator::udp_v4(answer_to));
    list.locator(ParameterId::DEFAULT_UNICAST_LOCATOR, Locator::udp_v4(answer_to));
    list.finish();
    payload
}

fn forged(index: u32) -> GuidPrefix {
    let mut prefix = [0xee; 12];
    prefix[8..].copy_from_slice(&index.to_be_bytes());
    GuidPrefix(prefix)
}

const VICTIM: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 9, 9, 9), 53);

#[test]
fn a_flood_of_forged_announcements_is_bounded_and_keeps_no_peer_out() {
    let mut world = World::new();
    world.start();
    world.add_writer(0, 1, "Square", Qos::for_writer());
    world.run_for(Duration::from_millis(2500));
    world.sent.clear();
    let limit = world.nodes[0].core.config().limits.participants;
    for index in 0..2000 {
        let payload = announcement(forged(index), VICTIM);
        let bytes = data(forged(index), EntityId::SPDP_WRITER, 1, None, &payload);
        world.send(Datagram { from: VICTIM, to: GROUP, bytes });
    }
    world.run_for(Duration::from_millis(10));
    assert_eq!(world.nodes[0].core.remote_participants(), limit);
    // Discovery does not wait for them, as it does in a large domain.
    assert_eq!(world.nodes[0].core.gathering(world.now), Gathering::default());
    let counters = *world.nodes[0].core.counters();
    assert_eq!(counters.participants_over_limit, 2000 - limit as u64);
    // As many as may be sent at once, or fewer, since all name the same host.
    assert!(counters.replies_suppressed >= 2000 - 64);

    let start = world.now;
    let real = world.start();
    world.add_reader(real, 1, "Square", Qos::for_reader());
    world.run_for(Duration::from_millis(100));
    let found = world.events(0).iter().filter_map(matched).any(|remote| remote.guid.prefix == prefix(real));
    assert!(found);
    let at = world.first_time(real, |event| matched(event).is_some());
    assert!(at.is_some_and(|at| at.since(start) < Duration::from_millis(60)), "{at:?}");
}

#[test]
fn somebody_else_is_sent_little_when_his_address_is_forged() {
    let mut world = World::new();
    world.start();
    world.run_for(Duration::from_millis(2500));
    world.sent.clear();
    let payload = announcement(forged(1), VICTIM);
    let bytes = data(forged(1), EntityId::SPDP_WRITER, 1, None, &payload);
    world.send(Datagram { from: VICTIM, to: GROUP, bytes });
    world.run_for(Duration::from_secs(200));
    let to_victim: Vec<_> = world.sent.iter().filter(|datagram| datagram.to == VICTIM).collect();
    let bytes: usize = to_victim.iter().map(|datagram| datagram.bytes.len()).sum();
    // One response and the attempts of four builtin endpoints over the lease of 100 s; no periodic
    // announcements.
    assert!(to_victim.len() < 40 && bytes < 3000, "{} {bytes}", to_victim.len());
    assert_eq!(world.nodes[0].core.remote_participants(), 0);
}

#[test]
fn addresses_that_mean_many_are_never_sent_to() {
    let mut core = ParticipantCore::new(config(0), Time::ZERO);
    for (index, ip) in
        [[255, 255, 255, 255], [239, 255, 0, 1], [0, 0, 0, 0], [127, 0, 0, 1]].into_iter().enumerate()
    {
        let source = forged(index as u32);
        let payload = announcement(source, SocketAddrV4::new(ip.into(), 7410));
        core.handle_datagram(Time::ZERO, VICTIM, &data(source, EntityId::SPDP_WRITER, 1, None, &payload));
    }
    assert_eq!(core.remote_participants(), 0);
    assert_eq!(core.counters().unreachable, 4);
}

#[test]
fn no_participant_speaks_for_another() {
    let mut core = ParticipantCore::new(config(0), Time::ZERO);
    let (liar, other) = (forged(1), forged(2));
    let speak = |core: &mut ParticipantCore, writer, number, payload: &[u8]| {
        core.handle_datagram(Time::ZERO, VICTIM, &data(liar, writer, number, None, payload));
    };
    speak(&mut core, EntityId::SPDP_WRITER, 1, &announcement(other, VICTIM));
    assert_eq!((core.remote_participants(), core.counters().foreign_announcements), (0, 1));
    speak(&mut core, EntityId::SPDP_WRITER, 2, &announcement(liar, VICTIM));
    let mut number = 0;
    for guid in [
        Guid::new(other, EntityId::user_writer(1, false)),
        Guid::new(liar, EntityId::user_reader(1, false)),
        Guid::new(liar, EntityId::SPDP_WRITER),
        Guid::new(prefix(0), EntityId::user_writer(1, false)),
    ] {
        let mut payload = Vec::new();
        let mut list = vec![0, 3, 0, 0];
        let mut writer = ParameterListWriter::new(&mut list);
        writer.guid(ParameterId::ENDPOINT_GUID, guid);
        writer.string(ParameterId::TOPIC_NAME, "t");
        writer.string(ParameterId::TYPE_NAME, "t");
        writer.finish();
        payload.extend_from_slice(&list);
        number += 1;
        speak(&mut core, EntityId::SEDP_PUBLICATIONS_WRITER, number, &payload);
    }
    assert_eq!((core.remote_endpoints(), core.counters().foreign_announcements), (0, 5));
}

#[test]
fn endpoints_are_bounded_per_participant() {
    let mut config = config(0);
    config.limits.endpoints_per_participant = 10;
    let mut core = ParticipantCore::new(config, Time::ZERO);
    let source = forged(1);
    let payload = announcement(source, VICTIM);
    core.handle_datagram(Time::ZERO, VICTIM, &data(source, EntityId::SPDP_WRITER, 1, None, &payload));
    for number in 1..=30 {
        let mut payload = vec![0, 3, 0, 0];
        let mut list = ParameterListWriter::new(&mut payload);
        list.guid(ParameterId::ENDPOINT_GUID, Guid::new(source, EntityId::user_writer(number, false)));
        list.string(ParameterId::TOPIC_NAME, "t");
        list.string(ParameterId::TYPE_NAME, "t");
        list.finish();
        let writer = EntityId::SEDP_PUBLICATIONS_WRITER;
        core.handle_datagram(Time::ZERO, VICTIM, &data(source, writer, i64::from(number), None, &payload));
    }
    assert_eq!((core.remote_endpoints(), core.counters().endpoints_over_limit), (10, 20));
}

#[test]
fn endpoints_of_an_unknown_participant_are_not_kept() {
    let mut core = ParticipantCore::new(config(0), Time::ZERO);
    let payload = announcement(forged(1), VICTIM);
    let bytes = data(forged(1), EntityId::SEDP_PUBLICATIONS_WRITER, 1, None, &payload);
    core.handle_datagram(Time::ZERO, VICTIM, &bytes);
    assert_eq!((core.remote_endpoints(), core.counters().unknown_participant), (0, 1));
}

#[test]
fn what_is_meant_for_somebody_else_is_ignored() {
    let mut core = ParticipantCore::new(config(0), Time::ZERO);
    let payload = announcement(forged(1), VICTIM);
    let bytes = data(forged(1), EntityId::SPDP_WRITER, 1, Some(forged(2)), &payload);
    core.handle_datagram(Time::ZERO, VICTIM, &bytes);
    assert_eq!(core.remote_participants(), 0);
    let bytes = data(forged(1), EntityId::SPDP_WRITER, 1, Some(prefix(0)), &payload);
    core.handle_datagram(Time::ZERO, VICTIM, &bytes);
    assert_eq!(core.remote_participants(), 1);
}

/// The datagrams of two participants that discover each other, match, change their QoS, and leave.
fn a_life() -> Vec<Datagram> {
    let mut world = World::new();
    for node in 0..2 {
        world.start();
        world.add_writer(node, 1, "Square", Qos::for_writer());
        world.add_reader(node, 1, "Square", Qos::for_reader());
    }
    world.run_for(Duration::from_secs(1));
    world.add_writer(1, 1, "Square", Qos { partition: vec!["p*".to_owned()], ..Qos::for_writer() });
    let now = world.now;
    world.nodes[1].core.remove_reader(now, EntityId::user_reader(1, false));
    world.run_for(Duration::from_secs(1));
    let now = world.now;
    world.nodes[1].core.close(now);
    world.run_for(Duration::from_secs(1));
    let address = world.nodes[1].address;
    world.sent.into_iter().filter(|datagram| datagram.from == address).collect()
}

/// Feeds datagrams to a participant that also exchanges data, and checks its state and size.
fn feed(datagrams: impl IntoIterator<Item = Vec<u8>>) {
    let mut core = ParticipantCore::new(config(0), Time::ZERO);
    core.add_writer(Time::ZERO, endpoint(EntityId::user_writer(1, false), "Square", Qos::for_writer()))
        .unwrap();
    core.add_reader(Time::ZERO, endpoint(EntityId::user_reader(1, false), "Square", Qos::for_reader()))
        .unwrap();
    let mut now = Time::ZERO;
    let mut matched_now = BTreeMap::new();
    let mut out = Outbox::new();
    for datagram in datagrams {
        now = now + Duration::from_millis(7);
        core.handle_datagram(now, config(1).metatraffic_unicast[0], &datagram);
        core.handle_timeout(now);
        out.clear();
        core.poll_transmit(now, &mut out);
        assert!(out.items.len() < 200, "{}", out.items.len());
        while let Some(event) = core.poll_event() {
            match event {
                DiscoveryEvent::ReaderMatched { writer, reader } => {
                    assert_eq!(matched_now.insert((writer, reader.guid), ()), None);
                }
                DiscoveryEvent::WriterMatched { reader, writer } => {
                    assert_eq!(matched_now.insert((reader, writer.guid), ()), None);
                }
                DiscoveryEvent::ReaderUnmatched { writer, reader } => {
                    assert_eq!(matched_now.remove(&(writer, reader)), Some(()));
                }
                DiscoveryEvent::WriterUnmatched { reader, writer } => {
                    assert_eq!(matched_now.remove(&(reader, writer)), Some(()));
                }
                _ => {}
            }
        }
        assert!(core.next_timeout().is_some_and(|at| at > now));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Valid traffic with bytes changed, cut off, repeated and swapped.
    #[test]
    fn mutated_traffic_does_no_harm(
        edits in prop::collection::vec((any::<Index>(), any::<Index>(), any::<u8>()), 0..60),
        cuts in prop::collection::vec((any::<Index>(), any::<Index>()), 0..4),
        repeats in prop::collection::vec((any::<Index>(), any::<Index>()), 0..20),
    ) {
        let mut datagrams: Vec<_> = a_life().into_iter().map(|datagram| datagram.bytes).collect();
        for (datagram, at, byte) in edits {
            let index = datagram.index(datagrams.len());
            let at = at.index(datagrams[index].len());
            datagrams[index][at] = byte;
        }
        for (datagram, at) in cuts {
            let index = datagram.index(datagrams.len());
            let at = at.index(datagrams[index].len()).max(1);
            datagrams[index].truncate(at);
        }
        for (from, to) in repeats {
            let repeated = datagrams[from.index(datagrams.len())].clone();
            datagrams.insert(to.index(datagrams.len()), repeated);
        }
        feed(datagrams);
    }

    #[test]
    fn arbitrary_datagrams_do_no_harm(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..30),
    ) {
        let announcement = announcement(prefix(1), config(1).metatraffic_unicast[0]);
        let header = data(prefix(1), EntityId::SPDP_WRITER, 1, None, &announcement);
        let headed = bodies.iter().map(|body| [&header[..20], body].concat());
        feed([header.clone()].into_iter().chain(bodies.clone()).chain(headed));
    }

    /// Well-formed parameter lists with arbitrary content.
    #[test]
    fn arbitrary_parameters_are_read_or_refused(
        parameters in prop::collection::vec((0_u16..0x90, prop::collection::vec(any::<u8>(), 0..60)), 0..20),
    ) {
        let mut payload = vec![0, 3, 0, 0];
        for (id, mut value) in parameters {
            value.resize(value.len().next_multiple_of(4), 0);
            payload.extend_from_slice(&id.to_le_bytes());
            payload.extend_from_slice(&(value.len() as u16).to_le_bytes());
            payload.extend_from_slice(&value);
        }
        payload.extend_from_slice(&[1, 0, 0, 0]);
        let limits = config(0).limits;
        let hash = Some([7; 16]);
        let _ = spdp::decode(&payload, hash, VendorId::WEIR, &limits);
        for kind in [sedp::EndpointKind::Writer, sedp::EndpointKind::Reader] {
            if let Ok(data) = sedp::decode(kind, &payload, hash, &limits) {
                let mut again = Vec::new();
                sedp::encode(kind, &data, VendorId::WEIR, &mut again);
                let mut expected = data.clone();
                // Local and informational values are not sent.
                expected.expects_inline_qos = false;
                expected.unicast.skipped = 0;
                let read = sedp::decode(kind, &again, None, &limits).unwrap();
                prop_assert_eq!(read.guid, expected.guid);
                prop_assert_eq!(read.topic, expected.topic);
                prop_assert_eq!(read.qos.partition, expected.qos.partition);
                prop_assert_eq!(read.qos.deadline, expected.qos.deadline);
                prop_assert_eq!(read.qos.liveliness, expected.qos.liveliness);
                prop_assert_eq!(read.unicast, expected.unicast);
            }
        }
    }
}
