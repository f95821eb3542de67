//! Procedures of other benchmarks, with their formats and quirks, so that figures compare with published ones.
//!
//! - [`perftest`]: RTI Perftest's
//! - [`hpcbench`]: hpcbench's UDP tests

pub mod hpcbench;
pub mod perftest;
