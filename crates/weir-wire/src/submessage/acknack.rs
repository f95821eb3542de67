//! ACKNACK: samples received and missing (RTPS 2.5 §8.3.8.1, §9.4.5.2).
//!
//! ```text
//! |  ACKNACK 06   |X|X|X|X|X|X|F|E|      octetsToNextHeader        |
//! |                           reader id                            |
//! |                           writer id                            |
//! |        readerSNState: base (8), numBits (4), bitmap (0..32)    |
//! |                             count                              |
//! ```

use core::fmt;

use super::id;
use crate::bytes::{Cursor, Emit, Endianness, Filler};
use crate::error::ParseError;
use crate::guid::EntityId;
use crate::sequence_number::SequenceNumberSet;

/// Everything before the base of `state` was received, the numbers in it are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AckNack {
    /// The reader that sends it.
    pub reader: EntityId,
    /// The writer it is for.
    pub writer: EntityId,
    /// The missing samples.
    pub state: SequenceNumberSet,
    /// Increases with every new one.
    pub count: u32,
    /// Whether no HEARTBEAT is requested in response.
    pub is_final: bool,
}

impl AckNack {
    const FINAL: u8 = 0x02;

    #[inline]
    pub(super) fn parse(flags: u8, body: &[u8]) -> Result<Self, ParseError> {
        let mut cursor = Cursor::new(body, Endianness::from_flags(flags), "ACKNACK");
        Ok(Self {
            reader: EntityId(cursor.array()?),
            writer: EntityId(cursor.array()?),
            state: SequenceNumberSet::parse(&mut cursor)?,
            count: cursor.u32()?,
            is_final: flags & Self::FINAL != 0,
        })
    }
}

impl Emit for AckNack {
    fn wire_len(&self) -> usize {
        4 + 8 + self.state.wire_len() + 4
    }

    fn emit(&self, out: &mut [u8]) {
        let len = self.wire_len() - 4;
        let mut out = Filler::new(out);
        out.submessage(id::ACKNACK, if self.is_final { Self::FINAL } else { 0 }, len);
        out.bytes(&self.reader.0);
        out.bytes(&self.writer.0);
        self.state.emit(&mut out);
        out.u32(self.count);
    }
}

impl fmt::Display for AckNack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.is_final { " final" } else { "" };
        write!(f, "ACKNACK {}->{} {} #{}{end}", self.reader, self.writer, self.state, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequence_number::SequenceNumber;

    const LITTLE: [u8; 32] = [
        0x06, 0x03, 28, 0, // id, flags F and E, octetsToNextHeader
        0, 0, 1, 4, // reader
        0, 0, 2, 3, // writer
        0, 0, 0, 0, 5, 0, 0, 0, // base 5
        3, 0, 0, 0, // numBits
        0, 0, 0, 0xa0, // bits 0 and 2
        9, 0, 0, 0, // count
    ];
    const BIG: [u8; 32] = [
        0x06, 0x02, 0, 28, 0, 0, 1, 4, 0, 0, 2, 3, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 3, 0xa0, 0, 0, 0, 0, 0,
        0, 9,
    ];

    #[test]
    fn bytes_are_as_the_specification_draws_them() {
        let mut state = SequenceNumberSet::new(SequenceNumber(5));
        state.insert(SequenceNumber(5));
        state.insert(SequenceNumber(7));
        let acknack = AckNack {
            reader: EntityId([0, 0, 1, 4]),
            writer: EntityId([0, 0, 2, 3]),
            state,
            count: 9,
            is_final: true,
        };
        let mut out = [0; 32];
        acknack.emit(&mut out);
        assert_eq!(out, LITTLE);
        assert_eq!(AckNack::parse(LITTLE[1], &LITTLE[4..]), Ok(acknack));
        assert_eq!(AckNack::parse(BIG[1], &BIG[4..]), Ok(acknack));
        assert_eq!(acknack.to_string(), "ACKNACK 00000104->00000203 5/3:5,7 #9 final");
    }
}
