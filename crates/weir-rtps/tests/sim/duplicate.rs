//! Datagrams arrive twice.

use core::time::Duration;

use weir_netsim::{Link, Loss};
use weir_rtps::qos::Reliability;

use crate::harness::{Sim, seeds};

fn duplicating(share: f64) -> Link {
    Link::new().delay(Duration::from_micros(50)).jitter(Duration::from_micros(20)).duplicate(share)
}

#[test]
fn reliable_delivery_is_once_when_everything_comes_twice() {
    for seed in seeds(3) {
        for share in [0.1, 1.0] {
            for loss in [0.0, 0.1] {
                let mut sim =
                    Sim::pair("duplicate", seed, duplicating(share).loss(Loss::random(loss)), |_| {});
                sim.run_to_the_end();
                assert!(sim.readers[0].core.counters().samples_duplicate > 50, "{sim}");
            }
        }
    }
}

#[test]
fn best_effort_delivery_is_once_too() {
    for seed in seeds(3) {
        let mut sim = Sim::new("duplicate-best-effort", seed, duplicating(1.0));
        sim.add_writer(|setup| setup.config.reliability = Reliability::BestEffort);
        sim.add_reader(|setup| setup.config.reliability = Reliability::BestEffort);
        sim.connect(0, 0);
        sim.run_to_silence();
        assert_eq!(sim.readers[0].taken(sim.writers[0].config.guid).len(), 1000, "{sim}");
        assert_eq!(sim.readers[0].core.counters().samples_duplicate, 1000, "{sim}");
    }
}
