//! Samples for which the cache has no room: of which writers, and which of them are the last of their instance.
//!
//! A writer may be lost while its samples wait for room. An instance of it ends behind the last sample of it that
//! waits, once, and whatever waits for other instances.

use alloc::collections::{BTreeMap, VecDeque};

use weir_wire::{Guid, SequenceNumber};

use super::ReaderCore;
use super::changes::ChangesFromWriter;
use crate::key_hasher::Key;
use crate::time::Time;

/// The writers of which a sample was refused.
#[derive(Debug, Default)]
pub(super) struct RefusedWriters {
    /// In the order in which they are resumed.
    queue: VecDeque<Guid>,
    /// There are any. Each access asks, and a flag is one instruction less than the length.
    is_any: bool,
    /// Of those that are lost.
    lost: BTreeMap<Guid, LastSamples>,
}

/// The last sample of each instance among those that wait for nothing but room.
#[derive(Debug)]
struct LastSamples {
    by_key: BTreeMap<[u8; 16], SequenceNumber>,
    /// They were looked through up to this one.
    known_to: SequenceNumber,
}

impl ReaderCore {
    /// Resumes writers whose samples were refused, if there is room now.
    #[inline]
    pub(super) fn room_was_made(&mut self) {
        if self.delivery.refused.is_any() && !self.delivery.cache.is_nearly_full() {
            self.retry_refused();
        }
    }

    /// Resumes the writers whose samples were refused and may have room now, each once, while there is room.
    #[cold]
    fn retry_refused(&mut self) {
        let arrivals = self.arrivals();
        for _ in 0..self.delivery.refused.len() {
            if self.delivery.cache.is_nearly_full() {
                break;
            }
            let Some(guid) = self.delivery.refused.take_first() else { break };
            let Some(index) = self.writers.places.find(&self.writers.list, &guid) else { continue };
            let proxy = &mut self.writers.list[index];
            if !self.delivery.retry_refused(proxy) {
                continue;
            }
            let is_alive = proxy.author().is_alive;
            self.due.add(index);
            self.errands |= Self::REQUEST;
            // The policies know the time of what arrived last.
            self.end_sets_by_policies(Time::ZERO, guid);
            if !is_alive {
                self.drop_late_set(Time::ZERO, guid);
                // An access does not know the time. The next timeout ends the instances.
                self.note_left();
            }
        }
        self.has_late_values |= self.arrivals() > arrivals;
    }

    /// Resumes a writer that waits for room in an instance, or for one instance less: one may have ended since without
    /// an access, so that nothing else would resume it.
    #[cold]
    pub(super) fn retry_instance(&mut self, index: usize) {
        let key = self.writers.list[index].trouble.refused.and_then(|refused| refused.key);
        if key.is_some_and(|key| self.delivery.cache.refusal(Some(key), 0).is_none()) {
            self.retry_refused();
        }
    }
}

impl Default for LastSamples {
    fn default() -> Self {
        Self { by_key: BTreeMap::new(), known_to: SequenceNumber::ZERO }
    }
}

impl RefusedWriters {
    /// Reserves memory for so many writers.
    pub(super) fn fixed(writers: usize) -> Self {
        Self { queue: VecDeque::with_capacity(writers), ..Self::default() }
    }

    /// Memory for so many writers, in bytes.
    pub(super) fn bytes(writers: usize) -> usize {
        writers.saturating_mul(size_of::<Guid>())
    }

    /// Memory as allocated, in bytes, without that of writers that are lost.
    pub(super) fn allocated(&self) -> usize {
        Self::bytes(self.queue.capacity())
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        let samples = self.lost.values().map(|last| last.by_key.len()).sum::<usize>();
        self.allocated() + samples * size_of::<([u8; 16], SequenceNumber)>()
    }

    #[inline]
    pub(super) fn is_any(&self) -> bool {
        self.is_any
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Adds a writer that is not among them.
    pub(super) fn add(&mut self, writer: Guid) {
        self.queue.push_back(writer);
        self.is_any = true;
    }

    /// Takes the writer that was added first.
    pub(super) fn take_first(&mut self) -> Option<Guid> {
        let first = self.queue.pop_front();
        self.is_any = !self.queue.is_empty();
        first
    }

    /// Forgets a writer whose samples do not wait any more.
    pub(super) fn remove(&mut self, writer: Guid) {
        self.queue.retain(|refused| *refused != writer);
        self.is_any = !self.queue.is_empty();
        self.settle(writer);
    }

    /// Forgets the last samples of a writer: none waits for room any more, or the writer is back.
    pub(super) fn settle(&mut self, writer: Guid) {
        self.lost.remove(&writer);
    }

    /// Returns whether no later sample of a writer that is lost waits for this instance. `sn`: the sample that is about
    /// to be placed. `key_of`: the key of the instance of samples with this key.
    pub(super) fn is_last(
        &mut self,
        (writer, sn): (Guid, SequenceNumber),
        key: Key,
        changes: &ChangesFromWriter,
        key_of: impl Fn(Option<Key>) -> Key,
    ) -> bool {
        if changes.is_reserved {
            // There are few, and no memory for more was reserved.
            return !changes.deliverable_from(sn.next()).any(|(_, other)| key_of(other) == key);
        }
        let last = self.lost.entry(writer).or_default();
        // More may have become deliverable.
        for (sn, key) in changes.deliverable_from(last.known_to) {
            last.by_key.insert(key_of(key).to_bytes(), sn);
            last.known_to = sn.next();
        }
        let key = key.to_bytes();
        let is_last = last.by_key.get(&key).is_none_or(|last| *last <= sn);
        if is_last {
            last.by_key.remove(&key);
        }
        is_last
    }
}
