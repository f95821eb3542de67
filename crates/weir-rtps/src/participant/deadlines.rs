//! When something is due for each remote participant.

use alloc::collections::BTreeSet;

use weir_wire::GuidPrefix;

use crate::time::Time;

/// One time per participant, in order.
///
/// A participant may be looked at too early, never too late: a message from it extends its lease without a change here,
/// and the look then sets the new time. So messages cost nothing, and no look goes through all participants.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    queue: BTreeSet<(Time, GuidPrefix)>,
}

impl Deadlines {
    /// Makes sure that a participant is looked at by `at`. `due_at` is the participant's place in the queue.
    pub(super) fn look_by(&mut self, prefix: GuidPrefix, due_at: &mut Time, at: Time) {
        if at < *due_at {
            self.queue.remove(&(*due_at, prefix));
            self.queue.insert((at, prefix));
            *due_at = at;
        }
    }

    /// Moves a participant's look to a later time.
    pub(super) fn postpone(&mut self, prefix: GuidPrefix, due_at: &mut Time, at: Time) {
        if at > *due_at && self.queue.remove(&(*due_at, prefix)) {
            self.queue.insert((at, prefix));
            *due_at = at;
        }
    }

    /// Returns the participants that are looked at by `at`.
    pub(super) fn until(&self, at: Time) -> impl Iterator<Item = GuidPrefix> + '_ {
        self.queue.iter().take_while(move |(due_at, _)| *due_at <= at).map(|(_, prefix)| *prefix)
    }

    /// Removes a participant whose place is `due_at`.
    pub(super) fn remove(&mut self, prefix: GuidPrefix, due_at: Time) {
        self.queue.remove(&(due_at, prefix));
    }

    /// Takes the next participant that is due.
    pub(super) fn pop(&mut self, now: Time) -> Option<GuidPrefix> {
        let first = self.queue.first().filter(|(at, _)| *at <= now).copied()?;
        self.queue.remove(&first);
        Some(first.1)
    }

    /// Returns when the next look is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.queue.first().map(|(at, _)| *at)
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
