//! The kernel's counters of UDP over IPv4 and IPv6, for the network namespace of this process.
//!
//! The difference over a case shows where lost samples went. The kernel counts what it handles as
//! one: an offloaded send of many datagrams may count as one.

use crate::counters::counters;
use crate::names_and_values::names_and_values;

counters! {
    /// Counters of UDP since the system started.
    UdpCounters {
        /// Datagrams delivered to sockets.
        in_datagrams,
        /// Datagrams sent.
        out_datagrams,
        /// Datagrams not delivered for any other reason, full receive buffers included.
        in_errors,
        /// Datagrams to ports without a socket.
        no_ports,
        /// Datagrams dropped because a receive buffer was full.
        receive_buffer_errors,
        /// Datagrams refused because a send buffer was full.
        send_buffer_errors,
    }
}

impl UdpCounters {
    /// Parses `/proc/net/snmp` (IPv4: a line of names and a line of values, both starting with `Udp:`)
    /// and `/proc/net/snmp6` (a name and a value per line), and adds them up.
    ///
    /// Counters that an older kernel lacks are zero; `None` without those of IPv4.
    pub(crate) fn parse(snmp: &str, snmp6: &str) -> Option<Self> {
        let mut counters = Self::default();
        for (name, value) in names_and_values(snmp, "Udp:")? {
            counters.add(name, value.parse().ok()?);
        }
        for line in snmp6.lines().filter_map(|line| line.strip_prefix("Udp6")) {
            let (name, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            counters.add(name, value.trim().parse().unwrap_or(0));
        }
        Some(counters)
    }

    fn add(&mut self, name: &str, value: u64) {
        let counter = match name {
            "InDatagrams" => &mut self.in_datagrams,
            "NoPorts" => &mut self.no_ports,
            "InErrors" => &mut self.in_errors,
            "OutDatagrams" => &mut self.out_datagrams,
            "RcvbufErrors" => &mut self.receive_buffer_errors,
            "SndbufErrors" => &mut self.send_buffer_errors,
            _ => return,
        };
        *counter = counter.saturating_add(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counters as _;

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
        assert_eq!(UdpCounters::parse(SNMP, ""), Some(expected));
        assert_eq!(
            UdpCounters::parse("Udp: OutDatagrams InDatagrams\nUdp: 2 1\n", ""),
            Some(UdpCounters { in_datagrams: 1, out_datagrams: 2, ..UdpCounters::default() })
        );
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "Udp: InDatagrams\n", "Udp: InDatagrams\nUdp: many\n", "Tcp: A\nTcp: 1\n"] {
            assert_eq!(UdpCounters::parse(text, ""), None, "{text:?}");
        }
    }

    #[test]
    fn counters_of_ipv6_have_a_line_each() {
        let text =
            "Ip6InReceives 5\nUdp6InDatagrams            9\nUdp6RcvbufErrors 3\nUdpLite6InDatagrams 7\n";
        let v4 = UdpCounters::parse(SNMP, "").unwrap();
        let expected = UdpCounters { in_datagrams: 47 + 9, receive_buffer_errors: 7 + 3, ..v4 };
        assert_eq!(UdpCounters::parse(SNMP, text), Some(expected));
        assert_eq!(UdpCounters::parse(SNMP, "Ip6InReceives 5\n"), Some(v4));
        assert_eq!(UdpCounters::parse("", text), None);
    }

    #[test]
    fn a_counter_that_went_back_counts_as_nothing() {
        let earlier = UdpCounters { in_datagrams: 10, in_errors: 5, ..UdpCounters::default() };
        let later = UdpCounters { in_datagrams: 12, in_errors: 4, ..UdpCounters::default() };
        assert_eq!(later.since(&earlier), UdpCounters { in_datagrams: 2, ..UdpCounters::default() });
    }

    #[test]
    fn this_host_has_counters() {
        let read = || {
            let [snmp, snmp6] = ["snmp", "snmp6"].map(|name| format!("/proc/thread-self/net/{name}"));
            let snmp6 = std::fs::read_to_string(snmp6).unwrap_or_default();
            UdpCounters::parse(&std::fs::read_to_string(snmp).unwrap(), &snmp6).unwrap()
        };
        let (earlier, later) = (read(), read());
        assert!(later.in_datagrams >= earlier.in_datagrams);
    }
}
