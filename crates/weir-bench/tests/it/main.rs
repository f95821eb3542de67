//! The coordinator against agents that do not play along: small shell scripts in their place.

#![expect(clippy::unwrap_used, reason = "a helper of tests that can't go on fails the test")]

mod sessions;
