//! Topics, which connect writers and readers (DDS 1.4, 2.2.2.3.2).

use std::any::TypeId;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use weir_cdr::DdsType;
use weir_rtps::discovery_event::TypeDifference;
use weir_wire::Guid;

use crate::driver::endpoints::{Own, Panics};
use crate::driver::listener_turn::{ListenerTurn, call_in_turn};
use crate::driver::observers::{Cause, Observers};
use crate::driver::start::Handle;
use crate::error::{DdsError, Result};
use crate::levels::EnabledStatuses;
use crate::listener::TopicListener;
use crate::qos::TopicQos;
use crate::status::InconsistentTopicStatus;
use crate::status_mask::{StatusKind, StatusMask};
use crate::upper_listeners::Untyped;

/// A name and the type of the samples.
///
/// A handle: clones refer to the same topic.
///
/// ```no_run
/// # use weir_dds::{DdsType, DomainParticipant, ParticipantSettings};
/// # #[derive(DdsType, Default)]
/// # #[dds(extensibility = "final")]
/// # struct Greeting {
/// #     text: String,
/// # }
/// # let participant = DomainParticipant::new(0, ParticipantSettings::default())?;
/// let topic = participant.create_topic::<Greeting>("Greetings")?;
/// assert_eq!((topic.name(), topic.type_name()), ("Greetings", "Greeting"));
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
pub struct Topic<T> {
    pub(crate) state: Arc<TopicState>,
    sample: PhantomData<fn() -> T>,
}

/// A topic whose sample type is not known to the compiler.
///
/// ```no_run
/// use weir_dds::{AnyTopic, DomainParticipantListener, InconsistentTopicStatus};
///
/// struct Log;
///
/// impl DomainParticipantListener for Log {
///     fn on_inconsistent_topic(&self, topic: &AnyTopic, status: InconsistentTopicStatus) {
///         eprintln!("{}: {} endpoints have another type", topic.name(), status.total_count);
///     }
/// }
/// ```
pub type AnyTopic = Topic<Untyped>;

impl<T: DdsType> Topic<T> {
    pub(crate) fn new(handle: &Arc<Handle>, name: &str, qos: TopicQos) -> Self {
        let state = Arc::new(TopicState::with_qos::<T>(name, qos, Arc::downgrade(handle)));
        handle.driver.add_topic(&state);
        Self::of(state)
    }

    /// Returns the name of the type.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Topic};
    /// # fn f<T: DdsType>(topic: &Topic<T>) -> weir_dds::Result<()> {
    /// assert_eq!(topic.type_name(), T::TYPE_NAME);
    /// # Ok(())
    /// # }
    /// ```
    pub fn type_name(&self) -> &'static str {
        T::TYPE_NAME
    }
}

impl<T: 'static> Topic<T> {
    /// Sets the listener for all events, or removes it: then they are for the listener of the participant.
    ///
    /// It is called for what is discovered from then on, if a writer or reader was created with this topic.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Topic};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(topic: &Topic<Reading>) -> weir_dds::Result<()> {
    /// use std::sync::Arc;
    /// use weir_dds::{InconsistentTopicStatus, TopicListener};
    ///
    /// struct Printer;
    ///
    /// impl TopicListener<Reading> for Printer {
    ///     fn on_inconsistent_topic(&self, topic: &Topic<Reading>, status: InconsistentTopicStatus) {
    ///         println!("{}: {} endpoints have another type", topic.name(), status.total_count);
    ///     }
    /// }
    ///
    /// topic.set_listener(Some(Arc::new(Printer)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_listener(&self, listener: Option<Arc<dyn TopicListener<T>>>) {
        let mask = if listener.is_some() { StatusMask::ALL } else { StatusMask::NONE };
        self.set_listener_w_mask(listener, mask);
    }

    /// Sets the listener for the events in `mask`.
    ///
    /// Others are for the listener of the participant. Without a listener, those in `mask` are dropped.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use weir_dds::{DdsType, Topic, TopicListener};
    /// use weir_dds::StatusMask;
    ///
    /// # fn f<T: DdsType>(topic: &Topic<T>, listener: Arc<dyn TopicListener<T>>) {
    /// topic.set_listener_w_mask(Some(listener), StatusMask::INCONSISTENT_TOPIC);
    /// # }
    /// ```
    pub fn set_listener_w_mask(&self, listener: Option<Arc<dyn TopicListener<T>>>, mask: StatusMask) {
        if let Some(handle) = self.state.handle.upgrade().filter(|_| listener.is_some()) {
            handle.driver.start_calling();
        }
        let typed = listener.clone().map(|listener| Box::new(listener) as _);
        let state = Arc::downgrade(&self.state);
        let listener = listener.map(|listener| {
            let call = move || {
                let Some(state) = state.upgrade() else { return };
                let topic = Self::of(state);
                listener.on_inconsistent_topic(&topic, topic.inconsistent_topic_status());
            };
            Arc::new(call) as Listener
        });
        self.state.set_listener(Own { mask, listener, typed });
    }

    /// Returns the listener.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Topic};
    /// # fn f<T: DdsType>(topic: &Topic<T>) -> weir_dds::Result<()> {
    /// assert!(topic.listener().is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn listener(&self) -> Option<Arc<dyn TopicListener<T>>> {
        self.state.own.lock().typed.as_ref()?.downcast_ref().cloned()
    }
}

impl<T> Topic<T> {
    /// Returns the QoS.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Topic};
    /// # fn f<T: DdsType>(topic: &Topic<T>) -> weir_dds::Result<()> {
    /// println!("{:?}", topic.get_qos().reliability);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_qos(&self) -> TopicQos {
        self.state.qos.lock().clone()
    }

    /// Changes the QoS. The topic's writers and readers announce other TOPIC_DATA at once. Their own policies stay as
    /// they are.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Topic};
    /// # fn f<T: DdsType>(topic: &Topic<T>) -> weir_dds::Result<()> {
    /// topic.set_qos(topic.get_qos().topic_data(*b"version 2"))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::ImmutablePolicy`], naming the policies that cannot be changed.
    /// - [`DdsError::InconsistentPolicy`]: policies contradict each other, or the topic data is longer than 1024 bytes.
    /// - [`DdsError::AlreadyDeleted`]: the topic, or its participant, was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn set_qos(&self, qos: TopicQos) -> Result<()> {
        qos.check()?;
        self.state.check()?;
        {
            let mut current = self.state.qos.lock();
            current.check_change(&qos)?;
            *current = qos;
        }
        if let Some(handle) = self.state.handle.upgrade() {
            handle.driver.check()?;
            handle.driver.announce_topic_data(&self.state)?;
        }
        Ok(())
    }

    /// Ends the topic, for all its handles (DDS 1.4, 2.2.2.2.1.6, `delete_topic`).
    ///
    /// The listener is dropped, and [`find_topic`](crate::DomainParticipant::find_topic) finds it no more. From then
    /// on, calls that return a result report [`DdsError::AlreadyDeleted`], and so does creating anything with it.
    /// Closing again does nothing.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Topic};
    /// # fn f<T: DdsType>(topic: &Topic<T>) -> weir_dds::Result<()> {
    /// topic.close()?;
    /// assert!(topic.set_qos(topic.get_qos()).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::PreconditionNotMet`]: writers, readers or content-filtered topics use it. It goes on.
    /// - [`DdsError::ThreadFailed`]: the participant has failed. The topic has ended all the same.
    pub fn close(&self) -> Result<()> {
        let Some(handle) = self.state.handle.upgrade() else {
            self.state.close();
            return Ok(());
        };
        if self.state.check().is_ok() && handle.driver.is_used(&self.state) {
            let text = format!(
                "the topic {:?} is in use: close its writers and readers, and drop its content-filtered topics first",
                self.state.name
            );
            return Err(DdsError::PreconditionNotMet(text));
        }
        self.state.close();
        handle.driver.state.contained.remove_topic(&self.state);
        handle.driver.check_failure()
    }

    pub(crate) fn of(state: Arc<TopicState>) -> Self {
        Self { state, sample: PhantomData }
    }

    /// Returns the topic's name.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Topic};
    /// # fn f<T: DdsType>(topic: &Topic<T>) -> weir_dds::Result<()> {
    /// println!("{}", topic.name());
    /// # Ok(())
    /// # }
    /// ```
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Returns which endpoints of the topic have another type, and resets the change in the status to zero.
    ///
    /// Only endpoints that writers and readers created with this topic could match are compared.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Topic};
    /// # fn f<T: DdsType>(topic: &Topic<T>) -> weir_dds::Result<()> {
    /// if let Some(last) = topic.inconsistent_topic_status().last {
    ///     eprintln!("another type has this topic: {}", last.type_name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn inconsistent_topic_status(&self) -> InconsistentTopicStatus {
        let status = self.state.inconsistent.lock().status.read();
        self.state.observers.notify(Cause::Access);
        status
    }

    /// Returns the statuses of the topic that have changed since they were read: none, or INCONSISTENT_TOPIC.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Topic};
    /// use weir_dds::StatusKind;
    ///
    /// # fn f<T: DdsType>(topic: &Topic<T>) {
    /// if topic.status_changes().contains(StatusKind::InconsistentTopic) {
    ///     println!("{:?}", topic.inconsistent_topic_status());
    /// }
    /// # }
    /// ```
    pub fn status_changes(&self) -> StatusMask {
        self.state.status_changes()
    }

    /// Returns how many calls of the listener panicked. The panic hook has reported each on standard error.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Topic};
    /// # fn f<T: DdsType>(topic: &Topic<T>) -> weir_dds::Result<()> {
    /// println!("{} calls of the listener panicked", topic.listener_panics());
    /// # Ok(())
    /// # }
    /// ```
    pub fn listener_panics(&self) -> u64 {
        self.state.listener_panics.count()
    }
}

impl<T> Clone for Topic<T> {
    fn clone(&self) -> Self {
        Self::of(Arc::clone(&self.state))
    }
}

impl<T> std::fmt::Debug for Topic<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Topic").field(&self.state.name).finish()
    }
}

/// A topic without its sample type, as its endpoints know it.
pub(crate) struct TopicState {
    name: String,
    pub(crate) type_id: TypeId,
    pub(crate) type_name: &'static str,
    qos: Mutex<TopicQos>,
    /// The participant, which a topic does not keep alive.
    pub(crate) handle: Weak<Handle>,
    is_closed: AtomicBool,
    inconsistent: Mutex<Inconsistent>,
    own: Mutex<Own<Listener>>,
    turn: Mutex<ListenerTurn>,
    listener_panics: Panics,
    pub(crate) observers: Observers,
    pub(crate) enabled: EnabledStatuses,
}

type Listener = Arc<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct Inconsistent {
    status: InconsistentTopicStatus,
    /// The endpoints that were counted: several endpoints of this topic find the same one.
    counted: BTreeSet<Guid>,
}

impl TopicState {
    pub(crate) fn new<T: DdsType>(name: &str, handle: Weak<Handle>) -> Self {
        Self::with_qos::<T>(name, TopicQos::default(), handle)
    }

    pub(crate) fn with_qos<T: DdsType>(name: &str, qos: TopicQos, handle: Weak<Handle>) -> Self {
        Self {
            name: name.to_owned(),
            type_id: TypeId::of::<T>(),
            type_name: T::TYPE_NAME,
            qos: Mutex::new(qos),
            handle,
            is_closed: AtomicBool::new(false),
            inconsistent: Mutex::default(),
            own: Mutex::default(),
            turn: Mutex::default(),
            listener_panics: Panics::default(),
            observers: Observers::default(),
            enabled: EnabledStatuses::default(),
        }
    }

    /// Refuses to be used once the topic is closed.
    pub(crate) fn check(&self) -> Result<()> {
        let is_closed = self.is_closed.load(Ordering::SeqCst);
        if is_closed { Err(DdsError::AlreadyDeleted("topic")) } else { Ok(()) }
    }

    /// Ends the topic, for all its handles.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.set_listener(Own::default());
    }

    pub(crate) fn status_changes(&self) -> StatusMask {
        let has_changed = self.inconsistent.lock().status.total_count_change > 0;
        [(StatusKind::InconsistentTopic, has_changed)].into_iter().collect()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns TOPIC_DATA.
    pub(crate) fn data(&self) -> Vec<u8> {
        self.qos.lock().topic_data.clone()
    }

    /// Counts an endpoint with another type. Returns whether it is news.
    pub(crate) fn found(&self, other: Guid, type_name: String, difference: TypeDifference) -> bool {
        let mut inconsistent = self.inconsistent.lock();
        if inconsistent.counted.len() >= COUNTED_MAX {
            inconsistent.counted.clear();
        }
        let is_news = inconsistent.counted.insert(other);
        if is_news {
            inconsistent.status.found(other, type_name, difference);
        }
        is_news
    }

    /// Returns whether a listener of any level is for the topic's status.
    pub(crate) fn has_listener(&self) -> bool {
        let upper = self.handle.upgrade().map(|handle| handle.driver.level.mask());
        (self.own.lock().mask | upper.unwrap_or_default()).contains(StatusKind::InconsistentTopic)
    }

    /// Calls the listener that the status is for. If another thread does so, that thread repeats the call. No lock may
    /// be held.
    pub(crate) fn call_listener(self: &Arc<Self>) {
        call_in_turn(&self.turn, 1, |_| self.call_for_status());
    }

    fn call_for_status(self: &Arc<Self>) {
        let own = self.own.lock().listener_for(StatusKind::InconsistentTopic);
        let topic = AnyTopic::of(Arc::clone(self));
        match own {
            Some(Some(listener)) => self.listener_panics.survive(move || listener()),
            Some(None) => {}
            None if self.is_closed.load(Ordering::SeqCst) => {}
            None => {
                let handle = self.handle.upgrade();
                let level = handle.as_ref().map(|handle| &handle.driver.level);
                let upper = level.and_then(|level| level.listener_for(StatusKind::InconsistentTopic));
                if let (Some(level), Some(Some(listener))) = (level, upper) {
                    let status = topic.inconsistent_topic_status();
                    level.panics.survive(|| listener.on_inconsistent_topic(&topic, status.clone()));
                }
            }
        }
    }

    fn set_listener(&self, own: Own<Listener>) {
        let before = core::mem::replace(&mut *self.own.lock(), own);
        // Dropped without the lock: it may hold the last handle of another entity.
        drop(before);
    }
}

/// Endpoints that are remembered as counted. After that, they may be counted again.
const COUNTED_MAX: usize = 1024;
