//! Reads and writes integers: a checked cursor, and the trait of everything that can be written.

use alloc::vec::Vec;

use crate::error::{ParseError, Problem};

/// Byte order of a submessage or payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endianness {
    /// Most significant byte first.
    Big,
    /// Least significant byte first.
    Little,
}

impl Endianness {
    /// Returns the byte order in bit 0 of a submessage's flags (RTPS 2.5 §9.4.5.1.2).
    #[inline]
    pub const fn from_flags(flags: u8) -> Self {
        if flags & 1 == 1 { Self::Little } else { Self::Big }
    }

    #[inline]
    pub(crate) const fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    #[inline]
    pub(crate) const fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }
}

/// A part of a message that can be written: the message header or a complete submessage.
pub trait Emit {
    /// Returns the number of bytes that [`Emit::emit`] writes.
    fn wire_len(&self) -> usize;

    /// Writes [`Emit::wire_len`] bytes, little-endian, to the start of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than that.
    fn emit(&self, out: &mut [u8]);
}

/// Appends `part` to a message.
pub fn push(out: &mut Vec<u8>, part: &impl Emit) {
    let start = out.len();
    out.resize(start + part.wire_len(), 0);
    part.emit(&mut out[start..]);
}

/// A cursor over bytes of one byte order that never reads past their end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    endianness: Endianness,
    item: &'static str,
}

impl<'a> Cursor<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8], endianness: Endianness, item: &'static str) -> Self {
        Self { rest: bytes, endianness, item }
    }

    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(crate) fn fail<T>(&self, problem: Problem) -> Result<T, ParseError> {
        Err(ParseError::new(self.item, problem))
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        match self.rest.split_first_chunk::<N>() {
            Some((chunk, rest)) => {
                self.rest = rest;
                Ok(*chunk)
            }
            None => self.fail(Problem::Truncated),
        }
    }

    #[inline]
    pub(crate) fn slice(&mut self, len: usize) -> Result<&'a [u8], ParseError> {
        match self.rest.split_at_checked(len) {
            Some((slice, rest)) => {
                self.rest = rest;
                Ok(slice)
            }
            None => self.fail(Problem::Truncated),
        }
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, ParseError> {
        Ok(self.endianness.u16(self.array()?))
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, ParseError> {
        Ok(self.endianness.u32(self.array()?))
    }

    #[inline]
    pub(crate) fn i32(&mut self) -> Result<i32, ParseError> {
        self.u32().map(u32::cast_signed)
    }
}

/// Writes values in sequence into a slice that is long enough.
pub(crate) struct Filler<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl<'a> Filler<'a> {
    #[inline]
    pub(crate) fn new(out: &'a mut [u8]) -> Self {
        Self { out, at: 0 }
    }

    /// Writes the header of a submessage with a body of `len` bytes (RTPS 2.5 §9.4.5.1). Sets bit 0
    /// of the flags.
    #[inline]
    pub(crate) fn submessage(&mut self, id: u8, flags: u8, len: usize) {
        debug_assert!(len <= usize::from(u16::MAX), "submessage body too long: {len} bytes");
        self.bytes(&[id, flags | 1]);
        self.u16(len as u16);
    }

    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.out[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    #[inline]
    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    #[inline]
    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    #[inline]
    pub(crate) fn i32(&mut self, value: i32) {
        self.bytes(&value.to_le_bytes());
    }
}
