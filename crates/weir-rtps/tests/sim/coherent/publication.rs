//! The writers of a publisher and the readers of a subscriber on a simulated network.

use core::time::Duration;
use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::sync::Arc;

use weir_netsim::{Link, Network};
use weir_rtps::config::READER_CACHE_MAX_BYTES;
use weir_rtps::group::{GroupSequence, group_digest};
use weir_rtps::outbox::Outbox;
use weir_rtps::qos::{Durability, History, Presentation, PresentationScope, Reliability};
use weir_rtps::reader::groups::{self, GroupPosition};
use weir_rtps::reader::{ReaderConfig, ReaderCore, SampleSelection, States, WriterProxyConfig};
use weir_rtps::receiver::unlocked::{Cores, UnlockedReceiver};
use weir_rtps::time::Time;
use weir_rtps::writer::{ReaderProxyConfig, Stamp, WriterConfig, WriterCore, WriterPresentation};
use weir_wire::{EntityId, Guid, GuidPrefix, Timestamp, VendorId};

use crate::harness::address;

/// The policies of both sides.
#[derive(Debug, Clone, Copy)]
pub(super) struct Policies {
    pub(super) reliability: Reliability,
    pub(super) durability: Durability,
    pub(super) history: History,
    pub(super) presentation: Presentation,
    /// Length of a value in bytes.
    pub(super) len: usize,
    /// What a reader may hold.
    pub(super) max_bytes: usize,
}

impl Policies {
    pub(super) fn coherent(scope: PresentationScope) -> Self {
        Self {
            reliability: Reliability::Reliable,
            durability: Durability::Volatile,
            history: History::KeepAll,
            presentation: Presentation { scope, coherent_access: true, ordered_access: false },
            len: 8,
            max_bytes: READER_CACHE_MAX_BYTES,
        }
    }

    pub(super) fn ordered(scope: PresentationScope) -> Self {
        let presentation = Presentation { scope, coherent_access: false, ordered_access: true };
        Self { presentation, ..Self::coherent(scope) }
    }
}

/// A value: its writer, its instance, and its number.
pub(super) type Value = (usize, u8, u8);

struct Host<C> {
    guid: Guid,
    address: SocketAddrV4,
    core: C,
    receiver: UnlockedReceiver,
}

/// A publisher with writers, and a subscriber with readers. Reader `n` reads what writer `n` writes.
pub(super) struct Publication {
    pub(super) network: Network,
    pub(super) now: Time,
    policies: Policies,
    writers: Vec<Host<WriterCore>>,
    readers: Vec<Host<ReaderCore>>,
    sequence: GroupSequence,
    out: Outbox,
    /// Values written so far: the next one has this timestamp.
    writes: u32,
}

impl Publication {
    pub(super) fn new(seed: u64, link: Link, policies: Policies, writers: usize) -> Self {
        let mut publication = Self {
            network: Network::builder(seed).link(link).build(),
            now: Time::ZERO,
            policies,
            writers: Vec::new(),
            readers: Vec::new(),
            sequence: GroupSequence::default(),
            out: Outbox::new(),
            writes: 0,
        };
        for index in 0..writers {
            publication.add_writer(index);
        }
        publication
    }

    /// The same, with a reader for each writer, which all know each other.
    pub(super) fn complete(seed: u64, link: Link, policies: Policies, writers: usize) -> Self {
        let mut publication = Self::new(seed, link, policies, writers);
        for writer in 0..writers {
            publication.add_reader(writer);
        }
        publication
    }

    fn add_writer(&mut self, index: usize) {
        let Policies { reliability, durability, history, presentation, .. } = self.policies;
        let guid = Guid::new(GuidPrefix([1 + index as u8; 12]), EntityId::user_writer(1, true));
        let is_group = presentation.scope == PresentationScope::Group;
        let config = WriterConfig {
            history,
            durability,
            presentation: Some(WriterPresentation {
                is_coherent: presentation.coherent_access,
                group: is_group.then(|| self.sequence.clone()),
            }),
            ..WriterConfig::new(guid, reliability)
        };
        let address = address(index);
        self.network.bind(address);
        let (core, receiver) = (WriterCore::new(config), UnlockedReceiver::default());
        self.writers.push(Host { guid, address, core, receiver });
    }

    /// Adds a reader of what a writer writes.
    pub(super) fn add_reader(&mut self, writer: usize) -> usize {
        let index = self.readers.len();
        let Policies { reliability, durability, history, presentation, max_bytes, .. } = self.policies;
        let guid = Guid::new(GuidPrefix([101 + index as u8; 12]), EntityId::user_reader(1, true));
        let config = ReaderConfig {
            history,
            presentation,
            max_bytes,
            wants_history: durability != Durability::Volatile,
            key_of: Some(|payload, _| Some([*payload.get(4)?; 16])),
            ..ReaderConfig::new(guid, reliability)
        };
        let address = address(100 + index);
        self.network.bind(address);
        let (core, receiver) = (ReaderCore::new(config), UnlockedReceiver::default());
        self.readers.push(Host { guid, address, core, receiver });
        self.connect(writer, index);
        index
    }

    fn connect(&mut self, writer: usize, reader: usize) {
        let is_reliable = self.policies.reliability == Reliability::Reliable;
        let from = &mut self.writers[writer];
        let to = &mut self.readers[reader];
        from.core.match_reader(
            self.now,
            ReaderProxyConfig {
                guid: to.guid,
                reliable: is_reliable,
                wants_history: self.policies.durability != Durability::Volatile,
                destinations: Arc::from([to.address]),
                group: None,
                vendor: VendorId::WEIR,
                receive_buffer: Some(8 << 20),
                segment_max: 1472,
                path: None,
            },
        );
        let destinations = Arc::from([from.address]);
        let proxy = WriterProxyConfig {
            guid: from.guid,
            reliable: is_reliable,
            destinations,
            vendor: VendorId::WEIR,
        };
        to.core.match_writer(self.now, proxy);
        if self.policies.presentation.scope == PresentationScope::Group {
            to.core.set_writer_group(from.guid, publisher());
        }
        self.transmit();
    }

    /// Lets a reader read what another writer writes, too.
    pub(super) fn join(&mut self, writer: usize, reader: usize) {
        self.connect(writer, reader);
    }

    /// Unmatches a writer from its readers, as if it had left.
    pub(super) fn leave(&mut self, writer: usize) {
        let guid = self.writers[writer].guid;
        for reader in &mut self.readers {
            reader.core.unmatch_writer(self.now, guid);
        }
        self.settle();
    }

    pub(super) fn begin(&mut self) {
        let group = self.policies.presentation.scope == PresentationScope::Group;
        let group_set = group.then(|| self.sequence.peek());
        self.writers.iter_mut().for_each(|writer| writer.core.begin_set(group_set));
    }

    pub(super) fn end(&mut self) {
        let entities: Vec<_> = self.writers.iter().map(|writer| writer.guid.entity).collect();
        for writer in &mut self.writers {
            let stamp = Timestamp { seconds: 1, fraction: self.writes };
            writer.core.end_set(self.now, stamp, Some(group_digest(&entities))).expect("there is room");
        }
        self.transmit();
    }

    pub(super) fn write(&mut self, writer: usize, instance: u8, number: u8) {
        self.writes += 1;
        let stamp =
            Stamp { timestamp: Timestamp { seconds: 1, fraction: self.writes }, key: Some([instance; 16]) };
        let len = self.policies.len;
        let fill = |room: &mut [u8]| {
            room.fill(0);
            room[1] = 1;
            (room[4], room[5], room[6]) = (instance, number, writer as u8);
            Ok::<_, ()>(())
        };
        let written = self.writers[writer].core.write(self.now, stamp, len, fill);
        written.expect("it is encoded").expect("there is room");
        self.transmit();
    }

    /// Writes a set in the way of the interoperability suite of the OMG: `rounds` values of each instance of each
    /// writer.
    pub(super) fn write_set(&mut self, instances: u8, rounds: u8, first: u8) {
        self.begin();
        for round in 0..rounds {
            for writer in 0..self.writers.len() {
                (0..instances).for_each(|instance| self.write(writer, instance, first + round));
            }
        }
        self.end();
    }

    /// Sends what is due.
    fn transmit(&mut self) {
        for index in 0..self.writers.len() {
            self.out.clear();
            self.writers[index].core.poll_transmit(self.now, &mut self.out);
            self.send(self.writers[index].address);
        }
        for index in 0..self.readers.len() {
            self.out.clear();
            self.readers[index].core.poll_transmit(self.now, &mut self.out);
            self.send(self.readers[index].address);
        }
    }

    fn send(&mut self, from: SocketAddrV4) {
        let now = Duration::from_nanos(self.now.0);
        let network = &mut self.network;
        self.out.for_each_datagram(|to, datagram| {
            for to in to.iter() {
                network.send(now, from, *to, datagram).expect("it fits a datagram");
            }
        });
    }

    /// Runs until nothing more happens within a second, and lets the subscriber settle its readers after each step.
    pub(super) fn run(&mut self) {
        self.run_for(Duration::from_secs(1));
    }

    pub(super) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let arrival = self.network.next_arrival().map(|at| Time(at.as_nanos() as u64));
            let writers = self.writers.iter().filter_map(|host| host.core.next_timeout());
            let readers = self.readers.iter().filter_map(|host| host.core.next_timeout());
            let Some(at) = arrival.into_iter().chain(writers).chain(readers).min().filter(|at| *at <= end)
            else {
                break;
            };
            self.now = self.now.max(at);
            self.step();
            self.settle();
        }
        self.now = end;
    }

    fn step(&mut self) {
        let mut arrived: BTreeMap<SocketAddrV4, Vec<Vec<u8>>> = BTreeMap::new();
        while let Some(delivery) = self.network.deliver(Duration::from_nanos(self.now.0)) {
            arrived.entry(delivery.receiver).or_default().push(delivery.bytes.to_vec());
        }
        for (address, datagrams) in arrived {
            self.out.clear();
            let datagrams = datagrams.iter().map(Vec::as_slice);
            if let Some(host) = self.writers.iter_mut().find(|host| host.address == address) {
                let (prefix, core) = (host.guid.prefix, &mut host.core);
                let cores = Cores { prefix, writers: &mut [core], readers: &mut [] };
                host.receiver.receive(self.now, cores, datagrams, &mut self.out);
            } else if let Some(host) = self.readers.iter_mut().find(|host| host.address == address) {
                let (prefix, core) = (host.guid.prefix, &mut host.core);
                let cores = Cores { prefix, writers: &mut [], readers: &mut [core] };
                host.receiver.receive(self.now, cores, datagrams, &mut self.out);
            }
            self.send(address);
        }
        for host in &mut self.writers {
            if host.core.next_timeout().is_some_and(|at| at <= self.now) {
                host.core.handle_timeout(self.now);
            }
        }
        for host in &mut self.readers {
            if host.core.next_timeout().is_some_and(|at| at <= self.now) {
                host.core.handle_timeout(self.now);
            }
        }
        self.transmit();
    }

    /// What the subscriber does when shared sets have ended.
    fn settle(&mut self) {
        // Each one is asked.
        let has_news = self.readers.iter_mut().fold(false, |has, reader| reader.core.take_group_news() | has);
        if !has_news {
            return;
        }
        let mut progress = Vec::new();
        self.readers.iter().for_each(|reader| reader.core.group_progress(&mut progress));
        for settled in groups::settle(&progress) {
            self.readers.iter_mut().for_each(|reader| reader.core.settle_set(self.now, settled));
        }
    }

    /// Takes everything of a reader.
    pub(super) fn take(&mut self, reader: usize) -> Vec<Value> {
        self.take_up_to(reader, usize::MAX)
    }

    pub(super) fn take_up_to(&mut self, reader: usize, max: usize) -> Vec<Value> {
        let mut taken = Vec::new();
        self.readers[reader].core.access(max, SampleSelection::default(), true, |sample| {
            if let [_, _, _, _, instance, number, writer, ..] = sample.payload {
                taken.push((usize::from(*writer), *instance, *number));
            }
            true
        });
        taken
    }

    pub(super) fn available(&self, reader: usize) -> usize {
        self.readers[reader].core.available()
    }

    pub(super) fn dropped(&self, reader: usize) -> u64 {
        self.readers[reader].core.counters().coherent_sets_dropped
    }

    pub(super) fn reader(&mut self, reader: usize) -> &mut ReaderCore {
        &mut self.readers[reader].core
    }

    pub(super) fn writer(&mut self, writer: usize) -> &mut WriterCore {
        &mut self.writers[writer].core
    }

    /// The order in which the readers have samples, by the groups.
    pub(super) fn order(&self) -> Vec<usize> {
        let positions: Vec<Vec<GroupPosition>> = self
            .readers
            .iter()
            .map(|reader| {
                let mut positions = Vec::new();
                reader.core.group_positions(States::ANY, &mut positions);
                positions
            })
            .collect();
        groups::merge(&positions)
    }

    /// Loses everything from now on, or nothing.
    pub(super) fn set_link(&mut self, link: Link) {
        self.network.set_default_link(link);
    }
}

fn publisher() -> Guid {
    Guid::new(GuidPrefix([1; 12]), EntityId([0, 0, 9, 0x08]))
}
