//! The thread that calls listeners for statuses.
//!
//! Thus a listener that waits for another match, or is slow, does not hold up discovery.

use std::sync::Arc;

use super::shared::Driver;

impl Driver {
    /// Starts the thread, if needed. Called when a listener is set.
    pub(crate) fn start_calling(self: &Arc<Self>) {
        self.listeners.start(|| self.spawn("weir-listeners", run).is_ok());
    }
}

fn run(driver: &Driver) {
    while let Some(call) = driver.listeners.next(|| !driver.is_running()) {
        call.make();
        // Samples that the listener wrote may be held back.
        driver.flush_queued();
    }
    driver.listeners.clear();
}
