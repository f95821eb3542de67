//! When the samples of a reader expire (LIFESPAN, DDS 1.4, 2.2.3.16).
//!
//! Samples of writers with the same lifespan expire in the order in which they arrive, so that most are recorded in a
//! list. Only those that expire before one that arrived earlier are sorted.

use alloc::collections::{BinaryHeap, VecDeque};
use core::cmp::Reverse;

use crate::time::Time;

/// Samples that expire: the time, and their position in the queue of the cache. They may have been taken.
#[derive(Debug)]
pub(super) struct Expiring {
    /// In the order of the times.
    in_order: VecDeque<(Time, u64)>,
    /// Those that expire before one that was recorded earlier.
    early: BinaryHeap<Reverse<(Time, u64)>>,
    /// A time at or before that of the first: while samples are taken before they expire, it does not change with each.
    next_at: Time,
}

impl Default for Expiring {
    fn default() -> Self {
        Self { in_order: VecDeque::new(), early: BinaryHeap::new(), next_at: Time::MAX }
    }
}

impl Expiring {
    /// Records a sample. Returns whether [`Expiring::next_at`] is earlier than before.
    #[inline(always)]
    pub(super) fn add(&mut self, at: Time, position: u64) -> bool {
        if self.in_order.back().is_some_and(|(last, _)| *last > at) {
            self.early.push(Reverse((at, position)));
        } else {
            self.in_order.push_back((at, position));
        }
        let is_first = at < self.next_at;
        if is_first {
            self.next_at = at;
        }
        is_first
    }

    /// Whether [`Expiring::pop`] is to be called.
    #[inline]
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.next_at <= now
    }

    /// Takes the position of a sample that has expired.
    pub(super) fn pop(&mut self, now: Time) -> Option<u64> {
        let first = self.in_order.front().map(|(at, _)| *at);
        let early = self.early.peek().map(|Reverse((at, _))| *at);
        let next_at = first.into_iter().chain(early).min();
        if next_at.is_none_or(|at| at > now) {
            self.next_at = next_at.unwrap_or(Time::MAX);
            return None;
        }
        if early.is_some() && early == next_at {
            return self.early.pop().map(|Reverse((_, position))| position);
        }
        self.in_order.pop_front().map(|(_, position)| position)
    }

    /// Forgets samples before this position, as far as no other sample expires before them.
    #[inline(always)]
    pub(super) fn forget_before(&mut self, position: u64) {
        while self.in_order.front().is_some_and(|(_, of)| *of < position) {
            self.in_order.pop_front();
        }
        if !self.early.is_empty() {
            self.forget_early_before(position);
        }
    }

    #[cold]
    fn forget_early_before(&mut self, position: u64) {
        while self.early.peek().is_some_and(|Reverse((_, of))| *of < position) {
            self.early.pop();
        }
    }

    /// When the next sample expires, or earlier.
    pub(super) fn next_at(&self) -> Option<Time> {
        Some(self.next_at).filter(|at| *at < Time::MAX)
    }

    /// The samples have other positions. `None`: they are not there any more.
    pub(super) fn moved(&mut self, moved_to: impl Fn(u64) -> Option<u64>) {
        let to = |(at, position)| moved_to(position).map(|to| (at, to));
        self.in_order = core::mem::take(&mut self.in_order).into_iter().filter_map(to).collect();
        let early = core::mem::take(&mut self.early).into_iter();
        self.early = early.filter_map(|Reverse(sample)| to(sample).map(Reverse)).collect();
    }

    /// Number of samples recorded, whether they are still there or not.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.in_order.len() + self.early.len()
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        (self.in_order.capacity() + self.early.capacity()) * size_of::<(Time, u64)>()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn samples_expire_in_the_order_of_their_times_whatever_the_order_of_arrival() {
        let mut expiring = Expiring::default();
        let added = [(30, 1), (40, 2), (20, 3), (40, 4), (35, 5), (10, 6), (50, 7)];
        let is_first = added.map(|(at, position)| expiring.add(Time(at), position));
        assert_eq!(is_first, [true, false, true, false, false, true, false]);
        assert_eq!((expiring.next_at(), expiring.len()), (Some(Time(10)), 7));
        let mut pop_all = |now| core::iter::from_fn(|| expiring.pop(Time(now))).collect::<Vec<_>>();
        assert_eq!([pop_all(9), pop_all(10), pop_all(30)], [&[][..], &[6], &[3, 1]]);
        assert_eq!(pop_all(100), [5, 2, 4, 7]);
        assert_eq!(expiring.next_at(), None);
    }

    #[test]
    fn samples_that_were_taken_are_forgotten_and_the_others_keep_their_times() {
        let mut expiring = Expiring::default();
        for (at, position) in [(30, 1), (40, 2), (20, 3), (50, 4)] {
            expiring.add(Time(at), position);
        }
        expiring.forget_before(2);
        assert_eq!((expiring.next_at(), expiring.len()), (Some(Time(20)), 3));
        expiring.moved(|position| (position != 2).then_some(position - 2));
        assert_eq!((expiring.pop(Time(20)), expiring.pop(Time(49))), (Some(1), None));
        assert_eq!(expiring.next_at(), Some(Time(50)));
        assert_eq!(expiring.pop(Time(50)), Some(2));
    }
}
