//! Handles of instances and entities (DDS 1.4, 2.3.3, `InstanceHandle_t`).

use std::fmt;

use weir_cdr::DdsType;
use weir_wire::Guid;

use crate::error::Result;
use crate::key::instance_of;

/// Identifies an instance of a topic, or an entity.
///
/// The handle of an instance depends only on its key, not on the writer and its data representation; handles of
/// instances are all zero for topics without a key. The handle of a writer or reader is unique in the domain:
/// [`SampleInfo::publication_handle`](crate::SampleInfo::publication_handle) equals
/// [`DataWriter::instance_handle`](crate::DataWriter::instance_handle) of the writer.
///
/// ```
/// # use weir_dds::{DataReader, DataWriter};
/// # fn f<T: weir_dds::DdsType>(writer: &DataWriter<T>, reader: &DataReader<T>) {
/// let own = reader.take(100).into_iter().filter(|sample| {
///     sample.info.publication_handle == writer.instance_handle()
/// });
/// # let _ = own;
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct InstanceHandle(pub(crate) [u8; 16]);

impl InstanceHandle {
    /// Returns the handle of a sample's instance, whether or not any reader or writer knows it.
    ///
    /// Only the key members of `sample` are used.
    ///
    /// ```
    /// # use weir_dds::{DdsType, InstanceHandle};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// let one = InstanceHandle::of(&Reading { sensor: 7, celsius: 20.0 })?;
    /// let other = InstanceHandle::of(&Reading { sensor: 7, celsius: 30.0 })?;
    /// assert_eq!(one, other);
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// [`DdsError::Encoding`](crate::DdsError::Encoding) if the type does not allow the key.
    pub fn of<T: DdsType>(sample: &T) -> Result<Self> {
        if T::HAS_KEY { Ok(Self(instance_of(sample)?)) } else { Ok(Self::default()) }
    }
}

impl From<Guid> for InstanceHandle {
    #[inline(always)]
    fn from(guid: Guid) -> Self {
        Self(guid.to_bytes())
    }
}

impl fmt::Display for InstanceHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for InstanceHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InstanceHandle({self})")
    }
}
