//! The samples of one writer as the reader sees them (`changes_from_writer`, RTPS 2.5, 8.4.10.4).

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use weir_wire::{Gap, SequenceNumber};

use super::entries::cost;
use super::stored::StoredSample;
use crate::config;
use crate::key_hasher::Key;
use crate::on_demand::{Idle, OnDemand};
use crate::time::Time;

/// A sample that is not delivered yet.
#[derive(Debug)]
pub(super) enum Change {
    /// When it was last requested, and how many times.
    Missing { asked_at: Time, tries: u8 },
    /// It waits for earlier samples.
    Held(StoredSample),
    /// The writer will not send it, and it does not count as lost.
    Irrelevant,
}

/// What delivery may do next with the samples that are held back.
pub(super) enum NextHeld {
    /// This sample is next.
    Deliver(SequenceNumber, StoredSample),
    /// The next sample is there, and the cache has no room for it.
    NoRoom,
    /// The next sample has not arrived.
    None,
}

/// The position in a writer's samples, and what is known about those behind it.
#[derive(Debug)]
pub(super) struct ChangesFromWriter {
    /// The next sample to deliver.
    pub(super) expected: SequenceNumber,
    /// Earlier samples are not waited for: the writer does not have them any more.
    pub(super) floor: SequenceNumber,
    /// The last sample that the writer has announced.
    pub(super) announced: SequenceNumber,
    /// `list[i]` is sample `expected + i`.
    pub(super) list: VecDeque<Change>,
    /// What HEARTBEATs say against others.
    doubts: OnDemand<Doubts>,
    /// Number of samples that may be listed.
    most: u32,
    /// Memory for them was reserved.
    pub(super) is_reserved: bool,
    /// Listed samples that GAPs have visited.
    #[cfg(test)]
    pub(super) visited: usize,
}

/// What HEARTBEATs say against others.
#[derive(Debug)]
pub(super) struct Doubts {
    /// Since when they have announced less.
    overstated_since: Option<Time>,
    /// The last time that samples were skipped as unavailable.
    leap: Option<Leap>,
}

impl Idle for Doubts {
    const IDLE: Self = Self { overstated_since: None, leap: None };

    fn idle() -> &'static Self {
        static IDLE: Doubts = Doubts::IDLE;
        &IDLE
    }
}

/// Samples that were skipped because the writer does not have them any more, by its own account or in its name.
#[derive(Debug, Clone, Copy)]
struct Leap {
    /// The first of them.
    from: SequenceNumber,
    /// The sample behind the last.
    to: SequenceNumber,
    /// Since when HEARTBEATs have said that the writer has not come so far.
    refuted_since: Option<Time>,
}

impl ChangesFromWriter {
    /// Returns the memory of the list if nothing is listed, unless it is reserved.
    pub(super) fn release_room(&mut self, listed: &mut usize) {
        if self.list.is_empty() {
            let before = self.list.capacity();
            self.free_list();
            *listed = listed.saturating_sub(before - self.list.capacity());
        }
    }

    /// Expects the sample `first`, and none before it.
    pub(super) fn from(first: SequenceNumber) -> Self {
        Self {
            expected: first,
            floor: first,
            announced: first.prev(),
            list: VecDeque::new(),
            doubts: OnDemand::default(),
            most: config::REORDER_MAX_SAMPLES as u32,
            is_reserved: false,
            #[cfg(test)]
            visited: 0,
        }
    }

    /// Whether a sample is there already, or irrelevant. It is not before `expected`.
    pub(super) fn has(&self, sn: SequenceNumber) -> bool {
        matches!(self.list.get(self.offset(sn)), Some(Change::Held(_) | Change::Irrelevant))
    }

    /// Stores a sample that is ahead. Returns what it was before, or `None` if it is too far ahead.
    pub(super) fn hold(
        &mut self,
        sn: SequenceNumber,
        stored: StoredSample,
        listed: &mut usize,
    ) -> Option<Change> {
        let offset = self.offset(sn);
        if offset >= self.reach(*listed) {
            return None;
        }
        self.extend_to(offset + 1, listed);
        Some(core::mem::replace(&mut self.list[offset], Change::Held(stored)))
    }

    /// Whether a sample is near enough to be held back.
    pub(super) fn is_within_reach(&self, sn: SequenceNumber, listed: usize) -> bool {
        self.offset(sn) < self.reach(listed)
    }

    /// Number of samples behind the next one that may be listed, when the lists of all writers have
    /// the capacity `listed`.
    pub(super) fn reach(&self, listed: usize) -> usize {
        if self.is_reserved || listed < config::REORDER_SHARED_SAMPLES {
            self.most as usize
        } else {
            self.list.len().max(config::REORDER_MIN_SAMPLES)
        }
    }

    /// Removes the next sample to deliver among those held back, if it is there and `has_room`.
    /// Skips samples that will not arrive.
    pub(super) fn next_held(&mut self, mut has_room: impl FnMut(&StoredSample) -> bool) -> NextHeld {
        loop {
            match self.list.front() {
                Some(Change::Held(stored)) if !has_room(stored) => return NextHeld::NoRoom,
                Some(Change::Held(stored)) => {
                    let (sn, stored) = (self.expected, *stored);
                    self.advance();
                    return NextHeld::Deliver(sn, stored);
                }
                Some(Change::Irrelevant) => self.advance(),
                Some(Change::Missing { .. }) if self.expected < self.floor => {
                    self.list.pop_front();
                    self.leap_to(self.expected.next());
                }
                Some(Change::Missing { .. }) => return NextHeld::None,
                None => {
                    if self.expected < self.floor {
                        self.leap_to(self.floor);
                    }
                    return NextHeld::None;
                }
            }
        }
    }

    /// Skips the samples before `to`, none of which is there.
    fn leap_to(&mut self, to: SequenceNumber) {
        let from = self.last_leap().map_or(self.expected, |leap| leap.from);
        self.doubts.leap = Some(Leap { from, to, refuted_since: None });
        self.expected = to;
    }

    /// The leap behind which nothing has arrived in turn.
    fn last_leap(&self) -> Option<Leap> {
        self.doubts.leap.filter(|leap| leap.to == self.expected)
    }

    /// Records the last sample that a HEARTBEAT announces. Returns the first sample skipped, if the writer has said for
    /// [`config::COUNT_TRUST`] that it has not come so far, and the next sample has not arrived: the HEARTBEAT or GAP
    /// that caused the leap was false, and samples held back behind it are.
    pub(super) fn refuted_leap(&mut self, now: Time, last: SequenceNumber) -> Option<SequenceNumber> {
        let mut leap = self.last_leap()?;
        let since = (last.next() < leap.to).then(|| leap.refuted_since.unwrap_or(now));
        leap.refuted_since = since;
        self.doubts.leap = Some(leap);
        (now.since(since?) >= config::COUNT_TRUST).then_some(leap.from)
    }

    /// Records a sample before the expected one, of a best-effort writer. Returns whether it is to be followed: for
    /// [`config::COUNT_TRUST`] such samples have arrived, one after the other, and none behind them. The number that
    /// led so far ahead was false.
    pub(super) fn follows_back(&mut self, now: Time, sn: SequenceNumber) -> bool {
        // What a late joiner is sent again reaches other readers, too, and is not that far behind.
        if self.expected.0 - sn.0 < FAR {
            return false;
        }
        let leap = self.last_leap();
        if leap.is_some_and(|leap| sn < leap.from) {
            return false;
        }
        let since = leap.and_then(|leap| leap.refuted_since).unwrap_or(now);
        self.doubts.leap = Some(Leap { from: sn.next(), to: self.expected, refuted_since: Some(since) });
        let is_refuted = now.since(since) >= config::COUNT_TRUST;
        if is_refuted {
            self.restart(sn.next());
        }
        is_refuted
    }

    /// Records the last sample that a HEARTBEAT announces. If HEARTBEATs have announced less for
    /// [`config::COUNT_TRUST`] than one before, that one was false. Returns whether it was.
    pub(super) fn announce(&mut self, now: Time, last: SequenceNumber) -> bool {
        if last >= self.announced {
            self.announced = last;
            if let Some(doubts) = self.doubts.changed() {
                doubts.overstated_since = None;
            }
            return false;
        }
        let since = *self.doubts.overstated_since.get_or_insert(now);
        if now.since(since) < config::COUNT_TRUST {
            return false;
        }
        (self.announced, self.doubts.overstated_since) = (last, None);
        let known = self.offset(last.next().max(self.expected));
        while self.list.len() > known && matches!(self.list.back(), Some(Change::Missing { .. })) {
            self.list.pop_back();
        }
        true
    }

    /// The next sample to deliver, before a leap that HEARTBEATs refute.
    pub(super) fn position(&self) -> SequenceNumber {
        let leap = self.last_leap().filter(|leap| leap.refuted_since.is_some());
        leap.map_or(self.expected, |leap| leap.from)
    }

    /// Moves on to the next sample.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.list.pop_front();
        self.expected = self.expected.next();
    }

    /// The first sample that is held back.
    pub(super) fn first_held(&self) -> Option<SequenceNumber> {
        let offset = self.list.iter().position(|change| matches!(change, Change::Held(_)))?;
        Some(SequenceNumber(self.expected.0 + offset as i64))
    }

    /// Number of samples from `start` to before `end` that are missing.
    pub(super) fn missing_between(&self, start: SequenceNumber, end: SequenceNumber) -> u64 {
        let known = self.list.iter().take(self.offset(end)).skip(self.offset(start));
        let there = known.filter(|change| !matches!(change, Change::Missing { .. })).count();
        ((end.0 - start.0) as u64).saturating_sub(there as u64)
    }

    /// Marks the samples of a GAP as irrelevant, if at most `visits` of them are listed. Returns whether it does.
    pub(super) fn gap(&mut self, gap: &Gap, listed: &mut usize, visits: &mut usize) -> bool {
        let end = gap.list.base();
        if gap.start <= self.expected {
            self.floor = self.floor.max(end);
        } else if !self.mark_irrelevant(gap.start, end, listed, visits) {
            return false;
        }
        gap.list.iter().all(|sn| self.mark_irrelevant(sn, sn.next(), listed, visits))
    }

    fn mark_irrelevant(
        &mut self,
        from: SequenceNumber,
        to: SequenceNumber,
        listed: &mut usize,
        visits: &mut usize,
    ) -> bool {
        let from = self.offset(from.max(self.expected));
        let to = self.offset(to.max(self.expected)).min(self.reach(*listed));
        let Some(left) = visits.checked_sub(to.saturating_sub(from)) else { return false };
        *visits = left;
        self.extend_to(to, listed);
        #[cfg(test)]
        {
            self.visited += to.saturating_sub(from);
        }
        for change in self.list.range_mut(from.min(to)..to) {
            if matches!(change, Change::Missing { .. }) {
                *change = Change::Irrelevant;
            }
        }
        true
    }

    /// Lists at least `len` samples. New ones are missing and were never requested.
    pub(super) fn extend_to(&mut self, len: usize, listed: &mut usize) {
        if self.list.len() >= len {
            return;
        }
        let before = self.list.capacity();
        // A deque that chooses its own capacity may take twice as much as can ever be listed.
        self.list.reserve_exact(len.next_power_of_two() - self.list.len());
        self.list.resize_with(len, || Change::Missing { asked_at: Time::ZERO, tries: 0 });
        *listed += self.list.capacity() - before;
    }

    /// Distance of a sample from `expected`; the sample is not before that.
    #[inline]
    pub(super) fn offset(&self, sn: SequenceNumber) -> usize {
        usize::try_from(sn.0.saturating_sub(self.expected.0)).unwrap_or(usize::MAX)
    }

    /// Returns the last one of each run of samples that have not arrived, of those from `start` on and before `end`.
    pub(super) fn ends_of_missing(
        &self,
        start: SequenceNumber,
        end: SequenceNumber,
    ) -> impl Iterator<Item = SequenceNumber> {
        let is_missing = move |sn: i64| {
            let change = self.list.get(self.offset(SequenceNumber(sn)));
            sn < end.0 && matches!(change, None | Some(Change::Missing { .. }))
        };
        let known_to = end.0.min(self.expected.0.saturating_add(self.list.len() as i64));
        let tail = (start.0.max(known_to) < end.0).then(|| end.prev());
        let known = (start.0..known_to).filter(move |sn| is_missing(*sn) && !is_missing(sn + 1));
        known.map(SequenceNumber).chain(tail)
    }

    /// The samples from `from` on that wait for nothing but room, and their keys: up to the first that is missing.
    pub(super) fn deliverable_from(
        &self,
        from: SequenceNumber,
    ) -> impl Iterator<Item = (SequenceNumber, Option<Key>)> + '_ {
        let from = from.max(self.expected);
        let rest = self.list.range(self.offset(from).min(self.list.len())..);
        let numbers = core::iter::successors(Some(from), |sn| Some(sn.next()));
        let is_there =
            |(sn, change): &(_, &Change)| *sn < self.floor || !matches!(change, Change::Missing { .. });
        numbers.zip(rest).take_while(is_there).filter_map(|(sn, change)| match change {
            Change::Held(stored) => Some((sn, stored.key())),
            Change::Missing { .. } | Change::Irrelevant => None,
        })
    }

    /// The samples that are held back.
    pub(super) fn held_mut(&mut self) -> impl Iterator<Item = &mut StoredSample> {
        self.list.iter_mut().filter_map(|change| match change {
            Change::Held(stored) => Some(stored),
            Change::Missing { .. } | Change::Irrelevant => None,
        })
    }

    /// Removes the samples that are held back.
    pub(super) fn take_held(&mut self) -> impl Iterator<Item = StoredSample> + '_ {
        self.list.drain(..).filter_map(|change| match change {
            Change::Held(stored) => Some(stored),
            Change::Missing { .. } | Change::Irrelevant => None,
        })
    }

    /// Returns memory that the list does not need now.
    pub(super) fn shrink(&mut self) {
        if !self.is_reserved {
            self.list.shrink_to(self.list.len().next_power_of_two());
        }
    }

    /// Returns the memory of an empty list, unless it was reserved.
    pub(super) fn free_list(&mut self) {
        if !self.is_reserved {
            self.list = VecDeque::new();
        }
    }

    /// Expects the sample `first` next, and keeps memory that was reserved.
    pub(super) fn restart(&mut self, first: SequenceNumber) {
        let mut list = core::mem::take(&mut self.list);
        list.clear();
        let list = if self.is_reserved { list } else { VecDeque::new() };
        let mut doubts = core::mem::take(&mut self.doubts);
        doubts.changed().into_iter().for_each(|doubts| *doubts = Doubts::IDLE);
        let (most, is_reserved) = (self.most, self.is_reserved);
        *self = Self { list, doubts, most, is_reserved, ..Self::from(first) };
    }

    /// Lists no more samples than a cache of so many bytes could hold, or as few as 8192.
    pub(super) fn limit_to(&mut self, max_bytes: usize) {
        let most = (max_bytes / cost(0)).clamp(config::REORDER_LEAST_SAMPLES, config::REORDER_MAX_SAMPLES);
        self.most = most as u32;
    }

    /// Uses memory for so many samples.
    pub(super) fn use_memory(&mut self, list: VecDeque<Change>, mut doubts: Box<Doubts>, room: usize) {
        *doubts = Doubts::IDLE;
        self.doubts.reserve(doubts);
        (self.list, self.most, self.is_reserved) = (list, u32::try_from(room).unwrap_or(u32::MAX), true);
    }

    /// Takes the memory back, if it was reserved. The list is empty.
    pub(super) fn take_memory(&mut self) -> Option<(VecDeque<Change>, Box<Doubts>)> {
        let is_reserved = core::mem::take(&mut self.is_reserved);
        let doubts = core::mem::take(&mut self.doubts).into_memory().filter(|_| is_reserved)?;
        Some((core::mem::take(&mut self.list), doubts))
    }
}

/// A best-effort writer that seems so far ahead of its own samples is not.
const FAR: i64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_released_once_nothing_is_listed_unless_it_is_reserved() {
        let (mut changes, mut listed) = (ChangesFromWriter::from(SequenceNumber::FIRST), 3);
        changes.extend_to(20, &mut listed);
        changes.release_room(&mut listed);
        assert_eq!((changes.list.capacity(), listed), (32, 35), "samples are missing");
        changes.list.clear();
        changes.is_reserved = true;
        changes.release_room(&mut listed);
        assert_eq!((changes.list.capacity(), listed), (32, 35));
        changes.is_reserved = false;
        changes.release_room(&mut listed);
        assert_eq!((changes.list.capacity(), listed), (0, 3));
    }
}
