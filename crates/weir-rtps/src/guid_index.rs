//! Finds the proxy of a remote endpoint by its GUID.

use alloc::vec::Vec;

use weir_wire::Guid;

/// Makes room for one more element. A list grows by an eighth instead of doubling: there may be hundreds of proxies in
/// each of many endpoints.
pub(crate) fn reserve_one<T>(list: &mut Vec<T>) {
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / 8).max(4));
    }
}

/// An element of a list that is found by its GUID.
pub(crate) trait OfGuid {
    /// Returns its GUID, which does not change.
    fn guid(&self) -> &Guid;
}

/// The places of a list's elements by GUID.
///
/// Proxies are large, so that a search through them touches memory for each. This index is compact, and sorted by
/// hash: with a thousand proxies, a search takes ten comparisons, and one with the GUID of the proxy itself. Peers
/// choose GUIDs and can make many hashes equal; a search then compares these GUIDs, which are as few as the proxies.
#[derive(Debug, Default)]
pub(crate) struct GuidIndex {
    sorted: Vec<(u32, u32)>,
}

impl GuidIndex {
    /// Reserves memory for so many elements.
    pub(crate) fn with_room(elements: usize) -> Self {
        Self { sorted: Vec::with_capacity(elements) }
    }

    /// Returns the memory for so many elements, in bytes.
    pub(crate) fn bytes(elements: usize) -> usize {
        elements.saturating_mul(size_of::<(u32, u32)>())
    }

    /// Returns the memory allocated, in bytes.
    pub(crate) fn allocated(&self) -> usize {
        Self::bytes(self.sorted.capacity())
    }

    /// Returns the place of an element of the list.
    #[inline]
    pub(crate) fn find<T: OfGuid>(&self, list: &[T], guid: &Guid) -> Option<usize> {
        let at = self.position(list, guid)?;
        Some(self.sorted[at].1 as usize)
    }

    /// Adds an element at the end of the list, whose GUID is new.
    pub(crate) fn push(&mut self, guid: &Guid) {
        let (hash, place) = (hash(guid), self.sorted.len() as u32);
        let at = self.sorted.partition_point(|(known, _)| *known < hash);
        reserve_one(&mut self.sorted);
        self.sorted.insert(at, (hash, place));
    }

    /// Removes an element that is still in the list. Returns its place; those behind it move up by one, as by
    /// `Vec::remove`.
    pub(crate) fn remove<T: OfGuid>(&mut self, list: &[T], guid: &Guid) -> Option<usize> {
        let at = self.position(list, guid)?;
        let (_, place) = self.sorted.remove(at);
        self.sorted.iter_mut().filter(|(_, other)| *other > place).for_each(|(_, other)| *other -= 1);
        Some(place as usize)
    }

    #[inline]
    fn position<T: OfGuid>(&self, list: &[T], guid: &Guid) -> Option<usize> {
        let hash = hash(guid);
        let first = self.sorted.partition_point(|(known, _)| *known < hash);
        let mut at = first;
        while let Some((_, place)) = self.sorted.get(at).filter(|(known, _)| *known == hash) {
            if list.get(*place as usize).is_some_and(|element| element.guid() == guid) {
                return Some(at);
            }
            at += 1;
        }
        None
    }
}

/// Returns a hash in which all bits of the GUID count.
#[inline]
fn hash(guid: &Guid) -> u32 {
    let guid = u128::from_le_bytes(guid.to_bytes());
    let (low, high) = (guid as u64, (guid >> 64) as u64);
    // The upper bits of a product depend on all bits of its factors. The factor is 2^64 by the golden ratio.
    let mixed = (low.wrapping_mul(FACTOR) ^ high).wrapping_mul(FACTOR);
    (mixed >> 32) as u32
}

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use weir_netsim::Rng;
    use weir_wire::{EntityId, GuidPrefix};

    use super::*;

    impl OfGuid for Guid {
        fn guid(&self) -> &Guid {
            self
        }
    }

    #[test]
    fn guids_with_the_same_hash_are_told_apart() {
        let of = |low: u64, high: u64| {
            let bytes = (u128::from(high) << 64 | u128::from(low)).to_le_bytes();
            Guid::from_bytes(bytes)
        };
        // What differs below is made up for above.
        let list: Vec<_> = (1..=40_u64).map(|low| of(low, low.wrapping_mul(FACTOR) ^ 7)).collect();
        assert!(list.iter().all(|guid| hash(guid) == hash(&list[0])));
        let mut index = GuidIndex::default();
        list.iter().for_each(|guid| index.push(guid));
        assert!(list.iter().enumerate().all(|(at, guid)| index.find(&list, guid) == Some(at)));
        assert_eq!(index.find(&list, &of(41, 41_u64.wrapping_mul(FACTOR) ^ 7)), None);
        assert_eq!((index.remove(&list, &list[20]), index.find(&list[..20], &list[5])), (Some(20), Some(5)));
    }

    #[test]
    fn places_are_those_of_a_list() {
        let guid = |number: u64| {
            let mut prefix = [0; 12];
            prefix[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
            Guid::new(GuidPrefix(prefix), EntityId([0, 0, 1, 4]))
        };
        let (mut index, mut list, mut random) = (GuidIndex::default(), Vec::<Guid>::new(), Rng::new(1));
        for _ in 0..2000 {
            let guid = guid(random.below(60));
            match list.iter().position(|known| *known == guid) {
                Some(at) => {
                    assert_eq!((index.find(&list, &guid), index.remove(&list, &guid)), (Some(at), Some(at)));
                    list.remove(at);
                }
                None => {
                    assert_eq!((index.find(&list, &guid), index.remove(&list, &guid)), (None, None));
                    index.push(&guid);
                    list.push(guid);
                }
            }
            assert!(list.iter().enumerate().all(|(at, known)| index.find(&list, known) == Some(at)));
        }
    }
}
