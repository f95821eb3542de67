//! What waits for the samples of a reader outside of wait calls: wait sets, tasks, file descriptors; and the status
//! DATA_AVAILABLE.
//!
//! A reader is watched from the first use of any of these on. Until then, none of them costs anything per sample. From
//! then on, the receiving thread notifies of new samples as it does for listeners, and every access of the application
//! has an errand ([`ReaderCore::has_errand`]).

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::MutexGuard;
use weir_rtps::reader::ReaderCore;
use weir_udp::Waker as EventFd;

use super::endpoints::ReaderEndpoint;
use super::observers::{Cause, Observers};
use super::tasks::Tasks;
use crate::levels::EnabledStatuses;

/// What waits for a reader's samples.
#[derive(Default)]
pub(crate) struct Watching {
    is_on: AtomicBool,
    /// [`ReaderCore::arrivals`] when the application last accessed the reader, or its listener was called.
    /// DATA_AVAILABLE is that it is more now. Changed with the core locked.
    seen: AtomicU64,
    /// One more than the number of resets of its subscriber when samples last arrived; 0: none has. Changed with the
    /// core locked.
    noted: AtomicU64,
    /// Accesses of the application since the reader is watched. Changed with the core locked.
    accesses: AtomicU64,
    /// Wait sets, also for the reader's other statuses.
    pub(crate) observers: Observers,
    pub(crate) enabled: EnabledStatuses,
    /// Readable while there are unread samples. Changed with the core locked.
    event_fd: OnceLock<Arc<EventFd>>,
    /// No handle of the reader is left: its samples cannot be accessed any more. Set with the core locked.
    is_over: AtomicBool,
    pub(crate) tasks: Tasks,
}

impl Watching {
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }
}

impl ReaderEndpoint {
    /// Watches the reader from now on.
    pub(crate) fn watch(&self) {
        // Another thread may be about to watch it.
        if self.watching.is_on() && self.has_watchers() {
            return;
        }
        {
            let mut core = self.core.lock();
            core.set_watched();
            if !self.watching.is_on() {
                // Whether it was accessed before is not known.
                let seen = if core.has_unread() { 0 } else { core.arrivals() };
                self.watching.seen.store(seen, Ordering::SeqCst);
                self.watching.is_on.store(true, Ordering::SeqCst);
            }
        }
        self.listeners_changed();
    }

    /// Returns DATA_AVAILABLE.
    pub(crate) fn has_data(&self) -> bool {
        self.is_new(&self.core.lock())
    }

    fn is_new(&self, core: &ReaderCore) -> bool {
        core.has_unread() && self.watching.seen.load(Ordering::SeqCst) != core.arrivals()
    }

    /// Returns whether DATA_ON_READERS is set because of this reader.
    pub(crate) fn has_data_for_subscriber(&self) -> bool {
        let core = self.core.lock();
        let is_noted = self.watching.noted.load(Ordering::SeqCst) == self.next_reset();
        is_noted && core.has_unread() && !self.is_closed.load(Ordering::SeqCst)
    }

    /// Sets DATA_ON_READERS while there are unread samples, until it is reset.
    pub(crate) fn note_for_subscriber(&self) {
        let _core = self.core.lock();
        self.watching.noted.store(self.next_reset(), Ordering::SeqCst);
    }

    fn next_reset(&self) -> u64 {
        self.group.resets.load(Ordering::SeqCst) + 1
    }

    /// Returns the descriptor that is readable while there are unread samples.
    pub(crate) fn event_fd(&self) -> io::Result<Arc<EventFd>> {
        self.watch();
        if let Some(event_fd) = self.watching.event_fd.get() {
            return Ok(Arc::clone(event_fd));
        }
        let event_fd = Arc::new(EventFd::new()?);
        let core = self.core.lock();
        let event_fd = self.watching.event_fd.get_or_init(|| event_fd);
        if core.has_unread() {
            event_fd.wake();
        }
        Ok(Arc::clone(event_fd))
    }

    /// Records that samples have arrived, unless the application has them already.
    #[cold]
    pub(super) fn note_data(&self) {
        let core = self.core.lock();
        if self.is_new(&core) {
            self.watching.noted.store(self.next_reset(), Ordering::SeqCst);
        }
        if core.has_unread()
            && !self.watching.is_over.load(Ordering::SeqCst)
            && let Some(event_fd) = self.watching.event_fd.get()
        {
            event_fd.wake();
        }
    }

    /// Makes the descriptor unreadable if nothing is left to be read.
    fn settle_event_fd(&self, core: &ReaderCore) {
        let is_readable = core.has_unread() && !self.watching.is_over.load(Ordering::SeqCst);
        if let Some(event_fd) = self.watching.event_fd.get().filter(|_| !is_readable) {
            event_fd.drain();
        }
    }

    /// Does what follows when samples were removed without an access: they have expired or were purged.
    #[cold]
    pub(super) fn note_removal(&self) {
        self.settle_event_fd(&self.core.lock());
        self.notify_of_access();
    }

    /// Ends what waits for the reader's samples, of which no handle is left.
    pub(crate) fn end_watching(&self) {
        let core = self.core.lock();
        self.watching.is_over.store(true, Ordering::SeqCst);
        self.settle_event_fd(&core);
    }

    /// Notifies those who wait for the reader of news. `has_unread`: there are new samples. Listeners are called only
    /// afterwards: they may block. No lock may be held.
    #[cold]
    pub(super) fn announce(&self, has_unread: bool) {
        if let Some(access) = self.shared_sets.get() {
            access.settle_and_announce();
        }
        self.announce_samples(has_unread);
    }

    /// The same for this reader alone.
    pub(super) fn announce_samples(&self, has_unread: bool) {
        if !self.watching.is_on() {
            return;
        }
        if has_unread {
            self.note_data();
            self.watching.tasks.wake();
        }
        self.watching.observers.notify(Cause::News);
        if has_unread {
            self.group.observers.notify(Cause::News);
        }
    }

    /// [`ReaderEndpoint::announce`] of everything that is new.
    pub(super) fn announce_all(&self) {
        if self.has_watchers() {
            let has_unread = self.core.lock().has_unread();
            self.announce(has_unread);
        }
    }

    /// Records that a listener is about to be called for new samples, which resets DATA_AVAILABLE or DATA_ON_READERS.
    /// Returns what to pass to [`ReaderEndpoint::note_return`] after the call.
    ///
    /// Wait sets are not notified yet. Most listeners access the samples, which notifies them, and evaluating the
    /// conditions before that as well would do so twice for each call. No wake-up is lost: a reset only makes
    /// conditions false, and a thread that waits for true ones is not to be woken for that. A thread that evaluates
    /// them meanwhile for itself finds the status as it is. Only a descriptor that the status made readable stays so
    /// until then, and a thread that it wakes finds no condition true.
    #[cold]
    pub(super) fn note_call(&self, is_for_readers: bool) -> u64 {
        self.group.resets.fetch_add(1, Ordering::SeqCst);
        let core = self.core.lock();
        if !is_for_readers {
            self.watching.seen.store(core.arrivals(), Ordering::SeqCst);
        }
        // Read with the core locked: an access that is counted later has found the status reset.
        self.watching.accesses.load(Ordering::SeqCst)
    }

    /// Notifies wait sets of the reset by [`ReaderEndpoint::note_call`], unless an access since then has done so, or
    /// is about to: it notifies them after it was counted, and so after the reset.
    #[cold]
    pub(super) fn note_return(&self, noted: u64) {
        if self.watching.accesses.load(Ordering::SeqCst) == noted {
            self.notify_of_access();
        }
    }

    /// Wakes all that waits for the reader. No lock may be held.
    #[cold]
    pub(crate) fn wake_watching(&self) {
        self.watching.tasks.wake();
        self.watching.observers.notify(Cause::News);
        self.group.observers.notify(Cause::News);
    }

    /// Does what follows from an access of the application to a watched reader. `has_late_values`: the access has made
    /// room for samples that it did not see.
    #[cold]
    pub(crate) fn note_access(&self, core: MutexGuard<'_, ReaderCore>, has_late_values: bool) {
        let seen = core.arrivals() - u64::from(has_late_values);
        self.watching.seen.store(seen, Ordering::SeqCst);
        self.watching.accesses.fetch_add(1, Ordering::SeqCst);
        self.group.resets.fetch_add(1, Ordering::SeqCst);
        self.settle_event_fd(&core);
        drop(core);
        self.notify_of_access();
    }

    /// Notifies wait sets that conditions may have become false.
    fn notify_of_access(&self) {
        self.watching.observers.notify(Cause::Access);
        self.group.observers.notify(Cause::Access);
    }
}
