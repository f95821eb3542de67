//! Answers to best-effort writers that ask what has arrived, see [`Receipt`].

use weir_wire::{Guid, InfoDestination, Receipt, Received, SequenceNumber, push};

use super::ReaderCore;
use super::config::ReaderConfig;
use super::writer_proxy::WriterProxy;
use crate::outbox::Outbox;
use crate::receiver::submessages::Moment;
use crate::time::Time;

/// What has arrived of a best-effort writer since it first asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Receipts {
    /// A question that is to be answered.
    asked: Option<Asked>,
    /// Samples that were skipped, or that arrived in fragments.
    others: u64,
    fragments: u32,
}

/// A question of a writer.
#[derive(Debug, Clone, Copy)]
struct Asked {
    number: u32,
    /// When it reached the host.
    at: Time,
    /// Datagrams that the host has dropped.
    drops: u32,
}

impl Receipts {
    pub(super) const NONE: Self = Self { asked: None, others: 0, fragments: 0 };

    /// Answers the last question, if there is one. `expected`: the sample behind the last that has arrived.
    fn answer(&mut self, now: impl FnOnce() -> Time, expected: SequenceNumber) -> Option<(u32, Received)> {
        let Asked { number, at, drops } = self.asked.take()?;
        let samples = expected.0.cast_unsigned().wrapping_sub(self.others);
        let held_ns = u32::try_from(now().nanos_since(at)).unwrap_or(u32::MAX);
        Some((number, Received { samples, fragments: self.fragments, drops, held_ns }))
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
    pub(crate) fn handle_receipt(&mut self, moment: Moment, writer: Guid, number: u32) {
        let Some(index) = self.find(writer).filter(|_| self.config.limits.is_none()) else { return };
        let proxy = &mut self.writers.list[index];
        if !proxy.is_reliable && proxy.is_weir() {
            let drops = moment.arrival.map_or(0, |it| it.drops);
            proxy.trouble.receipts.asked = Some(Asked { number, at: moment.arrived(), drops });
            self.due.add(index);
        }
    }
}

/// Answers a writer that has asked.
pub(super) fn answer(now: Time, config: &ReaderConfig, proxy: &mut WriterProxy, out: &mut Outbox) {
    let expected = proxy.changes.expected;
    // The rest of a batch may have taken long.
    let now = || config.clock.map_or(now, |clock| clock());
    let Some((number, received)) = proxy.trouble.changed().and_then(|it| it.receipts.answer(now, expected))
    else {
        return;
    };
    let (reader, writer) = (config.guid.entity, proxy.guid.entity);
    out.message(&proxy.destinations, |message| {
        push(message, &config.header());
        push(message, &InfoDestination { prefix: proxy.guid.prefix });
        push(message, &Receipt { reader, writer, number, received: Some(received) });
    });
}
