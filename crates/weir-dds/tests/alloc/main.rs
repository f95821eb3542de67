//! Resource use of a process: allocations of all of its threads, so these tests run one at a time,
//! and the threads left after everything is dropped.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod paths;
mod support;
mod threads;
