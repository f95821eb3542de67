//! The samples of a reader that are being assembled from fragments, within limits.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use weir_wire::{DataFrag, Guid, SequenceNumber, Timestamp};

use super::assembly::{Assembly, Word};
use super::chunks::Chunks;
use super::sample_memory::SampleMemory;
use crate::config;
use crate::time::Time;
use crate::writer::ChangeKind;

/// What the bookkeeping of incomplete samples reserves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AssembliesSize {
    pub(super) samples: usize,
    /// Words for the fragments of one of them.
    words: usize,
}

impl AssembliesSize {
    /// So many samples of at most so many bytes.
    pub(super) fn new(samples: usize, sample_bytes: usize) -> Self {
        let fragments =
            sample_bytes.div_ceil(config::FRAGMENT_MIN_BYTES).max(config::FRAGMENTS_MAX.min(sample_bytes));
        Self { samples, words: fragments.div_ceil(64) }
    }

    /// Memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        let list = size_of::<Vec<Word>>().saturating_add(self.words.saturating_mul(size_of::<Word>()));
        self.samples.saturating_mul(list).saturating_add(MAPS_BYTES)
    }
}

/// Memory of a map of at most [`MAP_NODE`] elements, in bytes: a node with its elements, its parent and its length.
const fn map_bytes<K, V>() -> usize {
    (MAP_NODE * (size_of::<K>() + size_of::<V>()) + size_of::<usize>() + 2 * size_of::<u16>())
        .next_multiple_of(size_of::<usize>())
}

/// Elements in a node of a map. Limits tables allow fewer incomplete samples.
const MAP_NODE: usize = 11;
const MAPS_BYTES: usize = map_bytes::<(Guid, SequenceNumber), Assembly>() + map_bytes::<Guid, usize>();

/// The incomplete samples of all writers.
#[derive(Debug, Default)]
pub(super) struct Assemblies {
    /// Limit on `bytes`.
    max_bytes: usize,
    all: BTreeMap<(Guid, SequenceNumber), Assembly>,
    /// Sum of [`charge`] over all samples.
    bytes: usize,
    /// The same per writer.
    of_writers: BTreeMap<Guid, usize>,
    /// The one sample that is larger than the limit.
    oversize: Option<(Guid, SequenceNumber)>,
    /// No sample becomes idle before this.
    idle_from: Time,
    /// Samples that were idle, with the time of their last fragment, the oldest last. Empty if memory was reserved.
    idle: Vec<(Time, (Guid, SequenceNumber))>,
    /// Size of the largest sample completed so far, at most [`config::REASSEMBLY_MAX_BYTES`].
    completed: usize,
    /// Memory of earlier samples' words, for reuse.
    spare: Vec<Vec<Word>>,
    /// Number of samples, if memory for them was reserved.
    max: Option<usize>,
    /// Samples visited to make room.
    #[cfg(test)]
    visited: usize,
}

impl Assemblies {
    /// Room for `max_bytes` of samples, at most [`config::REASSEMBLY_MAX_BYTES`].
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, ..Self::default() }
    }

    /// Reserves memory for the bookkeeping of samples. That of the samples themselves is in the chunks.
    pub(super) fn fixed(max_bytes: usize, size: AssembliesSize) -> Self {
        let mut all = BTreeMap::new();
        let mut of_writers = BTreeMap::new();
        // A map keeps the memory of its first few elements.
        let at = (Guid::UNKNOWN, SequenceNumber::ZERO);
        all.insert(at, Assembly::vacant());
        all.remove(&at);
        of_writers.insert(Guid::UNKNOWN, 0);
        of_writers.remove(&Guid::UNKNOWN);
        let mut spare = Vec::with_capacity(size.samples);
        spare.extend((0..size.samples).map(|_| Vec::with_capacity(size.words)));
        Self { max_bytes, all, of_writers, spare, max: Some(size.samples), ..Self::default() }
    }

    /// Memory as allocated if it was reserved, in bytes.
    pub(super) fn allocated(&self) -> usize {
        let lists = self.spare.iter().map(Vec::capacity).sum::<usize>();
        let lists = lists + self.all.values().map(Assembly::words_room).sum::<usize>();
        let samples = self.all.values().map(|it| it.memory.allocated()).sum::<usize>();
        samples + lists * size_of::<Word>() + self.spare.capacity() * size_of::<Vec<Word>>() + MAPS_BYTES
    }

    /// The sample that a fragment belongs to, which is started if it is new. Returns `None` if
    /// there is no room, or if the fragment contradicts those before it, the last of which arrived
    /// lately. (Otherwise those may be false. The first fragments of a sample may come from anyone.)
    pub(super) fn entry(
        &mut self,
        now: Time,
        writer: Guid,
        frag: &DataFrag<'_>,
        inline_qos: impl FnOnce() -> (ChangeKind, Option<[u8; 16]>),
        source_timestamp: Option<Timestamp>,
        chunks: &mut Chunks,
    ) -> Option<&mut Assembly> {
        let at = (writer, frag.sequence_number);
        let is_false = |known: &Assembly| !known.is_of(frag) && known.is_idle(now, config::REASSEMBLY_IDLE);
        if self.all.get(&at).is_some_and(is_false) {
            self.discard(at, chunks);
        }
        if !self.all.contains_key(&at) {
            let memory = self.admit(now, writer, frag, chunks)?;
            let words = self.spare.pop().unwrap_or_default();
            let is_reserved_whole = frag.sample_size as usize <= self.completed;
            let mut assembly =
                Assembly::new(frag, inline_qos(), source_timestamp, memory, words, is_reserved_whole);
            assembly.added_at = now;
            self.charge(at, assembly.sample_size);
            self.all.insert(at, assembly);
        }
        self.all.get_mut(&at).filter(|known| known.is_of(frag))
    }

    /// Makes room for a new sample. Returns its memory, or `None` if there is no room.
    fn admit(
        &mut self,
        now: Time,
        writer: Guid,
        frag: &DataFrag<'_>,
        chunks: &mut Chunks,
    ) -> Option<SampleMemory> {
        let (size, fragment_size) = (frag.sample_size as usize, usize::from(frag.fragment_size));
        let has_tiny_fragments = fragment_size < config::FRAGMENT_MIN_BYTES
            && size.div_ceil(fragment_size) > config::FRAGMENTS_MAX;
        if size > config::SAMPLE_MAX_BYTES || has_tiny_fragments {
            return None;
        }
        if self.max.is_some_and(|max| max == 0) {
            return None;
        }
        if let Some(at) = self.oversize.filter(|_| is_oversize(size)) {
            // No other sample makes room for it.
            self.all.get(&at).filter(|known| known.is_idle(now, config::REASSEMBLY_IDLE))?;
            self.discard(at, chunks);
        }
        while !self.has_room(writer, size) || self.max.is_some_and(|max| self.all.len() >= max) {
            if self.drop_idle(now, chunks).is_none() {
                self.drop_for_another(writer, chunks)?;
            }
        }
        let spare = chunks.take_buffer(size);
        if chunks.is_fixed() && spare.is_none() {
            return None;
        }
        Some(spare.map_or(SampleMemory::Growing(Vec::new()), SampleMemory::Recycled))
    }

    /// Removes a sample if it is complete.
    pub(super) fn take_complete(&mut self, writer: Guid, sn: SequenceNumber) -> Option<Assembly> {
        let known = self.all.get(&(writer, sn)).filter(|known| known.is_complete())?;
        if !is_oversize(known.sample_size) {
            self.completed = self.completed.max(known.sample_size);
        }
        self.remove((writer, sn))
    }

    /// Drops the samples of a writer that are not `is_wanted`.
    pub(super) fn retain(
        &mut self,
        writer: Guid,
        chunks: &mut Chunks,
        is_wanted: impl Fn(&Assembly) -> bool,
    ) {
        if self.max.is_some() {
            // There are few, and no list is to be allocated.
            let unwanted = |all: &BTreeMap<_, _>| {
                all.range(of_writer(writer)).find(|(_, known)| !is_wanted(known)).map(|(at, _)| *at)
            };
            while let Some(at) = unwanted(&self.all) {
                self.discard(at, chunks);
            }
            return;
        }
        let of_writer = self.all.range(of_writer(writer));
        let unwanted: Vec<_> = of_writer.filter(|(_, known)| !is_wanted(known)).map(|(at, _)| *at).collect();
        unwanted.into_iter().for_each(|at| self.discard(at, chunks));
    }

    /// Drops the samples of a writer before `end`.
    pub(super) fn drop_before(&mut self, writer: Guid, end: SequenceNumber, chunks: &mut Chunks) {
        let range = (writer, SequenceNumber(i64::MIN))..(writer, end);
        while let Some((&at, _)) = self.all.range(range.clone()).next() {
            self.discard(at, chunks);
        }
    }

    /// The samples of one writer, in order.
    pub(super) fn of(&mut self, writer: Guid) -> impl Iterator<Item = &mut Assembly> {
        self.all.range_mut(of_writer(writer)).map(|(_, assembly)| assembly)
    }

    /// One sample.
    pub(super) fn get_mut(&mut self, writer: Guid, sn: SequenceNumber) -> Option<&mut Assembly> {
        self.all.get_mut(&(writer, sn))
    }

    /// The last sample of a writer.
    pub(super) fn last(&self, writer: Guid) -> Option<SequenceNumber> {
        self.all.range(of_writer(writer)).next_back().map(|((_, sn), _)| *sn)
    }

    /// Memory in bytes. Memory that is reserved and was never written to does not count.
    pub(super) fn memory(&self) -> usize {
        let spare = self.spare.iter().map(|words| words.capacity() * size_of::<Word>());
        let idle = self.idle.capacity() * size_of::<(Time, (Guid, SequenceNumber))>();
        self.all.values().map(Assembly::memory).sum::<usize>() + spare.sum::<usize>() + idle
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn charge(&mut self, at: (Guid, SequenceNumber), size: usize) {
        self.bytes += charge(size);
        if is_oversize(size) {
            self.oversize = Some(at);
        } else {
            *self.of_writers.entry(at.0).or_default() += charge(size);
        }
    }

    fn remove(&mut self, at: (Guid, SequenceNumber)) -> Option<Assembly> {
        let mut assembly = self.all.remove(&at)?;
        self.oversize = self.oversize.filter(|oversize| *oversize != at);
        self.bytes -= charge(assembly.sample_size);
        if let Entry::Occupied(mut of_writer) = self.of_writers.entry(at.0) {
            *of_writer.get_mut() -= charge(assembly.sample_size);
            if *of_writer.get() == 0 {
                of_writer.remove();
            }
        }
        let words = assembly.take_words();
        let is_kept = self.spare.len() < SPARE_LISTS_MAX && words.capacity() <= SPARE_WORDS_MAX;
        if is_kept || self.max.is_some() {
            self.spare.push(words);
        }
        Some(assembly)
    }

    /// Drops an incomplete sample. Keeps its memory for later ones, if that is worthwhile.
    fn discard(&mut self, at: (Guid, SequenceNumber), chunks: &mut Chunks) {
        if let Some(spare) = self.remove(at).and_then(|gone| gone.memory.into_spare()) {
            chunks.give_buffer(spare);
        }
    }

    /// Whether there is room for a sample. One sample larger than the whole limit is allowed in
    /// addition, so that it delays no other.
    fn has_room(&self, writer: Guid, size: usize) -> bool {
        if is_oversize(size) {
            return self.oversize.is_none();
        }
        let of_writer = self.of_writers.get(&writer).copied().unwrap_or(0);
        self.bytes + charge(size) <= self.max_bytes
            && (of_writer == 0 || of_writer + charge(size) <= self.max_bytes / 2)
    }

    /// Drops the sample that has waited longest for a fragment. Returns `None` if no sample is
    /// idle.
    fn drop_idle(&mut self, now: Time, chunks: &mut Chunks) -> Option<()> {
        if now < self.idle_from {
            return None;
        }
        if let Some(at) = self.next_idle() {
            self.discard(at, chunks);
            return Some(());
        }
        #[cfg(test)]
        {
            self.visited += self.all.len();
        }
        let (&at, oldest) = self.all.iter().min_by_key(|(_, known)| known.added_at)?;
        // New samples, and those that receive a fragment, become idle later.
        self.idle_from = oldest.added_at + config::REASSEMBLY_IDLE;
        if now < self.idle_from {
            return None;
        }
        if self.max.is_none() {
            self.list_idle(now);
        }
        self.discard(at, chunks);
        Some(())
    }

    /// With memory for few samples, drops one for a writer that has none, so that no writer takes all the places: of
    /// those of writers with several, the one that has waited longest for a fragment.
    fn drop_for_another(&mut self, writer: Guid, chunks: &mut Chunks) -> Option<()> {
        self.max.filter(|_| self.last(writer).is_none())?;
        let is_one_of_several = |of: Guid| self.all.range(of_writer(of)).nth(1).is_some();
        let candidates = self.all.iter().filter(|(at, _)| is_one_of_several(at.0));
        let at = candidates.min_by_key(|(_, known)| known.added_at).map(|(at, _)| *at)?;
        self.discard(at, chunks);
        Some(())
    }

    /// Lists the samples that are idle, so that those after the first are not looked for one by one.
    fn list_idle(&mut self, now: Time) {
        let is_idle = |known: &Assembly| known.is_idle(now, config::REASSEMBLY_IDLE);
        let idle = self.all.iter().filter(|(_, known)| is_idle(known));
        self.idle.extend(idle.map(|(at, known)| (known.added_at, *at)));
        self.idle.sort_unstable_by(|one, other| other.cmp(one));
    }

    /// The next listed sample that is still idle.
    fn next_idle(&mut self) -> Option<(Guid, SequenceNumber)> {
        while let Some((added_at, at)) = self.idle.pop() {
            if self.all.get(&at).is_some_and(|known| known.added_at == added_at) {
                return Some(at);
            }
        }
        self.idle = Vec::new();
        None
    }
}

/// The keys of all samples of a writer.
fn of_writer(writer: Guid) -> RangeInclusive<(Guid, SequenceNumber)> {
    (writer, SequenceNumber(i64::MIN))..=(writer, SequenceNumber::MAX)
}

/// What a sample counts towards the limit. A small one counts more than its size, for its
/// bookkeeping. One larger than the limit counts nothing, see [`Assemblies::has_room`].
fn charge(size: usize) -> usize {
    if is_oversize(size) { 0 } else { size.max(config::ASSEMBLY_MIN_BYTES) }
}

fn is_oversize(size: usize) -> bool {
    size > config::REASSEMBLY_MAX_BYTES
}

/// Word lists kept for reuse.
const SPARE_LISTS_MAX: usize = 64;
/// Longer word lists are not kept. A sample of 10 MB in fragments of 1344 bytes needs 122 words.
const SPARE_WORDS_MAX: usize = 256;

#[cfg(test)]
mod tests;
