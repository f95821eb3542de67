//! Coherent sets and ordered access in the reader and its cache (PRESENTATION, DDS 1.4, 2.2.3.6).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use weir_wire::{Guid, ParameterList, SequenceNumber};

use super::ReaderCore;
use super::cache::Cache;
use super::coherence::{Coherence, SetSample, Sorted};
use super::enforced::AccessOrder;
use super::groups::GroupPosition;
use super::raw_sample::{RawSample, SampleSelection};
use super::states::States;
use super::writer_proxy::Author;
use crate::config;
use crate::group::SetTag;
use crate::inline_qos;
use crate::key_hasher::Key;
use crate::time::Time;
use crate::writer::ChangeKind;

impl ReaderCore {
    /// Records what a sample says about its coherent set, before it is handled.
    #[cold]
    pub(super) fn note_tag(
        &mut self,
        writer: Guid,
        sn: SequenceNumber,
        list: &ParameterList<'_>,
        is_without_payload: bool,
    ) {
        let Some(tag) = SetTag::decode(list) else { return };
        let Some(index) = self.writers.find(writer) else { return };
        let proxy = &self.writers.list[index];
        // What is too far ahead is not held back.
        let is_far = proxy.is_reliable
            && proxy.start.has_begun
            && proxy.changes.offset(sn) >= config::REORDER_MAX_SAMPLES;
        if sn < proxy.changes.expected || is_far {
            return;
        }
        // Without a payload, it may also be the end of an instance.
        let is_end = is_without_payload && inline_qos::decode(Some(list)).0 == ChangeKind::Alive;
        self.delivery.cache.note_tag((writer, sn), tag, is_end);
        let Self { writers, delivery, .. } = self;
        delivery.cache.forget_numbers(|writer| writers.expected(writer));
    }

    /// Ends the coherent sets of a writer whose ends have been reached.
    #[inline]
    pub(super) fn end_sets_by_policies(&mut self, now: Time, writer: Guid) {
        if self.delivery.cache.enforced.is_some() {
            self.end_sets(now, writer);
        }
    }

    #[cold]
    pub(super) fn end_sets(&mut self, now: Time, writer: Guid) {
        let Some(index) = self.writers.find(writer) else { return };
        let proxy = &self.writers.list[index];
        let (expected, is_alive) = (proxy.changes.expected, |_| proxy.lease.is_alive());
        let change =
            |coherence: &mut Coherence, out: &mut Sorted| coherence.end_before(writer, expected, out);
        self.delivery.cache.with_coherence(now, is_alive, change);
    }
}

impl Cache {
    pub(super) fn coherence(&self) -> Option<&Coherence> {
        self.enforced.as_ref().and_then(|enforced| enforced.coherence.as_ref())
    }

    pub(super) fn coherence_mut(&mut self) -> Option<&mut Coherence> {
        self.enforced.as_mut().and_then(|enforced| enforced.coherence.as_mut())
    }

    /// Changes what is known of coherent sets, and applies what follows from it. `is_alive`: whether a writer is, of
    /// which samples become accessible.
    #[cold]
    pub(super) fn with_coherence(
        &mut self,
        now: Time,
        is_alive: impl Fn(Guid) -> bool,
        change: impl FnOnce(&mut Coherence, &mut Sorted),
    ) {
        let mut sorted = Sorted::default();
        if let Some(coherence) = self.coherence_mut() {
            change(coherence, &mut sorted);
        }
        self.apply_sorted(now, is_alive, sorted);
    }

    /// Makes the samples of sets accessible, or drops them.
    pub(super) fn apply_sorted(&mut self, now: Time, is_alive: impl Fn(Guid) -> bool, sorted: Sorted) {
        if let Some(enforced) = &mut self.enforced {
            enforced.advance(now);
        }
        let author = |guid, sample: &SetSample| {
            let is_last = sample.is_last;
            Author { guid, is_alive: is_alive(guid), is_last }
        };
        for (guid, sample) in sorted.ready {
            // Its lifespan has begun when it arrived (DDS 1.4, 2.2.3.16).
            self.place_by_policies(sample.arrived_at, author(guid, &sample), sample.sn, sample.stored);
        }
        for (guid, sample) in sorted.dropped {
            self.chunks.release(sample.stored.at);
            self.leave_behind(now, author(guid, &sample), sample.stored.key());
        }
    }

    /// A writer is lost: marks those of its samples in sets that wait for other readers behind which nothing of it
    /// waits for the same instance. `behind`: the keys of what waits behind these sets.
    #[cold]
    pub(super) fn mark_last_in_sets(&mut self, writer: Guid, behind: impl Iterator<Item = Option<Key>>) {
        let Self { enforced: Some(enforced), instances, .. } = self else { return };
        let Some(coherence) = enforced.coherence.as_mut().filter(|it| it.has_waiting(writer)) else { return };
        let key_of = |key: Option<Key>| instances.key_of(key).to_bytes();
        let mut later: BTreeSet<_> = behind.map(key_of).collect();
        for sample in coherence.waiting_mut(writer).rev() {
            sample.is_last = later.insert(key_of(sample.stored.key()));
        }
    }

    /// Records what a sample says about its set and its group.
    pub(super) fn note_tag(&mut self, (writer, sn): (Guid, SequenceNumber), tag: SetTag, is_end: bool) {
        let Self { enforced: Some(enforced), .. } = self else { return };
        if let Some(coherence) = &mut enforced.coherence {
            coherence.note(writer, sn, tag, is_end);
        }
        if let Some(number) = tag.number.filter(|_| !is_end) {
            enforced.note_number((writer, sn), number);
        }
    }

    /// Forgets the numbers in groups of samples that are gone, if there are many. `expected`: the next sample of a
    /// writer that is matched.
    fn forget_numbers(&mut self, expected: impl Fn(Guid) -> Option<SequenceNumber>) {
        let Self { enforced: Some(enforced), entries, .. } = self else { return };
        if !enforced.numbers.are_many(entries.live) {
            return;
        }
        let queued = entries.ring.iter().filter(|entry| entry.is_live);
        let queued = queued.map(|entry| (entry.writer, entry.sequence_number));
        let in_sets = enforced.coherence.iter().flat_map(Coherence::waiting);
        let there: BTreeSet<_> = queued.chain(in_sets).chain(enforced.postponed.waiting()).collect();
        enforced.numbers.retain(&there, expected);
    }

    /// Appends the positions of the samples in these states in their groups.
    pub(super) fn group_positions(&self, states: States, out: &mut Vec<GroupPosition>) {
        for (index, entry) in self.entries.ring.iter().enumerate() {
            if entry.is_live && (states == States::ANY || self.is_in(index, states)) {
                let at = (entry.writer, entry.sequence_number);
                let (group, number) =
                    self.enforced.as_ref().map_or(at, |enforced| enforced.position(at.0, at.1));
                out.push(GroupPosition { group, number, source_timestamp: entry.source_timestamp });
            }
        }
    }

    /// [`Cache::access`] in the order of PRESENTATION.
    #[cold]
    pub(super) fn access_in_order(
        &mut self,
        order: AccessOrder,
        max: usize,
        selection: SampleSelection,
        remove: bool,
        f: &mut impl FnMut(RawSample<'_>) -> bool,
    ) -> usize {
        match selection.instance {
            _ if order == AccessOrder::OneOfGroup => {
                self.access_one_of_group(max, selection, |_, _| true, remove, f)
            }
            Some(instance) => self.access_instance(max, instance, selection.states, remove, f),
            None => self.access_by_instance(max, selection.states, remove, f),
        }
    }

    /// Passes the samples of one instance after those of the other.
    fn access_by_instance(
        &mut self,
        max: usize,
        states: States,
        remove: bool,
        f: &mut impl FnMut(RawSample<'_>) -> bool,
    ) -> usize {
        let mut instances: Vec<(u64, u32)> = Vec::new();
        let mut next = self.instances.next(None, |_, _| true);
        while let Some(index) = next {
            let instance = self.instances.get(index);
            instances.push((instance.oldest, index));
            let key = instance.key;
            next = if self.instances.is_keyed { self.instances.next(Some(key), |_, _| true) } else { None };
        }
        // That with the oldest sample comes first.
        instances.sort_unstable();
        let mut count = 0;
        for (_, instance) in instances {
            if count >= max {
                break;
            }
            count += self.access_instance(max - count, instance, states, remove, &mut *f);
        }
        count
    }

    /// Passes the first sample in the order of the groups, as [`merge`](super::groups::merge) has it, of those that are
    /// selected and for which `is_wanted` returns `true`. It is called for few of them.
    pub(super) fn access_one_of_group(
        &mut self,
        max: usize,
        selection: SampleSelection,
        is_wanted: impl Fn(&Self, usize) -> bool,
        remove: bool,
        f: &mut impl FnMut(RawSample<'_>) -> bool,
    ) -> usize {
        let mut count = 0;
        while count == 0 && max > 0 {
            let Some(enforced) = &self.enforced else { break };
            let mut firsts: BTreeMap<Guid, (SequenceNumber, usize)> = BTreeMap::new();
            for (index, entry) in self.entries.ring.iter().enumerate() {
                if !self.is_selected(index, selection) {
                    continue;
                }
                let (group, number) = enforced.position(entry.writer, entry.sequence_number);
                let is_before = firsts.get(&group).is_none_or(|(first, _)| number < *first);
                if is_before && is_wanted(self, index) {
                    firsts.insert(group, (number, index));
                }
            }
            let written_at =
                |index: usize| self.entries.ring[index].source_timestamp.map(|at| (at.seconds, at.fraction));
            let first = firsts.iter().min_by_key(|(group, (_, index))| (written_at(*index), **group));
            let Some((_, &(_, index))) = first else { break };
            let instance = self.entries.ring[index].instance;
            // A sample that does not count is removed.
            count = usize::from(self.visit(index, remove, f));
            self.instances.forget_if_over(instance);
            self.entries.trim();
        }
        count
    }

    /// Moves the payloads that wait for their sets, see [`Cache::compact`].
    pub(super) fn compact_sets(&mut self) {
        let Self { chunks, enforced, .. } = self;
        let coherence = enforced.as_mut().and_then(|enforced| enforced.coherence.as_mut());
        for stored in coherence.into_iter().flat_map(Coherence::stored_mut) {
            chunks.relocate(&mut stored.at);
        }
    }
}
