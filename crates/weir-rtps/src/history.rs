//! A writer's history: its datagrams, contiguous in blocks, and an index over them.
//!
//! The history stores the bytes that were sent, so a repair sends the same bytes again. Of a sample
//! sent in fragments it stores the payload alone. Sequence numbers are dense, so the index is a
//! queue and a look-up is a subtraction. Blocks are reused; after warm-up nothing is allocated.
//!
//! KEEP_LAST over many instances leaves holes between surviving samples. Two mechanisms keep memory
//! bounded. Old survivors move to a second, sparse index with binary search. Survivors of blocks
//! that are mostly dead move to another block. Both work in small steps, each time a block is full,
//! so that no write takes long. A thread that sends from a block holds a reference to it, so bytes
//! in flight never move.

mod block;
mod fixed;
mod moving;
pub(crate) mod pieces;
mod spare;

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use weir_wire::SequenceNumber;

use self::block::HistoryBlock;
pub(crate) use self::block::{DATAGRAM_HEAD_LEN, Entry};
pub(crate) use self::fixed::HistorySize;
use crate::block::{Block, BlockSlice};

/// The samples of one writer, by sequence number.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The blocks. An entry names its block by position.
    blocks: Vec<HistoryBlock>,
    vacant: Vec<u32>,
    /// The block that new samples are written to.
    open: Option<u32>,
    /// The block written to before `open`, until all its samples are gone. It was left because a
    /// thread was sending from it, or because a sample did not fit.
    previous: Option<u32>,
    /// The block that survivors are moved to.
    refuge: Option<u32>,
    entries: VecDeque<Entry>,
    /// Sequence number of `entries[0]`.
    dense: i64,
    /// The entries that survived until `dense` passed them, in sequence order.
    old: VecDeque<(i64, Entry)>,
    /// Dead entries in `old`.
    old_dead: usize,
    /// Samples in the history.
    alive: usize,
    spare: Vec<Arc<Block>>,
    /// Blocks for pieces of large samples, most recently used last.
    spare_pieces: Vec<Arc<Block>>,
    block_len: usize,
    spare_max: usize,
    /// `None`: memory is allocated as needed.
    fixed: Option<HistorySize>,
    /// Blocks allocated although the memory was reserved: threads were sending from the others.
    beyond: u64,
    /// Bytes charged against the window by all samples so far.
    charged: u64,
    /// `charged` up to the last sample before `dense`.
    charged_old: u64,
    /// `charged` up to the last released sample.
    charged_released: u64,
    /// Bytes of all blocks.
    bytes: usize,
    /// Bytes of all samples so far. `moved` were written a second time, and `gone` belong to samples that left their
    /// place. They are still in their blocks, but for `vacated`.
    ///
    /// There is no sum of the bytes that remain: two neighbouring sums that one path changes together and another one
    /// singly make the next write wait for the store buffer.
    written: u64,
    moved: u64,
    gone: u64,
    vacated: u64,
}

impl History {
    /// `first`: the number of the first sample.
    pub(crate) fn new(first: SequenceNumber, block_len: usize, spare_max: usize) -> Self {
        Self { dense: first.0, block_len, spare_max, ..Self::default() }
    }

    /// Returns the first sequence number in the history, or the next one if it is empty.
    #[inline]
    pub(crate) fn first(&self) -> SequenceNumber {
        SequenceNumber(self.old.front().map_or(self.dense, |(sn, _)| *sn))
    }

    /// Returns the sequence number of the next sample.
    #[inline]
    pub(crate) fn next(&self) -> SequenceNumber {
        SequenceNumber(self.dense + self.entries.len() as i64)
    }

    /// Returns the last sequence number written; 0 before the first.
    #[inline]
    pub(crate) fn last(&self) -> SequenceNumber {
        SequenceNumber(self.next().0 - 1)
    }

    /// Returns the number of samples.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.alive
    }

    /// Returns whether there are neither samples nor holes.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.old.is_empty()
    }

    /// Returns the number of sequence numbers from the first sample to the last, including holes.
    #[inline]
    pub(crate) fn span(&self) -> usize {
        (self.next().0 - self.first().0) as usize
    }

    /// Returns the bytes of all samples so far, with their headers.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Returns the bytes of the samples in the history, with their headers.
    #[inline]
    pub(crate) fn live_bytes(&self) -> usize {
        (self.written + self.moved - self.gone) as usize
    }

    /// Returns the bytes in all blocks that were written to, whether their samples are still there or not.
    fn used(&self) -> usize {
        (self.written + self.moved - self.vacated) as usize
    }

    /// Returns the bytes of memory in use: blocks, including spare ones, and the index.
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

    /// Returns the bytes charged so far.
    #[inline]
    pub(crate) fn charged(&self) -> u64 {
        self.charged
    }

    /// Returns the bytes charged up to and including `sn`.
    ///
    /// `sn` may be the number just before the history. In the sparse index, a removed sample counts
    /// with the next one that is left.
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

    /// Returns the entry of a sample between first and last. It may be dead.
    #[inline]
    pub(crate) fn get(&self, sn: SequenceNumber) -> Option<&Entry> {
        match usize::try_from(sn.0 - self.dense) {
            Ok(index) => self.entries.get(index),
            Err(_) => self.find_old(sn.0).map(|index| &self.old[index].1),
        }
    }

    /// Returns a copy of the entry, see [`History::get`].
    #[inline]
    pub(crate) fn entry(&self, sn: SequenceNumber) -> Option<Entry> {
        self.get(sn).copied()
    }

    /// Returns the first surviving sample from `sn` on, or the next sequence number if there is
    /// none.
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

    /// Reserves memory for a datagram of `len` bytes, to be filled and committed.
    #[inline]
    pub(crate) fn reserve(&mut self, len: usize) -> &mut [u8] {
        self.prepare(len);
        self.reserved(len)
    }

    /// Reserves memory for a payload that is sent in fragments.
    #[cold]
    pub(crate) fn reserve_large(&mut self, len: usize) -> &mut [u8] {
        self.reserve(len)
    }

    /// Makes sure that the open block has room for `len` bytes.
    #[inline]
    pub(crate) fn prepare(&mut self, len: usize) {
        if !self.open.is_some_and(|open| self.fits(open, len)) {
            self.open_block(len);
        }
    }

    /// Returns the memory prepared last.
    #[inline]
    pub(crate) fn reserved(&mut self, len: usize) -> &mut [u8] {
        let block = self.open.and_then(|open| self.blocks.get_mut(open as usize));
        match block.and_then(|block| {
            let used = block.used;
            block.bytes_mut()?.get_mut(used..used + len)
        }) {
            Some(bytes) => bytes,
            // `fits` or `open_block` has just made sure of this.
            None => unreachable!("the open block is ours alone"),
        }
    }

    /// Returns the memory prepared last, for reading.
    #[inline]
    pub(crate) fn filled(&self, len: usize) -> &[u8] {
        let Some(block) = self.open.and_then(|open| self.blocks.get(open as usize)) else { return &[] };
        let bytes = block.block.as_ref().map_or(&[][..], |block| block.bytes());
        bytes.get(block.used..block.used + len).unwrap_or_default()
    }

    /// Returns whether `len` more bytes fit the open block and no thread is sending from it.
    #[inline]
    fn fits(&mut self, open: u32, len: usize) -> bool {
        let block = &mut self.blocks[open as usize];
        let (used, live, room) = (block.used, block.live, block.len());
        // Starting from the beginning again keeps the cache warm and few pages in use.
        let is_empty = live == 0;
        // A large sample gets a block of its own, because a small one in it would keep its memory
        // in use.
        let has_room = if is_empty { room >= len } else { room - used >= len && room <= self.block_len };
        if !has_room || !block.is_unshared() {
            return false;
        }
        if is_empty {
            block.used = 0;
            self.vacated += used as u64;
        }
        true
    }

    /// Makes the `len` bytes reserved last the next sample, charged `charge` bytes.
    ///
    /// With a `fragment_size`, they are a payload sent in fragments of that many bytes; with 0, a
    /// datagram.
    pub(crate) fn commit(&mut self, len: usize, fragment_size: u32, charge: u64) {
        if let Some(open) = self.open {
            let offset = self.blocks[open as usize].used;
            self.append(open, (offset, len), fragment_size, charge);
        }
    }

    /// Makes `len` bytes at `offset` of the block at `place` the next sample.
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

    /// Assigns the next number to a sample that is charged but not kept. The history must be empty,
    /// and stays so.
    #[inline]
    pub(crate) fn pass(&mut self, charge: u64) {
        debug_assert!(self.is_empty());
        self.dense += 1;
        self.charged += charge;
        (self.charged_old, self.charged_released) = (self.charged, self.charged);
    }

    /// Makes sure that the next datagram can grow in place to `len` bytes.
    pub(crate) fn make_room(&mut self, len: usize) {
        if len <= self.block_len {
            self.prepare(len);
        }
    }

    /// Returns `extra` bytes of room behind the last datagram, for [`History::commit_extension`].
    ///
    /// Returns `None` if there is no room, or if a thread is sending from the block.
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

    /// Accounts for `len` bytes of sample `sn` written to a block.
    #[inline]
    fn grow(&mut self, place: u32, len: usize, sn: i64) {
        let block = &mut self.blocks[place as usize];
        if block.used == 0 {
            block.first = sn;
        }
        block.last = sn;
        block.used += len;
        block.live += len;
        self.written += len as u64;
        self.alive += 1;
    }

    /// Returns the bytes of a sample's datagram.
    pub(crate) fn slice(&self, entry: &Entry) -> Option<BlockSlice> {
        let block = self.blocks.get(entry.block as usize)?.block.as_ref()?;
        Some(BlockSlice::new(Arc::clone(block), entry.offset, entry.offset + entry.len))
    }

    /// Returns the bytes of one fragment, counted from 0.
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

    /// Removes one sample, which leaves a hole.
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
            if self.old_dead > self.old.len() / 2 + self.old_dead_spare() {
                self.old.retain(|(_, entry)| entry.is_alive());
                self.old_dead = 0;
            }
        }
        self.trim();
    }

    /// Removes the holes before the first surviving sample.
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

    /// Removes every sample up to and including `last`.
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
        // Consecutive samples are mostly in the same block, so their bytes are summed first.
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

    /// Accounts for `own` bytes of samples removed from a block, and retires the block if it is
    /// empty.
    #[inline]
    fn let_go(&mut self, place: u32, own: usize) {
        let Some(block) = self.blocks.get_mut(place as usize).filter(|_| own > 0) else { return };
        block.live -= own;
        self.gone += own as u64;
        if block.live == 0 && self.open != Some(place) && self.refuge != Some(place) {
            self.retire(place);
        }
    }

    /// Takes the memory from a block without samples.
    fn retire(&mut self, place: u32) {
        let block = &mut self.blocks[place as usize];
        let used = core::mem::take(&mut block.used) as u64;
        block.moved.clear();
        if block.is_in_pieces {
            self.vacated += used;
            return self.retire_pieces(place);
        }
        let Some(memory) = block.block.take() else { return };
        self.previous = self.previous.filter(|previous| *previous != place);
        self.vacant.push(place);
        self.vacated += used;
        self.bytes -= memory.len();
        self.keep(memory);
    }

    /// Lends memory of at least `len` bytes. It returns through [`History::adopt`] or
    /// [`History::keep`]. Its contents are unspecified.
    pub(crate) fn lend(&mut self, len: usize) -> Arc<Block> {
        self.close_unused();
        self.take_spare(len).unwrap_or_else(|| {
            self.beyond += u64::from(self.fixed.is_some());
            Block::new(len)
        })
    }

    /// Makes a part of a block filled elsewhere the next sample. Parameters as for
    /// [`History::commit`]. Nothing else is written to that block.
    pub(crate) fn adopt(&mut self, block: Arc<Block>, part: Range<usize>, fragment_size: u32, charge: u64) {
        self.close_unused();
        self.tidy();
        let place = self.take_in(block);
        self.append(place, (part.start, part.len()), fragment_size, charge);
    }

    /// Closes the open block if it has no samples.
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
        let len = len.max(self.block_len);
        let spare = self.take_spare(len).unwrap_or_else(|| {
            self.beyond += u64::from(self.fixed.is_some());
            Block::for_sending(len)
        });
        self.take_in(spare)
    }

    /// Assigns a place to a block of memory.
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

/// Dead entries allowed in the sparse index in addition to half of it.
const OLD_DEAD_SPARE: usize = 1024;

#[cfg(test)]
mod tests;
