//! Datagrams overtake each other.

use core::time::Duration;

use weir_netsim::{Link, Loss};
use weir_rtps::qos::Reliability;

use crate::harness::{Sim, seeds};

fn reordering(share: f64, hold_us: u64) -> Link {
    Link::new().delay(Duration::from_micros(50)).reorder(share, Duration::from_micros(hold_us))
}

#[test]
fn reliable_delivery_puts_samples_back_in_order() {
    for seed in seeds(3) {
        for hold_us in [3, 40, 300, 3000] {
            for is_coalescing in [false, true] {
                let mut sim = Sim::pair("reorder", seed, reordering(0.1, hold_us), |setup| {
                    if is_coalescing {
                        setup.coalesce();
                    }
                });
                sim.run_to_the_end();
                let repaired = sim.writers[0].core.counters().samples_repaired;
                assert!(repaired < 600, "{repaired} repairs of samples that were only late: {sim}");
            }
        }
    }
}

#[test]
fn reordering_and_loss_together() {
    for seed in seeds(3) {
        let link = reordering(0.2, 150).loss(Loss::burst(0.05, 0.3)).jitter(Duration::from_micros(30));
        let mut sim = Sim::new("reorder-loss", seed, link);
        sim.add_writer(|_| {});
        sim.add_reader(|_| {});
        sim.add_reader(|_| {});
        sim.connect_all();
        sim.run_to_the_end();
    }
}

#[test]
fn best_effort_drops_what_comes_late() {
    for seed in seeds(5) {
        let mut sim = Sim::new("reorder-best-effort", seed, reordering(0.1, 40));
        sim.add_writer(|setup| setup.config.reliability = Reliability::BestEffort);
        sim.add_reader(|setup| setup.config.reliability = Reliability::BestEffort);
        sim.connect(0, 0);
        sim.run_to_silence();
        let taken = sim.readers[0].taken(sim.writers[0].config.guid).len();
        assert!((800..1000).contains(&taken), "{sim}");
    }
}
