//! What late-joining readers receive.

use std::time::Duration;

use weir_dds::{DataReader, DataReaderQos, DdsError, InstanceState};

use crate::support::{
    DEADLINE, Keyed, Numbered, World, lossless_reader, lossless_writer, matched, take_exactly, take_numbered,
};

#[test]
fn a_late_reader_gets_everything_of_a_writer_that_keeps_all() {
    let world = World::new();
    let writer = world.writer(&world.participant(), lossless_writer().transient_local());
    for number in 0..2_000 {
        writer.write(&Numbered::new(1, number)).unwrap();
    }
    // One joins in the middle, one at the end.
    let first = world.reader(&world.participant(), lossless_reader().transient_local());
    for number in 2_000..4_000 {
        writer.write(&Numbered::new(1, number)).unwrap();
    }
    let second = world.reader(&world.participant(), lossless_reader().transient_local());
    take_numbered(&first, 1, 4_000);
    take_numbered(&second, 1, 4_000);
}

#[test]
fn a_late_reader_that_asks_for_nothing_old_gets_nothing_old() {
    let world = World::new();
    let writer = world.writer(&world.participant(), lossless_writer().transient_local());
    for value in 0..100 {
        writer.write(&Keyed { id: 1, value }).unwrap();
    }
    let reader: DataReader<Keyed> = world.reader(&world.participant(), lossless_reader());
    matched(&[&writer], &[&reader]);
    writer.write(&Keyed { id: 1, value: 100 }).unwrap();
    assert_eq!(take_exactly(&reader, 1)[0].data().unwrap().value, 100);
    assert_eq!(reader.sample_lost_status().total_count, 0);
}

#[test]
fn a_writer_that_keeps_all_keeps_no_more_than_the_limit() {
    let world = World::new();
    let mut qos = lossless_writer().transient_local().max_blocking_time(Duration::from_millis(10));
    qos.resource_limits.max_samples = Some(100);
    let writer = world.writer(&world.participant(), qos);
    for number in 0..100 {
        writer.write(&Numbered::new(1, number)).unwrap();
    }
    // Samples kept for late-joining readers do not make room for new ones, however long the writer
    // waits.
    assert!(matches!(writer.write(&Numbered::new(1, 100)), Err(DdsError::OutOfResources(_))));
    let reader = world.reader(&world.participant(), lossless_reader().transient_local());
    take_numbered(&reader, 1, 100);
}

#[test]
fn a_late_reader_gets_the_last_samples_of_a_topic_without_a_key() {
    let world = World::new();
    let writer = world.writer(&world.participant(), lossless_writer().keep_last(3).transient_local());
    for number in 0..1_000 {
        writer.write(&Numbered::new(1, number)).unwrap();
    }
    let reader = world.reader(&world.participant(), lossless_reader().transient_local());
    let numbers: Vec<_> = take_exactly(&reader, 3)
        .into_iter()
        .map(|it: weir_dds::Sample<Numbered>| it.data().unwrap().number)
        .collect();
    assert_eq!(numbers, [997, 998, 999]);
}

#[test]
fn a_late_reader_hears_of_disposed_instances() {
    let world = World::new();
    let writer = world.writer(&world.participant(), lossless_writer().keep_last(2).transient_local());
    for id in 0..3 {
        writer.write(&Keyed { id, value: 7 }).unwrap();
    }
    writer.dispose(&Keyed { id: 1, value: 0 }).unwrap();
    let reader: DataReader<Keyed> = world.reader(&world.participant(), lossless_reader().transient_local());
    let samples = take_exactly(&reader, 4);
    let end = samples.iter().find(|it| !it.info.valid_data).unwrap();
    assert_eq!((end.key().unwrap().id, end.info.instance_state), (1, InstanceState::NotAliveDisposed));
}

#[test]
fn a_writer_without_history_does_not_match_a_reader_that_wants_it() {
    let world = World::new();
    let writer = world.writer::<Keyed>(&world.participant(), lossless_writer());
    let participant = world.participant();
    let late = world.reader::<Keyed>(&participant, DataReaderQos::default().reliable().transient_local());
    let plain = world.reader::<Keyed>(&participant, DataReaderQos::default().reliable());
    matched(&[&writer], &[&plain]);
    while late.requested_incompatible_qos_status().total_count == 0 {
        std::thread::yield_now();
    }
    assert_eq!(late.subscription_matched_status().total_count, 0);
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
}
