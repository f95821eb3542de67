//! The `weir` command with other engines built in.

#![expect(clippy::unwrap_used, reason = "a helper of tests that can't go on fails the test")]

mod sessions;
#[path = "../../../../crates/weir-cli/tests/it/support.rs"]
#[expect(dead_code, reason = "the tests of weir-cli use the rest")]
mod support;
