//! Policies and user data that change while endpoints are matched (DDS 1.4, 2.2.3, column "Changeable").

use core::time::Duration;

use weir_rtps::discovery_event::DiscoveryEvent;
use weir_rtps::qos::{Liveliness, LivelinessKind, PolicyId, PolicySet, Qos};
use weir_wire::Guid;

use super::ms;
use super::world::{World, matched, prefix};

/// Two participants, with a writer at the first and a reader at the second that are matched.
fn pair(offered: Qos, requested: Qos) -> (World, Guid, Guid) {
    let mut world = World::new();
    world.start();
    world.start();
    let writer = world.add_writer(0, 1, "Square", offered);
    let reader = world.add_reader(1, 1, "Square", requested);
    world.run_for(ms(50));
    for node in [0, 1] {
        let events = world.events(node);
        assert!(events.iter().any(|event| matched(event).is_some()), "{events:?}");
    }
    (world, writer, reader)
}

/// Changes an endpoint's policies, and returns what both participants report.
fn change(world: &mut World, of: Guid, change: impl FnOnce(&mut Qos)) -> [Vec<DiscoveryEvent>; 2] {
    let node = [0, 1].into_iter().find(|node| prefix(*node) == of.prefix).unwrap();
    let now = world.now;
    world.nodes[node].core.change_qos(now, of.entity, change).unwrap();
    world.run_for(ms(50));
    [0, 1].map(|node| world.events(node))
}

#[test]
fn another_partition_ends_a_match_and_begins_it_at_either_end() {
    let (mut world, writer, reader) = pair(Qos::for_writer(), Qos::for_reader());
    let unmatched = [
        vec![DiscoveryEvent::ReaderUnmatched { writer: writer.entity, reader }],
        vec![DiscoveryEvent::WriterUnmatched { reader: reader.entity, writer }],
    ];
    assert_eq!(change(&mut world, writer, |qos| qos.partition = vec!["left".to_owned()]), unmatched);
    let events = change(&mut world, reader, |qos| qos.partition = vec!["l*".to_owned()]);
    assert!(events.iter().all(|events| events.len() == 1 && matched(&events[0]).is_some()), "{events:?}");
    assert_eq!(change(&mut world, reader, |qos| qos.partition = vec!["r*".to_owned()]), unmatched);
    let events = change(&mut world, writer, |qos| qos.partition = vec!["x".to_owned(), "right".to_owned()]);
    assert!(events.iter().all(|events| events.len() == 1 && matched(&events[0]).is_some()), "{events:?}");
}

#[test]
fn a_deadline_that_does_not_fit_any_more_ends_the_match_and_is_named() {
    let offered = Qos { deadline: ms(10), ..Qos::for_writer() };
    let requested = Qos { deadline: ms(20), ..Qos::for_reader() };
    let (mut world, writer, reader) = pair(offered, requested);
    let policies = PolicySet::EMPTY.with(PolicyId::Deadline);
    let misfit = [
        vec![
            DiscoveryEvent::ReaderUnmatched { writer: writer.entity, reader },
            DiscoveryEvent::OfferedIncompatibleQos { writer: writer.entity, reader, policies },
        ],
        vec![
            DiscoveryEvent::WriterUnmatched { reader: reader.entity, writer },
            DiscoveryEvent::RequestedIncompatibleQos { reader: reader.entity, writer, policies },
        ],
    ];
    assert_eq!(change(&mut world, writer, |qos| qos.deadline = ms(21)), misfit);
    let events = change(&mut world, reader, |qos| qos.deadline = ms(21));
    assert!(events.iter().all(|events| events.len() == 1 && matched(&events[0]).is_some()), "{events:?}");
    assert_eq!(change(&mut world, reader, |qos| qos.deadline = ms(20)), misfit);
}

#[test]
fn strength_lifespan_and_data_of_a_matched_writer_are_news_for_its_readers() {
    let (mut world, writer, _) = pair(Qos::for_writer(), Qos::for_reader());
    let [ours, theirs] = change(&mut world, writer, |qos| {
        (qos.ownership_strength, qos.lifespan) = (7, ms(3));
        (qos.user_data, qos.topic_data, qos.group_data) = (vec![1], vec![2], vec![3]);
    });
    assert_eq!(ours, []);
    let [DiscoveryEvent::WriterChanged { writer: seen, .. }] = &theirs[..] else { panic!("{theirs:?}") };
    let qos = &seen.qos;
    assert_eq!((seen.guid, qos.ownership_strength, qos.lifespan), (writer, 7, ms(3)));
    assert_eq!((&qos.user_data, &qos.topic_data, &qos.group_data), (&vec![1], &vec![2], &vec![3]));
}

#[test]
fn user_data_of_a_matched_reader_is_news_for_its_writers() {
    let (mut world, _, reader) = pair(Qos::for_writer(), Qos::for_reader());
    let [ours, theirs] = change(&mut world, reader, |qos| qos.user_data = b"seen".to_vec());
    assert_eq!(theirs, []);
    let [DiscoveryEvent::ReaderChanged { reader: seen, .. }] = &ours[..] else { panic!("{ours:?}") };
    assert_eq!((seen.guid, &seen.qos.user_data[..]), (reader, &b"seen"[..]));
}

#[test]
fn a_change_that_changes_nothing_is_not_announced_and_one_that_is_too_long_is_refused() {
    let (mut world, writer, _) = pair(Qos::for_writer(), Qos::for_reader());
    let (now, sent) = (world.now, world.sent.len());
    world.nodes[0].core.change_qos(now, writer.entity, |qos| qos.partition = Vec::new()).unwrap();
    world.run_for(ms(10));
    assert_eq!(world.sent.len(), sent);
    let core = &mut world.nodes[0].core;
    for refused in [
        core.change_qos(now, writer.entity, |qos| qos.topic_data = vec![0; 1025]),
        core.change_qos(now, writer.entity, |qos| qos.group_data = vec![0; 1025]),
        core.change_qos(now, writer.entity, |qos| qos.partition = vec!["p".to_owned(); 65]),
    ] {
        refused.unwrap_err();
    }
    world.run_for(ms(10));
    assert_eq!((world.sent.len(), world.events(1)), (sent, vec![]));
}

#[test]
fn a_change_does_not_assert_a_writer() {
    let liveliness = Liveliness { kind: LivelinessKind::ManualByTopic, lease: ms(100) };
    let (mut world, writer, _) = pair(Qos { liveliness, ..Qos::for_writer() }, Qos::for_reader());
    // 50 ms have passed.
    let [ours, _] = change(&mut world, writer, |qos| qos.ownership_strength = 1);
    let lost = DiscoveryEvent::LivelinessLost { writer: writer.entity };
    world.run_for(ms(1));
    let later = world.events(0);
    assert!(ours.contains(&lost) || later.contains(&lost), "{ours:?} {later:?}");
}

#[test]
fn user_data_of_a_participant_is_known_to_others_and_its_changes_are_too() {
    let mut world = World::new();
    world.start_with(|config| config.user_data = b"first".to_vec());
    world.start();
    world.run_for(ms(50));
    let seen = |world: &World| world.nodes[1].core.remote_data(prefix(0)).map(|data| data.user_data.clone());
    assert_eq!(seen(&world), Some(b"first".to_vec()));
    let now = world.now;
    world.nodes[0].core.set_user_data(now, b"second".to_vec());
    world.run_for(Duration::from_secs(1));
    assert_eq!(seen(&world), Some(b"second".to_vec()));
    assert_eq!(world.nodes[1].core.remote_participants(), 1);
}
