//! What is known about the serialized size of a type without a value of it.

/// Bounds on the serialized size of a type in XCDR1, computed at compile time.
///
/// Where a value ends depends on where it starts, because of alignment. All alignments divide eight, so a table of the
/// end for each start below eight says everything. The end never gets smaller when the start or a length grows; the
/// largest end of a struct is therefore found by walking its members with their largest ends, exactly and not only as
/// an estimate. This matters for keys, where 16 or 17 bytes decide between two kinds of key hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The largest end offset for each start offset 0..8. Meaningless if not `bounded`.
    max_end: [usize; PERIOD],
    min_size: usize,
    is_bounded: bool,
    is_fixed: bool,
}

/// The largest alignment: layouts repeat after as many bytes.
const PERIOD: usize = 8;

impl Layout {
    /// No bytes at all: the start of a struct.
    pub const EMPTY: Self =
        Self { max_end: [0, 1, 2, 3, 4, 5, 6, 7], min_size: 0, is_bounded: true, is_fixed: true };

    /// A string without a bound: length, characters, NUL.
    pub const STRING: Self = Self::unbounded(5);

    /// A primitive of 1, 2, 4 or 8 bytes.
    pub const fn primitive(size: usize) -> Self {
        let mut layout = Self { min_size: size, ..Self::EMPTY };
        let mut start = 0;
        while start < PERIOD {
            layout.max_end[start] = start.next_multiple_of(size) + size;
            start += 1;
        }
        layout
    }

    /// A string of at most `max_len` octets, not counting the NUL.
    pub const fn bounded_string(max_len: usize) -> Self {
        let characters = Self::primitive(1).repeat(max_len.saturating_add(1));
        Self { min_size: 5, is_fixed: false, ..Self::primitive(4).then(characters) }
    }

    /// A sequence of elements of this layout, without a bound.
    pub const fn sequence(self) -> Self {
        Self::unbounded(4)
    }

    /// A sequence of at most `max_len` elements of this layout.
    pub const fn bounded_sequence(self, max_len: usize) -> Self {
        Self { min_size: 4, is_fixed: false, ..Self::primitive(4).then(self.repeat(max_len)) }
    }

    /// This layout followed by another.
    pub const fn then(self, next: Self) -> Self {
        let mut layout = Self {
            max_end: self.max_end,
            min_size: self.min_size.saturating_add(next.min_size),
            is_bounded: self.is_bounded && next.is_bounded,
            is_fixed: self.is_fixed && next.is_fixed,
        };
        let mut start = 0;
        while start < PERIOD {
            let end = self.max_end[start];
            layout.max_end[start] = next.max_end[end % PERIOD].saturating_add(end - end % PERIOD);
            start += 1;
        }
        layout
    }

    /// This layout `count` times in a row: an array. Takes a number of steps logarithmic in `count`.
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

    /// The smallest serialized size in bytes, without any alignment.
    pub const fn min_size(self) -> usize {
        self.min_size
    }

    /// The largest serialized size in bytes of a value that starts at an offset that is a multiple of eight; `None`
    /// if there is none, or none that fits into memory.
    pub const fn max_size(self) -> Option<usize> {
        if self.is_bounded && self.max_end[0] < usize::MAX - PERIOD { Some(self.max_end[0]) } else { None }
    }

    /// The serialized size in bytes of every value that starts at an offset that is a multiple of eight; `None` if it
    /// depends on the value.
    pub const fn fixed_size(self) -> Option<usize> {
        if self.is_fixed { self.max_size() } else { None }
    }

    const fn unbounded(min_size: usize) -> Self {
        Self { min_size, is_bounded: false, is_fixed: false, ..Self::EMPTY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // 4 + 6 bytes of string, 2 bytes of padding, 4 bytes: 16 and not one more.
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
    fn sizes_beyond_memory_are_unbounded_and_do_not_wrap() {
        let huge = Layout::primitive(8).repeat(usize::MAX / 2);
        assert_eq!(huge.max_size(), None);
        assert_eq!(huge.then(Layout::primitive(8)).max_size(), None);
    }
}
