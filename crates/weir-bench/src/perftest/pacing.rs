//! Writing at a rate: against a schedule, so that a stall is made up for.

use std::time::Duration;

use crate::clock;

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

/// Pauses for `length`; `trouble` is asked now and then and ends the pause.
pub(super) fn pause<T>(length: Duration, mut trouble: impl FnMut() -> Option<T>) -> Option<T> {
    let mut left = length;
    loop {
        let part = left.min(LOOK_AROUND);
        std::thread::sleep(part);
        left -= part;
        if left.is_zero() {
            return None;
        }
        if let Some(trouble) = trouble() {
            return Some(trouble);
        }
    }
}

/// How often a publisher looks whether its subscribers are still there, at least.
pub(super) const LOOK_AROUND: Duration = Duration::from_millis(200);

/// When each sample is due.
#[derive(Debug)]
pub(super) struct Schedule {
    rate: Rate,
    start_ns: u64,
}

impl Schedule {
    pub(super) fn new(rate: Rate, start_ns: u64) -> Self {
        Self { rate, start_ns }
    }

    /// When sample number `sequence` is due, on the clock of `start_ns`.
    fn due_ns(&self, sequence: u64) -> u64 {
        let ns = u128::from(sequence) * 1_000_000_000 / u128::from(self.rate.per_s.max(1));
        self.start_ns.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Waits until sample number `sequence` is due; not at all when it is late. `is_stopped` ends the wait.
    pub(super) fn wait(&self, sequence: u64, is_stopped: impl Fn() -> bool) {
        let due_ns = self.due_ns(sequence);
        loop {
            let now_ns = clock::now_ns();
            if now_ns >= due_ns || is_stopped() {
                return;
            }
            match self.rate.pace {
                Pace::Spin => std::hint::spin_loop(),
                Pace::Sleep => {
                    let left = Duration::from_nanos(due_ns - now_ns);
                    std::thread::sleep(left.min(SLEEP_MAX));
                }
            }
        }
    }
}

/// The longest sleep before the publisher looks whether it shall stop.
const SLEEP_MAX: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_due_at_even_distances_without_drift() {
        let schedule = Schedule::new(Rate { per_s: 3, pace: Pace::Spin }, 1000);
        assert_eq!(schedule.due_ns(0), 1000);
        assert_eq!(schedule.due_ns(1), 333_334_333);
        assert_eq!(schedule.due_ns(3), 1_000_001_000);
        assert_eq!(schedule.due_ns(3_000_000_000), 1_000_000_000_000_001_000);
    }

    #[test]
    fn a_long_pause_ends_with_trouble_and_a_short_one_by_itself() {
        assert_eq!(pause(Duration::from_secs(3600), || Some(7)), Some(7));
        assert_eq!(pause(Duration::from_millis(1), || Some(7)), None);
    }

    #[test]
    fn a_late_sample_does_not_wait() {
        let schedule = Schedule::new(Rate { per_s: 1, pace: Pace::Sleep }, 0);
        schedule.wait(0, || false);
        let far = Schedule::new(Rate { per_s: 1, pace: Pace::Sleep }, u64::MAX);
        far.wait(9, || true);
    }
}
