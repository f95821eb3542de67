//! Participants with a writer and a reader each on a simulated network: the driver's work in
//! virtual time.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;

use weir_netsim::{Builder, Delivery, Network};
use weir_rtps::discovery_event::DiscoveryEvent;
use weir_rtps::outbox::Outbox;
use weir_rtps::participant::{LocalEndpoint, ParticipantConfig, ParticipantCore};
use weir_rtps::ports;
use weir_rtps::qos::{Durability, Qos, Reliability};
use weir_rtps::reader::{ReaderConfig, ReaderCore, WriterProxyConfig};
use weir_rtps::receiver::unlocked::{Cores, UnlockedReceiver};
use weir_rtps::time::Time;
use weir_rtps::writer::{Change, ReaderProxyConfig, WriteRefused, WriterConfig, WriterCore};
use weir_wire::{EntityId, Guid, GuidPrefix, Message};

/// Some participants on a network. They are numbered from 0.
#[derive(Debug)]
pub struct World {
    /// The network, for its counters, its recording, and to change it.
    pub network: Network,
    now: Duration,
    nodes: Vec<Node>,
}

/// One participant with a writer and a reader of the same topic, on its own host.
#[derive(Debug)]
pub struct Node {
    /// Discovery.
    pub participant: ParticipantCore,
    /// The writer.
    pub writer: WriterCore,
    /// The reader.
    pub reader: ReaderCore,
    /// Payloads that the reader delivered, with the number of the writing participant.
    pub taken: Vec<(usize, Vec<u8>)>,
    receiver: UnlockedReceiver,
    /// Responses of writer and reader that were not sent yet.
    answers: Outbox,
    metatraffic: SocketAddrV4,
    user: SocketAddrV4,
}

impl World {
    /// Creates participants on a network, with writers and readers of these policies, starting now.
    #[must_use]
    pub fn new(network: Builder, nodes: usize, writer: &Qos, reader: &Qos) -> Self {
        let mut network = network.build();
        let nodes = (0..nodes).map(|index| Node::new(&mut network, index, writer, reader)).collect();
        Self { network, now: Duration::ZERO, nodes }
    }

    /// Returns a participant.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    #[must_use]
    pub fn node(&mut self, index: usize) -> &mut Node {
        &mut self.nodes[index]
    }

    /// Returns the time since the start.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Writes a sample.
    ///
    /// # Errors
    ///
    /// As [`WriterCore::write_change`].
    pub fn write(&mut self, index: usize, change: Change<'_>) -> Result<(), WriteRefused> {
        let now = time(self.now);
        let timestamp = weir_wire::Timestamp::from_unix_nanos(EPOCH_NS + now.0);
        self.nodes[index].writer.write_change(now, Some(timestamp), change)?;
        self.transmit();
        Ok(())
    }

    /// Runs until `goal` is met; false if it is not met within `limit`.
    pub fn run_until(&mut self, limit: Duration, mut goal: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + limit;
        self.transmit();
        while !goal(self) {
            let Some(next) = self.next_time().filter(|next| *next <= end) else {
                self.now = end;
                return goal(self);
            };
            self.now = next.max(self.now);
            self.step();
        }
        true
    }

    /// Runs for some time.
    pub fn run_for(&mut self, period: Duration) {
        self.run_until(period, |_| false);
    }

    /// Closes a participant, with its goodbye.
    pub fn close(&mut self, index: usize) {
        self.nodes[index].participant.close(time(self.now));
        self.transmit();
    }

    fn next_time(&self) -> Option<Duration> {
        let timeouts = self.nodes.iter().flat_map(|node| {
            [node.participant.next_timeout(), node.writer.next_timeout(), node.reader.next_timeout()]
        });
        let timeouts = timeouts.flatten().map(|at| Duration::from_nanos(at.0));
        timeouts.chain(self.network.next_arrival()).min()
    }

    fn step(&mut self) {
        let now = time(self.now);
        while let Some(delivery) = self.network.deliver(self.now) {
            let node =
                self.nodes.iter_mut().find(|node| [node.metatraffic, node.user].contains(&delivery.receiver));
            node.expect("only nodes are bound").receive(now, &delivery);
        }
        for node in &mut self.nodes {
            node.participant.handle_timeout(now);
            node.writer.handle_timeout(now);
            node.reader.handle_timeout(now);
        }
        self.transmit();
    }

    fn transmit(&mut self) {
        for node in &mut self.nodes {
            node.transmit(self.now, &mut self.network);
        }
    }
}

impl Node {
    fn new(network: &mut Network, index: usize, writer: &Qos, reader: &Qos) -> Self {
        let now = Time::ZERO;
        let host = Ipv4Addr::new(10, 0, 0, u8::try_from(index + 1).expect("few nodes"));
        let address = |port: Option<u16>| SocketAddrV4::new(host, port.expect("domain 0 has ports"));
        let (metatraffic, user) =
            (address(ports::metatraffic_unicast_port(0, 0)), address(ports::user_unicast_port(0, 0)));
        network.bind(metatraffic);
        network.bind(user);
        network.join(ports::metatraffic_multicast(0).expect("domain 0 has a group"), metatraffic);

        let mut config = ParticipantConfig::new(prefix(index), 0);
        config.metatraffic_unicast = vec![metatraffic];
        config.default_unicast = vec![user];
        config.entity_name = Some(format!("node {index}"));
        let mut participant = ParticipantCore::new(config, now);
        let endpoint = |entity, qos: &Qos| LocalEndpoint {
            entity,
            topic: "Square".into(),
            type_name: "ShapeType".into(),
            qos: qos.clone(),
            unicast: Vec::new(),
            multicast: None,
        };
        participant.add_writer(now, endpoint(WRITER, writer)).expect("a good writer");
        participant.add_reader(now, endpoint(READER, reader)).expect("a good reader");

        let mut config = WriterConfig::new(Guid::new(prefix(index), WRITER), writer.reliability);
        (config.history, config.durability) = (writer.history, writer.durability);
        let writer = WriterCore::new(config);
        let mut config = ReaderConfig::new(Guid::new(prefix(index), READER), reader.reliability);
        config.history = reader.history;
        let reader = ReaderCore::new(config);
        let (receiver, answers) = (UnlockedReceiver::default(), Outbox::new());
        Self { participant, writer, reader, taken: Vec::new(), receiver, answers, metatraffic, user }
    }

    fn receive(&mut self, now: Time, delivery: &Delivery) {
        if delivery.receiver == self.metatraffic {
            self.participant.handle_datagram(now, delivery.from, &delivery.bytes);
        } else {
            self.receive_user_data(now, &delivery.bytes);
        }
        self.apply_events(now);
        let taken = &mut self.taken;
        while self.reader.take_next(|sample| {
            let from = usize::from(sample.writer.prefix.0[11]);
            taken.push((from, sample.payload.to_vec()));
        }) {}
    }

    fn receive_user_data(&mut self, now: Time, datagram: &[u8]) {
        let message = Message::parse(datagram).expect("only we send");
        self.participant.assert_alive(now, message.header.prefix);
        let prefix = self.participant.config().guid_prefix;
        let (writers, readers) = (&mut [&mut self.writer], &mut [&mut self.reader]);
        self.receiver.receive(now, Cores { prefix, writers, readers }, [datagram], &mut self.answers);
        let counters = self.receiver.counters();
        assert_eq!(counters.malformed, 0, "only we send");
    }

    fn apply_events(&mut self, now: Time) {
        while let Some(event) = self.participant.poll_event() {
            match event {
                DiscoveryEvent::ReaderMatched { reader, .. } => self.writer.match_reader(
                    now,
                    ReaderProxyConfig {
                        guid: reader.guid,
                        reliable: reader.qos.reliability == Reliability::Reliable,
                        wants_history: reader.qos.durability != Durability::Volatile,
                        destinations: reader.destinations,
                        group: reader.group,
                        vendor: reader.vendor,
                        receive_buffer: reader.receive_buffer,
                        segment_max: u16::MAX,
                    },
                ),
                DiscoveryEvent::ReaderUnmatched { reader, .. } => self.writer.unmatch_reader(now, reader),
                DiscoveryEvent::WriterMatched { writer, .. } => self.reader.match_writer(
                    now,
                    WriterProxyConfig {
                        guid: writer.guid,
                        reliable: writer.qos.reliability == Reliability::Reliable,
                        destinations: writer.destinations,
                        vendor: writer.vendor,
                    },
                ),
                DiscoveryEvent::WriterUnmatched { writer, .. } => self.reader.unmatch_writer(now, writer),
                _ => {}
            }
        }
    }

    fn transmit(&mut self, at: Duration, network: &mut Network) {
        let now = time(at);
        self.apply_events(now);
        let mut send = |from: SocketAddrV4, out: &Outbox| {
            out.for_each_datagram(|to, datagram| {
                for to in to.iter() {
                    // Datagrams that are too large are lost, as on a real network.
                    let _ = network.send(at, from, *to, datagram);
                }
            });
        };
        let mut out = Outbox::new();
        self.participant.poll_transmit(now, &mut out);
        send(self.metatraffic, &out);
        let mut out = core::mem::take(&mut self.answers);
        self.writer.poll_transmit(now, &mut out);
        self.reader.poll_transmit(now, &mut out);
        send(self.user, &out);
    }
}

fn prefix(index: usize) -> GuidPrefix {
    let mut bytes = [1; 12];
    bytes[11] = u8::try_from(index).expect("few nodes");
    GuidPrefix(bytes)
}

fn time(at: Duration) -> Time {
    Time(u64::try_from(at.as_nanos()).expect("a run is shorter than 500 years"))
}

/// 2026-01-01: timestamps have to be plausible.
const EPOCH_NS: u64 = 1_767_225_600_000_000_000;

const WRITER: EntityId = EntityId::user_writer(1, false);
const READER: EntityId = EntityId::user_reader(2, false);
