//! A writer's history: the datagrams themselves, laid end to end in blocks, and an index over them.
//!
//! What was sent is what is kept: a repair sends the same bytes again. Sequence numbers are dense, so the
//! index is a queue and a look-up is a subtraction. Blocks are reused; after warm-up nothing is allocated.
//!
//! KEEP_LAST over many instances leaves holes. Neither they nor the survivors between them may hold up memory: what
//! is old and still there moves to a second, sparse index, which is searched, and the survivors of blocks that are
//! mostly dead move into other blocks. Both happen in small steps whenever a block is full, so that no write waits
//! long for them. A thread that sends from a block holds it, so bytes in flight stay where they are.

mod block;
mod moving;
pub(crate) mod pieces;
mod spare;

use core::ops::Range;
use std::collections::VecDeque;
use std::sync::Arc;

use weir_wire::SequenceNumber;

use self::block::HistoryBlock;
pub(crate) use self::block::{DATAGRAM_HEAD_LEN, Entry};
use crate::block::{Block, BlockSlice};

/// The samples of one writer, by sequence number.
#[derive(Debug)]
pub(crate) struct History {
    /// Places of blocks; an entry names one.
    blocks: Vec<HistoryBlock>,
    vacant: Vec<u32>,
    /// The block that is written to.
    open: Option<u32>,
    /// The block that was written to before, until nothing is left in it: a thread was sending from it, or a sample did not
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
    pub(crate) fn get(&self, sn: SequenceNumber) -> Option<&Entry> {
        match usize::try_from(sn.0 - self.dense) {
            Ok(index) => self.entries.get(index),
            Err(_) => self.find_old(sn.0).map(|index| &self.old[index].1),
        }
    }

    /// A copy of it.
    #[inline]
    pub(crate) fn entry(&self, sn: SequenceNumber) -> Option<Entry> {
        self.get(sn).copied()
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

    /// The same for a payload that leaves in fragments.
    #[cold]
    pub(crate) fn reserve_large(&mut self, len: usize) -> &mut [u8] {
        self.reserve(len)
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

    /// Makes the `len` bytes that were reserved last the next sample: a datagram, or with `fragment_size` a payload that
    /// leaves in fragments of so many bytes. It costs `charge` bytes in flight.
    pub(crate) fn commit(&mut self, len: usize, fragment_size: u32, charge: u64) {
        if let Some(open) = self.open {
            let offset = self.blocks[open as usize].used;
            self.append(open, (offset, len), fragment_size, charge);
        }
    }

    /// Makes a part of the block at `place`, by offset and length, the next sample.
    #[inline]
    fn append(
        &mut self,
        place: u32,
        (offset, len): (usize, usize),
        fragment_size: u32,
        charge: u64,
    ) -> SequenceNumber {
        let sn = self.next();
        self.charged += charge;
        self.entries.push_back(Entry {
            block: place,
            offset: offset as u32,
            len: len as u32,
            fragment_size: fragment_size as u16,
            own_at: 0,
            charged: self.charged,
        });
        self.grow(place, len, sn.0);
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

    /// `extra` bytes of room behind the last datagram, to be filled and then committed by
    /// [`History::commit_extension`]; `None` when there is no room, or a thread is sending from the block.
    #[inline(always)]
    pub(crate) fn extension(&mut self, extra: usize) -> Option<&mut [u8]> {
        let last = self.entries.back()?;
        let block = self.blocks.get_mut(self.open? as usize)?;
        let end = (last.offset + last.len) as usize;
        let is_last = Some(last.block) == self.open && end == block.used;
        if !is_last || last.len == 0 || last.fragment_size != 0 || last.len > u32::from(u16::MAX) {
            return None;
        }
        block.bytes_mut()?.get_mut(end..end + extra)
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

    /// The bytes of a sample's datagram.
    pub(crate) fn slice(&self, entry: &Entry) -> Option<BlockSlice> {
        let block = self.blocks.get(entry.block as usize)?.block.as_ref()?;
        Some(BlockSlice::new(Arc::clone(block), entry.offset, entry.offset + entry.len))
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
    pub(crate) fn adopt(&mut self, block: Arc<Block>, part: Range<usize>, fragment_size: u32, charge: u64) {
        self.close_unused();
        self.tidy();
        let place = self.take_in(block);
        self.append(place, (part.start, part.len()), fragment_size, charge);
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
}

/// Holes in the sparse index beyond half of it.
const OLD_DEAD_SPARE: usize = 1024;

#[cfg(test)]
mod tests;
