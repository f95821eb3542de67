//! Large samples filled piece by piece without the writer's lock, so that a filled piece is sent
//! while the next is filled.
//!
//! The sample is in the history from the beginning. Until it is complete it is the last one there:
//! nothing else may be written. Unfilled fragments, and all later samples, are not handed out. No
//! thread waits for a reader while a sample is incomplete.

use alloc::sync::Arc;

use weir_wire::SequenceNumber;

use super::admit::{Form, large_charge};
use super::compose;
use super::fragments::Filling;
use super::refusal::WriteRefused;
use super::settings::Stamp;
use super::state::WriterCore;
use crate::block::Block;
use crate::change_kind::ChangeKind;
use crate::config;
use crate::history::pieces::piece_len;
use crate::time::Time;

impl WriterCore {
    /// Begins a sample that is filled piece by piece. Returns the length of its pieces in bytes;
    /// the last one may be shorter.
    ///
    /// Returns `None` if nothing happened, because the sample is too short, another one is being
    /// filled, or no reader is reliable. The caller then uses [`WriterCore::write`].
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
        // With a limits table, a sample has one block.
        if !is_apt || self.history.is_fixed() || self.config.is_asynchronous || self.filling.is_some() {
            return Ok(None);
        }
        let form = self.admit_large(payload_len)?;
        let Form::Fragments { size: fragment_size } = form else { return Ok(None) };
        let instance = self.admit_instance(stamp.key, len)?;
        let cost = large_charge(payload_len, fragment_size);
        let sn = self.history.begin_pieces(payload_len, fragment_size, cost);
        self.filling = Some(Filling { sn, payload_len, fragment_size, filled: 0 });
        self.instances.committed(instance, sn);
        if self.timed.is_some() {
            self.note_timed(now, ChangeKind::Alive, instance, sn);
        }
        self.laid(now, stamp.timestamp, form, sn, payload_len);
        Ok(Some(piece_len(fragment_size)))
    }

    /// Lends memory for the next piece.
    pub fn lend_piece(&mut self) -> Arc<Block> {
        self.history.lend_piece()
    }

    /// Makes a filled block the next piece of the sample begun. The last piece completes the
    /// sample.
    pub fn add_piece(&mut self, piece: Arc<Block>) {
        let Some(filling) = &mut self.filling else { return };
        let sn = filling.sn;
        filling.filled += piece_len(filling.fragment_size);
        if filling.filled >= filling.payload_len {
            self.filling = None;
        }
        self.history.add_piece(sn, piece);
    }

    /// Abandons the sample begun, if it is incomplete. Readers that have a part of it are sent a
    /// GAP.
    pub fn abandon_pieces(&mut self) {
        if let Some(filling) = self.filling.take() {
            self.history.remove(filling.sn);
            self.fragments.end();
        }
    }

    /// Returns how many of a sample's `total` fragments may be handed out.
    pub(super) fn filled_fragments(&self, sn: SequenceNumber, total: u32) -> u32 {
        match &self.filling {
            Some(filling) if filling.sn == sn => (filling.filled / filling.fragment_size as usize) as u32,
            _ => total,
        }
    }

    /// Returns whether a sample is complete.
    pub(super) fn is_whole(&self, sn: SequenceNumber) -> bool {
        self.filling.as_ref().is_none_or(|filling| filling.sn != sn)
    }
}

#[cfg(test)]
mod tests;
