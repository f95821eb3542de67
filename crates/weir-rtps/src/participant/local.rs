//! The local endpoints: announced to and matched with all participants.

use core::net::SocketAddrV4;
use std::sync::Arc;

use weir_wire::{EntityId, Guid};

use super::ParticipantCore;
use super::liveliness;
use super::remote::kind_of;
use crate::discovery_data::Locators;
use crate::discovery_event::RemoteEndpoint;
use crate::liveliness::Lease;
use crate::qos::Qos;
use crate::sedp::{EndpointData, EndpointKind};
use crate::time::Time;
use crate::writer::WriteRefused;

/// A writer or reader of this participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalEndpoint {
    /// Its id within the participant, which includes whether it writes or reads and whether its
    /// topic has a key.
    pub entity: EntityId,
    /// The topic's name.
    pub topic: String,
    /// The name of the topic's type.
    pub type_name: String,
    /// Its offered or requested policies.
    pub qos: Qos,
    /// Its addresses; empty: the participant's default ones.
    pub unicast: Vec<SocketAddrV4>,
    /// The multicast group that a reader also joins.
    pub multicast: Option<SocketAddrV4>,
}

/// The reason why an endpoint cannot be announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocalEndpointError {
    /// The entity id is not of the call's kind.
    #[error("entity id {0:?} is not that of an application endpoint of this kind")]
    WrongKind(EntityId),
    /// A name is longer than peers would accept.
    #[error("the {what} is {bytes} bytes long: shorten it to at most {max}")]
    TooLong {
        /// The text.
        what: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The maximum length in bytes.
        max: usize,
    },
    /// There is no address for samples or acknowledgements.
    #[error("neither the endpoint nor its participant has a unicast address: give one of them an address")]
    NoAddress,
    /// The participant is closed.
    #[error("the participant is closed")]
    Closed,
    /// There are too many endpoints.
    #[error("the endpoint cannot be announced: {0}")]
    NotAnnounced(#[from] WriteRefused),
}

/// The state of a local endpoint.
#[derive(Debug)]
pub(super) struct LocalEntry {
    pub(super) topic: String,
    pub(super) type_name: String,
    unicast: Vec<SocketAddrV4>,
    multicast: Option<SocketAddrV4>,
    kind: EndpointKind,
    /// Number of matched endpoints.
    pub(super) matches: usize,
    /// For a writer whose liveliness the application asserts.
    pub(super) lease: Option<Lease>,
    /// The endpoint as seen by others, which may be in this participant.
    pub(super) seen: RemoteEndpoint,
}

impl LocalEntry {
    pub(super) fn kind(&self) -> EndpointKind {
        self.kind
    }

    pub(super) fn guid(&self) -> Guid {
        self.seen.guid
    }

    /// Returns the endpoint's announcement.
    fn data(&self) -> EndpointData {
        let seen = &self.seen;
        EndpointData {
            guid: seen.guid,
            topic: self.topic.clone(),
            type_name: self.type_name.clone(),
            qos: seen.qos.clone(),
            unicast: Locators { addresses: self.unicast.clone(), skipped: 0 },
            multicast: Locators { addresses: self.multicast.into_iter().collect(), skipped: 0 },
            expects_inline_qos: false,
            receive_buffer: seen.receive_buffer.filter(|_| self.kind == EndpointKind::Reader),
        }
    }
}

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

    /// Removes a writer and announces that. It has no further events, only its readers here have.
    pub fn remove_writer(&mut self, now: Time, writer: EntityId) {
        self.remove_endpoint(now, EndpointKind::Writer, writer);
    }

    /// Removes a reader and announces that. It has no further events, only its writers here have.
    pub fn remove_reader(&mut self, now: Time, reader: EntityId) {
        self.remove_endpoint(now, EndpointKind::Reader, reader);
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
        let addresses =
            if endpoint.unicast.is_empty() { &self.config.default_unicast } else { &endpoint.unicast }
                .clone();
        // All our own addresses lead here; loopback, if used, is the shortest path.
        let own = addresses.iter().copied().min_by_key(|address| !address.ip().is_loopback());
        let own = own.ok_or(LocalEndpointError::NoAddress)?;
        let destinations = Arc::from([own]);
        let group = self.reachability.group_route(*own.ip(), endpoint.multicast.as_slice());
        // Peers consider an endpoint's own addresses complete.
        let unicast = if endpoint.multicast.is_some() { addresses } else { endpoint.unicast };
        let data = EndpointData {
            guid,
            topic: endpoint.topic,
            type_name: endpoint.type_name,
            qos: endpoint.qos,
            unicast: Locators { addresses: unicast, skipped: 0 },
            multicast: Locators { addresses: endpoint.multicast.into_iter().collect(), skipped: 0 },
            expects_inline_qos: false,
            receive_buffer: receive_buffer.filter(|_| kind == EndpointKind::Reader),
        };
        self.builtin.announce(now, kind, &data)?;
        let lease = liveliness::manual_lease(now, kind, &data.qos);
        let vendor = self.config.vendor;
        let seen = RemoteEndpoint {
            guid,
            vendor,
            qos: data.qos,
            destinations,
            group,
            receive_buffer,
            delimits_keys: true,
        };
        let entry = LocalEntry {
            topic: data.topic,
            type_name: data.type_name,
            unicast: data.unicast.addresses,
            multicast: endpoint.multicast,
            kind,
            lease,
            matches: self.locals.get(&entity).map_or(0, |entry| entry.matches),
            seen,
        };
        let is_known = self.locals.insert(entity, entry).is_some();
        self.writers_changed(now);
        self.match_local(entity);
        self.match_remote(guid, is_known);
        Ok(())
    }

    fn remove_endpoint(&mut self, now: Time, kind: EndpointKind, entity: EntityId) {
        if self.locals.get(&entity).is_none_or(|entry| entry.kind != kind) {
            return;
        }
        self.locals.remove(&entity);
        self.writers_changed(now);
        let guid = Guid::new(self.config.guid_prefix, entity);
        self.builtin.dispose(now, kind, guid);
        self.announce_anew(now, kind);
        self.forget_pairs_of_local(entity);
        self.unmatch_remote(guid);
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
            let _never_refused = self.builtin.announce(now, kind, &entry.data());
        }
    }

    fn check_endpoint(&self, kind: EndpointKind, endpoint: &LocalEndpoint) -> Result<(), LocalEndpointError> {
        if self.is_closed {
            return Err(LocalEndpointError::Closed);
        }
        if kind_of(endpoint.entity) != Some(kind) {
            return Err(LocalEndpointError::WrongKind(endpoint.entity));
        }
        let limits = &self.config.limits;
        let partitions: usize = endpoint.qos.partition.iter().map(String::len).sum();
        for (what, bytes, max) in [
            ("topic name", endpoint.topic.len(), limits.name_bytes),
            ("type name", endpoint.type_name.len(), limits.name_bytes),
            ("list of partitions", partitions, limits.partition_bytes),
            ("number of partitions", endpoint.qos.partition.len(), limits.partitions),
            ("user data", endpoint.qos.user_data.len(), limits.user_data_bytes),
        ] {
            if bytes > max {
                return Err(LocalEndpointError::TooLong { what, bytes, max });
            }
        }
        Ok(())
    }
}
