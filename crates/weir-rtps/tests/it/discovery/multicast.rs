//! Which multicast groups are used.

use std::net::{Ipv4Addr, SocketAddrV4};

use weir_rtps::multicast::GroupRoute;
use weir_rtps::participant::Interface;
use weir_rtps::qos::Qos;
use weir_wire::EntityId;

use super::ms;
use super::world::{World, endpoint, matched};

const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 0, 1), 7401);
const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// The group that a writer here uses for a reader there.
fn group_of(
    interfaces: &[Ipv4Addr],
    of_reader: Option<SocketAddrV4>,
    of_participant: Option<SocketAddrV4>,
) -> Option<GroupRoute> {
    let mut world = World::new();
    for _ in 0..2 {
        world.start_with(|config| {
            let address = *config.default_unicast[0].ip();
            config.interfaces = vec![Interface { address, netmask: Ipv4Addr::new(255, 255, 255, 0) }];
            config.multicast_interfaces = interfaces.to_vec();
            config.default_multicast = of_participant;
        });
    }
    world.add_writer(0, 1, "Square", Qos::for_writer());
    let mut reader = endpoint(EntityId::user_reader(1, false), "Square", Qos::for_reader());
    reader.multicast = of_reader;
    let now = world.now;
    world.nodes[1].core.add_reader(now, reader).unwrap();
    world.run_for(ms(100));
    let events = world.events(0);
    let reader = events.iter().find_map(matched).unwrap();
    assert_eq!(reader.destinations.len(), 1);
    assert!(!reader.destinations[0].ip().is_multicast());
    reader.group
}

#[test]
fn the_group_of_a_reader_is_announced() {
    let route = Some(GroupRoute { group: GROUP, interface: HERE });
    assert_eq!(group_of(&[HERE], Some(GROUP), None), route);
    assert_eq!(group_of(&[HERE], None, None), None);
}

#[test]
fn the_group_of_a_participant_is_that_of_readers_without_addresses_of_their_own() {
    let route = Some(GroupRoute { group: GROUP, interface: HERE });
    assert_eq!(group_of(&[HERE], None, Some(GROUP)), route);
    let other = SocketAddrV4::new(Ipv4Addr::new(239, 1, 2, 3), 9000);
    assert_eq!(group_of(&[HERE], Some(GROUP), Some(other)), route);
}

#[test]
fn groups_are_not_used_where_there_is_no_multicast() {
    assert_eq!(group_of(&[], Some(GROUP), None), None);
    assert_eq!(group_of(&[Ipv4Addr::new(10, 7, 0, 1)], Some(GROUP), None), None);
}
