//! Subscribers, which create readers (DDS 1.4, 2.2.2.5.2).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_cdr::DdsType;
use weir_rtps::qos::{Presentation, PresentationScope};
use weir_rtps::reader::{States, groups};

use crate::content_filter::TopicDescription;
use crate::data_reader::{self, AnyDataReader, DataReader};
use crate::driver::endpoints::ReaderEndpoint;
use crate::driver::start::Handle;
use crate::error::{DdsError, Result};
use crate::group_qos::SubscriberQos;
use crate::levels::SubscriberState;
use crate::listener::{DataReaderListener, SubscriberListener};
use crate::qos::DataReaderQos;
use crate::status_mask::{StatusKind, StatusMask};

/// Creates the readers of one participant.
///
/// ```no_run
/// # use weir_dds::{DdsType, DomainParticipant, ParticipantSettings};
/// use weir_dds::DataReaderQos;
///
/// # #[derive(DdsType, Default)]
/// # #[dds(extensibility = "final")]
/// # struct Greeting {
/// #     text: String,
/// # }
/// # let participant = DomainParticipant::new(0, ParticipantSettings::default())?;
/// let topic = participant.create_topic::<Greeting>("Greetings")?;
/// let subscriber = participant.create_subscriber()?;
/// let reader = subscriber.create_datareader(&topic, DataReaderQos::default().reliable())?;
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
#[derive(Clone)]
pub struct Subscriber {
    pub(crate) handle: Arc<Handle>,
    pub(crate) state: Arc<SubscriberState>,
}

impl Subscriber {
    pub(crate) fn new(handle: &Arc<Handle>, qos: SubscriberQos) -> Self {
        let state = SubscriberState::new(&handle.driver.level, qos);
        handle.driver.state.contained.add_subscriber(&state);
        // Another thread may enable the participant, and with it this one.
        if handle.driver.enables_groups() {
            state.is_enabled.store(true, Ordering::SeqCst);
        }
        Self { handle: Arc::clone(handle), state }
    }

    /// Returns the QoS.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Subscriber, Topic};
    /// # fn f<T: DdsType + std::fmt::Debug>(subscriber: &Subscriber, topic: &Topic<T>) -> weir_dds::Result<()> {
    /// println!("{:?}", subscriber.get_qos().partition);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_qos(&self) -> SubscriberQos {
        self.state.qos.lock().clone()
    }

    /// Changes the QoS: PARTITION, GROUP_DATA and ENTITY_FACTORY.
    ///
    /// Its readers announce changes at once. Writers that fit only now are matched, and those that do not fit any more
    /// are not. ENTITY_FACTORY applies to readers that are created from then on.
    ///
    /// ```no_run
    /// # use weir_dds::Subscriber;
    /// # fn f(subscriber: &Subscriber) -> Result<(), weir_dds::DdsError> {
    /// subscriber.set_qos(subscriber.get_qos().partition(["arm/*"]))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::ImmutablePolicy`]: PRESENTATION cannot be changed.
    /// - [`DdsError::BadParameter`]: too many or too long partitions or group data.
    /// - [`DdsError::AlreadyDeleted`]: the subscriber or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    ///
    /// Nothing has changed then.
    pub fn set_qos(&self, qos: SubscriberQos) -> Result<()> {
        self.check()?;
        qos.announced().check()?;
        {
            let mut current = self.state.qos.lock();
            current.check_change(&qos)?;
            *current = qos;
        }
        self.owners().iter().try_for_each(|reader| reader.announce_subscriber())
    }

    /// Enables the subscriber, and its readers unless
    /// [`autoenable_created_entities`](SubscriberQos::autoenable_created_entities) says otherwise. Does nothing if it
    /// is enabled.
    ///
    /// Subscribers are enabled when they are created, unless the participant is not enabled or
    /// [`autoenable_created_entities`](crate::DomainParticipantQos::autoenable_created_entities) of it says otherwise
    /// (ENTITY_FACTORY, DDS 1.4, 2.2.3.20). Readers of a subscriber that is not enabled are not enabled
    /// either.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// participant.set_qos(participant.get_qos().autoenable_created_entities(false))?;
    /// let subscriber = participant.create_subscriber()?;
    /// assert!(!subscriber.is_enabled());
    /// subscriber.enable()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::PreconditionNotMet`]: the participant is not enabled.
    /// - [`DdsError::AlreadyDeleted`]: the subscriber or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    /// - As [`DataReader::enable`], of the first reader that cannot be enabled.
    pub fn enable(&self) -> Result<()> {
        self.check()?;
        self.handle.driver.check_enabled()?;
        self.state.is_enabled.store(true, Ordering::SeqCst);
        if !self.state.enables_readers() {
            return Ok(());
        }
        self.owners().iter().try_for_each(|reader| reader.enable())
    }

    /// Returns whether the subscriber is enabled.
    ///
    /// ```no_run
    /// # use weir_dds::Subscriber;
    /// # fn f(subscriber: &Subscriber) -> weir_dds::Result<()> {
    /// assert!(subscriber.is_enabled());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_enabled(&self) -> bool {
        self.state.is_enabled.load(Ordering::SeqCst)
    }

    /// Creates a reader of a topic, or of a content-filtered topic.
    ///
    /// The reader is announced at once and matches writers from then on, unless it is
    /// [enabled](DataReader::enable) later.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Subscriber, Topic};
    /// # fn f<T: DdsType + std::fmt::Debug>(subscriber: &Subscriber, topic: &Topic<T>) -> weir_dds::Result<()> {
    /// use weir_dds::DataReaderQos;
    ///
    /// let reader = subscriber.create_datareader(topic, DataReaderQos::default().reliable().keep_all())?;
    /// println!("{:?}", reader.take(10));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::InconsistentPolicy`]: policies contradict each other.
    /// - [`DdsError::BadParameter`]: the user data, the partitions or the name of the type are too long, the address is
    ///   not that of a multicast group, the participant does not use multicast, or the reader differs from the file of
    ///   static endpoints.
    /// - [`DdsError::Unsupported`]: the address of the multicast group is one of IPv6.
    /// - [`DdsError::OutOfResources`]: the limits table allows no other reader, or less than its policies keep; or the
    ///   participant is in too many multicast groups.
    /// - [`DdsError::Network`]: the multicast group cannot be joined, or the kernel returns no random numbers.
    /// - [`DdsError::AlreadyDeleted`]: the topic, the subscriber or the participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn create_datareader<T: DdsType>(
        &self,
        topic: &impl TopicDescription<T>,
        qos: DataReaderQos,
    ) -> Result<DataReader<T>> {
        self.admit(DataReader::new(self, topic.topic(), topic.filter(), qos, None)?)
    }

    /// Creates a reader whose listener is set before the reader is announced.
    ///
    /// The listener misses no event.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Subscriber, Topic};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(subscriber: &Subscriber, topic: &Topic<Reading>) -> weir_dds::Result<()> {
    /// use weir_dds::{DataReader, DataReaderListener, DataReaderQos};
    ///
    /// struct Printer;
    ///
    /// impl DataReaderListener<Reading> for Printer {
    ///     fn on_data_available(&self, reader: &DataReader<Reading>) {
    ///         println!("{:?}", reader.take(100));
    ///     }
    /// }
    ///
    /// let reader = subscriber.create_datareader_with_listener(topic, DataReaderQos::default(), Printer)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Subscriber::create_datareader`].
    pub fn create_datareader_with_listener<T: DdsType>(
        &self,
        topic: &impl TopicDescription<T>,
        qos: DataReaderQos,
        listener: impl DataReaderListener<T> + 'static,
    ) -> Result<DataReader<T>> {
        self.admit(DataReader::new(self, topic.topic(), topic.filter(), qos, Some(Arc::new(listener)))?)
    }

    /// Refuses a reader if the subscriber was closed while it was created.
    fn admit<T>(&self, reader: DataReader<T>) -> Result<DataReader<T>> {
        match self.check() {
            Ok(()) => Ok(reader),
            Err(error) => {
                reader.inner().close();
                Err(error)
            }
        }
    }

    /// Refuses calls once the participant has ended, or the subscriber is closed.
    pub(crate) fn check(&self) -> Result<()> {
        self.handle.driver.check()?;
        let is_closed = self.state.is_closed.load(Ordering::SeqCst);
        if is_closed { Err(DdsError::AlreadyDeleted("subscriber")) } else { Ok(()) }
    }

    /// Closes all readers of the subscriber (DDS 1.4, 2.2.2.5.2.14).
    ///
    /// Handles to them may be left. Samples that they have received can still be taken. The subscriber can create
    /// other readers.
    ///
    /// ```no_run
    /// # use weir_dds::{States, Subscriber};
    /// # fn f(subscriber: &Subscriber) -> weir_dds::Result<()> {
    /// subscriber.delete_contained_entities()?;
    /// assert!(subscriber.datareaders(States::ANY).is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::AlreadyDeleted`]: the subscriber was closed, and its readers with it.
    /// - [`DdsError::ThreadFailed`]: the participant has failed. The readers are closed all the same.
    pub fn delete_contained_entities(&self) -> Result<()> {
        let outcome = self.check();
        outcome.and(self.close_contained())
    }

    fn close_contained(&self) -> Result<()> {
        // No set becomes accessible at some readers because others are closed before them.
        self.state.access.begin();
        self.owners().iter().for_each(|reader| reader.close_for_all());
        self.state.access.end();
        self.handle.driver.check_failure()
    }

    /// Ends the subscriber and its readers, for all their handles.
    ///
    /// The listener is dropped. Samples that the readers have received can still be taken. From then on, calls that
    /// return a result report [`DdsError::AlreadyDeleted`]. Closing again does nothing.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReaderQos, DdsError, DdsType, Subscriber, Topic};
    /// # fn f<T: DdsType>(subscriber: &Subscriber, topic: &Topic<T>) -> weir_dds::Result<()> {
    /// subscriber.close()?;
    /// let error = subscriber.create_datareader(topic, DataReaderQos::default()).unwrap_err();
    /// assert!(matches!(error, DdsError::AlreadyDeleted("subscriber")));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`DdsError::ThreadFailed`]: the participant has failed. The subscriber has ended all the same.
    pub fn close(&self) -> Result<()> {
        if self.state.is_closed.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        drop(self.state.level.set(None, StatusMask::NONE));
        self.close_contained()
    }

    /// Adds a reader before it is announced.
    pub(crate) fn add(&self, reader: &Arc<ReaderEndpoint>) {
        self.state.access.add(reader);
        let Presentation { scope, coherent_access, .. } = self.state.qos.lock().presentation;
        if scope == PresentationScope::Group && coherent_access {
            self.state.access.set_driver(&self.handle.driver);
            reader.share_sets(&self.state.access);
        }
    }

    /// Begins an access to the samples of several readers (DDS 1.4, 2.2.2.5.2.8).
    ///
    /// Until the matching [`Subscriber::end_access`], no further coherent set becomes accessible that the readers
    /// share (access scope GROUP): the samples that the application finds at one reader belong to those that it finds
    /// at the others. Accesses may be nested. With other scopes, this has no effect.
    ///
    /// Without this call, the application finds sets as they arrive: one may become accessible after it has taken the
    /// samples of the first reader, and before those of the second.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType, Subscriber};
    /// # fn f<T: DdsType>(subscriber: &Subscriber, position: &DataReader<T>, speed: &DataReader<T>)
    /// # -> weir_dds::Result<()> {
    /// subscriber.begin_access()?;
    /// let (positions, speeds) = (position.take(100), speed.take(100));
    /// subscriber.end_access()?;
    /// # let _ = (positions, speeds);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::AlreadyDeleted`]: the subscriber or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn begin_access(&self) -> Result<()> {
        self.check()?;
        self.state.access.begin();
        Ok(())
    }

    /// Ends an access (DDS 1.4, 2.2.2.5.2.9).
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType, Subscriber};
    /// # fn f<T: DdsType>(subscriber: &Subscriber, readers: &[DataReader<T>]) -> weir_dds::Result<()> {
    /// subscriber.begin_access()?;
    /// let samples: Vec<_> = readers.iter().flat_map(|reader| reader.take(100)).collect();
    /// subscriber.end_access()?;
    /// # let _ = samples;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::PreconditionNotMet`]: no access was begun.
    /// - [`DdsError::AlreadyDeleted`]: the subscriber or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn end_access(&self) -> Result<()> {
        self.check()?;
        if self.state.access.end() {
            return Ok(());
        }
        Err(DdsError::PreconditionNotMet("no access was begun: call begin_access first".to_owned()))
    }

    /// Returns the readers that have samples in these states (DDS 1.4, 2.2.2.5.2.10, `get_datareaders`).
    ///
    /// With ordered access and the scope GROUP, a reader is in the list once per sample, in the order in which the
    /// publisher's writers wrote them: taking one sample of each in turn gives all in this order. Otherwise each is in
    /// the list once, in the order in which they were created.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType, Subscriber};
    /// use weir_dds::States;
    ///
    /// # #[derive(DdsType, Default)]
    /// # #[dds(extensibility = "final")]
    /// # struct Position {
    /// #     x: f64,
    /// # }
    /// # fn f(subscriber: &Subscriber) -> weir_dds::Result<()> {
    /// subscriber.begin_access()?;
    /// for reader in subscriber.datareaders(States::NOT_READ) {
    ///     if let Some(positions) = reader.typed::<Position>() {
    ///         println!("{}: {} samples", positions.topic_name(), positions.take(1).len());
    ///     }
    /// }
    /// subscriber.end_access()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn datareaders(&self, states: States) -> Vec<AnyDataReader> {
        self.handle.driver.flush_queued();
        let readers = self.owners();
        let samples: Vec<Vec<_>> = readers
            .iter()
            .map(|reader| {
                let mut positions = Vec::new();
                reader.endpoint.core.lock().group_positions(states, &mut positions);
                positions
            })
            .collect();
        let Presentation { scope, ordered_access, .. } = self.state.qos.lock().presentation;
        let order = match scope {
            PresentationScope::Group if ordered_access => groups::merge(&samples),
            _ => (0..readers.len()).filter(|index| !samples[*index].is_empty()).collect(),
        };
        order.into_iter().map(|index| AnyDataReader::of(Arc::clone(&readers[index]))).collect()
    }

    /// Sets the listener for DATA_ON_READERS and for the events in `mask` of readers that have no listener for them.
    ///
    /// Other events are for the listener of the participant. Without a listener, those in `mask` are dropped (DDS 1.4,
    /// 2.2.4.2.3). A listener that holds a handle of the participant or of its entities keeps the participant alive.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Subscriber, Topic};
    /// # fn f<T: DdsType>(subscriber: &Subscriber, topic: &Topic<T>) -> weir_dds::Result<()> {
    /// use std::sync::Arc;
    /// use weir_dds::{States, StatusMask, SubscriberListener};
    ///
    /// struct Printer;
    ///
    /// impl SubscriberListener for Printer {
    ///     fn on_data_on_readers(&self, subscriber: &Subscriber) {
    ///         println!("{} readers have samples", subscriber.datareaders(States::NOT_READ).len());
    ///     }
    /// }
    ///
    /// subscriber.set_listener(Some(Arc::new(Printer)), StatusMask::DATA_ON_READERS);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_listener(&self, listener: Option<Arc<dyn SubscriberListener>>, mask: StatusMask) {
        if listener.is_some() {
            self.handle.driver.start_calling();
        }
        let before = self.state.level.set(listener, mask);
        self.state.access.readers().iter().for_each(|reader| reader.listeners_changed());
        drop(before);
    }

    /// Returns the listener.
    ///
    /// ```no_run
    /// # use weir_dds::Subscriber;
    /// # fn f(subscriber: &Subscriber) -> weir_dds::Result<()> {
    /// assert!(subscriber.listener().is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn listener(&self) -> Option<Arc<dyn SubscriberListener>> {
        self.state.level.listener()
    }

    /// Returns how many calls of the subscriber's listener panicked. The panic hook has reported each on standard
    /// error.
    ///
    /// ```no_run
    /// # use weir_dds::Subscriber;
    /// # fn f(subscriber: &Subscriber) -> weir_dds::Result<()> {
    /// println!("{} calls of the listener panicked", subscriber.listener_panics());
    /// # Ok(())
    /// # }
    /// ```
    pub fn listener_panics(&self) -> u64 {
        self.state.level.panics.count()
    }

    /// Calls `on_data_available` for all readers of the subscriber that have unread samples.
    ///
    /// A listener that is called for DATA_ON_READERS can pass the data on to those of the readers (DDS 1.4,
    /// 2.2.2.5.2.11).
    ///
    /// If another thread calls a listener of a reader meanwhile, that thread calls `on_data_available` next, and this
    /// call does not wait for it. Within `on_data_available` of a reader, it is not called for that reader again.
    ///
    /// ```no_run
    /// # use weir_dds::Subscriber;
    /// use weir_dds::SubscriberListener;
    ///
    /// struct Distribute;
    ///
    /// impl SubscriberListener for Distribute {
    ///     fn on_data_on_readers(&self, subscriber: &Subscriber) {
    ///         // Now the listeners of the readers that have data are called.
    ///         subscriber.notify_datareaders();
    ///     }
    /// }
    /// ```
    pub fn notify_datareaders(&self) {
        for reader in self.owners() {
            let has_unread = reader.endpoint.core.lock().has_unread();
            if has_unread {
                reader.endpoint.pass_data_on();
            }
        }
        self.handle.driver.flush_queued();
    }

    /// Returns the statuses of the subscriber that have changed: none, or DATA_ON_READERS.
    ///
    /// DATA_ON_READERS is set when samples arrive. It is reset when samples of any reader are accessed, when a
    /// listener is called for them, and when those that arrived since then are gone: they have expired or were purged,
    /// or their reader was closed.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Subscriber, Topic};
    /// # fn f<T: DdsType>(subscriber: &Subscriber, topic: &Topic<T>) -> weir_dds::Result<()> {
    /// use weir_dds::{States, StatusKind};
    ///
    /// if subscriber.status_changes().contains(StatusKind::DataOnReaders) {
    ///     println!("{} readers", subscriber.datareaders(States::NOT_READ).len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn status_changes(&self) -> StatusMask {
        self.watch();
        let is_set = self.state.access.readers().iter().any(|reader| reader.has_data_for_subscriber());
        [(StatusKind::DataOnReaders, is_set)].into_iter().collect()
    }

    /// Keeps DATA_ON_READERS from now on.
    pub(crate) fn watch(&self) {
        if !self.state.is_tracked.swap(true, Ordering::SeqCst) {
            for reader in self.state.access.readers() {
                reader.watch();
                reader.note_for_subscriber();
            }
        }
    }

    /// Returns what the handles of the readers share, without those that are closed.
    fn owners(&self) -> Vec<Arc<data_reader::Inner>> {
        let readers = self.state.access.readers();
        // Readers of builtin topics are not the application's.
        let own = readers.iter().filter(|reader| !reader.entity.is_builtin());
        let owners = own.filter_map(|reader| reader.owner.get()?.upgrade());
        owners.filter(|reader| !reader.is_closed()).collect()
    }
}

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Subscriber({})", self.handle.driver.prefix)
    }
}
