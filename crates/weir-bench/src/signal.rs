//! What the control channel tells a measurement that is under way, without the measurement having to listen.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by the thread that reads the control channel, looked at by the measuring one.
#[derive(Debug, Default)]
pub struct Signal {
    stop: AtomicBool,
    sent: OnceLock<Vec<u64>>,
}

impl Signal {
    /// The run goes on.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The other ends are done: publisher (or pinger) `i` sent the numbers `0..sent[i]`. Only the
    /// first call counts.
    pub fn finish(&self, sent: Vec<u64>) {
        let _ = self.sent.set(sent);
        self.stop.store(true, Ordering::Release);
    }

    /// How many samples each of the other ends sent, once all are done.
    #[must_use]
    pub fn sent(&self) -> Option<&[u64]> {
        self.sent.get().map(Vec::as_slice)
    }

    /// The flag for an end that only needs to know when to stop.
    #[must_use]
    pub fn stop(&self) -> &AtomicBool {
        &self.stop
    }
}
