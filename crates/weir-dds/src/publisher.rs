//! Publishers, which create writers (DDS 1.4, 2.2.2.4.1).

use std::sync::Arc;

use weir_cdr::DdsType;

use crate::data_writer::DataWriter;
use crate::driver::start::Handle;
use crate::error::Result;
use crate::listener::DataWriterListener;
use crate::qos::DataWriterQos;
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
    pub fn create_datawriter<T: DdsType>(
        &self,
        topic: &Topic<T>,
        qos: DataWriterQos,
    ) -> Result<DataWriter<T>> {
        DataWriter::new(&self.handle, topic, qos, None)
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
        DataWriter::new(&self.handle, topic, qos, Some(Arc::new(listener)))
    }
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Publisher({})", self.handle.driver.prefix)
    }
}
