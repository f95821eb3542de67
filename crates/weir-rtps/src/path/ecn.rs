//! Explicit congestion notification, the sending end (RFC 3168).
//!
//! Datagrams with samples on a paced path are sent as ECT(0), so that routers mark them instead of dropping them.
//! Readers return counts of what arrived marked and unmarked ([`ecn`](crate::ecn)). A round with a mark is one of
//! congestion, to which the [rate](super::rate) responds.
//!
//! Whether the path and the readers handle the field is tested all the time, as in QUIC (RFC 9000, section 13.4.2).
//! ECN is turned off for a while if
//!
//! - most of what was sent as ECT(0) arrives with neither ECT(0) nor CE: something on the path clears the field,
//! - more arrives than was sent: a reader invents counts,
//! - marks last, or take most of the rate, although no round trip shows a queue: something on the path, or a reader,
//!   marks whatever the queue. Jitter hides a short queue. There, rounds with marks have to show longer round trips, on
//!   average, than rounds without. Where little is sent, few round trips seem to show a queue by chance: marks in every
//!   round until a sixteenth of the rate is left are taken for such marks in any case.

use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::time::Duration;

use weir_wire::EcnCounts;

use super::{Path, PathState};
use crate::config;
use crate::time::Time;

/// The use of ECN on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EcnState {
    /// The path is not paced, its readers have not answered, or ECN is disabled.
    #[default]
    Unused,
    /// Datagrams with samples are sent as ECT(0).
    InUse,
    /// The path or its readers clear the field.
    Cleared,
    /// A reader reports more than was sent.
    Invented,
    /// Marks arrive without any queue.
    Implausible,
}

/// What is known about ECN on a path.
#[derive(Debug, Default)]
pub(super) struct Ecn {
    is_enabled: bool,
    /// The participants that report marks.
    peers: Vec<Peer>,
    next_question: Time,
    question_gap: Duration,
    /// Not used until then, and why.
    off: Option<(Time, EcnState)>,
    /// How often it was turned off.
    failures: u32,
    /// Datagrams sent as ECT(0), and those that arrived marked.
    pub(super) sent: u64,
    pub(super) marked: u64,
    /// Marks since the round began.
    fresh: u64,
    /// The rate before the first of the marks that no queue has confirmed, bytes per second, and the rounds with such
    /// marks.
    unconfirmed: Option<(f64, u32)>,
    /// The rate before the first of the rounds in a row that all had marks, bytes per second, and their number.
    lasting: Option<(f64, u32)>,
    /// `sent` when the round began.
    sent_before: u64,
    /// The mean round trip of rounds without marks, in nanoseconds.
    calm_ns: Option<u64>,
}

/// What the round trips of a round show of a queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueShown {
    /// Even the shortest does.
    pub(super) is_sure: bool,
    /// Their mean, and by how much means differ by chance.
    pub(super) mean_ns: u64,
    pub(super) margin_ns: u64,
}

/// A participant that reports marks.
#[derive(Debug)]
struct Peer {
    at: SocketAddrV4,
    last: EcnCounts,
    heard_at: Time,
    /// Datagrams sent to it as ECT(0), and those that arrived with ECT(0) or CE.
    sent: u64,
    arrived: u64,
    /// When the current test began, and the counts then.
    test: (Time, u64, u64),
    /// Tests in a row in which little arrived with either.
    cleared: u32,
}

impl Peer {
    fn new(now: Time, at: SocketAddrV4, last: EcnCounts) -> Self {
        Self { at, last, heard_at: now, sent: 0, arrived: 0, test: (now, 0, 0), cleared: 0 }
    }

    fn is_heard(&self, now: Time, answer: Duration) -> bool {
        now.since(self.heard_at) < config::ECN_SILENCE.max(answer * 8)
    }

    /// Takes what it reports. Returns the new marks, or what is wrong.
    fn note(&mut self, now: Time, counts: EcnCounts, answer: Duration) -> Result<u64, EcnState> {
        let more = |new: u32, old: u32| u64::try_from(new.wrapping_sub(old).cast_signed()).ok();
        let [Some(ect0), Some(ce)] = [more(counts.ect0, self.last.ect0), more(counts.ce, self.last.ce)]
        else {
            // Overtaken by a later report.
            return Ok(0);
        };
        (self.last, self.heard_at) = (counts, now);
        self.arrived += ect0 + ce;
        // Duplicates arrive twice.
        if self.arrived > self.sent + self.sent / DUPLICATES_SHARE + DUPLICATES {
            return Err(EcnState::Invented);
        }
        let (began_at, sent, arrived) = self.test;
        let (sent, arrived) = (self.sent - sent, self.arrived - arrived);
        if sent >= TEST_DATAGRAMS && now.since(began_at) >= TEST_TIME.max(answer * 4) {
            self.test = (now, self.sent, self.arrived);
            self.cleared = if arrived * CLEARED_SHARE < sent { self.cleared + 1 } else { 0 };
            if self.cleared >= CLEARED_TESTS {
                return Err(EcnState::Cleared);
            }
        }
        Ok(ce)
    }
}

impl Ecn {
    /// Reserves memory for all peers.
    pub(super) fn reserve(&mut self) {
        self.peers.reserve_exact(config::ECN_PEERS_MAX);
    }

    /// Returns the memory that this reserves, in bytes.
    pub(super) fn reserved_bytes() -> usize {
        config::ECN_PEERS_MAX * size_of::<Peer>()
    }

    /// Returns the state of a path of which nothing is known, with the same memory.
    pub(super) fn into_unknown(self) -> Self {
        let mut peers = self.peers;
        peers.clear();
        Self { peers, ..Self::default() }
    }

    /// Forgets that it was turned off: the path may be another one.
    pub(super) fn forget(&mut self) {
        (self.off, self.failures, self.calm_ns) = (None, 0, None);
    }

    /// Ends a round. Returns whether it was one of congestion. `rate`: the bytes per second that the bottleneck is
    /// known to carry.
    pub(super) fn end_round(&mut self, now: Time, shown: QueueShown, rate: f64) -> bool {
        let has_marks = core::mem::take(&mut self.fresh) > 0;
        let is_tested = core::mem::replace(&mut self.sent_before, self.sent) < self.sent;
        if is_tested && !has_marks {
            self.calm_ns = Some(self.calm_ns.map_or(shown.mean_ns, |ns| (ns * 7 + shown.mean_ns) / 8));
        }
        let is_longer = self.calm_ns.is_some_and(|ns| shown.mean_ns > ns + shown.margin_ns);
        let has_queue = shown.is_sure || has_marks && is_longer;
        let is_over = !has_marks && self.unconfirmed.is_some_and(|(before, _)| rate >= before);
        if has_queue || is_over {
            self.unconfirmed = None;
        }
        if !has_marks {
            self.lasting = self.lasting.filter(|_| !is_tested);
            return false;
        }
        let (before, rounds) = self.lasting.get_or_insert((rate, 0));
        *rounds += 1;
        let is_lasting = rate < *before * LASTING_SHARE && *rounds > LASTING_ROUNDS;
        let (before, rounds) = self.unconfirmed.get_or_insert((rate, 0));
        *rounds += 1;
        if is_lasting || rate < *before * UNCONFIRMED_SHARE || *rounds > UNCONFIRMED_ROUNDS {
            self.turn_off(now, EcnState::Implausible);
            return false;
        }
        true
    }

    fn is_off(&self, now: Time) -> bool {
        !self.is_enabled || self.off.is_some_and(|(until, _)| now < until)
    }

    fn turn_off(&mut self, now: Time, why: EcnState) {
        let time = config::ECN_OFF * (1 << self.failures.min(OFF_DOUBLINGS));
        self.off = Some((now + time, why));
        self.failures += 1;
        (self.unconfirmed, self.lasting, self.fresh, self.calm_ns) = (None, None, 0, None);
        self.peers.clear();
    }

    fn state(&self) -> EcnState {
        match self.off {
            Some((_, why)) if self.peers.is_empty() => why,
            _ if self.peers.is_empty() => EcnState::Unused,
            _ => EcnState::InUse,
        }
    }
}

impl Path {
    /// Uses ECN where the path is paced and its readers report marks.
    #[must_use]
    pub fn with_ecn(self) -> Self {
        self.lock().rounds.ecn.is_enabled = true;
        self
    }
}

impl PathState {
    /// Returns whether to ask the readers at these addresses to report marks, and records that.
    pub(crate) fn asks_for_marks(&mut self, now: Time, at: &[SocketAddrV4]) -> bool {
        let answer = self.answer_time().unwrap_or_default();
        let is_paced = self.is_paced();
        let ecn = &mut self.rounds.ecn;
        if !is_paced || ecn.is_off(now) || now < ecn.next_question {
            return false;
        }
        let is_heard =
            |at: &SocketAddrV4| ecn.peers.iter().any(|peer| peer.at == *at && peer.is_heard(now, answer));
        if at.iter().all(is_heard) {
            return false;
        }
        ecn.question_gap = (ecn.question_gap * 2).clamp(QUESTION_GAP_MIN, QUESTION_GAP_MAX);
        ecn.next_question = now + ecn.question_gap;
        true
    }

    /// Returns whether datagrams to an address are to be sent as ECT(0).
    pub(crate) fn is_ect(&self, now: Time, to: SocketAddrV4) -> bool {
        let answer = self.answer_time().unwrap_or_default();
        let mut peers = self.rounds.ecn.peers.iter();
        peers.any(|peer| peer.at == to && peer.is_heard(now, answer)) && self.is_paced()
    }

    /// Records datagrams sent to an address as ECT(0).
    pub(crate) fn note_ect(&mut self, to: SocketAddrV4, datagrams: u64) {
        let ecn = &mut self.rounds.ecn;
        if let Some(peer) = ecn.peers.iter_mut().find(|peer| peer.at == to) {
            peer.sent += datagrams;
            ecn.sent += datagrams;
        }
    }

    /// Takes what a participant at this address reports.
    pub(crate) fn note_marks(&mut self, now: Time, from: SocketAddrV4, counts: EcnCounts) {
        let answer = self.answer_time().unwrap_or_default();
        let ecn = &mut self.rounds.ecn;
        if ecn.is_off(now) {
            return;
        }
        ecn.question_gap = Duration::ZERO;
        let has_room = ecn.peers.len() < config::ECN_PEERS_MAX;
        match ecn.peers.iter_mut().find(|peer| peer.at == from) {
            Some(peer) if peer.is_heard(now, answer) => match peer.note(now, counts, answer) {
                Ok(marks) => {
                    ecn.marked += marks;
                    ecn.fresh += marks;
                }
                Err(why) => ecn.turn_off(now, why),
            },
            // Another participant may be there now.
            Some(peer) => *peer = Peer::new(now, from, counts),
            None if has_room => ecn.peers.push(Peer::new(now, from, counts)),
            None => {}
        }
    }

    /// Returns how ECN is used.
    pub(super) fn ecn_state(&self) -> EcnState {
        self.rounds.ecn.state()
    }
}

/// A question that is not answered is repeated after these times.
const QUESTION_GAP_MIN: Duration = Duration::from_millis(100);
const QUESTION_GAP_MAX: Duration = Duration::from_secs(10);
/// The field is cleared if of so many datagrams, sent over this time at least, less than one in so many arrives with
/// it, in so many tests. Others are lost.
const TEST_DATAGRAMS: u64 = 64;
const TEST_TIME: Duration = Duration::from_millis(100);
const CLEARED_SHARE: u64 = 8;
const CLEARED_TESTS: u32 = 2;
/// One datagram in so many, and so many more, may arrive twice.
const DUPLICATES_SHARE: u64 = 4;
const DUPLICATES: u64 = 16;
/// Marks that no queue confirms leave at least this share of the rate, and last for so many rounds.
const UNCONFIRMED_SHARE: f64 = 0.4;
const UNCONFIRMED_ROUNDS: u32 = 32;
/// Marks in so many rounds in a row, while this share of the rate is left, come from no queue that the path fills.
const LASTING_ROUNDS: u32 = 24;
const LASTING_SHARE: f64 = 0.0625;
/// The time for which it is off doubles so many times: to an hour.
const OFF_DOUBLINGS: u32 = 6;

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;

    const TO: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 7411);
    const ANSWER: Duration = Duration::from_millis(10);

    fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    /// Sends 100 datagrams each 100 ms, and has `arriving` reported after that.
    fn run(tests: u64, arriving: impl Fn(u64) -> EcnCounts) -> Result<u64, EcnState> {
        let mut peer = Peer::new(ms(0), TO, EcnCounts::default());
        let mut marks = 0;
        for test in 1..=tests {
            peer.sent += 100;
            marks += peer.note(ms(100 * test), arriving(test), ANSWER)?;
        }
        Ok(marks)
    }

    #[test]
    fn counts_that_add_up_are_taken() {
        let counts = |ect0, ce| EcnCounts { ect0, ce };
        assert_eq!(run(10, |test| counts(99 * test as u32, test as u32)), Ok(10));
        // Half is lost, or some arrive twice.
        assert_eq!(run(10, |test| counts(50 * test as u32, 0)), Ok(0));
        assert_eq!(run(10, |test| counts(110 * test as u32, 3)), Ok(3));
    }

    #[test]
    fn counts_that_do_not_add_up_are_named() {
        let counts = |ect0, ce| EcnCounts { ect0, ce };
        assert_eq!(run(10, |_| counts(0, 0)), Err(EcnState::Cleared));
        assert_eq!(run(10, |test| counts(0, 10 * test as u32)), Err(EcnState::Cleared));
        assert_eq!(run(10, |test| counts(0, 200 * test as u32)), Err(EcnState::Invented));
        assert_eq!(run(1, |_| counts(1000, 0)), Err(EcnState::Invented));
    }

    #[test]
    fn a_report_that_was_overtaken_counts_for_nothing_and_counts_wrap() {
        let last = EcnCounts { ect0: u32::MAX - 10, ce: 5 };
        let mut peer = Peer::new(ms(0), TO, last);
        peer.sent = 100;
        assert_eq!(peer.note(ms(1), EcnCounts { ect0: 20, ce: 7 }, ANSWER), Ok(2));
        assert_eq!((peer.arrived, peer.note(ms(2), last, ANSWER)), (33, Ok(0)));
        assert_eq!((peer.arrived, peer.heard_at), (33, ms(1)));
    }

    /// What rounds show whose round trips take `mean_ms` on average.
    fn shown(is_sure: bool, mean_ms: u64) -> QueueShown {
        QueueShown { is_sure, mean_ns: mean_ms * 1_000_000, margin_ns: 3_000_000 }
    }

    #[test]
    fn marks_are_believed_while_rounds_with_them_take_longer_than_rounds_without() {
        let is_off_after = |marked_ms: u64| {
            let mut ecn = Ecn { is_enabled: true, ..Ecn::default() };
            for round in 0..200 {
                ecn.sent += 10;
                let is_marked = round % 4 == 3;
                ecn.fresh = u64::from(is_marked);
                // The rate is below that before the first mark, so that rounds without marks prove nothing.
                let rate = if ecn.unconfirmed.is_some() { 0.9e6 } else { 1e6 };
                ecn.end_round(ms(5), shown(false, if is_marked { marked_ms } else { 70 }), rate);
            }
            ecn.is_off(ms(5))
        };
        assert!(!is_off_after(75) && is_off_after(71));
    }

    #[test]
    fn marks_without_a_queue_are_believed_until_they_have_taken_most_of_the_rate() {
        let run = |has_queue: fn(u32) -> bool| {
            let mut ecn = Ecn { is_enabled: true, ..Ecn::default() };
            let mut rate = 1e6;
            for round in 0..20 {
                ecn.fresh = 1;
                if !ecn.end_round(ms(5), shown(has_queue(round), 30), rate) {
                    return (rate, ecn);
                }
                rate *= 0.85;
            }
            (rate, ecn)
        };
        let (rate, ecn) = run(|_| false);
        assert!((0.3..0.4).contains(&(rate / 1e6)) && ecn.state() == EcnState::Implausible, "{rate}");
        assert!(ecn.is_off(ms(5)) && !ecn.is_off(ms(5) + config::ECN_OFF));
        assert!(!run(|round| round % 4 == 3).1.is_off(ms(5)));
        // They may last without taking anything.
        let mut ecn = Ecn { is_enabled: true, ..Ecn::default() };
        let rounds = (0..100).take_while(|_| {
            ecn.fresh = 1;
            ecn.end_round(ms(5), shown(false, 30), 1e6)
        });
        assert_eq!(rounds.count(), UNCONFIRMED_ROUNDS as usize);
    }

    #[test]
    fn it_is_off_for_longer_each_time_and_at_most_for_an_hour() {
        let mut ecn = Ecn { is_enabled: true, ..Ecn::default() };
        for minutes in [1, 2, 4, 8, 16, 32, 64, 64] {
            ecn.turn_off(Time::ZERO, EcnState::Cleared);
            let until = ecn.off.unwrap().0;
            assert_eq!(until.since(Time::ZERO), Duration::from_secs(60 * minutes));
        }
        ecn.forget();
        assert!(!ecn.is_off(Time::ZERO));
    }

    #[test]
    fn readers_are_asked_when_the_path_is_paced_and_until_they_answer() {
        let path = Path::with_rate_max(1_000_000).with_ecn();
        let mut state = path.lock();
        assert!(state.asks_for_marks(ms(0), &[TO]) && !state.asks_for_marks(ms(99), &[TO]));
        assert!(state.asks_for_marks(ms(100), &[TO]) && !state.is_ect(ms(100), TO));
        state.note_marks(ms(150), TO, EcnCounts::default());
        assert!(state.is_ect(ms(150), TO) && state.ecn_state() == EcnState::InUse);
        assert!(!state.asks_for_marks(ms(1000), &[TO]));
        // It has gone.
        let later = ms(150) + config::ECN_SILENCE;
        assert!(!state.is_ect(later, TO) && state.asks_for_marks(later, &[TO]));
        let open = Path::new().with_ecn();
        assert!(!open.lock().asks_for_marks(ms(0), &[TO]));
        assert!(!Path::with_rate_max(1_000_000).lock().asks_for_marks(ms(0), &[TO]));
    }
}
