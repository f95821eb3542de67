//! ACKNACKs: what readers acknowledge and request (RTPS 2.5, 8.4.7.5.3, 8.4.9).

use weir_wire::{AckNack, Guid, SequenceNumber};

use super::reader_proxy::is_preemptive;
use super::state::WriterCore;
use crate::time::Time;

impl WriterCore {
    /// Handles an ACKNACK (RTPS 2.5, 8.3.8.1).
    ///
    /// Everything before the set's base has arrived; the numbers in the set are missing.
    pub fn handle_acknack(&mut self, now: Time, reader: Guid, acknack: &AckNack) {
        let (next, first) = (self.history.next(), self.history.first());
        let Some(index) = self.reliable_reader(&reader) else {
            self.counters.acknacks_ignored += 1;
            return;
        };
        let (unsent, known) = self.proxies[index].ends(self.unsent);
        let proxy = &mut self.proxies[index];
        if acknack.state.base() > next {
            self.counters.acknacks_ignored += 1;
            proxy.knows_numbers = Some(false);
            // A reader that remembers an earlier process with this GUID. Only a HEARTBEAT that names
            // samples shows that they begin again, and it gets one when it is introduced.
            self.due.add_if(index, proxy.introduce(next));
        } else if proxy.is_news(now, acknack) {
            self.counters.acknacks_received += 1;
            self.give_time(now, index);
            let may_ask = acknack.state.is_empty() || self.may_repair(now, index);
            let proxy = &mut self.proxies[index];
            if self.config.guid.entity.is_builtin() {
                // For discovery. Samples are acknowledged too often to look at each.
                proxy.knows_numbers = knows_numbers(acknack, self.config.first).or(proxy.knows_numbers);
            }
            let (is_anew, before) = (proxy.starts_anew(acknack), (proxy.acknowledged, proxy.seen));
            if self.has_withheld {
                proxy.judge(acknack);
            }
            if is_anew {
                proxy.start_anew(acknack);
                proxy.forget_reach(unsent);
            }
            let asked = proxy.requested.samples.len();
            proxy.update(acknack, first, (known, next));
            let repaired_at = if proxy.path.is_some() { proxy.settle_repairs() } else { None };
            let is_proven = proxy.requested.discards.is_some() && proxy.has_later(acknack);
            let is_loss = may_ask && proxy.request(now, acknack, first, unsent);
            proxy.note_reach(acknack.state.num_bits());
            let is_back = proxy.note_answer(is_anew || proxy.acknowledged > before.0, first);
            let is_progress =
                (proxy.acknowledged, proxy.seen) != before || self.acknowledged < self.unsent.prev();
            self.due.add_if(index, is_loss || proxy.is_heartbeat_due || proxy.awaits_gap());
            if is_loss {
                self.note_loss(now);
                self.expect_repairs_to_arrive(now);
            }
            self.go_back(now, index, (asked, usize::MAX), is_proven);
            self.heartbeat.answered(now);
            self.hear(now, index, acknack, unsent);
            if let Some((path, at)) = self.proxies[index].path.as_ref().zip(repaired_at) {
                self.pacing.note_repair_shown(now, path, at);
            }
            self.note_path(now, index, asked, usize::MAX);
            self.counters.readers_restarted += u64::from(is_anew);
            self.counters.readers_resumed += u64::from(is_back);
            if !self.routes.is_empty() {
                self.judge_group(now, index, acknack, before.1, false);
            }
            if is_back {
                self.readers_changed(now);
            } else if is_anew {
                self.recount_acknowledged(now);
            } else if is_progress {
                // It visits all readers, who all answer when they match.
                self.update_acknowledged(now);
            }
        } else if proxy.is_continuation(acknack) {
            self.handle_continuation(now, index, acknack, (first, unsent));
        } else {
            self.counters.acknacks_ignored += 1;
        }
    }

    /// Handles an ACKNACK that continues the one before. `first`: the first sample in the history, `unsent`: the first
    /// that the reader was never sent.
    fn handle_continuation(
        &mut self,
        now: Time,
        index: usize,
        acknack: &AckNack,
        (first, unsent): (SequenceNumber, SequenceNumber),
    ) {
        let may_ask = self.may_repair(now, index);
        let proxy = &mut self.proxies[index];
        let (asked, seen) = (proxy.requested.samples.len(), proxy.seen);
        proxy.judge_continuation(acknack);
        proxy.note_seen(acknack, unsent);
        let is_due = may_ask && proxy.request(now, acknack, first, unsent) || proxy.awaits_gap();
        self.due.add_if(index, is_due);
        self.note_path(now, index, asked, usize::MAX);
        self.judge_group(now, index, acknack, seen, true);
        self.update_acknowledged(now);
    }

    /// Requests an acknowledgement from all reliable readers with the next transmission, for a
    /// thread that waits for it.
    pub fn request_acknowledgement(&mut self) {
        let is_news = self.heartbeat.charged < self.history.charged() || self.has_unsent();
        self.heartbeat.is_due |= is_news && self.has_unacknowledged();
    }

    /// Recomputes what all reliable readers have acknowledged, after one was matched or restarted.
    ///
    /// There must be a reliable reader. The result may be lower than before: the new reader may
    /// have acknowledged less than the others.
    pub(super) fn recount_acknowledged(&mut self, now: Time) {
        let reliable = || self.proxies.iter().filter(|proxy| proxy.is_awaited());
        let acknowledged = reliable().map(|proxy| proxy.acknowledged).min();
        let seen = reliable().filter(|proxy| !proxy.is_apart()).map(|proxy| proxy.seen).min();
        let acknowledged = acknowledged.unwrap_or(self.acknowledged).max(self.history.first().prev());
        let seen_charge = self.history.charged_to(seen.unwrap_or(acknowledged));
        self.set_acknowledged(now, acknowledged, seen_charge);
    }

    /// Sets what all reliable readers have acknowledged, which may be less than before.
    pub(super) fn set_acknowledged(&mut self, now: Time, acknowledged: SequenceNumber, seen_charge: u64) {
        self.acknowledged = acknowledged;
        self.acknowledged_charge = self.history.charged_to(acknowledged);
        self.seen_charge = seen_charge;
        self.heartbeat.delay = self.heartbeat.delay_min;
        if !self.has_unacknowledged() {
            // Most matches of a large domain are of writers without samples.
            self.heartbeat.next_at = self.next_prompt(now);
            return;
        }
        let at = now + self.heartbeat.delay;
        // The readers that already owe an answer must not wait for one more after the other to be matched.
        let before = self.heartbeat.next_at.filter(|_| !self.config.answer_time.is_zero());
        self.heartbeat.next_at = Some(before.map_or(at, |before| before.min(at)));
    }

    pub(super) fn update_acknowledged(&mut self, now: Time) {
        let reliable = self.proxies.iter().filter(|proxy| proxy.is_awaited());
        let (sent, is_any_apart) = (self.unsent.prev(), self.taking.is_some());
        let all = reliable.fold(None, |all: Option<(SequenceNumber, SequenceNumber)>, proxy| {
            // What a reader was not sent is not in its socket.
            let its_seen = if is_any_apart && proxy.is_apart() { sent } else { proxy.seen };
            let (acknowledged, seen) = all.unwrap_or((proxy.acknowledged, its_seen));
            Some((acknowledged.min(proxy.acknowledged), seen.min(its_seen)))
        });
        let (acknowledged, seen) = all.unwrap_or((sent, sent));
        let seen_charge = self.history.charged_to(seen);
        if seen_charge > self.seen_charge {
            self.window.on_acknowledged(seen_charge - self.seen_charge);
            self.seen_charge = seen_charge;
        }
        if acknowledged > self.acknowledged {
            self.acknowledged = acknowledged;
            self.acknowledged_charge = self.history.charged_to(acknowledged);
            self.heartbeat.is_hurried = false;
            (self.heartbeat.probes, self.heartbeat.expired) = (0, 0);
            self.heartbeat.delay = self.heartbeat_delay(now);
            let next_at = self.has_unacknowledged().then(|| now + self.heartbeat.delay);
            let before = self.heartbeat.next_at;
            self.heartbeat.next_at = next_at.or_else(|| self.next_prompt(now));
            self.heartbeat.cancelled = before.filter(|_| self.heartbeat.next_at.is_none());
            self.release();
        }
    }
}

/// Returns whether an ACKNACK shows that the reader has received a HEARTBEAT of a writer with this first sample.
/// `None`: it says nothing.
fn knows_numbers(acknack: &AckNack, first: SequenceNumber) -> Option<bool> {
    let base = acknack.state.base();
    let says_something = base >= first.min(SequenceNumber(2)) && !is_preemptive(acknack);
    says_something.then_some(base >= first)
}
