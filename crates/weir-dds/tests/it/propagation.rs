//! Listeners of subscribers, publishers and participants, and what their masks say.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use weir_dds::{
    AnyDataReader, AnyDataWriter, AnyTopic, DataReader, DataReaderListener, DataWriter, DataWriterQos,
    DomainParticipant, DomainParticipantListener, IncompatibleQosStatus, InconsistentTopicStatus,
    PublicationMatchedStatus, PublisherListener, States, StatusKind, StatusMask, Subscriber,
    SubscriberListener, SubscriptionMatchedStatus,
};

use crate::support::{DEADLINE, Keyed, Numbered, World, lossless_reader, lossless_writer};

/// Sends a name of its level and what it was called for.
#[derive(Clone)]
struct Log(&'static str, Arc<Mutex<Sender<String>>>);

impl Log {
    fn new() -> (impl Fn(&'static str) -> Self, Receiver<String>) {
        let (sender, receiver) = channel();
        let sender = Arc::new(Mutex::new(sender));
        (move |level| Self(level, Arc::clone(&sender)), receiver)
    }

    fn say(&self, what: &str) {
        let _ = self.1.lock().unwrap().send(format!("{} {what}", self.0));
    }
}

impl DataReaderListener<Numbered> for Log {
    fn on_data_available(&self, reader: &DataReader<Numbered>) {
        self.say(&format!("data {}", reader.take(10).len()));
    }

    fn on_subscription_matched(&self, _: &DataReader<Numbered>, status: SubscriptionMatchedStatus) {
        self.say(&format!("matched {}", status.current_count));
    }
}

impl SubscriberListener for Log {
    fn on_data_on_readers(&self, subscriber: &Subscriber) {
        assert!(!subscriber.datareaders(States::NOT_READ).is_empty());
        self.say("readers");
        subscriber.notify_datareaders();
    }

    fn on_data_available(&self, reader: &AnyDataReader) {
        assert!(reader.typed::<Keyed>().is_none());
        self.say(&format!("data {}", reader.typed::<Numbered>().unwrap().take(10).len()));
    }

    fn on_subscription_matched(&self, _: &AnyDataReader, status: SubscriptionMatchedStatus) {
        self.say(&format!("matched {}", status.current_count));
    }
}

impl PublisherListener for Log {
    fn on_publication_matched(&self, _: &AnyDataWriter, status: PublicationMatchedStatus) {
        self.say(&format!("matched {}", status.current_count));
    }
}

impl DomainParticipantListener for Log {
    fn on_data_on_readers(&self, subscriber: &Subscriber) {
        self.say("readers");
        // Unread data would be reported again with whatever comes next.
        let readers = subscriber.datareaders(States::NOT_READ);
        readers
            .iter()
            .filter_map(|reader| reader.typed::<Numbered>())
            .for_each(|reader| drop(reader.take(10)));
    }

    fn on_data_available(&self, reader: &AnyDataReader) {
        SubscriberListener::on_data_available(self, reader);
    }

    fn on_subscription_matched(&self, reader: &AnyDataReader, status: SubscriptionMatchedStatus) {
        SubscriberListener::on_subscription_matched(self, reader, status);
    }

    fn on_publication_matched(&self, writer: &AnyDataWriter, status: PublicationMatchedStatus) {
        PublisherListener::on_publication_matched(self, writer, status);
    }

    fn on_offered_incompatible_qos(&self, writer: &AnyDataWriter, status: IncompatibleQosStatus) {
        assert!(writer.typed::<Numbered>().is_some());
        self.say(&format!("incompatible {}", status.total_count_change));
    }

    fn on_inconsistent_topic(&self, topic: &AnyTopic, status: InconsistentTopicStatus) {
        assert!(topic.name().starts_with("topic "));
        self.say(&format!("inconsistent {}", status.total_count_change));
    }
}

const DATA: StatusMask = StatusMask::DATA_AVAILABLE;
const ON_READERS: StatusMask = StatusMask::DATA_ON_READERS;
const MATCHED: StatusMask = StatusMask::SUBSCRIPTION_MATCHED;

/// Listeners of all levels with these masks: checks what they say about one sample.
fn check(reader: StatusMask, subscriber: StatusMask, participant: StatusMask, expected: &[&str]) {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let (log, said) = Log::new();
    let next = || said.recv_timeout(DEADLINE).unwrap();
    let group = here.create_subscriber().unwrap();
    let topic = world.topic::<Numbered>(&here);
    let data = group.create_datareader(&topic, lossless_reader()).unwrap();
    data.set_listener_w_mask(Some(Arc::new(log("reader"))), reader | MATCHED);
    group.set_listener(Some(Arc::new(log("subscriber"))), subscriber);
    here.set_listener(Some(Arc::new(log("participant"))), participant);
    let writer: DataWriter<Numbered> = world.writer(&there, lossless_writer());
    writer.wait_for_subscriptions(1, DEADLINE).unwrap();
    assert_eq!(next(), "reader matched 1");
    writer.write(&Numbered::new(0, 0)).unwrap();
    expected.iter().for_each(|expected| assert_eq!(next(), *expected));
    drop(writer);
    assert_eq!(next(), "reader matched 0", "no other listener is called for the sample");
}

#[test]
fn data_goes_to_the_first_level_whose_mask_has_it() {
    const NONE: StatusMask = StatusMask::NONE;
    check(DATA, DATA, DATA, &["reader data 1"]);
    check(StatusMask::SAMPLE_LOST, DATA, DATA, &["subscriber data 1"]);
    check(NONE, StatusMask::SAMPLE_LOST, DATA, &["participant data 1"]);
}

#[test]
fn data_on_readers_comes_before_data_available() {
    const NONE: StatusMask = StatusMask::NONE;
    check(DATA, ON_READERS, NONE, &["subscriber readers", "reader data 1"]);
    check(NONE, ON_READERS | DATA, NONE, &["subscriber readers", "subscriber data 1"]);
    check(DATA, DATA, ON_READERS, &["participant readers"]);
    check(DATA, ON_READERS, ON_READERS, &["subscriber readers", "reader data 1"]);
}

/// Waits until a call that no event reports has been made.
fn until(is_reached: impl Fn() -> bool) {
    while !is_reached() {
        std::thread::yield_now();
    }
}

#[test]
fn a_mask_without_a_listener_drops_its_events() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let (log, said) = Log::new();
    here.set_listener(Some(Arc::new(log("participant"))), StatusMask::ALL & !ON_READERS);
    let reader: DataReader<Numbered> = world.reader(&here, lossless_reader());
    reader.set_listener_w_mask(None, MATCHED | DATA);
    let writer: DataWriter<Numbered> = world.writer(&there, lossless_writer());
    writer.wait_for_subscriptions(1, DEADLINE).unwrap();
    reader.wait_for_publications(1, DEADLINE).unwrap();
    writer.write(&Numbered::new(0, 0)).unwrap();
    reader.wait_for_data(DEADLINE).unwrap();
    // One thread handles all events in turn: after that of another reader, those before it have been.
    let other: DataReader<Numbered> = world.reader(&here, lossless_reader());
    assert_eq!(said.recv_timeout(DEADLINE).unwrap(), "participant matched 1");
    // Nothing was called, and so no status was reset.
    assert!(reader.status_changes().contains(StatusKind::SubscriptionMatched));
    assert_eq!(reader.subscription_matched_status().current_count_change, 1);
    assert!(reader.status_changes().contains(StatusKind::DataAvailable));
    assert_eq!(reader.available(), 1);
    reader.set_listener(None);
    drop(writer);
    let first = said.recv_timeout(DEADLINE).unwrap();
    assert!(["participant data 1", "participant matched 0"].contains(&&*first), "{first}");
    drop(other);
}

#[test]
fn writers_and_topics_fall_back_on_publisher_and_participant() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let (log, said) = Log::new();
    let next = || said.recv_timeout(DEADLINE).unwrap();
    let publisher = here.create_publisher().unwrap();
    publisher.set_listener(Some(Arc::new(log("publisher"))), StatusMask::PUBLICATION_MATCHED);
    here.set_listener(Some(Arc::new(log("participant"))), StatusMask::ALL);
    let topic = world.topic::<Numbered>(&here);
    let writer = publisher.create_datawriter(&topic, DataWriterQos::default().best_effort()).unwrap();
    let lenient: DataReader<Numbered> = world.reader(&there, weir_dds::DataReaderQos::default());
    assert_eq!(next(), "publisher matched 1");
    let strict: DataReader<Numbered> = world.reader(&there, lossless_reader());
    assert_eq!(next(), "participant incompatible 1");
    let other: DataReader<Keyed> = world.reader(&there, lossless_reader());
    assert_eq!(next(), "participant inconsistent 1");
    publisher.set_listener(None, StatusMask::NONE);
    drop(lenient);
    assert_eq!(next(), "participant matched 0");
    drop((writer, strict, other));
}

#[test]
fn listeners_are_returned_as_they_were_set() {
    let world = World::new();
    let participant = world.participant();
    let (log, _said) = Log::new();
    let topic = world.topic::<Numbered>(&participant);
    let (publisher, subscriber) =
        (participant.create_publisher().unwrap(), participant.create_subscriber().unwrap());
    let reader = subscriber.create_datareader(&topic, lossless_reader()).unwrap();
    let listener: Arc<dyn DataReaderListener<Numbered>> = Arc::new(log("reader"));
    assert!(reader.listener().is_none() && subscriber.listener().is_none() && topic.listener().is_none());
    reader.set_listener(Some(Arc::clone(&listener)));
    assert!(reader.listener().is_some_and(|it| Arc::ptr_eq(&it, &listener)));
    reader.set_listener_w_mask(None, StatusMask::ALL);
    assert!(reader.listener().is_none());
    let listener: Arc<dyn PublisherListener> = Arc::new(log("publisher"));
    publisher.set_listener(Some(Arc::clone(&listener)), StatusMask::NONE);
    assert!(publisher.clone().listener().is_some_and(|it| Arc::ptr_eq(&it, &listener)));
    assert!(participant.listener().is_none());
}

struct Panics(Mutex<Sender<()>>);

impl SubscriberListener for Panics {
    fn on_data_on_readers(&self, _: &Subscriber) {
        let _ = self.0.lock().unwrap().send(());
        panic!("on purpose");
    }
}

#[test]
fn a_panic_of_an_upper_listener_ends_only_the_call() {
    let world = World::new();
    let participant: DomainParticipant = world.participant();
    let (sender, calls) = channel();
    let subscriber = participant.create_subscriber().unwrap();
    subscriber.set_listener(Some(Arc::new(Panics(Mutex::new(sender)))), ON_READERS);
    let reader =
        subscriber.create_datareader(&world.topic::<Numbered>(&participant), lossless_reader()).unwrap();
    let writer: DataWriter<Numbered> = world.writer(&participant, lossless_writer());
    writer.wait_for_subscriptions(1, DEADLINE).unwrap();
    for number in 0..3 {
        writer.write(&Numbered::new(0, number)).unwrap();
        calls.recv_timeout(DEADLINE).unwrap();
    }
    until(|| subscriber.listener_panics() >= 3);
    assert_eq!((reader.listener_panics(), participant.listener_panics()), (0, 0));
}
