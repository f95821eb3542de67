//! Sharing a bottleneck with a sender that fills its queue.
//!
//! Such a sender (a *rival*) sends faster until packets are lost, as TCP does with CUBIC. It keeps the queue of the
//! bottleneck long, whatever this path does. A path that yields to it gets little: 3 to 17 % of a link with a buffer of
//! four times what is in flight. While there is a rival, the path therefore behaves like CUBIC (RFC 9438): its window
//! grows until something is lost. (Copa has such a mode as well, with another window.)
//!
//! After a loss, all senders at the bottleneck slow down. If all of them are Weir's, the queue is short a moment later,
//! and there is no rival any more.

use super::rate::ECN_BETA;
use super::rounds::Seen;
use crate::math;
use crate::time::Time;

/// What is in flight beside a rival.
#[derive(Debug)]
pub(super) struct Rival {
    /// In segments, as in the RFC.
    window: f64,
    /// The window before the last loss, and after it.
    window_max: f64,
    start: f64,
    grows_since: Time,
    /// Nothing was lost yet, so that the window grows fast: who comes late would otherwise wait for long.
    is_first: bool,
    /// Rounds since the last test, and those left of one that runs.
    rounds: u32,
    test_rounds: u32,
    /// Bytes per second that arrived before the test.
    arrived: f64,
}

/// Counts the rounds in which the queue was never short.
#[derive(Debug, Default)]
pub(super) struct Suspicion {
    rounds: u32,
    /// Bytes per second that the bottleneck carried before.
    pub(super) rate: f64,
}

impl Suspicion {
    /// Nothing is suspected of a path that carried `rate` bytes per second before.
    pub(super) fn after(rate: f64) -> Self {
        Self { rate, rounds: 0 }
    }

    /// Records a round. `rate`: bytes per second that the bottleneck is known to carry. Returns the rival if the queue
    /// is never short: one that is only ours is short after each cycle.
    pub(super) fn note(&mut self, now: Time, seen: &Seen, is_short: bool, rate: f64) -> Option<Rival> {
        if is_short {
            *self = Self::after(rate);
            return None;
        }
        self.rounds += u32::from(seen.is_limited);
        if self.rounds < SUSPICIOUS_ROUNDS {
            return None;
        }
        self.rounds = 0;
        let window =
            (self.rate.max(seen.arrived) * seen.mean_ns as f64 / 1e9 / SEGMENT * BETA).max(WINDOW_MIN);
        Some(Rival {
            window,
            window_max: window,
            start: window,
            grows_since: now,
            is_first: true,
            rounds: 0,
            test_rounds: 0,
            arrived: seen.arrived,
        })
    }
}

impl Rival {
    /// Takes what a round has shown. Returns the bytes per second that the bottleneck carries for us when the rival is
    /// gone.
    pub(super) fn note(&mut self, now: Time, seen: &Seen, usual_loss: f64, is_short: bool) -> Option<f64> {
        if self.test_rounds > 0 {
            self.test_rounds -= 1;
            let is_gone = self.test_rounds == 0 && is_short;
            return is_gone.then_some(self.arrived);
        }
        self.rounds += 1;
        self.arrived = seen.arrived;
        let has_lost = seen.loss > 2.0 * usual_loss;
        if has_lost {
            self.reduce(now, BETA);
        } else if seen.is_marked {
            self.reduce(now, ECN_BETA);
        } else if seen.is_limited {
            self.grow(now, seen);
        }
        if has_lost || self.rounds >= TEST_AFTER {
            (self.rounds, self.test_rounds) = (0, TEST_ROUNDS);
        }
        None
    }

    /// Returns the bytes that may be in flight.
    pub(super) fn window_bytes(&self) -> f64 {
        self.window * SEGMENT
    }

    /// Returns whether less is sent to see whether the rival is still there.
    pub(super) fn is_testing(&self) -> bool {
        self.test_rounds > 0
    }

    fn reduce(&mut self, now: Time, beta: f64) {
        // Leaves room for those who began later (RFC 9438, 4.7).
        let is_smaller = self.window < self.window_max;
        self.window_max = if is_smaller { self.window * (1.0 + beta) / 2.0 } else { self.window };
        self.window = (self.window * beta).max(WINDOW_MIN);
        self.is_first = false;
        (self.start, self.grows_since) = (self.window, now);
    }

    fn grow(&mut self, now: Time, seen: &Seen) {
        if self.is_first {
            self.window *= FIRST_RISE;
            return;
        }
        let until_max = math::cbrt((self.window_max - self.start).max(0.0) / C);
        let round_trip = seen.mean_ns as f64 / 1e9;
        let elapsed = now.since(self.grows_since).as_secs_f64();
        let distance = elapsed + round_trip - until_max;
        let cubic = C * (distance * distance * distance) + self.window_max.max(self.start);
        // What Reno would have (RFC 9438, 4.3).
        let reno = self.start + 3.0 * (1.0 - BETA) / (1.0 + BETA) * elapsed / round_trip;
        self.window = cubic.max(reno).clamp(self.window, self.window * RISE_MAX);
    }
}

/// Bytes of a packet.
const SEGMENT: f64 = 1500.0;
/// Growth, and what is left after a loss (RFC 9438, 4.2 and 4.6).
const C: f64 = 0.4;
const BETA: f64 = 0.7;
const WINDOW_MIN: f64 = 4.0;
const FIRST_RISE: f64 = 1.25;
const RISE_MAX: f64 = 1.5;
/// Two cycles.
const SUSPICIOUS_ROUNDS: u32 = 16;
/// After so many rounds it is tested whether there is still a rival, if nothing is lost before.
const TEST_AFTER: u32 = 64;
const TEST_ROUNDS: u32 = 3;
