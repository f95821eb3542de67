//! Readers that a writer has forgotten, and that do not know where its samples begin.

use alloc::collections::VecDeque;

use weir_wire::Guid;

use crate::config;

/// The readers whose first HEARTBEAT was [put off](super::WriterCore::spare_heartbeat), and that were unmatched before
/// it was sent and answered, oldest first.
///
/// The writer may be wrong: announcements of a reader's participant that are lost end a lease on one side only. Such a
/// reader still counts as matched, and what is written until the writer matches it again is lost to it. It can count
/// that only if it knows that the samples from the first one on were meant for it, which the HEARTBEAT that was put off
/// would have said. Only the writer knows that this reader was matched when nothing was written.
#[derive(Debug)]
pub(super) struct Untold {
    list: VecDeque<Guid>,
    max: usize,
}

impl Default for Untold {
    fn default() -> Self {
        Self { list: VecDeque::new(), max: config::UNTOLD_READERS_MAX }
    }
}

impl Untold {
    /// Reserves memory for so many readers.
    pub(super) fn fixed(readers: usize) -> Self {
        let max = room(readers);
        Self { list: VecDeque::with_capacity(max), max }
    }

    /// Returns the memory for so many readers, in bytes.
    pub(super) fn bytes(readers: usize) -> usize {
        room(readers) * size_of::<Guid>()
    }

    /// Returns the memory allocated, in bytes.
    pub(super) fn allocated(&self) -> usize {
        self.list.capacity() * size_of::<Guid>()
    }

    /// Adds a reader that is not there. Returns whether another one was forgotten for it.
    pub(super) fn add(&mut self, reader: Guid) -> bool {
        let is_full = self.list.len() >= self.max;
        if is_full {
            self.list.pop_front();
        }
        self.list.push_back(reader);
        is_full
    }

    /// Removes a reader. Returns whether it was there.
    pub(super) fn remove(&mut self, reader: Guid) -> bool {
        let index = self.list.iter().position(|known| *known == reader);
        index.and_then(|index| self.list.remove(index)).is_some()
    }
}

fn room(readers: usize) -> usize {
    readers.clamp(1, config::UNTOLD_READERS_MAX)
}
