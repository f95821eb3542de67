//! The cache: samples that wait for the application, in order of arrival (DDS 1.4, 2.2.2.5).

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use weir_wire::{Guid, ParameterList, SequenceNumber, Timestamp};

use super::chunks::{ChunkRef, Chunks};
use super::coherence::Coherence;
use super::config::{KeyPayloadOf, ReaderConfig};
use super::enforced::{AccessOrder, Enforced};
use super::entries::{Entries, Entry, cost};
use super::instances::{Instance, Instances};
use super::limits::Limits;
use super::raw_sample::{RawSample, SampleSelection};
use super::rejection::Rejection;
use super::sample::Sample;
use super::size::ReaderSize;
use super::states::States;
use super::stored::StoredSample;
use super::writer_proxy::Author;
use crate::block::Block;
use crate::config;
use crate::key_hasher::Key;
use crate::time::Time;
use crate::writer::ChangeKind;

/// The samples of a reader: those in the queue, and those held back, whose payloads are stored here
/// too.
#[derive(Debug)]
pub(super) struct Cache {
    limits: Limits,
    key_payload_of: Option<KeyPayloadOf>,
    pub(super) chunks: Chunks,
    pub(super) entries: Entries,
    pub(super) instances: Instances,
    /// Samples in the queue without data: ends of instances.
    ends: usize,
    /// Samples held back, and their cost.
    pub(super) held: usize,
    pub(super) held_bytes: usize,
    /// Cost of the samples in the queue.
    bytes: usize,
    /// Length of the last payload.
    recent_len: usize,
    /// Position at which the next [`Cache::sweep`] starts.
    swept_to: u64,
    /// Number of accesses so far.
    pub(super) accesses: u64,
    /// Instances updated because a writer of theirs left.
    pub(super) left: u64,
    /// When a writer left, or the last instance of one was ended.
    pub(super) left_at: Time,
    /// Policies that leave samples out; `None`: there are none.
    pub(super) enforced: Option<Box<Enforced>>,
}

impl Cache {
    pub(super) fn new(config: &ReaderConfig, size: Option<&ReaderSize>) -> Self {
        Self {
            limits: Limits::new(config),
            key_payload_of: config.key_payload_of,
            chunks: size.map_or_else(Chunks::default, |size| Chunks::fixed(size.chunks)),
            entries: size.map_or_else(Entries::new, |size| Entries::fixed(size.entries)),
            instances: Instances::new(config, size.map(|size| size.instances)),
            ends: 0,
            held: 0,
            held_bytes: 0,
            bytes: 0,
            recent_len: 0,
            swept_to: 0,
            accesses: 0,
            left: 0,
            left_at: Time::ZERO,
            enforced: Enforced::new(config),
        }
    }

    /// Why there is no room for a sample with a payload of `len` bytes, or `None` if there is. An
    /// empty cache has room for one sample of any size. Samples held back do not count: the sample
    /// that they wait for must find room.
    #[inline]
    pub(super) fn refusal(&mut self, key: Option<Key>, len: usize) -> Option<Rejection> {
        let live = self.entries.live;
        let is_crowded = live >= self.limits.crowded_from
            || (self.bytes + cost(len) > self.limits.max_bytes && live > 0)
            || self.instances.is_nearly_full();
        if is_crowded { self.refusal_of(ChangeKind::Alive, key, len) } else { None }
    }

    /// Whether there is no room, either, if a sample that would be refused as a value is the end of an instance.
    #[cold]
    pub(super) fn refuses(&mut self, kind: ChangeKind, key: Option<Key>, len: usize) -> bool {
        kind == ChangeKind::Alive || self.refusal_of(kind, key, len).is_some()
    }

    /// [`Cache::refusal`] for a value or the end of an instance.
    pub(super) fn refusal_by_kind(
        &mut self,
        kind: ChangeKind,
        key: Option<Key>,
        len: usize,
    ) -> Option<Rejection> {
        self.refusal(key, len).filter(|_| self.refuses(kind, key, len))
    }

    #[cold]
    fn refusal_of(&mut self, kind: ChangeKind, key: Option<Key>, len: usize) -> Option<Rejection> {
        if self.limits.is_fixed && self.entries.is_nearly_full() {
            self.compact_entries();
        }
        if self.is_too_long(len) {
            return Some(Rejection::BytesLimit);
        }
        if !self.instances.has_room(key) {
            return Some(Rejection::InstancesLimit);
        }
        let (limits, live) = (&self.limits, self.entries.live);
        let counts = kind == ChangeKind::Alive || !self.leaves_ends_uncounted();
        let instance = self.instances.lookup(key).map(|index| self.instances.get(index));
        let values = instance.map_or(0, Instance::values);
        let replaced = instance.filter(|_| counts && limits.depth.is_some_and(|depth| values >= depth));
        // Of a reader without accessible samples, only a set that can be dropped takes the room.
        let (waiting, waiting_bytes) = self.coherence().map_or((0, 0), Coherence::held);
        let counted = if live == 0 { 0 } else { self.counted() + waiting };
        if counts && replaced.is_none() && counted >= limits.max_samples {
            return Some(Rejection::SamplesLimit);
        }
        if counts && limits.depth.is_none() && values >= limits.max_samples_per_instance {
            return Some(Rejection::SamplesPerInstanceLimit);
        }
        let freed = replaced
            .and_then(|instance| self.entries.oldest(instance, true))
            .map_or(0, |position| cost(self.entries.at(position).at.len as usize));
        (self.bytes + waiting_bytes + cost(len) > limits.max_bytes.saturating_add(freed) && live > 0)
            .then_some(Rejection::BytesLimit)
    }

    /// Whether ends of instances do not count against limits of samples (DDS 1.4, 2.2.2.5.3.8). There are no more of
    /// them than values and instances. The memory of a fixed cache holds both, and without a key, any number may end.
    fn leaves_ends_uncounted(&self) -> bool {
        self.instances.is_keyed && !self.limits.is_fixed
    }

    /// Samples that count against the limit of samples.
    fn counted(&self) -> usize {
        self.entries.live - if self.leaves_ends_uncounted() { self.ends } else { 0 }
    }

    /// Whether a sample is longer than the limits table allows, so that it never finds room.
    pub(super) fn is_too_long(&self, len: usize) -> bool {
        len > self.limits.sample_bytes
    }

    /// Whether a sample is left out because of its content. `list`: its inline QoS. `in_turn`: it is the next of its
    /// writer.
    ///
    /// The end of an instance passes if some value of it did. Whether one has is only known when it is its turn.
    #[cold]
    pub(super) fn leaves_out(
        &mut self,
        sample: &Sample<'_>,
        list: Option<&ParameterList<'_>>,
        in_turn: bool,
    ) -> bool {
        let Some(enforced) = &mut self.enforced else { return false };
        let is_left_out = match sample.kind {
            ChangeKind::Alive => enforced.rejects(sample.payload, list),
            _ => in_turn && enforced.filters_content() && self.instances.lookup(sample.key).is_none(),
        };
        enforced.counts.content_filtered += u64::from(is_left_out);
        is_left_out
    }

    /// Whether a sample that was held back ends an instance of which no value has passed the content filter.
    pub(super) fn ends_unknown_instance(&self, stored: &StoredSample) -> bool {
        let filters = self.enforced.as_ref().is_some_and(|enforced| enforced.filters_content());
        filters && stored.kind != ChangeKind::Alive && self.instances.lookup(stored.key()).is_none()
    }

    /// Whether there is no room to hold back a sample with a payload of `len` bytes.
    #[inline]
    pub(super) fn is_full_of_held(&self, len: usize) -> bool {
        self.held >= self.limits.held || self.is_too_long(len) || self.is_full_with_held(len)
    }

    /// Whether there is no room for it beside what the application has not taken.
    #[inline]
    pub(super) fn is_full_with_held(&self, len: usize) -> bool {
        let count = self.counted() + self.held;
        (count >= self.limits.max_samples && self.limits.depth.is_none())
            || self.bytes + self.held_bytes + cost(len) > self.limits.max_bytes
    }

    /// Estimated number of samples for which there is room, if they are as long as the last one; at
    /// least one.
    pub(super) fn room(&self) -> usize {
        let samples = match self.limits.depth {
            None => self.limits.max_samples.saturating_sub(self.counted() + self.held),
            Some(_) => usize::MAX,
        };
        let bytes = self.limits.max_bytes.saturating_sub(self.bytes + self.held_bytes);
        samples.min(bytes / cost(self.recent_len)).max(1)
    }

    /// Whether requesting more samples is pointless. Reached some time before [`Cache::refusal`]
    /// refuses one.
    pub(super) fn is_nearly_full(&self) -> bool {
        self.counted() >= self.limits.max_samples || self.bytes > self.limits.max_bytes / 4 * 3
    }

    /// Number of samples in the queue.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.entries.live
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.chunks.memory
            + self.entries.memory()
            + self.instances.memory()
            + self.enforced.as_ref().map_or(0, |enforced| enforced.memory())
    }

    /// Memory as allocated, in bytes, without that of policies.
    pub(super) fn allocated(&self) -> usize {
        self.chunks.allocated() + self.entries.memory() + self.instances.allocated()
    }

    /// Appends a sample. The payload stays in `block` if it lies there and that is worthwhile.
    ///
    /// Always inlined: passing the sample through memory causes a store-forwarding stall.
    #[inline(always)]
    pub(super) fn push<const BY_POLICIES: bool>(
        &mut self,
        now: Time,
        writer: Guid,
        sn: SequenceNumber,
        sample: &Sample<'_>,
        block: Option<&Arc<Block>>,
    ) {
        let at = block.and_then(|block| self.chunks.borrow(sample.payload, block));
        let stored = self.store(sample, at);
        if BY_POLICIES {
            // Its sample has just arrived.
            let author = Author { guid: writer, is_alive: true, is_last: true };
            self.place_if_admitted(now, author, sn, stored);
        } else {
            self.place::<false>(now, writer, sn, stored);
        }
    }

    /// Stores a sample that is held back.
    #[inline]
    pub(super) fn hold(&mut self, sample: &Sample<'_>) -> StoredSample {
        self.held += 1;
        self.held_bytes += cost(sample.payload.len());
        self.store(sample, None)
    }

    /// Stores a sample. `at`: where the payload lies; `None`: it is copied.
    #[inline(always)]
    fn store(&mut self, sample: &Sample<'_>, at: Option<ChunkRef>) -> StoredSample {
        self.recent_len = sample.payload.len();
        let at = at.unwrap_or_else(|| self.chunks.store(sample.payload));
        StoredSample::new(at, sample.kind, sample.key, sample.source_timestamp)
    }

    /// Stores a sample that was assembled from fragments, without copying it, as held back.
    pub(super) fn hold_whole(
        &mut self,
        kind: ChangeKind,
        key: Option<Key>,
        source_timestamp: Option<Timestamp>,
        whole: Arc<Block>,
        len: usize,
    ) -> StoredSample {
        self.held += 1;
        self.held_bytes += cost(len);
        self.recent_len = len;
        StoredSample::new(self.chunks.adopt(whole, len), kind, key, source_timestamp)
    }

    /// Drops a sample that was held back.
    pub(super) fn drop_held(&mut self, stored: StoredSample) {
        self.count_released(stored);
        self.chunks.release(stored.at);
    }

    /// Appends a sample that was held back.
    #[inline(never)]
    pub(super) fn push_held(&mut self, now: Time, author: Author, sn: SequenceNumber, stored: StoredSample) {
        self.count_released(stored);
        if self.enforced.is_some() {
            return self.place_if_admitted(now, author, sn, stored);
        }
        if self.instances.registrations.has_left() {
            self.end_left_of(now, author.guid, stored.key());
        }
        self.place::<false>(now, author.guid, sn, stored);
        self.leave_behind(now, author, stored.key());
    }

    pub(super) fn count_released(&mut self, stored: StoredSample) {
        self.held -= 1;
        self.held_bytes -= cost(stored.len());
    }

    /// Appends a stored sample, unless it changes nothing: an end of an instance that has ended
    /// before. Returns whether it did. `IS_ADMITTED`: the policies have admitted it, if there are any.
    ///
    /// Always inlined, so that the sample stays in registers.
    #[inline(always)]
    pub(super) fn place<const IS_ADMITTED: bool>(
        &mut self,
        now: Time,
        writer: Guid,
        sn: SequenceNumber,
        stored: StoredSample,
    ) -> bool {
        let Some(index) = self.instances.index(stored.key()) else {
            self.chunks.release(stored.at);
            return false;
        };
        if !IS_ADMITTED && self.enforced.is_some() && !self.note_plain(now, &writer, index) {
            // Its sample has just arrived.
            let author = Author { guid: writer, is_alive: true, is_last: true };
            self.place_by_policies(now, author, sn, stored);
            return true;
        }
        // Without a key, the payload says what has ended, as in discovery.
        let is_keyed = self.instances.is_keyed;
        let (instance, registrations) = self.instances.get_to_change(index);
        let is_change = instance.change(stored.kind, writer, (index, registrations)) || !is_keyed;
        if let Some(key_payload_of) = self.key_payload_of
            && instance.key_payload.is_none()
        {
            self.keep_key(index, stored.at, stored.kind, key_payload_of);
        }
        if !is_change {
            self.chunks.release(stored.at);
            self.instances.forget_if_over(index);
            return false;
        }
        self.make_room(index, stored.kind);
        self.append(now, index, writer, sn, stored);
        true
    }

    #[cold]
    fn keep_key(&mut self, index: u32, at: ChunkRef, kind: ChangeKind, of: KeyPayloadOf) {
        self.instances.keep_key_payload(index, self.chunks.bytes(at), kind, of);
    }

    /// KEEP_LAST: removes the value that a new one replaces. A state change replaces an earlier one
    /// and no value: it comes on top of the depth.
    #[inline(always)]
    pub(super) fn make_room(&mut self, index: u32, kind: ChangeKind) {
        if let Some(depth) = self.limits.depth {
            self.make_room_within(depth, index, kind);
        }
    }

    #[inline]
    fn make_room_within(&mut self, depth: usize, index: u32, kind: ChangeKind) {
        let instance = self.instances.get(index);
        let is_value = kind == ChangeKind::Alive;
        let is_replacing = if is_value { instance.values() >= depth } else { instance.state_changes > 0 };
        if is_replacing && let Some(position) = self.entries.oldest(instance, is_value) {
            self.remove(self.entries.index_of(position));
            self.entries.trim();
        }
    }

    /// The payload that holds the key of an instance, if it is known.
    pub(super) fn instance_key(&self, instance: u32) -> Option<&[u8]> {
        (instance < self.instances.end()).then(|| self.instances.get(instance).key_payload.as_deref())?
    }

    /// The first instance behind `after` that has samples in these states.
    pub(super) fn next_instance(&mut self, after: Option<Key>, states: States) -> Option<u32> {
        let entries = &self.entries;
        self.instances.next(after, |_, instance| {
            states == States::ANY
                || entries.of(instance).any(|position| {
                    let was_read = entries.at(position).was_read;
                    states.contains(was_read, instance.viewed_by == 0, instance.state)
                })
        })
    }

    /// Removes the oldest sample and passes it to `f`. Does what [`Cache::show`] and
    /// [`Cache::remove`] do for any sample, in one step for the first, which is the oldest of its
    /// instance.
    #[inline(always)]
    pub(super) fn take_next(&mut self, f: impl FnOnce(RawSample<'_>)) -> bool {
        let Some(&Entry { at, kind, was_read, instance: index, next, .. }) = self.entries.front() else {
            return false;
        };
        self.accesses += 1;
        self.show(0, f);
        let instance = self.release(at, kind, was_read, index);
        instance.oldest = next;
        if instance.count == 0 {
            let is_over = instance.is_over();
            self.instances.set_occupied(index, false);
            if is_over {
                self.instances.forget(index);
            }
        }
        // Dead entries behind it stay until the next access.
        self.entries.pop_front();
        true
    }

    /// Passes samples to `f`, until `max` of them counted: those for which `f` returned `true`. The
    /// others are removed.
    pub(super) fn access(
        &mut self,
        max: usize,
        selection: SampleSelection,
        remove: bool,
        mut f: impl FnMut(RawSample<'_>) -> bool,
    ) -> usize {
        self.accesses += 1;
        let states = selection.states;
        if let Some(enforced) = &self.enforced
            && enforced.order != AccessOrder::Arrival
        {
            return self.access_in_order(enforced.order, max, selection, remove, &mut f);
        }
        if let Some(instance) = selection.instance {
            return self.access_instance(max, instance, states, remove, f);
        }
        let is_unread_only = states.is_unread_only();
        let mut index = if is_unread_only { self.entries.first_unread() } else { 0 };
        let mut count = 0;
        while count < max && index < self.entries.ring.len() {
            if is_unread_only && self.entries.unread == 0 {
                break;
            }
            let entry = &self.entries.ring[index];
            if entry.is_live && (states == States::ANY || self.is_in(index, states)) {
                let instance = entry.instance;
                count += usize::from(self.visit(index, remove, &mut f));
                self.instances.forget_if_over(instance);
            }
            index += 1;
        }
        self.entries.trim();
        count
    }

    pub(super) fn access_instance(
        &mut self,
        max: usize,
        instance: u32,
        states: States,
        remove: bool,
        mut f: impl FnMut(RawSample<'_>) -> bool,
    ) -> usize {
        if instance >= self.instances.end() {
            return 0;
        }
        let Instance { oldest: mut position, count: mut left, .. } = *self.instances.get(instance);
        let mut count = 0;
        while left > 0 && count < max {
            let index = self.entries.index_of(position);
            position = self.entries.ring[index].next;
            left -= 1;
            if self.is_in(index, states) {
                count += usize::from(self.visit(index, remove, &mut f));
            }
        }
        self.entries.trim();
        if count > 0 || left == 0 {
            self.instances.forget_if_over(instance);
        }
        count
    }

    /// Counts an access: during one access, new instances stay new.
    pub(super) fn begin_access(&mut self) {
        self.accesses += 1;
    }

    pub(super) fn is_in(&self, index: usize, states: States) -> bool {
        let entry = &self.entries.ring[index];
        let instance = self.instances.get(entry.instance);
        let is_new = instance.viewed_by == 0 || instance.viewed_by == self.accesses;
        states.contains(entry.was_read, is_new, instance.state)
    }

    /// Passes a sample to `f`, then removes it or marks it as read. Returns whether it counts.
    #[inline]
    pub(super) fn visit(
        &mut self,
        index: usize,
        remove: bool,
        f: &mut impl FnMut(RawSample<'_>) -> bool,
    ) -> bool {
        let mut counts = false;
        self.show(index, |sample| counts = f(sample));
        if remove || !counts {
            self.remove(index);
        } else {
            self.entries.mark_read(index);
        }
        counts
    }

    #[inline(always)]
    pub(super) fn append(
        &mut self,
        now: Time,
        index: u32,
        writer: Guid,
        sn: SequenceNumber,
        stored: StoredSample,
    ) {
        if self.entries.has_many_dead() {
            self.compact_entries();
        }
        if self.chunks.is_wasteful() {
            self.sweep();
        }
        let instance = self.instances.get_mut(index);
        self.entries.link_back(instance);
        if stored.kind != ChangeKind::Alive {
            instance.state_changes += 1;
            self.ends += 1;
        }
        let is_first = instance.count == 1;
        self.entries.push_back(Entry {
            at: stored.at,
            kind: stored.kind,
            is_live: true,
            was_read: false,
            instance: index,
            disposed_generation: instance.disposed_generation,
            no_writers_generation: instance.no_writers_generation,
            source_timestamp: stored.source_timestamp,
            reception_time: now,
            writer,
            sequence_number: sn,
            next: 0,
        });
        self.bytes += cost(stored.len());
        if is_first {
            self.instances.set_occupied(index, true);
        }
    }

    #[inline(always)]
    fn show(&mut self, index: usize, f: impl FnOnce(RawSample<'_>)) {
        let is_keyed = self.instances.is_keyed;
        let entry = &self.entries.ring[index];
        let instance = self.instances.get_mut(entry.instance);
        let is_new_instance = instance.viewed_by == 0 || instance.viewed_by == self.accesses;
        if is_new_instance && entry.is_of_latest_generation(instance) {
            instance.viewed_by = self.accesses;
        }
        f(RawSample::of(entry, instance, self.chunks.payload(entry.at), (is_keyed, is_new_instance)));
    }

    /// Releases the payload of a sample, and removes it from the counts. Returns its instance.
    #[inline(always)]
    fn release(&mut self, at: ChunkRef, kind: ChangeKind, was_read: bool, instance: u32) -> &mut Instance {
        self.chunks.release(at);
        self.bytes -= cost(at.len as usize);
        self.entries.live -= 1;
        self.entries.unread -= usize::from(!was_read);
        let instance = self.instances.get_mut(instance);
        instance.count -= 1;
        if kind != ChangeKind::Alive {
            instance.state_changes -= 1;
            self.ends -= 1;
        }
        instance
    }

    /// Removes a sample: marks its entry as dead, and releases its payload.
    #[inline]
    pub(super) fn remove(&mut self, index: usize) {
        let position = self.entries.position_of(index);
        let entry = &mut self.entries.ring[index];
        entry.is_live = false;
        let &mut Entry { next, at, kind, was_read, instance: number, .. } = entry;
        if self.release(at, kind, was_read, number).count == 0 {
            self.instances.set_occupied(number, false);
        } else {
            self.entries.unlink(self.instances.get_mut(number), position, next);
        }
    }

    /// Whether most chunks are kept for a few small payloads, although [`Cache::sweep`] moves those
    /// in the queue: it does not reach samples that are held back.
    #[inline]
    pub(super) fn is_sparse(&self) -> bool {
        self.chunks.memory > config::READER_SPARSE_BYTES
            && !self.limits.is_fixed
            && self.chunks.used() > config::READER_SPARSE_BYTES + 4 * self.chunks.live
    }

    /// Moves small payloads of the queue into common chunks. Those held back are for the caller to
    /// move.
    pub(super) fn compact(&mut self) {
        self.chunks.seal();
        for index in 0..self.entries.ring.len() {
            let entry = &mut self.entries.ring[index];
            if entry.is_live {
                self.chunks.relocate(&mut entry.at);
            }
        }
        let postponed = self.enforced.iter_mut().flat_map(|enforced| enforced.postponed.stored_mut());
        postponed.for_each(|stored| self.chunks.relocate(&mut stored.at));
    }

    #[cold]
    fn compact_entries(&mut self) {
        let before: Vec<u64> = match &self.enforced {
            Some(_) => {
                let all = 0..self.entries.ring.len();
                let live = all.filter(|index| self.entries.ring[*index].is_live);
                live.map(|index| self.entries.position_of(index)).collect()
            }
            None => Vec::new(),
        };
        self.entries.compact(&mut self.instances);
        if let Some(enforced) = &mut self.enforced {
            let entries = &self.entries;
            enforced.expiring.moved(|position| {
                before.binary_search(&position).ok().map(|index| entries.position_of(index))
            });
        }
    }

    /// Moves some payloads out of chunks that are mostly dead. A full round over all entries takes
    /// as long as filling a fixed number of chunks, so that no sample is delayed for long.
    #[cold]
    fn sweep(&mut self) {
        let count = self.entries.ring.len();
        let start = self.swept_to.checked_sub(self.entries.position_of(0)).map_or(0, |start| start as usize);
        let start = if start < count { start } else { 0 };
        let end = (start + SWEPT_AT_A_TIME.max(count / CHUNKS_PER_ROUND)).min(count);
        for index in start..end {
            let entry = &mut self.entries.ring[index];
            if entry.is_live && self.chunks.is_stranded(entry.at) {
                self.chunks.relocate(&mut entry.at);
            }
        }
        self.swept_to = self.entries.position_of(end);
        // Chunks filled by moving do not count.
        self.chunks.note_filled();
    }
}
/// Minimum number of entries to sweep when a chunk is full.
const SWEPT_AT_A_TIME: usize = 1024;
/// Number of chunks filled during a round over all entries.
const CHUNKS_PER_ROUND: usize = 32;
