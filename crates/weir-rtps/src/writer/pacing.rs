//! How much the paths to the readers allow to be sent now, and the marks that measure these paths.
//!
//! A writer whose readers are all on its own host has no [paths](crate::path), and no such limit.

use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::time::Duration;

use weir_wire::SequenceNumber;

use super::compose;
use super::path_uses::{Marks, PathUse};
use super::receipts::Receipts;
use super::settings::BatchPolicy;
use super::state::WriterCore;
use crate::config;
use crate::history::Entry;
use crate::path::{Flow, Mark, Path, Purpose, on_the_wire};
use crate::qos::History;
use crate::time::Time;

/// A writer's use of the paths to its readers.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    pub(super) uses: Vec<PathUse>,
    /// Some of them are not [aside](PathUse::is_aside).
    pub(super) is_used: bool,
    /// Reserved memory for the marks of more paths.
    pub(super) spare_marks: Vec<Marks>,
    /// Marks that have not passed are so many at most, for each path.
    pub(super) marks_max: usize,
    /// The addresses to which datagrams are sent, while they are counted.
    pub(super) counted: Vec<SocketAddrV4>,
    /// How urgent the samples are.
    pub(super) flow: Flow,
    /// Bytes sent, by the fast path or in fragments, and not recorded yet.
    pub(super) unrecorded: u64,
    /// Some path is paced. As of the last time that a path was asked.
    pub(super) is_paced: bool,
    /// When more may be sent.
    pub(super) next_at: Option<Time>,
    /// More may be sent as soon as something has passed.
    pub(super) is_blocked: bool,
    /// Bytes of the large sample that is sent, and of one before it.
    pub(super) large_bytes: u64,
    /// When more may be sent again to readers that are [behind](super::apart).
    pub(super) repairs_at: Option<Time>,
    /// What is sent now is the last until something has passed.
    pub(super) ends_flight: bool,
    /// Reliable readers may be set [apart](super::apart), no reader has a content filter, and the paths that are left
    /// out have changed.
    pub(super) may_part: bool,
    pub(super) has_no_filters: bool,
    pub(super) has_parted: bool,
    /// There are readers on this host, or others without a path.
    pub(super) has_near: bool,
    /// Readers acknowledge what is sent.
    pub(super) is_reliable: bool,
    /// A datagram is to be withheld on one of the paths.
    pub(super) wants_proof: bool,
    /// A write has found the window full since the last mark.
    was_full: bool,
    /// When the paths were last known to carry more than was written.
    pub(super) spare_at: Time,
    /// The same, and nothing waited for a path.
    is_window_limit: bool,
    marked_at: Time,
    /// When new samples were last sent.
    sent_at: Time,
    /// When the fast path was last known to have sent some.
    sent_fast_at: Time,
    /// The next sample when a write last found the window full.
    refused_at: Option<SequenceNumber>,
    mark_every: Duration,
    /// Bytes sent since then, and after how many the next one is to follow.
    pub(super) since_mark: u64,
    mark_every_bytes: Option<u64>,
    /// Samples before this one are sent, or left out.
    left_out: i64,
    /// After this time, an answer counts as lost. Zero without paths.
    pub(super) patience: Duration,
    /// When the paths are next asked whether readers should report marks.
    pub(super) ecn_at: Time,
    /// What best-effort readers are asked.
    pub(super) receipts: Receipts,
    /// Readers at the end of a path would discard what is sent next.
    pub(super) is_any_full: bool,
}

/// A position in a writer's samples: everything up to a sample, and fragments of the next.
pub(super) type Position = (SequenceNumber, u32);

impl Pacing {
    /// Creates the pacing of a writer without readers.
    pub(super) fn new(priority: i32, budget: Duration) -> Self {
        let marks_max = config::MARKS_MAX;
        Self { flow: Flow { number: 0, priority, budget }, marks_max, ..Self::default() }
    }

    /// Changes for how long other writers may go first.
    pub(super) fn set_latency_budget(&mut self, budget: Duration) {
        self.flow.budget = budget;
        self.uses.iter_mut().for_each(|it| it.flow.budget = budget);
    }

    /// Changes the priority.
    pub(super) fn set_priority(&mut self, priority: i32) {
        self.flow.priority = priority;
        self.uses.iter_mut().for_each(|it| it.flow.priority = priority);
    }

    /// Returns the paths in use.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.uses.iter().filter(|it| !it.is_aside).map(|it| &it.path)
    }

    /// Returns whether there are no paths to observe.
    #[inline]
    pub(super) fn is_unused(&self) -> bool {
        !self.is_used
    }

    /// Returns whether there are paths, and none has a bottleneck as far as is known.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        !self.is_unused() && !self.is_paced
    }

    /// Records what was sent and is not recorded yet.
    pub(super) fn record(&mut self, now: Time) {
        self.spend(now, 0);
    }

    /// Records bytes sent.
    pub(super) fn spend(&mut self, now: Time, bytes: u64) {
        let bytes = bytes + core::mem::take(&mut self.unrecorded);
        if bytes > 0 {
            self.since_mark += bytes;
            self.receipts.bytes += bytes;
            let purpose = if self.is_reliable { Purpose::New } else { Purpose::BestEffort };
            for it in self.uses.iter_mut().filter(|it| !it.is_out) {
                let purpose = if it.is_aside { Purpose::BestEffort } else { purpose };
                it.unasked += bytes * it.copies;
                let mut state = it.path.lock();
                state.spend(now, it.flow, bytes * it.copies, purpose);
                it.last = Some(state.mark(now));
            }
        }
    }

    /// Returns how many bytes may be sent now; `None`: any number.
    ///
    /// `is_amid`: a large sample was begun.
    pub(super) fn allowance(
        &mut self,
        now: Time,
        wanted: u64,
        purpose: Purpose,
        is_amid: bool,
    ) -> Option<u64> {
        self.spend(now, 0);
        let large_bytes = self.large_bytes;
        let is_bulk = self.receipts.has_much_unanswered();
        self.uses.iter_mut().for_each(|it| it.ask(now, wanted, purpose, (large_bytes, is_bulk)));
        self.leave_out(now, is_amid);
        (self.is_paced, self.ends_flight) = (false, false);
        (self.next_at, self.is_blocked) = (None, false);
        let mut allowed = None;
        for it in self.uses.iter().filter(|it| !it.is_left_out()) {
            let Some(bytes) = it.taken.bytes else { continue };
            self.is_paced = true;
            self.ends_flight |= it.taken.ends_flight;
            self.is_blocked |= it.taken.is_blocked;
            self.next_at = self.next_at.max(it.taken.next_at);
            allowed = Some(allowed.map_or(bytes, |least: u64| least.min(bytes)));
        }
        if self.may_part {
            // The others need not wait for as long as the path that takes least.
            let parting = self.uses.iter().filter(|it| !it.is_left_out()).filter_map(PathUse::too_late_at);
            let parting = parting.filter(|at| *at > now).min();
            self.next_at = self.next_at.map(|next| parting.map_or(next, |at| next.min(at)));
        }
        allowed
    }

    /// Returns a path on which a datagram is to be withheld.
    pub(super) fn path_to_prove(&self, now: Time) -> Option<Path> {
        let mut used = self.uses.iter().filter(|it| !it.is_left_out()).map(|it| &it.path);
        used.find(|path| path.lock().is_proof_due(now)).cloned()
    }

    /// Returns whether samples of `len` bytes follow each other soon.
    pub(super) fn is_streaming(&self, len: u64) -> bool {
        self.since_mark + self.unrecorded >= config::PROOF_STREAM * on_the_wire(len)
    }

    /// Returns when a stream is over that sends nothing more: after the time from mark to mark, in which a stream that
    /// is tested sends several datagrams. `next`: the next sample. `None`: it waits for room.
    pub(super) fn quiet_at(&self, next: SequenceNumber) -> Option<Time> {
        let since = self.sent_at.max(self.sent_fast_at);
        (self.refused_at != Some(next)).then(|| since + self.mark_every.max(config::MARK_EVERY_MIN))
    }

    /// Returns whether a write waits for room. `next`: the next sample.
    pub(super) fn is_refused(&self, next: SequenceNumber) -> bool {
        self.refused_at == Some(next)
    }

    /// Records what the fast path has sent. Returns whether it has sent something.
    pub(super) fn note_fast(&mut self, now: Time) -> bool {
        let has_sent = self.unrecorded > 0;
        if has_sent {
            self.sent_fast_at = now;
            self.record(now);
        }
        has_sent
    }

    /// Records that a write has found the window full. `next`: the sample that was to be written.
    pub(super) fn note_full(&mut self, next: SequenceNumber) {
        (self.was_full, self.spare_at) = (true, Time::ZERO);
        self.is_window_limit = !self.is_waiting();
        self.refused_at = Some(next);
    }

    /// Returns what the writer is on a path.
    pub(super) fn flow_on(&self, path: &Path) -> Flow {
        self.uses.iter().find(|it| it.path.is(path)).map_or(self.flow, |it| it.flow)
    }

    /// Forgets the marks behind a position: what they mark is sent again.
    pub(super) fn forget_marks(&mut self, path: &Path, position: Position) {
        for it in self.uses.iter_mut().filter(|it| it.path.is(path)) {
            it.marks.retain(|(at, _)| *at <= position);
        }
    }

    /// Marks what was sent again up to a position, if that is due or `is_last` of a flight. Returns whether it did.
    pub(super) fn mark_again(&mut self, now: Time, path: &Path, position: Position, is_last: bool) -> bool {
        let is_due = is_last || self.wants_mark(now);
        for it in self.uses.iter_mut().filter(|it| is_due && it.path.is(path)) {
            it.asked += 1;
            let is_behind = it.marks.back().is_none_or(|(last, _)| *last < position);
            if is_behind && position > it.passed && it.marks.len() < self.marks_max {
                let mut mark = it.path.lock().mark(now);
                mark.is_again = true;
                it.marks.push_back((position, mark));
            }
            (self.marked_at, self.since_mark) = (now, 0);
        }
        is_due
    }

    /// Records that the last samples are sent again unasked: the answer may be to either transmission.
    pub(super) fn note_probe(&mut self, now: Time) {
        for it in &mut self.uses {
            it.marks.iter_mut().for_each(|(_, mark)| _ = mark.repeated_at.get_or_insert(now));
        }
    }

    pub(super) fn note_repaired(&mut self, now: Time, path: &Path) {
        self.uses.iter_mut().filter(|it| it.path.is(path)).for_each(|it| it.repaired_at = now);
    }

    /// Waits until something has passed.
    fn wait_for_answers(&mut self, now: Time) {
        (self.next_at, self.is_blocked) = (Some(now + self.patience.max(config::HEARTBEAT_DELAY_MIN)), true);
    }

    /// Sets when to ask again after less was sent than wanted.
    fn wait(&mut self, now: Time) {
        // Other paths would have taken more.
        let limits = self.uses.iter().filter(|it| it.is_limit && !it.is_left_out());
        limits.for_each(|it| it.path.lock().note_limited(now));
        self.next_at.get_or_insert(now.plus_nanos(1));
    }

    /// Returns whether something waits for a path.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.next_at.is_some()
    }

    /// Ends the wait for a path when its time has come.
    #[inline]
    pub(super) fn wake(&mut self, now: Time) {
        if self.next_at.is_some_and(|at| at <= now) {
            (self.next_at, self.is_blocked) = (None, false);
        }
    }

    /// The same for what is sent to readers that are apart. Its timer does it.
    pub(super) fn wake_repairs(&mut self, now: Time) {
        if self.repairs_at.is_some_and(|at| at <= now) {
            self.repairs_at = None;
        }
    }

    /// Ends the wait for a path at this time, if not before.
    pub(super) fn wake_by(&mut self, at: Option<Time>) {
        self.next_at = self.next_at.into_iter().chain(at).min();
    }

    /// Returns when the wait for a path ends, whatever is received.
    pub(super) fn paused_until(&self) -> Option<Time> {
        self.next_at.filter(|_| !self.is_blocked)
    }

    /// Returns whether the wait for a path is over.
    pub(super) fn may_go_on(&self, now: Time) -> bool {
        self.next_at.is_none_or(|at| at <= now)
    }

    /// Returns after how many more bytes a HEARTBEAT is due that measures the paths, while little is known of one.
    fn next_mark_bytes(&self) -> u64 {
        let is_marked = self.is_reliable || self.receipts.is_asking;
        let every = self.mark_every_bytes.filter(|_| is_marked);
        every.map_or(u64::MAX, |bytes| bytes.saturating_sub(self.since_mark + self.unrecorded).max(1))
    }

    /// Returns whether a HEARTBEAT is due that measures the paths.
    pub(super) fn wants_mark(&self, now: Time) -> bool {
        let is_due = self.mark_every_bytes.is_some_and(|bytes| self.since_mark + self.unrecorded >= bytes);
        !self.is_unused() && (is_due || now.since(self.marked_at) >= self.mark_every)
    }

    /// Returns whether nothing was marked for so long that marks for readers that have not answered yet may follow.
    pub(super) fn is_unmarked_since(&self, now: Time) -> bool {
        now.since(self.marked_at) >= config::MARK_EVERY_MAX
    }

    /// Returns whether something was marked in the time before now.
    pub(super) fn has_marked_within(&self, now: Time, time: Duration) -> bool {
        now.since(self.marked_at) < time
    }

    /// Returns whether the answer to the last question must be lost.
    pub(super) fn is_overdue(&self, now: Time) -> bool {
        let patience =
            self.patience.max(config::HEARTBEAT_DELAY_MIN).max(self.receipts.questions.patience(now));
        now.since(self.marked_at) >= patience
    }

    /// Returns whether nothing has passed lately on the path of a reader that says what has.
    pub(super) fn is_unmeasured(&self, now: Time) -> bool {
        let lately = 2 * self.mark_every.max(config::MARK_EVERY_MIN);
        let is_quiet = |path: &Path| path.lock().passed_since(now) >= lately;
        self.uses.iter().any(|it| it.gives_receipts && is_quiet(&it.path))
    }

    /// Marks what was sent up to `position`.
    pub(super) fn mark(&mut self, now: Time, position: Position) {
        // Any acknowledgement would pass a mark before the first sample.
        if self.is_unused() || position.0 == SequenceNumber::ZERO && position.1 == 0 {
            return;
        }
        self.spend(now, 0);
        // The answer to a question names it, whatever was sent since.
        let is_sure = self.sent_at == now || self.receipts.is_asking;
        if is_sure {
            self.marked_at = now;
        }
        let (mut round_trip, mut patience) = (None, None);
        self.wants_proof = false;
        (self.since_mark, self.mark_every_bytes) = (0, None);
        let full = core::mem::take(&mut self.was_full).then(|| self.window());
        let is_window_limit = core::mem::take(&mut self.is_window_limit);
        for it in self.uses.iter_mut().filter(|it| !it.is_left_out() && it.served.is_none()) {
            // The narrowest path limits the window.
            let is_full = full.is_some_and(|least| it.window() == least);
            it.account_unasked(now);
            let PathUse { path, marks, passed, asked, last: latest, is_silent, sent_to, .. } = it;
            let sent_to = sent_to.filter(|sent| *sent > *passed);
            let position = sent_to.map_or(position, |sent| position.min(sent));
            *asked += u32::from(position.1 == 0);
            let is_known = !self.patience.is_zero() && path.lock().is_paced();
            if *is_silent && is_known && marks.back().is_some_and(|(last, _)| *last == position) {
                // The answer may show no more than an earlier mark, because something behind that is missing.
                let overdue =
                    marks.iter_mut().filter(|(_, mark)| now.since(mark.set_at()) > 2 * self.patience);
                overdue.for_each(|(_, mark)| _ = mark.repeated_at.get_or_insert(now));
            }
            let mut state = path.lock();
            if is_full {
                state.note_saturated(now);
            }
            self.is_paced |= state.is_paced();
            self.wants_proof |= self.is_reliable && state.is_proof_due(now);
            round_trip = round_trip.max(state.round_trip_min());
            patience = patience.max(state.answer_time());
            self.mark_every_bytes = self.mark_every_bytes.max(state.mark_every_bytes());
            // Any answer would pass a mark that the readers have reached.
            let has_room = marks.len() < self.marks_max && position > *passed;
            match marks.back_mut() {
                Some((last, mark)) if *last == position => {
                    mark.repeated_at.get_or_insert(now);
                    mark.is_window_limit |= is_window_limit;
                }
                Some((last, _)) if *last > position => {}
                _ if has_room => {
                    // The reader may have acknowledged samples sent earlier. What other writers have sent since
                    // is not before them.
                    let late = latest.map(|latest| latest.late(now));
                    let mark = if is_sure { Some(state.mark(now)) } else { late };
                    marks.extend(mark.map(|mut mark| {
                        mark.is_window_limit = is_window_limit;
                        mark.is_of_question = self.receipts.is_asking;
                        (position, mark)
                    }));
                }
                _ => {}
            }
        }
        self.mark_every = mark_every(round_trip);
        self.patience = patience_for(patience.max(round_trip));
    }

    /// Learns anew after which time an answer counts as lost.
    pub(super) fn measure_patience(&mut self) {
        let known = |path: &Path| {
            let state = path.lock();
            state.answer_time().max(state.round_trip_min())
        };
        self.patience = patience_for(self.paths().filter_map(known).max());
    }

    /// Records that a reader at a path has got as far as `position`. `is_all`: it has everything that was sent.
    pub(super) fn passed(&mut self, now: Time, path: &Path, position: Position, is_all: bool) {
        let Some(it) = self.uses.iter_mut().find(|it| it.path.is(path)) else { return };
        it.passed = it.passed.max(position);
        if it.is_silent {
            it.note_answer(now);
        }
        let mut newest = None;
        while it.marks.front().is_some_and(|(at, _)| *at <= position) {
            newest = it.marks.pop_front();
        }
        // Until a reader is introduced, it gets HEARTBEATs that mark nothing, and its answer may acknowledge all.
        let unmarked = || it.last.filter(|last| is_all && !it.path.lock().is_passed(last)).map(Mark::unasked);
        if let Some(mut mark) = newest.map(|(_, mark)| mark).or_else(unmarked) {
            mark.is_of_silent = it.is_silent;
            mark.has_waited = it.is_silent && mark.set_at() <= it.repaired_at;
            if it.answers_together() {
                mark.before = Some(it.marks.front().map_or(now, |(_, next)| next.set_at()));
            }
            // What is acknowledged so soon had arrived before.
            let is_early = mark.is_again
                && it
                    .path
                    .lock()
                    .round_trip_min()
                    .is_some_and(|shortest| now.since(mark.set_at()) < shortest);
            let mark = if is_early { mark.unasked() } else { mark };
            it.path.lock().passed(now, &mark);
            self.repairs_at = self.repairs_at.map(|_| now);
            if core::mem::take(&mut self.is_blocked) {
                self.next_at = Some(now);
            }
        }
    }

    /// Records that a reader has shown what was sent again at a time.
    pub(super) fn note_repair_shown(&mut self, now: Time, path: &Path, sent_at: Time) {
        let silent = self.uses.iter().find(|it| it.is_silent && it.path.is(path));
        if silent.is_some_and(|it| !it.answers_together()) {
            path.lock().note_round_trip(now, sent_at);
        }
    }

    /// Returns the bytes that may be unsent or in flight, if a path is paced.
    pub(super) fn window(&self) -> Option<u64> {
        self.uses.iter().filter(|it| !it.is_left_out()).filter_map(PathUse::window).min()
    }

    /// Returns the bytes that all paths take in this time, if one is paced.
    fn carries(&self, time: Duration) -> Option<u64> {
        let used = self.uses.iter().filter(|it| !it.is_left_out());
        used.filter_map(|it| Some(it.path.lock().carries_about(time)? / it.copies)).min()
    }
}

impl WriterCore {
    /// Changes [`WriterConfig::transport_priority`](super::WriterConfig::transport_priority).
    pub fn set_transport_priority(&mut self, priority: i32) {
        self.config.transport_priority = priority;
        self.pacing.set_priority(priority);
    }

    /// Changes LATENCY_BUDGET: for how long other writers of the same priority may go first on a path.
    pub fn set_latency_budget(&mut self, budget: Duration) {
        self.config.latency_budget = budget;
        self.pacing.set_latency_budget(budget);
    }

    /// Collects samples in messages from now on, or changes how. `None`: each sample has a message of its own again.
    pub fn set_batch(&mut self, batch: Option<BatchPolicy>) {
        // The batch that is being filled ends by its timer, or with the next sample.
        let alone = |before: BatchPolicy| BatchPolicy { max_samples: 1, max_delay: Duration::ZERO, ..before };
        let Some(mut batch) = batch.or(self.config.batch.map(alone)) else { return };
        self.configured.batch_bytes = batch.max_bytes;
        batch.max_bytes = batch.max_bytes.min(self.datagram_max.saturating_sub(compose::HEARTBEAT_LEN));
        self.config.batch = Some(batch);
    }

    /// Returns up to which sample before `end` the paths allow to send now, or up to the next large one.
    pub(super) fn allowed_end(&mut self, now: Time, mut end: SequenceNumber) -> SequenceNumber {
        self.skip_overdue();
        self.note_large();
        let kept = self.end_of_kept(now, end);
        let is_full = kept < end && kept == self.unsent;
        self.note_full(now, is_full && self.config.history != History::KeepAll);
        end = kept;
        if is_full {
            self.wait_until_not_full(now);
            return end;
        }
        let wanted = self.history.charged() - self.history.charged_to(self.unsent.prev());
        let allowed = self.allowance(now, wanted).unwrap_or(u64::MAX);
        // What leaves together is marked in pieces.
        let piece = self.pacing.next_mark_bytes();
        let (mut bytes, mut previous) = (0, None);
        for sn in self.unsent.0..end.0 {
            let Some(entry) = self.history.entry(SequenceNumber(sn)).filter(Entry::is_alive) else {
                self.note_left_out(1);
                // A large one is passed over later, and counts then.
                let is_large = self.large.next_from(SequenceNumber(sn)) == Some(SequenceNumber(sn));
                self.pacing.receipts.not_whole -= i64::from(is_large);
                continue;
            };
            if entry.fragment_size != 0 {
                // Its fragments are counted one by one, and what follows when they have left.
                end = SequenceNumber(sn).next();
                break;
            }
            let is_same_datagram = previous.is_some_and(|it: Entry| it.is_extended_by(&entry));
            if bytes >= allowed && !is_same_datagram {
                self.pacing.spend(now, bytes);
                if bytes > 0 {
                    self.pacing.sent_at = now;
                }
                self.pacing.wait(now);
                return SequenceNumber(sn);
            }
            if bytes >= piece && !is_same_datagram {
                end = SequenceNumber(sn);
                break;
            }
            let before = if is_same_datagram { previous.map_or(0, |it| it.len.into()) } else { 0 };
            bytes +=
                if is_same_datagram { u64::from(entry.len) - before } else { on_the_wire(entry.len.into()) };
            previous = Some(entry);
        }
        self.pacing.spend(now, bytes);
        if bytes > 0 {
            self.pacing.sent_at = now;
        }
        end
    }

    /// Waits for readers that would discard what is sent next. They are set apart, if others need not wait for them.
    fn wait_until_not_full(&mut self, now: Time) {
        if self.config.history != History::KeepAll {
            _ = self.allowance(now, self.history.charged() - self.history.charged_to(self.unsent.prev()));
        }
        self.pacing.wait_for_answers(now);
    }

    /// Records what of large samples may be in flight: what was sent of the next one, and one before it.
    fn note_large(&mut self) {
        let is_any = !self.large.is_empty() && self.pacing.uses.iter().any(|it| it.is_silent);
        let at = |sn| self.history.entry(sn).filter(|entry| is_any && entry.fragment_size != 0);
        let entry = at(self.unsent).or_else(|| at(self.unsent.prev()));
        // Of long ones, readers show how much has arrived.
        let entry =
            entry.filter(|entry| !self.proxies.iter().any(|proxy| proxy.is_shown_early(self.unsent, entry)));
        self.pacing.large_bytes = entry.map_or(0, |entry| {
            let fragments = u64::from(entry.fragments()) + u64::from(self.fragments.sent);
            fragments * on_the_wire(compose::FRAGMENT_AT as u64 + u64::from(entry.fragment_size))
        });
    }

    pub(super) fn purpose(&self) -> Purpose {
        if self.has_reliable { Purpose::New } else { Purpose::BestEffort }
    }

    /// Best effort: leaves out the oldest samples that wait for a path, if it does not take in time what waits.
    ///
    /// The last sample is always sent, and a large one that was begun is completed.
    fn skip_overdue(&mut self) {
        if self.has_reliable || !self.pacing.is_paced {
            return;
        }
        let Some(bytes) = self.pacing.carries(config::BEST_EFFORT_WAIT) else { return };
        let (charged, written) = (self.history.charged(), self.history.written().max(1));
        let most = (u128::from(bytes) * u128::from(charged) / u128::from(written)) as u64;
        let last = self.open.map_or(self.history.last(), |open| open.first);
        let is_amid = self.is_amid_sample();
        let first = if is_amid { self.unsent.next() } else { self.unsent };
        let mut sn = first.max(SequenceNumber(self.pacing.left_out));
        while sn < last && charged - self.history.charged_to(sn.prev()) > most {
            if is_amid && self.config.keeps_nothing_for_late_readers() {
                self.history.remove(sn);
            }
            sn = sn.next();
        }
        self.pacing.left_out = sn.0;
        if !is_amid {
            self.pass_over(sn);
        }
    }

    /// Returns whether the paths allow to send a fragment of `len` bytes now, and records it.
    pub(super) fn allows_fragment(&mut self, now: Time, len: u64) -> bool {
        if self.pacing.uses.is_empty() {
            return true;
        }
        let cost = on_the_wire(len);
        if self.pacing.is_paced {
            if self.fragments.allowed < cost {
                self.note_large();
                let more = self.allowance(now, u64::from(u32::MAX)).unwrap_or(u64::MAX);
                if more == 0 {
                    self.pacing.wait(now);
                    return false;
                }
                self.fragments.allowed = more.max(cost);
            }
            self.fragments.allowed -= cost;
        }
        // Recorded for all fragments at once.
        self.pacing.unrecorded += cost;
        self.pacing.receipts.fragments += 1;
        self.pacing.sent_at = now;
        true
    }

    /// Records what a message of a reader shows about its path: how far the reader has got, and what was lost.
    /// Requested samples and fragments from these places on are new.
    #[inline]
    pub(super) fn note_path(&mut self, now: Time, index: usize, samples: usize, fragments: usize) {
        if self.proxies[index].path.is_some() {
            self.note_on_path(now, index, samples, fragments);
        }
    }

    /// The same for a reader that has a path.
    #[inline(never)]
    fn note_on_path(&mut self, now: Time, index: usize, samples: usize, fragments: usize) {
        let withheld = self.settle_withheld(now, index);
        let is_lost = |sn: SequenceNumber, fragment: Option<u32>| {
            withheld.as_ref().is_none_or(|withheld| !withheld.contains(sn, fragment))
        };
        let proxy = &mut self.proxies[index];
        let Some(path) = proxy.path.clone() else { return };
        let mut lost = 0;
        for place in samples..proxy.requested.samples.len() {
            let sn = proxy.requested.samples[place];
            if is_lost(sn, None) && !(proxy.may_not_be_lost(sn) && sn > proxy.acknowledged.next()) {
                let len = self.history.entry(sn).map_or(0, |entry| own_on_the_wire(&entry));
                lost += proxy.note_lost((sn, 0), len);
            }
        }
        for place in fragments..proxy.requested.fragments.len() {
            let (sn, number) = proxy.requested.fragments[place];
            if is_lost(sn, Some(number + 1)) && !proxy.requested.never_sent.contains(sn, number) {
                let size = self.history.entry(sn).map_or(0, |entry| entry.fragment_size);
                let len = on_the_wire(compose::FRAGMENT_AT as u64 + u64::from(size));
                lost += proxy.note_lost((sn, number + 1), len);
            }
        }
        path.lock().note_lost(lost);
        let guid = proxy.guid;
        let reached = proxy.proven(now, &self.history);
        let is_all = reached.0 >= self.unsent.prev() && self.fragments.sent == 0;
        if self.pacing.is_shown_by(&path, &guid) {
            self.pacing.passed(now, &path, reached, is_all);
        }
        self.observe_paths(now);
    }

    /// Keeps the window within what the paths carry.
    pub(super) fn observe_paths(&mut self, now: Time) {
        if self.pacing.is_unused() {
            return;
        }
        let (charged, written) = (self.history.charged(), self.history.written().max(1));
        // A large sample is admitted while the one before is in flight as a whole.
        let last = charged - self.history.charged_to(self.history.last().prev());
        let limit = self.pacing.window().map(|bytes| {
            let charge = u128::from(bytes) * u128::from(charged) / u128::from(written);
            charge.clamp(config::WINDOW_MIN_BYTES.into(), config::WINDOW_PATH_MAX_BYTES.into()) as u64
        });
        let kept = self.kept_samples(now).map(|samples| {
            let count = (self.history.last().0 - self.acknowledged.0).max(1) as u64;
            let mean = (charged - self.acknowledged_charge) / count;
            (2 * samples * mean).max(config::WINDOW_MIN_BYTES)
        });
        let limit = limit.map(|bytes| kept.map_or(bytes, |kept| bytes.min(kept)));
        self.window.set_path_limit(limit, last);
    }
}

/// Returns how far apart marks are on a path with this round trip.
pub(super) fn mark_every(round_trip: Option<Duration>) -> Duration {
    let every = round_trip.unwrap_or_default() / config::MARK_SHARE as u32;
    every.clamp(config::MARK_EVERY_MIN, config::MARK_EVERY_MAX)
}

/// Returns after which time an answer counts as lost, if answers take this long as far as is known.
///
/// There is a limit: where answers are lost, the next one seems to take as long as nothing was asked, which would grow
/// from one to the next.
pub(super) fn patience_for(usual: Option<Duration>) -> Duration {
    (usual.unwrap_or_default() * 5 / 4).min(config::PATIENCE_MAX)
}

/// Returns the bytes on the wire of one sample. The first one of a datagram has its headers.
fn own_on_the_wire(entry: &Entry) -> u64 {
    // How much of a large sample was lost is not known.
    let len = (entry.own_len() as u64).min(65_507);
    if entry.is_first_of_datagram() { on_the_wire(len) } else { len }
}

#[cfg(test)]
mod tests {
    use weir_wire::{EntityId, Guid, GuidPrefix};

    use super::super::WriterConfig;
    use super::*;
    use crate::qos::Reliability;

    #[test]
    fn a_writer_asks_for_its_turn_with_the_priority_and_the_budget_of_its_qos_also_when_they_change() {
        let guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, false));
        let (transport_priority, latency_budget) = (7, Duration::from_millis(3));
        let config = WriterConfig::new(guid, Reliability::Reliable);
        let mut writer = WriterCore::new(WriterConfig { transport_priority, latency_budget, ..config });
        let flow = |writer: &WriterCore| (writer.pacing.flow.priority, writer.pacing.flow.budget);
        assert_eq!(flow(&writer), (7, Duration::from_millis(3)));
        writer.set_transport_priority(-2);
        assert_eq!(flow(&writer), (-2, Duration::from_millis(3)));
        writer.set_latency_budget(Duration::from_millis(5));
        assert_eq!(flow(&writer), (-2, Duration::from_millis(5)));
    }
}
