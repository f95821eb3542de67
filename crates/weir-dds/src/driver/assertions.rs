//! When a writer's application last showed that it is alive. A write leaves its time in an atomic, and discovery takes it
//! from there before a lease could run out.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use weir_rtps::participant::ParticipantCore;
use weir_rtps::qos::{INFINITE, Liveliness, LivelinessKind};
use weir_rtps::time::Time;
use weir_wire::EntityId;

/// Discovery learns of writes of a MANUAL_BY_PARTICIPANT writer at most this often in a lease.
const SHARE: u32 = 8;

/// When a writer last showed that its application is alive.
pub(crate) struct Assertions {
    kind: LivelinessKind,
    /// Shortest time between two assertions that discovery learns of; `None`: the lease is not watched.
    period: Option<Duration>,
    at: AtomicU64,
    reported_at: AtomicU64,
    /// Discovery has not learned of the last assertion, and the timer is set.
    is_pending: AtomicBool,
    /// The lease ran out.
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

    /// Whether the application has to assert the writer.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.period.is_some()
    }

    pub(crate) fn lost(&self) {
        self.is_lost.store(true, Ordering::SeqCst);
    }

    /// Takes note of an assertion.
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

    /// Reports the last assertion to discovery, if it is news.
    pub(super) fn report(&self, core: &mut ParticipantCore, now: Time, entity: EntityId) {
        self.is_pending.store(false, Ordering::SeqCst);
        let at = self.at.load(Ordering::SeqCst);
        if at > self.reported_at.swap(at, Ordering::SeqCst) {
            core.assert_writer(now, Time(at), entity);
        }
    }

    /// When the timer should report to discovery.
    pub(super) fn due_at(&self) -> Option<Time> {
        let period = self.period.filter(|_| self.is_pending.load(Ordering::SeqCst))?;
        Some(Time(self.reported_at.load(Ordering::SeqCst)) + period)
    }
}

/// When an assertion should be reported to discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// It need not be, or the timer is set already.
    Not,
    Now,
    At(Time),
}
