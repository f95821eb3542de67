//! HEARTBEAT: samples available (RTPS 2.5 §8.3.8.6, §9.4.5.7).
//!
//! ```text
//! | HEARTBEAT 07  |X|X|X|X|G|L|F|E|      octetsToNextHeader        |
//! |                           reader id                            |
//! |                           writer id                            |
//! |                         firstSN (8)                            |
//! |                         lastSN (8)                             |
//! |                             count                              |
//! |        if G: currentGSN (8), firstGSN (8), lastGSN (8),        |
//! |              writerSet (4), secureWriterSet (4)                |
//! ```

use core::fmt;

use super::id;
use crate::bytes::{Cursor, Emit, Endianness, Filler};
use crate::error::{ParseError, Problem};
use crate::guid::EntityId;
use crate::sequence_number::SequenceNumber;

/// The writer has the samples from `first` to `last`; none if `last` is `first - 1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Heartbeat {
    /// The reader it is for; UNKNOWN for all.
    pub reader: EntityId,
    /// The writer that sends it.
    pub writer: EntityId,
    /// The first sample that can be requested.
    pub first: SequenceNumber,
    /// The last sample written.
    pub last: SequenceNumber,
    /// Increases with every new one.
    pub count: u32,
    /// Whether no response is requested.
    pub is_final: bool,
    /// Whether the writer asserts its liveliness manually.
    pub is_liveliness: bool,
}

impl Heartbeat {
    const FINAL: u8 = 0x02;
    const LIVELINESS: u8 = 0x04;
    /// The length of a HEARTBEAT without group information, in bytes, without its header.
    pub const BODY_LEN: usize = 28;

    #[inline]
    pub(super) fn parse(flags: u8, body: &[u8]) -> Result<Self, ParseError> {
        let mut cursor = Cursor::new(body, Endianness::from_flags(flags), "HEARTBEAT");
        let heartbeat = Self {
            reader: EntityId(cursor.array()?),
            writer: EntityId(cursor.array()?),
            first: SequenceNumber::parse_positive(&mut cursor)?,
            last: SequenceNumber::parse(&mut cursor)?,
            count: cursor.u32()?,
            is_final: flags & Self::FINAL != 0,
            is_liveliness: flags & Self::LIVELINESS != 0,
        };
        if heartbeat.last < heartbeat.first.prev() || heartbeat.last > SequenceNumber::MAX {
            return cursor.fail(Problem::BadSequenceNumber);
        }
        if flags & GroupInfo::FLAG != 0 {
            // Readers do not need it, but a HEARTBEAT is invalid as a whole if it is.
            GroupInfo::parse(&mut cursor)?;
        }
        Ok(heartbeat)
    }
}

/// What a HEARTBEAT says about the group of its writer: the writers of a publisher with access scope GROUP.
///
/// ```
/// use weir_wire::SequenceNumber;
/// use weir_wire::submessage::GroupInfo;
///
/// let [current, first, last] = [9, 4, 7].map(SequenceNumber);
/// let info = GroupInfo { current, first, last, writers: [1, 2, 3, 4] };
/// assert_eq!(info.to_bytes()[28..], [0; 4], "no writer is secured");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GroupInfo {
    /// The last number that a writer of the group has given a sample.
    pub current: SequenceNumber,
    /// The number of the first sample that can be requested from this writer.
    pub first: SequenceNumber,
    /// The number of its last sample; `first - 1` if it has none.
    pub last: SequenceNumber,
    /// The digest of the ids of the group's writers.
    pub writers: [u8; 4],
}

impl GroupInfo {
    /// The flag of a HEARTBEAT that has it.
    pub const FLAG: u8 = 0x08;
    /// Its length in bytes.
    pub const LEN: usize = 32;

    /// Returns the bytes that follow the count of a little-endian HEARTBEAT.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let mut out = Filler::new(&mut bytes);
        [self.current, self.first, self.last].into_iter().for_each(|number| number.emit(&mut out));
        out.bytes(&self.writers);
        bytes
    }

    /// Parses it, by the rules of RTPS 2.5, 8.3.8.6.3.
    fn parse(cursor: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let info = Self {
            current: SequenceNumber::parse_positive(cursor)?,
            first: SequenceNumber::parse_positive(cursor)?,
            last: SequenceNumber::parse(cursor)?,
            writers: cursor.array()?,
        };
        let _secured: [u8; 4] = cursor.array()?;
        if info.last < info.first.prev() || info.current < info.first.max(info.last) {
            return cursor.fail(Problem::BadSequenceNumber);
        }
        Ok(info)
    }
}

impl Emit for Heartbeat {
    fn wire_len(&self) -> usize {
        4 + Self::BODY_LEN
    }

    fn emit(&self, out: &mut [u8]) {
        let is_final = if self.is_final { Self::FINAL } else { 0 };
        let is_liveliness = if self.is_liveliness { Self::LIVELINESS } else { 0 };
        let mut out = Filler::new(out);
        out.submessage(id::HEARTBEAT, is_final | is_liveliness, Self::BODY_LEN);
        out.bytes(&self.reader.0);
        out.bytes(&self.writer.0);
        self.first.emit(&mut out);
        self.last.emit(&mut out);
        out.u32(self.count);
    }
}

impl fmt::Display for Heartbeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.is_final { " final" } else { "" };
        let liveliness = if self.is_liveliness { " liveliness" } else { "" };
        let (first, last) = (self.first, self.last);
        write!(
            f,
            "HEARTBEAT {}->{} {first}..{last} #{}{end}{liveliness}",
            self.writer, self.reader, self.count
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: [u8; 32] = [
        0x07, 0x03, 28, 0, // id, flags F and E, octetsToNextHeader
        0, 0, 1, 4, // reader
        0, 0, 2, 3, // writer
        0, 0, 0, 0, 5, 0, 0, 0, // firstSN
        1, 0, 0, 0, 6, 0, 0, 0, // lastSN 2^32 + 6
        9, 0, 0, 0, // count
    ];
    const BIG: [u8; 32] = [
        0x07, 0x02, 0, 28, 0, 0, 1, 4, 0, 0, 2, 3, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0, 9,
    ];

    #[test]
    fn bytes_are_as_the_specification_draws_them() {
        let heartbeat = Heartbeat {
            reader: EntityId([0, 0, 1, 4]),
            writer: EntityId([0, 0, 2, 3]),
            first: SequenceNumber(5),
            last: SequenceNumber((1 << 32) + 6),
            count: 9,
            is_final: true,
            is_liveliness: false,
        };
        let mut out = [0; 32];
        heartbeat.emit(&mut out);
        assert_eq!(out, LITTLE);
        assert_eq!(Heartbeat::parse(LITTLE[1], &LITTLE[4..]), Ok(heartbeat));
        assert_eq!(Heartbeat::parse(BIG[1], &BIG[4..]), Ok(heartbeat));
    }

    /// A little-endian HEARTBEAT with group information.
    fn with_group_info([current, first, last]: [i64; 3]) -> Vec<u8> {
        let numbers = [current, first, last].map(SequenceNumber);
        let info =
            GroupInfo { current: numbers[0], first: numbers[1], last: numbers[2], writers: [1, 2, 3, 4] };
        [&LITTLE[..], &info.to_bytes()].concat()
    }

    #[test]
    fn group_information_is_read_over() {
        let plain = Heartbeat::parse(LITTLE[1], &LITTLE[4..]).unwrap();
        let flags = LITTLE[1] | GroupInfo::FLAG;
        for numbers in [[9, 4, 7], [9, 9, 8], [9, 9, 9], [1, 1, 0]] {
            let bytes = with_group_info(numbers);
            assert_eq!(Heartbeat::parse(flags, &bytes[4..]), Ok(plain), "{numbers:?}");
            let longer = [&bytes[..], &[0xff; 4]].concat();
            assert_eq!(Heartbeat::parse(flags, &longer[4..]), Ok(plain), "a later version may add more");
        }
        // The other byte order.
        let number = |number: u8| [0, 0, 0, 0, 0, 0, 0, number];
        let info = [number(9), number(4), number(7), number(0)].concat();
        let bytes = [&BIG[..], &info].concat();
        assert_eq!(Heartbeat::parse(BIG[1] | GroupInfo::FLAG, &bytes[4..]), Ok(plain));
    }

    #[test]
    fn group_information_that_is_too_short_or_contradicts_itself_is_refused() {
        let flags = LITTLE[1] | GroupInfo::FLAG;
        let bytes = with_group_info([9, 4, 7]);
        for len in LITTLE.len()..bytes.len() {
            let problem = Heartbeat::parse(flags, &bytes[4..len]).unwrap_err().problem;
            assert_eq!(problem, Problem::Truncated, "{len} bytes");
        }
        for numbers in [
            [0, 1, 0],
            [-1, 1, 0],
            [9, 0, 7],
            [9, 1, -1],
            [9, 8, 6],
            [9, 10, 9],
            [9, 4, 10],
            [i64::MAX, 1, 1],
            [9, 1, i64::MIN],
        ] {
            let bytes = with_group_info(numbers);
            let problem = Heartbeat::parse(flags, &bytes[4..]).unwrap_err().problem;
            assert_eq!(problem, Problem::BadSequenceNumber, "{numbers:?}");
        }
    }

    #[test]
    fn a_range_that_ends_before_it_begins_is_refused() {
        for (first, last) in [(0, 0), (-1, 5), (5, 3), (1, i64::MAX), (i64::MAX, i64::MAX)] {
            let heartbeat = Heartbeat {
                reader: EntityId::UNKNOWN,
                writer: EntityId::UNKNOWN,
                first: SequenceNumber(first),
                last: SequenceNumber(last),
                count: 1,
                is_final: false,
                is_liveliness: false,
            };
            let mut out = [0; 32];
            heartbeat.emit(&mut out);
            let problem = Heartbeat::parse(out[1], &out[4..]).unwrap_err().problem;
            assert_eq!(problem, Problem::BadSequenceNumber, "{first}..{last}");
        }
    }
}
