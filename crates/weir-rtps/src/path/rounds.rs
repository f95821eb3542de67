//! What is measured on a path, round by round. A round is about a round trip.

mod pause;

use alloc::collections::VecDeque;
use core::time::Duration;

use self::pause::Pause;
use super::ecn::{Ecn, QueueShown};
use super::rate::{Rate, queue_max_ns};
use super::{Allowance, Mark, Sent};
use crate::config;
use crate::time::Time;

/// The measurements of a path and its rate.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// What was sent, and what of it has passed: it arrived or was lost.
    pub(super) sent: Sent,
    pub(super) passed: Sent,
    /// `sent.all` when a flight of what is sent again began, and when that was.
    again: (u64, Time),
    /// Bytes lost.
    pub(super) lost: u64,
    /// `passed.new` when the path became open, and what was given up since.
    open_since: u64,
    /// How often in a row what was in flight was given up, and nothing has passed since.
    silences: u32,
    /// When something last passed, or was sent after a pause.
    passed_at: Time,
    /// The first of the last marks that all show a long queue, while the path is open: when it was set and when it
    /// passed, and the bytes passed by then.
    long_since: Option<[u64; 3]>,
    losses: Losses,
    /// The first of the marks whose samples left together, while little is known.
    flight: Option<Flight>,
    /// Until when a writer had to wait.
    pub(super) limited_at: Option<Time>,
    /// Until when a writer waits for something to pass, because so much is in flight.
    waits_until: Option<Time>,
    round: Round,
    /// When an answer last said to which HEARTBEAT it is.
    echoed_at: Option<Time>,
    /// After how long such answers came lately, in nanoseconds.
    pub(super) echo_ns: Option<u64>,
    /// After this time answers come, in nanoseconds.
    pub(super) answer_ns: Option<u64>,
    /// The shortest round trip of the last round, in nanoseconds.
    last_ns: Option<u64>,
    /// The shortest round trips of the last rounds, those that no later one is shorter than: when each was measured, in
    /// which round, and its nanoseconds.
    round_trips: VecDeque<(Time, u64, u64)>,
    rounds: u64,
    /// The last round had none that is sure, from readers that do not show progress.
    was_ambiguous: bool,
    /// How much longer round trips are than the shortest of their round, on average.
    jitter_ns: u64,
    rate: Option<Rate>,
    /// Bytes per second that passed in the last round.
    last_rate: f64,
    /// The last pause that was not taken for a lower rate.
    excused: Pause,
    /// Rounds for which trains are short.
    short_trains: u32,
    /// Explicit congestion notification.
    pub(super) ecn: Ecn,
}

/// The losses on an open path, whatever the rounds: a writer that sends little has none.
#[derive(Debug, Default)]
struct Losses {
    began_at: Time,
    passed: Sent,
    lost: u64,
    /// The most bytes per second sent of which little was lost.
    clean_rate: f64,
    /// Bytes per second that arrived, and the share that was lost.
    arrived: f64,
    loss: Option<f64>,
    /// How often in a row much was lost.
    times: u32,
}

/// Samples that left together.
#[derive(Debug, Clone, Copy)]
struct Flight {
    /// When its first mark was set, and when it passed.
    marked_at: Time,
    passed_at: Time,
    /// Bytes sent, and lost, until then.
    sent: u64,
    lost: u64,
    /// After how many nanoseconds and bytes the next marks passed. More are not kept.
    marks: [(u64, u64); FLIGHT_MARKS_MAX],
    count: usize,
}

impl Flight {
    fn new(now: Time, mark: &Mark, lost: u64) -> Self {
        let marks = [(0, 0); FLIGHT_MARKS_MAX];
        Self { marked_at: mark.at, passed_at: now, sent: mark.sent.all, lost, marks, count: 0 }
    }

    fn add(&mut self, now: Time, mark: &Mark) {
        let last = self.count.min(FLIGHT_MARKS_MAX - 1);
        self.marks[last] = (now.nanos_since(self.passed_at), mark.sent.all.saturating_sub(self.sent));
        self.count = last + 1;
    }

    /// Returns whether its marks arrived as they would without jitter: as a line, but for a share of the time that all
    /// took. Single marks may be late, because hosts do several things at once.
    fn is_even(&self) -> bool {
        let marks = &self.marks[..self.count];
        let Some((ns, bytes)) = marks.last().map(|(ns, bytes)| (*ns as f64, *bytes as f64)) else {
            return false;
        };
        let off_ns =
            |(at_ns, at_bytes): &(u64, u64)| (*at_ns as f64 - *at_bytes as f64 * ns / bytes.max(1.0)).abs();
        marks.len() >= 3 && marks.iter().all(|mark| off_ns(mark) <= ns * OFF_SHARE_MAX)
    }
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
    /// The first of the last marks that all show a long queue, and when it passed.
    long_since: Option<(Time, Mark)>,
    /// The bytes that passed since then, and how long that took, in nanoseconds.
    queued: (u64, u64),
    pause: Pause,
}

impl Round {
    /// Returns the bytes per second that passed while there was a queue, if that took long enough.
    fn queued_rate(&self) -> Option<f64> {
        let (bytes, ns) = self.queued;
        (ns >= QUEUED_MIN_NS && bytes >= BOTTLENECK_MIN_BYTES).then(|| bytes as f64 * 1e9 / ns as f64)
    }
}

/// What a round has shown.
#[derive(Debug)]
pub(super) struct Seen {
    /// Bytes per second that arrived.
    pub(super) arrived: f64,
    /// Share of what was reported lost.
    pub(super) loss: f64,
    pub(super) queue_ns: u64,
    pub(super) jitter_ns: u64,
    pub(super) base_ns: u64,
    /// The mean round trip, and how long the round was.
    pub(super) mean_ns: u64,
    pub(super) length_ns: u64,
    /// Bytes per second that passed while the queue was long, if it was short at first.
    pub(super) queued: Option<f64>,
    /// The path held writers back during all of it.
    pub(super) is_limited: bool,
    /// The queue may be the time that a lost HEARTBEAT, or its answer, has cost.
    pub(super) is_doubtful: bool,
    /// The round trips are surely not the answers to other HEARTBEATs.
    pub(super) is_sure: bool,
    /// Datagrams arrived marked as having met congestion.
    pub(super) is_marked: bool,
    /// The reader does not always show how far it has got.
    pub(super) is_of_silent: bool,
}

impl Seen {
    /// The shortest round trip of the round, in nanoseconds.
    pub(super) fn shortest_ns(&self) -> u64 {
        self.base_ns + self.queue_ns
    }

    /// Returns whether most of what was sent in a round is answered in it: what the rate has done shows at once.
    /// Readers of other engines report losses late, and many together.
    pub(super) fn is_prompt(&self) -> bool {
        !self.is_of_silent && self.length_ns >= PROMPT_ROUND_TRIPS * self.base_ns
    }
}

impl Rounds {
    /// Reserves memory for all that is measured.
    pub(super) fn reserve(&mut self) {
        self.round_trips.reserve_exact(ROUND_TRIPS_MAX + 1);
        self.ecn.reserve();
    }

    /// Returns the memory that this reserves, in bytes.
    pub(super) fn reserved_bytes() -> usize {
        (ROUND_TRIPS_MAX + 1) * size_of::<(Time, u64, u64)>() + Ecn::reserved_bytes()
    }

    /// Returns measurements of nothing, with the same memory.
    pub(super) fn into_unknown(self) -> Self {
        let mut round_trips = self.round_trips;
        round_trips.clear();
        Self { round_trips, ecn: self.ecn.into_unknown(), ..Self::default() }
    }

    /// Returns the bytes in flight.
    pub(super) fn in_flight(&self) -> u64 {
        self.sent.new.saturating_sub(self.passed.new)
    }

    /// Returns the bytes that may be sent until something has passed, while the path is open and so little has passed
    /// that nothing is known about it. `unreported`: bytes in flight that do not count.
    pub(super) fn first_flights(&self, unreported: u64) -> Option<u64> {
        let mut passed = self.passed.new - self.open_since;
        if self.answer_ns.is_none() {
            // It was given up: nothing has shown that anything passes.
            passed = passed.min(config::PATH_UNANSWERED_FLIGHT_BYTES);
        }
        if self.rate.is_some() || passed >= config::PATH_KNOWN_BYTES {
            return None;
        }
        let in_flight = self.in_flight().saturating_sub(unreported);
        Some((config::PATH_FIRST_FLIGHT_BYTES + passed).saturating_sub(in_flight))
    }

    /// Returns what may be sent of what was sent elsewhere, while little is known about an open path: as much as of new
    /// samples. A reader that has moved requests megabytes at once.
    pub(super) fn first_again(&mut self, now: Time) -> Option<Allowance> {
        let most = self.first_flights(0).map(|more| more + self.in_flight())?;
        let (began, began_at) = self.again;
        let in_flight = self.sent.all - self.passed.all.max(began);
        if in_flight > 0 && in_flight < most {
            return Some(Allowance::Flight(most - in_flight));
        }
        let answer = self.round_trip().map_or(config::PATH_ANSWER_UNKNOWN, |ns| Duration::from_nanos(4 * ns));
        // New samples may be in flight, which are answered too.
        let last_at = if self.in_flight() > 0 { began_at.max(self.passed_at) } else { began_at };
        let until = last_at + answer;
        if in_flight > 0 && now < until {
            return Some(Allowance::Blocked { until });
        }
        self.again = (self.sent.all, now);
        Some(Allowance::Flight(most))
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
        let base_ns = rate.tested_ns().or(self.round_trip_min()).unwrap_or(0);
        let ns = base_ns + base_ns / 2 + queue_max_ns(base_ns) + PATIENCE_NS;
        let most = (rate.bottleneck * ns as f64 / 1e9) as u64 + config::PATH_FLIGHT_MIN_BYTES;
        most.min(rate.flight().unwrap_or(u64::MAX))
    }

    /// Returns until when no more may be sent, because so much is in flight, unless something passes before. What has
    /// not passed by then does not count any more: the writer or the reader that it belongs to may be gone.
    /// `unreported`: bytes in flight that do not count.
    pub(super) fn blocked_until(&mut self, now: Time, unreported: u64) -> Option<Time> {
        let in_flight = self.in_flight().saturating_sub(unreported);
        // A reader that shows nothing is sent less each time, as after a timeout of TCP.
        let most = self.in_flight_max() >> self.silences.min(SILENCES_MAX);
        let is_below = in_flight < most.max(config::PATH_FLIGHT_MIN_BYTES);
        if self.first_flights(unreported).map_or(is_below, |room| room > 0) {
            return None;
        }
        // Readers that show little may never show a round trip.
        let unknown = if unreported > 0 { Duration::ZERO } else { config::PATH_ANSWER_UNKNOWN };
        let answer = self.round_trip().map_or(unknown, |ns| Duration::from_nanos(4 * ns));
        let until = self.passed_at + answer + config::PATH_SILENCE;
        if now < until {
            return Some(until);
        }
        if self.round_trip().is_some() {
            // It has not passed, so that it does not let more be in flight on an open path.
            self.open_since += self.in_flight();
        }
        self.silences += 1;
        (self.passed, self.passed_at) = (self.sent, now);
        None
    }

    /// Returns the bytes per second to be sent; `None`: the path is open.
    pub(super) fn pacing_rate(&self) -> Option<f64> {
        self.rate.as_ref().map(Rate::pacing_rate)
    }

    /// Sends no more than the bottleneck is known to carry until the end of the round.
    pub(super) fn end_probe(&mut self) {
        if let Some(rate) = &mut self.rate {
            rate.end_probe();
        }
    }

    /// Returns the bytes per second that the bottleneck carries; `None`: the path is open.
    pub(super) fn bottleneck(&self) -> Option<f64> {
        self.rate.as_ref().map(|rate| rate.bottleneck)
    }

    /// Returns the bytes of new samples that have passed since the path became open.
    pub(super) fn passed_bytes(&self) -> u64 {
        self.passed.new - self.open_since
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

    /// Records that a writer waits until something passes, or this time. It need not ask again before.
    pub(super) fn note_blocked(&mut self, until: Time) {
        self.waits_until = Some(until);
    }

    /// Returns whether a writer waits for something to pass.
    pub(super) fn is_waited_for(&self) -> bool {
        self.waits_until.is_some()
    }

    /// Returns whether a writer had to wait lately.
    pub(super) fn is_limited(&self, now: Time) -> bool {
        let lately = PATIENCE_NS.max(self.round_trip_min().unwrap_or(0) / 4);
        self.waits_until.is_some_and(|until| now <= until)
            || self.limited_at.is_some_and(|at| now.nanos_since(at) <= lately)
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
        // On a paced path, what was sent again since the last new sample would seem to pass in this round. If it is
        // lost, this round shows it.
        let again = self.rate.as_ref().map_or(0, |_| self.sent.answered - self.passed.answered);
        self.passed.all = (self.passed.all + again).min(self.sent.all);
        self.passed.answered += again;
        self.passed_at = now;
        // With a pause in it, a flight would seem slow.
        self.flight = None;
        self.round = self.round_from(now, false);
        self.round.passed.answered -= again;
    }

    /// Returns a round that measures what is sent from now on.
    fn round_from(&self, now: Time, was_limited: bool) -> Round {
        Round {
            began_at: now.plus_nanos(self.round_trip_min().unwrap_or(0)),
            marked_at: now,
            passed: self.passed,
            lost: self.lost,
            ends_with: now,
            was_limited,
            ..Round::default()
        }
    }

    /// Returns after how many bytes a mark shows how fast what leaves together arrives, while that is not known, and
    /// round trips are long.
    pub(super) fn mark_every_bytes(&self) -> Option<u64> {
        self.first_flights(0)?;
        let is_long = self.round_trip_min().is_none_or(|ns| ns >= START_ROUND_TRIP_MIN_NS);
        is_long.then(|| (self.in_flight() / MARKS_IN_FLIGHT).max(config::PATH_FIRST_FLIGHT_BYTES / 4))
    }

    /// Forgets the rate if it was not measured for long. The path may be another one by now.
    pub(super) fn forget_if_unmeasured(&mut self, now: Time) {
        if self.rate.as_ref().is_some_and(|rate| now.since(rate.measured_at) >= config::PATH_MEMORY) {
            self.rate = None;
            self.echo_ns = None;
            self.open_since = self.passed.new;
            self.losses = Losses::default();
            self.round_trips.clear();
            self.last_ns = None;
            self.ecn.forget();
        }
    }

    /// Returns the time since something last passed, or was sent after a pause.
    pub(super) fn passed_since(&self, now: Time) -> Duration {
        now.since(self.passed_at)
    }

    /// Records that something has passed that the host of its reader, or this one, may have held until now.
    pub(super) fn note_heard(&mut self, now: Time) {
        self.passed_at = self.passed_at.max(now);
    }

    /// Records that everything before a mark has passed.
    pub(super) fn passed(&mut self, now: Time, mark: &Mark) {
        self.silences = 0;
        if self.echoed_at.is_some_and(|at| now.since(at) > ECHO_MEMORY) {
            self.echo_ns = None;
        }
        if self.waits_until.take().is_some() {
            self.limited_at = self.limited_at.max(Some(now));
        }
        let round_trip_ns = self.round_trip_of(now, mark);
        let is_ambiguous = mark.is_ambiguous(now, self.round_trip_min());
        // Where answers are lost, each would seem to take longer than the one before otherwise: what is asked next, and
        // what is sent again, waits for as long.
        let is_doubtful = mark.has_waited || is_ambiguous;
        let round_trip_ns = if is_doubtful { round_trip_ns.min(PATIENCE_MAX_NS) } else { round_trip_ns };
        if mark.has_waited {
            self.round.ambiguous_ns = self.round.ambiguous_ns.into_iter().chain([round_trip_ns]).min();
        } else if !is_ambiguous {
            self.note_sample(round_trip_ns);
        } else {
            // As long as nothing else is known, answers may take that long (as for TCP: Karn and Partridge, 1987).
            let longer = |ns: u64| round_trip_ns.min(2 * ns).max(ns);
            if self.echoed_at.is_none_or(|at| now.since(at) > ECHO_MEMORY) {
                self.answer_ns = Some(self.answer_ns.map_or(round_trip_ns, longer));
            }
            let ambiguous = self.round_trip_min().map(|least_ns| round_trip_ns.max(least_ns));
            self.round.ambiguous_ns = self.round.ambiguous_ns.into_iter().chain(ambiguous).min();
        }
        if mark.sent.all <= self.passed.all {
            return;
        }
        if self.rate.is_some() {
            self.note_queued(now, mark, round_trip_ns);
            self.note_pause(now, mark);
        }
        (self.passed, self.passed_at) = (mark.sent.max(self.passed), now);
        if self.rate.is_none() {
            let arrived = self.shows_losses(now);
            // A best-effort writer is held back by nothing else, so that its own threads and the kernel's wait for a
            // processor. On the shortest paths, that is longer than any queue.
            let is_near = self
                .round_trip_min()
                .is_some_and(|ns| ns < config::QUESTION_ROUND_TRIP_MIN.as_nanos() as u64);
            let shows_queue = !(mark.is_of_question && is_near) && self.shows_queue(now, mark, round_trip_ns);
            if shows_queue || arrived.is_some() {
                self.limit(now, mark, round_trip_ns, arrived);
                return;
            }
            // The buffers of other engines' readers are not known, and limit what is in flight. What is paced does not
            // collect there.
            let is_long = self.round_trip_min().is_some_and(|ns| ns >= START_ROUND_TRIP_MIN_NS);
            let is_much = mark.in_flight >= BOTTLENECK_MIN_BYTES;
            if mark.is_of_silent && mark.is_window_limit && is_long && is_much && !mark.has_waited {
                self.limit(now, mark, round_trip_ns, None);
                self.round.was_limited = true;
                return;
            }
        }
        let is_starting = self.rate.as_ref().map(|rate| rate.flight().is_some());
        if is_starting.unwrap_or_else(|| self.mark_every_bytes().is_some())
            && !is_ambiguous
            && !mark.is_of_silent
            && self.start(now, mark)
        {
            return;
        }
        // Jitter shifts the ends of a round.
        let least_ns = ROUND_MIN_NS.max(self.jitter_ns * ROUND_JITTERS);
        let is_sure = !mark.is_of_silent || self.round.count >= ROUND_COUNT && !mark.has_waited;
        let least_ns = if is_sure { least_ns } else { 4 * least_ns.max(self.round_trip_min().unwrap_or(0)) };
        let is_long = now.nanos_since(self.round.began_at) >= least_ns && !self.has_just_paused(now);
        if mark.at >= self.round.ends_with && is_long && now > self.round.began_at {
            self.end_round(now, mark);
        }
    }

    /// Records a round trip in nanoseconds.
    pub(super) fn note_sample(&mut self, round_trip_ns: u64) {
        self.answer_ns = Some(round_trip_ns);
        self.round.sum_ns += round_trip_ns;
        self.round.count += 1;
        let shortest = self.round.shortest_ns.map_or(round_trip_ns, |ns| ns.min(round_trip_ns));
        self.round.shortest_ns = Some(shortest);
    }

    /// Records how long a HEARTBEAT and its answer took.
    pub(super) fn note_echo(&mut self, now: Time, elapsed_ns: u64) {
        let elapsed_ns = elapsed_ns.max(config::PATH_ROUND_TRIP_MIN.as_nanos() as u64);
        // An echo proves nothing, and may be forged. That a path has become shorter, marks show.
        let Some(least_ns) = self.round_trip_min() else { return };
        let elapsed_ns = elapsed_ns.max(least_ns);
        self.echoed_at = Some(now);
        // The next ones may take as long.
        self.echo_ns = Some(elapsed_ns.max(self.echo_ns.map_or(0, |before_ns| before_ns / 2)));
        // The rounds of a paced path are measured by its marks.
        if self.rate.is_none() {
            self.note_sample(elapsed_ns);
        }
    }

    /// Returns how long what a mark marks took, in nanoseconds.
    fn round_trip_of(&self, now: Time, mark: &Mark) -> u64 {
        let round_trip_ns = now.nanos_since(mark.at).max(config::PATH_ROUND_TRIP_MIN.as_nanos() as u64);
        let Some(base_ns) = self.round_trip_min() else { return round_trip_ns };
        // If it may have been the shortest, it shows no queue.
        let least_ns = mark.before.map_or(round_trip_ns, |before| now.nanos_since(before));
        base_ns.clamp(least_ns.min(round_trip_ns), round_trip_ns)
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

    /// Records what passes while the queue is long on a paced path. This is the rate of the bottleneck.
    fn note_queued(&mut self, now: Time, mark: &Mark, round_trip_ns: u64) {
        let base_ns = self.round_trip_min().unwrap_or(round_trip_ns);
        if round_trip_ns <= base_ns + queue_max_ns(base_ns) {
            self.round.long_since = None;
        } else if !mark.is_repeated(now, Some(base_ns)) && !mark.has_waited {
            let (since, first) = self.round.long_since.get_or_insert((now, *mark));
            let passed_ns = now.nanos_since(*since);
            // What passes as fast as it was sent might pass faster.
            if passed_ns >= mark.at.nanos_since(first.at) * 5 / 4 {
                self.round.queued = (mark.sent.all.saturating_sub(first.sent.all), passed_ns);
            }
        }
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
        let arrived = sent * (1.0 - loss);
        // As long as more arrives whenever more is sent, and no more of it is lost, no bottleneck loses it.
        let is_growing = arrived > before.arrived * CLEAN_EXCESS;
        let is_usual =
            before.loss.is_none_or(|usual| loss <= usual * USUAL_LOSS_EXCESS + config::PATH_LOSS_SHARE / 2.0);
        let is_excused = is_growing && is_usual && loss <= USUAL_LOSS_MAX;
        // So little would show a queue before it overflows: a single packet takes longer than a short queue.
        let is_little = sent < LOSSY_RATE_MIN;
        let times = if is_lossy && !is_excused && !is_little { before.times + 1 } else { 0 };
        let clean_rate = if is_lossy { before.clean_rate } else { before.clean_rate.max(sent) };
        self.losses = Losses {
            began_at: now,
            passed: self.passed,
            lost: self.lost,
            clean_rate,
            arrived,
            loss: Some(loss),
            times,
        };
        // Who sends no more than what has got through before has met other losses, unless they last.
        let is_saturated =
            self.limited_at.is_some_and(|at| at >= began_at) || sent > clean_rate * CLEAN_EXCESS;
        let is_sign = times > 0 && is_saturated || times >= LOSSY_TIMES;
        is_sign.then_some(arrived)
    }

    /// Finds the rate of a path on which slow start would take many round trips. Returns whether it begins with that.
    ///
    /// What leaves together arrives at the rate of the bottleneck, which is known after a round trip (as in packet
    /// pairs: Keshav, 1991). It is measured again with more, sent at that rate. Jitter makes that impossible.
    fn start(&mut self, now: Time, mark: &Mark) -> bool {
        let Some(base_ns) = self.round_trip_min() else { return false };
        let first = self.first_flights(0).map(|more| more + self.in_flight());
        let wanted = self.rate.as_ref().map_or(SPREAD_MIN_BYTES, |rate| rate.flight_wanted(base_ns));
        let is_same =
            |flight: &Flight| first.is_none() || mark.at.nanos_since(flight.marked_at) <= base_ns / 8;
        let Some(flight) = self.flight.as_mut().filter(|flight| is_same(flight)) else {
            self.flight = Some(Flight::new(now, mark, self.lost));
            return false;
        };
        flight.add(now, mark);
        let flight = *flight;
        let bytes = mark.sent.all.saturating_sub(flight.sent);
        let (sent_ns, passed_ns) = (mark.at.nanos_since(flight.marked_at), now.nanos_since(flight.passed_at));
        let elapsed_ns = sent_ns.max(passed_ns);
        if bytes < wanted || elapsed_ns < SPREAD_MIN_NS {
            return false;
        }
        let carried = bytes.saturating_sub(self.lost - flight.lost) as f64 * 1e9 / elapsed_ns as f64;
        // What arrives as fast as it was sent might arrive faster.
        let is_most = passed_ns >= sent_ns + (sent_ns / 4).max(SPREAD_MIN_NS);
        let Some(first) = first else {
            self.flight = None;
            if let Some(rate) = &mut self.rate {
                rate.start_on(carried, is_most, base_ns, passed_ns);
            }
            return false;
        };
        if !flight.is_even() || carried * base_ns as f64 / 1e9 < first as f64 * STEPS_MIN {
            return false;
        }
        self.flight = None;
        self.rate = Some(Rate::starting(now, carried, is_most, first, passed_ns));
        self.round = self.round_from(now, self.is_limited(now));
        true
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
        // The kernel of a reader stamps what arrives, so that an answer may be of an earlier time than the one before.
        let while_queued = per_second(queued, now.0.saturating_sub(since).max(round_trip_ns));
        let most = [in_round, while_queued, arrived.unwrap_or(0.0)].into_iter().fold(in_flight, f64::max);
        let rate = Rate::new(now, most);
        self.rate = Some(if self.long_since.is_some() {
            rate
        } else {
            // Without any queue, it is no queue that overflows: as much is always lost.
            let base_ns = self.round_trip_min().unwrap_or(0);
            let usual_loss =
                if round_trip_ns <= base_ns + base_ns / 32 { lost.min(USUAL_LOSS_MAX) } else { 0.0 };
            rate.after_losses(round_trip_ns, usual_loss)
        });
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
        let length_ns = now.nanos_since(self.round.began_at);
        self.last_rate = self.passed_per_second((passed, length_ns), mark.at);
        let round = core::mem::replace(&mut self.round, next);
        if let Some(shortest_ns) = round.shortest_ns {
            self.note_round_trip(now, shortest_ns);
        }
        let Some(shortest_ns) = round.shortest_ns.or(round.ambiguous_ns) else { return };
        // A loss shows in one such round, a queue in more.
        let is_ambiguous = round.shortest_ns.is_none() && mark.is_of_silent;
        let was_ambiguous = core::mem::replace(&mut self.was_ambiguous, is_ambiguous);
        let base_ns = self.round_trip_min().unwrap_or(shortest_ns);
        let mean_ns = round.sum_ns.checked_div(round.count).unwrap_or(shortest_ns);
        let beyond_ns = mean_ns.saturating_sub(shortest_ns);
        self.jitter_ns = (self.jitter_ns * 7 + beyond_ns.min(base_ns)) / 8;
        let bottleneck = self.rate.as_ref().map_or(0.0, |rate| rate.bottleneck);
        let queue_ns = shortest_ns.saturating_sub(base_ns);
        let has_queue = queue_ns > ECN_QUEUE_MIN_NS.max(base_ns / 32) + 2 * self.jitter_ns;
        let margin_ns = ECN_QUEUE_MIN_NS.max(base_ns / 32) + self.jitter_ns / 4;
        let shown = QueueShown { is_sure: has_queue, mean_ns, margin_ns };
        let is_marked = self.ecn.end_round(now, shown, bottleneck);
        let seen = Seen {
            arrived: self.last_rate * (1.0 - loss),
            loss,
            queue_ns,
            jitter_ns: self.jitter_ns,
            base_ns,
            mean_ns,
            length_ns,
            queued: round.queued_rate().filter(|_| queue_ns < ECN_QUEUE_MIN_NS + queue_max_ns(base_ns) / 8),
            is_limited: round.was_limited && mark.is_limited,
            is_doubtful: is_ambiguous && !was_ambiguous,
            is_sure: round.shortest_ns.is_some(),
            is_marked,
            is_of_silent: mark.is_of_silent,
        };
        let is_lossy = seen.is_prompt() && SHORT_TRAIN_LOSS.contains(&seen.loss);
        self.short_trains = if is_lossy { SHORT_TRAIN_ROUNDS } else { self.short_trains.saturating_sub(1) };
        let longer_ns = self.rate.as_mut().and_then(|rate| rate.adapt(now, &seen));
        if let Some(longer_ns) = longer_ns {
            self.round_trips.clear();
            self.note_round_trip(now, longer_ns);
        }
    }

    /// Returns whether trains are to be short, because the queue at the bottleneck may not take longer ones.
    pub(super) fn has_short_trains(&self) -> bool {
        self.short_trains > 0
    }

    /// Returns the bytes that passed in this round, and which share of what readers acknowledge was lost.
    fn passed_in_round(&self) -> (f64, f64) {
        let answered = (self.passed.answered - self.round.passed.answered) as f64;
        let lost = (self.lost - self.round.lost) as f64;
        ((self.passed.all - self.round.passed.all) as f64, (lost / answered.max(1.0)).min(LOSS_MAX))
    }
}

/// Round trips that all exceed the shortest by this show a queue that a router may have marked.
const ECN_QUEUE_MIN_NS: u64 = 500_000;
/// What passed within a shorter time, or is less, shows no rate.
const QUEUED_MIN_NS: u64 = 2_000_000;
/// For this time after an answer that was not ambiguous, the others show nothing.
const ECHO_MEMORY: Duration = Duration::from_secs(1);
/// After so many silences, a flight is not halved again.
const SILENCES_MAX: u32 = 16;
/// An answer to one of several HEARTBEATs counts as late by no more than this.
const PATIENCE_MAX_NS: u64 = config::PATIENCE_MAX.as_nanos() as u64;
/// Timers and threads may be as late as this.
const PATIENCE_NS: u64 = 4_000_000;
/// A round of so many round trips shows what was sent in it.
const PROMPT_ROUND_TRIPS: u64 = 8;
/// A queue that is shorter than a train loses such a share of it; what is lost otherwise, short trains do not save.
const SHORT_TRAIN_LOSS: core::ops::Range<f64> = 0.01..0.35;
const SHORT_TRAIN_ROUNDS: u32 = 32;
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
/// More than this is not taken to be lost, because losses may be reported late.
const LOSS_MAX: f64 = 0.75;
/// Less than this shows nothing about a path.
const BOTTLENECK_MIN_BYTES: u64 = 30_000;
/// Losses are a sign of a bottleneck if so much more is sent than was ever sent without, or if they last.
const CLEAN_EXCESS: f64 = 1.25;
const LOSSY_TIMES: u32 = 3;
/// A bottleneck that carries less takes 5 ms for a packet of 1500 bytes, and shows a queue, unless it has none (a
/// policer). In bytes per second.
const LOSSY_RATE_MIN: f64 = 300_000.0;
/// What is always lost varies up to this factor.
const USUAL_LOSS_EXCESS: f64 = 1.5;
/// Slow start sends up to twice what a bottleneck carries, and half of that may be lost at its end.
const USUAL_LOSS_MAX: f64 = 0.5;
/// What left together shows the rate of a path if it is at least as long as this, in bytes, ...
const SPREAD_MIN_BYTES: u64 = 12_000;
/// ... and arrives over this time at least, beside which no delay of a host matters.
const SPREAD_MIN_NS: u64 = 500_000;
/// Slow start is left alone if so many times what may be in flight suffices.
const STEPS_MIN: f64 = 4.0;
/// Without jitter, marks are late or early by no more than this share of the time that all took.
const OFF_SHARE_MAX: f64 = 0.125;
/// Marks of which the times are kept.
const FLIGHT_MARKS_MAX: usize = 16;
/// With shorter round trips, slow start is fast enough.
const START_ROUND_TRIP_MIN_NS: u64 = 4_000_000;
/// Marks in what is in flight, while little is known.
const MARKS_IN_FLIGHT: u64 = 8;
