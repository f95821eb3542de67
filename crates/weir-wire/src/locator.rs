//! Locators: addresses of entities (RTPS 2.5 §8.2.5, §9.3.2).

use core::net::{Ipv4Addr, SocketAddrV4};

/// A transport, an address and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locator {
    /// The transport.
    pub kind: i32,
    /// The port; up to 65535 for UDP.
    pub port: u32,
    /// The address; for IPv4, the last four bytes.
    pub address: [u8; 16],
}

impl Locator {
    /// No transport.
    pub const KIND_INVALID: i32 = -1;
    /// UDP over IPv4.
    pub const KIND_UDP_V4: i32 = 1;
    /// UDP over IPv6.
    pub const KIND_UDP_V6: i32 = 2;

    /// Makes the locator of a UDP port at an IPv4 address.
    pub fn udp_v4(address: SocketAddrV4) -> Self {
        let mut bytes = [0; 16];
        bytes[12..].copy_from_slice(&address.ip().octets());
        Self { kind: Self::KIND_UDP_V4, port: u32::from(address.port()), address: bytes }
    }

    /// Returns the UDP port and IPv4 address; `None` for other transports and invalid ports.
    pub fn to_socket_addr_v4(self) -> Option<SocketAddrV4> {
        let port = u16::try_from(self.port).ok().filter(|port| *port != 0)?;
        let [.., a, b, c, d] = self.address;
        (self.kind == Self::KIND_UDP_V4).then(|| SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), port))
    }
}
