//! A set of small numbers of which the next one is found at once, however few there are.

/// Each bit of a level tells whether a word of the level below has any bit set.
#[derive(Debug, Default)]
pub(super) struct IndexSet {
    levels: [Vec<u64>; LEVELS],
}

/// Enough for 2^24 numbers without a long top level.
const LEVELS: usize = 4;

impl IndexSet {
    /// Adds or removes a number.
    #[inline]
    pub(super) fn set(&mut self, index: u32, is_in: bool) {
        let mut index = index as usize;
        for level in &mut self.levels {
            let (word, bit) = (index / 64, 1 << (index % 64));
            if word >= level.len() {
                level.resize((word + 1).next_power_of_two(), 0);
            }
            let before = level[word];
            level[word] = if is_in { before | bit } else { before & !bit };
            // The levels above change only when the word becomes empty, or is empty no more.
            if (before == 0) == (level[word] == 0) {
                return;
            }
            index = word;
        }
    }

    /// The first number in the set from `from` on.
    pub(super) fn first_from(&self, from: u32) -> Option<u32> {
        let mut index = from as usize;
        let mut depth = 0;
        loop {
            let level = self.levels.get(depth)?;
            let rest = level.get(index / 64).map_or(0, |word| word & (u64::MAX << (index % 64)));
            if rest != 0 {
                let mut found = index / 64 * 64 + rest.trailing_zeros() as usize;
                for level in self.levels[..depth].iter().rev() {
                    found = found * 64 + level[found].trailing_zeros() as usize;
                }
                return Some(found as u32);
            }
            index = index / 64 + 1;
            depth += 1;
        }
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.levels.iter().map(|level| level.capacity() * size_of::<u64>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn it_behaves_as_an_ordered_set() {
        let mut set = IndexSet::default();
        let mut model = BTreeSet::new();
        let mut state = 1_u32;
        for _ in 0..20_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let index = (state >> 8) % [70, 5_000, 300_000, 2_000_000][(state >> 30) as usize];
            let is_in = state & 0x80 == 0;
            set.set(index, is_in);
            if is_in {
                _ = model.insert(index)
            } else {
                _ = model.remove(&index)
            }
            let from = (state >> 5) % 2_000_000;
            assert_eq!(set.first_from(from), model.range(from..).next().copied());
        }
        assert_eq!(set.first_from(u32::MAX), None);
    }
}
