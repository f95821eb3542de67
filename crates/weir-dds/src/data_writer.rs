//! Writing (DDS 1.4 §2.2.2.4.2). From `write` to the system call on the caller's thread.

pub(crate) mod loan;
mod pieces;
mod sending;
mod serialized;

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use weir_cdr::{CdrWriter, DdsType, Encoding, Endianness};
use weir_rtps::config;
use weir_rtps::participant::LocalEndpoint;
use weir_rtps::qos::{Durability, History, LivelinessKind, Reliability};
use weir_rtps::time::Time;
use weir_rtps::writer::{
    Change, ChangeKind, Coalescing as CoreCoalescing, LonePayload, WriterConfig, WriterCore, WriterCounters,
};
use weir_wire::{Guid, SequenceNumber, Timestamp};

use self::sending::OCTETS_APART_MIN;
use crate::clock;
use crate::driver::Driver;
use crate::driver::endpoints::WriterEndpoint;
use crate::driver::publishing::Publishing;
use crate::driver::transport::SendCounters;
use crate::error::{DdsError, Result};
use crate::listener::{DataWriterListener, WriterEvent};
use crate::participant::Handle;
use crate::qos::{Coalescing, DataRepresentation, DataWriterQos, PublishMode};
use crate::random;
use crate::sample::InstanceHandle;
use crate::stage_times::SendTimes;
use crate::status::{IncompatibleQosStatus, LivelinessLostStatus, MatchedStatus};
use crate::topic::Topic;

/// Writes samples of a topic. A handle: clones mean the same writer, which is gone with the last of them.
pub struct DataWriter<T> {
    inner: Arc<Inner>,
    sample: PhantomData<fn(T)>,
}

struct Inner {
    handle: Arc<Handle>,
    endpoint: Arc<WriterEndpoint>,
    /// The thread that publishes, if there is one.
    publisher: Option<JoinHandle<()>>,
    qos: DataWriterQos,
    /// Of the representation that the QoS offers.
    encoding: Encoding,
    /// Instances that were registered, with the payloads that name them.
    registered: Mutex<HashMap<InstanceHandle, Box<[u8]>, RandomState>>,
    /// Takes the delimiters out of a payload that names an instance.
    undelimited_key: fn(&[u8]) -> core::result::Result<Vec<u8>, weir_cdr::CdrError>,
}

impl<T: DdsType> DataWriter<T> {
    pub(crate) fn new(handle: &Arc<Handle>, topic: &Topic<T>, qos: DataWriterQos) -> Result<Self> {
        let encoding = check_qos(&qos)?;
        let driver = &handle.driver;
        let entity = driver.new_writer_id(T::HAS_KEY);
        let endpoint = Arc::new(WriterEndpoint::new(
            entity,
            WriterCore::new(core_config(driver.guid(entity), &qos, random::secret()?)),
            qos.policies.liveliness,
            qos.multicast,
            (qos.publish_mode == PublishMode::Asynchronous).then(Publishing::default),
        ));
        if driver.keeps_times {
            endpoint.keep_times();
        }
        let publisher = driver.start_publishing(&endpoint)?;
        driver.routes.change(|table| _ = table.writers.insert(entity, Arc::clone(&endpoint)));
        let inner = Arc::new(Inner {
            handle: Arc::clone(handle),
            endpoint,
            publisher,
            qos,
            encoding,
            registered: Mutex::default(),
            undelimited_key: weir_cdr::undelimited_key_payload::<T>,
        });
        let local = LocalEndpoint {
            entity,
            topic: topic.name().to_owned(),
            type_name: T::TYPE_NAME.to_owned(),
            qos: inner.qos.policies.clone(),
            unicast: Vec::new(),
            multicast: None,
        };
        driver
            .with_discovery(|core, now| core.add_writer(now, local))
            .map_err(|error| DdsError::BadParameter(error.to_string()))?;
        Ok(Self { inner, sample: PhantomData })
    }

    /// Writes a sample, stamped with the time of the call.
    ///
    /// Returns when the sample was given to the kernel, or lies in a burst that will be within
    /// [`Coalescing::Automatic`]'s `delay_max`, or in a batch. A reliable writer that keeps all waits up to
    /// `max_blocking_time` for room when readers have not acknowledged earlier samples. A sample that is larger than
    /// half of a reader's socket buffer leaves in parts: to reliable readers as they make room, to best-effort readers
    /// with pauses between, of which the calling thread sleeps through all (6 ms for 1 MB where buffers have the stock
    /// size of Linux).
    ///
    /// A writer that publishes [asynchronously](PublishMode::Asynchronous) returns when the sample is in its history.
    ///
    /// # Errors
    /// [`DdsError::Timeout`] when there was no room in time; the sample was not written.
    /// [`DdsError::OutOfResources`] when a limit of [`ResourceLimits`](crate::ResourceLimits) is reached and waiting
    /// would not help: for one instance too many, or when what is kept for late readers fills the history.
    /// [`DdsError::BadParameter`] when it is longer than 1 GiB or than `max_bytes`, [`DdsError::Encoding`] when its
    /// type does not allow the value.
    #[inline]
    pub fn write(&self, sample: &T) -> Result<()> {
        self.write_at(sample, None)
    }

    /// Writes a sample with a time stamp of the caller's.
    ///
    /// # Errors
    /// As [`DataWriter::write`].
    pub fn write_w_timestamp(&self, sample: &T, timestamp: SystemTime) -> Result<()> {
        self.write_at(sample, Some(timestamp_of(timestamp)))
    }

    /// Says that an instance is no more. Only the key members of `sample` matter.
    ///
    /// # Errors
    /// As [`DataWriter::write`]; [`DdsError::BadParameter`] for a topic without a key.
    pub fn dispose(&self, sample: &T) -> Result<()> {
        let (handle, payload) = self.key_of(sample)?;
        self.change(handle, &payload, ChangeKind::Disposed)
    }

    /// [`DataWriter::dispose`] of an instance that was registered.
    ///
    /// # Errors
    /// As [`DataWriter::write`]; [`DdsError::BadParameter`] when the instance is not registered.
    pub fn dispose_by_handle(&self, handle: InstanceHandle) -> Result<()> {
        let payload = self.registered(handle)?;
        self.change(handle, &payload, ChangeKind::Disposed)
    }

    /// Names an instance that will be written, so that it can be ended by its handle, and is ended with the writer
    /// at the latest. Only the key members of `sample` matter; nothing is sent, and writing needs no registration.
    ///
    /// # Errors
    /// [`DdsError::BadParameter`] for a topic without a key, [`DdsError::OutOfResources`] for one instance more than
    /// `max_instances`, [`DdsError::Encoding`] when the type does not allow the key.
    pub fn register_instance(&self, sample: &T) -> Result<InstanceHandle> {
        let (handle, payload) = self.key_of(sample)?;
        let mut registered = self.inner.registered.lock();
        if registered.len() >= config::INSTANCES_MAX && !registered.contains_key(&handle) {
            let text = format!("{} instances are registered already", config::INSTANCES_MAX);
            return Err(DdsError::OutOfResources(text));
        }
        let known = self.inner.endpoint.core.lock().register_instance(handle.0);
        known.map_err(|refused| DdsError::OutOfResources(refused.to_string()))?;
        registered.insert(handle, payload.into_boxed_slice());
        Ok(handle)
    }

    /// A sample with the key members of an instance that is registered, the others at their defaults.
    pub fn key_value(&self, handle: InstanceHandle) -> Option<T> {
        let payload = self.registered(handle).ok()?;
        weir_cdr::from_key_payload(&payload).ok()
    }

    /// Says that this writer writes an instance no more, and with
    /// [`DataWriterQos::autodispose_unregistered_instances`] that it is no more. Only the key members of `sample`
    /// matter.
    ///
    /// # Errors
    /// As [`DataWriter::dispose`].
    pub fn unregister_instance(&self, sample: &T) -> Result<()> {
        let (handle, payload) = self.key_of(sample)?;
        self.unregister(handle, &payload)
    }

    /// [`DataWriter::unregister_instance`] of an instance that was registered.
    ///
    /// # Errors
    /// As [`DataWriter::dispose_by_handle`].
    pub fn unregister_by_handle(&self, handle: InstanceHandle) -> Result<()> {
        let payload = self.registered(handle)?;
        self.unregister(handle, &payload)
    }

    fn unregister(&self, handle: InstanceHandle, payload: &[u8]) -> Result<()> {
        self.change(handle, payload, self.inner.unregistration())?;
        self.inner.registered.lock().remove(&handle);
        Ok(())
    }

    fn registered(&self, handle: InstanceHandle) -> Result<Box<[u8]>> {
        let known = self.inner.registered.lock().get(&handle).cloned();
        known.ok_or_else(|| {
            DdsError::BadParameter(
                "no instance with this handle is registered: call register_instance".to_owned(),
            )
        })
    }

    /// The handle of an instance, and the payload that names it.
    fn key_of(&self, sample: &T) -> Result<(InstanceHandle, Vec<u8>)> {
        if !T::HAS_KEY {
            let text =
                format!("topics of type {} have no key, so there are no instances to speak of", T::TYPE_NAME);
            return Err(DdsError::BadParameter(text));
        }
        let encoding = self.inner.encoding;
        Ok((InstanceHandle(key_hash_of(sample, encoding)?), weir_cdr::key_payload(sample, encoding)?))
    }

    /// The handle of the instance that a sample belongs to.
    ///
    /// # Errors
    /// [`DdsError::Encoding`] when the type does not allow the key.
    pub fn lookup_instance(&self, sample: &T) -> Result<InstanceHandle> {
        Ok(InstanceHandle(key_hash_of(sample, self.inner.encoding)?))
    }

    fn write_at(&self, sample: &T, timestamp: Option<Timestamp>) -> Result<()> {
        let inner = &*self.inner;
        let len = weir_cdr::payload_len_in(sample, inner.encoding);
        let needs_key = T::HAS_KEY && inner.needs_key();
        let key = if needs_key { Some(key_hash_of(sample, inner.encoding)?) } else { None };
        if T::BULK_ELEMENT.is_some()
            && len >= OCTETS_APART_MIN
            && inner.write_large(sample, len, key, timestamp)?
        {
            return Ok(());
        }
        if timestamp.is_none() && inner.qos.batch.is_some() && !inner.endpoint.assertions.is_watched() {
            let fill =
                |payload: &mut [u8]| weir_cdr::encode_payload_in(sample, inner.encoding, payload).map(drop);
            if inner.endpoint.core.lock().extend_batch(len, key, fill)?.is_some() {
                return Ok(());
            }
        }
        let mut waiting_since = None;
        loop {
            let now = clock::now();
            let is_stamped = timestamp.is_some();
            let timestamp = timestamp.unwrap_or_else(|| inner.driver().wall_clock.timestamp(now));
            let fill =
                |payload: &mut [u8]| weir_cdr::encode_payload_in(sample, inner.encoding, payload).map(drop);
            let mut turn = inner.turn_to_write_lone();
            if turn
                .core
                .write_straight(now, (timestamp, key), LonePayload::of(len), |room| fill(room).map(|()| 0))?
            {
                inner.end_lone(turn);
                inner.note_assertion(now);
                return Ok(());
            }
            let mut turn = inner.turn_in_order(turn);
            if is_stamped {
                // The samples of a batch have one time stamp: this one, and those that follow, have others.
                turn.core.seal();
            }
            let Err(refused) = turn.core.write_with(now, (timestamp, key), len, fill)? else {
                if is_stamped {
                    turn.core.seal();
                }
                inner.send(turn, now);
                inner.note_assertion(now);
                return Ok(());
            };
            inner.flush(turn, now);
            inner.make_room(refused, (key, len), now, &mut waiting_since)?;
        }
    }

    fn change(&self, handle: InstanceHandle, payload: &[u8], kind: ChangeKind) -> Result<()> {
        let inner = &*self.inner;
        let key = Some(handle.0);
        let undelimited = inner.undelimited(payload);
        let payload = undelimited.as_deref().unwrap_or(payload);
        let mut waiting_since = None;
        loop {
            let now = clock::now();
            let timestamp = Some(inner.driver().wall_clock.timestamp(now));
            let mut turn = inner.turn();
            let result = turn.core.write_copy(now, timestamp, Change { kind, key, payload });
            inner.flush(turn, now);
            match result {
                Ok(_) => {
                    inner.note_assertion(now);
                    return Ok(());
                }
                Err(refused) => inner.make_room(refused, (key, payload.len()), now, &mut waiting_since)?,
            }
        }
    }

    /// Sets or removes the listener.
    pub fn set_listener(&self, listener: Option<Arc<dyn DataWriterListener<T>>>) {
        let me: Weak<Inner> = Arc::downgrade(&self.inner);
        if listener.is_some() {
            self.inner.handle.driver.start_calling();
        }
        self.inner.endpoint.set_listener(listener.map(|listener| {
            let call = move |event| {
                let Some(inner) = me.upgrade() else { return };
                let writer = Self { inner, sample: PhantomData };
                match event {
                    WriterEvent::Matched => {
                        listener.on_publication_matched(&writer, writer.publication_matched_status());
                    }
                    WriterEvent::Incompatible => {
                        listener
                            .on_offered_incompatible_qos(&writer, writer.offered_incompatible_qos_status());
                    }
                    WriterEvent::LivelinessLost => {
                        listener.on_liveliness_lost(&writer, writer.liveliness_lost_status());
                    }
                }
            };
            Arc::new(call) as crate::listener::WriterListener
        }));
    }
}

impl<T> DataWriter<T> {
    /// Sends what automatic coalescing and a batch hold back, or has it sent by the thread that publishes.
    pub fn flush(&self) {
        self.inner.flush(self.inner.turn(), clock::now());
    }

    /// Waits until all matched reliable readers have acknowledged everything that was written.
    ///
    /// # Errors
    /// [`DdsError::Timeout`] that names a reader which has not.
    pub fn wait_for_acknowledgments(&self, timeout: Duration) -> Result<()> {
        let inner = &*self.inner;
        let endpoint = &inner.endpoint;
        let mut turn = inner.turn();
        turn.core.request_acknowledgement();
        let last = turn.core.last_sequence_number();
        inner.flush(turn, clock::now());
        let deadline = clock::now() + timeout;
        let _waiting = endpoint.publishing.as_ref().map(Publishing::wait_for_end);
        let is_done = || {
            let core = endpoint.core.lock();
            core.is_acknowledged(last) && (endpoint.publishing.is_none() || core.is_handed_out(last))
        };
        if inner.driver().receive_until(Some(deadline), inner.driver().wait, is_done) {
            return Ok(());
        }
        Err(DdsError::Timeout {
            what: "the acknowledgement of all samples",
            waited: timeout,
            hint: inner.lagging_hint(),
        })
    }

    /// Waits until everything that was written has been given to the kernel; at once unless the writer publishes
    /// [asynchronously](PublishMode::Asynchronous).
    ///
    /// # Errors
    /// [`DdsError::Timeout`].
    pub fn wait_for_asynchronous_publishing(&self, timeout: Duration) -> Result<()> {
        let inner = &*self.inner;
        let Some(publishing) = &inner.endpoint.publishing else { return Ok(()) };
        let turn = inner.turn();
        let last = turn.core.last_sequence_number();
        inner.flush(turn, clock::now());
        if inner.wait_until_published(publishing, last, clock::now() + timeout) {
            return Ok(());
        }
        Err(DdsError::Timeout { what: "publishing", waited: timeout, hint: inner.lagging_hint() })
    }

    /// Waits until at least `count` readers are matched.
    ///
    /// # Errors
    /// [`DdsError::Timeout`].
    pub fn wait_for_subscriptions(&self, count: u32, timeout: Duration) -> Result<()> {
        let matched = &self.inner.endpoint.matched;
        let is_done = || matched.lock().current_count >= count;
        if self.inner.driver().discovery.wait_until(clock::now() + timeout, is_done) {
            return Ok(());
        }
        let hint = format!(": {} of {count} readers are matched", matched.lock().current_count);
        Err(DdsError::Timeout { what: "a match with readers", waited: timeout, hint })
    }

    /// Who is matched. Reading the status sets its changes to zero.
    pub fn publication_matched_status(&self) -> MatchedStatus {
        self.inner.endpoint.matched.lock().read()
    }

    /// Which readers do not fit. Reading the status sets its changes to zero.
    pub fn offered_incompatible_qos_status(&self) -> IncompatibleQosStatus {
        self.inner.endpoint.incompatible.lock().read()
    }

    /// How often the application has not asserted the writer within its lease. Reading the status sets its changes
    /// to zero.
    pub fn liveliness_lost_status(&self) -> LivelinessLostStatus {
        self.inner.endpoint.liveliness_lost.lock().read()
    }

    /// Says that the application is alive, when there is nothing to write; a write says so as well.
    ///
    /// For a MANUAL_BY_PARTICIPANT writer this is
    /// [`DomainParticipant::assert_liveliness`](crate::DomainParticipant::assert_liveliness); an AUTOMATIC one
    /// needs no assertion.
    pub fn assert_liveliness(&self) {
        let inner = &*self.inner;
        let now = clock::now();
        match inner.endpoint.assertions.kind() {
            LivelinessKind::Automatic => return,
            LivelinessKind::ManualByParticipant => {
                inner.driver().with_discovery(|core, now| core.assert_liveliness(now));
            }
            LivelinessKind::ManualByTopic => {
                let mut sending = inner.endpoint.sending.lock();
                let mut core = inner.endpoint.core.lock();
                core.assert_liveliness(now, &mut sending.outbox);
                inner.transmit(core, &mut sending);
            }
        }
        inner.note_assertion(now);
    }

    /// What identifies the writer.
    pub fn guid(&self) -> Guid {
        self.inner.driver().guid(self.inner.endpoint.entity)
    }

    /// The number of the last sample; 0 before the first.
    pub fn last_sequence_number(&self) -> SequenceNumber {
        self.inner.endpoint.core.lock().last_sequence_number()
    }

    /// GUIDs of the reliable readers that have not acknowledged the last sample, the one that is furthest behind first:
    /// it is the one that a write waits for.
    pub fn lagging_subscriptions(&self) -> Vec<Guid> {
        self.inner.endpoint.core.lock().lagging_readers().collect()
    }

    /// What was sent, repairs by other threads not included.
    pub fn send_counters(&self) -> SendCounters {
        self.inner.endpoint.send_counters()
    }

    /// When the writer last gave something to the kernel, repairs by other threads not included. `None` unless
    /// [`ParticipantSettings::stage_times`](crate::ParticipantSettings::stage_times) asks for it, and before the first time.
    pub fn last_send_times(&self) -> Option<SendTimes> {
        self.inner.endpoint.last_send_times().filter(|times| times.called_ns > 0)
    }

    /// What the protocol counted.
    pub fn protocol_counters(&self) -> WriterCounters {
        self.inner.endpoint.core.lock().counters()
    }
}

impl Inner {
    #[inline]
    fn driver(&self) -> &Driver {
        &self.handle.driver
    }

    /// What happens to an instance that is unregistered (WRITER_DATA_LIFECYCLE, DDS 1.4 §2.2.3.21).
    fn unregistration(&self) -> ChangeKind {
        if self.qos.autodispose_unregistered_instances {
            ChangeKind::DisposedUnregistered
        } else {
            ChangeKind::Unregistered
        }
    }

    /// The form of a payload that names an instance which all matched readers understand, if it is another one: some do
    /// not delimit keys in XCDR2, and would take the delimiter for the key. Weir's readers understand both.
    fn undelimited(&self, payload: &[u8]) -> Option<Vec<u8>> {
        let is_wanted =
            self.encoding != Encoding::Xcdr1 && !self.endpoint.without_key_delimiters.lock().is_empty();
        is_wanted.then(|| (self.undelimited_key)(payload).ok()).flatten()
    }

    /// Ends the instances that are still registered, as far as there is room at once. `Some`: the last sample that
    /// says so. Discovery tells that the writer is gone all the same.
    fn unregister_all(&self, core: &mut WriterCore) -> Option<SequenceNumber> {
        let now = clock::now();
        let timestamp = Some(self.driver().wall_clock.timestamp(now));
        let kind = self.unregistration();
        let mut registered: Vec<_> = self.registered.lock().drain().collect();
        registered.sort_unstable_by_key(|(handle, _)| *handle);
        let mut last = None;
        for (handle, payload) in registered {
            let undelimited = self.undelimited(&payload);
            let payload = undelimited.as_deref().unwrap_or(&payload);
            let change = Change { kind, key: Some(handle.0), payload };
            match core.write_copy(now, timestamp, change) {
                Ok(sn) => last = Some(sn),
                Err(_) => break,
            }
        }
        if last.is_some() {
            core.request_acknowledgement();
        }
        last
    }

    /// The application is alive, as what it has just done shows.
    #[inline]
    fn note_assertion(&self, now: Time) {
        if self.endpoint.assertions.is_watched() {
            self.driver().note_assertion(&self.endpoint, now);
        }
    }

    /// Whether the writer has to know the instance of a sample: only to find what it replaces, or to count.
    #[inline]
    fn needs_key(&self) -> bool {
        let limits = &self.qos.policies.resource_limits;
        self.qos.policies.history != History::KeepAll
            || limits.max_instances.is_some()
            || limits.max_samples_per_instance.is_some()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let entity = self.endpoint.entity;
        // A listener may hold handles, and the endpoint lives as long as somebody has an old table of routes.
        self.endpoint.set_listener(None);
        // What automatic coalescing holds back was written, and leaves.
        let mut turn = self.turn();
        let last = self.unregister_all(&mut turn.core);
        let end = turn.core.last_sequence_number();
        self.flush(turn, clock::now());
        if let Some(publishing) = &self.endpoint.publishing {
            let patience = self.qos.policies.max_blocking_time.max(FAREWELL_TIME);
            self.wait_until_published(publishing, end, clock::now() + patience);
        }
        if let Some(last) = last {
            let is_done = || self.endpoint.core.lock().is_acknowledged(last);
            self.driver().receive_until(Some(clock::now() + FAREWELL_TIME), self.driver().wait, is_done);
        }
        if let (Some(publishing), Some(publisher)) = (&self.endpoint.publishing, self.publisher.take()) {
            publishing.stop();
            // It runs no code of the application, so this is another thread. One that panicked has said so.
            let _ = publisher.join();
        }
        self.driver().with_discovery(|core, now| core.remove_writer(now, entity));
        self.driver().routes.change(|table| _ = table.writers.remove(&entity));
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

/// How long a writer that is dropped waits for readers to hear of the end of its registered instances. Then they
/// hear that the writer is gone, and look no further.
const FAREWELL_TIME: Duration = Duration::from_secs(1);

/// The smallest message that a batch may be limited to: headers, and some room for samples.
const BATCH_BYTES_MIN: usize = 128;

/// The encoding that the QoS stands for, if it makes sense.
fn check_qos(qos: &DataWriterQos) -> Result<Encoding> {
    let policies = &qos.policies;
    if let Some(batch) = qos.batch
        && (batch.max_bytes < BATCH_BYTES_MIN || batch.max_samples == 0)
    {
        let text =
            format!("BATCH: max_bytes should be at least {BATCH_BYTES_MIN}, and max_samples at least 1");
        return Err(DdsError::InconsistentPolicy(text));
    }
    crate::qos::check_policies(policies)?;
    if policies.durability > Durability::TransientLocal {
        let text = "DURABILITY: there is no service for TRANSIENT and PERSISTENT; TRANSIENT_LOCAL keeps samples \
                    as long as their writer lives";
        return Err(DdsError::InconsistentPolicy(text.to_owned()));
    }
    match policies.representation[..] {
        [] => Ok(Encoding::Xcdr1),
        [id] => Ok(DataRepresentation::from_id(id)?.encoding()),
        _ => Err(DdsError::InconsistentPolicy(
            "DATA_REPRESENTATION: a writer has one representation".to_owned(),
        )),
    }
}

fn core_config(guid: Guid, qos: &DataWriterQos, hash_seed: u64) -> WriterConfig {
    let policies = &qos.policies;
    let is_reliable = policies.reliability == Reliability::Reliable;
    WriterConfig {
        history: policies.history,
        durability: policies.durability,
        // A best-effort writer keeps nothing that could be limited, but instances.
        max_samples: policies.resource_limits.max_samples.filter(|_| is_reliable),
        max_samples_per_instance: policies.resource_limits.max_samples_per_instance.filter(|_| is_reliable),
        max_instances: policies.resource_limits.max_instances,
        max_bytes: policies.resource_limits.max_bytes.filter(|_| is_reliable),
        hash_seed,
        coalescing: match qos.coalescing {
            Coalescing::Off => None,
            Coalescing::Automatic { delay_max } => {
                Some(CoreCoalescing { delay_max, ..CoreCoalescing::default() })
            }
        },
        batch: qos.batch,
        is_asynchronous: qos.publish_mode == PublishMode::Asynchronous,
        ..WriterConfig::new(guid, policies.reliability)
    }
}

fn timestamp_of(time: SystemTime) -> Timestamp {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_nanos(since_epoch.as_nanos() as u64)
}

/// The key hash of a sample (RTPS 2.5 §9.6.4.8). Keys up to 64 bytes are serialized on the stack.
pub(crate) fn key_hash_of<T: DdsType>(sample: &T, encoding: Encoding) -> Result<[u8; 16]> {
    const ON_STACK: usize = 64;
    let form = encoding.of_key_hash();
    let len = sample.key_size(form);
    let mut on_stack = [0; ON_STACK];
    let mut on_heap;
    let key = if len <= ON_STACK {
        &mut on_stack[..len]
    } else {
        on_heap = vec![0; len];
        &mut on_heap[..]
    };
    sample.encode_key(&mut CdrWriter::new(key, Endianness::Big, form))?;
    Ok(weir_cdr::key_hash::<T>(key, encoding))
}
