//! Times and durations on the wire (RTPS 2.5 §8.3.5.8, §9.3.2.1).

const NANOS: u64 = 1_000_000_000;

/// `Time_t`: seconds and 2^-32 seconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Whole seconds.
    pub seconds: u32,
    /// 2^-32 seconds.
    pub fraction: u32,
}

impl Timestamp {
    /// Not a time.
    pub const INVALID: Self = Self { seconds: u32::MAX, fraction: u32::MAX };

    /// Converts from nanoseconds since the Unix epoch, up to the year 2106.
    #[inline]
    pub const fn from_unix_nanos(nanos: u64) -> Self {
        Self { seconds: (nanos / NANOS) as u32, fraction: to_fraction(nanos % NANOS) }
    }

    /// Converts to nanoseconds since the Unix epoch.
    #[inline]
    pub const fn to_unix_nanos(self) -> u64 {
        self.seconds as u64 * NANOS + from_fraction(self.fraction)
    }
}

/// `Duration_t`: seconds and 2^-32 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    /// Whole seconds.
    pub seconds: i32,
    /// 2^-32 seconds.
    pub fraction: u32,
}

impl Duration {
    /// Zero.
    pub const ZERO: Self = Self { seconds: 0, fraction: 0 };
    /// Infinite.
    pub const INFINITE: Self = Self { seconds: i32::MAX, fraction: u32::MAX };

    /// Converts from nanoseconds; durations over 68 years become infinite.
    pub const fn from_nanos(nanos: u64) -> Self {
        let seconds = nanos / NANOS;
        if seconds >= i32::MAX as u64 {
            return Self::INFINITE;
        }
        Self { seconds: seconds as i32, fraction: to_fraction(nanos % NANOS) }
    }

    /// Converts to nanoseconds; `None` if infinite, zero if negative.
    pub const fn to_nanos(self) -> Option<u64> {
        match self.seconds {
            i32::MAX => None,
            ..0 => Some(0),
            seconds => Some(seconds as u64 * NANOS + from_fraction(self.fraction)),
        }
    }
}

/// Rounds up, so that a round trip returns the same nanoseconds.
#[inline]
const fn to_fraction(nanos: u64) -> u32 {
    ((nanos << 32).div_ceil(NANOS)) as u32
}

#[inline]
const fn from_fraction(fraction: u32) -> u64 {
    (fraction as u64 * NANOS) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_survive_the_way_there_and_back() {
        for nanos in [0, 1, 2, 499_999_999, 500_000_000, 999_999_998, 999_999_999, 1_700_000_000_123_456_789]
        {
            assert_eq!(Timestamp::from_unix_nanos(nanos).to_unix_nanos(), nanos);
            assert_eq!(Duration::from_nanos(nanos).to_nanos(), Some(nanos));
        }
        assert_eq!(Timestamp::from_unix_nanos(500_000_000).fraction, 1 << 31);
        assert_eq!(Duration::INFINITE.to_nanos(), None);
        assert_eq!(Duration::from_nanos(u64::MAX), Duration::INFINITE);
        assert_eq!(Duration { seconds: -1, fraction: 5 }.to_nanos(), Some(0));
    }
}
