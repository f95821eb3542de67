//! Positions in a writer's samples that its HEARTBEATs refute: the reader returns to where it was.

use weir_wire::SequenceNumber;

use super::coherence::{Coherence, Sorted};
use super::writer_proxy::{Author, WriterProxy};
use super::{ReaderCore, drop_incomplete};
use crate::time::Time;

impl ReaderCore {
    /// Returns to the sample `first`: the writer has not written as many as were skipped from there on.
    #[cold]
    pub(super) fn take_back_leap(&mut self, now: Time, index: usize, first: SequenceNumber) {
        self.delivery.counters.leaps_taken_back += 1;
        let author = self.read_again(index, |proxy| proxy.return_to(first));
        self.leave_dropped(now, author);
    }

    /// Reads a writer that has restarted its sequence numbers from its first sample on.
    #[cold]
    pub(super) fn restart_writer(&mut self, now: Time, index: usize) {
        self.delivery.counters.writers_restarted += 1;
        let author = self.read_again(index, WriterProxy::restart);
        let restart =
            |coherence: &mut Coherence, out: &mut Sorted| coherence.restart_writer(author.guid, out);
        self.delivery.cache.with_coherence(now, |_| author.is_alive, restart);
        self.leave_dropped(now, author);
    }

    /// Changes the position in the samples of a writer. Drops what waits behind the old one: it is false, or will be
    /// sent again.
    fn read_again(&mut self, index: usize, change: impl FnOnce(&mut WriterProxy)) -> Author {
        let proxy = &mut self.writers.list[index];
        self.delivery.refused.remove(proxy.guid);
        drop_incomplete(proxy, &mut self.fragments, &mut self.delivery.cache);
        change(proxy);
        proxy.author()
    }

    /// Ends the instances that waited for samples which were dropped, if their writer is not alive.
    fn leave_dropped(&mut self, now: Time, author: Author) {
        if !author.is_alive {
            self.leave_again(now, author.guid);
        }
    }
}
