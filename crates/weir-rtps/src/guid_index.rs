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

/// The places of a list's elements by GUID.
///
/// Proxies are large, so that a search through them touches memory for each. This list is compact and sorted: with a
/// thousand proxies, a search takes ten comparisons.
#[derive(Debug, Default)]
pub(crate) struct GuidIndex {
    sorted: Vec<(Guid, u32)>,
}

impl GuidIndex {
    /// Reserves memory for so many elements.
    pub(crate) fn with_room(elements: usize) -> Self {
        Self { sorted: Vec::with_capacity(elements) }
    }

    /// Returns the memory for so many elements, in bytes.
    pub(crate) fn bytes(elements: usize) -> usize {
        elements.saturating_mul(size_of::<(Guid, u32)>())
    }

    /// Returns the memory allocated, in bytes.
    pub(crate) fn allocated(&self) -> usize {
        Self::bytes(self.sorted.capacity())
    }

    /// Returns the place of an element.
    #[inline]
    pub(crate) fn find(&self, guid: &Guid) -> Option<usize> {
        let at = self.sorted.binary_search_by(|(known, _)| known.cmp(guid)).ok()?;
        Some(self.sorted[at].1 as usize)
    }

    /// Adds an element at the end of the list, whose GUID is new.
    pub(crate) fn push(&mut self, guid: Guid) {
        let place = self.sorted.len() as u32;
        let at = self.sorted.partition_point(|(known, _)| *known < guid);
        reserve_one(&mut self.sorted);
        self.sorted.insert(at, (guid, place));
    }

    /// Removes an element. Returns its place; those behind it move up by one, as by `Vec::remove`.
    pub(crate) fn remove(&mut self, guid: &Guid) -> Option<usize> {
        let at = self.sorted.binary_search_by(|(known, _)| known.cmp(guid)).ok()?;
        let (_, place) = self.sorted.remove(at);
        self.sorted.iter_mut().filter(|(_, other)| *other > place).for_each(|(_, other)| *other -= 1);
        Some(place as usize)
    }
}

#[cfg(test)]
mod tests {
    use weir_netsim::Rng;
    use weir_wire::{EntityId, GuidPrefix};

    use super::*;

    #[test]
    fn places_are_those_of_a_list() {
        let guid = |number: u64| {
            let mut prefix = [0; 12];
            prefix[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
            Guid::new(GuidPrefix(prefix), EntityId([0, 0, 1, 4]))
        };
        let (mut index, mut list, mut random) = (GuidIndex::default(), Vec::new(), Rng::new(1));
        for _ in 0..2000 {
            let guid = guid(random.below(60));
            match list.iter().position(|known| *known == guid) {
                Some(at) => {
                    assert_eq!((index.find(&guid), index.remove(&guid)), (Some(at), Some(at)));
                    list.remove(at);
                }
                None => {
                    assert_eq!((index.find(&guid), index.remove(&guid)), (None, None));
                    index.push(guid);
                    list.push(guid);
                }
            }
            assert!(list.iter().enumerate().all(|(at, known)| index.find(known) == Some(at)));
        }
    }
}
