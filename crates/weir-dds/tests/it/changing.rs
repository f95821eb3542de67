//! QoS that change while entities exist, and entities that are enabled later (DDS 1.4, 2.2.3, 2.2.2.1.1).

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use weir_dds::{
    DataReader, DataReaderListener, DataReaderQos, DataWriter, DataWriterQos, DdsError, DestinationOrder,
    DomainParticipant, DomainParticipantQos, Durability, DurabilityService, INFINITE, LivelinessKind,
    Ownership, ReaderDataLifecycle, ResourceLimits, StatusMask, SubscriptionMatchedStatus, TopicQos, WaitSet,
};

use crate::support::{
    DEADLINE, Keyed, Numbered, World, lossless_reader, lossless_writer, matched, settings, take_exactly,
};

fn refused(error: DdsError) -> String {
    match error {
        DdsError::ImmutablePolicy { policies } => policies,
        other => panic!("{other:?}"),
    }
}

#[test]
fn policies_that_cannot_change_are_refused_with_their_names_and_nothing_changes() {
    let world = World::new();
    let participant = world.participant();
    let writer: DataWriter<Numbered> = world.writer(&participant, lossless_writer());
    let before = writer.get_qos();
    assert_eq!(before, lossless_writer());
    let limits = ResourceLimits::default().max_samples(9);
    let delay = DurabilityService { service_cleanup_delay: INFINITE, ..DurabilityService::default() };
    let check = |change: fn(DataWriterQos) -> DataWriterQos, expected: &str| {
        assert_eq!(refused(writer.set_qos(change(before.clone())).unwrap_err()), expected);
    };
    check(|qos| qos.transient_local().ownership_strength(3), "DURABILITY");
    check(|qos| qos.best_effort().keep_last(1), "RELIABILITY, HISTORY");
    check(|qos| qos.max_blocking_time(Duration::ZERO), "RELIABILITY");
    check(|qos| qos.liveliness(LivelinessKind::ManualByTopic, INFINITE), "LIVELINESS");
    check(|qos| qos.ownership(Ownership::Exclusive), "OWNERSHIP");
    check(|qos| qos.destination_order(DestinationOrder::BySourceTimestamp), "DESTINATION_ORDER");
    check(|qos| qos.data_representation(weir_dds::DataRepresentation::Xcdr2), "DATA_REPRESENTATION");
    let error = writer.set_qos(before.clone().resource_limits(limits).durability_service(delay)).unwrap_err();
    assert!(error.to_string().contains("DURABILITY_SERVICE, RESOURCE_LIMITS"), "{error}");
    assert_eq!(writer.get_qos(), before);

    let reader: DataReader<Numbered> = world.reader(&participant, DataReaderQos::default());
    let error = reader.set_qos(reader.get_qos().reliable().transient_local()).unwrap_err();
    assert_eq!(refused(error), "DURABILITY, RELIABILITY");
    let contradiction =
        reader.get_qos().deadline(Duration::from_secs(1)).time_based_filter(Duration::from_secs(2));
    assert!(matches!(reader.set_qos(contradiction), Err(DdsError::InconsistentPolicy(_))));
    let too_long = writer.get_qos().user_data(vec![0; 1025]).ownership_strength(7);
    assert!(matches!(writer.set_qos(too_long), Err(DdsError::BadParameter(_))));
    assert_eq!((writer.get_qos(), reader.get_qos()), (before, DataReaderQos::default()));
}

/// Forwards matches.
struct Matches(Mutex<Sender<SubscriptionMatchedStatus>>);

impl<T> DataReaderListener<T> for Matches {
    fn on_subscription_matched(&self, _: &DataReader<T>, status: SubscriptionMatchedStatus) {
        let _ = self.0.lock().unwrap().send(status);
    }
}

/// A reader in another participant, and its matches.
fn watched(world: &World, qos: DataReaderQos) -> (DataReader<Numbered>, Receiver<SubscriptionMatchedStatus>) {
    let (tell, told) = channel();
    let participant = world.participant();
    let subscriber = participant.create_subscriber().unwrap();
    let listener = Matches(Mutex::new(tell));
    (subscriber.create_datareader_with_listener(&world.topic(&participant), qos, listener).unwrap(), told)
}

#[test]
fn another_partition_of_a_writer_ends_the_match_at_a_remote_reader_and_begins_it_again() {
    let world = World::new();
    let (reader, told) = watched(&world, lossless_reader().partition(["right", "le*"]));
    let writer: DataWriter<Numbered> =
        world.writer(&world.participant(), lossless_writer().partition(["left"]));
    assert_eq!(told.recv_timeout(DEADLINE).unwrap().current_count, 1);
    writer.wait_for_subscriptions(1, DEADLINE).unwrap();
    writer.write(&Numbered::new(1, 1)).unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    writer.set_qos(writer.get_qos().partition(["middle"])).unwrap();
    assert_eq!(told.recv_timeout(DEADLINE).unwrap().current_count, 0);
    // No reader is matched.
    writer.write(&Numbered::new(1, 2)).unwrap();
    writer.set_qos(writer.get_qos().partition(["right"])).unwrap();
    assert_eq!(told.recv_timeout(DEADLINE).unwrap().current_count, 1);
    writer.wait_for_subscriptions(1, DEADLINE).unwrap();
    writer.write(&Numbered::new(1, 3)).unwrap();
    let numbers: Vec<_> =
        take_exactly(&reader, 2).iter().map(|sample| sample.data().unwrap().number).collect();
    assert_eq!(numbers, [1, 3]);
}

#[test]
fn a_writer_that_becomes_stronger_takes_an_instance_over() {
    let world = World::new();
    let participant = world.participant();
    let qos = lossless_writer().ownership(Ownership::Exclusive);
    let strong: DataWriter<Keyed> = world.writer(&participant, qos.clone().ownership_strength(2));
    let weak: DataWriter<Keyed> = world.writer(&participant, qos.ownership_strength(1));
    let reader: DataReader<Keyed> =
        world.reader(&participant, lossless_reader().ownership(Ownership::Exclusive));
    matched(&[&strong, &weak], &[&reader]);
    let write = |writer: &DataWriter<Keyed>, value| {
        writer.write(&Keyed { id: 1, value }).unwrap();
        writer.wait_for_acknowledgments(DEADLINE).unwrap();
    };
    write(&strong, 1);
    write(&weak, 2);
    // In one participant, the change has its effect before the call returns.
    weak.set_qos(weak.get_qos().ownership_strength(3)).unwrap();
    write(&weak, 3);
    write(&strong, 4);
    let values: Vec<_> = reader.take(10).iter().map(|sample| sample.data().unwrap().value).collect();
    assert_eq!(values, [1, 3]);
}

#[test]
fn a_deadline_and_a_lifespan_that_are_set_later_are_enforced_at_both_ends() {
    let world = World::new();
    let participant = world.participant();
    let writer: DataWriter<Keyed> = world.writer(&participant, lossless_writer());
    let reader: DataReader<Keyed> = world.reader(&participant, lossless_reader());
    matched(&[&writer], &[&reader]);
    let period = Duration::from_millis(20);
    // In this order, the offer always satisfies the request.
    writer.set_qos(writer.get_qos().deadline(period)).unwrap();
    reader.set_qos(reader.get_qos().deadline(period)).unwrap();
    writer.write(&Keyed { id: 1, value: 1 }).unwrap();
    // The reader wakes for nothing else; its listener would, too.
    let (tell, told) = channel();
    struct Missed(Mutex<Sender<u64>>);
    impl<T> DataReaderListener<T> for Missed {
        fn on_requested_deadline_missed(&self, _: &DataReader<T>, status: weir_dds::DeadlineMissedStatus) {
            let _ = self.0.lock().unwrap().send(status.total_count);
        }
    }
    reader.set_listener(Some(std::sync::Arc::new(Missed(Mutex::new(tell)))));
    assert!(told.recv_timeout(DEADLINE).unwrap() >= 1);
    assert_eq!(reader.subscription_matched_status().current_count, 1);
    // A request that is not offered ends the match.
    reader.set_qos(reader.get_qos().deadline(period / 2)).unwrap();
    assert_eq!(reader.subscription_matched_status().current_count, 0);
    assert_eq!(reader.requested_incompatible_qos_status().total_count, 1);
}

#[test]
fn a_writer_follows_a_deadline_and_a_lifespan_that_are_set_later() {
    let world = World::new();
    let qos = lossless_writer().transient_local();
    let writer: DataWriter<Keyed> = world.writer(&world.participant(), qos);
    let period = Duration::from_millis(1);
    writer.set_qos(writer.get_qos().deadline(period)).unwrap();
    let condition = writer.status_condition();
    condition.set_enabled_statuses(StatusMask::OFFERED_DEADLINE_MISSED);
    let wait_set = WaitSet::new();
    wait_set.attach_condition(&condition);
    writer.write(&Keyed { id: 1, value: 1 }).unwrap();
    wait_set.wait(DEADLINE).unwrap();
    assert!(writer.offered_deadline_missed_status().total_count >= 1);
    assert_eq!(writer.protocol_counters().samples_expired, 0);
    writer.set_qos(writer.get_qos().deadline(INFINITE)).unwrap();
    writer.set_qos(writer.get_qos().lifespan(period)).unwrap();
    // Until the timer has removed some.
    let deadline = Instant::now() + DEADLINE;
    while writer.protocol_counters().samples_expired < 3 {
        assert!(Instant::now() < deadline, "nothing expires");
        writer.write(&Keyed { id: 1, value: 2 }).unwrap();
        std::thread::yield_now();
    }
}

#[test]
fn an_entity_that_is_not_enabled_is_not_announced_and_does_not_write() {
    let world = World::new();
    let qos = DomainParticipantQos::default().autoenable_created_entities(false);
    let participant = DomainParticipant::new_with_qos(world.domain_id, settings(), qos).unwrap();
    let writer: DataWriter<Numbered> = world.writer(&participant, lossless_writer().transient_local());
    let reader: DataReader<Numbered> = world.reader(&participant, lossless_reader().transient_local());
    assert!(!writer.is_enabled() && !reader.is_enabled());
    let error = writer.write(&Numbered::new(1, 1)).unwrap_err();
    assert!(matches!(error, DdsError::NotEnabled("writer")), "{error}");
    // Policies may change before.
    writer.set_qos(writer.get_qos().user_data(*b"mine")).unwrap();
    // The publisher and the subscriber are entities of the participant, and enabled first.
    assert!(matches!(writer.enable(), Err(DdsError::PreconditionNotMet(_))));
    assert!(matches!(reader.enable(), Err(DdsError::PreconditionNotMet(_))));
    assert!(!writer.is_enabled() && !reader.is_enabled() && !writer.publisher().is_enabled());
    writer.publisher().enable().unwrap();
    assert!(writer.is_enabled());
    writer.enable().unwrap();
    writer.write(&Numbered::new(1, 2)).unwrap();
    assert_eq!(writer.publication_matched_status().total_count, 0);
    reader.subscriber().enable().unwrap();
    assert!(reader.is_enabled() && reader.subscriber().is_enabled());
    matched(&[&writer], &[&reader]);
    assert_eq!(take_exactly(&reader, 1)[0].data().unwrap().number, 2);
    // Entities that are created from then on follow the changed policy.
    participant.set_qos(participant.get_qos().autoenable_created_entities(true)).unwrap();
    let late: DataReader<Numbered> = world.reader(&participant, lossless_reader());
    assert!(late.is_enabled());
}

#[test]
fn user_data_of_a_participant_is_known_to_another_one() {
    let world = World::new();
    let qos = DomainParticipantQos::default().user_data(*b"robot 7");
    let one = DomainParticipant::new_with_qos(world.domain_id, settings(), qos).unwrap();
    let other = world.participant();
    let writer: DataWriter<Numbered> = world.writer(&one, lossless_writer());
    let reader: DataReader<Numbered> = world.reader(&other, lossless_reader());
    matched(&[&writer], &[&reader]);
    assert_eq!(other.user_data_of(one.guid_prefix()), Some(b"robot 7".to_vec()));
    assert_eq!(one.user_data_of(other.guid_prefix()), Some(Vec::new()));
    let qos = DomainParticipantQos::default().user_data(vec![0; 1025]);
    assert!(matches!(one.set_qos(qos), Err(DdsError::BadParameter(_))));
    one.set_qos(DomainParticipantQos::default()).unwrap();
    assert_eq!(one.get_qos(), DomainParticipantQos::default());
}

#[test]
fn a_topic_changes_its_data_and_refuses_what_cannot_change() {
    let world = World::new();
    let participant = world.participant();
    let qos = TopicQos::default().topic_data(*b"first");
    let topic = participant.create_topic_with_qos::<Numbered>(&world.topic, qos.clone()).unwrap();
    let writer =
        participant.create_publisher().unwrap().create_datawriter(&topic, DataWriterQos::default()).unwrap();
    assert_eq!(topic.get_qos(), qos);
    topic.set_qos(topic.get_qos().topic_data(*b"second").deadline(Duration::from_secs(1))).unwrap();
    assert_eq!(refused(topic.set_qos(topic.get_qos().reliable()).unwrap_err()), "RELIABILITY");
    assert_eq!(topic.get_qos().topic_data, b"second");
    // Its endpoints have QoS of their own.
    assert_eq!(writer.get_qos().deadline, INFINITE);
    let too_long =
        participant.create_topic_with_qos::<Numbered>("t", TopicQos::default().topic_data(vec![0; 1025]));
    assert!(matches!(too_long, Err(DdsError::InconsistentPolicy(_))));
}

#[test]
fn a_persistent_writer_serves_late_readers_and_says_what_it_does_not_keep() {
    let world = World::new();
    let participant = world.participant();
    let qos = lossless_writer().durability(Durability::Persistent);
    let writer: DataWriter<Keyed> = world.writer(&participant, qos);
    for value in 1..=3 {
        writer.write(&Keyed { id: 1, value }).unwrap();
    }
    writer.write(&Keyed { id: 2, value: 4 }).unwrap();
    let reader: DataReader<Keyed> =
        world.reader(&participant, lossless_reader().durability(Durability::Persistent));
    let values: Vec<_> = take_exactly(&reader, 2).iter().map(|sample| sample.data().unwrap().value).collect();
    assert_eq!(values, [3, 4], "the default of DURABILITY_SERVICE is the last sample of each instance");
    let status = writer.durability_status();
    assert_eq!((status.announced, status.served), (Durability::Persistent, Durability::TransientLocal));
    assert!(!status.is_as_announced());
    assert!(status.to_string().contains("nothing is kept beyond that"), "{status}");
    let local: DataWriter<Keyed> = world.writer(&participant, lossless_writer().transient_local());
    assert!(local.durability_status().is_as_announced());
    let nothing: DataWriter<Keyed> =
        world.writer(&participant, DataWriterQos::default().best_effort().transient_local());
    assert_eq!(nothing.durability_status().served, Durability::Volatile);
}

#[test]
fn small_samples_with_a_latency_budget_share_messages() {
    let world = World::new();
    let (one, other) = (world.participant(), world.participant());
    let budget = Duration::from_secs(1);
    let writer: DataWriter<Numbered> = world.writer(&one, lossless_writer());
    let reader: DataReader<Numbered> = world.reader(&other, lossless_reader().latency_budget(budget));
    matched(&[&writer], &[&reader]);
    let datagrams = |count: u64, writer: &DataWriter<Numbered>| {
        let before = writer.send_counters().datagrams;
        (0..count).for_each(|number| writer.write(&Numbered::new(1, number)).unwrap());
        writer.flush();
        take_exactly(&reader, count as usize);
        writer.send_counters().datagrams - before
    };
    assert!(datagrams(100, &writer) >= 100);
    writer.set_qos(writer.get_qos().latency_budget(budget)).unwrap();
    let shared = datagrams(100, &writer);
    assert!(shared < 100, "{shared} datagrams for 100 samples");
    // A sample that nothing follows leaves in time.
    writer.write(&Numbered::new(1, 1)).unwrap();
    take_exactly(&reader, 1);
    writer.set_qos(writer.get_qos().latency_budget(Duration::ZERO)).unwrap();
    assert!(datagrams(100, &writer) >= 100);
}

#[test]
fn a_reader_that_waits_gets_the_last_value_of_a_burst() {
    let world = World::new();
    let participant = world.participant();
    let separation = Duration::from_millis(20);
    let writer: DataWriter<Keyed> = world.writer(&participant, lossless_writer());
    let reader: DataReader<Keyed> =
        world.reader(&participant, lossless_reader().time_based_filter(separation));
    matched(&[&writer], &[&reader]);
    (1..=5).for_each(|value| writer.write(&Keyed { id: 1, value }).unwrap());
    let mut values = Vec::new();
    while values.last() != Some(&5) {
        assert!(reader.wait_for_data(DEADLINE).is_ok(), "{values:?}");
        values.extend(reader.take(10).iter().map(|sample| sample.data().unwrap().value));
    }
    assert_eq!(values[0], 1);
}

#[test]
fn samples_of_a_disposed_instance_are_removed_although_they_were_not_taken() {
    let world = World::new();
    let participant = world.participant();
    let purge = Duration::from_millis(10);
    let lifecycle =
        ReaderDataLifecycle { autopurge_disposed_samples_delay: purge, ..ReaderDataLifecycle::default() };
    let writer: DataWriter<Keyed> = world.writer(&participant, lossless_writer().deadline(purge * 3));
    let (tell, told) = channel();
    struct Missed(Mutex<Sender<u64>>);
    impl<T> DataReaderListener<T> for Missed {
        fn on_requested_deadline_missed(&self, _: &DataReader<T>, status: weir_dds::DeadlineMissedStatus) {
            let _ = self.0.lock().unwrap().send(status.total_count);
        }
    }
    let qos = lossless_reader().reader_data_lifecycle(lifecycle).deadline(purge * 3);
    let subscriber = participant.create_subscriber().unwrap();
    let listener = Missed(Mutex::new(tell));
    let reader: DataReader<Keyed> =
        subscriber.create_datareader_with_listener(&world.topic(&participant), qos, listener).unwrap();
    matched(&[&writer], &[&reader]);
    writer.write(&Keyed { id: 1, value: 1 }).unwrap();
    writer.dispose(&Keyed { id: 1, value: 0 }).unwrap();
    writer.write(&Keyed { id: 2, value: 2 }).unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    // Its deadline ends later than the delay, by the same timer.
    told.recv_timeout(DEADLINE).unwrap();
    let left: Vec<_> = reader.take(10).iter().map(|sample| sample.data().unwrap().value).collect();
    assert_eq!((left, reader.protocol_counters().samples_purged), (vec![2], 2));
}
