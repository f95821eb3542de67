//! The memory of a participant with a limits table, without its endpoints.
//!
//! The builtin endpoints reserve theirs. What is kept of other participants is allocated when it is announced, and
//! freed when it is gone. For these, the sizes are upper bounds.

use weir_wire::Guid;

use super::ParticipantCore;
use super::builtin::BuiltinEndpoints;
use super::claim::{Announcement, CLAIMS_MAX, Claim};
use super::news::{PAIR_BYTES, PairKey};
use super::remote_participant::{RemoteEntry, RemoteParticipant};
use crate::limits::Limits;
use crate::qos::Qos;
use crate::time::Time;

/// The most memory that the parts of a participant take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParticipantSize {
    /// What a participant without peers takes: its builtin endpoints, and the buffers for its messages.
    pub own: usize,
    /// A remote participant.
    pub remote_participant: usize,
    /// A remote endpoint.
    pub remote_endpoint: usize,
    /// The relation of a local endpoint with another one of its topic.
    pub relation: usize,
}

impl ParticipantSize {
    /// Returns the sizes within a limits table.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        let (builtin, builtin_match) = BuiltinEndpoints::bytes(limits);
        let addresses = limits.addresses.saturating_mul(GROWTH * ADDRESS_BYTES);
        // An announcement as it is kept: a name, and addresses of three kinds.
        let announced = limits.text_bytes.saturating_mul(2).saturating_add(addresses.saturating_mul(3));
        // The newest, one that waits, that of a second host, and those of hosts that may forge it.
        let announcements =
            announced.saturating_add(size_of::<Announcement>()).saturating_mul(2 + CLAIMS_MAX);
        let remote_participant = in_map(size_of::<RemoteParticipant>() + 2 * size_of::<Guid>())
            .saturating_add(announced)
            .saturating_add(announcements)
            .saturating_add(CLAIMS_MAX * size_of::<Claim>() * GROWTH)
            .saturating_add(builtin_match)
            .saturating_add(in_map(size_of::<(Time, Guid)>()) + PROBES_BYTES);
        // Texts in the entry, and a copy in an event that waits.
        let texts = limits.text_bytes.saturating_mul(2);
        let remote_endpoint = in_map(size_of::<RemoteEntry>() + size_of::<Guid>())
            .saturating_add(texts)
            .saturating_add(addresses.saturating_mul(3))
            .saturating_add(size_of::<Qos>() + COUNTS);
        let endpoints = limits.writers.saturating_add(limits.readers);
        Self {
            own: builtin
                .saturating_add(size_of::<ParticipantCore>() + BUFFERS_BYTES)
                .saturating_add(endpoints.saturating_mul(OWN_ENDPOINT_BYTES.saturating_add(texts)))
                .saturating_add(limits.participants.saturating_mul(PEER_BUFFERS_BYTES)),
            remote_participant,
            remote_endpoint,
            relation: in_map(size_of::<PairKey>() + PAIR_BYTES) + GROWTH * PAIR_BYTES,
        }
    }
}

impl ParticipantCore {
    /// Returns the memory of the builtin endpoints as allocated, in bytes, if there is a limits table.
    #[must_use]
    pub fn builtin_allocated(&self) -> usize {
        self.builtin.allocated()
    }

    /// Returns the number of relations of our endpoints with others of their topics.
    #[must_use]
    pub fn relations(&self) -> usize {
        self.news.relations()
    }

    /// Returns the number of our writers and readers.
    #[must_use]
    pub fn local_endpoints(&self) -> usize {
        self.locals.len()
    }
}

/// Returns the most memory of an element of a map: nodes are at least half full, but for the root.
fn in_map(bytes: usize) -> usize {
    bytes * 11 / 5 + COUNTS
}

/// An address in a list.
const ADDRESS_BYTES: usize = size_of::<core::net::SocketAddrV4>();
/// Lists take up to twice what is in them.
const GROWTH: usize = 2;
/// Reference counts, or the head of a node.
const COUNTS: usize = 16;
/// What is sent to a participant to find its path's size, and whether it is still there.
const PROBES_BYTES: usize = 1024;
/// The buffers for messages that leave together.
const BUFFERS_BYTES: usize = 64 * 1024;
/// What is sent to one more participant at the same time, and its host's account.
const PEER_BUFFERS_BYTES: usize = 4 * 1024;
/// A local endpoint, without its texts.
const OWN_ENDPOINT_BYTES: usize = 2 * 1024;
