//! The local endpoints: announced to and matched with all participants.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::time::Duration;

use weir_wire::{EntityId, Guid};

use super::ParticipantCore;
use super::local_endpoint::{LocalEndpoint, LocalEndpointError, LocalEntry, manual_lease};
use super::remote_participant::kind_of;
use crate::content_filter::ContentFilterProperty;
use crate::discovery_event::RemoteEndpoint;
use crate::multicast::GroupRoute;
use crate::outbox::Destinations;
use crate::qos::Qos;
use crate::sedp::EndpointKind;
use crate::time::Time;

impl ParticipantCore {
    /// Adds a writer and announces it. If one with this entity id exists, changes its policies or
    /// addresses.
    ///
    /// # Errors
    /// [`LocalEndpointError`]; nothing has changed then.
    pub fn add_writer(&mut self, now: Time, writer: LocalEndpoint) -> Result<(), LocalEndpointError> {
        self.add_endpoint(now, EndpointKind::Writer, writer)
    }

    /// Adds a reader and announces it. If one with this entity id exists, changes its policies or
    /// addresses.
    ///
    /// # Errors
    /// [`LocalEndpointError`]; nothing has changed then.
    pub fn add_reader(&mut self, now: Time, reader: LocalEndpoint) -> Result<(), LocalEndpointError> {
        self.add_endpoint(now, EndpointKind::Reader, reader)
    }

    /// Changes the policies of a local endpoint: announces them, and compares the endpoint with all others again. Does
    /// nothing if there is no such endpoint, or nothing changes.
    ///
    /// # Errors
    /// [`LocalEndpointError`]; nothing has changed then.
    pub fn change_qos(
        &mut self,
        now: Time,
        entity: EntityId,
        change: impl FnOnce(&mut Qos),
    ) -> Result<(), LocalEndpointError> {
        let Some(entry) = self.locals.get(&entity) else { return Ok(()) };
        let mut qos = Qos::clone(&entry.seen.qos);
        change(&mut qos);
        if qos == *entry.seen.qos {
            return Ok(());
        }
        let endpoint = LocalEndpoint {
            entity,
            topic: entry.topic.clone(),
            type_name: String::clone(&entry.type_name),
            qos,
            unicast: entry.unicast.clone(),
            multicast: entry.multicast,
        };
        self.add_endpoint(now, entry.kind, endpoint)
    }

    /// Removes a writer and announces that. It has no further events, only its readers here have.
    pub fn remove_writer(&mut self, now: Time, writer: EntityId) {
        self.remove_endpoint(now, EndpointKind::Writer, writer);
    }

    /// Removes a reader and announces that. It has no further events, only its writers here have.
    pub fn remove_reader(&mut self, now: Time, reader: EntityId) {
        self.remove_endpoint(now, EndpointKind::Reader, reader);
    }

    /// Sets the content filter of a reader that is about to be added. It stays when the reader's policies or addresses
    /// change, and is forgotten with the reader.
    pub fn prepare_content_filter(&mut self, reader: EntityId, filter: ContentFilterProperty) {
        self.content_filters.insert(reader, Arc::new(filter));
    }

    /// Changes the content filter of a reader, and announces it.
    pub fn change_content_filter(&mut self, now: Time, reader: EntityId, filter: ContentFilterProperty) {
        let Some(entry) = self.locals.get_mut(&reader) else { return };
        if entry.seen.content_filter.as_deref() == Some(&filter) {
            return;
        }
        let filter = Arc::new(filter);
        self.content_filters.insert(reader, Arc::clone(&filter));
        entry.seen.content_filter = Some(filter);
        let (kind, guid) = (entry.kind, entry.seen.guid);
        // The instance exists, so nothing is refused.
        let _never_refused = self.builtin.announce(now, kind, &entry.data(&self.config.default_unicast));
        self.match_remote(guid, true);
    }

    fn add_endpoint(
        &mut self,
        now: Time,
        kind: EndpointKind,
        endpoint: LocalEndpoint,
    ) -> Result<(), LocalEndpointError> {
        self.check_endpoint(kind, &endpoint)?;
        let entity = endpoint.entity;
        let guid = Guid::new(self.config.guid_prefix, entity);
        let receive_buffer = (self.config.receive_buffer > 0).then_some(self.config.receive_buffer);
        let (destinations, group) =
            self.own_path(&endpoint.unicast, endpoint.multicast).ok_or(LocalEndpointError::NoAddress)?;
        let known = self.locals.get(&entity);
        let is_asserted_alike = |entry: &&LocalEntry| entry.seen.qos.liveliness == endpoint.qos.liveliness;
        let lease = match known.filter(is_asserted_alike) {
            Some(entry) => entry.lease,
            None => manual_lease(now, kind, &endpoint.qos),
        };
        let entry = LocalEntry {
            topic: endpoint.topic,
            type_name: Arc::new(endpoint.type_name),
            unicast: endpoint.unicast,
            multicast: endpoint.multicast,
            kind,
            lease,
            matches: known.map_or(0, |entry| entry.matches),
            has_refused: known.is_some_and(|entry| entry.has_refused),
            seen: RemoteEndpoint {
                guid,
                vendor: self.config.vendor,
                qos: Arc::new(endpoint.qos),
                destinations,
                group,
                receive_buffer,
                expects_inline_qos: false,
                content_filter: self.content_filters.get(&entity).cloned(),
                delimits_keys: true,
                answer_time: Duration::ZERO,
            },
        };
        let data = entry.data(&self.config.default_unicast);
        while let Err(refused) = self.builtin.announce(now, kind, &data) {
            let remotes = &self.remotes;
            let has_answered = |prefix| remotes.get(&prefix).is_some_and(|remote| remote.has_answered);
            if !self.builtin.forget_end(kind, refused, has_answered) {
                return Err(refused.into());
            }
        }
        let is_known = self.add_local(entity, entry);
        self.writers_changed(now);
        self.match_local(entity);
        self.match_remote(guid, is_known);
        Ok(())
    }

    /// Returns where endpoints of this participant send to an endpoint of it.
    pub(super) fn own_path(
        &self,
        unicast: &[SocketAddrV4],
        multicast: Option<SocketAddrV4>,
    ) -> Option<(Destinations, Option<GroupRoute>)> {
        let addresses = if unicast.is_empty() { &self.config.default_unicast } else { unicast };
        // All our own addresses lead here; loopback, if used, is the shortest path.
        let own = addresses.iter().copied().min_by_key(|address| !address.ip().is_loopback())?;
        Some((Arc::from([own]), self.reachability.group_route(*own.ip(), multicast.as_slice())))
    }

    fn remove_endpoint(&mut self, now: Time, kind: EndpointKind, entity: EntityId) {
        if kind == EndpointKind::Reader {
            self.content_filters.remove(&entity);
        }
        if self.locals.get(&entity).is_none_or(|entry| entry.kind != kind) {
            return;
        }
        self.remove_local(entity);
        self.writers_changed(now);
        let guid = Guid::new(self.config.guid_prefix, entity);
        self.builtin.dispose(now, kind, guid);
        self.announce_anew(now, kind);
        self.news.forget_local(entity);
        self.unmatch_remote(guid);
    }

    /// Adds or replaces a local endpoint. Returns whether it was known.
    fn add_local(&mut self, entity: EntityId, entry: LocalEntry) -> bool {
        let is_known = self.remove_local(entity);
        match self.local_topics.get_mut(&entry.topic) {
            Some(of_topic) => of_topic.push(entity),
            None => _ = self.local_topics.insert(entry.topic.clone(), Vec::from([entity])),
        }
        self.locals.insert(entity, entry);
        is_known
    }

    /// Removes a local endpoint. Returns whether it was known.
    fn remove_local(&mut self, entity: EntityId) -> bool {
        let Some(removed) = self.locals.remove(&entity) else { return false };
        if let Some(of_topic) = self.local_topics.get_mut(&removed.topic) {
            of_topic.retain(|other| *other != entity);
            if of_topic.is_empty() {
                self.local_topics.remove(&removed.topic);
            }
        }
        true
    }

    /// Announces endpoints again whose old announcements keep the memory of many others alive.
    /// Participants that know them ignore it.
    fn announce_anew(&mut self, now: Time, kind: EndpointKind) {
        let entries = self.locals.values().filter(|entry| entry.kind == kind);
        if !self.builtin.should_renew(kind, entries.clone().count()) {
            return;
        }
        for entry in entries {
            // The instance exists, so nothing is refused.
            let _never_refused = self.builtin.announce(now, kind, &entry.data(&self.config.default_unicast));
        }
    }

    fn check_endpoint(&self, kind: EndpointKind, endpoint: &LocalEndpoint) -> Result<(), LocalEndpointError> {
        if self.is_closed {
            return Err(LocalEndpointError::Closed);
        }
        if kind_of(endpoint.entity) != Some(kind) {
            return Err(LocalEndpointError::WrongKind(endpoint.entity));
        }
        check_lengths([
            ("topic name", endpoint.topic.len(), NAME_MAX_BYTES),
            ("type name", endpoint.type_name.len(), NAME_MAX_BYTES),
        ])?;
        check_policy_lengths(&endpoint.qos, self.config.limits.user_data_bytes)?;
        let (what, max) = match kind {
            EndpointKind::Writer => ("writers", self.config.limits.writers),
            EndpointKind::Reader => ("readers", self.config.limits.readers),
        };
        let others =
            self.locals.iter().filter(|(entity, entry)| entry.kind == kind && **entity != endpoint.entity);
        if others.count() >= max { Err(LocalEndpointError::TooMany { what, max }) } else { Ok(()) }
    }
}

/// Refuses policies that are longer than peers would accept. `data_max`: the most bytes of user, topic or group data.
///
/// # Errors
/// [`LocalEndpointError::TooLong`], with the first one that is.
pub fn check_policy_lengths(qos: &Qos, data_max: usize) -> Result<(), LocalEndpointError> {
    let partitions: usize = qos.partition.iter().map(String::len).sum();
    check_lengths([
        ("list of partitions", partitions, PARTITIONS_MAX_BYTES),
        ("number of partitions", qos.partition.len(), PARTITIONS_MAX),
        ("user data", qos.user_data.len(), data_max),
        ("topic data", qos.topic_data.len(), data_max),
        ("group data", qos.group_data.len(), data_max),
    ])
}

fn check_lengths(
    lengths: impl IntoIterator<Item = (&'static str, usize, usize)>,
) -> Result<(), LocalEndpointError> {
    match lengths.into_iter().find(|(_, bytes, max)| bytes > max) {
        Some((what, bytes, max)) => Err(LocalEndpointError::TooLong { what, bytes, max }),
        None => Ok(()),
    }
}

/// Limits on what we announce, which older engines accept: names of 256 bytes (RTPS 2.5, 9.6.3.2, `string<256>`), ...
const NAME_MAX_BYTES: usize = 256;
/// ... so many partitions, ...
const PARTITIONS_MAX: usize = 64;
/// ... and so many bytes of their names.
const PARTITIONS_MAX_BYTES: usize = 4096;
