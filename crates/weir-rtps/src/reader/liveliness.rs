//! The liveliness of a reader's matched writers (DDS 1.4, 2.2.3.11).

use weir_wire::{Guid, GuidPrefix};

use super::ReaderCore;
use crate::config::LIVELINESS_LEASE_MIN;
use crate::liveliness::{Lease, LivelinessChangedStatus};
use crate::qos::{Liveliness, LivelinessKind};
use crate::time::Time;

impl ReaderCore {
    /// Sets the liveliness that a matched writer offers. Its lease begins now, and lasts at least
    /// [`LIVELINESS_LEASE_MIN`]. Without this call the writer counts as alive until it is unmatched.
    pub fn set_liveliness(&mut self, now: Time, writer: Guid, policy: Liveliness) {
        self.delivery.end_left_by(now, writer);
        if let Some(proxy) = self.writers.get_mut(writer) {
            self.delivery.counters.leases_raised += u64::from(policy.lease < LIVELINESS_LEASE_MIN);
            let policy = Liveliness { lease: policy.lease.max(LIVELINESS_LEASE_MIN), ..policy };
            if policy != Liveliness::ENDLESS || proxy.lease.is_changed() {
                *proxy.lease = Lease::new(now, policy);
            }
            let at = proxy.lease.expires_at();
            self.timer_set(at);
        }
    }

    /// Asserts the liveliness of all writers of a participant that have this kind.
    pub fn assert_liveliness(&mut self, now: Time, participant: GuidPrefix, kind: LivelinessKind) {
        if self.writers.assert_all(now, participant, kind) {
            self.end_all_left(now);
            self.timers_set = self.timers_set.wrapping_add(1);
        }
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
