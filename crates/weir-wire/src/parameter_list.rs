//! Parameter lists: discovery data and inline QoS (RTPS 2.5 §9.4.2.11).
//!
//! ```text
//! |         parameter id          |           length               |
//! |                  value, `length` bytes                         |  and so on, until
//! |         SENTINEL 0001         |           ignored              |
//! ```

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use crate::bytes::{Cursor, Endianness};
use crate::error::{ParseError, Problem};
use crate::guid::Guid;
use crate::locator::Locator;
use crate::parameter_id::ParameterId;
use crate::sequence_number::SequenceNumber;
use crate::timestamp::Duration;

/// A list whose parameters were checked to lie within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterList<'a> {
    /// The parameters, without the sentinel.
    bytes: &'a [u8],
    endianness: Endianness,
}

impl<'a> ParameterList<'a> {
    /// Checks a list up to its sentinel. Returns the list and its length in bytes, sentinel
    /// included.
    ///
    /// # Errors
    /// If a parameter is truncated or its length is not a multiple of 4, or if there is no
    /// sentinel.
    pub fn parse(bytes: &'a [u8], endianness: Endianness) -> Result<(Self, usize), ParseError> {
        let mut cursor = Cursor::new(bytes, endianness, "a parameter list");
        loop {
            let len = bytes.len() - cursor.rest().len();
            let (Ok(id), Ok(value_len)) = (cursor.u16(), cursor.u16()) else {
                return cursor.fail(Problem::NoSentinel);
            };
            if ParameterId(id) == ParameterId::SENTINEL {
                return Ok((Self { bytes: &bytes[..len], endianness }, len + 4));
            }
            if !value_len.is_multiple_of(4) {
                return cursor.fail(Problem::BadLength);
            }
            cursor.slice(usize::from(value_len))?;
        }
    }

    /// Iterates over the parameters in order.
    pub fn iter(&self) -> Parameters<'a> {
        Parameters {
            cursor: Cursor::new(self.bytes, self.endianness, "a parameter"),
            endianness: self.endianness,
        }
    }
}

impl<'a> IntoIterator for ParameterList<'a> {
    type Item = Result<Parameter<'a>, ParseError>;
    type IntoIter = Parameters<'a>;

    fn into_iter(self) -> Parameters<'a> {
        self.iter()
    }
}

/// Iterator over the parameters of a list.
#[derive(Debug, Clone)]
pub struct Parameters<'a> {
    cursor: Cursor<'a>,
    endianness: Endianness,
}

impl<'a> Iterator for Parameters<'a> {
    type Item = Result<Parameter<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.cursor.rest().is_empty() {
            return None;
        }
        let mut next = || {
            let id = ParameterId(self.cursor.u16()?);
            let len = usize::from(self.cursor.u16()?);
            Ok(Parameter { id, value: self.cursor.slice(len)?, endianness: self.endianness })
        };
        let next = next();
        if next.is_err() {
            self.cursor = Cursor::new(&[], self.endianness, "a parameter");
        }
        Some(next)
    }
}

/// One parameter. The accessors decode its value as the type that the id implies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter<'a> {
    /// The id.
    pub id: ParameterId,
    /// The value's bytes, with padding.
    pub value: &'a [u8],
    /// The value's byte order.
    pub endianness: Endianness,
}

impl<'a> Parameter<'a> {
    /// Decodes an unsigned number.
    ///
    /// # Errors
    /// If the value is too short; the same applies to all accessors.
    pub fn u32(&self) -> Result<u32, ParseError> {
        self.cursor().u32()
    }

    /// Decodes a signed number.
    ///
    /// # Errors
    /// See [`Parameter::u32`].
    pub fn i32(&self) -> Result<i32, ParseError> {
        self.cursor().i32()
    }

    /// Decodes several numbers.
    ///
    /// # Errors
    /// See [`Parameter::u32`].
    pub fn u32s<const N: usize>(&self) -> Result<[u32; N], ParseError> {
        let mut cursor = self.cursor();
        let mut values = [0; N];
        for value in &mut values {
            *value = cursor.u32()?;
        }
        Ok(values)
    }

    /// Decodes a short number.
    ///
    /// # Errors
    /// See [`Parameter::u32`].
    pub fn u16(&self) -> Result<u16, ParseError> {
        self.cursor().u16()
    }

    /// Decodes a boolean.
    ///
    /// # Errors
    /// See [`Parameter::u32`].
    pub fn bool(&self) -> Result<bool, ParseError> {
        self.cursor().array::<1>().map(|[byte]| byte != 0)
    }

    /// Returns the first `N` bytes.
    ///
    /// # Errors
    /// See [`Parameter::u32`].
    pub fn bytes<const N: usize>(&self) -> Result<[u8; N], ParseError> {
        self.cursor().array()
    }

    /// Decodes a GUID.
    ///
    /// # Errors
    /// See [`Parameter::u32`].
    pub fn guid(&self) -> Result<Guid, ParseError> {
        self.cursor().array().map(Guid::from_bytes)
    }

    /// Decodes a sequence number.
    ///
    /// # Errors
    /// See [`Parameter::u32`].
    pub fn sequence_number(&self) -> Result<SequenceNumber, ParseError> {
        SequenceNumber::parse(&mut self.cursor())
    }

    /// Decodes a locator.
    ///
    /// # Errors
    /// See [`Parameter::u32`].
    pub fn locator(&self) -> Result<Locator, ParseError> {
        let mut cursor = self.cursor();
        Ok(Locator { kind: cursor.i32()?, port: cursor.u32()?, address: cursor.array()? })
    }

    /// Decodes a duration.
    ///
    /// # Errors
    /// See [`Parameter::u32`].
    pub fn duration(&self) -> Result<Duration, ParseError> {
        let mut cursor = self.cursor();
        Ok(Duration { seconds: cursor.i32()?, fraction: cursor.u32()? })
    }

    /// Decodes a kind and a duration (RELIABILITY, LIVELINESS).
    ///
    /// # Errors
    /// See [`Parameter::u32`].
    pub fn kind_and_duration(&self) -> Result<(u32, Duration), ParseError> {
        let mut cursor = self.cursor();
        Ok((cursor.u32()?, Duration { seconds: cursor.i32()?, fraction: cursor.u32()? }))
    }

    /// Decodes a string, without its terminating zero.
    ///
    /// # Errors
    /// If it is longer than the value, not zero-terminated, or not UTF-8.
    pub fn string(&self) -> Result<&'a str, ParseError> {
        string(&mut self.cursor())
    }

    /// Decodes a string for people or for comparison, without its terminating zero. What is not UTF-8 is replaced by
    /// U+FFFD.
    ///
    /// # Errors
    /// If it is longer than the value, or not zero-terminated.
    pub fn text(&self) -> Result<Cow<'a, str>, ParseError> {
        text(&mut self.cursor())
    }

    /// Decodes the beginning of a string as [`text`](Self::text) does, at most `max` bytes, into `out`. Allocates
    /// nothing if these fit there.
    ///
    /// # Errors
    /// As [`text`](Self::text).
    pub fn text_into(&self, max: usize, out: &mut String) -> Result<(), ParseError> {
        out.clear();
        for chunk in characters(&mut self.cursor())?.utf8_chunks() {
            let replacement = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
            for character in chunk.valid().chars().chain(replacement) {
                if out.len() + character.len_utf8() > max {
                    return Ok(());
                }
                out.push(character);
            }
        }
        Ok(())
    }

    /// Decodes a byte sequence with its length before it.
    ///
    /// # Errors
    /// If it is longer than the value.
    pub fn byte_sequence(&self) -> Result<&'a [u8], ParseError> {
        let mut cursor = self.cursor();
        let len = cursor.u32()? as usize;
        cursor.slice(len)
    }

    /// Decodes a sequence of short numbers (DATA_REPRESENTATION).
    ///
    /// # Errors
    /// If there are fewer than its length says.
    pub fn i16s(&self) -> Result<impl Iterator<Item = i16> + use<'a>, ParseError> {
        let mut cursor = self.cursor();
        let count = cursor.u32()? as usize;
        let bytes = cursor.slice(count.saturating_mul(2))?;
        let endianness = self.endianness;
        Ok(bytes.chunks_exact(2).map(move |pair| match endianness {
            Endianness::Little => i16::from_le_bytes([pair[0], pair[1]]),
            Endianness::Big => i16::from_be_bytes([pair[0], pair[1]]),
        }))
    }

    /// Decodes a sequence of at most `max` strings (PARTITION), each as [`text`](Self::text).
    ///
    /// # Errors
    /// If a string is malformed, or if there are more than `max`.
    pub fn strings(&self, max: usize) -> Result<Vec<Cow<'a, str>>, ParseError> {
        self.strings_at(&mut self.cursor(), max)
    }

    /// Decodes a sequence of at most `max` strings behind other values.
    pub(crate) fn strings_at(
        &self,
        cursor: &mut Cursor<'a>,
        max: usize,
    ) -> Result<Vec<Cow<'a, str>>, ParseError> {
        let count = cursor.u32()? as usize;
        if count > max {
            return cursor.fail(Problem::BadLength);
        }
        let mut strings = Vec::new();
        for _ in 0..count {
            strings.push(self.text_at(cursor)?);
        }
        Ok(strings)
    }

    /// Decodes a string before other values: skips its padding.
    pub(crate) fn text_at(&self, cursor: &mut Cursor<'a>) -> Result<Cow<'a, str>, ParseError> {
        let text = text(cursor)?;
        let used = self.value.len() - cursor.rest().len();
        let padding = used.next_multiple_of(4) - used;
        // The padding of the last string may be missing.
        cursor.slice(padding.min(cursor.rest().len()))?;
        Ok(text)
    }

    pub(crate) fn cursor(&self) -> Cursor<'a> {
        Cursor::new(self.value, self.endianness, "a parameter's value")
    }
}

fn string<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, ParseError> {
    let characters = characters(cursor)?;
    core::str::from_utf8(characters).or_else(|_| cursor.fail(Problem::BadString))
}

fn text<'a>(cursor: &mut Cursor<'a>) -> Result<Cow<'a, str>, ParseError> {
    characters(cursor).map(String::from_utf8_lossy)
}

/// Returns the bytes of a string, without its terminating zero.
fn characters<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], ParseError> {
    let len = cursor.u32()? as usize;
    let bytes = cursor.slice(len)?;
    // Some implementations write the empty string with no bytes at all.
    let text = match bytes.split_last() {
        None => &[][..],
        Some((0, text)) => text,
        Some(_) => return cursor.fail(Problem::BadString),
    };
    if text.contains(&0) {
        return cursor.fail(Problem::BadString);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter_list_writer::ParameterListWriter;

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = Vec::new();
        let mut list = ParameterListWriter::new(&mut bytes);
        list.string(ParameterId::TOPIC_NAME, "Square");
        list.u32(ParameterId::DOMAIN_ID, 7);
        list.strings(ParameterId::PARTITION, ["a", "long name"].into_iter());
        list.i16s(ParameterId::DATA_REPRESENTATION, &[0, 2]);
        list.byte_sequence(ParameterId::USER_DATA, b"xyz");
        list.kind_and_duration(ParameterId::RELIABILITY, 2, Duration::from_nanos(100_000_000));
        list.finish();
        assert_eq!(bytes.len() % 4, 0);
        bytes.extend_from_slice(b"behind");
        let (list, len) = ParameterList::parse(&bytes, Endianness::Little).unwrap();
        assert_eq!(&bytes[len..], b"behind");
        let parameters: Vec<_> = list.iter().map(Result::unwrap).collect();
        assert_eq!(parameters[0].string(), Ok("Square"));
        assert_eq!(parameters[1].u32(), Ok(7));
        assert_eq!(parameters[2].strings(2), Ok(vec!["a".into(), "long name".into()]));
        assert!(parameters[2].strings(1).is_err());
        assert_eq!(parameters[3].i16s().unwrap().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(parameters[4].byte_sequence(), Ok(&b"xyz"[..]));
        assert_eq!(parameters[5].kind_and_duration().unwrap().1.to_nanos(), Some(100_000_000));
    }

    #[test]
    fn lists_without_end_and_strings_without_zero_are_refused() {
        let problem = |bytes: &[u8]| ParameterList::parse(bytes, Endianness::Little).unwrap_err().problem;
        assert_eq!(problem(&[]), Problem::NoSentinel);
        assert_eq!(problem(&[5, 0, 0, 0]), Problem::NoSentinel);
        assert_eq!(problem(&[5, 0, 8, 0, 1, 0, 0, 0]), Problem::Truncated);
        assert_eq!(problem(&[5, 0, 2, 0, 1, 0, 1, 0, 0, 0]), Problem::BadLength);
        let value = |value| Parameter { id: ParameterId::TOPIC_NAME, value, endianness: Endianness::Little };
        assert_eq!(value(&[2, 0, 0, 0, b'a', b'b']).string().unwrap_err().problem, Problem::BadString);
        assert_eq!(value(&[9, 0, 0, 0, b'a', 0]).string().unwrap_err().problem, Problem::Truncated);
        assert_eq!(value(&[3, 0, 0, 0, 0, b'a', 0]).string().unwrap_err().problem, Problem::BadString);
        assert_eq!(value(&[0xff; 4]).byte_sequence().unwrap_err().problem, Problem::Truncated);
    }
}
