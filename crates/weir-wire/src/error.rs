//! Errors in received bytes.

use core::fmt;

/// Why bytes could not be parsed. Small and `Copy`, because one is created for every bad datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ParseError {
    /// The item that was being parsed, by its name in the specification.
    pub item: &'static str,
    /// What is wrong with it.
    pub problem: Problem,
}

/// The kinds of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Problem {
    /// The bytes end before the item does.
    Truncated,
    /// The datagram does not begin with `RTPS`.
    BadMagic,
    /// The major protocol version is not 2.
    UnsupportedVersion,
    /// A length or offset contradicts the surrounding bytes.
    BadLength,
    /// A sequence number is not allowed here.
    BadSequenceNumber,
    /// A set has more than 256 numbers, or an invalid base.
    BadSet,
    /// A fragment number, count or size contradicts the others.
    BadFragment,
    /// A string is not zero-terminated or not UTF-8.
    BadString,
    /// Flags exclude each other.
    BadFlags,
    /// A parameter list has no sentinel.
    NoSentinel,
}

impl ParseError {
    /// Creates an error about `item`.
    #[inline]
    pub const fn new(item: &'static str, problem: Problem) -> Self {
        Self { item, problem }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = match self.problem {
            Problem::Truncated => "is cut short",
            Problem::BadMagic => "does not start with RTPS",
            Problem::UnsupportedVersion => "has a major version other than 2",
            Problem::BadLength => "has a length or offset that contradicts the surrounding bytes",
            Problem::BadSequenceNumber => "has a sequence number that is not allowed there",
            Problem::BadSet => "has a set of more than 256 numbers or with an invalid base",
            Problem::BadFragment => "has fragment numbers or sizes that contradict each other",
            Problem::BadString => "has a string that is not zero-terminated or not UTF-8",
            Problem::BadFlags => "has flags that exclude each other",
            Problem::NoSentinel => "has no sentinel",
        };
        write!(f, "{} {problem}", self.item)
    }
}

impl core::error::Error for ParseError {}
