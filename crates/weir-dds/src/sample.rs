//! Samples as a reader returns them, and their metadata (DDS 1.4, 2.2.2.5.5).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use weir_rtps::reader::RawSample;
pub use weir_rtps::reader::{InstanceState, States};
use weir_wire::{Guid, SequenceNumber};

/// Identifies an instance within a reader or a writer.
///
/// It depends only on the key, not on the writer and its data representation. Zero for topics without a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct InstanceHandle(pub [u8; 16]);

/// Whether a sample was read before (DDS 1.4, 2.2.2.5.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleState {
    /// Read before.
    Read,
    /// Not read before.
    NotRead,
}

/// Whether the instance was seen before (DDS 1.4, 2.2.2.5.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewState {
    /// Not seen since it was created or became alive again.
    New,
    /// Seen before.
    NotNew,
}

/// Metadata of a sample, without the ranks of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleInfo {
    /// Whether the sample was read before.
    pub sample_state: SampleState,
    /// Whether the instance was seen before.
    pub view_state: ViewState,
    /// Whether the instance is alive, disposed, or without writers.
    pub instance_state: InstanceState,
    /// Whether there is a value.
    ///
    /// If not, the sample reports a change of the instance's state, and only the key members of its
    /// data are valid.
    pub valid_data: bool,
    /// Time of writing on the writer's host, in nanoseconds since the Unix epoch.
    pub source_timestamp_ns: Option<u64>,
    /// The instance.
    pub instance_handle: InstanceHandle,
    /// The writer.
    pub publication_handle: Guid,
    /// The sample's number among those of its writer.
    pub sequence_number: SequenceNumber,
    /// How many times the instance became alive again after being disposed.
    pub disposed_generation_count: u32,
    /// How many times the instance became alive again after having no writers.
    pub no_writers_generation_count: u32,
}

impl SampleInfo {
    #[inline(always)]
    pub(crate) fn new(raw: &RawSample<'_>) -> Self {
        Self {
            sample_state: if raw.was_read { SampleState::Read } else { SampleState::NotRead },
            view_state: if raw.is_new_instance { ViewState::New } else { ViewState::NotNew },
            instance_state: raw.instance_state,
            valid_data: raw.kind == weir_rtps::writer::ChangeKind::Alive,
            source_timestamp_ns: raw.source_timestamp.map(weir_wire::Timestamp::to_unix_nanos),
            instance_handle: InstanceHandle(raw.key_hash.unwrap_or_default()),
            publication_handle: raw.writer,
            sequence_number: raw.sequence_number,
            disposed_generation_count: raw.disposed_generation,
            no_writers_generation_count: raw.no_writers_generation,
        }
    }

    /// Returns the time of writing on the writer's host.
    pub fn source_timestamp(&self) -> Option<SystemTime> {
        self.source_timestamp_ns.map(|nanos| UNIX_EPOCH + Duration::from_nanos(nanos))
    }
}

/// A value, or a change of an instance's state.
///
/// ```no_run
/// # use weir_dds::{DataReader, DdsType};
/// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) {
/// for sample in reader.take(10) {
///     match sample.info.valid_data {
///         true => println!("{:?}", sample.data),
///         false => println!("{:?} is {:?}", sample.info.instance_handle, sample.info.instance_state),
///     }
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Sample<T> {
    /// The value; only its key members without [`SampleInfo::valid_data`].
    pub data: T,
    /// The metadata.
    pub info: SampleInfo,
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
#[derive(Debug, Default)]
pub struct SampleSeq<T> {
    slots: Vec<Sample<T>>,
    len: usize,
}

impl<T: Default> SampleSeq<T> {
    /// Creates an empty sequence.
    pub fn new() -> Self {
        Self { slots: Vec::new(), len: 0 }
    }

    /// Returns the samples as a slice.
    #[inline]
    pub fn as_slice(&self) -> &[Sample<T>] {
        &self.slots[..self.len]
    }

    /// Iterates over the samples.
    #[inline]
    pub fn iter(&self) -> std::slice::Iter<'_, Sample<T>> {
        self.as_slice().iter()
    }

    /// Iterates over the samples mutably.
    ///
    /// For example to move large values out, or to release their memory.
    #[inline]
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Sample<T>> {
        self.slots[..self.len].iter_mut()
    }

    /// Returns the number of samples.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no samples.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Returns the slot after the last sample, whose value the caller overwrites.
    #[inline]
    pub(crate) fn slot(&mut self, info: SampleInfo) -> &mut T {
        match self.slots.get_mut(self.len) {
            Some(slot) => slot.info = info,
            None => self.slots.push(Sample { data: T::default(), info }),
        }
        &mut self.slots[self.len].data
    }

    /// Adds the slot returned last to the samples.
    #[inline]
    pub(crate) fn keep(&mut self) {
        self.len += 1;
    }

    pub(crate) fn into_vec(mut self) -> Vec<Sample<T>> {
        self.slots.truncate(self.len);
        self.slots
    }
}

impl<'a, T: Default> IntoIterator for &'a mut SampleSeq<T> {
    type Item = &'a mut Sample<T>;
    type IntoIter = std::slice::IterMut<'a, Sample<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<'a, T: Default> IntoIterator for &'a SampleSeq<T> {
    type Item = &'a Sample<T>;
    type IntoIter = std::slice::Iter<'a, Sample<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
