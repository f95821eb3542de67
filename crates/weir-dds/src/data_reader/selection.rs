//! Which samples a read or take accesses.

use std::marker::PhantomData;

use weir_cdr::DdsType;
use weir_rtps::reader::{ReaderCore, SampleSelection, States};

use super::DataReader;
use super::serialized::SerializedSample;
use crate::instance_handle::InstanceHandle;
use crate::sample::{Sample, SampleSeq};

/// Selects samples of a reader, to be taken or read.
///
/// Made by [`DataReader::select`]. Without further calls it selects all samples.
///
/// ```no_run
/// # use weir_dds::{DataReader, DdsType};
/// use weir_dds::States;
///
/// # fn f<T: DdsType>(reader: &DataReader<T>) {
/// // What is new, without removing it.
/// let unread = reader.select().states(States::NOT_READ).read();
///
/// // Instance by instance.
/// let mut previous = None;
/// loop {
///     let samples = reader.select().next_instance(previous).max(100).take();
///     let Some(first) = samples.first() else { break };
///     previous = Some(first.info.instance_handle);
/// }
/// # let _ = unread;
/// # }
/// ```
#[must_use = "a selection does nothing before `take` or `read`"]
#[derive(Clone, Copy)]
pub struct Selection<'a, T> {
    reader: &'a DataReader<T>,
    what: What,
    sample: PhantomData<fn() -> T>,
}

/// What a selection says, independent of the type.
#[derive(Clone, Copy)]
pub(super) struct What {
    pub(super) instances: Instances,
    pub(super) states: States,
    pub(super) max: usize,
}

#[derive(Clone, Copy)]
pub(super) enum Instances {
    All,
    One(InstanceHandle),
    Next(Option<InstanceHandle>),
}

impl What {
    /// All samples.
    pub(super) const ALL: Self = Self { instances: Instances::All, states: States::ANY, max: usize::MAX };

    /// The selection for the core; `None`: there is no such instance.
    #[inline]
    pub(super) fn resolve(self, core: &mut ReaderCore) -> Option<SampleSelection> {
        let states = self.states;
        let instance = match self.instances {
            Instances::All => return Some(SampleSelection { states, instance: None }),
            Instances::One(handle) => core.find_instance(handle.0),
            Instances::Next(after) => core.next_instance(after.map(|handle| handle.0), states),
        };
        instance.map(|_| SampleSelection { states, instance })
    }
}

impl<'a, T: DdsType> Selection<'a, T> {
    pub(super) fn new(reader: &'a DataReader<T>) -> Self {
        Self { reader, what: What::ALL, sample: PhantomData }
    }

    /// Selects the samples of one instance.
    ///
    /// None, if the reader never received a sample of it.
    pub fn instance(mut self, handle: InstanceHandle) -> Self {
        self.what.instances = Instances::One(handle);
        self
    }

    /// Selects the samples of the instance after `after`; `None`: of the first instance.
    ///
    /// Only instances that have samples in the selected states count. The order of instances is the reader's own.
    /// `after` may be an instance without writers and samples, if it is the one that was returned last.
    pub fn next_instance(mut self, after: impl Into<Option<InstanceHandle>>) -> Self {
        self.what.instances = Instances::Next(after.into());
        self
    }

    /// Selects samples in these states.
    pub fn states(mut self, states: States) -> Self {
        self.what.states = states;
        self
    }

    /// Limits the number of samples.
    pub fn max(mut self, max: usize) -> Self {
        self.what.max = max;
        self
    }

    /// Removes the samples from the reader and returns them, oldest first.
    pub fn take(self) -> Vec<Sample<T>> {
        let mut samples = SampleSeq::new();
        self.take_into(&mut samples);
        samples.into_vec()
    }

    /// Returns the samples, oldest first, and marks them as read.
    pub fn read(self) -> Vec<Sample<T>> {
        let mut samples = SampleSeq::new();
        self.read_into(&mut samples);
        samples.into_vec()
    }

    /// Removes the samples into reusable memory, and returns their number.
    pub fn take_into(self, samples: &mut SampleSeq<T>) -> usize {
        self.reader.access(samples, self.what, true)
    }

    /// Reads the samples into reusable memory, marks them as read, and returns their number.
    pub fn read_into(self, samples: &mut SampleSeq<T>) -> usize {
        self.reader.access(samples, self.what, false)
    }

    /// Removes the samples and returns them without decoding.
    ///
    /// Large payloads are not copied: they keep the memory that they were received in.
    pub fn take_serialized(self) -> Vec<SerializedSample> {
        self.reader.access_serialized(self.what, true)
    }

    /// Returns the samples without decoding, and marks them as read.
    pub fn read_serialized(self) -> Vec<SerializedSample> {
        self.reader.access_serialized(self.what, false)
    }
}

impl<T> std::fmt::Debug for Selection<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Selection({:?})", self.reader)
    }
}
