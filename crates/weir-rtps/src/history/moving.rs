//! Bounded memory: old entries move to the sparse index, and survivors of mostly dead blocks move
//! together.

use weir_wire::SequenceNumber;

use super::History;
use super::block::{DATAGRAM_HEAD_LEN, Entry};

impl History {
    /// Does a bounded amount of compaction. Called each time a block is opened.
    pub(super) fn tidy(&mut self) {
        if self.entries.len() > 2 * self.alive + self.dense_spare() {
            self.age();
        }
        if self.fixed.is_some() {
            // Each block in use has a sample, and there is a block for each sample.
            return;
        }
        for _ in 0..VICTIMS_AT_A_TIME {
            // Moving is worthwhile only if more than half of the bytes are dead, plus a margin.
            if self.used() - self.live_bytes() <= self.live_bytes() + BLOCKS_DEAD_MAX * self.block_len {
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

    /// Returns the block with the most dead bytes, if a quarter of it is dead.
    fn victim(&self) -> Option<u32> {
        let is_open = |place| Some(place) == self.open || Some(place) == self.refuge;
        let blocks = self.blocks.iter().zip(0_u32..).filter(|(block, place)| {
            block.block.is_some() && !is_open(*place) && block.len() == self.block_len
        });
        let (block, place) = blocks.max_by_key(|(block, _)| block.used - block.live)?;
        (block.used - block.live >= block.used / 4).then_some(place)
    }

    /// Moves the surviving samples of a block to another one. Samples of a batch are separated:
    /// each becomes a datagram.
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
        // Keeps the list's allocation.
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
        // No thread sends the unfilled part, but one may be sending the filled part. Then the
        // memory cannot be borrowed.
        let Some(bytes) = block.bytes_mut() else { return self.leave_refuge(victim, sn) };
        bytes[at..at + head.len()].copy_from_slice(head);
        bytes[at + head.len()..at + len].copy_from_slice(own);
        block.used += len;
        block.live += len;
        block.moved.push(sn);
        self.moved += len as u64;
        self.let_go_of_moved(victim, own.len());
        self.place(sn, Entry { block: place, offset: at as u32, len: len as u32, own_at: 0, ..entry });
    }

    /// Moves a sample to a new refuge, because a thread is sending from the current one.
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

    /// [`History::let_go`], but the caller retires the block.
    pub(super) fn let_go_of_moved(&mut self, place: u32, own: usize) {
        self.blocks[place as usize].live -= own;
        self.gone += own as u64;
    }

    /// Sets where a sample is stored.
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

/// Entries allowed in the dense index in addition to two per sample. This is several blocks' worth.
pub(super) const DENSE_SPARE: usize = 8192;
/// Entries moved at a time from the dense index.
const AGED_AT_A_TIME: usize = 16_384;
/// Dead bytes held in addition to one per live byte, in blocks.
const BLOCKS_DEAD_MAX: usize = 16;
/// Blocks evacuated at a time. When half of all bytes are dead, each victim is at least half dead,
/// so two would suffice.
const VICTIMS_AT_A_TIME: usize = 4;
