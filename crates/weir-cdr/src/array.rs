//! Arrays: the elements, without a length.
//!
//! An array of arrays of primitives is a multi-dimensional array, which XCDR2 does not delimit.
//! With other elements it is an array of a named array type (`typedef`): each inner array is
//! delimited, as is the outer one.

use crate::description::ElementDescription;
use crate::value::array_of;
use crate::{CdrReader, CdrValue, CdrWriter, Encoding, Layout, Result, TypeDescription};

impl<T: CdrValue, const N: usize> CdrValue for [T; N] {
    const LAYOUT: Layout = {
        let elements = T::LAYOUT.repeat(N);
        if T::IS_PRIMITIVE_ARRAY { elements } else { elements.delimited() }
    };

    const KEY_IS_WHOLE: bool = T::KEY_IS_WHOLE;
    const KEY_LAYOUT: Layout =
        if T::KEY_IS_WHOLE { Self::LAYOUT } else { T::KEY_LAYOUT.repeat(N).delimited() };

    const IS_PRIMITIVE_ARRAY: bool = T::IS_PRIMITIVE_ARRAY;
    const DESCRIPTION: TypeDescription = TypeDescription::Array {
        element: &ElementDescription {
            of: T::DESCRIPTION,
            layout: T::LAYOUT,
            is_delimited: !T::IS_PRIMITIVE_ARRAY,
            skip_many: T::skip_many,
        },
        len: N,
    };

    #[inline]
    fn end_offset(&self, offset: usize, encoding: Encoding) -> usize {
        let offset = if T::IS_PRIMITIVE_ARRAY { offset } else { encoding.delimiter_end(offset) };
        T::end_offset_slice(self, offset, encoding)
    }

    #[inline(always)]
    fn encode(&self, writer: &mut CdrWriter<'_>) -> Result {
        if T::IS_PRIMITIVE_ARRAY {
            return T::encode_slice(self, writer);
        }
        let open = writer.open_delimited()?;
        T::encode_slice(self, writer)?;
        writer.close_delimited(open)
    }

    #[inline]
    fn decode(reader: &mut CdrReader<'_>) -> Result<Self> {
        if T::IS_PRIMITIVE_ARRAY {
            return T::decode_array(reader);
        }
        let open = reader.open_delimited()?;
        let values = T::decode_array(reader)?;
        reader.close_delimited(open);
        Ok(values)
    }

    #[inline]
    fn decode_into(&mut self, reader: &mut CdrReader<'_>) -> Result {
        if T::IS_PRIMITIVE_ARRAY {
            return T::decode_into_slice(self, reader);
        }
        let open = reader.open_delimited()?;
        T::decode_into_slice(self, reader)?;
        reader.close_delimited(open);
        Ok(())
    }

    #[inline]
    fn skip(reader: &mut CdrReader<'_>) -> Result {
        if !T::IS_PRIMITIVE_ARRAY && reader.skip_delimited()? {
            return Ok(());
        }
        T::skip_many(N, reader)
    }

    #[inline]
    fn copy(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result {
        if T::IS_PRIMITIVE_ARRAY {
            return T::copy_many(N, reader, writer);
        }
        let (open, open_out) = (reader.open_delimited()?, writer.open_delimited()?);
        T::copy_many(N, reader, writer)?;
        reader.close_delimited(open);
        writer.close_delimited(open_out)
    }

    #[inline]
    fn end_offset_as_key(&self, offset: usize, encoding: Encoding) -> usize {
        if T::KEY_IS_WHOLE {
            return self.end_offset(offset, encoding);
        }
        let offset = encoding.delimiter_end(offset);
        self.iter().fold(offset, |offset, value| value.end_offset_as_key(offset, encoding))
    }

    #[inline]
    fn encode_as_key(&self, writer: &mut CdrWriter<'_>) -> Result {
        if T::KEY_IS_WHOLE {
            return self.encode(writer);
        }
        let open = writer.open_delimited()?;
        self.iter().try_for_each(|value| value.encode_as_key(writer))?;
        writer.close_delimited(open)
    }

    #[inline]
    fn decode_as_key(&mut self, reader: &mut CdrReader<'_>) -> Result {
        if T::KEY_IS_WHOLE {
            return self.decode_into(reader);
        }
        let open = reader.open_delimited()?;
        self.iter_mut().try_for_each(|value| value.decode_as_key(reader))?;
        reader.close_delimited(open);
        Ok(())
    }

    #[inline]
    fn decode_new_as_key(reader: &mut CdrReader<'_>) -> Result<Self> {
        if T::KEY_IS_WHOLE {
            return Self::decode(reader);
        }
        let open = reader.open_delimited()?;
        let values = array_of(|| T::decode_new_as_key(reader))?;
        reader.close_delimited(open);
        Ok(values)
    }

    #[inline]
    fn copy_as_key(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result {
        if T::KEY_IS_WHOLE {
            return Self::copy(reader, writer);
        }
        let (open, open_out) = (reader.open_delimited()?, writer.open_delimited()?);
        (0..N).try_for_each(|_| T::copy_as_key(reader, writer))?;
        reader.close_delimited(open);
        writer.close_delimited(open_out)
    }
}
