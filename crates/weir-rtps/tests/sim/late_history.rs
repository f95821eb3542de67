//! The history that readers get that join late, over links of which nothing is known.

use core::time::Duration;

use weir_netsim::{Link, Loss, Rng};
use weir_rtps::path::Path;
use weir_rtps::qos::{Durability, History};
use weir_wire::SequenceNumber;

use crate::harness::{Answers, Engine, Judge, ReaderHost, Sim, address, is_long_run, medians, seeds};
use crate::links::{DATAGRAM_MAX, ethernet, needed};

/// A link that carries the history of a writer in a time.
#[derive(Debug, Clone, Copy)]
struct Conditions {
    rate_bps: u64,
    round_trip: Duration,
    loss: f64,
}

const HISTORY: Duration = Duration::from_secs(3);
const FAST_DDS: Engine = Engine::Together(Duration::from_millis(5));
const CONNEXT: Engine = Engine::After(Duration::ZERO);

impl Conditions {
    const fn new(mbps: u64, round_trip_ms: u64, loss: f64) -> Self {
        Self { rate_bps: mbps * 1_000_000, round_trip: Duration::from_millis(round_trip_ms), loss }
    }

    /// Returns links there and back, with the MTU of Ethernet. A queue holds the bytes of 60 ms.
    fn links(&self) -> [Link; 2] {
        let back = ethernet().delay(self.round_trip / 2).loss(Loss::random(self.loss));
        let queue_bytes = (self.rate_bps / 8 * 60 / 1000) as usize;
        [back.clone().rate_bps(self.rate_bps).queue_bytes(queue_bytes), back]
    }

    /// Returns how many samples of `size` bytes the link carries in that time.
    fn samples(&self, size: usize) -> u64 {
        let bytes = self.rate_bps as f64 / 8.0 * HISTORY.as_secs_f64();
        (bytes / needed(size, DATAGRAM_MAX) as f64).ceil() as u64
    }
}

/// A writer of samples of `size` bytes that are kept for late readers.
fn keeping(seed: u64, samples: u64, size: fn(u64) -> usize) -> Sim {
    let mut sim = Sim::unrecorded("late-history", seed, Link::new());
    sim.set_steps_max(40_000_000);
    sim.add_writer(|setup| {
        (setup.samples, setup.size) = (samples, size);
        setup.config.durability = Durability::TransientLocal;
        setup.config.kept_datagram_max = DATAGRAM_MAX;
    });
    sim
}

/// Adds a reader that wants history, at the end of a path.
fn add_late(sim: &mut Sim, link: &Conditions, path: &Path, engine: Option<Engine>) -> usize {
    let reader = sim.add_reader(|setup| {
        (setup.segment_max, setup.path) = (DATAGRAM_MAX, Some(path.clone()));
        setup.wants_history = true;
        engine.into_iter().for_each(|engine| setup.be_of(engine));
    });
    let [writer, there] = [*sim.writers[0].address.ip(), *sim.readers[reader].address.ip()];
    let [out, back] = link.links();
    sim.network.set_link(writer, there, out);
    sim.network.set_link(there, writer, back);
    reader
}

/// Writes everything, and lets some time pass.
fn write_all(sim: &mut Sim) {
    sim.run_until(|sim| sim.writers[0].is_done());
    sim.run_for(Duration::from_millis(100));
}

/// Returns the share of the link that is used until all of the history has arrived, and the bytes offered per byte
/// needed.
fn run(seed: u64, size: fn(u64) -> usize, link: &Conditions, engine: Option<Engine>) -> [f64; 2] {
    let samples = link.samples(size(1));
    let mut sim = keeping(seed, samples, size);
    let reader = add_late(&mut sim, link, &Path::new(), engine);
    write_all(&mut sim);
    sim.connect(0, reader);
    let begin = sim.now;
    // Up to thirty times as long as the link takes.
    _ = (0..HISTORY.as_millis() * 3).position(|_| {
        sim.run_for(Duration::from_millis(10));
        sim.is_delivered()
    });
    let [writer, there] = [*sim.writers[0].address.ip(), *sim.readers[reader].address.ip()];
    let delivered = sim.readers[reader].delivered(sim.writers[0].config.guid);
    let got = delivered as f64 * needed(size(1), DATAGRAM_MAX) as f64;
    let time = sim.now.since(begin).as_secs_f64();
    let offered = sim.network.traffic(writer, there).offered.bytes as f64;
    [got * 8.0 / time / link.rate_bps as f64, offered / got.max(1.0) * (1.0 - link.loss)]
}

fn check(judge: &mut Judge, link: &Conditions, engine: Option<Engine>, [used, offered]: [f64; 2]) {
    for size in [(|_| 1024) as fn(u64) -> usize, |_| 63_000, |_| 1 << 20] {
        let [its_used, its_offered] = medians(3, |seed| run(seed, size, link, engine));
        let shown =
            format!("{link:?}, {engine:?}, {} B: {its_used:.3} used, {its_offered:.3} offered", size(1));
        judge.check(its_used >= used && its_offered <= offered, shown);
    }
}

#[test]
fn the_history_of_a_late_joiner_uses_its_link_and_does_not_flood_it() {
    let mut judge = Judge::default();
    for link in [(5, 60, 0.0), (50, 4, 0.0), (50, 4, 0.1), (200, 80, 0.001)] {
        let link = Conditions::new(link.0, link.1, link.2);
        check(&mut judge, &link, None, [0.8, 1.06]);
    }
    judge.end();
}

/// A live stream of such samples uses no more of these links, apart from losses of a tenth (log).
#[test]
fn the_history_of_a_late_joiner_of_another_engine_does_not_flood_its_link() {
    let mut judge = Judge::default();
    for engine in [Engine::Cyclone, FAST_DDS, CONNEXT] {
        check(&mut judge, &Conditions::new(5, 60, 0.0), Some(engine), [0.2, 1.4]);
        check(&mut judge, &Conditions::new(50, 4, 0.0), Some(engine), [0.55, 1.06]);
        check(&mut judge, &Conditions::new(50, 4, 0.1), Some(engine), [0.005, 1.25]);
    }
    judge.end();
}

fn got(sim: &Sim, reader: usize) -> &[u64] {
    ReaderHost::taken(&sim.readers[reader], sim.writers[0].config.guid)
}

/// New samples for a reader on the same path, or on another, do not wait until a late joiner has the history.
#[test]
fn a_late_joiner_does_not_hold_up_other_readers() {
    let link = Conditions::new(20, 20, 0.0);
    for is_same_path in [false, true] {
        for history in [History::KeepAll, History::KeepLast(2000)] {
            let mut sim = Sim::unrecorded("beside-a-late-joiner", 1, Link::new());
            sim.set_steps_max(40_000_000);
            sim.add_writer(|setup| {
                (setup.samples, setup.size, setup.gap) = (6000, |_| 1024, Duration::from_millis(2));
                (setup.config.durability, setup.config.history) = (Durability::TransientLocal, history);
                setup.config.kept_datagram_max = DATAGRAM_MAX;
            });
            let paths = [Path::new(), Path::new()];
            let early = add_late(&mut sim, &link, &paths[0], None);
            let late = add_late(&mut sim, &link, &paths[usize::from(!is_same_path)], None);
            sim.connect(0, early);
            // A quarter of what the link carries is written: there are two megabytes of history then.
            sim.run_for(Duration::from_secs(4));
            sim.connect(0, late);
            let begin = sim.now;
            let mut behind_most = 0;
            while got(&sim, late).last() != got(&sim, early).last() {
                sim.run_for(Duration::from_millis(10));
                let behind = sim.writers[0].written - got(&sim, early).last().copied().unwrap_or(0);
                behind_most = behind_most.max(behind);
                assert!(
                    sim.now.since(begin) < Duration::from_secs(4),
                    "the late joiner does not catch up: {sim}"
                );
            }
            // Half a round trip, and what waits in a queue at the same bottleneck.
            let most = if is_same_path { 50 } else { 10 };
            assert!(
                behind_most <= most,
                "{history:?}, same path: {is_same_path}: {behind_most} samples behind"
            );
            sim.run_to_the_end();
        }
    }
}

#[test]
fn late_joiners_at_the_end_of_one_path_are_served_one_after_the_other() {
    let link = Conditions::new(20, 20, 0.0);
    let samples = link.samples(1024) / 2;
    let mut sim = keeping(1, samples, |_| 1024);
    let path = Path::new();
    let readers = [0; 3].map(|_| add_late(&mut sim, &link, &path, None));
    write_all(&mut sim);
    for reader in readers {
        sim.connect(0, reader);
        sim.run_for(Duration::from_millis(100));
    }
    let counts = readers.map(|reader| got(&sim, reader).len());
    assert!(counts[0] > 100 && counts[1..] == [0, 0], "{counts:?}");
    // For an application that waits for the history (DDS 1.4, 2.2.2.5.3.33).
    assert!(readers.iter().all(|reader| !sim.readers[*reader].core.is_caught_up()), "{sim}");
    // The others need not wait for one that leaves.
    sim.disconnect(0, readers[0]);
    sim.run_until(Sim::is_delivered);
    sim.run_to_the_end();
    assert!(readers[1..].iter().all(|reader| got(&sim, *reader).len() as u64 == samples), "{sim}");
    assert!(readers[1..].iter().all(|reader| sim.readers[*reader].core.is_caught_up()), "{sim}");
}

#[test]
fn a_late_joiner_that_falls_silent_does_not_hold_up_others_on_its_path() {
    let link = Conditions::new(20, 20, 0.0);
    let mut sim = keeping(1, link.samples(1024) / 2, |_| 1024);
    let path = Path::new();
    let readers = [0; 2].map(|_| add_late(&mut sim, &link, &path, None));
    write_all(&mut sim);
    sim.connect(0, readers[0]);
    sim.run_for(Duration::from_millis(100));
    let [silent, writer] = [*sim.readers[readers[0]].address.ip(), *sim.writers[0].address.ip()];
    sim.network.set_link(silent, writer, Link::new().loss(Loss::random(1.0)));
    sim.connect(0, readers[1]);
    sim.run_for(Duration::from_secs(10));
    assert_eq!(got(&sim, readers[1]).len() as u64, sim.writers[0].samples, "{sim}");
}

/// Readers that come back again and again, and know nothing each time, as forged ones could have it (SECURITY.md).
#[test]
fn late_joiners_that_return_are_not_sent_the_history_each_time() {
    let link = Conditions::new(50, 4, 0.0);
    let mut sim = keeping(1, link.samples(1024) / 6, |_| 1024);
    let reader = add_late(&mut sim, &link, &Path::new(), Some(CONNEXT));
    write_all(&mut sim);
    let history = sim.writers[0].samples as usize * needed(1024, DATAGRAM_MAX);
    for _ in 0..12 {
        sim.connect(0, reader);
        sim.run_for(Duration::from_secs(1));
        sim.disconnect(0, reader);
    }
    let [writer, there] = [*sim.writers[0].address.ip(), *sim.readers[reader].address.ip()];
    let offered = sim.network.traffic(writer, there).offered.bytes;
    // Once, twice on request, and 64 KiB, and as much again each half second.
    let most = 3 * history + (65_536 * 25) * 11 / 10;
    assert!(offered > 2 * history as u64, "{offered} of {history} B: {sim}");
    assert!(offered <= most as u64, "{offered} B, at most {most}: {sim}");
}

/// Sizes of samples, some of which are sent in fragments.
const SIZES: [fn(u64) -> usize; 4] =
    [|_| 100, |number| 100 + (number % 7) as usize * 900, |_| 6000, |number| 40 << (number % 11)];

/// Whatever the engines, the paths, the losses, the departures and the moves, every late joiner gets the history.
#[test]
fn every_late_joiner_gets_what_is_kept_for_it() {
    // In the last ones, answers are lost again and again, and a slow answer is taken for a reader that is gone.
    for seed in seeds(if is_long_run() { 400 } else { 40 }).into_iter().chain([167, 307]) {
        let mut rng = Rng::new(seed);
        let size = SIZES[rng.below(4) as usize];
        let mut sim = Sim::unrecorded("late-joiners", seed, Link::new());
        sim.set_steps_max(40_000_000);
        let gap = Duration::from_micros(50 << rng.below(8));
        let (is_all, depth) = (rng.chance(0.6), 5 + rng.below(300) as u32);
        sim.add_writer(|setup| {
            (setup.samples, setup.size, setup.gap) = (300, size, gap);
            setup.config.durability = Durability::TransientLocal;
            setup.config.history = if is_all { History::KeepAll } else { History::KeepLast(depth) };
            setup.config.kept_datagram_max = DATAGRAM_MAX;
            match rng.below(4) {
                0 => setup.publish_every(Duration::from_millis(1)),
                1 => setup.batch(),
                _ => {}
            }
        });
        let last = SequenceNumber(300);
        let mut path = Path::new();
        let mut readers = Vec::new();
        for _ in 0..2 + rng.below(3) {
            if rng.chance(0.5) {
                path = if rng.chance(0.2) { Path::with_rate_max(100_000) } else { Path::new() };
            }
            let link = Conditions {
                rate_bps: [1_000_000, 20_000_000, 300_000_000][rng.below(3) as usize],
                round_trip: Duration::from_micros(100 + rng.below(60_000)),
                loss: [0.0, 0.02, 0.2][rng.below(3) as usize],
            };
            let engine = [None, None, None, Some(Engine::Cyclone), Some(FAST_DDS), Some(CONNEXT)];
            readers.push(add_late(&mut sim, &link, &path, engine[rng.below(6) as usize]));
        }
        for reader in &readers {
            let most_us = 1 << (8 + rng.below(14));
            sim.run_for(Duration::from_micros(rng.below(most_us)));
            sim.connect(0, *reader);
        }
        sim.run_for(Duration::from_micros(rng.below(50_000)));
        let has_left = rng.chance(0.3);
        if has_left {
            sim.disconnect(0, readers.remove(0));
        } else if rng.chance(0.3) {
            sim.move_reader(readers[0], address(60));
            sim.run_for(Duration::from_micros(rng.below(5_000)));
            sim.tell_writer_of_move(0, readers[0], DATAGRAM_MAX, Path::new());
        }
        sim.run_until(|sim| sim.writers[0].is_done() && sim.writers[0].core.is_acknowledged(last));
        let before = sim.network.counters().sent;
        // The model of another engine does not answer for the reader of this one beside it.
        sim.run_for(Duration::from_secs(20));
        let after = sim.network.counters().sent - before;
        assert!(after <= 500, "{after} datagrams after everything was acknowledged: {sim}");
        for reader in readers {
            let guid = sim.writers[0].config.guid;
            let last = sim.readers[reader].delivered(guid);
            let all = if is_all || sim.readers[reader].answers != Answers::AtOnce { 300 } else { 1 };
            assert!(last >= all, "{last} of {all} samples of reader {reader}: {sim}");
        }
    }
}
