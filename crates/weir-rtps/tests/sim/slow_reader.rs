//! Applications that take their samples late, or not at all.

use core::time::Duration;

use weir_netsim::{Link, Loss};
use weir_rtps::qos::History;

use crate::harness::{Sim, seeds};

fn link(loss: f64) -> Link {
    Link::new().delay(Duration::from_micros(50)).loss(Loss::random(loss))
}

#[test]
fn a_reader_that_stops_taking_holds_up_keep_all_and_loses_nothing() {
    for seed in seeds(1) {
        for (loss, max_samples, max_bytes) in
            [(0.0, Some(10), 64 << 20), (0.1, Some(10), 64 << 20), (0.1, None, 4096), (0.3, Some(1), 4096)]
        {
            let mut sim = Sim::new("stops-taking", seed, link(loss));
            sim.add_writer(|setup| setup.samples = 9000);
            sim.add_reader(|setup| {
                setup.is_taking = false;
                setup.config.max_samples = max_samples;
                setup.config.max_bytes = max_bytes;
            });
            sim.connect(0, 0);
            sim.run_for(Duration::from_secs(60));
            assert!(!sim.writers[0].is_done() && sim.writers[0].refused > 0, "{sim}");
            let (written, available) = (sim.writers[0].written, sim.readers[0].core.available());
            assert!(available > 0 && max_samples.is_none_or(|max| available <= max as usize), "{sim}");
            let sent = sim.network.counters().sent;
            sim.run_for(Duration::from_secs(100));
            let per_s = (sim.network.counters().sent - sent) / 100;
            assert!(per_s <= 6, "{per_s} datagrams per second to a reader that is full: {sim}");
            assert_eq!(sim.writers[0].written, written, "{sim}");
            sim.readers[0].is_taking = true;
            sim.wake_reader(0);
            sim.run_to_the_end();
            assert_eq!(sim.readers[0].taken(sim.writers[0].config.guid).len(), 9000, "{sim}");
        }
    }
}

#[test]
fn a_reader_that_takes_one_sample_at_a_time_gets_them_all() {
    for seed in seeds(3) {
        let mut sim = Sim::new("one-at-a-time", seed, link(0.05));
        sim.add_writer(|setup| setup.samples = 600);
        sim.add_reader(|setup| {
            setup.is_taking = false;
            setup.config.max_samples = Some(20);
        });
        sim.connect(0, 0);
        let guid = sim.writers[0].config.guid;
        while sim.readers[0].taken(guid).len() < 600 {
            sim.run_for(Duration::from_micros(30));
            sim.take_one(0);
        }
        sim.run_to_the_end();
    }
}

#[test]
fn keep_last_writers_are_never_held_up_and_keep_last_readers_hold_up_no_writer() {
    for seed in seeds(3) {
        for (writer, reader) in
            [(History::KeepLast(5), History::KeepAll), (History::KeepAll, History::KeepLast(5))]
        {
            let mut sim = Sim::new("keep-last", seed, link(0.1));
            sim.add_writer(|setup| setup.config.history = writer);
            sim.add_reader(|setup| {
                setup.is_taking = false;
                setup.config.history = reader;
                setup.config.max_samples = Some(10);
            });
            sim.connect(0, 0);
            sim.run_until(|sim| sim.writers[0].is_done());
            sim.run_for(Duration::from_secs(10));
            sim.readers[0].is_taking = true;
            sim.wake_reader(0);
            sim.run_to_the_end();
            let guid = sim.writers[0].config.guid;
            assert_eq!(sim.readers[0].taken(guid).last(), Some(&1000), "{sim}");
        }
    }
}

#[test]
fn one_slow_reader_slows_the_others_only_through_the_window() {
    for seed in seeds(3) {
        let mut sim = Sim::new("slow-among-others", seed, link(0.05));
        sim.add_writer(|setup| setup.samples = 2000);
        sim.add_reader(|_| {});
        sim.add_reader(|_| {});
        sim.connect_all();
        let slow = sim.readers[1].address;
        sim.network.set_read_gap(slow, Duration::from_micros(20));
        sim.run_to_the_end();
    }
}

#[test]
fn a_reader_whose_host_stands_still_holds_up_keep_all_only_and_is_named() {
    for seed in seeds(3) {
        for (history, is_held_up) in [(History::KeepAll, true), (History::KeepLast(1), false)] {
            let mut sim = Sim::new("stands-still", seed, link(0.01));
            sim.add_writer(|setup| {
                setup.samples = 3000;
                setup.config.history = history;
            });
            (0..2).for_each(|_| _ = sim.add_reader(|setup| setup.receive_buffer = 200_000));
            sim.connect_all();
            sim.run_for(Duration::from_millis(1));
            let (still, guid) = (sim.readers[1].address, sim.readers[1].config.guid);
            sim.network.pause(still);
            sim.run_for(Duration::from_secs(10));
            assert_eq!(sim.writers[0].is_done(), !is_held_up, "{sim}");
            assert_eq!(sim.writers[0].core.lagging_readers().next(), Some(guid), "{sim}");
            let from = sim.writers[0].config.guid;
            let (taken, written) = (sim.readers[0].taken(from).last(), sim.writers[0].written);
            assert_eq!(taken, Some(&written), "the other reader has everything: {sim}");
            sim.network.resume(still);
            sim.run_until(|sim| sim.readers[1].taken(from).last() == Some(&3000));
        }
    }
}
