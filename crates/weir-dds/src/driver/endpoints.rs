//! Local writers and readers, without their sample types.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use weir_rtps::qos::Qos;
use weir_rtps::reader::ReaderCore;
use weir_rtps::writer::inline_qos_of;
use weir_wire::{EntityId, Guid};

use super::assertions::Assertions;
use super::events::{ReaderListener, WriterEvent, WriterListener};
use super::group_access::GroupAccess;
use super::lane::Lane;
use super::listener_turn::{ListenerTurn, call_in_turn};
use super::observers::Observers;
use super::reader_calls::Calls;
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
    turn: Mutex<ListenerTurn>,
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
            turn: Mutex::default(),
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

    /// Calls the listener that an event is for. If another thread calls a listener of the writer, that thread does so
    /// next. No lock may be held.
    pub(crate) fn call_listener(&self, event: WriterEvent) {
        call_in_turn(&self.turn, event.bit(), |bit| {
            let event = WriterEvent::ALL.into_iter().find(|event| event.bit() == bit);
            event.into_iter().for_each(|event| self.call_for(event));
        });
    }

    fn call_for(&self, event: WriterEvent) {
        let own = self.own.lock().listener_for(event.kind());
        let is_taken_above = self.group.mask().contains(event.kind());
        let call = |listener: WriterListener| self.listener_panics.survive(move || listener(event));
        call_lowest(own, call, (&self.owner, is_taken_above), |owner, is_dropped| {
            data_writer::listening::notify_upper(owner, event, is_dropped);
        });
    }
}

/// Calls the listener of an endpoint, or else passes the event on to those above it, if one of them takes it.
/// `own`: as [`Own::listener_for`] returns it. `pass_on` gets whether the endpoint drops it.
pub(super) fn call_lowest<L, O>(
    own: Option<Option<L>>,
    call: impl FnOnce(L),
    (owner, is_taken_above): (&OnceLock<Weak<O>>, bool),
    pass_on: impl FnOnce(&Arc<O>, bool),
) {
    let is_dropped = own.is_some();
    if let Some(listener) = own.flatten() {
        call(listener);
    } else if let Some(owner) = owner.get().filter(|_| is_dropped || is_taken_above).and_then(Weak::upgrade) {
        pass_on(&owner, is_dropped);
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
    /// It was closed, for all its handles.
    pub(crate) is_closed: AtomicBool,
    pub(super) calls: Mutex<Calls>,
    /// Who is notified of news: [`LISTENERS`], or [`WATCHERS`] as well.
    notified: AtomicU8,
}

/// A listener of any level.
const LISTENERS: u8 = 1;
/// What waits for the reader, or for those with which it shares coherent sets.
const WATCHERS: u8 = 2;

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
            is_closed: AtomicBool::new(false),
            calls: Mutex::default(),
            notified: AtomicU8::new(0),
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
        self.notified.fetch_or(WATCHERS, Ordering::SeqCst);
    }

    /// Records who is notified of news.
    pub(super) fn set_notified(&self, has_listener: bool) {
        let listeners = if has_listener { LISTENERS } else { 0 };
        let is_watched = self.watching.is_on() || self.shared_sets.get().is_some();
        let watchers = if is_watched { WATCHERS } else { 0 };
        self.notified.store(listeners | watchers, Ordering::SeqCst);
    }

    /// Returns whether a listener of any level is for one of these events.
    pub(crate) fn has_listener_for(&self, events: StatusMask) -> bool {
        (self.own.lock().mask | self.group.mask()).intersects(events)
    }

    /// Returns whether a listener of any level, or something that waits, is notified of news.
    #[inline]
    pub(crate) fn has_listener(&self) -> bool {
        self.notified.load(Ordering::Relaxed) != 0
    }

    /// Returns whether something waits for the reader, or for those with which it shares coherent sets.
    #[inline]
    pub(super) fn has_watchers(&self) -> bool {
        self.notified.load(Ordering::Relaxed) & WATCHERS != 0
    }

    /// Records the arrival of samples that were just put into the cache.
    #[cold]
    pub(super) fn note_times(&self, came: Came) {
        let Came { stamped_ns, returned_ns } = came;
        *self.times.lock() = Some(ReceiveTimes { stamped_ns, returned_ns, sorted_ns: clock::now().0 });
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
