//! Participants, endpoints and topics that the application ignores (DDS 1.4, 2.2.2.2.1.14 to 2.2.2.2.1.17).

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use weir_wire::{EntityId, Guid, GuidPrefix};

use super::ParticipantCore;
use crate::config;
use crate::time::Time;

/// What the application ignores.
#[derive(Debug, Default)]
pub(super) struct Ignored {
    participants: BTreeSet<GuidPrefix>,
    endpoints: BTreeSet<Guid>,
    topics: BTreeSet<String>,
}

impl Ignored {
    /// Returns whether a participant is ignored.
    pub(super) fn has_participant(&self, prefix: GuidPrefix) -> bool {
        self.participants.contains(&prefix)
    }

    /// Returns whether two endpoints must not match: a local one, and another one of a topic.
    pub(super) fn separates(&self, local: Guid, other: Guid, topic: &str) -> bool {
        let is_own = local.prefix == other.prefix;
        self.participants.contains(&other.prefix)
            || self.endpoints.contains(&other)
            || (is_own && self.endpoints.contains(&local))
            || (!is_own && self.topics.contains(topic))
    }

    fn len(&self) -> usize {
        self.participants.len() + self.endpoints.len() + self.topics.len()
    }
}

impl ParticipantCore {
    /// Ignores a participant from now on, and ends the matches with its endpoints. The own one: the matches among its
    /// endpoints. Returns `false` if too much is ignored.
    pub fn ignore_participant(&mut self, now: Time, prefix: GuidPrefix) -> bool {
        let has_room = self.ignored.len() < config::IGNORED_MAX;
        if has_room && self.ignored.participants.insert(prefix) {
            self.participant_lost(now, prefix);
            if prefix == self.config.guid_prefix {
                self.match_all(|_| true);
            }
        }
        has_room
    }

    /// Ignores a writer or reader from now on, and ends its matches. Returns `false` if too much is ignored.
    pub fn ignore_endpoint(&mut self, guid: Guid) -> bool {
        let has_room = self.ignored.len() < config::IGNORED_MAX;
        if has_room && self.ignored.endpoints.insert(guid) {
            self.match_remote(guid, false);
            if guid.prefix == self.config.guid_prefix {
                self.match_local(guid.entity);
            }
            self.observe(guid);
        }
        has_room
    }

    /// Ignores the endpoints of other participants with this topic from now on, and ends the matches with them. Returns
    /// `false` if too much is ignored.
    pub fn ignore_topic(&mut self, topic: &str) -> bool {
        let has_room = self.ignored.len() < config::IGNORED_MAX;
        if has_room && self.ignored.topics.insert(topic.to_owned()) {
            self.match_all(|other| other == topic);
            let entities = self.remotes.iter().flat_map(|(prefix, remote)| {
                let of_topic = remote.endpoints.iter().filter(|(_, entry)| entry.topic.as_str() == topic);
                of_topic.map(|(entity, _)| Guid::new(*prefix, *entity))
            });
            entities.collect::<Vec<_>>().into_iter().for_each(|guid| self.observe(guid));
        }
        has_room
    }

    /// Returns whether the application ignores an endpoint of another participant.
    pub(super) fn is_ignored(&self, guid: Guid, topic: &str) -> bool {
        self.ignored.separates(Guid::new(self.config.guid_prefix, EntityId::UNKNOWN), guid, topic)
    }

    fn match_all(&mut self, is_concerned: impl Fn(&str) -> bool) {
        let concerned = self.locals.iter().filter(|(_, entry)| is_concerned(&entry.topic));
        for local in concerned.map(|(entity, _)| *entity).collect::<Vec<_>>() {
            self.match_local(local);
        }
    }
}
