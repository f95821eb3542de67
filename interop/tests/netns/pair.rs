//! A writer and a reader of this process, in a namespace each.

use std::time::{Duration, Instant};

use weir_dds::{
    DataReader, DataReaderQos, DataWriter, DataWriterQos, DomainParticipant, ParticipantSettings, Topic,
};
use weir_interop::netns::{Cable, Namespace};
use weir_interop::shape::ShapeType;

pub(crate) const DOMAIN: u32 = 7;

/// Time after which a test fails. Far more than needed on a loaded machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Joins the domain in a namespace.
pub(crate) fn participant(namespace: &Namespace, settings: &ParticipantSettings) -> DomainParticipant {
    namespace.within(|| DomainParticipant::new(DOMAIN, settings.clone()).unwrap())
}

fn topic(participant: &DomainParticipant) -> Topic<ShapeType> {
    participant.create_topic("pair").unwrap()
}

/// Creates a reliable writer that keeps everything.
pub(crate) fn writer(namespace: &Namespace, participant: &DomainParticipant) -> DataWriter<ShapeType> {
    let qos = DataWriterQos::default().reliable().keep_all().max_blocking_time(LIMIT);
    let topic = topic(participant);
    namespace.within(|| participant.create_publisher().unwrap().create_datawriter(&topic, qos).unwrap())
}

/// Creates a reliable reader that keeps everything.
pub(crate) fn reader(namespace: &Namespace, participant: &DomainParticipant) -> DataReader<ShapeType> {
    let qos = DataReaderQos::default().reliable().keep_all();
    let topic = topic(participant);
    namespace.within(|| participant.create_subscriber().unwrap().create_datareader(&topic, qos).unwrap())
}

/// A writer at one end of a cable and a reader at the other.
pub(crate) struct Pair<'a> {
    one: &'a Namespace,
    other: &'a Namespace,
    pub(crate) writer: DataWriter<ShapeType>,
    pub(crate) reader: DataReader<ShapeType>,
    /// Samples written and received.
    written: i32,
    received: i32,
}

impl<'a> Pair<'a> {
    /// Creates both, which need not match yet.
    pub(crate) fn start(cable: &'a Cable, settings: &ParticipantSettings) -> Self {
        let Cable { one, other, .. } = cable;
        let writer = writer(one, &participant(one, settings));
        let reader = reader(other, &participant(other, settings));
        Self { one, other, writer, reader, written: 0, received: 0 }
    }

    /// Waits until they match.
    pub(crate) fn wait_for_match(&self) {
        self.one.within(|| self.writer.wait_for_subscriptions(1, LIMIT).unwrap());
        self.other.within(|| self.reader.wait_for_publications(1, LIMIT).unwrap());
    }

    /// Writes one sample.
    pub(crate) fn write(&mut self) {
        self.one.within(|| self.writer.write(&ShapeType::blue(self.written)).unwrap());
        self.written += 1;
    }

    /// Waits until everything written has arrived, once, in order, and is acknowledged. Prints how
    /// long that took.
    pub(crate) fn wait_for_all(&mut self, after: &str) {
        let started = Instant::now();
        while self.received < self.written {
            let received: Vec<i32> = self.other.within(|| {
                assert!(self.reader.wait_for_data(LIMIT).is_ok(), "nothing arrives after {after}");
                self.reader.take(usize::MAX).iter().map(|sample| sample.data().unwrap().x).collect()
            });
            for x in received {
                assert_eq!(x, self.received, "after {after}");
                self.received += 1;
            }
        }
        println!("data flows {:?} after {after}", started.elapsed());
        self.one.within(|| self.writer.wait_for_acknowledgments(LIMIT).unwrap());
    }

    /// Writes one sample, and waits for it.
    pub(crate) fn exchange(&mut self, after: &str) {
        self.write();
        self.wait_for_all(after);
    }

    /// Checks that they have matched once and still do.
    pub(crate) fn check_match(&self) {
        let (writer, reader) =
            (self.writer.publication_matched_status(), self.reader.subscription_matched_status());
        assert_eq!((writer.current_count, writer.total_count), (1, 1));
        assert_eq!((reader.current_count, reader.total_count), (1, 1));
    }
}
