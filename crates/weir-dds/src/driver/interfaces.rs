//! The network interfaces that a participant uses.

use std::net::{Ipv4Addr, SocketAddrV4};

use weir_rtps::config;
use weir_rtps::participant::Interface as Network;
use weir_udp::Interface;

use crate::error::{DdsError, Result};
use crate::settings::ParticipantSettings;

/// The interfaces that a participant uses.
#[derive(Debug)]
pub(crate) struct Selected {
    pub(super) interfaces: Vec<Interface>,
}

impl Selected {
    /// Finds the interfaces that the settings name, or all that are up if they name none.
    pub(crate) fn new(settings: &ParticipantSettings) -> Result<Self> {
        let all =
            weir_udp::interfaces().map_err(|error| DdsError::network("cannot list the interfaces", error))?;
        let up: Vec<_> = all.into_iter().filter(|interface| interface.is_up).collect();
        let mut interfaces = Vec::new();
        for name in &settings.interfaces {
            let known = interfaces.len();
            let named = |it: &&Interface| it.name == *name || it.address.to_string() == *name;
            interfaces.extend(up.iter().filter(named).cloned());
            if interfaces.len() == known {
                let names: Vec<_> = up.iter().map(|it| format!("{} ({})", it.name, it.address)).collect();
                let there = names.join(", ");
                let text = format!("no interface {name:?} is up with an IPv4 address; available: {there}");
                return Err(DdsError::BadParameter(text));
            }
        }
        if settings.interfaces.is_empty() {
            interfaces = up;
        }
        if interfaces.is_empty() {
            let text = "no interface is up with an IPv4 address; run 'ip link set lo up' for loopback";
            return Err(DdsError::BadParameter(text.to_owned()));
        }
        Ok(Self { interfaces })
    }

    /// Returns the address to bind to: that of the only interface, or the unspecified one.
    pub(super) fn bind_address(&self) -> Ipv4Addr {
        match &self.interfaces[..] {
            [only] => only.address,
            _ => Ipv4Addr::UNSPECIFIED,
        }
    }

    /// Returns the addresses announced to peers, with a port.
    ///
    /// Loopback is announced only if there is nothing else, because it leads nowhere from other
    /// hosts.
    pub(crate) fn announced(&self, port: u16) -> Vec<SocketAddrV4> {
        let has_network = self.interfaces.iter().any(|interface| !interface.is_loopback);
        let announced = self.interfaces.iter().filter(|interface| !(has_network && interface.is_loopback));
        announced.map(|interface| SocketAddrV4::new(interface.address, port)).collect()
    }

    /// Returns the local addresses on all interfaces.
    pub(crate) fn addresses(&self) -> Vec<Ipv4Addr> {
        self.interfaces.iter().map(|interface| interface.address).collect()
    }

    /// Returns the addresses from which multicast can be sent. Loopback lacks the flag but supports
    /// it.
    pub(crate) fn multicast_addresses(&self) -> Vec<Ipv4Addr> {
        let able = self.interfaces.iter().filter(|interface| interface.is_multicast || interface.is_loopback);
        able.map(|interface| interface.address).collect()
    }

    pub(crate) fn networks(&self) -> Vec<Network> {
        let network = |it: &Interface| Network { address: it.address, netmask: it.netmask };
        self.interfaces.iter().map(network).collect()
    }
}

/// Returns the size in bytes of the largest datagram that reaches all `destinations` unfragmented,
/// as far as this host knows.
pub(crate) fn segment_max(destinations: &[SocketAddrV4]) -> u16 {
    const HEADERS: usize = 28;
    let mtus = destinations.iter().map(|to| weir_udp::path_mtu_to(*to).unwrap_or(1500));
    let smallest = mtus.min().unwrap_or(1500).saturating_sub(HEADERS);
    u16::try_from(smallest.min(config::SEGMENTED_MAX_BYTES)).unwrap_or(u16::MAX)
}
