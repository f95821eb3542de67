//! Memory that a writer has lent.

use std::ops::Range;
use std::sync::Arc;

use weir_rtps::block::Block;
use weir_rtps::time::Time;
use weir_rtps::writer::{Stamp, WriteRefused, WriterCore};
use weir_wire::SequenceNumber;

use super::inner::{Inner, refusal};
use crate::error::Result;

/// Room for padding behind the bulk, in bytes.
const PADDING_MAX: usize = 3;

/// A block that a writer has lent, and the part of it that the application fills.
pub(super) struct Memory {
    pub(super) writer: Arc<Inner>,
    /// `None` once it was written.
    block: Option<Arc<Block>>,
    pub(super) start: usize,
    pub(super) len: usize,
}

impl Memory {
    /// Borrows `len` bytes with `front` bytes of room before them.
    pub(super) fn lend(writer: &Arc<Inner>, front: usize, len: usize) -> Result<Self> {
        let total = front.saturating_add(len).saturating_add(PADDING_MAX);
        let block = writer.endpoint.lane.core().lend(total).map_err(refusal)?;
        Ok(Self { writer: Arc::clone(writer), block: Some(block), start: front, len })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |block| &block.bytes()[self.start..self.start + self.len])
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        let part = self.start..self.start + self.len;
        self.block_mut().get_mut(part).unwrap_or_default()
    }

    /// The whole block, which is lent to nobody else.
    pub(super) fn block_mut(&mut self) -> &mut [u8] {
        self.block.as_mut().and_then(Arc::get_mut).map_or(&mut [], Block::bytes_mut)
    }

    /// Moves to a block with `front` bytes of room: the exception.
    #[cold]
    pub(super) fn make_front(&mut self, front: usize) {
        let mut block = Block::new(front + self.len + PADDING_MAX);
        if let Some(room) = Arc::get_mut(&mut block) {
            room.bytes_mut()[front..front + self.len].copy_from_slice(self.bytes());
        }
        self.start = front;
        self.block = Some(block);
    }

    /// Makes a part of the block, a payload, the next sample. Refused, it can be tried again.
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
