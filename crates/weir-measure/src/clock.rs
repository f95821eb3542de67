//! The clock of a measurement: monotonic, in nanoseconds, the same for all processes of a host.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since a fixed moment (on Linux: boot).
#[must_use]
#[inline]
pub fn now_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// Nanoseconds of processor time that the calling thread has used.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    read_ns(ClockId::ThreadCPUTime)
}

/// A duration in nanoseconds; saturates at 584 years.
#[must_use]
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[inline]
fn read_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_goes_back() {
        let mut last = now_ns();
        for _ in 0..1000 {
            let now = now_ns();
            assert!(now >= last);
            last = now;
        }
    }
}
