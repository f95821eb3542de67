//! Readers that join during or after a writer's writes.

use core::time::Duration;

use weir_netsim::{Link, Loss};
use weir_rtps::qos::{Durability, History};

use crate::harness::{Sim, seeds};

fn link() -> Link {
    Link::new().delay(Duration::from_micros(50)).loss(Loss::random(0.1))
}

/// A simulation with one reader from the start and another one that joins after `join_us`.
fn join(seed: u64, durability: Durability, history: History, wants_history: bool, join_us: u64) -> Sim {
    let mut sim = Sim::new("late-joiner", seed, link());
    sim.add_writer(|setup| {
        setup.config.durability = durability;
        setup.config.history = history;
    });
    sim.add_reader(|_| {});
    sim.add_reader(|setup| setup.wants_history = wants_history);
    sim.connect(0, 0);
    sim.run_for(Duration::from_micros(join_us));
    sim.connect(0, 1);
    sim.run_to_the_end();
    sim
}

#[test]
fn a_volatile_reader_gets_what_is_written_from_then_on() {
    for seed in seeds(3) {
        for join_us in [0, 1, 300, 900, 1_000_000] {
            for durability in [Durability::Volatile, Durability::TransientLocal] {
                let sim = join(seed, durability, History::KeepAll, false, join_us);
                let taken = sim.readers[1].taken(sim.writers[0].config.guid);
                assert!(join_us < 1000 || taken.is_empty(), "{sim}");
            }
        }
    }
}

#[test]
fn a_transient_local_reader_gets_the_history() {
    for seed in seeds(3) {
        for join_us in [0, 300, 1_000_000] {
            let sim = join(seed, Durability::TransientLocal, History::KeepAll, true, join_us);
            assert_eq!(sim.readers[1].taken(sim.writers[0].config.guid).len(), 1000, "{sim}");
            let sim = join(seed, Durability::TransientLocal, History::KeepLast(7), true, join_us);
            let taken = sim.readers[1].taken(sim.writers[0].config.guid);
            assert_eq!(taken.last(), Some(&1000), "{sim}");
            assert!(join_us < 1_000_000 || taken == (994..=1000).collect::<Vec<_>>(), "{taken:?} {sim}");
        }
    }
}

#[test]
fn the_two_ends_may_learn_of_each_other_at_different_times() {
    for seed in seeds(5) {
        for apart_us in [10, 200, 5_000, 400_000] {
            for is_reader_first in [false, true] {
                let mut sim = Sim::new("apart", seed, link());
                sim.add_writer(|setup| setup.samples = 500);
                sim.add_reader(|_| {});
                let apart = Duration::from_micros(apart_us);
                if is_reader_first {
                    sim.writers[0].samples = 0;
                    sim.tell_reader(0, 0);
                    sim.run_for(apart);
                    sim.writers[0].samples = 500;
                    sim.tell_writer(0, 0);
                } else {
                    sim.tell_writer(0, 0);
                    sim.run_for(apart);
                    sim.tell_reader(0, 0);
                    // The reader could not know these samples, but has them.
                    sim.readers[0].expect_all(0);
                }
                sim.run_to_the_end();
                assert_eq!(sim.readers[0].taken(sim.writers[0].config.guid).len(), 500, "{sim}");
            }
        }
    }
}

#[test]
fn a_reader_whose_writer_never_answers_stops_asking() {
    let mut sim = Sim::new("no-answer", 1, link());
    sim.add_writer(|setup| setup.samples = 0);
    sim.add_reader(|_| {});
    sim.tell_reader(0, 0);
    sim.run_to_silence();
    assert!(sim.network.counters().sent <= 10, "{sim}");
}
