//! The path MTU of a destination, as far as the kernel knows.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;

use crate::sys;
use crate::{SocketOptions, UdpSocket};

impl UdpSocket {
    /// Returns the largest IP packet that reaches the connected peer unfragmented, as far as this
    /// host knows.
    ///
    /// In bytes with the IP and UDP headers (28 bytes); `IP_MTU`, ip(7).
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the socket is not connected.
    pub fn path_mtu(&self) -> io::Result<usize> {
        sys::option(self.as_fd(), libc::IPPROTO_IP, libc::IP_MTU).map(|mtu| mtu as usize)
    }
}

/// Returns the path MTU to `to`, in bytes with headers, for callers whose own socket is not
/// connected.
///
/// Opens a socket for this and sends nothing.
///
/// # Errors
/// There is no route to `to`, or no socket could be opened.
pub fn path_mtu_to(to: SocketAddrV4) -> io::Result<usize> {
    let socket = UdpSocket::bind(&SocketOptions::new(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)))?;
    // Any port will do, except that some kernels refuse 0.
    let port = if to.port() == 0 { 9 } else { to.port() };
    socket.connect(SocketAddrV4::new(*to.ip(), port))?;
    socket.path_mtu()
}

/// Returns whether an address is one of this host.
///
/// Opens a socket for this and sends nothing. Where sockets may be bound to any address (`ip_nonlocal_bind`), every
/// address seems to be one.
pub fn is_own_address(ip: Ipv4Addr) -> bool {
    ip.is_loopback() || std::net::UdpSocket::bind((ip, 0)).is_ok()
}
