//! Samples as a reader hands them out, and what is known about them (DDS 1.4 §2.2.2.5.5).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use weir_rtps::reader::RawSample;
pub use weir_rtps::reader::{InstanceState, States};
use weir_wire::{Guid, SequenceNumber};

/// Names an instance within a reader or a writer: the key hash (RTPS 2.5 §9.6.4.8), zero for topics without a
/// key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct InstanceHandle(pub [u8; 16]);

/// Whether a sample was read before (DDS 1.4 §2.2.2.5.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleState {
    /// It was.
    Read,
    /// It was not.
    NotRead,
}

/// Whether the instance was seen before (DDS 1.4 §2.2.2.5.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewState {
    /// Not since it was born, or came back to life.
    New,
    /// It was.
    NotNew,
}

/// What is known about a sample. The ranks of the specification are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleInfo {
    /// Whether the sample was read before.
    pub sample_state: SampleState,
    /// Whether the instance was seen before.
    pub view_state: ViewState,
    /// Whether the instance is being written.
    pub instance_state: InstanceState,
    /// Whether there is a value; otherwise the sample tells of a change of the instance's state, and only the
    /// key of its data means something.
    pub valid_data: bool,
    /// When it was written, in nanoseconds since the Unix epoch, by the clock of the writer's host.
    pub source_timestamp_ns: Option<u64>,
    /// Which instance.
    pub instance_handle: InstanceHandle,
    /// Which writer.
    pub publication_handle: Guid,
    /// The number of the sample among those of its writer.
    pub sequence_number: SequenceNumber,
    /// How often the instance had come back from being disposed.
    pub disposed_generation_count: u32,
    /// How often the instance had come back from having no writers.
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

    /// When it was written, by the clock of the writer's host.
    pub fn source_timestamp(&self) -> Option<SystemTime> {
        self.source_timestamp_ns.map(|nanos| UNIX_EPOCH + Duration::from_nanos(nanos))
    }
}

/// A value, or news of an instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample<T> {
    /// The value; when [`SampleInfo::valid_data`] is not set, only its key members mean something.
    pub data: T,
    /// What is known about it.
    pub info: SampleInfo,
}

/// Samples in memory that is used again: once it is warm, taking samples into it allocates nothing, and values
/// keep the memory of their strings and sequences.
#[derive(Debug, Default)]
pub struct SampleSeq<T> {
    slots: Vec<Sample<T>>,
    len: usize,
}

impl<T: Default> SampleSeq<T> {
    /// An empty sequence.
    pub fn new() -> Self {
        Self { slots: Vec::new(), len: 0 }
    }

    /// The samples.
    #[inline]
    pub fn as_slice(&self) -> &[Sample<T>] {
        &self.slots[..self.len]
    }

    /// The samples, one after the other.
    #[inline]
    pub fn iter(&self) -> std::slice::Iter<'_, Sample<T>> {
        self.as_slice().iter()
    }

    /// The samples, one after the other, to be changed: large values can be moved out, or let go of before the next
    /// ones come.
    #[inline]
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Sample<T>> {
        self.slots[..self.len].iter_mut()
    }

    /// Number of samples.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// A slot behind the last sample, whose value is to be overwritten.
    #[inline]
    pub(crate) fn slot(&mut self, info: SampleInfo) -> &mut T {
        match self.slots.get_mut(self.len) {
            Some(slot) => slot.info = info,
            None => self.slots.push(Sample { data: T::default(), info }),
        }
        &mut self.slots[self.len].data
    }

    /// Makes the slot that was asked for last a sample.
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
