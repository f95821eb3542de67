//! Writers and readers as the driver knows them, without their types, and how the message receiver finds them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use foldhash::fast::RandomState;
use parking_lot::{Mutex, MutexGuard, RwLock};
use weir_rtps::outbox::Outbox;
use weir_rtps::qos::Liveliness;
use weir_rtps::reader::ReaderCore;
use weir_rtps::receiver::Endpoints;
use weir_rtps::time::Time;
use weir_rtps::writer::WriterCore;
use weir_udp::UdpSocket;
use weir_wire::{EntityId, Guid};

use super::liveliness::Assertions;
use super::publishing::Publishing;
use super::straight::WriterState;
use super::transport::{SendCounters, Sender};
use crate::clock;
use crate::listener::{ReaderEvent, ReaderListener, WriterEvent, WriterListener};
use crate::stage_times::{Came, ReceiveTimes, SendTimes};
use crate::status::{
    IncompatibleQosStatus, LivelinessLostStatus, MatchedStatus, Rejected, SampleCountStatus,
};

/// A writer.
pub(crate) struct WriterEndpoint {
    pub(crate) entity: EntityId,
    /// Held while samples are handed out and sent, so that they leave in the order of their numbers. Taken
    /// before `core`. A lone sample is sent with `core` alone locked, while nobody has this.
    pub(crate) sending: Mutex<Sending>,
    pub(crate) core: Mutex<WriterState>,
    /// The next sample is probably a lone one: the last one was, and whatever was sent before it is known to the core.
    pub(crate) expects_lone: AtomicBool,
    pub(crate) matched: Mutex<MatchedStatus>,
    pub(crate) incompatible: Mutex<IncompatibleQosStatus>,
    pub(crate) assertions: Assertions,
    pub(crate) liveliness_lost: Mutex<LivelinessLostStatus>,
    /// Readers that listen to a multicast group get samples by it.
    pub(crate) uses_multicast: bool,
    /// Of a writer whose samples a thread of its own sends.
    pub(crate) publishing: Option<Publishing>,
    /// Matched readers that do not delimit keys in XCDR2.
    pub(crate) without_key_delimiters: Mutex<BTreeSet<Guid>>,
    listener: Mutex<Option<WriterListener>>,
}

/// What is needed to send.
#[derive(Default)]
pub(crate) struct Sending {
    pub(crate) outbox: Outbox,
    pub(crate) sender: Sender,
    /// When the last send call ended.
    pub(crate) sent_at: Option<Time>,
    /// How long the write that it ended took, if the writer was not told yet.
    pub(crate) send_time: Option<Duration>,
}

impl WriterEndpoint {
    pub(crate) fn new(
        entity: EntityId,
        core: WriterCore,
        liveliness: Liveliness,
        uses_multicast: bool,
        publishing: Option<Publishing>,
    ) -> Self {
        Self {
            entity,
            sending: Mutex::default(),
            core: Mutex::new(WriterState::new(core)),
            expects_lone: AtomicBool::new(false),
            matched: Mutex::default(),
            incompatible: Mutex::default(),
            assertions: Assertions::new(liveliness),
            liveliness_lost: Mutex::default(),
            uses_multicast,
            publishing,
            without_key_delimiters: Mutex::default(),
            listener: Mutex::default(),
        }
    }

    /// Keeps sockets connected to the groups that samples go to, or to the only address if there is only one: the
    /// kernel then looks up the route once and not per datagram.
    pub(crate) fn connect(&self) {
        let mut sending = self.sending.lock();
        let (destinations, routes) = {
            let core = self.core.lock();
            (Arc::clone(core.destinations()), core.routes().to_vec())
        };
        sending.sender.connect(&destinations, &routes);
        let straight = sending.sender.connected_to(&destinations).filter(|_| self.publishing.is_none());
        self.core.lock().set_way(straight.map(|socket| (destinations, socket)));
    }

    /// Has it noted when samples are sent.
    pub(crate) fn keep_times(&self) {
        self.sending.lock().sender.times = Some(SendTimes::default());
        self.core.lock().keep_times();
    }

    /// When something was last sent, if somebody wants to know.
    pub(crate) fn last_send_times(&self) -> Option<SendTimes> {
        let sending = self.sending.lock();
        let straight = self.core.lock().straight_times();
        sending.sender.times.into_iter().chain(straight).max_by_key(|times| times.called_ns)
    }

    /// What was sent, repairs by other threads not included.
    pub(crate) fn send_counters(&self) -> SendCounters {
        let sending = self.sending.lock();
        let straight = self.core.lock().straight_counters();
        sending.sender.counters.plus(straight)
    }

    /// Has the thread that publishes look at the core, if there is such a thread.
    pub(crate) fn tell_publisher(&self) {
        self.publishing.iter().for_each(Publishing::tell);
    }

    /// Sends what automatic coalescing holds back.
    pub(crate) fn end_burst(&self, socket: &UdpSocket) {
        if self.publishing.is_some() {
            self.core.lock().interrupt_burst();
            self.tell_publisher();
            return;
        }
        let mut sending = self.sending.lock();
        let sending = &mut *sending;
        {
            let mut core = self.core.lock();
            core.end_burst(clock::now(), &mut sending.outbox);
        }
        if !sending.outbox.is_empty() {
            sending.sender.send(socket, &mut sending.outbox);
            sending.sent_at = Some(clock::now());
        }
    }

    pub(crate) fn set_listener(&self, listener: Option<WriterListener>) {
        let before = core::mem::replace(&mut *self.listener.lock(), listener);
        // Not under the lock: it may hold the last handle of another endpoint.
        drop(before);
    }

    pub(crate) fn has_listener(&self) -> bool {
        self.listener.lock().is_some()
    }

    /// Calls the listener, with no lock held.
    pub(crate) fn notify(&self, event: WriterEvent) {
        let listener = self.listener.lock().clone();
        if let Some(listener) = listener {
            survive(|| listener(event));
        }
    }
}

/// A reader.
pub(crate) struct ReaderEndpoint {
    pub(crate) entity: EntityId,
    pub(crate) core: Mutex<ReaderCore>,
    pub(crate) matched: Mutex<MatchedStatus>,
    pub(crate) incompatible: Mutex<IncompatibleQosStatus>,
    pub(crate) lost: Mutex<SampleCountStatus>,
    pub(crate) rejected: Mutex<Rejected>,
    pub(crate) malformed: AtomicU64,
    /// Of the last batch, where somebody wants to know.
    pub(crate) times: Mutex<Option<ReceiveTimes>>,
    calls: Mutex<Calls>,
    has_listener: AtomicBool,
}

/// A reader's listener, and whether it is being told of new samples.
#[derive(Default)]
struct Calls {
    listener: Option<ReaderListener>,
    /// A second reference, for whoever tells of new samples: to lend it costs less per sample than to count another one.
    spare: Option<ReaderListener>,
    /// Goes up when the listener is replaced.
    version: u64,
    /// One thread at a time tells of new samples; news that come meanwhile make it go round again.
    is_telling: bool,
    has_more_news: bool,
}

impl Calls {
    /// The reference that was lent, or another one.
    #[inline]
    fn lend(&mut self) -> Option<ReaderListener> {
        self.spare.take().or_else(|| self.listener.clone())
    }
}

impl ReaderEndpoint {
    pub(crate) fn new(entity: EntityId, core: ReaderCore) -> Self {
        Self {
            entity,
            core: Mutex::new(core),
            matched: Mutex::default(),
            incompatible: Mutex::default(),
            lost: Mutex::default(),
            rejected: Mutex::default(),
            malformed: AtomicU64::new(0),
            times: Mutex::default(),
            calls: Mutex::default(),
            has_listener: AtomicBool::new(false),
        }
    }

    pub(crate) fn set_listener(&self, listener: Option<ReaderListener>) {
        self.has_listener.store(listener.is_some(), Ordering::SeqCst);
        let before = {
            let mut calls = self.calls.lock();
            calls.version += 1;
            (core::mem::replace(&mut calls.listener, listener), calls.spare.take())
        };
        // Not under the lock: it may hold the last handle of another endpoint.
        drop(before);
    }

    #[inline]
    pub(crate) fn has_listener(&self) -> bool {
        self.has_listener.load(Ordering::Relaxed)
    }

    /// Calls the listener, with no lock held. Data has a call of its own.
    pub(crate) fn notify(&self, event: ReaderEvent) {
        let listener = self.calls.lock().listener.clone();
        if let Some(listener) = listener {
            survive(|| listener(event));
        }
    }

    /// Tells the listener of new samples. When some thread does so already, that one does it once more.
    pub(crate) fn notify_data(&self) {
        let (mut listener, mut version) = {
            let mut calls = self.calls.lock();
            if calls.is_telling {
                calls.has_more_news = true;
                return;
            }
            let Some(listener) = calls.lend() else { return };
            calls.is_telling = true;
            (listener, calls.version)
        };
        loop {
            survive(|| listener(ReaderEvent::DataAvailable));
            let mut calls = self.calls.lock();
            let is_replaced = calls.version != version;
            if !core::mem::take(&mut calls.has_more_news) {
                calls.is_telling = false;
                if !is_replaced {
                    calls.spare = Some(listener);
                }
                // The lock goes before a listener that was replaced: see `set_listener`.
                return;
            }
            if is_replaced {
                // More has come since, for whoever listens now.
                version = calls.version;
                let Some(next) = calls.lend() else {
                    calls.is_telling = false;
                    return;
                };
                let before = core::mem::replace(&mut listener, next);
                drop(calls);
                drop(before);
            }
        }
    }
}

/// Calls a listener. One that panics has said so on standard error, and the thread, which others need, goes on.
fn survive(call: impl FnOnce()) {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
}

/// The routes from entity ids and GUIDs to endpoints: a table that is replaced when it changes, so that whoever
/// receives looks things up without a lock.
#[derive(Default)]
pub(crate) struct Routes {
    table: RwLock<Arc<Table>>,
    version: AtomicU64,
}

/// One state of the routes. Peers choose GUIDs: the hashes depend on a seed that they do not know.
#[derive(Default, Clone)]
pub(crate) struct Table {
    pub(crate) writers: HashMap<EntityId, Arc<WriterEndpoint>, RandomState>,
    pub(crate) readers: HashMap<EntityId, Arc<ReaderEndpoint>, RandomState>,
    /// The readers that a remote (or own) writer is matched with.
    pub(crate) readers_of: HashMap<Guid, Vec<Arc<ReaderEndpoint>>, RandomState>,
}

impl Routes {
    /// The current table.
    pub(crate) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read())
    }

    /// Goes up with every change.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Changes the table.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Table)) {
        let mut table = self.table.write();
        change(Arc::make_mut(&mut table));
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// The endpoints as the message receiver knows them during a batch.
pub(crate) struct BatchEndpoints<'t> {
    pub(crate) table: &'t Table,
    /// When the batch arrived; `None`: stage timing is disabled.
    pub(crate) came: Option<Came>,
}

impl Endpoints for BatchEndpoints<'_> {
    type Reader = Arc<ReaderEndpoint>;
    type Writer = Arc<WriterEndpoint>;
    type Locked<'a>
        = MutexGuard<'a, ReaderCore>
    where
        Self: 'a;

    #[inline]
    fn readers_of(&self, writer: &Guid) -> Option<&[Arc<ReaderEndpoint>]> {
        self.table.readers_of.get(writer).map(Vec::as_slice)
    }

    fn readers(&self) -> impl Iterator<Item = &Arc<ReaderEndpoint>> {
        self.table.readers.values()
    }

    #[inline]
    fn writer(&self, entity: EntityId) -> Option<&Arc<WriterEndpoint>> {
        self.table.writers.get(&entity)
    }

    #[inline(always)]
    fn entity(reader: &Arc<ReaderEndpoint>) -> EntityId {
        reader.entity
    }

    #[inline(always)]
    fn lock<'a>(&'a self, reader: &'a Arc<ReaderEndpoint>) -> MutexGuard<'a, ReaderCore> {
        reader.core.lock()
    }

    #[inline]
    fn with_writer<T>(&self, writer: &Arc<WriterEndpoint>, f: impl FnOnce(&mut WriterCore) -> T) -> T {
        f(&mut writer.core.lock())
    }

    #[inline(always)]
    fn note_unread(&self, reader: &Arc<ReaderEndpoint>) {
        if let Some(came) = self.came {
            came.note(reader);
        }
    }

    #[inline]
    fn has_publisher(&self, writer: &Arc<WriterEndpoint>) -> bool {
        writer.publishing.is_some()
    }

    #[inline]
    fn wake_publisher(&self, writer: &Arc<WriterEndpoint>) {
        writer.tell_publisher();
    }
}

#[cfg(test)]
mod tests {
    use weir_rtps::qos::Reliability;
    use weir_rtps::reader::ReaderConfig;
    use weir_wire::GuidPrefix;

    use super::*;

    #[test]
    fn a_listener_that_is_replaced_while_it_is_told_hears_no_more_and_is_let_go() {
        let guid = Guid::new(GuidPrefix::UNKNOWN, EntityId::UNKNOWN);
        let core = ReaderCore::new(ReaderConfig::new(guid, Reliability::BestEffort));
        let endpoint = Arc::new(ReaderEndpoint::new(EntityId::UNKNOWN, core));
        let counts: [Arc<AtomicU64>; 2] = Default::default();
        let told = || counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        let [first, second] = counts.clone();
        let me = Arc::clone(&endpoint);
        endpoint.set_listener(Some(Arc::new(move |_| {
            first.fetch_add(1, Ordering::Relaxed);
            let second = Arc::clone(&second);
            me.set_listener(Some(Arc::new(move |_| _ = second.fetch_add(1, Ordering::Relaxed))));
            // More news while it is told of these.
            me.notify_data();
        })));
        endpoint.notify_data();
        assert_eq!(told(), [1, 1]);
        assert_eq!((Arc::strong_count(&counts[0]), Arc::strong_count(&endpoint)), (1, 1));
        endpoint.notify_data();
        assert_eq!(told(), [1, 2]);
        endpoint.set_listener(None);
        endpoint.notify_data();
        assert_eq!(told(), [1, 2]);
        assert_eq!(Arc::strong_count(&counts[1]), 1, "the reference that is lent is gone, too");
    }
}
