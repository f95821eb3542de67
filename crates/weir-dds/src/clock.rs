//! The engine's clocks.
//!
//! Monotonic time for the protocol, wall-clock time for samples.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use weir_rtps::time::Time;
use weir_wire::Timestamp;

use crate::error::{DdsError, Result};

/// Nanoseconds since the host was started; never zero.
///
/// Calls `clock_gettime` directly: `std::time::Instant` and its differences take 50 % longer,
/// several times per sample.
#[inline]
pub(crate) fn now() -> Time {
    let now = clock_gettime(ClockId::Monotonic);
    Time(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// Wall-clock time without a second clock read per sample.
///
/// The offset between the two clocks is measured periodically.
#[derive(Debug)]
pub(crate) struct WallClock {
    unix_nanos_at_zero: AtomicU64,
}

impl WallClock {
    pub(crate) fn new() -> Self {
        let clock = Self { unix_nanos_at_zero: AtomicU64::new(0) };
        clock.adjust();
        clock
    }

    /// Measures the offset again: the wall clock may have been set or slewed.
    pub(crate) fn adjust(&self) {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let at_zero = unix.saturating_sub(now().0);
        self.unix_nanos_at_zero.store(at_zero, Ordering::Relaxed);
        UNIX_NANOS_AT_ZERO.store(at_zero, Ordering::Relaxed);
    }

    /// Returns the wall-clock time at `now`.
    #[inline]
    pub(crate) fn timestamp(&self, now: Time) -> Timestamp {
        Timestamp::from_unix_nanos(self.unix_nanos_at_zero.load(Ordering::Relaxed).saturating_add(now.0))
    }
}

/// Wall-clock time at a monotonic time, by the offset that a participant of the process measured last.
pub(crate) fn wall_clock_at(time: Time) -> SystemTime {
    let nanos = UNIX_NANOS_AT_ZERO.load(Ordering::Relaxed).saturating_add(time.0);
    UNIX_EPOCH + Duration::from_nanos(nanos)
}

/// For samples, which do not refer to their participant.
static UNIX_NANOS_AT_ZERO: AtomicU64 = AtomicU64::new(0);

/// A wall-clock time as a timestamp.
///
/// # Errors
/// [`DdsError::BadParameter`]: before 1970 or after 2106, which no RTPS message can carry (RTPS 2.5, 9.3.2.2).
pub(crate) fn timestamp_of(time: SystemTime) -> Result<Timestamp> {
    let since_epoch = time.duration_since(UNIX_EPOCH).ok();
    // The greatest number of seconds stands for times that are not known.
    since_epoch
        .filter(|since_epoch| since_epoch.as_secs() < u64::from(u32::MAX))
        .map(|since_epoch| Timestamp::from_unix_nanos(since_epoch.as_nanos() as u64))
        .ok_or_else(|| {
            let text = "a source time stamp is before 1970 or after 2106: RTPS cannot send it";
            DdsError::BadParameter(text.to_owned())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_go_back_and_is_never_zero() {
        let first = now();
        assert!(first.0 > 0 && now() >= first);
    }

    #[test]
    fn a_time_that_rtps_cannot_carry_is_refused() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(timestamp_of(at(u64::from(u32::MAX) - 1)).unwrap().seconds, u32::MAX - 1);
        for time in [at(u64::from(u32::MAX)), at((1 << 32) + 5), UNIX_EPOCH - Duration::from_nanos(1)] {
            assert!(matches!(timestamp_of(time), Err(DdsError::BadParameter(_))), "{time:?}");
        }
    }

    #[test]
    fn wall_clock_time_is_that_of_the_system() {
        let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let clock = WallClock::new();
        let stamped = clock.timestamp(now()).to_unix_nanos();
        let after = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        // The wall clock may be slewed between the two reads of `adjust`.
        assert!(stamped + 1_000_000 >= before && stamped <= after + 1_000_000);
    }
}
