//! Random numbers that peers cannot predict.

use crate::error::{DdsError, Result};

/// Returns a random number from the kernel.
///
/// # Errors
/// [`DdsError::Network`] if `getrandom(2)` fails, for example because a sandbox forbids it.
pub(crate) fn secret() -> Result<u64> {
    getrandom::u64().map_err(|error| DdsError::network("cannot read random numbers from the kernel", error))
}
