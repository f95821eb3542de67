//! Sets that the writers of a publisher share, at the readers of a subscriber (access scope GROUP, DDS 1.4, 2.2.3.6).
//!
//! Each reader knows which part of a set has arrived of its writers. [`settle`] decides by the progress of all readers
//! which sets are whole: those that have ended at each writer of the group that one of the readers is matched with.
//! The caller then makes them accessible at all readers, before the application accesses any of them.
//!
//! Weir's writers announce the end of each set of their group, even without samples in it. Writers of other engines are
//! only waited for while they have begun a set and not ended it.

use alloc::vec::Vec;

use weir_wire::{Guid, SequenceNumber, Timestamp};

use super::ReaderCore;
use super::coherence::Sorted;
use super::states::States;
use crate::time::Time;

/// How far a writer has got with shared sets, see [`ReaderCore::group_progress`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupProgress {
    /// The publisher.
    pub group: Guid,
    /// Others need not wait for a writer that is not alive.
    pub is_alive: bool,
    /// It announces the end of each set, even if it has no part in it.
    pub announces_all: bool,
    /// The last set that has ended, 0 before the first.
    pub ended: SequenceNumber,
    /// Sets up to this one were dropped.
    pub dropped_to: SequenceNumber,
    /// The set whose end has not arrived.
    pub open: Option<SequenceNumber>,
    /// The sets that have ended and wait, in order, and whether a sample is missing.
    pub sets: Vec<(SequenceNumber, bool)>,
}

/// A set to be settled at all readers of the subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettledSet {
    /// The publisher.
    pub group: Guid,
    /// The group sequence number at which it begins.
    pub set: SequenceNumber,
    /// It becomes accessible; `false`: a part of it is missing, and all of it is dropped.
    pub is_whole: bool,
}

/// The position of a sample in the common order of the readers of a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupPosition {
    /// The publisher; the writer, if it has no group.
    pub group: Guid,
    /// The number of the sample in the group, or among those of the writer.
    pub number: SequenceNumber,
    /// When it was written.
    pub source_timestamp: Option<Timestamp>,
}

/// Decides which sets have ended everywhere, in order.
#[must_use]
pub fn settle(progress: &[GroupProgress]) -> Vec<SettledSet> {
    let mut sets: Vec<_> =
        progress.iter().flat_map(|it| it.sets.iter().map(|(set, _)| (it.group, *set))).collect();
    sets.sort_unstable();
    sets.dedup();
    let mut settled: Vec<SettledSet> = Vec::new();
    let mut stuck = None;
    for (group, set) in sets {
        if stuck == Some(group) {
            continue;
        }
        let members = || progress.iter().filter(|it| it.group == group);
        let has_ended = |it: &GroupProgress| match it.announces_all {
            true => it.ended >= set,
            false => it.open != Some(set),
        };
        if !members().filter(|it| it.is_alive).all(has_ended) {
            // Later sets of the group wait, too.
            stuck = Some(group);
            continue;
        }
        let is_broken = members()
            .any(|it| it.sets.contains(&(set, true)) || it.open == Some(set) || it.dropped_to >= set);
        settled.push(SettledSet { group, set, is_whole: !is_broken });
    }
    settled
}

/// Merges the samples of several readers in the order of their groups. Each reader's are in its own order. Returns the
/// index of the reader of each sample.
#[must_use]
pub fn merge(readers: &[Vec<GroupPosition>]) -> Vec<usize> {
    let mut groups: alloc::collections::BTreeMap<Guid, Vec<(SequenceNumber, Option<Timestamp>, usize)>> =
        alloc::collections::BTreeMap::new();
    for (index, positions) in readers.iter().enumerate() {
        for position in positions {
            let samples = groups.entry(position.group).or_default();
            samples.push((position.number, position.source_timestamp, index));
        }
    }
    let mut rest: Vec<_> = groups
        .into_values()
        .map(|mut samples| {
            samples.sort_by_key(|(number, ..)| *number);
            samples.into_iter().peekable()
        })
        .collect();
    let mut merged = Vec::new();
    loop {
        let stamp = |at: &Option<Timestamp>| at.map(|at| (at.seconds, at.fraction));
        let heads = rest.iter_mut().enumerate().filter_map(|(group, samples)| {
            samples.peek().map(|(_, written_at, _)| (stamp(written_at), group))
        });
        let Some((_, group)) = heads.min() else { return merged };
        merged.extend(rest[group].next().map(|(_, _, index)| index));
    }
}

impl ReaderCore {
    /// Sets the publisher of a matched writer, if its access scope is GROUP.
    pub fn set_writer_group(&mut self, writer: Guid, group: Guid) {
        if let Some(enforced) = &mut self.delivery.cache.enforced {
            enforced.set_group(writer, group);
        }
    }

    /// Returns whether shared sets have ended since the last call: the readers of the subscriber are to be settled.
    pub fn take_group_news(&mut self) -> bool {
        let coherence = self.delivery.cache.coherence_mut();
        coherence.is_some_and(|coherence| core::mem::take(&mut coherence.has_news))
    }

    /// Appends how far the matched writers have got with shared sets.
    pub fn group_progress(&self, out: &mut Vec<GroupProgress>) {
        let enforced = self.delivery.cache.enforced.as_ref();
        if let Some(coherence) = enforced.and_then(|enforced| enforced.coherence.as_ref()) {
            coherence.progress(out);
        }
    }

    /// Makes a shared set accessible, or drops it.
    pub fn settle_set(&mut self, now: Time, settled: SettledSet) {
        let mut sorted = Sorted::default();
        let writers = &self.writers;
        if let Some(coherence) = self.delivery.cache.coherence_mut() {
            coherence.settle(settled.group, settled.set, settled.is_whole, &mut sorted);
        }
        let forgotten = core::mem::take(&mut sorted.forgotten);
        self.delivery.cache.apply_sorted(now, |writer| writers.is_alive(writer), sorted);
        if let Some(enforced) = &mut self.delivery.cache.enforced {
            forgotten.into_iter().for_each(|writer| enforced.forget_writer(writer));
        }
        self.end_late(now);
    }

    /// Appends the positions of the samples in these states, in the order in which the reader has them.
    pub fn group_positions(&self, states: States, out: &mut Vec<GroupPosition>) {
        self.delivery.cache.group_positions(states, out);
    }
}
