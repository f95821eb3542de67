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
use crate::submessage::{Data, Submessage, id};
use crate::timestamp::Timestamp;
use crate::vendor::{ProtocolVersion, VendorId};

/// The first 20 bytes of every message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// The protocol version of the sender.
    pub version: ProtocolVersion,
    /// The vendor of the sender.
    pub vendor: VendorId,
    /// The participant that sends.
    pub prefix: GuidPrefix,
}

impl Header {
    /// Length in bytes.
    pub const LEN: usize = 20;

    /// Parses the header of a message.
    ///
    /// # Errors
    /// If it is too short, not RTPS, or of another major version.
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
    /// The header.
    pub header: Header,
    body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Parses the header and leaves the rest to [`Message::submessages`].
    ///
    /// # Errors
    /// As for [`Header::parse`].
    #[inline]
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let header = Header::parse(datagram)?;
        Ok(Self { header, body: datagram.get(Header::LEN..).unwrap_or_default() })
    }

    /// Iterates over the submessages in order. Ends after the first malformed one (RTPS 2.5
    /// §8.3.4.1).
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
    /// Iterates over the submessages in the bytes after a header.
    #[inline]
    pub fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    /// Returns whether there are no more submessages.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the next submessage with only its header parsed. Ends after the first malformed one.
    #[inline(always)]
    pub fn next_unread(&mut self) -> Option<Result<UnreadSubmessage<'a>, ParseError>> {
        if self.rest.is_empty() {
            return None;
        }
        let submessage = self.split();
        if submessage.is_err() {
            self.rest = &[];
        }
        Some(submessage)
    }

    /// Returns the next two submessages, if they are in the most frequent form.
    ///
    /// That form is INFO_TS with a time, then DATA with a value and without inline QoS, both
    /// little-endian. Returns `None` for anything else, well-formed or not, and skips nothing then.
    ///
    /// The form is recognised by a few word comparisons. [`Submessages::next_unread`] gives the
    /// same results.
    #[inline(always)]
    pub fn next_stamped_data(&mut self) -> Option<(Timestamp, Data<'a>)> {
        const INFO_TS: [u8; 4] = [id::INFO_TS, 1, 8, 0];
        let (info, rest) = self.rest.split_first_chunk::<12>()?;
        let mut info = Cursor::new(info, Endianness::Little, "INFO_TS");
        if info.array().ok()? != INFO_TS {
            return None;
        }
        let timestamp = Timestamp { seconds: info.u32().ok()?, fraction: info.u32().ok()? };
        let (data, rest) = Data::parse_plain(rest)?;
        if timestamp == Timestamp::INVALID {
            return None;
        }
        self.rest = rest;
        Some((timestamp, data))
    }

    #[inline(always)]
    fn split(&mut self) -> Result<UnreadSubmessage<'a>, ParseError> {
        let mut cursor = Cursor::new(self.rest, Endianness::Big, "a submessage header");
        let [id, flags] = cursor.array()?;
        let endianness = Endianness::from_flags(flags);
        let mut cursor = Cursor::new(cursor.rest(), endianness, "a submessage header");
        let len = usize::from(cursor.u16()?);
        // Length 0 means "to the end of the message", except where an empty body makes sense.
        let to_the_end = len == 0 && id != id::PAD && id != id::INFO_TS;
        let body = if to_the_end { cursor.slice(cursor.rest().len())? } else { cursor.slice(len)? };
        self.rest = cursor.rest();
        Ok(UnreadSubmessage { id, flags, body })
    }
}

/// A submessage with only its header parsed.
#[derive(Debug, Clone, Copy)]
pub struct UnreadSubmessage<'a> {
    id: u8,
    flags: u8,
    body: &'a [u8],
}

impl<'a> UnreadSubmessage<'a> {
    /// Parses the submessage if it is a sample, as most are. This avoids [`Submessage`], which has
    /// room for all kinds and would be copied.
    #[inline(always)]
    pub fn data(&self) -> Option<Result<Data<'a>, ParseError>> {
        let is_data = self.id == id::DATA && Data::is_standard(self.flags);
        is_data.then(|| Data::parse(self.flags, self.body))
    }

    /// Parses the submessage, of any kind.
    ///
    /// # Errors
    /// The problem in its body.
    #[inline]
    pub fn read(self) -> Result<Submessage<'a>, ParseError> {
        Submessage::parse(self.id, self.flags, self.body)
    }
}

impl<'a> Iterator for Submessages<'a> {
    type Item = Result<Submessage<'a>, ParseError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let submessage = self.next_unread()?.and_then(UnreadSubmessage::read);
        if submessage.is_err() {
            self.rest = &[];
        }
        Some(submessage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_the_same_by_either_way() {
        let mut message = b"RTPS\x02\x05\x01\x10ABCDEFGHIJKL".to_vec();
        message.extend([0x09, 0x03, 0, 0]);
        message.extend([0x15, 0x05, 28, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 2, 3, 0, 0, 0, 0, 7, 0, 0, 0]);
        message.extend([0, 1, 0, 0, 42, 0, 0, 0]);
        // A DATA that is too short.
        message.extend([0x15, 0x05, 4, 0, 0, 0, 16, 0]);
        let message = Message::parse(&message).unwrap();
        let read: Vec<_> = message.submessages().collect();
        let mut submessages = message.submessages();
        let mut unread = Vec::new();
        while let Some(submessage) = submessages.next_unread() {
            unread.push(submessage.unwrap());
        }
        assert_eq!(unread.len(), 3);
        for (one, other) in read.iter().zip(&unread) {
            assert_eq!(*one, other.read());
            let is_data = matches!(one, Ok(Submessage::Data(_)) | Err(_));
            assert_eq!(other.data().map(|data| data.map(Submessage::Data)), is_data.then_some(*one));
        }
        assert!(read[1].is_ok() && read[2].is_err());
    }
    /// A time and a sample in sequence, as the general path parses them.
    fn stamped_data<'a>(submessages: &mut Submessages<'a>) -> Option<(Timestamp, Data<'a>)> {
        match (submessages.next(), submessages.next()) {
            (Some(Ok(Submessage::InfoTimestamp(info))), Some(Ok(Submessage::Data(data)))) => {
                Some((info.timestamp?, data))
            }
            _ => None,
        }
    }

    #[test]
    fn a_stamped_sample_is_what_the_general_way_reads() {
        let mut valid = b"RTPS\x02\x05\x01\x10ABCDEFGHIJKL".to_vec();
        valid.extend([0x09, 0x01, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        valid.extend([0x15, 0x05, 28, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 2, 3, 0, 0, 0, 0, 7, 0, 0, 0]);
        valid.extend([0, 1, 0, 0, 42, 0, 0, 0]);
        valid.extend([0x01, 0x01, 0, 0]);
        let read = |datagram: &[u8]| {
            let message = Message::parse(datagram).unwrap();
            let (mut quick, mut general) = (message.submessages(), message.submessages());
            let sample = quick.next_stamped_data();
            if sample.is_some() {
                assert_eq!(sample, stamped_data(&mut general), "{datagram:?}");
            }
            assert_eq!(quick.rest, general.rest, "{datagram:?}");
            sample.is_some()
        };
        assert!(read(&valid));
        assert!((Header::LEN..valid.len() - 4).all(|len| !read(&valid[..len])), "its end is missing");
        assert!(read(&valid[..valid.len() - 4]));
        let mut taken = 0;
        for at in Header::LEN..valid.len() {
            for value in 0..=255 {
                let mut other = valid.clone();
                other[at] = value;
                taken += u32::from(read(&other));
            }
        }
        // Its value, ids, times and most numbers may change, hardly anything else.
        assert!((30 * 256..45 * 256).contains(&taken), "{taken}");
        let [mut endless, mut untimed] = [valid.clone(), valid];
        endless[34] = 0;
        assert!(read(&endless), "to the end of the message");
        untimed[24..32].fill(0xff);
        assert!(!read(&untimed));
    }
}
