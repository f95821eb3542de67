//! When something is due for each remote participant.

use core::ops::Bound;

use weir_wire::GuidPrefix;

use crate::sorted_map::SortedMap;
use crate::time::Time;

/// One time per participant, in order.
///
/// A participant may be looked at too early, never too late: a message from it extends its lease without a change here,
/// and the look then sets the new time. So messages cost nothing, and no look goes through all participants.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    queue: SortedMap<(Time, GuidPrefix), ()>,
}

impl Deadlines {
    /// Reserves memory for so many participants.
    pub(super) fn with_room(participants: usize) -> Self {
        Self { queue: SortedMap::with_room(participants) }
    }

    /// Makes sure that a participant is looked at by `at`. `due_at` is the participant's place in the queue.
    pub(super) fn look_by(&mut self, prefix: GuidPrefix, due_at: &mut Time, at: Time) {
        if at < *due_at {
            self.queue.remove(&(*due_at, prefix));
            self.queue.insert((at, prefix), ());
            *due_at = at;
        }
    }

    /// Moves a participant's look to a later time.
    pub(super) fn postpone(&mut self, prefix: GuidPrefix, due_at: &mut Time, at: Time) {
        if at > *due_at && self.queue.remove(&(*due_at, prefix)).is_some() {
            self.queue.insert((at, prefix), ());
            *due_at = at;
        }
    }

    /// Returns the participants that are looked at by `at`.
    #[cfg(test)]
    fn until(&self, at: Time) -> impl Iterator<Item = GuidPrefix> + '_ {
        self.queue.keys().take_while(move |(due_at, _)| *due_at <= at).map(|(_, prefix)| *prefix)
    }

    /// Returns the first participant behind a place that is looked at by `at`, with its place.
    pub(super) fn first_after(&self, place: (Time, GuidPrefix), at: Time) -> Option<(Time, GuidPrefix)> {
        let mut behind = self.queue.range((Bound::Excluded(place), Bound::Unbounded));
        behind.next().map(|(place, ())| *place).filter(|(due_at, _)| *due_at <= at)
    }

    /// Removes a participant whose place is `due_at`.
    pub(super) fn remove(&mut self, prefix: GuidPrefix, due_at: Time) {
        self.queue.remove(&(due_at, prefix));
    }

    /// Takes the next participant that is due.
    pub(super) fn pop(&mut self, now: Time) -> Option<GuidPrefix> {
        self.next().filter(|at| *at <= now)?;
        self.queue.pop_first().map(|((_, prefix), ())| prefix)
    }

    /// Returns when the next look is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.queue.keys().next().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_moves_to_an_earlier_time_only() {
        let (mut deadlines, mut due_at) = (Deadlines::default(), Time::MAX);
        let prefix = GuidPrefix([1; 12]);
        deadlines.look_by(prefix, &mut due_at, Time(50));
        deadlines.look_by(prefix, &mut due_at, Time(70));
        assert_eq!((deadlines.next(), due_at), (Some(Time(50)), Time(50)));
        deadlines.look_by(prefix, &mut due_at, Time(20));
        assert_eq!((deadlines.pop(Time(19)), deadlines.pop(Time(20))), (None, Some(prefix)));
        assert_eq!(deadlines.next(), None);
    }

    #[test]
    fn a_look_is_postponed_to_a_later_time_only() {
        let (mut deadlines, mut due_at) = (Deadlines::default(), Time::MAX);
        let prefix = GuidPrefix([1; 12]);
        deadlines.look_by(prefix, &mut due_at, Time(50));
        deadlines.postpone(prefix, &mut due_at, Time(40));
        assert_eq!((deadlines.until(Time(49)).count(), deadlines.until(Time(50)).count()), (0, 1));
        deadlines.postpone(prefix, &mut due_at, Time(60));
        assert_eq!((deadlines.next(), due_at), (Some(Time(60)), Time(60)));
    }
}
