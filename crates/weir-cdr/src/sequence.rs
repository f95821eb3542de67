//! Sequences: the number of elements, then the elements.

use alloc::vec::Vec;

use crate::description::ElementDescription;
use crate::{
    CdrCollection, CdrError, CdrReader, CdrValue, CdrWriter, Encoding, Endianness, Layout, Result,
    TypeDescription,
};

impl<T: CdrValue> CdrValue for Vec<T> {
    // Without this, four bytes of data could announce four billion elements without bytes. Using
    // the element's layout also makes a type that contains a sequence of itself an error: nested
    // data could exhaust the stack.
    const LAYOUT: Layout = {
        assert!(T::LAYOUT.min_size() > 0, "the elements of a sequence must take at least one byte");
        let sequence = T::LAYOUT.sequence();
        if T::IS_PRIMITIVE { sequence } else { sequence.delimited() }
    };
    const DESCRIPTION: TypeDescription = TypeDescription::Sequence {
        element: &ElementDescription {
            of: T::DESCRIPTION,
            layout: T::LAYOUT,
            is_delimited: !T::IS_PRIMITIVE,
            skip_many: T::skip_many,
        },
    };
    const KEY_IS_WHOLE: bool = T::KEY_IS_WHOLE;
    const KEY_LAYOUT: Layout =
        if T::KEY_IS_WHOLE { Self::LAYOUT } else { T::KEY_LAYOUT.sequence().delimited() };
    const BULK_ELEMENT: Option<usize> = if T::IS_PRIMITIVE { T::LAYOUT.fixed_size() } else { None };

    #[inline]
    fn end_offset(&self, offset: usize, encoding: Encoding) -> usize {
        let offset = if T::IS_PRIMITIVE { offset } else { encoding.delimiter_end(offset) };
        T::end_offset_slice(self, encoding.align(offset, 4) + 4, encoding)
    }

    #[inline(always)]
    fn encode(&self, writer: &mut CdrWriter<'_>) -> Result {
        if T::IS_PRIMITIVE {
            writer.write_length(self.len())?;
            return T::encode_slice(self, writer);
        }
        let open = writer.open_delimited()?;
        writer.write_length(self.len())?;
        T::encode_slice(self, writer)?;
        writer.close_delimited(open)
    }

    #[inline]
    fn decode(reader: &mut CdrReader<'_>) -> Result<Self> {
        Self::decode_bounded(reader, u32::MAX)
    }

    #[inline(always)]
    fn decode_into(&mut self, reader: &mut CdrReader<'_>) -> Result {
        self.decode_into_bounded(reader, u32::MAX)
    }

    #[inline]
    fn skip(reader: &mut CdrReader<'_>) -> Result {
        if !T::IS_PRIMITIVE && reader.skip_delimited()? {
            return Ok(());
        }
        let count = take_count::<T>(reader, u32::MAX)?;
        T::skip_many(count, reader)
    }

    #[inline]
    fn copy(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result {
        Self::copy_bounded(reader, writer, u32::MAX)
    }

    #[inline]
    fn end_offset_as_key(&self, offset: usize, encoding: Encoding) -> usize {
        if T::KEY_IS_WHOLE {
            return self.end_offset(offset, encoding);
        }
        let offset = encoding.align(encoding.delimiter_end(offset), 4) + 4;
        self.iter().fold(offset, |offset, value| value.end_offset_as_key(offset, encoding))
    }

    #[inline]
    fn encode_as_key(&self, writer: &mut CdrWriter<'_>) -> Result {
        if T::KEY_IS_WHOLE {
            return self.encode(writer);
        }
        let open = writer.open_delimited()?;
        writer.write_length(self.len())?;
        self.iter().try_for_each(|value| value.encode_as_key(writer))?;
        writer.close_delimited(open)
    }

    #[inline]
    fn decode_as_key(&mut self, reader: &mut CdrReader<'_>) -> Result {
        self.decode_as_key_bounded(reader, u32::MAX)
    }

    #[inline]
    fn decode_new_as_key(reader: &mut CdrReader<'_>) -> Result<Self> {
        let mut values = Self::new();
        values.decode_as_key(reader)?;
        Ok(values)
    }

    #[inline]
    fn copy_as_key(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result {
        Self::copy_as_key_bounded(reader, writer, u32::MAX)
    }

    #[inline(always)]
    fn bulk_bytes(&self) -> Option<&[u8]> {
        T::as_bytes(self)
    }

    #[inline(always)]
    fn encode_before_bulk(&self, count: usize, writer: &mut CdrWriter<'_>) -> Result {
        let element = Self::BULK_ELEMENT.ok_or(CdrError::NoBulk)?;
        writer.write_length(count)?;
        // No padding before an empty sequence.
        if count > 0 {
            writer.reserve(element, 0)?;
        }
        Ok(())
    }

    #[inline]
    fn bulk_count(&self) -> usize {
        if Self::BULK_ELEMENT.is_some() { self.len() } else { 0 }
    }

    fn encode_bulk_part(&self, at: usize, out: &mut [u8]) -> Result {
        encode_part(self, at, out)
    }
}

/// Writes the little-endian bytes of `values` from `at` on, as many as fit. The first and the last
/// element may be truncated.
fn encode_part<T: CdrValue>(values: &[T], at: usize, out: &mut [u8]) -> Result {
    let element = <Vec<T>>::BULK_ELEMENT.ok_or(CdrError::NoBulk)?;
    let write = |values: &[T], out: &mut [u8]| {
        T::encode_slice(values, &mut CdrWriter::new(out, Endianness::Little, Encoding::Xcdr1))
    };
    let mut number = [0; ELEMENT_MAX];
    let (cut, values) = (at % element, values.get(at / element..).unwrap_or_default());
    let (values, out) = match values.split_first() {
        Some((first, rest)) if cut > 0 => {
            write(core::slice::from_ref(first), &mut number)?;
            let len = out.len().min(element - cut);
            let (head, out) = out.split_at_mut(len);
            head.copy_from_slice(&number[cut..cut + len]);
            (rest, out)
        }
        _ => (values, out),
    };
    let whole = values.len().min(out.len() / element);
    let (body, tail) = out.split_at_mut(whole * element);
    write(&values[..whole], body)?;
    if let Some(last) = values.get(whole).filter(|_| !tail.is_empty()) {
        write(core::slice::from_ref(last), &mut number)?;
        tail.copy_from_slice(&number[..tail.len()]);
    }
    Ok(())
}

/// Size of the largest number, in bytes.
const ELEMENT_MAX: usize = 8;

impl<T: CdrValue> CdrCollection for Vec<T> {
    const ELEMENT_LAYOUT: Layout = T::LAYOUT;
    const ELEMENT_KEY_LAYOUT: Layout = T::KEY_LAYOUT;
    const HAS_TERMINATOR: bool = false;
    const IS_DELIMITED: bool = !T::IS_PRIMITIVE;

    #[inline]
    fn element_count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn decode_bounded(reader: &mut CdrReader<'_>, max_len: u32) -> Result<Self> {
        let mut values = Self::new();
        values.decode_into_bounded(reader, max_len)?;
        Ok(values)
    }

    #[inline(always)]
    fn decode_into_bounded(&mut self, reader: &mut CdrReader<'_>, max_len: u32) -> Result {
        if T::IS_PRIMITIVE {
            let count = take_count::<T>(reader, max_len)?;
            return T::decode_into_vec(self, count, reader);
        }
        decode_into_delimited(self, reader, max_len)
    }

    #[inline]
    fn copy_bounded(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>, max_len: u32) -> Result {
        if T::IS_PRIMITIVE {
            let count = take_count::<T>(reader, max_len)?;
            writer.write_length(count)?;
            return T::copy_many(count, reader, writer);
        }
        let (open, open_out) = (reader.open_delimited()?, writer.open_delimited()?);
        let count = take_count::<T>(reader, max_len)?;
        writer.write_length(count)?;
        T::copy_many(count, reader, writer)?;
        reader.close_delimited(open);
        writer.close_delimited(open_out)
    }

    #[inline]
    fn decode_as_key_bounded(&mut self, reader: &mut CdrReader<'_>, max_len: u32) -> Result {
        if T::KEY_IS_WHOLE {
            return self.decode_into_bounded(reader, max_len);
        }
        let open = reader.open_delimited()?;
        let count = within(reader.take_count(const { T::KEY_LAYOUT.min_sizes() })?, max_len)?;
        self.clear();
        for _ in 0..count {
            self.push(T::decode_new_as_key(reader)?);
        }
        reader.close_delimited(open);
        Ok(())
    }

    #[inline]
    fn copy_as_key_bounded(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>, max_len: u32) -> Result {
        if T::KEY_IS_WHOLE {
            return Self::copy_bounded(reader, writer, max_len);
        }
        let (open, open_out) = (reader.open_delimited()?, writer.open_delimited()?);
        let count = take_count::<T>(reader, max_len)?;
        writer.write_length(count)?;
        (0..count).try_for_each(|_| T::copy_as_key(reader, writer))?;
        reader.close_delimited(open);
        writer.close_delimited(open_out)
    }
}

/// Out of line, so that only short code is always inlined.
#[inline]
fn decode_into_delimited<T: CdrValue>(
    values: &mut Vec<T>,
    reader: &mut CdrReader<'_>,
    max_len: u32,
) -> Result {
    let open = reader.open_delimited()?;
    let count = take_count::<T>(reader, max_len)?;
    T::decode_into_vec(values, count, reader)?;
    reader.close_delimited(open);
    Ok(())
}

#[inline(always)]
fn take_count<T: CdrValue>(reader: &mut CdrReader<'_>, max_len: u32) -> Result<usize> {
    let min_sizes = const {
        // Evaluates the assertion in it: an unused constant is not evaluated.
        let _ = <Vec<T> as CdrValue>::LAYOUT;
        T::LAYOUT.min_sizes()
    };
    within(reader.take_count(min_sizes)?, max_len)
}

/// Checks a number of elements.
#[inline(always)]
pub(crate) fn within(count: usize, max_len: u32) -> Result<usize> {
    if count > max_len as usize { Err(CdrError::BoundExceeded { max: max_len }) } else { Ok(count) }
}
