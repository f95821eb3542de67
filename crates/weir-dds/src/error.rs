//! Errors, named after the DDS return codes where one exists.

use std::io;

/// Result of the engine's calls.
///
/// ```
/// use weir_dds::{DomainParticipant, ParticipantSettings};
///
/// fn join() -> weir_dds::Result<DomainParticipant> {
///     DomainParticipant::new(83, ParticipantSettings::from_environment()?.interface("lo"))
/// }
/// # join().map(drop)?;
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
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
    /// The call waited as long as it may (`RETCODE_TIMEOUT`).
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
    /// A standard policy or IPv6 is not implemented (`RETCODE_UNSUPPORTED`).
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
    /// The engine panicked in one of its threads, or in a call of the application, and the participant no longer works
    /// (`RETCODE_ERROR`).
    ///
    /// It has left its domain. Every call on it and its entities that returns a result reports this.
    #[error("the engine failed in thread {thread}: {panic}; drop this participant and create another one")]
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
    /// Many participants in a process or on a host reach limits of the system: names the setting to change.
    pub(crate) fn network(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let (mut what, source) = (what.into(), source.into());
        if let Some(setting) = limit_behind(&source) {
            what = format!("{what} (raise {setting})");
        }
        Self::Network { what, source }
    }
}

/// Returns the setting of the system whose limit an error reports.
fn limit_behind(error: &io::Error) -> Option<&'static str> {
    use rustix::io::Errno;

    Some(match Errno::from_raw_os_error(error.raw_os_error()?) {
        Errno::MFILE => "the limit of open files of this process, `ulimit -n`",
        Errno::NFILE => "the limit of open files of the host, `sysctl fs.file-max`",
        // A thread, as sockets that are not ready are no error here.
        Errno::AGAIN => "the limit of threads, `ulimit -u`, or `sysctl kernel.threads-max`",
        // A socket that joins too many groups.
        Errno::NOBUFS => "the limit of multicast groups, `sysctl net.ipv4.igmp_max_memberships`",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn errors_at_a_limit_of_the_system_name_its_setting() {
        let text = |errno: Errno| {
            let error = io::Error::from_raw_os_error(errno.raw_os_error());
            DdsError::network("cannot open a socket", error).to_string()
        };
        assert!(text(Errno::MFILE).starts_with(
            "cannot open a socket (raise the limit of open files of this process, `ulimit -n`): "
        ));
        assert!(text(Errno::AGAIN).contains("kernel.threads-max"));
        assert!(text(Errno::NOBUFS).contains("igmp_max_memberships"));
        assert!(text(Errno::ACCESS).starts_with("cannot open a socket: "));
    }
}
