//! The table of links that docs/performance/log.md has: `WEIR_SIM_MATRIX=` prints it, with a name only that link.

use core::time::Duration;

use weir_netsim::{Direction, Link, LinkPair, Loss};
use weir_rtps::qos::History;

use crate::camera::Camera;
use crate::links::{Outcome, RandomLink, queue_max, saturate, tenths};

/// The least goodput; the most bytes offered per byte needed: 1.05 times the ideal and what is lost.
const GOALS: [(&str, bool, f64, f64); 8] = [
    ("lan10g", true, 0.95, 1.05),
    ("lan1g", true, 0.97, 1.05),
    ("lan100", true, 0.97, 1.05),
    ("wifi", true, 0.88, 1.05 * 1.02),
    ("lte", true, 0.90, 1.05 * 1.005),
    ("lte", false, 0.90, 1.05 * 1.005),
    ("wan", true, 0.90, 1.05 * 1.001),
    ("satellite", true, 0.85, 1.05 * 1.005),
];
const SIZES: [fn(u64) -> usize; 4] = [|_| 1024, |_| 8192, |_| 63_000, |_| 1 << 20];

#[test]
fn the_matrix_of_links() {
    let Some(asked) = std::env::var("WEIR_SIM_MATRIX").ok() else { return };
    let (name, size) = asked.split_once(':').unwrap_or((&asked, ""));
    for (link, is_down, goodput_min, offered_max) in GOALS.iter().filter(|goal| goal.0.contains(name)) {
        let pair: LinkPair = link.parse().expect("a preset");
        let [down, up] = pair.links();
        let (way, ways) = if *is_down { (&pair.down, [down, up]) } else { (&pair.up, [up, down]) };
        let rate = way.first_rate_bps().expect("a preset has a rate");
        let round_trip = way.delay * 2;
        let time = Duration::from_secs_f64(40e6 * 8.0 / rate as f64).max(round_trip * 100);
        let steady = [time / 4, time.min(Duration::from_secs(30))];
        let bench = [1, if rate > 500_000_000 { 2 } else { 5 }].map(Duration::from_secs);
        for size_of in SIZES.into_iter().filter(|of| size.is_empty() || size == of(1).to_string()) {
            for (what, time, idle) in [("steady", steady, 0), ("bench", bench, 2)] {
                let mut line = format!("{link} {is_down} {:7} {what:6}:", size_of(1));
                for seed in 1..4 {
                    let outcome = saturate(link, seed, way, ways.clone(), size_of, time, round_trip * idle);
                    let Outcome { goodput, offered, traffic, late, .. } = outcome;
                    let mean = traffic.queue.mean_wait();
                    let in_parts = if size_of(1) >= 1 << 20 { 0.03 } else { 0.0 };
                    let mark = |is_met| if is_met { "" } else { "!" };
                    line += &format!(
                        "  {goodput:.3}{} {offered:.3}{} {:.1}{} {late:.1}{}",
                        mark(goodput >= *goodput_min),
                        mark(offered <= *offered_max + in_parts),
                        mean.as_secs_f64() * 1e3,
                        mark(mean <= queue_max(round_trip)),
                        mark(late <= 3.0),
                    );
                }
                eprintln!("{line}");
            }
        }
    }
}

/// Point clouds of 512 KiB, 30 per second, of which the last 10 are kept.
#[test]
fn the_matrix_of_point_clouds() {
    let Some(asked) = std::env::var("WEIR_SIM_MATRIX").ok() else { return };
    if !asked.starts_with("clouds") {
        return;
    }
    for mbps in [54, 300, 1000] {
        for delay_ms in [0, 20, 80] {
            if asked.contains(':') && asked != format!("clouds:{mbps}:{delay_ms}") {
                continue;
            }
            let mut line = format!("{mbps} Mbit/s, {delay_ms} ms:");
            for loss in [0.0, 0.1, 0.2, 0.3, 0.4] {
                let delay = Duration::from_millis(delay_ms);
                let camera = Camera::clouds(History::KeepLast(10), mbps, delay, loss);
                let runs: Vec<_> = (1..5).map(|seed| camera.delivered(seed)).collect();
                let later: usize = runs.iter().flat_map(|taken| &taken[3..]).sum();
                let seconds: usize = runs.iter().map(|taken| taken[3..].len()).sum();
                // Fragments of 1400 bytes, and what is lost of them.
                let carried = mbps as f64 * 1e6 / 8.0 / (375.0 * 1496.0) * (1.0 - loss);
                let possible = carried.min(30.0);
                line += &format!("  {:.1}/{possible:.1}", later as f64 / seconds as f64);
            }
            eprintln!("{line}");
        }
    }
}

/// The ages of arrays of 1 kB and point clouds of 512 KiB, 30 per second, of which the last 10 are kept.
#[test]
fn the_matrix_of_ages() {
    let Some(asked) = std::env::var("WEIR_SIM_MATRIX").ok() else { return };
    let Some(cell) = asked.strip_prefix("ages") else { return };
    for (name, size) in [("1k", (|_| 1024) as fn(u64) -> usize), ("512k", |_| 512 << 10)] {
        for (mbps, delay_ms) in [(300, 0), (300, 20), (300, 80), (1000, 0), (1000, 20), (1000, 80)] {
            if !cell.is_empty() && cell != format!(":{name}:{mbps}:{delay_ms}") {
                continue;
            }
            for loss in [0.0, 0.1, 0.2, 0.3, 0.4] {
                let delay = Duration::from_millis(delay_ms).max(Duration::from_micros(70));
                let camera = Camera { size, history: History::KeepLast(10), mbps, delay, loss };
                let mut line = format!("{name} {mbps} Mbit/s, {delay_ms} ms, {loss}:");
                let time = Duration::from_secs(8);
                for seed in 1..4 {
                    let (ages, packets) = camera.ages(seed, time);
                    let at = |share: f64| ages[((ages.len() - 1) as f64 * share) as usize];
                    let rate = ages.len() as f64 / (time.as_secs_f64() - 1.0);
                    line += &format!(" | {rate:.1}/s {:.2} {:.2} ms, {packets:.1}", at(0.5), at(0.99));
                }
                eprintln!("{line}");
            }
        }
    }
}

/// Queues that are too short to be seen.
#[test]
fn the_matrix_of_shallow_queues() {
    if std::env::var("WEIR_SIM_MATRIX").ok().as_deref() != Some("shallow") {
        return;
    }
    for (mbps, round_trip_ms, queue) in [(100, 2, 12_000), (1000, 1, 25_000)] {
        let round_trip = Duration::from_millis(round_trip_ms);
        let rate = mbps * 1_000_000;
        let way = Direction { rate: vec![(Duration::ZERO, rate)], ..Direction::new() };
        let there = Link::new().delay(round_trip / 2).rate_bps(rate).queue_bytes(queue);
        let ways = [there, Link::new().delay(round_trip / 2)];
        // One of 1 MiB does not find the rate, and keeps too much.
        for size_of in &SIZES[..3] {
            let time = Duration::from_secs(1);
            let outcome = saturate("shallow", 1, &way, ways.clone(), *size_of, [time, time], Duration::ZERO);
            eprintln!("{mbps} {queue} B, {}: {:.3} {:.3}", size_of(1), outcome.goodput, outcome.offered);
        }
    }
}

/// What the tenths of the first second of a saturated writer carry, with losses at random.
#[test]
fn the_matrix_of_starts() {
    let Some(asked) = std::env::var("WEIR_SIM_MATRIX").ok().filter(|it| it.starts_with("starts")) else {
        return;
    };
    let links =
        [(1000, 100, 64), (1000, 100, 256), (1000, 40_000, 500), (300, 40_000, 500), (100, 2_000, 64)];
    for (mbps, round_trip_us, queue) in links {
        for loss in [0.0, 0.01, 0.1, 0.2] {
            let name = format!("{mbps} Mbit/s, {round_trip_us} us, {queue} kB, {loss}");
            if !asked.split_once(':').is_none_or(|(_, part)| name.contains(part)) {
                continue;
            }
            let delay = Duration::from_micros(round_trip_us / 2);
            let rate = mbps * 1_000_000;
            let way = Direction { rate: vec![(Duration::ZERO, rate)], ..Direction::new() };
            let there =
                Link::new().delay(delay).rate_bps(rate).queue_bytes(queue * 1000).loss(Loss::random(loss));
            let ways = [there, Link::new().delay(delay).loss(Loss::random(loss))];
            for size_of in [SIZES[0], SIZES[2]] {
                let (mut sums, mut offered) = ([0.0; 10], String::new());
                for seed in 4..7 {
                    let (shares, bytes) = tenths("starts", seed, &way, ways.clone(), size_of, 10);
                    sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
                    offered += &format!(" {:.2}", bytes * (1.0 - loss));
                }
                let shares = sums.map(|sum| format!("{:.2}", sum / 3.0 / (1.0 - loss)));
                eprintln!("{name}, {:5}: {}, offered{offered}", size_of(1), shares.join(" "));
            }
        }
    }
}

/// Random links, with other seeds than those that the tests use.
#[test]
fn the_distribution_over_random_links() {
    if std::env::var("WEIR_SIM_MATRIX").ok().as_deref() != Some("random") {
        return;
    }
    let mut all: Vec<[f64; 3]> = Vec::new();
    let mut met = 0;
    for seed in 7000..7200 {
        let link = RandomLink::new(seed);
        let rate = link.way.first_rate_bps().expect("it was set") as f64;
        let time = Duration::from_secs_f64(6e6 * 8.0 / rate).max(link.round_trip * 60);
        let time = [time / 2, time.min(Duration::from_secs(20))];
        let outcome = saturate("random", seed, &link.way, link.ways, link.size, time, Duration::ZERO);
        let queue = outcome.traffic.queue.mean_wait().as_secs_f64();
        let packets = 2.0 * 1500.0 * 8.0 / rate;
        let queue = queue / (queue_max(link.round_trip).as_secs_f64() + packets);
        all.push([outcome.goodput, outcome.offered, queue]);
        let is_met = outcome.goodput >= 0.85 && outcome.offered <= 1.1 && queue <= 1.05;
        met += usize::from(is_met);
        if !is_met {
            let size = (link.size)(1);
            eprintln!("{}, {size} B: {:.3} {:.3} {queue:.2}", link.shown, outcome.goodput, outcome.offered);
        }
    }
    for (column, name) in ["goodput", "offered", "queue, share of its limit"].iter().enumerate() {
        let mut values: Vec<f64> = all.iter().map(|row| row[column]).collect();
        values.sort_by(f64::total_cmp);
        let at = |percent: usize| values[(values.len() - 1) * percent / 100];
        eprintln!("{name}: {:.3} {:.3} {:.3} {:.3} {:.3}", at(0), at(10), at(50), at(90), at(100));
    }
    eprintln!("{met} of {} links within 0.05", all.len());
}
