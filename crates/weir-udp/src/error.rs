//! Errors of setting up a socket, with advice.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// The reason why a socket could not be opened or configured. The text names the address and the
/// remedy.
///
/// Sending and receiving return plain [`io::Error`] instead: there the caller knows the datagram.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UdpError {
    /// No socket could be created (out of file descriptors, forbidden by a sandbox).
    #[error("cannot open a UDP socket: {source}; check the limit of open files (ulimit -n)")]
    Open {
        /// The system's error.
        source: io::Error,
    },
    /// The address could not be bound.
    #[error("cannot bind a UDP socket to {address}: {source}; {}", bind_advice(source))]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The destination could not be set.
    #[error("cannot connect a UDP socket to {address}: {source}; {}", route_advice(source))]
    Connect {
        /// The requested destination.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A socket option was refused.
    #[error("cannot set {option} on the UDP socket for {address}: {source}; {advice}")]
    Option {
        /// The kernel's name of the option.
        option: &'static str,
        /// What to do about it.
        advice: &'static str,
        /// The address of the socket.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A multicast group could not be joined or left.
    #[error(
        "cannot {action} multicast group {group} on interface {interface}: {source}; {}",
        multicast_advice(source)
    )]
    Multicast {
        /// `join` or `leave`.
        action: &'static str,
        /// The group.
        group: IpAddr,
        /// The interface, by address or index.
        interface: crate::MulticastInterface,
        /// The system's error.
        source: io::Error,
    },
}

impl UdpError {
    /// Returns the kind of the system's error, for callers that try the next port on
    /// [`io::ErrorKind::AddrInUse`].
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Open { source }
            | Self::Bind { source, .. }
            | Self::Connect { source, .. }
            | Self::Option { source, .. }
            | Self::Multicast { source, .. } => source.kind(),
        }
    }
}

impl From<UdpError> for io::Error {
    fn from(error: UdpError) -> Self {
        Self::new(error.kind(), error)
    }
}

fn bind_advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => {
            "another socket has this port: stop its process (ss -lunp names it), use another port, or share it with reuse_address"
        }
        io::ErrorKind::AddrNotAvailable => "no interface of this host has this address (ip addr lists them)",
        io::ErrorKind::PermissionDenied => "ports below 1024 need CAP_NET_BIND_SERVICE: use a higher one",
        _ => "check the address",
    }
}

fn route_advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
            "there is no route to it (ip route get ADDRESS)"
        }
        io::ErrorKind::InvalidInput => {
            "a socket bound to the loopback address reaches loopback addresses only"
        }
        _ => "check the address",
    }
}

fn multicast_advice(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EADDRINUSE) => "this socket is already a member",
        Some(libc::EADDRNOTAVAIL) => "this socket is not a member on that interface",
        Some(libc::ENODEV) => "no interface has that address or index (ip addr lists them)",
        Some(libc::ENOBUFS) => "too many groups for one socket (sysctl net.ipv4.igmp_max_memberships)",
        Some(libc::EINVAL) => "use a group from 224.0.0.0 to 239.255.255.255, or one that starts with ff",
        _ => "check the group and the interface",
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use super::*;

    #[test]
    fn text_names_the_address_and_the_remedy() {
        let error = UdpError::Bind {
            address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411).into(),
            source: io::Error::from_raw_os_error(libc::EADDRINUSE),
        };
        let text = error.to_string();
        assert!(text.contains("127.0.0.1:7411"), "{text}");
        assert!(text.contains("reuse_address"), "{text}");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::AddrInUse);
    }
}
