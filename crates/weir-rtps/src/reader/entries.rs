//! The queue of samples in a cache, in order of arrival, chained by instance.

use weir_wire::{Guid, SequenceNumber, Timestamp};

use super::chunks::ChunkRef;
use super::instances::{Instance, Instances};
use super::ring::Ring;
use crate::time::Time;
use crate::writer::ChangeKind;

/// Memory that a sample with a payload of `len` bytes counts for, in bytes.
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
    pub(super) reception_time: Time,
    pub(super) writer: Guid,
    pub(super) sequence_number: SequenceNumber,
    /// Position of the next sample of the same instance, if there is one.
    pub(super) next: u64,
}

impl Entry {
    /// Whether the instance was not born again since the sample arrived: it belongs to the most recent generation (DDS
    /// 1.4, 2.2.2.5.3.8).
    pub(super) fn is_of_latest_generation(&self, instance: &Instance) -> bool {
        (self.disposed_generation, self.no_writers_generation)
            == (instance.disposed_generation, instance.no_writers_generation)
    }

    const VACANT: Self = Self {
        at: ChunkRef::NONE,
        kind: ChangeKind::Alive,
        is_live: false,
        was_read: false,
        instance: 0,
        disposed_generation: 0,
        no_writers_generation: 0,
        source_timestamp: None,
        reception_time: Time::ZERO,
        writer: Guid::UNKNOWN,
        sequence_number: SequenceNumber::UNKNOWN,
        next: 0,
    };
}

/// The queue. A sample has an index, its distance from the front, and a position, which never
/// changes.
///
/// Samples removed from the middle stay as dead entries until they reach the front.
#[derive(Debug)]
pub(super) struct Entries {
    pub(super) ring: Ring<Entry>,
    /// Position of index 0. Positions count up and are never reused.
    front: u64,
    pub(super) live: usize,
    pub(super) unread: usize,
    /// No sample before this position is unread.
    unread_from: u64,
}

impl Entries {
    /// Entries to reserve for so many live ones.
    pub(super) fn room_for(live: usize) -> usize {
        live.saturating_mul(2).saturating_add(DEAD_BESIDE + 2)
    }

    pub(super) fn new() -> Self {
        Self { ring: Ring::new(Entry::VACANT), front: 1, live: 0, unread: 0, unread_from: 0 }
    }

    /// Reserves memory for so many entries.
    pub(super) fn fixed(entries: usize) -> Self {
        Self { ring: Ring::with_room(Entry::VACANT, entries), ..Self::new() }
    }

    /// Memory of so many entries, in bytes.
    pub(super) fn bytes(entries: usize) -> usize {
        Ring::<Entry>::room_for(entries).saturating_mul(size_of::<Entry>())
    }

    /// Whether so many entries are dead that others could soon find no room, if the room was reserved.
    pub(super) fn is_nearly_full(&self) -> bool {
        self.ring.len() > 2 * self.live + DEAD_BESIDE
    }

    /// Whether [`Entries::compact`] is worthwhile.
    #[inline(always)]
    pub(super) fn has_many_dead(&self) -> bool {
        self.ring.len() > 2 * self.live + 1024
    }

    /// The same, after the next value has replaced one (KEEP_LAST).
    #[inline(always)]
    pub(super) fn may_have_many_dead(&self) -> bool {
        self.ring.len() > 2 * self.live.saturating_sub(1) + 1024
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.ring.capacity() * size_of::<Entry>()
    }

    /// The index of the entry at a position.
    #[inline]
    pub(super) fn index_of(&self, position: u64) -> usize {
        (position - self.front) as usize
    }

    /// The entry at a position.
    #[inline]
    pub(super) fn at(&self, position: u64) -> &Entry {
        &self.ring[self.index_of(position)]
    }

    /// The position of the entry at an index.
    #[inline]
    pub(super) fn position_of(&self, index: usize) -> u64 {
        self.front + index as u64
    }

    /// The position of the next entry.
    pub(super) fn end(&self) -> u64 {
        self.position_of(self.ring.len())
    }

    /// Links the next entry to the chain of its instance. Call [`Entries::push_back`] afterwards.
    #[inline(always)]
    pub(super) fn link_back(&mut self, instance: &mut Instance) {
        let position = self.position_of(self.ring.len());
        self.chain(instance, position);
    }

    #[inline(always)]
    fn chain(&mut self, instance: &mut Instance, position: u64) {
        if instance.count == 0 {
            instance.oldest = position;
        } else if let Some(previous) = self.ring.get_mut((instance.newest - self.front) as usize) {
            previous.next = position;
        }
        instance.newest = position;
        instance.count += 1;
    }

    /// Appends an unread entry.
    #[inline(always)]
    pub(super) fn push_back(&mut self, entry: Entry) {
        self.ring.push_back(entry);
        self.live += 1;
        self.unread += 1;
    }

    /// Marks an entry as read.
    #[inline]
    pub(super) fn mark_read(&mut self, index: usize) {
        let was_read = core::mem::replace(&mut self.ring[index].was_read, true);
        self.unread -= usize::from(!was_read);
    }

    /// The front entry, behind dead ones.
    #[inline(always)]
    pub(super) fn front(&mut self) -> Option<&Entry> {
        if self.ring.front().is_some_and(|entry| !entry.is_live) {
            self.trim_dead();
        }
        self.ring.front()
    }

    /// [`Entries::trim`] where dead entries are rare.
    #[cold]
    #[inline(never)]
    fn trim_dead(&mut self) {
        self.trim();
    }

    /// Removes the front entry.
    #[inline(always)]
    pub(super) fn pop_front(&mut self) {
        self.ring.pop_front();
        self.front += 1;
    }

    /// Removes dead entries from the front.
    #[inline]
    pub(super) fn trim(&mut self) {
        while self.ring.front().is_some_and(|entry| !entry.is_live) {
            self.pop_front();
        }
    }

    /// The index before which every sample was read.
    pub(super) fn first_unread(&mut self) -> usize {
        let start = self.unread_from.saturating_sub(self.front) as usize;
        let rest = (start..).map_while(|index| self.ring.get(index));
        let first = start + rest.take_while(|entry| !entry.is_live || entry.was_read).count();
        self.unread_from = self.position_of(first);
        first
    }

    /// Positions of the samples of an instance, oldest first.
    pub(super) fn of<'a>(&'a self, instance: &Instance) -> impl Iterator<Item = u64> + use<'a> {
        let next = move |&position: &u64| Some(self.ring.get(self.index_of(position))?.next);
        core::iter::successors(Some(instance.oldest), next).take(instance.count as usize)
    }

    /// The position of the oldest value of an instance, or of its oldest state change.
    pub(super) fn oldest(&self, instance: &Instance, is_value: bool) -> Option<u64> {
        self.of(instance).find(|position| (self.at(*position).kind == ChangeKind::Alive) == is_value)
    }

    /// Removes an entry from the chain of its instance, which has others. `next`: the position of
    /// the next one.
    #[inline]
    pub(super) fn unlink(&mut self, instance: &mut Instance, position: u64, next: u64) {
        if instance.oldest == position {
            instance.oldest = next;
        } else {
            self.unlink_inner(instance, position, next);
        }
    }

    #[inline(never)]
    fn unlink_inner(&mut self, instance: &mut Instance, position: u64, next: u64) {
        let mut before = instance.oldest;
        while let Some(entry) = self.ring.get_mut((before - self.front) as usize) {
            if entry.next == position {
                entry.next = next;
                break;
            }
            before = entry.next;
        }
        if instance.newest == position {
            instance.newest = before;
        }
    }

    /// Removes dead entries between live ones, and chains the others again. An instance that is
    /// never taken would otherwise keep the entries of all others alive.
    pub(super) fn compact(&mut self, instances: &mut Instances) {
        self.ring.retain(|entry| entry.is_live);
        for entry in self.ring.iter() {
            instances.get_mut(entry.instance).count = 0;
        }
        for index in 0..self.ring.len() {
            let position = self.position_of(index);
            self.chain(instances.get_mut(self.ring[index].instance), position);
        }
        self.unread_from = 0;
    }
}

/// Dead entries beside as many as there are live ones, if the room was reserved.
const DEAD_BESIDE: usize = 16;
