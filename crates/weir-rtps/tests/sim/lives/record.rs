//! What the reader's application got, and what it was promised.

use weir_rtps::qos::History;

use super::pair::{Outcome, Pair};

/// Samples by number, from 1.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub(super) written: u64,
    /// Samples written before the writer matched the reader the last time.
    pub(super) written_at_match: u64,
    taken: Vec<u64>,
    /// Samples written before the reader matched the writer the last time.
    written_before: u64,
    /// Later samples that were left out between others taken since then.
    skipped: u64,
    /// Whether a later sample was taken.
    has_begun: bool,
    /// Samples reported lost until then.
    lost_before: u64,
}

impl Record {
    /// The reader has matched the writer, and has reported so many samples as lost.
    pub(super) fn begin_epoch(&mut self, lost: u64) {
        (self.written_before, self.skipped, self.lost_before) = (self.written, 0, lost);
        self.has_begun = false;
    }

    /// The application has taken a sample.
    pub(super) fn take(&mut self, number: u64) -> Outcome {
        let last = self.taken.last().copied().unwrap_or(0);
        if number <= last {
            return Err(format!("sample {number} was delivered after sample {last}"));
        }
        if self.has_begun {
            self.skipped += (number - 1).saturating_sub(last.max(self.written_before));
        }
        // One from before then may have been in flight while neither side knew the other.
        self.has_begun |= number > self.written_before;
        self.taken.push(number);
        Ok(())
    }

    pub(super) fn has(&self, number: u64) -> bool {
        self.taken.contains(&number)
    }

    fn is_missing(&self, from: u64) -> Option<u64> {
        (from.max(1)..=self.written).find(|number| !self.has(*number))
    }
}

impl Pair {
    /// Checks what is promised once both ends have matched and the network has lost nothing for a
    /// while.
    ///
    /// A reliable reader has everything that is meant for it: with TRANSIENT_LOCAL whatever the
    /// writer keeps, else what was written since the writer matched the reader. Of what came
    /// before, but after the reader had matched the writer, it has reported as lost what it left out
    /// between other samples.
    pub(super) fn check(&self) -> Outcome {
        let record = &self.record;
        let lost = self.lost() - record.lost_before;
        let replaced = match self.policies.history {
            History::KeepAll => 0,
            History::KeepLast(depth) => record.written.saturating_sub(depth.into()),
        };
        let of_others = if self.policies.are_durable() { 0 } else { record.written_at_match };
        if self.policies.are_reliable()
            && let Some(missing) = record.is_missing(replaced.max(of_others) + 1)
        {
            return Err(format!("sample {missing} of {} never arrived", record.written));
        }
        if self.policies.history != History::KeepAll {
            return Ok(());
        }
        if record.skipped > lost {
            return Err(format!("{} samples were left out and {lost} reported lost", record.skipped));
        }
        if self.policies.are_reliable() && self.policies.are_durable() && lost > 0 {
            return Err(format!("{lost} samples were reported lost that the writer keeps"));
        }
        Ok(())
    }
}
