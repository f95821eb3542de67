//! A map that is a tree, or whose memory is reserved.

use alloc::collections::BTreeMap;
use core::ops::RangeBounds;

use crate::sorted_map::SortedMap;

/// A tree, which grows to many thousands; or, with a limits table, a short list whose memory is reserved.
#[derive(Debug)]
pub(crate) enum ReservableMap<K, V> {
    Tree(BTreeMap<K, V>),
    Reserved(SortedMap<K, V>),
}

impl<K, V> Default for ReservableMap<K, V> {
    fn default() -> Self {
        Self::Tree(BTreeMap::new())
    }
}

impl<K, V> ReservableMap<K, V> {
    /// A tree without elements.
    pub(crate) const EMPTY: Self = Self::Tree(BTreeMap::new());
}

impl<K: Ord, V> ReservableMap<K, V> {
    /// Reserves memory for so many elements.
    pub(crate) fn with_room(elements: usize) -> Self {
        Self::Reserved(SortedMap::with_room(elements))
    }

    /// Returns the memory for so many elements, in bytes.
    pub(crate) fn bytes(elements: usize) -> usize {
        SortedMap::<K, V>::bytes(elements)
    }

    /// Returns the reserved memory, in bytes.
    pub(crate) fn allocated(&self) -> usize {
        match self {
            Self::Tree(_) => 0,
            Self::Reserved(list) => list.allocated(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Tree(tree) => tree.len(),
            Self::Reserved(list) => list.len(),
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Self::Tree(tree) => tree.clear(),
            Self::Reserved(list) => list.clear(),
        }
    }

    pub(crate) fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        match self {
            Self::Tree(tree) => tree.get(key),
            Self::Reserved(list) => list.get(key),
        }
    }

    /// Returns the value of a key, which is added if it is new.
    pub(crate) fn get_or_insert_with(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        match self {
            Self::Tree(tree) => tree.entry(key).or_insert_with(value),
            Self::Reserved(list) => list.get_or_insert_with(key, value),
        }
    }

    pub(crate) fn first_key_value(&self) -> Option<(&K, &V)> {
        match self {
            Self::Tree(tree) => tree.first_key_value(),
            Self::Reserved(list) => list.first_key_value(),
        }
    }

    pub(crate) fn pop_first(&mut self) -> Option<(K, V)> {
        match self {
            Self::Tree(tree) => tree.pop_first(),
            Self::Reserved(list) => list.pop_first(),
        }
    }

    /// Removes everything before a key.
    pub(crate) fn remove_before(&mut self, key: &K) {
        match self {
            Self::Tree(tree) => *tree = tree.split_off(key),
            Self::Reserved(list) => list.remove_before(key),
        }
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&K, &mut V) -> bool) {
        match self {
            Self::Tree(tree) => tree.retain(keep),
            Self::Reserved(list) => list.retain(keep),
        }
    }

    /// Returns the elements in a range of keys.
    pub(crate) fn range(&self, range: impl RangeBounds<K>) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        let (tree, list) = match self {
            Self::Tree(tree) => (Some(tree.range(range)), None),
            Self::Reserved(list) => (None, Some(list.range(range))),
        };
        tree.into_iter().flatten().chain(list.into_iter().flatten())
    }
}
