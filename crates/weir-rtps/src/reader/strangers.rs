//! Writers that were heard before they were matched.

use std::collections::VecDeque;

use weir_wire::{Guid, SequenceNumber};

use crate::config;

/// The first sample that came from each, of the last few.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    first: VecDeque<(Guid, SequenceNumber)>,
}

impl Strangers {
    /// A sample has come.
    pub(super) fn note(&mut self, writer: Guid, sn: SequenceNumber) {
        match self.first.iter_mut().find(|(known, _)| *known == writer) {
            Some((_, first)) => *first = sn.min(*first),
            None => {
                if self.first.len() >= config::STRANGERS_MAX {
                    self.first.pop_front();
                }
                self.first.push_back((writer, sn));
            }
        }
    }

    /// The first sample of a writer that is none any more.
    pub(super) fn forget(&mut self, writer: Guid) -> Option<SequenceNumber> {
        let index = self.first.iter().position(|(known, _)| *known == writer)?;
        self.first.remove(index).map(|(_, first)| first)
    }
}

#[cfg(test)]
mod tests {
    use weir_wire::{EntityId, GuidPrefix};

    use super::*;

    #[test]
    fn the_first_samples_of_the_last_strangers_are_known() {
        let writer = |number: u8| Guid::new(GuidPrefix([number; 12]), EntityId::PARTICIPANT);
        let mut strangers = Strangers::default();
        (0..=config::STRANGERS_MAX as u8)
            .for_each(|number| strangers.note(writer(number), SequenceNumber(7)));
        strangers.note(writer(1), SequenceNumber(9));
        strangers.note(writer(2), SequenceNumber(5));
        let mut first = |number| strangers.forget(writer(number)).map(|sn| sn.0);
        assert_eq!([first(0), first(1), first(2), first(2)], [None, Some(7), Some(5), None]);
    }
}
