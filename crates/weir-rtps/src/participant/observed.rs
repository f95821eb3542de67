//! What is known of other participants and their endpoints, for the application; and what changed.
//!
//! While it is observed, each entity that changes is noted once until it is taken: the application sees its newest
//! state.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use weir_wire::{EntityId, Guid, GuidPrefix};

use super::ParticipantCore;
use super::remote_participant::kind_of;
use crate::discovery_data::Locators;
use crate::qos::Qos;
use crate::sedp::{EndpointData, EndpointKind};
use crate::spdp::ParticipantData;

impl ParticipantCore {
    /// Notes changes of other participants and their endpoints from now on, or ceases to. At first, all that is known
    /// has changed.
    pub fn set_observed(&mut self, is_observed: bool) {
        self.observed = is_observed.then(|| {
            let participants =
                self.discovered_participants().map(|prefix| Guid::new(prefix, EntityId::PARTICIPANT));
            let endpoints = self.remotes.iter().flat_map(|(prefix, remote)| {
                remote.endpoints.keys().map(|entity| Guid::new(*prefix, *entity))
            });
            participants.chain(endpoints).collect()
        });
    }

    /// Returns whether changes are noted.
    #[must_use]
    pub fn is_observed(&self) -> bool {
        self.observed.is_some()
    }

    /// Takes the participants and endpoints that were found, have changed or are gone, participants first.
    pub fn take_observed(&mut self) -> impl Iterator<Item = Guid> {
        let observed: BTreeSet<_> = self.observed.as_mut().map(core::mem::take).unwrap_or_default();
        let (participants, endpoints): (Vec<_>, Vec<_>) =
            observed.into_iter().partition(|guid| guid.entity == EntityId::PARTICIPANT);
        participants.into_iter().chain(endpoints)
    }

    /// Notes that an entity was found, has changed or is gone.
    pub(super) fn observe(&mut self, guid: Guid) {
        if let Some(observed) = &mut self.observed {
            observed.insert(guid);
        }
    }

    /// Returns the other participants that are known.
    pub fn discovered_participants(&self) -> impl Iterator<Item = GuidPrefix> + '_ {
        self.remotes.keys().copied()
    }

    /// Returns what another participant has announced.
    #[must_use]
    pub fn participant_data(&self, prefix: GuidPrefix) -> Option<&ParticipantData> {
        self.remotes.get(&prefix).map(|remote| &remote.data.data)
    }

    /// Returns what an endpoint of another participant has announced, with its kind. `None`: it is not known, or the
    /// application ignores it.
    #[must_use]
    pub fn discovered_endpoint(&self, guid: Guid) -> Option<(EndpointKind, EndpointData)> {
        let entry = self.remotes.get(&guid.prefix)?.endpoints.get(&guid.entity)?;
        if self.is_ignored(guid, &entry.topic) {
            return None;
        }
        let locators = |addresses: &[_]| Locators { addresses: addresses.to_vec(), skipped: 0 };
        let data = EndpointData {
            guid,
            topic: String::clone(&entry.topic),
            type_name: String::clone(&entry.type_name),
            qos: Qos::clone(&entry.qos),
            unicast: locators(&entry.common.unicast),
            multicast: locators(&entry.common.multicast),
            expects_inline_qos: entry.common.expects_inline_qos,
            receive_buffer: None,
            content_filter: entry.common.content_filter.clone(),
        };
        Some((kind_of(guid.entity)?, data))
    }

    /// Returns whether an endpoint of another participant, which the application does not ignore, has a topic and a
    /// type of these names.
    #[must_use]
    pub fn has_discovered_topic(&self, topic: &str, type_name: &str) -> bool {
        self.remotes.iter().any(|(prefix, remote)| {
            remote.endpoints.iter().any(|(entity, entry)| {
                (entry.topic.as_str(), entry.type_name.as_str()) == (topic, type_name)
                    && !self.is_ignored(Guid::new(*prefix, *entity), topic)
            })
        })
    }

    /// Returns the announcement of an endpoint, with its kind: of another participant or of this one.
    #[must_use]
    pub fn endpoint_data(&self, guid: Guid) -> Option<(EndpointKind, EndpointData)> {
        if guid.prefix != self.config.guid_prefix {
            return self.discovered_endpoint(guid);
        }
        let entry = self.locals.get(&guid.entity)?;
        Some((entry.kind(), entry.data(&self.config.default_unicast)))
    }
}
