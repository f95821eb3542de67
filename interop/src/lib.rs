//! Tests that need something from outside, and what they share. Not part of the product.
//!
//! - [`netns`]: two hosts and a cable between them, on one machine.
//! - [`peer`]: a program that publishes or subscribes shapes, running.
//! - [`requirement`]: what a test needs from the machine, and what happens when it is not there.
//! - [`shape`]: the type that they exchange, and what must have arrived.
//! - [`simulation`]: participants with a writer and a reader each on a simulated network.
//! - [`tshark`]: Wireshark's dissector as an independent judge of our packets.
//!
//! The tests themselves are one binary for each need, in `tests/`: `cargo xtask tshark` and its siblings run them.

pub mod netns;
pub mod peer;
pub mod requirement;
pub mod shape;
pub mod simulation;
pub mod tshark;

pub use requirement::Requirement;
