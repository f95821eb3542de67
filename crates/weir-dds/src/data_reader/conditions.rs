//! Statuses and conditions of a reader, and access by conditions (DDS 1.4, 2.2.2.5.8, 2.2.2.5.9).

use std::sync::Arc;

use weir_cdr::DdsType;
use weir_rtps::reader::{RawSample, States};
use weir_rtps::writer::ChangeKind;

use super::{DataReader, Inner};
use crate::condition::{Condition, StatusCondition, StatusSource, Trigger};
use crate::driver::observers::{Cause, Observers};
use crate::driver::start::Handle;
use crate::error::{DdsError, Result};
use crate::levels::EnabledStatuses;
use crate::query::Query;
use crate::sample::Sample;
use crate::status_mask::{StatusKind, StatusMask};

/// A condition that is true while a reader has samples in certain states, which may have to meet a query or satisfy a
/// function.
///
/// With either, this is DDS's `QueryCondition`. A handle: clones refer to the same condition.
///
/// ```no_run
/// # use weir_dds::{DataReader, DdsType};
/// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
/// use weir_dds::States;
///
/// let unread = reader.read_condition(States::NOT_READ);
/// if unread.trigger_value() {
///     println!("{:?}", reader.take_w_condition(100, &unread)?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ReadCondition<T> {
    state: Arc<ReadState<T>>,
}

pub(super) type Predicate<T> = Box<dyn Fn(&T) -> bool + Send + Sync>;

struct ReadState<T> {
    reader: Arc<Inner>,
    states: States,
    wanted: Wanted<T>,
}

/// Which values make a condition true.
enum Wanted<T> {
    /// All, and changes of instances' states.
    Any,
    Function(Predicate<T>),
    Query(Query<T>),
}

impl<T: DdsType> DataReader<T> {
    /// Creates a condition that is true while the reader has samples in these states.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use weir_dds::{DataReader, DdsType, WaitSet};
    /// use weir_dds::States;
    ///
    /// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// let gone = reader.read_condition(States::NOT_READ | States::NOT_ALIVE);
    /// let wait_set = WaitSet::new();
    /// wait_set.attach_condition(&gone);
    /// wait_set.wait(Duration::from_secs(10))?;
    /// println!("{} instances are gone", reader.take_w_condition(100, &gone)?.len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_condition(&self, states: States) -> ReadCondition<T> {
        self.condition(states, Wanted::Any)
    }

    /// Creates a condition that is true while the reader has samples in these states whose values satisfy `predicate`.
    ///
    /// `predicate` is called with the reader locked, for each sample that may be meant: it must not call the engine.
    /// Changes of an instance's state, which have no value, do not satisfy it.
    ///
    /// If the condition is attached to a wait set with an [`event_fd`](crate::WaitSet::event_fd), the engine's threads
    /// call `predicate`, too. A panic there makes the descriptor readable, and the thread that then waits gets it.
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
    /// use weir_dds::States;
    ///
    /// let hot = reader.query_condition(States::NOT_READ, |reading| reading.celsius > 50.0);
    /// println!("{:?}", reader.take_w_condition(100, &hot)?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn query_condition(
        &self,
        states: States,
        predicate: impl Fn(&T) -> bool + Send + Sync + 'static,
    ) -> ReadCondition<T> {
        self.condition(states, Wanted::Function(Box::new(predicate)))
    }

    /// Creates a condition that is true while the reader has values in these states that meet a query (DDS 1.4,
    /// 2.2.2.5.3.6).
    ///
    /// Samples that are accessed by the condition come in the order of the query.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use weir_dds::{DataReader, DdsType, WaitSet};
    /// use weir_dds::{Query, States};
    ///
    /// # #[derive(DdsType, Default)]
    /// # #[dds(extensibility = "final")]
    /// # struct Position {
    /// #     speed: f64,
    /// # }
    /// # fn f(reader: &DataReader<Position>) -> weir_dds::Result<()> {
    /// let query = Query::new("speed > %0 ORDER BY speed", &["30.0"])?;
    /// let fast = reader.create_querycondition(States::NOT_READ, &query);
    /// let wait_set = WaitSet::new();
    /// wait_set.attach_condition(&fast);
    /// wait_set.wait(Duration::from_secs(10))?;
    /// let samples = reader.take_w_condition(10, &fast)?;
    /// fast.set_query_parameters(&["50.0"])?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn create_querycondition(&self, states: States, query: &Query<T>) -> ReadCondition<T> {
        self.condition(states, Wanted::Query(query.clone()))
    }

    /// [`DataReader::query_condition`] for samples in any state.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # #[derive(DdsType, Default)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     celsius: f64,
    /// # }
    /// # fn f(reader: &DataReader<Reading>) -> weir_dds::Result<()> {
    /// let hot = reader.query(|reading| reading.celsius > 50.0);
    /// let samples = reader.take_w_condition(10, &hot)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn query(&self, predicate: impl Fn(&T) -> bool + Send + Sync + 'static) -> ReadCondition<T> {
        self.query_condition(States::ANY, predicate)
    }

    fn condition(&self, states: States, wanted: Wanted<T>) -> ReadCondition<T> {
        let reader = Arc::clone(&self.inner);
        ReadCondition { state: Arc::new(ReadState { reader, states, wanted }) }
    }

    /// Removes and returns up to `max` samples that make a condition true: oldest first, or in the order of its query.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// use weir_dds::States;
    ///
    /// let ended = reader.read_condition(States::NOT_ALIVE);
    /// println!("{} instances have ended", reader.take_w_condition(100, &ended)?.len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`DdsError::PreconditionNotMet`] if it is a condition of another reader.
    pub fn take_w_condition(&self, max: usize, condition: &ReadCondition<T>) -> Result<Vec<Sample<T>>> {
        Ok(self.select().condition(condition)?.max(max).take())
    }

    /// Returns up to `max` samples that make a condition true: oldest first, or in the order of its query. They are
    /// read from then on.
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
    /// let hot = reader.query(|reading| reading.celsius > 50.0);
    /// println!("{:?}", reader.read_w_condition(100, &hot)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`DdsError::PreconditionNotMet`] if it is a condition of another reader.
    pub fn read_w_condition(&self, max: usize, condition: &ReadCondition<T>) -> Result<Vec<Sample<T>>> {
        Ok(self.select().condition(condition)?.max(max).read())
    }
}

/// Returns whether a payload is a value that satisfies the predicate.
pub(super) fn satisfies<T: DdsType>(predicate: &Predicate<T>, payload: &[u8], value: &mut T) -> bool {
    weir_cdr::from_payload_into(payload, value).is_ok() && predicate(value)
}

impl<T> ReadCondition<T> {
    pub(super) fn reader(&self) -> &Arc<Inner> {
        &self.state.reader
    }

    pub(super) fn predicate(&self) -> Option<&Predicate<T>> {
        match &self.state.wanted {
            Wanted::Function(predicate) => Some(predicate),
            _ => None,
        }
    }

    /// Returns the query; `None`: the condition was created without one.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// use weir_dds::States;
    ///
    /// # fn f<T: DdsType>(reader: &DataReader<T>) {
    /// assert!(reader.read_condition(States::ANY).query().is_none());
    /// # }
    /// ```
    pub fn query(&self) -> Option<&Query<T>> {
        match &self.state.wanted {
            Wanted::Query(query) => Some(query),
            _ => None,
        }
    }
}

impl<T: DdsType> ReadCondition<T> {
    /// Returns the states of samples that make the condition true.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// use weir_dds::States;
    ///
    /// # fn f<T: DdsType>(reader: &DataReader<T>) {
    /// assert_eq!(reader.read_condition(States::NOT_READ).states(), States::NOT_READ);
    /// # }
    /// ```
    pub fn states(&self) -> States {
        self.state.states
    }

    /// Returns the reader.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, ReadCondition};
    /// # fn f<T: DdsType>(condition: &ReadCondition<T>) -> weir_dds::Result<()> {
    /// let reader = condition.datareader();
    /// println!("{} samples", reader.take_w_condition(100, condition)?.len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn datareader(&self) -> DataReader<T> {
        DataReader::of(Arc::clone(&self.state.reader))
    }

    /// Changes the parameters of the query, for all its conditions (DDS 1.4, 2.2.2.5.9.3).
    ///
    /// Wait sets evaluate this condition again. After [`Query::set_parameters`] they do so only at the reader's next
    /// change.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, ReadCondition};
    /// # fn f<T: DdsType>(hot: &ReadCondition<T>) -> weir_dds::Result<()> {
    /// // Created with the query "celsius > %0".
    /// hot.set_query_parameters(&["50.0"])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`DdsError::PreconditionNotMet`] if the condition was created without a query; otherwise as for [`Query::new`].
    pub fn set_query_parameters<S: AsRef<str>>(&self, parameters: &[S]) -> Result<()> {
        let text = "the condition has no query: create it by DataReader::create_querycondition";
        let query = self.query().ok_or_else(|| DdsError::PreconditionNotMet(text.to_owned()))?;
        query.set_parameters(parameters)?;
        self.state.observers().notify(Cause::News);
        Ok(())
    }

    /// Returns whether the condition is true.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// use weir_dds::States;
    ///
    /// # fn f<T: DdsType>(reader: &DataReader<T>) {
    /// if reader.read_condition(States::NOT_READ).trigger_value() {
    ///     println!("there are unread samples");
    /// }
    /// # }
    /// ```
    pub fn trigger_value(&self) -> bool {
        self.state.is_triggered()
    }
}

impl<T: DdsType> Trigger for ReadState<T> {
    fn is_triggered(&self) -> bool {
        let is_value = |raw: &RawSample<'_>| raw.kind == ChangeKind::Alive;
        match &self.wanted {
            Wanted::Any => self.reader.any_sample(self.states, |_| true),
            Wanted::Function(predicate) => {
                let mut value = T::default();
                let mut meets = |raw: &RawSample<'_>| satisfies(predicate, raw.payload, &mut value);
                self.reader.any_sample(self.states, |raw| is_value(raw) && meets(raw))
            }
            Wanted::Query(query) => {
                let filter = query.filter();
                self.reader.any_sample(self.states, |raw| is_value(raw) && filter.passes(raw.payload))
            }
        }
    }

    fn observers(&self) -> &Observers {
        &self.reader.endpoint.watching.observers
    }

    fn handle(&self) -> Option<Arc<Handle>> {
        Some(Arc::clone(&self.reader.handle))
    }

    fn watch(&self) {
        self.reader.endpoint.watch();
    }

    fn follows_access(&self) -> bool {
        self.states.may_follow_access()
    }
}

impl<T: DdsType> From<&ReadCondition<T>> for Condition {
    fn from(condition: &ReadCondition<T>) -> Self {
        let id = Arc::as_ptr(&condition.state);
        Self::new(Arc::clone(&condition.state) as Arc<dyn Trigger>, id)
    }
}

impl<T: DdsType> std::fmt::Debug for ReadCondition<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReadCondition({:?} of {})", self.states(), self.state.reader.endpoint.entity)
    }
}

impl<T> DataReader<T> {
    /// Returns the statuses that have changed since they were read (DDS 1.4, 2.2.2.1.1.6).
    ///
    /// DATA_AVAILABLE is set when samples arrive. It is reset when the reader's samples are accessed, or when a
    /// listener is called for it. The other statuses are reset when they are read, or a listener is called.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// use weir_dds::StatusKind;
    ///
    /// # fn f<T: DdsType>(reader: &DataReader<T>) {
    /// if reader.status_changes().contains(StatusKind::SampleLost) {
    ///     println!("{} samples were lost", reader.sample_lost_status().total_count_change);
    /// }
    /// # }
    /// ```
    pub fn status_changes(&self) -> StatusMask {
        self.inner.endpoint.watch();
        self.inner.changes()
    }

    /// Returns the condition that is true while enabled statuses have changed.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// use weir_dds::{StatusMask, WaitSet};
    ///
    /// # fn f<T: DdsType>(reader: &DataReader<T>) {
    /// let (condition, wait_set) = (reader.status_condition(), WaitSet::new());
    /// condition.set_enabled_statuses(StatusMask::DATA_AVAILABLE);
    /// wait_set.attach_condition(&condition);
    /// # }
    /// ```
    pub fn status_condition(&self) -> StatusCondition {
        StatusCondition::new(Arc::clone(&self.inner) as Arc<dyn StatusSource>)
    }
}

impl StatusSource for Inner {
    fn changes(&self) -> StatusMask {
        let endpoint = &self.endpoint;
        let (counters, has_liveliness_news, has_deadline_news) = {
            let core = endpoint.core.lock();
            (core.counters(), core.has_liveliness_news(), core.has_deadline_news())
        };
        let rejected = counters.samples_rejected + counters.samples_refused;
        let malformed = endpoint.malformed.load(std::sync::atomic::Ordering::Relaxed);
        [
            (StatusKind::DataAvailable, endpoint.has_data()),
            (StatusKind::SubscriptionMatched, endpoint.matched.lock().has_changed()),
            (StatusKind::RequestedIncompatibleQos, endpoint.incompatible.lock().total_count_change > 0),
            (StatusKind::LivelinessChanged, has_liveliness_news),
            (StatusKind::RequestedDeadlineMissed, has_deadline_news),
            (StatusKind::SampleLost, endpoint.lost.lock().total_count != counters.samples_lost),
            (StatusKind::SampleRejected, endpoint.rejected.lock().differs(rejected, malformed)),
        ]
        .into_iter()
        .collect()
    }

    fn enabled(&self) -> &EnabledStatuses {
        &self.endpoint.watching.enabled
    }

    fn observers(&self) -> &Observers {
        &self.endpoint.watching.observers
    }

    fn handle(&self) -> Option<Arc<Handle>> {
        Some(Arc::clone(&self.handle))
    }

    fn watch(&self) {
        self.endpoint.watch();
    }
}
