//! INFO_TS: when the samples that follow were written (RTPS 2.5 §8.3.8.11, §9.4.5.12).
//!
//! ```text
//! |  INFO_TS 09   |X|X|X|X|X|X|I|E|      octetsToNextHeader        |
//! |                         seconds [!I]                           |
//! |                        fraction [!I]                           |
//! ```

use core::fmt;

use super::id;
use crate::bytes::{Cursor, Emit, Endianness, Filler};
use crate::error::ParseError;
use crate::timestamp::Timestamp;

/// The time of writing; `None` ends the effect of an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InfoTimestamp {
    /// When.
    pub timestamp: Option<Timestamp>,
}

impl InfoTimestamp {
    const INVALIDATE: u8 = 0x02;

    #[inline]
    pub(super) fn parse(flags: u8, body: &[u8]) -> Result<Self, ParseError> {
        if flags & Self::INVALIDATE != 0 {
            return Ok(Self { timestamp: None });
        }
        let mut cursor = Cursor::new(body, Endianness::from_flags(flags), "INFO_TS");
        Ok(Self { timestamp: Some(Timestamp { seconds: cursor.u32()?, fraction: cursor.u32()? }) })
    }
}

impl Emit for InfoTimestamp {
    fn wire_len(&self) -> usize {
        if self.timestamp.is_some() { 12 } else { 4 }
    }

    fn emit(&self, out: &mut [u8]) {
        let mut out = Filler::new(out);
        match self.timestamp {
            Some(timestamp) => {
                out.submessage(id::INFO_TS, 0, 8);
                out.u32(timestamp.seconds);
                out.u32(timestamp.fraction);
            }
            None => out.submessage(id::INFO_TS, Self::INVALIDATE, 0),
        }
    }
}

impl fmt::Display for InfoTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.timestamp {
            Some(timestamp) => write!(f, "INFO_TS {} ns", timestamp.to_unix_nanos()),
            None => f.write_str("INFO_TS none"),
        }
    }
}
