//! Rates, sizes, times and shares as text, as the options of a link have them.

use core::fmt;
use core::time::Duration;

/// A share of packets, in millionths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    /// All packets.
    pub const ALL: Self = Self(1_000_000);

    /// Reads percent with at most four decimals, with or without the sign: `10%`, `0.5`.
    pub fn parse(text: &str) -> Option<Self> {
        let percent: f64 = text.strip_suffix('%').unwrap_or(text).parse().ok()?;
        let millionths = (percent * 1e4).round();
        let is_whole = (percent * 1e4 - millionths).abs() < 1e-6;
        (is_whole && (0.0..=1e6).contains(&millionths)).then_some(Self(millionths as u32))
    }

    /// Returns the share as a probability, 0 to 1.
    pub fn probability(self) -> f64 {
        f64::from(self.0) / 1e6
    }

    /// Returns the share in millionths.
    pub fn millionths(self) -> u32 {
        self.0
    }

    /// Returns whether it is zero.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.0) / 1e4)
    }
}

/// Reads bits per second: a number, with k, M or G for powers of 1000.
pub fn parse_rate(text: &str) -> Option<u64> {
    let (number, unit) = split(text, &[("k", 1_000), ("K", 1_000), ("M", 1_000_000), ("m", 1_000_000)])
        .or_else(|| split(text, &[("G", 1_000_000_000), ("g", 1_000_000_000)]))
        .unwrap_or((text, 1));
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// Writes bits per second as [`parse_rate`] reads them.
pub fn format_rate(bps: u64) -> String {
    match bps {
        1.. if bps.is_multiple_of(1_000_000_000) => format!("{}G", bps / 1_000_000_000),
        1.. if bps.is_multiple_of(1_000_000) => format!("{}M", bps / 1_000_000),
        1.. if bps.is_multiple_of(1_000) => format!("{}k", bps / 1_000),
        _ => bps.to_string(),
    }
}

/// Reads bytes: a number, with k or M for powers of 1024.
pub fn parse_bytes(text: &str) -> Option<u32> {
    let units = [("k", 1024), ("K", 1024), ("M", 1024 * 1024), ("m", 1024 * 1024)];
    let (number, unit) = split(text, &units).unwrap_or((text, 1));
    number.parse::<u32>().ok()?.checked_mul(u32::try_from(unit).ok()?)
}

/// Reads a time: a number with `s`, `ms`, `us` or `ns`; up to an hour.
pub fn parse_time(text: &str) -> Option<Duration> {
    let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let (number, unit) = split(text, &units)?;
    let nanos = number.parse::<f64>().ok()? * unit as f64;
    (0.0..=3.6e12).contains(&nanos).then(|| Duration::from_nanos(nanos.round() as u64))
}

/// Writes a time as [`parse_time`] reads it.
pub fn format_time(time: Duration) -> String {
    let nanos = time.as_nanos();
    match nanos {
        1.. if nanos.is_multiple_of(1_000_000_000) => format!("{}s", nanos / 1_000_000_000),
        1.. if nanos.is_multiple_of(1_000_000) => format!("{}ms", nanos / 1_000_000),
        1.. if nanos.is_multiple_of(1_000) => format!("{}us", nanos / 1_000),
        _ => format!("{nanos}ns"),
    }
}

/// Splits a number from the first unit that the text ends with.
fn split<'a>(text: &'a str, units: &[(&str, u64)]) -> Option<(&'a str, u64)> {
    units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_sizes_have_units() {
        let rates = ["64k", "2500M", "10G", "1", "1T", "", "-1", "1.5M"].map(parse_rate);
        assert_eq!(rates[..4], [Some(64_000), Some(2_500_000_000), Some(10_000_000_000), Some(1)]);
        assert_eq!(rates[4..], [None; 4]);
        assert_eq!(
            ["64k", "2500M", "10G", "1"].map(|text| format_rate(parse_rate(text).unwrap())),
            ["64k", "2500M", "10G", "1"]
        );
        assert_eq!(
            ["256k", "1M", "9100", "5G"].map(parse_bytes),
            [Some(262_144), Some(1_048_576), Some(9100), None]
        );
    }

    #[test]
    fn times_need_a_unit() {
        let micros = |text| parse_time(text).map(|time| time.as_micros());
        assert_eq!(
            ["10s", "1.5ms", "200us", "3000ns"].map(micros),
            [Some(10_000_000), Some(1_500), Some(200), Some(3)]
        );
        assert_eq!(["10", "", "ms", "-1ms", "2h", "3601s", "NaNs"].map(micros), [None; 7]);
        for text in ["10s", "1500us", "30ms", "7ns"] {
            assert_eq!(format_time(parse_time(text).unwrap()), text);
        }
    }

    #[test]
    fn shares_are_percent() {
        let shares = ["10%", "0.25", "0.0001%", "100%"].map(|text| Share::parse(text).unwrap());
        assert_eq!(shares.map(Share::millionths), [100_000, 2_500, 1, 1_000_000]);
        assert_eq!(shares.map(|share| share.to_string()), ["10%", "0.25%", "0.0001%", "100%"]);
        assert!(["101%", "-1", "x", "", "0.00001%"].iter().all(|text| Share::parse(text).is_none()));
    }
}
