//! Liveliness: how long a writer may be silent, and the status that counts violations (DDS 1.4,
//! 2.2.3.11; RTPS 2.5, 8.4.13).
//!
//! A silent writer stays matched, but its instances have no writer until it is received from again.
//! Sending assertions is in [`participant`](crate::participant).

use weir_wire::Guid;

use crate::on_demand::Idle;
use crate::qos::{INFINITE, Liveliness, LivelinessKind};
use crate::time::Time;

/// The lease of one writer: it counts as not alive if it is not asserted for this period.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lease {
    policy: Liveliness,
    asserted_at: Time,
    is_alive: bool,
    /// Whether it has not expired since it was last settled.
    is_settled: bool,
}

impl Idle for Lease {
    const IDLE: Self = Self::ENDLESS;

    fn idle() -> &'static Self {
        static IDLE: Lease = Lease::ENDLESS;
        &IDLE
    }
}

impl Lease {
    /// Starts a lease.
    pub(crate) fn new(now: Time, policy: Liveliness) -> Self {
        Self { policy, asserted_at: now, is_alive: true, is_settled: true }
    }

    /// A lease that never expires.
    pub(crate) const ENDLESS: Self =
        Self { policy: Liveliness::ENDLESS, asserted_at: Time::ZERO, is_alive: true, is_settled: true };

    pub(crate) fn kind(&self) -> LivelinessKind {
        self.policy.kind
    }

    pub(crate) fn asserted_at(&self) -> Time {
        self.asserted_at
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.is_alive
    }

    /// Renews the lease; `true` if it had expired.
    #[inline]
    pub(crate) fn assert(&mut self, at: Time) -> bool {
        self.asserted_at = self.asserted_at.max(at);
        !core::mem::replace(&mut self.is_alive, true)
    }

    /// Returns whether the lease has just expired.
    pub(crate) fn expire(&mut self, now: Time) -> bool {
        let is_over = self.expires_at().is_some_and(|at| at <= now);
        self.is_alive &= !is_over;
        self.is_settled &= !is_over;
        is_over
    }

    /// Whether nothing is left to be done since the writer was not alive: [`Lease::settle`] was called.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// Records that what the writer left when it was not alive was done.
    pub(crate) fn settle(&mut self) {
        self.is_settled = true;
    }

    /// Records that the writer is back, and something is left to be done.
    pub(crate) fn set_returning(&mut self) {
        self.is_settled = false;
    }

    /// Returns when the lease expires; `None` if it has, or never does.
    pub(crate) fn expires_at(&self) -> Option<Time> {
        (self.is_alive && self.policy.lease < INFINITE).then(|| self.asserted_at + self.policy.lease)
    }
}

/// The number of a reader's writers that are alive (LIVELINESS_CHANGED). Changes count since the
/// status was last read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LivelinessChangedStatus {
    /// Matched writers that are alive.
    pub alive_count: u32,
    /// Matched writers that were silent for too long.
    pub not_alive_count: u32,
    /// Change of `alive_count`.
    pub alive_count_change: i32,
    /// Change of `not_alive_count`.
    pub not_alive_count_change: i32,
    /// The writer that caused the last change.
    pub last_publication_handle: Option<Guid>,
}

/// The status of a reader, and whether a listener should be notified.
#[derive(Debug, Default)]
pub(crate) struct LivelinessChanges {
    status: LivelinessChangedStatus,
    has_news: bool,
    /// No lease ends before this time.
    none_ends_before: Time,
}

impl LivelinessChanges {
    /// Records a change of a writer by these changes of the counts.
    pub(crate) fn change(&mut self, writer: Guid, alive: i32, not_alive: i32) {
        let status = &mut self.status;
        status.alive_count = status.alive_count.saturating_add_signed(alive);
        status.not_alive_count = status.not_alive_count.saturating_add_signed(not_alive);
        status.alive_count_change = status.alive_count_change.saturating_add(alive);
        status.not_alive_count_change = status.not_alive_count_change.saturating_add(not_alive);
        status.last_publication_handle = Some(writer);
        self.has_news = true;
    }

    /// Returns the status and resets its changes to zero.
    pub(crate) fn take(&mut self) -> LivelinessChangedStatus {
        let status = self.status;
        (self.status.alive_count_change, self.status.not_alive_count_change) = (0, 0);
        self.has_news = false;
        status
    }

    pub(crate) fn has_news(&self) -> bool {
        self.has_news
    }

    /// Records that a lease has begun, and ends at this time if it is not renewed.
    pub(crate) fn lease_began(&mut self, ends_at: Option<Time>) {
        self.none_ends_before = ends_at.into_iter().fold(self.none_ends_before, Time::min);
    }

    /// Records when the first of all leases ends.
    pub(crate) fn set_first_end(&mut self, ends_at: Option<Time>) {
        self.none_ends_before = ends_at.unwrap_or(Time(u64::MAX));
    }

    /// Returns whether a lease may be over.
    #[inline]
    pub(crate) fn may_be_over(&self, now: Time) -> bool {
        now >= self.none_ends_before
    }

    pub(crate) fn not_alive_count(&self) -> u32 {
        self.status.not_alive_count
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    #[test]
    fn a_lease_runs_out_once_and_begins_again_when_it_is_asserted() {
        let policy = Liveliness { kind: LivelinessKind::ManualByTopic, lease: Duration::from_secs(1) };
        let mut lease = Lease::new(Time(5), policy);
        assert_eq!(lease.expires_at(), Some(Time(1_000_000_005)));
        assert!(!lease.assert(Time(10)));
        assert!(!lease.assert(Time(7)), "news that are older than others change nothing");
        assert!(!lease.expire(Time(1_000_000_009)));
        assert!(lease.expire(Time(1_000_000_010)));
        assert!(!lease.expire(Time(1_000_000_011)));
        assert_eq!(lease.expires_at(), None);
        assert!(lease.assert(Time(2_000_000_000)));
        assert_eq!(lease.expires_at(), Some(Time(3_000_000_000)));
    }

    #[test]
    fn an_endless_lease_does_not_run_out() {
        let mut lease = Lease::ENDLESS;
        assert_eq!(lease.expires_at(), None);
        assert!(!lease.expire(Time(u64::MAX - 1)));
    }
}
