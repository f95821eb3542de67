//! Publishers, which create writers (DDS 1.4, 2.2.2.4.1).

use std::sync::Arc;

use weir_cdr::DdsType;

use crate::data_writer::DataWriter;
use crate::driver::start::Handle;
use crate::error::Result;
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
/// let publisher = participant.create_publisher();
/// let writer = publisher.create_datawriter(&topic, DataWriterQos::default().keep_last(10))?;
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
#[derive(Clone)]
pub struct Publisher {
    pub(crate) handle: Arc<Handle>,
    pub(crate) state: Arc<PublisherState>,
}

impl Publisher {
    /// Creates a writer of a topic.
    ///
    /// The writer is announced at once and matches readers from then on.
    ///
    /// # Errors
    /// - [`DdsError::BadParameter`](crate::DdsError::BadParameter): a QoS value is out of range.
    /// - [`DdsError::InconsistentPolicy`](crate::DdsError::InconsistentPolicy): policies contradict
    ///   each other.
    /// - [`DdsError::Unsupported`](crate::DdsError::Unsupported): a policy is not enforced yet; see
    ///   [`Qos`](crate::Qos).
    pub fn create_datawriter<T: DdsType>(
        &self,
        topic: &Topic<T>,
        qos: DataWriterQos,
    ) -> Result<DataWriter<T>> {
        DataWriter::new(self, topic, qos, None)
    }

    /// Creates a writer whose listener is set before the writer is announced.
    ///
    /// The listener misses no event: readers that are known already may match during this call.
    ///
    /// # Errors
    /// As for [`Publisher::create_datawriter`].
    pub fn create_datawriter_with_listener<T: DdsType>(
        &self,
        topic: &Topic<T>,
        qos: DataWriterQos,
        listener: impl DataWriterListener<T> + 'static,
    ) -> Result<DataWriter<T>> {
        DataWriter::new(self, topic, qos, Some(Arc::new(listener)))
    }

    /// Sets the listener for the events in `mask` of writers that have no listener for them.
    ///
    /// Other events are for the listener of the participant. Without a listener, those in `mask` are dropped (DDS 1.4,
    /// 2.2.4.2.3). A listener that holds a handle of the participant or of its entities keeps the participant alive.
    pub fn set_listener(&self, listener: Option<Arc<dyn PublisherListener>>, mask: StatusMask) {
        if listener.is_some() {
            self.handle.driver.start_calling();
        }
        drop(self.state.level.set(listener, mask));
    }

    /// Returns the listener.
    pub fn listener(&self) -> Option<Arc<dyn PublisherListener>> {
        self.state.level.listener()
    }

    /// Returns how many calls of the publisher's listener panicked. The panic hook has reported each on standard error.
    pub fn listener_panics(&self) -> u64 {
        self.state.level.panics.count()
    }

    /// Returns the statuses of the publisher that have changed: it has none (DDS 1.4, 2.2.4.1).
    pub fn status_changes(&self) -> StatusMask {
        StatusMask::NONE
    }
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Publisher({})", self.handle.driver.prefix)
    }
}
