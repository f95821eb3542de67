//! HEARTBEAT_FRAG: which fragments of a sample there are (RTPS 2.5 §8.3.8.7, §9.4.5.8).
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
    /// For whom; UNKNOWN for all.
    pub reader: EntityId,
    /// Who says so.
    pub writer: EntityId,
    /// Number of the sample.
    pub sequence_number: SequenceNumber,
    /// The last fragment that was written, from 1.
    pub last_fragment: u32,
    /// Goes up with every new one.
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
