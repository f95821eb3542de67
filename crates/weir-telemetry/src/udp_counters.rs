//! The kernel's counters of UDP over IPv4, for the network namespace of this process.
//!
//! The difference over a case shows where lost samples went. The kernel counts what it handles as
//! one: an offloaded send of many datagrams may count as one.

use std::fs;
use std::io;

use thiserror::Error;

/// Of the thread's own network namespace, which may differ from the process's.
const PATH: &str = "/proc/thread-self/net/snmp";

/// Counters of UDP since the system started; IPv4 unless stated otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UdpCounters {
    /// Datagrams delivered to sockets.
    pub in_datagrams: u64,
    /// Datagrams to ports without a socket.
    pub no_ports: u64,
    /// Datagrams not delivered for any other reason, full receive buffers included.
    pub in_errors: u64,
    /// Datagrams sent.
    pub out_datagrams: u64,
    /// Datagrams dropped because a receive buffer was full.
    pub receive_buffer_errors: u64,
    /// Datagrams refused because a send buffer was full.
    pub send_buffer_errors: u64,
}

/// Counters that cannot be read.
#[derive(Debug, Error)]
pub enum UdpCountersError {
    /// The file cannot be read.
    #[error("can't read {PATH}: {0}")]
    Read(#[from] io::Error),
    /// The file has no such lines.
    #[error("{PATH} has no UDP counters in a known format")]
    Format,
}

impl UdpCounters {
    /// Reads the counters.
    ///
    /// # Errors
    /// If /proc is not mounted or not readable, or has another format.
    pub fn read() -> Result<Self, UdpCountersError> {
        Self::parse(&fs::read_to_string(PATH)?).ok_or(UdpCountersError::Format)
    }

    /// Parses `/proc/net/snmp`: a line of names and a line of values, both starting with `Udp:`.
    /// Counters that an older kernel lacks are zero; `None` without such lines.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp:"));
        let (names, values) = (lines.next()?, lines.next()?);
        let mut counters = Self::default();
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            let value = value.parse().ok()?;
            match name {
                "InDatagrams" => counters.in_datagrams = value,
                "NoPorts" => counters.no_ports = value,
                "InErrors" => counters.in_errors = value,
                "OutDatagrams" => counters.out_datagrams = value,
                "RcvbufErrors" => counters.receive_buffer_errors = value,
                "SndbufErrors" => counters.send_buffer_errors = value,
                _ => {}
            }
        }
        Some(counters)
    }

    /// Parses the UDP counters of `/proc/net/snmp6`, a name and a value per line; `None` without
    /// such lines.
    #[must_use]
    pub fn parse_v6(text: &str) -> Option<Self> {
        let value = |name: &str| -> Option<u64> {
            let mut lines = text.lines().map(str::split_whitespace);
            lines.find_map(|mut words| (words.next()? == name).then(|| words.next()?.parse().ok())?)
        };
        Some(Self {
            in_datagrams: value("Udp6InDatagrams")?,
            no_ports: value("Udp6NoPorts").unwrap_or(0),
            in_errors: value("Udp6InErrors").unwrap_or(0),
            out_datagrams: value("Udp6OutDatagrams").unwrap_or(0),
            receive_buffer_errors: value("Udp6RcvbufErrors").unwrap_or(0),
            send_buffer_errors: value("Udp6SndbufErrors").unwrap_or(0),
        })
    }

    /// Returns the sum of both, e.g. of IPv4 and IPv6.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            in_datagrams: self.in_datagrams.saturating_add(other.in_datagrams),
            no_ports: self.no_ports.saturating_add(other.no_ports),
            in_errors: self.in_errors.saturating_add(other.in_errors),
            out_datagrams: self.out_datagrams.saturating_add(other.out_datagrams),
            receive_buffer_errors: self.receive_buffer_errors.saturating_add(other.receive_buffer_errors),
            send_buffer_errors: self.send_buffer_errors.saturating_add(other.send_buffer_errors),
        }
    }

    /// Returns the difference to `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            in_datagrams: self.in_datagrams.saturating_sub(earlier.in_datagrams),
            no_ports: self.no_ports.saturating_sub(earlier.no_ports),
            in_errors: self.in_errors.saturating_sub(earlier.in_errors),
            out_datagrams: self.out_datagrams.saturating_sub(earlier.out_datagrams),
            receive_buffer_errors: self.receive_buffer_errors.saturating_sub(earlier.receive_buffer_errors),
            send_buffer_errors: self.send_buffer_errors.saturating_sub(earlier.send_buffer_errors),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str = "\
Ip: Forwarding DefaultTTL InReceives
Ip: 2 64 1000
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors
Udp: 47 1 9 10862 7 2 0 0 0
UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors
UdpLite: 1 2 3 4 5 6 7 8 9
";

    #[test]
    fn names_decide_which_value_is_which() {
        let expected = UdpCounters {
            in_datagrams: 47,
            no_ports: 1,
            in_errors: 9,
            out_datagrams: 10862,
            receive_buffer_errors: 7,
            send_buffer_errors: 2,
        };
        assert_eq!(UdpCounters::parse(SNMP), Some(expected));
        assert_eq!(
            UdpCounters::parse("Udp: OutDatagrams InDatagrams\nUdp: 2 1\n"),
            Some(UdpCounters { in_datagrams: 1, out_datagrams: 2, ..UdpCounters::default() })
        );
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "Udp: InDatagrams\n", "Udp: InDatagrams\nUdp: many\n", "Tcp: A\nTcp: 1\n"] {
            assert_eq!(UdpCounters::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn counters_of_ipv6_have_a_line_each() {
        let text =
            "Ip6InReceives 5\nUdp6InDatagrams            9\nUdp6RcvbufErrors 3\nUdpLite6InDatagrams 7\n";
        let expected = UdpCounters { in_datagrams: 9, receive_buffer_errors: 3, ..UdpCounters::default() };
        assert_eq!(UdpCounters::parse_v6(text), Some(expected));
        assert_eq!(UdpCounters::parse_v6("Ip6InReceives 5\n"), None);
        assert_eq!(expected.plus(&expected).in_datagrams, 18);
    }

    #[test]
    fn a_counter_that_went_back_counts_as_nothing() {
        let earlier = UdpCounters { in_datagrams: 10, in_errors: 5, ..UdpCounters::default() };
        let later = UdpCounters { in_datagrams: 12, in_errors: 4, ..UdpCounters::default() };
        assert_eq!(later.since(&earlier), UdpCounters { in_datagrams: 2, ..UdpCounters::default() });
    }

    #[test]
    fn this_host_has_counters() {
        let earlier = UdpCounters::read().unwrap();
        let later = UdpCounters::read().unwrap();
        assert!(later.in_datagrams >= earlier.in_datagrams);
    }
}
