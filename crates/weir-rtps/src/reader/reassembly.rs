//! Bounds on the samples that a reader puts together from fragments, and what happens to a sample beyond them.

use weir_wire::{Gap, SequenceNumber, SequenceNumberSet};

use super::ReaderCore;
use crate::config;

/// How much of what arrives in fragments a reader takes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReassemblyLimits {
    /// Largest sample, in bytes. A reliable reader passes over a longer one as if the writer had sent a GAP.
    pub sample_max_bytes: usize,
    /// Bytes of all incomplete samples, and half as many of one writer; at most [`config::REASSEMBLY_MAX_BYTES`].
    pub max_bytes: usize,
}

impl Default for ReassemblyLimits {
    /// The limits for user data.
    fn default() -> Self {
        Self { sample_max_bytes: config::SAMPLE_MAX_BYTES, max_bytes: config::REASSEMBLY_MAX_BYTES }
    }
}

impl ReaderCore {
    /// Gives up a sample that is too long to be put together. Asking for it again would not help, and later samples
    /// must not wait for it.
    #[cold]
    pub(super) fn pass_over(&mut self, index: usize, sn: SequenceNumber) {
        let Some(proxy) = self.proxies.get_mut(index).filter(|proxy| proxy.is_reliable) else {
            self.counters.fragments_refused += 1;
            return;
        };
        self.counters.samples_oversized += 1;
        self.counters.samples_lost = self.counters.samples_lost.saturating_add(1);
        let gap = Gap {
            reader: self.config.guid.entity,
            writer: proxy.guid.entity,
            start: sn,
            list: SequenceNumberSet::new(sn.next()),
        };
        proxy.gap(&gap, &mut self.listed);
        self.is_answer_due = true;
        self.deliver_held(index);
    }
}
