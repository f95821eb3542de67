//! Replies to single readers: repairs, GAPs for removed samples, and directed HEARTBEATs.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use weir_wire::{Echo, Gap, Guid, Heartbeat, InfoDestination, SequenceNumber, SequenceNumberSet, push};

use super::compose;
use super::group_repairs::RepairWay;
use super::pacing::Position;
use super::reader_proxy::SentAgain;
use super::repair_budget::Room;
use super::repairs_allowed::Allowed;
use super::requested::Requested;
use super::state::WriterCore;
use crate::config;
use crate::history::Entry;
use crate::outbox::{Destinations, Outbox};
use crate::path::on_the_wire;
use crate::time::Time;
use crate::window::charge;

/// Removed samples: everything from `start` to the base of the list, and the numbers in the list.
#[derive(Debug)]
pub(super) struct Hole {
    start: SequenceNumber,
    list: SequenceNumberSet,
}

impl Hole {
    fn contains(&self, sn: SequenceNumber) -> bool {
        sn < self.list.base() || self.list.contains(sn)
    }

    /// Adds the samples from `start` up to `end`, if the list reaches that far.
    ///
    /// A hole is reported as a whole. It may be long, and the reader would request it piece by
    /// piece.
    fn add(&mut self, start: SequenceNumber, end: SequenceNumber) -> bool {
        let reaches = end.0 - self.list.base().0 <= 256;
        (start.0..end.0).take_while(|_| reaches).for_each(|sn| _ = self.list.insert(SequenceNumber(sn)));
        reaches
    }
}

/// Adds the samples from `start` up to `end` to the last hole, or as another one.
fn add_hole(gone: &mut Vec<Hole>, start: SequenceNumber, end: SequenceNumber) {
    if !gone.last_mut().is_some_and(|hole| hole.add(start, end)) && gone.len() < HOLES_MAX {
        gone.push(Hole { start, list: SequenceNumberSet::new(end) });
    }
}

/// Adds a sample to a range if it is the next one, or begins another range. Returns the range that has ended.
fn join(range: &mut Option<Range<SequenceNumber>>, sn: SequenceNumber) -> Option<Range<SequenceNumber>> {
    match range {
        Some(range) if range.end == sn => {
            range.end = sn.next();
            None
        }
        _ => range.replace(sn..sn.next()),
    }
}

/// Most holes in one message. The reader requests the rest again.
pub(super) const HOLES_MAX: usize = 256;

impl WriterCore {
    /// Sends what single readers wait for: repairs, GAPs, and directed HEARTBEATs.
    pub(super) fn answer_readers(&mut self, now: Time, out: &mut Outbox) {
        let is_any_apart = self.taking.is_some();
        if is_any_apart && !self.is_beside_sender {
            self.feed_apart(now);
        }
        if core::mem::take(&mut self.pacing.receipts.is_due) {
            self.ask_for_receipts(now, out);
        }
        let due = self.due.take(self.proxies.len());
        self.note_common_requests(due.clone());
        // Of those that are apart, another one is first each time.
        let first = if is_any_apart { self.next_apart.clamp(due.start, due.end) } else { due.start };
        for index in (first..due.end).chain(due.start..first) {
            if is_any_apart && self.waits_for_sender(now, index) {
                continue;
            }
            if !self.proxies[index].requested.fragments.is_empty() {
                self.repair_fragments(now, index, out);
            }
            if self.proxies[index].is_late() {
                self.ask_late(now, index, out);
            }
            let proxy = &mut self.proxies[index];
            let gap_to = proxy.take_gap();
            let is_heartbeat_due = core::mem::take(&mut proxy.is_heartbeat_due);
            let (guid, to) = (proxy.guid, Arc::clone(&proxy.destinations));
            if proxy.requested.samples.is_empty() && gap_to.is_none() && !is_heartbeat_due {
                continue;
            }
            let take = |it: &mut Requested| core::mem::take(&mut it.samples);
            let mut requested = proxy.requested.changed().map(take).unwrap_or_default();
            let items = out.items.len();
            let mut gone = core::mem::take(&mut self.holes);
            gone.clear();
            if !requested.is_empty() {
                self.repair(now, index, &mut requested, &mut gone, out);
            }
            let is_nothing_sent = out.items.len() == items;
            let left_out = self.take_left_out(index);
            gone.extend(
                left_out
                    .map(|samples| Hole { start: samples.start, list: SequenceNumberSet::new(samples.end) }),
            );
            let waits = !requested.is_empty() || !self.proxies[index].requested.fragments.is_empty();
            self.due.add_if(index, waits);
            if let Some(of_reader) = self.proxies[index].requested.changed() {
                of_reader.samples = requested;
            }
            // Amid what is sent again because it was discarded, HEARTBEATs follow each other as in a stream.
            let is_marked = core::mem::take(&mut self.proxies[index].is_heartbeat_due);
            let is_heartbeat_due = is_heartbeat_due || is_marked;
            if !self.proxies[index].is_reliable {
                self.holes = gone;
                continue;
            }
            let waits = waits || self.proxies[index].is_asked_lately(now);
            if (waits || is_nothing_sent) && gap_to.is_none() && gone.is_empty() && !is_heartbeat_due {
                // The HEARTBEAT follows the last of the repairs. Without any it would cause the same request again.
                self.holes = gone;
                continue;
            }
            let heartbeat = self.heartbeat_for(Some(now), index);
            self.proxies[index].note_asked(now);
            self.send_reply(guid, &to, gap_to, &gone, &heartbeat, out);
            self.holes = gone;
        }
        if self.is_going_back {
            self.note_going_back(now);
        }
        if is_any_apart {
            self.next_apart = self.served_apart.take().map_or(first, |index| index + 1);
            self.go_on_apart(now);
        }
    }

    /// Asks a reliable reader for an acknowledgement, with the next transmission.
    pub fn prompt_reader(&mut self, reader: Guid) {
        if let Some(index) = self.reliable_reader(&reader) {
            self.proxies[index].is_heartbeat_due = true;
            self.due.add(index);
        }
    }

    /// Sends a reader a HEARTBEAT that requests an acknowledgement, to any address: the acknowledgement shows that the
    /// reader is there.
    pub fn ask_reader(&mut self, reader: Guid, to: &Destinations, out: &mut Outbox) {
        let Some(index) = self.reliable_reader(&reader) else { return };
        let heartbeat = self.heartbeat_for(None, index);
        self.send_reply(reader, to, None, &[], &heartbeat, out);
    }

    /// Returns the HEARTBEAT for one reader. `now`: when it is sent, if its answer may measure a path.
    ///
    /// Directed HEARTBEATs share the counter, but do not move the timer.
    pub(super) fn heartbeat_for(&mut self, now: Option<Time>, index: usize) -> Heartbeat {
        let first = self.proxies[index].announced_from(self.history.first());
        let sent = if self.is_beside_sender { self.sent_before } else { self.unsent };
        let mut sent = self.proxies[index].announced_end(sent);
        let guid = self.proxies[index].guid;
        self.excuse(&guid, |sn| sn < first);
        let proxy = &self.proxies[index];
        let count = self.heartbeat.next_count(now.filter(|_| !self.pacing.is_unused()));
        self.counters.heartbeats_sent += 1;
        if self.is_shown_unfinished(proxy) {
            sent = sent.next();
        }
        Heartbeat {
            reader: proxy.guid.entity,
            writer: self.config.guid.entity,
            first,
            last: if proxy.is_introduced { sent.prev().max(first.prev()) } else { first.prev() },
            count,
            is_final: false,
            is_liveliness: false,
        }
    }

    /// Sends requested samples again, at most one window of them, and no more than may be sent to the host. Leaves
    /// in `requested` what the path does not allow yet. Adds the removed samples among them to `gone`.
    ///
    /// Requested samples were charged when first sent, and then lost. One window of repairs
    /// therefore cannot overflow the reader's socket.
    fn repair(
        &mut self,
        now: Time,
        index: usize,
        requested: &mut Vec<SequenceNumber>,
        gone: &mut Vec<Hole>,
        out: &mut Outbox,
    ) {
        let (to, mut room) = self.room_for_repairs_of(index);
        let mut allowed = self.repairs_allowed(now, index);
        let (mut waiting, mut again, mut is_hole) = (0, None, false);
        let (mut wanted, mut previous): (Option<Range<_>>, Option<Entry>) = (None, None);
        requested.sort_unstable();
        requested.dedup();
        for place in 0..requested.len() {
            let sn = requested[place];
            self.begin_repair(index, (sn, 0), &mut allowed);
            // A message that was begun is sent as a whole: it would be sent again from its beginning.
            let is_next = wanted.as_ref().is_some_and(|range| range.end == sn);
            let begun = previous.filter(|_| is_next).zip(self.history.entry(sn));
            let is_begun = begun.is_some_and(|(previous, entry)| previous.is_extended_by(&entry));
            if allowed.is_spent() && !is_begun {
                // In place, so that the list keeps its memory.
                requested[waiting] = sn;
                waiting += 1;
                continue;
            }
            self.proxies[index].note_repair((sn, 0), None);
            let Some(entry) = self.history.entry(sn).filter(Entry::is_alive) else {
                self.add_removed(sn, gone);
                self.note_removed(now, index, sn);
                continue;
            };
            if self.is_left_out(index, &entry) {
                add_hole(gone, sn, sn.next());
                continue;
            }
            if entry.fragment_size != 0 {
                let rooms = (&mut room, &mut allowed);
                if self.repair_in_fragments(now, index, (sn, &entry), &to, rooms, out) {
                    (again, is_hole) = self.note_again(index, sn, (again, is_hole));
                }
                continue;
            }
            let (way, cost) = (self.repair_way(now, index, sn), charge(entry.len as usize));
            if way == RepairWay::Sent {
                continue;
            }
            // Consecutive samples of a batch are sent in one datagram.
            let sent = previous.filter(|_| is_begun);
            let bytes = u64::from(entry.len - sent.map_or(0, |previous| previous.len));
            if !allowed.is_first() && !room.is_in_answer(cost, bytes) {
                // The reader requests the rest again, unless it has discarded it.
                if self.awaits_again(index, sn) {
                    requested[waiting] = sn;
                    waiting += 1;
                }
                continue;
            }
            if !allowed.has_room(&mut room, cost, bytes) {
                continue;
            }
            previous = Some(entry);
            allowed.spend(bytes);
            self.note_first_sent(index, sn, (1, 1, 1), &mut allowed);
            self.note_group_repair(now, index, sn, &way);
            self.note_sent_again(now, index, (sn, 0), on_the_wire(bytes));
            self.send_withheld(now, sn, None, &to);
            self.count_repair(&allowed, cost, true);
            (again, is_hole) = self.note_again(index, sn, (again, is_hole));
            self.append_repair(&way, sn, &mut wanted, &to, out);
        }
        wanted.into_iter().for_each(|range| self.append_samples(range, &to, out));
        self.note_repaired(&to, &room);
        self.note_repairs_sent(now, index, &allowed, is_hole);
        self.ask_apart_when_due(now, index, out);
        self.mark_again(now, index, again);
        requested.truncate(waiting);
    }

    /// Sends fragments of a large sample of which a reader has nothing. Returns whether it sent any.
    fn repair_in_fragments(
        &mut self,
        now: Time,
        index: usize,
        (sn, entry): (SequenceNumber, &Entry),
        to: &Destinations,
        (room, allowed): (&mut Room, &mut Allowed),
        out: &mut Outbox,
    ) -> bool {
        let before = allowed.spent();
        let fragments = self.repair_large(sn, entry, to, room, allowed, out);
        if fragments > 0 {
            self.note_first_sent(index, sn, (fragments, entry.fragments(), fragments), allowed);
            self.count_repair(allowed, 0, true);
            self.send_withheld(now, sn, None, to);
            self.note_sent_again(now, index, (sn, 0), allowed.spent() - before);
        }
        if allowed.is_spent() {
            self.proxies[index].await_rest(sn, fragments..entry.fragments());
        }
        fragments > 0
    }

    /// Counts a repair. `cost`: the bytes charged; `is_whole`: the last of a sample.
    pub(super) fn count_repair(&mut self, allowed: &Allowed, cost: u64, is_whole: bool) {
        if !allowed.is_first() {
            self.window.on_repaired(cost);
            self.counters.samples_repaired += u64::from(is_whole);
        }
    }

    /// Appends a repair: to the reader's group, or to the reader, once no further one follows it directly.
    fn append_repair(
        &self,
        way: &RepairWay,
        sn: SequenceNumber,
        wanted: &mut Option<Range<SequenceNumber>>,
        to: &Destinations,
        out: &mut Outbox,
    ) {
        if let RepairWay::Group(group) = way {
            self.append_samples(sn..sn.next(), group, out);
        } else if let Some(range) = join(wanted, sn) {
            self.append_samples(range, to, out);
        }
    }

    /// Records that bytes that a reader has requested are sent again.
    pub(super) fn note_sent_again(&mut self, at: Time, index: usize, what: Position, bytes: u64) {
        let heartbeats = self.heartbeat.count;
        self.proxies[index].note_repair(what, Some(SentAgain { at, bytes, heartbeats }));
    }

    /// Handles an ECHO: the count of the last HEARTBEAT that a reader had received before the requests that follow.
    ///
    /// It measures the round trip, however many answers were lost.
    pub fn handle_echo(&mut self, now: Time, reader: Guid, echo: &Echo) {
        let last = self.heartbeat.count;
        let Some(index) = self.places.find(&self.proxies, &reader) else { return };
        let proxy = &mut self.proxies[index];
        let delay = Duration::from_micros(u64::from(echo.delay_us));
        // Clocks differ, and what is long ago says nothing about the path.
        let is_recent = |at: &Time| delay <= config::ECHO_DELAY_MAX && now.since(*at) <= config::ECHO_AGE_MAX;
        if proxy.note_echo(echo.count, last)
            && let Some(path) = &proxy.path
            && let Some(sent_at) = self.heartbeat.sent_at(echo.count).filter(is_recent)
        {
            // A longer delay than that cannot be.
            if let Some(elapsed_ns) = now.nanos_since(sent_at).checked_sub(delay.as_nanos() as u64) {
                path.lock().note_echo(now, elapsed_ns);
            }
        }
    }

    /// Whether a sample that finds no room now waits for it, since the reader has discarded it.
    fn awaits_again(&mut self, index: usize, sn: SequenceNumber) -> bool {
        let proxy = &mut self.proxies[index];
        let is_discarded = proxy.is_discarded(sn);
        if is_discarded {
            proxy.await_repair(sn);
        }
        is_discarded
    }

    /// Adds a removed sample to the holes to be reported.
    fn add_removed(&self, sn: SequenceNumber, gone: &mut Vec<Hole>) {
        if gone.last().is_none_or(|hole| !hole.contains(sn)) {
            add_hole(gone, sn, self.history.first_alive(sn).min(self.unsent));
        }
    }

    /// Sends one message to one reader: GAPs for removed samples, then a HEARTBEAT.
    pub(super) fn send_reply(
        &mut self,
        reader: Guid,
        to: &Destinations,
        gap_to: Option<SequenceNumber>,
        gone: &[Hole],
        heartbeat: &Heartbeat,
        out: &mut Outbox,
    ) {
        let header = compose::header(&self.config);
        let writer = self.config.guid.entity;
        let history = self.history_heartbeat(&reader, heartbeat.first);
        let is_gone = |sn| gone.iter().any(|hole| hole.start <= sn && hole.contains(sn));
        self.excuse(&reader, |sn| gap_to.is_some_and(|end| sn < end) || is_gone(sn));
        // A volatile reader that waits for samples from before the match has lost them: the writer had
        // forgotten it for a while. It counts them by the HEARTBEAT, unless a GAP says first that they
        // are irrelevant.
        let proxy = self.reader_mut(&reader);
        let has_lost = proxy.is_some_and(|proxy| core::mem::take(&mut proxy.asked_for_past));
        // One GAP covers everything before `gap_to`; further GAPs cover the holes after it.
        // What is before the first sample, the HEARTBEAT says; some readers visit each number of a GAP.
        let first = self.config.first;
        let front = gap_to.filter(|end| *end > first).map(|end| (first, SequenceNumberSet::new(end)));
        let behind = gone.iter().map(|hole| (hole.start, hole.list));
        self.counters.gaps_sent += u64::from(front.is_some()) + gone.len() as u64;
        out.message(to, |message| {
            push(message, &header);
            push(message, &InfoDestination { prefix: reader.prefix });
            if has_lost {
                push(message, heartbeat);
            }
            for (start, list) in front.into_iter().chain(behind) {
                push(message, &Gap { reader: reader.entity, writer, start, list });
            }
            if !has_lost {
                push(message, heartbeat);
            }
            history.iter().for_each(|history| push(message, history));
        });
    }
}
