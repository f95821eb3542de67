//! The socket itself: set-up, buffer sizes, and one datagram at a time.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::retry_on_intr;
use rustix::net::{RecvFlags, SendFlags};
use socket2::{Domain, Protocol, Socket, Type};

use crate::UdpError;
use crate::sys;

/// How a socket is to be opened. `SocketOptions { bind, ..Default::default() }` is a plain socket.
#[derive(Clone, Debug)]
pub struct SocketOptions {
    /// The local address; port 0 lets the kernel choose one. Its family is the socket's: one on IPv6 addresses
    /// carries IPv6 only.
    pub bind: SocketAddr,
    /// Shares the port with other sockets that say so too (`SO_REUSEADDR`). Meant for multicast,
    /// where each of them gets every datagram; of unicast datagrams only one gets any.
    pub reuse_address: bool,
    /// Bytes of receive buffer to ask for; `None` keeps the host's default. More than the host
    /// allows is not an error: [`UdpSocket::granted_recv_buffer`] says what was granted.
    pub recv_buffer: Option<usize>,
    /// Bytes of send buffer to ask for, as for `recv_buffer`.
    pub send_buffer: Option<usize>,
    /// Lets the kernel hand over equal datagrams of one sender in one piece (`UDP_GRO`). Only
    /// [`UdpSocket::recv_batch`] can tell them apart again: leave it off when using
    /// [`UdpSocket::recv`].
    pub gro: bool,
    /// Uses `UDP_SEGMENT` where [`crate::Outgoing::segment`] asks for it and the kernel has it. Off:
    /// each datagram takes its own way through the stack (`sendmmsg`).
    pub gso: bool,
    /// Polls the device for so many microseconds before a receive sleeps (`SO_BUSY_POLL`). It needs
    /// a driver that can do it; loopback and veth can not.
    pub busy_poll_us: Option<u32>,
    /// Sends multicast from the interface with this address; `None` leaves it to the routes.
    pub multicast_interface: Option<Ipv4Addr>,
    /// The same by the interface's number, for IPv6.
    pub multicast_interface_index: Option<u32>,
    /// Multicast that we send reaches members on this host too.
    pub multicast_loop: bool,
    /// How many routers multicast passes, plus one.
    pub multicast_ttl: u32,
    /// The type-of-service octet of what is sent (`IP_TOS`, `IPV6_TCLASS`: DSCP in the upper six bits);
    /// `None` leaves it at 0.
    pub type_of_service: Option<u8>,
    /// May send to broadcast addresses (`SO_BROADCAST`); the kernel refuses it otherwise.
    pub broadcast: bool,
    /// Has the kernel note when each datagram comes in (`SO_TIMESTAMPNS`), for
    /// [`RecvBatch::stamped_ns`](crate::RecvBatch::stamped_ns). The whole host then stamps what it receives.
    pub timestamps: bool,
}

impl SocketOptions {
    /// A plain socket on `bind`.
    pub fn new(bind: impl Into<SocketAddr>) -> Self {
        Self {
            bind: bind.into(),
            reuse_address: false,
            recv_buffer: None,
            send_buffer: None,
            gro: false,
            gso: true,
            busy_poll_us: None,
            multicast_interface: None,
            multicast_interface_index: None,
            multicast_loop: true,
            multicast_ttl: 1,
            type_of_service: None,
            broadcast: false,
            timestamps: false,
        }
    }
}

impl Default for SocketOptions {
    /// A plain socket on every IPv4 address and a port of the kernel's choice.
    fn default() -> Self {
        Self::new(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))
    }
}

/// What a receive does when nothing has arrived yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// Sleeps until something arrives or the timeout of [`UdpSocket::set_recv_timeout`] passes.
    Block,
    /// Returns at once.
    DontWait,
}

/// A UDP socket, of IPv4 or IPv6. All methods take `&self`: threads may share it, the kernel serialises them.
#[derive(Debug)]
pub struct UdpSocket {
    socket: Socket,
    bound: SocketAddr,
    recv_buffer: usize,
    send_buffer: usize,
    gso: bool,
    gro: bool,
    /// The receive timeout in force, in nanoseconds; 0 = none.
    recv_timeout_ns: AtomicU64,
}

impl UdpSocket {
    /// Opens, configures and binds a socket.
    ///
    /// # Errors
    /// [`UdpError`] names the address and what to do: the port is in use, the address is not ours,
    /// an option needs a privilege.
    pub fn bind(options: &SocketOptions) -> Result<Self, UdpError> {
        let socket = Socket::new(Domain::for_address(options.bind), Type::DGRAM, Some(Protocol::UDP))
            .map_err(|source| UdpError::Open { source })?;
        let recv_buffer = grant(&socket, options.recv_buffer, &RECV_BUFFER)
            .map_err(|source| refused(options, "SO_RCVBUF", source))?;
        let send_buffer = grant(&socket, options.send_buffer, &SEND_BUFFER)
            .map_err(|source| refused(options, "SO_SNDBUF", source))?;
        configure(&socket, options)?;
        socket
            .bind(&options.bind.into())
            .map_err(|source| UdpError::Bind { address: options.bind, source })?;
        let bound = local_address(&socket).unwrap_or(options.bind);
        let gso = options.gso && sys::option(socket.as_fd(), libc::SOL_UDP, libc::UDP_SEGMENT).is_ok();
        Ok(Self {
            socket,
            bound,
            recv_buffer,
            send_buffer,
            gso,
            gro: options.gro,
            recv_timeout_ns: AtomicU64::new(0),
        })
    }

    /// The local address of an IPv4 socket. After [`connect`](Self::connect) of a socket bound to every
    /// address it is the one that the route to the peer chose. For IPv6 see
    /// [`local_address`](Self::local_address): here it is 0.0.0.0 with the port.
    pub fn local_addr(&self) -> SocketAddrV4 {
        match self.local_address() {
            SocketAddr::V4(address) => address,
            SocketAddr::V6(address) => SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, address.port()),
        }
    }

    /// The local address, of either family.
    pub fn local_address(&self) -> SocketAddr {
        local_address(&self.socket).unwrap_or(self.bound)
    }

    /// Fixes the peer: [`send`](Self::send) goes there, the kernel looks the route up once, and only
    /// the peer's datagrams are received from now on. Nothing is sent.
    ///
    /// # Errors
    /// [`UdpError::Connect`] when there is no route.
    pub fn connect(&self, peer: impl Into<SocketAddr>) -> Result<(), UdpError> {
        let peer = peer.into();
        self.socket.connect(&peer.into()).map_err(|source| UdpError::Connect { address: peer, source })
    }

    /// The receive buffer in bytes, as the kernel counts: it charges each datagram's whole buffer
    /// (`skb->truesize`, hundreds of bytes more than the payload) against it. About twice the number
    /// that was asked for.
    pub fn granted_recv_buffer(&self) -> usize {
        self.recv_buffer
    }

    /// The send buffer in bytes, counted as for [`granted_recv_buffer`](Self::granted_recv_buffer).
    pub fn granted_send_buffer(&self) -> usize {
        self.send_buffer
    }

    /// Whether [`crate::Outgoing::segment`] is done by the kernel (`UDP_SEGMENT`), not by us.
    pub fn gso_supported(&self) -> bool {
        self.gso
    }

    /// Whether datagrams may arrive coalesced (`UDP_GRO`).
    pub fn gro_enabled(&self) -> bool {
        self.gro
    }

    /// Datagrams that this socket dropped since it was opened, for want of room in its receive
    /// buffer or for a bad checksum (`SO_MEMINFO`). Counts what the kernel handles as one: a coalesced
    /// train is one. Wraps around.
    ///
    /// # Errors
    /// The kernel is older than 4.12.
    pub fn kernel_drops(&self) -> io::Result<u32> {
        let values: [u32; MEMINFO_VALUES] =
            sys::option_array(self.as_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO)?;
        Ok(values[MEMINFO_DROPS])
    }

    /// Bounds how long a blocking receive sleeps; `None` is for ever. The kernel rounds up to its
    /// tick (1 to 10 ms): use [`crate::poll`] for short waits. Costs a system call only when `timeout`
    /// differs from the one in force. Meant for the one thread that receives.
    ///
    /// # Errors
    /// None known on an open socket.
    pub fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        // The kernel counts microseconds and takes 0 for "none", so anything shorter becomes 1.
        let timeout = timeout.map(|timeout| timeout.max(Duration::from_micros(1)));
        let ns = timeout.map_or(0, |timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        if self.recv_timeout_ns.load(Ordering::Relaxed) == ns {
            return Ok(());
        }
        self.socket.set_read_timeout(timeout)?;
        self.recv_timeout_ns.store(ns, Ordering::Relaxed);
        Ok(())
    }

    /// Sends one datagram to the connected peer by one `send(2)`. Waits while the send buffer is full.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionRefused`] says that an *earlier* datagram met a closed port (this
    /// one was not sent); `EMSGSIZE` that it exceeds 65507 bytes.
    #[inline]
    pub fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        Ok(retry_on_intr(|| rustix::net::send(&self.socket, datagram, SendFlags::empty()))?)
    }

    /// Sends one datagram to `to` by one `sendto(2)`, of a socket that is not connected.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    #[inline]
    pub fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
        Ok(retry_on_intr(|| rustix::net::sendto(&self.socket, datagram, SendFlags::empty(), &to))?)
    }

    /// Receives one datagram by one `recv(2)`; returns its length, at most `buffer.len()`: the rest
    /// of a longer one is lost.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when nothing came in time;
    /// [`io::ErrorKind::ConnectionRefused`] when an earlier send of this connected socket met a
    /// closed port.
    #[inline]
    pub fn recv(&self, buffer: &mut [u8], wait: Wait) -> io::Result<usize> {
        let flags = match wait {
            Wait::Block => RecvFlags::empty(),
            Wait::DontWait => RecvFlags::DONTWAIT,
        };
        let (len, _) = retry_on_intr(|| rustix::net::recv(&self.socket, &mut *buffer, flags))?;
        Ok(len)
    }

    pub(crate) fn as_socket2(&self) -> &Socket {
        &self.socket
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for UdpSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// One of the two socket buffers: the option that respects the host's limit (which reads back what
/// is in force), and the one that a privileged process may use to exceed it.
struct BufferOption {
    plain: i32,
    force: i32,
}

const RECV_BUFFER: BufferOption = BufferOption { plain: libc::SO_RCVBUF, force: libc::SO_RCVBUFFORCE };
const SEND_BUFFER: BufferOption = BufferOption { plain: libc::SO_SNDBUF, force: libc::SO_SNDBUFFORCE };

/// `SO_MEMINFO` yields nine numbers (include/uapi/linux/sock_diag.h); the last is the drop counter.
const MEMINFO_VALUES: usize = 9;
const MEMINFO_DROPS: usize = 8;

/// Asks for a buffer size and returns what the kernel made of it.
fn grant(socket: &Socket, asked: Option<usize>, option: &BufferOption) -> io::Result<usize> {
    let fd = socket.as_fd();
    let granted = || sys::option(fd, libc::SOL_SOCKET, option.plain).map(|size| size as usize);
    let Some(asked) = asked else { return granted() };
    // The kernel doubles the number, so half of an `int` is the most that makes sense.
    let value = i32::try_from(asked).unwrap_or(i32::MAX).min(i32::MAX / 2);
    sys::set_option(fd, libc::SOL_SOCKET, option.plain, value)?;
    // Double the number is what the kernel reports when it was not clamped to the host's limit.
    if granted()? < value as usize * 2 {
        // Without CAP_NET_ADMIN this is refused, and then the clamped size stays.
        let _ = sys::set_option(fd, libc::SOL_SOCKET, option.force, value);
    }
    granted()
}

/// Sets everything but the buffer sizes.
fn configure(socket: &Socket, options: &SocketOptions) -> Result<(), UdpError> {
    let fd = socket.as_fd();
    let check = |option: &'static str, result: io::Result<()>| {
        result.map_err(|source| refused(options, option, source))
    };
    if options.reuse_address {
        check("SO_REUSEADDR", socket.set_reuse_address(true))?;
    }
    if let Some(us) = options.busy_poll_us {
        let us = i32::try_from(us).unwrap_or(i32::MAX);
        check("SO_BUSY_POLL", sys::set_option(fd, libc::SOL_SOCKET, libc::SO_BUSY_POLL, us))?;
    }
    if options.gro {
        check("UDP_GRO", sys::set_option(fd, libc::SOL_UDP, libc::UDP_GRO, 1))?;
    }
    if options.broadcast {
        check("SO_BROADCAST", socket.set_broadcast(true))?;
    }
    if options.timestamps {
        check("SO_TIMESTAMPNS", sys::set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1))?;
    }
    check("SO_RXQ_OVFL", sys::set_option(fd, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1))?;
    match options.bind {
        SocketAddr::V4(_) => configure_v4(socket, options, check),
        SocketAddr::V6(_) => configure_v6(socket, options, check),
    }
}

/// What only IPv4 has, or has by another name.
fn configure_v4(
    socket: &Socket,
    options: &SocketOptions,
    check: impl Fn(&'static str, io::Result<()>) -> Result<(), UdpError>,
) -> Result<(), UdpError> {
    if let Some(octet) = options.type_of_service {
        check("IP_TOS", socket.set_tos_v4(octet.into()))?;
    }
    if let Some(interface) = options.multicast_interface {
        check("IP_MULTICAST_IF", socket.set_multicast_if_v4(&interface))?;
    }
    check("IP_MULTICAST_LOOP", socket.set_multicast_loop_v4(options.multicast_loop))?;
    check("IP_MULTICAST_TTL", socket.set_multicast_ttl_v4(options.multicast_ttl))?;
    // Linux's default hands a socket bound to every address the groups that *other* sockets joined,
    // on interfaces that this one was never told to use.
    check("IP_MULTICAST_ALL", socket.set_multicast_all_v4(false))
}

/// What only IPv6 has, or has by another name.
fn configure_v6(
    socket: &Socket,
    options: &SocketOptions,
    check: impl Fn(&'static str, io::Result<()>) -> Result<(), UdpError>,
) -> Result<(), UdpError> {
    check("IPV6_V6ONLY", socket.set_only_v6(true))?;
    if let Some(octet) = options.type_of_service {
        check("IPV6_TCLASS", socket.set_tclass_v6(octet.into()))?;
    }
    if let Some(index) = options.multicast_interface_index {
        check("IPV6_MULTICAST_IF", socket.set_multicast_if_v6(index))?;
    }
    check("IPV6_MULTICAST_LOOP", socket.set_multicast_loop_v6(options.multicast_loop))?;
    check("IPV6_MULTICAST_HOPS", socket.set_multicast_hops_v6(options.multicast_ttl))?;
    check("IPV6_MULTICAST_ALL", socket.set_multicast_all_v6(false))
}

fn refused(options: &SocketOptions, option: &'static str, source: io::Error) -> UdpError {
    let advice = match option {
        "SO_BUSY_POLL" => "more than net.core.busy_read needs CAP_NET_ADMIN: run without busy polling",
        "UDP_GRO" => "the kernel must be 5.0 or later: run without GRO",
        "IP_MULTICAST_IF" => "no interface of this host has this address (ip -4 addr lists them)",
        "IPV6_MULTICAST_IF" => "no interface of this host has this number (ip link lists them)",
        "IP_MULTICAST_TTL" | "IPV6_MULTICAST_HOPS" => "it lies within 0 and 255",
        "IPV6_MULTICAST_ALL" => "the kernel must be 4.20 or later",
        _ => "the kernel must be 4.12 or later",
    };
    UdpError::Option { option, advice, address: options.bind, source }
}

fn local_address(socket: &Socket) -> Option<SocketAddr> {
    socket.local_addr().ok()?.as_socket()
}
