//! Makes readers (DDS 1.4 §2.2.2.5.2).

use std::sync::Arc;

use weir_cdr::DdsType;

use crate::data_reader::DataReader;
use crate::driver::start::Handle;
use crate::error::Result;
use crate::listener::DataReaderListener;
use crate::qos::DataReaderQos;
use crate::topic::Topic;

/// Makes readers of one participant.
#[derive(Clone)]
pub struct Subscriber {
    pub(crate) handle: Arc<Handle>,
}

impl Subscriber {
    /// A reader of a topic. It is announced at once and matches writers from then on.
    ///
    /// # Errors
    /// [`DdsError::BadParameter`](crate::DdsError::BadParameter) or
    /// [`DdsError::InconsistentPolicy`](crate::DdsError::InconsistentPolicy) when the QoS cannot be.
    /// [`DdsError::Unsupported`](crate::DdsError::Unsupported) when it has a policy that is not enforced yet: see
    /// [`Qos`](crate::Qos).
    pub fn create_datareader<T: DdsType>(
        &self,
        topic: &Topic<T>,
        qos: DataReaderQos,
    ) -> Result<DataReader<T>> {
        DataReader::new(&self.handle, topic, qos, None)
    }

    /// A reader whose listener misses nothing, because it is there before the reader is announced.
    ///
    /// # Errors
    /// As [`Subscriber::create_datareader`].
    pub fn create_datareader_with_listener<T: DdsType>(
        &self,
        topic: &Topic<T>,
        qos: DataReaderQos,
        listener: impl DataReaderListener<T> + 'static,
    ) -> Result<DataReader<T>> {
        DataReader::new(&self.handle, topic, qos, Some(Arc::new(listener)))
    }
}

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Subscriber({})", self.handle.driver.prefix)
    }
}
