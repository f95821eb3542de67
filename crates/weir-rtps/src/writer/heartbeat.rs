//! When a writer tells its readers what there is.

use core::time::Duration;

use crate::config;
use crate::time::Time;

/// When the next HEARTBEAT is due.
#[derive(Debug, Default)]
pub(super) struct Heartbeat {
    pub(super) count: u32,
    /// Charge of everything that had been sent at the last HEARTBEAT.
    pub(super) charged: u64,
    /// A HEARTBEAT to everybody is due with the next transmission.
    pub(super) is_due: bool,
    pub(super) next_at: Option<Time>,
    pub(super) delay: Duration,
    /// A write was refused and the timer was not set for that.
    pub(super) is_awaited: bool,
    /// The timer was set for a write that was refused since something was acknowledged last. Once: a reader that
    /// takes nothing answers every HEARTBEAT, and the answers must not bring on more.
    pub(super) is_hurried: bool,
    /// When the HEARTBEAT was sent that was not answered yet.
    pub(super) asked_at: Option<Time>,
    /// Smoothed time from a HEARTBEAT to the next acknowledgement.
    pub(super) round_trip: Option<Duration>,
    /// Readers have asked for something again: losses are to be expected until this.
    pub(super) lossy_until: Option<Time>,
    /// How often the last sample was sent again without being asked for since something was acknowledged.
    pub(super) probes: u8,
}

impl Heartbeat {
    /// Takes note that everybody is told of everything that was sent, `charged` in all.
    pub(super) fn sent(&mut self, now: Time, charged: u64) {
        self.charged = charged;
        self.next_at = Some(now + self.delay);
        self.asked_at.get_or_insert(now);
    }

    /// An acknowledgement arrived.
    pub(super) fn answered(&mut self, now: Time) {
        if let Some(asked_at) = self.asked_at.take() {
            let measured = now.since(asked_at);
            self.round_trip = Some(self.round_trip.map_or(measured, |mean| (mean * 7 + measured) / 8));
        }
    }

    /// Somebody waits for room: an answer that does not come within about two round trips was lost.
    pub(super) fn hurry(&mut self, now: Time) {
        (self.is_awaited, self.is_hurried) = (false, true);
        let delay = self.round_trip.map_or(config::HEARTBEAT_DELAY_MIN, |mean| mean * 2);
        self.delay = delay.clamp(config::HEARTBEAT_DELAY_AWAITED_MIN, config::HEARTBEAT_DELAY_MIN);
        self.next_at = Some(self.next_at.map_or(now + self.delay, |at| at.min(now + self.delay)));
    }
}
