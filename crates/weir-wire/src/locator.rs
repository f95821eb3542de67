//! Where an entity can be reached (RTPS 2.5 §8.2.5, §9.3.2).

use core::net::{Ipv4Addr, SocketAddrV4};

/// A transport, an address and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locator {
    /// The transport.
    pub kind: i32,
    /// The port; of UDP, up to 65535.
    pub port: u32,
    /// The address; of IPv4, in the last four octets.
    pub address: [u8; 16],
}

impl Locator {
    /// Nothing.
    pub const KIND_INVALID: i32 = -1;
    /// UDP over IPv4.
    pub const KIND_UDP_V4: i32 = 1;
    /// UDP over IPv6.
    pub const KIND_UDP_V6: i32 = 2;

    /// A UDP port of an IPv4 address.
    pub fn udp_v4(address: SocketAddrV4) -> Self {
        let mut octets = [0; 16];
        octets[12..].copy_from_slice(&address.ip().octets());
        Self { kind: Self::KIND_UDP_V4, port: u32::from(address.port()), address: octets }
    }

    /// The UDP port of an IPv4 address; `None` when it is something else, or no port that can be sent to.
    pub fn to_socket_addr_v4(self) -> Option<SocketAddrV4> {
        let port = u16::try_from(self.port).ok().filter(|port| *port != 0)?;
        let [.., a, b, c, d] = self.address;
        (self.kind == Self::KIND_UDP_V4).then(|| SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), port))
    }
}
