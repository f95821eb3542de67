//! Putting samples together from fragments (RTPS 2.5 §8.4.14.1): each fragment is copied once, to where it
//! belongs, and the whole is handed on without another copy.

use std::sync::Arc;

use weir_wire::{DataFrag, FragmentNumber, FragmentNumberSet, Guid, SequenceNumber, Timestamp};

use super::chunks::Chunks;
use crate::block::Block;
use crate::config;
use crate::time::Time;
use crate::writer::ChangeKind;

/// A sample of which fragments have arrived.
#[derive(Debug)]
pub(super) struct Assembly {
    pub(super) writer: Guid,
    pub(super) sequence_number: SequenceNumber,
    pub(super) kind: ChangeKind,
    pub(super) key_hash: Option<[u8; 16]>,
    pub(super) is_key: bool,
    pub(super) source_timestamp: Option<Timestamp>,
    pub(super) sample_size: usize,
    pub(super) buffer: Arc<Block>,
    fragment_size: usize,
    total: u32,
    missing: u32,
    /// One bit for each fragment, set when it is there.
    received: Vec<u64>,
    /// The last fragment that is known to exist: it arrived, or the writer says so.
    highest: u32,
    /// The writer wants to know how far we are.
    pub(super) is_progress_wanted: bool,
    /// Everything that is missing up to this was asked for, at this time.
    asked_to: u32,
    asked_at: Time,
    /// When a fragment of it arrived last.
    added_at: Time,
}

/// The samples that are being put together.
#[derive(Debug, Default)]
pub(super) struct Assemblies {
    list: Vec<Assembly>,
    /// Memory of the lists of fragments of earlier samples, for the next ones.
    spare: Vec<Vec<u64>>,
}

impl Assemblies {
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
        if let Some(index) = self.position(writer, frag.sequence_number) {
            let known = &mut self.list[index];
            known.added_at = now;
            return (known.sample_size == size && known.fragment_size == fragment_size).then_some(known);
        }
        if size > config::SAMPLE_MAX_BYTES {
            return None;
        }
        while !self.has_room(writer, size) {
            self.drop_idle(now, chunks)?;
        }
        let total = size.div_ceil(fragment_size) as u32;
        let mut received = self.spare.pop().unwrap_or_default();
        received.resize((total as usize).div_ceil(64), 0);
        let (kind, key_hash) = inline_qos();
        self.list.push(Assembly {
            writer,
            sequence_number: frag.sequence_number,
            kind,
            key_hash,
            is_key: frag.is_key,
            source_timestamp,
            sample_size: size,
            buffer: chunks.take_buffer(size),
            fragment_size,
            total,
            missing: total,
            received,
            highest: 0,
            is_progress_wanted: false,
            asked_to: 0,
            asked_at: Time::ZERO,
            added_at: now,
        });
        self.list.last_mut()
    }

    /// Takes a sample out that is complete.
    pub(super) fn take_complete(&mut self, writer: Guid, sn: SequenceNumber) -> Option<Assembly> {
        let index = self.position(writer, sn)?;
        (self.list[index].missing == 0).then(|| self.remove(index))
    }

    /// Forgets the samples that `is_wanted` says nobody waits for any more.
    pub(super) fn retain(&mut self, chunks: &mut Chunks, is_wanted: impl Fn(&Assembly) -> bool) {
        for index in (0..self.list.len()).rev() {
            if !is_wanted(&self.list[index]) {
                let gone = self.remove(index);
                chunks.give_buffer(gone.buffer);
            }
        }
    }

    /// The samples of one writer.
    pub(super) fn of(&mut self, writer: Guid) -> impl Iterator<Item = &mut Assembly> {
        self.list.iter_mut().filter(move |assembly| assembly.writer == writer)
    }

    /// Bytes of memory that the samples take: pages in which no fragment has arrived take none.
    pub(super) fn memory(&self) -> usize {
        let touched = |it: &Assembly| (it.total - it.missing) as usize * it.fragment_size.max(PAGE_BYTES);
        self.list.iter().map(|it| touched(it).min(it.buffer.len())).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn position(&self, writer: Guid, sn: SequenceNumber) -> Option<usize> {
        self.list.iter().position(|known| known.writer == writer && known.sequence_number == sn)
    }

    fn remove(&mut self, index: usize) -> Assembly {
        let mut assembly = self.list.swap_remove(index);
        let mut received = core::mem::take(&mut assembly.received);
        received.clear();
        if self.spare.len() < config::ASSEMBLIES_PER_WRITER_MAX && received.capacity() <= SPARE_WORDS_MAX {
            self.spare.push(received);
        }
        assembly
    }

    /// Whether a sample of `writer` finds room. One that is larger than all the room has a place of its own, so that
    /// whoever begins such a sample holds up nobody else's.
    fn has_room(&self, writer: Guid, size: usize) -> bool {
        let is_oversize = |size: usize| size > config::REASSEMBLY_MAX_BYTES;
        if is_oversize(size) {
            return !self.list.iter().any(|known| is_oversize(known.sample_size));
        }
        let (mut all, mut of_writer, mut samples_of_writer) = (size, size, 0);
        for known in &self.list {
            let bytes = if is_oversize(known.sample_size) { 0 } else { known.sample_size };
            all += bytes;
            if known.writer == writer {
                of_writer += bytes;
                samples_of_writer += 1;
            }
        }
        all <= config::REASSEMBLY_MAX_BYTES
            && (of_writer <= config::REASSEMBLY_MAX_BYTES / 2 || of_writer == size)
            && samples_of_writer < config::ASSEMBLIES_PER_WRITER_MAX
    }

    /// Forgets the sample that has waited longest for a fragment; `None` when none has waited for long.
    fn drop_idle(&mut self, now: Time, chunks: &mut Chunks) -> Option<()> {
        let oldest = (0..self.list.len()).min_by_key(|index| self.list[*index].added_at)?;
        if now.since(self.list[oldest].added_at) < config::REASSEMBLY_IDLE {
            return None;
        }
        let gone = self.remove(oldest);
        chunks.give_buffer(gone.buffer);
        Some(())
    }
}

impl Assembly {
    /// Copies fragments to where they belong. Whether an earlier one is missing that was not known to be.
    pub(super) fn add(&mut self, frag: &DataFrag<'_>) -> bool {
        let first = frag.fragment_start - 1;
        let is_hole = frag.fragment_start > self.highest + 1;
        let start = first as usize * self.fragment_size;
        // The parser has checked that the fragments lie within the sample and that their bytes are there.
        let buffer = Arc::get_mut(&mut self.buffer).map_or(&mut [][..], Block::bytes_mut);
        let Some(place) = buffer.get_mut(start..start + frag.payload.len()) else { return false };
        place.copy_from_slice(frag.payload);
        for number in first..(first + u32::from(frag.fragments)).min(self.total) {
            let (word, bit) = (&mut self.received[number as usize / 64], 1 << (number % 64));
            self.missing -= u32::from(*word & bit == 0);
            *word |= bit;
            self.highest = self.highest.max(number + 1);
        }
        is_hole
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
        let first = (0..self.highest).find(|number| !self.has(*number)).unwrap_or(self.highest);
        let mut set = FragmentNumberSet::new(FragmentNumber(first + 1));
        // What is missing was asked for already; naming the last one says how far we have looked.
        if first < self.highest {
            let last = (first..self.highest.min(first + 256)).rev().find(|number| !self.has(*number));
            set.insert(FragmentNumber(last.unwrap_or(first) + 1));
        }
        set
    }

    /// What to ask for now: fragments that are known to exist, are missing, and were not asked for within
    /// `patience_ns`; at most 256 numbers.
    pub(super) fn ask(&mut self, now: Time, patience_ns: u64) -> Option<FragmentNumberSet> {
        let is_again = now.nanos_since(self.asked_at) >= patience_ns;
        if self.highest <= self.asked_to && !is_again {
            return None;
        }
        let from = if is_again { 0 } else { self.asked_to };
        let first = (from..self.highest).find(|number| !self.has(*number))?;
        let mut set = FragmentNumberSet::new(FragmentNumber(first + 1));
        let to = self.highest.min(first + 256);
        for number in (first..to).filter(|number| !self.has(*number)) {
            set.insert(FragmentNumber(number + 1));
        }
        (self.asked_to, self.asked_at) = (to, now);
        Some(set)
    }

    fn has(&self, number: u32) -> bool {
        self.received[number as usize / 64] & 1 << (number % 64) != 0
    }
}

/// Longer lists of fragments, in words of 64, are not kept: 10 MB in fragments of 1344 bytes need 120.
const SPARE_WORDS_MAX: usize = 4096;
/// What the system hands out at a time when memory is first written to.
const PAGE_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use weir_wire::{EntityId, GuidPrefix};

    use super::*;

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
        assert_eq!(&whole.buffer.bytes()[..9], b"abcdefghi");
        assert!(assemblies.is_empty());
    }

    #[test]
    fn what_is_missing_is_asked_for_once_per_round_trip() {
        let (mut assemblies, mut chunks) = (Assemblies::default(), Chunks::default());
        let asked = |set: Option<FragmentNumberSet>| -> Vec<u32> {
            set.iter().flat_map(FragmentNumberSet::iter).map(|number| number.0).collect()
        };
        let assembly = add(&mut assemblies, &mut chunks, &frag(3, 40, b"iiii")).unwrap();
        assert_eq!(asked(assembly.ask(Time(1_000_000), 100)), [1, 2]);
        assert!(assembly.ask(Time(1_000_050), 100).is_none());
        assembly.announce(5);
        assert_eq!(asked(assembly.ask(Time(1_000_060), 100)), [4, 5]);
        assembly.announce_all();
        assert_eq!(asked(assembly.ask(Time(1_000_200), 100)), [1, 2, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn contradictions_and_too_many_samples_are_refused() {
        let (mut assemblies, mut chunks) = (Assemblies::default(), Chunks::default());
        assert!(add(&mut assemblies, &mut chunks, &frag(1, 40, b"aaaa")).is_some());
        assert!(add(&mut assemblies, &mut chunks, &frag(1, 44, b"aaaa")).is_none());
        for sn in 2..1000 {
            let other = DataFrag { sequence_number: SequenceNumber(sn), ..frag(1, u32::MAX, b"aaaa") };
            assert!(add(&mut assemblies, &mut chunks, &other).is_none());
            let other = DataFrag { sequence_number: SequenceNumber(sn), ..frag(1, 40, b"aaaa") };
            add(&mut assemblies, &mut chunks, &other);
        }
        assert_eq!(assemblies.list.len(), config::ASSEMBLIES_PER_WRITER_MAX);
    }
}
