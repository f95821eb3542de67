//! What discovery reserves with a limits table, and uses again.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Deref;

use weir_wire::{EntityId, GuidPrefix};

use super::claim::{CLAIMS_MAX, Claim};
use super::remote_participant::RemoteEntry;
use crate::address_lists::AddressLists;
use crate::limits::Limits;
use crate::outbox::{Destinations, Item, Outbox};
use crate::packing::Packing;
use crate::sedp::EndpointData;
use crate::sorted_map::SortedMap;
use crate::spdp::ParticipantData;

/// What a participant has announced.
#[derive(Debug, Clone)]
pub(super) struct Announced {
    pub(super) data: ParticipantData,
    /// Memory for a name, while there is none.
    pub(super) spare_name: String,
    /// The [fingerprint](crate::key_hasher::fingerprint) of the bytes.
    pub(super) fingerprint: u64,
}

impl Announced {
    pub(super) fn new() -> Self {
        Self { data: ParticipantData::nothing(), spare_name: String::new(), fingerprint: 0 }
    }

    /// Reserves memory for the longest announcement.
    fn reserved(limits: &Limits) -> Self {
        let mut announced = Self::new();
        let data = &mut announced.data;
        for locators in
            [&mut data.metatraffic_unicast, &mut data.default_unicast, &mut data.default_multicast]
        {
            locators.addresses.reserve_exact(limits.addresses);
        }
        data.user_data.reserve_exact(limits.discovery().user_data_bytes);
        announced.spare_name.reserve_exact(limits.discovery().name_bytes);
        announced
    }
}

impl PartialEq for Announced {
    fn eq(&self, other: &Self) -> bool {
        self.data == other.data
    }
}

impl Deref for Announced {
    type Target = ParticipantData;

    fn deref(&self) -> &ParticipantData {
        &self.data
    }
}

/// Values that are used again as soon as nothing else refers to them.
#[derive(Debug)]
pub(super) struct Pool<T> {
    all: Vec<Arc<T>>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { all: Vec::new() }
    }
}

impl<T> Pool<T> {
    pub(super) fn with_room(values: usize, new: impl Fn() -> T) -> Self {
        let mut all = Vec::with_capacity(values);
        all.extend((0..values).map(|_| Arc::new(new())));
        Self { all }
    }

    /// Fills a value that is free, or a new one. Returns it, and what `fill` does.
    pub(super) fn fill<R>(&mut self, new: impl Fn() -> T, fill: impl FnOnce(&mut T) -> R) -> (R, Arc<T>) {
        for value in &mut self.all {
            if let Some(free) = Arc::get_mut(value) {
                let result = fill(free);
                return (result, Arc::clone(value));
            }
        }
        let mut value = new();
        let result = fill(&mut value);
        (result, Arc::new(value))
    }
}

/// The lists of a remote participant.
#[derive(Debug, Default)]
pub(super) struct RemoteLists {
    pub(super) endpoints: SortedMap<EntityId, RemoteEntry>,
    pub(super) claims: Vec<Claim>,
}

/// Reserved memory that is not in use.
#[derive(Debug, Default)]
pub(super) struct Reserve {
    pub(super) announced: Pool<Announced>,
    remotes: Vec<RemoteLists>,
    pub(super) addresses: AddressLists,
}

impl Reserve {
    pub(super) fn new(table: Option<&Limits>) -> Self {
        let Some(limits) = table else { return Self::default() };
        let participants = limits.participants;
        let mut remotes = Vec::with_capacity(participants);
        remotes.extend((0..participants).map(|_| RemoteLists {
            endpoints: SortedMap::with_room(limits.endpoints_per_participant),
            claims: Vec::with_capacity(CLAIMS_MAX),
        }));
        let announcements = participants.saturating_mul(ANNOUNCED_EACH).saturating_add(1);
        let endpoints = participants.saturating_mul(limits.endpoints_per_participant);
        let lists = (endpoints.saturating_mul(LISTS_OF_ENDPOINT))
            .saturating_add(participants.saturating_mul(LISTS_OF_PARTICIPANT))
            .saturating_add(LISTS_OF_OWN);
        Self {
            announced: Pool::with_room(announcements, || Announced::reserved(limits)),
            remotes,
            addresses: AddressLists::with_room(lists, list_len_max(limits)),
        }
    }

    /// Returns the lists for a new participant.
    pub(super) fn lists(&mut self) -> RemoteLists {
        self.remotes.pop().unwrap_or_default()
    }

    /// Takes back the lists of a participant that is gone.
    pub(super) fn take_back(&mut self, mut lists: RemoteLists) {
        if self.remotes.len() < self.remotes.capacity() {
            lists.endpoints.clear();
            lists.claims.clear();
            self.remotes.push(lists);
        }
    }
}

/// Returns memory for the announcement of an endpoint, which is used again.
pub(super) fn announced_endpoint(table: Option<&Limits>) -> EndpointData {
    let mut data = EndpointData::nothing();
    if let Some(limits) = table {
        let discovery = limits.discovery();
        data.topic.reserve_exact(discovery.name_bytes);
        data.type_name.reserve_exact(discovery.name_bytes);
        data.unicast.addresses.reserve_exact(limits.addresses);
        data.multicast.addresses.reserve_exact(limits.addresses);
        data.qos.representation.reserve_exact(discovery.representations);
    }
    data
}

/// The room for messages that leave together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MessageRoom {
    pub(crate) messages: usize,
    /// Bytes of answers, which are in no history block.
    answer_bytes: usize,
    /// Bytes of all messages.
    pub(crate) bytes: usize,
    /// Participants that are asked something, or answered, at a time.
    pub(super) asked: usize,
}

impl MessageRoom {
    /// Returns the room for everything that we announce, to all participants, with answers and our own announcement.
    pub(crate) fn of(table: Option<&Limits>) -> Self {
        let Some(limits) = table else { return Self::default() };
        let peers = limits.participants.saturating_add(1);
        let own = limits.writers.saturating_add(limits.readers);
        let announced = own.saturating_mul(limits.builtin().sample_bytes);
        let answer_bytes = peers.saturating_mul(ANSWER_BYTES_EACH);
        Self {
            messages: peers.saturating_mul(own.saturating_add(ANSWERS_EACH)),
            answer_bytes,
            bytes: peers.saturating_mul(announced).saturating_add(answer_bytes),
            asked: peers.saturating_mul(ASKED_EACH),
        }
    }

    pub(super) fn outbox(&self) -> Outbox {
        Outbox::with_room(self.messages, self.answer_bytes)
    }

    pub(super) fn packing(&self) -> Packing {
        Packing::with_room(self.messages, self.bytes)
    }

    /// Returns the memory of both, in bytes.
    pub(super) fn memory(&self) -> usize {
        (self.messages.saturating_mul(size_of::<Item>() + Packing::MESSAGE_BYTES))
            .saturating_add(self.bytes)
            .saturating_add(self.answer_bytes)
            .saturating_add(self.asked.saturating_mul(2 * size_of::<(GuidPrefix, Destinations)>()))
    }
}

/// Addresses at which a participant is asked something, or answered, at a time.
pub(super) const ASKED_EACH: usize = 2;
/// Answers to a participant at a time: ACKNACKs, HEARTBEATs and GAPs of all builtin endpoints, and announcements.
const ANSWERS_EACH: usize = 16;
const ANSWER_BYTES_EACH: usize = 2 * 1024;
/// Announcements of a participant: the newest, one that waits, that of a second host, and those of hosts that may
/// forge it.
pub(super) const ANNOUNCED_EACH: usize = 3 + CLAIMS_MAX;
/// Lists of addresses of each length: for an endpoint that has its own, which are unicast, multicast, and where it is
/// sent to, ...
const LISTS_OF_ENDPOINT: usize = 3;
/// ... for a participant, and what is asked and answered there, ...
const LISTS_OF_PARTICIPANT: usize = 4;
/// ... and for us.
const LISTS_OF_OWN: usize = 8;
/// Longer lists of addresses are allocated.
const LIST_LEN_MAX: usize = 8;

/// Returns how long a list of addresses is. A participant may be at two hosts.
fn list_len_max(limits: &Limits) -> usize {
    limits.addresses.clamp(2, LIST_LEN_MAX)
}

/// The memory of what is reserved, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReserveSize {
    pub(super) own: usize,
    pub(super) participant: usize,
    pub(super) endpoint: usize,
}

impl ReserveSize {
    pub(super) fn new(limits: &Limits) -> Self {
        let discovery = limits.discovery();
        let lists = |each| AddressLists::bytes(each, list_len_max(limits));
        let addresses = limits.addresses.saturating_mul(size_of::<core::net::SocketAddrV4>());
        let texts = discovery.name_bytes.saturating_add(discovery.user_data_bytes);
        let announced = (ARC_BYTES + size_of::<Announced>())
            .saturating_add(texts)
            .saturating_add(addresses.saturating_mul(3));
        let endpoints = limits.endpoints_per_participant;
        Self {
            own: announced.saturating_add(lists(LISTS_OF_OWN)),
            participant: (announced.saturating_mul(ANNOUNCED_EACH))
                .saturating_add(lists(LISTS_OF_PARTICIPANT))
                .saturating_add(size_of::<RemoteLists>() + CLAIMS_MAX * size_of::<Claim>())
                .saturating_add(SortedMap::<EntityId, RemoteEntry>::bytes(endpoints)),
            endpoint: lists(LISTS_OF_ENDPOINT),
        }
    }
}

/// The reference counts, and the reference in a list.
pub(super) const ARC_BYTES: usize = 3 * size_of::<usize>();

#[cfg(test)]
mod tests {
    use alloc::vec;
    use core::net::{Ipv4Addr, SocketAddrV4};

    use weir_wire::Guid;

    use super::*;
    use crate::discovery_data::Locators;
    use crate::participant::{ParticipantConfig, ParticipantCore};
    use crate::time::Time;

    #[test]
    fn endpoints_with_addresses_of_their_own_find_lists() {
        let limits = Limits { participants: 1, endpoints_per_participant: 32, addresses: 2, ..Limits::SMALL };
        let config = ParticipantConfig::new(GuidPrefix([1; 12]), 0).with_limits(limits);
        let mut core = ParticipantCore::new(config, Time(1));
        let of = |number: u8, port| SocketAddrV4::new(Ipv4Addr::new(127, 0, 1, number), port);
        let locators = |addresses| Locators { addresses, skipped: 0 };
        let prefix = GuidPrefix([2; 12]);
        let mut announced = Announced::new();
        announced.data.prefix = prefix;
        announced.data.metatraffic_unicast = locators(vec![of(1, 7410)]);
        core.participant_announced(Time(1), *of(1, 0).ip(), Arc::new(announced), true);
        for number in 1..=32 {
            let mut endpoint = EndpointData::nothing();
            endpoint.guid = Guid::new(prefix, EntityId::user_reader(number.into(), false));
            endpoint.unicast = locators(vec![of(number, 1), of(number, 2)]);
            endpoint.multicast = locators(vec![SocketAddrV4::new(Ipv4Addr::new(239, 1, 1, number), 1); 2]);
            core.endpoint_known(prefix, &endpoint, false);
        }
        assert_eq!((core.remote_endpoints(), core.reserve.addresses.beyond()), (32, 0));
    }
}
