//! Data readers (DDS 1.4, 2.2.2.5.3).

pub(crate) mod asynchronous;
pub(crate) mod conditions;
pub(crate) mod iteration;
pub(crate) mod listening;
mod policies;
mod query;
pub(crate) mod selection;
pub(crate) mod serialized;
mod setup;
mod statuses;
mod waiting;

use std::any::TypeId;
use std::marker::PhantomData;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard, ReentrantMutex};
use weir_cdr::DdsType;
use weir_rtps::reader::{RawSample, ReaderConfig, ReaderCore, ReaderCounters, States};
use weir_rtps::sedp::EndpointKind;
use weir_wire::Guid;

use self::selection::{Selection, What};
pub(crate) use self::setup::check_qos;
use self::setup::core_config;
use crate::clock;
use crate::content_filter::FilterState;
use crate::driver::endpoints::Own;
use crate::driver::endpoints::ReaderEndpoint;
use crate::driver::events::ReaderEvent;
use crate::driver::listeners::Call;
use crate::driver::observers::Cause;
use crate::driver::shared::Driver;
use crate::driver::start::Handle;
use crate::error::{DdsError, Result};
use crate::instance_handle::InstanceHandle;
use crate::key::instance_of;
use crate::listener::DataReaderListener;
use crate::qos::DataReaderQos;
use crate::random;
use crate::sample::{Sample, SampleSeq};
use crate::stage_times::ReceiveTimes;
use crate::subscriber::Subscriber;
use crate::topic::Topic;
use crate::upper_listeners::Untyped;

/// Reads samples of a topic.
///
/// `take` calls remove samples from the reader, `read` calls leave them there and mark them as
/// read. None of them waits for data: [`DataReader::wait_for_data`] does. All of them first send
/// the samples that the participant's writers hold back. A sample that cannot be decoded is returned
/// with its [error](Sample::error), and counted in [`DataReader::sample_rejected_status`]. They have no other error:
/// when the reader or its participant was closed or has failed, they return what had arrived before.
///
/// This is a handle: clones refer to the same reader, which ends with the last of them, or when one of them is
/// [closed](DataReader::close).
///
/// ```no_run
/// # use weir_dds::{DdsType, DomainParticipant, ParticipantSettings};
/// use std::time::Duration;
/// use weir_dds::DataReaderQos;
///
/// # #[derive(DdsType, Default)]
/// # #[dds(extensibility = "final")]
/// # struct Greeting {
/// #     text: String,
/// # }
/// # let participant = DomainParticipant::new(0, ParticipantSettings::default())?;
/// # let topic = participant.create_topic::<Greeting>("Greetings")?;
/// let subscriber = participant.create_subscriber()?;
/// let reader = subscriber.create_datareader(&topic, DataReaderQos::default().reliable().keep_all())?;
/// while reader.wait_for_data(Duration::from_secs(10)).is_ok() {
///     for sample in reader.take(100) {
///         if let Some(greeting) = sample.data() {
///             println!("{} from {}", greeting.text, sample.info.publication_handle);
///         }
///     }
/// }
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
pub struct DataReader<T> {
    inner: Arc<Inner>,
    sample: PhantomData<fn() -> T>,
}

/// A reader whose sample type is not known to the compiler: see [`DataReader::typed`].
///
/// ```no_run
/// use weir_dds::{AnyDataReader, SampleLostStatus, SubscriberListener};
///
/// struct Log;
///
/// impl SubscriberListener for Log {
///     fn on_sample_lost(&self, reader: &AnyDataReader, status: SampleLostStatus) {
///         eprintln!("{} of {} are lost", status.total_count, reader.topic_name());
///     }
/// }
/// ```
pub type AnyDataReader = DataReader<Untyped>;

/// What the handles of a reader share.
pub(crate) struct Inner {
    pub(crate) handle: Arc<Handle>,
    pub(crate) endpoint: Arc<ReaderEndpoint>,
    type_id: TypeId,
    type_name: &'static str,
    /// The multicast group that the reader joined.
    group: Option<SocketAddrV4>,
    /// The QoS as it is now. Locked after discovery.
    current: Mutex<DataReaderQos>,
    is_enabled: AtomicBool,
    /// Held while the reader is enabled, by one thread: a listener that this calls may enable it, too.
    enabling: ReentrantMutex<()>,
    /// The content filter, kept while the reader is, and the version of its parameters at creation.
    filter: Option<(Arc<FilterState>, u64)>,
}

impl<T: DdsType> DataReader<T> {
    pub(crate) fn new(
        subscriber: &Subscriber,
        topic: &Topic<T>,
        filter: Option<&Arc<FilterState>>,
        qos: DataReaderQos,
        listener: Option<Arc<dyn DataReaderListener<T>>>,
    ) -> Result<Self> {
        check_qos(&qos)?;
        let Subscriber { handle, state } = subscriber;
        let driver = &handle.driver;
        subscriber.check()?;
        topic.state.check()?;
        let mut announced = qos.announced();
        state.announced().add_to(&mut announced);
        if let Some(table) = &driver.limits {
            table.check_count("readers", driver.own_readers())?;
            table.check_endpoint(topic.state.name(), (qos.history, qos.resource_limits), T::HAS_KEY)?;
        }
        let claim = driver.claim_id::<T>(EndpointKind::Reader, &topic.state, &announced)?;
        let entity = claim.entity;
        let group = driver.group_for(qos.multicast)?;
        driver.join(group)?;
        let config = ReaderConfig {
            ecn: driver.ecn.clone(),
            presentation: state.qos.lock().presentation,
            limits: driver.limits.as_ref().map(|table| table.limits().endpoint),
            ..core_config::<T>(driver.guid(entity), &qos, random::secret()?)
        };
        let endpoint = Arc::new(ReaderEndpoint::new(entity, ReaderCore::new(config), &topic.state, state));
        subscriber.add(&endpoint);
        let filter = filter.map(|state| {
            let (property, version) = state.add_reader(&endpoint);
            driver.with_discovery(|core, _| core.prepare_content_filter(entity, property));
            (Arc::clone(state), version)
        });
        driver.routes.change(|table| _ = table.readers.insert(entity, Arc::clone(&endpoint)));
        drop(claim);
        let reader = Self::of_endpoint(handle, endpoint, group, (qos, filter));
        reader.set_listener(listener);
        if state.is_tracked.load(Ordering::SeqCst) {
            reader.inner.endpoint.watch();
        }
        if state.enables_readers() {
            reader.enable()?;
        }
        driver.check()?;
        Ok(reader)
    }

    /// Makes the handle of a reader that exists.
    pub(crate) fn of_endpoint(
        handle: &Arc<Handle>,
        endpoint: Arc<ReaderEndpoint>,
        group: Option<SocketAddrV4>,
        (qos, filter): (DataReaderQos, Option<(Arc<FilterState>, u64)>),
    ) -> Self {
        let inner = Arc::new(Inner {
            handle: Arc::clone(handle),
            endpoint,
            type_id: TypeId::of::<T>(),
            type_name: T::TYPE_NAME,
            group,
            current: Mutex::new(qos),
            is_enabled: AtomicBool::new(false),
            enabling: ReentrantMutex::new(()),
            filter,
        });
        // Nothing else sets it.
        let _ = inner.endpoint.owner.set(Arc::downgrade(&inner));
        Self::of(inner)
    }

    /// Removes and returns up to `max` samples, oldest first.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(reader: &DataReader<Reading>) -> weir_dds::Result<()> {
    /// for sample in reader.take(100) {
    ///     if let Some(reading) = sample.data() {
    ///         println!("{} measures {}", reading.sensor, reading.celsius);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn take(&self, max: usize) -> Vec<Sample<T>> {
        self.select().max(max).take()
    }

    /// Returns up to `max` samples, oldest first, and marks them as read.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// let read = reader.read(10);
    /// // They are still there.
    /// assert!(reader.available() >= read.len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn read(&self, max: usize) -> Vec<Sample<T>> {
        self.select().max(max).read()
    }

    /// Selects samples to take or read: of an instance, in some states.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// use weir_dds::States;
    ///
    /// # fn f<T: DdsType>(reader: &DataReader<T>) {
    /// let unread = reader.select().states(States::NOT_READ).max(10).take();
    /// # let _ = unread;
    /// # }
    /// ```
    pub fn select(&self) -> Selection<'_, T> {
        Selection::new(self)
    }

    /// Returns the handle of a sample's instance.
    ///
    /// Only the key members of `sample` are used. `None` if the reader has not received a sample of the instance, or
    /// if the topic has no key.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(reader: &DataReader<Reading>) -> weir_dds::Result<()> {
    /// if let Some(instance) = reader.lookup_instance(&Reading { sensor: 7, ..Reading::default() })? {
    ///     println!("{:?}", reader.select().instance(instance).take());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`DdsError::Encoding`]: the type does not allow the key, such as a string longer than its bound.
    pub fn lookup_instance(&self, sample: &T) -> Result<Option<InstanceHandle>> {
        if !T::HAS_KEY {
            return Ok(None);
        }
        let instance = instance_of(sample)?;
        let is_known = self.inner.endpoint.core.lock().find_instance(instance).is_some();
        Ok(is_known.then_some(InstanceHandle(instance)))
    }

    /// Returns a sample with the key members of an instance.
    ///
    /// The other members have their defaults.
    ///
    /// `None` if the instance is unknown, or if only its key hash was ever received.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(reader: &DataReader<Reading>) -> weir_dds::Result<()> {
    /// for sample in reader.take(100) {
    ///     if let Some(key) = reader.key_value(sample.info.instance_handle) {
    ///         println!("sensor {} is {:?}", key.sensor, sample.info.instance_state);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn key_value(&self, handle: InstanceHandle) -> Option<T> {
        let core = self.inner.endpoint.core.lock();
        let payload = core.instance_key(core.find_instance(handle.0)?)?;
        weir_cdr::from_converted_key_payload(payload).ok()
    }

    /// Removes up to `max` samples into reusable memory and returns their number.
    ///
    /// After warm-up this allocates nothing. It locks the reader once for all samples.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// use weir_dds::SampleSeq;
    ///
    /// # fn f<T: DdsType>(reader: &DataReader<T>, consume: fn(&T)) {
    /// let mut samples = SampleSeq::new();
    /// while reader.take_into(&mut samples, 100) > 0 {
    ///     samples.data().for_each(consume);
    /// }
    /// # }
    /// ```
    pub fn take_into(&self, samples: &mut SampleSeq<T>, max: usize) -> usize {
        self.select().max(max).take_into(samples)
    }

    /// Removes the oldest sample into `sample`, reusing its memory. Returns `false` if there is no sample.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// use weir_dds::Sample;
    ///
    /// # fn f<T: DdsType>(reader: &DataReader<T>, consume: fn(&T)) {
    /// let mut sample = Sample::default();
    /// while reader.take_next_sample(&mut sample) {
    ///     sample.data().into_iter().for_each(consume);
    /// }
    /// # }
    /// ```
    pub fn take_next_sample(&self, sample: &mut Sample<T>) -> bool {
        self.inner.driver().flush_queued();
        let mut core = self.inner.endpoint.core.lock();
        if core.has_policies() {
            if core.has_access_order() {
                drop(core);
                return self.take_next_by_policies(sample);
            }
            if core.has_expiring() {
                core.expire(clock::now());
            }
        }
        let mut is_malformed = false;
        let is_taken = core.take_next(|raw| is_malformed = !sample.fill(raw) && !raw.was_read);
        if core.has_errand() {
            self.inner.after_access(core);
        } else {
            drop(core);
        }
        if is_malformed {
            self.note_malformed(1);
        }
        is_taken
    }

    /// Copies the oldest unread sample into `sample`, reusing its memory, and marks it as read.
    ///
    /// Returns `false` if there is no unread sample.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// let mut sample = weir_dds::Sample::default();
    /// while reader.read_next_sample(&mut sample) {
    ///     println!("{:?}", sample.data());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_next_sample(&self, sample: &mut Sample<T>) -> bool {
        let unread = What { max: 1, states: States::NOT_READ, ..What::ALL };
        self.access_each(unread, false, |raw| sample.fill(raw)) > 0
    }

    /// [`DataReader::take_next_sample`] in the order of the policies.
    #[cold]
    fn take_next_by_policies(&self, sample: &mut Sample<T>) -> bool {
        self.access_each(What { max: 1, ..What::ALL }, true, |raw| sample.fill(raw)) > 0
    }

    /// Selects and accesses under one lock: the selected instance could be gone a moment later. `fill` returns whether
    /// a sample can be decoded. Returns the number of samples.
    #[inline]
    fn access_each(&self, what: What, remove: bool, mut fill: impl FnMut(RawSample<'_>) -> bool) -> usize {
        self.inner.driver().flush_queued();
        let mut malformed = 0;
        let core = self.inner.endpoint.core.lock();
        let mut core = if core.has_policies() { self.inner.access_by_policies(core) } else { core };
        // An access that finds no instance is one, too: expired samples may have been removed.
        let count = what.resolve(&mut core).map_or(0, |selection| {
            core.access(what.max, selection, remove, |raw| {
                // Counted once, however often it is read.
                malformed += u64::from(!fill(raw) && !raw.was_read);
                true
            })
        });
        if core.has_errand() {
            self.inner.after_access(core);
        } else {
            drop(core);
        }
        if malformed > 0 {
            self.note_malformed(malformed);
        }
        count
    }

    /// Counts samples that cannot be decoded, which is news of SAMPLE_REJECTED. No lock may be held.
    #[cold]
    fn note_malformed(&self, count: u64) {
        let endpoint = &self.inner.endpoint;
        endpoint.malformed.fetch_add(count, Ordering::Relaxed);
        self.inner.driver().listeners.call([Call::Reader(Arc::clone(endpoint), ReaderEvent::SampleRejected)]);
    }
}

impl<T> DataReader<T> {
    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    pub(crate) fn endpoint(&self) -> &Arc<ReaderEndpoint> {
        &self.inner.endpoint
    }

    pub(crate) fn of(inner: Arc<Inner>) -> Self {
        Self { inner, sample: PhantomData }
    }

    /// Returns the same reader without its sample type.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(reader: &DataReader<Reading>) -> weir_dds::Result<()> {
    /// let any = reader.untyped();
    /// assert!(any.typed::<Reading>().is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn untyped(&self) -> AnyDataReader {
        DataReader::of(Arc::clone(&self.inner))
    }

    /// Returns the same reader with its sample type; `None` if it is another one.
    ///
    /// ```no_run
    /// # use weir_dds::{AnyDataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &AnyDataReader) {
    /// if let Some(reader) = reader.typed::<T>() {
    ///     println!("{:?}", reader.take(10));
    /// }
    /// # }
    /// ```
    pub fn typed<U: 'static>(&self) -> Option<DataReader<U>> {
        (self.inner.type_id == TypeId::of::<U>()).then(|| DataReader::of(Arc::clone(&self.inner)))
    }

    /// Returns the name of the topic.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// println!("reads {}", reader.topic_name());
    /// # Ok(())
    /// # }
    /// ```
    pub fn topic_name(&self) -> &str {
        self.inner.endpoint.topic.name()
    }

    /// Returns the name of the sample type.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// assert_eq!(reader.type_name(), T::TYPE_NAME);
    /// # Ok(())
    /// # }
    /// ```
    pub fn type_name(&self) -> &'static str {
        self.inner.type_name
    }

    /// Returns the subscriber.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// println!("{:?}", reader.subscriber().get_qos().partition);
    /// # Ok(())
    /// # }
    /// ```
    pub fn subscriber(&self) -> Subscriber {
        let Inner { handle, endpoint, .. } = &*self.inner;
        Subscriber { handle: Arc::clone(handle), state: Arc::clone(&endpoint.group) }
    }

    /// Ends the reader, for all its handles: it leaves the network and receives no more.
    ///
    /// Samples that were received before can still be taken. Closing again does nothing.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// reader.close()?;
    /// println!("left: {:?}", reader.take(1000));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`DdsError::ThreadFailed`]: the participant has failed. The reader has ended all the same.
    pub fn close(&self) -> Result<()> {
        self.inner.close_for_all();
        self.inner.driver().check_failure()
    }

    /// Returns the reader's handle, as in
    /// [`DataWriter::matched_subscriptions`](crate::DataWriter::matched_subscriptions).
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DataWriter, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>, writer: &DataWriter<T>) {
    /// if writer.matched_subscriptions().contains(&reader.instance_handle()) {
    ///     println!("they are matched");
    /// }
    /// # }
    /// ```
    pub fn instance_handle(&self) -> InstanceHandle {
        self.guid().into()
    }

    /// Returns the reader's GUID, which identifies it on the network.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// println!("this is reader {}", reader.guid());
    /// # Ok(())
    /// # }
    /// ```
    pub fn guid(&self) -> Guid {
        self.inner.driver().guid(self.inner.endpoint.entity)
    }

    /// Returns the number of samples that can be taken.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// println!("{} samples can be taken", reader.available());
    /// # Ok(())
    /// # }
    /// ```
    pub fn available(&self) -> usize {
        self.inner.endpoint.core.lock().available()
    }

    /// Returns when samples were last received while unread samples were waiting.
    ///
    /// `None` before the first time, and unless
    /// [`ParticipantSettings::stage_times`](crate::ParticipantSettings::stage_times) is set.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// if let Some(times) = reader.last_receive_times() {
    ///     println!("{} ns from the receive call to the reader", times.sorted_ns - times.returned_ns);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn last_receive_times(&self) -> Option<ReceiveTimes> {
        *self.inner.endpoint.times.lock()
    }

    /// Returns the error that all calls with a result report since a thread of the engine panicked; `None` if none has.
    ///
    /// Samples that arrived before can still be taken.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// if let Some(error) = reader.failure() {
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
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// println!("{} calls of the listener panicked", reader.listener_panics());
    /// # Ok(())
    /// # }
    /// ```
    pub fn listener_panics(&self) -> u64 {
        self.inner.endpoint.listener_panics.count()
    }

    /// Returns the protocol counters.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// println!("{:?}", reader.protocol_counters());
    /// # Ok(())
    /// # }
    /// ```
    pub fn protocol_counters(&self) -> ReaderCounters {
        self.inner.endpoint.core.lock().counters()
    }
}

impl Inner {
    pub(crate) fn driver(&self) -> &Driver {
        &self.handle.driver
    }

    /// Prepares an access that policies decide on: expired samples are removed, and sets become accessible.
    #[cold]
    #[inline(never)]
    fn access_by_policies<'a>(&'a self, core: MutexGuard<'a, ReaderCore>) -> MutexGuard<'a, ReaderCore> {
        let mut core = match self.endpoint.shared_sets.get() {
            Some(access) => {
                // The cores of all readers are locked in turn.
                drop(core);
                access.settle();
                self.endpoint.core.lock()
            }
            None => core,
        };
        if core.has_expiring() {
            core.expire(clock::now());
        }
        core
    }

    /// Does what follows from an access to the samples.
    #[cold]
    fn after_access(&self, mut core: MutexGuard<'_, ReaderCore>) {
        let has_late_values = core.take_late_values();
        let core = if core.is_request_due() {
            self.driver().request_refused(core);
            self.endpoint.core.lock()
        } else {
            core
        };
        if self.endpoint.watching.is_on() {
            self.endpoint.note_access(core, has_late_values);
        } else {
            drop(core);
        }
        if has_late_values {
            self.driver().announce_late(&self.endpoint);
        }
    }

    /// Notifies wait sets that a status was read.
    fn note_status_read(&self) {
        self.endpoint.watching.observers.notify(Cause::Access);
    }
}

impl Inner {
    /// Ends the reader. Does nothing the second time.
    pub(crate) fn close(&self) {
        if self.endpoint.is_closed.swap(true, Ordering::SeqCst) {
            return;
        }
        let entity = self.endpoint.entity;
        self.endpoint.set_listener(Own::default());
        self.driver().with_discovery(|core, now| core.remove_reader(now, entity));
        self.driver().routes.change(|table| table.forget_reader(entity));
        self.driver().leave(self.group);
        // Its samples do not count for DATA_ON_READERS any more.
        self.endpoint.group.observers.notify(Cause::Access);
        if let Some(access) = self.endpoint.shared_sets.get() {
            access.note_closed();
            self.driver().announce_end();
        }
    }
}

impl Inner {
    /// Ends the reader while there are handles to it, and wakes the tasks and wait sets that wait for it.
    pub(crate) fn close_for_all(&self) {
        self.close();
        self.endpoint.wake_watching();
        self.driver().announce_end();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
        self.endpoint.end_watching();
    }
}

impl<T> Clone for DataReader<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), sample: PhantomData }
    }
}

impl<T> std::fmt::Debug for DataReader<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DataReader({})", self.guid())
    }
}
