//! Readers that discard what is far behind a missing sample.
//!
//! Cyclone DDS keeps 128 samples behind the first missing one (`PrimaryReorderMaxSamples`), and names no more in a
//! request. On a path with more in flight, the rest of it is discarded until the missing sample has arrived. The reader
//! would request it piece by piece, a round trip for each 128 samples. The writer therefore *goes back*: it repairs
//! what was requested, then sends again what the reader has discarded, in order, and nothing new before the end of it,
//! which would be discarded as well.
//!
//! What is sent again was not lost on the path, and requests for it do not show how far the reader has got: they may
//! have left before it arrived. Only acknowledgements show that.

use weir_wire::{AckNack, SequenceNumber};

use super::reader_proxy::ReaderProxy;
use super::state::WriterCore;
use crate::config;
use crate::time::Time;

/// What a reader discards.
#[derive(Debug)]
pub(super) struct Discards {
    /// It keeps so many samples behind the first missing one.
    keeps: i64,
    /// What it has discarded, and is sent again.
    from: SequenceNumber,
    to: SequenceNumber,
    /// The missing sample because of which the writer went back last, and when that was sent yet again since then.
    missing: SequenceNumber,
    repeated_at: Option<Time>,
    /// Samples from one missing one to the next, on average; 0: none was missing.
    run: i64,
    /// The writer does not go back before this, whatever is requested: each sample in the way costs it time.
    next_at: Time,
}

impl Discards {
    pub(super) fn new(keeps: i64) -> Self {
        let none = SequenceNumber::ZERO;
        Self { keeps, from: none, to: none, missing: none, repeated_at: None, run: 0, next_at: Time::ZERO }
    }

    /// Forgets how often something was missing.
    pub(super) fn forget_losses(&mut self) {
        self.run = 0;
    }
}

impl ReaderProxy {
    /// Returns whether a sample is sent again because the reader has discarded it.
    pub(super) fn is_discarded(&self, sn: SequenceNumber) -> bool {
        self.requested.discards.as_ref().is_some_and(|it| it.from <= sn && sn < it.to)
    }

    /// Returns whether a request for a sample does not show how far the reader has got.
    pub(super) fn is_uncertain(&self, sn: SequenceNumber) -> bool {
        let never_sent = &self.requested.never_sent;
        let is_uncertain =
            if self.is_apart() { never_sent.contains(sn, 0) } else { never_sent.is_before_end(sn) };
        is_uncertain || sn < self.requested.history_end || self.may_be_discarded(sn)
    }

    /// Returns whether a request for a sample does not show that it was lost.
    pub(super) fn may_not_be_lost(&self, sn: SequenceNumber) -> bool {
        self.requested.never_sent.contains(sn, 0) || self.may_be_discarded(sn)
    }

    /// Returns whether the reader may have discarded a sample that had arrived.
    pub(super) fn may_be_discarded(&self, sn: SequenceNumber) -> bool {
        self.requested.discards.as_ref().is_some_and(|it| sn < it.to)
    }

    /// Returns whether the reader is to be sent what it has discarded before anything new.
    fn is_behind(&self) -> bool {
        let waits = !self.requested.samples.is_empty() || !self.requested.fragments.is_empty();
        waits
            && self.is_awaited()
            && !self.is_apart()
            && self.requested.discards.as_ref().is_some_and(|it| self.acknowledged < it.to)
    }

    /// Learns from a request of `bits` samples that the reader keeps more than usual.
    pub(super) fn note_reach(&mut self, bits: u32) {
        if let Some(it) = self.requested.changed().and_then(|it| it.discards.as_mut()) {
            it.keeps = it.keeps.max(i64::from(bits));
        }
    }

    /// Requests again what the reader has discarded. `asked`, `asked_fragments`: requests from these places on are new.
    /// `is_proven`: the reader has something that was sent after them. `unsent`: the first sample that was not sent.
    /// Returns whether there is any.
    pub(super) fn go_back(
        &mut self,
        now: Time,
        (asked, asked_fragments): (usize, usize),
        is_proven: bool,
        unsent: SequenceNumber,
    ) -> bool {
        let missing = self.acknowledged.next();
        let sent_at = self.sent_again_at(missing);
        let usual = self.requested.fragment_time;
        let Some(requested) = self.requested.changed() else { return false };
        let Some(it) = &mut requested.discards else { return false };
        let may_go = now >= it.next_at;
        if let Some(at) = it.repeated_at.filter(|_| it.missing < missing && may_go) {
            // It has arrived, and what was sent behind it before that was discarded.
            it.repeated_at = None;
            let from = missing.max(SequenceNumber(it.missing.0 + it.keeps));
            return self.go_back_to(now, from, Some(at), unsent);
        }
        let is_requested = requested.samples.iter().skip(asked).any(|sn| *sn == missing)
            || requested.fragments.iter().skip(asked_fragments).any(|(sn, _)| *sn == missing);
        if !is_requested {
            return false;
        }
        if it.missing == missing {
            it.repeated_at = Some(now);
            return false;
        }
        // It may be late, and not lost.
        if !may_go || !is_proven && sent_at.is_some_and(|at| now.since(at) < usual * 4 / 3) {
            return false;
        }
        let run = missing.0 - it.missing.0;
        it.run = if it.run == 0 { run } else { (it.run * 7 + run) / 8 };
        it.missing = missing;
        let from = SequenceNumber(missing.0 + it.keeps);
        self.go_back_to(now, from, None, unsent)
    }

    /// Requests what was sent from a sample on, unless it was sent again after a time.
    fn go_back_to(
        &mut self,
        now: Time,
        from: SequenceNumber,
        before: Option<Time>,
        unsent: SequenceNumber,
    ) -> bool {
        let Some(requested) = self.requested.changed().filter(|_| from < unsent) else { return false };
        let Some(it) = &mut requested.discards else { return false };
        (it.from, it.to) = (from, unsent);
        let samples = (unsent.0 - from.0).min(config::REQUESTED_MAX as i64);
        it.next_at = now + config::GOING_BACK_TIME * samples as u32;
        requested.samples.retain(|sn| *sn < from);
        requested.fragments.retain(|(sn, _)| *sn < from);
        let again = self.requested.samples.len();
        for sn in (from.0..unsent.0).map(SequenceNumber).take(config::REQUESTED_MAX) {
            let is_late = before.is_none_or(|before| self.sent_again_at(sn).is_none_or(|at| at < before));
            if is_late && self.has_room_for_sample() {
                self.requested.samples.push(sn);
            }
        }
        self.forget_fragments(from);
        for place in again..self.requested.samples.len() {
            self.await_repair(self.requested.samples[place]);
        }
        true
    }

    /// Learns from requests from these places on that the path to a late joiner loses something: no more is sent then
    /// than it keeps.
    fn note_late_loss(&mut self, (asked, asked_fragments): (usize, usize)) {
        let lists = &self.requested;
        let is_loss = lists.samples.len() > asked || lists.fragments.len() > asked_fragments;
        let next = self.acknowledged.next();
        let Some(requested) = self.requested.changed().filter(|it| it.late.is_some() && is_loss) else {
            return;
        };
        let Some(it) = requested.discards.as_mut().filter(|it| it.run == 0) else { return };
        it.run = 1;
        // What was prepared behind that is prepared again later.
        let (end, never_sent) = (SequenceNumber(next.0 + it.keeps * 3 / 2), requested.never_sent);
        requested.samples.retain(|sn| *sn < end || !never_sent.contains(*sn, 0));
        requested.fed = requested.fed.map(|fed| fed.min((end, 0)).max(never_sent.from()));
    }

    /// Returns whether an ACKNACK shows that the reader has something that was sent after its first missing sample.
    pub(super) fn has_later(&self, acknack: &AckNack) -> bool {
        let base = acknack.state.base();
        let Some(sent_at) = self.sent_again_at(base).filter(|_| self.requested.discards.is_some()) else {
            return false;
        };
        let covered = (1..i64::from(acknack.state.num_bits())).map(|more| SequenceNumber(base.0 + more));
        let mut arrived = covered.filter(|sn| !acknack.state.contains(*sn));
        arrived.any(|sn| self.sent_again_at(sn).is_some_and(|at| at > sent_at))
    }

    /// Returns how many samples may be in flight to the reader, so that less is discarded than arrives; `None`: the
    /// writer need not take account of that, as of a reader that has acknowledged nothing new for long.
    ///
    /// Half of what the reader keeps is enough beyond the next missing sample: what it would discard delays the rest.
    pub(super) fn takes(&self, now: Time) -> Option<i64> {
        if self.is_late() || !self.is_apart() { self.keeps(now) } else { None }
    }

    /// Returns whether it would discard what is sent next with the others.
    pub(super) fn would_discard(&self, now: Time, unsent: SequenceNumber) -> bool {
        !self.is_late() && self.keeps(now).is_some_and(|most| self.acknowledged.0 + 1 + most <= unsent.0)
    }

    /// Returns what [`takes`](Self::takes) does, also for a reader that is apart.
    fn keeps(&self, now: Time) -> Option<i64> {
        let it = self.requested.discards.as_ref().filter(|it| it.run > 0 && self.is_awaited())?;
        // One that answers may only be slow.
        let patience = config::DISCARDS_PATIENCE * if self.is_silent() { 1 } else { 10 };
        let is_stuck = |since| now.since(since) >= patience;
        (!self.idle_since.get().is_some_and(is_stuck)).then(|| it.run.max(it.keeps) + it.keeps / 2)
    }
}

impl WriterCore {
    /// Sends again to a reader what it has discarded, if that is due.
    pub(super) fn go_back(&mut self, now: Time, index: usize, asked: (usize, usize), is_proven: bool) {
        let unsent = self.unsent;
        let proxy = &mut self.proxies[index];
        if proxy.requested.discards.is_none() {
            return;
        }
        proxy.note_late_loss(asked);
        if proxy.is_apart() || proxy.path.is_none() || !proxy.go_back(now, asked, is_proven, unsent) {
            return;
        }
        let from = proxy.requested.discards.as_ref().map_or(unsent, |it| it.from);
        if let Some(path) = proxy.path.clone() {
            self.pacing.forget_marks(&path, (from.prev(), 0));
            path.lock().note_going_back();
        }
        self.is_going_back = true;
        self.due.add(index);
    }

    /// Returns the first sample that readers are not to be sent yet, because they would discard more than arrives.
    pub(super) fn end_of_kept(&self, now: Time, end: SequenceNumber) -> SequenceNumber {
        let together = self.proxies.iter().filter(|proxy| !proxy.is_late());
        let ends = together.filter_map(|it| Some(it.acknowledged.0 + 1 + it.takes(now)?));
        ends.map(SequenceNumber).fold(end, SequenceNumber::min).max(self.unsent)
    }

    /// Notes at the end of which paths readers would discard what is sent next.
    pub(super) fn note_full(&mut self, now: Time, is_any: bool) {
        if !is_any && !self.pacing.is_any_full {
            return;
        }
        self.pacing.is_any_full = is_any;
        let (proxies, unsent) = (&self.proxies, self.unsent);
        for it in &mut self.pacing.uses {
            let is_there = |proxy: &&ReaderProxy| proxy.path.as_ref().is_some_and(|path| path.is(&it.path));
            it.is_full = is_any && proxies.iter().filter(is_there).any(|it| it.would_discard(now, unsent));
        }
    }

    /// Returns how many samples may be in flight, if readers would discard more than arrives.
    pub(super) fn kept_samples(&self, now: Time) -> Option<u64> {
        let together = self.proxies.iter().filter(|proxy| !proxy.is_late());
        together.filter_map(|it| it.takes(now)).min().map(i64::cast_unsigned)
    }

    /// Takes account of a sample that was sent again. Returns the last one that had been discarded, and whether there
    /// is another.
    pub(super) fn note_again(
        &self,
        index: usize,
        sn: SequenceNumber,
        (again, is_hole): (Option<SequenceNumber>, bool),
    ) -> (Option<SequenceNumber>, bool) {
        if self.proxies[index].is_discarded(sn) { (Some(sn), is_hole) } else { (again, true) }
    }

    /// Marks what was sent again up to a sample, and makes a HEARTBEAT due, if it is time.
    pub(super) fn mark_again(&mut self, now: Time, index: usize, again: Option<SequenceNumber>) {
        if let Some((path, sn)) = self.proxies[index].path.as_ref().zip(again) {
            let is_due = self.pacing.mark_again(now, path, (sn, 0), false);
            self.proxies[index].is_heartbeat_due |= is_due;
        }
    }

    /// Notes whether readers are still to be sent what they have discarded.
    pub(super) fn note_going_back(&mut self, now: Time) {
        self.is_going_back = self.proxies.iter().any(ReaderProxy::is_behind);
        if self.is_going_back && !self.pacing.is_waiting() {
            self.pacing.wake_by(Some(now + config::REPAIR_PACE));
        }
    }
}
