//! Participants on a simulated network, in virtual time.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;
use std::collections::BTreeSet;

use weir_netsim::{Link, Network};
use weir_rtps::discovery_event::{DiscoveryEvent, RemoteEndpoint};
use weir_rtps::outbox::Outbox;
use weir_rtps::participant::{LocalEndpoint, OwnAddresses, ParticipantConfig, ParticipantCore};
use weir_rtps::qos::Qos;
use weir_rtps::time::Time;
use weir_wire::{EntityId, Guid, GuidPrefix};

pub(crate) const METATRAFFIC_PORT: u16 = 7410;
pub(crate) const USER_PORT: u16 = 7411;
pub(crate) const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 0, 1), 7400);

/// A datagram to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    pub(crate) from: SocketAddrV4,
    pub(crate) to: SocketAddrV4,
    pub(crate) bytes: Vec<u8>,
}

/// Returns what is sent instead of a datagram.
pub(crate) type Rewrite = Box<dyn FnMut(Datagram) -> Vec<Datagram>>;

/// One participant with its events.
pub(crate) struct Node {
    pub(crate) core: ParticipantCore,
    pub(crate) address: SocketAddrV4,
    pub(crate) events: Vec<(Time, DiscoveryEvent)>,
    is_up: bool,
}

/// The participants and the network.
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) nodes: Vec<Node>,
    pub(crate) network: Network,
    /// Changes datagrams before they are sent.
    pub(crate) rewrite: Rewrite,
    /// Everything that was sent, whether it arrived or not.
    pub(crate) sent: Vec<Datagram>,
    /// Addresses with a socket.
    bound: BTreeSet<SocketAddrV4>,
}

impl World {
    pub(crate) fn new() -> Self {
        // A flood fits the buffers: the limits under test are those of the participant.
        let network = Network::builder(1).link(link()).loopback(link()).buffer_bytes(1 << 30).build();
        Self {
            now: Time(1_000_000_000),
            nodes: Vec::new(),
            network,
            rewrite: Box::new(|datagram| vec![datagram]),
            sent: Vec::new(),
            bound: BTreeSet::new(),
        }
    }

    /// Adds a participant on its own host that starts now.
    pub(crate) fn start(&mut self) -> usize {
        self.start_with(|_| ())
    }

    /// As [`World::start`], with a changed configuration.
    pub(crate) fn start_with(&mut self, change: impl FnOnce(&mut ParticipantConfig)) -> usize {
        let index = self.nodes.len();
        let mut config = config(index);
        change(&mut config);
        let address = config.metatraffic_unicast[0];
        self.bind(address);
        self.network.join(GROUP, address);
        let core = ParticipantCore::new(config, self.now);
        self.nodes.push(Node { core, address, events: Vec::new(), is_up: true });
        index
    }

    /// Stops a participant: it neither sends nor receives any more.
    pub(crate) fn kill(&mut self, node: usize) {
        let node = &mut self.nodes[node];
        node.is_up = false;
        self.network.close(node.address);
        self.bound.remove(&node.address);
    }

    /// The addresses of a participant.
    pub(crate) fn addresses(&self, node: usize) -> OwnAddresses {
        let config = self.nodes[node].core.config();
        OwnAddresses {
            metatraffic_unicast: config.metatraffic_unicast.clone(),
            default_unicast: config.default_unicast.clone(),
            interfaces: config.interfaces.clone(),
            multicast_interfaces: config.multicast_interfaces.clone(),
        }
    }

    /// Gives a participant's host another address in place of the one that it has.
    pub(crate) fn readdress(&mut self, node: usize, host: Ipv4Addr) {
        let mut addresses = self.addresses(node);
        let address = SocketAddrV4::new(host, METATRAFFIC_PORT);
        addresses.metatraffic_unicast = vec![address];
        addresses.default_unicast = vec![SocketAddrV4::new(host, USER_PORT)];
        let before = core::mem::replace(&mut self.nodes[node].address, address);
        self.network.close(before);
        self.bound.remove(&before);
        self.bind(address);
        self.network.join(GROUP, address);
        let now = self.now;
        self.nodes[node].core.set_addresses(now, addresses);
    }

    fn bind(&mut self, address: SocketAddrV4) {
        if self.bound.insert(address) {
            self.network.bind(address);
        }
    }

    /// Runs for some time.
    pub(crate) fn run_for(&mut self, period: Duration) {
        let end = self.now + period;
        let mut steps = 0_u32;
        self.transmit();
        while let Some(at) = self.next_at().filter(|&at| at <= end) {
            // A core that always has a timeout due would stop time.
            steps = if at > self.now { 0 } else { steps + 1 };
            assert!(steps < 10_000, "time stands still at {:?}", self.now);
            self.now = self.now.max(at);
            self.step();
        }
        self.now = end;
    }

    /// Adds a writer of the topic.
    pub(crate) fn add_writer(&mut self, node: usize, key: u32, topic: &str, qos: Qos) -> Guid {
        let entity = EntityId::user_writer(key, false);
        let now = self.now;
        self.nodes[node].core.add_writer(now, endpoint(entity, topic, qos)).unwrap();
        Guid::new(prefix(node), entity)
    }

    /// Adds a reader of the topic.
    pub(crate) fn add_reader(&mut self, node: usize, key: u32, topic: &str, qos: Qos) -> Guid {
        let entity = EntityId::user_reader(key, false);
        let now = self.now;
        self.nodes[node].core.add_reader(now, endpoint(entity, topic, qos)).unwrap();
        Guid::new(prefix(node), entity)
    }

    /// Returns a participant's events since the last call.
    pub(crate) fn events(&mut self, node: usize) -> Vec<DiscoveryEvent> {
        self.collect_events();
        core::mem::take(&mut self.nodes[node].events).into_iter().map(|(_, event)| event).collect()
    }

    /// When a participant reported the first event that `is_it`.
    pub(crate) fn first_time(
        &mut self,
        node: usize,
        is_it: impl Fn(&DiscoveryEvent) -> bool,
    ) -> Option<Time> {
        self.collect_events();
        self.nodes[node].events.iter().find(|(_, event)| is_it(event)).map(|(at, _)| *at)
    }

    fn next_at(&self) -> Option<Time> {
        let up = self.nodes.iter().filter(|node| node.is_up);
        let timeouts = up.filter_map(|node| node.core.next_timeout());
        let arrival = self.network.next_arrival().map(|at| Time(at.as_nanos() as u64));
        timeouts.chain(arrival).min()
    }

    fn step(&mut self) {
        let now = self.now;
        while let Some(delivery) = self.network.deliver(since_start(now)) {
            let mut up = self.nodes.iter_mut().filter(|node| node.is_up);
            if let Some(node) = up.find(|node| node.address == delivery.receiver) {
                node.core.handle_datagram(now, delivery.from, &delivery.bytes);
            }
        }
        for node in self.nodes.iter_mut().filter(|node| node.is_up) {
            if node.core.next_timeout().is_some_and(|at| at <= now) {
                node.core.handle_timeout(now);
            }
        }
        self.transmit();
    }

    fn transmit(&mut self) {
        let now = self.now;
        for index in 0..self.nodes.len() {
            let node = &mut self.nodes[index];
            let mut out = Outbox::new();
            node.core.poll_transmit(now, &mut out);
            if !node.is_up {
                continue;
            }
            let from = node.address;
            let mut datagrams = Vec::new();
            out.for_each_datagram(|to, bytes| {
                assert!(!to.is_empty());
                datagrams.extend(to.iter().map(|&to| Datagram { from, to, bytes: bytes.to_vec() }));
            });
            datagrams.into_iter().for_each(|datagram| self.send(datagram));
        }
        self.collect_events();
    }

    /// Sends a datagram, from any address.
    pub(crate) fn send(&mut self, datagram: Datagram) {
        (self.rewrite)(datagram).into_iter().for_each(|datagram| self.send_as_it_is(datagram));
    }

    fn send_as_it_is(&mut self, datagram: Datagram) {
        let Datagram { from, to, bytes } = &datagram;
        self.bind(*from);
        self.network.send(since_start(self.now), *from, *to, bytes).unwrap();
        self.sent.push(datagram);
    }

    fn collect_events(&mut self) {
        for node in &mut self.nodes {
            while let Some(event) = node.core.poll_event() {
                node.events.push((self.now, event));
            }
        }
    }
}

/// The configuration of the `index`-th participant, alone on its host.
pub(crate) fn config(index: usize) -> ParticipantConfig {
    let mut config = ParticipantConfig::new(prefix(index), 0);
    let host = Ipv4Addr::new(10, 0, (index >> 8) as u8, index as u8 + 1);
    config.metatraffic_unicast = vec![SocketAddrV4::new(host, METATRAFFIC_PORT)];
    config.default_unicast = vec![SocketAddrV4::new(host, USER_PORT)];
    config
}

pub(crate) fn prefix(index: usize) -> GuidPrefix {
    let mut prefix = [0xaa; 12];
    prefix[8..].copy_from_slice(&(index as u32).to_be_bytes());
    GuidPrefix(prefix)
}

pub(crate) fn endpoint(entity: EntityId, topic: &str, qos: Qos) -> LocalEndpoint {
    LocalEndpoint {
        entity,
        topic: topic.to_owned(),
        type_name: "Type".to_owned(),
        qos,
        unicast: Vec::new(),
        multicast: None,
    }
}

/// Returns the endpoint that an event reports as matched.
pub(crate) fn matched(event: &DiscoveryEvent) -> Option<&RemoteEndpoint> {
    match event {
        DiscoveryEvent::ReaderMatched { reader, .. } => Some(reader),
        DiscoveryEvent::WriterMatched { writer, .. } => Some(writer),
        _ => None,
    }
}

/// The link between any two hosts.
pub(crate) fn link() -> Link {
    Link::new().delay(Duration::from_micros(100))
}

/// Time on the network.
pub(crate) fn since_start(now: Time) -> Duration {
    Duration::from_nanos(now.0)
}
