//! The samples that wait for the application, in the order of their arrival (DDS 1.4 §2.2.2.5).

mod entry;
mod tidying;

use std::sync::Arc;

use weir_wire::{Guid, SequenceNumber, Timestamp};

use super::chunks::{ChunkRef, Chunks};
use super::instances::{Instance, Instances};
use super::ring::Ring;
use super::room::Rejection;
use super::states::States;
use super::{KeyPayloadOf, ReaderConfig, Sample};
use crate::block::Block;
use crate::config;
use crate::key_hasher::Key;
use crate::qos::History;
use crate::writer::ChangeKind;
use entry::{Entry, cost};

/// Whether an instance is being written (DDS 1.4 §2.2.2.5.1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceState {
    /// Some writer writes it.
    Alive,
    /// A writer disposed it.
    NotAliveDisposed,
    /// Nobody writes it any more.
    NotAliveNoWriters,
}

/// A sample as it lies in the cache, with what the reader knows about it.
#[derive(Debug, Clone, Copy)]
pub struct RawSample<'a> {
    /// Who wrote it.
    pub writer: Guid,
    /// Its number among the writer's samples.
    pub sequence_number: SequenceNumber,
    /// What happened to the instance.
    pub kind: ChangeKind,
    /// When it was written, by the writer's clock.
    pub source_timestamp: Option<Timestamp>,
    /// The payload with its encapsulation header: the value, or the key when `kind` is not `Alive`; empty when
    /// nothing but the key hash is known.
    pub payload: &'a [u8],
    /// The memory of the payload when it is a large one: whoever clones it keeps the payload as it is.
    pub block: Option<&'a Arc<Block>>,
    /// The key hash of the instance.
    pub key_hash: Option<[u8; 16]>,
    /// Which instance, as a number that stays the same as long as the reader lives.
    pub instance: u32,
    /// State of the instance now.
    pub instance_state: InstanceState,
    /// Whether this access is the first to show the instance since it was born.
    pub is_new_instance: bool,
    /// Whether the sample was read before.
    pub was_read: bool,
    /// How often the instance had come back from being disposed when the sample arrived.
    pub disposed_generation: u32,
    /// How often the instance had come back from having no writers when the sample arrived.
    pub no_writers_generation: u32,
}

/// Which samples an access is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleSelection {
    /// Only samples in these states.
    pub states: States,
    /// Only samples of this instance.
    pub instance: Option<u32>,
}

/// A sample that is stored but not yet in its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    at: ChunkRef,
    kind: ChangeKind,
    /// Apart from the key: thousands of these may be held back, and an `Option` of a key is half as large again.
    has_key: bool,
    key: Key,
    source_timestamp: Option<Timestamp>,
}

impl Held {
    /// Bytes of its payload.
    pub(super) fn len(&self) -> usize {
        self.at.len as usize
    }

    /// Its instance.
    #[inline]
    pub(super) fn key(&self) -> Option<Key> {
        self.has_key.then_some(self.key)
    }
}

#[derive(Debug)]
pub(super) struct Cache {
    key_payload_of: Option<KeyPayloadOf>,
    /// Bytes of the keys that are kept.
    key_bytes: usize,
    depth: Option<usize>,
    max_samples: usize,
    max_per_instance: usize,
    max_bytes: usize,
    /// Whether the instance decides whether there is room for a sample.
    has_instance_limits: bool,
    chunks: Chunks,
    /// Entries that were taken or replaced stay as dead ones until they come to the front.
    entries: Ring<Entry>,
    /// Position of `entries[0]`; positions count up and are never used twice.
    front: u64,
    live: usize,
    unread: usize,
    /// No sample before this position is unread.
    unread_from: u64,
    /// Where payloads were last looked through for stranded ones.
    swept_to: u64,
    held: usize,
    /// Bytes that the samples that wait take, and those that are held back.
    bytes: usize,
    held_bytes: usize,
    recent_len: usize,
    instances: Instances,
    accesses: u64,
}

impl Cache {
    pub(super) fn new(config: &ReaderConfig) -> Self {
        let depth = match config.history {
            History::KeepAll => None,
            History::KeepLast(depth) => Some(depth.max(1) as usize),
        };
        let or_endless = |limit: Option<u32>| limit.map_or(usize::MAX, |limit| limit as usize);
        let max_per_instance = or_endless(config.max_samples_per_instance);
        // A topic without a key is one instance.
        let max_samples = or_endless(config.max_samples).min(if config.key_of.is_none() {
            max_per_instance
        } else {
            usize::MAX
        });
        Self {
            key_payload_of: config.key_payload_of,
            key_bytes: 0,
            depth,
            max_samples,
            max_per_instance,
            max_bytes: config.max_bytes,
            has_instance_limits: config.key_of.is_some()
                && (config.max_instances.is_some() || config.max_samples_per_instance.is_some()),
            chunks: Chunks::default(),
            entries: Ring::new(Entry::VACANT),
            front: 1,
            live: 0,
            unread: 0,
            unread_from: 0,
            swept_to: 0,
            held: 0,
            bytes: 0,
            held_bytes: 0,
            recent_len: 0,
            instances: Instances::new(config),
            accesses: 0,
        }
    }

    /// Why a sample of an instance, with a payload of `len` bytes, finds no room, if it does not. An empty cache takes
    /// any one sample. What is held back does not count: the sample that it waits for must find room.
    #[inline]
    pub(super) fn refusal(&self, key: Option<Key>, len: usize) -> Option<Rejection> {
        let is_crowded = self.live >= self.max_samples
            || (self.bytes + cost(len) > self.max_bytes && self.live > 0)
            || self.has_instance_limits
            || self.instances.is_nearly_full();
        if is_crowded { self.refusal_of(key, len) } else { None }
    }

    #[cold]
    fn refusal_of(&self, key: Option<Key>, len: usize) -> Option<Rejection> {
        if !self.instances.has_room(key) {
            return Some(Rejection::InstancesLimit);
        }
        let known = self.instances.lookup(key);
        let values = known.map_or(0, |index| {
            let instance = self.instances.get(index);
            (instance.count - instance.news) as usize
        });
        let replaced = known.filter(|_| self.depth.is_some_and(|depth| values >= depth));
        if replaced.is_none() && self.live >= self.max_samples {
            return Some(Rejection::SamplesLimit);
        }
        if self.depth.is_none() && values >= self.max_per_instance {
            return Some(Rejection::SamplesPerInstanceLimit);
        }
        let freed = replaced
            .and_then(|index| self.oldest(index, true))
            .map_or(0, |position| cost(self.entries[(position - self.front) as usize].at.len as usize));
        (self.bytes + cost(len) > self.max_bytes.saturating_add(freed) && self.live > 0)
            .then_some(Rejection::BytesLimit)
    }

    /// Whether a sample with a payload of `len` bytes, whose turn has not come, finds no room.
    #[inline]
    pub(super) fn is_full_of_held(&self, len: usize) -> bool {
        let count = self.live + self.held;
        (count >= self.max_samples && self.depth.is_none())
            || self.bytes + self.held_bytes + cost(len) > self.max_bytes
    }

    /// About how many more samples find room, when they are as long as the last one; at least one.
    pub(super) fn room(&self) -> usize {
        let samples = match self.depth {
            None => self.max_samples.saturating_sub(self.live + self.held),
            Some(_) => usize::MAX,
        };
        let bytes = self.max_bytes.saturating_sub(self.bytes + self.held_bytes);
        samples.min(bytes / cost(self.recent_len)).max(1)
    }

    /// Whether asking for more would be pointless, with some distance to [`Cache::refusal`].
    pub(super) fn is_nearly_full(&self) -> bool {
        self.live >= self.max_samples || self.bytes > self.max_bytes / 4 * 3
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.live
    }

    #[inline]
    pub(super) fn has_unread(&self) -> bool {
        self.unread > 0
    }

    pub(super) fn memory(&self) -> usize {
        self.chunks.memory()
            + self.entries.capacity() * size_of::<Entry>()
            + self.instances.memory()
            + self.key_bytes
    }

    /// Stores a sample and puts it behind the others. The payload stays where it is, in `block`, if it lies there and that
    /// is worth it. Always inlined: what passes through memory is read there in other pieces than it was written in.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        writer: Guid,
        sn: SequenceNumber,
        sample: &Sample<'_>,
        block: Option<&Arc<Block>>,
    ) {
        let at = block.and_then(|block| self.chunks.borrow(sample.payload, block));
        let held = self.store(sample, at);
        self.place(writer, sn, held);
    }

    /// Stores a sample whose turn has not come.
    #[inline]
    pub(super) fn hold(&mut self, sample: &Sample<'_>) -> Held {
        self.held += 1;
        self.held_bytes += cost(sample.payload.len());
        self.store(sample, None)
    }

    /// Stores a sample whose payload lies somewhere already, or is to be copied.
    #[inline(always)]
    fn store(&mut self, sample: &Sample<'_>, at: Option<ChunkRef>) -> Held {
        self.recent_len = sample.payload.len();
        Held {
            at: at.unwrap_or_else(|| self.chunks.store(sample.payload)),
            kind: sample.kind,
            has_key: sample.key.is_some(),
            key: sample.key.unwrap_or_default(),
            source_timestamp: sample.source_timestamp,
        }
    }

    /// Stores a sample that was put together from fragments, without a copy.
    pub(super) fn hold_whole(&mut self, sample: &Sample<'_>, whole: Arc<Block>, len: usize) -> Held {
        self.held += 1;
        self.held_bytes += cost(len);
        self.recent_len = len;
        Held {
            at: self.chunks.adopt(whole, len),
            kind: sample.kind,
            has_key: sample.key.is_some(),
            key: sample.key.unwrap_or_default(),
            source_timestamp: sample.source_timestamp,
        }
    }

    /// Whether something is held back.
    pub(super) fn has_held(&self) -> bool {
        self.held > 0
    }

    /// Where payloads are kept.
    pub(super) fn chunks_mut(&mut self) -> &mut Chunks {
        &mut self.chunks
    }

    /// Lets go of a stored sample.
    pub(super) fn drop_held(&mut self, held: Held) {
        self.forget_held(held);
        self.chunks.release(held.at);
    }

    /// A stored sample is held back no longer.
    fn forget_held(&mut self, held: Held) {
        self.held -= 1;
        self.held_bytes -= cost(held.len());
    }

    /// Puts a stored sample behind the others. What tells of no change is dropped.
    #[inline(never)]
    pub(super) fn push_held(&mut self, writer: Guid, sn: SequenceNumber, held: Held) {
        self.forget_held(held);
        self.place(writer, sn, held);
    }

    /// Always inline: a sample that may be passed on is kept in memory, not in registers.
    #[inline(always)]
    fn place(&mut self, writer: Guid, sn: SequenceNumber, held: Held) {
        let Some(index) = self.instances.index(held.key()) else {
            self.chunks.release(held.at);
            return;
        };
        // Without a key, endings are about what the payload names, as in discovery.
        let is_keyed = self.instances.is_keyed();
        let instance = self.instances.get_mut(index);
        let is_telling = instance.change(held.kind, writer) || !is_keyed;
        if let Some(key_payload_of) = self.key_payload_of
            && instance.key_payload.is_none()
        {
            self.keep_key(index, held.at, held.kind, key_payload_of);
        }
        if !is_telling {
            self.chunks.release(held.at);
            self.forget_if_over(index);
            return;
        }
        self.make_way(index, held.kind);
        self.append(index, writer, sn, held);
    }

    /// KEEP_LAST: removes the value that a new one replaces. News of an instance replace earlier ones, and no values:
    /// they come on top of the depth.
    #[inline(always)]
    fn make_way(&mut self, index: u32, kind: ChangeKind) {
        if let Some(depth) = self.depth {
            self.make_way_within(depth, index, kind);
        }
    }

    #[inline]
    fn make_way_within(&mut self, depth: usize, index: u32, kind: ChangeKind) {
        let instance = self.instances.get(index);
        let is_value = kind == ChangeKind::Alive;
        let is_replacing =
            if is_value { (instance.count - instance.news) as usize >= depth } else { instance.news > 0 };
        if is_replacing && let Some(position) = self.oldest(index, is_value) {
            self.remove((position - self.front) as usize);
            self.trim();
        }
    }

    /// The position of the oldest value of an instance, or of its oldest news.
    fn oldest(&self, index: u32, is_value: bool) -> Option<u64> {
        self.positions(index).find(|position| {
            (self.entries[(position - self.front) as usize].kind == ChangeKind::Alive) == is_value
        })
    }

    #[inline]
    fn forget_if_over(&mut self, index: u32) {
        if self.instances.get(index).is_over() {
            self.forget(index);
        }
    }

    #[cold]
    fn forget(&mut self, index: u32) {
        let key = self.instances.remove(index);
        self.key_bytes -= key.map_or(0, |key| key.len());
    }

    /// Keeps the key of an instance that is new.
    #[cold]
    fn keep_key(&mut self, index: u32, at: ChunkRef, kind: ChangeKind, key_payload_of: KeyPayloadOf) {
        let payload = self.chunks.bytes(at);
        if payload.is_empty() || self.key_bytes >= config::INSTANCE_KEYS_MAX_BYTES {
            return;
        }
        let key = key_payload_of(payload, kind != ChangeKind::Alive);
        self.key_bytes += key.as_ref().map_or(0, |key| key.len());
        self.instances.get_mut(index).key_payload = key;
    }

    pub(super) fn find_instance(&self, key: Key) -> Option<u32> {
        self.instances.find(key)
    }

    pub(super) fn instance_key(&self, instance: u32) -> Option<&[u8]> {
        (instance < self.instances.end()).then(|| self.instances.get(instance).key_payload.as_deref())?
    }

    pub(super) fn next_instance(&mut self, after: Option<Key>, states: States) -> Option<u32> {
        let (entries, front) = (&self.entries, self.front);
        self.instances.next(after, |_, instance| {
            states == States::ANY
                || positions(entries, front, instance).any(|position| {
                    let was_read = entries[(position - front) as usize].was_read;
                    states.contains(was_read, instance.viewed_by == 0, instance.state)
                })
        })
    }

    /// The positions of the samples of an instance, oldest first.
    fn positions(&self, instance: u32) -> impl Iterator<Item = u64> + '_ {
        positions(&self.entries, self.front, self.instances.get(instance))
    }

    /// A writer is gone: tells of the instances that nobody writes any more, if the topic has a key.
    pub(super) fn writer_gone(&mut self, writer: Guid) {
        for index in 0..self.instances.end() {
            if !self.instances.get_mut(index).left_by(writer) {
                self.forget_if_over(index);
            } else if self.instances.is_keyed() {
                self.make_way(index, ChangeKind::Unregistered);
                let held = Held {
                    at: self.chunks.store(&[]),
                    kind: ChangeKind::Unregistered,
                    has_key: false,
                    key: Key::default(),
                    source_timestamp: None,
                };
                self.append(index, writer, SequenceNumber::UNKNOWN, held);
            }
        }
    }

    /// Removes the oldest sample and shows it. What [`Cache::show`] and [`Cache::remove`] do for any sample, in one for the
    /// first: it is the oldest of its instance.
    #[inline(always)]
    pub(super) fn take_next(&mut self, f: impl FnOnce(RawSample<'_>)) -> bool {
        // Whoever removes others trims, unless an application's function panicked in between.
        self.trim();
        let is_keyed = self.instances.is_keyed();
        let Some(&Entry { at, kind, was_read, instance: index, next, .. }) = self.entries.front() else {
            return false;
        };
        self.accesses += 1;
        self.show(0, f);
        let instance = self.let_go(at, kind, was_read, index);
        instance.oldest = next;
        let (is_last, is_over) = (instance.count == 0, instance.is_over());
        if is_keyed && is_last {
            self.instances.set_occupied(index, false);
        }
        self.entries.pop_front();
        self.front += 1;
        self.trim();
        if is_over {
            self.forget(index);
        }
        true
    }

    /// Shows samples, until `max` of them counted: those for which `f` returned `true`. The others are removed.
    pub(super) fn access(
        &mut self,
        max: usize,
        selection: SampleSelection,
        remove: bool,
        mut f: impl FnMut(RawSample<'_>) -> bool,
    ) -> usize {
        self.accesses += 1;
        if let Some(instance) = selection.instance {
            return self.access_instance(max, instance, selection.states, remove, f);
        }
        let mut count = 0;
        let mut index = 0;
        let is_unread_only = selection.states.is_unread_only();
        if is_unread_only {
            index = self.first_unread();
        }
        while count < max && index < self.entries.len() {
            let entry = &self.entries[index];
            if is_unread_only && self.unread == 0 {
                break;
            }
            if entry.is_live && (selection.states == States::ANY || self.is_in(index, selection.states)) {
                let instance = entry.instance;
                count += usize::from(self.visit(index, remove, &mut f));
                self.forget_if_over(instance);
            }
            index += 1;
        }
        self.trim();
        count
    }

    /// The index before which no sample is unread.
    fn first_unread(&mut self) -> usize {
        let start = self.unread_from.saturating_sub(self.front) as usize;
        let rest = (start..).map_while(|index| self.entries.get(index));
        let first = start + rest.take_while(|entry| !entry.is_live || entry.was_read).count();
        self.unread_from = self.front + first as u64;
        first
    }

    fn access_instance(
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
            let index = (position - self.front) as usize;
            position = self.entries[index].next;
            left -= 1;
            if self.is_in(index, states) {
                count += usize::from(self.visit(index, remove, &mut f));
            }
        }
        self.trim();
        if count > 0 || left == 0 {
            self.forget_if_over(instance);
        }
        count
    }

    fn is_in(&self, index: usize, states: States) -> bool {
        let entry = &self.entries[index];
        let instance = self.instances.get(entry.instance);
        let is_new = instance.viewed_by == 0 || instance.viewed_by == self.accesses;
        states.contains(entry.was_read, is_new, instance.state)
    }

    /// Shows a sample, then removes it or marks it as read. Whether it counts.
    #[inline]
    fn visit(&mut self, index: usize, remove: bool, f: &mut impl FnMut(RawSample<'_>) -> bool) -> bool {
        let mut counts = false;
        self.show(index, |sample| counts = f(sample));
        if remove || !counts {
            self.remove(index);
        } else if !core::mem::replace(&mut self.entries[index].was_read, true) {
            self.unread -= 1;
        }
        counts
    }

    #[inline(always)]
    fn append(&mut self, index: u32, writer: Guid, sn: SequenceNumber, held: Held) {
        if self.entries.len() > 2 * self.live + 1024 {
            self.compact();
        }
        if self.chunks.is_wasteful() {
            self.sweep();
        }
        let position = self.front + self.entries.len() as u64;
        let instance = self.instances.get_mut(index);
        if instance.count == 0 {
            instance.oldest = position;
        } else if let Some(previous) = self.entries.get_mut((instance.newest - self.front) as usize) {
            previous.next = position;
        }
        instance.newest = position;
        instance.count += 1;
        instance.news += u32::from(held.kind != ChangeKind::Alive);
        let is_first = instance.count == 1;
        self.entries.push_back(Entry {
            at: held.at,
            kind: held.kind,
            is_live: true,
            was_read: false,
            instance: index,
            disposed_generation: instance.disposed_generation,
            no_writers_generation: instance.no_writers_generation,
            source_timestamp: held.source_timestamp,
            writer,
            sequence_number: sn,
            next: 0,
        });
        self.live += 1;
        self.bytes += cost(held.len());
        self.unread += 1;
        if is_first {
            self.instances.set_occupied(index, true);
        }
    }

    #[inline(always)]
    fn show(&mut self, index: usize, f: impl FnOnce(RawSample<'_>)) {
        let is_keyed = self.instances.is_keyed();
        let entry = &self.entries[index];
        let instance = self.instances.get_mut(entry.instance);
        let (payload, block) = self.chunks.payload(entry.at);
        let is_new_instance = instance.viewed_by == 0 || instance.viewed_by == self.accesses;
        if is_new_instance {
            instance.viewed_by = self.accesses;
        }
        f(RawSample {
            writer: entry.writer,
            sequence_number: entry.sequence_number,
            kind: entry.kind,
            source_timestamp: entry.source_timestamp,
            payload: match entry.kind {
                ChangeKind::Alive => payload,
                _ if entry.at.len > 0 => payload,
                _ => instance.key_payload.as_deref().unwrap_or_default(),
            },
            block,
            key_hash: is_keyed.then(|| instance.key.octets()),
            instance: entry.instance,
            instance_state: instance.state,
            is_new_instance,
            was_read: entry.was_read,
            disposed_generation: entry.disposed_generation,
            no_writers_generation: entry.no_writers_generation,
        });
    }

    /// Lets go of a sample's payload, and counts it no longer. Returns its instance.
    #[inline(always)]
    fn let_go(&mut self, at: ChunkRef, kind: ChangeKind, was_read: bool, instance: u32) -> &mut Instance {
        self.chunks.release(at);
        self.bytes -= cost(at.len as usize);
        self.live -= 1;
        self.unread -= usize::from(!was_read);
        let instance = self.instances.get_mut(instance);
        instance.count -= 1;
        instance.news -= u32::from(kind != ChangeKind::Alive);
        instance
    }

    /// Marks an entry as dead and lets go of its payload. The first of its instance, usually.
    #[inline]
    fn remove(&mut self, index: usize) {
        let position = self.front + index as u64;
        let entry = &mut self.entries[index];
        entry.is_live = false;
        let &mut Entry { next, at, kind, was_read, instance: index, .. } = entry;
        let instance = self.let_go(at, kind, was_read, index);
        if instance.count == 0 {
            self.instances.set_occupied(index, false);
        } else if instance.oldest == position {
            instance.oldest = next;
        } else {
            self.unlink(position, next);
        }
    }

    /// Takes an entry out of the middle of its instance's list.
    fn unlink(&mut self, position: u64, next: u64) {
        let instance = self.entries[(position - self.front) as usize].instance;
        let mut before = self.instances.get(instance).oldest;
        while let Some(entry) = self.entries.get_mut((before - self.front) as usize) {
            if entry.next == position {
                entry.next = next;
                break;
            }
            before = entry.next;
        }
        let instance = self.instances.get_mut(instance);
        if instance.newest == position {
            instance.newest = before;
        }
    }

    #[inline]
    fn trim(&mut self) {
        while self.entries.front().is_some_and(|entry| !entry.is_live) {
            self.entries.pop_front();
            self.front += 1;
        }
    }
}

/// The positions of the samples of an instance, oldest first.
fn positions<'a>(
    entries: &'a Ring<Entry>,
    front: u64,
    instance: &Instance,
) -> impl Iterator<Item = u64> + use<'a> {
    let next = move |&position: &u64| Some(entries.get((position - front) as usize)?.next);
    core::iter::successors(Some(instance.oldest), next).take(instance.count as usize)
}
