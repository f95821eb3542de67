//! The encapsulation header that precedes a serialized sample (RTPS 2.5 §10.2).
//!
//! ```text
//!  0...............8..............16..............24..............32
//! +---------------+---------------+---------------+---------------+
//! |     representation identifier |    options: 0, padding count  |
//! +---------------+---------------+---------------+---------------+
//! ~   the sample, aligned from here, padded to a multiple of 4    ~
//! +---------------+---------------+---------------+---------------+
//! ```

use crate::{CdrError, CdrReader, CdrWriter, DdsType, Encoding, Endianness};

/// The size of the encapsulation header in bytes.
pub const ENCAPSULATION_LEN: usize = 4;

/// Plain CDR, big endian.
const CDR_BE: u16 = 0x0000;
/// Plain CDR, little endian.
const CDR_LE: u16 = 0x0001;

/// The size in bytes of the payload of `value`: header, sample and padding. A multiple of four.
#[inline]
pub fn payload_len<T: DdsType>(value: &T) -> usize {
    ENCAPSULATION_LEN + value.serialized_size(Encoding::Xcdr1).next_multiple_of(4)
}

/// Writes header, sample and padding at the start of `out` and returns their size in bytes, which is
/// [`payload_len`].
///
/// # Errors
/// [`CdrError::BufferTooSmall`], or what makes the value impossible to represent.
#[inline]
pub fn encode_payload<T: DdsType>(value: &T, out: &mut [u8]) -> Result<usize, CdrError> {
    let (header, body) = out.split_first_chunk_mut().ok_or(CdrError::BufferTooSmall)?;
    let mut writer = CdrWriter::new(body, Endianness::Little, Encoding::Xcdr1);
    value.encode(&mut writer)?;
    let end = writer.position();
    let padding = writer.reserve(1, end.next_multiple_of(4) - end)?;
    padding.fill(0);
    // XTypes 1.3 §7.6.3.1.2: the two lowest bits of the options count the padding bytes.
    *header = [0, CDR_LE as u8, 0, padding.len() as u8];
    Ok(ENCAPSULATION_LEN + end + padding.len())
}

/// Appends header, sample and padding to `out`.
///
/// # Errors
/// What makes the value impossible to represent; `out` is then as it was.
pub fn to_payload<T: DdsType>(value: &T, out: &mut Vec<u8>) -> Result<(), CdrError> {
    let start = out.len();
    out.resize(start + payload_len(value), 0);
    let result = encode_payload(value, out.get_mut(start..).unwrap_or_default());
    out.truncate(start + result.unwrap_or(0));
    result.map(drop)
}

/// The sample in a payload.
///
/// # Errors
/// As [`payload_reader`] and [`CdrValue::decode`](crate::CdrValue::decode).
#[inline]
pub fn from_payload<T: DdsType>(payload: &[u8]) -> Result<T, CdrError> {
    T::decode(&mut payload_reader(payload)?)
}

/// Reads the sample in a payload over `value`, reusing its memory.
///
/// # Errors
/// As [`from_payload`]; `value` may then be partly overwritten.
#[inline]
pub fn from_payload_into<T: DdsType>(payload: &[u8], value: &mut T) -> Result<(), CdrError> {
    value.decode_into(&mut payload_reader(payload)?)
}

/// A reader at the first byte behind the encapsulation header. The options are ignored, as are bytes behind the sample:
/// not all senders set them.
///
/// # Errors
/// [`CdrError::UnsupportedEncapsulation`] if it is not plain CDR, [`CdrError::UnexpectedEnd`] without a header.
#[inline]
pub fn payload_reader(payload: &[u8]) -> Result<CdrReader<'_>, CdrError> {
    let (header, body) = payload.split_first_chunk::<ENCAPSULATION_LEN>().ok_or(CdrError::UnexpectedEnd)?;
    let endianness = match u16::from_be_bytes([header[0], header[1]]) {
        CDR_LE => Endianness::Little,
        CDR_BE => Endianness::Big,
        identifier => return Err(CdrError::UnsupportedEncapsulation(identifier)),
    };
    Ok(CdrReader::new(body, endianness, Encoding::Xcdr1))
}
