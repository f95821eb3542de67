//! Arrays: the elements, without a length.
//!
//! An array of arrays of primitives is a multi-dimensional array, which XCDR2 does not delimit.
//! With other elements it is an array of a named array type (`typedef`): each inner array is
//! delimited, as is the outer one.

use crate::description::ElementDescription;
use crate::{CdrReader, CdrValue, CdrWriter, Encoding, Layout, Result, TypeDescription};

impl<T: CdrValue, const N: usize> CdrValue for [T; N] {
    const LAYOUT: Layout = {
        let elements = T::LAYOUT.repeat(N);
        if T::IS_PRIMITIVE_ARRAY { elements } else { elements.delimited() }
    };

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
}
