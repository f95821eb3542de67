//! Socket options and addresses in the kernel's form, where socket2 has no call.

use std::ffi::c_int;
use std::io;
use std::mem::size_of;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sets an option whose value is one `int`.
pub(crate) fn set_option(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: `fd` is open during the call (it is borrowed), and the kernel reads exactly
    // `size_of::<c_int>()` bytes from `value`, which is on the stack.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option whose value is an array of `N` 32-bit numbers; numbers that the kernel omits are
/// 0.
pub(crate) fn option_array<const N: usize>(
    fd: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
) -> io::Result<[u32; N]> {
    let mut value = [0_u32; N];
    let mut len = size_of::<[u32; N]>() as libc::socklen_t;
    // SAFETY: `fd` is open during the call, `value` has room for `len` bytes, and every bit pattern
    // is a valid `u32`, so whatever part the kernel writes leaves it initialised.
    let result =
        unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut len) };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option whose value is one `int`.
pub(crate) fn option(fd: BorrowedFd<'_>, level: c_int, name: c_int) -> io::Result<c_int> {
    option_array::<1>(fd, level, name).map(|[value]| value as c_int)
}

/// Sets the scheduling policy (`SCHED_FIFO`, `SCHED_IDLE`) and priority of a thread; 0 is the
/// calling thread.
pub(crate) fn set_scheduler(thread: i32, policy: c_int, priority: i32) -> io::Result<()> {
    // SAFETY: all bytes of the structure are plain numbers (some systems have more of them than the
    // priority).
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: the kernel only reads the structure, which is on the stack, and checks the thread's
    // number.
    let result = unsafe { libc::sched_setscheduler(thread, policy, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes an open `/dev/net/tun` a device of this name, for packets without headers of the kernel's.
pub(crate) fn create_tun(fd: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    // SAFETY: `ifreq` is made of integers and unions of them; all zeros is a valid value of each.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    let room = request.ifr_name.len() - 1;
    if name.is_empty() || name.len() > room {
        let text = format!("`{name}` cannot be the name of a device: it has 1 to {room} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        // Signed on x86-64, unsigned on AArch64.
        *to = libc::c_char::from_ne_bytes([from]);
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: `fd` is open during the call (it is borrowed), and the kernel reads and writes one
    // `ifreq`, which is on the stack.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Converts an address to the kernel's form.
#[inline]
pub(crate) fn to_sockaddr(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
        sin_zero: [0; 8],
    }
}

/// Converts an address from the kernel's form.
#[inline]
pub(crate) fn from_sockaddr(address: &libc::sockaddr_in) -> SocketAddrV4 {
    let ip = Ipv4Addr::from(address.sin_addr.s_addr.to_ne_bytes());
    SocketAddrV4::new(ip, u16::from_be(address.sin_port))
}

/// An address of all zeros: a buffer for the kernel.
pub(crate) const EMPTY_SOCKADDR: libc::sockaddr_in =
    libc::sockaddr_in { sin_family: 0, sin_port: 0, sin_addr: libc::in_addr { s_addr: 0 }, sin_zero: [0; 8] };

/// A message header of all zeros: no address, no parts, no control messages.
pub(crate) fn empty_header() -> libc::msghdr {
    // SAFETY: `msghdr` is made of integers and raw pointers only (some libcs add private padding
    // fields, hence no literal), and all zeros is a valid value of each.
    unsafe { std::mem::zeroed() }
}

/// Calls `sendmsg(2)` with `MSG_DONTWAIT`; see [`sendmsg`].
///
/// # Safety
/// As for [`sendmsg`].
pub(crate) unsafe fn sendmsg_now(fd: BorrowedFd<'_>, header: *const libc::msghdr) -> libc::c_long {
    // SAFETY: ensured by the caller.
    unsafe { libc::syscall(libc::SYS_sendmsg, fd.as_raw_fd(), header, libc::MSG_DONTWAIT) }
}

/// Calls `sendmsg(2)` without flags.
///
/// A direct system call: the C library's function is a cancellation point, whose bookkeeping costs
/// a process with threads about 40 ns per call.
///
/// # Safety
/// As for `sendmsg(2)`: everything that `header` leads to can be read during the call.
#[inline]
pub(crate) unsafe fn sendmsg(fd: BorrowedFd<'_>, header: *const libc::msghdr) -> libc::c_long {
    // SAFETY: ensured by the caller; the numbers are passed in the kernel's own types.
    unsafe { libc::syscall(libc::SYS_sendmsg, fd.as_raw_fd(), header, 0) }
}

/// Calls `sendmmsg(2)` without flags; see [`sendmsg`].
///
/// # Safety
/// As for `sendmmsg(2)`: `headers` leads to `count` headers that are exclusively the caller's, and
/// everything that they lead to can be read during the call.
#[inline]
pub(crate) unsafe fn sendmmsg(fd: BorrowedFd<'_>, headers: *mut libc::mmsghdr, count: usize) -> libc::c_long {
    // SAFETY: ensured by the caller.
    unsafe { libc::syscall(libc::SYS_sendmmsg, fd.as_raw_fd(), headers, count, 0) }
}

/// Calls `recvmsg(2)`; see [`sendmsg`].
///
/// # Safety
/// As for `recvmsg(2)`: everything that `header` leads to is exclusively the caller's during the
/// call.
#[inline]
pub(crate) unsafe fn recvmsg(fd: BorrowedFd<'_>, header: *mut libc::msghdr, flags: c_int) -> libc::c_long {
    // SAFETY: ensured by the caller.
    unsafe { libc::syscall(libc::SYS_recvmsg, fd.as_raw_fd(), header, flags) }
}

/// Calls `recvmmsg(2)` without a timeout; see [`sendmsg`].
///
/// # Safety
/// As for `recvmmsg(2)`: `headers` leads to `count` headers, and they and everything that they lead
/// to are exclusively the caller's during the call.
#[inline]
pub(crate) unsafe fn recvmmsg(
    fd: BorrowedFd<'_>,
    headers: *mut libc::mmsghdr,
    count: usize,
    flags: c_int,
) -> libc::c_long {
    const NO_TIMEOUT: *mut libc::timespec = std::ptr::null_mut();
    // SAFETY: ensured by the caller.
    unsafe { libc::syscall(libc::SYS_recvmmsg, fd.as_raw_fd(), headers, count, flags, NO_TIMEOUT) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_survives_the_kernel_form() {
        let address = SocketAddrV4::new(Ipv4Addr::new(239, 255, 0, 1), 7400);
        let kernel = to_sockaddr(address);
        assert_eq!(from_sockaddr(&kernel), address);
        assert_eq!(kernel.sin_port.to_ne_bytes(), [0x1c, 0xe8], "the port travels big-endian");
        assert_eq!(kernel.sin_addr.s_addr.to_ne_bytes(), [239, 255, 0, 1]);
    }
}
