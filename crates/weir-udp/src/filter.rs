//! Restricts a socket to datagrams for certain local addresses.

use std::ffi::c_int;
use std::io;
use std::net::Ipv4Addr;

use socket2::{SockFilter, Socket};

use crate::UdpSocket;

impl UdpSocket {
    /// Receives only datagrams that were sent to one of `addresses` from now on, and empty ones to
    /// 127.0.0.1, by which a process wakes its own threads. IPv4 only.
    ///
    /// Replaces the addresses of an earlier call, or of
    /// [`SocketOptions::only_at`](crate::SocketOptions::only_at), in one step. The kernel drops
    /// other datagrams before they use memory of the socket, and counts them as
    /// [`kernel_drops`](Self::kernel_drops). Multicast groups count as addresses.
    ///
    /// # Errors
    /// There are more than about 2000 addresses.
    pub fn receive_only_at(&self, addresses: &[Ipv4Addr]) -> io::Result<()> {
        attach(self.as_socket2(), addresses)
    }
}

/// Attaches a program of the classic Berkeley Packet Filter, see
/// [`UdpSocket::receive_only_at`].
///
/// The kernel runs it on each datagram, with the UDP header at offset 0.
pub(crate) fn attach(socket: &Socket, addresses: &[Ipv4Addr]) -> io::Result<()> {
    let mut program = vec![load(libc::BPF_ABS, IP_DESTINATION)];
    for address in addresses {
        program.extend([skip_unless(address.to_bits(), 1), ACCEPT]);
    }
    program.extend([
        skip_unless(Ipv4Addr::LOCALHOST.to_bits(), 3),
        load(libc::BPF_LEN, 0),
        skip_unless(UDP_HEADER_BYTES, 1),
        ACCEPT,
        DROP,
    ]);
    if program.len() > libc::BPF_MAXINSNS as usize {
        let text = format!("cannot restrict a socket to {} addresses", addresses.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    socket.attach_filter(&program)
}

/// The destination in the IPv4 header, which precedes the UDP header.
const IP_DESTINATION: c_int = libc::SKF_NET_OFF + 16;
const UDP_HEADER_BYTES: u32 = 8;

const ACCEPT: SockFilter = SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, u32::MAX);
const DROP: SockFilter = SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, 0);

/// Loads a 32-bit number.
fn load(mode: u32, offset: c_int) -> SockFilter {
    SockFilter::new((libc::BPF_LD | libc::BPF_W | mode) as u16, 0, 0, offset.cast_unsigned())
}

/// Skips `count` instructions unless the loaded number equals `value`.
fn skip_unless(value: u32, count: u8) -> SockFilter {
    SockFilter::new((libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, 0, count, value)
}
