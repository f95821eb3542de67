//! Matches, and incompatible endpoints.

use weir_dds::{
    DataReader, DataReaderQos, DataWriter, DataWriterQos, DdsError, Durability, IncompatibleQosStatus,
    PolicyId,
};

use crate::support::{DEADLINE, Keyed, Numbered, World, lossless_reader, lossless_writer, matched};

/// Waits for a status that no call waits for.
fn until(mut is_reached: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + DEADLINE;
    while !is_reached() {
        assert!(std::time::Instant::now() < deadline);
        std::thread::yield_now();
    }
}

#[test]
fn matches_are_counted_and_reading_resets_the_changes() {
    let world = World::new();
    let writer: DataWriter<Numbered> = world.writer(&world.participant(), lossless_writer());
    let readers = [0; 3].map(|_| world.reader(&world.participant(), lossless_reader()));
    matched(&[&writer], &readers.each_ref());
    let status = writer.publication_matched_status();
    assert_eq!((status.total_count, status.total_count_change), (3, 3));
    assert_eq!((status.current_count, status.current_count_change), (3, 3));
    assert!(readers.iter().any(|reader| Some(reader.instance_handle()) == status.last_subscription_handle));
    let status = writer.publication_matched_status();
    assert_eq!((status.total_count, status.total_count_change, status.current_count_change), (3, 0, 0));
    let [first, second, third] = readers;
    drop((second, third));
    assert_eq!(first.subscription_matched_status().current_count, 1);
    until(|| writer.publication_matched_status().current_count == 1);
    drop(writer);
    until(|| first.subscription_matched_status().current_count == 0);
    assert_eq!(first.subscription_matched_status().total_count, 1);
}

#[test]
fn other_topics_and_other_types_do_not_match() {
    let world = World::new();
    let participant = world.participant();
    let elsewhere = world.sibling();
    let other_topic: DataReader<Numbered> = elsewhere.reader(&participant, lossless_reader());
    let other_type: DataReader<Keyed> = world.reader(&participant, lossless_reader());
    let reader: DataReader<Numbered> = world.reader(&participant, lossless_reader());
    let writer: DataWriter<Numbered> = world.writer(&participant, lossless_writer());
    matched(&[&writer], &[&reader]);
    for count in [
        writer.publication_matched_status().current_count - 1,
        other_topic.subscription_matched_status().current_count,
        other_type.subscription_matched_status().current_count,
    ] {
        assert_eq!(count, 0);
    }
}

fn incompatible(writer: DataWriterQos, reader: DataReaderQos, policy: PolicyId) {
    let world = World::new();
    let (one, other) = (world.participant(), world.participant());
    let writer: DataWriter<Numbered> = world.writer(&one, writer);
    let reader: DataReader<Numbered> = world.reader(&other, reader);
    let mut offered = IncompatibleQosStatus::default();
    until(|| {
        offered = writer.offered_incompatible_qos_status();
        offered.total_count > 0
    });
    assert_eq!((offered.total_count, offered.last_policy_id), (1, Some(policy)));
    let mut requested = IncompatibleQosStatus::default();
    until(|| {
        requested = reader.requested_incompatible_qos_status();
        requested.total_count > 0
    });
    assert_eq!((requested.total_count, requested.last_policy_id), (1, Some(policy)));
    assert_eq!(requested.total_count_change, 1);
    assert_eq!(reader.requested_incompatible_qos_status().total_count_change, 0);
    assert_eq!(writer.publication_matched_status().total_count, 0);
    assert_eq!(reader.subscription_matched_status().total_count, 0);
}

#[test]
fn a_reader_that_requests_more_reliability_is_told() {
    incompatible(DataWriterQos::default().best_effort(), lossless_reader(), PolicyId::Reliability);
}

#[test]
fn a_reader_that_requests_more_durability_is_told() {
    let mut reader = lossless_reader();
    reader.durability = Durability::TransientLocal;
    incompatible(lossless_writer(), reader, PolicyId::Durability);
}

#[test]
fn partitions_keep_endpoints_apart_without_a_complaint() {
    let world = World::new();
    let participant = world.participant();
    let writer: DataWriter<Numbered> = world.writer(&participant, lossless_writer().partition(["left"]));
    let apart: DataReader<Numbered> = world.reader(&participant, lossless_reader().partition(["right"]));
    let pattern: DataReader<Numbered> = world.reader(&participant, lossless_reader().partition(["le*"]));
    matched(&[&writer], &[&pattern]);
    assert_eq!(apart.subscription_matched_status().total_count, 0);
    assert_eq!(apart.requested_incompatible_qos_status().total_count, 0);
}

#[test]
fn qos_that_cannot_be_is_refused_with_a_reason() {
    let world = World::new();
    let participant = world.participant();
    let topic = world.topic::<Numbered>(&participant);
    let writer = |qos| participant.create_publisher().unwrap().create_datawriter(&topic, qos).unwrap_err();
    let reader = |qos| participant.create_subscriber().unwrap().create_datareader(&topic, qos).unwrap_err();
    for (error, word) in [
        (writer(DataWriterQos::default().keep_last(0)), "HISTORY"),
        (reader(DataReaderQos::default().keep_last(0)), "HISTORY"),
    ] {
        assert!(matches!(error, DdsError::InconsistentPolicy(_)), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
}
