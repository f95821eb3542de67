//! Samples as a reader returns them, and their metadata (DDS 1.4, 2.2.2.5.5).

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use weir_cdr::{CdrError, DdsType};
use weir_rtps::block::Block;
use weir_rtps::reader::RawSample;
pub use weir_rtps::reader::{InstanceState, States};
use weir_rtps::time::Time;
use weir_rtps::writer::ChangeKind;
use weir_wire::{SequenceNumber, Timestamp};

use crate::clock;
use crate::instance_handle::InstanceHandle;
use crate::shared_payload::BlockMemory;

/// Whether a sample was read before (DDS 1.4, 2.2.2.5.1.1).
///
/// ```no_run
/// # use weir_dds::{DdsType, Sample};
/// # fn f<T: DdsType>(sample: &Sample<T>) -> weir_dds::Result<()> {
/// use weir_dds::SampleState;
///
/// println!("read before: {}", sample.info.sample_state == SampleState::Read);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleState {
    /// Read before.
    Read,
    /// Not read before.
    NotRead,
}

/// Whether the instance was seen before (DDS 1.4, 2.2.2.5.1.2).
///
/// ```no_run
/// # use weir_dds::{DdsType, Sample};
/// # #[derive(DdsType, Default, Debug)]
/// # #[dds(extensibility = "final")]
/// # struct Reading {
/// #     #[dds(key)]
/// #     sensor: u32,
/// #     celsius: f64,
/// # }
/// # fn f(sample: &Sample<Reading>) -> weir_dds::Result<()> {
/// use weir_dds::ViewState;
///
/// if sample.info.view_state == ViewState::New {
///     println!("sensor of {:?} is new", sample.data());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewState {
    /// Not seen since it was created or became alive again.
    New,
    /// Seen before.
    NotNew,
}

/// Metadata of a sample (DDS 1.4, 2.2.2.5.5).
///
/// The ranks that depend on the samples returned together are in [`SampleRanks`].
///
/// ```no_run
/// # use weir_dds::{DdsType, Sample};
/// # fn f<T: DdsType + std::fmt::Debug>(sample: &Sample<T>) -> weir_dds::Result<()> {
/// let info = &sample.info;
/// println!("number {} of {}: {:?}", info.sequence_number.0, info.publication_handle, info.instance_state);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SampleInfo {
    /// Whether the sample was read before.
    pub sample_state: SampleState,
    /// Whether the instance was seen before.
    pub view_state: ViewState,
    /// Whether the instance is alive, disposed, or without writers.
    pub instance_state: InstanceState,
    /// Whether there is a value.
    ///
    /// If not, the sample reports a change of the instance's state, or its value could not be decoded
    /// ([`Sample::error`]).
    pub valid_data: bool,
    /// The instance.
    pub instance_handle: InstanceHandle,
    /// The writer.
    pub publication_handle: InstanceHandle,
    /// The sample's number among those of its writer.
    pub sequence_number: SequenceNumber,
    /// How many times the instance had become alive again after being disposed when the sample arrived.
    pub disposed_generation_count: u32,
    /// How many times the instance had become alive again after having no writers when the sample arrived.
    pub no_writers_generation_count: u32,
    /// How many times the instance had become alive again when the sample was accessed.
    instance_generation: u32,
    source_timestamp: Option<Timestamp>,
    reception_time: Time,
}

impl SampleInfo {
    /// The metadata of no sample.
    const NONE: Self = Self {
        sample_state: SampleState::Read,
        view_state: ViewState::NotNew,
        instance_state: InstanceState::NotAliveNoWriters,
        valid_data: false,
        instance_handle: InstanceHandle([0; 16]),
        publication_handle: InstanceHandle([0; 16]),
        sequence_number: SequenceNumber(0),
        disposed_generation_count: 0,
        no_writers_generation_count: 0,
        instance_generation: 0,
        source_timestamp: None,
        reception_time: Time::ZERO,
    };

    #[inline(always)]
    pub(crate) fn new(raw: &RawSample<'_>) -> Self {
        Self {
            sample_state: if raw.was_read { SampleState::Read } else { SampleState::NotRead },
            view_state: if raw.is_new_instance { ViewState::New } else { ViewState::NotNew },
            instance_state: raw.instance_state,
            valid_data: raw.kind == ChangeKind::Alive,
            instance_handle: InstanceHandle(raw.key_hash.unwrap_or_default()),
            publication_handle: raw.writer.into(),
            sequence_number: raw.sequence_number,
            disposed_generation_count: raw.disposed_generation,
            no_writers_generation_count: raw.no_writers_generation,
            instance_generation: raw.instance_generation,
            source_timestamp: raw.source_timestamp,
            reception_time: raw.reception_time,
        }
    }

    /// Returns the time of writing on the writer's host; `None` if the writer sent none.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Sample};
    /// # fn f<T: DdsType + std::fmt::Debug>(sample: &Sample<T>) -> weir_dds::Result<()> {
    /// if let Some(written) = sample.info.source_timestamp() {
    ///     println!("{:?} on the way", sample.info.reception_timestamp().duration_since(written));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn source_timestamp(&self) -> Option<SystemTime> {
        self.source_timestamp_ns().map(|nanos| UNIX_EPOCH + Duration::from_nanos(nanos))
    }

    /// Returns the time of writing on the writer's host, in nanoseconds since the Unix epoch.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// for sample in reader.take(10) {
    ///     println!("{:?}", sample.info.source_timestamp_ns());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn source_timestamp_ns(&self) -> Option<u64> {
        self.source_timestamp.map(Timestamp::to_unix_nanos)
    }

    /// Returns when the sample became available in the reader, on this host's clock.
    ///
    /// A sample that arrived before an earlier one of its writer became available with that one.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// for sample in reader.take(10) {
    ///     println!("arrived at {:?}", sample.info.reception_timestamp());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn reception_timestamp(&self) -> SystemTime {
        clock::wall_clock_at(self.reception_time)
    }

    /// Returns how many times the instance became alive again after this sample arrived, until it was accessed.
    ///
    /// DDS 1.4, 2.2.2.5.1.7. Zero: no later sample in the reader belongs to a later life of the instance.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// for sample in reader.take(10) {
    ///     if sample.info.absolute_generation_rank() > 0 {
    ///         println!("of an earlier life of its instance");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn absolute_generation_rank(&self) -> u32 {
        self.instance_generation.wrapping_sub(self.generation())
    }

    /// How many times the instance had become alive again when the sample arrived.
    fn generation(&self) -> u32 {
        self.disposed_generation_count.wrapping_add(self.no_writers_generation_count)
    }
}

/// A value, a change of an instance's state, or a value that could not be decoded.
///
/// ```no_run
/// # use weir_dds::{DataReader, DdsType};
/// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) {
/// for sample in reader.take(10) {
///     match (sample.data(), sample.error()) {
///         (Some(value), _) => println!("{value:?}"),
///         (None, Some(error)) => eprintln!("a sample of {}: {error}", sample.info.publication_handle),
///         (None, None) => println!("{:?} is {:?}", sample.key(), sample.info.instance_state),
///     }
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Sample<T> {
    /// The metadata.
    pub info: SampleInfo,
    /// The value. Without valid data: the key, or left over from an earlier sample.
    value: T,
    /// Describes `value`, if there is no valid data.
    absent: Absent,
}

/// What there is instead of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absent {
    /// The key members.
    Key,
    /// Nothing: only the key's hash was ever received.
    All,
    /// A payload that is not a value of the type.
    Malformed(CdrError),
}

impl<T> Sample<T> {
    /// Returns the value; `None` if the sample reports a change of state or cannot be decoded.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Sample};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(sample: &Sample<Reading>) -> weir_dds::Result<()> {
    /// match sample.data() {
    ///     Some(reading) => println!("{} measures {}", reading.sensor, reading.celsius),
    ///     None => println!("{:?} is {:?}", sample.key(), sample.info.instance_state),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn data(&self) -> Option<&T> {
        self.info.valid_data.then_some(&self.value)
    }

    /// Returns the value for changes, for example to move large members out.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// for mut sample in reader.take(10) {
    ///     if let Some(value) = sample.data_mut() {
    ///         println!("{:?}", std::mem::take(value));
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn data_mut(&mut self) -> Option<&mut T> {
        self.info.valid_data.then_some(&mut self.value)
    }

    /// Returns the value by itself.
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
    /// let readings: Vec<Reading> = reader.take(100).into_iter().filter_map(|sample| sample.into_data()).collect();
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn into_data(self) -> Option<T> {
        self.info.valid_data.then_some(self.value)
    }

    /// Returns a value whose key members are those of the instance. Without [`Sample::data`], its other members have
    /// their defaults.
    ///
    /// `None` if the sample cannot be decoded, or if the reader has only ever received the key's hash
    /// (some engines send no more when they dispose an instance).
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Sample};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(sample: &Sample<Reading>) -> weir_dds::Result<()> {
    /// if let Some(key) = sample.key() {
    ///     println!("sensor {} has ended", key.sensor);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn key(&self) -> Option<&T> {
        (self.info.valid_data || self.absent == Absent::Key).then_some(&self.value)
    }

    /// Returns why the sample could not be decoded, if so. Its writer has another type, or is faulty.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Sample};
    /// # fn f<T: DdsType>(sample: &Sample<T>) -> weir_dds::Result<()> {
    /// if let Some(error) = sample.error() {
    ///     eprintln!("{} has another type: {error}", sample.info.publication_handle);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn error(&self) -> Option<CdrError> {
        match self.absent {
            Absent::Malformed(error) if !self.info.valid_data => Some(error),
            _ => None,
        }
    }
}

impl<T: DdsType> Sample<T> {
    /// Replaces the sample. Returns whether it could be decoded.
    ///
    /// Takes the fields of the raw sample one by one: passed by reference they would go through memory, with a
    /// store-forwarding stall.
    #[inline(always)]
    pub(crate) fn fill(&mut self, raw: RawSample<'_>) -> bool {
        self.info = SampleInfo::new(&raw);
        if raw.kind != ChangeKind::Alive {
            return self.fill_key(raw.payload);
        }
        match decode(raw.payload, raw.block, &mut self.value) {
            Ok(()) => true,
            Err(error) => {
                self.info.valid_data = false;
                self.absent = Absent::Malformed(error);
                false
            }
        }
    }

    #[inline(never)]
    fn fill_key(&mut self, payload: &[u8]) -> bool {
        self.absent = Absent::All;
        if !payload.is_empty() {
            match weir_cdr::from_converted_key_payload(payload) {
                Ok(key) => (self.value, self.absent) = (key, Absent::Key),
                Err(error) => self.absent = Absent::Malformed(error),
            }
        }
        !matches!(self.absent, Absent::Malformed(_))
    }
}

#[inline(always)]
fn decode<T: DdsType>(payload: &[u8], block: Option<&Arc<Block>>, value: &mut T) -> Result<(), CdrError> {
    match block {
        None => weir_cdr::from_payload_into(payload, value),
        Some(block) => weir_cdr::from_shared_payload_into(payload, &BlockMemory(block), value),
    }
}

impl<T: Default> Default for Sample<T> {
    /// Returns a sample without value and key, to be filled by
    /// [`DataReader::take_next_sample`](crate::DataReader::take_next_sample).
    fn default() -> Self {
        Self { info: SampleInfo::NONE, value: T::default(), absent: Absent::All }
    }
}

impl<T: PartialEq> PartialEq for Sample<T> {
    fn eq(&self, other: &Self) -> bool {
        self.info == other.info && self.key() == other.key() && self.error() == other.error()
    }
}

impl<T: fmt::Debug> fmt::Debug for Sample<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Sample");
        match (self.data(), self.key(), self.error()) {
            (Some(data), _, _) => text.field("data", data),
            (None, Some(key), _) => text.field("key", key),
            (None, None, Some(error)) => text.field("error", &error),
            (None, None, None) => &mut text,
        };
        text.field("info", &self.info).finish()
    }
}

/// The ranks of a sample among samples that were returned together (DDS 1.4, 2.2.2.5.1.6 and 2.2.2.5.1.7).
///
/// ```
/// # use weir_dds::DataReader;
/// use weir_dds::SampleRanks;
///
/// # fn f<T: weir_dds::DdsType>(reader: &DataReader<T>) {
/// let samples = reader.take(100);
/// // Only the latest of each instance.
/// for (sample, ranks) in samples.iter().zip(SampleRanks::of(&samples)) {
///     if ranks.sample_rank == 0 {
///         println!("{}", sample.info.instance_handle);
///     }
/// }
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SampleRanks {
    /// How many later samples of the same instance are among them.
    pub sample_rank: u32,
    /// How many times the instance became alive again between this sample and the last of the same instance among
    /// them.
    pub generation_rank: u32,
    /// How many times the instance became alive again between this sample and the last that the reader had received.
    pub absolute_generation_rank: u32,
}

impl SampleRanks {
    /// Computes the ranks of samples that one call returned, in their order.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// let samples = reader.take(100);
    /// for (sample, ranks) in samples.iter().zip(weir_dds::SampleRanks::of(&samples)) {
    ///     if ranks.sample_rank == 0 {
    ///         println!("the newest of its instance: {sample:?}");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn of<T>(samples: &[Sample<T>]) -> Vec<Self> {
        // Of each instance: samples behind the current one, and the newest generation. That of the last sample may be
        // older: in an order other than that of reception.
        let mut behind = std::collections::HashMap::<_, (u32, u32)>::new();
        for Sample { info, .. } in samples {
            let (_, newest) = behind.entry(info.instance_handle).or_default();
            *newest = info.generation().max(*newest);
        }
        let mut ranks: Vec<Self> = samples
            .iter()
            .rev()
            .map(|Sample { info, .. }| {
                let (count, newest) = behind.entry(info.instance_handle).or_default();
                *count += 1;
                Self {
                    sample_rank: *count - 1,
                    generation_rank: newest.wrapping_sub(info.generation()),
                    absolute_generation_rank: info.absolute_generation_rank(),
                }
            })
            .collect();
        ranks.reverse();
        ranks
    }
}

/// Samples in reusable memory.
///
/// Filled by [`DataReader::take_into`](crate::DataReader::take_into).
///
/// After warm-up, taking samples into it allocates nothing, and values keep the memory of their
/// strings and sequences.
///
/// ```no_run
/// # use weir_dds::{DataReader, DdsType};
/// use weir_dds::SampleSeq;
///
/// # fn f<T: DdsType>(reader: &DataReader<T>) {
/// let mut samples = SampleSeq::new();
/// reader.take_into(&mut samples, 100);
/// println!("{} samples", samples.len());
/// # }
/// ```
#[derive(Debug)]
pub struct SampleSeq<T> {
    slots: Vec<Sample<T>>,
    len: usize,
}

impl<T> SampleSeq<T> {
    /// Creates an empty sequence.
    ///
    /// ```
    /// use weir_dds::SampleSeq;
    ///
    /// let samples = SampleSeq::<u32>::new();
    /// assert!(samples.is_empty());
    /// ```
    pub fn new() -> Self {
        Self { slots: Vec::new(), len: 0 }
    }

    /// Returns the samples as a slice.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// let mut samples = weir_dds::SampleSeq::new();
    /// reader.take_into(&mut samples, 100);
    /// println!("the first: {:?}", samples.as_slice().first());
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn as_slice(&self) -> &[Sample<T>] {
        &self.slots[..self.len]
    }

    /// Iterates over the samples.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// let mut samples = weir_dds::SampleSeq::new();
    /// reader.take_into(&mut samples, 100);
    /// println!("{} ends", samples.iter().filter(|sample| sample.data().is_none()).count());
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn iter(&self) -> std::slice::Iter<'_, Sample<T>> {
        self.as_slice().iter()
    }

    /// Iterates over the samples mutably.
    ///
    /// For example to move large values out, or to release their memory.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// let mut samples = weir_dds::SampleSeq::new();
    /// reader.take_into(&mut samples, 100);
    /// let values = samples.iter_mut().filter_map(|sample| sample.data_mut()).map(std::mem::take);
    /// println!("{:?}", values.collect::<Vec<_>>());
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Sample<T>> {
        self.slots[..self.len].iter_mut()
    }

    /// Iterates over the values: samples without one are left out.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// let mut samples = weir_dds::SampleSeq::new();
    /// reader.take_into(&mut samples, 100);
    /// samples.data().for_each(|value| println!("{value:?}"));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn data(&self) -> impl Iterator<Item = &T> {
        self.iter().filter_map(Sample::data)
    }

    /// Returns the number of samples.
    ///
    /// ```
    /// use weir_dds::SampleSeq;
    ///
    /// assert_eq!(SampleSeq::<u32>::new().len(), 0);
    /// ```
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no samples.
    ///
    /// ```
    /// use weir_dds::SampleSeq;
    ///
    /// assert!(SampleSeq::<u32>::new().is_empty());
    /// ```
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    pub(crate) fn into_vec(mut self) -> Vec<Sample<T>> {
        self.slots.truncate(self.len);
        self.slots
    }
}

impl<T: Default> SampleSeq<T> {
    /// Adds a slot to the samples, which the caller fills.
    #[inline]
    pub(crate) fn add(&mut self) -> &mut Sample<T> {
        if self.len == self.slots.len() {
            self.slots.push(Sample::default());
        }
        self.len += 1;
        &mut self.slots[self.len - 1]
    }
}

impl<T> Default for SampleSeq<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a, T> IntoIterator for &'a mut SampleSeq<T> {
    type Item = &'a mut Sample<T>;
    type IntoIter = std::slice::IterMut<'a, Sample<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<'a, T> IntoIterator for &'a SampleSeq<T> {
    type Item = &'a Sample<T>;
    type IntoIter = std::slice::Iter<'a, Sample<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> IntoIterator for SampleSeq<T> {
    type Item = Sample<T>;
    type IntoIter = std::vec::IntoIter<Sample<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.into_vec().into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of one instance in the order of their source timestamps.
    #[test]
    fn generation_ranks_count_from_the_newest_generation_in_any_order() {
        let samples = [1, 2, 0].map(|disposed_generation_count| {
            let info = SampleInfo { disposed_generation_count, ..SampleInfo::NONE };
            Sample { info, ..Sample::<u32>::default() }
        });
        let ranks = SampleRanks::of(&samples);
        let ranks: Vec<_> = ranks.iter().map(|it| (it.sample_rank, it.generation_rank)).collect();
        assert_eq!(ranks, [(2, 1), (1, 0), (0, 2)]);
    }
}
