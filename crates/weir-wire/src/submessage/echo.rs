//! ECHO: the last HEARTBEAT that a reader had received when it requested repairs. A submessage of Weir's own.
//!
//! A request does not say which repairs the reader could have received before. With the count of a HEARTBEAT that was
//! sent after a repair, it shows that the repair is lost and not in flight, as in RACK (RFC 8985), whatever the round
//! trip. With the time that the reader has waited since, it measures the round trip, as the acknowledgement delay of
//! QUIC does (RFC 9000 §13.2.5).
//!
//! It stands in front of the requests in the same message. RTPS leaves the id to vendors (RTPS 2.5 §9.4.5.1.1): other
//! engines skip it, as [`Ecn`](super::Ecn).
//!
//! ```text
//! |ECHO           81|X|X|X|X|X|X|X|E|     octetsToNextHeader       |
//! |       'W'      |      'E'       |      'C'      |      'H'     |
//! |                           reader id                            |
//! |                           writer id                            |
//! |                         HEARTBEAT count                        |
//! |                           delay in us                          |
//! ```

use core::fmt;

use super::id;
use crate::bytes::{Cursor, Emit, Endianness, Filler};
use crate::guid::EntityId;

/// What a reader says about the requests behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Echo {
    /// The reader that requests.
    pub reader: EntityId,
    /// The writer that it requests from.
    pub writer: EntityId,
    /// The count of the last HEARTBEAT of the writer that it has received.
    pub count: u32,
    /// Microseconds since that arrived, rounded down.
    pub delay_us: u32,
}

impl Echo {
    /// Reads a body; `None`: that of another vendor's submessage.
    pub(super) fn parse(flags: u8, body: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(body, Endianness::from_flags(flags), "ECHO");
        if cursor.array::<4>().ok()? != MAGIC {
            return None;
        }
        let (reader, writer) = (EntityId(cursor.array().ok()?), EntityId(cursor.array().ok()?));
        Some(Self { reader, writer, count: cursor.u32().ok()?, delay_us: cursor.u32().ok()? })
    }
}

impl Emit for Echo {
    fn wire_len(&self) -> usize {
        24
    }

    fn emit(&self, out: &mut [u8]) {
        let mut out = Filler::new(out);
        out.submessage(id::ECHO, 0, self.wire_len() - 4);
        out.bytes(&MAGIC);
        out.bytes(&self.reader.0);
        out.bytes(&self.writer.0);
        out.u32(self.count);
        out.u32(self.delay_us);
    }
}

impl fmt::Display for Echo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ECHO {}->{} #{} {} us ago", self.reader, self.writer, self.count, self.delay_us)
    }
}

const MAGIC: [u8; 4] = *b"WECH";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_as_drawn() {
        let echo = Echo {
            reader: EntityId([0, 0, 1, 4]),
            writer: EntityId([0, 0, 2, 3]),
            count: 0x0203,
            delay_us: 300,
        };
        let mut out = [0xee; 24];
        echo.emit(&mut out);
        let body = [b'W', b'E', b'C', b'H', 0, 0, 1, 4, 0, 0, 2, 3, 0x03, 0x02, 0, 0, 44, 1, 0, 0];
        assert_eq!((&out[..4], &out[4..]), (&[0x81, 0x01, 20, 0][..], &body[..]));
        assert_eq!(Echo::parse(1, &body), Some(echo));
        let mut big = body;
        big[12..].copy_from_slice(&[0, 0, 2, 3, 0, 0, 1, 44]);
        assert_eq!(Echo::parse(0, &big), Some(echo));
        assert_eq!(echo.to_string(), "ECHO 00000104->00000203 #515 300 us ago");
        for other in [&[][..], b"WEC", b"RTI_0123456789ab", &body[..16]] {
            assert_eq!(Echo::parse(1, other), None, "{other:02x?}");
        }
        // What follows may belong to a later version.
        assert!(Echo::parse(1, &[&body[..], &[0; 8]].concat()).is_some());
    }
}
