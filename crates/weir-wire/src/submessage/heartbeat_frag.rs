//! HEARTBEAT_FRAG: fragments of a sample available (RTPS 2.5 §8.3.8.7, §9.4.5.8).
//!
//! ```text
//! |HEARTBEAT_FRAG 13|X|X|X|X|X|X|X|E|     octetsToNextHeader       |
//! |                           reader id                            |
//! |                           writer id                            |
//! |                        writerSN (8)                            |
//! |                       lastFragmentNum                          |
//! |                             count                              |
//! ```

use core::fmt;

use super::id;
use crate::bytes::{Cursor, Emit, Endianness, Filler};
use crate::error::{ParseError, Problem};
use crate::guid::EntityId;
use crate::sequence_number::SequenceNumber;

/// The writer has the fragments up to `last_fragment`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HeartbeatFrag {
    /// The reader it is for; UNKNOWN for all.
    pub reader: EntityId,
    /// The writer that sends it.
    pub writer: EntityId,
    /// Number of the sample.
    pub sequence_number: SequenceNumber,
    /// The last fragment written, from 1.
    pub last_fragment: u32,
    /// Increases with every new one.
    pub count: u32,
}

impl HeartbeatFrag {
    pub(super) fn parse(flags: u8, body: &[u8]) -> Result<Self, ParseError> {
        let mut cursor = Cursor::new(body, Endianness::from_flags(flags), "HEARTBEAT_FRAG");
        let frag = Self {
            reader: EntityId(cursor.array()?),
            writer: EntityId(cursor.array()?),
            sequence_number: SequenceNumber::parse_positive(&mut cursor)?,
            last_fragment: cursor.u32()?,
            count: cursor.u32()?,
        };
        if frag.last_fragment == 0 {
            return cursor.fail(Problem::BadFragment);
        }
        Ok(frag)
    }
}

impl Emit for HeartbeatFrag {
    fn wire_len(&self) -> usize {
        28
    }

    fn emit(&self, out: &mut [u8]) {
        let mut out = Filler::new(out);
        out.submessage(id::HEARTBEAT_FRAG, 0, 24);
        out.bytes(&self.reader.0);
        out.bytes(&self.writer.0);
        self.sequence_number.emit(&mut out);
        out.u32(self.last_fragment);
        out.u32(self.count);
    }
}

impl fmt::Display for HeartbeatFrag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (writer, reader, sn) = (self.writer, self.reader, self.sequence_number);
        write!(f, "HEARTBEAT_FRAG {writer}->{reader} {sn} fragments ..{} #{}", self.last_fragment, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: [u8; 28] = [
        0x13, 0x01, 24, 0, // id, flag E, octetsToNextHeader
        0, 0, 1, 4, // reader
        0, 0, 2, 3, // writer
        0, 0, 0, 0, 7, 0, 0, 0, // writerSN
        0x03, 0x02, 0, 0, // lastFragmentNum
        9, 0, 0, 0, // count
    ];
    const BIG: [u8; 28] =
        [0x13, 0x00, 0, 24, 0, 0, 1, 4, 0, 0, 2, 3, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 2, 3, 0, 0, 0, 9];

    #[test]
    fn bytes_are_as_the_specification_draws_them() {
        let frag = HeartbeatFrag {
            reader: EntityId([0, 0, 1, 4]),
            writer: EntityId([0, 0, 2, 3]),
            sequence_number: SequenceNumber(7),
            last_fragment: 0x0203,
            count: 9,
        };
        let mut out = [0xee; 28];
        frag.emit(&mut out);
        assert_eq!(out, LITTLE);
        assert_eq!(HeartbeatFrag::parse(LITTLE[1], &LITTLE[4..]), Ok(frag));
        assert_eq!(HeartbeatFrag::parse(BIG[1], &BIG[4..]), Ok(frag));
        assert_eq!(frag.to_string(), "HEARTBEAT_FRAG 00000203->00000104 7 fragments ..515 #9");
    }

    #[test]
    fn numbers_that_nothing_has_are_refused() {
        let problem = |at: core::ops::Range<usize>| {
            let mut bytes = LITTLE;
            bytes[at].fill(0);
            HeartbeatFrag::parse(bytes[1], &bytes[4..]).unwrap_err().problem
        };
        assert_eq!(problem(12..20), Problem::BadSequenceNumber);
        assert_eq!(problem(20..24), Problem::BadFragment);
    }
}
