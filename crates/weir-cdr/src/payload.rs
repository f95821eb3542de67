//! The encapsulation header that precedes a serialized sample (RTPS 2.5, 10.2).
//!
//! ```text
//!  0...............8..............16..............24..............32
//! +---------------+---------------+---------------+---------------+
//! |     representation identifier |    options: 0, padding count  |
//! +---------------+---------------+---------------+---------------+
//! ~   the sample, aligned from here, padded to a multiple of 4    ~
//! +---------------+---------------+---------------+---------------+
//! ```

mod pieces;

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

pub use pieces::Pieces;

use crate::shared::SharedMemory;
use crate::{CdrError, CdrReader, CdrWriter, DdsType, Encoding, Endianness, Extensibility, Result, copy};

/// The size of the encapsulation header in bytes.
pub const ENCAPSULATION_LEN: usize = 4;

/// Plain CDR, big endian.
const CDR_BE: u16 = 0x0000;
/// Plain CDR, little endian.
const CDR_LE: u16 = 0x0001;
/// Plain CDR2 (final types), big endian.
const CDR2_BE: u16 = 0x0006;
/// Plain CDR2, little endian.
const CDR2_LE: u16 = 0x0007;
/// Delimited CDR2 (appendable types), big endian.
const D_CDR2_BE: u16 = 0x0008;
/// Delimited CDR2, little endian.
const D_CDR2_LE: u16 = 0x0009;

/// Returns the size of the payload of `value` in bytes: header, sample and padding. A multiple of
/// four.
#[inline]
pub fn payload_len_in<T: DdsType>(value: &T, encoding: Encoding) -> usize {
    // The constants let the compiler resolve the alignment for each.
    let size = match encoding {
        Encoding::Xcdr1 => value.serialized_size(Encoding::Xcdr1),
        Encoding::Xcdr2 | Encoding::PlainXcdr2 => value.serialized_size(Encoding::Xcdr2),
    };
    ENCAPSULATION_LEN + Encoding::Xcdr1.align(size, 4)
}

/// Writes header, sample and padding to the start of `out`. Returns their size,
/// [`payload_len_in`].
///
/// # Errors
/// [`CdrError::BufferTooSmall`], or the reason why the value cannot be encoded.
#[inline]
pub fn encode_payload_in<T: DdsType>(value: &T, encoding: Encoding, out: &mut [u8]) -> Result<usize> {
    match encoding {
        Encoding::Xcdr1 => encode_payload_xcdr1(value, out),
        Encoding::Xcdr2 | Encoding::PlainXcdr2 => encode_payload_xcdr2(value, out),
    }
}

/// Not inlined: inlined, its errors were mixed with the caller's in memory, which took twice the
/// instructions.
#[inline(never)]
fn encode_payload_xcdr1<T: DdsType>(value: &T, out: &mut [u8]) -> Result<usize> {
    encode_as(value, CDR_LE, Encoding::Xcdr1, out)
}

/// Not inlined either.
#[inline(never)]
fn encode_payload_xcdr2<T: DdsType>(value: &T, out: &mut [u8]) -> Result<usize> {
    encode_as(value, xcdr2_identifier::<T>(), Encoding::Xcdr2, out)
}

/// Completes a payload whose bulk is already in place.
///
/// The bulk is the sequence of numbers that `value` ends in. Its `count` elements are at `bulk_at`
/// in `out`, in little-endian order. Writes the other members before it and padding after it.
/// Returns the range of the payload, which starts at most `bulk_at` bytes before the bulk.
///
/// # Errors
/// [`CdrError::BufferTooSmall`] if there is too little room before or after the bulk,
/// [`CdrError::NoBulk`] if the type does not end in a sequence of numbers, or the reason why the
/// value cannot be encoded.
pub fn frame_bulk<T: DdsType>(
    value: &T,
    encoding: Encoding,
    out: &mut [u8],
    bulk_at: usize,
    count: usize,
) -> Result<Range<usize>> {
    let element = T::BULK_ELEMENT.ok_or(CdrError::NoBulk)?;
    let bulk_len = count.checked_mul(element).ok_or(CdrError::LengthOverflow)?;
    let (identifier, encoding) = identified::<T>(encoding);
    let front = out.get_mut(..bulk_at).ok_or(CdrError::BufferTooSmall)?;
    let body = front.get_mut(ENCAPSULATION_LEN..).ok_or(CdrError::BufferTooSmall)?;
    let mut writer = CdrWriter::new(body, Endianness::Little, encoding);
    value.encode_before_bulk(count, &mut writer)?;
    let front_len = ENCAPSULATION_LEN + writer.position();
    let start = bulk_at - front_len;
    front.copy_within(..front_len, start);
    let end = bulk_at.checked_add(bulk_len).ok_or(CdrError::BufferTooSmall)?;
    let padding = (end - start).next_multiple_of(4) - (end - start);
    out.get_mut(end..end + padding).ok_or(CdrError::BufferTooSmall)?.fill(0);
    out[start..start + ENCAPSULATION_LEN].copy_from_slice(&[0, identifier as u8, 0, padding as u8]);
    Ok(start..end + padding)
}

/// Returns the payload that identifies an instance: header, key members and padding.
///
/// In XCDR2 the key of an appendable type is delimited like a sample. In XCDR1 a short key is
/// followed by zeros, see [`KEY_PAYLOAD_LEN_MIN`].
///
/// # Errors
/// The reason why the key cannot be encoded.
pub fn key_payload<T: DdsType>(value: &T, encoding: Encoding) -> Result<Vec<u8>> {
    let encoding = if encoding == Encoding::Xcdr1 { encoding } else { Encoding::Xcdr2 };
    encode_key(value, encoding, true)
}

/// Converts the payload of a key that was received to one of [`key_payload`].
///
/// Strings that are not UTF-8 become longer, and may exceed their bounds then: read it by
/// [`from_converted_key_payload`].
///
/// # Errors
/// As [`from_key_payload`].
pub fn convert_key_payload<T: DdsType>(payload: &[u8], encoding: Encoding) -> Result<Vec<u8>> {
    let encoding = if encoding == Encoding::Xcdr1 { encoding } else { Encoding::Xcdr2 };
    encode_key(&from_key_payload::<T>(payload)?, encoding, false)
}

/// Removes the delimiters from an XCDR2 key payload of [`key_payload`].
///
/// For readers that expect none (Cyclone DDS 0.10), under the same representation identifier.
///
/// # Errors
/// As [`from_key_payload`].
pub fn undelimited_key_payload<T: DdsType>(payload: &[u8]) -> Result<Vec<u8>> {
    encode_key(&from_key_payload::<T>(payload)?, Encoding::PlainXcdr2, false)
}

fn encode_key<T: DdsType>(value: &T, encoding: Encoding, checks_bounds: bool) -> Result<Vec<u8>> {
    let (identifier, len_min) = match encoding {
        Encoding::Xcdr1 => (CDR_LE, KEY_PAYLOAD_LEN_MIN),
        Encoding::Xcdr2 | Encoding::PlainXcdr2 => (xcdr2_identifier::<T>(), 0),
    };
    let len = ENCAPSULATION_LEN + value.key_size(encoding).next_multiple_of(4);
    let mut payload = vec![0; len.max(len_min)];
    let (header, body) = payload.split_first_chunk_mut().ok_or(CdrError::BufferTooSmall)?;
    let mut writer = CdrWriter::new(body, Endianness::Little, encoding);
    if !checks_bounds {
        writer = writer.without_bounds();
    }
    value.encode_key(&mut writer)?;
    finish(header, identifier, writer)?;
    Ok(payload)
}

/// The minimum size of [`key_payload`] in XCDR1, in bytes.
///
/// Fast DDS up to 2.9, which has only XCDR1, treats any payload of at most 16 bytes, encapsulation
/// header included, as a key hash. For longer payloads it uses the key hash in inline QoS. Others
/// stop reading after the key.
pub const KEY_PAYLOAD_LEN_MIN: usize = 20;

/// Always inlined, and without a closure, so that the compiler knows the writer's position and
/// encoding.
#[inline(always)]
fn encode_as<T: DdsType>(value: &T, identifier: u16, encoding: Encoding, out: &mut [u8]) -> Result<usize> {
    let Some(bytes) = value.bulk_bytes() else {
        let (header, body) = out.split_first_chunk_mut().ok_or(CdrError::BufferTooSmall)?;
        let mut writer = CdrWriter::new(body, Endianness::Little, encoding);
        value.encode(&mut writer)?;
        return finish(header, identifier, writer);
    };
    // The bytes are last because they take a call: hardly anything has to be kept across it.
    let (start, len) = encode_around_as(value, bytes.len(), identifier, encoding, out)?;
    let room = out.get_mut(start..start + bytes.len()).ok_or(CdrError::BufferTooSmall)?;
    copy::copy(copy::Stage::Encode, room, bytes);
    Ok(len)
}

/// [`encode_payload_in`] without the `count` bytes that the value ends in.
///
/// See [`CdrValue::bulk_bytes`](crate::CdrValue::bulk_bytes). Returns the range in `out` that
/// they belong in, which is left unchanged.
///
/// # Errors
/// As [`encode_payload_in`], and [`CdrError::NoBulk`] if the type does not end in a sequence of
/// numbers.
pub fn encode_payload_around<T: DdsType>(
    value: &T,
    count: usize,
    encoding: Encoding,
    out: &mut [u8],
) -> Result<usize> {
    let (identifier, encoding) = identified::<T>(encoding);
    encode_around_as(value, count, identifier, encoding, out).map(|(start, _)| start)
}

/// Returns the position of the bytes, and the total length.
#[inline(always)]
fn encode_around_as<T: DdsType>(
    value: &T,
    count: usize,
    identifier: u16,
    encoding: Encoding,
    out: &mut [u8],
) -> Result<(usize, usize)> {
    let (header, body) = out.split_first_chunk_mut().ok_or(CdrError::BufferTooSmall)?;
    let mut writer = CdrWriter::new(body, Endianness::Little, encoding);
    value.encode_before_bulk(count, &mut writer)?;
    let start = writer.position();
    writer.reserve(1, count)?;
    let len = finish(header, identifier, writer)?;
    Ok((ENCAPSULATION_LEN + start, len))
}

/// Writes the padding after a value and the header before it. Returns the total length.
#[inline(always)]
fn finish(header: &mut [u8; ENCAPSULATION_LEN], identifier: u16, mut writer: CdrWriter<'_>) -> Result<usize> {
    let end = writer.position();
    let padding = end.wrapping_neg() % 4;
    // Usually there is none.
    if padding > 0 {
        let room = writer.reserve(1, padding)?;
        // One by one: `fill` is a call.
        for at in 0..PADDING_MAX {
            if let Some(byte) = room.get_mut(at) {
                *byte = 0;
            }
        }
    }
    // XTypes 1.3, 7.6.3.1.2: the two lowest bits of the options count the padding bytes.
    *header = [0, identifier as u8, 0, padding as u8];
    Ok(ENCAPSULATION_LEN + end + padding)
}

/// Returns the representation identifier of an encoding, and the encoding of samples.
const fn identified<T: DdsType>(encoding: Encoding) -> (u16, Encoding) {
    match encoding {
        Encoding::Xcdr1 => (CDR_LE, Encoding::Xcdr1),
        Encoding::Xcdr2 | Encoding::PlainXcdr2 => (xcdr2_identifier::<T>(), Encoding::Xcdr2),
    }
}

const fn xcdr2_identifier<T: DdsType>() -> u16 {
    match T::EXTENSIBILITY {
        Extensibility::Appendable => D_CDR2_LE,
        Extensibility::Final | Extensibility::Mutable => CDR2_LE,
    }
}

/// Appends header, sample and padding in XCDR1 to `out`.
///
/// # Errors
/// The reason why the value cannot be encoded; `out` is unchanged then.
pub fn to_payload<T: DdsType>(value: &T, out: &mut Vec<u8>) -> Result {
    to_payload_in(value, Encoding::Xcdr1, out)
}

/// The same in any encoding.
///
/// # Errors
/// As [`to_payload`].
pub fn to_payload_in<T: DdsType>(value: &T, encoding: Encoding, out: &mut Vec<u8>) -> Result {
    let start = out.len();
    out.resize(start + payload_len_in(value, encoding), 0);
    let result = encode_payload_in(value, encoding, out.get_mut(start..).unwrap_or_default());
    out.truncate(start + result.unwrap_or(0));
    result.map(drop)
}

/// Decodes the sample in a payload.
///
/// # Errors
/// As [`payload_reader_of`] and [`CdrValue::decode`](crate::CdrValue::decode).
#[inline]
pub fn from_payload<T: DdsType>(payload: &[u8]) -> Result<T> {
    let mut reader = payload_reader_of::<T>(payload)?;
    T::decode(&mut reader)
}

/// Decodes the sample in a payload over `value`, reusing its memory.
///
/// # Errors
/// As [`from_payload`]; `value` may be partly overwritten then.
#[inline]
pub fn from_payload_into<T: DdsType>(payload: &[u8], value: &mut T) -> Result {
    match open(payload)? {
        // A constant byte order and encoding, so that the compiler resolves the alignment.
        (CDR_LE, body) => value.decode_into(&mut CdrReader::new(body, Endianness::Little, Encoding::Xcdr1)),
        (identifier, body) if identifier == const { xcdr2_identifier::<T>() } => {
            from_little_xcdr2_into(body, value)
        }
        _ => from_any_into(payload, value),
    }
}

/// The same for a payload in `memory`, parts of which the value may keep alive.
///
/// # Errors
/// As [`from_payload_into`].
pub fn from_shared_payload_into<T: DdsType>(
    payload: &[u8],
    memory: &dyn SharedMemory,
    value: &mut T,
) -> Result {
    value.decode_into(&mut payload_reader_of::<T>(payload)?.shared(memory))
}

#[inline(never)]
fn from_little_xcdr2_into<T: DdsType>(body: &[u8], value: &mut T) -> Result {
    value.decode_into(&mut CdrReader::new(body, Endianness::Little, Encoding::Xcdr2))
}

#[inline(never)]
fn from_any_into<T: DdsType>(payload: &[u8], value: &mut T) -> Result {
    value.decode_into(&mut payload_reader_of::<T>(payload)?)
}

/// Decodes the payload of [`key_payload`] to a sample with only the key members.
///
/// In XCDR2 the key of an appendable type is delimited like any value, but some engines omit the delimiters (Cyclone
/// DDS 0.10). The two forms are distinguished by their lengths: in the right one, the key is as long as the payload.
///
/// # Errors
/// As [`payload_reader_of`], and if the data are not a key of this type.
pub fn from_key_payload<T: DdsType>(payload: &[u8]) -> Result<T> {
    read_key(payload, payload_reader_of::<T>(payload)?)
}

/// The same for a payload of [`convert_key_payload`].
///
/// # Errors
/// As [`from_key_payload`], except that strings may exceed their bounds.
pub fn from_converted_key_payload<T: DdsType>(payload: &[u8]) -> Result<T> {
    read_key(payload, payload_reader_of::<T>(payload)?.without_bounds())
}

fn read_key<T: DdsType>(payload: &[u8], mut reader: CdrReader<'_>) -> Result<T> {
    if reader.encoding() == Encoding::Xcdr1 {
        return T::decode_key(&mut reader);
    }
    let body = open(payload)?.1;
    let mut plain = CdrReader::new(body, reader.endianness(), Encoding::PlainXcdr2);
    match T::decode_key(&mut reader) {
        // Nothing but padding follows.
        Ok(key) if reader.remaining() <= PADDING_MAX => {
            // Nor was anything skipped at the end of a delimited value. (Text that is not UTF-8 makes the size larger.)
            if body.len() <= key.key_size(Encoding::Xcdr2) + PADDING_MAX {
                return Ok(key);
            }
            // What was skipped is members of another version of the type, unless the other form has room for all.
            match T::decode_key(&mut plain) {
                Ok(undelimited) if plain.remaining() <= PADDING_MAX => Ok(undelimited),
                _ => Ok(key),
            }
        }
        _ => T::decode_key(&mut plain),
    }
}

/// Maximum number of padding bytes after a sample.
const PADDING_MAX: usize = 3;

/// Returns a reader at the first byte after the encapsulation header, for a payload of this type.
///
/// Ignores the options and bytes after the sample: not all senders set them.
///
/// # Errors
/// - [`CdrError::UnsupportedEncapsulation`]: it is neither plain nor delimited CDR.
/// - [`CdrError::UnexpectedEnd`]: there is no header.
/// - [`CdrError::ExtensibilityMismatch`]: an XCDR2 payload is delimited and the type is final, or
///   vice versa. It would be misread silently.
#[inline]
pub fn payload_reader_of<T: DdsType>(payload: &[u8]) -> Result<CdrReader<'_>> {
    payload_reader(payload, xcdr2_identifier::<T>() == D_CDR2_LE)
}

/// [`payload_reader_of`] for a type that is known at run time.
#[inline(always)]
pub(crate) fn payload_reader(payload: &[u8], is_appendable: bool) -> Result<CdrReader<'_>> {
    let (identifier, body) = open(payload)?;
    match identifier {
        CDR_LE => Ok(CdrReader::new(body, Endianness::Little, Encoding::Xcdr1)),
        CDR_BE => Ok(CdrReader::new(body, Endianness::Big, Encoding::Xcdr1)),
        _ => xcdr2_reader_of(identifier, body, is_appendable),
    }
}

// Out of line, to keep the XCDR1 paths short.
#[inline(never)]
fn xcdr2_reader_of(identifier: u16, body: &[u8], is_appendable: bool) -> Result<CdrReader<'_>> {
    let (endianness, is_delimited) = match identifier {
        CDR2_LE => (Endianness::Little, false),
        CDR2_BE => (Endianness::Big, false),
        D_CDR2_LE => (Endianness::Little, true),
        D_CDR2_BE => (Endianness::Big, true),
        identifier => return Err(CdrError::UnsupportedEncapsulation(identifier)),
    };
    if is_delimited != is_appendable {
        return Err(CdrError::ExtensibilityMismatch(identifier));
    }
    Ok(CdrReader::new(body, endianness, Encoding::Xcdr2))
}

/// Returns the representation identifier and the bytes after the header.
#[inline(always)]
fn open(payload: &[u8]) -> Result<(u16, &[u8])> {
    let (header, body) = payload.split_first_chunk::<ENCAPSULATION_LEN>().ok_or(CdrError::UnexpectedEnd)?;
    Ok((u16::from_be_bytes([header[0], header[1]]), body))
}
