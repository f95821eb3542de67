//! Wait strategies.
//!
//! Sleeping threads are slow to wake; spinning threads occupy a processor.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How often a thread that spins on the only processor it may use yields it: a yield that no thread
/// takes costs about as much as three checks.
pub(crate) const YIELD_EVERY: Duration = Duration::from_micros(20);

/// What a thread does while there is nothing to receive.
///
/// Text form: `block`, `spin` or `spin:MICROSECONDS`.
///
/// [`WaitStrategy::Spin`] also spins in a process restricted to one processor, as its peer may run
/// on another. The thread then yields regularly so that it does not starve the sender.
///
/// ```
/// use std::time::Duration;
/// use weir_dds::WaitStrategy;
///
/// let strategy = WaitStrategy::SpinThenBlock(Duration::from_micros(50));
/// assert_eq!(strategy.to_string(), "spin:50");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WaitStrategy {
    /// Sleeps until something arrives.
    #[default]
    Block,
    /// Polls continuously.
    Spin,
    /// Polls for some time, then sleeps.
    SpinThenBlock(Duration),
}

impl WaitStrategy {
    /// Returns how long to spin before sleeping; `None`: spin without sleeping.
    pub(crate) fn spin_time(self) -> Option<Duration> {
        match self {
            Self::Block => Some(Duration::ZERO),
            Self::Spin => None,
            Self::SpinThenBlock(time) => Some(time),
        }
    }
}

impl fmt::Display for WaitStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block => f.write_str("block"),
            Self::Spin => f.write_str("spin"),
            Self::SpinThenBlock(time) => write!(f, "spin:{}", time.as_micros()),
        }
    }
}

/// A text is not a wait strategy.
///
/// ```
/// use weir_dds::WaitStrategy;
///
/// assert!("sleep".parse::<WaitStrategy>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid wait strategy: use block, spin or spin:MICROSECONDS")]
pub struct NotAWaitStrategy;

impl FromStr for WaitStrategy {
    type Err = NotAWaitStrategy;

    fn from_str(text: &str) -> Result<Self, NotAWaitStrategy> {
        match text.split_once(':') {
            None if text == "block" => Ok(Self::Block),
            None if text == "spin" => Ok(Self::Spin),
            Some(("spin", micros)) => {
                let micros = micros.parse().map_err(|_| NotAWaitStrategy)?;
                Ok(Self::SpinThenBlock(Duration::from_micros(micros)))
            }
            _ => Err(NotAWaitStrategy),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_read_as_they_are_written() {
        for text in ["block", "spin", "spin:50"] {
            assert_eq!(text.parse::<WaitStrategy>().unwrap().to_string(), text);
        }
        for text in ["", "Block", "spin:", "spin:x", "block:5"] {
            assert!(text.parse::<WaitStrategy>().is_err(), "{text}");
        }
    }
}
