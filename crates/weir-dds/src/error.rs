//! Errors, named after the DDS return codes where one exists.

use std::io;

/// Result of the engine's calls.
pub type Result<T> = std::result::Result<T, DdsError>;

/// The reason why a call failed (DDS 1.4, 2.2.1.1, `ReturnCode_t`).
///
/// ```
/// use weir_dds::{DdsError, DomainParticipant, ParticipantSettings};
///
/// let error = DomainParticipant::new(233, ParticipantSettings::default()).unwrap_err();
/// assert!(matches!(error, DdsError::BadParameter(_)));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DdsError {
    /// The call waited for its maximum time (`RETCODE_TIMEOUT`).
    #[error("{what} did not happen within {waited:?}{hint}")]
    Timeout {
        /// The event that was waited for.
        what: &'static str,
        /// The time waited.
        waited: std::time::Duration,
        /// Possible cause; empty, or a text that begins with a separator.
        hint: String,
    },
    /// An argument is invalid (`RETCODE_BAD_PARAMETER`).
    #[error("{0}")]
    BadParameter(String),
    /// The call is not allowed now (`RETCODE_PRECONDITION_NOT_MET`).
    #[error("{0}")]
    PreconditionNotMet(String),
    /// A limit is exhausted (`RETCODE_OUT_OF_RESOURCES`).
    #[error("{0}")]
    OutOfResources(String),
    /// Policies contradict each other (`RETCODE_INCONSISTENT_POLICY`).
    #[error("{0}")]
    InconsistentPolicy(String),
    /// Policies cannot be changed once the entity exists (`RETCODE_IMMUTABLE_POLICY`; DDS 1.4, 2.2.3, "Changeable").
    #[error("these policies cannot be changed after creation: {policies}; create another entity")]
    ImmutablePolicy {
        /// Their names, separated by commas.
        policies: String,
    },
    /// The entity is not enabled yet (`RETCODE_NOT_ENABLED`): see [`EntityFactory`](crate::EntityFactory).
    #[error("the {0} is not enabled: call its method `enable` first")]
    NotEnabled(&'static str),
    /// A standard policy is not implemented (`RETCODE_UNSUPPORTED`).
    #[error("{0}")]
    Unsupported(String),
    /// The entity was closed (`RETCODE_ALREADY_DELETED`).
    #[error("the {0} was closed: create another one")]
    AlreadyDeleted(&'static str),
    /// A system call failed: no such interface, no free port, no permission.
    #[error("{what}: {source}")]
    Network {
        /// The operation that failed.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// A thread of the engine panicked, and the participant no longer works (`RETCODE_ERROR`).
    ///
    /// It has left its domain. Every call on it and its entities that returns a result reports this.
    #[error("the engine's thread {thread} failed: {panic}; drop this participant and create another one")]
    ThreadFailed {
        /// The name of the thread.
        thread: String,
        /// The text of the panic.
        panic: String,
    },
    /// A value is not allowed by its type, such as a string longer than its bound.
    #[error("the sample cannot be encoded: {0}")]
    Encoding(#[from] weir_cdr::CdrError),
}

impl DdsError {
    pub(crate) fn network(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Network { what: what.into(), source: source.into() }
    }
}
