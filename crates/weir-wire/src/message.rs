//! A datagram as a header and a sequence of submessages (RTPS 2.5 §8.3.3, §9.4.4).
//!
//! ```text
//! 0...2...........7...............15.............23...............31
//! |      'R'      |      'T'      |      'P'      |      'S'       |
//! | major version | minor version |           vendor id            |
//! |                        guid prefix (12)                        |
//! | submessage id |     flags     |      octetsToNextHeader        |  and so on
//! ```

use core::fmt;

use crate::bytes::{Cursor, Emit, Endianness, Filler};
use crate::error::{ParseError, Problem};
use crate::guid::GuidPrefix;
use crate::submessage::{Submessage, id};
use crate::vendor::{ProtocolVersion, VendorId};

/// The first 20 octets of every message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// The version that the sender speaks.
    pub version: ProtocolVersion,
    /// Whose implementation the sender is.
    pub vendor: VendorId,
    /// The participant that sends.
    pub prefix: GuidPrefix,
}

impl Header {
    /// Length in bytes.
    pub const LEN: usize = 20;

    /// Reads the header of a message.
    ///
    /// # Errors
    /// When it is too short, no RTPS, or of another major version.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let mut cursor = Cursor::new(bytes, Endianness::Big, "the message header");
        if cursor.array()? != *b"RTPS" {
            return cursor.fail(Problem::BadMagic);
        }
        let [major, minor] = cursor.array()?;
        if major != 2 {
            return cursor.fail(Problem::UnsupportedVersion);
        }
        let version = ProtocolVersion { major, minor };
        Ok(Self { version, vendor: VendorId(cursor.array()?), prefix: GuidPrefix(cursor.array()?) })
    }
}

impl Emit for Header {
    fn wire_len(&self) -> usize {
        Self::LEN
    }

    #[inline]
    fn emit(&self, out: &mut [u8]) {
        let mut out = Filler::new(out);
        out.bytes(b"RTPS");
        out.bytes(&[self.version.major, self.version.minor]);
        out.bytes(&self.vendor.0);
        out.bytes(&self.prefix.0);
    }
}

/// A received message.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// Who sends.
    pub header: Header,
    body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads the header and leaves the rest for [`Message::submessages`].
    ///
    /// # Errors
    /// As [`Header::parse`].
    #[inline]
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let header = Header::parse(datagram)?;
        Ok(Self { header, body: datagram.get(Header::LEN..).unwrap_or_default() })
    }

    /// The submessages, in order. After the first one that is malformed there are no more (RTPS 2.5 §8.3.4.1).
    #[inline]
    pub fn submessages(&self) -> Submessages<'a> {
        Submessages { rest: self.body }
    }
}

impl fmt::Display for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.header.prefix, self.header.vendor)?;
        self.submessages().try_for_each(|submessage| match submessage {
            Ok(submessage) => write!(f, "; {submessage}"),
            Err(error) => write!(f, "; {error}"),
        })
    }
}

/// Iterator over the submessages of a message.
#[derive(Debug, Clone)]
pub struct Submessages<'a> {
    rest: &'a [u8],
}

impl<'a> Submessages<'a> {
    #[inline]
    fn split(&mut self) -> Result<Submessage<'a>, ParseError> {
        let mut cursor = Cursor::new(self.rest, Endianness::Big, "a submessage header");
        let [id, flags] = cursor.array()?;
        let endianness = Endianness::from_flags(flags);
        let mut cursor = Cursor::new(cursor.rest(), endianness, "a submessage header");
        let len = usize::from(cursor.u16()?);
        // Length 0 means "to the end of the message", except where an empty body makes sense.
        let to_the_end = len == 0 && id != id::PAD && id != id::INFO_TS;
        let body = if to_the_end { cursor.slice(cursor.rest().len())? } else { cursor.slice(len)? };
        self.rest = cursor.rest();
        Submessage::parse(id, flags, body)
    }
}

impl<'a> Iterator for Submessages<'a> {
    type Item = Result<Submessage<'a>, ParseError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let submessage = self.split();
        if submessage.is_err() {
            self.rest = &[];
        }
        Some(submessage)
    }
}
