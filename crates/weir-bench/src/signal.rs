//! What the control channel tells a measurement that is under way, without the measurement having to listen.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Set by the thread that reads the control channel, looked at by the measuring one.
#[derive(Debug)]
pub struct Signal {
    stop: AtomicBool,
    sent: AtomicU64,
}

impl Signal {
    /// The run goes on.
    #[must_use]
    pub fn new() -> Self {
        Self { stop: AtomicBool::new(false), sent: AtomicU64::new(NOT_YET) }
    }

    /// The other end is done: it sent (or pinged) the numbers `0..sent`.
    pub fn finish(&self, sent: u64) {
        self.sent.store(sent, Ordering::Release);
        self.stop.store(true, Ordering::Release);
    }

    /// How many samples the other end sent, once it is done.
    #[must_use]
    pub fn sent(&self) -> Option<u64> {
        Some(self.sent.load(Ordering::Acquire)).filter(|sent| *sent != NOT_YET)
    }

    /// The flag for an end that only needs to know when to stop.
    #[must_use]
    pub fn stop(&self) -> &AtomicBool {
        &self.stop
    }
}

impl Default for Signal {
    fn default() -> Self {
        Self::new()
    }
}

const NOT_YET: u64 = u64::MAX;
