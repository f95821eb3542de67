//! Samples sent to a multicast group once, and everything that is for one reader only.

use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddrV4};

use weir_netsim::{Event, Link, Loss};
use weir_rtps::multicast::GroupRoute;
use weir_rtps::qos::Reliability;

use crate::harness::{Sim, seeds};

const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 0, 1), 7401);
const ROUTE: GroupRoute = GroupRoute { group: GROUP, interface: Ipv4Addr::new(10, 0, 0, 1) };

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
