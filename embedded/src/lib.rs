//! The protocol crates above [smoltcp], a network stack for systems without an operating system.
//!
//! [`SmoltcpDriver`] is the [`Driver`] of a [`Station`](weir_rtps::station::Station). It works with every device that
//! smoltcp has; nothing in it needs the standard library but the clock, which is a function that the program gives. The
//! program `talker` uses it above a TAP device of Linux.
//!
//! [smoltcp]: https://docs.rs/smoltcp

#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec;
use core::net::{Ipv4Addr, SocketAddrV4};

use smoltcp::iface::{Config, Interface, MulticastError, SocketHandle, SocketSet, SocketStorage};
use smoltcp::phy::Device;
use smoltcp::socket::udp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr, IpEndpoint};
use weir_rtps::driver::{Driver, Parts, Port};
use weir_rtps::time::Time;

/// Sockets of smoltcp, and the program's clock.
pub struct SmoltcpDriver<D: Device, C: FnMut() -> Time> {
    device: D,
    clock: C,
    interface: Interface,
    sockets: SocketSet<'static>,
    /// In the order of [`Port`].
    handles: [SocketHandle; 3],
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
        let config = Config::new(HardwareAddress::Ethernet(EthernetAddress(host.hardware)));
        let mut interface = Interface::new(config, &mut device, now);
        interface.update_ip_addrs(|addresses| {
            // The list is empty, and holds two.
            let _ = addresses.push(IpCidr::new(IpAddress::Ipv4(host.address), host.prefix_len));
        });
        let storage: [SocketStorage<'static>; 3] = Default::default();
        let mut sockets = SocketSet::new(storage.into_iter().collect::<alloc::vec::Vec<_>>());
        let handles = host.ports.map(|_| sockets.add(socket()));
        for (handle, port) in handles.into_iter().zip(host.ports) {
            sockets.get_mut::<udp::Socket<'_>>(handle).bind(port).map_err(StackError::Bind)?;
        }
        Ok(Self { device, clock, interface, sockets, handles })
    }

    /// Returns how long nothing is due in the stack; `None`: until something arrives.
    pub fn idle_time(&mut self) -> Option<core::time::Duration> {
        let now = instant((self.clock)());
        self.interface.poll_delay(now, &self.sockets).map(Into::into)
    }

    /// The device: to wait for what arrives.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Passes packets between device and sockets.
    fn run_stack(&mut self) {
        let now = instant((self.clock)());
        self.interface.poll(now, &mut self.device, &mut self.sockets);
    }
}

impl<D: Device, C: FnMut() -> Time> Driver for SmoltcpDriver<D, C> {
    type Error = StackError;

    fn now(&mut self) -> Time {
        (self.clock)()
    }

    fn send(&mut self, from: Port, to: SocketAddrV4, datagram: Parts<'_>) -> Result<(), StackError> {
        let [head, tail] = datagram;
        let to = IpEndpoint::new(IpAddress::Ipv4(*to.ip()), to.port());
        let socket = self.sockets.get_mut::<udp::Socket<'_>>(self.handles[from as usize]);
        // A full queue, or an address that nothing can be sent to, loses the datagram.
        if let Ok(room) = socket.send(head.len() + tail.len(), to) {
            room[..head.len()].copy_from_slice(head);
            room[head.len()..].copy_from_slice(tail);
        }
        self.run_stack();
        Ok(())
    }

    fn receive(&mut self, at: Port, buffer: &mut [u8]) -> Result<Option<(usize, SocketAddrV4)>, StackError> {
        let handle = self.handles[at as usize];
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

/// A socket whose queues hold some packets of Ethernet in each direction.
fn socket() -> udp::Socket<'static> {
    let queue =
        || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; PACKETS], vec![0; PACKETS * PACKET_BYTES]);
    udp::Socket::new(queue(), queue())
}

/// Packets in a queue.
const PACKETS: usize = 16;
/// Payload of the longest packet.
const PACKET_BYTES: usize = 1_472;
