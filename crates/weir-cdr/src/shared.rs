//! Bytes that stay in the memory where they were received.

use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;

use crate::{
    CdrCollection, CdrError, CdrReader, CdrValue, CdrWriter, Encoding, Layout, Result, TypeDescription, copy,
};

/// The memory of a payload, parts of which decoded values may keep alive ([`CdrReader::shared`]).
pub trait SharedMemory: fmt::Debug {
    /// Returns bytes of this memory as a part that keeps it alive; a copy of other bytes.
    fn share(&self, bytes: &[u8]) -> Bytes;
}

impl SharedMemory for Bytes {
    fn share(&self, bytes: &[u8]) -> Bytes {
        let start = (bytes.as_ptr() as usize).wrapping_sub(self.as_ptr() as usize);
        match start.checked_add(bytes.len()) {
            Some(end) if end <= self.len() => self.slice(start..end),
            _ => Self::copy_from_slice(bytes),
        }
    }
}

/// A byte sequence, encoded like `Vec<u8>`. When decoded it is part of the payload's memory, if
/// that is shared, and keeps it alive; otherwise it is a copy.
impl CdrValue for Bytes {
    const LAYOUT: Layout = <Vec<u8>>::LAYOUT;
    const DESCRIPTION: TypeDescription = <Vec<u8>>::DESCRIPTION;
    const BULK_ELEMENT: Option<usize> = <Vec<u8>>::BULK_ELEMENT;

    #[inline]
    fn end_offset(&self, offset: usize, encoding: Encoding) -> usize {
        encoding.align(offset, 4) + 4 + self.len()
    }

    #[inline]
    fn encode(&self, writer: &mut CdrWriter<'_>) -> Result {
        writer.write_length(self.len())?;
        writer.write_bytes(self)
    }

    #[inline]
    fn decode(reader: &mut CdrReader<'_>) -> Result<Self> {
        Self::decode_bounded(reader, u32::MAX)
    }

    #[inline]
    fn skip(reader: &mut CdrReader<'_>) -> Result {
        <Vec<u8>>::skip(reader)
    }

    #[inline]
    fn copy(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result {
        <Vec<u8>>::copy(reader, writer)
    }

    #[inline(always)]
    fn bulk_bytes(&self) -> Option<&[u8]> {
        Some(self)
    }

    #[inline(always)]
    fn encode_before_bulk(&self, count: usize, writer: &mut CdrWriter<'_>) -> Result {
        writer.write_length(count)
    }

    #[inline]
    fn bulk_count(&self) -> usize {
        self.len()
    }

    fn encode_bulk_part(&self, at: usize, out: &mut [u8]) -> Result {
        let part = self.get(at..).unwrap_or_default();
        let len = part.len().min(out.len());
        copy::copy(copy::Stage::Encode, &mut out[..len], &part[..len]);
        Ok(())
    }
}

impl CdrCollection for Bytes {
    const ELEMENT_LAYOUT: Layout = u8::LAYOUT;
    const HAS_TERMINATOR: bool = false;
    const IS_DELIMITED: bool = false;

    #[inline]
    fn element_count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn decode_bounded(reader: &mut CdrReader<'_>, max_len: u32) -> Result<Self> {
        let len = reader.take_length(1)?;
        if len > max_len as usize {
            return Err(CdrError::BoundExceeded { max: max_len });
        }
        reader.take_shared(len)
    }

    #[inline]
    fn copy_bounded(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>, max_len: u32) -> Result {
        <Vec<u8>>::copy_bounded(reader, writer, max_len)
    }
}
