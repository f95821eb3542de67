//! The distribution of a case's latencies, as results files store it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A distribution of latencies in nanoseconds: an HdrHistogram in its V2 format, compressed and in base64.
///
/// The text is what the HdrHistogram log format stores, so that its tools read it. It has the unit of
/// [`LatencySummary`](crate::LatencySummary): where that is half of a round trip, so is this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LatencyHistogram(String);

/// A decoded [`LatencyHistogram`].
#[derive(Debug, Clone)]
pub struct Distribution(Histogram<u64>);

/// A text that is no distribution.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not a compressed HdrHistogram in base64 (V2): {0}")]
pub struct HistogramError(String);

impl LatencyHistogram {
    /// Encodes recorded nanoseconds, each divided by `divisor`.
    ///
    /// # Panics
    /// Never: memory takes any number of bytes, and the values fit the bounds of `recorded`.
    pub(crate) fn encode(recorded: &Histogram<u64>, divisor: u64) -> Self {
        let mut scaled = Histogram::new_from(recorded);
        for value in recorded.iter_recorded() {
            let ns = recorded.median_equivalent(value.value_iterated_to()) / divisor;
            scaled.saturating_record_n(ns, value.count_at_value());
        }
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&scaled, &mut bytes).expect("memory takes any number of bytes");
        Self(STANDARD.encode(&bytes))
    }

    /// Decodes the distribution.
    ///
    /// # Errors
    /// If the text is something else, or damaged.
    pub fn decode(&self) -> Result<Distribution, HistogramError> {
        let error = |error: &dyn std::fmt::Display| HistogramError(error.to_string());
        let bytes = STANDARD.decode(&self.0).map_err(|it| error(&it))?;
        let histogram = Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|it| error(&it))?;
        Ok(Distribution(histogram))
    }

    /// Adds up distributions, such as those of several processes; `None` without any.
    ///
    /// # Errors
    /// If one is damaged.
    pub fn merged<'a>(all: impl IntoIterator<Item = &'a Self>) -> Result<Option<Self>, HistogramError> {
        let mut sum: Option<Distribution> = None;
        for one in all {
            let one = one.decode()?;
            match &mut sum {
                Some(sum) => sum.merge(&one),
                None => sum = Some(one),
            }
        }
        Ok(sum.map(|sum| Self::encode(&sum.0, 1)))
    }
}

impl Distribution {
    /// Returns the number of recorded latencies.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the latency in microseconds that this share (0 to 1) of all does not exceed.
    #[must_use]
    pub fn quantile_us(&self, share: f64) -> f64 {
        self.0.value_at_quantile(share) as f64 / 1e3
    }

    /// Returns the share (0 to 1) of all that does not exceed a latency in microseconds.
    #[must_use]
    pub fn share_at_most(&self, us: f64) -> f64 {
        self.0.quantile_below((us * 1e3).max(0.0) as u64)
    }

    /// Returns latencies in microseconds with how often they were recorded, in order.
    pub fn bins(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.0.iter_recorded().map(|it| (it.value_iterated_to() as f64 / 1e3, it.count_at_value()))
    }

    /// Adds another distribution, such as that of another repeat.
    pub fn merge(&mut self, other: &Self) {
        for value in other.0.iter_recorded() {
            self.0.saturating_record_n(value.value_iterated_to(), value.count_at_value());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(values: impl IntoIterator<Item = u64>) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 60_000_000_000, 3).unwrap();
        values.into_iter().for_each(|ns| histogram.saturating_record(ns));
        histogram
    }

    #[test]
    fn what_is_encoded_is_decoded_within_a_thousandth() {
        let decoded = LatencyHistogram::encode(&recorded((1..=10_000).map(|n| n * 100)), 1).decode().unwrap();
        assert_eq!(decoded.count(), 10_000);
        for share in [0.5, 0.9, 0.99, 0.9999, 1.0] {
            let truth_us = share * 1_000.0;
            assert!((decoded.quantile_us(share) / truth_us - 1.0).abs() < 2e-3, "{share}");
        }
        assert!((decoded.share_at_most(500.0) - 0.5).abs() < 2e-3);
        assert_eq!(decoded.bins().map(|(_, count)| count).sum::<u64>(), 10_000);
    }

    #[test]
    fn half_a_round_trip_is_stored_as_such() {
        let whole = recorded((1..=1_000).map(|n| n * 1_000));
        let half = LatencyHistogram::encode(&whole, 2).decode().unwrap();
        assert!((half.quantile_us(0.5) / 250.0 - 1.0).abs() < 2e-3, "{}", half.quantile_us(0.5));
    }

    #[test]
    fn the_text_is_that_of_the_hdrhistogram_log_format() {
        let LatencyHistogram(text) = LatencyHistogram::encode(&recorded([1_000; 3]), 1);
        // All compressed V2 histograms begin with the same four bytes.
        assert!(text.starts_with("HISTFA"), "{text}");
        assert!(text.len() < 100, "{text}");
    }

    #[test]
    fn a_million_latencies_take_a_few_kilobytes() {
        let wide = recorded((0..1_000_000_u64).map(|n| 10_000 + n * n % 3_000_017));
        let LatencyHistogram(text) = LatencyHistogram::encode(&wide, 1);
        assert!(text.len() < 16_384, "{} bytes", text.len());
    }

    #[test]
    fn distributions_of_repeats_add_up() {
        let of = |ns: u64| LatencyHistogram::encode(&recorded([ns; 10]), 1).decode().unwrap();
        let mut both = of(1_000);
        both.merge(&of(3_000));
        assert_eq!((both.count(), both.quantile_us(0.5), both.quantile_us(0.51).round()), (20, 1.0, 3.0));
    }

    #[test]
    fn damaged_texts_are_errors() {
        let LatencyHistogram(text) = LatencyHistogram::encode(&recorded([7; 9]), 1);
        for damaged in ["", "HISTFAAAA", "no base64!", &text[..text.len() / 2], &text.replace('A', "B")] {
            assert!(LatencyHistogram(damaged.to_owned()).decode().is_err(), "{damaged}");
        }
    }
}
