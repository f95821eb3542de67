//! Runs: consecutive members at constant offsets from each other.
//!
//! A run is checked once. Its own writer or reader starts at 0 and has the run's length, which the
//! compiler knows: of alignment and checks only loads and stores remain.

use crate::{CdrReader, Encoding, Layout};

/// The extent of consecutive members, in each encoding in which it is the same for all values.
///
/// Computed at compile time by generated code, for [`CdrWriter::run`](crate::CdrWriter::run) and
/// [`CdrReader::run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    xcdr1: Option<Extent>,
    xcdr2: Option<Extent>,
    plain_xcdr2: Option<Extent>,
}

/// The extent of a run in one encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Length in bytes, without leading padding.
    pub(crate) len: usize,
    /// Alignment of the first primitive in bytes, which determines the leading padding.
    pub(crate) first_alignment: usize,
    /// Largest alignment in bytes: the offsets only hold from a multiple of it on.
    pub(crate) max_alignment: usize,
}

/// What a reader finds in place of a run.
#[derive(Clone, Debug)]
pub enum RunData<'a> {
    /// The complete run, in its own reader.
    Whole(CdrReader<'a>),
    /// Less: some members are missing.
    Short,
    /// Members at other offsets, or of unknown size: read them one by one.
    Unknown,
}

impl Run {
    /// Makes the run of members with this total layout.
    pub const fn of(layout: Layout) -> Self {
        Self {
            xcdr1: layout.extent(Encoding::Xcdr1),
            xcdr2: layout.extent(Encoding::Xcdr2),
            plain_xcdr2: layout.extent(Encoding::PlainXcdr2),
        }
    }

    /// Returns the extent after `position`, if the members are at their offsets there.
    #[inline(always)]
    pub(crate) const fn at(self, position: usize, encoding: Encoding) -> Option<Extent> {
        let extent = match encoding {
            Encoding::Xcdr1 => self.xcdr1,
            Encoding::Xcdr2 => self.xcdr2,
            Encoding::PlainXcdr2 => self.plain_xcdr2,
        };
        match extent {
            Some(extent) if extent.begins_at(encoding.align(position, extent.first_alignment)) => {
                Some(extent)
            }
            _ => None,
        }
    }
}

impl Extent {
    /// Returns whether the offsets are the same as from 0 if the first primitive is at `start`.
    #[inline(always)]
    const fn begins_at(self, start: usize) -> bool {
        // If the first member has the largest alignment, this is known without the start.
        self.first_alignment == self.max_alignment || start.is_multiple_of(self.max_alignment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTE: Layout = Layout::primitive(1);
    const WORD: Layout = Layout::primitive(4);
    const DOUBLE: Layout = Layout::primitive(8);

    fn lens(layout: Layout, position: usize) -> [Option<usize>; 3] {
        [Encoding::Xcdr1, Encoding::Xcdr2, Encoding::PlainXcdr2]
            .map(|encoding| Run::of(layout).at(position, encoding).map(|extent| extent.len))
    }

    #[test]
    fn a_run_is_where_its_offsets_are_those_from_0() {
        let rising = BYTE.then(DOUBLE);
        assert_eq!(lens(rising, 0), [Some(16), Some(12), Some(12)]);
        assert_eq!(lens(rising, 4), [None, Some(12), Some(12)]);
        assert_eq!(lens(rising, 3), [None; 3]);
        let falling = DOUBLE.then(WORD).then(BYTE);
        for position in 0..9 {
            assert_eq!(lens(falling, position), [Some(13); 3], "padding comes first");
        }
        assert_eq!(
            lens(BYTE.repeat(6).then(WORD), 3),
            [None; 3],
            "one more or less fits in front of the word"
        );
    }

    #[test]
    fn what_has_no_known_size_is_no_run() {
        assert_eq!(lens(WORD.then(Layout::STRING), 0), [None; 3]);
        assert_eq!(lens(WORD.then(BYTE.optional()), 0), [None; 3]);
        assert_eq!(lens(WORD.then(BYTE.bounded_sequence(3)), 0), [None; 3]);
        assert_eq!(lens(WORD.then(BYTE.or(WORD)), 0), [None; 3]);
        assert_eq!(lens(WORD.then(DOUBLE.or(DOUBLE)), 0), [Some(16), Some(12), Some(12)]);
        assert_eq!(lens(WORD.repeat(usize::MAX), 0), [None; 3]);
    }

    #[test]
    fn what_is_delimited_is_no_run_where_it_is() {
        assert_eq!(lens(WORD.then(WORD.appendable()), 0), [Some(8), None, Some(8)]);
        assert_eq!(lens(WORD.then(WORD.repeat(2).delimited()), 0), [Some(12), None, None]);
        assert_eq!(lens(WORD.then(WORD.appendable().repeat(2)), 0), [Some(12), None, Some(12)]);
    }

    #[test]
    fn nothing_in_front_leaves_the_first_alignment_as_it_is() {
        let extent = |layout: Layout| layout.extent(Encoding::Xcdr1).map(|extent| extent.first_alignment);
        assert_eq!(extent(DOUBLE.repeat(0).then(WORD).then(BYTE)), Some(4));
        assert_eq!(extent(BYTE.or(BYTE).then(WORD)), Some(1));
        assert_eq!(extent(Layout::EMPTY), Some(1));
    }
}
