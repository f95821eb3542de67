//! The trait of everything that has a CDR form.

use alloc::vec::Vec;

use crate::{CdrError, CdrReader, CdrWriter, Encoding, Layout, Result, TypeDescription};

/// A value with a CDR form: a primitive, string, sequence, map, array, enumeration, struct or
/// union.
///
/// Derived together with [`DdsType`](crate::DdsType), rarely implemented manually.
///
/// The methods whose names end in `_slice`, `_vec`, `_array` or `_many` process several consecutive
/// values. They exist so that primitives can do it in one copy; other types keep the provided ones.
/// Those with `key` in their names process the part of the value that belongs to the key if a
/// member of this type is a key member (DDS-XTypes 1.3, 7.6.8). Of a struct with key members that is
/// these, of another struct all members, and of a collection all elements; of each of them again
/// the part that belongs to the key. Of all others it is everything.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no CDR form",
    label = "not a type that DDS can carry",
    note = "members can be bool, integers, floats, String, Vec, BTreeMap, arrays, Option, and structs and enums with #[derive(DdsType)]"
)]
pub trait CdrValue: Sized {
    /// Bounds on the serialized size (XCDR1).
    const LAYOUT: Layout;

    /// Whether the part that belongs to a key is always the whole value, in every encoding.
    const KEY_IS_WHOLE: bool = true;

    /// The layout of the part that belongs to a key.
    const KEY_LAYOUT: Layout = Self::LAYOUT;

    /// The serialized size in bytes if it is the same for every value (XCDR1, started at a multiple
    /// of eight).
    const FIXED_SIZE: Option<usize> = Self::LAYOUT.fixed_size();

    /// The largest serialized size in bytes, `None` if unbounded (XCDR1, started at a multiple of
    /// eight).
    const MAX_SIZE: Option<usize> = Self::LAYOUT.max_size();

    /// Whether this is a primitive type: collections of others are delimited in XCDR2.
    const IS_PRIMITIVE: bool = false;

    /// Whether this is a primitive type, or an array of such in any number of dimensions: arrays of
    /// others are delimited in XCDR2.
    const IS_PRIMITIVE_ARRAY: bool = Self::IS_PRIMITIVE;

    /// The size of an element of the *bulk* in bytes.
    ///
    /// The bulk is the sequence of numbers that every value of this type ends in. `None` if there
    /// is none. Such elements need not be encoded: see [`frame_bulk`](crate::frame_bulk).
    const BULK_ELEMENT: Option<usize> = None;

    /// What the type consists of, for code that finds members by name.
    const DESCRIPTION: TypeDescription = TypeDescription::Opaque;

    /// Returns the end of the serialized value if it starts at `offset`, leading padding included.
    fn end_offset(&self, offset: usize, encoding: Encoding) -> usize;

    /// Writes the value.
    ///
    /// # Errors
    /// [`CdrError::BufferTooSmall`], or the reason why the value cannot be encoded.
    fn encode(&self, writer: &mut CdrWriter<'_>) -> Result;

    /// Reads a value.
    ///
    /// # Errors
    /// If the data are not a value of this type.
    fn decode(reader: &mut CdrReader<'_>) -> Result<Self>;

    /// Reads a value over this one, reusing its memory.
    ///
    /// # Errors
    /// As [`decode`](Self::decode); the value may then be partly overwritten.
    #[inline]
    fn decode_into(&mut self, reader: &mut CdrReader<'_>) -> Result {
        *self = Self::decode(reader)?;
        Ok(())
    }

    /// Skips a value. Checks lengths, not the content.
    ///
    /// # Errors
    /// If the data end before the value does.
    fn skip(reader: &mut CdrReader<'_>) -> Result;

    /// Reads a value and writes it, each in its own byte order and encoding, without building it.
    ///
    /// # Errors
    /// As [`decode`](Self::decode) and [`encode`](Self::encode).
    fn copy(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result;

    /// Returns the end of the part that belongs to a key if it starts at `offset`.
    #[inline]
    fn end_offset_as_key(&self, offset: usize, encoding: Encoding) -> usize {
        self.end_offset(offset, encoding)
    }

    /// Writes the part that belongs to a key.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    #[inline]
    fn encode_as_key(&self, writer: &mut CdrWriter<'_>) -> Result {
        self.encode(writer)
    }

    /// Reads what [`encode_as_key`](Self::encode_as_key) writes; leaves the rest of the value
    /// unchanged.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    #[inline]
    fn decode_as_key(&mut self, reader: &mut CdrReader<'_>) -> Result {
        self.decode_into(reader)
    }

    /// Reads what [`encode_as_key`](Self::encode_as_key) writes, to a new value.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    #[inline]
    fn decode_new_as_key(reader: &mut CdrReader<'_>) -> Result<Self> {
        Self::decode(reader)
    }

    /// Reads a whole value and writes the part that belongs to a key.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    #[inline]
    fn copy_as_key(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result {
        Self::copy(reader, writer)
    }

    /// Writes everything before the bulk, as if it had `count` elements; those of the value itself
    /// are ignored.
    ///
    /// # Errors
    /// [`CdrError::NoBulk`] if the type has none, otherwise as [`encode`](Self::encode).
    fn encode_before_bulk(&self, count: usize, writer: &mut CdrWriter<'_>) -> Result {
        let _ = (count, writer);
        Err(CdrError::NoBulk)
    }

    /// The bulk, if it is bytes. Appended to what [`encode_before_bulk`](Self::encode_before_bulk)
    /// writes, they give what [`encode`](Self::encode) writes.
    #[inline(always)]
    fn bulk_bytes(&self) -> Option<&[u8]> {
        None
    }

    /// The values as bytes, if they are bytes.
    #[inline(always)]
    fn as_bytes(values: &[Self]) -> Option<&[u8]> {
        let _ = values;
        None
    }

    /// Returns the number of elements in the bulk; 0 if the type has none.
    #[inline]
    fn bulk_count(&self) -> usize {
        0
    }

    /// Writes a part of the bulk to `out`: its bytes from `at` on, in little-endian order, as if
    /// encoded at offset 0. Bytes of `out` after the end of the bulk are unchanged.
    ///
    /// # Errors
    /// [`CdrError::NoBulk`] if the type has none.
    fn encode_bulk_part(&self, at: usize, out: &mut [u8]) -> Result {
        let _ = (at, out);
        Err(CdrError::NoBulk)
    }

    /// [`end_offset`](Self::end_offset) of several values.
    #[inline]
    fn end_offset_slice(values: &[Self], offset: usize, encoding: Encoding) -> usize {
        values.iter().fold(offset, |offset, value| value.end_offset(offset, encoding))
    }

    /// [`encode`](Self::encode) of several values.
    ///
    /// # Errors
    /// As for one.
    #[inline]
    fn encode_slice(values: &[Self], writer: &mut CdrWriter<'_>) -> Result {
        values.iter().try_for_each(|value| value.encode(writer))
    }

    /// [`decode_into`](Self::decode_into) of several values.
    ///
    /// # Errors
    /// As for one.
    #[inline]
    fn decode_into_slice(values: &mut [Self], reader: &mut CdrReader<'_>) -> Result {
        values.iter_mut().try_for_each(|value| value.decode_into(reader))
    }

    /// Replaces `values` by the next `count` values, reusing its memory. The caller has checked
    /// that the data can hold them ([`CdrReader::take_length`]), as small as they can be.
    ///
    /// # Errors
    /// As for one.
    #[inline]
    fn decode_into_vec(values: &mut Vec<Self>, count: usize, reader: &mut CdrReader<'_>) -> Result {
        values.truncate(count);
        Self::decode_into_slice(values, reader)?;
        values.reserve_exact(count_to_reserve::<Self>(count - values.len(), reader.remaining()));
        for _ in values.len()..count {
            values.push(Self::decode(reader)?);
        }
        Ok(())
    }

    /// [`decode`](Self::decode) of several values.
    ///
    /// # Errors
    /// As for one.
    #[inline]
    fn decode_array<const N: usize>(reader: &mut CdrReader<'_>) -> Result<[Self; N]> {
        array_of(|| Self::decode(reader))
    }

    /// [`skip`](Self::skip) of several values.
    ///
    /// # Errors
    /// As for one.
    #[inline]
    fn skip_many(count: usize, reader: &mut CdrReader<'_>) -> Result {
        (0..count).try_for_each(|_| Self::skip(reader))
    }

    /// [`copy`](Self::copy) of several values.
    ///
    /// # Errors
    /// As for one.
    #[inline]
    fn copy_many(count: usize, reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result {
        (0..count).try_for_each(|_| Self::copy(reader, writer))
    }
}

/// Returns for how many of the next `count` values to allocate at once, if the data have `remaining` more bytes.
///
/// As many as the data can hold with all their members. More may follow whose last members are missing: they are
/// allocated as they are read, because their number alone may be a lie.
#[inline(always)]
const fn count_to_reserve<T: CdrValue>(count: usize, remaining: usize) -> usize {
    let [min_size, min_size_2] = T::LAYOUT.min_sizes();
    // For other types, the check of the count was enough.
    if min_size_2 >= min_size {
        return count;
    }
    let whole = remaining / min_size;
    if count < whole { count } else { whole }
}

/// Returns an array of the values that `next` returns.
#[inline]
pub(crate) fn array_of<T, const N: usize>(mut next: impl FnMut() -> Result<T>) -> Result<[T; N]> {
    let mut first_error = Ok(());
    let values: [Option<T>; N] = core::array::from_fn(|_| {
        first_error.ok()?;
        next().map_err(|error| first_error = Err(error)).ok()
    });
    first_error?;
    Ok(values.map(|value| match value {
        Some(value) => value,
        None => unreachable!("an element is only missing after an error"),
    }))
}
