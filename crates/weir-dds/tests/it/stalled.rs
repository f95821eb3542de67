//! What a stalled reader blocks, and what it does not.

use std::time::{Duration, Instant};

use weir_dds::{DataReader, DataReaderQos, DataWriter, DataWriterQos, DdsError, DomainParticipant};

use crate::support::{
    DEADLINE, Numbered, World, lossless_reader, lossless_writer, matched, take_exactly, take_numbered,
};

const PATIENCE: Duration = Duration::from_millis(50);

/// A reader that holds few samples and never takes any.
fn stalled_reader(world: &World) -> DataReader<Numbered> {
    let mut qos: DataReaderQos = lossless_reader();
    qos.resource_limits.max_samples = Some(10);
    world.reader(&world.participant(), qos)
}

/// Writes until there is no room, and returns the error's text.
fn stall(writer: &DataWriter<Numbered>) -> String {
    loop {
        match writer.write(&Numbered::new(0, 0)) {
            Ok(()) => {}
            Err(error @ DdsError::Timeout { .. }) => return error.to_string(),
            Err(other) => panic!("{other}"),
        }
    }
}

/// A KEEP_ALL writer on `participant`, with a healthy reader and a stalled one that blocks it.
fn stalled(
    world: &World,
    participant: &DomainParticipant,
) -> (DataWriter<Numbered>, [DataReader<Numbered>; 2]) {
    let writer = world.writer(participant, lossless_writer().max_blocking_time(PATIENCE));
    let healthy = world.reader(&world.participant(), lossless_reader());
    // Matched after the other one: the error does not just name the first.
    matched(&[&writer], &[&healthy]);
    let stalled = stalled_reader(world);
    matched(&[&writer], &[&healthy, &stalled]);
    // On a busy machine the healthy reader may be furthest behind for a while.
    let deadline = Instant::now() + DEADLINE;
    let mut text = stall(&writer);
    while !text.contains(&stalled.guid().to_string()) {
        assert!(Instant::now() < deadline, "{text}");
        text = stall(&writer);
    }
    assert_eq!(writer.lagging_subscriptions().first(), Some(&stalled.instance_handle()));
    (writer, [healthy, stalled])
}

#[test]
fn a_stalled_reader_is_named_and_what_was_accepted_reaches_the_others() {
    let world = World::new();
    let (writer, [healthy, stalled]) = stalled(&world, &world.participant());
    let written = writer.last_sequence_number().0 as usize;
    assert_eq!(take_exactly(&healthy, written).len(), written);
    assert_eq!(stalled.available(), 10);
    // The stalled reader leaves, and the writer is free.
    drop(stalled);
    while writer.write(&Numbered::new(0, 1)).is_err() {}
    assert_eq!(take_exactly(&healthy, 1)[0].data().unwrap().number, 1);
}

#[test]
fn a_stalled_reader_holds_up_neither_other_writers_nor_discovery() {
    let world = World::new();
    let participant = world.participant();
    let (held_up, [_healthy, stalled]) = stalled(&world, &participant);
    // Another writer of the same participant, whose readers are discovered only now.
    let other = world.sibling();
    let writer = other.writer(&participant, lossless_writer());
    let reader = other.reader(&other.participant(), lossless_reader());
    matched(&[&writer], &[&reader]);
    std::thread::scope(|scope| {
        scope.spawn(|| take_numbered(&reader, 0, 5_000));
        for number in 0..5_000 {
            writer.write(&Numbered::new(0, number)).unwrap();
        }
        writer.wait_for_acknowledgments(DEADLINE).unwrap();
    });
    // Late answers of a busy machine may have made room for some samples.
    let text = stall(&held_up);
    assert!(text.contains(&stalled.guid().to_string()), "{text}");
}

#[test]
fn a_writer_that_keeps_the_last_goes_on_beside_a_stalled_reader() {
    const COUNT: u64 = 20_000;
    let world = World::new();
    let qos = DataWriterQos::default().reliable().keep_last(5).max_blocking_time(Duration::ZERO);
    let writer: DataWriter<Numbered> = world.writer(&world.participant(), qos);
    let stalled = stalled_reader(&world);
    let healthy = world.reader(&world.participant(), lossless_reader());
    matched(&[&writer], &[&stalled, &healthy]);
    for number in 0..COUNT {
        writer.write(&Numbered::new(0, number)).unwrap();
    }
    let mut last = None;
    while last != Some(COUNT - 1) {
        healthy.wait_for_data(DEADLINE).unwrap();
        for sample in healthy.take(usize::MAX) {
            assert!(last.is_none_or(|last| last < sample.data().unwrap().number));
            last = Some(sample.data().unwrap().number);
        }
    }
    assert!(stalled.available() <= 10);
}
