//! Writers and readers as the driver knows them, without their types.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use weir_rtps::qos::Liveliness;
use weir_rtps::reader::ReaderCore;
use weir_rtps::receiver::batch::News;
use weir_wire::{EntityId, Guid};

use super::assertions::Assertions;
use super::events::{ReaderEvent, ReaderListener, WriterEvent, WriterListener};
use super::lane::Lane;
use crate::clock;
use crate::stage_times::{Came, ReceiveTimes};
use crate::status::{
    IncompatibleQosStatus, LivelinessLostStatus, MatchedStatus, Rejected, SampleCountStatus,
};

/// A writer.
pub(crate) struct WriterEndpoint {
    pub(crate) entity: EntityId,
    pub(crate) lane: Lane,
    pub(crate) matched: Mutex<MatchedStatus>,
    pub(crate) incompatible: Mutex<IncompatibleQosStatus>,
    pub(crate) assertions: Assertions,
    pub(crate) liveliness_lost: Mutex<LivelinessLostStatus>,
    /// Readers that listen to a multicast group get samples by it.
    pub(crate) uses_multicast: bool,
    /// Matched readers that do not delimit keys in XCDR2.
    pub(crate) without_key_delimiters: Mutex<BTreeSet<Guid>>,
    listener: Mutex<Option<WriterListener>>,
}

impl WriterEndpoint {
    pub(crate) fn new(entity: EntityId, lane: Lane, liveliness: Liveliness, uses_multicast: bool) -> Self {
        Self {
            entity,
            lane,
            matched: Mutex::default(),
            incompatible: Mutex::default(),
            assertions: Assertions::new(liveliness),
            liveliness_lost: Mutex::default(),
            uses_multicast,
            without_key_delimiters: Mutex::default(),
            listener: Mutex::default(),
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
    /// Of the last batch; `None`: stage timing is disabled.
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

    /// Notes when samples arrived that have just been put into the cache.
    #[cold]
    pub(super) fn note_times(&self, came: Came) {
        let Came { stamped_ns, returned_ns } = came;
        *self.times.lock() = Some(ReceiveTimes { stamped_ns, returned_ns, sorted_ns: clock::now().0 });
    }

    /// Calls the listener for what a batch brought, with no lock held.
    #[inline]
    pub(super) fn notify_of(&self, news: News) {
        if news.has_status_news {
            self.notify_news();
        } else if news.has_unread {
            self.notify_data();
        }
    }

    /// Calls the listener for what is new, with no lock held.
    pub(super) fn notify_news(&self) {
        let (has_unread, counters, has_liveliness_news) = {
            let core = self.core.lock();
            (core.has_unread(), core.counters(), core.has_liveliness_news())
        };
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

    /// Calls the listener for new samples. When a thread does so already, that one does it once more.
    fn notify_data(&self) {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
