//! The path to a host: its round trip, its rate, and when writers may send.
//!
//! All writers of a participant that send to the same host share one [`Path`]. It measures the round trip and the rate
//! at which data arrives, and limits how fast the writers may send.
//!
//! The model and the cycle are those of BBR (Cardwell et al., 2017). A path has a bottleneck rate and a shortest round
//! trip. Sending faster than the bottleneck only lengthens its queue, and a longer queue shows as a longer round trip.
//! Once per cycle the path sends slightly faster, to find out whether the bottleneck carries more. BBR decides that by
//! the rate at which data arrives. Here the queue decides, as in Copa (Arun and Balakrishnan, 2018), because a rate
//! measured over one round varies more than a probe adds. Random losses do not slow a path down.
//!
//! Two things are measured:
//!
//! - A HEARTBEAT marks what was sent on the path before it. The ACKNACK that shows that the reader has reached the mark
//!   gives a round trip. It also shows that everything sent before the mark has passed: it arrived or was lost. RTPS
//!   does not acknowledge single datagrams. That is not needed here, since datagrams on one path arrive nearly in
//!   order.
//! - A repair request shows that a datagram was lost.
//!
//! A path begins *open*: a first flight of 16 KiB, and for each byte that passes two more, until so much has passed
//! that only the writers' windows limit (slow start, as in TCP). If its queue grows, or much is lost, it has a
//! bottleneck, and is *paced* from then on: a token bucket that all writers draw from, each in its turn
//! (`path/bucket.rs`). A path without a bottleneck stays open and costs a counter per send.

mod bucket;
mod ecn;
mod hosts;
mod longer;
mod proof;
mod rate;
mod rival;
mod rounds;

use alloc::sync::Arc;
use core::time::Duration;

use self::bucket::Bucket;
pub(crate) use self::bucket::Flow;
pub use self::ecn::EcnState;
pub use self::hosts::{Paths, host_of};
use self::proof::Proof;
pub(crate) use self::proof::Verdict;
use self::rounds::Rounds;
use crate::config;
use crate::lock::{Guard, Lock};
use crate::time::Time;

/// The path to one host. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Path(Arc<Lock<PathState>>);

/// What is known about a path.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct PathReport {
    /// The shortest round trip of the last ten seconds.
    pub round_trip_min: Option<Duration>,
    /// The shortest round trip of the last round, which includes time in queues. A round is about a round trip, or
    /// 12 ms if that is longer.
    pub round_trip: Option<Duration>,
    /// Bytes per second that may be sent, with IP and UDP headers; `None` if the path is not paced.
    pub rate: Option<f64>,
    /// Bytes sent, with IP and UDP headers.
    pub sent_bytes: u64,
    /// Bytes of reliable writers that have not passed, as far as known, without what was sent again.
    pub in_flight_bytes: u64,
    /// Bytes reported lost.
    pub lost_bytes: u64,
    /// Bytes sent again, with IP and UDP headers.
    pub repaired_bytes: u64,
    /// Times that a writer had to wait.
    pub waits: u64,
    /// Times that a reader acknowledged what it had not been sent.
    pub lies: u64,
    /// Bytes per second to which the path is held because of that.
    pub held_rate: Option<f64>,
    /// How explicit congestion notification is used.
    pub ecn: EcnState,
    /// Datagrams sent as ECT(0), so that routers could mark them.
    pub ecn_datagrams: u64,
    /// Datagrams that arrived marked as having met congestion.
    pub marked_datagrams: u64,
}

impl PathReport {
    /// Returns an estimate of the time in queues: how much longer the last round trip took than the shortest.
    pub fn queue_time(&self) -> Option<Duration> {
        Some(self.round_trip?.saturating_sub(self.round_trip_min?))
    }
}

/// The state of a [`Path`].
#[derive(Debug, Default)]
pub(crate) struct PathState {
    rounds: Rounds,
    bucket: Bucket,
    proof: Proof,
    waits: u64,
    flows: u32,
    /// The least time in which a participant there has answered discovery.
    answered_in: Option<Duration>,
    /// Bytes per second that may be sent, whatever the path carries.
    rate_max: Option<f64>,
}

/// A position in what was sent on a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    at: Time,
    /// What was sent from here on has not passed.
    pub(crate) before: Option<Time>,
    /// What was sent before it.
    sent: Sent,
    /// Bytes in flight, and lost, until then.
    in_flight: u64,
    lost: u64,
    /// What it marks was sent before, and the reader has discarded it.
    pub(crate) is_again: bool,
    /// What it marks was sent earlier, so that the reader may have acknowledged it already.
    is_late: bool,
    /// The reader does not always show how far it has got.
    pub(crate) is_of_silent: bool,
    /// A question to a best-effort reader set it.
    pub(crate) is_of_question: bool,
    /// The reader did not show that it had got as far before something was sent again.
    pub(crate) has_waited: bool,
    /// When another HEARTBEAT for the same samples was sent.
    pub(crate) repeated_at: Option<Time>,
    /// The writer was held back by the buffers of its readers before it.
    pub(crate) is_window_limit: bool,
    /// The sender was held back by the path, so that what passes shows the path's rate.
    is_limited: bool,
}

/// What readers do not show, if they do not show all that has passed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unreported {
    /// Bytes of large samples, which they acknowledge as a whole.
    pub(crate) large_bytes: u64,
    /// The time from answer to answer.
    pub(crate) answers_apart: Duration,
}

/// Counts of bytes sent, or of bytes that have passed.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    all: u64,
    /// Those whose loss readers report.
    answered: u64,
    /// Those of them that were not sent before, so that a HEARTBEAT marks them.
    new: u64,
}

/// What bytes are sent for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Samples that readers acknowledge. They wait if much is in flight.
    New,
    /// What was lost, and is no longer in flight.
    Repair,
    /// Samples that no reader acknowledges, so that it is not known what of them is in flight.
    BestEffort,
}

/// What may be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allowance {
    /// The path is open.
    Unlimited,
    /// So many bytes. The last datagram may exceed them.
    Bytes(u64),
    /// So many bytes, and then nothing before something has passed.
    Flight(u64),
    /// Nothing before this time.
    At(Time),
    /// Nothing before something has passed, or this time.
    Blocked { until: Time },
}

impl Sent {
    fn add(&mut self, bytes: u64, purpose: Purpose) {
        self.all += bytes;
        self.answered += if purpose == Purpose::BestEffort { 0 } else { bytes };
        self.new += if purpose == Purpose::New { bytes } else { 0 };
    }

    fn max(self, other: Self) -> Self {
        let Self { all, answered, new } = other;
        Self { all: self.all.max(all), answered: self.answered.max(answered), new: self.new.max(new) }
    }
}

impl Mark {
    /// Returns when it was set.
    pub(crate) fn set_at(&self) -> Time {
        self.at
    }

    /// Returns the same position, marked by a HEARTBEAT that was sent later.
    pub(crate) fn late(self, now: Time) -> Self {
        Self { at: now, is_late: true, ..self }
    }

    /// Returns the same position, marked by no HEARTBEAT: an answer shows that it has passed, and not when.
    pub(crate) fn unasked(self) -> Self {
        Self { is_late: true, repeated_at: Some(self.at), ..self }
    }

    /// Returns whether an answer that arrives now may be to another HEARTBEAT than the marked one. `shortest_ns`: the
    /// shortest round trip.
    fn is_ambiguous(&self, now: Time, shortest_ns: Option<u64>) -> bool {
        self.is_late || self.is_repeated(now, shortest_ns)
    }

    /// Returns whether it may be to a later HEARTBEAT.
    fn is_repeated(&self, now: Time, shortest_ns: Option<u64>) -> bool {
        let is_answer_to =
            |at: Time| shortest_ns.is_none_or(|shortest_ns| now.nanos_since(at) >= shortest_ns);
        self.repeated_at.is_some_and(is_answer_to)
    }
}

impl Path {
    /// Creates a path of which nothing is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a path with reserved memory for so many writers.
    pub(crate) fn with_room(writers: usize) -> Self {
        let path = Self::default();
        let mut state = path.lock();
        state.rounds.reserve();
        state.bucket.reserve(writers);
        drop(state);
        path
    }

    /// Returns the memory of a path with room for so many writers, in bytes.
    pub(crate) fn bytes(writers: usize) -> usize {
        2 * size_of::<usize>()
            + size_of::<Lock<PathState>>()
            + Rounds::reserved_bytes()
            + Bucket::bytes(writers)
    }

    /// Forgets what is known, and keeps the memory.
    pub(crate) fn forget(&self) {
        let mut state = self.lock();
        let PathState { rounds, bucket, .. } = core::mem::take(&mut *state);
        (state.rounds, state.bucket) = (rounds.into_unknown(), bucket.into_empty());
    }

    /// Creates a path on which no more than `rate` bytes per second are sent, with IP and UDP headers, whatever it
    /// carries: a static flow controller. A rate below 1000 is taken for 1000.
    pub fn with_rate_max(rate: u64) -> Self {
        let rate_max = Some((rate as f64).max(config::PATH_RATE_MIN));
        Self(Arc::new(Lock::new(PathState { rate_max, ..PathState::default() })))
    }

    /// Records how long a participant there took to answer discovery. Best-effort readers at its end are expected to
    /// take as long.
    pub fn note_answer_time(&self, time: Duration) {
        let mut state = self.lock();
        state.answered_in = Some(state.answered_in.map_or(time, |known| known.min(time)));
    }

    /// Returns what is known.
    pub fn report(&self) -> PathReport {
        let state = self.lock();
        let rounds = &state.rounds;
        PathReport {
            round_trip_min: rounds.round_trip_min().map(Duration::from_nanos),
            round_trip: rounds.round_trip().map(Duration::from_nanos),
            rate: state.rate(),
            sent_bytes: rounds.sent.all,
            in_flight_bytes: rounds.in_flight(),
            lost_bytes: rounds.lost,
            repaired_bytes: rounds.sent.answered - rounds.sent.new,
            waits: state.waits,
            lies: state.proof.lies,
            held_rate: state.proof.held,
            ecn: state.ecn_state(),
            ecn_datagrams: rounds.ecn.sent,
            marked_datagrams: rounds.ecn.marked,
        }
    }

    /// Returns whether there are other references to the path.
    fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Returns whether it is held at a rate because a reader acknowledged what it had not received.
    fn is_held(&self) -> bool {
        self.lock().proof.held.is_some()
    }

    /// Holds it as after a lie.
    #[cfg(test)]
    fn hold(&self) {
        self.lock().proof.held = Some(config::PATH_RATE_UNPROVEN);
    }

    /// Returns whether both are the same path.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Locks the state. A panic of another thread leaves counters that are at worst inaccurate.
    pub(crate) fn lock(&self) -> Guard<'_, PathState> {
        self.0.lock()
    }
}

impl PathState {
    /// Returns a number for a writer that is going to use the path.
    pub(crate) fn add_flow(&mut self) -> u32 {
        self.flows += 1;
        self.flows
    }

    /// Returns whether the path is paced.
    pub(crate) fn is_paced(&self) -> bool {
        self.rate().is_some()
    }

    /// Returns whether a writer waits until it may send.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.bucket.is_waited_for() || self.rounds.is_waited_for()
    }

    /// Returns the bytes per second that may be sent; `None`: the path is open.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.rounds.pacing_rate().into_iter().chain(self.limit()).reduce(f64::min)
    }

    /// Returns the bytes per second that may be sent, whatever the path carries: as configured, or because readers
    /// acknowledge what they have not received.
    fn limit(&self) -> Option<f64> {
        self.rate_max.into_iter().chain(self.proof.held).reduce(f64::min)
    }

    /// Returns what a writer with `wanted` bytes to send may send now.
    pub(crate) fn allow(&mut self, now: Time, flow: Flow, wanted: u64, purpose: Purpose) -> Allowance {
        self.allow_beside(now, flow, wanted, purpose, None)
    }

    /// Returns what may be sent now to a reader that was sent it elsewhere, if little is known about the path.
    pub(crate) fn allow_sent_elsewhere(&mut self, now: Time) -> Option<Allowance> {
        if self.limit().is_some() { None } else { self.rounds.first_again(now) }
    }

    /// Returns what a writer may send now, if readers do not always show how much has passed.
    pub(crate) fn allow_beside(
        &mut self,
        now: Time,
        flow: Flow,
        wanted: u64,
        purpose: Purpose,
        unreported: Option<Unreported>,
    ) -> Allowance {
        self.rounds.begin_if_idle(now);
        if purpose == Purpose::BestEffort {
            self.rounds.forget_if_unmeasured(now);
        }
        if purpose == Purpose::New {
            let unreported = unreported.map_or(0, |it| self.unreported(it));
            if let Some(until) = self.rounds.blocked_until(now, unreported) {
                self.note_limited(now);
                self.rounds.note_blocked(until);
                return Allowance::Blocked { until };
            }
            let room = self.rounds.first_flights(unreported);
            if let Some(room) = room.filter(|room| *room < wanted && self.limit().is_none()) {
                return Allowance::Flight(room);
            }
        }
        let Some(rate) = self.rate() else { return Allowance::Unlimited };
        let is_short = self.rounds.has_short_trains();
        let train = if is_short { config::PACING_TRAIN_SHORT } else { config::PACING_TRAIN };
        self.bucket.be_strict(self.limit().is_some_and(|limit| limit <= rate));
        match self.bucket.take_turn(now, (rate, train), flow, wanted) {
            Ok(bytes) => Allowance::Bytes(bytes),
            Err(at) => {
                self.note_limited(at);
                Allowance::At(at)
            }
        }
    }

    /// Returns the bytes that may be in flight besides, while readers do not show how much of them has passed.
    fn unreported(&self, what: Unreported) -> u64 {
        let time = config::PATH_UNREPORTED.max(what.answers_apart);
        let time = time + self.round_trip_min().unwrap_or_default() / 2;
        let Some(bytes) = self.carries(time) else { return config::PATH_UNREPORTED_BYTES };
        bytes.max(what.large_bytes.min(self.carries(config::PATH_UNREPORTED_LARGE).unwrap_or(0)))
    }

    /// Records that a writer sends less than it wants until a time.
    pub(crate) fn note_limited(&mut self, until: Time) {
        self.waits += 1;
        self.note_saturated(until);
    }

    /// Records that a writer would send more if it could.
    pub(crate) fn note_saturated(&mut self, until: Time) {
        // What a configured rate holds back shows nothing about the path.
        if self.rounds.pacing_rate().is_none_or(|rate| self.limit().is_none_or(|most| rate < most)) {
            self.rounds.limited_at = self.rounds.limited_at.max(Some(until));
        }
    }

    /// Records bytes sent.
    pub(crate) fn spend(&mut self, now: Time, flow: Flow, bytes: u64, purpose: Purpose) {
        self.rounds.begin_if_idle(now);
        self.rounds.sent.add(bytes, purpose);
        self.bucket.spend(flow, bytes);
    }

    /// Records that a reader will say what has passed of so many bytes, which were sent for
    /// [best effort](Purpose::BestEffort).
    pub(crate) fn note_answerable(&mut self, bytes: u64) {
        self.rounds.sent.answered += bytes;
        self.rounds.sent.new += bytes;
    }

    /// Returns the bytes that writers may keep, unsent or in flight; `None` if the path is open.
    pub(crate) fn window(&self, unreported: Option<Unreported>) -> Option<u64> {
        let more = unreported.map_or(0, |it| self.unreported(it));
        self.rounds.pacing_rate().map(|_| 2 * self.rounds.in_flight_max() + more)
    }

    /// Returns the bytes that the path takes in this time, if it is paced.
    pub(crate) fn carries(&self, time: Duration) -> Option<u64> {
        self.rate().map(|rate| (rate * time.as_secs_f64()) as u64)
    }

    /// The same while little is known of the path: by what may be in flight, and the round trip.
    pub(crate) fn carries_about(&self, time: Duration) -> Option<u64> {
        self.carries(time).or_else(|| {
            let in_flight = self.rounds.first_flights(0).map(|_| self.rounds.in_flight_max())?;
            let round_trip = self.round_trip_min().unwrap_or(time).max(Duration::from_micros(1));
            Some((in_flight as f64 * time.as_secs_f64() / round_trip.as_secs_f64()).max(in_flight as f64)
                as u64)
        })
    }

    /// Returns after how many bytes the next mark is to follow, whatever the time; `None`: only the time matters.
    pub(crate) fn mark_every_bytes(&self) -> Option<u64> {
        self.rounds.mark_every_bytes()
    }

    /// Returns a mark behind everything sent.
    pub(crate) fn mark(&self, now: Time) -> Mark {
        let rounds = &self.rounds;
        Mark {
            at: now,
            before: None,
            sent: rounds.sent,
            in_flight: rounds.in_flight(),
            lost: rounds.lost,
            is_again: false,
            is_late: false,
            is_of_silent: false,
            is_of_question: false,
            has_waited: false,
            repeated_at: None,
            is_window_limit: false,
            is_limited: rounds.is_limited(now),
        }
    }

    /// Returns how long to wait for the answer to a first question.
    pub(crate) fn first_answer_time(&self) -> Duration {
        let answer = self.answered_in.unwrap_or_default().max(self.round_trip_min().unwrap_or_default());
        (answer * config::RECEIPT_WAIT_ANSWERS).clamp(config::RECEIPT_WAIT, config::RECEIPT_WAIT_MAX)
    }

    /// Returns the time since something last passed.
    pub(crate) fn passed_since(&self, now: Time) -> Duration {
        self.rounds.passed_since(now)
    }

    /// Returns whether everything before a mark is known to have passed.
    pub(crate) fn is_passed(&self, mark: &Mark) -> bool {
        mark.sent.all <= self.rounds.passed.all
    }

    /// Records that what has passed is known now.
    pub(crate) fn note_heard(&mut self, now: Time) {
        self.rounds.note_heard(now);
    }

    /// Records that everything before a mark has passed.
    pub(crate) fn passed(&mut self, now: Time, mark: &Mark) {
        self.rounds.passed(now, mark);
    }

    /// Returns whether a datagram is to be withheld, to see whether readers acknowledge what they have not received.
    pub(crate) fn is_proof_due(&self, now: Time) -> bool {
        let answer = self.answer_time().unwrap_or_default();
        self.proof.is_due(now, self.rounds.bottleneck(), self.rounds.passed_bytes(), answer)
    }

    /// Records that a datagram is withheld. Returns the number of the test, and the time after which answers come.
    pub(crate) fn begin_proof(&mut self, now: Time) -> (u64, Duration) {
        let answer = self.answer_time().unwrap_or_default();
        (self.proof.begin(now, self.rounds.bottleneck(), self.rounds.sent.all, answer), answer)
    }

    /// Records what an answer of one reader shows about the datagram that a test withholds.
    pub(crate) fn settle_proof(&mut self, now: Time, test: u64, verdict: Verdict) {
        self.proof.settle(now, (test, verdict), self.rounds.passed_bytes(), self.rounds.sent.all);
    }

    /// Records the answer to a repair that was sent once: while something is missing, a reader that does not show how
    /// far it has got shows no other round trip.
    pub(crate) fn note_round_trip(&mut self, now: Time, sent_at: Time) {
        self.rounds.note_sample(now.nanos_since(sent_at).min(config::PATIENCE_MAX.as_nanos() as u64));
    }

    /// Records how long a HEARTBEAT and an answer took that says to which one it is.
    pub(crate) fn note_echo(&mut self, now: Time, elapsed_ns: u64) {
        self.rounds.note_echo(now, elapsed_ns);
    }

    /// Records that a writer sends again what was discarded: until that has passed, little is known.
    pub(crate) fn note_going_back(&mut self) {
        self.rounds.end_probe();
    }

    /// Records that a reader has reported `bytes` as lost.
    pub(crate) fn note_lost(&mut self, bytes: u64) {
        self.rounds.lost += bytes;
    }

    /// Returns the shortest known round trip.
    pub(crate) fn round_trip_min(&self) -> Option<Duration> {
        self.rounds.round_trip_min().map(Duration::from_nanos)
    }

    /// Returns the time after which answers come, which includes time in queues.
    pub(crate) fn answer_time(&self) -> Option<Duration> {
        let measured = self.rounds.echo_ns.or(self.rounds.round_trip().max(self.rounds.answer_ns));
        measured.map(Duration::from_nanos)
    }
}

/// Returns the bytes that a datagram takes on the way: with UDP and IPv4 headers.
pub(crate) const fn on_the_wire(datagram_len: u64) -> u64 {
    datagram_len + config::UDP_IP_HEADER_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_may_be_to_another_heartbeat_measures_nothing() {
        let ms = |ms: u64| Time(ms * 1_000_000);
        let state = PathState::default();
        let mut mark = state.mark(ms(0));
        let shortest = Some(10_000_000);
        assert!(!mark.is_ambiguous(ms(30), shortest));
        mark.repeated_at = Some(ms(5));
        // Too early to be the answer to the second one.
        assert!(!mark.is_ambiguous(ms(12), shortest));
        assert!(mark.is_ambiguous(ms(15), shortest) && mark.is_ambiguous(ms(12), None));
        assert!(state.mark(ms(0)).late(ms(0)).is_ambiguous(ms(30), shortest));
    }

    #[test]
    fn an_answer_to_several_heartbeats_shows_a_queue_only_if_the_next_mark_does() {
        let ms = |ms: u64| Time(ms * 1_000_000);
        let mut state = PathState::default();
        state.note_round_trip(ms(10), ms(0));
        let mark = state.mark(ms(20));
        // What left at 49 ms has not arrived: it may have taken no longer than usual.
        state.passed(ms(59), &Mark { before: Some(ms(49)), ..mark });
        assert_eq!(state.answer_time(), Some(Duration::from_millis(10)));
        state.passed(ms(59), &Mark { before: Some(ms(40)), ..mark });
        assert_eq!(state.answer_time(), Some(Duration::from_millis(19)));
    }

    #[test]
    fn a_configured_rate_is_kept_if_each_datagram_leaves_for_many_addresses() {
        const RATE: u64 = 100_000;
        let path = Path::with_rate_max(RATE);
        let flow = Flow { number: path.lock().add_flow(), ..Flow::default() };
        let (datagram, mut sent) = (64 * 63_000, 0);
        for ms in 0..120_000 {
            let now = Time(ms * 1_000_000);
            let mut state = path.lock();
            if let Allowance::Bytes(_) = state.allow(now, flow, datagram, Purpose::BestEffort) {
                state.spend(now, flow, datagram, Purpose::BestEffort);
                sent += datagram;
            }
        }
        // One of them takes forty seconds.
        assert!((2 * datagram..=4 * datagram).contains(&sent), "{sent}");
    }

    #[test]
    fn an_echo_makes_no_path_shorter() {
        let ms = |ms: u64| Time(ms * 1_000_000);
        let mut state = PathState::default();
        state.note_echo(ms(1), 5_000);
        assert_eq!(state.round_trip_min(), None);
        state.note_round_trip(ms(60), ms(0));
        for elapsed_ns in [50_000_000, 31_000_000, 16_000_000, 8_000_000, 5_000] {
            state.note_echo(ms(61), elapsed_ns);
        }
        assert_eq!(state.round_trip_min(), Some(Duration::from_millis(60)));
        assert_eq!(state.answer_time(), Some(Duration::from_millis(60)));
    }

    #[test]
    fn on_a_path_of_which_nothing_is_known_no_more_is_sent_again_than_a_first_flight() {
        let (path, flow) = (Path::new(), Flow::default());
        let mut state = path.lock();
        let room = |state: &mut PathState, now: Time| state.allow_sent_elsewhere(now).unwrap();
        let first = config::PATH_FIRST_FLIGHT_BYTES;
        assert_eq!(room(&mut state, Time(0)), Allowance::Flight(first));
        state.spend(Time(0), flow, first, Purpose::Repair);
        let Allowance::Blocked { until: later } = room(&mut state, Time(1)) else { panic!("it waits") };
        assert_eq!(room(&mut state, later), Allowance::Flight(first));
        // What passes makes room for as much again, and new samples for more.
        state.spend(later, flow, first / 2, Purpose::Repair);
        state.spend(later, flow, first / 2, Purpose::New);
        let mark = state.mark(later);
        assert!(matches!(room(&mut state, later), Allowance::Blocked { .. }));
        state.passed(later + Duration::from_millis(10), &mark);
        assert_eq!(room(&mut state, later + Duration::from_millis(10)), Allowance::Flight(first * 3 / 2));
    }

    #[test]
    fn a_reader_that_never_answers_is_never_sent_everything() {
        let (path, flow) = (Path::new(), Flow::default());
        let (mut now, mut sent) = (Time(0), 0);
        while now < Time(30_000_000_000) {
            let mut state = path.lock();
            match state.allow(now, flow, 1 << 20, Purpose::New) {
                Allowance::Flight(bytes) => {
                    state.spend(now, flow, bytes, Purpose::New);
                    sent += bytes;
                }
                Allowance::Blocked { until } => now = until,
                other => panic!("{other:?} after {sent} bytes"),
            }
        }
        let most = config::PATH_FIRST_FLIGHT_BYTES + config::PATH_UNANSWERED_FLIGHT_BYTES;
        assert!(sent <= 25 * most, "{sent} bytes in 30 s");
    }

    #[test]
    fn an_answer_of_an_earlier_time_than_the_one_before_is_no_error() {
        let ms = |ms: u64| Time(ms * 1_000_000);
        let (path, flow) = (Path::new(), Flow::default());
        let mut state = path.lock();
        state.note_round_trip(ms(1), ms(0));
        let marks = [10, 16].map(|at| {
            state.spend(ms(at), flow, 40_000, Purpose::New);
            state.mark(ms(at))
        });
        state.passed(ms(50), &marks[0]);
        state.passed(ms(26), &marks[1]);
        assert!(state.rate().is_none_or(|rate| rate > 0.0));
    }

    #[test]
    fn nothing_is_sent_again_beside_a_first_flight_of_new_samples() {
        let (path, flow) = (Path::new(), Flow::default());
        let mut state = path.lock();
        let began = Time(3_600_000_000_000);
        state.spend(began, flow, config::PATH_FIRST_FLIGHT_BYTES, Purpose::New);
        let room = state.allow_sent_elsewhere(began + Duration::from_millis(1));
        assert!(matches!(room, Some(Allowance::Blocked { until }) if until > began), "{room:?}");
    }

    #[test]
    fn lost_answers_do_not_make_the_next_ones_seem_ever_later() {
        let path = Path::new();
        let mut asked = Time::ZERO;
        for _ in 0..20 {
            let mut state = path.lock();
            state.spend(asked, Flow::default(), 1000, Purpose::New);
            let mut mark = state.mark(asked);
            // The first answer is lost. The next HEARTBEAT follows when it must be, and is answered at once.
            let again = asked + state.answer_time().unwrap_or(Duration::from_millis(100)) * 5 / 4;
            mark.repeated_at = Some(again);
            let answered = again + Duration::from_millis(50);
            state.passed(answered, &mark);
            asked = answered;
        }
        let known = path.lock().answer_time().expect("answers have come");
        assert!(known <= config::PATIENCE_MAX, "{known:?}");
    }
}
