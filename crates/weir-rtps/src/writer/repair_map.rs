//! What is known about the repairs of one reader, by position.

use alloc::collections::BTreeMap;
use core::ops::Range;

use super::pacing::Position;
use crate::sorted_map::SortedMap;

/// A tree, which grows to many thousands; or, with a limits table, a short list whose memory is reserved.
#[derive(Debug)]
pub(super) enum RepairMap<V> {
    Tree(BTreeMap<Position, V>),
    Reserved(SortedMap<Position, V>),
}

impl<V> Default for RepairMap<V> {
    fn default() -> Self {
        Self::Tree(BTreeMap::new())
    }
}

impl<V: Default> RepairMap<V> {
    pub(super) fn with_room(repairs: usize) -> Self {
        Self::Reserved(SortedMap::with_room(repairs))
    }

    /// Returns the memory for so many repairs, in bytes.
    pub(super) fn bytes(repairs: usize) -> usize {
        SortedMap::<Position, V>::bytes(repairs)
    }

    /// Returns the reserved memory, in bytes.
    pub(super) fn allocated(&self) -> usize {
        match self {
            Self::Tree(_) => 0,
            Self::Reserved(list) => list.allocated(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Tree(tree) => tree.len(),
            Self::Reserved(list) => list.len(),
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Self::Tree(tree) => tree.clear(),
            Self::Reserved(list) => list.clear(),
        }
    }

    pub(super) fn contains_key(&self, what: &Position) -> bool {
        match self {
            Self::Tree(tree) => tree.contains_key(what),
            Self::Reserved(list) => list.contains_key(what),
        }
    }

    /// Returns the repair of a position, which is added if it is new.
    pub(super) fn get_or_insert(&mut self, what: Position) -> &mut V {
        match self {
            Self::Tree(tree) => tree.entry(what).or_default(),
            Self::Reserved(list) => list.get_or_insert_with(what, V::default),
        }
    }

    pub(super) fn first_key_value(&self) -> Option<(&Position, &V)> {
        match self {
            Self::Tree(tree) => tree.first_key_value(),
            Self::Reserved(list) => list.first_key_value(),
        }
    }

    pub(super) fn pop_first(&mut self) -> Option<(Position, V)> {
        match self {
            Self::Tree(tree) => tree.pop_first(),
            Self::Reserved(list) => list.pop_first(),
        }
    }

    /// Removes everything before a position.
    pub(super) fn remove_before(&mut self, what: &Position) {
        match self {
            Self::Tree(tree) => *tree = tree.split_off(what),
            Self::Reserved(list) => list.remove_before(what),
        }
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(&Position, &mut V) -> bool) {
        match self {
            Self::Tree(tree) => tree.retain(keep),
            Self::Reserved(list) => list.retain(keep),
        }
    }

    /// Returns the greatest of what `of` returns for the repairs in a range.
    pub(super) fn max_of<T: Ord>(&self, range: Range<Position>, of: impl Fn(&V) -> Option<T>) -> Option<T> {
        match self {
            Self::Tree(tree) => tree.range(range).filter_map(|(_, repair)| of(repair)).max(),
            Self::Reserved(list) => list.range(range).filter_map(|(_, repair)| of(repair)).max(),
        }
    }
}
