//! What a remote endpoint costs in a large domain, without a limits table.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use weir_rtps::discovery_event::{DiscoveryEvent, RemoteEndpoint};
use weir_rtps::outbox::Outbox;
use weir_rtps::participant::{Interface, LocalEndpoint, ParticipantConfig, ParticipantCore};
use weir_rtps::qos::{Qos, Reliability};
use weir_rtps::reader::{ReaderConfig, ReaderCore, WriterProxyConfig};
use weir_rtps::time::Time;
use weir_rtps::writer::{ReaderProxyConfig, WriterConfig, WriterCore};
use weir_wire::{EntityId, Guid, GuidPrefix};

use crate::allocated;
use crate::forge::{self, Forged};

const OWN: GuidPrefix = GuidPrefix([1; 12]);
const ADDRESS: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 7410);
/// Each participant has a writer and a reader of each.
const TOPICS: u32 = 25;

/// A participant with its endpoints, as a driver runs it. What it sends is dropped.
struct Station {
    core: ParticipantCore,
    writers: BTreeMap<EntityId, WriterCore>,
    readers: BTreeMap<EntityId, ReaderCore>,
    now: Time,
    out: Outbox,
}

impl Station {
    fn new() -> Self {
        let mut config = ParticipantConfig::new(OWN, 0);
        config.metatraffic_unicast = vec![ADDRESS];
        config.default_unicast = vec![ADDRESS];
        config.interfaces =
            vec![Interface { address: *ADDRESS.ip(), netmask: Ipv4Addr::new(255, 255, 255, 0) }];
        let now = Time(1_000_000_000);
        let core = ParticipantCore::new(config, now);
        let (writers, readers) = (BTreeMap::new(), BTreeMap::new());
        let mut station = Self { core, writers, readers, now, out: Outbox::new() };
        (0..TOPICS).for_each(|topic| station.add_endpoints(topic));
        station.settle();
        station
    }

    fn add_endpoints(&mut self, topic: u32) {
        let (writer, reader) = entities(topic);
        let qos = Qos { reliability: Reliability::Reliable, ..Qos::for_reader() };
        let endpoint = |entity| LocalEndpoint {
            entity,
            topic: format!("topic {topic}"),
            type_name: "Type".to_owned(),
            qos: qos.clone(),
            unicast: Vec::new(),
            multicast: None,
        };
        self.core.add_writer(self.now, endpoint(writer)).unwrap();
        self.core.add_reader(self.now, endpoint(reader)).unwrap();
        let config = WriterConfig::new(Guid::new(OWN, writer), Reliability::Reliable);
        self.writers.insert(writer, WriterCore::new(config));
        let config = ReaderConfig::new(Guid::new(OWN, reader), Reliability::Reliable);
        self.readers.insert(reader, ReaderCore::new(config));
    }

    fn settle(&mut self) {
        while let Some(event) = self.core.poll_event() {
            match event {
                DiscoveryEvent::ReaderMatched { writer, reader } => self.match_reader(writer, reader),
                DiscoveryEvent::WriterMatched { reader, writer } => self.match_writer(reader, writer),
                _ => {}
            }
        }
        self.core.poll_transmit(self.now, &mut self.out);
        self.out.clear();
    }

    fn match_reader(&mut self, writer: EntityId, reader: RemoteEndpoint) {
        let writer = self.writers.get_mut(&writer).unwrap();
        let config = ReaderProxyConfig {
            guid: reader.guid,
            reliable: true,
            wants_history: false,
            destinations: reader.destinations,
            group: None,
            vendor: reader.vendor,
            receive_buffer: reader.receive_buffer,
            segment_max: u16::MAX,
            path: None,
        };
        writer.match_reader(self.now, config);
        writer.poll_transmit(self.now, &mut self.out);
        self.out.clear();
    }

    fn match_writer(&mut self, reader: EntityId, writer: RemoteEndpoint) {
        let reader = self.readers.get_mut(&reader).unwrap();
        let RemoteEndpoint { guid, destinations, vendor, .. } = writer;
        reader.match_writer(self.now, WriterProxyConfig { guid, reliable: true, destinations, vendor });
        reader.poll_transmit(self.now, &mut self.out);
        self.out.clear();
    }

    /// A participant announces itself and its endpoints, and answers.
    fn discover(&mut self, number: u8) {
        let prefix = GuidPrefix([0xe0, number, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
        let from = SocketAddrV4::new(*ADDRESS.ip(), 7500 + u16::from(number));
        let by = || Forged::by(prefix).to(OWN);
        let announcement = by().data(EntityId::SPDP_WRITER, 1, &forge::participant(prefix, from));
        // It has received everything that is announced to it.
        let behind = self.core.config().first_announcement.0 + i64::from(TOPICS);
        let publications = (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER);
        let subscriptions = (EntityId::SEDP_SUBSCRIPTIONS_READER, EntityId::SEDP_SUBSCRIPTIONS_WRITER);
        let answer = by().acknack(publications, behind, &[], 1).acknack(subscriptions, behind, &[], 1);
        let mut messages = vec![announcement, answer];
        let announcers = [EntityId::SEDP_PUBLICATIONS_WRITER, EntityId::SEDP_SUBSCRIPTIONS_WRITER];
        for topic in 0..TOPICS {
            let (writer, reader) = entities(topic);
            for (entity, announcer) in [writer, reader].into_iter().zip(announcers) {
                let payload = forge::endpoint(Guid::new(prefix, entity), &format!("topic {topic}"), |_| {});
                messages.push(by().data(announcer, i64::from(topic) + 1, &payload));
            }
        }
        for Forged(message) in messages {
            self.now = self.now + Duration::from_micros(100);
            self.core.handle_datagram(self.now, from, &message);
            self.settle();
        }
    }

    fn matches(&self) -> usize {
        let writers = self.writers.values().map(WriterCore::matched).sum::<usize>();
        writers + self.readers.values().map(|reader| reader.matched().count()).sum::<usize>()
    }
}

/// The writer and the reader of a topic.
fn entities(topic: u32) -> (EntityId, EntityId) {
    (EntityId::user_writer(2 * topic + 1, false), EntityId::user_reader(2 * topic + 2, false))
}

/// Counts requested bytes, without what the allocator adds, and without names and policies, which are shared.
pub(crate) fn a_remote_endpoint_and_its_match_take_no_more_than_320_bytes() {
    let mut station = Station::new();
    (0..20).for_each(|number| station.discover(number));
    let few = allocated();
    (20..200).for_each(|number| station.discover(number));
    let taken = allocated() - few;
    let endpoints = station.core.remote_endpoints();
    assert_eq!((endpoints, station.matches()), (10_000, 10_000 + 2 * TOPICS as usize));
    let each = taken / (180 * 2 * TOPICS as usize);
    assert!(each <= 320, "{each} bytes");
}
