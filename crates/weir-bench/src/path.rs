//! The network path between the ends of a case: loopback, or a virtual cable made for the run.
//!
//! Loopback favours sending many datagrams per call: they are never segmented, the MTU is 64 KiB,
//! and nothing is lost. A pair of network namespaces with a virtual cable is closer to a wire: it
//! has Ethernet's MTU, it can have a rate, and it can lose single packets.

mod veth;

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::str::FromStr;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use thiserror::Error;

pub use veth::{Place, VethError, VethPath};

/// The value of `--link`: `veth[,mtu=N][,rate=N][,queue=N][,burst=N][,loss=N%][,gso=on|off]`. Its
/// text names everything that differs from a plain cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSpec {
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

/// A path that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathError {
    /// Not of that form.
    #[error(
        "`{0}` is not a link: expected veth[,mtu=9000][,rate=1G][,queue=256k][,burst=9100][,loss=10%][,gso=off]"
    )]
    Form(String),
    /// A value out of range.
    #[error("{0}")]
    Range(&'static str),
}

impl PathSpec {
    /// A plain cable with the MTU of Ethernet, as fast as the processor.
    pub const PLAIN: Self =
        Self { mtu: 1500, rate_bps: None, queue_bytes: None, burst_bytes: None, loss_e4: 0, gso: true };
}

impl FromStr for PathSpec {
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
                "loss" => spec.loss_e4 = parse_percent(value).ok_or_else(form)?,
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

impl fmt::Display for PathSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "veth,mtu={}", self.mtu)?;
        match self.rate_bps {
            Some(rate) if rate % 1_000_000_000 == 0 => write!(f, ",rate={}G", rate / 1_000_000_000)?,
            Some(rate) if rate % 1_000_000 == 0 => write!(f, ",rate={}M", rate / 1_000_000)?,
            Some(rate) => write!(f, ",rate={rate}")?,
            None => {}
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

/// Moves the calling thread, and those that it starts from then on, into the network namespace of
/// this file. Sockets that are open stay where they are.
pub fn enter_namespace(file: &Path) -> io::Result<()> {
    let namespace = File::open(file)?;
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Bits per second: a number with M or G of 10^6 or 10^9.
fn parse_rate(text: &str) -> Option<u64> {
    let (number, unit) = match text.strip_suffix(['M', 'm']) {
        Some(number) => (number, 1_000_000),
        None => text.strip_suffix(['G', 'g']).map_or((text, 1), |number| (number, 1_000_000_000)),
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// Bytes: a number with k or M of 2^10 or 2^20, as sizes have them.
fn parse_bytes(text: &str) -> Option<u32> {
    let (number, unit) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1024),
        None => text.strip_suffix(['m', 'M']).map_or((text, 1), |number| (number, 1024 * 1024)),
    };
    number.parse::<u32>().ok()?.checked_mul(unit)
}

/// A frame is longer than its packet by its header; the kernel keeps the depth of the bucket as a time, and rounds it.
const FRAME_MORE_BYTES: u32 = 100;

/// A send of many datagrams in one piece is no longer.
const QUEUE_MIN_BYTES: u32 = 66_000;

/// Percent with at most two decimals, in hundredths.
fn parse_percent(text: &str) -> Option<u32> {
    let percent: f64 = text.strip_suffix('%').unwrap_or(text).parse().ok()?;
    let hundredths = (percent * 100.0).round();
    let is_whole = (percent * 100.0 - hundredths).abs() < 1e-6;
    (is_whole && (0.0..=10_000.0).contains(&hundredths)).then_some(hundredths as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_and_named_with_all_that_it_has() {
        let check = |text: &str, expected: &str| {
            let spec: PathSpec = text.parse().unwrap();
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
            let error = text.parse::<PathSpec>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        for text in [
            "",
            "wifi",
            "veth,",
            "veth,mtu",
            "veth,mtu=x",
            "veth,loss=0.001",
            "veth,gso=maybe",
            "veth,rate=1T",
        ] {
            check(text, "is not a link: expected veth[,");
        }
        check("veth,mtu=100", "mtu of --link");
        check("veth,rate=1", "rate of --link");
        check("veth,queue=256k", "needs a rate");
        check("veth,rate=1G,queue=10k", "at least one send");
        check("veth,burst=9k", "needs a rate");
        check("veth,mtu=9000,rate=1G,burst=9000", "at least one packet");
        check("veth,loss=100%", "less than 100%");
        check("veth,loss=1%,gso=on", "lose whole sends");
    }
}
