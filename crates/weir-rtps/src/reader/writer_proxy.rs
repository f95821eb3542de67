//! One matched writer (`WriterProxy`, RTPS 2.5, 8.4.10.4).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use weir_wire::{Echo, EntityId, Gap, Guid, Heartbeat, SequenceNumber, SequenceNumberSet, VendorId};

use super::assembly::Patience;
use super::changes::{Change, ChangesFromWriter, Doubts, NextHeld};
use super::counts::Counts;
use super::history_start::HistoryStart;
use super::receipts::Receipts;
use super::requests::{RepairRequests, RequestScope};
use super::stored::StoredSample;
use crate::config;
use crate::guid_index::OfGuid;
use crate::key_hasher::Key;
use crate::liveliness::Lease;
use crate::on_demand::{Idle, OnDemand};
use crate::outbox::Destinations;
use crate::time::{OptionTime, Time};

/// A writer to match.
#[derive(Debug, Clone)]
pub struct WriterProxyConfig {
    /// GUID of the writer.
    pub guid: Guid,
    /// Whether it offers reliable delivery.
    pub reliable: bool,
    /// Where it receives acknowledgements.
    pub destinations: Destinations,
    /// Vendor of its implementation.
    pub vendor: VendorId,
}

/// The writer of a sample that is placed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Author {
    pub(super) guid: Guid,
    /// It is matched, and its lease is not over. What was held back of another one is placed all the same.
    pub(super) is_alive: bool,
    /// No later sample of it waits for the same instance, which ends behind this one if the writer is not alive.
    pub(super) is_last: bool,
}

/// How a sample that arrives relates to those before it.
pub(super) enum Arrival {
    /// It is the next to deliver; `lost` samples before it were skipped.
    Next { lost: u64 },
    /// Earlier samples are missing.
    Ahead,
    /// It has arrived before, or is irrelevant.
    Duplicate,
}

/// The contents of an ACKNACK.
pub(super) struct Answer {
    /// What has arrived, and what is requested of the 256 samples behind it.
    pub(super) state: SequenceNumberSet,
    pub(super) count: u32,
    pub(super) is_final: bool,
}

/// A position in a writer's samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    /// The next sample to deliver.
    expected: SequenceNumber,
    counts: Counts,
}

/// A sample of a reliable writer for which the cache has no room.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refused {
    /// Its instance, if only samples of this instance have no room.
    pub(super) key: Option<Key>,
    /// When its writer last sent anything that waits.
    pub(super) heard_at: Time,
}

/// A matched writer.
#[derive(Debug)]
pub(super) struct WriterProxy {
    pub(super) guid: Guid,
    pub(super) vendor: VendorId,
    pub(super) is_reliable: bool,
    /// Its key hashes are in the form of XCDR1.
    pub(super) has_xcdr1_hashes: bool,
    pub(super) destinations: Destinations,
    /// How long it may be silent.
    pub(super) lease: OnDemand<Lease>,
    pub(super) start: HistoryStart,
    pub(super) changes: ChangesFromWriter,
    pub(super) trouble: OnDemand<Trouble>,
    pub(super) counts: Counts,
    /// Whether the writer wants an ACKNACK.
    is_answer_wanted: bool,
    /// Whether the writer has requested how many datagrams arrive marked.
    pub(super) reports_ecn: bool,
    pub(super) requests: OnDemand<RepairRequests>,
    /// When the next ACKNACK is due that asks for the first HEARTBEAT, and how many were sent.
    asks_at: OptionTime,
    asked: u8,
}

/// What keeps samples from being delivered, of few writers.
#[derive(Debug)]
pub(super) struct Trouble {
    /// The next sample, if it was refused. Nothing is requested until there is room for it.
    pub(super) refused: Option<Refused>,
    /// A sample that the writer has announced fragments of, up to this number. None has arrived.
    pub(super) missed_fragments: Option<(SequenceNumber, u32)>,
    /// Since when HEARTBEATs have said that the writer has not written what was delivered.
    behind_since: Option<Time>,
    /// The answers to a best-effort writer that asks what has arrived.
    pub(super) receipts: Receipts,
}

impl Idle for Trouble {
    const IDLE: Self =
        Self { refused: None, missed_fragments: None, behind_since: None, receipts: Receipts::NONE };

    fn idle() -> &'static Self {
        static IDLE: Trouble = Trouble::IDLE;
        &IDLE
    }
}

/// The reserved memory of a writer.
#[derive(Debug)]
pub(super) struct ProxyMemory {
    list: VecDeque<Change>,
    lease: Box<Lease>,
    doubts: Box<Doubts>,
    trouble: Box<Trouble>,
    requests: Box<RepairRequests>,
}

impl ProxyMemory {
    /// Reserves memory for so many samples that are missing or early.
    pub(super) fn reserved(samples: usize) -> Self {
        Self {
            list: VecDeque::with_capacity(samples),
            lease: Box::new(Lease::IDLE),
            doubts: Box::new(Doubts::IDLE),
            trouble: Box::new(Trouble::IDLE),
            requests: Box::new(RepairRequests::IDLE),
        }
    }

    /// The memory for so many samples, in bytes.
    pub(super) fn bytes(samples: usize) -> usize {
        let boxes =
            size_of::<Lease>() + size_of::<Doubts>() + size_of::<Trouble>() + size_of::<RepairRequests>();
        samples.saturating_mul(size_of::<Change>()).saturating_add(boxes)
    }

    /// The memory allocated, in bytes.
    pub(super) fn allocated(&self) -> usize {
        Self::bytes(self.list.capacity())
    }
}

impl OfGuid for WriterProxy {
    #[inline]
    fn guid(&self) -> &Guid {
        &self.guid
    }
}

impl WriterProxy {
    pub(super) fn new(now: Time, config: WriterProxyConfig, is_reliable: bool) -> Self {
        Self {
            guid: config.guid,
            vendor: config.vendor,
            is_reliable,
            has_xcdr1_hashes: false,
            destinations: config.destinations,
            lease: OnDemand::default(),
            start: HistoryStart::default(),
            changes: ChangesFromWriter::from(SequenceNumber::FIRST),
            trouble: OnDemand::default(),
            counts: Counts::default(),
            is_answer_wanted: false,
            reports_ecn: false,
            requests: OnDemand::default(),
            asks_at: if is_reliable { OptionTime::some(now) } else { OptionTime::NONE },
            asked: 0,
        }
    }

    /// It, as the author of samples behind which nothing waits.
    pub(super) fn author(&self) -> Author {
        Author { guid: self.guid, is_alive: self.lease.is_alive(), is_last: true }
    }

    /// Uses reserved memory for so many samples.
    pub(super) fn use_memory(&mut self, memory: ProxyMemory, room: usize) {
        let ProxyMemory { list, mut lease, doubts, mut trouble, mut requests } = memory;
        (*lease, *trouble, *requests) = (Lease::IDLE, Trouble::IDLE, RepairRequests::IDLE);
        self.lease.reserve(lease);
        self.trouble.reserve(trouble);
        self.requests.reserve(requests);
        self.changes.use_memory(list, doubts, room);
    }

    /// Takes the memory back, if it was reserved.
    pub(super) fn into_memory(mut self) -> Option<ProxyMemory> {
        let (list, doubts) = self.changes.take_memory()?;
        let (trouble, requests) = (self.trouble.into_memory()?, self.requests.into_memory()?);
        Some(ProxyMemory { list, lease: self.lease.into_memory()?, doubts, trouble, requests })
    }

    /// Returns the memory of requests if nothing is missing, unless it is reserved, or repairs are known to take long.
    pub(super) fn release_requests(&mut self) {
        let is_idle = self.start.has_begun && self.is_caught_up() && self.changes.list.is_empty();
        let is_short = u128::from(self.requests.round_trip.mean_ns) <= config::NACK_RETRY_FIRST.as_nanos();
        if is_idle && is_short && !self.requests.is_repeating {
            self.requests.free_unless(self.changes.is_reserved);
        }
    }

    /// The memory of it as reserved, in bytes.
    pub(super) fn reserved(&self) -> usize {
        if self.changes.is_reserved { ProxyMemory::bytes(self.changes.list.capacity()) } else { 0 }
    }

    /// How sample `sn` relates to those before it.
    #[inline(always)]
    pub(super) fn arrival(&self, sn: SequenceNumber) -> Arrival {
        if sn == self.changes.expected { Arrival::Next { lost: 0 } } else { self.arrival_out_of_turn(sn) }
    }

    /// The same for a sample that is not the expected one.
    #[inline(never)]
    fn arrival_out_of_turn(&self, sn: SequenceNumber) -> Arrival {
        let expected = self.changes.expected;
        if sn < expected {
            Arrival::Duplicate
        } else if !self.is_reliable {
            Arrival::Next { lost: if self.start.has_begun { (sn.0 - expected.0) as u64 } else { 0 } }
        } else if self.changes.has(sn) {
            Arrival::Duplicate
        } else {
            Arrival::Ahead
        }
    }

    /// Records a sample that [`WriterProxy::arrival`] called a duplicate. What is sent without reliability behind it is
    /// no duplicate if the number that led so far was false: returns whether the reader follows it.
    #[cold]
    pub(super) fn note_duplicate(&mut self, now: Time, sn: SequenceNumber) -> bool {
        self.requests.round_trip.raise_variation();
        !self.is_reliable && self.changes.follows_back(now, sn)
    }

    /// Moves past a sample that [`WriterProxy::arrival`] called the next.
    #[inline(always)]
    pub(super) fn accept(&mut self, now: Time, sn: SequenceNumber) {
        if !self.is_reliable {
            self.start.has_begun = true;
            self.changes.expected = sn.next();
        } else if self.changes.list.is_empty() {
            self.start.is_known = true;
            self.changes.expected = self.changes.expected.next();
        } else {
            self.accept_listed(now);
        }
    }

    /// Skips a sample that will not be delivered, as if the writer had sent a GAP. `reader`: the entity of this reader.
    #[cold]
    pub(super) fn skip(&mut self, reader: EntityId, sn: SequenceNumber, listed: &mut usize) {
        let list = SequenceNumberSet::new(sn.next());
        self.changes.gap(&Gap { reader, writer: self.guid.entity, start: sn, list }, listed, &mut 1);
    }

    /// Handles a GAP without reliability: samples that were left out on purpose, such as those that the writer filters,
    /// are not lost (RTPS 2.5, 8.4.12.1).
    #[cold]
    pub(super) fn pass_gap(&mut self, gap: &Gap) {
        let end = gap.list.base();
        if self.start.has_begun && gap.start <= self.changes.expected && self.changes.expected < end {
            self.changes.expected = end;
        }
    }

    /// The same for a sample that was known to be missing, or that others were held back for.
    #[inline(never)]
    fn accept_listed(&mut self, now: Time) {
        if let Some(&Change::Missing { asked_at, tries }) = self.changes.list.front() {
            self.requests.note_repair(now, asked_at, tries);
        }
        self.start.is_known = true;
        self.changes.advance();
    }

    /// Records that the cache had no room for a sample that [`WriterProxy::arrival`] called the
    /// next. `key`: its instance, if only that is full. A best-effort writer does not repeat the
    /// sample. Returns whether an earlier refusal stands.
    pub(super) fn refuse(&mut self, now: Time, sn: SequenceNumber, key: Option<Key>) -> bool {
        if self.is_reliable {
            self.changes.announced = self.changes.announced.max(sn);
            self.trouble.refused.replace(Refused { key, heard_at: now }).is_some()
        } else {
            self.start.has_begun = true;
            self.changes.expected = sn.next();
            false
        }
    }

    /// Holds back a sample that is ahead. Returns `false` if it is too far ahead.
    pub(super) fn hold(
        &mut self,
        now: Time,
        sn: SequenceNumber,
        stored: StoredSample,
        listed: &mut usize,
    ) -> bool {
        if let Some(refused) = self.refused_mut() {
            refused.heard_at = refused.heard_at.max(now);
        }
        let before = self.changes.hold(sn, stored, listed);
        if let Some(Change::Missing { asked_at, tries }) = before {
            self.requests.note_repair(now, asked_at, tries);
        }
        before.is_some()
    }

    /// The next sample to deliver among those held back, if it is there and `has_room`.
    pub(super) fn next_held(
        &mut self,
        now: Time,
        has_room: impl FnMut(&StoredSample) -> bool,
    ) -> Option<(SequenceNumber, StoredSample)> {
        match self.changes.next_held(has_room) {
            NextHeld::Deliver(sn, stored) => {
                self.start.is_known = true;
                Some((sn, stored))
            }
            NextHeld::NoRoom => {
                let refused = self.trouble.refused.get_or_insert(Refused { key: None, heard_at: now });
                // Another sample may have been the next before.
                refused.key = None;
                None
            }
            NextHeld::None => None,
        }
    }

    /// Handles a HEARTBEAT. Returns how many samples it reports lost. Call
    /// [`WriterProxy::next_held`] afterwards. `wants_history`: samples from before the match are
    /// meant for the reader, too.
    pub(super) fn heartbeat(&mut self, now: Time, heartbeat: &Heartbeat, wants_history: bool) -> u64 {
        if wants_history && self.is_weir() && self.start.note_history(heartbeat) {
            return 0;
        }
        let next = self.changes.expected.max(self.changes.floor);
        let is_skipping = self.start.skips_history && !self.start.has_begun;
        let first = if is_skipping { self.first_after_match(heartbeat) } else { heartbeat.first };
        let mut lost = 0;
        if first > next {
            // Behind a sample that was held back there is no doubt, either.
            let start = self.start.lost_from(next).or_else(|| self.changes.first_held());
            let start = start.filter(|start| *start < first);
            lost = start.map_or(0, |start| self.changes.missing_between(start, first));
            self.changes.floor = first;
        }
        self.start.note(heartbeat, wants_history);
        self.asks_at = OptionTime::NONE;
        let is_less = self.changes.announce(now, heartbeat.last);
        self.is_answer_wanted |= !heartbeat.is_final;
        if let Some(requests) = self.requests.changed() {
            if is_less {
                requests.frontier = requests.frontier.min(heartbeat.last.next());
            }
            // A HEARTBEAT for this reader alone follows the requested repairs.
            requests.is_prompted |= heartbeat.reader != EntityId::UNKNOWN;
            requests.note_heartbeat();
        }
        lost
    }

    /// The sample that was refused.
    pub(super) fn refused_mut(&mut self) -> Option<&mut Refused> {
        self.trouble.changed()?.refused.as_mut()
    }

    /// The first sample that was written after the match: the first that has arrived, or the one
    /// behind the first HEARTBEAT.
    fn first_after_match(&self, heartbeat: &Heartbeat) -> SequenceNumber {
        if self.changes.expected > SequenceNumber::FIRST {
            return heartbeat.first;
        }
        let arrived = self.changes.first_held().into_iter().chain(self.start.sent_from()).min();
        // A sample that arrived long ago, from a writer forgotten since, may not be available any
        // more.
        arrived.unwrap_or(heartbeat.last.next()).max(heartbeat.first)
    }

    /// Makes the next answer request everything missing, whenever it was last requested.
    pub(super) fn ask_again(&mut self) {
        self.requests.is_forced = true;
        self.is_answer_wanted = true;
    }

    /// The ACKNACK to send now, if any. Appends to `more` the sets of missing samples that it
    /// cannot hold, if the writer is [Weir's](WriterProxy::is_weir). `writers`: how many are matched. `room` and
    /// `partial` are those of [`RequestScope`].
    pub(super) fn answer(
        &mut self,
        now: Time,
        writers: u32,
        (room, partial): (usize, &[SequenceNumber]),
        listed: &mut usize,
        more: &mut Vec<SequenceNumberSet>,
    ) -> Option<Answer> {
        more.clear();
        if !self.start.has_begun {
            if self.is_awaiting() && (!self.is_caught_up() || !self.changes.list.is_empty()) {
                // Something is missing. A HEARTBEAT says first where the samples begin.
                self.asks_at = OptionTime::some(now);
            }
            return self.ask_for_heartbeat(now, writers);
        }
        if !self.needs_requests() {
            let is_final = self.trouble.behind_since.is_none();
            return core::mem::take(&mut self.is_answer_wanted).then(|| self.acknowledge(is_final));
        }
        let is_urgent = self.is_answer_wanted || self.is_all_due() || self.requests.is_repeat_due;
        if self.requests.is_to_wait(now, is_urgent) {
            return None;
        }
        let (takes_more, changes) = (self.is_weir(), &mut self.changes);
        // No set can begin behind the highest sequence number.
        let mut state = SequenceNumberSet::new(changes.expected.min(SequenceNumber::MAX));
        let is_refused = self.trouble.refused.is_some();
        let (is_asking, is_repeating) = if is_refused {
            (false, false)
        } else {
            let reach = changes.reach(*listed);
            let list_max = if takes_more { reach } else { SET_SAMPLES.min(reach) };
            let announced = changes.offset(changes.announced.next().max(changes.expected)).min(list_max);
            changes.extend_to(announced, listed);
            let reach = if takes_more { config::REORDER_MAX_SAMPLES } else { SET_SAMPLES };
            let scope = RequestScope { room, reach, partial };
            let asked = self.requests.ask(now, changes, scope, &mut state, more);
            if takes_more && !changes.list.is_empty() {
                // The writer is to know how far the reader has got, although something is missing.
                let last = self.requests.frontier.prev();
                if !more.last_mut().unwrap_or(&mut state).cover(last) {
                    let mut set = SequenceNumberSet::new(last);
                    set.cover(last);
                    more.push(set);
                }
            }
            asked
        };
        let is_waiting = !is_refused && (!self.is_caught_up() || !self.changes.list.is_empty());
        self.requests.arm(now, is_waiting, is_asking);
        if is_asking {
            self.requests.pace(now);
        }
        let is_wanted = core::mem::take(&mut self.is_answer_wanted);
        let is_final = self.trouble.behind_since.is_none() && (!is_asking || state.is_empty());
        (is_asking || is_repeating || is_wanted).then(|| Answer {
            state,
            count: self.counts.next_acknack(),
            is_final,
        })
    }

    /// Whether something is missing or early, or was before.
    pub(super) fn needs_requests(&self) -> bool {
        self.requests.is_changed() || !self.is_caught_up() || !self.changes.list.is_empty()
    }

    /// Whether samples may be requested now: nothing is before the first HEARTBEAT.
    pub(super) fn may_request(&self) -> bool {
        self.start.has_begun && self.needs_requests()
    }

    /// The ACKNACK of a reader that requests nothing.
    fn acknowledge(&mut self, is_final: bool) -> Answer {
        // No set can begin behind the highest sequence number.
        let state = SequenceNumberSet::new(self.changes.expected.min(SequenceNumber::MAX));
        Answer { state, count: self.counts.next_acknack(), is_final }
    }

    /// When what is missing is requested again: now, if everything missing is due.
    ///
    /// A request is repeated on long paths only. Weir's writers do not answer both.
    pub(super) fn patience(&self) -> Patience {
        // The writer knows which repairs are in flight, and sends again only the others.
        let is_named =
            self.requests.is_prompted && self.requests.is_repeating && self.trouble.refused.is_none();
        let repair_ns = match self.is_all_due() {
            true => 0,
            false if is_named => self.requests.prompted_ns(),
            false => self.requests.patience_ns(),
        };
        let is_long = |mean_ns: &u64| *mean_ns >= config::REQUEST_REPEATED_MIN.as_nanos() as u64;
        let repeated =
            self.requests.round_trip.measured_ns().filter(|mean_ns| self.is_weir() && is_long(mean_ns));
        let request_ns = repeated.map_or(u64::MAX, |mean_ns| mean_ns / 4);
        Patience { repair_ns, request_ns, is_repeat: self.requests.is_repeat_due, is_named }
    }

    /// What stands before requests.
    pub(super) fn echo(&self, now: Time, reader: EntityId) -> Option<Echo> {
        let (count, at) = self.counts.last_heartbeat().filter(|_| self.requests.is_repeating)?;
        let delay_us = u32::try_from(now.since(at).as_micros()).unwrap_or(u32::MAX);
        Some(Echo { reader, writer: self.guid.entity, count, delay_us })
    }

    /// Whether everything missing is due, whenever it was last requested. Without room it can wait.
    fn is_all_due(&self) -> bool {
        self.requests.is_forced && self.trouble.refused.is_none()
    }

    /// Whether the reader still waits for this sample, of which fragments have arrived.
    pub(super) fn waits_for(&self, sn: SequenceNumber) -> bool {
        sn >= self.changes.floor && !matches!(self.arrival(sn), Arrival::Duplicate)
    }

    /// Whether the writer is Weir's. Such a writer interprets an empty NACK_FRAG as a progress
    /// report, and accepts several sets at once, as further ACKNACKs with the count of the first.
    /// It repairs what is in their sets, and does not take their bases for acknowledgements. All
    /// other writers ignore them as repetitions. One set spans 256 samples, less than what is in
    /// flight during a round trip, so that one set per round trip would slow the writer down.
    pub(super) fn is_weir(&self) -> bool {
        self.vendor == VendorId::WEIR
    }

    /// Whether it is a reliable writer of this engine that was not matched before.
    pub(super) fn is_plain(&self) -> bool {
        self.is_reliable && self.is_weir() && !self.start.is_resumed
    }

    /// Whether everything that the writer has announced was delivered, and the history that it will send.
    pub(super) fn has_history(&self) -> bool {
        self.is_caught_up() && !(self.is_reliable && self.start.awaits_history(self.changes.expected))
    }

    /// Does not ask for the first HEARTBEAT until something is missing.
    pub(super) fn await_heartbeat(&mut self) {
        self.asks_at = OptionTime::NONE;
    }

    /// Whether no HEARTBEAT has arrived, and the reader has not requested one.
    fn is_awaiting(&self) -> bool {
        !self.start.has_begun && self.asks_at.get().is_none() && self.asked == 0
    }

    /// Whether a message is due.
    pub(super) fn handle_timeout(&mut self, now: Time) -> bool {
        let heard_at = self.counts.heard_at();
        self.requests.changed().is_some_and(|requests| requests.handle_timeout(now, heard_at))
            || self.asks_at.get().is_some_and(|at| at <= now)
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.requests.next_timeout().into_iter().chain(self.asks_at.get()).min()
    }

    /// Whether everything that the writer has announced was delivered.
    pub(super) fn is_caught_up(&self) -> bool {
        let has_asked = || self.start.has_begun || self.is_awaiting();
        !self.is_reliable || (self.changes.expected > self.changes.announced && has_asked())
    }

    /// Whether no HEARTBEAT has arrived, and the reader has given up asking for one.
    pub(super) fn has_given_up(&self) -> bool {
        self.is_reliable && !self.start.has_begun && self.asks_at.get().is_none() && self.asked > 0
    }

    /// Asks for a HEARTBEAT once more, if none has arrived and the reader has given up asking.
    /// Returns whether it does.
    pub(super) fn prompt(&mut self, now: Time) -> bool {
        let has_given_up = self.has_given_up();
        if has_given_up {
            (self.asks_at, self.asked) = (OptionTime::some(now), config::PREEMPTIVE_ACKNACKS_MAX - 1);
        }
        has_given_up
    }

    /// Where the reader stops when the writer is unmatched; `None` if nothing was delivered. A
    /// best-effort writer never repeats a sample.
    pub(super) fn position(&self) -> Option<Position> {
        let (expected, counts) = (self.changes.position(), self.counts);
        (self.is_reliable && expected > SequenceNumber::FIRST).then_some(Position { expected, counts })
    }

    /// Resumes where the reader stopped. Samples that the writer dropped in between are not lost:
    /// it was not matched.
    pub(super) fn resume(&mut self, Position { expected, counts }: Position) {
        if self.is_reliable {
            self.read_from(expected);
            self.counts = counts;
            self.start.is_resumed = true;
        }
    }

    /// Whether the writer has restarted its sequence numbers: its HEARTBEATs name only samples before the last one that
    /// was delivered. The first one since the writer was resumed is believed at once. Later ones have to say so for
    /// [`config::COUNT_TRUST`], while the writer is asked: a HEARTBEAT may be late or false, and the writer that is
    /// still the same then sends a true one. Call [`ChangesFromWriter::refuted_leap`] before.
    ///
    /// A GUID should name one writer for ever (RTPS 2.5, 8.2.4.2), but a process that starts again with the old one may
    /// come before the reader has noticed that the other is gone.
    pub(super) fn has_restarted(&mut self, now: Time, heartbeat: &Heartbeat) -> bool {
        let is_first = self.start.ends_resumption(heartbeat);
        let names_samples = heartbeat.first <= heartbeat.last;
        if !names_samples || heartbeat.last >= self.changes.position().prev() {
            if let Some(trouble) = self.trouble.changed() {
                trouble.behind_since = None;
            }
            return false;
        }
        let since = *self.trouble.behind_since.get_or_insert(now);
        self.is_answer_wanted = true;
        is_first || now.since(since) >= config::COUNT_TRUST
    }

    /// Forgets what was read of the writer.
    pub(super) fn restart(&mut self) {
        self.read_from(SequenceNumber::FIRST);
        self.start.restart();
        self.trouble.changed().into_iter().for_each(|trouble| *trouble = Trouble::IDLE);
    }

    /// Returns to a sample that was skipped. Nothing is held back.
    pub(super) fn return_to(&mut self, first: SequenceNumber) {
        self.read_from(first);
        if let Some(trouble) = self.trouble.changed() {
            (trouble.refused, trouble.missed_fragments) = (None, None);
        }
    }

    fn read_from(&mut self, first: SequenceNumber) {
        self.changes.restart(first);
        if let Some(requests) = self.requests.changed() {
            requests.frontier = first;
        }
    }

    /// An ACKNACK that acknowledges nothing and asks for a HEARTBEAT, if one is due. Cyclone DDS
    /// takes base 0 for malformed; the engines listed here use it.
    fn ask_for_heartbeat(&mut self, now: Time, writers: u32) -> Option<Answer> {
        if self.asks_at.get().is_none_or(|at| at > now) {
            return None;
        }
        let shortest = config::PREEMPTIVE_ACKNACK_DELAY_MIN;
        let answer_time = config::ANSWER_TIME * writers;
        let delay = answer_time.max(shortest) * 2_u32.pow(self.asked.into());
        self.asked += 1;
        // Each time-out visits all writers. Those of many become due together.
        let at = if answer_time > shortest { (now + delay).round_up(shortest) } else { now + delay };
        let is_last = self.asked >= config::PREEMPTIVE_ACKNACKS_MAX;
        self.asks_at = if is_last { OptionTime::NONE } else { OptionTime::some(at) };
        let uses_zero = [VendorId::RTI, VendorId::RTI_MICRO, VendorId::EPROSIMA].contains(&self.vendor);
        let base = if uses_zero { SequenceNumber::ZERO } else { SequenceNumber::FIRST };
        Some(Answer { state: SequenceNumberSet::new(base), count: 0, is_final: false })
    }
}

/// Number of samples that a set in an ACKNACK spans.
const SET_SAMPLES: usize = 256;
