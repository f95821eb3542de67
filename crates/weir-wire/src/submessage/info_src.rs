//! INFO_SRC: source of the submessages that follow (RTPS 2.5 §8.3.8.10, §9.4.5.11).
//!
//! ```text
//! |  INFO_SRC 0c  |X|X|X|X|X|X|X|E|      octetsToNextHeader        |
//! |                            unused                              |
//! | major version | minor version |           vendor id            |
//! |                        guidPrefix (12)                         |
//! ```

use core::fmt;

use super::id;
use crate::bytes::{Cursor, Emit, Endianness, Filler};
use crate::error::ParseError;
use crate::guid::GuidPrefix;
use crate::vendor::{ProtocolVersion, VendorId};

/// The submessages that follow are from another participant than the message's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InfoSource {
    /// Its protocol version.
    pub version: ProtocolVersion,
    /// Its vendor.
    pub vendor: VendorId,
    /// The participant.
    pub prefix: GuidPrefix,
}

impl InfoSource {
    pub(super) fn parse(flags: u8, body: &[u8]) -> Result<Self, ParseError> {
        let mut cursor = Cursor::new(body, Endianness::from_flags(flags), "INFO_SRC");
        let _unused = cursor.u32()?;
        let [major, minor] = cursor.array()?;
        let version = ProtocolVersion { major, minor };
        Ok(Self { version, vendor: VendorId(cursor.array()?), prefix: GuidPrefix(cursor.array()?) })
    }
}

impl Emit for InfoSource {
    fn wire_len(&self) -> usize {
        24
    }

    fn emit(&self, out: &mut [u8]) {
        let mut out = Filler::new(out);
        out.submessage(id::INFO_SRC, 0, 20);
        out.u32(0);
        out.bytes(&[self.version.major, self.version.minor]);
        out.bytes(&self.vendor.0);
        out.bytes(&self.prefix.0);
    }
}

impl fmt::Display for InfoSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "INFO_SRC {} {}", self.prefix, self.vendor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: [u8; 24] = [
        0x0c, 0x01, 20, 0, // id, flag E, octetsToNextHeader
        0, 0, 0, 0, // unused
        2, 5, // version
        0x01, 0x10, // vendor
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, // guidPrefix
    ];
    const BIG: [u8; 24] =
        [0x0c, 0x00, 0, 20, 0, 0, 0, 0, 2, 5, 0x01, 0x10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];

    #[test]
    fn bytes_are_as_the_specification_draws_them() {
        let info = InfoSource {
            version: ProtocolVersion::V2_5,
            vendor: VendorId::CYCLONE,
            prefix: GuidPrefix([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
        };
        let mut out = [0xee; 24];
        info.emit(&mut out);
        assert_eq!(out, LITTLE);
        assert_eq!(InfoSource::parse(LITTLE[1], &LITTLE[4..]), Ok(info));
        assert_eq!(InfoSource::parse(BIG[1], &BIG[4..]), Ok(info));
        assert!(InfoSource::parse(BIG[1], &BIG[4..23]).is_err());
        assert_eq!(info.to_string(), "INFO_SRC 0102030405060708090a0b0c Cyclone DDS");
    }
}
