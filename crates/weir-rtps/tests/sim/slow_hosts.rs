//! Readers on several hosts, one of them behind a path that carries less than is written, or that does not answer.
//!
//! A KEEP_LAST writer, and one without reliable readers, does not hold up the others for it.

use core::time::Duration;

use weir_netsim::{Link, Loss, Rng};
use weir_rtps::path::Path;
use weir_rtps::qos::{Durability, History, Reliability};

use crate::harness::{Answers, Engine, Judge, Sim, address, is_long_run, medians, seeds};
use crate::links::{DATAGRAM_MAX, ethernet, needed};

/// The slow host's link.
#[derive(Debug, Clone, Copy)]
struct Slow {
    rate_bps: u64,
    round_trip: Duration,
    answers: Answers,
}

/// What is written, and to whom.
#[derive(Debug, Clone, Copy)]
struct Written {
    size: fn(u64) -> usize,
    gap: Duration,
    history: History,
    reliability: Reliability,
    /// The slow reader is best-effort, whatever the writer.
    is_aside: bool,
    /// The other reader is on a host of its own behind a link of 1 Gbit/s, or else on the writer's.
    is_far: bool,
    /// The rates of the paths to best-effort readers are configured. Otherwise, their answers show them.
    has_rates: bool,
}

/// What the readers got.
#[derive(Debug, Clone, Copy)]
struct Got {
    /// Share of the samples that the other reader got.
    share: f64,
    /// The longest time for which it lacked the newest sample, in milliseconds.
    late_ms: f64,
    /// Share of what its link carries, that the slow reader got.
    used: f64,
    /// Bytes offered to its link per byte needed for what it got.
    offered: f64,
    /// How much older than the newest sample its own newest one is, in samples.
    behind: f64,
}

impl Got {
    fn figures(&self) -> [f64; 5] {
        [self.share, self.late_ms, self.used, self.offered, self.behind]
    }
}

const FAST_DDS: Engine = Engine::Together(Duration::from_millis(5));
const FAST_BPS: u64 = 1_000_000_000;
const RUN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Returns a path of which nothing is known, or its rate if that is configured.
fn path(written: &Written, reliability: Reliability, rate_bps: u64) -> Path {
    let is_configured = written.has_rates && reliability == Reliability::BestEffort;
    if is_configured { Path::with_rate_max(rate_bps / 8) } else { Path::new() }
}

fn set_up(seed: u64, written: &Written, slow: &Slow) -> Sim {
    let mut sim = Sim::unrecorded("slow-host", seed, Link::new().delay(Duration::from_micros(20)));
    sim.set_steps_max(40_000_000);
    sim.add_writer(|setup| {
        (setup.samples, setup.size, setup.gap) = (u64::MAX, written.size, written.gap);
        (setup.config.history, setup.config.reliability) = (written.history, written.reliability);
    });
    sim.add_reader(|setup| {
        setup.config.reliability = written.reliability;
        if written.is_far {
            (setup.segment_max, setup.path) =
                (DATAGRAM_MAX, Some(path(written, setup.config.reliability, FAST_BPS)));
        }
    });
    sim.add_reader(|setup| {
        setup.config.reliability =
            if written.is_aside { Reliability::BestEffort } else { written.reliability };
        let path = path(written, setup.config.reliability, slow.rate_bps);
        (setup.segment_max, setup.path, setup.answers) = (DATAGRAM_MAX, Some(path), slow.answers);
        if let Answers::Of(engine) = slow.answers {
            setup.be_of(engine);
        }
    });
    let writer = *sim.writers[0].address.ip();
    let [other, there] = [0, 1].map(|reader: usize| *sim.readers[reader].address.ip());
    if written.is_far {
        let link = ethernet().delay(Duration::from_micros(100)).rate_bps(FAST_BPS).queue_bytes(1 << 18);
        sim.network.set_link(writer, other, link);
    }
    let back = ethernet().delay(slow.round_trip / 2);
    let queue_bytes = (slow.rate_bps / 8 * 100 / 1000) as usize;
    sim.network.set_link(there, writer, back.clone());
    sim.network.set_link(writer, there, back.rate_bps(slow.rate_bps).queue_bytes(queue_bytes));
    sim.connect_all();
    sim
}

fn run(seed: u64, written: &Written, slow: &Slow) -> Got {
    let mut sim = set_up(seed, written, slow);
    let guid = sim.writers[0].config.guid;
    let (mut late, mut late_max) = (Duration::ZERO, Duration::ZERO);
    let newest = |sim: &Sim, reader: usize| sim.readers[reader].taken(guid).last().copied().unwrap_or(0);
    let (mut before, mut behind, mut looks) = (0, 0, 0);
    for _ in 0..RUN.as_millis() / LOOK_EVERY.as_millis() {
        sim.run_for(LOOK_EVERY);
        let last = newest(&sim, 0);
        // One sample may be in flight.
        let is_late = last == before && last + 1 < sim.writers[0].written;
        late = if is_late { late + LOOK_EVERY } else { Duration::ZERO };
        (before, late_max) = (last, late_max.max(late));
        behind += sim.writers[0].written - newest(&sim, 1);
        looks += 1;
    }
    let written_count = sim.writers[0].written as f64;
    let got = sim.readers[1].arrived(guid) as f64 * needed((written.size)(1), DATAGRAM_MAX) as f64;
    let [writer, there] = [*sim.writers[0].address.ip(), *sim.readers[1].address.ip()];
    let traffic = sim.network.traffic(writer, there);
    Got {
        // The last one may be in flight.
        share: (sim.readers[0].taken(guid).len() + 1) as f64 / written_count,
        late_ms: late_max.as_secs_f64() * 1e3,
        used: got * 8.0 / (slow.rate_bps as f64 * RUN.as_secs_f64()),
        offered: traffic.offered.bytes as f64 / got.max(1.0),
        behind: behind as f64 / f64::from(looks),
    }
}

const SMALL: fn(u64) -> usize = |_| 8192;
const IMAGE: fn(u64) -> usize = |_| 1 << 20;

/// What the slow reader gets, at least, and what that takes, at most.
struct Bounds {
    used: f64,
    offered: f64,
    behind: f64,
}

/// The slow reader may get nothing.
const NONE: Bounds = Bounds { used: 0.0, offered: f64::INFINITY, behind: f64::INFINITY };

/// Streams of more than the slow links carry, with their rates.
fn streams(reliability: Reliability) -> impl Iterator<Item = (Written, u64)> {
    let history = History::KeepLast(10);
    let of = move |size, ms, is_far| {
        let gap = Duration::from_millis(ms);
        Written { size, gap, history, reliability, is_aside: false, is_far, has_rates: true }
    };
    [false, true]
        .into_iter()
        .flat_map(move |is_far| [(of(SMALL, 2, is_far), 20_000_000), (of(IMAGE, 33, is_far), 100_000_000)])
}

/// Checks that the other reader gets everything at once, and what the slow one gets.
fn check(judge: &mut Judge, written: &Written, slow: &Slow, bounds: &Bounds) {
    let [share, late_ms, used, offered, behind] = medians(1, |seed| run(seed, written, slow).figures());
    let are_others_free = share >= 0.999 && late_ms <= 25.0;
    let is_used = used >= bounds.used && offered <= bounds.offered && behind <= bounds.behind;
    let Written { size, history, reliability, is_aside, is_far, .. } = *written;
    judge.check(
        are_others_free && is_used,
        format!(
            "{} B, {history:?}, {reliability:?}, aside: {is_aside}, far: {is_far}, {slow:?}: the other got {share:.3}, \
             late by {late_ms:.0} ms; the slow one {used:.2} of its link, {offered:.2} bytes per byte, \
             {behind:.1} samples behind",
            size(1)
        ),
    );
}

#[test]
fn a_slow_path_does_not_hold_up_the_readers_on_other_paths() {
    let mut judge = Judge::default();
    for (written, rate_bps) in streams(Reliability::Reliable) {
        for round_trip_ms in [4, 60] {
            for answers in [Answers::AtOnce, Answers::Of(Engine::Cyclone), Answers::Of(FAST_DDS)] {
                let slow = Slow { rate_bps, round_trip: Duration::from_millis(round_trip_ms), answers };
                // Cyclone DDS assembles no more than 16 samples at a time.
                let is_narrow = answers == Answers::Of(Engine::Cyclone) && (written.size)(1) > 100_000;
                let (used, offered) = if is_narrow { (0.6, 1.15) } else { (0.9, 1.05) };
                check(&mut judge, &written, &slow, &Bounds { used, offered, behind: 40.0 });
            }
        }
    }
    judge.end();
}

#[test]
fn a_host_that_does_not_answer_does_not_hold_up_the_others() {
    let mut judge = Judge::default();
    for (written, rate_bps) in streams(Reliability::Reliable) {
        let slow = Slow { rate_bps, round_trip: Duration::from_millis(4), answers: Answers::Never };
        check(&mut judge, &written, &slow, &NONE);
    }
    judge.end();
}

#[test]
fn best_effort_readers_on_fast_paths_get_what_a_slow_path_does_not_take() {
    let mut judge = Judge::default();
    for (written, rate_bps) in streams(Reliability::BestEffort) {
        let slow = Slow { rate_bps, round_trip: Duration::from_millis(4), answers: Answers::AtOnce };
        check(&mut judge, &written, &slow, &Bounds { used: 0.95, offered: 1.05, ..NONE });
    }
    judge.end();
}

/// Before each reader had an account of its own while it is apart, the slow one was sent everything at once from time
/// to time, and small samples used 0.41 to 0.64 of its link, images 0.10 to 0.24.
#[test]
fn the_rate_of_a_slow_path_is_measured_while_its_best_effort_reader_is_apart() {
    let mut judge = Judge::default();
    for (written, rate_bps) in streams(Reliability::BestEffort) {
        // Bursts of images to a fast host whose rate is measured, too, exceed the queue of its link.
        let has_rates = written.is_far && (written.size)(1) > 100_000;
        let written = Written { has_rates, ..written };
        for round_trip_ms in [4, 60] {
            let round_trip = Duration::from_millis(round_trip_ms);
            let slow = Slow { rate_bps, round_trip, answers: Answers::AtOnce };
            check(&mut judge, &written, &slow, &Bounds { used: 0.9, offered: 1.05, ..NONE });
        }
    }
    judge.end();
}

#[test]
fn a_best_effort_reader_on_a_slow_path_does_not_hold_up_reliable_ones() {
    let mut judge = Judge::default();
    for history in [History::KeepLast(10), History::KeepAll] {
        for (written, rate_bps) in streams(Reliability::Reliable) {
            let written = Written { history, is_aside: true, ..written };
            let slow = Slow { rate_bps, round_trip: Duration::from_millis(4), answers: Answers::AtOnce };
            check(&mut judge, &written, &slow, &Bounds { used: 0.9, offered: 1.05, ..NONE });
        }
    }
    judge.end();
}

/// Sizes of samples, some of which are sent in fragments.
const SIZES: [fn(u64) -> usize; 4] =
    [|_| 100, |number| 100 + (number % 7) as usize * 900, |_| 60_000, |number| 40 << (number % 14)];

/// Adds a reader at the end of some path, perhaps that of the reader before.
fn add_any_reader(sim: &mut Sim, rng: &mut Rng, is_first: bool, last_path: &mut Path) {
    let rate_bps = [2_000_000, 20_000_000, 300_000_000][rng.below(3) as usize];
    let (is_near, is_reliable) = (rng.chance(0.3), is_first || rng.chance(0.7));
    if !rng.chance(0.3) {
        *last_path = if rng.chance(0.3) { Path::with_rate_max(rate_bps / 16) } else { Path::new() };
    }
    let path = last_path.clone();
    let keeps_history = sim.writers[0].config.durability != Durability::Volatile;
    let reader = sim.add_reader(|setup| {
        if !is_near {
            (setup.segment_max, setup.path) = (DATAGRAM_MAX, Some(path));
        }
        setup.wants_history = keeps_history && rng.chance(0.5);
        setup.config.reliability = if is_reliable { Reliability::Reliable } else { Reliability::BestEffort };
    });
    let [writer, there] = [*sim.writers[0].address.ip(), *sim.readers[reader].address.ip()];
    if is_near {
        return;
    }
    let loss = [0.0, 0.02, 0.2][rng.below(3) as usize];
    let back = ethernet().delay(Duration::from_micros(200 + rng.below(40_000))).loss(Loss::random(loss));
    sim.network.set_link(there, writer, back.clone());
    sim.network.set_link(
        writer,
        there,
        back.rate_bps(rate_bps).queue_bytes(20_000 + rng.below(200_000) as usize),
    );
}

#[test]
fn every_stream_to_readers_on_unequal_paths_ends_with_what_is_to_be_delivered() {
    // In the last one, a best-effort reader is apart when all others leave.
    for seed in seeds(if is_long_run() { 400 } else { 60 }).into_iter().chain([865]) {
        let mut rng = Rng::new(seed);
        let is_changing = rng.chance(0.5);
        let mut sim = Sim::new("unequal-paths", seed, Link::new().delay(Duration::from_micros(20)));
        sim.set_steps_max(20_000_000);
        sim.add_writer(|setup| {
            let depth = [1, 3, 20][rng.below(3) as usize];
            setup.config.history = if rng.chance(0.2) { History::KeepAll } else { History::KeepLast(depth) };
            // A reader that comes back is not sent again what its application has taken.
            let keeps_history = !is_changing && rng.chance(0.5);
            setup.config.durability =
                if keeps_history { Durability::TransientLocal } else { Durability::Volatile };
            setup.size = SIZES[rng.below(4) as usize];
            (setup.samples, setup.gap) = (400, Duration::from_micros(50 << rng.below(8)));
            if !keeps_history && rng.chance(0.2) {
                setup.config.max_samples = Some(25);
            }
            match rng.below(4) {
                0 => setup.publish_every(Duration::from_micros(100)),
                1 => setup.batch(),
                _ => {}
            }
        });
        let readers = 2 + rng.below(3) as usize;
        let mut path = Path::new();
        (0..readers).for_each(|reader| add_any_reader(&mut sim, &mut rng, reader == 0, &mut path));
        for reader in 0..readers {
            sim.connect(0, reader);
            sim.run_for(Duration::from_micros(rng.below(20_000)));
        }
        // Readers come, go and move meanwhile.
        for step in 0..if is_changing { rng.below(4) } else { 0 } {
            let reader = 1 + rng.below(readers as u64 - 1) as usize;
            sim.disconnect(0, reader);
            sim.run_for(Duration::from_micros(rng.below(20_000)));
            sim.connect(0, reader);
            if rng.chance(0.5) {
                sim.move_reader(0, address(60 + step as usize));
                sim.run_for(Duration::from_micros(rng.below(5_000)));
                sim.tell_writer_of_move(0, 0, DATAGRAM_MAX, Path::new());
            }
            sim.run_for(Duration::from_micros(rng.below(20_000)));
        }
        sim.run_to_the_end();
    }
}

#[test]
fn readers_at_the_end_of_one_slow_path_get_equal_shares() {
    for (size, is_reliable) in [(SMALL, true), (|_| 500, true), (SMALL, false), (IMAGE, true), (IMAGE, false)]
    {
        let mut sim = Sim::unrecorded("one-slow-path", 1, Link::new().delay(Duration::from_micros(200)));
        sim.set_steps_max(40_000_000);
        sim.add_writer(|setup| {
            (setup.samples, setup.size) = (u64::MAX, size);
            setup.gap = Duration::from_nanos(size(1) as u64 * 100);
            setup.config.history = History::KeepLast(10);
        });
        sim.add_reader(|_| {});
        // Eight megabytes per second are written.
        let path = Path::with_rate_max(4_000_000);
        for _ in 0..3 {
            sim.add_reader(|setup| {
                (setup.segment_max, setup.path) = (DATAGRAM_MAX, Some(path.clone()));
                if !is_reliable {
                    setup.config.reliability = Reliability::BestEffort;
                }
            });
        }
        sim.connect_all();
        sim.run_for(RUN);
        let guid = sim.writers[0].config.guid;
        let got = [1, 2, 3].map(|reader: usize| sim.readers[reader].arrived(guid) as f64);
        let bytes = got.map(|count| count * needed(size(1), DATAGRAM_MAX) as f64 / (4e6 * RUN.as_secs_f64()));
        let (least, sum) = (bytes.iter().copied().fold(1.0, f64::min), bytes.iter().sum::<f64>());
        assert!(
            least > 0.25 && sum > 0.85 && sum < 1.05,
            "{} B, reliable: {is_reliable}: {bytes:?}",
            size(1)
        );
    }
}
