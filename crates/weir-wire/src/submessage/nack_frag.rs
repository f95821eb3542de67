//! NACK_FRAG: which fragments of a sample are missing (RTPS 2.5 §8.3.8.12, §9.4.5.13).
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
    /// Who says so.
    pub reader: EntityId,
    /// To whom.
    pub writer: EntityId,
    /// Number of the sample.
    pub sequence_number: SequenceNumber,
    /// What is missing.
    pub state: FragmentNumberSet,
    /// Goes up with every new one.
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
        let len = self.wire_len() as u16 - 4;
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
