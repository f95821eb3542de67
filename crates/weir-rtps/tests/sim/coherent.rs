//! Coherent sets and ordered access under loss, reordering, late joiners and writers that leave (PRESENTATION).

mod publication;

use core::time::Duration;
use std::collections::BTreeMap;

use weir_netsim::{Link, Loss};
use weir_rtps::qos::PresentationScope::{Group, Instance, Topic};
use weir_rtps::qos::{Durability, History, Reliability};

use crate::harness::seeds;
use publication::{Policies, Publication, Value};

fn clean() -> Link {
    Link::new().delay(Duration::from_micros(50))
}

fn lossy() -> Link {
    clean().loss(Loss::random(0.1)).reorder(0.2, Duration::from_micros(400)).duplicate(0.05)
}

fn dead() -> Link {
    clean().loss(Loss::random(1.0))
}

/// Checks that values of a set are complete: `rounds` of each instance, from `first` on.
fn check_set(values: &[Value], instances: u8, rounds: u8, first: u8) {
    let mut of_instance: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
    values.iter().for_each(|(_, instance, number)| of_instance.entry(*instance).or_default().push(*number));
    let expected: Vec<u8> = (first..first + rounds).collect();
    assert_eq!(of_instance.len(), usize::from(instances), "{values:?}");
    assert!(of_instance.values().all(|numbers| *numbers == expected), "{values:?}");
}

#[test]
fn a_set_becomes_accessible_as_a_whole_with_each_scope() {
    for scope in [Instance, Topic, Group] {
        for seed in seeds(3) {
            let mut it = Publication::complete(seed, clean(), Policies::coherent(scope), 3);
            it.begin();
            for round in 0..3 {
                for writer in 0..3 {
                    (0..4).for_each(|instance| it.write(writer, instance, round));
                }
                it.run();
                assert_eq!([0, 1, 2].map(|reader| it.available(reader)), [0; 3], "{scope:?}");
            }
            it.end();
            it.run();
            for reader in 0..3 {
                check_set(&it.take(reader), 4, 3, 0);
            }
        }
    }
}

#[test]
fn sets_arrive_whole_and_in_order_on_a_link_that_loses_and_reorders() {
    for scope in [Instance, Topic, Group] {
        for seed in seeds(8) {
            let mut it = Publication::complete(seed, lossy(), Policies::coherent(scope), 3);
            it.run();
            let mut seen = [0; 3];
            for set in 0..10 {
                it.write_set(4, 3, set * 3);
                it.run_for(Duration::from_millis(2));
                for (reader, seen) in seen.iter_mut().enumerate() {
                    let taken = it.take(reader);
                    assert_eq!(taken.len() % 12, 0, "reader {reader} got a part of a set: {taken:?}");
                    for values in sets_of(&taken, 3) {
                        check_set(&values, 4, 3, *seen);
                        *seen += 3;
                    }
                }
            }
            it.run();
            for (reader, seen) in seen.iter_mut().enumerate() {
                for values in sets_of(&it.take(reader), 3) {
                    check_set(&values, 4, 3, *seen);
                    *seen += 3;
                }
                assert_eq!((*seen, it.dropped(reader)), (30, 0), "reader {reader}, {scope:?}, seed {seed}");
            }
        }
    }
}

/// Values by the set that they were written in.
fn sets_of(values: &[Value], rounds: u8) -> Vec<Vec<Value>> {
    let mut sets: BTreeMap<u8, Vec<Value>> = BTreeMap::new();
    values.iter().for_each(|value| sets.entry(value.2 / rounds).or_default().push(*value));
    sets.into_values().collect()
}

#[test]
fn a_set_of_large_samples_in_fragments_is_whole() {
    for seed in seeds(3) {
        let policies = Policies { len: 10_000, ..Policies::coherent(Topic) };
        let mut it = Publication::complete(seed, lossy(), policies, 1);
        it.begin();
        (0..4).for_each(|instance| it.write(0, instance, 1));
        it.run();
        assert_eq!(it.available(0), 0);
        it.end();
        it.run();
        check_set(&it.take(0), 4, 1, 1);
    }
}

#[test]
fn a_set_that_lost_a_sample_is_dropped_as_a_whole_and_counted() {
    let policies = Policies { reliability: Reliability::BestEffort, ..Policies::coherent(Topic) };
    // In the middle, at the beginning, and at the end of the set.
    for lost in [1, 0, 2] {
        let mut it = Publication::complete(1, clean(), policies, 1);
        it.write_set(3, 1, 1);
        it.run();
        check_set(&it.take(0), 3, 1, 1);
        it.begin();
        for instance in 0..3 {
            it.set_link(if instance == lost { dead() } else { clean() });
            it.write(0, instance, 2);
        }
        it.set_link(clean());
        it.end();
        it.run();
        assert_eq!(it.take(0), [], "lost {lost}");
        assert_eq!(it.dropped(0), 1, "lost {lost}");
        it.write_set(3, 1, 3);
        it.run();
        check_set(&it.take(0), 3, 1, 3);
        assert_eq!(it.dropped(0), 1);
    }
}

#[test]
fn a_shared_set_that_lost_a_sample_is_dropped_at_all_readers() {
    let policies = Policies { reliability: Reliability::BestEffort, ..Policies::coherent(Group) };
    let mut it = Publication::complete(1, clean(), policies, 2);
    it.write_set(1, 1, 1);
    it.run();
    assert_eq!([it.take(0).len(), it.take(1).len()], [1, 1]);
    it.begin();
    it.write(0, 0, 2);
    it.write(1, 0, 2);
    it.set_link(dead());
    it.write(1, 1, 2);
    it.set_link(clean());
    it.write(1, 2, 2);
    it.end();
    it.run();
    assert_eq!([it.take(0), it.take(1)], [vec![], vec![]]);
    assert_eq!([it.dropped(0), it.dropped(1)], [1, 1]);
    it.write_set(1, 1, 3);
    it.run();
    assert_eq!([it.take(0), it.take(1)], [vec![(0, 0, 3)], vec![(1, 0, 3)]]);
}

#[test]
fn a_shared_set_waits_for_the_reader_whose_part_is_late() {
    let mut it = Publication::complete(1, clean(), Policies::coherent(Group), 2);
    it.run();
    it.begin();
    it.write(0, 0, 1);
    it.set_link(dead());
    it.write(1, 0, 1);
    it.set_link(clean());
    it.end();
    it.run_for(Duration::from_micros(60));
    // All of the first writer's part is there, and it is not accessible.
    assert_eq!([it.available(0), it.available(1)], [0, 0]);
    it.run();
    assert_eq!([it.take(0), it.take(1)], [vec![(0, 0, 1)], vec![(1, 0, 1)]]);
}

#[test]
fn a_writer_without_samples_in_a_shared_set_does_not_hold_it_up() {
    let mut it = Publication::complete(1, clean(), Policies::coherent(Group), 3);
    for number in 1..4 {
        it.begin();
        it.write(1, 0, number);
        it.end();
        it.run();
        assert_eq!(it.take(1), [(1, 0, number)]);
    }
}

#[test]
fn samples_outside_of_sets_pass_in_their_order() {
    for scope in [Topic, Group] {
        let mut it = Publication::complete(1, clean(), Policies::coherent(scope), 2);
        it.write(0, 0, 1);
        it.run();
        assert_eq!(it.take(0), [(0, 0, 1)]);
        it.write_set(1, 1, 2);
        it.write(0, 0, 3);
        it.run();
        assert_eq!(it.take(0), [(0, 0, 2), (0, 0, 3)]);
    }
}

#[test]
fn a_set_whose_writer_leaves_is_dropped() {
    for scope in [Topic, Group] {
        let mut it = Publication::complete(1, clean(), Policies::coherent(scope), 2);
        it.begin();
        it.write(0, 0, 1);
        it.write(1, 0, 1);
        it.run();
        it.leave(0);
        it.end();
        it.run();
        let alone = if scope == Topic { vec![(1, 0, 1)] } else { vec![] };
        assert_eq!(
            it.take(1),
            alone,
            "{scope:?}: the other part is complete only where parts are independent"
        );
        assert_eq!(it.dropped(0), 1);
        let values = it.take(0);
        assert!(values.is_empty(), "{values:?}");
    }
}

#[test]
fn a_late_joiner_gets_whole_sets_of_a_transient_local_writer() {
    for scope in [Instance, Topic, Group] {
        for seed in seeds(4) {
            let policies = Policies { durability: Durability::TransientLocal, ..Policies::coherent(scope) };
            let mut it = Publication::new(seed, lossy(), policies, 2);
            (0..3).for_each(|set| it.write_set(2, 2, set * 2));
            // Its end comes after the readers.
            it.begin();
            (0..2).for_each(|writer| it.write(writer, 0, 6));
            (0..2).for_each(|writer| _ = it.add_reader(writer));
            it.run();
            for reader in 0..2 {
                let taken = it.take(reader);
                assert_eq!(taken.len(), 12, "{scope:?} {taken:?}");
                for (set, values) in sets_of(&taken, 2).iter().enumerate() {
                    check_set(values, 2, 2, 2 * set as u8);
                }
            }
            it.end();
            it.run();
            assert_eq!([it.take(0), it.take(1)], [vec![(0, 0, 6)], vec![(1, 0, 6)]]);
        }
    }
}

#[test]
fn a_volatile_reader_that_joins_amid_a_set_gets_the_next_one() {
    for reliability in [Reliability::Reliable, Reliability::BestEffort] {
        let policies = Policies { reliability, ..Policies::coherent(Topic) };
        let mut it = Publication::new(1, clean(), policies, 1);
        it.begin();
        it.write(0, 0, 1);
        it.add_reader(0);
        it.run();
        it.write(0, 1, 1);
        it.end();
        it.run();
        assert_eq!(it.take(0), []);
        assert_eq!(it.dropped(0), 1);
        it.write_set(2, 1, 2);
        it.run();
        check_set(&it.take(0), 2, 1, 2);
    }
}

#[test]
fn keep_last_replaces_within_a_set_and_the_rest_is_whole() {
    for durability in [Durability::Volatile, Durability::TransientLocal] {
        let policies = Policies { history: History::KeepLast(1), durability, ..Policies::coherent(Topic) };
        let mut it = Publication::complete(1, clean(), policies, 1);
        it.write_set(2, 3, 1);
        it.run();
        assert_eq!(it.take(0), [(0, 0, 3), (0, 1, 3)]);
        if durability == Durability::TransientLocal {
            let late = it.add_reader(0);
            it.run();
            assert_eq!(it.take(late), [(0, 0, 3), (0, 1, 3)]);
        }
    }
}

#[test]
fn ends_of_sets_do_not_pile_up_at_a_transient_local_writer() {
    let policies = Policies {
        history: History::KeepLast(1),
        durability: Durability::TransientLocal,
        ..Policies::coherent(Group)
    };
    let mut it = Publication::complete(1, clean(), policies, 2);
    for number in 0..200 {
        it.begin();
        it.write(0, 0, number);
        it.end();
        it.run();
    }
    assert!(it.writer(0).kept() <= 4, "{} are kept", it.writer(0).kept());
    assert!(it.writer(1).kept() <= 3, "{} are kept", it.writer(1).kept());
    let late = it.add_reader(0);
    it.add_reader(1);
    it.run();
    assert_eq!(it.take(late), [(0, 0, 199)]);
}

#[test]
fn a_set_that_never_ends_takes_bounded_memory_and_the_next_one_arrives() {
    let policies = Policies { len: 1_000, max_bytes: 1 << 20, ..Policies::coherent(Topic) };
    let mut it = Publication::complete(1, clean(), policies, 1);
    it.begin();
    for number in 0..5_000_u32 {
        it.write(0, number as u8, 1);
        it.run_for(Duration::from_micros(200));
        assert!(it.reader(0).memory() < 4 << 20, "{} bytes", it.reader(0).memory());
    }
    it.end();
    it.run();
    assert_eq!((it.take(0), it.dropped(0)), (vec![], 1));
    it.write_set(1, 1, 2);
    it.run();
    assert_eq!(it.take(0), [(0, 0, 2)]);
}

#[test]
fn with_instance_scope_samples_of_an_instance_follow_each_other() {
    let mut it = Publication::complete(1, clean(), Policies::ordered(Instance), 1);
    for number in 0..3 {
        (0..3).for_each(|instance| it.write(0, instance, number));
    }
    it.run();
    let expected: Vec<Value> =
        (0..3).flat_map(|instance| (0..3).map(move |number| (0, instance, number))).collect();
    assert_eq!(it.take(0), expected);
}

#[test]
fn with_topic_scope_samples_come_in_the_order_of_writing() {
    for seed in seeds(4) {
        let mut it = Publication::complete(seed, lossy(), Policies::ordered(Topic), 1);
        for number in 0..20 {
            (0..3).for_each(|instance| it.write(0, instance, number));
        }
        it.run();
        let expected: Vec<Value> =
            (0..20).flat_map(|number| (0..3).map(move |instance| (0, instance, number))).collect();
        assert_eq!(it.take(0), expected);
    }
}

#[test]
fn with_group_scope_samples_come_one_by_one_in_the_order_of_the_publisher() {
    for seed in seeds(4) {
        let mut it = Publication::complete(seed, lossy(), Policies::ordered(Group), 3);
        it.run();
        let order = [0, 2, 1, 1, 0, 2, 2, 0, 1];
        order.iter().enumerate().for_each(|(number, writer)| it.write(*writer, 0, number as u8));
        it.run();
        assert_eq!(it.order(), order);
        for (number, reader) in it.order().into_iter().enumerate() {
            assert_eq!(it.take(reader), [(reader, 0, number as u8)], "one at a time");
        }
        assert_eq!(it.order(), []);
    }
}

#[test]
fn two_writers_of_a_group_with_one_reader_are_read_in_their_order() {
    let mut policies = Policies::ordered(Group);
    policies.reliability = Reliability::Reliable;
    let mut it = Publication::new(1, clean(), policies, 2);
    let reader = it.add_reader(0);
    it.join(1, reader);
    it.run();
    // The first sample is lost at first, and the second overtakes it.
    it.set_link(dead());
    it.write(0, 0, 1);
    it.set_link(clean());
    it.write(1, 1, 2);
    it.run();
    assert_eq!(it.take_up_to(reader, 10), [(0, 0, 1)]);
    assert_eq!(it.take_up_to(reader, 10), [(1, 1, 2)]);
}
