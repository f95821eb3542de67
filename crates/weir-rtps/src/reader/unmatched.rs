//! Writers that send before they are matched, and those whose first HEARTBEAT is awaited.

use weir_wire::{Guid, SequenceNumber};

use super::ReaderCore;

impl ReaderCore {
    /// Does not request the first HEARTBEAT of a writer on this host until something is missing. Call this between the
    /// match and the next transmission.
    ///
    /// Only writers of this engine that are reliable, have nothing for the reader from before the match, and were not
    /// matched before, are left out. Such a writer sends a HEARTBEAT at the match, unless it has
    /// [written nothing](crate::writer::WriterCore::spare_heartbeat). Once it has, it sends HEARTBEATs that say where
    /// the samples for this reader begin, until the reader has answered one. If the one at the match was lost, the next
    /// sample shows that something is missing before it.
    pub fn await_heartbeat(&mut self, writer: Guid) {
        let is_plain = !self.config.wants_history && self.delivery.cache.enforced.is_none();
        if is_plain
            && self.early_writers.remove(writer).is_none()
            && let Some(proxy) = self.writers.get_mut(writer).filter(|it| it.is_plain())
        {
            proxy.await_heartbeat();
        }
    }

    /// Records that a writer that is not matched has sent something.
    #[cold]
    pub(super) fn note_unmatched(&mut self, writer: Guid) {
        self.delivery.counters.unknown_writers += 1;
        if self.early_writers.get_mut(writer).is_none() {
            self.early_writers.add(writer, ());
        }
    }

    #[cold]
    pub(super) fn record_unmatched(&mut self, writer: Guid, sn: SequenceNumber) {
        self.note_unmatched(writer);
        if self.wants_unmatched() {
            match self.unmatched.get_mut(writer) {
                Some(first) => *first = sn.min(*first),
                None => _ = self.unmatched.add(writer, sn),
            }
        }
    }
}
