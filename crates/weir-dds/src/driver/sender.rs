//! Turns an outbox into system calls.

use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::ControlFlow;
use std::sync::{Arc, Weak};

use weir_rtps::config;
use weir_rtps::multicast::GroupRoute;
use weir_rtps::outbox::{Item, Outbox};
use weir_rtps::writer::DirectDatagram;
use weir_udp::{Fragments, Outgoing, SendOutcome, SendScratch, SocketOptions, UdpSocket};

use super::outlet::Outlet;
use crate::clock;
use crate::stage_times::SendTimes;

/// Counters of sent user data.
///
/// ```no_run
/// # use weir_dds::{DataWriter, DdsType};
/// # fn f<T: DdsType>(writer: &DataWriter<T>) {
/// let sent = writer.send_counters();
/// println!("{} samples in {} system calls", sent.samples, sent.system_calls);
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendCounters {
    /// Samples, including repairs, once for every destination.
    pub samples: u64,
    /// Datagrams that the kernel accepted.
    pub datagrams: u64,
    /// System calls that sent datagrams.
    pub system_calls: u64,
    /// Datagrams that the kernel refused.
    pub refused: u64,
}

impl SendCounters {
    /// Adds two sets of counters.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            samples: self.samples + other.samples,
            datagrams: self.datagrams + other.datagrams,
            system_calls: self.system_calls + other.system_calls,
            refused: self.refused + other.refused,
        }
    }
}

/// Sends outboxes through sockets. Each sending context has its own.
#[derive(Default)]
pub(crate) struct Sender {
    scratch: SendScratch,
    connected: Option<Connection>,
    /// The multicast groups among the destinations, with the sockets connected to them.
    groups: Vec<(GroupRoute, Connection)>,
    /// A connected socket could not be opened, or has lost its path.
    has_lost_path: bool,
    /// The type of service of what is sent without ECN.
    type_of_service: u8,
    pub(crate) counters: SendCounters,
    /// When the last send call took place. `None`: stage timing is disabled.
    pub(crate) times: Option<SendTimes>,
}

impl Sender {
    /// Sets the type of service of connected sockets, so that it costs nothing per message.
    pub(crate) fn set_type_of_service(&mut self, type_of_service: u8) {
        self.type_of_service = type_of_service;
        for Connection { socket, .. } in self.connected.iter().chain(self.groups.iter().map(|(_, it)| it)) {
            let _ = socket.set_type_of_service(type_of_service);
        }
    }

    /// Opens sockets connected to each multicast group, and to the only one of `destinations`.
    ///
    /// On a connected socket, the kernel looks up the route once instead of per datagram. If a
    /// socket cannot be opened, the common one is used. `send_buffer`: requested, in bytes.
    pub(crate) fn connect(
        &mut self,
        destinations: &[SocketAddrV4],
        routes: &[GroupRoute],
        send_buffer: usize,
    ) {
        let only = match destinations {
            [only] if !only.ip().is_multicast() => Some(*only),
            _ => None,
        };
        if self.connected.as_ref().map(|connection| connection.to) != only {
            let any = SocketOptions {
                send_buffer: Some(send_buffer),
                type_of_service: Some(self.type_of_service),
                ..SocketOptions::new(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))
            };
            self.connected = only.and_then(|to| Connection::open(to, any));
        }
        self.has_lost_path = only.is_some() && self.connected.is_none();
        self.groups.retain(|(known, _)| routes.contains(known));
        for route in routes {
            if !self.groups.iter().any(|(known, _)| known == route) {
                let options = SocketOptions {
                    send_buffer: Some(send_buffer),
                    multicast_interface: Some(route.interface),
                    multicast_loop: true,
                    type_of_service: Some(self.type_of_service),
                    ..SocketOptions::new(SocketAddrV4::new(route.interface, 0))
                };
                let connection = Connection::open(route.group, options);
                self.has_lost_path |= connection.is_none();
                self.groups.extend(connection.map(|it| (*route, it)));
            }
        }
    }

    /// Lets routers fragment what is sent to the only destination, if the path takes datagrams of `len` bytes and the
    /// first hop more: samples written before that was known are longer.
    pub(crate) fn fragment_above(&self, len: usize) {
        const HEADERS: usize = 28;
        let Some(Connection { socket, .. }) = &self.connected else { return };
        let is_narrower = |mtu| len < config::SEGMENTED_MAX_BYTES && len + HEADERS + 4 <= mtu;
        if socket.path_mtu().is_ok_and(is_narrower) {
            let _ = socket.set_fragments(Fragments::Allowed);
        }
    }

    /// Closes all sockets that [`Sender::connect`] has opened.
    pub(crate) fn disconnect(&mut self) {
        self.connected = None;
        self.groups.clear();
    }

    /// Returns whether a connected socket could not be opened, or has lost its path.
    pub(crate) fn has_lost_path(&self) -> bool {
        self.has_lost_path
    }

    /// Returns the sockets connected to groups.
    pub(super) fn group_sockets(&self) -> impl Iterator<Item = (GroupRoute, Weak<UdpSocket>)> {
        self.groups.iter().map(|(route, connection)| (*route, Arc::downgrade(&connection.socket)))
    }

    /// Returns the connection to the only one of `destinations`.
    pub(crate) fn connection_to(&self, destinations: &[SocketAddrV4]) -> Option<Connection> {
        let only = only(self.connected.as_ref(), &self.groups);
        only.filter(|only| destinations == [only.to]).cloned()
    }

    /// Sends everything in `outbox` and empties it; records when, if send times are enabled. Uses the common
    /// socket where no connection exists.
    #[inline]
    pub(super) fn send(&mut self, outlet: &Outlet, outbox: &mut Outbox) {
        if self.times.is_none() {
            return self.send_outbox(outlet, outbox);
        }
        let called_ns = clock::now().0;
        self.send_outbox(outlet, outbox);
        self.times = Some(SendTimes { called_ns, returned_ns: clock::now().0 });
    }

    /// Sends everything in `outbox` and empties it.
    fn send_outbox(&mut self, outlet: &Outlet, outbox: &mut Outbox) {
        let Self { scratch, connected, groups, counters, .. } = self;
        let only = only(connected.as_ref(), groups);
        match only.filter(|only| outbox.items.iter().all(|item| item.to[..] == [only.to])) {
            Some(only) => {
                let messages = outbox.items.iter().map(|item| (item, None));
                if send_messages(&only.socket, outbox, messages, scratch, counters).is_break() {
                    self.lose_path(outlet);
                }
            }
            None => self.send_to_each(outlet, outbox),
        }
        outbox.clear();
    }

    /// Sends every item to each of its destinations: the same bytes, in as few system calls as
    /// possible.
    fn send_to_each(&mut self, outlet: &Outlet, outbox: &Outbox) {
        let Self { scratch, groups, counters, .. } = self;
        let mut is_path_lost = false;
        // Groups first: their datagrams reach many readers.
        for (route, connection) in groups.iter() {
            let messages = outbox.items.iter().filter(|item| item.to.contains(&route.group));
            let messages = messages.map(|item| (item, None));
            is_path_lost |= send_messages(&connection.socket, outbox, messages, scratch, counters).is_break();
        }
        let is_own = |to: &SocketAddrV4| groups.iter().any(|(route, _)| route.group == *to);
        // A thread that sends for several writers has none of their sockets.
        let is_shared = |to: &SocketAddrV4| to.ip().is_multicast() && !is_own(to);
        let has_shared = outbox.items.iter().any(|item| item.to.iter().any(is_shared));
        let shared = if has_shared { outlet.groups() } else { Vec::new() };
        for (route, socket) in shared.iter().filter(|(route, _)| is_shared(&route.group)) {
            let messages = outbox.items.iter().filter(|item| item.to.contains(&route.group));
            let _ = send_messages(socket, outbox, messages.map(|item| (item, None)), scratch, counters);
        }
        let is_sent = |to: &SocketAddrV4| is_own(to) || shared.iter().any(|(route, _)| route.group == *to);
        // Messages to the same readers are sent destination by destination, so that adjacent ones
        // can join one segmented send.
        let alike = outbox.items.chunk_by(|a, b| Arc::ptr_eq(&a.to, &b.to));
        let messages = alike.flat_map(|items| {
            let destinations = items.iter().take(1).flat_map(|item| item.to.iter());
            let left = destinations.filter(|to| !is_sent(to));
            left.flat_map(|to| items.iter().map(move |item| (item, Some(*to))))
        });
        // The common socket has no path to lose.
        let _ = send_messages(outlet.socket(), outbox, messages, scratch, counters);
        if is_path_lost {
            self.lose_path(outlet);
        }
    }

    /// Uses the common socket instead of the one connected to the only destination, until the timer
    /// thread opens that one anew. A group's socket stays: it alone is tied to an interface.
    #[cold]
    fn lose_path(&mut self, outlet: &Outlet) {
        self.connected = None;
        self.has_lost_path = true;
        outlet.note_lost_path();
    }
}

/// Returns the connection to the only destination, if there is exactly one connection.
#[inline]
fn only<'a>(
    connected: Option<&'a Connection>,
    groups: &'a [(GroupRoute, Connection)],
) -> Option<&'a Connection> {
    match (connected, groups) {
        (Some(connection), _) | (None, [(_, connection)]) => Some(connection),
        _ => None,
    }
}

/// A socket connected to one destination.
#[derive(Clone)]
pub(crate) struct Connection {
    to: SocketAddrV4,
    socket: Arc<UdpSocket>,
}

impl Connection {
    /// Returns `None` if the system has no more sockets.
    fn open(to: SocketAddrV4, options: SocketOptions) -> Option<Self> {
        let socket = UdpSocket::bind(&options).ok()?;
        socket.connect(to).ok()?;
        Some(Self { to, socket: Arc::new(socket) })
    }

    /// Sends one datagram.
    ///
    /// Always inlined: passing the parts through memory is measurably slower.
    ///
    /// # Errors
    /// The kernel has refused it.
    #[inline(always)]
    pub(super) fn send(&self, DirectDatagram { front, bulk, back }: DirectDatagram<'_>) -> io::Result<usize> {
        if bulk.is_empty() { self.socket.send(front) } else { self.send_parts([front, bulk, back]) }
    }

    #[inline(never)]
    fn send_parts(&self, parts: [&[u8]; 3]) -> io::Result<usize> {
        let count = if parts[2].is_empty() { 2 } else { 3 };
        self.socket.send_vectored(&parts.map(IoSlice::new)[..count])
    }
}

/// Sends messages through a socket. Breaks if the socket has lost its path.
#[inline]
fn send_messages<'a>(
    socket: &UdpSocket,
    outbox: &'a Outbox,
    messages: impl Iterator<Item = (&'a Item, Option<SocketAddrV4>)>,
    scratch: &mut SendScratch,
    counters: &mut SendCounters,
) -> ControlFlow<()> {
    let of_socket = socket.type_of_service();
    let outgoing = messages.map(|(item, to)| {
        let (head, tail) = outbox.parts(item);
        counters.samples += u64::from(item.samples);
        let type_of_service = Some(item.type_of_service).filter(|it| *it != of_socket);
        Outgoing { to, head, tail, segment: item.segment, joins: item.joins, type_of_service }
    });
    let outcome = socket.send_all(outgoing, scratch);
    counters.datagrams += outcome.datagrams;
    counters.system_calls += outcome.system_calls;
    if outcome.refused == 0 { ControlFlow::Continue(()) } else { note_refused(&outcome, counters) }
}

#[cold]
fn note_refused(outcome: &SendOutcome, counters: &mut SendCounters) -> ControlFlow<()> {
    counters.refused += outcome.refused;
    match &outcome.last_error {
        Some(error) if weir_udp::is_path_lost(error) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use weir_rtps::block::{Block, BlockSlice};
    use weir_udp::{RecvBatch, Wait};

    use super::*;
    use crate::driver::timers::Timers;
    use crate::settings::SEND_BUFFER_BYTES as BUFFER;

    fn socket() -> UdpSocket {
        UdpSocket::bind(&SocketOptions::new(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))).unwrap()
    }

    fn outlet() -> Outlet {
        Outlet::new(Arc::new(socket()), Timers::new().unwrap(), BUFFER)
    }

    /// Sends one block to these addresses with `sender`.
    fn send(sender: &mut Sender, to: &[SocketAddrV4]) {
        send_by(sender, &outlet(), to);
    }

    fn send_by(sender: &mut Sender, outlet: &Outlet, to: &[SocketAddrV4]) {
        let mut block = Block::new(8);
        Arc::get_mut(&mut block).unwrap().bytes_mut().copy_from_slice(b"payload!");
        let mut outbox = Outbox::new();
        let slice = Some(BlockSlice::new(block, 0, 8));
        outbox.items.push(Item { samples: 1, ..Item::of(Arc::from(to), slice) });
        sender.send(outlet, &mut outbox);
        assert!(outbox.is_empty());
    }

    #[test]
    fn one_call_sends_a_block_to_many() {
        let readers: Vec<_> = (0..40).map(|_| socket()).collect();
        let addresses: Vec<_> = readers.iter().map(UdpSocket::local_addr).collect();
        let mut sender = Sender::default();
        sender.connect(&addresses, &[], BUFFER);
        send(&mut sender, &addresses);
        let SendCounters { samples, datagrams, system_calls, refused } = sender.counters;
        assert_eq!((samples, datagrams, system_calls, refused), (40, 40, 1, 0));
        let mut batch = RecvBatch::new(1);
        for reader in &readers {
            assert_eq!(reader.recv_batch(&mut batch, 1, Wait::Block).unwrap(), 1);
            assert_eq!(batch.get(0).unwrap().bytes, b"payload!");
        }
    }

    #[test]
    fn connected_sockets_have_the_send_buffer_that_was_asked_for() {
        let (reader, plain) = (socket(), socket());
        let group = SocketAddrV4::new(Ipv4Addr::new(239, 255, 77, 11), reader.local_addr().port());
        let route = GroupRoute { group, interface: Ipv4Addr::LOCALHOST };
        let mut sender = Sender::default();
        for bytes in [20_000, 100_000] {
            sender.disconnect();
            sender.connect(&[reader.local_addr()], &[route], bytes);
            let group = sender.groups.first().map(|(_, connection)| connection);
            for connection in [sender.connected.as_ref(), group] {
                // Linux doubles it.
                assert_eq!(connection.unwrap().socket.granted_send_buffer(), 2 * bytes);
            }
        }
        assert_ne!(plain.granted_send_buffer(), 200_000);
    }

    #[test]
    fn a_lost_path_is_left_until_the_socket_is_opened_anew() {
        let reader = socket();
        let to = [reader.local_addr()];
        let outlet = outlet();
        let mut sender = Sender::default();
        sender.connect(&to, &[], BUFFER);
        assert!(sender.connection_to(&to).is_some() && !sender.has_lost_path());
        sender.lose_path(&outlet);
        assert!(sender.connection_to(&to).is_none() && sender.has_lost_path());
        assert!(outlet.take_lost_path() && !outlet.take_lost_path());
        send(&mut sender, &to);
        sender.disconnect();
        sender.connect(&to, &[], BUFFER);
        assert!(sender.connection_to(&to).is_some() && !sender.has_lost_path());
        send(&mut sender, &to);
        assert_eq!(sender.counters.datagrams, 2);
        // There is no route to a broadcast address for a socket that does not allow it.
        sender.connect(&[SocketAddrV4::new(Ipv4Addr::BROADCAST, 1)], &[], BUFFER);
        assert!(sender.has_lost_path());
    }

    #[test]
    fn a_message_has_the_type_of_service_that_its_writer_gives_it() {
        let readers = [(); 2].map(|()| socket());
        readers.iter().for_each(|it| it.report_type_of_service().unwrap());
        let addresses = readers.each_ref().map(UdpSocket::local_addr);
        let mut sender = Sender::default();
        let mut batch = RecvBatch::new(1);
        // To one by a connected socket, to several by the common one.
        for to in [&addresses[..1], &addresses] {
            sender.connect(to, &[], BUFFER);
            for of_writer in [0, 46 << 2] {
                sender.set_type_of_service(of_writer);
                for type_of_service in [of_writer, of_writer | 2] {
                    let mut outbox = Outbox::new();
                    outbox.message(&Arc::from(to), |bytes| bytes.extend_from_slice(b"payload!"));
                    outbox.items[0].type_of_service = type_of_service;
                    sender.send(&outlet(), &mut outbox);
                    for reader in &readers[..to.len()] {
                        assert_eq!(reader.recv_batch(&mut batch, 1, Wait::Block).unwrap(), 1);
                        assert_eq!(batch.get(0).unwrap().type_of_service, type_of_service);
                    }
                }
            }
        }
    }

    #[test]
    fn a_group_and_the_addresses_beside_it_get_one_datagram_each() {
        let group = SocketAddrV4::new(Ipv4Addr::new(239, 255, 77, 9), socket().local_addr().port());
        let route = GroupRoute { group, interface: Ipv4Addr::LOCALHOST };
        let options = SocketOptions { reuse_address: true, ..SocketOptions::new(group) };
        let listeners = [0; 2].map(|_| UdpSocket::bind(&options).unwrap());
        listeners.iter().for_each(|it| it.join_multicast(*group.ip(), Ipv4Addr::LOCALHOST).unwrap());
        let beside = socket();
        let mut sender = Sender::default();
        let mut batch = RecvBatch::new(1);
        for to in [vec![group], vec![group, beside.local_addr()]] {
            sender.connect(&to, &[route], BUFFER);
            let before = sender.counters;
            send(&mut sender, &to);
            assert_eq!(sender.counters.datagrams - before.datagrams, to.len() as u64);
            assert_eq!(sender.counters.system_calls - before.system_calls, to.len() as u64);
            for listener in listeners.iter().chain((to.len() > 1).then_some(&beside)) {
                assert_eq!(listener.recv_batch(&mut batch, 1, Wait::Block).unwrap(), 1);
                assert_eq!(batch.get(0).unwrap().bytes, b"payload!");
            }
        }
        sender.connect(&[beside.local_addr()], &[], BUFFER);
        assert!(sender.groups.is_empty() && sender.connected.is_some());
    }

    #[test]
    fn a_thread_without_sockets_of_its_own_sends_to_groups_by_those_of_writers() {
        let group = SocketAddrV4::new(Ipv4Addr::new(239, 255, 77, 10), socket().local_addr().port());
        let options = SocketOptions { reuse_address: true, ..SocketOptions::new(group) };
        let listener = UdpSocket::bind(&options).unwrap();
        listener.join_multicast(*group.ip(), Ipv4Addr::LOCALHOST).unwrap();
        let outlet = outlet();
        let mut writer = Sender::default();
        writer.connect(&[group], &[GroupRoute { group, interface: Ipv4Addr::LOCALHOST }], BUFFER);
        outlet.share_groups(writer.group_sockets());
        outlet.share_groups(writer.group_sockets());
        let from = writer.groups[0].1.socket.local_addr();
        send_by(&mut Sender::default(), &outlet, &[group]);
        let mut batch = RecvBatch::new(1);
        assert_eq!(listener.recv_batch(&mut batch, 1, Wait::Block).unwrap(), 1);
        assert_eq!(batch.get(0).unwrap().from, from);
        drop(writer);
        assert!(outlet.groups().is_empty());
    }
}
