//! Numbers as texts of the HTML report.

use weir_results::Interval;

use crate::compact::three_digits;

/// A number with three significant digits and, from ten thousand on, a unit: `3.67M`, `20.3k`.
pub(crate) fn short(value: f64) -> String {
    let (divisor, unit) = unit(value);
    format!("{}{unit}", three_digits(value / divisor))
}

/// The same for sentences: `3.67 M`.
pub(crate) fn spoken(value: f64) -> String {
    let (divisor, unit) = unit(value);
    let space = if unit.is_empty() { "" } else { " " };
    format!("{}{space}{unit}", three_digits(value / divisor))
}

/// A time in microseconds, for sentences: `17.3 ms`.
pub(crate) fn spoken_us(value: f64) -> String {
    let (divisor, unit) = match value.abs() {
        size if size >= 1e6 => (1e6, "s"),
        size if size >= 1e4 => (1e3, "ms"),
        _ => (1.0, "us"),
    };
    format!("{} {unit}", three_digits(value / divisor))
}

fn unit(value: f64) -> (f64, &'static str) {
    match value.abs() {
        size if size >= 1e9 => (1e9, "G"),
        size if size >= 1e6 => (1e6, "M"),
        size if size >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    }
}

/// Both ends of an interval: `1.2..1.4`.
pub(crate) fn range(interval: Interval, decimals: usize) -> String {
    format!("{:.decimals$}..{:.decimals$}", interval.low, interval.high)
}

/// A figure, or a dash without one.
pub(crate) fn or_dash(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_have_units() {
        assert_eq!(
            [0.0, 12.5, 9999.0, 20_263.4, 3_670_000.0, 2.5e9].map(short),
            ["0", "12.5", "9999", "20.3k", "3.67M", "2.5G"]
        );
        assert_eq!(spoken(3_670_000.0), "3.67 M");
        assert_eq!(
            [8.25, 9_999.0, 17_300.0, 2.5e6].map(spoken_us),
            ["8.25 us", "9999 us", "17.3 ms", "2.5 s"]
        );
    }
}
