//! Peers whose endpoints are known beforehand.

use core::net::Ipv4Addr;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use weir_rtps::discovery_event::{DiscoveryEvent, TypeDifference};
use weir_rtps::participant::ParticipantConfig;
use weir_rtps::qos::{Durability, PolicyId, PolicySet, Qos, Reliability};
use weir_rtps::spdp::builtin_endpoints;
use weir_rtps::static_peers::{StaticDifference, StaticEndpoint, StaticPeer, StaticPeers};
use weir_wire::{EntityId, Guid};

use super::ms;
use super::world::{Datagram, World, endpoint, matched, prefix};

fn known(entity: EntityId, topic: &str, qos: Qos) -> StaticEndpoint {
    StaticEndpoint { entity, topic: topic.to_owned(), type_name: "Type".to_owned(), qos: Arc::new(qos) }
}

/// What is known of the peer `arm`.
fn peers(hosts: &[Ipv4Addr], endpoints: Vec<StaticEndpoint>) -> StaticPeers {
    let peer = StaticPeer { hosts: hosts.to_vec(), endpoints };
    Arc::new(BTreeMap::from([("arm".to_owned(), peer)]))
}

fn named(config: &mut ParticipantConfig) {
    config.entity_name = Some("arm".to_owned());
}

/// Node 0 knows a reader of the peer `arm`, node 1, and has a writer for it.
fn world_with_known_reader(reader: EntityId, qos: Qos) -> (World, Guid) {
    let mut world = World::new();
    let peers = peers(&[], vec![known(reader, "Square", qos)]);
    world.start_with(|config| config.static_peers = peers);
    let writer = world.add_writer(0, 1, "Square", Qos::for_writer());
    world.start_with(named);
    (world, writer)
}

fn matches(events: &[DiscoveryEvent]) -> Vec<Guid> {
    events.iter().filter_map(matched).map(|remote| remote.guid).collect()
}

fn reader(key: u32) -> EntityId {
    EntityId::user_reader(key, false)
}

#[test]
fn a_known_endpoint_matches_without_its_announcement() {
    let (mut world, _) = world_with_known_reader(reader(7), Qos::for_reader());
    let start = world.now;
    // The peer never announces an endpoint.
    world.run_for(ms(50));
    let at = world.first_time(0, |event| matched(event).is_some()).unwrap();
    assert!(at.since(start) < ms(5), "{:?}", at.since(start));
    assert_eq!(matches(&world.events(0)), [Guid::new(prefix(1), reader(7))]);
    world.run_for(Duration::from_secs(60));
    assert_eq!(world.events(0), []);
    // A peer that is lost and returns matches again.
    world.kill(1);
    world.run_for(Duration::from_secs(30));
    let events = world.events(0);
    assert!(matches!(
        events[..],
        [DiscoveryEvent::ReaderUnmatched { .. }, DiscoveryEvent::ParticipantLost { .. }]
    ));
    world.start_with(named);
    world.run_for(ms(50));
    assert_eq!(matches(&world.events(0)), [Guid::new(prefix(2), reader(7))]);
}

#[test]
fn an_announcement_that_agrees_changes_nothing_and_others_match_by_their_announcements() {
    let reliable = Qos { reliability: Reliability::Reliable, ..Qos::for_reader() };
    let (mut world, writer) = world_with_known_reader(reader(7), reliable.clone());
    world.add_reader(1, 7, "Square", reliable);
    world.add_reader(1, 8, "Square", Qos::for_reader());
    // A participant of which nothing is known.
    world.start();
    world.add_reader(2, 7, "Square", Qos::for_reader());
    world.run_for(ms(100));
    let mut found = matches(&world.events(0));
    found.sort();
    let expected = [(1, 7), (1, 8), (2, 7)].map(|(node, key)| Guid::new(prefix(node), reader(key)));
    assert_eq!(found, expected);
    // Our own endpoints are announced as always.
    for node in [1, 2] {
        assert!(matches(&world.events(node)).contains(&writer));
    }
    let core = &world.nodes[0].core;
    assert_eq!((core.counters().static_differences, core.static_differences()), (0, &[][..]));
    // It is gone when the peer says so.
    let now = world.now;
    world.nodes[1].core.remove_reader(now, reader(7));
    world.run_for(Duration::from_secs(20));
    let unmatched = DiscoveryEvent::ReaderUnmatched { writer: writer.entity, reader: expected[0] };
    assert_eq!(world.events(0), [unmatched]);
}

#[test]
fn the_announcement_of_a_peer_counts_where_it_differs_from_what_was_known() {
    let (mut world, writer) = world_with_known_reader(reader(7), Qos::for_reader());
    world.run_for(ms(50));
    assert_eq!(matches(&world.events(0)), [Guid::new(prefix(1), reader(7))]);
    let requested =
        Qos { reliability: Reliability::Reliable, durability: Durability::Persistent, ..Qos::for_reader() };
    let guid = world.add_reader(1, 7, "Square", requested);
    world.run_for(ms(50));
    let durability = PolicySet::EMPTY.with(PolicyId::Durability);
    assert_eq!(
        world.events(0),
        [
            DiscoveryEvent::ReaderUnmatched { writer: writer.entity, reader: guid },
            DiscoveryEvent::OfferedIncompatibleQos {
                writer: writer.entity,
                reader: guid,
                policies: durability
            },
        ]
    );
    let core = &world.nodes[0].core;
    assert_eq!((core.counters().static_differences, core.static_differences().len()), (1, 1));
    let found: StaticDifference = core.static_differences()[0];
    assert_eq!((found.endpoint, found.policies), (guid, durability.with(PolicyId::Reliability)));
    assert!(!found.topic && !found.type_name && !found.key);
    let text = found.to_string();
    assert!(text.ends_with(" announces another RELIABILITY, DURABILITY than was known beforehand"), "{text}");
    // A later change is one of the peer, not a difference.
    world.add_reader(1, 7, "Square", Qos::for_reader());
    world.run_for(ms(50));
    assert_eq!(matches(&world.events(0)), [guid]);
    assert_eq!(world.nodes[0].core.counters().static_differences, 1);
}

#[test]
fn a_peer_with_another_type_or_key_than_known_does_not_match() {
    let (mut world, writer) = world_with_known_reader(reader(7), Qos::for_reader());
    let now = world.now;
    let mut other_type = endpoint(reader(7), "Square", Qos::for_reader());
    other_type.type_name = "Other".to_owned();
    world.nodes[1].core.add_reader(now, other_type).unwrap();
    world.run_for(ms(50));
    let difference = world.nodes[0].core.static_differences()[0];
    assert!(difference.type_name && !difference.topic && !difference.key && difference.policies.is_empty());
    let is_inconsistent = |event: &DiscoveryEvent, expected: TypeDifference| {
        let DiscoveryEvent::InconsistentTopic { difference, .. } = event else { return false };
        *difference == expected
    };
    assert!(world.events(0).iter().any(|event| is_inconsistent(event, TypeDifference::Name)));

    // With a key, the endpoint has another id: the known one does not exist.
    let (mut world, _) = world_with_known_reader(reader(7), Qos::for_reader());
    world.run_for(ms(50));
    world.events(0);
    let now = world.now;
    let keyed = EntityId::user_reader(7, true);
    world.nodes[1].core.add_reader(now, endpoint(keyed, "Square", Qos::for_reader())).unwrap();
    world.run_for(ms(50));
    let events = world.events(0);
    let unmatched =
        DiscoveryEvent::ReaderUnmatched { writer: writer.entity, reader: Guid::new(prefix(1), reader(7)) };
    assert_eq!(events[0], unmatched);
    assert!(is_inconsistent(&events[1], TypeDifference::Key));
    assert!(world.nodes[0].core.static_differences()[0].key);
    assert_eq!(world.nodes[0].core.remote_endpoints(), 1);
}

#[test]
fn a_peer_is_known_by_its_name_as_it_is_now() {
    let mut world = World::new();
    let peers = peers(&[], vec![known(reader(7), "Square", Qos::for_reader())]);
    world.start_with(|config| config.static_peers = peers);
    world.add_writer(0, 1, "Square", Qos::for_writer());
    world.start_with(|config| config.entity_name = Some("leg".to_owned()));
    world.run_for(ms(50));
    assert_eq!(matches(&world.events(0)), []);
    // Its announcements have the known name from now on.
    world.rewrite = Box::new(|mut datagram| {
        replace(&mut datagram, b"leg\0", b"arm\0");
        vec![datagram]
    });
    world.run_for(Duration::from_secs(10));
    assert_eq!(matches(&world.events(0)), [Guid::new(prefix(1), reader(7))]);
    world.rewrite = Box::new(|datagram| vec![datagram]);
    world.run_for(Duration::from_secs(10));
    assert!(matches!(world.events(0)[..], [DiscoveryEvent::ReaderUnmatched { .. }]));
}

fn replace(datagram: &mut Datagram, from: &[u8], to: &[u8]) {
    if let Some(at) = datagram.bytes.windows(from.len()).position(|window| window == from) {
        datagram.bytes[at..at + to.len()].copy_from_slice(to);
    }
}

/// A peer without SEDP, of which these hosts are known. Returns what node 0 sees of it.
fn without_sedp(hosts: &[Ipv4Addr]) -> World {
    let mut world = World::new();
    let peers = peers(hosts, vec![known(reader(7), "Square", Qos::for_reader())]);
    world.start_with(|config| config.static_peers = peers);
    world.add_writer(0, 1, "Square", Qos::for_writer());
    world.start_with(named);
    let peer = world.nodes[1].address;
    world.rewrite = Box::new(move |mut datagram| {
        if datagram.from != peer {
            return vec![datagram];
        }
        let set = |value: u32| [&[0x58, 0, 4, 0][..], &value.to_le_bytes()].concat();
        let only_spdp = builtin_endpoints::PARTICIPANT_ANNOUNCER | builtin_endpoints::PARTICIPANT_DETECTOR;
        let is_announcement = datagram.bytes.windows(8).any(|bytes| bytes == set(builtin_endpoints::WEIR));
        replace(&mut datagram, &set(builtin_endpoints::WEIR), &set(only_spdp));
        if is_announcement { vec![datagram] } else { Vec::new() }
    });
    world.run_for(Duration::from_secs(10));
    world
}

#[test]
fn a_peer_without_endpoint_discovery_matches_only_at_a_known_host() {
    let mut world = without_sedp(&[]);
    let host = *world.nodes[1].address.ip();
    assert_eq!(world.events(0), []);
    assert!(world.nodes[0].core.counters().static_peers_refused > 0);

    let mut world = without_sedp(&[Ipv4Addr::new(10, 9, 9, 9)]);
    assert_eq!(world.events(0), []);

    let mut world = without_sedp(&[host]);
    assert_eq!(matches(&world.events(0)), [Guid::new(prefix(1), reader(7))]);
    assert_eq!(world.nodes[0].core.counters().static_peers_refused, 0);
    world.run_for(Duration::from_secs(300));
    assert_eq!(world.events(0), [], "it stays matched while it announces itself");
}
