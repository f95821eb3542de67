//! DATA_FRAG: fragments of a sample (RTPS 2.5 §8.3.8.3, §9.4.5.4).
//!
//! ```text
//! | DATA_FRAG 16  |X|X|X|X|N|K|Q|E|      octetsToNextHeader        |
//! |          extraFlags           |       octetsToInlineQos        |
//! |                           reader id                            |
//! |                           writer id                            |
//! |                        writerSN (8)                            |
//! |                      fragmentStartingNum                       |
//! |    fragmentsInSubmessage      |         fragmentSize           |
//! |                          sampleSize                            |
//! |                 inlineQos: parameter list [Q]                  |
//! |                      serializedPayload                         |
//! ```

use core::fmt;

use super::data::INLINE_QOS;
use super::id;
use crate::bytes::{Cursor, Emit, Endianness, Filler};
use crate::error::{ParseError, Problem};
use crate::guid::EntityId;
use crate::parameter_list::ParameterList;
use crate::sequence_number::SequenceNumber;

/// Consecutive fragments of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataFrag<'a> {
    /// The reader it is for; UNKNOWN for all.
    pub reader: EntityId,
    /// The writer that sends it.
    pub writer: EntityId,
    /// Number of the sample.
    pub sequence_number: SequenceNumber,
    /// Number of the first fragment, from 1.
    pub fragment_start: u32,
    /// Number of fragments.
    pub fragments: u16,
    /// Length of each fragment of the sample except the last, in bytes.
    pub fragment_size: u16,
    /// Length of the complete payload with its encapsulation header, in bytes.
    pub sample_size: u32,
    /// Whether the payload is only the key.
    pub is_key: bool,
    /// QoS of this sample only.
    pub inline_qos: Option<ParameterList<'a>>,
    /// The bytes of the fragments.
    pub payload: &'a [u8],
}

impl<'a> DataFrag<'a> {
    const KEY: u8 = 0x04;
    const NON_STANDARD_PAYLOAD: u8 = 0x08;

    /// Returns whether the payload starts with an encapsulation header.
    pub(super) const fn is_standard(flags: u8) -> bool {
        flags & Self::NON_STANDARD_PAYLOAD == 0
    }

    pub(super) fn parse(flags: u8, body: &'a [u8]) -> Result<Self, ParseError> {
        let endianness = Endianness::from_flags(flags);
        let mut cursor = Cursor::new(body, endianness, "DATA_FRAG");
        let _extra_flags = cursor.u16()?;
        let to_inline_qos = usize::from(cursor.u16()?);
        let mut behind = cursor;
        let mut frag = Self {
            reader: EntityId(cursor.array()?),
            writer: EntityId(cursor.array()?),
            sequence_number: SequenceNumber::parse_positive(&mut cursor)?,
            fragment_start: cursor.u32()?,
            fragments: cursor.u16()?,
            fragment_size: cursor.u16()?,
            sample_size: cursor.u32()?,
            is_key: flags & Self::KEY != 0,
            inline_qos: None,
            payload: &[],
        };
        if to_inline_qos < 28 {
            return cursor.fail(Problem::BadLength);
        }
        behind.slice(to_inline_qos)?;
        frag.payload = behind.rest();
        if flags & INLINE_QOS != 0 {
            let (list, len) = ParameterList::parse(frag.payload, endianness)?;
            frag.inline_qos = Some(list);
            frag.payload = frag.payload.get(len..).unwrap_or_default();
        }
        frag.check()
    }

    /// Checks that the numbers agree with each other and with the payload's length.
    fn check(mut self) -> Result<Self, ParseError> {
        let bad = ParseError::new("DATA_FRAG", Problem::BadFragment);
        let (size, sample) = (u64::from(self.fragment_size), u64::from(self.sample_size));
        if self.fragment_start == 0 || self.fragments == 0 || size == 0 || sample == 0 {
            return Err(bad);
        }
        let start = u64::from(self.fragment_start - 1) * size;
        let end = (start + u64::from(self.fragments) * size).min(sample);
        // All or some of the fragments are after the end of the sample.
        if start + u64::from(self.fragments - 1) * size >= sample {
            return Err(bad);
        }
        self.payload = self.payload.get(..(end - start) as usize).ok_or(bad)?;
        Ok(self)
    }
}

impl Emit for DataFrag<'_> {
    /// Without inline QoS, which is not written. The payload is at most 65500 bytes.
    fn wire_len(&self) -> usize {
        36 + self.payload.len().next_multiple_of(4)
    }

    fn emit(&self, out: &mut [u8]) {
        let len = self.wire_len();
        out[36 + self.payload.len()..len].fill(0);
        let mut out = Filler::new(out);
        out.submessage(id::DATA_FRAG, if self.is_key { Self::KEY } else { 0 }, len - 4);
        out.u16(0);
        out.u16(28);
        out.bytes(&self.reader.0);
        out.bytes(&self.writer.0);
        self.sequence_number.emit(&mut out);
        out.u32(self.fragment_start);
        out.u16(self.fragments);
        out.u16(self.fragment_size);
        out.u32(self.sample_size);
        out.bytes(self.payload);
    }
}

/// The part of a DATA_FRAG submessage before the fragments' bytes, which the caller appends.
/// Without inline QoS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataFragHeader {
    /// The reader it is for; UNKNOWN for all.
    pub reader: EntityId,
    /// The writer that sends it.
    pub writer: EntityId,
    /// Number of the sample.
    pub sequence_number: SequenceNumber,
    /// Number of the first fragment, from 1.
    pub fragment_start: u32,
    /// Number of fragments.
    pub fragments: u16,
    /// Length of each fragment of the sample except the last, in bytes.
    pub fragment_size: u16,
    /// Length of the complete payload with its encapsulation header, in bytes.
    pub sample_size: u32,
    /// Length of the fragments' bytes.
    pub payload_len: u32,
}

impl Emit for DataFragHeader {
    fn wire_len(&self) -> usize {
        36
    }

    fn emit(&self, out: &mut [u8]) {
        let mut out = Filler::new(out);
        out.submessage(id::DATA_FRAG, 0, self.payload_len as usize + 32);
        out.u16(0);
        out.u16(28);
        out.bytes(&self.reader.0);
        out.bytes(&self.writer.0);
        self.sequence_number.emit(&mut out);
        out.u32(self.fragment_start);
        out.u16(self.fragments);
        out.u16(self.fragment_size);
        out.u32(self.sample_size);
    }
}

impl fmt::Display for DataFrag<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, count, size) = (self.fragment_start, self.fragments, self.fragment_size);
        write!(f, "DATA_FRAG {}->{} {} ", self.writer, self.reader, self.sequence_number)?;
        write!(f, "fragment {start}+{count} of {size} B, sample {} B", self.sample_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: [u8; 44] = [
        0x16, 0x01, 40, 0, // id, flag E, octetsToNextHeader
        0, 0, 28, 0, // extraFlags, octetsToInlineQos
        0, 0, 0, 0, // reader
        0, 0, 2, 3, // writer
        0, 0, 0, 0, 7, 0, 0, 0, // writerSN
        2, 0, 0, 0, // fragmentStartingNum
        1, 0, 8, 0, // fragmentsInSubmessage, fragmentSize
        16, 0, 0, 0, // sampleSize
        1, 2, 3, 4, 5, 6, 7, 8, // the second fragment
    ];
    const BIG: [u8; 44] = [
        0x16, 0x00, 0, 40, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 2, 3, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2, 0, 1, 0,
        8, 0, 0, 0, 16, 1, 2, 3, 4, 5, 6, 7, 8,
    ];

    #[test]
    fn bytes_are_as_the_specification_draws_them() {
        let frag = DataFrag {
            reader: EntityId::UNKNOWN,
            writer: EntityId([0, 0, 2, 3]),
            sequence_number: SequenceNumber(7),
            fragment_start: 2,
            fragments: 1,
            fragment_size: 8,
            sample_size: 16,
            is_key: false,
            inline_qos: None,
            payload: &[1, 2, 3, 4, 5, 6, 7, 8],
        };
        let mut out = [0xee; 44];
        frag.emit(&mut out);
        assert_eq!(out, LITTLE);
        assert_eq!(DataFrag::parse(LITTLE[1], &LITTLE[4..]), Ok(frag));
        assert_eq!(DataFrag::parse(BIG[1], &BIG[4..]), Ok(frag));
        assert_eq!(frag.to_string(), "DATA_FRAG 00000203->00000000 7 fragment 2+1 of 8 B, sample 16 B");
    }

    #[test]
    fn only_the_last_fragment_may_be_short() {
        let mut bytes = LITTLE;
        bytes[32] = 11;
        assert_eq!(DataFrag::parse(bytes[1], &bytes[4..39]).unwrap().payload, [1, 2, 3]);
        assert_eq!(DataFrag::parse(bytes[1], &bytes[4..]).unwrap().payload, [1, 2, 3], "padding is cut off");
        let problem = |bytes: &[u8]| DataFrag::parse(bytes[1], &bytes[4..]).unwrap_err().problem;
        assert_eq!(problem(&bytes[..38]), Problem::BadFragment);
        assert_eq!(problem(&LITTLE[..43]), Problem::BadFragment);
    }

    #[test]
    fn numbers_that_contradict_each_other_are_refused() {
        for (at, value) in [(24, 0), (24, 3), (28, 0), (28, 2), (30, 0), (32, 0), (32, 8), (31, 0xff)] {
            let mut bytes = LITTLE;
            bytes[at] = value;
            let problem = DataFrag::parse(bytes[1], &bytes[4..]).map_err(|error| error.problem);
            assert_eq!(problem, Err(Problem::BadFragment), "byte {at} = {value}");
        }
    }
}
