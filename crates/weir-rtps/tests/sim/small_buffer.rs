//! Default socket buffers, with the kernel's accounting, and receivers that are slower than the
//! sender.

use core::time::Duration;

use weir_netsim::Link;
use weir_rtps::qos::Reliability;

use crate::harness::{Sim, seeds};

const STOCK_BYTES: u32 = 200 * 1024;

fn run(name: &str, seed: u64, writers: usize, announces: bool, size: fn(u64) -> usize) -> Sim {
    let mut sim = Sim::new(name, seed, Link::new().delay(Duration::from_micros(50)));
    for _ in 0..writers {
        sim.add_writer(|setup| {
            setup.samples = 700;
            setup.size = size;
        });
    }
    sim.add_reader(|setup| {
        setup.receive_buffer = STOCK_BYTES;
        setup.announces_buffer = announces;
    });
    let reader = sim.readers[0].address;
    sim.network.set_read_gap(reader, Duration::from_micros(3));
    sim.connect_all();
    sim.run_to_the_end();
    sim
}

#[test]
fn a_writer_that_knows_the_buffer_never_overruns_it() {
    for seed in seeds(2) {
        for size in [|_| 32_usize, |_| 1000, |_| 8192, |_| 63_000] {
            let sim = run("announced", seed, 1, true, size);
            assert_eq!(sim.network.counters().buffer_full, 0, "{sim}");
            assert_eq!(sim.writers[0].core.counters().samples_repaired, 0, "{sim}");
        }
    }
}

#[test]
fn overruns_lose_nothing_in_the_end() {
    for seed in seeds(2) {
        for size in [|_| 32_usize, |_| 8192] {
            run("unannounced", seed, 1, false, size);
            run("shared", seed, 4, true, size);
            run("shared-unannounced", seed, 4, false, size);
        }
    }
}

/// Best-effort samples of 1 and 10 MB, a quarter of a second apart, to a reader that takes `gap`
/// for each datagram.
fn best_effort(name: &str, seed: u64, announces: bool, gap: Duration) -> Sim {
    let mut sim = Sim::new(name, seed, Link::new().delay(Duration::from_micros(50)));
    sim.add_writer(|setup| {
        setup.config.reliability = Reliability::BestEffort;
        setup.samples = 4;
        setup.size = |n| if n % 2 == 0 { 10_000_000 } else { 1_000_000 };
        setup.gap = Duration::from_millis(250);
    });
    sim.add_reader(|setup| {
        setup.config.reliability = Reliability::BestEffort;
        setup.receive_buffer = STOCK_BYTES;
        setup.announces_buffer = announces;
    });
    let reader = sim.readers[0].address;
    sim.network.set_read_gap(reader, gap);
    sim.connect_all();
    sim
}

fn taken(sim: &Sim) -> &[u64] {
    sim.readers[0].taken(sim.writers[0].config.guid)
}

#[test]
fn best_effort_samples_larger_than_the_buffer_arrive_at_a_reader_that_keeps_up_with_the_pauses() {
    for seed in seeds(2) {
        for announces in [true, false] {
            // 2 Gbit/s.
            let mut sim = best_effort("best-effort", seed, announces, Duration::from_micros(250));
            sim.run_to_silence();
            assert_eq!(taken(&sim), [1, 2, 3, 4], "{sim}");
            assert_eq!(sim.network.counters().buffer_full, 0, "{sim}");
        }
    }
}

#[test]
fn a_reader_that_rests_for_half_a_millisecond_loses_no_large_best_effort_sample() {
    let mut sim = best_effort("best-effort-rest", 1, true, Duration::from_micros(50));
    let reader = sim.readers[0].address;
    while taken(&sim).len() < 4 {
        sim.network.pause(reader);
        sim.run_for(Duration::from_micros(500));
        sim.network.resume(reader);
        sim.run_for(Duration::from_micros(500));
        assert_eq!(sim.network.counters().buffer_full, 0, "{sim}");
    }
    assert_eq!(taken(&sim), [1, 2, 3, 4], "{sim}");
}

#[test]
fn a_reader_that_is_slower_than_the_pauses_loses_large_best_effort_samples_and_no_others() {
    let mut sim = best_effort("best-effort-slow", 1, true, Duration::from_millis(1));
    sim.run_to_silence();
    assert_eq!(taken(&sim), [0; 0], "{sim}");
    let mut sim = best_effort("best-effort-slow", 1, true, Duration::from_millis(1));
    sim.writers[0].size = |_| 128_000;
    sim.run_to_silence();
    assert_eq!(taken(&sim), [1, 2, 3, 4], "{sim}");
}
