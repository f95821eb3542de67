//! Topics, which connect writers and readers (DDS 1.4, 2.2.2.3.2).

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use weir_cdr::DdsType;
use weir_rtps::discovery_event::TypeDifference;
use weir_wire::Guid;

use crate::driver::endpoints::Panics;
use crate::driver::start::Handle;
use crate::error::Result;
use crate::listener::TopicListener;
use crate::qos::TopicQos;
use crate::status::InconsistentTopicStatus;

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
    /// The participant, which a topic does not keep alive.
    handle: Weak<Handle>,
    sample: PhantomData<fn() -> T>,
}

impl<T: DdsType> Topic<T> {
    pub(crate) fn new(handle: &Arc<Handle>, name: &str, qos: TopicQos) -> Self {
        let state = Arc::new(TopicState::with_qos(name, qos));
        Self { state, handle: Arc::downgrade(handle), sample: PhantomData }
    }

    /// Returns the topic's name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Returns the name of the type.
    pub fn type_name(&self) -> &'static str {
        T::TYPE_NAME
    }
}

impl<T: 'static> Topic<T> {
    /// Sets or removes the listener.
    ///
    /// It is called for what is discovered from then on, if a writer or reader was created with this topic.
    pub fn set_listener(&self, listener: Option<Arc<dyn TopicListener<T>>>) {
        if let Some(handle) = self.handle.upgrade().filter(|_| listener.is_some()) {
            handle.driver.start_calling();
        }
        let (state, handle) = (Arc::downgrade(&self.state), Weak::clone(&self.handle));
        self.state.set_listener(listener.map(|listener| {
            let call = move || {
                let Some(state) = state.upgrade() else { return };
                let topic = Self { state, handle: Weak::clone(&handle), sample: PhantomData };
                listener.on_inconsistent_topic(&topic, topic.inconsistent_topic_status());
            };
            Arc::new(call) as Listener
        }));
    }
}

impl<T> Topic<T> {
    /// Returns the QoS.
    pub fn get_qos(&self) -> TopicQos {
        self.state.qos.lock().clone()
    }

    /// Changes the QoS. The topic's writers and readers announce other TOPIC_DATA at once. Their own policies stay as
    /// they are.
    ///
    /// # Errors
    /// - [`DdsError::ImmutablePolicy`](crate::DdsError::ImmutablePolicy), naming the policies that cannot be changed.
    /// - [`DdsError::InconsistentPolicy`](crate::DdsError::InconsistentPolicy): policies contradict each other.
    pub fn set_qos(&self, qos: TopicQos) -> Result<()> {
        qos.check()?;
        {
            let mut current = self.state.qos.lock();
            current.check_change(&qos)?;
            *current = qos;
        }
        if let Some(handle) = self.handle.upgrade() {
            handle.driver.check()?;
            handle.driver.announce_topic_data(&self.state)?;
        }
        Ok(())
    }

    /// Returns which endpoints of the topic have another type, and resets the change in the status to zero.
    ///
    /// Only endpoints that writers and readers created with this topic could match are compared.
    pub fn inconsistent_topic_status(&self) -> InconsistentTopicStatus {
        self.state.inconsistent.lock().status.read()
    }

    /// Returns how many calls of the listener panicked. The panic hook has reported each on standard error.
    pub fn listener_panics(&self) -> u64 {
        self.state.listener_panics.count()
    }
}

impl<T> Clone for Topic<T> {
    fn clone(&self) -> Self {
        let (state, handle) = (Arc::clone(&self.state), Weak::clone(&self.handle));
        Self { state, handle, sample: PhantomData }
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
    qos: Mutex<TopicQos>,
    inconsistent: Mutex<Inconsistent>,
    listener: Mutex<Option<Listener>>,
    listener_panics: Panics,
}

type Listener = Arc<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct Inconsistent {
    status: InconsistentTopicStatus,
    /// The endpoints that were counted: several endpoints of this topic find the same one.
    counted: BTreeSet<Guid>,
}

impl TopicState {
    #[cfg(test)]
    pub(crate) fn new(name: &str) -> Self {
        Self::with_qos(name, TopicQos::default())
    }

    pub(crate) fn with_qos(name: &str, qos: TopicQos) -> Self {
        Self {
            name: name.to_owned(),
            qos: Mutex::new(qos),
            inconsistent: Mutex::default(),
            listener: Mutex::default(),
            listener_panics: Panics::default(),
        }
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

    pub(crate) fn has_listener(&self) -> bool {
        self.listener.lock().is_some()
    }

    /// Calls the listener. No lock may be held.
    pub(crate) fn notify(&self) {
        let listener = self.listener.lock().clone();
        if let Some(listener) = listener {
            self.listener_panics.survive(move || listener());
        }
    }

    fn set_listener(&self, listener: Option<Listener>) {
        let before = core::mem::replace(&mut *self.listener.lock(), listener);
        // Dropped without the lock: it may hold the last handle of another entity.
        drop(before);
    }
}

/// Endpoints that are remembered as counted. After that, they may be counted again.
const COUNTED_MAX: usize = 1024;
