//! Keeping the memory of the cache in proportion to what is in it, however samples come and go.

use super::{Cache, Held};
use crate::config;

impl Cache {
    /// Whether pieces of memory are kept mostly for a few samples in them, although those that wait move all the time:
    /// those that are held back are not reached by [`Cache::sweep`].
    #[inline]
    pub(in crate::reader) fn is_sparse(&self) -> bool {
        self.chunks.memory() > config::READER_SPARSE_BYTES
            && self.chunks.used() > config::READER_SPARSE_BYTES + 4 * self.chunks.live_bytes()
    }

    /// Lays the samples that wait together, whose pieces of memory others have left.
    pub(in crate::reader) fn lay_together(&mut self) {
        self.chunks.seal();
        for index in 0..self.entries.len() {
            let entry = &mut self.entries[index];
            if entry.is_live {
                self.chunks.relocate(&mut entry.at);
            }
        }
    }

    /// The same for one that is held back.
    pub(in crate::reader) fn move_held(&mut self, held: &mut Held) {
        self.chunks.relocate(&mut held.at);
    }

    /// Removes the dead entries between living ones, so that an instance that is never taken does not hold
    /// up the memory of those that come and go.
    #[cold]
    pub(super) fn compact(&mut self) {
        self.entries.retain(|entry| entry.is_live);
        for entry in self.entries.iter() {
            self.instances.get_mut(entry.instance).count = 0;
        }
        let (mut position, entries) = (self.front, &mut self.entries);
        for index in 0..entries.len() {
            let instance = self.instances.get_mut(entries[index].instance);
            if instance.count == 0 {
                instance.oldest = position;
            } else {
                let newest = (instance.newest - self.front) as usize;
                entries[newest].next = position;
            }
            instance.newest = position;
            instance.count += 1;
            position += 1;
        }
        self.unread_from = 0;
    }

    /// Moves some of the payloads that lie in mostly dead chunks to others. It goes round all entries while a fixed
    /// number of chunks is filled, so that a sample is not held up for long.
    #[cold]
    pub(super) fn sweep(&mut self) {
        let count = self.entries.len();
        let start = self.swept_to.checked_sub(self.front).map_or(0, |start| start as usize);
        let start = if start < count { start } else { 0 };
        let end = (start + SWEPT_AT_A_TIME.max(count / CHUNKS_A_ROUND)).min(count);
        for index in start..end {
            let entry = &mut self.entries[index];
            if entry.is_live && self.chunks.is_stranded(entry.at) {
                self.chunks.relocate(&mut entry.at);
            }
        }
        self.swept_to = self.front + end as u64;
        // The chunks that were filled by moving do not count.
        self.chunks.note_filled();
    }
}

/// Entries that are looked at whenever a chunk is full, at least.
const SWEPT_AT_A_TIME: usize = 1024;
/// Chunks that are filled while all entries are looked at.
const CHUNKS_A_ROUND: usize = 32;
