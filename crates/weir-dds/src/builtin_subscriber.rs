//! The readers of builtin topics.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use weir_cdr::DdsType;
use weir_rtps::participant::ParticipantCore;
use weir_rtps::qos::Reliability;
use weir_rtps::reader::{ReaderConfig, ReaderCore, WriterProxyConfig};
use weir_rtps::sedp::EndpointKind;
use weir_rtps::time::Time;
use weir_wire::{
    Data, Endianness, EntityId, Guid, ParameterList, Payload, SequenceNumber, Timestamp, VendorId,
};

use crate::builtin_topics::{
    Announcement, ParticipantBuiltinTopicData, PublicationBuiltinTopicData, SubscriptionBuiltinTopicData,
    TopicBuiltinTopicData, TopicKey, announcement_of,
};
use crate::data_reader::DataReader;
use crate::driver::endpoints::ReaderEndpoint;
use crate::driver::start::Handle;
use crate::error::Result;
use crate::group_qos::SubscriberQos;
use crate::key::{instance_of, instance_of_payload, key_payload_of};
use crate::levels::SubscriberState;
use crate::qos::DataReaderQos;
use crate::random;
use crate::topic::TopicState;

/// The readers of the builtin topics: what other participants are, have and leave (DDS 1.4, 2.2.5).
///
/// Each entity is an instance: its newest announcement can be read, and its end makes the instance
/// NOT_ALIVE_DISPOSED. The readers have everything that readers have: states, conditions, listeners, streams. At first
/// they have what is known already. The participant's own entities, and those that it ignores, do not appear.
///
/// A reader remembers an entity that is gone until its samples are taken. Beyond 65 536 entities, further ones are
/// counted in
/// [`sample_rejected_status`](DataReader::sample_rejected_status).
///
/// A handle: keep it as long as the readers are used. Without one, they get no further samples.
///
/// ```
/// use std::time::Duration;
/// use weir_dds::{DdsType, DomainParticipant, ParticipantSettings};
///
/// #[derive(DdsType, Default)]
/// #[dds(extensibility = "final")]
/// struct Greeting {
///     text: String,
/// }
///
/// let settings = || ParticipantSettings::default().interface("lo");
/// let (here, there) = (DomainParticipant::new(84, settings())?, DomainParticipant::new(84, settings())?);
/// let builtin = here.builtin_subscriber()?;
/// let publications = builtin.publications();
///
/// let topic = there.create_topic::<Greeting>("Greetings")?;
/// let writer = there.create_publisher()?.create_datawriter(&topic, Default::default())?;
/// loop {
///     publications.wait_for_data(Duration::from_secs(10))?;
///     let found = publications.take(100);
///     let mut data = found.iter().filter_map(|sample| sample.data());
///     if data.any(|data| data.key == writer.guid() && data.topic_name == "Greetings") {
///         break;
///     }
/// }
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BuiltinSubscriber {
    readers: Arc<BuiltinReaders>,
}

impl BuiltinSubscriber {
    /// Returns the reader of the topic DCPSParticipant: other participants.
    ///
    /// ```no_run
    /// # use weir_dds::{BuiltinSubscriber};
    /// # fn f(builtin: &BuiltinSubscriber) -> weir_dds::Result<()> {
    /// for sample in builtin.participants().take(100) {
    ///     println!("{:?} is {:?}", sample.data().or(sample.key()), sample.info.instance_state);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn participants(&self) -> &DataReader<ParticipantBuiltinTopicData> {
        &self.readers.participants
    }

    /// Returns the reader of the topic DCPSTopic: topics that endpoints of other participants have.
    ///
    /// ```no_run
    /// # use weir_dds::{BuiltinSubscriber};
    /// # fn f(builtin: &BuiltinSubscriber) -> weir_dds::Result<()> {
    /// for sample in builtin.topics().read(100) {
    ///     println!("{:?}", sample.data().map(|topic| (&topic.name, &topic.type_name)));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn topics(&self) -> &DataReader<TopicBuiltinTopicData> {
        &self.readers.topics
    }

    /// Returns the reader of the topic DCPSPublication: writers of other participants.
    ///
    /// ```no_run
    /// # use weir_dds::{BuiltinSubscriber};
    /// # fn f(builtin: &BuiltinSubscriber) -> weir_dds::Result<()> {
    /// for sample in builtin.publications().read(100) {
    ///     println!("{:?}", sample.data().map(|writer| (writer.key, &writer.topic_name)));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn publications(&self) -> &DataReader<PublicationBuiltinTopicData> {
        &self.readers.publications
    }

    /// Returns the reader of the topic DCPSSubscription: readers of other participants.
    ///
    /// ```no_run
    /// # use weir_dds::{BuiltinSubscriber};
    /// # fn f(builtin: &BuiltinSubscriber) -> weir_dds::Result<()> {
    /// for sample in builtin.subscriptions().read(100) {
    ///     println!("{:?}", sample.data().map(|reader| (reader.key, &reader.topic_name)));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn subscriptions(&self) -> &DataReader<SubscriptionBuiltinTopicData> {
        &self.readers.subscriptions
    }

    /// Returns the readers of a participant, made if there are none.
    pub(crate) fn of(handle: &Arc<Handle>) -> Result<Self> {
        let driver = &handle.driver;
        driver.check()?;
        let mut known = driver.builtin.lock();
        if let Some(readers) = known.upgrade() {
            return Ok(Self { readers });
        }
        let subscriber = SubscriberState::new(&driver.level, SubscriberQos::default());
        let readers = Arc::new(BuiltinReaders {
            participants: reader(handle, &subscriber, "DCPSParticipant", [0, 1, 0, 0xc7])?,
            topics: reader(handle, &subscriber, "DCPSTopic", [0, 0, 2, 0xc7])?,
            publications: reader(handle, &subscriber, "DCPSPublication", [0, 0, 3, 0xc7])?,
            subscriptions: reader(handle, &subscriber, "DCPSSubscription", [0, 0, 4, 0xc7])?,
            state: Mutex::default(),
        });
        *known = Arc::downgrade(&readers);
        drop(known);
        driver.with_discovery(|core, _| core.set_observed(true));
        Ok(Self { readers })
    }
}

fn reader<T: DdsType>(
    handle: &Arc<Handle>,
    subscriber: &Arc<SubscriberState>,
    topic: &str,
    entity: [u8; 4],
) -> Result<DataReader<T>> {
    let (driver, entity) = (&handle.driver, EntityId(entity));
    let config = ReaderConfig {
        hash_seed: random::secret()?,
        max_samples: Some(ENTITIES_MAX),
        max_instances: Some(ENTITIES_MAX),
        key_of: Some(instance_of_payload::<Announcement>),
        key_payload_of: Some(key_payload_of::<Announcement>),
        ..ReaderConfig::new(driver.guid(entity), Reliability::BestEffort)
    };
    let topic = Arc::new(TopicState::new::<T>(topic, Arc::downgrade(handle)));
    let endpoint = Arc::new(ReaderEndpoint::new(entity, ReaderCore::new(config), &topic, subscriber));
    subscriber.access.add(&endpoint);
    let source = WriterProxyConfig {
        guid: source(endpoint.core.lock().guid()),
        reliable: false,
        destinations: Arc::from([]),
        vendor: VendorId::WEIR,
    };
    endpoint.core.lock().match_writer(Time::ZERO, source);
    let reader = DataReader::of_endpoint(handle, endpoint, None, (DataReaderQos::default(), None));
    reader.set_listener(None);
    reader.declare_enabled();
    Ok(reader)
}

/// Returns the writer that the samples of a builtin reader are of.
fn source(reader: Guid) -> Guid {
    let [a, b, c, _] = reader.entity.0;
    Guid::new(reader.prefix, EntityId([a, b, c, 0xc2]))
}

/// The readers, and what they were given.
#[derive(Debug)]
pub(crate) struct BuiltinReaders {
    participants: DataReader<ParticipantBuiltinTopicData>,
    topics: DataReader<TopicBuiltinTopicData>,
    publications: DataReader<PublicationBuiltinTopicData>,
    subscriptions: DataReader<SubscriptionBuiltinTopicData>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The last sequence number of each reader.
    sequence_numbers: BTreeMap<EntityId, i64>,
    /// The topics of the endpoints that were reported.
    topic_of: BTreeMap<Guid, [u8; 16]>,
    /// How many of these each topic has.
    endpoints: BTreeMap<[u8; 16], usize>,
}

impl BuiltinReaders {
    /// Ends the readers: the participant is being closed.
    pub(crate) fn close(&self) {
        self.participants.inner().close_for_all();
        self.topics.inner().close_for_all();
        self.publications.inner().close_for_all();
        self.subscriptions.inner().close_for_all();
    }

    /// Wakes what waits for the readers: the participant has ended.
    pub(crate) fn wake(&self) {
        let Self { participants, topics, publications, subscriptions, .. } = self;
        let others = [topics.endpoint(), publications.endpoint(), subscriptions.endpoint()];
        [participants.endpoint()].into_iter().chain(others).for_each(|reader| reader.wake_watching());
    }

    /// Has the readers find out anew who is called for new samples.
    pub(crate) fn listeners_changed(&self) {
        let Self { participants, topics, publications, subscriptions, .. } = self;
        let others = [topics.endpoint(), publications.endpoint(), subscriptions.endpoint()];
        [participants.endpoint()].into_iter().chain(others).for_each(|reader| reader.listeners_changed());
    }

    /// Reports what has changed in discovery. Returns the readers that have news.
    pub(crate) fn report(
        &self,
        core: &mut ParticipantCore,
        now: Time,
        timestamp: Timestamp,
    ) -> Vec<Arc<ReaderEndpoint>> {
        let mut state = self.state.lock();
        let (mut report, at) = (Report { readers: Vec::new(), state: &mut state }, (now, timestamp));
        let observed: Vec<_> = core.take_observed().collect();
        for guid in observed {
            if guid.entity == EntityId::PARTICIPANT {
                let data =
                    core.participant_data(guid.prefix).map(ParticipantBuiltinTopicData::announcement_of);
                report.entity(self.participants.endpoint(), at, guid.to_bytes(), data);
                continue;
            }
            let found = core.discovered_endpoint(guid);
            let topic = found.as_ref().and_then(|(_, data)| {
                let key = TopicKey { name: data.topic.clone(), type_name: data.type_name.clone() };
                let key = instance_of(&key).ok()?;
                Some((key, announcement_of(EndpointKind::Writer, data, Some(key))))
            });
            report.topic(self.topics.endpoint(), at, guid, topic);
            let reader = if guid.entity.is_writer() {
                self.publications.endpoint()
            } else {
                self.subscriptions.endpoint()
            };
            let data = found.map(|(kind, data)| announcement_of(kind, &data, None));
            report.entity(reader, at, guid.to_bytes(), data);
        }
        report.readers
    }
}

/// Passes samples to builtin readers.
struct Report<'a> {
    readers: Vec<Arc<ReaderEndpoint>>,
    state: &'a mut State,
}

impl Report<'_> {
    /// Reports an entity; without data, its end.
    fn entity(
        &mut self,
        reader: &Arc<ReaderEndpoint>,
        (now, timestamp): (Time, Timestamp),
        key: [u8; 16],
        data: Option<Announcement>,
    ) {
        let is_end = data.is_none();
        let mut core = reader.core.lock();
        if is_end && core.find_instance(key).is_none() {
            return;
        }
        let announcement = data.unwrap_or(Announcement { key, payload: Vec::new() });
        let mut bytes = Vec::new();
        let encoded = if is_end {
            weir_cdr::key_payload(&announcement, weir_cdr::Encoding::Xcdr1).map(|key| bytes = key)
        } else {
            weir_cdr::to_payload(&announcement, &mut bytes)
        };
        let list = ParameterList::parse(&ENDED, Endianness::Little).ok().filter(|_| is_end);
        // An announcement that was received is no longer than what can be encoded.
        if encoded.is_err() {
            return;
        }
        let sequence_number = self.state.sequence_numbers.entry(reader.entity).or_default();
        *sequence_number += 1;
        let source = source(core.guid());
        let data = Data {
            reader: reader.entity,
            writer: source.entity,
            sequence_number: SequenceNumber(*sequence_number),
            inline_qos: list.map(|(list, _)| list),
            payload: if is_end { Payload::Key(&bytes) } else { Payload::Data(&bytes) },
        };
        core.handle_data(now, &source, &data, Some(timestamp), None);
        drop(core);
        if !self.readers.iter().any(|known| Arc::ptr_eq(known, reader)) {
            self.readers.push(Arc::clone(reader));
        }
    }

    /// Reports the topic of an endpoint, if it is the first or the last one of it.
    fn topic(
        &mut self,
        reader: &Arc<ReaderEndpoint>,
        at: (Time, Timestamp),
        endpoint: Guid,
        topic: Option<([u8; 16], Announcement)>,
    ) {
        let (key, data) = topic.unzip();
        let before = match key {
            Some(key) => self.state.topic_of.insert(endpoint, key),
            None => self.state.topic_of.remove(&endpoint),
        };
        if before == key {
            return;
        }
        if let Some(key) = key {
            let count = self.state.endpoints.entry(key).or_default();
            *count += 1;
            if *count == 1 {
                self.entity(reader, at, key, data);
            }
        }
        if let Some(key) = before
            && let Some(count) = self.state.endpoints.get_mut(&key)
        {
            *count -= 1;
            if *count == 0 {
                self.state.endpoints.remove(&key);
                self.entity(reader, at, key, None);
            }
        }
    }
}

/// The participant's builtin readers, if they exist.
pub(crate) type KnownReaders = Mutex<Weak<BuiltinReaders>>;

/// Most entities that a builtin reader keeps.
const ENTITIES_MAX: u32 = 65_536;
/// Inline QoS of the end of an instance: STATUS_INFO, disposed and unregistered (RTPS 2.5, 9.6.4.9).
const ENDED: [u8; 12] = [0x71, 0, 4, 0, 0, 0, 0, 3, 1, 0, 0, 0];

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use crate::{
        AnyDataReader, DomainParticipant, DomainParticipantListener, ParticipantSettings, StatusMask,
    };

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[derive(Default)]
    struct Calls(AtomicU32);

    impl DomainParticipantListener for Calls {
        fn on_data_available(&self, _: &AnyDataReader) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_later_listener_of_the_participant_is_called_for_builtin_readers() {
        let settings = ParticipantSettings::default().interface("lo");
        let here = DomainParticipant::new(21, settings.clone().without_threads()).unwrap();
        let builtin = here.builtin_subscriber().unwrap();
        let calls = Arc::new(Calls::default());
        here.set_listener(Some(Arc::clone(&calls) as _), StatusMask::DATA_AVAILABLE);
        let _there = DomainParticipant::new(21, settings).unwrap();
        while builtin.participants().available() == 0 {
            here.poll(LONG).unwrap();
        }
        // What this has caused is done.
        while here.poll(Duration::ZERO).unwrap() {}
        assert!(calls.0.load(Ordering::SeqCst) > 0);
    }
}
