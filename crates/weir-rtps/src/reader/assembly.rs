//! Putting samples together from fragments (RTPS 2.5 §8.4.14.1): each fragment is copied once, to where it
//! belongs, and the whole is handed on without another copy.
//!
//! A sample takes memory in proportion to the fragments of it that have arrived, whatever size the first one announces.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use weir_wire::{DataFrag, FragmentNumber, FragmentNumberSet, Guid, SequenceNumber, Timestamp};

use super::chunks::Chunks;
use super::sample_memory::SampleMemory;
use crate::config;
use crate::time::Time;
use crate::writer::ChangeKind;

/// A sample of which fragments have arrived.
///
/// Memory is used for the first `reach` fragments: [`config::REASSEMBLY_REACH_MIN_BYTES`] at first, then two to four times
/// as many as have arrived. Those beyond that are refused, and asked for when the reach has grown. Memory is reserved for
/// what is within reach; for all of the sample at once if one of this size was completed before.
#[derive(Debug)]
pub(super) struct Assembly {
    pub(super) sequence_number: SequenceNumber,
    pub(super) kind: ChangeKind,
    pub(super) key_hash: Option<[u8; 16]>,
    pub(super) is_key: bool,
    pub(super) source_timestamp: Option<Timestamp>,
    pub(super) sample_size: usize,
    pub(super) memory: SampleMemory,
    fragment_size: usize,
    total: u32,
    missing: u32,
    /// So many fragments may take memory.
    reach: u32,
    /// Whether memory is reserved for all of it at once.
    is_reserved_whole: bool,
    /// What is known about each 64 fragments; nothing is known about those behind.
    words: Vec<Word>,
    /// Of these, so many at the beginning are whole.
    whole_words: usize,
    /// The last fragment that is known to exist: it arrived, or the writer says so.
    highest: u32,
    /// The writer wants to know how far we are.
    pub(super) is_progress_wanted: bool,
    /// When a fragment of it arrived last.
    added_at: Time,
}

/// What became of fragments.
pub(super) enum Added {
    /// They are where they belong.
    Placed {
        /// Whether others are missing that were not known to be, or could not be asked for.
        is_hole: bool,
    },
    /// They lie too far ahead of what has arrived.
    TooFar {
        /// As above.
        is_hole: bool,
    },
    /// The allocator had no memory for them.
    NoMemory,
}

/// What the arrival of a fragment tells.
pub(super) enum Expected {
    /// Nothing.
    AsItCame,
    /// It was asked for, so often, last at this time.
    Repair { asked_at: Time, tries: u8 },
    /// It was asked for more than once, and the first time would have done.
    Before,
}

/// 64 fragments, a bit for each.
#[derive(Debug, Clone, Default)]
struct Word {
    /// Those that are there.
    received: u64,
    /// Those that were asked for...
    asked: u64,
    /// ... at this time, the last of them, ...
    asked_at: Time,
    /// ... and so often: only the repair of what was asked for once tells how long one takes.
    tries: u8,
    /// Those of them that were asked for then: the repair of another one tells nothing.
    latest: u64,
}

impl Word {
    /// Those of the first `known` fragments that are missing.
    fn missing(&self, known: u32) -> u64 {
        let known = if known < FRAGMENTS_PER_WORD { (1 << known) - 1 } else { u64::MAX };
        known & !self.received
    }

    /// What to ask for now of the first `known` fragments: those that were never asked for, or all that are missing, if
    /// that is `patience_ns` ago.
    fn ask(&mut self, now: Time, patience_ns: u64, known: u32) -> u64 {
        let missing = self.missing(known);
        let is_again = missing & self.asked != 0 && now.nanos_since(self.asked_at) >= patience_ns;
        let wanted = if is_again { missing } else { missing & !self.asked };
        if wanted != 0 {
            self.latest = wanted;
            self.tries = if is_again { self.tries.saturating_add(1) } else { 1 };
            self.asked = missing;
            self.asked_at = now;
        }
        wanted
    }
}

/// The samples that are being put together.
#[derive(Debug)]
pub(super) struct Assemblies {
    /// Bound on `bytes`.
    max_bytes: usize,
    /// In the order of their writers and numbers.
    all: BTreeMap<(Guid, SequenceNumber), Assembly>,
    /// Room that they take up, see [`room_of`].
    bytes: usize,
    /// The same of each writer that has some.
    of_writers: BTreeMap<Guid, usize>,
    /// Until then, none of them has waited for long.
    idle_from: Time,
    /// Size of the largest sample that was completed and does not exceed [`config::REASSEMBLY_MAX_BYTES`].
    completed: usize,
    /// Memory of the lists of fragments of earlier samples, for the next ones.
    spare: Vec<Vec<Word>>,
}

impl Default for Assemblies {
    fn default() -> Self {
        Self::new(config::REASSEMBLY_MAX_BYTES)
    }
}

impl Assemblies {
    /// Room for samples of `max_bytes` in all, at most [`config::REASSEMBLY_MAX_BYTES`].
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            all: BTreeMap::new(),
            bytes: 0,
            of_writers: BTreeMap::new(),
            idle_from: Time::ZERO,
            completed: 0,
            spare: Vec::new(),
        }
    }

    /// The sample that a fragment belongs to; begins to put it together when it is new. `None` when there is no
    /// room, or the fragment contradicts those before it.
    pub(super) fn entry(
        &mut self,
        now: Time,
        writer: Guid,
        frag: &DataFrag<'_>,
        inline_qos: impl FnOnce() -> (ChangeKind, Option<[u8; 16]>),
        source_timestamp: Option<Timestamp>,
        chunks: &mut Chunks,
    ) -> Option<&mut Assembly> {
        let (size, fragment_size) = (frag.sample_size as usize, usize::from(frag.fragment_size));
        let at = (writer, frag.sequence_number);
        if !self.all.contains_key(&at) {
            let is_scattered = fragment_size < config::FRAGMENT_MIN_BYTES
                && size.div_ceil(fragment_size) > config::FRAGMENTS_MAX;
            if size > config::SAMPLE_MAX_BYTES || is_scattered {
                return None;
            }
            while !self.has_room(writer, size) {
                self.drop_idle(now, chunks)?;
            }
            let spare = chunks.take_buffer(size);
            let memory = spare.map_or(SampleMemory::Growing(Vec::new()), SampleMemory::Recycled);
            self.begin(at, frag, inline_qos(), source_timestamp, memory);
        }
        let known = self.all.get_mut(&at)?;
        known.added_at = now;
        (known.sample_size == size && known.fragment_size == fragment_size).then_some(known)
    }

    fn begin(
        &mut self,
        (writer, sequence_number): (Guid, SequenceNumber),
        frag: &DataFrag<'_>,
        (kind, key_hash): (ChangeKind, Option<[u8; 16]>),
        source_timestamp: Option<Timestamp>,
        memory: SampleMemory,
    ) {
        let (sample_size, fragment_size) = (frag.sample_size as usize, usize::from(frag.fragment_size));
        let total = sample_size.div_ceil(fragment_size) as u32;
        let reach = match memory {
            SampleMemory::Recycled(_) => total,
            SampleMemory::Growing(_) => {
                total.min(config::REASSEMBLY_REACH_MIN_BYTES.div_ceil(fragment_size) as u32)
            }
        };
        let words = self.spare.pop().unwrap_or_default();
        self.bytes += room_of(sample_size);
        if !is_oversize(sample_size) {
            *self.of_writers.entry(writer).or_default() += room_of(sample_size);
        }
        let assembly = Assembly {
            sequence_number,
            kind,
            key_hash,
            is_key: frag.is_key,
            source_timestamp,
            sample_size,
            memory,
            fragment_size,
            total,
            missing: total,
            reach,
            is_reserved_whole: sample_size <= self.completed,
            words,
            whole_words: 0,
            highest: 0,
            is_progress_wanted: false,
            added_at: Time::ZERO,
        };
        self.all.insert((writer, sequence_number), assembly);
    }

    /// Takes a sample out that is complete.
    pub(super) fn take_complete(&mut self, writer: Guid, sn: SequenceNumber) -> Option<Assembly> {
        let known = self.all.get(&(writer, sn)).filter(|known| known.missing == 0)?;
        if !is_oversize(known.sample_size) {
            self.completed = self.completed.max(known.sample_size);
        }
        self.remove((writer, sn))
    }

    /// Forgets the samples of a writer that `is_wanted` says nobody waits for any more.
    pub(super) fn retain(
        &mut self,
        writer: Guid,
        chunks: &mut Chunks,
        is_wanted: impl Fn(SequenceNumber) -> bool,
    ) {
        let of_writer = self.all.range((writer, SequenceNumber(i64::MIN))..=(writer, SequenceNumber::MAX));
        let unwanted: Vec<_> = of_writer.map(|(at, _)| *at).filter(|(_, sn)| !is_wanted(*sn)).collect();
        for gone in unwanted.into_iter().filter_map(|at| self.remove(at)) {
            give_back(gone, chunks);
        }
    }

    /// Forgets the samples of a writer before `end`.
    pub(super) fn drop_before(&mut self, writer: Guid, end: SequenceNumber, chunks: &mut Chunks) {
        let first = |all: &BTreeMap<(Guid, SequenceNumber), Assembly>| {
            let mut before = all.range((writer, SequenceNumber(i64::MIN))..(writer, end));
            before.next().map(|(at, _)| *at)
        };
        while let Some(gone) = first(&self.all).and_then(|at| self.remove(at)) {
            give_back(gone, chunks);
        }
    }

    /// The samples of one writer, in the order of their numbers.
    pub(super) fn of(&mut self, writer: Guid) -> impl Iterator<Item = &mut Assembly> {
        let all = (writer, SequenceNumber(i64::MIN))..=(writer, SequenceNumber::MAX);
        self.all.range_mut(all).map(|(_, assembly)| assembly)
    }

    /// One sample.
    pub(super) fn get_mut(&mut self, writer: Guid, sn: SequenceNumber) -> Option<&mut Assembly> {
        self.all.get_mut(&(writer, sn))
    }

    /// The last sample of a writer.
    pub(super) fn last(&self, writer: Guid) -> Option<SequenceNumber> {
        let all = (writer, SequenceNumber(i64::MIN))..=(writer, SequenceNumber::MAX);
        self.all.range(all).next_back().map(|((_, sn), _)| *sn)
    }

    /// Bytes of memory that the samples take: what is reserved and was never written to takes none.
    pub(super) fn memory(&self) -> usize {
        let words = |words: &Vec<Word>| words.capacity() * size_of::<Word>();
        let kept = |it: &Assembly| size_of::<Assembly>() + words(&it.words);
        let all = self.all.values().map(|it| it.memory.written() + kept(it));
        all.sum::<usize>() + self.spare.iter().map(words).sum::<usize>()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn remove(&mut self, at: (Guid, SequenceNumber)) -> Option<Assembly> {
        let mut assembly = self.all.remove(&at)?;
        self.bytes -= room_of(assembly.sample_size);
        if let Entry::Occupied(mut of_writer) = self.of_writers.entry(at.0) {
            *of_writer.get_mut() -= room_of(assembly.sample_size);
            if *of_writer.get() == 0 {
                of_writer.remove();
            }
        }
        let mut words = core::mem::take(&mut assembly.words);
        words.clear();
        if self.spare.len() < SPARE_LISTS_MAX && words.capacity() <= SPARE_WORDS_MAX {
            self.spare.push(words);
        }
        Some(assembly)
    }

    /// Whether a sample of `writer` finds room. One that is larger than all the room has a place of its own, so that
    /// whoever begins such a sample holds up nobody else's.
    fn has_room(&self, writer: Guid, size: usize) -> bool {
        if is_oversize(size) {
            return !self.all.values().any(|known| is_oversize(known.sample_size));
        }
        let of_writer = self.of_writers.get(&writer).copied().unwrap_or(0);
        self.bytes + room_of(size) <= self.max_bytes
            && (of_writer == 0 || of_writer + room_of(size) <= self.max_bytes / 2)
    }

    /// Forgets the sample that has waited longest for a fragment; `None` when none has waited for long.
    fn drop_idle(&mut self, now: Time, chunks: &mut Chunks) -> Option<()> {
        if now < self.idle_from {
            return None;
        }
        let (at, oldest) = self.all.iter().min_by_key(|(_, known)| known.added_at)?;
        // Those that come later, and those to which something is added, are idle later.
        self.idle_from = oldest.added_at + config::REASSEMBLY_IDLE;
        if now < self.idle_from {
            return None;
        }
        let gone = self.remove(*at)?;
        give_back(gone, chunks);
        Some(())
    }
}

impl Assembly {
    /// Copies fragments to where they belong, if that is not too far ahead and there is memory.
    pub(super) fn add(&mut self, frag: &DataFrag<'_>) -> Added {
        let first = frag.fragment_start - 1;
        let is_hole = frag.fragment_start > self.highest + 1;
        let end = (first + u32::from(frag.fragments)).min(self.total);
        self.highest = self.highest.max(end);
        if end > self.reach {
            return Added::TooFar { is_hole };
        }
        let start = first as usize * self.fragment_size;
        // The parser has checked that the fragments lie within the sample and that their bytes are there.
        if !self.has_words() || !self.has_memory(start + frag.payload.len()) {
            return Added::NoMemory;
        }
        self.memory.write(start, frag.payload);
        for number in first..end {
            let (index, bit) = place_of(number);
            let word = &mut self.words[index];
            self.missing -= u32::from(word.received & bit == 0);
            word.received |= bit;
        }
        let whole = self.words[self.whole_words..].iter().take_while(|word| word.received == u64::MAX);
        self.whole_words += whole.count();
        Added::Placed { is_hole: self.extend_reach() || is_hole }
    }

    /// Whether there is memory for the first `end` bytes: reserves some for that.
    #[inline]
    fn has_memory(&mut self, end: usize) -> bool {
        end <= self.memory.room() || self.reserve(end)
    }

    #[cold]
    fn reserve(&mut self, end: usize) -> bool {
        // Without memory for all of it, there may be some for a part.
        self.is_reserved_whole = self.is_reserved_whole && self.memory.reserve(self.sample_size);
        let within_reach = self.sample_size.min(self.reach as usize * self.fragment_size);
        self.is_reserved_whole || self.memory.reserve(within_reach.max(end))
    }

    /// Lets twice as many fragments take memory, or more, when half of those that may have arrived. Whether some of
    /// them are known to exist.
    #[inline]
    fn extend_reach(&mut self) -> bool {
        let (before, arrived) = (self.reach, self.total - self.missing);
        if arrived < before / 2 || before == self.total {
            return false;
        }
        self.reach = arrived.saturating_mul(REACH_RATIO).clamp(before, self.total);
        self.highest > before
    }

    /// Whether something can be noted about all fragments that may take memory: lengthens the list for that.
    #[inline]
    fn has_words(&mut self) -> bool {
        let wanted = self.reach.div_ceil(FRAGMENTS_PER_WORD) as usize;
        wanted <= self.words.len() || self.lengthen(wanted)
    }

    #[cold]
    fn lengthen(&mut self, wanted: usize) -> bool {
        let is_done = self.words.try_reserve_exact(wanted - self.words.len()).is_ok();
        if is_done {
            self.words.resize_with(wanted, Word::default);
        }
        is_done
    }

    /// The writer says that there are fragments up to `last`.
    pub(super) fn announce(&mut self, last: u32) {
        self.highest = self.highest.max(last.min(self.total));
    }

    /// All fragments are known to exist.
    pub(super) fn announce_all(&mut self) {
        self.highest = self.total;
    }

    /// What to tell a writer that wants to know how far we are: everything before the base is there.
    pub(super) fn progress(&self) -> FragmentNumberSet {
        let first = self.first_missing();
        let mut set = FragmentNumberSet::new(FragmentNumber(first + 1));
        // What is missing was asked for already; naming the last one says how far we have looked.
        if first < self.highest {
            let known = self.highest.min(self.reach).min(first + 256);
            let last = (first..known).rev().find(|number| !self.has(*number));
            set.insert(FragmentNumber(last.unwrap_or(first) + 1));
        }
        set
    }

    /// What to ask for now, appended to `out` in sets: fragments that are known to exist, are missing, would not lie too far
    /// ahead, and were not asked for within `patience_ns`.
    pub(super) fn ask(
        &mut self,
        now: Time,
        patience_ns: u64,
        out: &mut Vec<(SequenceNumber, FragmentNumberSet)>,
    ) {
        let (mut set, before): (Option<FragmentNumberSet>, _) = (None, out.len());
        // Without memory for the list, it is asked for what the list has: the writer's next HEARTBEAT tries again.
        self.has_words();
        let known = self.highest.min(self.reach);
        let words = (known.div_ceil(FRAGMENTS_PER_WORD) as usize).min(self.words.len());
        for index in self.whole_words..words {
            // The rest is asked for with the next answer: a writer remembers only so many requests.
            if out.len() - before >= config::NACK_FRAG_SETS_MAX || out.len() >= config::NACK_FRAGS_MAX {
                break;
            }
            let first = index as u32 * FRAGMENTS_PER_WORD;
            let mut wanted = self.words[index].ask(now, patience_ns, known - first);
            while wanted != 0 {
                let number = FragmentNumber(first + wanted.trailing_zeros() + 1);
                wanted &= wanted - 1;
                if !set.as_mut().is_some_and(|set| set.insert(number)) {
                    out.extend(set.map(|set| (self.sequence_number, set)));
                    let next = set.insert(FragmentNumberSet::new(number));
                    next.insert(number);
                }
            }
        }
        out.extend(set.map(|set| (self.sequence_number, set)));
    }

    /// What the first of these fragments is to us.
    pub(super) fn expected(&self, frag: &DataFrag<'_>) -> Expected {
        let (index, bit) = place_of(frag.fragment_start - 1);
        match self.words.get(index) {
            Some(word) if word.received & word.latest & bit != 0 && word.tries > 1 => Expected::Before,
            Some(Word { received, latest, asked_at, tries, .. }) if latest & !received & bit != 0 => {
                Expected::Repair { asked_at: *asked_at, tries: *tries }
            }
            _ => Expected::AsItCame,
        }
    }

    /// Index of the first fragment that is known to exist and is missing; the number of those known to exist if none is.
    fn first_missing(&self) -> u32 {
        let from = self.whole_words as u32 * FRAGMENTS_PER_WORD;
        (from..self.highest).find(|number| !self.has(*number)).unwrap_or(self.highest)
    }

    fn has(&self, number: u32) -> bool {
        let (index, bit) = place_of(number);
        self.words.get(index).is_some_and(|word| word.received & bit != 0)
    }
}

/// Keeps the memory of a sample that will not be completed for later ones, if that is worth it.
fn give_back(gone: Assembly, chunks: &mut Chunks) {
    if let Some(spare) = gone.memory.into_spare() {
        chunks.give_buffer(spare);
    }
}

/// Where in the words a fragment is noted, counted from 0.
fn place_of(number: u32) -> (usize, u64) {
    ((number / FRAGMENTS_PER_WORD) as usize, 1 << (number % FRAGMENTS_PER_WORD))
}

const FRAGMENTS_PER_WORD: u32 = u64::BITS;
/// What a sample takes up of [`config::REASSEMBLY_MAX_BYTES`]: one that is larger than all of it nothing, see
/// [`Assemblies::has_room`]; a small one more than its size, since there is something to keep about each.
fn room_of(size: usize) -> usize {
    if is_oversize(size) { 0 } else { size.max(config::ASSEMBLY_MIN_BYTES) }
}

fn is_oversize(size: usize) -> bool {
    size > config::REASSEMBLY_MAX_BYTES
}

/// Lists of fragments that are kept for later samples.
const SPARE_LISTS_MAX: usize = 64;
/// Longer lists of fragments, in words of 64, are not kept: 10 MB in fragments of 1344 bytes need 122.
const SPARE_WORDS_MAX: usize = 256;
/// See [`Assembly`].
const REACH_RATIO: u32 = 4;

#[cfg(test)]
mod tests {
    use weir_wire::{EntityId, GuidPrefix};

    use super::*;
    use crate::block::Block;

    fn frag(start: u32, size: u32, bytes: &[u8]) -> DataFrag<'_> {
        DataFrag {
            reader: EntityId::UNKNOWN,
            writer: EntityId::user_writer(1, false),
            sequence_number: SequenceNumber(1),
            fragment_start: start,
            fragments: 1,
            fragment_size: 4,
            sample_size: size,
            is_key: false,
            inline_qos: None,
            payload: bytes,
        }
    }

    fn add<'a>(
        assemblies: &'a mut Assemblies,
        chunks: &mut Chunks,
        frag: &DataFrag<'_>,
    ) -> Option<&'a mut Assembly> {
        let writer = Guid::new(GuidPrefix([1; 12]), frag.writer);
        let assembly = assemblies.entry(Time(1), writer, frag, || (ChangeKind::Alive, None), None, chunks)?;
        assembly.add(frag);
        Some(assembly)
    }

    #[test]
    fn fragments_in_any_order_and_again_make_the_sample() {
        let (mut assemblies, mut chunks) = (Assemblies::default(), Chunks::default());
        for (start, bytes) in [(3, &b"i"[..]), (1, b"abcd"), (1, b"abcd"), (3, b"i"), (2, b"efgh")] {
            add(&mut assemblies, &mut chunks, &frag(start, 9, bytes)).unwrap();
        }
        let writer = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, false));
        let whole = assemblies.take_complete(writer, SequenceNumber(1)).unwrap();
        assert_eq!(&whole.memory.into_block().bytes()[..9], b"abcdefghi");
        assert!(assemblies.is_empty());
    }

    #[test]
    fn what_is_missing_is_asked_for_once_per_round_trip() {
        let (mut assemblies, mut chunks) = (Assemblies::default(), Chunks::default());
        let asked = |assembly: &mut Assembly, now| -> Vec<u32> {
            let mut sets = Vec::new();
            assembly.ask(now, 100, &mut sets);
            sets.iter().flat_map(|(_, set)| set.iter()).map(|number| number.0).collect()
        };
        let assembly = add(&mut assemblies, &mut chunks, &frag(3, 40, b"iiii")).unwrap();
        assert_eq!(asked(assembly, Time(1_000_000)), [1, 2]);
        assert_eq!(asked(assembly, Time(1_000_050)), []);
        assembly.announce(5);
        assert_eq!(asked(assembly, Time(1_000_060)), [4, 5]);
        assembly.announce_all();
        assert_eq!(asked(assembly, Time(1_000_200)), [1, 2, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn no_more_is_asked_for_at_a_time_than_a_writer_remembers() {
        let (mut assemblies, mut chunks) = (Assemblies::default(), Chunks::default());
        let (last, fragment_size) = (60_000, 512);
        let payload = [7; 512];
        let size = last * u32::from(fragment_size);
        // There is memory for all of it, so that nothing lies too far ahead.
        chunks.give_buffer(Block::new(size as usize));
        let end = DataFrag { fragment_size, ..frag(last, size, &payload) };
        let assembly = add(&mut assemblies, &mut chunks, &end).unwrap();
        let mut asked = Vec::new();
        while {
            let mut sets = Vec::new();
            assembly.ask(Time(1_000_000), 100, &mut sets);
            assert!(sets.len() <= config::NACK_FRAG_SETS_MAX + 1, "{}", sets.len());
            asked.extend(sets.iter().flat_map(|(_, set)| set.iter()).map(|number| number.0));
            !sets.is_empty()
        } {}
        // All of it, in turn.
        assert!(asked.into_iter().eq(1..last));
    }

    /// What `assembly` asks for now, in fragments.
    fn asked(assembly: &mut Assembly) -> Vec<u32> {
        let mut asked = Vec::new();
        loop {
            let mut sets = Vec::new();
            assembly.ask(Time(1_000_000), 100, &mut sets);
            if sets.is_empty() {
                return asked;
            }
            asked.extend(sets.iter().flat_map(|(_, set)| set.iter()).map(|number| number.0));
        }
    }

    #[test]
    fn one_fragment_of_a_gigabyte_takes_memory_in_proportion_wherever_it_lies() {
        const PAYLOAD: [u8; 512] = [7; 512];
        let size = config::SAMPLE_MAX_BYTES as u32;
        let reach = config::REASSEMBLY_REACH_MIN_BYTES as u32 / 512;
        let memory_with = |start: u32| {
            let (mut assemblies, mut chunks) = (Assemblies::default(), Chunks::default());
            let end = DataFrag { fragment_size: 512, ..frag(start, size, &PAYLOAD) };
            add(&mut assemblies, &mut chunks, &end).unwrap();
            assemblies.memory()
        };
        let of_lists = 32 * 1024 * 1024 / 512;
        assert!(memory_with(1) < 512 + of_lists, "{}", memory_with(1));
        assert!(memory_with(reach) < config::REASSEMBLY_REACH_MIN_BYTES + of_lists, "{}", memory_with(reach));
        for far in [reach + 1, size / 512] {
            assert!(memory_with(far) < of_lists, "{far}: {}", memory_with(far));
        }
    }

    #[test]
    fn memory_is_reserved_for_a_whole_sample_when_one_of_its_size_was_completed() {
        static PAYLOAD: [u8; 60_000] = [7; 60_000];
        let (mut assemblies, mut chunks) = (Assemblies::default(), Chunks::default());
        let total = 100;
        let reserved = |assembly: &Assembly| match &assembly.memory {
            SampleMemory::Growing(bytes) => bytes.capacity(),
            SampleMemory::Recycled(_) => panic!("nothing was given back"),
        };
        let frag = |sn, start, total| DataFrag {
            sequence_number: SequenceNumber(sn),
            fragment_size: 60_000,
            ..frag(start, 60_000 * total, &PAYLOAD)
        };
        for (sn, expected) in [(1, 18), (2, total)] {
            let assembly = add(&mut assemblies, &mut chunks, &frag(sn, 1, total)).unwrap();
            assert_eq!(reserved(assembly), 60_000 * expected as usize);
            (2..=total).for_each(|start| _ = assembly.add(&frag(sn, start, total)));
            let writer = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, false));
            assert!(assemblies.take_complete(writer, SequenceNumber(sn)).is_some());
        }
        let larger = add(&mut assemblies, &mut chunks, &frag(3, 1, total + 1)).unwrap();
        assert_eq!(reserved(larger), 60_000 * 18);
    }

    #[test]
    fn what_lies_too_far_ahead_is_asked_for_when_half_of_what_is_before_it_has_arrived() {
        const PAYLOAD: [u8; 1024] = [7; 1024];
        let reach = config::REASSEMBLY_REACH_MIN_BYTES as u32 / 1024;
        let last = 3 * reach;
        let frag = |start| DataFrag { fragment_size: 1024, ..frag(start, 1024 * last, &PAYLOAD) };
        let (mut assemblies, mut chunks) = (Assemblies::default(), Chunks::default());
        let assembly = add(&mut assemblies, &mut chunks, &frag(1)).unwrap();
        assert!(matches!(assembly.add(&frag(last)), Added::TooFar { is_hole: true }));
        assert!(asked(assembly).into_iter().eq(2..=reach), "all within reach, once");
        for start in 2..reach / 2 {
            assert!(matches!(assembly.add(&frag(start)), Added::Placed { is_hole: false }));
            assert!(asked(assembly).is_empty());
        }
        assert!(matches!(assembly.add(&frag(reach / 2)), Added::Placed { is_hole: true }));
        assert!(asked(assembly).into_iter().eq(reach + 1..=2 * reach));
        (reach / 2 + 1..=last).for_each(|start| _ = assembly.add(&frag(start)));
        assert_eq!(assembly.missing, 0);
    }

    #[test]
    fn what_was_asked_for_at_different_times_measures_nothing() {
        let (mut assemblies, mut chunks) = (Assemblies::default(), Chunks::default());
        let assembly = add(&mut assemblies, &mut chunks, &frag(2, 40, b"bbbb")).unwrap();
        assembly.ask(Time(1_000_000), 100, &mut Vec::new());
        let first = frag(1, 40, b"aaaa");
        assert!(matches!(
            assembly.expected(&first),
            Expected::Repair { asked_at: Time(1_000_000), tries: 1 }
        ));
        assembly.announce(3);
        assembly.ask(Time(1_000_050), 100, &mut Vec::new());
        assert!(matches!(assembly.expected(&first), Expected::AsItCame));
        // Again, all together.
        assembly.ask(Time(1_000_200), 100, &mut Vec::new());
        assert!(matches!(
            assembly.expected(&first),
            Expected::Repair { asked_at: Time(1_000_200), tries: 2 }
        ));
    }

    #[test]
    fn contradictions_and_too_many_samples_are_refused() {
        let (mut assemblies, mut chunks) = (Assemblies::default(), Chunks::default());
        assert!(add(&mut assemblies, &mut chunks, &frag(1, 40, b"aaaa")).is_some());
        assert!(add(&mut assemblies, &mut chunks, &frag(1, 44, b"aaaa")).is_none());
        let scattered = DataFrag { sequence_number: SequenceNumber(2), ..frag(1, 4 * 1024 + 1, b"aaaa") };
        assert!(add(&mut assemblies, &mut chunks, &scattered).is_none());
        for sn in 2..100_000 {
            let other = DataFrag { sequence_number: SequenceNumber(sn), ..frag(1, u32::MAX, b"aaaa") };
            assert!(add(&mut assemblies, &mut chunks, &other).is_none());
            let other = DataFrag { sequence_number: SequenceNumber(sn), ..frag(1, 40, b"aaaa") };
            add(&mut assemblies, &mut chunks, &other);
        }
        assert_eq!(assemblies.all.len(), config::REASSEMBLY_MAX_BYTES / 2 / config::ASSEMBLY_MIN_BYTES);
    }
}
