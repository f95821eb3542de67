//! Access to the readers of a subscriber as a group (DDS 1.4, 2.2.2.5.2.8 to 2.2.2.5.2.10).
//!
//! If its readers share coherent sets, a set becomes accessible at all of them at a time: when all of it has arrived,
//! and while the application is not between `begin_access` and `end_access`. Threads that receive settle the sets, and
//! so does a thread that is about to access samples.
//!
//! Lock order: the state, then the core of one reader.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use weir_rtps::reader::groups;

use super::endpoints::ReaderEndpoint;
use crate::clock;

/// The readers of a subscriber.
#[derive(Default)]
pub(crate) struct GroupAccess {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    readers: Vec<Weak<ReaderEndpoint>>,
    /// Readers whose listeners are to be called for sets that have become accessible.
    unreported: Vec<Weak<ReaderEndpoint>>,
    /// Calls of `begin_access` without their end.
    accesses: u32,
}

impl GroupAccess {
    /// Adds a reader.
    pub(crate) fn add(&self, reader: &Arc<ReaderEndpoint>) {
        let mut state = self.state.lock();
        state.readers.retain(|reader| reader.strong_count() > 0);
        state.readers.push(Arc::downgrade(reader));
    }

    /// Returns the readers, in the order in which they were created.
    pub(crate) fn readers(&self) -> Vec<Arc<ReaderEndpoint>> {
        self.state.lock().readers.iter().filter_map(Weak::upgrade).collect()
    }

    /// Begins an access: no set becomes accessible until it ends.
    pub(crate) fn begin(&self) {
        self.settle();
        self.state.lock().accesses += 1;
    }

    /// Ends an access. Returns `false` if none was begun.
    pub(crate) fn end(&self) -> bool {
        {
            let mut state = self.state.lock();
            if state.accesses == 0 {
                return false;
            }
            state.accesses -= 1;
        }
        self.settle_and_announce();
        self.call_listeners();
        true
    }

    /// Makes the sets accessible that have arrived completely, and notifies those who wait. No lock may be held.
    pub(crate) fn settle_and_announce(&self) {
        self.settle();
        let unreported = self.state.lock().unreported.clone();
        unreported.iter().filter_map(Weak::upgrade).for_each(|reader| reader.announce_samples(true));
    }

    /// Calls listeners for the sets that have become accessible. No lock may be held.
    pub(crate) fn call_listeners(&self) {
        let unreported = core::mem::take(&mut self.state.lock().unreported);
        unreported.iter().filter_map(Weak::upgrade).for_each(|reader| reader.call_for_data());
    }

    /// Makes the sets accessible that have arrived completely. No core may be locked.
    ///
    /// Those who wait are notified, and listeners called, by the thread that has received the end of a set:
    /// [`GroupAccess::settle_and_announce`], [`GroupAccess::call_listeners`].
    pub(crate) fn settle(&self) {
        let mut state = self.state.lock();
        if state.accesses > 0 {
            return;
        }
        let mut readers: Vec<_> = state.readers.iter().filter_map(Weak::upgrade).collect();
        // Each one is asked.
        if !readers.iter().fold(false, |has_news, reader| reader.core.lock().take_group_news() | has_news) {
            return;
        }
        let mut progress = Vec::new();
        readers.iter().for_each(|reader| reader.core.lock().group_progress(&mut progress));
        let settled = groups::settle(&progress);
        let now = clock::now();
        readers.retain(|reader| {
            let mut core = reader.core.lock();
            settled.iter().for_each(|set| core.settle_set(now, *set));
            !settled.is_empty() && core.has_unread()
        });
        for reader in readers {
            if !state.unreported.iter().any(|known| core::ptr::eq(known.as_ptr(), &raw const *reader)) {
                state.unreported.push(Arc::downgrade(&reader));
            }
        }
    }
}
