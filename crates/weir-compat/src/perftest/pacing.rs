//! Writing at a rate, against a schedule: a stall is made up for.

use std::time::Duration;

pub use weir_measure::Idle as Pace;
use weir_measure::{Schedule, wait_until};

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

impl Rate {
    /// Waits until sample `sequence` of a run that began at `start_ns` is due; not at all when it is late. `is_stopped`
    /// ends the wait.
    pub(super) fn wait(self, start_ns: u64, sequence: u64, is_stopped: impl Fn() -> bool) {
        let schedule = Schedule::new(self.per_s.max(1) as f64, start_ns);
        wait_until(schedule.intended_ns(sequence), self.pace, is_stopped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_sample_does_not_wait() {
        Rate { per_s: 1, pace: Pace::Sleep }.wait(0, 0, || false);
        Rate { per_s: 1, pace: Pace::Sleep }.wait(u64::MAX, 9, || true);
    }
}
