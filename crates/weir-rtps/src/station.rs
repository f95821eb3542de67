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

mod paths;
mod room;
#[cfg(test)]
mod tests;

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use paths::Paths;
use room::Room;
use weir_wire::{EntityId, Guid, GuidPrefix, SequenceNumber, Timestamp};

use crate::config;
use crate::discovery_event::{DiscoveryEvent, RemoteEndpoint};
use crate::driver::{Driver, Parts, Port};
use crate::limits::LimitTooSmall;
use crate::outbox::Outbox;
use crate::participant::{LocalEndpoint, LocalEndpointError, ParticipantConfig, ParticipantCore};
use crate::path::Path;
use crate::qos::{Durability, LivelinessKind, Reliability, XCDR1};
use crate::reader::{RawSample, ReaderConfig, ReaderCore, WriterPolicies, WriterProxyConfig};
use crate::receiver::batch;
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
    /// How the liveliness of each writer is asserted.
    liveliness: [LivelinessKind; WRITERS],
    paths: Paths,
    outbox: Outbox,
    buffer: Vec<u8>,
    datagram_max: usize,
    counters: StationCounters,
}

/// What a station could not do, and what discovery has reported to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StationCounters {
    /// Datagrams that were not sent: they are longer than [`Driver::datagram_max`]. Samples are never; announcements
    /// with long names, partitions or user data may be, and then peers do not discover what they announce.
    pub datagrams_too_long: u64,
    /// Datagrams that were not sent: the stack failed.
    pub datagrams_failed: u64,
    /// Pairs of our endpoints and others whose policies prevent a match.
    pub incompatible_qos: u64,
    /// Endpoints of a topic whose types differ.
    pub inconsistent_topics: u64,
    /// Our writers that were not asserted within their lease.
    pub liveliness_lost: u64,
}

/// Why a station cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StationError<E> {
    /// The group of discovery cannot be joined.
    #[error("the group of discovery cannot be joined: {0:?}")]
    Driver(E),
    /// An endpoint cannot be announced.
    #[error(transparent)]
    Endpoint(LocalEndpointError),
    /// Two endpoints have the same entity id.
    #[error("two endpoints have the entity id {0:?}: give each its own")]
    SameEntity(EntityId),
    /// A core has another GUID than its endpoint is announced with.
    #[error("the core of the endpoint {announced:?} has the GUID {core:?}: give both the same")]
    OtherGuid {
        /// The GUID in the configuration of the core.
        core: Guid,
        /// The participant's prefix, and the entity id of the endpoint.
        announced: Guid,
    },
    /// The limits table has no room for what an endpoint keeps.
    #[error("endpoint {0:?}: {1}")]
    Limits(EntityId, LimitTooSmall),
    /// The stack carries only datagrams that are shorter than those every host accepts.
    #[error("the driver's longest datagram is {0} bytes, below {min}", min = config::DATAGRAM_MIN_BYTES)]
    DatagramMax(usize),
}

impl<D: Driver, const WRITERS: usize, const READERS: usize> Station<D, WRITERS, READERS> {
    /// Starts a participant. Each endpoint is given as it is announced and as its core is configured; both have the
    /// same entity id, which no other endpoint has. A core has the GUID of the participant with that id. If the
    /// participant has a limits table, it applies to all cores.
    ///
    /// # Errors
    /// The group of discovery cannot be joined, an endpoint cannot be announced, or the configuration contradicts
    /// itself.
    pub fn new(
        mut driver: D,
        config: ParticipantConfig,
        mut writers: [(LocalEndpoint, WriterConfig); WRITERS],
        mut readers: [(LocalEndpoint, ReaderConfig); READERS],
    ) -> Result<Self, StationError<D::Error>> {
        let datagram_max = driver.datagram_max().min(config::DATAGRAM_MAX_BYTES);
        if datagram_max < config::DATAGRAM_MIN_BYTES {
            return Err(StationError::DatagramMax(datagram_max));
        }
        prepare_writers(&config, datagram_max, &mut writers)?;
        prepare_readers(&config, &mut readers)?;
        if let Some(group) = config.metatraffic_multicast {
            driver.join_multicast(*group.ip()).map_err(StationError::Driver)?;
        }
        let now = driver.now();
        let (paths, room) = (Paths::new(&config), Room::of(&config, datagram_max, (WRITERS, READERS)));
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
            receiver: room.receiver(),
            liveliness: writers.each_ref().map(|(endpoint, _)| endpoint.qos.liveliness.kind),
            writers: writers.map(|(_, config)| WriterCore::new(config)),
            readers: readers.map(|(_, config)| ReaderCore::new(config)),
            paths,
            outbox: room.outbox(),
            buffer: vec![0; datagram_max],
            datagram_max,
            counters: StationCounters::default(),
        })
    }

    /// Receives what has arrived, does what is due, and sends. Returns when the next call is due, unless something
    /// arrives before.
    ///
    /// It receives a limited number of datagrams. If more have arrived, the next call is due at once.
    ///
    /// # Errors
    /// The stack does not work.
    pub fn poll(&mut self) -> Result<Option<Time>, D::Error> {
        let has_more = self.receive_metatraffic()? | self.receive_user_data()?;
        let now = self.driver.now();
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        if is_due(self.discovery.next_timeout()) {
            self.discovery.handle_timeout(now);
        }
        self.apply_events(now);
        self.discovery.poll_transmit(now, &mut self.outbox);
        self.send(Port::Metatraffic)?;
        for index in 0..WRITERS {
            let writer = &mut self.writers[index];
            if is_due(writer.next_timeout()) {
                writer.handle_timeout(now);
            }
            writer.poll_transmit(now, &mut self.outbox);
            self.send(Port::User)?;
        }
        for index in 0..READERS {
            let reader = &mut self.readers[index];
            if is_due(reader.next_timeout()) {
                reader.handle_timeout(now);
            }
            reader.poll_transmit(now, &mut self.outbox);
            self.send(Port::User)?;
        }
        let writers = self.writers.iter().filter_map(WriterCore::next_timeout);
        let readers = self.readers.iter().filter_map(ReaderCore::next_timeout);
        let timeouts = self.discovery.next_timeout().into_iter().chain(writers).chain(readers);
        Ok(timeouts.chain(has_more.then_some(now)).min())
    }

    /// Writes a sample, and sends it if its writer's window and path permit. `timestamp`: when it was written, by a
    /// clock that the readers know. Asserts the liveliness of the writer.
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
        if written.is_ok() && self.liveliness[writer] != LivelinessKind::Automatic {
            self.note_assertion(now, writer)?;
        }
        Ok(written)
    }

    /// Asserts the liveliness of a writer, as a write does.
    ///
    /// # Errors
    /// The stack does not work.
    ///
    /// # Panics
    /// There is no such writer.
    pub fn assert_liveliness(&mut self, writer: usize) -> Result<(), D::Error> {
        let now = self.driver.now();
        if self.liveliness[writer] == LivelinessKind::ManualByTopic {
            self.writers[writer].assert_liveliness(now, &mut self.outbox);
            self.send(Port::User)?;
        }
        self.note_assertion(now, writer)
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

    /// Returns counts of what could not be done, and of what discovery has reported.
    pub fn counters(&self) -> StationCounters {
        self.counters
    }

    /// Returns counts of what was received from writers and readers.
    pub fn received(&self) -> batch::Counters {
        self.receiver.counters()
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

    fn note_assertion(&mut self, now: Time, writer: usize) -> Result<(), D::Error> {
        self.discovery.assert_writer(now, now, self.writers[writer].guid().entity);
        self.discovery.poll_transmit(now, &mut self.outbox);
        self.send(Port::Metatraffic)
    }

    /// Returns whether more may have arrived.
    fn receive_metatraffic(&mut self) -> Result<bool, D::Error> {
        let mut has_more = false;
        for port in [Port::Metatraffic, Port::Group] {
            let mut left = BATCH;
            while let Some(rest) = left.checked_sub(1) {
                let Some((len, from)) = self.driver.receive(port, &mut self.buffer)? else { break };
                left = rest;
                let (now, datagram) = (self.driver.now(), &self.buffer[..len]);
                match port {
                    Port::Group => self.discovery.handle_group_datagram(now, from, datagram),
                    _ => self.discovery.handle_datagram(now, from, datagram),
                }
            }
            has_more |= left == 0;
        }
        Ok(has_more)
    }

    /// Returns whether more may have arrived.
    fn receive_user_data(&mut self) -> Result<bool, D::Error> {
        let mut left = BATCH;
        while let Some(rest) = left.checked_sub(1) {
            let Some((len, _)) = self.driver.receive(Port::User, &mut self.buffer)? else { break };
            left = rest;
            let now = self.driver.now();
            let prefix = self.discovery.config().guid_prefix;
            let (mut writers, mut readers) = (self.writers.each_mut(), self.readers.each_mut());
            let cores = Cores { prefix, writers: &mut writers, readers: &mut readers };
            self.receiver.receive(now, cores, [&self.buffer[..len]], &mut self.outbox);
            if !self.outbox.is_empty() {
                self.send(Port::User)?;
            }
        }
        Ok(left == 0)
    }

    /// Matches endpoints, and takes back matches.
    fn apply_events(&mut self, now: Time) {
        while let Some(event) = self.discovery.poll_event() {
            match event {
                DiscoveryEvent::ReaderMatched { writer, reader } => self.match_reader(now, writer, reader),
                DiscoveryEvent::ReaderChanged { writer, reader } => {
                    let (path, segment_max) = (self.paths.to(&reader), self.segment_max());
                    if let Some(core) = self.writer(writer) {
                        core.set_content_filter(reader.guid, reader.content_filter.as_deref());
                        core.move_reader(now, reader.guid, reader.destinations, None, segment_max, path);
                    }
                }
                DiscoveryEvent::ReaderUnmatched { writer, reader } => {
                    self.writer(writer).into_iter().for_each(|core| core.unmatch_reader(now, reader));
                }
                DiscoveryEvent::WriterMatched { reader, writer } => {
                    let is_here = writer.destinations.iter().any(|to| self.paths.is_own(*to.ip()));
                    if let Some(core) = self.reader(reader) {
                        match_writer(now, core, writer, is_here);
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
                DiscoveryEvent::OfferedIncompatibleQos { .. }
                | DiscoveryEvent::RequestedIncompatibleQos { .. } => self.counters.incompatible_qos += 1,
                DiscoveryEvent::InconsistentTopic { .. } => self.counters.inconsistent_topics += 1,
                DiscoveryEvent::LivelinessLost { .. } => self.counters.liveliness_lost += 1,
                DiscoveryEvent::PathSizeChanged { .. }
                | DiscoveryEvent::ParticipantDiscovered { .. }
                | DiscoveryEvent::ParticipantLost { .. } => {}
            }
        }
    }

    fn match_reader(&mut self, now: Time, writer: EntityId, reader: RemoteEndpoint) {
        let (path, segment_max) = (self.paths.to(&reader), self.segment_max());
        let Some(core) = self.writer(writer) else { return };
        let (guid, filter) = (reader.guid, reader.content_filter.clone());
        core.match_reader(now, proxy_of(reader, segment_max, path));
        core.set_content_filter(guid, filter.as_deref());
    }

    /// The longest datagram on every path.
    fn segment_max(&self) -> u16 {
        u16::try_from(self.datagram_max).unwrap_or(u16::MAX)
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
        let mut result = Ok(());
        for item in &self.outbox.items {
            let parts = <[&[u8]; 2]>::from(self.outbox.parts(item));
            let len = parts[0].len() + parts[1].len();
            let segment = if item.segment == 0 { len } else { usize::from(item.segment) };
            for start in (0..len).step_by(segment.max(1)) {
                let datagram = cut(parts, start, start + segment);
                for to in item.to.iter() {
                    if datagram[0].len() + datagram[1].len() > self.datagram_max {
                        self.counters.datagrams_too_long += 1;
                        continue;
                    }
                    if result.is_ok() {
                        result = self.driver.send(from, *to, datagram);
                    }
                    self.counters.datagrams_failed += u64::from(result.is_err());
                }
            }
        }
        result
    }
}

/// Checks writers, and sets what their cores need to know of the participant and the driver.
fn prepare_writers<E>(
    participant: &ParticipantConfig,
    datagram_max: usize,
    writers: &mut [(LocalEndpoint, WriterConfig)],
) -> Result<(), StationError<E>> {
    check_ids(participant.guid_prefix, writers.iter().map(|(endpoint, core)| (endpoint.entity, core.guid)))?;
    for (endpoint, core) in writers {
        core.datagram_max = core.datagram_max.min(u16::try_from(datagram_max).unwrap_or(u16::MAX));
        let Some(table) = participant.table else { continue };
        let maxima = (core.max_samples, core.max_instances);
        let checked = table.endpoint.check(core.history, maxima, endpoint.entity.is_keyed());
        checked.map_err(|error| StationError::Limits(endpoint.entity, error))?;
        core.limits = Some(table.endpoint);
    }
    Ok(())
}

/// The same for readers.
fn prepare_readers<E>(
    participant: &ParticipantConfig,
    readers: &mut [(LocalEndpoint, ReaderConfig)],
) -> Result<(), StationError<E>> {
    check_ids(participant.guid_prefix, readers.iter().map(|(endpoint, core)| (endpoint.entity, core.guid)))?;
    for (endpoint, core) in readers {
        let Some(table) = participant.table else { continue };
        let maxima = (core.max_samples, core.max_instances);
        let checked = table.endpoint.check(core.history, maxima, core.key_of.is_some());
        checked.map_err(|error| StationError::Limits(endpoint.entity, error))?;
        core.limits = Some(table.endpoint);
    }
    Ok(())
}

/// Checks that all ids differ, and are those of the cores.
fn check_ids<E>(
    prefix: GuidPrefix,
    ids: impl Iterator<Item = (EntityId, Guid)> + Clone,
) -> Result<(), StationError<E>> {
    for (index, (entity, core)) in ids.clone().enumerate() {
        if ids.clone().take(index).any(|(other, _)| other == entity) {
            return Err(StationError::SameEntity(entity));
        }
        let announced = Guid::new(prefix, entity);
        if core != announced {
            return Err(StationError::OtherGuid { core, announced });
        }
    }
    Ok(())
}

fn proxy_of(reader: RemoteEndpoint, segment_max: u16, path: Option<Path>) -> ReaderProxyConfig {
    ReaderProxyConfig {
        guid: reader.guid,
        reliable: reader.qos.reliability == Reliability::Reliable,
        wants_history: reader.qos.durability != Durability::Volatile,
        destinations: reader.destinations,
        group: None,
        vendor: reader.vendor,
        receive_buffer: reader.receive_buffer,
        segment_max,
        path,
    }
}

/// Matches a writer. `is_here`: it is on this host.
fn match_writer(now: Time, core: &mut ReaderCore, writer: RemoteEndpoint, is_here: bool) {
    let (guid, destinations, vendor) = (writer.guid, writer.destinations, writer.vendor);
    let reliable = writer.qos.reliability == Reliability::Reliable;
    core.match_writer(now, WriterProxyConfig { guid, reliable, destinations, vendor });
    if !is_here {
        core.note_elsewhere(guid);
    }
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
