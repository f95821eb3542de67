//! Names of values: one table for each enum.

use thiserror::Error;

/// Gives an enum its names: `name` and `Display`, and with `, expected "..."` also `FromStr`.
macro_rules! names {
    ($type:ident { $($value:ident = $name:literal),+ $(,)? }) => {
        impl $type {
            /// The name in options and in the results format.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
    ($type:ident { $($value:ident = $name:literal),+ $(,)? }, expected $expected:literal) => {
        crate::names::names!($type { $($value = $name),+ });

        impl std::str::FromStr for $type {
            type Err = crate::ParseNameError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($name => Ok(Self::$value),)+
                    _ => Err(crate::ParseNameError::new(text, $expected)),
                }
            }
        }
    };
}
pub(crate) use names;

/// An unknown name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{found}` is not {expected}")]
pub struct ParseNameError {
    /// The name found.
    found: String,
    /// The names expected.
    expected: &'static str,
}

impl ParseNameError {
    pub(crate) fn new(found: &str, expected: &'static str) -> Self {
        Self { found: found.to_owned(), expected }
    }
}
