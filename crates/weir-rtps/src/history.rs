//! A writer's history: the datagrams themselves, laid end to end in blocks, and a dense index over them.
//!
//! What was sent is what is kept: a repair sends the same bytes again. Sequence numbers are dense, so the
//! index is a queue and a look-up is a subtraction. Blocks are reused; after warm-up nothing is allocated.

use core::ops::Range;
use std::collections::VecDeque;
use std::sync::Arc;

use weir_wire::SequenceNumber;

use crate::block::{Block, BlockSlice};
use crate::config;

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
    pub(crate) fragment_size: u32,
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
        if self.fragment_size == 0 { 0 } else { self.len.div_ceil(self.fragment_size) }
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
}

#[derive(Debug)]
struct HistoryBlock {
    block: Arc<Block>,
    used: usize,
    last: i64,
}

/// The samples of one writer, by sequence number.
#[derive(Debug)]
pub(crate) struct History {
    blocks: VecDeque<HistoryBlock>,
    /// Identity of `blocks[0]`; identities are consecutive.
    first_block: u32,
    entries: VecDeque<Entry>,
    /// Sequence number of `entries[0]`.
    first: i64,
    spare: Vec<Arc<Block>>,
    block_len: usize,
    spare_max: usize,
    charged: u64,
    /// The same up to the last sample that was released.
    charged_released: u64,
    bytes: usize,
}

impl History {
    pub(crate) fn new(block_len: usize, spare_max: usize) -> Self {
        Self {
            blocks: VecDeque::new(),
            first_block: 0,
            entries: VecDeque::new(),
            first: 1,
            spare: Vec::new(),
            block_len,
            spare_max,
            charged: 0,
            charged_released: 0,
            bytes: 0,
        }
    }

    /// The first sequence number in the history, or the next to be written when it is empty.
    #[inline]
    pub(crate) fn first(&self) -> SequenceNumber {
        SequenceNumber(self.first)
    }

    /// The sequence number of the next sample.
    #[inline]
    pub(crate) fn next(&self) -> SequenceNumber {
        SequenceNumber(self.first + self.entries.len() as i64)
    }

    /// The last sequence number that was written; 0 before the first.
    #[inline]
    pub(crate) fn last(&self) -> SequenceNumber {
        SequenceNumber(self.next().0 - 1)
    }

    /// Number of samples between the first and the last, those that were replaced included.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes that the history's blocks take, spare ones included.
    pub(crate) fn memory(&self) -> usize {
        self.bytes + self.spare.iter().map(|spare| spare.len()).sum::<usize>()
    }

    /// Everything charged so far.
    #[inline]
    pub(crate) fn charged(&self) -> u64 {
        self.charged
    }

    /// Everything charged up to and with `sn`, which may be just before the history.
    pub(crate) fn charged_to(&self, sn: SequenceNumber) -> u64 {
        match self.entries.get(usize::try_from(sn.0 - self.first).unwrap_or(usize::MAX)) {
            Some(entry) => entry.charged,
            None if sn.0 >= self.first => self.charged,
            None => self.charged_released,
        }
    }

    /// The sample with this number, when it is (or was) between first and last.
    #[inline]
    pub(crate) fn entry(&self, sn: SequenceNumber) -> Option<Entry> {
        self.entries.get(usize::try_from(sn.0 - self.first).ok()?).copied()
    }

    /// Memory for a datagram of `len` bytes, to be filled and then committed.
    pub(crate) fn reserve(&mut self, len: usize) -> &mut [u8] {
        let empty = self.entries.is_empty();
        let fits = self.blocks.back_mut().is_some_and(|block| {
            let ours_alone = Arc::get_mut(&mut block.block).is_some();
            if empty && ours_alone {
                // Starting over keeps the memory warm in the cache and few pages in use.
                block.used = 0;
            }
            ours_alone && block.block.len() - block.used >= len
        });
        if !fits {
            self.open_block(len);
        }
        let current = self.blocks.back_mut().map(|block| (block.used, Arc::get_mut(&mut block.block)));
        match current {
            Some((used, Some(block))) => &mut block.bytes_mut()[used..used + len],
            // `fits` or `open_block` has just made sure of it.
            _ => unreachable!("the open block is ours alone"),
        }
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
        let index = self.blocks.len().saturating_sub(1) as u32;
        self.charged += charge;
        if let Some(block) = self.blocks.back_mut() {
            self.entries.push_back(Entry {
                block: self.first_block.wrapping_add(index),
                offset: block.used as u32,
                len: len as u32,
                fragment_size,
                charged: self.charged,
            });
            block.used += len;
            block.last = sn.0;
        }
        sn
    }

    /// Makes sure that the next datagram can grow to `len` bytes where it begins.
    pub(crate) fn make_room(&mut self, len: usize) {
        let has_room = self.blocks.back().is_some_and(|block| block.block.len() - block.used >= len);
        if !has_room && len <= self.block_len {
            self.open_block(len);
        }
    }

    /// The last datagram and `extra` bytes of room behind it, to be filled and then committed by
    /// [`History::commit_extension`]; `None` when there is no room, or somebody is sending from the block.
    #[inline]
    pub(crate) fn extend(&mut self, extra: usize) -> Option<&mut [u8]> {
        let last = self.entries.back()?;
        let block = self.blocks.back_mut()?;
        let end = (last.offset + last.len) as usize;
        let bytes = Arc::get_mut(&mut block.block)?.bytes_mut();
        if end != block.used || last.len == 0 || last.fragment_size != 0 {
            return None;
        }
        bytes.get_mut(last.offset as usize..end + extra)
    }

    /// Makes the `extra` bytes behind the last datagram the next sample.
    #[inline]
    pub(crate) fn commit_extension(&mut self, extra: usize, charge: u64) -> SequenceNumber {
        let sn = self.next();
        if let (Some(last), Some(block)) = (self.entries.back().copied(), self.blocks.back_mut()) {
            self.charged += charge;
            self.entries.push_back(Entry { len: last.len + extra as u32, charged: self.charged, ..last });
            block.used += extra;
            block.last = sn.0;
        }
        sn
    }

    /// The bytes from the datagram of `from` to the end of that of `to`, which lie in one block.
    pub(crate) fn slice(&self, from: &Entry, to: &Entry) -> Option<BlockSlice> {
        let block = self.blocks.get(from.block.wrapping_sub(self.first_block) as usize)?;
        Some(BlockSlice::new(Arc::clone(&block.block), from.offset, to.offset + to.len))
    }

    /// The bytes of one fragment, counted from 0.
    pub(crate) fn fragment(&self, entry: &Entry, index: u32) -> Option<BlockSlice> {
        let block = self.blocks.get(entry.block.wrapping_sub(self.first_block) as usize)?;
        let start = entry.offset + index * entry.fragment_size;
        let end = (start + entry.fragment_size).min(entry.offset + entry.len);
        Some(BlockSlice::new(Arc::clone(&block.block), start, end))
    }

    /// Takes one sample out, leaving a hole.
    pub(crate) fn remove(&mut self, sn: SequenceNumber) {
        if let Some(entry) = usize::try_from(sn.0 - self.first).ok().and_then(|i| self.entries.get_mut(i)) {
            entry.len = 0;
        }
        let holes = self.entries.iter().take_while(|entry| !entry.is_alive()).count();
        if holes > 0 {
            self.release_to(SequenceNumber(self.first + holes as i64 - 1));
        }
    }

    /// Forgets every sample up to and with `last`.
    pub(crate) fn release_to(&mut self, last: SequenceNumber) {
        let Ok(count) = usize::try_from(last.0 - self.first + 1) else { return };
        let count = count.min(self.entries.len());
        if let Some(last) = self.entries.drain(..count).next_back() {
            self.charged_released = last.charged;
        }
        self.first += count as i64;
        while self.blocks.len() > 1 && self.blocks[0].last < self.first {
            self.retire_front();
        }
    }

    fn retire_front(&mut self) {
        let Some(retired) = self.blocks.pop_front() else { return };
        self.first_block = self.first_block.wrapping_add(1);
        self.bytes -= retired.block.len();
        self.keep(retired.block);
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
        let sn = self.next();
        self.charged += charge;
        self.entries.push_back(Entry {
            block: self.first_block.wrapping_add(self.blocks.len() as u32),
            offset: part.start as u32,
            len: part.len() as u32,
            fragment_size,
            charged: self.charged,
        });
        self.bytes += block.len();
        self.blocks.push_back(HistoryBlock { used: block.len(), block, last: sn.0 });
        sn
    }

    /// Lets go of the open block when nothing was committed to it, or all of its samples are gone.
    fn close_unused(&mut self) {
        if self.blocks.back().is_some_and(|block| block.used == 0 || block.last < self.first)
            && let Some(unused) = self.blocks.pop_back()
        {
            self.bytes -= unused.block.len();
            self.keep(unused.block);
        }
    }

    fn open_block(&mut self, len: usize) {
        self.close_unused();
        let spare = self.take_spare(len.max(self.block_len));
        let block = spare.unwrap_or_else(|| Block::new(len.max(self.block_len)));
        self.bytes += block.len();
        self.blocks.push_back(HistoryBlock { block, used: 0, last: 0 });
    }

    /// Keeps a block for reuse, within limits.
    pub(crate) fn keep(&mut self, block: Arc<Block>) {
        let bytes: usize = self.spare.iter().map(|spare| spare.len()).sum();
        let has_room =
            block.len() == self.block_len || bytes + block.len() <= config::LARGE_BUFFERS_MAX_BYTES;
        if has_room && self.spare.len() < self.spare_max {
            self.spare.push(block);
        }
    }

    /// A spare block of at least `len` bytes, and not many times that, that nobody is sending from any more.
    fn take_spare(&mut self, len: usize) -> Option<Arc<Block>> {
        let fits = |block: &mut Arc<Block>| {
            block.len() >= len && block.len() / 2 <= len && Arc::get_mut(block).is_some()
        };
        let index = self.spare.iter_mut().position(fits)?;
        Some(self.spare.swap_remove(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(history: &mut History, fill: u8, len: usize) -> SequenceNumber {
        history.reserve(len).fill(fill);
        history.commit(len, len as u64)
    }

    fn bytes(history: &History, sn: i64) -> Vec<u8> {
        let entry = history.entry(SequenceNumber(sn)).unwrap();
        history.slice(&entry, &entry).unwrap().bytes().to_vec()
    }

    #[test]
    fn samples_are_found_by_number_until_they_are_released() {
        let mut history = History::new(64, 4);
        for n in 1..=10_u8 {
            assert_eq!(add(&mut history, n, 20), SequenceNumber(i64::from(n)));
        }
        assert_eq!(bytes(&history, 7), [7; 20]);
        history.release_to(SequenceNumber(6));
        assert_eq!(
            (history.first(), history.last(), history.len()),
            (SequenceNumber(7), SequenceNumber(10), 4)
        );
        assert!(history.entry(SequenceNumber(6)).is_none());
        assert_eq!(bytes(&history, 10), [10; 20]);
        assert_eq!(history.charged_to(SequenceNumber(8)), 160);
    }

    #[test]
    fn a_block_that_is_being_sent_is_not_written_to() {
        let mut history = History::new(64, 4);
        add(&mut history, 1, 8);
        let entry = history.entry(SequenceNumber(1)).unwrap();
        let sending = history.slice(&entry, &entry).unwrap();
        history.release_to(SequenceNumber(1));
        add(&mut history, 2, 8);
        assert_eq!(sending.bytes(), [1; 8]);
        assert_eq!(bytes(&history, 2), [2; 8]);
    }

    #[test]
    fn memory_does_not_grow_when_samples_come_and_go() {
        let mut history = History::new(256, 4);
        for n in 0..10_000_i64 {
            add(&mut history, 0, 50);
            history.release_to(SequenceNumber(n - 20));
        }
        assert!(history.memory() <= 256 * 10, "{}", history.memory());
    }

    #[test]
    fn holes_at_the_front_are_released() {
        let mut history = History::new(64, 4);
        for n in 1..=4 {
            add(&mut history, n, 8);
        }
        history.remove(SequenceNumber(2));
        assert_eq!(history.first(), SequenceNumber(1));
        assert!(!history.entry(SequenceNumber(2)).unwrap().is_alive());
        history.remove(SequenceNumber(1));
        assert_eq!(history.first(), SequenceNumber(3));
    }

    #[test]
    fn a_datagram_longer_than_a_block_gets_one_of_its_own() {
        let mut history = History::new(64, 4);
        add(&mut history, 1, 8);
        add(&mut history, 2, 200);
        assert_eq!(bytes(&history, 2), [2; 200]);
        history.release_to(SequenceNumber(2));
        add(&mut history, 3, 8);
        assert_eq!(bytes(&history, 3), [3; 8]);
    }
}
