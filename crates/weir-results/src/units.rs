//! Parsing and formatting of sizes and durations.

use std::time::Duration;

use thiserror::Error;

/// A size or duration that could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnitError {
    /// Not a size.
    #[error(
        "`{0}` is not a size: give bytes, or a whole number followed by k, M or G (powers of 1024), e.g. 32, 8k, 1M"
    )]
    Size(String),
    /// Not a duration.
    #[error("`{0}` is not a duration: give a number with ns, us, ms, s, m or h, e.g. 2s, 300ms, 500us")]
    Duration(String),
}

/// Parses a size in bytes: `32`, `8k`, `1M`, `2G`.
///
/// Suffixes are powers of 1024 in either case; `KiB`, `MiB`, `GiB` or a final `B` are accepted,
/// too.
///
/// # Errors
/// [`UnitError::Size`] if the text is not a size or too large.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let error = || UnitError::Size(text.to_owned());
    let (number, suffix) = split_number(text.trim());
    let factor: u64 = match suffix.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return Err(error()),
    };
    number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor)).ok_or_else(error)
}

/// Parses a duration: `2s`, `300ms`, `500us`, `1.5s`, `2m`, `1h`. A number without a unit is
/// seconds.
///
/// # Errors
/// [`UnitError::Duration`] if the text is not a duration or too long.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let error = || UnitError::Duration(text.to_owned());
    let (number, suffix) = split_number(text.trim());
    let ns_per_unit: f64 = match suffix {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "" | "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return Err(error()),
    };
    let value: f64 = number.parse().map_err(|_| error())?;
    let ns = (value * ns_per_unit).round();
    // Above 2^53 ns (104 days) a float is not precise to the nanosecond; no measurement takes that
    // long.
    if !(0.0..=9_007_199_254_740_992.0).contains(&ns) {
        return Err(error());
    }
    Ok(Duration::from_nanos(ns as u64))
}

/// Formats a size: `32 B`, `8 KiB`, `1.50 MiB`.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    for (unit, name) in UNITS {
        if bytes >= unit {
            return if bytes.is_multiple_of(unit) {
                format!("{} {name}", bytes / unit)
            } else {
                format!("{:.2} {name}", bytes as f64 / unit as f64)
            };
        }
    }
    format!("{bytes} B")
}

/// Formats a rate or count to about three digits: `950`, `12.3 k`, `4.92 M`.
#[must_use]
pub fn format_rate(per_second: f64) -> String {
    let (value, suffix) = match per_second.abs() {
        v if v >= 1e9 => (per_second / 1e9, " G"),
        v if v >= 1e6 => (per_second / 1e6, " M"),
        v if v >= 1e3 => (per_second / 1e3, " k"),
        _ => (per_second, ""),
    };
    match value.abs() {
        v if v >= 100.0 || suffix.is_empty() => format!("{value:.0}{suffix}"),
        v if v >= 10.0 => format!("{value:.1}{suffix}"),
        _ => format!("{value:.2}{suffix}"),
    }
}

/// Splits `8k` into `8` and `k`; signs and exponents are not accepted.
fn split_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    (number, suffix.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_powers_of_1024() {
        let check = |text: &str, expected: Option<u64>| assert_eq!(parse_size(text).ok(), expected, "{text}");
        check("32", Some(32));
        check("8k", Some(8192));
        check("8K", Some(8192));
        check("64 KiB", Some(65536));
        check("1M", Some(1 << 20));
        check("2G", Some(2 << 30));
        check("0", Some(0));
        check("", None);
        check("k", None);
        check("-1", None);
        check("1.5k", None);
        check("8x", None);
        check("99999999999G", None);
    }

    #[test]
    fn durations_have_units_and_may_have_fractions() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(parse_duration(text).ok().map(|d| d.as_nanos() as u64), expected, "{text}")
        };
        check("2s", Some(2_000_000_000));
        check("300ms", Some(300_000_000));
        check("500us", Some(500_000));
        check("7ns", Some(7));
        check("1.5s", Some(1_500_000_000));
        check("2m", Some(120_000_000_000));
        check("1h", Some(3_600_000_000_000));
        check("3", Some(3_000_000_000));
        check("", None);
        check("s", None);
        check("-1s", None);
        check("1 day", None);
        check("1e3s", None);
        check("999999999h", None);
    }

    #[test]
    fn numbers_are_printed_for_people() {
        assert_eq!(format_size(32), "32 B");
        assert_eq!(format_size(8192), "8 KiB");
        assert_eq!(format_size(1_548_576), "1.48 MiB");
        assert_eq!(format_rate(0.0), "0");
        assert_eq!(format_rate(950.4), "950");
        assert_eq!(format_rate(12_345.0), "12.3 k");
        assert_eq!(format_rate(4_916_862.0), "4.92 M");
    }
}
