//! DATA: a sample (RTPS 2.5 §8.3.8.2, §9.4.5.3).
//!
//! ```text
//! |    DATA 15    |X|X|X|N|K|D|Q|E|      octetsToNextHeader        |
//! |          extraFlags           |       octetsToInlineQos        |
//! |                           reader id                            |
//! |                           writer id                            |
//! |                        writerSN (8)                            |
//! |                 inlineQos: parameter list [Q]                  |
//! |                 serializedPayload [D or K]                     |
//! ```

use core::fmt;

use super::id;
use crate::bytes::{Cursor, Emit, Endianness, Filler};
use crate::error::{ParseError, Problem};
use crate::guid::EntityId;
use crate::parameter_list::ParameterList;
use crate::sequence_number::SequenceNumber;

/// What a sample carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload<'a> {
    /// Nothing.
    None,
    /// The value, with its encapsulation header.
    Data(&'a [u8]),
    /// The key only, with its encapsulation header.
    Key(&'a [u8]),
}

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Data<'a> {
    /// For whom; UNKNOWN for all.
    pub reader: EntityId,
    /// Who wrote it.
    pub writer: EntityId,
    /// Its number.
    pub sequence_number: SequenceNumber,
    /// What is to be known about this sample alone.
    pub inline_qos: Option<ParameterList<'a>>,
    /// What it carries.
    pub payload: Payload<'a>,
}

pub(super) const INLINE_QOS: u8 = 0x02;
const DATA: u8 = 0x04;
const KEY: u8 = 0x08;

impl<'a> Data<'a> {
    #[inline]
    pub(super) fn parse(flags: u8, body: &'a [u8]) -> Result<Self, ParseError> {
        let endianness = Endianness::from_flags(flags);
        let mut cursor = Cursor::new(body, endianness, "DATA");
        let _extra_flags = cursor.u16()?;
        let to_inline_qos = usize::from(cursor.u16()?);
        let mut behind = cursor;
        let reader = EntityId(cursor.array()?);
        let writer = EntityId(cursor.array()?);
        let sequence_number = SequenceNumber::parse_positive(&mut cursor)?;
        if to_inline_qos < 16 {
            return cursor.fail(Problem::BadLength);
        }
        behind.slice(to_inline_qos)?;
        let mut rest = behind.rest();
        let mut inline_qos = None;
        if flags & INLINE_QOS != 0 {
            let (list, len) = ParameterList::parse(rest, endianness)?;
            inline_qos = Some(list);
            rest = rest.get(len..).unwrap_or_default();
        }
        let payload = match flags & (DATA | KEY) {
            0 => Payload::None,
            DATA => Payload::Data(rest),
            KEY => Payload::Key(rest),
            _ => return cursor.fail(Problem::BadFlags),
        };
        Ok(Self { reader, writer, sequence_number, inline_qos, payload })
    }
}

impl fmt::Display for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DATA {}->{} {}", self.writer, self.reader, self.sequence_number)?;
        match self.payload {
            Payload::None => Ok(()),
            Payload::Data(bytes) => write!(f, " {} B", bytes.len()),
            Payload::Key(bytes) => write!(f, " key {} B", bytes.len()),
        }
    }
}

/// The part of a DATA submessage before inline QoS and payload, which the writer of the message lays behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataHeader {
    /// For whom; UNKNOWN for all.
    pub reader: EntityId,
    /// Who wrote it.
    pub writer: EntityId,
    /// Its number.
    pub sequence_number: SequenceNumber,
    /// Length of the inline QoS with its sentinel, in bytes; 0 for none.
    pub inline_qos_len: u32,
    /// Length of the payload, padded to a multiple of 4, in bytes; 0 for none.
    pub payload_len: u32,
    /// Whether the payload is only the key.
    pub is_key: bool,
}

impl DataHeader {
    /// Length in bytes, with the submessage header.
    pub const LEN: usize = 24;
}

impl Emit for DataHeader {
    fn wire_len(&self) -> usize {
        Self::LEN
    }

    fn emit(&self, out: &mut [u8]) {
        let inline_qos = if self.inline_qos_len > 0 { INLINE_QOS } else { 0 };
        let payload = match (self.payload_len, self.is_key) {
            (0, _) => 0,
            (_, false) => DATA,
            (_, true) => KEY,
        };
        let mut out = Filler::new(out);
        out.submessage(id::DATA, inline_qos | payload, (20 + self.inline_qos_len + self.payload_len) as u16);
        out.u16(0);
        out.u16(16);
        out.bytes(&self.reader.0);
        out.bytes(&self.writer.0);
        self.sequence_number.emit(&mut out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: [u8; 32] = [
        0x15, 0x05, 28, 0, // id, flags D and E, octetsToNextHeader
        0, 0, 16, 0, // extraFlags, octetsToInlineQos
        0, 0, 0, 0, // reader
        0, 0, 2, 3, // writer
        0, 0, 0, 0, 7, 0, 0, 0, // writerSN
        0, 1, 0, 0, // encapsulation CDR_LE
        42, 0, 0, 0, // value
    ];
    const BIG: [u8; 32] = [
        0x15, 0x04, 0, 28, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 2, 3, 0, 0, 0, 0, 0, 0, 0, 7, 0, 1, 0, 0, 42, 0, 0,
        0,
    ];

    #[test]
    fn octets_are_as_the_specification_draws_them() {
        let data = Data {
            reader: EntityId::UNKNOWN,
            writer: EntityId([0, 0, 2, 3]),
            sequence_number: SequenceNumber(7),
            inline_qos: None,
            payload: Payload::Data(&LITTLE[24..]),
        };
        assert_eq!(Data::parse(LITTLE[1], &LITTLE[4..]), Ok(data));
        assert_eq!(Data::parse(BIG[1], &BIG[4..]), Ok(data));
        let mut out = LITTLE;
        out[..24].fill(0xee);
        DataHeader {
            reader: data.reader,
            writer: data.writer,
            sequence_number: data.sequence_number,
            inline_qos_len: 0,
            payload_len: 8,
            is_key: false,
        }
        .emit(&mut out);
        assert_eq!(out, LITTLE);
    }

    #[test]
    fn offsets_and_flags_that_lie_are_refused() {
        let check = |at: usize, value: u8, problem: Problem| {
            let mut bytes = LITTLE;
            bytes[at] = value;
            assert_eq!(Data::parse(bytes[1], &bytes[4..]).map_err(|error| error.problem), Err(problem));
        };
        check(1, 0x0d, Problem::BadFlags);
        check(6, 12, Problem::BadLength);
        check(6, 200, Problem::Truncated);
        check(12 + 4 + 3, 0x80, Problem::BadSequenceNumber);
        check(20, 0, Problem::BadSequenceNumber);
    }
}
