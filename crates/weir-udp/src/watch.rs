//! Notices changes of the host's network interfaces.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

/// Most notifications that one [`NetworkWatch::drain`] discards. The next [`crate::poll`] returns
/// at once if more are there.
const DRAIN_MAX: usize = 256;

/// Becomes readable when an interface or an IPv4 address of this network namespace changes
/// (rtnetlink(7)). For use with [`crate::poll`].
///
/// It says only that something has changed: a notification can be lost, so its content is no
/// substitute for [`interfaces()`](crate::interfaces()).
#[derive(Debug)]
pub struct NetworkWatch {
    socket: OwnedFd,
}

impl NetworkWatch {
    /// Reports changes from now on. Create it before you list the interfaces, or a change between
    /// the two goes unnoticed.
    ///
    /// # Errors
    /// The process is out of file descriptors, or a sandbox forbids netlink.
    pub fn new() -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        let groups = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR;
        bind(&socket, &SocketAddrNetlink::new(0, groups.cast_unsigned()))?;
        Ok(Self { socket })
    }

    /// Discards the notifications so far. Returns whether there was one, or some were lost.
    pub fn drain(&self) -> bool {
        let mut is_changed = false;
        for _ in 0..DRAIN_MAX {
            // A notification that does not fit is cut off, and removed as a whole.
            match recv(&self.socket, &mut [0_u8; 16], RecvFlags::DONTWAIT) {
                Ok(_) => is_changed = true,
                // The socket's buffer was full, so the kernel dropped notifications.
                Err(Errno::NOBUFS) => is_changed = true,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        is_changed
    }
}

impl AsFd for NetworkWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
