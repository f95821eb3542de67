//! What the application ignores, in virtual time (DDS 1.4, 2.2.2.2.1.14 to 2.2.2.2.1.17).

use core::time::Duration;

use weir_rtps::config::IGNORED_MAX;
use weir_rtps::discovery_event::DiscoveryEvent;
use weir_rtps::qos::Qos;
use weir_wire::{EntityId, Guid};

use super::ms;
use super::world::{World, matched, prefix};

/// Two participants: the first has a reader of two topics each, the second a writer of each.
fn world() -> (World, [Guid; 2], [Guid; 2]) {
    let mut world = World::new();
    world.start();
    world.start();
    let topics = [(1, "Square"), (2, "Circle")];
    let readers = topics.map(|(key, topic)| world.add_reader(0, key, topic, Qos::for_reader()));
    let writers = topics.map(|(key, topic)| world.add_writer(1, key, topic, Qos::for_writer()));
    world.run_for(ms(50));
    assert_eq!(matches(&mut world, 0), writers);
    assert_eq!(matches(&mut world, 1), readers);
    (world, readers, writers)
}

/// The endpoints that were matched since the last call.
fn matches(world: &mut World, node: usize) -> Vec<Guid> {
    let events = world.events(node);
    let mut guids: Vec<_> = events.iter().filter_map(matched).map(|remote| remote.guid).collect();
    guids.sort_unstable();
    guids
}

fn unmatched(reader: Guid, writer: Guid) -> DiscoveryEvent {
    DiscoveryEvent::WriterUnmatched { reader: reader.entity, writer }
}

#[test]
fn an_ignored_participant_is_lost_at_once_and_never_found_again() {
    let (mut world, readers, writers) = world();
    let now = world.now;
    assert!(world.nodes[0].core.ignore_participant(now, prefix(1)));
    let events = world.events(0);
    assert_eq!(events.len(), 3, "{events:?}");
    for event in [
        unmatched(readers[0], writers[0]),
        unmatched(readers[1], writers[1]),
        DiscoveryEvent::ParticipantLost { prefix: prefix(1) },
    ] {
        assert!(events.contains(&event), "{events:?}");
    }
    assert_eq!(world.nodes[0].core.discovered_participants().count(), 0);
    // It announces itself, and endpoints that come and change.
    world.add_writer(1, 3, "Square", Qos::for_writer());
    let qos = Qos { user_data: vec![1], ..Qos::for_writer() };
    world.add_writer(1, 1, "Square", qos);
    world.run_for(Duration::from_secs(120));
    assert_eq!(world.events(0), []);
    assert_eq!(world.nodes[0].core.discovered_participants().count(), 0);
    // Others are found.
    world.start();
    let writer = world.add_writer(2, 1, "Square", Qos::for_writer());
    world.run_for(ms(50));
    assert_eq!(matches(&mut world, 0), [writer]);
}

#[test]
fn a_participant_may_be_ignored_before_it_is_found() {
    let mut world = World::new();
    world.start();
    let now = world.now;
    assert!(world.nodes[0].core.ignore_participant(now, prefix(1)));
    world.add_reader(0, 1, "Square", Qos::for_reader());
    world.start();
    world.add_writer(1, 1, "Square", Qos::for_writer());
    world.run_for(Duration::from_secs(10));
    assert_eq!(world.events(0), []);
}

#[test]
fn the_endpoints_of_a_participant_that_ignores_itself_do_not_match_each_other() {
    let (mut world, readers, _) = world();
    let own = world.add_writer(0, 9, "Square", Qos::for_writer());
    world.run_for(ms(50));
    // Both ends of the match are here.
    assert_eq!(matches(&mut world, 0), [readers[0], own]);
    let now = world.now;
    assert!(world.nodes[0].core.ignore_participant(now, prefix(0)));
    let events = world.events(0);
    let gone = DiscoveryEvent::ReaderUnmatched { writer: own.entity, reader: readers[0] };
    assert!(events.len() == 2 && events.contains(&gone), "{events:?}");
    assert!(events.contains(&unmatched(readers[0], own)), "{events:?}");
    // Endpoints of others still match.
    world.add_reader(0, 8, "Square", Qos::for_reader());
    world.add_writer(1, 8, "Square", Qos::for_writer());
    world.run_for(ms(50));
    assert_eq!(matches(&mut world, 0).iter().filter(|guid| guid.prefix == prefix(0)).count(), 0);
}

#[test]
fn an_ignored_writer_does_not_match_whatever_it_announces_and_others_stay() {
    let (mut world, readers, writers) = world();
    assert!(world.nodes[0].core.ignore_endpoint(writers[0]));
    assert_eq!(world.events(0), [unmatched(readers[0], writers[0])]);
    assert!(world.nodes[0].core.discovered_endpoint(writers[0]).is_none());
    assert!(world.nodes[0].core.discovered_endpoint(writers[1]).is_some());
    // It changes, and a further reader of its topic is made.
    world.add_writer(1, 1, "Square", Qos { user_data: vec![1], ..Qos::for_writer() });
    world.add_reader(0, 3, "Square", Qos::for_reader());
    world.run_for(Duration::from_secs(10));
    assert_eq!(world.events(0), []);
    let another = world.add_writer(1, 3, "Square", Qos::for_writer());
    world.run_for(ms(50));
    assert_eq!(matches(&mut world, 0), [another, another]);
}

#[test]
fn an_ignored_reader_does_not_match_the_writers_here_and_matches_those_elsewhere() {
    let (mut world, readers, writers) = world();
    assert!(world.nodes[1].core.ignore_endpoint(readers[0]));
    let gone = DiscoveryEvent::ReaderUnmatched { writer: writers[0].entity, reader: readers[0] };
    assert_eq!(world.events(1), [gone]);
    world.start();
    let other = world.add_writer(2, 1, "Square", Qos::for_writer());
    world.run_for(ms(50));
    assert_eq!(matches(&mut world, 0), [other]);
    assert_eq!(matches(&mut world, 2), [readers[0]]);
    assert_eq!(matches(&mut world, 1), []);
}

#[test]
fn an_ignored_topic_separates_from_others_and_not_among_own_endpoints() {
    let (mut world, readers, writers) = world();
    assert!(world.nodes[0].core.ignore_topic("Square"));
    assert_eq!(world.events(0), [unmatched(readers[0], writers[0])]);
    assert!(world.nodes[0].core.discovered_endpoint(writers[0]).is_none());
    world.add_writer(1, 3, "Square", Qos::for_writer());
    let circle = world.add_writer(1, 4, "Circle", Qos::for_writer());
    let own = world.add_writer(0, 5, "Square", Qos::for_writer());
    world.run_for(ms(50));
    assert_eq!(matches(&mut world, 0), [readers[0], own, circle]);
}

#[test]
fn what_is_ignored_is_bounded_and_what_is_ignored_stays_so() {
    let mut world = World::new();
    world.start();
    let core = &mut world.nodes[0].core;
    let nth = |number: usize| Guid::new(prefix(number + 100), EntityId::user_writer(1, false));
    assert!((0..IGNORED_MAX).all(|number| core.ignore_endpoint(nth(number))));
    let now = world.now;
    let core = &mut world.nodes[0].core;
    assert!(!core.ignore_endpoint(nth(IGNORED_MAX)));
    assert!(!core.ignore_participant(now, prefix(1)));
    assert!(!core.ignore_topic("Square"));
    // What was refused is not ignored.
    world.add_reader(0, 1, "Square", Qos::for_reader());
    world.start();
    let writer = world.add_writer(1, 1, "Square", Qos::for_writer());
    world.run_for(ms(50));
    assert_eq!(matches(&mut world, 0), [writer]);
}
