//! A participant with the topics of RTI Perftest.

use std::time::Duration;

use weir_dds::{
    BatchPolicy, DataReader, DataReaderListener, DataReaderQos, DataWriter, DataWriterQos, DdsError,
    DomainParticipant, Durability, DurabilityService, History, MulticastGroup, ParticipantSettings,
    PublishMode, ResourceLimits, TopicDescription,
};

use weir_measure::{clock, nanos};

use super::reading::Reading;
use super::settings::{NodeSettings, Receive};
use weir_bench::endpoint::EndpointError;
use weir_bench::engine::Means;
use weir_bench::test_data::Owned;

/// The topic of the samples.
pub(super) const THROUGHPUT: &str = "Throughput";
/// The topic of the echoes.
pub(super) const LATENCY: &str = "Latency";
/// The filtered topic of a subscriber that receives only some instances.
const FILTERED: &str = "Throughput_cft";
/// The topic of announcements.
pub(super) const ANNOUNCEMENT: &str = "Announcement";

/// How long a write blocks before the publisher checks its subscribers.
const WRITE_PATIENCE: Duration = Duration::from_millis(500);

/// The lease of a participant. Costs an announcement of some hundred bytes every 1.7 seconds.
const LEASE: Duration = Duration::from_secs(5);

/// How long a sample may wait for its batch to fill.
const BATCH_DELAY: Duration = Duration::from_millis(10);

/// The largest message: it is one UDP datagram.
const MESSAGE_BYTES_MAX: usize = 65_507;

/// The overhead of a message and of a sample in it, at most.
const OVERHEAD_BYTES: usize = 64;

/// A participant, and the settings of its endpoints.
pub(super) struct Node {
    pub(super) participant: DomainParticipant,
    pub(super) settings: NodeSettings,
}

/// Batching of samples.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Batch {
    /// Bytes of a batch; 0: none.
    pub(super) bytes: usize,
    /// Bytes of a sample.
    pub(super) data_len: usize,
}

impl Node {
    pub(super) fn open(settings: &NodeSettings) -> Result<Self, EndpointError> {
        settings.threads.prepare()?;
        let environment = |error: DdsError| EndpointError::Environment(error.to_string());
        let mut participant = ParticipantSettings::from_environment().map_err(environment)?;
        if !settings.interfaces.is_empty() {
            participant.interfaces.clone_from(&settings.interfaces);
        }
        participant.peers.extend_from_slice(&settings.peers);
        participant.name = Some("perftest".to_owned());
        participant.lease_duration = LEASE;
        if settings.is_small {
            let means = Means::small(MESSAGE_BYTES_MAX);
            participant.threads = means.has_threads;
            participant.receive_buffer = means.socket_buffer;
            participant.send_buffer = means.send_buffer();
        }
        let qos = settings.profiles.as_ref().map(|profiles| profiles.participant()).unwrap_or_default();
        let participant =
            DomainParticipant::new_with_qos(settings.domain, participant, qos).map_err(environment)?;
        Ok(Self { participant, settings: settings.clone() })
    }

    /// Call when all endpoints exist: some start threads.
    pub(super) fn place_threads(&self) -> Result<(), EndpointError> {
        self.settings.threads.apply()
    }

    /// Does what the engine has to do, for `length`. An engine with threads needs no call for that.
    pub(super) fn rest(&self, length: Duration) {
        self.rest_until(length, || false);
    }

    /// The same until `is_over` at the longest, which is asked whenever the engine has done something.
    pub(super) fn rest_until(&self, length: Duration, is_over: impl Fn() -> bool) {
        if !self.settings.is_small {
            return std::thread::sleep(length);
        }
        let until_ns = clock::now_ns() + nanos(length);
        while !is_over() {
            let left_ns = until_ns.saturating_sub(clock::now_ns());
            // Calls that do not only rest report an engine that has failed.
            if left_ns == 0 || self.participant.poll(Duration::from_nanos(left_ns)).is_err() {
                return;
            }
        }
    }

    /// Does what the engine has to do now.
    #[inline]
    pub(super) fn attend(&self) {
        if self.settings.is_small {
            // As above.
            let _ = self.participant.poll(Duration::ZERO);
        }
    }

    /// The limits of a history, unless there are others.
    fn limits(&self, data_len: usize) -> Option<ResourceLimits> {
        Means::small(data_len).limits.filter(|_| self.settings.is_small && self.settings.profiles.is_none())
    }

    /// A writer of samples or of echoes.
    pub(super) fn writer<T: Owned>(&self, topic: &str, batch: Batch) -> Result<DataWriter<T>, EndpointError> {
        let qos = self.settings.profiles.as_ref().map(|profiles| profiles.writer(topic));
        let qos =
            qos.unwrap_or_else(|| DataWriterQos::default().keep_all()).max_blocking_time(WRITE_PATIENCE);
        let qos = if self.settings.reliable { qos.reliable() } else { qos.best_effort() };
        let qos = match self.settings.send_queue {
            // Acknowledged samples are kept, too, so it cannot keep all.
            _ if self.keeps_for_late(topic) => {
                let depth = self.settings.kept_per_instance(batch.data_len);
                let service =
                    DurabilityService { history: History::KeepLast(depth), ..DurabilityService::default() };
                qos.durability(self.settings.durability).durability_service(service).keep_last(depth)
            }
            // A queue of batches holds all of their samples.
            Some(places) => qos.resource_limits(
                ResourceLimits::UNLIMITED.max_samples(places.saturating_mul(batch.samples())),
            ),
            None => match self.limits(batch.data_len.max(batch.bytes)) {
                Some(limits) => qos.resource_limits(limits),
                None => qos,
            },
        };
        let qos = if batch.bytes == 0 { qos } else { qos.batch(batch.policy()) };
        self.create_writer(topic, qos)
    }

    /// A reader of samples or of echoes. Its listener, if any, runs on the thread that the settings choose; that ends
    /// with the [`Reading`].
    pub(super) fn reader<T: Owned, L: DataReaderListener<T> + 'static>(
        &self,
        topic: &str,
        listener: Option<L>,
    ) -> Result<(DataReader<T>, Option<Reading>), EndpointError> {
        let qos = self.settings.profiles.as_ref().map(|profiles| profiles.reader(topic));
        let qos = qos.unwrap_or_else(|| DataReaderQos::default().keep_all());
        let qos = if self.settings.reliable { qos.reliable() } else { qos.best_effort() };
        let qos = if self.keeps_for_late(topic) { qos.durability(self.settings.durability) } else { qos };
        let qos = match self.settings.receive_queue {
            Some(places) => qos.resource_limits(ResourceLimits::UNLIMITED.max_samples(places)),
            // The size of the samples is not known yet.
            None => match self.limits(MESSAGE_BYTES_MAX) {
                Some(limits) => qos.resource_limits(limits),
                None => qos,
            },
        };
        match (self.settings.receive, listener) {
            (Receive::Thread { delay, count }, Some(listener)) => {
                let reader = self.create_reader(topic, qos, None::<L>)?;
                let reading = Reading::start(reader.clone(), delay, count, listener);
                Ok((reader, Some(reading)))
            }
            (_, listener) => Ok((self.create_reader(topic, qos, listener)?, None)),
        }
    }

    /// A writer of announcements: late joiners get the last one.
    pub(super) fn announcement_writer<T: Owned>(&self) -> Result<DataWriter<T>, EndpointError> {
        let qos = self.settings.profiles.as_ref().map(|profiles| profiles.writer(ANNOUNCEMENT));
        let default = || DataWriterQos::default().reliable().keep_last(1).transient_local();
        self.create_writer(ANNOUNCEMENT, qos.unwrap_or_else(default))
    }

    /// A reader of announcements.
    pub(super) fn announcement_reader<T: Owned>(
        &self,
        listener: impl DataReaderListener<T> + 'static,
    ) -> Result<DataReader<T>, EndpointError> {
        let qos = self.settings.profiles.as_ref().map(|profiles| profiles.reader(ANNOUNCEMENT));
        let default = || DataReaderQos::default().reliable().keep_all().transient_local();
        self.create_reader(ANNOUNCEMENT, qos.unwrap_or_else(default), Some(listener))
    }

    /// The durability setting is that of the samples only, as in RTI Perftest.
    fn keeps_for_late(&self, topic: &str) -> bool {
        self.settings.durability != Durability::Volatile && topic == THROUGHPUT
    }

    fn create_writer<T: Owned>(
        &self,
        topic: &str,
        qos: DataWriterQos,
    ) -> Result<DataWriter<T>, EndpointError> {
        let group = self.settings.profiles.as_ref().map(|profiles| profiles.publisher(topic));
        let topic = self.participant.create_topic(topic).map_err(failed)?;
        let qos = if self.settings.asynchronous { qos.publish_mode(PublishMode::Asynchronous) } else { qos };
        let publisher =
            self.participant.create_publisher_with_qos(group.unwrap_or_default()).map_err(failed)?;
        publisher.create_datawriter(&topic, qos).map_err(failed)
    }

    fn create_reader<T: Owned>(
        &self,
        topic: &str,
        qos: DataReaderQos,
        listener: Option<impl DataReaderListener<T> + 'static>,
    ) -> Result<DataReader<T>, EndpointError> {
        let group = self.settings.multicast.map(|groups| match topic {
            THROUGHPUT => groups.throughput,
            LATENCY => groups.latency,
            _ => groups.announcement,
        });
        let only = self.settings.only.as_ref().filter(|_| topic == THROUGHPUT);
        let topic = self.participant.create_topic(topic).map_err(failed)?;
        let qos = match group {
            Some(address) => qos.multicast(MulticastGroup::new(address.into())),
            None => qos,
        };
        let Some(only) = only else { return self.create_reader_of(&topic, qos, listener) };
        let filtered = self.participant.create_contentfilteredtopic(
            FILTERED,
            &topic,
            only.expression(),
            &only.parameters(),
        );
        self.create_reader_of(&filtered.map_err(failed)?, qos, listener)
    }

    fn create_reader_of<T: Owned>(
        &self,
        topic: &impl TopicDescription<T>,
        qos: DataReaderQos,
        listener: Option<impl DataReaderListener<T> + 'static>,
    ) -> Result<DataReader<T>, EndpointError> {
        let group =
            self.settings.profiles.as_ref().map(|profiles| profiles.subscriber(topic.related_topic().name()));
        let subscriber =
            self.participant.create_subscriber_with_qos(group.unwrap_or_default()).map_err(failed)?;
        match listener {
            Some(listener) => subscriber.create_datareader_with_listener(topic, qos, listener),
            None => subscriber.create_datareader(topic, qos),
        }
        .map_err(failed)
    }
}

impl Batch {
    fn samples(self) -> u32 {
        if self.bytes == 0 {
            return 1;
        }
        u32::try_from((self.bytes / self.data_len.max(1)).max(1)).unwrap_or(u32::MAX)
    }

    /// RTI Perftest counts the samples of a batch, the engine its whole message. Two samples fit in
    /// any case, as they do there.
    fn policy(self) -> BatchPolicy {
        let two = 2 * (self.data_len + OVERHEAD_BYTES) + OVERHEAD_BYTES;
        BatchPolicy::new(self.bytes.max(two).min(MESSAGE_BYTES_MAX), u32::MAX, BATCH_DELAY)
    }
}

/// An error of the engine.
pub(super) fn failed(error: DdsError) -> EndpointError {
    EndpointError::Engine(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::perftest::settings::tests::node;
    use weir_bench::test_data::TestData;

    /// Threads of this process that publish for writers.
    fn publishing_threads() -> usize {
        let threads = weir_udp::threads::own_threads().unwrap();
        threads.iter().filter(|thread| thread.name == "weir-publish").count()
    }

    #[test]
    fn endpoints_have_the_qos_of_their_profiles_and_options_go_before_it() {
        use weir_dds::{History, Reliability};

        use crate::perftest::profiles::Profiles;

        let text = r#"<dds><qos_library name="L">
            <qos_profile name="Base">
              <datawriter_qos>
                <history><kind>KEEP_LAST_HISTORY_QOS</kind><depth>7</depth></history>
                <transport_priority><value>46</value></transport_priority>
              </datawriter_qos>
              <datareader_qos><history><depth>8</depth></history></datareader_qos>
            </qos_profile>
            <qos_profile name="BaseProfileQos">
              <participant_qos><user_data><value>1</value></user_data></participant_qos>
            </qos_profile>
            <qos_profile name="ThroughputQos" base_name="Base"/>
            <qos_profile name="LatencyQos"/>
            <qos_profile name="AnnouncementQos"/>
            </qos_library></dds>"#;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("qos.xml");
        std::fs::write(&file, text).unwrap();
        let profiles = Some(std::sync::Arc::new(Profiles::read(&file, "L").unwrap()));
        let node = Node::open(&NodeSettings { profiles, domain: 12, ..node() }).unwrap();
        assert_eq!(node.participant.get_qos().user_data, [1]);
        let writer = node.writer::<TestData>(THROUGHPUT, Batch::default()).unwrap().get_qos();
        assert_eq!((writer.history, writer.transport_priority), (History::KeepLast(7), 46));
        assert_eq!((writer.reliability, writer.max_blocking_time), (Reliability::Reliable, WRITE_PATIENCE));
        let listener = None::<NoListener>;
        let reader = node.reader::<TestData, _>(THROUGHPUT, listener).unwrap().0.get_qos();
        // Perftest is reliable unless it has -bestEffort.
        assert_eq!((reader.history, reader.reliability), (History::KeepLast(8), Reliability::Reliable));
        let echoes = node.writer::<TestData>(LATENCY, Batch::default()).unwrap().get_qos();
        assert_eq!((echoes.history, echoes.transport_priority), (History::KeepLast(1), 0));
    }

    struct NoListener;
    impl<T> DataReaderListener<T> for NoListener {}

    #[test]
    fn asynchronous_writers_have_threads() {
        // Other tests of this process have none.
        for (asynchronous, threads) in [(false, 0), (true, 2)] {
            let node = Node::open(&NodeSettings { asynchronous, domain: 12, ..node() }).unwrap();
            let _samples = node.writer::<TestData>(THROUGHPUT, Batch::default()).unwrap();
            let _announcements = node.announcement_writer::<TestData>().unwrap();
            // A thread names itself shortly after it starts.
            let deadline = Instant::now() + Duration::from_secs(60);
            while publishing_threads() != threads {
                assert!(Instant::now() < deadline, "{} threads publish", publishing_threads());
                std::thread::yield_now();
            }
        }
    }
}
