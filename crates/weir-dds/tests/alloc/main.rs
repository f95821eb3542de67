//! What a process pays for samples: allocations, counted over all of its threads, so one test at a time; and the
//! threads that are left when everything is dropped.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod paths;
mod support;
mod threads;
