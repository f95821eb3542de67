//! Data readers (DDS 1.4, 2.2.2.5.3).

pub(crate) mod asynchronous;
pub(crate) mod conditions;
pub(crate) mod listening;
pub(crate) mod serialized;
mod setup;

use std::any::TypeId;
use std::marker::PhantomData;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::MutexGuard;
use weir_cdr::DdsType;
use weir_rtps::block::Block;
use weir_rtps::participant::LocalEndpoint;
use weir_rtps::reader::{ReaderConfig, ReaderCore, ReaderCounters, SampleSelection, States};
use weir_rtps::writer::ChangeKind;
use weir_wire::Guid;

use self::setup::{check_qos, core_config};
use crate::clock;
use crate::driver::endpoints::Own;
use crate::driver::endpoints::ReaderEndpoint;
use crate::driver::observers::Cause;
use crate::driver::shared::Driver;
use crate::driver::start::Handle;
use crate::error::{DdsError, Result};
use crate::key::instance_of;
use crate::listener::DataReaderListener;
use crate::qos::DataReaderQos;
use crate::random;
use crate::sample::{InstanceHandle, Sample, SampleInfo, SampleSeq};
use crate::shared_payload::BlockMemory;
use crate::stage_times::ReceiveTimes;
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, LivelinessChangedStatus, MatchedStatus, SampleCountStatus,
    SampleRejectedStatus,
};
use crate::subscriber::Subscriber;
use crate::topic::Topic;
use crate::upper_listeners::Untyped;
use crate::wait_strategy::WaitStrategy;

/// Reads samples of a topic.
///
/// `take` calls remove samples from the reader, `read` calls leave them there and mark them as
/// read. None of them waits for data: [`DataReader::wait_for_data`] does. All of them first send
/// the samples that the participant's writers hold back. Samples that cannot be decoded
/// are skipped and counted in [`DataReader::sample_rejected_status`].
///
/// This is a handle: clones refer to the same reader, which is deleted with the last of them.
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
/// let subscriber = participant.create_subscriber();
/// let reader = subscriber.create_datareader(&topic, DataReaderQos::default().reliable().keep_all())?;
/// while reader.wait_for_data(Duration::from_secs(10)).is_ok() {
///     for sample in reader.take(100) {
///         println!("{} from {:?}", sample.data.text, sample.info.publication_handle);
///     }
/// }
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
pub struct DataReader<T> {
    inner: Arc<Inner>,
    sample: PhantomData<fn() -> T>,
}

/// A reader whose sample type is not known to the compiler: see [`DataReader::typed`].
pub type AnyDataReader = DataReader<Untyped>;

/// What the handles of a reader share.
pub(crate) struct Inner {
    pub(crate) handle: Arc<Handle>,
    pub(crate) endpoint: Arc<ReaderEndpoint>,
    type_id: TypeId,
    type_name: &'static str,
    /// The multicast group that the reader joined.
    group: Option<SocketAddrV4>,
}

impl<T: DdsType> DataReader<T> {
    pub(crate) fn new(
        subscriber: &Subscriber,
        topic: &Topic<T>,
        qos: DataReaderQos,
        listener: Option<Arc<dyn DataReaderListener<T>>>,
    ) -> Result<Self> {
        check_qos(&qos)?;
        let Subscriber { handle, state } = subscriber;
        let driver = &handle.driver;
        driver.check()?;
        let group = driver.group_for(qos.multicast)?;
        driver.join(group)?;
        let entity = driver.new_reader_id(T::HAS_KEY);
        let config = ReaderConfig {
            ecn: driver.ecn.clone(),
            ..core_config::<T>(driver.guid(entity), &qos, random::secret()?)
        };
        let endpoint = Arc::new(ReaderEndpoint::new(entity, ReaderCore::new(config), &topic.state, state));
        driver.routes.change(|table| _ = table.readers.insert(entity, Arc::clone(&endpoint)));
        let reader = Self::of_endpoint(handle, endpoint, group);
        reader.set_listener(listener);
        if state.is_tracked.load(Ordering::SeqCst) {
            reader.inner.endpoint.watch();
        }
        let local = LocalEndpoint {
            entity,
            topic: topic.name().to_owned(),
            type_name: T::TYPE_NAME.to_owned(),
            qos: qos.policies,
            unicast: Vec::new(),
            multicast: group,
        };
        driver
            .with_discovery(|core, now| core.add_reader(now, local))
            .map_err(|error| DdsError::BadParameter(error.to_string()))?;
        driver.check()?;
        Ok(reader)
    }

    /// Makes the handle of a reader that exists.
    pub(crate) fn of_endpoint(
        handle: &Arc<Handle>,
        endpoint: Arc<ReaderEndpoint>,
        group: Option<SocketAddrV4>,
    ) -> Self {
        let (type_id, type_name) = (TypeId::of::<T>(), T::TYPE_NAME);
        let inner = Arc::new(Inner { handle: Arc::clone(handle), endpoint, type_id, type_name, group });
        // Nothing else sets it.
        let _ = inner.endpoint.owner.set(Arc::downgrade(&inner));
        Self::of(inner)
    }

    /// Removes and returns up to `max` samples, oldest first.
    pub fn take(&self, max: usize) -> Vec<Sample<T>> {
        self.collect(max, SampleSelection::default(), true)
    }

    /// Returns up to `max` samples, oldest first, and marks them as read.
    pub fn read(&self, max: usize) -> Vec<Sample<T>> {
        self.collect(max, SampleSelection::default(), false)
    }

    /// Returns up to `max` unread samples, oldest first, and marks them as read.
    pub fn read_unread(&self, max: usize) -> Vec<Sample<T>> {
        self.collect(max, SampleSelection { states: States::NOT_READ, instance: None }, false)
    }

    /// Removes and returns up to `max` samples in these states, oldest first.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// use weir_dds::States;
    ///
    /// # fn f<T: DdsType>(reader: &DataReader<T>) {
    /// let unread = reader.take_w_states(10, States::NOT_READ);
    /// # }
    /// ```
    pub fn take_w_states(&self, max: usize, states: States) -> Vec<Sample<T>> {
        self.collect(max, SampleSelection { states, instance: None }, true)
    }

    /// Returns up to `max` samples in these states and marks them as read.
    ///
    /// The oldest are first.
    pub fn read_w_states(&self, max: usize, states: States) -> Vec<Sample<T>> {
        self.collect(max, SampleSelection { states, instance: None }, false)
    }

    /// Removes and returns up to `max` samples of one instance, oldest first.
    ///
    /// Returns none if the reader never received a sample of the instance.
    pub fn take_instance(&self, handle: InstanceHandle, max: usize, states: States) -> Vec<Sample<T>> {
        self.collect_of(max, true, |core| in_instance(states, core.find_instance(handle.0)))
    }

    /// Returns up to `max` samples of one instance and marks them as read.
    ///
    /// The oldest are first.
    pub fn read_instance(&self, handle: InstanceHandle, max: usize, states: States) -> Vec<Sample<T>> {
        self.collect_of(max, false, |core| in_instance(states, core.find_instance(handle.0)))
    }

    /// Removes and returns up to `max` samples of the next instance after `after`.
    ///
    /// `None` starts with the first instance.
    ///
    /// Only instances that have samples in these states count. The order of instances is the
    /// reader's own. `after` may be an instance without writers and samples, if it is the one that
    /// was returned last.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// use weir_dds::States;
    ///
    /// # fn f<T: DdsType>(reader: &DataReader<T>) {
    /// let mut previous = None;
    /// loop {
    ///     let samples = reader.take_next_instance(previous, 100, States::default());
    ///     let Some(first) = samples.first() else { break };
    ///     previous = Some(first.info.instance_handle);
    /// }
    /// # }
    /// ```
    pub fn take_next_instance(
        &self,
        after: Option<InstanceHandle>,
        max: usize,
        states: States,
    ) -> Vec<Sample<T>> {
        self.collect_next_instance(after, max, states, true)
    }

    /// Returns up to `max` samples of the next instance and marks them as read.
    ///
    /// Otherwise as [`DataReader::take_next_instance`].
    pub fn read_next_instance(
        &self,
        after: Option<InstanceHandle>,
        max: usize,
        states: States,
    ) -> Vec<Sample<T>> {
        self.collect_next_instance(after, max, states, false)
    }

    /// Returns the handle of a sample's instance.
    ///
    /// `None` if the reader has not received a sample of it.
    ///
    /// # Errors
    /// [`DdsError::Encoding`] if the type does not allow the key.
    pub fn lookup_instance(&self, sample: &T) -> Result<Option<InstanceHandle>> {
        let instance = instance_of(sample)?;
        let is_known = self.inner.endpoint.core.lock().find_instance(instance).is_some();
        Ok(is_known.then_some(InstanceHandle(instance)))
    }

    /// Returns a sample with the key members of an instance.
    ///
    /// The other members have their defaults.
    ///
    /// `None` if the instance is unknown, or if only its key hash was ever received.
    pub fn key_value(&self, handle: InstanceHandle) -> Option<T> {
        let core = self.inner.endpoint.core.lock();
        let payload = core.instance_key(core.find_instance(handle.0)?)?;
        weir_cdr::from_key_payload(payload).ok()
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
    ///     samples.iter().filter(|sample| sample.info.valid_data).for_each(|sample| consume(&sample.data));
    /// }
    /// # }
    /// ```
    pub fn take_into(&self, samples: &mut SampleSeq<T>, max: usize) -> usize {
        self.access(samples, max, true, |_| Some(SampleSelection::default()))
    }

    /// Removes the oldest sample into `sample`, reusing its memory.
    ///
    /// `None` if there is no sample.
    pub fn take_next_sample(&self, sample: &mut T) -> Option<SampleInfo> {
        self.inner.driver().flush_queued();
        let mut core = self.inner.endpoint.core.lock();
        if core.has_expiring() {
            core.expire(clock::now());
        }
        let mut info = None;
        // Samples that cannot be decoded are skipped.
        while core.take_next(|raw| {
            info = decode(raw.kind, raw.payload, raw.block, sample).ok().map(|()| SampleInfo::new(&raw));
        }) {
            if info.is_some() {
                break;
            }
            self.inner.endpoint.malformed.fetch_add(1, Ordering::Relaxed);
        }
        if core.has_errand() {
            self.inner.after_access(core);
        }
        info
    }

    fn collect(&self, max: usize, selection: SampleSelection, remove: bool) -> Vec<Sample<T>> {
        self.collect_of(max, remove, |_| Some(selection))
    }

    fn collect_next_instance(
        &self,
        after: Option<InstanceHandle>,
        max: usize,
        states: States,
        remove: bool,
    ) -> Vec<Sample<T>> {
        let after = after.map(|handle| handle.0);
        self.collect_of(max, remove, |core| in_instance(states, core.next_instance(after, states)))
    }

    fn collect_of(
        &self,
        max: usize,
        remove: bool,
        select: impl FnOnce(&mut ReaderCore) -> Option<SampleSelection>,
    ) -> Vec<Sample<T>> {
        let mut samples = SampleSeq::new();
        self.access(&mut samples, max, remove, select);
        samples.into_vec()
    }

    /// Selects and accesses under one lock: the selected instance could be gone a moment later.
    fn access(
        &self,
        samples: &mut SampleSeq<T>,
        max: usize,
        remove: bool,
        select: impl FnOnce(&mut ReaderCore) -> Option<SampleSelection>,
    ) -> usize {
        self.inner.driver().flush_queued();
        samples.clear();
        let mut malformed = 0;
        {
            let mut core = self.inner.endpoint.core.lock();
            if core.has_expiring() {
                core.expire(clock::now());
            }
            let Some(selection) = select(&mut core) else { return 0 };
            core.access(max, selection, remove, |raw| {
                let value = samples.slot(SampleInfo::new(&raw));
                let is_decoded = decode(raw.kind, raw.payload, raw.block, value).is_ok();
                if is_decoded {
                    samples.keep();
                } else {
                    malformed += 1;
                }
                is_decoded
            });
            if core.has_errand() {
                self.inner.after_access(core);
            }
        }
        if malformed > 0 {
            self.inner.endpoint.malformed.fetch_add(malformed, Ordering::Relaxed);
        }
        samples.len()
    }
}

impl<T> DataReader<T> {
    /// Waits until there is an unread sample.
    ///
    /// Waits as [`ParticipantSettings::wait`](crate::ParticipantSettings::wait) says. Meanwhile the
    /// calling thread receives for all endpoints of the participant.
    ///
    /// # Errors
    /// - [`DdsError::Timeout`]: there is none.
    /// - [`DdsError::ThreadFailed`]: the participant has failed, and there is none. Returns without waiting for the
    ///   timeout.
    pub fn wait_for_data(&self, timeout: Duration) -> Result<()> {
        self.wait_for_data_by(timeout, self.inner.driver().wait)
    }

    /// As [`DataReader::wait_for_data`], with a wait strategy for this call.
    ///
    /// # Errors
    /// As [`DataReader::wait_for_data`].
    pub fn wait_for_data_by(&self, timeout: Duration, strategy: WaitStrategy) -> Result<()> {
        let driver = self.inner.driver();
        if driver.receive_until_unread(&self.inner.endpoint, clock::now() + timeout, strategy) {
            return Ok(());
        }
        driver.check()?;
        Err(DdsError::Timeout { what: "the arrival of a sample", waited: timeout, hint: String::new() })
    }

    /// Waits until at least `count` writers are matched.
    ///
    /// # Errors
    /// [`DdsError::Timeout`].
    pub fn wait_for_publications(&self, count: u32, timeout: Duration) -> Result<()> {
        let matched = &self.inner.endpoint.matched;
        let driver = self.inner.driver();
        let is_done = || driver.has_failed() || matched.lock().current_count >= count;
        let is_done = driver.discovery.wait_until(clock::now() + timeout, is_done);
        driver.check()?;
        if is_done {
            return Ok(());
        }
        let hint = format!(": {} of {count} writers are matched", matched.lock().current_count);
        Err(DdsError::Timeout { what: "a match with writers", waited: timeout, hint })
    }

    /// Returns how many writers are matched. Resets the status's changes to zero.
    pub fn subscription_matched_status(&self) -> MatchedStatus {
        let status = self.inner.endpoint.matched.lock().read();
        self.inner.note_status_read();
        status
    }

    /// Returns the GUIDs of the matched writers (DDS 1.4, 2.2.2.5.3.34).
    pub fn matched_publications(&self) -> Vec<Guid> {
        self.inner.endpoint.core.lock().matched().collect()
    }

    /// Returns which writers have incompatible QoS.
    ///
    /// Resets the status's changes to zero.
    pub fn requested_incompatible_qos_status(&self) -> IncompatibleQosStatus {
        let status = self.inner.endpoint.incompatible.lock().read();
        self.inner.note_status_read();
        status
    }

    /// Returns how many matched writers are alive.
    ///
    /// Resets the status's changes to zero.
    pub fn liveliness_changed_status(&self) -> LivelinessChangedStatus {
        let status = self.inner.endpoint.core.lock().take_liveliness_changed();
        self.inner.note_status_read();
        status
    }

    /// Returns which instances were not written within the requested deadline.
    ///
    /// Resets the status's change to zero.
    pub fn requested_deadline_missed_status(&self) -> DeadlineMissedStatus {
        let missed = self.inner.endpoint.core.lock().take_deadline_missed();
        self.inner.note_status_read();
        DeadlineMissedStatus::new(missed, InstanceHandle)
    }

    /// Returns how many samples will never arrive.
    ///
    /// Resets the status's changes to zero.
    pub fn sample_lost_status(&self) -> SampleCountStatus {
        let total = self.protocol_counters().samples_lost;
        let status = self.inner.endpoint.lost.lock().read(total);
        self.inner.note_status_read();
        status
    }

    /// Returns how many samples were rejected: over a limit, or not of the type.
    ///
    /// A reliable writer sends a sample that was over a limit again, once there is room. Until then
    /// it counts once. Resets the status's changes to zero.
    pub fn sample_rejected_status(&self) -> SampleRejectedStatus {
        let endpoint = &self.inner.endpoint;
        let (rejected, last) = {
            let core = endpoint.core.lock();
            let counters = core.counters();
            (counters.samples_rejected + counters.samples_refused, core.last_rejection())
        };
        let status =
            endpoint.rejected.lock().read(rejected, endpoint.malformed.load(Ordering::Relaxed), last);
        self.inner.note_status_read();
        status
    }

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
    pub fn topic_name(&self) -> &str {
        self.inner.endpoint.topic.name()
    }

    /// Returns the name of the sample type.
    pub fn type_name(&self) -> &'static str {
        self.inner.type_name
    }

    /// Returns the subscriber.
    pub fn subscriber(&self) -> Subscriber {
        let Inner { handle, endpoint, .. } = &*self.inner;
        Subscriber { handle: Arc::clone(handle), state: Arc::clone(&endpoint.group) }
    }

    /// Returns the reader's GUID.
    pub fn guid(&self) -> Guid {
        self.inner.driver().guid(self.inner.endpoint.entity)
    }

    /// Returns the number of samples that can be taken.
    pub fn available(&self) -> usize {
        self.inner.endpoint.core.lock().available()
    }

    /// Returns when samples were last received while unread samples were waiting.
    ///
    /// `None` before the first time, and unless
    /// [`ParticipantSettings::stage_times`](crate::ParticipantSettings::stage_times) is set.
    pub fn last_receive_times(&self) -> Option<ReceiveTimes> {
        *self.inner.endpoint.times.lock()
    }

    /// Returns the error that all calls with a result report since a thread of the engine panicked; `None` if none has.
    ///
    /// Samples that arrived before can still be taken.
    pub fn failure(&self) -> Option<DdsError> {
        self.inner.driver().failure()
    }

    /// Returns how many calls of the listener panicked. The panic hook has reported each on standard error.
    pub fn listener_panics(&self) -> u64 {
        self.inner.endpoint.listener_panics.count()
    }

    /// Returns the protocol counters.
    pub fn protocol_counters(&self) -> ReaderCounters {
        self.inner.endpoint.core.lock().counters()
    }
}

impl Inner {
    pub(crate) fn driver(&self) -> &Driver {
        &self.handle.driver
    }

    /// Does what follows from an access to the samples.
    #[cold]
    fn after_access(&self, core: MutexGuard<'_, ReaderCore>) {
        let core = if core.is_request_due() {
            self.driver().request_refused(core);
            self.endpoint.core.lock()
        } else {
            core
        };
        if self.endpoint.watching.is_on() {
            self.endpoint.note_access(core);
        }
    }

    /// Notifies wait sets that a status was read.
    fn note_status_read(&self) {
        self.endpoint.watching.observers.notify(Cause::Access);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let entity = self.endpoint.entity;
        self.endpoint.set_listener(Own::default());
        self.driver().with_discovery(|core, now| core.remove_reader(now, entity));
        self.driver().routes.change(|table| table.forget_reader(entity));
        self.driver().leave(self.group);
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

/// Selects the samples of an instance, if there is one.
fn in_instance(states: States, instance: Option<u32>) -> Option<SampleSelection> {
    instance.map(|_| SampleSelection { states, instance })
}

/// Decodes a sample into `value`: all of it, or only the key.
///
/// Takes the fields of the raw sample one by one: passed by reference they would go through memory,
/// with a store-forwarding stall.
#[inline]
fn decode<T: DdsType>(
    kind: ChangeKind,
    payload: &[u8],
    block: Option<&Arc<Block>>,
    value: &mut T,
) -> std::result::Result<(), weir_cdr::CdrError> {
    if kind == ChangeKind::Alive {
        return match block {
            None => weir_cdr::from_payload_into(payload, value),
            Some(block) => weir_cdr::from_shared_payload_into(payload, &BlockMemory(block), value),
        };
    }
    *value = match payload {
        [] => T::default(),
        payload => weir_cdr::from_key_payload(payload)?,
    };
    Ok(())
}
