//! State shared by all handles of a writer, and the waits inside a write.

use std::any::TypeId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use parking_lot::{Mutex, ReentrantMutex};
use weir_cdr::{DdsType, Encoding};
use weir_rtps::qos::{Durability, History};
use weir_rtps::time::Time;
use weir_rtps::writer::{ChangeKind, WriteRefused};
use weir_wire::{EntityId, SequenceNumber};

use super::registered::RegisteredInstances;
use crate::clock;
use crate::driver::endpoints::WriterEndpoint;
use crate::driver::lane::Turn;
use crate::driver::observers::Cause;
use crate::driver::publishing::Publishing;
use crate::driver::shared::Driver;
use crate::driver::start::Handle;
use crate::error::{DdsError, Result};
use crate::instance_handle::InstanceHandle;
use crate::key::key_hash_of;
use crate::qos::DataWriterQos;
use crate::wait_strategy::WaitStrategy;

pub(crate) struct Inner {
    pub(crate) handle: Arc<Handle>,
    pub(crate) endpoint: Arc<WriterEndpoint>,
    /// The publishing thread of an asynchronous writer.
    pub(super) publisher: Mutex<Option<JoinHandle<()>>>,
    /// Whether the writer has ended.
    pub(super) is_closed: AtomicBool,
    /// Held while the writer is enabled, by one thread: a listener that this calls may enable it, too.
    pub(super) enabling: ReentrantMutex<()>,
    /// The QoS at creation, of which only what cannot be changed is used.
    pub(super) qos: DataWriterQos,
    /// The QoS as it is now. Locked after discovery.
    pub(super) current: Mutex<DataWriterQos>,
    pub(super) is_enabled: AtomicBool,
    /// Whether an instance was disposed or unregistered.
    pub(super) has_ended: AtomicBool,
    /// Whether a write may find an open batch.
    pub(super) has_batch: AtomicBool,
    /// The encoding of the offered data representation.
    pub(super) encoding: Encoding,
    /// Whether an instance that is written is registered, with its key: not within a limits table.
    pub(super) remembers_instances: bool,
    /// Registered instances, with their keys. Locked after the core.
    pub(super) registered: Mutex<RegisteredInstances>,
    /// Removes the delimiters from a serialized key.
    pub(super) undelimited_key: fn(&[u8]) -> core::result::Result<Vec<u8>, weir_cdr::CdrError>,
    /// Converts a key hash in XCDR1 to what identifies the instance, if it is no digest.
    pub(super) instance_of_key_hash: fn([u8; 16]) -> Option<[u8; 16]>,
    pub(super) type_id: TypeId,
    pub(super) type_name: &'static str,
}

impl Inner {
    #[inline]
    pub(super) fn driver(&self) -> &Driver {
        &self.handle.driver
    }

    /// Notifies wait sets that a status was read.
    pub(super) fn note_status_read(&self) {
        self.endpoint.observers.notify(Cause::Access);
    }

    /// Returns the change that unregisters an instance (WRITER_DATA_LIFECYCLE, DDS 1.4, 2.2.3.21).
    pub(super) fn unregistration(&self) -> ChangeKind {
        if self.current.lock().autodispose_unregistered_instances {
            ChangeKind::DisposedUnregistered
        } else {
            ChangeKind::Unregistered
        }
    }

    /// Returns the serialized key without XCDR2 delimiters, if a matched reader needs it so.
    ///
    /// Some engines do not delimit keys in XCDR2 and would read the delimiter as part of the key.
    /// Weir's readers accept both forms.
    pub(super) fn undelimited(&self, payload: &[u8]) -> Option<Vec<u8>> {
        let is_wanted =
            self.encoding != Encoding::Xcdr1 && !self.endpoint.without_key_delimiters.lock().is_empty();
        is_wanted.then(|| (self.undelimited_key)(payload).ok()).flatten()
    }

    /// Returns the handle of the instance with a key hash of this writer.
    ///
    /// The instance of a digest in XCDR1 is known only if it is registered, or if its key has the same form in both
    /// representations. Otherwise the handle is the digest.
    pub(super) fn instance_of_hash(&self, hash: [u8; 16]) -> InstanceHandle {
        let converted =
            (self.encoding == Encoding::Xcdr1).then(|| (self.instance_of_key_hash)(hash)).flatten();
        let registered = || self.registered.lock().by_digest(hash);
        converted.map(InstanceHandle).or_else(registered).unwrap_or(InstanceHandle(hash))
    }

    /// Begins a coherent set.
    pub(crate) fn begin_set(&self, group_set: Option<SequenceNumber>) {
        self.endpoint.lane.core().begin_set(group_set);
    }

    /// Collects samples from now on.
    pub(crate) fn suspend(&self) {
        self.endpoint.lane.core().suspend();
    }

    pub(crate) fn entity(&self) -> EntityId {
        self.endpoint.entity
    }

    /// Ends the coherent set, and sends all of it. Waits for room as a write does.
    pub(crate) fn end_set(&self, digest: Option<[u8; 4]>) -> Result<()> {
        let mut waiting_since = None;
        loop {
            let now = clock::now();
            let mut turn = self.endpoint.lane.turn();
            let timestamp = self.driver().wall_clock.timestamp(now);
            let ended = turn.core.end_set(now, timestamp, digest);
            self.flush(turn, now);
            match ended {
                Ok(_) => return Ok(()),
                Err(refused) => self.make_room(refused, (None, 0), now, &mut waiting_since)?,
            }
        }
    }

    /// Sends what was held back while the publisher was suspended.
    pub(crate) fn resume(&self) {
        let mut turn = self.endpoint.lane.turn();
        turn.core.resume();
        self.flush(turn, clock::now());
    }

    /// Records an assertion: what the application has just done shows that it is alive.
    #[inline]
    pub(super) fn note_assertion(&self, now: Time) {
        if self.endpoint.assertions.is_watched() {
            self.driver().note_assertion(&self.endpoint, now);
        }
    }

    /// Returns whether a write needs the key hash: to find the sample it replaces, or to count
    /// instances.
    #[inline]
    pub(super) fn needs_key(&self) -> bool {
        let limits = &self.qos.resource_limits;
        self.qos.history != History::KeepAll
            || limits.max_instances.is_some()
            || limits.max_samples_per_instance.is_some()
            || self.qos.durability >= Durability::Transient
            || self.endpoint.watches_deadlines()
    }

    /// Returns the key hash of a sample, if the writer needs it.
    #[inline]
    pub(super) fn key_of_sample<T: DdsType>(&self, sample: &T) -> Result<Option<[u8; 16]>> {
        let needs_key = T::HAS_KEY && self.needs_key();
        needs_key.then(|| key_hash_of(sample, self.encoding)).transpose()
    }

    /// Ends a turn in which a sample was written: sends it, or arranges for it to be sent in time.
    #[inline]
    pub(super) fn send(&self, turn: Turn<'_>, now: Time) {
        let (driver, lane) = (self.driver(), &self.endpoint.lane);
        let Some(sent) = lane.send(&driver.outlet, turn, now) else { return };
        if sent.is_amid_sample {
            self.finish_sample();
        } else if sent.awaits_acknowledgements && sent.has_sent {
            // Receiving here spares the background thread a wake-up.
            driver.receive_what_is_there();
            lane.note_busy();
        }
    }

    /// Ends a turn by sending everything, including what a burst or a batch holds back.
    pub(super) fn flush(&self, turn: Turn<'_>, now: Time) {
        self.endpoint.lane.flush(&self.driver().outlet, turn, now);
    }

    /// Sends the rest of a large sample: as readers make room, or after pauses if they are
    /// best-effort.
    ///
    /// If no reader makes room for `max_blocking_time`, the timer thread continues with the sample.
    #[cold]
    fn finish_sample(&self) {
        loop {
            let may_go_on = self.wait_amid_sample();
            let sent = self.endpoint.lane.send_more(&self.driver().outlet, !may_go_on);
            if !sent.is_amid_sample || !may_go_on {
                return;
            }
        }
    }

    /// Waits, and receives meanwhile, until more of a large sample may be sent.
    ///
    /// Returns `false` if no reader made room for `max_blocking_time`, or the writer or the participant has ended.
    fn wait_amid_sample(&self) -> bool {
        let (driver, lane) = (self.driver(), &self.endpoint.lane);
        let paused_until = lane.core().paused_until();
        let is_done = || {
            let core = lane.core();
            core.is_closed() || core.can_go_on(clock::now())
        };
        if let Some(until) = paused_until.filter(|_| driver.wait != WaitStrategy::Spin) {
            driver.receive_in_pause(until, is_done);
            return !driver.has_ended() && !lane.core().is_closed();
        }
        let deadline = paused_until.unwrap_or_else(|| clock::now() + self.qos.max_blocking_time);
        let may_go_on = driver.receive_until(Some(deadline), driver.wait, is_done) || paused_until.is_some();
        may_go_on && !lane.core().is_closed()
    }

    /// Returns the reason as an error, if a wait inside the writer is over because the writer or its participant has
    /// ended. A writer that is being closed takes part until its farewell is over.
    pub(super) fn check_wait(&self) -> Result<()> {
        let is_closed = self.endpoint.lane.core().is_closed();
        if is_closed { Err(self.refusal(WriteRefused::Closed)) } else { self.driver().check() }
    }

    /// Waits for room after a refusal; fails if waiting cannot help or takes too long.
    #[cold]
    pub(super) fn make_room(
        &self,
        refused: WriteRefused,
        (key, payload_len): (Option<[u8; 16]>, usize),
        now: Time,
        waiting_since: &mut Option<Time>,
    ) -> Result<()> {
        if refused != WriteRefused::WindowFull {
            return Err(self.refusal(refused));
        }
        let patience = self.qos.max_blocking_time;
        let deadline = *waiting_since.get_or_insert(now) + patience;
        let lane = &self.endpoint.lane;
        let _waiting = lane.publishing.as_ref().map(Publishing::wait_for_room);
        let is_done = || {
            let core = lane.core();
            core.is_closed() || core.has_room_for(key, payload_len)
        };
        let has_room = self.driver().receive_until(Some(deadline), self.driver().wait, is_done);
        if has_room && !lane.core().is_closed() {
            lane.note_busy();
            return Ok(());
        }
        self.check_wait()?;
        Err(DdsError::Timeout {
            what: "room for another sample",
            waited: patience,
            hint: self.lagging_hint(),
        })
    }

    /// Waits until the publishing thread has passed this sample, and all before it, to the kernel.
    ///
    /// Returns whether it has. Ends early if the writer is closed.
    pub(super) fn wait_until_published(
        &self,
        publishing: &Publishing,
        last: SequenceNumber,
        deadline: Time,
    ) -> bool {
        let lane = &self.endpoint.lane;
        let _waiting = publishing.wait_for_end();
        let is_done = || {
            let core = lane.core();
            core.is_closed() || core.is_handed_out(last)
        };
        self.driver().receive_until(Some(deadline), self.driver().wait, is_done);
        lane.wait_for_sender();
        lane.core().is_handed_out(last)
    }

    /// Converts a refusal that waiting cannot resolve.
    pub(super) fn refusal(&self, refused: WriteRefused) -> DdsError {
        let text = refused.to_string();
        match refused {
            WriteRefused::TooLarge { .. } => DdsError::BadParameter(text),
            WriteRefused::Closed => self.driver().cause_of_end().unwrap_or_else(|| {
                let is_enabled = self.is_enabled.load(Ordering::SeqCst) || self.is_closed();
                if is_enabled { DdsError::AlreadyDeleted("writer") } else { DdsError::NotEnabled("writer") }
            }),
            WriteRefused::WindowFull
            | WriteRefused::LimitReached
            | WriteRefused::NewInstance
            | WriteRefused::TooManyInstances
            | WriteRefused::TooManyLoans { .. } => DdsError::OutOfResources(text),
        }
    }

    /// Returns the end of a timeout's message: what the wait was for.
    pub(super) fn lagging_hint(&self) -> String {
        let core = self.endpoint.lane.core();
        match core.lagging_readers().next() {
            Some(reader) => {
                format!(": reader {reader} is furthest behind and has not acknowledged all samples")
            }
            None if core.has_unsent() => ": earlier samples have not been sent yet".to_owned(),
            None => String::new(),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // What could not be done is only reported by `DataWriter::close`.
        let _ = self.close();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    use super::*;
    use crate::{
        DataReader, DataReaderQos, DataWriter, DomainParticipant, ParticipantSettings, ResourceLimits,
    };

    const LONG: Duration = Duration::from_secs(60);

    #[derive(DdsType, Default)]
    #[dds(extensibility = "final")]
    struct Number {
        bytes: Vec<u8>,
    }

    /// Writes samples of this many bytes until one is refused.
    fn write_until_error(numbers: &DataWriter<Number>, len: usize) -> DdsError {
        loop {
            if let Err(error) = numbers.write(&Number { bytes: vec![0; len] }) {
                return error;
            }
        }
    }

    /// A writer that waits for as long as it takes, and a reader that has no room for its second sample.
    fn stuck_pair() -> (DataWriter<Number>, DataReader<Number>) {
        let settings = ParticipantSettings::default().interface("lo");
        let participant = DomainParticipant::new(19, settings).unwrap();
        let topic = participant.create_topic(&format!("numbers of {}", std::process::id())).unwrap();
        let limits = ResourceLimits::default().max_samples(1);
        let qos = DataReaderQos::default().reliable().keep_all().resource_limits(limits);
        let reader = participant.create_subscriber().unwrap().create_datareader(&topic, qos).unwrap();
        let qos = DataWriterQos::default().reliable().keep_all().max_blocking_time(Duration::MAX);
        let writer = participant.create_publisher().unwrap().create_datawriter(&topic, qos).unwrap();
        writer.wait_for_subscriptions(1, LONG).unwrap();
        writer.write(&Number::default()).unwrap();
        writer.wait_for_acknowledgments(LONG).unwrap();
        (writer, reader)
    }

    fn spawn(to: &Sender<DdsError>, wait: impl FnOnce() -> DdsError + Send + 'static) {
        let to = to.clone();
        // If the test has failed, it does not receive.
        std::thread::spawn(move || _ = to.send(wait()));
    }

    /// A reader of a participant that nothing runs once the two have matched.
    fn deaf_pair() -> (DataWriter<Number>, DataReader<Number>) {
        let settings = ParticipantSettings::default().interface("lo");
        let participant = DomainParticipant::new(22, settings.clone()).unwrap();
        let peer = DomainParticipant::new(22, settings.without_threads()).unwrap();
        let name = format!("large numbers of {}", std::process::id());
        let qos = DataReaderQos::default().reliable().keep_all();
        let topic = peer.create_topic(&name).unwrap();
        let reader = peer.create_subscriber().unwrap().create_datareader(&topic, qos).unwrap();
        let qos = DataWriterQos::default().reliable().keep_all().max_blocking_time(Duration::MAX);
        let topic = participant.create_topic(&name).unwrap();
        let writer = participant.create_publisher().unwrap().create_datawriter(&topic, qos).unwrap();
        while writer.publication_matched_status().current_count == 0 {
            peer.poll(Duration::from_millis(1)).unwrap();
        }
        (writer, reader)
    }

    /// One thread waits in a write of this many bytes, and another one for acknowledgements.
    fn close_while_threads_wait((writer, _reader): (DataWriter<Number>, DataReader<Number>), len: usize) {
        let (to, errors) = channel();
        let numbers = writer.clone();
        spawn(&to, move || write_until_error(&numbers, len));
        let driver = Arc::clone(&writer.inner().handle.driver);
        while driver.channel.waiting_threads() < 1 {
            std::thread::yield_now();
        }
        let numbers = writer.clone();
        spawn(&to, move || numbers.wait_for_acknowledgments(Duration::MAX).unwrap_err());
        while driver.channel.waiting_threads() < 2 {
            std::thread::yield_now();
        }
        writer.close().unwrap();
        for _ in 0..2 {
            let error = errors.recv_timeout(LONG).unwrap();
            assert!(matches!(error, DdsError::AlreadyDeleted("writer")), "{error:?}");
        }
    }

    #[test]
    fn threads_that_wait_in_a_writer_learn_that_it_is_closed() {
        close_while_threads_wait(stuck_pair(), 10_000);
    }

    #[test]
    fn a_thread_that_waits_amid_a_sample_learns_that_the_writer_is_closed() {
        close_while_threads_wait(deaf_pair(), 3_000_000);
    }
}
