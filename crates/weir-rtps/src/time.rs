//! The protocol's time: nanoseconds on the caller's monotonic clock.
//!
//! This crate never reads a clock; every entry point takes the time. The caller chooses the origin:
//! a driver counts from the start of its process, a simulation from zero.

use core::ops::Add;
use core::time::Duration;

/// A point on the caller's monotonic clock, in nanoseconds since the caller's origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

impl Time {
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// Later than any other time: "never".
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the time from `earlier` to `self`; zero if `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the nanoseconds from `earlier` to `self`; zero if `earlier` is later.
    #[inline]
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the next multiple of a period from the origin, or this time if it is one.
    #[inline]
    pub fn round_up(self, period: Duration) -> Self {
        let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
        Self(self.0.checked_next_multiple_of(period_ns).unwrap_or(u64::MAX))
    }

    /// Adds nanoseconds, saturating at [`Time::MAX`].
    #[inline]
    pub const fn plus_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    #[inline]
    fn add(self, duration: Duration) -> Self {
        self.plus_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Time::ZERO.since(Time(5)), Duration::ZERO);
        assert_eq!(Time::MAX + Duration::from_secs(1), Time::MAX);
        assert_eq!(Time(7).since(Time(2)), Duration::from_nanos(5));
        assert_eq!(Time(1) + Duration::MAX, Time::MAX);
        assert_eq!(Time(u64::MAX - 1).round_up(Duration::from_secs(1)), Time::MAX);
    }

    #[test]
    fn a_multiple_of_the_period_stays_when_it_is_rounded_up() {
        let period = Duration::from_nanos(5);
        assert_eq!([0, 1, 5, 6].map(|at| Time(at).round_up(period).0), [0, 5, 5, 10]);
        assert_eq!(Time(7).round_up(Duration::ZERO), Time(7));
    }
}
