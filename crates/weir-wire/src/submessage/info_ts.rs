//! INFO_TS: source timestamp of the samples that follow (RTPS 2.5 §8.3.8.11, §9.4.5.12).
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

/// The time of writing; `None` cancels an earlier one. Never [`Timestamp::INVALID`] in a received
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InfoTimestamp {
    /// The time.
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
        let timestamp = Timestamp { seconds: cursor.u32()?, fraction: cursor.u32()? };
        Ok(Self { timestamp: (timestamp != Timestamp::INVALID).then_some(timestamp) })
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

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: [u8; 12] = [
        0x09, 0x01, 8, 0, // id, flag E, octetsToNextHeader
        0x04, 0x03, 0x02, 0x01, // seconds
        0, 0, 0, 0x80, // fraction: a half
    ];
    const BIG: [u8; 12] = [0x09, 0x00, 0, 8, 1, 2, 3, 4, 0x80, 0, 0, 0];

    #[test]
    fn bytes_are_as_the_specification_draws_them() {
        let info =
            InfoTimestamp { timestamp: Some(Timestamp { seconds: 0x0102_0304, fraction: 0x8000_0000 }) };
        let mut out = [0xee; 12];
        info.emit(&mut out);
        assert_eq!(out, LITTLE);
        assert_eq!(InfoTimestamp::parse(LITTLE[1], &LITTLE[4..]), Ok(info));
        assert_eq!(InfoTimestamp::parse(BIG[1], &BIG[4..]), Ok(info));
        assert_eq!(info.to_string(), "INFO_TS 16909060500000000 ns");
    }

    #[test]
    fn no_time_is_said_by_a_flag_or_by_the_invalid_time() {
        let none = InfoTimestamp { timestamp: None };
        let mut out = [0xee; 4];
        none.emit(&mut out);
        assert_eq!(out, [0x09, 0x03, 0, 0]);
        assert_eq!(none.wire_len(), 4);
        assert_eq!(InfoTimestamp::parse(0x03, &[]), Ok(none));
        assert_eq!(InfoTimestamp::parse(0x02, &[]), Ok(none));
        assert_eq!(InfoTimestamp::parse(0x01, &[0xff; 8]), Ok(none));
        assert_eq!(none.to_string(), "INFO_TS none");
        assert!(InfoTimestamp::parse(0x01, &[0; 7]).is_err());
    }
}
