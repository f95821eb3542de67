//! How many system calls this process makes, as the kernel counts them.

use std::fs;
use std::io;

use perf_event::events::Tracepoint;
use perf_event::{Builder, Counter};
use thiserror::Error;

/// Counts the system calls of the thread that made it and of all threads that are started later, until it
/// is dropped.
///
/// The count is the kernel's own (`perf_event_open(2)` on the tracepoint `raw_syscalls:sys_enter`). While
/// it runs, every system call of the process takes the kernel's longer way through its entry: it is for
/// finding costs, not for measuring times.
#[derive(Debug)]
pub struct SystemCalls {
    counter: Counter,
}

/// Why system calls cannot be counted here.
#[derive(Debug, Error)]
pub enum SystemCallsError {
    /// No tracepoint.
    #[error(
        "the kernel shows no tracepoint for system calls (mount -t tracefs tracefs /sys/kernel/tracing, as root): {0}"
    )]
    NoTracepoint(io::Error),
    /// No permission.
    #[error("the kernel refuses the count (run as root, or sysctl -w kernel.perf_event_paranoid=-1): {0}")]
    Refused(io::Error),
}

impl SystemCalls {
    /// Begins to count. Call it before the threads are started that shall count as well.
    ///
    /// # Errors
    /// When the kernel has no such count or this process may not have it; the text says what to do.
    pub fn start() -> Result<Self, SystemCallsError> {
        let id = FOLDERS
            .iter()
            .map(|folder| fs::read_to_string(format!("{folder}/events/raw_syscalls/sys_enter/id")))
            .reduce(Result::or)
            .unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))
            .and_then(|text| text.trim().parse().map_err(io::Error::other))
            .map_err(SystemCallsError::NoTracepoint)?;
        // Entering a system call happens in the kernel: without it there is nothing to count.
        let counter = Builder::new(Tracepoint::with_id(id)).inherit(true).include_kernel().build();
        let mut counter = counter.map_err(SystemCallsError::Refused)?;
        counter.enable().map_err(SystemCallsError::Refused)?;
        Ok(Self { counter })
    }

    /// The count so far; `None` when the kernel does not give it any more.
    #[must_use]
    pub fn count(&mut self) -> Option<u64> {
        self.counter.read().ok()
    }
}

/// Where the tracepoints are, on newer and older kernels.
const FOLDERS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn calls_of_later_threads_count_or_the_reason_says_what_to_do() {
        match SystemCalls::start() {
            Ok(mut calls) => {
                let looking = thread::spawn(|| (0..100).for_each(|_| drop(fs::metadata("/"))));
                looking.join().unwrap();
                assert!(calls.count().unwrap() >= 100);
            }
            Err(reason) => assert!(reason.to_string().contains("root"), "{reason}"),
        }
    }
}
