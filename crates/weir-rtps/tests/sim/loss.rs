//! Datagrams are lost, at random and in bursts, in both directions.

use core::time::Duration;

use weir_netsim::{Link, Loss};
use weir_rtps::qos::{History, Reliability};

use crate::harness::{Sim, seeds};
use crate::profile;

/// A link that loses this share of the datagrams, at random or in bursts of four.
fn lossy(share: f64, is_burst: bool) -> Link {
    let loss = if is_burst { Loss::burst(0.25 * share / (1.0 - share), 0.25) } else { Loss::random(share) };
    Link::new().delay(Duration::from_micros(50)).loss(loss)
}

#[test]
fn reliable_keep_all_delivers_everything_once_in_order_and_falls_silent() {
    for seed in seeds(3) {
        for (share, is_burst) in
            [(0.0, false), (0.01, false), (0.1, false), (0.3, false), (0.05, true), (0.3, true)]
        {
            for is_coalescing in [false, true] {
                let name = format!("loss-{share}-{is_burst}-{is_coalescing}");
                let mut sim = Sim::pair(&name, seed, lossy(share, is_burst), |setup| {
                    if is_coalescing {
                        setup.coalesce();
                    }
                });
                sim.run_to_the_end();
            }
        }
    }
}

#[test]
fn batches_get_through_whether_the_next_sample_ends_them_or_the_timer() {
    for seed in seeds(3) {
        for (share, is_coalescing) in [(0.0, false), (0.1, false), (0.1, true), (0.3, true)] {
            let mut sim =
                Sim::pair(&format!("batches-{share}-{is_coalescing}"), seed, lossy(share, false), |setup| {
                    setup.size = |number| [12, 100, 1000, 36][(number / 200 % 4) as usize];
                    setup.batch();
                    if is_coalescing {
                        setup.coalesce();
                    }
                });
            sim.run_to_the_end();
        }
    }
}

#[test]
fn samples_of_all_sizes_get_through() {
    for seed in seeds(3) {
        let mut sim = Sim::pair("sizes", seed, lossy(0.1, false), |setup| {
            setup.samples = 400;
            setup.size = |number| [12, 100, 1000, 8_192, 63_000, 16, 40_000][(number % 7) as usize];
        });
        sim.run_to_the_end();
    }
}

#[test]
fn samples_in_fragments_get_through() {
    for seed in seeds(2) {
        for share in [0.0, 0.02, 0.1, 0.3] {
            let mut sim =
                Sim::pair(&format!("fragments-{share}"), seed, lossy(share, seed % 2 == 0), |setup| {
                    setup.samples = 30;
                    setup.size = |number| [70_000, 32, 500_000, 65_000, 1_500_000][(number % 5) as usize];
                });
            sim.run_to_the_end();
        }
    }
}

#[test]
fn a_single_sample_and_its_acknowledgement_survive_heavy_loss() {
    for seed in seeds(40) {
        let mut sim = Sim::pair("single", seed, lossy(0.5, false), |setup| setup.samples = 1);
        sim.run_to_the_end();
    }
}

#[test]
fn only_acknowledgements_are_lost() {
    for seed in seeds(3) {
        let mut sim = Sim::new("acknowledgements", seed, lossy(0.0, false));
        sim.add_writer(|setup| setup.samples = 3000);
        sim.add_reader(|_| {});
        let (writer, reader) = (*sim.writers[0].address.ip(), *sim.readers[0].address.ip());
        sim.network.set_link(reader, writer, lossy(0.5, false));
        sim.connect(0, 0);
        sim.run_to_the_end();
        assert_eq!(sim.writers[0].core.counters().samples_repaired, 0, "{sim}");
    }
}

#[test]
fn keep_last_delivers_a_part_in_order_and_the_last_sample() {
    for seed in seeds(5) {
        for depth in [1, 10] {
            for is_coalescing in [false, true] {
                let mut sim = Sim::pair("keep-last", seed, lossy(0.2, seed % 2 == 0), |setup| {
                    setup.config.history = History::KeepLast(depth);
                    if is_coalescing {
                        setup.coalesce();
                    }
                });
                sim.run_to_the_end();
                let taken = sim.readers[0].taken(sim.writers[0].config.guid);
                // A reader with a limits table holds back fewer samples behind a missing one.
                let least = if profile::IS_SMALL { 200 } else { 500 };
                assert!(taken.len() > least && taken.last() == Some(&1000), "{sim}");
            }
        }
    }
}

#[test]
fn best_effort_delivers_a_part_in_order_and_says_nothing_else() {
    for seed in seeds(5) {
        for (writer, reader) in [
            (Reliability::BestEffort, Reliability::BestEffort),
            (Reliability::Reliable, Reliability::BestEffort),
        ] {
            let mut sim = Sim::new("best-effort", seed, lossy(0.2, false));
            sim.add_writer(|setup| setup.config.reliability = writer);
            sim.add_reader(|setup| setup.config.reliability = reader);
            sim.connect(0, 0);
            sim.run_to_silence();
            let taken = sim.readers[0].taken(sim.writers[0].config.guid);
            assert!((700..900).contains(&taken.len()), "{sim}");
            assert_eq!(sim.network.counters().sent, 1000, "{sim}");
            sim.check_acknowledged();
        }
    }
}

#[test]
fn several_readers_of_one_writer_and_several_writers_of_one_reader() {
    for seed in seeds(3) {
        let mut sim = Sim::new("fan", seed, lossy(0.1, false));
        for _ in 0..3 {
            sim.add_writer(|setup| setup.samples = 500);
            sim.add_reader(|_| {});
        }
        sim.add_reader(|setup| setup.config.reliability = Reliability::BestEffort);
        sim.connect_all();
        sim.run_to_the_end();
    }
}

#[test]
fn a_lost_sample_of_a_regular_stream_is_requested_when_the_next_one_arrives() {
    let interval = Duration::from_millis(5);
    let link = |loss| Link::new().delay(Duration::from_micros(50)).loss(Loss::random(loss));
    for number in [60, 61, 62, 63, 64, 65, 66, 67, 68] {
        let mut sim = Sim::pair("regular", number, link(0.0), |setup| {
            setup.samples = 100;
            setup.gap = interval;
        });
        let (from, to) = (*sim.writers[0].address.ip(), *sim.readers[0].address.ip());
        sim.run_until(|sim| sim.writers[0].written + 1 == number);
        sim.run_for(Duration::from_micros(500));
        sim.network.set_link(from, to, link(1.0));
        sim.run_until(|sim| sim.writers[0].written == number);
        sim.network.set_link(from, to, link(0.0));
        sim.run_until(|sim| sim.writers[0].written == number + 1);
        sim.run_for(Duration::from_micros(500));
        let taken = sim.readers[0].taken(sim.writers[0].config.guid).len() as u64;
        assert_eq!(taken, number + 1, "{sim}");
        assert!(sim.network.counters().lost >= 1, "{sim}");
        let heartbeats = sim.writers[0].core.counters().heartbeats_sent;
        // With limits, writes may wait for room, and are asked about soon.
        assert!(heartbeats <= 22 || profile::IS_SMALL, "{heartbeats} HEARTBEATs: {sim}");
        sim.run_to_the_end();
    }
}
