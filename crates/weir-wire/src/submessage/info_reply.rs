//! INFO_REPLY: where to answer (RTPS 2.5 §8.3.8.9, §9.4.5.10).
//!
//! Checked and not kept: whoever answered to addresses that a datagram names could be made to send to anyone.
//!
//! ```text
//! | INFO_REPLY 0f |X|X|X|X|X|X|M|E|      octetsToNextHeader        |
//! |     unicastLocatorList: count (4), locators (24 each)          |
//! |     multicastLocatorList: the same [M]                         |
//! ```

use crate::bytes::{Cursor, Endianness};
use crate::error::{ParseError, Problem};

/// A well-formed INFO_REPLY, whose content is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InfoReply;

impl InfoReply {
    const MULTICAST: u8 = 0x02;

    pub(super) fn parse(flags: u8, body: &[u8]) -> Result<Self, ParseError> {
        let mut cursor = Cursor::new(body, Endianness::from_flags(flags), "INFO_REPLY");
        let lists = if flags & Self::MULTICAST != 0 { 2 } else { 1 };
        for _ in 0..lists {
            let len = (cursor.u32()? as usize).checked_mul(24);
            let Some(len) = len else { return cursor.fail(Problem::BadLength) };
            cursor.slice(len)?;
        }
        Ok(Self)
    }
}
