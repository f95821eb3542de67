//! Loaned blocks, which the application fills without the writer's lock.
//!
//! A block is lent, filled, and becomes part of the history in place, so a large payload is not
//! copied. A small payload is copied, because samples can be sent together only if they are
//! contiguous. Samples written meanwhile go to other blocks.

use alloc::sync::Arc;
use core::ops::Range;

use weir_wire::SequenceNumber;

use super::admit::{Form, large_charge};
use super::compose;
use super::refusal::WriteRefused;
use super::settings::{Change, Stamp};
use super::state::WriterCore;
use crate::block::Block;
use crate::change_kind::ChangeKind;
use crate::config;
use crate::time::Time;
use crate::window::charge;

/// Bytes that stay free before the payload in a loaned block, for the datagram's headers.
pub const LOAN_FRONT_BYTES: usize = compose::PAYLOAD_AT;

impl WriterCore {
    /// Lends a block of at least `len` bytes, for [`WriterCore::commit_loan`] or
    /// [`WriterCore::take_back`].
    ///
    /// Its contents are unspecified.
    ///
    /// # Errors
    /// [`WriteRefused::TooLarge`], [`WriteRefused::TooManyLoans`].
    pub fn lend(&mut self, len: usize) -> Result<Arc<Block>, WriteRefused> {
        let max = config::SAMPLE_MAX_BYTES + config::LOAN_EXTRA_MAX_BYTES;
        if len > max {
            return Err(WriteRefused::TooLarge { len, max: config::SAMPLE_MAX_BYTES });
        }
        if self.is_closed {
            return Err(WriteRefused::Closed);
        }
        if self.loans >= config::LOANS_MAX {
            return Err(WriteRefused::TooManyLoans { max: config::LOANS_MAX });
        }
        self.loans += 1;
        Ok(self.history.lend(len))
    }

    /// Takes back a block that was not written.
    pub fn take_back(&mut self, block: Arc<Block>) {
        self.loans = self.loans.saturating_sub(1);
        self.history.keep(block);
    }

    /// Makes `payload`, a range of a loaned block, the next sample.
    ///
    /// The payload begins with its encapsulation header and is padded to a multiple of four bytes.
    /// It starts at least [`LOAN_FRONT_BYTES`] into the block.
    ///
    /// # Errors
    /// As [`WriterCore::write`]. The block is returned, and remains on loan.
    pub fn commit_loan(
        &mut self,
        now: Time,
        stamp: Stamp,
        mut block: Arc<Block>,
        payload: Range<usize>,
    ) -> Result<SequenceNumber, (WriteRefused, Arc<Block>)> {
        let Some(form) = self.form_of_loan(&block, &payload) else {
            return self.copy_loan(now, stamp, block, payload);
        };
        let (form, instance) = match self.admit_loan(form, stamp.key, payload.len()) {
            Ok(admitted) => admitted,
            Err(refused) => return Err((refused, block)),
        };
        let sn = self.history.next();
        let (part, size, cost) = match form {
            Form::Fragments { size } => (payload.clone(), size, large_charge(payload.len(), size)),
            _ => {
                let part = payload.start - LOAN_FRONT_BYTES..payload.end;
                if let Some(memory) = Arc::get_mut(&mut block) {
                    let datagram = &mut memory.bytes_mut()[part.clone()];
                    self.template.fill(datagram, sn, stamp.timestamp, payload.len());
                }
                let cost = charge(part.len());
                (part, 0, cost)
            }
        };
        let len = part.len();
        self.loans = self.loans.saturating_sub(1);
        self.instances.committed(instance, sn);
        if self.timed.is_some() {
            self.note_timed(now, ChangeKind::Alive, instance, sn);
        }
        self.history.adopt(block, part, size, cost);
        self.laid(now, stamp.timestamp, form, sn, len);
        Ok(sn)
    }

    /// Returns the form in which the payload is sent in place. `None`: it is copied, to be sent
    /// together with others.
    fn form_of_loan(&self, block: &Arc<Block>, payload: &Range<usize>) -> Option<Form> {
        let len = compose::datagram_len(payload.len());
        if len + compose::HEARTBEAT_LEN > self.datagram_max {
            return Some(Form::Fragments { size: compose::fragment_size(self.datagram_max) });
        }
        let has_front = payload.start >= LOAN_FRONT_BYTES && Arc::strong_count(block) == 1;
        let is_apt = 2 * len > config::SEGMENTED_MAX_BYTES && has_front && payload.len().is_multiple_of(4);
        is_apt.then_some(Form::Datagram)
    }

    fn admit_loan(
        &mut self,
        form: Form,
        key: Option<[u8; 16]>,
        payload_len: usize,
    ) -> Result<(Form, Option<u32>), WriteRefused> {
        let len = compose::datagram_len(payload_len);
        let instance = self.admit_instance(key, len)?;
        if form != Form::Datagram {
            return Ok((self.admit_large(payload_len)?, instance));
        }
        if !self.has_room(charge(len)) {
            return Err(self.refuse(WriteRefused::WindowFull));
        }
        self.open = None;
        Ok((form, instance))
    }

    fn copy_loan(
        &mut self,
        now: Time,
        stamp: Stamp,
        block: Arc<Block>,
        payload: Range<usize>,
    ) -> Result<SequenceNumber, (WriteRefused, Arc<Block>)> {
        let change = Change { kind: ChangeKind::Alive, key: stamp.key, payload: &block.bytes()[payload] };
        match self.write_change(now, Some(stamp.timestamp), change) {
            Ok(sn) => {
                self.take_back(block);
                Ok(sn)
            }
            Err(refused) => Err((refused, block)),
        }
    }
}

#[cfg(test)]
mod tests;
