//! Publishers, which create writers (DDS 1.4, 2.2.2.4.1).

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use weir_cdr::DdsType;
use weir_rtps::group::{GroupSequence, group_digest};
use weir_rtps::writer::WriterPresentation;
use weir_wire::{EntityId, SequenceNumber};

use crate::data_writer::{self, DataWriter};
use crate::driver::start::Handle;
use crate::error::{DdsError, Result};
use crate::group_qos::PublisherQos;
use crate::levels::PublisherState;
use crate::listener::{DataWriterListener, PublisherListener};
use crate::qos::DataWriterQos;
use crate::status_mask::StatusMask;
use crate::topic::Topic;

/// Creates the writers of one participant.
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
/// let topic = participant.create_topic::<Greeting>("Greetings")?;
/// let publisher = participant.create_publisher()?;
/// let writer = publisher.create_datawriter(&topic, DataWriterQos::default().keep_last(10))?;
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
#[derive(Clone)]
pub struct Publisher {
    pub(crate) handle: Arc<Handle>,
    pub(crate) state: Arc<PublisherState>,
}

/// What was begun for the writers of a publisher.
#[derive(Default)]
pub(crate) struct State {
    writers: Vec<Weak<data_writer::Inner>>,
    /// Those of them that are enabled and not closed.
    members: Vec<EntityId>,
    /// Calls of `begin_coherent_changes` without their end.
    sets: u32,
    /// Where the set begins that the writers share.
    group_set: Option<SequenceNumber>,
    /// Calls of `suspend_publications` without their end.
    suspensions: u32,
}

impl Publisher {
    pub(crate) fn new(handle: &Arc<Handle>, qos: PublisherQos) -> Self {
        let state = PublisherState::new(handle, qos);
        handle.driver.state.contained.add_publisher(&state);
        // Another thread may enable the participant, and with it this one.
        if handle.driver.enables_groups() {
            state.is_enabled.store(true, Ordering::SeqCst);
        }
        Self { handle: Arc::clone(handle), state }
    }

    /// Returns the QoS.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Publisher, Topic};
    /// # fn f<T: DdsType + std::fmt::Debug>(publisher: &Publisher, topic: &Topic<T>) -> weir_dds::Result<()> {
    /// println!("{:?}", publisher.get_qos().partition);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_qos(&self) -> PublisherQos {
        self.state.qos.lock().clone()
    }

    /// Changes the QoS: PARTITION, GROUP_DATA and ENTITY_FACTORY.
    ///
    /// Its writers announce changes at once. Readers that fit only now are matched, and those that do not fit any more
    /// are not. ENTITY_FACTORY applies to writers that are created from then on.
    ///
    /// ```no_run
    /// # use weir_dds::Publisher;
    /// # fn f(publisher: &Publisher) -> Result<(), weir_dds::DdsError> {
    /// publisher.set_qos(publisher.get_qos().partition(["arm/left"]).group_data(*b"calibrated"))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::ImmutablePolicy`]: PRESENTATION cannot be changed.
    /// - [`DdsError::BadParameter`]: too many or too long partitions or group data.
    /// - [`DdsError::AlreadyDeleted`]: the publisher or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    ///
    /// Nothing has changed then.
    pub fn set_qos(&self, qos: PublisherQos) -> Result<()> {
        self.check()?;
        qos.announced(self.state.entity).check()?;
        {
            let mut current = self.state.qos.lock();
            current.check_change(&qos)?;
            *current = qos;
        }
        let writers: Vec<_> = self.state.begun.lock().writers().collect();
        writers.iter().try_for_each(|writer| writer.announce_publisher())
    }

    /// Enables the publisher, and its writers unless
    /// [`autoenable_created_entities`](PublisherQos::autoenable_created_entities) says otherwise. Does nothing if it is
    /// enabled.
    ///
    /// Publishers are enabled when they are created, unless the participant is not enabled or
    /// [`autoenable_created_entities`](crate::DomainParticipantQos::autoenable_created_entities) of it says otherwise
    /// (ENTITY_FACTORY, DDS 1.4, 2.2.3.20). Writers of a publisher that is not enabled are not enabled
    /// either.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// participant.set_qos(participant.get_qos().autoenable_created_entities(false))?;
    /// let publisher = participant.create_publisher()?;
    /// assert!(!publisher.is_enabled());
    /// publisher.enable()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::PreconditionNotMet`]: the participant is not enabled.
    /// - [`DdsError::AlreadyDeleted`]: the publisher or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    /// - As [`DataWriter::enable`], of the first writer that cannot be enabled.
    pub fn enable(&self) -> Result<()> {
        self.check()?;
        self.handle.driver.check_enabled()?;
        self.state.is_enabled.store(true, Ordering::SeqCst);
        if !self.state.enables_writers() {
            return Ok(());
        }
        let writers: Vec<_> = self.state.begun.lock().writers().collect();
        writers.iter().try_for_each(|writer| writer.enable())
    }

    /// Returns whether the publisher is enabled.
    ///
    /// ```no_run
    /// # use weir_dds::Publisher;
    /// # fn f(publisher: &Publisher) -> weir_dds::Result<()> {
    /// assert!(publisher.is_enabled());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_enabled(&self) -> bool {
        self.state.is_enabled.load(Ordering::SeqCst)
    }

    /// Creates a writer of a topic.
    ///
    /// The writer is announced at once and matches readers from then on, unless it is
    /// [enabled](DataWriter::enable) later.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Publisher, Topic};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(publisher: &Publisher, topic: &Topic<Reading>) -> weir_dds::Result<()> {
    /// use weir_dds::DataWriterQos;
    ///
    /// let writer = publisher.create_datawriter(topic, DataWriterQos::default().keep_all())?;
    /// writer.write(&Reading { sensor: 7, celsius: 21.5 })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::InconsistentPolicy`]: policies contradict each other.
    /// - [`DdsError::BadParameter`]: the user data, the partitions or the name of the type are too long, or the writer
    ///   differs from the file of static endpoints.
    /// - [`DdsError::OutOfResources`]: the limits table allows no other writer, or less than its policies keep.
    /// - [`DdsError::Network`]: the thread of a writer that publishes asynchronously cannot be started, or the kernel
    ///   returns no random numbers.
    /// - [`DdsError::AlreadyDeleted`]: the topic, the publisher or the participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn create_datawriter<T: DdsType>(
        &self,
        topic: &Topic<T>,
        qos: DataWriterQos,
    ) -> Result<DataWriter<T>> {
        self.create(topic, qos, None)
    }

    /// Creates a writer whose listener is set before the writer is announced.
    ///
    /// The listener misses no event: readers that are known already may match during this call.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Publisher, Topic};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(publisher: &Publisher, topic: &Topic<Reading>) -> weir_dds::Result<()> {
    /// use weir_dds::{DataWriter, DataWriterListener, DataWriterQos, PublicationMatchedStatus};
    ///
    /// struct Printer;
    ///
    /// impl DataWriterListener<Reading> for Printer {
    ///     fn on_publication_matched(&self, _: &DataWriter<Reading>, status: PublicationMatchedStatus) {
    ///         println!("{} readers", status.current_count);
    ///     }
    /// }
    ///
    /// let writer = publisher.create_datawriter_with_listener(topic, DataWriterQos::default(), Printer)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Publisher::create_datawriter`].
    pub fn create_datawriter_with_listener<T: DdsType>(
        &self,
        topic: &Topic<T>,
        qos: DataWriterQos,
        listener: impl DataWriterListener<T> + 'static,
    ) -> Result<DataWriter<T>> {
        self.create(topic, qos, Some(Arc::new(listener)))
    }

    fn create<T: DdsType>(
        &self,
        topic: &Topic<T>,
        qos: DataWriterQos,
        listener: Option<Arc<dyn DataWriterListener<T>>>,
    ) -> Result<DataWriter<T>> {
        let writer = DataWriter::new(self, topic, qos, listener)?;
        let inner = writer.inner();
        let mut state = self.state.begun.lock();
        state.writers.retain(|writer| writer.strong_count() > 0);
        state.writers.push(Arc::downgrade(inner));
        // Otherwise, the call that closes the publisher finds this writer.
        if self.state.is_closed.load(Ordering::SeqCst) {
            drop(state);
            return Err(DdsError::AlreadyDeleted("publisher"));
        }
        if state.sets > 0 {
            inner.begin_set(state.group_set);
        }
        if state.suspensions > 0 {
            inner.suspend();
        }
        drop(state);
        if self.state.enables_writers() {
            writer.enable()?;
        }
        // An end that was not found before has closed this writer, or is found here.
        self.handle.driver.cause_of_end().map_or(Ok(writer), Err)
    }

    /// Refuses calls once the participant has ended, or the publisher is closed.
    pub(crate) fn check(&self) -> Result<()> {
        self.handle.driver.check()?;
        let is_closed = self.state.is_closed.load(Ordering::SeqCst);
        if is_closed { Err(DdsError::AlreadyDeleted("publisher")) } else { Ok(()) }
    }

    /// Closes all writers of the publisher (DDS 1.4, 2.2.2.4.1.14).
    ///
    /// Handles to them may be left; they report [`DdsError::AlreadyDeleted`]. Waits for each writer as
    /// [`DataWriter::close`] does. The publisher can create others.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType, Publisher};
    /// # fn f<T: DdsType>(publisher: &Publisher, writer: &DataWriter<T>, value: &T) -> weir_dds::Result<()> {
    /// publisher.delete_contained_entities()?;
    /// assert!(writer.write(value).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::AlreadyDeleted`]: the publisher was closed, and its writers with it.
    /// - As [`DataWriter::close`], of the first writer that fails. All writers are closed all the same.
    pub fn delete_contained_entities(&self) -> Result<()> {
        let outcome = self.check();
        outcome.and(self.close_contained())
    }

    fn close_contained(&self) -> Result<()> {
        let writers: Vec<_> = self.state.begun.lock().writers().collect();
        let outcome = self.handle.driver.check_failure();
        // Without the lock: closing waits.
        writers.iter().fold(outcome, |outcome, writer| outcome.and(writer.close()))
    }

    /// Ends the publisher and its writers, for all their handles.
    ///
    /// The listener is dropped. Waits for each writer as [`DataWriter::close`] does. From then on, calls that return a
    /// result report [`DdsError::AlreadyDeleted`]. Closing again does nothing.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriterQos, DdsError, DdsType, Publisher, Topic};
    /// # fn f<T: DdsType>(publisher: &Publisher, topic: &Topic<T>) -> weir_dds::Result<()> {
    /// publisher.close()?;
    /// let error = publisher.create_datawriter(topic, DataWriterQos::default()).unwrap_err();
    /// assert!(matches!(error, DdsError::AlreadyDeleted("publisher")));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DataWriter::close`], of the first writer that fails. The publisher has ended all the same.
    pub fn close(&self) -> Result<()> {
        if self.state.is_closed.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        drop(self.state.level.set(None, StatusMask::NONE));
        self.close_contained()
    }

    /// Returns what its writers announce with each sample; `None`: nothing.
    pub(crate) fn presentation_of_samples(&self) -> Option<WriterPresentation> {
        let is_coherent = self.state.qos.lock().presentation.coherent_access;
        let group = self.state.sequence.clone();
        (is_coherent || group.is_some()).then_some(WriterPresentation { is_coherent, group })
    }

    /// Begins a coherent set of changes (DDS 1.4, 2.2.2.4.1.10).
    ///
    /// What the publisher's writers write until the matching [`Publisher::end_coherent_changes`] becomes accessible at
    /// coherent readers together, or not at all. Sets may be nested: the outermost one counts. Without coherent access
    /// in the publisher's QoS, this has no effect.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType, Publisher};
    /// # fn f<T: DdsType>(publisher: &Publisher, position: &DataWriter<T>, speed: &DataWriter<T>, value: &T)
    /// # -> weir_dds::Result<()> {
    /// publisher.begin_coherent_changes()?;
    /// position.write(value)?;
    /// speed.write(value)?;
    /// publisher.end_coherent_changes()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::AlreadyDeleted`]: the publisher or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn begin_coherent_changes(&self) -> Result<()> {
        self.check()?;
        // Dropped after the lock: they may be the last handles of writers.
        let mut writers = Vec::new();
        let mut state = self.state.begun.lock();
        state.sets += 1;
        if state.sets == 1 {
            state.group_set = self.state.sequence.as_ref().map(GroupSequence::peek);
            writers.extend(state.writers());
            writers.iter().for_each(|writer| writer.begin_set(state.group_set));
        }
        Ok(())
    }

    /// Ends a coherent set of changes (DDS 1.4, 2.2.2.4.1.11).
    ///
    /// Waits as a write does for room for the submessages that end the set, at one writer after the other. After an
    /// error, the set has ended at the writers before the one that failed, and goes on at the others: call this again
    /// before the next write. What the writers write whose set has ended is not part of it.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType, Publisher};
    /// # fn f<T: DdsType>(publisher: &Publisher, writer: &DataWriter<T>, values: &[T]) -> weir_dds::Result<()> {
    /// publisher.begin_coherent_changes()?;
    /// let written = values.iter().try_for_each(|value| writer.write(value));
    /// // Also after an error: otherwise the set never ends.
    /// publisher.end_coherent_changes()?;
    /// written
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::PreconditionNotMet`]: no set was begun.
    /// - [`DdsError::Timeout`]: no room in time.
    /// - [`DdsError::OutOfResources`]: the history of a writer is full of samples kept for late readers.
    /// - [`DdsError::AlreadyDeleted`]: the publisher or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn end_coherent_changes(&self) -> Result<()> {
        self.check()?;
        let (is_last, writers) = {
            let mut state = self.state.begun.lock();
            if state.sets == 0 {
                let text = "no coherent set of changes was begun: call begin_coherent_changes first";
                return Err(DdsError::PreconditionNotMet(text.to_owned()));
            }
            let is_last = state.sets == 1;
            state.sets -= u32::from(!is_last);
            (is_last, state.writers().collect::<Vec<_>>())
        };
        if !is_last {
            return Ok(());
        }
        let entities: Vec<_> = writers.iter().map(|writer| writer.entity()).collect();
        let digest = self.state.sequence.is_some().then(|| group_digest(&entities));
        // Without the lock: a wait for room may call listeners.
        writers.iter().try_for_each(|writer| writer.end_set(digest))?;
        let mut state = self.state.begun.lock();
        state.sets = state.sets.saturating_sub(1);
        Ok(())
    }

    /// Declares that many writes follow, so that their samples are better sent together (DDS 1.4, 2.2.2.4.1.8).
    ///
    /// The publisher's writers hold samples back until the matching [`Publisher::resume_publications`], or until about
    /// 32 KB of them are there. A writer also sends what it holds back when it needs room.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType, Publisher};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(publisher: &Publisher, writer: &DataWriter<Reading>) -> weir_dds::Result<()> {
    /// publisher.suspend_publications()?;
    /// for sensor in 0..100 {
    ///     writer.write(&Reading { sensor, celsius: 21.5 })?;
    /// }
    /// publisher.resume_publications()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::AlreadyDeleted`]: the publisher or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn suspend_publications(&self) -> Result<()> {
        self.check()?;
        // Dropped after the lock: they may be the last handles of writers.
        let mut writers = Vec::new();
        let mut state = self.state.begun.lock();
        state.suspensions += 1;
        if state.suspensions == 1 {
            writers.extend(state.writers());
            writers.iter().for_each(|writer| writer.suspend());
        }
        Ok(())
    }

    /// Ends [`Publisher::suspend_publications`]: sends what was held back (DDS 1.4, 2.2.2.4.1.9).
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType, Publisher};
    /// # fn f<T: DdsType>(publisher: &Publisher, writer: &DataWriter<T>, values: &[T]) -> weir_dds::Result<()> {
    /// publisher.suspend_publications()?;
    /// let written = values.iter().try_for_each(|value| writer.write(value));
    /// // Also after an error: otherwise samples wait for long.
    /// publisher.resume_publications()?;
    /// written
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::PreconditionNotMet`]: publications are not suspended.
    /// - [`DdsError::AlreadyDeleted`]: the publisher or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn resume_publications(&self) -> Result<()> {
        self.check()?;
        let resumed: Vec<_> = {
            let mut state = self.state.begun.lock();
            if state.suspensions == 0 {
                let text = "publications are not suspended: call suspend_publications first";
                return Err(DdsError::PreconditionNotMet(text.to_owned()));
            }
            state.suspensions -= 1;
            if state.suspensions > 0 {
                return Ok(());
            }
            state.writers().collect()
        };
        resumed.iter().for_each(|writer| writer.resume());
        Ok(())
    }

    /// Sets the listener for the events in `mask` of writers that have no listener for them.
    ///
    /// Other events are for the listener of the participant. Without a listener, those in `mask` are dropped (DDS 1.4,
    /// 2.2.4.2.3). A listener that holds a handle of the participant or of its entities keeps the participant alive.
    ///
    /// ```no_run
    /// # use weir_dds::{Publisher};
    /// # fn f(publisher: &Publisher) -> weir_dds::Result<()> {
    /// use std::sync::Arc;
    /// use weir_dds::{AnyDataWriter, LivelinessLostStatus, PublisherListener, StatusMask};
    ///
    /// struct Lost;
    ///
    /// impl PublisherListener for Lost {
    ///     fn on_liveliness_lost(&self, writer: &AnyDataWriter, _: LivelinessLostStatus) {
    ///         eprintln!("assert the writer of {} more often", writer.topic_name());
    ///     }
    /// }
    ///
    /// publisher.set_listener(Some(Arc::new(Lost)), StatusMask::LIVELINESS_LOST);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_listener(&self, listener: Option<Arc<dyn PublisherListener>>, mask: StatusMask) {
        if listener.is_some() {
            self.handle.driver.start_calling();
        }
        drop(self.state.level.set(listener, mask));
    }

    /// Returns the listener.
    ///
    /// ```no_run
    /// # use weir_dds::Publisher;
    /// # fn f(publisher: &Publisher) -> weir_dds::Result<()> {
    /// assert!(publisher.listener().is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn listener(&self) -> Option<Arc<dyn PublisherListener>> {
        self.state.level.listener()
    }

    /// Returns how many calls of the publisher's listener panicked. The panic hook has reported each on standard error.
    ///
    /// ```no_run
    /// # use weir_dds::Publisher;
    /// # fn f(publisher: &Publisher) -> weir_dds::Result<()> {
    /// println!("{} calls of the listener panicked", publisher.listener_panics());
    /// # Ok(())
    /// # }
    /// ```
    pub fn listener_panics(&self) -> u64 {
        self.state.level.panics.count()
    }

    /// Returns the statuses of the publisher that have changed: it has none (DDS 1.4, 2.2.4.1).
    ///
    /// ```no_run
    /// # use weir_dds::{Publisher, StatusMask};
    /// # fn f(publisher: &Publisher) {
    /// assert_eq!(publisher.status_changes(), StatusMask::NONE);
    /// # }
    /// ```
    pub fn status_changes(&self) -> StatusMask {
        StatusMask::NONE
    }
}

impl PublisherState {
    /// Adds or removes a writer of the group that HEARTBEATs describe.
    pub(crate) fn set_member(&self, writer: EntityId, is_member: bool) {
        let Some(sequence) = &self.sequence else { return };
        let members = &mut self.begun.lock().members;
        members.retain(|member| *member != writer);
        if is_member {
            members.push(writer);
        }
        sequence.set_writers(members);
    }
}

impl State {
    /// Returns the writers that are not closed: a handle may outlive its writer.
    fn writers(&self) -> impl Iterator<Item = Arc<data_writer::Inner>> + use<'_> {
        self.writers.iter().filter_map(Weak::upgrade).filter(|writer| !writer.is_closed())
    }
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Publisher({})", self.handle.driver.prefix)
    }
}
