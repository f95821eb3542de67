//! The summary of a throughput case: rates computed from counts, in the same way for all engines.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::SequenceCounts;
use crate::latency::rounded;

/// The counts of a throughput case, from which [`ThroughputSummary`] computes rates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThroughputCounts {
    /// Samples that the publisher wrote (or attempted to) in `offered_in`.
    pub offered: u64,
    /// Duration of the publisher's writing.
    pub offered_in: Duration,
    /// The counts from the subscriber's sequence numbers.
    pub received: SequenceCounts,
    /// Time between the first and the last sample at the subscriber.
    pub received_in: Duration,
    /// Datagrams with user data; `None` if the engine does not report them.
    pub datagrams: Option<u64>,
    /// System calls that sent them; `None` if the engine does not report them.
    pub sends: Option<u64>,
}

/// The summary of a throughput case. Field names are the results format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ThroughputSummary {
    /// Samples per second that the publisher wrote.
    pub offered_samples_per_s: f64,
    /// Samples that the subscriber received, without duplicates.
    pub total_samples: u64,
    /// Samples per second that the subscriber received.
    pub samples_per_s: f64,
    /// Payload received, in 10^6 bit/s: `samples_per_s` x size x 8 / 1e6.
    pub mbps: f64,
    /// Samples that did not arrive.
    pub lost: u64,
    /// `lost / (lost + received) x 100`.
    pub lost_percent: f64,
    /// Repeated arrivals of a sample.
    pub duplicates: u64,
    /// Samples that arrived after a later one.
    pub reordered: u64,
    /// Mean samples per datagram; `None` if the engine does not report them.
    pub samples_per_datagram: Option<f64>,
    /// Mean datagrams per sending system call; `None` if the engine does not report them.
    pub datagrams_per_send: Option<f64>,
}

impl ThroughputSummary {
    /// Computes the rates for samples of `size_bytes`. A time of zero gives rates of zero.
    #[must_use]
    pub fn new(size_bytes: u64, counts: &ThroughputCounts) -> Self {
        let received = &counts.received;
        let samples_per_s = per_second(received.received, counts.received_in);
        let expected = received.lost.saturating_add(received.received);
        Self {
            offered_samples_per_s: rounded(per_second(counts.offered, counts.offered_in)),
            total_samples: received.received,
            samples_per_s: rounded(samples_per_s),
            mbps: rounded(samples_per_s * size_bytes as f64 * 8.0 / 1e6),
            lost: received.lost,
            lost_percent: ratio(received.lost, expected).map_or(0.0, |share| rounded(share * 100.0)),
            duplicates: received.duplicates,
            reordered: received.reordered,
            samples_per_datagram: counts.datagrams.and_then(|d| ratio(counts.offered, d)).map(rounded),
            datagrams_per_send: counts
                .datagrams
                .zip(counts.sends)
                .and_then(|(datagrams, sends)| ratio(datagrams, sends))
                .map(rounded),
        }
    }
}

fn per_second(count: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { count as f64 / time.as_secs_f64() }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole != 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_the_documented_formulas() {
        let counts = ThroughputCounts {
            offered: 1_000,
            offered_in: Duration::from_secs(2),
            received: SequenceCounts { received: 900, lost: 100, duplicates: 3, reordered: 2, late: 0 },
            received_in: Duration::from_secs(2),
            datagrams: Some(100),
            sends: Some(50),
        };
        let summary = ThroughputSummary::new(1024, &counts);
        assert_eq!(summary.offered_samples_per_s, 500.0);
        assert_eq!(summary.total_samples, 900);
        assert_eq!(summary.samples_per_s, 450.0);
        assert_eq!(summary.mbps, rounded(450.0 * 1024.0 * 8.0 / 1e6));
        assert_eq!(summary.lost_percent, 10.0);
        assert_eq!(summary.samples_per_datagram, Some(10.0));
        assert_eq!(summary.datagrams_per_send, Some(2.0));
    }

    #[test]
    fn nothing_received_in_no_time_gives_zeros_and_no_nan() {
        let summary = ThroughputSummary::new(32, &ThroughputCounts { sends: Some(0), ..Default::default() });
        assert_eq!(summary, ThroughputSummary::default());
    }
}
