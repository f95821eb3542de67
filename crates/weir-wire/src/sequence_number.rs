//! Sequence numbers and sets of them (RTPS 2.5 §8.3.5.4, §8.3.5.5, §9.4.2.5, §9.4.2.6).

use core::fmt;

use crate::bytes::{Cursor, Filler};
use crate::error::{ParseError, Problem};

/// The number of a sample among those of its writer, from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceNumber(pub i64);

impl SequenceNumber {
    /// Before the first.
    pub const ZERO: Self = Self(0);
    /// The first.
    pub const FIRST: Self = Self(1);
    /// The highest number that a sample can have. Higher ones are refused, so that adding a set's
    /// offset cannot overflow.
    pub const MAX: Self = Self(i64::MAX - 1024);
    /// No number: `{-1, 0}` on the wire.
    pub const UNKNOWN: Self = Self(-1 << 32);

    /// Returns the next number; the highest one returns itself.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns the previous number.
    #[inline]
    #[must_use]
    pub const fn prev(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    #[inline]
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let high = cursor.i32()?;
        let low = cursor.u32()?;
        Ok(Self(i64::from(high) << 32 | i64::from(low)))
    }

    /// Parses a number that a sample can have: at least 1, at most [`SequenceNumber::MAX`].
    #[inline]
    pub(crate) fn parse_positive(cursor: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let number = Self::parse(cursor)?;
        if number.0 < 1 || number > Self::MAX {
            return cursor.fail(Problem::BadSequenceNumber);
        }
        Ok(number)
    }

    #[inline]
    pub(crate) fn emit(self, out: &mut Filler<'_>) {
        out.i32((self.0 >> 32) as i32);
        out.u32(self.0 as u32);
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Up to 256 numbers starting at a base. Valid by construction.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SequenceNumberSet {
    base: SequenceNumber,
    num_bits: u32,
    bitmap: [u32; 8],
}

impl SequenceNumberSet {
    /// Creates the empty set at `base`; everything before `base` is not in it either.
    ///
    /// A set at 0, which a negative base is treated as, stays empty: some vendors expect it in the
    /// first ACKNACK.
    #[inline]
    pub const fn new(base: SequenceNumber) -> Self {
        let base = if base.0 < 0 { SequenceNumber::ZERO } else { base };
        Self { base, num_bits: 0, bitmap: [0; 8] }
    }

    /// Adds a number; `false` if it is outside of the 256 numbers that the set can hold, or if the
    /// base is 0.
    #[inline]
    pub fn insert(&mut self, number: SequenceNumber) -> bool {
        let offset = number.0.wrapping_sub(self.base.0);
        if !(0..256).contains(&offset) || self.base.0 == 0 {
            return false;
        }
        self.bitmap[offset as usize / 32] |= 1 << (31 - offset % 32);
        self.num_bits = self.num_bits.max(offset as u32 + 1);
        true
    }

    /// Makes the set cover the numbers up to this one without adding them. Returns `false` if it does not reach as far.
    pub fn cover(&mut self, number: SequenceNumber) -> bool {
        let offset = number.0.wrapping_sub(self.base.0);
        if offset >= 256 || self.base.0 == 0 {
            return false;
        }
        self.num_bits = self.num_bits.max(u32::try_from(offset + 1).unwrap_or(0));
        true
    }

    /// Returns whether the number is in the set.
    #[inline]
    pub fn contains(&self, number: SequenceNumber) -> bool {
        let offset = number.0.wrapping_sub(self.base.0);
        (0..i64::from(self.num_bits)).contains(&offset)
            && self.bitmap[offset as usize / 32] & 1 << (31 - offset % 32) != 0
    }

    /// Returns the first number that could be in the set.
    #[inline]
    pub const fn base(&self) -> SequenceNumber {
        self.base
    }

    /// Returns how many numbers from the base on the set covers.
    #[inline]
    pub const fn num_bits(&self) -> u32 {
        self.num_bits
    }

    /// Returns whether the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bitmap.iter().all(|word| *word == 0)
    }

    /// Iterates over the numbers in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = SequenceNumber> + '_ {
        (0..i64::from(self.num_bits))
            .map(|offset| SequenceNumber(self.base.0 + offset))
            .filter(|number| self.contains(*number))
    }

    /// Returns the encoded length in bytes.
    #[inline]
    pub const fn wire_len(&self) -> usize {
        12 + 4 * self.num_bits.div_ceil(32) as usize
    }

    #[inline]
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let base = SequenceNumber::parse(cursor)?;
        let num_bits = cursor.u32()?;
        // Base 0 occurs in the preemptive ACKNACKs of some vendors, which are empty.
        let is_base_valid = (1..=SequenceNumber::MAX.0).contains(&base.0) || base.0 == 0 && num_bits == 0;
        if num_bits > 256 || !is_base_valid {
            return cursor.fail(Problem::BadSet);
        }
        Ok(Self { base, num_bits, bitmap: parse_bitmap(cursor, num_bits)? })
    }

    pub(crate) fn emit(&self, out: &mut Filler<'_>) {
        self.base.emit(out);
        out.u32(self.num_bits);
        self.bitmap.iter().take(self.num_bits.div_ceil(32) as usize).for_each(|word| out.u32(*word));
    }
}

/// Parses `num_bits <= 256` bits; bits after them in the last word are cleared.
pub(crate) fn parse_bitmap(cursor: &mut Cursor<'_>, num_bits: u32) -> Result<[u32; 8], ParseError> {
    let mut bitmap = [0; 8];
    for word in bitmap.iter_mut().take(num_bits.div_ceil(32) as usize) {
        *word = cursor.u32()?;
    }
    if !num_bits.is_multiple_of(32)
        && let Some(last) = bitmap.get_mut(num_bits as usize / 32)
    {
        *last &= u32::MAX << (32 - num_bits % 32);
    }
    Ok(bitmap)
}

impl fmt::Display for SequenceNumberSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}:", self.base, self.num_bits)?;
        self.iter().enumerate().try_for_each(|(n, number)| {
            let separator = if n == 0 { "" } else { "," };
            write!(f, "{separator}{number}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Endianness;

    #[test]
    fn a_set_holds_256_numbers_from_its_base() {
        let mut set = SequenceNumberSet::new(SequenceNumber(10));
        assert!(set.is_empty() && set.wire_len() == 12);
        assert!(set.insert(SequenceNumber(10)) && set.insert(SequenceNumber(265)));
        assert!(!set.insert(SequenceNumber(266)) && !set.insert(SequenceNumber(9)));
        assert_eq!(set.iter().collect::<Vec<_>>(), [SequenceNumber(10), SequenceNumber(265)]);
        assert_eq!((set.num_bits(), set.wire_len()), (256, 44));
        assert_eq!(set.to_string(), "10/256:10,265");
        assert!(set.contains(SequenceNumber(265)) && !set.contains(SequenceNumber(266)));
        assert!(!set.contains(SequenceNumber(11)) && !set.contains(SequenceNumber(i64::MIN)));
        assert!(!set.insert(SequenceNumber(i64::MIN)));
    }

    #[test]
    fn a_set_from_zero_on_stays_empty() {
        for base in [SequenceNumber::ZERO, SequenceNumber::UNKNOWN] {
            let mut set = SequenceNumberSet::new(base);
            assert_eq!(set.base(), SequenceNumber::ZERO);
            assert!(!set.insert(SequenceNumber(0)) && !set.insert(SequenceNumber(1)));
            assert_eq!(set, SequenceNumberSet::new(SequenceNumber::ZERO));
        }
    }

    #[test]
    fn bits_behind_the_last_number_are_not_in_the_set() {
        let bytes = [0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 33, 0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
        let set = SequenceNumberSet::parse(&mut Cursor::new(&bytes, Endianness::Big, "a set")).unwrap();
        assert_eq!(set.iter().collect::<Vec<_>>(), [SequenceNumber(5), SequenceNumber(37)]);
        assert_eq!(set.iter().rev().collect::<Vec<_>>(), [SequenceNumber(37), SequenceNumber(5)]);
        assert_eq!(set.num_bits(), 33);
    }
}
