//! The time from a repair request to the repair.

use core::time::Duration;

use crate::config;

/// Smoothed time from a repair request to the repair, and its variation (as in RFC 6298, section
/// 2).
#[derive(Debug)]
pub(super) struct RoundTrip {
    pub(super) mean_ns: u64,
    variation_ns: u64,
    /// The last one.
    last_ns: u64,
    is_measured: bool,
}

impl RoundTrip {
    /// Nothing is measured yet: the first guess is [`config::NACK_RETRY_FIRST`].
    pub(super) const fn new() -> Self {
        let first_ns = config::NACK_RETRY_FIRST.as_nanos() as u64;
        Self { mean_ns: first_ns, variation_ns: 0, last_ns: first_ns, is_measured: false }
    }

    /// Adds a measurement.
    pub(super) fn measure(&mut self, ns: u64) {
        self.last_ns = ns;
        if self.is_measured {
            self.variation_ns = (self.variation_ns * 3 + self.mean_ns.abs_diff(ns)) / 4;
            self.mean_ns = (self.mean_ns * 7 + ns) / 8;
        } else {
            (self.mean_ns, self.variation_ns, self.is_measured) = (ns, ns / 2, true);
        }
    }

    /// Raises the first guess, until something is measured. Repeated requests cannot be measured,
    /// so a guess that is too short would never be corrected otherwise.
    pub(super) fn raise_guess(&mut self, to: Duration) {
        if !self.is_measured {
            self.mean_ns = to.as_nanos() as u64;
        }
    }

    /// Corrects what is much too short, when a repair arrives that was requested several times: `ns` after the first
    /// request. What was measured was an original or a probe that happened to arrive then.
    pub(super) fn correct(&mut self, ns: u64) {
        // What takes longer includes an interruption.
        let ns = ns.min(config::NACK_RETRY_MAX.as_nanos() as u64);
        if self.is_measured && ns > MUCH_TOO_SHORT * self.patience_ns() {
            self.mean_ns *= 2;
            self.last_ns = self.last_ns.max(self.mean_ns / 4);
        }
    }

    /// Raises the variation after a request was repeated although its repair was in flight.
    pub(super) fn raise_variation(&mut self) {
        self.variation_ns = (self.variation_ns + self.mean_ns / 16).min(self.mean_ns);
    }

    /// Returns the smoothed time, if a repair has arrived.
    pub(super) fn measured_ns(&self) -> Option<u64> {
        self.is_measured.then_some(self.mean_ns)
    }

    /// The time after which an answer to a request may have come.
    pub(super) fn soonest_ns(&self) -> u64 {
        self.last_ns.min(self.mean_ns) / 8 * 7
    }

    /// The time after which a request is repeated, in case that it is lost.
    /// `repeats`: how often it was.
    pub(super) fn repeat_delay(&self, repeats: u8) -> Option<Duration> {
        // The mean may include time in a queue that has passed meanwhile.
        let round_trip_ns = self.last_ns.clamp(self.mean_ns / 8, self.mean_ns);
        let delay = Duration::from_nanos(round_trip_ns / REPEATS_PER_ROUND_TRIP);
        self.is_measured.then(|| delay.max(config::NACK_RETRY_MIN) * (1 << repeats))
    }

    /// The time after which a repair counts as lost.
    pub(super) fn patience_ns(&self) -> u64 {
        self.mean_ns + (self.variation_ns * 4).max(self.mean_ns / 8)
    }

    /// The minimum time between requests, unless the writer wants an answer. It groups repairs into
    /// fewer send calls and is short compared with the round trip.
    pub(super) fn pace_ns(&self) -> u64 {
        let pace_max_ns = config::NACK_PACE_MAX.as_nanos() as u64;
        if self.is_measured { (self.mean_ns / config::NACK_PACE_SHARE).min(pace_max_ns) } else { 0 }
    }

    pub(super) fn retry_delay(&self) -> Duration {
        Duration::from_nanos(self.patience_ns()).clamp(config::NACK_RETRY_MIN, config::NACK_RETRY_MAX)
    }
}

/// Losses alone seldom make a repair take so many times as long as it is waited for.
const MUCH_TOO_SHORT: u64 = 8;
/// A request is repeated so often within a round trip.
const REPEATS_PER_ROUND_TRIP: u64 = 4;
