//! Bounded memory: what is old moves to the sparse index, and survivors of blocks that are mostly dead move together.

use weir_wire::SequenceNumber;

use super::History;
use super::block::{DATAGRAM_HEAD_LEN, Entry};

impl History {
    /// A step towards less memory, as large as a block's worth of samples.
    pub(super) fn tidy(&mut self) {
        if self.entries.len() > 2 * self.alive + DENSE_SPARE {
            self.age();
        }
        for _ in 0..VICTIMS_AT_A_TIME {
            // Half of what is held is dead, and more than is worth the trouble.
            if self.used - self.live <= self.live + BLOCKS_DEAD_MAX * self.block_len {
                break;
            }
            let Some(victim) = self.victim() else { break };
            self.evacuate(victim);
        }
    }

    /// Moves the oldest entries of the dense index to the sparse one.
    fn age(&mut self) {
        for _ in 0..AGED_AT_A_TIME.min(self.entries.len()) {
            let Some(entry) = self.entries.pop_front() else { break };
            self.charged_old = entry.charged;
            if entry.is_alive() {
                self.old.push_back((self.dense, entry));
            }
            self.dense += 1;
        }
    }

    /// The block with the largest share of dead bytes, if it is worth moving the rest.
    fn victim(&self) -> Option<u32> {
        let is_open = |place| Some(place) == self.open || Some(place) == self.refuge;
        let blocks = self.blocks.iter().zip(0_u32..).filter(|(block, place)| {
            block.block.is_some() && !is_open(*place) && block.len() == self.block_len
        });
        let (block, place) = blocks.max_by_key(|(block, _)| block.used - block.live)?;
        (block.used - block.live >= block.used / 4).then_some(place)
    }

    /// Moves what is left in a block to another one. The samples of a batch part: each becomes a datagram.
    fn evacuate(&mut self, victim: u32) {
        let (first, last) = (self.blocks[victim as usize].first, self.blocks[victim as usize].last);
        let moved = core::mem::take(&mut self.blocks[victim as usize].moved);
        for &sn in &moved {
            self.move_sample(victim, sn);
        }
        let mut index = self.old.partition_point(|(sn, _)| *sn < first);
        while let Some(&(sn, _)) = self.old.get(index).filter(|(sn, _)| *sn <= last) {
            self.move_sample(victim, sn);
            index += 1;
        }
        for sn in first.max(self.dense)..=last {
            self.move_sample(victim, sn);
        }
        // The list keeps its memory.
        self.blocks[victim as usize].moved = moved;
        self.retire(victim);
    }

    fn move_sample(&mut self, victim: u32, sn: i64) {
        let Some(entry) = self.entry(SequenceNumber(sn)) else { return };
        if !entry.is_alive() || entry.block != victim {
            return;
        }
        let Some(source) = self.blocks[victim as usize].block.clone() else { return };
        let (offset, own_at) = (entry.offset as usize, usize::from(entry.own_at));
        let own = &source.bytes()[offset + own_at..offset + entry.len as usize];
        let head = if own_at == 0 { &[][..] } else { &source.bytes()[offset..offset + DATAGRAM_HEAD_LEN] };
        let len = head.len() + own.len();
        let place = match self.refuge {
            Some(place) if self.block_len - self.blocks[place as usize].used >= len => place,
            _ => self.new_refuge(),
        };
        let block = &mut self.blocks[place as usize];
        let at = block.used;
        // Nobody sends from what was not filled yet, but somebody may send what was.
        let Some(bytes) = block.bytes_mut() else { return self.leave_refuge(victim, sn) };
        bytes[at..at + head.len()].copy_from_slice(head);
        bytes[at + head.len()..at + len].copy_from_slice(own);
        block.used += len;
        block.live += len;
        block.moved.push(sn);
        self.used += len;
        self.live += len;
        self.let_go_of_moved(victim, own.len());
        self.place(sn, Entry { block: place, offset: at as u32, len: len as u32, own_at: 0, ..entry });
    }

    /// Somebody is sending from the block that survivors move to: they move to another one.
    pub(super) fn leave_refuge(&mut self, victim: u32, sn: i64) {
        self.new_refuge();
        self.move_sample(victim, sn);
    }

    fn new_refuge(&mut self) -> u32 {
        if let Some(full) = self.refuge.take()
            && self.blocks[full as usize].live == 0
        {
            self.retire(full);
        }
        let place = self.new_block(self.block_len);
        self.refuge = Some(place);
        place
    }

    /// As [`History::let_go`], but the block is retired by the caller.
    pub(super) fn let_go_of_moved(&mut self, place: u32, own: usize) {
        self.blocks[place as usize].live -= own;
        self.live -= own;
    }

    /// Sets where a sample lies.
    pub(super) fn place(&mut self, sn: i64, entry: Entry) {
        let place = match usize::try_from(sn - self.dense) {
            Ok(index) => self.entries.get_mut(index),
            Err(_) => self.find_old(sn).and_then(|index| self.old.get_mut(index)).map(|(_, entry)| entry),
        };
        if let Some(place) = place {
            *place = entry;
        }
    }
}

/// Entries that the dense index may have beyond two per sample, and how many of them move at a time: several times
/// as many as a block holds.
pub(super) const DENSE_SPARE: usize = 8192;
/// See [`DENSE_SPARE`].
const AGED_AT_A_TIME: usize = 16_384;
/// Dead bytes that are held beyond as many as there are live ones, in blocks.
const BLOCKS_DEAD_MAX: usize = 16;
/// Blocks that are evacuated whenever one is full. Each of them is at least half dead when half of everything is, so
/// two would do.
const VICTIMS_AT_A_TIME: usize = 4;
