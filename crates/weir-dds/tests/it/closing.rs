//! Closing entities instead of dropping them.

use std::time::Duration;

use weir_dds::{DataReaderQos, DataWriterQos, DdsError, InstanceState, PublishMode};

use crate::support::{
    DEADLINE, Keyed, Numbered, World, lossless_reader, lossless_writer, matched, pair, settings, take_exactly,
};

#[test]
fn a_closed_writer_has_sent_everything_and_writes_no_more() {
    for mode in [PublishMode::Synchronous, PublishMode::Asynchronous] {
        let (writer, reader) = pair::<Keyed>(lossless_writer().publish_mode(mode), lossless_reader());
        let other = writer.clone();
        let handle = writer.register_instance(&Keyed { id: 1, value: 0 }).unwrap();
        (0..100).for_each(|value| writer.write(&Keyed { id: 1, value }).unwrap());
        writer.close().unwrap();
        other.close().unwrap();
        let samples = take_exactly(&reader, 101);
        assert_eq!(samples[99].data(), Some(&Keyed { id: 1, value: 99 }));
        assert_eq!(samples[100].info.instance_state, InstanceState::NotAliveDisposed);
        for result in [
            other.write(&Keyed::default()),
            other.dispose(&Keyed::default()),
            other.register_instance(&Keyed { id: 2, value: 0 }).map(drop),
        ] {
            assert!(matches!(result, Err(DdsError::AlreadyDeleted("writer"))), "{result:?}");
        }
        assert!(matches!(other.dispose_by_handle(handle), Err(DdsError::BadParameter(_))));
    }
}

#[test]
fn closing_a_writer_reports_that_its_end_was_not_acknowledged() {
    // The reader has no room for the end of the instance.
    let limits = weir_dds::ResourceLimits::default().max_samples(1);
    let (writer, reader) = pair::<Keyed>(lossless_writer(), lossless_reader().resource_limits(limits));
    writer.register_instance(&Keyed { id: 1, value: 0 }).unwrap();
    writer.write(&Keyed { id: 1, value: 1 }).unwrap();
    let error = writer.close().unwrap_err();
    assert!(error.to_string().contains(&reader.guid().to_string()), "{error}");
    assert!(matches!(error, DdsError::Timeout { .. }));
    writer.close().unwrap();
}

#[test]
fn a_closed_reader_receives_no_more_and_keeps_what_it_has() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    writer.write(&Numbered::new(0, 0)).unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    let other = reader.clone();
    reader.close().unwrap();
    // Nothing holds the writer up any more.
    writer.write(&Numbered::new(0, 1)).unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    assert_eq!(other.take(usize::MAX).len(), 1);
    other.close().unwrap();
}

#[test]
fn a_participant_is_closed_only_without_other_handles() {
    let world = World::new();
    let participant = world.participant();
    let writer = world.writer::<Keyed>(&participant, DataWriterQos::default());
    let other = world.participant();
    let reader = world.reader::<Keyed>(&other, DataReaderQos::default());
    matched(&[&writer], &[&reader]);
    let handle = participant.clone();
    assert!(matches!(participant.close(), Err(DdsError::PreconditionNotMet(_))));
    drop(writer);
    handle.close().unwrap();
}

/// Before, the first wait lasted for ever, and the others until their time was over.
#[test]
fn who_waits_for_an_entity_notices_that_it_is_closed() {
    for is_polled in [false, true] {
        let world = World::new();
        let threads = if is_polled { settings().without_threads() } else { settings() };
        let participant = world.participant_with(threads);
        let writer = world.writer::<Keyed>(&participant, DataWriterQos::default());
        let reader = world.reader::<Keyed>(&participant, DataReaderQos::default());
        std::thread::scope(|scope| {
            let waits = [
                scope.spawn(|| reader.wait_for_data(Duration::MAX)),
                scope.spawn(|| reader.wait_for_publications(2, Duration::MAX)),
                scope.spawn(|| writer.wait_for_subscriptions(2, Duration::MAX)),
            ];
            reader.close().unwrap();
            writer.close().unwrap();
            for wait in waits {
                let outcome = wait.join().unwrap();
                assert!(matches!(outcome, Err(DdsError::AlreadyDeleted(_))), "{outcome:?}");
            }
        });
    }
}
