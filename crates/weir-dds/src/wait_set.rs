//! Wait sets (DDS 1.4, 2.2.2.1.6).

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::Poll;
use std::thread::ThreadId;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use weir_rtps::time::Time;

use crate::clock;
use crate::condition::Condition;
use crate::driver::observers::{Cause, Observe};
use crate::driver::polling::SHARED_CHECK;
use crate::driver::start::Handle;
use crate::driver::tasks::Tasks;
use crate::error::{DdsError, Result};

/// Waits until one of several conditions is true.
///
/// A thread in [`WaitSet::wait`] receives for its participant meanwhile, as in the other wait calls, if all conditions
/// are of one participant. Otherwise the participants' own threads receive. [`WaitSet::wait_async`] and
/// [`WaitSet::event_fd`] are for programs that wait in an event loop.
///
/// A handle: clones refer to the same wait set.
///
/// ```
/// use std::time::Duration;
/// use weir_dds::{DataReaderQos, DdsType, DomainParticipant, GuardCondition, ParticipantSettings, States, WaitSet};
///
/// #[derive(DdsType, Default, Debug)]
/// #[dds(extensibility = "final")]
/// struct Reading {
///     celsius: f64,
/// }
///
/// let participant = DomainParticipant::new(86, ParticipantSettings::default().interface("lo"))?;
/// let topic = participant.create_topic::<Reading>("Readings")?;
/// let writer = participant.create_publisher()?.create_datawriter(&topic, Default::default())?;
/// let reader = participant.create_subscriber()?.create_datareader(&topic, DataReaderQos::default().reliable())?;
///
/// let hot = reader.query_condition(States::NOT_READ, |reading| reading.celsius > 50.0);
/// let stop = GuardCondition::new();
/// let wait_set = WaitSet::new();
/// wait_set.attach_condition(&hot);
/// wait_set.attach_condition(&stop);
///
/// writer.wait_for_subscriptions(1, Duration::from_secs(10))?;
/// writer.write(&Reading { celsius: 60.0 })?;
/// let active = wait_set.wait(Duration::from_secs(10))?;
/// assert!(active.contains(&hot) && !active.contains(&stop));
/// assert_eq!(reader.take_w_condition(10, &hot)?.len(), 1);
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
#[derive(Clone, Default)]
pub struct WaitSet {
    state: Arc<State>,
}

/// The conditions that were true at the end of a wait.
///
/// ```
/// use std::time::Duration;
/// use weir_dds::{GuardCondition, WaitSet};
///
/// let (first, second, wait_set) = (GuardCondition::new(), GuardCondition::new(), WaitSet::new());
/// [&first, &second].into_iter().for_each(|condition| wait_set.attach_condition(condition));
/// second.set_trigger_value(true);
/// let active = wait_set.wait(Duration::ZERO)?;
/// assert!(!active.contains(&first) && active.contains(&second));
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ActiveConditions(Vec<Condition>);

impl ActiveConditions {
    /// Returns whether a condition was true.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weir_dds::{GuardCondition, WaitSet};
    ///
    /// let (stop, wait_set) = (GuardCondition::new(), WaitSet::new());
    /// wait_set.attach_condition(&stop);
    /// stop.set_trigger_value(true);
    /// let active = wait_set.wait(Duration::ZERO)?;
    /// assert!(active.contains(&stop));
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    pub fn contains(&self, condition: impl Into<Condition>) -> bool {
        self.0.contains(&condition.into())
    }

    /// Returns the conditions, in the order in which they were attached.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weir_dds::{GuardCondition, WaitSet};
    ///
    /// let (stop, wait_set) = (GuardCondition::new(), WaitSet::new());
    /// wait_set.attach_condition(&stop);
    /// stop.set_trigger_value(true);
    /// let active = wait_set.wait(Duration::ZERO)?;
    /// assert!(active.iter().all(|condition| condition.trigger_value()));
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    pub fn iter(&self) -> std::slice::Iter<'_, Condition> {
        self.0.iter()
    }

    /// Returns their number.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weir_dds::{GuardCondition, WaitSet};
    ///
    /// let (stop, wait_set) = (GuardCondition::new(), WaitSet::new());
    /// wait_set.attach_condition(&stop);
    /// stop.set_trigger_value(true);
    /// let active = wait_set.wait(Duration::ZERO)?;
    /// assert_eq!(active.len(), 1);
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is none.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weir_dds::{GuardCondition, WaitSet};
    ///
    /// let (stop, wait_set) = (GuardCondition::new(), WaitSet::new());
    /// wait_set.attach_condition(&stop);
    /// stop.set_trigger_value(true);
    /// let active = wait_set.wait(Duration::ZERO)?;
    /// assert!(!active.is_empty());
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> IntoIterator for &'a ActiveConditions {
    type Item = &'a Condition;
    type IntoIter = std::slice::Iter<'a, Condition>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[derive(Default)]
struct State {
    attached: Mutex<Vec<Condition>>,
    is_waiting: AtomicBool,
    /// A condition may have changed since the waiting thread last looked.
    has_news: AtomicBool,
    /// Some condition may become true when samples are read.
    follows_access: AtomicBool,
    waiter: Mutex<Option<Waiter>>,
    changed: Condvar,
    tasks: Tasks,
    event_fd: OnceLock<Arc<weir_udp::Waker>>,
    /// Held while the descriptor is brought up to date.
    updating: Mutex<()>,
}

/// The thread that waits.
struct Waiter {
    thread: ThreadId,
    /// The participant that it receives for.
    handle: Option<Arc<Handle>>,
}

impl WaitSet {
    /// Creates a wait set without conditions.
    ///
    /// ```
    /// assert!(weir_dds::WaitSet::new().conditions().is_empty());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Attaches a condition. One that is attached already stays so.
    ///
    /// If the condition is true, a thread that waits returns.
    ///
    /// ```
    /// use weir_dds::{GuardCondition, WaitSet};
    ///
    /// let (stop, wait_set) = (GuardCondition::new(), WaitSet::new());
    /// wait_set.attach_condition(&stop);
    /// assert_eq!(wait_set.conditions(), [(&stop).into()]);
    /// ```
    pub fn attach_condition(&self, condition: impl Into<Condition>) {
        let condition = condition.into();
        {
            let mut attached = self.state.attached.lock();
            if attached.contains(&condition) {
                return;
            }
            attached.push(condition.clone());
        }
        if condition.trigger.follows_access() {
            self.state.follows_access.store(true, Ordering::SeqCst);
        }
        condition.trigger.watch();
        condition.trigger.observers().add(self.observer());
        self.state.changed(Cause::News);
    }

    /// Detaches a condition.
    ///
    /// ```
    /// use weir_dds::{GuardCondition, WaitSet};
    ///
    /// let (stop, wait_set) = (GuardCondition::new(), WaitSet::new());
    /// wait_set.attach_condition(&stop);
    /// wait_set.detach_condition(&stop)?;
    /// assert!(wait_set.detach_condition(&stop).is_err());
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// [`DdsError::PreconditionNotMet`] if it is not attached.
    pub fn detach_condition(&self, condition: impl Into<Condition>) -> Result<()> {
        let condition = condition.into();
        let mut attached = self.state.attached.lock();
        let Some(index) = attached.iter().position(|known| *known == condition) else {
            let text = "the condition is not attached to this wait set: detach it from the one that it is attached to";
            return Err(DdsError::PreconditionNotMet(text.to_owned()));
        };
        let known = attached.remove(index);
        drop(attached);
        known.trigger.observers().remove(&self.observer());
        self.state.changed(Cause::Access);
        Ok(())
    }

    /// Returns the attached conditions.
    ///
    /// ```
    /// use weir_dds::{GuardCondition, WaitSet};
    ///
    /// let (stop, wait_set) = (GuardCondition::new(), WaitSet::new());
    /// wait_set.attach_condition(&stop);
    /// assert_eq!(wait_set.conditions(), [(&stop).into()]);
    /// ```
    pub fn conditions(&self) -> Vec<Condition> {
        self.state.attached.lock().clone()
    }

    /// Returns the conditions that are true now.
    ///
    /// ```
    /// use weir_dds::{GuardCondition, WaitSet};
    ///
    /// let (stop, wait_set) = (GuardCondition::new(), WaitSet::new());
    /// wait_set.attach_condition(&stop);
    /// assert!(wait_set.active().is_empty());
    /// stop.set_trigger_value(true);
    /// assert_eq!(wait_set.active().len(), 1);
    /// ```
    pub fn active(&self) -> ActiveConditions {
        self.state.active()
    }

    /// Waits until a condition is true. Returns all that are.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weir_dds::{DdsError, GuardCondition, WaitSet};
    ///
    /// let (stop, wait_set) = (GuardCondition::new(), WaitSet::new());
    /// wait_set.attach_condition(&stop);
    /// assert!(matches!(wait_set.wait(Duration::from_millis(1)), Err(DdsError::Timeout { .. })));
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::Timeout`]: none is true.
    /// - [`DdsError::PreconditionNotMet`]: another thread waits (DDS 1.4, 2.2.2.1.6.3).
    /// - [`DdsError::ThreadFailed`]: a participant has failed, and no condition is true.
    pub fn wait(&self, timeout: Duration) -> Result<ActiveConditions> {
        let state = &*self.state;
        if state.is_waiting.swap(true, Ordering::SeqCst) {
            let text = "another thread waits for this wait set: use one wait set for each thread";
            return Err(DdsError::PreconditionNotMet(text.to_owned()));
        }
        let waiting = Waiting(state);
        let handles = state.handles();
        let deadline = clock::now() + timeout;
        state.has_news.store(true, Ordering::SeqCst);
        let mut active = ActiveConditions::default();
        let mut is_done = || {
            if state.has_news.swap(false, Ordering::SeqCst) {
                active = state.active();
            }
            !active.is_empty()
        };
        let has_failed = || handles.iter().any(|handle| handle.driver.has_ended());
        let is_over = match &handles[..] {
            [handle] => {
                state.begin(Some(handle));
                handle.driver.receive_until(Some(deadline), handle.driver.wait, is_done)
            }
            _ if handles.iter().any(|handle| handle.driver.polling.is_some()) => {
                state.begin(None);
                self.poll_several(&handles, deadline, &mut is_done)?
            }
            _ => {
                state.begin(None);
                handles.iter().for_each(|handle| _ = handle.driver.flush_queued());
                loop {
                    if is_done() {
                        break true;
                    }
                    let left = deadline.since(clock::now());
                    if left.is_zero() || has_failed() {
                        break false;
                    }
                    let mut waiter = state.waiter.lock();
                    if !state.has_news.load(Ordering::SeqCst) {
                        state.changed.wait_for(&mut waiter, left);
                    }
                }
            }
        };
        drop(waiting);
        if is_over {
            return Ok(active);
        }
        handles.iter().try_for_each(|handle| handle.driver.check())?;
        Err(DdsError::Timeout { what: "a condition of the wait set", waited: timeout, hint: String::new() })
    }

    /// Waits until `is_done` or `deadline`, polling those participants that have no threads.
    fn poll_several(
        &self,
        handles: &[Arc<Handle>],
        deadline: Time,
        is_done: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        // What happens to the others makes it readable.
        let changed = self.event_fd()?;
        let polled = || handles.iter().map(|it| &it.driver).filter(|driver| driver.polling.is_some());
        let mut watched = vec![changed.as_fd()];
        for driver in polled() {
            watched.push(driver.poll_descriptor()?);
        }
        watched.truncate(weir_udp::MAX_POLL_SOCKETS);
        // What bursts and batches hold back may be what the others wait for.
        handles.iter().for_each(|handle| _ = handle.driver.flush_queued());
        // Without time, it polls once.
        let mut has_polled = false;
        loop {
            if is_done() {
                return Ok(true);
            }
            let left = deadline.since(clock::now());
            let is_over = has_polled && left.is_zero();
            if is_over || handles.iter().any(|handle| handle.driver.has_ended()) {
                return Ok(false);
            }
            has_polled = true;
            let ready = weir_udp::poll(&watched, None, Some(left)).map_err(no_event_fd)?;
            for (index, driver) in polled().enumerate() {
                if !driver.poll(Time::ZERO)? && ready.is_readable(index + 1) && !is_done() {
                    // Another thread receives. Its descriptor is readable until then.
                    driver.poll(deadline.min(clock::now() + SHARED_CHECK))?;
                }
            }
        }
    }

    /// Waits until a condition is true, as a future of any runtime. Returns all that are.
    ///
    /// ```no_run
    /// # use weir_dds::WaitSet;
    /// # async fn f(wait_set: &WaitSet) -> weir_dds::Result<()> {
    /// let active = wait_set.wait_async().await?;
    /// println!("{} conditions are true", active.len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`DdsError::ThreadFailed`]: a participant has failed, and no condition is true.
    pub async fn wait_async(&self) -> Result<ActiveConditions> {
        let state = &self.state;
        let mut waiting = state.tasks.wait();
        poll_fn(|context| {
            waiting.add(context.waker());
            let handles = state.handles();
            // What is held back may be what is waited for.
            handles.iter().for_each(|handle| _ = handle.driver.flush_queued());
            let active = state.active();
            if !active.is_empty() {
                return Poll::Ready(Ok(active));
            }
            match handles.iter().try_for_each(|handle| handle.driver.check()) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            }
        })
        .await
    }

    /// Returns a descriptor that is readable while a condition is true, for `epoll` and what is built on it.
    ///
    /// Made at the first call. From then on, the conditions are checked at each change.
    ///
    /// ```
    /// use std::os::fd::AsFd;
    ///
    /// let wait_set = weir_dds::WaitSet::new();
    /// let event_fd = wait_set.event_fd()?;
    /// // Add it to an epoll instance.
    /// let _descriptor = event_fd.as_fd();
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// [`DdsError::Network`]: the process is out of file descriptors.
    pub fn event_fd(&self) -> Result<EventFd> {
        let state = &self.state;
        if state.event_fd.get().is_none() {
            let made = new_event_fd()?;
            let _ = state.event_fd.set(made);
            state.update_event_fd();
        }
        let fd = state.event_fd.get().map(Arc::clone);
        fd.map(EventFd).ok_or_else(|| DdsError::OutOfResources("no event descriptor".to_owned()))
    }

    fn observer(&self) -> Weak<dyn Observe> {
        let weak: Weak<dyn Observe> = Arc::<State>::downgrade(&self.state);
        weak
    }
}

impl std::fmt::Debug for WaitSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WaitSet").field(&*self.state.attached.lock()).finish()
    }
}

impl State {
    fn active(&self) -> ActiveConditions {
        let attached = self.attached.lock().clone();
        ActiveConditions(attached.into_iter().filter(Condition::trigger_value).collect())
    }

    /// Returns the participants that conditions depend on.
    fn handles(&self) -> Vec<Arc<Handle>> {
        let mut handles: Vec<Arc<Handle>> = Vec::new();
        let attached = self.attached.lock().clone();
        for handle in attached.iter().filter_map(|condition| condition.trigger.handle()) {
            if !handles.iter().any(|known| Arc::ptr_eq(known, &handle)) {
                handles.push(handle);
            }
        }
        handles
    }

    fn begin(&self, handle: Option<&Arc<Handle>>) {
        let waiter = Waiter { thread: std::thread::current().id(), handle: handle.cloned() };
        *self.waiter.lock() = Some(waiter);
    }

    fn update_event_fd(&self) {
        let Some(event_fd) = self.event_fd.get() else { return };
        // Dropped without the lock: a condition that was just detached may hold the last handle of an entity, whose
        // end is news for this wait set.
        let attached;
        let _updating = self.updating.lock();
        attached = self.attached.lock().clone();
        // This may be a thread of the engine. If a predicate panics, the thread that waits on the descriptor evaluates
        // it again, and gets the panic.
        let is_any = || attached.iter().any(Condition::trigger_value);
        let is_any = catch_unwind(AssertUnwindSafe(is_any)).unwrap_or(true);
        if !is_any {
            event_fd.drain();
        } else {
            event_fd.wake();
        }
    }
}

impl Observe for State {
    fn changed(&self, cause: Cause) {
        if cause == Cause::News || self.follows_access.load(Ordering::SeqCst) {
            self.has_news.store(true, Ordering::SeqCst);
            let receiving = {
                let waiter = self.waiter.lock();
                self.changed.notify_all();
                // The waiting thread itself looks at the conditions after each batch.
                let elsewhere = waiter.as_ref().filter(|it| it.thread != std::thread::current().id());
                elsewhere.and_then(|waiter| waiter.handle.clone())
            };
            if let Some(handle) = receiving {
                handle.driver.channel.announce_change();
            }
            self.tasks.wake();
        }
        self.update_event_fd();
    }
}

/// Ends a wait when it is dropped.
struct Waiting<'a>(&'a State);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let waiter = self.0.waiter.lock().take();
        self.0.is_waiting.store(false, Ordering::SeqCst);
        // Dropped without the lock: it may hold the last handle of the participant.
        drop(waiter);
    }
}

/// A descriptor that is readable while there is something to do: unread samples, or a condition that is true.
///
/// For `poll`, `epoll`, and runtimes built on them (`tokio::io::unix::AsyncFd`, `async_io::Async`). Do not read from
/// it: accessing the samples, or whatever else ends the reason, makes it unreadable.
///
/// ```no_run
/// # use weir_dds::{DataReader, DdsType};
/// use std::os::fd::AsRawFd;
///
/// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
/// // For an event loop of the application.
/// let descriptor = reader.event_fd()?;
/// println!("descriptor {} is readable while there are unread samples", descriptor.as_raw_fd());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct EventFd(pub(crate) Arc<weir_udp::Waker>);

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for EventFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

fn new_event_fd() -> Result<Arc<weir_udp::Waker>> {
    weir_udp::Waker::new().map(Arc::new).map_err(no_event_fd)
}

pub(crate) fn no_event_fd(error: io::Error) -> DdsError {
    DdsError::network("cannot create an eventfd", error)
}
