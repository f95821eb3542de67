//! What follows when a thread of the engine panics: the participant fails.
//!
//! Without its receive or timer thread a participant would be deaf, and seem to wait for data. So the first panic of an
//! own thread ends the participant: it leaves the domain, waiting threads are woken, and calls report the failure.
//! Application code that panics (listeners) is caught where it is called and fails nothing.
//!
//! The path of a sample does not look for a failure. The failure instead makes calls take slow paths, which look:
//! writers refuse every sample, the flag for samples held back stays set, and the role of receiving is taken for ever.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::shared::Driver;
use crate::error::{DdsError, Result};

/// The panic that ended a participant.
#[derive(Debug)]
pub(crate) struct Failure {
    thread: String,
    panic: String,
}

impl Driver {
    /// Runs the body of a thread. A panic in it is the participant's failure.
    pub(super) fn run_thread(&self, name: &str, body: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
            self.fail(name, text_of(&*panic));
        }
    }

    /// Returns the failure as an error, if the participant has failed.
    pub(crate) fn check(&self) -> Result<()> {
        self.failure().map_or(Ok(()), Err)
    }

    /// Returns the failure as an error, if the participant has failed.
    pub(crate) fn failure(&self) -> Option<DdsError> {
        let Failure { thread, panic } = self.failure.get()?;
        Some(DdsError::ThreadFailed { thread: thread.clone(), panic: panic.clone() })
    }

    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }

    /// Returns whether the participant's threads are to go on.
    pub(super) fn is_running(&self) -> bool {
        !self.is_stopping() && !self.has_failed()
    }

    /// Waits in a call that waits for what a failed participant cannot receive, so that an application that calls it
    /// again and again does not use up a processor.
    #[cold]
    pub(super) fn wait_in_vain(&self, left: Duration) {
        std::thread::sleep(left.min(PAUSE));
    }

    fn fail(&self, thread: &str, panic: String) {
        if self.failure.set(Failure { thread: thread.to_owned(), panic }).is_err() {
            return;
        }
        self.outlet.note_queued();
        // Peers need not wait for the end of the lease. Discovery itself may be what failed.
        let _ = catch_unwind(AssertUnwindSafe(|| self.with_discovery(|core, now| core.close(now))));
        self.routes.table().writers.values().for_each(|writer| writer.lane.close());
        self.outlet.timers.wake();
        self.listeners.wake();
        self.channel.close();
        self.discovery.announce_change();
    }
}

/// Returns the text of a panic.
fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without text").to_owned()
}

/// Longest wait of a call on a failed participant.
const PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests;
