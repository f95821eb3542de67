//! GAP: samples that will not arrive (RTPS 2.5 §8.3.8.4, §9.4.5.5).
//!
//! ```text
//! |    GAP 08     |X|X|X|X|X|X|G|E|      octetsToNextHeader        |
//! |                           reader id                            |
//! |                           writer id                            |
//! |                         gapStart (8)                           |
//! |          gapList: base (8), numBits (4), bitmap (0..32)        |
//! ```

use core::fmt;

use super::id;
use crate::bytes::{Cursor, Emit, Endianness, Filler};
use crate::error::{ParseError, Problem};
use crate::guid::EntityId;
use crate::sequence_number::{SequenceNumber, SequenceNumberSet};

/// The samples from `start` to before the base of `list`, and those in `list`, are irrelevant.
///
/// In a received one, `start` is never after the base: the specification allows such a range, which
/// can only mean an empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gap {
    /// The reader it is for; UNKNOWN for all.
    pub reader: EntityId,
    /// The writer that sends it.
    pub writer: EntityId,
    /// The start of the range.
    pub start: SequenceNumber,
    /// The end of the range, and single samples after it.
    pub list: SequenceNumberSet,
}

impl Gap {
    pub(super) fn parse(flags: u8, body: &[u8]) -> Result<Self, ParseError> {
        let mut cursor = Cursor::new(body, Endianness::from_flags(flags), "GAP");
        let reader = EntityId(cursor.array()?);
        let writer = EntityId(cursor.array()?);
        let start = SequenceNumber::parse_positive(&mut cursor)?;
        let list = SequenceNumberSet::parse(&mut cursor)?;
        if list.base() == SequenceNumber::ZERO {
            return cursor.fail(Problem::BadSet);
        }
        Ok(Self { reader, writer, start: start.min(list.base()), list })
    }
}

impl Emit for Gap {
    fn wire_len(&self) -> usize {
        4 + 16 + self.list.wire_len()
    }

    fn emit(&self, out: &mut [u8]) {
        let len = self.wire_len() - 4;
        let mut out = Filler::new(out);
        out.submessage(id::GAP, 0, len);
        out.bytes(&self.reader.0);
        out.bytes(&self.writer.0);
        self.start.emit(&mut out);
        self.list.emit(&mut out);
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GAP {}->{} {} to {}", self.writer, self.reader, self.start, self.list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: [u8; 32] = [
        0x08, 0x01, 28, 0, // id, flag E, octetsToNextHeader
        0, 0, 1, 4, // reader
        0, 0, 2, 3, // writer
        0, 0, 0, 0, 5, 0, 0, 0, // gapStart
        0, 0, 0, 0, 8, 0, 0, 0, // base
        0, 0, 0, 0, // numBits
    ];
    const BIG: [u8; 32] = [
        0x08, 0x00, 0, 28, 0, 0, 1, 4, 0, 0, 2, 3, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0,
    ];

    #[test]
    fn bytes_are_as_the_specification_draws_them() {
        let gap = Gap {
            reader: EntityId([0, 0, 1, 4]),
            writer: EntityId([0, 0, 2, 3]),
            start: SequenceNumber(5),
            list: SequenceNumberSet::new(SequenceNumber(8)),
        };
        let mut out = [0; 32];
        gap.emit(&mut out);
        assert_eq!(out, LITTLE);
        assert_eq!(Gap::parse(LITTLE[1], &LITTLE[4..]), Ok(gap));
        assert_eq!(Gap::parse(BIG[1], &BIG[4..]), Ok(gap));
        assert_eq!(gap.to_string(), "GAP 00000203->00000104 5 to 8/0:");
    }

    #[test]
    fn what_follows_the_set_is_read_over() {
        let plain = Gap::parse(BIG[1], &BIG[4..]);
        // Group information, a count of filtered samples, or what later versions add.
        let bytes = [&BIG[..], &[0xff; 20]].concat();
        for flags in 0..=0x7f {
            assert_eq!(Gap::parse(flags << 1, &bytes[4..]), plain);
        }
    }

    #[test]
    fn a_range_that_ends_before_it_begins_is_empty() {
        let mut bytes = BIG;
        bytes[19] = 9;
        let gap = Gap::parse(bytes[1], &bytes[4..]).unwrap();
        assert_eq!((gap.start, gap.list.base()), (SequenceNumber(8), SequenceNumber(8)));
    }

    #[test]
    fn numbers_that_no_sample_has_are_refused() {
        for (at, value, problem) in [
            (12, 0xff, Problem::BadSequenceNumber),
            (12, 0x7f, Problem::BadSequenceNumber),
            (19, 0, Problem::BadSequenceNumber),
            (20, 0xff, Problem::BadSet),
            (27, 0, Problem::BadSet),
            (30, 2, Problem::BadSet),
            (31, 1, Problem::Truncated),
        ] {
            let mut bytes = BIG;
            bytes[at] = value;
            if value == 0x7f {
                bytes[13..20].fill(0xff);
            }
            assert_eq!(
                Gap::parse(bytes[1], &bytes[4..]).unwrap_err().problem,
                problem,
                "byte {at} = {value}"
            );
        }
    }
}
