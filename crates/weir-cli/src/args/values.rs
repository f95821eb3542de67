//! Values of options, and how they are read.

use std::str::FromStr;

use clap::ValueEnum;
use weir_bench::case::{CaseSpec, CpuPair};
use weir_bench::control::Role;
use weir_bench::goals::SERIES;
use weir_results::{Reliability, WaitStrategy, parse_size};

// Variants without docs: descriptions would turn every help text into the long form, five lines per option.

/// The value of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Csv,
    Json,
}

/// The value of `--cpus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cpus {
    /// Leave placement to the kernel.
    None,
    /// Pin each end to one CPU.
    Pair(CpuPair),
}

/// The value of `--direction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Direction {
    Forward,
    Reverse,
    Both,
}

/// The value of `--profile`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    #[default]
    Full,
    Small,
}

/// The value of `--order`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    Interleaved,
    Listed,
    Shuffled,
}

/// The value of `--keep-awake`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeepAwakeChoice {
    #[default]
    Auto,
    #[value(alias = "true")]
    Yes,
    #[value(alias = "false")]
    No,
    Both,
}

/// A value of `weir udp --rate`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum UdpRate {
    /// As fast as possible.
    Max,
    /// Bits of payload per second.
    Bits(f64),
    /// Datagrams per second.
    Datagrams(f64),
    /// Percent of the measured maximum.
    Percent(f64),
}

/// The value of `weir report --telemetry`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TelemetryForm {
    Csv,
    Log,
}

/// The value of `--progress`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressForm {
    #[default]
    View,
    Plain,
    None,
}

/// A value of `weir report --plot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlotTest {
    Latency,
    Throughput,
    Breakdown,
    Distribution,
    Ratios,
    Load,
    Histogram,
    Losses,
    Processor,
    Time,
    Links,
    Scaling,
    OsrfMininet,
}

/// A value of `weir report --plot-format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlotForm {
    Svg,
    Png,
}

/// The command that a completion script is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Program {
    Weir,
    Perftest,
    Udptest,
    Udpserver,
}

/// The value of `weir doctor --script`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScriptPurpose {
    Latency,
    Throughput,
}

impl FromStr for UdpRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let (digits, unit) = match text.char_indices().next_back() {
                Some((end, 'k' | 'K')) => (&text[..end], 1e3),
                Some((end, 'm' | 'M')) => (&text[..end], 1e6),
                Some((end, 'g' | 'G')) => (&text[..end], 1e9),
                _ => (text, 1.0),
            };
            let is_plain =
                !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            let number = digits.parse::<f64>().ok().filter(|_| is_plain)? * unit;
            (number > 0.0 && number <= 1e15).then_some(number)
        };
        let parsed = match text.strip_suffix('%') {
            _ if text == "max" => Some(Self::Max),
            Some(percent) => number(percent).filter(|percent| *percent <= 100.0).map(Self::Percent),
            None => match text.strip_suffix("/s") {
                Some(datagrams) => number(datagrams).map(Self::Datagrams),
                None => number(text).map(Self::Bits),
            },
        };
        parsed.ok_or_else(|| {
            "expected bits per second (10M, 1G), datagrams per second (1000/s), percent of the maximum (50%), or max"
                .to_owned()
        })
    }
}

/// A share as `2%` or `0.02`.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
    let share = number.trim().parse::<f64>().ok().map(|number| number * unit);
    share
        .filter(|share| (0.0..1.0).contains(share))
        .ok_or_else(|| "a share from 0 % to below 100 %, as 2% or 0.02".to_owned())
}

pub(super) fn parse_switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("expected on or off".to_owned()),
    }
}

pub(super) fn parse_reliability(text: &str) -> Result<Reliability, String> {
    match text.parse() {
        Ok(reliability @ (Reliability::BestEffort | Reliability::Reliable)) => Ok(reliability),
        _ => Err("expected best-effort or reliable".to_owned()),
    }
}

pub(super) fn parse_wait(text: &str) -> Result<WaitStrategy, String> {
    let spin_us = |text: &str| {
        let number = text.strip_prefix("spin:")?;
        number.strip_suffix("us").unwrap_or(number).parse().ok()
    };
    match text {
        "block" => Ok(WaitStrategy::Block),
        "spin" => Ok(WaitStrategy::Spin),
        _ => spin_us(text).map(|spin_us| WaitStrategy::SpinThenBlock { spin_us }).ok_or_else(|| {
            "expected block, spin, or spin:USEC (spin for USEC microseconds, then block), such as spin:50"
                .to_owned()
        }),
    }
}

/// The default of `--socket-buffer`, in bytes.
pub(super) const SOCKET_BUFFER: usize = CaseSpec::SOCKET_BUFFER_BYTES;

/// The kernel stores twice the size in an `int`, which bounds it to less than 1 GiB.
pub(super) fn parse_socket_buffer(text: &str) -> Result<usize, String> {
    let bytes = parse_size(text).map_err(|error| error.to_string())?;
    let bytes = usize::try_from(bytes).ok().filter(|bytes| (1..1 << 30).contains(bytes));
    bytes.ok_or_else(|| "expected a size of more than 0 and less than 1G".to_owned())
}

pub(super) fn parse_cpus(text: &str) -> Result<Cpus, String> {
    if text == "none" {
        return Ok(Cpus::None);
    }
    let parse = || {
        let (publisher, subscriber) = text.split_once(',')?;
        Some(CpuPair {
            publisher: publisher.trim().parse().ok()?,
            subscriber: subscriber.trim().parse().ok()?,
        })
    };
    parse().map(Cpus::Pair).ok_or_else(|| "expected two processor numbers, such as 1,0, or none".to_owned())
}

pub(super) fn parse_series(text: &str) -> Result<String, String> {
    if SERIES.contains(&text) {
        Ok(text.to_owned())
    } else {
        Err(format!("expected one of {}", SERIES.join(", ")))
    }
}

pub(super) fn parse_role(text: &str) -> Result<Role, String> {
    [Role::Publisher, Role::Subscriber, Role::Process]
        .into_iter()
        .find(|role| role.name() == text)
        .ok_or_else(|| "expected publisher, subscriber or process".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_strategies_may_leave_the_unit_out() {
        let check = |text: &str, expected: Option<WaitStrategy>| {
            assert_eq!(parse_wait(text).ok(), expected, "{text}")
        };
        check("block", Some(WaitStrategy::Block));
        check("spin", Some(WaitStrategy::Spin));
        check("spin:50", Some(WaitStrategy::SpinThenBlock { spin_us: 50 }));
        check("spin:50us", Some(WaitStrategy::SpinThenBlock { spin_us: 50 }));
        check("spin:", None);
        check("spin:-1", None);
        check("nap", None);
    }

    #[test]
    fn socket_buffers_have_suffixes_and_bounds() {
        let check = |text: &str, expected: Option<usize>| {
            assert_eq!(parse_socket_buffer(text).ok(), expected, "{text}")
        };
        check("106496", Some(106_496));
        check("208k", Some(212_992));
        check("4M", Some(CaseSpec::SOCKET_BUFFER_BYTES));
        check("0", None);
        check("1G", None);
        check("big", None);
    }

    #[test]
    fn a_share_is_a_number_or_a_percentage() {
        assert_eq!(parse_share("2%"), Ok(0.02));
        assert_eq!(parse_share("0.05"), Ok(0.05));
        for wrong in ["", "%", "-1%", "100%", "1.5", "nan", "two"] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn processors_come_in_pairs() {
        let pair = |publisher, subscriber| Some(Cpus::Pair(CpuPair { publisher, subscriber }));
        let check =
            |text: &str, expected: Option<Cpus>| assert_eq!(parse_cpus(text).ok(), expected, "{text}");
        check("1,0", pair(1, 0));
        check("0,0", pair(0, 0));
        check("none", Some(Cpus::None));
        check("1", None);
        check("1,2,3", None);
        check("a,b", None);
    }

    #[test]
    fn rates_are_bits_datagrams_or_shares() {
        let check = |text: &str, expected: Option<UdpRate>| {
            assert_eq!(text.parse::<UdpRate>().ok(), expected, "{text}");
        };
        check("max", Some(UdpRate::Max));
        check("10M", Some(UdpRate::Bits(1e7)));
        check("1.5g", Some(UdpRate::Bits(1.5e9)));
        check("64000", Some(UdpRate::Bits(64_000.0)));
        check("50k/s", Some(UdpRate::Datagrams(50_000.0)));
        check("12.5%", Some(UdpRate::Percent(12.5)));
        for text in ["", "0", "-1", "101%", "1e3", "fast", "/s", "%", "inf", "nan", "é", "1é"] {
            check(text, None);
        }
    }
}
