//! Encoding and decoding errors.

use thiserror::Error;

/// The result of encoding or decoding.
pub type Result<T = ()> = core::result::Result<T, CdrError>;

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
    /// An byte that should be a boolean is neither 0 nor 1.
    #[error("a boolean is {0}: it must be 0 or 1")]
    InvalidBool(u8),
    /// A string is not terminated by a NUL, or contains another one.
    #[error("a string must contain exactly one NUL, at its end")]
    InvalidString,
    /// A string or sequence is longer than its bound.
    #[error("a string or sequence is longer than its bound of {max}")]
    BoundExceeded {
        /// The bound, in elements; for a string, in bytes without the NUL.
        max: u32,
    },
    /// A string, a sequence or a delimited value has a length that does not fit into 32 bits.
    #[error("a length does not fit into 32 bits")]
    LengthOverflow,
    /// The payload has an encapsulation other than plain or delimited CDR.
    #[error("unsupported encapsulation {0:#06x}: use CDR, CDR2 or D_CDR2 (0x0000, 0x0001, 0x0006 to 0x0009)")]
    UnsupportedEncapsulation(u16),
    /// The payload is delimited although the type is final, or is not although the type is
    /// appendable.
    #[error("encapsulation {0:#06x}: the sender's type has another extensibility")]
    ExtensibilityMismatch(u16),
    /// A number is not the value of an enumerator, or not a case of a union.
    #[error("{0} is not a value of the enumeration or not a case of the union")]
    UnknownDiscriminator(i64),
    /// The type does not end in a sequence of numbers.
    #[error("the type does not end in a sequence of numbers")]
    NoBulk,
    /// A map has the same key twice.
    #[error("a map has the same key twice")]
    DuplicateKey,
    /// An optional member has the id of another one.
    #[error("member {found} is where member {expected} should be")]
    UnexpectedMember {
        /// The id of the member of the type.
        expected: u32,
        /// The id in the data.
        found: u32,
    },
}
