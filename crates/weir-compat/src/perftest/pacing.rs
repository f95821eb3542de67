//! Writing at a rate, against a schedule: a stall is made up for.

use std::time::Duration;

use weir_measure::{Idle, Schedule, wait_until};

/// How the publisher waits for the next sample's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// By asking the clock.
    Spin,
    /// By sleeping.
    Sleep,
}

/// So many samples each second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Samples per second; at least 1.
    pub per_s: u64,
    /// How to wait.
    pub pace: Pace,
}

/// How often a publisher checks whether its subscribers are still there, at least.
pub(super) const CHECK: Duration = Duration::from_millis(200);

/// When each sample is due, and how to wait for that.
#[derive(Debug)]
pub(super) struct Paced {
    schedule: Schedule,
    idle: Idle,
}

impl Rate {
    /// The samples from `start_ns` on.
    pub(super) fn paced(self, start_ns: u64) -> Paced {
        let idle = match self.pace {
            Pace::Spin => Idle::Spin,
            Pace::Sleep => Idle::Sleep,
        };
        Paced { schedule: Schedule::new(self.per_s.max(1) as f64, start_ns), idle }
    }
}

impl Paced {
    /// Waits until sample `sequence` is due; not at all when it is late. `is_stopped` ends the wait.
    pub(super) fn wait(&self, sequence: u64, is_stopped: impl Fn() -> bool) {
        wait_until(self.schedule.intended_ns(sequence), self.idle, is_stopped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_sample_does_not_wait() {
        Rate { per_s: 1, pace: Pace::Sleep }.paced(0).wait(0, || false);
        Rate { per_s: 1, pace: Pace::Sleep }.paced(u64::MAX).wait(9, || true);
    }
}
