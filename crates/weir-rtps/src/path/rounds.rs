//! What is measured on a path, round by round, and the rate that follows.
//!
//! A round is about a round trip. The rate follows a cycle: for one round more is sent than the bottleneck is known to
//! carry, which shows whether it carries more; for one round less, which empties the queue again; then as much as it
//! carries, or a little less while there is a queue.

use std::collections::VecDeque;

use super::rival::{Rival, Suspicion};
use super::{Mark, Sent};
use crate::config;
use crate::time::Time;

/// The measurements of a path and its rate.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// What was sent, and what of it has passed: it arrived or was lost.
    pub(super) sent: Sent,
    passed: Sent,
    /// Bytes lost.
    pub(super) lost: u64,
    /// `passed.new` when the path became open.
    open_since: u64,
    /// When something last passed, or was sent after a pause.
    passed_at: Time,
    /// The first of the last marks that all show a long queue, while the path is open: when it was set and when it
    /// passed, and the bytes passed by then.
    long_since: Option<[u64; 3]>,
    losses: Losses,
    /// Until when a writer had to wait.
    pub(super) limited_at: Option<Time>,
    round: Round,
    /// After this time answers come, in nanoseconds.
    pub(super) answer_ns: Option<u64>,
    /// The shortest round trip of the last round, in nanoseconds.
    last_ns: Option<u64>,
    /// The shortest round trips of the last rounds, those that no later one is shorter than: when each was measured, in
    /// which round, and its nanoseconds.
    round_trips: VecDeque<(Time, u64, u64)>,
    rounds: u64,
    /// How much longer round trips are than the shortest of their round, on average.
    jitter_ns: u64,
    rate: Option<Rate>,
}

/// The losses on an open path, whatever the rounds: a writer that sends little has none.
#[derive(Debug, Default)]
struct Losses {
    began_at: Time,
    passed: Sent,
    lost: u64,
    /// The most bytes per second sent of which little was lost.
    clean_rate: f64,
    /// How often in a row much was lost.
    times: u32,
}

/// What was measured since the round began.
#[derive(Debug, Default)]
struct Round {
    /// When it began, by the clock of what has passed, and of what was sent.
    began_at: Time,
    marked_at: Time,
    passed: Sent,
    lost: u64,
    /// It ends with the first mark set after this that has passed.
    ends_with: Time,
    shortest_ns: Option<u64>,
    /// The shortest that may be too short, because it may be the answer to another HEARTBEAT.
    ambiguous_ns: Option<u64>,
    /// The sum and the number of the round trips.
    sum_ns: u64,
    count: u64,
    was_limited: bool,
}

/// What a round has shown.
#[derive(Debug)]
pub(super) struct Seen {
    /// Bytes per second that arrived.
    pub(super) arrived: f64,
    /// Share of what was reported lost.
    pub(super) loss: f64,
    pub(super) queue_ns: u64,
    jitter_ns: u64,
    base_ns: u64,
    /// The mean round trip, and how long the round was.
    pub(super) mean_ns: u64,
    pub(super) length_ns: u64,
    /// The path held writers back during all of it.
    pub(super) is_limited: bool,
}

/// The rate of a paced path.
#[derive(Debug)]
struct Rate {
    /// What the bottleneck carries, in bytes per second.
    bottleneck: f64,
    /// What is sent, as a multiple of that.
    gain: f64,
    phase: Phase,
    /// By how much the next probe exceeds what the bottleneck is known to carry.
    probe: f64,
    /// The mean round trip while neither probing nor draining.
    calm_ns: u64,
    /// The share that was lost meanwhile.
    calm_loss: f64,
    /// Bytes per second that arrived in each of the last rounds in which the path was the limit.
    arrived: VecDeque<f64>,
    measured_at: Time,
    suspicion: Suspicion,
    /// Who fills the queue beside us.
    rival: Option<Rival>,
}

/// What the rate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Looks for more.
    Probe,
    /// What the probe has found shows a round later.
    Observe,
    /// Empties the queue.
    Drain,
    /// Sends what the bottleneck carries, for so many rounds more.
    Cruise(u32),
}

impl Rounds {
    /// Returns the bytes in flight.
    pub(super) fn in_flight(&self) -> u64 {
        self.sent.new.saturating_sub(self.passed.new)
    }

    /// Returns the bytes that may be sent until something has passed, while the path is open and so little has passed
    /// that nothing is known about it. `unreported`: bytes in flight that do not count.
    pub(super) fn first_flights(&self, unreported: u64) -> Option<u64> {
        let passed = self.passed.new - self.open_since;
        if self.rate.is_some() || passed >= config::PATH_KNOWN_BYTES {
            return None;
        }
        let in_flight = self.in_flight().saturating_sub(unreported);
        Some((config::PATH_FIRST_FLIGHT_BYTES + passed).saturating_sub(in_flight))
    }

    /// Returns the most bytes that may be in flight on a paced path.
    pub(super) fn in_flight_max(&self) -> u64 {
        let Some(rate) = &self.rate else {
            return match self.first_flights(0) {
                Some(more) => self.in_flight() + more,
                None => u64::MAX,
            };
        };
        if let Some(rival) = &rate.rival {
            return (rival.window_bytes() * 1.25) as u64 + config::PATH_FLIGHT_MIN_BYTES;
        }
        let base_ns = self.round_trip_min().unwrap_or(0);
        let ns = base_ns + base_ns / 2 + queue_max_ns(base_ns) + PATIENCE_NS;
        (rate.bottleneck * ns as f64 / 1e9) as u64 + config::PATH_FLIGHT_MIN_BYTES
    }

    /// Returns until when no more may be sent, because so much is in flight, unless something passes before. What has
    /// not passed by then does not count any more: the writer or the reader that it belongs to may be gone.
    /// `unreported`: bytes in flight that do not count.
    pub(super) fn blocked_until(&mut self, now: Time, unreported: u64) -> Option<Time> {
        let in_flight = self.in_flight().saturating_sub(unreported);
        if self.first_flights(unreported).map_or(in_flight < self.in_flight_max(), |room| room > 0) {
            return None;
        }
        let until = self.passed_at.plus_nanos(4 * self.round_trip().unwrap_or(0)) + config::PATH_SILENCE;
        if now < until {
            return Some(until);
        }
        (self.passed, self.passed_at) = (self.sent, now);
        None
    }

    /// Returns the bytes per second to be sent; `None`: the path is open.
    pub(super) fn pacing_rate(&self) -> Option<f64> {
        self.rate.as_ref().map(|rate| rate.bottleneck * rate.gain)
    }

    /// Returns the shortest round trip of the last rounds, in nanoseconds: that without a queue.
    pub(super) fn round_trip_min(&self) -> Option<u64> {
        let kept = self.round_trips.front().map(|(.., ns)| *ns);
        kept.into_iter().chain(self.round.shortest_ns).min()
    }

    /// Returns the round trip of the last round, in nanoseconds.
    pub(super) fn round_trip(&self) -> Option<u64> {
        self.last_ns.or(self.round.shortest_ns)
    }

    /// Returns whether a writer had to wait lately.
    pub(super) fn is_limited(&self, now: Time) -> bool {
        let lately = PATIENCE_NS.max(self.round_trip_min().unwrap_or(0) / 4);
        self.limited_at.is_some_and(|at| now.nanos_since(at) <= lately)
    }

    /// Begins a round if nothing is in flight: the time without anything to send shows nothing about the path.
    pub(super) fn begin_if_idle(&mut self, now: Time) {
        if self.passed.new < self.sent.new || self.is_limited(now) {
            return;
        }
        self.forget_if_unmeasured(now);
        if let Some(shortest_ns) = self.round.shortest_ns {
            self.note_round_trip(now, shortest_ns);
        }
        self.passed_at = now;
        let first_ack_at = now.plus_nanos(self.round_trip_min().unwrap_or(0));
        self.round = Round {
            began_at: first_ack_at,
            marked_at: now,
            passed: self.passed,
            lost: self.lost,
            ends_with: now,
            ..Round::default()
        };
    }

    /// Forgets the rate if it was not measured for long. The path may be another one by now.
    pub(super) fn forget_if_unmeasured(&mut self, now: Time) {
        if self.rate.as_ref().is_some_and(|rate| now.since(rate.measured_at) >= config::PATH_MEMORY) {
            self.rate = None;
            self.open_since = self.passed.new;
            self.losses = Losses::default();
            self.round_trips.clear();
            self.last_ns = None;
        }
    }

    /// Records that everything before a mark has passed.
    pub(super) fn passed(&mut self, now: Time, mark: &Mark) {
        let round_trip_ns = now.nanos_since(mark.at).max(config::PATH_ROUND_TRIP_MIN.as_nanos() as u64);
        let is_ambiguous = mark.is_ambiguous(now, self.round_trip_min());
        if mark.has_waited {
            self.round.ambiguous_ns = self.round.ambiguous_ns.into_iter().chain([round_trip_ns]).min();
        } else if !is_ambiguous {
            self.answer_ns = Some(round_trip_ns);
            self.round.sum_ns += round_trip_ns;
            self.round.count += 1;
            let shortest = self.round.shortest_ns.map_or(round_trip_ns, |ns| ns.min(round_trip_ns));
            self.round.shortest_ns = Some(shortest);
        } else {
            // As long as nothing else is known, answers may take that long (as for TCP: Karn and Partridge, 1987).
            let longer = |ns: u64| round_trip_ns.min(2 * ns).max(ns);
            self.answer_ns = Some(self.answer_ns.map_or(round_trip_ns, longer));
            let ambiguous = self.round_trip_min().map(|least_ns| round_trip_ns.max(least_ns));
            self.round.ambiguous_ns = self.round.ambiguous_ns.into_iter().chain(ambiguous).min();
        }
        if mark.sent.all <= self.passed.all {
            return;
        }
        (self.passed, self.passed_at) = (mark.sent.max(self.passed), now);
        if self.rate.is_none() {
            let arrived = self.shows_losses(now);
            if self.shows_queue(now, mark, round_trip_ns) || arrived.is_some() {
                self.limit(now, mark, round_trip_ns, arrived);
                return;
            }
        }
        // Jitter shifts the ends of a round.
        let least_ns = ROUND_MIN_NS.max(self.jitter_ns * ROUND_JITTERS);
        let is_sure = !mark.is_of_silent || self.round.count >= ROUND_COUNT && !mark.has_waited;
        let least_ns = if is_sure { least_ns } else { 4 * least_ns.max(self.round_trip_min().unwrap_or(0)) };
        let is_long = now.nanos_since(self.round.began_at) >= least_ns;
        if mark.at >= self.round.ends_with && is_long && now > self.round.began_at {
            self.end_round(now, mark);
        }
    }

    fn note_round_trip(&mut self, now: Time, shortest_ns: u64) {
        self.last_ns = Some(shortest_ns);
        self.rounds += 1;
        while self.round_trips.back().is_some_and(|(.., ns)| *ns >= shortest_ns) {
            self.round_trips.pop_back();
        }
        self.round_trips.push_back((now, self.rounds, shortest_ns));
        let is_old = |at: Time, round: u64| {
            self.rounds - round >= ROUNDS_KEPT && now.since(at) > config::PATH_ROUND_TRIP_MEMORY
        };
        while self.round_trips.len() > ROUND_TRIPS_MAX
            || self.round_trips.front().is_some_and(|(at, round, _)| is_old(*at, *round))
        {
            self.round_trips.pop_front();
        }
    }

    /// Returns whether an open path has a queue.
    ///
    /// A queue delays what is sent into it for as long as it lasts. If a host is interrupted, the delay ends at once,
    /// and little is sent meanwhile.
    fn shows_queue(&mut self, now: Time, mark: &Mark, round_trip_ns: u64) -> bool {
        let base_ns = self.round_trip_min().unwrap_or(round_trip_ns);
        // What is sent doubles in each round trip at first, so that a queue is to be seen early (RFC 9406, HyStart++).
        let share = if self.first_flights(0).is_some() { base_ns / 8 } else { base_ns / 4 };
        let queue_max_ns = (config::QUEUE_MAX.as_nanos() as u64).max(share);
        if round_trip_ns <= base_ns + queue_max_ns {
            if !mark.is_ambiguous(now, Some(base_ns)) {
                self.long_since = None;
            }
            return false;
        }
        // A late mark may show too short a time, but not one that is too long.
        if !mark.is_repeated(now, Some(base_ns)) {
            self.long_since.get_or_insert([mark.at.0, now.0, self.passed.all]);
        }
        self.long_since.is_some_and(|[since, _, passed]| {
            mark.at.0.saturating_sub(since) >= queue_max_ns && self.passed.all - passed > BOTTLENECK_MIN_BYTES
        })
    }

    /// Returns the bytes per second that arrive, if much does not.
    fn shows_losses(&mut self, now: Time) -> Option<f64> {
        let before = &self.losses;
        let answered = self.passed.answered - before.passed.answered;
        let elapsed_ns = now.nanos_since(before.began_at);
        if answered < BOTTLENECK_MIN_BYTES || elapsed_ns < self.round_trip_min().unwrap_or(1).max(1) {
            return None;
        }
        let loss = ((self.lost - before.lost) as f64 / answered as f64).min(LOSS_MAX);
        let sent = (self.passed.all - before.passed.all) as f64 * 1e9 / elapsed_ns as f64;
        let is_lossy = loss > config::PATH_LOSS_SHARE;
        let began_at = before.began_at;
        let times = if is_lossy { before.times + 1 } else { 0 };
        let clean_rate = if is_lossy { before.clean_rate } else { before.clean_rate.max(sent) };
        self.losses = Losses { began_at: now, passed: self.passed, lost: self.lost, clean_rate, times };
        let arrived = sent * (1.0 - loss);
        // Who sends no more than what has got through before has met other losses, unless they last.
        let is_saturated =
            self.limited_at.is_some_and(|at| at >= began_at) || sent > clean_rate * CLEAN_EXCESS;
        let is_sign = is_lossy && is_saturated || times >= LOSSY_TIMES;
        is_sign.then_some(arrived)
    }

    /// Begins to pace. What was in flight has passed within a round trip, and what of it arrived shows the rate.
    /// `arrived`: bytes per second that arrive while much is lost.
    fn limit(&mut self, now: Time, mark: &Mark, round_trip_ns: u64, arrived: Option<f64>) {
        let per_second = |arrived: f64, ns: u64| arrived * 1e9 / ns.max(1) as f64;
        let lost = ((self.lost - mark.lost) as f64 / mark.in_flight.max(1) as f64).min(LOSS_MAX);
        let in_flight = per_second(mark.in_flight as f64 * (1.0 - lost), round_trip_ns);
        let (passed, loss) = self.passed_in_round();
        let elapsed_ns = now.nanos_since(self.round.began_at).max(round_trip_ns);
        let in_round = per_second(passed * (1.0 - loss), elapsed_ns);
        let [_, since, before] = self.long_since.unwrap_or([0, now.0, self.passed.all]);
        let queued = (self.passed.all - before) as f64 * (1.0 - loss);
        let while_queued = per_second(queued, (now.0 - since).max(round_trip_ns));
        let most = [in_round, while_queued, arrived.unwrap_or(0.0)].into_iter().fold(in_flight, f64::max);
        let mut rate = Rate::new(now, most);
        if self.long_since.is_none() {
            // Little may have arrived because little was sent.
            (rate.phase, rate.probe, rate.gain) = (Phase::Probe, PROBE_AFTER_LOSS, 1.0 + PROBE_AFTER_LOSS);
            rate.calm_ns = round_trip_ns;
            // Without any queue, it is no queue that overflows: as much is always lost.
            let base_ns = self.round_trip_min().unwrap_or(0);
            rate.calm_loss = if round_trip_ns <= base_ns + base_ns / 32 { lost } else { 0.0 };
        }
        self.rate = Some(rate);
        self.end_round(now, mark);
    }

    fn end_round(&mut self, now: Time, mark: &Mark) {
        let next = Round {
            began_at: now,
            marked_at: mark.at,
            passed: self.passed,
            lost: self.lost,
            ends_with: now,
            was_limited: mark.is_limited,
            ..Round::default()
        };
        let (passed, loss) = self.passed_in_round();
        let round = core::mem::replace(&mut self.round, next);
        if let Some(shortest_ns) = round.shortest_ns {
            self.note_round_trip(now, shortest_ns);
        }
        let Some(shortest_ns) = round.shortest_ns.or(round.ambiguous_ns) else { return };
        let base_ns = self.round_trip_min().unwrap_or(shortest_ns);
        let mean_ns = round.sum_ns.checked_div(round.count).unwrap_or(shortest_ns);
        let beyond_ns = mean_ns.saturating_sub(shortest_ns);
        self.jitter_ns = (self.jitter_ns * 7 + beyond_ns.min(base_ns)) / 8;
        let elapsed_ns = now.nanos_since(round.began_at).max(mark.at.nanos_since(round.marked_at)).max(1);
        let seen = Seen {
            arrived: passed * (1.0 - loss) * 1e9 / elapsed_ns as f64,
            loss,
            queue_ns: shortest_ns.saturating_sub(base_ns),
            jitter_ns: self.jitter_ns,
            base_ns,
            mean_ns,
            length_ns: now.nanos_since(round.began_at),
            is_limited: round.was_limited && mark.is_limited,
        };
        if let Some(rate) = &mut self.rate {
            rate.adapt(now, &seen);
        }
    }

    /// Returns the bytes that passed in this round, and which share of what readers acknowledge was lost.
    fn passed_in_round(&self) -> (f64, f64) {
        let answered = (self.passed.answered - self.round.passed.answered) as f64;
        let lost = (self.lost - self.round.lost) as f64;
        ((self.passed.all - self.round.passed.all) as f64, (lost / answered.max(1.0)).min(LOSS_MAX))
    }
}

impl Rate {
    fn new(now: Time, bottleneck: f64) -> Self {
        Self {
            bottleneck: bottleneck.clamp(config::PATH_RATE_MIN, config::PATH_RATE_MAX),
            gain: DRAIN_GAIN,
            phase: Phase::Drain,
            probe: PROBE_FIRST,
            calm_ns: 0,
            calm_loss: 0.0,
            arrived: VecDeque::new(),
            measured_at: now,
            suspicion: Suspicion::default(),
            rival: None,
        }
    }

    /// Adapts the rate to what a round has shown.
    fn adapt(&mut self, now: Time, seen: &Seen) {
        self.measured_at = now;
        if self.rival.is_some() {
            return self.compete(now, seen);
        }
        let before = self.bottleneck;
        let margin_ns = 2 * seen.jitter_ns;
        let is_queue = seen.queue_ns > self.queue_max_ns(seen) + margin_ns;
        self.rival = self.suspicion.note(now, seen, self.is_short(seen), before);
        if self.rival.is_some() {
            return self.compete(now, seen);
        }
        let is_lossy =
            seen.loss > config::PATH_LOSS_SHARE && seen.queue_ns > self.queue_target_ns(seen) + margin_ns;
        if (is_queue || is_lossy) && seen.is_limited {
            // What was measured before is out of date.
            self.arrived.clear();
            // Beside a long queue, no error of measurement matters.
            let is_long = seen.queue_ns > 2 * self.queue_max_ns(seen) + margin_ns;
            let least = before * if is_long { FALL_MAX_LONG } else { FALL_MAX };
            self.bottleneck = seen.arrived.clamp(least, before);
        } else if seen.is_limited {
            if self.arrived.len() >= RATES_KEPT {
                self.arrived.pop_front();
            }
            self.arrived.push_back(seen.arrived);
            if self.arrived.len() >= RATES_KEPT || seen.arrived > before {
                let most = self.arrived.iter().copied().fold(0.0, f64::max);
                self.bottleneck = most.clamp(before * FALL_MAX, before * RISE_MAX);
            }
        } else {
            self.bottleneck = before.max(seen.arrived.min(before * RISE_MAX));
        }
        self.bottleneck = self.bottleneck.clamp(config::PATH_RATE_MIN, config::PATH_RATE_MAX);
        self.next_phase(seen, is_queue || is_lossy);
    }

    /// Adapts the rate beside a rival.
    fn compete(&mut self, now: Time, seen: &Seen) {
        let is_short = self.is_short(seen);
        let Some(rival) = &mut self.rival else { return };
        if let Some(arrived) = rival.note(now, seen, self.calm_loss, is_short) {
            self.rival = None;
            self.arrived.clear();
            (self.bottleneck, self.phase, self.gain) = (arrived, Phase::Drain, DRAIN_GAIN);
            return;
        }
        // A shorter queue in a test is no reason to send more.
        if self.gain >= 1.0 || !rival.is_testing() {
            let rate = rival.window_bytes() * 1e9 / seen.mean_ns as f64;
            self.bottleneck = rate.clamp(config::PATH_RATE_MIN, config::PATH_RATE_MAX);
        }
        self.gain = if rival.is_testing() { TEST_GAIN } else { 1.0 };
    }

    /// Returns whether the queue was short in a round, as it is after each cycle unless someone else fills it.
    fn is_short(&self, seen: &Seen) -> bool {
        seen.queue_ns <= self.queue_max_ns(seen) / 2 + 2 * seen.jitter_ns
    }

    fn next_phase(&mut self, seen: &Seen, is_full: bool) {
        let has_queue = seen.queue_ns > self.queue_target_ns(seen) + seen.jitter_ns;
        // A full bottleneck would have a queue as long as this share of the round after a probe.
        let expected_ns = seen.length_ns as f64 * self.probe;
        let target_ns = self.queue_target_ns(seen).max(2 * seen.jitter_ns) as f64;
        let quiet_ns = (expected_ns * QUIET_SHARE).min(target_ns);
        let is_quiet = seen.mean_ns as f64 <= self.calm_ns as f64 + quiet_ns
            && seen.loss <= 2.0 * self.calm_loss + QUIET_LOSS;
        self.phase = match self.phase {
            _ if is_full => {
                self.probe = PROBE_FIRST;
                Phase::Drain
            }
            Phase::Probe => Phase::Observe,
            Phase::Observe if is_quiet && seen.is_limited => {
                let most = self.arrived.iter().copied().fold(0.0, f64::max);
                let more = self.bottleneck * (1.0 + self.probe * QUIET_RISE);
                self.bottleneck = self.bottleneck.max(more.min(most * (1.0 + PROBE_NEXT)));
                self.arrived.clear();
                self.probe = if self.probe >= PROBE_AFTER_LOSS { PROBE_AFTER_LOSS } else { PROBE_NEXT };
                Phase::Probe
            }
            Phase::Observe => {
                self.probe = PROBE_FIRST;
                Phase::Drain
            }
            Phase::Drain => Phase::Cruise(CRUISE_ROUNDS),
            Phase::Cruise(0) if has_queue => Phase::Drain,
            Phase::Cruise(0) => Phase::Probe,
            Phase::Cruise(rounds) => {
                let before_ns = if self.calm_ns == 0 { seen.mean_ns } else { self.calm_ns };
                self.calm_ns = (before_ns * 3 + seen.mean_ns) / 4;
                self.calm_loss += (seen.loss - self.calm_loss) / 8.0;
                Phase::Cruise(rounds - 1)
            }
        };
        let horizon_ns = (2 * seen.base_ns).max(HORIZON_MIN_NS) as f64;
        let excess_ns = seen.queue_ns.saturating_sub(self.queue_target_ns(seen));
        self.gain = match self.phase {
            Phase::Probe => 1.0 + self.probe,
            Phase::Drain if is_full => (1.0 - seen.queue_ns as f64 / horizon_ns).clamp(GAIN_MIN, DRAIN_GAIN),
            Phase::Drain => DRAIN_GAIN,
            Phase::Observe => 1.0,
            Phase::Cruise(_) => (1.0 - excess_ns as f64 / horizon_ns).max(CRUISE_GAIN_MIN),
        };
    }

    /// Returns how long a queue may be, as time: two trains of packets at least, which take long on a slow path.
    fn queue_max_ns(&self, seen: &Seen) -> u64 {
        queue_max_ns(seen.base_ns).max(2 * self.train_ns())
    }

    /// Returns from which queue on less is sent, as time.
    fn queue_target_ns(&self, seen: &Seen) -> u64 {
        queue_target_ns(seen.base_ns).max(self.train_ns())
    }

    /// Returns how long the bottleneck takes for the shortest train.
    fn train_ns(&self) -> u64 {
        (config::PACING_TRAIN_MIN_BYTES / self.bottleneck * 1e9) as u64
    }
}

/// Returns how long a queue may be, as time.
fn queue_max_ns(base_ns: u64) -> u64 {
    (config::QUEUE_MAX.as_nanos() as u64).max(base_ns / 4)
}

/// Returns from which queue on less is sent, as time.
fn queue_target_ns(base_ns: u64) -> u64 {
    (config::QUEUE_TARGET.as_nanos() as u64).max(base_ns / 16)
}

/// Timers and threads may be as late as this.
const PATIENCE_NS: u64 = 4_000_000;
/// Shorter rounds would measure single trains.
const ROUND_MIN_NS: u64 = 12_000_000;
/// With fewer round trips than this from readers that do not show progress, a round is four times as long: jitter
/// would look like a queue.
const ROUND_COUNT: u64 = 4;
/// A round is at least this many times as long as the jitter.
const ROUND_JITTERS: u64 = 16;
/// Rounds that are remembered in any case: the shortest round trip of them is that of the path.
const ROUNDS_KEPT: u64 = 64;
const ROUND_TRIPS_MAX: usize = 64;
/// The bottleneck carries the highest rate of this many rounds: a cycle and a half.
const RATES_KEPT: usize = 12;
/// More than this is not taken to be lost, because losses may be reported late.
const LOSS_MAX: f64 = 0.75;
/// Less than this shows nothing about a path.
const BOTTLENECK_MIN_BYTES: u64 = 30_000;
/// In one round the bottleneck grows and shrinks at most by these factors.
const RISE_MAX: f64 = 1.5;
const FALL_MAX: f64 = 0.7;
const FALL_MAX_LONG: f64 = 0.1;
/// After a probe that found no queue, the bottleneck is taken to carry this share of the excess.
const QUIET_RISE: f64 = 0.8;
/// A probe has found no queue if there is less than this share of what a full bottleneck would have.
const QUIET_SHARE: f64 = 0.25;
/// ... and no more than this share is lost, beside what is always lost.
const QUIET_LOSS: f64 = 0.03;
/// The queue is corrected within two round trips, or this time.
const HORIZON_MIN_NS: u64 = 40_000_000;
const GAIN_MIN: f64 = 0.4;
/// Losses are a sign of a bottleneck if so much more is sent than was ever sent without, or if they last.
const CLEAN_EXCESS: f64 = 1.25;
const LOSSY_TIMES: u32 = 3;
/// By how much the first probe of a path that is limited because of losses alone exceeds what arrived.
const PROBE_AFTER_LOSS: f64 = 1.0;
/// The first probe asks for a little more, and those after one that found no queue for much more.
const PROBE_FIRST: f64 = 0.1;
const PROBE_NEXT: f64 = 0.25;
/// With half of what passes, for three rounds, a queue that is ours is empty.
const TEST_GAIN: f64 = 0.5;
const DRAIN_GAIN: f64 = 0.75;
const CRUISE_GAIN_MIN: f64 = 0.9;
const CRUISE_ROUNDS: u32 = 4;
