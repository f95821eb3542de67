//! Matches writers and readers of one topic, local with remote and local with local ones (DDS 1.4
//! §2.2.3, DDSI-RTPS 2.5 §8.5.4).

use weir_wire::{EntityId, Guid, GuidPrefix};

use super::ParticipantCore;
use super::local_endpoint::Pair;
use super::remote_participant::kind_of;
use crate::config;
use crate::discovery_event::{DiscoveryEvent, RemoteEndpoint};
use crate::qos::Qos;
use crate::qos_match;
use crate::sedp::EndpointKind;

/// The data that matching compares.
struct Side<'a> {
    entity: EntityId,
    topic: &'a str,
    type_name: &'a str,
    qos: &'a Qos,
}

impl ParticipantCore {
    /// Compares a local endpoint, new or changed, with all others.
    pub(super) fn match_local(&mut self, local: EntityId) {
        let Some(kind) = kind_of(local) else { return };
        let own = self.config.guid_prefix;
        let remote = self
            .remotes
            .iter()
            .flat_map(|(prefix, remote)| remote.endpoints.keys().map(|&entity| Guid::new(*prefix, entity)));
        let others: Vec<_> = remote
            .chain(self.locals.keys().map(|&entity| Guid::new(own, entity)))
            .filter(|guid| kind_of(guid.entity).is_some_and(|other| other != kind))
            .collect();
        for other in others {
            self.match_pair(local, other, false);
        }
    }

    /// Compares an endpoint, new or changed, with all local ones of the other kind. `is_changed`:
    /// existing matches are notified of its new data.
    pub(super) fn match_remote(&mut self, remote: Guid, is_changed: bool) {
        for local in self.locals_opposite(remote.entity) {
            self.match_pair(local, remote, is_changed);
        }
    }

    /// Notifies the matched local endpoints that an endpoint is gone.
    pub(super) fn unmatch_remote(&mut self, remote: Guid) {
        for local in self.locals_opposite(remote.entity) {
            self.set_pair(local, remote, None, None);
        }
    }

    /// Removes the matches of a local endpoint that is gone itself.
    pub(super) fn forget_pairs_of_local(&mut self, local: EntityId) {
        let first = (local, Guid::from_bytes([0; 16]));
        let last = (local, Guid::from_bytes([0xff; 16]));
        let pairs: Vec<_> = self.pairs.range(first..=last).map(|(pair, _)| *pair).collect();
        for pair in pairs {
            self.pairs.remove(&pair);
        }
    }

    fn locals_opposite(&self, entity: EntityId) -> Vec<EntityId> {
        let Some(kind) = kind_of(entity) else { return Vec::new() };
        self.locals.iter().filter(|(_, entry)| entry.kind() != kind).map(|(entity, _)| *entity).collect()
    }

    fn match_pair(&mut self, local: EntityId, remote: Guid, is_changed: bool) {
        let Some(ours) = self.locals.get(&local) else { return };
        let ours =
            Side { entity: local, topic: &ours.topic, type_name: &ours.type_name, qos: &ours.seen.qos };
        let Some((theirs, _)) = self.other_side(remote) else { return };
        let now = match kind_of(local) {
            Some(EndpointKind::Writer) => compare(&ours, &theirs),
            _ => compare(&theirs, &ours),
        };
        let before = self.pairs.get(&(local, remote)).copied();
        let is_new_match = now == Some(Pair::Matched) && before != now;
        let now = if is_new_match && !self.has_room_for_match(local, remote.prefix) { None } else { now };
        self.counters.matches_over_limit += u64::from(is_new_match && now.is_none());
        let Some((_, endpoint)) = self.other_side(remote) else { return };
        if now != before || (is_changed && now == Some(Pair::Matched)) {
            let endpoint = endpoint.clone();
            self.set_pair(local, remote, now, Some(endpoint));
        }
    }

    /// Returns whether a local endpoint has room for one more match with a participant.
    fn has_room_for_match(&self, local: EntityId, prefix: GuidPrefix) -> bool {
        let first = (local, Guid::new(prefix, EntityId([0; 4])));
        let last = (local, Guid::new(prefix, EntityId([0xff; 4])));
        let matched = |pair: &Pair| *pair == Pair::Matched;
        self.locals.get(&local).is_some_and(|entry| entry.matches < config::PROXIES_MAX)
            && self.pairs.range(first..=last).filter(|(_, pair)| matched(pair)).count()
                < config::PROXIES_PER_PARTICIPANT_MAX
    }

    /// Returns the data of an endpoint that may be a local one.
    fn other_side(&self, guid: Guid) -> Option<(Side<'_>, &RemoteEndpoint)> {
        let entity = guid.entity;
        if guid.prefix == self.config.guid_prefix {
            let entry = self.locals.get(&entity)?;
            let (topic, type_name) = (&entry.topic, &entry.type_name);
            return Some((Side { entity, topic, type_name, qos: &entry.seen.qos }, &entry.seen));
        }
        let entry = self.remotes.get(&guid.prefix)?.endpoints.get(&entity)?;
        let (topic, type_name) = (&entry.topic, &entry.type_name);
        Some((Side { entity, topic, type_name, qos: &entry.endpoint.qos }, &entry.endpoint))
    }

    /// Stores the relation of two endpoints and reports changes. `remote` is present whenever they
    /// match.
    fn set_pair(&mut self, local: EntityId, guid: Guid, now: Option<Pair>, remote: Option<RemoteEndpoint>) {
        let key = (local, guid);
        let before = match now {
            Some(pair) => self.pairs.insert(key, pair),
            None => self.pairs.remove(&key),
        };
        let is_writer = kind_of(local) == Some(EndpointKind::Writer);
        let was_matched = before == Some(Pair::Matched);
        if let Some(entry) = self.locals.get_mut(&local) {
            entry.matches += usize::from(now == Some(Pair::Matched));
            entry.matches -= usize::from(was_matched);
        }
        if was_matched && now != before {
            self.events.push_back(if is_writer {
                DiscoveryEvent::ReaderUnmatched { writer: local, reader: guid }
            } else {
                DiscoveryEvent::WriterUnmatched { reader: local, writer: guid }
            });
        }
        match (now, remote) {
            (Some(Pair::Incompatible(policy)), _) if now != before => self.events.push_back(if is_writer {
                DiscoveryEvent::OfferedIncompatibleQos { writer: local, reader: guid, policy }
            } else {
                DiscoveryEvent::RequestedIncompatibleQos { reader: local, writer: guid, policy }
            }),
            (Some(Pair::Matched), Some(remote)) => self.events.push_back(match (is_writer, was_matched) {
                (true, false) => DiscoveryEvent::ReaderMatched { writer: local, reader: remote },
                (true, true) => DiscoveryEvent::ReaderChanged { writer: local, reader: remote },
                (false, false) => DiscoveryEvent::WriterMatched { reader: local, writer: remote },
                (false, true) => DiscoveryEvent::WriterChanged { reader: local, writer: remote },
            }),
            _ => {}
        }
    }
}

/// `None`: they are unrelated, which is not reported.
fn compare(writer: &Side<'_>, reader: &Side<'_>) -> Option<Pair> {
    let is_same_topic = writer.topic == reader.topic
        && writer.type_name == reader.type_name
        && writer.entity.is_keyed() == reader.entity.is_keyed()
        && qos_match::partitions_match(&writer.qos.partition, &reader.qos.partition);
    is_same_topic.then(|| match qos_match::check(writer.qos, reader.qos) {
        Ok(()) => Pair::Matched,
        Err(policy) => Pair::Incompatible(policy),
    })
}
