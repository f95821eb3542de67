//! A participant with its endpoints above a [`Driver`]: the loop that a program without `weir-dds` runs.
//!
//! ```text
//! loop {
//!     let next = station.poll()?;          // receives, does what is due, sends
//!     // Take samples, write, do something else.
//!     // Sleep until `next`, or until the stack has received something.
//! }
//! ```
//!
//! The endpoints exist from the start, as many as the types say. One thread uses the station. Not here, but in
//! `weir-dds`: asynchronous publishing, static peers of a file, the sizes of packets beyond those of Ethernet, group
//! presentation, exclusive ownership, and user data by multicast.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::net::SocketAddrV4;

use weir_wire::{EntityId, SequenceNumber, Timestamp};

use crate::discovery_event::{DiscoveryEvent, RemoteEndpoint};
use crate::driver::{Driver, Parts, Port};
use crate::outbox::Outbox;
use crate::participant::{LocalEndpoint, LocalEndpointError, ParticipantConfig, ParticipantCore};
use crate::path::Path;
use crate::qos::{Durability, Reliability, XCDR1};
use crate::reader::{RawSample, ReaderConfig, ReaderCore, WriterPolicies, WriterProxyConfig};
use crate::receiver::unlocked::{Cores, UnlockedReceiver};
use crate::time::Time;
use crate::writer::{Change, ReaderProxyConfig, WriteRefused, WriterConfig, WriterCore};

/// A participant with `WRITERS` writers and `READERS` readers.
#[derive(Debug)]
pub struct Station<D, const WRITERS: usize, const READERS: usize> {
    driver: D,
    discovery: ParticipantCore,
    receiver: UnlockedReceiver,
    writers: [WriterCore; WRITERS],
    readers: [ReaderCore; READERS],
    outbox: Outbox,
    buffer: Vec<u8>,
}

/// Why a station cannot start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StationError<E> {
    /// The group of discovery cannot be joined.
    Driver(E),
    /// An endpoint cannot be announced.
    Endpoint(LocalEndpointError),
}

impl<D: Driver, const WRITERS: usize, const READERS: usize> Station<D, WRITERS, READERS> {
    /// Starts a participant. Each endpoint is given as it is announced and as its core is configured; both have the
    /// same entity id. A core has the GUID of the participant with that id.
    ///
    /// # Errors
    /// The group of discovery cannot be joined, or an endpoint cannot be announced.
    pub fn new(
        mut driver: D,
        config: ParticipantConfig,
        writers: [(LocalEndpoint, WriterConfig); WRITERS],
        readers: [(LocalEndpoint, ReaderConfig); READERS],
    ) -> Result<Self, StationError<D::Error>> {
        if let Some(group) = config.metatraffic_multicast {
            driver.join_multicast(*group.ip()).map_err(StationError::Driver)?;
        }
        let now = driver.now();
        let mut discovery = ParticipantCore::new(config, now);
        for (endpoint, _) in &writers {
            discovery.add_writer(now, endpoint.clone()).map_err(StationError::Endpoint)?;
        }
        for (endpoint, _) in &readers {
            discovery.add_reader(now, endpoint.clone()).map_err(StationError::Endpoint)?;
        }
        Ok(Self {
            driver,
            discovery,
            receiver: UnlockedReceiver::default(),
            writers: writers.map(|(_, config)| WriterCore::new(config)),
            readers: readers.map(|(_, config)| ReaderCore::new(config)),
            outbox: Outbox::new(),
            buffer: vec![0; DATAGRAM_MAX],
        })
    }

    /// Receives what has arrived, does what is due, and sends. Returns when the next call is due, unless something
    /// arrives before.
    ///
    /// # Errors
    /// The stack does not work.
    pub fn poll(&mut self) -> Result<Option<Time>, D::Error> {
        self.receive_metatraffic()?;
        self.receive_user_data()?;
        let now = self.driver.now();
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        if is_due(self.discovery.next_timeout()) {
            self.discovery.handle_timeout(now);
        }
        self.apply_events(now);
        self.discovery.poll_transmit(now, &mut self.outbox);
        self.send(Port::Metatraffic)?;
        for writer in &mut self.writers {
            if is_due(writer.next_timeout()) {
                writer.handle_timeout(now);
            }
            writer.poll_transmit(now, &mut self.outbox);
        }
        for reader in &mut self.readers {
            if is_due(reader.next_timeout()) {
                reader.handle_timeout(now);
            }
            reader.poll_transmit(now, &mut self.outbox);
        }
        self.send(Port::User)?;
        let writers = self.writers.iter().filter_map(WriterCore::next_timeout);
        let readers = self.readers.iter().filter_map(ReaderCore::next_timeout);
        Ok(self.discovery.next_timeout().into_iter().chain(writers).chain(readers).min())
    }

    /// Writes a sample, and sends it if its writer's window and path permit. `timestamp`: when it was written, by a
    /// clock that the readers know.
    ///
    /// # Errors
    /// The stack does not work.
    ///
    /// # Panics
    /// There is no such writer.
    pub fn write(
        &mut self,
        writer: usize,
        timestamp: Option<Timestamp>,
        change: Change<'_>,
    ) -> Result<Result<SequenceNumber, WriteRefused>, D::Error> {
        let now = self.driver.now();
        let core = &mut self.writers[writer];
        let written = core.write_change(now, timestamp, change);
        core.poll_transmit(now, &mut self.outbox);
        self.send(Port::User)?;
        Ok(written)
    }

    /// Passes the next sample of a reader to `f`. Returns whether there was one.
    ///
    /// # Panics
    /// There is no such reader.
    pub fn take_next(&mut self, reader: usize, f: impl FnOnce(RawSample<'_>)) -> bool {
        self.readers[reader].take_next(f)
    }

    /// The writers, in the order in which they were given.
    pub fn writers(&self) -> &[WriterCore; WRITERS] {
        &self.writers
    }

    /// The readers, in the order in which they were given.
    pub fn readers(&self) -> &[ReaderCore; READERS] {
        &self.readers
    }

    /// The discovery of the participant.
    pub fn discovery(&self) -> &ParticipantCore {
        &self.discovery
    }

    /// The driver: to wait for what arrives.
    pub fn driver_mut(&mut self) -> &mut D {
        &mut self.driver
    }

    /// Leaves the domain: peers do not wait for the end of the lease.
    ///
    /// # Errors
    /// The stack does not work.
    pub fn close(&mut self) -> Result<(), D::Error> {
        let now = self.driver.now();
        self.discovery.close(now);
        self.discovery.poll_transmit(now, &mut self.outbox);
        self.send(Port::Metatraffic)
    }

    fn receive_metatraffic(&mut self) -> Result<(), D::Error> {
        for port in [Port::Metatraffic, Port::Group] {
            for _ in 0..BATCH {
                let Some((len, from)) = self.driver.receive(port, &mut self.buffer)? else { break };
                let (now, datagram) = (self.driver.now(), &self.buffer[..len]);
                match port {
                    Port::Group => self.discovery.handle_group_datagram(now, from, datagram),
                    _ => self.discovery.handle_datagram(now, from, datagram),
                }
            }
        }
        Ok(())
    }

    fn receive_user_data(&mut self) -> Result<(), D::Error> {
        for _ in 0..BATCH {
            let Some((len, _)) = self.driver.receive(Port::User, &mut self.buffer)? else { break };
            let now = self.driver.now();
            let prefix = self.discovery.config().guid_prefix;
            let (mut writers, mut readers) = (self.writers.each_mut(), self.readers.each_mut());
            let cores = Cores { prefix, writers: &mut writers, readers: &mut readers };
            self.receiver.receive(now, cores, [&self.buffer[..len]], &mut self.outbox);
        }
        self.send(Port::User)
    }

    /// Matches endpoints, and takes back matches.
    fn apply_events(&mut self, now: Time) {
        while let Some(event) = self.discovery.poll_event() {
            match event {
                DiscoveryEvent::ReaderMatched { writer, reader } => {
                    let filter = reader.content_filter.clone();
                    let guid = reader.guid;
                    if let Some(core) = self.writer(writer) {
                        core.match_reader(now, proxy_of(reader));
                        core.set_content_filter(guid, filter.as_deref());
                    }
                }
                DiscoveryEvent::ReaderChanged { writer, reader } => {
                    if let Some(core) = self.writer(writer) {
                        core.set_content_filter(reader.guid, reader.content_filter.as_deref());
                        let path = Some(Path::default());
                        core.move_reader(now, reader.guid, reader.destinations, None, SEGMENT_MAX, path);
                    }
                }
                DiscoveryEvent::ReaderUnmatched { writer, reader } => {
                    self.writer(writer).into_iter().for_each(|core| core.unmatch_reader(now, reader));
                }
                DiscoveryEvent::WriterMatched { reader, writer } => {
                    if let Some(core) = self.reader(reader) {
                        match_writer(now, core, writer);
                    }
                }
                DiscoveryEvent::WriterChanged { reader, writer } => {
                    if let Some(core) = self.reader(reader) {
                        core.move_writer(writer.guid, Arc::clone(&writer.destinations));
                        core.set_writer_policies(writer.guid, WriterPolicies::of(&writer.qos));
                    }
                }
                DiscoveryEvent::LivelinessAsserted { prefix, kind } => {
                    self.readers.iter_mut().for_each(|core| core.assert_liveliness(now, prefix, kind));
                }
                DiscoveryEvent::WriterUnmatched { reader, writer } => {
                    self.reader(reader).into_iter().for_each(|core| core.unmatch_writer(now, writer));
                }
                _ => {}
            }
        }
    }

    fn writer(&mut self, entity: EntityId) -> Option<&mut WriterCore> {
        self.writers.iter_mut().find(|core| core.guid().entity == entity)
    }

    fn reader(&mut self, entity: EntityId) -> Option<&mut ReaderCore> {
        self.readers.iter_mut().find(|core| core.guid().entity == entity)
    }

    /// Sends the messages of the outbox. What is left after an error counts as lost.
    fn send(&mut self, from: Port) -> Result<(), D::Error> {
        let sent = self.send_outbox(from);
        self.outbox.clear();
        sent
    }

    fn send_outbox(&mut self, from: Port) -> Result<(), D::Error> {
        for item in &self.outbox.items {
            let parts = <[&[u8]; 2]>::from(self.outbox.parts(item));
            let len = parts[0].len() + parts[1].len();
            let segment = if item.segment == 0 { len } else { usize::from(item.segment) };
            for start in (0..len).step_by(segment.max(1)) {
                let datagram = cut(parts, start, start + segment);
                item.to.iter().try_for_each(|to: &SocketAddrV4| self.driver.send(from, *to, datagram))?;
            }
        }
        Ok(())
    }
}

fn proxy_of(reader: RemoteEndpoint) -> ReaderProxyConfig {
    ReaderProxyConfig {
        guid: reader.guid,
        reliable: reader.qos.reliability == Reliability::Reliable,
        wants_history: reader.qos.durability != Durability::Volatile,
        destinations: reader.destinations,
        group: None,
        vendor: reader.vendor,
        receive_buffer: reader.receive_buffer,
        segment_max: SEGMENT_MAX,
        path: Some(Path::default()),
    }
}

fn match_writer(now: Time, core: &mut ReaderCore, writer: RemoteEndpoint) {
    let (guid, destinations, vendor) = (writer.guid, writer.destinations, writer.vendor);
    let reliable = writer.qos.reliability == Reliability::Reliable;
    core.match_writer(now, WriterProxyConfig { guid, reliable, destinations, vendor });
    core.note_elsewhere(guid);
    core.set_liveliness(now, guid, writer.qos.liveliness);
    core.set_writer_policies(guid, WriterPolicies::of(&writer.qos));
    core.note_representation(guid, writer.qos.representation.first().copied().unwrap_or(XCDR1));
    if writer.qos.durability != Durability::Volatile {
        core.note_history(guid);
    }
}

/// The bytes `start..end` of consecutive parts, as far as there are any.
fn cut([head, tail]: Parts<'_>, start: usize, end: usize) -> Parts<'_> {
    let of = |part: &'_ [u8], before: usize| {
        let bound = |at: usize| at.saturating_sub(before).min(part.len());
        bound(start)..bound(end)
    };
    [&head[of(head, 0)], &tail[of(tail, head.len())]]
}

/// Datagrams that are received at a socket before anything else is done.
const BATCH: usize = 16;
/// The longest datagram that is received.
const DATAGRAM_MAX: usize = 65_507;
/// The longest datagram that is sent unless a sample needs a longer one: what a packet of Ethernet holds.
const SEGMENT_MAX: u16 = 1_472;

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::collections::VecDeque;
    use alloc::rc::Rc;
    use core::cell::RefCell;
    use core::convert::Infallible;
    use core::net::Ipv4Addr;
    use core::time::Duration;

    use weir_wire::{Guid, GuidPrefix};

    use super::*;
    use crate::qos::{History, Qos};
    use crate::writer::ChangeKind;

    /// Datagrams, and who sent them.
    type Queue = VecDeque<(Vec<u8>, SocketAddrV4)>;

    /// What is in flight, and the time.
    #[derive(Default)]
    struct Wire {
        now: u64,
        sent: u64,
        /// Drops every so many datagrams; 0: none.
        loses_every: u64,
        groups: Vec<(u8, Ipv4Addr)>,
        /// Of each host and port.
        queues: [[Queue; 3]; 2],
    }

    /// The end of host 0 or 1.
    struct End {
        host: u8,
        wire: Rc<RefCell<Wire>>,
    }

    fn address(host: u8, port: Port) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host + 1), 7410 + port as u16)
    }

    impl Driver for End {
        type Error = Infallible;

        fn now(&mut self) -> Time {
            Time(self.wire.borrow().now)
        }

        fn send(&mut self, from: Port, to: SocketAddrV4, datagram: Parts<'_>) -> Result<(), Infallible> {
            assert_ne!(from, Port::Group);
            let mut wire = self.wire.borrow_mut();
            wire.sent += 1;
            if wire.loses_every > 0 && wire.sent.is_multiple_of(wire.loses_every) {
                return Ok(());
            }
            let whole = datagram.concat();
            let sender = address(self.host, from);
            let other = 1 - self.host;
            if to.ip().is_multicast() {
                assert!(wire.groups.contains(&(other, *to.ip())));
                wire.queues[usize::from(other)][Port::Group as usize].push_back((whole, sender));
            } else if let Some(port) =
                [Port::Metatraffic, Port::User].into_iter().find(|port| to == address(other, *port))
            {
                wire.queues[usize::from(other)][port as usize].push_back((whole, sender));
            }
            Ok(())
        }

        fn receive(
            &mut self,
            at: Port,
            buffer: &mut [u8],
        ) -> Result<Option<(usize, SocketAddrV4)>, Infallible> {
            let next = self.wire.borrow_mut().queues[usize::from(self.host)][at as usize].pop_front();
            Ok(next.map(|(datagram, from)| {
                buffer[..datagram.len()].copy_from_slice(&datagram);
                (datagram.len(), from)
            }))
        }

        fn join_multicast(&mut self, group: Ipv4Addr) -> Result<(), Infallible> {
            self.wire.borrow_mut().groups.push((self.host, group));
            Ok(())
        }
    }

    fn config(host: u8) -> ParticipantConfig {
        let mut config = ParticipantConfig::new(GuidPrefix([host + 1; 12]), 0);
        config.metatraffic_unicast = vec![address(host, Port::Metatraffic)];
        config.default_unicast = vec![address(host, Port::User)];
        config
    }

    fn endpoint(entity: EntityId, qos: Qos) -> LocalEndpoint {
        let (topic, type_name) = ("Numbers".to_owned(), "Number".to_owned());
        LocalEndpoint { entity, topic, type_name, qos, unicast: Vec::new(), multicast: None }
    }

    /// A station that writes and one that reads, reliably and keeping all.
    fn pair(wire: &Rc<RefCell<Wire>>) -> (Station<End, 1, 0>, Station<End, 0, 1>) {
        let end = |host| End { host, wire: Rc::clone(wire) };
        let guid = |host: u8, entity| Guid::new(config(host).guid_prefix, entity);
        let (writer, reader) = (EntityId::user_writer(1, false), EntityId::user_reader(1, false));
        let reliable = Qos { reliability: Reliability::Reliable, ..Qos::for_reader() };
        let of_writer = WriterConfig {
            history: History::KeepAll,
            ..WriterConfig::new(guid(0, writer), Reliability::Reliable)
        };
        let of_reader = ReaderConfig {
            history: History::KeepAll,
            ..ReaderConfig::new(guid(1, reader), Reliability::Reliable)
        };
        let writers = [(endpoint(writer, Qos::for_writer()), of_writer)];
        let readers = [(endpoint(reader, reliable), of_reader)];
        let here = Station::new(end(0), config(0), writers, []).ok().unwrap();
        (here, Station::new(end(1), config(1), [], readers).ok().unwrap())
    }

    /// Sends samples of these lengths; returns the lengths and first bytes of what arrives.
    fn exchange(loses_every: u64, lens: &[usize]) -> Vec<(usize, u8)> {
        let wire = Rc::new(RefCell::new(Wire { now: 1_000_000_000, loses_every, ..Wire::default() }));
        let (mut here, mut there) = pair(&wire);
        let (mut written, mut received) = (0, Vec::new());
        for _ in 0..5_000 {
            wire.borrow_mut().now += Duration::from_millis(1).as_nanos() as u64;
            let (Ok(next), Ok(_)) = (here.poll(), there.poll());
            assert!(next.is_some(), "a participant always announces itself again");
            if here.writers()[0].matched() == 1
                && there.readers()[0].matched().count() == 1
                && written < lens.len()
            {
                let payload = vec![written as u8; lens[written]];
                let change = Change { kind: ChangeKind::Alive, key: None, payload: &payload };
                let Ok(result) = here.write(0, Some(Timestamp::from_unix_nanos(1)), change);
                written += usize::from(result.is_ok());
            }
            while there.take_next(0, |sample| received.push((sample.payload.len(), sample.payload[0]))) {}
            if received.len() == lens.len() {
                break;
            }
        }
        received
    }

    #[test]
    fn stations_exchange_samples_above_any_stack() {
        let lens = [8, 1_000, 1_400, 20_000, 12];
        let expected: Vec<_> = lens.iter().enumerate().map(|(at, len)| (*len, at as u8)).collect();
        assert_eq!(exchange(0, &lens), expected);
    }

    #[test]
    fn datagrams_that_the_stack_loses_are_repaired() {
        let lens = [100; 100];
        let expected: Vec<_> = (0..100).map(|at| (100, at)).collect();
        assert_eq!(exchange(5, &lens), expected);
    }

    #[test]
    fn a_station_that_closes_is_forgotten_at_once() {
        let wire = Rc::new(RefCell::new(Wire { now: 1_000_000_000, ..Wire::default() }));
        let (mut here, mut there) = pair(&wire);
        for _ in 0..100 {
            wire.borrow_mut().now += 1_000_000;
            let (Ok(_), Ok(_)) = (here.poll(), there.poll());
        }
        assert_eq!(there.discovery().remote_participants(), 1);
        let (Ok(()), Ok(_)) = (here.close(), there.poll());
        assert_eq!(there.discovery().remote_participants(), 0);
    }

    #[test]
    fn datagrams_are_cut_across_parts() {
        let parts: Parts<'_> = [&[1, 2, 3], &[4, 5]];
        let of = |start, end| cut(parts, start, end).concat();
        assert_eq!((of(0, 2), of(2, 4), of(4, 6)), (vec![1, 2], vec![3, 4], vec![5]));
        assert_eq!(of(0, 5), [1, 2, 3, 4, 5]);
    }
}
