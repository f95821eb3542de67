//! Latency breakdown: the timestamps of both ends of a ping-pong, joined into stages.
//!
//! Each end records eight timestamps per ping: four for what it sent, four for what it received.
//! Both are processes of one host and read one clock. Recording is bounded: when it is full, every
//! other ping is dropped by number, so that both ends keep the same pings.

use std::collections::HashMap;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use weir_measure::{clock, nanos};
use weir_results::{LatencyBreakdown, Trip};

/// The timestamps of an end for one ping, nanoseconds of the host's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stops {
    /// Its number on the wire.
    pub seq_num: u32,
    /// The ping, or its echo.
    pub sent: SendStops,
    /// What it received: the echo, or the ping.
    pub received: ReceiveStops,
}

/// Sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendStops {
    /// The application began to write.
    pub written_ns: u64,
    /// The send call began.
    pub called_ns: u64,
    /// It had returned.
    pub returned_ns: u64,
}

/// Receiving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiveStops {
    /// The kernel stamped the datagram: nanoseconds of the wall clock until [`Recorder::finish`].
    pub stamped_ns: u64,
    /// The receive call had returned.
    pub returned_ns: u64,
    /// The sample lay in the reader's cache.
    pub sorted_ns: u64,
    /// The application had it.
    pub taken_ns: u64,
}

/// All timestamps of an end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// By ping.
    pub stops: Vec<Stops>,
    /// How far the kernel's stamps may be off, nanoseconds.
    pub clock_error_ns: u64,
}

/// Records timestamps in preallocated memory.
#[derive(Debug)]
pub struct Recorder {
    stops: Vec<Stops>,
    /// Pings are recorded if this divides their number.
    every: u32,
    /// The wall clock beside the monotonic one, when the recorder was made.
    clocks: ClockPair,
    warmup: Duration,
    /// When the warm-up is over; `None` before the first ping.
    measure_from_ns: Option<u64>,
}

/// Pings that an end records at most: 2 MB.
const STOPS_MAX: usize = 1 << 15;

impl Recorder {
    /// Nothing recorded yet. Skips pings that start within `warmup` of the first one.
    #[must_use]
    pub fn new(warmup: Duration) -> Self {
        Self {
            stops: Vec::with_capacity(STOPS_MAX),
            every: 1,
            clocks: ClockPair::read(),
            warmup,
            measure_from_ns: None,
        }
    }

    /// Records one ping.
    pub fn record(&mut self, stops: Stops) {
        let written_ns = stops.sent.written_ns;
        let measure_from_ns =
            *self.measure_from_ns.get_or_insert_with(|| written_ns.saturating_add(nanos(self.warmup)));
        if !stops.seq_num.is_multiple_of(self.every) || written_ns < measure_from_ns {
            return;
        }
        if self.stops.len() == STOPS_MAX {
            self.every = self.every.saturating_mul(2);
            self.stops.retain(|kept| kept.seq_num.is_multiple_of(self.every));
            if !stops.seq_num.is_multiple_of(self.every) {
                return;
            }
        }
        self.stops.push(stops);
    }

    /// Returns the timestamps, all of the monotonic clock.
    #[must_use]
    pub fn finish(&mut self) -> Trace {
        let after = ClockPair::read();
        let mut stops = std::mem::take(&mut self.stops);
        for stops in &mut stops {
            stops.received.stamped_ns = self.clocks.to_monotonic(stops.received.stamped_ns);
        }
        // The two clocks run at the same rate: a difference means that one was set meanwhile.
        let set_ns = self.clocks.ahead_ns.abs_diff(after.ahead_ns);
        Trace { stops, clock_error_ns: self.clocks.error_ns.max(after.error_ns).max(set_ns) }
    }
}

/// Reads of the wall clock between two of the monotonic one, the closest of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockPair {
    /// How far the wall clock is ahead.
    ahead_ns: i64,
    /// By how much that may be wrong.
    error_ns: u64,
}

impl ClockPair {
    fn read() -> Self {
        const TRIES: usize = 64;
        let pair = |_| {
            let before_ns = clock::now_ns();
            let wall = clock_gettime(ClockId::Realtime);
            let after_ns = clock::now_ns();
            Self::of(before_ns, wall.tv_sec * 1_000_000_000 + wall.tv_nsec, after_ns)
        };
        let none = Self { ahead_ns: 0, error_ns: u64::MAX };
        (0..TRIES).map(pair).min_by_key(|pair| pair.error_ns).unwrap_or(none)
    }

    /// The wall clock was read between these two moments: half the time between them is what may be wrong, and no less
    /// than the nanosecond that is the clocks' resolution.
    fn of(before_ns: u64, wall_ns: i64, after_ns: u64) -> Self {
        let width_ns = after_ns.saturating_sub(before_ns);
        let middle_ns = before_ns + width_ns / 2;
        Self { ahead_ns: wall_ns - middle_ns.cast_signed(), error_ns: width_ns.div_ceil(2).max(1) }
    }

    fn to_monotonic(self, wall_ns: u64) -> u64 {
        wall_ns.saturating_add_signed(-self.ahead_ns)
    }
}

/// Joins the timestamps of both ends; `None` when they share no ping.
#[must_use]
pub fn account(pinger: &Trace, ponger: &Trace) -> Option<LatencyBreakdown> {
    let there: HashMap<u32, &Stops> = ponger.stops.iter().map(|stops| (stops.seq_num, stops)).collect();
    let mut trips = Vec::with_capacity(2 * pinger.stops.len());
    let mut turns_ns = 0;
    for here in &pinger.stops {
        let Some(there) = there.get(&here.seq_num) else { continue };
        trips.extend([trip(&here.sent, &there.received), trip(&there.sent, &here.received)]);
        turns_ns += there.sent.written_ns.saturating_sub(there.received.taken_ns);
    }
    let turn_ns = turns_ns as f64 / (trips.len() / 2).max(1) as f64;
    LatencyBreakdown::new(&trips, pinger.clock_error_ns.max(ponger.clock_error_ns), turn_ns)
}

/// One direction. When the send call returns, the datagram is in the receiver's socket if both are
/// on one host; a quicker receiver had it before.
fn trip(sent: &SendStops, received: &ReceiveStops) -> Trip {
    Trip([
        sent.written_ns,
        sent.called_ns,
        received.stamped_ns,
        sent.returned_ns.min(received.returned_ns),
        received.returned_ns,
        received.sorted_ns,
        received.taken_ns,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stops(seq_num: u32, at_ns: u64) -> Stops {
        Stops {
            seq_num,
            sent: SendStops { written_ns: at_ns, called_ns: at_ns + 10, returned_ns: at_ns + 70 },
            received: ReceiveStops {
                stamped_ns: at_ns + 200,
                returned_ns: at_ns + 290,
                sorted_ns: at_ns + 300,
                taken_ns: at_ns + 320,
            },
        }
    }

    fn recorder() -> Recorder {
        Recorder { clocks: ClockPair { ahead_ns: 0, error_ns: 1 }, ..Recorder::new(Duration::ZERO) }
    }

    #[test]
    fn a_full_recorder_forgets_every_other_ping_by_number() {
        let mut recorder = recorder();
        // Number 3 was lost.
        let numbers = || (0..STOPS_MAX as u32 * 3).filter(|number| *number != 3);
        numbers().for_each(|number| recorder.record(stops(number, 1_000)));
        assert_eq!(recorder.every, 4);
        let kept: Vec<u32> = recorder.finish().stops.iter().map(|stops| stops.seq_num).collect();
        assert_eq!(kept, numbers().filter(|number| number.is_multiple_of(4)).collect::<Vec<_>>());
    }

    #[test]
    fn the_warm_up_is_not_noted() {
        let mut recorder = Recorder { warmup: Duration::from_micros(1), ..recorder() };
        [1_000, 1_999, 2_000]
            .iter()
            .zip(1..)
            .for_each(|(at_ns, number)| recorder.record(stops(number, *at_ns)));
        assert_eq!(recorder.finish().stops.iter().map(|stops| stops.seq_num).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn a_ping_is_two_ways_that_meet_by_its_number() {
        // The ponger's stops are those of its echo: it received before it sent.
        let ponger = |seq_num: u32, at_ns: u64| Stops {
            sent: SendStops { written_ns: at_ns + 130, called_ns: at_ns + 140, returned_ns: at_ns + 210 },
            received: ReceiveStops {
                stamped_ns: at_ns + 40,
                returned_ns: at_ns + 90,
                sorted_ns: at_ns + 100,
                taken_ns: at_ns + 120,
            },
            seq_num,
        };
        let here = Trace { stops: vec![stops(1, 1_000), stops(2, 5_000)], clock_error_ns: 20 };
        let there = Trace { stops: vec![ponger(2, 5_000), ponger(3, 9_000)], clock_error_ns: 30 };
        let found = account(&here, &there).unwrap();
        assert_eq!((found.samples, found.left_out), (2, 0));
        assert_eq!((found.clock_error_us, found.turn_us), (0.03, 0.01));
        // 120 ns there and 190 ns back, by stages 10, 30, 30, 20, 10, 20 and 10, 60, 10, 80, 10, 20.
        assert_eq!(found.one_way.mean, 0.155);
        let means: Vec<f64> = found.stages.iter().map(|stage| stage.times.mean).collect();
        assert_eq!(means, [0.01, 0.045, 0.02, 0.05, 0.01, 0.02]);
        assert_eq!(account(&here, &Trace::default()), None);
    }

    #[test]
    fn stamps_of_the_wall_clock_become_monotonic_within_the_error_that_is_told() {
        let pair = ClockPair::of(1_000, 1_700_000_000_000_000_000, 1_041);
        assert_eq!(pair.error_ns, 21);
        assert_eq!(pair.to_monotonic(1_700_000_000_000_000_000), 1_020);
        assert_eq!(pair.to_monotonic(1_700_000_000_000_000_500), 1_520);
        assert_eq!(ClockPair::of(5, 9, 5).error_ns, 1);
        // The host's own clocks: a wall-clock time between two monotonic ones lies between them.
        let pair = ClockPair::read();
        let before_ns = clock::now_ns();
        let wall = clock_gettime(ClockId::Realtime);
        let after_ns = clock::now_ns();
        let at_ns = pair.to_monotonic((wall.tv_sec * 1_000_000_000 + wall.tv_nsec).cast_unsigned());
        assert!(at_ns + pair.error_ns >= before_ns && at_ns <= after_ns + pair.error_ns);
    }

    #[test]
    fn a_wall_clock_that_was_set_meanwhile_is_told_as_an_error() {
        let mut recorder = recorder();
        recorder.clocks.ahead_ns = ClockPair::read().ahead_ns - 5_000_000;
        assert!(recorder.finish().clock_error_ns > 4_000_000);
    }
}
