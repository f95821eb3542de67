//! Peers whose endpoints are known beforehand: static endpoint discovery.
//!
//! Participants are found by SPDP as always. Of one whose name is known here, the endpoints are taken from here at
//! once, without waiting for SEDP. What such a peer announces by SEDP replaces what is known of the endpoint; a
//! difference is counted and recorded.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use weir_wire::{EntityId, Guid};

use crate::qos::{PolicyId, PolicySet, Qos, XCDR1};

/// The peers by their names (`ENTITY_NAME` of their announcements).
pub type StaticPeers = Arc<BTreeMap<String, StaticPeer>>;

/// A participant whose endpoints are known beforehand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticPeer {
    /// Its hosts. A peer without SEDP cannot show that it receives what is sent to it, so it is believed only if all
    /// its unicast addresses are here or on this host.
    pub hosts: Vec<Ipv4Addr>,
    /// Its writers and readers.
    pub endpoints: Vec<StaticEndpoint>,
}

/// An endpoint that is known beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticEndpoint {
    /// Its id, which includes whether it writes or reads and whether its topic has a key.
    pub entity: EntityId,
    /// The topic's name.
    pub topic: String,
    /// The name of the topic's type.
    pub type_name: String,
    /// Its offered or requested policies.
    pub qos: Arc<Qos>,
}

impl StaticEndpoint {
    /// Returns the memory of its names and partitions in bytes, as
    /// [`Limits::text_bytes`](crate::limits::Limits::text_bytes) counts it.
    #[must_use]
    pub fn texts(&self) -> usize {
        let partitions = self.qos.partition.iter().map(|name| name.len() + size_of::<String>());
        self.topic.len() + self.type_name.len() + partitions.sum::<usize>()
    }
}

/// How the announcement of an endpoint differs from what was known of it beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StaticDifference {
    /// The endpoint that was announced.
    pub endpoint: Guid,
    /// It has another topic.
    pub topic: bool,
    /// It has another type.
    pub type_name: bool,
    /// Its topic has a key, and the known one has none, or the other way round.
    pub key: bool,
    /// These policies have other values.
    pub policies: PolicySet,
}

impl StaticDifference {
    /// Returns the difference of an endpoint as announced from a known one; `None` if there is none.
    pub(crate) fn between(
        endpoint: Guid,
        known: (EntityId, &str, &str, &Qos),
        announced: (&str, &str, &Qos),
    ) -> Option<Self> {
        let (entity, topic, type_name, qos) = known;
        let difference = Self {
            endpoint,
            topic: topic != announced.0,
            type_name: type_name != announced.1,
            key: entity != endpoint.entity,
            policies: differing(qos, announced.2, endpoint.entity.is_writer()),
        };
        (difference
            != Self { topic: false, type_name: false, key: false, policies: PolicySet::EMPTY, endpoint })
        .then_some(difference)
    }
}

impl core::fmt::Display for StaticDifference {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} announces another", self.endpoint)?;
        let parts = [("topic", self.topic), ("type", self.type_name), ("key", self.key)];
        let parts = parts.into_iter().filter_map(|(name, differs)| differs.then_some(name));
        for (index, name) in parts.chain(self.policies.iter().map(PolicyId::name)).enumerate() {
            write!(f, "{} {name}", if index == 0 { "" } else { "," })?;
        }
        f.write_str(" than was known beforehand")
    }
}

/// Returns the policies of an endpoint that differ from what is known of it beforehand: those that decide whether
/// endpoints match, and how one serves the other. What a peer keeps for itself, such as its HISTORY, is not compared,
/// and an empty list of representations stands for any.
#[must_use]
pub fn differing(known: &Qos, actual: &Qos, is_writer: bool) -> PolicySet {
    // An announcement without representations means XCDR1 (DDS-XTypes 1.3, 7.6.3.1.1).
    let is_xcdr1 = actual.representation.is_empty() && known.representation == [XCDR1];
    let has_other_representation =
        !known.representation.is_empty() && !is_xcdr1 && known.representation != actual.representation;
    [
        (PolicyId::Reliability, known.reliability != actual.reliability),
        (PolicyId::Durability, known.durability != actual.durability),
        (PolicyId::Deadline, known.deadline != actual.deadline),
        (PolicyId::LatencyBudget, known.latency_budget != actual.latency_budget),
        (PolicyId::Ownership, known.ownership != actual.ownership),
        (PolicyId::OwnershipStrength, is_writer && known.ownership_strength != actual.ownership_strength),
        (PolicyId::Liveliness, known.liveliness != actual.liveliness),
        (PolicyId::DestinationOrder, known.destination_order != actual.destination_order),
        (PolicyId::Presentation, known.presentation != actual.presentation),
        (PolicyId::Partition, known.partition != actual.partition),
        (PolicyId::DataRepresentation, has_other_representation),
    ]
    .into_iter()
    .filter_map(|(policy, differs)| differs.then_some(policy))
    .collect()
}
