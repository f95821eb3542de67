//! GAP: which samples will not come (RTPS 2.5 §8.3.8.4, §9.4.5.5).
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gap {
    /// For whom; UNKNOWN for all.
    pub reader: EntityId,
    /// Who says so.
    pub writer: EntityId,
    /// The first of the range.
    pub start: SequenceNumber,
    /// The end of the range, and single samples behind it.
    pub list: SequenceNumberSet,
}

impl Gap {
    pub(super) fn parse(flags: u8, body: &[u8]) -> Result<Self, ParseError> {
        let mut cursor = Cursor::new(body, Endianness::from_flags(flags), "GAP");
        let gap = Self {
            reader: EntityId(cursor.array()?),
            writer: EntityId(cursor.array()?),
            start: SequenceNumber::parse_positive(&mut cursor)?,
            list: SequenceNumberSet::parse(&mut cursor)?,
        };
        if gap.list.base() < gap.start {
            return cursor.fail(Problem::BadSequenceNumber);
        }
        Ok(gap)
    }
}

impl Emit for Gap {
    fn wire_len(&self) -> usize {
        4 + 16 + self.list.wire_len()
    }

    fn emit(&self, out: &mut [u8]) {
        let len = self.wire_len() as u16 - 4;
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
    fn octets_are_as_the_specification_draws_them() {
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
    }
}
