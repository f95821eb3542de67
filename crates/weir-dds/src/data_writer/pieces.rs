//! Large samples are encoded and sent piece by piece: a piece is handed to the kernel while the caches still hold it, and
//! the reader has the beginning before the end is encoded.
//!
//! The lock for sending is held from the first piece to the last, so that nothing else is written or sent by this writer
//! meanwhile; the core is locked only between the pieces, when acknowledgements are taken in as well. Where readers have
//! no room the rest is encoded all the same, and leaves as that of any large sample does: no thread waits with half a
//! sample.

use std::sync::Arc;

use weir_cdr::{DdsType, Pieces};
use weir_rtps::block::Block;

use super::inner::Inner;
use crate::clock;
use crate::driver::channel::ReaderNews;
use crate::driver::lane::Turn;
use crate::driver::listeners::Call;
use crate::error::Result;

impl Inner {
    /// Encodes and sends the sample that was just begun.
    pub(super) fn send_pieces<T: DdsType>(
        &self,
        turn: Turn<'_>,
        payload: &Pieces<'_, T>,
        piece_len: usize,
    ) -> Result<()> {
        let (driver, lane) = (self.driver(), &self.endpoint.lane);
        let Turn { mut core, mut sends } = turn;
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
            driver.receive_quietly(&mut later);
            core = lane.core();
            core.add_piece(piece);
            at = end;
            if at == payload.len() && later.is_empty() {
                self.send(Turn { core, sends }, clock::now());
                return Ok(());
            }
            lane.send_piece(&driver.outlet, core, &mut sends);
            if at == payload.len() {
                break;
            }
            core = lane.core();
        }
        // What there was room for has left: listeners may take long.
        drop(sends);
        driver.call_data_listeners(&later);
        self.send(lane.turn(), clock::now());
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
            let mut core = self.writer.endpoint.lane.core();
            core.abandon_pieces();
            core.next_timeout()
        };
        let driver = self.writer.driver();
        if let Some(at) = next {
            driver.outlet.timers.arm(at);
        }
        driver.listeners.call(self.later.drain(..).map(|it| Call::News(it.reader)));
    }
}
