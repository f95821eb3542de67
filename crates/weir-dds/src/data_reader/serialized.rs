//! Samples as they came, for recorders and bridges.

use weir_cdr::{Bytes, DdsType};
use weir_rtps::reader::SampleSelection;

use super::DataReader;
use crate::error::Result;
use crate::sample::SampleInfo;
use crate::shared_payload;

/// A sample that was not decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct SerializedSample {
    /// The value in CDR behind its encapsulation header (RTPS 2.5 §10.2). When [`SampleInfo::valid_data`] is not set,
    /// the key in the same form, or nothing if it is not known.
    pub payload: Bytes,
    /// What is known about it.
    pub info: SampleInfo,
}

impl SerializedSample {
    /// The value. Members of type [`Bytes`] are parts of the payload, not copies.
    ///
    /// # Errors
    /// [`DdsError::Encoding`](crate::DdsError::Encoding) when the payload is not a value of this type; for one without
    /// valid data, when it is not its key.
    pub fn decode<T: DdsType>(&self) -> Result<T> {
        if !self.info.valid_data {
            return Ok(weir_cdr::from_key_payload(&self.payload)?);
        }
        let mut value = T::default();
        weir_cdr::from_shared_payload_into(&self.payload, &self.payload, &mut value)?;
        Ok(value)
    }
}

impl<T: DdsType> DataReader<T> {
    /// Removes up to `max` samples, oldest first, and returns them as they came. Large ones are not copied: they keep
    /// the memory that they were received in.
    pub fn take_serialized(&self, max: usize) -> Vec<SerializedSample> {
        self.collect_serialized(max, true)
    }

    /// Returns up to `max` samples, oldest first, as they came, and leaves them where they are, marked as read.
    pub fn read_serialized(&self, max: usize) -> Vec<SerializedSample> {
        self.collect_serialized(max, false)
    }

    fn collect_serialized(&self, max: usize, remove: bool) -> Vec<SerializedSample> {
        self.inner.driver().flush_queued();
        let mut samples = Vec::new();
        self.inner.endpoint.core.lock().access(max, SampleSelection::default(), remove, |raw| {
            samples.push(SerializedSample {
                payload: shared_payload::payload(&raw),
                info: SampleInfo::new(&raw),
            });
            true
        });
        samples
    }
}
