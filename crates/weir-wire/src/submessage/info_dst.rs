//! INFO_DST: destination of the submessages that follow (RTPS 2.5 §8.3.8.8, §9.4.5.9).
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

/// Only this participant is addressed; UNKNOWN addresses all again.
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

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: [u8; 16] = [
        0x0e, 0x01, 12, 0, // id, flag E, octetsToNextHeader
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, // guidPrefix
    ];
    const BIG: [u8; 16] = [0x0e, 0x00, 0, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];

    #[test]
    fn bytes_are_as_the_specification_draws_them() {
        let info = InfoDestination { prefix: GuidPrefix([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]) };
        let mut out = [0xee; 16];
        info.emit(&mut out);
        assert_eq!(out, LITTLE);
        assert_eq!(InfoDestination::parse(LITTLE[1], &LITTLE[4..]), Ok(info));
        assert_eq!(InfoDestination::parse(BIG[1], &BIG[4..]), Ok(info));
        assert!(InfoDestination::parse(BIG[1], &BIG[4..15]).is_err());
        assert_eq!(info.to_string(), "INFO_DST 0102030405060708090a0b0c");
    }
}
