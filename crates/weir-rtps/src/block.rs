//! Reference-counted memory that holds datagrams in their final wire form.
//!
//! A writer encodes samples into a block, the same bytes are its history, and whoever sends them borrows
//! slices of the block instead of copies. A block is written only while nobody else holds it.

use std::sync::Arc;

/// A fixed piece of memory. Pages that were never written cost nothing.
#[derive(Debug)]
pub struct Block {
    bytes: Box<[u8]>,
}

impl Block {
    /// A zeroed block of `len` bytes.
    pub fn new(len: usize) -> Arc<Self> {
        Arc::new(Self { bytes: vec![0; len].into_boxed_slice() })
    }

    /// The whole memory of the block.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The whole memory of the block, for the one who holds it alone.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Exchanges the memory of the block for another.
    pub(crate) fn swap(&mut self, bytes: &mut Box<[u8]>) {
        core::mem::swap(&mut self.bytes, bytes);
    }

    /// Size in bytes.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a block is never empty: its length is its capacity")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// A part of a block, kept alive by a reference to it.
#[derive(Debug, Clone)]
pub struct BlockSlice {
    block: Arc<Block>,
    start: u32,
    end: u32,
}

impl BlockSlice {
    /// The bytes `start..end` of `block`.
    pub fn new(block: Arc<Block>, start: u32, end: u32) -> Self {
        debug_assert!(start <= end && end as usize <= block.len());
        Self { block, start, end }
    }

    /// The bytes of the slice.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.block.bytes()[self.start as usize..self.end as usize]
    }
}
