//! INFO_DST: for whom the submessages that follow are (RTPS 2.5 §8.3.8.8, §9.4.5.9).
//!
//! ```text
//! |  INFO_DST 0e  |X|X|X|X|X|X|X|E|      octetsToNextHeader        |
//! |                        guidPrefix (12)                         |
//! ```

use core::fmt;

use super::id;
use crate::bytes::{Cursor, Emit, Endianness, Filler};
use crate::error::ParseError;
use crate::guid::GuidPrefix;

/// Only this participant is meant; UNKNOWN means all again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InfoDestination {
    /// The participant.
    pub prefix: GuidPrefix,
}

impl InfoDestination {
    #[inline]
    pub(super) fn parse(flags: u8, body: &[u8]) -> Result<Self, ParseError> {
        let mut cursor = Cursor::new(body, Endianness::from_flags(flags), "INFO_DST");
        Ok(Self { prefix: GuidPrefix(cursor.array()?) })
    }
}

impl Emit for InfoDestination {
    fn wire_len(&self) -> usize {
        16
    }

    fn emit(&self, out: &mut [u8]) {
        let mut out = Filler::new(out);
        out.submessage(id::INFO_DST, 0, 12);
        out.bytes(&self.prefix.0);
    }
}

impl fmt::Display for InfoDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "INFO_DST {}", self.prefix)
    }
}
