//! HEARTBEAT: samples available (RTPS 2.5 §8.3.8.6, §9.4.5.7).
//!
//! ```text
//! | HEARTBEAT 07  |X|X|X|X|G|L|F|E|      octetsToNextHeader        |
//! |                           reader id                            |
//! |                           writer id                            |
//! |                         firstSN (8)                            |
//! |                         lastSN (8)                             |
//! |                             count                              |
//! ```

use core::fmt;

use super::id;
use crate::bytes::{Cursor, Emit, Endianness, Filler};
use crate::error::{ParseError, Problem};
use crate::guid::EntityId;
use crate::sequence_number::SequenceNumber;

/// The writer has the samples from `first` to `last`; none if `last` is `first - 1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Heartbeat {
    /// The reader it is for; UNKNOWN for all.
    pub reader: EntityId,
    /// The writer that sends it.
    pub writer: EntityId,
    /// The first sample that can be requested.
    pub first: SequenceNumber,
    /// The last sample written.
    pub last: SequenceNumber,
    /// Increases with every new one.
    pub count: u32,
    /// Whether no response is requested.
    pub is_final: bool,
    /// Whether the writer asserts its liveliness manually.
    pub is_liveliness: bool,
}

impl Heartbeat {
    const FINAL: u8 = 0x02;
    const LIVELINESS: u8 = 0x04;

    #[inline]
    pub(super) fn parse(flags: u8, body: &[u8]) -> Result<Self, ParseError> {
        let mut cursor = Cursor::new(body, Endianness::from_flags(flags), "HEARTBEAT");
        let heartbeat = Self {
            reader: EntityId(cursor.array()?),
            writer: EntityId(cursor.array()?),
            first: SequenceNumber::parse_positive(&mut cursor)?,
            last: SequenceNumber::parse(&mut cursor)?,
            count: cursor.u32()?,
            is_final: flags & Self::FINAL != 0,
            is_liveliness: flags & Self::LIVELINESS != 0,
        };
        if heartbeat.last < heartbeat.first.prev() || heartbeat.last > SequenceNumber::MAX {
            return cursor.fail(Problem::BadSequenceNumber);
        }
        Ok(heartbeat)
    }
}

impl Emit for Heartbeat {
    fn wire_len(&self) -> usize {
        32
    }

    fn emit(&self, out: &mut [u8]) {
        let is_final = if self.is_final { Self::FINAL } else { 0 };
        let is_liveliness = if self.is_liveliness { Self::LIVELINESS } else { 0 };
        let mut out = Filler::new(out);
        out.submessage(id::HEARTBEAT, is_final | is_liveliness, 28);
        out.bytes(&self.reader.0);
        out.bytes(&self.writer.0);
        self.first.emit(&mut out);
        self.last.emit(&mut out);
        out.u32(self.count);
    }
}

impl fmt::Display for Heartbeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.is_final { " final" } else { "" };
        let liveliness = if self.is_liveliness { " liveliness" } else { "" };
        let (first, last) = (self.first, self.last);
        write!(
            f,
            "HEARTBEAT {}->{} {first}..{last} #{}{end}{liveliness}",
            self.writer, self.reader, self.count
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: [u8; 32] = [
        0x07, 0x03, 28, 0, // id, flags F and E, octetsToNextHeader
        0, 0, 1, 4, // reader
        0, 0, 2, 3, // writer
        0, 0, 0, 0, 5, 0, 0, 0, // firstSN
        1, 0, 0, 0, 6, 0, 0, 0, // lastSN 2^32 + 6
        9, 0, 0, 0, // count
    ];
    const BIG: [u8; 32] = [
        0x07, 0x02, 0, 28, 0, 0, 1, 4, 0, 0, 2, 3, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0, 9,
    ];

    #[test]
    fn bytes_are_as_the_specification_draws_them() {
        let heartbeat = Heartbeat {
            reader: EntityId([0, 0, 1, 4]),
            writer: EntityId([0, 0, 2, 3]),
            first: SequenceNumber(5),
            last: SequenceNumber((1 << 32) + 6),
            count: 9,
            is_final: true,
            is_liveliness: false,
        };
        let mut out = [0; 32];
        heartbeat.emit(&mut out);
        assert_eq!(out, LITTLE);
        assert_eq!(Heartbeat::parse(LITTLE[1], &LITTLE[4..]), Ok(heartbeat));
        assert_eq!(Heartbeat::parse(BIG[1], &BIG[4..]), Ok(heartbeat));
    }

    #[test]
    fn a_range_that_ends_before_it_begins_is_refused() {
        for (first, last) in [(0, 0), (-1, 5), (5, 3), (1, i64::MAX), (i64::MAX, i64::MAX)] {
            let heartbeat = Heartbeat {
                reader: EntityId::UNKNOWN,
                writer: EntityId::UNKNOWN,
                first: SequenceNumber(first),
                last: SequenceNumber(last),
                count: 1,
                is_final: false,
                is_liveliness: false,
            };
            let mut out = [0; 32];
            heartbeat.emit(&mut out);
            let problem = Heartbeat::parse(out[1], &out[4..]).unwrap_err().problem;
            assert_eq!(problem, Problem::BadSequenceNumber, "{first}..{last}");
        }
    }
}
