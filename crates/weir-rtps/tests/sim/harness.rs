//! The loop that all simulations share: hosts with writers and readers, their applications, and
//! permanent checks.

mod application;
mod busy;
mod judge;
mod other;

use core::time::Duration;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use weir_netsim::{Ecn, Link, Network, Side};
use weir_rtps::outbox::Outbox;
use weir_rtps::path::Path;
use weir_rtps::reader::WriterProxyConfig;
use weir_rtps::time::Time;
use weir_wire::GuidPrefix;

pub(crate) use application::{Answers, ReaderHost, WriterHost};
pub(crate) use busy::Busy;
pub(crate) use judge::{Judge, figures, is_long_run, median, medians};
pub(crate) use other::Engine;

use crate::cubic::Tcp;
use crate::profile;

/// A simulation: the network, its hosts, and the time.
pub(crate) struct Sim {
    pub(crate) network: Network,
    pub(crate) now: Time,
    pub(crate) writers: Vec<WriterHost>,
    pub(crate) readers: Vec<ReaderHost>,
    /// What else uses the network.
    pub(crate) connections: Vec<Tcp>,
    name: String,
    seed: u64,
    steps: u64,
    steps_max: u64,
    is_recording: bool,
    out: Outbox,
}

/// Seeds for a test: `count` of them, or the one from the environment.
pub(crate) fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("WEIR_SIM_SEED") {
        Ok(seed) => vec![seed.parse().expect("WEIR_SIM_SEED is a number")],
        Err(_) => (1..=count).collect(),
    }
}

/// The address of host number `index`.
pub(crate) fn address(index: usize) -> SocketAddrV4 {
    let host = u8::try_from(index + 1).expect("few hosts");
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host), 7411)
}

/// The payload of UDP at an MTU of 1500.
const DATAGRAM_MAX: u16 = 1472;

impl Sim {
    /// Creates a simulation whose hosts are joined by `link`.
    pub(crate) fn new(name: &str, seed: u64, link: Link) -> Self {
        Self::with_network(name, seed, Network::builder(seed).link(link).record().build())
    }

    /// A writer and a reader that know each other.
    pub(crate) fn pair(
        name: &str,
        seed: u64,
        link: Link,
        writer: impl FnOnce(&mut application::WriterSetup),
    ) -> Self {
        let mut sim = Self::new(name, seed, link);
        sim.add_writer(writer);
        sim.add_reader(|_| {});
        sim.connect(0, 0);
        sim
    }

    /// The same as [`Sim::new`] without a recording, for long runs.
    pub(crate) fn unrecorded(name: &str, seed: u64, link: Link) -> Self {
        let mut sim = Self::with_network(name, seed, Network::builder(seed).link(link).build());
        sim.is_recording = false;
        sim
    }

    /// A saturated writer of `samples` samples of `size` bytes, in datagrams that fit packets of
    /// 1500 bytes, and a reader, connected by `link` in both directions.
    pub(crate) fn saturated(name: &str, link: Link, samples: u64, size: fn(u64) -> usize) -> Self {
        let mut sim = Self::unrecorded(name, 1, link);
        sim.set_steps_max(20_000_000);
        sim.add_writer(|setup| {
            setup.samples = samples;
            setup.size = size;
            setup.gap = Duration::from_nanos(500);
        });
        sim.add_reader(|setup| setup.segment_max = DATAGRAM_MAX);
        sim.connect(0, 0);
        sim
    }

    fn with_network(name: &str, seed: u64, network: Network) -> Self {
        Self {
            network,
            now: Time::ZERO,
            writers: Vec::new(),
            readers: Vec::new(),
            connections: Vec::new(),
            name: name.to_owned(),
            seed,
            steps: 0,
            // Histories with a limits table hold less, so that more is done one by one.
            steps_max: if profile::IS_SMALL { 3_000_000 } else { 300_000 },
            is_recording: true,
            out: Outbox::new(),
        }
    }

    /// Adds a writer on its own host and returns its index.
    pub(crate) fn add_writer(&mut self, config: impl FnOnce(&mut application::WriterSetup)) -> usize {
        let mut setup = application::WriterSetup::new(self.hosts(), self.writers.len());
        config(&mut setup);
        let host = WriterHost::new(setup);
        self.network.bind(host.address);
        self.writers.push(host);
        self.writers.len() - 1
    }

    /// Adds a reader on its own host and returns its index.
    pub(crate) fn add_reader(&mut self, config: impl FnOnce(&mut application::ReaderSetup)) -> usize {
        let mut setup = application::ReaderSetup::new(self.hosts(), self.readers.len());
        config(&mut setup);
        let longest = self.writers.iter().map(WriterHost::longest).max().unwrap_or(0);
        let host = ReaderHost::new(setup, longest);
        self.network.bind_with_buffer(host.address, host.receive_buffer as usize);
        if let Some(route) = host.group {
            self.network.join(route.group, host.address);
        }
        self.readers.push(host);
        self.readers.len() - 1
    }

    /// Adds a TCP connection between two hosts of its own, which sends from now on, and returns its index.
    pub(crate) fn add_connection(&mut self) -> usize {
        let [sender, receiver] = [100, 150].map(|first| address(first + self.connections.len()));
        [sender, receiver].into_iter().for_each(|end| self.network.bind(end));
        self.connections.push(Tcp::new(sender, receiver));
        self.connections.len() - 1
    }

    /// Raises the limit of steps, for long runs.
    pub(crate) fn set_steps_max(&mut self, steps_max: u64) {
        self.steps_max = steps_max;
    }

    fn hosts(&self) -> usize {
        self.writers.len() + self.readers.len()
    }

    /// Matches a writer and a reader.
    pub(crate) fn connect(&mut self, writer: usize, reader: usize) {
        self.tell_writer(writer, reader);
        self.tell_reader(writer, reader);
    }

    /// Matches the reader at the writer only.
    pub(crate) fn tell_writer(&mut self, writer: usize, reader: usize) {
        let proxy = self.readers[reader].proxy();
        self.writers[writer].core.match_reader(self.now, proxy);
        self.transmit_writer(writer);
    }

    /// Matches the writer at the reader only.
    pub(crate) fn tell_reader(&mut self, writer: usize, reader: usize) {
        // A reader of another engine says nothing that only Weir understands.
        let proxy = WriterProxyConfig { vendor: self.readers[reader].vendor, ..self.writers[writer].proxy() };
        self.readers[reader].core.match_writer(self.now, proxy);
        if self.readers[reader].path.is_some() {
            self.readers[reader].core.note_elsewhere(self.writers[writer].config.guid);
        }
        self.readers[reader].meet(&self.writers[writer]);
        self.transmit_reader(reader);
    }

    /// Moves a reader to another address. What is under way to the old one is lost.
    pub(crate) fn move_reader(&mut self, reader: usize, to: SocketAddrV4) {
        let host = &mut self.readers[reader];
        let from = core::mem::replace(&mut host.address, to);
        self.network.close(from);
        self.network.bind_with_buffer(to, host.receive_buffer as usize);
    }

    /// Notifies a writer that a reader has moved, and of the path there.
    pub(crate) fn tell_writer_of_move(&mut self, writer: usize, reader: usize, segment_max: u16, path: Path) {
        let host = &mut self.readers[reader];
        (host.segment_max, host.path) = (segment_max, Some(path));
        let proxy = host.proxy();
        let core = &mut self.writers[writer].core;
        core.move_reader(self.now, proxy.guid, proxy.destinations, None, segment_max, proxy.path);
        self.transmit_writer(writer);
    }

    /// Unmatches a writer and a reader.
    pub(crate) fn disconnect(&mut self, writer: usize, reader: usize) {
        let (from, to) = (self.writers[writer].config.guid, self.readers[reader].config.guid);
        self.writers[writer].core.unmatch_reader(self.now, to);
        self.readers[reader].core.unmatch_writer(self.now, from);
        self.readers[reader].forget(from);
        self.writers[writer].unblock();
    }

    /// Replaces a writer by a new one at the same address.
    pub(crate) fn restart_writer(&mut self, writer: usize, prefix: GuidPrefix) {
        self.writers[writer].restart(prefix);
    }

    /// Lets the application of a reader take all samples.
    pub(crate) fn wake_reader(&mut self, reader: usize) {
        self.readers[reader].take(self.now);
        self.transmit_reader(reader);
    }

    /// Lets the application of a reader take one sample.
    pub(crate) fn take_one(&mut self, reader: usize) {
        self.readers[reader].take_one();
        self.transmit_reader(reader);
    }

    /// Matches all writers with all readers.
    pub(crate) fn connect_all(&mut self) {
        for writer in 0..self.writers.len() {
            (0..self.readers.len()).for_each(|reader| self.connect(writer, reader));
        }
    }

    /// Runs until the goal is reached.
    pub(crate) fn run_until(&mut self, goal: impl Fn(&Self) -> bool) {
        while !goal(self) {
            let at = self.next_event().unwrap_or_else(|| panic!("nothing will happen any more: {self}"));
            self.step(at);
        }
    }

    /// Runs for a time, or until nothing more will happen.
    pub(crate) fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        while let Some(at) = self.next_event().filter(|at| *at <= end) {
            self.step(at);
        }
        self.now = end;
    }

    /// Runs until nothing more will happen, which must be reached.
    pub(crate) fn run_to_silence(&mut self) {
        while let Some(at) = self.next_event() {
            self.step(at);
        }
    }

    /// Runs until every reliable reader has everything, everything is acknowledged and the network
    /// is permanently silent. Checks that little was sent after the last sample arrived.
    pub(crate) fn run_to_the_end(&mut self) {
        self.run_until(Self::is_delivered);
        let before = self.network.counters().sent;
        self.run_to_silence();
        self.check_acknowledged();
        let pairs = (self.writers.len() * self.readers.len()) as u64;
        let after = self.network.counters().sent - before;
        assert!(after <= 100 * pairs, "{after} datagrams after everything was delivered: {self}");
        for reader in &self.readers {
            reader.check_complete(&self.writers);
        }
    }

    /// Whether all samples were written and every reliable reader has the last one of each writer.
    pub(crate) fn is_delivered(&self) -> bool {
        self.writers.iter().all(WriterHost::is_done)
            && self.readers.iter().all(|reader| reader.has_all(&self.writers))
    }

    /// Asserts that nothing is unacknowledged.
    pub(crate) fn check_acknowledged(&self) {
        for writer in &self.writers {
            let last = writer.core.last_sequence_number();
            assert!(writer.core.is_acknowledged(last), "{last} is not acknowledged: {self}");
            assert_eq!(writer.core.window().1, 0, "nothing is in flight: {self}");
        }
    }

    /// Returns the time of the next event.
    pub(crate) fn next_event(&self) -> Option<Time> {
        let arrival = self.network.next_arrival().map(|at| Time(at.as_nanos() as u64));
        let writers = self.writers.iter().filter_map(WriterHost::next_event);
        let readers = self.readers.iter().filter_map(ReaderHost::next_event);
        let connections = self.connections.iter().map(Tcp::next_event);
        arrival.into_iter().chain(writers).chain(readers).chain(connections).min()
    }

    fn step(&mut self, at: Time) {
        self.steps += 1;
        assert!(self.steps < self.steps_max, "no end after {} steps: {self}", self.steps);
        self.now = self.now.max(at);
        self.deliver();
        for index in 0..self.writers.len() {
            self.publish(index);
            let writer = &mut self.writers[index];
            if writer.sends_itself() && writer.core.next_timeout().is_some_and(|at| at <= self.now) {
                writer.core.handle_timeout(self.now);
                writer.note_silence();
                self.transmit_writer(index);
                let next = self.writers[index].core.next_timeout();
                assert!(next.is_none_or(|next| next > self.now), "writer {index} asks for no delay: {self}");
            }
            self.write(index);
        }
        for index in 0..self.readers.len() {
            let reader = &mut self.readers[index];
            if reader.core.next_timeout().is_some_and(|at| at <= self.now) {
                reader.core.handle_timeout(self.now);
                self.transmit_reader(index);
                let next = self.readers[index].core.next_timeout();
                assert!(next.is_none_or(|next| next > self.now), "reader {index} asks for no delay: {self}");
            }
            if self.readers[index].take(self.now) || self.readers[index].has_answer(self.now) {
                self.transmit_reader(index);
            }
        }
        self.connections.iter_mut().for_each(|it| it.send(self.now, &mut self.network));
        self.writers.iter().for_each(WriterHost::check_bounds);
        self.readers.iter().for_each(ReaderHost::check_bounds);
    }

    /// Delivers what arrives now, as one batch for each host, which responds once to all of it.
    fn deliver(&mut self) {
        let now = Duration::from_nanos(self.now.0);
        let mut writers: BTreeMap<usize, Vec<Vec<u8>>> = BTreeMap::new();
        let mut readers = writers.clone();
        while let Some(delivery) = self.network.deliver(now) {
            if let Some(index) = self.writers.iter().position(|host| host.address == delivery.receiver) {
                writers.entry(index).or_default().push(delivery.bytes.to_vec());
            } else if let Some(index) = self.readers.iter().position(|host| host.address == delivery.receiver)
            {
                self.readers[index].note_ecn(&delivery.bytes, delivery.ecn);
                readers.entry(index).or_default().push(delivery.bytes.to_vec());
            }
            for connection in &mut self.connections {
                if [connection.sender, connection.receiver].contains(&delivery.receiver) {
                    connection.receive(self.now, delivery.receiver, &delivery.bytes, &mut self.network);
                }
            }
        }
        for (index, datagrams) in writers {
            self.out.clear();
            let host = &mut self.writers[index];
            host.receive(self.now, datagrams.iter().map(Vec::as_slice), &mut self.out);
            host.note_sent(&self.out);
            // The thread that writes a large sample goes on with it. All else waits for a timer, as in the engine.
            let goes_on = host.core.is_amid_sample() && host.core.can_go_on(self.now);
            let from = host.address;
            self.send(from);
            if goes_on {
                self.transmit_writer(index);
            }
        }
        for (index, datagrams) in readers {
            match &mut self.readers[index].busy {
                Some(busy) => datagrams.into_iter().for_each(|datagram| busy.add(self.now, datagram)),
                None => self.receive_at_reader(index, &datagrams),
            }
        }
        for index in 0..self.readers.len() {
            while let Some((arrival, datagram)) =
                self.readers[index].busy.as_mut().and_then(|busy| busy.take(self.now))
            {
                self.readers[index].receiver.set_arrival(Some(arrival));
                self.receive_at_reader(index, &[datagram]);
            }
        }
    }

    fn receive_at_reader(&mut self, index: usize, datagrams: &[Vec<u8>]) {
        self.out.clear();
        let host = &mut self.readers[index];
        host.receive(self.now, datagrams.iter().map(Vec::as_slice), &mut self.out);
        host.take(self.now);
        host.put_off(&mut self.out);
        let from = host.address;
        self.send(from);
        self.transmit_reader(index);
    }

    /// Lets the application of a writer write, as far as its pace and the window allow.
    fn write(&mut self, index: usize) {
        let refused = self.writers[index].refused;
        while self.writers[index].write(self.now) {
            self.transmit_writer(index);
        }
        if self.writers[index].refused > refused {
            // The refusal may have made a HEARTBEAT due.
            self.transmit_writer(index);
        }
    }

    /// Lets the publishing thread send, if the writer has one.
    fn publish(&mut self, index: usize) {
        self.out.clear();
        let host = &mut self.writers[index];
        host.publish(self.now, &mut self.out);
        host.note_sent(&self.out);
        let from = host.address;
        self.send(from);
    }

    fn transmit_writer(&mut self, index: usize) {
        self.out.clear();
        let host = &mut self.writers[index];
        if host.sends_itself() {
            host.core.poll_transmit(self.now, &mut self.out);
        } else {
            // The thread that receives also sends the responses.
            host.core.poll_answers(self.now, &mut self.out);
        }
        host.note_sent(&self.out);
        let from = host.address;
        self.send(from);
    }

    fn transmit_reader(&mut self, index: usize) {
        self.out.clear();
        let host = &mut self.readers[index];
        host.core.poll_transmit(self.now, &mut self.out);
        host.put_off(&mut self.out);
        let from = host.address;
        while let Some((to, answer)) = host.next_answer(self.now) {
            let now = Duration::from_nanos(self.now.0);
            self.network.send(now, from, to, &answer).expect("it fits a datagram");
        }
        self.send(from);
    }

    fn send(&mut self, from: SocketAddrV4) {
        let now = Duration::from_nanos(self.now.0);
        let network = &mut self.network;
        self.out.for_each_with(|item, datagram| {
            let ecn = Ecn::of_tos(item.type_of_service);
            for to in item.to.iter() {
                network
                    .send_with(now, from, *to, ecn, datagram)
                    .unwrap_or_else(|error| panic!("{from} {to} {datagram:02x?}: {error:?}"));
            }
        });
    }
}

impl core::fmt::Display for Sim {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        writeln!(f, "{} with seed {} at {:?} after {} steps", self.name, self.seed, self.now, self.steps)?;
        for (index, host) in self.writers.iter().enumerate() {
            writeln!(f, "writer {index}: {host}")?;
        }
        for (index, host) in self.readers.iter().enumerate() {
            writeln!(f, "reader {index}: {host}")?;
        }
        write!(f, "network: {:?}", self.network.counters())
    }
}

impl Drop for Sim {
    #[expect(clippy::print_stderr, reason = "says how to run the failing seed again")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{self}\nrun it again with WEIR_SIM_SEED={}", self.seed);
            if self.is_recording {
                let path = std::env::temp_dir().join(format!("weir-sim-{}-{}.pcap", self.name, self.seed));
                let pcap = self.network.recording().to_pcap(Side::Senders);
                match std::fs::write(&path, pcap) {
                    Ok(()) => eprintln!("what was sent: {}", path.display()),
                    Err(error) => eprintln!("no capture: {error}"),
                }
            }
        }
    }
}
