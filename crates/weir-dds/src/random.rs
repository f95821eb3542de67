//! Random numbers that a peer cannot predict.

use crate::error::{DdsError, Result};

/// Returns a secret of the kernel's.
///
/// # Errors
/// [`DdsError::Network`] if the kernel has no random numbers, such as in a sandbox that forbids `getrandom(2)`.
pub(crate) fn secret() -> Result<u64> {
    getrandom::u64().map_err(|error| DdsError::network("no random numbers from the kernel", error))
}
