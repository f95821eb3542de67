//! Memory that a history keeps for reuse.

use alloc::sync::Arc;

use super::History;
use crate::block::Block;
use crate::config;

impl History {
    /// Keeps a block for reuse, within limits.
    pub(crate) fn keep(&mut self, block: Arc<Block>) {
        let kept = || self.spare.iter().chain(&self.spare_pieces).map(|spare| spare.len()).sum::<usize>();
        let has_room =
            block.len() == self.block_len || kept() + block.len() <= config::LARGE_BUFFERS_MAX_BYTES;
        if has_room && self.spare.len() < self.spare_max {
            self.spare.push(block);
        }
    }

    /// Takes a spare block of at least `len` bytes, and at most about twice that, from which no
    /// thread is sending.
    pub(super) fn take_spare(&mut self, len: usize) -> Option<Arc<Block>> {
        let has_any_length = self.fixed.is_some();
        let fits = |block: &mut Arc<Block>| {
            let is_apt = block.len() >= len && (block.len() / 2 <= len || has_any_length);
            is_apt && Arc::get_mut(block).is_some()
        };
        let index = self.spare.iter_mut().position(fits)?;
        Some(self.spare.swap_remove(index))
    }

    /// Keeps a piece for reuse, within limits.
    pub(super) fn keep_piece(&mut self, piece: Arc<Block>) {
        let large: usize =
            self.spare.iter().map(|spare| spare.len()).filter(|len| *len != self.block_len).sum();
        if (self.spare_pieces.len() + 1) * config::PIECE_BYTES + large <= config::LARGE_BUFFERS_MAX_BYTES {
            self.spare_pieces.push(piece);
        }
    }
}
