//! Writers whose samples another thread sends, at its own times.

use core::time::Duration;

use weir_netsim::{Link, Loss};
use weir_rtps::qos::{History, Reliability};

use crate::harness::{Sim, seeds};

/// Period of the thread: faster than the writer, about as fast, or far slower.
const TURNS: [Duration; 3] = [Duration::from_nanos(300), Duration::from_micros(5), Duration::from_millis(3)];

fn lossy(share: f64) -> Link {
    Link::new().delay(Duration::from_micros(50)).loss(Loss::random(share))
}

#[test]
fn reliable_keep_all_delivers_everything_once_in_order_and_falls_silent() {
    for seed in seeds(3) {
        for turn in TURNS {
            for (share, is_coalescing, is_batching) in
                [(0.0, false, false), (0.0, true, true), (0.1, true, false), (0.3, false, true)]
            {
                let name = format!("asynchronous-{share}-{is_coalescing}-{is_batching}");
                let mut sim = Sim::pair(&name, seed, lossy(share), |setup| {
                    setup.publish_every(turn);
                    if is_coalescing {
                        setup.coalesce();
                    }
                    if is_batching {
                        setup.batch();
                    }
                });
                sim.run_to_the_end();
            }
        }
    }
}

#[test]
fn samples_of_all_sizes_get_through() {
    for seed in seeds(3) {
        for turn in TURNS {
            let mut sim = Sim::pair("asynchronous-sizes", seed, lossy(0.1), |setup| {
                setup.publish_every(turn);
                setup.samples = 100;
                setup.size = |number| [12, 40_000, 300_000, 1_000][(number % 4) as usize];
            });
            sim.run_to_the_end();
        }
    }
}

#[test]
fn keep_last_delivers_a_part_in_order_and_the_last_sample_however_slow_the_thread_is() {
    for seed in seeds(3) {
        for (turn, size) in [(TURNS[1], 32), (TURNS[2], 32), (TURNS[1], 200_000), (TURNS[2], 200_000)] {
            let mut sim = Sim::pair("asynchronous-keep-last", seed, lossy(0.1), |setup| {
                setup.publish_every(turn);
                setup.config.history = History::KeepLast(2);
                setup.size = if size == 32 { |_| 32 } else { |_| 200_000 };
            });
            sim.run_to_the_end();
            let taken = sim.readers[0].taken(sim.writers[0].config.guid);
            assert!(taken.len() < 700 && taken.last() == Some(&1000), "{}: {sim}", taken.len());
        }
    }
}

#[test]
fn best_effort_delivers_everything_where_nothing_is_lost_and_waits_for_the_thread() {
    for seed in seeds(3) {
        for turn in TURNS {
            let mut sim = Sim::new("asynchronous-best-effort", seed, lossy(0.0));
            sim.add_writer(|setup| {
                setup.publish_every(turn);
                setup.config.reliability = Reliability::BestEffort;
                setup.samples = 8_000;
            });
            sim.add_reader(|setup| setup.config.reliability = Reliability::BestEffort);
            sim.connect(0, 0);
            sim.run_to_silence();
            assert_eq!(sim.readers[0].taken(sim.writers[0].config.guid).len(), 8_000, "{sim}");
            assert_eq!(sim.network.counters().sent, 8_000, "{sim}");
        }
    }
}
