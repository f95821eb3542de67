//! Questions to best-effort readers that are set [apart](super::apart).
//!
//! Each of them is sent other samples than the others, at other times. So what it was sent since it is apart is counted
//! by itself, and it is asked about that by itself. The numbers of these questions are among those of the writer's
//! [others](super::receipts).

use alloc::sync::Arc;
use core::time::Duration;

use weir_wire::SequenceNumber;

use super::pacing::{Pacing, mark_every, patience_for};
use super::receipts::{Question, Questions, Sent};
use super::state::WriterCore;
use crate::config;
use crate::outbox::Outbox;
use crate::path::Path;
use crate::time::Time;

/// What a reader was sent since it is apart, and was asked about that.
#[derive(Debug)]
pub(super) struct SentApart {
    sent: Sent,
    pub(super) questions: Questions,
    /// Bytes sent since the last question.
    since: u64,
    asked_at: Time,
    /// Nothing more may be sent until something has passed.
    is_blocked: bool,
}

impl SentApart {
    pub(super) const NONE: Self = Self {
        sent: Sent::NOTHING,
        questions: Questions::NONE,
        since: 0,
        asked_at: Time::ZERO,
        is_blocked: false,
    };

    /// Counts from nothing.
    pub(super) fn begin(&mut self) {
        let mut questions = core::mem::take(&mut self.questions);
        questions.clear();
        *self = Self { questions, ..Self::NONE };
    }

    /// Records a sample, or so many fragments of a large one.
    pub(super) fn note_sent(&mut self, fragments: Option<u32>) {
        match fragments {
            None => self.sent.samples += 1,
            Some(fragments) => self.sent.fragments += u64::from(fragments),
        }
    }

    fn ask(&mut self, now: Time, number: i64) {
        self.questions.add(Question { number, at: now, sent: self.sent });
        (self.since, self.asked_at) = (0, now);
    }

    /// Returns whether a question is due on a path with this round trip.
    fn is_due(&self, now: Time, mark_every_bytes: Option<u64>, round_trip: Option<Duration>) -> bool {
        let elapsed = now.since(self.asked_at);
        let is_enough = mark_every_bytes.is_some_and(|bytes| self.since >= bytes)
            || self.since >= config::RECEIPT_BYTES && elapsed >= mark_every(round_trip);
        let is_overdue = elapsed >= self.questions.patience(now).max(answer_patience(round_trip));
        is_enough || self.is_blocked && (self.since > 0 || is_overdue)
    }
}

/// Returns after which time the answer to a question must be lost.
pub(super) fn answer_patience(round_trip: Option<Duration>) -> Duration {
    patience_for(round_trip).max(config::HEARTBEAT_DELAY_MIN)
}

impl Pacing {
    /// Returns whether readers at the end of a path say what has arrived, or may still do.
    pub(super) fn is_answered_on(&self, now: Time, path: &Path) -> bool {
        self.uses.iter().any(|it| it.path.is(path) && it.is_answered(now))
    }

    /// Marks what was sent on a path before a question.
    fn mark_apart(&mut self, now: Time, path: &Path, number: i64) {
        let position = (SequenceNumber(number), 0);
        for it in self.uses.iter_mut().filter(|it| it.path.is(path)) {
            if it.marks.len() < self.marks_max && position > it.passed {
                let mut mark = path.lock().mark(now);
                mark.is_of_question = true;
                it.marks.push_back((position, mark));
            }
        }
    }
}

impl WriterCore {
    /// Records what a best-effort reader that is apart was sent. `is_blocked`: it may be sent no more before something
    /// has passed.
    pub(super) fn note_sent_apart(&mut self, now: Time, index: usize, bytes: u64, is_blocked: bool) {
        let proxy = &mut self.proxies[index];
        let Some(path) = proxy.path.clone().filter(|_| proxy.is_apart()) else { return };
        if !self.pacing.is_answered_on(now, &path) {
            return;
        }
        path.lock().note_answerable(bytes * proxy.destinations.len().max(1) as u64);
        if let Some(requested) = proxy.requested.changed() {
            let apart = &mut requested.apart;
            apart.sent.bytes += bytes;
            apart.since += bytes;
            apart.is_blocked = is_blocked;
        }
    }

    /// Asks a reader that is apart what has arrived, if that is due.
    pub(super) fn ask_apart_when_due(&mut self, now: Time, index: usize, out: &mut Outbox) {
        let proxy = &self.proxies[index];
        let is_asked = proxy.is_apart() && proxy.is_asked() && self.pacing.receipts.is_asking;
        let Some(path) = proxy.path.clone().filter(|_| is_asked) else { return };
        let round_trip = path.lock().round_trip_min();
        let every_bytes = path.lock().mark_every_bytes();
        if !proxy.requested.apart.is_due(now, every_bytes, round_trip) {
            return;
        }
        let number = self.pacing.receipts.next_number();
        self.pacing.mark_apart(now, &path, number);
        let proxy = &mut self.proxies[index];
        if let Some(requested) = proxy.requested.changed() {
            requested.apart.ask(now, number);
        }
        let to = Arc::clone(&proxy.destinations);
        self.append_question(&to, number, out);
    }
}
