//! The thread that calls listeners for statuses: a listener that waits for another match, or that takes its time, does
//! not hold up discovery.

use std::sync::Arc;

use super::shared::Driver;

impl Driver {
    /// Makes sure that there is a thread for calls: a listener was set.
    pub(crate) fn start_calling(self: &Arc<Self>) {
        self.listeners.start(|| self.spawn("weir-listeners", run).is_ok());
    }
}

fn run(driver: &Driver) {
    while let Some(call) = driver.listeners.next(|| driver.is_stopping()) {
        call.make();
        // What the listener wrote.
        driver.flush_queued();
    }
    driver.listeners.clear();
}
