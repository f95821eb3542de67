//! What a reader knows about one matched writer (RTPS 2.5 §8.4.10.4): what has arrived, what is held back,
//! what is missing and when to ask for it.

mod resumption;

use core::time::Duration;
use std::collections::VecDeque;

use weir_wire::{EntityId, Gap, Guid, Heartbeat, SequenceNumber, SequenceNumberSet, VendorId};

use super::cache::Held;
use crate::config;
use crate::key_hasher::Key;
use crate::liveliness::Lease;
use crate::outbox::Destinations;
use crate::time::Time;

/// A writer to be matched.
#[derive(Debug, Clone)]
pub struct WriterProxyConfig {
    /// Its GUID.
    pub guid: Guid,
    /// Whether it offers reliable delivery.
    pub reliable: bool,
    /// Where it receives acknowledgements.
    pub destinations: Destinations,
    /// Whose it is.
    pub vendor: VendorId,
}

/// What a new sample is.
pub(super) enum Arrival {
    /// The next to deliver; `lost` were passed over before it.
    Next { lost: u64 },
    /// One for which earlier ones are missing.
    Ahead,
    /// One that was there already.
    Duplicate,
}

/// What to send to the writer.
pub(super) struct Answer {
    /// What has arrived, and what is missing of the 256 samples behind it.
    pub(super) state: SequenceNumberSet,
    pub(super) count: u32,
    pub(super) is_final: bool,
}

#[derive(Debug)]
enum Slot {
    /// When it was asked for last, and how often.
    Missing {
        asked_at: Time,
        tries: u8,
    },
    Held(Held),
    /// It will not come, and is not missed.
    Irrelevant,
}

/// A matched writer.
#[derive(Debug)]
pub(super) struct WriterProxy {
    pub(super) guid: Guid,
    pub(super) is_reliable: bool,
    pub(super) destinations: Destinations,
    /// A sample was not accepted because the cache is full.
    pub(super) is_refused: bool,
    /// The instance of that sample, when it is the instance that has no room.
    pub(super) refused_key: Option<Key>,
    /// How long it may be silent.
    pub(super) lease: Lease,
    /// What the writer kept from before we came is not wanted, and the writer leaves it to us to pass over it.
    pub(super) skips_history: bool,
    /// The first sample that came before the writer was matched: it was on its way to us already.
    pub(super) sent_from: Option<SequenceNumber>,
    pub(super) vendor: VendorId,
    /// The next sample to deliver.
    expected: SequenceNumber,
    /// Everything before this is not worth waiting for.
    floor: SequenceNumber,
    /// `held[i]` is about sample `expected + i`.
    held: VecDeque<Slot>,
    /// The last sample that the writer says it has written.
    announced: SequenceNumber,
    /// Whether anything was heard: the first sample of a best-effort writer, the first HEARTBEAT of a
    /// reliable one.
    is_started: bool,
    /// Whether it is known where the samples that are meant for us begin: at the first one that was delivered, or
    /// where a HEARTBEAT for us alone says. Those of a HEARTBEAT to everybody may lie before we came.
    is_start_known: bool,
    /// It was matched before, is read from where it was then, and no HEARTBEAT has named a sample since.
    is_resumed: bool,
    /// For a volatile reader, what there was when a HEARTBEAT spoke to it alone for the first time: Fast DDS announces its history
    /// to such readers too, and tells with a GAP on request that it is not meant for them, which may come too late for what the
    /// writer replaces meanwhile.
    history_end: Option<SequenceNumber>,
    last_heartbeat: Option<(u32, Time)>,
    is_answer_wanted: bool,
    count: u32,
    fragment_count: u32,
    /// A sample that fragments are said to exist of, up to this number, and none has arrived.
    pub(super) missed_fragments: Option<(SequenceNumber, u32)>,
    request: Request,
    preemptive_at: Option<Time>,
    preemptive_sent: u32,
}

/// The state of asking for what is missing. Each sample is asked for as soon as its absence shows, and again
/// when its repair should have been there.
#[derive(Debug)]
struct Request {
    /// Everything that is missing before this was asked for.
    frontier: SequenceNumber,
    /// Nothing that was asked for is to be asked for again before this.
    recheck_at: Time,
    /// The latest request of which an answer has arrived: answers to earlier ones that are not there are lost.
    answered: Time,
    /// The writer has just answered a request: what is missing still was probably lost again.
    is_prompted: bool,
    /// Everything that is missing is to be asked for, whenever that was done last.
    is_forced: bool,
    retry_at: Option<Time>,
    delay: Duration,
    round_trip: RoundTrip,
    /// What came to be missing just after a request waits for company until this.
    paced_until: Time,
    /// Something does so, and is asked for at this time when nothing arrives before.
    deferred_to: Option<Time>,
}

/// The time from asking to the repair, smoothed, and how much it varies (as RFC 6298 §2 has it).
#[derive(Debug)]
struct RoundTrip {
    mean_ns: u64,
    variation_ns: u64,
    is_measured: bool,
}

impl RoundTrip {
    fn measured(&mut self, ns: u64) {
        if self.is_measured {
            self.variation_ns = (self.variation_ns * 3 + self.mean_ns.abs_diff(ns)) / 4;
            self.mean_ns = (self.mean_ns * 7 + ns) / 8;
        } else {
            (self.mean_ns, self.variation_ns, self.is_measured) = (ns, ns / 2, true);
        }
    }

    /// Something was asked for again although its repair was on its way: have more patience.
    fn was_too_short(&mut self) {
        self.variation_ns = (self.variation_ns + self.mean_ns / 16).min(self.mean_ns);
    }

    /// A repair that is not there after this is lost.
    fn patience_ns(&self) -> u64 {
        self.mean_ns + (self.variation_ns * 4).max(self.mean_ns / 8)
    }

    /// Requests are this far apart, unless the writer wants an answer: so many repairs leave by one send, and what
    /// it adds to the time of a repair does not show.
    fn pace_ns(&self) -> u64 {
        let pace_max_ns = config::NACK_PACE_MAX.as_nanos() as u64;
        if self.is_measured { (self.mean_ns / config::NACK_PACE_SHARE).min(pace_max_ns) } else { 0 }
    }

    fn retry_delay(&self) -> Duration {
        Duration::from_nanos(self.patience_ns()).clamp(config::NACK_RETRY_MIN, config::NACK_RETRY_MAX)
    }
}

impl WriterProxy {
    pub(super) fn new(now: Time, config: WriterProxyConfig, is_reliable: bool) -> Self {
        Self {
            guid: config.guid,
            is_reliable,
            destinations: config.destinations,
            is_refused: false,
            refused_key: None,
            lease: Lease::endless(),
            skips_history: false,
            sent_from: None,
            vendor: config.vendor,
            expected: SequenceNumber::FIRST,
            floor: SequenceNumber::FIRST,
            held: VecDeque::new(),
            announced: SequenceNumber::ZERO,
            is_started: false,
            is_start_known: false,
            is_resumed: false,
            history_end: None,
            last_heartbeat: None,
            is_answer_wanted: false,
            count: 0,
            fragment_count: 0,
            missed_fragments: None,
            request: Request {
                frontier: SequenceNumber::FIRST,
                recheck_at: Time::ZERO,
                answered: Time::ZERO,
                is_prompted: false,
                is_forced: false,
                retry_at: None,
                delay: config::NACK_RETRY_FIRST,
                round_trip: RoundTrip {
                    mean_ns: config::NACK_RETRY_FIRST.as_nanos() as u64,
                    variation_ns: 0,
                    is_measured: false,
                },
                paced_until: Time::ZERO,
                deferred_to: None,
            },
            preemptive_at: is_reliable.then_some(now),
            preemptive_sent: 0,
        }
    }

    /// What a sample with this number is.
    #[inline(always)]
    pub(super) fn arrival(&self, sn: SequenceNumber) -> Arrival {
        if sn == self.expected { Arrival::Next { lost: 0 } } else { self.arrival_out_of_turn(sn) }
    }

    /// The same for one that is not the next.
    #[inline(never)]
    fn arrival_out_of_turn(&self, sn: SequenceNumber) -> Arrival {
        if sn < self.expected {
            return Arrival::Duplicate;
        }
        if !self.is_reliable {
            let lost = if self.is_started { (sn.0 - self.expected.0) as u64 } else { 0 };
            return Arrival::Next { lost };
        }
        match self.held.get(self.offset(sn)) {
            Some(Slot::Held(_) | Slot::Irrelevant) => Arrival::Duplicate,
            Some(Slot::Missing { .. }) | None => Arrival::Ahead,
        }
    }

    /// The sample that [`WriterProxy::arrival`] called the next was delivered.
    #[inline(always)]
    pub(super) fn accept(&mut self, now: Time, sn: SequenceNumber) {
        if !self.is_reliable {
            self.is_started = true;
            self.expected = sn.next();
        } else if self.held.is_empty() {
            self.is_start_known = true;
            self.expected = self.expected.next();
        } else {
            self.accept_listed(now);
        }
    }

    /// The same for one that was known to be missing, or that others were held back for.
    #[inline(never)]
    fn accept_listed(&mut self, now: Time) {
        if let Some(Slot::Missing { asked_at, tries }) = self.held.front() {
            let (asked_at, tries) = (*asked_at, *tries);
            self.note_repair(now, asked_at, tries);
        }
        self.is_start_known = true;
        self.advance();
    }

    /// The sample that [`WriterProxy::arrival`] called a duplicate was dropped.
    pub(super) fn drop_duplicate(&mut self) {
        self.request.round_trip.was_too_short();
    }

    /// The sample that [`WriterProxy::arrival`] called the next found no room.
    pub(super) fn refuse(&mut self, sn: SequenceNumber) {
        if self.is_reliable {
            self.is_refused = true;
            self.announced = self.announced.max(sn);
        } else {
            self.is_started = true;
            self.expected = sn.next();
        }
    }

    /// Keeps a sample that is ahead. `false` when it is too far ahead.
    pub(super) fn hold(&mut self, now: Time, sn: SequenceNumber, held: Held, listed: &mut usize) -> bool {
        let offset = self.offset(sn);
        if offset >= self.reach(*listed) {
            return false;
        }
        self.extend_to(offset + 1, listed);
        if let Slot::Missing { asked_at, tries } =
            core::mem::replace(&mut self.held[offset], Slot::Held(held))
        {
            self.note_repair(now, asked_at, tries);
        }
        true
    }

    /// How many samples behind the next one may be listed, when the lists of all writers have room for `listed`.
    fn reach(&self, listed: usize) -> usize {
        if listed < config::REORDER_SHARED_SAMPLES {
            config::REORDER_MAX_SAMPLES
        } else {
            self.held.len().max(config::REORDER_MIN_SAMPLES)
        }
    }

    /// How many samples the list has room for.
    pub(super) fn listed(&self) -> usize {
        self.held.capacity()
    }

    /// Gives back memory that the list has not needed lately.
    pub(super) fn shrink(&mut self) {
        self.held.shrink_to(self.held.len().next_power_of_two());
    }

    /// The samples that are held back.
    pub(super) fn held_mut(&mut self) -> impl Iterator<Item = &mut Held> {
        self.held.iter_mut().filter_map(|slot| match slot {
            Slot::Held(held) => Some(held),
            Slot::Missing { .. } | Slot::Irrelevant => None,
        })
    }

    /// Bytes of memory that the list of what is missing and what is held back takes, payloads not included.
    pub(super) fn memory(&self) -> usize {
        self.held.capacity() * size_of::<Slot>()
    }

    #[inline]
    pub(super) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// The next sample to deliver among those that were held back, if its turn has come and `has_room`.
    pub(super) fn next_held(
        &mut self,
        mut has_room: impl FnMut(&Held) -> bool,
    ) -> Option<(SequenceNumber, Held)> {
        loop {
            match self.held.front() {
                Some(Slot::Held(held)) if !has_room(held) => {
                    self.is_refused = true;
                    return None;
                }
                Some(Slot::Held(held)) => {
                    let (sn, held) = (self.expected, *held);
                    self.is_start_known = true;
                    self.advance();
                    return Some((sn, held));
                }
                Some(Slot::Irrelevant) => self.advance(),
                Some(Slot::Missing { .. }) if self.expected < self.floor => self.advance(),
                Some(Slot::Missing { .. }) => return None,
                None => {
                    self.expected = self.expected.max(self.floor);
                    return None;
                }
            }
        }
    }

    /// Whether a HEARTBEAT is neither a repetition nor older than one that was seen (counts may wrap).
    pub(super) fn is_news(&mut self, now: Time, count: u32) -> bool {
        let is_news = self.last_heartbeat.is_none_or(|(last, at)| {
            count.wrapping_sub(last).cast_signed() > 0 || now.since(at) >= config::COUNT_TRUST
        });
        if is_news {
            self.last_heartbeat = Some((count, now));
        }
        is_news
    }

    /// Where samples begin that were not there when we came: with the first that has arrived, or behind those that
    /// the first HEARTBEAT tells of.
    fn start(&self, heartbeat: &Heartbeat) -> SequenceNumber {
        let arrived = self.held.iter().position(|slot| matches!(slot, Slot::Held(_)));
        let arrived = arrived.map(|offset| SequenceNumber(self.expected.0 + offset as i64));
        let is_delivered = self.expected > SequenceNumber::FIRST;
        if is_delivered {
            return heartbeat.first;
        }
        let arrived = arrived.into_iter().chain(self.sent_from).min();
        // Not before what is there: a writer that was forgotten and comes back may have sent something long ago.
        arrived.unwrap_or(heartbeat.last.next()).max(heartbeat.first)
    }

    /// Takes in a HEARTBEAT. Returns how many samples it says are lost. Call [`WriterProxy::next_held`] after.
    /// `wants_history`: what was written before the reader was there is meant for it, too.
    pub(super) fn heartbeat(&mut self, heartbeat: &Heartbeat, wants_history: bool) -> u64 {
        let known = self.expected.max(self.floor);
        let mut lost = 0;
        let first =
            if self.skips_history && !self.is_started { self.start(heartbeat) } else { heartbeat.first };
        if first > known {
            let start =
                if self.is_start_known { Some(known) } else { self.history_end.map(SequenceNumber::next) };
            if let Some(start) = start.map(|start| start.max(known)).filter(|start| *start < first) {
                let slots = self.held.iter().take(self.offset(first)).skip(self.offset(start));
                let there = slots.filter(|slot| !matches!(slot, Slot::Missing { .. })).count();
                lost = ((first.0 - start.0) as u64).saturating_sub(there as u64);
            }
            self.floor = first;
        }
        self.is_started = true;
        if heartbeat.reader != EntityId::UNKNOWN {
            self.is_start_known |= wants_history;
            self.history_end.get_or_insert(heartbeat.last);
        }
        self.preemptive_at = None;
        self.announced = self.announced.max(heartbeat.last);
        self.is_answer_wanted |= !heartbeat.is_final;
        // One that is for us alone follows the repairs that we asked for.
        self.request.is_prompted |= heartbeat.reader != EntityId::UNKNOWN;
        lost
    }

    /// Takes in a GAP. Call [`WriterProxy::next_held`] after.
    pub(super) fn gap(&mut self, gap: &Gap, listed: &mut usize) {
        let end = gap.list.base();
        if gap.start <= self.expected {
            self.floor = self.floor.max(end);
        } else {
            self.mark_irrelevant(gap.start, end, listed);
        }
        for sn in gap.list.iter() {
            self.mark_irrelevant(sn, sn.next(), listed);
        }
    }

    /// The next answer asks for everything that is missing, whenever it was asked for last.
    pub(super) fn ask_again(&mut self) {
        self.request.is_forced = true;
        self.is_answer_wanted = true;
    }

    /// What to tell the writer now, if anything. What is missing beyond the answer's own set is appended to
    /// `more`, when the writer takes that (see [`WriterProxy::takes_more`]). No more than `room` samples are
    /// waited for at a time: what finds no room would only be sent in vain. Of the samples in `partial` some
    /// fragments are there, and the others are asked for one by one; it is in order.
    pub(super) fn answer(
        &mut self,
        now: Time,
        room: usize,
        partial: &[SequenceNumber],
        listed: &mut usize,
        more: &mut Vec<SequenceNumberSet>,
    ) -> Option<Answer> {
        more.clear();
        if !self.is_started {
            return self.preemptive(now);
        }
        if self.is_to_wait(now) {
            return None;
        }
        // Behind the last number of all, no set can begin.
        let mut state = SequenceNumberSet::new(self.expected.min(SequenceNumber::MAX));
        let is_asking = !self.is_refused && {
            let reach = if self.takes_more() { self.reach(*listed) } else { 256 };
            let announced = self.offset(self.announced.next().max(self.expected)).min(reach);
            self.extend_to(announced, listed);
            self.ask(now, room, partial, &mut state, more)
        };
        self.arm(now, is_asking);
        if is_asking {
            self.request.paced_until = now.plus_nanos(self.request.round_trip.pace_ns());
            self.is_answer_wanted = false;
            let is_final = state.is_empty();
            return Some(self.counted(state, is_final));
        }
        core::mem::take(&mut self.is_answer_wanted).then(|| self.counted(state, true))
    }

    /// Whether a request was sent so recently that the next one is to name more than what is missing now.
    fn is_to_wait(&mut self, now: Time) -> bool {
        let is_urgent = self.is_answer_wanted || self.is_to_ask_for_all();
        if is_urgent || now >= self.request.paced_until {
            self.request.deferred_to = None;
            return false;
        }
        self.request.deferred_to.get_or_insert(now + config::NACK_RETRY_MIN);
        true
    }

    /// Whether something is missing that is to be asked for soon.
    pub(super) fn is_deferred(&self) -> bool {
        self.request.deferred_to.is_some()
    }

    /// How long a repair may take before it is taken for lost; nothing at all when everything that is missing is
    /// to be asked for now.
    pub(super) fn patience_ns(&self) -> u64 {
        if self.is_to_ask_for_all() { 0 } else { self.request.round_trip.patience_ns() }
    }

    /// Whether to ask for everything that is missing, whenever that was done last. While there is no room it can wait.
    fn is_to_ask_for_all(&self) -> bool {
        self.request.is_forced && !self.is_refused
    }

    /// The count of the next NACK_FRAG.
    pub(super) fn next_fragment_count(&mut self) -> u32 {
        self.fragment_count = self.fragment_count.wrapping_add(1);
        self.fragment_count
    }

    /// Whether the writer takes a NACK_FRAG that asks for nothing as news of how far we are.
    pub(super) fn wants_progress(&self) -> bool {
        self.vendor == VendorId::WEIR
    }

    /// Whether the writer has said that it wrote this sample.
    pub(super) fn is_announced(&self, sn: SequenceNumber) -> bool {
        sn <= self.announced
    }

    /// Whether a sample, fragments of which have arrived, is still waited for.
    pub(super) fn waits_for(&self, sn: SequenceNumber) -> bool {
        sn >= self.floor && !matches!(self.arrival(sn), Arrival::Duplicate)
    }

    /// Whether a sample lies so near that it could be held back.
    pub(super) fn is_within_reach(&self, sn: SequenceNumber, listed: usize) -> bool {
        self.offset(sn) < self.reach(listed)
    }

    /// Whether something is to be sent because of the time.
    pub(super) fn handle_timeout(&mut self, now: Time) -> bool {
        if self.request.retry_at.is_some_and(|at| at <= now) {
            self.request.retry_at = None;
            self.request.delay = (self.request.delay * 2).min(config::NACK_RETRY_MAX);
            if !self.request.round_trip.is_measured {
                // What is asked for twice cannot be measured, so a first guess that is too short must grow.
                self.request.round_trip.mean_ns = self.request.delay.as_nanos() as u64;
            }
            self.request.is_forced = true;
            return true;
        }
        self.preemptive_at.into_iter().chain(self.request.deferred_to).any(|at| at <= now)
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        let Request { retry_at, deferred_to, .. } = &self.request;
        [*retry_at, *deferred_to, self.preemptive_at].into_iter().flatten().min()
    }

    pub(super) fn is_caught_up(&self) -> bool {
        !self.is_reliable || (self.is_started && self.expected > self.announced)
    }

    /// Whether the writer takes several sets at once: more ACKNACKs with the count of the first. To everybody
    /// but Weir those are repetitions, to be ignored; Weir repairs what is in their sets and does not take
    /// their bases for acknowledgements. One set reaches no further than 256 samples, which is less than what
    /// is on its way in a round trip, so one set a round trip would hold up the writer.
    fn takes_more(&self) -> bool {
        self.vendor == VendorId::WEIR
    }

    /// Puts what is known to exist, is missing and was not asked for lately into `state` and `more`. `false`
    /// when there is nothing.
    fn ask(
        &mut self,
        now: Time,
        mut room: usize,
        partial: &[SequenceNumber],
        state: &mut SequenceNumberSet,
        more: &mut Vec<SequenceNumberSet>,
    ) -> bool {
        let reach = if self.takes_more() { config::REORDER_MAX_SAMPLES } else { 256 };
        let is_prompted = core::mem::take(&mut self.request.is_prompted);
        let is_forced = core::mem::take(&mut self.request.is_forced);
        let mean_ns = self.request.round_trip.mean_ns;
        let patience_ns = match (is_forced, is_prompted) {
            (true, _) => 0,
            (_, true) => mean_ns,
            _ => self.request.round_trip.patience_ns(),
        };
        let answered = core::mem::replace(&mut self.request.answered, Time::ZERO);
        let is_recheck = is_forced
            || is_prompted
            || answered > Time::ZERO
            || now >= self.request.recheck_at
            || room < reach;
        let from = if is_recheck { 0 } else { self.offset(self.request.frontier.max(self.expected)) };
        let (mut is_asking, mut oldest) = (false, Time::MAX);
        let mut to = self.held.len().min(reach);
        for offset in from..to {
            let sn = SequenceNumber(self.expected.0 + offset as i64);
            let Slot::Missing { asked_at, tries } = &mut self.held[offset] else { continue };
            if room == 0 {
                to = offset;
                break;
            }
            room -= 1;
            if partial.binary_search(&sn).is_ok() {
                continue;
            }
            if *tries == 0 || *asked_at < answered || now.nanos_since(*asked_at) >= patience_ns {
                (*asked_at, *tries) = (now, tries.saturating_add(1));
                is_asking = true;
                if !state.insert(sn) && !more.last_mut().is_some_and(|set| set.insert(sn)) {
                    let mut set = SequenceNumberSet::new(sn);
                    set.insert(sn);
                    more.push(set);
                }
            }
            oldest = oldest.min(*asked_at);
        }
        if is_recheck {
            self.request.recheck_at = oldest.plus_nanos(self.request.round_trip.patience_ns());
        }
        self.request.frontier = SequenceNumber(self.expected.0 + to.max(from) as i64);
        is_asking
    }

    /// Sets the timer that asks again when nothing comes.
    fn arm(&mut self, now: Time, is_asking: bool) {
        let is_waiting = !self.is_refused && (!self.is_caught_up() || !self.held.is_empty());
        if !is_waiting {
            self.request.retry_at = None;
        } else if is_asking || self.request.retry_at.is_none() {
            self.request.retry_at = Some(now + self.request.delay);
        }
    }

    /// Asks for a HEARTBEAT once more, if none has arrived and the reader has given up asking. Returns whether it does.
    pub(super) fn prompt(&mut self, now: Time) -> bool {
        let has_given_up = self.is_reliable && !self.is_started && self.preemptive_at.is_none();
        if has_given_up {
            self.preemptive_sent = config::PREEMPTIVE_ACKNACKS_MAX - 1;
            self.preemptive_at = Some(now);
        }
        has_given_up
    }

    /// An ACKNACK that acknowledges nothing and asks for a HEARTBEAT. Its form depends on whose writer it is:
    /// Cyclone DDS takes base 0 for malformed, the others use it.
    fn preemptive(&mut self, now: Time) -> Option<Answer> {
        if self.preemptive_at.is_none_or(|at| at > now) {
            return None;
        }
        let delay = config::PREEMPTIVE_ACKNACK_DELAY_MIN * 2_u32.pow(self.preemptive_sent);
        self.preemptive_sent += 1;
        let goes_on = self.preemptive_sent < config::PREEMPTIVE_ACKNACKS_MAX;
        self.preemptive_at = goes_on.then(|| now + delay);
        let uses_zero = [VendorId::RTI, VendorId::RTI_MICRO, VendorId::EPROSIMA].contains(&self.vendor);
        let base = if uses_zero { SequenceNumber::ZERO } else { SequenceNumber::FIRST };
        Some(Answer { state: SequenceNumberSet::new(base), count: 0, is_final: false })
    }

    fn counted(&mut self, state: SequenceNumberSet, is_final: bool) -> Answer {
        self.count = self.count.wrapping_add(1);
        Answer { state, count: self.count, is_final }
    }

    #[inline]
    fn advance(&mut self) {
        self.held.pop_front();
        self.expected = self.expected.next();
    }

    /// A sample that was missing is there: measures the time that the repair took. What was asked for more
    /// than once tells nothing, since it is not known which request was answered.
    pub(super) fn note_repair(&mut self, now: Time, asked_at: Time, tries: u8) {
        let elapsed_ns = now.nanos_since(asked_at);
        if tries == 1 {
            self.request.round_trip.measured(elapsed_ns);
        }
        if tries > 0 {
            // What comes sooner is a late original or the answer to an earlier request.
            if elapsed_ns >= self.request.round_trip.mean_ns / 4 * 3 {
                self.request.answered = self.request.answered.max(asked_at);
            }
            self.request.delay = self.request.round_trip.retry_delay();
        }
    }

    /// Makes room for what is known about the next `len` samples.
    fn extend_to(&mut self, len: usize, listed: &mut usize) {
        if self.held.len() >= len {
            return;
        }
        let before = self.held.capacity();
        // A deque that grows as it likes has room for up to twice as many samples as may ever be listed.
        self.held.reserve_exact(len.next_power_of_two() - self.held.len());
        self.held.resize_with(len, || Slot::Missing { asked_at: Time::ZERO, tries: 0 });
        *listed += self.held.capacity() - before;
    }

    fn mark_irrelevant(&mut self, from: SequenceNumber, to: SequenceNumber, listed: &mut usize) {
        let from = self.offset(from.max(self.expected));
        let to = self.offset(to.max(self.expected)).min(self.reach(*listed));
        self.extend_to(to, listed);
        for slot in self.held.range_mut(from.min(to)..to) {
            if matches!(slot, Slot::Missing { .. }) {
                *slot = Slot::Irrelevant;
            }
        }
    }

    /// Position in `held` of a sample that is not before `expected`.
    #[inline]
    fn offset(&self, sn: SequenceNumber) -> usize {
        usize::try_from(sn.0.saturating_sub(self.expected.0)).unwrap_or(usize::MAX)
    }
}
