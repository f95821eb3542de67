//! What is measured and how.
//!
//! The bench runs every engine through the same harness: two processes of the same program, joined by a control channel, one case
//! after the other. It prints nothing and knows no file format: progress goes to a callback, results are [`weir_results::Case`]s.
//!
//! - [`endpoint`]: the seam between the harness and an engine
//! - [`engine`]: the engines of this build
//! - [`payload`]: the bytes of a sample, the same for every engine
//! - [`sink`]: where a subscriber's samples are counted and checked
//! - [`case`]: one point of a measurement
//! - [`clock`]: monotonic nanoseconds

pub mod case;
pub mod clock;
pub mod endpoint;
pub mod engine;
pub mod payload;
pub mod sink;
