//! A set of small numbers of which the next one is found at once, however few there are.

/// Each bit of a level tells whether a word of the level below may have any bit set: it is set with the first one, and
/// cleared when a search finds the word empty. A number that comes and goes all the time costs one level.
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

    /// Adds a number to a word of which the level above does not know that it may have one.
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
            // What may have bits set is known to the levels above; of the lowest, that is what is looked at here.
            if depth > 0 && before & bit != 0 {
                return;
            }
            index = word;
        }
    }

    /// The first number in the set from `from` on.
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
