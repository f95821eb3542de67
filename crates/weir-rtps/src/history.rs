//! A writer's history: the datagrams themselves, laid end to end in blocks, and an index over them.
//!
//! What was sent is what is kept: a repair sends the same bytes again. Sequence numbers are dense, so the
//! index is a queue and a look-up is a subtraction. Blocks are reused; after warm-up nothing is allocated.
//!
//! KEEP_LAST over many instances leaves holes. Neither they nor the survivors between them may hold up memory: what
//! is old and still there moves to a second, sparse index, which is searched, and the survivors of blocks that are
//! mostly dead move into other blocks. Both happen in small steps whenever a block is full, so that no write waits
//! long for them. Whoever is sending from a block holds it, so bytes in flight stay where they are.

pub(crate) mod pieces;
mod spare;

use core::ops::Range;
use std::collections::VecDeque;
use std::sync::Arc;

use weir_wire::SequenceNumber;

use crate::block::{Block, BlockSlice};

/// Length of what every datagram begins with, in bytes: RTPS header and INFO_TS. A sample of a batch that outlives
/// the others takes a copy of it along.
pub(crate) const DATAGRAM_HEAD_LEN: usize = 32;

/// Where one sample's datagram lies. Samples of a batch share one: the entry of each ends where the sample
/// ends, which is a whole message as well, and that of the last one is the datagram.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    block: u32,
    /// Offset of the datagram in its block, in bytes.
    pub(crate) offset: u32,
    /// Length of the datagram in bytes; 0 when the sample is no longer in the history.
    pub(crate) len: u32,
    /// 0: the bytes are a datagram. Otherwise they are a payload that leaves in fragments of so many bytes.
    pub(crate) fragment_size: u16,
    /// Offset in the datagram where the sample's own bytes begin; 0 for the first sample of a datagram.
    own_at: u16,
    /// Everything charged against the window up to and with this sample, in bytes.
    pub(crate) charged: u64,
}

impl Entry {
    /// Whether the sample is still there.
    #[inline]
    pub(crate) fn is_alive(&self) -> bool {
        self.len != 0
    }

    /// Number of fragments; 0 for a datagram.
    #[inline]
    pub(crate) fn fragments(&self) -> u32 {
        if self.fragment_size == 0 { 0 } else { self.len.div_ceil(self.fragment_size.into()) }
    }

    /// Whether `next` is a later sample in the same datagram.
    #[inline]
    pub(crate) fn is_extended_by(&self, next: &Self) -> bool {
        self.block == next.block && self.offset == next.offset
    }

    /// Whether `next` lies right behind this one in the same block and is as long.
    #[inline]
    pub(crate) fn continues_with(&self, next: &Self) -> bool {
        self.block == next.block && self.offset + self.len == next.offset && self.len == next.len
    }

    /// Bytes that only this sample takes.
    #[inline]
    fn own_len(&self) -> usize {
        self.len as usize - usize::from(self.own_at)
    }

    #[inline]
    fn clear(&mut self) {
        (self.len, self.own_at) = (0, 0);
    }
}

#[derive(Debug, Default)]
struct HistoryBlock {
    /// `None`: the place is vacant, or taken by a sample in pieces.
    block: Option<Arc<Block>>,
    /// The memory of a large sample that came piece by piece, in order.
    pieces: Vec<Arc<Block>>,
    is_in_pieces: bool,
    used: usize,
    /// Bytes of samples that are still there.
    live: usize,
    /// The samples that were laid here when they were written, those that are gone included.
    first: i64,
    last: i64,
    /// The samples that were moved here, in the order in which they lie.
    moved: Vec<i64>,
}

impl HistoryBlock {
    fn len(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.len())
    }

    /// Whether nobody is sending from the memory. References to it are handed out only by this history, so that nobody can
    /// have come to hold it when its bytes are asked for next.
    #[inline]
    fn is_unshared(&self) -> bool {
        self.block.as_ref().is_some_and(|block| Arc::strong_count(block) == 1)
    }

    /// The memory, for the one who holds it alone.
    #[inline]
    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Some(Arc::get_mut(self.block.as_mut()?)?.bytes_mut())
    }
}

/// The samples of one writer, by sequence number.
#[derive(Debug)]
pub(crate) struct History {
    /// Places of blocks; an entry names one.
    blocks: Vec<HistoryBlock>,
    vacant: Vec<u32>,
    /// The block that is written to.
    open: Option<u32>,
    /// The block that was written to before, until nothing is left in it: somebody was sending from it, or a sample did not
    /// fit there.
    previous: Option<u32>,
    /// The block that survivors move to.
    refuge: Option<u32>,
    entries: VecDeque<Entry>,
    /// Sequence number of `entries[0]`.
    dense: i64,
    /// What is left of the samples before those, in order.
    old: VecDeque<(i64, Entry)>,
    /// How many in `old` are gone.
    old_dead: usize,
    /// Number of samples that are there.
    alive: usize,
    spare: Vec<Arc<Block>>,
    /// Pieces of large samples, the one that was used last at the end.
    spare_pieces: Vec<Arc<Block>>,
    block_len: usize,
    spare_max: usize,
    charged: u64,
    /// The same up to the last sample before `dense`.
    charged_old: u64,
    /// The same up to the last sample that was released.
    charged_released: u64,
    /// Bytes of the blocks that are held, bytes that were laid into them, and those of samples that are there.
    bytes: usize,
    used: usize,
    live: usize,
}

impl History {
    pub(crate) fn new(block_len: usize, spare_max: usize) -> Self {
        Self {
            blocks: Vec::new(),
            vacant: Vec::new(),
            open: None,
            previous: None,
            refuge: None,
            entries: VecDeque::new(),
            dense: 1,
            old: VecDeque::new(),
            old_dead: 0,
            alive: 0,
            spare: Vec::new(),
            spare_pieces: Vec::new(),
            block_len,
            spare_max,
            charged: 0,
            charged_old: 0,
            charged_released: 0,
            bytes: 0,
            used: 0,
            live: 0,
        }
    }

    /// The first sequence number in the history, or the next to be written when it is empty.
    #[inline]
    pub(crate) fn first(&self) -> SequenceNumber {
        SequenceNumber(self.old.front().map_or(self.dense, |(sn, _)| *sn))
    }

    /// The sequence number of the next sample.
    #[inline]
    pub(crate) fn next(&self) -> SequenceNumber {
        SequenceNumber(self.dense + self.entries.len() as i64)
    }

    /// The last sequence number that was written; 0 before the first.
    #[inline]
    pub(crate) fn last(&self) -> SequenceNumber {
        SequenceNumber(self.next().0 - 1)
    }

    /// Number of samples that are there.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.alive
    }

    /// Whether there is neither a sample nor the place of one that is gone.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.old.is_empty()
    }

    /// Number of sequence numbers from the first sample to the last, those of samples that were replaced included.
    #[inline]
    pub(crate) fn span(&self) -> usize {
        (self.next().0 - self.first().0) as usize
    }

    /// Bytes of the samples that are there, with their headers.
    #[inline]
    pub(crate) fn live_bytes(&self) -> usize {
        self.live
    }

    /// Bytes that the history takes: blocks, spare ones included, and the index.
    pub(crate) fn memory(&self) -> usize {
        let moved: usize = self.blocks.iter().map(|block| block.moved.capacity() * size_of::<i64>()).sum();
        self.bytes
            + self.spare.iter().chain(&self.spare_pieces).map(|spare| spare.len()).sum::<usize>()
            + self.memory_of_lists()
            + self.blocks.capacity() * size_of::<HistoryBlock>()
            + moved
            + self.entries.capacity() * size_of::<Entry>()
            + self.old.capacity() * size_of::<(i64, Entry)>()
    }

    /// Everything charged so far.
    #[inline]
    pub(crate) fn charged(&self) -> u64 {
        self.charged
    }

    /// Everything charged up to and with `sn`, which may be just before the history. Among what is old, samples that
    /// are gone count with the next one that is left.
    pub(crate) fn charged_to(&self, sn: SequenceNumber) -> u64 {
        if let Some(entry) = self.entries.get(usize::try_from(sn.0 - self.dense).unwrap_or(usize::MAX)) {
            return entry.charged;
        }
        if sn.0 >= self.dense {
            return self.charged;
        }
        if sn.0 == self.dense - 1 {
            return self.charged_old;
        }
        let behind = self.old.partition_point(|(old, _)| *old <= sn.0);
        behind.checked_sub(1).map_or(self.charged_released, |index| self.old[index].1.charged)
    }

    /// The sample with this number, when it is (or was) between first and last.
    #[inline]
    pub(crate) fn entry(&self, sn: SequenceNumber) -> Option<Entry> {
        match usize::try_from(sn.0 - self.dense) {
            Ok(index) => self.entries.get(index).copied(),
            Err(_) => self.find_old(sn.0).map(|index| self.old[index].1),
        }
    }

    /// The first sample at or behind `sn` that is there, or the next to be written.
    pub(crate) fn first_alive(&self, sn: SequenceNumber) -> SequenceNumber {
        if sn.0 < self.dense {
            let from = self.old.partition_point(|(old, _)| *old < sn.0);
            if let Some((old, _)) = self.old.range(from..).find(|(_, entry)| entry.is_alive()) {
                return SequenceNumber(*old);
            }
        }
        let from = usize::try_from(sn.0 - self.dense).unwrap_or(0).min(self.entries.len());
        let dead = self.entries.range(from..).take_while(|entry| !entry.is_alive()).count();
        SequenceNumber(self.dense + (from + dead) as i64)
    }

    fn find_old(&self, sn: i64) -> Option<usize> {
        self.old.binary_search_by_key(&sn, |(old, _)| *old).ok()
    }

    /// Memory for a datagram of `len` bytes, to be filled and then committed.
    #[inline]
    pub(crate) fn reserve(&mut self, len: usize) -> &mut [u8] {
        self.prepare(len);
        self.reserved(len)
    }

    /// Sees to it that there is memory for a datagram of `len` bytes.
    #[inline]
    pub(crate) fn prepare(&mut self, len: usize) {
        if !self.open.is_some_and(|open| self.fits(open, len)) {
            self.open_block(len);
        }
    }

    /// The memory that was prepared last.
    #[inline]
    pub(crate) fn reserved(&mut self, len: usize) -> &mut [u8] {
        let block = self.open.and_then(|open| self.blocks.get_mut(open as usize));
        match block.and_then(|block| {
            let used = block.used;
            block.bytes_mut()?.get_mut(used..used + len)
        }) {
            Some(bytes) => bytes,
            // `fits` or `open_block` has just made sure of it.
            None => unreachable!("the open block is ours alone"),
        }
    }

    /// The same, to be read.
    #[inline]
    pub(crate) fn filled(&self, len: usize) -> &[u8] {
        let Some(block) = self.open.and_then(|open| self.blocks.get(open as usize)) else { return &[] };
        let bytes = block.block.as_ref().map_or(&[][..], |block| block.bytes());
        bytes.get(block.used..block.used + len).unwrap_or_default()
    }

    /// Whether `len` more bytes fit the open block, and nobody is sending from it.
    #[inline]
    fn fits(&mut self, open: u32, len: usize) -> bool {
        let block = &mut self.blocks[open as usize];
        let (used, live, room) = (block.used, block.live, block.len());
        // Starting over keeps the memory warm in the cache and few pages in use.
        let is_empty = live == 0;
        // A large sample shares its block with nobody: it would be held up.
        let has_room = if is_empty { room >= len } else { room - used >= len && room <= self.block_len };
        if !has_room || !block.is_unshared() {
            return false;
        }
        if is_empty {
            block.used = 0;
            self.used -= used;
        }
        true
    }

    /// Makes the `len` bytes that were reserved last the next sample, which costs `charge` bytes in flight.
    pub(crate) fn commit(&mut self, len: usize, charge: u64) -> SequenceNumber {
        self.commit_fragmented(len, 0, charge)
    }

    /// Makes the `len` bytes that were reserved last the payload of the next sample, which leaves in fragments of
    /// `fragment_size` bytes (0: the bytes are a datagram).
    pub(crate) fn commit_fragmented(
        &mut self,
        len: usize,
        fragment_size: u32,
        charge: u64,
    ) -> SequenceNumber {
        let sn = self.next();
        self.charged += charge;
        if let Some(open) = self.open {
            let offset = self.blocks[open as usize].used as u32;
            self.entries.push_back(Entry {
                block: open,
                offset,
                len: len as u32,
                fragment_size: fragment_size as u16,
                own_at: 0,
                charged: self.charged,
            });
            self.grow(open, len, sn.0);
        }
        sn
    }

    /// Gives the next number to a sample that costs `charge` bytes in flight and is not kept: the history is empty, and stays
    /// so.
    #[inline]
    pub(crate) fn pass(&mut self, charge: u64) {
        debug_assert!(self.is_empty());
        self.dense += 1;
        self.charged += charge;
        (self.charged_old, self.charged_released) = (self.charged, self.charged);
    }

    /// Makes sure that the next datagram can grow to `len` bytes where it begins.
    pub(crate) fn make_room(&mut self, len: usize) {
        if len <= self.block_len {
            self.prepare(len);
        }
    }

    /// The last datagram and `extra` bytes of room behind it, to be filled and then committed by
    /// [`History::commit_extension`]; `None` when there is no room, or somebody is sending from the block.
    #[inline]
    pub(crate) fn extend(&mut self, extra: usize) -> Option<&mut [u8]> {
        let last = self.entries.back()?;
        let block = self.blocks.get_mut(self.open? as usize)?;
        let end = (last.offset + last.len) as usize;
        let is_last = Some(last.block) == self.open && end == block.used;
        if !is_last || last.len == 0 || last.fragment_size != 0 || last.len > u32::from(u16::MAX) {
            return None;
        }
        block.bytes_mut()?.get_mut(last.offset as usize..end + extra)
    }

    /// Makes the `extra` bytes behind the last datagram the next sample.
    #[inline]
    pub(crate) fn commit_extension(&mut self, extra: usize, charge: u64) -> SequenceNumber {
        let sn = self.next();
        if let Some(last) = self.entries.back().copied() {
            self.charged += charge;
            self.entries.push_back(Entry {
                len: last.len + extra as u32,
                own_at: last.len as u16,
                charged: self.charged,
                ..last
            });
            self.grow(last.block, extra, sn.0);
        }
        sn
    }

    /// Book-keeping for `len` bytes of sample `sn` that were laid into a block.
    #[inline]
    fn grow(&mut self, place: u32, len: usize, sn: i64) {
        let block = &mut self.blocks[place as usize];
        if block.used == 0 {
            block.first = sn;
        }
        block.last = sn;
        block.used += len;
        block.live += len;
        self.used += len;
        self.live += len;
        self.alive += 1;
    }

    /// The bytes from the datagram of `from` to the end of that of `to`, which lie in one block.
    pub(crate) fn slice(&self, from: &Entry, to: &Entry) -> Option<BlockSlice> {
        let block = self.blocks.get(from.block as usize)?.block.as_ref()?;
        Some(BlockSlice::new(Arc::clone(block), from.offset, to.offset + to.len))
    }

    /// The bytes of one fragment, counted from 0.
    pub(crate) fn fragment(&self, entry: &Entry, index: u32) -> Option<BlockSlice> {
        let place = self.blocks.get(entry.block as usize)?;
        if place.is_in_pieces {
            return place.fragment(entry, index);
        }
        let block = place.block.as_ref()?;
        let size = u32::from(entry.fragment_size);
        let start = entry.offset + index * size;
        let end = (start + size).min(entry.offset + entry.len);
        Some(BlockSlice::new(Arc::clone(block), start, end))
    }

    /// Takes one sample out, leaving a hole.
    pub(crate) fn remove(&mut self, sn: SequenceNumber) {
        let index = usize::try_from(sn.0 - self.dense);
        let entry = match index {
            Ok(index) => self.entries.get_mut(index),
            Err(_) => self.find_old(sn.0).and_then(|index| self.old.get_mut(index)).map(|(_, entry)| entry),
        };
        let Some(entry) = entry.filter(|entry| entry.is_alive()) else { return };
        let (place, own) = (entry.block, entry.own_len());
        entry.clear();
        self.alive -= 1;
        self.let_go(place, own);
        if index.is_err() {
            self.old_dead += 1;
            if self.old_dead > self.old.len() / 2 + OLD_DEAD_SPARE {
                self.old.retain(|(_, entry)| entry.is_alive());
                self.old_dead = 0;
            }
        }
        self.trim();
    }

    /// Forgets the holes before the first sample that is there.
    fn trim(&mut self) {
        while let Some((_, entry)) = self.old.front().filter(|(_, entry)| !entry.is_alive()) {
            self.charged_released = entry.charged;
            self.old.pop_front();
            self.old_dead -= 1;
        }
        if self.old.is_empty() {
            while let Some(entry) = self.entries.front().filter(|entry| !entry.is_alive()) {
                self.charged_old = entry.charged;
                self.entries.pop_front();
                self.dense += 1;
            }
            self.charged_released = self.charged_old;
        }
    }

    /// Forgets every sample up to and with `last`.
    pub(crate) fn release_to(&mut self, last: SequenceNumber) {
        while let Some(&(_, entry)) = self.old.front().filter(|(sn, _)| *sn <= last.0) {
            self.charged_released = entry.charged;
            self.old.pop_front();
            if entry.is_alive() {
                self.alive -= 1;
                self.let_go(entry.block, entry.own_len());
            } else {
                self.old_dead -= 1;
            }
        }
        let Ok(count) = usize::try_from(last.0 - self.dense + 1) else { return };
        // Samples of one block come in runs.
        let (mut place, mut own) = (u32::MAX, 0);
        for _ in 0..count.min(self.entries.len()) {
            let Some(entry) = self.entries.pop_front() else { break };
            if entry.block != place {
                self.let_go(place, own);
                (place, own) = (entry.block, 0);
            }
            own += entry.own_len();
            self.alive -= usize::from(entry.is_alive());
            self.charged_old = entry.charged;
            self.charged_released = entry.charged;
            self.dense += 1;
        }
        self.let_go(place, own);
    }

    /// So many bytes of samples in a block are no longer there.
    #[inline]
    fn let_go(&mut self, place: u32, own: usize) {
        let Some(block) = self.blocks.get_mut(place as usize).filter(|_| own > 0) else { return };
        block.live -= own;
        self.live -= own;
        if block.live == 0 && self.open != Some(place) && self.refuge != Some(place) {
            self.retire(place);
        }
    }

    /// Takes the memory from a block in which nothing is left.
    fn retire(&mut self, place: u32) {
        let block = &mut self.blocks[place as usize];
        let used = core::mem::take(&mut block.used);
        block.moved.clear();
        if block.is_in_pieces {
            self.used -= used;
            return self.retire_pieces(place);
        }
        let Some(memory) = block.block.take() else { return };
        self.previous = self.previous.filter(|previous| *previous != place);
        self.vacant.push(place);
        self.used -= used;
        self.bytes -= memory.len();
        self.keep(memory);
    }

    /// Memory of at least `len` bytes that is filled elsewhere and comes back by [`History::adopt`] or
    /// [`History::keep`]. What is in it is left from before.
    pub(crate) fn lend(&mut self, len: usize) -> Arc<Block> {
        self.close_unused();
        self.take_spare(len).unwrap_or_else(|| Block::new(len))
    }

    /// Makes a part of a block that was filled elsewhere the next sample: a datagram, or with `fragment_size` a payload
    /// that leaves in fragments of so many bytes. Nothing else comes into the block.
    pub(crate) fn adopt(
        &mut self,
        block: Arc<Block>,
        part: Range<usize>,
        fragment_size: u32,
        charge: u64,
    ) -> SequenceNumber {
        self.close_unused();
        self.tidy();
        let sn = self.next();
        self.charged += charge;
        let place = self.take_in(block);
        self.entries.push_back(Entry {
            block: place,
            offset: part.start as u32,
            len: part.len() as u32,
            fragment_size: fragment_size as u16,
            own_at: 0,
            charged: self.charged,
        });
        self.grow(place, part.len(), sn.0);
        sn
    }

    /// Lets go of the open block when nothing was committed to it, or all of its samples are gone.
    fn close_unused(&mut self) {
        if let Some(open) = self.open
            && self.blocks[open as usize].live == 0
        {
            self.open = None;
            self.retire(open);
        }
    }

    #[cold]
    fn open_block(&mut self, len: usize) -> u32 {
        self.close_unused();
        if let Some(previous) = self.previous
            && self.fits(previous, len)
        {
            self.previous = self.open.replace(previous);
            return previous;
        }
        self.tidy();
        let place = self.new_block(len);
        self.previous = self.open.replace(place);
        place
    }

    fn new_block(&mut self, len: usize) -> u32 {
        let spare = self.take_spare(len.max(self.block_len));
        self.take_in(spare.unwrap_or_else(|| Block::for_sending(len.max(self.block_len))))
    }

    /// Gives a block its place.
    fn take_in(&mut self, memory: Arc<Block>) -> u32 {
        self.bytes += memory.len();
        let place = self.vacant_place();
        self.blocks[place as usize].block = Some(memory);
        place
    }

    fn vacant_place(&mut self) -> u32 {
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.blocks.push(HistoryBlock::default());
            self.blocks.len() as u32 - 1
        });
        let block = &mut self.blocks[place as usize];
        (block.used, block.live, block.first, block.last) = (0, 0, 0, -1);
        place
    }

    /// A step towards less memory, as large as a block's worth of samples.
    fn tidy(&mut self) {
        if self.entries.len() > 2 * self.alive + DENSE_SPARE {
            self.age();
        }
        for _ in 0..VICTIMS_AT_A_TIME {
            // Half of what is held is dead, and more than is worth the trouble.
            if self.used - self.live <= self.live + BLOCKS_DEAD_MAX * self.block_len {
                break;
            }
            let Some(victim) = self.victim() else { break };
            self.evacuate(victim);
        }
    }

    /// Moves the oldest entries of the dense index to the sparse one.
    fn age(&mut self) {
        for _ in 0..AGED_AT_A_TIME.min(self.entries.len()) {
            let Some(entry) = self.entries.pop_front() else { break };
            self.charged_old = entry.charged;
            if entry.is_alive() {
                self.old.push_back((self.dense, entry));
            }
            self.dense += 1;
        }
    }

    /// The block with the largest share of dead bytes, if it is worth moving the rest.
    fn victim(&self) -> Option<u32> {
        let is_open = |place| Some(place) == self.open || Some(place) == self.refuge;
        let blocks = self.blocks.iter().zip(0_u32..).filter(|(block, place)| {
            block.block.is_some() && !is_open(*place) && block.len() == self.block_len
        });
        let (block, place) = blocks.max_by_key(|(block, _)| block.used - block.live)?;
        (block.used - block.live >= block.used / 4).then_some(place)
    }

    /// Moves what is left in a block to another one. The samples of a batch part: each becomes a datagram.
    fn evacuate(&mut self, victim: u32) {
        let (first, last) = (self.blocks[victim as usize].first, self.blocks[victim as usize].last);
        let moved = core::mem::take(&mut self.blocks[victim as usize].moved);
        for &sn in &moved {
            self.move_sample(victim, sn);
        }
        let mut index = self.old.partition_point(|(sn, _)| *sn < first);
        while let Some(&(sn, _)) = self.old.get(index).filter(|(sn, _)| *sn <= last) {
            self.move_sample(victim, sn);
            index += 1;
        }
        for sn in first.max(self.dense)..=last {
            self.move_sample(victim, sn);
        }
        // The list keeps its memory.
        self.blocks[victim as usize].moved = moved;
        self.retire(victim);
    }

    fn move_sample(&mut self, victim: u32, sn: i64) {
        let Some(entry) = self.entry(SequenceNumber(sn)) else { return };
        if !entry.is_alive() || entry.block != victim {
            return;
        }
        let Some(source) = self.blocks[victim as usize].block.clone() else { return };
        let (offset, own_at) = (entry.offset as usize, usize::from(entry.own_at));
        let own = &source.bytes()[offset + own_at..offset + entry.len as usize];
        let head = if own_at == 0 { &[][..] } else { &source.bytes()[offset..offset + DATAGRAM_HEAD_LEN] };
        let len = head.len() + own.len();
        let place = match self.refuge {
            Some(place) if self.block_len - self.blocks[place as usize].used >= len => place,
            _ => self.new_refuge(),
        };
        let block = &mut self.blocks[place as usize];
        let at = block.used;
        // Nobody sends from what was not filled yet, but somebody may send what was.
        let Some(bytes) = block.bytes_mut() else { return self.leave_refuge(victim, sn) };
        bytes[at..at + head.len()].copy_from_slice(head);
        bytes[at + head.len()..at + len].copy_from_slice(own);
        block.used += len;
        block.live += len;
        block.moved.push(sn);
        self.used += len;
        self.live += len;
        self.let_go_of_moved(victim, own.len());
        self.place(sn, Entry { block: place, offset: at as u32, len: len as u32, own_at: 0, ..entry });
    }

    /// Somebody is sending from the block that survivors move to: they move to another one.
    fn leave_refuge(&mut self, victim: u32, sn: i64) {
        self.new_refuge();
        self.move_sample(victim, sn);
    }

    fn new_refuge(&mut self) -> u32 {
        if let Some(full) = self.refuge.take()
            && self.blocks[full as usize].live == 0
        {
            self.retire(full);
        }
        let place = self.new_block(self.block_len);
        self.refuge = Some(place);
        place
    }

    /// As [`History::let_go`], but the block is retired by the caller.
    fn let_go_of_moved(&mut self, place: u32, own: usize) {
        self.blocks[place as usize].live -= own;
        self.live -= own;
    }

    /// Sets where a sample lies.
    fn place(&mut self, sn: i64, entry: Entry) {
        let place = match usize::try_from(sn - self.dense) {
            Ok(index) => self.entries.get_mut(index),
            Err(_) => self.find_old(sn).and_then(|index| self.old.get_mut(index)).map(|(_, entry)| entry),
        };
        if let Some(place) = place {
            *place = entry;
        }
    }
}

/// Entries that the dense index may have beyond two per sample, and how many of them move at a time: several times
/// as many as a block holds.
const DENSE_SPARE: usize = 8192;
/// See [`DENSE_SPARE`].
const AGED_AT_A_TIME: usize = 16_384;
/// Holes in the sparse index beyond half of it.
const OLD_DEAD_SPARE: usize = 1024;
/// Dead bytes that are held beyond as many as there are live ones, in blocks.
const BLOCKS_DEAD_MAX: usize = 16;
/// Blocks that are evacuated whenever one is full. Each of them is at least half dead when half of everything is, so
/// two would do.
const VICTIMS_AT_A_TIME: usize = 4;

#[cfg(test)]
mod tests;
