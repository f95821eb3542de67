//! Reference-counted memory that holds datagrams in their final wire form.
//!
//! A writer encodes samples into a block. The same bytes are its history, and sending borrows
//! slices of the block instead of copying. A block is written only while it has a single owner.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use core::fmt;

/// See [`Block::for_sending`]; half a page, and a cache line.
const SENDING_LEAD: usize = 2048 + 64;
/// The reference counts of an [`Arc`], in bytes.
const COUNTS: usize = 2 * size_of::<usize>();

/// A fixed piece of memory. Pages that were never written cost nothing. Its debug output is its length.
pub struct Block {
    bytes: Box<[u8]>,
    /// Unused bytes at the start.
    lead: usize,
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({})", self.bytes.len())
    }
}

impl Block {
    /// Creates a zeroed block of `len` bytes.
    pub fn new(len: usize) -> Arc<Self> {
        Arc::new(Self { bytes: vec![0; len].into_boxed_slice(), lead: 0 })
    }

    /// Creates a block of these bytes.
    pub(crate) fn from_bytes(bytes: Box<[u8]>) -> Arc<Self> {
        Arc::new(Self { bytes, lead: 0 })
    }

    /// Creates a zeroed block of `len` bytes for sending, which starts in the middle of a page.
    ///
    /// Large memory starts at a page, and so does the kernel's memory for a datagram of more than
    /// half a page, whose payload follows 44 bytes of headers. On some processors, copies by `rep
    /// movsb` are several times slower if the target is slightly further into its page than the
    /// source: about 0.45 µs for 8 KiB from the start of a page on an AMD EPYC.
    pub(crate) fn for_sending(len: usize) -> Arc<Self> {
        Arc::new(Self { bytes: vec![0; SENDING_LEAD + len].into_boxed_slice(), lead: SENDING_LEAD })
    }

    /// Returns the memory of the block.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.lead..]
    }

    /// Returns the memory of the block to its only owner.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.lead..]
    }

    /// Returns the memory of a block that is not for sending, to be exchanged for another; `None`
    /// for one that is.
    #[inline]
    pub fn memory_mut(&mut self) -> Option<&mut Box<[u8]>> {
        (self.lead == 0).then_some(&mut self.bytes)
    }

    /// Exchanges the memory of a block that is not for sending.
    pub(crate) fn swap(&mut self, bytes: &mut Box<[u8]>) {
        debug_assert_eq!(self.lead, 0);
        core::mem::swap(&mut self.bytes, bytes);
    }

    /// Returns the offset of these bytes in the block; `None` if they are not in it.
    #[inline]
    pub(crate) fn offset_of(&self, bytes: &[u8]) -> Option<usize> {
        let offset = (bytes.as_ptr() as usize).checked_sub(self.bytes().as_ptr() as usize)?;
        (offset.checked_add(bytes.len())? <= self.len()).then_some(offset)
    }

    /// Returns the memory of a block of `len` bytes for sending, with the overhead that the allocator sees.
    pub(crate) fn footprint_for_sending(len: usize) -> usize {
        SENDING_LEAD + Self::footprint(len)
    }

    /// Returns the memory of a block of `len` bytes, with the overhead that the allocator sees.
    pub(crate) fn footprint(len: usize) -> usize {
        len + COUNTS + size_of::<Self>()
    }

    /// Returns the memory of this block.
    pub(crate) fn memory(&self) -> usize {
        Self::footprint(self.bytes.len())
    }

    /// Returns the size in bytes.
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
    /// Makes a slice of the bytes `start..end` of `block`.
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

    /// Returns the bytes of the slice.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.block.bytes()[self.start as usize..self.end as usize]
    }
}
