//! Access to the samples that meet a condition, in an order that depends on their content.

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::ReaderCore;
use super::cache::Cache;
use super::enforced::AccessOrder;
use super::raw_sample::{RawSample, SampleSelection};
use super::states::States;
use crate::writer::ChangeKind;

/// What decides about values by their payloads, with encapsulation headers.
#[derive(Clone, Copy)]
pub struct SampleQuery<'a> {
    /// Whether a value is wanted.
    pub matches: &'a dyn Fn(&[u8]) -> bool,
    /// The order in which values are wanted; `None`: that of [`ReaderCore::access`].
    pub order: Option<PayloadOrder<'a>>,
}

/// Compares two values by their payloads.
pub type PayloadOrder<'a> = &'a dyn Fn(&[u8], &[u8]) -> Ordering;

impl core::fmt::Debug for SampleQuery<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SampleQuery").field("is_ordered", &self.order.is_some()).finish_non_exhaustive()
    }
}

impl ReaderCore {
    /// [`ReaderCore::access`] for values that meet a condition, in the order of the query. Changes of instances' states
    /// are no values.
    pub fn access_matching(
        &mut self,
        max: usize,
        selection: SampleSelection,
        remove: bool,
        query: SampleQuery<'_>,
        f: impl FnMut(RawSample<'_>) -> bool,
    ) -> usize {
        let before = self.available();
        let count = self.delivery.cache.access_matching(max, selection, remove, query, f);
        if self.available() < before {
            self.room_was_made();
        }
        count
    }
}

impl Cache {
    fn access_matching(
        &mut self,
        max: usize,
        selection: SampleSelection,
        remove: bool,
        query: SampleQuery<'_>,
        mut f: impl FnMut(RawSample<'_>) -> bool,
    ) -> usize {
        self.begin_access();
        let access_order = self.enforced.as_ref().map_or(AccessOrder::Arrival, |enforced| enforced.order);
        if access_order == AccessOrder::OneOfGroup && query.order.is_none() {
            let is_wanted = |cache: &Self, index| cache.meets(index, query.matches);
            return self.access_one_of_group(max, selection, is_wanted, remove, &mut f);
        }
        let mut positions: Vec<u64> = self.matching(selection, query.matches).collect();
        if access_order == AccessOrder::ByInstance {
            // As without a query, that with the oldest sample comes first, whether this sample is wanted or not.
            let instance = |position: &u64| self.instances.get(self.entries.at(*position).instance);
            positions.sort_by_key(|position| (instance(position).oldest, *position));
        }
        if let Some(order) = query.order {
            let payload = |position: &u64| self.chunks.bytes(self.entries.at(*position).at);
            // Stable: equal values keep their order.
            positions.sort_by(|one, other| order(payload(one), payload(other)));
        }
        let mut count = 0;
        for position in positions {
            if count == max {
                break;
            }
            let index = self.entries.index_of(position);
            let instance = self.entries.ring[index].instance;
            count += usize::from(self.visit(index, remove, &mut f));
            self.instances.forget_if_over(instance);
        }
        self.entries.trim();
        count
    }

    /// The positions of the values that are selected and meet a condition, oldest first.
    fn matching<'a>(
        &'a self,
        selection: SampleSelection,
        matches: &'a dyn Fn(&[u8]) -> bool,
    ) -> impl Iterator<Item = u64> + 'a {
        let instance = selection.instance;
        // Of one instance, by its chain: to ask for one after the other would visit all samples for each.
        let known = instance.filter(|instance| *instance < self.instances.end());
        let of_one = known.into_iter().flat_map(|instance| self.entries.of(self.instances.get(instance)));
        let of_one = of_one.map(|position| self.entries.index_of(position));
        let all = if instance.is_none() { 0..self.entries.ring.len() } else { 0..0 };
        let is_wanted =
            move |index: &usize| self.is_selected(*index, selection) && self.meets(*index, matches);
        all.chain(of_one).filter(is_wanted).map(|index| self.entries.position_of(index))
    }

    /// Returns whether an entry is a sample that a selection names.
    pub(super) fn is_selected(&self, index: usize, selection: SampleSelection) -> bool {
        let SampleSelection { states, instance } = selection;
        let entry = &self.entries.ring[index];
        entry.is_live
            && instance.is_none_or(|instance| instance == entry.instance)
            && (states == States::ANY || self.is_in(index, states))
    }

    /// Returns whether an entry is a value that meets a condition.
    fn meets(&self, index: usize, matches: &dyn Fn(&[u8]) -> bool) -> bool {
        let entry = &self.entries.ring[index];
        entry.kind == ChangeKind::Alive && matches(self.chunks.bytes(entry.at))
    }
}
