//! The network path between the ends of a case: loopback, or a virtual link made for the run.
//!
//! Loopback favours sending many datagrams per call: they are never segmented, the MTU is 64 KiB,
//! and nothing is lost. A virtual link between two network namespaces is closer to a wire: it has
//! Ethernet's MTU, it can have a rate, and it can lose single packets. There are two kinds:
//!
//! - veth: the kernel's virtual cable, as fast as the processor, or with the kernel's rate limit;
//! - tun: an emulator in this process, with the link model of weir-netsim: delay, jitter, losses in
//!   bursts, a queue, each direction by itself, and counts of all of it.

mod departures;
mod emulator;
pub mod lab;
mod link;
mod namespace;
mod veth;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;
use weir_netsim::pair::PairError;
use weir_netsim::preset::{PRESETS, preset};
use weir_netsim::{Direction, LinkPair};

pub use link::{LinkOutcome, Place, VirtualLink};
pub use namespace::{LinkError, enter_namespace};
pub use veth::VethSpec;

use crate::link_capacity::{self, Link};

/// The value of `--link`. Its text names everything that differs from a plain link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathSpec {
    /// A virtual cable: `veth[,OPTION...]`.
    Veth(VethSpec),
    /// An emulated link: `tun[,OPTION...]` or `PRESET[,OPTION...]`.
    Tun(Box<LinkPair>),
}

/// A path that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathError {
    /// No kind of link.
    #[error(
        "`{0}` is not a link: expected veth[,OPTION...], tun[,OPTION...] or a preset: {presets}",
        presets = names()
    )]
    Unknown(String),
    /// Not a cable.
    #[error(
        "`{0}` is not a link: expected veth[,mtu=9000][,rate=1G][,queue=256k][,burst=9100][,loss=10%][,gso=off]"
    )]
    Form(String),
    /// A value that cannot be read, and what is expected.
    #[error("`{0}` of --link: expected {1}")]
    Value(String, &'static str),
    /// A value out of range.
    #[error("{0}")]
    Range(&'static str),
    /// No emulated link.
    #[error(transparent)]
    Emulated(#[from] PairError),
}

impl PathSpec {
    /// Largest IP packet, bytes.
    #[must_use]
    pub fn mtu(&self) -> u32 {
        match self {
            Self::Veth(spec) => spec.mtu,
            Self::Tun(pair) => pair.mtu,
        }
    }

    /// Bits per second to the subscribers, at the start; `None`: as fast as the processor.
    #[must_use]
    pub fn rate_bps(&self) -> Option<u64> {
        match self {
            Self::Veth(spec) => spec.rate_bps,
            Self::Tun(pair) => pair.down.first_rate_bps(),
        }
    }

    /// The round trip without queues; 0 for a cable.
    #[must_use]
    pub fn round_trip(&self) -> Duration {
        match self {
            Self::Veth(_) => Duration::ZERO,
            // Jitter delays by half of it on average.
            Self::Tun(pair) => [&pair.down, &pair.up].map(|way| way.delay + way.jitter / 2).iter().sum(),
        }
    }

    /// How long to wait for an echo: two round trips, and full queues in both directions at the lowest rates. At most
    /// 10 s, since coordinators wait only so long for a case.
    #[must_use]
    pub fn echo_wait(&self) -> Duration {
        const LONGEST: Duration = Duration::from_secs(10);
        let queue = |bytes: u64, rate_bps: Option<u64>| {
            rate_bps
                .map_or(Duration::ZERO, |bps| Duration::from_secs_f64(bytes as f64 * 8.0 / bps.max(1) as f64))
        };
        let longest = match self {
            Self::Veth(spec) => {
                let bytes = spec.queue_bytes.map_or(1_000 * u64::from(spec.mtu), u64::from);
                2 * queue(bytes, spec.rate_bps)
            }
            Self::Tun(pair) => {
                let of = |way: &Direction| {
                    let rate_bps = way.rate.iter().map(|(_, bps)| *bps).min();
                    let held_back = if way.reorder.is_none() { Duration::ZERO } else { way.reorder_delay };
                    let travel = way.delay.saturating_add(way.jitter).saturating_add(held_back);
                    travel.saturating_mul(2).saturating_add(queue(way.queue_bytes.into(), rate_bps))
                };
                of(&pair.down).saturating_add(of(&pair.up))
            }
        };
        longest.min(LONGEST)
    }

    /// What the link carries to the subscribers, at the start and without losses; `None`: as fast as the processor.
    #[must_use]
    pub fn capacity(&self) -> Option<Link> {
        let framing = match self {
            Self::Veth(_) => link_capacity::ETHERNET,
            Self::Tun(_) => 0,
        };
        Some(Link { rate_bps: self.rate_bps()?, mtu: self.mtu(), framing })
    }

    /// The preset that the link is, whatever its seed, such as `lte` or `lte,reverse=on`.
    #[must_use]
    pub fn preset(&self) -> Option<String> {
        let Self::Tun(pair) = self else { return None };
        let options = ["", ",reverse=on"];
        let texts =
            options.iter().flat_map(|options| PRESETS.map(|preset| format!("{}{options}", preset.name)));
        texts.into_iter().find(|text| {
            let preset: Result<LinkPair, _> = text.parse();
            preset.is_ok_and(|preset| LinkPair { seed: pair.seed, ..preset } == **pair)
        })
    }

    /// The kind of network device.
    #[must_use]
    pub fn driver(&self) -> &'static str {
        match self {
            Self::Veth(_) => "veth",
            Self::Tun(_) => "tun",
        }
    }

    /// Why figures of this link should be read with care.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        let Self::Tun(pair) = self else { return None };
        let rates = [&pair.down, &pair.up].into_iter().flat_map(|direction| &direction.rate);
        let fastest = rates.map(|(_, bps)| *bps).max()?;
        let packets_per_s = fastest / (8 * u64::from(pair.mtu));
        (fastest > EMULATED_BPS || packets_per_s > EMULATED_PACKETS_PER_S).then(|| {
            format!(
                "--link {self}: the emulator may not keep up with {} packets of {} bytes per second; compare with \
                 --link veth,mtu={},rate={fastest}",
                packets_per_s, pair.mtu, pair.mtu
            )
        })
    }
}

impl FromStr for PathSpec {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let (kind, options) = text.split_once(',').map_or((text, None), |(kind, rest)| (kind, Some(rest)));
        match kind {
            "veth" => Ok(Self::Veth(text.parse()?)),
            "tun" => Ok(Self::Tun(Box::new(options.map_or(Ok(LinkPair::new()), str::parse)?))),
            _ if preset(kind).is_some() => Ok(Self::Tun(Box::new(text.parse()?))),
            _ => Err(PathError::Unknown(kind.to_owned())),
        }
    }
}

impl fmt::Display for PathSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Veth(spec) => spec.fmt(f),
            Self::Tun(pair) => write!(f, "tun,{pair}"),
        }
    }
}

fn names() -> String {
    PRESETS.map(|preset| preset.name).join(", ")
}

/// What the emulator was seen to carry on one core of a virtual machine (docs/reference/links.md).
const EMULATED_PACKETS_PER_S: u64 = 100_000;
const EMULATED_BPS: u64 = 2_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulated_link_is_read_and_named_with_all_that_it_has() {
        let check = |text: &str, expected: &str| {
            let spec: PathSpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), expected);
            assert_eq!(expected.parse(), Ok(spec));
        };
        check("tun", "tun,mtu=1500,seed=1");
        check("veth", "veth,mtu=1500,gso=on");
        check(
            "tun,rate=20M,rtt=60ms,jitter=10ms,loss=0.5%,queue=1M,up-rate=5M,seed=2",
            "tun,mtu=1500,down-rate=20M,delay=30ms,jitter=10ms,queue=1048576,loss=0.5%,up-rate=5M,seed=2",
        );
        check("tun,wan", "tun,mtu=1500,rate=200M,delay=40ms,queue=2097152,loss=0.1%,seed=1");
        check(
            "lte,loss=1%",
            "tun,mtu=1500,down-rate=20M,delay=30ms,jitter=10ms,queue=1048576,loss=1%,up-rate=5M,seed=1",
        );
    }

    #[test]
    fn every_preset_is_a_link() {
        for preset in PRESETS {
            assert!(matches!(preset.name.parse(), Ok(PathSpec::Tun(_))), "{}", preset.name);
        }
    }

    #[test]
    fn a_preset_is_known_by_its_options() {
        let check = |text: &str, expected: Option<&str>| {
            let written = text.parse::<PathSpec>().unwrap().to_string();
            assert_eq!(written.parse::<PathSpec>().unwrap().preset().as_deref(), expected, "{text}");
        };
        check("lte", Some("lte"));
        check("lte,reverse=on", Some("lte,reverse=on"));
        check("wifi,reverse=on,seed=7", Some("wifi"));
        check("lte,loss=1%", None);
        check("veth", None);
    }

    #[test]
    fn the_capacity_counts_what_the_rate_does() {
        let capacity = |text: &str| text.parse::<PathSpec>().unwrap().capacity();
        assert_eq!(capacity("lte"), Some(Link { rate_bps: 20_000_000, mtu: 1500, framing: 0 }));
        assert_eq!(capacity("veth,rate=1G"), Some(Link { rate_bps: 1_000_000_000, mtu: 1500, framing: 14 }));
        assert_eq!(capacity("veth"), None);
    }

    #[test]
    fn what_no_link_can_be_is_refused_with_what_to_write() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<PathSpec>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check(
            "dsl",
            "`dsl` is not a link: expected veth[,OPTION...], tun[,OPTION...] or a preset: lan10g, lan1g",
        );
        check("", "`` is not a link");
        check("rate=1M", "is not a link");
        check("tun,", "expected OPTION=VALUE");
        check("tun,gso=off", "expected one of mtu, seed");
        check("tun,dsl", "`dsl` is no link");
        check("wifi,loss=many", "expected percent");
        check("veth,rtt=1ms", "expected veth[,mtu");
    }

    #[test]
    fn a_link_that_the_emulator_may_not_reach_is_doubted() {
        let doubt = |text: &str| text.parse::<PathSpec>().unwrap().doubt();
        assert!(doubt("lan10g").unwrap().contains("--link veth,mtu=9000,rate=10000000000"));
        for plain in ["veth,rate=10G", "tun", "lan1g", "wan"] {
            assert_eq!(doubt(plain), None, "{plain}");
        }
    }
}
