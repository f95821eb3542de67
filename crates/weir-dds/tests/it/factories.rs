//! Participants, publishers and subscribers as factories: default QoS, finding, enabling and closing what they contain.

use weir_dds::{
    DataReaderQos, DataWriterQos, DdsError, History, PublisherQos, ResourceLimits, SubscriberQos, TopicQos,
};

use crate::support::{Keyed, World, settings};

#[test]
fn what_is_created_without_qos_has_the_default_of_its_factory() {
    let world = World::new();
    let participant = world.participant_with(settings().without_threads());
    assert_eq!(participant.default_topic_qos(), TopicQos::default());
    assert_eq!(participant.default_publisher_qos(), PublisherQos::default());
    assert_eq!(participant.default_subscriber_qos(), SubscriberQos::default());
    let before = (world.topic::<Keyed>(&participant), participant.create_publisher());

    let topic_qos = TopicQos::default().reliable().topic_data(*b"version 2");
    let publisher_qos = PublisherQos::default().partition(["north"]);
    let subscriber_qos = SubscriberQos::default().partition(["n*"]);
    participant.set_default_topic_qos(topic_qos.clone()).unwrap();
    participant.set_default_publisher_qos(publisher_qos.clone()).unwrap();
    participant.set_default_subscriber_qos(subscriber_qos.clone()).unwrap();
    let (topic, publisher) = (world.topic::<Keyed>(&participant), participant.create_publisher());
    let subscriber = participant.create_subscriber();
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
    assert_eq!(participant.create_publisher().default_datawriter_qos(), DataWriterQos::default());
}

#[test]
fn defaults_that_contradict_themselves_are_refused_and_nothing_changes() {
    let world = World::new();
    let participant = world.participant_with(settings().without_threads());
    let (publisher, subscriber) = (participant.create_publisher(), participant.create_subscriber());
    let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
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
