//! The host's network interfaces.

use std::ffi::c_char;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::{SockaddrIn, SockaddrStorage};
use socket2::{Domain, Socket, Type};

/// An IPv4 address of the host and its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// `lo`, `eth0`, ...
    pub name: String,
    /// The kernel's index of the interface.
    pub index: u32,
    /// The address.
    pub address: Ipv4Addr,
    /// The network part of the address.
    pub netmask: Ipv4Addr,
    /// Whether the interface is up.
    pub is_up: bool,
    /// Whether it can carry packets now (`IFF_LOWER_UP` and not `IFF_DORMANT`): the cable is
    /// plugged in, the radio link stands.
    ///
    /// `IFF_RUNNING` says the same, but if a link changes often, the kernel updates that only once
    /// per second.
    pub has_carrier: bool,
    /// Whether it is a loopback interface.
    pub is_loopback: bool,
    /// Whether it claims to support multicast. Loopback does not, but does support it.
    pub is_multicast: bool,
    /// The largest IP packet, in bytes with headers.
    pub mtu: usize,
}

/// Returns the IPv4 addresses of this host (of this network namespace), one entry each.
///
/// An interface with two addresses is listed twice.
///
/// # Errors
/// The process is out of memory or file descriptors.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    // Any socket will do for requests about interfaces.
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    let mut found = Vec::new();
    for entry in getifaddrs()? {
        let Some(address) = entry.address.as_ref().and_then(ipv4) else { continue };
        // An interface that disappears meanwhile is left out.
        let Some((index, mtu)) = index_and_mtu(socket.as_fd(), &entry.interface_name) else { continue };
        found.push(Interface {
            index,
            address,
            netmask: entry.netmask.as_ref().and_then(ipv4).unwrap_or(Ipv4Addr::BROADCAST),
            is_up: entry.flags.contains(InterfaceFlags::IFF_UP),
            has_carrier: entry.flags.contains(InterfaceFlags::IFF_LOWER_UP)
                && !entry.flags.contains(InterfaceFlags::IFF_DORMANT),
            is_loopback: entry.flags.contains(InterfaceFlags::IFF_LOOPBACK),
            is_multicast: entry.flags.contains(InterfaceFlags::IFF_MULTICAST),
            mtu,
            name: entry.interface_name,
        });
    }
    Ok(found)
}

fn ipv4(address: &SockaddrStorage) -> Option<Ipv4Addr> {
    address.as_sockaddr_in().map(SockaddrIn::ip)
}

/// Returns index and MTU of the interface `name`, by ioctl: /sys may show another network
/// namespace.
fn index_and_mtu(fd: BorrowedFd<'_>, name: &str) -> Option<(u32, usize)> {
    // SAFETY: `ifreq` is made of integers, byte arrays, pointers and unions of these; all zeros is
    // a valid value of each.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // One byte is left for the terminating NUL.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.as_bytes()) {
        *to = *from as c_char;
    }
    // SAFETY: both requests read the name in `request` and write an `int` to its union, which is a
    // live local; any bits there are a valid `int`.
    unsafe {
        if libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFINDEX as _, &raw mut request) != 0 {
            return None;
        }
        let index = request.ifr_ifru.ifru_ifindex;
        if libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) != 0 {
            return None;
        }
        Some((index as u32, request.ifr_ifru.ifru_mtu as usize))
    }
}
