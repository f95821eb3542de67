//! Large samples, sent in fragments (RTPS 2.5, 8.4.14.1), as far as the window allows.
//!
//! The payload is stored contiguously in the history, or in pieces. A fragment is a slice of it,
//! preceded by its own headers. From time to time a HEARTBEAT_FRAG asks readers for their progress.
//! A Weir reader answers each one with a NACK_FRAG, whose set may be empty: everything before its
//! base has arrived. Other readers answer only if something is missing, so the writer sends to them
//! at a fixed pace, and on paths to other hosts it asks them [another way](super::unfinished).
//!
//! Best-effort readers never answer. If all readers are best-effort, or the reliable ones were
//! matched after the sample was begun, a long sample is sent in parts with pauses between them: see
//! [`config::BEST_EFFORT_PAUSE`]. A sample is long if it would fill more than half of the smallest
//! socket buffer.

use alloc::sync::Arc;
use core::time::Duration;

use weir_wire::{Guid, Header, HeartbeatFrag, NackFrag, SequenceNumber, push};

use super::compose;
use super::reader_proxy::ReaderProxy;
use super::repair_budget::Room;
use super::repairs_allowed::Allowed;
use super::state::WriterCore;
use crate::config;
use crate::history::Entry;
use crate::outbox::{Destinations, Item, Outbox};
use crate::path::on_the_wire;
use crate::time::Time;
use crate::window::charge;

impl WriterCore {
    /// Returns whether a large sample was begun and not finished, because readers have no room or
    /// because of a pause.
    #[inline]
    pub fn is_amid_sample(&self) -> bool {
        self.fragments.sent > 0
    }

    /// Returns whether [`WriterCore::poll_transmit`] would send more of the large sample in
    /// progress.
    pub fn can_go_on(&self, now: Time) -> bool {
        let Some(entry) = self.history.entry(self.unsent) else { return true };
        if self.fragments.sent == 0 {
            return true;
        }
        let has_room =
            if self.is_counted() { self.has_credit(&entry) } else { !self.fragments.is_pausing(now) };
        has_room && self.pacing.may_go_on(now) && !self.is_going_back
    }

    /// Leaves the large sample in progress to the timer, because no thread waits to continue it any
    /// more.
    ///
    /// From now on, [`WriterCore::next_timeout`] is due as soon as readers have made room.
    pub fn leave_sample(&mut self) {
        self.fragments.is_left = self.is_amid_sample();
    }

    /// Returns when a sample left to the timer continues: at once, if readers have made room.
    ///
    /// A burst held back behind it has its own timer, before which nothing would be sent.
    pub(super) fn left_sample_timeout(&self) -> Option<Time> {
        if !self.fragments.is_left || self.burst.queued_since.is_some() || !self.is_counted() {
            return None;
        }
        if self.pacing.is_waiting() {
            return self.pacing.next_at;
        }
        let entry = self.history.entry(self.unsent)?;
        self.has_credit(&entry).then_some(Time(0))
    }

    /// Returns the end of the pause in a large sample sent to best-effort readers.
    ///
    /// Nothing is sent before that, whatever is received.
    #[inline]
    pub fn paused_until(&self) -> Option<Time> {
        let amid = self.is_amid_sample();
        let pause = self.fragments.paced_at.filter(|_| amid && !self.is_counted());
        pause.or(self.pacing.paused_until().filter(|_| amid))
    }

    /// Handles a NACK_FRAG: which fragments a reader is missing (RTPS 2.5, 8.3.8.12).
    pub fn handle_nack_frag(&mut self, now: Time, reader: Guid, nack: &NackFrag) {
        let sn = nack.sequence_number;
        let entry = self.history.entry(sn).filter(Entry::is_alive);
        let index = self.reliable_reader(&reader);
        let is_sent = |index: &usize| sn <= self.proxies[*index].sent_end(self.unsent);
        let Some(index) = index.filter(is_sent) else {
            self.counters.acknacks_ignored += 1;
            return;
        };
        self.counters.acknacks_received += 1;
        // A GAP says of a sample that was removed that it was, also where others before it are still there.
        let Some(entry) = entry.filter(|entry| entry.fragment_size != 0) else {
            return self.request_whole(now, index, nack);
        };
        let may_ask = nack.state.iter().next().is_none() || self.may_repair(now, index);
        let proxy = &mut self.proxies[index];
        proxy.settle_repairs();
        let asked = proxy.requested.fragments.len();
        let unsent = proxy.sent_end(self.unsent);
        let of_unsent = proxy.sent_apart().unwrap_or(self.fragments.sent);
        let sent = if sn == unsent { of_unsent } else { entry.fragments() };
        let seen = proxy.fragments_shown(nack, &entry, sent);
        proxy.judge_fragments(nack, proxy.is_shown_early(sn, &entry).then_some(seen));
        let arrived = self.requests_up_to(now, index, (sn, seen), &entry);
        let proxy = &mut self.proxies[index];
        let never_sent = proxy.requested.never_sent;
        let is_in_flight =
            |number: u32| (sn.prev(), number) > arrived && !never_sent.contains(sn, number - 1);
        for number in nack.state.iter().filter(|it| it.0 <= sent) {
            if is_in_flight(number.0) && !proxy.is_long_gone(now, (sn, number.0)) {
                continue;
            }
            let has_room = may_ask && proxy.has_room_for_fragment();
            if has_room && proxy.accepts_request(now, (sn, number.0)) {
                proxy.requested.fragments.push((sn, number.0 - 1));
            }
        }
        let is_named = sn > proxy.acknowledged && nack.state.iter().any(|number| number.0 <= sent);
        // What has arrived may be from before the writer went back.
        let is_shown = !proxy.is_late() || proxy.shows_progress();
        let is_certain = is_shown && !proxy.is_uncertain(sn);
        if is_certain {
            proxy.note_reached(sn, seen.min(sent));
        } else if let Some(sent_here) = never_sent.sent_of(sn).filter(|_| !proxy.may_be_discarded(sn)) {
            // What arrived from elsewhere does not count on this path.
            proxy.note_reached(sn, seen.min(sent).min(sent_here));
        }
        if sn < unsent {
            // Except for repairs, fragments arrive in the order in which they were sent.
            let looked_to = if seen >= sent { sn } else { sn.prev() };
            proxy.seen = if is_certain { proxy.seen.max(looked_to) } else { proxy.seen };
        } else if proxy.see_fragments(sn, seen.min(sent)) {
            self.window.on_acknowledged(fragment_charge(&entry));
        }
        let is_loss = proxy.requested.fragments.len() > asked;
        self.note_path(now, index, usize::MAX, asked);
        self.due.add_if(index, is_loss);
        if is_loss {
            self.note_loss(now);
        }
        let may_arrive = may_ask && is_named && self.heartbeat.expired <= config::UNANSWERED_HEARTBEATS_PATH;
        if is_loss || may_arrive {
            self.expect_repairs_to_arrive(now);
        }
        self.go_back(now, index, (usize::MAX, asked), false);
        if sn < unsent {
            self.update_acknowledged(now);
        }
    }

    /// Handles a NACK_FRAG for a sample that was removed, or that is not fragmented: someone has made the reader
    /// believe that it is, by fragments in this writer's name. The sample is sent again as it is, or a GAP.
    #[cold]
    fn request_whole(&mut self, now: Time, index: usize, nack: &NackFrag) {
        let sn = nack.sequence_number;
        let is_asked = sn < self.unsent && nack.state.iter().next().is_some();
        let may_ask = is_asked && self.may_repair(now, index);
        let proxy = &mut self.proxies[index];
        let has_room = may_ask && proxy.has_room_for_sample();
        if has_room && sn > proxy.acknowledged && proxy.accepts_request(now, (sn, 0)) {
            proxy.requested.samples.push(sn);
            self.due.add(index);
            self.note_loss(now);
        }
    }

    /// Assumes progress by readers that do not report it, if the time has come.
    pub(super) fn pace_fragments(&mut self, now: Time) {
        if self.fragments.paced_at.is_none_or(|at| at > now) {
            return;
        }
        self.fragments.paced_at = None;
        let Some(entry) = self.history.entry(self.unsent) else { return };
        let more = (config::FRAGMENT_PACE_BYTES / fragment_charge(&entry)).max(1) as u32;
        let (sn, sent) = (self.unsent, self.fragments.sent);
        for proxy in
            self.proxies.iter_mut().filter(|proxy| proxy.is_reliable && !proxy.answers_heartbeat_frags())
        {
            let seen = proxy.seen_fragments(sn);
            proxy.see_fragments(sn, (seen + more).min(sent));
        }
    }

    /// Hands out fragments of the next large sample, as far as there is room. Returns whether it is
    /// complete.
    pub(super) fn send_fragments(&mut self, now: Time, entry: &Entry, out: &mut Outbox) -> bool {
        if !self.is_counted() {
            return self.send_unanswered(now, entry, out);
        }
        let sn = self.unsent;
        let (total, cost) = (entry.fragments(), fragment_charge(entry));
        let filled = self.filled_fragments(sn, total);
        self.fragments.allowed = 0;
        while self.fragments.sent < filled && self.has_credit(entry) {
            let len = compose::FRAGMENT_AT as u64 + fragment_len(entry, self.fragments.sent);
            if !self.allows_fragment(now, len) {
                break;
            }
            let others = self
                .pacing
                .wants_proof
                .then(|| self.withhold_fragment(now, sn, total - self.fragments.sent))
                .flatten();
            if others.as_ref().is_none_or(|others| !others.is_empty()) {
                // The path may have set readers apart since the last fragment.
                let to = others.unwrap_or_else(|| Arc::clone(self.taking()));
                self.append_fragment(sn, entry, self.fragments.sent, &to, out);
            }
            self.fragments.sent += 1;
            self.fragments.since_heartbeat += cost;
            let share = self.window.size() / config::HEARTBEAT_WINDOW_SHARE;
            let ends_flight = self.pacing.ends_flight && self.fragments.allowed < on_the_wire(len);
            let is_due =
                self.fragments.since_heartbeat >= share || self.pacing.wants_mark(now) || ends_flight;
            if is_due && self.fragments.sent < total {
                self.heartbeat_frag(now, sn, None, out);
            }
        }
        self.pacing.record(now);
        if self.fragments.sent == total {
            self.fragments.end();
            // The acknowledgement of this sample makes room for the next one.
            self.heartbeat.is_due = true;
            return true;
        }
        if self.fragments.sent == filled {
            // The next piece follows at once, and its HEARTBEAT_FRAG covers these fragments.
            return false;
        }
        if self.fragments.since_heartbeat > 0 && !self.pacing.is_waiting() {
            self.heartbeat_frag(now, sn, None, out);
        }
        if self.fragments.paced_at.is_none()
            && self.proxies.iter().any(|p| p.is_reliable && !p.answers_heartbeat_frags())
        {
            self.fragments.paced_at = Some(now + config::FRAGMENT_PACE_INTERVAL);
        }
        false
    }

    /// Hands out fragments if no reader reports its progress: all of a sample that fits the
    /// smallest socket buffer, or the next part of a longer one. Returns whether it is complete.
    fn send_unanswered(&mut self, now: Time, entry: &Entry, out: &mut Outbox) -> bool {
        if self.fragments.is_pausing(now) || !self.is_whole(self.unsent) {
            return false;
        }
        let (total, cost) = (entry.fragments(), fragment_charge(entry));
        let quarter = self.fragments.quarter.max(1);
        // The pause is proportional to the bytes sent, so that the longer first part is no faster.
        let burst = if self.fragments.sent == 0 { 2 * quarter } else { quarter };
        let is_paced = self.pacing.is_paced;
        let mut charged = 0;
        self.fragments.allowed = 0;
        while self.fragments.sent < total && (charged < burst || is_paced) {
            let len = compose::FRAGMENT_AT as u64 + fragment_len(entry, self.fragments.sent);
            if !self.allows_fragment(now, len) {
                break;
            }
            let to = Arc::clone(self.taking());
            self.append_fragment(self.unsent, entry, self.fragments.sent, &to, out);
            self.fragments.sent += 1;
            if self.pacing.receipts.is_asking {
                self.ask_when_due(now, out);
            }
            charged += cost;
        }
        self.pacing.record(now);
        if self.fragments.sent == total {
            self.fragments.end();
            return true;
        }
        if is_paced {
            return false;
        }
        let pause_ns = config::BEST_EFFORT_PAUSE.as_nanos() as u64 * charged / quarter;
        self.fragments.paced_at = Some(now + Duration::from_nanos(pause_ns));
        false
    }

    /// Sends a HEARTBEAT_FRAG for the sample in progress to all readers.
    pub(super) fn heartbeat_amid_sample(&mut self, now: Time, out: &mut Outbox) {
        self.heartbeat_frag(now, self.unsent, None, out);
    }

    /// Sends the fragments requested by a reader, at most one window of them, and then a
    /// HEARTBEAT_FRAG.
    pub(super) fn repair_fragments(&mut self, now: Time, index: usize, out: &mut Outbox) {
        let mut requested = core::mem::take(&mut self.proxies[index].requested.fragments);
        requested.sort_unstable();
        requested.dedup();
        let (repaired, mut room) = self.room_for_repairs_of(index);
        let mut allowed = self.repairs_allowed(now, index);
        let may_double = self.may_double_repairs(now, index);
        let (mut last, mut waiting) = (None, requested.len());
        // What is sent twice follows behind the others of the same turn, since losses come in bursts.
        loop {
            let (end, before) = (core::mem::take(&mut waiting), allowed.spent());
            for place in 0..end {
                let what = requested[place];
                self.begin_repair(index, what, &mut allowed);
                let waits = allowed.is_spent() || {
                    let rooms = (&mut room, &mut allowed);
                    let is_sent = self.repair_fragment(now, index, what, &repaired, rooms, out);
                    last = if is_sent { last.max(Some(what.0)) } else { last };
                    is_sent && may_double && self.proxies[index].doubles((what.0, what.1 + 1))
                };
                if waits {
                    requested[waiting] = what;
                    waiting += 1;
                }
            }
            if waiting == 0 || allowed.spent() == before {
                break;
            }
        }
        let is_hole = last.is_some_and(|sn| !self.proxies[index].is_discarded(sn));
        let has_spare_path = self.has_spare_path() && self.proxies[index].path.is_some();
        self.note_repairs_sent(now, index, &allowed, is_hole);
        self.ask_apart_when_due(now, index, out);
        requested.truncate(waiting);
        let waits = waiting > 0;
        self.due.add_if(index, waits);
        let proxy = &mut self.proxies[index];
        // Copies that wait do not hold up the HEARTBEAT.
        let waits = requested.iter().any(|(sn, number)| !proxy.is_copy((*sn, number + 1)));
        proxy.requested.fragments = requested;
        self.note_repaired(&repaired, &room);
        if let Some(sn) = last {
            self.counters.samples_repaired += u64::from(!allowed.is_first());
            if self.proxies[index].is_apart() {
                return self.ask_about_fragments(now, index, (sn, waits), out);
            }
            if waits {
                return;
            }
            // With its count, the reader says later which of these repairs are lost. It announces whole samples. Others
            // answer nothing else.
            let entry = self.history.entry(sn);
            let is_other = entry.is_some_and(|entry| self.proxies[index].is_shown_early(sn, &entry));
            if (has_spare_path || is_other) && sn < self.unsent {
                self.proxies[index].is_heartbeat_due = true;
            } else {
                self.heartbeat_frag(now, sn, Some(index), out);
            }
        }
    }

    /// Sends a fragment to a reader once more. Returns whether it did: not if it is gone, or there is no room.
    fn repair_fragment(
        &mut self,
        now: Time,
        index: usize,
        (sn, number): (SequenceNumber, u32),
        to: &Destinations,
        (room, allowed): (&mut Room, &mut Allowed),
        out: &mut Outbox,
    ) -> bool {
        self.proxies[index].note_repair((sn, number + 1), None);
        let entry = self.history.entry(sn).filter(|entry| entry.is_alive() && number < entry.fragments());
        let Some(entry) = entry else { return false };
        let (cost, len) = (fragment_charge(&entry), fragment_len(&entry, number));
        if !allowed.has_room(room, cost, len) {
            return false;
        }
        self.count_repair(allowed, cost, false);
        let bytes = compose::FRAGMENT_AT as u64 + len;
        allowed.spend(bytes);
        self.note_first_sent(index, sn, (number + 1, entry.fragments(), 1), allowed);
        self.note_sent_again(now, index, (sn, number + 1), on_the_wire(bytes));
        self.send_withheld(now, sn, Some(number + 1), to);
        self.append_fragment(sn, &entry, number, to, out);
        true
    }

    /// Returns whether repairs that were lost before are to be sent twice: on a path with a long round trip that
    /// carries more than is written.
    ///
    /// A large sample waits for the last of its fragments, each further loss of which costs a round trip. Only what was
    /// lost twice is doubled, a share of what is sent as small as the square of what is lost.
    fn may_double_repairs(&mut self, now: Time, index: usize) -> bool {
        if self.has_spare_path() {
            self.pacing.spare_at = now;
        }
        let proxy = &self.proxies[index];
        let Some(path) = proxy.path.as_ref().filter(|_| !proxy.is_apart()) else { return false };
        let lately = path.lock().answer_time().unwrap_or_default();
        lately >= config::REQUEST_REPEATED_MIN && now.since(self.pacing.spare_at) <= lately
    }

    /// Sends fragments of a sample of which a reader has nothing, as many as there is room for. The
    /// HEARTBEAT after them makes it request the others. Returns how many it sent.
    pub(super) fn repair_large(
        &mut self,
        sn: SequenceNumber,
        entry: &Entry,
        to: &Destinations,
        room: &mut Room,
        allowed: &mut Allowed,
        out: &mut Outbox,
    ) -> u32 {
        let cost = fragment_charge(entry);
        for number in 0..entry.fragments() {
            let len = fragment_len(entry, number);
            if allowed.is_spent() || !allowed.has_room(room, cost, len) {
                return number;
            }
            allowed.spend(compose::FRAGMENT_AT as u64 + len);
            self.count_repair(allowed, cost, false);
            self.append_fragment(sn, entry, number, to, out);
        }
        entry.fragments()
    }

    /// Returns the readers that report their progress in the next sample. A reliable reader matched
    /// later does not assemble it, and never reports progress.
    fn counting(&self) -> impl Iterator<Item = &ReaderProxy> {
        let is_counted =
            |proxy: &&ReaderProxy| proxy.is_awaited() && proxy.start <= self.unsent && !proxy.is_apart();
        self.proxies.iter().filter(is_counted)
    }

    /// Returns whether a reader reports its progress. Otherwise fragments are sent as to
    /// best-effort readers.
    fn is_counted(&self) -> bool {
        self.counting().next().is_some()
    }

    /// Returns whether the next sample is a large one for which readers have no room.
    pub(super) fn waits_for_room(&self) -> bool {
        let large =
            self.history.entry(self.unsent).filter(|entry| entry.is_alive() && entry.fragment_size != 0);
        large.is_some_and(|entry| self.is_counted() && !self.has_credit(&entry))
    }

    /// Returns whether every reader that reports progress has room for one more fragment.
    fn has_credit(&self, entry: &Entry) -> bool {
        // What paths hold back collects in no socket's buffer, and they know what of it is in flight.
        if self.pacing.is_paced && self.counting().all(|proxy| proxy.path.is_some()) {
            return true;
        }
        let (sn, cost) = (self.unsent, fragment_charge(entry));
        let seen = self.counting().map(|proxy| proxy.seen_fragments(sn)).min().unwrap_or(self.fragments.sent);
        let inside = u64::from(self.fragments.sent.saturating_sub(seen)) * cost;
        let before = self.history.charged_to(sn.prev()).saturating_sub(self.seen_charge);
        before + inside == 0 || before + inside + cost <= self.window.size()
    }

    fn append_fragment(
        &self,
        sn: SequenceNumber,
        entry: &Entry,
        index: u32,
        to: &Destinations,
        out: &mut Outbox,
    ) {
        let Some(slice) = self.history.fragment(entry, index) else { return };
        let start = out.scratch.len();
        let sizes = (entry.len, u32::from(entry.fragment_size));
        let fragment = (index, slice.bytes().len());
        compose::fragment_header(
            &self.config,
            sn,
            self.large.timestamp_of(sn),
            sizes,
            fragment,
            &mut out.scratch,
        );
        out.items.push(Item {
            scratch: start..out.scratch.len(),
            is_scratch_first: true,
            samples: u16::from(index + 1 == entry.fragments()),
            joins: true,
            ..Item::of(Arc::clone(to), Some(slice))
        });
    }

    /// Sends a HEARTBEAT_FRAG for a sample to all readers, or to one.
    pub(super) fn heartbeat_frag(
        &mut self,
        now: Time,
        sn: SequenceNumber,
        index: Option<usize>,
        out: &mut Outbox,
    ) {
        let Some(entry) = self.history.entry(sn) else { return };
        self.fragments.since_heartbeat = 0;
        if sn == self.unsent {
            self.pacing.mark(now, (sn.prev(), self.fragments.sent));
        }
        let to = index.map_or(self.taking(), |index| &self.proxies[index].destinations);
        let to = Arc::clone(to);
        self.ask_others_amid_sample(index, out);
        self.fragments.count = self.fragments.count.wrapping_add(1);
        self.counters.heartbeats_sent += 1;
        let header: Header = compose::header(&self.config);
        let sent_apart = index.and_then(|index| self.proxies[index].sent_apart_of(sn));
        let heartbeat = HeartbeatFrag {
            reader: weir_wire::EntityId::UNKNOWN,
            writer: self.config.guid.entity,
            sequence_number: sn,
            last_fragment: match sent_apart {
                Some(sent) => sent,
                None if sn == self.unsent => self.fragments.sent.max(1),
                None => entry.fragments(),
            },
            count: self.fragments.count,
        };
        out.message(&to, |message| {
            push(message, &header);
            push(message, &heartbeat);
        });
    }
}

/// Returns the bytes of a sample in fragment `number`, counted from 0.
fn fragment_len(entry: &Entry, number: u32) -> u64 {
    let size = u64::from(entry.fragment_size);
    size.min(u64::from(entry.len).saturating_sub(u64::from(number) * size))
}

/// Returns the bytes charged for one fragment of a sample.
pub(super) fn fragment_charge(entry: &Entry) -> u64 {
    charge(compose::FRAGMENT_AT + usize::from(entry.fragment_size))
}
