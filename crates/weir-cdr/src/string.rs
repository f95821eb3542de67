//! Strings: the length including the NUL, the characters, the NUL.
//!
//! The encoding of the characters is UTF-8 (DDS-XTypes 1.3, 7.2.2.2.1.2.1). Some C and C++ programs write others,
//! mostly ISO 8859-1. A string that is not UTF-8 is read as ISO 8859-1, in which all bytes are characters: the text is
//! readable, and different bytes stay different, which matters in keys.

use alloc::borrow::Cow;
use alloc::string::String;

use crate::{
    CdrCollection, CdrError, CdrReader, CdrValue, CdrWriter, Encoding, Layout, Result, TypeDescription,
};

impl CdrValue for String {
    const LAYOUT: Layout = Layout::STRING;
    const DESCRIPTION: TypeDescription = TypeDescription::String;

    #[inline]
    fn end_offset(&self, offset: usize, encoding: Encoding) -> usize {
        encoding.align(offset, 4) + 4 + self.len() + 1
    }

    #[inline]
    fn encode(&self, writer: &mut CdrWriter<'_>) -> Result {
        encode_str(self, writer)
    }

    #[inline]
    fn decode(reader: &mut CdrReader<'_>) -> Result<Self> {
        Self::decode_bounded(reader, u32::MAX)
    }

    #[inline]
    fn decode_into(&mut self, reader: &mut CdrReader<'_>) -> Result {
        self.decode_into_bounded(reader, u32::MAX)
    }

    #[inline]
    fn skip(reader: &mut CdrReader<'_>) -> Result {
        let len = reader.take_length(1)?;
        reader.take_bytes(len).map(drop)
    }

    #[inline]
    fn copy(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result {
        Self::copy_bounded(reader, writer, u32::MAX)
    }
}

impl CdrCollection for String {
    const ELEMENT_LAYOUT: Layout = Layout::primitive(1);
    const HAS_TERMINATOR: bool = true;
    const IS_DELIMITED: bool = false;

    #[inline]
    fn element_count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn decode_bounded(reader: &mut CdrReader<'_>, max_len: u32) -> Result<Self> {
        take_str(reader, max_len).map(Cow::into_owned)
    }

    #[inline]
    fn decode_into_bounded(&mut self, reader: &mut CdrReader<'_>, max_len: u32) -> Result {
        let text = take_str(reader, max_len)?;
        self.clear();
        self.push_str(&text);
        Ok(())
    }

    #[inline]
    fn copy_bounded(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>, max_len: u32) -> Result {
        encode_str(&take_str(reader, max_len)?, writer)
    }
}

fn encode_str(text: &str, writer: &mut CdrWriter<'_>) -> Result {
    // A peer written in C would silently truncate the string here.
    if text.as_bytes().contains(&0) {
        return Err(CdrError::InvalidString);
    }
    writer.write_length(text.len() + 1)?;
    let room = writer.reserve(1, text.len() + 1)?;
    let (nul, characters) = room.split_last_mut().ok_or(CdrError::BufferTooSmall)?;
    characters.copy_from_slice(text.as_bytes());
    *nul = 0;
    Ok(())
}

fn take_str<'a>(reader: &mut CdrReader<'a>, max_len: u32) -> Result<Cow<'a, str>> {
    let len = reader.take_length(1)?;
    let (nul, characters) = reader.take_bytes(len)?.split_last().ok_or(CdrError::InvalidString)?;
    if *nul != 0 || characters.contains(&0) {
        return Err(CdrError::InvalidString);
    }
    if characters.len() > max_len as usize && reader.checks_bounds() {
        return Err(CdrError::BoundExceeded { max: max_len });
    }
    Ok(core::str::from_utf8(characters).map_or_else(|_| from_latin_1(characters), Cow::Borrowed))
}

#[cold]
fn from_latin_1<'a>(characters: &[u8]) -> Cow<'a, str> {
    Cow::Owned(characters.iter().copied().map(char::from).collect())
}
