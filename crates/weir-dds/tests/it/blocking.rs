//! Calls that block for room, acknowledgements or matches, and their timeouts.

use std::time::{Duration, Instant};

use weir_dds::{DataReader, DataReaderQos, DataWriter, DdsError};

use crate::support::{
    DEADLINE, Numbered, World, lossless_reader, lossless_writer, pair, take_exactly, take_numbered,
};

const PATIENCE: Duration = Duration::from_millis(50);

/// A reader that holds at most `max` samples.
fn small_reader(max: u32) -> DataReaderQos {
    let mut qos = lossless_reader();
    qos.resource_limits.max_samples = Some(max);
    qos
}

/// Writes from `number` on until there is no room, and returns the number that failed.
fn fill(writer: &DataWriter<Numbered>, mut number: u64) -> u64 {
    loop {
        let started = Instant::now();
        match writer.write(&Numbered::new(0, number)) {
            Ok(()) => number += 1,
            Err(DdsError::Timeout { waited, hint, .. }) => {
                assert_eq!(waited, PATIENCE);
                assert!(started.elapsed() >= PATIENCE);
                assert!(hint.contains("has not acknowledged"), "{hint}");
                return number;
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_reader_that_never_takes_stalls_its_writer_which_goes_on_after_it_takes() {
    let (writer, reader) = pair::<Numbered>(lossless_writer().max_blocking_time(PATIENCE), small_reader(100));
    let mut stopped = fill(&writer, 0);
    // On a busy machine, the engine's threads may be slower than the writer is patient.
    let deadline = Instant::now() + DEADLINE;
    while reader.available() < 100 && Instant::now() < deadline {
        stopped = fill(&writer, stopped);
    }
    assert!(stopped >= 100, "{stopped}");
    assert_eq!(reader.available(), 100);
    assert_eq!(writer.lagging_subscriptions(), [reader.instance_handle()]);
    assert_eq!(writer.last_sequence_number().0, stopped as i64, "what was refused took no number");
    // One round after the other: taking makes room, and no sample was lost.
    let total = stopped + 1_000;
    std::thread::scope(|scope| {
        scope.spawn(|| take_numbered(&reader, 0, total));
        let mut number = stopped;
        let deadline = Instant::now() + DEADLINE;
        while number < total {
            match writer.write(&Numbered::new(0, number)) {
                Ok(()) => number += 1,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
        }
    });
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
}

#[test]
fn a_writers_own_limit_of_samples_is_kept() {
    let mut qos = lossless_writer().max_blocking_time(PATIENCE);
    qos.resource_limits.max_samples = Some(10);
    let (writer, reader) = pair::<Numbered>(qos, small_reader(5));
    let stopped = fill(&writer, 0);
    assert!((10..=15).contains(&stopped), "{stopped}");
    take_numbered(&reader, 0, stopped);
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    writer.write(&Numbered::new(0, stopped)).unwrap();
    assert_eq!(take_exactly(&reader, 1)[0].data().unwrap().number, stopped);
}

#[test]
fn a_stalled_reader_that_leaves_lets_the_writer_go_on() {
    let world = World::new();
    let writer = world.writer(&world.participant(), lossless_writer());
    let stalled: DataReader<Numbered> = world.reader(&world.participant(), small_reader(10));
    let healthy: DataReader<Numbered> = world.reader(&world.participant(), lossless_reader());
    crate::support::matched(&[&writer], &[&stalled, &healthy]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Far more than the window holds.
            for number in 0..30_000 {
                writer.write(&Numbered::new(0, number)).unwrap();
            }
            writer.wait_for_acknowledgments(DEADLINE).unwrap();
        });
        stalled.wait_for_data(DEADLINE).unwrap();
        drop(stalled);
        take_numbered(&healthy, 0, 30_000);
    });
}

#[test]
fn acknowledgements_are_waited_for_no_longer_than_allowed() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), small_reader(3));
    for number in 0..5 {
        writer.write(&Numbered::new(0, number)).unwrap();
    }
    let error = writer.wait_for_acknowledgments(PATIENCE).unwrap_err();
    assert!(matches!(&error, DdsError::Timeout { waited, .. } if *waited == PATIENCE));
    assert!(error.to_string().contains(&reader.guid().to_string()), "{error}");
    take_numbered(&reader, 0, 5);
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
}

#[test]
fn nothing_has_to_be_acknowledged_without_readers() {
    let world = World::new();
    let writer = world.writer(&world.participant(), lossless_writer());
    writer.wait_for_acknowledgments(Duration::ZERO).unwrap();
    for number in 0..10_000 {
        writer.write(&Numbered::new(0, number)).unwrap();
    }
    writer.wait_for_acknowledgments(Duration::ZERO).unwrap();
    assert_eq!(writer.send_counters(), weir_dds::SendCounters::default());
}

#[test]
fn samples_are_acknowledged_before_they_are_taken() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    for number in 0..100 {
        writer.write(&Numbered::new(0, number)).unwrap();
        writer.wait_for_acknowledgments(DEADLINE).unwrap();
        assert_eq!(reader.available(), number as usize + 1);
    }
}

#[test]
fn matches_that_do_not_come_are_waited_for_no_longer_than_allowed() {
    let world = World::new();
    let participant = world.participant();
    let writer: DataWriter<Numbered> = world.writer(&participant, lossless_writer());
    let error = writer.wait_for_subscriptions(1, PATIENCE).unwrap_err();
    assert!(error.to_string().contains("0 of 1 readers"), "{error}");
    let reader: DataReader<Numbered> = world.reader(&participant, lossless_reader());
    reader.wait_for_publications(1, DEADLINE).unwrap();
    let error = reader.wait_for_publications(2, PATIENCE).unwrap_err();
    assert!(error.to_string().contains("1 of 2 writers"), "{error}");
    reader.wait_for_publications(0, Duration::ZERO).unwrap();
}

#[test]
fn endless_patience_is_allowed() {
    let (writer, reader) =
        pair::<Numbered>(lossless_writer().max_blocking_time(Duration::MAX), small_reader(10));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..20_000 {
                writer.write(&Numbered::new(0, number)).unwrap();
            }
            writer.wait_for_acknowledgments(Duration::MAX).unwrap();
        });
        reader.wait_for_data(Duration::MAX).unwrap();
        take_numbered(&reader, 0, 20_000);
    });
}
