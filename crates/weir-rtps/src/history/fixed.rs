//! The memory of a history that reserves all of it when it is created.
//!
//! There is a block for each sample, and a block in use has at least one sample. Short samples share blocks. Nothing
//! ever moves.

use alloc::sync::Arc;

use weir_wire::SequenceNumber;

use super::block::{Entry, HistoryBlock};
use super::{History, OLD_DEAD_SPARE, moving};
use crate::block::Block;

/// What a history reserves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HistorySize {
    blocks: usize,
    block_len: usize,
    /// Entries of the dense index, and of the sparse one.
    entries: usize,
    old: usize,
}

impl HistorySize {
    /// Returns the size for so many samples, each of at most `len` bytes with its headers.
    pub(crate) fn new(samples: usize, len: usize) -> Self {
        let block_len = len.next_multiple_of(64);
        // Between two looks at the index, at most one block is filled.
        let in_a_block = block_len / ENTRY_BYTES_MIN + 1;
        let samples = samples.saturating_add(1);
        let twice = samples.saturating_mul(2);
        Self {
            blocks: samples.saturating_add(BLOCKS_BESIDE),
            block_len,
            entries: twice.saturating_add(FIXED_SPARE + in_a_block),
            old: twice.saturating_add(2 * FIXED_SPARE),
        }
    }

    /// Creates a block. Only large ones start in the middle of a page: see [`Block::for_sending`].
    pub(super) fn block(&self) -> Arc<Block> {
        if self.is_large() { Block::for_sending(self.block_len) } else { Block::new(self.block_len) }
    }

    fn is_large(&self) -> bool {
        self.block_len >= LARGE_BYTES
    }

    /// Returns the memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let block = if self.is_large() {
            Block::footprint_for_sending(self.block_len)
        } else {
            Block::footprint(self.block_len)
        };
        let of_block = block + size_of::<HistoryBlock>() + LISTED_BYTES;
        (self.blocks.saturating_mul(of_block))
            .saturating_add(self.entries.saturating_mul(size_of::<Entry>()))
            .saturating_add(self.old.saturating_mul(size_of::<(i64, Entry)>()))
    }
}

impl History {
    /// Creates a history that reserves its memory. `first`: the number of the first sample.
    pub(crate) fn fixed(first: SequenceNumber, size: HistorySize) -> Self {
        let mut history = Self::new(first, size.block_len, size.blocks);
        history.fixed = Some(size);
        history.blocks.reserve_exact(size.blocks);
        history.vacant.reserve_exact(size.blocks);
        history.spare.reserve_exact(size.blocks);
        history.spare.extend((0..size.blocks).map(|_| size.block()));
        history.entries.reserve_exact(size.entries);
        history.old.reserve_exact(size.old);
        history
    }

    /// Returns whether all memory was reserved at the start.
    pub(crate) fn is_fixed(&self) -> bool {
        self.fixed.is_some()
    }

    /// Returns how many blocks were allocated although all memory was reserved.
    pub(crate) fn blocks_beyond(&self) -> u64 {
        self.beyond
    }

    /// Returns the memory allocated, in bytes.
    pub(crate) fn allocated(&self) -> usize {
        let blocks = self.blocks.iter().flat_map(|place| place.block.iter().chain(&place.pieces));
        let blocks = blocks.chain(&self.spare).chain(&self.spare_pieces);
        let moved: usize = self.blocks.iter().map(|block| block.moved.capacity() * size_of::<i64>()).sum();
        blocks.map(|block| block.memory()).sum::<usize>()
            + self.memory_of_lists()
            + moved
            + self.blocks.capacity() * size_of::<HistoryBlock>()
            + self.vacant.capacity() * size_of::<u32>()
            + self.spare.capacity() * size_of::<usize>()
            + self.entries.capacity() * size_of::<Entry>()
            + self.old.capacity() * size_of::<(i64, Entry)>()
    }

    pub(super) fn dense_spare(&self) -> usize {
        if self.fixed.is_some() { FIXED_SPARE } else { moving::DENSE_SPARE }
    }

    pub(super) fn old_dead_spare(&self) -> usize {
        if self.fixed.is_some() { FIXED_SPARE } else { OLD_DEAD_SPARE }
    }
}

/// Memory of this length or more starts at a page.
const LARGE_BYTES: usize = 128 * 1024;
/// Blocks besides those of the samples: the open one, the one before it, and two from which threads are sending.
const BLOCKS_BESIDE: usize = 4;
/// Dead entries of the indices that are allowed besides as many as there are samples.
const FIXED_SPARE: usize = 64;
/// A sample takes at least so many bytes of a block: the header of a DATA submessage.
const ENTRY_BYTES_MIN: usize = 24;
/// A block in the lists of vacant places and spare blocks.
const LISTED_BYTES: usize = size_of::<u32>() + size_of::<usize>();

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn every_order_of_samples_finds_its_memory_reserved() {
        let mut history = History::fixed(SequenceNumber::FIRST, HistorySize::new(20, 300));
        let reserved = history.allocated();
        assert_eq!(reserved, HistorySize::new(20, 300).bytes());
        let mut kept = Vec::new();
        let mut state = 1_u64;
        for _ in 0..50_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (len, victim) = (24 + (state >> 33) as usize % 277, (state >> 50) as usize);
            if kept.len() == 20 {
                history.remove(kept.swap_remove(victim % 20));
            }
            history.reserve(len).fill(7);
            history.commit(len, 0, len as u64);
            kept.push(history.last());
        }
        assert_eq!((history.allocated(), history.blocks_beyond()), (reserved, 0));
        assert_eq!(history.len(), 20);
    }
}
