//! What is noted for builtin-topic readers: participants and endpoints that are found, change and leave, in virtual
//! time (DDS 1.4, 2.2.5).

use core::time::Duration;

use weir_rtps::qos::Qos;
use weir_rtps::sedp::EndpointKind;
use weir_wire::{EntityId, Guid};

use super::ms;
use super::world::{World, prefix};

fn participant(node: usize) -> Guid {
    Guid::new(prefix(node), EntityId::PARTICIPANT)
}

/// What the first participant has noted since the last call.
fn noted(world: &mut World) -> Vec<Guid> {
    world.nodes[0].core.take_observed().collect()
}

fn observing() -> World {
    let mut world = World::new();
    world.start();
    world.nodes[0].core.set_observed(true);
    world
}

#[test]
fn entities_are_noted_when_they_are_found_change_and_leave_each_once() {
    let mut world = observing();
    world.start();
    let writer = world.add_writer(1, 1, "Square", Qos { topic_data: vec![1], ..Qos::for_writer() });
    let reader = world.add_reader(1, 2, "Square", Qos::for_reader());
    world.run_for(ms(50));
    // The participant is first: those who look up an endpoint know it.
    assert_eq!(noted(&mut world)[0], participant(1));
    assert_eq!(noted(&mut world), [], "taken");
    let endpoint = |world: &World, guid| world.nodes[0].core.discovered_endpoint(guid);
    let (kind, data) = endpoint(&world, writer).unwrap();
    assert_eq!((kind, data.topic.as_str(), data.qos.topic_data), (EndpointKind::Writer, "Square", vec![1]));
    assert_eq!(endpoint(&world, reader).unwrap().0, EndpointKind::Reader);

    // The announcements are repeated, and are no changes.
    world.run_for(Duration::from_secs(60));
    assert_eq!(noted(&mut world), []);

    // Two changes before it is looked at: the newest state counts.
    for partition in ["left", "right"] {
        let now = world.now;
        let change = |qos: &mut Qos| qos.partition = vec![partition.to_owned()];
        world.nodes[1].core.change_qos(now, writer.entity, change).unwrap();
        world.run_for(ms(10));
    }
    assert_eq!(noted(&mut world), [writer]);
    assert_eq!(endpoint(&world, writer).unwrap().1.qos.partition, ["right"]);

    let now = world.now;
    world.nodes[1].core.set_user_data(now, vec![7]);
    world.run_for(ms(50));
    assert_eq!(noted(&mut world), [participant(1)]);
    assert_eq!(world.nodes[0].core.participant_data(prefix(1)).unwrap().user_data, [7]);

    let now = world.now;
    world.nodes[1].core.remove_writer(now, writer.entity);
    world.run_for(ms(50));
    assert_eq!(noted(&mut world), [writer]);
    assert!(endpoint(&world, writer).is_none());

    let now = world.now;
    world.nodes[1].core.close(now);
    world.run_for(ms(50));
    assert_eq!(noted(&mut world), [participant(1), reader]);
    assert!(endpoint(&world, reader).is_none());
    assert!(world.nodes[0].core.participant_data(prefix(1)).is_none());
}

#[test]
fn a_participant_that_falls_silent_is_noted_as_gone_with_its_endpoints() {
    let mut world = observing();
    world.start();
    let writer = world.add_writer(1, 1, "Square", Qos::for_writer());
    world.run_for(ms(50));
    assert_eq!(noted(&mut world), [participant(1), writer]);
    world.kill(1);
    world.run_for(Duration::from_secs(60));
    assert_eq!(noted(&mut world), [participant(1), writer]);
    assert!(world.nodes[0].core.participant_data(prefix(1)).is_none());
    assert!(world.nodes[0].core.discovered_endpoint(writer).is_none());
}

#[test]
fn what_is_known_already_is_noted_at_first_and_own_entities_are_not() {
    let mut world = World::new();
    world.start();
    world.start();
    let writer = world.add_writer(1, 1, "Square", Qos::for_writer());
    world.add_writer(0, 1, "Square", Qos::for_writer());
    world.run_for(ms(50));
    assert_eq!(noted(&mut world), []);
    world.nodes[0].core.set_observed(true);
    assert_eq!(noted(&mut world), [participant(1), writer]);
    world.nodes[0].core.set_observed(false);
    world.add_writer(1, 2, "Square", Qos::for_writer());
    world.run_for(ms(50));
    assert_eq!(noted(&mut world), []);
}

#[test]
fn what_is_ignored_is_noted_as_gone_and_not_noted_again() {
    let mut world = observing();
    world.start();
    let [square, circle, line] = [(1, "Square"), (2, "Circle"), (3, "Line")]
        .map(|(key, topic)| world.add_writer(1, key, topic, Qos::for_writer()));
    world.run_for(ms(50));
    noted(&mut world);
    assert!(world.nodes[0].core.ignore_endpoint(square));
    assert_eq!(noted(&mut world), [square]);
    assert!(world.nodes[0].core.ignore_topic("Circle"));
    assert_eq!(noted(&mut world), [circle]);
    for gone in [square, circle] {
        assert!(world.nodes[0].core.discovered_endpoint(gone).is_none());
    }
    let now = world.now;
    assert!(world.nodes[0].core.ignore_participant(now, prefix(1)));
    let all = noted(&mut world);
    assert!(all.contains(&participant(1)) && all.contains(&line), "{all:?}");
    world.add_writer(1, 4, "Line", Qos::for_writer());
    world.run_for(Duration::from_secs(60));
    assert_eq!(noted(&mut world), []);
}
