//! PRESENTATION through the API: which scopes and flags match, coherent sets, and ordered access. The first tests have
//! the expectations of the OMG's interoperability suite (OrderedAccess 0 to 17, CoherentSets 0 to 21).

use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use weir_dds::PresentationScope::{Group, Instance, Topic};
use weir_dds::{
    DataReader, DataReaderListener, DataReaderQos, DataWriter, DataWriterListener, DataWriterQos, DdsError,
    DomainParticipant, IncompatibleQosStatus, PolicyId, Presentation, PresentationScope,
    PublicationMatchedStatus, Publisher, PublisherQos, Query, Sample, States, Subscriber, SubscriberQos,
    SubscriptionMatchedStatus,
};

use crate::support::{DEADLINE, Keyed, Numbered, World, lossless_reader, lossless_writer, matched};

/// What became of a writer and a reader: matched, or the policy that prevents it.
type Outcome = Option<PolicyId>;

struct Report(Mutex<Sender<Outcome>>);

impl Report {
    fn report(&self, outcome: Outcome) {
        // The test may be over.
        let _ = self.0.lock().unwrap().send(outcome);
    }
}

impl DataWriterListener<Keyed> for Report {
    fn on_publication_matched(&self, _: &DataWriter<Keyed>, _: PublicationMatchedStatus) {
        self.report(None);
    }

    fn on_offered_incompatible_qos(&self, _: &DataWriter<Keyed>, status: IncompatibleQosStatus) {
        self.report(status.last_policy_id);
    }
}

impl DataReaderListener<Keyed> for Report {
    fn on_subscription_matched(&self, _: &DataReader<Keyed>, _: SubscriptionMatchedStatus) {
        self.report(None);
    }

    fn on_requested_incompatible_qos(&self, _: &DataReader<Keyed>, status: IncompatibleQosStatus) {
        self.report(status.last_policy_id);
    }
}

fn presentation(scope: PresentationScope, coherent_access: bool, ordered_access: bool) -> Presentation {
    Presentation { scope, coherent_access, ordered_access }
}

fn publisher(on: &DomainParticipant, presentation: Presentation) -> Publisher {
    on.create_publisher_with_qos(PublisherQos::default().presentation(presentation)).unwrap()
}

fn subscriber(on: &DomainParticipant, presentation: Presentation) -> Subscriber {
    on.create_subscriber_with_qos(SubscriberQos::default().presentation(presentation)).unwrap()
}

/// What both sides report.
fn meet(offered: Presentation, requested: Presentation, is_transient_local: bool) -> [Outcome; 2] {
    let world = World::new();
    let (mut writer_qos, mut reader_qos) = (lossless_writer(), lossless_reader());
    if is_transient_local {
        (writer_qos, reader_qos) = (writer_qos.transient_local(), reader_qos.transient_local());
    }
    let [(to_writer, of_writer), (to_reader, of_reader)] = [channel(), channel()];
    let (one, other) = (world.participant(), world.participant());
    let _writer = publisher(&one, offered)
        .create_datawriter_with_listener(&world.topic(&one), writer_qos, Report(to_writer.into()))
        .unwrap();
    let _reader = subscriber(&other, requested)
        .create_datareader_with_listener(&world.topic(&other), reader_qos, Report(to_reader.into()))
        .unwrap();
    [of_writer, of_reader].map(|outcomes| outcomes.recv_timeout(DEADLINE).unwrap())
}

#[test]
fn a_scope_matches_the_same_and_narrower_ones_for_ordered_and_for_coherent_access() {
    for (coherent, ordered) in [(false, true), (true, false)] {
        for is_transient_local in [false, true] {
            for offered in [Instance, Topic, Group] {
                for requested in [Instance, Topic, Group] {
                    let expected = if offered >= requested { None } else { Some(PolicyId::Presentation) };
                    let outcome = meet(
                        presentation(offered, coherent, ordered),
                        presentation(requested, coherent, ordered),
                        is_transient_local,
                    );
                    assert_eq!(outcome, [expected; 2], "{offered:?} to {requested:?}");
                }
            }
        }
    }
}

#[test]
fn a_flag_that_is_not_offered_does_not_match() {
    for (coherent, ordered) in [(false, true), (true, false)] {
        let outcome = meet(presentation(Topic, false, false), presentation(Topic, coherent, ordered), false);
        assert_eq!(outcome, [Some(PolicyId::Presentation); 2]);
    }
}

/// A publisher and a subscriber with three topics.
struct Three {
    worlds: [World; 3],
    participants: [DomainParticipant; 2],
    publisher: Publisher,
    subscriber: Subscriber,
    writers: Vec<DataWriter<Keyed>>,
    readers: Vec<DataReader<Keyed>>,
}

impl Three {
    fn new(presentation: Presentation) -> Self {
        let world = World::new();
        let participants = [world.participant(), world.participant()];
        let worlds = [world.sibling(), world.sibling(), world];
        let publisher = publisher(&participants[0], presentation);
        let subscriber = subscriber(&participants[1], presentation);
        let (writers, readers) = Default::default();
        Self { worlds, participants, publisher, subscriber, writers, readers }
    }

    fn add_writers(&mut self, qos: &DataWriterQos) {
        for world in &self.worlds {
            let topic = world.topic(&self.participants[0]);
            self.writers.push(self.publisher.create_datawriter(&topic, qos.clone()).unwrap());
        }
    }

    fn add_readers(&mut self, qos: &DataReaderQos) {
        for world in &self.worlds {
            let topic = world.topic(&self.participants[1]);
            self.readers.push(self.subscriber.create_datareader(&topic, qos.clone()).unwrap());
        }
    }

    fn matched(&self) {
        self.writers.iter().zip(&self.readers).for_each(|(writer, reader)| matched(&[writer], &[reader]));
    }

    /// Writes three values of four instances at each writer.
    fn write_set(&self, set: u64) {
        self.publisher.begin_coherent_changes().unwrap();
        for round in 0..3 {
            for writer in &self.writers {
                (0..4).for_each(|id| writer.write(&Keyed { id, value: 3 * set + round }).unwrap());
            }
        }
    }

    fn end_set(&self) {
        self.publisher.end_coherent_changes().unwrap();
    }

    /// Takes what is accessible at all readers.
    fn take(&self) -> Vec<Vec<Keyed>> {
        self.subscriber.begin_access().unwrap();
        let taken = self.readers.iter().map(|reader| values(reader, usize::MAX)).collect();
        self.subscriber.end_access().unwrap();
        taken
    }

    fn wait_for_data(&self) {
        self.readers.iter().for_each(|reader| reader.wait_for_data(DEADLINE).unwrap());
    }
}

fn values(reader: &DataReader<Keyed>, max: usize) -> Vec<Keyed> {
    reader.take(max).into_iter().filter_map(Sample::into_data).collect()
}

/// The values of a set as they are taken: those of an instance follow each other.
fn set(number: u64) -> Vec<Keyed> {
    (0..4).flat_map(|id| (0..3).map(move |round| Keyed { id, value: 3 * number + round })).collect()
}

#[test]
fn sets_of_several_topics_and_instances_are_accessible_as_a_whole() {
    for scope in [Instance, Topic, Group] {
        let mut three = Three::new(presentation(scope, true, false));
        three.add_writers(&lossless_writer());
        three.add_readers(&lossless_reader());
        three.matched();
        for number in 0..4 {
            three.write_set(number);
            three.writers.iter().for_each(|writer| writer.wait_for_acknowledgments(DEADLINE).unwrap());
            assert_eq!(three.take(), [const { Vec::new() }; 3], "{scope:?}: all is there but the end");
            three.end_set();
            three.wait_for_data();
            assert_eq!(three.take(), [const { 0 }; 3].map(|_| set(number)), "{scope:?}");
        }
    }
}

#[test]
fn a_late_subscriber_gets_the_sets_of_transient_local_writers_as_a_whole() {
    for scope in [Instance, Topic, Group] {
        let mut three = Three::new(presentation(scope, true, false));
        three.add_writers(&lossless_writer().transient_local());
        for number in 0..2 {
            three.write_set(number);
            three.end_set();
        }
        three.write_set(2);
        three.add_readers(&lossless_reader().transient_local());
        three.matched();
        three.wait_for_data();
        let of_two: Vec<_> = (0..4).flat_map(|id| (0..6).map(move |value| Keyed { id, value })).collect();
        three.readers.iter().for_each(|reader| reader.wait_for_historical_data(DEADLINE).unwrap());
        assert_eq!(three.take(), [const { 0 }; 3].map(|_| of_two.clone()), "{scope:?}");
        three.end_set();
        three.wait_for_data();
        assert_eq!(three.take(), [const { 0 }; 3].map(|_| set(2)), "{scope:?}");
    }
}

#[test]
fn ordered_access_to_instances_groups_them_and_to_a_topic_keeps_the_order_of_writing() {
    for is_transient_local in [false, true] {
        let world = World::new();
        let (one, other) = (world.participant(), world.participant());
        let (mut writer_qos, mut reader_qos) = (lossless_writer(), lossless_reader());
        if is_transient_local {
            (writer_qos, reader_qos) = (writer_qos.transient_local(), reader_qos.transient_local());
        }
        let writer = publisher(&one, presentation(Topic, false, true))
            .create_datawriter(&world.topic::<Keyed>(&one), writer_qos)
            .unwrap();
        let [by_instance, in_order] = [Instance, Topic].map(|scope| {
            subscriber(&other, presentation(scope, false, true))
                .create_datareader(&world.topic::<Keyed>(&other), reader_qos.clone())
                .unwrap()
        });
        matched(&[&writer], &[&by_instance, &in_order]);
        let written: Vec<_> = (0..4).flat_map(|value| (0..4).map(move |id| Keyed { id, value })).collect();
        written.iter().for_each(|value| writer.write(value).unwrap());
        writer.wait_for_acknowledgments(DEADLINE).unwrap();
        assert_eq!(values(&in_order, usize::MAX), written);
        let mut grouped = written;
        grouped.sort_by_key(|value| value.id);
        assert_eq!(values(&by_instance, usize::MAX), grouped);
    }
}

#[test]
fn values_of_a_query_come_in_the_order_of_an_access_without_it() {
    let world = World::new();
    let (one, other) = (world.participant(), world.participant());
    let writer = publisher(&one, presentation(Topic, false, true))
        .create_datawriter(&world.topic::<Keyed>(&one), lossless_writer())
        .unwrap();
    let readers = [Instance, Topic].map(|scope| {
        subscriber(&other, presentation(scope, false, true))
            .create_datareader(&world.topic::<Keyed>(&other), lossless_reader())
            .unwrap()
    });
    matched(&[&writer], &[&readers[0], &readers[1]]);
    let written: Vec<_> = (0..4).flat_map(|value| [2, 0, 1].map(|id| Keyed { id, value })).collect();
    written.iter().for_each(|value| writer.write(value).unwrap());
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    let query = Query::new("value > 0", &[] as &[&str]).unwrap();
    let of =
        |samples: Vec<Sample<Keyed>>| samples.into_iter().filter_map(Sample::into_data).collect::<Vec<_>>();
    for reader in &readers {
        let mut expected = of(reader.read(usize::MAX));
        expected.retain(|value| value.value > 0);
        assert_eq!(of(reader.read_query(&query, usize::MAX, States::ANY)), expected);
        let predicate = reader.query(|value| value.value > 0);
        assert_eq!(of(reader.select().condition(&predicate).unwrap().read()), expected);
        let by_order = Query::new("value > 0 ORDER BY value", &[] as &[&str]).unwrap();
        let mut by_value = expected.clone();
        by_value.sort_by_key(|value| value.value);
        assert_eq!(of(reader.read_query(&by_order, usize::MAX, States::ANY)), by_value);
        // One after the other as all at once.
        let taken = (0..expected.len()).flat_map(|_| of(reader.take_query(&query, 1, States::ANY)));
        assert_eq!(taken.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn values_of_a_query_come_in_the_order_of_their_group_one_at_a_time() {
    let world = World::new();
    let (one, other) = (world.participant(), world.participant());
    let group = presentation(Group, false, true);
    let publisher = publisher(&one, group);
    let topic = world.topic::<Keyed>(&one);
    let writers = [0, 1].map(|_| publisher.create_datawriter(&topic, lossless_writer()).unwrap());
    let reader = subscriber(&other, group)
        .create_datareader(&world.topic::<Keyed>(&other), lossless_reader())
        .unwrap();
    matched(&[&writers[0], &writers[1]], &[&reader]);
    for value in 0..8 {
        writers[usize::from(value % 3 == 0)].write(&Keyed { id: 7, value }).unwrap();
    }
    writers.iter().for_each(|writer| writer.wait_for_acknowledgments(DEADLINE).unwrap());
    let query = Query::new("value > 1", &[] as &[&str]).unwrap();
    for value in 2..8 {
        let taken = reader.take_query(&query, usize::MAX, States::ANY);
        assert_eq!(taken.iter().filter_map(|it| it.data()).collect::<Vec<_>>(), [&Keyed { id: 7, value }]);
    }
    assert!(reader.take_query(&query, usize::MAX, States::ANY).is_empty());
    assert_eq!([0, 1].map(|_| values(&reader, 9).pop()), [0, 1].map(|value| Some(Keyed { id: 7, value })));
}

#[test]
fn ordered_access_to_a_group_gives_the_readers_in_the_order_of_writing_and_one_sample_at_a_time() {
    let mut three = Three::new(presentation(Group, false, true));
    three.add_writers(&lossless_writer());
    three.add_readers(&lossless_reader());
    three.matched();
    let order = [2, 0, 0, 1, 2, 1, 0];
    for (value, writer) in order.iter().enumerate() {
        three.writers[*writer].write(&Keyed { id: 7, value: value as u64 }).unwrap();
    }
    three.writers.iter().for_each(|writer| writer.wait_for_acknowledgments(DEADLINE).unwrap());
    three.subscriber.begin_access().unwrap();
    let readers = three.subscriber.datareaders(States::NOT_READ);
    let expected: Vec<_> = order.iter().map(|index| three.readers[*index].guid()).collect();
    assert_eq!(readers.iter().map(DataReader::guid).collect::<Vec<_>>(), expected);
    // They are handles of the readers.
    for (value, reader) in readers.iter().enumerate() {
        let taken = values(&reader.typed::<Keyed>().unwrap(), usize::MAX);
        assert_eq!(taken, [Keyed { id: 7, value: value as u64 }]);
    }
    three.subscriber.end_access().unwrap();
    assert!(three.subscriber.datareaders(States::ANY).is_empty());
}

#[test]
fn without_order_each_reader_with_samples_is_named_once() {
    let mut three = Three::new(Presentation::default());
    three.add_writers(&lossless_writer());
    three.add_readers(&lossless_reader());
    three.matched();
    for value in 0..2 {
        three.writers[1].write(&Keyed { id: 1, value }).unwrap();
    }
    three.writers[1].wait_for_acknowledgments(DEADLINE).unwrap();
    let with = |states| three.subscriber.datareaders(states).iter().map(DataReader::guid).collect::<Vec<_>>();
    let expected = vec![three.readers[1].guid()];
    assert_eq!((with(States::NOT_READ), with(States::READ)), (expected.clone(), Vec::new()));
    three.readers[1].read(10);
    assert_eq!((with(States::NOT_READ), with(States::READ)), (Vec::new(), expected.clone()));
    assert_eq!((with(States::ALIVE), with(States::NOT_ALIVE)), (expected, Vec::new()));
    // A reader that is closed is not in the list.
    three.readers[1].close().unwrap();
    assert!(with(States::ANY).is_empty());
}

#[test]
fn a_shared_set_that_ends_during_an_access_becomes_accessible_after_it() {
    let mut three = Three::new(presentation(Group, true, false));
    three.add_writers(&lossless_writer());
    three.add_readers(&lossless_reader());
    three.matched();
    three.write_set(0);
    three.subscriber.begin_access().unwrap();
    three.end_set();
    three.writers.iter().for_each(|writer| writer.wait_for_acknowledgments(DEADLINE).unwrap());
    assert!(three.readers.iter().all(|reader| values(reader, usize::MAX).is_empty()));
    three.subscriber.end_access().unwrap();
    assert_eq!(three.take(), [const { 0 }; 3].map(|_| set(0)));
}

#[test]
fn listeners_are_called_for_a_set_when_it_is_accessible() {
    struct Available(Mutex<Sender<usize>>);
    impl DataReaderListener<Keyed> for Available {
        fn on_data_available(&self, reader: &DataReader<Keyed>) {
            let _ = self.0.lock().unwrap().send(reader.take(usize::MAX).len());
        }
    }
    for scope in [Topic, Group] {
        let mut three = Three::new(presentation(scope, true, false));
        three.add_writers(&lossless_writer());
        let (sender, counts) = channel();
        for world in &three.worlds {
            let topic = world.topic(&three.participants[1]);
            let listener = Available(Mutex::new(sender.clone()));
            let reader =
                three.subscriber.create_datareader_with_listener(&topic, lossless_reader(), listener);
            three.readers.push(reader.unwrap());
        }
        three.matched();
        three.write_set(0);
        three.end_set();
        let mut left = 36;
        while left > 0 {
            let count = counts.recv_timeout(DEADLINE).unwrap();
            assert_eq!(count % 12, 0, "{scope:?}");
            left -= count;
        }
    }
}

#[test]
fn sets_may_be_nested_and_a_writer_may_be_created_within_one() {
    let world = World::new();
    let (one, other) = (world.participant(), world.participant());
    let coherent = presentation(Topic, true, false);
    let publisher = publisher(&one, coherent);
    let reader = subscriber(&other, coherent)
        .create_datareader(&world.topic::<Keyed>(&other), lossless_reader())
        .unwrap();
    publisher.begin_coherent_changes().unwrap();
    let writer = publisher.create_datawriter(&world.topic::<Keyed>(&one), lossless_writer()).unwrap();
    matched(&[&writer], &[&reader]);
    publisher.begin_coherent_changes().unwrap();
    writer.write(&Keyed { id: 1, value: 1 }).unwrap();
    publisher.end_coherent_changes().unwrap();
    writer.write(&Keyed { id: 1, value: 2 }).unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    assert_eq!(reader.available(), 0);
    publisher.end_coherent_changes().unwrap();
    reader.wait_for_data(DEADLINE).unwrap();
    assert_eq!(values(&reader, usize::MAX).len(), 2);
}

#[test]
fn an_end_without_a_beginning_is_an_error_that_says_so() {
    let world = World::new();
    let participant = world.participant();
    let (publisher, subscriber) =
        (participant.create_publisher().unwrap(), participant.create_subscriber().unwrap());
    let errors = [publisher.end_coherent_changes(), publisher.resume_publications(), subscriber.end_access()];
    for (error, hint) in
        errors.into_iter().zip(["begin_coherent_changes", "suspend_publications", "begin_access"])
    {
        match error {
            Err(DdsError::PreconditionNotMet(text)) => assert!(text.contains(hint), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_set_of_a_writer_that_is_dropped_is_never_accessible() {
    let world = World::new();
    let (one, other) = (world.participant(), world.participant());
    let coherent = presentation(Topic, true, false);
    let publisher = publisher(&one, coherent);
    let writer = publisher.create_datawriter(&world.topic::<Numbered>(&one), lossless_writer()).unwrap();
    let reader = subscriber(&other, coherent)
        .create_datareader(&world.topic::<Numbered>(&other), lossless_reader())
        .unwrap();
    matched(&[&writer], &[&reader]);
    publisher.begin_coherent_changes().unwrap();
    writer.write(&Numbered::new(1, 1)).unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    drop(writer);
    let (gone, is_gone) = channel();
    struct Gone(Mutex<Sender<()>>);
    impl DataReaderListener<Numbered> for Gone {
        fn on_subscription_matched(&self, _: &DataReader<Numbered>, status: SubscriptionMatchedStatus) {
            if status.current_count == 0 {
                let _ = self.0.lock().unwrap().send(());
            }
        }
    }
    reader.set_listener(Some(std::sync::Arc::new(Gone(Mutex::new(gone)))));
    // It may be gone already.
    while reader.subscription_matched_status().current_count > 0 {
        let _ = is_gone.recv_timeout(Duration::from_secs(5));
    }
    assert_eq!((reader.take(10).len(), reader.protocol_counters().coherent_sets_dropped), (0, 1));
}

#[test]
fn samples_of_suspended_publications_leave_together_when_they_are_resumed() {
    let world = World::new();
    let (one, other) = (world.participant(), world.participant());
    let publisher = one.create_publisher().unwrap();
    let writer = publisher.create_datawriter(&world.topic::<Keyed>(&one), lossless_writer()).unwrap();
    let reader = world.reader::<Keyed>(&other, lossless_reader());
    matched(&[&writer], &[&reader]);
    // After that, no HEARTBEAT is due: not the first one for the new reader, either.
    writer.write(&Keyed { id: 1, value: 100 }).unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    publisher.suspend_publications().unwrap();
    let before = writer.send_counters();
    (0..10).for_each(|value| writer.write(&Keyed { id: 1, value }).unwrap());
    assert_eq!(writer.send_counters(), before, "nothing has left");
    publisher.resume_publications().unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    assert_eq!(values(&reader, usize::MAX).len(), 11);
    // It is as before.
    writer.write(&Keyed { id: 1, value: 10 }).unwrap();
    reader.wait_for_data(DEADLINE).unwrap();
}

#[test]
fn partitions_of_a_publisher_and_a_subscriber_apply_to_their_endpoints() {
    let world = World::new();
    let (one, other) = (world.participant(), world.participant());
    let publisher = one.create_publisher_with_qos(PublisherQos::default().partition(["north"])).unwrap();
    let writer = publisher.create_datawriter(&world.topic::<Keyed>(&one), lossless_writer()).unwrap();
    let readers = ["no*", "south"].map(|partition| {
        let qos = SubscriberQos::default().partition([partition]);
        let subscriber = other.create_subscriber_with_qos(qos).unwrap();
        subscriber.create_datareader(&world.topic::<Keyed>(&other), lossless_reader()).unwrap()
    });
    matched(&[&writer], &[&readers[0]]);
    writer.write(&Keyed { id: 1, value: 1 }).unwrap();
    readers[0].wait_for_data(DEADLINE).unwrap();
    assert_eq!(readers[1].matched_publications(), []);
}
