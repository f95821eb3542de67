//! What a participant has created: found by name, and closed together (DDS 1.4, 2.2.2.2.1).

use std::any::TypeId;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use weir_cdr::DdsType;

use crate::clock;
use crate::content_filter::{ContentFilteredTopic, FilterState, TopicDescription, sealed};
use crate::driver::observers::Cause;
use crate::driver::shared::Driver;
use crate::error::{DdsError, Result};
use crate::levels::{PublisherState, SubscriberState};
use crate::participant::{DomainParticipant, check_topic_name};
use crate::publisher::Publisher;
use crate::subscriber::Subscriber;
use crate::topic::{Topic, TopicState};

/// The entities of a participant that exist, in the order in which they were created.
#[derive(Default)]
pub(crate) struct Contained {
    lists: Mutex<Lists>,
    /// Calls of [`DomainParticipant::find_topic`] that wait.
    finders: AtomicU32,
}

#[derive(Default)]
struct Lists {
    topics: Vec<Named>,
    filtered: Vec<Weak<FilterState>>,
    publishers: Vec<Weak<PublisherState>>,
    subscribers: Vec<Weak<SubscriberState>>,
}

/// A topic, and what it is found by: a search that is not for it must not have the last handle, whose end would call
/// the application.
struct Named {
    name: String,
    type_id: TypeId,
    type_name: &'static str,
    topic: Weak<TopicState>,
}

impl Contained {
    pub(crate) fn add_filtered(&self, filtered: &Arc<FilterState>) {
        add(&mut self.lists.lock().filtered, filtered);
    }

    pub(crate) fn add_publisher(&self, publisher: &Arc<PublisherState>) {
        add(&mut self.lists.lock().publishers, publisher);
    }

    pub(crate) fn add_subscriber(&self, subscriber: &Arc<SubscriberState>) {
        add(&mut self.lists.lock().subscribers, subscriber);
    }

    /// Returns the publishers and subscribers.
    pub(crate) fn groups(&self) -> (Vec<Arc<PublisherState>>, Vec<Arc<SubscriberState>>) {
        let lists = self.lists.lock();
        (existing(&lists.publishers), existing(&lists.subscribers))
    }

    /// Returns what wait sets may wait for.
    pub(crate) fn observed(&self) -> Observed {
        let lists = self.lists.lock();
        Observed {
            topics: lists.topics.iter().map(|it| Weak::clone(&it.topic)).collect(),
            publishers: lists.publishers.clone(),
            subscribers: lists.subscribers.clone(),
        }
    }

    /// Forgets all entities, and returns them.
    fn take(&self) -> Lists {
        core::mem::take(&mut *self.lists.lock())
    }

    /// Forgets a topic that was closed.
    pub(crate) fn remove_topic(&self, topic: &Arc<TopicState>) {
        self.lists.lock().topics.retain(|it| !core::ptr::eq(it.topic.as_ptr(), Arc::as_ptr(topic)));
    }

    /// Returns whether a call waits for a topic.
    pub(crate) fn is_searched(&self) -> bool {
        self.finders.load(Ordering::SeqCst) > 0
    }

    /// Returns the first topic with a name and a type. An error: only topics with other types have the name.
    fn topic(&self, name: &str, type_id: TypeId) -> Option<Result<Arc<TopicState>>> {
        let lists = self.lists.lock();
        let named = || lists.topics.iter().filter(|it| it.name == name && it.topic.strong_count() > 0);
        let found = named().filter(|it| it.type_id == type_id).find_map(|it| it.topic.upgrade());
        found.map(Ok).or_else(|| {
            let other = named().find(|it| it.type_id != type_id)?.type_name;
            let text = format!("the topic {name:?} has the type {other}: find it with this type");
            Some(Err(DdsError::PreconditionNotMet(text)))
        })
    }

    fn filtered(&self, name: &str, type_id: TypeId) -> Option<Arc<FilterState>> {
        let filtered = existing(&self.lists.lock().filtered);
        filtered.into_iter().find(|it| it.name() == name && it.topic.type_id == type_id)
    }

    fn is_filtered(&self, topic: &Arc<TopicState>) -> bool {
        let filtered = existing(&self.lists.lock().filtered);
        filtered.iter().any(|it| Arc::ptr_eq(&it.topic, topic))
    }
}

/// The entities of a participant that have status conditions.
pub(crate) struct Observed {
    topics: Vec<Weak<TopicState>>,
    publishers: Vec<Weak<PublisherState>>,
    subscribers: Vec<Weak<SubscriberState>>,
}

impl Observed {
    /// Has wait sets look at their conditions again.
    pub(crate) fn notify(&self) {
        existing(&self.topics).iter().for_each(|it| it.observers.notify(Cause::News));
        existing(&self.publishers).iter().for_each(|it| it.observers.notify(Cause::News));
        existing(&self.subscribers).iter().for_each(|it| it.observers.notify(Cause::News));
    }
}

/// Adds an entity. Removes those that are gone before the list would grow.
fn add<T>(list: &mut Vec<Weak<T>>, entity: &Arc<T>) {
    if list.len() == list.capacity() {
        list.retain(|entity| entity.strong_count() > 0);
    }
    list.push(Arc::downgrade(entity));
}

fn existing<T>(list: &[Weak<T>]) -> Vec<Arc<T>> {
    list.iter().filter_map(Weak::upgrade).collect()
}

/// Counts a call that waits for a topic until dropped.
struct Finder<'a>(&'a Contained);

impl<'a> Finder<'a> {
    fn new(contained: &'a Contained) -> Self {
        contained.finders.fetch_add(1, Ordering::SeqCst);
        Self(contained)
    }
}

impl Drop for Finder<'_> {
    fn drop(&mut self) {
        self.0.finders.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Driver {
    /// Returns whether writers, readers or content-filtered topics use a topic.
    pub(crate) fn is_used(&self, topic: &Arc<TopicState>) -> bool {
        let table = self.routes.table();
        table.writers.values().any(|writer| Arc::ptr_eq(&writer.topic, topic))
            || table.readers.values().any(|reader| Arc::ptr_eq(&reader.topic, topic))
            || self.state.contained.is_filtered(topic)
    }

    /// Adds a topic, and wakes calls that wait for it.
    pub(crate) fn add_topic(&self, topic: &Arc<TopicState>) {
        let contained = &self.state.contained;
        {
            let topics = &mut contained.lists.lock().topics;
            if topics.len() == topics.capacity() {
                topics.retain(|it| it.topic.strong_count() > 0);
            }
            topics.push(Named {
                name: topic.name().to_owned(),
                type_id: topic.type_id,
                type_name: topic.type_name,
                topic: Arc::downgrade(topic),
            });
        }
        if contained.is_searched() {
            self.announce_discovery();
        }
    }
}

/// What [`DomainParticipant::lookup_topicdescription`] finds: a topic, or a content-filtered topic.
///
/// Readers can be created with it as it is.
///
/// ```no_run
/// # use weir_dds::{DataReader, DdsType, DomainParticipant};
/// use weir_dds::FoundTopic;
///
/// # fn f<T: DdsType>(participant: &DomainParticipant) {
/// match participant.lookup_topicdescription::<T>("FastPositions") {
///     Some(FoundTopic::ContentFiltered(topic)) => println!("filtered by {}", topic.filter_expression()),
///     Some(_) => println!("not filtered"),
///     None => println!("not there"),
/// }
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum FoundTopic<T> {
    /// A topic.
    Topic(Topic<T>),
    /// A content-filtered topic.
    ContentFiltered(ContentFilteredTopic<T>),
}

impl<T: DdsType> TopicDescription<T> for FoundTopic<T> {
    fn name(&self) -> &str {
        match self {
            Self::Topic(topic) => topic.name(),
            Self::ContentFiltered(topic) => topic.name(),
        }
    }

    fn type_name(&self) -> &'static str {
        T::TYPE_NAME
    }
}

impl<T> sealed::Filtered<T> for FoundTopic<T> {
    fn topic(&self) -> &Topic<T> {
        match self {
            Self::Topic(topic) => topic.topic(),
            Self::ContentFiltered(topic) => topic.topic(),
        }
    }

    #[expect(private_interfaces, reason = "the trait cannot be named outside of this crate")]
    fn filter(&self) -> Option<&Arc<FilterState>> {
        match self {
            Self::Topic(topic) => topic.filter(),
            Self::ContentFiltered(topic) => topic.filter(),
        }
    }
}

impl DomainParticipant {
    /// Returns a topic with a name and a type, as soon as there is one (DDS 1.4, 2.2.2.2.1.11).
    ///
    /// That is a topic that this participant has created, in any thread. Otherwise, it is a topic that a writer or a
    /// reader of another participant has: then it is created here, with the
    /// [default QoS](Self::set_default_topic_qos). Waits for the first of them; meanwhile the calling thread polls for
    /// a participant without threads.
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
    /// let participant = DomainParticipant::new(83, ParticipantSettings::default().interface("lo"))?;
    /// let created = participant.create_topic::<Greeting>("Greetings")?;
    /// let found = participant.find_topic::<Greeting>("Greetings", Duration::from_secs(10))?;
    /// assert_eq!(found.name(), created.name());
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::Timeout`]: there is none.
    /// - [`DdsError::PreconditionNotMet`]: this participant has the topic with another type.
    /// - [`DdsError::BadParameter`]: the name is empty, longer than 256 bytes, or contains a zero byte.
    /// - [`DdsError::AlreadyDeleted`]: the participant was closed, also while the call waited.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn find_topic<T: DdsType>(&self, name: &str, timeout: Duration) -> Result<Topic<T>> {
        let driver = &self.handle.driver;
        driver.check()?;
        check_topic_name(name)?;
        let contained = &driver.state.contained;
        let _finder = Finder::new(contained);
        let mut found = None;
        let is_done = || {
            found = contained.topic(name, TypeId::of::<T>()).map(|topic| topic.map(Some)).or_else(|| {
                let is_remote = driver.discovery.look(|core| core.has_discovered_topic(name, T::TYPE_NAME));
                is_remote.then_some(Ok(None))
            });
            found.is_some() || driver.has_ended()
        };
        driver.wait_for_matches(clock::now() + timeout, is_done);
        driver.check()?;
        match found {
            Some(Ok(Some(topic))) => Ok(Topic::of(topic)),
            Some(Ok(None)) => self.create_topic(name),
            Some(Err(error)) => Err(error),
            None => Err(DdsError::Timeout {
                what: "the creation of the topic",
                waited: timeout,
                hint: format!(": no participant has a topic {name:?} of type {}", T::TYPE_NAME),
            }),
        }
    }

    /// Returns a topic or a content-filtered topic that this participant has created, by its name and type (DDS 1.4,
    /// 2.2.2.2.1.12).
    ///
    /// Does not wait. If several have the name, the first one. `None`: there is none, or all handles to it were dropped
    /// and no writer or reader has it.
    ///
    /// ```
    /// use weir_dds::{DataReaderQos, DdsType, DomainParticipant, ParticipantSettings};
    ///
    /// #[derive(DdsType, Default)]
    /// #[dds(extensibility = "final")]
    /// struct Position {
    ///     speed: f64,
    /// }
    ///
    /// let participant = DomainParticipant::new(83, ParticipantSettings::default().interface("lo"))?;
    /// let topic = participant.create_topic::<Position>("Positions")?;
    /// let fast = participant.create_contentfilteredtopic("FastPositions", &topic, "speed > %0", &["30.0"])?;
    /// if let Some(found) = participant.lookup_topicdescription::<Position>("FastPositions") {
    ///     participant.create_subscriber()?.create_datareader(&found, DataReaderQos::default())?;
    /// }
    /// # drop(fast);
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    pub fn lookup_topicdescription<T: DdsType>(&self, name: &str) -> Option<FoundTopic<T>> {
        let contained = &self.handle.driver.state.contained;
        let topic = contained.topic(name, TypeId::of::<T>()).and_then(Result::ok);
        topic.map(|topic| FoundTopic::Topic(Topic::of(topic))).or_else(|| {
            let filtered = contained.filtered(name, TypeId::of::<T>())?;
            Some(FoundTopic::ContentFiltered(ContentFilteredTopic::of(filtered)))
        })
    }

    /// Closes all that the participant has created: its publishers and subscribers with their writers and readers, and
    /// its topics (DDS 1.4, 2.2.2.2.1.18).
    ///
    /// Handles to them may be left. Writing, and creating anything with them, fails with
    /// [`DdsError::AlreadyDeleted`], and their listeners are dropped. The participant can create others. The readers of
    /// [builtin topics](Self::builtin_subscriber) stay.
    ///
    /// Waits for each writer as [`DataWriter::close`](crate::DataWriter::close) does.
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
    /// let writer = participant.create_publisher()?.create_datawriter(&topic, Default::default())?;
    /// participant.delete_contained_entities()?;
    /// assert!(matches!(writer.write(&Greeting::default()), Err(DdsError::AlreadyDeleted(_))));
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// The first of these; all are closed all the same:
    /// - [`DdsError::Timeout`]: a writer could not send its samples, or their end was not acknowledged in time.
    /// - [`DdsError::AlreadyDeleted`]: the participant was closed, and its entities with it.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn delete_contained_entities(&self) -> Result<()> {
        let outcome = self.handle.driver.check();
        outcome.and(self.close_contained())
    }

    /// Closes all that the participant has created. The first error of: a failure, the end of a writer.
    pub(crate) fn close_contained(&self) -> Result<()> {
        let handle = &self.handle;
        let Lists { topics, publishers, subscribers, .. } = handle.driver.state.contained.take();
        topics.iter().filter_map(|it| it.topic.upgrade()).for_each(|topic| topic.close());
        let mut outcome = handle.driver.check_failure();
        // Writers do not wait for readers that are closed.
        for state in existing(&subscribers) {
            outcome = outcome.and(Subscriber { handle: Arc::clone(handle), state }.close());
        }
        for state in existing(&publishers) {
            outcome = outcome.and(Publisher { handle: Arc::clone(handle), state }.close());
        }
        outcome
    }
}
