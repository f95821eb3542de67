//! What the network namespace of this thread has sent.

use std::fs;

use crate::names_and_values::names_and_values;
use crate::udp_counters::UdpCounters;

/// Counters of UDP and IP since the network namespace exists, of all its programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Datagrams sent.
    pub datagrams: u64,
    /// Bytes of IPv4 packets sent.
    pub bytes: u64,
    /// Datagrams dropped because a receive buffer was full.
    pub receive_buffer_errors: u64,
}

impl Traffic {
    /// Returns the counters; `None` if the kernel does not show them.
    #[must_use]
    pub fn now() -> Option<Self> {
        let text = |name| fs::read_to_string(format!("/proc/thread-self/net/{name}")).ok();
        // Absent in a kernel without IPv6.
        let snmp6 = text("snmp6").unwrap_or_default();
        Self::parse(&text("snmp")?, &snmp6, &text("netstat")?)
    }

    /// Returns what happened since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            datagrams: self.datagrams.saturating_sub(earlier.datagrams),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            receive_buffer_errors: self.receive_buffer_errors.saturating_sub(earlier.receive_buffer_errors),
        }
    }

    fn parse(snmp: &str, snmp6: &str, netstat: &str) -> Option<Self> {
        let udp = UdpCounters::parse(snmp, snmp6)?;
        let (_, bytes) = names_and_values(netstat, "IpExt:")?.find(|(name, _)| *name == "OutOctets")?;
        Some(Self {
            datagrams: udp.out_datagrams,
            bytes: bytes.parse().ok()?,
            receive_buffer_errors: udp.receive_buffer_errors,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_udp_and_ip_are_put_together() {
        let snmp = "Ip: OutRequests\nIp: 4\nUdp: OutDatagrams RcvbufErrors\nUdp: 7 2\n";
        let netstat = "TcpExt: OutOctets\nTcpExt: 1\nIpExt: InOctets OutOctets\nIpExt: 30 90\n";
        let traffic = Traffic::parse(snmp, "Udp6OutDatagrams 3\n", netstat).unwrap();
        assert_eq!(traffic, Traffic { datagrams: 10, bytes: 90, receive_buffer_errors: 2 });
        assert_eq!(Traffic::parse(snmp, "", "TcpExt: A\nTcpExt: 1\n"), None);
        assert_eq!(Traffic::parse("", "", netstat), None);
    }

    #[test]
    fn what_this_thread_sends_is_counted() {
        let before = Traffic::now().unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(&[0; 1000], socket.local_addr().unwrap()).unwrap();
        let sent = Traffic::now().unwrap().since(&before);
        assert!(sent.datagrams >= 1 && sent.bytes >= 1028, "{sent:?}");
    }
}
