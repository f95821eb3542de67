//! Random configurations of complete participants that lose each other: one-way losses, pauses
//! longer than a lease, goodbyes of participants that stay.
//!
//! Discovery, leases and matching are the real ones. After the faults every reliable reader must
//! receive what its policies guarantee, in order and once.

use core::net::SocketAddrV4;
use core::time::Duration;
use std::collections::BTreeMap;

use weir_netsim::{Link, Loss, Network, Rng};
use weir_rtps::qos::{Durability, History, Qos, Reliability};
use weir_rtps::qos_match;
use weir_rtps::time::Time;
use weir_rtps::writer::{Change, ChangeKind, WriteRefused};
use weir_wire::{EntityId, Guid};

use crate::harness::seeds;
use crate::live::forge::{self, Forged};
use crate::live::node::{GROUP, META_PORT, Node, USER_PORT};

/// Seeds of a normal test run.
const SEEDS: u64 = 100;
/// Samples that each writer adds after all faults.
const LAST_SAMPLES: u64 = 5;
/// Long enough for two announcements and the end of a lease.
const SETTLE: Duration = Duration::from_secs(90);

/// A writer and its application.
struct Source {
    node: usize,
    entity: EntityId,
    gap: Duration,
    next_at: Time,
    /// Samples that the writer accepted; each carries its number.
    written: u64,
}

/// Participants on a network, and the actions of their applications.
struct Swarm {
    seed: u64,
    network: Network,
    now: Time,
    nodes: Vec<Node>,
    /// Which of them are paused.
    is_paused: Vec<bool>,
    sources: Vec<Source>,
    /// Policies of all writers, and of all readers.
    offered: Qos,
    wanted: Qos,
    /// Sample numbers taken, by reader and writer.
    taken: BTreeMap<(Guid, Guid), Vec<u64>>,
    faults: Vec<String>,
}

impl Swarm {
    fn new(seed: u64, rng: &mut Rng) -> Self {
        let delay = Duration::from_nanos(20_000 + rng.below(20_000_000));
        let share = [0.0, 0.0, 0.02, 0.1][rng.below(4) as usize];
        let link = Link::new().delay(delay).loss(Loss::random(share));
        let mut swarm = Self {
            seed,
            network: Network::builder(seed).link(link).build(),
            now: Time(1_000_000_000),
            nodes: Vec::new(),
            is_paused: Vec::new(),
            sources: Vec::new(),
            offered: qos(rng),
            // KEEP_ALL: samples that an application does not take in time are not lost.
            wanted: Qos { history: History::KeepAll, ..qos(rng) },
            taken: BTreeMap::new(),
            faults: Vec::new(),
        };
        let lease = Duration::from_secs([3, 10, 20][rng.below(3) as usize]);
        for number in 1..=2 + rng.below(2) as u8 {
            let node = Node::new(number, swarm.now, |config| {
                config.lease_duration = lease;
                config.announce_period = lease / 3;
            });
            for port in [META_PORT, USER_PORT, GROUP.port()] {
                swarm.network.bind(SocketAddrV4::new(node.host, port));
            }
            swarm.network.join(GROUP, SocketAddrV4::new(node.host, GROUP.port()));
            swarm.nodes.push(node);
            swarm.is_paused.push(false);
        }
        swarm.populate(rng);
        swarm
    }

    /// The first participant writes, and possibly others; all others read.
    fn populate(&mut self, rng: &mut Rng) {
        let now = self.now;
        for index in 0..self.nodes.len() {
            if index == 0 || rng.chance(0.3) {
                let entity = EntityId::user_writer(1, false);
                self.nodes[index].add_writer(now, entity, "topic", self.offered.clone());
                let gap = Duration::from_millis(20 + rng.below(200));
                self.sources.push(Source { node: index, entity, gap, next_at: now, written: 0 });
            }
            if index > 0 {
                let entity = EntityId::user_reader(2, false);
                self.nodes[index].add_reader(now, entity, "topic", self.wanted.clone(), |_| {});
            }
        }
    }

    /// Applies one fault, with or without time to recover.
    fn disturb(&mut self, rng: &mut Rng) {
        let one = rng.below(self.nodes.len() as u64) as usize;
        let other = (one + 1 + rng.below(self.nodes.len() as u64 - 1) as usize) % self.nodes.len();
        let period = Duration::from_millis(500 + rng.below(40_000));
        let hosts = (self.nodes[one].host, self.nodes[other].host);
        match rng.below(4) {
            0 => {
                self.note(format!("nothing from {one} reaches {other} for {period:?}"));
                self.network.partition().cut_one_way(hosts.0, hosts.1);
                self.run_for(period);
                self.network.partition().heal();
            }
            1 => {
                self.note(format!("{one} and {other} are cut off for {period:?}"));
                self.network.partition().cut(hosts.0, hosts.1);
                self.run_for(period);
                self.network.partition().heal();
            }
            2 => {
                self.note(format!("{one} stops for {period:?}"));
                self.pause(one, true);
                self.run_for(period);
                // When a process resumes, the order depends on its threads.
                if rng.chance(0.5) {
                    let now = self.now;
                    self.nodes[one].handle_timeout(now);
                }
                self.pause(one, false);
            }
            _ => {
                self.note(format!("{one} says goodbye to {other} and stays"));
                self.say_goodbye(one, other);
            }
        }
        let pause = [10, 3_000, 45_000][rng.below(3) as usize];
        self.run_for(Duration::from_millis(1 + rng.below(pause)));
    }

    fn note(&mut self, fault: String) {
        self.faults.push(format!("{:.1} s: {fault}", self.now.0 as f64 / 1e9));
    }

    fn pause(&mut self, index: usize, is_paused: bool) {
        self.is_paused[index] = is_paused;
        for port in [META_PORT, USER_PORT, GROUP.port()] {
            let socket = SocketAddrV4::new(self.nodes[index].host, port);
            if is_paused {
                self.network.pause(socket);
            } else {
                self.network.resume(socket);
            }
        }
    }

    fn say_goodbye(&mut self, one: usize, other: usize) {
        let prefix = self.nodes[one].prefix;
        let inline_qos = forge::disposal(Guid::new(prefix, EntityId::PARTICIPANT));
        let message = Forged::by(prefix).any_data(EntityId::SPDP_WRITER, 2, &inline_qos, &[], false);
        let from = SocketAddrV4::new(self.nodes[one].host, META_PORT);
        let to = SocketAddrV4::new(self.nodes[other].host, META_PORT);
        self.network
            .send(Duration::from_nanos(self.now.0), from, to, &message.0)
            .expect("it fits a datagram");
    }

    fn run_for(&mut self, period: Duration) {
        let end = self.now + period;
        let mut steps = 0_u32;
        while let Some(at) = self.next_at().filter(|at| *at <= end) {
            steps = if at > self.now { 0 } else { steps + 1 };
            assert!(steps < 10_000, "time stands still: {self}");
            self.now = self.now.max(at);
            self.step();
        }
        self.now = end;
    }

    fn next_at(&self) -> Option<Time> {
        let arrival = self.network.next_arrival().map(|at| Time(at.as_nanos() as u64));
        let running = |index: &usize| !self.is_paused[*index];
        let nodes =
            (0..self.nodes.len()).filter(running).filter_map(|index| self.nodes[index].next_timeout());
        let sources = self.sources.iter().filter(|source| running(&source.node)).map(|source| source.next_at);
        arrival.into_iter().chain(nodes).chain(sources).min()
    }

    fn step(&mut self) {
        let now = self.now;
        while let Some(delivery) = self.network.deliver(Duration::from_nanos(now.0)) {
            let (host, port) = (*delivery.receiver.ip(), delivery.receiver.port());
            let node = self.nodes.iter_mut().find(|node| node.host == host).expect("only nodes have sockets");
            // What arrives at the group's port is metatraffic, too.
            node.receive(now, delivery.from, port, &delivery.bytes);
        }
        for index in 0..self.nodes.len() {
            if !self.is_paused[index] {
                self.nodes[index].handle_timeout(now);
                self.take(index);
            }
        }
        for index in 0..self.sources.len() {
            if self.sources[index].next_at <= now && !self.is_paused[self.sources[index].node] {
                self.write(index);
            }
        }
        self.transmit();
    }

    /// Writes one sample, unless the writer has no room for it.
    fn write(&mut self, index: usize) {
        let source = &mut self.sources[index];
        source.next_at = self.now + source.gap;
        let payload = forge::sample(0, source.written + 1, 32);
        let timestamp = Some(weir_wire::Timestamp { seconds: 1, fraction: 0 });
        let change = Change { kind: ChangeKind::Alive, key: None, payload: &payload };
        let writer = self.nodes[source.node].writer(source.entity);
        match writer.write_change(self.now, timestamp, change) {
            Ok(_) => source.written += 1,
            Err(WriteRefused::WindowFull) => {}
            Err(refused) => panic!("{refused:?}: {self}"),
        }
    }

    fn take(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        let prefix = node.prefix;
        for (entity, reader) in &mut node.readers {
            while reader.take_next(|sample| {
                let number = sample.payload.get(8..16).and_then(|bytes| bytes.try_into().ok());
                let number = u64::from_le_bytes(number.expect("a sample is whole"));
                self.taken.entry((Guid::new(prefix, *entity), sample.writer)).or_default().push(number);
            }) {}
        }
    }

    fn transmit(&mut self) {
        let (network, now) = (&mut self.network, Duration::from_nanos(self.now.0));
        for (index, node) in self.nodes.iter_mut().enumerate() {
            let host = node.host;
            if !self.is_paused[index] {
                node.transmit(self.now, |port, to, bytes| {
                    network.send(now, SocketAddrV4::new(host, port), to, bytes).expect("it fits a datagram");
                });
            }
        }
    }

    /// After rediscovery, checks that whatever is written from now on arrives, and nothing twice.
    fn end_well(&mut self) {
        self.run_for(SETTLE);
        let first_of_last: Vec<u64> = self.sources.iter().map(|source| source.written + 1).collect();
        for source in &mut self.sources {
            source.gap = Duration::from_secs(3600);
        }
        for _ in 0..LAST_SAMPLES {
            (0..self.sources.len()).for_each(|index| self.write(index));
            self.transmit();
            self.run_for(Duration::from_millis(100));
        }
        self.run_for(Duration::from_secs(30));
        for (source, first_of_last) in self.sources.iter().zip(first_of_last) {
            for node in &self.nodes {
                for reader in node.readers.keys() {
                    self.check(source, Guid::new(node.prefix, *reader), first_of_last);
                }
            }
        }
    }

    fn check(&self, source: &Source, reader: Guid, first_of_last: u64) {
        let writer = Guid::new(self.nodes[source.node].prefix, source.entity);
        let taken = self.taken.get(&(reader, writer)).map_or(&[][..], |taken| taken);
        let back = taken.windows(2).find(|pair| pair[0] >= pair[1]);
        assert!(back.is_none(), "{reader} got {back:?} of {writer}: {self}");
        let Self { offered, wanted, .. } = self;
        if qos_match::check(offered, wanted).is_err() {
            assert!(taken.is_empty(), "{reader} and {writer} do not match: {self}");
            return;
        }
        if wanted.reliability == Reliability::BestEffort {
            return;
        }
        assert_eq!(source.written, first_of_last + LAST_SAMPLES - 1, "{writer} is held up: {self}");
        let is_kept = offered.history == History::KeepAll;
        let is_complete = is_kept && wanted.durability == Durability::TransientLocal;
        let first = if is_complete { 1 } else { first_of_last };
        let expected: Vec<u64> = (first..=source.written).collect();
        let got = &taken[taken.len().saturating_sub(expected.len())..];
        let (last, written) = (taken.last(), source.written);
        assert!(
            got == expected,
            "{reader} has {} up to {last:?} of {written} of {writer}: {self}",
            taken.len()
        );
    }
}

/// Policies of all writers or all readers.
fn qos(rng: &mut Rng) -> Qos {
    let reliability = if rng.chance(0.85) { Reliability::Reliable } else { Reliability::BestEffort };
    let durability = if rng.chance(0.6) { Durability::TransientLocal } else { Durability::Volatile };
    let history =
        if rng.chance(0.7) { History::KeepAll } else { History::KeepLast(1 + rng.below(10) as u32) };
    Qos { reliability, durability, history, ..Qos::for_reader() }
}

impl core::fmt::Display for Swarm {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        writeln!(f, "participants with seed {} at {:?}", self.seed, self.now)?;
        for (whose, qos) in [("offered", &self.offered), ("wanted", &self.wanted)] {
            writeln!(f, "  {whose}: {:?}, {:?}, {:?}", qos.reliability, qos.durability, qos.history)?;
        }
        self.faults.iter().try_for_each(|fault| writeln!(f, "  {fault}"))?;
        for source in &self.sources {
            writeln!(f, "  participant {} wrote {} samples", source.node, source.written)?;
        }
        write!(f, "run it again with WEIR_SIM_SEED={}", self.seed)
    }
}

fn run(seed: u64) {
    let mut rng = Rng::new(seed).fork(2);
    let mut swarm = Swarm::new(seed, &mut rng);
    swarm.run_for(Duration::from_millis(1 + rng.below(10_000)));
    for _ in 0..=rng.below(4) {
        swarm.disturb(&mut rng);
    }
    swarm.end_well();
}

#[test]
fn participants_that_lost_each_other_go_on_where_they_were() {
    let wanted = std::env::var("WEIR_SIM_SEEDS").ok();
    let count = wanted.map_or(SEEDS, |count| count.parse().expect("WEIR_SIM_SEEDS is a number"));
    seeds(count).into_iter().for_each(run);
}
