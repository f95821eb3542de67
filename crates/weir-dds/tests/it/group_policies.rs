//! QoS of publishers and subscribers that change, and that come from a profile (DDS 1.4, 2.2.3).

use weir_dds::{
    DataReader, DataWriter, DdsError, DomainParticipant, Presentation, PresentationScope,
    PublicationBuiltinTopicData, Publisher, PublisherQos, QosProvider, Subscriber, SubscriberQos,
};

use crate::support::{DEADLINE, Numbered, World, lossless_reader, lossless_writer, matched, take_exactly};

/// Takes announcements of writers until one of them is meant.
fn announced(
    reader: &DataReader<PublicationBuiltinTopicData>,
    is_meant: impl Fn(&PublicationBuiltinTopicData) -> bool,
) -> PublicationBuiltinTopicData {
    loop {
        let samples = reader.take(100).into_iter().filter_map(weir_dds::Sample::into_data);
        if let Some(found) = samples.into_iter().find(&is_meant) {
            return found;
        }
        reader.wait_for_data(DEADLINE).unwrap();
    }
}

#[test]
fn presentation_and_what_is_too_long_are_refused_and_nothing_changes() {
    let world = World::new();
    let participant = world.participant();
    let (publisher, subscriber) =
        (participant.create_publisher().unwrap(), participant.create_subscriber().unwrap());
    let refused = |result| match result {
        Err(DdsError::ImmutablePolicy { policies }) => policies,
        other => panic!("{other:?}"),
    };
    let scope = PresentationScope::Topic;
    let other = publisher.get_qos().coherent_access(scope).partition(["a"]);
    assert_eq!(refused(publisher.set_qos(other)), "PRESENTATION");
    let other = subscriber.get_qos().ordered_access(scope).partition(["a"]);
    assert_eq!(refused(subscriber.set_qos(other)), "PRESENTATION");
    let too_long = |result| matches!(result, Err(DdsError::BadParameter(_)));
    assert!(too_long(publisher.set_qos(publisher.get_qos().group_data(vec![0; 1025]))));
    assert!(too_long(subscriber.set_qos(subscriber.get_qos().group_data(vec![0; 1025]))));
    let names = (0..65).map(|number| number.to_string());
    assert!(too_long(publisher.set_qos(publisher.get_qos().partition(names))));
    assert!(too_long(subscriber.set_qos(subscriber.get_qos().partition(["n".repeat(4097)]))));
    assert_eq!(publisher.get_qos(), PublisherQos::default());
    assert_eq!(subscriber.get_qos(), SubscriberQos::default());
    let publisher = PublisherQos::default().group_data(vec![0; 1025]);
    assert!(too_long(participant.create_publisher_with_qos(publisher).map(drop)));
    let subscriber = SubscriberQos::default().partition(["n".repeat(4097)]);
    assert!(too_long(participant.create_subscriber_with_qos(subscriber).map(drop)));
}

#[test]
fn partitions_of_a_publisher_and_a_subscriber_change_the_matches_of_all_their_endpoints() {
    let world = World::new();
    let participant = world.participant();
    let (publisher, subscriber) =
        (participant.create_publisher().unwrap(), participant.create_subscriber().unwrap());
    let topic = world.topic::<Numbered>(&participant);
    let writers = [1, 2].map(|_| publisher.create_datawriter(&topic, lossless_writer()).unwrap());
    let own = lossless_reader().partition(["own"]);
    let readers = [1, 2].map(|_| subscriber.create_datareader(&topic, own.clone()).unwrap());
    let matches = || {
        let of_writer = |it: &DataWriter<Numbered>| it.publication_matched_status().current_count;
        let of_reader = |it: &DataReader<Numbered>| it.subscription_matched_status().current_count;
        (writers.each_ref().map(of_writer), readers.each_ref().map(of_reader))
    };
    assert_eq!(matches(), ([0, 0], [0, 0]));
    // In one participant, a change has its effect before the call returns.
    publisher.set_qos(publisher.get_qos().partition(["o*"])).unwrap();
    assert_eq!(matches(), ([2, 2], [2, 2]));
    subscriber.set_qos(subscriber.get_qos().partition(["other", "left"])).unwrap();
    assert_eq!(matches(), ([2, 2], [2, 2]), "its partitions replace those of its readers, and fit, too");
    publisher.set_qos(publisher.get_qos().partition(["right"])).unwrap();
    assert_eq!(matches(), ([0, 0], [0, 0]));
    // Own policies of an endpoint that change do not undo those of its group.
    writers[0].set_qos(writers[0].get_qos().partition(["other"])).unwrap();
    readers[0].set_qos(readers[0].get_qos().user_data(*b"mine")).unwrap();
    assert_eq!(matches(), ([0, 0], [0, 0]));
    // Without partitions of the group, those of the endpoints count again.
    publisher.set_qos(publisher.get_qos().partition([] as [&str; 0])).unwrap();
    assert_eq!(matches(), ([2, 0], [1, 1]));
    subscriber.set_qos(subscriber.get_qos().partition([] as [&str; 0])).unwrap();
    writers[1].set_qos(writers[1].get_qos().partition(["own"])).unwrap();
    assert_eq!(matches(), ([0, 2], [1, 1]));
}

#[test]
fn a_changed_partition_and_group_data_reach_another_participant() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let builtin = here.builtin_subscriber().unwrap();
    let qos = PublisherQos::default().partition(["left"]).group_data(*b"first");
    let publisher = there.create_publisher_with_qos(qos).unwrap();
    let writer = publisher.create_datawriter(&world.topic::<Numbered>(&there), lossless_writer()).unwrap();
    let reader: DataReader<Numbered> = world.reader(&here, lossless_reader().partition(["right"]));
    let data = announced(builtin.publications(), |data| data.key == writer.guid());
    assert_eq!(
        (data.qos.group_data.as_slice(), data.qos.partition),
        (&b"first"[..], vec!["left".to_owned()])
    );
    publisher.set_qos(publisher.get_qos().partition(["right"]).group_data(*b"second")).unwrap();
    matched(&[&writer], &[&reader]);
    let data = announced(builtin.publications(), |data| data.key == writer.guid());
    assert_eq!(
        (data.qos.group_data.as_slice(), data.qos.partition),
        (&b"second"[..], vec!["right".to_owned()])
    );
    writer.write(&Numbered::new(1, 1)).unwrap();
    take_exactly(&reader, 1);
    // A change of a policy of the writer itself announces the group's policies again.
    writer.set_qos(writer.get_qos().user_data(*b"mine")).unwrap();
    let data = announced(builtin.publications(), |data| data.key == writer.guid());
    assert_eq!(data.qos.user_data, b"mine");
    assert_eq!(
        (data.qos.group_data.as_slice(), data.qos.partition),
        (&b"second"[..], vec!["right".to_owned()])
    );
}

/// A writer and a reader that are not enabled, because their publisher and subscriber do not do that.
struct Disabled {
    publisher: Publisher,
    subscriber: Subscriber,
    writer: DataWriter<Numbered>,
    reader: DataReader<Numbered>,
}

impl Disabled {
    fn new(world: &World, participant: &DomainParticipant) -> Self {
        let qos = PublisherQos::default().autoenable_created_entities(false);
        let publisher = participant.create_publisher_with_qos(qos).unwrap();
        let qos = SubscriberQos::default().autoenable_created_entities(false);
        let subscriber = participant.create_subscriber_with_qos(qos).unwrap();
        let topic = world.topic::<Numbered>(participant);
        let writer = publisher.create_datawriter(&topic, lossless_writer()).unwrap();
        let reader = subscriber.create_datareader(&topic, lossless_reader()).unwrap();
        Self { publisher, subscriber, writer, reader }
    }
}

#[test]
fn a_group_that_does_not_enable_what_it_creates_leaves_that_to_the_application() {
    let world = World::new();
    let participant = world.participant();
    let Disabled { publisher, subscriber, writer, reader } = Disabled::new(&world, &participant);
    assert!(publisher.is_enabled() && subscriber.is_enabled());
    assert!(!writer.is_enabled() && !reader.is_enabled());
    assert!(matches!(writer.write(&Numbered::new(1, 1)), Err(DdsError::NotEnabled("writer"))));
    // The policy of the group holds for this call, too.
    publisher.enable().unwrap();
    subscriber.enable().unwrap();
    assert!(!writer.is_enabled() && !reader.is_enabled());
    // What was changed before is announced.
    publisher.set_qos(publisher.get_qos().partition(["a"])).unwrap();
    subscriber.set_qos(subscriber.get_qos().partition(["a"])).unwrap();
    writer.enable().unwrap();
    reader.enable().unwrap();
    assert_eq!(writer.publication_matched_status().current_count, 1);
    // The policy can be changed.
    publisher.set_qos(publisher.get_qos().autoenable_created_entities(true)).unwrap();
    let topic = world.topic::<Numbered>(&participant);
    assert!(publisher.create_datawriter(&topic, lossless_writer()).unwrap().is_enabled());
}

#[test]
fn a_publisher_of_a_profile_has_its_policies() {
    let provider = QosProvider::from_text(
        "robot.xml",
        r#"<dds><qos_library name="L"><qos_profile name="P">
             <publisher_qos>
               <presentation><access_scope>TOPIC_PRESENTATION_QOS</access_scope>
                 <coherent_access>true</coherent_access></presentation>
               <partition><name><element>arm</element></name></partition>
               <group_data><value>aGk=</value></group_data>
             </publisher_qos>
             <subscriber_qos>
               <presentation><access_scope>TOPIC_PRESENTATION_QOS</access_scope>
                 <coherent_access>true</coherent_access></presentation>
               <partition><name><element>a*</element></name></partition>
             </subscriber_qos>
           </qos_profile></qos_library></dds>"#,
    )
    .unwrap();
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let builtin = here.builtin_subscriber().unwrap();
    let publisher = there.create_publisher_with_qos(provider.publisher_qos("L::P", None).unwrap()).unwrap();
    let subscriber = here.create_subscriber_with_qos(provider.subscriber_qos("L::P", None).unwrap()).unwrap();
    let writer = publisher.create_datawriter(&world.topic::<Numbered>(&there), lossless_writer()).unwrap();
    let reader = subscriber.create_datareader(&world.topic::<Numbered>(&here), lossless_reader()).unwrap();
    matched(&[&writer], &[&reader]);
    let data = announced(builtin.publications(), |data| data.key == writer.guid());
    assert_eq!((data.qos.group_data.as_slice(), data.qos.partition.len()), (&b"hi"[..], 1));
    assert!(data.qos.presentation.coherent_access);
    publisher.begin_coherent_changes().unwrap();
    writer.write(&Numbered::new(1, 1)).unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    assert_eq!(reader.take(10).len(), 0, "the set has not ended");
    publisher.end_coherent_changes().unwrap();
    take_exactly(&reader, 1);
}

#[test]
fn what_is_closed_cannot_be_enabled() {
    let world = World::new();
    let participant = world.participant();
    let Disabled { writer, reader, .. } = Disabled::new(&world, &participant);
    writer.close().unwrap();
    reader.close().unwrap();
    assert!(matches!(writer.enable(), Err(DdsError::AlreadyDeleted("writer"))));
    assert!(matches!(reader.enable(), Err(DdsError::AlreadyDeleted("reader"))));
}

#[test]
fn a_set_ends_although_a_writer_of_its_group_is_not_enabled() {
    let world = World::new();
    let participant = world.participant();
    let presentation =
        Presentation { scope: PresentationScope::Group, coherent_access: true, ordered_access: false };
    let qos = PublisherQos::default().presentation(presentation).autoenable_created_entities(false);
    let publisher = participant.create_publisher_with_qos(qos).unwrap();
    let topic = world.topic::<Numbered>(&participant);
    let [first, second] = [0; 2].map(|_| publisher.create_datawriter(&topic, lossless_writer()).unwrap());
    first.enable().unwrap();
    publisher.begin_coherent_changes().unwrap();
    first.write(&Numbered::new(1, 1)).unwrap();
    publisher.end_coherent_changes().unwrap();
    assert!(!second.is_enabled());
}
