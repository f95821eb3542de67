//! The first sample of a writer that is meant for the reader.

use weir_wire::{EntityId, Heartbeat, SequenceNumber};

/// What is known about the start of a writer's samples.
#[derive(Debug)]
pub(super) struct HistoryStart {
    /// Whether the writer has sent anything: its first sample if it is best effort, its first
    /// HEARTBEAT if it is reliable.
    pub(super) has_begun: bool,
    /// Whether samples before the lowest available one count as lost. They do once a sample was
    /// delivered, or a HEARTBEAT was addressed to a reader that wants history. The samples of any
    /// other HEARTBEAT may precede the match.
    pub(super) is_known: bool,
    /// The writer was matched before, is resumed where the reader stopped, and has named no sample
    /// since.
    pub(super) is_resumed: bool,
    /// The last sample in the first HEARTBEAT that was addressed to this reader alone.
    ///
    /// Fast DDS announces its history to volatile readers too. It answers a request for it with a
    /// GAP, which may arrive too late for samples that the writer has replaced in the meantime.
    /// Samples up to here do not count as lost.
    history_end: SequenceNumber,
    /// There is history up to this sample, which the writer sends unasked (`writer/late_joiners.rs`).
    history_to: SequenceNumber,
    /// The writer repairs samples from before the match, and the reader does not want them.
    pub(super) skips_history: bool,
    /// The first sample that arrived before the match. It was already sent to this participant.
    sent_from: SequenceNumber,
}

/// No sample is known.
const NONE: SequenceNumber = SequenceNumber(i64::MIN);

impl Default for HistoryStart {
    fn default() -> Self {
        Self {
            has_begun: false,
            is_known: false,
            is_resumed: false,
            history_end: NONE,
            history_to: NONE,
            skips_history: false,
            sent_from: NONE,
        }
    }
}

impl HistoryStart {
    /// The first sample that counts as lost if it is not available, when `next` is the next one to
    /// deliver.
    pub(super) fn lost_from(&self, next: SequenceNumber) -> Option<SequenceNumber> {
        let behind_history = known(self.history_end).map(SequenceNumber::next);
        let start = if self.is_known { Some(next) } else { behind_history };
        start.map(|start| start.max(next))
    }

    /// Records a HEARTBEAT. `wants_history`: samples from before the match are meant for the
    /// reader, too.
    pub(super) fn note(&mut self, heartbeat: &Heartbeat, wants_history: bool) {
        self.has_begun = true;
        if heartbeat.reader != EntityId::UNKNOWN {
            self.is_known |= wants_history;
            self.history_end = known(self.history_end).unwrap_or(heartbeat.last);
        }
    }

    /// Records a HEARTBEAT of a writer of this engine, if it only says how much history the writer will send. Returns
    /// whether it does: a final one for this reader alone, which follows another.
    pub(super) fn note_history(&mut self, heartbeat: &Heartbeat) -> bool {
        let is_for_one = heartbeat.reader != EntityId::UNKNOWN;
        let says_how_much = self.has_begun && is_for_one && heartbeat.is_final && !heartbeat.is_liveliness;
        if says_how_much {
            // The last one counts: one before may have been forged.
            self.history_to = heartbeat.last;
        }
        says_how_much
    }

    /// Whether history is to come, when `next` is the next sample to deliver.
    pub(super) fn awaits_history(&self, next: SequenceNumber) -> bool {
        next <= self.history_to
    }

    /// Whether this is the first HEARTBEAT to name a sample since the writer was resumed. An empty
    /// one does not say what was written: it defines where the samples of a volatile reader begin.
    pub(super) fn ends_resumption(&mut self, heartbeat: &Heartbeat) -> bool {
        let names_samples = heartbeat.first <= heartbeat.last;
        let is_first = self.is_resumed && names_samples;
        self.is_resumed &= !names_samples;
        is_first
    }

    /// The writer has restarted its sequence numbers.
    pub(super) fn restart(&mut self) {
        (self.is_known, self.history_end, self.sent_from) = (false, NONE, NONE);
        self.history_to = NONE;
    }

    /// The first sample that arrived before the match.
    pub(super) fn sent_from(&self) -> Option<SequenceNumber> {
        known(self.sent_from)
    }

    /// The writer repairs samples from before the match, which the reader does not want if `skips_history`. Sample
    /// `sent_from` arrived before.
    pub(super) fn set_history(&mut self, skips_history: bool, sent_from: Option<SequenceNumber>) {
        (self.skips_history, self.sent_from) = (skips_history, sent_from.unwrap_or(NONE));
    }
}

/// Without options: each of many proxies has two such numbers.
fn known(sn: SequenceNumber) -> Option<SequenceNumber> {
    (sn != NONE).then_some(sn)
}
