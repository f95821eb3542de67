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
//! |                             drops                              |
//! |                           held, in ns                          |
//! ```
//!
//! A writer asks by one without the last four. Those about the reader's host are for what a path does not do: as
//! the delay since the last sender report of RTP, and the ACK delay of QUIC (RFC 9000 §13.2.5).

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
    /// Datagrams that the reader's host dropped after their arrival, as far as it counts them. Wraps around.
    pub drops: u32,
    /// How long the question was held on the reader's host before the answer left, in nanoseconds.
    pub held_ns: u32,
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
                let [fragments, drops, held_ns] =
                    [cursor.u32().ok()?, cursor.u32().ok()?, cursor.u32().ok()?];
                Some(Received { samples, fragments, drops, held_ns })
            }
        };
        Some(Self { reader, writer, number, received })
    }
}

impl Emit for Receipt {
    fn wire_len(&self) -> usize {
        4 + if self.received.is_some() { QUESTION_BYTES + 20 } else { QUESTION_BYTES }
    }

    fn emit(&self, out: &mut [u8]) {
        let len = self.wire_len() - 4;
        let mut out = Filler::new(out);
        out.submessage(id::RECEIPT, 0, len);
        out.bytes(&MAGIC);
        out.bytes(&self.reader.0);
        out.bytes(&self.writer.0);
        out.u32(self.number);
        if let Some(Received { samples, fragments, drops, held_ns }) = self.received {
            out.u32((samples >> 32) as u32);
            out.u32(samples as u32);
            out.u32(fragments);
            out.u32(drops);
            out.u32(held_ns);
        }
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (writer, reader, number) = (self.writer, self.reader, self.number);
        match self.received {
            None => write!(f, "RECEIPT {writer}->{reader} #{number}"),
            Some(Received { samples, fragments, drops, held_ns }) => write!(
                f,
                "RECEIPT {reader}->{writer} #{number} {samples} samples {fragments} fragments, {drops} dropped, held \
                 {held_ns} ns"
            ),
        }
    }
}

const MAGIC: [u8; 4] = *b"WRCP";

const QUESTION_BYTES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: [u8; 40] = [
        0x82, 0x01, 36, 0, // id, flag E, octetsToNextHeader
        b'W', b'R', b'C', b'P', //
        0, 0, 1, 4, // reader
        0, 0, 2, 3, // writer
        0x03, 0x02, 0, 0, // number
        1, 0, 0, 0, 9, 0, 0, 0, // samples
        7, 0, 0, 0, // fragments
        5, 0, 0, 0, // drops
        0, 1, 0, 0, // held
    ];

    #[test]
    fn bytes_are_as_drawn() {
        let answer = Receipt {
            reader: EntityId([0, 0, 1, 4]),
            writer: EntityId([0, 0, 2, 3]),
            number: 0x0203,
            received: Some(Received { samples: (1 << 32) + 9, fragments: 7, drops: 5, held_ns: 256 }),
        };
        let mut out = [0xee; 40];
        answer.emit(&mut out);
        assert_eq!(out, LITTLE);
        assert_eq!(Receipt::parse(1, &LITTLE[4..]), Some(answer));
        let mut big = LITTLE;
        big[16..].copy_from_slice(&[0, 0, 2, 3, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 7, 0, 0, 0, 5, 0, 0, 1, 0]);
        assert_eq!(Receipt::parse(0, &big[4..]), Some(answer));
        let shown = "RECEIPT 00000104->00000203 #515 4294967305 samples 7 fragments, 5 dropped, held 256 ns";
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
        for body in [&[][..], b"WRC", b"RTI_0123456789abcdef", &LITTLE[4..16], &LITTLE[4..36]] {
            assert_eq!(Receipt::parse(1, body), None, "{body:02x?}");
        }
        // What follows may belong to a later version.
        assert!(Receipt::parse(1, &[&LITTLE[4..], &[0; 8]].concat()).is_some());
    }
}
