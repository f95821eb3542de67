//! Addresses of either family: names looked up, sockets listened on, interfaces behind addresses.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::error::UdptestError;

/// Which version of IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// Whichever the name has first.
    #[default]
    Any,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// The addresses of a host, in the order in which they are to be tried; never none.
pub(crate) fn resolve(host: &str, port: u16, family: Family) -> Result<Vec<SocketAddr>, UdptestError> {
    let fail = |reason: String| UdptestError::Host { host: host.to_owned(), reason };
    // As in a URL.
    let name = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let found = (name, port).to_socket_addrs().map_err(|error| fail(error.to_string()))?;
    let is_meant = |address: &SocketAddr| match family {
        Family::Any => true,
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    };
    let found: Vec<SocketAddr> = found.filter(is_meant).collect();
    match (found.is_empty(), family) {
        (false, _) => Ok(found),
        (true, Family::V4) => Err(fail("it has IPv6 addresses only".to_owned())),
        (true, Family::V6) => Err(fail("it has IPv4 addresses only".to_owned())),
        (true, Family::Any) => Err(fail("it has none".to_owned())),
    }
}

/// Connects to the first address that answers.
pub(crate) fn connect(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect_timeout(address, CONNECT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

/// An address as what it is: IPv4 that arrived at an IPv6 socket is IPv4.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => match v6.ip().to_canonical() {
            IpAddr::V4(ip) => SocketAddr::new(ip.into(), v6.port()),
            IpAddr::V6(_) => address,
        },
        SocketAddr::V4(_) => address,
    }
}

/// The same host's other port.
pub(crate) fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}

/// Listens on an address, or on all of both families.
pub(crate) fn listen(bind: Option<IpAddr>, port: u16) -> Result<TcpListener, UdptestError> {
    let bind_to = |address: SocketAddr| {
        TcpListener::bind(address)
            .map_err(|source| UdptestError::Listen { address: address.to_string(), source })
    };
    match bind {
        Some(ip) => bind_to(SocketAddr::new(ip, port)),
        // Linux hands IPv4 to a socket on all IPv6 addresses as well, unless there is no IPv6.
        None => match bind_to(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port)) {
            Err(UdptestError::Listen { source, .. }) if source.kind() != io::ErrorKind::AddrInUse => {
                bind_to(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port))
            }
            listening => listening,
        },
    }
}

/// Name and number of the interface that has an address.
pub(crate) fn interface_of(address: IpAddr) -> Option<(String, u32)> {
    match address {
        IpAddr::V4(ip) => {
            let interfaces = weir_udp::interfaces().ok()?;
            // Every address of 127.0.0.0/8 is this host's.
            let is_its =
                |one: &&weir_udp::Interface| one.address == ip || (one.is_loopback && ip.is_loopback());
            interfaces.iter().find(is_its).map(|one| (one.name.clone(), one.index))
        }
        IpAddr::V6(ip) => interface_in(&fs::read_to_string("/proc/net/if_inet6").ok()?, ip),
    }
}

/// From a list of `address number length scope flags name`, numbers hexadecimal.
fn interface_in(text: &str, ip: Ipv6Addr) -> Option<(String, u32)> {
    let address: String = ip.octets().iter().map(|octet| format!("{octet:02x}")).collect();
    let line = text.lines().find(|line| line.starts_with(&address))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let index = u32::from_str_radix(words.get(1)?, 16).ok()?;
    Some(((*words.get(5)?).to_owned(), index))
}

/// Adds the interface to a multicast group's address, where the family wants it there.
pub(crate) fn on_interface(group: IpAddr, port: u16, index: Option<u32>) -> SocketAddr {
    match group {
        IpAddr::V4(_) => SocketAddr::new(group, port),
        IpAddr::V6(group) => SocketAddrV6::new(group, port, 0, index.unwrap_or(0)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_up_by_family() {
        let of = |host: &str, family| resolve(host, 7, family).map(|found| found[0]);
        assert_eq!(of("127.0.0.1", Family::Any).unwrap().to_string(), "127.0.0.1:7");
        assert_eq!(of("[::1]", Family::Any).unwrap().to_string(), "[::1]:7");
        assert_eq!(of("::1", Family::V6).unwrap().to_string(), "[::1]:7");
        assert!(of("::1", Family::V4).unwrap_err().to_string().contains("IPv6 addresses only"));
        assert!(of("127.0.0.1", Family::V6).unwrap_err().to_string().contains("IPv4 addresses only"));
        assert!(of("no.such.host.invalid", Family::Any).is_err());
    }

    #[test]
    fn ipv4_at_an_ipv6_socket_is_ipv4() {
        assert_eq!(canonical("[::ffff:10.0.0.1]:5".parse().unwrap()).to_string(), "10.0.0.1:5");
        assert_eq!(canonical("[fe80::1%3]:5".parse().unwrap()).to_string(), "[fe80::1%3]:5");
        assert_eq!(with_port("[fe80::1%3]:5".parse().unwrap(), 6).to_string(), "[fe80::1%3]:6");
    }

    #[test]
    fn interfaces_are_found_by_address() {
        assert_eq!(interface_of(Ipv4Addr::new(127, 0, 0, 9).into()).unwrap().0, "lo");
        let text = "00000000000000000000000000000001 01 80 10 80       lo\n\
                    fe800000000000000000000000000001 1f 40 20 80    weir0\n";
        assert_eq!(interface_in(text, "fe80::1".parse().unwrap()), Some(("weir0".to_owned(), 31)));
        assert_eq!(interface_in(text, "fe80::2".parse().unwrap()), None);
    }
}
