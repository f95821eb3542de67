//! The traffic counters of this network namespace.

use std::fs;

/// Counters of UDP and IP since the namespace exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traffic {
    /// Datagrams sent.
    pub(super) datagrams: u64,
    /// Bytes of IP packets sent.
    pub(super) bytes: u64,
    /// Datagrams that found a socket's buffer full.
    pub(super) overran: u64,
}

impl Traffic {
    /// Returns the counters; `None`: there are none.
    pub(super) fn now() -> Option<Self> {
        let (snmp, netstat) =
            (fs::read_to_string("/proc/net/snmp").ok()?, fs::read_to_string("/proc/net/netstat").ok()?);
        Some(Self {
            datagrams: value(&snmp, "Udp:", "OutDatagrams")?,
            bytes: value(&netstat, "IpExt:", "OutOctets")?,
            overran: value(&snmp, "Udp:", "RcvbufErrors")?,
        })
    }

    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self {
            datagrams: self.datagrams.saturating_sub(earlier.datagrams),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            overran: self.overran.saturating_sub(earlier.overran),
        }
    }
}

/// Returns a value of a table whose first line of a group has the names, and whose second the values.
fn value(table: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = table.lines().filter_map(|line| line.strip_prefix(group));
    let (names, values) = (lines.next()?, lines.next()?);
    let place = names.split_whitespace().position(|it| it == name)?;
    values.split_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_name() {
        let table = "Ip: A B\nIp: 1 2\nUdp: InDatagrams OutDatagrams\nUdp: 5 7\n";
        assert_eq!(value(table, "Udp:", "OutDatagrams"), Some(7));
        assert_eq!(value(table, "Udp:", "RcvbufErrors"), None);
        assert_eq!(value(table, "IpExt:", "OutOctets"), None);
    }
}
