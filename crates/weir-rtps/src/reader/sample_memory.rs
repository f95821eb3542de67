//! Memory of a sample that is assembled from fragments. It grows with what has arrived.
//!
//! The first fragment announces the size of a sample, and a forged one may announce any size.
//! Memory is therefore reserved in proportion to what has arrived, see
//! [`Assembly`](super::assembly::Assembly). Reserving it may fail.

use alloc::sync::Arc;
use alloc::vec::Vec;

use weir_cdr::copy::{Stage, count};

use crate::block::Block;
use crate::config;

/// The memory of one sample.
#[derive(Debug)]
pub(super) enum SampleMemory {
    /// A block of an earlier sample, long enough for this one. Its contents are not cleared.
    Recycled(Arc<Block>),
    /// The sample up to the last byte that has arrived, with zeros for missing fragments. Fragments
    /// in order are appended, so that nothing is written twice.
    Growing(Vec<u8>),
}

impl SampleMemory {
    /// Number of bytes that can be written without reserving more.
    #[inline]
    pub(super) fn room(&self) -> usize {
        match self {
            Self::Recycled(block) => block.len(),
            Self::Growing(bytes) => bytes.capacity(),
        }
    }

    /// Reserves memory for `len` bytes in total, without writing to it. Returns `false` if it
    /// cannot be allocated.
    #[cold]
    pub(super) fn reserve(&mut self, len: usize) -> bool {
        match self {
            Self::Recycled(block) => len <= block.len(),
            Self::Growing(bytes) => bytes.try_reserve_exact(len.saturating_sub(bytes.len())).is_ok(),
        }
    }

    /// Copies bytes to offset `start`, within the [room](Self::room).
    #[inline]
    pub(super) fn write(&mut self, start: usize, from: &[u8]) {
        count(Stage::Assemble, from.len());
        match self {
            Self::Recycled(block) => {
                let block = Arc::get_mut(block).map_or(&mut [][..], Block::bytes_mut);
                block[start..start + from.len()].copy_from_slice(from);
            }
            Self::Growing(bytes) => {
                if start > bytes.len() {
                    bytes.resize(start, 0);
                }
                let (again, new) = from.split_at(from.len().min(bytes.len() - start));
                bytes[start..start + again.len()].copy_from_slice(again);
                bytes.extend_from_slice(new);
            }
        }
    }

    /// Memory as allocated, in bytes.
    pub(super) fn allocated(&self) -> usize {
        match self {
            Self::Recycled(block) => block.memory(),
            Self::Growing(bytes) => bytes.capacity(),
        }
    }

    /// Number of bytes written to.
    pub(super) fn written(&self) -> usize {
        match self {
            Self::Recycled(block) => block.len(),
            Self::Growing(bytes) => bytes.len(),
        }
    }

    /// The block of a complete sample.
    pub(super) fn into_block(self) -> Arc<Block> {
        match self {
            Self::Recycled(block) => block,
            Self::Growing(bytes) => Block::from_bytes(bytes.into_boxed_slice()),
        }
    }

    /// The memory of an incomplete sample, for reuse. Returns `None` if most of it was never
    /// written to, or it is too large to keep.
    pub(super) fn into_spare(self) -> Option<Arc<Block>> {
        match self {
            Self::Growing(mut bytes) => {
                if bytes.len() <= bytes.capacity() / 2 || bytes.capacity() > config::LARGE_BUFFERS_MAX_BYTES {
                    return None;
                }
                bytes.resize(bytes.capacity(), 0);
                Some(Block::from_bytes(bytes.into_boxed_slice()))
            }
            Self::Recycled(block) => Some(block),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_any_order_and_again_lie_where_they_belong() {
        let whole: Vec<u8> = (0..100).collect();
        for order in [[0, 30, 60, 90], [90, 60, 30, 0], [30, 0, 90, 60]] {
            let recycled = Block::new(120);
            for mut memory in [SampleMemory::Growing(Vec::new()), SampleMemory::Recycled(recycled)] {
                for start in order.into_iter().chain([30]) {
                    // Each overlaps the next.
                    let end = (start + 40).min(100);
                    assert!(memory.room() >= end || memory.reserve(100));
                    memory.write(start, &whole[start..end]);
                }
                assert_eq!(memory.into_block().bytes()[..100], whole);
            }
        }
    }

    #[test]
    fn memory_that_cannot_be_had_changes_nothing() {
        let mut memory = SampleMemory::Growing(Vec::new());
        assert!(memory.reserve(20));
        memory.write(0, &[1; 10]);
        assert!(!memory.reserve(usize::MAX));
        assert_eq!((memory.written(), memory.room()), (10, 20));
        assert!(memory.reserve(30));
        memory.write(10, &[2; 20]);
        assert_eq!(memory.into_block().bytes(), [[1; 10], [2; 10], [2; 10]].concat());
    }

    #[test]
    fn memory_that_is_mostly_written_is_kept_for_the_next_sample() {
        let begun = |len: usize| {
            let mut memory = SampleMemory::Growing(Vec::new());
            assert!(memory.reserve(1000));
            memory.write(0, &vec![1; len]);
            memory.into_spare().map(|block| block.len())
        };
        assert_eq!(begun(500), None);
        assert_eq!(begun(501), Some(1000));
    }
}
