//! Why an expression cannot be used, and where.

use alloc::string::String;
use core::fmt;

/// The result of parsing and binding.
pub type Result<T = ()> = core::result::Result<T, FilterError>;

/// Why an expression cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {cause}")]
pub struct FilterError {
    place: Place,
    cause: String,
}

/// What an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The expression from this character on; the first one is 1.
    Character(usize),
    /// The parameter with this number.
    Parameter(usize),
    /// All of it.
    Expression,
}

impl FilterError {
    pub(crate) fn new(place: Place, cause: impl Into<String>) -> Self {
        Self { place, cause: cause.into() }
    }

    /// Where the mistake is.
    pub fn place(&self) -> Place {
        self.place
    }

    /// What is wrong, and what to do.
    pub fn cause(&self) -> &str {
        &self.cause
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Character(at) => write!(f, "character {at} of the expression"),
            Self::Parameter(number) => write!(f, "parameter %{number}"),
            Self::Expression => f.write_str("the expression"),
        }
    }
}
