//! Fragment numbers and sets of them (RTPS 2.5 §8.3.5.6, §8.3.5.7, §9.4.2.8).

use crate::bytes::{Cursor, Filler};
use crate::error::{ParseError, Problem};
use crate::sequence_number::parse_bitmap;

/// The number of a fragment within its sample, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FragmentNumber(pub u32);

/// Up to 256 fragment numbers starting at a base. Valid by construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FragmentNumberSet {
    base: FragmentNumber,
    num_bits: u32,
    bitmap: [u32; 8],
}

impl FragmentNumberSet {
    /// Creates the empty set at `base`; at the first fragment if `base` is 0.
    pub const fn new(base: FragmentNumber) -> Self {
        let base = FragmentNumber(if base.0 == 0 { 1 } else { base.0 });
        Self { base, num_bits: 0, bitmap: [0; 8] }
    }

    /// Adds a number; `false` if it is outside of the 256 numbers that the set can hold.
    pub fn insert(&mut self, number: FragmentNumber) -> bool {
        let Some(offset) = number.0.checked_sub(self.base.0).filter(|offset| *offset < 256) else {
            return false;
        };
        self.bitmap[offset as usize / 32] |= 1 << (31 - offset % 32);
        self.num_bits = self.num_bits.max(offset + 1);
        true
    }

    /// Returns the first number that could be in the set.
    pub const fn base(&self) -> FragmentNumber {
        self.base
    }

    /// Iterates over the numbers in order.
    pub fn iter(&self) -> impl Iterator<Item = FragmentNumber> + '_ {
        (0..self.num_bits)
            .filter(|offset| self.bitmap[*offset as usize / 32] & 1 << (31 - offset % 32) != 0)
            .map(|offset| FragmentNumber(self.base.0 + offset))
    }

    /// Returns the encoded length in bytes.
    pub const fn wire_len(&self) -> usize {
        8 + 4 * self.num_bits.div_ceil(32) as usize
    }

    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let base = cursor.u32()?;
        let num_bits = cursor.u32()?;
        if base == 0 || base > u32::MAX - 256 || num_bits > 256 {
            return cursor.fail(Problem::BadSet);
        }
        Ok(Self { base: FragmentNumber(base), num_bits, bitmap: parse_bitmap(cursor, num_bits)? })
    }

    pub(crate) fn emit(&self, out: &mut Filler<'_>) {
        out.u32(self.base.0);
        out.u32(self.num_bits);
        self.bitmap.iter().take(self.num_bits.div_ceil(32) as usize).for_each(|word| out.u32(*word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_256_numbers_from_its_base() {
        let mut set = FragmentNumberSet::new(FragmentNumber(10));
        assert_eq!(set.wire_len(), 8);
        assert!(set.insert(FragmentNumber(10)) && set.insert(FragmentNumber(265)));
        assert!(!set.insert(FragmentNumber(266)) && !set.insert(FragmentNumber(9)));
        assert_eq!(set.iter().collect::<Vec<_>>(), [FragmentNumber(10), FragmentNumber(265)]);
        assert_eq!(set.wire_len(), 40);
    }

    #[test]
    fn no_set_begins_before_the_first_fragment_or_runs_over() {
        assert_eq!(FragmentNumberSet::new(FragmentNumber(0)).base(), FragmentNumber(1));
        let mut set = FragmentNumberSet::new(FragmentNumber(u32::MAX - 1));
        assert!(set.insert(FragmentNumber(u32::MAX)));
        assert_eq!(set.iter().collect::<Vec<_>>(), [FragmentNumber(u32::MAX)]);
    }
}
