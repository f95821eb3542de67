//! The stages of a latency.

use serde::{Deserialize, Serialize};

/// A stage of a sample's path from one application to the other.
///
/// Each stage starts where the previous one ends, so a sample's stages add up to its latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// From the application's call until right before the send call.
    Encode,
    /// From there until the datagram reaches the receiving side's network stack (the kernel's
    /// timestamp): the system call and the sender's half of the kernel's work.
    SendCall,
    /// From there until the datagram is in the receiver's socket: the receiver's half. There is no
    /// timestamp for its end; it is assumed to be the return of the send call, or of the receive
    /// call if that is earlier.
    Kernel,
    /// From there until the receive call returns in the receiving thread, which may have to be
    /// woken.
    WakeUp,
    /// From there until the sample is in the reader's cache.
    Parse,
    /// From there until the application has it, including responses that are sent before.
    Deliver,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Self; 6] =
        [Self::Encode, Self::SendCall, Self::Kernel, Self::WakeUp, Self::Parse, Self::Deliver];

    /// The name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Encode => "encode",
            Self::SendCall => "send call",
            Self::Kernel => "kernel",
            Self::WakeUp => "wake-up",
            Self::Parse => "parse",
            Self::Deliver => "deliver",
        }
    }
}

/// The timestamps of one sample at each boundary between stages, in nanoseconds of one clock.
///
/// Includes the start of [`Stage::Encode`] and the end of [`Stage::Deliver`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trip(pub [u64; Stage::ALL.len() + 1]);

impl Trip {
    /// Returns whether the timestamps are in order.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.0.is_sorted()
    }

    /// Returns the one-way time in nanoseconds.
    fn one_way_ns(&self) -> u64 {
        self.0[Stage::ALL.len()].saturating_sub(self.0[0])
    }

    fn stage_ns(&self, stage: usize) -> u64 {
        self.0[stage + 1].saturating_sub(self.0[stage])
    }
}

/// The stages of a latency case. All times in microseconds.
///
/// The means of the stages add up to that of the whole path. Percentiles do not: the sample that is
/// slow in one stage is not the one that is slow in the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyBreakdown {
    /// Number of paths in the figures: a round trip has two.
    pub samples: u64,
    /// Number of paths left out because their timestamps were not in order.
    pub left_out: u64,
    /// Maximum error of the kernel's timestamps, which are of another clock. So much of the send
    /// call's time may belong to the kernel, or vice versa.
    pub clock_error_us: f64,
    /// Mean time from taking a ping to writing its echo: part of the round trip, but of no stage.
    pub turn_us: f64,
    /// The whole path.
    pub one_way: StageTimes,
    /// The stages in order.
    pub stages: Vec<StageFigures>,
}

/// Times of a stage or of the whole path, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct StageTimes {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Mean.
    pub mean: f64,
}

/// One stage of a breakdown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StageFigures {
    /// The stage.
    pub stage: Stage,
    /// Its times.
    #[serde(flatten)]
    pub times: StageTimes,
    /// Its median in percent of the median of the whole path.
    pub share_percent: f64,
}

impl LatencyBreakdown {
    /// Computes the figures of these paths, leaving out those that are not in order. `None` if none
    /// is left.
    ///
    /// `clock_error_ns`: see [`Self::clock_error_us`]; `turn_ns`: mean, see [`Self::turn_us`].
    #[must_use]
    pub fn new(trips: &[Trip], clock_error_ns: u64, turn_ns: f64) -> Option<Self> {
        let ordered: Vec<&Trip> = trips.iter().filter(|trip| trip.is_ordered()).collect();
        let one_way = StageTimes::of(ordered.iter().map(|trip| trip.one_way_ns()))?;
        let figures = |(at, stage): (usize, Stage)| {
            let times = StageTimes::of(ordered.iter().map(|trip| trip.stage_ns(at)))?;
            let share = if one_way.p50 > 0.0 { times.p50 / one_way.p50 * 100.0 } else { 0.0 };
            Some(StageFigures { stage, times, share_percent: (share * 10.0).round() / 10.0 })
        };
        let stages = Stage::ALL.into_iter().enumerate().map(figures).collect::<Option<_>>()?;
        Some(Self {
            samples: ordered.len() as u64,
            left_out: (trips.len() - ordered.len()) as u64,
            clock_error_us: us(clock_error_ns as f64),
            turn_us: us(turn_ns),
            one_way,
            stages,
        })
    }
}

impl StageTimes {
    /// Computes the times from nanoseconds; `None` without values.
    fn of(times_ns: impl Iterator<Item = u64>) -> Option<Self> {
        let mut sorted: Vec<u64> = times_ns.collect();
        sorted.sort_unstable();
        let count = sorted.len();
        // The smallest value that this percentage does not exceed.
        let percentile = |percent: usize| sorted.get((count * percent).div_ceil(100).saturating_sub(1));
        let sum: u128 = sorted.iter().map(|ns| u128::from(*ns)).sum();
        Some(Self {
            p50: us(*percentile(50)? as f64),
            p99: us(*percentile(99)? as f64),
            mean: us(sum as f64 / count as f64),
        })
    }
}

/// Microseconds to three decimals: whole nanoseconds, the resolution of the clocks.
fn us(ns: f64) -> f64 {
    ns.round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths whose stages take these times.
    fn trips(stages_ns: &[[u64; 6]]) -> Vec<Trip> {
        let trip = |stages: &[u64; 6]| {
            let mut at = [1_000; 7];
            for (stage, ns) in stages.iter().enumerate() {
                at[stage + 1] = at[stage] + ns;
            }
            Trip(at)
        };
        stages_ns.iter().map(trip).collect()
    }

    #[test]
    fn the_means_of_the_stages_add_up_and_their_percentiles_need_not() {
        // One of three stages is slow.
        let slow = |i: u64, stage| if i % 3 == stage { 1_000 } else { 0 };
        let ways: Vec<[u64; 6]> =
            (0..100).map(|i| [slow(i, 0), slow(i, 1), slow(i, 2), i * i, 1, i % 11]).collect();
        let breakdown = LatencyBreakdown::new(&trips(&ways), 30, 150.0).unwrap();
        let sum: f64 = breakdown.stages.iter().map(|stage| stage.times.mean).sum();
        // Each mean is rounded to a nanosecond.
        assert!((sum - breakdown.one_way.mean).abs() <= 7.0 * 0.000_5, "{sum} {breakdown:?}");
        let medians: f64 = breakdown.stages.iter().map(|stage| stage.times.p50).sum();
        assert!(medians + 0.9 < breakdown.one_way.p50, "{breakdown:?}");
        assert_eq!(breakdown.stages.iter().map(|stage| stage.stage).collect::<Vec<_>>(), Stage::ALL);
        assert_eq!((breakdown.samples, breakdown.left_out), (100, 0));
        assert_eq!((breakdown.clock_error_us, breakdown.turn_us), (0.03, 0.15));
    }

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let ways: Vec<[u64; 6]> = (1..=100).map(|ns| [ns, 0, 0, 0, 0, 0]).collect();
        let breakdown = LatencyBreakdown::new(&trips(&ways), 0, 0.0).unwrap();
        let expected = StageTimes { p50: 0.05, p99: 0.099, mean: 0.051 };
        assert_eq!(breakdown.one_way, expected);
        assert_eq!(breakdown.stages[0].times, expected);
        assert_eq!(breakdown.stages[0].share_percent, 100.0);
        assert_eq!(breakdown.stages[5].times, StageTimes::default());
    }

    #[test]
    fn ways_whose_times_are_not_in_order_are_counted_and_left_out() {
        let mut trips = trips(&[[1, 2, 3, 4, 5, 6], [9, 9, 9, 9, 9, 9]]);
        trips[1].0[3] = 0;
        let breakdown = LatencyBreakdown::new(&trips, 0, 0.0).unwrap();
        assert_eq!((breakdown.samples, breakdown.left_out, breakdown.one_way.p50), (1, 1, 0.021));
        assert_eq!(LatencyBreakdown::new(&trips[1..], 0, 0.0), None);
    }
}
