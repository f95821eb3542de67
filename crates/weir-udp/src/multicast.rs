//! Joining and leaving multicast groups.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use socket2::InterfaceIndexOrAddress;

use crate::{UdpError, UdpSocket};

/// The interface on which a group is joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MulticastInterface {
    /// The interface with this address.
    Address(Ipv4Addr),
    /// The interface with this index ([`crate::Interface::index`]).
    Index(u32),
}

impl From<Ipv4Addr> for MulticastInterface {
    fn from(address: Ipv4Addr) -> Self {
        Self::Address(address)
    }
}

impl From<u32> for MulticastInterface {
    fn from(index: u32) -> Self {
        Self::Index(index)
    }
}

impl fmt::Display for MulticastInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Index(index) => write!(f, "index {index}"),
        }
    }
}

impl UdpSocket {
    /// Receives what is sent to `group` and arrives on `interface` (one of its addresses, or its
    /// index).
    ///
    /// The socket receives no other group's datagrams, whatever other sockets of the host have
    /// joined.
    ///
    /// # Errors
    /// [`UdpError::Multicast`] if `group` is not a multicast address, if the interface does not
    /// exist, if the group is already joined, or if the socket has too many groups.
    pub fn join_multicast(
        &self,
        group: Ipv4Addr,
        interface: impl Into<MulticastInterface>,
    ) -> Result<(), UdpError> {
        let interface = interface.into();
        self.as_socket2()
            .join_multicast_v4_n(&group, &to_socket2(interface))
            .map_err(|source| UdpError::Multicast { action: "join", group: group.into(), interface, source })
    }

    /// Undoes [`join_multicast`](Self::join_multicast); closing the socket does so, too.
    ///
    /// # Errors
    /// [`UdpError::Multicast`] if the group was not joined on this interface.
    pub fn leave_multicast(
        &self,
        group: Ipv4Addr,
        interface: impl Into<MulticastInterface>,
    ) -> Result<(), UdpError> {
        let interface = interface.into();
        self.as_socket2()
            .leave_multicast_v4_n(&group, &to_socket2(interface))
            .map_err(|source| UdpError::Multicast { action: "leave", group: group.into(), interface, source })
    }

    /// As [`join_multicast`](Self::join_multicast) for IPv6, on the interface with this index.
    ///
    /// # Errors
    /// As for [`join_multicast`](Self::join_multicast).
    pub fn join_multicast_v6(&self, group: Ipv6Addr, index: u32) -> Result<(), UdpError> {
        self.as_socket2().join_multicast_v6(&group, index).map_err(|source| UdpError::Multicast {
            action: "join",
            group: group.into(),
            interface: index.into(),
            source,
        })
    }
}

fn to_socket2(interface: MulticastInterface) -> InterfaceIndexOrAddress {
    match interface {
        MulticastInterface::Address(address) => InterfaceIndexOrAddress::Address(address),
        MulticastInterface::Index(index) => InterfaceIndexOrAddress::Index(index),
    }
}
