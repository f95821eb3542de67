//! ECN: how many datagrams of a participant arrived with which ECN field (RFC 3168). A submessage of Weir's own.
//!
//! RTPS has nothing of the kind. It leaves the ids from 0x80 on to vendors (RTPS 2.5 §9.4.5.1.1), and other engines
//! skip what they do not know. The first four bytes distinguish it from submessages of other vendors with the same id.
//!
//! ```text
//! |ECN            80|X|X|X|X|X|X|X|E|     octetsToNextHeader       |
//! |       'W'      |      'E'       |      'C'      |      'N'     |
//! |                           reader id                            |
//! |                           writer id                            |
//! |                             ect0                               |
//! |                              ce                                |
//! ```
//!
//! A writer asks by one without the last two.

use core::fmt;

use super::id;
use crate::bytes::{Cursor, Emit, Endianness, Filler};
use crate::guid::EntityId;

/// A question of a writer to all its readers, or the answer of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ecn {
    /// The reader that answers; UNKNOWN in a question.
    pub reader: EntityId,
    /// The writer that asks.
    pub writer: EntityId,
    /// The answer; `None`: a question.
    pub counts: Option<EcnCounts>,
}

/// Datagrams of the writer's participant that arrived at the reader's. Both wrap around.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct EcnCounts {
    /// With ECT(0).
    pub ect0: u32,
    /// With CE: they have met congestion.
    pub ce: u32,
}

impl Ecn {
    /// Reads a body; `None`: that of another vendor's submessage.
    pub(super) fn parse(flags: u8, body: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(body, Endianness::from_flags(flags), "ECN");
        if cursor.array::<4>().ok()? != MAGIC {
            return None;
        }
        let (reader, writer) = (EntityId(cursor.array().ok()?), EntityId(cursor.array().ok()?));
        let counts = match body.len() {
            QUESTION_BYTES => None,
            _ => Some(EcnCounts { ect0: cursor.u32().ok()?, ce: cursor.u32().ok()? }),
        };
        Some(Self { reader, writer, counts })
    }
}

impl Emit for Ecn {
    fn wire_len(&self) -> usize {
        4 + if self.counts.is_some() { QUESTION_BYTES + 8 } else { QUESTION_BYTES }
    }

    fn emit(&self, out: &mut [u8]) {
        let len = self.wire_len() - 4;
        let mut out = Filler::new(out);
        out.submessage(id::ECN, 0, len);
        out.bytes(&MAGIC);
        out.bytes(&self.reader.0);
        out.bytes(&self.writer.0);
        if let Some(EcnCounts { ect0, ce }) = self.counts {
            out.u32(ect0);
            out.u32(ce);
        }
    }
}

impl fmt::Display for Ecn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (writer, reader) = (self.writer, self.reader);
        match self.counts {
            None => write!(f, "ECN {writer}->{reader}"),
            Some(EcnCounts { ect0, ce }) => write!(f, "ECN {reader}->{writer} {ect0} ECT(0) {ce} CE"),
        }
    }
}

const MAGIC: [u8; 4] = *b"WECN";

const QUESTION_BYTES: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: [u8; 24] = [
        0x80, 0x01, 20, 0, // id, flag E, octetsToNextHeader
        b'W', b'E', b'C', b'N', //
        0, 0, 1, 4, // reader
        0, 0, 2, 3, // writer
        0x03, 0x02, 0, 0, // ect0
        9, 0, 0, 0, // ce
    ];

    #[test]
    fn bytes_are_as_drawn() {
        let answer = Ecn {
            reader: EntityId([0, 0, 1, 4]),
            writer: EntityId([0, 0, 2, 3]),
            counts: Some(EcnCounts { ect0: 0x0203, ce: 9 }),
        };
        let mut out = [0xee; 24];
        answer.emit(&mut out);
        assert_eq!(out, LITTLE);
        assert_eq!(Ecn::parse(1, &LITTLE[4..]), Some(answer));
        let mut big = LITTLE;
        big[16..].copy_from_slice(&[0, 0, 2, 3, 0, 0, 0, 9]);
        assert_eq!(Ecn::parse(0, &big[4..]), Some(answer));
        assert_eq!(answer.to_string(), "ECN 00000104->00000203 515 ECT(0) 9 CE");
        let question = Ecn { counts: None, ..answer };
        let mut out = [0xee; 16];
        question.emit(&mut out);
        assert_eq!((out[2], &out[4..]), (12, &LITTLE[4..16]));
        assert_eq!(Ecn::parse(1, &out[4..]), Some(question));
        assert_eq!(question.to_string(), "ECN 00000203->00000104");
    }

    #[test]
    fn what_another_vendor_sends_is_none() {
        for body in [&[][..], b"WEC", b"RTI_0123456789", &LITTLE[4..12], &LITTLE[4..20]] {
            assert_eq!(Ecn::parse(1, body), None, "{body:02x?}");
        }
        // What follows may belong to a later version.
        assert!(Ecn::parse(1, &[&LITTLE[4..], &[0; 8]].concat()).is_some());
    }
}
