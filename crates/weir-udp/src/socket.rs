//! The socket: setup, buffer sizes, and one datagram at a time.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::retry_on_intr;
use rustix::net::sockopt::set_ip_multicast_if_with_ifindex;
use rustix::net::{RecvFlags, SendFlags};
use socket2::{Domain, Protocol, Socket, Type};

use crate::UdpError;
use crate::{filter, sys};

/// Options for opening a socket. `SocketOptions { bind, ..Default::default() }` is a plain socket.
#[derive(Clone, Debug)]
pub struct SocketOptions {
    /// The local address; port 0 lets the kernel choose one. Its family is the socket's: an IPv6
    /// socket carries IPv6 only.
    pub bind: SocketAddr,
    /// Receives only datagrams that were sent to one of these addresses, see
    /// [`UdpSocket::receive_only_at`]; empty: to any that the socket is bound to. IPv4 only.
    pub only_at: Vec<Ipv4Addr>,
    /// Shares the port with other sockets that set this (`SO_REUSEADDR`). Meant for multicast,
    /// where each of them receives every datagram; only one of them receives unicast.
    pub reuse_address: bool,
    /// Requested receive buffer in bytes; `None` keeps the host's default. The host may grant less:
    /// [`UdpSocket::granted_recv_buffer`] returns the result.
    pub recv_buffer: Option<usize>,
    /// Requested send buffer in bytes, as for `recv_buffer`.
    pub send_buffer: Option<usize>,
    /// Exceeds the host's limits of both buffers if the process may (`SO_RCVBUFFORCE`, `SO_SNDBUFFORCE`).
    pub force_buffers: bool,
    /// Lets the kernel coalesce equal datagrams of one sender (`UDP_GRO`). Only
    /// [`UdpSocket::recv_batch`] can separate them: leave it off when using [`UdpSocket::recv`].
    pub gro: bool,
    /// Uses `UDP_SEGMENT` for [`crate::Outgoing::segment`] if the kernel has it. Otherwise each
    /// datagram passes through the stack separately (`sendmmsg`).
    pub gso: bool,
    /// Polls the device for this many microseconds before a receive sleeps (`SO_BUSY_POLL`). Needs
    /// support by the driver; loopback and veth have none.
    pub busy_poll_us: Option<u32>,
    /// Sends multicast from the interface with this address; `None` uses the routing table.
    pub multicast_interface: Option<Ipv4Addr>,
    /// The same by interface index: two interfaces may have one address. With both, multicast leaves from the interface
    /// with the index, by default with the address as its source (IPv4).
    pub multicast_interface_index: Option<u32>,
    /// Delivers sent multicast to members on this host, too.
    pub multicast_loop: bool,
    /// Maximum number of hops of multicast.
    pub multicast_ttl: u32,
    /// The type-of-service byte of sent datagrams (`IP_TOS`, `IPV6_TCLASS`: DSCP in the upper six
    /// bits); `None`: 0.
    pub type_of_service: Option<u8>,
    /// Allows broadcast destinations (`SO_BROADCAST`), which the kernel refuses otherwise.
    pub broadcast: bool,
    /// Keeps the errors that ICMP reports about sent datagrams (`IP_RECVERR`), for
    /// [`UdpSocket::take_refusal`]. A send call may then fail because of an earlier datagram. IPv4 only.
    pub report_refusals: bool,
    /// Whether datagrams that are too long for the path are fragmented; IPv4 only. By default the kernel fragments what
    /// exceeds the MTU that it knows, and forbids routers to fragment what does not.
    pub fragments: Option<Fragments>,
    /// Lets the kernel record when each datagram arrives (`SO_TIMESTAMPNS`), for
    /// [`RecvBatch::stamped_ns`](crate::RecvBatch::stamped_ns). Enables timestamps for all packets
    /// received by the host.
    pub timestamps: bool,
}

impl SocketOptions {
    /// Options for a plain socket on `bind`.
    pub fn new(bind: impl Into<SocketAddr>) -> Self {
        Self {
            bind: bind.into(),
            only_at: Vec::new(),
            reuse_address: false,
            recv_buffer: None,
            send_buffer: None,
            force_buffers: true,
            gro: false,
            gso: true,
            busy_poll_us: None,
            multicast_interface: None,
            multicast_interface_index: None,
            multicast_loop: true,
            multicast_ttl: 1,
            type_of_service: None,
            broadcast: false,
            report_refusals: false,
            fragments: None,
            timestamps: false,
        }
    }
}

impl Default for SocketOptions {
    /// Options for a plain socket on all IPv4 addresses and a port chosen by the kernel.
    fn default() -> Self {
        Self::new(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))
    }
}

/// Who may fragment a datagram (`IP_MTU_DISCOVER`, ip(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fragments {
    /// This host and the routers on the path: the flag "don't fragment" is off.
    Allowed,
    /// Nothing, whatever the kernel knows of the path: for probes.
    Never,
}

/// What a receive call does if no datagram has arrived yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// Sleeps until a datagram arrives or the timeout of [`UdpSocket::set_recv_timeout`] passes.
    Block,
    /// Returns at once.
    DontWait,
}

/// A UDP socket, IPv4 or IPv6. All methods take `&self`: threads may share it, the kernel
/// serialises them.
#[derive(Debug)]
pub struct UdpSocket {
    socket: Socket,
    bound: SocketAddr,
    recv_buffer: usize,
    send_buffer: usize,
    gso: bool,
    gro: bool,
    /// The type of service of sent datagrams.
    type_of_service: AtomicU8,
    /// The current receive timeout in nanoseconds; 0: none.
    recv_timeout_ns: AtomicU64,
}

impl UdpSocket {
    /// Opens, configures and binds a socket.
    ///
    /// # Errors
    /// [`UdpError`] names the address and the remedy: the port is in use, the address is not local,
    /// an option needs a privilege.
    pub fn bind(options: &SocketOptions) -> Result<Self, UdpError> {
        let socket = Socket::new(Domain::for_address(options.bind), Type::DGRAM, Some(Protocol::UDP))
            .map_err(|source| UdpError::Open { source })?;
        let recv_buffer = grant(&socket, options.recv_buffer, &RECV_BUFFER, options.force_buffers)
            .map_err(|source| refused(options, "SO_RCVBUF", source))?;
        let send_buffer = grant(&socket, options.send_buffer, &SEND_BUFFER, options.force_buffers)
            .map_err(|source| refused(options, "SO_SNDBUF", source))?;
        configure(&socket, options)?;
        socket
            .bind(&options.bind.into())
            .map_err(|source| UdpError::Bind { address: options.bind, source })?;
        let bound = local_address(&socket).unwrap_or(options.bind);
        let gso = options.gso && sys::option(socket.as_fd(), libc::SOL_UDP, libc::UDP_SEGMENT).is_ok();
        let socket = Self {
            socket,
            bound,
            recv_buffer,
            send_buffer,
            gso,
            gro: options.gro,
            type_of_service: AtomicU8::new(options.type_of_service.unwrap_or(0)),
            recv_timeout_ns: AtomicU64::new(0),
        };
        if let Some(fragments) = options.fragments {
            socket.set_fragments(fragments).map_err(|source| refused(options, "IP_MTU_DISCOVER", source))?;
        }
        Ok(socket)
    }

    /// Returns the local address of an IPv4 socket.
    ///
    /// After [`connect`](Self::connect) of a socket bound to all addresses, it is the one chosen by
    /// the route to the peer. For IPv6 see [`local_address`](Self::local_address): here it is
    /// 0.0.0.0 with the port.
    pub fn local_addr(&self) -> SocketAddrV4 {
        match self.local_address() {
            SocketAddr::V4(address) => address,
            SocketAddr::V6(address) => SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, address.port()),
        }
    }

    /// Returns the local address, of either family.
    pub fn local_address(&self) -> SocketAddr {
        local_address(&self.socket).unwrap_or(self.bound)
    }

    /// Sets the peer: [`send`](Self::send) sends there, the kernel looks the route up once, and
    /// only the peer's datagrams are received from now on. Sends nothing.
    ///
    /// # Errors
    /// [`UdpError::Connect`] if there is no route.
    pub fn connect(&self, peer: impl Into<SocketAddr>) -> Result<(), UdpError> {
        let peer = peer.into();
        self.socket.connect(&peer.into()).map_err(|source| UdpError::Connect { address: peer, source })
    }

    /// Sets who may fragment datagrams, of an IPv4 socket.
    ///
    /// # Errors
    /// None known on an open socket.
    pub fn set_fragments(&self, fragments: Fragments) -> io::Result<()> {
        let value = match fragments {
            Fragments::Allowed => libc::IP_PMTUDISC_DONT,
            Fragments::Never => libc::IP_PMTUDISC_PROBE,
        };
        sys::set_option(self.as_fd(), libc::SOL_IP, libc::IP_MTU_DISCOVER, value)
    }

    /// Returns the type-of-service byte of datagrams that name none.
    #[inline]
    pub fn type_of_service(&self) -> u8 {
        self.type_of_service.load(Ordering::Relaxed)
    }

    /// Changes the type-of-service byte of datagrams that name none (`IP_TOS`), of an IPv4 socket. Makes a system call
    /// only if it differs from the current one.
    ///
    /// # Errors
    /// None known on an open socket.
    pub fn set_type_of_service(&self, type_of_service: u8) -> io::Result<()> {
        if self.type_of_service() != type_of_service {
            sys::set_option(self.as_fd(), libc::SOL_IP, libc::IP_TOS, type_of_service.into())?;
            self.type_of_service.store(type_of_service, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Has the kernel report the type of service of received datagrams (`IP_RECVTOS`), in
    /// [`Received::type_of_service`](crate::Received::type_of_service), of an IPv4 socket. Costs a control message per
    /// receive.
    ///
    /// Datagrams that differ in it are not coalesced (`UDP_GRO`): the kernel merges only packets with the same byte
    /// (net/ipv4/af_inet.c, `inet_gro_receive`), so that a congestion mark stays with its datagram. A train that
    /// the sender's kernel splits on this host, or that crosses a virtual link unsplit, is marked as a whole.
    ///
    /// # Errors
    /// None known on an open socket.
    pub fn report_type_of_service(&self) -> io::Result<()> {
        sys::set_option(self.as_fd(), libc::SOL_IP, libc::IP_RECVTOS, 1)
    }

    /// Has the kernel report when each datagram arrives, from now on, as
    /// [`SocketOptions::timestamps`](crate::SocketOptions) does from the beginning: it enables timestamps for all
    /// packets received by the host. Costs a control message per receive.
    ///
    /// # Errors
    /// None known on an open socket.
    pub fn report_arrivals(&self) -> io::Result<()> {
        sys::set_option(self.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
    }

    /// Returns the receive buffer in bytes, in the kernel's accounting.
    ///
    /// The kernel charges each datagram's complete buffer (`skb->truesize`, hundreds of bytes more
    /// than the payload) against it. About twice the requested number.
    pub fn granted_recv_buffer(&self) -> usize {
        self.recv_buffer
    }

    /// Returns the send buffer in bytes, accounted as for
    /// [`granted_recv_buffer`](Self::granted_recv_buffer).
    pub fn granted_send_buffer(&self) -> usize {
        self.send_buffer
    }

    /// Returns whether the kernel splits [`crate::Outgoing::segment`] (`UDP_SEGMENT`).
    pub fn gso_supported(&self) -> bool {
        self.gso
    }

    /// Returns whether datagrams may arrive coalesced (`UDP_GRO`).
    pub fn gro_enabled(&self) -> bool {
        self.gro
    }

    /// Returns the datagrams that this socket dropped since it was opened.
    ///
    /// Either its receive buffer was full, or the checksum was wrong (`SO_MEMINFO`). A coalesced
    /// train counts once. Wraps around.
    ///
    /// # Errors
    /// The kernel is older than 4.12.
    pub fn kernel_drops(&self) -> io::Result<u32> {
        let values: [u32; MEMINFO_VALUES] =
            sys::option_array(self.as_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO)?;
        Ok(values[MEMINFO_DROPS])
    }

    /// Limits how long a blocking receive sleeps; `None`: no limit.
    ///
    /// The kernel rounds up to its tick (1 to 10 ms): use [`crate::poll`] for short waits. Makes a
    /// system call only if `timeout` differs from the current one. Meant for a single receiving
    /// thread.
    ///
    /// # Errors
    /// None known on an open socket.
    pub fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        // The kernel counts microseconds and treats 0 as "none", so shorter times become 1.
        let timeout = timeout.map(|timeout| timeout.max(Duration::from_micros(1)));
        let ns = timeout.map_or(0, |timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        if self.recv_timeout_ns.load(Ordering::Relaxed) == ns {
            return Ok(());
        }
        self.socket.set_read_timeout(timeout)?;
        self.recv_timeout_ns.store(ns, Ordering::Relaxed);
        Ok(())
    }

    /// Sends one datagram to the connected peer by one `send(2)`. Blocks while the send buffer is
    /// full.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionRefused`] if an *earlier* datagram reached a closed port (this
    /// one was not sent); `EMSGSIZE` if it exceeds 65507 bytes.
    #[inline]
    pub fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        Ok(retry_on_intr(|| rustix::net::send(&self.socket, datagram, SendFlags::empty()))?)
    }

    /// Sends one datagram to `to` by one `sendto(2)`, from an unconnected socket.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    #[inline]
    pub fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
        Ok(retry_on_intr(|| rustix::net::sendto(&self.socket, datagram, SendFlags::empty(), &to))?)
    }

    /// Receives one datagram by one `recv(2)`; returns its length, at most `buffer.len()`. The rest
    /// of a longer one is lost.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if none arrived in time; [`io::ErrorKind::ConnectionRefused`]
    /// if an earlier send of this connected socket reached a closed port.
    #[inline]
    pub fn recv(&self, buffer: &mut [u8], wait: Wait) -> io::Result<usize> {
        let flags = match wait {
            Wait::Block => RecvFlags::empty(),
            Wait::DontWait => RecvFlags::DONTWAIT,
        };
        let (len, _) = retry_on_intr(|| rustix::net::recv(&self.socket, &mut *buffer, flags))?;
        Ok(len)
    }

    /// Ends receive calls that wait on this socket, for ever: they, and all later ones, return an empty datagram once
    /// the receive buffer is empty. The socket can still send.
    pub fn end_receiving(&self) {
        // Linux does this for unconnected sockets too, and calls it an error (ENOTCONN).
        let _ = self.socket.shutdown(std::net::Shutdown::Read);
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

/// A socket buffer option: the one that respects the host's limit and reads back the result, and
/// the one with which a privileged process may exceed the limit.
struct BufferOption {
    plain: i32,
    force: i32,
}

const RECV_BUFFER: BufferOption = BufferOption { plain: libc::SO_RCVBUF, force: libc::SO_RCVBUFFORCE };
const SEND_BUFFER: BufferOption = BufferOption { plain: libc::SO_SNDBUF, force: libc::SO_SNDBUFFORCE };

/// `SO_MEMINFO` returns nine numbers (include/uapi/linux/sock_diag.h); the last is the drop
/// counter.
const MEMINFO_VALUES: usize = 9;
const MEMINFO_DROPS: usize = 8;

/// Requests a buffer size and returns what the kernel granted.
fn grant(socket: &Socket, asked: Option<usize>, option: &BufferOption, may_force: bool) -> io::Result<usize> {
    let fd = socket.as_fd();
    let granted = || sys::option(fd, libc::SOL_SOCKET, option.plain).map(|size| size as usize);
    let Some(asked) = asked else { return granted() };
    // The kernel doubles the number, so half of an `int` is the maximum.
    let value = i32::try_from(asked).unwrap_or(i32::MAX).min(i32::MAX / 2);
    sys::set_option(fd, libc::SOL_SOCKET, option.plain, value)?;
    // Without clamping, the kernel reports double the number.
    if may_force && granted()? < value as usize * 2 {
        // Without CAP_NET_ADMIN this is refused, and the clamped size stays.
        let _ = sys::set_option(fd, libc::SOL_SOCKET, option.force, value);
    }
    granted()
}

/// Sets everything except the buffer sizes.
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

/// Sets options that only IPv4 has, or has under another name.
fn configure_v4(
    socket: &Socket,
    options: &SocketOptions,
    check: impl Fn(&'static str, io::Result<()>) -> Result<(), UdpError>,
) -> Result<(), UdpError> {
    if options.report_refusals {
        check("IP_RECVERR", sys::set_option(socket.as_fd(), libc::SOL_IP, libc::IP_RECVERR, 1))?;
    }
    if let Some(byte) = options.type_of_service {
        check("IP_TOS", socket.set_tos_v4(byte.into()))?;
    }
    if options.multicast_interface.is_some() || options.multicast_interface_index.is_some() {
        let address = options.multicast_interface.unwrap_or(Ipv4Addr::UNSPECIFIED);
        let index = options.multicast_interface_index.unwrap_or(0);
        let set = set_ip_multicast_if_with_ifindex(socket, &Ipv4Addr::UNSPECIFIED, &address, index);
        check("IP_MULTICAST_IF", set.map_err(io::Error::from))?;
    }
    check("IP_MULTICAST_LOOP", socket.set_multicast_loop_v4(options.multicast_loop))?;
    check("IP_MULTICAST_TTL", socket.set_multicast_ttl_v4(options.multicast_ttl))?;
    if !options.only_at.is_empty() {
        check("SO_ATTACH_FILTER", filter::attach(socket, &options.only_at))?;
    }
    // By default Linux delivers to a socket bound to all addresses the groups that *other* sockets
    // joined, on interfaces that this one does not use.
    check("IP_MULTICAST_ALL", socket.set_multicast_all_v4(false))
}

/// Sets options that only IPv6 has, or has under another name.
fn configure_v6(
    socket: &Socket,
    options: &SocketOptions,
    check: impl Fn(&'static str, io::Result<()>) -> Result<(), UdpError>,
) -> Result<(), UdpError> {
    check("IPV6_V6ONLY", socket.set_only_v6(true))?;
    if let Some(byte) = options.type_of_service {
        check("IPV6_TCLASS", socket.set_tclass_v6(byte.into()))?;
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
        "IP_MULTICAST_IF" => "no interface of this host has this address or number (ip -4 addr lists them)",
        "IPV6_MULTICAST_IF" => "no interface of this host has this number (ip link lists them)",
        "SO_ATTACH_FILTER" => "name fewer addresses",
        "IP_MULTICAST_TTL" | "IPV6_MULTICAST_HOPS" => "use a value from 0 to 255",
        "IPV6_MULTICAST_ALL" => "the kernel must be 4.20 or later",
        _ => "the kernel must be 4.12 or later",
    };
    UdpError::Option { option, advice, address: options.bind, source }
}

fn local_address(socket: &Socket) -> Option<SocketAddr> {
    socket.local_addr().ok()?.as_socket()
}
