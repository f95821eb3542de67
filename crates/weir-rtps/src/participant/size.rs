//! The memory of a participant with a limits table, without its endpoints.
//!
//! All of it is reserved at the start, but the texts in the policies of remote endpoints. The sizes are upper bounds.

use weir_wire::{Guid, GuidPrefix};

use super::ParticipantCore;
use super::builtin::BuiltinEndpoints;
use super::news::News;
use super::remote_participant::RemoteParticipant;
use super::reserve::{MessageRoom, ReserveSize};
use super::shared::Shared;
use super::validation::Validation;
use crate::budget::Counts;
use crate::limits::Limits;
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
        let (reserve, (names, besides)) = (ReserveSize::new(limits), Shared::bytes(limits));
        let texts = limits.text_bytes.saturating_mul(2);
        let remote_participant = (size_of::<(GuidPrefix, RemoteParticipant)>()
            + size_of::<(Time, GuidPrefix)>())
        .saturating_add(reserve.participant)
        .saturating_add(in_map(size_of::<(Time, Guid)>()) + PROBES_BYTES);
        // What is not reserved: the texts of policies, and a filter.
        let remote_endpoint = names.saturating_add(reserve.endpoint).saturating_add(texts);
        let own_endpoints = limits.writers.saturating_add(limits.readers);
        let relations = Counts::most(limits).relations.max(1);
        Self {
            own: (BuiltinEndpoints::bytes(limits))
                .saturating_add(size_of::<ParticipantCore>() + BUFFERS_BYTES)
                .saturating_add(MessageRoom::of(Some(limits)).memory())
                .saturating_add(Validation::bytes(limits))
                .saturating_add(reserve.own)
                .saturating_add(besides)
                .saturating_add(own_endpoints.saturating_mul(OWN_ENDPOINT_BYTES.saturating_add(texts))),
            remote_participant,
            remote_endpoint,
            relation: News::bytes(limits).div_ceil(relations),
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

/// The head of a node.
const COUNTS: usize = 16;
/// What is sent to a participant to find its path's size, and whether it is still there.
const PROBES_BYTES: usize = 1024;
/// Buffers for announcements, of the endpoint that is read and of our own, and the groups that are announced to.
const BUFFERS_BYTES: usize = 16 * 1024;
/// A local endpoint, without its texts.
const OWN_ENDPOINT_BYTES: usize = 2 * 1024;
