//! The state of one remote participant and its endpoints.

use alloc::string::String;
use alloc::sync::Arc;
use core::net::{Ipv4Addr, SocketAddrV4};
use core::ops::Deref;
use core::time::Duration;

use weir_wire::{EntityId, Guid, VendorId};

use super::claim::{Announcement, Claims};
use super::reserve::Announced;
use super::shared::Name;
use crate::content_filter::ContentFilterProperty;
use crate::discovery_event::RemoteEndpoint;
use crate::multicast::GroupRoute;
use crate::outbox::Destinations;
use crate::qos::Qos;
use crate::sedp::EndpointKind;
use crate::sorted_map::SortedMap;
use crate::spdp::{ParticipantData, builtin_endpoints};
use crate::time::Time;

/// How often wrong numbers were named, and until when right ones are not believed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Guesses {
    pub(super) count: u32,
    pub(super) refused_to: Time,
}

/// A remote participant.
#[derive(Debug)]
pub(super) struct RemoteParticipant {
    pub(super) data: Arc<Announced>,
    /// The source of its announcement, by which its addresses are ranked.
    pub(super) from: Ipv4Addr,
    /// The destination of discovery traffic.
    pub(super) metatraffic: Destinations,
    pub(super) discovered_at: Time,
    /// When it was introduced, last answered, or last asked how far its readers of our announcements have got.
    pub(super) asked_at: Time,
    pub(super) lease: Duration,
    /// Whether it receives what we send: it has answered a HEARTBEAT for our announcements of endpoints, and so knows
    /// their numbers. Its endpoints are matched only then, so that a host that forges another one's address, and
    /// receives nothing from us, cannot direct samples or requests there.
    pub(super) has_answered: bool,
    /// How long the first answer took.
    pub(super) answer_time: Duration,
    /// Wrong numbers that it has named, from its own hosts and from others.
    pub(super) guesses: [Guesses; 2],
    /// It has named numbers meanwhile, and is to be asked again then.
    pub(super) ask_at: Option<Time>,
    /// Whether it was sent our announcement, and matched with our builtin endpoints.
    pub(super) is_introduced: bool,
    /// It has sent something to us directly, so it knows us. Forged messages may say so as well.
    pub(super) knows_us: bool,
    pub(super) endpoints: SortedMap<EntityId, RemoteEntry>,
    /// Memory of their texts in bytes.
    pub(super) texts: usize,
    /// When its data last changed.
    pub(super) changed_at: Option<Time>,
    /// The newest announcement, if it came too soon after the last change.
    pub(super) held: Option<Announcement>,
    /// What other hosts say in its name.
    pub(super) claims: Claims,
    /// A second host that answers in its name. Everything is sent there, too.
    pub(super) beside: Option<Announcement>,
    /// When something last came from a host that it has named. Its lease begins anew with that.
    pub(super) home_heard_at: Time,
    /// Since when its announcements have come from other addresses that it names, and nothing from [`Self::from`].
    pub(super) elsewhere_since: Option<Time>,
    /// Until then, announcements to the multicast group reach it, too.
    pub(super) grouped_to: Time,
    /// Its place in the queue of [`Deadlines`](super::deadlines::Deadlines).
    pub(super) due_at: Time,
    /// An endpoint of it has found no place, since its announcements were last read from the beginning.
    pub(super) has_refused: bool,
    /// When they are read from the beginning, and not sooner than when they may be.
    pub(super) read_again_at: Option<Time>,
    pub(super) may_read_at: Time,
}

/// A remote endpoint.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RemoteEntry {
    pub(super) topic: Name,
    pub(super) type_name: Name,
    pub(super) qos: Arc<Qos>,
    pub(super) common: Arc<Common>,
}

/// What most endpoints of a participant have in common, stored once for them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Common {
    pub(super) traits: Traits,
    /// It is known beforehand, and its participant has not announced it.
    pub(super) is_static: bool,
}

/// What local endpoints need to know of a remote one, apart from its policies.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Traits {
    /// Its own addresses, if any.
    pub(super) unicast: Destinations,
    pub(super) multicast: Destinations,
    /// The rest is as in a [`RemoteEndpoint`].
    pub(super) destinations: Destinations,
    pub(super) group: Option<GroupRoute>,
    pub(super) receive_buffer: Option<u32>,
    pub(super) content_filter: Option<Arc<ContentFilterProperty>>,
    pub(super) vendor: VendorId,
    pub(super) expects_inline_qos: bool,
    pub(super) delimits_keys: bool,
}

impl Deref for Common {
    type Target = Traits;

    fn deref(&self) -> &Traits {
        &self.traits
    }
}

impl Common {
    /// Returns the same of an endpoint with another route.
    pub(super) fn moved(
        &self,
        destinations: Destinations,
        group: Option<GroupRoute>,
        vendor: VendorId,
    ) -> Self {
        let Traits { unicast, multicast, content_filter, .. } = &self.traits;
        let traits = Traits {
            unicast: Arc::clone(unicast),
            multicast: Arc::clone(multicast),
            destinations,
            group,
            content_filter: content_filter.clone(),
            vendor,
            ..self.traits
        };
        Self { traits, is_static: self.is_static }
    }
}

impl RemoteEntry {
    /// Returns whether local endpoints would notice no difference.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (&self.topic, &self.type_name, &self.qos) == (&other.topic, &other.type_name, &other.qos)
            && self.common.traits == other.common.traits
    }

    /// Returns the memory of its names, partitions and user data in bytes.
    pub(super) fn texts(&self) -> usize {
        let qos = &self.qos;
        let partitions = qos.partition.iter().map(|name| name.len() + size_of::<String>()).sum::<usize>();
        let data = qos.user_data.len() + qos.topic_data.len() + qos.group_data.len();
        let filter = self.common.content_filter.as_ref().map_or(0, |filter| filter.texts());
        self.topic.len() + self.type_name.len() + partitions + data + filter
    }

    /// Returns what a local endpoint that matches it needs to know. `guid`: its own. `answer_time`: that of its
    /// participant.
    pub(super) fn endpoint(&self, guid: Guid, answer_time: Duration) -> RemoteEndpoint {
        RemoteEndpoint {
            guid,
            vendor: self.common.vendor,
            qos: Arc::clone(&self.qos),
            destinations: Arc::clone(&self.common.destinations),
            group: self.common.group,
            receive_buffer: self.common.receive_buffer,
            expects_inline_qos: self.common.expects_inline_qos,
            content_filter: self.common.content_filter.clone(),
            delimits_keys: self.common.delimits_keys,
            answer_time,
        }
    }
}

impl RemoteParticipant {
    /// Returns destinations as another endpoint near `entity` has them, if one does: most have those of the
    /// participant.
    pub(super) fn same_destinations(
        &self,
        entity: EntityId,
        destinations: &[SocketAddrV4],
    ) -> Option<Destinations> {
        let mut near = self.commons_near(entity);
        near.find(|common| common.destinations[..] == *destinations)
            .map(|common| Arc::clone(&common.destinations))
    }

    /// Returns what another endpoint near `entity` has in common with it, if that is everything.
    pub(super) fn same_common(&self, entity: EntityId, common: &Common) -> Option<Arc<Common>> {
        self.commons_near(entity).find(|near| ***near == *common).map(Arc::clone)
    }

    /// Returns what the endpoints just before one have, and the last one: some may have their own addresses or filters.
    fn commons_near(&self, entity: EntityId) -> impl Iterator<Item = &Arc<Common>> {
        let before = self.endpoints.range(..entity).rev().map(|(_, entry)| entry).take(NEAR);
        before.chain(self.endpoints.values().next_back()).map(|entry| &entry.common)
    }

    /// Returns when it counts as lost if nothing more is received.
    pub(super) fn expires_at(&self) -> Time {
        let is_proven = self.has_answered && !self.is_unproven();
        let max = if is_proven { LEASE_MAX } else { UNANSWERED_LEASE_MAX };
        self.home_heard_at + self.lease.min(max)
    }

    /// Returns when it is to be looked at next.
    pub(super) fn next_look(&self) -> Time {
        let held_to = self.held.as_ref().map_or(Time::MAX, |_| self.may_change_at());
        let ask_at = self.ask_at.unwrap_or(Time::MAX);
        let read_at = self.read_again_at.unwrap_or(Time::MAX);
        let claims_at = self.claims.next_at().unwrap_or(Time::MAX);
        self.expires_at().min(held_to).min(ask_at).min(read_at).min(claims_at)
    }

    /// Returns when its next change may be applied.
    pub(super) fn may_change_at(&self) -> Time {
        self.changed_at.map_or(Time::ZERO, |at| at + CHANGE_PERIOD)
    }

    /// Returns whether its announcements name the host, or came from there. One that waits came from such a host, too.
    pub(super) fn is_at(&self, host: Ipv4Addr) -> bool {
        let waiting = self.held.as_ref().is_some_and(|held| names(&held.data, host));
        waiting || self.from == host || names(&self.data, host)
    }

    /// Returns whether the announcement is the one of the second host.
    pub(super) fn is_beside(&self, from: Ipv4Addr, data: &ParticipantData) -> bool {
        self.beside.as_ref().is_some_and(|there| there.from == from && there.data.data == *data)
    }

    /// Records that something came from a host. Returns whether it is one of its own.
    pub(super) fn heard_from(&mut self, now: Time, host: Ipv4Addr) -> bool {
        if host == self.from {
            self.elsewhere_since = None;
        }
        let is_home = self.is_at(host);
        if is_home {
            self.home_heard_at = now;
        }
        is_home
    }

    /// Records that an unchanged announcement came from a host. Returns whether that has become the better path: the
    /// host is named, and nothing came from [`Self::from`] between two such announcements.
    ///
    /// A participant announces itself from all its addresses at once, so every path that works carries each round.
    pub(super) fn has_moved_to(&mut self, now: Time, host: Ipv4Addr) -> bool {
        if host == self.from || !names(&self.data, host) {
            return false;
        }
        let since = *self.elsewhere_since.get_or_insert(now);
        let has_moved = now.since(since) >= ROUND_MIN;
        if has_moved {
            (self.from, self.elsewhere_since) = (host, None);
        }
        has_moved
    }

    /// Returns whether it is believed only because it is known beforehand: it cannot show that it receives what we
    /// send.
    pub(super) fn is_unproven(&self) -> bool {
        self.has_answered && !answers(&self.data)
    }

    pub(super) fn vendor(&self) -> VendorId {
        self.data.vendor
    }
}

/// Returns whether a participant can acknowledge announcements of endpoints.
pub(super) fn answers(data: &ParticipantData) -> bool {
    let detectors = builtin_endpoints::PUBLICATIONS_DETECTOR | builtin_endpoints::SUBSCRIPTIONS_DETECTOR;
    data.builtin_endpoints & detectors != 0
}

/// Returns whether an announcement names the host as a unicast address.
pub(super) fn names(data: &ParticipantData, host: Ipv4Addr) -> bool {
    let mut named = data.metatraffic_unicast.addresses.iter().chain(&data.default_unicast.addresses);
    named.any(|address| *address.ip() == host)
}

/// Returns the kind of endpoint of an entity id; `None` if it is not an application's writer or
/// reader.
pub(super) fn kind_of(entity: EntityId) -> Option<EndpointKind> {
    match (entity.is_builtin(), entity.is_writer(), entity.is_reader()) {
        (false, true, _) => Some(EndpointKind::Writer),
        (false, _, true) => Some(EndpointKind::Reader),
        _ => None,
    }
}

/// An endpoint is compared with so many before it.
const NEAR: usize = 4;
/// Maximum time for which a silent participant is kept that has not sent to us directly, whatever
/// its lease: longer than the 30 s between announcements that the specification proposes (RTPS
/// 2.5, 9.6.1.4).
const UNANSWERED_LEASE_MAX: Duration = Duration::from_secs(35);
/// Maximum time for which a silent participant is kept, whatever its lease: an infinite one must not keep what we know
/// of a participant, and what we send it, for ever.
const LEASE_MAX: Duration = Duration::from_secs(3600);
/// Announcements at least this far apart are two rounds, not one from several addresses.
const ROUND_MIN: Duration = Duration::from_secs(1);
/// Minimum time between two changes of a participant: a change concerns all its endpoints and their matches.
const CHANGE_PERIOD: Duration = Duration::from_millis(100);
