//! The history for readers that join late.
//!
//! A reader that wants samples from before the match would request all of them at once, and on an unknown path most of
//! what leaves then is lost at the first bottleneck. If there is more than a first flight of it, the writer therefore
//! sends it unasked, in order and as fast as the path carries, as to readers that are [apart](super::apart). What is
//! written meanwhile follows behind it. When the reader has been sent everything, it is sent new samples with the
//! others.
//!
//! Nothing is sent before the reader has answered a HEARTBEAT, as it must (RTPS 2.5, 8.4.2.3.1): it may not know this
//! writer yet. HEARTBEATs to a reader of this engine announce only what it was sent, so that it requests nothing but
//! what was lost; a final one says how much history there is, for applications that wait for that. Cyclone DDS and Fast
//! DDS have no such wait, and their readers are asked alike. Those of other engines are announced all of it until they
//! have answered. What they then request and were never sent is not sent for that, and shows nothing of how far they
//! have got.
//!
//! At the end of a path, one late joiner is served after the other, and marks only show how far that one has got.
//!
//! Excepted are readers that share an address or a multicast group with others, and all readers of a writer that
//! filters: they request their history, and are sent it as repairs.

use weir_wire::{AckNack, Guid, Heartbeat, SequenceNumber};

use super::go_back::Discards;
use super::large::fragment_charge;
use super::pacing::{Pacing, Position};
use super::reader_proxy::{ReaderProxy, is_preemptive};
use super::repair_budget::Repairs;
use super::state::WriterCore;
use crate::config;
use crate::outbox::Outbox;
use crate::path::Path;
use crate::time::Time;

/// What is known of a reader that is still to be sent the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Late {
    /// It has not answered yet.
    Awaited,
    /// It has.
    Present,
}

/// The late joiner that is served at the end of a path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Served {
    reader: Guid,
    /// When what it was sent was last marked, and the bytes sent since.
    marked_at: Time,
    since_mark: u64,
}

impl ReaderProxy {
    /// Returns whether the reader is still to be sent the history.
    pub(super) fn is_late(&self) -> bool {
        self.requested.late.is_some()
    }

    /// Returns whether it has not answered yet.
    pub(super) fn is_awaited_late(&self) -> bool {
        self.requested.late == Some(Late::Awaited)
    }

    /// Returns whether the history can be sent to it now. `is_alone`: no other reader is held up if it is gone.
    fn is_present(&self, now: Time, is_alone: bool) -> bool {
        let is_idle = |since| now.since(since) >= config::LATE_JOINER_PATIENCE;
        let is_there = is_alone || !self.is_silent() || !self.idle_since.get().is_some_and(is_idle);
        self.requested.late == Some(Late::Present) && is_there
    }

    /// Returns the first sample that is not prepared for it yet. `unsent`: the first that the others were not sent.
    pub(super) fn kept_end(&self, now: Time, unsent: SequenceNumber) -> SequenceNumber {
        let takes = if self.is_late() { self.takes(now) } else { None };
        takes.map_or(unsent, |count| unsent.min(SequenceNumber(self.acknowledged.0 + 1 + count)))
    }

    /// Returns whether everything that was prepared for it has left.
    pub(super) fn has_sent_all_fed(&self) -> bool {
        self.requested.fed.is_none_or(|fed| self.requested.never_sent.from() >= fed)
    }

    /// Sends it nothing of what is prepared and was never sent, for now.
    fn withdraw(&mut self) {
        if let Some(requested) = self.requested.changed() {
            let never_sent = requested.never_sent;
            requested.samples.retain(|sn| !never_sent.contains(*sn, 0));
            requested.fragments.retain(|(sn, fragment)| !never_sent.contains(*sn, *fragment));
            requested.fed = requested.fed.map(|_| never_sent.from());
        }
    }

    fn is_at(&self, path: &Path) -> bool {
        self.path.as_ref().is_some_and(|it| it.is(path))
    }

    /// Returns from which sample on an ACKNACK may name what is in flight: if all of the history was announced, those
    /// behind the last one that has arrived.
    pub(super) fn doubtful_from(&self, acknack: &AckNack) -> SequenceNumber {
        let base = acknack.state.base();
        if base >= self.requested.history_end {
            return SequenceNumber(i64::MAX);
        }
        let covered = (0..i64::from(acknack.state.num_bits())).rev().map(|bit| SequenceNumber(base.0 + bit));
        let mut arrived = covered.filter(|sn| !acknack.state.contains(*sn));
        arrived.next().unwrap_or(base)
    }

    /// Learns from such an ACKNACK how far the reader has got, if no sample is sent in fragments: what it does not name
    /// behind something missing has arrived.
    fn note_arrived(&mut self, acknack: &AckNack, unsent: SequenceNumber) {
        let arrived = self.doubtful_from(acknack);
        if acknack.state.base() < arrived && arrived < unsent {
            self.seen = self.seen.max(arrived);
        }
    }

    /// Returns whether such a sample may be in flight for twice as long as others.
    pub(super) fn is_underway(&self, now: Time, sn: SequenceNumber) -> bool {
        self.sent_again_at(sn).is_some_and(|at| now.since(at) < 2 * self.requested.fragment_time)
    }

    /// Returns whether something that it was sent by itself, and has not got, must be lost: it was sent so long ago.
    pub(super) fn is_long_gone(&self, now: Time, what: Position) -> bool {
        let longest = config::PATH_ANSWER_UNKNOWN + 2 * self.requested.fragment_time;
        let sent_at = self.requested.repairs.get(&what).and_then(|repair| repair.sent_at);
        sent_at.is_some_and(|at| now.since(at) >= longest)
    }

    /// Returns the first sample that the reader was not sent, and the first that it cannot have: before its first
    /// answer, one that was matched before may have more than it was sent since. `unsent`: the first that the others
    /// were not sent.
    pub(super) fn ends(&self, unsent: SequenceNumber) -> (SequenceNumber, SequenceNumber) {
        if !self.is_apart() {
            return (unsent, unsent);
        }
        let sent = self.sent_end(unsent);
        (sent, if self.is_awaited_late() { unsent } else { sent })
    }

    /// Returns the end of what a HEARTBEAT for the reader announces, and records that. `unsent`: the first sample that
    /// the others were not sent.
    pub(super) fn announced_end(&mut self, unsent: SequenceNumber) -> SequenceNumber {
        let sent = self.sent_end(unsent);
        if !self.is_awaited_late() || !self.waits_for_announced() {
            return sent;
        }
        if let Some(requested) = self.requested.changed() {
            requested.history_end = requested.history_end.max(unsent);
        }
        unsent
    }

    /// Returns the last sample that exists, if the reader is to know that, although it was not sent all of them.
    pub(super) fn last_to_name(&self, unsent: SequenceNumber) -> Option<SequenceNumber> {
        (self.is_awaited_late() && self.shows_progress()).then(|| unsent.prev())
    }
}

impl Pacing {
    fn served_on(&self, path: &Path) -> Option<Guid> {
        let it = self.uses.iter().find(|it| it.path.is(path))?;
        it.served.map(|served| served.reader)
    }

    /// Returns whether the answers of a reader show how far a path has got: not if another is served there.
    pub(super) fn is_shown_by(&self, path: &Path, reader: &Guid) -> bool {
        self.served_on(path).is_none_or(|served| served == *reader)
    }

    /// Records bytes sent to the late joiner that a path serves, up to a position, and marks them if that is due or
    /// `is_last` of a flight. Returns whether it did.
    pub(super) fn mark_served(
        &mut self,
        now: Time,
        path: &Path,
        (position, bytes): (Position, u64),
        is_last: bool,
    ) -> bool {
        let max = self.marks_max;
        let Some(it) = self.uses.iter_mut().find(|it| it.path.is(path)) else { return false };
        let Some(served) = &mut it.served else { return false };
        served.since_mark += bytes;
        let state = it.path.lock();
        let round_trip = state.round_trip_min().unwrap_or_default();
        let every =
            (round_trip / config::MARK_SHARE as u32).clamp(config::MARK_EVERY_MIN, config::MARK_EVERY_MAX);
        let is_due = is_last
            || state.mark_every_bytes().is_some_and(|bytes| served.since_mark >= bytes)
            || now.since(served.marked_at) >= every;
        if !is_due {
            return false;
        }
        (served.marked_at, served.since_mark) = (now, 0);
        it.asked += u32::from(position.1 == 0);
        let mark = state.mark(now);
        drop(state);
        let has_room = position > it.passed && it.marks.len() < max;
        match it.marks.back_mut() {
            // The answer may be to either HEARTBEAT.
            Some((last, mark)) if *last == position => _ = mark.repeated_at.get_or_insert(now),
            Some((last, _)) if *last > position => {}
            _ if has_room => it.marks.push_back((position, mark)),
            _ => {}
        }
        true
    }
}

impl WriterCore {
    /// Sends a reader that was just matched, or has moved, the history by itself if it is long.
    pub(super) fn begin_history(&mut self, now: Time, index: usize) {
        let proxy = &self.proxies[index];
        let is_meant = proxy.is_reliable && proxy.wants_history && self.filters.is_none();
        let Some(path) = proxy.path.as_ref().filter(|_| is_meant) else { return };
        let is_joint = self.pacing.uses.iter().any(|it| it.is_joint && it.path.is(path));
        let start = proxy.start.max(proxy.acknowledged.next()).max(self.history.first());
        let is_long = self.history.live_bytes() as u64 > config::PATH_FIRST_FLIGHT_BYTES;
        if is_joint || !is_long || start >= self.unsent {
            return;
        }
        let proxy = &mut self.proxies[index];
        proxy.begin_apart((start, 0));
        proxy.is_heartbeat_due = true;
        if let Some(requested) = proxy.requested.changed() {
            requested.late = Some(Late::Awaited);
        }
        self.due.add(index);
        self.serve(now);
        self.part();
    }

    /// Decides which late joiner is served at the end of each path, and whether nothing else is sent there.
    pub(super) fn serve(&mut self, now: Time) {
        let (proxies, sent) = (&self.proxies, self.unsent.prev());
        for it in &mut self.pacing.uses {
            let path = it.path.clone();
            let there = || proxies.iter().filter(|proxy| proxy.is_at(&path));
            let was_late = core::mem::replace(&mut it.is_late, there().all(ReaderProxy::is_late));
            it.is_out = it.is_late || it.is_out && !was_late;
            let is_alone = there().filter(|proxy| proxy.is_late() || proxy.acknowledged < sent).count() == 1;
            let is_served = |proxy: &&ReaderProxy| {
                proxy.is_present(now, is_alone) && it.served.is_some_and(|served| served.reader == proxy.guid)
            };
            let served =
                there().find(is_served).or_else(|| there().find(|proxy| proxy.is_present(now, is_alone)));
            let before = it.served.map(|served| served.reader);
            if served.map(|proxy| proxy.guid) == before {
                continue;
            }
            let begin =
                |proxy: &ReaderProxy| Served { reader: proxy.guid, marked_at: Time::ZERO, since_mark: 0 };
            it.served = served.map(begin);
            if let Some(index) = served.and_then(|served| self.places.find(proxies, &served.guid)) {
                self.due.add(index);
                self.pacing.repairs_at.get_or_insert(now.plus_nanos(1));
            }
            if !(there().count() == 1 && served.is_none()) {
                let reached = |proxy: &ReaderProxy| proxy.reached();
                let passed = served.map(reached).or_else(|| there().map(reached).max());
                it.begin_marks(passed.unwrap_or((SequenceNumber::ZERO, 0)));
            }
        }
        for index in 0..self.proxies.len() {
            if !self.may_feed(&self.proxies[index]) {
                self.proxies[index].withdraw();
            }
        }
    }

    /// Takes what the answer of a reader shows that joined late. `unsent`: the first sample that it was not sent.
    #[inline]
    pub(super) fn hear(&mut self, now: Time, index: usize, acknack: &AckNack, unsent: SequenceNumber) {
        if self.taking.is_some() {
            self.hear_late(now, index, acknack, unsent);
        }
    }

    fn hear_late(&mut self, now: Time, index: usize, acknack: &AckNack, unsent: SequenceNumber) {
        let has_fragments = !self.large.is_empty();
        let proxy = &mut self.proxies[index];
        if !has_fragments {
            proxy.note_arrived(acknack, unsent);
        }
        if !proxy.is_late() {
            return;
        }
        if proxy.is_awaited_late()
            && !is_preemptive(acknack)
            && let Some(requested) = proxy.requested.changed()
        {
            requested.late = Some(Late::Present);
        }
        let proxy = &self.proxies[index];
        if proxy.path.as_ref().is_some_and(|path| self.pacing.served_on(path).is_none()) {
            self.serve(now);
        }
        // It may have made room for more, or have everything.
        let may_feed = self.may_feed(&self.proxies[index]);
        self.due.add_if(index, may_feed);
    }

    /// Returns whether a reader that is apart may be sent what comes next.
    pub(super) fn may_feed(&self, proxy: &ReaderProxy) -> bool {
        !proxy.is_late()
            || proxy.path.as_ref().is_some_and(|path| self.pacing.served_on(path) == Some(proxy.guid))
    }

    /// Asks a late joiner to which a HEARTBEAT is due how far it has got within a large sample, and marks what it was
    /// sent if nothing is marked.
    pub(super) fn ask_late(&mut self, now: Time, index: usize, out: &mut Outbox) {
        let proxy = &self.proxies[index];
        let (sn, sent) = proxy.requested.never_sent.from();
        if !proxy.is_heartbeat_due || !self.may_feed(proxy) {
            return;
        }
        let shows_fragments = sent > 0 && proxy.shows_progress();
        let is_unmarked =
            |path: &Path| self.pacing.uses.iter().any(|it| it.path.is(path) && it.marks.is_empty());
        if let Some(path) = proxy.path.clone().filter(is_unmarked) {
            self.pacing.mark_served(now, &path, ((sn.prev(), sent), 0), true);
        }
        if shows_fragments {
            self.heartbeat_frag(now, sn, Some(index), out);
        }
    }

    /// Sends new samples with the others to late joiners that have been sent everything. Returns whether there are any.
    pub(super) fn end_history(&mut self, now: Time) -> bool {
        let (unsent, quarter) = (self.unsent, self.window.size() / 4);
        let sent = self.history.charged_to(unsent.prev());
        let mut is_any = false;
        for proxy in &mut self.proxies {
            let in_flight = sent - self.history.charged_to(proxy.seen).min(sent);
            if proxy.requested.late != Some(Late::Present) || proxy.is_owed(unsent) || in_flight > quarter {
                continue;
            }
            if let Some(requested) = proxy.requested.changed() {
                requested.late = None;
                requested.discards.iter_mut().for_each(Discards::forget_losses);
            }
            is_any = true;
        }
        if is_any {
            self.serve(now);
        }
        is_any
    }

    /// Returns how much of the history a late joiner may be sent now, in bytes, beside what its path allows, and when
    /// to ask again if that is nothing and no answer changes it.
    pub(super) fn history_allowed(&mut self, now: Time, index: usize) -> (u64, Option<Time>) {
        // What its address may be sent. Forged requests could direct the history at another host again and again.
        let is_due = self.settle_repairs_of(now, index) != Repairs::Exhausted;
        let (_, room) = self.room_for_repairs_of(index);
        if !is_due || room.left() == 0 {
            return (0, Some(now + config::REPAIR_INTERVAL));
        }
        // What its socket has room for. What a path holds back collects in no socket.
        let proxy = &self.proxies[index];
        let window = self.window.size();
        let is_paced = proxy.path.as_ref().is_some_and(|path| path.lock().is_paced());
        let mut left =
            if is_paced { u64::MAX } else { window.saturating_sub(self.unreached(proxy)).min(window / 4) };
        let is_mixed = !self.pacing.uses.iter().any(|it| it.is_late && proxy.is_at(&it.path));
        if is_mixed && self.pacing.is_waiting() {
            left = left.min(config::PATH_FIRST_FLIGHT_BYTES / 2);
        }
        (left.min(room.left()), None)
    }

    /// Returns the bytes sent to a late joiner that may be in its socket or in flight, as the kernel charges them.
    fn unreached(&self, proxy: &ReaderProxy) -> u64 {
        let charge_at = |(whole, fragments): Position| {
            let next = self.history.entry(whole.next()).filter(|_| fragments > 0);
            let begun = next.map_or(0, |entry| fragment_charge(&entry) * u64::from(fragments));
            self.history.charged_to(whole) + begun
        };
        let (next, fragments) = proxy.requested.never_sent.from();
        charge_at((next.prev(), fragments)).saturating_sub(charge_at(proxy.reached()))
    }

    /// Returns the HEARTBEAT that says to a reader up to which sample there is history. It requests no answer.
    pub(super) fn history_heartbeat(&mut self, reader: &Guid, first: SequenceNumber) -> Option<Heartbeat> {
        self.taking.as_ref()?;
        let proxy = &self.proxies[self.reliable_reader(reader)?];
        let last = proxy.last_to_name(self.unsent)?;
        Some(Heartbeat {
            reader: proxy.guid.entity,
            writer: self.config.guid.entity,
            first,
            last,
            count: self.heartbeat.next_count(None),
            is_final: true,
            is_liveliness: false,
        })
    }
}
