//! A network between stations, with losses and damage, whose memory is reserved at the start.

use core::cell::RefCell;
use core::convert::Infallible;
use core::net::{Ipv4Addr, SocketAddrV4};
use std::rc::Rc;

use weir_netsim::Rng;
use weir_rtps::driver::{Driver, Parts, Port};
use weir_rtps::time::Time;

/// What is in flight, and the time.
pub(crate) struct Wire {
    pub(crate) now: Time,
    rng: Rng,
    /// Of a thousand datagrams, so many are lost, and so many are damaged.
    pub(crate) losses: u64,
    pub(crate) damages: u64,
    /// Of each host and port.
    queues: Vec<[Queue; 3]>,
    pub(crate) counts: Counts,
}

/// What has happened to datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) lost: u64,
    pub(crate) damaged: u64,
    /// Lost, since a queue was full.
    pub(crate) overflowed: u64,
}

/// Datagrams that a host has not received yet.
struct Queue {
    slots: Vec<Slot>,
    first: usize,
    len: usize,
}

#[derive(Clone)]
struct Slot {
    bytes: [u8; DATAGRAM_MAX],
    len: usize,
    from: SocketAddrV4,
}

impl Queue {
    fn new() -> Self {
        let slot =
            Slot { bytes: [0; DATAGRAM_MAX], len: 0, from: SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0) };
        Self { slots: vec![slot; QUEUE_LEN], first: 0, len: 0 }
    }

    /// Returns the place of one more datagram; `None`: the queue is full.
    fn push(&mut self) -> Option<&mut Slot> {
        if self.len == self.slots.len() {
            return None;
        }
        let index = (self.first + self.len) % self.slots.len();
        self.len += 1;
        Some(&mut self.slots[index])
    }

    fn pop(&mut self) -> Option<&Slot> {
        self.len = self.len.checked_sub(1)?;
        let index = self.first;
        self.first = (index + 1) % self.slots.len();
        Some(&self.slots[index])
    }
}

impl Wire {
    /// Connects so many hosts.
    pub(crate) fn new(hosts: usize, seed: u64) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            now: Time(1_000_000_000),
            rng: Rng::new(seed),
            losses: 0,
            damages: 0,
            queues: (0..hosts).map(|_| [Queue::new(), Queue::new(), Queue::new()]).collect(),
            counts: Counts::default(),
        }))
    }

    /// Drops what a host has not received.
    pub(crate) fn clear(&mut self, host: usize) {
        self.queues[host].iter_mut().for_each(|queue| queue.len = 0);
    }

    /// Sends a datagram to one host, or to all others.
    pub(crate) fn send(&mut self, from: SocketAddrV4, to: SocketAddrV4, parts: Parts<'_>) {
        for host in 0..self.queues.len() {
            if to.ip().is_multicast() && from != address(host, Port::Metatraffic) {
                self.deliver(from, (host, Port::Group), parts);
            }
            for port in [Port::Metatraffic, Port::User] {
                if to == address(host, port) {
                    self.deliver(from, (host, port), parts);
                }
            }
        }
    }

    fn deliver(&mut self, from: SocketAddrV4, (host, port): (usize, Port), [head, tail]: Parts<'_>) {
        self.counts.sent += 1;
        let chance = self.rng.below(1_000);
        if chance < self.losses {
            self.counts.lost += 1;
            return;
        }
        let Some(slot) = self.queues[host][port as usize].push() else {
            self.counts.overflowed += 1;
            return;
        };
        (slot.len, slot.from) = (head.len() + tail.len(), from);
        slot.bytes[..head.len()].copy_from_slice(head);
        slot.bytes[head.len()..slot.len].copy_from_slice(tail);
        if chance < self.losses + self.damages {
            self.counts.damaged += 1;
            for _ in 0..=self.rng.below(3) {
                let at = self.rng.below(slot.len as u64) as usize;
                slot.bytes[at] = self.rng.next_u64() as u8;
            }
            if self.rng.below(4) == 0 {
                slot.len = self.rng.below(slot.len as u64) as usize;
            }
        }
    }
}

/// The sockets of a host.
pub(crate) struct End {
    pub(crate) host: usize,
    pub(crate) wire: Rc<RefCell<Wire>>,
}

impl Driver for End {
    type Error = Infallible;

    fn now(&mut self) -> Time {
        self.wire.borrow().now
    }

    fn send(&mut self, from: Port, to: SocketAddrV4, datagram: Parts<'_>) -> Result<(), Infallible> {
        self.wire.borrow_mut().send(address(self.host, from), to, datagram);
        Ok(())
    }

    fn receive(&mut self, at: Port, buffer: &mut [u8]) -> Result<Option<(usize, SocketAddrV4)>, Infallible> {
        let mut wire = self.wire.borrow_mut();
        Ok(wire.queues[self.host][at as usize].pop().map(|slot| {
            buffer[..slot.len].copy_from_slice(&slot.bytes[..slot.len]);
            (slot.len, slot.from)
        }))
    }

    fn join_multicast(&mut self, _group: Ipv4Addr) -> Result<(), Infallible> {
        Ok(())
    }
}

/// The address of a host's socket.
pub(crate) fn address(host: usize, port: Port) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host as u8 + 1), 7410 + port as u16)
}

/// The longest datagram in bytes, as [`Driver::datagram_max`] says by default.
const DATAGRAM_MAX: usize = 1_472;
/// Datagrams that wait at a socket.
const QUEUE_LEN: usize = 256;
