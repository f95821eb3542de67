//! What a reader does when time has passed, and when that is.

use super::ReaderCore;
use crate::time::Time;

impl ReaderCore {
    /// Handles timeouts: repeats requests, and expires leases.
    pub fn handle_timeout(&mut self, now: Time) {
        // What is due now is not due next.
        self.timers_set = self.timers_set.wrapping_add(1);
        if self.delivery.cache.enforced.is_some() {
            self.expire(now);
            self.has_late_values |= self.delivery.cache.deliver_due(now);
        }
        if let Some(enforced) = &mut self.delivery.cache.enforced {
            enforced.expire_deadlines(now);
        }
        if self.delivery.cache.enforced.is_some() && self.delivery.cache.purge(now) {
            self.has_removed = true;
            self.room_was_made();
        }
        let is_any_gone = self.expire_leases(now, None) || self.has_left();
        self.has_late_values |= is_any_gone && self.end_left(now);
        for (index, proxy) in self.writers.list.iter_mut().enumerate() {
            self.due.add_if(index, proxy.handle_timeout(now));
        }
    }

    /// When [`ReaderCore::handle_timeout`] is to be called next, or earlier. Does not visit the writers unless a timer
    /// was set since the last call.
    pub fn next_timeout(&self) -> Option<Time> {
        if self.has_left() {
            return Some(self.delivery.cache.left_at);
        }
        let of_writers = self.next_timeout_of_writers();
        match &self.delivery.cache.enforced {
            None => of_writers,
            Some(enforced) => enforced.next_at().into_iter().chain(of_writers).min(),
        }
    }

    /// Records that a timer was set to this time, if it was.
    ///
    /// With few writers, [`ReaderCore::next_timeout`] then visits them all. With many, this time is compared with the
    /// one known before, which may be that of a timer that has been stopped: then that timeout comes too early.
    pub(super) fn timer_set(&mut self, at: Option<Time>) {
        let (timers_set, known) = self.known_timeout.get();
        let is_known = timers_set == self.timers_set;
        self.timers_set = self.timers_set.wrapping_add(1);
        if is_known && self.writers.list.len() > FEW_WRITERS {
            self.known_timeout.set((self.timers_set, known.into_iter().chain(at).min()));
        }
    }

    fn next_timeout_of_writers(&self) -> Option<Time> {
        let (timers_set, known) = self.known_timeout.get();
        if timers_set == self.timers_set {
            return known;
        }
        let at = self.writers.next_timeout();
        self.known_timeout.set((self.timers_set, at));
        at
    }

    /// [`ReaderCore::next_timeout`], if it may be earlier than at the last call. A caller whose
    /// timer is set to the last value need not visit all writers again. A later timeout is not
    /// reported.
    #[inline]
    pub fn take_timeout(&mut self) -> Option<Time> {
        let mut is_news = self.timers_taken != self.timers_set;
        self.timers_taken = self.timers_set;
        if let Some(enforced) = &mut self.delivery.cache.enforced {
            is_news |= core::mem::take(&mut enforced.has_new_timeout);
        }
        if is_news { self.next_timeout() } else { None }
    }
}

/// The timers of so many writers are all visited to find the earliest.
const FEW_WRITERS: usize = 16;
