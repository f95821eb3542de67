//! Chooses which of a peer's announced addresses to send to.
//!
//! A peer with several interfaces announces all of them, and some lead nowhere: the loopback
//! address of another host, a virtual bridge with the same address on every host, a network that we
//! are not in. The address from which the announcement arrived is the best evidence.

use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};
use core::ops::Deref;

use super::config::{Interface, ParticipantConfig};
use super::remote_participant::RemoteParticipant;
use crate::multicast::GroupRoute;
use crate::spdp::ParticipantData;

/// Our own addresses.
#[derive(Clone, Debug)]
pub(super) struct Reachability {
    interfaces: Vec<Interface>,
    /// The last ones that are gone.
    former: Vec<Interface>,
    own: Vec<Ipv4Addr>,
    /// Our addresses from which user data may be sent by multicast.
    multicast: Vec<Ipv4Addr>,
}

impl Reachability {
    pub(super) fn new(config: &ParticipantConfig) -> Self {
        let announced =
            config.metatraffic_unicast.iter().chain(&config.default_unicast).map(|address| *address.ip());
        let mut own: Vec<_> =
            config.interfaces.iter().map(|interface| interface.address).chain(announced).collect();
        own.sort_unstable();
        own.dedup();
        let (interfaces, multicast) = (config.interfaces.clone(), config.multicast_interfaces.clone());
        Self { interfaces, former: Vec::new(), own, multicast }
    }

    /// Returns the same for addresses that have changed since.
    pub(super) fn renewed(&self, config: &ParticipantConfig) -> Self {
        let mut renewed = Self::new(config);
        renewed.former = self.interfaces.iter().chain(&self.former).copied().collect();
        renewed.former.retain(|network| !renewed.interfaces.contains(network));
        renewed.former.dedup();
        renewed.former.truncate(FORMER_MAX);
        renewed
    }

    /// Returns the source of a peer's announcements, by which its addresses are ranked.
    ///
    /// If they came over a network that is gone, it is as good as any other evidence that they came over a network that
    /// is there, where the peer names an address.
    pub(super) fn source(&self, remote: &RemoteParticipant) -> Ipv4Addr {
        let is_near = |address: Ipv4Addr| self.interfaces.iter().any(|it| it.is_neighbour(address));
        let was_near = self.former.iter().any(|it| it.is_neighbour(remote.from));
        if !was_near || is_near(remote.from) {
            return remote.from;
        }
        let data = &remote.data;
        let named = data.metatraffic_unicast.addresses.iter().chain(&data.default_unicast.addresses);
        let found = named
            .map(|address| *address.ip())
            .find(|address| is_near(*address) && !self.own.contains(address));
        found.unwrap_or(remote.from)
    }

    /// Returns the best of the `announced` addresses of a peer that sends `from` there; the first
    /// of equals.
    pub(super) fn choose(&self, announced: &[SocketAddrV4], from: Ipv4Addr) -> Option<SocketAddrV4> {
        let ranked = announced.iter().filter_map(|address| Some((self.rank(*address.ip(), from)?, *address)));
        ranked.min_by_key(|(rank, _)| *rank).map(|(_, address)| address)
    }

    /// Returns the route to the first of `groups` of a reader with the unicast address `address`.
    /// `None`: it is unreachable because routers are in between, or the interface there has no
    /// multicast.
    pub(super) fn group_route(&self, address: Ipv4Addr, groups: &[SocketAddrV4]) -> Option<GroupRoute> {
        let leads_there =
            |it: &&Interface| it.is_neighbour(address) || (it.address.is_loopback() && address.is_loopback());
        let own = self.interfaces.iter().find(|it| it.address == address);
        let interface = own.or_else(|| self.interfaces.iter().find(leads_there))?.address;
        let group = *groups.first()?;
        self.multicast.contains(&interface).then_some(GroupRoute { group, interface })
    }

    /// Returns where to send to an endpoint: the best of its own addresses or, without any, of its
    /// participant's. Without addresses of either kind, it also uses its participant's groups.
    ///
    /// Of a participant that is believed only because it is known beforehand, no others than its unicast addresses are
    /// used: only those were compared with what is known.
    pub(super) fn endpoint_address(
        &self,
        remote: &RemoteParticipant,
        unicast: &[SocketAddrV4],
        multicast: &[SocketAddrV4],
    ) -> Option<(Addresses, Option<GroupRoute>)> {
        let is_unproven = remote.is_unproven();
        let (unicast, multicast) = if is_unproven { (&[][..], &[][..]) } else { (unicast, multicast) };
        let choose = |data: &ParticipantData, from| {
            self.choose(unicast, from).or_else(|| self.choose(&data.default_unicast.addresses, from))
        };
        let address = choose(&remote.data, remote.from)?;
        let beside = remote.beside.as_ref().and_then(|there| choose(&there.data, there.from));
        let has_none = unicast.is_empty() && multicast.is_empty();
        let groups =
            if has_none && !is_unproven { &remote.data.default_multicast.addresses } else { multicast };
        let group = self.group_route(*address.ip(), groups);
        Some((Addresses::of(address, beside), group))
    }

    /// Returns where to send discovery traffic to a participant; `None`: it cannot be reached.
    pub(super) fn metatraffic(&self, remote: &RemoteParticipant) -> Option<Addresses> {
        let choose = |data: &ParticipantData, from| self.choose(&data.metatraffic_unicast.addresses, from);
        let beside = remote.beside.as_ref().and_then(|there| choose(&there.data, there.from));
        choose(&remote.data, remote.from).map(|address| Addresses::of(address, beside))
    }

    /// Returns whether there are addresses, and all are of this host.
    pub(super) fn is_here(&self, to: &[SocketAddrV4]) -> bool {
        !to.is_empty() && to.iter().all(|to| self.is_on_this_host(*to.ip()))
    }

    /// Returns whether a source address is one of this host.
    pub(super) fn is_on_this_host(&self, from: Ipv4Addr) -> bool {
        from.is_loopback() || self.own.contains(&from)
    }

    /// Returns the rank of an address, 0 is best. `None`: sending to it would reach another host,
    /// or many.
    fn rank(&self, address: Ipv4Addr, from: Ipv4Addr) -> Option<u8> {
        let is_on_this_host = self.is_on_this_host(from);
        if address.is_loopback() {
            let we_use_it = self.own.iter().any(Ipv4Addr::is_loopback);
            return is_on_this_host.then_some(if we_use_it { 0 } else { 5 });
        }
        if self.interfaces.iter().any(|interface| interface.is_broadcast(address)) {
            return None;
        }
        if address == from {
            return Some(1);
        }
        if self.own.contains(&address) {
            return is_on_this_host.then_some(2);
        }
        Some(if self.interfaces.iter().any(|interface| interface.is_neighbour(address)) { 3 } else { 4 })
    }
}

/// The address of a peer, or one on each of two hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Addresses {
    both: [SocketAddrV4; 2],
    has_two: bool,
}

impl Addresses {
    fn of(address: SocketAddrV4, beside: Option<SocketAddrV4>) -> Self {
        let beside = beside.unwrap_or(address);
        Self { both: [address, beside], has_two: beside != address }
    }
}

impl Deref for Addresses {
    type Target = [SocketAddrV4];

    fn deref(&self) -> &[SocketAddrV4] {
        &self.both[..1 + usize::from(self.has_two)]
    }
}

impl Interface {
    fn is_neighbour(&self, address: Ipv4Addr) -> bool {
        let mask = self.netmask.to_bits();
        !self.address.is_loopback() && self.address.to_bits() & mask == address.to_bits() & mask
    }

    /// Returns whether the address is a broadcast address. Networks of one or two addresses have
    /// none.
    fn is_broadcast(&self, address: Ipv4Addr) -> bool {
        let hosts = !self.netmask.to_bits();
        hosts > 1 && self.is_neighbour(address) && address.to_bits() & hosts == hosts
    }
}

/// Networks that are remembered after they are gone.
const FORMER_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use weir_wire::GuidPrefix;

    use super::*;

    fn reachability(interfaces: &[([u8; 4], [u8; 4])]) -> Reachability {
        let mut config = ParticipantConfig::new(GuidPrefix([1; 12]), 0);
        config.interfaces = interfaces
            .iter()
            .map(|&(address, netmask)| Interface { address: address.into(), netmask: netmask.into() })
            .collect();
        config.multicast_interfaces = config.interfaces.iter().map(|it| it.address).collect();
        Reachability::new(&config)
    }

    fn check(reachability: &Reachability, announced: &[[u8; 4]], from: [u8; 4], expected: Option<[u8; 4]>) {
        let announced: Vec<_> = announced.iter().map(|&ip| SocketAddrV4::new(ip.into(), 7410)).collect();
        let chosen = reachability.choose(&announced, from.into()).map(|address| address.ip().octets());
        assert_eq!(chosen, expected, "{announced:?} from {from:?}");
    }

    #[test]
    fn the_address_that_the_announcement_came_from_is_preferred() {
        let lan = reachability(&[([10, 0, 0, 1], [255, 255, 255, 0])]);
        check(&lan, &[[192, 168, 7, 7], [10, 0, 0, 2], [10, 0, 0, 3]], [10, 0, 0, 3], Some([10, 0, 0, 3]));
        check(&lan, &[[192, 168, 7, 7], [10, 0, 0, 2], [10, 0, 0, 3]], [10, 9, 9, 9], Some([10, 0, 0, 2]));
        check(&lan, &[[192, 168, 7, 7], [192, 168, 7, 8]], [10, 9, 9, 9], Some([192, 168, 7, 7]));
    }

    #[test]
    fn a_group_is_reached_from_the_interface_that_leads_to_its_listener() {
        let host = [([127, 0, 0, 1], [255, 0, 0, 0]), ([10, 0, 0, 1], [255, 255, 255, 0])];
        let mut host = reachability(&host);
        let group = SocketAddrV4::new([239, 255, 0, 1].into(), 7401);
        let from = |host: &Reachability, address: [u8; 4]| {
            host.group_route(address.into(), &[group]).map(|route| route.interface.octets())
        };
        assert_eq!(from(&host, [10, 0, 0, 7]), Some([10, 0, 0, 1]));
        assert_eq!(from(&host, [10, 0, 0, 1]), Some([10, 0, 0, 1]));
        assert_eq!(from(&host, [127, 0, 0, 1]), Some([127, 0, 0, 1]));
        assert_eq!(from(&host, [10, 9, 9, 9]), None);
        assert_eq!(host.group_route([10, 0, 0, 7].into(), &[]), None);
        host.multicast.retain(Ipv4Addr::is_loopback);
        assert_eq!(from(&host, [10, 0, 0, 7]), None);
    }

    #[test]
    fn loopback_is_for_peers_on_this_host() {
        let both = reachability(&[([127, 0, 0, 1], [255, 0, 0, 0]), ([10, 0, 0, 1], [255, 255, 255, 0])]);
        check(&both, &[[10, 0, 0, 1], [127, 0, 0, 1]], [10, 0, 0, 1], Some([127, 0, 0, 1]));
        check(&both, &[[127, 0, 0, 1]], [10, 0, 0, 2], None);
        let lan = reachability(&[([10, 0, 0, 1], [255, 255, 255, 0])]);
        check(&lan, &[[127, 0, 0, 1], [10, 0, 0, 1]], [10, 0, 0, 1], Some([10, 0, 0, 1]));
        check(&lan, &[[127, 0, 0, 1]], [10, 0, 0, 1], Some([127, 0, 0, 1]));
    }

    #[test]
    fn a_bridge_that_every_host_has_is_not_taken_for_the_peer() {
        let host = reachability(&[([172, 17, 0, 1], [255, 255, 0, 0]), ([10, 0, 0, 1], [255, 255, 255, 0])]);
        check(&host, &[[172, 17, 0, 1], [10, 0, 0, 2]], [10, 0, 0, 2], Some([10, 0, 0, 2]));
        check(&host, &[[172, 17, 0, 1]], [10, 0, 0, 2], None);
    }

    #[test]
    fn the_broadcast_address_of_a_network_is_no_host() {
        let lan = reachability(&[([10, 0, 0, 1], [255, 255, 255, 0])]);
        check(&lan, &[[10, 0, 0, 255]], [10, 0, 0, 255], None);
        let link = reachability(&[([10, 0, 0, 0], [255, 255, 255, 254])]);
        check(&link, &[[10, 0, 0, 1]], [10, 0, 0, 9], Some([10, 0, 0, 1]));
    }
}
