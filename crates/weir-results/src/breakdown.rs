//! Where the time of a sample goes on its way: the stages of a latency.

use serde::{Deserialize, Serialize};

/// A stage of a sample's way from one application to the other. Each begins where the one before it ends, so that a
/// sample's stages add up to its latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// From the application's call until everything is ready for the send call.
    Encode,
    /// From there until the datagram comes to the receiving side's network stack (the kernel's stamp): the system
    /// call and the sender's half of the kernel's work.
    SendCall,
    /// From there until the datagram lies in the receiver's socket: the receiver's half. Nothing says when that is; it is
    /// taken to be when the send call returns, or the receive call if that is earlier.
    Kernel,
    /// From there until the receive call has returned in the receiving thread, which had to be woken if it slept.
    WakeUp,
    /// From there until the sample lies in the reader's cache.
    Parse,
    /// From there until the application has it, answers that leave before included.
    Deliver,
}

impl Stage {
    /// All of them, in their order.
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

/// The way of one sample: when it came to each boundary between stages, nanoseconds of one clock, the beginning of
/// [`Stage::Encode`] and the end of [`Stage::Deliver`] included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trip(pub [u64; Stage::ALL.len() + 1]);

impl Trip {
    /// Whether no boundary lies before the one that precedes it.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.0.is_sorted()
    }

    /// How long it took, nanoseconds.
    fn one_way_ns(&self) -> u64 {
        self.0[Stage::ALL.len()].saturating_sub(self.0[0])
    }

    fn stage_ns(&self, stage: usize) -> u64 {
        self.0[stage + 1].saturating_sub(self.0[stage])
    }
}

/// The stages of a latency case. All times in microseconds.
///
/// Means add up: those of the stages to that of the whole way. Percentiles do not: the sample that is slow in one stage
/// is another one than that which is slow in the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyBreakdown {
    /// Ways that the figures are of: there and back again count one each.
    pub samples: u64,
    /// Ways left out because the times at their boundaries were not in order.
    pub left_out: u64,
    /// How far the kernel's stamps, which are of another clock, may be off; part of the send call's time may be the kernel's
    /// by so much, or the other way round.
    pub clock_error_us: f64,
    /// From taking a ping to writing its echo, on average: in the round trip, and in none of the stages.
    pub turn_us: f64,
    /// The whole way.
    pub one_way: StageTimes,
    /// The stages in their order.
    pub stages: Vec<StageFigures>,
}

/// Times of a stage or of the whole way, microseconds.
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
    /// Which one.
    pub stage: Stage,
    /// Its times.
    #[serde(flatten)]
    pub times: StageTimes,
    /// Its median in percent of the median of the whole way.
    pub share_percent: f64,
}

impl LatencyBreakdown {
    /// The figures of these ways; those out of order are left out. `None` when none is left.
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
    /// Of times in nanoseconds; `None` of none.
    fn of(times_ns: impl Iterator<Item = u64>) -> Option<Self> {
        let mut sorted: Vec<u64> = times_ns.collect();
        sorted.sort_unstable();
        let count = sorted.len();
        // The smallest that so many percent do not exceed.
        let percentile = |percent: usize| sorted.get((count * percent).div_ceil(100).saturating_sub(1));
        let sum: u128 = sorted.iter().map(|ns| u128::from(*ns)).sum();
        Some(Self {
            p50: us(*percentile(50)? as f64),
            p99: us(*percentile(99)? as f64),
            mean: us(sum as f64 / count as f64),
        })
    }
}

/// Microseconds to three decimals: whole nanoseconds, as the clocks have them.
fn us(ns: f64) -> f64 {
    ns.round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ways of which each stage takes so many nanoseconds.
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
