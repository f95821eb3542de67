//! Byte orders, encoding versions and extensibility kinds.

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endianness {
    /// Most significant byte first.
    Big,
    /// Least significant byte first.
    Little,
}

/// The version of the encoding rules (DDS-XTypes 1.3, 7.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Plain CDR: eight-byte primitives are aligned to eight bytes, nothing is delimited.
    Xcdr1,
    /// Plain and delimited CDR2: nothing is aligned to more than four bytes; appendable structs and
    /// collections of non-primitive elements are preceded by their length in bytes.
    Xcdr2,
    /// As XCDR2, but structs are never preceded by their length, as if all were final.
    ///
    /// The form for key hashes (DDS-XTypes 1.3, 7.6.8). Never the form of a payload.
    PlainXcdr2,
}

/// How a type may change between two programs that exchange it (DDS-XTypes 1.3, 7.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extensibility {
    /// Both sides have the same members.
    Final,
    /// One side may have more members at the end.
    Appendable,
    /// Members are found by their id. Not supported by the derive macro.
    Mutable,
}

impl Encoding {
    /// The largest alignment of a primitive, in bytes.
    #[inline(always)]
    pub const fn max_alignment(self) -> usize {
        match self {
            Self::Xcdr1 => 8,
            Self::Xcdr2 | Self::PlainXcdr2 => 4,
        }
    }

    /// The alignment of a primitive of `size` bytes (1, 2, 4 or 8).
    #[inline(always)]
    pub const fn alignment(self, size: usize) -> usize {
        if size < self.max_alignment() { size } else { self.max_alignment() }
    }

    /// The first offset at or after `offset` that is aligned for a primitive of `size` bytes (1, 2,
    /// 4 or 8).
    #[inline(always)]
    pub const fn align(self, offset: usize, size: usize) -> usize {
        let alignment = self.alignment(size);
        (offset + (alignment - 1)) & !(alignment - 1)
    }

    /// The offset after the delimiter of collections of non-primitive elements; `offset` itself in
    /// XCDR1, which has none.
    #[inline(always)]
    pub const fn delimiter_end(self, offset: usize) -> usize {
        if self.delimits_collections() { self.align(offset, 4) + 4 } else { offset }
    }

    /// The offset after the delimiter of appendable structs and unions; `offset` itself in
    /// encodings without one.
    #[inline(always)]
    pub const fn appendable_delimiter_end(self, offset: usize) -> usize {
        if self.delimits_appendables() { self.align(offset, 4) + 4 } else { offset }
    }

    /// Whether collections of non-primitive elements are preceded by their length in bytes.
    #[inline(always)]
    pub const fn delimits_collections(self) -> bool {
        !matches!(self, Self::Xcdr1)
    }

    /// Whether appendable structs and unions are preceded by their length in bytes.
    #[inline(always)]
    pub const fn delimits_appendables(self) -> bool {
        matches!(self, Self::Xcdr2)
    }

    /// Whether the members of a key are in the order of their ids, not of their declaration (DDS-XTypes 1.3, 7.6.8).
    #[inline(always)]
    pub const fn orders_keys_by_id(self) -> bool {
        matches!(self, Self::PlainXcdr2)
    }

    /// The encoding of the key for the key hash of samples in this encoding.
    #[inline(always)]
    pub const fn of_key_hash(self) -> Self {
        match self {
            Self::Xcdr1 => Self::Xcdr1,
            Self::Xcdr2 | Self::PlainXcdr2 => Self::PlainXcdr2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_byte_primitives_are_aligned_to_four_in_xcdr2() {
        assert_eq!(Encoding::Xcdr1.align(1, 8), 8);
        assert_eq!(Encoding::Xcdr2.align(1, 8), 4);
        assert_eq!(Encoding::Xcdr2.align(8, 8), 8);
        assert_eq!(Encoding::Xcdr1.align(5, 1), 5);
        assert_eq!(Encoding::Xcdr1.align(5, 2), 6);
    }

    #[test]
    fn only_xcdr2_has_delimiters() {
        assert_eq!(Encoding::Xcdr1.delimiter_end(3), 3);
        assert_eq!(Encoding::Xcdr2.delimiter_end(3), 8);
        assert_eq!(Encoding::PlainXcdr2.delimiter_end(3), 8);
        assert_eq!(Encoding::Xcdr2.appendable_delimiter_end(3), 8);
        assert_eq!(Encoding::PlainXcdr2.appendable_delimiter_end(3), 3);
    }
}
