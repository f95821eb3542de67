//! Hosts are partitioned for a while.

use core::time::Duration;

use weir_netsim::{Link, Loss};

use crate::harness::{Sim, seeds};

fn link() -> Link {
    Link::new().delay(Duration::from_micros(50)).loss(Loss::random(0.02))
}

#[test]
fn what_was_written_before_and_during_a_partition_arrives_after_it() {
    for seed in seeds(3) {
        for (is_there_cut, is_back_cut) in [(true, true), (true, false), (false, true)] {
            let mut sim = Sim::new("partition", seed, link());
            sim.add_writer(|setup| setup.samples = 3000);
            sim.add_reader(|_| {});
            sim.add_reader(|_| {});
            sim.connect_all();
            let (writer, reader) = (*sim.writers[0].address.ip(), *sim.readers[0].address.ip());
            sim.run_for(Duration::from_micros(500));
            if is_there_cut {
                sim.network.partition().cut_one_way(writer, reader);
            }
            if is_back_cut {
                sim.network.partition().cut_one_way(reader, writer);
            }
            sim.run_for(Duration::from_secs(3600));
            assert!(!sim.writers[0].is_done(), "one reader that is away holds up KEEP_ALL: {sim}");
            let sent = sim.network.counters().sent;
            sim.run_for(Duration::from_secs(100));
            let per_s = (sim.network.counters().sent - sent) / 100;
            assert!(per_s <= 40, "{per_s} datagrams per second to an unreachable host: {sim}");
            sim.network.partition().heal();
            let healed_at = sim.now;
            sim.run_to_the_end();
            let taken = sim.readers[0].last_taken_at.since(healed_at);
            assert!(taken < Duration::from_secs(3), "{taken:?} after the partition healed: {sim}");
        }
    }
}

#[test]
fn a_reader_that_is_given_up_frees_the_writer() {
    for seed in seeds(3) {
        let mut sim = Sim::new("given-up", seed, link());
        sim.add_writer(|setup| setup.samples = 3000);
        sim.add_reader(|_| {});
        sim.add_reader(|_| {});
        sim.connect_all();
        let (writer, away) = (*sim.writers[0].address.ip(), *sim.readers[0].address.ip());
        sim.network.partition().cut(writer, away);
        sim.run_for(Duration::from_secs(30));
        assert!(!sim.writers[0].is_done(), "{sim}");
        let lagging: Vec<_> = sim.writers[0].core.lagging_readers().collect();
        assert!(lagging.contains(&sim.readers[0].config.guid), "{sim}");
        sim.disconnect(0, 0);
        sim.run_to_the_end();
        assert_eq!(sim.readers[1].taken(sim.writers[0].config.guid).len(), 3000);
    }
}
