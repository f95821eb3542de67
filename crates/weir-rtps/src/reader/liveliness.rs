//! The liveliness of a reader's matched writers (DDS 1.4, 2.2.3.11).

use weir_wire::{Guid, GuidPrefix};

use super::ReaderCore;
use super::matched::SharedAssertions;
use crate::config::LIVELINESS_LEASE_MIN;
use crate::liveliness::{Lease, LivelinessChangedStatus};
use crate::qos::{Liveliness, LivelinessKind};
use crate::time::Time;

impl ReaderCore {
    /// Sets the liveliness that a matched writer offers. Its lease begins now, and lasts at least
    /// [`LIVELINESS_LEASE_MIN`]. Without this call the writer counts as alive until it is unmatched.
    pub fn set_liveliness(&mut self, now: Time, writer: Guid, policy: Liveliness) {
        let is_leaving = self.delivery.cache.instances.registrations.is_leaving(writer);
        if let Some(proxy) = self.writers.get_mut(writer) {
            self.delivery.counters.leases_raised += u64::from(policy.lease < LIVELINESS_LEASE_MIN);
            let policy = Liveliness { lease: policy.lease.max(LIVELINESS_LEASE_MIN), ..policy };
            if policy != Liveliness::ENDLESS || proxy.lease.is_changed() {
                *proxy.lease = Lease::new(now, policy);
            }
            if is_leaving {
                proxy.lease.set_returning();
            }
            let at = proxy.lease.expires_at();
            self.writers.liveliness.lease_began(at);
            self.timer_set(at);
        }
    }

    /// Asserts the liveliness of all writers of a participant that have this kind.
    pub fn assert_liveliness(&mut self, now: Time, participant: GuidPrefix, kind: LivelinessKind) {
        if self.writers.assert_all(now, participant, kind) {
            self.timers_set = self.timers_set.wrapping_add(1);
        }
    }

    /// Expires the leases that are over, except those that a message of `sender` may renew. Returns whether there were
    /// any. Call [`ReaderCore::end_left`] afterwards.
    pub(super) fn expire_leases(&mut self, now: Time, sender: Option<Guid>) -> bool {
        let mut is_any_gone = false;
        // With a limits table, there are few writers, and no memory is allocated.
        let mut shared = self.config.limits.is_none().then(SharedAssertions::default);
        for index in 0..self.writers.list.len() {
            if sender.is_some_and(|sender| self.writers.may_assert(sender, index)) {
                continue;
            }
            if let Some(expired) = self.writers.expire(index, now, shared.as_mut()) {
                self.writer_gone(now, expired);
                is_any_gone = true;
            }
        }
        is_any_gone
    }

    /// Expires the leases of other writers that are over before a message of `sender` is handled, if that decides who
    /// owns an instance (OWNERSHIP): the timer may be late.
    #[inline]
    pub(super) fn expire_late_leases(&mut self, now: Time, sender: Guid) {
        let is_exclusive = self.delivery.cache.enforced.as_ref().is_some_and(|it| it.is_exclusive());
        if is_exclusive && self.writers.liveliness.may_be_over(now) {
            self.expire_other_leases(now, sender);
        }
    }

    #[cold]
    fn expire_other_leases(&mut self, now: Time, sender: Guid) {
        if let Some(enforced) = &mut self.delivery.cache.enforced {
            enforced.advance(now);
        }
        if self.expire_leases(now, Some(sender)) {
            self.timers_set = self.timers_set.wrapping_add(1);
            self.has_late_values |= self.end_left(now);
        }
        self.writers.note_first_end();
    }

    /// Returns LIVELINESS_CHANGED, and resets its changes to zero.
    pub fn take_liveliness_changed(&mut self) -> LivelinessChangedStatus {
        self.writers.liveliness.take()
    }

    /// Whether LIVELINESS_CHANGED has changed since it was taken.
    pub fn has_liveliness_news(&self) -> bool {
        self.writers.liveliness.has_news()
    }

    /// Number of matched writers that are not alive.
    pub fn not_alive_writers(&self) -> u32 {
        self.writers.liveliness.not_alive_count()
    }
}
