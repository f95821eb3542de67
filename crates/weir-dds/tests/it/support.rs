//! Shared by the tests: domains on the loopback interface, types, and waiting for events.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use weir_dds::{
    DataReader, DataReaderQos, DataWriter, DataWriterQos, DdsType, DomainParticipant, ParticipantSettings,
    Sample, Topic,
};

/// Time after which a test fails. Far more than needed on a loaded machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A sample without a key.
#[derive(DdsType, Default, Debug, Clone, PartialEq)]
#[dds(extensibility = "final")]
pub(crate) struct Numbered {
    pub(crate) source: u32,
    pub(crate) number: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Numbered {
    /// A sample whose bytes follow from its number, so that its content can be checked.
    pub(crate) fn new(source: u32, number: u64) -> Self {
        let len = (number % 61) as usize;
        Self { source, number, bytes: (0..len).map(|i| (number as usize + i) as u8).collect() }
    }
}

/// A sample with a key.
#[derive(DdsType, Default, Debug, Clone, PartialEq)]
#[dds(extensibility = "final")]
pub(crate) struct Keyed {
    #[dds(key)]
    pub(crate) id: u32,
    pub(crate) value: u64,
}

/// A domain and a topic name that no other test uses.
pub(crate) struct World {
    pub(crate) domain_id: u32,
    pub(crate) topic: String,
}

impl World {
    pub(crate) fn new() -> Self {
        static WORLDS: AtomicU32 = AtomicU32::new(0);
        let number = WORLDS.fetch_add(1, Ordering::Relaxed);
        // Above domain 100 the ports are in the ephemeral range.
        Self::in_domain(1 + (std::process::id().wrapping_mul(37) + number) % 100)
    }

    /// Another topic in the same domain.
    pub(crate) fn sibling(&self) -> Self {
        Self::in_domain(self.domain_id)
    }

    fn in_domain(domain_id: u32) -> Self {
        static TOPICS: AtomicU32 = AtomicU32::new(0);
        let number = TOPICS.fetch_add(1, Ordering::Relaxed);
        // Another process may use the same domain: the names differ.
        Self { domain_id, topic: format!("topic {number} of process {}", std::process::id()) }
    }

    pub(crate) fn participant(&self) -> DomainParticipant {
        self.participant_with(settings())
    }

    pub(crate) fn participant_with(&self, settings: ParticipantSettings) -> DomainParticipant {
        DomainParticipant::new(self.domain_id, settings).unwrap()
    }

    pub(crate) fn topic<T: DdsType>(&self, participant: &DomainParticipant) -> Topic<T> {
        participant.create_topic(&self.topic).unwrap()
    }

    pub(crate) fn writer<T: DdsType>(&self, on: &DomainParticipant, qos: DataWriterQos) -> DataWriter<T> {
        on.create_publisher().unwrap().create_datawriter(&self.topic(on), qos).unwrap()
    }

    pub(crate) fn reader<T: DdsType>(&self, on: &DomainParticipant, qos: DataReaderQos) -> DataReader<T> {
        on.create_subscriber().unwrap().create_datareader(&self.topic(on), qos).unwrap()
    }
}

/// Settings for the loopback interface only.
pub(crate) fn settings() -> ParticipantSettings {
    ParticipantSettings::default().interface("lo")
}

/// QoS of a writer that loses nothing and blocks for long.
pub(crate) fn lossless_writer() -> DataWriterQos {
    DataWriterQos::default().reliable().keep_all().max_blocking_time(DEADLINE)
}

/// QoS of a reader that loses nothing.
pub(crate) fn lossless_reader() -> DataReaderQos {
    DataReaderQos::default().reliable().keep_all()
}

/// A matched writer and reader, each in its own participant.
pub(crate) fn pair<T: DdsType>(
    writer: DataWriterQos,
    reader: DataReaderQos,
) -> (DataWriter<T>, DataReader<T>) {
    let world = World::new();
    let writer = world.writer(&world.participant(), writer);
    let reader = world.reader(&world.participant(), reader);
    matched(&[&writer], &[&reader]);
    (writer, reader)
}

/// Waits until all writers are matched with all readers.
pub(crate) fn matched<T: DdsType>(writers: &[&DataWriter<T>], readers: &[&DataReader<T>]) {
    for writer in writers {
        writer.wait_for_subscriptions(readers.len() as u64, DEADLINE).unwrap();
    }
    for reader in readers {
        reader.wait_for_publications(writers.len() as u64, DEADLINE).unwrap();
    }
}

/// Takes until there are `count` samples.
pub(crate) fn take_exactly<T: DdsType>(reader: &DataReader<T>, count: usize) -> Vec<Sample<T>> {
    let mut samples = Vec::new();
    while samples.len() < count {
        assert!(
            reader.wait_for_data(DEADLINE).is_ok(),
            "{} of {count} samples, {:?}",
            samples.len(),
            reader.protocol_counters()
        );
        samples.extend(reader.take(count - samples.len()));
    }
    assert_eq!(samples.len(), count);
    samples
}

/// Takes `count` samples of one source and checks that they are the first ones, in order and whole.
pub(crate) fn take_numbered(reader: &DataReader<Numbered>, source: u32, count: u64) {
    let mut expected = 0;
    while expected < count {
        assert!(reader.wait_for_data(DEADLINE).is_ok(), "{expected} of {count} samples");
        for sample in reader.take(usize::MAX) {
            assert!(sample.info.valid_data);
            assert_eq!(*sample.data().unwrap(), Numbered::new(source, expected));
            assert_eq!(sample.info.sequence_number.0, expected as i64 + 1);
            expected += 1;
        }
    }
    assert_eq!(expected, count);
    assert!(reader.take(1).is_empty());
}

/// Polls participants until `is_done`, waiting for any of them.
pub(crate) fn poll_until(participants: &[&DomainParticipant], mut is_done: impl FnMut() -> bool) {
    loop {
        for participant in participants {
            participant.poll(Duration::ZERO).unwrap();
        }
        if is_done() {
            return;
        }
        let fds: Vec<_> = participants.iter().map(|participant| participant.poll_fd().unwrap()).collect();
        let ready = weir_udp::poll(&fds, None, Some(DEADLINE)).unwrap();
        assert!(!ready.is_empty(), "nothing to do before the deadline");
    }
}
