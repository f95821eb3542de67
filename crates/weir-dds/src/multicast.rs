//! Multicast groups as named by the application.

use std::net::{IpAddr, SocketAddrV4};

use weir_rtps::{multicast, ports};

use crate::addresses;
use crate::error::{DdsError, Result};

/// A multicast group for user data: one datagram reaches all readers in the group.
///
/// Text form: `ADDRESS`, `ADDRESS:PORT` or `default`. Participants and readers refuse IPv6 addresses with
/// [`DdsError::Unsupported`]: the engine does not support IPv6 yet.
///
/// ```
/// use weir_dds::{DataReaderQos, MulticastGroup};
///
/// let default = DataReaderQos::default().multicast(MulticastGroup::default());
/// let private = DataReaderQos::default().multicast("239.255.7.1:9000".parse()?);
/// assert_eq!(private.multicast, Some(MulticastGroup::new([239, 255, 7, 1].into()).port(9000)));
/// # let _ = default;
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MulticastGroup {
    /// The address, within 224.0.1.0 to 239.255.255.255.
    pub address: IpAddr,
    /// The UDP port; `None`: the domain's multicast port for user data.
    ///
    /// See RTPS 2.5, 9.6.2.2.
    pub port: Option<u16>,
}

impl Default for MulticastGroup {
    /// 239.255.0.1 with the domain's port, the default of other engines (RTPS 2.5, 9.6.2.4.1).
    fn default() -> Self {
        Self { address: IpAddr::V4(ports::DISCOVERY_GROUP), port: None }
    }
}

impl MulticastGroup {
    /// Returns a group with the domain's port.
    ///
    /// ```
    /// use std::net::Ipv4Addr;
    /// use weir_dds::MulticastGroup;
    ///
    /// let group = MulticastGroup::new(Ipv4Addr::new(239, 255, 7, 1).into());
    /// assert_eq!(group.port, None);
    /// ```
    pub const fn new(address: IpAddr) -> Self {
        Self { address, port: None }
    }

    /// Sets the UDP port.
    ///
    /// ```
    /// use weir_dds::MulticastGroup;
    ///
    /// assert_eq!(MulticastGroup::new([239, 1, 2, 3].into()).port(9000), "239.1.2.3:9000".parse()?);
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    #[must_use]
    pub const fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Returns the group's socket address in a domain.
    ///
    /// # Errors
    /// - [`DdsError::BadParameter`]: it is not a valid group for user data.
    /// - [`DdsError::Unsupported`]: it is an IPv6 address.
    pub(crate) fn address(self, domain_id: u32) -> Result<SocketAddrV4> {
        let port = self.port.or_else(|| ports::user_multicast_port(domain_id)).unwrap_or(0);
        let address = SocketAddrV4::new(addresses::ipv4("multicast group", self.address)?, port);
        if multicast::is_group(address) {
            return Ok(address);
        }
        Err(DdsError::BadParameter(format!(
            "invalid multicast group {address}: use an address from 224.0.1.0 to 239.255.255.255 and a port \
             other than 0"
        )))
    }
}

impl std::str::FromStr for MulticastGroup {
    type Err = DdsError;

    fn from_str(text: &str) -> Result<Self> {
        if text == "default" {
            return Ok(Self::default());
        }
        let group = addresses::split(text).map(|(address, port)| Self { address, port });
        let is_group = |group: &Self| match group.address {
            IpAddr::V4(_) => group.address(0).is_ok(),
            IpAddr::V6(address) => address.is_multicast() && group.port != Some(0),
        };
        group.filter(is_group).ok_or_else(|| {
            let text = format!("invalid multicast group {text:?}: use default, ADDRESS or ADDRESS:PORT");
            DdsError::BadParameter(text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_read_from_text() {
        let group = |text: &str| text.parse::<MulticastGroup>().unwrap().address(1).unwrap().to_string();
        assert_eq!(group("default"), "239.255.0.1:7651");
        assert_eq!(group("239.1.2.3"), "239.1.2.3:7651");
        assert_eq!(group("239.1.2.3:9000"), "239.1.2.3:9000");
        for text in ["", "10.0.0.1", "224.0.0.1", "239.1.2.3:0", "239.1.2.3:x", "239.1.2.3:70000"] {
            let error = text.parse::<MulticastGroup>().unwrap_err().to_string();
            assert!(error.contains("ADDRESS:PORT"), "{error}");
        }
        let refused = "[ff0e::7]:9000".parse::<MulticastGroup>().unwrap().address(1);
        assert!(matches!(refused, Err(DdsError::Unsupported(_))), "{refused:?}");
        assert!("::1".parse::<MulticastGroup>().is_err());
    }
}
