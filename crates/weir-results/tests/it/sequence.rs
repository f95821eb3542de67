//! The sequence tracker compared with a slow and simple model.

use std::collections::BTreeSet;

use proptest::prelude::*;
use weir_results::{SequenceCounts, SequenceTracker};

/// Counts with a set of all arrivals, for streams that start at 0.
fn model(numbers: &[u64], end: u64) -> SequenceCounts {
    let mut counts = SequenceCounts::default();
    let mut seen = BTreeSet::new();
    for number in numbers {
        let behind = seen.last().is_some_and(|highest| number < highest);
        if seen.insert(*number) {
            counts.received += 1;
            counts.reordered += u64::from(behind);
        } else {
            counts.duplicates += 1;
        }
    }
    let expected = seen.last().map_or(0, |highest| highest + 1).max(end);
    counts.lost = expected - counts.received;
    counts
}

proptest! {
    #[test]
    fn counts_agree_with_the_model(numbers in prop::collection::vec(0_u64..3000, 0..600), end in 0_u64..4000) {
        let mut tracker = SequenceTracker::starting_at(0);
        for number in &numbers {
            tracker.record(*number);
        }
        tracker.finish(end);
        prop_assert_eq!(tracker.counts(), model(&numbers, end));
    }

    #[test]
    fn steps_across_the_window_agree_with_the_model(steps in prop::collection::vec(1_u64..70_000, 1..40)) {
        // Only increasing, so that no number is older than the window.
        let numbers: Vec<u64> = steps.iter().scan(0, |at, step| { *at += step; Some(*at) }).collect();
        let mut tracker = SequenceTracker::starting_at(0);
        for number in &numbers {
            tracker.record(*number);
            tracker.record(*number);
        }
        let doubled: Vec<u64> = numbers.iter().flat_map(|n| [*n, *n]).collect();
        prop_assert_eq!(tracker.counts(), model(&doubled, 0));
    }

    #[test]
    fn no_numbers_make_it_panic(numbers in prop::collection::vec(any::<u64>(), 0..50), first: Option<u64>, end: u64) {
        let mut tracker = first.map_or_else(SequenceTracker::new, SequenceTracker::starting_at);
        for number in &numbers {
            tracker.record(*number);
        }
        tracker.finish(end);
        let counts = tracker.counts();
        prop_assert_eq!(counts.received + counts.duplicates + counts.late, numbers.len() as u64);
    }
}
