//! Memory for payloads. Payloads are copied end to end into chunks, so that a small sample never
//! keeps the large buffer alive that it was received in. A chunk is reused once its last payload is
//! released.
//!
//! A payload with a block of its own, because it was assembled from fragments or is longer than
//! half a chunk, can be shared with the application. The block is reused once the application has
//! released it too.
//!
//! When more than half of the memory is dead, the cache moves the payloads of mostly dead chunks to
//! the open one, a few at a time.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use weir_cdr::copy::{Stage, copy};

use crate::block::Block;
use crate::config;

/// The place of a payload.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChunkRef {
    chunk: u32,
    offset: u32,
    pub(super) len: u32,
}

impl ChunkRef {
    /// The place of no payload.
    pub(super) const NONE: Self = Self { chunk: 0, offset: 0, len: 0 };
}

#[derive(Debug, Default)]
struct Chunk {
    /// `None`: no memory. While the chunk is open, its memory is in [`Chunks::open`] instead.
    block: Option<Arc<Block>>,
    /// Number and length of the payloads in it.
    live: u32,
    live_bytes: usize,
    /// Whether it holds a single payload, which may be shared.
    is_whole: bool,
    /// Whether the memory is borrowed from the receiver of the datagram.
    is_borrowed: bool,
}

/// What the payloads of a reader reserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunksSize {
    chunks: usize,
    chunk_len: usize,
}

/// The payloads of a reader. The debug output has only their number and size.
pub(super) struct Chunks {
    /// Length of a standard chunk in bytes.
    chunk_len: usize,
    /// Number of spare chunks to keep.
    spare_max: usize,
    /// Whether all memory was reserved at the start.
    is_fixed: bool,
    /// Payloads may stay in the receive memory if they are longer than [`config::READER_BORROWED_MIN_BYTES`] by less
    /// than this.
    borrowed_span: usize,
    /// Chunks allocated although all memory was reserved: the application shares the others.
    beyond: u64,
    chunks: Vec<Chunk>,
    /// Indices of chunks without memory.
    vacant: Vec<u32>,
    /// Indices of empty chunks of standard size.
    spare: Vec<u32>,
    /// The open chunk, which is being filled.
    current: Option<u32>,
    /// The memory of the open chunk, and how much of it is used. Kept outside its block, which
    /// would have to be checked for sharing at each access.
    open: Box<[u8]>,
    used: usize,
    /// Memory of all chunks in bytes.
    pub(super) memory: usize,
    /// Length of all payloads in bytes.
    pub(super) live: usize,
    /// Whether a chunk was filled since the last call of [`Chunks::note_filled`].
    was_filled: bool,
    /// Blocks of standard size that the application still shares, oldest first.
    lent: VecDeque<Arc<Block>>,
    /// Buffers of large samples, kept for reuse. The application may still share some.
    large: Vec<Arc<Block>>,
}

/// A longer payload has a chunk of its own.
const SHORT_MAX: usize = config::READER_BORROWED_MAX_BYTES;

/// Number of lent blocks to check for one that was released.
const LENT_CHECKS: usize = 4;

impl fmt::Debug for Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let payloads: u32 = self.chunks.iter().map(|chunk| chunk.live).sum();
        f.debug_struct("Chunks")
            .field("payloads", &payloads)
            .field("bytes", &self.live)
            .finish_non_exhaustive()
    }
}

impl Default for Chunks {
    fn default() -> Self {
        Self {
            chunk_len: config::READER_CHUNK_BYTES,
            spare_max: config::READER_CHUNKS_SPARE_MAX,
            is_fixed: false,
            borrowed_span: SHORT_MAX - config::READER_BORROWED_MIN_BYTES + 1,
            beyond: 0,
            chunks: Vec::new(),
            vacant: Vec::new(),
            spare: Vec::new(),
            current: None,
            open: Box::default(),
            used: 0,
            memory: 0,
            live: 0,
            was_filled: false,
            lent: VecDeque::new(),
            large: Vec::new(),
        }
    }
}

impl ChunksSize {
    /// So many chunks, with room for a payload of `len` bytes each.
    pub(super) fn new(chunks: usize, len: usize) -> Self {
        Self { chunks, chunk_len: len.max(1).next_multiple_of(64) }
    }

    /// Memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        let listed = 2 * size_of::<u32>() + size_of::<Arc<Block>>();
        self.chunks.saturating_mul(Block::footprint(self.chunk_len) + size_of::<Chunk>() + listed)
    }
}

impl Chunks {
    /// Reserves all memory. There is a chunk for each payload; short ones share chunks, and nothing ever moves.
    pub(super) fn fixed(ChunksSize { chunks, chunk_len }: ChunksSize) -> Self {
        let mut fixed =
            Self { chunk_len, spare_max: chunks, is_fixed: true, borrowed_span: 0, ..Self::default() };
        fixed.chunks.reserve_exact(chunks);
        fixed.vacant.reserve_exact(chunks);
        fixed.spare.reserve_exact(chunks);
        fixed.lent.reserve_exact(chunks);
        for _ in 0..chunks {
            let index = fixed.place(Block::new(chunk_len));
            fixed.spare.push(index);
        }
        fixed
    }

    /// How many chunks were allocated although all memory was reserved.
    pub(super) fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Whether all memory was reserved at the start.
    pub(super) fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// Memory as allocated, in bytes.
    pub(super) fn allocated(&self) -> usize {
        let blocks = self.chunks.iter().filter_map(|chunk| chunk.block.as_ref());
        let blocks = blocks.chain(&self.lent).chain(&self.large);
        blocks.map(|block| block.memory()).sum::<usize>()
            + self.open.len()
            + self.chunks.capacity() * size_of::<Chunk>()
            + (self.vacant.capacity() + self.spare.capacity()) * size_of::<u32>()
            + (self.lent.capacity() + self.large.capacity()) * size_of::<Arc<Block>>()
    }

    /// Copies a payload into a chunk. Always inlined, so that the result stays in registers.
    #[inline(always)]
    pub(super) fn store(&mut self, payload: &[u8]) -> ChunkRef {
        let index = self.open_for(payload.len());
        let offset = self.used;
        copy(Stage::Assemble, &mut self.open[offset..offset + payload.len()], payload);
        self.used += payload.len();
        self.take_up(index, payload.len());
        if payload.len() > SHORT_MAX {
            self.close();
            self.chunks[index as usize].is_whole = true;
        }
        ChunkRef { chunk: index, offset: offset as u32, len: payload.len() as u32 }
    }

    /// The open chunk, with room for `len` bytes.
    #[inline(always)]
    fn open_for(&mut self, len: usize) -> u32 {
        match self.current {
            Some(index) if self.open.len() - self.used >= len && len <= SHORT_MAX => index,
            _ => self.open(len),
        }
    }

    #[inline]
    fn take_up(&mut self, index: u32, len: usize) {
        let chunk = &mut self.chunks[index as usize];
        chunk.live += 1;
        chunk.live_bytes += len;
        self.live += len;
    }

    /// Whether payloads should move: a chunk was filled since the last call, and most memory is
    /// dead.
    #[inline]
    pub(super) fn is_wasteful(&mut self) -> bool {
        self.was_filled && self.note_filled()
    }

    /// Whether more than half of the memory is dead. Clears the mark that a chunk was filled.
    pub(super) fn note_filled(&mut self) -> bool {
        self.was_filled = false;
        !self.is_fixed && self.used() > 2 * self.live + CHUNKS_DEAD_MAX * config::READER_CHUNK_BYTES
    }

    /// Whether a payload is in a mostly dead chunk.
    #[inline]
    pub(super) fn is_stranded(&self, at: ChunkRef) -> bool {
        let chunk = &self.chunks[at.chunk as usize];
        chunk.live_bytes < self.chunk_len / 2 && !chunk.is_whole
    }

    /// Memory of an earlier large sample, at least `len` bytes, if there is some. Its contents are
    /// not cleared.
    pub(super) fn take_buffer(&mut self, len: usize) -> Option<Arc<Block>> {
        if self.is_fixed {
            return self.take_reserved(len);
        }
        let fits = |block: &mut Arc<Block>| {
            block.len() >= len && block.len() / 2 <= len && Arc::get_mut(block).is_some()
        };
        self.large.iter_mut().position(fits).map(|index| self.large.swap_remove(index))
    }

    /// Keeps memory for the next large sample, within limits. Buffers that the application still
    /// shares are dropped first.
    pub(super) fn give_buffer(&mut self, buffer: Arc<Block>) {
        if self.is_fixed && buffer.len() == self.chunk_len {
            let index = self.place(buffer);
            return self.retire(index);
        }
        while !self.has_room_for(buffer.len()) {
            let Some(shared) = self.large.iter_mut().position(|kept| Arc::get_mut(kept).is_none()) else {
                return;
            };
            self.large.swap_remove(shared);
        }
        self.large.push(buffer);
    }

    /// Takes the memory of a spare chunk.
    fn take_reserved(&mut self, len: usize) -> Option<Arc<Block>> {
        let index = if len <= self.chunk_len { self.take_spare() } else { None }?;
        let block = self.chunks[index as usize].block.take()?;
        self.memory -= block.len();
        self.vacant.push(index);
        Some(block)
    }

    fn has_room_for(&self, len: usize) -> bool {
        let bytes: usize = self.large.iter().map(|kept| kept.len()).sum();
        bytes + len <= config::LARGE_BUFFERS_MAX_BYTES && self.large.len() < config::LARGE_BUFFERS_MAX
    }

    /// Takes ownership of memory whose first `len` bytes are a payload.
    pub(super) fn adopt(&mut self, block: Arc<Block>, len: usize) -> ChunkRef {
        let index = self.place(block);
        self.take_up(index, len);
        self.chunks[index as usize].is_whole = true;
        ChunkRef { chunk: index, offset: 0, len: len as u32 }
    }

    /// Leaves a payload in `block`, where it was received, and shares that. Returns `None` if it is
    /// to be copied: it is not in `block`, a copy is cheaper, or it is so long that it has a chunk
    /// of its own.
    #[inline]
    pub(super) fn borrow(&mut self, payload: &[u8], block: &Arc<Block>) -> Option<ChunkRef> {
        if payload.len().wrapping_sub(config::READER_BORROWED_MIN_BYTES) >= self.borrowed_span {
            return None;
        }
        let offset = block.offset_of(payload)?;
        let index = self.place(Arc::clone(block));
        self.take_up(index, payload.len());
        let chunk = &mut self.chunks[index as usize];
        (chunk.is_whole, chunk.is_borrowed) = (false, true);
        Some(ChunkRef { chunk: index, offset: offset as u32, len: payload.len() as u32 })
    }

    /// A payload.
    #[inline]
    pub(super) fn bytes(&self, at: ChunkRef) -> &[u8] {
        self.payload(at).0
    }

    /// A payload, and its block if it has one of its own.
    #[inline]
    pub(super) fn payload(&self, at: ChunkRef) -> (&[u8], Option<&Arc<Block>>) {
        let chunk = &self.chunks[at.chunk as usize];
        let memory = match &chunk.block {
            Some(block) if self.current != Some(at.chunk) => block.bytes(),
            _ => &self.open,
        };
        let block = if chunk.is_whole { chunk.block.as_ref() } else { None };
        (&memory[at.offset as usize..][..at.len as usize], block)
    }

    /// Releases a payload.
    #[inline]
    pub(super) fn release(&mut self, at: ChunkRef) {
        let chunk = &mut self.chunks[at.chunk as usize];
        chunk.live -= 1;
        chunk.live_bytes -= at.len as usize;
        self.live -= at.len as usize;
        if chunk.live == 0 {
            if self.current == Some(at.chunk) {
                self.used = 0;
            } else {
                self.retire(at.chunk);
            }
        }
    }

    /// Closes the open chunk: payloads stored from now on go into other chunks.
    pub(super) fn seal(&mut self) {
        if let Some(previous) = self.close()
            && self.chunks[previous as usize].live == 0
        {
            self.retire(previous);
        }
    }

    /// Moves a small payload from a closed chunk of standard size to the open one.
    pub(super) fn relocate(&mut self, at: &mut ChunkRef) {
        let block = self.chunks[at.chunk as usize].block.as_ref();
        let is_standard = block.is_some_and(|block| block.len() == self.chunk_len);
        // A borrowed payload moves too: it keeps a whole block from its receiver.
        if !is_standard || self.current == Some(at.chunk) || at.len as usize > MOVED_MAX_BYTES {
            return;
        }
        let len = at.len as usize;
        let index = self.open_for(len);
        let offset = self.used;
        let Some(from) = &self.chunks[at.chunk as usize].block else { return };
        self.open[offset..offset + len].copy_from_slice(&from.bytes()[at.offset as usize..][..len]);
        self.used += len;
        self.take_up(index, len);
        let before = core::mem::replace(at, ChunkRef { chunk: index, offset: offset as u32, len: at.len });
        self.release(before);
    }

    /// Memory in use, in bytes.
    pub(super) fn used(&self) -> usize {
        self.memory - self.spare.len() * self.chunk_len
    }

    /// Opens a chunk with room for `len` bytes.
    fn open(&mut self, len: usize) -> u32 {
        self.was_filled = true;
        self.seal();
        let spare = if len <= self.chunk_len { self.take_spare() } else { None };
        let index = spare.unwrap_or_else(|| {
            self.beyond += u64::from(self.is_fixed);
            self.place(Block::new(len.max(self.chunk_len)))
        });
        let chunk = &mut self.chunks[index as usize];
        chunk.is_whole = false;
        if let Some(block) = chunk.block.as_mut().and_then(Arc::get_mut) {
            block.swap(&mut self.open);
        }
        self.used = 0;
        self.current = Some(index);
        index
    }

    /// Puts the memory of the open chunk back into its block.
    fn close(&mut self) -> Option<u32> {
        let index = self.current.take()?;
        if let Some(block) = self.chunks[index as usize].block.as_mut().and_then(Arc::get_mut) {
            block.swap(&mut self.open);
        }
        Some(index)
    }

    /// An empty chunk of standard size, if there is one.
    fn take_spare(&mut self) -> Option<u32> {
        self.spare.pop().or_else(|| {
            let mut checked = self.lent.iter_mut().take(LENT_CHECKS);
            let free = checked.position(|block| Arc::get_mut(block).is_some())?;
            let block = self.lent.remove(free)?;
            Some(self.place(block))
        })
    }

    /// Gives memory to a chunk that has none.
    fn place(&mut self, block: Arc<Block>) -> u32 {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.chunks.push(Chunk::default());
            self.chunks.len() as u32 - 1
        });
        self.memory += block.len();
        self.chunks[index as usize].block = Some(block);
        index
    }

    /// Keeps the memory of an empty chunk for reuse, or frees it.
    fn retire(&mut self, index: u32) {
        let chunk = &mut self.chunks[index as usize];
        let Some(mut block) = chunk.block.take() else { return };
        if core::mem::take(&mut chunk.is_borrowed) {
            self.memory -= block.len();
            self.vacant.push(index);
            return;
        }
        let is_standard = block.len() == self.chunk_len;
        let is_lent = Arc::get_mut(&mut block).is_none();
        if is_standard && !is_lent && self.spare.len() < self.spare_max {
            chunk.block = Some(block);
            self.spare.push(index);
            return;
        }
        self.memory -= block.len();
        self.vacant.push(index);
        if !is_standard {
            self.give_buffer(block);
        } else if is_lent {
            if self.lent.len() >= self.spare_max {
                self.lent.pop_front();
            }
            self.lent.push_back(block);
        }
    }
}

/// Dead memory tolerated in addition to as much as there is live memory, in chunks.
const CHUNKS_DEAD_MAX: usize = 16;

/// A longer payload is not moved: it occupies much of its chunk.
const MOVED_MAX_BYTES: usize = config::READER_CHUNK_BYTES / 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_come_back_as_they_were_and_memory_is_reused() {
        let mut chunks = Chunks::default();
        for round in 0..100_u32 {
            let refs: Vec<_> =
                (0..200_u32).map(|n| chunks.store(&vec![n as u8; (n * 37 + round) as usize])).collect();
            for (n, at) in refs.iter().enumerate() {
                assert!(chunks.bytes(*at).iter().all(|byte| *byte == n as u8));
            }
            refs.into_iter().rev().for_each(|at| chunks.release(at));
        }
        assert!(chunks.memory <= 20 * config::READER_CHUNK_BYTES, "{}", chunks.memory);
    }

    #[test]
    fn small_payloads_move_together_and_what_they_held_up_is_reused() {
        let mut chunks = Chunks::default();
        let mut stay: Vec<_> = (0..100_u8)
            .map(|n| {
                let at = chunks.store(&[n; 8]);
                let others = [SHORT_MAX, SHORT_MAX - 8].map(|len| chunks.store(&vec![0; len]));
                others.into_iter().for_each(|other| chunks.release(other));
                at
            })
            .collect();
        assert!(chunks.used() >= 100 * config::READER_CHUNK_BYTES);
        chunks.seal();
        stay.iter_mut().for_each(|at| chunks.relocate(at));
        assert!(chunks.used() <= config::READER_CHUNK_BYTES, "{}", chunks.used());
        for (n, at) in stay.into_iter().enumerate() {
            assert_eq!(chunks.bytes(at), [n as u8; 8]);
            chunks.release(at);
        }
    }

    #[test]
    fn a_payload_longer_than_a_chunk_is_kept_whole_and_given_back() {
        let mut chunks = Chunks::default();
        let long = vec![7; 3 * config::READER_CHUNK_BYTES];
        let at = chunks.store(&long);
        let behind = chunks.store(b"x");
        assert_eq!(chunks.bytes(at), long);
        chunks.release(at);
        assert_eq!(chunks.bytes(behind), b"x");
        assert!(chunks.memory <= config::READER_CHUNK_BYTES);
    }

    #[test]
    fn a_payload_that_is_shared_stays_as_it_is_and_its_memory_comes_back() {
        for len in [config::READER_CHUNK_BYTES - 10, 3 * config::READER_CHUNK_BYTES] {
            let mut chunks = Chunks::default();
            let mut memories = alloc::collections::BTreeSet::new();
            for round in 0..100 {
                let mut buffer = chunks.take_buffer(len).unwrap_or_else(|| Block::new(len));
                let at = if len > config::READER_CHUNK_BYTES {
                    Arc::get_mut(&mut buffer).unwrap().bytes_mut().fill(round);
                    chunks.adopt(buffer, len)
                } else {
                    chunks.give_buffer(buffer);
                    chunks.store(&vec![round; len])
                };
                let shared = Arc::clone(chunks.payload(at).1.unwrap());
                chunks.release(at);
                let other = chunks.store(&vec![0xff; config::READER_CHUNK_BYTES - 10]);
                assert_eq!(shared.bytes()[..len], vec![round; len]);
                memories.insert(shared.bytes().as_ptr() as usize);
                chunks.release(other);
            }
            assert!(memories.len() <= 3, "{len}: {memories:?}");
        }
    }

    #[test]
    fn an_application_that_keeps_everything_makes_no_pool_grow() {
        let mut chunks = Chunks::default();
        let mut kept = Vec::new();
        for _ in 0..300 {
            for len in [config::READER_CHUNK_BYTES - 10, config::READER_CHUNK_BYTES + 10] {
                let at = if len > config::READER_CHUNK_BYTES {
                    let buffer = chunks.take_buffer(len).unwrap_or_else(|| Block::new(len));
                    chunks.adopt(buffer, len)
                } else {
                    chunks.store(&vec![0; len])
                };
                kept.push(Arc::clone(chunks.payload(at).1.unwrap()));
                chunks.release(at);
            }
        }
        assert_eq!(chunks.memory, 0);
        assert!(chunks.large.len() <= config::LARGE_BUFFERS_MAX);
        assert!(chunks.lent.len() <= config::READER_CHUNKS_SPARE_MAX);
    }

    /// A datagram in a block: something in front, the payload, something behind.
    fn received(payload: &[u8]) -> Arc<Block> {
        let mut block = Block::new(config::READER_CHUNK_BYTES);
        Arc::get_mut(&mut block).unwrap().bytes_mut()[56..56 + payload.len()].copy_from_slice(payload);
        block
    }

    #[test]
    fn a_borrowed_payload_holds_its_block_until_it_is_released_and_is_not_shared() {
        let mut chunks = Chunks::default();
        let block = received(&[7; 8_000]);
        let at = chunks.borrow(&block.bytes()[56..8_056], &block).unwrap();
        assert_eq!(Arc::strong_count(&block), 2);
        let stored = chunks.store(&[8; 100]);
        assert_eq!((chunks.bytes(at), chunks.bytes(stored)), (&[7; 8_000][..], &[8; 100][..]));
        assert!(chunks.payload(at).1.is_none(), "its receiver reuses the block");
        chunks.release(at);
        assert_eq!(Arc::strong_count(&block), 1, "no pool of the reader keeps it");
        chunks.release(stored);
        assert_eq!(chunks.memory, config::READER_CHUNK_BYTES);
    }

    #[test]
    fn what_is_short_or_long_or_lies_elsewhere_is_not_borrowed() {
        let mut chunks = Chunks::default();
        let block = received(&[7; config::READER_BORROWED_MAX_BYTES + 1]);
        for len in [config::READER_BORROWED_MIN_BYTES - 1, config::READER_BORROWED_MAX_BYTES + 1] {
            assert!(chunks.borrow(&block.bytes()[56..56 + len], &block).is_none());
        }
        let elsewhere = vec![7; 8_000];
        assert!(chunks.borrow(&elsewhere, &block).is_none());
        assert_eq!((Arc::strong_count(&block), chunks.memory), (1, 0));
        let end = config::READER_CHUNK_BYTES;
        for range in [0..config::READER_BORROWED_MAX_BYTES, end - config::READER_BORROWED_MIN_BYTES..end] {
            let at = chunks.borrow(&block.bytes()[range.clone()], &block).unwrap();
            assert_eq!(chunks.bytes(at), &block.bytes()[range]);
            chunks.release(at);
        }
    }

    #[test]
    fn a_borrowed_payload_can_move_and_lets_go_of_its_block() {
        let mut chunks = Chunks::default();
        let block = received(&[7; 8_000]);
        let mut at = chunks.borrow(&block.bytes()[56..8_056], &block).unwrap();
        chunks.relocate(&mut at);
        assert_eq!(Arc::strong_count(&block), 1);
        assert_eq!(chunks.bytes(at), [7; 8_000]);
        chunks.release(at);
    }

    #[test]
    fn small_payloads_are_not_shared() {
        let mut chunks = Chunks::default();
        let small = chunks.store(&[1; 100]);
        let large = chunks.store(&[2; SHORT_MAX + 1]);
        let behind = chunks.store(&[3; 100]);
        assert!(chunks.payload(small).1.is_none() && chunks.payload(behind).1.is_none());
        assert!(chunks.payload(large).1.is_some());
        assert_eq!(chunks.bytes(large), [2; SHORT_MAX + 1]);
        assert_eq!(chunks.bytes(small), [1; 100]);
    }
}
