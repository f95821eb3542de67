//! Lost, duplicate and reordered samples of one writer, from its sequence numbers.
//!
//! Each number takes the same short time, and the memory is fixed: a bitmap records which of the
//! last 65 536 numbers arrived. A skipped number counts as lost at once; if it arrives within that
//! window, the loss becomes a reordering (as in RFC 4737).

use serde::{Deserialize, Serialize};

/// How many numbers back an arrival can be distinguished from a duplicate.
const WINDOW: u64 = 1 << 16;

/// The counts from the sequence numbers of one or several writers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SequenceCounts {
    /// Distinct samples that arrived, in any order.
    pub received: u64,
    /// Samples that did not arrive.
    pub lost: u64,
    /// Arrivals of a sample that had arrived before.
    pub duplicates: u64,
    /// Samples that arrived after a later one; they are also `received`.
    pub reordered: u64,
    /// Arrivals too old (65 536 numbers) to be classified as late or duplicate; they are in no
    /// other count.
    pub late: u64,
}

impl SequenceCounts {
    /// Adds the counts of another writer or subscriber.
    pub fn merge(&mut self, other: &Self) {
        self.received = self.received.saturating_add(other.received);
        self.lost = self.lost.saturating_add(other.lost);
        self.duplicates = self.duplicates.saturating_add(other.duplicates);
        self.reordered = self.reordered.saturating_add(other.reordered);
        self.late = self.late.saturating_add(other.late);
    }
}

/// The classification of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The number after the last one, or the very first.
    InOrder,
    /// A number beyond the next one: this many in between are missing for now.
    AfterGap(u64),
    /// A number that was missing.
    Reordered,
    /// A number that had arrived before.
    Duplicate,
    /// A number too old to classify.
    Late,
}

/// Tracks the sequence numbers of one writer.
#[derive(Debug, Clone)]
pub struct SequenceTracker {
    /// One bit per number of the window, at `number % WINDOW`.
    seen: Box<[u64]>,
    /// The start of counting; lower numbers were never counted as lost.
    first: Option<u64>,
    /// The highest number that arrived; `None` before the first arrival.
    highest: Option<u64>,
    counts: SequenceCounts,
}

impl SequenceTracker {
    /// Creates a tracker that starts at the first number to arrive: for a subscriber that joins a
    /// stream.
    #[must_use]
    pub fn new() -> Self {
        Self {
            seen: vec![0; (WINDOW / 64) as usize].into_boxed_slice(),
            first: None,
            highest: None,
            counts: SequenceCounts::default(),
        }
    }

    /// Creates a tracker that starts at `first`: numbers missing before the first arrival count as
    /// lost.
    #[must_use]
    pub fn starting_at(first: u64) -> Self {
        Self { first: Some(first), ..Self::new() }
    }

    /// Records the arrival of `number`.
    #[inline]
    pub fn record(&mut self, number: u64) -> Arrival {
        match self.highest {
            Some(highest) if number == highest.wrapping_add(1) && number != 0 => {
                self.highest = Some(number);
                self.mark(number);
                self.counts.received += 1;
                Arrival::InOrder
            }
            Some(highest) if number > highest => self.record_after_gap(number, number - highest - 1),
            Some(highest) => self.record_behind(number, highest),
            None => self.record_first(number),
        }
    }

    /// Counts all numbers between the highest arrival and `end` (exclusive) as lost.
    ///
    /// `end` comes from the writer. Call it once, after the last arrival.
    pub fn finish(&mut self, end: u64) {
        let first = self.first.unwrap_or(0);
        let next = self.highest.map_or(first, |highest| highest.saturating_add(1).max(first));
        self.counts.lost = self.counts.lost.saturating_add(end.saturating_sub(next));
    }

    /// Returns the counts so far.
    #[must_use]
    pub const fn counts(&self) -> SequenceCounts {
        self.counts
    }

    fn record_first(&mut self, number: u64) -> Arrival {
        let first = *self.first.get_or_insert(number);
        self.highest = Some(number);
        self.mark(number);
        self.counts.received += 1;
        // A number from before the agreed start is counted, but was never missing.
        let missing = number.saturating_sub(first);
        self.counts.lost = self.counts.lost.saturating_add(missing);
        if missing == 0 { Arrival::InOrder } else { Arrival::AfterGap(missing) }
    }

    #[cold]
    fn record_after_gap(&mut self, number: u64, missing: u64) -> Arrival {
        self.clear_gap(number, missing);
        self.highest = Some(number);
        self.mark(number);
        self.counts.received += 1;
        // Numbers below the agreed start are not missing, even after an earlier stray arrival.
        let expected_from = self.first.map_or(0, |first| number.saturating_sub(first));
        let lost = missing.min(expected_from);
        self.counts.lost = self.counts.lost.saturating_add(lost);
        Arrival::AfterGap(missing)
    }

    #[cold]
    fn record_behind(&mut self, number: u64, highest: u64) -> Arrival {
        if highest - number >= WINDOW {
            self.counts.late += 1;
            return Arrival::Late;
        }
        if self.is_marked(number) {
            self.counts.duplicates += 1;
            return Arrival::Duplicate;
        }
        self.mark(number);
        self.counts.received += 1;
        self.counts.reordered += 1;
        if self.first.is_some_and(|first| number >= first) {
            self.counts.lost = self.counts.lost.saturating_sub(1);
        }
        Arrival::Reordered
    }

    /// Clears the bits of the `missing` numbers before `number`, whose places belonged to older
    /// numbers.
    fn clear_gap(&mut self, number: u64, missing: u64) {
        if missing >= WINDOW {
            self.seen.fill(0);
            return;
        }
        for skipped in number - missing..number {
            let (word, bit) = place(skipped);
            self.seen[word] &= !bit;
        }
    }

    fn is_marked(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.seen[word] & bit != 0
    }

    #[inline]
    fn mark(&mut self, number: u64) {
        let (word, bit) = place(number);
        self.seen[word] |= bit;
    }
}

impl Default for SequenceTracker {
    fn default() -> Self {
        Self::new()
    }
}

#[inline]
const fn place(number: u64) -> (usize, u64) {
    let index = number % WINDOW;
    ((index / 64) as usize, 1 << (index % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(received: u64, lost: u64, duplicates: u64, reordered: u64, late: u64) -> SequenceCounts {
        SequenceCounts { received, lost, duplicates, reordered, late }
    }

    #[track_caller]
    fn check(first: Option<u64>, numbers: &[u64], expected: SequenceCounts) {
        let mut tracker = first.map_or_else(SequenceTracker::new, SequenceTracker::starting_at);
        for number in numbers {
            tracker.record(*number);
        }
        assert_eq!(tracker.counts(), expected, "{numbers:?}");
    }

    #[test]
    fn each_kind_of_arrival_is_counted_once() {
        check(None, &[], counts(0, 0, 0, 0, 0));
        check(None, &[5, 6, 7], counts(3, 0, 0, 0, 0));
        check(None, &[1, 2, 5], counts(3, 2, 0, 0, 0));
        check(None, &[1, 2, 2, 2], counts(2, 0, 2, 0, 0));
        check(None, &[1, 3, 2, 4], counts(4, 0, 0, 1, 0));
        check(None, &[1, 3, 2, 2, 3], counts(3, 0, 2, 1, 0));
        check(None, &[1, 5, 3], counts(3, 2, 0, 1, 0));
    }

    #[test]
    fn a_known_start_makes_the_missing_head_a_loss() {
        check(Some(0), &[3, 4], counts(2, 3, 0, 0, 0));
        check(Some(0), &[3, 0, 1, 2], counts(4, 0, 0, 3, 0));
        check(None, &[3, 4], counts(2, 0, 0, 0, 0));
    }

    #[test]
    fn numbers_before_the_start_are_never_missed() {
        // The tracker joined at 10; 8 was in flight.
        check(None, &[10, 8, 11], counts(3, 0, 0, 1, 0));
        // The agreed start is 100, but 90 arrives first.
        check(Some(100), &[90, 100, 101], counts(3, 0, 0, 0, 0));
        check(Some(100), &[90, 102], counts(2, 2, 0, 0, 0));
    }

    #[test]
    fn arrivals_say_what_they_are() {
        let mut tracker = SequenceTracker::new();
        let said: Vec<Arrival> = [1, 2, 5, 4, 4, 200_000, 6].iter().map(|n| tracker.record(*n)).collect();
        let expected = [
            Arrival::InOrder,
            Arrival::InOrder,
            Arrival::AfterGap(2),
            Arrival::Reordered,
            Arrival::Duplicate,
            Arrival::AfterGap(199_994),
            Arrival::Late,
        ];
        assert_eq!(said, expected);
        assert_eq!(tracker.highest, Some(200_000));
    }

    #[test]
    fn the_window_reaches_exactly_65536_numbers_back() {
        let mut tracker = SequenceTracker::starting_at(0);
        tracker.record(WINDOW);
        assert_eq!(tracker.record(1), Arrival::Reordered);
        assert_eq!(tracker.record(0), Arrival::Late);
        assert_eq!(tracker.counts(), counts(2, WINDOW - 1, 0, 1, 1));
    }

    #[test]
    fn a_long_gap_forgets_the_places_of_older_numbers() {
        let mut tracker = SequenceTracker::new();
        (0..100).for_each(|n| {
            tracker.record(n);
        });
        // The places of 0..100 are those of WINDOW..WINDOW + 100, which did not arrive.
        tracker.record(WINDOW + 150);
        assert_eq!(tracker.record(WINDOW + 50), Arrival::Reordered);
        tracker.record(WINDOW * 10);
        assert_eq!(tracker.record(WINDOW * 10 - 1), Arrival::Reordered);
        assert_eq!(tracker.record(WINDOW * 10 - 1), Arrival::Duplicate);
    }

    #[test]
    fn the_tail_is_lost_when_the_writer_went_further() {
        let mut tracker = SequenceTracker::starting_at(1);
        (1..=5).for_each(|n| {
            tracker.record(n);
        });
        tracker.finish(11);
        assert_eq!(tracker.counts(), counts(5, 5, 0, 0, 0));

        let mut silent = SequenceTracker::starting_at(1);
        silent.finish(11);
        assert_eq!(silent.counts(), counts(0, 10, 0, 0, 0));

        let mut strayed = SequenceTracker::starting_at(100);
        strayed.record(90);
        strayed.finish(110);
        assert_eq!(strayed.counts(), counts(1, 10, 0, 0, 0));
    }

    #[test]
    fn the_largest_numbers_neither_overflow_nor_panic() {
        let mut tracker = SequenceTracker::starting_at(0);
        for number in [u64::MAX, 0, u64::MAX, u64::MAX - 1] {
            tracker.record(number);
        }
        tracker.finish(u64::MAX);
        assert_eq!(tracker.counts(), counts(2, u64::MAX - 1, 1, 1, 1));
    }

    #[test]
    fn counts_of_writers_add_up() {
        let mut sum = counts(1, 2, 3, 4, 5);
        sum.merge(&counts(10, 20, 30, 40, u64::MAX));
        assert_eq!(sum, counts(11, 22, 33, 44, u64::MAX));
    }
}
