//! Samples without decoding, for recorders and bridges.

use weir_cdr::{Bytes, DdsType};

use super::DataReader;
use crate::error::Result;
use crate::sample::SampleInfo;

/// A sample that was not decoded.
///
/// ```no_run
/// # use weir_dds::{DataReader, DdsType};
/// # #[derive(DdsType, Default, Debug)]
/// # #[dds(extensibility = "final")]
/// # struct Reading {
/// #     #[dds(key)]
/// #     sensor: u32,
/// #     celsius: f64,
/// # }
/// # fn f(reader: &DataReader<Reading>) -> weir_dds::Result<()> {
/// for sample in reader.take_serialized(100) {
///     println!("{} bytes: {:?}", sample.payload.len(), sample.decode::<Reading>()?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SerializedSample {
    /// The value in CDR after its encapsulation header (RTPS 2.5, 10.2).
    ///
    /// If [`SampleInfo::valid_data`] is not set: the key in the same form, or empty if the key is
    /// unknown.
    pub payload: Bytes,
    /// The metadata.
    pub info: SampleInfo,
}

impl SerializedSample {
    /// Decodes the value.
    ///
    /// Members of type [`Bytes`] refer to the payload without a copy.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// for sample in reader.take_serialized(10) {
    ///     println!("{:?}", sample.decode::<T>()?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`DdsError::Encoding`](crate::DdsError::Encoding) if the payload is not a value of this type
    /// or, without valid data, not its key.
    pub fn decode<T: DdsType>(&self) -> Result<T> {
        if !self.info.valid_data {
            return Ok(weir_cdr::from_converted_key_payload(&self.payload)?);
        }
        let mut value = T::default();
        weir_cdr::from_shared_payload_into(&self.payload, &self.payload, &mut value)?;
        Ok(value)
    }
}

impl<T: DdsType> DataReader<T> {
    /// Removes and returns up to `max` samples without decoding them, oldest first.
    ///
    /// Large payloads are not copied: they keep the memory that they were received in.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// for sample in reader.take_serialized(10) {
    ///     println!("{} bytes", sample.payload.len());
    ///     let _value: T = sample.decode()?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn take_serialized(&self, max: usize) -> Vec<SerializedSample> {
        self.select().max(max).take_serialized()
    }

    /// Returns up to `max` samples without decoding them, and marks them as read.
    ///
    /// The oldest are first.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// println!("{} samples", reader.read_serialized(10).len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_serialized(&self, max: usize) -> Vec<SerializedSample> {
        self.select().max(max).read_serialized()
    }
}
