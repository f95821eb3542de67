//! Live exchanges with other engines over the loopback interface, in both directions, with every sample checked.
//!
//! | file | content |
//! |---|---|
//! | `cyclonedds` | the exchanges with Cyclone DDS; in the folder of this name its program |
//! | `peer` | a program of another engine, running, and how it is built |
//! | `types` | the types, and what their samples look like |
//! | `weir` | Weir's side |
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cyclonedds;
mod peer;
mod types;
mod weir;
