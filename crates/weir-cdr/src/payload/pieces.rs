//! Payloads piece by piece, for values that are too large to be encoded before the first part is
//! sent.

use super::{ENCAPSULATION_LEN, identified};
use crate::{CdrError, CdrWriter, DdsType, Encoding, Endianness, Result};

/// The payload of a value that ends in a sequence of numbers (its *bulk*).
///
/// Parts can be written in any order; together they are what
/// [`encode_payload_in`](super::encode_payload_in) writes.
#[derive(Debug)]
pub struct Pieces<'a, T> {
    value: &'a T,
    /// Everything before the bulk, with the encapsulation header.
    front: [u8; FRONT_MAX],
    front_len: usize,
    bulk_len: usize,
    len: usize,
}

/// Maximum length of the front, in bytes.
const FRONT_MAX: usize = 1024;

impl<'a, T: DdsType> Pieces<'a, T> {
    /// Prepares the payload of `value`; `None` if the type has no bulk, or if more than 1 KiB
    /// precede it.
    ///
    /// # Errors
    /// The reason why the value cannot be encoded. No error is possible after that.
    pub fn new(value: &'a T, encoding: Encoding) -> Result<Option<Self>> {
        let Some(element) = T::BULK_ELEMENT else { return Ok(None) };
        let (identifier, encoding) = identified::<T>(encoding);
        let mut front = [0; FRONT_MAX];
        let mut writer = CdrWriter::new(&mut front[ENCAPSULATION_LEN..], Endianness::Little, encoding);
        match value.encode_before_bulk(value.bulk_count(), &mut writer) {
            Ok(()) => {}
            Err(CdrError::BufferTooSmall) => return Ok(None),
            Err(error) => return Err(error),
        }
        let front_len = ENCAPSULATION_LEN + writer.position();
        let bulk_len = value.bulk_count() * element;
        let len = (front_len + bulk_len).next_multiple_of(4);
        front[..ENCAPSULATION_LEN].copy_from_slice(&[
            0,
            identifier as u8,
            0,
            (len - front_len - bulk_len) as u8,
        ]);
        Ok(Some(Self { value, front, front_len, bulk_len, len }))
    }

    /// Returns the size of the payload in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a payload has at least a header")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Writes the bytes of the payload from `at` on to `out`, followed by zeros after its end.
    ///
    /// # Errors
    /// That of [`CdrValue::encode_bulk_part`](crate::CdrValue::encode_bulk_part); derived types
    /// have none.
    pub fn write(&self, at: usize, out: &mut [u8]) -> Result {
        let front = self.front[..self.front_len].get(at..).unwrap_or_default();
        let (head, out) = out.split_at_mut(front.len().min(out.len()));
        head.copy_from_slice(&front[..head.len()]);
        let bulk_at = (at + head.len() - self.front_len.min(at + head.len())).min(self.bulk_len);
        let (bulk, padding) = out.split_at_mut((self.bulk_len - bulk_at).min(out.len()));
        if !bulk.is_empty() {
            self.value.encode_bulk_part(bulk_at, bulk)?;
        }
        padding.fill(0);
        Ok(())
    }
}
