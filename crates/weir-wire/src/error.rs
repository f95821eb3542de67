//! What can be wrong with received bytes.

use core::fmt;

/// Why bytes are not the item that they should be. Small and `Copy`: it is made for every bad datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ParseError {
    /// The item that was being read, by its name in the specification.
    pub item: &'static str,
    /// What is wrong with it.
    pub problem: Problem,
}

/// The kinds of defects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Problem {
    /// The bytes end before the item does.
    Truncated,
    /// The datagram does not begin with `RTPS`.
    BadMagic,
    /// The major protocol version is not 2.
    UnsupportedVersion,
    /// A length or an offset that contradicts the bytes around it.
    BadLength,
    /// A sequence number that may not occur here.
    BadSequenceNumber,
    /// A set with more than 256 numbers, or one that is empty of sense.
    BadSet,
    /// A fragment number, count or size that contradicts the others.
    BadFragment,
    /// A string without its terminating zero, or not in UTF-8.
    BadString,
    /// Flags that exclude each other.
    BadFlags,
    /// A parameter list without a sentinel.
    NoSentinel,
}

impl ParseError {
    /// An error about `item`.
    #[inline]
    pub const fn new(item: &'static str, problem: Problem) -> Self {
        Self { item, problem }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = match self.problem {
            Problem::Truncated => "is cut short",
            Problem::BadMagic => "does not begin with RTPS",
            Problem::UnsupportedVersion => "has a major version other than 2",
            Problem::BadLength => "has a length or offset that contradicts the bytes around it",
            Problem::BadSequenceNumber => "has a sequence number that may not occur there",
            Problem::BadSet => "has a set of more than 256 numbers or below the first one",
            Problem::BadFragment => "has fragment numbers or sizes that contradict each other",
            Problem::BadString => "has a string without terminating zero or not in UTF-8",
            Problem::BadFlags => "has flags that exclude each other",
            Problem::NoSentinel => "has no sentinel",
        };
        write!(f, "{} {problem}", self.item)
    }
}

impl core::error::Error for ParseError {}
