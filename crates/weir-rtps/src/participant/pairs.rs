//! The relations of local endpoints with others of their topics.

use alloc::collections::BTreeMap;

use weir_wire::{EntityId, Guid, GuidPrefix};

use super::news::{PairKey, PairState};
use crate::sorted_map::SortedMap;

/// All pairs: a sorted list for each local endpoint, or with a limits table one list whose memory is reserved.
///
/// In a large domain, there are as many pairs as remote endpoints or more. A tree of them would have half as much room
/// again between its elements.
#[derive(Debug)]
pub(super) enum Pairs {
    Lists { lists: BTreeMap<EntityId, SortedMap<Guid, PairState>>, len: usize },
    Reserved(SortedMap<PairKey, PairState>),
}

impl Default for Pairs {
    fn default() -> Self {
        Self::Lists { lists: BTreeMap::new(), len: 0 }
    }
}

impl Pairs {
    /// Reserves memory for so many pairs.
    pub(super) fn with_room(pairs: usize) -> Self {
        Self::Reserved(SortedMap::with_room(pairs))
    }

    /// Returns the memory for so many pairs, in bytes.
    pub(super) fn bytes(pairs: usize) -> usize {
        SortedMap::<PairKey, PairState>::bytes(pairs)
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Lists { len, .. } => *len,
            Self::Reserved(list) => list.len(),
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Self::Lists { .. } => *self = Self::default(),
            Self::Reserved(list) => list.clear(),
        }
    }

    pub(super) fn get(&self, key: &PairKey) -> Option<&PairState> {
        match self {
            Self::Lists { lists, .. } => lists.get(&key.0)?.get(&key.1),
            Self::Reserved(list) => list.get(key),
        }
    }

    pub(super) fn get_mut(&mut self, key: &PairKey) -> Option<&mut PairState> {
        match self {
            Self::Lists { lists, .. } => lists.get_mut(&key.0)?.get_mut(&key.1),
            Self::Reserved(list) => list.get_mut(key),
        }
    }

    /// Returns a pair, which is added if it is new.
    pub(super) fn get_or_default(&mut self, key: PairKey) -> &mut PairState {
        match self {
            Self::Lists { lists, len } => lists.entry(key.0).or_default().get_or_insert_with(key.1, || {
                *len += 1;
                PairState::default()
            }),
            Self::Reserved(list) => list.get_or_insert_with(key, PairState::default),
        }
    }

    pub(super) fn remove(&mut self, key: &PairKey) {
        match self {
            Self::Lists { lists, len } => {
                let Some(list) = lists.get_mut(&key.0) else { return };
                *len -= usize::from(list.remove(&key.1).is_some());
                list.shrink();
                if list.len() == 0 {
                    lists.remove(&key.0);
                }
            }
            Self::Reserved(list) => drop(list.remove(key)),
        }
    }

    /// Returns the pairs of a local endpoint with those of a participant or, if that is `None`, with all.
    pub(super) fn of(
        &self,
        local: EntityId,
        prefix: Option<GuidPrefix>,
    ) -> impl Iterator<Item = (Guid, &PairState)> {
        let [first, last] =
            [0, 0xff].map(|byte| Guid::new(prefix.unwrap_or(GuidPrefix([byte; 12])), EntityId([byte; 4])));
        let (listed, reserved) = match self {
            Self::Lists { lists, .. } => (lists.get(&local).map(|list| list.range(first..=last)), None),
            Self::Reserved(list) => (None, Some(list.range((local, first)..=(local, last)))),
        };
        let listed = listed.into_iter().flatten().map(|(other, state)| (*other, state));
        listed.chain(reserved.into_iter().flatten().map(|((_, other), state)| (*other, state)))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn both_forms_hold_the_same_pairs() {
        let (mut lists, mut reserved, mut seed) = (Pairs::default(), Pairs::with_room(64), 1_u32);
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [local, prefix, entity, action] = [28, 25, 22, 19].map(|bits| (seed >> bits & 3) as u8);
            let key: PairKey =
                (EntityId([local; 4]), Guid::new(GuidPrefix([prefix; 12]), EntityId([entity; 4])));
            for pairs in [&mut lists, &mut reserved] {
                if action < 2 {
                    pairs.get_or_default(key);
                } else {
                    pairs.remove(&key);
                }
                assert_eq!(pairs.get(&key).is_some(), action < 2);
                assert_eq!(pairs.get_mut(&key).is_some(), action < 2);
            }
            assert_eq!(lists.len(), reserved.len());
            for prefix in [None, Some(GuidPrefix([prefix; 12]))] {
                let of = |pairs: &Pairs| pairs.of(key.0, prefix).map(|(other, _)| other).collect::<Vec<_>>();
                assert_eq!(of(&lists), of(&reserved));
            }
        }
        let key = |number: u32| -> PairKey {
            let prefix = GuidPrefix([0; 12]);
            (EntityId([1; 4]), Guid::new(prefix, EntityId(number.to_be_bytes())))
        };
        (0..4096).for_each(|number| _ = lists.get_or_default(key(number)));
        (1..4096).for_each(|number| lists.remove(&key(number)));
        let Pairs::Lists { lists: list, .. } = &lists else { unreachable!("it has no limits table") };
        assert!(list[&EntityId([1; 4])].allocated() < 4096, "a list returns memory that it does not need");
        lists.clear();
        assert_eq!((lists.len(), lists.of(EntityId([1; 4]), None).count()), (0, 0));
    }
}
