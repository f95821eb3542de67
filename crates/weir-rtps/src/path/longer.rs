//! A path that has become longer, as when a route changes or a radio hands over.
//!
//! The shortest round trip is kept for seconds, so that a longer path looks like a queue. While there is a queue, the
//! bottleneck is busy, so that what arrives does not depend on what is sent. A queue that is ours gets shorter when
//! less is sent. One that a rival fills may stay as long for some rounds, because the rival takes what is left to it.
//! It gets longer, or overflows, when more is sent again. The time of a longer path does neither.
//!
//! So a path is taken to be longer after two observations: round trips stayed the same while much less was sent, and
//! when half of what the bottleneck carried before was sent again, all of it arrived, after the same time. If not,
//! there is no other test until the queue was short: each test delays what others send.

use super::rounds::Seen;

/// Looks for a path that has become longer.
#[derive(Debug, Default)]
pub(super) struct Longer {
    constant: Constant,
    test: Option<Test>,
    /// A test has shown that it is a queue.
    is_queue: bool,
}

/// What a round has shown.
#[derive(Debug)]
pub(super) enum Shown {
    Nothing,
    /// To see whether it is longer, this is sent for a round, in bytes per second, if the application writes as much.
    Test(f64),
    /// The last round of the test is still to come.
    TestRuns,
    /// It was a queue.
    Queue,
    /// The path is longer. `rate`: bytes per second that the bottleneck carried before.
    Longer {
        round_trip_ns: u64,
        rate: f64,
    },
}

/// Rounds in a row in which round trips were longer by the same time, although less was sent.
#[derive(Debug, Default)]
struct Constant {
    rounds: u32,
    shortest_ns: u64,
    longest_ns: u64,
    /// The mean of the last round.
    mean_ns: u64,
    /// The most bytes per second that arrived in one of them.
    arrived: f64,
    /// For how long the bottleneck would have been idle.
    idle_ns: f64,
}

/// A test that runs: more is sent again.
#[derive(Debug)]
struct Test {
    /// Bytes per second that the bottleneck carried before.
    rate: f64,
    shortest_ns: u64,
    longest_ns: u64,
    /// The mean before the test.
    mean_ns: u64,
    rounds: u32,
}

impl Longer {
    /// Records a round. `usual_loss`: the share that is always lost. `rate`: bytes per second that the bottleneck
    /// carried before there seemed to be a queue.
    pub(super) fn note(&mut self, seen: &Seen, usual_loss: f64, rate: f64) -> Shown {
        if seen.is_marked {
            // A router says that it has a queue.
            self.constant = Constant::default();
            return if self.test.take().is_some() { self.found_queue() } else { Shown::Nothing };
        }
        if !seen.is_limited {
            // What an application sends less of itself says nothing, and does not end a test.
            self.test = None;
            return Shown::Nothing;
        }
        let Some(test) = &mut self.test else { return self.suspect(seen, rate) };
        test.rounds -= 1;
        if test.rounds > 0 {
            return Shown::TestRuns;
        }
        let Some(test) = self.test.take() else { return Shown::Nothing };
        match test.longer_ns(seen, usual_loss) {
            Some(round_trip_ns) => Shown::Longer { round_trip_ns, rate: test.rate },
            None => self.found_queue(),
        }
    }

    /// Records a round while there is no test. Returns whether one begins.
    fn suspect(&mut self, seen: &Seen, rate: f64) -> Shown {
        if self.is_queue || !self.constant.note(seen) {
            return Shown::Nothing;
        }
        let Constant { shortest_ns, longest_ns, mean_ns, arrived, .. } = core::mem::take(&mut self.constant);
        let rate = rate.max(arrived);
        self.test = Some(Test { rate, shortest_ns, longest_ns, mean_ns, rounds: TEST_ROUNDS });
        Shown::Test(rate * TEST_SHARE)
    }

    fn found_queue(&mut self) -> Shown {
        self.is_queue = true;
        Shown::Queue
    }

    /// Returns the round trip of a test that runs, in nanoseconds.
    pub(super) fn tested_ns(&self) -> Option<u64> {
        self.test.as_ref().map(|test| test.longest_ns)
    }

    /// Forgets what was seen: the queue was short.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Test {
    /// Returns the round trip of the longer path that the last round of the test shows, in nanoseconds.
    fn longer_ns(&self, seen: &Seen, usual_loss: f64) -> Option<u64> {
        let round_trip_ns = seen.shortest_ns();
        let varies_ns = varies_ns(seen, self.shortest_ns);
        let spread_ns = round_trip_ns.max(self.longest_ns) - round_trip_ns.min(self.shortest_ns);
        // Beside a rival, round trips vary much. Their mean still shows that the queue grows.
        let is_constant =
            spread_ns <= varies_ns && seen.mean_ns <= self.mean_ns + varies_ns.saturating_sub(seen.jitter_ns);
        let is_carried = seen.arrived >= self.rate * TEST_SHARE * CARRIED_MIN * (1.0 - usual_loss);
        let overflows = seen.loss > usual_loss + LOSS_MORE;
        (seen.is_sure && is_constant && is_carried && !overflows).then(|| round_trip_ns.min(self.shortest_ns))
    }
}

impl Constant {
    /// Records a round. Returns whether no queue that is ours explains its round trips.
    fn note(&mut self, seen: &Seen) -> bool {
        let round_trip_ns = seen.shortest_ns();
        let shortest_ns = if self.rounds == 0 { round_trip_ns } else { self.shortest_ns.min(round_trip_ns) };
        let longest_ns = self.longest_ns.max(round_trip_ns);
        if !seen.is_sure || longest_ns - shortest_ns > varies_ns(seen, shortest_ns) {
            *self = Self::default();
            return false;
        }
        let arrived = self.arrived.max(seen.arrived);
        let idle_ns = self.idle_ns + (1.0 - seen.arrived / arrived.max(1.0)) * seen.length_ns as f64;
        *self = Self {
            rounds: self.rounds + 1,
            shortest_ns,
            longest_ns,
            mean_ns: seen.mean_ns,
            arrived,
            idle_ns,
        };
        let is_less = seen.arrived < arrived * LESS_MAX;
        let would_be_empty = idle_ns >= shortest_ns.saturating_sub(seen.base_ns) as f64;
        self.rounds >= CONSTANT_ROUNDS && is_less && would_be_empty
    }
}

/// Returns by how much round trips vary that are taken to be the same, in nanoseconds.
fn varies_ns(seen: &Seen, shortest_ns: u64) -> u64 {
    // The shortest round trip of all may have been replaced by a longer one.
    shortest_ns.saturating_sub(seen.base_ns) / CONSTANT_SHARE + 2 * seen.jitter_ns
}

/// Round trips are constant if they vary by less than one so many-th of what seems to be a queue...
const CONSTANT_SHARE: u64 = 8;
/// ... for so many rounds, at the end of which no more than this share arrives of what arrived at first.
const CONSTANT_ROUNDS: u32 = 3;
const LESS_MAX: f64 = 0.5;
/// This share of what the bottleneck carried before is sent in a test. What was sent in a round passes in the next one.
const TEST_SHARE: f64 = 0.5;
const TEST_ROUNDS: u32 = 2;
/// This share of it arrives if the bottleneck carries it.
const CARRIED_MIN: f64 = 0.85;
/// ... and no more than this share is lost besides what is always lost.
const LOSS_MORE: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::{Longer, Seen, Shown};

    /// A round with a round trip of `ms` where 4 was the shortest, in which so many bytes per second arrived.
    fn round(ms: u64, arrived: f64) -> Seen {
        Seen {
            arrived,
            loss: 0.0,
            queue_ns: (ms - 4) * 1_000_000,
            jitter_ns: 100_000,
            base_ns: 4_000_000,
            mean_ns: ms * 1_000_000,
            length_ns: 60_000_000,
            queued: None,
            is_limited: true,
            is_doubtful: false,
            is_sure: true,
            is_marked: false,
            is_of_silent: false,
        }
    }

    /// Returns a path that has sent less and less while round trips stayed at 60 ms, and tests what that is.
    fn tested() -> Longer {
        let mut longer = Longer::default();
        for arrived in [4e6, 2e6] {
            assert!(matches!(longer.note(&round(60, arrived), 0.0, 5e6), Shown::Nothing));
        }
        assert!(matches!(longer.note(&round(60, 5e5), 0.0, 5e6), Shown::Test(2.5e6)));
        assert_eq!(longer.tested_ns(), Some(60_000_000));
        // What was sent before the test.
        assert!(matches!(longer.note(&round(60, 5e5), 0.0, 5e6), Shown::TestRuns));
        longer
    }

    #[test]
    fn what_takes_as_long_when_more_is_sent_is_a_longer_path() {
        let shown = tested().note(&round(60, 2.5e6), 0.0, 5e6);
        assert!(matches!(shown, Shown::Longer { round_trip_ns: 60_000_000, rate: 5e6 }));
    }

    #[test]
    fn a_queue_that_a_rival_has_kept_as_long_grows_when_more_is_sent() {
        assert!(matches!(tested().note(&round(70, 2.5e6), 0.0, 5e6), Shown::Queue));
        let varying = Seen { mean_ns: 75_000_000, ..round(61, 2.5e6) };
        assert!(matches!(tested().note(&varying, 0.0, 5e6), Shown::Queue));
    }

    #[test]
    fn a_bottleneck_that_does_not_carry_what_it_did_before_is_no_longer_path() {
        assert!(matches!(tested().note(&round(60, 1e6), 0.0, 5e6), Shown::Queue));
        assert!(
            matches!(tested().note(&round(60, 1e6), 0.6, 5e6), Shown::Longer { .. }),
            "as is always lost"
        );
    }

    #[test]
    fn an_application_that_sends_less_shows_nothing() {
        let mut longer = Longer::default();
        for arrived in [4e6, 2e6, 1e6, 5e5, 5e5, 5e5] {
            let seen = Seen { is_limited: false, ..round(60, arrived) };
            assert!(matches!(longer.note(&seen, 0.0, 5e6), Shown::Nothing));
        }
        // It does not end a test as if there was a queue, and there may be another one.
        let mut longer = tested();
        let seen = Seen { is_limited: false, ..round(60, 300.0) };
        assert!(matches!(longer.note(&seen, 0.0, 5e6), Shown::Nothing));
        assert_eq!(longer.tested_ns(), None);
        let again = [4e6, 2e6, 5e5].map(|arrived| longer.note(&round(60, arrived), 0.0, 5e6));
        assert!(matches!(again, [Shown::Nothing, Shown::Nothing, Shown::Test(_)]));
    }

    #[test]
    fn marks_and_losses_show_a_queue() {
        let marked = Seen { is_marked: true, ..round(60, 2.5e6) };
        assert!(matches!(tested().note(&marked, 0.0, 5e6), Shown::Queue));
        let lossy = Seen { loss: 0.1, ..round(60, 2.5e6) };
        assert!(matches!(tested().note(&lossy, 0.0, 5e6), Shown::Queue));
        assert!(matches!(tested().note(&lossy, 0.08, 5e6), Shown::Longer { .. }), "as is always lost");
        let mut longer = Longer::default();
        for arrived in [4e6, 2e6, 5e5, 5e5] {
            let marked = Seen { is_marked: true, ..round(60, arrived) };
            assert!(matches!(longer.note(&marked, 0.0, 5e6), Shown::Nothing));
        }
    }

    #[test]
    fn there_is_one_test_until_the_queue_was_short() {
        let mut longer = tested();
        let again = |longer: &mut Longer| {
            let rounds = [4e6, 2e6, 5e5];
            rounds.map(|arrived| matches!(longer.note(&round(60, arrived), 0.0, 5e6), Shown::Test(_)))
        };
        assert!(matches!(longer.note(&round(80, 2.5e6), 0.0, 5e6), Shown::Queue));
        assert_eq!(again(&mut longer), [false; 3]);
        longer.clear();
        assert_eq!(again(&mut longer), [false, false, true]);
    }
}
