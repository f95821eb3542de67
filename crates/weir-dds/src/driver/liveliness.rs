//! Liveliness of our writers: discovery watches their leases and tells others, but is not asked at every write.
//! A write leaves its time in an atomic, and discovery takes it from there before a lease could run out.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use weir_rtps::participant::ParticipantCore;
use weir_rtps::qos::{INFINITE, Liveliness, LivelinessKind};
use weir_rtps::time::Time;
use weir_wire::EntityId;

use super::Driver;
use super::endpoints::{Table, WriterEndpoint};

/// In a lease, discovery is told of writes of a MANUAL_BY_PARTICIPANT writer this often at most.
const SHARE: u32 = 8;

/// When a writer last showed that its application is alive.
pub(crate) struct Assertions {
    kind: LivelinessKind,
    /// Shortest time between two assertions that discovery is told of; `None`: nobody watches.
    period: Option<Duration>,
    at: AtomicU64,
    told_at: AtomicU64,
    /// Discovery has not been told of the last assertion, and the timer knows.
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
            told_at: AtomicU64::new(0),
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

    fn tell(&self, core: &mut ParticipantCore, now: Time, entity: EntityId) {
        self.is_pending.store(false, Ordering::SeqCst);
        let at = self.at.load(Ordering::SeqCst);
        if at > self.told_at.swap(at, Ordering::SeqCst) {
            core.assert_writer(now, Time(at), entity);
        }
    }

    /// When the timer should tell discovery.
    fn due_at(&self) -> Option<Time> {
        let period = self.period.filter(|_| self.is_pending.load(Ordering::SeqCst))?;
        Some(Time(self.told_at.load(Ordering::SeqCst)) + period)
    }
}

impl Driver {
    /// A watched writer has written or was asserted. No lock of the writer may be held.
    pub(crate) fn note_assertion(&self, writer: &WriterEndpoint, now: Time) {
        let assertions = &writer.assertions;
        let Some(period) = assertions.period else { return };
        assertions.at.fetch_max(now.0, Ordering::SeqCst);
        let is_back =
            assertions.is_lost.load(Ordering::SeqCst) && assertions.is_lost.swap(false, Ordering::SeqCst);
        if assertions.kind == LivelinessKind::ManualByTopic && !is_back {
            return;
        }
        let due_at = Time(assertions.told_at.load(Ordering::SeqCst)) + period;
        if is_back || due_at <= now {
            self.with_discovery(|core, now| assertions.tell(core, now, writer.entity));
        } else if !assertions.is_pending.swap(true, Ordering::SeqCst) {
            self.timers.arm(due_at);
        }
    }

    /// Tells discovery of everything that its leases should know before they run out.
    pub(crate) fn tell_assertions(&self, core: &mut ParticipantCore, now: Time) {
        let table = self.routes.table();
        for writer in table.writers.values().filter(|writer| writer.assertions.is_watched()) {
            writer.assertions.tell(core, now, writer.entity);
        }
    }

    /// Tells discovery of what is pending and due, and says when more is due.
    pub(crate) fn assertions_timeout(&self, now: Time, table: &Table) -> Option<Time> {
        let due_at = || table.writers.values().filter_map(|writer| writer.assertions.due_at()).min();
        if due_at()? <= now {
            self.with_discovery(|core, now| self.tell_assertions(core, now));
        }
        due_at()
    }
}
