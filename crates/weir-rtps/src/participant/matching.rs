//! Matches writers and readers of one topic, local with remote and local with local ones (DDS 1.4,
//! 2.2.3; RTPS 2.5, 8.5.4).

use alloc::vec::Vec;
use core::ops::Bound;

use weir_wire::{EntityId, Guid, GuidPrefix};

use super::ParticipantCore;
use super::local_endpoint::{LocalEntry, Pair};
use super::news::{Change, PairKey};
use super::remote_participant::{RemoteEntry, kind_of};
use super::shared::Name;
use crate::discovery_event::{DiscoveryEvent, RemoteEndpoint, TypeDifference};
use crate::qos::Qos;
use crate::qos_match;
use crate::sedp::EndpointKind;

/// The data that matching compares.
struct Side<'a> {
    entity: EntityId,
    topic: &'a str,
    type_name: &'a Name,
    qos: &'a Qos,
}

impl ParticipantCore {
    /// Compares a local endpoint, new or changed, with all others.
    pub(super) fn match_local(&mut self, local: EntityId) {
        let Some(kind) = kind_of(local) else { return };
        let Some(ours) = self.locals.get(&local) else { return };
        let (own, topic) = (self.config.guid_prefix, &*ours.topic);
        let remote = self.remotes.iter().flat_map(|(prefix, remote)| {
            let of_topic = remote.endpoints.iter().filter(|(_, entry)| entry.topic.as_str() == topic);
            of_topic.map(|(&entity, _)| Guid::new(*prefix, entity))
        });
        let locals = self.locals.iter().filter(|(_, entry)| entry.topic == topic);
        // Those with which it was related as one of another topic.
        let is_of_topic = |guid: &Guid| self.other_side(*guid).is_some_and(|side| side.topic == topic);
        let former = self.news.related(local).filter(|guid| !is_of_topic(guid));
        let others: Vec<_> = remote
            .chain(locals.map(|(&entity, _)| Guid::new(own, entity)))
            .filter(|guid| kind_of(guid.entity).is_some_and(|other| other != kind))
            .chain(former)
            .collect();
        let mut has_ended = false;
        for other in others {
            has_ended |= self.match_pair(local, other, false);
        }
        if has_ended {
            self.match_refused(local);
        }
    }

    /// Compares an endpoint, new or changed, with all local ones of the other kind. `is_changed`:
    /// existing matches are notified of its new data.
    pub(super) fn match_remote(&mut self, remote: Guid, is_changed: bool) {
        if !is_changed {
            // One that is new cannot match endpoints of other topics now, and did not before.
            for place in 0.. {
                let Some(theirs) = self.other_side(remote) else { return };
                let of_topic = self.local_topics.get(theirs.topic);
                let Some(local) = of_topic.and_then(|locals| locals.get(place)).copied() else { return };
                if is_opposite(local, remote.entity) {
                    self.match_pair(local, remote, false);
                }
            }
        }
        let mut next = self.local_opposite(remote.entity, Bound::Unbounded);
        while let Some(local) = next {
            if self.match_pair(local, remote, is_changed) {
                self.match_refused(local);
            }
            next = self.local_opposite(remote.entity, Bound::Excluded(local));
        }
    }

    /// Notifies the matched local endpoints that an endpoint is gone.
    pub(super) fn unmatch_remote(&mut self, remote: Guid) {
        let mut next = self.local_opposite(remote.entity, Bound::Unbounded);
        while let Some(local) = next {
            let is_related = self.news.relation((local, remote)).is_some();
            if is_related && self.set_pair(local, remote, None, false) {
                self.match_refused(local);
            }
            next = self.local_opposite(remote.entity, Bound::Excluded(local));
        }
    }

    /// Returns the next local endpoint, from a bound on, of the other kind than `entity`.
    fn local_opposite(&self, entity: EntityId, from: Bound<EntityId>) -> Option<EntityId> {
        let mut locals = self.locals.range((from, Bound::Unbounded)).map(|(local, _)| *local);
        locals.find(|local| is_opposite(*local, entity))
    }

    /// Looks for one that found no room for a match with a local endpoint, one match of which has ended.
    fn match_refused(&mut self, local: EntityId) {
        let most = self.config.limits.matches;
        let may_match = |ours: &&mut LocalEntry| ours.has_refused && ours.matches < most;
        let Some(ours) = self.locals.get_mut(&local).filter(may_match) else { return };
        ours.has_refused = false;
        // Those that are refused again were counted before.
        let over_limit = self.counters.matches_over_limit;
        if self.match_one_of(local) {
            // Others may still wait.
            self.locals.get_mut(&local).into_iter().for_each(|ours| ours.has_refused = true);
        }
        self.counters.matches_over_limit = over_limit;
    }

    /// Matches a local endpoint with one more, if there is one. Returns whether there was.
    fn match_one_of(&mut self, local: EntityId) -> bool {
        let matches = |core: &Self| core.locals.get(&local).map_or(0, |ours| ours.matches);
        let before = matches(self);
        let mut last = None;
        while let Some(other) = self.next_of_topic(local, last) {
            self.match_pair(local, other, false);
            if matches(self) > before {
                return true;
            }
            // The others of a participant without room need not be compared.
            let has_room = self.has_room_for_match(local, other.prefix);
            last = Some(if has_room { other } else { Guid::new(other.prefix, EntityId([u8::MAX; 4])) });
        }
        let mut next = self.local_opposite(local, Bound::Unbounded);
        while let Some(other) = next {
            self.match_pair(local, Guid::new(self.config.guid_prefix, other), false);
            if matches(self) > before {
                return true;
            }
            next = self.local_opposite(local, Bound::Excluded(other));
        }
        false
    }

    /// Returns the next remote endpoint of the topic of a local one, and of the other kind, behind `last`. `None` as
    /// well if the local one has no room for matches.
    fn next_of_topic(&self, local: EntityId, last: Option<Guid>) -> Option<Guid> {
        let ours = self.locals.get(&local).filter(|ours| ours.matches < self.config.limits.matches)?;
        let from = last.map_or(Bound::Unbounded, |last| Bound::Included(last.prefix));
        self.remotes.range((from, Bound::Unbounded)).find_map(|(prefix, remote)| {
            let last = last.filter(|last| last.prefix == *prefix);
            let from = last.map_or(Bound::Unbounded, |last| Bound::Excluded(last.entity));
            let mut others = remote.endpoints.range((from, Bound::Unbounded));
            let is_of_topic = |entry: &RemoteEntry| entry.topic.as_str() == ours.topic;
            let other = others.find(|(entity, entry)| is_opposite(local, **entity) && is_of_topic(entry));
            other.map(|(entity, _)| Guid::new(*prefix, *entity))
        })
    }

    /// Compares two endpoints. Returns whether a match of them has ended.
    fn match_pair(&mut self, local: EntityId, remote: Guid, is_changed: bool) -> bool {
        let Some(ours) = self.locals.get(&local) else { return false };
        let ours =
            Side { entity: local, topic: &ours.topic, type_name: &ours.type_name, qos: &ours.seen.qos };
        if self.remotes.get(&remote.prefix).is_some_and(|participant| !participant.has_answered) {
            return false;
        }
        let Some(theirs) = self.other_side(remote) else { return false };
        let own = Guid::new(self.config.guid_prefix, local);
        let now = match kind_of(local) {
            _ if self.ignored.separates(own, remote, theirs.topic) => None,
            Some(EndpointKind::Writer) => compare(&ours, &theirs),
            _ => compare(&theirs, &ours),
        };
        let before = self.news.relation((local, remote));
        let is_new_match = now == Some(Pair::Matched) && before != now;
        let is_refused = is_new_match && !self.has_room_for_match(local, remote.prefix);
        let now = now.filter(|_| !is_refused);
        if is_refused {
            self.counters.matches_over_limit += 1;
            self.locals.get_mut(&local).into_iter().for_each(|ours| ours.has_refused = true);
        }
        (now != before || is_changed) && self.set_pair(local, remote, now, is_changed)
    }

    /// Returns whether a local endpoint has room for one more match with a participant.
    fn has_room_for_match(&self, local: EntityId, prefix: GuidPrefix) -> bool {
        let limits = &self.config.limits;
        // With one participant, it has no more than with all.
        let has_room = |matches: usize| {
            matches < limits.matches_per_participant
                || self.news.matches_with(local, prefix) < limits.matches_per_participant
        };
        let known = self.locals.get(&local).filter(|entry| entry.matches < limits.matches);
        known.is_some_and(|entry| has_room(entry.matches))
    }

    /// Returns the data of an endpoint that may be a local one.
    fn other_side(&self, guid: Guid) -> Option<Side<'_>> {
        let entity = guid.entity;
        if guid.prefix == self.config.guid_prefix {
            let entry = self.locals.get(&entity)?;
            let (topic, type_name) = (&entry.topic, &entry.type_name);
            return Some(Side { entity, topic, type_name, qos: &entry.seen.qos });
        }
        let entry = self.remotes.get(&guid.prefix)?.endpoints.get(&entity)?;
        let (topic, type_name) = (&entry.topic, &entry.type_name);
        Some(Side { entity, topic, type_name, qos: &entry.qos })
    }

    /// Returns what a local endpoint that matches it needs to know.
    fn endpoint(&self, guid: Guid) -> Option<RemoteEndpoint> {
        if guid.prefix == self.config.guid_prefix {
            return Some(self.locals.get(&guid.entity)?.seen.clone());
        }
        let remote = self.remotes.get(&guid.prefix)?;
        Some(remote.endpoints.get(&guid.entity)?.endpoint(guid, remote.answer_time))
    }

    /// Stores the relation of two endpoints. `is_changed`: the data of the remote one are new. Returns whether a match
    /// has ended.
    fn set_pair(&mut self, local: EntityId, remote: Guid, now: Option<Pair>, is_changed: bool) -> bool {
        let key = (local, remote);
        let was_matched = self.news.relation(key) == Some(Pair::Matched);
        if let Some(entry) = self.locals.get_mut(&local) {
            entry.matches += usize::from(now == Some(Pair::Matched));
            entry.matches -= usize::from(was_matched);
        }
        self.news.set(key, now, is_changed);
        was_matched && now != Some(Pair::Matched)
    }

    /// Returns the event for a change of a pair, with the data that it has now.
    pub(super) fn pair_event(&self, (local, guid): PairKey, change: Change) -> Option<DiscoveryEvent> {
        let is_writer = kind_of(local) == Some(EndpointKind::Writer);
        let remote = || self.endpoint(guid);
        Some(match (change, is_writer) {
            (Change::Matched, true) => DiscoveryEvent::ReaderMatched { writer: local, reader: remote()? },
            (Change::Matched, false) => DiscoveryEvent::WriterMatched { reader: local, writer: remote()? },
            (Change::Changed, true) => DiscoveryEvent::ReaderChanged { writer: local, reader: remote()? },
            (Change::Changed, false) => DiscoveryEvent::WriterChanged { reader: local, writer: remote()? },
            (Change::Unmatched, true) => DiscoveryEvent::ReaderUnmatched { writer: local, reader: guid },
            (Change::Unmatched, false) => DiscoveryEvent::WriterUnmatched { reader: local, writer: guid },
            (Change::Incompatible(policies), true) => {
                DiscoveryEvent::OfferedIncompatibleQos { writer: local, reader: guid, policies }
            }
            (Change::Incompatible(policies), false) => {
                DiscoveryEvent::RequestedIncompatibleQos { reader: local, writer: guid, policies }
            }
            (Change::Inconsistent(difference), _) => {
                let type_name = Name::clone(self.other_side(guid)?.type_name);
                DiscoveryEvent::InconsistentTopic { local, other: guid, type_name, difference }
            }
        })
    }
}

/// Returns whether one is a writer and the other a reader.
fn is_opposite(local: EntityId, other: EntityId) -> bool {
    matches!(
        (kind_of(local), kind_of(other)),
        (Some(EndpointKind::Writer), Some(EndpointKind::Reader))
            | (Some(EndpointKind::Reader), Some(EndpointKind::Writer))
    )
}

/// `None`: they are unrelated, which is not reported.
///
/// Types are compared by what every engine announces: their names, and whether they have a key.
fn compare(writer: &Side<'_>, reader: &Side<'_>) -> Option<Pair> {
    if writer.topic != reader.topic {
        return None;
    }
    if writer.type_name != reader.type_name {
        return Some(Pair::Inconsistent(TypeDifference::Name));
    }
    if writer.entity.is_keyed() != reader.entity.is_keyed() {
        return Some(Pair::Inconsistent(TypeDifference::Key));
    }
    let is_related = qos_match::partitions_match(&writer.qos.partition, &reader.qos.partition);
    is_related.then(|| match qos_match::check(writer.qos, reader.qos) {
        Ok(()) => Pair::Matched,
        Err(policies) => Pair::Incompatible(policies),
    })
}
