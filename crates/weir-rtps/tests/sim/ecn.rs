//! Explicit congestion notification: links that mark, paths that handle the marks wrongly, and readers that lie about
//! them.

use core::time::Duration;

use weir_netsim::{Ecn, Link, LinkPair};
use weir_rtps::path::{EcnState, Path, PathReport};

use crate::harness::{Judge, Sim, medians};
use crate::links::{DATAGRAM_MAX, ways};

/// What a run has shown, after the first quarter of it.
#[derive(Debug)]
struct Shown {
    /// Payload delivered, as a share of the link's rate.
    goodput: f64,
    /// Mean wait in the queue, milliseconds.
    queue_ms: f64,
    /// Packets that a full queue dropped.
    dropped: u64,
    /// Packets that the link marked in the whole run.
    marked: u64,
    report: PathReport,
}

/// Sends samples of `size` bytes as fast as the link allows, to a reader whose kernel reports what `sees` makes of the
/// ECN field.
fn run(link: &str, seed: u64, path: Path, size: fn(u64) -> usize, sees: fn(Ecn) -> Ecn) -> Shown {
    let mut sim = Sim::unrecorded("ecn", seed, Link::new());
    sim.set_steps_max(40_000_000);
    sim.add_writer(|setup| {
        (setup.samples, setup.size, setup.gap) = (u64::MAX, size, Duration::from_micros(2));
    });
    sim.add_reader(|setup| {
        (setup.segment_max, setup.path, setup.sees_ecn) = (DATAGRAM_MAX, Some(path.clone()), sees);
    });
    let (from, to) = (*sim.writers[0].address.ip(), *sim.readers[0].address.ip());
    let [there, back] = ways(link);
    sim.network.set_link(from, to, there);
    sim.network.set_link(to, from, back);
    sim.connect(0, 0);
    let guid = sim.writers[0].config.guid;
    let pair: LinkPair = link.parse().expect("a link");
    let rate = pair.down.first_rate_bps().expect("a link with a rate") as f64;
    // Fast links take less time.
    let time = if rate > 60e6 { TIME / 4 } else { TIME };
    sim.run_for(time / 4);
    let (before, samples) = (sim.network.traffic(from, to), sim.readers[0].taken(guid).len());
    sim.run_for(time * 3 / 4);
    let after = sim.network.traffic(from, to);
    let samples = sim.readers[0].taken(guid).len() - samples;
    let carried = rate / 8.0 * (time * 3 / 4).as_secs_f64();
    let [first, all] = [&before, &after].map(|it| it.offered.packets as f64);
    let [first_ms, all_ms] = [&before, &after].map(|it| it.queue.mean_wait().as_secs_f64() * 1e3);
    Shown {
        goodput: samples as f64 * size(1) as f64 / carried,
        queue_ms: (all_ms * all - first_ms * first) / (all - first),
        dropped: after.queue_full.packets - before.queue_full.packets,
        marked: after.marked.packets,
        report: path.report(),
    }
}

/// A reader that reports something else: its name, and what it makes of the field of a datagram.
type Lie = (&'static str, fn(Ecn) -> Ecn);

const TIME: Duration = Duration::from_secs(20);

/// A reader that reports what has arrived.
const HONEST: fn(Ecn) -> Ecn = |ecn| ecn;

const SIZES: [fn(u64) -> usize; 3] = [|_| 1024, |_| 8192, |_| 1 << 20];

#[test]
fn where_a_link_marks_its_queue_is_shorter_and_drops_nothing() {
    // With the most of the mean queue that is left, and the least of the goodput. Where the path keeps its queue much
    // shorter than what is marked anyway, there is less to gain: a queue of 3.25 ms is short enough there.
    let links = [
        ("lte,ecn=5ms", 0.6, 0.95),
        ("wifi,ecn=5ms", 1.0, 0.95),
        ("rate=20M,rtt=60ms,queue=256k,ecn=5ms", 0.95, 0.92),
    ];
    let mut judge = Judge::default();
    for (link, queue_max, goodput_min) in links {
        for size in SIZES {
            let seeds = if link.starts_with("rate") { 1 } else { 15 };
            let [goodput, queue, queue_ms, marked, is_used, dropped] = medians(seeds, |seed| {
                let [without, with] =
                    [Path::new(), Path::new().with_ecn()].map(|path| run(link, seed, path, size, HONEST));
                assert!(without.marked == 0 && without.report.ecn == EcnState::Unused, "{without:?}");
                [
                    with.goodput / without.goodput,
                    with.queue_ms / without.queue_ms,
                    with.queue_ms,
                    with.marked.min(with.report.marked_datagrams) as f64,
                    f64::from(u8::from(with.report.ecn == EcnState::InUse)),
                    with.dropped as f64,
                ]
            });
            let shown = format!(
                "{link} {} B: with ECN {goodput:.3} of the goodput, {queue:.2} of the queue ({queue_ms:.2} ms), \
                 {marked} \
                 marked, in use {is_used}, {dropped} dropped",
                size(1)
            );
            let is_short = queue < queue_max || link.starts_with("rate") && queue_ms < 3.25;
            let is_met = goodput > goodput_min && is_short;
            judge.check(is_met && marked > 100.0 && is_used > 0.0 && dropped == 0.0, shown);
        }
    }
    judge.end();
}

#[test]
fn a_path_that_handles_the_field_wrongly_goes_on_without_it() {
    let mut judge = Judge::default();
    for (link, states) in [
        ("lte,ecn=bleach", [EcnState::Cleared; 2]),
        ("lan100,ecn=bleach", [EcnState::Cleared; 2]),
        ("lte,ecn=all", [EcnState::Implausible; 2]),
        ("lan100,ecn=all", [EcnState::Implausible; 2]),
        ("wifi,ecn=all,duplicate=1%", [EcnState::Implausible, EcnState::Invented]),
    ] {
        for size in SIZES {
            let [goodput] = medians(if link.starts_with("lan") { 1 } else { 3 }, |seed| {
                let [without, with] =
                    [Path::new(), Path::new().with_ecn()].map(|path| run(link, seed, path, size, HONEST));
                let shown = format!("{link} {} B, seed {seed}: {without:?} and {with:?}", size(1));
                assert!(states.contains(&with.report.ecn), "{shown}");
                // It was soon noticed.
                assert!(with.report.ecn_datagrams * 4 < with.report.sent_bytes / 1500, "{shown}");
                [with.goodput / without.goodput]
            });
            judge.check(goodput > 0.9, format!("{link} {} B: {goodput:.3} of the goodput", size(1)));
        }
    }
    judge.end();
}

#[test]
fn a_reader_that_hides_marks_or_invents_them_gains_nothing_and_harms_nobody() {
    let lies: [Lie; 4] = [
        ("hides", |ecn| if ecn == Ecn::Ce { Ecn::Ect0 } else { ecn }),
        ("says nothing", |_| Ecn::NotEct),
        ("says that everything is marked", |ecn| if ecn == Ecn::NotEct { ecn } else { Ecn::Ce }),
        ("reports what was never sent", |_| Ecn::Ce),
    ];
    let mut judge = Judge::default();
    for link in ["lte,ecn=5ms", "rate=20M,rtt=20ms,queue=256k,ecn=5ms"] {
        let of = |path: fn() -> Path, sees: fn(Ecn) -> Ecn| {
            // Jitter makes the queue of lte differ from seed to seed by a third.
            medians(41, |seed| {
                let shown = run(link, seed, path(), SIZES[0], sees);
                [shown.goodput, shown.queue_ms, shown.dropped as f64]
            })
        };
        let [goodput, queue_ms, dropped] = of(Path::new, HONEST);
        for (lie, sees) in lies {
            let with = of(|| Path::new().with_ecn(), sees);
            let shown =
                format!("{link} {lie}: {with:.3?}; without ECN {goodput:.3}, {queue_ms:.3}, {dropped}");
            // As if there was no ECN.
            let is_as_bad = with[1] < queue_ms * 1.1 && with[2] <= dropped;
            let is_as_good = with[0] < goodput * 1.02 && with[0] > goodput * 0.9;
            judge.check(is_as_bad && is_as_good, shown);
        }
    }
    judge.end();
}

#[test]
fn two_participants_share_a_link_that_marks() {
    let [sum, jain] = medians(3, two_participants);
    assert!(jain > 0.9 && sum > 50.0 * 0.83, "{sum} Mbit/s, Jain's index {jain:.3}");
}

/// The megabits per second that two participants get, and Jain's index of them.
fn two_participants(seed: u64) -> [f64; 2] {
    let mut sim = Sim::unrecorded("shared", seed, Link::new());
    sim.set_steps_max(40_000_000);
    let [there, back] = ways("rate=50M,rtt=20ms,queue=256k,ecn=5ms");
    for index in 0..2 {
        sim.add_writer(|setup| {
            (setup.samples, setup.size, setup.gap) = (u64::MAX, SIZES[0], Duration::from_micros(2));
        });
        sim.add_reader(|setup| {
            (setup.segment_max, setup.path) = (DATAGRAM_MAX, Some(Path::new().with_ecn()));
        });
        let (from, to) = (*sim.writers[index].address.ip(), *sim.readers[index].address.ip());
        if index == 0 {
            sim.network.set_link(from, to, there.clone());
        } else {
            let first = (*sim.writers[0].address.ip(), *sim.readers[0].address.ip());
            sim.network.share_link(from, to, first);
        }
        sim.network.set_link(to, from, back.clone());
        sim.connect(index, index);
    }
    sim.run_for(TIME / 2);
    let taken = |sim: &Sim| [0, 1].map(|at| sim.readers[at].taken(sim.writers[at].config.guid).len() as f64);
    let before = taken(&sim);
    sim.run_for(TIME);
    let after = taken(&sim);
    let rates = [0, 1].map(|at| (after[at] - before[at]) * 1024.0 * 8.0 / TIME.as_secs_f64() / 1e6);
    let jain = (rates[0] + rates[1]).powi(2) / (2.0 * (rates[0].powi(2) + rates[1].powi(2)));
    [rates[0] + rates[1], jain]
}

#[test]
fn nothing_is_asked_or_marked_on_an_open_path() {
    let path = Path::new().with_ecn();
    let mut sim = Sim::pair("open", 1, Link::new().delay(Duration::from_micros(50)), |setup| {
        (setup.size, setup.samples) = (|_| 1024, 20_000);
    });
    sim.disconnect(0, 0);
    sim.readers[0].path = Some(path.clone());
    sim.set_steps_max(10_000_000);
    sim.connect(0, 0);
    sim.run_to_the_end();
    let report = path.report();
    assert!(report.rate.is_none() && report.sent_bytes > 20_000_000, "{report:?}");
    assert_eq!((report.ecn, report.ecn_datagrams), (EcnState::Unused, 0));
    assert_eq!(sim.readers[0].config.ecn.usage(), weir_rtps::ecn::EcnUse::Unused);
}
