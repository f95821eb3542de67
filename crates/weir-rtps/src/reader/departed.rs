//! Writers that are no longer matched, and the position at which the reader stopped.
//!
//! A writer whose lease expired because its packets were lost is matched again later under the same
//! GUID. Without this record the reader would start over and deliver everything that the writer
//! still keeps a second time. A GUID names one writer for ever (RTPS 2.5, 8.2.4.2), so the reader
//! resumes where it stopped.

use std::collections::VecDeque;

use weir_wire::{Guid, SequenceNumber};

use super::counts::Counts;
use crate::config;

/// The position in a writer's samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Departed {
    pub(super) guid: Guid,
    /// The next sample to deliver.
    pub(super) expected: SequenceNumber,
    pub(super) counts: Counts,
}

/// The last writers to depart, at most [`config::DEPARTED_WRITERS_MAX`].
#[derive(Debug, Default)]
pub(super) struct DepartedWriters {
    /// Oldest first.
    list: VecDeque<Departed>,
}

impl DepartedWriters {
    /// Adds a writer. Returns whether another one was forgotten for it.
    pub(super) fn remember(&mut self, departed: Departed) -> bool {
        let is_full = self.list.len() >= config::DEPARTED_WRITERS_MAX;
        if is_full {
            self.list.pop_front();
        }
        self.list.push_back(departed);
        is_full
    }

    /// Removes and returns a writer.
    pub(super) fn recall(&mut self, guid: Guid) -> Option<Departed> {
        let index = self.list.iter().position(|departed| departed.guid == guid)?;
        self.list.remove(index)
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.list.capacity() * size_of::<Departed>()
    }
}
