//! Which samples a read or take accesses.

use std::cell::RefCell;
use std::sync::Arc;

use weir_cdr::DdsType;
use weir_rtps::reader::{RawSample, ReaderCore, SampleQuery, SampleSelection, States};

use super::DataReader;
use super::conditions::{ReadCondition, satisfies};
use super::serialized::SerializedSample;
use crate::error::{DdsError, Result};
use crate::instance_handle::InstanceHandle;
use crate::query::Query;
use crate::sample::{Sample, SampleInfo, SampleSeq};
use crate::shared_payload;

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
pub struct Selection<'a, T> {
    reader: &'a DataReader<T>,
    what: What,
    wanted: Option<Wanted<'a, T>>,
}

/// What decides about single values.
enum Wanted<'a, T> {
    Condition(&'a ReadCondition<T>),
    Query(&'a Query<T>),
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
        Self { reader, what: What::ALL, wanted: None }
    }

    /// Selects the samples of one instance.
    ///
    /// None, if the reader never received a sample of it.
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
    /// if let Some(instance) = reader.lookup_instance(&Reading { sensor: 7, ..Reading::default() })? {
    ///     println!("{:?}", reader.select().instance(instance).max(10).take());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn instance(mut self, handle: InstanceHandle) -> Self {
        self.what.instances = Instances::One(handle);
        self
    }

    /// Selects the samples of the instance after `after`; `None`: of the first instance.
    ///
    /// Only instances that have selected samples count. The order of instances is the reader's own.
    /// `after` may be an instance without writers and samples, if it is the one that was returned last.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// // The samples of one instance at a time.
    /// let mut previous = None;
    /// while let Some(first) = reader.select().next_instance(previous).max(1).take().pop() {
    ///     previous = Some(first.info.instance_handle);
    ///     println!("{first:?}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn next_instance(mut self, after: impl Into<Option<InstanceHandle>>) -> Self {
        self.what.instances = Instances::Next(after.into());
        self
    }

    /// Selects samples in these states.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// use weir_dds::States;
    ///
    /// let unread = reader.select().states(States::NOT_READ).read();
    /// # Ok(())
    /// # }
    /// ```
    pub fn states(mut self, states: States) -> Self {
        self.what.states = states;
        self
    }

    /// Selects samples that make a condition true, in place of [`Selection::states`] and [`Selection::query`].
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # #[derive(DdsType, Default)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     celsius: f64,
    /// # }
    /// # fn f(reader: &DataReader<Reading>, sensor: weir_dds::InstanceHandle) -> weir_dds::Result<()> {
    /// let hot = reader.query(|reading| reading.celsius > 50.0);
    /// let samples = reader.select().instance(sensor).condition(&hot)?.max(10).take();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`DdsError::PreconditionNotMet`] if it is a condition of another reader.
    pub fn condition(mut self, condition: &'a ReadCondition<T>) -> Result<Self> {
        if !Arc::ptr_eq(condition.reader(), &self.reader.inner) {
            let text = "the condition belongs to another reader: create one with this reader";
            return Err(DdsError::PreconditionNotMet(text.to_owned()));
        }
        self.what.states = condition.states();
        self.wanted = Some(condition.query().map_or(Wanted::Condition(condition), Wanted::Query));
        Ok(self)
    }

    /// Selects values that meet a query, in its order, in place of [`Selection::condition`].
    ///
    /// Without ORDER BY, the order is that of [`DataReader::take`]: oldest first, or by PRESENTATION (DDS 1.4,
    /// 2.2.3.6). Changes of instances' states meet no query.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// use weir_dds::{Query, States};
    ///
    /// # #[derive(DdsType, Default)]
    /// # #[dds(extensibility = "final")]
    /// # struct Position {
    /// #     speed: f64,
    /// # }
    /// # fn f(reader: &DataReader<Position>) -> weir_dds::Result<()> {
    /// let fast = Query::new("speed > %0 ORDER BY speed", &["30.0"])?;
    /// let samples = reader.select().query(&fast).states(States::NOT_READ).max(10).take();
    /// # Ok(())
    /// # }
    /// ```
    pub fn query(mut self, query: &'a Query<T>) -> Self {
        self.wanted = Some(Wanted::Query(query));
        self
    }

    /// Limits the number of samples.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// println!("{:?}", reader.select().max(1).take().pop());
    /// # Ok(())
    /// # }
    /// ```
    pub fn max(mut self, max: usize) -> Self {
        self.what.max = max;
        self
    }

    /// Removes the samples from the reader and returns them: oldest first, or in the order of a condition's query.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// let ten = reader.select().max(10).take();
    /// # Ok(())
    /// # }
    /// ```
    pub fn take(self) -> Vec<Sample<T>> {
        let mut samples = SampleSeq::new();
        self.take_into(&mut samples);
        samples.into_vec()
    }

    /// Returns the samples, and marks them as read: oldest first, or in the order of a condition's query.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// println!("{:?}", reader.select().max(10).read());
    /// # Ok(())
    /// # }
    /// ```
    pub fn read(self) -> Vec<Sample<T>> {
        let mut samples = SampleSeq::new();
        self.read_into(&mut samples);
        samples.into_vec()
    }

    /// Removes the samples into reusable memory, and returns their number.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// let mut samples = weir_dds::SampleSeq::new();
    /// while reader.select().max(100).take_into(&mut samples) > 0 {
    ///     samples.data().for_each(|value| println!("{value:?}"));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn take_into(self, samples: &mut SampleSeq<T>) -> usize {
        self.access(samples, true)
    }

    /// Reads the samples into reusable memory, marks them as read, and returns their number.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// let mut samples = weir_dds::SampleSeq::new();
    /// let count = reader.select().read_into(&mut samples);
    /// assert_eq!(count, samples.len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_into(self, samples: &mut SampleSeq<T>) -> usize {
        self.access(samples, false)
    }

    /// Removes the samples and returns them without decoding.
    ///
    /// Large payloads are not copied: they keep the memory that they were received in.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// let bytes: usize = reader.select().take_serialized().iter().map(|sample| sample.payload.len()).sum();
    /// println!("{bytes} bytes");
    /// # Ok(())
    /// # }
    /// ```
    pub fn take_serialized(self) -> Vec<SerializedSample> {
        self.access_serialized(true)
    }

    /// Returns the samples without decoding, and marks them as read.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// println!("{} samples", reader.select().read_serialized().len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_serialized(self) -> Vec<SerializedSample> {
        self.access_serialized(false)
    }

    fn access(self, samples: &mut SampleSeq<T>, remove: bool) -> usize {
        samples.clear();
        self.access_each(remove, |raw| samples.add().fill(raw));
        samples.len()
    }

    fn access_serialized(self, remove: bool) -> Vec<SerializedSample> {
        let mut samples = Vec::new();
        self.access_each(remove, |raw| {
            let payload = shared_payload::payload(&raw);
            samples.push(SerializedSample { payload, info: SampleInfo::new(&raw) });
            true
        });
        samples
    }

    /// `fill` returns whether a sample can be decoded.
    #[inline]
    fn access_each(self, remove: bool, fill: impl FnMut(RawSample<'_>) -> bool) {
        match self.wanted {
            None => _ = self.reader.access_each(self.what, remove, fill),
            Some(wanted) => self.access_wanted(&wanted, remove, fill),
        }
    }

    #[cold]
    fn access_wanted(
        self,
        wanted: &Wanted<'a, T>,
        remove: bool,
        mut fill: impl FnMut(RawSample<'_>) -> bool,
    ) {
        let Self { reader, what, .. } = self;
        match wanted {
            Wanted::Condition(condition) => match condition.predicate() {
                None => _ = reader.access_each(what, remove, fill),
                Some(predicate) => {
                    let value = RefCell::new(T::default());
                    let matches = |payload: &[u8]| satisfies(predicate, payload, &mut value.borrow_mut());
                    reader.access_wanted(
                        SampleQuery { matches: &matches, order: None },
                        what,
                        remove,
                        &mut fill,
                    );
                }
            },
            Wanted::Query(query) => {
                let filter = query.filter();
                let matches = |payload: &[u8]| filter.passes(payload);
                let order = query.order().map(|order| |one: &[u8], other: &[u8]| order.compare(one, other));
                let order = order.as_ref().map(|order| order as _);
                reader.access_wanted(SampleQuery { matches: &matches, order }, what, remove, &mut fill);
            }
        }
    }
}

impl<T> Clone for Selection<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Selection<'_, T> {}

impl<T> Clone for Wanted<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Wanted<'_, T> {}

impl<T> std::fmt::Debug for Selection<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Selection({:?})", self.reader)
    }
}
