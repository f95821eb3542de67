//! Memory lent by a writer.

use std::ops::Range;
use std::sync::Arc;

use weir_cdr::copy::{Stage, copy};
use weir_rtps::block::Block;
use weir_rtps::time::Time;
use weir_rtps::writer::{Stamp, WriteRefused, WriterCore};
use weir_wire::SequenceNumber;

use super::inner::Inner;
use crate::error::Result;

/// Bytes reserved for padding behind the bulk.
const PADDING_MAX: usize = 3;

/// A block lent by a writer, and the part of it that the application fills.
pub(super) struct Memory {
    pub(super) writer: Arc<Inner>,
    /// `None` once it has been written.
    block: Option<Arc<Block>>,
    pub(super) start: usize,
    pub(super) len: usize,
}

impl Memory {
    /// Borrows a block with `len` bytes to fill and `front` bytes in front of them.
    pub(super) fn lend(writer: &Arc<Inner>, front: usize, len: usize) -> Result<Self> {
        let total = front.saturating_add(len).saturating_add(PADDING_MAX);
        let lent = writer.endpoint.lane.core().lend(total);
        let block = lent.map_err(|refused| writer.refusal(refused))?;
        Ok(Self { writer: Arc::clone(writer), block: Some(block), start: front, len })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |block| &block.bytes()[self.start..self.start + self.len])
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        let part = self.start..self.start + self.len;
        self.block_mut().get_mut(part).unwrap_or_default()
    }

    /// Returns the whole block. A lent block has one owner.
    pub(super) fn block_mut(&mut self) -> &mut [u8] {
        self.block.as_mut().and_then(Arc::get_mut).map_or(&mut [], Block::bytes_mut)
    }

    /// Moves the bulk to a new block with `front` bytes in front of it. Rarely needed.
    #[cold]
    pub(super) fn make_front(&mut self, front: usize) {
        let mut block = Block::new(front + self.len + PADDING_MAX);
        if let Some(room) = Arc::get_mut(&mut block) {
            copy(Stage::Encode, &mut room.bytes_mut()[front..front + self.len], self.bytes());
        }
        self.start = front;
        self.block = Some(block);
    }

    /// Makes `payload`, a range of the block, the next sample. After a refusal it can be tried
    /// again.
    pub(super) fn commit(
        &mut self,
        core: &mut WriterCore,
        now: Time,
        stamp: Stamp,
        payload: Range<usize>,
    ) -> std::result::Result<SequenceNumber, WriteRefused> {
        let Some(block) = self.block.take() else { return Ok(core.last_sequence_number()) };
        core.commit_loan(now, stamp, block, payload).map_err(|(refused, block)| {
            self.block = Some(block);
            refused
        })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.writer.endpoint.lane.core().take_back(block);
        }
    }
}
