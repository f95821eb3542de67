//! Optional members.
//!
//! XCDR2 precedes them by a boolean, XCDR1 by a header as in parameter lists (DDS-XTypes 1.3,
//! 7.4.1.2, 7.4.3.5):
//!
//! ```text
//! 0...............................16..............................32
//! +-+-+---------------------------+-------------------------------+
//! |I|M|         member id         |  length, 0 if it is absent    |
//! +-+-+---------------------------+-------------------------------+
//! ~          the value, with offsets counted from here            ~
//! +---------------------------------------------------------------+
//! ```
//!
//! The id 0x3f01 with the length 8 announces a longer id and a longer length, of 32 bits each.

use core::marker::PhantomData;

use crate::{CdrError, CdrReader, CdrValue, CdrWriter, Encoding, Layout, Result};

/// Codec of a member of type `Option<T>` with the id `ID`: the functions of [`CdrValue`].
///
/// Never instantiated: only generated code refers to it.
#[derive(Debug)]
pub struct Optional<T: CdrValue, const ID: u32>(PhantomData<T>);

/// The id that announces a header of the long form.
const PID_EXTENDED: u16 = 0x3f01;
/// Masks the flags of a short id.
const SHORT_ID_MASK: u16 = 0x3fff;
/// Masks the flags of a long id.
const LONG_ID_MASK: u32 = 0x0fff_ffff;
/// The largest id of the short form; larger ones are reserved.
const SHORT_ID_MAX: u32 = 0x3eff;
const SHORT_HEADER_LEN: usize = 4;
const LONG_HEADER_LEN: usize = 12;

impl<T: CdrValue, const ID: u32> Optional<T, ID> {
    /// As [`CdrValue::LAYOUT`].
    pub const LAYOUT: Layout = T::LAYOUT.optional();

    /// As [`CdrValue::KEY_IS_WHOLE`]: an optional member cannot be a key, so a key that it is a part of anyway contains
    /// all of it.
    pub const KEY_IS_WHOLE: bool = true;

    /// As [`CdrValue::KEY_LAYOUT`].
    pub const KEY_LAYOUT: Layout = Self::LAYOUT;

    /// As [`CdrValue::end_offset`].
    #[inline]
    pub fn end_offset(value: &Option<T>, offset: usize, encoding: Encoding) -> usize {
        match (encoding, value) {
            (Encoding::Xcdr1, _) => {
                let len = value.as_ref().map_or(0, |value| value.end_offset(0, encoding));
                let header = if is_short(ID, len) { SHORT_HEADER_LEN } else { LONG_HEADER_LEN };
                encoding.align(offset, 4) + header + len
            }
            (Encoding::Xcdr2 | Encoding::PlainXcdr2, None) => offset + 1,
            (Encoding::Xcdr2 | Encoding::PlainXcdr2, Some(value)) => value.end_offset(offset + 1, encoding),
        }
    }

    /// As [`CdrValue::encode`].
    ///
    /// # Errors
    /// As for the value.
    #[inline]
    pub fn encode(value: &Option<T>, writer: &mut CdrWriter<'_>) -> Result {
        if writer.encoding() == Encoding::Xcdr1 {
            return Self::encode_xcdr1(value.as_ref(), writer);
        }
        value.is_some().encode(writer)?;
        value.as_ref().map_or(Ok(()), |value| value.encode(writer))
    }

    fn encode_xcdr1(value: Option<&T>, writer: &mut CdrWriter<'_>) -> Result {
        let len = value.map_or(0, |value| value.end_offset(0, Encoding::Xcdr1));
        // Aligned to four, which the two halves of the short form do not ensure.
        writer.reserve(4, 0)?;
        if is_short(ID, len) {
            (ID as u16).encode(writer)?;
            (len as u16).encode(writer)?;
        } else {
            PID_EXTENDED.encode(writer)?;
            8_u16.encode(writer)?;
            ID.encode(writer)?;
            writer.write_length(len)?;
        }
        let (endianness, checks_bounds) = (writer.endianness(), writer.checks_bounds());
        let room = writer.reserve(1, len)?;
        let mut inner = CdrWriter::new(room, endianness, Encoding::Xcdr1).checking_bounds(checks_bounds);
        value.map_or(Ok(()), |value| value.encode(&mut inner))
    }

    /// As [`CdrValue::decode`].
    ///
    /// # Errors
    /// As for the value, and [`CdrError::UnexpectedMember`] if the header is that of another
    /// member.
    #[inline]
    pub fn decode(reader: &mut CdrReader<'_>) -> Result<Option<T>> {
        if reader.encoding() == Encoding::Xcdr1 {
            let value = Self::take_xcdr1(reader)?;
            return value.map(|mut value| T::decode(&mut value)).transpose();
        }
        if bool::decode(reader)? { T::decode(reader).map(Some) } else { Ok(None) }
    }

    /// As [`CdrValue::decode_into`].
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    #[inline]
    pub fn decode_into(value: &mut Option<T>, reader: &mut CdrReader<'_>) -> Result {
        match value {
            Some(old) if reader.encoding() != Encoding::Xcdr1 => {
                if bool::decode(reader)? {
                    return old.decode_into(reader);
                }
                *value = None;
            }
            _ => *value = Self::decode(reader)?,
        }
        Ok(())
    }

    /// As [`CdrValue::skip`].
    ///
    /// # Errors
    /// As [`decode`](Self::decode), except that the value is not checked.
    #[inline]
    pub fn skip(reader: &mut CdrReader<'_>) -> Result {
        if reader.encoding() == Encoding::Xcdr1 {
            return Self::take_xcdr1(reader).map(drop);
        }
        if bool::decode(reader)? { T::skip(reader) } else { Ok(()) }
    }

    /// Reads what precedes the value. Returns a reader of the value, unless it is absent.
    ///
    /// # Errors
    /// As [`skip`](Self::skip). In XCDR2 `reader` is not moved past the value.
    pub fn open<'a>(reader: &mut CdrReader<'a>) -> Result<Option<CdrReader<'a>>> {
        if reader.encoding() == Encoding::Xcdr1 {
            return Self::take_xcdr1(reader);
        }
        Ok(bool::decode(reader)?.then(|| reader.clone()))
    }

    /// As [`CdrValue::copy`]. Decodes the value: its size must be known before it is written.
    ///
    /// # Errors
    /// As [`decode`](Self::decode) and [`encode`](Self::encode).
    #[inline]
    pub fn copy(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result {
        Self::encode(&Self::decode(reader)?, writer)
    }

    /// As [`CdrValue::end_offset_as_key`].
    #[inline]
    pub fn end_offset_as_key(value: &Option<T>, offset: usize, encoding: Encoding) -> usize {
        Self::end_offset(value, offset, encoding)
    }

    /// As [`CdrValue::encode_as_key`].
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    #[inline]
    pub fn encode_as_key(value: &Option<T>, writer: &mut CdrWriter<'_>) -> Result {
        Self::encode(value, writer)
    }

    /// As [`CdrValue::decode_as_key`].
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    #[inline]
    pub fn decode_as_key(value: &mut Option<T>, reader: &mut CdrReader<'_>) -> Result {
        Self::decode_into(value, reader)
    }

    /// As [`CdrValue::copy_as_key`].
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    #[inline]
    pub fn copy_as_key(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result {
        Self::copy(reader, writer)
    }

    /// Reads the header and skips the value. Returns a reader of the value, unless it is absent.
    fn take_xcdr1<'a>(reader: &mut CdrReader<'a>) -> Result<Option<CdrReader<'a>>> {
        reader.take(4, 0)?;
        let short_id = u16::decode(reader)? & SHORT_ID_MASK;
        let short_len = u16::decode(reader)?;
        let (id, len) = if short_id == PID_EXTENDED {
            (u32::decode(reader)? & LONG_ID_MASK, u32::decode(reader)? as usize)
        } else {
            (u32::from(short_id), usize::from(short_len))
        };
        if id != ID {
            return Err(CdrError::UnexpectedMember { expected: ID, found: id });
        }
        let (endianness, checks_bounds) = (reader.endianness(), reader.checks_bounds());
        let value = reader.take_bytes(len)?;
        let inner = || CdrReader::new(value, endianness, Encoding::Xcdr1).checking_bounds(checks_bounds);
        Ok((len > 0).then(inner))
    }
}

const fn is_short(id: u32, len: usize) -> bool {
    id <= SHORT_ID_MAX && len <= u16::MAX as usize
}
