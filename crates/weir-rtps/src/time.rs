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

    /// Returns the time so many nanoseconds before; the origin if there is none.
    #[inline]
    #[must_use]
    pub const fn before(self, nanos: u64) -> Self {
        Self(self.0.saturating_sub(nanos))
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

/// A time or none, as large as a time. [`Time::MAX`], which is never, is none.
///
/// For state of which there is one for each match: in a large domain, there are thousands of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct OptionTime(Time);

impl OptionTime {
    pub(crate) const NONE: Self = Self(Time::MAX);

    #[inline]
    pub(crate) const fn some(time: Time) -> Self {
        Self(time)
    }

    #[inline]
    pub(crate) const fn get(self) -> Option<Time> {
        if self.0.0 == u64::MAX { None } else { Some(self.0) }
    }
}

impl Default for OptionTime {
    fn default() -> Self {
        Self::NONE
    }
}

impl core::fmt::Debug for OptionTime {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_or_none_is_as_large_as_a_time() {
        assert_eq!((OptionTime::some(Time(0)).get(), OptionTime::NONE.get()), (Some(Time(0)), None));
        assert_eq!((OptionTime::some(Time::MAX), size_of::<OptionTime>()), (OptionTime::NONE, 8));
    }

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
