//! Waiting for a send's time, and bursts between two clock reads.

use std::thread;
use std::time::Duration;

use crate::now_ns;

/// How a thread waits for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Spins all the time.
    Spin,
    /// Sleeps all the time, and wakes up late.
    Sleep,
    /// Sleeps, and spins at the end.
    SleepThenSpin,
    /// Sleeps, and yields the processor at the end: an engine may have threads of its own there.
    SleepThenYield,
}

impl Idle {
    /// How long before the end a thread stops sleeping: a sleep may last that much longer than requested.
    const fn awake_ns(self) -> u64 {
        match self {
            Self::Spin => u64::MAX,
            Self::Sleep => 0,
            Self::SleepThenSpin => 300_000,
            Self::SleepThenYield => 400_000,
        }
    }
}

/// Waits until the clock shows `until_ns` or `is_stopped`; returns the time then.
///
/// A time in the past costs one clock read.
#[inline]
pub fn wait_until(until_ns: u64, idle: Idle, is_stopped: impl Fn() -> bool) -> u64 {
    loop {
        let now_ns = now_ns();
        let left_ns = until_ns.saturating_sub(now_ns);
        if left_ns == 0 || is_stopped() {
            return now_ns;
        }
        if left_ns >= idle.awake_ns() {
            thread::sleep(Duration::from_nanos((left_ns - idle.awake_ns() / 2).min(STOP_CHECK_NS)));
        } else if idle == Idle::SleepThenYield {
            thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Sleeps for `length`, and asks `reason` to stop every 200 ms; returns it if there is one.
pub fn pause<T>(length: Duration, mut reason: impl FnMut() -> Option<T>) -> Option<T> {
    const PART: Duration = Duration::from_millis(200);
    let mut left = length;
    loop {
        let part = left.min(PART);
        thread::sleep(part);
        left -= part;
        if left.is_zero() {
            return None;
        }
        if let Some(reason) = reason() {
            return Some(reason);
        }
    }
}

/// The longest sleep between two checks whether to stop.
const STOP_CHECK_NS: u64 = 20_000_000;

/// The number of sends between two clock reads. Grows and shrinks so that the clock is read about every 100 us: often
/// enough for the length of a run, too seldom to cost anything per send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst(u32);

impl Burst {
    /// The most sends between two clock reads.
    pub const MAX: u32 = 4096;

    /// One send.
    #[must_use]
    pub const fn new() -> Self {
        Self(1)
    }

    /// The number of sends now.
    #[must_use]
    #[inline]
    pub const fn count(self) -> u32 {
        self.0
    }

    /// Adapts to how long the last burst took.
    #[inline]
    pub fn adapt(&mut self, took_ns: u64) {
        self.0 = match took_ns {
            0..50_000 => (self.0 * 2).min(Self::MAX),
            50_000..200_000 => self.0,
            _ => (self.0 / 2).max(1),
        };
    }
}

impl Default for Burst {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_pause_ends_with_a_reason_and_a_short_one_by_itself() {
        assert_eq!(pause(Duration::from_secs(3600), || Some(7)), Some(7));
        assert_eq!(pause(Duration::from_millis(1), || Some(7)), None);
    }

    #[test]
    fn a_time_in_the_past_is_not_waited_for_and_a_stop_ends_a_wait() {
        for idle in [Idle::Spin, Idle::Sleep, Idle::SleepThenSpin, Idle::SleepThenYield] {
            assert!(wait_until(0, idle, || false) > 0);
            assert!(wait_until(u64::MAX, idle, || true) < u64::MAX);
        }
    }

    #[test]
    fn bursts_take_about_a_tenth_of_a_millisecond() {
        let mut burst = Burst::new();
        for (took_ns, count) in [(10, 2), (49_999, 4), (50_000, 4), (200_000, 2), (1 << 40, 1), (1 << 40, 1)]
        {
            burst.adapt(took_ns);
            assert_eq!(burst.count(), count);
        }
        (0..20).for_each(|_| burst.adapt(0));
        assert_eq!(burst.count(), Burst::MAX);
    }
}
