//! What idle processors do to latencies, as a short check measured it.

use serde::{Deserialize, Serialize};

/// How long a waiting thread took to wake up after its processor had been idle: the median time from the send call of a
/// datagram on another processor to the return of the receive call, over loopback.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeUp {
    /// How long the processor had nothing to do before, microseconds.
    pub slept_us: u64,
    /// With idle states as they are, nanoseconds.
    pub idle_ns: u64,
    /// With the processors kept out of idle states, nanoseconds.
    pub awake_ns: u64,
}

impl WakeUp {
    /// A difference below this share is noise.
    const SHARE: f64 = 0.25;
    /// A difference below this is noise, nanoseconds.
    const LEAST_NS: u64 = 1_000;

    /// Returns whether idle states made the wake-up notably longer.
    #[must_use]
    pub fn is_slowed(&self) -> bool {
        let more_ns = self.idle_ns.saturating_sub(self.awake_ns);
        more_ns >= Self::LEAST_NS && more_ns as f64 > Self::SHARE * self.awake_ns as f64
    }

    /// Returns whether idle states matter on a host with these wake-ups: then an engine that sleeps a little less than
    /// its baseline wakes up sooner, and can seem faster.
    #[must_use]
    pub fn matters(all: &[Self]) -> bool {
        all.iter().any(Self::is_slowed)
    }

    /// Describes wake-ups, e.g. `after 20 / 1000 us of sleep in 4.1 / 35.2 us, kept awake in 4.0 / 4.2 us`; empty
    /// without any.
    #[must_use]
    pub fn describe(all: &[Self]) -> String {
        let list = |of: &dyn Fn(&Self) -> String| all.iter().map(of).collect::<Vec<_>>().join(" / ");
        if all.is_empty() {
            return String::new();
        }
        let us = |ns: u64| format!("{:.1}", ns as f64 / 1e3);
        format!(
            "after {} us of sleep in {} us, kept awake in {} us",
            list(&|it| it.slept_us.to_string()),
            list(&|it| us(it.idle_ns)),
            list(&|it| us(it.awake_ns))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idling_matters_if_a_wake_up_takes_a_quarter_and_a_microsecond_longer() {
        let of = |idle_ns, awake_ns| WakeUp { slept_us: 200, idle_ns, awake_ns };
        assert!(of(35_000, 4_000).is_slowed());
        assert!(!of(4_900, 4_000).is_slowed(), "less than a microsecond");
        assert!(!of(12_000, 10_000).is_slowed(), "less than a quarter");
        // Spinners may slow a machine down that wakes up at once.
        assert!(!of(4_000, 35_000).is_slowed());
        assert!(WakeUp::matters(&[of(4_000, 4_000), of(35_000, 4_000)]) && !WakeUp::matters(&[]));
    }

    #[test]
    fn wake_ups_are_described_in_microseconds() {
        let all = [(20, 4_123, 4_000), (1_000, 35_170, 4_240)];
        let all = all.map(|(slept_us, idle_ns, awake_ns)| WakeUp { slept_us, idle_ns, awake_ns });
        let text = "after 20 / 1000 us of sleep in 4.1 / 35.2 us, kept awake in 4.0 / 4.2 us";
        assert_eq!(WakeUp::describe(&all), text);
        assert_eq!(WakeUp::describe(&[]), "");
    }
}
