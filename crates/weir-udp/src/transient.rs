//! Errors of a send call that concern one datagram rather than the socket.

use std::io;

use rustix::io::Errno;

/// Returns whether a send call failed for a reason that may not affect the next datagram.
///
/// Such as a full queue (`ENOBUFS`), a packet filter, a closed port or a missing route. The
/// datagram is lost. That it was too long is not among them: see [`is_too_long`].
#[must_use]
pub fn is_transient(error: &io::Error) -> bool {
    let is_report = is_report(error) && !is_too_long(error);
    is_report || error.kind() == io::ErrorKind::PermissionDenied || is_queue_full(error)
}

/// Returns whether a call may only report that an earlier send of its socket failed.
///
/// A router or the destination said so (ICMP), or the next hop answered no search for its address. The
/// kernel reports each of these once, by the next call of any kind.
#[must_use]
pub fn is_report(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(
            Errno::CONNREFUSED
                | Errno::HOSTUNREACH
                | Errno::NETUNREACH
                | Errno::HOSTDOWN
                | Errno::NONET
                | Errno::NOPROTOOPT
                | Errno::PROTO
                | Errno::ACCESS
                | Errno::MSGSIZE
        )
    )
}

/// Returns whether the queue of the network device was full (`ENOBUFS`).
#[must_use]
pub fn is_queue_full(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::NOBUFS)
}

/// Returns whether a datagram was too long (`EMSGSIZE`): that one, or an earlier one as ICMP reported.
#[must_use]
pub fn is_too_long(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::MSGSIZE)
}

/// Returns whether a send call on a connected socket failed because the host's addresses, interfaces
/// or routes changed.
///
/// The source address chosen by `connect` is gone (`EINVAL`, `EADDRNOTAVAIL`), or its interface is
/// (`ENODEV`, `ENETDOWN`), or the route. A socket that is connected anew may have a path.
#[must_use]
pub fn is_path_lost(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(
            Errno::INVAL
                | Errno::ADDRNOTAVAIL
                | Errno::NODEV
                | Errno::NETDOWN
                | Errno::NETUNREACH
                | Errno::HOSTUNREACH
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_loses_a_datagram_and_a_bad_socket_is_an_error() {
        let full = io::Error::from(Errno::NOBUFS);
        assert!(is_queue_full(&full) && is_transient(&full));
        for errno in [
            Errno::CONNREFUSED,
            Errno::PERM,
            Errno::HOSTUNREACH,
            Errno::NETUNREACH,
            Errno::HOSTDOWN,
            Errno::NONET,
            Errno::NOPROTOOPT,
        ] {
            let error = io::Error::from(errno);
            assert!(is_transient(&error) && !is_queue_full(&error), "{error}");
        }
        for errno in [Errno::BADF, Errno::MSGSIZE, Errno::INVAL] {
            assert!(!is_transient(&io::Error::from(errno)), "{errno}");
        }
    }

    #[test]
    fn what_routers_and_destinations_report_is_told_from_errors_of_the_socket() {
        for errno in [
            Errno::CONNREFUSED,
            Errno::HOSTUNREACH,
            Errno::NETUNREACH,
            Errno::HOSTDOWN,
            Errno::NONET,
            Errno::NOPROTOOPT,
            Errno::PROTO,
            Errno::ACCESS,
            Errno::MSGSIZE,
        ] {
            assert!(is_report(&io::Error::from(errno)), "{errno}");
        }
        for errno in [Errno::BADF, Errno::INVAL, Errno::NOBUFS, Errno::PERM, Errno::AGAIN, Errno::NODEV] {
            assert!(!is_report(&io::Error::from(errno)), "{errno}");
        }
    }

    #[test]
    fn a_lost_path_is_told_from_a_lost_datagram() {
        for errno in [
            Errno::INVAL,
            Errno::NETUNREACH,
            Errno::ADDRNOTAVAIL,
            Errno::HOSTUNREACH,
            Errno::NODEV,
            Errno::NETDOWN,
        ] {
            assert!(is_path_lost(&io::Error::from(errno)), "{errno}");
        }
        for errno in [Errno::NOBUFS, Errno::CONNREFUSED, Errno::PERM, Errno::MSGSIZE] {
            assert!(!is_path_lost(&io::Error::from(errno)), "{errno}");
        }
    }
}
