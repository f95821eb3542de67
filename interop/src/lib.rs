//! Tests that need something from outside, and what they share. Not part of the product.
//!
//! - [`requirement`]: what a test needs from the machine, and what happens when it is not there.
//! - [`simulation`]: participants with a writer and a reader each on a simulated network.
//! - [`tshark`]: Wireshark's dissector as an independent judge of our packets.
//!
//! The tests themselves are one binary for each need, in `tests/`: `cargo xtask tshark` and its siblings run them.

pub mod requirement;
pub mod simulation;
pub mod tshark;

pub use requirement::Requirement;
