//! Figures as the results format has them: three decimals, six for seconds.

use std::time::Duration;

/// To three decimals.
#[must_use]
pub fn rounded(figure: f64) -> f64 {
    (figure * 1e3).round() / 1e3
}

/// A duration in seconds, to the microsecond.
#[must_use]
pub fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e6
}

/// A share to three decimals; `None` of nothing.
#[must_use]
pub fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| rounded(part as f64 / whole as f64))
}

/// Payload rate, 10^6 bits per second.
#[must_use]
pub fn mbps(per_s: f64, size_bytes: u64) -> f64 {
    rounded(per_s * size_bytes as f64 * 8.0 / 1e6)
}
