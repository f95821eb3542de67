//! Proof that readers have received what they acknowledge.
//!
//! RTPS acknowledgements prove nothing: numbers are contiguous, and HEARTBEATs name them. A reader that acknowledges
//! what has not arrived, or another host in its name, could raise the rate of a path to any height (Savage et al., *TCP
//! Congestion Control with a Misbehaving Receiver*, 1999). QUIC skips packet numbers (RFC 9000, 21.4). Here a writer
//! now and then *withholds* a datagram of a saturated stream: it announces it and does not send it
//! (`writer/withheld.rs`). A reader that has received what follows requests it, as after a loss, and gets it. One that
//! acknowledges it has lied. Nothing behind the datagram counts as passed until the reader has shown the one or the
//! other, so that no rate grows meanwhile.
//!
//! A datagram is withheld when a path carries twice what was proven and sixteen round trips have passed since, or at
//! once if it carries eight times as much, and from time to time. After a lie, the path is held at the rate that was
//! proven. Each further lie quarters that rate, and each proof doubles it, until it limits nothing. A reader that
//! requests at random needs luck in two of three tests. One that requests everything proves nothing; after four such
//! answers in a row, they count as lies.
//!
//! Several readers at the end of a path are tested together. The first verdict settles the test; after it, only a lie
//! still counts. Otherwise a second proof would count as one of nothing, and one reader's proof end what follows from
//! another's lie.

use core::time::Duration;

use crate::config;
use crate::time::Time;

/// What the readers at the end of a path have proven.
#[derive(Debug, Default)]
pub(super) struct Proof {
    /// Bytes per second that were proven, and when.
    rate: f64,
    at: Option<Time>,
    /// Bytes that had passed by then.
    passed: u64,
    test: Option<Test>,
    /// How many tests have begun, and the rate of the last one that was settled.
    tests: u64,
    settled_rate: f64,
    /// Bytes per second that may be sent, after a lie.
    pub(super) held: Option<f64>,
    /// No test begins before this, while the path is held.
    next_at: Time,
    pub(super) lies: u64,
    /// Unclear answers in a row.
    unclear: u32,
}

/// A datagram that is withheld.
#[derive(Debug, Clone, Copy)]
struct Test {
    number: u64,
    began_at: Time,
    /// Without any answer it is over then.
    until: Time,
    /// Bytes sent on the path before.
    sent: u64,
    /// Bytes per second that the path was taken to carry.
    rate: Option<f64>,
}

/// What an answer shows about a withheld datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The reader has requested it, and little else.
    Proven,
    /// The reader has acknowledged it.
    Lie,
    /// The reader has requested it with most of what was sent around it.
    Unclear,
    /// Nothing: it was sent after all, or removed.
    Nothing,
}

impl Proof {
    /// Returns whether a datagram is to be withheld. `rate`: bytes per second that the path carries, if it is known;
    /// `passed`: bytes that have passed.
    /// `answer`: the time after which answers come.
    pub(super) fn is_due(&self, now: Time, rate: Option<f64>, passed: u64, answer: Duration) -> bool {
        if self.test.is_some_and(|test| now < test.until) || passed < config::PROOF_AFTER_BYTES {
            return false;
        }
        if self.held.is_some() {
            return now >= self.next_at;
        }
        let is_old = self.at.is_none_or(|at| now.since(at) >= config::PROOF_MEMORY);
        let is_more = match rate {
            // On a path with a long round trip, tests that follow each other soon would cost a lot.
            Some(rate) => {
                let is_late = self.at.is_none_or(|at| now.since(at) >= answer * config::PROOF_ROUND_TRIPS);
                rate > self.rate * if is_late { config::PROOF_GROWTH } else { config::PROOF_GROWTH_SOON }
            }
            // Slow start has grown, or begun anew.
            None => passed < config::PATH_KNOWN_BYTES && (passed >= 4 * self.passed || passed < self.passed),
        };
        is_old || is_more
    }

    /// Begins a test and returns its number. `answer`: the time after which answers come; `sent`: bytes sent on the
    /// path.
    pub(super) fn begin(&mut self, now: Time, rate: Option<f64>, sent: u64, answer: Duration) -> u64 {
        let until = now + answer * 4 + config::PATH_SILENCE;
        self.tests += 1;
        self.test = Some(Test { number: self.tests, began_at: now, until, sent, rate });
        self.tests
    }

    /// Takes what one reader's answer shows about a test, which ends it. `passed` and `sent`: bytes that have passed,
    /// and that were sent on the path.
    pub(super) fn settle(&mut self, now: Time, (number, verdict): (u64, Verdict), passed: u64, sent: u64) {
        let Some(test) = self.test.take_if(|test| test.number == number) else {
            if verdict == Verdict::Lie {
                self.lies += 1;
                self.hold(self.settled_rate);
            }
            return;
        };
        let seconds = now.since(test.began_at).as_secs_f64().max(1e-5);
        // What an open path carries is not known; so much was sent.
        let rate = test.rate.unwrap_or((sent - test.sent) as f64 / seconds);
        self.settled_rate = rate;
        match verdict {
            Verdict::Proven => {
                self.unclear = 0;
                (self.at, self.passed) = (Some(now), passed);
                self.held = self.held.map(|held| held * 2.0).filter(|held| *held < rate.max(self.rate));
                self.rate = if self.held.is_none() { rate } else { self.rate };
            }
            Verdict::Lie => {
                self.lies += 1;
                self.hold(rate);
            }
            Verdict::Unclear => {
                self.unclear += 1;
                if self.unclear >= UNCLEAR_MAX {
                    self.hold(rate);
                }
            }
            Verdict::Nothing => {}
        }
        self.next_at = now + config::PROOF_INTERVAL;
    }

    /// Holds a path that was taken to carry `rate` bytes per second.
    fn hold(&mut self, rate: f64) {
        let first = config::PATH_RATE_UNPROVEN * FIRST_SHARE;
        let proven = if self.at.is_some() { self.rate } else { first };
        let held = self.held.map_or(proven.min(rate), |held| held / 4.0);
        self.held = Some(held.max(config::PATH_RATE_UNPROVEN));
    }
}

/// After so many unclear answers in a row, a path is held.
const UNCLEAR_MAX: u32 = 4;
/// A path on which nothing was proven is first held at so many times the least rate.
const FIRST_SHARE: f64 = 16.0;

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: Duration = Duration::from_millis(10);

    fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    fn test(proof: &mut Proof, at: Time, rate: f64, verdict: Verdict) {
        assert!(proof.is_due(at, Some(rate), 1 << 20, ANSWER), "{at:?} {proof:?}");
        let number = proof.begin(at, Some(rate), 0, ANSWER);
        assert!(!proof.is_due(at + ANSWER, Some(rate), 1 << 20, ANSWER));
        proof.settle(at + ANSWER, (number, verdict), 1 << 20, 0);
    }

    #[test]
    fn a_rate_is_proven_again_when_it_has_grown_and_after_some_time() {
        let mut proof = Proof::default();
        test(&mut proof, ms(0), 1e6, Verdict::Proven);
        assert!(!proof.is_due(ms(900), Some(1.9e6), 1 << 20, ANSWER));
        assert!(!proof.is_due(ms(30), Some(2.1e6), 1 << 20, ANSWER));
        test(&mut proof, ms(200), 2.1e6, Verdict::Proven);
        assert!(!proof.is_due(ms(220), Some(2.1e6), 1 << 20, ANSWER) && proof.held.is_none());
        test(&mut proof, ms(220), 17e6, Verdict::Proven);
        test(&mut proof, ms(250) + config::PROOF_MEMORY, 17e6, Verdict::Proven);
    }

    #[test]
    fn a_second_reader_proves_nothing_more_and_a_second_lie_counts() {
        let begin = |proof: &mut Proof, at| proof.begin(at, Some(4e6), 0, ANSWER);
        let mut proof = Proof::default();
        let number = begin(&mut proof, ms(0));
        for verdict in [Verdict::Proven, Verdict::Proven, Verdict::Nothing, Verdict::Unclear] {
            proof.settle(ms(10), (number, verdict), 1 << 20, 0);
        }
        assert!(!proof.is_due(ms(30), Some(4e6), 1 << 20, ANSWER) && proof.held.is_none(), "{proof:?}");
        // One reader lies and the other is honest, in either order.
        for verdicts in [[Verdict::Lie, Verdict::Proven], [Verdict::Proven, Verdict::Lie]] {
            let mut proof = Proof::default();
            test(&mut proof, ms(0), 4e6, Verdict::Proven);
            let number = begin(&mut proof, ms(300));
            for verdict in verdicts {
                proof.settle(ms(310), (number, verdict), 1 << 20, 0);
            }
            assert_eq!((proof.held, proof.lies), (Some(4e6), 1), "{verdicts:?}");
        }
        // The answer to an earlier test does not end a later one.
        let first = begin(&mut proof, ms(400));
        let second = begin(&mut proof, ms(800));
        proof.settle(ms(810), (first, Verdict::Proven), 1 << 20, 0);
        assert!(proof.test.is_some_and(|test| test.number == second));
    }

    #[test]
    fn slow_start_is_proven_each_time_that_it_has_grown() {
        let mut proof = Proof::default();
        let mut passed = 0;
        let mut tests = 0;
        for round in 0..40 {
            passed += passed / 8 + 16_384;
            if proof.is_due(ms(round), None, passed, ANSWER) {
                tests += 1;
                let number = proof.begin(ms(round), None, passed, ANSWER);
                proof.settle(ms(round), (number, Verdict::Proven), passed, passed + 1000);
            }
        }
        assert!((3..7).contains(&tests), "{tests}");
    }

    #[test]
    fn a_lie_holds_a_path_at_what_was_proven_and_further_lies_lower() {
        let mut proof = Proof::default();
        test(&mut proof, ms(0), 4e6, Verdict::Proven);
        test(&mut proof, ms(200), 9e6, Verdict::Lie);
        assert_eq!(proof.held, Some(4e6));
        let mut at = ms(200);
        for _ in 0..5 {
            at = at + ANSWER + config::PROOF_INTERVAL;
            test(&mut proof, at, 8e6, Verdict::Lie);
        }
        assert_eq!((proof.held, proof.lies), (Some(config::PATH_RATE_UNPROVEN), 6));
        for _ in 0..8 {
            at = at + ANSWER + config::PROOF_INTERVAL;
            test(&mut proof, at, 8e6, Verdict::Proven);
            if proof.held.is_none() {
                return;
            }
        }
        panic!("it is still held: {proof:?}");
    }
}
