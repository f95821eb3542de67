//! Errors of a send call that concern one datagram rather than the socket.

use std::io;

use rustix::io::Errno;

/// Returns whether a send call failed for a reason that may not affect the next datagram.
///
/// Such as a full queue (`ENOBUFS`), a packet filter, a closed port or a missing route. The
/// datagram is lost.
#[must_use]
pub fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::ConnectionRefused | Kind::PermissionDenied | Kind::HostUnreachable | Kind::NetworkUnreachable
    ) || is_queue_full(error)
}

/// Returns whether the queue of the network device was full (`ENOBUFS`).
#[must_use]
pub fn is_queue_full(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::NOBUFS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_loses_a_datagram_and_a_bad_socket_is_an_error() {
        let full = io::Error::from(Errno::NOBUFS);
        assert!(is_queue_full(&full) && is_transient(&full));
        for errno in [Errno::CONNREFUSED, Errno::PERM, Errno::HOSTUNREACH, Errno::NETUNREACH] {
            let error = io::Error::from(errno);
            assert!(is_transient(&error) && !is_queue_full(&error), "{error}");
        }
        for errno in [Errno::BADF, Errno::MSGSIZE, Errno::INVAL] {
            assert!(!is_transient(&io::Error::from(errno)), "{errno}");
        }
    }
}
