//! A map whose memory can be reserved.

use alloc::collections::VecDeque;
use core::ops::{Bound, RangeBounds};

/// A map in one block of memory, sorted by key.
///
/// Adding and removing at either end is fast; elsewhere, elements are moved. Unlike a `BTreeMap`, it allocates nothing
/// while there is room.
#[derive(Debug)]
pub(crate) struct SortedMap<K, V> {
    list: VecDeque<(K, V)>,
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self { list: VecDeque::new() }
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    /// Reserves memory for so many elements.
    pub(crate) fn with_room(elements: usize) -> Self {
        Self { list: VecDeque::with_capacity(elements) }
    }

    /// Returns the memory for so many elements, in bytes.
    pub(crate) fn bytes(elements: usize) -> usize {
        elements.saturating_mul(size_of::<(K, V)>())
    }

    /// Returns the memory allocated, in bytes.
    pub(crate) fn allocated(&self) -> usize {
        Self::bytes(self.list.capacity())
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn clear(&mut self) {
        self.list.clear();
    }

    pub(crate) fn contains_key(&self, key: &K) -> bool {
        self.find(key).is_ok()
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.find(key).ok().map(|at| &self.list[at].1)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let at = self.find(key).ok()?;
        Some(&mut self.list[at].1)
    }

    /// Returns the value of a key, which is added if it is new.
    pub(crate) fn get_or_insert_with(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        let at = match self.find(&key) {
            Ok(at) => at,
            Err(at) => {
                self.reserve_one();
                self.list.insert(at, (key, value()));
                at
            }
        };
        &mut self.list[at].1
    }

    /// Adds an element, or replaces its value. Returns the value before.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(at) => Some(core::mem::replace(&mut self.list[at].1, value)),
            Err(at) => {
                self.reserve_one();
                self.list.insert(at, (key, value));
                None
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.find(key).ok()?;
        self.list.remove(at).map(|(_, value)| value)
    }

    /// Returns memory if less than half of it is in use. Not for memory that was reserved.
    pub(crate) fn shrink(&mut self) {
        let len = self.list.len();
        if len < self.list.capacity() / 2 {
            self.list.shrink_to(len + (len / 8).max(4));
        }
    }

    pub(crate) fn pop_first(&mut self) -> Option<(K, V)> {
        self.list.pop_front()
    }

    /// Removes everything before a key.
    pub(crate) fn remove_before(&mut self, key: &K) {
        let end = self.list.partition_point(|(known, _)| known < key);
        self.list.drain(..end);
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.list.retain_mut(|(key, value)| keep(key, value));
    }

    pub(crate) fn first_key_value(&self) -> Option<(&K, &V)> {
        self.list.front().map(|(key, value)| (key, value))
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> + Clone {
        self.list.iter().map(|(key, value)| (key, value))
    }

    pub(crate) fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + Clone {
        self.list.iter().map(|(key, _)| key)
    }

    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = &V> + Clone {
        self.list.iter().map(|(_, value)| value)
    }

    /// Returns the elements in a range of keys.
    pub(crate) fn range(&self, range: impl RangeBounds<K>) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        let start = match range.start_bound() {
            Bound::Included(from) => self.list.partition_point(|(key, _)| key < from),
            Bound::Excluded(after) => self.list.partition_point(|(key, _)| key <= after),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(to) => self.list.partition_point(|(key, _)| key <= to),
            Bound::Excluded(before) => self.list.partition_point(|(key, _)| key < before),
            Bound::Unbounded => self.list.len(),
        };
        self.list.range(start..end.max(start)).map(|(key, value)| (key, value))
    }

    /// Makes room for one more element. The list grows by an eighth instead of doubling.
    fn reserve_one(&mut self) {
        let len = self.list.len();
        if len == self.list.capacity() {
            self.list.reserve_exact((len / 8).max(4));
        }
    }

    fn find(&self, key: &K) -> Result<usize, usize> {
        // Most are added at the end.
        if self.list.back().is_some_and(|(last, _)| last < key) {
            return Err(self.list.len());
        }
        self.list.binary_search_by(|(known, _)| known.cmp(key))
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn it_behaves_as_a_map_of_the_standard_library() {
        let (mut ours, mut theirs, mut seed) = (SortedMap::with_room(64), BTreeMap::new(), 1_u32);
        for step in 0..20_000_u32 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let key = seed >> 26;
            match seed >> 8 & 7 {
                0..3 => assert_eq!(ours.insert(key, step), theirs.insert(key, step)),
                3..5 => assert_eq!(ours.remove(&key), theirs.remove(&key)),
                5 => assert_eq!(
                    ours.get_or_insert_with(key, || step),
                    theirs.entry(key).or_insert_with(|| step)
                ),
                6 if step % 9 == 0 => {
                    ours.remove_before(&key);
                    theirs = theirs.split_off(&key);
                }
                _ => {
                    ours.retain(|known, _| known % 5 != key % 5);
                    theirs.retain(|known, _| known % 5 != key % 5);
                }
            }
            assert_eq!(
                (ours.get(&key), ours.contains_key(&key)),
                (theirs.get(&key), theirs.contains_key(&key))
            );
            assert_eq!((ours.len(), ours.first_key_value()), (theirs.len(), theirs.first_key_value()));
            assert!(ours.range(key..key + 9).eq(theirs.range(key..key + 9)));
            assert!(ours.range(..=key).eq(theirs.range(..=key)));
        }
        assert!(ours.iter().eq(theirs.iter()) && ours.keys().eq(theirs.keys()));
        assert_eq!(ours.values().collect::<Vec<_>>(), theirs.values().collect::<Vec<_>>());
        assert_eq!(ours.allocated(), SortedMap::<u32, u32>::bytes(64));
    }
}
