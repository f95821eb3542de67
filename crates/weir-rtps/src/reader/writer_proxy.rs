//! What a reader knows about one matched writer (RTPS 2.5 §8.4.10.4): what has arrived, what is held back,
//! what is missing and when to ask for it.

use core::time::Duration;
use std::collections::VecDeque;

use weir_wire::{Gap, Guid, Heartbeat, SequenceNumber, SequenceNumberSet, VendorId};

use super::cache::Held;
use crate::config;
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
    pub(super) state: SequenceNumberSet,
    pub(super) count: u32,
    pub(super) is_final: bool,
}

#[derive(Debug)]
enum Slot {
    Missing,
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
    vendor: VendorId,
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
    last_heartbeat: Option<u32>,
    is_answer_wanted: bool,
    count: u32,
    request: Request,
    preemptive_at: Option<Time>,
    preemptive_sent: u32,
}

/// The state of asking for what is missing.
#[derive(Debug)]
struct Request {
    /// The last sample that was asked for; nothing up to it is asked for again before `quiet_until`.
    highest: SequenceNumber,
    asked_at: Option<Time>,
    quiet_until: Time,
    retry_at: Option<Time>,
    delay: Duration,
    /// Smoothed time from asking to the first repair.
    round_trip: Duration,
}

impl WriterProxy {
    pub(super) fn new(now: Time, config: WriterProxyConfig, is_reliable: bool) -> Self {
        Self {
            guid: config.guid,
            is_reliable,
            destinations: config.destinations,
            is_refused: false,
            vendor: config.vendor,
            expected: SequenceNumber::FIRST,
            floor: SequenceNumber::FIRST,
            held: VecDeque::new(),
            announced: SequenceNumber::ZERO,
            is_started: false,
            last_heartbeat: None,
            is_answer_wanted: false,
            count: 0,
            request: Request {
                highest: SequenceNumber::ZERO,
                asked_at: None,
                quiet_until: Time::ZERO,
                retry_at: None,
                delay: config::NACK_RETRY_MIN,
                round_trip: config::NACK_RETRY_MIN / 2,
            },
            preemptive_at: is_reliable.then_some(now),
            preemptive_sent: 0,
        }
    }

    /// What a sample with this number is.
    #[inline]
    pub(super) fn arrival(&self, sn: SequenceNumber) -> Arrival {
        if sn == self.expected {
            return Arrival::Next { lost: 0 };
        }
        if sn < self.expected {
            return Arrival::Duplicate;
        }
        if !self.is_reliable {
            let lost = if self.is_started { (sn.0 - self.expected.0) as u64 } else { 0 };
            return Arrival::Next { lost };
        }
        match self.held.get(self.offset(sn)) {
            Some(Slot::Held(_) | Slot::Irrelevant) => Arrival::Duplicate,
            Some(Slot::Missing) | None => Arrival::Ahead,
        }
    }

    /// The sample that [`WriterProxy::arrival`] called the next was delivered.
    #[inline]
    pub(super) fn accept(&mut self, now: Time, sn: SequenceNumber) {
        if !self.is_reliable {
            self.is_started = true;
            self.expected = sn.next();
            return;
        }
        self.advance();
        if self.request.asked_at.is_some() {
            self.note_repair(now, sn);
        }
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
    pub(super) fn hold(&mut self, sn: SequenceNumber, held: Held) -> bool {
        let offset = self.offset(sn);
        if offset >= config::REORDER_MAX_SAMPLES {
            return false;
        }
        while self.held.len() <= offset {
            self.held.push_back(Slot::Missing);
        }
        self.held[offset] = Slot::Held(held);
        true
    }

    #[inline]
    pub(super) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// The next sample to deliver among those that were held back, if its turn has come.
    pub(super) fn next_held(&mut self, now: Time) -> Option<(SequenceNumber, Held)> {
        loop {
            match self.held.front() {
                Some(Slot::Held(held)) => {
                    let (sn, held) = (self.expected, *held);
                    self.advance();
                    if self.request.asked_at.is_some() {
                        self.note_repair(now, sn);
                    }
                    return Some((sn, held));
                }
                Some(Slot::Irrelevant) => self.advance(),
                Some(Slot::Missing) if self.expected < self.floor => self.advance(),
                Some(Slot::Missing) => return None,
                None => {
                    self.expected = self.expected.max(self.floor);
                    return None;
                }
            }
        }
    }

    /// Whether a HEARTBEAT is neither a repetition nor older than one that was seen (counts may wrap).
    pub(super) fn is_news(&mut self, count: u32) -> bool {
        let is_news = self.last_heartbeat.is_none_or(|last| count.wrapping_sub(last).cast_signed() > 0);
        if is_news {
            self.last_heartbeat = Some(count);
        }
        is_news
    }

    /// Takes in a HEARTBEAT. Returns how many samples it says are lost. Call [`WriterProxy::next_held`] after.
    pub(super) fn heartbeat(&mut self, now: Time, heartbeat: &Heartbeat) -> u64 {
        let known = self.expected.max(self.floor);
        let mut lost = 0;
        if heartbeat.first > known {
            if self.is_started {
                let span = self.offset(heartbeat.first).min(self.held.len());
                let there = self.held.iter().take(span).filter(|slot| !matches!(slot, Slot::Missing)).count();
                lost = ((heartbeat.first.0 - known.0) as u64).saturating_sub(there as u64);
            }
            self.floor = heartbeat.first;
        }
        self.is_started = true;
        self.preemptive_at = None;
        self.announced = self.announced.max(heartbeat.last);
        self.is_answer_wanted |= !heartbeat.is_final;
        // What is still missing behind a HEARTBEAT that was sent after our request had arrived is lost again.
        if now >= self.request.quiet_until {
            self.request.highest = SequenceNumber::ZERO;
        }
        lost
    }

    /// Takes in a GAP. Call [`WriterProxy::next_held`] after.
    pub(super) fn gap(&mut self, gap: &Gap) {
        let end = gap.list.base();
        if gap.start <= self.expected {
            self.floor = self.floor.max(end);
        } else {
            self.mark_irrelevant(gap.start, end);
        }
        for sn in gap.list.iter() {
            self.mark_irrelevant(sn, sn.next());
        }
    }

    /// Forgets what was asked for, so that the next answer asks for everything that is missing.
    pub(super) fn ask_again(&mut self) {
        self.request.highest = SequenceNumber::ZERO;
        self.is_answer_wanted = true;
    }

    /// What to tell the writer now, if anything.
    pub(super) fn answer(&mut self, now: Time) -> Option<Answer> {
        if !self.is_started {
            return self.preemptive(now);
        }
        let missing = if self.is_refused { None } else { self.missing() };
        match missing {
            Some(state) => {
                self.is_answer_wanted = false;
                self.request.highest = state.iter().last().unwrap_or(self.request.highest);
                self.request.asked_at = Some(now);
                self.request.quiet_until = now + self.request.round_trip;
                self.request.retry_at = Some(now + self.request.delay);
                Some(self.counted(state, false))
            }
            None if core::mem::take(&mut self.is_answer_wanted) => {
                let state = SequenceNumberSet::new(self.expected);
                Some(self.counted(state, true))
            }
            None => None,
        }
    }

    /// Whether something is to be sent because of the time.
    pub(super) fn handle_timeout(&mut self, now: Time) -> bool {
        if self.request.retry_at.is_some_and(|at| at <= now) {
            self.request.retry_at = None;
            if self.is_caught_up() && self.held.is_empty() {
                return false;
            }
            self.request.delay = (self.request.delay * 2).min(config::NACK_RETRY_MAX);
            self.request.highest = SequenceNumber::ZERO;
            return true;
        }
        self.preemptive_at.is_some_and(|at| at <= now)
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        match (self.request.retry_at, self.preemptive_at) {
            (Some(retry), Some(preemptive)) => Some(retry.min(preemptive)),
            (retry, preemptive) => retry.or(preemptive),
        }
    }

    pub(super) fn is_caught_up(&self) -> bool {
        !self.is_reliable || (self.is_started && self.expected > self.announced)
    }

    /// Samples that are known to exist, are missing and were not asked for lately: at most 256 numbers.
    fn missing(&self) -> Option<SequenceNumberSet> {
        let seen = SequenceNumber(self.expected.0 + self.held.len() as i64 - 1);
        let last = self.announced.max(seen);
        let mut set = SequenceNumberSet::new(self.expected);
        let from = self.request.highest.next().max(self.expected);
        let to = last.0.min(self.expected.0 + 255);
        for sn in from.0..=to {
            let sn = SequenceNumber(sn);
            if !matches!(self.held.get(self.offset(sn)), Some(Slot::Held(_) | Slot::Irrelevant)) {
                set.insert(sn);
            }
        }
        (!set.is_empty()).then_some(set)
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

    /// A sample was delivered while a request is open: measures the time that the repair took.
    fn note_repair(&mut self, now: Time, sn: SequenceNumber) {
        if sn > self.request.highest {
            return;
        }
        if let Some(asked_at) = self.request.asked_at.take() {
            let measured = now.since(asked_at);
            self.request.round_trip = (self.request.round_trip * 3 + measured) / 4;
            self.request.delay =
                (self.request.round_trip * 2).clamp(config::NACK_RETRY_MIN, config::NACK_RETRY_MAX);
        }
    }

    fn mark_irrelevant(&mut self, from: SequenceNumber, to: SequenceNumber) {
        let from = self.offset(from.max(self.expected));
        let to = self.offset(to.max(self.expected)).min(config::REORDER_MAX_SAMPLES);
        for offset in from..to {
            while self.held.len() <= offset {
                self.held.push_back(Slot::Missing);
            }
            if matches!(self.held[offset], Slot::Missing) {
                self.held[offset] = Slot::Irrelevant;
            }
        }
    }

    #[inline]
    fn offset(&self, sn: SequenceNumber) -> usize {
        usize::try_from(sn.0.saturating_sub(self.expected.0)).unwrap_or(usize::MAX)
    }
}
