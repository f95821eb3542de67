//! What a writer knows about one matched reader (RTPS 2.5, 8.4.7.5).

use alloc::boxed::Box;
use core::ops::Range;
use core::time::Duration;

use weir_wire::{AckNack, Guid, SequenceNumber, VendorId};

use super::go_back::Discards;
use super::pacing::Position;
use super::requested::{Repair, Requested};
use crate::config;
use crate::count::is_newer;
use crate::guid_index::OfGuid;
use crate::multicast::GroupRoute;
use crate::on_demand::OnDemand;
use crate::outbox::Destinations;
use crate::path::Path;
use crate::time::{OptionTime, Time};

/// A reader to be matched.
#[derive(Debug, Clone)]
pub struct ReaderProxyConfig {
    /// GUID of the reader.
    pub guid: Guid,
    /// Whether the reader requests reliable delivery.
    pub reliable: bool,
    /// Whether the reader requests samples written before the match (any durability but VOLATILE).
    pub wants_history: bool,
    /// The addresses at which the reader receives data.
    pub destinations: Destinations,
    /// The multicast group that the reader also listens to.
    pub group: Option<GroupRoute>,
    /// Vendor of the reader's engine.
    pub vendor: VendorId,
    /// Size of the reader's socket buffer, in bytes as its kernel charges them, if announced.
    pub receive_buffer: Option<u32>,
    /// Longest datagram that reaches the reader unfragmented, in bytes: the smallest path MTU to its addresses, less
    /// 28. `u16::MAX`: unlimited.
    pub segment_max: u16,
    /// The path to the reader's host, shared by all writers that send to it; `None`: readers on this host.
    pub path: Option<Path>,
}

/// A transmission of what was requested.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentAgain {
    pub(super) at: Time,
    pub(super) bytes: u64,
    /// The count of the last HEARTBEAT before it.
    pub(super) heartbeats: u32,
}

/// A matched reader.
#[derive(Debug)]
pub(super) struct ReaderProxy {
    pub(super) guid: Guid,
    pub(super) is_reliable: bool,
    pub(super) destinations: Destinations,
    pub(super) group: Option<GroupRoute>,
    pub(super) receive_buffer: Option<u32>,
    pub(super) segment_max: u16,
    pub(super) path: Option<Path>,
    /// What it has requested.
    pub(super) requested: OnDemand<Requested>,
    /// The reader has everything up to and including this sample.
    pub(super) acknowledged: SequenceNumber,
    /// The first sample meant for the reader. A volatile reader receives nothing written before the
    /// match.
    pub(super) start: SequenceNumber,
    /// The last sample that the reader is known to have reached: everything sent before was lost or
    /// has left its socket buffer.
    pub(super) seen: SequenceNumber,
    /// Samples below this were removed, and the reader waits for one of them; 0: it waits for none.
    gap_to: SequenceNumber,
    /// The reader requested a sample from before the match, which is not meant for it.
    pub(super) asked_for_past: bool,
    /// A directed HEARTBEAT is due.
    pub(super) is_heartbeat_due: bool,
    /// The reader knows the first sample meant for it.
    ///
    /// Until it has answered a HEARTBEAT that says so, it must receive no other: Cyclone DDS
    /// considers everything that its first HEARTBEAT announces as written before the match.
    pub(super) is_introduced: bool,
    /// The HEARTBEAT at the match was put off, see [`WriterCore::spare_heartbeat`](super::WriterCore::spare_heartbeat).
    pub(super) is_spared: bool,
    /// Samples written before the match are meant for the reader as well.
    pub(super) wants_history: bool,
    /// Whether the last ACKNACK named a number that only HEARTBEATs have shown: the first sample or a later one.
    pub(super) knows_numbers: Option<bool>,
    vendor: VendorId,
    /// HEARTBEATs that became due since the reader last answered.
    pub(super) unanswered: u8,
    /// Since when samples wait for the reader without a new acknowledgement.
    pub(super) idle_since: OptionTime,
    /// The reader is not waited for, see [`inactivity`](super::inactivity).
    pub(super) is_stalled: bool,
    /// No HEARTBEAT that only asks for an answer is due before this.
    pub(super) ask_at: Time,
    /// The count of the last ACKNACK that was taken, when, and its base.
    last_count: u32,
    counted_at: OptionTime,
    last_base: SequenceNumber,
}

impl OfGuid for ReaderProxy {
    #[inline]
    fn guid(&self) -> &Guid {
        &self.guid
    }
}

impl ReaderProxy {
    /// Creates the proxy of a reader whose first sample is `start`. `wants_history`: samples
    /// written before the match are meant for it. `reserved`: memory for what it may request.
    pub(super) fn new(
        config: ReaderProxyConfig,
        is_reliable: bool,
        wants_history: bool,
        start: SequenceNumber,
        reserved: Option<Box<Requested>>,
    ) -> Self {
        let mut requested = OnDemand::<Requested>::default();
        reserved.into_iter().for_each(|memory| requested.reserve(memory));
        if is_reliable && config.vendor == VendorId::CYCLONE {
            requested.discards = Some(Discards::new(config::CYCLONE_KEEPS_SAMPLES));
        }
        Self {
            guid: config.guid,
            is_reliable,
            destinations: config.destinations,
            group: config.group,
            receive_buffer: config.receive_buffer,
            segment_max: config.segment_max,
            path: config.path,
            requested,
            acknowledged: start.prev(),
            seen: start.prev(),
            start,
            gap_to: SequenceNumber::ZERO,
            asked_for_past: false,
            is_heartbeat_due: is_reliable,
            is_introduced: !is_reliable || config.wants_history,
            is_spared: false,
            wants_history,
            knows_numbers: None,
            vendor: config.vendor,
            unanswered: 0,
            idle_since: OptionTime::NONE,
            is_stalled: false,
            ask_at: Time::ZERO,
            last_count: 0,
            counted_at: OptionTime::NONE,
            last_base: SequenceNumber::ZERO,
        }
    }

    /// Takes the reserved memory back.
    pub(super) fn into_memory(self) -> Option<Box<Requested>> {
        let mut memory = self.requested.into_memory();
        memory.iter_mut().for_each(|requested| requested.forget());
        memory
    }

    /// Returns whether one more sample may be requested. The reader requests it again otherwise.
    pub(super) fn has_room_for_sample(&self) -> bool {
        self.requested.samples.len() < self.requested.rooms.samples
    }

    /// Returns whether one more fragment may be requested.
    pub(super) fn has_room_for_fragment(&self) -> bool {
        self.requested.fragments.len() < self.requested.rooms.fragments
    }

    /// Returns the memory of what it has requested as allocated, in bytes.
    pub(super) fn requests_allocated(&self) -> usize {
        if self.requested.is_changed() { self.requested.allocated() } else { 0 }
    }

    /// Returns whether an ACKNACK is newer than all before it. Counts may wrap.
    pub(super) fn is_news(&mut self, now: Time, acknack: &AckNack) -> bool {
        if is_preemptive(acknack) {
            return true;
        }
        let is_news = is_newer(now, acknack.count, self.last_count());
        if is_news {
            (self.last_count, self.counted_at) = (acknack.count, OptionTime::some(now));
            self.last_base = acknack.state.base();
        }
        is_news
    }

    fn last_count(&self) -> Option<(u32, Time)> {
        self.counted_at.get().map(|at| (self.last_count, at))
    }

    /// Returns whether the reader waits for samples that were removed.
    pub(super) fn awaits_gap(&self) -> bool {
        self.gap_to != SequenceNumber::ZERO
    }

    /// Returns the sample behind those that were removed, if the reader waits for one of them; once.
    pub(super) fn take_gap(&mut self) -> Option<SequenceNumber> {
        let end = core::mem::replace(&mut self.gap_to, SequenceNumber::ZERO);
        (end != SequenceNumber::ZERO).then_some(end)
    }

    /// Returns whether an ACKNACK continues the request of the previous one with the same count.
    ///
    /// Weir readers request samples this way that are further apart than one set reaches. The base
    /// of such an ACKNACK acknowledges nothing.
    pub(super) fn is_continuation(&self, acknack: &AckNack) -> bool {
        self.vendor == VendorId::WEIR
            && self.last_count().is_some_and(|(last, _)| last == acknack.count)
            && acknack.state.num_bits() > 0
            && acknack.state.base() > self.last_base
    }

    /// Returns whether the reader shows how far it has got while something is missing, and within a large sample.
    pub(super) fn shows_progress(&self) -> bool {
        self.vendor == VendorId::WEIR
    }

    /// Returns whether an application of another engine may wait until all samples have arrived that the first
    /// HEARTBEAT announces (`wait_for_historical_data`). Those of Cyclone DDS (`dds_reader.c`) and Fast DDS
    /// (`DataReader.cpp`) cannot.
    pub(super) fn waits_for_announced(&self) -> bool {
        ![VendorId::WEIR, VendorId::CYCLONE, VendorId::EPROSIMA].contains(&self.vendor)
    }

    /// Returns whether the reader is of this engine, and on this host.
    pub(super) fn is_near(&self) -> bool {
        self.vendor == VendorId::WEIR && self.path.is_none()
    }

    /// Returns whether the reader can report marks (ECN): one of this engine, at one address.
    pub(super) fn reports_marks(&self) -> bool {
        self.vendor == VendorId::WEIR && self.is_reliable && self.destinations.len() == 1
    }

    /// Returns whether the reader answers every HEARTBEAT_FRAG.
    pub(super) fn answers_heartbeat_frags(&self) -> bool {
        self.vendor == VendorId::WEIR
    }

    /// Returns how many fragments of a sample the reader is known to have reached.
    pub(super) fn seen_fragments(&self, sn: SequenceNumber) -> u32 {
        if self.requested.fragments_seen.0 == sn { self.requested.fragments_seen.1 } else { 0 }
    }

    /// Records that the reader has reached `seen` fragments of a sample. Returns whether that is
    /// progress.
    pub(super) fn see_fragments(&mut self, sn: SequenceNumber, seen: u32) -> bool {
        let is_news = seen > self.seen_fragments(sn);
        if is_news {
            self.requested.fragments_seen = (sn, seen);
            (self.unanswered, self.idle_since) = (0, OptionTime::NONE);
        }
        is_news
    }

    /// Returns whether a new ACKNACK takes back an acknowledgement.
    ///
    /// Then the reader lost this writer, found it again, and knows nothing of what was sent before.
    /// The writer may not have noticed, because losses in one direction end a lease on one side
    /// only. A volatile reader continues after what it acknowledged; see [`ReaderProxy::request`].
    pub(super) fn starts_anew(&self, acknack: &AckNack) -> bool {
        self.wants_history && !is_preemptive(acknack) && self.acknowledged_by(acknack) < self.acknowledged
    }

    /// Restarts the reader, as if it had just been matched.
    pub(super) fn start_anew(&mut self, acknack: &AckNack) {
        self.acknowledged = self.acknowledged_by(acknack);
        self.seen = self.acknowledged;
        if let Some(requested) = self.requested.changed() {
            requested.samples.clear();
            requested.fragments.clear();
            requested.repairs.clear();
            requested.reached = (SequenceNumber::ZERO, 0);
            requested.fragments_seen = (SequenceNumber::ZERO, 0);
            requested.fed = requested.fed.map(|_| requested.never_sent.from());
        }
    }

    /// Returns the last sample that an ACKNACK acknowledges, among those meant for the reader.
    fn acknowledged_by(&self, acknack: &AckNack) -> SequenceNumber {
        acknack.state.base().max(SequenceNumber::FIRST).prev().max(self.start.prev())
    }

    /// Returns the first sample that a HEARTBEAT for the reader announces. `first`: the first one available.
    ///
    /// A reader whose first HEARTBEAT was put off may be introduced long after the match, when the first samples meant
    /// for it are not available any more. It has to know of them, to count them as lost.
    pub(super) fn announced_from(&self, first: SequenceNumber) -> SequenceNumber {
        if self.is_spared && !self.is_introduced { self.start } else { self.start.max(first) }
    }

    /// Records that the reader has answered a HEARTBEAT. Returns whether that is the first answer, and samples before
    /// `next` are meant for it: then it gets a HEARTBEAT with all of them. On this host, only if it lacks some.
    pub(super) fn introduce(&mut self, next: SequenceNumber) -> bool {
        let is_first = !core::mem::replace(&mut self.is_introduced, true);
        let known = if self.is_near() { self.acknowledged.next() } else { self.start };
        let has_more = is_first && self.start.max(known) < next;
        self.is_heartbeat_due |= has_more;
        has_more
    }

    /// Prepares for a message of the reader: forgets the repairs that have arrived, and learns how long one takes.
    ///
    /// Returns when the first sample that was missing was sent again, if it was once and has arrived.
    pub(super) fn settle_repairs(&mut self) -> Option<Time> {
        let path = self.path.as_ref()?;
        let state = path.lock();
        let unknown =
            if self.requested.never_sent.is_empty() { Duration::ZERO } else { config::PATH_ANSWER_UNKNOWN };
        self.requested.repair_time = state.round_trip_min().map_or(unknown, |shortest| shortest / 8 * 7);
        self.requested.fragment_time = state.answer_time().map_or(unknown, |usual| usual / 8 * 9);
        drop(state);
        if !self.shows_progress() || self.requested.echoed.is_some() {
            // Answers that left before the repair arrived request it again. (An echo shows which did not.)
            self.requested.repair_time = self.requested.fragment_time;
        }
        let ((first, fragment), repair) = self.requested.repairs.first_key_value()?;
        if *first > self.acknowledged {
            return None;
        }
        let is_first = *fragment == 0 && repair.times == 1 && !self.is_discarded(*first);
        let sent_at = repair.sent_at.filter(|_| is_first);
        self.requested.repairs.remove_before(&(self.acknowledged.next(), 0));
        sent_at
    }

    /// Returns whether something requested is to be sent again: not if that waits already, or may be in flight.
    pub(super) fn accepts_request(&mut self, now: Time, what: Position) -> bool {
        if self.path.is_none() {
            return true;
        }
        let repair_time = if what.1 == 0 { self.requested.repair_time } else { self.requested.fragment_time };
        let echoed = self.requested.echoed;
        let repair = self.repair(what);
        // A HEARTBEAT that was sent behind it has arrived.
        let is_passed = echoed.is_some_and(|count| count.wrapping_sub(repair.heartbeats).cast_signed() > 0);
        let is_open =
            !repair.waits && repair.sent_at.is_none_or(|at| is_passed || now.since(at) >= repair_time);
        repair.waits |= is_open;
        repair.is_doubled &= !is_open;
        is_open
    }

    /// Returns what is known about a repair.
    ///
    /// If much is, it forgets what was sent again: a reader that acknowledges nothing may request everything. What
    /// waits to be sent is in the lists of requests, which are limited, so that this leaves room for many more.
    fn repair(&mut self, what: Position) -> &mut Repair {
        if self.requested.repairs.len() >= self.requested.rooms.repairs
            && !self.requested.repairs.contains_key(&what)
        {
            self.requested.repairs.retain(|_, repair| repair.waits);
            if self.requested.repairs.len() >= self.requested.rooms.repairs {
                self.requested.repairs.pop_first();
            }
        }
        self.requested.repairs.get_or_insert_with(what, Repair::default)
    }

    /// Returns the memory of what is known about repairs, at most, in bytes.
    pub(super) fn repairs_memory(&self) -> usize {
        self.requested.repairs.len() * size_of::<(Position, Repair)>() * 2
    }

    /// Returns for how long a repair may be in flight, as far as is known.
    pub(super) fn repair_time(&self) -> Duration {
        self.requested.repair_time
    }

    /// Records that a sample is to be sent again.
    pub(super) fn await_repair(&mut self, sn: SequenceNumber) {
        self.repair((sn, 0)).waits = true;
    }

    /// Requests a sample in the reader's stead.
    pub(super) fn await_sample(&mut self, sn: SequenceNumber) {
        self.await_repair(sn);
        self.requested.samples.push(sn);
    }

    /// Requests a fragment of a sample, counted from 0, in the reader's stead.
    pub(super) fn await_fragment(&mut self, sn: SequenceNumber, number: u32) {
        self.repair((sn, number + 1)).waits = true;
        self.requested.fragments.push((sn, number));
    }

    /// Requests the fragments of a sample that the path did not allow yet. A reader that discards what is behind it is
    /// not to wait until it requests them itself, as others do.
    pub(super) fn await_rest(&mut self, sn: SequenceNumber, fragments: Range<u32>) {
        if self.requested.discards.is_none() {
            return;
        }
        for number in fragments {
            if self.has_room_for_fragment() {
                self.await_fragment(sn, number);
            }
        }
    }

    /// Forgets the repairs of fragments from a sample on.
    pub(super) fn forget_fragments(&mut self, from: SequenceNumber) {
        self.requested.repairs.retain(|(sn, fragment), _| *sn < from || *fragment == 0);
    }

    /// Returns when a sample, or a part of it, was last sent again.
    pub(super) fn sent_again_at(&self, sn: SequenceNumber) -> Option<Time> {
        self.requested.repairs.range((sn, 0)..(sn.next(), 0)).filter_map(|(_, repair)| repair.sent_at).max()
    }

    /// Records that something requested was lost. Returns the bytes lost, of its `bytes`: each transmission is lost
    /// once, however often it is requested.
    pub(super) fn note_lost(&mut self, what: Position, bytes: u64) -> u64 {
        let repair = self.repair(what);
        let was_lost = core::mem::replace(&mut repair.is_lost, true);
        if was_lost { 0 } else { repair.bytes.map_or(bytes, |sent| sent.min(bytes)) }
    }

    /// Records the count of the last HEARTBEAT that the reader had received before the requests that follow. `last`:
    /// the count of the last one sent. Returns whether it can be.
    pub(super) fn note_echo(&mut self, count: u32, last: u32) -> bool {
        let is_sent = last.wrapping_sub(count).cast_signed() >= 0;
        // The last one may be so long ago that the counts have wrapped.
        let is_news =
            self.requested.echoed.is_none_or(|before| last.wrapping_sub(count) < last.wrapping_sub(before));
        if is_sent && is_news {
            self.requested.echoed = Some(count);
        }
        is_sent
    }

    /// Records that something requested was sent again, or that it will not be.
    pub(super) fn note_repair(&mut self, what: Position, sent: Option<SentAgain>) {
        if self.path.is_some() {
            let repair = self.repair(what);
            repair.waits = false;
            if let Some(SentAgain { at, bytes, heartbeats }) = sent {
                (repair.sent_at, repair.bytes, repair.is_lost) = (Some(at), Some(bytes), false);
                repair.heartbeats = heartbeats;
                repair.times += u32::from(!repair.is_doubled);
            }
        }
    }

    /// Records that a GAP was sent for a sample. The answer shows no round trip: it may have left before.
    ///
    /// `heartbeats`: the count of the last HEARTBEAT before it.
    pub(super) fn note_gap(&mut self, now: Time, sn: SequenceNumber, heartbeats: u32) {
        if self.path.is_some() {
            self.note_repair((sn, 0), Some(SentAgain { at: now, bytes: 0, heartbeats }));
            self.repair((sn, 0)).times = 2;
        }
    }

    /// Returns whether what waits was sent since it was requested, and is sent once more.
    pub(super) fn is_copy(&self, what: Position) -> bool {
        self.requested.repairs.get(&what).is_some_and(|repair| repair.is_doubled)
    }

    /// Returns whether a repair that was sent is to be sent once more, because an earlier one was lost. Records it.
    pub(super) fn doubles(&mut self, what: Position) -> bool {
        let repair = self.repair(what);
        let is_due = repair.times > 1 && !repair.is_doubled;
        repair.is_doubled |= is_due;
        repair.waits |= is_due;
        is_due
    }

    /// Records that the reader has got as far as a fragment of a sample.
    pub(super) fn note_reached(&mut self, sn: SequenceNumber, fragments: u32) {
        self.requested.reached = self.requested.reached.max((sn.prev(), fragments));
    }

    /// Returns how far the reader has got.
    pub(super) fn reached(&self) -> Position {
        self.requested.reached.max((self.seen, 0))
    }

    /// Applies what an ACKNACK acknowledges. `first` is the first sample in the history, which may be behind `unsent`,
    /// the first that was never sent; `next` is the next to be written.
    pub(super) fn update(
        &mut self,
        acknack: &AckNack,
        first: SequenceNumber,
        (unsent, next): (SequenceNumber, SequenceNumber),
    ) {
        let base = acknack.state.base();
        self.is_heartbeat_due |= is_preemptive(acknack) || (!acknack.is_final && acknack.state.is_empty());
        if is_preemptive(acknack) {
            // A volatile reader that restarts continues after what it acknowledged, and needs a
            // HEARTBEAT that says so.
            self.is_introduced &= self.wants_history || self.acknowledged < self.start;
            self.start = if self.wants_history { self.start } else { self.acknowledged.next() };
        }
        if base.0 >= 1 && base <= unsent.max(first) {
            self.acknowledged = self.acknowledged.max(base.min(unsent).prev());
            self.seen = self.seen.max(self.acknowledged);
            let next = self.acknowledged.next();
            if let Some(requested) = self.requested.changed() {
                requested.never_sent.forget_before(next);
            }
        }
        if !is_preemptive(acknack) {
            self.introduce(next);
        }
        self.note_seen(acknack, unsent);
    }

    /// Applies the requests in an ACKNACK. Returns whether repairs are due. `first` is the first sample in the history,
    /// `unsent` the first that was never sent.
    ///
    /// Each request is answered by a repair or a GAP. A volatile reader is not sent again what it
    /// acknowledged.
    pub(super) fn request(
        &mut self,
        now: Time,
        acknack: &AckNack,
        first: SequenceNumber,
        unsent: SequenceNumber,
    ) -> bool {
        let there = first.max(self.start);
        let there = if self.wants_history { there } else { there.max(self.acknowledged.next()) };
        let before = self.requested.samples.len();
        let doubtful_from = self.doubtful_from(acknack);
        for sn in acknack.state.iter().filter(|sn| *sn < unsent) {
            if sn >= doubtful_from && self.is_underway(now, sn) {
                continue;
            }
            if sn < there {
                self.gap_to = there;
                self.asked_for_past |= !self.wants_history && sn < self.start;
            } else if self.has_room_for_sample() && self.accepts_request(now, (sn, 0)) {
                self.requested.samples.push(sn);
            }
        }
        self.requested.samples.len() > before
    }

    /// Learns from an ACKNACK how far the reader has got, whether it is sent repairs or not. `unsent`: the first sample
    /// that was never sent.
    pub(super) fn note_seen(&mut self, acknack: &AckNack, unsent: SequenceNumber) {
        if acknack.state.num_bits() == 0 {
            return;
        }
        // What the set covers and does not name has arrived. What it names has not, but would not be named if nothing
        // behind it had been announced.
        let covered = SequenceNumber(acknack.state.base().0 + i64::from(acknack.state.num_bits()) - 1);
        let named = acknack.state.iter().rfind(|sn| *sn < unsent);
        for sn in named.into_iter().chain((covered < unsent).then_some(covered)) {
            if !self.is_uncertain(sn) {
                self.seen = self.seen.max(sn);
            }
        }
    }
}

/// Returns whether an ACKNACK acknowledges nothing and only requests a HEARTBEAT.
///
/// RTI and eProsima send base 0; Cyclone DDS and Weir send base 1 with an empty set and no final
/// flag. With the final flag, base 1 acknowledges a writer without samples. Answering that would
/// never end.
pub(crate) fn is_preemptive(acknack: &AckNack) -> bool {
    let base = acknack.state.base().0;
    acknack.state.is_empty() && (base == 0 || (base == 1 && !acknack.is_final))
}
