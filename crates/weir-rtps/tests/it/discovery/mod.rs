//! Participants discover each other, match their endpoints, and notice when one leaves.

mod absence;
mod answer_time;
mod changes;
mod content_filters;
mod forged_static_peers;
mod fragments;
mod gathering;
mod hostile;
mod ignored;
mod impostors;
mod liveliness;
mod lost_answers;
mod moved;
mod multicast;
mod observed;
mod path_size;
mod static_peers;
mod two_links;
mod world;

use core::time::Duration;
use std::sync::Arc;

use weir_netsim::Loss;
use weir_rtps::discovery_event::{DiscoveryEvent, TypeDifference};
use weir_rtps::participant::{LocalEndpointError, ParticipantCore};
use weir_rtps::qos::{
    DestinationOrder, Durability, Ownership, PolicyId, PolicySet, PresentationScope, Qos, Reliability,
};
use weir_rtps::time::Time;
use weir_wire::{
    DataHeader, EntityId, Guid, Header, InfoDestination, Message, ParameterId, ParameterListWriter,
    ProtocolVersion, SequenceNumber, Submessage, VendorId, push,
};

use world::{Datagram, GROUP, World, config, endpoint, link, matched, prefix, since_start};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A matched writer on node 0 and reader on node 1.
fn matched_pair() -> (World, Guid, Guid) {
    let mut world = World::new();
    world.start();
    world.start();
    let writer = world.add_writer(0, 1, "Square", Qos::for_writer());
    let reader = world.add_reader(1, 1, "Square", Qos::for_reader());
    world.run_for(ms(50));
    assert_eq!(world.events(0).iter().find_map(matched).map(|remote| remote.guid), Some(reader));
    assert_eq!(world.events(1).iter().find_map(matched).map(|remote| remote.guid), Some(writer));
    (world, writer, reader)
}

#[test]
fn two_that_start_together_match_both_ways_at_once() {
    let mut world = World::new();
    let start = world.now;
    for node in 0..2 {
        world.start_with(|config| {
            config.entity_name = Some("node".to_owned());
            config.receive_buffer = 212_992;
        });
        world.add_writer(node, 1, "There", Qos::for_writer());
        world.add_reader(node, 1, "Back", Qos::for_reader());
    }
    world.add_reader(1, 2, "There", Qos { reliability: Reliability::Reliable, ..Qos::for_reader() });
    world.add_writer(0, 2, "Back", Qos::for_writer());
    world.run_for(ms(50));
    for node in 0..2 {
        let at = world.first_time(node, |event| matched(event).is_some()).unwrap();
        assert!(at.since(start) < ms(5), "{:?}", at.since(start));
    }
    let events = world.events(0);
    let vendor = VendorId::WEIR;
    assert!(events.contains(&DiscoveryEvent::ParticipantDiscovered { prefix: prefix(1), vendor }));
    let remotes: Vec<_> =
        events.iter().filter_map(matched).filter(|remote| remote.guid.prefix != prefix(0)).collect();
    assert_eq!(remotes.len(), 2);
    for remote in remotes {
        assert_eq!(remote.destinations[..], config(1).default_unicast[..]);
        assert_eq!(remote.receive_buffer, Some(212_992));
    }
}

#[test]
fn one_that_comes_late_is_answered_directly() {
    let mut world = World::new();
    world.start();
    world.add_writer(0, 1, "Square", Qos::for_writer());
    // Between two announcements of the first.
    world.run_for(ms(3500));
    let start = world.now;
    world.start();
    world.add_reader(1, 1, "Square", Qos::for_reader());
    world.run_for(ms(50));
    for node in 0..2 {
        let at = world.first_time(node, |event| matched(event).is_some()).unwrap();
        assert!(at.since(start) < ms(5), "{:?}", at.since(start));
    }
}

#[test]
fn endpoints_that_are_added_later_match_at_once() {
    let mut world = World::new();
    world.start();
    world.start();
    world.run_for(ms(2500));
    let start = world.now;
    world.add_writer(0, 1, "Square", Qos::for_writer());
    world.add_reader(1, 1, "Square", Qos::for_reader());
    world.run_for(ms(50));
    for node in 0..2 {
        let at = world.first_time(node, |event| matched(event).is_some()).unwrap();
        assert!(at.since(start) < ms(2), "{:?}", at.since(start));
    }
}

#[test]
fn the_first_announcements_may_be_lost() {
    let mut world = World::new();
    let end = since_start(world.now) + ms(40);
    world.network.set_default_link(link().loss(Loss::when(move |datagram| datagram.sent_at <= end)));
    world.start();
    world.start();
    world.add_writer(0, 1, "Square", Qos::for_writer());
    world.add_reader(1, 1, "Square", Qos::for_reader());
    world.run_for(ms(60));
    assert!(world.events(0).iter().any(|event| matched(event).is_some()));
    assert!(world.events(1).iter().any(|event| matched(event).is_some()));
}

#[test]
fn many_participants_all_match_despite_loss() {
    let mut world = World::new();
    world.network.set_default_link(link().loss(Loss::random(0.2)));
    for node in 0..12 {
        world.start();
        world.add_writer(node, 1, "Square", Qos::for_writer());
        world.add_reader(node, 1, "Square", Qos::for_reader());
        world.run_for(ms(10));
    }
    world.run_for(Duration::from_secs(15));
    for node in 0..12 {
        let events = world.events(node);
        // Each of its two endpoints with all others, its own included, once.
        assert_eq!(events.iter().filter(|event| matched(event).is_some()).count(), 24, "{node}");
        assert_eq!(world.nodes[node].core.remote_endpoints(), 22);
    }
}

#[test]
fn at_rest_only_announcements_are_sent() {
    let (mut world, ..) = matched_pair();
    world.run_for(ms(2000));
    world.sent.clear();
    world.run_for(Duration::from_secs(12));
    let to_group = world.sent.iter().filter(|datagram| datagram.to == GROUP).count();
    // Two each to the group, and the same by unicast.
    assert_eq!((to_group, world.sent.len()), (4, 8));
}

#[test]
fn unicast_peers_find_and_keep_each_other_when_only_one_knows_the_other() {
    let mut world = World::new();
    world.start_with(|config| config.metatraffic_multicast = None);
    let known = world.nodes[0].address;
    world.start_with(|config| {
        config.metatraffic_multicast = None;
        config.initial_peers = vec![known];
    });
    world.add_writer(0, 1, "Square", Qos::for_writer());
    world.add_reader(1, 1, "Square", Qos::for_reader());
    world.run_for(ms(50));
    assert!(world.events(0).iter().any(|event| matched(event).is_some()));
    assert!(world.events(1).iter().any(|event| matched(event).is_some()));
    world.run_for(Duration::from_secs(300));
    assert_eq!((world.events(0), world.events(1)), (vec![], vec![]));
}

#[test]
fn incompatible_policies_are_reported_on_both_sides_until_they_change() {
    let mut world = World::new();
    world.start();
    world.start();
    let offered = Qos { durability: Durability::Volatile, ..Qos::for_writer() };
    let requested = Qos { durability: Durability::TransientLocal, ..Qos::for_reader() };
    let writer = world.add_writer(0, 1, "Square", offered.clone());
    let reader = world.add_reader(1, 1, "Square", requested);
    world.run_for(ms(50));
    let policies = PolicySet::EMPTY.with(PolicyId::Durability);
    let incompatible = DiscoveryEvent::OfferedIncompatibleQos { writer: writer.entity, reader, policies };
    assert_eq!(world.events(0)[1..], [incompatible]);
    let incompatible = DiscoveryEvent::RequestedIncompatibleQos { reader: reader.entity, writer, policies };
    assert_eq!(world.events(1)[1..], [incompatible]);

    world.add_writer(0, 1, "Square", Qos { durability: Durability::TransientLocal, ..offered.clone() });
    world.run_for(ms(50));
    assert_eq!(
        world.events(0).iter().filter_map(matched).map(|remote| remote.guid).collect::<Vec<_>>(),
        [reader]
    );
    assert_eq!(
        world.events(1).iter().filter_map(matched).map(|remote| remote.guid).collect::<Vec<_>>(),
        [writer]
    );

    world.add_writer(0, 1, "Square", offered);
    world.run_for(ms(50));
    assert_eq!(
        world.events(1),
        [
            DiscoveryEvent::WriterUnmatched { reader: reader.entity, writer },
            DiscoveryEvent::RequestedIncompatibleQos { reader: reader.entity, writer, policies },
        ]
    );
}

/// The events at both ends of a writer and a reader that meet.
fn events_of(offered: Qos, requested: Qos) -> [Vec<DiscoveryEvent>; 2] {
    let mut world = World::new();
    world.start();
    world.start();
    world.add_writer(0, 1, "Square", offered);
    world.add_reader(1, 1, "Square", requested);
    world.run_for(ms(50));
    [0, 1].map(|node| world.events(node).into_iter().skip(1).collect())
}

#[test]
fn policies_that_endpoints_do_not_enforce_are_announced_and_matched() {
    let check = |change: fn(&mut Qos, &mut Qos), expected: Option<PolicyId>| {
        let (mut offered, mut requested) = (Qos::for_writer(), Qos::for_reader());
        change(&mut offered, &mut requested);
        for events in events_of(offered, requested) {
            match (&events[..], expected) {
                ([event], None) => assert!(matched(event).is_some(), "{event:?}"),
                (
                    [
                        DiscoveryEvent::OfferedIncompatibleQos { policies, .. }
                        | DiscoveryEvent::RequestedIncompatibleQos { policies, .. },
                    ],
                    Some(expected),
                ) => assert_eq!(*policies, PolicySet::EMPTY.with(expected)),
                other => panic!("{other:?}"),
            }
        }
    };
    check(|_, requested| requested.deadline = ms(100), Some(PolicyId::Deadline));
    check(|offered, _| offered.deadline = ms(100), None);
    check(|offered, _| offered.ownership = Ownership::Exclusive, Some(PolicyId::Ownership));
    check(|_, requested| requested.ownership = Ownership::Exclusive, Some(PolicyId::Ownership));
    check(
        |offered, requested| {
            (offered.ownership, requested.ownership) = (Ownership::Exclusive, Ownership::Exclusive);
        },
        None,
    );
    check(|offered, _| (offered.ownership_strength, offered.lifespan) = (3, ms(100)), None);
    check(
        |_, requested| requested.destination_order = DestinationOrder::BySourceTimestamp,
        Some(PolicyId::DestinationOrder),
    );
    check(|offered, _| offered.destination_order = DestinationOrder::BySourceTimestamp, None);
    check(|_, requested| requested.presentation.coherent_access = true, Some(PolicyId::Presentation));
    check(|offered, _| offered.presentation.scope = PresentationScope::Group, None);
}

#[test]
fn another_partition_unmatches_in_silence() {
    let (mut world, writer, reader) = matched_pair();
    let elsewhere = Qos { partition: vec!["elsewhere".to_owned()], ..Qos::for_reader() };
    world.add_reader(1, 1, "Square", elsewhere);
    world.run_for(ms(50));
    assert_eq!(world.events(0), [DiscoveryEvent::ReaderUnmatched { writer: writer.entity, reader }]);
    assert_eq!(world.events(1), [DiscoveryEvent::WriterUnmatched { reader: reader.entity, writer }]);
    world.add_writer(0, 1, "Square", Qos { partition: vec!["else*".to_owned()], ..Qos::for_writer() });
    world.run_for(ms(50));
    assert_eq!(world.events(0).iter().filter_map(matched).count(), 1);
    assert_eq!(world.events(1).iter().filter_map(matched).count(), 1);
}

#[test]
fn a_change_that_still_fits_is_told_as_a_change() {
    let (mut world, writer, reader) = matched_pair();
    world.add_writer(0, 1, "Square", Qos { ownership_strength: 3, ..Qos::for_writer() });
    world.run_for(ms(50));
    let events = world.events(1);
    let [DiscoveryEvent::WriterChanged { reader: ours, writer: remote }] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!((*ours, remote.guid, remote.qos.ownership_strength), (reader.entity, writer, 3));
    assert_eq!(world.events(0), []);
    // The same again is not a change.
    world.add_writer(0, 1, "Square", Qos { ownership_strength: 3, ..Qos::for_writer() });
    world.run_for(ms(50));
    assert_eq!(world.events(1), []);
}

#[test]
fn topic_type_and_key_must_agree() {
    let mut world = World::new();
    world.start();
    world.start();
    world.add_writer(0, 1, "Square", Qos::for_writer());
    world.add_reader(1, 1, "Circle", Qos::for_reader());
    let now = world.now;
    let keyed = endpoint(EntityId::user_reader(2, true), "Square", Qos::for_reader());
    world.nodes[1].core.add_reader(now, keyed).unwrap();
    let mut other_type = endpoint(EntityId::user_reader(3, false), "Square", Qos::for_reader());
    other_type.type_name = "Other".to_owned();
    world.nodes[1].core.add_reader(now, other_type).unwrap();
    world.run_for(ms(50));
    let entities = [EntityId::user_reader(2, true), EntityId::user_reader(3, false)];
    let writer = EntityId::user_writer(1, false);
    let inconsistent = |local, node, entity, type_name: &str, difference| DiscoveryEvent::InconsistentTopic {
        local,
        other: Guid::new(prefix(node), entity),
        type_name: Arc::new(type_name.to_owned()),
        difference,
    };
    let events = world.events(0);
    assert_eq!(
        events[1..],
        [
            inconsistent(writer, 1, entities[0], "Type", TypeDifference::Key),
            inconsistent(writer, 1, entities[1], "Other", TypeDifference::Name),
        ]
    );
    let events = world.events(1);
    assert_eq!(
        events[1..],
        [
            inconsistent(entities[0], 0, writer, "Type", TypeDifference::Key),
            inconsistent(entities[1], 0, writer, "Type", TypeDifference::Name),
        ]
    );
    assert_eq!(world.nodes[0].core.remote_endpoints(), 3);
}

#[test]
fn texts_of_remote_endpoints_are_bounded_together() {
    let mut world = World::new();
    world.start_with(|config| config.limits.texts_per_participant_bytes = 300);
    world.start();
    for key in 1..=3 {
        let partition = vec!["p".repeat(100 - size_of::<String>())];
        world.add_writer(1, key, "Square", Qos { partition, ..Qos::for_writer() });
    }
    world.run_for(ms(50));
    // Each takes 110 bytes with its names, and a participant may take a quarter of the limit.
    assert_eq!(world.nodes[0].core.remote_endpoints(), 2);
    assert_eq!(world.nodes[0].core.counters().endpoints_over_limit, 1);
    let now = world.now;
    world.nodes[1].core.remove_writer(now, EntityId::user_writer(1, false));
    world.add_writer(1, 4, "Square", Qos::for_writer());
    world.run_for(ms(50));
    // There is room for the new one, whose texts are short, and for the one that was refused.
    assert_eq!(world.nodes[0].core.remote_endpoints(), 3);
}

/// Returns how many announcements of endpoints a participant has sent.
fn announcements_sent(world: &World, node: usize) -> usize {
    let writers = [EntityId::SEDP_PUBLICATIONS_WRITER, EntityId::SEDP_SUBSCRIPTIONS_WRITER];
    let sent = world.sent.iter().filter(|sent| sent.from == world.nodes[node].address);
    let submessages = sent.flat_map(|sent| Message::parse(&sent.bytes).unwrap().submessages());
    let data = submessages.filter(
        |submessage| matches!(submessage, Ok(Submessage::Data(data)) if writers.contains(&data.writer)),
    );
    data.count()
}

#[test]
fn announcements_that_are_always_directed_do_not_restart_the_exchange() {
    let (mut world, ..) = matched_pair();
    let address = world.nodes[1].address;
    // As by an engine that also sends its announcement to each participant, periodically.
    world.rewrite = Box::new(move |mut datagram| {
        let is_announcement = Message::parse(&datagram.bytes).unwrap().submessages().any(|submessage| {
            matches!(submessage, Ok(Submessage::Data(data)) if data.writer == EntityId::SPDP_WRITER)
        });
        if datagram.from == address && is_announcement {
            let mut directed = datagram.bytes[..20].to_vec();
            push(&mut directed, &InfoDestination { prefix: prefix(0) });
            directed.extend_from_slice(&datagram.bytes[20..]);
            datagram.bytes = directed;
        }
        vec![datagram]
    });
    world.run_for(Duration::from_secs(5));
    let before = announcements_sent(&world, 0);
    world.run_for(Duration::from_secs(60));
    assert_eq!(announcements_sent(&world, 0), before);
    assert_eq!(world.events(0), []);
}

#[test]
fn endpoints_of_one_participant_match_each_other() {
    let mut world = World::new();
    world.start();
    let writer = world.add_writer(0, 1, "Square", Qos::for_writer());
    let reader = world.add_reader(0, 1, "Square", Qos::for_reader());
    let events = world.events(0);
    assert_eq!(events.len(), 2);
    let guids: Vec<_> = events.iter().filter_map(matched).map(|remote| remote.guid).collect();
    assert!(guids.contains(&writer) && guids.contains(&reader));
    assert_eq!(events.iter().find_map(matched).unwrap().destinations[..], config(0).default_unicast[..]);
    let now = world.now;
    world.nodes[0].core.remove_writer(now, writer.entity);
    assert_eq!(world.events(0), [DiscoveryEvent::WriterUnmatched { reader: reader.entity, writer }]);
    world.add_writer(0, 1, "Square", Qos { reliability: Reliability::BestEffort, ..Qos::for_writer() });
    assert_eq!(world.events(0).len(), 2);
}

#[test]
fn a_removed_endpoint_is_unmatched_at_once() {
    let (mut world, writer, reader) = matched_pair();
    let now = world.now;
    world.nodes[1].core.remove_reader(now, reader.entity);
    world.run_for(ms(1));
    assert_eq!(world.events(0), [DiscoveryEvent::ReaderUnmatched { writer: writer.entity, reader }]);
    assert_eq!(world.events(1), []);
    assert_eq!(world.nodes[0].core.remote_endpoints(), 0);
}

/// Other engines may name it by KEY_HASH alone (RTPS 2.5, 9.6.4.8).
#[test]
fn an_endpoint_is_unmatched_by_a_disposal_without_a_payload() {
    let (mut world, writer, reader) = matched_pair();
    let mut inline_qos = Vec::new();
    let mut list = ParameterListWriter::new(&mut inline_qos);
    list.guid(ParameterId::KEY_HASH, reader);
    list.bytes4(ParameterId::STATUS_INFO, [0, 0, 0, 3]);
    list.finish();
    let mut bytes = Vec::new();
    push(&mut bytes, &Header { version: ProtocolVersion::V2_5, vendor: VendorId::RTI, prefix: prefix(1) });
    let header = DataHeader {
        reader: EntityId::UNKNOWN,
        writer: EntityId::SEDP_SUBSCRIPTIONS_WRITER,
        sequence_number: SequenceNumber(2),
        inline_qos_len: inline_qos.len() as u32,
        payload_len: 0,
        is_key: true,
    };
    push(&mut bytes, &header);
    bytes.extend_from_slice(&inline_qos);
    let (from, to) = (world.nodes[1].address, world.nodes[0].address);
    world.send(Datagram { from, to, bytes });
    world.run_for(ms(1));
    assert_eq!(world.events(0), [DiscoveryEvent::ReaderUnmatched { writer: writer.entity, reader }]);
    assert_eq!(world.nodes[0].core.counters().refused_announcements, 0);
}

#[test]
fn a_participant_that_closes_is_gone_at_once() {
    let (mut world, writer, reader) = matched_pair();
    let now = world.now;
    world.nodes[1].core.close(now);
    world.run_for(ms(1));
    assert_eq!(
        world.events(0),
        [
            DiscoveryEvent::ReaderUnmatched { writer: writer.entity, reader },
            DiscoveryEvent::ParticipantLost { prefix: prefix(1) },
        ]
    );
    assert_eq!(world.nodes[1].core.next_timeout(), None);
    world.sent.clear();
    world.run_for(Duration::from_secs(5));
    assert!(world.sent.iter().all(|datagram| datagram.from == world.nodes[0].address));
}

#[test]
fn a_participant_that_falls_silent_is_lost_when_its_lease_ends() {
    let (mut world, writer, reader) = matched_pair();
    world.run_for(ms(1500));
    let last_heard = world.now;
    world.kill(1);
    world.run_for(Duration::from_secs(19));
    assert_eq!(world.events(0), []);
    world.run_for(Duration::from_secs(1));
    assert_eq!(
        world.events(0),
        [
            DiscoveryEvent::ReaderUnmatched { writer: writer.entity, reader },
            DiscoveryEvent::ParticipantLost { prefix: prefix(1) },
        ]
    );
    assert_eq!(world.nodes[0].core.counters().leases_expired, 1);
    assert!(world.now.since(last_heard) <= Duration::from_secs(20));
}

#[test]
fn a_restarted_participant_is_a_new_one_and_the_old_one_ends_with_its_lease() {
    let (mut world, writer, reader) = matched_pair();
    world.kill(1);
    let address = world.nodes[1].address;
    world.run_for(ms(500));
    let restarted = world.start_with(|config| {
        config.metatraffic_unicast = vec![address];
    });
    let again = world.add_reader(restarted, 1, "Square", Qos::for_reader());
    world.run_for(ms(50));
    assert_eq!(world.events(0).iter().find_map(matched).map(|remote| remote.guid), Some(again));
    world.run_for(Duration::from_secs(25));
    assert_eq!(
        world.events(0),
        [
            DiscoveryEvent::ReaderUnmatched { writer: writer.entity, reader },
            DiscoveryEvent::ParticipantLost { prefix: prefix(1) },
        ]
    );
}

#[test]
fn one_that_lost_the_other_while_it_was_not_lost_itself_finds_it_again() {
    let (mut world, writer, reader) = matched_pair();
    let [one, other] = [0, 1].map(|node: usize| *world.nodes[node].address.ip());
    world.run_for(ms(1500));
    world.network.partition().cut_one_way(one, other);
    world.run_for(Duration::from_secs(25));
    assert_eq!(
        world.events(1),
        [
            DiscoveryEvent::WriterUnmatched { reader: reader.entity, writer },
            DiscoveryEvent::ParticipantLost { prefix: prefix(0) },
        ]
    );
    assert_eq!(world.events(0), []);
    world.network.partition().heal();
    world.run_for(Duration::from_secs(7));
    assert_eq!(world.events(1).iter().find_map(matched).map(|remote| remote.guid), Some(writer));
    assert_eq!(world.events(0), []);
}

#[test]
fn a_participant_that_moves_is_followed() {
    let (mut world, writer, reader) = matched_pair();
    // The same participant announces itself from another address.
    world.kill(1);
    let moved = world.start_with(|config| config.guid_prefix = prefix(1));
    let again = Guid::new(prefix(1), reader.entity);
    world.add_reader(moved, 1, "Square", Qos::for_reader());
    // A second without an answer from the known address, and the next announcement.
    world.run_for(ms(1500));
    let events = world.events(0);
    let [DiscoveryEvent::ReaderChanged { writer: ours, reader: remote }] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!((*ours, remote.guid), (writer.entity, again));
    assert_eq!(remote.destinations[..], config(moved).default_unicast[..]);
}

#[test]
fn other_domains_are_ignored() {
    let mut world = World::new();
    world.start();
    // On the ports of the first domain nevertheless.
    world.start_with(|config| config.domain_id = 1);
    world.run_for(ms(500));
    assert_eq!((world.events(0), world.events(1)), (vec![], vec![]));
    assert!(world.nodes[0].core.counters().other_domain > 0);
    assert_eq!(world.nodes[0].core.remote_participants(), 0);
}

#[test]
fn what_we_said_ourselves_is_ignored() {
    let mut world = World::new();
    world.start();
    world.run_for(ms(500));
    assert_eq!(world.nodes[0].core.remote_participants(), 0);
    assert_eq!(world.nodes[0].core.counters().own_messages, 3);
}

#[test]
fn the_same_calls_give_the_same_bytes() {
    let run = || {
        let (mut world, ..) = matched_pair();
        world.run_for(Duration::from_secs(30));
        world.sent
    };
    assert_eq!(run(), run());
}

#[test]
fn a_local_endpoint_that_no_peer_could_use_is_refused() {
    let mut core = ParticipantCore::new(config(0), Time::ZERO);
    let writer = EntityId::user_writer(1, false);
    let mut check = |endpoint, expected| assert_eq!(core.add_writer(Time::ZERO, endpoint), Err(expected));
    let reader = EntityId::user_reader(1, false);
    check(endpoint(reader, "t", Qos::for_reader()), LocalEndpointError::WrongKind(reader));
    let spdp = EntityId::SPDP_WRITER;
    check(endpoint(spdp, "t", Qos::for_reader()), LocalEndpointError::WrongKind(spdp));
    check(
        endpoint(writer, &"t".repeat(257), Qos::for_writer()),
        LocalEndpointError::TooLong { what: "topic name", bytes: 257, max: 256 },
    );
    core.close(Time::ZERO);
    let closed = core.add_writer(Time::ZERO, endpoint(writer, "t", Qos::for_writer()));
    assert_eq!(closed, Err(LocalEndpointError::Closed));
}

#[test]
fn endpoints_that_come_and_go_leave_nothing_behind() {
    let (mut world, writer, _) = matched_pair();
    let mut memory = 0;
    for round in 0..20_000 {
        world.add_writer(0, 2 + round, "Circle", Qos::for_writer());
        let now = world.now;
        world.nodes[0].core.remove_writer(now, EntityId::user_writer(2 + round, false));
        if round % 64 == 0 {
            world.run_for(ms(1));
            world.sent.clear();
        }
        if round == 4_000 {
            memory = world.nodes[0].core.announcement_memory();
        }
    }
    assert!(memory > 0);
    let later = world.nodes[0].core.announcement_memory();
    assert!(later <= 2 * memory, "{memory} bytes after 4000 endpoints, {later} after 20000");
    world.run_for(ms(100));
    assert_eq!(world.nodes[1].core.remote_endpoints(), 1);
    // A late participant discovers only what still exists.
    let late = world.start();
    world.add_reader(late, 1, "Square", Qos::for_reader());
    world.run_for(ms(200));
    let found: Vec<_> = world.events(late).iter().filter_map(matched).map(|remote| remote.guid).collect();
    assert_eq!(found, [writer]);
    assert_eq!(world.nodes[late].core.remote_endpoints(), 2);
}
