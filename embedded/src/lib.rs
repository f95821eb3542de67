//! The protocol crates above [smoltcp], a network stack for systems without an operating system.
//!
//! [`SmoltcpDriver`] is the [`Driver`] of a [`Station`](weir_rtps::station::Station). It works with every Ethernet
//! device that smoltcp has; nothing in it needs the standard library but the clock, which is a function that the
//! program gives. The program `talker` uses it above a TAP device of Linux.
//!
//! It allocates when it is made, and never after. A datagram that it does not send or receive is counted:
//! [`SmoltcpDriver::counters`].
//!
//! [smoltcp]: https://docs.rs/smoltcp

#![forbid(unsafe_code)]

extern crate alloc;

mod senders;

use alloc::vec;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};

use senders::{Senders, Sent};
use smoltcp::iface::{
    Config, Interface, MulticastError, PollIngressSingleResult, SocketHandle, SocketSet, SocketStorage,
};
use smoltcp::phy::Device;
use smoltcp::socket::udp;
use smoltcp::storage::{PacketBuffer, PacketMetadata};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, EthernetFrame, HardwareAddress, IpAddress, IpCidr};
use weir_rtps::driver::{Driver, Parts, Port};
use weir_rtps::time::Time;

/// Sockets of smoltcp, and the program's clock.
pub struct SmoltcpDriver<D: Device, C: FnMut() -> Time> {
    device: D,
    clock: C,
    interface: Interface,
    sockets: SocketSet<'static>,
    /// The sockets that receive, in the order of [`Port`].
    receivers: [SocketHandle; 3],
    senders: Senders,
    /// Datagrams of user data from this host to itself, which no device returns.
    own: PacketBuffer<'static, ()>,
    host: Host,
    datagram_max: usize,
    counters: DriverCounters,
}

/// Datagrams that were lost here. The protocol repairs samples; announcements are repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriverCounters {
    /// Not sent: longer than a packet of the device.
    pub too_long: u64,
    /// Not sent: the destination is in no network of the host, or cannot be a destination.
    pub unreachable: u64,
    /// Not sent: the queue to the destination was full.
    pub queue_full: u64,
    /// Not sent: the destination has not answered ARP, and others needed its queue.
    pub unresolved: u64,
    /// Not received: longer than the station's buffer.
    pub received_too_long: u64,
}

/// Why the stack cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackError {
    /// A port is 0, or used by another socket.
    Bind(udp::BindError),
    /// The group cannot be joined: smoltcp holds four.
    Group(MulticastError),
}

/// The addresses of the host that a driver makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Of its network card.
    pub hardware: [u8; 6],
    /// Its address.
    pub address: Ipv4Addr,
    /// Bits of the network's part of it.
    pub prefix_len: u8,
    /// Ports of discovery by unicast, discovery by multicast, and user data.
    pub ports: [u16; 3],
}

impl<D: Device, C: FnMut() -> Time> SmoltcpDriver<D, C> {
    /// Makes a host at a device.
    ///
    /// # Errors
    /// A port cannot be bound.
    pub fn new(mut device: D, mut clock: C, host: Host) -> Result<Self, StackError> {
        let now = instant(clock());
        let packet_max = device.capabilities().max_transmission_unit;
        let datagram_max = packet_max.saturating_sub(EthernetFrame::<&[u8]>::header_len() + IP_UDP_BYTES);
        let config = Config::new(HardwareAddress::Ethernet(EthernetAddress(host.hardware)));
        let mut interface = Interface::new(config, &mut device, now);
        interface.update_ip_addrs(|addresses| {
            // The list is empty, and holds two.
            let _ = addresses.push(IpCidr::new(IpAddress::Ipv4(host.address), host.prefix_len));
        });
        let count = host.ports.len() + senders::COUNT;
        let storage: Vec<SocketStorage<'static>> = (0..count).map(|_| SocketStorage::EMPTY).collect();
        let mut sockets = SocketSet::new(storage);
        // A datagram goes to the first socket of its port: those that receive come first.
        let receivers =
            host.ports.map(|_| sockets.add(udp::Socket::new(queue(PACKETS, datagram_max), queue(0, 0))));
        for (handle, port) in receivers.into_iter().zip(host.ports) {
            sockets.get_mut::<udp::Socket<'_>>(handle).bind(port).map_err(StackError::Bind)?;
        }
        let senders = Senders::new(&mut sockets, datagram_max);
        let own = queue(PACKETS, datagram_max);
        let counters = DriverCounters::default();
        Ok(Self { device, clock, interface, sockets, receivers, senders, own, host, datagram_max, counters })
    }

    /// Returns how long nothing is due in the stack, and nothing waits to be received; `None`: until something arrives.
    pub fn idle_time(&mut self) -> Option<core::time::Duration> {
        // The stack takes several datagrams from the device at a time, for any of the sockets.
        let waits = |handle: &SocketHandle| self.sockets.get::<udp::Socket<'_>>(*handle).can_recv();
        if !self.own.is_empty() || self.receivers.iter().any(waits) {
            return Some(core::time::Duration::ZERO);
        }
        let now = instant((self.clock)());
        self.interface.poll_delay(now, &self.sockets).map(Into::into)
    }

    /// The device: to wait for what arrives.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Returns counts of datagrams that were lost here.
    pub fn counters(&self) -> DriverCounters {
        self.counters
    }

    /// Passes packets between device and sockets: so many at most that a flood does not keep the program here.
    fn run_stack(&mut self) {
        let now = instant((self.clock)());
        let (device, sockets) = (&mut self.device, &mut self.sockets);
        for _ in 0..PACKETS {
            let one = self.interface.poll_ingress_single(now, device, sockets);
            if matches!(one, PollIngressSingleResult::None) {
                break;
            }
        }
        self.interface.poll_egress(now, device, sockets);
    }

    /// Queues a datagram for this host. A participant sends itself user data only.
    fn send_to_self(&mut self, port: u16, datagram: Parts<'_>) {
        if port != self.host.ports[Port::User as usize] {
            self.counters.unreachable += 1;
        } else if let Ok(room) = self.own.enqueue(datagram[0].len() + datagram[1].len(), ()) {
            copy(datagram, room);
        } else {
            self.counters.queue_full += 1;
        }
    }

    /// Whether packets can be sent to an address: there is no router.
    fn is_reachable(&self, to: Ipv4Addr) -> bool {
        let networks = self.interface.ip_addrs();
        to.is_multicast() || networks.iter().any(|network| network.contains_addr(&IpAddress::Ipv4(to)))
    }
}

impl<D: Device, C: FnMut() -> Time> Driver for SmoltcpDriver<D, C> {
    type Error = StackError;

    fn now(&mut self) -> Time {
        (self.clock)()
    }

    fn datagram_max(&self) -> usize {
        self.datagram_max
    }

    fn send(&mut self, from: Port, to: SocketAddrV4, datagram: Parts<'_>) -> Result<(), StackError> {
        let len = datagram[0].len() + datagram[1].len();
        if len > self.datagram_max {
            self.counters.too_long += 1;
            return Ok(());
        }
        if *to.ip() == self.host.address {
            self.send_to_self(to.port(), datagram);
            return Ok(());
        }
        if !self.is_reachable(*to.ip()) {
            self.counters.unreachable += 1;
            return Ok(());
        }
        let port = self.host.ports[from as usize];
        match self.senders.send(&mut self.sockets, port, to, datagram) {
            Sent::Queued { unresolved } => self.counters.unresolved += unresolved,
            Sent::Full => self.counters.queue_full += 1,
            Sent::Unreachable => self.counters.unreachable += 1,
        }
        self.run_stack();
        Ok(())
    }

    fn receive(&mut self, at: Port, buffer: &mut [u8]) -> Result<Option<(usize, SocketAddrV4)>, StackError> {
        if at == Port::User
            && let Ok(((), datagram)) = self.own.dequeue()
        {
            let from = SocketAddrV4::new(self.host.address, self.host.ports[Port::User as usize]);
            if let Some(room) = buffer.get_mut(..datagram.len()) {
                room.copy_from_slice(datagram);
                return Ok(Some((datagram.len(), from)));
            }
            self.counters.received_too_long += 1;
        }
        let handle = self.receivers[at as usize];
        if !self.sockets.get::<udp::Socket<'_>>(handle).can_recv() {
            self.run_stack();
        }
        let socket = self.sockets.get_mut::<udp::Socket<'_>>(handle);
        while let Ok((datagram, metadata)) = socket.recv() {
            let IpAddress::Ipv4(address) = metadata.endpoint.addr;
            if let Some(room) = buffer.get_mut(..datagram.len()) {
                room.copy_from_slice(datagram);
                return Ok(Some((datagram.len(), SocketAddrV4::new(address, metadata.endpoint.port))));
            }
            self.counters.received_too_long += 1;
        }
        Ok(None)
    }

    fn join_multicast(&mut self, group: Ipv4Addr) -> Result<(), StackError> {
        self.interface.join_multicast_group(IpAddress::Ipv4(group)).map_err(StackError::Group)?;
        self.run_stack();
        Ok(())
    }
}

fn instant(time: Time) -> Instant {
    Instant::from_micros((time.0 / 1_000) as i64)
}

/// Copies a datagram to a place of its length.
fn copy([head, tail]: Parts<'_>, room: &mut [u8]) {
    room[..head.len()].copy_from_slice(head);
    room[head.len()..].copy_from_slice(tail);
}

/// A queue for so many datagrams of a length.
fn queue<H>(packets: usize, len: usize) -> PacketBuffer<'static, H> {
    let metadata: Vec<PacketMetadata<H>> = (0..packets).map(|_| PacketMetadata::EMPTY).collect();
    PacketBuffer::new(metadata, vec![0; packets * len])
}

/// Datagrams in a queue that are received.
const PACKETS: usize = 16;
/// The headers of a datagram.
const IP_UDP_BYTES: usize = 28;
