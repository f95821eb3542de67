//! Large samples stored in pieces, each in a block of its own, so that the first are sent while the
//! next are filled.
//!
//! The most recently released piece is reused first, because it is still in the caches.

use alloc::sync::Arc;

use weir_wire::SequenceNumber;

use super::History;
use super::block::{Entry, HistoryBlock};
use crate::block::{Block, BlockSlice};
use crate::config;

impl HistoryBlock {
    /// Returns the bytes of one fragment, counted from 0; `None` if they are not filled yet.
    pub(super) fn fragment(&self, entry: &Entry, index: u32) -> Option<BlockSlice> {
        let size = u32::from(entry.fragment_size);
        let per_piece = fragments_per_piece(size);
        let piece = self.pieces.get((index / per_piece) as usize)?;
        let start = index % per_piece * size;
        let len = size.min(entry.len - index * size);
        Some(BlockSlice::new(Arc::clone(piece), start, start + len))
    }
}

impl History {
    /// Lends memory for one piece. Its contents are unspecified.
    pub(crate) fn lend_piece(&mut self) -> Arc<Block> {
        let free = self.spare_pieces.iter_mut().rposition(|piece| Arc::get_mut(piece).is_some());
        match free {
            Some(index) => self.spare_pieces.remove(index),
            None => Block::for_sending(config::PIECE_BYTES),
        }
    }

    /// Begins a sample of `len` bytes, sent in fragments of `fragment_size` bytes. It has no pieces
    /// yet.
    pub(crate) fn begin_pieces(&mut self, len: usize, fragment_size: u32, charge: u64) -> SequenceNumber {
        self.close_unused();
        self.tidy();
        let place = self.vacant_place();
        self.blocks[place as usize].is_in_pieces = true;
        self.append(place, (0, len), fragment_size, charge)
    }

    /// Adds the next piece of the sample begun last. All pieces but the last have [`piece_len`]
    /// bytes.
    pub(crate) fn add_piece(&mut self, sn: SequenceNumber, piece: Arc<Block>) {
        let place = self.entry(sn).filter(Entry::is_alive).map(|entry| entry.block as usize);
        match place.and_then(|place| self.blocks.get_mut(place)).filter(|block| block.is_in_pieces) {
            Some(block) => {
                self.bytes += piece.len();
                block.pieces.push(piece);
            }
            None => self.keep_piece(piece),
        }
    }

    /// Takes the memory from a place whose sample was removed.
    pub(super) fn retire_pieces(&mut self, place: u32) {
        let block = &mut self.blocks[place as usize];
        block.is_in_pieces = false;
        let mut pieces = core::mem::take(&mut block.pieces);
        self.vacant.push(place);
        while let Some(piece) = pieces.pop() {
            self.bytes -= piece.len();
            self.keep_piece(piece);
        }
        // Keeps the list's allocation.
        self.blocks[place as usize].pieces = pieces;
    }

    /// Returns the bytes of memory in the lists of pieces.
    pub(super) fn memory_of_lists(&self) -> usize {
        let lists = self.blocks.iter().map(|block| block.pieces.capacity()).sum::<usize>();
        (lists + self.spare_pieces.capacity()) * size_of::<Arc<Block>>()
    }
}

/// Returns the length of all pieces of a sample but the last, in bytes: a whole number of
/// fragments.
pub(crate) fn piece_len(fragment_size: u32) -> usize {
    (fragments_per_piece(fragment_size) * fragment_size) as usize
}

fn fragments_per_piece(fragment_size: u32) -> u32 {
    (config::PIECE_BYTES as u32 / fragment_size.max(1)).max(1)
}
