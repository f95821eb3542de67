//! The one clock of a measurement: monotonic, in nanoseconds, shared by all processes of a host.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since some fixed moment (on Linux: the boot). Two processes of one host read the same clock.
#[must_use]
#[inline]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
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
