//! A path that changes under a saturated writer: another round trip, as when a route changes or a radio hands over, or
//! another address of the reader, with another rate and MTU behind it.

use core::time::Duration;
use std::net::Ipv4Addr;

use weir_netsim::link::HEADER_BYTES;
use weir_netsim::{Link, Loss};
use weir_rtps::path::Path;

use crate::harness::{Engine, Judge, Sim, address, medians};
use crate::links::{DATAGRAM_MAX, JITTER_MIN, needed, queue_max};

const RATE_BPS: u64 = 50_000_000;
/// Seconds until the round trip changes, until it changes back, and until the end.
const TIMES: [u64; 3] = [5, 20, 28];
/// What is counted together, in milliseconds.
const BIN_MS: u64 = 10;

/// What happens after a change.
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

impl Learned {
    fn figures(&self) -> [f64; 5] {
        [self.after, self.goodput, self.stall, self.queue, self.offered]
    }
}

/// A link to the reader as it is for some time.
#[derive(Debug, Clone, Copy)]
struct Conditions {
    rate_bps: u64,
    round_trip: Duration,
    loss: f64,
    /// Of new samples. The fragments of older ones keep their length.
    datagram_max: u16,
}

impl Conditions {
    /// Returns links there and back, with these conditions from the start on. A queue holds the bytes of 60 ms.
    fn links(&self) -> [Link; 2] {
        let mtu = usize::from(self.datagram_max) + HEADER_BYTES;
        let back = Link::new().fragment_above(mtu).delay(self.round_trip / 2);
        let queue_bytes = (self.rate_bps / 8 * 60 / 1000) as usize;
        let there = back.clone().jitter(JITTER_MIN).rate_bps(self.rate_bps).queue_bytes(queue_bytes);
        [there.loss(Loss::random(self.loss)).series(Duration::from_millis(BIN_MS)), back]
    }
}

/// A saturated writer of samples of `size` bytes, and a reader behind links that change.
struct Saturated {
    sim: Sim,
    path: Path,
    size: usize,
}

impl Saturated {
    fn new(seed: u64, size: fn(u64) -> usize, links: [Link; 2]) -> Self {
        Self::with_reader(seed, size, links, None)
    }

    /// `engine`: that of the reader, if it is another one.
    fn with_reader(
        seed: u64,
        size: fn(u64) -> usize,
        [there, back]: [Link; 2],
        engine: Option<Engine>,
    ) -> Self {
        let mut sim = Sim::unrecorded("path-change", seed, Link::new());
        sim.set_steps_max(40_000_000);
        sim.add_writer(|setup| setup.saturate(size));
        let path = Path::new();
        sim.add_reader(|setup| {
            (setup.segment_max, setup.path) = (DATAGRAM_MAX, Some(path.clone()));
            engine.into_iter().for_each(|engine| setup.be_of(engine));
        });
        let mut new = Self { sim, path, size: size(1) };
        let [writer, reader] = new.hosts();
        new.sim.network.set_link(writer, reader, there);
        new.sim.network.set_link(reader, writer, back);
        new.sim.connect(0, 0);
        new
    }

    fn hosts(&self) -> [Ipv4Addr; 2] {
        [*self.sim.writers[0].address.ip(), *self.sim.readers[0].address.ip()]
    }

    /// Moves the reader to another address behind other links, of which its writer is notified `later`.
    fn move_reader(&mut self, to: &Conditions, later: Duration) {
        self.path = Path::new();
        let [writer, _] = self.hosts();
        let moved = address(50);
        let [there, back] = to.links();
        self.sim.network.set_link(writer, *moved.ip(), there);
        self.sim.network.set_link(*moved.ip(), writer, back);
        self.sim.move_reader(0, moved);
        self.sim.run_for(later);
        self.sim.tell_writer_of_move(0, 0, to.datagram_max, self.path.clone());
    }

    /// Runs for `count` bins and returns what happened in each.
    fn run(&mut self, count: u64, datagram_max: u16) -> Bins {
        let guid = self.sim.writers[0].config.guid;
        let needed = needed(self.size, datagram_max) as f64;
        let first = (self.sim.now.0 / 1_000_000 / BIN_MS) as usize;
        let mut delivered = self.sim.readers[0].taken(guid).len();
        let mut taken = Vec::new();
        for bin in 0..count {
            self.sim.run_for(Duration::from_millis(BIN_MS));
            let before = core::mem::replace(&mut delivered, self.sim.readers[0].taken(guid).len());
            taken.push((delivered - before) as f64 * needed);
            trace(bin, &self.path, taken.last().copied().unwrap_or_default());
        }
        let [writer, reader] = self.hosts();
        let traffic = self.sim.network.traffic(writer, reader);
        let bins = traffic.series.bins();
        let of = |(at, taken): (usize, f64)| {
            // Nothing has been offered to a link since its last bin.
            let bin = bins.get(first + at);
            bin.map_or([taken, 0.0, 0.0], |bin| [taken, bin.offered_bytes as f64, bin.queue_bytes as f64])
        };
        Bins(taken.into_iter().enumerate().map(of).collect())
    }

    /// Asserts that no sample is missing so far.
    fn check_complete(&self) {
        let taken = self.sim.readers[0].taken(self.sim.writers[0].config.guid);
        assert!(taken.iter().copied().eq(1..=taken.len() as u64), "samples are missing: {}", self.sim);
    }
}

/// Payload delivered, bytes offered and bytes queued, in each bin, as the link carries them.
struct Bins(Vec<[f64; 3]>);

impl Bins {
    /// Runs a writer of samples of `size` bytes over a link with each of `round_trips` in turn.
    fn of_round_trips(round_trips: [Duration; 3], loss: f64, size: fn(u64) -> usize, seed: u64) -> Self {
        let [first, second, third] = round_trips.map(|round_trip| round_trip / 2);
        let [at, back_at, end] = TIMES.map(Duration::from_secs);
        let conditions =
            Conditions { rate_bps: RATE_BPS, round_trip: 2 * first, loss, datagram_max: DATAGRAM_MAX };
        let links = conditions.links().map(|link| link.delay_step(at, second).delay_step(back_at, third));
        let count = end.as_millis() as u64 / BIN_MS;
        Saturated::new(seed, size, links).run(count, DATAGRAM_MAX)
    }

    /// Returns what happens from one time to another, in seconds. The link is as in `conditions` meanwhile.
    fn learned(&self, [from, to]: [u64; 2], conditions: &Conditions) -> Learned {
        let bins = |seconds: f64| (seconds * 1000.0) as usize / BIN_MS as usize;
        let bins = &self.0[bins(from as f64)..bins(to as f64)];
        let Conditions { rate_bps, round_trip, loss, .. } = *conditions;
        let carried = rate_bps as f64 / 8.0 * BIN_MS as f64 / 1000.0 * (1.0 - loss);
        let sum = |bins: &[[f64; 3]], which: usize| bins.iter().map(|bin| bin[which]).sum::<f64>();
        let share = |bins: &[[f64; 3]]| sum(bins, 0) / (carried * bins.len() as f64);
        let width = 500 / BIN_MS as usize;
        let seconds = |bins: usize| bins as f64 * BIN_MS as f64 / 1000.0;
        let after = bins.windows(width).position(|bins| share(bins) >= 0.9).unwrap_or(bins.len());
        let stall = bins.split(|bin| bin[0] > 0.0).map(<[_]>::len).max().unwrap_or(0);
        let later = &bins[3000 / BIN_MS as usize..];
        let queue = sum(later, 2) / later.len() as f64 * 8.0 / rate_bps as f64;
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
                    let bins = Bins::of_round_trips(round_trips, loss, size, seed);
                    let [at, back_at, end] = TIMES;
                    let conditions = |round_trip| Conditions {
                        rate_bps: RATE_BPS,
                        round_trip,
                        loss,
                        datagram_max: DATAGRAM_MAX,
                    };
                    let there = bins.learned([at, back_at], &conditions(round_trips[1]));
                    let back = bins.learned([back_at, end], &conditions(round_trips[2]));
                    let ([a, b, c, d, e], [f, g, h, i, j]) = (there.figures(), back.figures());
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

/// A reader that moves to another address is on another path: its rate, round trip and MTU are learned anew, and
/// nothing is lost of what was under way to the old address, nor of what was sent there until the writer knew.
#[test]
fn a_path_whose_address_changes_is_learned_anew() {
    const SECONDS: u64 = 8;
    let mut judge = Judge::default();
    let [lan, lte, wan] = [(50, 4, 0.0, 1472), (5, 60, 0.005, 1372), (200, 80, 0.001, 1472)].map(
        |(mbps, round_trip_ms, loss, datagram_max)| Conditions {
            rate_bps: mbps * 1_000_000,
            round_trip: Duration::from_millis(round_trip_ms),
            loss,
            datagram_max,
        },
    );
    for (name, from, to) in [("lan to lte", lan, lte), ("lte to wan", lte, wan), ("wan to lan", wan, lan)] {
        for later in [0, 1000].map(Duration::from_millis) {
            for size in [(|_| 1024) as fn(u64) -> usize, |_| 63_000] {
                let [after, goodput, stall, queue, offered] = medians(3, |seed| {
                    let mut saturated = Saturated::new(seed, size, from.links());
                    saturated.sim.run_for(Duration::from_secs(3));
                    saturated.move_reader(&to, later);
                    let bins = saturated.run(SECONDS * 1000 / BIN_MS, to.datagram_max);
                    saturated.check_complete();
                    bins.learned([0, SECONDS], &to).figures()
                });
                let shown = format!(
                    "{name}, known after {later:?}, {} B: 0.9 after {after:.2} s, goodput {goodput:.3}, \
                     stall {stall:.2} s, queue {queue:.2}, offered {offered:.3}",
                    size(1)
                );
                let round_trip = to.round_trip.as_secs_f64();
                let pause = if later.is_zero() { 0.55 } else { 0.8 };
                let is_followed = after <= (30.0 * round_trip).max(3.0) && goodput >= 0.9;
                // On the lte link, a sample of 63 000 B takes a tenth of a second.
                let is_steady = stall <= pause;
                judge.check(is_followed && is_steady && queue <= 1.0 && offered <= 1.1, shown);
            }
        }
    }
    judge.end();
}

#[test]
fn a_reader_of_another_engine_that_moves_is_served_at_its_new_address() {
    let [lan, lte] = [(50, 4), (5, 60)].map(|(mbps, round_trip_ms)| Conditions {
        rate_bps: mbps * 1_000_000,
        round_trip: Duration::from_millis(round_trip_ms),
        loss: 0.0,
        datagram_max: DATAGRAM_MAX,
    });
    let mut judge = Judge::default();
    for (from, to) in [(lan, lte), (lte, lan)] {
        for size in [(|_| 1024) as fn(u64) -> usize, |_| 63_000, |_| 1 << 20] {
            for engine in [Engine::After(Duration::ZERO), Engine::Together(Duration::from_millis(5))] {
                let mut saturated = Saturated::with_reader(1, size, from.links(), Some(engine));
                saturated.sim.run_for(Duration::from_secs(8));
                saturated.move_reader(&to, Duration::ZERO);
                let guid = saturated.sim.writers[0].config.guid;
                let before = saturated.sim.readers[0].delivered(guid);
                saturated.sim.run_for(Duration::from_secs(16));
                let samples = saturated.sim.readers[0].delivered(guid) - before;
                let needed = (samples * needed(size(1), DATAGRAM_MAX)) as f64;
                let share = needed * 8.0 / 16.0 / to.rate_bps as f64;
                let shown = format!("to {} bit/s, {} B, {engine:?}: {share:.3}", to.rate_bps, size(1));
                // A reader that answers at once requests what is in flight, and gets less after that.
                judge.check(share > 0.4, shown);
            }
        }
    }
    judge.end();
}

/// A link that stands still for a moment, again and again: a radio that sends a frame again, a virtual machine that
/// waits for a processor. Afterwards it carries as much as before.
#[test]
fn a_link_that_stands_still_for_a_moment_is_no_slower_one() {
    let mut judge = Judge::default();
    for (rate_bps, round_trip_us, still_ms, every_ms) in [
        (100_000_000, 500, 20, 500),
        (100_000_000, 500, 10, 250),
        (50_000_000, 4_000, 20, 500),
        (50_000_000, 4_000, 50, 500),
        (20_000_000, 60_000, 50, 500),
    ] {
        for size in [(|_| 1024) as fn(u64) -> usize, |_| 63_000] {
            let [goodput, queue, offered] = medians(3, |seed| {
                let round_trip = Duration::from_micros(round_trip_us);
                let conditions = Conditions { rate_bps, round_trip, loss: 0.0, datagram_max: DATAGRAM_MAX };
                let [mut there, back] = conditions.links();
                let ms = Duration::from_millis;
                for at in (every_ms..9_000).step_by(every_ms as usize) {
                    there = there.rate_step(ms(at), 1).rate_step(ms(at + still_ms), rate_bps);
                }
                let bins = Saturated::new(seed, size, [there, back]).run(900, DATAGRAM_MAX);
                let learned = bins.learned([0, 9], &conditions);
                let moving = 1.0 - still_ms as f64 / every_ms as f64;
                [learned.goodput / moving, learned.queue, learned.offered]
            });
            let shown = format!(
                "{rate_bps} bit/s, {round_trip_us} us, still {still_ms} of {every_ms} ms, {} B: goodput {goodput:.3}, \
                 queue {queue:.2}, offered {offered:.3}",
                size(1)
            );
            judge.check(goodput >= 0.9 && offered <= 1.05, shown);
        }
    }
    judge.end();
}
