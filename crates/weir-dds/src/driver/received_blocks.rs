//! Buffers in which large samples stay where they were received, until they are taken.
//!
//! A large datagram that arrives alone is not copied into the reader's cache. The cache keeps its
//! buffer instead, and the next call receives into another one. A buffer belongs to the holders of
//! its reference, and may outlive the reader. There are few buffers. When an application that does
//! not take its samples holds all of them, samples are copied like any others.

use std::sync::Arc;

use weir_rtps::block::Block;
use weir_rtps::config;
use weir_udp::{RECV_BUFFER_BYTES, RecvBatch};

/// Most buffers. Bounds the memory of a participant whose applications keep their samples.
const BLOCKS_MAX: usize = 8;

/// The buffers, allocated when first needed.
#[derive(Debug, Default)]
pub(crate) struct ReceivedBlocks {
    blocks: Vec<Arc<Block>>,
    /// The buffer that holds what the last call received.
    last: Option<usize>,
}

impl ReceivedBlocks {
    /// Takes a large single datagram of `len` bytes out of the batch, if a buffer is free.
    ///
    /// Returns the block that now begins with the datagram. The batch must consist of that
    /// datagram.
    #[inline]
    pub(crate) fn take_single(&mut self, batch: &mut RecvBatch, len: usize) -> Option<&Arc<Block>> {
        let fits = (config::READER_BORROWED_MIN_BYTES..=config::READER_BORROWED_MAX_BYTES).contains(&len);
        if fits { self.take(batch) } else { None }
    }

    /// Not inlined, to keep this code out of the path of small datagrams.
    #[inline(never)]
    fn take(&mut self, batch: &mut RecvBatch) -> Option<&Arc<Block>> {
        // Only a hint: `exchange` checks that the block is unshared.
        let free = self.blocks.iter().position(|block| Arc::strong_count(block) == 1);
        let index = free.or_else(|| {
            (self.blocks.len() < BLOCKS_MAX).then(|| {
                self.blocks.push(Block::new(RECV_BUFFER_BYTES));
                self.blocks.len() - 1
            })
        })?;
        if !exchange(&mut self.blocks[index], batch) {
            return None;
        }
        self.last = Some(index);
        Some(&self.blocks[index])
    }

    /// Prepares the next receive call: if the last sample was taken, reuses its buffer, which is
    /// still in the caches.
    #[inline]
    pub(crate) fn take_back(&mut self, batch: &mut RecvBatch) {
        if let Some(index) = self.last.take() {
            exchange(&mut self.blocks[index], batch);
        }
    }
}

/// Exchanges the memory of an unshared block for that of the batch's first message, which is then
/// empty.
fn exchange(block: &mut Arc<Block>, batch: &mut RecvBatch) -> bool {
    let memory = Arc::get_mut(block).and_then(Block::memory_mut);
    memory.is_some_and(|memory| batch.exchange_first(memory))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use weir_udp::{Outgoing, SocketOptions, UdpSocket, Wait};

    use super::*;

    /// A socket that sends to itself.
    struct Line {
        socket: UdpSocket,
        batch: RecvBatch,
    }

    impl Line {
        fn new() -> Self {
            let options =
                SocketOptions { gro: true, ..SocketOptions::new(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)) };
            Self { socket: UdpSocket::bind(&options).unwrap(), batch: RecvBatch::new(4) }
        }

        /// Receives these datagrams with one call.
        fn receive(&mut self, datagrams: &[&[u8]], segment: u16) {
            let to = Some(self.socket.local_addr());
            for datagram in datagrams {
                let outgoing = Outgoing { segment, ..Outgoing::datagram(to, datagram) };
                self.socket.send_one(&outgoing).unwrap();
            }
            let count = self.socket.recv_batch(&mut self.batch, 4, Wait::Block).unwrap();
            assert_eq!(count, datagrams.len());
        }
    }

    impl Line {
        /// Takes what was received, if it was one datagram.
        fn take<'b>(&mut self, blocks: &'b mut ReceivedBlocks) -> Option<(&'b Arc<Block>, usize)> {
            let len = self.batch.single_datagram_len()?;
            Some((blocks.take_single(&mut self.batch, len)?, len))
        }
    }

    #[test]
    fn a_large_datagram_stays_as_it_is_while_others_arrive() {
        let mut line = Line::new();
        let mut blocks = ReceivedBlocks::default();
        let mut kept = Vec::new();
        for round in 0..BLOCKS_MAX as u8 {
            line.receive(&[&[round; 8_000]], 0);
            let (block, len) = line.take(&mut blocks).unwrap();
            assert_eq!(len, 8_000);
            kept.push(Arc::clone(block));
            assert_eq!(line.batch.messages().len(), 0, "the datagram has left the batch");
        }
        // With all buffers held, the next datagram stays in the batch.
        line.receive(&[&[0xaa; 8_000]], 0);
        assert!(line.take(&mut blocks).is_none());
        assert_eq!(line.batch.get(0).unwrap().bytes, [0xaa; 8_000]);
        for (round, block) in kept.iter().enumerate() {
            assert!(block.bytes()[..8_000].iter().all(|byte| usize::from(*byte) == round));
        }
        // A released buffer is reused.
        kept.remove(3);
        line.receive(&[&[0xbb; 5_000]], 0);
        let (block, len) = line.take(&mut blocks).unwrap();
        assert_eq!(block.bytes()[..len], [0xbb; 5_000]);
        assert_eq!(blocks.blocks.len(), BLOCKS_MAX);
        // A held buffer outlives the pool and the batch.
        drop((blocks, line));
        assert_eq!(kept[6].bytes()[..8_000], [7; 8_000]);
    }

    #[test]
    fn a_buffer_that_came_back_is_the_next_to_be_received_into() {
        let mut line = Line::new();
        let mut blocks = ReceivedBlocks::default();
        let mut places = std::collections::BTreeSet::new();
        for round in 0..10 {
            blocks.take_back(&mut line.batch);
            line.receive(&[&[round; 8_000]], 0);
            let (block, len) = line.take(&mut blocks).unwrap();
            assert_eq!(block.bytes()[..len], [round; 8_000]);
            places.insert(block.bytes().as_ptr() as usize);
        }
        assert_eq!((places.len(), blocks.blocks.len()), (1, 1));
        // A held buffer is not reused.
        let kept = Arc::clone(&blocks.blocks[0]);
        blocks.take_back(&mut line.batch);
        line.receive(&[&[0xff; 8_000]], 0);
        assert_eq!(kept.bytes()[..8_000], [9; 8_000]);
    }

    #[test]
    fn small_datagrams_huge_ones_several_and_coalesced_ones_stay_in_the_batch() {
        let mut line = Line::new();
        let mut blocks = ReceivedBlocks::default();
        line.receive(&[&[1; config::READER_BORROWED_MIN_BYTES - 1]], 0);
        assert!(line.take(&mut blocks).is_none());
        line.receive(&[&[1; config::READER_BORROWED_MAX_BYTES + 1]], 0);
        assert!(line.take(&mut blocks).is_none());
        line.receive(&[&[2; 8_000], &[3; 8_000]], 0);
        assert!(line.take(&mut blocks).is_none());
        line.receive(&[&[4; 16_000]], 4_000);
        assert!(line.take(&mut blocks).is_none());
        assert_eq!(line.batch.get(0).unwrap().datagram_count(), 4);
        assert!(blocks.blocks.is_empty(), "no buffer is allocated for them");
    }
}
