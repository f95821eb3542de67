//! What a case that is being measured has found so far, for a view of it.

use std::sync::Mutex;

use serde::{Deserialize, Serialize};

/// What an end has measured so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveFigures {
    /// Time since the end of the warm-up, nanoseconds.
    pub measured_ns: u64,
    /// Samples that arrived since then. Latency: round trips that completed.
    pub received: u64,
    /// Samples missing now: lost, or not yet sent again.
    pub missing: u64,
    /// Median of the latencies in the current step of the series, microseconds; `None`: there was none.
    pub p50_us: Option<f64>,
    /// Their 99th percentile.
    pub p99_us: Option<f64>,
    /// Their maximum.
    pub max_us: Option<f64>,
}

/// Where the measuring thread leaves its figures for another thread. It never waits there.
#[derive(Debug, Default)]
pub struct LiveSlot(Mutex<Option<LiveFigures>>);

impl LiveSlot {
    /// Leaves figures, unless the other thread reads the last ones at this moment.
    pub fn put(&self, figures: LiveFigures) {
        if let Ok(mut slot) = self.0.try_lock() {
            *slot = Some(figures);
        }
    }

    /// Returns the last figures; `None`: there are none yet.
    #[must_use]
    pub fn get(&self) -> Option<LiveFigures> {
        *self.0.lock().ok()?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measuring_thread_never_waits_for_a_reader() {
        let slot = LiveSlot::default();
        assert_eq!(slot.get(), None);
        let figures = |received| LiveFigures { received, ..LiveFigures::default() };
        slot.put(figures(1));
        {
            let _reading = slot.0.lock().unwrap();
            slot.put(figures(2));
        }
        assert_eq!(slot.get(), Some(figures(1)));
        slot.put(figures(3));
        assert_eq!(slot.get(), Some(figures(3)));
    }
}
