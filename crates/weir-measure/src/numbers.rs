//! The sequence numbers of one sender: what is lost, duplicate or reordered, with the warm-up apart.

use weir_results::{Arrival, SequenceCounts, SequenceTracker};

/// Follows the numbers of one sender.
///
/// What arrives before [`Numbers::start_counting`] is warm-up. It is followed all the same: a reliable engine may lose
/// nothing there either.
#[derive(Debug)]
pub struct Numbers {
    tracker: SequenceTracker,
    /// The number after the highest one that arrived.
    expected: u64,
    /// Lower numbers belong to the warm-up.
    counted_from: u64,
    /// Follows late arrivals of the warm-up.
    warmup: SequenceTracker,
}

impl Numbers {
    /// Numbers from `first` on; none has arrived.
    #[must_use]
    pub fn starting_at(first: u64) -> Self {
        Self {
            tracker: SequenceTracker::starting_at(first),
            expected: first,
            counted_from: first,
            warmup: SequenceTracker::starting_at(0),
        }
    }

    /// The number after the highest one that arrived.
    #[must_use]
    #[inline]
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// The whole number behind the 32 bits that travelled.
    #[must_use]
    #[inline]
    pub fn extend(&self, number: u32) -> u64 {
        extend(self.expected, number)
    }

    /// Whether a number belongs to the warm-up.
    #[must_use]
    #[inline]
    pub fn is_warmup(&self, number: u64) -> bool {
        number < self.counted_from
    }

    /// A number arrived.
    #[inline]
    pub fn record(&mut self, number: u64) -> Arrival {
        if self.is_warmup(number) {
            return self.warmup.record(number);
        }
        let arrival = self.tracker.record(number);
        self.expected = self.expected.max(number.saturating_add(1));
        arrival
    }

    /// Ends the warm-up: numbers beyond the highest one so far are counted.
    pub fn start_counting(&mut self) {
        self.counted_from = self.expected;
        self.warmup = std::mem::replace(&mut self.tracker, SequenceTracker::starting_at(self.expected));
    }

    /// The sender sent the numbers below `sent`.
    pub fn finish(&mut self, sent: u64) {
        self.tracker.finish(sent);
    }

    /// Whether none of the counted numbers below `sent` is missing.
    #[must_use]
    pub fn has_all(&self, sent: u64) -> bool {
        self.expected >= sent && self.tracker.counts().lost == 0
    }

    /// Counts since the warm-up.
    #[must_use]
    pub fn counts(&self) -> SequenceCounts {
        self.tracker.counts()
    }

    /// Numbers that did not arrive during the warm-up.
    #[must_use]
    pub fn lost_in_warmup(&self) -> u64 {
        self.warmup.counts().lost
    }
}

/// The whole number whose low 32 bits are `number` and which is nearest to `expected`.
#[must_use]
#[inline]
pub fn extend(expected: u64, number: u32) -> u64 {
    let distance = number.wrapping_sub(expected as u32).cast_signed();
    // Below zero, before the very first numbers, is a forged one, which becomes huge.
    expected.wrapping_add_signed(i64::from(distance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_extended_across_the_wrap() {
        let wrap = 1 << 32;
        assert_eq!(extend(0, 0), 0);
        assert_eq!(extend(0, 3), 3);
        assert_eq!(extend(5, 3), 3);
        assert_eq!(extend(wrap - 1, u32::MAX), wrap - 1);
        assert_eq!(extend(wrap - 1, 1), wrap + 1);
        assert_eq!(extend(wrap, 0), wrap);
        assert_eq!(extend(wrap, u32::MAX - 1), wrap - 2);
        assert_eq!(extend(wrap - 2, 1), wrap + 1);
        assert_eq!(extend(wrap + 1, u32::MAX), wrap - 1);
        assert_eq!(extend(3 * wrap + 10, 12), 3 * wrap + 12);
    }

    #[test]
    fn late_numbers_of_the_warm_up_are_not_lost_and_in_no_count() {
        let mut numbers = Numbers::starting_at(0);
        let _ = [0, 2].map(|number| numbers.record(number));
        numbers.start_counting();
        assert_eq!(numbers.lost_in_warmup(), 1);
        assert_eq!([1, 3, 5, 3].map(|number| numbers.is_warmup(number)), [true, false, false, false]);
        let arrivals = [1, 3, 5, 3].map(|number| numbers.record(number));
        assert_eq!(arrivals[2..], [Arrival::AfterGap(1), Arrival::Duplicate]);
        assert!(!numbers.has_all(6));
        numbers.finish(6);
        let counts = numbers.counts();
        assert_eq!((counts.received, counts.duplicates, counts.lost), (2, 1, 1));
        assert_eq!(numbers.lost_in_warmup(), 0);
    }
}
