//! Participants, publishers and subscribers as factories: default QoS, finding, enabling and closing what they contain.

use std::sync::Arc;
use std::time::Duration;

use weir_dds::{
    DataReader, DataReaderQos, DataWriter, DataWriterQos, DdsError, DomainParticipant, DomainParticipantQos,
    FoundTopic, History, PresentationScope, PublisherListener, PublisherQos, ResourceLimits, States,
    StatusMask, SubscriberQos, TopicDescription, TopicQos,
};

use crate::support::{
    DEADLINE, Keyed, Numbered, World, lossless_reader, lossless_writer, matched, poll_until, settings,
    take_exactly,
};

#[test]
fn what_is_created_without_qos_has_the_default_of_its_factory() {
    let world = World::new();
    let participant = world.participant_with(settings().without_threads());
    assert_eq!(participant.default_topic_qos(), TopicQos::default());
    assert_eq!(participant.default_publisher_qos(), PublisherQos::default());
    assert_eq!(participant.default_subscriber_qos(), SubscriberQos::default());
    let before = (world.topic::<Keyed>(&participant), participant.create_publisher().unwrap());

    let topic_qos = TopicQos::default().reliable().topic_data(*b"version 2");
    let publisher_qos = PublisherQos::default().partition(["north"]);
    let subscriber_qos = SubscriberQos::default().partition(["n*"]);
    participant.set_default_topic_qos(topic_qos.clone()).unwrap();
    participant.set_default_publisher_qos(publisher_qos.clone()).unwrap();
    participant.set_default_subscriber_qos(subscriber_qos.clone()).unwrap();
    let (topic, publisher) = (world.topic::<Keyed>(&participant), participant.create_publisher().unwrap());
    let subscriber = participant.create_subscriber().unwrap();
    assert_eq!(
        (topic.get_qos(), publisher.get_qos(), subscriber.get_qos()),
        (topic_qos, publisher_qos, subscriber_qos)
    );
    // What exists stays as it is.
    assert_eq!((before.0.get_qos(), before.1.get_qos()), (TopicQos::default(), PublisherQos::default()));

    assert_eq!(publisher.default_datawriter_qos(), DataWriterQos::default());
    assert_eq!(subscriber.default_datareader_qos(), DataReaderQos::default());
    publisher.set_default_datawriter_qos(DataWriterQos::default().keep_last(7)).unwrap();
    subscriber.set_default_datareader_qos(DataReaderQos::default().keep_last(8)).unwrap();
    let qos = publisher.default_datawriter_qos().user_data(*b"left");
    let writer = publisher.create_datawriter(&topic, qos).unwrap();
    let reader = subscriber.create_datareader(&topic, subscriber.default_datareader_qos()).unwrap();
    assert_eq!(
        (writer.get_qos().history, reader.get_qos().history),
        (History::KeepLast(7), History::KeepLast(8))
    );
    assert_eq!(participant.create_publisher().unwrap().default_datawriter_qos(), DataWriterQos::default());
}

#[test]
fn defaults_that_contradict_themselves_are_refused_and_nothing_changes() {
    let world = World::new();
    let participant = world.participant_with(settings().without_threads());
    let (publisher, subscriber) =
        (participant.create_publisher().unwrap(), participant.create_subscriber().unwrap());
    let limits = ResourceLimits::default().max_samples(1);
    for refused in [
        participant.set_default_topic_qos(TopicQos::default().keep_last(2).resource_limits(limits)),
        publisher.set_default_datawriter_qos(DataWriterQos::default().keep_last(2).resource_limits(limits)),
        subscriber.set_default_datareader_qos(DataReaderQos::default().keep_last(2).resource_limits(limits)),
    ] {
        assert!(matches!(refused, Err(DdsError::InconsistentPolicy(_))), "{refused:?}");
    }
    for refused in [
        participant.set_default_publisher_qos(PublisherQos::default().group_data([0; 1025])),
        participant.set_default_subscriber_qos(SubscriberQos::default().group_data([0; 1025])),
    ] {
        assert!(matches!(refused, Err(DdsError::BadParameter(_))), "{refused:?}");
    }
    assert_eq!(participant.default_topic_qos(), TopicQos::default());
    assert_eq!(participant.default_publisher_qos(), PublisherQos::default());
    assert_eq!(participant.default_subscriber_qos(), SubscriberQos::default());
    assert_eq!(publisher.default_datawriter_qos(), DataWriterQos::default());
    assert_eq!(subscriber.default_datareader_qos(), DataReaderQos::default());
}

#[test]
fn a_topic_of_the_participant_is_found_as_it_is() {
    let world = World::new();
    let participant = world.participant_with(settings().without_threads());
    let qos = TopicQos::default().topic_data(*b"first");
    let first = participant.create_topic_with_qos::<Keyed>(&world.topic, qos).unwrap();
    let _second = world.topic::<Keyed>(&participant);
    let found = participant.find_topic::<Keyed>(&world.topic, Duration::ZERO).unwrap();
    found.set_qos(found.get_qos().topic_data(*b"changed")).unwrap();
    assert_eq!(first.get_qos().topic_data, b"changed");
}

#[test]
fn a_topic_that_is_not_there_is_not_found() {
    let world = World::new();
    let participant = world.participant_with(settings().without_threads());
    let find = || participant.find_topic::<Keyed>(&world.topic, Duration::ZERO);
    let error = find().unwrap_err();
    assert!(matches!(error, DdsError::Timeout { .. }) && error.to_string().contains("type Keyed"), "{error}");
    drop(world.topic::<Keyed>(&participant));
    assert!(matches!(find(), Err(DdsError::Timeout { .. })));
    let _other = world.topic::<Numbered>(&participant);
    let error = find().unwrap_err();
    assert!(
        matches!(error, DdsError::PreconditionNotMet(_)) && error.to_string().contains("Numbered"),
        "{error}"
    );
    assert!(matches!(participant.find_topic::<Keyed>("", DEADLINE), Err(DdsError::BadParameter(_))));
}

#[test]
fn a_thread_waits_for_a_topic_that_another_one_creates() {
    for settings in [settings(), settings().without_threads()] {
        let world = World::new();
        let participant = world.participant_with(settings);
        std::thread::scope(|scope| {
            let finding = scope.spawn(|| participant.find_topic::<Keyed>(&world.topic, DEADLINE));
            let created = world.topic::<Keyed>(&participant);
            let found = finding.join().unwrap().unwrap();
            assert_eq!(found.name(), created.name());
        });
    }
}

#[test]
fn a_topic_of_another_participant_is_found_and_created_with_the_default_qos() {
    for settings in [settings(), settings().without_threads()] {
        let world = World::new();
        let (here, there) = (world.participant_with(settings), world.participant());
        let qos = TopicQos::default().reliable();
        here.set_default_topic_qos(qos.clone()).unwrap();
        let writer: DataWriter<Keyed> = world.writer(&there, lossless_writer());
        let find = || here.find_topic::<Keyed>(&world.topic, DEADLINE);
        drop(find().unwrap());
        // It is known, and has another type.
        let other = here.find_topic::<Numbered>(&world.topic, Duration::ZERO);
        assert!(matches!(other, Err(DdsError::Timeout { .. })), "{other:?}");
        let topic = find().unwrap();
        assert_eq!(topic.get_qos(), qos);
        let reader = here.create_subscriber().unwrap().create_datareader(&topic, lossless_reader()).unwrap();
        matched(&[&writer], &[&reader]);
    }
}

#[test]
fn a_topic_that_is_ignored_is_not_found() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let _writer: DataWriter<Keyed> = world.writer(&there, lossless_writer());
    drop(here.find_topic::<Keyed>(&world.topic, DEADLINE).unwrap());
    here.ignore_topic(&world.topic).unwrap();
    let ignored = here.find_topic::<Keyed>(&world.topic, Duration::ZERO);
    assert!(matches!(ignored, Err(DdsError::Timeout { .. })), "{ignored:?}");
}

#[test]
fn topics_and_content_filtered_topics_are_looked_up_while_they_exist() {
    let world = World::new();
    let participant = world.participant_with(settings().without_threads());
    let topic = world.topic::<Keyed>(&participant);
    let filtered = participant.create_contentfilteredtopic("Large", &topic, "value > %0", &["10"]).unwrap();
    let look_up = |name: &str| participant.lookup_topicdescription::<Keyed>(name);
    assert!(matches!(look_up(&world.topic), Some(FoundTopic::Topic(found)) if found.name() == topic.name()));
    assert!(look_up("Small").is_none());
    assert!(participant.lookup_topicdescription::<Numbered>("Large").is_none());
    let found = look_up("Large").unwrap();
    assert_eq!((found.name(), found.type_name()), ("Large", "Keyed"));

    // A reader of what was found filters.
    let writer =
        participant.create_publisher().unwrap().create_datawriter(&topic, lossless_writer()).unwrap();
    let reader =
        participant.create_subscriber().unwrap().create_datareader(&found, lossless_reader()).unwrap();
    for value in [9, 11] {
        writer.write(&Keyed { id: 1, value }).unwrap();
    }
    assert_eq!(take_exactly(&reader, 1)[0].data().unwrap().value, 11);

    drop((found, filtered, reader));
    assert!(look_up("Large").is_none());
    drop(participant.create_topic::<Keyed>("Brief").unwrap());
    assert!(look_up("Brief").is_none());
}

fn is_deleted<T>(result: Result<T, DdsError>, what: &str) -> bool {
    matches!(result, Err(DdsError::AlreadyDeleted(deleted)) if deleted == what)
}

struct Nothing;

impl PublisherListener for Nothing {}

#[test]
fn a_participant_closes_what_it_contains_and_creates_anew() {
    let world = World::new();
    let participant = world.participant_with(settings().without_threads());
    let (publisher, subscriber) =
        (participant.create_publisher().unwrap(), participant.create_subscriber().unwrap());
    let listener = Arc::new(Nothing);
    publisher.set_listener(Some(Arc::clone(&listener) as _), StatusMask::ALL);
    let topic = world.topic::<Keyed>(&participant);
    let writer = publisher.create_datawriter(&topic, lossless_writer()).unwrap();
    let reader = subscriber.create_datareader(&topic, lossless_reader()).unwrap();
    writer.write(&Keyed { id: 1, value: 1 }).unwrap();
    reader.wait_for_data(DEADLINE).unwrap();

    participant.delete_contained_entities().unwrap();
    assert!(!participant.contains_entity(writer.guid()) && !participant.contains_entity(reader.guid()));
    assert!(is_deleted(writer.write(&Keyed::default()), "writer"));
    assert!(is_deleted(publisher.create_datawriter(&topic, lossless_writer()), "publisher"));
    assert!(is_deleted(publisher.set_qos(PublisherQos::default()), "publisher"));
    assert!(is_deleted(publisher.enable(), "publisher"));
    assert!(is_deleted(subscriber.create_datareader(&topic, lossless_reader()), "subscriber"));
    assert!(is_deleted(subscriber.set_qos(SubscriberQos::default()), "subscriber"));
    assert!(is_deleted(topic.set_qos(TopicQos::default()), "topic"));
    let (publisher, subscriber) =
        (participant.create_publisher().unwrap(), participant.create_subscriber().unwrap());
    assert!(is_deleted(publisher.create_datawriter(&topic, lossless_writer()), "topic"));
    assert!(is_deleted(subscriber.create_datareader(&topic, lossless_reader()), "topic"));
    assert!(participant.lookup_topicdescription::<Keyed>(&world.topic).is_none());
    // What was received before is still there.
    assert_eq!(take_exactly(&reader, 1)[0].data().unwrap().value, 1);
    assert_eq!(Arc::strong_count(&listener), 1);

    let writer: DataWriter<Keyed> = world.writer(&participant, lossless_writer());
    let reader: DataReader<Keyed> = world.reader(&participant, lossless_reader());
    writer.write(&Keyed { id: 1, value: 2 }).unwrap();
    assert_eq!(take_exactly(&reader, 1)[0].data().unwrap().value, 2);
    participant.delete_contained_entities().unwrap();
    participant.delete_contained_entities().unwrap();
}

#[test]
fn a_publisher_and_a_subscriber_close_their_own_endpoints_only() {
    let world = World::new();
    let [here, there] = [0, 1].map(|_| world.participant_with(settings().without_threads()));
    let topic = world.topic::<Keyed>(&here);
    let qos = PublisherQos::default().coherent_access(PresentationScope::Topic);
    let publisher = here.create_publisher_with_qos(qos).unwrap();
    let subscriber = here.create_subscriber().unwrap();
    let create = || publisher.create_datawriter(&topic, lossless_writer()).unwrap();
    let (writers, other): (_, DataWriter<Keyed>) =
        ([create(), create()], world.writer(&here, lossless_writer()));
    let (reader, own) = (
        subscriber.create_datareader(&topic, lossless_reader()).unwrap(),
        world.reader(&here, lossless_reader()),
    );
    let remote: DataReader<Keyed> = world.reader(&there, lossless_reader());
    let is_matched =
        |count| move |reader: &DataReader<Keyed>| reader.subscription_matched_status().current_count == count;
    poll_until(&[&here, &there], || [&remote, &own].into_iter().all(is_matched(3)));
    publisher.begin_coherent_changes().unwrap();
    writers[0].write(&Keyed { id: 1, value: 1 }).unwrap();
    publisher.delete_contained_entities().unwrap();
    assert!(writers.iter().all(|writer| is_deleted(writer.write(&Keyed::default()), "writer")));
    // Closed writers do not keep a set open.
    publisher.end_coherent_changes().unwrap();
    subscriber.delete_contained_entities().unwrap();
    assert!(subscriber.datareaders(States::ANY).is_empty() && !here.contains_entity(reader.guid()));
    poll_until(&[&here, &there], || [&remote, &own].into_iter().all(is_matched(1)));
    poll_until(&[&here, &there], || other.publication_matched_status().current_count == 2);
    // They are as before otherwise.
    publisher.create_datawriter(&topic, lossless_writer()).unwrap();
    subscriber.create_datareader(&topic, lossless_reader()).unwrap();
}

#[test]
fn all_writers_are_closed_even_if_the_end_of_one_is_not_acknowledged() {
    let world = World::new();
    let participant = world.participant();
    let publisher = participant.create_publisher().unwrap();
    let topic = world.topic::<Keyed>(&participant);
    // The reader has no room for the second value, and so takes nothing that follows it.
    let limits = ResourceLimits::default().max_samples(1);
    let there = world.participant();
    let reader: DataReader<Keyed> = world.reader(&there, lossless_reader().resource_limits(limits));
    let create = || publisher.create_datawriter(&topic, lossless_writer()).unwrap();
    let writers = [create(), create()];
    matched(&writers.each_ref(), &[&reader]);
    writers[0].register_instance(&Keyed { id: 1, value: 0 }).unwrap();
    (1..=2).for_each(|value| writers[0].write(&Keyed { id: 1, value }).unwrap());
    let error = participant.delete_contained_entities().unwrap_err();
    assert!(matches!(error, DdsError::Timeout { .. }), "{error}");
    assert!(writers.iter().all(|writer| is_deleted(writer.write(&Keyed::default()), "writer")));
}

#[test]
fn readers_are_closed_before_writers_that_would_wait_for_them() {
    let world = World::new();
    let participant = world.participant();
    // It has no room for the end of the instance.
    let limits = ResourceLimits::default().max_samples(1);
    let reader: DataReader<Keyed> = world.reader(&participant, lossless_reader().resource_limits(limits));
    let writer: DataWriter<Keyed> = world.writer(&participant, lossless_writer());
    matched(&[&writer], &[&reader]);
    writer.register_instance(&Keyed { id: 1, value: 0 }).unwrap();
    writer.write(&Keyed { id: 1, value: 1 }).unwrap();
    participant.delete_contained_entities().unwrap();
    assert!(!participant.contains_entity(reader.guid()) && !participant.contains_entity(writer.guid()));
}

#[test]
fn a_participant_that_is_not_enabled_announces_nothing_and_knows_no_other() {
    let world = World::new();
    let there = world.participant_with(settings().without_threads());
    let reader: DataReader<Keyed> = world.reader(&there, lossless_reader());
    let here = world.participant_with(settings().without_threads().autoenable(false));
    let never = world.participant_with(settings().without_threads().autoenable(false));
    let writer: DataWriter<Keyed> = world.writer(&here, lossless_writer());
    let own: DataReader<Keyed> = world.reader(&here, lossless_reader());
    for participant in [&here, &never] {
        while participant.poll(Duration::ZERO).unwrap() {}
    }
    let name = never.guid();
    drop(never);
    // What is sent now arrives after what they would have sent.
    let witness = world.participant_with(settings().without_threads());
    poll_until(&[&there, &witness, &here], || there.discovered_participants().contains(&witness.guid()));
    assert!(!there.discovered_participants().iter().any(|known| [here.guid(), name].contains(known)));
    assert!(here.discovered_participants().is_empty() && !here.is_enabled());
    assert!(matches!(writer.write(&Keyed::default()), Err(DdsError::NotEnabled(_))));
    assert!(!writer.publisher().is_enabled() && !own.is_enabled());
    for refused in [writer.publisher().enable(), own.subscriber().enable(), writer.enable(), own.enable()] {
        assert!(matches!(refused, Err(DdsError::PreconditionNotMet(_))), "{refused:?}");
    }

    here.enable().unwrap();
    assert!(here.is_enabled() && writer.is_enabled() && own.is_enabled());
    assert!(here.create_publisher().unwrap().is_enabled() && here.create_subscriber().unwrap().is_enabled());
    poll_until(&[&there, &here], || reader.subscription_matched_status().current_count == 1);
    poll_until(&[&there, &here], || writer.publication_matched_status().current_count == 2);
    here.enable().unwrap();
    writer.write(&Keyed { id: 1, value: 1 }).unwrap();
    poll_until(&[&there, &here], || reader.available() == 1 && own.available() == 1);
}

#[test]
fn what_an_enabled_participant_contains_is_enabled_as_its_policy_says() {
    let world = World::new();
    let there = world.participant();
    let reader: DataReader<Keyed> = world.reader(&there, lossless_reader());
    let qos = DomainParticipantQos::default().autoenable_created_entities(false);
    let settings = settings().autoenable(false);
    let here = DomainParticipant::new_with_qos(world.domain_id, settings, qos).unwrap();
    let writer: DataWriter<Keyed> = world.writer(&here, lossless_writer());
    here.enable().unwrap();
    assert!(!writer.publisher().is_enabled() && !writer.is_enabled());
    writer.publisher().enable().unwrap();
    assert!(writer.is_enabled());
    matched(&[&writer], &[&reader]);
}
