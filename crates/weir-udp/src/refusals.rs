//! What ICMP reports about sent datagrams (ip(7), `IP_RECVERR`).

use std::io;
use std::mem::size_of;
use std::net::SocketAddrV4;
use std::os::fd::AsFd;

use crate::UdpSocket;
use crate::control_message::parse_error;
use crate::sys;

/// What was reported about a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its destination.
    pub to: SocketAddrV4,
    /// The path takes IP packets of so many bytes (ICMP fragmentation needed). `None`: the destination's host has no
    /// socket on that port (ICMP port unreachable).
    pub mtu: Option<u32>,
}

impl UdpSocket {
    /// Takes the next report that a datagram of this socket was refused. `None`: there is no further one.
    /// Other reports are skipped.
    ///
    /// Needs [`SocketOptions::report_refusals`](crate::SocketOptions::report_refusals). The kernel passes only reports
    /// that quote a datagram from this socket's address.
    pub fn take_refusal(&self) -> Option<Refusal> {
        loop {
            let mut name = sys::EMPTY_SOCKADDR;
            let mut byte = 0_u8;
            let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
            let mut control = ErrorControl([0; ErrorControl::LEN]);
            let mut header = sys::empty_header();
            header.msg_name = (&raw mut name).cast();
            header.msg_namelen = size_of::<libc::sockaddr_in>() as _;
            header.msg_iov = &raw mut part;
            header.msg_iovlen = 1;
            header.msg_control = control.0.as_mut_ptr().cast();
            header.msg_controllen = ErrorControl::LEN as _;
            let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
            // SAFETY: the header's pointers lead to locals that live through the call and are not used meanwhile, with
            // their true lengths.
            let received = unsafe { sys::recvmsg(self.as_fd(), &raw mut header, flags) };
            if received < 0 {
                if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return None;
            }
            let len = header.msg_controllen.min(ErrorControl::LEN);
            let mtu = match parse_error(&control.0[..len]) {
                Some((libc::ECONNREFUSED, _)) => None,
                Some((libc::EMSGSIZE, mtu)) => Some(mtu),
                _ => continue,
            };
            return Some(Refusal { to: sys::from_sockaddr(&name), mtu });
        }
    }
}

/// Room for the control messages of a report: a `sock_extended_err` with an address, and others.
#[repr(C, align(8))]
struct ErrorControl([u8; Self::LEN]);

impl ErrorControl {
    const LEN: usize = 256;
}
