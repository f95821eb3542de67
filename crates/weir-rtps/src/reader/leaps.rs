//! Positions in a writer's samples that its HEARTBEATs refute: the reader returns to where it was.

use weir_wire::SequenceNumber;

use super::writer_proxy::WriterProxy;
use super::{ReaderCore, drop_incomplete};
use crate::time::Time;

impl ReaderCore {
    /// Returns to the sample `first`: the writer has not written as many as were skipped from there on.
    #[cold]
    pub(super) fn take_back_leap(&mut self, now: Time, index: usize, first: SequenceNumber) {
        self.delivery.counters.leaps_taken_back += 1;
        self.read_again(now, index, |proxy| proxy.return_to(first));
    }

    /// Reads a writer that has restarted its sequence numbers from its first sample on.
    #[cold]
    pub(super) fn restart_writer(&mut self, now: Time, index: usize) {
        self.delivery.counters.writers_restarted += 1;
        self.read_again(now, index, WriterProxy::restart);
    }

    /// Changes the position in the samples of a writer. Drops what waits behind the old one: it is false, or will be
    /// sent again.
    fn read_again(&mut self, now: Time, index: usize, change: impl FnOnce(&mut WriterProxy)) {
        let proxy = &mut self.writers.list[index];
        let author = proxy.author();
        self.delivery.refused.remove(author.guid);
        drop_incomplete(proxy, &mut self.fragments, &mut self.delivery.cache);
        change(proxy);
        self.delivery.restart_sets(now, author, proxy.changes.expected);
        if !author.is_alive {
            // The samples that its instances waited for were dropped.
            self.leave_again(now, author.guid);
        }
    }
}
