//! Where a subscriber's samples end up: counted, followed by sequence number, and checked on request.

use weir_results::{SequenceCounts, SequenceTracker};

use crate::case::CaseSpec;
use crate::payload::{self, HEADER_BYTES};

/// Counts the samples of one publisher.
///
/// What arrives before [`SampleSink::start_counting`] is warm-up: it is followed all the same, since a reliable engine may lose
/// nothing there either.
#[derive(Debug)]
pub struct SampleSink {
    tracker: SequenceTracker,
    /// The number that the tracker expects next: extends the 32 bits on the wire.
    expected: u64,
    /// Samples below it belong to the warm-up.
    counted_from: u64,
    /// Arrivals since the sink was made, of any kind.
    arrivals: u64,
    /// Lost during the warm-up.
    lost_in_warmup: u64,
    size_bytes: usize,
    instances: u32,
    verify: bool,
    corrupt: u64,
}

impl SampleSink {
    /// A sink for the samples of `case`, numbered from 0.
    #[must_use]
    pub fn new(case: &CaseSpec) -> Self {
        Self {
            tracker: SequenceTracker::starting_at(0),
            expected: 0,
            counted_from: 0,
            arrivals: 0,
            lost_in_warmup: 0,
            size_bytes: case.size_bytes,
            instances: case.instances,
            verify: case.verify,
            corrupt: 0,
        }
    }

    /// Takes one sample. A wrong size is always noticed; key and octets are compared with `--verify` only.
    #[inline]
    pub fn accept(&mut self, seq_num: u32, key: [u8; 4], octets: &[u8]) {
        self.arrivals += 1;
        if octets.len() + HEADER_BYTES != self.size_bytes
            || (self.verify && !self.is_genuine(seq_num, key, octets))
        {
            self.corrupt += 1;
            return;
        }
        let sequence = payload::extend_sequence(self.expected, seq_num);
        if sequence < self.counted_from {
            return;
        }
        self.tracker.record(sequence);
        self.expected = self.expected.max(sequence.wrapping_add(1));
    }

    /// Counts a sample that could not even be read.
    #[inline]
    pub fn reject(&mut self) {
        self.arrivals += 1;
        self.corrupt += 1;
    }

    /// Ends the warm-up: everything beyond the highest number so far is counted from here on.
    pub fn start_counting(&mut self) {
        self.lost_in_warmup = self.tracker.counts().lost;
        self.counted_from = self.expected;
        self.tracker = SequenceTracker::starting_at(self.expected);
    }

    /// Ends the count: the publisher sent the numbers `0..sent`.
    pub fn finish(&mut self, sent: u64) {
        self.tracker.finish(sent);
    }

    /// The counts since the warm-up.
    #[must_use]
    pub fn counts(&self) -> SequenceCounts {
        self.tracker.counts()
    }

    /// Samples that did not arrive during the warm-up.
    #[must_use]
    pub fn lost_in_warmup(&self) -> u64 {
        self.lost_in_warmup
    }

    /// Samples of the wrong size, and with `--verify` of the wrong content.
    #[must_use]
    pub fn corrupt(&self) -> u64 {
        self.corrupt
    }

    /// Everything that arrived since the sink was made.
    #[must_use]
    #[inline]
    pub fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// True when nothing is missing of the numbers `0..sent` since the warm-up.
    #[must_use]
    pub fn has_all(&self, sent: u64) -> bool {
        self.expected >= sent && self.tracker.counts().lost == 0
    }

    fn is_genuine(&self, seq_num: u32, key: [u8; 4], octets: &[u8]) -> bool {
        let sequence = payload::extend_sequence(self.expected, seq_num);
        key == payload::key_of(sequence, self.instances) && payload::octets_match(seq_num, octets)
    }
}
