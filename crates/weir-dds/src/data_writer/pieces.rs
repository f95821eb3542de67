//! Large samples, encoded and sent piece by piece.
//!
//! Each piece is passed to the kernel while the caches still hold it, and the reader receives the
//! first pieces before the last one is encoded.
//!
//! The `sending` lock is held from the first piece to the last, so this writer sends nothing else
//! meanwhile. The core is locked only between pieces, when acknowledgements are received as well.
//! If readers have no room, encoding continues, and the rest leaves as that of any large sample.
//! The thread never waits with a sample half encoded.

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
        // Listeners may take long, so they are called after everything that readers had room for
        // was sent.
        drop(sends);
        driver.call_data_listeners(&later);
        self.send(lane.turn(), clock::now());
        Ok(())
    }
}

/// Guard for a sample while one of its pieces is encoded, with the core unlocked.
///
/// It is dropped only if the application's encoding fails or panics. It then abandons the sample:
/// otherwise the writer would wait forever for the rest.
struct Unfinished<'a> {
    writer: &'a Inner,
    /// Readers whose listeners are due after the sample.
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
        driver.outlet.arm(next);
        driver.listeners.call(self.later.drain(..).map(|it| Call::News(it.reader)));
    }
}
