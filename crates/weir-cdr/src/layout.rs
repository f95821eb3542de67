//! Bounds on the serialized size of a type, known without a value.

use crate::Encoding;
use crate::run::Extent;

/// Bounds on the serialized size of a type, computed at compile time.
///
/// They hold for XCDR1 and for XCDR2 without delimiters of structs, as in keys
/// ([`Encoding::PlainXcdr2`]).
///
/// Because of alignment, the end of a value depends on its start. All alignments divide eight, so a
/// table of the end for each start below eight is complete. The end never decreases when the start
/// or a length grows. So walking the members of a struct with their maximum ends gives its exact
/// maximum end, not just an estimate. This matters for keys, where 16 or 17 bytes decide between
/// two kinds of key hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The largest end offset for each start offset 0..8, in XCDR1. Meaningless if not `bounded`.
    max_end: [usize; PERIOD],
    /// The same in XCDR2.
    max_end_2: [usize; PERIOD],
    min_size: usize,
    /// The same in XCDR2, where the members of an appendable type may be missing, but not its length.
    min_size_2: usize,
    is_bounded: bool,
    is_fixed: bool,
    /// Whether all values have the same size in XCDR2 and nothing is delimited; and the same
    /// including appendable types.
    is_fixed_2: bool,
    is_fixed_2_plain: bool,
    /// Whether all values have the same bytes in XCDR1 and in XCDR2 without delimiters of structs.
    is_same_in_xcdr2: bool,
    /// The size of the first primitive; 0 if there is none.
    first: usize,
    /// The size of the largest primitive; 1 if there is none.
    largest: usize,
}

/// The largest alignment, and so the period of layouts.
const PERIOD: usize = 8;

/// The size of the length before an appendable struct or union in XCDR2, in bytes.
const DELIMITER_LEN: usize = 4;

impl Layout {
    /// No bytes: the start of a struct.
    pub const EMPTY: Self = Self {
        max_end: [0, 1, 2, 3, 4, 5, 6, 7],
        max_end_2: [0, 1, 2, 3, 4, 5, 6, 7],
        min_size: 0,
        min_size_2: 0,
        is_bounded: true,
        is_fixed: true,
        is_fixed_2: true,
        is_fixed_2_plain: true,
        is_same_in_xcdr2: true,
        first: 0,
        largest: 1,
    };

    /// A string without a bound: length, characters, NUL.
    pub const STRING: Self = Self::unbounded(5);

    /// A primitive of 1, 2, 4 or 8 bytes.
    pub const fn primitive(size: usize) -> Self {
        let is_same_in_xcdr2 = Encoding::Xcdr1.alignment(size) == Encoding::Xcdr2.alignment(size);
        let mut layout = Self { is_same_in_xcdr2, first: size, largest: size, ..Self::EMPTY.at_least(size) };
        let mut start = 0;
        while start < PERIOD {
            layout.max_end[start] = Encoding::Xcdr1.align(start, size) + size;
            layout.max_end_2[start] = Encoding::Xcdr2.align(start, size) + size;
            start += 1;
        }
        layout
    }

    /// A string of at most `max_len` bytes, without the NUL.
    pub const fn bounded_string(max_len: usize) -> Self {
        let characters = Self::primitive(1).repeat(max_len.saturating_add(1));
        Self::primitive(4).then(characters).variable().at_least(5)
    }

    /// A sequence of elements of this layout, without a bound.
    pub const fn sequence(self) -> Self {
        Self { is_same_in_xcdr2: self.is_same_in_xcdr2, ..Self::unbounded(4) }
    }

    /// A sequence of at most `max_len` elements of this layout.
    pub const fn bounded_sequence(self, max_len: usize) -> Self {
        Self::primitive(4).then(self.repeat(max_len)).variable().at_least(4)
    }

    /// This layout followed by another.
    pub const fn then(self, next: Self) -> Self {
        Self {
            max_end: chain(self.max_end, next.max_end),
            max_end_2: chain(self.max_end_2, next.max_end_2),
            min_size: self.min_size.saturating_add(next.min_size),
            min_size_2: self.min_size_2.saturating_add(next.min_size_2),
            is_bounded: self.is_bounded && next.is_bounded,
            is_fixed: self.is_fixed && next.is_fixed,
            is_fixed_2: self.is_fixed_2 && next.is_fixed_2,
            is_fixed_2_plain: self.is_fixed_2_plain && next.is_fixed_2_plain,
            is_same_in_xcdr2: self.is_same_in_xcdr2 && next.is_same_in_xcdr2,
            first: if self.first == 0 { next.first } else { self.first },
            largest: larger(self.largest, next.largest),
        }
    }

    /// This layout or another: alternatives of a union.
    pub const fn or(self, other: Self) -> Self {
        let mut layout = Self {
            min_size: smaller(self.min_size, other.min_size),
            min_size_2: smaller(self.min_size_2, other.min_size_2),
            is_bounded: self.is_bounded && other.is_bounded,
            is_fixed: self.is_fixed && other.is_fixed,
            is_fixed_2: self.is_fixed_2 && other.is_fixed_2,
            is_fixed_2_plain: self.is_fixed_2_plain && other.is_fixed_2_plain,
            is_same_in_xcdr2: self.is_same_in_xcdr2 && other.is_same_in_xcdr2,
            // The smaller one implies less padding before a run than there may be, which only makes
            // runs fewer.
            first: if self.first == other.first { self.first } else { 1 },
            largest: larger(self.largest, other.largest),
            ..self
        };
        let mut start = 0;
        while start < PERIOD {
            layout.is_fixed &= self.max_end[start] == other.max_end[start];
            layout.is_fixed_2 &= self.max_end_2[start] == other.max_end_2[start];
            layout.is_fixed_2_plain &= self.max_end_2[start] == other.max_end_2[start];
            layout.max_end[start] = larger(self.max_end[start], other.max_end[start]);
            layout.max_end_2[start] = larger(self.max_end_2[start], other.max_end_2[start]);
            start += 1;
        }
        layout
    }

    /// An optional value of this layout, with a flag (XCDR2) or a header (XCDR1) before it.
    pub const fn optional(self) -> Self {
        // XCDR1: the long form of the header takes 12 bytes, and the value's offsets are relative
        // to its own start.
        let present = Self { max_end_2: Self::primitive(1).then(self).max_end_2, ..self };
        let mut layout = Self { is_same_in_xcdr2: false, ..present.variable().at_least(1) };
        let mut start = 0;
        while start < PERIOD {
            let header = Encoding::Xcdr1.align(start, 4) + 12;
            layout.max_end[start] = self.max_end[0].saturating_add(header);
            start += 1;
        }
        layout
    }

    /// A collection of this layout with its XCDR2 delimiter.
    pub const fn delimited(self) -> Self {
        let delimited = Self::primitive(4).then(self);
        Self {
            max_end_2: delimited.max_end_2,
            min_size_2: delimited.min_size_2,
            is_fixed_2: false,
            is_fixed_2_plain: false,
            is_same_in_xcdr2: false,
            ..self
        }
    }

    /// A value of this layout in an appendable type. In XCDR2 only its length is certain to be there: an older
    /// version of the type may have no more than its first members.
    pub const fn appendable(self) -> Self {
        Self { min_size_2: DELIMITER_LEN, is_fixed_2: false, ..self }
    }

    /// This layout in XCDR1, and another one of the same members in another order in XCDR2.
    pub const fn or_in_xcdr2(self, other: Self) -> Self {
        Self { max_end_2: other.max_end_2, is_same_in_xcdr2: false, ..self.variable() }
    }

    /// This layout repeated `count` times: an array. Takes O(log `count`) steps.
    pub const fn repeat(self, count: usize) -> Self {
        let (mut layout, mut power, mut left) = (Self::EMPTY, self, count);
        while left > 0 {
            if left % 2 == 1 {
                layout = layout.then(power);
            }
            power = power.then(power);
            left /= 2;
        }
        layout
    }

    /// The minimum serialized size in bytes, without alignment.
    pub const fn min_size(self) -> usize {
        self.min_size
    }

    /// The same in any encoding; in XCDR2 also of values of older versions of appendable types.
    #[inline(always)]
    pub const fn min_size_in(self, encoding: Encoding) -> usize {
        match encoding {
            Encoding::Xcdr1 | Encoding::PlainXcdr2 => self.min_size,
            Encoding::Xcdr2 => self.min_size_2,
        }
    }

    /// Whether all values have the same bytes in XCDR1 and in [`Encoding::PlainXcdr2`].
    pub const fn is_same_in_xcdr2(self) -> bool {
        self.is_same_in_xcdr2
    }

    /// The minimum sizes for [`CdrReader::take_count`](crate::CdrReader::take_count).
    pub(crate) const fn min_sizes(self) -> [usize; 2] {
        [self.min_size, self.min_size_2]
    }

    /// The maximum serialized size in bytes of a value that starts at a multiple of eight.
    ///
    /// `None` if there is no maximum, or none that fits into memory.
    pub const fn max_size(self) -> Option<usize> {
        self.max_size_in(Encoding::Xcdr1)
    }

    /// The same in any encoding; in XCDR2 without the delimiters of appendable structs.
    pub const fn max_size_in(self, encoding: Encoding) -> Option<usize> {
        let end = match encoding {
            Encoding::Xcdr1 => self.max_end[0],
            Encoding::Xcdr2 | Encoding::PlainXcdr2 => self.max_end_2[0],
        };
        if self.is_bounded && end < usize::MAX - PERIOD { Some(end) } else { None }
    }

    /// The serialized size in bytes of every value that starts at a multiple of eight; `None` if it
    /// varies.
    pub const fn fixed_size(self) -> Option<usize> {
        if self.is_fixed { self.max_size() } else { None }
    }

    /// The extent of consecutive members of this layout, if it is the same for all values. A reader
    /// does not have to trust a length for it.
    pub(crate) const fn extent(self, encoding: Encoding) -> Option<Extent> {
        let is_fixed = match encoding {
            Encoding::Xcdr1 => self.is_fixed,
            Encoding::Xcdr2 => self.is_fixed_2,
            Encoding::PlainXcdr2 => self.is_fixed_2_plain,
        };
        match self.max_size_in(encoding) {
            Some(len) if is_fixed => Some(Extent {
                len,
                first_alignment: encoding.alignment(larger(self.first, 1)),
                max_alignment: encoding.alignment(self.largest),
            }),
            _ => None,
        }
    }

    const fn unbounded(min_size: usize) -> Self {
        Self { is_bounded: false, ..Self::EMPTY.variable().at_least(min_size) }
    }

    /// The same with another minimum size.
    const fn at_least(self, min_size: usize) -> Self {
        Self { min_size, min_size_2: min_size, ..self }
    }

    /// The same, but variable.
    const fn variable(self) -> Self {
        Self { is_fixed: false, is_fixed_2: false, is_fixed_2_plain: false, ..self }
    }
}

/// The ends of two consecutive values.
const fn chain(first: [usize; PERIOD], second: [usize; PERIOD]) -> [usize; PERIOD] {
    let mut ends = first;
    let mut start = 0;
    while start < PERIOD {
        let end = first[start];
        ends[start] = second[end % PERIOD].saturating_add(end - end % PERIOD);
        start += 1;
    }
    ends
}

const fn larger(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

const fn smaller(a: usize, b: usize) -> usize {
    if a < b { a } else { b }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;
    use crate::CdrValue;

    #[test]
    fn alignment_between_members_is_counted() {
        let layout =
            Layout::EMPTY.then(Layout::primitive(1)).then(Layout::primitive(8)).then(Layout::primitive(2));
        assert_eq!(layout.fixed_size(), Some(18));
        assert_eq!(layout.max_size(), Some(18));
        assert_eq!(layout.min_size(), 11);
    }

    #[test]
    fn array_elements_are_aligned_each() {
        let element = Layout::primitive(4).then(Layout::primitive(1));
        assert_eq!(element.repeat(3).fixed_size(), Some(8 + 8 + 5));
        assert_eq!(element.repeat(0).fixed_size(), Some(0));
        assert_eq!(Layout::primitive(1).repeat(1_000_000_007).fixed_size(), Some(1_000_000_007));
    }

    #[test]
    fn bounds_are_exact_behind_variable_members() {
        // 4 + 6 bytes of string, 2 bytes of padding, 4 bytes: exactly 16.
        let layout = Layout::bounded_string(5).then(Layout::primitive(4));
        assert_eq!(layout.max_size(), Some(16));
        assert_eq!(layout.fixed_size(), None);
        assert_eq!(Layout::bounded_string(6).then(Layout::primitive(4)).max_size(), Some(16));
        assert_eq!(Layout::bounded_string(8).then(Layout::primitive(4)).max_size(), Some(20));
    }

    #[test]
    fn sequences_have_a_size_only_when_bounded() {
        assert_eq!(Layout::primitive(8).bounded_sequence(3).max_size(), Some(8 + 24));
        assert_eq!(Layout::primitive(8).sequence().max_size(), None);
        assert_eq!(Layout::primitive(1).then(Layout::STRING).max_size(), None);
        assert_eq!(Layout::STRING.bounded_sequence(2).max_size(), None);
    }

    #[test]
    fn xcdr2_is_counted_beside_xcdr1() {
        let layout = Layout::primitive(4).then(Layout::primitive(8)).then(Layout::primitive(4));
        assert_eq!(layout.max_size(), Some(20));
        assert_eq!(layout.max_size_in(Encoding::PlainXcdr2), Some(16));
        assert_eq!(layout.repeat(2).delimited().max_size_in(Encoding::PlainXcdr2), Some(36));
        assert_eq!(layout.repeat(2).delimited().max_size(), layout.repeat(2).max_size());
    }

    #[test]
    fn what_is_aligned_delimited_or_ordered_differs_between_the_encodings() {
        let (word, double) = (Layout::primitive(4), Layout::primitive(8));
        let text = word.then(Layout::STRING);
        for same in [word, text, text.appendable(), Layout::bounded_string(9), word.sequence(), word.or(text)]
        {
            assert!(same.is_same_in_xcdr2(), "{same:?}");
        }
        let by_id = text.or_in_xcdr2(Layout::STRING.then(word));
        for differs in
            [double, text.then(double), double.sequence(), word.optional(), text.delimited(), by_id]
        {
            assert!(!differs.is_same_in_xcdr2(), "{differs:?}");
        }
        assert!(!Vec::<String>::LAYOUT.is_same_in_xcdr2());
    }

    #[test]
    fn of_an_appendable_value_only_the_length_is_certain_in_xcdr2() {
        let min_sizes = |layout: Layout| {
            [Encoding::Xcdr1, Encoding::Xcdr2, Encoding::PlainXcdr2].map(|it| layout.min_size_in(it))
        };
        let appendable = Layout::primitive(4).then(Layout::primitive(8)).appendable();
        assert_eq!(min_sizes(appendable), [12, 4, 12]);
        assert_eq!(min_sizes(Layout::primitive(1).then(appendable)), [13, 5, 13]);
        assert_eq!(min_sizes(appendable.repeat(2).delimited()), [24, 12, 24]);
        assert_eq!(min_sizes(appendable.or(Layout::STRING)), [5, 4, 5]);
        assert_eq!(min_sizes(appendable.optional()), [1; 3]);
    }

    #[test]
    fn alternatives_have_the_bounds_of_the_larger() {
        let either = Layout::primitive(1).or(Layout::primitive(8));
        assert_eq!((either.max_size(), either.fixed_size(), either.min_size()), (Some(8), None, 1));
        assert_eq!(Layout::primitive(4).or(Layout::primitive(4)).fixed_size(), Some(4));
        assert_eq!(Layout::primitive(4).or(Layout::STRING).max_size(), None);
    }

    #[test]
    fn sizes_beyond_memory_are_unbounded_and_do_not_wrap() {
        let huge = Layout::primitive(8).repeat(usize::MAX / 2);
        assert_eq!(huge.max_size(), None);
        assert_eq!(huge.then(Layout::primitive(8)).max_size(), None);
    }
}
