//! Large samples that are filled piece by piece, outside the lock of the writer: what is filled may leave while the next
//! piece is being filled.
//!
//! A sample is in the history from its beginning on, and is always the last one there until it is whole: nothing else
//! may be written meanwhile. Fragments that are not filled are not handed out, nor anything behind them. No thread waits
//! for a reader while a sample is not whole.

use std::sync::Arc;

use weir_wire::SequenceNumber;

use super::admit::{Form, large_charge};
use super::compose;
use super::fragments::Filling;
use super::refusal::WriteRefused;
use super::settings::Stamp;
use super::state::WriterCore;
use crate::block::Block;
use crate::config;
use crate::history::pieces::piece_len;
use crate::time::Time;

impl WriterCore {
    /// Begins a sample that is filled piece by piece, and returns the length of its pieces, in bytes; the last one may be
    /// shorter. `None`, and nothing has happened: it is too short, or no reader reports how far it is. Write it by
    /// [`WriterCore::write`].
    ///
    /// # Errors
    /// As [`WriterCore::write`].
    pub fn begin_pieces(
        &mut self,
        now: Time,
        stamp: Stamp,
        payload_len: usize,
    ) -> Result<Option<usize>, WriteRefused> {
        let len = compose::datagram_len(payload_len);
        let is_large = len + compose::HEARTBEAT_LEN > self.datagram_max;
        let is_apt = is_large && payload_len > config::PIECE_BYTES && self.has_reliable;
        if !is_apt || self.config.is_asynchronous || self.filling.is_some() {
            return Ok(None);
        }
        let form = self.admit_large(payload_len)?;
        let Form::Fragments { size: fragment_size } = form else { return Ok(None) };
        let instance = self.admit_instance(stamp.key, len)?;
        let cost = large_charge(payload_len, fragment_size);
        let sn = self.history.begin_pieces(payload_len, fragment_size, cost);
        self.filling = Some(Filling { sn, payload_len, fragment_size, filled: 0 });
        self.instances.committed(instance, sn);
        self.laid(now, stamp.timestamp, form, sn, payload_len);
        Ok(Some(piece_len(fragment_size)))
    }

    /// Memory for the next piece.
    pub fn lend_piece(&mut self) -> Arc<Block> {
        self.history.lend_piece()
    }

    /// Makes a block that was lent and filled the next piece of the sample that was begun; the rest of it, if it is the last.
    pub fn add_piece(&mut self, piece: Arc<Block>) {
        let Some(filling) = &mut self.filling else { return };
        let sn = filling.sn;
        filling.filled += piece_len(filling.fragment_size);
        if filling.filled >= filling.payload_len {
            self.filling = None;
        }
        self.history.add_piece(sn, piece);
    }

    /// Gives up the sample that was begun, if it is not whole: a GAP tells readers that have a part of it.
    pub fn abandon_pieces(&mut self) {
        if let Some(filling) = self.filling.take() {
            self.history.remove(filling.sn);
            self.fragments.end();
        }
    }

    /// How many of the `total` fragments of a sample may be handed out.
    pub(super) fn filled_fragments(&self, sn: SequenceNumber, total: u32) -> u32 {
        match &self.filling {
            Some(filling) if filling.sn == sn => (filling.filled / filling.fragment_size as usize) as u32,
            _ => total,
        }
    }

    /// Whether all of a sample is there.
    pub(super) fn is_whole(&self, sn: SequenceNumber) -> bool {
        self.filling.as_ref().is_none_or(|filling| filling.sn != sn)
    }
}

#[cfg(test)]
mod tests;
