//! Makes writers (DDS 1.4 §2.2.2.4.1).

use std::sync::Arc;

use weir_cdr::DdsType;

use crate::data_writer::DataWriter;
use crate::driver::start::Handle;
use crate::error::Result;
use crate::qos::DataWriterQos;
use crate::topic::Topic;

/// Makes writers of one participant.
#[derive(Clone)]
pub struct Publisher {
    pub(crate) handle: Arc<Handle>,
}

impl Publisher {
    /// A writer of a topic. It is announced at once and matches readers from then on.
    ///
    /// # Errors
    /// [`DdsError::BadParameter`](crate::DdsError::BadParameter) or
    /// [`DdsError::InconsistentPolicy`](crate::DdsError::InconsistentPolicy) when the QoS cannot be.
    /// [`DdsError::Unsupported`](crate::DdsError::Unsupported) when it has a policy that is not enforced yet: see
    /// [`Qos`](crate::Qos).
    pub fn create_datawriter<T: DdsType>(
        &self,
        topic: &Topic<T>,
        qos: DataWriterQos,
    ) -> Result<DataWriter<T>> {
        DataWriter::new(&self.handle, topic, qos)
    }
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Publisher({})", self.handle.driver.prefix)
    }
}
