//! Why a value could not be encoded or decoded.

use thiserror::Error;

/// Why a value could not be encoded or decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum CdrError {
    /// The value does not fit into the slice given to the writer.
    #[error("the output buffer is too small for the value")]
    BufferTooSmall,
    /// The data end inside a value.
    #[error("the data end before the value does")]
    UnexpectedEnd,
    /// An octet that should be a boolean is neither 0 nor 1.
    #[error("a boolean is {0}, it must be 0 or 1")]
    InvalidBool(u8),
    /// A string is not terminated by a NUL, or contains another one.
    #[error("a string must contain exactly one NUL, at its end")]
    InvalidString,
    /// A string is not UTF-8.
    #[error("a string is not valid UTF-8")]
    InvalidUtf8,
    /// A string or sequence is longer than its bound.
    #[error("a string or sequence is longer than its bound of {max}")]
    BoundExceeded {
        /// The bound, in elements (octets without the NUL for a string).
        max: u32,
    },
    /// A string, a sequence or a delimited value has a length that does not fit into 32 bits.
    #[error("a length does not fit into 32 bits")]
    LengthOverflow,
    /// The payload starts with an encapsulation that is not plain CDR.
    #[error("the encapsulation {0:#06x} is not supported, only plain CDR (0x0000, 0x0001) is")]
    UnsupportedEncapsulation(u16),
}
