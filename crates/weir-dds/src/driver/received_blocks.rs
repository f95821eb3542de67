//! Memory in which large samples stay where they were received, until they are taken.
//!
//! A large datagram that comes alone is not copied into the reader's cache: its buffer goes there, and the next call
//! receives into another one. Whoever holds the buffer keeps it, also when the reader is gone; there are few of them,
//! and when all are held (by an application that does not take its samples) samples are copied as others are.

use std::sync::Arc;

use weir_rtps::block::Block;
use weir_rtps::config;
use weir_udp::{RECV_BUFFER_BYTES, RecvBatch};

/// Most buffers that samples stay in at a time: bounds the memory of a participant whose applications keep their samples.
const BLOCKS_MAX: usize = 8;

/// The buffers, made when they are first needed.
#[derive(Debug, Default)]
pub(crate) struct ReceivedBlocks {
    blocks: Vec<Arc<Block>>,
    /// The one that holds what the last call received.
    last: Option<usize>,
}

impl ReceivedBlocks {
    /// Takes the only message of a batch, which is one datagram of this length, out of it, if it is large and some buffer is
    /// free: the block whose beginning it is now.
    #[inline]
    pub(crate) fn take_lone(&mut self, batch: &mut RecvBatch, len: usize) -> Option<&Arc<Block>> {
        let fits = (config::READER_BORROWED_MIN_BYTES..=config::READER_BORROWED_MAX_BYTES).contains(&len);
        if fits { self.take(batch) } else { None }
    }

    /// Apart, so that small datagrams do not carry it.
    #[inline(never)]
    fn take(&mut self, batch: &mut RecvBatch) -> Option<&Arc<Block>> {
        // The exchange makes sure of it.
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

    /// Before the next receive call: if the last sample was taken, its buffer is received into again, because the caches
    /// know it.
    #[inline]
    pub(crate) fn take_back(&mut self, batch: &mut RecvBatch) {
        if let Some(index) = self.last.take() {
            exchange(&mut self.blocks[index], batch);
        }
    }
}

/// Exchanges the memory of a block that nobody else holds for the first of a batch, which is empty then.
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

        /// Receives these datagrams, by one call.
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
            let len = self.batch.lone_datagram_len()?;
            Some((blocks.take_lone(&mut self.batch, len)?, len))
        }
    }

    #[test]
    fn a_large_datagram_stays_as_it_is_while_others_come() {
        let mut line = Line::new();
        let mut blocks = ReceivedBlocks::default();
        let mut kept = Vec::new();
        for round in 0..BLOCKS_MAX as u8 {
            line.receive(&[&[round; 8_000]], 0);
            let (block, len) = line.take(&mut blocks).unwrap();
            assert_eq!(len, 8_000);
            kept.push(Arc::clone(block));
            assert_eq!(line.batch.messages().len(), 0, "the batch has nothing of it any more");
        }
        // All are held: the next ones stay in the batch.
        line.receive(&[&[0xaa; 8_000]], 0);
        assert!(line.take(&mut blocks).is_none());
        assert_eq!(line.batch.get(0).unwrap().bytes, [0xaa; 8_000]);
        for (round, block) in kept.iter().enumerate() {
            assert!(block.bytes()[..8_000].iter().all(|byte| usize::from(*byte) == round));
        }
        // One that comes back is used again.
        kept.remove(3);
        line.receive(&[&[0xbb; 5_000]], 0);
        let (block, len) = line.take(&mut blocks).unwrap();
        assert_eq!(block.bytes()[..len], [0xbb; 5_000]);
        assert_eq!(blocks.blocks.len(), BLOCKS_MAX);
        // What is held outlives the pool and the batch.
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
        // One that is still held is left alone.
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
        assert!(blocks.blocks.is_empty(), "no memory is taken for them");
    }
}
