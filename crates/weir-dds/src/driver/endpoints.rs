//! Local writers and readers, without their sample types.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use weir_rtps::qos::Qos;
use weir_rtps::reader::ReaderCore;
use weir_rtps::receiver::batch::News;
use weir_rtps::writer::inline_qos_of;
use weir_wire::{EntityId, Guid};

use super::assertions::Assertions;
use super::events::{ReaderEvent, ReaderListener, WriterEvent, WriterListener};
use super::group_access::GroupAccess;
use super::lane::Lane;
use super::observers::{Cause, Observers};
use super::watching::Watching;
use crate::clock;
use crate::levels::{EnabledStatuses, PublisherState, SubscriberState};
use crate::qos::{DataWriterQos, INFINITE};
use crate::stage_times::{Came, ReceiveTimes};
use crate::status::{
    IncompatibleQosStatus, LivelinessLostStatus, Matches, ReaderInactivityStatus, Rejected, SampleLostStatus,
};
use crate::status_mask::{StatusKind, StatusMask};
use crate::topic::TopicState;
use crate::{data_reader, data_writer};

/// A local writer.
pub(crate) struct WriterEndpoint {
    pub(crate) entity: EntityId,
    pub(crate) topic: Arc<TopicState>,
    pub(crate) lane: Lane,
    pub(crate) matched: Mutex<Matches>,
    pub(crate) incompatible: Mutex<IncompatibleQosStatus>,
    pub(crate) assertions: Assertions,
    pub(crate) liveliness_lost: Mutex<LivelinessLostStatus>,
    pub(crate) inactivity: Mutex<ReaderInactivityStatus>,
    /// Whether its instances have deadlines.
    watches_deadlines: AtomicBool,
    /// Whether readers that listen to a multicast group are sent samples through it.
    pub(crate) uses_multicast: bool,
    /// Matched readers whose engine does not delimit keys in XCDR2.
    pub(crate) without_key_delimiters: Mutex<BTreeSet<Guid>>,
    /// The policies of the writer, for readers that expect them with each sample, ...
    inline_qos: Mutex<Box<[u8]>>,
    /// ... and which matched readers these are.
    pub(super) expecting_qos: Mutex<BTreeSet<Guid>>,
    pub(crate) listener_panics: Panics,
    pub(crate) group: Arc<PublisherState>,
    /// What the handles share; set when the writer is complete.
    pub(crate) owner: OnceLock<Weak<data_writer::Inner>>,
    pub(crate) own: Mutex<Own<WriterListener>>,
    pub(crate) observers: Observers,
    pub(crate) enabled: EnabledStatuses,
}

impl WriterEndpoint {
    pub(crate) fn new(
        entity: EntityId,
        lane: Lane,
        (qos, announced): (&DataWriterQos, &Qos),
        topic: &Arc<TopicState>,
        group: &Arc<PublisherState>,
    ) -> Self {
        Self {
            entity,
            topic: Arc::clone(topic),
            lane,
            matched: Mutex::default(),
            incompatible: Mutex::default(),
            assertions: Assertions::new(qos.liveliness),
            liveliness_lost: Mutex::default(),
            inactivity: Mutex::default(),
            watches_deadlines: AtomicBool::new(qos.deadline != INFINITE),
            uses_multicast: qos.multicast,
            without_key_delimiters: Mutex::default(),
            inline_qos: Mutex::new(inline_qos_of(topic.name(), announced)),
            expecting_qos: Mutex::default(),
            listener_panics: Panics::default(),
            group: Arc::clone(group),
            owner: OnceLock::new(),
            own: Mutex::default(),
            observers: Observers::default(),
            enabled: EnabledStatuses::default(),
        }
    }

    pub(crate) fn set_listener(&self, own: Own<WriterListener>) {
        let before = core::mem::replace(&mut *self.own.lock(), own);
        // Dropped without the lock: it may hold the last handle of another endpoint.
        drop(before);
    }

    /// Records whether a matched reader expects the policies with each sample.
    pub(super) fn note_expectation(&self, reader: Guid, expects_inline_qos: bool) {
        let mut expecting = self.expecting_qos.lock();
        let is_change = if expects_inline_qos { expecting.insert(reader) } else { expecting.remove(&reader) };
        if is_change {
            let list = (!expecting.is_empty()).then(|| self.inline_qos.lock().clone());
            self.lane.core().set_inline_qos(list);
        }
    }

    /// Returns whether its instances have deadlines.
    #[inline]
    pub(crate) fn watches_deadlines(&self) -> bool {
        self.watches_deadlines.load(Ordering::Relaxed)
    }

    /// Changes what readers are sent with each sample that expect the policies.
    pub(crate) fn set_policies(&self, announced: &Qos) {
        self.watches_deadlines.store(announced.deadline != INFINITE, Ordering::Relaxed);
        let expecting = self.expecting_qos.lock();
        let list = inline_qos_of(self.topic.name(), announced);
        if !expecting.is_empty() {
            self.lane.core().set_inline_qos(Some(list.clone()));
        }
        *self.inline_qos.lock() = list;
    }

    /// Returns whether a listener of any level is for an event.
    pub(crate) fn has_listener(&self, event: WriterEvent) -> bool {
        (self.own.lock().mask | self.group.mask()).contains(event.kind())
    }

    /// Calls the listener that an event is for, and those who wait for it. No lock may be held.
    pub(crate) fn notify(&self, event: WriterEvent) {
        let own = self.own.lock().listener_for(event.kind());
        match own {
            Some(Some(listener)) => self.listener_panics.survive(move || listener(event)),
            other => {
                let is_dropped = other.is_some();
                let owner = || self.owner.get().and_then(Weak::upgrade);
                if let Some(owner) =
                    owner().filter(|_| is_dropped || self.group.mask().contains(event.kind()))
                {
                    data_writer::listening::notify_upper(&owner, event, is_dropped);
                }
            }
        }
        self.observers.notify(Cause::News);
    }
}

/// A local reader.
pub(crate) struct ReaderEndpoint {
    pub(crate) entity: EntityId,
    pub(crate) topic: Arc<TopicState>,
    pub(crate) core: Mutex<ReaderCore>,
    pub(crate) matched: Mutex<Matches>,
    pub(crate) incompatible: Mutex<IncompatibleQosStatus>,
    pub(crate) lost: Mutex<SampleLostStatus>,
    pub(crate) rejected: Mutex<Rejected>,
    pub(crate) malformed: AtomicU64,
    /// When the last batch arrived. `None`: stage timing is disabled.
    pub(crate) times: Mutex<Option<ReceiveTimes>>,
    /// The readers with which this one shares coherent sets, if it does.
    pub(crate) shared_sets: OnceLock<Arc<GroupAccess>>,
    pub(crate) listener_panics: Panics,
    pub(crate) group: Arc<SubscriberState>,
    /// What the handles share; set when the reader is complete.
    pub(crate) owner: OnceLock<Weak<data_reader::Inner>>,
    pub(crate) own: Mutex<Own<ReaderListener>>,
    pub(crate) watching: Watching,
    calls: Mutex<Calls>,
    /// Whether a listener of any level, or something that waits, is notified of news.
    has_listener: AtomicBool,
}

/// The listener of an endpoint itself, without its sample type.
pub(crate) struct Own<L> {
    /// What it is for.
    pub(crate) mask: StatusMask,
    /// `None`: what the mask has is dropped.
    pub(crate) listener: Option<L>,
    /// The listener as the application knows it.
    pub(crate) typed: Option<Box<dyn Any + Send + Sync>>,
}

impl<L> Default for Own<L> {
    fn default() -> Self {
        Self { mask: StatusMask::NONE, listener: None, typed: None }
    }
}

impl<L: Clone> Own<L> {
    /// Returns the listener for a status. `Some(None)`: the status is dropped.
    pub(crate) fn listener_for(&self, kind: StatusKind) -> Option<Option<L>> {
        self.mask.contains(kind).then(|| self.listener.clone())
    }
}

/// Who is called for new samples, and whether a thread is doing so.
#[derive(Default)]
struct Calls {
    listener: Option<ReaderListener>,
    /// It is that for DATA_ON_READERS.
    is_for_readers: bool,
    /// A second reference to the listener, lent to the notifying thread. Lending costs less per
    /// sample than counting another reference.
    spare: Option<ReaderListener>,
    /// Incremented when the listener is replaced.
    version: u64,
    /// A thread is calling the listener for new samples. Only one does so at a time; news that
    /// arrive meanwhile make it repeat the call.
    is_notifying: bool,
    has_more_news: bool,
}

impl Calls {
    /// Returns the spare reference, or a new one.
    #[inline]
    fn lend(&mut self) -> Option<ReaderListener> {
        self.spare.take().or_else(|| self.listener.clone())
    }
}

impl ReaderEndpoint {
    pub(crate) fn new(
        entity: EntityId,
        core: ReaderCore,
        topic: &Arc<TopicState>,
        group: &Arc<SubscriberState>,
    ) -> Self {
        Self {
            entity,
            topic: Arc::clone(topic),
            core: Mutex::new(core),
            matched: Mutex::default(),
            incompatible: Mutex::default(),
            lost: Mutex::default(),
            rejected: Mutex::default(),
            malformed: AtomicU64::new(0),
            times: Mutex::default(),
            shared_sets: OnceLock::new(),
            listener_panics: Panics::default(),
            group: Arc::clone(group),
            owner: OnceLock::new(),
            own: Mutex::default(),
            watching: Watching::default(),
            calls: Mutex::default(),
            has_listener: AtomicBool::new(false),
        }
    }

    pub(crate) fn set_listener(&self, own: Own<ReaderListener>) {
        let before = core::mem::replace(&mut *self.own.lock(), own);
        self.listeners_changed();
        // Dropped without the lock: it may hold the last handle of another endpoint.
        drop(before);
    }

    /// Makes the reader share coherent sets with the others of its subscriber.
    pub(crate) fn share_sets(&self, access: &Arc<GroupAccess>) {
        let _is_shared_once = self.shared_sets.set(Arc::clone(access));
        // News of this reader are news for the listeners of the others.
        self.has_listener.store(true, Ordering::SeqCst);
    }

    /// Makes shared sets accessible that have arrived completely. No lock may be held.
    #[inline]
    pub(crate) fn settle_sets(&self) {
        if let Some(access) = self.shared_sets.get() {
            access.settle_and_notify();
        }
    }

    /// Finds out anew who is called for new samples: the listener of some level, or what waits, has changed.
    pub(crate) fn listeners_changed(&self) {
        let before = {
            let own = self.own.lock();
            let (listener, is_for_readers) = self.data_listener(&own);
            let is_any = (own.mask | self.group.mask()).intersects(StatusMask::OF_READERS);
            let is_called = is_any || self.watching.is_on() || self.shared_sets.get().is_some();
            self.has_listener.store(is_called, Ordering::SeqCst);
            let mut calls = self.calls.lock();
            calls.version += 1;
            calls.is_for_readers = is_for_readers;
            (core::mem::replace(&mut calls.listener, listener), calls.spare.take())
        };
        // Dropped without the locks: it may hold the last handle of another endpoint.
        drop(before);
    }

    /// Returns who is called for new samples, and whether that is for DATA_ON_READERS.
    fn data_listener(&self, own: &Own<ReaderListener>) -> (Option<ReaderListener>, bool) {
        let upper = || {
            let owner = self.owner.get().cloned().unwrap_or_default();
            let call = move |event| {
                if let Some(owner) = owner.upgrade() {
                    data_reader::listening::notify_upper(&owner, event, false);
                }
            };
            Some(Arc::new(call) as ReaderListener)
        };
        let mask = self.group.mask();
        if mask.contains(StatusKind::DataOnReaders) {
            (upper(), true)
        } else if let Some(listener) = own.listener_for(StatusKind::DataAvailable) {
            (listener.or_else(|| Some(Arc::new(|_| {}) as ReaderListener)), false)
        } else {
            (mask.contains(StatusKind::DataAvailable).then(upper).flatten(), false)
        }
    }

    /// Returns whether a listener of any level is for one of these events.
    pub(crate) fn has_listener_for(&self, events: StatusMask) -> bool {
        (self.own.lock().mask | self.group.mask()).intersects(events)
    }

    /// Returns whether a listener of any level, or something that waits, is notified of news.
    #[inline]
    pub(crate) fn has_listener(&self) -> bool {
        self.has_listener.load(Ordering::Relaxed)
    }

    /// Calls the listener that a status is for, and those who wait for it. No lock may be held. For new samples there
    /// is [`ReaderEndpoint::notify_of`].
    pub(crate) fn notify(&self, event: ReaderEvent) {
        let own = self.own.lock().listener_for(event.kind());
        match own {
            Some(Some(listener)) => self.listener_panics.survive(move || listener(event)),
            other => {
                let is_dropped = other.is_some();
                let owner = || self.owner.get().and_then(Weak::upgrade);
                if let Some(owner) =
                    owner().filter(|_| is_dropped || self.group.mask().contains(event.kind()))
                {
                    data_reader::listening::notify_upper(&owner, event, is_dropped);
                }
            }
        }
        self.watching.observers.notify(Cause::News);
    }

    /// Records the arrival of samples that were just put into the cache.
    #[cold]
    pub(super) fn note_times(&self, came: Came) {
        let Came { stamped_ns, returned_ns } = came;
        *self.times.lock() = Some(ReceiveTimes { stamped_ns, returned_ns, sorted_ns: clock::now().0 });
    }

    /// Calls the listener for what a batch contained. No lock may be held.
    #[inline]
    pub(super) fn notify_of(&self, news: News) {
        self.settle_sets();
        if news.has_status_news {
            self.notify_news();
        } else if news.has_unread {
            self.notify_data();
        }
    }

    /// Calls the listener for everything that is new. No lock may be held.
    pub(super) fn notify_news(&self) {
        self.settle_sets();
        let (has_unread, counters, has_liveliness_news, has_deadline_news) = {
            let core = self.core.lock();
            (core.has_unread(), core.counters(), core.has_liveliness_news(), core.has_deadline_news())
        };
        if has_deadline_news {
            self.notify(ReaderEvent::DeadlineMissed);
        }
        if has_liveliness_news {
            self.notify(ReaderEvent::LivelinessChanged);
        }
        if self.lost.lock().total_count != counters.samples_lost {
            self.notify(ReaderEvent::SampleLost);
        }
        let rejected = counters.samples_rejected + counters.samples_refused;
        if self.rejected.lock().rejected != rejected {
            self.notify(ReaderEvent::SampleRejected);
        }
        if has_unread {
            self.notify_data();
        }
    }

    /// Calls the listener for new samples, and those who wait for them.
    pub(super) fn notify_data(&self) {
        if self.watching.is_on() {
            self.note_data();
            self.call_for_data();
            self.wake_watching();
        } else {
            self.call_for_data();
        }
    }

    /// Calls the listener for new samples. If another thread is doing so, that thread repeats the
    /// call.
    fn call_for_data(&self) {
        let (mut listener, mut version) = {
            let mut calls = self.calls.lock();
            if calls.is_notifying {
                calls.has_more_news = true;
                return;
            }
            let Some(listener) = calls.lend() else { return };
            calls.is_notifying = true;
            (listener, calls.version)
        };
        loop {
            if self.watching.is_on() {
                self.note_call(self.calls.lock().is_for_readers);
            }
            self.listener_panics.survive(|| listener(ReaderEvent::DataAvailable));
            let mut calls = self.calls.lock();
            let is_replaced = calls.version != version;
            if !core::mem::take(&mut calls.has_more_news) {
                calls.is_notifying = false;
                if !is_replaced {
                    calls.spare = Some(listener);
                    return;
                }
                // `calls` is unlocked before `listener` is dropped, as in `set_listener`.
                drop(calls);
                return self.listener_panics.survive(move || drop(listener));
            }
            if is_replaced {
                // The new listener has to be called for the news that arrived meanwhile.
                version = calls.version;
                let Some(next) = calls.lend() else {
                    calls.is_notifying = false;
                    return;
                };
                let before = core::mem::replace(&mut listener, next);
                drop(calls);
                self.listener_panics.survive(move || drop(before));
            }
        }
    }
}

/// Counts the panics of a listener.
#[derive(Debug, Default)]
pub(crate) struct Panics(AtomicU64);

impl Panics {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Calls or drops a listener, and keeps the thread alive if it panics. The panic hook has reported the panic on
    /// standard error.
    pub(crate) fn survive(&self, call: impl FnOnce()) {
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err() {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_rtps::qos::Reliability;
    use weir_rtps::reader::ReaderConfig;
    use weir_wire::GuidPrefix;

    use super::*;
    use crate::builtin_topics::TopicBuiltinTopicData;

    #[test]
    fn a_listener_that_is_replaced_during_a_call_is_not_called_again_and_is_dropped() {
        let guid = Guid::new(GuidPrefix::UNKNOWN, EntityId::UNKNOWN);
        let core = ReaderCore::new(ReaderConfig::new(guid, Reliability::BestEffort));
        let topic = Arc::new(TopicState::new::<TopicBuiltinTopicData>("topic", Weak::new()));
        let group = Arc::default();
        let endpoint = Arc::new(ReaderEndpoint::new(EntityId::UNKNOWN, core, &topic, &group));
        let all =
            |listener: ReaderListener| Own { mask: StatusMask::ALL, listener: Some(listener), typed: None };
        let counts: [Arc<AtomicU64>; 2] = Default::default();
        let calls = || counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        let [first, second] = counts.clone();
        let me = Arc::clone(&endpoint);
        endpoint.set_listener(all(Arc::new(move |_| {
            first.fetch_add(1, Ordering::Relaxed);
            let second = Arc::clone(&second);
            me.set_listener(all(Arc::new(move |_| _ = second.fetch_add(1, Ordering::Relaxed))));
            // More news during the call.
            me.notify_data();
        })));
        endpoint.notify_data();
        assert_eq!(calls(), [1, 1]);
        assert_eq!((Arc::strong_count(&counts[0]), Arc::strong_count(&endpoint)), (1, 1));
        endpoint.notify_data();
        assert_eq!(calls(), [1, 2]);
        endpoint.set_listener(Own::default());
        endpoint.notify_data();
        assert_eq!(calls(), [1, 2]);
        assert_eq!(Arc::strong_count(&counts[1]), 1, "the spare reference is dropped, too");
    }
}
