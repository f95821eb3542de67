//! Samples from writers that are not matched yet.

use std::collections::VecDeque;

use weir_wire::{Guid, SequenceNumber};

use crate::config;

/// The lowest sequence number received from each of the last [`config::UNMATCHED_WRITERS_MAX`]
/// unmatched writers.
#[derive(Debug, Default)]
pub(super) struct UnmatchedWriters {
    first: VecDeque<(Guid, SequenceNumber)>,
}

impl UnmatchedWriters {
    /// Records a sample.
    pub(super) fn record(&mut self, writer: Guid, sn: SequenceNumber) {
        match self.first.iter_mut().find(|(known, _)| *known == writer) {
            Some((_, first)) => *first = sn.min(*first),
            None => {
                if self.first.len() >= config::UNMATCHED_WRITERS_MAX {
                    self.first.pop_front();
                }
                self.first.push_back((writer, sn));
            }
        }
    }

    /// Removes a writer. Returns the lowest sequence number received from it.
    pub(super) fn remove(&mut self, writer: Guid) -> Option<SequenceNumber> {
        let index = self.first.iter().position(|(known, _)| *known == writer)?;
        self.first.remove(index).map(|(_, first)| first)
    }
}

#[cfg(test)]
mod tests {
    use weir_wire::{EntityId, GuidPrefix};

    use super::*;

    #[test]
    fn the_lowest_sequence_numbers_of_the_last_unmatched_writers_are_known() {
        let writer = |number: u8| Guid::new(GuidPrefix([number; 12]), EntityId::PARTICIPANT);
        let mut unmatched = UnmatchedWriters::default();
        (0..=config::UNMATCHED_WRITERS_MAX as u8)
            .for_each(|number| unmatched.record(writer(number), SequenceNumber(7)));
        unmatched.record(writer(1), SequenceNumber(9));
        unmatched.record(writer(2), SequenceNumber(5));
        let mut first = |number| unmatched.remove(writer(number)).map(|sn| sn.0);
        assert_eq!([first(0), first(1), first(2), first(2)], [None, Some(7), Some(5), None]);
    }
}
