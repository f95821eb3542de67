//! Tests that need external programs, and their shared code. Not part of the product.
//!
//! - [`netns`]: two hosts and cables between them, on one machine.
//! - [`peer`]: a running program that publishes or subscribes shapes.
//! - [`requirement`]: what a test needs from the machine, and what happens if it is missing.
//! - [`shape`]: the exchanged type, and checks of what arrived.
//! - [`simulation`]: participants with a writer and a reader each on a simulated network.
//! - [`tshark`]: Wireshark's dissector as an independent check of our packets.
//!
//! There is one test binary for each requirement, in `tests/`; `cargo xtask tshark` and similar
//! steps run them.

pub mod netns;
pub mod peer;
pub mod requirement;
pub mod shape;
pub mod simulation;
pub mod tshark;

pub use requirement::Requirement;
