//! Where samples are stored: entries and blocks.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::block::Block;

/// Length of what every datagram begins with: RTPS header and INFO_TS, in bytes. Moving one sample
/// out of a batch copies them with it.
pub(crate) const DATAGRAM_HEAD_LEN: usize = 32;

/// Where one sample's datagram is stored.
///
/// The samples of a batch share one datagram. Each entry ends where its sample ends, which is also
/// the end of a complete message. The entry of the last sample covers the whole datagram.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(super) block: u32,
    /// Offset of the datagram in its block, in bytes.
    pub(crate) offset: u32,
    /// Length of the datagram in bytes; 0 if the sample was removed.
    pub(crate) len: u32,
    /// 0 for a datagram. Otherwise the bytes are a payload sent in fragments of this many bytes.
    pub(crate) fragment_size: u16,
    /// Offset in the datagram of the sample's own bytes; 0 for the first sample of a datagram.
    pub(super) own_at: u16,
    /// Bytes charged against the window up to and including this sample.
    pub(crate) charged: u64,
}

impl Entry {
    /// Returns whether the sample is still in the history.
    #[inline]
    pub(crate) fn is_alive(&self) -> bool {
        self.len != 0
    }

    /// Returns the number of fragments; 0 for a datagram.
    #[inline]
    pub(crate) fn fragments(&self) -> u32 {
        if self.fragment_size == 0 { 0 } else { self.len.div_ceil(self.fragment_size.into()) }
    }

    /// Returns whether `next` is a later sample in the same datagram.
    #[inline]
    pub(crate) fn is_extended_by(&self, next: &Self) -> bool {
        self.block == next.block && self.offset == next.offset
    }

    /// Returns whether `next` directly follows in the same block and has the same length.
    #[inline]
    pub(crate) fn continues_with(&self, next: &Self) -> bool {
        self.block == next.block && self.offset + self.len == next.offset && self.len == next.len
    }

    /// Returns whether it begins its datagram.
    #[inline]
    pub(crate) fn is_first_of_datagram(&self) -> bool {
        self.own_at == 0
    }

    /// Returns the bytes that belong to this sample alone.
    #[inline]
    pub(crate) fn own_len(&self) -> usize {
        self.len as usize - usize::from(self.own_at)
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        (self.len, self.own_at) = (0, 0);
    }
}

#[derive(Debug, Default)]
pub(super) struct HistoryBlock {
    /// `None` if the place is vacant, or if its sample is in pieces.
    pub(super) block: Option<Arc<Block>>,
    /// The pieces of a large sample, in order.
    pub(super) pieces: Vec<Arc<Block>>,
    pub(super) is_in_pieces: bool,
    pub(super) used: usize,
    /// Bytes of samples still in the history.
    pub(super) live: usize,
    /// First and last sample written here, including removed ones. Moved samples do not count.
    pub(super) first: i64,
    pub(super) last: i64,
    /// The samples moved here, in storage order.
    pub(super) moved: Vec<i64>,
}

impl HistoryBlock {
    pub(super) fn len(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.len())
    }

    /// Returns whether no thread is sending from the memory.
    ///
    /// Only this history hands out references, so none can be added between this check and the next
    /// write.
    #[inline]
    pub(super) fn is_unshared(&self) -> bool {
        self.block.as_ref().is_some_and(|block| Arc::strong_count(block) == 1)
    }

    /// Returns the memory for writing, if it is unshared.
    #[inline]
    pub(super) fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Some(Arc::get_mut(self.block.as_mut()?)?.bytes_mut())
    }
}
