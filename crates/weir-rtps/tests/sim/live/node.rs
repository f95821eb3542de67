//! A complete participant as a state machine: discovery, writers and readers, connected as by a
//! driver, but without sockets and threads. Shared with the fuzz targets.

use core::net::{Ipv4Addr, SocketAddrV4};
use std::collections::BTreeMap;

use weir_rtps::discovery_event::{DiscoveryEvent, RemoteEndpoint};
use weir_rtps::limits::EndpointLimits;
use weir_rtps::outbox::Outbox;
use weir_rtps::participant::{LocalEndpoint, ParticipantConfig, ParticipantCore};
use weir_rtps::qos::{Durability, Qos, Reliability};
use weir_rtps::reader::{ReaderConfig, ReaderCore, WriterProxyConfig};
use weir_rtps::receiver::unlocked::{Cores, UnlockedReceiver};
use weir_rtps::time::Time;
use weir_rtps::writer::{ReaderProxyConfig, WriterConfig, WriterCore};
use weir_wire::{EntityId, Guid, GuidPrefix, SequenceNumber};

/// The port for a participant's discovery traffic.
pub(crate) const META_PORT: u16 = 7410;
/// The port for a participant's samples and acknowledgements.
pub(crate) const USER_PORT: u16 = 7411;
/// The destination of announcements to all participants.
pub(crate) const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 0, 1), 7400);

/// One participant.
pub(crate) struct Node {
    pub(crate) core: ParticipantCore,
    pub(crate) prefix: GuidPrefix,
    pub(crate) host: Ipv4Addr,
    pub(crate) writers: BTreeMap<EntityId, WriterCore>,
    pub(crate) readers: BTreeMap<EntityId, ReaderCore>,
    /// The limits table of its endpoints.
    pub(crate) limits: Option<EndpointLimits>,
    /// For user datagrams.
    pub(crate) receiver: UnlockedReceiver,
    /// Events of discovery so far, and how many of them ended a match, by participant.
    pub(crate) events: u64,
    pub(crate) unmatched: BTreeMap<GuidPrefix, u64>,
    out: Outbox,
    /// Responses of writers and readers that were not sent yet.
    answers: Outbox,
}

/// Finds an instance: a payload starts with the key after the encapsulation header.
#[expect(clippy::unnecessary_wraps, reason = "the type is that of the reader's configuration")]
pub(crate) fn key_of(payload: &[u8], _is_key: bool) -> Option<[u8; 16]> {
    let mut key = [0; 16];
    let bytes = payload.get(4..8).unwrap_or_default();
    key[..bytes.len()].copy_from_slice(bytes);
    Some(key)
}

impl Node {
    /// Creates a participant alone on its host; `number` identifies both.
    pub(crate) fn new(number: u8, now: Time, change: impl FnOnce(&mut ParticipantConfig)) -> Self {
        let host = Ipv4Addr::new(10, 0, 0, number);
        let prefix = GuidPrefix([number; 12]);
        let mut config = ParticipantConfig::new(prefix, 0);
        config.metatraffic_unicast = vec![SocketAddrV4::new(host, META_PORT)];
        config.default_unicast = vec![SocketAddrV4::new(host, USER_PORT)];
        config.first_announcement = SequenceNumber(0x5_eed0 + i64::from(number));
        change(&mut config);
        let (prefix, host) = (config.guid_prefix, *config.default_unicast[0].ip());
        Self {
            core: ParticipantCore::new(config, now),
            prefix,
            host,
            writers: BTreeMap::new(),
            readers: BTreeMap::new(),
            limits: None,
            receiver: UnlockedReceiver::default(),
            events: 0,
            unmatched: BTreeMap::new(),
            out: Outbox::new(),
            answers: Outbox::new(),
        }
    }

    /// Adds a writer whose core is configured by its policies.
    pub(crate) fn add_writer(&mut self, now: Time, entity: EntityId, topic: &str, qos: Qos) {
        let config = WriterConfig {
            history: qos.history,
            durability: qos.durability,
            limits: self.limits,
            ..WriterConfig::new(Guid::new(self.prefix, entity), qos.reliability)
        };
        self.writers.insert(entity, WriterCore::new(config));
        self.core.add_writer(now, endpoint(entity, topic, qos)).expect("a writer that can be announced");
        self.apply_events(now);
    }

    /// Adds a reader whose core is configured by its policies; `change` adjusts it.
    pub(crate) fn add_reader(
        &mut self,
        now: Time,
        entity: EntityId,
        topic: &str,
        qos: Qos,
        change: impl FnOnce(&mut ReaderConfig),
    ) {
        let mut config = ReaderConfig {
            history: qos.history,
            key_of: entity.is_keyed().then_some(key_of),
            wants_history: qos.durability != Durability::Volatile,
            limits: self.limits,
            ..ReaderConfig::new(Guid::new(self.prefix, entity), qos.reliability)
        };
        change(&mut config);
        self.readers.insert(entity, ReaderCore::new(config));
        self.core.add_reader(now, endpoint(entity, topic, qos)).expect("a reader that can be announced");
        self.apply_events(now);
    }

    /// Processes a datagram that arrived at one of the ports.
    pub(crate) fn receive(&mut self, now: Time, from: SocketAddrV4, port: u16, bytes: &[u8]) {
        if port == USER_PORT {
            self.receive_user(now, bytes);
        } else {
            self.core.handle_datagram(now, from, bytes);
        }
        self.apply_events(now);
    }

    /// Does what is due at `now`.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        if is_due(self.core.next_timeout()) {
            self.core.handle_timeout(now);
        }
        self.writers
            .values_mut()
            .filter(|it| is_due(it.next_timeout()))
            .for_each(|it| it.handle_timeout(now));
        self.readers
            .values_mut()
            .filter(|it| is_due(it.next_timeout()))
            .for_each(|it| it.handle_timeout(now));
        self.apply_events(now);
    }

    /// Returns when something is due.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let writers = self.writers.values().filter_map(WriterCore::next_timeout);
        let readers = self.readers.values().filter_map(ReaderCore::next_timeout);
        self.core.next_timeout().into_iter().chain(writers).chain(readers).min()
    }

    /// Passes on every datagram that is to be sent now: source port, destination, and bytes.
    pub(crate) fn transmit(&mut self, now: Time, mut each: impl FnMut(u16, SocketAddrV4, &[u8])) {
        let mut out = core::mem::take(&mut self.out);
        out.clear();
        self.core.poll_transmit(now, &mut out);
        out.for_each_datagram(|to, bytes| to.iter().for_each(|to| each(META_PORT, *to, bytes)));
        out.clear();
        core::mem::swap(&mut out, &mut self.answers);
        self.writers.values_mut().for_each(|writer| writer.poll_transmit(now, &mut out));
        self.readers.values_mut().for_each(|reader| reader.poll_transmit(now, &mut out));
        out.for_each_datagram(|to, bytes| to.iter().for_each(|to| each(USER_PORT, *to, bytes)));
        self.out = out;
    }

    fn receive_user(&mut self, now: Time, bytes: &[u8]) {
        let mut writers: Vec<_> = self.writers.values_mut().collect();
        let mut readers: Vec<_> = self.readers.values_mut().collect();
        let cores = Cores { prefix: self.prefix, writers: &mut writers, readers: &mut readers };
        self.receiver.receive(now, cores, [bytes], &mut self.answers);
    }

    pub(crate) fn apply_events(&mut self, now: Time) {
        while let Some(event) = self.core.poll_event() {
            self.events += 1;
            match event {
                DiscoveryEvent::ReaderMatched { writer, reader } => {
                    let (guid, is_near) = (reader.guid, self.is_near(reader.guid.prefix));
                    let writer = self.writer(writer);
                    writer.match_reader(now, reader_proxy(reader));
                    if is_near {
                        writer.spare_heartbeat(guid);
                    }
                }
                DiscoveryEvent::ReaderChanged { writer, reader } => {
                    let RemoteEndpoint { guid, destinations, group, .. } = reader;
                    self.writer(writer).move_reader(now, guid, destinations, group, u16::MAX, None);
                }
                DiscoveryEvent::ReaderUnmatched { writer, reader } => {
                    *self.unmatched.entry(reader.prefix).or_default() += 1;
                    self.writer(writer).unmatch_reader(now, reader);
                }
                DiscoveryEvent::WriterMatched { reader, writer } => {
                    let liveliness = writer.qos.liveliness;
                    let (guid, is_near) = (writer.guid, self.is_near(writer.guid.prefix));
                    let reader = self.reader(reader);
                    reader.match_writer(now, writer_proxy(writer));
                    if is_near {
                        reader.await_heartbeat(guid);
                    }
                    reader.set_liveliness(now, guid, liveliness);
                }
                DiscoveryEvent::WriterChanged { reader, writer } => {
                    self.reader(reader).move_writer(writer.guid, writer.destinations);
                }
                DiscoveryEvent::WriterUnmatched { reader, writer } => {
                    *self.unmatched.entry(writer.prefix).or_default() += 1;
                    self.reader(reader).unmatch_writer(now, writer);
                }
                DiscoveryEvent::LivelinessAsserted { prefix, kind } => {
                    self.readers.values_mut().for_each(|it| it.assert_liveliness(now, prefix, kind));
                }
                _ => {}
            }
        }
    }

    /// Returns whether a participant is taken to be on this host: every other one.
    fn is_near(&self, other: GuidPrefix) -> bool {
        (self.prefix.0[0] ^ other.0[0]) & 1 == 0
    }

    /// Returns an existing local writer.
    pub(crate) fn writer(&mut self, entity: EntityId) -> &mut WriterCore {
        self.writers.get_mut(&entity).expect("events are about local writers")
    }

    /// Returns an existing local reader.
    pub(crate) fn reader(&mut self, entity: EntityId) -> &mut ReaderCore {
        self.readers.get_mut(&entity).expect("events are about local readers")
    }
}

fn endpoint(entity: EntityId, topic: &str, qos: Qos) -> LocalEndpoint {
    LocalEndpoint {
        entity,
        topic: topic.to_owned(),
        type_name: "Type".to_owned(),
        qos,
        unicast: Vec::new(),
        multicast: None,
    }
}

fn reader_proxy(reader: RemoteEndpoint) -> ReaderProxyConfig {
    ReaderProxyConfig {
        guid: reader.guid,
        reliable: reader.qos.reliability == Reliability::Reliable,
        wants_history: reader.qos.durability != Durability::Volatile,
        destinations: reader.destinations,
        group: reader.group,
        vendor: reader.vendor,
        receive_buffer: reader.receive_buffer,
        segment_max: u16::MAX,
        path: None,
    }
}

fn writer_proxy(writer: RemoteEndpoint) -> WriterProxyConfig {
    WriterProxyConfig {
        guid: writer.guid,
        reliable: writer.qos.reliability == Reliability::Reliable,
        destinations: writer.destinations,
        vendor: writer.vendor,
    }
}
