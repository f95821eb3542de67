//! The lines of the table.

use weir_results::{Reliability, WaitStrategy, format_size};

use super::select::{
    CPU, Figure, GBPS, OURS, P50, P99, P99_OF_INTERVALS, Point, RATE, RATE_WITHOUT_LOSS, Side,
};
use super::{Goal, Limit};

/// Returns every line that cases decide.
pub(super) fn all() -> Vec<Goal> {
    let mut goals = Vec::new();
    one_way(&mut goals);
    one_way_spinning(&mut goals);
    under_load(&mut goals);
    batched(&mut goals);
    best_effort(&mut goals);
    unbatched(&mut goals);
    large(&mut goals);
    keyed(&mut goals);
    processor_time(&mut goals);
    under_loss(&mut goals);
    goals
}

const PEERS: [&str; 4] = ["cyclonedds", "cyclonedds-tuned", "fastdds", "fastdds-tuned"];
const UDP: &str = "udp";
const BEST_PEER: &str = "best peer";
const SIZES: [u64; 3] = [32, 1024, 8192];
use Reliability::{BestEffort, Reliable};

fn one_way(goals: &mut Vec<Goal>) {
    let latency = |engine, reliability, size| Point::latency("latency", engine, reliability, size);
    for (reliability, word, [udp, cyclonedds, fastdds]) in
        [(BestEffort, "", [1.10, 0.90, 0.70]), (Reliable, ", reliable", [1.15, 0.85, 0.50])]
    {
        for size in SIZES {
            let bases = [
                ("raw UDP", udp, latency(UDP, Reliability::None, size)),
                ("Cyclone DDS", cyclonedds, latency("cyclonedds", reliability, size)),
                ("Fast DDS", fastdds, latency("fastdds", reliability, size)),
            ];
            goals.extend(bases.map(|(name, limit, base)| Goal {
                measure: format!("one-way p50, block{word}, {}", format_size(size)),
                limit: Limit::AtMost(limit),
                figure: P50,
                ours: Side(vec![latency(OURS, reliability, size)]),
                base: Some((name, Side(vec![base]))),
            }));
        }
    }
}

fn one_way_spinning(goals: &mut Vec<Goal>) {
    let latency = |engine, reliability, size| Point {
        wait: WaitStrategy::Spin,
        ..Point::latency("spin", engine, reliability, size)
    };
    for (reliability, word) in [(BestEffort, ""), (Reliable, ", reliable")] {
        for size in SIZES {
            let goal = |limit, name, base: Vec<Point>| Goal {
                measure: format!("one-way p50, spin{word}, {}", format_size(size)),
                limit: Limit::AtMost(limit),
                figure: P50,
                ours: Side(vec![latency(OURS, reliability, size)]),
                base: Some((name, Side(base))),
            };
            goals.push(goal(1.35, "raw UDP", vec![latency(UDP, Reliability::None, size)]));
            if reliability == Reliable {
                goals.push(goal(
                    1.0,
                    "Aeron",
                    AERON.map(|engine| latency(engine, reliability, size)).to_vec(),
                ));
            }
        }
    }
}

/// Not a DDS implementation: always reliable.
const AERON: [&str; 2] = ["aeron", "aeron-tuned"];

fn under_load(goals: &mut Vec<Goal>) {
    for (reliability, word) in [(BestEffort, "best effort"), (Reliable, "reliable")] {
        let loaded = Point { load_percent: Some(50.0), ..Point::latency("load", OURS, reliability, 32) };
        goals.push(Goal {
            measure: format!("p99 at half of the unbatched maximum, {word}, 32 B"),
            limit: Limit::AtMost(3.0),
            figure: P99,
            ours: Side(vec![loaded]),
            base: Some(("unloaded p99", Side(vec![Point::latency("latency", OURS, reliability, 32)]))),
        });
        // Both open loops: both see every stall of the machine, or neither does.
        let unloaded = Point { load_percent: Some(1.0), ..loaded };
        for (what, figure) in [("p99", P99), ("p99 of the median 10 ms", P99_OF_INTERVALS)] {
            goals.push(Goal {
                measure: format!("{what} at half of the maximum against 1 %, {word}, 32 B"),
                limit: Limit::Any,
                figure,
                ours: Side(vec![loaded]),
                base: Some(("1 %", Side(vec![unloaded]))),
            });
        }
    }
}

/// The streams of some engines, for each of these batching modes.
fn streams(series: &'static str, engines: &[&'static str], size: u64, batched: &[bool]) -> Side {
    let reliability = if series.starts_with("best-effort") { BestEffort } else { Reliable };
    let of = |engine: &&'static str| {
        let point = Point::stream(series, engine, reliability, size);
        batched.iter().map(move |&is_batched| Point { is_batched, ..point })
    };
    Side(engines.iter().flat_map(of).collect())
}

fn batched(goals: &mut Vec<Goal>) {
    // Longer samples are coalesced without a policy, too.
    for (size, ours, rate, times) in
        [(32, &[true][..], 10e6, 8.0), (1024, &[true, false], 2e6, 2.5), (8192, &[false], 0.3e6, 1.3)]
    {
        let goal = |limit, base| Goal {
            measure: format!("reliable, batched or coalesced, {}, zero lost", format_size(size)),
            limit,
            figure: RATE,
            ours: streams("streams", &[OURS], size, ours),
            base,
        };
        goals.push(goal(Limit::AtLeast(rate), None));
        let peers = streams("streams", &PEERS, size, &[true, false]);
        goals.push(goal(Limit::AtLeast(times), Some((BEST_PEER, peers))));
        if size == 32 {
            let aeron = streams("streams", &AERON, size, &[false, true]);
            goals.push(goal(Limit::Any, Some(("Aeron", aeron))));
        }
    }
}

fn best_effort(goals: &mut Vec<Goal>) {
    for (series, times, path) in
        [("best-effort", 8.0, "loopback, never segmented"), ("best-effort-veth", 2.0, "veth, segmented")]
    {
        goals.push(Goal {
            measure: format!("best effort, unbatched, 32 B, {path}"),
            limit: Limit::AtLeast(times),
            figure: RATE,
            ours: streams(series, &[OURS], 32, &[false]),
            base: Some((BEST_PEER, streams(series, &PEERS, 32, &[false]))),
        });
    }
    let offered =
        |percent| Point { load_percent: Some(percent), ..Point::latency("rates", OURS, BestEffort, 32) };
    goals.push(Goal {
        measure: "best effort, unbatched, 32 B: highest rate with under 0.1 % lost".to_owned(),
        limit: Limit::Any,
        figure: RATE_WITHOUT_LOSS,
        ours: Side([50.0, 70.0, 80.0, 90.0, 100.0].map(offered).to_vec()),
        base: None,
    });
}

fn unbatched(goals: &mut Vec<Goal>) {
    for (size, times) in [(32, 6.0), (1024, 4.0), (8192, 2.0)] {
        goals.push(Goal {
            measure: format!("reliable, unbatched, {}, zero lost", format_size(size)),
            limit: Limit::AtLeast(times),
            figure: RATE,
            ours: streams("streams", &[OURS], size, &[false]),
            base: Some((BEST_PEER, streams("streams", &PEERS, size, &[false]))),
        });
    }
}

fn large(goals: &mut Vec<Goal>) {
    for size in [63_000, 1 << 20, 10 << 20] {
        let typed = streams("large", &[OURS], size, &[false]);
        let loans = Point { loans: true, ..Point::stream("large", OURS, Reliable, size) };
        let udp = Point::stream("large", UDP, Reliability::None, 63_000);
        let goal = |what: &str, limit, figure: Figure, ours: Side, base| Goal {
            measure: format!("reliable, {}, {what}, zero lost", format_size(size)),
            limit,
            figure,
            ours,
            base: Some(base),
        };
        let peers = streams("large", &PEERS, size, &[false]);
        goals.push(goal("typed", Limit::AtLeast(1.5), GBPS, typed.clone(), (BEST_PEER, peers)));
        let floor = || ("raw UDP", Side(vec![udp]));
        goals.push(goal("loans", Limit::AtLeast(0.85), GBPS, Side(vec![loans]), floor()));
        goals.push(goal("typed", Limit::Any, GBPS, typed, floor()));
    }
}

fn keyed(goals: &mut Vec<Goal>) {
    for is_batched in [false, true] {
        let word = if is_batched { "batched" } else { "not batched" };
        let point = Point { is_batched, ..Point::stream("keyed", OURS, Reliable, 32) };
        goals.push(Goal {
            measure: format!("keyed, 100 000 instances, 32 B, {word}"),
            limit: Limit::AtLeast(0.95),
            figure: RATE,
            ours: Side(vec![Point { is_keyed: true, ..point }]),
            base: Some(("unkeyed", Side(vec![point]))),
        });
    }
}

fn processor_time(goals: &mut Vec<Goal>) {
    let goal = |series, size, is_batched: bool, times| {
        let word = if is_batched { ", batched" } else { "" };
        // With batches allowed, the most frugal peer may do without.
        let theirs = if is_batched { &[true, false][..] } else { &[false] };
        Goal {
            measure: format!("processor time per million samples, {}{word}", format_size(size)),
            limit: Limit::AtMost(times),
            figure: CPU,
            ours: streams(series, &[OURS], size, &[is_batched]),
            base: Some((BEST_PEER, streams(series, &PEERS, size, theirs))),
        }
    };
    for is_batched in [false, true] {
        goals.push(goal("streams", 32, is_batched, 1.0 / 3.0));
        goals.push(goal("streams", 1024, is_batched, 0.5));
    }
    goals.push(goal("streams", 8192, false, 0.5));
    goals.push(goal("large", 63_000, false, 0.5));
}

fn under_loss(goals: &mut Vec<Goal>) {
    goals.push(Goal {
        measure: "reliable, 1 KiB, 10 % network loss".to_owned(),
        limit: Limit::AtLeast(20.0),
        figure: RATE,
        ours: streams("loss", &[OURS], 1024, &[false]),
        base: Some((BEST_PEER, streams("loss", &PEERS, 1024, &[false]))),
    });
    goals.push(Goal {
        measure: "ping p99, 1 KiB, 10 % network loss".to_owned(),
        limit: Limit::AtMost(10.0),
        figure: Figure {
            of: |case| {
                if case.conditions.settings.get(super::select::SERIES)? == "lossless" {
                    (P50.of)(case)
                } else {
                    (P99.of)(case)
                }
            },
            ..P99
        },
        ours: Side(vec![Point::latency("loss", OURS, Reliable, 1024)]),
        base: Some(("lossless p50", Side(vec![Point::latency("lossless", OURS, Reliable, 1024)]))),
    });
}
