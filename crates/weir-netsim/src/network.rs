//! The network itself: sockets, multicast groups, datagrams in flight, and counters.
//!
//! A test drives it as it drives the engine: [`Network::send`] what the engine wants sent, ask
//! [`Network::next_arrival`] when to call next, and [`Network::deliver`] one datagram at a time.
//! Programming errors (an unbound sender, time running backwards) panic; what a real network does
//! to datagrams is counted.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use crate::ecn::Ecn;
use crate::link::{Link, LinkState, Verdict};
use crate::loss::Datagram;
use crate::partition::Partition;
use crate::recording::{Event, Record, Recording};
use crate::rng::Rng;
use crate::socket::{DEFAULT_BUFFER_BYTES, Socket, Waiting};
use crate::traffic::Traffic;

/// A simulated network. An IPv4 address is a host; each host can have several sockets, on different
/// ports.
#[derive(Debug)]
pub struct Network {
    config: Builder,
    now: Duration,
    links: BTreeMap<(Ipv4Addr, Ipv4Addr), LinkState>,
    sockets: BTreeMap<SocketAddrV4, Socket>,
    members: BTreeMap<SocketAddrV4, BTreeSet<SocketAddrV4>>,
    partition: Partition,
    on_the_way: BTreeMap<(Duration, u64), InFlight>,
    next_order: u64,
    counters: Counters,
    recording: Recording,
}

/// The configuration of a [`Network`]; created by [`Network::builder`].
#[derive(Debug, Clone)]
pub struct Builder {
    seed: u64,
    link: Link,
    loopback: Link,
    special: BTreeMap<(Ipv4Addr, Ipv4Addr), Link>,
    /// Pairs of hosts that use the link of another pair.
    shared: BTreeMap<(Ipv4Addr, Ipv4Addr), (Ipv4Addr, Ipv4Addr)>,
    buffer_bytes: usize,
    is_recording: bool,
}

/// A datagram read by its receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// When it reached the socket, at or before the time of reading.
    pub arrived_at: Duration,
    /// The sender.
    pub from: SocketAddrV4,
    /// The destination: the receiver's address or a multicast group.
    pub to: SocketAddrV4,
    /// The bound address of the receiving socket.
    pub receiver: SocketAddrV4,
    /// Its ECN field on arrival.
    pub ecn: Ecn,
    /// The UDP payload.
    pub bytes: Arc<[u8]>,
}

/// Counts of events, in datagrams.
///
/// A datagram to a group counts once in `sent`, and once per receiving host or socket elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls of `send`.
    pub sent: u64,
    /// Read by a receiver.
    pub delivered: u64,
    /// Lost by a link.
    pub lost: u64,
    /// Second copies made by links.
    pub duplicated: u64,
    /// Held back by a link.
    pub held_back: u64,
    /// Dropped by a link whose queue was full.
    pub queue_full: u64,
    /// Refused by a link because of their size.
    pub too_big: u64,
    /// Dropped because of a partition.
    pub cut: u64,
    /// Arrived at an address without a socket.
    pub no_socket: u64,
    /// Dropped by a socket whose buffer was full.
    pub buffer_full: u64,
    /// Payload bytes of all calls of `send`.
    pub sent_bytes: u64,
    /// Payload bytes read by receivers.
    pub delivered_bytes: u64,
}

/// The datagram was larger than a link on its path accepts. The hosts after that link do not
/// receive it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooBig {
    /// Size of the payload, in bytes.
    pub len: usize,
    /// Maximum payload on that path, in bytes.
    pub limit: usize,
}

impl Builder {
    /// Sets the link between any two hosts without their own link. Default: 50 us of delay and no
    /// faults.
    #[must_use]
    pub fn link(mut self, link: Link) -> Self {
        self.link = link;
        self
    }

    /// Sets the link from one host to another, in this direction only.
    #[must_use]
    pub fn link_between(mut self, from: Ipv4Addr, to: Ipv4Addr, link: Link) -> Self {
        self.special.insert((from, to), link);
        self
    }

    /// Sets the link from a host to itself. Default: 10 us of delay and no faults.
    #[must_use]
    pub fn loopback(mut self, link: Link) -> Self {
        self.loopback = link;
        self
    }

    /// Sets each socket's receive buffer in bytes, as accounted by the kernel
    /// ([`charge`](crate::socket::charge)). Default: 212992.
    #[must_use]
    pub fn buffer_bytes(mut self, buffer_bytes: usize) -> Self {
        self.buffer_bytes = buffer_bytes;
        self
    }

    /// Records all events for [`Network::recording`]; costs memory for each datagram.
    #[must_use]
    pub fn record(mut self) -> Self {
        self.is_recording = true;
        self
    }

    /// Returns the pair whose link carries what goes from one host to another.
    fn carrying(&self, from: Ipv4Addr, to: Ipv4Addr) -> (Ipv4Addr, Ipv4Addr) {
        self.shared.get(&(from, to)).copied().unwrap_or((from, to))
    }

    /// Builds the network, without sockets.
    pub fn build(self) -> Network {
        Network {
            config: self,
            now: Duration::ZERO,
            links: BTreeMap::new(),
            sockets: BTreeMap::new(),
            members: BTreeMap::new(),
            partition: Partition::new(),
            on_the_way: BTreeMap::new(),
            next_order: 0,
            counters: Counters::default(),
            recording: Recording::default(),
        }
    }
}

impl Network {
    /// Starts to configure a network; all randomness derives from the seed.
    pub fn builder(seed: u64) -> Builder {
        Builder {
            seed,
            link: Link::new().delay(DEFAULT_DELAY),
            loopback: Link::new().delay(DEFAULT_LOOPBACK_DELAY),
            special: BTreeMap::new(),
            shared: BTreeMap::new(),
            buffer_bytes: DEFAULT_BUFFER_BYTES,
            is_recording: false,
        }
    }

    /// Opens a socket with the builder's buffer size.
    ///
    /// # Panics
    ///
    /// If the address is in use, unspecified or a group.
    pub fn bind(&mut self, address: SocketAddrV4) {
        self.bind_with_buffer(address, self.config.buffer_bytes);
    }

    /// Opens a socket with a receive buffer of `buffer_bytes`, as accounted by the kernel.
    ///
    /// # Panics
    ///
    /// If the address is in use, unspecified or a group.
    pub fn bind_with_buffer(&mut self, address: SocketAddrV4, buffer_bytes: usize) {
        assert!(
            !address.ip().is_multicast() && !address.ip().is_unspecified(),
            "{address} is not the address of a host"
        );
        assert!(self.sockets.insert(address, Socket::new(buffer_bytes)).is_none(), "{address} is in use");
    }

    /// Closes a socket: leaves its groups and discards its unread datagrams. Has no effect without
    /// a socket.
    pub fn close(&mut self, address: SocketAddrV4) {
        self.sockets.remove(&address);
        for members in self.members.values_mut() {
            members.remove(&address);
        }
    }

    /// Lets the socket receive what is sent to the group and its port, also from its own host.
    ///
    /// # Panics
    ///
    /// If the group is not a multicast address, or the socket is not bound.
    pub fn join(&mut self, group: SocketAddrV4, socket: SocketAddrV4) {
        assert!(group.ip().is_multicast(), "{group} is not a multicast group");
        assert!(self.sockets.contains_key(&socket), "{socket} is not bound");
        self.members.entry(group).or_default().insert(socket);
    }

    /// Stops the socket from receiving what is sent to the group.
    pub fn leave(&mut self, group: SocketAddrV4, socket: SocketAddrV4) {
        if let Some(members) = self.members.get_mut(&group) {
            members.remove(&socket);
        }
    }

    /// Makes a receiver slow: it pauses for `gap` after each datagram read, while its buffer fills.
    ///
    /// # Panics
    ///
    /// If the socket is not bound.
    pub fn set_read_gap(&mut self, socket: SocketAddrV4, gap: Duration) {
        self.socket(socket).read_gap = gap;
    }

    /// Stops a receiver from reading until [`resume`](Self::resume), while its buffer fills.
    ///
    /// # Panics
    ///
    /// If the socket is not bound.
    pub fn pause(&mut self, socket: SocketAddrV4) {
        self.socket(socket).is_paused = true;
    }

    /// Lets a paused receiver read again.
    ///
    /// # Panics
    ///
    /// If the socket is not bound.
    pub fn resume(&mut self, socket: SocketAddrV4) {
        self.socket(socket).is_paused = false;
    }

    /// Changes one direction between two hosts, and that of all pairs that share it. Its queue and counts restart;
    /// datagrams in flight still arrive.
    pub fn set_link(&mut self, from: Ipv4Addr, to: Ipv4Addr, link: Link) {
        let pair = self.config.carrying(from, to);
        self.links.remove(&pair);
        self.config.special.insert(pair, link);
    }

    /// Sends what goes from one host to another over the link of another pair of hosts: they share its rate, its queue
    /// and its counts.
    pub fn share_link(&mut self, from: Ipv4Addr, to: Ipv4Addr, with: (Ipv4Addr, Ipv4Addr)) {
        self.config.shared.insert((from, to), with);
    }

    /// Changes every link that was not set individually, except those from a host to itself.
    pub fn set_default_link(&mut self, link: Link) {
        let special = &self.config.special;
        self.links.retain(|pair, _| special.contains_key(pair) || pair.0 == pair.1);
        self.config.link = link;
    }

    /// Returns the partition, which may be changed at any time.
    pub fn partition(&mut self) -> &mut Partition {
        &mut self.partition
    }

    /// Sends a datagram to an address, or to every host with a member of a group.
    ///
    /// # Errors
    ///
    /// [`TooBig`] if a link on the path refuses its size; other hosts of a group still receive it.
    ///
    /// # Panics
    ///
    /// If `from` is not bound or `now` is before an earlier call's.
    pub fn send(
        &mut self,
        now: Duration,
        from: SocketAddrV4,
        to: SocketAddrV4,
        bytes: &[u8],
    ) -> Result<(), TooBig> {
        self.send_with(now, from, to, Ecn::NotEct, bytes)
    }

    /// Sends a datagram with this ECN field; otherwise as [`send`](Self::send).
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send).
    ///
    /// # Panics
    ///
    /// As for [`send`](Self::send).
    pub fn send_with(
        &mut self,
        now: Duration,
        from: SocketAddrV4,
        to: SocketAddrV4,
        ecn: Ecn,
        bytes: &[u8],
    ) -> Result<(), TooBig> {
        self.advance(now);
        assert!(self.sockets.contains_key(&from), "{from} is not bound");
        let packet = InFlight { from, to, host: *to.ip(), ecn, bytes: bytes.into() };
        self.note(now, &packet, to, Event::Sent);
        if !to.ip().is_multicast() {
            return self.carry(packet);
        }
        let members = self.members.get(&to).into_iter().flatten();
        let hosts: BTreeSet<Ipv4Addr> = members.map(|member| *member.ip()).collect();
        if hosts.is_empty() {
            self.note(now, &packet, to, Event::NoSocket);
        }
        let mut outcome = Ok(());
        for host in hosts {
            outcome = self.carry(InFlight { host, ..packet.clone() }).and(outcome);
        }
        outcome
    }

    /// Returns when to call [`deliver`](Self::deliver) next; `None` if no datagram is in flight or
    /// unread.
    ///
    /// The time may be in the past if the caller was late. A call at that time may deliver nothing
    /// (the datagram reached a full buffer or a pausing reader), so call in a loop.
    pub fn next_arrival(&self) -> Option<Duration> {
        let arrival = self.on_the_way.keys().next().map(|(at, _)| *at);
        let read = self.sockets.values().filter_map(Socket::next_read).min();
        arrival.into_iter().chain(read).min()
    }

    /// Returns the next datagram that a receiver reads at `now`, in order of arrival; `None` until
    /// the next arrival.
    ///
    /// # Panics
    ///
    /// If `now` is before an earlier call's.
    pub fn deliver(&mut self, now: Duration) -> Option<Delivery> {
        self.advance(now);
        while let Some(entry) = self.on_the_way.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((at, order), packet) = entry.remove_entry();
            self.arrive(at, order, packet);
        }
        let heads =
            self.sockets.iter().filter_map(|(address, socket)| Some((socket.head_order(now)?, *address)));
        let (_, receiver) = heads.min()?;
        let Waiting { at: arrived_at, from, to, ecn, bytes, .. } = self.socket(receiver).read(now)?;
        self.note(
            now,
            &InFlight { from, to, host: *receiver.ip(), ecn, bytes: bytes.clone() },
            receiver,
            Event::Delivered,
        );
        Some(Delivery { arrived_at, from, to, receiver, ecn, bytes })
    }

    /// Returns the latest time given to `send` or `deliver`.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Returns whether no datagram is in flight and all sockets are empty, even paused ones.
    pub fn is_silent(&self) -> bool {
        self.on_the_way.is_empty() && self.sockets.values().all(|socket| socket.charged_bytes == 0)
    }

    /// Returns the bytes charged to a socket's buffer; 0 if it is not bound. Arrivals count from
    /// the next `deliver` on.
    pub fn buffered_bytes(&self, socket: SocketAddrV4) -> usize {
        self.sockets.get(&socket).map_or(0, |socket| socket.charged_bytes)
    }

    /// Returns what the link from one host to another carried so far; nothing if it was not used
    /// since it was last set.
    pub fn traffic(&mut self, from: Ipv4Addr, to: Ipv4Addr) -> Traffic {
        let now = self.now;
        self.links.get_mut(&self.config.carrying(from, to)).map(|link| link.traffic(now)).unwrap_or_default()
    }

    /// Returns the counts so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns all events so far; empty unless [`Builder::record`] was called.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    fn advance(&mut self, now: Duration) {
        assert!(now >= self.now, "time ran backwards from {:?} to {now:?}", self.now);
        self.now = now;
    }

    fn socket(&mut self, address: SocketAddrV4) -> &mut Socket {
        self.sockets.get_mut(&address).unwrap_or_else(|| panic!("{address} is not bound"))
    }

    /// Gives a packet to the link between its sender's host and `packet.host`.
    fn carry(&mut self, packet: InFlight) -> Result<(), TooBig> {
        let now = self.now;
        let InFlight { from, to, host, ecn, ref bytes } = packet;
        let far_end = SocketAddrV4::new(host, to.port());
        if self.partition.is_cut(*from.ip(), host) {
            self.note(now, &packet, far_end, Event::Cut);
            return Ok(());
        }
        let datagram = Datagram { sent_at: now, ordinal: 0, from, to, bytes };
        match self.link(*from.ip(), host).carry(datagram, ecn) {
            Verdict::TooBig { limit } => {
                self.note(now, &packet, far_end, Event::TooBig);
                return Err(TooBig { len: packet.bytes.len(), limit });
            }
            Verdict::QueueFull => self.note(now, &packet, far_end, Event::QueueFull),
            Verdict::Lost => self.note(now, &packet, far_end, Event::Lost),
            Verdict::Arrives { at, copy_at, is_held, ecn } => {
                let packet = InFlight { ecn, ..packet };
                if is_held {
                    self.note(now, &packet, far_end, Event::HeldBack);
                }
                self.put_on_the_way(at, packet.clone());
                if let Some(copy_at) = copy_at {
                    self.note(now, &packet, far_end, Event::Duplicated);
                    self.put_on_the_way(copy_at, packet);
                }
            }
        }
        Ok(())
    }

    fn link(&mut self, from: Ipv4Addr, to: Ipv4Addr) -> &mut LinkState {
        let config = &self.config;
        let (from, to) = config.carrying(from, to);
        self.links.entry((from, to)).or_insert_with(|| {
            let default = if from == to { &config.loopback } else { &config.link };
            let link = config.special.get(&(from, to)).unwrap_or(default).clone();
            let label = (u64::from(from.to_bits()) << 32) | u64::from(to.to_bits());
            LinkState::new(link, Rng::new(config.seed).fork(label))
        })
    }

    fn put_on_the_way(&mut self, at: Duration, packet: InFlight) {
        self.on_the_way.insert((at, self.next_order), packet);
        self.next_order += 1;
    }

    /// Puts a packet that reached its host into the buffer of the bound socket, or of every member
    /// of the group.
    fn arrive(&mut self, at: Duration, order: u64, packet: InFlight) {
        let receivers: Vec<SocketAddrV4> = if packet.to.ip().is_multicast() {
            let members = self.members.get(&packet.to).into_iter().flatten();
            members.filter(|member| *member.ip() == packet.host).copied().collect()
        } else {
            self.sockets.contains_key(&packet.to).then_some(packet.to).into_iter().collect()
        };
        if receivers.is_empty() {
            self.note(at, &packet, SocketAddrV4::new(packet.host, packet.to.port()), Event::NoSocket);
        }
        for receiver in receivers {
            let InFlight { from, to, ecn, ref bytes, .. } = packet;
            if !self.socket(receiver).admit(Waiting { at, order, from, to, ecn, bytes: bytes.clone() }) {
                self.note(at, &packet, receiver, Event::BufferFull);
            }
        }
    }

    fn note(&mut self, at: Duration, packet: &InFlight, receiver: SocketAddrV4, event: Event) {
        self.counters.count(event, packet.bytes.len() as u64);
        if self.config.is_recording {
            let InFlight { from, to, ref bytes, .. } = *packet;
            self.recording.push(Record { at, from, to, receiver, bytes: bytes.clone(), event });
        }
    }
}

impl Counters {
    fn count(&mut self, event: Event, len: u64) {
        let counter = match event {
            Event::BufferFull => &mut self.buffer_full,
            Event::Cut => &mut self.cut,
            Event::Delivered => {
                self.delivered_bytes += len;
                &mut self.delivered
            }
            Event::Duplicated => &mut self.duplicated,
            Event::HeldBack => &mut self.held_back,
            Event::Lost => &mut self.lost,
            Event::NoSocket => &mut self.no_socket,
            Event::QueueFull => &mut self.queue_full,
            Event::Sent => {
                self.sent_bytes += len;
                &mut self.sent
            }
            Event::TooBig => &mut self.too_big,
        };
        *counter += 1;
    }
}

impl core::fmt::Display for TooBig {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "datagram of {} bytes exceeds the {} bytes that the link accepts", self.len, self.limit)
    }
}

impl core::error::Error for TooBig {}

/// A datagram between two hosts.
#[derive(Debug, Clone)]
struct InFlight {
    from: SocketAddrV4,
    to: SocketAddrV4,
    host: Ipv4Addr,
    ecn: Ecn,
    bytes: Arc<[u8]>,
}

const DEFAULT_DELAY: Duration = Duration::from_micros(50);
const DEFAULT_LOOPBACK_DELAY: Duration = Duration::from_micros(10);

#[cfg(test)]
mod tests;
