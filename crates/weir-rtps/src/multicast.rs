//! User data by multicast: one datagram for all readers in the same group.
//!
//! Readers announce their groups (MULTICAST_LOCATOR, DEFAULT_MULTICAST_LOCATOR). A writer sends to
//! a group if that saves at least one send, and to all other readers by unicast. Messages for one
//! reader (GAPs, its own HEARTBEATs) always go to its unicast address, and so do repairs that no other reader requests
//! (`writer/group_repairs.rs`).

use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};

use crate::outbox::Destinations;

/// A multicast group and the interface to reach it. Two readers of one group behind different
/// interfaces have different routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupRoute {
    /// The group and its port.
    pub group: SocketAddrV4,
    /// Our address on the interface that leads to the reader.
    pub interface: Ipv4Addr,
}

/// The destinations of a writer's samples.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Groups, then the addresses of readers that are in none of them.
    pub(crate) destinations: Vec<SocketAddrV4>,
    /// The routes to these groups.
    pub(crate) routes: Vec<GroupRoute>,
}

impl Plan {
    /// Computes the fewest sends that reach all of `readers`. Uses the memory of another plan.
    pub(crate) fn of<'a>(
        mut self,
        readers: impl Iterator<Item = (&'a Destinations, Option<GroupRoute>)> + Clone,
    ) -> Self {
        let plan = &mut self;
        plan.destinations.clear();
        plan.routes.clear();
        for route in readers.clone().filter_map(|(_, route)| route) {
            if !plan.routes.contains(&route) && is_worth_it(route, readers.clone()) {
                plan.routes.push(route);
                add(&mut plan.destinations, route.group);
            }
        }
        for (addresses, route) in readers {
            if route.is_none_or(|route| !plan.routes.contains(&route)) {
                addresses.iter().for_each(|address| add(&mut plan.destinations, *address));
            }
        }
        self
    }
}

/// Returns whether a group replaces at least two addresses: several readers of one participant
/// share one.
fn is_worth_it<'a>(
    route: GroupRoute,
    readers: impl Iterator<Item = (&'a Destinations, Option<GroupRoute>)>,
) -> bool {
    let mut covered = readers.filter(|(_, other)| *other == Some(route)).map(|(addresses, _)| addresses);
    let first = covered.next();
    covered.any(|other| Some(other) != first)
}

fn add(addresses: &mut Vec<SocketAddrV4>, address: SocketAddrV4) {
    if !addresses.contains(&address) {
        addresses.push(address);
    }
}

/// Returns whether samples may be sent to a group: not to those of routing protocols and the like
/// (224.0.0.0/24, RFC 5771, 4).
pub fn is_group(address: SocketAddrV4) -> bool {
    let ip = address.ip();
    address.port() != 0 && ip.is_multicast() && ip.octets()[..3] != [224, 0, 0]
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;

    use super::*;

    const ONE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const TWO: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);

    fn group(port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::new(239, 255, 0, 1), port)
    }

    fn route(interface: Ipv4Addr) -> Option<GroupRoute> {
        Some(GroupRoute { group: group(7401), interface })
    }

    fn address(host: u8) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host), 7411)
    }

    fn check(readers: &[(u8, Option<GroupRoute>)], destinations: &[SocketAddrV4], routes: usize) {
        let readers: Vec<(Destinations, _)> =
            readers.iter().map(|(host, route)| (Arc::from([address(*host)]), *route)).collect();
        let plan = Plan::default().of(readers.iter().map(|(to, route)| (to, *route)));
        assert_eq!((&plan.destinations[..], plan.routes.len()), (destinations, routes));
    }

    #[test]
    fn a_group_is_used_when_it_stands_for_two_addresses() {
        check(&[(1, route(ONE))], &[address(1)], 0);
        check(&[(1, route(ONE)), (2, None)], &[address(1), address(2)], 0);
        check(&[(1, route(ONE)), (2, route(ONE))], &[group(7401)], 1);
        check(&[(1, None), (2, route(ONE)), (3, route(ONE))], &[group(7401), address(1)], 1);
    }

    #[test]
    fn readers_of_one_participant_are_one_address() {
        check(&[(1, route(ONE)), (1, route(ONE))], &[address(1)], 0);
    }

    #[test]
    fn a_group_behind_two_interfaces_is_one_destination_with_two_routes() {
        check(&[(1, route(ONE)), (2, route(TWO))], &[address(1), address(2)], 0);
        let readers = [(1, route(ONE)), (2, route(TWO)), (3, route(ONE)), (4, route(TWO))];
        check(&readers, &[group(7401)], 2);
    }

    #[test]
    fn groups_of_the_network_itself_are_no_destination() {
        assert!(is_group(group(7401)));
        for ip in [[224, 0, 0, 1], [224, 0, 0, 251], [10, 0, 0, 1], [240, 0, 0, 1]] {
            assert!(!is_group(SocketAddrV4::new(ip.into(), 7401)), "{ip:?}");
        }
        assert!(!is_group(group(0)));
    }
}
