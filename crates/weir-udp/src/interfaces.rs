//! The host's network interfaces.

use std::ffi::{CStr, c_char};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use socket2::{Domain, Socket, Type};

use crate::sys;

/// One IPv4 address of the host and the interface that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// `lo`, `eth0`, ...
    pub name: String,
    /// The kernel's number of the interface.
    pub index: u32,
    /// The address.
    pub address: Ipv4Addr,
    /// Which part of the address names the network.
    pub netmask: Ipv4Addr,
    /// The interface is switched on.
    pub is_up: bool,
    /// It leads back to this host.
    pub is_loopback: bool,
    /// It carries multicast. Loopback says no and does so nevertheless.
    pub is_multicast: bool,
    /// The largest IP packet it carries, in bytes with headers.
    pub mtu: usize,
}

/// The IPv4 addresses of this host (of this network namespace), one entry each; an interface with
/// two addresses comes twice.
///
/// # Errors
/// The process is out of memory or file descriptors.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    // Any socket will do for asking about interfaces.
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    let list = AddressList::new()?;
    let mut found = Vec::new();
    let mut next = list.0;
    while !next.is_null() {
        // SAFETY: `next` is an entry of the list that `getifaddrs` made, which lives until `list` is
        // dropped.
        let entry = unsafe { &*next };
        next = entry.ifa_next;
        // SAFETY: the entry's address pointers are null or point to a socket address of the family
        // that they name, for as long as the list lives.
        let (address, netmask) = unsafe { (ipv4(entry.ifa_addr), ipv4(entry.ifa_netmask)) };
        let Some(address) = address else { continue };
        // SAFETY: `ifa_name` of every entry is a NUL-terminated string that lives as long as the list.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        let has = |flag: i32| entry.ifa_flags & flag as u32 != 0;
        // An interface that vanishes while we ask is left out.
        let Some((index, mtu)) = index_and_mtu(socket.as_fd(), name) else { continue };
        found.push(Interface {
            name: name.to_string_lossy().into_owned(),
            index,
            address,
            netmask: netmask.unwrap_or(Ipv4Addr::BROADCAST),
            is_up: has(libc::IFF_UP),
            is_loopback: has(libc::IFF_LOOPBACK),
            is_multicast: has(libc::IFF_MULTICAST),
            mtu,
        });
    }
    Ok(found)
}

/// What `getifaddrs` allocated.
struct AddressList(*mut libc::ifaddrs);

impl AddressList {
    fn new() -> io::Result<Self> {
        let mut first = std::ptr::null_mut();
        // SAFETY: the call writes one pointer to `first`.
        if unsafe { libc::getifaddrs(&raw mut first) } == 0 {
            Ok(Self(first))
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

impl Drop for AddressList {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `getifaddrs` and is freed once; nothing borrows from it after
        // its owner is gone.
        unsafe { libc::freeifaddrs(self.0) };
    }
}

/// The IPv4 address at `address`, if it is one.
///
/// # Safety
/// `address` is null or points to a socket address of the family that it names.
unsafe fn ipv4(address: *const libc::sockaddr) -> Option<Ipv4Addr> {
    // SAFETY: not null here, and a socket address of any family has the family first.
    let family = unsafe { address.as_ref() }?.sa_family;
    if i32::from(family) != libc::AF_INET {
        return None;
    }
    // SAFETY: the family says that this is a `sockaddr_in`; the copy asks nothing of its alignment.
    let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
    Some(*sys::from_sockaddr(&address).ip())
}

/// Index and MTU of the interface `name`, by ioctl: /sys would show those of another network
/// namespace when it was mounted there.
fn index_and_mtu(fd: BorrowedFd<'_>, name: &CStr) -> Option<(u32, usize)> {
    // SAFETY: `ifreq` is made of integers, byte arrays, pointers and unions of these; all zeros is a
    // valid value of each.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // One byte stays for the terminating NUL.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.to_bytes()) {
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
