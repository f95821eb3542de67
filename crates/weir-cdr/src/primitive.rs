//! Booleans, integers and floats.

use alloc::vec::Vec;

use crate::description::Primitive;
use crate::{
    CdrError, CdrReader, CdrValue, CdrWriter, Encoding, Endianness, Layout, Result, TypeDescription, copy,
};

/// Implements the trait for numbers that are converted with `to_le_bytes` and the like.
///
/// The loops over several values branch on the byte order outside. The compiler turns them into one
/// copy for the machine's own order, and into vectorised byte swaps otherwise.
macro_rules! impl_number {
    ($($number:ty: $primitive:ident),*) => {$(
        impl CdrValue for $number {
            const LAYOUT: Layout = Layout::primitive(size_of::<Self>());
            const IS_PRIMITIVE: bool = true;
            const DESCRIPTION: TypeDescription =
                TypeDescription::Primitive { primitive: Primitive::$primitive };

            #[inline(always)]
            fn end_offset(&self, offset: usize, encoding: Encoding) -> usize {
                encoding.align(offset, size_of::<Self>()) + size_of::<Self>()
            }

            #[inline(always)]
            fn encode(&self, writer: &mut CdrWriter<'_>) -> Result {
                writer.write_aligned(match writer.endianness() {
                    Endianness::Little => self.to_le_bytes(),
                    Endianness::Big => self.to_be_bytes(),
                })
            }

            #[inline(always)]
            fn decode(reader: &mut CdrReader<'_>) -> Result<Self> {
                let bytes = reader.take_aligned()?;
                Ok(match reader.endianness() {
                    Endianness::Little => Self::from_le_bytes(bytes),
                    Endianness::Big => Self::from_be_bytes(bytes),
                })
            }

            #[inline(always)]
            fn skip(reader: &mut CdrReader<'_>) -> Result {
                reader.take(size_of::<Self>(), size_of::<Self>()).map(drop)
            }

            #[inline(always)]
            fn copy(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result {
                Self::decode(reader)?.encode(writer)
            }

            #[inline]
            fn end_offset_slice(values: &[Self], offset: usize, encoding: Encoding) -> usize {
                match values {
                    [] => offset,
                    _ => encoding.align(offset, size_of::<Self>()) + size_of_val(values),
                }
            }

            #[inline]
            fn encode_slice(values: &[Self], writer: &mut CdrWriter<'_>) -> Result {
                if values.is_empty() {
                    return Ok(());
                }
                let endianness = writer.endianness();
                let room = writer.reserve(size_of::<Self>(), size_of_val(values))?;
                let pairs = room.as_chunks_mut().0.iter_mut().zip(values);
                match endianness {
                    Endianness::Little => pairs.for_each(|(bytes, value)| *bytes = value.to_le_bytes()),
                    Endianness::Big => pairs.for_each(|(bytes, value)| *bytes = value.to_be_bytes()),
                }
                Ok(())
            }

            #[inline]
            fn decode_into_slice(values: &mut [Self], reader: &mut CdrReader<'_>) -> Result {
                let bytes = reader.take_primitives(size_of::<Self>(), values.len())?;
                let pairs = values.iter_mut().zip(bytes.as_chunks().0);
                match reader.endianness() {
                    Endianness::Little => pairs.for_each(|(value, bytes)| *value = Self::from_le_bytes(*bytes)),
                    Endianness::Big => pairs.for_each(|(value, bytes)| *value = Self::from_be_bytes(*bytes)),
                }
                Ok(())
            }

            #[inline]
            fn decode_into_vec(values: &mut Vec<Self>, count: usize, reader: &mut CdrReader<'_>) -> Result {
                let chunks = reader.take_primitives(size_of::<Self>(), count)?.as_chunks().0.iter();
                values.clear();
                match reader.endianness() {
                    Endianness::Little => values.extend(chunks.map(|bytes| Self::from_le_bytes(*bytes))),
                    Endianness::Big => values.extend(chunks.map(|bytes| Self::from_be_bytes(*bytes))),
                }
                Ok(())
            }

            #[inline]
            fn decode_array<const N: usize>(reader: &mut CdrReader<'_>) -> Result<[Self; N]> {
                let mut values = [Self::default(); N];
                Self::decode_into_slice(&mut values, reader)?;
                Ok(values)
            }

            #[inline]
            fn skip_many(count: usize, reader: &mut CdrReader<'_>) -> Result {
                reader.take_primitives(size_of::<Self>(), count).map(drop)
            }
        }
    )*};
}

impl_number!(i8: I8, u16: U16, i16: I16, u32: U32, i32: I32, u64: U64, i64: I64, f32: F32, f64: F64);

impl CdrValue for u8 {
    const LAYOUT: Layout = Layout::primitive(1);
    const IS_PRIMITIVE: bool = true;
    const DESCRIPTION: TypeDescription = TypeDescription::Primitive { primitive: Primitive::U8 };

    #[inline(always)]
    fn end_offset(&self, offset: usize, _encoding: Encoding) -> usize {
        offset + 1
    }

    #[inline(always)]
    fn encode(&self, writer: &mut CdrWriter<'_>) -> Result {
        writer.write_aligned([*self])
    }

    #[inline(always)]
    fn decode(reader: &mut CdrReader<'_>) -> Result<Self> {
        reader.take_aligned().map(|[byte]| byte)
    }

    #[inline(always)]
    fn skip(reader: &mut CdrReader<'_>) -> Result {
        reader.take_bytes(1).map(drop)
    }

    #[inline(always)]
    fn copy(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result {
        Self::decode(reader)?.encode(writer)
    }

    #[inline(always)]
    fn as_bytes(values: &[Self]) -> Option<&[u8]> {
        Some(values)
    }

    #[inline(always)]
    fn end_offset_slice(values: &[Self], offset: usize, _encoding: Encoding) -> usize {
        offset + values.len()
    }

    #[inline(always)]
    fn encode_slice(values: &[Self], writer: &mut CdrWriter<'_>) -> Result {
        writer.write_bytes(values)
    }

    #[inline(always)]
    fn decode_into_slice(values: &mut [Self], reader: &mut CdrReader<'_>) -> Result {
        copy::copy(copy::Stage::Decode, values, reader.take_bytes(values.len())?);
        Ok(())
    }

    #[inline(always)]
    fn decode_into_vec(values: &mut Vec<Self>, count: usize, reader: &mut CdrReader<'_>) -> Result {
        let bytes = reader.take_bytes(count)?;
        copy::replace(copy::Stage::Decode, values, bytes);
        Ok(())
    }

    #[inline(always)]
    fn decode_array<const N: usize>(reader: &mut CdrReader<'_>) -> Result<[Self; N]> {
        reader.take_bytes(N)?.first_chunk().copied().ok_or(CdrError::UnexpectedEnd)
    }

    #[inline(always)]
    fn skip_many(count: usize, reader: &mut CdrReader<'_>) -> Result {
        reader.take_bytes(count).map(drop)
    }

    #[inline(always)]
    fn copy_many(count: usize, reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result {
        writer.write_bytes(reader.take_bytes(count)?)
    }
}

impl CdrValue for bool {
    const LAYOUT: Layout = Layout::primitive(1);
    #[expect(clippy::use_self, reason = "that this type is also bool is a coincidence")]
    const IS_PRIMITIVE: bool = true;
    const DESCRIPTION: TypeDescription = TypeDescription::Primitive { primitive: Primitive::Bool };

    #[inline(always)]
    fn end_offset(&self, offset: usize, _encoding: Encoding) -> usize {
        offset + 1
    }

    #[inline(always)]
    fn encode(&self, writer: &mut CdrWriter<'_>) -> Result {
        writer.write_aligned([u8::from(*self)])
    }

    #[inline(always)]
    fn decode(reader: &mut CdrReader<'_>) -> Result<Self> {
        match u8::decode(reader)? {
            0 => Ok(false),
            1 => Ok(true),
            byte => Err(CdrError::InvalidBool(byte)),
        }
    }

    #[inline(always)]
    fn skip(reader: &mut CdrReader<'_>) -> Result {
        u8::skip(reader)
    }

    #[inline(always)]
    fn copy(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result {
        Self::decode(reader)?.encode(writer)
    }

    #[inline]
    fn decode_into_vec(values: &mut Vec<Self>, count: usize, reader: &mut CdrReader<'_>) -> Result {
        let bytes = reader.take_bytes(count)?;
        // All bytes at once first: this is vectorised, the search for the first invalid one is not.
        if bytes.iter().fold(0, |all, byte| all | byte) > 1 {
            let invalid = bytes.iter().find(|byte| **byte > 1);
            return Err(CdrError::InvalidBool(invalid.copied().unwrap_or_default()));
        }
        values.clear();
        values.extend(bytes.iter().map(|byte| *byte == 1));
        Ok(())
    }

    #[inline(always)]
    fn skip_many(count: usize, reader: &mut CdrReader<'_>) -> Result {
        u8::skip_many(count, reader)
    }
}
