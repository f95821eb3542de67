//! What would spoil a measurement: the checkup of the host, and the path to another one, as far as it is known
//! without a program there.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, SocketAddrV4, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

use thiserror::Error;
use weir_measure::interface_of;

pub use weir_telemetry::{Facts, Finding, PathFacts, Purpose, examine, script};

/// A name that stands for no host.
#[derive(Debug, Error)]
#[error("`{name}` is no host that this one knows: {source}")]
pub struct UnknownHost {
    /// The name.
    name: String,
    /// Why not.
    source: std::io::Error,
}

/// Returns what is known about the path to `peer`, a name or an address. Tries one TCP connection to the port of
/// `udpserver`: a refusal is an answer, too.
pub fn path_to(peer: &str) -> Result<PathFacts, UnknownHost> {
    let address = resolve(peer).map_err(|source| UnknownHost { name: peer.to_owned(), source })?;
    let local = local_address(address);
    let mut facts = PathFacts {
        peer: peer.to_owned(),
        address: address.ip().to_string(),
        is_same_host: address.ip().is_loopback() || local.is_some_and(|local| local == address.ip()),
        local_address: local.map(|local| local.to_string()),
        interface: local.and_then(interface_of).map(|(name, _)| name),
        ..PathFacts::default()
    };
    if local.is_none() {
        return Ok(facts);
    }
    if let SocketAddr::V4(address) = address {
        facts.path_mtu = weir_udp::path_mtu_to(address).ok().and_then(|mtu| u32::try_from(mtu).ok());
    }
    let asked = Instant::now();
    facts.answers = match TcpStream::connect_timeout(&address, ANSWER_WAIT) {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::ConnectionRefused,
    };
    facts.answer_ms = facts.answers.then(|| (asked.elapsed().as_secs_f64() * 1e6).round() / 1e3);
    Ok(facts)
}

/// The port of `udpserver`.
const PORT: u16 = 5678;

/// How long the other host may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(2);

fn resolve(peer: &str) -> std::io::Result<SocketAddr> {
    let mut found: Vec<SocketAddr> = (peer, PORT).to_socket_addrs()?.collect();
    // IPv4 first: measurements use it.
    found.sort_by_key(SocketAddr::is_ipv6);
    found.into_iter().next().ok_or_else(|| ErrorKind::NotFound.into())
}

/// The address that packets to `peer` leave with. A connected socket has been given a route, and sends nothing.
fn local_address(peer: SocketAddr) -> Option<IpAddr> {
    let any: SocketAddr = if peer.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(peer).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// The interface that packets to nowhere in particular leave by: that of the default route. `None` without one.
#[must_use]
pub fn default_interface() -> Option<String> {
    // An address of the range for documentation: nothing is sent there.
    let nowhere = SocketAddr::V4(SocketAddrV4::new([192, 0, 2, 1].into(), PORT));
    interface_of(local_address(nowhere)?).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_the_same_host_and_answers() {
        let facts = path_to("127.0.0.1").unwrap();
        assert!(facts.is_same_host && facts.answers, "{facts:?}");
        assert_eq!(facts.interface.as_deref(), Some("lo"));
        assert_eq!(facts.local_address.as_deref(), Some("127.0.0.1"));
        assert!(facts.path_mtu.is_some() && facts.answer_ms.is_some());
    }

    #[test]
    fn a_name_that_is_none_is_told() {
        let error = path_to("no such host").unwrap_err().to_string();
        assert!(error.starts_with("`no such host` is no host"), "{error}");
    }
}
