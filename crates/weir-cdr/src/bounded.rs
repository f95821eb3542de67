//! Strings and sequences with an upper bound on their length.

use core::marker::PhantomData;

use crate::{CdrError, CdrReader, CdrValue, CdrWriter, Encoding, Layout, Result};

/// A string or a sequence: a value with a length that can be bounded.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot have `max_len`",
    note = "only String, Vec, Bytes and BTreeMap can be bounded with #[dds(max_len = N)]"
)]
pub trait CdrCollection: CdrValue {
    /// The layout of one element.
    const ELEMENT_LAYOUT: Layout;

    /// The layout of the part of an element that belongs to a key.
    const ELEMENT_KEY_LAYOUT: Layout = Self::ELEMENT_LAYOUT;

    /// Whether the elements are followed by a NUL, as in strings.
    const HAS_TERMINATOR: bool;

    /// Whether XCDR2 delimits it: if its elements are not primitive.
    const IS_DELIMITED: bool;

    /// The number of elements; for a string, of bytes without the NUL.
    fn element_count(&self) -> usize;

    /// Reads a value of at most `max_len` elements.
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`] if it is longer, before it is read; otherwise as
    /// [`CdrValue::decode`].
    fn decode_bounded(reader: &mut CdrReader<'_>, max_len: u32) -> Result<Self>;

    /// Reads a value of at most `max_len` elements over this one, reusing its memory.
    ///
    /// # Errors
    /// As [`decode_bounded`](Self::decode_bounded).
    #[inline]
    fn decode_into_bounded(&mut self, reader: &mut CdrReader<'_>, max_len: u32) -> Result {
        *self = Self::decode_bounded(reader, max_len)?;
        Ok(())
    }

    /// Reads a value of at most `max_len` elements and writes it.
    ///
    /// # Errors
    /// As [`decode_bounded`](Self::decode_bounded) and [`CdrValue::encode`].
    fn copy_bounded(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>, max_len: u32) -> Result;

    /// Reads what [`encode_as_key`](CdrValue::encode_as_key) writes of at most `max_len` elements.
    ///
    /// # Errors
    /// As [`decode_bounded`](Self::decode_bounded).
    #[inline]
    fn decode_as_key_bounded(&mut self, reader: &mut CdrReader<'_>, max_len: u32) -> Result {
        self.decode_into_bounded(reader, max_len)
    }

    /// Reads a value of at most `max_len` elements and writes the part that belongs to a key.
    ///
    /// # Errors
    /// As [`copy_bounded`](Self::copy_bounded).
    #[inline]
    fn copy_as_key_bounded(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>, max_len: u32) -> Result {
        Self::copy_bounded(reader, writer, max_len)
    }
}

/// Codec of a member with `#[dds(max_len = MAX_LEN)]`: the functions of [`CdrValue`] with the bound
/// applied.
///
/// Never instantiated: only generated code refers to it.
#[derive(Debug)]
pub struct Bounded<T: CdrCollection, const MAX_LEN: u32>(PhantomData<T>);

impl<T: CdrCollection, const MAX_LEN: u32> Bounded<T, MAX_LEN> {
    /// As [`CdrValue::LAYOUT`], with a maximum size if the elements have one.
    pub const LAYOUT: Layout = Self::layout(T::ELEMENT_LAYOUT);

    /// As [`CdrValue::KEY_IS_WHOLE`].
    pub const KEY_IS_WHOLE: bool = T::KEY_IS_WHOLE;

    /// As [`CdrValue::KEY_LAYOUT`].
    pub const KEY_LAYOUT: Layout = Self::layout(T::ELEMENT_KEY_LAYOUT);

    /// As [`CdrValue::BULK_ELEMENT`].
    pub const BULK_ELEMENT: Option<usize> = T::BULK_ELEMENT;

    const fn layout(element: Layout) -> Layout {
        if T::HAS_TERMINATOR {
            return Layout::bounded_string(MAX_LEN as usize);
        }
        let sequence = element.bounded_sequence(MAX_LEN as usize);
        if T::IS_DELIMITED { sequence.delimited() } else { sequence }
    }

    /// As [`CdrValue::end_offset`].
    #[inline(always)]
    pub fn end_offset(value: &T, offset: usize, encoding: Encoding) -> usize {
        value.end_offset(offset, encoding)
    }

    /// As [`CdrValue::encode`].
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`] if the value is too long.
    #[inline(always)]
    pub fn encode(value: &T, writer: &mut CdrWriter<'_>) -> Result {
        Self::check(value, writer)?;
        value.encode(writer)
    }

    /// As [`CdrValue::bulk_bytes`].
    #[inline(always)]
    pub fn bulk_bytes(value: &T) -> Option<&[u8]> {
        value.bulk_bytes()
    }

    /// As [`CdrValue::encode_before_bulk`].
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`] if there are too many elements.
    #[inline(always)]
    pub fn encode_before_bulk(value: &T, count: usize, writer: &mut CdrWriter<'_>) -> Result {
        if count > MAX_LEN as usize {
            return Err(CdrError::BoundExceeded { max: MAX_LEN });
        }
        value.encode_before_bulk(count, writer)
    }

    /// As [`CdrValue::bulk_count`].
    pub fn bulk_count(value: &T) -> usize {
        value.bulk_count()
    }

    /// As [`CdrValue::encode_bulk_part`].
    ///
    /// # Errors
    /// As there.
    pub fn encode_bulk_part(value: &T, at: usize, out: &mut [u8]) -> Result {
        value.encode_bulk_part(at, out)
    }

    /// As [`CdrValue::decode`].
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`] if the value is too long.
    #[inline(always)]
    pub fn decode(reader: &mut CdrReader<'_>) -> Result<T> {
        T::decode_bounded(reader, MAX_LEN)
    }

    /// As [`CdrValue::decode_into`].
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`] if the value is too long.
    #[inline(always)]
    pub fn decode_into(value: &mut T, reader: &mut CdrReader<'_>) -> Result {
        value.decode_into_bounded(reader, MAX_LEN)
    }

    /// As [`CdrValue::skip`].
    ///
    /// # Errors
    /// If the data end before the value does.
    #[inline(always)]
    pub fn skip(reader: &mut CdrReader<'_>) -> Result {
        T::skip(reader)
    }

    /// As [`CdrValue::copy`].
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`] if the value is too long.
    #[inline(always)]
    pub fn copy(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result {
        T::copy_bounded(reader, writer, MAX_LEN)
    }

    /// As [`CdrValue::end_offset_as_key`].
    #[inline(always)]
    pub fn end_offset_as_key(value: &T, offset: usize, encoding: Encoding) -> usize {
        value.end_offset_as_key(offset, encoding)
    }

    /// As [`CdrValue::encode_as_key`].
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`] if the value is too long.
    #[inline(always)]
    pub fn encode_as_key(value: &T, writer: &mut CdrWriter<'_>) -> Result {
        Self::check(value, writer)?;
        value.encode_as_key(writer)
    }

    /// As [`CdrValue::decode_as_key`].
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`] if the value is too long.
    #[inline(always)]
    pub fn decode_as_key(value: &mut T, reader: &mut CdrReader<'_>) -> Result {
        value.decode_as_key_bounded(reader, MAX_LEN)
    }

    /// As [`CdrValue::copy_as_key`].
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`] if the value is too long.
    #[inline(always)]
    pub fn copy_as_key(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result {
        T::copy_as_key_bounded(reader, writer, MAX_LEN)
    }

    /// Checks the length of a value to be written. Keys reach this through whole values, too: a struct without key
    /// members, a union or a sequence that is a key is written as any value is.
    #[inline(always)]
    fn check(value: &T, writer: &CdrWriter<'_>) -> Result {
        if value.element_count() > MAX_LEN as usize && writer.checks_bounds() {
            return Err(CdrError::BoundExceeded { max: MAX_LEN });
        }
        Ok(())
    }
}
