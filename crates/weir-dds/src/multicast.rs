//! Multicast groups as the application names them.

use std::net::{Ipv4Addr, SocketAddrV4};

use weir_rtps::{multicast, ports};

use crate::error::{DdsError, Result};

/// A multicast group for user data: readers that listen to the same one get each sample by the same datagram.
///
/// Written `ADDRESS`, `ADDRESS:PORT` or `default`.
///
/// ```
/// use weir_dds::{DataReaderQos, MulticastGroup};
///
/// let everybodys = DataReaderQos::default().multicast(MulticastGroup::default());
/// let our_own = DataReaderQos::default().multicast("239.255.7.1:9000".parse()?);
/// # let _ = (everybodys, our_own);
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MulticastGroup {
    /// The address, within 224.0.1.0 to 239.255.255.255.
    pub address: Ipv4Addr,
    /// The UDP port; `None`: the domain's port for user data by multicast (DDSI-RTPS 2.5 §9.6.2.2).
    pub port: Option<u16>,
}

impl Default for MulticastGroup {
    /// 239.255.0.1 with the port of the domain, as other engines have it (DDSI-RTPS 2.5 §9.6.2.4.1).
    fn default() -> Self {
        Self { address: ports::DISCOVERY_GROUP, port: None }
    }
}

impl MulticastGroup {
    /// The group's address in a domain.
    ///
    /// # Errors
    /// [`DdsError::BadParameter`] when it is none that user data may be sent to.
    pub(crate) fn address(self, domain_id: u32) -> Result<SocketAddrV4> {
        let port = self.port.or_else(|| ports::user_multicast_port(domain_id)).unwrap_or(0);
        let address = SocketAddrV4::new(self.address, port);
        if multicast::is_group(address) {
            return Ok(address);
        }
        Err(DdsError::BadParameter(format!(
            "{address} is no multicast group for user data: its address lies within 224.0.1.0 and 239.255.255.255, \
             its port is not 0"
        )))
    }
}

impl std::str::FromStr for MulticastGroup {
    type Err = DdsError;

    fn from_str(text: &str) -> Result<Self> {
        if text == "default" {
            return Ok(Self::default());
        }
        let (address, port) = match text.split_once(':') {
            Some((address, port)) => (address, port.parse().map(Some)),
            None => (text, Ok(None)),
        };
        let group = address.parse().ok().zip(port.ok()).map(|(address, port)| Self { address, port });
        group.filter(|group| group.address(0).is_ok()).ok_or_else(|| {
            let text = format!("{text:?} is no multicast group: write default, ADDRESS or ADDRESS:PORT");
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
    }
}
