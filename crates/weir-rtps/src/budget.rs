//! What a participant with a limits table takes: before it starts, and while it runs.
//!
//! Both are computed by the same functions, from the sizes of what exists or may exist.

use alloc::vec::Vec;

use crate::limits::Limits;
use crate::participant::ParticipantSize;
use crate::reader::ReaderSize;
use crate::writer::WriterSize;

/// How much memory the parts of a participant take.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Budget {
    /// Each kind of part once.
    pub items: Vec<BudgetItem>,
}

/// Parts of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetItem {
    /// What it is.
    pub part: Part,
    /// The memory of one, in bytes.
    pub bytes_each: usize,
    /// How many there may be.
    pub count: usize,
}

/// A kind of part of a participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Part {
    /// The participant itself, with its builtin endpoints.
    Participant,
    /// A writer, with its history.
    Writer,
    /// A reader matched with a writer.
    WriterMatch,
    /// A reader, with the samples that it keeps.
    Reader,
    /// A remote participant.
    RemoteParticipant,
    /// A remote endpoint.
    RemoteEndpoint,
    /// The relation of a local endpoint with another one of its topic.
    Relation,
}

impl Part {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Participant => "participant",
            Self::Writer => "writer",
            Self::WriterMatch => "match of a writer",
            Self::Reader => "reader",
            Self::RemoteParticipant => "remote participant",
            Self::RemoteEndpoint => "remote endpoint",
            Self::Relation => "relation of endpoints",
        }
    }

    /// Returns when its memory is allocated, and whether the figure is exact or an upper bound.
    #[must_use]
    pub fn is_reserved(self) -> bool {
        matches!(self, Self::Writer | Self::Reader)
    }
}

/// How many parts of each kind there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Our writers.
    pub writers: usize,
    /// Readers matched with them, over all writers.
    pub writer_matches: usize,
    /// Our readers.
    pub readers: usize,
    /// Remote participants.
    pub participants: usize,
    /// Remote endpoints.
    pub endpoints: usize,
    /// Relations of our endpoints with others of their topics.
    pub relations: usize,
}

impl Counts {
    /// Returns the most that a limits table allows.
    #[must_use]
    pub fn most(limits: &Limits) -> Self {
        let endpoints = limits.participants.saturating_mul(limits.endpoints_per_participant);
        let own = limits.writers.saturating_add(limits.readers);
        Self {
            writers: limits.writers,
            writer_matches: limits.writers.saturating_mul(limits.endpoint.matches),
            readers: limits.readers,
            participants: limits.participants,
            endpoints,
            relations: endpoints.saturating_add(own).saturating_mul(own),
        }
    }
}

impl Budget {
    /// Returns the most memory that a participant takes within a limits table.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self::of(limits, Counts::most(limits))
    }

    /// Returns the memory of a participant with so many parts.
    #[must_use]
    pub fn of(limits: &Limits, counts: Counts) -> Self {
        let (writer, reader) = (WriterSize::most(&limits.endpoint), ReaderSize::most(&limits.endpoint));
        let participant = ParticipantSize::new(limits);
        let item = |part, bytes_each, count| BudgetItem { part, bytes_each, count };
        let items = [
            item(Part::Participant, participant.own, 1),
            item(Part::Writer, writer.bytes(), counts.writers),
            item(Part::WriterMatch, writer.match_bytes(), counts.writer_matches),
            item(Part::Reader, reader.bytes(), counts.readers),
            item(Part::RemoteParticipant, participant.remote_participant, counts.participants),
            item(Part::RemoteEndpoint, participant.remote_endpoint, counts.endpoints),
            item(Part::Relation, participant.relation, counts.relations),
        ];
        Self { items: items.to_vec() }
    }

    /// Returns the sum in bytes.
    #[must_use]
    pub fn total(&self) -> usize {
        self.items.iter().map(BudgetItem::bytes).fold(0, usize::saturating_add)
    }
}

impl BudgetItem {
    /// Returns the memory of all of them, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes_each.saturating_mul(self.count)
    }
}
