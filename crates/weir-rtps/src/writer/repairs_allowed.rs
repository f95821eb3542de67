//! How much of what a reader requests its path allows to be sent now.
//!
//! What was sent on a path and lost is sent again as fast as the path carries, since it is no longer in flight. What
//! the reader was never sent on its path counts as new samples do: what a reader that has moved to another address had
//! not acknowledged, and the history that a [late joiner](super::late_joiners) is sent unasked. On a path of which
//! nothing is known, a first flight leaves, and more when that has passed. A link of 5 Mbit/s with a short queue would
//! lose nearly all of it otherwise.

use weir_wire::SequenceNumber;

use super::pacing::{Pacing, Position};
use super::reader_proxy::ReaderProxy;
use super::receipts_apart::answer_patience;
use super::repair_budget::Room;
use super::state::WriterCore;
use crate::config;
use crate::path::{Allowance, Path, Purpose, on_the_wire};
use crate::time::Time;

/// Bytes that may be sent, and that were.
#[derive(Debug, Clone, Copy)]
struct Bytes {
    left: u64,
    spent: u64,
}

/// What may be sent to a reader that has requested it.
#[derive(Debug)]
pub(super) struct Allowed {
    again: Bytes,
    /// Of what it was never sent.
    first: Bytes,
    /// That is what is sent now.
    is_first: bool,
    /// The last of that.
    last: Option<Position>,
    /// No more of it may be sent before something has passed.
    ends_flight: bool,
    /// Where what is sent measures the path, longer trains would look like a queue: the length of the last datagram.
    even: Option<u64>,
}

impl Allowed {
    fn current(&self) -> &Bytes {
        if self.is_first { &self.first } else { &self.again }
    }

    /// Returns whether nothing more may be sent now: all of it was sent, or, where what is sent measures the path,
    /// another datagram as long as the last one would be more.
    pub(super) fn is_spent(&self) -> bool {
        let Bytes { left, spent } = *self.current();
        spent >= left || self.even.is_some_and(|last| spent > 0 && spent.saturating_add(last) > left)
    }

    /// Returns the bytes sent.
    pub(super) fn spent(&self) -> u64 {
        self.first.spent + self.again.spent
    }

    /// Returns whether what is sent now is what the reader was never sent.
    pub(super) fn is_first(&self) -> bool {
        self.is_first
    }

    /// Takes room for a datagram that is sent again. What was never sent takes none.
    pub(super) fn has_room(&self, room: &mut Room, cost: u64, bytes: u64) -> bool {
        self.is_first || room.take(cost, bytes)
    }

    /// Records a datagram of `len` bytes.
    pub(super) fn spend(&mut self, len: u64) {
        let bytes = if self.is_first { &mut self.first } else { &mut self.again };
        bytes.spent += on_the_wire(len);
        self.even = self.even.map(|_| on_the_wire(len));
    }

    /// Changes the account: what the reader was never sent, or what is sent again.
    pub(super) fn begin(&mut self, is_first: bool) {
        self.is_first = is_first;
    }
}

/// Samples before `end`, from a fragment of one on, that a reader was never sent on its path.
#[derive(Debug, Clone, Copy)]
pub(super) struct NeverSent {
    from: (SequenceNumber, u32),
    end: SequenceNumber,
}

impl NeverSent {
    pub(super) const NONE: Self = Self { from: (SequenceNumber::ZERO, 0), end: SequenceNumber::ZERO };

    pub(super) fn new(from: SequenceNumber, end: SequenceNumber) -> Self {
        Self { from: (from, 0), end }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.from.0 >= self.end
    }

    /// Returns whether a sample was or will be sent only when it is requested.
    pub(super) fn is_before_end(&self, sn: SequenceNumber) -> bool {
        sn < self.end
    }

    /// Returns up to which fragment of a sample the reader was sent it on its path, if it is requested there.
    pub(super) fn sent_of(&self, sn: SequenceNumber) -> Option<u32> {
        let (from, fragment) = self.from;
        (sn < self.end).then(|| {
            if sn < from {
                u32::MAX
            } else if sn == from {
                fragment
            } else {
                0
            }
        })
    }

    /// Returns the same, with everything from a fragment of a sample on.
    pub(super) fn and_from(self, from: Position) -> Self {
        Self { from: if self.is_empty() { from } else { self.from.min(from) }, end: SequenceNumber(i64::MAX) }
    }

    /// Returns the first of it: a fragment of a sample, counted from 0.
    pub(super) fn from(&self) -> Position {
        self.from
    }

    /// Ends it before a sample.
    pub(super) fn end_at(&mut self, end: SequenceNumber) {
        self.end = self.end.min(end);
    }

    /// Records that samples before `sn` are not requested any more.
    pub(super) fn forget_before(&mut self, sn: SequenceNumber) {
        self.from = self.from.max((sn, 0));
    }

    /// Returns whether a fragment of a sample, counted from 0, is among them, or a sample as a whole.
    pub(super) fn contains(&self, sn: SequenceNumber, fragment: u32) -> bool {
        sn < self.end && (sn, fragment) >= self.from
    }
}

impl ReaderProxy {
    /// Records that the reader was sent nothing on its path yet, which is a new one. `unsent`: the first sample that
    /// was never sent.
    pub(super) fn begin_on_path(&mut self, unsent: SequenceNumber) {
        if let Some(requested) = self.requested.changed() {
            (requested.fed, requested.late, requested.answered) = (None, None, None);
        }
        let has_all = self.acknowledged.next() >= unsent && !self.requested.is_changed();
        if self.is_reliable && !has_all {
            // A test of the other path says nothing about this one.
            (self.requested.withheld, self.requested.verdict) = (None, None);
            let never_sent = NeverSent::new(self.acknowledged.next(), unsent);
            self.requested.never_sent = if self.path.is_some() { never_sent } else { NeverSent::NONE };
            self.requested.repairs.clear();
            // What it had got of what was sent elsewhere, only its acknowledgements show from now on.
            self.requested.reached = (SequenceNumber::ZERO, 0);
            self.seen = self.acknowledged;
        }
    }
}

impl ReaderProxy {
    /// Returns how often a datagram to it leaves.
    fn copies(&self) -> u64 {
        self.destinations.len().max(1) as u64
    }
}

impl Pacing {
    /// Returns what may be sent on one path.
    fn allow_on(&self, now: Time, path: &Path, purpose: Purpose) -> Allowance {
        if purpose == Purpose::Repair {
            return path.lock().allow(now, self.flow_on(path), config::PATH_FLIGHT_MIN_BYTES, purpose);
        }
        let unreported = self.uses.iter().find(|it| it.path.is(path));
        let unreported = unreported.and_then(|it| it.unreported(self.large_bytes));
        path.lock().allow_beside(now, self.flow_on(path), u64::from(u32::MAX), purpose, unreported)
    }

    /// Returns whether a mark would show when a path has passed what was sent up to a position.
    fn can_mark(&self, path: &Path, position: Position) -> bool {
        self.uses.iter().any(|it| it.path.is(path) && position > it.passed)
    }
}

impl WriterCore {
    /// Returns what a reader may be sent now of what it has requested, as its path allows.
    pub(super) fn repairs_allowed(&mut self, now: Time, index: usize) -> Allowed {
        let all = Bytes { left: u64::MAX, spent: 0 };
        let mut allowed =
            Allowed { again: all, first: all, is_first: false, last: None, ends_flight: false, even: None };
        let proxy = &self.proxies[index];
        let Some(path) = proxy.path.clone() else { return allowed };
        let (is_reliable, copies) = (proxy.is_reliable, proxy.copies());
        let has_first = !proxy.requested.never_sent.is_empty();
        let is_elsewhere = proxy.requested.never_sent.is_before_end(proxy.acknowledged.next());
        let (is_apart, is_late) = (proxy.is_apart(), proxy.is_late());
        self.pacing.spend(now, 0);
        if !is_reliable {
            let is_answered = is_apart && self.pacing.is_answered_on(now, &path);
            let purpose = if is_answered { Purpose::New } else { Purpose::BestEffort };
            let piece = path.lock().mark_every_bytes().filter(|_| is_answered).unwrap_or(u64::MAX);
            let allowance = self.pacing.allow_on(now, &path, purpose);
            allowed.even = is_answered.then_some(0);
            allowed.ends_flight = matches!(allowance, Allowance::Flight(_) | Allowance::Blocked { .. });
            allowed.first.left = self.left(allowance, is_apart).min(piece).div_ceil(copies);
            if is_answered && allowed.first.left == 0 {
                // The question or its answer may be lost.
                let again = now + answer_patience(path.lock().round_trip_min());
                self.pacing.repairs_at = self.pacing.repairs_at.map(|at| at.min(again));
            }
            return allowed;
        }
        allowed.again.left = self.left_on(now, &path, Purpose::Repair, is_apart).div_ceil(copies);
        // What was sent elsewhere before the last mark counts as sent again, since no mark will show when it passes.
        if !is_apart && (has_first || is_elsewhere && !is_late) {
            let elsewhere = path.lock().allow_sent_elsewhere(now);
            let left =
                elsewhere.map_or(u64::MAX, |allowance| self.left(allowance, is_apart).div_ceil(copies));
            allowed.again.left = allowed.again.left.min(left);
        }
        if has_first {
            // While little is known, what leaves together is marked in pieces.
            let piece = path.lock().mark_every_bytes().unwrap_or(u64::MAX);
            allowed.first.left = self.left_on(now, &path, Purpose::New, is_apart).min(piece).div_ceil(copies);
            if is_late {
                let (left, at) = self.history_allowed(now, index);
                allowed.first.left = allowed.first.left.min(left);
                self.pacing.repairs_at = self.pacing.repairs_at.or(at);
            }
        }
        allowed
    }

    /// `is_apart`: it is for a reader for which the others do not wait.
    fn left_on(&mut self, now: Time, path: &Path, purpose: Purpose, is_apart: bool) -> u64 {
        let allowance = self.pacing.allow_on(now, path, purpose);
        self.left(allowance, is_apart)
    }

    /// Returns the bytes of an allowance. If it has none, the writer, or what is sent apart, wakes when it has some.
    fn left(&mut self, allowance: Allowance, is_apart: bool) -> u64 {
        let (at, is_blocked) = match allowance {
            Allowance::Unlimited => return u64::MAX,
            Allowance::Bytes(bytes) | Allowance::Flight(bytes) => return bytes,
            Allowance::At(at) => (at, false),
            Allowance::Blocked { until } => (until, true),
        };
        self.pacing.is_blocked |= is_blocked && !is_apart;
        let wake = if is_apart { &mut self.pacing.repairs_at } else { &mut self.pacing.next_at };
        *wake = Some(wake.map_or(at, |before| before.min(at)));
        0
    }

    /// Prepares to send a fragment of a sample, counted from 0, that a reader has requested, or a sample as a whole.
    pub(super) fn begin_repair(
        &self,
        index: usize,
        (sn, fragment): (SequenceNumber, u32),
        allowed: &mut Allowed,
    ) {
        let proxy = &self.proxies[index];
        let is_new = proxy.requested.never_sent.contains(sn, fragment);
        if proxy.is_apart() {
            // It is sent nothing new but this.
            allowed.begin(is_new);
            return;
        }
        let is_first = is_new
            && proxy.path.as_ref().is_some_and(|path| self.pacing.can_mark(path, (sn.prev(), fragment + 1)));
        allowed.begin(is_first);
    }

    /// Records that so much of a sample was sent: up to `fragments` of `all`, the last `count` of them now, or a sample
    /// as a whole.
    pub(super) fn note_first_sent(
        &mut self,
        index: usize,
        sn: SequenceNumber,
        (fragments, all, count): (u32, u32, u32),
        allowed: &mut Allowed,
    ) {
        if !allowed.is_first {
            return;
        }
        if self.proxies[index].is_apart() {
            self.pass_over_apart(index, sn);
            let is_large = self.history.entry(sn).is_some_and(|entry| entry.fragment_size != 0);
            let proxy = &mut self.proxies[index];
            if let Some(requested) = proxy.requested.changed().filter(|_| !proxy.is_reliable) {
                requested.apart.note_sent(is_large.then_some(count));
            }
        }
        let from = if fragments >= all { (sn.next(), 0) } else { (sn, fragments) };
        allowed.last = Some(if fragments >= all { (sn, 0) } else { (sn.prev(), fragments) });
        if let Some(requested) = self.proxies[index].requested.changed() {
            requested.never_sent.from = requested.never_sent.from.max(from);
        }
    }

    /// Records what was sent to a reader. `is_hole`: it did not arrive the first time.
    pub(super) fn note_repairs_sent(&mut self, now: Time, index: usize, allowed: &Allowed, is_hole: bool) {
        let Some(path) = self.proxies[index].path.clone() else { return };
        if allowed.again.spent > 0 && is_hole {
            self.pacing.note_repaired(now, &path);
        }
        let flow = self.pacing.flow_on(&path);
        let copies = self.proxies[index].copies();
        if allowed.spent() > 0 && self.proxies[index].is_apart() {
            self.served_apart.get_or_insert(index);
        }
        if !self.proxies[index].is_reliable {
            path.lock().spend(now, flow, allowed.spent() * copies, Purpose::BestEffort);
            let is_over = allowed.is_spent();
            self.note_sent_apart(now, index, allowed.spent(), is_over && allowed.ends_flight);
            if is_over {
                self.pacing.repairs_at.get_or_insert(now.plus_nanos(1));
            }
            return;
        }
        path.lock().spend(now, flow, allowed.again.spent * copies, Purpose::Repair);
        let is_over = allowed.first.spent >= allowed.first.left;
        if let Some(position) = allowed.last {
            path.lock().spend(now, flow, allowed.first.spent * copies, Purpose::New);
            let is_late = self.proxies[index].is_late();
            let goes_on = !is_late && !self.proxies[index].requested.never_sent.is_empty();
            for it in self.pacing.uses.iter_mut().filter(|it| it.path.is(&path)) {
                (it.last, it.sent_to) = (Some(path.lock().mark(now)), goes_on.then_some(position));
            }
            let is_marked = if is_late {
                self.note_history_sent(index, allowed.first.spent);
                let is_last = is_over || self.proxies[index].has_sent_all_fed();
                self.pacing.mark_served(now, &path, (position, allowed.first.spent * copies), is_last)
            } else {
                self.pacing.since_mark += allowed.first.spent;
                self.pacing.mark_again(now, &path, position, is_over)
            };
            self.proxies[index].is_heartbeat_due |= is_marked;
        }
        let is_spent = allowed.again.spent >= allowed.again.left || allowed.last.is_some() && is_over;
        if is_spent && self.proxies[index].is_apart() {
            self.pacing.repairs_at.get_or_insert(now.plus_nanos(1));
        } else if is_spent && !self.pacing.is_waiting() {
            self.pacing.next_at = Some(now.plus_nanos(1));
        }
    }
}
