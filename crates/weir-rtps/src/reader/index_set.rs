//! A set of small numbers with a fast search for the next member, however sparse it is.

use alloc::vec::Vec;

/// A tree of bit sets. A bit says whether the word below it may have bits set: it is set with the
/// first of them, and cleared when a search finds the word empty. A number that is added and
/// removed repeatedly thus changes only the lowest level.
#[derive(Debug, Default)]
pub(super) struct IndexSet {
    levels: [Vec<u64>; LEVELS],
}

fn words_of_levels(end: usize) -> [usize; LEVELS] {
    let mut numbers = end.max(1);
    [(); LEVELS].map(|()| {
        numbers = numbers.div_ceil(64);
        numbers.next_power_of_two()
    })
}

/// Enough for 2^24 numbers with a single word at the top.
const LEVELS: usize = 4;

impl IndexSet {
    /// Adds or removes a number.
    #[inline]
    pub(super) fn set(&mut self, index: u32, is_in: bool) {
        let (word, bit) = (index as usize / 64, 1_u64 << (index % 64));
        let [lowest, above, ..] = &mut self.levels;
        let is_known = || above.get(word / 64).is_some_and(|words| words & (1 << (word % 64)) != 0);
        match lowest.get_mut(word) {
            Some(bits) if !is_in => *bits &= !bit,
            Some(bits) if *bits != 0 || is_known() => *bits |= bit,
            _ if !is_in => {}
            _ => self.begin(index),
        }
    }

    /// Adds a number to a word that the level above does not know to have any.
    #[inline(never)]
    fn begin(&mut self, index: u32) {
        let mut index = index as usize;
        for (depth, level) in self.levels.iter_mut().enumerate() {
            let (word, bit) = (index / 64, 1 << (index % 64));
            if word >= level.len() {
                level.resize((word + 1).next_power_of_two(), 0);
            }
            let before = level[word];
            level[word] |= bit;
            // Above the lowest level, a bit that was set before is known to the levels above it.
            if depth > 0 && before & bit != 0 {
                return;
            }
            index = word;
        }
    }

    /// Reserves memory for the numbers below `end`.
    pub(super) fn reserve(&mut self, end: usize) {
        for (level, words) in self.levels.iter_mut().zip(words_of_levels(end)) {
            level.reserve_exact(words);
        }
    }

    /// Memory for the numbers below `end`, in bytes.
    pub(super) fn bytes(end: usize) -> usize {
        words_of_levels(end).into_iter().sum::<usize>() * size_of::<u64>()
    }

    /// The first member from `from` on.
    pub(super) fn first_from(&mut self, from: u32) -> Option<u32> {
        let mut index = from as usize;
        let mut depth = 0;
        loop {
            let level = self.levels.get(depth)?;
            let rest = level.get(index / 64).map_or(0, |word| word & (u64::MAX << (index % 64)));
            if rest == 0 {
                index = index / 64 + 1;
                depth += 1;
                continue;
            }
            let found = index / 64 * 64 + rest.trailing_zeros() as usize;
            if depth == 0 {
                return Some(found as u32);
            }
            if self.levels[depth - 1][found] == 0 {
                self.levels[depth][found / 64] &= !(1 << (found % 64));
            } else {
                depth -= 1;
                index = found * 64;
            }
        }
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.levels.iter().map(|level| level.capacity() * size_of::<u64>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use weir_netsim::Rng;

    use super::*;

    #[test]
    fn it_behaves_as_an_ordered_set() {
        let mut set = IndexSet::default();
        let mut model = BTreeSet::new();
        let mut random = Rng::new(1);
        for _ in 0..20_000 {
            let end = [70, 5_000, 300_000, 2_000_000][random.below(4) as usize];
            let index = random.below(end) as u32;
            let is_in = random.chance(0.5);
            set.set(index, is_in);
            if is_in {
                _ = model.insert(index)
            } else {
                _ = model.remove(&index)
            }
            let from = random.below(2_000_000) as u32;
            assert_eq!(set.first_from(from), model.range(from..).next().copied());
        }
        assert_eq!(set.first_from(u32::MAX), None);
    }
}
