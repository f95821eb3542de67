//! Domain participants (DDS 1.4, 2.2.2.2.1).

use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use weir_cdr::DdsType;
use weir_rtps::budget::{Budget, Counts};
use weir_rtps::participant::{DiscoveryCounters, DiscoveryProgress, ParticipantCore};
use weir_rtps::path::PathReport;
use weir_rtps::static_peers::StaticDifference;
use weir_rtps::time::Time;
use weir_wire::{EntityId, Guid, GuidPrefix};

use crate::clock;
use crate::content_filter::ContentFilteredTopic;
use crate::driver::observers::Cause;
use crate::driver::receive_counters::ReceiveCounters;
use crate::driver::shared::Driver;
use crate::driver::start::Handle;
use crate::error::{DdsError, Result};
use crate::group_qos::{PublisherQos, SubscriberQos};
use crate::limits_reached::{self, LimitReached};
use crate::listener::DomainParticipantListener;
use crate::publisher::Publisher;
use crate::qos::{DomainParticipantQos, TopicQos, USER_DATA_MAX};
use crate::settings::ParticipantSettings;
use crate::status_mask::StatusMask;
use crate::subscriber::Subscriber;
use crate::topic::Topic;

/// Maximum length of a topic name, in bytes.
const TOPIC_NAME_MAX: usize = 256;

/// A member of a domain; the factory for topics, publishers and subscribers.
///
/// Participants of a domain discover each other and match their writers and readers.
///
/// This is a handle: clones refer to the same participant. The participant leaves the domain when the last handle to it
/// or to one of its entities is dropped, or when one of the handles is [closed](DomainParticipant::close).
///
/// ```no_run
/// use weir_dds::{DdsType, DomainParticipant, ParticipantSettings};
///
/// #[derive(DdsType, Default)]
/// #[dds(extensibility = "final")]
/// struct Greeting {
///     text: String,
/// }
///
/// let settings = ParticipantSettings::from_environment()?.interface("lo");
/// let participant = DomainParticipant::new(0, settings)?;
/// let topic = participant.create_topic::<Greeting>("Greetings")?;
/// let writer = participant.create_publisher()?.create_datawriter(&topic, Default::default())?;
/// writer.write(&Greeting { text: "hello".into() })?;
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
#[derive(Clone)]
pub struct DomainParticipant {
    pub(crate) handle: Arc<Handle>,
}

impl DomainParticipant {
    /// Joins a domain.
    ///
    /// Opens the sockets and starts the participant's threads, unless the application
    /// [polls](DomainParticipant::poll).
    ///
    /// ```no_run
    /// use weir_dds::{DomainParticipant, ParticipantSettings};
    ///
    /// let participant = DomainParticipant::new(7, ParticipantSettings::default().interface("lo"))?;
    /// assert_eq!(participant.domain_id(), 7);
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::BadParameter`]: the domain id is over 232, an interface does not exist, the group of
    ///   `data_multicast` is not one for user data, the name is longer than 256 bytes or contains a zero byte, or the
    ///   settings do not fit the limits table.
    /// - [`DdsError::Unsupported`]: the address of a peer or a group is one of IPv6.
    /// - [`DdsError::OutOfResources`]: no UDP port is free.
    /// - [`DdsError::Network`]: a socket or a thread cannot be created.
    pub fn new(domain_id: u32, settings: ParticipantSettings) -> Result<Self> {
        Self::new_with_qos(domain_id, settings, DomainParticipantQos::default())
    }

    /// Joins a domain as a participant with QoS.
    ///
    /// ```no_run
    /// use weir_dds::{DomainParticipant, DomainParticipantQos, ParticipantSettings};
    ///
    /// let qos = DomainParticipantQos::default().user_data(*b"robot 7");
    /// let participant = DomainParticipant::new_with_qos(7, ParticipantSettings::default(), qos)?;
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// As [`DomainParticipant::new`]; [`DdsError::BadParameter`] if the user data is longer than 1024 bytes.
    pub fn new_with_qos(
        domain_id: u32,
        settings: ParticipantSettings,
        qos: DomainParticipantQos,
    ) -> Result<Self> {
        settings.check_name()?;
        check_user_data(&qos)?;
        let driver = Driver::start(domain_id, &settings, qos)?;
        Ok(Self { handle: Arc::new(Handle { driver }) })
    }

    /// Returns the QoS.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// println!("{:?}", participant.get_qos().user_data);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_qos(&self) -> DomainParticipantQos {
        self.handle.driver.qos.lock().clone()
    }

    /// Changes the QoS. Other participants get the user data at once.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// participant.set_qos(participant.get_qos().user_data(*b"robot 7, charging"))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::BadParameter`]: the user data is longer than 1024 bytes.
    /// - [`DdsError::AlreadyDeleted`]: the participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn set_qos(&self, qos: DomainParticipantQos) -> Result<()> {
        self.handle.driver.check()?;
        check_user_data(&qos)?;
        let user_data = qos.user_data.clone();
        *self.handle.driver.qos.lock() = qos;
        self.handle.driver.with_discovery(|core, now| core.set_user_data(now, user_data));
        Ok(())
    }

    /// Returns the user data that another participant has announced; `None` if it is not known.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// for other in participant.discovered_participants() {
    ///     println!("{other}: {:?}", participant.user_data_of(other.prefix));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn user_data_of(&self, participant: GuidPrefix) -> Option<Vec<u8>> {
        let of =
            |core: &mut ParticipantCore, _| core.remote_data(participant).map(|data| data.user_data.clone());
        self.handle.driver.with_discovery(of)
    }

    /// Creates a topic: a name and the type of its samples. Its QoS is the [default](Self::set_default_topic_qos).
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, DomainParticipant};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// let topic = participant.create_topic::<Reading>("Readings")?;
    /// assert_eq!(topic.type_name(), "Reading");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::BadParameter`]: the name is empty, longer than 256 bytes, or contains a zero byte.
    /// - [`DdsError::AlreadyDeleted`]: the participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn create_topic<T: DdsType>(&self, name: &str) -> Result<Topic<T>> {
        self.create_topic_with_qos(name, self.default_topic_qos())
    }

    /// Creates a topic with QoS.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, DomainParticipant};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// use weir_dds::{DataWriterQos, TopicQos};
    ///
    /// let topic = participant.create_topic_with_qos::<Reading>("Readings", TopicQos::default().reliable())?;
    /// let qos = DataWriterQos::default().copy_from_topic_qos(&topic.get_qos());
    /// let writer = participant.create_publisher()?.create_datawriter(&topic, qos)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DomainParticipant::create_topic`]; [`DdsError::InconsistentPolicy`] if policies contradict each other, or
    /// the topic data is longer than 1024 bytes.
    pub fn create_topic_with_qos<T: DdsType>(&self, name: &str, qos: TopicQos) -> Result<Topic<T>> {
        qos.check()?;
        self.handle.driver.check()?;
        check_topic_name(name)?;
        Ok(Topic::new(&self.handle, name, qos))
    }

    /// Creates a content-filtered topic: readers created with it receive only samples that meet a condition.
    ///
    /// `parameters`: what `%0`, `%1`, ... in the expression stand for. See [`ContentFilteredTopic`].
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, DomainParticipant};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// use weir_dds::DataReaderQos;
    ///
    /// let topic = participant.create_topic::<Reading>("Readings")?;
    /// let hot = participant.create_contentfilteredtopic("HotReadings", &topic, "celsius > %0", &["50.0"])?;
    /// let reader = participant.create_subscriber()?.create_datareader(&hot, DataReaderQos::default())?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::BadParameter`]: the name is empty, longer than 256 bytes, or contains a zero byte; or, with the
    ///   place in the expression: it is malformed, a member is unknown, a value is not of the member's type, a
    ///   parameter is missing.
    /// - [`DdsError::AlreadyDeleted`]: the topic or the participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn create_contentfilteredtopic<T: DdsType, S: AsRef<str>>(
        &self,
        name: &str,
        topic: &Topic<T>,
        expression: &str,
        parameters: &[S],
    ) -> Result<ContentFilteredTopic<T>> {
        self.handle.driver.check()?;
        check_topic_name(name)?;
        ContentFilteredTopic::new(&self.handle, name, topic, expression, parameters)
    }

    /// Creates a publisher, the factory for writers. Its QoS is the [default](Self::set_default_publisher_qos).
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, DomainParticipant, Topic};
    /// # fn f<T: DdsType>(participant: &DomainParticipant, topic: &Topic<T>) -> weir_dds::Result<()> {
    /// let publisher = participant.create_publisher()?;
    /// let writer = publisher.create_datawriter(topic, publisher.default_datawriter_qos())?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DomainParticipant::create_publisher_with_qos`]; the default QoS is always usable.
    pub fn create_publisher(&self) -> Result<Publisher> {
        self.create_publisher_with_qos(self.default_publisher_qos())
    }

    /// Creates a publisher with QoS.
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant, ParticipantSettings};
    /// use weir_dds::{PresentationScope, PublisherQos};
    ///
    /// # let participant = DomainParticipant::new(0, ParticipantSettings::default())?;
    /// let qos = PublisherQos::default().coherent_access(PresentationScope::Group);
    /// let publisher = participant.create_publisher_with_qos(qos)?;
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::BadParameter`]: too many or too long partitions or group data.
    /// - [`DdsError::AlreadyDeleted`]: the participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn create_publisher_with_qos(&self, qos: PublisherQos) -> Result<Publisher> {
        self.handle.driver.check()?;
        qos.announced(EntityId::UNKNOWN).check()?;
        Ok(Publisher::new(&self.handle, qos))
    }

    /// Creates a subscriber, the factory for readers. Its QoS is the [default](Self::set_default_subscriber_qos).
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, DomainParticipant, Topic};
    /// # fn f<T: DdsType>(participant: &DomainParticipant, topic: &Topic<T>) -> weir_dds::Result<()> {
    /// let subscriber = participant.create_subscriber()?;
    /// let reader = subscriber.create_datareader(topic, subscriber.default_datareader_qos())?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DomainParticipant::create_subscriber_with_qos`]; the default QoS is always usable.
    pub fn create_subscriber(&self) -> Result<Subscriber> {
        self.create_subscriber_with_qos(self.default_subscriber_qos())
    }

    /// Creates a subscriber with QoS.
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant, ParticipantSettings};
    /// use weir_dds::{PresentationScope, SubscriberQos};
    ///
    /// # let participant = DomainParticipant::new(0, ParticipantSettings::default())?;
    /// let qos = SubscriberQos::default().coherent_access(PresentationScope::Topic);
    /// let subscriber = participant.create_subscriber_with_qos(qos)?;
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::BadParameter`]: too many or too long partitions or group data.
    /// - [`DdsError::AlreadyDeleted`]: the participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn create_subscriber_with_qos(&self, qos: SubscriberQos) -> Result<Subscriber> {
        self.handle.driver.check()?;
        qos.announced().check()?;
        Ok(Subscriber::new(&self.handle, qos))
    }

    /// Sets the listener for the events in `mask` that no listener of the participant's entities is for.
    ///
    /// Without a listener, those in `mask` are dropped (DDS 1.4, 2.2.4.2.3). A listener that holds a handle of the
    /// participant or of its entities keeps the participant alive.
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant};
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// use std::sync::Arc;
    /// use weir_dds::{AnyDataReader, DomainParticipantListener, IncompatibleQosStatus, StatusMask};
    ///
    /// struct Log;
    ///
    /// impl DomainParticipantListener for Log {
    ///     fn on_requested_incompatible_qos(&self, reader: &AnyDataReader, status: IncompatibleQosStatus) {
    ///         eprintln!("{}: {:?} does not fit", reader.topic_name(), status.last_policy_id);
    ///     }
    /// }
    ///
    /// participant.set_listener(Some(Arc::new(Log)), StatusMask::REQUESTED_INCOMPATIBLE_QOS);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_listener(&self, listener: Option<Arc<dyn DomainParticipantListener>>, mask: StatusMask) {
        let driver = &self.handle.driver;
        if listener.is_some() {
            driver.start_calling();
        }
        let before = driver.level.set(listener, mask);
        driver.routes.table().readers.values().for_each(|reader| reader.listeners_changed());
        let builtin = driver.builtin.lock().upgrade();
        builtin.into_iter().for_each(|readers| readers.listeners_changed());
        drop(before);
    }

    /// Returns the listener.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// assert!(participant.listener().is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn listener(&self) -> Option<Arc<dyn DomainParticipantListener>> {
        self.handle.driver.level.listener()
    }

    /// Returns how many calls of the participant's listener panicked. The panic hook has reported each on standard
    /// error.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// if participant.listener_panics() > 0 {
    ///     eprintln!("the listener has a bug: see the panics on standard error");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn listener_panics(&self) -> u64 {
        self.handle.driver.level.panics.count()
    }

    /// Returns the statuses of the participant that have changed: it has none of its own (DDS 1.4, 2.2.4.1).
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant, StatusMask};
    /// # fn f(participant: &DomainParticipant) {
    /// assert_eq!(participant.status_changes(), StatusMask::NONE);
    /// # }
    /// ```
    pub fn status_changes(&self) -> StatusMask {
        StatusMask::NONE
    }

    /// Does what there is to do for a participant without threads: receives, does what is due, sends for writers that
    /// are paced or publish asynchronously, and calls listeners.
    ///
    /// Returns as soon as something was done: `true`. If there is nothing to do, waits for at most `timeout`, as the
    /// participant's [`WaitStrategy`](crate::WaitStrategy) says.
    ///
    /// A call with a `timeout` also sends the samples that bursts and batches hold back, as all calls that wait do.
    /// With a timeout of zero, they are sent when their delay is over.
    ///
    /// Call it at least whenever [`DomainParticipant::poll_fd`] is readable, or in a loop. Calls that wait, such as
    /// [`DataReader::wait_for_data`](crate::DataReader::wait_for_data), poll as well.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// use weir_dds::{DomainParticipant, ParticipantSettings};
    ///
    /// let participant = DomainParticipant::new(0, ParticipantSettings::default().without_threads())?;
    /// loop {
    ///     participant.poll(Duration::from_millis(10))?;
    ///     // Take samples, write, do something else.
    /// #   break;
    /// }
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::PreconditionNotMet`]: the participant has threads, see
    ///   [`ParticipantSettings::threads`](crate::ParticipantSettings::threads).
    /// - [`DdsError::AlreadyDeleted`]: the participant was closed, also while the call waited.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn poll(&self, timeout: Duration) -> Result<bool> {
        let deadline = if timeout.is_zero() { Time::ZERO } else { clock::now() + timeout };
        self.handle.driver.poll(deadline)
    }

    /// Returns a descriptor that is readable while [`DomainParticipant::poll`] has something to do, for `epoll` and
    /// what is built on it. It belongs to the participant: do not read from it, and do not close it.
    ///
    /// Made at the first call.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant, wait_until_readable: fn(i32)) -> weir_dds::Result<()> {
    /// use std::os::fd::AsRawFd;
    ///
    /// loop {
    ///     // Does what there is to do, without waiting.
    ///     while participant.poll(Duration::ZERO)? {}
    ///     wait_until_readable(participant.poll_fd()?.as_raw_fd());
    /// #   break;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::PreconditionNotMet`]: the participant has threads.
    /// - [`DdsError::Network`]: the process is out of file descriptors.
    pub fn poll_fd(&self) -> Result<BorrowedFd<'_>> {
        self.handle.driver.poll_descriptor()
    }

    /// Asserts all MANUAL_BY_PARTICIPANT writers (DDS 1.4, 2.2.3.11).
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// // More often than the shortest lease of the writers:
    /// participant.assert_liveliness()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::AlreadyDeleted`]: the participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn assert_liveliness(&self) -> Result<()> {
        self.handle.driver.check()?;
        self.handle.driver.with_discovery(|core, now| core.assert_liveliness(now));
        Ok(())
    }

    /// Ends the participant, for all its handles: closes its entities, leaves the domain and ends the threads.
    ///
    /// Waits for each writer as [`DataWriter::close`](crate::DataWriter::close) does. Samples that readers have
    /// received can still be taken. From then on, calls that return a result report [`DdsError::AlreadyDeleted`], on
    /// the participant and on its entities; threads and tasks that wait are woken. Listeners are dropped. Sockets and
    /// memory are released with the last handle. Closing again does nothing, and does not wait for a call that has not
    /// returned yet.
    ///
    /// It also waits for listeners that are being called. So do not hold a lock meanwhile that one of them takes, and
    /// do not let listeners of two participants close each other's.
    ///
    /// Dropping the last handle of a participant and its entities does the same, and hides errors.
    ///
    /// ```
    /// use weir_dds::{DdsError, DdsType, DomainParticipant, ParticipantSettings};
    ///
    /// #[derive(DdsType, Default)]
    /// #[dds(extensibility = "final")]
    /// struct Greeting {
    ///     text: String,
    /// }
    ///
    /// let participant = DomainParticipant::new(83, ParticipantSettings::default().interface("lo"))?;
    /// let topic = participant.create_topic::<Greeting>("Greetings")?;
    /// participant.clone().close()?;
    /// assert!(matches!(participant.create_topic::<Greeting>("Others"), Err(DdsError::AlreadyDeleted(_))));
    /// assert!(matches!(topic.set_qos(topic.get_qos()), Err(DdsError::AlreadyDeleted(_))));
    /// # Ok::<(), DdsError>(())
    /// ```
    ///
    /// # Errors
    /// The first of these; the participant has ended all the same:
    /// - [`DdsError::Timeout`]: a writer could not send its samples, or their end was not acknowledged in time.
    /// - [`DdsError::ThreadFailed`]: the participant had failed.
    pub fn close(&self) -> Result<()> {
        let driver = &self.handle.driver;
        if !driver.begin_closing() {
            return Ok(());
        }
        let (table, contained) = (driver.routes.table(), driver.state.contained.observed());
        let outcome = self.close_contained();
        let builtin = driver.builtin.lock().upgrade();
        builtin.into_iter().for_each(|readers| readers.close());
        driver.close();
        // Those whose conditions are of several participants wait for nothing else.
        table.readers.values().for_each(|reader| reader.wake_watching());
        table.writers.values().for_each(|writer| writer.observers.notify(Cause::News));
        contained.notify();
        driver.state.observers.notify(Cause::News);
        outcome
    }

    /// Returns the error that all calls report since a thread of the engine panicked; `None` if none has.
    ///
    /// A panic of a listener is no such failure.
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant};
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// if let Some(error) = participant.failure() {
    ///     eprintln!("{error}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn failure(&self) -> Option<DdsError> {
        self.handle.driver.failure()
    }

    /// Returns the domain id.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// println!("in domain {}", participant.domain_id());
    /// # Ok(())
    /// # }
    /// ```
    pub fn domain_id(&self) -> u32 {
        self.handle.driver.domain_id
    }

    /// Returns the GUID prefix, which identifies the participant.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// assert_eq!(participant.guid().prefix, participant.guid_prefix());
    /// # Ok(())
    /// # }
    /// ```
    pub fn guid_prefix(&self) -> GuidPrefix {
        self.handle.driver.prefix
    }

    /// Returns counts of what discovery dropped, by reason, such as announcements that could not be used.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// println!("{:?}", participant.discovery_counters());
    /// # Ok(())
    /// # }
    /// ```
    pub fn discovery_counters(&self) -> DiscoveryCounters {
        self.handle.driver.discovery.counters()
    }

    /// Returns how far the discovery of other participants has got.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// let progress = participant.discovery_progress();
    /// println!("{} of {} know this participant", progress.answering, progress.participants);
    /// # Ok(())
    /// # }
    /// ```
    pub fn discovery_progress(&self) -> DiscoveryProgress {
        self.handle.driver.discovery.look(|core| core.progress())
    }

    /// Returns the latest differences between what peers announce and what the file of static endpoints says of them.
    ///
    /// What a peer announces counts. [`DiscoveryCounters::static_differences`] counts all differences.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// for difference in participant.static_differences() {
    ///     eprintln!("{difference:?}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn static_differences(&self) -> Vec<StaticDifference> {
        self.handle.driver.discovery.look(|core| core.static_differences().to_vec())
    }

    /// Returns the memory that the participant takes now, by its limits table; `None`: it has none.
    ///
    /// The figures are computed as those of [`LimitsTable::budget`](crate::LimitsTable::budget), with the writers and
    /// readers that exist instead of those that may exist. What discovery keeps is reserved at the start. Memory of the
    /// driver, of policies and of the application is not in it.
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant};
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// if let Some(memory) = participant.memory_account() {
    ///     println!("{} bytes", memory.total());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn memory_account(&self) -> Option<Budget> {
        let driver = &self.handle.driver;
        let limits = driver.limits.as_ref()?.limits();
        // What discovery keeps is reserved when the participant is created.
        let mut counts = Counts::most(limits);
        let table = driver.routes.table();
        counts.writers = table.writers.len();
        counts.writer_matches = table.writers.values().map(|writer| writer.lane.core().matched()).sum();
        counts.readers = driver.own_readers();
        Some(Budget::of(limits, counts))
    }

    /// Returns the granted receive buffer of the user data socket, in bytes.
    ///
    /// The value is the kernel's accounting size. It may be less than requested: see `sysctl
    /// net.core.rmem_max`.
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant};
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// use weir_dds::SOCKET_BUFFER_BYTES;
    ///
    /// // Linux grants twice what is asked for, for its own bookkeeping.
    /// if participant.granted_receive_buffer() < 2 * SOCKET_BUFFER_BYTES {
    ///     eprintln!("raise net.core.rmem_max");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn granted_receive_buffer(&self) -> usize {
        self.handle.driver.channel.socket.granted_recv_buffer()
    }

    /// Returns the granted send buffer of the user data socket, in bytes.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// println!("send buffer of {} bytes", participant.granted_send_buffer());
    /// # Ok(())
    /// # }
    /// ```
    pub fn granted_send_buffer(&self) -> usize {
        self.handle.driver.channel.socket.granted_send_buffer()
    }

    /// Returns the address at which user data is received.
    ///
    /// 0.0.0.0 if it is received at several addresses, or at one that may be replaced.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) {
    /// println!("user data arrives at UDP port {}", participant.user_address().port());
    /// # }
    /// ```
    pub fn user_address(&self) -> SocketAddr {
        self.handle.driver.channel.socket.local_addr().into()
    }

    /// Returns the datagrams that the kernel dropped at the user data socket.
    ///
    /// They arrived while its receive buffer was full, or, if the settings name interfaces, were sent
    /// to another address.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// if participant.receive_drops() > 0 {
    ///     eprintln!("the receive buffer was full: take samples more often, or enlarge it");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn receive_drops(&self) -> u32 {
        let channel = &self.handle.driver.channel;
        let of = |socket: &weir_udp::UdpSocket| socket.kernel_drops().unwrap_or(0);
        let by_multicast = channel.groups.sockets().iter().map(|socket| of(socket)).sum::<u32>();
        of(&channel.socket).wrapping_add(by_multicast)
    }

    /// Returns how many datagrams of discovery the kernel refused, mostly because a send buffer was full.
    ///
    /// The protocol repeats what they contained.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// println!("{} datagrams of discovery were refused", participant.refused_discovery_sends());
    /// # Ok(())
    /// # }
    /// ```
    pub fn refused_discovery_sends(&self) -> u64 {
        self.handle.driver.meta.refused()
    }

    /// Returns what is known of the paths to other hosts at which readers are matched, by the address of the host:
    /// round trip, rate, bytes in flight and lost.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// for (host, path) in participant.paths() {
    ///     println!("{host}: {path:?}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn paths(&self) -> Vec<(IpAddr, PathReport)> {
        let reports = self.handle.driver.paths.reports().into_iter();
        reports.map(|(host, report)| (host.into(), report)).collect()
    }

    /// Returns the limits that discovery has reached, each with what to do: something of the domain is left out.
    ///
    /// [`discovery_counters`](Self::discovery_counters) has the numbers.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// for limit in participant.limits_reached() {
    ///     eprintln!("{}: {}", limit.what, limit.advice);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn limits_reached(&self) -> Vec<LimitReached> {
        let of = |core: &mut ParticipantCore, _| (core.config().limits, core.config().table.is_some());
        let (limits, has_table) = self.handle.driver.with_discovery(of);
        let refused_sends = self.refused_discovery_sends();
        limits_reached::reached(&self.discovery_counters(), refused_sends, &limits, has_table)
    }

    /// Returns the counters of received user traffic.
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant};
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// let received = participant.receive_counters();
    /// println!("{} datagrams, {} malformed", received.datagrams, received.malformed);
    /// # Ok(())
    /// # }
    /// ```
    pub fn receive_counters(&self) -> ReceiveCounters {
        self.handle.driver.channel.counters()
    }
}

pub(crate) fn check_topic_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > TOPIC_NAME_MAX || name.contains('\0') {
        let text = format!("invalid topic name {name:?}: use 1 to {TOPIC_NAME_MAX} bytes");
        return Err(DdsError::BadParameter(text));
    }
    Ok(())
}

fn check_user_data(qos: &DomainParticipantQos) -> Result<()> {
    let len = qos.user_data.len();
    if len <= USER_DATA_MAX {
        return Ok(());
    }
    Err(DdsError::BadParameter(format!("USER_DATA: {len} bytes are too many: use at most {USER_DATA_MAX}")))
}

impl std::fmt::Debug for DomainParticipant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let guid = Guid::new(self.guid_prefix(), EntityId::PARTICIPANT);
        write!(f, "DomainParticipant({guid} in domain {})", self.domain_id())
    }
}
