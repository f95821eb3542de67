//! Both directions between two hosts, as text: `rate=20M,rtt=60ms,loss=0.5%` or `lte,loss=1%`.
//!
//! The text is that of weir-bench's `--link tun,...`, so that a test in virtual time and a
//! measurement in real time have the same link.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use crate::ecn::Marking;
use crate::link::Link;
use crate::loss::Loss;
use crate::preset::{PRESETS, preset};
use crate::values::{Share, format_rate, format_time, parse_bytes, parse_rate, parse_time};

/// The two directions between two hosts. In weir-bench, `down` leads from the publishers to the
/// subscribers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkPair {
    /// Largest IP packet, bytes.
    pub mtu: u32,
    /// Seed of losses, jitter, duplicates and reordering.
    pub seed: u64,
    /// The first direction.
    pub down: Direction,
    /// The other one.
    pub up: Direction,
}

/// One direction of a [`LinkPair`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Direction {
    /// Bits per second from a time on; empty: unlimited. The first step starts at zero.
    pub rate: Vec<(Duration, u64)>,
    /// Propagation delay.
    pub delay: Duration,
    /// Largest additional delay of a packet; uniformly distributed, without reordering.
    pub jitter: Duration,
    /// Bytes that wait before a link with a rate.
    pub queue_bytes: u32,
    /// Share of packets lost at random.
    pub loss: Share,
    /// Share of packets lost in bursts.
    pub burst_loss: Share,
    /// Mean length of a burst, packets.
    pub burst_length: u32,
    /// Share of packets that arrive twice.
    pub duplicate: Share,
    /// Share of packets that are held back.
    pub reorder: Share,
    /// For how long.
    pub reorder_delay: Duration,
    /// What happens to the ECN field.
    pub ecn: Marking,
}

/// Why a text is no pair of links: what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairError(String);

impl LinkPair {
    /// Two directions without rate, delay and faults, with the MTU of Ethernet.
    pub fn new() -> Self {
        Self { mtu: 1500, seed: 1, down: Direction::new(), up: Direction::new() }
    }

    /// Returns the links of both directions: down, up.
    pub fn links(&self) -> [Link; 2] {
        [&self.down, &self.up].map(|direction| direction.link(self.mtu))
    }

    /// Sets one option.
    fn set(&mut self, word: &str) -> Result<(), PairError> {
        let bad = |expected: &str| PairError(format!("`{word}` of --link: expected {expected}"));
        let (name, value) = word.split_once('=').ok_or_else(|| bad("OPTION=VALUE"))?;
        let mut both = [&mut self.down, &mut self.up];
        match name {
            "mtu" => self.mtu = value.parse().map_err(|_| bad("bytes, such as mtu=1500"))?,
            "seed" => self.seed = value.parse().map_err(|_| bad("a whole number, such as seed=1"))?,
            "rtt" => {
                let rtt = parse_time(value).ok_or_else(|| bad("a time, such as rtt=60ms"))?;
                both.into_iter().for_each(|direction| direction.delay = rtt / 2);
            }
            "reverse" if value == "on" => core::mem::swap(&mut self.down, &mut self.up),
            "reverse" if value == "off" => {}
            "reverse" => return Err(bad("reverse=on or reverse=off")),
            _ => {
                let (which, name) = match (name.strip_prefix("down-"), name.strip_prefix("up-")) {
                    (Some(name), _) => (0..1, name),
                    (_, Some(name)) => (1..2, name),
                    (None, None) => (0..2, name),
                };
                both[which].iter_mut().try_for_each(|direction| direction.set(name, value)).map_err(bad)?;
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), PairError> {
        let refuse = |text: &str| Err(PairError(text.to_owned()));
        if !(576..=65_535).contains(&self.mtu) {
            return refuse("the mtu of --link is 576 to 65535 bytes");
        }
        for direction in [&self.down, &self.up] {
            if direction.rate.iter().any(|(_, bps)| !(1_000..=400_000_000_000).contains(bps)) {
                return refuse("the rate of --link is 1k to 400G bits per second");
            }
            if direction.queue_bytes < self.mtu {
                return refuse("the queue of --link holds at least one packet: its mtu");
            }
            if direction.loss.max(direction.burst_loss) >= Share::ALL {
                return refuse("the loss of --link is less than 100%");
            }
        }
        Ok(())
    }
}

impl Direction {
    /// A direction without rate, delay and faults.
    pub fn new() -> Self {
        Self {
            rate: Vec::new(),
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            queue_bytes: DEFAULT_QUEUE_BYTES,
            loss: Share::default(),
            burst_loss: Share::default(),
            burst_length: DEFAULT_BURST_LENGTH,
            duplicate: Share::default(),
            reorder: Share::default(),
            reorder_delay: DEFAULT_REORDER_DELAY,
            ecn: Marking::Off,
        }
    }

    /// Returns the rate at the start, bits per second; `None`: unlimited.
    pub fn first_rate_bps(&self) -> Option<u64> {
        self.rate.first().map(|(_, bps)| *bps)
    }

    /// Returns the link of this direction.
    pub fn link(&self, mtu: u32) -> Link {
        let mut link = Link::new().delay(self.delay).jitter(self.jitter).mtu_bytes(mtu as usize);
        if let Some((&(_, first), steps)) = self.rate.split_first() {
            link = link.rate_bps(first).queue_bytes(self.queue_bytes as usize);
            link = steps.iter().fold(link, |link, (at, bps)| link.rate_step(*at, *bps));
        }
        if !self.loss.is_none() {
            link = link.loss(Loss::random(self.loss.probability()));
        }
        if !self.burst_loss.is_none() {
            link = link.loss(Loss::bursts(self.burst_loss.probability(), f64::from(self.burst_length)));
        }
        link = link.marking(self.ecn);
        link.duplicate(self.duplicate.probability()).reorder(self.reorder.probability(), self.reorder_delay)
    }

    /// Sets one option; the error is what was expected.
    fn set(&mut self, name: &str, value: &str) -> Result<(), &'static str> {
        let share = |expected| Share::parse(value).ok_or(expected);
        let time = |expected| parse_time(value).ok_or(expected);
        match name {
            "rate" => {
                self.rate =
                    parse_steps(value).ok_or("bits per second, such as rate=20M or rate=50M:5M@10s")?;
            }
            "delay" => self.delay = time("a time, such as delay=30ms")?,
            "jitter" => self.jitter = time("a time, such as jitter=10ms")?,
            "queue" => self.queue_bytes = parse_bytes(value).ok_or("bytes, such as queue=256k")?,
            "loss" => self.loss = share("percent, such as loss=0.5%")?,
            "burst-loss" => self.burst_loss = share("percent, such as burst-loss=2%")?,
            "burst-length" => {
                let length = value.parse().ok().filter(|length| *length > 0);
                self.burst_length = length.ok_or("a number of packets, such as burst-length=8")?;
            }
            "duplicate" => self.duplicate = share("percent, such as duplicate=1%")?,
            "reorder" => self.reorder = share("percent, such as reorder=1%")?,
            "ecn" => {
                self.ecn = Marking::parse(value)
                    .ok_or("a time or bytes in the queue, off, bleach or all, such as ecn=5ms")?;
            }
            "reorder-delay" => self.reorder_delay = time("a time, such as reorder-delay=1ms")?,
            _ => return Err(OPTIONS),
        }
        Ok(())
    }

    /// The options that differ from those of a direction without any.
    fn options(&self) -> Vec<(&'static str, String)> {
        let plain = Self::new();
        let mut options = Vec::new();
        let mut add = |is_set: bool, name, value: String| options.extend(is_set.then_some((name, value)));
        add(!self.rate.is_empty(), "rate", format_steps(&self.rate));
        add(self.delay != plain.delay, "delay", format_time(self.delay));
        add(self.jitter != plain.jitter, "jitter", format_time(self.jitter));
        add(!self.rate.is_empty(), "queue", self.queue_bytes.to_string());
        add(!self.loss.is_none(), "loss", self.loss.to_string());
        add(!self.burst_loss.is_none(), "burst-loss", self.burst_loss.to_string());
        add(self.burst_length != plain.burst_length, "burst-length", self.burst_length.to_string());
        add(!self.duplicate.is_none(), "duplicate", self.duplicate.to_string());
        add(!self.reorder.is_none(), "reorder", self.reorder.to_string());
        add(self.reorder_delay != plain.reorder_delay, "reorder-delay", format_time(self.reorder_delay));
        add(self.ecn != plain.ecn, "ecn", self.ecn.to_string());
        options
    }
}

impl FromStr for LinkPair {
    type Err = PairError;

    /// Reads a preset, options, or a preset and options that replace its own.
    fn from_str(text: &str) -> Result<Self, PairError> {
        let mut pair = Self::new();
        let (first, rest) = text.split_once(',').map_or((text, None), |(first, rest)| (first, Some(rest)));
        let parts = match preset(first) {
            Some(options) => [Some(options), rest],
            None if !first.is_empty() && !first.contains('=') => {
                let names = PRESETS.map(|preset| preset.name).join(", ");
                return Err(PairError(format!(
                    "`{first}` is no link: expected OPTION=VALUE, or one of {names}"
                )));
            }
            None => [Some(text), None],
        };
        for word in parts.into_iter().flatten().flat_map(|options| options.split(',')) {
            pair.set(word)?;
        }
        pair.check()?;
        Ok(pair)
    }
}

impl fmt::Display for LinkPair {
    /// Writes everything that differs from a pair without any options, and the MTU.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mtu={}", self.mtu)?;
        let (down, up) = (self.down.options(), self.up.options());
        for (name, value) in &down {
            let prefix = if up.iter().any(|it| it.0 == *name && it.1 == *value) { "" } else { "down-" };
            write!(f, ",{prefix}{name}={value}")?;
        }
        for (name, value) in up.iter().filter(|option| !down.contains(option)) {
            write!(f, ",up-{name}={value}")?;
        }
        write!(f, ",seed={}", self.seed)
    }
}

impl Default for LinkPair {
    fn default() -> Self {
        Self::new()
    }
}

impl Default for Direction {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for PairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for PairError {}

/// Reads a rate with steps: `50M:5M@10s:50M@20s`.
fn parse_steps(text: &str) -> Option<Vec<(Duration, u64)>> {
    let (first, steps) = text.split_once(':').unwrap_or((text, ""));
    let mut rate = vec![(Duration::ZERO, parse_rate(first)?)];
    for step in steps.split(':').filter(|_| !steps.is_empty()) {
        let (bps, at) = step.split_once('@')?;
        let at = parse_time(at).filter(|at| rate.last().is_some_and(|(last, _)| at > last))?;
        rate.push((at, parse_rate(bps)?));
    }
    (rate.len() <= STEPS_MAX).then_some(rate)
}

fn format_steps(rate: &[(Duration, u64)]) -> String {
    let step = |(at, bps): &(Duration, u64)| match *at {
        Duration::ZERO => format_rate(*bps),
        at => format!("{}@{}", format_rate(*bps), format_time(at)),
    };
    rate.iter().map(step).collect::<Vec<_>>().join(":")
}

/// About 170 full packets.
const DEFAULT_QUEUE_BYTES: u32 = 256 * 1024;

const DEFAULT_BURST_LENGTH: u32 = 8;

const DEFAULT_REORDER_DELAY: Duration = Duration::from_millis(1);

/// Enough for a staircase.
const STEPS_MAX: usize = 1000;

const OPTIONS: &str = "one of mtu, seed, rtt, reverse, and [down-|up-] rate, delay, jitter, queue, loss, burst-loss, \
                       burst-length, duplicate, reorder, reorder-delay, ecn";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let pair: LinkPair = text.parse().unwrap();
        assert_eq!(pair.to_string(), expected, "{text}");
        assert_eq!(expected.parse(), Ok(pair), "{text}");
    }

    #[test]
    fn a_pair_is_read_and_written_with_all_that_it_has() {
        check("loss=0%", "mtu=1500,seed=1");
        check("rate=20M,rtt=60ms,seed=7", "mtu=1500,rate=20M,delay=30ms,queue=262144,seed=7");
        check(
            "rate=20M,up-rate=5M,queue=1M,down-loss=1%",
            "mtu=1500,down-rate=20M,queue=1048576,down-loss=1%,up-rate=5M,seed=1",
        );
        check("up-jitter=3ms,delay=1ms", "mtu=1500,delay=1ms,up-jitter=3ms,seed=1");
        check("rate=50M:5M@10s:50M@20s", "mtu=1500,rate=50M:5M@10s:50M@20s,queue=262144,seed=1");
        check(
            "burst-loss=2%,burst-length=4,duplicate=0.1%,reorder=1%,reorder-delay=2ms",
            "mtu=1500,burst-loss=2%,burst-length=4,duplicate=0.1%,reorder=1%,reorder-delay=2ms,seed=1",
        );
        check("ecn=5ms,up-ecn=64k", "mtu=1500,down-ecn=5ms,up-ecn=65536,seed=1");
        check("ecn=bleach", "mtu=1500,ecn=bleach,seed=1");
        check("up-rate=5M", "mtu=1500,up-rate=5M,up-queue=262144,seed=1");
    }

    #[test]
    fn a_preset_may_be_changed_option_by_option() {
        check(
            "lte",
            "mtu=1500,down-rate=20M,delay=30ms,jitter=10ms,queue=1048576,loss=0.5%,up-rate=5M,seed=1",
        );
        check(
            "lte,loss=1%,reverse=on",
            "mtu=1500,down-rate=5M,delay=30ms,jitter=10ms,queue=1048576,loss=1%,up-rate=20M,seed=1",
        );
        check("lan10g", "mtu=9000,rate=10G,delay=100us,queue=1048576,seed=1");
        check("wifi,rate=100M", "mtu=1500,rate=100M,delay=2ms,jitter=3ms,queue=262144,burst-loss=2%,seed=1");
        for preset in PRESETS {
            let pair: LinkPair = preset.name.parse().unwrap();
            assert_eq!(pair.to_string().parse(), Ok(pair), "{}", preset.name);
        }
    }

    #[test]
    fn what_no_link_can_be_is_refused_with_what_to_write() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<LinkPair>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("dsl", "`dsl` is no link: expected OPTION=VALUE, or one of lan10g, lan1g");
        check("lte,fast", "`fast` of --link: expected OPTION=VALUE");
        check("lte,wifi", "`wifi` of --link: expected OPTION=VALUE");
        check("speed=1G", "expected one of mtu, seed");
        check("rtt=60", "expected a time, such as rtt=60ms");
        check("loss=lots", "expected percent");
        check("rate=1T", "expected bits per second");
        for steps in ["50M:5M", "50M:5M@10", "50M:5M@0s", "50M:5M@10s:1M@5s", "", ":5M@1s"] {
            check(&format!("rate={steps}"), "expected bits per second");
        }
        check("queue=lots", "expected bytes");
        check("ecn=maybe", "expected a time or bytes");
        check("burst-length=0", "expected a number of packets");
        check("reverse=maybe", "reverse=on or");
        check("seed=x", "a whole number");
        check("mtu=100", "mtu of --link is 576");
        check("rate=0", "rate of --link is 1k");
        check("rate=50M:0@1s", "rate of --link is 1k");
        check("rate=1M,queue=1000", "at least one packet");
        check("up-loss=100%", "less than 100%");
        check("", "`` of --link: expected OPTION=VALUE");
        check("lte,", "`` of --link: expected OPTION=VALUE");
    }
}
