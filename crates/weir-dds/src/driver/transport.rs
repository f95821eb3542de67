//! The sockets of a participant, and how an outbox becomes system calls.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use weir_rtps::config;
use weir_rtps::multicast::GroupRoute;
use weir_rtps::outbox::{Item, Outbox};
use weir_rtps::participant::Interface as Network;
use weir_rtps::ports;
use weir_udp::{Interface, Outgoing, SendScratch, SocketOptions, UdpError, UdpSocket};

use crate::clock;
use crate::error::{DdsError, Result};
use crate::settings::{ParticipantSettings, SOCKET_BUFFER_BYTES};
use crate::stage_times::SendTimes;

/// Participants of one domain on one host: as many as the port formula has room for (RTPS 2.5 §9.6.2.3).
const PARTICIPANTS_PER_HOST_MAX: u32 = 120;
const META_BUFFER_BYTES: usize = 1024 * 1024;

/// The interfaces that a participant uses.
#[derive(Debug)]
pub(crate) struct Selected {
    interfaces: Vec<Interface>,
}

impl Selected {
    /// Finds the interfaces that the settings name; all that are up when they name none.
    pub(crate) fn new(settings: &ParticipantSettings) -> Result<Self> {
        let all =
            weir_udp::interfaces().map_err(|error| DdsError::network("cannot list the interfaces", error))?;
        let up: Vec<_> = all.into_iter().filter(|interface| interface.is_up).collect();
        let mut interfaces = Vec::new();
        for name in &settings.interfaces {
            let known = interfaces.len();
            let named = |it: &&Interface| it.name == *name || it.address.to_string() == *name;
            interfaces.extend(up.iter().filter(named).cloned());
            if interfaces.len() == known {
                let names: Vec<_> = up.iter().map(|it| format!("{} ({})", it.name, it.address)).collect();
                let there = names.join(", ");
                let text = format!("no interface {name:?} is up with an IPv4 address; there are: {there}");
                return Err(DdsError::BadParameter(text));
            }
        }
        if settings.interfaces.is_empty() {
            interfaces = up;
        }
        if interfaces.is_empty() {
            let text = "no interface is up with an IPv4 address; `ip link set lo up` gives the loopback one";
            return Err(DdsError::BadParameter(text.to_owned()));
        }
        Ok(Self { interfaces })
    }

    /// The address that sockets are bound to: the only one, or all.
    fn bind_address(&self) -> Ipv4Addr {
        match &self.interfaces[..] {
            [only] => only.address,
            _ => Ipv4Addr::UNSPECIFIED,
        }
    }

    /// The addresses that others are told, with a port. Loopback only where there is nothing else: from other
    /// hosts it leads nowhere.
    pub(crate) fn announced(&self, port: u16) -> Vec<SocketAddrV4> {
        let has_network = self.interfaces.iter().any(|interface| !interface.is_loopback);
        let announced = self.interfaces.iter().filter(|interface| !(has_network && interface.is_loopback));
        announced.map(|interface| SocketAddrV4::new(interface.address, port)).collect()
    }

    /// Our addresses on all interfaces.
    pub(crate) fn addresses(&self) -> Vec<Ipv4Addr> {
        self.interfaces.iter().map(|interface| interface.address).collect()
    }

    /// Those from which multicast can be sent. Loopback says that it cannot, and does so nevertheless.
    pub(crate) fn multicast_addresses(&self) -> Vec<Ipv4Addr> {
        let able = self.interfaces.iter().filter(|interface| interface.is_multicast || interface.is_loopback);
        able.map(|interface| interface.address).collect()
    }

    pub(crate) fn networks(&self) -> Vec<Network> {
        let network = |it: &Interface| Network { address: it.address, netmask: it.netmask };
        self.interfaces.iter().map(network).collect()
    }
}

/// The sockets of discovery.
#[derive(Debug)]
pub(crate) struct MetaSockets {
    pub(crate) unicast: UdpSocket,
    /// Receives what is sent to the domain's group; `None` without multicast.
    pub(crate) multicast: Option<UdpSocket>,
    /// One for each interface, to send to the group.
    senders: Vec<UdpSocket>,
}

/// Opens the socket for user data and those for discovery on the ports of the first free participant id.
pub(crate) fn open(
    domain_id: u32,
    settings: &ParticipantSettings,
    selected: &Selected,
) -> Result<(UdpSocket, MetaSockets)> {
    let address = selected.bind_address();
    for id in 0..PARTICIPANTS_PER_HOST_MAX {
        let meta_port = ports::metatraffic_unicast_port(domain_id, id);
        let user_port = ports::user_unicast_port(domain_id, id);
        let Some((meta_port, user_port)) = meta_port.zip(user_port) else { break };
        let Some(unicast) = bind_if_free(&meta_options(SocketAddrV4::new(address, meta_port)))? else {
            continue;
        };
        let user = SocketOptions {
            recv_buffer: Some(settings.receive_buffer),
            send_buffer: Some(settings.send_buffer),
            gro: true,
            timestamps: settings.stage_times,
            ..SocketOptions::new(SocketAddrV4::new(address, user_port))
        };
        let Some(user) = bind_if_free(&user)? else { continue };
        let (multicast, senders) = if settings.multicast {
            (Some(open_multicast(domain_id, selected)?), open_senders(selected)?)
        } else {
            (None, Vec::new())
        };
        return Ok((user, MetaSockets { unicast, multicast, senders }));
    }
    Err(DdsError::OutOfResources(format!(
        "all {PARTICIPANTS_PER_HOST_MAX} participant ids of domain {domain_id} are in use on this host: \
         end some participants, or use another domain id"
    )))
}

fn meta_options(bind: SocketAddrV4) -> SocketOptions {
    SocketOptions { recv_buffer: Some(META_BUFFER_BYTES), ..SocketOptions::new(bind) }
}

/// `None` when somebody else has the port.
fn bind_if_free(options: &SocketOptions) -> Result<Option<UdpSocket>> {
    match UdpSocket::bind(options) {
        Ok(socket) => Ok(Some(socket)),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Ok(None),
        Err(error) => Err(network("cannot open a socket", error)),
    }
}

fn open_multicast(domain_id: u32, selected: &Selected) -> Result<UdpSocket> {
    let group = ports::metatraffic_multicast(domain_id)
        .ok_or_else(|| DdsError::BadParameter(format!("domain id {domain_id} has no multicast port")))?;
    let options = SocketOptions {
        reuse_address: true,
        ..meta_options(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, group.port()))
    };
    let socket =
        UdpSocket::bind(&options).map_err(|error| network("cannot open the multicast socket", error))?;
    let mut failure = None;
    let mut joined = 0;
    for interface in &selected.interfaces {
        match socket.join_multicast(*group.ip(), interface.address) {
            Ok(()) => joined += 1,
            Err(error) => failure = Some(error),
        }
    }
    match failure {
        // An interface without multicast is no harm while another one has it.
        Some(error) if joined == 0 => Err(network("cannot join the discovery group on any interface", error)),
        _ => Ok(socket),
    }
}

fn open_senders(selected: &Selected) -> Result<Vec<UdpSocket>> {
    let open = |interface: &Interface| {
        let options = SocketOptions {
            multicast_interface: Some(interface.address),
            multicast_loop: true,
            ..SocketOptions::new(SocketAddrV4::new(interface.address, 0))
        };
        UdpSocket::bind(&options).map_err(|error| network("cannot open a socket", error))
    };
    selected.interfaces.iter().map(open).collect()
}

fn network(what: &str, error: UdpError) -> DdsError {
    DdsError::network(what, error)
}

impl MetaSockets {
    /// Sends discovery: to the group from every interface, else from the unicast socket. What the network does
    /// not take is announced again later.
    pub(crate) fn send(&self, outbox: &Outbox) {
        outbox.for_each_datagram(|destinations, datagram| {
            for to in destinations.iter() {
                let outgoing = Outgoing::datagram(Some(*to), datagram);
                if to.ip().is_multicast() {
                    self.senders.iter().for_each(|sender| _ = sender.send_one(&outgoing));
                } else {
                    let _ = self.unicast.send_one(&outgoing);
                }
            }
        });
    }
}

/// What a sender of user data counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SendCounters {
    /// Samples, repaired ones included, once for every destination.
    pub samples: u64,
    /// Datagrams that the kernel took.
    pub datagrams: u64,
    /// System calls that sent them.
    pub system_calls: u64,
    /// Datagrams that the kernel did not take.
    pub refused: u64,
}

impl SendCounters {
    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            samples: self.samples + other.samples,
            datagrams: self.datagrams + other.datagrams,
            system_calls: self.system_calls + other.system_calls,
            refused: self.refused + other.refused,
        }
    }
}

/// Sends outboxes through a socket; one for each thread of execution that sends.
#[derive(Default)]
pub(crate) struct Sender {
    scratch: SendScratch,
    connected: Option<(SocketAddrV4, Arc<UdpSocket>)>,
    /// For every way to a multicast group, a socket that is connected to it.
    groups: Vec<(GroupRoute, Arc<UdpSocket>)>,
    pub(crate) counters: SendCounters,
    /// Of the last call; `None` = nobody wants to know.
    pub(crate) times: Option<SendTimes>,
}

impl Sender {
    /// Uses sockets of its own for multicast and for the only one of `destinations`. Where none is to be had, the
    /// common one does.
    pub(crate) fn connect(&mut self, destinations: &[SocketAddrV4], routes: &[GroupRoute]) {
        let only = match destinations {
            [only] if !only.ip().is_multicast() => Some(*only),
            _ => None,
        };
        if self.connected.as_ref().map(|(to, _)| *to) != only {
            self.connected = only.and_then(|to| {
                let options = SocketOptions {
                    send_buffer: Some(SOCKET_BUFFER_BYTES),
                    ..SocketOptions::new(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))
                };
                let socket = UdpSocket::bind(&options);
                socket.and_then(|socket| socket.connect(to).map(|()| (to, Arc::new(socket)))).ok()
            });
        }
        self.groups.retain(|(known, _)| routes.contains(known));
        for route in routes {
            if !self.groups.iter().any(|(known, _)| known == route) {
                self.groups.extend(open_group_sender(route).map(|socket| (*route, Arc::new(socket))));
            }
        }
    }

    /// The socket that is connected to the only one of `destinations`.
    pub(crate) fn connected_to(&self, destinations: &[SocketAddrV4]) -> Option<Arc<UdpSocket>> {
        self.only().filter(|(only, _)| destinations == [*only]).map(|(_, socket)| Arc::clone(socket))
    }

    /// The only destination that there is a socket for, and that.
    #[inline]
    fn only(&self) -> Option<(SocketAddrV4, &Arc<UdpSocket>)> {
        only(self.connected.as_ref(), &self.groups)
    }

    /// Sends everything in `outbox` and empties it. What the kernel does not take counts as lost on the way:
    /// reliability deals with it.
    #[inline]
    pub(crate) fn send(&mut self, socket: &UdpSocket, outbox: &mut Outbox) {
        if self.times.is_some() {
            return self.send_timed(socket, outbox);
        }
        self.send_all(socket, outbox);
    }

    #[cold]
    fn send_timed(&mut self, socket: &UdpSocket, outbox: &mut Outbox) {
        let called_ns = clock::now().0;
        self.send_all(socket, outbox);
        self.times = Some(SendTimes { called_ns, returned_ns: clock::now().0 });
    }

    fn send_all(&mut self, socket: &UdpSocket, outbox: &mut Outbox) {
        let Self { scratch, connected, groups, counters, .. } = self;
        match only(connected.as_ref(), groups)
            .filter(|(only, _)| outbox.items.iter().all(|item| item.to[..] == [*only]))
        {
            Some((_, connected)) => {
                let messages = outbox.items.iter().map(|item| (item, None));
                send_messages(connected, outbox, messages, scratch, counters);
            }
            None => send_to_each(socket, groups, outbox, scratch, counters),
        }
        outbox.clear();
    }
}

#[inline]
fn only<'a>(
    connected: Option<&'a (SocketAddrV4, Arc<UdpSocket>)>,
    groups: &'a [(GroupRoute, Arc<UdpSocket>)],
) -> Option<(SocketAddrV4, &'a Arc<UdpSocket>)> {
    match (connected, groups) {
        (Some((only, connected)), _) => Some((*only, connected)),
        (None, [(route, connected)]) => Some((route.group, connected)),
        _ => None,
    }
}

/// A socket that sends to a group by one interface. `None` when the system has no more.
fn open_group_sender(route: &GroupRoute) -> Option<UdpSocket> {
    let options = SocketOptions {
        send_buffer: Some(SOCKET_BUFFER_BYTES),
        multicast_interface: Some(route.interface),
        multicast_loop: true,
        ..SocketOptions::new(SocketAddrV4::new(route.interface, 0))
    };
    let socket = UdpSocket::bind(&options).ok()?;
    socket.connect(route.group).ok()?;
    Some(socket)
}

/// Sends every item to each of its destinations: the same bytes, one system call for as many as it takes.
fn send_to_each(
    socket: &UdpSocket,
    groups: &[(GroupRoute, Arc<UdpSocket>)],
    outbox: &Outbox,
    scratch: &mut SendScratch,
    counters: &mut SendCounters,
) {
    // What many wait for goes first.
    for (route, connected) in groups {
        let messages = outbox.items.iter().filter(|item| item.to.contains(&route.group));
        send_messages(connected, outbox, messages.map(|item| (item, None)), scratch, counters);
    }
    let is_sent = |to: &SocketAddrV4| groups.iter().any(|(route, _)| route.group == *to);
    // All messages to the same readers go to one of them after the other, so that they can join.
    let alike = outbox.items.chunk_by(|a, b| Arc::ptr_eq(&a.to, &b.to));
    let messages = alike.flat_map(|items| {
        let destinations = items.iter().take(1).flat_map(|item| item.to.iter());
        let left = destinations.filter(|to| !is_sent(to));
        left.flat_map(|to| items.iter().map(move |item| (item, Some(*to))))
    });
    send_messages(socket, outbox, messages, scratch, counters);
}

#[inline]
fn send_messages<'a>(
    socket: &UdpSocket,
    outbox: &'a Outbox,
    messages: impl Iterator<Item = (&'a Item, Option<SocketAddrV4>)>,
    scratch: &mut SendScratch,
    counters: &mut SendCounters,
) {
    let outgoing = messages.map(|(item, to)| {
        let (head, tail) = outbox.parts(item);
        counters.samples += u64::from(item.samples);
        Outgoing { to, head, tail, segment: item.segment, joins: item.joins }
    });
    let outcome = socket.send_all(outgoing, scratch);
    counters.datagrams += outcome.datagrams;
    counters.system_calls += outcome.system_calls;
    counters.refused += outcome.refused;
}

/// The largest datagram, in bytes, that reaches all of `destinations` unfragmented, as far as this host knows.
pub(crate) fn segment_max(destinations: &[SocketAddrV4]) -> u16 {
    const HEADERS: usize = 28;
    let mtus = destinations.iter().map(|to| weir_udp::path_mtu_to(*to).unwrap_or(1500));
    let smallest = mtus.min().unwrap_or(1500).saturating_sub(HEADERS);
    u16::try_from(smallest.min(config::SEGMENTED_MAX_BYTES)).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use weir_rtps::block::{Block, BlockSlice};
    use weir_udp::{RecvBatch, Wait};

    use super::*;

    fn socket() -> UdpSocket {
        UdpSocket::bind(&SocketOptions::new(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))).unwrap()
    }

    /// One block for these addresses, sent by `sender`.
    fn send(sender: &mut Sender, to: &[SocketAddrV4]) {
        let mut block = Block::new(8);
        Arc::get_mut(&mut block).unwrap().bytes_mut().copy_from_slice(b"payload!");
        let mut outbox = Outbox::new();
        let slice = Some(BlockSlice::new(block, 0, 8));
        outbox.items.push(Item {
            to: Arc::from(to),
            slice,
            scratch: 0..0,
            is_scratch_first: false,
            segment: 0,
            datagrams: 1,
            samples: 1,
            joins: false,
        });
        sender.send(&socket(), &mut outbox);
        assert!(outbox.is_empty());
    }

    #[test]
    fn one_call_sends_a_block_to_many() {
        let readers: Vec<_> = (0..40).map(|_| socket()).collect();
        let addresses: Vec<_> = readers.iter().map(UdpSocket::local_addr).collect();
        let mut sender = Sender::default();
        sender.connect(&addresses, &[]);
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
            sender.connect(&to, &[route]);
            let before = sender.counters;
            send(&mut sender, &to);
            assert_eq!(sender.counters.datagrams - before.datagrams, to.len() as u64);
            assert_eq!(sender.counters.system_calls - before.system_calls, to.len() as u64);
            for listener in listeners.iter().chain((to.len() > 1).then_some(&beside)) {
                assert_eq!(listener.recv_batch(&mut batch, 1, Wait::Block).unwrap(), 1);
                assert_eq!(batch.get(0).unwrap().bytes, b"payload!");
            }
        }
        sender.connect(&[beside.local_addr()], &[]);
        assert!(sender.groups.is_empty() && sender.connected.is_some());
    }
}
