//! Samples sent to a multicast group once, and everything that is for one reader only.

use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddrV4};

use weir_netsim::{Event, Link, Loss};
use weir_rtps::multicast::GroupRoute;
use weir_rtps::qos::{History, Reliability};
use weir_rtps::time::Time;

use crate::harness::{Sim, seeds};
use crate::profile;

const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 0, 1), 7401);
const ROUTE: GroupRoute = GroupRoute { group: GROUP, interface: Ipv4Addr::new(10, 0, 0, 1) };

const DELAY: Duration = Duration::from_micros(50);

/// A writer, readers in the group, and readers outside of it.
fn sim(name: &str, seed: u64, loss: f64, (listening, deaf): (usize, usize)) -> Sim {
    let link = Link::new().delay(Duration::from_micros(50)).loss(Loss::random(loss));
    let mut sim = Sim::new(name, seed, link);
    sim.add_writer(|setup| {
        setup.samples = 500;
        setup.gap = Duration::from_micros(20);
    });
    for index in 0..listening + deaf {
        sim.add_reader(|setup| setup.group = (index < listening).then_some(ROUTE));
    }
    sim.connect_all();
    sim
}

/// Returns the number of a writer's sends, and of those to the group.
fn sent(sim: &Sim) -> (usize, usize) {
    let from = sim.writers[0].address;
    let records = sim.network.recording().records();
    let all = records.iter().filter(|record| record.from == from && record.event == Event::Sent);
    (all.clone().count(), all.filter(|record| record.to == GROUP).count())
}

#[test]
fn samples_are_sent_once_however_many_readers_listen() {
    let mut sim = sim("multicast-once", 1, 0.0, (5, 0));
    sim.run_to_the_end();
    let (all, to_group) = sent(&sim);
    // HEARTBEATs of their own introduce the readers.
    assert!(to_group >= 500 && all - to_group <= 20, "{to_group} of {all} datagrams to the group: {sim}");
    assert_eq!(sim.writers[0].core.counters().samples_repaired, 0, "{sim}");
}

#[test]
fn what_a_reader_lost_is_repaired_by_unicast_and_the_others_do_not_hear_of_it() {
    for seed in seeds(5) {
        let mut sim = sim("multicast-loss", seed, 0.1, (3, 0));
        sim.run_to_the_end();
        let repaired = sim.writers[0].core.counters().samples_repaired;
        let (_, to_group) = sent(&sim);
        assert!(repaired > 50 && to_group < 1000, "{to_group} datagrams to the group: {sim}");
    }
}

#[test]
fn readers_that_do_not_listen_get_samples_by_unicast() {
    for seed in seeds(3) {
        let mut sim = sim("multicast-mixed", seed, 0.05, (2, 2));
        sim.run_to_the_end();
        let destinations = sim.writers[0].core.destinations().to_vec();
        assert_eq!(destinations, [GROUP, sim.readers[2].address, sim.readers[3].address]);
    }
}

#[test]
fn a_writer_goes_back_to_unicast_when_one_listener_is_left() {
    let mut sim = sim("multicast-leave", 1, 0.0, (2, 0));
    assert_eq!(sim.writers[0].core.destinations()[..], [GROUP]);
    assert_eq!(sim.writers[0].core.routes(), [ROUTE]);
    sim.disconnect(0, 1);
    assert_eq!(sim.writers[0].core.destinations()[..], [sim.readers[0].address]);
    assert_eq!(sim.writers[0].core.routes(), []);
}

#[test]
fn a_best_effort_reader_takes_each_sample_once_though_it_comes_by_both_ways() {
    let mut sim = Sim::new("multicast-twice", 1, Link::new().delay(Duration::from_micros(50)));
    for _ in 0..2 {
        sim.add_reader(|setup| {
            setup.config.reliability = Reliability::BestEffort;
            setup.group = Some(ROUTE);
        });
    }
    sim.add_writer(|setup| {
        setup.config.reliability = Reliability::BestEffort;
        setup.samples = 100;
    });
    sim.connect_all();
    // As if another reader of the same host were outside of the group.
    let mut deaf = sim.readers[0].proxy();
    deaf.group = None;
    deaf.guid.prefix.0[0] ^= 1;
    sim.writers[0].core.match_reader(sim.now, deaf);
    assert_eq!(sim.writers[0].core.destinations().len(), 2);
    sim.run_to_silence();
    let guid = sim.writers[0].config.guid;
    let expected: Vec<u64> = (1..=100).collect();
    assert_eq!(sim.readers[0].taken(guid), expected);
    assert_eq!(sim.readers[1].taken(guid), expected);
}

/// A writer and so many readers in the group; `seed` decides what is lost.
fn fan_out(name: &str, seed: u64, readers: usize, samples: u64, history: History) -> Sim {
    let mut sim = Sim::new(name, seed, Link::new().delay(DELAY));
    sim.add_writer(|setup| {
        setup.samples = samples;
        setup.gap = Duration::from_micros(20);
        setup.config.history = history;
        setup.config.reader_inactivity = Some(Duration::from_millis(200));
    });
    for _ in 0..readers {
        sim.add_reader(|setup| setup.group = Some(ROUTE));
    }
    sim.connect_all();
    sim
}

fn set_loss(sim: &mut Sim, readers: core::ops::Range<usize>, loss: f64) {
    let from = *sim.writers[0].address.ip();
    for reader in readers {
        let to = *sim.readers[reader].address.ip();
        sim.network.set_link(from, to, Link::new().delay(DELAY).loss(Loss::random(loss)));
    }
}

#[test]
fn what_many_readers_have_lost_is_repaired_by_multicast_once() {
    for seed in seeds(2) {
        for readers in [16, 64] {
            let mut sim = fan_out("multicast-repairs", seed, readers, 500, History::KeepAll);
            sim.run_for(Duration::from_millis(4));
            set_loss(&mut sim, 0..readers, 1.0);
            sim.run_for(Duration::from_micros(400));
            set_loss(&mut sim, 0..readers, 0.0);
            sim.run_to_the_end();
            let counters = sim.writers[0].core.counters();
            // About twenty samples are lost at all readers: by unicast, each would be sent to each.
            let (repaired, multicast) = (counters.samples_repaired, counters.repairs_multicast);
            // A history of 32 samples is sent in less time than the loss lasts.
            let least = if profile::IS_SMALL { 1 } else { 10 };
            assert!((least..=60).contains(&multicast), "{multicast} repairs to the group: {sim}");
            assert!(repaired <= 3 * multicast, "{repaired} repairs for {readers} readers: {sim}");
        }
    }
}

/// A writer that is not faster than its readers.
const FAST: (u64, Duration, History) = (20_000, Duration::from_micros(20), History::KeepAll);

/// A writer that waits for its readers for ever. The group does not reach some of them, the links lose nothing.
fn unreachable(
    name: &str,
    (samples, gap, history): (u64, Duration, History),
    readers: usize,
    unreachable: core::ops::Range<usize>,
) -> Sim {
    let mut sim = Sim::new(name, 1, Link::new().delay(DELAY));
    sim.add_writer(|setup| {
        (setup.samples, setup.gap) = (samples, gap);
        setup.config.history = history;
    });
    for _ in 0..readers {
        sim.add_reader(|setup| setup.group = Some(ROUTE));
    }
    sim.connect_all();
    for reader in unreachable {
        sim.network.leave(GROUP, sim.readers[reader].address);
    }
    sim
}

#[test]
fn a_group_that_reaches_no_reader_is_given_up() {
    let mut sim = unreachable("multicast-none", FAST, 3, 0..3);
    sim.run_to_the_end();
    let addresses: Vec<_> = sim.readers.iter().map(|reader| reader.address).collect();
    assert_eq!(sim.writers[0].core.destinations()[..], addresses, "{sim}");
    // The last one is alone in the group, which is not used for one reader.
    assert_eq!(sim.writers[0].core.counters().groups_unreachable, 2, "{sim}");
    // A few rounds of HEARTBEATs without answers, and then as by unicast.
    assert!(sim.now < Time(1_000_000_000), "{sim}");
}

#[test]
fn readers_that_a_group_does_not_reach_are_sent_samples_by_unicast() {
    let mut sim = unreachable("multicast-some", FAST, 4, 1..3);
    sim.run_to_the_end();
    let counters = sim.writers[0].core.counters();
    let expected = [GROUP, sim.readers[1].address, sim.readers[2].address];
    assert_eq!(sim.writers[0].core.destinations()[..], expected, "{sim}");
    assert_eq!(counters.groups_unreachable, 2, "{sim}");
    assert!(sim.now < Time(1_000_000_000), "{sim}");
}

#[test]
fn of_two_readers_one_that_the_group_does_not_reach_ends_its_use() {
    let mut sim = unreachable("multicast-one", FAST, 2, 1..2);
    sim.run_to_the_end();
    assert_eq!(sim.writers[0].core.routes(), []);
    assert!(sim.now < Time(1_000_000_000), "{sim}");
}

#[test]
fn a_group_that_does_not_deliver_is_noticed_at_any_rate_and_with_any_history() {
    let cases = [
        (100, Duration::from_millis(100), History::KeepAll),
        (100, Duration::from_millis(100), History::KeepLast(10)),
        (1000, Duration::from_millis(5), History::KeepLast(10)),
        (50_000, Duration::from_micros(20), History::KeepLast(100)),
    ];
    for case in cases {
        for unreached in [0..1, 0..3] {
            let mut sim = unreachable("multicast-noticed", case, 3, unreached);
            sim.run_until(|sim| {
                sim.writers[0].core.counters().groups_unreachable > 0 || sim.writers[0].is_done()
            });
            let (noticed_at, samples) = (sim.now, sim.writers[0].written);
            assert!(samples <= case.0 / 2, "{samples} samples until {noticed_at:?} in {case:?}: {sim}");
        }
    }
}

#[test]
fn a_group_is_kept_over_interruptions_and_losses() {
    for seed in seeds(3) {
        let mut sim = Sim::new("multicast-kept", seed, Link::new().delay(DELAY));
        sim.add_writer(|setup| {
            setup.samples = 2000;
            setup.gap = Duration::from_micros(20);
        });
        for _ in 0..3 {
            sim.add_reader(|setup| setup.group = Some(ROUTE));
        }
        sim.connect_all();
        for interruption in 1..4 {
            sim.run_for(Duration::from_millis(4));
            set_loss(&mut sim, 0..3, 1.0);
            sim.run_for(Duration::from_millis(20 * interruption));
            set_loss(&mut sim, 0..3, 0.4);
        }
        sim.run_to_the_end();
        assert_eq!(sim.writers[0].core.counters().groups_unreachable, 0, "{sim}");
        assert_eq!(sim.writers[0].core.routes(), [ROUTE], "{sim}");
    }
}

#[test]
fn what_one_of_many_readers_has_lost_is_not_sent_to_the_others() {
    for seed in seeds(2) {
        let mut sim = fan_out("multicast-lossy", seed, 16, 500, History::KeepAll);
        set_loss(&mut sim, 3..4, 0.3);
        sim.run_to_the_end();
        let counters = sim.writers[0].core.counters();
        assert!(counters.samples_repaired > 50 && counters.repairs_multicast == 0, "{counters:?}: {sim}");
        let duplicates: u64 =
            sim.readers.iter().map(|reader| reader.core.counters().samples_duplicate).max().unwrap_or(0);
        assert_eq!(
            sim.readers[0].core.counters().samples_duplicate,
            0,
            "{duplicates} at the lossy one: {sim}"
        );
    }
}

#[test]
fn a_reader_that_stands_still_holds_up_a_group_until_it_is_not_waited_for() {
    for history in [History::KeepAll, History::KeepLast(10)] {
        let mut sim = fan_out("multicast-stops", 1, 16, 3000, history);
        sim.run_for(Duration::from_millis(4));
        let still = sim.readers[5].address;
        sim.network.pause(still);
        sim.run_until(|sim| sim.writers[0].is_done());
        // KEEP_ALL blocks until the reader counts as inactive, KEEP_LAST does not block.
        let stalled = sim.writers[0].core.inactive_readers().count();
        let expected = usize::from(history == History::KeepAll);
        let from = sim.writers[0].config.guid;
        sim.run_for(Duration::from_secs(1));
        assert!(stalled <= expected, "{stalled} inactive readers: {sim}");
        for (index, reader) in sim.readers.iter().enumerate().filter(|(index, _)| *index != 5) {
            let taken = reader.taken(from);
            assert_eq!(taken.last(), Some(&3000), "reader {index}: {sim}");
            if history == History::KeepAll {
                assert_eq!(taken.len(), 3000, "reader {index}: {sim}");
            }
        }
        assert_eq!(sim.writers[0].core.counters().readers_stalled, expected as u64, "{sim}");
    }
}
