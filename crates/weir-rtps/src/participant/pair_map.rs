//! What is known of pairs of endpoints.

use alloc::collections::BTreeMap;
use core::ops::RangeInclusive;

use crate::sorted_map::SortedMap;

/// A tree, since a large domain has many thousands; or, with a limits table, a list whose memory is reserved.
#[derive(Debug)]
pub(super) struct PairMap<K, V> {
    tree: BTreeMap<K, V>,
    reserved: Option<SortedMap<K, V>>,
}

impl<K, V> Default for PairMap<K, V> {
    fn default() -> Self {
        Self { tree: BTreeMap::new(), reserved: None }
    }
}

impl<K: Ord, V> PairMap<K, V> {
    pub(super) fn with_room(pairs: usize) -> Self {
        Self { tree: BTreeMap::new(), reserved: Some(SortedMap::with_room(pairs)) }
    }

    pub(super) fn len(&self) -> usize {
        self.reserved.as_ref().map_or(self.tree.len(), SortedMap::len)
    }

    pub(super) fn clear(&mut self) {
        self.tree.clear();
        self.reserved.iter_mut().for_each(SortedMap::clear);
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        match &self.reserved {
            Some(list) => list.get(key),
            None => self.tree.get(key),
        }
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        match &mut self.reserved {
            Some(list) => list.get_mut(key),
            None => self.tree.get_mut(key),
        }
    }

    /// Returns the value of a key, which is added if it is new.
    pub(super) fn get_or_insert_with(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        match &mut self.reserved {
            Some(list) => list.get_or_insert_with(key, value),
            None => self.tree.entry(key).or_insert_with(value),
        }
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        match &mut self.reserved {
            Some(list) => list.remove(key),
            None => self.tree.remove(key),
        }
    }

    /// Returns the elements in a range of keys.
    pub(super) fn range(&self, range: RangeInclusive<K>) -> impl DoubleEndedIterator<Item = (&K, &V)>
    where
        K: Copy,
    {
        let (first, last) = (*range.start(), *range.end());
        let list = self.reserved.as_ref().map(|list| list.range(first..=last));
        // Empty with a limits table.
        self.tree.range(first..=last).chain(list.into_iter().flatten())
    }
}
