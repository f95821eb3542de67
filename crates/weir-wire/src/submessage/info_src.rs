//! INFO_SRC: whose the submessages that follow are (RTPS 2.5 §8.3.8.10, §9.4.5.11).
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

/// The submessages that follow come from another participant than the message's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InfoSource {
    /// The version that it speaks.
    pub version: ProtocolVersion,
    /// Whose implementation it is.
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
