//! A writer ends and restarts with another GUID.

use core::time::Duration;

use weir_netsim::{Link, Loss};
use weir_wire::GuidPrefix;

use crate::harness::{Sim, seeds};

#[test]
fn a_writer_with_a_new_guid_is_a_new_writer() {
    for seed in seeds(5) {
        let link = Link::new().delay(Duration::from_micros(50)).loss(Loss::random(0.1));
        let mut sim = Sim::pair("restart", seed, link, |setup| setup.samples = 5000);
        sim.run_for(Duration::from_millis(1));
        let before = sim.writers[0].config.guid;
        let taken = sim.readers[0].taken(before).len();
        assert!((1..5000).contains(&taken), "{sim}");
        // The process is gone; its last samples are still in flight to a reader that knows the new
        // one.
        sim.restart_writer(0, GuidPrefix([77; 12]));
        sim.connect(0, 0);
        sim.run_until(|sim| sim.readers[0].taken(sim.writers[0].config.guid).len() == 5000);
        // Only now the lease of the old one expires.
        sim.readers[0].core.unmatch_writer(sim.now, before);
        sim.run_to_the_end();
        assert!(sim.readers[0].taken(before).len() < 5000, "{sim}");
        assert!(sim.readers[0].core.matched().eq([sim.writers[0].config.guid]), "{sim}");
    }
}

#[test]
fn what_a_dead_writer_had_said_is_not_asked_for_any_more() {
    let link = Link::new().delay(Duration::from_micros(50)).loss(Loss::random(0.2));
    let mut sim = Sim::pair("dead", 1, link, |setup| setup.samples = 500);
    sim.run_for(Duration::from_micros(400));
    let guid = sim.writers[0].config.guid;
    sim.writers[0].samples = 0;
    sim.network.close(sim.writers[0].address);
    sim.readers[0].core.unmatch_writer(sim.now, guid);
    assert_eq!(sim.readers[0].core.next_timeout(), None, "{sim}");
    assert!(sim.readers[0].core.is_caught_up(), "{sim}");
}
