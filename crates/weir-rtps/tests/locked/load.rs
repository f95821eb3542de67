//! Stations that write, take, and are replaced.

use core::cell::RefCell;
use core::time::Duration;
use std::rc::Rc;

use weir_netsim::Rng;
use weir_rtps::driver::Port;
use weir_rtps::limits::{EndpointLimits, Limits};
use weir_rtps::participant::{Interface, LocalEndpoint, ParticipantConfig};
use weir_rtps::qos::LivelinessKind::{Automatic, ManualByParticipant, ManualByTopic};
use weir_rtps::qos::{Durability, History, Liveliness, Qos, Reliability};
use weir_rtps::reader::{ReaderConfig, ReaderCore, ReaderSize};
use weir_rtps::station::Station;
use weir_rtps::writer::{Change, ChangeKind, WriterConfig, WriterCore, WriterSize};
use weir_wire::{EntityId, Guid, GuidPrefix, SequenceNumber, Timestamp};

use crate::forge::Forged;
use crate::forgery;
use crate::locked::Lock;
use crate::wire::{End, Wire, address};

/// Each has a writer and a reader of every topic.
type Member = Station<End, 3, 3>;

/// The topics: keyed and reliable, reliable in fragments, best effort.
const TOPICS: [&str; 3] = ["Keyed", "Stream", "Loose"];
const KEYED: usize = 0;
const STREAM: usize = 1;

const LIMITS: Limits = Limits {
    participants: 5,
    endpoints_per_participant: 8,
    text_bytes: 256,
    addresses: 2,
    writers: 3,
    readers: 3,
    endpoint: EndpointLimits {
        matches: 4,
        samples: 24,
        instances: 8,
        sample_bytes: 6_000,
        early_samples: 24,
        reassemblies: 2,
    },
};

/// The stations, the network between them, and an attacker at one more host.
pub(crate) struct Load {
    wire: Rc<RefCell<Wire>>,
    rng: Rng,
    members: Vec<Member>,
    /// Participants so far.
    started: u32,
    forged: Vec<(Port, Forged)>,
    lock: Lock,
    /// Memory of the endpoints of a station, as computed before it starts.
    bytes: usize,
    payload: Vec<u8>,
    counts: Counts,
}

/// What has happened.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    polls: u64,
    written: u64,
    refused: u64,
    taken: u64,
    restarts: u64,
    of_ended: Ended,
}

/// Counts of stations, also of those that have ended.
#[derive(Clone, Copy, Debug, Default)]
struct Ended {
    leases_expired: u64,
    participants_over_limit: u64,
    matches_over_limit: u64,
    repairs: u64,
    samples_refused: u64,
    fragments_refused: u64,
    oversized: u64,
    malformed: u64,
    beyond_limits: u64,
}

impl Load {
    /// Starts all stations.
    pub(crate) fn new(seed: u64) -> Self {
        let wire = Wire::new(MEMBERS + 1, seed);
        let mut load = Self {
            wire,
            rng: Rng::new(seed).fork(1),
            members: Vec::new(),
            started: 0,
            forged: Vec::new(),
            lock: Lock::default(),
            bytes: 0,
            payload: vec![0; 2 * LIMITS.endpoint.sample_bytes],
            counts: Counts::default(),
        };
        for host in 0..MEMBERS {
            let member = load.start(host);
            load.members.push(member);
        }
        load
    }

    /// Runs for a while with losses, damages and an attacker, replaces one station, and lets a lease expire.
    pub(crate) fn run_round(&mut self) {
        let (losses, damages) = [(0, 0), (20, 5), (100, 20)][self.rng.below(3) as usize];
        (self.wire.borrow_mut().losses, self.wire.borrow_mut().damages) = (losses, damages);
        let writers = self.members.iter().flat_map(Station::writers);
        let soon = |it: &WriterCore| (it.guid(), it.last_sequence_number().0 + 50);
        self.forged = forgery::datagrams(MEMBERS, writers.map(soon));
        self.run_for(LEASE);
        self.restart();
        self.run_for(2 * LEASE);
    }

    fn run_for(&mut self, time: Duration) {
        for _ in 0..time.as_millis() {
            let now = self.wire.borrow().now + Duration::from_millis(1);
            self.wire.borrow_mut().now = now;
            if self.rng.below(20) == 0 {
                self.attack();
            }
            for member in 0..self.members.len() {
                self.write(member);
                let station = &mut self.members[member];
                let Ok(next) = self.lock.call("poll", || station.poll());
                assert!(next.is_some(), "a participant always announces itself again");
                self.counts.polls += 1;
                self.take(member, now.0);
            }
        }
    }

    /// Writes a sample, disposes an instance or unregisters it, or does nothing.
    fn write(&mut self, member: usize) {
        let (topic, key) = (self.rng.below(8) as usize, self.rng.below(10) as u8);
        if topic >= TOPICS.len() {
            return;
        }
        let kind = match self.rng.below(20) {
            0 if topic == KEYED => ChangeKind::Disposed,
            1 if topic == KEYED => ChangeKind::Unregistered,
            2 if topic == KEYED => ChangeKind::DisposedUnregistered,
            _ => ChangeKind::Alive,
        };
        let most = LIMITS.endpoint.sample_bytes as u64;
        let len = match (kind, self.rng.below(30)) {
            (ChangeKind::Alive, 0) => most + 1,
            (ChangeKind::Alive, 1..5) => 8 + self.rng.below(most - 8),
            (ChangeKind::Alive, _) => 8 + self.rng.below(400),
            _ => 8,
        };
        self.payload[..8].copy_from_slice(&[0, 1, 0, 0, key, 0, 0, 0]);
        let key = (topic == KEYED).then_some([key, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let change = Change { kind, key, payload: &self.payload[..len as usize] };
        let station = &mut self.members[member];
        let timestamp = Some(Timestamp::from_unix_nanos(self.counts.written));
        let Ok(written) = self.lock.call("write", || station.write(topic, timestamp, change));
        self.counts.written += u64::from(written.is_ok());
        self.counts.refused += u64::from(written.is_err());
    }

    /// Takes all samples; each reader pauses now and then, so that it is full.
    fn take(&mut self, member: usize, now: u64) {
        for reader in 0..TOPICS.len() {
            let pauses = (now / 1_000_000_000 + reader as u64 + member as u64).is_multiple_of(4);
            let station = &mut self.members[member];
            let mut taken = 0;
            while !pauses
                && self
                    .lock
                    .call("take", || station.take_next(reader, |sample| taken += sample.payload.len()))
            {
                self.counts.taken += 1;
            }
        }
    }

    /// Sends a forged datagram to all stations.
    fn attack(&mut self) {
        let (port, message) = &self.forged[self.rng.below(self.forged.len() as u64) as usize];
        let mut wire = self.wire.borrow_mut();
        for host in 0..MEMBERS {
            wire.send(address(MEMBERS, *port), address(host, *port), [&message.0, &[]]);
        }
    }

    /// Replaces a station. Its peers learn of its end at once, or when its lease ends.
    fn restart(&mut self) {
        let host = self.rng.below(MEMBERS as u64) as usize;
        let member = &mut self.members[host];
        if self.rng.below(2) == 0 {
            let Ok(()) = self.lock.call("close", || member.close());
        }
        self.wire.borrow_mut().clear(host);
        assert_eq!(accounted(&self.members[host]), self.bytes, "the memory of the endpoints has changed");
        self.counts.of_ended = self.counts.of_ended.with(&self.members[host]);
        self.counts.restarts += 1;
        self.members[host] = self.start(host);
    }

    /// Starts a station with a new participant at a host.
    fn start(&mut self, host: usize) -> Member {
        self.started += 1;
        let prefix = GuidPrefix([host as u8 + 1, self.started as u8, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]);
        let mut config = ParticipantConfig::new(prefix, 0).with_limits(LIMITS);
        config.metatraffic_unicast = vec![address(host, Port::Metatraffic)];
        config.default_unicast = vec![address(host, Port::User)];
        config.interfaces = vec![Interface {
            address: *config.default_unicast[0].ip(),
            netmask: core::net::Ipv4Addr::new(255, 255, 255, 0),
        }];
        (config.lease_duration, config.announce_period) = (LEASE, LEASE / 4);
        config.first_announcement = SequenceNumber(i64::from(self.started) * 1_000);
        let end = End { host, wire: Rc::clone(&self.wire) };
        let ids = [0, 1, 2];
        let writers = ids.map(|topic| writer_of(prefix, topic));
        let readers = ids.map(|topic| reader_of(prefix, topic));
        self.bytes = budget(&writers, &readers);
        Station::new(end, config, writers, readers).expect("limits that suffice")
    }

    fn ended(&self) -> Ended {
        self.members.iter().fold(self.counts.of_ended, |ended, member| ended.with(member))
    }

    /// Returns what has happened, in a line.
    pub(crate) fn summary(&self) -> String {
        let wire = self.wire.borrow().counts;
        format!("{:?}, {:?}, {wire:?}, {} allocations", self.counts, self.ended(), self.lock.allocations)
    }

    /// Checks that everything has happened, and that nothing was allocated.
    pub(crate) fn check(&self) {
        assert_eq!((self.lock.first, self.lock.allocations), (None, 0), "{}", self.summary());
        let it = self.ended();
        assert_eq!(it.beyond_limits, 0);
        let events = [
            it.leases_expired,
            it.participants_over_limit,
            it.repairs,
            it.samples_refused,
            it.fragments_refused,
            it.oversized,
            it.malformed,
            self.counts.refused,
            self.counts.taken,
        ];
        assert!(events.iter().all(|count| *count > 0), "{}", self.summary());
    }
}

impl Ended {
    fn with(mut self, member: &Member) -> Self {
        let discovery = member.discovery().counters();
        self.leases_expired += discovery.leases_expired;
        self.participants_over_limit += discovery.participants_over_limit;
        self.matches_over_limit += discovery.matches_over_limit;
        self.malformed += member.received().malformed;
        for counters in member.writers().iter().map(WriterCore::counters) {
            self.repairs += counters.samples_repaired;
            self.beyond_limits += counters.blocks_beyond_limits;
        }
        for counters in member.readers().iter().map(ReaderCore::counters) {
            self.samples_refused += counters.samples_refused;
            self.fragments_refused += counters.fragments_refused;
            self.oversized += counters.samples_oversized;
            self.beyond_limits += counters.chunks_beyond_limits;
        }
        self
    }
}

/// Returns the memory of the endpoints, in bytes, as it is known before they exist.
fn budget(writers: &[(LocalEndpoint, WriterConfig)], readers: &[(LocalEndpoint, ReaderConfig)]) -> usize {
    let limits = Some(LIMITS.endpoint);
    let writers = writers.iter().map(|(_, config)| WriterConfig { limits, ..config.clone() });
    let readers = readers.iter().map(|(_, config)| ReaderConfig { limits, ..config.clone() });
    writers.filter_map(|config| WriterSize::of(&config)).map(|size| size.bytes()).sum::<usize>()
        + readers.filter_map(|config| ReaderSize::of(&config)).map(|size| size.bytes()).sum::<usize>()
}

/// Returns the memory of the endpoints, in bytes, as allocated.
fn accounted(member: &Member) -> usize {
    member.writers().iter().map(WriterCore::allocated).sum::<usize>()
        + member.readers().iter().map(ReaderCore::allocated).sum::<usize>()
}

fn writer_id(topic: usize) -> EntityId {
    EntityId::user_writer(topic as u32 + 1, topic == KEYED)
}

fn qos(topic: usize) -> Qos {
    let (reliability, history) = match topic {
        KEYED => (Reliability::Reliable, History::KeepLast(2)),
        STREAM => (Reliability::Reliable, History::KeepAll),
        _ => (Reliability::BestEffort, History::KeepLast(4)),
    };
    let durability = if topic == KEYED { Durability::TransientLocal } else { Durability::Volatile };
    let kind = [Automatic, ManualByParticipant, ManualByTopic][topic];
    let liveliness = Liveliness { kind, lease: LEASE };
    Qos { reliability, history, durability, liveliness, ..Qos::for_reader() }
}

fn endpoint(entity: EntityId, topic: usize) -> LocalEndpoint {
    LocalEndpoint {
        entity,
        topic: TOPICS[topic].to_owned(),
        type_name: "Type".to_owned(),
        qos: qos(topic),
        unicast: Vec::new(),
        multicast: None,
    }
}

fn writer_of(prefix: GuidPrefix, topic: usize) -> (LocalEndpoint, WriterConfig) {
    let (entity, qos) = (writer_id(topic), qos(topic));
    let core = WriterConfig {
        history: qos.history,
        durability: qos.durability,
        ..WriterConfig::new(Guid::new(prefix, entity), qos.reliability)
    };
    (endpoint(entity, topic), core)
}

fn reader_of(prefix: GuidPrefix, topic: usize) -> (LocalEndpoint, ReaderConfig) {
    let entity = EntityId::user_reader(topic as u32 + 1, topic == KEYED);
    let qos = qos(topic);
    let core = ReaderConfig {
        history: qos.history,
        key_of: (topic == KEYED).then_some(key_of),
        wants_history: qos.durability != Durability::Volatile,
        ..ReaderConfig::new(Guid::new(prefix, entity), qos.reliability)
    };
    (endpoint(entity, topic), core)
}

/// Returns the key of a sample: the byte after its encapsulation header.
fn key_of(payload: &[u8], _is_key: bool) -> Option<[u8; 16]> {
    let mut key = [0; 16];
    key[0] = *payload.get(4)?;
    Some(key)
}

/// Stations, each at a host of its own.
const MEMBERS: usize = 4;
const LEASE: Duration = Duration::from_secs(2);
