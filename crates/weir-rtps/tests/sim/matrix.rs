//! The table of links that docs/performance/log.md has: `WEIR_SIM_MATRIX=` prints it, with a name only that link.

use core::time::Duration;

use weir_netsim::LinkPair;

use crate::links::{Outcome, queue_max, saturate};

/// The least goodput; the most bytes offered per byte needed: 1.05 times the ideal and what is lost.
const GOALS: [(&str, bool, f64, f64); 7] = [
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
