//! Writing (DDS 1.4, 2.2.2.4.2): from `write` to the send call, on the caller's thread.
//!
//! | file | content |
//! |---|---|
//! | `inner` | state shared by all handles of a writer, and the waits inside a write |
//! | `write` | the write loop: put a sample into the history and send it, or wait for room |
//! | `pieces` | large samples, encoded and sent piece by piece |
//! | `loan`, `memory` | loaned samples, filled by the application in the memory they are sent from |
//! | `serialized` | payloads that are already serialized |
//! | `instances` | registering, disposing and unregistering instances |
//! | `farewell` | unregisters all instances when the writer ends |
//! | `policies` | reads and changes the QoS; enables the writer |
//! | `setup` | checks the QoS and derives the core's configuration |

mod conditions;
mod farewell;
mod inner;
mod instances;
pub(crate) mod listening;
pub(crate) mod loan;
mod memory;
mod pieces;
mod policies;
mod registered;
mod serialized;
mod setup;
mod write;

use std::any::TypeId;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, ReentrantMutex};
use weir_cdr::{DdsType, Encoding};
use weir_rtps::qos::{Durability, LivelinessKind, Reliability};
use weir_rtps::sedp::EndpointKind;
use weir_rtps::writer::{WriterConfig, WriterCore, WriterCounters};
use weir_wire::{Guid, SequenceNumber, Timestamp};

pub(crate) use self::inner::Inner;
use self::registered::RegisteredInstances;
pub(crate) use self::setup::check_qos;
use self::setup::{batch_of, core_config};
use crate::clock::{self, timestamp_of};
use crate::driver::endpoints::WriterEndpoint;
use crate::driver::lane::Lane;
use crate::driver::matching::MatchOf;
use crate::driver::publishing::Publishing;
use crate::driver::sender::SendCounters;
use crate::error::{DdsError, Result};
use crate::instance_handle::InstanceHandle;
use crate::key::{hashes_are_digests, instance_of_key_hash};
use crate::listener::DataWriterListener;
use crate::publisher::Publisher;
use crate::qos::{DataWriterQos, PublishMode};
use crate::random;
use crate::stage_times::SendTimes;
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, LivelinessLostStatus, PublicationMatchedStatus,
    ReaderInactivityStatus,
};
use crate::topic::Topic;
use crate::upper_listeners::Untyped;

/// Writes samples of a topic.
///
/// A handle: clones refer to the same writer, which ends when the last of them is dropped, or when one of them is
/// [closed](DataWriter::close).
///
/// ```no_run
/// # use weir_dds::{DdsType, DomainParticipant, ParticipantSettings};
/// use weir_dds::DataWriterQos;
///
/// # #[derive(DdsType, Default)]
/// # #[dds(extensibility = "final")]
/// # struct Greeting {
/// #     text: String,
/// # }
/// # let participant = DomainParticipant::new(0, ParticipantSettings::default())?;
/// # let topic = participant.create_topic::<Greeting>("Greetings")?;
/// let publisher = participant.create_publisher()?;
/// let writer = publisher.create_datawriter(&topic, DataWriterQos::default().keep_last(10))?;
/// writer.write(&Greeting { text: "hello".into() })?;
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
pub struct DataWriter<T> {
    inner: Arc<Inner>,
    sample: PhantomData<fn(T)>,
}

/// A writer whose sample type is not known to the compiler: see [`DataWriter::typed`].
///
/// ```no_run
/// use weir_dds::{AnyDataWriter, DomainParticipantListener, OfferedDeadlineMissedStatus};
///
/// struct Log;
///
/// impl DomainParticipantListener for Log {
///     fn on_offered_deadline_missed(&self, writer: &AnyDataWriter, _: OfferedDeadlineMissedStatus) {
///         eprintln!("write {} more often", writer.topic_name());
///     }
/// }
/// ```
pub type AnyDataWriter = DataWriter<Untyped>;

impl<T: DdsType> DataWriter<T> {
    /// Creates a writer that is not enabled.
    pub(crate) fn new(
        publisher: &Publisher,
        topic: &Topic<T>,
        qos: DataWriterQos,
        listener: Option<Arc<dyn DataWriterListener<T>>>,
    ) -> Result<Self> {
        let encoding = check_qos(&qos)?;
        let Publisher { handle, state } = publisher;
        let mut announced = qos.announced();
        state.announced().add_to(&mut announced);
        let driver = &handle.driver;
        publisher.check()?;
        topic.state.check()?;
        if let Some(table) = &driver.limits {
            table.check_count("writers", driver.routes.table().writers.len())?;
            table.check_endpoint(topic.state.name(), (qos.history, qos.resource_limits), T::HAS_KEY)?;
        }
        let claim = driver.claim_id::<T>(EndpointKind::Writer, &topic.state, &announced)?;
        let entity = claim.entity;
        // A large sample keeps the length of its fragments. Readers on other hosts may come later and want it.
        let is_for_late = qos.reliability == Reliability::Reliable && qos.durability != Durability::Volatile;
        let kept_datagram_max = if is_for_late { driver.datagram_max() } else { u16::MAX };
        let config = WriterConfig {
            kept_datagram_max,
            dscp: driver.dscp.dscp(qos.transport_priority),
            presentation: publisher.presentation_of_samples(),
            limits: driver.limits.as_ref().map(|table| table.limits().endpoint),
            ..core_config::<T>(driver.guid(entity), &qos, random::secret()?)
        };
        let lane = Lane::new(
            WriterCore::new(config),
            (qos.publish_mode == PublishMode::Asynchronous).then(Publishing::default),
        );
        if driver.keeps_times {
            lane.keep_times();
        }
        let remembers_instances = T::HAS_KEY && driver.limits.is_none();
        let has_digests = encoding == Encoding::Xcdr1 && hashes_are_digests::<T>();
        lane.core().ask_for_new_instances(remembers_instances);
        let endpoint = Arc::new(WriterEndpoint::new(entity, lane, (&qos, &announced), &topic.state, state));
        let publishing_thread = driver.start_publishing(&endpoint)?;
        driver.routes.change(|table| _ = table.writers.insert(entity, Arc::clone(&endpoint)));
        drop(claim);
        let inner = Arc::new(Inner {
            handle: Arc::clone(handle),
            endpoint,
            publisher: Mutex::new(publishing_thread),
            is_closed: AtomicBool::new(false),
            enabling: ReentrantMutex::new(()),
            current: Mutex::new(qos.clone()),
            is_enabled: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            has_batch: AtomicBool::new(batch_of(&qos).is_some()),
            qos,
            encoding,
            remembers_instances,
            registered: Mutex::new(RegisteredInstances::new(has_digests)),
            undelimited_key: weir_cdr::undelimited_key_payload::<T>,
            instance_of_key_hash: instance_of_key_hash::<T>,
            type_id: TypeId::of::<T>(),
            type_name: T::TYPE_NAME,
        });
        // Nothing else sets it.
        let _ = inner.endpoint.owner.set(Arc::downgrade(&inner));
        let writer = Self::of(inner);
        // Readers that are known already match while the writer is added.
        writer.set_listener(listener);
        writer.inner.endpoint.lane.core().close();
        Ok(writer)
    }

    /// Writes a sample, with the time of the call as source timestamp.
    ///
    /// Returns once the sample has been passed to the kernel. A sample in a burst may still be held
    /// back, at most for `delay_max` of [`Coalescing::Automatic`](crate::Coalescing::Automatic); a
    /// sample in a batch until the batch is sent. A writer that publishes
    /// [asynchronously](PublishMode::Asynchronous) returns when the sample is in its history.
    ///
    /// A reliable KEEP_ALL writer blocks up to `max_blocking_time` while its history has no room
    /// because readers have not acknowledged earlier samples.
    ///
    /// A sample larger than half of a reader's socket buffer leaves in parts. To reliable readers,
    /// parts are sent as they make room. To best-effort readers, parts are sent with pauses, during
    /// which the calling thread sleeps: about 6 ms for 1 MB with Linux's default buffer size.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(writer: &DataWriter<Reading>) -> weir_dds::Result<()> {
    /// writer.write(&Reading { sensor: 7, celsius: 21.5 })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The sample was not written then:
    /// - [`DdsError::Timeout`]: no room within `max_blocking_time`. The text names the reader that is furthest behind.
    /// - [`DdsError::OutOfResources`]: a limit of [`ResourceLimits`](crate::ResourceLimits) or of the limits table is
    ///   reached and waiting would not help. There is one instance too many, or samples kept for
    ///   late readers fill the history.
    /// - [`DdsError::BadParameter`]: the sample is longer than 1 GiB, than `max_bytes` or than the limits table allows.
    /// - [`DdsError::Encoding`]: the type does not allow the value, such as a string longer than its bound.
    /// - [`DdsError::NotEnabled`]: the writer is not [enabled](DataWriter::enable) yet.
    /// - [`DdsError::AlreadyDeleted`]: the writer, its publisher or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    #[inline]
    pub fn write(&self, sample: &T) -> Result<()> {
        self.write_at(sample, None)
    }

    /// Writes a sample with a source timestamp chosen by the caller.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(writer: &DataWriter<Reading>) -> weir_dds::Result<()> {
    /// use std::time::{Duration, SystemTime};
    ///
    /// let measured = SystemTime::now() - Duration::from_millis(5);
    /// writer.write_w_timestamp(&Reading { sensor: 7, celsius: 21.5 }, measured)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DataWriter::write`]; [`DdsError::BadParameter`] also if the timestamp is before 1970 or after 2106.
    pub fn write_w_timestamp(&self, sample: &T, timestamp: SystemTime) -> Result<()> {
        self.write_at(sample, Some(timestamp_of(timestamp)?))
    }

    #[inline]
    fn write_at(&self, sample: &T, timestamp: Option<Timestamp>) -> Result<()> {
        let inner = &*self.inner;
        inner.write_typed(sample, inner.key_of_sample(sample)?, timestamp)
    }
}

impl<T> DataWriter<T> {
    /// Returns what the publisher knows of the writer.
    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Sends the samples that automatic coalescing or a batch holds back.
    ///
    /// A writer that publishes asynchronously leaves the sending to its publishing thread.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(writer: &DataWriter<Reading>) -> weir_dds::Result<()> {
    /// for sensor in 0..10 {
    ///     writer.write(&Reading { sensor, celsius: 21.5 })?;
    /// }
    /// // Nothing follows for now.
    /// writer.flush();
    /// # Ok(())
    /// # }
    /// ```
    pub fn flush(&self) {
        self.inner.flush(self.inner.endpoint.lane.turn(), clock::now());
    }

    /// Waits until all matched reliable readers have acknowledged every sample written so far.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use weir_dds::{DataWriter, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(writer: &DataWriter<Reading>) -> weir_dds::Result<()> {
    /// writer.write(&Reading { sensor: 7, celsius: 21.5 })?;
    /// writer.wait_for_acknowledgments(Duration::from_secs(10))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::Timeout`]: not all have. The text names the reader that is furthest behind.
    /// - [`DdsError::AlreadyDeleted`]: the writer, its publisher or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed, also while the call waited.
    pub fn wait_for_acknowledgments(&self, timeout: Duration) -> Result<()> {
        let inner = &*self.inner;
        inner.check()?;
        let lane = &inner.endpoint.lane;
        let mut turn = lane.turn();
        turn.core.request_acknowledgement();
        let last = turn.core.last_sequence_number();
        inner.flush(turn, clock::now());
        let deadline = clock::now() + timeout;
        let _waiting = lane.publishing.as_ref().map(Publishing::wait_for_end);
        let is_done = |core: &WriterCore| {
            core.is_acknowledged(last) && (lane.publishing.is_none() || core.is_handed_out(last))
        };
        let is_over = || {
            let core = lane.core();
            core.is_closed() || is_done(&core)
        };
        let is_over = inner.driver().receive_until(Some(deadline), inner.driver().wait, is_over);
        if is_over && is_done(&lane.core()) {
            return Ok(());
        }
        inner.check_wait()?;
        Err(DdsError::Timeout {
            what: "the acknowledgement of all samples",
            waited: timeout,
            hint: inner.lagging_hint(),
        })
    }

    /// Waits until every sample written so far has been passed to the kernel.
    ///
    /// Returns at once unless the writer publishes [asynchronously](PublishMode::Asynchronous).
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use weir_dds::{DataWriter, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(writer: &DataWriter<Reading>) -> weir_dds::Result<()> {
    /// writer.write(&Reading { sensor: 7, celsius: 21.5 })?;
    /// writer.wait_for_asynchronous_publishing(Duration::from_secs(10))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::Timeout`]: some are left.
    /// - [`DdsError::AlreadyDeleted`]: the writer, its publisher or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed, also while the call waited.
    pub fn wait_for_asynchronous_publishing(&self, timeout: Duration) -> Result<()> {
        let inner = &*self.inner;
        let lane = &inner.endpoint.lane;
        inner.check()?;
        let Some(publishing) = &lane.publishing else { return Ok(()) };
        let turn = lane.turn();
        let last = turn.core.last_sequence_number();
        inner.flush(turn, clock::now());
        if inner.wait_until_published(publishing, last, clock::now() + timeout) {
            return Ok(());
        }
        inner.check_wait()?;
        Err(DdsError::Timeout { what: "publishing", waited: timeout, hint: inner.lagging_hint() })
    }

    /// Waits until at least `count` readers are matched.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use weir_dds::{DataWriter, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(writer: &DataWriter<Reading>) -> weir_dds::Result<()> {
    /// writer.wait_for_subscriptions(1, Duration::from_secs(10))?;
    /// writer.write(&Reading { sensor: 7, celsius: 21.5 })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::Timeout`]: fewer are. The text says how many.
    /// - [`DdsError::AlreadyDeleted`]: the writer, its publisher or its participant was closed, also while the call
    ///   waited.
    /// - [`DdsError::ThreadFailed`]: the participant has failed, also while the call waited.
    pub fn wait_for_subscriptions(&self, count: u64, timeout: Duration) -> Result<()> {
        let of = MatchOf { endpoint: "writer", others: "readers", what: "a match with readers" };
        let wanted = (&self.inner.endpoint.matched, count);
        self.inner.driver().wait_for_match_count(wanted, timeout, || self.inner.is_closed(), &of)
    }

    /// Returns the matched readers, and resets the changes in the status to zero.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>) -> weir_dds::Result<()> {
    /// let matched = writer.publication_matched_status();
    /// println!("{} readers, {:+} since the last call", matched.current_count, matched.current_count_change);
    /// # Ok(())
    /// # }
    /// ```
    pub fn publication_matched_status(&self) -> PublicationMatchedStatus {
        let matches = self.inner.endpoint.matched.lock().read();
        self.inner.note_status_read();
        matches.into()
    }

    /// Returns the handles of the matched readers (DDS 1.4, 2.2.2.4.2.23).
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>) -> weir_dds::Result<()> {
    /// for reader in writer.matched_subscriptions() {
    ///     if let Some(data) = writer.matched_subscription_data(reader) {
    ///         println!("{reader} is a reader of {}", data.type_name);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn matched_subscriptions(&self) -> Vec<InstanceHandle> {
        self.inner.endpoint.lane.core().matched_readers().map(InstanceHandle::from).collect()
    }

    /// Returns which readers have incompatible QoS, and resets the changes in the status to zero.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>) -> weir_dds::Result<()> {
    /// let status = writer.offered_incompatible_qos_status();
    /// for incompatible in &status.policies {
    ///     println!("{}: {} readers request more", incompatible.policy_id.name(), incompatible.count);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn offered_incompatible_qos_status(&self) -> IncompatibleQosStatus {
        let status = self.inner.endpoint.incompatible.lock().read();
        self.inner.note_status_read();
        status
    }

    /// Returns which instances were not written within the offered deadline, and resets the change in the status to
    /// zero.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>) -> weir_dds::Result<()> {
    /// let missed = writer.offered_deadline_missed_status();
    /// println!("{} deadlines missed since the last call", missed.total_count_change);
    /// # Ok(())
    /// # }
    /// ```
    pub fn offered_deadline_missed_status(&self) -> DeadlineMissedStatus {
        let missed = self.inner.endpoint.lane.core().take_deadline_missed();
        self.inner.note_status_read();
        DeadlineMissedStatus::new(missed, |hash| self.inner.instance_of_hash(hash))
    }

    /// Returns how often the application failed to assert the writer within its lease, and resets
    /// the changes in the status to zero.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>) -> weir_dds::Result<()> {
    /// if writer.liveliness_lost_status().total_count_change > 0 {
    ///     println!("assert the writer more often");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn liveliness_lost_status(&self) -> LivelinessLostStatus {
        let status = self.inner.endpoint.liveliness_lost.lock().read();
        self.inner.note_status_read();
        status
    }

    /// Returns how many readers the writer does not wait for because they stopped acknowledging, and resets the change
    /// in the status to zero. See [`DataWriterQos::reader_inactivity`](crate::DataWriterQos::reader_inactivity()).
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>) -> weir_dds::Result<()> {
    /// println!("{} readers do not answer", writer.reader_inactivity_status().current_count);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reader_inactivity_status(&self) -> ReaderInactivityStatus {
        let endpoint = &self.inner.endpoint;
        let (total, current) = {
            let core = endpoint.lane.core();
            (core.counters().readers_stalled, core.inactive_readers().count() as u64)
        };
        endpoint.inactivity.lock().read(total, current)
    }

    /// Returns the handles of the readers that the writer does not wait for because they stopped acknowledging.
    ///
    /// See [`DataWriterQos::reader_inactivity`](crate::DataWriterQos::reader_inactivity()).
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>, sample: &T) -> weir_dds::Result<()> {
    /// for reader in writer.inactive_subscriptions() {
    ///     println!("{reader} does not answer");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn inactive_subscriptions(&self) -> Vec<InstanceHandle> {
        self.inner.endpoint.lane.core().inactive_readers().map(InstanceHandle::from).collect()
    }

    /// Asserts that the application is alive. A write does so as well.
    ///
    /// For a MANUAL_BY_PARTICIPANT writer this is
    /// [`DomainParticipant::assert_liveliness`](crate::DomainParticipant::assert_liveliness). An
    /// AUTOMATIC writer needs no assertion.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Publisher, Topic};
    /// # fn f<T: DdsType>(publisher: &Publisher, topic: &Topic<T>) -> weir_dds::Result<()> {
    /// # use std::time::Duration;
    /// use weir_dds::{DataWriterQos, LivelinessKind};
    ///
    /// let qos = DataWriterQos::default().liveliness(LivelinessKind::ManualByTopic, Duration::from_secs(1));
    /// let writer = publisher.create_datawriter(topic, qos)?;
    /// // At least once a second:
    /// writer.assert_liveliness()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::AlreadyDeleted`]: the writer, its publisher or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn assert_liveliness(&self) -> Result<()> {
        let inner = &*self.inner;
        inner.check()?;
        let now = clock::now();
        match inner.endpoint.assertions.kind() {
            LivelinessKind::Automatic => return Ok(()),
            LivelinessKind::ManualByParticipant => {
                inner.driver().with_discovery(|core, now| core.assert_liveliness(now));
            }
            LivelinessKind::ManualByTopic => {
                inner.endpoint.lane.assert_liveliness(&inner.driver().outlet, now);
            }
        }
        inner.note_assertion(now);
        Ok(())
    }

    /// Returns the error that all calls report since a thread of the engine panicked; `None` if none has.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>, sample: &T) -> weir_dds::Result<()> {
    /// if let Some(error) = writer.failure() {
    ///     eprintln!("{error}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn failure(&self) -> Option<DdsError> {
        self.inner.driver().failure()
    }

    /// Returns how many calls of the listener panicked. The panic hook has reported each on standard error.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>, sample: &T) -> weir_dds::Result<()> {
    /// println!("{} calls of the listener panicked", writer.listener_panics());
    /// # Ok(())
    /// # }
    /// ```
    pub fn listener_panics(&self) -> u64 {
        self.inner.endpoint.listener_panics.count()
    }

    pub(crate) fn of(inner: Arc<Inner>) -> Self {
        Self { inner, sample: PhantomData }
    }

    /// Returns the same writer without its sample type.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(writer: &DataWriter<Reading>) -> weir_dds::Result<()> {
    /// let any = writer.untyped();
    /// assert!(any.typed::<Reading>().is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn untyped(&self) -> AnyDataWriter {
        DataWriter::of(Arc::clone(&self.inner))
    }

    /// Returns the same writer with its sample type; `None` if it is another one.
    ///
    /// ```no_run
    /// # use weir_dds::{AnyDataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &AnyDataWriter, sample: &T) -> weir_dds::Result<()> {
    /// if let Some(writer) = writer.typed::<T>() {
    ///     writer.write(sample)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn typed<U: 'static>(&self) -> Option<DataWriter<U>> {
        (self.inner.type_id == TypeId::of::<U>()).then(|| DataWriter::of(Arc::clone(&self.inner)))
    }

    /// Returns the name of the topic.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>, sample: &T) -> weir_dds::Result<()> {
    /// println!("writes {}", writer.topic_name());
    /// # Ok(())
    /// # }
    /// ```
    pub fn topic_name(&self) -> &str {
        self.inner.endpoint.topic.name()
    }

    /// Returns the name of the sample type.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>, sample: &T) -> weir_dds::Result<()> {
    /// assert_eq!(writer.type_name(), T::TYPE_NAME);
    /// # Ok(())
    /// # }
    /// ```
    pub fn type_name(&self) -> &'static str {
        self.inner.type_name
    }

    /// Returns the publisher.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>, sample: &T) -> weir_dds::Result<()> {
    /// println!("{:?}", writer.publisher().get_qos().partition);
    /// # Ok(())
    /// # }
    /// ```
    pub fn publisher(&self) -> Publisher {
        let Inner { handle, endpoint, .. } = &*self.inner;
        Publisher { handle: Arc::clone(handle), state: Arc::clone(&endpoint.group) }
    }

    /// Ends the writer, for all its handles, and reports what dropping it would hide.
    ///
    /// Sends what is held back, and unregisters its instances
    /// ([WRITER_DATA_LIFECYCLE](DataWriterQos::autodispose_unregistered_instances())). Like dropping, this blocks: for
    /// up to one second until there is room for the end of the instances, for up to one second until readers have
    /// acknowledged it, and until a writer that publishes [asynchronously](PublishMode::Asynchronous) has sent its
    /// samples. (A participant whose readers were just waited
    /// for in vain is not waited for.) Other handles of the writer report [`DdsError::AlreadyDeleted`] from then on.
    /// Reliable readers may still miss samples that they have not acknowledged: see
    /// [`DataWriter::wait_for_acknowledgments`]. Closing again does nothing.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(writer: &DataWriter<Reading>) -> weir_dds::Result<()> {
    /// writer.write(&Reading { sensor: 7, celsius: 21.5 })?;
    /// writer.close()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The writer has ended all the same:
    /// - [`DdsError::Timeout`]: samples were not sent, there was no room for the end of all instances, or it was not
    ///   acknowledged in time.
    /// - [`DdsError::OutOfResources`]: some instances were not unregistered, because samples kept for late readers
    ///   leave no room, or a key is too long.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn close(&self) -> Result<()> {
        self.inner.close()
    }

    /// Returns the writer's handle, as in [`SampleInfo::publication_handle`](crate::SampleInfo::publication_handle).
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>, reader: &DataReader<T>) {
    /// for sample in reader.take(100) {
    ///     if sample.info.publication_handle != writer.instance_handle() {
    ///         println!("from another writer");
    ///     }
    /// }
    /// # }
    /// ```
    pub fn instance_handle(&self) -> InstanceHandle {
        self.guid().into()
    }

    /// Returns the writer's GUID, which identifies it on the network.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>, sample: &T) -> weir_dds::Result<()> {
    /// println!("this is writer {}", writer.guid());
    /// # Ok(())
    /// # }
    /// ```
    pub fn guid(&self) -> Guid {
        self.inner.driver().guid(self.inner.endpoint.entity)
    }

    /// Returns the sequence number of the last sample; 0 before the first.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>, sample: &T) -> weir_dds::Result<()> {
    /// writer.write(sample)?;
    /// println!("wrote sample {}", writer.last_sequence_number().0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn last_sequence_number(&self) -> SequenceNumber {
        self.inner.endpoint.lane.core().last_sequence_number()
    }

    /// Returns the handles of the reliable readers that have not acknowledged the last sample.
    ///
    /// The reader furthest behind, which is the one that a blocked write waits for, comes first.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>) -> weir_dds::Result<()> {
    /// if let Some(slowest) = writer.lagging_subscriptions().first() {
    ///     println!("{slowest} is furthest behind");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn lagging_subscriptions(&self) -> Vec<InstanceHandle> {
        self.inner.endpoint.lane.core().lagging_readers().map(InstanceHandle::from).collect()
    }

    /// Returns what the writer has sent, without repairs sent by receiving threads.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>) -> weir_dds::Result<()> {
    /// let sent = writer.send_counters();
    /// println!("{} samples in {} datagrams", sent.samples, sent.datagrams);
    /// # Ok(())
    /// # }
    /// ```
    pub fn send_counters(&self) -> SendCounters {
        self.inner.endpoint.lane.send_counters()
    }

    /// Returns when the writer last passed data to the kernel, without repairs sent by receiving
    /// threads.
    ///
    /// `None` before the first send, and unless
    /// [`ParticipantSettings::stage_times`](crate::ParticipantSettings::stage_times) is set.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>) -> weir_dds::Result<()> {
    /// if let Some(times) = writer.last_send_times() {
    ///     println!("send call: {} ns", times.returned_ns - times.called_ns);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn last_send_times(&self) -> Option<SendTimes> {
        self.inner.endpoint.lane.last_send_times().filter(|times| times.called_ns > 0)
    }

    /// Returns the protocol counters.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>, sample: &T) -> weir_dds::Result<()> {
    /// println!("{:?}", writer.protocol_counters());
    /// # Ok(())
    /// # }
    /// ```
    pub fn protocol_counters(&self) -> WriterCounters {
        self.inner.endpoint.lane.core().counters()
    }
}

impl<T> Clone for DataWriter<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), sample: PhantomData }
    }
}

impl<T> std::fmt::Debug for DataWriter<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DataWriter({})", self.guid())
    }
}
