//! When a writer's application last showed that it is alive.
//!
//! A write stores its time in an atomic. Discovery reads it from there before the lease could
//! expire.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use weir_rtps::participant::ParticipantCore;
use weir_rtps::qos::{INFINITE, Liveliness, LivelinessKind};
use weir_rtps::time::Time;
use weir_wire::EntityId;

/// A MANUAL_BY_PARTICIPANT writer reports at most this many assertions per lease to discovery.
const SHARE: u32 = 8;

/// When a writer's application last showed that it is alive.
pub(crate) struct Assertions {
    kind: LivelinessKind,
    /// Shortest time between two reports to discovery. `None`: no lease is watched.
    period: Option<Duration>,
    at: AtomicU64,
    reported_at: AtomicU64,
    /// Discovery has yet to be informed of the last assertion, and the timer is set for that.
    is_pending: AtomicBool,
    /// The lease has expired.
    is_lost: AtomicBool,
}

impl Assertions {
    pub(crate) fn new(policy: Liveliness) -> Self {
        let is_watched = policy.kind != LivelinessKind::Automatic && policy.lease < INFINITE;
        Self {
            kind: policy.kind,
            period: is_watched.then(|| policy.lease / SHARE),
            at: AtomicU64::new(0),
            reported_at: AtomicU64::new(0),
            is_pending: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
        }
    }

    pub(crate) fn kind(&self) -> LivelinessKind {
        self.kind
    }

    /// Returns whether the application has to assert the writer.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.period.is_some()
    }

    pub(crate) fn lost(&self) {
        self.is_lost.store(true, Ordering::SeqCst);
    }

    /// Records an assertion.
    pub(super) fn note(&self, now: Time) -> Report {
        let Some(period) = self.period else { return Report::Not };
        self.at.fetch_max(now.0, Ordering::SeqCst);
        let is_back = self.is_lost.load(Ordering::SeqCst) && self.is_lost.swap(false, Ordering::SeqCst);
        if self.kind == LivelinessKind::ManualByTopic && !is_back {
            return Report::Not;
        }
        let due_at = Time(self.reported_at.load(Ordering::SeqCst)) + period;
        if is_back || due_at <= now {
            Report::Now
        } else if self.is_pending.swap(true, Ordering::SeqCst) {
            Report::Not
        } else {
            Report::At(due_at)
        }
    }

    /// Reports the last assertion to discovery, unless that was done before.
    pub(super) fn report(&self, core: &mut ParticipantCore, now: Time, entity: EntityId) {
        self.is_pending.store(false, Ordering::SeqCst);
        let at = self.at.load(Ordering::SeqCst);
        if at > self.reported_at.swap(at, Ordering::SeqCst) {
            core.assert_writer(now, Time(at), entity);
        }
    }

    /// Returns when the timer thread should report to discovery.
    pub(super) fn due_at(&self) -> Option<Time> {
        let period = self.period.filter(|_| self.is_pending.load(Ordering::SeqCst))?;
        Some(Time(self.reported_at.load(Ordering::SeqCst)) + period)
    }
}

/// When to report an assertion to discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// Not at all, or the timer is already set.
    Not,
    Now,
    At(Time),
}
