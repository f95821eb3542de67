//! A virtual Ethernet cable between two network namespaces, with the kernel's own rate limit and
//! losses.

use std::fmt;
use std::str::FromStr;

use weir_netsim::values::{Share, format_rate, parse_bytes, parse_rate};

use super::PathError;
use super::link::INTERFACE;
use super::namespace::{LinkError, Namespace};

/// `veth[,mtu=N][,rate=N][,queue=N][,burst=N][,loss=N%][,gso=on|off]`. Its text names everything
/// that differs from a plain cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VethSpec {
    /// Largest IP packet, bytes.
    pub mtu: u32,
    /// Bits per second in each direction; `None` = as fast as the processor.
    pub rate_bps: Option<u64>,
    /// Bytes that wait before a link with a rate; `None` = a thousand packets, as on a usual card.
    /// The port of a switch has some hundred thousand bytes.
    pub queue_bytes: Option<u32>,
    /// Bytes that pass a rate-limited link at once after a pause (the depth of the token bucket);
    /// `None`: the rate times 4 ms. A wire has none. A smaller value makes latencies more
    /// realistic, but a virtual machine's timers may not keep up with the rate.
    pub burst_bytes: Option<u32>,
    /// Packets lost at random in each direction, hundredths of a percent.
    pub loss_e4: u32,
    /// Whether the sender's device takes many datagrams in one piece, which then arrive or are lost
    /// together.
    pub gso: bool,
}

impl VethSpec {
    /// A plain cable with the MTU of Ethernet, as fast as the processor.
    pub const PLAIN: Self =
        Self { mtu: 1500, rate_bps: None, queue_bytes: None, burst_bytes: None, loss_e4: 0, gso: true };

    /// Lays the cable between two namespaces.
    pub(super) fn lay(&self, ends: [&Namespace; 2]) -> Result<(), LinkError> {
        let mtu = self.mtu;
        ends[0].run(&format!(
            "ip link add {INTERFACE} mtu {mtu} type veth peer name {INTERFACE} mtu {mtu} netns {}",
            ends[1].id()
        ))?;
        Ok(())
    }

    /// Starts to lose packets at random in both directions, as specified.
    pub(super) fn start_losses(&self, ends: &[&Namespace]) -> Result<(), LinkError> {
        if self.loss_e4 == 0 {
            return Ok(());
        }
        for namespace in ends {
            for rule in loss_rules(self.loss_e4) {
                namespace.run(&format!("nft add rule netdev weir loss {rule}"))?;
            }
        }
        Ok(())
    }

    /// Ends the losses, and returns how many packets were lost.
    pub(super) fn end_losses(&self, ends: [&Namespace; 2]) -> Result<u64, LinkError> {
        if self.loss_e4 == 0 {
            return Ok(0);
        }
        let mut lost = 0;
        for namespace in ends {
            lost += counted(&namespace.run("nft list chain netdev weir loss")?);
            namespace.run("nft flush chain netdev weir loss")?;
        }
        Ok(lost)
    }

    /// Lays a cable from a namespace to a port of a switch.
    pub(super) fn lay_to_switch(
        &self,
        end: &Namespace,
        switch: &Namespace,
        port: &str,
    ) -> Result<(), LinkError> {
        let mtu = self.mtu;
        end.run(&format!(
            "ip link add {INTERFACE} mtu {mtu} type veth peer name {port} mtu {mtu} netns {}",
            switch.id()
        ))?;
        switch.run(&format!("ip link set {port} master {BRIDGE} up"))?;
        self.limit(switch, port)
    }

    /// Makes a switch in a namespace.
    pub(super) fn make_switch(switch: &Namespace) -> Result<(), LinkError> {
        // Without queries from a router, snooping would keep multicast from some ports.
        switch.run(&format!("ip link add {BRIDGE} type bridge mcast_snooping 0"))?;
        switch.run(&format!("ip link set {BRIDGE} up"))?;
        Ok(())
    }

    /// Sets rate, loss and offload of a namespace's interface.
    pub(super) fn shape(&self, namespace: &Namespace) -> Result<(), LinkError> {
        self.limit(namespace, INTERFACE)?;
        if self.loss_e4 > 0 {
            namespace.run("nft add table netdev weir")?;
            namespace.run(&format!(
                "nft add chain netdev weir loss {{ type filter hook ingress device {INTERFACE} priority 0; }}"
            ))?;
        }
        Ok(())
    }

    /// Sets rate and offload of a device.
    fn limit(&self, namespace: &Namespace, device: &str) -> Result<(), LinkError> {
        if let Some(rate_bps) = self.rate_bps {
            // By default, the burst is what the rate brings in 4 ms, a tick of a slow kernel, and
            // at least one full send; the queue is that of a typical card, a thousand packets.
            let burst = self.burst_bytes.map_or((rate_bps / 8 / 250).max(70_000), u64::from);
            let waiting = self.queue_bytes.map_or(1000 * u64::from(self.mtu) + burst, u64::from);
            namespace.run(&format!(
                "tc qdisc add dev {device} root tbf rate {rate_bps}bit burst {burst} limit {waiting}"
            ))?;
        }
        if !self.gso {
            namespace.run(&format!("ethtool -K {device} tx-udp-segmentation off"))?;
        }
        Ok(())
    }
}

impl FromStr for VethSpec {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let form = || PathError::Form(text.to_owned());
        let mut words = text.split(',');
        if words.next() != Some("veth") {
            return Err(form());
        }
        let mut spec = Self::PLAIN;
        let mut gso = None;
        for word in words {
            let (name, value) = word.split_once('=').ok_or_else(form)?;
            match name {
                "mtu" => spec.mtu = value.parse().map_err(|_| form())?,
                "rate" => spec.rate_bps = Some(parse_rate(value).ok_or_else(form)?),
                "queue" => spec.queue_bytes = Some(parse_bytes(value).ok_or_else(form)?),
                "burst" => spec.burst_bytes = Some(parse_bytes(value).ok_or_else(form)?),
                "loss" => {
                    let expected = "percent below 100, with at most two decimals, such as loss=0.25%";
                    let unreadable = || PathError::Value(word.to_owned(), expected);
                    spec.loss_e4 = parse_percent(value).ok_or_else(unreadable)?;
                }
                "gso" if value == "on" => gso = Some(true),
                "gso" if value == "off" => gso = Some(false),
                _ => return Err(form()),
            }
        }
        if !(576..=65_535).contains(&spec.mtu) {
            return Err(PathError::Range("the mtu of --link is 576 to 65535 bytes"));
        }
        if spec.rate_bps.is_some_and(|rate| !(1_000_000..=400_000_000_000).contains(&rate)) {
            return Err(PathError::Range("the rate of --link is 1M to 400G bits per second"));
        }
        if spec.queue_bytes.is_some() && spec.rate_bps.is_none() {
            return Err(PathError::Range("a queue of --link needs a rate: without one nothing waits"));
        }
        if spec.burst_bytes.is_some() && spec.rate_bps.is_none() {
            return Err(PathError::Range(
                "a burst of --link needs a rate: without one everything passes at once",
            ));
        }
        if spec.burst_bytes.is_some_and(|burst| burst < spec.mtu + FRAME_MORE_BYTES) {
            return Err(PathError::Range(
                "the burst of --link lets at least one packet pass: its mtu and 100 bytes",
            ));
        }
        if spec.queue_bytes.is_some_and(|queue| queue < QUEUE_MIN_BYTES) {
            return Err(PathError::Range("the queue of --link holds at least one send: 66000 bytes"));
        }
        if spec.loss_e4 >= 10_000 {
            return Err(PathError::Range("the loss of --link is less than 100%"));
        }
        if spec.loss_e4 > 0 && gso == Some(true) {
            return Err(PathError::Range(
                "with gso=on a --link would lose whole sends and not datagrams: leave gso=on or the loss out",
            ));
        }
        spec.gso = gso.unwrap_or(spec.loss_e4 == 0);
        Ok(spec)
    }
}

impl fmt::Display for VethSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "veth,mtu={}", self.mtu)?;
        if let Some(rate) = self.rate_bps {
            write!(f, ",rate={}", format_rate(rate))?;
        }
        if let Some(queue) = self.queue_bytes {
            write!(f, ",queue={queue}")?;
        }
        if let Some(burst) = self.burst_bytes {
            write!(f, ",burst={burst}")?;
        }
        if self.loss_e4 > 0 {
            write!(f, ",loss={}%", f64::from(self.loss_e4) / 100.0)?;
        }
        write!(f, ",gso={}", if self.gso { "on" } else { "off" })
    }
}

/// The switch of a lab.
const BRIDGE: &str = "switch0";

/// A frame is longer than its packet by its header; the kernel keeps the depth of the bucket as a time, and rounds it.
const FRAME_MORE_BYTES: u32 = 100;

/// A send of many datagrams in one piece is no longer.
const QUEUE_MIN_BYTES: u32 = 66_000;

/// Percent with at most two decimals, in hundredths.
fn parse_percent(text: &str) -> Option<u32> {
    Share::parse(text).map(Share::millionths).filter(|share| share % 100 == 0).map(|share| share / 100)
}

/// The rules that lose so many hundredths of a percent of the packets, IPv4 and IPv6, in their order.
///
/// Nothing is lost of what finds a neighbour's address: the sender of a lost ARP or of a lost neighbour discovery
/// (ICMPv6 133 to 137, RFC 4861) waits for a second. Only the rule that drops has a counter.
fn loss_rules(loss_e4: u32) -> [String; 2] {
    [
        "icmpv6 type 133-137 accept".to_owned(),
        format!("meta protocol {{ ip, ip6 }} numgen random mod 10000 < {loss_e4} counter drop"),
    ]
}

/// The number in `counter packets N bytes N` of a rule.
fn counted(chain: &str) -> u64 {
    let mut words = chain.split_whitespace().skip_while(|word| *word != "packets").skip(1);
    words.next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_and_named_with_all_that_it_has() {
        let check = |text: &str, expected: &str| {
            let spec: VethSpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), expected);
            assert_eq!(expected.parse(), Ok(spec));
        };
        check("veth", "veth,mtu=1500,gso=on");
        check("veth,mtu=9000,rate=1G", "veth,mtu=9000,rate=1G,gso=on");
        check("veth,rate=2500M,gso=off", "veth,mtu=1500,rate=2500M,gso=off");
        check("veth,rate=1G,queue=256k", "veth,mtu=1500,rate=1G,queue=262144,gso=on");
        check("veth,rate=1G,queue=256k,burst=2k", "veth,mtu=1500,rate=1G,queue=262144,burst=2048,gso=on");
        check("veth,loss=10%", "veth,mtu=1500,loss=10%,gso=off");
        check("veth,loss=0.25", "veth,mtu=1500,loss=0.25%,gso=off");
    }

    #[test]
    fn what_no_cable_can_be_is_refused_with_a_reason() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<VethSpec>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        for text in ["", "wifi", "veth,", "veth,mtu", "veth,mtu=x", "veth,gso=maybe", "veth,rate=1T"] {
            check(text, "is not a link: expected veth[,");
        }
        check("veth,mtu=100", "mtu of --link");
        check("veth,rate=1", "rate of --link");
        check("veth,queue=256k", "needs a rate");
        check("veth,rate=1G,queue=10k", "at least one send");
        check("veth,burst=9k", "needs a rate");
        check("veth,mtu=9000,rate=1G,burst=9000", "at least one packet");
        check("veth,loss=100%", "less than 100%");
        check(
            "veth,loss=0.001",
            "`loss=0.001` of --link: expected percent below 100, with at most two decimals",
        );
        check("veth,loss=200%", "`loss=200%` of --link: expected percent below 100");
        check("veth,loss=1%,gso=on", "lose whole sends");
    }

    #[test]
    fn packets_of_ipv4_and_ipv6_are_lost_and_no_search_for_a_neighbour() {
        let expected = [
            "icmpv6 type 133-137 accept",
            "meta protocol { ip, ip6 } numgen random mod 10000 < 25 counter drop",
        ];
        assert_eq!(loss_rules(25), expected);
    }

    #[test]
    fn packets_of_a_rule_are_read() {
        let chain = "table netdev weir {\n chain loss {\n icmpv6 type 133-137 accept\n \
                     meta protocol { ip, ip6 } numgen random mod 10000 < 1000 \
                     counter packets 4997 bytes 642 drop\n }\n}\n";
        assert_eq!(counted(chain), 4997);
        assert_eq!(counted("table netdev weir {\n chain loss {\n }\n}\n"), 0);
    }
}
