//! Complete participants on a network, their applications, and what is promised to these.
//!
//! Discovery, leases and matching are the real ones. After [faults](super::faults) every reliable
//! reader must receive what its policies guarantee, in order and once, and then nothing but
//! announcements is sent. Memory stays within limits all the time, and so does the work that one
//! datagram causes.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;
use std::collections::BTreeMap;

use weir_netsim::{Delivery, Link, Loss, Network};
use weir_rtps::limits::{EndpointLimits, Limits};
use weir_rtps::qos::{Durability, History, Qos, Reliability};
use weir_rtps::qos_match;
use weir_rtps::time::Time;
use weir_rtps::writer::{Change, ChangeKind, WriteRefused};
use weir_wire::{EntityId, Guid, GuidPrefix, Header, Message, ProtocolVersion, Submessage, VendorId};

use super::acknowledged::Acknowledged;
use super::fragmenter::Fragmenter;
use super::limits;
use crate::live::forge::{self, ATTACKER, BYSTANDER};
use crate::live::node::{GROUP, META_PORT, Node, USER_PORT};
use crate::profile;

/// Samples that each writer adds after all faults.
const LAST_SAMPLES: u64 = 5;
/// Long enough to repair thousands of samples through a small buffer, and for a forged lease to end.
const SETTLE: Duration = Duration::from_secs(60);
/// Long enough to repair the last samples.
const REPAIR: Duration = Duration::from_secs(20);
/// How long only announcements may be sent.
const SILENCE: Duration = Duration::from_secs(60);

/// The ports of a participant.
pub(super) const PORTS: [u16; 3] = [META_PORT, USER_PORT, GROUP.port()];

/// A participant, and its host.
pub(super) struct Member {
    pub(super) node: Node,
    number: u8,
    /// How many participants had this number before.
    lives: u16,
    /// How many processes of this participant there were before.
    pub(super) processes: u32,
    /// How many addresses the host had before.
    pub(super) moves: u8,
    /// The process is stopped, or has ended.
    pub(super) is_paused: bool,
    fragmenter: Option<Fragmenter>,
    /// Socket buffer in bytes.
    buffer: usize,
    writes: bool,
}

impl Member {
    /// The host's address.
    pub(super) fn host(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, self.moves, self.number)
    }

    fn prefix(&self) -> GuidPrefix {
        let mut prefix = [self.number; 12];
        prefix[10..].copy_from_slice(&self.lives.to_be_bytes());
        GuidPrefix(prefix)
    }
}

/// A writer and its application.
pub(super) struct Source {
    pub(super) guid: Guid,
    pub(super) member: usize,
    process: u32,
    pub(super) gap: Duration,
    pub(super) next_at: Time,
    /// Samples that the writer accepted; each carries its number.
    written: u64,
    /// The participant will not come back.
    pub(super) is_gone: bool,
    /// A process ended, and the next one began before every reader could notice. Readers may take
    /// the first samples of the second for those of the first.
    pub(super) is_blurred: bool,
}

/// A reader's process, and a writer.
type Route = (Guid, u32, Guid);

/// Participants on a network, and the actions of their applications.
pub(super) struct Swarm {
    seed: u64,
    pub(super) network: Network,
    pub(super) now: Time,
    pub(super) members: Vec<Member>,
    pub(super) sources: Vec<Source>,
    pub(super) lease: Duration,
    /// Time to repair everything after rediscovery, which two leases are enough for.
    settle: Duration,
    delay: Duration,
    /// Share of datagrams that every link loses.
    pub(super) losses: f64,
    /// Policies of all writers, and of all readers.
    offered: Qos,
    wanted: Qos,
    /// Process of the writer and number of the samples taken.
    pub(super) taken: BTreeMap<Route, Vec<(u32, u64)>>,
    /// Datagrams sent that are not announcements of participants.
    chatter: u64,
    /// Bytes that reached a third party, without announcements of participants.
    pub(super) strayed: u64,
    pub(super) forgeries: u32,
    pub(super) faults: Vec<String>,
}

impl Swarm {
    /// A participant that writes, and one that reads.
    pub(super) fn pair(seed: u64, lease: Duration, qos: &Qos) -> Self {
        let mut swarm = Self::new(seed, (Duration::from_millis(1), 0.0), lease, (qos.clone(), qos.clone()));
        swarm.settle = Duration::from_secs(10);
        swarm.add(1, Some(Duration::from_millis(100)), None, 212_992);
        swarm.add(2, None, None, 212_992);
        swarm
    }

    pub(super) fn new(
        seed: u64,
        (delay, losses): (Duration, f64),
        lease: Duration,
        (offered, wanted): (Qos, Qos),
    ) -> Self {
        let link = Link::new().delay(delay).loss(Loss::random(losses));
        let mut swarm = Self {
            seed,
            network: Network::builder(seed).link(link).build(),
            now: Time(1_000_000_000),
            members: Vec::new(),
            sources: Vec::new(),
            lease,
            settle: SETTLE,
            delay,
            losses,
            offered,
            // KEEP_ALL: samples that an application does not take in time are not lost.
            wanted: Qos { history: History::KeepAll, ..wanted },
            taken: BTreeMap::new(),
            chatter: 0,
            strayed: 0,
            forgeries: 0,
            faults: Vec::new(),
        };
        for port in PORTS {
            swarm.network.bind_with_buffer(SocketAddrV4::new(ATTACKER, port), 1 << 30);
        }
        swarm.network.bind_with_buffer(BYSTANDER, 1 << 30);
        swarm
    }

    /// Adds a member. `gap`: time between the samples that it writes, if it does.
    pub(super) fn add(
        &mut self,
        number: u8,
        gap: Option<Duration>,
        fragmenter: Option<Fragmenter>,
        buffer: usize,
    ) {
        let node = Node::new(number, self.now, |_| {});
        let (lives, processes, moves, writes) = (0, 0, 0, gap.is_some());
        let member =
            Member { node, number, lives, processes, moves, is_paused: false, fragmenter, buffer, writes };
        self.members.push(member);
        let index = self.members.len() - 1;
        self.boot(index);
        gap.into_iter().for_each(|gap| self.begin_source(index, gap));
    }

    /// Starts the process of a member with its endpoints. All members but the first one read.
    fn boot(&mut self, index: usize) {
        let (now, lease) = (self.now, self.lease);
        let member = &mut self.members[index];
        let (prefix, host, buffer) = (member.prefix(), member.host(), member.buffer);
        let mut limits = None;
        member.node = Node::new(member.number, now, |config| {
            config.guid_prefix = prefix;
            config.metatraffic_unicast = vec![SocketAddrV4::new(host, META_PORT)];
            config.default_unicast = vec![SocketAddrV4::new(host, USER_PORT)];
            config.lease_duration = lease;
            config.announce_period = lease / 3;
            config.receive_buffer = buffer as u32;
            limits = profile::participant(config, LIMITS);
        });
        member.node.limits = limits;
        if member.fragmenter.is_some() {
            member.fragmenter = Some(Fragmenter::default());
        }
        if member.writes {
            member.node.add_writer(now, WRITER, "topic", self.offered.clone());
        }
        if index > 0 {
            member.node.add_reader(now, READER, "topic", self.wanted.clone(), |_| {});
        }
        member.is_paused = false;
        self.open_sockets(index);
    }

    fn begin_source(&mut self, index: usize, gap: Duration) {
        let member = &self.members[index];
        self.sources.push(Source {
            guid: Guid::new(member.node.prefix, WRITER),
            member: index,
            process: member.processes,
            gap,
            next_at: self.now,
            written: 0,
            is_gone: false,
            is_blurred: false,
        });
    }

    pub(super) fn open_sockets(&mut self, index: usize) {
        let member = &self.members[index];
        for port in PORTS {
            self.network.bind_with_buffer(SocketAddrV4::new(member.node.host, port), member.buffer);
        }
        self.network.join(GROUP, SocketAddrV4::new(member.node.host, GROUP.port()));
    }

    pub(super) fn close_sockets(&mut self, index: usize) {
        let host = self.members[index].node.host;
        PORTS.iter().for_each(|port| self.network.close(SocketAddrV4::new(host, *port)));
    }

    /// Starts another process in place of one that has ended. `is_same`: of the same participant.
    pub(super) fn revive(&mut self, index: usize, is_same: bool, has_lapsed: bool) {
        let member = &mut self.members[index];
        if is_same {
            member.processes += 1;
        } else {
            (member.lives, member.processes) = (member.lives + 1, 0);
        }
        self.boot(index);
        let (now, process) = (self.now, self.members[index].processes);
        let source = self.sources.iter_mut().find(|source| source.member == index && !source.is_gone);
        let Some(source) = source else { return };
        if is_same {
            (source.process, source.written, source.next_at) = (process, 0, now);
            source.is_blurred |= !has_lapsed;
        } else {
            source.is_gone = true;
            let gap = source.gap;
            self.begin_source(index, gap);
        }
    }

    /// Sets the losses from one member to another.
    pub(super) fn lose(&mut self, one: usize, other: usize, share: f64) {
        let link = Link::new().delay(self.delay).loss(Loss::random(share));
        self.network.set_link(self.members[one].node.host, self.members[other].node.host, link);
    }

    /// The most samples that a writer has written.
    pub(super) fn written_max(&self) -> usize {
        self.sources.iter().map(|source| source.written).max().unwrap_or(0) as usize
    }

    pub(super) fn note(&mut self, fault: String) {
        self.faults.push(format!("{:.1} s: {fault}", self.now.0 as f64 / 1e9));
    }

    pub(super) fn run_for(&mut self, period: Duration) {
        let end = self.now + period;
        let mut steps = 0_u32;
        while let Some(at) = self.next_at().filter(|at| *at <= end) {
            steps = if at > self.now { 0 } else { steps + 1 };
            assert!(steps < 10_000, "time stands still: {self}");
            self.now = self.now.max(at);
            self.step();
        }
        self.now = end;
        for member in &self.members {
            limits::check_memory(&member.node, self);
        }
    }

    fn next_at(&self) -> Option<Time> {
        let arrival = self.network.next_arrival().map(|at| Time(at.as_nanos() as u64));
        let running = self.members.iter().filter(|member| !member.is_paused);
        let nodes = running.filter_map(|member| member.node.next_timeout());
        let writing = self.sources.iter().filter(|source| self.is_writing(source));
        arrival.into_iter().chain(nodes).chain(writing.map(|source| source.next_at)).min()
    }

    fn is_writing(&self, source: &Source) -> bool {
        !source.is_gone && !self.members[source.member].is_paused
    }

    fn step(&mut self) {
        let now = self.now;
        while let Some(delivery) = self.network.deliver(Duration::from_nanos(now.0)) {
            let host = *delivery.receiver.ip();
            match self.members.iter().position(|member| member.node.host == host) {
                Some(index) => self.receive(index, &delivery),
                None if delivery.receiver == BYSTANDER && !is_announcement(&delivery.bytes) => {
                    self.strayed += delivery.bytes.len() as u64;
                }
                None => {}
            }
        }
        for index in 0..self.members.len() {
            if !self.members[index].is_paused {
                self.members[index].node.handle_timeout(now);
                self.transmit(index);
                self.take(index);
            }
        }
        for index in 0..self.sources.len() {
            if self.sources[index].next_at <= now && self.is_writing(&self.sources[index]) {
                self.write(index);
            }
        }
    }

    fn receive(&mut self, index: usize, delivery: &Delivery) {
        let (now, port) = (self.now, delivery.receiver.port());
        let Member { node, fragmenter, .. } = &mut self.members[index];
        if let Some(fragmenter) = fragmenter.as_ref().filter(|_| port == META_PORT) {
            let header =
                Header { version: ProtocolVersion::V2_5, vendor: VendorId::WEIR, prefix: node.prefix };
            for repair in fragmenter.repairs(&header, &delivery.bytes) {
                let sent = self.network.send(since_start(now), delivery.receiver, delivery.from, &repair);
                sent.expect("it fits a datagram");
            }
        }
        let (before, acknowledged) = (node.events, Acknowledged::of(node, port, &delivery.bytes));
        // What arrives at the group's port is metatraffic, too.
        node.receive(now, delivery.from, port, &delivery.bytes);
        let events = node.events - before;
        let is_durable = [&self.offered, &self.wanted].iter().all(|qos| {
            qos.durability == Durability::TransientLocal && qos.reliability == Reliability::Reliable
        });
        // What KEEP_LAST has replaced counts as acknowledged.
        let is_kept = is_durable && self.offered.history == History::KeepAll;
        if let Some(acknowledged) = acknowledged.filter(|_| is_kept) {
            acknowledged.check(&self.members[index].node, self);
        }
        let answers = self.transmit(index);
        limits::check_work(&self.members[index].node, events, answers, self);
    }

    /// Writes one sample, unless the writer has no room for it.
    fn write(&mut self, index: usize) {
        let source = &mut self.sources[index];
        source.next_at = self.now + source.gap;
        let payload = forge::sample(source.process, source.written + 1, 32);
        let timestamp = Some(weir_wire::Timestamp { seconds: 1, fraction: 0 });
        let change = Change { kind: ChangeKind::Alive, key: None, payload: &payload };
        let member = source.member;
        match self.members[member].node.writer(WRITER).write_change(self.now, timestamp, change) {
            Ok(_) => source.written += 1,
            Err(WriteRefused::WindowFull) => {}
            Err(refused) => panic!("{refused:?}: {self}"),
        }
        self.transmit(member);
    }

    fn take(&mut self, index: usize) {
        let Member { node, processes, .. } = &mut self.members[index];
        let (prefix, process) = (node.prefix, *processes);
        for (entity, reader) in &mut node.readers {
            while reader.take_next(|sample| {
                let field =
                    |at: usize| sample.payload.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
                let number = u64::from_le_bytes(field(8).expect("a sample is whole"));
                let writer = u64::from_le_bytes(field(4).expect("a sample is whole")) as u32;
                let route = (Guid::new(prefix, *entity), process, sample.writer);
                self.taken.entry(route).or_default().push((writer, number));
            }) {}
        }
    }

    /// Sends what a member has to send now. Returns the number of datagrams.
    pub(super) fn transmit(&mut self, index: usize) -> u64 {
        let Member { node, is_paused, fragmenter, .. } = &mut self.members[index];
        if *is_paused {
            return 0;
        }
        let (network, now, host) = (&mut self.network, since_start(self.now), node.host);
        let (chatter, mut sent) = (&mut self.chatter, 0);
        node.transmit(self.now, |port, to, bytes| {
            sent += 1;
            *chatter += u64::from(!is_announcement(bytes));
            let mut send = |bytes: &[u8]| {
                network.send(now, SocketAddrV4::new(host, port), to, bytes).expect("it fits a datagram");
            };
            match fragmenter.as_mut().filter(|_| port == META_PORT) {
                Some(fragmenter) => fragmenter.divide(bytes).iter().for_each(|bytes| send(bytes)),
                None => send(bytes),
            }
        });
        sent
    }

    /// After rediscovery, checks that whatever is written from now on arrives, nothing twice, and
    /// that then all are silent.
    pub(super) fn end_well(&mut self) {
        self.run_for(self.lease * 2 + self.settle);
        self.network.set_default_link(Link::new().delay(self.delay));
        let firsts: Vec<u64> = self.sources.iter().map(|source| source.written + 1).collect();
        for source in &mut self.sources {
            source.gap = Duration::from_secs(3600);
        }
        for _ in 0..LAST_SAMPLES {
            for index in 0..self.sources.len() {
                if !self.sources[index].is_gone {
                    self.write(index);
                }
            }
            self.run_for(Duration::from_millis(100));
        }
        self.run_for(REPAIR);
        let before = self.chatter;
        self.run_for(SILENCE);
        for (source, first_of_last) in self.sources.iter().zip(firsts) {
            for member in &self.members {
                for reader in member.node.readers.keys() {
                    let reader = (Guid::new(member.node.prefix, *reader), member.processes);
                    self.check(source, reader, first_of_last);
                }
            }
        }
        assert_eq!(self.chatter, before, "there are datagrams without end: {self}");
        limits::check_strayed(self);
    }

    fn check(&self, source: &Source, (reader, process): (Guid, u32), first_of_last: u64) {
        let writer = source.guid;
        let taken = self.taken.get(&(reader, process, writer)).map_or(&[][..], |taken| taken);
        let mut sorted = taken.to_vec();
        sorted.sort_unstable();
        let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]);
        assert!(twice.is_none(), "{reader} got {twice:?} of {writer} twice: {self}");
        let back = taken.windows(2).find(|pair| pair[0] >= pair[1] && !source.is_blurred);
        assert!(back.is_none(), "{reader} got {back:?} of {writer}: {self}");
        let Self { offered, wanted, .. } = self;
        if qos_match::check(offered, wanted).is_err() {
            assert!(taken.is_empty(), "{reader} and {writer} do not match: {self}");
            return;
        }
        let is_repaired = wanted.reliability == Reliability::Reliable;
        // Without HEARTBEATs it does not show that the numbers have begun again.
        if source.is_gone || (source.is_blurred && !is_repaired) {
            return;
        }
        assert_eq!(source.written, first_of_last + LAST_SAMPLES - 1, "{writer} is held up: {self}");
        let is_kept = offered.history == History::KeepAll && offered.durability == Durability::TransientLocal;
        let is_whole = is_kept && is_repaired && wanted.durability == Durability::TransientLocal;
        // A reader that knew the process before the last may have taken the first samples for old ones.
        let first = if is_whole && source.process == 0 { 1 } else { first_of_last };
        let expected: Vec<(u32, u64)> =
            (first..=source.written).map(|number| (source.process, number)).collect();
        let got = &taken[taken.len().saturating_sub(expected.len())..];
        let (last, written) = (taken.last(), source.written);
        assert!(
            got == expected,
            "{reader} has {} up to {last:?} of {written} of {writer}: {self}",
            taken.len()
        );
    }
}

pub(super) const WRITER: EntityId = EntityId::user_writer(1, false);
pub(super) const READER: EntityId = EntityId::user_reader(2, false);

pub(super) fn since_start(now: Time) -> Duration {
    Duration::from_nanos(now.0)
}

/// Returns whether a message only announces a participant.
fn is_announcement(bytes: &[u8]) -> bool {
    let Ok(message) = Message::parse(bytes) else { return false };
    message.submessages().all(|submessage| match submessage {
        Ok(Submessage::Data(data)) => data.writer == EntityId::SPDP_WRITER,
        Ok(Submessage::InfoDestination(_) | Submessage::InfoTimestamp(_)) => true,
        _ => false,
    })
}

impl core::fmt::Display for Swarm {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { seed, now, lease, losses, .. } = self;
        writeln!(f, "participants with seed {seed} at {now:?}, lease {lease:?}, losses {losses}")?;
        for (whose, qos) in [("offered", &self.offered), ("wanted", &self.wanted)] {
            writeln!(f, "  {whose}: {:?}, {:?}, {:?}", qos.reliability, qos.durability, qos.history)?;
        }
        for (index, member) in self.members.iter().enumerate() {
            let is_fragmenting = member.fragmenter.is_some();
            writeln!(f, "  {index}: buffer {}, fragments: {is_fragmenting}", member.buffer)?;
        }
        self.faults.iter().try_for_each(|fault| writeln!(f, "  {fault}"))?;
        for source in &self.sources {
            writeln!(f, "  {} of participant {} wrote {}", source.guid, source.member, source.written)?;
        }
        write!(f, "run it again with WEIR_SIM_SEED={}", self.seed)
    }
}

/// The limits table of the small profile, with room for all samples of writers that keep all for late readers.
const LIMITS: Limits = Limits {
    endpoint: EndpointLimits { samples: 16_384, sample_bytes: 128, ..EndpointLimits::SMALL },
    ..Limits::SMALL
};
