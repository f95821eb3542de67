//! Questions to best-effort readers what has arrived ([`Receipt`]), whose answers show what the paths to them carry.
//!
//! No reader acknowledges best-effort samples. Behind some of them, the writer asks the readers of this engine on other
//! hosts what has arrived by then. An answer passes the [mark](super::pacing) that the question set, as an ACKNACK does
//! that of a HEARTBEAT, and shows how much was lost. So the samples are in the account of the [path](crate::path): a
//! first flight, slow start, and a rate if there is a bottleneck. What the path does not take in time is left out, the
//! oldest first. The first question is sent at the match.
//!
//! A reader that has not answered for [`config::RECEIPT_WAIT`], or longer where its participant took long to answer
//! discovery, behind a link without a way back, is sent everything at once from then on, as those of other engines are,
//! as long as nothing else is known of their path. If it answers after all, its path is measured from then on.
//!
//! Readers that are set apart have [accounts of their own](super::receipts_apart).
//!
//! A writer that has reliable readers, too, knows their paths and asks nothing; nor does one with content filters, one
//! with a limits table, or any writer about readers that a multicast group serves.

use alloc::collections::VecDeque;
use core::time::Duration;

use weir_wire::{EntityId, Guid, Receipt, Received, SequenceNumber, push};

use super::compose;
use super::pacing::Pacing;
use super::reader_proxy::ReaderProxy;
use super::state::WriterCore;
use crate::config;
use crate::outbox::{Destinations, Outbox};
use crate::path::Path;
use crate::receiver::submessages::Moment;
use crate::time::Time;

/// What a writer has sent, as its readers count it, and its questions about that.
#[derive(Debug, Default)]
pub(super) struct Receipts {
    /// Readers are asked.
    pub(super) is_asking: bool,
    /// They are to be asked with the next transmission.
    pub(super) is_due: bool,
    /// The last question. Questions are numbered from 1.
    number: i64,
    pub(super) questions: Questions,
    /// Samples that did not leave as a whole: left out, removed, or sent in fragments.
    pub(super) not_whole: i64,
    pub(super) fragments: u64,
    pub(super) bytes: u64,
    /// Bytes sent before the last question that was answered.
    answered: u64,
}

/// The last questions.
#[derive(Debug)]
pub(super) struct Questions {
    asked: VecDeque<Question>,
    /// The first one since the last answer.
    unanswered_since: Option<Time>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Question {
    pub(super) number: i64,
    pub(super) at: Time,
    pub(super) sent: Sent,
}

/// What was sent before a question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) samples: i64,
    pub(super) fragments: u64,
    pub(super) bytes: u64,
}

impl Sent {
    pub(super) const NOTHING: Self = Self { samples: 0, fragments: 0, bytes: 0 };
}

/// What a reader has answered.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Answered {
    /// An earlier answer, with what had been sent before its question; `None`: not all was sent to it since.
    since: Option<(Sent, Received)>,
    /// Bytes lost since then, as far as is known.
    lost: u64,
}

impl Questions {
    pub(super) const NONE: Self = Self { asked: VecDeque::new(), unanswered_since: None };

    /// Forgets all, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.asked.clear();
        self.unanswered_since = None;
    }

    /// Remembers one more. Without room, the first one is forgotten.
    pub(super) fn add(&mut self, question: Question) {
        self.unanswered_since.get_or_insert(question.at);
        if self.asked.len() >= QUESTIONS_MAX {
            self.asked.pop_front();
        }
        self.asked.push_back(question);
    }

    /// Returns how long to wait before another question where nothing was sent since the last one, while none is
    /// answered: the longer, the longer it takes.
    pub(super) fn patience(&self, now: Time) -> Duration {
        self.unanswered_since.map_or(Duration::ZERO, |since| now.since(since) / UNANSWERED_SHARE)
    }

    /// Returns the question of a number, which is answered now, if it is remembered.
    pub(super) fn answered(&mut self, number: u32) -> Option<Question> {
        let question = self.asked.iter().find(|it| it.number as u32 == number).copied()?;
        self.unanswered_since = None;
        Some(question)
    }
}

impl Default for Questions {
    fn default() -> Self {
        Self::NONE
    }
}

impl Answered {
    /// Counts losses from the next answer on.
    pub(super) fn begin(&mut self) {
        self.since = None;
    }

    /// Takes an answer. Returns the bytes that were lost and not known to be.
    fn settle(&mut self, sent: Sent, received: Received) -> u64 {
        if self.since.is_some_and(|(before, _)| sent.bytes < before.bytes) {
            // A later question is answered already.
            return 0;
        }
        let since = self.since.filter(|(_, before)| before.drops == received.drops);
        let Some((sent_before, before)) = since else {
            // What the host of the reader has dropped, the path has not.
            (self.since, self.lost) = (Some((sent, received)), 0);
            return 0;
        };
        let samples = sent.samples - sent_before.samples;
        let fragments = (sent.fragments - sent_before.fragments).cast_signed();
        let arrived = received.samples.wrapping_sub(before.samples).cast_signed();
        let arrived_fragments = i64::from(received.fragments.wrapping_sub(before.fragments));
        let (all, arrived) = (samples + fragments, arrived.saturating_add(arrived_fragments));
        let missing = all.saturating_sub(arrived);
        if !(0..=all).contains(&missing) {
            // The reader has begun anew, or met samples from before the first question.
            self.since = None;
            return self.settle(sent, received);
        }
        let bytes = (sent.bytes - sent_before.bytes) as f64;
        let lost = (bytes * missing as f64 / all.max(1) as f64) as u64;
        // What was late may have arrived since.
        let more = lost.saturating_sub(self.lost);
        self.lost += more;
        if all >= SETTLED_AFTER {
            self.since = None;
            _ = self.settle(sent, received);
        }
        more
    }
}

impl Receipts {
    /// Returns the number of a new question.
    pub(super) fn next_number(&mut self) -> i64 {
        self.number += 1;
        self.number
    }

    /// Records a question, and returns its number.
    fn ask(&mut self, now: Time, sent: Sent) -> i64 {
        let number = self.next_number();
        self.questions.add(Question { number, at: now, sent });
        number
    }

    /// Returns whether much was sent that no answer has shown.
    pub(super) fn has_much_unanswered(&self) -> bool {
        self.bytes - self.answered >= config::RECEIPT_BYTES_MANY
    }
}

impl Pacing {
    /// Asks nothing from now on. The answers to what was asked before are ignored, so that nothing is in flight that
    /// only these would show. `was_asking`: something was asked.
    fn end_receipts(&mut self, was_asking: bool) {
        for it in &mut self.uses {
            (it.gives_receipts, it.expects_receipts_until, it.unasked) = (false, None, 0);
            if was_asking && !self.is_reliable {
                it.begin_marks((SequenceNumber(self.receipts.number), 0));
            }
        }
        self.receipts.questions.clear();
        self.receipts.is_due = false;
    }

    /// Returns whether readers at the end of a path are sent everything at once, as none has answered in time.
    fn gave_up_on(&self, now: Time, path: &Path) -> bool {
        self.uses
            .iter()
            .any(|it| it.path.is(path) && it.expects_receipts_until.is_some() && !it.is_answered(now))
    }
}

impl ReaderProxy {
    /// Returns whether it can be asked what has arrived.
    pub(super) fn is_asked(&self) -> bool {
        !self.is_reliable && self.path.is_some() && self.group.is_none() && self.shows_progress()
    }

    /// Returns whether it has answered on its path.
    pub(super) fn gives_receipts(&self) -> bool {
        self.is_asked() && self.requested.answered.is_some()
    }
}

impl WriterCore {
    /// Decides anew whether readers are asked, after they or what they are sent has changed.
    pub(super) fn consider_receipts(&mut self) {
        let is_possible = !self.pacing.is_reliable && self.config.limits.is_none() && self.filters.is_none();
        let is_asking = is_possible && self.proxies.iter().any(ReaderProxy::is_asked);
        let was_asking = core::mem::replace(&mut self.pacing.receipts.is_asking, is_asking);
        if !is_asking {
            self.pacing.end_receipts(was_asking);
        } else if !was_asking {
            self.pacing.receipts.is_due = true;
            for it in &mut self.pacing.uses {
                let is_there =
                    |proxy: &ReaderProxy| proxy.path.as_ref().is_some_and(|path| path.is(&it.path));
                it.gives_receipts =
                    self.proxies.iter().any(|proxy| is_there(proxy) && proxy.gives_receipts());
            }
        }
        self.update_indirect();
    }

    /// Asks behind what was just sent, if that is due.
    pub(super) fn ask_when_due(&mut self, now: Time, out: &mut Outbox) {
        let pacing = &self.pacing;
        let since = pacing.since_mark + pacing.unrecorded;
        let is_known = pacing.uses.iter().any(|it| it.gives_receipts);
        let is_time = if is_known { pacing.wants_mark(now) } else { pacing.is_unmarked_since(now) };
        // Questions are remembered until their answers come, however long the path has become.
        let patience = pacing.receipts.questions.patience(now).min(config::QUESTION_EVERY_MAX);
        let is_time = is_time && !pacing.has_marked_within(now, patience);
        // Where acknowledgements of others measure the path, few questions are enough.
        let is_enough = !is_known || since >= config::RECEIPT_BYTES_MANY || pacing.is_unmeasured(now);
        let is_stuck = pacing.is_blocked && (since > 0 || pacing.is_overdue(now));
        if is_stuck || since >= config::RECEIPT_BYTES && is_time && is_enough {
            self.ask_for_receipts(now, out);
        }
    }

    /// Asks all readers that can answer what has arrived.
    pub(super) fn ask_for_receipts(&mut self, now: Time, out: &mut Outbox) {
        let to = &mut self.addresses;
        to.clear();
        for proxy in self.proxies.iter().filter(|proxy| proxy.is_asked() && !proxy.is_apart()) {
            to.extend(proxy.destinations.iter());
        }
        to.sort_unstable();
        to.dedup();
        if to.is_empty() {
            return;
        }
        let to = self.lists.list(to);
        self.pacing.spend(now, 0);
        let Receipts { not_whole, fragments, bytes, .. } = self.pacing.receipts;
        let sent = Sent { samples: self.unsent.0 - not_whole, fragments, bytes };
        let number = self.pacing.receipts.ask(now, sent);
        for it in &mut self.pacing.uses {
            let is_there = |proxy: &ReaderProxy| proxy.path.as_ref().is_some_and(|path| path.is(&it.path));
            if self.proxies.iter().any(|proxy| proxy.is_asked() && is_there(proxy)) {
                let wait = it.path.lock().first_answer_time();
                it.expects_receipts_until.get_or_insert(now + wait);
            }
        }
        self.pacing.mark(now, (SequenceNumber(number), 0));
        self.append_question(&to, number, out);
    }

    /// Appends a question to the readers at some addresses.
    pub(super) fn append_question(&self, to: &Destinations, number: i64, out: &mut Outbox) {
        let header = compose::header(&self.config);
        let (reader, writer) = (EntityId::UNKNOWN, self.config.guid.entity);
        out.message(to, |message| {
            push(message, &header);
            push(message, &Receipt { reader, writer, number: number as u32, received: None });
        });
    }

    /// Goes on with a sample. Those before it are not sent any more.
    pub(super) fn pass_over(&mut self, next: SequenceNumber) {
        self.note_left_out((next.0 - self.unsent.0).max(0));
        self.unsent = self.unsent.max(next);
    }

    /// Counts samples that the readers that are not apart are not sent.
    pub(super) fn note_left_out(&mut self, samples: i64) {
        let is_any_apart = self.taking.is_some();
        let readers = self.proxies.iter().filter(|proxy| !is_any_apart || !proxy.is_apart()).count();
        self.pacing.receipts.not_whole += samples;
        self.counters.samples_left_out += samples.unsigned_abs() * readers as u64;
    }

    /// Begins to measure a path whose reader answers after all: of what it was sent at once, much is lost, and some
    /// still waits in queues. Nothing but first flights is sent until the next question is answered.
    fn begin_anew(&mut self, now: Time, path: &Path) {
        let position = (SequenceNumber(self.pacing.receipts.number), 0);
        self.pacing.receipts.questions.clear();
        for it in self.pacing.uses.iter_mut().filter(|it| it.path.is(path)) {
            it.begin_marks(position);
            it.unasked = 0;
        }
        self.readers_changed(now);
        self.pacing.receipts.is_due = true;
        self.due.add_all();
    }

    /// Handles the answer of a best-effort reader.
    pub(crate) fn handle_receipt(&mut self, moment: Moment, reader: Guid, number: u32, received: Received) {
        let now = moment.now;
        // Once samples are acknowledged, the numbers of questions are no positions.
        let Some(index) = self.places.find(&self.proxies, &reader).filter(|_| self.pacing.receipts.is_asking)
        else {
            return;
        };
        let proxy = &mut self.proxies[index];
        let is_apart = proxy.is_apart();
        let requested = proxy.requested.changed().filter(|_| is_apart);
        let own = requested.and_then(|it| it.apart.questions.answered(number));
        let Some(question) = own.or_else(|| self.pacing.receipts.questions.answered(number)) else { return };
        let Some(path) = proxy.path.clone().filter(|_| proxy.is_asked()) else { return };
        if proxy.requested.answered.is_none() && self.pacing.gave_up_on(now, &path) {
            proxy.requested.answered = Some(Answered::default());
            return self.begin_anew(now, &path);
        }
        if own.is_none() {
            self.pacing.receipts.answered = self.pacing.receipts.answered.max(question.sent.bytes);
        }
        let is_first = proxy.requested.answered.is_none();
        let answered = proxy.requested.answered.get_or_insert_default();
        if is_apart && own.is_none() {
            // It was asked before it was set apart.
            answered.since = None;
        } else {
            path.lock().note_lost(answered.settle(question.sent, received));
        }
        if is_first {
            self.readers_changed(now);
        }
        // As if both hosts had handled everything at once: what waits in their sockets shows nothing about the path.
        let passed_at = moment.arrived().before(received.held_ns.into());
        let passed_at = if passed_at > question.at { passed_at } else { now };
        if question.sent.bytes == 0 {
            // Nothing was sent that it could mark.
            path.lock().note_round_trip(passed_at, question.at);
        }
        self.pacing.passed(passed_at, &path, (SequenceNumber(question.number), 0), false);
        path.lock().note_heard(now);
        self.observe_paths(now);
    }
}

/// Questions that are remembered.
const QUESTIONS_MAX: usize = 64;
/// The next question follows after this share of the time without an answer.
const UNANSWERED_SHARE: u32 = 8;
/// Samples and fragments sent, after which earlier losses are settled.
const SETTLED_AFTER: i64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(samples: i64, fragments: u64) -> Sent {
        Sent { samples, fragments, bytes: (samples.cast_unsigned() + fragments) * 1000 }
    }

    #[test]
    fn losses_are_counted_once_and_what_is_late_is_not_lost() {
        let mut answered = Answered::default();
        let mut settle = |sent: Sent, samples, fragments| {
            answered.settle(sent, Received { samples, fragments, ..Received::default() })
        };
        // The counts of both begin anywhere.
        assert_eq!(settle(sent(100, 0), 7, u32::MAX), 0);
        assert_eq!(settle(sent(110, 0), 15, u32::MAX), 2000);
        assert_eq!(settle(sent(110, 0), 15, u32::MAX), 0);
        // The two were late. One more is lost, and one of ten fragments.
        assert_eq!(settle(sent(120, 0), 26, u32::MAX), 0);
        assert_eq!(settle(sent(120, 10), 26, 8), 0);
        assert_eq!(settle(sent(130, 20), 35, 17), 2000);
        // A reader that has received more than was sent counts something else.
        assert_eq!(settle(sent(131, 20), 1000, 17), 0);
        assert_eq!(settle(sent(141, 20), 1009, 17), 1000);
    }

    #[test]
    fn an_answer_to_an_earlier_question_changes_nothing() {
        let mut answered = Answered::default();
        let mut settle = |sent: Sent, samples, fragments| {
            answered.settle(sent, Received { samples, fragments, ..Received::default() })
        };
        assert_eq!(settle(sent(10, 20), 5, 15), 0);
        for _ in 0..2 {
            assert_eq!(settle(sent(5, 10), 3, 8), 0);
        }
        assert_eq!(settle(sent(20, 30), 15, 25), 0);
        assert_eq!(settle(sent(30, 30), 24, 25), 1000);
    }

    #[test]
    fn an_answer_to_no_question_is_ignored() {
        let mut receipts = Receipts::default();
        let at = Time(1);
        (0..QUESTIONS_MAX + 2).for_each(|_| _ = receipts.ask(at, sent(1, 0)));
        assert!(receipts.questions.answered(2).is_none() && receipts.questions.answered(0).is_none());
        assert!(receipts.questions.answered(3).is_some() && receipts.questions.answered(67).is_none());
    }
}
