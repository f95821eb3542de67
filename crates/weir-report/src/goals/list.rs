//! The lines of the table.

use weir_results::{Reliability, WaitStrategy, format_size};

use super::select::{
    AGE_P99, CPU, Figure, GBPS, OURS, P50, P99, P99_OF_INTERVALS, Point, RATE, RATE_WITHOUT_LOSS, SERIES,
    Side, WORKLOAD_CPU,
};
use super::{Goal, Limit};
use crate::group::{FLOOR, FRESH};

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
    robot(&mut goals);
    goals
}

const PEERS: [&str; 5] = ["cyclonedds", "cyclonedds-tuned", "fastdds", "fastdds-tuned", "rustdds-tuned"];
/// No DDS implementations: reliable, and they gather samples without being asked.
const OTHERS: [&str; 5] = ["aeron", "aeron-tuned", "zenoh-udp", "zenoh-tcp", "zeromq"];
const AERON: [&str; 2] = ["aeron", "aeron-tuned"];
const UDP: &str = FLOOR;
const BEST_PEER: &str = "best DDS engine";
const BEST_ENGINE: &str = "best engine";
const FRESH_UDP: &str = "raw UDP, fresh memory";
const SIZES: [u64; 3] = [32, 1024, 8192];
use Reliability::{BestEffort, Reliable};

impl Goal {
    fn new(measure: impl Into<String>, limit: Limit, figure: Figure, ours: Side) -> Self {
        Self { measure: measure.into(), limit, figure, ours, base: None }
    }

    /// Makes the limit one of the ratio to this base.
    fn against(self, name: &'static str, base: Side) -> Self {
        Self { base: Some((name, base)), ..self }
    }
}

fn one_way(goals: &mut Vec<Goal>) {
    let latency = |engine, reliability, size| Point::latency("latency", engine, reliability, size);
    for (reliability, word, [udp, cyclonedds, fastdds]) in
        [(BestEffort, "", [1.10, 0.90, 0.70]), (Reliable, ", reliable", [1.15, 0.85, 0.50])]
    {
        for size in SIZES {
            let measure = format!("one-way p50, block{word}, {}", format_size(size));
            let ours = Side(vec![latency(OURS, reliability, size)]);
            let bases = [
                ("raw UDP", udp, latency(UDP, Reliability::None, size)),
                ("Cyclone DDS", cyclonedds, latency("cyclonedds", reliability, size)),
                ("Fast DDS", fastdds, latency("fastdds", reliability, size)),
            ];
            goals.extend(bases.map(|(name, limit, base)| {
                Goal::new(&measure, Limit::AtMost(limit), P50, ours.clone()).against(name, Side(vec![base]))
            }));
            if reliability == Reliable {
                let engines = ["cyclonedds", "fastdds"].into_iter().chain(OTHERS);
                let all = engines.map(|engine| latency(engine, reliability, size)).collect();
                goals.push(Goal::new(&measure, Limit::Any, P50, ours).against(BEST_ENGINE, Side(all)));
            }
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
            let measure = format!("one-way p50, spin{word}, {}", format_size(size));
            let ours = Side(vec![latency(OURS, reliability, size)]);
            let at_most = |limit| Goal::new(&measure, Limit::AtMost(limit), P50, ours.clone());
            let udp = Side(vec![latency(UDP, Reliability::None, size)]);
            goals.push(at_most(1.35).against("raw UDP", udp));
            if reliability == Reliable {
                let aeron = Side(AERON.map(|engine| latency(engine, reliability, size)).to_vec());
                goals.push(at_most(1.0).against("Aeron", aeron));
            }
        }
    }
}

fn under_load(goals: &mut Vec<Goal>) {
    for (reliability, word) in [(BestEffort, "best effort"), (Reliable, "reliable")] {
        let loaded = Point { load_percent: Some(50.0), ..Point::latency("load", OURS, reliability, 32) };
        let ours = Side(vec![loaded]);
        let idle = Side(vec![Point::latency("latency", OURS, reliability, 32)]);
        let measure = format!("p99 at half of the unbatched maximum, {word}, 32 B");
        goals.push(Goal::new(measure, Limit::AtMost(3.0), P99, ours.clone()).against("unloaded p99", idle));
        // Both open loops: both see every stall of the machine, or neither does.
        let unloaded = Side(vec![Point { load_percent: Some(1.0), ..loaded }]);
        for (what, figure) in [("p99", P99), ("p99 of the median 10 ms", P99_OF_INTERVALS)] {
            let measure = format!("{what} at half of the maximum against 1 %, {word}, 32 B");
            goals.push(Goal::new(measure, Limit::Any, figure, ours.clone()).against("1 %", unloaded.clone()));
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

/// The reliable streams of all engines but ours, DDS or not.
fn all_streams(size: u64, batched: &[bool]) -> Side {
    streams("streams", &[&PEERS[..], &OTHERS].concat(), size, batched)
}

fn batched(goals: &mut Vec<Goal>) {
    // Longer samples are coalesced without a policy, too.
    for (size, ours, rate, times) in
        [(32, &[true][..], 10e6, 8.0), (1024, &[true, false], 2e6, 2.5), (8192, &[false], 0.3e6, 1.3)]
    {
        let measure = format!("reliable, batched or coalesced, {}, zero lost", format_size(size));
        let goal = |limit| Goal::new(&measure, limit, RATE, streams("streams", &[OURS], size, ours));
        goals.push(goal(Limit::AtLeast(rate)));
        let peers = streams("streams", &PEERS, size, &[true, false]);
        goals.push(goal(Limit::AtLeast(times)).against(BEST_PEER, peers));
        let aeron = streams("streams", &AERON, size, &[true, false]);
        goals.push(goal(Limit::AtLeast(1.0)).against("Aeron", aeron));
        goals.push(goal(Limit::Any).against(BEST_ENGINE, all_streams(size, &[true, false])));
    }
}

/// Compares our stream, unbatched, with those of the peers.
fn unbatched_stream(
    measure: impl Into<String>,
    times: f64,
    figure: Figure,
    series: &'static str,
    size: u64,
) -> Goal {
    Goal::new(measure, Limit::AtLeast(times), figure, streams(series, &[OURS], size, &[false]))
        .against(BEST_PEER, streams(series, &PEERS, size, &[false]))
}

fn best_effort(goals: &mut Vec<Goal>) {
    for (series, times, path) in
        [("best-effort", 8.0, "loopback, never segmented"), ("best-effort-veth", 2.0, "veth, segmented")]
    {
        let measure = format!("best effort, unbatched, 32 B, {path}");
        goals.push(unbatched_stream(measure, times, RATE, series, 32));
    }
    let offered =
        |percent| Point { load_percent: Some(percent), ..Point::latency("rates", OURS, BestEffort, 32) };
    let measure = "best effort, unbatched, 32 B: highest rate with under 0.1 % lost";
    let ours = Side([50.0, 70.0, 80.0, 90.0, 100.0].map(offered).to_vec());
    goals.push(Goal::new(measure, Limit::Any, RATE_WITHOUT_LOSS, ours));
}

fn unbatched(goals: &mut Vec<Goal>) {
    for (size, times) in [(32, 6.0), (1024, 4.0), (8192, 2.0)] {
        let measure = format!("reliable, unbatched, {}, zero lost", format_size(size));
        goals.push(unbatched_stream(&measure, times, RATE, "streams", size));
        let ours = streams("streams", &[OURS], size, &[false]);
        goals.push(
            Goal::new(measure, Limit::Any, RATE, ours).against(BEST_ENGINE, all_streams(size, &[false])),
        );
    }
}

fn large(goals: &mut Vec<Goal>) {
    for (size, typed_times) in [(63_000, 0.85), (1 << 20, 0.75), (10 << 20, 0.75)] {
        let measure = |what| format!("reliable, {}, {what}, zero lost", format_size(size));
        goals.push(unbatched_stream(measure("typed"), 1.5, GBPS, "large", size));
        let loans = Side(vec![Point { loans: true, ..Point::stream("large", OURS, Reliable, size) }]);
        let typed = streams("large", &[OURS], size, &[false]);
        // Raw UDP sends one buffer from the cache, as no engine with a history can: typed samples have their limit
        // against raw UDP with memory as fresh as a history's. Loans have one against both. Neither is always the
        // stricter: they are equal where fresh memory has 0.89 of the rate, which has been 0.86 (0.80 to 0.94).
        let hot = Limit::AtLeast(0.85);
        for (what, ours, times, hot) in
            [("typed", typed, typed_times, Limit::Any), ("loans", loans, 0.95, hot)]
        {
            let goal = |limit| Goal::new(measure(what), limit, GBPS, ours.clone());
            goals.push(goal(Limit::AtLeast(times)).against(FRESH_UDP, largest(FRESH)));
            goals.push(goal(hot).against("raw UDP", largest(UDP)));
        }
    }
}

/// Raw UDP with datagrams of about the largest size.
fn largest(engine: &'static str) -> Side {
    Side(vec![Point::stream("large", engine, Reliability::None, 63_000)])
}

fn keyed(goals: &mut Vec<Goal>) {
    for (is_batched, word) in [(false, "not batched"), (true, "batched")] {
        let unkeyed = Point { is_batched, ..Point::stream("keyed", OURS, Reliable, 32) };
        let keyed = Side(vec![Point { is_keyed: true, ..unkeyed }]);
        let measure = format!("keyed, 100 000 instances, 32 B, {word}");
        let goal = Goal::new(measure, Limit::AtLeast(0.95), RATE, keyed);
        goals.push(goal.against("unkeyed", Side(vec![unkeyed])));
    }
}

fn processor_time(goals: &mut Vec<Goal>) {
    for (series, size, is_batched, times) in [
        ("streams", 32, false, 1.0 / 3.0),
        ("streams", 1024, false, 0.5),
        ("streams", 32, true, 1.0 / 3.0),
        ("streams", 1024, true, 0.5),
        ("streams", 8192, false, 0.5),
        ("large", 63_000, false, 0.5),
    ] {
        let word = if is_batched { ", batched" } else { "" };
        let measure = format!("processor time per million samples, {}{word}", format_size(size));
        // With batches allowed, the most frugal peer may do without.
        let theirs = if is_batched { &[true, false][..] } else { &[false] };
        let ours = streams(series, &[OURS], size, &[is_batched]);
        let peers = streams(series, &PEERS, size, theirs);
        goals.push(Goal::new(measure, Limit::AtMost(times), CPU, ours).against(BEST_PEER, peers));
    }
    let measure = format!("processor time per million samples, {}", format_size(63_000));
    let ours = streams("large", &[OURS], 63_000, &[false]);
    goals.push(Goal::new(measure, Limit::AtMost(1.25), CPU, ours).against("raw UDP", largest(UDP)));
}

fn robot(goals: &mut Vec<Goal>) {
    let of = |engines: &[&'static str]| Side(engines.iter().copied().map(Point::robot).collect());
    for (what, times, figure) in
        [("processor time of all processes", 0.5, WORKLOAD_CPU), ("p99 age", 1.0, AGE_P99)]
    {
        let goal = Goal::new(format!("robot workload, {what}"), Limit::AtMost(times), figure, of(&[OURS]));
        goals.push(goal.against(BEST_PEER, of(&PEERS)));
    }
    let measure = "robot workload, processor time of all processes".to_owned();
    goals.push(Goal::new(measure, Limit::Any, WORKLOAD_CPU, of(&[OURS])).against("raw UDP", of(&[UDP])));
}

fn under_loss(goals: &mut Vec<Goal>) {
    goals.push(unbatched_stream("reliable, 1 KiB, 10 % network loss", 20.0, RATE, "loss", 1024));
    let p99_or_lossless_p50 = Figure {
        unit: P99.unit,
        of: |case| match case.conditions.settings.get(SERIES)?.as_str() {
            "lossless" => (P50.of)(case),
            _ => (P99.of)(case),
        },
    };
    let [loss, lossless] =
        ["loss", "lossless"].map(|series| Side(vec![Point::latency(series, OURS, Reliable, 1024)]));
    let measure = "ping p99, 1 KiB, 10 % network loss";
    let goal = Goal::new(measure, Limit::AtMost(10.0), p99_or_lossless_p50, loss);
    goals.push(goal.against("lossless p50", lossless));
}
