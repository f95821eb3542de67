//! Large samples are encoded and sent piece by piece: a piece is handed to the kernel while the caches still hold it, and
//! the reader has the beginning before the end is encoded.
//!
//! The lock for sending is held from the first piece to the last, so that nothing else is written or sent by this writer
//! meanwhile; the state is locked only between the pieces, when acknowledgements are taken in as well. Where readers have no
//! room the rest is encoded all the same, and leaves as that of any large sample does: nobody waits with half a sample.

use std::sync::Arc;

use weir_cdr::{DdsType, Pieces};
use weir_rtps::block::Block;
use weir_wire::Timestamp;

use super::Inner;
use super::sending::Turn;
use crate::clock;
use crate::driver::channel::ReaderNews;
use crate::driver::listeners::Call;
use crate::error::Result;

impl Inner {
    /// Writes a sample that ends in a long sequence of numbers. `false`, and nothing has happened: it is to be written as
    /// others are.
    #[cold]
    #[inline(never)]
    pub(super) fn write_in_pieces<T: DdsType>(
        &self,
        sample: &T,
        key: Option<[u8; 16]>,
        timestamp: Option<Timestamp>,
    ) -> Result<bool> {
        let Some(payload) = Pieces::new(sample, self.encoding)? else { return Ok(false) };
        let len = payload.len();
        let mut waiting_since = None;
        loop {
            let now = clock::now();
            let stamp = timestamp.unwrap_or_else(|| self.driver().wall_clock.timestamp(now));
            let mut turn = self.turn_to_write();
            let refused = match (turn.core.begin_pieces(now, (stamp, key), len), &turn.sending) {
                (Ok(Some(piece_len)), Some(_)) => {
                    self.send_pieces(turn, &payload, piece_len)?;
                    self.note_assertion(now);
                    return Ok(true);
                }
                (Ok(_), _) => return Ok(false),
                (Err(refused), _) => refused,
            };
            self.flush(turn, now);
            self.make_room(refused, (key, len), now, &mut waiting_since)?;
        }
    }

    /// Encodes and sends the sample that was just begun.
    fn send_pieces<T: DdsType>(
        &self,
        turn: Turn<'_>,
        payload: &Pieces<'_, T>,
        piece_len: usize,
    ) -> Result<()> {
        let Turn { mut core, mut sending } = turn;
        let mut later = Vec::new();
        let mut at = 0;
        loop {
            let mut piece = core.lend_piece();
            drop(core);
            let end = (at + piece_len).min(payload.len());
            if let Some(block) = Arc::get_mut(&mut piece) {
                let unfinished = Unfinished { writer: self, later: &mut later };
                payload.write(at, &mut Block::bytes_mut(block)[..end - at])?;
                std::mem::forget(unfinished);
            }
            self.driver().receive_quietly(&mut later);
            core = self.endpoint.core.lock();
            core.add_piece(piece);
            at = end;
            if at == payload.len() && later.is_empty() {
                self.send(Turn { core, sending }, clock::now());
                return Ok(());
            }
            match &mut sending {
                Some(sending) => {
                    core.poll_transmit(clock::now(), &mut sending.outbox);
                    self.transmit(core, sending);
                }
                None => drop(core),
            }
            if at == payload.len() {
                break;
            }
            core = self.endpoint.core.lock();
        }
        // What there was room for has left: listeners may take long.
        drop(sending);
        self.driver().tell_listeners(&later);
        self.send(self.turn(), clock::now());
        Ok(())
    }
}

/// A sample of which a piece is being encoded, with no lock of the core held. Dropped, because the application's encoding
/// failed or panicked, it gives the sample up: the writer would wait for the rest for ever.
struct Unfinished<'a> {
    writer: &'a Inner,
    /// Readers whose listeners were to be called after the sample.
    later: &'a mut Vec<ReaderNews>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let next = {
            let mut core = self.writer.endpoint.core.lock();
            core.abandon_pieces();
            core.next_timeout()
        };
        let driver = self.writer.driver();
        if let Some(at) = next {
            driver.timers.arm(at);
        }
        driver.call(self.later.drain(..).map(|it| Call::News(it.reader)));
    }
}
