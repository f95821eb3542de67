//! Integration tests: whole protocols on a network that exists only in memory.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod discovery;
