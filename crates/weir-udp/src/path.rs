//! What the kernel knows about the way to a destination.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;

use crate::sys;
use crate::{SocketOptions, UdpSocket};

impl UdpSocket {
    /// The largest IP packet, in bytes with the IP and UDP headers (28 bytes), that reaches the
    /// connected peer in one piece, as far as this host knows (`IP_MTU`, ip(7)).
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] when the socket is not connected.
    pub fn path_mtu(&self) -> io::Result<usize> {
        sys::option(self.as_fd(), libc::IPPROTO_IP, libc::IP_MTU).map(|mtu| mtu as usize)
    }
}

/// The path MTU to `to`, in bytes with headers, for callers whose own socket is not connected. It
/// opens a socket for the question and sends nothing.
///
/// # Errors
/// There is no route to `to`, or no socket could be opened.
pub fn path_mtu_to(to: SocketAddrV4) -> io::Result<usize> {
    let socket = UdpSocket::bind(&SocketOptions::new(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)))?;
    // A port is needed for the form only; 0 would not be accepted by every kernel.
    let port = if to.port() == 0 { 9 } else { to.port() };
    socket.connect(SocketAddrV4::new(*to.ip(), port))?;
    socket.path_mtu()
}
