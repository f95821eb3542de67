//! What a reader keeps about one sample in its cache.

use weir_wire::{Guid, SequenceNumber, Timestamp};

use crate::reader::chunks::ChunkRef;
use crate::writer::ChangeKind;

/// What a sample with a payload of `len` bytes takes, in bytes.
#[inline]
pub(super) fn cost(len: usize) -> usize {
    len + size_of::<Entry>()
}

/// One sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) at: ChunkRef,
    pub(super) kind: ChangeKind,
    pub(super) is_live: bool,
    pub(super) was_read: bool,
    pub(super) instance: u32,
    pub(super) disposed_generation: u32,
    pub(super) no_writers_generation: u32,
    pub(super) source_timestamp: Option<Timestamp>,
    pub(super) writer: Guid,
    pub(super) sequence_number: SequenceNumber,
    /// Position of the next sample of the same instance, when there is one.
    pub(super) next: u64,
}

impl Entry {
    /// No sample.
    pub(super) const VACANT: Self = Self {
        at: ChunkRef::NONE,
        kind: ChangeKind::Alive,
        is_live: false,
        was_read: false,
        instance: 0,
        disposed_generation: 0,
        no_writers_generation: 0,
        source_timestamp: None,
        writer: Guid::UNKNOWN,
        sequence_number: SequenceNumber::UNKNOWN,
        next: 0,
    };
}
