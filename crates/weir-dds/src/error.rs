//! What can go wrong, in the words of the DDS specification's return codes where it has one.

use std::io;

/// Result of the engine's calls.
pub type Result<T> = std::result::Result<T, DdsError>;

/// Why a call failed (DDS 1.4 §2.2.1.1, `ReturnCode_t`).
#[derive(Debug, thiserror::Error)]
pub enum DdsError {
    /// The call waited as long as it may (`RETCODE_TIMEOUT`).
    #[error("{what} did not happen within {waited:?}{hint}")]
    Timeout {
        /// What was waited for.
        what: &'static str,
        /// How long.
        waited: std::time::Duration,
        /// Whose fault it may be; empty, or a text that begins with a separator.
        hint: String,
    },
    /// An argument makes no sense (`RETCODE_BAD_PARAMETER`).
    #[error("{0}")]
    BadParameter(String),
    /// A limit was reached (`RETCODE_OUT_OF_RESOURCES`).
    #[error("{0}")]
    OutOfResources(String),
    /// Policies that contradict each other (`RETCODE_INCONSISTENT_POLICY`).
    #[error("{0}")]
    InconsistentPolicy(String),
    /// A policy of the standard that is not implemented (`RETCODE_UNSUPPORTED`).
    #[error("{0}")]
    Unsupported(String),
    /// The network would not have it: no such interface, no free port, no permission.
    #[error("{what}: {source}")]
    Network {
        /// What was attempted.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// A value that its type does not allow, such as a string longer than its bound.
    #[error("the sample cannot be encoded: {0}")]
    Encoding(#[from] weir_cdr::CdrError),
}

impl DdsError {
    pub(crate) fn network(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Network { what: what.into(), source: source.into() }
    }
}
