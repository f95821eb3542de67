//! When and what a reader requests from one writer. Each missing sample is requested as soon as its
//! absence shows, and again when its repair is overdue.

use alloc::vec::Vec;
use core::time::Duration;

use weir_wire::{SequenceNumber, SequenceNumberSet};

use super::changes::{Change, ChangesFromWriter};
use super::round_trip::RoundTrip;
use crate::config;
use crate::on_demand::Idle;
use crate::time::Time;

/// The repair requests to one writer. Most writers never get any.
#[derive(Debug)]
pub(super) struct RepairRequests {
    /// Every missing sample before this was requested, and before the next one to deliver.
    pub(super) frontier: SequenceNumber,
    /// No repeated request is due before this.
    recheck_at: Time,
    /// The latest request of which an answer has arrived. Missing answers to earlier ones are lost.
    answered: Time,
    /// The writer has just answered a request. What is still missing was probably lost again.
    pub(super) is_prompted: bool,
    /// Everything missing is due, whenever it was last requested.
    pub(super) is_forced: bool,
    /// When to repeat the requests if nothing arrives.
    retry_at: Option<Time>,
    retry_delay: Duration,
    /// When something was last requested.
    asked_at: Option<Time>,
    /// When something was first requested since a repair last arrived, or since a pause.
    unanswered_since: Option<Time>,
    /// See [`ReaderCore::note_elsewhere`](super::ReaderCore::note_elsewhere).
    pub(super) is_repeating: bool,
    /// When the last request is repeated, how often it was, and when that was last decided.
    repeat_at: Option<Time>,
    armed_at: Time,
    repeats: u8,
    /// Everything that was requested and is missing is to be named again.
    pub(super) is_repeat_due: bool,
    /// Nothing is requested again sooner, however short the round trip was.
    pub(super) patience_min: Duration,
    pub(super) round_trip: RoundTrip,
    /// The next request is not sent before this, so that it can name more samples.
    paced_until: Time,
    /// When such a delayed request is sent, if nothing arrives before.
    pub(super) deferred_to: Option<Time>,
}

/// What a request may name.
pub(super) struct RequestScope<'a> {
    /// Number of missing samples for which the cache has room. Repairs beyond that would be
    /// refused.
    pub(super) room: usize,
    /// Number of samples behind the next one that fit the sets of one answer.
    pub(super) reach: usize,
    /// Samples, in order, of which some fragments have arrived. The others are requested one by
    /// one.
    pub(super) partial: &'a [SequenceNumber],
}

impl Idle for RepairRequests {
    const IDLE: Self = Self {
        frontier: SequenceNumber::FIRST,
        recheck_at: Time::ZERO,
        answered: Time::ZERO,
        is_prompted: false,
        is_forced: false,
        retry_at: None,
        retry_delay: config::NACK_RETRY_FIRST,
        asked_at: None,
        unanswered_since: None,
        is_repeating: false,
        repeat_at: None,
        armed_at: Time::ZERO,
        repeats: 0,
        is_repeat_due: false,
        patience_min: Duration::ZERO,
        round_trip: RoundTrip::new(),
        paced_until: Time::ZERO,
        deferred_to: None,
    };

    fn idle() -> &'static Self {
        static IDLE: RepairRequests = RepairRequests::IDLE;
        &IDLE
    }
}

impl RepairRequests {
    /// Measures the repair time of a sample that was missing. A sample that was requested more than
    /// once measures nothing, since it may answer either request.
    pub(super) fn note_repair(&mut self, now: Time, asked_at: Time, tries: u8) {
        if tries == 0 {
            // An original that was not requested.
            return;
        }
        let elapsed_ns = now.nanos_since(asked_at);
        let since = self.unanswered_since.take();
        if tries == 1 {
            self.round_trip.measure(elapsed_ns);
        } else if let Some(since) = since.filter(|_| self.is_repeating) {
            self.round_trip.correct(now.nanos_since(since));
        }
        // What arrives sooner is a late original or answers an earlier request.
        if elapsed_ns >= self.round_trip.mean_ns / 4 * 3 {
            self.answered = self.answered.max(asked_at);
        }
        self.retry_delay = self.round_trip.retry_delay();
    }

    /// Whether to delay the request, because the last one was sent just now.
    pub(super) fn is_to_wait(&mut self, now: Time, is_urgent: bool) -> bool {
        if is_urgent || now >= self.paced_until {
            self.deferred_to = None;
            return false;
        }
        self.deferred_to.get_or_insert(now + config::NACK_RETRY_MIN);
        true
    }

    /// Starts the pacing interval after a request.
    pub(super) fn pace(&mut self, now: Time) {
        self.paced_until = now.plus_nanos(self.round_trip.pace_ns());
    }

    /// Puts the listed samples that are due into `state` and `more`. Returns whether any is, and whether earlier
    /// requests are repeated.
    pub(super) fn ask(
        &mut self,
        now: Time,
        changes: &mut ChangesFromWriter,
        RequestScope { mut room, reach, partial }: RequestScope<'_>,
        state: &mut SequenceNumberSet,
        more: &mut Vec<SequenceNumberSet>,
    ) -> (bool, bool) {
        let is_prompted = self.is_prompted && self.is_repeating;
        let (patience_ns, answered, is_recheck) = self.start_pass(now, room < reach);
        let expected = changes.expected;
        let from = if is_recheck { 0 } else { changes.offset(self.frontier.max(expected)) };
        let is_repeat = core::mem::take(&mut self.is_repeat_due);
        let (mut is_asking, mut is_repeating, mut oldest) = (false, false, Time::MAX);
        let from = if is_repeat { 0 } else { from };
        let mut to = changes.list.len().min(reach);
        for offset in from..to {
            let sn = SequenceNumber(expected.0 + offset as i64);
            let Change::Missing { asked_at, tries } = &mut changes.list[offset] else { continue };
            if room == 0 {
                to = offset;
                break;
            }
            room -= 1;
            if partial.binary_search(&sn).is_ok() {
                continue;
            }
            let is_due = *asked_at < answered || now.nanos_since(*asked_at) >= patience_ns;
            // Otherwise, one repetition would lead to the next.
            if *tries == 0 || is_due && !is_repeat {
                (*asked_at, *tries) = (now, tries.saturating_add(1));
                is_asking = true;
                if !state.insert(sn) && !more.last_mut().is_some_and(|set| set.insert(sn)) {
                    let mut set = SequenceNumberSet::new(sn);
                    set.insert(sn);
                    more.push(set);
                }
            } else if is_repeat || is_prompted {
                // Those that hold up the others suffice. The writer knows which repairs are in flight.
                is_repeating |= state.insert(sn);
            }
            oldest = oldest.min(*asked_at);
        }
        if is_recheck {
            self.recheck_at = oldest.plus_nanos(self.patience_ns());
        }
        self.frontier = SequenceNumber(expected.0 + to.max(from) as i64);
        if is_asking {
            self.arm_repeat(now);
        } else if is_repeating {
            self.rearm_repeat(now);
        }
        (is_asking, is_repeating)
    }

    /// Sets the timer that repeats a request that is sent now.
    pub(super) fn arm_repeat(&mut self, now: Time) {
        self.repeats = 0;
        // What was requested long ago, and not again since, was answered otherwise, or had no room.
        let is_old = |at| now.since(at) > 2 * self.retry_delay.max(self.patience_min);
        if self.asked_at.is_none_or(is_old) {
            self.unanswered_since = None;
        }
        self.asked_at = Some(now);
        self.unanswered_since.get_or_insert(now);
        self.rearm_repeat(now);
    }

    /// Records that fragments are requested now.
    pub(super) fn note_named(&mut self, now: Time) {
        if self.is_repeat_due { self.rearm_repeat(now) } else { self.arm_repeat(now) }
    }

    fn rearm_repeat(&mut self, now: Time) {
        self.armed_at = now;
        let is_due = self.is_repeating && self.repeats < REPEATS_MAX;
        let delay = self.round_trip.repeat_delay(self.repeats).filter(|_| is_due);
        self.repeat_at = delay.map(|delay| now + delay.max(self.patience_min));
    }

    /// What makes a sample due that was requested before: the time since then; a request that was
    /// answered; and whether such samples are to be considered at all.
    fn start_pass(&mut self, now: Time, is_short_of_room: bool) -> (u64, Time, bool) {
        let is_prompted = core::mem::take(&mut self.is_prompted);
        let is_forced = core::mem::take(&mut self.is_forced);
        let patience_ns = match (is_forced, is_prompted) {
            (true, _) => 0,
            (_, true) => self.prompted_ns(),
            _ => self.patience_ns(),
        };
        let answered = core::mem::replace(&mut self.answered, Time::ZERO);
        let is_recheck =
            is_forced || is_prompted || answered > Time::ZERO || now >= self.recheck_at || is_short_of_room;
        (patience_ns, answered, is_recheck)
    }

    /// The time after which a repair is missing that the writer says it has sent.
    pub(super) fn prompted_ns(&self) -> u64 {
        let ns = if self.is_repeating { self.round_trip.soonest_ns() } else { self.round_trip.mean_ns };
        ns.max(self.patience_min.as_nanos() as u64)
    }

    /// The time after which a repair counts as lost. A silent writer is only asked again when the timer
    /// expires, not whenever the reader answers others.
    pub(super) fn patience_ns(&self) -> u64 {
        let patience_ns = self.round_trip.patience_ns().max(self.patience_min.as_nanos() as u64);
        let is_silent = self.retry_delay > config::NACK_RETRY_MAX;
        if is_silent { patience_ns.max(self.retry_delay.as_nanos() as u64) } else { patience_ns }
    }

    /// Returns whether something was missing lately.
    pub(super) fn is_lossy(&self, now: Time) -> bool {
        self.asked_at.is_some_and(|at| now.since(at) < config::LOSS_MEMORY_PATH)
    }

    /// Sets the timer that repeats requests.
    pub(super) fn arm(&mut self, now: Time, is_waiting: bool, is_asking: bool) {
        if !is_waiting {
            (self.retry_at, self.repeat_at) = (None, None);
        } else if is_asking || self.retry_at.is_none() {
            self.retry_at = Some(now + self.retry_delay.max(self.patience_min));
        }
    }

    /// Makes everything missing due if the timer has expired. Returns whether a request is due.
    ///
    /// `heard_at`: when the last HEARTBEAT arrived. The writer is sending as long as they arrive. Nothing is repeated
    /// meanwhile before it is overdue, but soon after the last of them.
    pub(super) fn handle_timeout(&mut self, now: Time, heard_at: Option<Time>) -> bool {
        if self.retry_at.is_some_and(|at| at <= now) {
            (self.retry_at, self.repeat_at) = (None, None);
            self.retry_delay = (self.retry_delay * 2).min(config::NACK_RETRY_SILENT_MAX);
            self.round_trip.raise_guess(self.retry_delay.min(config::NACK_RETRY_MAX));
            self.is_forced = true;
            return true;
        }
        if self.repeat_at.is_some_and(|at| at <= now) {
            self.repeat_at = None;
            if heard_at <= Some(self.armed_at) {
                self.is_repeat_due = true;
                self.repeats += 1;
                return true;
            }
            self.rearm_repeat(now);
        }
        self.deferred_to.is_some_and(|at| at <= now)
    }

    /// Records that the writer is there: unanswered requests are repeated sooner again.
    pub(super) fn note_heartbeat(&mut self) {
        self.retry_delay = self.retry_delay.min(config::NACK_RETRY_MAX);
    }

    /// When a request is due at the latest.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.retry_at.into_iter().chain(self.repeat_at).chain(self.deferred_to).min()
    }
}

/// A request is repeated so often before it can be answered.
const REPEATS_MAX: u8 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    fn measured() -> RepairRequests {
        let mut requests = RepairRequests::IDLE;
        requests.is_repeating = true;
        requests.arm_repeat(ms(0));
        requests.note_repair(ms(4), ms(0), 1);
        requests
    }

    #[test]
    fn an_original_that_overtakes_is_no_repair() {
        let mut requests = measured();
        // Answered by a GAP.
        requests.arm_repeat(ms(10));
        requests.note_repair(ms(60_000), Time::ZERO, 0);
        assert_eq!(requests.round_trip.mean_ns, 4_000_000);
        assert_eq!(requests.unanswered_since, Some(ms(10)), "it was not the answer");
    }

    #[test]
    fn a_request_is_repeated_once_no_more_heartbeats_arrive() {
        let mut requests = measured();
        requests.arm_repeat(ms(10));
        let at = requests.repeat_at.expect("a repetition is due");
        assert!(!requests.handle_timeout(at, Some(ms(10).plus_nanos(1))), "the writer has answered");
        let next = requests.repeat_at.expect("what it answered may be lost");
        assert!(next > at && next < ms(14), "{next:?}");
        assert!(requests.handle_timeout(next, Some(ms(10).plus_nanos(1))) && requests.is_repeat_due);
    }

    #[test]
    fn a_pause_is_no_round_trip() {
        let mut requests = measured();
        requests.arm_repeat(ms(10));
        // It had no room then, and is requested again when there is some.
        requests.arm_repeat(ms(60_000));
        requests.note_repair(ms(60_004), ms(60_000), 2);
        assert_eq!(requests.round_trip.mean_ns, 4_000_000);
    }

    #[test]
    fn a_round_trip_that_is_much_too_short_is_corrected() {
        let mut requests = measured();
        for round in 1..8 {
            let since = round * 10_000;
            requests.arm_repeat(ms(since));
            // Requested again before it can have been answered.
            requests.arm_repeat(ms(since + 5));
            requests.note_repair(ms(since + 400), ms(since + 5), 2);
        }
        assert!(requests.round_trip.mean_ns > 10_000_000, "{:?}", requests.round_trip);
    }
}
