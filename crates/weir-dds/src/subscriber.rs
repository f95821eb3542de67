//! Subscribers, which create readers (DDS 1.4, 2.2.2.5.2).

use std::sync::Arc;

use weir_cdr::DdsType;

use crate::content_filter::TopicDescription;
use crate::data_reader::DataReader;
use crate::driver::start::Handle;
use crate::error::Result;
use crate::listener::DataReaderListener;
use crate::qos::DataReaderQos;

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
/// let subscriber = participant.create_subscriber();
/// let reader = subscriber.create_datareader(&topic, DataReaderQos::default().reliable())?;
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
#[derive(Clone)]
pub struct Subscriber {
    pub(crate) handle: Arc<Handle>,
}

impl Subscriber {
    /// Creates a reader of a topic, or of a content-filtered topic.
    ///
    /// The reader is announced at once and matches writers from then on.
    ///
    /// # Errors
    /// - [`DdsError::BadParameter`](crate::DdsError::BadParameter): a QoS value is out of range.
    /// - [`DdsError::InconsistentPolicy`](crate::DdsError::InconsistentPolicy): policies contradict
    ///   each other.
    pub fn create_datareader<T: DdsType>(
        &self,
        topic: &impl TopicDescription<T>,
        qos: DataReaderQos,
    ) -> Result<DataReader<T>> {
        DataReader::new(&self.handle, topic.topic(), topic.filter(), qos, None)
    }

    /// Creates a reader whose listener is set before the reader is announced.
    ///
    /// The listener misses no event.
    ///
    /// # Errors
    /// As for [`Subscriber::create_datareader`].
    pub fn create_datareader_with_listener<T: DdsType>(
        &self,
        topic: &impl TopicDescription<T>,
        qos: DataReaderQos,
        listener: impl DataReaderListener<T> + 'static,
    ) -> Result<DataReader<T>> {
        DataReader::new(&self.handle, topic.topic(), topic.filter(), qos, Some(Arc::new(listener)))
    }
}

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Subscriber({})", self.handle.driver.prefix)
    }
}
