//! RECEIPT: what a best-effort reader has received from a writer. A submessage of Weir's own.
//!
//! RTPS has no answer to best-effort samples, so that their writer cannot know what the path carries. It now and then
//! asks behind what it has sent, and the reader says what has arrived by then: as the receiver reports of RTP (RFC 3550
//! §6.4), and as often as the sender needs. The answer names the question, so that it measures the round trip.
//!
//! RTPS leaves the id to vendors (RTPS 2.5 §9.4.5.1.1): other engines skip it, as [`Ecn`](super::Ecn).
//!
//! ```text
//! |RECEIPT        82|X|X|X|X|X|X|X|E|     octetsToNextHeader       |
//! |       'W'      |      'R'       |      'C'      |      'P'     |
//! |                           reader id                            |
//! |                           writer id                            |
//! |                             number                             |
//! |                                                                |
//! |                             samples                            |
//! |                           fragments                            |
//! ```
//!
//! A writer asks by one without the last two.

use core::fmt;

use super::id;
use crate::bytes::{Cursor, Emit, Endianness, Filler};
use crate::guid::EntityId;

/// A question of a writer to its best-effort readers, or the answer of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Receipt {
    /// The reader that answers; UNKNOWN in a question.
    pub reader: EntityId,
    /// The writer that asks.
    pub writer: EntityId,
    /// The number of the question. It wraps around.
    pub number: u32,
    /// The answer; `None`: a question.
    pub received: Option<Received>,
}

/// What has arrived. Only differences say something: neither count begins at a known place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Received {
    /// Samples that arrived as a whole, in one datagram each or several in one. Wraps around.
    pub samples: u64,
    /// Fragments of larger ones. Wraps around.
    pub fragments: u32,
}

impl Receipt {
    /// Reads a body; `None`: that of another vendor's submessage.
    pub(super) fn parse(flags: u8, body: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(body, Endianness::from_flags(flags), "RECEIPT");
        if cursor.array::<4>().ok()? != MAGIC {
            return None;
        }
        let (reader, writer) = (EntityId(cursor.array().ok()?), EntityId(cursor.array().ok()?));
        let number = cursor.u32().ok()?;
        let received = match body.len() {
            QUESTION_BYTES => None,
            _ => {
                let (high, low) = (cursor.u32().ok()?, cursor.u32().ok()?);
                let samples = u64::from(high) << 32 | u64::from(low);
                Some(Received { samples, fragments: cursor.u32().ok()? })
            }
        };
        Some(Self { reader, writer, number, received })
    }
}

impl Emit for Receipt {
    fn wire_len(&self) -> usize {
        4 + if self.received.is_some() { QUESTION_BYTES + 12 } else { QUESTION_BYTES }
    }

    fn emit(&self, out: &mut [u8]) {
        let len = self.wire_len() - 4;
        let mut out = Filler::new(out);
        out.submessage(id::RECEIPT, 0, len);
        out.bytes(&MAGIC);
        out.bytes(&self.reader.0);
        out.bytes(&self.writer.0);
        out.u32(self.number);
        if let Some(Received { samples, fragments }) = self.received {
            out.u32((samples >> 32) as u32);
            out.u32(samples as u32);
            out.u32(fragments);
        }
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (writer, reader, number) = (self.writer, self.reader, self.number);
        match self.received {
            None => write!(f, "RECEIPT {writer}->{reader} #{number}"),
            Some(Received { samples, fragments }) => {
                write!(f, "RECEIPT {reader}->{writer} #{number} {samples} samples {fragments} fragments")
            }
        }
    }
}

const MAGIC: [u8; 4] = *b"WRCP";

const QUESTION_BYTES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: [u8; 32] = [
        0x82, 0x01, 28, 0, // id, flag E, octetsToNextHeader
        b'W', b'R', b'C', b'P', //
        0, 0, 1, 4, // reader
        0, 0, 2, 3, // writer
        0x03, 0x02, 0, 0, // number
        1, 0, 0, 0, 9, 0, 0, 0, // samples
        7, 0, 0, 0, // fragments
    ];

    #[test]
    fn bytes_are_as_drawn() {
        let answer = Receipt {
            reader: EntityId([0, 0, 1, 4]),
            writer: EntityId([0, 0, 2, 3]),
            number: 0x0203,
            received: Some(Received { samples: (1 << 32) + 9, fragments: 7 }),
        };
        let mut out = [0xee; 32];
        answer.emit(&mut out);
        assert_eq!(out, LITTLE);
        assert_eq!(Receipt::parse(1, &LITTLE[4..]), Some(answer));
        let mut big = LITTLE;
        big[16..].copy_from_slice(&[0, 0, 2, 3, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 7]);
        assert_eq!(Receipt::parse(0, &big[4..]), Some(answer));
        let shown = "RECEIPT 00000104->00000203 #515 4294967305 samples 7 fragments";
        assert_eq!(answer.to_string(), shown);
        let question = Receipt { received: None, ..answer };
        let mut out = [0xee; 20];
        question.emit(&mut out);
        assert_eq!((out[2], &out[4..]), (16, &LITTLE[4..20]));
        assert_eq!(Receipt::parse(1, &out[4..]), Some(question));
        assert_eq!(question.to_string(), "RECEIPT 00000203->00000104 #515");
    }

    #[test]
    fn what_another_vendor_sends_is_none() {
        for body in [&[][..], b"WRC", b"RTI_0123456789abcdef", &LITTLE[4..16], &LITTLE[4..28]] {
            assert_eq!(Receipt::parse(1, body), None, "{body:02x?}");
        }
        // What follows may belong to a later version.
        assert!(Receipt::parse(1, &[&LITTLE[4..], &[0; 8]].concat()).is_some());
    }
}
