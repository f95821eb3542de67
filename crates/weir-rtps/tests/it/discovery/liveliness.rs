//! Writers are asserted, and expired leases are noticed.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use weir_netsim::Loss;
use weir_rtps::discovery_event::DiscoveryEvent;
use weir_rtps::qos::{Liveliness, LivelinessKind, Qos};
use weir_wire::{
    AckNack, EntityId, Guid, Header, InfoDestination, Message, ProtocolVersion, SequenceNumber,
    SequenceNumberSet, Submessage, VendorId, push,
};

use super::ms;
use super::world::{Datagram, World, link, prefix};

const LEASE: Duration = ms(900);

fn qos(kind: LivelinessKind) -> Qos {
    Qos { liveliness: Liveliness { kind, lease: LEASE }, ..Qos::for_writer() }
}

/// Two participants that know each other; the first has a writer.
fn world(kind: LivelinessKind) -> (World, Guid) {
    let mut world = World::new();
    world.start();
    world.start();
    let writer = world.add_writer(0, 1, "Square", qos(kind));
    world.add_reader(1, 1, "Square", Qos::for_reader());
    world.run_for(ms(50));
    world.events(0);
    world.events(1);
    (world, writer)
}

/// The assertions of another participant that a participant reported.
fn asserted(world: &mut World, node: usize, by: usize) -> Vec<LivelinessKind> {
    let told = world.events(node).into_iter().filter_map(|event| match event {
        DiscoveryEvent::LivelinessAsserted { prefix: from, kind } if from == prefix(by) => Some(kind),
        _ => None,
    });
    told.collect()
}

fn lost(world: &mut World) -> usize {
    let is_lost = |event: &DiscoveryEvent| matches!(event, DiscoveryEvent::LivelinessLost { .. });
    world.events(0).iter().filter(|event| is_lost(event)).count()
}

#[test]
fn automatic_writers_are_asserted_three_times_in_a_lease_by_themselves() {
    let (mut world, writer) = world(LivelinessKind::Automatic);
    world.run_for(LEASE * 10);
    assert_eq!(asserted(&mut world, 1, 0), [LivelinessKind::Automatic; 30]);
    assert_eq!(asserted(&mut world, 0, 0).len(), 30, "readers of the same participant are notified as well");
    assert_eq!(lost(&mut world), 0);
    let now = world.now;
    world.nodes[0].core.remove_writer(now, writer.entity);
    world.run_for(LEASE * 10);
    assert_eq!(asserted(&mut world, 1, 0), []);
}

#[test]
fn writers_without_a_lease_cause_no_messages() {
    let mut world = World::new();
    world.start();
    world.start();
    world.add_writer(0, 1, "Square", Qos::for_writer());
    world.run_for(Duration::from_secs(60));
    assert_eq!(asserted(&mut world, 1, 0), []);
    assert_eq!(asserted(&mut world, 0, 0), []);
}

#[test]
fn a_message_that_is_lost_is_repaired() {
    let (mut world, writer) = world(LivelinessKind::ManualByParticipant);
    let is_dropped = AtomicBool::new(false);
    world.network.set_default_link(link().loss(Loss::when(move |datagram| {
        let is_message = messages(datagram.bytes).any(|id| id == EntityId::PARTICIPANT_MESSAGE_WRITER);
        is_message && !is_dropped.swap(true, Ordering::Relaxed)
    })));
    let now = world.now;
    world.nodes[0].core.assert_writer(now, now, writer.entity);
    world.run_for(LEASE / 2);
    assert_eq!(asserted(&mut world, 1, 0), [LivelinessKind::ManualByParticipant]);
}

#[test]
fn manual_writers_of_a_participant_are_asserted_by_any_of_them_or_all_at_once() {
    let (mut world, one) = world(LivelinessKind::ManualByParticipant);
    world.add_writer(0, 2, "Circle", qos(LivelinessKind::ManualByParticipant));
    world.run_for(ms(10));
    for _ in 0..10 {
        world.run_for(LEASE / 2);
        let now = world.now;
        world.nodes[0].core.assert_writer(now, now, one.entity);
    }
    assert_eq!(lost(&mut world), 0);
    world.run_for(LEASE / 2);
    assert_eq!(asserted(&mut world, 1, 0).len(), 10);
    let now = world.now;
    world.nodes[0].core.assert_liveliness(now);
    world.run_for(LEASE - ms(1));
    assert_eq!(lost(&mut world), 0);
    world.run_for(ms(1));
    assert_eq!(lost(&mut world), 2);
    assert_eq!(asserted(&mut world, 1, 0), [LivelinessKind::ManualByParticipant]);
    // A lost lease is lost again only after an assertion.
    world.run_for(LEASE * 3);
    assert_eq!(lost(&mut world), 0);
    let now = world.now;
    world.nodes[0].core.assert_liveliness(now);
    world.run_for(LEASE);
    assert_eq!(lost(&mut world), 2);
}

#[test]
fn writes_in_quick_succession_cause_few_messages_and_the_last_one_counts() {
    let (mut world, writer) = world(LivelinessKind::ManualByParticipant);
    for _ in 0..1000 {
        world.run_for(ms(1));
        let now = world.now;
        world.nodes[0].core.assert_writer(now, now, writer.entity);
    }
    world.run_for(LEASE / 4);
    let messages = asserted(&mut world, 1, 0).len();
    assert!((8..=10).contains(&messages), "{messages} messages");
}

#[test]
fn a_writer_asserted_on_its_topic_is_watched_and_needs_no_messages() {
    let (mut world, writer) = world(LivelinessKind::ManualByTopic);
    let now = world.now;
    world.nodes[0].core.assert_writer(now, now, writer.entity);
    // Not for this kind.
    world.nodes[0].core.assert_liveliness(now);
    world.run_for(LEASE - ms(1));
    assert_eq!(lost(&mut world), 0);
    world.run_for(ms(1));
    assert_eq!(lost(&mut world), 1);
    assert_eq!(asserted(&mut world, 1, 0), []);
}

#[test]
fn who_asks_for_participant_messages_is_answered_and_asks_no_more() {
    let (mut world, _) = world(LivelinessKind::Automatic);
    let acknack = AckNack {
        reader: EntityId::PARTICIPANT_MESSAGE_READER,
        writer: EntityId::PARTICIPANT_MESSAGE_WRITER,
        state: SequenceNumberSet::new(SequenceNumber(0)),
        count: 100,
        is_final: false,
    };
    let mut bytes = Vec::new();
    push(
        &mut bytes,
        &Header { version: ProtocolVersion::V2_5, vendor: VendorId::EPROSIMA, prefix: prefix(1) },
    );
    push(&mut bytes, &InfoDestination { prefix: prefix(0) });
    push(&mut bytes, &acknack);
    let (from, to) = (world.nodes[1].address, world.nodes[0].address);
    world.sent.clear();
    world.send(Datagram { from, to, bytes });
    world.run_for(ms(1));
    let is_heartbeat = |datagram: &Datagram| {
        datagram.from == to && messages(&datagram.bytes).any(|id| id == EntityId::PARTICIPANT_MESSAGE_WRITER)
    };
    assert_eq!(world.sent.iter().filter(|datagram| is_heartbeat(datagram)).count(), 1);
}

/// The writers of the submessages in a datagram.
fn messages(datagram: &[u8]) -> impl Iterator<Item = EntityId> + '_ {
    let submessages = Message::parse(datagram).unwrap().submessages();
    submessages.filter_map(|submessage| match submessage.unwrap() {
        Submessage::Data(data) => Some(data.writer),
        Submessage::Heartbeat(heartbeat) => Some(heartbeat.writer),
        _ => None,
    })
}

/// The writers that lost their liveliness since the last call.
fn losers(world: &mut World) -> Vec<EntityId> {
    let lost = world.events(0).into_iter().filter_map(|event| match event {
        DiscoveryEvent::LivelinessLost { writer } => Some(writer),
        _ => None,
    });
    lost.collect()
}

#[test]
fn a_lost_writer_of_a_participant_is_back_when_any_of_them_writes() {
    let (mut world, one) = world(LivelinessKind::ManualByParticipant);
    let other = world.add_writer(0, 2, "Circle", qos(LivelinessKind::ManualByParticipant));
    world.run_for(LEASE * 2);
    assert_eq!(losers(&mut world), [one.entity, other.entity]);
    assert_eq!(asserted(&mut world, 1, 0), []);
    // A write of one asserts both, here and elsewhere.
    let now = world.now;
    world.nodes[0].core.assert_writer(now, now, other.entity);
    world.run_for(LEASE - ms(1));
    assert_eq!(losers(&mut world), []);
    assert_eq!(asserted(&mut world, 1, 0), [LivelinessKind::ManualByParticipant]);
    world.run_for(ms(1));
    assert_eq!(losers(&mut world), [one.entity, other.entity]);
    // Another writer that leaves asserts none.
    let now = world.now;
    world.nodes[0].core.remove_writer(now, other.entity);
    world.run_for(LEASE * 2);
    assert_eq!(asserted(&mut world, 1, 0), []);
}

#[test]
fn a_write_asserts_its_own_writer_and_no_other_if_writers_are_asserted_on_their_topics() {
    let (mut world, one) = world(LivelinessKind::ManualByTopic);
    let other = world.add_writer(0, 2, "Square", qos(LivelinessKind::ManualByTopic));
    world.run_for(LEASE / 2);
    let now = world.now;
    world.nodes[0].core.assert_writer(now, now, other.entity);
    world.run_for(LEASE / 2);
    assert_eq!(losers(&mut world), [one.entity]);
    world.run_for(LEASE / 2);
    assert_eq!(losers(&mut world), [other.entity]);
    // Each comes back by its own assertion, and is lost again without another one.
    let now = world.now;
    world.nodes[0].core.assert_writer(now, now, one.entity);
    world.run_for(LEASE);
    assert_eq!(losers(&mut world), [one.entity]);
}

#[test]
fn the_kinds_do_not_assert_each_other() {
    let (mut world, automatic) = world(LivelinessKind::Automatic);
    let by_participant = world.add_writer(0, 2, "Square", qos(LivelinessKind::ManualByParticipant));
    let by_topic = world.add_writer(0, 3, "Square", qos(LivelinessKind::ManualByTopic));
    // Automatic assertions are sent all the time, and are for AUTOMATIC writers only.
    world.run_for(LEASE / 2);
    let now = world.now;
    world.nodes[0].core.assert_writer(now, now, automatic.entity);
    world.run_for(LEASE / 2);
    assert_eq!(losers(&mut world), [by_participant.entity, by_topic.entity]);
    assert!(asserted(&mut world, 1, 0).iter().all(|kind| *kind == LivelinessKind::Automatic));
    // A writer that is asserted on its topic asserts no other writer.
    let now = world.now;
    world.nodes[0].core.assert_writer(now, now, by_topic.entity);
    world.run_for(LEASE / 2);
    assert!(!asserted(&mut world, 1, 0).contains(&LivelinessKind::ManualByParticipant));
    world.run_for(LEASE);
    assert_eq!(losers(&mut world), [by_topic.entity]);
}

#[test]
fn a_manual_writer_with_an_infinite_lease_is_never_lost() {
    let mut world = World::new();
    world.start();
    for (key, kind) in [(1, LivelinessKind::ManualByParticipant), (2, LivelinessKind::ManualByTopic)] {
        let liveliness = Liveliness { kind, lease: weir_rtps::qos::INFINITE };
        world.add_writer(0, key, "Square", Qos { liveliness, ..Qos::for_writer() });
    }
    world.run_for(Duration::from_secs(3600));
    assert_eq!(losers(&mut world), []);
}
