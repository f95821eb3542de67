//! What a host may be sent again never holds up readers that lose what they request, unless most of it is lost.

use core::time::Duration;

use weir_netsim::{Link, Loss};
use weir_rtps::qos::Durability;

use crate::harness::{Sim, seeds};

fn link(loss: f64) -> Link {
    Link::new().delay(Duration::from_micros(50)).loss(Loss::random(loss))
}

#[test]
fn readers_that_lose_half_of_everything_are_sent_all_that_they_request() {
    for seed in seeds(2) {
        for loss in [0.1, 0.3, 0.5] {
            for (samples, size) in
                [(2_000, (|_| 1_000) as fn(u64) -> usize), (300, |_| 8_192), (12, |_| 300_000)]
            {
                let mut sim = Sim::unrecorded(&format!("honest-{loss}"), seed, link(loss));
                sim.set_steps_max(10_000_000);
                sim.add_writer(|setup| {
                    setup.samples = samples;
                    setup.size = size;
                });
                sim.add_reader(|setup| setup.segment_max = 1472);
                sim.connect(0, 0);
                sim.run_to_the_end();
                assert_eq!(sim.writers[0].core.counters().repairs_held_back, 0, "{} B: {sim}", size(1));
            }
        }
    }
}

#[test]
fn late_joiners_are_sent_the_history_at_once_however_much_is_lost() {
    for seed in seeds(2) {
        for loss in [0.0, 0.3, 0.5] {
            for size in [(|_| 1_000) as fn(u64) -> usize, |_| 100_000] {
                let mut sim = Sim::unrecorded(&format!("honest-late-{loss}"), seed, link(loss));
                sim.set_steps_max(10_000_000);
                sim.add_writer(|setup| {
                    setup.config.durability = Durability::TransientLocal;
                    setup.samples = if size(1) < 10_000 { 2_000 } else { 20 };
                    setup.size = size;
                });
                (0..2).for_each(|_| _ = sim.add_reader(|setup| setup.wants_history = true));
                sim.connect(0, 0);
                sim.run_until(|sim| sim.writers[0].is_done());
                sim.connect(0, 1);
                sim.readers[1].expect_all(0);
                sim.run_to_the_end();
                assert_eq!(sim.writers[0].core.counters().repairs_held_back, 0, "{} B: {sim}", size(1));
            }
        }
    }
}

#[test]
fn a_reader_that_loses_seven_of_ten_goes_on_slowly() {
    for seed in seeds(2) {
        let mut sim = Sim::unrecorded("heavy-loss", seed, link(0.7));
        sim.set_steps_max(10_000_000);
        sim.add_writer(|setup| {
            setup.samples = 200;
            setup.size = |_| 8_192;
        });
        sim.add_reader(|_| {});
        sim.connect(0, 0);
        sim.run_until(Sim::is_delivered);
        let guid = sim.writers[0].config.guid;
        assert!(sim.readers[0].taken(guid).iter().copied().eq(1..=200), "{sim}");
        assert!(sim.now.since(weir_rtps::time::Time::ZERO) < Duration::from_secs(60), "{sim}");
    }
}
