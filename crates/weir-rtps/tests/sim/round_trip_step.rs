//! A round trip that changes under a saturated writer, as when a route changes or a radio hands over.

use core::time::Duration;

use weir_netsim::{Link, Loss};
use weir_rtps::path::Path;

use crate::harness::{Judge, Sim, medians};
use crate::links::{DATAGRAM_MAX, JITTER_MIN, needed, queue_max};

const RATE_BPS: u64 = 50_000_000;
/// One round trip of 60 ms.
const QUEUE_BYTES: usize = 375_000;
/// Seconds until the round trip changes, until it changes back, and until the end.
const TIMES: [u64; 3] = [5, 20, 28];
/// What is counted together, in milliseconds.
const BIN_MS: u64 = 10;

/// What happens after a step of the round trip.
#[derive(Debug, Clone, Copy)]
struct Learned {
    /// Seconds until the writer delivers 0.90 of what the link carries, over half a second.
    after: f64,
    /// Share of what the link carries, from three seconds after the step on.
    goodput: f64,
    /// The longest time without a sample, in seconds.
    stall: f64,
    /// The mean queue from three seconds after the step on, as a share of the longest one allowed.
    queue: f64,
    /// Bytes offered per byte needed, since the step.
    offered: f64,
}

/// Payload delivered, bytes offered and bytes queued, in each bin, as the link carries them.
struct Bins(Vec<[f64; 3]>);

impl Bins {
    /// Runs a writer of samples of `size` bytes over a link with each of `round_trips` in turn.
    fn run(round_trips: [Duration; 3], loss: f64, size: fn(u64) -> usize, seed: u64) -> Self {
        let mut sim = Sim::unrecorded("round-trip", seed, Link::new());
        sim.set_steps_max(40_000_000);
        sim.add_writer(|setup| {
            (setup.samples, setup.size, setup.gap) = (u64::MAX, size, Duration::from_micros(20));
        });
        let path = Path::new();
        sim.add_reader(|setup| (setup.segment_max, setup.path) = (DATAGRAM_MAX, Some(path.clone())));
        let (writer, reader) = (*sim.writers[0].address.ip(), *sim.readers[0].address.ip());
        let [first, second, third] = round_trips.map(|round_trip| round_trip / 2);
        let [at, back_at, end] = TIMES.map(Duration::from_secs);
        let back = Link::new().delay(first).delay_step(at, second).delay_step(back_at, third);
        let there = back.clone().jitter(JITTER_MIN).rate_bps(RATE_BPS).queue_bytes(QUEUE_BYTES);
        let there = there.loss(Loss::random(loss)).series(Duration::from_millis(BIN_MS));
        sim.network.set_link(writer, reader, there);
        sim.network.set_link(reader, writer, back);
        sim.connect(0, 0);
        let guid = sim.writers[0].config.guid;
        let mut delivered = 0;
        let needed = needed(size(1), DATAGRAM_MAX) as f64;
        let count = end.as_millis() as u64 / BIN_MS;
        let mut taken = Vec::new();
        for bin in 0..count {
            sim.run_for(Duration::from_millis(BIN_MS));
            let before = core::mem::replace(&mut delivered, sim.readers[0].taken(guid).len());
            taken.push((delivered - before) as f64 * needed);
            trace(bin, &path, taken.last().copied().unwrap_or_default());
        }
        let bins = sim.network.traffic(writer, reader);
        let of = |taken: f64, at: usize| {
            let bin = &bins.series.bins()[at];
            [taken, bin.offered_bytes as f64, bin.queue_bytes as f64]
        };
        Self(taken.into_iter().enumerate().map(|(at, taken)| of(taken, at)).collect())
    }

    /// Returns what happens from one time to another. The round trip is `round_trip` meanwhile.
    fn learned(&self, [from, to]: [u64; 2], round_trip: Duration, loss: f64) -> Learned {
        let bins = |seconds: f64| (seconds * 1000.0) as usize / BIN_MS as usize;
        let bins = &self.0[bins(from as f64)..bins(to as f64)];
        let carried = RATE_BPS as f64 / 8.0 * BIN_MS as f64 / 1000.0 * (1.0 - loss);
        let sum = |bins: &[[f64; 3]], which: usize| bins.iter().map(|bin| bin[which]).sum::<f64>();
        let share = |bins: &[[f64; 3]]| sum(bins, 0) / (carried * bins.len() as f64);
        let width = 500 / BIN_MS as usize;
        let seconds = |bins: usize| bins as f64 * BIN_MS as f64 / 1000.0;
        let after = bins.windows(width).position(|bins| share(bins) >= 0.9).unwrap_or(bins.len());
        let stall = bins.split(|bin| bin[0] > 0.0).map(<[_]>::len).max().unwrap_or(0);
        let later = &bins[3000 / BIN_MS as usize..];
        let queue = sum(later, 2) / later.len() as f64 * 8.0 / RATE_BPS as f64;
        Learned {
            after: seconds(after),
            goodput: share(later),
            stall: seconds(stall),
            queue: queue / queue_max(round_trip).as_secs_f64(),
            offered: sum(bins, 1) / sum(bins, 0) * (1.0 - loss),
        }
    }
}

/// Prints what a path knows, for `WEIR_SIM_TRACE`.
#[expect(clippy::print_stderr, reason = "shows the figures of a test with --nocapture")]
fn trace(bin: u64, path: &Path, taken: f64) {
    if std::env::var_os("WEIR_SIM_TRACE").is_none() || !bin.is_multiple_of(5) {
        return;
    }
    let report = path.report();
    let ms = |time: Option<Duration>| time.map_or(-1.0, |time| time.as_secs_f64() * 1e3);
    eprintln!(
        "{:6} ms: {:6.2} Mbit/s, least {:6.2} ms, last {:6.2} ms, {:7} B in flight, {taken} taken",
        bin * BIN_MS,
        report.rate.map_or(-1.0, |rate| rate * 8e-6),
        ms(report.round_trip_min),
        ms(report.round_trip),
        report.in_flight_bytes,
    );
}

#[test]
fn a_path_whose_round_trip_changes_is_followed() {
    let mut judge = Judge::default();
    for round_trips in [[4, 60, 4], [60, 4, 60]] {
        let round_trips = round_trips.map(Duration::from_millis);
        for loss in [0.0, 0.005] {
            for size in [(|_| 1024) as fn(u64) -> usize, |_| 63_000] {
                let figures = medians(5, |seed| {
                    let bins = Bins::run(round_trips, loss, size, seed);
                    let [at, back_at, end] = TIMES;
                    let there = bins.learned([at, back_at], round_trips[1], loss);
                    let back = bins.learned([back_at, end], round_trips[2], loss);
                    let of = |it: Learned| [it.after, it.goodput, it.stall, it.queue, it.offered];
                    let ([a, b, c, d, e], [f, g, h, i, j]) = (of(there), of(back));
                    [a, b, c, d, e, f, g, h, i, j]
                });
                for (to, figures) in round_trips[1..].iter().zip(figures.chunks_exact(5)) {
                    let &[after, goodput, stall, queue, offered] = figures else { unreachable!() };
                    let shown = format!(
                        "to {to:?}, {loss} lost, {} B: 0.9 after {after:.2} s, goodput {goodput:.3}, \
                         stall {stall:.2} s, queue {queue:.2}, offered {offered:.3}",
                        size(1)
                    );
                    let is_followed = after <= (30.0 * to.as_secs_f64()).max(3.0) && goodput >= 0.9;
                    // As long as no packet passes, and as long as it takes to repair one.
                    let is_steady = stall <= 3.0 * 0.06;
                    judge.check(is_followed && is_steady && queue <= 1.0 && offered <= 1.05, shown);
                }
            }
        }
    }
    judge.end();
}
