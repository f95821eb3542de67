//! Addresses of IPv4 and IPv6: names, listening sockets, interfaces.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::MeasureError;

/// A version of IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// The first one that the name has.
    #[default]
    Any,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Returns the addresses of a host in the order to try them; never none.
pub fn resolve(host: &str, port: u16, family: Family) -> Result<Vec<SocketAddr>, MeasureError> {
    let fail = |reason: String| MeasureError::Host { host: host.to_owned(), reason };
    // Brackets as in a URL.
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

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(10);

/// Returns the IPv4 address behind one that an IPv6 socket reports; others unchanged.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// The same host with another port.
#[must_use]
pub fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}

/// Listens on an address, or on all addresses of both families.
pub(crate) fn listen(bind: Option<IpAddr>, port: u16) -> Result<TcpListener, MeasureError> {
    let bind_to = |address: SocketAddr| {
        TcpListener::bind(address)
            .map_err(|source| MeasureError::Listen { address: address.to_string(), source })
    };
    match bind {
        Some(ip) => bind_to(SocketAddr::new(ip, port)),
        // On Linux a socket on all IPv6 addresses accepts IPv4, too, unless there is no IPv6.
        None => match bind_to(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port)) {
            Err(MeasureError::Listen { source, .. }) if source.kind() != io::ErrorKind::AddrInUse => {
                bind_to(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port))
            }
            listening => listening,
        },
    }
}

/// Returns name and number of the interface that has an address.
#[must_use]
pub fn interface_of(address: IpAddr) -> Option<(String, u32)> {
    match address {
        IpAddr::V4(ip) => {
            let interfaces = weir_udp::interfaces().ok()?;
            // Every address of 127.0.0.0/8 belongs to this host.
            let is_its =
                |one: &&weir_udp::Interface| one.address == ip || (one.is_loopback && ip.is_loopback());
            interfaces.iter().find(is_its).map(|one| (one.name.clone(), one.index))
        }
        IpAddr::V6(ip) => interface_in(&fs::read_to_string("/proc/net/if_inet6").ok()?, ip),
    }
}

/// Reads lines of `address number length scope flags name`, numbers hexadecimal.
fn interface_in(text: &str, ip: Ipv6Addr) -> Option<(String, u32)> {
    let address: String = ip.octets().iter().map(|byte| format!("{byte:02x}")).collect();
    let line = text.lines().find(|line| line.starts_with(&address))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let index = u32::from_str_radix(words.get(1)?, 16).ok()?;
    Some(((*words.get(5)?).to_owned(), index))
}

/// The address of a multicast group; IPv6 names the interface in it.
#[must_use]
pub fn on_interface(group: IpAddr, port: u16, index: Option<u32>) -> SocketAddr {
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
