//! INFO_REPLY: address to respond to (RTPS 2.5 §8.3.8.9, §9.4.5.10).
//!
//! Checked and discarded: an engine that responds to addresses in a datagram could be made to send
//! to anyone.
//!
//! ```text
//! | INFO_REPLY 0f |X|X|X|X|X|X|M|E|      octetsToNextHeader        |
//! |     unicastLocatorList: count (4), locators (24 each)          |
//! |     multicastLocatorList: the same [M]                         |
//! ```

use crate::bytes::{Cursor, Endianness};
use crate::error::{ParseError, Problem};

/// A well-formed INFO_REPLY, whose content is discarded.
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

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: [u8; 36] = [
        0x0f, 0x03, 32, 0, // id, flags M and E, octetsToNextHeader
        1, 0, 0, 0, // one unicast locator:
        1, 0, 0, 0, // kind
        0xf2, 0x1c, 0, 0, // port 7410
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 127, 0, 0, 1, // address
        0, 0, 0, 0, // no multicast locator
    ];
    const BIG: [u8; 36] = [
        0x0f, 0x02, 0, 32, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0x1c, 0xf2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 127,
        0, 0, 1, 0, 0, 0, 0,
    ];

    #[test]
    fn bytes_are_as_the_specification_draws_them() {
        assert_eq!(InfoReply::parse(LITTLE[1], &LITTLE[4..]), Ok(InfoReply));
        assert_eq!(InfoReply::parse(BIG[1], &BIG[4..]), Ok(InfoReply));
        // Without flag M there is only the first list.
        assert_eq!(InfoReply::parse(0x01, &LITTLE[4..32]), Ok(InfoReply));
        assert_eq!(InfoReply::parse(0x00, &BIG[4..32]), Ok(InfoReply));
    }

    #[test]
    fn lists_that_are_longer_than_the_submessage_are_refused() {
        let problem = |flags, body: &[u8]| InfoReply::parse(flags, body).unwrap_err().problem;
        assert_eq!(problem(0x03, &LITTLE[4..32]), Problem::Truncated);
        assert_eq!(problem(0x01, &LITTLE[4..31]), Problem::Truncated);
        assert_eq!(problem(0x01, &[0xff; 28]), Problem::Truncated);
    }
}
