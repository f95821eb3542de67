//! The numbers of samples in their groups, by which a reader accesses them in order (PRESENTATION with access scope
//! GROUP).

use alloc::collections::{BTreeMap, BTreeSet};

use weir_wire::{Guid, SequenceNumber};

/// A sample: its writer, and its number there.
pub(super) type SampleAt = (Guid, SequenceNumber);

/// The numbers of samples that are there or to come.
#[derive(Debug, Default)]
pub(super) struct GroupNumbers {
    /// The group of each sample, and its number there. The writer may have left since.
    numbers: BTreeMap<SampleAt, (Guid, SequenceNumber)>,
    /// How many were kept when they were last visited.
    kept: usize,
    /// Numbers visited to forget some.
    #[cfg(test)]
    pub(super) visited: usize,
}

impl GroupNumbers {
    /// Records the number of a sample.
    pub(super) fn insert(&mut self, at: SampleAt, group: Guid, number: SequenceNumber) {
        self.numbers.insert(at, (group, number));
    }

    /// The group of a sample, and its number there.
    pub(super) fn find(&self, at: SampleAt) -> Option<(Guid, SequenceNumber)> {
        self.numbers.get(&at).copied()
    }

    /// Whether [`GroupNumbers::retain`] is to be called, when so many samples are in the queue. That is rare: what it
    /// costs is shared by the samples since the last time.
    pub(super) fn are_many(&self, queued: usize) -> bool {
        self.numbers.len() > 2 * self.kept.max(queued) + NUMBERS_SPARE
    }

    /// Forgets the numbers of samples that were taken or left out. `there`: those that the application has not taken.
    /// `expected`: the next sample of a writer that is matched.
    pub(super) fn retain(
        &mut self,
        there: &BTreeSet<SampleAt>,
        expected: impl Fn(Guid) -> Option<SequenceNumber>,
    ) {
        #[cfg(test)]
        {
            self.visited += self.numbers.len();
        }
        let is_to_come = |at: &SampleAt| expected(at.0).is_some_and(|expected| at.1 >= expected);
        self.numbers.retain(|at, _| there.contains(at) || is_to_come(at));
        if self.numbers.len() > NUMBERS_MAX {
            self.numbers.retain(|at, _| there.contains(at));
        }
        self.kept = self.numbers.len();
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.numbers.len() * size_of::<[SampleAt; 2]>()
    }
}

/// Numbers of samples that may be gone, in addition to twice those that were there.
const NUMBERS_SPARE: usize = 1024;
/// Most numbers that are kept of samples that have not arrived.
const NUMBERS_MAX: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use weir_wire::GuidPrefix;

    use super::*;

    #[test]
    fn too_many_numbers_of_samples_to_come_replace_none_of_those_that_are_there() {
        let writer = Guid::new(GuidPrefix([1; 12]), weir_wire::EntityId::user_writer(1, false));
        let mut numbers = GroupNumbers::default();
        let at = |sn| (writer, SequenceNumber(sn));
        (1..=NUMBERS_MAX as i64 + 10).for_each(|sn| numbers.insert(at(sn), writer, SequenceNumber(sn)));
        assert!(numbers.are_many(5));
        numbers.retain(&(1..=5).map(at).collect(), |_| Some(SequenceNumber(9)));
        assert_eq!(numbers.find(at(5)), Some(at(5)));
        assert_eq!((numbers.numbers.len(), numbers.find(at(9))), (5, None));
    }
}
