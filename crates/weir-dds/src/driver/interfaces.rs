//! The network interfaces that a participant uses.

use std::net::{Ipv4Addr, SocketAddrV4};

use weir_rtps::config;
use weir_rtps::participant::{Interface as Network, OwnAddresses};
use weir_udp::Interface;

use super::memberships::Place;
use crate::error::{DdsError, Result};
use crate::settings::ParticipantSettings;

/// Which of the host's interfaces a participant may use.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// Names or addresses; empty: all.
    names: Vec<String>,
    /// The only address, if the sockets are bound to it.
    only: Option<Ipv4Addr>,
}

/// The interfaces that a participant uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selected {
    pub(super) interfaces: Vec<Interface>,
    /// Those that are chosen but lead nowhere now.
    idle: Vec<Interface>,
}

impl Choice {
    /// Finds the interfaces that the settings name, or all that are up if they name none.
    pub(crate) fn new(settings: &ParticipantSettings) -> Result<(Self, Selected)> {
        let up = up().map_err(|error| DdsError::network("cannot list the interfaces", error))?;
        for name in &settings.interfaces {
            if !up.iter().any(|it| is_named(it, name)) {
                let names: Vec<_> = up.iter().map(|it| format!("{} ({})", it.name, it.address)).collect();
                let there = names.join(", ");
                let text = format!("no interface {name:?} is up with an IPv4 address; available: {there}");
                return Err(DdsError::BadParameter(text));
            }
        }
        let mut choice = Self { names: settings.interfaces.clone(), only: None };
        let selected = choice.select(&up).ok_or_else(|| {
            let text = "no interface is up with an IPv4 address; run 'ip link set lo up' for loopback";
            DdsError::BadParameter(text.to_owned())
        })?;
        choice.only = choice.lasting_address(&selected);
        Ok((choice, selected))
    }

    /// Selects from the interfaces that are `up`. `None`: nothing is left.
    pub(super) fn select(&self, up: &[Interface]) -> Option<Selected> {
        let mut interfaces: Vec<Interface> = Vec::new();
        let by_name = self.names.iter().flat_map(|name| up.iter().filter(move |it| is_named(it, name)));
        let all = up.iter().filter(|_| self.names.is_empty());
        for interface in by_name.chain(all) {
            if self.only.is_none_or(|only| only == interface.address) && !interfaces.contains(interface) {
                interfaces.push(interface.clone());
            }
        }
        // Without a carrier, an interface leads nowhere. Peers are not to send there, nor are we, unless there is
        // nothing better: an unplugged cable is mostly plugged in again.
        let mut idle = Vec::new();
        if interfaces.iter().any(|it| it.has_carrier && !it.is_loopback) {
            (interfaces, idle) = interfaces.into_iter().partition(|it| it.has_carrier || it.is_loopback);
        }
        (!interfaces.is_empty()).then_some(Selected { interfaces, idle })
    }

    /// Returns the address to bind the sockets to.
    pub(super) fn bind_address(&self) -> Ipv4Addr {
        self.only.unwrap_or(Ipv4Addr::UNSPECIFIED)
    }

    /// Returns the addresses at which sockets bound to [`Choice::bind_address`] may receive; empty:
    /// any.
    pub(super) fn only_at(&self, selected: &Selected) -> Vec<Ipv4Addr> {
        let is_restricted = !self.names.is_empty() && self.only.is_none();
        selected.chosen().filter(|_| is_restricted).map(|it| it.address).collect()
    }

    /// Returns the only address that is selected, if no other one can take its place: loopback, or
    /// one that the settings name by itself.
    fn lasting_address(&self, selected: &Selected) -> Option<Ipv4Addr> {
        let ([name], [only]) = (&self.names[..], &selected.interfaces[..]) else { return None };
        let lasts = only.is_loopback || only.address.to_string() == *name;
        lasts.then_some(only.address)
    }
}

impl Selected {
    /// Returns the addresses of the participant, whose sockets have these ports.
    pub(crate) fn own_addresses(&self, meta_port: u16, user_port: u16, uses_multicast: bool) -> OwnAddresses {
        OwnAddresses {
            metatraffic_unicast: self.announced(meta_port),
            default_unicast: self.announced(user_port),
            interfaces: self.networks(),
            multicast_interfaces: if uses_multicast { self.multicast_addresses() } else { Vec::new() },
        }
    }

    /// Returns the addresses announced to peers, with a port.
    ///
    /// Loopback is announced only if there is nothing else, because it leads nowhere from other
    /// hosts.
    fn announced(&self, port: u16) -> Vec<SocketAddrV4> {
        let has_network = self.interfaces.iter().any(|interface| !interface.is_loopback);
        let announced = self.interfaces.iter().filter(|interface| !(has_network && interface.is_loopback));
        announced.map(|interface| SocketAddrV4::new(interface.address, port)).collect()
    }

    fn chosen(&self) -> impl Iterator<Item = &Interface> {
        self.interfaces.iter().chain(&self.idle)
    }

    /// Returns the interfaces on which to join groups, with the first address of each.
    ///
    /// Idle ones too: if a carrier is back, announcements of peers may arrive before the kernel
    /// reports it.
    pub(super) fn places(&self) -> Vec<Place> {
        let mut places: Vec<Place> = Vec::new();
        for place in self.chosen().map(place) {
            if !places.iter().any(|known| known.index == place.index) {
                places.push(place);
            }
        }
        places
    }

    /// Returns the addresses in use, with their interfaces.
    pub(super) fn addresses(&self) -> impl Iterator<Item = Place> {
        self.interfaces.iter().map(place)
    }

    /// Returns the addresses from which multicast can be sent. Loopback lacks the flag but supports
    /// it.
    fn multicast_addresses(&self) -> Vec<Ipv4Addr> {
        let able = self.interfaces.iter().filter(|interface| interface.is_multicast || interface.is_loopback);
        able.map(|interface| interface.address).collect()
    }

    /// Returns the size in bytes of the largest datagram that leaves by any of them unfragmented, idle ones included.
    /// What stays on the host does not count.
    pub(super) fn datagram_max(&self) -> u16 {
        let mtus = self.chosen().filter(|it| !it.is_loopback).map(|it| it.mtu);
        mtus.min().map_or(u16::MAX, datagram_max)
    }

    fn networks(&self) -> Vec<Network> {
        let network = |it: &Interface| Network { address: it.address, netmask: it.netmask };
        self.interfaces.iter().map(network).collect()
    }
}

/// Lists the interfaces that are up, with their IPv4 addresses.
pub(super) fn up() -> std::io::Result<Vec<Interface>> {
    Ok(weir_udp::interfaces()?.into_iter().filter(|interface| interface.is_up).collect())
}

fn place(interface: &Interface) -> Place {
    Place { index: interface.index, address: interface.address }
}

fn is_named(interface: &Interface, name: &str) -> bool {
    interface.name == name || interface.address.to_string() == name
}

/// Returns the size in bytes of the largest datagram that reaches all `destinations` unfragmented,
/// as far as this host knows.
pub(crate) fn segment_max(destinations: &[SocketAddrV4]) -> u16 {
    let mtus = destinations.iter().map(|to| weir_udp::path_mtu_to(*to).unwrap_or(1500));
    datagram_max(mtus.min().unwrap_or(1500))
}

/// Returns the size in bytes of the largest datagram in an IP packet of so many.
pub(super) fn datagram_max(mtu: usize) -> u16 {
    const HEADERS: usize = 28;
    let bytes = mtu.saturating_sub(HEADERS).min(config::SEGMENTED_MAX_BYTES);
    u16::try_from(bytes).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(index: u32, name: &str, last: u8) -> Interface {
        Interface {
            name: name.to_owned(),
            index,
            address: if name == "lo" { Ipv4Addr::LOCALHOST } else { Ipv4Addr::new(10, 0, index as u8, last) },
            netmask: Ipv4Addr::new(255, 255, 255, 0),
            is_up: true,
            has_carrier: true,
            is_loopback: name == "lo",
            is_multicast: name != "lo",
            mtu: 1500,
        }
    }

    fn choice(names: &[&str]) -> Choice {
        Choice { names: names.iter().map(|name| (*name).to_owned()).collect(), only: None }
    }

    /// The last bytes of the announced addresses.
    fn announced(choice: &Choice, up: &[Interface]) -> Option<Vec<u8>> {
        let announced = choice.select(up)?.announced(7);
        Some(announced.iter().map(|address| address.ip().octets()[3]).collect())
    }

    #[test]
    fn what_may_leave_by_any_interface_is_as_long_as_the_smallest_of_them_carries() {
        let mut up = [interface(1, "lo", 1), interface(2, "eth0", 20), interface(3, "eth1", 30)];
        up[2].mtu = 9000;
        let datagram_max = |names: &[&str]| choice(names).select(&up).map(|it| it.datagram_max());
        assert_eq!(datagram_max(&["lo"]), Some(u16::MAX));
        assert_eq!(datagram_max(&["eth1"]), Some(8972));
        assert_eq!(datagram_max(&["lo", "eth0", "eth1"]), Some(1472));
    }

    #[test]
    fn an_interface_without_carrier_is_used_only_if_there_is_no_better_one() {
        let mut up = [interface(1, "lo", 1), interface(2, "eth0", 20), interface(3, "eth1", 30)];
        let all = choice(&[]);
        assert_eq!(announced(&all, &up), Some(vec![20, 30]));
        up[1].has_carrier = false;
        assert_eq!(announced(&all, &up), Some(vec![30]));
        assert_eq!(announced(&choice(&["eth0", "eth1"]), &up), Some(vec![30]));
        assert_eq!(announced(&choice(&["eth0"]), &up), Some(vec![20]));
        up[2].has_carrier = false;
        assert_eq!(announced(&all, &up), Some(vec![20, 30]));
        assert_eq!(announced(&all, &up[..1]), Some(vec![1]));
        assert_eq!(announced(&choice(&["eth2"]), &up), None);
    }

    #[test]
    fn sockets_bound_to_all_addresses_receive_at_the_chosen_ones() {
        let mut up = [interface(1, "lo", 1), interface(2, "eth0", 20), interface(3, "eth1", 30)];
        up[1].has_carrier = false;
        let [lo, first, second] = [0, 1, 2].map(|index: usize| up[index].address);
        for (names, only_at) in
            [(&[][..], &[][..]), (&["eth1"], &[second]), (&["lo", "eth0", "eth1"], &[lo, second, first])]
        {
            let mut choice = choice(names);
            let selected = choice.select(&up).unwrap();
            choice.only = choice.lasting_address(&selected);
            assert_eq!(choice.bind_address(), Ipv4Addr::UNSPECIFIED, "{names:?}");
            assert_eq!(choice.only_at(&selected), only_at, "{names:?}");
        }
    }

    #[test]
    fn sockets_are_bound_to_an_address_that_nothing_can_replace() {
        let mut up = vec![interface(1, "lo", 1), interface(2, "eth0", 20)];
        for (name, index) in [("lo", 0), ("127.0.0.1", 0), ("10.0.2.20", 1)] {
            let mut choice = choice(&[name]);
            let selected = choice.select(&up).unwrap();
            choice.only = choice.lasting_address(&selected);
            assert_eq!(choice.bind_address(), up[index].address);
            assert!(choice.only_at(&selected).is_empty());
            // A second address of the interface would not be received at.
            up.push(Interface { address: Ipv4Addr::new(10, 9, 9, 9), ..up[index].clone() });
            assert_eq!(choice.select(&up), Some(selected));
            up.pop();
        }
    }

    #[test]
    fn an_interface_that_is_named_twice_is_selected_once() {
        let up = [interface(1, "lo", 1), interface(2, "eth0", 20)];
        let selected = choice(&["eth0", "10.0.2.20"]).select(&up).unwrap();
        assert_eq!(selected.interfaces, up[1..]);
    }

    #[test]
    fn a_group_is_joined_once_per_interface() {
        let second = Interface { address: Ipv4Addr::new(10, 0, 2, 21), ..interface(2, "eth0", 20) };
        let up = [interface(2, "eth0", 20), second, interface(3, "eth1", 30)];
        let selected = choice(&[]).select(&up).unwrap();
        let places: Vec<_> = selected.places().iter().map(|it| (it.index, it.address.octets()[3])).collect();
        assert_eq!(places, [(2, 20), (3, 30)]);
        assert_eq!(selected.addresses().count(), 3);
        let mut up = up;
        up[2].has_carrier = false;
        let unplugged = choice(&[]).select(&up).unwrap();
        assert_eq!((unplugged.places(), unplugged.addresses().count()), (selected.places(), 2));
    }
}
