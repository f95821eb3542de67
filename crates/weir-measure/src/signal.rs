//! How the control connection reaches a running measurement.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by the thread at the control connection, read by the measuring threads.
#[derive(Debug, Default)]
pub struct Signal {
    stop: AtomicBool,
    sent: OnceLock<Vec<u64>>,
}

impl Signal {
    /// The measurement runs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the measurement at once.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Whether the measurement is to end at once.
    #[must_use]
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The flag for a loop that only needs to know when to stop.
    #[must_use]
    pub fn stop_flag(&self) -> &AtomicBool {
        &self.stop
    }

    /// The senders at the other end are done: sender `i` sent the numbers `0..sent[i]`. Only the first call counts.
    pub fn finish(&self, sent: Vec<u64>) {
        let _ = self.sent.set(sent);
    }

    /// How much each sender at the other end sent, once all are done.
    #[must_use]
    #[inline]
    pub fn sent(&self) -> Option<&[u64]> {
        self.sent.get().map(Vec::as_slice)
    }
}
