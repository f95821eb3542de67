//! Remote participants and their endpoints, and their leases (RTPS 2.5, 8.5.3.2, 8.5.5).

use alloc::sync::Arc;
use core::net::Ipv4Addr;
use core::ops::Bound::{Excluded, Unbounded};
use core::time::Duration;

use weir_wire::{EntityId, Guid, GuidPrefix, VendorId};

use super::ParticipantCore;
use super::claim::{Announcement, Claims, What};
use super::remote_participant::{Common, RemoteEntry, RemoteParticipant, Traits};
use super::reserve::{Announced, RemoteLists};
use crate::config;
use crate::discovery_event::DiscoveryEvent;
use crate::sedp::EndpointData;
use crate::time::Time;

impl ParticipantCore {
    /// Handles an announcement. `is_directed`: it was sent to us directly.
    pub(super) fn participant_announced(
        &mut self,
        now: Time,
        from: Ipv4Addr,
        data: Arc<Announced>,
        is_directed: bool,
    ) {
        let prefix = data.prefix;
        if self.ignored.has_participant(prefix) {
            self.counters.ignored_announcements += 1;
            return;
        }
        if !self.may_be_believed(&data) {
            self.counters.static_peers_refused += 1;
            return;
        }
        let skipped =
            data.metatraffic_unicast.skipped + data.default_unicast.skipped + data.default_multicast.skipped;
        let Some(remote) = self.remotes.get(&prefix) else {
            self.counters.locators_skipped += u64::from(skipped);
            return self.participant_discovered(now, from, data, is_directed);
        };
        if !remote.is_introduced {
            self.introduce(now, prefix, is_directed);
            self.add_static_endpoints(now, prefix);
        }
        let Some(remote) = self.remotes.get_mut(&prefix) else { return };
        let is_home = remote.heard_from(now, from);
        remote.knows_us |= is_directed;
        self.builtin.prompt_participant(now, prefix);
        if !remote.has_answered {
            self.answer_again(now, prefix);
        }
        let Some(remote) = self.remotes.get_mut(&prefix) else { return };
        let is_known = Arc::ptr_eq(&remote.data, &data);
        if !is_known && remote.data != data {
            self.counters.locators_skipped += u64::from(skipped);
            return self.participant_differs(now, from, data, is_home);
        }
        if !is_known {
            // The same in other bytes, by which it is known from now on.
            remote.data = data;
        }
        // A change that waits was taken back.
        remote.held = None;
        // A participant sends to us directly when we are new to it, and some engines do so periodically. If we have
        // known it for a while, it may have lost us and all our data: its acknowledgements say so, and restart the
        // exchange.
        if is_directed && now.since(remote.asked_at) > INTRODUCTION_TIME {
            remote.asked_at = now;
            self.builtin.ask_for_position(prefix);
        }
        if remote.has_moved_to(now, from) {
            self.paths_changed(now, prefix);
        }
    }

    /// Handles an announcement that differs from what is known.
    fn participant_differs(&mut self, now: Time, from: Ipv4Addr, data: Arc<Announced>, is_home: bool) {
        let prefix = data.prefix;
        let Some(remote) = self.remotes.get_mut(&prefix) else { return };
        if remote.is_beside(from, &data) {
            return self.heard_beside(now, prefix);
        }
        let there = Announcement { from, data };
        // Nothing is known for certain of a participant that has not answered, so nothing is lost by a change.
        if !is_home && remote.has_answered {
            return self.claimed(now, prefix, from, What::Moved(there));
        }
        if now >= remote.may_change_at() {
            return self.participant_changed(now, from, there.data);
        }
        self.counters.changes_held_back += 1;
        let at = remote.may_change_at();
        remote.held = Some(there);
        self.deadlines.look_by(prefix, &mut remote.due_at, at);
    }

    fn participant_discovered(&mut self, now: Time, from: Ipv4Addr, data: Arc<Announced>, is_directed: bool) {
        let Some(address) = self.reachability.choose(&data.metatraffic_unicast.addresses, from) else {
            self.counters.unreachable += 1;
            return;
        };
        if !self.make_room(now) {
            self.counters.participants_over_limit += 1;
            return;
        }
        let prefix = data.prefix;
        self.news.push(DiscoveryEvent::ParticipantDiscovered { prefix, vendor: data.vendor });
        let RemoteLists { endpoints, claims } = self.reserve.lists();
        let remote = RemoteParticipant {
            from,
            metatraffic: self.reserve.addresses.list(&[address]),
            discovered_at: now,
            asked_at: now,
            lease: data.lease.max(self.config.remote_lease_min),
            has_answered: false,
            answer_time: Duration::ZERO,
            guesses: Default::default(),
            ask_at: None,
            is_introduced: false,
            knows_us: is_directed,
            endpoints,
            texts: 0,
            changed_at: None,
            held: None,
            claims: Claims(claims),
            beside: None,
            home_heard_at: now,
            elsewhere_since: None,
            grouped_to: Time::ZERO,
            due_at: Time::MAX,
            has_refused: false,
            read_again_at: None,
            may_read_at: Time::ZERO,
            data,
        };
        self.observe(Guid::new(prefix, EntityId::PARTICIPANT));
        self.validation.unanswered += 1;
        self.shortest_lease = self.shortest_lease.min(remote.lease);
        let remote = self.remotes.get_or_insert_with(prefix, || remote);
        let at = remote.next_look();
        self.deadlines.look_by(prefix, &mut remote.due_at, at);
        self.introduce(now, prefix, is_directed);
        self.add_static_endpoints(now, prefix);
    }

    /// Makes up for a postponed introduction: the participant has sent to us directly.
    pub(super) fn introduce_now(&mut self, now: Time, prefix: GuidPrefix) {
        if self.remotes.get(&prefix).is_some_and(|remote| !remote.is_introduced) {
            self.introduce(now, prefix, true);
            self.add_static_endpoints(now, prefix);
        }
    }

    /// Sends a new participant our announcement, and matches it with our builtin endpoints. Forged
    /// announcements could direct all that at a third party, so only a few are introduced in a
    /// short time; the others have to wait for their next announcement. A participant that sends to
    /// us directly has received from us, and is not forged.
    pub(super) fn introduce(&mut self, now: Time, prefix: GuidPrefix, is_directed: bool) {
        let Some(remote) = self.remotes.get(&prefix) else { return };
        let (host, has_answered) = (remote.metatraffic.first().map(|to| *to.ip()), remote.has_answered);
        host.into_iter().for_each(|host| self.credit(now, host));
        // One that knows us needs no announcement, but what follows.
        let len = if is_directed { QUESTION_LEN } else { self.announcer.reply_len() };
        let may_send = |core: &mut Self| {
            has_answered || host.is_some_and(|host| core.may_send(now, host, len, is_directed))
        };
        let is_introduced = may_send(self) && (is_directed || self.announcer.reply(now, prefix));
        self.counters.replies_suppressed += u64::from(!is_introduced);
        if !is_introduced {
            return;
        }
        if let Some(remote) = self.remotes.get_mut(&prefix) {
            remote.is_introduced = true;
            remote.discovered_at = now;
            remote.asked_at = now;
            let is_here = self.reachability.is_here(&remote.metatraffic);
            self.builtin.match_participant(now, &remote.data, &remote.metatraffic, is_here);
        }
    }

    /// Repeats our announcement to a participant that announces itself again and has sent nothing to us: our answer may
    /// be lost, and without it, the participant understands nothing that follows.
    fn answer_again(&mut self, now: Time, prefix: GuidPrefix) {
        let Some(remote) = self.remotes.get(&prefix) else { return };
        let is_unanswered = remote.is_introduced && !remote.knows_us;
        let host = remote.metatraffic.first().map(|to| *to.ip());
        let Some(host) =
            host.filter(|_| is_unanswered && now.since(remote.asked_at) >= config::ANSWER_AGAIN / 2)
        else {
            return;
        };
        self.credit(now, host);
        let len = self.announcer.reply_len();
        if !self.may_send(now, host, len, false) || !self.announcer.reply_again(now, prefix) {
            self.counters.replies_suppressed += 1;
            return;
        }
        if let Some(remote) = self.remotes.get_mut(&prefix) {
            remote.asked_at = now;
        }
    }

    /// A participant that we do not know sends to us: its announcement is lost. Announces this participant again, which
    /// it [answers](Self::answer_again).
    pub(super) fn unknown_participant_knows_us(&mut self, now: Time, prefix: GuidPrefix) {
        let has_room = self.remotes.len() < self.config.limits.participants.min(config::PROXIES_MAX);
        if has_room && !self.ignored.has_participant(prefix) {
            self.announcer.announce_again(now);
        }
    }

    /// Makes room for one more participant. If there is none, removes the oldest of those that
    /// never sent to us directly: a flood of forged announcements does not keep real participants
    /// out.
    fn make_room(&mut self, now: Time) -> bool {
        // Participants beyond the builtin endpoints' limit would be known, but never received from.
        let limit = self.config.limits.participants.min(config::PROXIES_MAX);
        if self.remotes.len() < limit {
            return true;
        }
        let silent = self.remotes.iter().filter(|(_, remote)| !remote.has_answered);
        let silent = silent.min_by_key(|(_, remote)| remote.discovered_at);
        // Or, whatever its lease, the one silent for longest, if that is long.
        let forgotten =
            self.remotes.iter().filter(|(_, remote)| now.since(remote.home_heard_at) >= FORGOTTEN_AFTER);
        let forgotten = || forgotten.min_by_key(|(_, remote)| remote.home_heard_at);
        let Some(prefix) = silent.or_else(forgotten).map(|(prefix, _)| *prefix) else { return false };
        self.counters.participants_over_limit += 1;
        self.participant_lost(now, prefix);
        self.remotes.len() < limit
    }

    /// Replaces what a participant has announced.
    pub(super) fn participant_changed(&mut self, now: Time, from: Ipv4Addr, data: Arc<Announced>) {
        if self.reachability.choose(&data.metatraffic_unicast.addresses, from).is_none() {
            self.counters.unreachable += 1;
            return;
        }
        let prefix = data.prefix;
        // Others may have changed while this change waited.
        let is_believed = self.may_be_believed(&data);
        let Some(remote) = self.remotes.get_mut(&prefix) else { return };
        if !is_believed {
            remote.held = None;
            self.counters.static_peers_refused += 1;
            return;
        }
        let is_other =
            remote.data.builtin_endpoints != data.builtin_endpoints || remote.data.vendor != data.vendor;
        let has_other_name = remote.data.entity_name != data.entity_name;
        remote.held = None;
        remote.changed_at = Some(now);
        (remote.from, remote.elsewhere_since, remote.home_heard_at) = (from, None, now);
        remote.lease = data.lease.max(self.config.remote_lease_min);
        remote.data = data;
        let at = remote.next_look();
        self.deadlines.look_by(prefix, &mut remote.due_at, at);
        if let Some(observed) = &mut self.observed {
            observed.insert(Guid::new(prefix, EntityId::PARTICIPANT));
        }
        if is_other && remote.is_introduced {
            let is_here = self.reachability.is_here(&remote.metatraffic);
            self.builtin.match_participant(now, &remote.data, &remote.metatraffic, is_here);
        }
        self.find_shortest_lease();
        self.paths_changed(now, prefix);
        if has_other_name {
            self.remove_static_endpoints(prefix);
        }
        if has_other_name || is_other {
            self.add_static_endpoints(now, prefix);
        }
    }

    /// Chooses the addresses of a participant and its endpoints anew.
    pub(super) fn paths_changed(&mut self, now: Time, prefix: GuidPrefix) {
        let Some(remote) = self.remotes.get_mut(&prefix) else { return };
        let metatraffic = self.reachability.metatraffic(remote);
        if let Some(addresses) = metatraffic.filter(|addresses| remote.metatraffic[..] != addresses[..]) {
            remote.metatraffic = self.reserve.addresses.list(&addresses);
            if remote.is_introduced {
                let is_here = self.reachability.is_here(&remote.metatraffic);
                self.builtin.match_participant(now, &remote.data, &remote.metatraffic, is_here);
            }
        }
        // Its endpoints' default addresses may have changed.
        let mut next = self.first_endpoint(prefix);
        while let Some(entity) = next {
            self.refresh_endpoint(prefix, entity);
            next = self.endpoint_after(prefix, entity);
        }
    }

    fn first_endpoint(&self, prefix: GuidPrefix) -> Option<EntityId> {
        self.remotes.get(&prefix)?.endpoints.keys().next().copied()
    }

    /// Returns the endpoint of a participant that follows another one, which may be gone.
    fn endpoint_after(&self, prefix: GuidPrefix, entity: EntityId) -> Option<EntityId> {
        let endpoints = &self.remotes.get(&prefix)?.endpoints;
        endpoints.range((Excluded(entity), Unbounded)).next().map(|(entity, _)| *entity)
    }

    /// An announcement came through the multicast group. On the same host, ours go the same way back.
    pub(super) fn heard_by_group(&mut self, now: Time, prefix: GuidPrefix, from: Ipv4Addr) {
        if self.reachability.is_on_this_host(from)
            && let Some(remote) = self.remotes.get_mut(&prefix)
        {
            remote.grouped_to = now + remote.lease.min(config::GROUP_TRUST_MAX);
        }
    }

    /// A participant receives what we send: its endpoints are matched.
    pub(super) fn participant_answers(&mut self, now: Time, prefix: GuidPrefix) {
        let Some(remote) = self.remotes.get_mut(&prefix) else { return };
        remote.has_answered = true;
        remote.answer_time = now.since(remote.discovered_at);
        self.validation.unanswered -= 1;
        self.membership_changed_at = now;
        let mut next = self.first_endpoint(prefix);
        while let Some(entity) = next {
            self.refresh_endpoint(prefix, entity);
            self.match_remote(Guid::new(prefix, entity), false);
            next = self.endpoint_after(prefix, entity);
        }
        self.host_answers(now, prefix);
    }

    /// Removes a participant and all its endpoints.
    pub(super) fn participant_lost(&mut self, now: Time, prefix: GuidPrefix) {
        let Some(mut remote) = self.remotes.remove(&prefix) else { return };
        if remote.has_answered {
            self.membership_changed_at = now;
        }
        self.deadlines.remove(prefix, remote.due_at);
        if remote.lease <= self.shortest_lease {
            self.find_shortest_lease();
        }
        self.validation.unanswered -= usize::from(!remote.has_answered);
        self.remote_endpoints -= remote.endpoints.len();
        self.remote_texts -= remote.texts;
        while let Some((entity, entry)) = remote.endpoints.pop_first() {
            self.shared.release(entry);
            self.unmatch_remote(Guid::new(prefix, entity));
            self.observe(Guid::new(prefix, entity));
        }
        let RemoteParticipant { endpoints, claims: Claims(claims), .. } = remote;
        self.reserve.take_back(RemoteLists { endpoints, claims });
        self.observe(Guid::new(prefix, EntityId::PARTICIPANT));
        self.builtin.unmatch_participant(now, prefix);
        self.news.push_lost(prefix);
    }

    fn find_shortest_lease(&mut self) {
        let leases = self.remotes.values().map(|remote| remote.lease);
        self.shortest_lease = leases.min().unwrap_or(Duration::MAX);
    }

    /// Does what is due about remote participants: expired leases, changes held back, claims.
    pub(super) fn look_at_participants(&mut self, now: Time) {
        if self.deadlines.next().is_none_or(|at| at > now) {
            return;
        }
        while let Some(prefix) = self.deadlines.pop(now) {
            let Some(remote) = self.remotes.get_mut(&prefix) else { continue };
            remote.due_at = Time::MAX;
            if remote.expires_at() <= now {
                self.counters.leases_expired += 1;
                self.participant_lost(now, prefix);
                continue;
            }
            let may_change_at = remote.may_change_at();
            if let Some(held) = remote.held.take_if(|_| may_change_at <= now) {
                self.participant_changed(now, held.from, held.data);
            }
            self.settle_claims(now, prefix);
            self.ask_unheard(now, prefix);
            self.read_again_if_due(now, prefix);
            if let Some(remote) = self.remotes.get_mut(&prefix) {
                let at = remote.next_look();
                self.deadlines.look_by(prefix, &mut remote.due_at, at);
            }
        }
        // Most that are due soon have sent something since. To find that out one by one would take a wake-up for each.
        let mut next = self.deadlines.first_after((Time::ZERO, GuidPrefix::UNKNOWN), now + LOOK_AHEAD);
        while let Some((due_at, prefix)) = next {
            if let Some(remote) = self.remotes.get_mut(&prefix) {
                let at = remote.next_look();
                self.deadlines.postpone(prefix, &mut remote.due_at, at);
            }
            // One that was postponed to a time before that is visited again, to no effect.
            next = self.deadlines.first_after((due_at, prefix), now + LOOK_AHEAD);
        }
    }

    /// Handles the announcement of an endpoint of a known participant.
    pub(super) fn endpoint_announced(&mut self, prefix: GuidPrefix, data: &EndpointData) {
        if !self.config.static_peers.is_empty() {
            self.compare_with_static(prefix, data);
        }
        self.endpoint_known(prefix, data, false);
    }

    /// Adds or changes an endpoint of a known participant. `is_static`: it is known beforehand.
    pub(super) fn endpoint_known(&mut self, prefix: GuidPrefix, data: &EndpointData, is_static: bool) {
        let limits = &self.config.limits;
        let Some(remote) = self.remotes.get_mut(&prefix) else { return };
        let entity = data.guid.entity;
        self.counters.locators_skipped += u64::from(data.unicast.skipped + data.multicast.skipped);
        let is_known = remote.endpoints.contains_key(&entity);
        if !is_known
            && (remote.endpoints.len() >= limits.endpoints_per_participant
                || self.remote_endpoints >= limits.endpoints)
        {
            self.counters.endpoints_over_limit += 1;
            remote.has_refused = true;
            return;
        }
        let is_weir = remote.vendor() == VendorId::WEIR;
        let (unicast, multicast) = (&data.unicast.addresses, &data.multicast.addresses);
        let Some((addresses, group)) = self.reachability.endpoint_address(remote, unicast, multicast) else {
            self.counters.unreachable += 1;
            // The stored data is out of date.
            return self.endpoint_lost(data.guid);
        };
        let lists = &mut self.reserve.addresses;
        let destinations =
            remote.same_destinations(entity, &addresses).unwrap_or_else(|| lists.list(&addresses));
        let traits = Traits {
            unicast: lists.list(unicast),
            multicast: lists.list(multicast),
            destinations,
            group,
            receive_buffer: data.receive_buffer.filter(|_| is_weir).or(remote.data.receive_buffer),
            content_filter: data.content_filter.clone(),
            vendor: remote.vendor(),
            expects_inline_qos: data.expects_inline_qos,
            delimits_keys: remote.data.delimits_keys,
        };
        let common = Common { traits, is_static };
        let entry = RemoteEntry {
            topic: self.shared.name(&data.topic),
            type_name: self.shared.name(&data.type_name),
            qos: self.shared.policies(&data.qos),
            common: remote.same_common(entity, &common).unwrap_or_else(|| self.shared.common(common)),
        };
        if let Some(known) = remote.endpoints.get_mut(&entity)
            && known.is_like(&entry)
        {
            return self.shared.release(core::mem::replace(known, entry));
        }
        let texts = entry.texts();
        let before = remote.endpoints.get(&entity).map_or(0, |entry| entry.texts());
        let has_room = |used: usize, max: usize| used - before + texts <= max;
        if texts > limits.texts_per_endpoint_bytes
            || !has_room(self.remote_texts, limits.texts_bytes)
            || !has_room(remote.texts, limits.texts_per_participant_bytes)
        {
            self.counters.endpoints_over_limit += 1;
            remote.has_refused |= texts <= limits.texts_per_endpoint_bytes;
            self.shared.release(entry);
            // The stored data is out of date.
            return self.endpoint_lost(data.guid);
        }
        remote.texts = remote.texts - before + texts;
        self.remote_texts = self.remote_texts - before + texts;
        if let Some(before) = remote.endpoints.insert(entity, entry) {
            self.shared.release(before);
        }
        self.remote_endpoints += usize::from(!is_known);
        self.observe(data.guid);
        self.match_remote(data.guid, is_known);
    }

    /// Removes an endpoint.
    pub(super) fn endpoint_lost(&mut self, guid: Guid) {
        let Some(remote) = self.remotes.get_mut(&guid.prefix) else { return };
        if let Some(removed) = remote.endpoints.remove(&guid.entity) {
            remote.texts -= removed.texts();
            self.remote_texts -= removed.texts();
            self.remote_endpoints -= 1;
            self.shared.release(removed);
            self.unmatch_remote(guid);
            self.observe(guid);
        }
    }

    /// Handles the end of an endpoint that its participant has announced. If others of it had found no place, reads its
    /// announcements again, once for all that end within [`READ_AGAIN_PERIOD`].
    pub(super) fn endpoint_withdrawn(&mut self, now: Time, guid: Guid) {
        let before = self.remote_endpoints;
        self.endpoint_lost(guid);
        if self.remote_endpoints < before
            && let Some(remote) = self.remotes.get_mut(&guid.prefix).filter(|remote| remote.has_refused)
        {
            let at = remote.may_read_at.max(now);
            remote.read_again_at = Some(at);
            self.deadlines.look_by(guid.prefix, &mut remote.due_at, at);
            self.read_again_if_due(now, guid.prefix);
        }
    }

    /// Reads the announcements of a participant from the beginning, if that is due.
    fn read_again_if_due(&mut self, now: Time, prefix: GuidPrefix) {
        let Some(remote) = self.remotes.get_mut(&prefix) else { return };
        if remote.read_again_at.take_if(|at| *at <= now).is_some() {
            remote.has_refused = false;
            remote.may_read_at = now + READ_AGAIN_PERIOD;
            self.builtin.read_again(now, &remote.data, &remote.metatraffic);
        }
    }

    /// Updates the data that an endpoint inherits from its participant.
    fn refresh_endpoint(&mut self, prefix: GuidPrefix, entity: EntityId) {
        let Some(remote) = self.remotes.get(&prefix) else { return };
        let Some(entry) = remote.endpoints.get(&entity) else { return };
        let common = &entry.common;
        let route = self.reachability.endpoint_address(remote, &common.unicast, &common.multicast);
        let Some((addresses, group)) = route else {
            self.counters.unreachable += 1;
            return self.endpoint_lost(Guid::new(prefix, entity));
        };
        let (guid, vendor) = (Guid::new(prefix, entity), remote.vendor());
        if (&common.destinations[..], common.group, common.vendor) == (&addresses[..], group, vendor) {
            return;
        }
        let known = remote.same_destinations(entity, &addresses);
        let destinations = known.unwrap_or_else(|| self.reserve.addresses.list(&addresses));
        let changed = common.moved(destinations, group, vendor);
        let common = remote.same_common(entity, &changed).unwrap_or_else(|| self.shared.common(changed));
        if let Some(entry) =
            self.remotes.get_mut(&prefix).and_then(|remote| remote.endpoints.get_mut(&entity))
        {
            self.shared.release_common(core::mem::replace(&mut entry.common, common));
            self.match_remote(guid, true);
        }
    }
}

/// A look at one participant postpones those at others that are due within this time.
const LOOK_AHEAD: Duration = Duration::from_secs(4);
/// A participant that was silent for this time makes room for a new one if there is none otherwise.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
/// A message with one HEARTBEAT.
const QUESTION_LEN: usize = 68;
/// Two participants that discover each other exchange directed announcements within this time.
const INTRODUCTION_TIME: Duration = Duration::from_secs(1);
/// How far apart the announcements of a participant are read from the beginning.
const READ_AGAIN_PERIOD: Duration = Duration::from_secs(1);
