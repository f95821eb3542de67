//! Where a reader keeps payloads: copied end to end into chunks, so that a small sample never pins the large
//! buffer that it was received in. Chunks are reused when the last sample in them is gone.

use crate::config;

/// Where a payload lies.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChunkRef {
    chunk: u32,
    offset: u32,
    pub(super) len: u32,
}

#[derive(Debug, Default)]
struct Chunk {
    bytes: Box<[u8]>,
    used: usize,
    live: u32,
}

#[derive(Debug, Default)]
pub(super) struct Chunks {
    chunks: Vec<Chunk>,
    /// Indices of chunks without memory.
    vacant: Vec<u32>,
    /// Indices of chunks of standard size with nothing in them.
    spare: Vec<u32>,
    current: Option<u32>,
    memory: usize,
    /// Buffers of large samples, for the next ones.
    large: Vec<Box<[u8]>>,
}

impl Chunks {
    /// Copies a payload in.
    #[inline]
    pub(super) fn store(&mut self, payload: &[u8]) -> ChunkRef {
        let index = match self.current {
            Some(index) if self.room(index) >= payload.len() => index,
            _ => self.open(payload.len()),
        };
        let chunk = &mut self.chunks[index as usize];
        let offset = chunk.used;
        chunk.bytes[offset..offset + payload.len()].copy_from_slice(payload);
        chunk.used += payload.len();
        chunk.live += 1;
        ChunkRef { chunk: index, offset: offset as u32, len: payload.len() as u32 }
    }

    /// Memory of at least `len` bytes for one large sample. What is in it is left from before.
    pub(super) fn take_buffer(&mut self, len: usize) -> Box<[u8]> {
        match self.large.iter().position(|buffer| buffer.len() >= len && buffer.len() / 2 <= len) {
            Some(index) => self.large.swap_remove(index),
            None => vec![0; len].into_boxed_slice(),
        }
    }

    /// Keeps memory for the next large sample, within limits.
    pub(super) fn give_buffer(&mut self, buffer: Box<[u8]>) {
        let bytes: usize = self.large.iter().map(|kept| kept.len()).sum();
        let has_room = bytes + buffer.len() <= config::LARGE_BUFFERS_MAX_BYTES;
        if has_room && self.large.len() < config::LARGE_BUFFERS_MAX {
            self.large.push(buffer);
        }
    }

    /// Takes over memory whose first `len` bytes are a payload.
    pub(super) fn adopt(&mut self, bytes: Box<[u8]>, len: usize) -> ChunkRef {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.chunks.push(Chunk::default());
            self.chunks.len() as u32 - 1
        });
        self.memory += bytes.len();
        self.chunks[index as usize] = Chunk { used: bytes.len(), bytes, live: 1 };
        ChunkRef { chunk: index, offset: 0, len: len as u32 }
    }

    /// The payload.
    #[inline]
    pub(super) fn bytes(&self, at: ChunkRef) -> &[u8] {
        &self.chunks[at.chunk as usize].bytes[at.offset as usize..][..at.len as usize]
    }

    /// Lets go of a payload.
    #[inline]
    pub(super) fn release(&mut self, at: ChunkRef) {
        let chunk = &mut self.chunks[at.chunk as usize];
        chunk.live -= 1;
        if chunk.live == 0 {
            chunk.used = 0;
            if self.current != Some(at.chunk) {
                self.retire(at.chunk);
            }
        }
    }

    /// What is stored from now on goes into other chunks than what is there.
    pub(super) fn seal(&mut self) {
        if let Some(previous) = self.current.take()
            && self.chunks[previous as usize].live == 0
        {
            self.retire(previous);
        }
    }

    /// Copies a small payload out of the chunk that it lies in, if that is one that others have left.
    pub(super) fn relocate(&mut self, at: &mut ChunkRef) {
        let from = &self.chunks[at.chunk as usize];
        let is_standard = from.bytes.len() == config::READER_CHUNK_BYTES;
        if !is_standard || self.current == Some(at.chunk) || at.len as usize > MOVED_MAX_BYTES {
            return;
        }
        let len = at.len as usize;
        let index = match self.current {
            Some(index) if self.room(index) >= len => index,
            _ => self.open(len),
        };
        let Ok([from, to]) = self.chunks.get_disjoint_mut([at.chunk as usize, index as usize]) else {
            return;
        };
        let offset = to.used;
        to.bytes[offset..offset + len].copy_from_slice(&from.bytes[at.offset as usize..][..len]);
        to.used += len;
        to.live += 1;
        let before = core::mem::replace(at, ChunkRef { chunk: index, offset: offset as u32, len: at.len });
        self.release(before);
    }

    /// Bytes of memory in use.
    pub(super) fn used(&self) -> usize {
        self.memory - self.spare.len() * config::READER_CHUNK_BYTES
    }

    /// Bytes of memory in use or kept for reuse.
    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    #[inline]
    fn room(&self, index: u32) -> usize {
        let chunk = &self.chunks[index as usize];
        chunk.bytes.len() - chunk.used
    }

    fn open(&mut self, len: usize) -> u32 {
        if let Some(previous) = self.current.take()
            && self.chunks[previous as usize].live == 0
        {
            self.retire(previous);
        }
        let spare = if len <= config::READER_CHUNK_BYTES { self.spare.pop() } else { None };
        let index = spare.unwrap_or_else(|| self.allocate(len.max(config::READER_CHUNK_BYTES)));
        self.current = Some(index);
        index
    }

    fn allocate(&mut self, len: usize) -> u32 {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.chunks.push(Chunk::default());
            self.chunks.len() as u32 - 1
        });
        self.chunks[index as usize].bytes = vec![0; len].into_boxed_slice();
        self.memory += len;
        index
    }

    fn retire(&mut self, index: u32) {
        let chunk = &mut self.chunks[index as usize];
        let is_standard = chunk.bytes.len() == config::READER_CHUNK_BYTES;
        if is_standard && self.spare.len() < config::READER_CHUNKS_SPARE_MAX {
            self.spare.push(index);
        } else {
            self.memory -= chunk.bytes.len();
            let bytes = core::mem::take(&mut chunk.bytes);
            self.give_buffer(bytes);
            self.vacant.push(index);
        }
    }
}

/// Longer payloads hold up little more than themselves.
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
        assert!(chunks.memory() <= 20 * config::READER_CHUNK_BYTES, "{}", chunks.memory());
    }

    #[test]
    fn small_payloads_move_together_and_what_they_held_up_is_reused() {
        let mut chunks = Chunks::default();
        let mut stay: Vec<_> = (0..100_u8)
            .map(|n| {
                let at = chunks.store(&[n; 8]);
                let large = chunks.store(&[0; config::READER_CHUNK_BYTES - 8]);
                chunks.release(large);
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
        assert!(chunks.memory() <= config::READER_CHUNK_BYTES);
    }
}
