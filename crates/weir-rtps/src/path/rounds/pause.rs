//! Pauses: a link or a host that stands still for a moment, as a radio that sends a frame again, or a virtual machine
//! that waits for a processor. Afterwards, as much is carried as before.
//!
//! Taken for the rate of a slower link, a pause of 20 ms leaves a tenth of the rate where round trips are short, and
//! half a second passes until it is found again. But a link that becomes slower also begins with a pause, and one that
//! always works in bursts carries no more than their mean. So a pause does not count
//! - if what passed before and after it, in the same round, shows the rate,
//! - if as much had arrived in the round before,
//! - if pauses are rare.

use super::{BOTTLENECK_MIN_BYTES, PATIENCE_NS, QUEUED_MIN_NS, Rounds};
use crate::config;
use crate::path::Mark;
use crate::time::Time;

/// The longest time of a round in which nothing passed, on a paced path.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Pause {
    ns: u64,
    ended_at: Time,
    /// What passed at its end.
    bytes: u64,
}

impl Pause {
    /// Returns how much of it lies between two times, in nanoseconds.
    fn within(&self, from: Time, to: Time) -> u64 {
        let began_at = self.ended_at.0.saturating_sub(self.ns);
        self.ended_at.0.min(to.0).saturating_sub(began_at.max(from.0))
    }
}

impl Rounds {
    /// Records for how long nothing passed. Readers that show nothing until they are asked, or until their timer ends,
    /// make pauses of their own.
    pub(super) fn note_pause(&mut self, now: Time, mark: &Mark) {
        if mark.is_of_silent || mark.is_of_question {
            return;
        }
        let ns = now.nanos_since(self.passed_at.max(self.round.began_at));
        if ns > self.round.pause.ns {
            self.round.pause = Pause { ns, ended_at: now, bytes: mark.sent.all - self.passed.all };
        }
    }

    /// Returns whether what passes after a pause does not show yet how much the link carries.
    pub(super) fn has_just_paused(&self, now: Time) -> bool {
        let pause = &self.round.pause;
        now.nanos_since(pause.ended_at) < pause.ns / 4
            && self.may_excuse_pause(now.nanos_since(self.round.began_at))
    }

    /// Returns the bytes per second that have passed in a round, without its longest pause if that shows nothing.
    /// `length_ns`: how long it was.
    pub(super) fn passed_per_second(&mut self, (passed, length_ns): (f64, u64), marked_at: Time) -> f64 {
        let (pause, began_at) = (self.round.pause, self.round.marked_at);
        let is_excused = length_ns >= pause.ns + QUEUED_MIN_NS
            && passed >= (pause.bytes + BOTTLENECK_MIN_BYTES) as f64
            && self.may_excuse_pause(length_ns);
        if is_excused {
            self.excused = pause;
        }
        // Nothing was sent either while what was in flight stood still. That may be in the next round.
        let sent_ns = marked_at.nanos_since(began_at) - self.excused.within(began_at, marked_at);
        let per_second = |bytes: f64, ns: u64| bytes * 1e9 / ns.max(sent_ns).max(1) as f64;
        let rate = per_second(passed, length_ns);
        let known = self.rate.as_ref().filter(|_| is_excused).map_or(0.0, |rate| rate.bottleneck);
        rate.max(known.min(per_second(passed - pause.bytes as f64, length_ns.saturating_sub(pause.ns))))
    }

    /// Returns whether the longest pause of a round of `length_ns` may be no sign of a lower rate.
    fn may_excuse_pause(&self, length_ns: u64) -> bool {
        let (pause, before) = (&self.round.pause, &self.excused);
        let is_rare = before.ns == 0 || pause.ended_at.nanos_since(before.ended_at) >= PAUSE_EVERY * pause.ns;
        // A rate that nothing has confirmed yet may be wrong.
        let is_proven =
            || self.rate.as_ref().is_some_and(|it| self.last_rate >= it.bottleneck * PROVEN_SHARE);
        // A queue that overflows loses something, one that stands still does not.
        let is_whole = || self.passed_in_round().1 <= config::PATH_LOSS_SHARE;
        pause.ns >= PATIENCE_NS && 4 * pause.ns >= length_ns && is_rare && is_proven() && is_whole()
    }
}

/// Between two pauses that do not count is so many times as much.
const PAUSE_EVERY: u64 = 4;
/// A rate is proven if this share of it arrived in the round before.
const PROVEN_SHARE: f64 = 0.7;
