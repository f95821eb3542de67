//! Memory of the history that the application fills itself, outside the lock of the writer.
//!
//! A block is lent, filled, and becomes a part of the history where it is: a large payload is not copied. Small ones
//! are, because many of them leave by one send only when they lie end to end. What is written meanwhile goes into other
//! blocks.

use core::ops::Range;
use std::sync::Arc;

use weir_wire::{SequenceNumber, Timestamp};

use super::{WriteRefused, WriterCore, compose};
use crate::block::Block;
use crate::config;
use crate::time::Time;
use crate::window::charge;

/// Bytes that stay free in front of a payload in a block that was lent: the headers of its datagram go there.
pub const LOAN_FRONT_BYTES: usize = compose::PAYLOAD_AT;

impl WriterCore {
    /// Lends a block of at least `len` bytes, to be given to [`WriterCore::commit_loan`] or
    /// [`WriterCore::take_back`]. What is in it is left from before.
    ///
    /// # Errors
    /// [`WriteRefused::TooLarge`], [`WriteRefused::TooManyLoans`].
    pub fn lend(&mut self, len: usize) -> Result<Arc<Block>, WriteRefused> {
        let max = config::SAMPLE_MAX_BYTES + config::LOAN_EXTRA_MAX_BYTES;
        if len > max {
            return Err(WriteRefused::TooLarge { len, max: config::SAMPLE_MAX_BYTES });
        }
        if self.loans >= config::LOANS_MAX {
            return Err(WriteRefused::TooManyLoans { max: config::LOANS_MAX });
        }
        self.loans += 1;
        Ok(self.history.lend(len))
    }

    /// Takes back a block that is not wanted any more.
    pub fn take_back(&mut self, block: Arc<Block>) {
        self.loans = self.loans.saturating_sub(1);
        self.history.keep(block);
    }

    /// Makes `payload`, a part of a block that was lent, the next sample: its encapsulation header first, padded to a
    /// multiple of four bytes, at least [`LOAN_FRONT_BYTES`] behind the start of the block.
    ///
    /// # Errors
    /// As [`WriterCore::reserve`]; the block is still lent then.
    pub fn commit_loan(
        &mut self,
        now: Time,
        timestamp: Timestamp,
        key: Option<[u8; 16]>,
        block: Arc<Block>,
        payload: Range<usize>,
    ) -> Result<SequenceNumber, (WriteRefused, Arc<Block>)> {
        match self.admit_loan(key, &block, &payload) {
            Ok((Form::Copy, _)) => self.copy_loan(now, timestamp, key, block, payload),
            Ok((Form::Datagram, instance)) => {
                Ok(self.adopt_datagram(now, timestamp, instance, block, payload))
            }
            Ok((Form::Fragments { size }, instance)) => {
                let (sn, len) = (self.history.next(), payload.len());
                self.note_large(sn, timestamp);
                let cost = self.large_charge(len, size);
                self.history.adopt(block, payload, size, cost);
                self.adopted(now, sn, len, instance);
                Ok(sn)
            }
            Err(refused) => Err((refused, block)),
        }
    }

    /// How a payload leaves, if it may, and its instance.
    fn admit_loan(
        &mut self,
        key: Option<[u8; 16]>,
        block: &Arc<Block>,
        payload: &Range<usize>,
    ) -> Result<(Form, Option<u32>), WriteRefused> {
        let len = compose::datagram_len(payload.len());
        let instance = self.admit(key, len)?;
        if len + compose::HEARTBEAT_LEN > self.datagram_max {
            let size = self.admit_large(payload.len())?;
            return Ok((Form::Fragments { size }, instance));
        }
        let has_front = payload.start >= LOAN_FRONT_BYTES && Arc::strong_count(block) == 1;
        if 2 * len <= config::SEGMENTED_MAX_BYTES || !has_front || !payload.len().is_multiple_of(4) {
            return Ok((Form::Copy, instance));
        }
        if !self.has_room(charge(len)) {
            return Err(self.refuse(WriteRefused::WindowFull));
        }
        self.open = None;
        Ok((Form::Datagram, instance))
    }

    fn copy_loan(
        &mut self,
        now: Time,
        timestamp: Timestamp,
        key: Option<[u8; 16]>,
        block: Arc<Block>,
        payload: Range<usize>,
    ) -> Result<SequenceNumber, (WriteRefused, Arc<Block>)> {
        let written = self.reserve(payload.len()).and_then(|mut room| {
            room.payload().copy_from_slice(&block.bytes()[payload]);
            room.commit(now, timestamp, key)
        });
        match written {
            Ok(sn) => {
                self.take_back(block);
                Ok(sn)
            }
            Err(refused) => Err((refused, block)),
        }
    }

    fn adopt_datagram(
        &mut self,
        now: Time,
        timestamp: Timestamp,
        instance: Option<u32>,
        mut block: Arc<Block>,
        payload: Range<usize>,
    ) -> SequenceNumber {
        let sn = self.history.next();
        let part = payload.start - LOAN_FRONT_BYTES..payload.end;
        if let Some(memory) = Arc::get_mut(&mut block) {
            self.template.fill(&mut memory.bytes_mut()[part.clone()], sn, timestamp, payload.len());
        }
        let len = part.len();
        self.history.adopt(block, part, 0, charge(len));
        self.adopted(now, sn, len, instance);
        sn
    }

    fn adopted(&mut self, now: Time, sn: SequenceNumber, len: usize, instance: Option<u32>) {
        self.loans = self.loans.saturating_sub(1);
        self.burst.datagrams += 1;
        self.instances.committed(instance, sn);
        self.committed(now, sn, len);
    }
}

/// How a payload that was filled elsewhere leaves.
enum Form {
    /// Among others of its size.
    Copy,
    /// Alone, from where it is.
    Datagram,
    /// In fragments, from where it is.
    Fragments { size: u32 },
}

#[cfg(test)]
mod tests;
