//! Adds the endpoints of peers that are known beforehand, and compares them with what the peers announce.

use alloc::sync::Arc;
use alloc::vec::Vec;

use weir_wire::{EntityId, Guid, GuidPrefix};

use super::ParticipantCore;
use super::remote_participant::{RemoteParticipant, answers, kind_of};
use crate::discovery_data::Locators;
use crate::sedp::EndpointData;
use crate::spdp::ParticipantData;
use crate::static_peers::{StaticDifference, StaticPeer};
use crate::time::Time;

/// Differences that are kept. More are only counted.
const DIFFERENCES_MAX: usize = 64;

impl ParticipantCore {
    /// Returns the latest differences between what peers announce and what was known of them beforehand.
    #[must_use]
    pub fn static_differences(&self) -> &[StaticDifference] {
        &self.static_differences
    }

    /// Returns what is known beforehand of a participant.
    fn static_peer(&self, data: &ParticipantData) -> Option<&StaticPeer> {
        self.config.static_peers.get(data.entity_name.as_ref()?)
    }

    /// Returns whether an announcement may be used. A peer known beforehand that has no SEDP never shows that it
    /// receives what is sent to it, so its addresses have to be known, too. Once it is believed, it may not become one
    /// that need not be known: everything that is sent to it would go where it says then.
    pub(super) fn may_be_believed(&self, data: &ParticipantData) -> bool {
        let is_unproven = || self.remotes.get(&data.prefix).is_some_and(RemoteParticipant::is_unproven);
        if answers(data) {
            return !is_unproven();
        }
        let Some(peer) = self.static_peer(data) else { return !is_unproven() };
        let mut named = data.metatraffic_unicast.addresses.iter().chain(&data.default_unicast.addresses);
        named.all(|to| peer.hosts.contains(to.ip()) || self.reachability.is_on_this_host(*to.ip()))
            && self.has_room_for_namesake(data)
    }

    /// Returns whether there are few other peers of this name without SEDP: anyone can announce one.
    fn has_room_for_namesake(&self, data: &ParticipantData) -> bool {
        let is_namesake = |remote: &&RemoteParticipant| {
            remote.is_unproven()
                && remote.data.entity_name == data.entity_name
                && remote.data.prefix != data.prefix
        };
        self.remotes.values().filter(is_namesake).count() < NAMESAKES_MAX
    }

    /// Adds the endpoints that are known beforehand of a participant that was discovered, or has another name.
    pub(super) fn add_static_endpoints(&mut self, now: Time, prefix: GuidPrefix) {
        let Some(remote) = self.remotes.get(&prefix) else { return };
        let (answers, has_answered) = (answers(&remote.data), remote.has_answered);
        if answers && !remote.is_introduced {
            // They are added when it is introduced, so that a flood of announcements adds few.
            return;
        }
        let peers = Arc::clone(&self.config.static_peers);
        let Some(peer) = remote.data.entity_name.as_ref().and_then(|name| peers.get(name)) else { return };
        for known in &peer.endpoints {
            if self.remotes.get(&prefix).is_none_or(|remote| remote.endpoints.contains_key(&known.entity)) {
                continue;
            }
            let data = EndpointData {
                guid: Guid::new(prefix, known.entity),
                topic: known.topic.clone(),
                type_name: known.type_name.clone(),
                qos: known.qos.as_ref().clone(),
                unicast: Locators::default(),
                multicast: Locators::default(),
                content_filter: None,
                expects_inline_qos: false,
                receive_buffer: None,
            };
            self.endpoint_known(prefix, &data, true);
        }
        if !answers && !has_answered {
            self.participant_answers(now, prefix);
        }
    }

    /// Removes the endpoints known by another name, but for those that the participant has announced.
    pub(super) fn remove_static_endpoints(&mut self, prefix: GuidPrefix) {
        let Some(remote) = self.remotes.get(&prefix) else { return };
        let known = remote.endpoints.iter().filter(|(_, entry)| entry.common.is_static);
        let known: Vec<_> = known.map(|(entity, _)| Guid::new(prefix, *entity)).collect();
        known.into_iter().for_each(|guid| self.endpoint_lost(guid));
    }

    /// Compares an announcement with what is known of the endpoint beforehand.
    pub(super) fn compare_with_static(&mut self, prefix: GuidPrefix, data: &EndpointData) {
        let entity = data.guid.entity;
        let Some(remote) = self.remotes.get(&prefix) else { return };
        let has_same_key =
            |other: &EntityId| other.0[..3] == entity.0[..3] && kind_of(*other) == kind_of(entity);
        let known =
            remote.endpoints.iter().find(|(other, entry)| entry.common.is_static && has_same_key(other));
        let Some((known_as, entry)) = known else { return };
        let known_as = *known_as;
        let known = (known_as, entry.topic.as_str(), entry.type_name.as_str(), &*entry.qos);
        let announced = (&*data.topic, &*data.type_name, &data.qos);
        let Some(difference) = StaticDifference::between(data.guid, known, announced) else { return };
        self.counters.static_differences += 1;
        if self.static_differences.len() >= DIFFERENCES_MAX {
            self.static_differences.remove(0);
        }
        self.static_differences.push(difference);
        if difference.key {
            // There is no such endpoint.
            self.endpoint_lost(Guid::new(prefix, known_as));
        }
    }
}

/// Peers of one name without SEDP: one that restarts often has several until their leases end.
const NAMESAKES_MAX: usize = 4;
