//! Reference-counted memory that holds datagrams in their final wire form.
//!
//! A writer encodes samples into a block, the same bytes are its history, and whoever sends them borrows
//! slices of the block instead of copies. A block is written only while nobody else holds it.

use std::sync::Arc;

/// See [`Block::for_sending`]; half a page, and a cache line.
const SENDING_LEAD: usize = 2048 + 64;

/// A fixed piece of memory. Pages that were never written cost nothing.
#[derive(Debug)]
pub struct Block {
    bytes: Box<[u8]>,
    /// Bytes at the beginning that are not used.
    lead: usize,
}

impl Block {
    /// A zeroed block of `len` bytes.
    pub fn new(len: usize) -> Arc<Self> {
        Arc::new(Self { bytes: vec![0; len].into_boxed_slice(), lead: 0 })
    }

    /// A block of these bytes.
    pub(crate) fn from_bytes(bytes: Box<[u8]>) -> Arc<Self> {
        Arc::new(Self { bytes, lead: 0 })
    }

    /// A zeroed block of `len` bytes that datagrams are sent from: it begins in the middle of a page.
    ///
    /// Large memory begins with a page, and so does the kernel's memory for a datagram of more than half a page, whose
    /// payload follows behind 44 bytes of headers. Copies by `rep movsb` are several times slower on some processors
    /// when the target lies a little further into its page than the source: for 8 KiB from the beginning of a page about
    /// 0.45 µs on an AMD EPYC.
    pub(crate) fn for_sending(len: usize) -> Arc<Self> {
        Arc::new(Self { bytes: vec![0; SENDING_LEAD + len].into_boxed_slice(), lead: SENDING_LEAD })
    }

    /// The whole memory of the block.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.lead..]
    }

    /// The whole memory of the block, for the one who holds it alone.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.lead..]
    }

    /// Lends out the memory of a block that is not for sending, to be exchanged for another; `None` for one that is.
    #[inline]
    pub fn memory_mut(&mut self) -> Option<&mut Box<[u8]>> {
        (self.lead == 0).then_some(&mut self.bytes)
    }

    /// Exchanges the memory of a block that is not for sending for another.
    pub(crate) fn swap(&mut self, bytes: &mut Box<[u8]>) {
        debug_assert_eq!(self.lead, 0);
        core::mem::swap(&mut self.bytes, bytes);
    }

    /// Where in the block these bytes lie; `None` when they do not.
    #[inline]
    pub(crate) fn offset_of(&self, bytes: &[u8]) -> Option<usize> {
        let offset = (bytes.as_ptr() as usize).checked_sub(self.bytes().as_ptr() as usize)?;
        (offset.checked_add(bytes.len())? <= self.len()).then_some(offset)
    }

    /// Size in bytes.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a block is never empty: its length is its capacity")]
    pub fn len(&self) -> usize {
        self.bytes.len() - self.lead
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

    /// Adds the next `len` bytes of the block.
    #[inline]
    pub(crate) fn extend(&mut self, len: u32) {
        self.end += len;
        debug_assert!(self.end as usize <= self.block.len());
    }

    /// The bytes of the slice.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.block.bytes()[self.start as usize..self.end as usize]
    }
}
