//! Conditions, which a [`WaitSet`](crate::WaitSet) waits for (DDS 1.4, 2.2.2.1.6 to 2.2.2.1.9).
//!
//! A condition keeps its entity alive, as a handle does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::driver::observers::{Cause, Observers};
use crate::driver::start::Handle;
use crate::levels::EnabledStatuses;
use crate::status_mask::StatusMask;

/// What a wait set knows of a condition.
pub(crate) trait Trigger: Send + Sync {
    /// Returns the trigger value.
    fn is_triggered(&self) -> bool;

    /// Returns what is notified when the trigger value may have changed.
    fn observers(&self) -> &Observers;

    /// Returns the participant that the condition depends on, if any.
    fn handle(&self) -> Option<Arc<Handle>>;

    /// Has the observers notified from now on.
    fn watch(&self) {}

    /// Returns whether it may become true when the application reads samples.
    fn follows_access(&self) -> bool {
        false
    }
}

/// A condition of any kind.
///
/// Made from a [`GuardCondition`], [`StatusCondition`] or [`ReadCondition`](crate::ReadCondition). Clones, and
/// conditions made from the same one, are equal.
///
/// ```
/// use weir_dds::{Condition, GuardCondition};
///
/// let stop = GuardCondition::new();
/// assert!(Condition::from(&stop) == Condition::from(&stop.clone()));
/// ```
#[derive(Clone)]
pub struct Condition {
    pub(crate) trigger: Arc<dyn Trigger>,
    /// Identifies the condition.
    id: usize,
}

impl Condition {
    /// `id`: the address of something that lives as long as the condition.
    pub(crate) fn new<T: ?Sized>(trigger: Arc<dyn Trigger>, id: *const T) -> Self {
        Self { trigger, id: id.cast::<()>() as usize }
    }

    /// Returns whether the condition is true.
    ///
    /// ```
    /// use weir_dds::{Condition, GuardCondition};
    ///
    /// let stop = GuardCondition::new();
    /// stop.set_trigger_value(true);
    /// assert!(Condition::from(&stop).trigger_value());
    /// ```
    pub fn trigger_value(&self) -> bool {
        self.trigger.is_triggered()
    }
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Condition {}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Condition({})", self.trigger_value())
    }
}

/// A condition that the application sets, for example to end another thread's wait.
///
/// A handle: clones refer to the same condition.
///
/// ```
/// use std::time::Duration;
/// use weir_dds::{GuardCondition, WaitSet};
///
/// let (stop, wait_set) = (GuardCondition::new(), WaitSet::new());
/// wait_set.attach_condition(&stop);
/// std::thread::scope(|scope| {
///     scope.spawn(|| stop.set_trigger_value(true));
///     assert!(wait_set.wait(Duration::from_secs(10)).is_ok_and(|active| active.contains(&stop)));
/// });
/// ```
#[derive(Clone, Default)]
pub struct GuardCondition {
    state: Arc<Guard>,
}

#[derive(Default)]
struct Guard {
    is_set: AtomicBool,
    observers: Observers,
}

impl GuardCondition {
    /// Creates a condition that is false.
    ///
    /// ```
    /// assert!(!weir_dds::GuardCondition::new().trigger_value());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the condition to true or false. Nothing else changes it.
    ///
    /// ```
    /// let stop = weir_dds::GuardCondition::new();
    /// stop.set_trigger_value(true);
    /// assert!(stop.trigger_value());
    /// ```
    pub fn set_trigger_value(&self, value: bool) {
        self.state.is_set.store(value, Ordering::SeqCst);
        self.state.observers.notify(Cause::News);
    }

    /// Returns whether the condition is true.
    ///
    /// ```
    /// let stop = weir_dds::GuardCondition::new();
    /// assert!(!stop.trigger_value());
    /// ```
    pub fn trigger_value(&self) -> bool {
        self.state.is_set.load(Ordering::SeqCst)
    }
}

impl Trigger for Guard {
    fn is_triggered(&self) -> bool {
        self.is_set.load(Ordering::SeqCst)
    }

    fn observers(&self) -> &Observers {
        &self.observers
    }

    fn handle(&self) -> Option<Arc<Handle>> {
        None
    }
}

impl From<&GuardCondition> for Condition {
    fn from(condition: &GuardCondition) -> Self {
        let id = Arc::as_ptr(&condition.state);
        Self::new(Arc::clone(&condition.state) as Arc<dyn Trigger>, id)
    }
}

impl std::fmt::Debug for GuardCondition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GuardCondition({})", self.trigger_value())
    }
}

/// An entity with statuses.
pub(crate) trait StatusSource: Send + Sync {
    /// Returns the statuses that have changed.
    fn changes(&self) -> StatusMask;
    fn enabled(&self) -> &EnabledStatuses;
    fn observers(&self) -> &Observers;
    fn handle(&self) -> Option<Arc<Handle>>;
    fn watch(&self) {}
}

/// A condition that is true while enabled statuses of an entity have changed since they were read.
///
/// All statuses are enabled at first. Each entity has one such condition: handles refer to the same.
///
/// ```no_run
/// # use std::time::Duration;
/// # use weir_dds::{DataReader, DdsType, WaitSet};
/// use weir_dds::StatusMask;
///
/// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
/// let condition = reader.status_condition();
/// condition.set_enabled_statuses(StatusMask::SUBSCRIPTION_MATCHED | StatusMask::LIVELINESS_CHANGED);
/// let wait_set = WaitSet::new();
/// wait_set.attach_condition(&condition);
/// wait_set.wait(Duration::from_secs(10))?;
/// println!("{:?}", reader.status_changes());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct StatusCondition {
    source: Arc<Source>,
    /// Identifies the entity.
    id: usize,
}

/// A source of statuses as a trigger.
struct Source(Arc<dyn StatusSource>);

impl StatusCondition {
    pub(crate) fn new(entity: Arc<dyn StatusSource>) -> Self {
        entity.watch();
        let id = core::ptr::from_ref(entity.enabled()) as usize;
        Self { source: Arc::new(Source(entity)), id }
    }

    /// Returns the statuses that make the condition true.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// use weir_dds::StatusMask;
    ///
    /// assert_eq!(reader.status_condition().enabled_statuses(), StatusMask::ALL);
    /// # Ok(())
    /// # }
    /// ```
    pub fn enabled_statuses(&self) -> StatusMask {
        self.source.0.enabled().get()
    }

    /// Sets the statuses that make the condition true.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// use weir_dds::StatusMask;
    ///
    /// reader.status_condition().set_enabled_statuses(StatusMask::DATA_AVAILABLE | StatusMask::SAMPLE_LOST);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_enabled_statuses(&self, mask: StatusMask) {
        self.source.0.enabled().set(mask);
        self.source.observers().notify(Cause::News);
    }

    /// Returns whether the condition is true.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// use weir_dds::StatusMask;
    ///
    /// # fn f<T: DdsType>(reader: &DataReader<T>) {
    /// let condition = reader.status_condition();
    /// condition.set_enabled_statuses(StatusMask::SAMPLE_LOST);
    /// if condition.trigger_value() {
    ///     println!("samples were lost");
    /// }
    /// # }
    /// ```
    pub fn trigger_value(&self) -> bool {
        self.source.is_triggered()
    }
}

impl Trigger for Source {
    fn is_triggered(&self) -> bool {
        self.0.changes().intersects(self.0.enabled().get())
    }

    fn observers(&self) -> &Observers {
        self.0.observers()
    }

    fn handle(&self) -> Option<Arc<Handle>> {
        self.0.handle()
    }

    fn watch(&self) {
        self.0.watch();
    }
}

impl From<&StatusCondition> for Condition {
    fn from(condition: &StatusCondition) -> Self {
        Self { trigger: Arc::clone(&condition.source) as Arc<dyn Trigger>, id: condition.id }
    }
}

impl std::fmt::Debug for StatusCondition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StatusCondition({:?} of {:?})", self.source.0.changes(), self.enabled_statuses())
    }
}
