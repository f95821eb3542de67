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

/// The content of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload<'a> {
    /// Empty.
    None,
    /// The value, with its encapsulation header.
    Data(&'a [u8]),
    /// The key only, with its encapsulation header.
    Key(&'a [u8]),
}

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data<'a> {
    /// The reader it is for; UNKNOWN for all.
    pub reader: EntityId,
    /// The writer that sends it.
    pub writer: EntityId,
    /// The sample's number.
    pub sequence_number: SequenceNumber,
    /// QoS of this sample only.
    pub inline_qos: Option<ParameterList<'a>>,
    /// The content.
    pub payload: Payload<'a>,
}

pub(super) const INLINE_QOS: u8 = 0x02;
const DATA: u8 = 0x04;
const KEY: u8 = 0x08;
const NON_STANDARD_PAYLOAD: u8 = 0x10;
/// Length of the header of every payload, in bytes (RTPS 2.5 §10.2).
const ENCAPSULATION_LEN: usize = 4;

impl<'a> Data<'a> {
    /// Returns whether the payload, if any, starts with an encapsulation header.
    #[inline]
    pub(crate) const fn is_standard(flags: u8) -> bool {
        flags & NON_STANDARD_PAYLOAD == 0
    }

    /// Always inlined: the result would go through memory otherwise, with a store-forwarding stall.
    #[inline(always)]
    pub(crate) fn parse(flags: u8, body: &'a [u8]) -> Result<Self, ParseError> {
        let endianness = Endianness::from_flags(flags);
        let mut cursor = Cursor::new(body, endianness, "DATA");
        // One length check for the fixed fields, extraFlags first.
        let mut fixed = Cursor::new(cursor.slice(20)?, endianness, "DATA");
        let _extra_flags = fixed.u16()?;
        let to_inline_qos = usize::from(fixed.u16()?);
        let reader = EntityId(fixed.array()?);
        let writer = EntityId(fixed.array()?);
        let sequence_number = SequenceNumber::parse_positive(&mut fixed)?;
        let Some(unknown) = to_inline_qos.checked_sub(16) else {
            return cursor.fail(Problem::BadLength);
        };
        cursor.slice(unknown)?;
        let mut rest = cursor.rest();
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
        if flags & (DATA | KEY) != 0 && rest.len() < ENCAPSULATION_LEN {
            return cursor.fail(Problem::Truncated);
        }
        Ok(Self { reader, writer, sequence_number, inline_qos, payload })
    }

    /// Parses a submessage in the most frequent form at the start of `bytes`; returns it and the
    /// bytes after it.
    ///
    /// The form is little-endian, with a value, without inline QoS and unknown fields. `None` for
    /// anything else.
    #[inline(always)]
    pub(crate) fn parse_plain(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        const START: [u8; 2] = [id::DATA, DATA | 1];
        let (fixed, rest) = bytes.split_first_chunk::<24>()?;
        let mut fixed = Cursor::new(fixed, Endianness::Little, "DATA");
        if fixed.array().ok()? != START {
            return None;
        }
        let len = usize::from(fixed.u16().ok()?);
        let _extra_flags = fixed.u16().ok()?;
        if fixed.u16().ok()? != 16 {
            return None;
        }
        let (reader, writer) = (EntityId(fixed.array().ok()?), EntityId(fixed.array().ok()?));
        let sequence_number = SequenceNumber::parse(&mut fixed).ok()?;
        // Length 0 means "to the end of the message".
        let (payload, rest) =
            if len == 0 { (rest, &rest[rest.len()..]) } else { rest.split_at_checked(len.checked_sub(20)?)? };
        let is_possible = (SequenceNumber::FIRST..=SequenceNumber::MAX).contains(&sequence_number);
        if !is_possible || payload.len() < ENCAPSULATION_LEN {
            return None;
        }
        let data =
            Self { reader, writer, sequence_number, inline_qos: None, payload: Payload::Data(payload) };
        Some((data, rest))
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

/// The part of a DATA submessage before inline QoS and payload, which the caller appends.
///
/// Both together are at most 65515 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataHeader {
    /// The reader it is for; UNKNOWN for all.
    pub reader: EntityId,
    /// The writer that sends it.
    pub writer: EntityId,
    /// The sample's number.
    pub sequence_number: SequenceNumber,
    /// Length of the inline QoS with its sentinel, in bytes; 0 without.
    pub inline_qos_len: u32,
    /// Length of the payload, padded to a multiple of 4, in bytes; 0 without.
    pub payload_len: u32,
    /// Whether the payload is only the key.
    pub is_key: bool,
}

impl DataHeader {
    /// Length with the submessage header, in bytes.
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
        let len = 20 + self.inline_qos_len as usize + self.payload_len as usize;
        out.submessage(id::DATA, inline_qos | payload, len);
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
    fn bytes_are_as_the_specification_draws_them() {
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

    #[test]
    fn a_payload_has_room_for_its_encapsulation_header() {
        for len in 24..28 {
            let problem = Data::parse(LITTLE[1], &LITTLE[4..len]).unwrap_err().problem;
            assert_eq!(problem, Problem::Truncated, "{len} bytes");
        }
        assert!(Data::parse(LITTLE[1], &LITTLE[4..28]).is_ok());
        assert_eq!(Data::parse(0x01, &LITTLE[4..24]).unwrap().payload, Payload::None);
    }

    #[test]
    fn what_lies_between_the_known_fields_and_the_inline_qos_is_skipped() {
        let mut bytes = vec![0x15, 0x07, 0, 0, 0, 0, 20, 0];
        bytes.extend_from_slice(&LITTLE[8..24]);
        bytes.extend_from_slice(&[0xee, 0xee, 0xee, 0xee, 0x71, 0, 4, 0, 0, 0, 0, 3, 1, 0, 0, 0]);
        bytes.extend_from_slice(&LITTLE[24..]);
        let data = Data::parse(bytes[1], &bytes[4..]).unwrap();
        let parameter = data.inline_qos.unwrap().iter().next().unwrap().unwrap();
        assert_eq!(parameter.bytes(), Ok([0, 0, 0, 3]));
        assert_eq!(data.payload, Payload::Data(&LITTLE[24..]));
        assert_eq!(data.to_string(), "DATA 00000203->00000000 7 8 B");
    }
}
