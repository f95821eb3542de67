//! Where a subscriber's samples end up: counted, followed by sequence number, and checked on request.

use weir_results::{SequenceCounts, SequenceTracker};

use crate::case::CaseSpec;
use crate::payload::{self, HEADER_BYTES};

/// Counts the samples of one publisher.
///
/// What arrives before [`SampleSink::start_counting`] is warm-up: it is followed all the same,
/// since a reliable engine may lose nothing there either.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::case;
    use weir_results::Test;

    const OCTETS: [u8; 4] = [0; 4];

    fn sink(verify: bool, instances: u32) -> SampleSink {
        SampleSink::new(&CaseSpec { verify, instances, ..case("mock", Test::Throughput) })
    }

    #[test]
    fn numbers_go_on_beyond_32_bits() {
        let mut sink = sink(false, 0);
        sink.expected = u64::from(u32::MAX);
        sink.start_counting();
        for seq_num in [u32::MAX, 0, 2, 1] {
            sink.accept(seq_num, [0; 4], &OCTETS);
        }
        sink.finish(u64::from(u32::MAX) + 6);
        let counts = sink.counts();
        assert_eq!((counts.received, counts.reordered, counts.lost, counts.duplicates), (4, 1, 2, 0));
    }

    #[test]
    fn late_samples_of_the_warm_up_are_in_no_count() {
        let mut sink = sink(false, 0);
        for seq_num in [0, 2] {
            sink.accept(seq_num, [0; 4], &OCTETS);
        }
        sink.start_counting();
        for seq_num in [1, 3, 3] {
            sink.accept(seq_num, [0; 4], &OCTETS);
        }
        assert!(sink.has_all(4) && !sink.has_all(5));
        sink.finish(4);
        let counts = sink.counts();
        assert_eq!((counts.received, counts.duplicates, counts.lost, sink.lost_in_warmup()), (1, 1, 0, 1));
        assert_eq!(sink.arrivals(), 5);
    }

    #[test]
    fn wrong_sizes_are_always_noticed_and_wrong_content_when_asked() {
        let mut trusting = sink(false, 0);
        trusting.accept(0, [9; 4], &[1, 2, 3, 4]);
        trusting.accept(1, [0; 4], &[0; 5]);
        assert_eq!(trusting.corrupt(), 1);
        let mut octets = OCTETS;
        payload::fill_octets(6, &mut octets);
        let mut verifying = sink(true, 4);
        verifying.accept(6, [2, 0, 0, 0], &octets);
        assert_eq!(verifying.corrupt(), 0);
        verifying.accept(6, [3, 0, 0, 0], &octets);
        verifying.accept(7, [3, 0, 0, 0], &octets);
        verifying.reject();
        assert_eq!(verifying.corrupt(), 3);
    }
}
