//! Intended send times.

use std::time::Duration;

use crate::nanos;

/// When each sample or datagram should be sent. Both ends of a run compute the same times from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    start_ns: u64,
    end_ns: u64,
    interval_ns: f64,
    measured_from: u64,
    count: u64,
}

impl Schedule {
    /// An endless schedule without warm-up.
    #[must_use]
    pub fn new(rate_per_s: f64, start_ns: u64) -> Self {
        let (end_ns, count) = (u64::MAX, u64::MAX);
        Self { start_ns, end_ns, interval_ns: 1e9 / rate_per_s, measured_from: 0, count }
    }

    /// The schedule of a run: `warmup`, then `duration` with at least `measured_min` sends.
    ///
    /// It ends no earlier than the last of those sends is due.
    #[must_use]
    pub fn of_run(
        rate_per_s: f64,
        start_ns: u64,
        warmup: Duration,
        duration: Duration,
        measured_min: u64,
    ) -> Self {
        let sends = |time: Duration| (time.as_secs_f64() * rate_per_s).ceil() as u64;
        let length = warmup.saturating_add(duration);
        let measured_from = sends(warmup);
        let count = sends(length).max(measured_from.saturating_add(measured_min));
        let endless = Self::new(rate_per_s, start_ns);
        let end_ns = start_ns.saturating_add(nanos(length)).max(endless.intended_ns(count));
        Self { end_ns, measured_from, count, ..endless }
    }

    /// When send `number` is intended, nanoseconds.
    #[must_use]
    #[inline]
    pub fn intended_ns(&self, number: u64) -> u64 {
        self.start_ns.saturating_add((number as f64 * self.interval_ns) as u64)
    }

    /// When the first send is intended.
    #[must_use]
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// When the run is over.
    #[must_use]
    #[inline]
    pub fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// Nanoseconds between two sends.
    #[must_use]
    pub fn interval_ns(&self) -> f64 {
        self.interval_ns
    }

    /// The first number after the warm-up.
    #[must_use]
    #[inline]
    pub fn measured_from(&self) -> u64 {
        self.measured_from
    }

    /// Number of sends, warm-up included.
    #[must_use]
    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Number of sends that are due at `now_ns`.
    #[must_use]
    #[inline]
    pub fn due(&self, now_ns: u64) -> u64 {
        if now_ns < self.start_ns {
            return 0;
        }
        // The division may be off by one in either direction; the times themselves decide.
        let mut due = ((now_ns - self.start_ns) as f64 / self.interval_ns) as u64 + 2;
        while due > 0 && self.intended_ns(due - 1) > now_ns {
            due -= 1;
        }
        due.min(self.count)
    }

    /// Number of sends that are due at `now_ns`, counted from `next`, which is due.
    #[must_use]
    #[inline]
    pub fn backlog(&self, next: u64, now_ns: u64) -> u64 {
        // On time, no division is needed to know that it is one.
        if now_ns < self.intended_ns(next + 1) { 1 } else { self.due(now_ns) - next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_are_due_at_their_times_and_never_before() {
        let second = Duration::from_secs(1);
        let schedule = Schedule::of_run(3.0, 100, second, second, 3);
        assert_eq!((schedule.measured_from(), schedule.count()), (3, 6));
        assert_eq!((schedule.due(99), schedule.due(100), schedule.due(101)), (0, 1, 1));
        for number in 0..6 {
            let intended_ns = schedule.intended_ns(number);
            assert_eq!((schedule.due(intended_ns - 1), schedule.due(intended_ns)), (number, number + 1));
        }
        assert_eq!(schedule.due(1 << 40), 6);
        assert_eq!(schedule.due(u64::MAX), 6);
    }

    #[test]
    fn sends_are_due_at_even_distances_without_drift() {
        let schedule = Schedule::new(3.0, 1000);
        assert_eq!(schedule.intended_ns(0), 1000);
        assert_eq!(schedule.intended_ns(1), 333_334_333);
        assert_eq!(schedule.intended_ns(3), 1_000_001_000);
        assert_eq!(schedule.intended_ns(3_000_000_000), 1_000_000_000_000_001_000);
    }

    #[test]
    fn a_run_that_is_too_short_for_its_rate_lasts_until_the_last_send_is_due() {
        let ms = Duration::from_millis(1);
        let schedule = Schedule::of_run(1.0, 500, ms, ms, 2);
        assert_eq!((schedule.measured_from(), schedule.count(), schedule.end_ns()), (1, 3, 3_000_000_500));
    }
}
