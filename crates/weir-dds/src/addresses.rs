//! Addresses of the API, which are those of any protocol, and of the engine, which are IPv4.

use std::net::{IpAddr, Ipv4Addr};

use crate::error::{DdsError, Result};

/// Returns an address as the engine uses it. `what`: what the address is of.
///
/// # Errors
/// [`DdsError::Unsupported`]: it is of IPv6.
pub(crate) fn ipv4(what: &str, address: IpAddr) -> Result<Ipv4Addr> {
    match address.to_canonical() {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(_) => {
            let text = format!("{what} {address}: IPv6 is not supported yet: use an IPv4 address");
            Err(DdsError::Unsupported(text))
        }
    }
}

/// Splits `ADDRESS` or `ADDRESS:PORT`; with a port, an IPv6 address is in brackets.
pub(crate) fn split(text: &str) -> Option<(IpAddr, Option<u16>)> {
    let with_port = || text.parse::<std::net::SocketAddr>().ok().map(|it| (it.ip(), Some(it.port())));
    text.parse().ok().map(|address| (address, None)).or_else(with_port)
}
