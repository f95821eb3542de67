//! Where samples lie.

use std::sync::Arc;

use crate::block::Block;

/// Length of what every datagram begins with, in bytes: RTPS header and INFO_TS. A sample of a batch that outlives
/// the others takes a copy of it along.
pub(crate) const DATAGRAM_HEAD_LEN: usize = 32;

/// Where one sample's datagram lies. Samples of a batch share one: the entry of each ends where the sample
/// ends, which is a whole message as well, and that of the last one is the datagram.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(super) block: u32,
    /// Offset of the datagram in its block, in bytes.
    pub(crate) offset: u32,
    /// Length of the datagram in bytes; 0 when the sample is no longer in the history.
    pub(crate) len: u32,
    /// 0: the bytes are a datagram. Otherwise they are a payload that leaves in fragments of so many bytes.
    pub(crate) fragment_size: u16,
    /// Offset in the datagram where the sample's own bytes begin; 0 for the first sample of a datagram.
    pub(super) own_at: u16,
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
        if self.fragment_size == 0 { 0 } else { self.len.div_ceil(self.fragment_size.into()) }
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

    /// Bytes that only this sample takes.
    #[inline]
    pub(super) fn own_len(&self) -> usize {
        self.len as usize - usize::from(self.own_at)
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        (self.len, self.own_at) = (0, 0);
    }
}

#[derive(Debug, Default)]
pub(super) struct HistoryBlock {
    /// `None`: the place is vacant, or taken by a sample in pieces.
    pub(super) block: Option<Arc<Block>>,
    /// The memory of a large sample that came piece by piece, in order.
    pub(super) pieces: Vec<Arc<Block>>,
    pub(super) is_in_pieces: bool,
    pub(super) used: usize,
    /// Bytes of samples that are still there.
    pub(super) live: usize,
    /// The samples that were laid here when they were written, those that are gone included.
    pub(super) first: i64,
    pub(super) last: i64,
    /// The samples that were moved here, in the order in which they lie.
    pub(super) moved: Vec<i64>,
}

impl HistoryBlock {
    pub(super) fn len(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.len())
    }

    /// Whether nobody is sending from the memory. References to it are handed out only by this history, so that nobody can
    /// have come to hold it when its bytes are asked for next.
    #[inline]
    pub(super) fn is_unshared(&self) -> bool {
        self.block.as_ref().is_some_and(|block| Arc::strong_count(block) == 1)
    }

    /// The memory, for the one who holds it alone.
    #[inline]
    pub(super) fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Some(Arc::get_mut(self.block.as_mut()?)?.bytes_mut())
    }
}
