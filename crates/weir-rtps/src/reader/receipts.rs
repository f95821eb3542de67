//! Answers to best-effort writers that ask what has arrived, see [`Receipt`].

use weir_wire::{Guid, InfoDestination, Receipt, Received, SequenceNumber, push};

use super::ReaderCore;
use super::config::ReaderConfig;
use super::writer_proxy::WriterProxy;
use crate::outbox::Outbox;

/// What has arrived of a best-effort writer since it first asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Receipts {
    /// The number of a question that is to be answered.
    asked: Option<u32>,
    /// Samples that were skipped, or that arrived in fragments.
    others: u64,
    fragments: u32,
}

impl Receipts {
    pub(super) const NONE: Self = Self { asked: None, others: 0, fragments: 0 };

    /// Answers the last question, if there is one. `expected`: the sample behind the last that has arrived.
    fn answer(&mut self, expected: SequenceNumber) -> Option<(u32, Received)> {
        let samples = expected.0.cast_unsigned().wrapping_sub(self.others);
        Some((self.asked.take()?, Received { samples, fragments: self.fragments }))
    }
}

impl WriterProxy {
    /// Counts samples that were skipped, as lost ones are, or that have arrived in fragments.
    #[cold]
    pub(super) fn note_not_whole(&mut self, samples: u64) {
        if let Some(receipts) = self.receipts() {
            receipts.others = receipts.others.wrapping_add(samples);
        }
    }

    /// Counts a fragment.
    pub(super) fn note_fragment(&mut self) {
        if let Some(receipts) = self.receipts() {
            receipts.fragments = receipts.fragments.wrapping_add(1);
        }
    }

    fn receipts(&mut self) -> Option<&mut Receipts> {
        if self.is_reliable { None } else { Some(&mut self.trouble.changed()?.receipts) }
    }
}

impl ReaderCore {
    /// Handles the question of a best-effort writer what has arrived. The next transmission answers it.
    ///
    /// A reader with a limits table has no memory for it, and does not answer.
    pub fn handle_receipt(&mut self, writer: Guid, number: u32) {
        let Some(index) = self.find(writer).filter(|_| self.config.limits.is_none()) else { return };
        let proxy = &mut self.writers.list[index];
        if !proxy.is_reliable && proxy.is_weir() {
            proxy.trouble.receipts.asked = Some(number);
            self.due.add(index);
        }
    }
}

/// Answers a writer that has asked.
pub(super) fn answer(config: &ReaderConfig, proxy: &mut WriterProxy, out: &mut Outbox) {
    let expected = proxy.changes.expected;
    let Some((number, received)) = proxy.trouble.changed().and_then(|it| it.receipts.answer(expected)) else {
        return;
    };
    let (reader, writer) = (config.guid.entity, proxy.guid.entity);
    out.message(&proxy.destinations, |message| {
        push(message, &config.header());
        push(message, &InfoDestination { prefix: proxy.guid.prefix });
        push(message, &Receipt { reader, writer, number, received: Some(received) });
    });
}
