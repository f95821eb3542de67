//! Payloads that are already serialized, for recorders and bridges.

use std::time::SystemTime;

use weir_cdr::copy::{Stage, copy};
use weir_cdr::{DdsType, Encoding};
use weir_wire::Timestamp;

use super::DataWriter;
use super::write::Source;
use crate::clock::timestamp_of;
use crate::error::{DdsError, Result};
use crate::key::key_hash_of_payload;

/// The bits of the encapsulation options that count the padding (XTypes 1.3, 7.6.3.1.2).
const PADDING_BITS: u8 = 3;

impl<T: DdsType> DataWriter<T> {
    /// Writes a sample that is already serialized: an encapsulation header and CDR, in this
    /// writer's data representation.
    ///
    /// The payload is copied unchanged. Apart from its key, it is not checked against the type.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DataWriter, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>, writer: &DataWriter<T>) -> weir_dds::Result<()> {
    /// // Passes samples on as they are.
    /// for sample in reader.take_serialized(100) {
    ///     if sample.info.valid_data {
    ///         writer.write_serialized(&sample.payload)?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DataWriter::write`]; [`DdsError::BadParameter`] for another representation, or if the
    /// key cannot be read; [`DdsError::Encoding`] if there is no encapsulation header.
    pub fn write_serialized(&self, payload: &[u8]) -> Result<()> {
        self.write_serialized_at(payload, None)
    }

    /// Writes a sample that is already serialized, with a source timestamp chosen by the caller.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DataWriter, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>, writer: &DataWriter<T>) -> weir_dds::Result<()> {
    /// for sample in reader.take_serialized(100) {
    ///     // The time of the first writing stays.
    ///     if let Some(written) = sample.info.source_timestamp() {
    ///         writer.write_serialized_w_timestamp(&sample.payload, written)?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DataWriter::write_serialized`]; [`DdsError::BadParameter`] also if the timestamp is before 1970 or after
    /// 2106.
    pub fn write_serialized_w_timestamp(&self, payload: &[u8], timestamp: SystemTime) -> Result<()> {
        self.write_serialized_at(payload, Some(timestamp_of(timestamp)?))
    }

    fn write_serialized_at(&self, payload: &[u8], timestamp: Option<Timestamp>) -> Result<()> {
        let inner = &*self.inner;
        let is_ours = |encoding| (encoding == Encoding::Xcdr1) == (inner.encoding == Encoding::Xcdr1);
        if !is_ours(weir_cdr::payload_reader_of::<T>(payload)?.encoding()) {
            let text = format!("the payload is not in {:?}, which this writer offers", inner.encoding);
            return Err(DdsError::BadParameter(text));
        }
        let key = if T::HAS_KEY && inner.needs_key() {
            let text = || DdsError::BadParameter("the payload has no key, or a malformed one".to_owned());
            Some(key_hash_of_payload::<T>(payload, false).ok_or_else(text)?)
        } else {
            None
        };
        let padded = payload.len().next_multiple_of(4);
        inner.write(Source::<T>::Serialized(payload), (key, padded), timestamp)
    }
}

/// Copies a payload to `room`, pads it, and records the padding in the encapsulation header.
pub(super) fn copy_padded(payload: &[u8], room: &mut [u8]) -> Result<()> {
    let (value, padding) = room.split_at_mut(payload.len());
    copy(Stage::Encode, value, payload);
    if !padding.is_empty() {
        value[3] = value[3] & !PADDING_BITS | padding.len() as u8;
        padding.fill(0);
    }
    Ok(())
}
