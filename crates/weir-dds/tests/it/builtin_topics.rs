//! What a participant knows of others, as samples and as values, and what it ignores.

use std::time::{Duration, SystemTime};

use weir_dds::{
    DataReader, DataWriter, DdsError, DdsType, DomainParticipant, Guid, InstanceState, PublisherQos, Sample,
    States, SubscriberQos, WaitSet,
};

use crate::support::{DEADLINE, Keyed, Numbered, World, lossless_reader, lossless_writer, settings};

/// Takes samples until one of them is meant, which it returns. Other tests may be in the same domain.
fn find<T: DdsType>(reader: &DataReader<T>, is_meant: impl Fn(&Sample<T>) -> bool) -> Sample<T> {
    loop {
        if let Some(found) = reader.take(100).into_iter().find(&is_meant) {
            return found;
        }
        reader.wait_for_data(DEADLINE).unwrap();
    }
}

fn named(name: &str) -> weir_dds::ParticipantSettings {
    settings().name(name.to_owned())
}

fn until(is_reached: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + DEADLINE;
    while !is_reached() {
        assert!(std::time::Instant::now() < deadline);
        std::thread::yield_now();
    }
}

/// Waits until a participant knows another one.
fn know(one: &DomainParticipant, other: &DomainParticipant) {
    until(|| one.discovered_participants().contains(&other.guid()));
}

#[test]
fn participants_topics_writers_and_readers_are_samples_that_end_with_them() {
    let world = World::new();
    let here = world.participant();
    let there = world.participant_with(named("the other one"));
    know(&here, &there);
    // Made after the participant was found: what is known already is there, too.
    let builtin = here.builtin_subscriber().unwrap();
    let found =
        find(builtin.participants(), |sample| sample.data().is_some_and(|data| data.key == there.guid()));
    assert_eq!(found.data().unwrap().name.as_deref(), Some("the other one"));
    assert_eq!(found.info.instance_handle, there.guid().into());
    assert_eq!(found.info.instance_state, InstanceState::Alive);

    let qos =
        lossless_writer().partition(["a", "b*"]).deadline(Duration::from_secs(7)).ownership_strength(-3);
    let writer: DataWriter<Keyed> = world.writer(&there, qos);
    let reader: DataReader<Keyed> =
        world.reader(&there, lossless_reader().time_based_filter(Duration::from_millis(5)));
    let data =
        find(builtin.publications(), |sample| sample.data().is_some_and(|data| data.key == writer.guid()))
            .into_data()
            .unwrap();
    assert_eq!((data.topic_name.as_str(), data.type_name.as_str()), (world.topic.as_str(), "Keyed"));
    assert_eq!(data.participant_key, there.guid());
    assert_eq!(data.qos.partition, ["a", "b*"]);
    assert_eq!((data.qos.deadline, data.qos.ownership_strength), (Duration::from_secs(7), -3));
    let data =
        find(builtin.subscriptions(), |sample| sample.data().is_some_and(|data| data.key == reader.guid()))
            .into_data()
            .unwrap();
    assert_eq!(data.qos.time_based_filter, Duration::from_millis(5));
    let topic = find(builtin.topics(), |sample| sample.data().is_some_and(|data| data.name == world.topic));
    assert_eq!(topic.data().unwrap().type_name, "Keyed");

    let (writer_guid, reader_guid) = (writer.guid(), reader.guid());
    drop(writer);
    let end = find(builtin.publications(), |sample| is_end_of(sample, writer_guid));
    assert!(!end.info.valid_data && end.key().unwrap().key == writer_guid);
    assert_eq!(end.info.instance_state, InstanceState::NotAliveDisposed);
    drop(reader);
    find(builtin.subscriptions(), |sample| is_end_of(sample, reader_guid));
    let end = find(builtin.topics(), |sample| sample.info.instance_handle == topic.info.instance_handle);
    assert!(!end.info.valid_data, "the last endpoint of the topic is gone");
    let guid = there.guid();
    drop(there);
    let end = find(builtin.participants(), |sample| is_end_of(sample, guid));
    assert!(!end.info.valid_data);
}

/// The entities of different topics are announced in turn.
#[test]
fn builtin_readers_lose_no_samples() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let builtin = here.builtin_subscriber().unwrap();
    for _ in 0..2 {
        let topic = world.sibling();
        let writer: DataWriter<Keyed> = topic.writer(&there, lossless_writer());
        let reader: DataReader<Keyed> = topic.reader(&there, lossless_reader());
        find(builtin.publications(), |sample| sample.data().is_some_and(|data| data.key == writer.guid()));
        find(builtin.subscriptions(), |sample| sample.data().is_some_and(|data| data.key == reader.guid()));
    }
    let lost = [
        builtin.participants().sample_lost_status(),
        builtin.topics().sample_lost_status(),
        builtin.publications().sample_lost_status(),
        builtin.subscriptions().sample_lost_status(),
    ];
    assert_eq!(lost.map(|status| status.total_count), [0; 4]);
}

fn is_end_of<T>(sample: &Sample<T>, key: Guid) -> bool {
    sample.info.instance_handle == key.into()
}

#[test]
fn own_entities_are_no_samples_and_the_readers_are_shared() {
    let world = World::new();
    let here = world.participant();
    let builtin = here.builtin_subscriber().unwrap();
    assert_eq!(
        here.builtin_subscriber().unwrap().publications().untyped().guid(),
        builtin.publications().guid()
    );
    let own: DataWriter<Numbered> = world.writer(&here, lossless_writer());
    let there = world.participant();
    let other: DataWriter<Numbered> = world.writer(&there, lossless_writer());
    find(builtin.publications(), |sample| {
        let key = sample.data().map(|data| data.key);
        assert!(key != Some(own.guid()));
        key == Some(other.guid())
    });
    // Conditions work as for any reader.
    let gone = builtin.publications().read_condition(States::NOT_ALIVE_DISPOSED);
    let wait_set = WaitSet::new();
    wait_set.attach_condition(&gone);
    let key = other.guid();
    drop(other);
    loop {
        wait_set.wait(DEADLINE).unwrap();
        let samples = builtin.publications().take_w_condition(100, &gone).unwrap();
        if samples.iter().any(|sample| is_end_of(sample, key)) {
            break;
        }
    }
    // Made anew, the readers have everything again.
    drop((wait_set, gone, builtin));
    let again = here.builtin_subscriber().unwrap();
    find(again.participants(), |sample| sample.data().is_some_and(|data| data.key == there.guid()));
}

#[test]
fn builtin_readers_are_enabled_and_never_announced() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let (builtin, others) = (here.builtin_subscriber().unwrap(), there.builtin_subscriber().unwrap());
    assert!(builtin.participants().is_enabled());
    builtin.participants().enable().unwrap();
    let reader: DataReader<Numbered> = world.reader(&here, lossless_reader());
    // Announcements are in order.
    find(others.subscriptions(), |sample| {
        let key = sample.data().map(|data| data.key);
        assert!(key != Some(builtin.participants().guid()));
        key == Some(reader.guid())
    });
}

#[test]
fn what_others_have_announced_can_be_looked_up() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant_with(named("there")));
    let writer: DataWriter<Numbered> = world.writer(&here, lossless_writer());
    let reader: DataReader<Numbered> = world.reader(&there, lossless_reader().partition([""]));
    let own: DataReader<Numbered> = world.reader(&here, lossless_reader());
    writer.wait_for_subscriptions(2, DEADLINE).unwrap();
    reader.wait_for_publications(1, DEADLINE).unwrap();
    let data = here.discovered_participant_data(there.guid()).unwrap();
    assert_eq!((data.key, data.name.as_deref()), (there.guid(), Some("there")));
    assert!(here.discovered_participant_data(here.guid()).is_none());
    let mut readers = writer.matched_subscriptions();
    readers.sort_unstable();
    let mut expected = [reader.instance_handle(), own.instance_handle()];
    expected.sort_unstable();
    assert_eq!(readers, expected);
    let data = writer.matched_subscription_data(reader.guid()).unwrap();
    assert_eq!((data.topic_name.as_str(), data.participant_key), (world.topic.as_str(), there.guid()));
    assert_eq!(data.qos.reliability, weir_dds::Reliability::Reliable);
    assert_eq!(writer.matched_subscription_data(own.guid()).map(|data| data.key), Some(own.guid()));
    assert!(writer.matched_subscription_data(writer.guid()).is_none());
    assert_eq!(reader.matched_publication_data(writer.guid()).map(|data| data.key), Some(writer.guid()));

    assert!(here.contains_entity(here.guid()) && here.contains_entity(writer.guid()));
    assert!(here.contains_entity(own.guid()) && !here.contains_entity(reader.guid()));
    assert!(!here.contains_entity(there.guid()));
    let difference =
        |time: SystemTime| time.duration_since(here.current_time()).unwrap_or_else(|it| it.duration());
    assert!(difference(SystemTime::now()) < Duration::from_secs(3600));
}

#[test]
fn endpoints_announce_the_data_of_their_publisher_or_subscriber() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let publisher = here.create_publisher_with_qos(PublisherQos::default().group_data(*b"north")).unwrap();
    let subscriber =
        there.create_subscriber_with_qos(SubscriberQos::default().group_data(*b"south")).unwrap();
    let writer: DataWriter<Numbered> =
        publisher.create_datawriter(&world.topic(&here), lossless_writer()).unwrap();
    let reader: DataReader<Numbered> =
        subscriber.create_datareader(&world.topic(&there), lossless_reader()).unwrap();
    writer.wait_for_subscriptions(1, DEADLINE).unwrap();
    reader.wait_for_publications(1, DEADLINE).unwrap();
    assert_eq!(reader.matched_publication_data(writer.guid()).unwrap().qos.group_data, b"north");
    // A change of another policy leaves them alone.
    reader.set_qos(lossless_reader().user_data(*b"new")).unwrap();
    let seen = || writer.matched_subscription_data(reader.guid()).unwrap().qos;
    until(|| seen().user_data == b"new");
    assert_eq!(seen().group_data, b"south");
    let refused = here.create_publisher_with_qos(PublisherQos::default().group_data(vec![0; 1025]));
    assert!(matches!(refused, Err(DdsError::BadParameter(_))), "{refused:?}");
}

#[test]
fn an_ignored_participant_does_not_exist_any_more() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let builtin = here.builtin_subscriber().unwrap();
    let writer: DataWriter<Numbered> = world.writer(&here, lossless_writer());
    let reader: DataReader<Numbered> = world.reader(&there, lossless_reader());
    writer.wait_for_subscriptions(1, DEADLINE).unwrap();
    find(builtin.participants(), |sample| sample.data().is_some_and(|data| data.key == there.guid()));
    here.ignore_participant(there.guid()).unwrap();
    assert_eq!(writer.publication_matched_status().current_count, 0);
    assert!(!here.discovered_participants().contains(&there.guid()));
    let end = find(builtin.participants(), |sample| is_end_of(sample, there.guid()));
    assert!(!end.info.valid_data);
    // It goes on announcing itself. A third participant is found after that.
    let before = here.discovery_counters().ignored_announcements;
    let second: DataReader<Numbered> = world.reader(&there, lossless_reader());
    until(|| here.discovery_counters().ignored_announcements > before);
    assert_eq!(writer.publication_matched_status().current_count, 0);
    drop((reader, second));
}

#[test]
fn ignored_writers_readers_and_topics_do_not_match() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let other_world = world.sibling();
    let writers: [DataWriter<Numbered>; 2] = [0; 2].map(|_| world.writer(&here, lossless_writer()));
    let readers: [DataReader<Numbered>; 2] = [0; 2].map(|_| world.reader(&there, lossless_reader()));
    let elsewhere: DataReader<Numbered> = other_world.reader(&there, lossless_reader());
    crate::support::matched(&writers.each_ref(), &readers.each_ref());
    // The reader is ignored by all writers of this participant, ...
    here.ignore_subscription(readers[0].guid()).unwrap();
    for writer in &writers {
        assert_eq!(writer.matched_subscriptions(), [readers[1].instance_handle()]);
    }
    // ... the writer by all readers of the other one.
    there.ignore_publication(writers[0].guid()).unwrap();
    assert_eq!(readers[1].matched_publications(), [writers[1].instance_handle()]);
    assert!(matches!(here.ignore_publication(readers[0].guid()), Err(DdsError::BadParameter(_))));
    assert!(matches!(here.ignore_subscription(writers[0].guid()), Err(DdsError::BadParameter(_))));
    here.ignore_topic(&other_world.topic).unwrap();
    let of_ignored: DataWriter<Numbered> = other_world.writer(&here, lossless_writer());
    let own: DataReader<Numbered> = other_world.reader(&here, lossless_reader());
    of_ignored.wait_for_subscriptions(1, DEADLINE).unwrap();
    assert_eq!(
        of_ignored.matched_subscriptions(),
        [own.instance_handle()],
        "topics of other participants are ignored"
    );
    drop(elsewhere);
}

#[test]
fn a_participant_that_ignores_itself_does_not_receive_its_own_samples() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let writer: DataWriter<Numbered> = world.writer(&here, lossless_writer());
    let own: DataReader<Numbered> = world.reader(&here, lossless_reader());
    writer.wait_for_subscriptions(1, DEADLINE).unwrap();
    here.ignore_participant(here.guid()).unwrap();
    assert!(writer.matched_subscriptions().is_empty() && own.matched_publications().is_empty());
    let later: DataReader<Numbered> = world.reader(&here, lossless_reader());
    let other: DataReader<Numbered> = world.reader(&there, lossless_reader());
    writer.wait_for_subscriptions(1, DEADLINE).unwrap();
    assert_eq!(writer.matched_subscriptions(), [other.instance_handle()]);
    assert!(later.matched_publications().is_empty());
}
