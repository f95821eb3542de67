//! NACK_FRAG: fragments of a sample missing (RTPS 2.5 §8.3.8.12, §9.4.5.13).
//!
//! ```text
//! | NACK_FRAG 12  |X|X|X|X|X|X|X|E|      octetsToNextHeader        |
//! |                           reader id                            |
//! |                           writer id                            |
//! |                        writerSN (8)                            |
//! |     fragmentNumberState: base (4), numBits (4), bitmap (0..32) |
//! |                             count                              |
//! ```

use core::fmt;

use super::id;
use crate::bytes::{Cursor, Emit, Endianness, Filler};
use crate::error::ParseError;
use crate::fragment_number::FragmentNumberSet;
use crate::guid::EntityId;
use crate::sequence_number::SequenceNumber;

/// The fragments in `state` are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NackFrag {
    /// The reader that sends it.
    pub reader: EntityId,
    /// The writer it is for.
    pub writer: EntityId,
    /// Number of the sample.
    pub sequence_number: SequenceNumber,
    /// The missing fragments.
    pub state: FragmentNumberSet,
    /// Increases with every new one.
    pub count: u32,
}

impl NackFrag {
    pub(super) fn parse(flags: u8, body: &[u8]) -> Result<Self, ParseError> {
        let mut cursor = Cursor::new(body, Endianness::from_flags(flags), "NACK_FRAG");
        Ok(Self {
            reader: EntityId(cursor.array()?),
            writer: EntityId(cursor.array()?),
            sequence_number: SequenceNumber::parse_positive(&mut cursor)?,
            state: FragmentNumberSet::parse(&mut cursor)?,
            count: cursor.u32()?,
        })
    }
}

impl Emit for NackFrag {
    fn wire_len(&self) -> usize {
        4 + 16 + self.state.wire_len() + 4
    }

    fn emit(&self, out: &mut [u8]) {
        let len = self.wire_len() - 4;
        let mut out = Filler::new(out);
        out.submessage(id::NACK_FRAG, 0, len);
        out.bytes(&self.reader.0);
        out.bytes(&self.writer.0);
        self.sequence_number.emit(&mut out);
        self.state.emit(&mut out);
        out.u32(self.count);
    }
}

impl fmt::Display for NackFrag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reader, writer, sn) = (self.reader, self.writer, self.sequence_number);
        write!(f, "NACK_FRAG {reader}->{writer} {sn} from {} #{}", self.state.base().0, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Problem;
    use crate::fragment_number::FragmentNumber;

    const LITTLE: [u8; 36] = [
        0x12, 0x01, 32, 0, // id, flag E, octetsToNextHeader
        0, 0, 1, 4, // reader
        0, 0, 2, 3, // writer
        0, 0, 0, 0, 7, 0, 0, 0, // writerSN
        2, 0, 0, 0, // base 2
        3, 0, 0, 0, // numBits
        0, 0, 0, 0xa0, // bits 0 and 2
        9, 0, 0, 0, // count
    ];
    const BIG: [u8; 36] = [
        0x12, 0x00, 0, 32, 0, 0, 1, 4, 0, 0, 2, 3, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0, 3, 0xa0, 0,
        0, 0, 0, 0, 0, 9,
    ];

    #[test]
    fn bytes_are_as_the_specification_draws_them() {
        let mut state = FragmentNumberSet::new(FragmentNumber(2));
        state.insert(FragmentNumber(2));
        state.insert(FragmentNumber(4));
        let nack = NackFrag {
            reader: EntityId([0, 0, 1, 4]),
            writer: EntityId([0, 0, 2, 3]),
            sequence_number: SequenceNumber(7),
            state,
            count: 9,
        };
        let mut out = [0xee; 36];
        nack.emit(&mut out);
        assert_eq!(out, LITTLE);
        assert_eq!(NackFrag::parse(LITTLE[1], &LITTLE[4..]), Ok(nack));
        assert_eq!(NackFrag::parse(BIG[1], &BIG[4..]), Ok(nack));
        assert_eq!(nack.to_string(), "NACK_FRAG 00000104->00000203 7 from 2 #9");
    }

    #[test]
    fn sets_that_nothing_can_be_in_are_refused() {
        for (at, field, problem) in [
            (12..20, [0; 8].as_slice(), Problem::BadSequenceNumber),
            (20..24, &[0; 4], Problem::BadSet),
            (20..24, &[0xff; 4], Problem::BadSet),
            (24..28, &[0, 0, 2, 0], Problem::BadSet),
            (24..28, &[0, 0, 0, 65], Problem::Truncated),
        ] {
            let mut bytes = BIG;
            bytes[at].copy_from_slice(field);
            assert_eq!(NackFrag::parse(bytes[1], &bytes[4..]).unwrap_err().problem, problem, "{field:?}");
        }
    }
}
